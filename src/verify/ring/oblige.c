/* SPDX-License-Identifier: Apache-2.0 */
/* What has to hold for every number of ranks of a family, as a list of formulas that must have no
 * solution.
 *
 * Each is the negation of one claim, which comes from the certificate or from the theorem in
 * docs/verifier-all-ranks.md. The variables are
 *
 *   h          P = scale * h + rest
 *   s, p       turn and place of the op in question; p is 0 if the op is for one part
 *   t, w       turn and place of the op that wrote what a source finds; t2, w2 for a second source
 *   v, q       turn and place of any other write
 *   a, b, c    places on the rank that owns the memory
 */
#include "verify/ring/oblige.h"

#include <inttypes.h>

void peal_ring_begin(struct ring_oblige *o, const char *claim, uint32_t op)
{
    peal_text_printf(o->out, "; %" PRIu32 ": %s, op %" PRIu32 "\n(push 1)\n", o->count, claim, op);
    o->count++;
}

void peal_ring_end(struct ring_oblige *o)
{
    peal_text_puts(o->out, "(check-sat)\n(pop 1)\n");
}

/* (assert (not (<= a b))) with the terms of one op */
static void assert_greater(struct ring_oblige *o, struct ring_affine a, struct ring_affine b)
{
    peal_text_puts(o->out, "(assert (not (<= ");
    peal_ring_term(o, a, "s", "p");
    peal_text_puts(o->out, " ");
    peal_ring_term(o, b, "s", "p");
    peal_text_puts(o->out, ")))\n");
}

static void begin_at(struct ring_oblige *o, const char *claim, struct ring_event e)
{
    peal_ring_begin(o, claim, e.op);
    peal_ring_assert_range(o, e);
}

/* --- nothing gets stuck -------------------------------------------------------------------- */

static void oblige_take(struct ring_oblige *o, struct ring_event e)
{
    const struct ring_op *op = &o->m->ops[e.op];
    struct ring_affine one = ring_number(1);
    struct ring_affine posts = peal_ring_before(o->m, e.op, RING_POST, op->sync);
    begin_at(o, "its post comes earlier in the text", e);
    assert_greater(o, op->threshold, posts);
    peal_ring_end(o);
    if (!o->c->chain[op->sync])
        return;
    struct ring_affine nth = ring_add(peal_ring_before(o->m, e.op, RING_TAKE, op->sync), one, 1);
    begin_at(o, "chain: the nth take is for at least n", e);
    assert_greater(o, nth, op->threshold);
    peal_ring_end(o);
    begin_at(o, "chain: the nth take is for at most n", e);
    assert_greater(o, op->threshold, nth);
    peal_ring_end(o);
    begin_at(o, "chain: the next post is no later than the next number", e);
    assert_greater(o, posts, op->threshold);
    peal_ring_end(o);
}

static void oblige_post(struct ring_oblige *o, struct ring_event e)
{
    const struct ring_op *op = &o->m->ops[e.op];
    if (!o->m->syncs[op->sync].channel)
        return;
    struct ring_affine posts = peal_ring_before(o->m, e.op, RING_POST, op->sync);
    struct ring_affine takes = peal_ring_before(o->m, e.op, RING_TAKE, op->sync);
    begin_at(o, "the slot that it needs is free earlier in the text", e);
    assert_greater(o, ring_add(posts, ring_number((int64_t)o->m->depth - 1), -1), takes);
    peal_ring_end(o);
}

static void oblige_channels(struct ring_oblige *o)
{
    for (uint32_t i = 0; i < o->m->nsyncs; i++) {
        if (!o->m->syncs[i].channel)
            continue;
        peal_ring_begin(o, "as many messages are sent as received", i);
        peal_text_puts(o->out, "(assert (not (= ");
        peal_ring_term(o, peal_ring_total(o->m, RING_POST, i), "0", "0");
        peal_text_puts(o->out, " ");
        peal_ring_term(o, peal_ring_total(o->m, RING_TAKE, i), "0", "0");
        peal_text_puts(o->out, ")))\n");
        peal_ring_end(o);
    }
}

/* --- places ---------------------------------------------------------------------------------- */

static bool has_places(const struct ring_oblige *o, const struct ring_access *a)
{
    return o->m->buffers[a->buffer].storage == RING_PARTS;
}

/* Part numbers stay within a few rounds of the ring; peal_ring_assert_place relies on it. */
static void oblige_part(struct ring_oblige *o, const struct ring_access *a, struct ring_event e)
{
    if (a->whole || !has_places(o, a))
        return;
    struct ring_affine part = ring_add(a->part, ring_number(a->shift), -1);
    begin_at(o, "the part is within three rounds", e);
    peal_text_puts(o->out, "(assert (not (and (<= (* (- 3) P) ");
    peal_ring_term(o, part, e.turn, "0");
    peal_text_puts(o->out, ") (< ");
    peal_ring_term(o, part, e.turn, "0");
    peal_text_puts(o->out, " (* 3 P)))))\n");
    peal_ring_end(o);
}

/* --- what a source finds --------------------------------------------------------------------- */

static const struct ring_event reader_at = {.turn = "s", .place = "p"};

static void oblige_covered(struct ring_oblige *o, struct ring_event e, uint32_t source)
{
    begin_at(o, "every turn and place of the source is in some box", e);
    for (uint32_t i = 0; i < o->c->norigins; i++) {
        const struct ring_origin *origin = &o->c->origins[i];
        if (origin->op != e.op || origin->source != source)
            continue;
        peal_text_puts(o->out, "(assert (not ");
        peal_ring_in_box(o, &origin->box, e);
        peal_text_puts(o->out, "))\n");
    }
    peal_ring_end(o);
}

/* The read, in the origin's box: s, p; its writer: t; the place that it wrote: a. */
static void begin_origin(struct ring_oblige *o, const char *claim, const struct ring_origin *origin,
                         struct ring_event read)
{
    const struct ring_access *a = &o->m->ops[origin->op].source[origin->source];
    begin_at(o, claim, read);
    peal_ring_assert_box(o, &origin->box, read);
    peal_text_puts(o->out, "(assert (= t ");
    peal_ring_term(o, origin->turn, read.turn, read.place);
    peal_text_puts(o->out, "))\n");
    if (has_places(o, a))
        peal_ring_assert_place(o, "a", a, read);
}

static bool is_write(const struct ring_oblige *o, uint32_t op, uint32_t buffer)
{
    const struct ring_op *w = &o->m->ops[op];
    return (w->kind == RING_MOVE || w->kind == RING_INPUT) && w->dest.buffer == buffer;
}

/* (= both slots are the same), of a write and of the read */
static void put_same_slot(struct ring_oblige *o, const struct ring_access *write, const char *turn,
                          const struct ring_access *read)
{
    uint32_t slots = o->m->buffers[read->buffer].slots;
    peal_text_puts(o->out, "(= (mod ");
    peal_ring_term(o, write->slot, turn, "0");
    peal_text_printf(o->out, " %" PRIu32 ") (mod ", slots);
    peal_ring_term(o, read->slot, "s", "0");
    peal_text_printf(o->out, " %" PRIu32 "))", slots);
}

static void oblige_slot(struct ring_oblige *o, const struct ring_origin *origin,
                        struct ring_event read)
{
    const struct ring_access *a = &o->m->ops[origin->op].source[origin->source];
    if (o->m->buffers[a->buffer].slots == 1)
        return;
    begin_origin(o, "the writer writes that slot", origin, read);
    peal_text_puts(o->out, "(assert (not ");
    put_same_slot(o, &o->m->ops[origin->writer].dest, "t", a);
    peal_text_puts(o->out, "))\n");
    peal_ring_end(o);
}

/* The writer has that turn, in its own range, and writes the place. */
static void oblige_writer(struct ring_oblige *o, const struct ring_origin *origin,
                          struct ring_event read)
{
    const struct ring_op *w = &o->m->ops[origin->writer];
    const struct ring_segment *g = &o->m->segments[w->segment];
    begin_origin(o, "the writer has that turn", origin, read);
    peal_text_puts(o->out, "(assert (not (and (<= ");
    peal_ring_term(o, g->first, "0", "0");
    peal_text_puts(o->out, " t) (< t ");
    peal_ring_term(o, g->end, "0", "0");
    peal_text_puts(o->out, "))))\n");
    peal_ring_end(o);
    if (!has_places(o, &w->dest) || w->dest.whole)
        return;
    begin_origin(o, "the writer writes that place", origin, read);
    peal_ring_assert_place(o, "b", &w->dest,
                           (struct ring_event){.op = origin->writer, .turn = "t", .place = "w"});
    peal_text_puts(o->out, "(assert (not (= a b)))\n");
    peal_ring_end(o);
}

static void put_first(struct ring_oblige *o, struct ring_event write, struct ring_event read,
                      const struct ring_access *a)
{
    if (a->shift)
        peal_ring_write_first(o, write, read, a->shift);
    else
        peal_ring_earlier(o, write, read);
}

static void oblige_message(struct ring_oblige *o, const struct ring_origin *origin,
                           struct ring_event read, uint32_t sync)
{
    begin_origin(o, "the message has the number of the recv", origin, read);
    peal_text_puts(o->out, "(assert (not (= (+ 1 ");
    peal_ring_term(o, peal_ring_before(o->m, origin->writer, RING_POST, sync), "t", "0");
    peal_text_puts(o->out, ") ");
    peal_ring_term(o, peal_ring_before(o->m, read.op, RING_TAKE, sync), read.turn, "0");
    peal_text_puts(o->out, ")))\n");
    peal_ring_end(o);
}

/* Any op that writes the place after the writer does so after the read. */
static void oblige_overwrite(struct ring_oblige *o, const struct ring_origin *origin,
                             struct ring_event read, uint32_t other)
{
    const struct ring_access *a = &o->m->ops[read.op].source[origin->source];
    const struct ring_op *w = &o->m->ops[other];
    struct ring_event write = {.op = origin->writer, .turn = "t", .place = "w"};
    struct ring_event later = {.op = other, .turn = "v", .place = "q"};
    begin_origin(o, "what overwrites it comes after the read", origin, read);
    peal_ring_assert_range(o, later);
    if (has_places(o, a) && !w->dest.whole) {
        peal_ring_assert_place(o, "c", &w->dest, later);
        peal_text_puts(o->out, "(assert (= a c))\n");
    }
    if (o->m->buffers[a->buffer].slots > 1) {
        peal_text_puts(o->out, "(assert ");
        put_same_slot(o, &w->dest, later.turn, a);
        peal_text_puts(o->out, ")\n");
    }
    peal_text_puts(o->out, "(assert ");
    peal_ring_earlier(o, write, later);
    peal_text_puts(o->out, ")\n(assert ");
    if (a->shift) {
        peal_text_puts(o->out, "(not ");
        peal_ring_read_first(o, read, later, a->shift);
        peal_text_puts(o->out, ")");
    } else {
        peal_ring_earlier(o, later, read);
    }
    peal_text_puts(o->out, ")\n");
    peal_ring_end(o);
}

static void oblige_origin(struct ring_oblige *o, const struct ring_origin *origin)
{
    struct ring_event read = reader_at, write = {.op = origin->writer, .turn = "t", .place = "w"};
    const struct ring_access *a = &o->m->ops[origin->op].source[origin->source];
    const struct ring_buffer *b = &o->m->buffers[a->buffer];
    read.op = origin->op;
    oblige_writer(o, origin, read);
    oblige_slot(o, origin, read);
    if (b->storage == RING_MESSAGE) {
        oblige_message(o, origin, read, b->sync);
        return;
    }
    begin_origin(o, "it is written before", origin, read);
    peal_text_puts(o->out, "(assert (not ");
    put_first(o, write, read, a);
    peal_text_puts(o->out, "))\n");
    peal_ring_end(o);
    for (uint32_t i = 0; i < o->m->nops; i++) {
        bool lane = o->m->segments[o->m->ops[i].segment].lane ==
                    o->m->segments[o->m->ops[read.op].segment].lane;
        if (lane && is_write(o, i, a->buffer))
            oblige_overwrite(o, origin, read, i);
    }
}

static void oblige_source(struct ring_oblige *o, struct ring_event e, uint32_t source)
{
    const struct ring_access *a = &o->m->ops[e.op].source[source];
    oblige_part(o, a, e);
    oblige_covered(o, e, source);
    if (!a->shift)
        return;
    /* With several vectors in turn, the owner may leave before the read, but not the launch after
     * it: there it hears from what the reader did after this launch. */
    bool in_turn = o->m->buffers[a->buffer].phases > 1;
    begin_at(o, "the owner of the memory leaves the launch after the read", e);
    peal_text_puts(o->out, "(assert (not (or ");
    peal_ring_leaves_later(o, e, a->shift);
    if (in_turn)
        peal_ring_heard(o, o->m->segments[o->m->ops[e.op].segment].lane, a->shift);
    peal_text_puts(o->out, ")))\n");
    peal_ring_end(o);
}

/* --- all of it ------------------------------------------------------------------------------- */

static void oblige_op(struct ring_oblige *o, uint32_t op)
{
    const struct ring_op *at = &o->m->ops[op];
    struct ring_event e = reader_at;
    e.op = op;
    if (at->kind == RING_TAKE)
        oblige_take(o, e);
    if (at->kind == RING_POST)
        oblige_post(o, e);
    if (at->kind == RING_MOVE || at->kind == RING_INPUT)
        oblige_part(o, &at->dest, e);
    for (uint32_t i = 0; i < at->nsources; i++)
        oblige_source(o, e, i);
}

/* A claim that names an op or sync that does not exist is refused. */
static bool is_sound(const struct ring_model *m, const struct ring_certificate *c)
{
    for (uint32_t i = 0; i < c->norigins; i++) {
        const struct ring_origin *origin = &c->origins[i];
        if (origin->op >= m->nops || origin->source >= m->ops[origin->op].nsources ||
            origin->writer >= m->nops)
            return false;
        const struct ring_op *w = &m->ops[origin->writer];
        uint32_t lane = m->segments[m->ops[origin->op].segment].lane;
        if ((w->kind != RING_MOVE && w->kind != RING_INPUT) ||
            m->segments[w->segment].lane != lane ||
            w->dest.buffer != m->ops[origin->op].source[origin->source].buffer)
            return false;
    }
    for (uint32_t i = 0; i < c->nvalues; i++) {
        uint32_t op = c->values[i].op;
        if (op >= m->nops || (m->ops[op].kind != RING_MOVE && m->ops[op].kind != RING_INPUT))
            return false;
    }
    return true;
}

uint32_t peal_ring_oblige(const struct ring_model *m, const struct ring_certificate *c,
                          struct peal_text *out)
{
    static const char *const names[] = {"h", "s", "p", "t", "w",  "v",
                                        "q", "a", "b", "c", "t2", "w2"};
    struct ring_oblige o = {.m = m, .c = c, .out = out};
    peal_text_puts(out, "(set-logic QF_LIA)\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        peal_text_printf(out, "(declare-const %s Int)\n", names[i]);
    peal_text_printf(out, "(define-fun P () Int (+ (* %" PRId64 " h) %" PRId64 "))\n", m->scale,
                     m->rest);
    peal_text_printf(out, "(assert (>= h %" PRId64 "))\n", m->least);
    if (!is_sound(m, c)) {
        peal_ring_begin(&o, "the certificate names what is not there", 0);
        peal_ring_end(&o);
        return o.count;
    }
    for (uint32_t i = 0; i < m->nops; i++)
        oblige_op(&o, i);
    for (uint32_t i = 0; i < c->norigins; i++)
        oblige_origin(&o, &c->origins[i]);
    oblige_channels(&o);
    peal_ring_oblige_values(&o);
    return o.count;
}
