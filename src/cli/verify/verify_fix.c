/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify --fix of kernels: every refuted kernel of a file gets the first change with which all
 * that is claimed of it is proved: of those that are advised, then of those that a search of the text
 * tries (text_search.h). A kernel with a signal that is never notified or waited on is searched too,
 * as one from which a line was lost. */
#include "cli/museum/museum.h"
#include "cli/patch.h"
#include "cli/progress.h"
#include "cli/verify/verify_kernel.h"

#include "cli/verify/text_fix.h"
#include "cli/verify/text_search.h"

#include <stdio.h>
#include <string.h>

/* The verdict of one kernel of a text. advice: where its pieces are kept, or NULL. */
struct tried {
    struct peal_program *program;
    const struct peal_kernel *kernel; /* as written */
    struct peal_claim claim;
    enum peal_outcome verdict;
    bool has_contract;
};

static void release(struct tried *t)
{
    peal_claim_release(&t->claim);
    peal_program_close(t->program);
}

/* False: the text cannot be read, or memory is exhausted. Release it in both cases. */
static bool try_text(struct peal_cli *cli, const struct peal_verify_settings *o,
                     const struct peal_source *source, const char *name, bool advice,
                     struct tried *out)
{
    struct peal_diags diags;
    struct peal_verify_settings settings = *o;
    settings.advice = advice;
    *out = (struct tried){.verdict = PEAL_UNDECIDED};
    peal_diags_init(&diags);
    const struct peal_kernel *lowered = NULL;
    if (peal_program_text(source->name, source->text, source->len, &diags, &out->program) ==
        PEAL_OK)
        lowered = peal_program_kernel(out->program, name, &diags);
    bool good = lowered && peal_verify_prove(cli, &settings, lowered, &out->claim);
    if (lowered)
        out->kernel = peal_module_find(peal_program_module(out->program), name);
    if (good) {
        if (!o->kernel.op.given)
            good = peal_claim_try_operations(&out->claim) == PEAL_OK;
        struct peal_claim_sum sum = peal_claim_add_up(peal_claim_shown(&out->claim));
        out->verdict = peal_claim_verdict(&sum);
        out->has_contract = sum.has_contract;
    }
    peal_diags_release(&diags);
    return good;
}

/* A line about a kernel, broken where a terminal would. */
static void say(const char *name, const char *what, const char *more)
{
    struct peal_text line = {0};
    peal_text_printf(&line, "%s: %s%s\n", name, what, more);
    peal_text_fold(&line, 0, 2, PEAL_TEXT_WIDTH);
    fputs(peal_text_get(&line), stdout);
    peal_text_release(&line);
}

/* Replaces *text by one with which the kernel is proved. False: there is no such change. */
static bool fix_kernel(struct peal_cli *cli, const struct peal_verify_settings *o,
                       struct peal_source *text, const char *name, const struct tried *refuted)
{
    const struct peal_claim_task *failure = peal_claim_failure(&refuted->claim);
    for (uint32_t i = 0; failure && i < failure->answer->nadvice; i++) {
        const struct peal_verify_advice *advice = &failure->answer->advice[i];
        struct peal_text changed = {0};
        struct tried now = {0};
        bool good = peal_text_fix(text, refuted->kernel, advice, &changed);
        if (good) {
            struct peal_source with = {text->name, peal_text_get(&changed), changed.len};
            good = try_text(cli, o, &with, name, false, &now) && now.verdict == PEAL_PROVED;
            release(&now);
        }
        char *kept = NULL;
        if (good)
            kept = peal_arena_copy(cli->arena, peal_text_get(&changed), changed.len);
        size_t len = changed.len;
        peal_text_release(&changed);
        if (!kept)
            continue;
        say(name, "fixed: ", advice->text);
        *text = (struct peal_source){text->name, kept, len};
        return true;
    }
    return false;
}

/* A guess is tried with few ranks and one count first. */
struct searching {
    struct peal_cli *cli;
    const struct peal_verify_settings *all;
    struct peal_verify_settings few;
    const char *name;
    int64_t ranks[2];
    uint32_t tried, proved; /* guesses, with few ranks */
    struct peal_progress progress;
};

enum { MOST_TRIED = 4000, MOST_PROVED = 40 }; /* then there is no such change */

/* How many guesses there are: none of them is good. */
static bool count_guess(void *context, const struct peal_source *text, bool weaker)
{
    uint64_t *count = context;
    (void)text, (void)weaker;
    *count += *count < MOST_TRIED;
    return false;
}

static bool is_proved(struct searching *s, const struct peal_verify_settings *o,
                      const struct peal_source *text, bool weaker)
{
    struct tried now = {0};
    bool good = try_text(s->cli, o, text, s->name, false, &now) && now.verdict == PEAL_PROVED &&
                (now.has_contract || !weaker);
    release(&now);
    return good;
}

static bool try_guess(void *context, const struct peal_source *text, bool weaker)
{
    struct searching *s = context;
    if (s->tried == MOST_TRIED || s->proved == MOST_PROVED)
        return false;
    s->tried++;
    peal_progress_step(&s->progress, 1);
    if (!is_proved(s, &s->few, text, weaker))
        return false;
    s->proved++;
    return is_proved(s, s->all, text, weaker);
}

static bool search(struct peal_cli *cli, const struct peal_verify_settings *o,
                   struct peal_source *text, const char *name)
{
    enum { FEW_STATES = 20000 };
    struct peal_text changed = {0}, what = {0};
    struct searching s = {.cli = cli, .all = o, .few = *o, .name = name};
    struct peal_ints *few = &s.few.kernel.ranks;
    size_t n = 0;
    for (size_t i = 0; i < few->len && n < 2; i++) {
        if (few->at[i] > 1)
            s.ranks[n++] = few->at[i];
    }
    if (!few->len) {
        s.ranks[n++] = 2;
        s.ranks[n++] = 3;
    }
    if (n)
        *few = (struct peal_ints){.at = s.ranks, .len = n};
    if (s.few.kernel.counts.len > 1)
        s.few.kernel.counts.len = 1;
    s.few.quick = s.few.alone = s.few.no_cache = true;
    s.few.states = s.few.states ? s.few.states : FEW_STATES;
    char *kept = NULL;
    s.progress.label = "changes tried";
    (void)peal_text_search(text, name, count_guess, &s.progress.total, &changed, &what);
    peal_progress_begin(&s.progress);
    bool found = peal_text_search(text, name, try_guess, &s, &changed, &what);
    peal_progress_end(&s.progress);
    if (found)
        kept = peal_arena_copy(cli->arena, peal_text_get(&changed), changed.len);
    if (kept) {
        say(name, "fixed: ", peal_text_get(&what));
        *text = (struct peal_source){text->name, kept, changed.len};
    }
    peal_text_release(&changed);
    peal_text_release(&what);
    return kept;
}

/* Returns the exit code of the kernel as it is now. */
static int fix_one(struct peal_cli *cli, const struct peal_verify_settings *o,
                   struct peal_source *text, const char *name)
{
    struct tried before;
    int code = PEAL_EXIT_OTHER;
    struct peal_progress progress = {.label = "proving it as it is"};
    peal_progress_begin(&progress);
    bool good = try_text(cli, o, text, name, true, &before);
    peal_progress_end(&progress);
    if (good && before.verdict == PEAL_PROVED) {
        say(name, "proved; nothing to fix", "");
        code = PEAL_EXIT_OK;
    } else if (good && before.verdict == PEAL_REFUTED) {
        code = PEAL_EXIT_NO;
        if (fix_kernel(cli, o, text, name, &before) || search(cli, o, text, name))
            code = PEAL_EXIT_OK;
        else
            say(name, "refuted, and no change that was tried proves it", "");
    } else if (before.kernel) {
        say(name, "not decided, so not fixed", "");
    } else if (search(cli, o, text, name)) {
        code = PEAL_EXIT_OK;
    } else {
        say(name, "no change that was tried makes it right", "");
    }
    release(&before);
    return code;
}

static int write_text(struct peal_cli *cli, const struct peal_verify_settings *o, const char *path,
                      const struct peal_source *text)
{
    struct peal_text out = {0};
    const char *where = o->output ? o->output : path;
    int code = PEAL_EXIT_OK;
    peal_text_add(&out, text->text, text->len);
    if (o->output || strcmp(path, "-") == 0) {
        code = peal_cli_write(cli, where, &out) ? PEAL_EXIT_OK : PEAL_EXIT_OTHER;
    } else if (peal_museum_instead_of(path)) {
        code = peal_cli_fail(cli,
                             "'%s' is part of this command and cannot be changed: -o FILE writes "
                             "the fix",
                             path);
    } else {
        struct peal_text said = {0};
        if (peal_patch_replace(path, text->text, text->len, "changed", &said))
            printf("%s\n", peal_text_get(&said));
        else
            code = peal_cli_fail(cli, "%s", peal_text_get(&said));
        peal_text_release(&said);
    }
    peal_text_release(&out);
    return code;
}

int peal_verify_fix(struct peal_cli *cli, const struct peal_verify_settings *o, const char *path,
                    const char *const *names, size_t nnames)
{
    struct peal_source original;
    int worst = PEAL_EXIT_OK;
    if (!peal_cli_read(cli, path, &original))
        return PEAL_EXIT_OTHER;
    struct peal_source text = original;
    for (size_t i = 0; i < nnames; i++) {
        int code = fix_one(cli, o, &text, names[i]);
        if (worst == PEAL_EXIT_OK || code == PEAL_EXIT_NO)
            worst = code;
    }
    if (text.text != original.text) {
        struct peal_text patch = {0};
        peal_patch_print(path, &original, &text, &patch);
        fputs(peal_text_or_empty(peal_text_get(&patch)), stdout);
        peal_text_release(&patch);
        int code = write_text(cli, o, path, &text);
        if (code != PEAL_EXIT_OK)
            worst = code;
    }
    return worst;
}

int peal_verify_fix_text(struct peal_cli *cli, const struct peal_verify_settings *o,
                         const char *path)
{
    enum { MAX_NAME = 64, MAX_KERNELS = 64 };
    struct peal_source source;
    const char *names[MAX_KERNELS];
    size_t at = 0, n = 0;
    if (!peal_cli_read(cli, path, &source))
        return PEAL_EXIT_OTHER;
    while (n < MAX_KERNELS) {
        char name[MAX_NAME];
        peal_text_next_kernel(&source, &at, name, sizeof name);
        if (!name[0])
            break;
        if (o->kernel.kernel && strcmp(name, o->kernel.kernel) != 0)
            continue;
        names[n] = peal_arena_copy(cli->arena, name, strlen(name));
        if (!names[n++])
            return peal_cli_fail(cli, "out of memory");
    }
    /* Nothing is written unless the text is right as a whole. */
    return n ? peal_verify_fix(cli, o, path, names, n) : PEAL_EXIT_OTHER;
}
