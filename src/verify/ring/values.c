/* SPDX-License-Identifier: Apache-2.0 */
/* Obligations about values: what an op writes follows from what its sources find, and the output at
 * the end is what the contract says.
 *
 * A value is the reduction of one part over ranks start, start + 1, ..., start + length - 1, round
 * the ring. If length is P, every rank is in it once, wherever it starts.
 */
#include "verify/ring/oblige.h"

/* A source, its claimed origin, and the claimed value of its writer. */
struct found {
    const struct ring_access *access;
    const struct ring_origin *origin;
    const struct ring_value *value;
    const char *turn, *place; /* of the writer */
    int32_t shift;            /* of the rank where it was written */
};

static int32_t owner_of(const struct ring_oblige *o, const struct ring_access *a)
{
    const struct ring_buffer *b = &o->m->buffers[a->buffer];
    return b->storage == RING_MESSAGE ? -o->m->syncs[b->sync].shift : a->shift;
}

/* --- terms ----------------------------------------------------------------------------------- */

/* A number of a found value as the reader counts it: shifted by `shift` ranks. */
static void define(struct ring_oblige *o, const char *name, const struct found *f,
                   struct ring_affine a, int32_t shift)
{
    peal_text_printf(o->out, "(define-fun %s () Int ", name);
    peal_ring_term(o, ring_add(a, ring_number(shift), 1), f->turn, f->place);
    peal_text_puts(o->out, ")\n");
}

static void define_own(struct ring_oblige *o, const char *name, struct ring_affine a)
{
    peal_text_printf(o->out, "(define-fun %s () Int ", name);
    peal_ring_term(o, a, "s", "p");
    peal_text_puts(o->out, ")\n");
}

/* The part that an access names, as its rank counts it. False: any part. */
static bool named_part(const struct ring_oblige *o, const struct ring_access *a,
                       struct ring_affine *out)
{
    *out = a->whole ? (struct ring_affine){.place = 1} : a->part;
    return a->whole || a->named || o->m->buffers[a->buffer].storage == RING_PARTS;
}

/* --- premises -------------------------------------------------------------------------------- */

/* The reader at s, p finds what its origin and the writer's value say. */
static void assert_found(struct ring_oblige *o, const struct found *f, struct ring_event read)
{
    struct ring_event write = {.op = f->origin->writer, .turn = f->turn, .place = f->place};
    peal_ring_assert_box(o, &f->origin->box, read);
    peal_text_printf(o->out, "(assert (= %s ", f->turn);
    peal_ring_term(o, f->origin->turn, read.turn, read.place);
    peal_text_puts(o->out, "))\n");
    if (o->m->ops[write.op].whole)
        peal_ring_assert_place(o, f->place, f->access, read);
    else
        peal_text_printf(o->out, "(assert (= %s 0))\n", f->place);
    peal_ring_assert_box(o, &f->value->box, write);
}

static void define_found(struct ring_oblige *o, const struct found *f, const char *start,
                         const char *length, const char *part)
{
    define(o, start, f, f->value->start, f->shift);
    define(o, length, f, f->value->length, 0);
    define(o, part, f, f->value->part, f->shift);
}

/* --- goals ----------------------------------------------------------------------------------- */

/* its start is that of a, or it contains all ranks */
static void put_starts(struct ring_oblige *o, const char *a)
{
    peal_text_puts(o->out, "(or (= length P) ");
    peal_ring_congruent(o, "start", a);
    peal_text_puts(o->out, ")");
}

/* a ends where b starts, and the sum starts where a does */
static void put_joined(struct ring_oblige *o, const char *a_end, const char *b, const char *a)
{
    peal_text_puts(o->out, "(and ");
    peal_ring_congruent(o, a_end, b);
    peal_text_puts(o->out, " ");
    put_starts(o, a);
    peal_text_puts(o->out, ")");
}

static void put_part_goal(struct ring_oblige *o, const struct found *f, const char *part)
{
    struct ring_affine named;
    peal_text_puts(o->out, " ");
    peal_ring_congruent(o, "part", part);
    if (!named_part(o, f->access, &named))
        return;
    peal_text_puts(o->out, " (let ((n ");
    peal_ring_term(o, named, "s", "p");
    peal_text_puts(o->out, ")) ");
    peal_ring_congruent(o, part, "n");
    peal_text_puts(o->out, ")");
}

static bool finals_fit(const struct ring_op *op, const struct ring_value *v, const struct found *f,
                       uint32_t n)
{
    bool before = false;
    for (uint32_t i = 0; i < n; i++)
        before = before || f[i].value->final;
    if (before && (n > 1 || op->final))
        return false;
    return v->final == (before || op->final);
}

/* One op, one of its claimed values, and one origin and value for each of its sources. */
static void oblige_case(struct ring_oblige *o, const struct ring_value *v, const struct found *f,
                        uint32_t n)
{
    const struct ring_op *op = &o->m->ops[v->op];
    struct ring_event read = {.op = v->op, .turn = "s", .place = "p"};
    peal_ring_begin(o, "the value is that of its sources", v->op);
    peal_ring_assert_range(o, read);
    peal_ring_assert_box(o, &v->box, read);
    define_own(o, "start", v->start);
    define_own(o, "length", v->length);
    define_own(o, "part", v->part);
    assert_found(o, &f[0], read);
    define_found(o, &f[0], "start1", "length1", "part1");
    peal_text_puts(o->out, "(define-fun end1 () Int (+ start1 length1))\n");
    if (n > 1) {
        assert_found(o, &f[1], read);
        define_found(o, &f[1], "start2", "length2", "part2");
        peal_text_puts(o->out, "(define-fun end2 () Int (+ start2 length2))\n");
    }
    if (finals_fit(op, v, f, n)) {
        peal_text_puts(o->out, "(assert (not (and");
        put_part_goal(o, &f[0], "part1");
        if (n > 1) {
            put_part_goal(o, &f[1], "part2");
            peal_text_puts(o->out, " (= length (+ length1 length2)) (or ");
            put_joined(o, "end1", "start2", "start1");
            put_joined(o, "end2", "start1", "start2");
            peal_text_puts(o->out, ")");
        } else {
            peal_text_puts(o->out, " (= length length1) ");
            put_starts(o, "start1");
        }
        peal_text_puts(o->out, ")))\n");
    }
    peal_ring_end(o);
}

/* What an output parameter finds at the end. */
static void oblige_output(struct ring_oblige *o, uint32_t op, const struct found *f)
{
    struct ring_event read = {.op = op, .turn = "s", .place = "p"};
    bool gathers = o->m->contract == PEAL_CONTRACT_ALLGATHER;
    peal_ring_begin(o, "the output is what the contract says", op);
    peal_ring_assert_range(o, read);
    assert_found(o, f, read);
    define_found(o, f, "start1", "length1", "part1");
    peal_text_puts(o->out, "(define-fun part () Int p)\n");
    if (f->value->final == o->m->finals) {
        peal_text_puts(o->out, "(assert (not (and");
        put_part_goal(o, f, "part1");
        if (gathers) {
            peal_text_puts(o->out, " (= length1 1) ");
            peal_ring_congruent(o, "start1", "p");
        } else {
            peal_text_puts(o->out, " (= length1 P)");
        }
        peal_text_puts(o->out, ")))\n");
    }
    peal_ring_end(o);
}

/* --- cases ----------------------------------------------------------------------------------- */

/* Goes through all origins of source i of an op and all values of the writer, then the next
 * source. */
static void each_case(struct ring_oblige *o, uint32_t op, const struct ring_value *v,
                      struct found *f, uint32_t i)
{
    static const char *const turns[RING_MAX_SOURCES] = {"t", "t2"};
    static const char *const places[RING_MAX_SOURCES] = {"w", "w2"};
    const struct ring_op *at = &o->m->ops[op];
    if (i == at->nsources) {
        if (at->kind == RING_OUTPUT)
            oblige_output(o, op, f);
        else
            oblige_case(o, v, f, i);
        return;
    }
    for (uint32_t k = 0; k < o->c->norigins; k++) {
        const struct ring_origin *origin = &o->c->origins[k];
        if (origin->op != op || origin->source != i)
            continue;
        for (uint32_t j = 0; j < o->c->nvalues; j++) {
            if (o->c->values[j].op != origin->writer)
                continue;
            const struct ring_access *a = &at->source[i];
            f[i] = (struct found){.access = a,
                                  .origin = origin,
                                  .value = &o->c->values[j],
                                  .turn = turns[i],
                                  .place = places[i],
                                  .shift = owner_of(o, a)};
            each_case(o, op, v, f, i + 1);
        }
    }
}

/* An input holds its own rank's contribution. */
static void oblige_input(struct ring_oblige *o, const struct ring_value *v)
{
    struct ring_event e = {.op = v->op, .turn = "s", .place = "p"};
    peal_ring_begin(o, "an input has its own rank's vector", v->op);
    peal_ring_assert_range(o, e);
    peal_ring_assert_box(o, &v->box, e);
    define_own(o, "start", v->start);
    define_own(o, "length", v->length);
    if (!v->final) {
        peal_text_puts(o->out, "(assert (not (and (= length 1) ");
        peal_ring_congruent(o, "start", "0");
        peal_text_puts(o->out, ")))\n");
    }
    peal_ring_end(o);
}

/* The part that is written is the one that belongs in that place. */
static void oblige_dest(struct ring_oblige *o, const struct ring_value *v)
{
    const struct ring_access *dest = &o->m->ops[v->op].dest;
    struct ring_event e = {.op = v->op, .turn = "s", .place = "p"};
    struct ring_affine named;
    if (!named_part(o, dest, &named))
        return;
    peal_ring_begin(o, "the part is that of its place", v->op);
    peal_ring_assert_range(o, e);
    peal_ring_assert_box(o, &v->box, e);
    define_own(o, "part", v->part);
    define_own(o, "there", named);
    peal_text_puts(o->out, "(assert (not ");
    peal_ring_congruent(o, "part", "there");
    peal_text_puts(o->out, "))\n");
    peal_ring_end(o);
}

static void oblige_covered(struct ring_oblige *o, uint32_t op)
{
    struct ring_event e = {.op = op, .turn = "s", .place = "p"};
    peal_ring_begin(o, "every turn and place of the value is in some box", op);
    peal_ring_assert_range(o, e);
    for (uint32_t i = 0; i < o->c->nvalues; i++) {
        if (o->c->values[i].op != op)
            continue;
        peal_text_puts(o->out, "(assert (not ");
        peal_ring_in_box(o, &o->c->values[i].box, e);
        peal_text_puts(o->out, "))\n");
    }
    peal_ring_end(o);
}

void peal_ring_oblige_values(struct ring_oblige *o)
{
    struct found found[RING_MAX_SOURCES];
    for (uint32_t op = 0; op < o->m->nops; op++) {
        enum ring_kind kind = o->m->ops[op].kind;
        if (kind == RING_MOVE || kind == RING_INPUT)
            oblige_covered(o, op);
        if (kind == RING_OUTPUT)
            each_case(o, op, NULL, found, 0);
    }
    for (uint32_t i = 0; i < o->c->nvalues; i++) {
        const struct ring_value *v = &o->c->values[i];
        oblige_dest(o, v);
        if (o->m->ops[v->op].kind == RING_INPUT)
            oblige_input(o, v);
        else
            each_case(o, v->op, v, found, 0);
    }
}
