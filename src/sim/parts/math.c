/* SPDX-License-Identifier: Apache-2.0 */
/* The math engine: one per PE, one compute at a time.
 *
 *   time = set-up + max(cycles, the slowest operand's bytes / its memory's bandwidth) + the
 *          operands' largest memory latency
 *   cycles = ceil(elements / lanes) * combinations: k sources reduced in one pass combine
 *            k - 1 times
 * A product of matrices takes ceil(multiplications / products per cycle) cycles, and each operand's
 * memory carries that operand once.
 */
#include "sim/engine/engine.h"

#include <string.h>

/* operands: bit memory * 4 + log2(element size) for each that is on this PE. */
void peal_sim_math_cost(const struct peal_sim *sim, enum peal_dtype dtype, uint64_t elements,
                        uint64_t combinations, uint32_t operands, struct peal_coded_op *step)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    uint64_t lanes = sim->math_lanes[dtype], latency = 0;
    uint64_t cycles = peal_rate_time(k->math_cycle, (elements + lanes - 1) / lanes * combinations);
    uint64_t slowest = cycles;
    for (uint32_t mem = 0; mem < PEAL_MEM_COUNT; mem++) {
        uint32_t sizes = operands >> (4 * mem) & 15;
        if (!sizes)
            continue;
        uint64_t size = UINT64_C(1) << (31 - __builtin_clz(sizes));
        uint64_t time = peal_rate_time(k->mem_bw[mem], elements * size);
        if (time > slowest)
            slowest = time;
        if (k->mem_lat[mem] > latency)
            latency = k->mem_lat[mem];
    }
    step->work = k->math_setup + cycles;
    step->memory = latency + slowest - cycles;
}

void peal_sim_product_cost(const struct peal_sim *sim, enum peal_dtype dtype,
                           const struct peal_sim_product *p, struct peal_coded_op *step)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    uint64_t size = peal_dtype_size(dtype), latency = 0;
    uint64_t rate = peal_machine_products(k, dtype);
    uint64_t elements[3] = {p->rows * p->columns, p->rows * p->inner, p->inner * p->columns};
    uint64_t cycles = peal_rate_time(k->math_cycle, (elements[0] * p->inner + rate - 1) / rate);
    uint64_t slowest = cycles;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t mem = p->memories >> (4 * i) & 15;
        uint64_t time = peal_rate_time(k->mem_bw[mem], elements[i] * size);
        if (time > slowest)
            slowest = time;
        if (k->mem_lat[mem] > latency)
            latency = k->mem_lat[mem];
    }
    step->work = k->math_setup + cycles;
    step->memory = latency + slowest - cycles;
}

/* Blocking: the lane's time moves to the end. Asynchronous: the lane continues, and the op is
 * pending. False: the lane has to block first. */
bool peal_sim_math_run(struct peal_sim *sim, uint32_t index, const struct peal_coded_op *step)
{
    struct peal_lane_run *lane = &sim->lanes.at[index];
    struct peal_rank_run *rank = &sim->ranks[lane->rank];
    if (step->bytes == 0)
        return true;
    if (sim->machine->keys.math_async && !peal_sim_async_room(sim, index))
        return false;
    uint64_t start = peal_size_max(rank->math_free, lane->time);
    if (sim->core_user) {
        start = peal_sim_host_core(sim, lane->rank, lane->time);
        rank = &sim->ranks[lane->rank % sim->machine->keys.host_cores];
    }
    uint64_t end = start + step->work + step->memory;
    if (sim->machine->keys.math_async) {
        uint64_t causes[PEAL_CAUSE_COUNT];
        memcpy(causes, lane->causes, sizeof causes);
        causes[PEAL_CAUSE_MATH] += start - lane->time + step->work;
        causes[PEAL_CAUSE_MEMORY] += step->memory;
        peal_sim_async_add(sim, index, peal_sim_op(lane), end, causes);
    }
    rank->math_free = end;
    rank->math_busy += end - start;
    if (sim->options.log)
        peal_sim_oplog_bar(sim, (struct peal_sim_bar){.start = start,
                                                      .end = end,
                                                      .id = lane->rank,
                                                      .track = PEAL_TRACK_MATH,
                                                      .op = lane->log,
                                                      .message = PEAL_NONE});
    if (sim->machine->keys.math_async)
        return true;
    lane->causes[PEAL_CAUSE_MATH] += start - lane->time + step->work;
    lane->causes[PEAL_CAUSE_MEMORY] += step->memory;
    lane->stalls[PEAL_STALL_MATH] += end - lane->time;
    lane->time = end;
    return true;
}
