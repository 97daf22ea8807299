/* SPDX-License-Identifier: Apache-2.0 */
/* The table of peal verify: a row for each plan, and for the sequences of each number of ranks.
 * Default counts with the same answer are one row. */
#include "cli/verify/verify_report.h"

#include "report/report.h"

#include <inttypes.h>

/* A row of the table: a task, the shares of one number of ranks, or default counts whose answers
 * differ in numbers only. */
struct verify_row {
    struct peal_claim_task task;
    size_t counts; /* how many */
    uint64_t ops;
    double ms;
    uint32_t launches;
    bool cached;
};

static void put_row(const struct verify_row *row, struct peal_report_table *table)
{
    const struct peal_claim_task *t = &row->task;
    const struct peal_verification *v = t->answer;
    static const char *const bits[] = {"-", "same", "differ"};
    peal_report_table_cell(table, "%u", t->nranks);
    if (t->sequences)
        peal_report_table_cell(table, "sequences");
    else if (row->counts > 1)
        peal_report_table_cell(table, "%zu counts", row->counts);
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
    peal_report_table_cell(table, "%u", row->launches);
    peal_report_table_cell(table, "%" PRIu64, row->ops);
    peal_report_table_cell(table, "%.1f%s", row->ms, row->cached ? " cached" : "");
}

static bool has_finished(const struct peal_claim_task *t)
{
    /* acquire: partner is the release of the worker; after Ctrl-C some are still running */
    return atomic_load_explicit(&t->finished, memory_order_acquire);
}

static void add_numbers(struct verify_row *row, const struct peal_claim_task *t)
{
    const struct peal_verification *v = t->answer;
    row->cached = v && v->cached && (row->cached || !row->counts);
    row->counts++;
    if (!v)
        return;
    row->ops += v->ops;
    row->ms += v->milliseconds;
    if (v->launches > row->launches)
        row->launches = v->launches;
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

/* The shares of one number of ranks are one row: the first that failed, or all. */
static struct verify_row row_of_sequences(const struct peal_claim *claim, size_t i)
{
    struct verify_row row = {0};
    for (size_t k = i; k < claim->ntasks; k++) {
        if (k > i && !claim->tasks[k].share)
            break;
        if (has_finished(&claim->tasks[k]))
            merge_shares(&claim->tasks[k], &row.task);
    }
    add_numbers(&row, &row.task);
    return row;
}

/* Do both rows say the same, apart from numbers? */
static bool look_alike(const struct peal_claim_task *a, const struct peal_claim_task *b)
{
    const struct peal_verification *v = a->answer, *w = b->answer;
    if (a->nranks != b->nranks || a->sequences || b->sequences || !v != !w)
        return false;
    return !v || (v->verdict == w->verdict && v->fault == w->fault && v->reuse == w->reuse &&
                  v->bits == w->bits);
}

/* Has a task before it the same row? */
static bool is_shown(const struct peal_claim *claim, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (has_finished(&claim->tasks[k]) && look_alike(&claim->tasks[k], &claim->tasks[i]))
            return true;
    }
    return false;
}

static struct verify_row row_of_counts(const struct peal_claim *claim, size_t i)
{
    struct verify_row row = {.task = claim->tasks[i]};
    add_numbers(&row, &claim->tasks[i]);
    for (size_t k = i + 1; claim->default_counts && k < claim->ntasks; k++) {
        if (has_finished(&claim->tasks[k]) && look_alike(&claim->tasks[i], &claim->tasks[k]))
            add_numbers(&row, &claim->tasks[k]);
    }
    return row;
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
        const struct peal_claim_task *t = &claim->tasks[i];
        if (!has_finished(t) || t->share || (claim->default_counts && is_shown(claim, i)))
            continue;
        struct verify_row row = t->sequences ? row_of_sequences(claim, i) : row_of_counts(claim, i);
        bool nothing = t->sequences && !row.task.answer && !row.task.all;
        if (!nothing)
            put_row(&row, table);
    }
    peal_report_table_text(table, out);
    peal_report_table_free(table);
}
