/* SPDX-License-Identifier: Apache-2.0 */
/* A ring kernel for every number of ranks at once.
 *
 * Numbers of ranks are taken in families P = scale * h + rest, h >= least (the family 1 * h + 0,
 * unless the text divides nranks by a number). All ranks have the same program but for their own
 * number, so there is one program per lane, a list of segments; a segment is a loop over s, or a
 * single turn:
 *
 *   segment: s in first(h) .. end(h)   op, op, op, ...    every number in an op is affine in s and h
 *
 * Ranks are named by their distance from this rank, and so are parts of vectors: place p of rank r
 * is part r + p (modulo P) of a vector cut into P parts. A position is (segment, s, index of the
 * op).
 */
#ifndef PEAL_VERIFY_RING_MODEL_H
#define PEAL_VERIFY_RING_MODEL_H

#include "lang/lang.h"
#include "verify/forall/forall.h"

#include <stdbool.h>
#include <stdint.h>

/* s * turn + p * place + h * family + one */
struct ring_affine {
    int64_t turn, place, family, one;
};

static inline struct ring_affine ring_number(int64_t one)
{
    return (struct ring_affine){.one = one};
}

/* a + factor * b */
static inline struct ring_affine ring_add(struct ring_affine a, struct ring_affine b,
                                          int64_t factor)
{
    return (struct ring_affine){a.turn + factor * b.turn, a.place + factor * b.place,
                                a.family + factor * b.family, a.one + factor * b.one};
}

static inline bool ring_is_number(struct ring_affine a)
{
    return !a.turn && !a.place && !a.family;
}

static inline int64_t ring_at(struct ring_affine a, int64_t turn, int64_t place, int64_t family)
{
    return a.turn * turn + a.place * place + a.family * family + a.one;
}

enum ring_storage {
    RING_PARTS,  /* a vector of P parts, each a place of its own */
    RING_SLOT,   /* space for one part, any of them */
    RING_MESSAGE /* what a channel carries, in sequence */
};

struct ring_buffer {
    const struct peal_symbol *symbol; /* NULL: messages */
    uint32_t sub, subs; /* the vector is part `sub` of `subs` of the buffer; 0, 1: all */
    uint32_t phases;    /* there are this many, and launch i uses number i modulo it; 1: one */
    uint32_t slots;     /* there are this many, and an access says which; 1: one */
    int32_t pushed;     /* windows: this rank has what lies in the window of rank + this */
    enum ring_storage storage;
    bool window;
    bool whole;    /* messages: whole vectors, not parts */
    bool tile;     /* visible to its lane only */
    uint32_t lane; /* the lane that writes it; PEAL_NONE: none */
    uint32_t sync; /* messages: the channel */
};

/* Part of a vector on the rank at distance `shift`. */
struct ring_access {
    uint32_t buffer;
    int32_t shift;
    bool whole;              /* all places; otherwise: */
    bool named;              /* `part` says which */
    struct ring_affine part; /* part rank + this, modulo P */
    struct ring_affine slot; /* number this, modulo the buffer's slots */
};

/* A signal's cell or a channel: rank r posts, rank r + shift takes. */
struct ring_sync {
    const struct peal_symbol *symbol; /* NULL: the channel without a name */
    uint32_t index;                   /* of the cell */
    uint32_t lane;
    uint32_t call; /* signals: the call in which it is used, or 0 */
    int32_t shift;
    bool channel;
    uint32_t message; /* channels: the buffer */
};

enum ring_kind {
    RING_POST,  /* notify, or the end of a send */
    RING_TAKE,  /* wait, or the start of a recv */
    RING_MOVE,  /* dest = a source, or the reduction of two */
    RING_INPUT, /* before the launch: a parameter holds the contribution of its rank */
    RING_OUTPUT /* after the launch: what must be there */
};

enum { RING_MAX_SOURCES = 2 };

struct ring_op {
    enum ring_kind kind;
    uint32_t segment;
    uint32_t sync;                /* POST, TAKE */
    struct ring_affine threshold; /* TAKE */
    struct ring_access dest;      /* MOVE, INPUT */
    struct ring_access source[RING_MAX_SOURCES];
    uint32_t nsources; /* MOVE; OUTPUT: 1 */
    bool whole;        /* for all places at once: it has a turn per (s, place) */
    bool final;        /* MOVE: final(op, ...) */
    uint32_t line;
};

struct ring_segment {
    uint32_t lane;
    struct ring_affine first, end; /* of s; first < end */
    uint32_t op, ops;
};

enum {
    RING_MAX_OPS = 256,
    RING_MAX_SEGMENTS = 64,
    RING_MAX_BUFFERS = 32,
    RING_MAX_SYNCS = 16,
    RING_MAX_LANES = 8
};

struct ring_model {
    const struct peal_kernel *kernel;
    bool in_place;
    int64_t scale, rest, least;  /* P = scale * h + rest, h >= least */
    enum peal_contract contract; /* that the kernel implements, or that its clause says */
    bool finals;                 /* the result is final(op, ...) */
    bool units;          /* vectors have nranks * n elements, parts n; or n, and about n / nranks */
    int64_t least_count; /* that the caller promises */
    uint32_t depth;      /* of channels */
    uint32_t lanes;
    uint32_t phases; /* of all buffers that have several; 1: none has */
    struct ring_buffer buffers[RING_MAX_BUFFERS];
    uint32_t nbuffers;
    struct ring_sync syncs[RING_MAX_SYNCS];
    uint32_t nsyncs;
    struct ring_segment segments[RING_MAX_SEGMENTS];
    uint32_t nsegments;
    struct ring_op ops[RING_MAX_OPS];
    uint32_t nops;
};

static inline struct ring_affine ring_ranks(const struct ring_model *m)
{
    return (struct ring_affine){.family = m->scale, .one = m->rest};
}

/* read.c: the kernel's text for a family (in place or not), or why it is not a ring. */
bool peal_ring_read(struct ring_model *m, const struct peal_kernel *kernel,
                    struct peal_forall *out);
/* read.c: the numbers that the text divides nranks by: their least common multiple, or 0: too
 * large. */
int64_t peal_ring_scale(const struct peal_kernel *kernel);

/* count.c: how often the sync is posted (or taken) by a lane before an op, in terms of the op's
 * s. */
struct ring_affine peal_ring_before(const struct ring_model *m, uint32_t op, enum ring_kind kind,
                                    uint32_t sync);
/* The same for the whole launch. */
struct ring_affine peal_ring_total(const struct ring_model *m, enum ring_kind kind, uint32_t sync);

/* merge.c: cells that follow each other in the text become one. After plans were compared with the
 * model, because they have the cells of the text. */
void peal_ring_merge(struct ring_model *m);

/* --- the certificate -------------------------------------------------------------------------- */

/* Where something holds: ranges of turns and places with bounds affine in h; ends are excluded. */
struct ring_box {
    struct ring_affine turn, turn_end, place, place_end;
};

/* A source of an op, in a box, finds what `writer` wrote in turn `turn`. */
struct ring_origin {
    uint32_t op, source;
    struct ring_box box;
    uint32_t writer;
    struct ring_affine turn;
};

/* What an op writes, in a box: the reduction of part rank + `part` of the vectors of `length`
 * ranks, beginning with rank + `start`, round the ring. */
struct ring_value {
    uint32_t op;
    struct ring_box box;
    struct ring_affine start, length, part;
    bool final;
};

enum { RING_MAX_CLAIMS = 1024 };

struct ring_certificate {
    /* The effect of one rank's nth post goes round the ring: its taker's (n + 1)th post comes
     * later, and so on. */
    bool chain[RING_MAX_SYNCS];
    struct ring_origin origins[RING_MAX_CLAIMS];
    uint32_t norigins;
    struct ring_value values[RING_MAX_CLAIMS];
    uint32_t nvalues;
};

/* guess.c: makes a certificate from a few numbers of ranks of the family. False: no affine
 * functions fit; `why` says what does not. */
bool peal_ring_guess(const struct ring_model *m, struct ring_certificate *out, const char **why);

/* certificate.c: as text, and back. Reading returns the text after it, or NULL. */
void peal_ring_print(const struct ring_model *m, const struct ring_certificate *c,
                     struct peal_text *out);
const char *peal_ring_parse(const char *text, const struct ring_model *m,
                            struct ring_certificate *out);

/* oblige.c: SMT-LIB, with one check-sat per obligation, each of which must be unsat. Returns how
 * many. */
uint32_t peal_ring_oblige(const struct ring_model *m, const struct ring_certificate *c,
                          struct peal_text *out);

/* solver.c: how many solvers are installed, and their answers. */
enum { RING_SOLVERS = 2 };
enum ring_answer { RING_ABSENT, RING_HOLDS, RING_FAILS, RING_TIMEOUT };
const char *peal_ring_solver_name(uint32_t solver);
enum ring_answer peal_ring_solve(uint32_t solver, const char *script, uint32_t obligations);

/* plans.c: do the plans for a few numbers of ranks have the syncs and accesses of the model? */
bool peal_ring_matches(const struct ring_model *m, const struct peal_plan_request *request,
                       const char **why);

#endif
