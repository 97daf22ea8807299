/* SPDX-License-Identifier: Apache-2.0 */
/* What peal verify prints: a table, then the first failure or what could be left out, then one
 * paragraph about what is proved. */
#include "cli/verify/verify_report.h"

#include "lang/lang.h"
#include "report/report.h"

#include <inttypes.h>
#include <string.h>

/* "2..5, 8" */
static void put_list(const int64_t *at, size_t n, struct peal_text *out)
{
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        while (end < n && at[end] == at[end - 1] + 1)
            end++;
        peal_text_printf(out, "%s%" PRId64, i ? ", " : "", at[i]);
        if (end - i > 1)
            peal_text_printf(out, "..%" PRId64, at[end - 1]);
    }
}

/* The result for one number of ranks: the worst of its tasks. */
enum report_outcome {
    OUTCOME_PROVED,
    OUTCOME_SAMPLED,
    OUTCOME_NO_PLAN,
    OUTCOME_UNDECIDED,
    OUTCOME_REFUTED,
    OUTCOMES
};

static enum report_outcome outcome_of_task(const struct peal_claim_task *t)
{
    if (!t->answer)
        return peal_claim_is_unknown(t) ? OUTCOME_UNDECIDED : OUTCOME_PROVED;
    if (t->answer->verdict == PEAL_PROVED)
        return OUTCOME_PROVED;
    if (t->answer->verdict == PEAL_REFUTED)
        return OUTCOME_REFUTED;
    return OUTCOME_UNDECIDED;
}

static bool is_refused(const struct peal_claim_task *t)
{
    return !t->answer && t->status != PEAL_OK && !t->sequences;
}

/* The counts that the kernel refuses are left out, as long as it takes any that is not 0. */
static enum report_outcome outcome_of(const struct peal_claim *claim, int64_t ranks)
{
    enum report_outcome worst = OUTCOME_PROVED;
    bool any = false, only_zero = peal_claim_counts(claim, (uint32_t)ranks)->len > 1;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        if (t->nranks != (uint32_t)ranks)
            continue;
        any = any || (t->answer && (t->count || !only_zero));
        enum report_outcome one = outcome_of_task(t);
        if (one > worst)
            worst = one;
    }
    if (worst == OUTCOME_PROVED && !any)
        return OUTCOME_NO_PLAN;
    if (worst == OUTCOME_PROVED && peal_claim_is_sampled(claim, (uint32_t)ranks))
        return OUTCOME_SAMPLED;
    return worst;
}

void peal_verify_report_proved(const struct peal_claim *claim, struct peal_text *out)
{
    PEAL_VEC(int64_t) some = {0};
    for (size_t i = 0; i < claim->nranks; i++) {
        if (outcome_of(claim, claim->ranks[i]) == OUTCOME_PROVED)
            (void)peal_vec_push(&some, claim->ranks[i]);
    }
    if (some.len) {
        peal_text_puts(out, "; proved at ");
        put_list(some.at, some.len, out);
    }
    peal_vec_release(&some);
}

/* "proved at 2, 4 ranks; refuted at 3 ranks"; true if some are proved, which come last. */
static bool put_outcomes(struct peal_arena *arena, const struct peal_claim *claim,
                         struct peal_text *out)
{
    static const struct {
        const char *name;
        enum peal_tone tone;
    } outcomes[OUTCOMES] = {
        [OUTCOME_PROVED] = {"proved", PEAL_TONE_GOOD},
        [OUTCOME_SAMPLED] = {"sampled, not proved", PEAL_TONE_UNSURE},
        [OUTCOME_NO_PLAN] = {"no plan", PEAL_TONE_UNSURE},
        [OUTCOME_UNDECIDED] = {"not decided", PEAL_TONE_UNSURE},
        [OUTCOME_REFUTED] = {"refuted", PEAL_TONE_BAD},
    };
    int64_t *some = peal_arena_alloc(arena, (claim->nranks + 1) * sizeof *some);
    bool first = true;
    size_t n = 0;
    if (!some)
        return false;
    for (int o = OUTCOMES - 1; o >= 0; o--) {
        n = 0;
        for (size_t i = 0; i < claim->nranks; i++) {
            if (outcome_of(claim, claim->ranks[i]) == (enum report_outcome)o)
                some[n++] = claim->ranks[i];
        }
        if (!n)
            continue;
        peal_text_puts(out, first ? "" : "; ");
        peal_text_toned(out, outcomes[o].tone, outcomes[o].name);
        peal_text_puts(out, " at ");
        put_list(some, n, out);
        peal_text_puts(out, n == 1 && some[0] == 1 ? " rank" : " ranks");
        if (claim->request.bind.nodes) {
            peal_text_puts(out, " on nodes ");
            peal_placement_show(&(struct peal_places){(uint32_t)claim->ranks[0],
                                                      claim->request.bind.nodes,
                                                      claim->request.bind.cubes},
                                out);
        }
        first = false;
    }
    return n > 0;
}

/* " of sum; of max and avg at 2..5, 8 ranks": a kernel that takes its operation from the caller. */
static void put_operations(const struct peal_claim *claim, struct peal_text *out)
{
    if (!peal_claim_operations(claim))
        return;
    peal_text_printf(out, " of %s", peal_reduce_name(claim->request.bind.reduce));
    for (size_t i = 0; i < claim->ntried; i++)
        peal_text_printf(out, "%s%s", i ? " and " : "; of ", peal_reduce_name(claim->tried[i]));
    if (!claim->ntried)
        return;
    peal_text_puts(out, " at ");
    put_list(claim->few, claim->nfew, out);
    peal_text_puts(out, " ranks");
}

static void put_coverage(const struct peal_claim *claim, const struct peal_claim_sum *t,
                         struct peal_text *out)
{
    peal_text_printf(
        out,
        "  covers: every schedule of the proved plans: bounds, deadlock, races, signals, "
        "uninitialised reads%s",
        t->has_contract ? ", result" : "; no contract, so the result is not checked");
    if (t->has_contract)
        put_operations(claim, out);
    peal_text_puts(out, ".\n");
    if (t->required)
        peal_text_printf(out, "  requires of the caller: %s.\n", t->required);
    peal_text_puts(out, "  does not cover: other numbers of ranks, counts that no plan here stands "
                        "for, ");
    if (t->unconstrained)
        peal_text_printf(out, "output that no ensures is about (%s), ", t->unconstrained);
    if (claim->request.bind.no_fuse)
        peal_text_puts(out,
                       "plans with fusion, which are the ones that run (advice is about lines, "
                       "so it judges plans without), ");
    if (t->two_only && !t->refuted)
        peal_text_printf(out,
                         "three or more different roots or counts in turn (cells may be added to "
                         "in a later launch before an earlier one is done; %" PRIu64
                         " sequences of three were examined), ",
                         t->threes);
    peal_text_puts(out, "the hardware, and the caller's own use of its buffers.\n");
}

/* "at 8 ranks only 26": where less is claimed than by default. */
static void put_fewer(const struct peal_claim *claim, struct peal_text *out)
{
    for (size_t i = 0; i < claim->nranks; i++) {
        if (claim->chosen[i].fewer && !claim->quick)
            peal_text_printf(out, " (at %" PRId64 " ranks only 3P + 2: plans are large)",
                             claim->ranks[i]);
    }
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        if (!t->nonly || t->share)
            continue;
        peal_text_printf(out, " (at %u ranks in sequences only ", t->nranks);
        put_list(t->only, t->nonly, out);
        peal_text_puts(out, ": those of all counts are too much work for a default)");
    }
}

/* Are there numbers of ranks at which the kernel refuses some counts, and not all? */
static bool takes_some(const struct peal_claim *claim)
{
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        if (is_refused(t) && outcome_of(claim, t->nranks) == OUTCOME_PROVED)
            return true;
    }
    return false;
}

static void put_counts(const struct peal_claim *claim, struct peal_text *out)
{
    size_t len = 0;
    for (size_t i = 0; i < claim->nranks; i++) {
        if (claim->chosen[i].len > len)
            len = claim->chosen[i].len;
    }
    if (!claim->default_counts) {
        peal_text_puts(out, ", counts ");
        put_list(claim->counts, claim->ncounts, out);
    } else if (len > 1) {
        peal_text_puts(out, ", counts 0, 1, P - 1, P, P + 1, 3P + 2, 256P");
    } else if (claim->chosen[0].at[0] > 1) {
        peal_text_puts(out, ", count 3P + 2");
    }
    if (takes_some(claim))
        peal_text_puts(out, " (of these, what the kernel takes)");
    put_fewer(claim, out);
}

/* One paragraph to paste into a review. */
static void put_summary(struct peal_arena *arena, const struct peal_claim *claim,
                        const struct peal_claim_sum *t, struct peal_text *out)
{
    size_t start = out->len;
    peal_text_printf(out, "\n%s: ", claim->request.kernel->name);
    bool proved = put_outcomes(arena, claim, out) || t->sampled;
    if (proved) {
        put_counts(claim, out);
        peal_text_printf(out, ", %s, ", peal_dtype_name(claim->request.bind.dtype));
        if (t->launches > 1)
            peal_text_printf(out, "up to %u launches back to back", t->launches);
        else
            peal_text_puts(out, "one launch");
        bool stopped = t->refuted || t->undecided; /* at the first that is not proved */
        if (t->sequences && t->sequences == t->all_sequences)
            peal_text_printf(out,
                             ", and all %" PRIu64 " sequences of two different roots or counts",
                             t->sequences);
        else if (t->all_sequences && !stopped)
            peal_text_printf(out,
                             ", and %" PRIu64 " of %" PRIu64
                             " sequences of two different roots or counts (a sample: no proof for "
                             "the others)",
                             t->sequences, t->all_sequences);
        if (claim->verify.pairwise)
            peal_text_puts(out, "; order: pairwise between nodes");
        peal_text_printf(out, "; reuse: %s", peal_reuse_name(t->reuse));
        if (t->reuse == PEAL_REUSE_REPEATABLE && t->closed_undecided)
            peal_text_puts(out, " (whether it is closed was not decided)");
        else if (t->more_launches)
            peal_text_puts(out, " (no proof for more launches than these)");
        if (t->bits_known)
            peal_text_printf(out, "; bits: %sthe same on all ranks", t->bits_same ? "" : "not ");
        if (t->bits_known && t->bits_why)
            peal_text_printf(out, " (%s)", t->bits_why);
        if (t->least_depth)
            peal_text_printf(out, "; channels: depth %u suffices, proved with %u", t->least_depth,
                             t->depth);
    }
    if (claim->ntried && t->refuted)
        peal_text_printf(out, " with %s (proved with %s)",
                         peal_reduce_name(claim->request.bind.reduce),
                         peal_reduce_name(claim->tried[0]));
    if (peal_claim_is_unmet(t))
        peal_text_puts(out, "; none of the values tried satisfies what it requires of the caller");
    peal_text_printf(out, ". %" PRIu64 " ops in %.0f ms.\n", t->ops, t->ms);
    if (proved)
        put_coverage(claim, t, out);
    peal_text_fold(out, start, 2, 80);
}

void peal_verify_report_line(struct peal_arena *arena, const struct peal_claim *claim,
                             const struct peal_claim_sum *t, const struct peal_forall *all,
                             struct peal_text *out)
{
    size_t start = out->len;
    peal_text_printf(out, "%s: ", claim->request.kernel->name);
    if (all && all->proved) {
        peal_text_toned(out, PEAL_TONE_GOOD, "proved for every number of ranks");
    } else {
        if (all)
            peal_text_puts(out, "not for every number of ranks; ");
        put_outcomes(arena, claim, out);
    }
    if (t->proved && !t->refuted && !t->has_contract)
        peal_text_puts(out, "; no contract, so the result is not checked");
    if (peal_claim_is_unmet(t))
        peal_text_puts(out, "; none of the values tried satisfies what it requires of the caller");
    if (t->proved && !t->refuted && t->unconstrained)
        peal_text_puts(out, "; some output is unconstrained");
    if (t->proved && t->required)
        peal_text_printf(out, "; requires %s", t->required);
    peal_text_puts(out, "\n");
    peal_text_fold(out, start, 2, 80);
}

/* Does the answer for a plan alone contain it? */
static bool says(const struct peal_claim_task *task, const char *text)
{
    const struct peal_verification *v = task->answer;
    if (!v || task->sequences)
        return false;
    for (uint32_t k = 0; k < v->nadvice; k++) {
        if (strcmp(v->advice[k].text, text) == 0)
            return true;
    }
    return v->no_advice && strcmp(v->no_advice, text) == 0;
}

/* One line for each text, at its first place, with the numbers of ranks that it applies to. */
static void put_advice_line(const struct peal_claim *claim, size_t task, const char *text,
                            const char *heading, int64_t *ranks, struct peal_text *out)
{
    size_t n = 0;
    for (size_t i = 0; i < claim->ntasks; i++) {
        if (!says(&claim->tasks[i], text))
            continue;
        if (i < task)
            return;
        if (n == 0 || ranks[n - 1] != claim->tasks[i].nranks)
            ranks[n++] = claim->tasks[i].nranks;
    }
    if (!n)
        return;
    put_list(ranks, n, out);
    peal_text_printf(out, " ranks: %s%s\n", heading, text);
}

/* What could be left out, and at which numbers of ranks. */
static void put_redundant(struct peal_arena *arena, const struct peal_claim *claim,
                          struct peal_text *out)
{
    int64_t *ranks = peal_arena_alloc(arena, (claim->ntasks + 1) * sizeof *ranks);
    size_t start = out->len;
    bool any = false;
    peal_text_puts(out, "\n");
    if (!ranks)
        return;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_verification *v = claim->tasks[i].answer;
        if (!v)
            continue;
        any = any || v->nadvice;
        for (uint32_t k = 0; k < v->nadvice; k++)
            put_advice_line(claim, i, v->advice[k].text, "could be left out: ", ranks, out);
    }
    if (!any) {
        for (size_t i = 0; i < claim->ntasks; i++) {
            const struct peal_verification *v = claim->tasks[i].answer;
            if (v && v->no_advice)
                put_advice_line(claim, i, v->no_advice, "", ranks, out);
        }
    }
    if (any)
        peal_text_puts(out, "(each by itself: all that is proved here for that number of ranks is "
                            "proved without it, too)\n");
    peal_text_fold(out, start, 2, 80);
}

/* "halo.peal:7:16: no neighbour 'W'": why there is no plan. */
static void put_why(const struct peal_claim_task *t, struct peal_text *out)
{
    const struct peal_diag *d = &t->diags.list.at[0];
    if (d->pos.source && d->pos.line)
        peal_text_printf(out, "%s:%u:%u: ", d->pos.source->name, d->pos.line, d->pos.col);
    peal_text_puts(out, d->message);
}

static bool same_why(const struct peal_claim_task *a, const struct peal_claim_task *b)
{
    struct peal_text one = {0}, two = {0};
    if (!is_refused(a) || !is_refused(b) || !a->diags.list.len || !b->diags.list.len)
        return false;
    put_why(a, &one);
    put_why(b, &two);
    bool same = strcmp(peal_text_get(&one), peal_text_get(&two)) == 0;
    peal_text_release(&one);
    peal_text_release(&two);
    return same;
}

/* "3 ranks, counts 1, 2": where there is no plan for the same reason as for the task. */
static void put_refused_counts(struct peal_arena *arena, const struct peal_claim *claim,
                               const struct peal_claim_task *task, struct peal_text *out)
{
    int64_t *counts = peal_arena_alloc(arena, (claim->ntasks + 1) * sizeof *counts);
    bool any = false;
    for (size_t i = 0; counts && i < claim->nranks; i++) {
        uint32_t nranks = (uint32_t)claim->ranks[i];
        size_t n = 0;
        for (size_t k = 0; k < claim->ntasks; k++) {
            const struct peal_claim_task *t = &claim->tasks[k];
            if (t->nranks == nranks && same_why(t, task))
                counts[n++] = t->count;
        }
        if (!n)
            continue;
        peal_text_printf(out, "%s%u rank%s", any ? "; " : "", nranks, peal_text_plural(nranks));
        any = true;
        if (n == peal_claim_counts(claim, nranks)->len)
            continue;
        peal_text_printf(out, ", count%s ", n > 1 ? "s" : "");
        put_list(counts, n, out);
    }
}

/* One line for each reason why there is no plan, with the numbers of ranks and the counts. */
static void put_refusals(struct peal_arena *arena, const struct peal_claim *claim,
                         struct peal_text *out)
{
    enum { MAX_LINES = 8 };
    size_t lines = 0, more = 0;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        bool told = !is_refused(t) || !t->diags.list.len;
        for (size_t k = 0; k < i; k++)
            told = told || same_why(&claim->tasks[k], t);
        more += !told && lines == MAX_LINES;
        if (told || lines == MAX_LINES)
            continue;
        lines++;
        size_t start = out->len;
        peal_text_puts(out, "no plan for ");
        put_refused_counts(arena, claim, t, out);
        peal_text_puts(out, ": ");
        put_why(t, out);
        peal_text_puts(out, "\n");
        peal_text_fold(out, start, 2, 80);
    }
    if (more)
        peal_text_printf(out, "no plan for %zu other reasons\n", more);
}

static bool has_only_zero(const struct peal_claim *claim)
{
    struct peal_claim_sum sum = peal_claim_add_up(claim);
    return sum.proved && sum.proved == sum.proved_zero && !sum.refuted && !sum.undecided;
}

static void put_failures(struct peal_arena *arena, const struct peal_claim *claim,
                         struct peal_text *out)
{
    put_refusals(arena, claim, out);
    if (has_only_zero(claim))
        peal_text_puts(out, "only for 0 elements is there a plan: --count names others\n");
    const struct peal_claim_task *t = peal_claim_failure(claim);
    if (t) {
        peal_text_puts(out, "\n");
        size_t start = out->len;
        if (t->launched)
            peal_text_printf(out, "launched with %s:\n", t->launched);
        peal_text_fold(out, start, 2, 80);
        peal_verification_explain(t->answer, out);
        return;
    }
    if (claim->verify.advice)
        put_redundant(arena, claim, out);
}

void peal_verify_report_text(struct peal_arena *arena, const struct peal_claim *claim,
                             const struct peal_claim_sum *t, struct peal_text *out)
{
    peal_verify_report_table(claim, out);
    put_failures(arena, claim, out);
    put_summary(arena, claim, t, out);
}

static void put_task(const struct peal_claim_task *task, struct peal_json *json)
{
    peal_json_break(json, 0);
    peal_json_object(json);
    peal_json_put_uint(json, "ranks", task->nranks);
    peal_json_key(json, "count");
    if (task->sequences)
        peal_json_null(json);
    else
        peal_json_int(json, task->count);
    peal_json_put_string(json, "sequence", task->launched);
    if (task->answer) {
        peal_json_key(json, "answer");
        peal_verification_put(task->answer, json);
    } else if (task->diags.list.len) {
        struct peal_text why = {0};
        put_why(task, &why);
        peal_json_put_string(json, "no_plan", peal_text_get(&why));
        peal_json_put_bool(json, "refused", !peal_claim_is_unknown(task));
        peal_text_release(&why);
    } else {
        peal_json_put_string(json, "no_plan", peal_status_text(task->status));
    }
    peal_json_object_end(json);
}

void peal_verify_report_json(const struct peal_claim *claim, const struct peal_claim_sum *t,
                             const struct peal_forall *all, struct peal_json *json)
{
    enum peal_outcome verdict = peal_claim_verdict(t);
    if (all && !all->proved && verdict == PEAL_PROVED)
        verdict = PEAL_UNDECIDED;
    peal_json_object(json);
    peal_json_put_string(json, "kernel", claim->request.kernel->name);
    peal_json_put_string(json, "verdict", peal_outcome_name(verdict));
    peal_json_put_uint(json, "proved", t->proved);
    peal_json_put_uint(json, "refuted", t->refuted);
    peal_json_put_uint(json, "undecided", t->undecided);
    peal_json_put_uint(json, "no_plan", t->no_plan);
    peal_json_put_uint(json, "sequences", t->sequences);
    peal_json_put_uint(json, "all_sequences", t->all_sequences);
    peal_json_put_bool(json, "two_only", t->two_only);
    uint32_t operations = peal_claim_operations(claim);
    peal_json_put_array(json, "operations");
    for (uint32_t i = 0; i < PEAL_REDUCTIONS; i++) {
        if (operations >> i & 1)
            peal_json_string(json, peal_reduce_name((enum peal_reduction)i));
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "answers");
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *task = &claim->tasks[i];
        if (task->answer || task->status != PEAL_OK)
            put_task(task, json);
    }
    peal_json_array_end(json);
    if (all)
        peal_verify_all_json(claim, t, all, json);
    peal_json_object_end(json);
}
