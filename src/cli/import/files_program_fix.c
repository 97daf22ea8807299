/* SPDX-License-Identifier: Apache-2.0 */
/* What would fix a program that is refuted: changes in the author's terms, at lines of the counterexample. Each is tried: the program is
 * recorded again with that change, and only one with which it is proved is offered. */
#include "cli/import/files_program.h"

#include "cli/import/python.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TRIES = 8, LARGE = 50000, MAX_TRIES_OF_LARGE = 2 };

/* A change: the setting of the recorder that makes it, and its name in the author's terms. */
struct program_change {
    char setting[512], words[512];
    struct peal_verify_place place;
};

struct program_changes {
    struct program_change at[MAX_TRIES];
    uint32_t count;
};

/* A change of what the line says; `words` ends where the place follows. */
static void add(struct program_changes *all, const struct peal_verify_place *place,
                const char *setting, const char *words)
{
    char kind[16], value[16];
    struct program_change new = {.place = *place};
    if (sscanf(setting, "%15s %15s", kind, value) != 2)
        return;
    snprintf(new.setting, sizeof new.setting, "try=%s %u %s %.400s\n", kind, place->line, value,
             place->file);
    snprintf(new.words, sizeof new.words, "%s %.300s:%u", words, place->file, place->line);
    for (uint32_t i = 0; i < all->count; i++) {
        if (strcmp(all->at[i].setting, new.setting) == 0)
            return;
    }
    if (all->count < MAX_TRIES)
        all->at[all->count++] = new;
}

static bool is_kind(const struct peal_verify_step *s, const char *kind)
{
    return s->kind && strcmp(s->kind, kind) == 0;
}

static bool has_word(const struct peal_verify_step *s, const char *word)
{
    return s->ordering && strstr(s->ordering, word);
}

/* Is the step on a signal of the program's own? */
static bool is_signal(const struct peal_verify_step *s)
{
    return s->signal && s->place.line && strcmp(s->signal, "order") != 0 &&
           strcmp(s->signal, "host_barrier") != 0;
}

/* Orders and scopes that could be stronger. */
static void add_orders(const struct peal_verification *v, struct program_changes *all)
{
    for (uint32_t i = 0; i < v->nsteps; i++) {
        const struct peal_verify_step *s = &v->steps[i];
        if (!is_signal(s))
            continue;
        if (has_word(s, "device") || has_word(s, "block"))
            add(all, &s->place, "scope system", "scope='sys' at");
        if (!has_word(s, "relaxed"))
            continue;
        if (is_kind(s, "take"))
            add(all, &s->place, "sem acq_rel", "sem='acq_rel' at");
        else if (is_kind(s, "wait"))
            add(all, &s->place, "sem acquire", "sem='acquire' at");
        else
            add(all, &s->place, "sem release", "sem='release' at");
    }
}

static void add_waits(const struct peal_verification *v, struct program_changes *all)
{
    for (uint32_t i = 0; i < v->nsteps; i++) {
        const struct peal_verify_step *s = &v->steps[i];
        if (is_signal(s) && is_kind(s, "wait") && s->relation && strcmp(s->relation, "==") == 0)
            add(all, &s->place, "wait ge", "a loop that ends at '>=', not only at '==', at");
    }
}

/* Flags that hold anything at first. */
static void add_zeroes(const struct peal_verification *v, struct program_changes *all)
{
    for (uint32_t i = 0; i < v->nsteps && all->count < MAX_TRIES; i++) {
        const struct peal_verify_step *s = &v->steps[i];
        bool unknown = strncmp(peal_verify_cell_words(s->before).text, "unknown", 7) == 0;
        if (!is_signal(s) || !s->cell || !unknown)
            continue;
        int len = (int)strcspn(s->signal, ".");
        struct program_change *new = &all->at[all->count++];
        *new = (struct program_change){.place = s->place};
        snprintf(new->setting, sizeof new->setting, "try=zero 0 %.*s -\n", len, s->signal);
        snprintf(new->words, sizeof new->words,
                 "zeroing '%.*s' on all ranks before the first kernel", len, s->signal);
        return;
    }
}

/* All ranks meet: on the host between calls, or in the kernel before it writes what a call before it still reads. */
static void add_barriers(const struct peal_files_job *job, const struct peal_verification *v,
                         struct program_changes *all)
{
    if (job->options->recorded.between == 0 && all->count < MAX_TRIES)
        all->at[all->count++] = (struct program_change){
            .setting = "between=barrier\n",
            .words = "a barrier of all ranks between calls (--between barrier)"};
    for (uint32_t i = v->naccesses; i-- > 0;) {
        const struct peal_verify_access *a = &v->accesses_at[i];
        if (a->writes && a->step < v->nsteps && v->steps[a->step].place.line)
            add(all, &v->steps[a->step].place, "meet programs",
                "a barrier, in which programs of the same number of all ranks meet, before");
    }
}

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

/* Is the program proved with these changes? */
static bool helps(const struct peal_files_job *job, const struct peal_file_task *task,
                  const char *settings)
{
    struct peal_kernel_options options = *job->options;
    struct peal_python_recordings recordings;
    struct peal_text text = {0};
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%u", task->facts.nranks);
    options.recorded.tries = settings;
    options.ranks.len = options.counts.len = 0;
    bool proved = peal_python_record(job->cli, job->origin, &options, ranks, &recordings) &&
                  peal_text_read(&text, recordings.paths[0], SIZE_MAX / 2) &&
                  is_proved(job, &options, task, &text);
    peal_python_release(&recordings);
    peal_text_release(&text);
    return proved;
}

static void offer(struct peal_file_task *task, const struct program_change *change,
                  const char *more)
{
    struct peal_pos pos = {NULL, 1, 1, 1};
    if (change->place.line && strcmp(change->place.file, task->path) == 0)
        pos.line = change->place.line;
    peal_finding_add(&task->findings, PEAL_FINDING_NOTE, PEAL_PROGRAM_FIX, pos,
                     "fix: %s%s (tried at %u ranks: proved)", change->words, more,
                     task->facts.nranks);
}

/* All of the first `count` changes together. */
static bool try_together(const struct peal_files_job *job, struct peal_file_task *task,
                         const struct program_changes *all, uint32_t count)
{
    struct peal_text settings = {0}, more = {0};
    for (uint32_t i = 0; i < count; i++) {
        peal_text_puts(&settings, all->at[i].setting);
        if (i)
            peal_text_printf(&more, "%s%s", i + 1 == count ? " and " : ", ", all->at[i].words);
    }
    bool proved = helps(job, task, peal_text_get(&settings));
    if (proved)
        offer(task, &all->at[0], peal_text_get(&more));
    peal_text_release(&settings);
    peal_text_release(&more);
    return proved;
}

void peal_program_find_fix(const struct peal_files_job *job)
{
    const struct peal_file_task *worst = peal_program_worst(job);
    struct program_changes all = {.count = 0};
    if (!worst || !worst->runs.at[0].answer || worst->runs.at[0].answer->verdict != PEAL_REFUTED)
        return;
    struct peal_file_task *task = &job->tasks[worst - job->tasks];
    const struct peal_verification *v = task->runs.at[0].answer;
    add_orders(v, &all);
    uint32_t orders = all.count, most = v->ops > LARGE ? MAX_TRIES_OF_LARGE : MAX_TRIES;
    add_zeroes(v, &all);
    if (v->fault == PEAL_FAULT_DEADLOCK)
        add_waits(v, &all);
    if (v->fault == PEAL_FAULT_RACE || v->fault == PEAL_FAULT_DEADLOCK)
        add_barriers(job, v, &all);
    bool found = false;
    for (uint32_t i = 0; i < all.count && i < most && !found; i++) {
        found = helps(job, task, all.at[i].setting);
        if (found)
            offer(task, &all.at[i], "");
        else if (i > 0 && i + 1 == orders)
            found = try_together(job, task, &all, orders);
    }
}
