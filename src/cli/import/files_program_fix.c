/* SPDX-License-Identifier: Apache-2.0 */
/* What would fix a program that is refuted: changes in the author's terms, at lines of the counterexample. Each is tried: the program is
 * recorded again with that change, and only one with which it is proved is offered. With --fix the recorder writes the file with that
 * change, if it is one of a line, and the changed program is proved before it stays. */
#include "cli/import/files_program.h"

#include "cli/import/files_changes.h"
#include "cli/import/python.h"
#include "cli/patch.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 50000, TRIES_OF_LARGE = 2 };

/* --- trying ---------------------------------------------------------------------------------- */

/* Is the recording proved? */
static bool is_proved(const struct peal_files_job *job, const struct peal_kernel_options *options,
                      const struct peal_file_task *task, const struct peal_text *text)
{
    struct peal_import *import = NULL;
    struct peal_file_task again = {.path = task->path};
    struct peal_files_job one = *job;
    again.source = (struct peal_source){task->path, peal_text_get(text), text->len};
    one.options = options;
    one.keep_plans = false;
    one.verify.no_story = true;
    peal_arena_init(&again.arena, 0);
    peal_findings_init(&again.findings);
    if (peal_import_open(&again.source, NULL, &import) == PEAL_OK) {
        again.facts = *peal_import_facts(import);
        peal_files_verify_ways(&one, &again, import);
    }
    const struct peal_verification *v = again.runs.len ? again.runs.at[0].answer : NULL;
    bool proved = v && v->verdict == PEAL_PROVED;
    peal_import_close(import);
    peal_files_release_task(&again);
    return proved;
}

/* What the recorder says that it has changed: its notes, in the author's words. */
static void read_words(const char *recording, struct peal_text *out)
{
    static const char note[] = "\nnote tried: ";
    for (const char *at = strstr(recording, note); at; at = strstr(at, note)) {
        at += sizeof note - 1;
        if (out->len)
            peal_text_puts(out, " and ");
        peal_text_add(out, at, strcspn(at, "\n"));
    }
}

/* Is the program proved with these changes, at each of these numbers of ranks? words: what the recorder said that it changed, or NULL if that is known; where
 * it changed nothing, nothing is proved. */
static bool helps(const struct peal_files_job *job, const struct peal_file_task *task,
                  const char *settings, const char *ranks, struct peal_text *words)
{
    struct peal_kernel_options options = *job->options;
    struct peal_python_recordings recordings;
    struct peal_text text = {0};
    options.recorded.tries = settings;
    options.ranks.len = options.counts.len = 0;
    bool proved = peal_python_record(job->cli, job->origin, &options, ranks, &recordings);
    for (int i = 0; i < recordings.npaths && proved; i++) {
        peal_text_release(&text);
        proved = peal_text_read(&text, recordings.paths[i], SIZE_MAX / 2);
        if (proved && words && i == 0)
            read_words(peal_text_get(&text), words);
        proved = proved && (!words || words->len) && is_proved(job, &options, task, &text);
    }
    peal_python_release(&recordings);
    peal_text_release(&text);
    return proved;
}

/* --- any number of calls --------------------------------------------------------------------- */

/* Adds what is assumed of later calls, or why nothing is said of them. */
static void say_calls(struct peal_file_task *task, bool proved, const char *words)
{
    struct peal_pos pos = {NULL, 1, 1, 1};
    if (task->all_calls)
        peal_finding_add(&task->findings, PEAL_FINDING_NOTE, "recorded", pos,
                         "assumes that later calls go on like the %u that were recorded",
                         task->facts.calls);
    else if (!proved && strcmp(words, "yes") == 0)
        peal_finding_add(&task->findings, PEAL_FINDING_NOTE, "recorded", pos,
                         "for %u calls only: part of a call may go on when the one after the next "
                         "begins (%u rank%s)",
                         task->facts.calls, task->facts.nranks,
                         peal_text_plural(task->facts.nranks));
    else if (words[0])
        peal_finding_add(&task->findings, PEAL_FINDING_NOTE, "recorded", pos,
                         "for %u calls only: %s", task->facts.calls, words);
}

void peal_program_ask_for_all_calls(const struct peal_files_job *job)
{
    enum { LEAST_CALLS = 3 };
    for (size_t i = 0; i < job->ntasks; i++) {
        struct peal_file_task *task = &job->tasks[i];
        const struct peal_verification *v = task->runs.at[0].answer;
        struct peal_text words = {0};
        char ranks[16];
        if (!v || v->verdict != PEAL_PROVED || v->ops > LARGE || task->facts.period ||
            task->facts.calls < LEAST_CALLS)
            continue;
        snprintf(ranks, sizeof ranks, "%u", task->facts.nranks);
        bool proved = helps(job, task, "try=ordered 0 all -\n", ranks, &words);
        task->all_calls = proved && strcmp(peal_text_or_empty(peal_text_get(&words)), "yes") == 0;
        say_calls(task, proved, peal_text_or_empty(peal_text_get(&words)));
        peal_text_release(&words);
    }
}

/* --- the search for a change ----------------------------------------------------------------- */

/* What was asked, and the first change that helps at the number of ranks of the counterexample alone. */
struct program_search {
    const struct peal_files_job *job;
    struct peal_file_task *task;
    char ranks[16];                   /* of the counterexample */
    struct peal_text others;          /* the other numbers of ranks that were asked for */
    struct peal_text settings, words; /* of the change that is offered */
    struct peal_verify_place place;
    bool partly;
};

static void begin_search(const struct peal_files_job *job, const struct peal_file_task *worst,
                         struct program_search *search)
{
    *search = (struct program_search){.job = job, .task = &job->tasks[worst - job->tasks]};
    snprintf(search->ranks, sizeof search->ranks, "%u", search->task->facts.nranks);
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_file_task *task = &job->tasks[i];
        const struct peal_verification *v = task->runs.at[0].answer;
        if (task == search->task || !v || v->ops > LARGE)
            continue;
        peal_text_printf(&search->others, "%s%u", search->others.len ? "," : "",
                         task->facts.nranks);
    }
}

static void end_search(struct program_search *search)
{
    peal_text_release(&search->others);
    peal_text_release(&search->settings);
    peal_text_release(&search->words);
}

/* Tries a change; its words are those of the recorder if they are not given. True: it helps wherever it has to. */
static bool try_change(struct program_search *search, const char *settings, const char *words,
                       const struct peal_verify_place *place)
{
    struct peal_text said = {0};
    bool proved = helps(search->job, search->task, settings, search->ranks, words ? NULL : &said);
    bool everywhere =
        proved && (!search->others.len || helps(search->job, search->task, settings,
                                                peal_text_get(&search->others), NULL));
    if (everywhere || (proved && !search->partly)) {
        search->partly = !everywhere;
        search->place = *place;
        search->settings.len = search->words.len = 0;
        peal_text_puts(&search->settings, settings);
        peal_text_puts(&search->words, words ? words : peal_text_get(&said));
    }
    peal_text_release(&said);
    return everywhere;
}

/* All of the first `count` changes together. */
static bool try_together(struct program_search *search, const struct program_changes *all,
                         uint32_t count)
{
    struct peal_text settings = {0}, words = {0};
    for (uint32_t i = 0; i < count; i++) {
        peal_text_puts(&settings, all->at[i].setting);
        if (i)
            peal_text_puts(&words, i + 1 == count ? " and " : ", ");
        peal_text_puts(&words, all->at[i].words);
    }
    bool good =
        try_change(search, peal_text_get(&settings), peal_text_get(&words), &all->at[0].place);
    peal_text_release(&settings);
    peal_text_release(&words);
    return good;
}

/* "2,4" as it is read: "2, 4" */
static void put_ranks(const char *ranks, struct peal_text *out)
{
    for (; *ranks; ranks++) {
        peal_text_add(out, ranks, 1);
        if (*ranks == ',')
            peal_text_puts(out, " ");
    }
}

static void offer(const struct program_search *search)
{
    struct peal_file_task *task = search->task;
    const struct peal_verify_place *place = &search->place;
    struct peal_pos pos = {NULL, 1, 1, 1};
    struct peal_text where = {0};
    if (!search->words.len)
        return;
    if (place->line && strcmp(place->file, task->path) == 0)
        pos.line = place->line;
    peal_text_puts(&where, search->ranks);
    if (search->others.len) {
        peal_text_puts(&where, search->partly ? " ranks: proved, and not at " : ", ");
        put_ranks(peal_text_get(&search->others), &where);
    }
    if (!search->partly)
        peal_text_printf(&where, " rank%s: proved",
                         search->others.len ? "s" : peal_text_plural(task->facts.nranks));
    peal_finding_add(&task->findings, PEAL_FINDING_NOTE, PEAL_PROGRAM_FIX, pos,
                     "fix: %s (tried at %s)", peal_text_get(&search->words), peal_text_get(&where));
    peal_text_release(&where);
}

/* Is it right if copies arrive in order? That is no fix: Pallas does not promise it. */
static void try_copy_order(const struct program_search *search)
{
    struct peal_file_task *task = search->task;
    if (search->job->options->recorded.in_order_copies ||
        !helps(search->job, task, "in_order_copies=1\n", search->ranks, NULL))
        return;
    peal_finding_add(&task->findings, PEAL_FINDING_NOTE, PEAL_PROGRAM_FIX,
                     (struct peal_pos){NULL, 1, 1, 1},
                     "note: with --in-order-copies it is proved at %u rank%s: it is right only if "
                     "copies from one device to the same other one arrive in the order in which "
                     "they were started",
                     task->facts.nranks, peal_text_plural(task->facts.nranks));
}

/* --- --fix ----------------------------------------------------------------------------------- */

/* The file that the change is made in, and its text, as the recorder wrote them; or why it is not. */
static bool read_edit(const struct program_search *search, char path[static PATH_MAX],
                      struct peal_text *text, struct peal_text *why)
{
    struct peal_kernel_options options = *search->job->options;
    struct peal_python_recordings recordings;
    struct peal_text settings = {0}, edited = {0};
    char file[PATH_MAX];
    peal_text_printf(&settings, "%sedit=1\n", peal_text_get(&search->settings));
    options.recorded.tries = peal_text_get(&settings);
    options.ranks.len = options.counts.len = 0;
    bool good = peal_python_record(search->job->cli, search->job->origin, &options, search->ranks,
                                   &recordings);
    snprintf(file, sizeof file, "%s/edited", recordings.folder);
    good = good && peal_text_read(&edited, file, SIZE_MAX / 2);
    peal_python_release(&recordings);
    const char *at = peal_text_get(&edited);
    size_t line = good ? strcspn(at, "\n") : 0;
    if (line > 0 && line < PATH_MAX) {
        snprintf(path, PATH_MAX, "%.*s", (int)line, at);
        peal_text_add(text, at + line + 1, edited.len - line - 1);
    } else {
        peal_text_puts(why, good ? at + 1 : "it cannot be recorded again");
        good = false;
    }
    peal_text_release(&settings);
    peal_text_release(&edited);
    return good;
}

/* Changes the author's file; takes that back if the changed program is not proved at all numbers of ranks. */
static bool change_file(const struct program_search *search, const char *path,
                        const struct peal_text *text, struct peal_text *said)
{
    struct peal_source before = {.name = path}, after = {path, text->at, text->len};
    struct peal_text old = {0}, patch = {0}, line = {0}, backup = {0};
    peal_text_printf(&backup, "%s.orig", path);
    bool good = peal_text_read(&old, path, SIZE_MAX / 2);
    before.text = peal_text_get(&old);
    before.len = old.len;
    peal_patch_print(path, &before, &after, &patch);
    good = good && peal_patch_replace(path, text->at, text->len, "fixed", &line);
    if (good && (!helps(search->job, search->task, "", search->ranks, NULL) ||
                 (search->others.len &&
                  !helps(search->job, search->task, "", peal_text_get(&search->others), NULL)))) {
        good = false;
        line.len = 0;
        bool restored = rename(peal_text_get(&backup), path) == 0;
        peal_text_printf(&line, "%s: %s: with this change of its text it is not proved", path,
                         restored ? "not changed" : strerror(errno));
    }
    peal_text_printf(said, "%s%s\n", peal_text_get(&patch), peal_text_get(&line));
    peal_text_release(&old);
    peal_text_release(&patch);
    peal_text_release(&line);
    peal_text_release(&backup);
    return good;
}

void peal_program_fix(const struct peal_files_job *job, struct peal_text *out)
{
    const struct peal_file_task *worst = peal_program_worst(job);
    struct program_search search;
    struct peal_text text = {0}, said = {0}, why = {0};
    char path[PATH_MAX];
    if (!worst)
        return;
    begin_search(job, worst, &search);
    if (!peal_program_is(job)) {
        peal_text_puts(&why, "--fix is for programs that call their kernels");
    } else if (!worst->remedy) {
        peal_text_puts(&why,
                       worst->no_remedy ? worst->no_remedy : "no change that was tried proves it");
    } else {
        peal_text_puts(&search.settings, worst->remedy);
        if (read_edit(&search, path, &text, &why))
            search.task->fixed = change_file(&search, path, &text, &said);
    }
    if (why.len)
        peal_text_printf(&said, "%s: not changed: %s\n", worst->path, peal_text_get(&why));
    if (out)
        peal_text_printf(out, "%s", peal_text_get(&said));
    peal_text_release(&text);
    peal_text_release(&said);
    peal_text_release(&why);
    end_search(&search);
}

/* --- the search ------------------------------------------------------------------------------ */

static void search_changes(struct program_search *search, const struct program_changes *all,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct program_change *change = &all->at[i];
        const char *words = change->words[0] ? change->words : NULL;
        if (try_change(search, change->setting, words, &change->place) ||
            (i > 0 && i + 1 == all->together && try_together(search, all, all->together)))
            return;
    }
}

void peal_program_find_fix(const struct peal_files_job *job)
{
    const struct peal_file_task *worst = peal_program_worst(job);
    struct program_changes all = {.count = 0};
    if (!worst || !worst->runs.at[0].answer || worst->runs.at[0].answer->verdict != PEAL_REFUTED)
        return;
    struct program_search search;
    const struct peal_verification *v = worst->runs.at[0].answer;
    uint32_t most = v->ops > LARGE ? TRIES_OF_LARGE : PEAL_PROGRAM_TRIES;
    peal_program_list_changes(job, worst, &all);
    begin_search(job, worst, &search);
    search_changes(&search, &all, all.count < most ? all.count : most);
    offer(&search);
    if (peal_program_is_pallas(worst) && v->fault == PEAL_FAULT_RACE)
        try_copy_order(&search);
    if (search.partly)
        search.task->no_remedy = "what was tried does not help at all numbers of ranks";
    else if (search.words.len)
        search.task->remedy = peal_arena_copy(&search.task->arena, peal_text_get(&search.settings),
                                              search.settings.len);
    end_search(&search);
}
