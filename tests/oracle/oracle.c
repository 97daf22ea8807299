/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle's memory, launches and schedules. */
#include "oracle/oracle.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STAMPS = 1 << 23 }; /* bytes of all ranks, times lanes */

const char *oracle_wrong_name(enum oracle_wrong wrong)
{
    static const char *const names[] = {"fine",    "deadlock", "race",         "uninitialised",
                                        "result",  "bounds",   "channel",      "signal",
                                        "overlap", "is open",  "not supported"};
    return names[wrong];
}

void oracle_report(struct oracle *o, enum oracle_wrong wrong, const char *format, ...)
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

/* --- opening ---------------------------------------------------------------------------------- */

/* The largest size that a buffer has in any launch. */
static uint64_t bytes_of(const struct oracle *o, uint32_t buf, uint32_t rank)
{
    uint64_t largest = 0;
    for (uint32_t l = 0; l < o->launches; l++) {
        uint64_t size = peal_dtype_size(peal_plan_bufs(o->plans[l])[buf].dtype);
        uint64_t bytes = peal_plan_len(o->plans[l], rank, buf) * size;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* What was allocated before a failure is freed by oracle_free. */
static bool make_memory(struct oracle *o)
{
    uint64_t sum = 0;
    o->memory = calloc((size_t)o->nbufs * o->nranks + 1, sizeof *o->memory);
    o->cells = calloc((size_t)o->ncells * o->nranks + 1, sizeof *o->cells);
    if (!o->memory || !o->cells)
        return false;
    for (uint32_t i = 0; i < o->nbufs * o->nranks; i++) {
        struct memory *m = &o->memory[i];
        m->bytes = bytes_of(o, i / o->nranks, i % o->nranks);
        sum += m->bytes * o->nlanes;
        if (sum > MAX_STAMPS)
            return false;
        m->at = calloc(m->bytes + 1, 1);
        m->stamps = calloc(m->bytes + 1, sizeof *m->stamps);
        if (!m->at || !m->stamps)
            return false;
        for (uint64_t k = 0; k < m->bytes; k++) {
            m->stamps[k].read = calloc(2 * (size_t)o->nlanes, sizeof(uint32_t));
            if (!m->stamps[k].read)
                return false;
        }
    }
    return true;
}

/* False: more lanes or registers than the oracle supports. */
static bool number_lanes(struct oracle *o)
{
    for (uint32_t r = 0; r < o->nranks; r++) {
        uint32_t lanes = 1;
        for (uint32_t l = 0; l < o->launches; l++) {
            uint32_t n = peal_plan_lane_count(o->plans[l], r);
            lanes = n > lanes ? n : lanes;
            for (uint32_t i = 0; i < n; i++) {
                if (peal_plan_lane(o->plans[l], r, i)->regs > ORACLE_REGS)
                    return false;
            }
        }
        o->first_lane[r + 1] = o->first_lane[r] + lanes;
        if (o->first_lane[r + 1] > ORACLE_LANES)
            return false;
    }
    o->nlanes = o->first_lane[o->nranks];
    return true;
}

struct oracle *oracle_new(const struct peal_plan *const *plans, uint32_t launches)
{
    if (launches > ORACLE_LAUNCHES || plans[0]->nranks > ORACLE_LANES)
        return NULL;
    struct oracle *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->plans = plans;
    o->launches = launches;
    o->nranks = plans[0]->nranks;
    o->nbufs = (uint32_t)plans[0]->bufs.count;
    bool same_bufs = true;
    for (uint32_t l = 0; l < launches; l++) {
        same_bufs = same_bufs && plans[l]->bufs.count == o->nbufs;
        o->ncells = plans[l]->cells > o->ncells ? plans[l]->cells : o->ncells;
    }
    if (!same_bufs || !number_lanes(o) || !make_memory(o)) {
        oracle_free(o);
        return NULL;
    }
    return o;
}

static void empty_queues(struct oracle *o)
{
    for (size_t i = 0; i < o->queues.len; i++) {
        struct queue *q = &o->queues.at[i];
        for (size_t k = 0; k < q->messages.len; k++)
            free(q->messages.at[k].payload);
        peal_vec_release(&q->messages);
        peal_vec_release(&q->freed);
    }
    o->queues.len = 0;
}

static void free_memory(struct oracle *o)
{
    if (!o->memory)
        return;
    for (uint32_t i = 0; i < o->nbufs * o->nranks; i++) {
        struct memory *m = &o->memory[i];
        uint64_t stamps = m->stamps ? m->bytes : 0;
        for (uint64_t k = 0; k < stamps; k++)
            free(m->stamps[k].read);
        free(m->stamps);
        free(m->at);
    }
    free(o->memory);
}

void oracle_free(struct oracle *o)
{
    if (!o)
        return;
    empty_queues(o);
    peal_vec_release(&o->queues);
    free_memory(o);
    free(o->cells);
    peal_text_release(&o->why);
    free(o);
}

/* --- launches --------------------------------------------------------------------------------- */

/* Between launches the caller may use its arguments: it writes those that peers can reach. */
static void use_arguments(struct oracle *o, uint32_t rank)
{
    const struct peal_plan *plan = plan_of(o, rank);
    struct oracle_access write = {ORACLE_WRITE, oracle_lane(o, rank, 0), NULL};
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        struct memory *m = &o->memory[b * o->nranks + rank];
        uint64_t size = peal_dtype_size(buf->dtype);
        if (buf->kind != PEAL_BUF_PARAM ||
            !(buf->flags & (PEAL_BUF_PEER_READ | PEAL_BUF_PEER_WRITE)))
            continue;
        for (uint64_t i = 0; i < peal_plan_len(plan, rank, b) * size; i++)
            oracle_touch(o, m, i, &write);
    }
}

/* Only windows keep their contents from launch to launch. */
static void forget_private(struct oracle *o, uint32_t rank)
{
    const struct peal_plan *plan = plan_of(o, rank);
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        uint8_t kind = peal_plan_bufs(plan)[b].kind;
        struct memory *m = &o->memory[b * o->nranks + rank];
        if (kind == PEAL_BUF_WINDOW)
            continue;
        for (uint64_t i = 0; i < m->bytes; i++)
            m->stamps[i].set = false;
    }
}

void oracle_enter(struct oracle *o, uint32_t rank)
{
    struct clock *first = &o->lanes[o->first_lane[rank]].clock;
    use_arguments(o, rank);
    forget_private(o, rank);
    oracle_fill(o, rank, o->ranks[rank].launch);
    o->ranks[rank].inside = true;
    o->entered[o->ranks[rank].launch]++;
    for (uint32_t i = o->first_lane[rank] + 1; i < o->first_lane[rank + 1]; i++) {
        oracle_join(&o->lanes[i].clock, first, o->nlanes);
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
        oracle_join(&o->lanes[lane].clock, &o->lanes[i].clock, o->nlanes);
    oracle_compare(o, rank, launch);
    if (plan_of(o, rank)->contract == PEAL_CONTRACT_BARRIER && o->entered[launch] < o->nranks)
        oracle_report(o, ORACLE_RESULT,
                      "rank %u leaves launch %u of the barrier when %u have entered", rank, launch,
                      o->entered[launch]);
    use_arguments(o, rank);
    o->ranks[rank].inside = false;
    o->ranks[rank].launch++;
    return true;
}

/* --- schedules -------------------------------------------------------------------------------- */

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

/* Lane number i moves, if it can: it does an op, or its rank enters or leaves a launch. */
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

/* Sorts the lanes by falling priority. */
static void order_lanes(const uint64_t *priority, uint32_t lanes, uint32_t *order)
{
    for (uint32_t i = 0; i < lanes; i++) {
        uint32_t k = i;
        for (; k > 0; k--) {
            if (priority[order[k - 1]] >= priority[i])
                break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
}

/* Moves the first lane that can move; false: none can, or a fault was found. */
static bool move_first(struct oracle *o, const uint32_t *order)
{
    for (uint32_t i = 0; i < o->nlanes; i++) {
        if (move(o, order[i]))
            return true;
        if (o->wrong != ORACLE_FINE)
            return false;
    }
    return false;
}

void oracle_finish(struct oracle *o, const struct oracle_schedule *schedule)
{
    uint64_t priority[ORACLE_LANES], random = peal_hash_u64(schedule->seed, 1);
    for (uint32_t i = 0; i < o->nlanes; i++)
        priority[i] = peal_hash_u64(i, random);
    while (o->wrong == ORACLE_FINE) {
        uint32_t order[ORACLE_LANES];
        random = peal_hash_u64(random, 3);
        if (schedule->restless && random % schedule->restless == 0)
            priority[(random >> 20) % o->nlanes] = peal_hash_u64(random, 5);
        order_lanes(priority, o->nlanes, order);
        if (!move_first(o, order))
            return;
    }
}

static void say_where(struct oracle *o)
{
    for (uint32_t r = 0; r < o->nranks; r++) {
        for (uint32_t i = 0; i < o->first_lane[r + 1] - o->first_lane[r]; i++) {
            const struct peal_op *op = oracle_op(o, r, i);
            if (op)
                peal_text_printf(
                    &o->why, " rank %u lane %u launch %u is at line %u;", r, i, o->ranks[r].launch,
                    op->pos == PEAL_NONE ? 0 : peal_plan_positions(plan_of(o, r))[op->pos].line);
        }
    }
}

static bool has_ended(const struct oracle *o)
{
    for (uint32_t r = 0; r < o->nranks; r++) {
        if (o->ranks[r].launch < o->launches)
            return false;
    }
    return true;
}

static bool has_messages_left(const struct oracle *o)
{
    for (size_t i = 0; i < o->queues.len; i++) {
        if (o->queues.at[i].received != o->queues.at[i].messages.len)
            return true;
    }
    return false;
}

bool oracle_run(struct oracle *o, const struct oracle_schedule *schedule)
{
    oracle_start(o);
    oracle_finish(o, schedule);
    if (o->wrong == ORACLE_FINE && !has_ended(o)) {
        oracle_report(o, ORACLE_DEADLOCK, "no rank can move:");
        say_where(o);
    }
    if (o->wrong == ORACLE_FINE && has_messages_left(o))
        oracle_report(o, ORACLE_CHANNEL, "messages are left");
    return o->wrong == ORACLE_FINE;
}
