/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one simulation, and reads the options that sim and sweep have in common. */
#include "cli/sim/sim_job.h"

#include "cli/import/import_args.h"
#include "cli/run/ranks.h"
#include "comm/comm.h"
#include "lang/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    return 1e-9 * (double)peal_now_ns();
}

/* Large machines: the plan of all ranks would need gigabytes. */
enum { STREAM_RANKS = 1024 };

static void enter(const struct peal_sim_job *job, enum peal_sim_phase phase)
{
    struct peal_sim_follow *follow = job->follow;
    if (!follow)
        return;
    /* relaxed, here and where it is read: numbers for display, which may belong to the previous
     * phase for an instant */
    atomic_store_explicit(&follow->pace.made, 0, memory_order_relaxed);
    atomic_store_explicit(&follow->pace.total, 0, memory_order_relaxed);
    atomic_store_explicit(&follow->pace.ops, 0, memory_order_relaxed);
    atomic_store_explicit(&follow->pace.events, 0, memory_order_relaxed);
    atomic_store_explicit(&follow->phase, phase, memory_order_relaxed);
}

static enum peal_status launch_stream(struct peal_sim_job *job, struct peal_sim *sim)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t threads = job->threads;
    if (!threads)
        threads = processors > 0 ? (uint32_t)processors : 1;
    return peal_sim_launch_kernel(sim, job->kernel, &job->bind, threads, &job->diags);
}

/* True if the job was run without ever holding its plan; job->plan then has only its tables, and
 * belongs to the simulation. */
static bool simulate_stream(struct peal_sim_job *job)
{
    double began = seconds();
    if (!job->kernel || job->bind.nranks < STREAM_RANKS || job->options.data || job->options.log ||
        job->launches != 1)
        return false;
    enter(job, PEAL_PHASE_RANKS);
    job->status =
        peal_sim_new(job->machine, job->bind.nranks, &job->options, &job->diags, &job->sim);
    if (job->status == PEAL_OK)
        job->status = launch_stream(job, job->sim);
    if (job->status == PEAL_UNSUPPORTED) {
        peal_sim_free(job->sim);
        job->sim = NULL;
        peal_diags_release(&job->diags);
        peal_diags_init(&job->diags);
        return false;
    }
    job->plan_seconds = seconds() - began;
    if (job->status == PEAL_OK) {
        job->streamed = true;
        job->plan = (struct peal_plan *)peal_sim_launch_plan(job->sim, 0);
        peal_bound_find(job->machine, job->plan, &job->bound);
        enter(job, PEAL_PHASE_RUN);
        job->status = peal_sim_run(job->sim);
    }
    job->seconds = seconds() - began - job->plan_seconds;
    return true;
}

/* One more run, with this many slots: the largest number in use, 0 if it deadlocks or fails. It is
 * strict: a sender that runs ahead may not know about a slot that has come back, and would then
 * count one more. */
static uint32_t run_again(struct peal_sim_job *job, uint32_t depth)
{
    struct peal_sim *sim = NULL;
    struct peal_sim_options options = {
        .depth = depth, .pace = job->options.pace, .strict = !job->streamed};
    uint32_t used = 0;
    enum peal_status status;
    if (job->streamed) {
        status = peal_sim_new(job->machine, job->plan->nranks, &options, &job->diags, &sim);
        enter(job, PEAL_PHASE_SLOT_RANKS);
        if (status == PEAL_OK)
            status = launch_stream(job, sim);
        enter(job, PEAL_PHASE_SLOT_RUN);
        if (status == PEAL_OK)
            status = peal_sim_run(sim);
    } else {
        struct peal_sim_turns turns = {.options = &options, .launches = job->launches};
        const struct peal_plan *plan = job->parts[0] ? job->parts[0] : job->plan;
        enter(job, PEAL_PHASE_SLOT_RUN);
        status = peal_sim_run_plan(job->machine, plan, &turns, &job->diags, &sim);
    }
    if (status == PEAL_OK && !peal_sim_deadlock(sim))
        used = peal_sim_stats(sim)->slots_used;
    peal_sim_free(sim);
    return used;
}

/* The fewest slots without a deadlock. More slots never hurt, so bisection finds them. */
static uint32_t fewest_slots(struct peal_sim_job *job)
{
    uint32_t bad = peal_plan_channels(job->plan)[0].depth, good = job->slots_needed;
    while (good > bad + 1) {
        uint32_t middle = bad + (good - bad) / 2;
        if (run_again(job, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* A second run in which no send ever waits: what it used is what is needed. */
static void find_slots(struct peal_sim_job *job)
{
    const struct peal_sim_stats *stats = peal_sim_stats(job->sim);
    bool waited = stats->credit_stalls || peal_sim_deadlock(job->sim);
    job->slots_used = stats->slots_used;
    if ((job->options.strict || job->streamed) && !waited) {
        job->slots_needed = stats->slots_used;
        return;
    }
    if (job->plan->channels.count == 0)
        return;
    job->slots_needed = run_again(job, PEAL_NONE);
    if (!waited && job->slots_needed)
        job->slots_used = job->slots_needed; /* the two runs are the same */
    if (peal_sim_deadlock(job->sim) && job->slots_needed && !job->streamed)
        job->slots_enough = fewest_slots(job);
}

/* In place, a later launch starts from the earlier one's result. */
static bool starts_from_result(const struct peal_sim_job *job)
{
    const struct peal_plan *plan = job->plan;
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    if (job->launches == 1 || plan->contract_in == PEAL_NONE || plan->contract_out == PEAL_NONE)
        return false;
    return plan->contract_in == plan->contract_out || bufs[plan->contract_in].alias != PEAL_NONE ||
           bufs[plan->contract_out].alias != PEAL_NONE;
}

static void simulate(struct peal_sim_job *job)
{
    struct peal_job_data *data = NULL;
    struct peal_sim_args args = {0};
    if (job->options.data) {
        data = peal_job_data_new(job->plan);
        if (!data) {
            job->status = PEAL_NO_MEMORY;
            peal_diag_error(&job->diags, (struct peal_pos){0},
                            "the data of all ranks does not fit; use --set data.mode=off");
            return;
        }
        args.buffers = peal_job_data_buffers(data);
    }
    double began = seconds();
    enter(job, PEAL_PHASE_RUN);
    struct peal_sim_turns turns = {&job->options, &args, job->launches};
    job->status = peal_sim_run_plan(job->machine, job->plan, &turns, &job->diags, &job->sim);
    job->seconds = seconds() - began;
    if (job->status == PEAL_OK && data && !peal_sim_deadlock(job->sim)) {
        enter(job, PEAL_PHASE_DATA);
        job->status = peal_sim_sync(job->sim);
        if (job->status == PEAL_OK && !starts_from_result(job))
            job->check = peal_job_data_check(data, job->sim, job->wrong, sizeof job->wrong);
        job->has_data = job->status == PEAL_OK;
        if (job->find_hash)
            job->data_hash = peal_job_data_hash(data);
    }
    peal_job_data_free(data);
}

/* Does a lane wait for a slot? */
static bool lacks_slots(const struct peal_sim_job *job)
{
    const struct peal_sim_deadlock *deadlock = job->sim ? peal_sim_deadlock(job->sim) : NULL;
    for (uint32_t i = 0; deadlock && i < deadlock->blocked; i++) {
        if (deadlock->lanes[i].full)
            return true;
    }
    return false;
}

/* The plan of a part of the call. */
static enum peal_status make_part(struct peal_sim_job *job, int64_t count, struct peal_plan **out)
{
    struct peal_bind bind = job->bind;
    struct peal_bind_value *values = malloc((bind.nvalues + 1) * sizeof *values);
    if (!values)
        return PEAL_NO_MEMORY;
    for (size_t i = 0; i < bind.nvalues; i++) {
        values[i] = bind.values[i];
        if (values[i].count == 1 && values[i].values[0] == job->may_cut)
            values[i].values = &count;
    }
    bind.values = values;
    enum peal_status status = peal_instantiate(job->kernel, &bind, &job->diags, out);
    free(values);
    return status;
}

/* The largest half of a half ... of the call of which two launches in a row end. 0: there is none. */
static int64_t find_segment(struct peal_sim_job *job)
{
    struct peal_sim_options options = {.data = PEAL_SIM_DATA_OFF};
    struct peal_sim_turns twice = {.options = &options, .launches = 2};
    for (int64_t count = job->may_cut; count > 1;) {
        struct peal_sim *sim = NULL;
        count -= count / 2;
        enum peal_status status = make_part(job, count, &job->parts[0]);
        if (status == PEAL_OK)
            status = peal_sim_run_plan(job->machine, job->parts[0], &twice, &job->diags, &sim);
        bool ends = status == PEAL_OK && !peal_sim_deadlock(sim);
        peal_sim_free(sim);
        if (ends)
            return count;
        free(job->parts[0]);
        job->parts[0] = NULL;
        if (status != PEAL_OK)
            break;
    }
    return 0;
}

/* The data of each launch, which is checked for itself. */
static enum peal_status run_segments(struct peal_sim_job *job, struct peal_job_data **data)
{
    enum peal_status status =
        peal_sim_new(job->machine, job->bind.nranks, &job->options, &job->diags, &job->sim);
    for (uint64_t i = 0; i < job->segments && status == PEAL_OK; i++) {
        const struct peal_plan *plan = job->parts[i + 1 == job->segments && job->parts[1]];
        struct peal_sim_args args = {0};
        if (job->options.data && !(data[i] = peal_job_data_new(plan)))
            return PEAL_NO_MEMORY;
        if (data[i])
            args.buffers = peal_job_data_buffers(data[i]);
        status = peal_sim_launch(job->sim, plan, &args, &job->diags);
    }
    if (status == PEAL_OK)
        status = peal_sim_run(job->sim);
    if (status != PEAL_OK || !job->options.data || peal_sim_deadlock(job->sim))
        return status;
    enter(job, PEAL_PHASE_DATA);
    status = peal_sim_sync(job->sim);
    for (uint64_t i = 0; i < job->segments && status == PEAL_OK; i++) {
        if (job->check != PEAL_CHECK_WRONG)
            job->check = peal_job_data_check(data[i], job->sim, job->wrong, sizeof job->wrong);
        job->data_hash = peal_hash_u64(peal_job_data_hash(data[i]), job->data_hash + i);
    }
    job->has_data = status == PEAL_OK;
    return status;
}

/* The whole call has deadlocked for lack of slots: it is run again in segments, if some size of them
 * ends. */
static void simulate_segments(struct peal_sim_job *job)
{
    double began = seconds();
    int64_t segment = find_segment(job);
    if (segment == 0)
        return;
    int64_t rest = job->may_cut % segment;
    job->segment = segment;
    job->segments = (uint64_t)(job->may_cut / segment + (rest != 0));
    if (rest)
        job->status = make_part(job, rest, &job->parts[1]);
    peal_sim_free(job->sim);
    job->sim = NULL;
    struct peal_job_data **data = calloc(job->segments, sizeof *data);
    enter(job, PEAL_PHASE_RUN);
    if (!data)
        job->status = PEAL_NO_MEMORY;
    if (job->status == PEAL_OK)
        job->status = run_segments(job, data);
    if (job->status == PEAL_NO_MEMORY)
        peal_diag_error(&job->diags, (struct peal_pos){0},
                        "the data of all ranks does not fit; use --set data.mode=off");
    for (uint64_t i = 0; data && i < job->segments; i++)
        peal_job_data_free(data[i]);
    free(data);
    job->seconds += seconds() - began;
}

void peal_sim_job_run(struct peal_sim_job *job)
{
    double began = seconds();
    peal_diags_init(&job->diags);
    job->segments = 1;
    job->options.pace = NULL;
    if (job->follow)
        job->options.pace = &job->follow->pace;
    if (simulate_stream(job)) {
        if (job->status == PEAL_OK && job->find_slots)
            find_slots(job);
        return;
    }
    enter(job, PEAL_PHASE_PLAN);
    if (job->kernel)
        job->status = peal_instantiate(job->kernel, &job->bind, &job->diags, &job->plan);
    job->plan_seconds = seconds() - began;
    if (job->status != PEAL_OK)
        return;
    peal_bound_find(job->machine, job->plan, &job->bound);
    simulate(job);
    bool is_cut = job->status == PEAL_OK && job->may_cut > 1 && job->launches == 1 && job->kernel &&
                  job->plan->contract != PEAL_CONTRACT_NONE && lacks_slots(job);
    if (is_cut)
        simulate_segments(job);
    if (job->status == PEAL_OK && job->find_slots)
        find_slots(job);
}

void peal_sim_job_drop(struct peal_sim_job *job)
{
    peal_sim_free(job->sim);
    if (!job->streamed)
        free(job->plan);
    free(job->parts[0]);
    free(job->parts[1]);
    job->sim = NULL;
    job->plan = job->parts[0] = job->parts[1] = NULL;
}

void peal_sim_job_release(struct peal_sim_job *job)
{
    peal_sim_job_drop(job);
    peal_diags_release(&job->diags);
}

static bool is_machine_key(const struct peal_pair *pair)
{
    return strchr(pair->key, '.') != NULL;
}

char *peal_sim_setting(struct peal_arena *arena, const struct peal_pair *pair)
{
    size_t size = strlen(pair->key) + strlen(pair->value) + 2;
    char *setting = peal_arena_alloc(arena, size);
    if (setting)
        snprintf(setting, size, "%s=%s", pair->key, pair->value);
    return setting;
}

/* Splits --set. False after a message. */
static bool apply_settings(const struct peal_cli *cli, const struct peal_kernel_options *options,
                           struct peal_sim_setup *out, int *code)
{
    size_t count = options->set.len;
    const char **list = peal_arena_alloc(cli->arena, (count + 1) * sizeof *list);
    struct peal_pair *kept = peal_arena_alloc(cli->arena, (count + 1) * sizeof *kept);
    struct peal_diags diags;
    if (!list || !kept) {
        *code = peal_cli_fail(cli, "out of memory");
        return false;
    }
    out->kernel_options = *options;
    out->kernel_options.set = (struct peal_pairs){.at = kept, .len = 0};
    for (size_t i = 0; i < count; i++) {
        const struct peal_pair *pair = &options->set.at[i];
        if (!is_machine_key(pair)) {
            kept[out->kernel_options.set.len++] = *pair;
            continue;
        }
        list[out->nsettings] = peal_sim_setting(cli->arena, pair);
        if (!list[out->nsettings++]) {
            *code = peal_cli_fail(cli, "out of memory");
            return false;
        }
    }
    out->settings = list;
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_set(out->machine, list, out->nsettings, &diags);
    if (status != PEAL_OK)
        peal_cli_diags(cli, status, &diags), *code = PEAL_EXIT_USAGE;
    peal_diags_release(&diags);
    return status == PEAL_OK;
}

/* Is the argument a collective, for which the machine has an algorithm? */
static bool is_collective(const char *argument, enum peal_contract *out)
{
    /* all_to_all_v is also the name of a kernel. */
    return peal_contract_find(argument, strlen(argument), out) &&
           !peal_contract_info(*out)->has_matrix;
}

/* "allreduce" is the machine's algorithm for it. NULL after a message. */
static const struct peal_kernel *
open_machines(const struct peal_cli *cli, enum peal_contract contract, struct peal_sim_setup *out)
{
    const struct peal_kernel *kernel = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status =
        peal_machine_kernel_open(out->machine, contract, &diags, &out->program, &kernel);
    if (status != PEAL_OK)
        peal_cli_diags(cli, status, &diags);
    peal_diags_release(&diags);
    return status == PEAL_OK ? kernel : NULL;
}

static bool check_algorithms(const struct peal_cli *cli, const struct peal_machine *machine,
                             int *code)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_kernels_check(machine, &diags);
    if (status != PEAL_OK)
        *code = peal_cli_diags(cli, status, &diags);
    peal_diags_release(&diags);
    return status == PEAL_OK;
}

bool peal_sim_setup_open(const struct peal_cli *cli, const char *argument, const char *machine_path,
                         const struct peal_kernel_options *options, struct peal_sim_setup *out,
                         int *code)
{
    struct peal_diags diags;
    *out = (struct peal_sim_setup){0};
    if (!machine_path)
        machine_path = peal_ranks_machine();
    if (!machine_path) {
        *code = peal_cli_usage(cli, "a machine is needed: -m FILE, -m NAME, or "
                                    "PEAL_PLATFORM=sim:NAME");
        return false;
    }
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_open(machine_path, &diags, &out->machine);
    if (status != PEAL_OK)
        *code = peal_cli_diags(cli, status, &diags);
    peal_diags_release(&diags);
    if (status != PEAL_OK)
        return false;
    if (!apply_settings(cli, options, out, code) || !check_algorithms(cli, out->machine, code)) {
        peal_sim_setup_close(out);
        return false;
    }
    if (!argument)
        return true;
    if (peal_import_names_file(argument)) {
        out->file = argument;
        return true;
    }
    enum peal_contract contract;
    if (is_collective(argument, &contract) && !options->kernel)
        out->kernel = open_machines(cli, contract, out);
    else
        out->kernel = peal_kernel_open(cli, argument, &out->kernel_options, &out->program);
    if (!out->kernel) {
        *code = PEAL_EXIT_OTHER;
        peal_sim_setup_close(out);
        return false;
    }
    return true;
}

void peal_sim_setup_close(struct peal_sim_setup *setup)
{
    peal_machine_free(setup->machine);
    peal_program_close(setup->program);
    *setup = (struct peal_sim_setup){0};
}

bool peal_sim_setup_bind(const struct peal_cli *cli, const struct peal_sim_setup *setup,
                         const struct peal_machine *machine, uint32_t nranks, int64_t count,
                         struct peal_bind *out)
{
    if (!peal_kernel_bind(cli, setup->kernel, &setup->kernel_options, nranks, count, out))
        return false;
    if (!peal_machine_kernel_seat(machine, setup->kernel, NULL, cli->arena, out)) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    out->symmetric = true;
    if (!setup->kernel_options.depth)
        out->channel_depth = (uint32_t)machine->keys.slots;
    if (!setup->kernel_options.slot_bytes)
        out->slot_bytes = machine->keys.slot_bytes;
    return true;
}
