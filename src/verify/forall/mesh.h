/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a mesh kernel, as the checks see it. */
#ifndef PEAL_VERIFY_FORALL_MESH_H
#define PEAL_VERIFY_FORALL_MESH_H

#include "lang/lang.h"
#include "verify/forall/forall.h"
#include "verify/forall/normal.h"

/* The role of a symbol in a mesh, by its slot. */
enum mesh_role { MESH_OTHER, MESH_RANK, MESH_SIZE };
/* The rank that a statement is confined to. */
enum mesh_pin { MESH_ANY, MESH_ZERO, MESH_ROOT };

/* How a buffer is divided. All accesses of one buffer agree on it, except those to the whole
 * buffer. */
enum mesh_cut { MESH_WHOLE, MESH_PREFIX, MESH_PARTS, MESH_SLOTS };

struct mesh_layout {
    enum mesh_cut cut;          /* except for whole accesses */
    int64_t phases;             /* SLOTS: how many there are for each rank: k of `launch mod k` */
    uint32_t ranks;             /* SLOTS: how many rank numbers the index contains */
    const struct peal_expr *of; /* SLOTS: length of a slot */
    int64_t pieces;             /* PARTS: into how many pieces some parts are divided; 1: none */
    bool inner;                 /* PARTS: parts of pieces, not pieces of parts */
    bool prefixes;              /* SLOTS: some accesses are as long as a rank's part */
    bool parts;                 /* SLOTS: some are a rank's part of a vector in the slot */
};

enum { MESH_MAX_DEPTH = 2, MESH_MAX_ASSERTS = 16, MESH_MAX_SYNCS = 256 };

/* A notify or wait of the text: its position, the calls that it was inlined by (0: none), and the
 * outermost loop around it. */
struct mesh_sync {
    uint32_t line, col;
    uint64_t via;
    uint32_t block;
};

/* The calls that something was inlined by, the innermost of them at that position. */
static inline uint64_t mesh_via(uint32_t line, uint32_t col, uint64_t outer)
{
    return peal_hash_u64((uint64_t)line << 32 | col, peal_hash_u64(outer, 1)) | 1;
}

struct mesh {
    struct peal_normal normal;        /* the text that is read */
    const struct peal_kernel *kernel; /* in it */
    struct peal_forall *out;
    uint8_t *role;              /* [slot] enum mesh_role */
    uint8_t *writer;            /* [slot] of scalar signals: enum mesh_pin */
    struct mesh_layout *layout; /* [slot] of buffers */
    /* a <= b, asserted so far by every rank, whatever the number of ranks */
    const struct peal_expr *asserts[MESH_MAX_ASSERTS];
    uint32_t nasserts;
    bool even;                 /* nranks divides the dimension, likewise */
    uint32_t conditions;       /* enclosing branches */
    bool zero, root, last;     /* does the text name rank 0, the root, rank nranks - 1? */
    bool messages, shared;     /* does it have messages, waits for shared cells? */
    bool reaches;              /* does it name memory of other ranks? */
    uint32_t nsignals;         /* that it declares */
    struct peal_pos at;        /* of the statement that is being read */
    bool noted;                /* it is among the syncs */
    uint32_t depth, max_depth; /* of loops over ranks */
    const struct peal_symbol *loop[MESH_MAX_DEPTH + 1]; /* their variables, outermost first */
    const struct peal_stmt *turns[MESH_MAX_DEPTH + 1];  /* their bodies */
    uint64_t *home;         /* [slot] of signals: the calls in which it is used, see mesh_sync */
    uint64_t via;           /* of the statement that is being read */
    int64_t pieces;         /* the least common multiple of all numbers of pieces */
    uint8_t *born;          /* [slot] of tiles: depth of the loop in which they are made */
    uint32_t remote;        /* parts of buffers on other ranks that the text names */
    uint32_t block, blocks; /* see mesh_sync */
    struct mesh_sync syncs[MESH_MAX_SYNCS];
    uint32_t nsyncs;
    enum mesh_pin pin;
    /* clauses.c: */
    bool clauses;                    /* there is an ensures */
    const struct peal_symbol *index; /* of the clause that is read: of all elements */
    const struct peal_expr *unit;    /* ... which are this many, ... */
    bool split;                      /* ... for each rank */
    uint8_t *by_rank;                /* [slot] of buffers: a clause divides it, a part per rank */
    uint32_t clause_depth;           /* of reductions over ranks in clauses */
    uint32_t clause_digits;          /* ranks that both sides of a clause can name parts by */
    int64_t least_ranks;             /* that the caller promises */
    int64_t least_count;
};

/* Fills in `out`; the mesh is for the checks on plans. Release it in every case. */
bool peal_mesh_read(struct mesh *m, const struct peal_kernel *kernel, struct peal_forall *out);
void peal_mesh_release(struct mesh *m);

/* Keeps the first reason; returns false. */
bool peal_mesh_refuse(struct mesh *m, struct peal_pos at, const char *why);
/* Is it a rank: rank, root, 0, a peer, or the variable of a loop over all ranks? */
bool peal_mesh_is_rank(struct mesh *m, const struct peal_expr *e);
bool peal_mesh_is_nranks(const struct peal_expr *e);
/* Equality of ranks, and combinations of it. */
bool peal_mesh_is_condition(struct mesh *m, const struct peal_expr *e);
/* Does the loop name each rank, each but the first, or each but the last? */
bool peal_mesh_is_over_ranks(struct mesh *m, const struct peal_expr *from,
                             const struct peal_expr *to);

/* clauses.c: an ensures whose parts are those of meshes; a requires about sizes and ranks. */
bool peal_mesh_ensures(struct mesh *m, const struct peal_stmt *s);
bool peal_mesh_requires(struct mesh *m, const struct peal_expr *e);
/* region.c: the number of digits of base nranks in the buffer's length, and the size of what each
 * names; false: it has another shape. */
bool peal_mesh_shape(struct mesh *m, const struct peal_symbol *s, uint32_t *digits,
                     const struct peal_expr **unit);
/* region.c: is it a whole buffer, a part per rank, a row per rank or a slot? */
bool peal_mesh_region(struct mesh *m, const struct peal_expr *e);
/* A buffer of no elements. */
bool peal_mesh_is_empty(const struct peal_expr *e);

/* project.c: the sync ops of `whole`, restricted to the ranks of `keep` (sorted, as many as `part`
 * has ranks), are those of `part`. */
bool peal_mesh_projects(const struct peal_plan *whole, const struct peal_plan *part,
                        const uint32_t *keep);

/* What is known of shared cells, of all plans together. */
struct mesh_totals {
    uint32_t *until;       /* [block] of waits: they wait for all that is added up to this block */
    uint64_t early, stays; /* bits of signals: see totals.c */
};

/* A plan, and where its notifies, waits and messages are in the text. */
struct mesh_view {
    const struct mesh *m;
    const struct peal_plan *plan;
    const struct mesh_totals *totals;
    uint32_t
        *block;    /* [op] of notifies, waits, messages and slots that are given back; 0: others */
    uint32_t *nth; /* [op] of messages and slots that are given back: which of their channel */
};

/* Does the op use a shared cell? */
static inline bool mesh_is_shared(const struct mesh_view *v, const struct peal_op *op)
{
    return peal_op_is_sync(op) &&
           peal_plan_signals(v->plan)[peal_op_signal(op)].kind == PEAL_SIGNAL_SHARED;
}

/* stuck.c: false: an op is in no block, or out of memory. Release it in every case. */
bool peal_mesh_view(struct mesh_view *v, const struct mesh *m, const struct peal_plan *plan,
                    const struct mesh_totals *totals);
void peal_mesh_release_view(struct mesh_view *v);
/* The op of `rank` that op i needs to pass, a wait or a message; PEAL_NONE: none. */
uint32_t peal_mesh_need(const struct mesh_view *v, uint64_t i, uint32_t rank);
/* The blocks of the text can be numbered so that each wait needs notifies of blocks with smaller
 * numbers only, and ranks pass blocks in the order of their numbers. */
bool peal_mesh_waits_for_earlier(const struct mesh_view *v);

/* totals.c: is every wait for a shared cell one for all that was added up to some block, the same
 * for all numbers of ranks? The last call, without a view, says whether nothing is added too early. */
bool peal_mesh_waits_for_totals(const struct mesh_view *v, struct mesh_totals *totals);
bool peal_mesh_adds_in_time(const struct mesh_totals *totals);

#endif
