/* SPDX-License-Identifier: Apache-2.0 */
/* A counterexample in the terms of the kernel's author: pipes instead of lanes, the lines of the
 * kernel instead of plan ops, and no steps that only carry order between pipes. */
#include "cli/record/story.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void peal_story_source(struct story_files *files, const char *path, uint32_t line, size_t most,
                       struct peal_text *out)
{
    enum { LARGEST = 4 << 20 };
    struct peal_text *text = NULL;
    for (size_t i = 0; i < files->len && !text; i++) {
        if (strcmp(files->at[i].path, path) == 0)
            text = &files->at[i].text;
    }
    if (!text && files->len < sizeof files->at / sizeof *files->at) {
        files->at[files->len].path = path;
        text = &files->at[files->len++].text;
        (void)peal_text_read(text, path, LARGEST);
    }
    if (!text || !text->len)
        return;
    const char *from = peal_text_get(text);
    for (uint32_t i = 1; i < line && from; i++) {
        from = strchr(from, '\n');
        from += from != NULL;
    }
    if (!from)
        return;
    size_t len = strcspn(from, "\n");
    for (; len && strchr(" \t", *from); len--)
        from++;
    peal_text_printf(out, "%.*s%s", (int)peal_size_min(len, most), from, len > most ? " ..." : "");
}

void peal_story_release(struct story_files *files)
{
    for (size_t i = 0; i < files->len; i++)
        peal_text_release(&files->at[i].text);
    files->len = 0;
}

/* "rank 1 MTE2", "rank 0 block 1 S" */
static void put_who(const struct story_view *view, const struct peal_verify_step *s,
                    struct peal_text *out)
{
    uint32_t block = view->by_pipe ? s->lane / REC_PIPES : s->lane % REC_MAX_BLOCKS;
    peal_text_printf(out, "rank %u", s->rank);
    if (view->blocks > 1)
        peal_text_printf(out, " block %u", block);
    if (view->by_pipe)
        peal_text_printf(out, " %s", peal_pipe_names[s->lane % REC_PIPES]);
    else if (s->lane >= REC_MAX_BLOCKS)
        peal_text_printf(out, " %s", peal_pipe_names[REC_PIPE_DMA]);
}

bool peal_story_is_order(const struct peal_verify_step *s)
{
    return s->signal && strcmp(s->signal, "order") == 0;
}

static bool is_kind(const struct peal_verify_step *s, const char *kind)
{
    return s->kind && strcmp(s->kind, kind) == 0;
}

/* Is it a part of a barrier of the host, which is one step for the reader? */
static bool is_host_barrier(const struct peal_verify_step *s)
{
    return s->signal && strcmp(s->signal, "host_barrier") == 0;
}

/* Is `next` more of what the step does? */
static bool goes_on(const struct peal_verify_step *s, const struct peal_verify_step *next)
{
    bool same = s->rank == next->rank && s->lane == next->lane && s->launch == next->launch &&
                s->place.line == next->place.line && s->cell && next->cell && !s->blocked &&
                !next->blocked && !s->collides && !next->collides &&
                strcmp(s->place.file, next->place.file) == 0;
    if (same && is_host_barrier(s) && is_host_barrier(next))
        return true;
    return same && is_kind(next, s->kind) && s->before == next->before && s->after == next->after;
}

static void put_cell(const struct peal_verify_step *s, uint32_t more, struct peal_text *out)
{
    struct peal_cell_words before = peal_verify_cell_words(s->before);
    peal_text_printf(out, "   (%s", s->cell);
    if (more)
        peal_text_printf(out, " and %u more", more);
    if (is_kind(s, "wait"))
        peal_text_printf(out, " %s %s)", more ? "are" : "is", before.text);
    else
        peal_text_printf(out, ": %s -> %s)", before.text, peal_verify_cell_words(s->after).text);
}

/* Steps [i, i + n) of which the others are more of the same. */
static void put_step(const struct story_view *view, struct story_files *files,
                     const struct peal_verification *v, uint32_t i, uint32_t n,
                     struct peal_text *out)
{
    const struct peal_verify_step *s = &v->steps[i];
    size_t from = out->len;
    peal_text_puts(out, "  ");
    if (view->who)
        view->who(view->context, i, out);
    else
        put_who(view, s, out);
    while (!view->who && out->len - from < 18)
        peal_text_puts(out, " ");
    if (view->launches > 1 && !view->who)
        peal_text_printf(out, " launch %u", s->launch);
    if (is_host_barrier(s)) {
        peal_text_puts(out, " a barrier of the host");
    } else if (s->place.line) {
        peal_text_printf(out, " %s:%u: ", s->place.file, s->place.line);
        peal_story_source(files, s->place.file, s->place.line, view->who ? 56 : 100, out);
    } else {
        peal_text_printf(out, " %s", peal_text_or_empty(s->text));
    }
    if (s->cell && !peal_story_is_order(s) && !is_host_barrier(s))
        put_cell(s, n - 1, out);
    if (s->collides)
        peal_text_puts(out, "   <- collides");
    if (s->blocked)
        peal_text_puts(out, peal_story_is_order(s) ? "   <- waits for another pipe for ever"
                                                   : "   <- waits for ever");
    peal_text_puts(out, "\n");
}

void peal_story_put(const struct story_view *view, struct story_files *files,
                    const struct peal_verification *v, struct peal_text *out)
{
    enum { HEAD = 24, TAIL = 16 };
    uint32_t shown = 0, next;
    if (v->why && !view->who)
        peal_text_printf(out, "%s\n", v->why);
    if (v->nsteps)
        peal_text_puts(out, "how it happens:\n");
    for (uint32_t i = 0; i < v->nsteps; i = next) {
        const struct peal_verify_step *s = &v->steps[i];
        next = i + 1;
        if (peal_story_is_order(s) && !s->blocked)
            continue;
        while (view->who && next < v->nsteps && goes_on(s, &v->steps[next]))
            next++;
        if (view->who && shown++ == HEAD && v->nsteps - i > TAIL) {
            peal_text_printf(out, "  ... %u steps left out here; --json has them all\n",
                             v->nsteps - i - TAIL);
            next = v->nsteps - TAIL;
            continue;
        }
        put_step(view, files, v, i, next - i, out);
    }
}
