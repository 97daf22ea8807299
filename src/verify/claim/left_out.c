/* SPDX-License-Identifier: Apache-2.0 */
/* What could be left out of a proved kernel: each piece that one plan does not need is taken out of
 * every plan and every sequence that was proved for the same number of ranks. */
#include "verify/claim/claim.h"

#include <stdlib.h>
#include <string.h>

static bool has_sequences(const struct peal_claim *claim, uint32_t nranks)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        if (claim->tasks[i].nranks == nranks && claim->tasks[i].sequences)
            return true;
    }
    return false;
}

static enum peal_reuse least_reuse(const struct peal_claim *claim, uint32_t nranks)
{
    enum peal_reuse least = PEAL_REUSE_CLOSED;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        if (t->nranks == nranks && !t->sequences && t->answer && t->answer->reuse < least)
            least = t->answer->reuse;
    }
    return least;
}

static bool all_proved(const struct peal_claim *claim)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        if (claim->tasks[i].answer && claim->tasks[i].answer->verdict != PEAL_PROVED)
            return false;
    }
    return true;
}

/* The task that judges this piece for this number of ranks; NULL: there is none yet. */
static struct peal_claim_task *find(struct peal_claim *judge, uint32_t nranks, const char *text)
{
    for (size_t i = 0; i < judge->ntasks; i++) {
        if (judge->tasks[i].nranks == nranks && strcmp(judge->tasks[i].piece, text) == 0)
            return &judge->tasks[i];
    }
    return NULL;
}

static void add_tasks(const struct peal_claim *claim, struct peal_claim *judge)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        for (uint32_t k = 0; t->answer && k < t->answer->nadvice; k++) {
            const struct peal_verify_advice *advice = &t->answer->advice[k];
            if (!has_sequences(claim, t->nranks) || find(judge, t->nranks, advice->text))
                continue;
            struct peal_claim_task *task = &judge->tasks[judge->ntasks++];
            *task = (struct peal_claim_task){.nranks = t->nranks,
                                             .sequences = true,
                                             .shares = 1,
                                             .piece = advice->text,
                                             .cut = &advice->cut,
                                             .reuse = least_reuse(claim, t->nranks)};
            peal_arena_init(&task->arena, 0);
            peal_diags_init(&task->diags);
        }
    }
}

static void keep_what_holds(struct peal_claim *claim, struct peal_claim *judge)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        struct peal_claim_task *t = &claim->tasks[i];
        bool keep[64];
        if (!t->answer || t->answer->nadvice > 64)
            continue;
        bool sequences = has_sequences(claim, t->nranks);
        for (uint32_t k = 0; k < t->answer->nadvice; k++) {
            const struct peal_claim_task *by =
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

void peal_claim_judge_advice(struct peal_claim *claim)
{
    struct peal_claim judge = *claim;
    size_t pieces = 0;
    for (size_t i = 0; i < claim->ntasks; i++)
        pieces += claim->tasks[i].answer ? claim->tasks[i].answer->nadvice : 0;
    if (!pieces || !all_proved(claim))
        return;
    judge.tasks = calloc(pieces, sizeof *judge.tasks);
    judge.ntasks = 0;
    judge.verify.advice = false;
    judge.verify.no_story = true;
    judge.done = NULL;
    if (!judge.tasks)
        return;
    add_tasks(claim, &judge);
    if (judge.ntasks)
        peal_claim_run(&judge);
    keep_what_holds(claim, &judge);
    peal_claim_release(&judge);
}
