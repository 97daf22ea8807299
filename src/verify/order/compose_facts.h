/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says about sequences, shared by compose.c and compose_facts.c.
 *
 * A *distance* is (rank that acts - rank that owns the cell or memory) modulo the number of ranks.
 * Sets of distances are bits. Facts that must hold in every plan are joined by "and"; what happens
 * in some plan is joined by "or".
 */
#ifndef PEAL_VERIFY_COMPOSE_FACTS_H
#define PEAL_VERIFY_COMPOSE_FACTS_H

#include "verify/order/compose.h"

#define NO_DISTANCE (UINT32_MAX - 2) /* no writer seen yet */
#define MANY_DISTANCES (UINT32_MAX - 3)

/* Which ranks write a signal's cells, and what waits `at launch - j` find there. */
struct signal_facts {
    bool by_index;     /* cell i is written by rank i modulo P only */
    uint32_t distance; /* of all writers, or one of the two above */
    /* distances of the writers that some rank of some plan waits for, looking back */
    uint64_t *awaited;
    /* distances at which, in every launch and on every rank, the writer's first notify comes after
     * all its accesses to the windows of the cell's rank */
    uint64_t *released;
};

struct peal_composition {
    const char *shape;   /* period and signals: the same in all plans */
    const char *windows; /* and their sizes: the same in all plans that are phased */
    uint32_t nranks, nsignals;
    bool closed;
    bool phased;       /* launches of different phases touch no common byte of a window */
    bool full;         /* every rank enters a launch before any leaves it */
    bool own_writes;   /* windows are written only by the rank that owns them */
    uint64_t *reached; /* distances at which windows of other ranks are touched */
    uint64_t *guarded; /* distances of the ranks that every write to an own window has waited for */
    struct signal_facts *signals;
};

static inline size_t peal_distances_words(uint32_t nranks)
{
    return (nranks + 63u) / 64u;
}

static inline void peal_distances_set(uint64_t *bits, uint32_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline void peal_distances_clear(uint64_t *bits, uint32_t i)
{
    bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

static inline uint32_t peal_distance(const struct program *p, uint32_t actor, uint32_t owner)
{
    if (actor >= owner)
        return actor - owner;
    return actor + p->nranks - owner;
}

/* Fills in all but closed and full. False: some wait is not satisfied by its own launch, or out of
 * memory. */
bool peal_composition_note(const struct program *p, struct peal_composition *c);
/* Does every rank enter a launch before any other leaves it? */
bool peal_composition_is_full(const struct program *p, uint32_t workers);

#endif
