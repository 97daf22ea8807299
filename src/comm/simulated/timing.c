/* SPDX-License-Identifier: Apache-2.0 */
/* Times of calls whose data moves on this host: user kernels and non-blocking collectives.
 *
 * A user kernel blocks: rank 0 launches its plan on a machine that does nothing else, each rank
 * when it comes, and all go on when the last one has ended.
 *
 * A non-blocking collective must not wait for another rank when it starts. With it every rank
 * starts a small allreduce on the host, which ends when the last rank has started the call and says
 * when that was. What the call then takes is the same on every rank, so each asks its own machine,
 * once for each kind of call. Calls that are under way at once do not slow each other.
 */
#include "comm/simulated/platform_state.h"

#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* The duration of a call, simulated once. */
struct duration {
    enum peal_collective collective;
    uint64_t count;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t root;
    uint64_t time;
};

struct peal_timing {
    struct peal_machine *machine;
    struct peal_machine_plans *plans;
    PEAL_VEC(struct duration) durations;
};

void peal_timing_free(struct peal_timing *timing)
{
    if (!timing)
        return;
    peal_vec_release(&timing->durations);
    peal_machine_plans_free(timing->plans);
    peal_machine_free(timing->machine);
    free(timing);
}

static enum peal_status fail_diags(struct peal_comm *comm, enum peal_status status,
                                   const char *call, struct peal_diags *diags)
{
    struct peal_text why = {0};
    peal_diags_print(diags, false, &why);
    peal_comm_fail(comm, status, "%s on the simulated machine: %s", call,
                   why.len ? peal_text_get(&why) : peal_status_text(status));
    peal_text_release(&why);
    return status;
}

/* This rank's own machine, opened when it is first needed. */
static enum peal_status find_timing(struct peal_platform *platform, struct peal_comm *comm,
                                    struct peal_timing **out)
{
    struct peal_diags diags;
    enum peal_status status = PEAL_OK;
    *out = platform->timing;
    if (platform->timing)
        return PEAL_OK;
    struct peal_timing *timing = calloc(1, sizeof *timing);
    if (!timing)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a machine");
    peal_diags_init(&diags);
    status = peal_machine_open(peal_transit_path(platform->transit), &diags, &timing->machine);
    if (status == PEAL_OK && !(timing->plans = peal_machine_plans_new(timing->machine)))
        status = PEAL_NO_MEMORY;
    if (status != PEAL_OK) {
        fail_diags(comm, status, "a call", &diags);
        peal_timing_free(timing);
    } else {
        *out = platform->timing = timing;
    }
    peal_diags_release(&diags);
    return status;
}

/* Of a simulation that has been run: the time at which all of it has ended. */
static enum peal_status take_time(struct peal_sim *sim, struct peal_comm *comm, const char *call,
                                  uint64_t *time)
{
    if (peal_sim_deadlock(sim)) {
        struct peal_text why = {0};
        peal_sim_deadlock_print(sim, &why);
        peal_comm_fail(comm, PEAL_UNSUPPORTED, "%s on the simulated machine: %s", call,
                       peal_text_get(&why));
        peal_text_release(&why);
        return PEAL_UNSUPPORTED;
    }
    *time = peal_sim_stats(sim)->time;
    return PEAL_OK;
}

/* ---- user kernels ---- */

static enum peal_status find_plan(struct peal_timing *timing, struct peal_comm *comm,
                                  const struct peal_kernel *kernel, const struct peal_bind *bind,
                                  struct peal_plan **plan)
{
    struct peal_bind all = *bind;
    struct peal_diags diags;
    if (*plan)
        return PEAL_OK;
    all.channel_depth = (uint32_t)timing->machine->keys.slots;
    all.slot_bytes = timing->machine->keys.slot_bytes;
    peal_diags_init(&diags);
    enum peal_status status = peal_instantiate(kernel, &all, &diags, plan);
    if (status != PEAL_OK)
        fail_diags(comm, status, kernel->name, &diags);
    peal_diags_release(&diags);
    return status;
}

static enum peal_status time_kernel(struct peal_timing *timing, struct peal_comm *comm,
                                    const struct peal_kernel *kernel, const struct peal_plan *plan,
                                    const uint64_t *now, uint64_t *time)
{
    struct peal_sim_args args = {.not_before = now};
    struct peal_sim *sim = NULL;
    struct peal_diags diags;
    peal_diags_init(&diags);
    struct peal_sim_turns turns = {.args = &args, .launches = 1};
    enum peal_status status = peal_sim_run_plan(timing->machine, plan, &turns, &diags, &sim);
    if (status != PEAL_OK)
        fail_diags(comm, status, kernel->name, &diags);
    else
        status = take_time(sim, comm, kernel->name, time);
    peal_sim_free(sim);
    peal_diags_release(&diags);
    return status;
}

enum peal_status peal_machine_launched(struct peal_comm *comm, const struct peal_kernel *kernel,
                                       const struct peal_bind *bind, struct peal_plan **plan)
{
    struct peal_platform *platform = comm->platform;
    uint64_t now = peal_platform_time(platform), times[PEAL_MOST_RANKS];
    struct {
        uint64_t status, time;
    } answer = {PEAL_OK, 0};
    enum peal_status status =
        peal_machine_share(comm, PEAL_CALL_ALLGATHER, &now, times, sizeof now);
    if (status == PEAL_OK && peal_comm_rank(comm) == 0) {
        struct peal_timing *timing = NULL;
        answer.status = find_timing(platform, comm, &timing);
        if (answer.status == PEAL_OK)
            answer.status = find_plan(timing, comm, kernel, bind, plan);
        if (answer.status == PEAL_OK)
            answer.status = time_kernel(timing, comm, kernel, *plan, times, &answer.time);
    }
    if (status == PEAL_OK)
        status = peal_machine_share(comm, PEAL_CALL_BROADCAST, &answer, &answer, sizeof answer);
    if (status == PEAL_OK && answer.status != PEAL_OK) {
        status = (enum peal_status)answer.status;
        if (peal_comm_rank(comm) > 0)
            peal_comm_fail(comm, status, "'%s' cannot run on the simulated machine: see rank 0",
                           kernel->name);
    }
    if (status == PEAL_OK)
        peal_platform_advance(platform, answer.time);
    return status;
}

/* ---- non-blocking collectives ---- */

/* The duration of a call on a machine that does nothing else, if all ranks start at once. */
static enum peal_status simulate(struct peal_timing *timing, struct peal_comm *comm,
                                 const struct peal_arguments *args, uint64_t *time)
{
    struct peal_sim_options options = {.data = PEAL_SIM_DATA_OFF};
    const char *name = peal_collective_name(args->collective);
    struct peal_sim *sim = NULL;
    struct peal_diags diags;
    uint64_t segment, done = 0;
    enum peal_status status = peal_machine_plans_segment(timing->plans, comm, args, &segment);
    if (status != PEAL_OK)
        return status;
    peal_diags_init(&diags);
    status = peal_sim_new(timing->machine, peal_comm_size(comm), &options, &diags, &sim);
    if (status != PEAL_OK)
        fail_diags(comm, status, name, &diags);
    do {
        uint64_t count = peal_size_min(segment, args->count - done);
        const struct peal_plan *plan = NULL;
        if (status == PEAL_OK)
            status = peal_machine_plans_get(timing->plans, comm, args, count, &plan);
        if (status == PEAL_OK)
            status = peal_sim_launch(sim, plan, NULL, &diags);
        done += count;
    } while (done < args->count && status == PEAL_OK);
    if (status == PEAL_OK && (status = peal_sim_run(sim)) != PEAL_OK)
        fail_diags(comm, status, name, &diags);
    if (status == PEAL_OK)
        status = take_time(sim, comm, name, time);
    peal_sim_free(sim);
    peal_diags_release(&diags);
    return status;
}

static enum peal_status find_duration(struct peal_timing *timing, struct peal_comm *comm,
                                      const struct peal_arguments *args, uint64_t *time)
{
    for (size_t i = 0; i < timing->durations.len; i++) {
        const struct duration *d = &timing->durations.at[i];
        if (d->collective == args->collective && d->count == args->count &&
            d->dtype == args->dtype && d->reduce == args->reduce && d->root == args->root) {
            *time = d->time;
            return PEAL_OK;
        }
    }
    struct duration asked = {args->collective, args->count, args->dtype,
                             args->reduce,     args->root,  0};
    enum peal_status status = simulate(timing, comm, args, &asked.time);
    *time = asked.time;
    if (status == PEAL_OK && !peal_vec_push(&timing->durations, asked))
        status = peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a call");
    return status;
}

struct peal_arrival {
    struct peal_request *meeting; /* of all ranks, by which the maxima are found */
    int64_t own[2], max[2];       /* start and count: this rank's, and the maxima of all */
    struct peal_arguments args;   /* made even; its count is not known yet */
};

enum peal_status peal_arrival_new(struct peal_comm *comm, const struct peal_arguments *args,
                                  struct peal_arrival **out)
{
    struct peal_arrival *arrival = calloc(1, sizeof *arrival);
    if (!arrival)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a request");
    arrival->args = *args;
    arrival->args.collective = (enum peal_collective)peal_collective_even(args->collective);
    arrival->own[0] = (int64_t)peal_platform_time(comm->platform);
    arrival->own[1] = (int64_t)peal_arguments_largest(args, peal_comm_size(comm));
    struct peal_arguments meet = {.collective = PEAL_CALL_ALLREDUCE,
                                  .send = arrival->own,
                                  .recv = arrival->max,
                                  .count = 2,
                                  .dtype = PEAL_I64,
                                  .reduce = PEAL_MAX};
    enum peal_status status = peal_comm_start_here(comm, meet, &arrival->meeting);
    if (status != PEAL_OK)
        free(arrival);
    else
        *out = arrival;
    return status;
}

const enum peal_status *peal_arrival_status(const struct peal_arrival *arrival)
{
    return peal_request_status(arrival->meeting);
}

enum peal_status peal_arrival_end(struct peal_arrival *arrival, struct peal_comm *comm)
{
    struct peal_platform *platform = comm->platform;
    struct peal_timing *timing = NULL;
    uint64_t time = 0;
    enum peal_status status = peal_request_wait(arrival->meeting);
    arrival->args.count = (uint64_t)arrival->max[1];
    if (status == PEAL_OK)
        status = find_timing(platform, comm, &timing);
    if (status == PEAL_OK)
        status = find_duration(timing, comm, &arrival->args, &time);
    if (status == PEAL_OK) {
        uint64_t begin = (uint64_t)arrival->max[0];
        peal_platform_advance(platform, begin + time);
        if (peal_comm_rank(comm) == 0)
            peal_platform_trace(platform, &arrival->args, begin, begin + time);
    }
    free(arrival);
    return status;
}

void peal_arrival_free(struct peal_arrival *arrival)
{
    if (!arrival)
        return;
    (void)peal_request_wait(arrival->meeting);
    free(arrival);
}
