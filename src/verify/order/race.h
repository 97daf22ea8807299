/* SPDX-License-Identifier: Apache-2.0 */
/* Conflicting accesses that nothing orders, in monotone programs.
 *
 * Every location (a buffer on a rank) is divided at all starts and ends of accesses into segments;
 * the accesses of a segment all touch the same bytes. Take two threads A, B and an access b of B.
 * Accesses of A after fewer than clock_A(b) steps come before b. So only the first conflicting one
 * after them has to be asked about: does b come before it? Thus each segment costs accesses x
 * threads. Segments are first tried with a question or two per access (chain.h); only those that
 * fail are examined in this way.
 */
#ifndef PEAL_VERIFY_RACE_H
#define PEAL_VERIFY_RACE_H

#include "verify/order/order.h"

struct race {
    uint32_t a, b; /* indices into accesses; a's thread is below b's */
    uint64_t lo, hi;
};

struct race_report {
    PEAL_VEC(struct race) races; /* at most MAX_RACES; further ones are only counted */
    uint64_t total;
    bool *unordered; /* [location] are there accumulates in an arbitrary order? */
    bool closed;
    uint32_t open;       /* an access that shows it is not closed, or PEAL_NONE */
    bool open_at_entry;  /* it may come before the owner has entered; otherwise after it has left */
    bool barrier_broken; /* contract barrier: a rank may leave before another has entered */
    uint32_t leaves, enters, broken_launch;
    bool cell_broken; /* a one-writer cell with two unordered writers */
    uint32_t cell_thread[2], cell_step[2];
    enum peal_status status;
};

enum { MAX_RACES = 4096 };

bool peal_access_conflict(const struct access *a, const struct access *b);

/* Accesses a and b as a race: on the bytes that they have in common. */
static inline struct race peal_race_of(const struct program *p, uint32_t a, uint32_t b)
{
    const struct access *x = &p->accesses.at[a], *y = &p->accesses.at[b];
    struct race race = {a, b, x->lo, x->hi};
    if (y->lo > race.lo)
        race.lo = y->lo;
    if (y->hi < race.hi)
        race.hi = y->hi;
    return race;
}

/* Release the report in every case. */
enum peal_status peal_race_find(struct program *p, uint32_t workers, uint64_t max_bytes,
                                struct race_report *out);
void peal_race_release(struct race_report *report);

/* For other analyses: accesses by location. order[first[l] .. first[l+1]) are those of l. The
 * caller frees both. False: out of memory. */
bool peal_access_by_location(const struct program *p, uint32_t **first, uint32_t **order);
/* Sorts all accesses by thread, step and op, when some have been added. */
void peal_access_sort(struct program *p);

#endif
