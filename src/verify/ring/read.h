/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of a ring's text, shared by its files. */
#ifndef PEAL_VERIFY_RING_READ_H
#define PEAL_VERIFY_RING_READ_H

#include "verify/ring/model.h"

/* An integer of the text: rank * own + at, exactly or modulo nranks. */
struct ring_int {
    bool known;
    int64_t own;
    struct ring_affine at;
    bool modular; /* the value is this modulo nranks */
    bool reduced; /* modular, and from 0 to nranks - 1 */
};

struct ring_reader {
    struct ring_model *m;
    struct peal_forall *out;
    struct ring_int *names; /* [slot] integers */
    uint32_t *tiles;        /* [slot] buffer of a tile, plus one; 0: none yet */
    int32_t *pushed; /* [slot] of windows: the distance over which they are written; 0: own */
    bool again;      /* a window turned out to be written over a distance: read again */
    const struct peal_symbol *x, *y, *dim, *op; /* x may be y */
    const struct peal_expr *sum; /* without op: a call of the one reduction, or NULL */
    uint32_t lane;
    uint32_t call, calls; /* 0: outside all calls; they are numbered in the order of the text */
    bool in_loop, single; /* single: the open segment is one turn outside loops */
    struct ring_affine first, end; /* the turns of the loop that is being read */
    bool cut;                      /* reading stopped because a condition changes at turn `at` */
    struct ring_affine at;
};

/* Keeps the first reason; returns false. */
bool peal_ring_refuse(struct ring_reader *r, struct peal_pos at, const char *why);

/* read_int.c. Unknown: it is none of these, and refused. */
struct ring_int peal_ring_int(struct ring_reader *r, const struct peal_expr *e);
/* -1: unknown and refused, or the loop has to be cut (r->cut) */
int peal_ring_condition(struct ring_reader *r, const struct peal_expr *e);
/* Is a(h) > 0, or <= 0, for all h of the family? */
bool peal_ring_above(const struct ring_model *m, struct ring_affine a);
bool peal_ring_not_above(const struct ring_model *m, struct ring_affine a);
/* The distance of a rank, if it is fixed. */
bool peal_ring_peer(struct ring_reader *r, const struct peal_expr *e, int32_t *shift);
bool peal_ring_is_nranks(const struct peal_expr *e);
/* The length of a vector; that of a part, where all are of one length. */
bool peal_ring_is_dim(const struct ring_reader *r, const struct peal_expr *e);
bool peal_ring_is_unit(const struct ring_reader *r, const struct peal_expr *e);

/* read_clause.c: the contract that the kernel implements, or that its one ensures says. */
bool peal_ring_contract(struct ring_reader *r);

/* read_data.c: statements that move data; each adds ops. */
bool peal_ring_assign(struct ring_reader *r, const struct peal_stmt *s);
bool peal_ring_let_tile(struct ring_reader *r, const struct peal_stmt *s);
bool peal_ring_send(struct ring_reader *r, const struct peal_stmt *s);
/* Parameters: what they hold before a launch, and what they must hold after it. */
bool peal_ring_inputs(struct ring_reader *r);
bool peal_ring_outputs(struct ring_reader *r);

/* read.c: a new op at the end of the open segment. NULL: too many, refused. */
struct ring_op *peal_ring_add_op(struct ring_reader *r, enum ring_kind kind, struct peal_pos at);
/* The sync of that symbol, cell and distance, made if it is new. PEAL_NONE: refused. shift 0: not
 * yet known (a wait). */
uint32_t peal_ring_sync(struct ring_reader *r, struct ring_sync sync, struct peal_pos at);

#endif
