/* SPDX-License-Identifier: Apache-2.0 */
/* Obligations as SMT-LIB: terms, and what must not be satisfiable. */
#ifndef PEAL_VERIFY_RING_OBLIGE_H
#define PEAL_VERIFY_RING_OBLIGE_H

#include "verify/ring/model.h"

struct ring_oblige {
    const struct ring_model *m;
    const struct ring_certificate *c;
    struct peal_text *out;
    uint32_t count;
};

/* An op at a turn and a place, both names of variables. */
struct ring_event {
    uint32_t op;
    const char *turn, *place;
};

/* One obligation: begin, then assertions, then end. All together must be unsatisfiable. */
void peal_ring_begin(struct ring_oblige *o, const char *claim, uint32_t op);
void peal_ring_end(struct ring_oblige *o);

/* terms.c. The text of one term or formula; no newline. */
void peal_ring_term(struct ring_oblige *o, struct ring_affine a, const char *turn,
                    const char *place);
/* (assert ...): the event's turn, and its place if it has one, are among those of its op */
void peal_ring_assert_range(struct ring_oblige *o, struct ring_event e);
void peal_ring_assert_box(struct ring_oblige *o, const struct ring_box *box, struct ring_event e);
/* A formula: is it in the box? */
void peal_ring_in_box(struct ring_oblige *o, const struct ring_box *box, struct ring_event e);
/* (assert ...): `name` is the place on its owner that the access names, from 0 to P - 1 */
void peal_ring_assert_place(struct ring_oblige *o, const char *name, const struct ring_access *a,
                            struct ring_event e);
/* A formula: a is b modulo P. This is a sufficient condition, to be used in goals only. */
void peal_ring_congruent(struct ring_oblige *o, const char *a, const char *b);

/* order.c: formulas. The first event is earlier in the text than the second. */
void peal_ring_earlier(struct ring_oblige *o, struct ring_event a, struct ring_event b);
/* What the reader has taken shows that the rank at distance `shift` has passed the write. */
void peal_ring_write_first(struct ring_oblige *o, struct ring_event write, struct ring_event read,
                           int32_t shift);
/* What the rank at distance `shift` has taken before the write shows that the reader has passed the
 * read. */
void peal_ring_read_first(struct ring_oblige *o, struct ring_event read, struct ring_event write,
                          int32_t shift);
/* What the rank at distance `shift` has taken in the whole launch shows that it leaves after the
 * read. */
void peal_ring_leaves_later(struct ring_oblige *o, struct ring_event read, int32_t shift);

/* What the rank at distance `shift` takes in a whole launch comes after this rank's first post in
 * it, and so after all that this rank did in the launch before. */
void peal_ring_heard(struct ring_oblige *o, uint32_t lane, int32_t shift);

/* values.c: obligations about what ops write. */
void peal_ring_oblige_values(struct ring_oblige *o);

#endif
