/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a value: what is left of its tree when it does not matter how a sum, a product or
 * another reduction is grouped and where it is rounded. Two values of the same form are equal for
 * contracts, as a reduction is right in any order of its operands.
 *
 * Integers wrap, so their sums, differences and multiples by numbers are exact: there the form is
 * that of the sum after all that cancels is left out. Multiples are counted modulo 2^64, not modulo
 * the type: within a larger value a sum may not be wrapped yet.
 */
#ifndef PEAL_VERIFY_CANON_H
#define PEAL_VERIFY_CANON_H

#include "verify/result/value.h"

struct canon_form { /* words first .. first + count */
    size_t first, count;
};

struct canon {
    const struct values *values;
    const struct peal_plan *plan; /* has the user-defined reductions */
    PEAL_VEC(uint32_t) known;     /* [node] its form + 1, 0: not known */
    PEAL_VEC(uint64_t) words;     /* of all forms */
    PEAL_VEC(struct canon_form) forms;
    struct peal_index index; /* of forms */
    uint64_t work;           /* nodes visited */
    bool failed;             /* too much work, or out of memory: nothing is known */
};

/* Do both have the same form? False after a failure too. */
bool peal_canon_same(struct canon *c, uint32_t a, uint32_t b);
void peal_canon_release(struct canon *c);

#endif
