/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, schedules, clocks of the oracle. */
#include "oracle/oracle.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20, MOST_LAUNCHES = 64, MOST_REGS = 16 };

const char *oracle_wrong_name(enum oracle_wrong wrong)
{
    static const char *const names[] = {"fine",    "deadlock", "race",         "uninitialised",
                                        "result",  "bounds",   "channel",      "signal",
                                        "overlap", "is open",  "not supported"};
    return names[wrong];
}

void oracle_is_wrong(struct oracle *o, enum oracle_wrong wrong, const char *format, ...)
{
    if (o->wrong != ORACLE_FINE ||
        (o->only != ORACLE_FINE && wrong != o->only && wrong != ORACLE_UNABLE))
        return;
    va_list args;
    char text[300];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    o->wrong = wrong;
    peal_text_puts(&o->why, text);
}

static const struct peal_plan *plan_of(const struct oracle *o, uint32_t rank)
{
    return o->plans[o->ranks[rank].launch];
}

/* --- making ---------------------------------------------------------------------------------- */

static bool make_memory(struct oracle *o)
{
    uint64_t sum = 0;
    o->memory = calloc((size_t)o->nbufs * o->nranks + 1, sizeof *o->memory);
    o->cells = calloc((size_t)o->ncells * o->nranks + 1, sizeof *o->cells);
    for (uint32_t i = 0; o->memory && i < o->nbufs * o->nranks; i++) {
        struct memory *m = &o->memory[i];
        for (uint32_t l = 0; l < o->launches; l++) {
            uint32_t b = i / o->nranks;
            uint64_t size = peal_dtype_size(peal_plan_bufs(o->plans[l])[b].dtype);
            uint64_t bytes = peal_plan_len(o->plans[l], i % o->nranks, b) * size;
            m->bytes = bytes > m->bytes ? bytes : m->bytes;
        }
        if ((sum += m->bytes * o->nlanes) > MOST_BYTES * 8)
            return false;
        m->at = calloc(m->bytes + 1, 1);
        m->stamps = calloc(m->bytes + 1, sizeof *m->stamps);
        for (uint64_t k = 0; m->at && m->stamps && k < m->bytes; k++) {
            m->stamps[k].read = calloc(2 * (size_t)o->nlanes, sizeof(uint32_t));
            m->stamps[k].accumulate = m->stamps[k].read + o->nlanes;
        }
    }
    return o->memory && o->cells;
}

struct oracle *oracle_new(const struct peal_plan *const *plans, uint32_t launches)
{
    struct oracle *o = calloc(1, sizeof *o);
    if (!o || launches > MOST_LAUNCHES || plans[0]->nranks > ORACLE_LANES) {
        free(o);
        return NULL;
    }
    o->plans = plans;
    o->launches = launches;
    o->nranks = plans[0]->nranks;
    o->nbufs = (uint32_t)plans[0]->bufs.count;
    bool good = true;
    for (uint32_t r = 0; r < o->nranks; r++) {
        uint32_t most = 1;
        for (uint32_t l = 0; l < launches; l++) {
            uint32_t n = peal_plan_lane_count(plans[l], r);
            most = n > most ? n : most;
            for (uint32_t i = 0; i < n; i++)
                good = good && peal_plan_lane(plans[l], r, i)->regs <= MOST_REGS;
        }
        o->first_lane[r + 1] = o->first_lane[r] + most;
        good = good && o->first_lane[r + 1] <= ORACLE_LANES;
        if (!good)
            break;
    }
    o->nlanes = o->first_lane[o->nranks];
    for (uint32_t l = 0; l < launches; l++) {
        good = good && plans[l]->bufs.count == o->nbufs;
        o->ncells = plans[l]->cells > o->ncells ? plans[l]->cells : o->ncells;
    }
    if (!good || !make_memory(o)) {
        oracle_free(o);
        return NULL;
    }
    return o;
}

static void empty_queues(struct oracle *o)
{
    for (size_t i = 0; i < o->queues.len; i++) {
        struct queue *q = &o->queues.at[i];
        for (size_t k = 0; k < q->messages.len; k++) {
            free(q->messages.at[k].payload);
            free(q->messages.at[k].set);
        }
        peal_vec_release(&q->messages);
        peal_vec_release(&q->freed);
    }
    o->queues.len = 0;
}

void oracle_free(struct oracle *o)
{
    if (!o)
        return;
    empty_queues(o);
    peal_vec_release(&o->queues);
    for (uint32_t i = 0; o->memory && i < o->nbufs * o->nranks; i++) {
        for (uint64_t k = 0; o->memory[i].stamps && k < o->memory[i].bytes; k++)
            free(o->memory[i].stamps[k].read);
        free(o->memory[i].stamps);
        free(o->memory[i].at);
    }
    free(o->memory);
    free(o->cells);
    peal_text_release(&o->why);
    free(o);
}

/* --- launches -------------------------------------------------------------------------------- */

/* Between launches the caller uses the parameters that peers can reach. */
static void caller(struct oracle *o, uint32_t rank)
{
    const struct peal_plan *plan = plan_of(o, rank);
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        struct memory *m = &o->memory[b * o->nranks + rank];
        uint64_t size = peal_dtype_size(buf->dtype);
        if (buf->kind != PEAL_BUF_PARAM ||
            !(buf->flags & (PEAL_BUF_PEER_READ | PEAL_BUF_PEER_WRITE)))
            continue;
        for (uint64_t i = 0; i < peal_plan_len(plan, rank, b) * size; i++)
            oracle_touch(o, oracle_lane(o, rank, 0), m, i, 'w', NULL);
    }
}

/* Scratch of the rank holds nothing when a launch begins. */
static void forget_private(struct oracle *o, uint32_t rank)
{
    const struct peal_plan *plan = plan_of(o, rank);
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        uint8_t kind = peal_plan_bufs(plan)[b].kind;
        struct memory *m = &o->memory[b * o->nranks + rank];
        for (uint64_t i = 0; i < m->bytes && kind != PEAL_BUF_WINDOW; i++)
            m->stamps[i].set = false;
    }
}

static void join(struct clock *into, const struct clock *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        into->at[i] = from->at[i] > into->at[i] ? from->at[i] : into->at[i];
}

void oracle_enter(struct oracle *o, uint32_t rank)
{
    struct clock *first = &o->lanes[o->first_lane[rank]].clock;
    caller(o, rank);
    forget_private(o, rank);
    oracle_fill(o, rank, o->ranks[rank].launch);
    o->ranks[rank].inside = true;
    o->entered[o->ranks[rank].launch]++;
    for (uint32_t i = o->first_lane[rank] + 1; i < o->first_lane[rank + 1]; i++) {
        join(&o->lanes[i].clock, first, o->nlanes);
        o->lanes[i].clock.at[i]++;
    }
    first->at[o->first_lane[rank]]++;
    for (uint32_t i = o->first_lane[rank]; i < o->first_lane[rank + 1]; i++) {
        o->lanes[i].op = 0;
        memset(o->lanes[i].regs, 0, sizeof o->lanes[i].regs);
    }
}

const struct peal_op *oracle_op(const struct oracle *o, uint32_t rank, uint32_t lane)
{
    if (o->ranks[rank].launch == o->launches || !o->ranks[rank].inside)
        return NULL;
    const struct peal_plan *plan = plan_of(o, rank);
    uint64_t at = o->lanes[oracle_lane(o, rank, lane)].op;
    if (lane >= peal_plan_lane_count(plan, rank) || at >= peal_plan_lane(plan, rank, lane)->ops)
        return NULL;
    return peal_plan_ops(plan) + peal_plan_lane(plan, rank, lane)->first_op + at;
}

bool oracle_leave(struct oracle *o, uint32_t rank)
{
    if (!o->ranks[rank].inside)
        return false;
    for (uint32_t i = 0; i < o->first_lane[rank + 1] - o->first_lane[rank]; i++) {
        if (oracle_op(o, rank, i))
            return false;
    }
    uint32_t lane = o->first_lane[rank], launch = o->ranks[rank].launch;
    for (uint32_t i = lane + 1; i < o->first_lane[rank + 1]; i++)
        join(&o->lanes[lane].clock, &o->lanes[i].clock, o->nlanes);
    oracle_compare(o, rank, launch);
    if (plan_of(o, rank)->contract == PEAL_CONTRACT_BARRIER && o->entered[launch] < o->nranks)
        oracle_is_wrong(o, ORACLE_RESULT,
                        "rank %u leaves launch %u of the barrier when %u have entered", rank,
                        launch, o->entered[launch]);
    caller(o, rank);
    o->ranks[rank].inside = false;
    o->ranks[rank].launch++;
    return true;
}

/* --- schedules ------------------------------------------------------------------------------- */

void oracle_start(struct oracle *o)
{
    empty_queues(o);
    memset(o->ranks, 0, sizeof o->ranks);
    memset(o->lanes, 0, sizeof o->lanes);
    memset(o->entered, 0, sizeof o->entered);
    memset(o->cells, 0, (size_t)o->ncells * o->nranks * sizeof *o->cells);
    for (uint32_t i = 0; i < o->nlanes; i++)
        o->lanes[i].clock.at[i] = 1;
    for (uint32_t i = 0; i < o->nbufs * o->nranks; i++) {
        for (uint64_t k = 0; k < o->memory[i].bytes; k++) {
            uint32_t *read = o->memory[i].stamps[k].read;
            memset(read, 0, 2 * (size_t)o->nlanes * sizeof *read);
            o->memory[i].stamps[k] = (struct stamp){.read = read, .accumulate = read + o->nlanes};
        }
    }
    o->wrong = ORACLE_FINE;
    o->outputs = o->steps = 0;
    peal_text_release(&o->why);
}

bool oracle_can(struct oracle *o, uint32_t rank, uint32_t lane)
{
    const struct peal_op *op = oracle_op(o, rank, lane);
    return op && oracle_op_can(o, rank, lane, op);
}

bool oracle_go(struct oracle *o, uint32_t rank, uint32_t lane)
{
    const struct peal_op *op = oracle_op(o, rank, lane);
    if (!op || !oracle_op_can(o, rank, lane, op))
        return false;
    oracle_op_do(o, rank, lane, op);
    o->lanes[oracle_lane(o, rank, lane)].op++;
    o->steps++;
    return true;
}

/* Lane number i moves, if it can: an op, or its rank enters or leaves a launch. */
static bool move(struct oracle *o, uint32_t i)
{
    uint32_t rank = 0;
    while (o->first_lane[rank + 1] <= i)
        rank++;
    if (o->ranks[rank].launch == o->launches)
        return false;
    if (!o->ranks[rank].inside) {
        oracle_enter(o, rank);
        return true;
    }
    return oracle_go(o, rank, i - o->first_lane[rank]) ||
           (i == o->first_lane[rank] && oracle_leave(o, rank));
}

void oracle_finish(struct oracle *o, const struct oracle_schedule *schedule)
{
    uint64_t priority[ORACLE_LANES], random = peal_hash_u64(schedule->seed, 1);
    for (uint32_t i = 0; i < o->nlanes; i++)
        priority[i] = peal_hash_u64(i, random);
    for (bool moved = true; moved && o->wrong == ORACLE_FINE;) {
        uint32_t order[ORACLE_LANES];
        random = peal_hash_u64(random, 3);
        if (schedule->restless && random % schedule->restless == 0)
            priority[(random >> 20) % o->nlanes] = peal_hash_u64(random, 5);
        for (uint32_t i = 0; i < o->nlanes; i++) {
            uint32_t k = i;
            for (; k > 0 && priority[order[k - 1]] < priority[i]; k--)
                order[k] = order[k - 1];
            order[k] = i;
        }
        moved = false;
        for (uint32_t i = 0; i < o->nlanes && !moved && o->wrong == ORACLE_FINE; i++)
            moved = move(o, order[i]);
    }
}

static void say_where(struct oracle *o)
{
    for (uint32_t r = 0; r < o->nranks; r++) {
        for (uint32_t i = 0; i < o->first_lane[r + 1] - o->first_lane[r]; i++) {
            const struct peal_op *op = oracle_op(o, r, i);
            if (op)
                peal_text_printf(
                    &o->why, " rank %u lane %u launch %u stands at line %u;", r, i,
                    o->ranks[r].launch,
                    op->pos == PEAL_NONE ? 0 : peal_plan_positions(plan_of(o, r))[op->pos].line);
        }
    }
}

bool oracle_run(struct oracle *o, const struct oracle_schedule *schedule)
{
    oracle_start(o);
    oracle_finish(o, schedule);
    for (uint32_t r = 0; r < o->nranks && o->wrong == ORACLE_FINE; r++) {
        if (o->ranks[r].launch < o->launches) {
            oracle_is_wrong(o, ORACLE_DEADLOCK, "no rank can move:");
            say_where(o);
        }
    }
    for (size_t i = 0; i < o->queues.len && o->wrong == ORACLE_FINE; i++) {
        if (o->queues.at[i].received != o->queues.at[i].messages.len)
            oracle_is_wrong(o, ORACLE_CHANNEL, "messages are left");
    }
    return o->wrong == ORACLE_FINE;
}
