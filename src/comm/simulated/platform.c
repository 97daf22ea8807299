/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives on a simulated machine.
 *
 * Rank 0 of a group has the machine. A collective is: every rank's input and time go to rank 0 by
 * the host's own collectives; rank 0 launches the plan in the simulator with the data, one launch
 * for each segment that the machine's queues can hold; results and times come back the same way. So
 * the results are those of the simulated plan, to the bit, and all ranks go on at the time when the
 * last has ended.
 *
 * Meanwhile comm->platform is NULL, so that the collectives which this file itself calls run on the
 * host. */
#include "comm/simulated/platform_state.h"

#include "comm/simulated/machine_kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* PEAL_SIM_TRACE=FOLDER: every group writes a file of its own there, a bar for each collective. */
static void trace_begin(struct peal_platform *platform)
{
    const char *folder = getenv("PEAL_SIM_TRACE");
    if (!folder || folder[0] == '\0')
        return;
    platform->trace_folder = folder;
    peal_json_init(&platform->trace_json, &platform->trace, PEAL_JSON_ONE_LINE);
    peal_json_array(&platform->trace_json);
}

void peal_platform_trace(struct peal_platform *platform, const struct peal_arguments *args,
                         uint64_t from, uint64_t to)
{
    if (!platform->trace_folder)
        return;
    struct peal_json *json = &platform->trace_json;
    peal_json_break(json, 0);
    peal_json_object(json);
    peal_json_put_string(json, "name", peal_collective_name(args->collective));
    peal_json_put_string(json, "ph", "X");
    peal_json_put_fixed(json, "ts", (double)from / 1e6, 6);
    peal_json_put_fixed(json, "dur", (double)(to - from) / 1e6, 6);
    peal_json_put_uint(json, "pid", 0);
    peal_json_put_uint(json, "tid", 0);
    peal_json_put_object(json, "args");
    peal_json_put_uint(json, "count", args->count);
    peal_json_put_string(json, "type", peal_dtype_name(args->dtype));
    peal_json_put_uint(json, "root", args->root);
    peal_json_object_end(json);
    peal_json_object_end(json);
}

static void trace_end(struct peal_platform *platform)
{
    char path[4096];
    if (!platform->trace_folder)
        return;
    if (platform->trace.len <= 1) { /* no call was made */
        peal_text_release(&platform->trace);
        return;
    }
    peal_json_array_end(&platform->trace_json);
    peal_text_puts(&platform->trace, "\n");
    snprintf(path, sizeof path, "%s/peal-sim-XXXXXX.json", platform->trace_folder);
    int fd = mkstemps(path, 5);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool written = file && fputs(peal_text_get(&platform->trace), file) >= 0;
    if (file)
        written = fclose(file) == 0 && written;
    else if (fd >= 0)
        close(fd);
    if (!written)
        fprintf(stderr, "peal: cannot write a trace into '%s'\n", platform->trace_folder);
    peal_text_release(&platform->trace);
}

static enum peal_status open_machine(struct peal_platform *platform, const char *path,
                                     uint32_t size, struct peal_text *why)
{
    struct peal_diags diags;
    struct peal_sim_options options = {.data = PEAL_SIM_DATA_FULL};
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_open(path, &diags, &platform->machine);
    if (status == PEAL_OK)
        status = peal_machine_kernels_check(platform->machine, &diags);
    if (status == PEAL_OK)
        status = peal_sim_new(platform->machine, size, &options, &diags, &platform->sim);
    if (status == PEAL_OK && !(platform->plans = peal_machine_plans_new(platform->machine)))
        status = PEAL_NO_MEMORY;
    if (status != PEAL_OK)
        peal_diags_quote(&diags, why);
    else
        trace_begin(platform);
    peal_diags_release(&diags);
    return status;
}

/* The machine file that PEAL_PLATFORM names, or NULL for this host. */
static enum peal_status read_environment(const char **out, struct peal_text *why)
{
    const char *text = getenv("PEAL_PLATFORM");
    *out = NULL;
    if (!text || text[0] == '\0' || strcmp(text, "native") == 0 || strncmp(text, "native:", 7) == 0)
        return PEAL_OK; /* how the workers of the host API run does not concern them */
    if (strncmp(text, "sim:", 4) != 0) {
        peal_text_printf(
            why,
            "PEAL_PLATFORM is 'native' or 'sim:MACHINE' (a file, or a built-in's name), not '%s'",
            text);
        return PEAL_INVALID;
    }
    *out = text + 4;
    return PEAL_OK;
}

static enum peal_status fail_open(struct peal_comm *comm, enum peal_status status,
                                  struct peal_text *why)
{
    peal_comm_fail(comm, status, "%s", peal_text_get(why));
    peal_text_release(why);
    return status;
}

/* The platform of one rank, without the machine. */
static struct peal_platform *new_platform(struct peal_comm *comm, const char *path,
                                          struct peal_clock *clock)
{
    struct peal_platform *platform = calloc(1, sizeof *platform);
    if (!platform)
        return NULL;
    platform->transit = peal_transit_new(path, peal_comm_rank(comm), peal_comm_size(comm), clock);
    if (!platform->transit) {
        free(platform);
        return NULL;
    }
    return platform;
}

static void use(struct peal_comm *comm, struct peal_platform *platform)
{
    comm->platform = platform;
    comm->backend = &peal_backend_machine;
}

/* Collective. */
static enum peal_status open_path(struct peal_comm *comm, const char *path,
                                  struct peal_clock *clock)
{
    struct peal_text why = {0};
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    struct peal_platform *platform = new_platform(comm, path, clock);
    uint64_t status = platform ? PEAL_OK : PEAL_NO_MEMORY;
    if (rank == 0 && platform)
        status = open_machine(platform, path, size, &why);
    enum peal_status shared =
        peal_machine_share(comm, PEAL_CALL_BROADCAST, &status, &status, sizeof status);
    if (shared == PEAL_OK && status != PEAL_OK) {
        if (rank > 0)
            peal_text_puts(&why, "rank 0 cannot use the machine file");
        shared = fail_open(comm, (enum peal_status)status, &why);
    }
    peal_text_release(&why);
    if (shared != PEAL_OK) {
        peal_platform_close(platform);
        return shared;
    }
    use(comm, platform);
    return PEAL_OK;
}

enum peal_status peal_platform_open(struct peal_comm *comm, struct peal_clock *clock)
{
    const char *path;
    struct peal_text why = {0};
    enum peal_status status = read_environment(&path, &why);
    if (status != PEAL_OK)
        return fail_open(comm, status, &why);
    if (path)
        return open_path(comm, path, clock);
    return PEAL_OK;
}

enum peal_status peal_platform_again(const struct peal_platform *platform, struct peal_comm *comm)
{
    if (!platform)
        return PEAL_OK;
    return open_path(comm, peal_transit_path(platform->transit),
                     peal_transit_clock(platform->transit));
}

enum peal_status peal_platform_open_threads(uint32_t size, struct peal_comm **comms)
{
    const char *path;
    struct peal_text why = {0};
    enum peal_status status = read_environment(&path, &why);
    if (status != PEAL_OK)
        return fail_open(comms[0], status, &why);
    if (!path)
        return PEAL_OK;
    for (uint32_t r = 0; r < size; r++) {
        struct peal_platform *platform = new_platform(comms[r], path, NULL);
        if (!platform)
            return fail_open(comms[0], PEAL_NO_MEMORY, &why);
        use(comms[r], platform);
    }
    status = open_machine(comms[0]->platform, path, size, &why);
    return status == PEAL_OK ? PEAL_OK : fail_open(comms[0], status, &why);
}

void peal_platform_close(struct peal_platform *platform)
{
    if (!platform)
        return;
    trace_end(platform);
    peal_timing_free(platform->timing);
    peal_transit_free(platform->transit);
    peal_sim_free(platform->sim);
    peal_machine_plans_free(platform->plans);
    peal_machine_free(platform->machine);
    free(platform);
}

uint64_t peal_platform_time(const struct peal_platform *platform)
{
    return platform ? peal_clock_time(peal_transit_clock(platform->transit)) : 0;
}

/* The launch of one segment of a call: `count` elements of every block, from `first` on. */
struct machine_launch {
    const struct peal_plan *plan;
    uint64_t first, count;
    void **buffers; /* [rank * parameters + parameter] */
    char *memory;   /* of all buffers */
};

/* A call on rank 0: the vectors of all ranks, rank after rank, and its launches. */
struct machine_call {
    struct peal_platform *platform;
    struct peal_comm *comm;
    const struct peal_arguments *args;
    struct peal_call_shape shape; /* of one rank */
    char *in, *out;
    PEAL_VEC(struct machine_launch) launches;
};

static uint32_t count_params(const struct peal_plan *plan)
{
    uint32_t count = 0;
    for (uint64_t b = 0; b < plan->bufs.count; b++)
        count += peal_plan_bufs(plan)[b].kind == PEAL_BUF_PARAM;
    return count;
}

/* Every rank gets memory for every parameter, as much as the plan says. */
static bool supply(struct machine_launch *launch)
{
    const struct peal_plan *plan = launch->plan;
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    uint64_t params = count_params(plan), rows = plan->bufs.count * plan->nranks, bytes = 0;
    uint64_t *at = calloc(rows + 1, sizeof *at);
    launch->buffers = calloc(params * plan->nranks + 1, sizeof *launch->buffers);
    for (uint64_t i = 0; i < rows; i++) {
        uint32_t b = (uint32_t)(i / plan->nranks), r = (uint32_t)(i % plan->nranks);
        uint64_t size = peal_dtype_size((enum peal_dtype)bufs[b].dtype);
        if (!at || bufs[b].kind != PEAL_BUF_PARAM)
            continue;
        at[i] = bytes;
        bytes += peal_size_align(peal_plan_len(plan, r, b) * size, PEAL_LINE);
    }
    launch->memory = calloc(bytes + 1, 1);
    bool made = at && launch->buffers && launch->memory;
    for (uint64_t i = 0; i < rows; i++) {
        const struct peal_buf *buf = &bufs[i / plan->nranks];
        if (made && buf->kind == PEAL_BUF_PARAM)
            launch->buffers[i % plan->nranks * params + buf->param] = launch->memory + at[i];
    }
    free(at);
    return made;
}

/* Copies a rank's part of the segment: its input to where the kernel reads it, or its output from
 * where the kernel wrote it. A kernel that has both in one buffer has the smaller one at this rank's
 * place. */
static void copy_side(const struct machine_call *call, const struct machine_launch *launch,
                      uint32_t rank, bool output)
{
    const struct peal_plan *plan = launch->plan;
    const struct peal_contract_info *info = peal_contract_info((enum peal_contract)plan->contract);
    const struct peal_arguments *args = call->args;
    bool one = plan->contract_in == plan->contract_out;
    uint32_t buf = output ? plan->contract_out : plan->contract_in;
    enum peal_in_place part = output ? PEAL_IN_PLACE_OUT_IS_PART : PEAL_IN_PLACE_IN_IS_PART;
    uint64_t side = output ? call->shape.out : call->shape.in;
    uint64_t element = peal_dtype_size(args->dtype), bytes = launch->count * element;
    if (!peal_side_is_here(output ? info->out : info->in, rank, args->root))
        return;
    char *at = launch->buffers[rank * count_params(plan) + peal_plan_bufs(plan)[buf].param];
    if (one && info->in_place == part)
        at += rank * bytes;
    for (uint64_t first = launch->first; first < side; first += args->count, at += bytes) {
        char *block = (output ? call->out : call->in) + (rank * side + first) * element;
        memcpy(output ? block : at, output ? at : block, bytes);
    }
}

static void copy_sides(const struct machine_call *call, const struct machine_launch *launch,
                       bool output)
{
    const struct peal_plan *plan = launch->plan;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        if (peal_contract_has_data((enum peal_contract)plan->contract) && launch->count > 0)
            copy_side(call, launch, r, output);
    }
}

/* Queues the launch of one segment on the simulation. */
static enum peal_status launch(struct machine_call *call, uint64_t first, uint64_t count,
                               const uint64_t *now)
{
    struct peal_comm *comm = call->comm;
    struct machine_launch made = {.first = first, .count = count};
    struct peal_diags diags;
    enum peal_status status =
        peal_machine_plans_get(call->platform->plans, comm, call->args, count, &made.plan);
    if (status != PEAL_OK)
        return status;
    bool supplied = supply(&made);
    if (!peal_vec_push(&call->launches, made) || !supplied)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a launch");
    copy_sides(call, &made, false);
    struct peal_sim_args launched = {.buffers = made.buffers, .not_before = now};
    peal_diags_init(&diags);
    status = peal_sim_launch(call->platform->sim, made.plan, &launched, &diags);
    peal_diags_release(&diags);
    return status;
}

/* The run stopped short; `plan` is that of its segments. */
static enum peal_status fail_deadlock(struct peal_platform *platform, struct peal_comm *comm,
                                      const struct peal_plan *plan)
{
    struct peal_text why = {0};
    if (peal_machine_plans_wants_slots(platform->plans, plan))
        peal_text_printf(
            &why, "a deadlock for want of slots: with more than ipcq.slots=%llu it would end\n",
            (unsigned long long)platform->machine->keys.slots);
    peal_sim_deadlock_print(platform->sim, &why);
    enum peal_status status = peal_comm_fail(comm, PEAL_UNSUPPORTED, "%s", peal_text_get(&why));
    peal_text_release(&why);
    return status;
}

static enum peal_status run_launches(struct machine_call *call)
{
    struct peal_sim *sim = call->platform->sim;
    enum peal_status status = peal_sim_run(sim);
    if (status != PEAL_OK)
        return status;
    if (peal_sim_deadlock(sim))
        return fail_deadlock(call->platform, call->comm, call->launches.at[0].plan);
    status = peal_sim_sync(sim);
    for (size_t i = 0; i < call->launches.len; i++) {
        if (status == PEAL_OK)
            copy_sides(call, &call->launches.at[i], true);
    }
    return status;
}

/* Rank 0: the data of all ranks, in two arrays, through as many launches as the call is cut
 * into; and when each rank comes. */
static enum peal_status simulate(struct peal_platform *platform, struct peal_comm *comm,
                                 const struct peal_arguments *args, char *inputs, char *outputs,
                                 const uint64_t *now)
{
    struct machine_call call = {
        .platform = platform,
        .comm = comm,
        .args = args,
        .shape = peal_call_shape(args->collective, args->count, peal_comm_size(comm)),
        .in = inputs,
        .out = outputs};
    uint64_t segment, first = 0;
    enum peal_status status = peal_machine_plans_segment(platform->plans, comm, args, &segment);
    /* A kernel may have no plan for the rest: that is known before anything is launched. */
    const struct peal_plan *rest;
    if (status == PEAL_OK && segment < args->count && args->count % segment)
        status = peal_machine_plans_get(platform->plans, comm, args, args->count % segment, &rest);
    if (status != PEAL_OK)
        return status;
    do { /* once, even if there are no elements */
        uint64_t count = peal_size_min(segment, args->count - first);
        status = launch(&call, first, count, now);
        first += count;
    } while (first < args->count && status == PEAL_OK);
    if (status == PEAL_OK)
        status = run_launches(&call);
    for (size_t i = 0; i < call.launches.len; i++) {
        free(call.launches.at[i].buffers);
        free(call.launches.at[i].memory);
    }
    peal_vec_release(&call.launches);
    return status;
}

/* What each rank calls, and when it comes. */
struct ticket {
    uint64_t time, code, count;
};

/* All ranks see the same tickets, and so the same fault. */
static enum peal_status check_tickets(struct peal_comm *comm, const struct ticket *tickets,
                                      uint32_t size)
{
    for (uint32_t r = 1; r < size; r++) {
        if (tickets[r].code == tickets[0].code && tickets[r].count == tickets[0].count)
            continue;
        struct peal_text why = {0};
        peal_text_printf(&why, "mismatch: rank %u calls ", r);
        peal_collective_describe(tickets[r].code, tickets[r].count, &why);
        peal_text_puts(&why, ", rank 0 calls ");
        peal_collective_describe(tickets[0].code, tickets[0].count, &why);
        peal_comm_fail(comm, PEAL_MISMATCH, "%s", peal_text_get(&why));
        peal_text_release(&why);
        return PEAL_MISMATCH;
    }
    return PEAL_OK;
}

static uint64_t earliest(const uint64_t *times, uint32_t size)
{
    uint64_t time = times[0];
    for (uint32_t r = 1; r < size; r++)
        time = peal_size_min(time, times[r]);
    return time;
}

enum peal_status peal_machine_call(struct peal_comm *comm, const struct peal_arguments *args)
{
    struct peal_platform *platform = comm->platform;
    uint32_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    struct peal_call_shape shape = peal_call_shape(args->collective, args->count, size);
    uint64_t element = peal_dtype_size(args->dtype);
    uint64_t in = shape.in * element, out = shape.out * element;
    bool root_only = args->collective == PEAL_CALL_REDUCE || args->collective == PEAL_CALL_GATHER;
    char *inputs = rank == 0 ? calloc(in * size + 1, 1) : NULL;
    char *outputs = rank == 0 ? calloc(out * size + 1, 1) : NULL;
    /* In place of buffers that a rank does not have: scatter's x, reduce's y, ... */
    char *own = calloc(in + out + 1, 1);
    uint64_t times[PEAL_MOST_RANKS];
    struct ticket ticket = {.time = peal_platform_time(platform),
                            .code = peal_call_code(args->collective, (uint32_t)args->dtype,
                                                   (uint32_t)args->reduce, args->root),
                            .count = args->count};
    struct ticket tickets[PEAL_MOST_RANKS];
    struct {
        uint64_t status, time;
    } answer = {PEAL_OK, 0};
    enum peal_status status = PEAL_NO_MEMORY;
    if (!own || (rank == 0 && (!inputs || !outputs)))
        goto release;
    if (args->send && in)
        memcpy(own, args->send, in);
    status = peal_machine_share(comm, PEAL_CALL_ALLGATHER, &ticket, tickets, sizeof ticket);
    if (status == PEAL_OK)
        status = check_tickets(comm, tickets, size);
    if (status == PEAL_OK)
        status = peal_machine_share(comm, PEAL_CALL_GATHER, own, inputs, in);
    if (status != PEAL_OK)
        goto release;
    if (rank == 0) {
        for (uint32_t r = 0; r < size; r++)
            times[r] = tickets[r].time;
        answer.status = simulate(platform, comm, args, inputs, outputs, times);
        answer.time = peal_sim_stats(platform->sim)->time;
        if (answer.status == PEAL_OK)
            peal_platform_trace(platform, args, earliest(times, size), answer.time);
    }
    status = peal_machine_share(comm, PEAL_CALL_BROADCAST, &answer, &answer, sizeof answer);
    if (status == PEAL_OK && answer.status != PEAL_OK) {
        status = (enum peal_status)answer.status;
        if (rank > 0)
            peal_comm_fail(comm, status, "%s cannot run on the modelled machine: see rank 0",
                           peal_collective_name(args->collective));
    }
    if (status == PEAL_OK)
        status = peal_machine_share(comm, PEAL_CALL_SCATTER, outputs, own, out);
    if (status != PEAL_OK)
        goto release;
    bool has_none = args->collective == PEAL_CALL_EXSCAN && rank == 0;
    if (out && !has_none && (!root_only || rank == args->root))
        memcpy(args->recv, own, out);
    peal_platform_advance(platform, answer.time);
release:
    free(inputs);
    free(outputs);
    free(own);
    return status;
}

static enum peal_status run_on_machine(struct peal_comm *comm, const struct peal_arguments *args,
                                       const void *send)
{
    (void)send;
    return args->counts ? peal_machine_call_uneven(comm, args) : peal_machine_call(comm, args);
}

const struct peal_backend peal_backend_machine = {.run = run_on_machine,
                                                  .exchange = peal_machine_exchange,
                                                  .start = peal_arrival_new,
                                                  .launched = peal_machine_launched};

enum peal_status peal_platform_send(struct peal_platform *platform, struct peal_comm *comm,
                                    uint32_t to, uint64_t bytes, struct peal_stamp *out)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status =
        peal_transit_send(platform->transit, to, bytes, &diags, &out->sent, &out->arrives);
    if (status != PEAL_OK) {
        struct peal_text why = {0};
        peal_diags_quote(&diags, &why);
        peal_comm_fail(comm, status, "a message of %llu bytes on the simulated machine: %s",
                       (unsigned long long)bytes, peal_text_get(&why));
        peal_text_release(&why);
    }
    peal_diags_release(&diags);
    return status;
}

void peal_platform_advance(struct peal_platform *platform, uint64_t time)
{
    peal_clock_advance(peal_transit_clock(platform->transit), time);
}
