/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of a halo's text, shared by its files. */
#ifndef PEAL_VERIFY_FORALL_HALO_READ_H
#define PEAL_VERIFY_FORALL_HALO_READ_H

#include "verify/forall/halo.h"
#include "verify/forall/words.h"

enum {
    HALO_MAX_KEYS = 32,
    HALO_MAX_FAR = 4,
    HALO_MAX_RANKS = 24,
    HALO_MAX_COUNT = 128,
    HALO_MAX_NUMBER = 1000
};

/* A cell, or the messages to the rank at one distance. */
struct halo_key {
    const struct peal_symbol *symbol; /* signal, channel, or NULL: the channel without a name */
    int64_t index, shift;             /* of the cell; of the rank that is told */
    uint32_t scope;                   /* the call that uses it */
    bool channel;
    int64_t posts, takes; /* so far in the text */
    uint32_t level;       /* of what is sent, see `level` */
};

struct halo {
    const struct peal_kernel *kernel;
    struct peal_forall *out;
    const struct peal_symbol *dim, *index; /* index: of the clause that is read */
    struct halo_key keys[HALO_MAX_KEYS];
    uint32_t nkeys, scope, scopes;
    uint32_t *level;  /* [slot] of buffers and tiles: through how many copies an element has come */
    uint32_t highest; /* of all levels */
    int64_t far;      /* the greatest distance of ranks that have to do with each other */
    int64_t said;     /* ... and of those in clauses */
    bool clause;      /* that is read */
    bool few;         /* what is read is executed by few ranks only: its places matter */
    int64_t most;     /* the greatest number in a place or a size */
    int64_t ranks;    /* the greatest number that nranks is compared with */
    int64_t ahead;    /* the most messages of a channel that are under way */
    uint32_t takes;   /* statements that may have to wait */
};

static inline void halo_raise(int64_t *most, int64_t value)
{
    *most = *most < value ? value : *most;
}

static inline bool peal_halo_refuse(struct halo *h, struct peal_pos at, const char *why)
{
    return peal_word_refuse(h->out, at, why);
}

/* halo_place.c. False: refused. */
/* rank, (rank + c) % nranks */
bool peal_halo_peer(struct halo *h, const struct peal_expr *e, int64_t *out);
/* A multiple of the dimension and a number, or `launch mod k` times such a one. `bound`: the number
 * is at most this; `slope`: how often the clause's index is in it. False is no refusal. */
bool peal_halo_affine(struct halo *h, const struct peal_expr *e, int64_t *bound, int64_t *slope);
/* A place or size that does not have the clause's index. */
bool peal_halo_size(struct halo *h, const struct peal_expr *e, int64_t *bound);
/* A condition on the number of ranks, as it is for all large ones. */
bool peal_halo_condition(struct halo *h, const struct peal_expr *e, bool *holds);
/* A part of a buffer or tile, of this rank or another. */
bool peal_halo_is_place(const struct peal_expr *e);
/* Notes the largest number in it. `symbol`: the buffer or tile. */
bool peal_halo_place(struct halo *h, const struct peal_expr *e, bool remote,
                     const struct peal_symbol **symbol);

#endif
