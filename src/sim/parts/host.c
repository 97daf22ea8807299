/* SPDX-License-Identifier: Apache-2.0 */
/* A host: ranks are processes on cores, and what they share is memory behind caches.
 *
 * A copy or compute is done by the rank's core and holds its lane. It touches each byte of its operands
 * once, and what a touch costs depends on who used the line last:
 *
 *   own      memory that only this rank uses                       half a byte copied (host.copy)
 *   fetched  read what another rank has just written               host.fetch, less one own touch
  *   reduced  read and computed with, likewise                      host.reduce, less two own touches
 *   pushed   written where another rank has just read              host.push, less one own touch
 *   kernel   a private parameter of another process                host.kernel, less one own touch
 *
 * each at the rate for the bytes that a rank touches in a launch, which decide the caches that hold them.
 * Who uses a buffer is a fact of the whole plan: a window that others write is read as fetched.
 */
#include "sim/engine/engine.h"

#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>

enum host_touch { OWN, FETCHED, REDUCED, PUSHED, KERNEL, TOUCHES };
enum { BITS = 12 }; /* of a kind's count in the word */

struct peal_host_use {
    uint64_t bytes; /* that a rank touches, its own and others' */
    const struct peal_plan *plan;
    struct {
        uint64_t from, to, far_from, far_to; /* the part that is used, in bytes */
        bool is_read, is_written;            /* by ranks that do not own it */
    } bufs[];
};

/* The operand's part of its buffer, in bytes, joined to what others name. */
static void widen(const struct peal_host_use *use, const struct peal_op *op,
                  const struct peal_ref *ref, uint64_t *from, uint64_t *to)
{
    const struct peal_buf *buf = &peal_plan_bufs(use->plan)[ref->buf];
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    uint64_t begin = (ref->offset + (buf->cols ? (uint64_t)ref->row * buf->cols : 0)) * size;
    if (*to == 0 || begin < *from)
        *from = begin;
    *to = peal_size_max(*to, begin + op->mem.count * op->mem.rows * size);
}

static void look_at(struct peal_host_use *use, uint32_t rank, const struct peal_op *op)
{
    const struct peal_ref *refs = peal_plan_refs(use->plan) + op->mem.ref;
    if (!peal_op_is_data(op) && !peal_op_has_channel(op))
        return;
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        if (refs[i].buf >= PEAL_BUF_SLOT)
            continue;
        uint32_t b = refs[i].buf;
        if (refs[i].rank == rank) {
            widen(use, op, &refs[i], &use->bufs[b].from, &use->bufs[b].to);
            continue;
        }
        use->bufs[b].is_written |= peal_op_writes(op, i);
        use->bufs[b].is_read |= !peal_op_writes(op, i);
        widen(use, op, &refs[i], &use->bufs[b].far_from, &use->bufs[b].far_to);
    }
}

struct peal_host_use *peal_sim_host_use_new(const struct peal_plan *plan)
{
    struct peal_host_use *use = calloc(1, sizeof *use + plan->bufs.count * sizeof *use->bufs);
    if (!use)
        return NULL;
    use->plan = plan;
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        for (uint32_t i = 0; i < peal_plan_lane_count(plan, rank); i++) {
            const struct peal_lane *lane = peal_plan_lane(plan, rank, i);
            for (uint64_t k = 0; k < lane->ops; k++)
                look_at(use, rank, &peal_plan_ops(plan)[lane->first_op + k]);
        }
    }
    for (uint64_t i = 0; i < plan->bufs.count; i++)
        use->bytes += use->bufs[i].to - use->bufs[i].from +
                      (use->bufs[i].far_to - use->bufs[i].far_from) * (plan->nranks - 1);
    return use;
}

void peal_sim_host_use_free(struct peal_host_use *use)
{
    free(use);
}

static enum host_touch touch_of(const struct peal_sim *sim, const struct peal_ref *ref,
                                uint32_t rank, bool writes)
{
    if (ref->buf >= PEAL_BUF_SLOT)
        return writes ? PUSHED : FETCHED;
    const struct peal_host_use *use = sim->host;
    bool is_far = ref->rank != rank;
    bool is_param = peal_plan_bufs(use->plan)[ref->buf].kind == PEAL_BUF_PARAM;
    if (is_far && is_param && !writes && sim->machine->keys.host_params)
        return KERNEL;
    if (writes)
        return is_far || use->bufs[ref->buf].is_read ? PUSHED : OWN;
    return is_far || use->bufs[ref->buf].is_written ? FETCHED : OWN;
}

uint64_t peal_sim_host_touches(const struct peal_sim *sim, const struct peal_part_lane *lane,
                               const struct peal_op *op)
{
    uint64_t counts[TOUCHES] = {0}, word = 0;
    bool computes = peal_op_applies(op) && sim->machine->keys.host_reduce.count;
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        const struct peal_ref *ref = &lane->refs[op->mem.ref + i];
        if (ref->buf == PEAL_BUF_CONST)
            continue;
        enum host_touch touch = touch_of(sim, ref, lane->rank, peal_op_writes(op, i));
        counts[touch == FETCHED && computes ? REDUCED : touch]++;
    }
    if (peal_op_accumulates(op)) /* its destination is read, too */
        counts[OWN]++;
    for (int i = 0; i < TOUCHES; i++)
        word |= peal_size_min(counts[i], (1 << BITS) - 1) << (BITS * i);
    return word;
}

/* Picoseconds per byte, between the curve's points. */
static double rate_at(const struct peal_machine_curve *curve,
                      const struct peal_machine_curve *fallback, uint64_t bytes)
{
    const struct peal_machine_curve *c = curve->count ? curve : fallback;
    uint64_t i = 0;
    while (i < c->count && c->at[i].bytes < bytes)
        i++;
    uint64_t next = peal_size_min(i, c->count - 1), last = i ? i - 1 : 0;
    double a = (double)c->at[last].rate.num / (double)c->at[last].rate.den;
    double b = (double)c->at[next].rate.num / (double)c->at[next].rate.den;
    if (next == last)
        return a;
    return a + (b - a) * (double)(bytes - c->at[last].bytes) /
                   (double)(c->at[next].bytes - c->at[last].bytes);
}

void peal_sim_host_cost(const struct peal_sim *sim, uint64_t touches, struct peal_coded_op *step)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    const struct peal_machine_curve *curves[TOUCHES] = {
        &k->host_copy, &k->host_fetch, &k->host_reduce, &k->host_push, &k->host_kernel};
    uint64_t footprint = sim->host->bytes, counts[TOUCHES];
    double own = rate_at(&k->host_copy, &k->host_copy, footprint) / 2, per_byte = 0;
    for (int i = 0; i < TOUCHES; i++) {
        counts[i] = touches >> (BITS * i) & ((1 << BITS) - 1);
        double copied = rate_at(curves[i], &k->host_copy, footprint);
        double others = i == REDUCED ? 2 * own : own;
        per_byte += (double)counts[i] * (i == OWN ? own : fmax(copied - others, own));
    }
    step->work = k->host_op + counts[KERNEL] * k->host_kernel_ps;
    step->memory = (uint64_t)llround(per_byte * (double)step->bytes);
}

uint64_t peal_sim_host_core(struct peal_sim *sim, uint32_t rank, uint64_t time)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    uint32_t core = rank % (uint32_t)k->host_cores;
    uint64_t start = peal_size_max(sim->ranks[core].math_free, time);
    if (sim->core_user[core] != rank)
        start += k->host_switch;
    sim->core_user[core] = rank;
    return start;
}
