/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives on a simulated machine. */
#include "comm/simulated/platform.h"

#include "lang/lang.h"
#include "comm/simulated/transit.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A plan made once for calls that look alike; kept, because the simulation borrows it. */
struct made_plan {
    enum peal_collective collective;
    uint64_t count;
    enum peal_dtype dtype;
    enum peal_reduce reduce;
    uint32_t root;
    struct peal_plan *plan;
};

struct peal_platform {
    struct peal_transit *transit; /* messages, and this rank's clock */
    /* On rank 0 only: */
    struct peal_machine *machine;
    struct peal_sim *sim;
    PEAL_VEC(struct made_plan) plans;
    const char *trace_folder; /* or NULL */
    struct peal_text trace;   /* Chrome trace JSON, so far */
};

/* What a call moves, in elements: how much of x and y each rank has, and n of the kernel. */
struct shape {
    uint64_t in, out, n;
};

static struct shape shape_of(const struct peal_arguments *args, uint32_t size)
{
    uint64_t one = args->count, all = args->count * size;
    switch (args->collective) {
    case PEAL_CALL_ALLGATHER:
    case PEAL_CALL_GATHER:
        return (struct shape){one, all, all};
    case PEAL_CALL_REDUCE_SCATTER:
    case PEAL_CALL_SCATTER:
        return (struct shape){all, one, all};
    case PEAL_CALL_ALL_TO_ALL:
        return (struct shape){all, all, all};
    case PEAL_CALL_BARRIER:
        return (struct shape){0, 0, 0};
    default:
        return (struct shape){one, one, one};
    }
}

/* The kernel a collective stands for: the machine's algorithm where there is one of that name. */
static const char *const fallback[] = {
    [PEAL_CALL_BARRIER] = "barrier_dissemination",
    [PEAL_CALL_ALLREDUCE] = "allreduce_chunked",
    [PEAL_CALL_REDUCE] = "reduce_binomial",
    [PEAL_CALL_BROADCAST] = "broadcast_binomial",
    [PEAL_CALL_ALLGATHER] = "allgather_ring",
    [PEAL_CALL_REDUCE_SCATTER] = "reduce_scatter_ring",
    [PEAL_CALL_GATHER] = "gather_flat",
    [PEAL_CALL_SCATTER] = "scatter_flat",
    [PEAL_CALL_ALL_TO_ALL] = "all_to_all_pairwise",
};

bool peal_platform_takes(const struct peal_platform *platform, const struct peal_arguments *args)
{
    uint32_t even = peal_collective_even(args->collective);
    return platform && even < sizeof fallback / sizeof *fallback && fallback[even];
}

/* PEAL_SIM_TRACE=FOLDER: every group writes a file of its own there, a bar for each collective. */
static void trace_begin(struct peal_platform *platform)
{
    const char *folder = getenv("PEAL_SIM_TRACE");
    if (!folder || folder[0] == '\0')
        return;
    platform->trace_folder = folder;
    peal_text_puts(&platform->trace, "[");
}

static void trace_call(struct peal_platform *platform, const struct peal_arguments *args,
                       uint64_t from, uint64_t to)
{
    if (!platform->trace_folder)
        return;
    const char *kernel = fallback[args->collective];
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(strrchr(kernel, '_') - kernel), kernel);
    /* Names of kernels and types are identifiers: nothing to escape. */
    peal_text_printf(
        &platform->trace,
        "%s\n{\"name\": \"%s\", \"ph\": \"X\", \"ts\": %.6f, \"dur\": %.6f, \"pid\": 0, "
        "\"tid\": 0, \"args\": {\"count\": %" PRIu64 ", \"type\": \"%s\", \"root\": %u}}",
        platform->trace.len > 1 ? "," : "", name, (double)from / 1e6, (double)(to - from) / 1e6,
        args->count, peal_dtype_name(args->dtype), args->root);
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
    peal_text_puts(&platform->trace, "\n]\n");
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
        status = peal_sim_new(platform->machine, size, &options, &diags, &platform->sim);
    if (status != PEAL_OK)
        peal_diags_print(&diags, false, why);
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
        return PEAL_OK; /* how a host's workers run is no matter of theirs */
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

/* One rank's, without the machine. */
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

/* Collective. */
static enum peal_status open_path(struct peal_comm *comm, const char *path,
                                  struct peal_clock *clock, struct peal_platform **out)
{
    struct peal_text why = {0};
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    struct peal_platform *platform = new_platform(comm, path, clock);
    uint64_t status = platform ? PEAL_OK : PEAL_NO_MEMORY;
    if (rank == 0 && platform)
        status = open_machine(platform, path, size, &why);
    enum peal_status shared = peal_broadcast(comm, &status, 1, PEAL_I64, 0);
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
    *out = platform;
    return PEAL_OK;
}

enum peal_status peal_platform_open(struct peal_comm *comm, struct peal_clock *clock,
                                    struct peal_platform **out)
{
    const char *path;
    struct peal_text why = {0};
    *out = NULL;
    enum peal_status status = read_environment(&path, &why);
    if (status != PEAL_OK)
        return fail_open(comm, status, &why);
    return path ? open_path(comm, path, clock, out) : PEAL_OK;
}

enum peal_status peal_platform_again(const struct peal_platform *platform, struct peal_comm *comm,
                                     struct peal_platform **out)
{
    *out = NULL;
    if (!platform)
        return PEAL_OK;
    return open_path(comm, peal_transit_path(platform->transit),
                     peal_transit_clock(platform->transit), out);
}

enum peal_status peal_platform_open_threads(uint32_t size, struct peal_comm **comms)
{
    const char *path;
    struct peal_text why = {0};
    enum peal_status status = read_environment(&path, &why);
    for (uint32_t r = 0; status == PEAL_OK && path && r < size; r++) {
        comms[r]->platform = new_platform(comms[r], path, NULL);
        if (!comms[r]->platform)
            status = PEAL_NO_MEMORY;
        else if (r == 0)
            status = open_machine(comms[r]->platform, path, size, &why);
    }
    return status == PEAL_OK ? PEAL_OK : fail_open(comms[0], status, &why);
}

void peal_platform_close(struct peal_platform *platform)
{
    if (!platform)
        return;
    trace_end(platform);
    peal_transit_free(platform->transit);
    peal_sim_free(platform->sim);
    peal_machine_free(platform->machine);
    for (size_t i = 0; i < platform->plans.len; i++)
        free(platform->plans.at[i].plan);
    peal_vec_release(&platform->plans);
    free(platform);
}

uint64_t peal_platform_time(const struct peal_platform *platform)
{
    return platform ? peal_clock_time(peal_transit_clock(platform->transit)) : 0;
}

static enum peal_status make_plan(struct peal_platform *platform, struct peal_comm *comm,
                                  const struct peal_arguments *args, struct peal_plan **out)
{
    struct peal_diags diags;
    struct peal_program *program = NULL;
    char name[64];
    const char *builtin = fallback[args->collective];
    int prefix = (int)(strrchr(builtin, '_') - builtin);
    if (strncmp(builtin, "all_to_all", 10) == 0)
        prefix = 10;
    snprintf(name, sizeof name, "%.*s_%s", prefix, builtin, platform->machine->keys.algorithm);
    peal_diags_init(&diags);
    enum peal_status status = peal_program_open(name, NULL, &program);
    if (status != PEAL_OK)
        status = peal_program_open(builtin, &diags, &program);
    const struct peal_kernel *kernel =
        status == PEAL_OK ? peal_program_kernel(program, NULL, &diags) : NULL;
    int64_t n = (int64_t)shape_of(args, peal_comm_size(comm)).n;
    struct peal_bind_value value = {"n", &n, 1, false};
    struct peal_bind bind = {
        .nranks = peal_comm_size(comm),
        .rank = PEAL_NONE,
        .dtype = args->dtype,
        .reduce = args->reduce,
        .root = args->root,
        .values = &value,
        .nvalues = 1,
        .channel_depth = (uint32_t)platform->machine->keys.slots,
        .slot_bytes = platform->machine->keys.slot_bytes,
    };
    status = kernel ? peal_instantiate(kernel, &bind, &diags, out) : PEAL_INVALID;
    if (status != PEAL_OK) {
        struct peal_text why = {0};
        peal_diags_print(&diags, false, &why);
        peal_comm_fail(comm, status, "%s", peal_text_get(&why));
        peal_text_release(&why);
    }
    peal_program_close(program);
    peal_diags_release(&diags);
    return status;
}

static enum peal_status find_plan(struct peal_platform *platform, struct peal_comm *comm,
                                  const struct peal_arguments *args, const struct peal_plan **out)
{
    for (size_t i = 0; i < platform->plans.len; i++) {
        const struct made_plan *made = &platform->plans.at[i];
        if (made->collective == args->collective && made->count == args->count &&
            made->dtype == args->dtype && made->reduce == args->reduce &&
            made->root == args->root) {
            *out = made->plan;
            return PEAL_OK;
        }
    }
    struct made_plan made = {args->collective, args->count, args->dtype,
                             args->reduce,     args->root,  NULL};
    enum peal_status status = make_plan(platform, comm, args, &made.plan);
    if (status != PEAL_OK)
        return status;
    if (!peal_vec_push(&platform->plans, made)) {
        free(made.plan);
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a plan");
    }
    *out = made.plan;
    return PEAL_OK;
}

/* Rank 0: one launch with everyone's data, all of it in two arrays; and when each rank comes. */
static enum peal_status simulate(struct peal_platform *platform, struct peal_comm *comm,
                                 const struct peal_arguments *args, char *inputs, char *outputs,
                                 const uint64_t *now)
{
    uint32_t size = peal_comm_size(comm);
    struct shape shape = shape_of(args, size);
    uint64_t element = peal_dtype_size(args->dtype);
    const struct peal_plan *plan = NULL;
    enum peal_status status = find_plan(platform, comm, args, &plan);
    if (status != PEAL_OK)
        return status;
    uint32_t nparams = plan->contract_out == PEAL_NONE ? 0 : 2;
    void **buffers = calloc((size_t)size * 2 + 1, sizeof *buffers);
    if (!buffers)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a launch");
    for (uint32_t r = 0; r < size && nparams; r++) {
        buffers[r * 2] = inputs + r * shape.in * element;
        buffers[r * 2 + 1] = outputs + r * shape.out * element;
    }
    struct peal_sim_args launch = {.buffers = buffers, .not_before = now};
    struct peal_diags diags;
    peal_diags_init(&diags);
    status = peal_sim_launch(platform->sim, plan, &launch, &diags);
    if (status == PEAL_OK)
        status = peal_sim_run(platform->sim);
    if (status == PEAL_OK && peal_sim_deadlock(platform->sim)) {
        struct peal_text why = {0};
        peal_sim_deadlock_print(platform->sim, &why);
        status = peal_comm_fail(comm, PEAL_TIMEOUT, "%s", peal_text_get(&why));
        peal_text_release(&why);
    }
    if (status == PEAL_OK)
        status = peal_sim_sync(platform->sim);
    peal_diags_release(&diags);
    free(buffers);
    return status;
}

/* What each rank calls, and when it comes. */
struct ticket {
    uint64_t time, what, count;
};

/* All ranks see the same tickets, and so the same fault. */
static enum peal_status check_tickets(struct peal_comm *comm, const struct ticket *tickets,
                                      uint32_t size)
{
    for (uint32_t r = 1; r < size; r++) {
        if (tickets[r].what == tickets[0].what && tickets[r].count == tickets[0].count)
            continue;
        struct peal_text why = {0};
        peal_text_printf(&why, "mismatch: rank %u calls ", r);
        peal_collective_describe(tickets[r].what, tickets[r].count, &why);
        peal_text_puts(&why, ", rank 0 calls ");
        peal_collective_describe(tickets[0].what, tickets[0].count, &why);
        peal_comm_fail(comm, PEAL_MISMATCH, "%s", peal_text_get(&why));
        peal_text_release(&why);
        return PEAL_MISMATCH;
    }
    return PEAL_OK;
}

static uint64_t earliest(const uint64_t *times, uint32_t size)
{
    uint64_t least = times[0];
    for (uint32_t r = 1; r < size; r++)
        least = times[r] < least ? times[r] : least;
    return least;
}

enum peal_status peal_platform_call(struct peal_platform *platform, struct peal_comm *comm,
                                    const struct peal_arguments *args)
{
    uint32_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    struct shape shape = shape_of(args, size);
    uint64_t element = peal_dtype_size(args->dtype);
    uint64_t in = shape.in * element, out = shape.out * element;
    bool root_only = args->collective == PEAL_CALL_REDUCE || args->collective == PEAL_CALL_GATHER;
    char *inputs = rank == 0 ? calloc(in * size + 1, 1) : NULL;
    char *outputs = rank == 0 ? calloc(out * size + 1, 1) : NULL;
    char *own =
        calloc(in + out + 1, 1); /* what a rank has no buffer for: scatter's x, reduce's y, ... */
    uint64_t times[PEAL_MOST_RANKS];
    struct ticket ticket = {.time = peal_platform_time(platform),
                            .what = peal_call_what(args->collective, (uint32_t)args->dtype,
                                                   (uint32_t)args->reduce, args->root),
                            .count = args->count};
    struct ticket tickets[PEAL_MOST_RANKS];
    struct {
        uint64_t status, time;
    } answer = {PEAL_OK, 0};
    enum peal_status status = own && (rank > 0 || (inputs && outputs)) ? PEAL_OK : PEAL_NO_MEMORY;
    if (status == PEAL_OK && args->send && in)
        memcpy(own, args->send, in);
    if (status == PEAL_OK)
        status = peal_allgather(comm, &ticket, tickets, sizeof ticket, PEAL_U8);
    if (status == PEAL_OK)
        status = check_tickets(comm, tickets, size);
    for (uint32_t r = 0; r < size && status == PEAL_OK; r++)
        times[r] = tickets[r].time;
    if (status == PEAL_OK)
        status = peal_gather(comm, own, inputs, in, PEAL_U8, 0);
    if (status == PEAL_OK && rank == 0) {
        answer.status = simulate(platform, comm, args, inputs, outputs, times);
        answer.time = peal_sim_stats(platform->sim)->time;
        if (answer.status == PEAL_OK)
            trace_call(platform, args, earliest(times, size), answer.time);
    }
    if (status == PEAL_OK)
        status = peal_broadcast(comm, &answer, sizeof answer, PEAL_U8, 0);
    if (status == PEAL_OK)
        status = (enum peal_status)answer.status;
    if (status == PEAL_OK)
        status = peal_scatter(comm, outputs, own, out, PEAL_U8, 0);
    if (status == PEAL_OK && out && (!root_only || rank == args->root))
        memcpy(args->recv, own, out);
    if (status == PEAL_OK)
        peal_platform_advance(platform, answer.time);
    free(inputs);
    free(outputs);
    free(own);
    return status;
}

enum peal_status peal_platform_send(struct peal_platform *platform, struct peal_comm *comm,
                                    uint32_t to, uint64_t bytes, struct peal_stamp *out)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status =
        peal_transit_send(platform->transit, to, bytes, &diags, &out->sent, &out->arrives);
    if (status != PEAL_OK) {
        struct peal_text why = {0};
        peal_diags_print(&diags, false, &why);
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
