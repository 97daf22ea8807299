/* SPDX-License-Identifier: Apache-2.0 */
/* Integers of a text as sums: number * expression + ... + number. */
#ifndef PEAL_VERIFY_FORALL_LINEAR_H
#define PEAL_VERIFY_FORALL_LINEAR_H

#include "lang/lang.h"

enum { LINEAR_MAX_TERMS = 8 };

struct linear_term {
    int64_t factor;
    const struct peal_expr *atom; /* not a sum; borrowed */
};

struct linear {
    bool good; /* false: too many terms, or numbers that are too large */
    int64_t one;
    uint32_t nterms; /* no two of the same expression */
    struct linear_term terms[LINEAR_MAX_TERMS];
};

/* modulo_ranks: multiples of nranks are left out, and so is % nranks inside. */
struct linear peal_linear_of(const struct peal_expr *e, bool modulo_ranks);
/* a + factor * b */
struct linear peal_linear_add(const struct linear *a, const struct linear *b, int64_t factor);
/* Removes terms whose factor is 0. */
void peal_linear_pack(struct linear *sum);
/* Do the two expressions have the same text, or the same sum? */
bool peal_linear_same(const struct peal_expr *a, const struct peal_expr *b);

#endif
