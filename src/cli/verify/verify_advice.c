/* SPDX-License-Identifier: Apache-2.0 */
/* What could be left out of a proved kernel: each piece that one plan does not need is taken out of
 * every plan and every sequence that was proved for the same number of ranks. */
#include "cli/verify/verify_tasks.h"

#include <string.h>

static bool has_sequences(const struct peal_verify_job *job, uint32_t nranks)
{
    for (size_t i = 0; i < job->ntasks; i++) {
        if (job->tasks[i].nranks == nranks && job->tasks[i].sequences)
            return true;
    }
    return false;
}

static enum peal_reuse least_reuse(const struct peal_verify_job *job, uint32_t nranks)
{
    enum peal_reuse least = PEAL_REUSE_CLOSED;
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_verify_task *t = &job->tasks[i];
        if (t->nranks == nranks && !t->sequences && t->answer && t->answer->reuse < least)
            least = t->answer->reuse;
    }
    return least;
}

static bool all_proved(const struct peal_verify_job *job)
{
    for (size_t i = 0; i < job->ntasks; i++) {
        if (job->tasks[i].answer && job->tasks[i].answer->verdict != PEAL_PROVED)
            return false;
    }
    return true;
}

/* The task that judges this piece for this number of ranks; NULL: there is none yet. */
static struct peal_verify_task *find(struct peal_verify_job *judge, uint32_t nranks,
                                     const char *text)
{
    for (size_t i = 0; i < judge->ntasks; i++) {
        if (judge->tasks[i].nranks == nranks && strcmp(judge->tasks[i].first, text) == 0)
            return &judge->tasks[i];
    }
    return NULL;
}

static void add_tasks(const struct peal_verify_job *job, struct peal_verify_job *judge)
{
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_verify_task *t = &job->tasks[i];
        for (uint32_t k = 0; t->answer && k < t->answer->nadvice; k++) {
            const struct peal_verify_advice *advice = &t->answer->advice[k];
            if (!has_sequences(job, t->nranks) || find(judge, t->nranks, advice->text))
                continue;
            struct peal_verify_task *task = &judge->tasks[judge->ntasks++];
            *task = (struct peal_verify_task){.nranks = t->nranks,
                                              .sequences = true,
                                              .shares = 1,
                                              .first = advice->text,
                                              .cut = &advice->cut,
                                              .reuse = least_reuse(job, t->nranks)};
            peal_arena_init(&task->arena, 0);
            peal_diags_init(&task->diags);
        }
    }
}

static void keep_what_holds(struct peal_verify_job *job, struct peal_verify_job *judge)
{
    for (size_t i = 0; i < job->ntasks; i++) {
        struct peal_verify_task *t = &job->tasks[i];
        bool keep[64];
        if (!t->answer || t->answer->nadvice > 64)
            continue;
        bool sequences = has_sequences(job, t->nranks);
        for (uint32_t k = 0; k < t->answer->nadvice; k++) {
            const struct peal_verify_task *by =
                sequences ? find(judge, t->nranks, t->answer->advice[k].text) : NULL;
            keep[k] = !sequences || (by && by->status == PEAL_OK && !by->answer);
        }
        if (!t->sequences)
            peal_verification_keep_advice(
                t->answer, keep,
                sequences ? "all counts, roots and sequences that are proved for this number of "
                            "ranks"
                          : NULL);
    }
}

void peal_verify_judge_advice(struct peal_cli *cli, struct peal_verify_job *job)
{
    struct peal_verify_job judge = *job;
    size_t most = 0;
    for (size_t i = 0; i < job->ntasks; i++)
        most += job->tasks[i].answer ? job->tasks[i].answer->nadvice : 0;
    if (!most || !all_proved(job))
        return;
    judge.tasks = peal_arena_alloc(cli->arena, most * sizeof *judge.tasks);
    judge.ntasks = 0;
    judge.verify.advice = false;
    judge.verify.no_story = true;
    judge.done = NULL;
    if (!judge.tasks)
        return;
    add_tasks(job, &judge);
    /* `first` names the piece until its task says what was launched when it failed. */
    const char **names = peal_arena_alloc(cli->arena, (judge.ntasks + 1) * sizeof *names);
    for (size_t i = 0; names && i < judge.ntasks; i++)
        names[i] = judge.tasks[i].first;
    if (judge.ntasks && names)
        peal_verify_run_tasks(&judge);
    for (size_t i = 0; names && i < judge.ntasks; i++)
        judge.tasks[i].first = names[i];
    if (names)
        keep_what_holds(job, &judge);
    peal_verify_free_tasks(&judge);
}
