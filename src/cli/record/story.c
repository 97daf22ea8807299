/* SPDX-License-Identifier: Apache-2.0 */
/* A counterexample in the terms of the kernel's author: pipes instead of lanes, the lines of the
 * kernel instead of plan ops, and no steps that only carry order between pipes. */
#include "cli/record/story.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A line of a source file, without the blanks around it; "" if it cannot be read. */
static void put_source(struct story_files *files, const char *path, uint32_t line,
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
    peal_text_printf(out, "%.*s", (int)peal_size_min(len, 100), from);
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

static void put_step(const struct story_view *view, struct story_files *files,
                     const struct peal_verify_step *s, struct peal_text *out)
{
    size_t from = out->len;
    peal_text_puts(out, "  ");
    put_who(view, s, out);
    while (out->len - from < 18)
        peal_text_puts(out, " ");
    if (view->launches > 1)
        peal_text_printf(out, " launch %u", s->launch);
    if (s->place.line) {
        peal_text_printf(out, " %s:%u: ", s->place.file, s->place.line);
        put_source(files, s->place.file, s->place.line, out);
    } else {
        peal_text_printf(out, " %s", peal_text_or_empty(s->text));
    }
    if (s->cell && !peal_story_is_order(s)) {
        if (s->kind && strcmp(s->kind, "wait") == 0)
            peal_text_printf(out, "   (%s is %" PRId64 ")", s->cell, s->before);
        else
            peal_text_printf(out, "   (%s: %" PRId64 " -> %" PRId64 ")", s->cell, s->before,
                             s->after);
    }
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
    if (v->why)
        peal_text_printf(out, "%s\n", v->why);
    if (v->nsteps)
        peal_text_puts(out, "how it happens:\n");
    for (uint32_t i = 0; i < v->nsteps; i++) {
        const struct peal_verify_step *s = &v->steps[i];
        if (!peal_story_is_order(s) || s->blocked)
            put_step(view, files, s, out);
    }
}
