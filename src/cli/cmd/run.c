/* SPDX-License-Identifier: Apache-2.0 */
/* peal run KERNEL -n P: runs any kernel on real ranks and checks it against its contract.
 *
 * The command makes the plan of all ranks, like the other commands. Its ranks launch that plan
 * through the public headers alone (peal/peal.h, peal/plan.h), as any program could. On a modelled
 * machine the same plan is simulated first: the time is the machine's, the data are the ranks'.
 */
#include "cli/import/import_args.h"
#include "cli/record/record.h"
#include "cli/kernel_args.h"
#include "cli/page/page_file.h"
#include "cli/page/page_run.h"
#include "cli/progress.h"
#include "cli/run/ranks.h"
#include "cli/run/promise_check.h"
#include "cli/run/run_data.h"
#include "cli/sim/plan_time.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run_options {
    struct peal_kernel_options kernel;
    int64_t launches, timeout;
    bool threads, verify, json, no_bind;
    const char *html, *platform, *devices;
};

struct run_command {
    const struct peal_cli *cli;
    const char *argument; /* the kernel argument */
    const struct run_options *options;
    bool is_import;                /* `whole` comes from a file in another format */
    const struct peal_plan *whole; /* all ranks: sizes and parameters for the check */
    struct peal_progress *progress;
    double simulated_us; /* a launch on the modelled machine, if there is one */
};

/* The state of one rank while it runs. */
struct rank {
    const struct run_command *run;
    struct peal_comm *comm;
    struct peal_user_kernel *kernel;
    struct peal_run_data data;
    bool reported; /* the failure has been reported where it was found */
};

/* ---- launches ---- */

static enum peal_status launch(struct rank *me, double *time_us)
{
    enum peal_dtype dtype = (enum peal_dtype)me->run->whole->dtype;
    enum peal_status status = peal_barrier(me->comm);
    uint64_t start = peal_now_ns();
    if (status == PEAL_OK)
        status = peal_user_kernel_launch(me->kernel, dtype, me->data.args, me->data.count, NULL, 0);
    *time_us = (double)(peal_now_ns() - start) / 1e3;
    if (status != PEAL_OK)
        return status;
    /* A rank that has finished goes on to check its result. If ranks share cores, that would slow
     * down those still in the launch. */
    return peal_barrier(me->comm);
}

/* ---- the page ---- */

enum { MAX_TRACED_OPS = 1 << 20 }; /* ops per rank */

static uint64_t traced_ops(uint64_t ops)
{
    return peal_size_min(ops, MAX_TRACED_OPS);
}

/* Memory that the page needs on all ranks: each has its own launch, padded, and then those of
 * all. */
static uint64_t trace_need(const struct run_command *run)
{
    uint64_t ranks = run->whole->nranks;
    if (!run->options->html)
        return 0;
    uint64_t ops = traced_ops(run->whole->ops.count / ranks + 1);
    return ranks * (ranks + 2) * ops * sizeof(struct peal_op_time);
}

/* The times of all ranks, padded to the longest. */
struct gathered {
    uint64_t *lens; /* by rank: how many, and how many are lost */
    struct peal_op_time *all;
    uint64_t longest; /* of any rank */
};

static void gathered_release(struct gathered *g)
{
    free(g->lens);
    free(g->all);
}

/* Collective. Release it in every case. */
static enum peal_status gather(struct rank *me, const struct peal_op_times *own, struct gathered *g)
{
    uint32_t size = peal_comm_size(me->comm);
    uint64_t head[2] = {own->len, own->lost};
    g->lens = calloc(2 * (size_t)size, sizeof *g->lens);
    if (!g->lens)
        return PEAL_NO_MEMORY;
    enum peal_status status = peal_allgather(me->comm, head, g->lens, 2, PEAL_I64);
    if (status != PEAL_OK)
        return status;
    for (uint32_t r = 0; r < size; r++) {
        if (g->lens[2 * r] > g->longest)
            g->longest = g->lens[2 * r];
    }
    struct peal_op_time *padded = calloc(g->longest + 1, sizeof *padded);
    g->all = calloc(g->longest * size + 1, sizeof *g->all);
    if (padded && g->all) {
        memcpy(padded, own->at, own->len * sizeof *padded);
        status =
            peal_allgather(me->comm, padded, g->all, g->longest * (sizeof *padded / 8), PEAL_I64);
    } else {
        status = PEAL_NO_MEMORY;
    }
    free(padded);
    return status;
}

static enum peal_status draw(struct rank *me, const struct gathered *g,
                             const struct peal_page_run_facts *facts)
{
    const struct run_command *run = me->run;
    uint32_t size = peal_comm_size(me->comm);
    struct peal_page page;
    struct peal_page_rank_trace *traces = calloc(size, sizeof *traces);
    if (!traces)
        return PEAL_NO_MEMORY;
    for (uint32_t r = 0; r < size; r++)
        traces[r] = (struct peal_page_rank_trace){g->all + r * g->longest, g->lens[2 * r],
                                                  g->lens[2 * r + 1]};
    peal_page_begin(run->cli, &page, PEAL_PAGE_RUN,
                    peal_plan_string(run->whole, run->whole->kernel), run->argument);
    peal_page_run(&page, run->whole, traces, facts);
    me->reported = !peal_page_save(run->cli, &page, run->options->html);
    free(traces);
    if (me->reported)
        return PEAL_SYSTEM;
    return PEAL_OK;
}

/* One more launch, with the clock: the figures are those of launches without it. Rank 0 writes the
 * page. */
static enum peal_status show(struct rank *me, const struct peal_page_run_facts *facts)
{
    double time_us;
    struct gathered gathered = {0};
    struct peal_op_times times = {.cap = traced_ops(me->run->whole->ops.count)};
    times.at = calloc(times.cap + 1, sizeof *times.at);
    if (!times.at)
        return PEAL_NO_MEMORY;
    peal_run_data_fill(&me->data);
    enum peal_status status = peal_user_kernel_set_times(me->kernel, &times);
    if (status == PEAL_OK)
        status = launch(me, &time_us);
    (void)peal_user_kernel_set_times(me->kernel, NULL);
    if (status == PEAL_OK)
        status = gather(me, &times, &gathered);
    if (status == PEAL_OK && peal_comm_rank(me->comm) == 0)
        status = draw(me, &gathered, facts);
    gathered_release(&gathered);
    free(times.at);
    return status;
}

/* ---- figures ---- */

/* What the data is compared with. */
static const char *contract_of(const struct peal_plan *plan)
{
    if (plan->contract == PEAL_CONTRACT_NONE && peal_promise_is_checkable(plan))
        return "ensures";
    return peal_contract_info((enum peal_contract)plan->contract)->name;
}

static bool is_checked(const struct peal_plan *plan)
{
    return plan->contract != PEAL_CONTRACT_NONE || peal_promise_is_checkable(plan);
}

static void print_json(const struct rank *me, double median, double gbs, uint64_t wrong)
{
    const struct peal_plan *plan = me->run->whole;
    struct peal_text text = {0};
    struct peal_json json;
    peal_json_init(&json, &text, PEAL_JSON_ONE_LINE);
    peal_json_object(&json);
    peal_json_put_string(&json, "kernel", peal_plan_string(plan, plan->kernel));
    peal_json_put_uint(&json, "ranks", plan->nranks);
    peal_json_put_int(&json, "launches", me->run->options->launches);
    peal_json_put_uint(&json, "bytes", peal_run_data_largest(&me->data));
    peal_json_put_fixed(&json, "time_us", median, 3);
    peal_json_put_fixed(&json, "gb_per_s", gbs, 3);
    peal_json_put_bool(&json, "simulated", peal_ranks_machine() != NULL);
    peal_json_put_string(&json, "contract", contract_of(plan));
    peal_json_put_uint(&json, "wrong", wrong);
    peal_json_object_end(&json);
    puts(peal_text_get(&text));
    peal_text_release(&text);
}

static const char *judge(bool checked, uint64_t wrong)
{
    if (!checked)
        return ", not checked";
    if (wrong)
        return ": WRONG";
    return ": right";
}

static void print(const struct rank *me, double median, uint64_t wrong)
{
    const struct peal_plan *plan = me->run->whole;
    const char *machine = peal_ranks_machine(), *contract = "no contract";
    uint64_t bytes = peal_run_data_largest(&me->data);
    bool checked = is_checked(plan);
    if (checked)
        contract = contract_of(plan);
    if (machine)
        median = me->run->simulated_us;
    double gbs = 0;
    if (median > 0)
        gbs = (double)bytes / (median * 1e3);
    if (me->run->options->json) {
        print_json(me, median, gbs, wrong);
        return;
    }
    printf("%s on %u rank%s%s%s, ", peal_plan_string(plan, plan->kernel), plan->nranks,
           peal_text_plural(plan->nranks), machine ? " of " : "", machine ? machine : "");
    if (me->run->options->kernel.roots.len)
        printf("root %lld, ", (long long)me->run->options->kernel.roots.at[0]);
    printf("%llu bytes, ", (unsigned long long)bytes);
    if (machine)
        printf("one launch, simulated:\n");
    else
        printf("median of %lld launches:\n", (long long)me->run->options->launches);
    printf("%.2f us, %.2f GB/s; %s%s\n", median, gbs, contract, judge(checked, wrong));
}

/* Launches and checks; the times are those of this rank. */
static enum peal_status launch_all(struct rank *me, double *times, uint64_t n, uint64_t *wrong)
{
    bool has_data = peal_contract_has_data((enum peal_contract)me->run->whole->contract);
    bool promises = peal_promise_is_checkable(me->run->whole);
    uint64_t first = 0, broken = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct peal_text why = {0};
        peal_run_data_fill(&me->data);
        enum peal_status status = launch(me, &times[i]);
        if (status != PEAL_OK)
            return status;
        if (peal_comm_rank(me->comm) == 0)
            peal_progress_step(me->run->progress, 1);
        if (has_data)
            *wrong += peal_run_data_check(&me->data, &first);
        uint64_t more = promises ? peal_run_data_promised(&me->data, &why) : 0;
        if (more == UINT64_MAX)
            status = PEAL_NO_MEMORY;
        else if (more && !broken)
            fprintf(stderr, "peal run: rank %u: %s\n", peal_comm_rank(me->comm),
                    peal_text_get(&why));
        peal_text_release(&why);
        if (status != PEAL_OK)
            return status;
        broken += more;
    }
    if (*wrong)
        fprintf(stderr, "peal run: rank %u: %llu elements are wrong, the first is %llu\n",
                peal_comm_rank(me->comm), (unsigned long long)*wrong, (unsigned long long)first);
    *wrong += broken;
    return PEAL_OK;
}

static enum peal_status run_all(struct rank *me, uint64_t *all_wrong)
{
    const struct run_options *o = me->run->options;
    uint64_t n = (uint64_t)o->launches, wrong = 0;
    double median = 0, *times = calloc(n, sizeof *times);
    if (!times)
        return PEAL_NO_MEMORY;
    enum peal_status status = launch_all(me, times, n, &wrong);
    if (status == PEAL_OK)
        status = peal_allreduce(me->comm, &wrong, all_wrong, 1, PEAL_I64, PEAL_SUM);
    if (status == PEAL_OK)
        status = peal_ranks_median(me->comm, times, n, &median);
    free(times);
    if (status != PEAL_OK)
        return status;
    if (peal_comm_rank(me->comm) == 0)
        print(me, median, *all_wrong);
    if (!o->html)
        return PEAL_OK;
    struct peal_page_run_facts facts = {.median_us = median,
                                        .bytes = peal_run_data_largest(&me->data),
                                        .launches = n,
                                        .wrong = *all_wrong,
                                        .checked = is_checked(me->run->whole),
                                        .ranks_are = o->threads ? "threads" : "processes"};
    return show(me, &facts);
}

static void report(const struct rank *me, enum peal_status status)
{
    const struct run_command *run = me->run;
    peal_ranks_fail("run", me->comm, status);
    if (status != PEAL_TIMEOUT || run->options->verify)
        return;
    if (run->is_import)
        fprintf(stderr, "note: 'peal verify %s' says whether it always ends\n", run->argument);
    else
        fprintf(stderr, "note: 'peal verify %s -n %u' says whether it always ends\n", run->argument,
                run->whole->nranks);
}

static int body(struct peal_comm *comm, void *context)
{
    struct rank me = {.run = context, .comm = comm};
    uint64_t wrong = 0;
    enum peal_status status = peal_user_kernel_load_plan(comm, me.run->whole, &me.kernel);
    if (status == PEAL_OK)
        status = peal_run_data_init(&me.data, comm, me.run->whole);
    if (status == PEAL_OK)
        status =
            peal_barrier(comm); /* --timeout is for launches: a busy host may start ranks late */
    if (status == PEAL_OK && me.run->options->timeout)
        peal_comm_set_timeout(comm, (uint32_t)me.run->options->timeout * 1000);
    if (status == PEAL_OK)
        status = run_all(&me, &wrong);
    if (status != PEAL_OK && peal_comm_rank(comm) == 0 && !me.reported)
        report(&me, status);
    peal_run_data_release(&me.data);
    peal_user_kernel_free(me.kernel);
    if (status != PEAL_OK)
        return PEAL_EXIT_OTHER;
    if (wrong)
        return PEAL_EXIT_NO;
    return PEAL_EXIT_OK;
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
        code = PEAL_EXIT_OTHER;
        if (status == PEAL_INVALID)
            code = PEAL_EXIT_NO;
    } else if (status != PEAL_OK) {
        code = peal_cli_fail(cli, "cannot verify: %s", peal_status_text(status));
    }
    peal_text_release(&why);
    return code;
}

/* A launch without progress is reported long before it fails. */
enum { WARN_MS = 5000 };

/* Starts the ranks with the plan of all of them. */
static int run_plan(struct peal_cli *cli, struct run_command *run)
{
    const struct run_options *o = run->options;
    const struct peal_plan *whole = run->whole;
    if (whole->nranks > PEAL_MOST_RANKS)
        return peal_cli_usage(cli, "%u ranks; at most %d can be run", whole->nranks,
                              PEAL_MOST_RANKS);
    struct peal_ranks start = {.count = whole->nranks,
                               .threads = o->threads,
                               .bind = !o->no_bind,
                               .warn_ms = WARN_MS,
                               .bytes =
                                   peal_size_add_capped(peal_run_data_need(whole), trace_need(run)),
                               .body = body,
                               .context = run};
    int code = peal_ranks_memory_limit(cli, &start);
    if (code == PEAL_EXIT_OK && whole->window_bytes > PEAL_MOST_WINDOW_BYTES)
        code = peal_cli_fail(cli,
                             "'%s' declares windows of %llu bytes per rank; at most %d can be run",
                             peal_plan_string(whole, whole->kernel),
                             (unsigned long long)whole->window_bytes, PEAL_MOST_WINDOW_BYTES);
    if (code == PEAL_EXIT_OK && o->verify)
        code = prove(cli, whole);
    if (code == PEAL_EXIT_OK && peal_ranks_machine())
        code = peal_plan_time(cli, run->argument, whole, peal_ranks_machine(), &run->simulated_us);
    if (code != PEAL_EXIT_OK)
        return code;
    struct peal_progress progress = {.label = "launches", .total = (uint64_t)o->launches};
    run->progress = &progress;
    peal_progress_begin(&progress);
    code = peal_ranks_run(cli, &start);
    peal_progress_end(&progress);
    return code;
}

static int run_file(struct peal_cli *cli, const struct run_options *o, const char *path)
{
    struct peal_import_file file;
    int code;
    if (peal_import_file_open(cli, path, &o->kernel, &file, &code)) {
        struct run_command run = {
            .cli = cli, .argument = path, .options = o, .is_import = true, .whole = file.plan};
        code = run_plan(cli, &run);
    }
    peal_import_file_release(&file);
    return code;
}

static int run_kernel(struct peal_cli *cli, const struct run_options *o, const char *argument,
                      const struct peal_kernel *kernel, struct peal_diags *diags)
{
    int64_t ranks, count;
    struct run_command run = {.cli = cli, .argument = argument, .options = o};
    struct peal_bind bind;
    if (!peal_kernel_ranks(cli, &o->kernel, -1, &ranks) ||
        !peal_kernel_one(cli, &o->kernel.counts, "count", PEAL_KERNEL_COUNT, &count) ||
        !peal_kernel_bind(cli, kernel, &o->kernel, (uint32_t)ranks, count, &bind))
        return PEAL_EXIT_USAGE;
    if (ranks > PEAL_MOST_RANKS) /* before a plan of them is made, which may take minutes */
        return peal_cli_usage(cli, "%lld ranks; at most %d can be run", (long long)ranks,
                              PEAL_MOST_RANKS);
    for (int i = 0; i < kernel->nparams; i++)
        bind.symmetric |= kernel->params[i]->is_window;
    struct peal_plan *whole = NULL;
    enum peal_status status = peal_instantiate(kernel, &bind, diags, &whole);
    if (status != PEAL_OK)
        return peal_cli_diags(cli, status, diags);
    run.whole = whole;
    int code = run_plan(cli, &run);
    free(whole);
    return code;
}

/* --devices give the number of ranks, too. False after a message. */
static bool take_devices(const struct peal_cli *cli, struct run_options *o)
{
    struct peal_ints *ranks = &o->kernel.ranks;
    uint32_t count;
    if (!o->devices)
        return true;
    if (!peal_ranks_devices(cli, o->devices, &count))
        return false;
    if (ranks->len && (ranks->len > 1 || ranks->at[0] != count)) {
        peal_cli_usage(cli, "--devices names %u, and -n is not that number", count);
        return false;
    }
    int64_t *one = peal_arena_alloc(cli->arena, sizeof *one);
    if (!one) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    *one = count;
    *ranks = (struct peal_ints){.at = one, .len = 1};
    return true;
}

static int run_command(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)nargs;
    struct run_options own = *(const struct run_options *)options;
    const struct run_options *o = &own;
    struct peal_diags diags;
    struct peal_program *program = NULL;
    if (!peal_import_options_fit(cli, &o->kernel, args[0]) ||
        !peal_ranks_platform(cli, o->platform) || !take_devices(cli, &own))
        return PEAL_EXIT_USAGE;
    own.kernel.machine = peal_ranks_machine();
    if (peal_import_names_file(args[0]))
        return run_file(cli, o, args[0]);
    const struct peal_kernel *kernel = peal_kernel_open(cli, args[0], &o->kernel, &program);
    if (!kernel)
        return PEAL_EXIT_OTHER;
    int worst = PEAL_EXIT_OK;
    size_t roots = 1;
    for (size_t i = 0; i < roots; i++) {
        struct run_options one = own;
        roots = peal_kernel_nth_root(&own.kernel, i, &one.kernel);
        peal_diags_init(&diags);
        int code = run_kernel(cli, &one, args[0], kernel, &diags);
        peal_diags_release(&diags);
        if (code > worst)
            worst = code;
    }
    peal_program_close(program);
    return worst;
}

#define AT(member) offsetof(struct run_options, member)
static const struct run_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS, .launches = 20};
static const struct peal_option table[] = {
    PEAL_KERNEL_ROWS(struct run_options, kernel, " (default: the modelled machine's)"),
    {"launches", 'l', PEAL_OPTION_INT, AT(launches), "N", "launches, back to back (default 20)", 1,
     1 << 24},
    {"threads", 0, PEAL_OPTION_FLAG, AT(threads), NULL, "ranks are threads, not processes", 0, 0},
    {"platform", 'p', PEAL_OPTION_STRING, AT(platform), "native|sim:M",
     "this host, or a modelled machine, by its name or file (default: PEAL_PLATFORM, or native)", 0,
     0},
    {"devices", 'd', PEAL_OPTION_STRING, AT(devices), "0-3",
     "one rank on each of these: cores, or a modelled machine's processing elements, from 0 on", 0,
     0},
    {"timeout", 0, PEAL_OPTION_INT, AT(timeout), "S",
     "seconds without progress before the ranks end (default 60, or PEAL_TIMEOUT_MS); after 5 s "
     "they report what they wait for",
     1, 86400},
    {"verify", 0, PEAL_OPTION_FLAG, AT(verify), NULL, "prove the plan before it is launched", 0, 0},
    {"no-bind", 0, PEAL_OPTION_FLAG, AT(no_bind), NULL, "do not bind ranks to cores", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, AT(html), "FILE",
     "write a page that shows one more launch, op by op (or a picture: FILE.svg)", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    PEAL_RECORDED_ROWS(struct run_options, kernel.recorded),
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_run = {
    .name = "run",
    .args = "KERNEL",
    .arg_names = PEAL_ARGUMENT_KERNEL,
    .summary = "run a kernel on real ranks and check its result",
    .details = "KERNEL is a file (Peal text, MSCCL XML or MSCCL++ JSON) or a built-in's name. Each "
               "launch starts with fresh inputs and is "
               "checked against the kernel's contract, if it has one; window parameters are in "
               "symmetric memory. Ends with 1 if a result is wrong, and with 3 if ranks wait for "
               "ever, after "
               "--timeout.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = 1,
    .run = run_command,
};
