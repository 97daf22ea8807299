/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify: prove a kernel over all schedules, or tell how it goes wrong. */
#include "api/load.h"
#include "cli/page_file.h"
#include "cli/page_verify.h"
#include "cli/progress.h"
#include "cli/verify_tasks.h"
#include "report/table.h"
#include "verify/cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct verify_options {
    struct peal_kernel_options kernel;
    int64_t launches, states, jobs;
    uint64_t memory;
    bool json, advice, alone, no_cache;
    const char *html;
};

static const struct peal_option options_table[] = {
    PEAL_KERNEL_ROWS(struct verify_options, kernel),
    {"launches", 'l', PEAL_OPTION_INT, offsetof(struct verify_options, launches), "L",
     "launches back to back (default: as many as make the proof sound)", 1, 64},
    {"advice", 'a', PEAL_OPTION_FLAG, offsetof(struct verify_options, advice), NULL,
     "look for what would mend it, or for what could be left out", 0, 0},
    {"alone", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, alone), NULL,
     "each plan by itself: no sequences of different roots and counts", 0, 0},
    {"states", 0, PEAL_OPTION_INT, offsetof(struct verify_options, states), "N",
     "limit of exploration (default 20 million)", 1, INT64_C(4000000000)},
    {"memory", 0, PEAL_OPTION_SIZE, offsetof(struct verify_options, memory), "B",
     "limit of working memory (default 2G)", 0, 0},
    {"jobs", 'j', PEAL_OPTION_INT, offsetof(struct verify_options, jobs), "J",
     "threads (default: one per core)", 1, 64},
    {"no-cache", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, no_cache), NULL,
     "neither read nor write the folder of verdicts", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, offsetof(struct verify_options, json), NULL, "print JSON", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, offsetof(struct verify_options, html), "FILE",
     "write a page that shows it", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static const struct verify_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS};

/* --- telling --------------------------------------------------------------------------------- */

/* "2..5, 8" */
static void put_list(const int64_t *at, size_t n, struct peal_text *out)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && at[end] == at[end - 1] + 1;)
            end++;
        peal_text_printf(out, "%s%" PRId64, i ? ", " : "", at[i]);
        if (end - i > 1)
            peal_text_printf(out, "..%" PRId64, at[end - 1]);
    }
}

static void put_row(const struct peal_verify_task *t, struct peal_report_table *table)
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
        for (int i = 0; i < 5; i++)
            peal_report_table_cell(table, "-");
        return;
    }
    if (!v) {
        peal_report_table_cell(table, t->status == PEAL_OK ? "proved" : "no plan");
        peal_report_table_cell(table, "%" PRIu64 "%s", t->proved,
                               t->proved < t->all ? " sampled" : " orders");
        for (int i = 0; i < 4; i++)
            peal_report_table_cell(table, "-");
        return;
    }
    peal_report_table_cell(table, "%s",
                           v->verdict == PEAL_REFUTED ? peal_fault_name(v->fault)
                                                      : peal_verdict_name(v->verdict));
    peal_report_table_cell(table, "%s", peal_reuse_name(v->reuse));
    peal_report_table_cell(table, "%s", bits[v->bits]);
    peal_report_table_cell(table, "%u", v->launches);
    peal_report_table_cell(table, "%" PRIu64, v->ops);
    peal_report_table_cell(table, "%.1f%s", v->milliseconds, v->cached ? " cached" : "");
}

static bool has_finished(const struct peal_verify_task *t)
{
    /* acquire: partner is the release of the worker; after Ctrl-C some still run */
    return atomic_load_explicit(&t->finished, memory_order_acquire);
}

static void merge_shares(const struct peal_verify_task *t, struct peal_verify_task *row)
{
    row->nranks = t->nranks;
    row->count = t->count;
    row->sequences = t->sequences;
    row->proved += t->proved;
    row->all += t->all;
    row->status = row->status == PEAL_OK ? t->status : row->status;
    row->answer = row->answer ? row->answer : t->answer;
}

static void put_table(const struct peal_verify_job *job, struct peal_text *out)
{
    struct peal_report_table *table = peal_report_table_new();
    static const char *const titles[] = {"ranks", "count",    "verdict", "reuse",
                                         "bits",  "launches", "ops",     "ms"};
    for (int i = 0; i < 8; i++)
        peal_report_table_column(table, titles[i],
                                 i < 2 || (i > 4 && i < 7) ? PEAL_ALIGN_RIGHT : PEAL_ALIGN_LEFT);
    for (size_t i = 0; i < job->ntasks; i++) {
        if (!has_finished(&job->tasks[i]) || job->tasks[i].share)
            continue;
        /* The shares of one number of ranks are one row: the first that failed, or all. */
        struct peal_verify_task row = {0};
        for (size_t k = i; k == i || (k < job->ntasks && job->tasks[k].share); k++) {
            if (has_finished(&job->tasks[k]))
                merge_shares(&job->tasks[k], &row);
        }
        put_row(&row, table);
    }
    peal_report_table_text(table, out);
    peal_report_table_free(table);
}

/* Counts of answers, over all tasks. */
struct tally {
    uint64_t proved, refuted, undecided, no_plan, sequences, all_sequences, ops;
    double ms;
    enum peal_reuse least;
    const char *bits_why;
    uint32_t least_depth, depth; /* of channels */
    bool bits_same, bits_known, has_contract, closed_undecided, more_launches;
    uint32_t launches;
};

static struct tally count_answers(const struct peal_verify_job *job)
{
    struct tally t = {.least = PEAL_REUSE_CLOSED, .bits_same = true};
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_verify_task *task = &job->tasks[i];
        const struct peal_verification *v = task->answer;
        t.sequences += task->proved;
        t.all_sequences += task->all;
        if (!v) {
            t.no_plan += task->status != PEAL_OK;
            continue;
        }
        t.proved += v->verdict == PEAL_PROVED;
        t.refuted += v->verdict == PEAL_REFUTED;
        t.undecided += v->verdict == PEAL_UNDECIDED;
        t.ops += v->ops;
        t.ms += v->milliseconds;
        t.launches = v->launches > t.launches ? v->launches : t.launches;
        if (v->verdict == PEAL_PROVED && v->nranks > 1) {
            t.least = v->reuse < t.least ? v->reuse : t.least;
            t.closed_undecided = t.closed_undecided || v->closed_undecided;
            t.more_launches =
                t.more_launches || (v->reuse == PEAL_REUSE_SINGLE_SHOT && v->launches > 1);
            t.bits_known = t.bits_known || v->bits != PEAL_BITS_UNKNOWN;
            t.bits_same = t.bits_same && v->bits != PEAL_BITS_DIFFERENT;
            t.bits_why = t.bits_why ? t.bits_why : v->bits_why;
            t.least_depth = v->least_depth > t.least_depth ? v->least_depth : t.least_depth;
            t.depth = v->depth > t.depth ? v->depth : t.depth;
        }
        t.has_contract = v->contract != PEAL_CONTRACT_NONE;
    }
    return t;
}

/* What came out for one number of ranks: the worst of its tasks. */
enum outcome { OUTCOME_PROVED, OUTCOME_NO_PLAN, OUTCOME_UNDECIDED, OUTCOME_REFUTED, OUTCOMES };

static enum outcome outcome_of(const struct peal_verify_job *job, int64_t ranks)
{
    enum outcome worst = OUTCOME_PROVED;
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_verify_task *t = &job->tasks[i];
        if (t->nranks != (uint32_t)ranks)
            continue;
        enum outcome one = !t->answer && t->status == PEAL_OK   ? OUTCOME_PROVED
                           : !t->answer                         ? OUTCOME_NO_PLAN
                           : t->answer->verdict == PEAL_PROVED  ? OUTCOME_PROVED
                           : t->answer->verdict == PEAL_REFUTED ? OUTCOME_REFUTED
                                                                : OUTCOME_UNDECIDED;
        worst = one > worst ? one : worst;
    }
    return worst;
}

/* "proved at 2, 4 ranks; refuted at 3 ranks"; true if some are proved, which come last. */
static bool put_outcomes(struct peal_cli *cli, const struct peal_verify_job *job,
                         const int64_t *ranks, size_t nranks, struct peal_text *out)
{
    static const char *const names[OUTCOMES] = {"proved", "no plan", "not decided", "refuted"};
    int64_t *some = peal_arena_alloc(cli->arena, (nranks + 1) * sizeof *some);
    bool first = true;
    size_t n = 0;
    for (int o = OUTCOMES - 1; o >= 0 && some; o--) {
        n = 0;
        for (size_t i = 0; i < nranks; i++) {
            if (outcome_of(job, ranks[i]) == (enum outcome)o)
                some[n++] = ranks[i];
        }
        if (!n)
            continue;
        peal_text_printf(out, "%s%s at ", first ? "" : "; ", names[o]);
        put_list(some, n, out);
        peal_text_puts(out, n == 1 && some[0] == 1 ? " rank" : " ranks");
        first = false;
    }
    return n > 0;
}

/* One paragraph to paste into a review. */
static void put_summary(struct peal_cli *cli, const struct peal_verify_job *job,
                        const struct tally *t, const int64_t *ranks, size_t nranks,
                        struct peal_text *out)
{
    size_t start = out->len;
    peal_text_printf(out, "\n%s: ", job->kernel->name);
    bool proved = put_outcomes(cli, job, ranks, nranks, out);
    if (proved) {
        peal_text_puts(out, ", counts ");
        put_list(job->counts, job->ncounts, out);
        peal_text_printf(out, ", %s, ", peal_dtype_name(job->options->dtype));
        if (t->launches > 1)
            peal_text_printf(out, "up to %u launches back to back", t->launches);
        else
            peal_text_puts(out, "one launch");
        if (t->sequences && t->sequences == t->all_sequences)
            peal_text_printf(out,
                             ", and all %" PRIu64 " sequences of two different roots or counts",
                             t->sequences);
        else if (t->sequences)
            peal_text_printf(out,
                             ", and %" PRIu64 " of %" PRIu64
                             " sequences of two different roots or counts (a sample: no proof for "
                             "the others)",
                             t->sequences, t->all_sequences);
        peal_text_printf(out, "; reuse: %s%s", peal_reuse_name(t->least),
                         t->least == PEAL_REUSE_REPEATABLE && t->closed_undecided
                             ? " (whether it is closed was not decided)"
                         : t->more_launches ? " (no proof for more launches than these)"
                                            : "");
        if (t->bits_known)
            peal_text_printf(out, "; bits: %sthe same on all ranks%s%s%s",
                             t->bits_same ? "" : "not ", t->bits_why ? " (" : "",
                             t->bits_why ? t->bits_why : "", t->bits_why ? ")" : "");
        if (t->least_depth)
            peal_text_printf(out, "; channels: depth %u suffices, proved with %u", t->least_depth,
                             t->depth);
    }
    peal_text_printf(out, ". %" PRIu64 " ops in %.0f ms.\n", t->ops, t->ms);
    if (proved)
        peal_text_printf(
            out,
            "  covers: every schedule of the proved plans: bounds, deadlock, races, signals, "
            "uninitialised reads%s.\n  does not cover: other numbers of ranks, counts that no plan "
            "here stands for, the hardware, and the caller's own use of its buffers.\n",
            t->has_contract ? ", result" : "; no contract, so the result is not checked");
    peal_text_fold(out, start, 2, 80);
}

/* Does the answer of a plan alone say so? */
static bool says(const struct peal_verify_task *task, const char *text)
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

/* One line for each text, at its first place, with the numbers of ranks where it is said. */
static void put_advice_line(const struct peal_verify_job *job, size_t task, const char *text,
                            const char *what, int64_t *ranks, struct peal_text *out)
{
    size_t n = 0;
    for (size_t i = 0; i < job->ntasks; i++) {
        if (!says(&job->tasks[i], text))
            continue;
        if (i < task)
            return;
        if (n == 0 || ranks[n - 1] != job->tasks[i].nranks)
            ranks[n++] = job->tasks[i].nranks;
    }
    if (!n)
        return;
    put_list(ranks, n, out);
    peal_text_printf(out, " ranks: %s%s\n", what, text);
}

/* What could be left out, and at which numbers of ranks. */
static void put_redundant(struct peal_cli *cli, const struct peal_verify_job *job,
                          struct peal_text *out)
{
    int64_t *ranks = peal_arena_alloc(cli->arena, (job->ntasks + 1) * sizeof *ranks);
    size_t start = out->len;
    bool any = false;
    peal_text_puts(out, "\n");
    for (size_t i = 0; ranks && i < job->ntasks; i++) {
        const struct peal_verification *v = job->tasks[i].answer;
        any = any || (v && v->nadvice);
        for (uint32_t k = 0; v && k < v->nadvice; k++)
            put_advice_line(job, i, v->advice[k].text, "could be left out: ", ranks, out);
    }
    for (size_t i = 0; ranks && i < job->ntasks && !any; i++) {
        const struct peal_verification *v = job->tasks[i].answer;
        if (v && v->no_advice)
            put_advice_line(job, i, v->no_advice, "", ranks, out);
    }
    if (any)
        peal_text_puts(out, "(each by itself: all that is proved here for that number of ranks is "
                            "proved without it, too)\n");
    peal_text_fold(out, start, 2, 80);
}

/* "halo.peal:7:16: no neighbour 'W'": why there is no plan. */
static void put_why(const struct peal_verify_task *t, struct peal_text *out)
{
    const struct peal_diag *d = &t->diags.list.at[0];
    if (d->pos.source && d->pos.line)
        peal_text_printf(out, "%s:%u:%u: ", d->pos.source->name, d->pos.line, d->pos.col);
    peal_text_puts(out, d->message);
}

static void put_failures(struct peal_cli *cli, const struct peal_verify_job *job,
                         struct peal_text *out)
{
    bool told = false;
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_verify_task *t = &job->tasks[i];
        if (!t->answer && t->status != PEAL_OK && t->diags.list.len && !told) {
            size_t start = out->len;
            peal_text_printf(out, "no plan for %u rank%s: ", t->nranks, t->nranks == 1 ? "" : "s");
            put_why(t, out);
            peal_text_puts(out, "\n");
            peal_text_fold(out, start, 2, 80);
            told = job->ntasks > 8;
        }
    }
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_verify_task *t = &job->tasks[i];
        if (!t->answer || t->answer->verdict == PEAL_PROVED)
            continue;
        peal_text_puts(out, "\n");
        size_t start = out->len;
        if (t->first)
            peal_text_printf(out, "launched with %s:\n", t->first);
        peal_text_fold(out, start, 2, 80);
        peal_verification_explain(t->answer, out);
        return;
    }
    if (job->verify.advice)
        put_redundant(cli, job, out);
}

static void put_json(const struct peal_verify_job *job, const struct tally *t,
                     struct peal_text *out)
{
    peal_text_puts(out, "{\"kernel\": ");
    peal_text_json(out, job->kernel->name);
    peal_text_printf(out,
                     ", \"verdict\": \"%s\", \"proved\": %" PRIu64 ", \"refuted\": %" PRIu64
                     ", \"undecided\": %" PRIu64 ", \"no_plan\": %" PRIu64
                     ", \"sequences\": %" PRIu64 ", \"all_sequences\": %" PRIu64 ", \"answers\": [",
                     t->refuted                   ? "refuted"
                     : t->undecided || !t->proved ? "not decided"
                                                  : "proved",
                     t->proved, t->refuted, t->undecided, t->no_plan, t->sequences,
                     t->all_sequences);
    bool first = true;
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_verify_task *task = &job->tasks[i];
        if (!task->answer && task->status == PEAL_OK)
            continue;
        peal_text_printf(out, "%s\n{\"ranks\": %u, \"count\": ", first ? "" : ",", task->nranks);
        first = false;
        if (task->sequences)
            peal_text_puts(out, "null");
        else
            peal_text_printf(out, "%" PRId64, task->count);
        peal_text_puts(out, ", \"sequence\": ");
        if (task->first)
            peal_text_json(out, task->first);
        else
            peal_text_puts(out, "null");
        if (task->answer) {
            peal_text_puts(out, ", \"answer\": ");
            peal_verification_json(task->answer, out);
        } else {
            peal_text_puts(out, ", \"no_plan\": ");
            struct peal_text why = {0};
            if (task->diags.list.len)
                put_why(task, &why);
            peal_text_json(out, task->diags.list.len ? peal_text_get(&why)
                                                     : peal_status_text(task->status));
            peal_text_release(&why);
        }
        peal_text_puts(out, "}");
    }
    peal_text_puts(out, "]}\n");
}

static bool write_page(struct peal_cli *cli, const struct peal_verify_job *job, const char *path,
                       const char *file)
{
    struct peal_page page;
    struct peal_page_answer *answers =
        peal_arena_alloc(cli->arena, (job->ntasks + 1) * sizeof *answers);
    size_t n = 0;
    for (size_t i = 0; answers && i < job->ntasks; i++) {
        const struct peal_verify_task *t = &job->tasks[i];
        if (t->answer)
            answers[n++] = (struct peal_page_answer){t->answer, t->plan, (uint64_t)t->count};
    }
    if (!n)
        return true; /* no plan could be made; the messages say why */
    peal_page_begin(cli, &page, PEAL_PAGE_VERIFY, job->kernel->name, file);
    peal_page_verify(&page, answers, n);
    return peal_page_save(cli, &page, path);
}

/* --- running --------------------------------------------------------------------------------- */

/* Roughly how long a task takes against others. */
static uint64_t weigh(const struct peal_verify_task *task)
{
    return (uint64_t)task->nranks * task->nranks * (task->sequences ? 8 : 1);
}

static void step(void *progress, const struct peal_verify_task *task)
{
    peal_progress_step(progress, weigh(task));
}

/* After Ctrl-C: the rows that are there. */
static void report_finished(void *opaque)
{
    struct peal_text out = {0};
    put_table(opaque, &out);
    fputs(peal_text_get(&out), stdout);
    peal_text_release(&out);
}

static const int64_t default_ranks[] = {2, 3, 4, 5, 6, 7, 8};
static const int64_t default_counts[] = {256};

static int verify_kernel(struct peal_cli *cli, const struct verify_options *o,
                         const struct peal_kernel *kernel, const char *file)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t *ranks = o->kernel.ranks.len ? o->kernel.ranks.at : default_ranks;
    size_t nranks = o->kernel.ranks.len ? o->kernel.ranks.len : 7;
    struct peal_verify_job job = {
        .kernel = kernel,
        .options = &o->kernel,
        .verify = {.launches = (uint32_t)o->launches,
                   .most_states = (uint64_t)o->states,
                   .most_bytes = o->memory,
                   .advice = o->advice},
        .counts = o->kernel.counts.len ? o->kernel.counts.at : default_counts,
        .ncounts = o->kernel.counts.len ? o->kernel.counts.len : 1,
        .no_sequences = o->alone || o->launches == 1,
        .no_fuse = o->advice,
        .keep_plans = o->html != NULL,
        .workers = o->jobs     ? (uint32_t)o->jobs
                   : cores > 0 ? (uint32_t)cores
                               : 1,
        .cache = o->no_cache || o->advice ? NULL : peal_cache_folder(cli->arena),
    };
    struct peal_progress progress = {.what = "plans"};
    if (!peal_verify_plan_tasks(cli, &job, ranks, nranks))
        return peal_cli_fail(cli, "out of memory");
    /* One large plan: its lazy runs share the cores instead. */
    if (job.ntasks == 1)
        job.verify.workers = job.workers;
    job.done = step;
    job.done_with = &progress;
    progress.total = job.ntasks;
    for (size_t i = 0; i < job.ntasks; i++)
        progress.weight += weigh(&job.tasks[i]);
    progress.report = o->json ? NULL : report_finished;
    progress.context = &job;
    peal_progress_begin(&progress);
    peal_verify_run_tasks(&job);
    if (o->advice)
        peal_verify_judge_advice(cli, &job);
    peal_progress_end(&progress);

    struct tally t = count_answers(&job);
    struct peal_text out = {0};
    int code = t.refuted ? PEAL_EXIT_NO : t.undecided || !t.proved ? PEAL_EXIT_OTHER : PEAL_EXIT_OK;
    if (o->json) {
        put_json(&job, &t, &out);
    } else {
        put_table(&job, &out);
        put_failures(cli, &job, &out);
        put_summary(cli, &job, &t, ranks, nranks, &out);
    }
    if (o->html && !write_page(cli, &job, o->html, file))
        code = PEAL_EXIT_OTHER;
    peal_verify_free_tasks(&job);
    return o->json ? peal_cli_print(cli, &out, code) : peal_cli_print_verdict(cli, &out, code);
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct verify_options *o = options;
    struct peal_diags diags;
    struct peal_program *program = NULL;
    int code;
    (void)nargs;
    peal_diags_init(&diags);
    enum peal_status status = peal_program_open(args[0], &diags, &program);
    const struct peal_kernel *kernel =
        status == PEAL_OK ? peal_program_kernel(program, o->kernel.kernel, &diags) : NULL;
    if (kernel && !peal_kernel_check_set(cli, kernel, &o->kernel))
        code = PEAL_EXIT_USAGE;
    else if (kernel)
        code = verify_kernel(cli, o, kernel, args[0]);
    else
        code = peal_cli_diags(cli, status == PEAL_OK ? PEAL_INVALID : status, &diags);
    if (program)
        peal_program_close(program);
    peal_diags_release(&diags);
    return code;
}

const struct peal_command peal_cmd_verify = {
    .name = "verify",
    .args = "KERNEL",
    .summary = "prove a kernel over all schedules, or tell how it goes wrong",
    .details =
        "KERNEL is a file or a built-in kernel's name. For every number of ranks and every count, "
        "the plan is launched back to back as often as a sound proof needs, and every schedule is "
        "covered: bounds, deadlock, races, signals, uninitialised reads and, where the kernel has "
        "a contract, the result. Kernels with a root, and several counts, are also launched in "
        "sequences of different roots and counts.\n\n"
        "Exit code: 0 proved (wherever the kernel has a plan), 1 refuted, 2 wrong usage, 3 not "
        "decided or no plan at all.\n\n"
        "  peal verify allreduce_ring -n 2..16\n"
        "  peal verify my.peal -n 4 --count 0,1,100 --advice",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct verify_options),
    .least_args = 1,
    .most_args = 1,
    .run = run,
};
