/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path, from the log: what the end of the run waited for, back to the start.
 *
 * From an op's end backwards: its work; then, if it was delayed, the message (or credit) that
 * released it and the op that sent that; otherwise the previous op of its lane.
 */
#include "sim/engine/engine.h"

#include <stdlib.h>

struct path_walk {
    const struct peal_sim *sim;
    /* for each op: the previous one in its lane, or the one that ended its rank's last launch */
    uint32_t *before;
    PEAL_VEC(struct peal_sim_step) steps; /* latest first */
    bool failed;
};

static void add(struct path_walk *w, uint64_t from, uint64_t to, uint32_t op,
                enum peal_sim_cause cause)
{
    struct peal_sim_step step = {from, to, op, (uint8_t)cause};
    if (to > from && !peal_vec_push(&w->steps, step))
        w->failed = true;
}

static bool link_ops(struct path_walk *w)
{
    const struct peal_sim *sim = w->sim;
    size_t count = sim->log_ops.len, nlanes = sim->lanes.len;
    uint32_t *newest = malloc((nlanes + 1) * sizeof *newest);
    uint32_t *latest = malloc((sim->nranks + 1) * sizeof *latest); /* by end, per rank */
    w->before = malloc((count + 1) * sizeof *w->before);
    bool ok = newest && latest && w->before;
    if (!ok)
        goto free_both;
    for (size_t i = 0; i < nlanes; i++)
        newest[i] = PEAL_NONE;
    for (size_t i = 0; i < sim->nranks; i++)
        latest[i] = PEAL_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct peal_sim_op *op = &sim->log_ops.at[i];
        uint32_t lane = op->lane * sim->nranks + op->rank;
        uint32_t prev = newest[lane];
        if (prev == PEAL_NONE || sim->log_ops.at[prev].launch != op->launch)
            prev = latest[op->rank]; /* the previous launch ended with that op */
        w->before[i] = prev;
        newest[lane] = (uint32_t)i;
        uint32_t last = latest[op->rank];
        if (op->end != PEAL_NEVER && (last == PEAL_NONE || op->end >= sim->log_ops.at[last].end))
            latest[op->rank] = (uint32_t)i;
    }
free_both:
    free(newest);
    free(latest);
    return ok;
}

static enum peal_sim_cause work_cause(const struct peal_sim *sim, const struct peal_sim_op *op)
{
    const struct peal_plan *plan = peal_sim_launch_plan(sim, op->launch);
    const struct peal_op_facts *row = peal_op_row(peal_plan_ops(plan) + op->op);
    if (row->work == PEAL_WORK_FN || row->work == PEAL_WORK_OWN)
        return PEAL_CAUSE_MATH;
    return row->dst == PEAL_EFFECT_NONE ? PEAL_CAUSE_ISSUE : PEAL_CAUSE_MEMORY;
}

/* The way of a message, with its parts in order. Returns its start. */
static uint64_t add_message(struct path_walk *w, uint32_t op, const struct peal_sim_message *m,
                            uint64_t until)
{
    static const uint8_t order[] = {PEAL_CAUSE_WAKE,   PEAL_CAUSE_MATH,   PEAL_CAUSE_CREDIT,
                                    PEAL_CAUSE_SERIAL, PEAL_CAUSE_MEMORY, PEAL_CAUSE_LATENCY,
                                    PEAL_CAUSE_ISSUE,  PEAL_CAUSE_QUEUE};
    uint64_t at = until;
    if (until > m->delivered)
        add(w, m->delivered, until, op, PEAL_CAUSE_WAKE);
    at = peal_size_min(m->delivered, until);
    for (size_t i = 0; i < sizeof order && at > m->sent; i++) {
        uint64_t part = m->causes[order[i]];
        uint64_t from = at - part;
        if (at - m->sent <= part)
            from = m->sent;
        add(w, from, at, op, (enum peal_sim_cause)order[i]);
        at = from;
    }
    add(w, m->sent, at, op, PEAL_CAUSE_QUEUE);
    return m->sent;
}

static void walk_back(struct path_walk *w, uint32_t index)
{
    const struct peal_sim *sim = w->sim;
    static const uint8_t stall_cause[PEAL_STALL_COUNT] = {PEAL_CAUSE_LATENCY, PEAL_CAUSE_CREDIT,
                                                          PEAL_CAUSE_QUEUE,   PEAL_CAUSE_LATENCY,
                                                          PEAL_CAUSE_MATH,    PEAL_CAUSE_WAKE};
    uint64_t at = sim->log_ops.at[index].end;
    /* Every iteration goes back in time or to an earlier op: both are finite. */
    for (uint64_t turns = 0; turns < 4 * sim->log_ops.len + 4 && index != PEAL_NONE; turns++) {
        const struct peal_sim_op *op = &sim->log_ops.at[index];
        if (at > op->ready) {
            add(w, op->ready, at, index, work_cause(sim, op));
            at = op->ready;
        }
        bool held = op->ready > op->start && at == op->ready;
        if (held && op->message != PEAL_NONE) {
            const struct peal_sim_message *m = &sim->log_messages.at[op->message];
            at = add_message(w, index, m, at);
            if (op->by != PEAL_NONE) {
                index = op->by;
                continue;
            }
        } else if (held && op->by != PEAL_NONE && sim->log_ops.at[op->by].ready < at) {
            const struct peal_sim_op *by = &sim->log_ops.at[op->by];
            uint64_t from;
            if (by->end < at)
                from = by->end;
            else
                from = by->ready;
            add(w, from, at, index, (enum peal_sim_cause)stall_cause[op->stall]);
            at = from;
            index = op->by;
            continue;
        }
        if (at > op->start) {
            add(w, op->start, at, index,
                held ? (enum peal_sim_cause)stall_cause[op->stall] : PEAL_CAUSE_ISSUE);
            at = op->start;
        }
        uint32_t before = w->before[index];
        if (before != PEAL_NONE && sim->log_ops.at[before].end < at) {
            add(w, sim->log_ops.at[before].end, at, index,
                PEAL_CAUSE_ISSUE); /* not_before, launch */
            at = sim->log_ops.at[before].end;
        }
        index = before;
    }
    add(w, 0, at, 0, PEAL_CAUSE_ISSUE);
}

enum peal_status peal_sim_path(const struct peal_sim *sim, struct peal_sim_step **out,
                               uint64_t *count)
{
    struct path_walk w = {.sim = sim};
    uint32_t last = PEAL_NONE;
    if (!link_ops(&w)) {
        free(w.before);
        return PEAL_NO_MEMORY;
    }
    for (size_t i = 0; i < sim->log_ops.len; i++) {
        const struct peal_sim_op *op = &sim->log_ops.at[i];
        if (op->end != PEAL_NEVER && (last == PEAL_NONE || op->end > sim->log_ops.at[last].end))
            last = (uint32_t)i;
    }
    if (last != PEAL_NONE)
        walk_back(&w, last);
    free(w.before);
    for (size_t i = 0; i < w.steps.len / 2; i++) {
        struct peal_sim_step swap = w.steps.at[i];
        w.steps.at[i] = w.steps.at[w.steps.len - 1 - i];
        w.steps.at[w.steps.len - 1 - i] = swap;
    }
    if (w.failed) {
        peal_vec_release(&w.steps);
        return PEAL_NO_MEMORY;
    }
    *out = w.steps.at;
    *count = w.steps.len;
    return PEAL_OK;
}
