/* SPDX-License-Identifier: Apache-2.0 */
/* Integer polynomials: lengths and indices compared before their values are known.
 *
 * A polynomial is a sum of terms, each a number times up to three atoms. An atom is a text that
 * stands for one value: a symbol's slot ("s3") or an operation that is not linear, over polynomials
 * ("(%|1*s0|1*s1)"). Equal atoms have equal values; nothing is known about different ones. So a
 * difference that is a number decides a comparison, and any other difference leaves it open.
 */
#ifndef PEAL_LANG_POLY_H
#define PEAL_LANG_POLY_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

enum { PEAL_POLY_TERMS = 8, PEAL_POLY_ATOMS = 3 };

struct peal_term {
    int64_t factor;
    const char *atoms[PEAL_POLY_ATOMS]; /* sorted by address, unused ones NULL and last */
};

struct peal_poly {
    bool known; /* false: too complicated, or overflow; then nothing is known about comparisons */
    int nterms; /* 0 = the number 0 */
    struct peal_term terms[PEAL_POLY_TERMS];
};

struct peal_poly peal_poly_int(int64_t value);
struct peal_poly peal_poly_unknown(void);
/* The atom must be interned; NULL (out of memory) gives an unknown one. */
struct peal_poly peal_poly_atom(const char *atom);
/* a + factor * b */
struct peal_poly peal_poly_add(const struct peal_poly *a, const struct peal_poly *b,
                               int64_t factor);
struct peal_poly peal_poly_mul(const struct peal_poly *a, const struct peal_poly *b);
/* True if it is a number, whatever its atoms are. */
bool peal_poly_is_int(const struct peal_poly *poly, int64_t *out);
/* For the text of an atom over it: the same for equal polynomials. */
void peal_poly_key(const struct peal_poly *poly, struct peal_text *out);

#endif
