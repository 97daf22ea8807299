/* SPDX-License-Identifier: Apache-2.0 */
/* Affine functions, ranges and places as SMT-LIB. */
#include "verify/ring/oblige.h"

#include <inttypes.h>

/* A place is a part's number plus at most this many times P, in either direction; another
 * obligation shows that. */
enum { MAX_ROUNDS = 3 };

static void put_number(struct ring_oblige *o, int64_t n)
{
    if (n < 0)
        peal_text_printf(o->out, "(- %" PRId64 ")", -n);
    else
        peal_text_printf(o->out, "%" PRId64, n);
}

static void put_product(struct ring_oblige *o, int64_t factor, const char *name)
{
    if (!factor)
        return;
    peal_text_puts(o->out, " (* ");
    put_number(o, factor);
    peal_text_printf(o->out, " %s)", name);
}

void peal_ring_term(struct ring_oblige *o, struct ring_affine a, const char *turn,
                    const char *place)
{
    peal_text_puts(o->out, "(+ 0");
    put_product(o, a.turn, turn);
    put_product(o, a.place, place);
    put_product(o, a.family, "h");
    peal_text_puts(o->out, " ");
    put_number(o, a.one);
    peal_text_puts(o->out, ")");
}

/* low <= name < end */
static void put_between(struct ring_oblige *o, struct ring_affine low, const char *name,
                        struct ring_affine end)
{
    peal_text_puts(o->out, "(and (<= ");
    peal_ring_term(o, low, "0", "0");
    peal_text_printf(o->out, " %s) (< %s ", name, name);
    peal_ring_term(o, end, "0", "0");
    peal_text_puts(o->out, "))");
}

void peal_ring_assert_range(struct ring_oblige *o, struct ring_event e)
{
    const struct ring_op *op = &o->m->ops[e.op];
    const struct ring_segment *g = &o->m->segments[op->segment];
    peal_text_puts(o->out, "(assert ");
    put_between(o, g->first, e.turn, g->end);
    peal_text_puts(o->out, ")\n(assert ");
    if (op->whole)
        put_between(o, ring_number(0), e.place, ring_ranks(o->m));
    else
        peal_text_printf(o->out, "(= %s 0)", e.place);
    peal_text_puts(o->out, ")\n");
}

void peal_ring_in_box(struct ring_oblige *o, const struct ring_box *box, struct ring_event e)
{
    peal_text_puts(o->out, "(and ");
    put_between(o, box->turn, e.turn, box->turn_end);
    peal_text_puts(o->out, " ");
    put_between(o, box->place, e.place, box->place_end);
    peal_text_puts(o->out, ")");
}

void peal_ring_assert_box(struct ring_oblige *o, const struct ring_box *box, struct ring_event e)
{
    peal_text_puts(o->out, "(assert ");
    peal_ring_in_box(o, box, e);
    peal_text_puts(o->out, ")\n");
}

/* The part's number as its owner counts it, before the reduction modulo P. */
static void put_part(struct ring_oblige *o, const struct ring_access *a, int32_t shift,
                     struct ring_event e)
{
    struct ring_affine part = a->whole ? (struct ring_affine){.place = 1} : a->part;
    peal_ring_term(o, ring_add(part, ring_number(shift), -1), e.turn, e.place);
}

static int32_t owner_of(const struct ring_oblige *o, const struct ring_access *a)
{
    const struct ring_buffer *b = &o->m->buffers[a->buffer];
    return b->storage == RING_MESSAGE ? -o->m->syncs[b->sync].shift : a->shift;
}

void peal_ring_assert_place(struct ring_oblige *o, const char *name, const struct ring_access *a,
                            struct ring_event e)
{
    int32_t shift = owner_of(o, a);
    peal_text_printf(o->out, "(assert (and (<= 0 %s) (< %s P) (or", name, name);
    for (int64_t rounds = -MAX_ROUNDS; rounds <= MAX_ROUNDS; rounds++) {
        peal_text_printf(o->out, " (= %s (+ ", name);
        put_part(o, a, shift, e);
        peal_text_puts(o->out, " (* ");
        put_number(o, rounds);
        peal_text_puts(o->out, " P)))");
    }
    peal_text_puts(o->out, ")))\n");
}

void peal_ring_congruent(struct ring_oblige *o, const char *a, const char *b)
{
    peal_text_puts(o->out, "(or");
    for (int64_t rounds = -2 * MAX_ROUNDS; rounds <= 2 * MAX_ROUNDS; rounds++) {
        peal_text_printf(o->out, " (= %s (+ %s (* ", a, b);
        put_number(o, rounds);
        peal_text_puts(o->out, " P)))");
    }
    peal_text_puts(o->out, ")");
}
