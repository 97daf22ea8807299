/* SPDX-License-Identifier: Apache-2.0 */
/* What could be left out of a proved kernel. Each piece that one plan does not need is removed from
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
        if (!t->answer)
            continue;
        for (uint32_t k = 0; k < t->answer->nadvice; k++) {
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
            const struct peal_claim_task *by = NULL;
            if (sequences)
                by = find(judge, t->nranks, t->answer->advice[k].text);
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

/* --- what would fix it ----------------------------------------------------------------------- */

static bool fixes(const struct peal_verification *v, const char *text)
{
    for (uint32_t k = 0; k < v->nadvice; k++) {
        if (v->advice[k].fixes && strcmp(v->advice[k].text, text) == 0)
            return true;
    }
    return false;
}

static bool is_refuted(const struct peal_claim_task *t)
{
    return t->answer && !t->sequences && t->answer->verdict == PEAL_REFUTED;
}

/* "2, 4 ranks": the plans that the change fixes, or with `not` those that it does not fix. Returns
 * how many. */
static size_t list_plans(const struct peal_claim *claim, const char *text, bool not,
                         struct peal_text *out)
{
    size_t n = 0;
    uint32_t last = 0;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        if (!is_refuted(t) || fixes(t->answer, text) == not )
            continue;
        if (n == 0 || t->nranks != last)
            peal_text_printf(out, "%s%u", n ? ", " : "", t->nranks);
        if (peal_claim_counts(claim, t->nranks)->len > 1)
            peal_text_printf(out, " (count %lld)", (long long)t->count);
        last = t->nranks;
        n++;
    }
    peal_text_puts(out, " ranks");
    return n;
}

/* A change that fixes the smallest plan may not fix the next. Each suggestion says which plans it
 * was tried on, and those that fix every refuted plan come first. */
static void judge_mends(const struct peal_claim *claim, struct peal_claim_task *task)
{
    struct peal_verify_advice *advice = (struct peal_verify_advice *)task->answer->advice;
    uint32_t first = 0;
    for (uint32_t k = 0; k < task->answer->nadvice; k++) {
        struct peal_text yes = {0}, no = {0};
        (void)list_plans(claim, advice[k].text, false, &yes);
        size_t others = list_plans(claim, advice[k].text, true, &no);
        if (others)
            peal_text_printf(&yes, ", not known for %s", peal_text_get(&no));
        advice[k].holds_for = peal_arena_copy(&task->arena, peal_text_get(&yes), yes.len);
        peal_text_release(&yes);
        peal_text_release(&no);
        if (others)
            continue;
        struct peal_verify_advice good = advice[k];
        memmove(&advice[first + 1], &advice[first], (k - first) * sizeof *advice);
        advice[first++] = good;
    }
}

/* For a sequence of different roots or counts, changes were tried on that sequence alone. */
static void judge_sequence(struct peal_claim_task *task)
{
    struct peal_verify_advice *advice = (struct peal_verify_advice *)task->answer->advice;
    for (uint32_t k = 0; k < task->answer->nadvice; k++)
        advice[k].holds_for = "the roots and counts of this sequence; others were not tried";
}

void peal_claim_judge_advice(struct peal_claim *claim)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        struct peal_claim_task *t = &claim->tasks[i];
        if (is_refuted(t))
            judge_mends(claim, t);
        else if (t->sequences && t->answer && t->answer->verdict == PEAL_REFUTED)
            judge_sequence(t);
    }

    struct peal_claim judge = *claim;
    size_t pieces = 0;
    for (size_t i = 0; i < claim->ntasks; i++) {
        if (claim->tasks[i].answer)
            pieces += claim->tasks[i].answer->nadvice;
    }
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
    judge.chosen = NULL; /* the claim's own */
    peal_claim_release(&judge);
}
