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

static void put_row(const struct peal_claim_task *t, struct peal_report_table *table)
{
    const struct peal_verification *v = t->answer;
    static const char *const bits[] = {"-", "same", "differ"};
    peal_report_table_cell(table, "%u", t->nranks);
    if (t->sequences)
        peal_report_table_cell(table, "sequences");
    else
        peal_report_table_cell(table, "%" PRId64, t->count);
    if (!v && !t->sequences) {
        peal_report_table_cell(table, "no plan");
        peal_report_table_tone(table, PEAL_TONE_UNSURE);
        for (int i = 0; i < 5; i++)
            peal_report_table_cell(table, "-");
        return;
    }
    if (!v) {
        bool sampled = t->proved < t->all;
        enum peal_outcome verdict = sampled ? PEAL_SAMPLED : PEAL_PROVED;
        bool planned = t->status == PEAL_OK;
        peal_report_table_cell(table, "%s", planned ? peal_outcome_name(verdict) : "no plan");
        peal_report_table_tone(table, planned ? peal_outcome_tone(verdict) : PEAL_TONE_UNSURE);
        if (sampled)
            peal_report_table_cell(table, "%" PRIu64 " of %" PRIu64 " orders", t->proved, t->all);
        else
            peal_report_table_cell(table, "%" PRIu64 " orders", t->proved);
        for (int i = 0; i < 4; i++)
            peal_report_table_cell(table, "-");
        return;
    }
    peal_report_table_cell(table, "%s",
                           v->verdict == PEAL_REFUTED ? peal_fault_name(v->fault)
                                                      : peal_outcome_name(v->verdict));
    peal_report_table_tone(table, peal_outcome_tone(v->verdict));
    peal_report_table_cell(table, "%s", peal_reuse_name(v->reuse));
    peal_report_table_cell(table, "%s", bits[v->bits]);
    peal_report_table_cell(table, "%u", v->launches);
    peal_report_table_cell(table, "%" PRIu64, v->ops);
    peal_report_table_cell(table, "%.1f%s", v->milliseconds, v->cached ? " cached" : "");
}

static bool has_finished(const struct peal_claim_task *t)
{
    /* acquire: partner is the release of the worker; after Ctrl-C some are still running */
    return atomic_load_explicit(&t->finished, memory_order_acquire);
}

static void merge_shares(const struct peal_claim_task *t, struct peal_claim_task *row)
{
    row->nranks = t->nranks;
    row->count = t->count;
    row->sequences = t->sequences;
    row->proved += t->proved;
    row->all += t->all;
    row->status = row->status == PEAL_OK ? t->status : row->status;
    if (!row->answer || (t->answer && t->answer->verdict == PEAL_REFUTED))
        row->answer = t->answer ? t->answer : row->answer;
}

void peal_verify_report_table(const struct peal_claim *claim, struct peal_text *out)
{
    struct peal_report_table *table = peal_report_table_new();
    static const char *const titles[] = {"ranks", "count",    "verdict", "reuse",
                                         "bits",  "launches", "ops",     "ms"};
    for (int i = 0; i < 8; i++)
        peal_report_table_column(table, titles[i],
                                 i < 2 || (i > 4 && i < 7) ? PEAL_ALIGN_RIGHT : PEAL_ALIGN_LEFT);
    for (size_t i = 0; i < claim->ntasks; i++) {
        if (!has_finished(&claim->tasks[i]) || claim->tasks[i].share)
            continue;
        /* The shares of one number of ranks are one row: the first that failed, or all. */
        struct peal_claim_task row = {0};
        for (size_t k = i; k < claim->ntasks; k++) {
            if (k > i && !claim->tasks[k].share)
                break;
            if (has_finished(&claim->tasks[k]))
                merge_shares(&claim->tasks[k], &row);
        }
        put_row(&row, table);
    }
    peal_report_table_text(table, out);
    peal_report_table_free(table);
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
        return t->status == PEAL_OK ? OUTCOME_PROVED : OUTCOME_NO_PLAN;
    if (t->answer->verdict == PEAL_PROVED)
        return OUTCOME_PROVED;
    if (t->answer->verdict == PEAL_REFUTED)
        return OUTCOME_REFUTED;
    return OUTCOME_UNDECIDED;
}

static enum report_outcome outcome_of(const struct peal_claim *claim, int64_t ranks)
{
    enum report_outcome worst = OUTCOME_PROVED;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        if (t->nranks != (uint32_t)ranks)
            continue;
        enum report_outcome one = outcome_of_task(t);
        if (one > worst)
            worst = one;
    }
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
            peal_placement_show((uint32_t)claim->ranks[0], claim->request.bind.nodes, out);
        }
        first = false;
    }
    return n > 0;
}

static void put_coverage(const struct peal_claim *claim, const struct peal_claim_sum *t,
                         struct peal_text *out)
{
    peal_text_printf(
        out,
        "  covers: every schedule of the proved plans: bounds, deadlock, races, signals, "
        "uninitialised reads%s.\n  does not cover: other numbers of ranks, counts that no plan "
        "here stands for, ",
        t->has_contract ? ", result" : "; no contract, so the result is not checked");
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

/* One paragraph to paste into a review. */
static void put_summary(struct peal_arena *arena, const struct peal_claim *claim,
                        const struct peal_claim_sum *t, struct peal_text *out)
{
    size_t start = out->len;
    peal_text_printf(out, "\n%s: ", claim->request.kernel->name);
    bool proved = put_outcomes(arena, claim, out) || t->sampled;
    if (proved) {
        peal_text_puts(out, ", counts ");
        put_list(claim->counts, claim->ncounts, out);
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
    peal_text_printf(out, ". %" PRIu64 " ops in %.0f ms.\n", t->ops, t->ms);
    if (proved)
        put_coverage(claim, t, out);
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

static void put_failures(struct peal_arena *arena, const struct peal_claim *claim,
                         struct peal_text *out)
{
    bool told = false;
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        if (!t->answer && t->status != PEAL_OK && t->diags.list.len && !told) {
            size_t start = out->len;
            peal_text_printf(out, "no plan for %u rank%s: ", t->nranks,
                             peal_text_plural(t->nranks));
            put_why(t, out);
            peal_text_puts(out, "\n");
            peal_text_fold(out, start, 2, 80);
            told = claim->ntasks > 8;
        }
    }
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
        peal_text_release(&why);
    } else {
        peal_json_put_string(json, "no_plan", peal_status_text(task->status));
    }
    peal_json_object_end(json);
}

void peal_verify_report_json(const struct peal_claim *claim, const struct peal_claim_sum *t,
                             const struct peal_forall *all, struct peal_text *out)
{
    struct peal_json json;
    enum peal_outcome verdict = peal_claim_verdict(t);
    if (all && !all->proved && verdict == PEAL_PROVED)
        verdict = PEAL_UNDECIDED;
    peal_json_init(&json, out, PEAL_JSON_ONE_LINE);
    peal_json_object(&json);
    peal_json_put_string(&json, "kernel", claim->request.kernel->name);
    peal_json_put_string(&json, "verdict", peal_outcome_name(verdict));
    peal_json_put_uint(&json, "proved", t->proved);
    peal_json_put_uint(&json, "refuted", t->refuted);
    peal_json_put_uint(&json, "undecided", t->undecided);
    peal_json_put_uint(&json, "no_plan", t->no_plan);
    peal_json_put_uint(&json, "sequences", t->sequences);
    peal_json_put_uint(&json, "all_sequences", t->all_sequences);
    peal_json_put_bool(&json, "two_only", t->two_only);
    peal_json_put_array(&json, "answers");
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *task = &claim->tasks[i];
        if (task->answer || task->status != PEAL_OK)
            put_task(task, &json);
    }
    peal_json_array_end(&json);
    if (all)
        peal_verify_all_json(claim, t, all, &json);
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}
