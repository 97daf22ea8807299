/* SPDX-License-Identifier: Apache-2.0 */
/* peal sim KERNEL -m MACHINE: how long it takes on a modelled machine, and why. */
#include "lang/lang.h"
#include "cli/import/import_args.h"
#include "cli/record/record.h"
#include "cli/import/python.h"
#include "cli/page/page_file.h"
#include "cli/page/page_sim.h"
#include "cli/progress.h"
#include "cli/sim/sim_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_options {
    struct peal_kernel_options kernel;
    const char *machine, *trace, *html, *compare;
    struct peal_ints trace_ranks;
    int64_t trace_from, trace_to;
    int64_t launches;
    bool json, print_machine, strict, whole;
};

#define AT(member) offsetof(struct sim_options, member)
static const struct peal_option options_table[] = {
    {"machine", 'm', PEAL_OPTION_STRING, AT(machine), "M",
     "the machine: a file, or the name of a built-in one", 0, 0},
    PEAL_KERNEL_ROWS_MACHINE(struct sim_options, kernel),
    {"launches", 0, PEAL_OPTION_INT, AT(launches), "L", "launches back to back (default 1)", 1,
     100000},
    {"trace", 0, PEAL_OPTION_STRING, AT(trace), "FILE",
     "write a Chrome trace for Perfetto or chrome://tracing", 0, 0},
    {"html", 0, PEAL_OPTION_STRING, AT(html), "FILE",
     "write a page that shows the run (or a picture: FILE.svg)", 0, 0},
    {"trace-ranks", 0, PEAL_OPTION_LIST, AT(trace_ranks), "LIST", "only these ranks in the trace",
     0, PEAL_PLAN_MAX_RANKS - 1},
    {"trace-from", 0, PEAL_OPTION_INT, AT(trace_from), "NS", "trace from this nanosecond on", 0,
     INT64_MAX / 1000},
    {"trace-to", 0, PEAL_OPTION_INT, AT(trace_to), "NS", "trace up to this nanosecond", 0,
     INT64_MAX / 1000},
    {"compare", 0, PEAL_OPTION_STRING, AT(compare), "OTHER",
     "run OTHER too, another machine or another kernel, and say where the time went", 0, 0},
    {"print-machine", 0, PEAL_OPTION_FLAG, AT(print_machine), NULL,
     "print the resolved machine file and end", 0, 0},
    {"strict", 0, PEAL_OPTION_FLAG, AT(strict), NULL,
     "every op at its own event: slower, the same times", 0, 0},
    {"whole", 0, PEAL_OPTION_FLAG, AT(whole), NULL,
     "never cut a call that is larger than its queues hold into segments", 0, 0},
    {"json", 0, PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    PEAL_RECORDED_ROWS(struct sim_options, kernel.recorded),
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

/* For the line of progress: the job's phase, in ranks or ops. */
static void look(void *opaque, struct peal_progress_state *state)
{
    static const char *const names[] = {
        [PEAL_PHASE_PLAN] = "making the plan",
        [PEAL_PHASE_RANKS] = "ranks",
        [PEAL_PHASE_RUN] = "ops",
        [PEAL_PHASE_SLOT_RANKS] = "ranks (slots without limit)",
        [PEAL_PHASE_SLOT_RUN] = "ops (slots without limit)",
        [PEAL_PHASE_DATA] = "replaying data",
    };
    const struct peal_sim_job *job = opaque;
    struct peal_sim_follow *follow = job->follow;
    int phase = atomic_load_explicit(&follow->phase, memory_order_relaxed);
    bool ranks = phase == PEAL_PHASE_RANKS || phase == PEAL_PHASE_SLOT_RANKS;
    bool runs = phase == PEAL_PHASE_RUN || phase == PEAL_PHASE_SLOT_RUN;
    *state = (struct peal_progress_state){.label = names[phase]};
    if (ranks) {
        state->total = job->bind.nranks;
        state->done = atomic_load_explicit(&follow->pace.made, memory_order_relaxed);
    } else if (runs) {
        state->total = atomic_load_explicit(&follow->pace.total, memory_order_relaxed);
        state->done = atomic_load_explicit(&follow->pace.ops, memory_order_relaxed);
        if (state->total == 0) /* it has not reported yet */
            state->label = names[PEAL_PHASE_PLAN];
    }
    if (state->total)
        state->part = (double)state->done / (double)state->total;
}

/* After Ctrl-C: reports how far the run got. */
static void report_stop(void *opaque)
{
    const struct peal_sim_job *job = opaque;
    uint64_t events = atomic_load_explicit(&job->follow->pace.events, memory_order_relaxed);
    uint64_t time = atomic_load_explicit(&job->follow->pace.time, memory_order_relaxed);
    if (events)
        printf("stopped at %.3f us of simulated time, after %" PRIu64 " events\n",
               1e-6 * (double)time, events);
}

/* --trace-...: options that would give an empty trace, or none, are a mistake. False after a
 * message. */
static bool check_trace(const struct peal_cli *cli, const struct sim_options *o, int64_t nranks)
{
    bool narrowed = o->trace_ranks.len || o->trace_from || o->trace_to;
    if (narrowed && !o->trace) {
        peal_cli_usage(cli, "--trace-ranks, --trace-from and --trace-to need --trace");
        return false;
    }
    for (size_t i = 0; i < o->trace_ranks.len; i++) {
        if (o->trace_ranks.at[i] >= nranks) {
            peal_cli_usage(cli, "--trace-ranks: %" PRId64 " is not a rank: there are %" PRId64,
                           o->trace_ranks.at[i], nranks);
            return false;
        }
    }
    if (o->trace_to && o->trace_from >= o->trace_to) {
        peal_cli_usage(cli, "--trace-from has to be before --trace-to");
        return false;
    }
    return true;
}

/* What the file asks of the machine; --set has the last word. */
static bool ask_machine(const struct peal_cli *cli, const struct peal_sim_setup *setup,
                        struct peal_import_file *file, int *code)
{
    const struct peal_import_facts *facts = file->import ? peal_import_facts(file->import) : NULL;
    if (!facts || facts->nsettings == 0)
        return true;
    enum peal_status status =
        peal_machine_set(setup->machine, facts->settings, facts->nsettings, &file->diags);
    if (status == PEAL_OK)
        status = peal_machine_set(setup->machine, setup->settings, setup->nsettings, &file->diags);
    if (status != PEAL_OK)
        *code = peal_cli_diags(cli, status, &file->diags);
    return status == PEAL_OK;
}

/* The plan of a file in another format, which says how many ranks it is for. */
static bool take_file(const struct peal_cli *cli, const struct peal_sim_setup *setup,
                      struct peal_sim_job *job, int *code)
{
    struct peal_import_file file;
    struct peal_kernel_options options = setup->kernel_options;
    const struct peal_machine_keys *k = &setup->machine->keys;
    options.fallback = peal_machine_ranks(setup->machine);
    options.levels[0] = k->flat ? 0 : (uint32_t)(k->pes[0] * k->pes[1]);
    options.levels[1] = (uint32_t)(k->cubes[0] * k->cubes[1]);
    bool opened = peal_import_file_open(cli, setup->file, &options, &file, code) &&
                  ask_machine(cli, setup, &file, code);
    if (opened) {
        job->plan = file.plan;
        job->bind.nranks = file.plan->nranks;
        file.plan = NULL;
    }
    peal_import_file_release(&file);
    return opened;
}

/* A kernel's ranks, count and parameters. */
static bool bind_kernel(const struct peal_cli *cli, const struct peal_sim_setup *setup,
                        const struct sim_options *options, struct peal_sim_job *job)
{
    int64_t nranks, count;
    return peal_kernel_ranks(cli, &options->kernel, peal_machine_ranks(setup->machine), &nranks) &&
           peal_kernel_one(cli, &options->kernel.counts, "count", PEAL_KERNEL_COUNT, &count) &&
           peal_sim_setup_bind(cli, setup, setup->machine, (uint32_t)nranks, count, &job->bind) &&
           (job->may_cut = !options->whole && setup->kernel_options.set.len == 0 ? count : 0, true);
}

/* Fills in and runs a job. False: *code is the exit code. */
static bool run_job(const struct peal_cli *cli, const struct peal_sim_setup *setup,
                    const struct sim_options *options, struct peal_sim_job *job, int *code)
{
    const struct peal_machine_keys *k = &setup->machine->keys;
    *job = (struct peal_sim_job){.kernel = setup->kernel,
                                 .machine = setup->machine,
                                 .options = {.data = (enum peal_sim_data)k->data,
                                             .log = options->trace || options->html,
                                             .strict = options->strict},
                                 .launches = (uint32_t)options->launches,
                                 .find_slots = true,
                                 .find_hash = options->json};
    *code = PEAL_EXIT_USAGE;
    if (setup->file ? !take_file(cli, setup, job, code) : !bind_kernel(cli, setup, options, job))
        return false;
    if (!check_trace(cli, options, job->bind.nranks)) {
        free(job->plan);
        *code = PEAL_EXIT_USAGE;
        return false;
    }
    struct peal_sim_follow follow = {0};
    struct peal_progress progress = {
        .label = "", .look = look, .report = options->json ? NULL : report_stop, .context = job};
    job->follow = &follow;
    peal_progress_begin(&progress);
    peal_sim_job_run(job);
    peal_progress_end(&progress);
    job->follow = NULL;
    if (job->status == PEAL_OK)
        return true;
    *code = peal_cli_diags(cli, job->status, &job->diags);
    peal_sim_job_release(job);
    return false;
}

static bool write_trace(const struct peal_cli *cli, const struct sim_options *options,
                        const struct peal_sim_job *job)
{
    struct peal_sim_trace_filter filter = {.ranks = &options->trace_ranks,
                                           .from = (uint64_t)options->trace_from * 1000,
                                           .to = (uint64_t)options->trace_to * 1000};
    struct peal_text text = {0};
    peal_sim_report_trace(job, &filter, &text);
    bool ok = !text.failed && peal_cli_write(cli, options->trace, &text);
    if (text.failed)
        peal_cli_fail(cli, "out of memory for the trace");
    peal_text_release(&text);
    return ok;
}

static bool write_page(const struct peal_cli *cli, const char *argument,
                       const struct sim_options *options, const struct peal_sim_job *job)
{
    struct peal_page page;
    peal_page_begin(cli, &page, PEAL_PAGE_SIM, peal_plan_string(job->plan, job->plan->kernel),
                    argument);
    peal_page_sim(&page, job->sim, job->machine, job->plan->nranks);
    if (job->bound.time > 0 && !peal_sim_deadlock(job->sim)) {
        char time[32];
        peal_page_fact(&page, "bound", "%s: the run takes %.3g times that",
                       peal_page_time((uint64_t)job->bound.time, time),
                       (double)peal_sim_stats(job->sim)->time / job->bound.time);
    }
    return peal_page_save(cli, &page, options->html);
}

/* Kernels and machines have different file extensions, and no built-in kernel has the name of a
 * built-in machine. */
static bool names_machine(const char *text)
{
    size_t len = strlen(text);
    struct peal_diags diags;
    peal_diags_init(&diags);
    bool yes = (len > 5 && strcmp(text + len - 5, ".yaml") == 0) ||
               (len > 4 && strcmp(text + len - 4, ".yml") == 0) ||
               peal_machine_builtin(text, &diags) != NULL;
    peal_diags_release(&diags);
    return yes;
}

/* --compare: the same kernel on another machine, or another kernel on this one. */
static bool run_other(const struct peal_cli *cli, const char *argument,
                      const struct sim_options *options, struct peal_sim_setup *setup,
                      struct peal_sim_job *job, int *code)
{
    bool is_machine = names_machine(options->compare);
    struct sim_options other = *options;
    other.trace = other.html = NULL;
    other.trace_ranks.len = 0;
    other.trace_from = other.trace_to = 0;
    const char *kernel = argument, *machine = options->compare;
    if (!is_machine) {
        kernel = options->compare;
        machine = options->machine;
    }
    return peal_sim_setup_open(cli, kernel, machine, &options->kernel, setup, code) &&
           run_job(cli, setup, &other, job, code);
}

/* The result, and what it is compared with. */
static int print(const struct peal_cli *cli, const struct sim_options *options,
                 const struct peal_sim_job *job, const struct peal_sim_job *other)
{
    struct peal_text text = {0};
    if (options->json) {
        struct peal_json json;
        peal_json_init(&json, &text, 2);
        if (other->sim)
            peal_json_array(&json);
        peal_sim_report_json(job, &json);
        if (other->sim) {
            peal_sim_report_json(other, &json);
            peal_json_array_end(&json);
        }
        peal_text_puts(&text, "\n");
    } else {
        peal_sim_report_text(job, &text);
        if (other->sim)
            peal_sim_report_compare(job, other, &text);
    }
    bool bad = peal_sim_deadlock(job->sim) || job->check == PEAL_CHECK_WRONG;
    return peal_cli_print(cli, &text, bad ? PEAL_EXIT_NO : PEAL_EXIT_OK);
}

static int report(const struct peal_cli *cli, const char *argument,
                  const struct sim_options *options, const struct peal_sim_job *job)
{
    struct peal_sim_setup setup = {0};
    struct peal_sim_job other = {0};
    int code = PEAL_EXIT_OK;
    if (!options->compare || run_other(cli, argument, options, &setup, &other, &code)) {
        code = print(cli, options, job, &other);
        /* after the result: if a file cannot be written, the result is still printed */
        if (options->trace && !write_trace(cli, options, job))
            code = PEAL_EXIT_OTHER;
        if (options->html && !write_page(cli, argument, options, job))
            code = PEAL_EXIT_OTHER;
    }
    if (other.sim)
        peal_sim_job_release(&other);
    peal_sim_setup_close(&setup);
    return code;
}

static int run_once(struct peal_cli *cli, const struct sim_options *options, const char *argument)
{
    struct peal_sim_setup setup;
    struct peal_sim_job job;
    int code;
    if (!peal_sim_setup_open(cli, argument, options->machine, &options->kernel, &setup, &code))
        return code;
    if (options->print_machine) {
        struct peal_text text = {0};
        peal_machine_print(setup.machine, &text);
        code = peal_cli_print(cli, &text, PEAL_EXIT_OK);
    } else if (run_job(cli, &setup, options, &job, &code)) {
        code = report(cli, argument, options, &job);
        peal_sim_job_release(&job);
    }
    peal_sim_setup_close(&setup);
    return code;
}

static int run(struct peal_cli *cli, const void *opaque, char **args, int nargs)
{
    const struct sim_options *options = opaque;
    if (nargs == 0 && !options->print_machine)
        return peal_cli_usage(cli, "a kernel is needed");
    if (nargs > 0 && !peal_import_options_fit(cli, &options->kernel, args[0]))
        return PEAL_EXIT_USAGE;
    int worst = PEAL_EXIT_OK;
    size_t roots = 1;
    for (size_t i = 0; i < roots && worst < PEAL_EXIT_USAGE; i++) {
        struct sim_options one = *options;
        roots = peal_kernel_nth_root(&options->kernel, i, &one.kernel);
        int code = run_once(cli, &one, options->print_machine ? NULL : args[0]);
        if (code > worst)
            worst = code;
    }
    return worst;
}

static const struct sim_options defaults = {.kernel = PEAL_KERNEL_DEFAULTS, .launches = 1};

const struct peal_command peal_cmd_sim = {
    .name = "sim",
    .args = "KERNEL",
    .arg_names = PEAL_ARGUMENT_KERNEL,
    .summary = "simulate a kernel on a modelled machine: time, causes, data",
    .details =
        "KERNEL is a file (Peal text, MSCCL XML or MSCCL++ JSON) or a built-in kernel; a "
        "collective's plain name (allreduce) is completed "
        "by the machine file's ccl.algorithm. The number of ranks is the machine's number of PEs "
        "unless -n or ccl.ranks says otherwise.\n\n"
        "--set with a dot in the name changes a key of the machine file; without one it binds a "
        "parameter of the kernel. --print-machine shows all keys with their values.\n\n"
        "The exit code is 1 if the run deadlocks or its result is not what the contract says.\n\n"
        "  peal sim allreduce_chunked -m machines/mesh4x4.yaml --count 64K\n"
        "  peal sim allreduce -m machines/torus8x8.yaml --compare allreduce_tree\n",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 0,
    .max_args = 1,
    .run = run,
};
