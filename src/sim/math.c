/* SPDX-License-Identifier: Apache-2.0 */
/* The math engine: one a PE, one compute at a time.
 *
 *   time = set-up + max(cycles, the slowest operand's bytes / its memory's bandwidth) + the
 *          operands' largest memory latency
 *   cycles = ceil(elements / lanes) * combinations: k sources reduced in one pass combine k - 1
 * times
 */
#include "sim/engine.h"

static uint64_t cycles_time(const struct peal_sim *sim, const struct peal_op *op)
{
    uint64_t elements = op->mem.count * op->mem.rows;
    uint64_t lanes = sim->math_lanes[op->dtype];
    uint64_t combinations = op->mem.nsrc > 1 ? op->mem.nsrc - 1 : 1;
    if (op->kind == PEAL_OP_COMPUTE && peal_fn_info((enum peal_fn)op->fn)->operands > 0)
        combinations = 1; /* fma, clamp: one step */
    return peal_rate_time(sim->machine->keys.math_cycle,
                          (elements + lanes - 1) / lanes * combinations);
}

/* Of one operand: time of its bytes and latency, where it lies on this PE. */
static void operand(struct peal_sim *sim, const struct peal_instance *instance, uint32_t rank,
                    const struct peal_op *op, const struct peal_ref *ref, uint64_t *bytes_time,
                    uint64_t *latency)
{
    uint8_t mem = PEAL_NO_MEM;
    if (ref->buf == PEAL_BUF_SLOT)
        mem = (uint8_t)sim->machine->keys.space;
    else if (ref->buf != PEAL_BUF_CONST && ref->rank == rank)
        mem = instance->buf_mem[ref->buf];
    if (mem == PEAL_NO_MEM)
        return;
    uint64_t bytes = op->mem.count * op->mem.rows * peal_dtype_size((enum peal_dtype)ref->dtype);
    uint64_t time = peal_sim_bytes_time(sim, sim->mem_rate[mem], bytes);
    *bytes_time = time > *bytes_time ? time : *bytes_time;
    if (sim->machine->keys.mem_lat[mem] > *latency)
        *latency = sim->machine->keys.mem_lat[mem];
}

/* Blocking: the lane moves on to the end. Asynchronous: it goes on, and the op is pending; false if
 * it has to block first. */
bool peal_sim_math_run(struct peal_sim *sim, uint32_t index, const struct peal_op *op)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    const struct peal_instance *instance = peal_sim_instance(sim, lane);
    struct peal_rank_run *rank = &sim->ranks[lane->rank];
    const struct peal_machine_keys *k = &sim->machine->keys;
    uint64_t bytes_time = 0, latency = 0, cycles = cycles_time(sim, op);
    if (op->mem.count == 0 || op->mem.rows == 0)
        return true;
    operand(sim, instance, lane->rank, op, peal_op_dst(instance->plan, op), &bytes_time, &latency);
    for (uint32_t i = 0; i < op->mem.nsrc; i++)
        operand(sim, instance, lane->rank, op, peal_op_src(instance->plan, op, i), &bytes_time,
                &latency);
    uint64_t work = cycles > bytes_time ? cycles : bytes_time;
    uint64_t start = rank->math_free > lane->time ? rank->math_free : lane->time;
    uint64_t end = start + k->math_setup + latency + work;
    uint64_t causes[PEAL_CAUSE_COUNT];
    for (int i = 0; i < PEAL_CAUSE_COUNT; i++)
        causes[i] = lane->causes[i];
    causes[PEAL_CAUSE_MATH] += start - lane->time + k->math_setup + cycles;
    causes[PEAL_CAUSE_MEMORY] += latency + work - cycles;
    if (k->math_async && !peal_sim_async_add(sim, index, op, end, causes))
        return false;
    rank->math_free = end;
    rank->math_busy += end - start;
    if (sim->options.log)
        peal_sim_oplog_bar(sim, (struct peal_sim_bar){.start = start,
                                                      .end = end,
                                                      .id = lane->rank,
                                                      .track = PEAL_TRACK_MATH,
                                                      .op = lane->log,
                                                      .message = PEAL_NONE});
    if (k->math_async)
        return true;
    lane->stalls[PEAL_STALL_MATH] += end - lane->time;
    lane->time = end;
    for (int i = 0; i < PEAL_CAUSE_COUNT; i++)
        lane->causes[i] = causes[i];
    return true;
}
