/* SPDX-License-Identifier: Apache-2.0 */
/* See files_changes.h. The recorder makes the changes: python/peal/tiles has their kinds. */
#include "cli/import/files_changes.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A change at no line of its own. */
static void add_setting(struct program_changes *all, const char *setting, const char *words)
{
    if (all->count == PEAL_PROGRAM_TRIES)
        return;
    struct program_change *new = &all->at[all->count++];
    *new = (struct program_change){.place = {.line = 0}};
    snprintf(new->setting, sizeof new->setting, "%s", setting);
    snprintf(new->words, sizeof new->words, "%s", words);
}

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
    if (words)
        snprintf(new.words, sizeof new.words, "%s %.300s:%u", words, place->file, place->line);
    for (uint32_t i = 0; i < all->count; i++) {
        if (strcmp(all->at[i].setting, new.setting) == 0)
            return;
    }
    if (all->count < PEAL_PROGRAM_TRIES)
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
    for (uint32_t i = 0; i < v->nsteps && all->count < PEAL_PROGRAM_TRIES; i++) {
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
    if (job->options->recorded.between == 0)
        add_setting(all, "between=barrier\n",
                    "a barrier of all ranks between calls (--between barrier)");
    for (int writes = 1; writes >= 0; writes--) {
        for (uint32_t i = v->naccesses; i-- > 0;) {
            const struct peal_verify_access *a = &v->accesses_at[i];
            if (a->writes == (writes == 1) && a->step < v->nsteps && v->steps[a->step].place.line)
                add(all, &v->steps[a->step].place, "meet programs",
                    "a barrier, in which programs of the same number of all ranks meet, before");
        }
    }
}

/* What another stream did is there for whoever comes after the call. */
static void add_streams(const struct peal_file_run *run, struct program_changes *all)
{
    const struct peal_verification *v = run->answer;
    for (uint32_t i = 0; i < v->naccesses && run->steps; i++) {
        const char *lane = run->steps[v->accesses_at[i].step].lane;
        if (!lane || strncmp(lane, "stream ", 7) != 0)
            continue;
        add_setting(all, "try=streams 0 all -\n",
                    "torch.cuda.synchronize() where ranks meet and where a call ends");
        return;
    }
}

/* --- Pallas ---------------------------------------------------------------------------------- */

bool peal_program_is_pallas(const struct peal_file_task *task)
{
    for (size_t i = 0; i < task->findings.list.len; i++) {
        if (strncmp(task->findings.list.at[i].message, "model pallas", 12) == 0)
            return true;
    }
    return false;
}

static bool is_copy(const struct peal_file_run *run, uint32_t step)
{
    const char *lane = run->steps ? run->steps[step].lane : NULL;
    return lane && strcmp(lane, "copy") == 0;
}

/* What the author's text has to wait for a copy: both accesses of the race, a copy's first. */
static void add_copy_wait(const struct peal_file_run *run, uint32_t copy, uint32_t other,
                          struct program_changes *all)
{
    const struct peal_verification *v = run->answer;
    const struct peal_verify_access *a = &v->accesses_at[copy], *b = &v->accesses_at[other];
    const struct peal_verify_place *from = &v->steps[a->step].place, *to = &v->steps[b->step].place;
    char setting[64];
    if (!is_copy(run, a->step) || !from->line || !to->line || strcmp(from->file, to->file) != 0)
        return;
    snprintf(setting, sizeof setting, "wait %u/%s", from->line, a->writes ? "recv" : "send");
    add(all, to, setting, NULL);
}

/* The devices meet before a copy that races starts. */
static void add_meetings(const struct peal_file_run *run, struct program_changes *all)
{
    static const char *const ways[] = {"devices first", "devices each"};
    const struct peal_verification *v = run->answer;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        for (uint32_t i = 0; i < v->naccesses; i++) {
            uint32_t step = v->accesses_at[i].step;
            if (is_copy(run, step) && v->steps[step].place.line)
                add(all, &v->steps[step].place, ways[k], NULL);
        }
    }
}

/* Waits that do not end, made waits for what is there. */
static void add_amounts(const struct peal_verification *v, struct program_changes *all)
{
    for (uint32_t i = 0; i < v->nwaits; i++) {
        const struct peal_verify_wait *w = &v->waits[i];
        char setting[64];
        if (w->step >= v->nsteps || !v->steps[w->step].place.line)
            continue;
        snprintf(setting, sizeof setting, "amount %s", peal_verify_cell_words(w->actual).text);
        add(all, &v->steps[w->step].place, setting, NULL);
    }
}

static void add_pallas(const struct peal_files_job *job, const struct peal_file_run *run,
                       struct program_changes *all)
{
    const struct peal_verification *v = run->answer;
    if (v->fault == PEAL_FAULT_DEADLOCK) {
        add_setting(all, "try=drain 0 all -\n", "");
        add_amounts(v, all);
    }
    if (v->fault == PEAL_FAULT_RACE || v->fault == PEAL_FAULT_RESULT) {
        add_setting(all, "try=own 0 recv -\n", "");
        add_setting(all, "try=own 0 both -\n", "");
    }
    if (v->fault == PEAL_FAULT_RACE && v->naccesses == 2) {
        add_copy_wait(run, 0, 1, all);
        add_copy_wait(run, 1, 0, all);
    }
    if (v->fault == PEAL_FAULT_RACE) {
        add_setting(all, "try=enter 0 all -\n", "");
        add_meetings(run, all);
    }
    if (v->fault == PEAL_FAULT_RACE && job->options->recorded.between == 0)
        add_setting(all, "between=barrier\n",
                    "a barrier of all devices between calls (--between barrier)");
}

void peal_program_list_changes(const struct peal_files_job *job, const struct peal_file_task *task,
                               struct program_changes *all)
{
    const struct peal_file_run *run = &task->runs.at[0];
    const struct peal_verification *v = run->answer;
    *all = (struct program_changes){.count = 0};
    if (peal_program_is_pallas(task)) {
        add_pallas(job, run, all);
        return;
    }
    add_orders(v, all);
    all->together = all->count;
    add_zeroes(v, all);
    if (v->fault == PEAL_FAULT_DEADLOCK)
        add_waits(v, all);
    add_streams(run, all);
    if (v->fault == PEAL_FAULT_RACE || v->fault == PEAL_FAULT_DEADLOCK)
        add_barriers(job, v, all);
}
