/* SPDX-License-Identifier: Apache-2.0 */
/* When one event must come before another, in terms of posts and takes.
 *
 * A rank that has taken n of a sync knows that its poster has passed everything before its nth
 * post. So a write on the poster is before an event of the taker if the first post after the write,
 * which has the number (posts before it) + 1, is at most what the taker has taken. Over several
 * ranks: if the sync is a chain, what is known after taking n on one rank is known after taking n +
 * 1 on the next.
 */
#include "verify/ring/oblige.h"

void peal_ring_earlier(struct ring_oblige *o, struct ring_event a, struct ring_event b)
{
    uint32_t one = o->m->ops[a.op].segment, two = o->m->ops[b.op].segment;
    if (one != two)
        peal_text_puts(o->out, one < two ? "true" : "false");
    else
        peal_text_printf(o->out, "(%s %s %s)", a.op < b.op ? "<=" : "<", a.turn, b.turn);
}

/* The first post after `from`, plus `more`, is at most the threshold in that turn. */
static void put_reached(struct ring_oblige *o, uint32_t sync, struct ring_event from,
                        struct ring_affine more, struct ring_affine threshold, const char *turn)
{
    peal_text_puts(o->out, "(<= (+ 1 ");
    peal_ring_term(o, peal_ring_before(o->m, from.op, RING_POST, sync), from.turn, "0");
    peal_text_puts(o->out, " ");
    peal_ring_term(o, more, "0", "0");
    peal_text_puts(o->out, ") ");
    peal_ring_term(o, threshold, turn, "0");
    peal_text_puts(o->out, ")");
}

/* The threshold of the last turn of a take's segment. */
static struct ring_affine last_threshold(const struct ring_oblige *o, uint32_t take)
{
    const struct ring_segment *g = &o->m->segments[o->m->ops[take].segment];
    struct ring_affine threshold = o->m->ops[take].threshold, base = threshold;
    base.turn = 0;
    return ring_add(base, ring_add(g->end, ring_number(1), -1), threshold.turn);
}

/* Some take of the sync before the event `to` reaches the first post after `from`, plus `more`. */
static void put_taken(struct ring_oblige *o, uint32_t sync, struct ring_event from,
                      struct ring_affine more, struct ring_event to)
{
    const struct ring_model *m = o->m;
    uint32_t segment = m->ops[to.op].segment;
    for (uint32_t i = 0; i < m->nops; i++) {
        const struct ring_op *take = &m->ops[i];
        if (take->kind != RING_TAKE || take->sync != sync || take->segment > segment)
            continue;
        peal_text_puts(o->out, " (and ");
        if (take->segment < segment) {
            put_reached(o, sync, from, more, last_threshold(o, i), "0");
        } else if (i < to.op) {
            put_reached(o, sync, from, more, take->threshold, to.turn);
        } else { /* the one of the previous turn, if there is one */
            peal_text_puts(o->out, "(< ");
            peal_ring_term(o, m->segments[segment].first, "0", "0");
            peal_text_printf(o->out, " %s) ", to.turn);
            struct ring_affine before = take->threshold;
            before.one -= before.turn;
            put_reached(o, sync, from, more, before, to.turn);
        }
        peal_text_puts(o->out, ")");
    }
}

void peal_ring_write_first(struct ring_oblige *o, struct ring_event write, struct ring_event read,
                           int32_t shift)
{
    const struct ring_model *m = o->m;
    uint32_t lane = m->segments[m->ops[read.op].segment].lane;
    peal_text_puts(o->out, "(or false");
    for (uint32_t i = 0; i < m->nsyncs; i++) {
        if (m->syncs[i].lane == lane && m->syncs[i].shift == -shift)
            put_taken(o, i, write, ring_number(0), read);
    }
    peal_text_puts(o->out, ")");
}

/* How many times a sync that goes `step` ranks further has to be passed on to reach the rank at
 * distance `shift`, minus one. False: it does not get there, or only as a chain, which it is
 * not. */
static bool hops_between(const struct ring_oblige *o, uint32_t sync, int32_t shift,
                         struct ring_affine *out)
{
    int32_t step = o->m->syncs[sync].shift;
    *out = ring_number(0);
    if (step == shift)
        return true;
    if (!o->c->chain[sync] || (step != 1 && step != -1))
        return false;
    int64_t hops = (int64_t)shift * step;
    *out = ring_number(hops - 1);
    if (hops < 0)
        *out = ring_add(*out, ring_ranks(o->m), 1);
    return true;
}

void peal_ring_read_first(struct ring_oblige *o, struct ring_event read, struct ring_event write,
                          int32_t shift)
{
    const struct ring_model *m = o->m;
    uint32_t lane = m->segments[m->ops[read.op].segment].lane;
    peal_text_puts(o->out, "(or false");
    for (uint32_t i = 0; i < m->nsyncs; i++) {
        struct ring_affine hops;
        if (m->syncs[i].lane == lane && hops_between(o, i, shift, &hops))
            put_taken(o, i, read, hops, write);
    }
    peal_text_puts(o->out, ")");
}

void peal_ring_heard(struct ring_oblige *o, uint32_t lane, int32_t shift)
{
    const struct ring_model *m = o->m;
    peal_text_puts(o->out, "(or false");
    for (uint32_t i = 0; i < m->nops; i++) {
        const struct ring_op *take = &m->ops[i];
        struct ring_affine hops;
        if (take->kind != RING_TAKE || m->syncs[take->sync].lane != lane ||
            m->syncs[take->sync].channel || !hops_between(o, take->sync, shift, &hops))
            continue;
        peal_text_puts(o->out, " (<= (+ 1 ");
        peal_ring_term(o, hops, "0", "0");
        peal_text_puts(o->out, ") ");
        peal_ring_term(o, last_threshold(o, i), "0", "0");
        peal_text_puts(o->out, ")");
    }
    peal_text_puts(o->out, ")");
}

void peal_ring_leaves_later(struct ring_oblige *o, struct ring_event read, int32_t shift)
{
    const struct ring_model *m = o->m;
    uint32_t lane = m->segments[m->ops[read.op].segment].lane;
    peal_text_puts(o->out, "(or false");
    for (uint32_t i = 0; i < m->nops; i++) {
        const struct ring_op *take = &m->ops[i];
        if (take->kind != RING_TAKE || m->syncs[take->sync].lane != lane ||
            m->syncs[take->sync].shift != shift)
            continue;
        peal_text_puts(o->out, " ");
        put_reached(o, take->sync, read, ring_number(0), last_threshold(o, i), "0");
    }
    peal_text_puts(o->out, ")");
}
