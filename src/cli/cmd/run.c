/* SPDX-License-Identifier: Apache-2.0 */
/* peal run KERNEL -n P: runs any kernel on real ranks and checks it against its contract. */
#include "comm/comm.h"
#include "cli/import/import_args.h"
#include "cli/kernel_args.h"
#include "cli/page/page_file.h"
#include "cli/page/page_run.h"
#include "cli/run/ranks.h"
#include "cli/run/run_data.h"
#include "run/run.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run_options {
    struct peal_kernel_options kernel;
    int64_t launches;
    bool threads, verify, json, no_bind;
    const char *html;
};

struct run {
    const struct peal_cli *cli;
    const char *what; /* the kernel argument */
    const struct run_options *options;
    const struct peal_kernel *kernel; /* NULL: `whole` comes from a file in another format */
    struct peal_bind bind;
    const struct peal_plan *whole; /* all ranks: sizes and parameters for the check */
};

/* What one rank has while it runs. */
struct rank {
    const struct run *run;
    struct peal_comm *comm;
    struct peal_image *image;
    struct peal_run_data data;
    struct peal_op_trace *trace; /* of the next launch, or NULL */
    bool told;                   /* what failed was said where it was known */
};

/* ---- launches ---- */

/* What reports say is launched: the same words on all ranks. */
static void label(const struct rank *me, uint64_t count)
{
    if (me->run->kernel) {
        peal_label_launch(me->comm->team, count, me->run->kernel, &me->run->bind);
        return;
    }
    struct peal_text text = {0};
    peal_text_printf(&text, "plan '%s'", peal_plan_string(me->run->whole, me->run->whole->kernel));
    peal_doctor_label(me->comm->team, count, peal_text_get(&text));
    peal_text_release(&text);
}

static enum peal_status launch(struct rank *me, double *time_us)
{
    struct peal_call call = {.image = me->image,
                             .bounds = me->data.bounds,
                             .nbounds = me->data.nbounds,
                             .segment = INT64_MAX,
                             .launches = 1,
                             .element = 1,
                             .what = peal_call_what(PEAL_CALL_KERNEL, 0, 0, 0),
                             .count = 1}; /* all ranks have the same kernel and arguments */
    label(me, call.count);
    enum peal_status status = peal_barrier(me->comm);
    me->comm->engine.frames[0].trace = me->trace; /* not before: the barrier is a launch too */
    uint64_t start = peal_now_ns();
    if (status == PEAL_OK)
        status = peal_comm_end(me->comm, peal_call_run(&me->comm->engine, &call));
    me->comm->engine.frames[0].trace = NULL;
    *time_us = (double)(peal_now_ns() - start) / 1e3;
    /* Who is done goes on to check its result: where ranks share cores, that would slow down those
     * who are still in the launch. */
    return status == PEAL_OK ? peal_barrier(me->comm) : status;
}

/* ---- the page ---- */

enum { MOST_TRACED = 1 << 20 }; /* ops a rank */

static bool trace_begin(struct rank *me, struct peal_op_trace *trace)
{
    uint64_t ops = me->image->plan->ops.count;
    *trace = (struct peal_op_trace){.cap = ops < MOST_TRACED ? ops : MOST_TRACED};
    trace->at = calloc(trace->cap + 1, sizeof *trace->at);
    trace->since = calloc(me->image->nlanes, sizeof *trace->since);
    return trace->at && trace->since;
}

/* What the page takes on all ranks: each has its own launch, padded, and then everyone's. */
static uint64_t trace_need(const struct run *run)
{
    uint64_t ranks = run->whole->nranks, most = run->whole->ops.count / ranks + 1;
    if (!run->options->html)
        return 0;
    most = most < MOST_TRACED ? most : MOST_TRACED;
    return ranks * (ranks + 2) * most * sizeof(struct peal_trace_entry);
}

static void trace_release(struct peal_op_trace *trace)
{
    free(trace->at);
    free(trace->since);
}

/* Ops of a rank's part as ops of the plan of all ranks. */
static void renumber(const struct rank *me, struct peal_op_trace *trace)
{
    if (me->image->plan->rank_count == me->run->whole->rank_count)
        return;
    uint64_t first = peal_plan_lane(me->run->whole, peal_comm_rank(me->comm), 0)->first_op;
    for (uint64_t i = 0; i < trace->len; i++)
        trace->at[i].op += first;
}

/* Everyone's trace to everyone, padded to the longest; rank 0 writes the page. */
static enum peal_status write_page(struct rank *me, struct peal_op_trace *trace,
                                   const struct peal_page_run_facts *facts)
{
    uint32_t size = peal_comm_size(me->comm);
    uint64_t own[2] = {trace->len, trace->lost}, most = 0;
    uint64_t *lens = calloc(2 * (size_t)size, sizeof *lens);
    struct peal_page_rank_trace *traces = calloc(size, sizeof *traces);
    struct peal_trace_entry *all = NULL, *padded = NULL;
    enum peal_status status = lens && traces ? PEAL_OK : PEAL_NO_MEMORY;
    renumber(me, trace);
    if (status == PEAL_OK)
        status = peal_allgather(me->comm, own, lens, 2, PEAL_I64);
    for (uint32_t r = 0; r < size && status == PEAL_OK; r++)
        most = lens[2 * r] > most ? lens[2 * r] : most;
    if (status == PEAL_OK) {
        all = calloc(most * size + 1, sizeof *all);
        padded = calloc(most + 1, sizeof *padded);
        status = all && padded ? PEAL_OK : PEAL_NO_MEMORY;
    }
    if (status == PEAL_OK) {
        memcpy(padded, trace->at, trace->len * sizeof *padded);
        status = peal_allgather(me->comm, padded, all, most * (sizeof *all / 8), PEAL_I64);
    }
    if (status == PEAL_OK && peal_comm_rank(me->comm) == 0) {
        struct peal_page page;
        for (uint32_t r = 0; r < size; r++)
            traces[r] = (struct peal_page_rank_trace){all + r * most, lens[2 * r], lens[2 * r + 1]};
        peal_page_begin(me->run->cli, &page, PEAL_PAGE_RUN,
                        peal_plan_string(me->run->whole, me->run->whole->kernel), me->run->what);
        peal_page_run(&page, me->run->whole, traces, facts);
        me->told = !peal_page_save(me->run->cli, &page, me->run->options->html);
        if (me->told)
            status = PEAL_SYSTEM;
    }
    free(lens);
    free(traces);
    free(all);
    free(padded);
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print(const struct rank *me, double median, uint64_t wrong)
{
    const struct peal_plan *plan = me->image->plan;
    const char *kernel = peal_plan_string(plan, plan->kernel);
    uint64_t bytes = peal_run_data_most(&me->data);
    const char *contract = peal_contract_info((enum peal_contract)plan->contract)->name;
    bool checked = plan->contract != PEAL_CONTRACT_NONE;
    double gbs = median > 0 ? (double)bytes / (median * 1e3) : 0;
    if (me->run->options->json)
        printf("{\"kernel\": \"%s\", \"ranks\": %u, \"launches\": %lld, \"bytes\": %llu, "
               "\"time_us\": %.3f, \"gb_per_s\": %.3f, \"contract\": \"%s\", \"wrong\": %llu}\n",
               kernel, me->image->size, (long long)me->run->options->launches,
               (unsigned long long)bytes, median, gbs, contract, (unsigned long long)wrong);
    else
        printf("%s on %u rank%s, %llu bytes, median of %lld launches:\n"
               "%.2f us, %.2f GB/s; %s%s\n",
               kernel, me->image->size, me->image->size == 1 ? "" : "s", (unsigned long long)bytes,
               (long long)me->run->options->launches, median, gbs,
               checked ? contract : "no contract",
               !checked ? ", not checked"
               : wrong  ? ": WRONG"
                        : ": right");
}

static enum peal_status run_all(struct rank *me, uint64_t *all_wrong)
{
    const struct run_options *o = me->run->options;
    const struct peal_plan *plan = me->image->plan;
    uint64_t n = (uint64_t)o->launches, wrong = 0, first = 0;
    double *times = calloc(n, sizeof *times), *most = calloc(n, sizeof *most), traced_us;
    struct peal_op_trace trace = {0};
    enum peal_status status = times && most ? PEAL_OK : PEAL_NO_MEMORY;
    bool data = plan->contract != PEAL_CONTRACT_NONE && plan->contract != PEAL_CONTRACT_BARRIER;
    for (uint64_t i = 0; i < n && status == PEAL_OK; i++) {
        peal_run_data_fill(&me->data);
        status = launch(me, &times[i]);
        if (status == PEAL_OK && data)
            wrong += peal_run_data_check(&me->data, &first);
    }
    if (wrong)
        fprintf(stderr, "peal run: rank %u: %llu elements are wrong, the first is %llu\n",
                peal_comm_rank(me->comm), (unsigned long long)wrong, (unsigned long long)first);
    if (status == PEAL_OK)
        status = peal_allreduce(me->comm, &wrong, all_wrong, 1, PEAL_I64, PEAL_SUM);
    if (status == PEAL_OK)
        status = peal_allreduce(me->comm, times, most, n, PEAL_F64, PEAL_MAX);
    if (status == PEAL_OK)
        qsort(most, n, sizeof *most, compare_doubles);
    if (status == PEAL_OK && peal_comm_rank(me->comm) == 0)
        print(me, most[n / 2], *all_wrong);
    if (status == PEAL_OK && o->html) {
        /* One launch more, traced: the figures above are those of launches without the clock. */
        status = trace_begin(me, &trace) ? PEAL_OK : PEAL_NO_MEMORY;
        peal_run_data_fill(&me->data);
        me->trace = &trace;
        status = status == PEAL_OK ? launch(me, &traced_us) : status;
        me->trace = NULL;
        struct peal_page_run_facts facts = {.median_us = most[n / 2],
                                            .bytes = peal_run_data_most(&me->data),
                                            .launches = n,
                                            .wrong = *all_wrong,
                                            .checked = plan->contract != PEAL_CONTRACT_NONE,
                                            .how = o->threads ? "threads" : "processes"};
        if (status == PEAL_OK)
            status = write_page(me, &trace, &facts);
        trace_release(&trace);
    }
    free(times);
    free(most);
    return status;
}

/* An image of the kernel, or of a copy of the whole plan. */
static enum peal_status make_image(struct rank *me, struct peal_text *why)
{
    struct peal_image_how how = {.rank = peal_comm_rank(me->comm)};
    const struct peal_plan *whole = me->run->whole;
    if (me->run->kernel)
        return peal_plans_make(me->comm->team, me->run->kernel, &me->run->bind, &how, why,
                               &me->image);
    struct peal_plan *copy = malloc(whole->block_len);
    if (!copy)
        return PEAL_NO_MEMORY;
    memcpy(copy, whole, whole->block_len);
    return peal_image_new(copy, &how, me->comm->team->compute, &me->image);
}

static int body(struct peal_comm *comm, void *context)
{
    struct rank me = {.run = context, .comm = comm};
    struct peal_text why = {0};
    uint64_t wrong = 0;
    enum peal_status status = make_image(&me, &why);
    if (status == PEAL_OK)
        status = peal_run_data_init(&me.data, comm, me.image, me.run->whole);
    if (status == PEAL_OK)
        status = run_all(&me, &wrong);
    if (status != PEAL_OK && peal_comm_rank(comm) == 0 && !me.told) {
        fputs(peal_text_get(&why), stderr);
        peal_ranks_fail("run", comm, status);
        if (status == PEAL_TIMEOUT && !me.run->options->verify)
            fprintf(stderr, "note: 'peal verify %s%s%.0u' says whether it always ends\n",
                    me.run->what, me.run->kernel ? " -n " : "",
                    me.run->kernel ? peal_comm_size(comm) : 0);
    }
    peal_run_data_release(&me.data);
    peal_image_free(me.image);
    peal_text_release(&why);
    return status != PEAL_OK ? PEAL_EXIT_OTHER : wrong ? PEAL_EXIT_NO : PEAL_EXIT_OK;
}

/* ---- the command ---- */

/* --verify: PEAL_EXIT_OK if it is proved; otherwise prints why not. */
static int prove(const struct peal_cli *cli, const struct peal_plan *plan)
{
    struct peal_text why = {0};
    enum peal_status status = peal_claim_check_plan(plan, peal_cache_folder(cli->arena), &why);
    int code = PEAL_EXIT_OK;
    if (why.len) {
        fputs(peal_text_get(&why), stderr);
        code = status == PEAL_INVALID ? PEAL_EXIT_NO : PEAL_EXIT_OTHER;
    } else if (status != PEAL_OK) {
        code = peal_cli_fail(cli, "cannot verify: %s", peal_status_text(status));
    }
    peal_text_release(&why);
    return code;
}

/* Starts the ranks with the plan of all of them. */
static int run_plan(struct peal_cli *cli, struct run *run)
{
    const struct run_options *o = run->options;
    const struct peal_plan *whole = run->whole;
    if (whole->nranks > PEAL_MOST_RANKS)
        return peal_cli_usage(cli, "%u ranks; at most %d can be run", whole->nranks,
                              PEAL_MOST_RANKS);
    struct peal_ranks start = {
        .count = whole->nranks,
        .threads = o->threads,
        .bind = !o->no_bind,
        .bytes = peal_memory_limit_add(peal_run_data_need(whole), trace_need(run)),
        .body = body,
        .context = run};
    int code = peal_ranks_memory_limit(cli, &start);
    if (code == PEAL_EXIT_OK && whole->window_bytes > PEAL_CONTEXT_SPAN)
        code =
            peal_cli_fail(cli, "'%s' declares windows of %llu bytes a rank; at most %d can be run",
                          peal_plan_string(whole, whole->kernel),
                          (unsigned long long)whole->window_bytes, PEAL_CONTEXT_SPAN);
    if (code == PEAL_EXIT_OK && o->verify)
        code = prove(cli, whole);
    if (code == PEAL_EXIT_OK)
        code = peal_ranks_run(cli, &start);
    return code;
}

static int run_file(struct peal_cli *cli, const struct run_options *o, const char *path)
{
    struct peal_import_file file;
    int code;
    if (peal_import_file_open(cli, path, &o->kernel, &file, &code)) {
        struct run run = {.cli = cli, .what = path, .options = o, .whole = file.plan};
        code = run_plan(cli, &run);
    }
    peal_import_file_release(&file);
    return code;
}

static int run_kernel(struct peal_cli *cli, const struct run_options *o, const char *what,
                      const struct peal_kernel *kernel, struct peal_diags *diags)
{
    int64_t ranks, count;
    struct run run = {.cli = cli, .what = what, .options = o, .kernel = kernel};
    if (!peal_kernel_one(cli, &o->kernel.ranks, "ranks", -1, &ranks) ||
        !peal_kernel_one(cli, &o->kernel.counts, "count", PEAL_KERNEL_COUNT, &count) ||
        !peal_kernel_bind(cli, kernel, &o->kernel, (uint32_t)ranks, count, &run.bind))
        return PEAL_EXIT_USAGE;
    if (ranks > PEAL_MOST_RANKS) /* before a plan of them is made, which may take minutes */
        return peal_cli_usage(cli, "%lld ranks; at most %d can be run", (long long)ranks,
                              PEAL_MOST_RANKS);
    for (int i = 0; i < kernel->nparams; i++)
        run.bind.symmetric |= kernel->params[i]->is_window;
    struct peal_plan *whole = NULL;
    enum peal_status status = peal_instantiate(kernel, &run.bind, diags, &whole);
    if (status != PEAL_OK)
        return peal_cli_diags(cli, status, diags);
    run.whole = whole;
    int code = run_plan(cli, &run);
    free(whole);
    return code;
}

static int run_command(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)nargs;
    const struct run_options *o = options;
    struct peal_diags diags;
    struct peal_program *program = NULL;
    if (peal_import_names_file(args[0]))
        return run_file(cli, o, args[0]);
    peal_diags_init(&diags);
    enum peal_status status = peal_program_open(args[0], &diags, &program);
    const struct peal_kernel *kernel =
        status == PEAL_OK ? peal_program_kernel(program, o->kernel.kernel, &diags) : NULL;
    int code = kernel ? run_kernel(cli, o, args[0], kernel, &diags)
                      : peal_cli_diags(cli, status == PEAL_OK ? PEAL_INVALID : status, &diags);
    peal_diags_release(&diags);
    peal_program_close(program);
    return code;
}

#define AT(member) offsetof(struct run_options, member)
static const struct run_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS, .launches = 20};
static const struct peal_option table[] = {
    PEAL_KERNEL_ROWS(struct run_options, kernel, " (must be given)"),
    {"launches", 'l', PEAL_OPTION_INT, AT(launches), "N", "launches, back to back (default 20)", 1,
     1 << 24},
    {"threads", 0, PEAL_OPTION_FLAG, AT(threads), NULL, "ranks are threads, not processes", 0, 0},
    {"verify", 0, PEAL_OPTION_FLAG, AT(verify), NULL, "prove the plan before it is launched", 0, 0},
    {"no-bind", 0, PEAL_OPTION_FLAG, AT(no_bind), NULL, "do not bind ranks to cores", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, AT(html), "FILE",
     "write a page that shows one more launch, op by op (or a picture: FILE.svg)", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_run = {
    .name = "run",
    .args = "KERNEL",
    .summary = "run a kernel on real ranks and check its result",
    .details = "KERNEL is a file (Peal text, MSCCL XML or MSCCL++ JSON) or a built-in's name. Each "
               "launch starts with fresh inputs and is "
               "checked against the kernel's contract, if it has one; window parameters are in "
               "symmetric memory. Ends with 1 if a result is wrong.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .least_args = 1,
    .most_args = 1,
    .run = run_command,
};
