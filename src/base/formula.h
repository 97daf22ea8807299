/* SPDX-License-Identifier: Apache-2.0 */
/* A user-defined reduction, `reduce mine(a, b) = ...`, as a list of steps.
 *
 * The steps are those of a stack machine: A, B and CONST push a value, APPLY pops `operands` values
 * and pushes the function's result. One value is left at the end. A formula is plain memory without
 * pointers, so that it can be part of a plan's block and of its hash. A formula from outside must
 * pass peal_formula_check first; then it can be evaluated with a stack of PEAL_FORMULA_DEPTH
 * values.
 *
 * In a plan, PEAL_FN_USER + i is the function of the plan's formula i (dtype.h), and
 * PEAL_USER_REDUCTION + i is the reduction that combines with it.
 */
#ifndef PEAL_BASE_FORMULA_H
#define PEAL_BASE_FORMULA_H

#include "base/tables/dtype.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { PEAL_FORMULA_STEPS = 64, PEAL_FORMULA_DEPTH = 8, PEAL_FORMULA_NAME = 32 };

enum peal_formula_kind { PEAL_FORMULA_A, PEAL_FORMULA_B, PEAL_FORMULA_CONST, PEAL_FORMULA_APPLY };

struct peal_formula_step {
    uint8_t kind;     /* enum peal_formula_kind */
    uint8_t fn;       /* APPLY: enum peal_fn, one of the table's, elementwise */
    uint8_t operands; /* APPLY: 1 to 3; a function of two or more is applied to two at a time */
    uint8_t pad[5];
    double value; /* CONST */
};

/* What the author declares. It is not checked. */
enum peal_formula_flags {
    PEAL_FORMULA_COMMUTATIVE = 1, /* mine(a, b) is mine(b, a), to the bit */
    PEAL_FORMULA_ASSOCIATIVE = 2  /* but for rounding, mine(mine(a, b), c) is mine(a, mine(b, c)) */
};

struct peal_formula {
    char name[PEAL_FORMULA_NAME]; /* ends with NUL */
    uint32_t flags;
    uint32_t nsteps;
    struct peal_formula_step steps[PEAL_FORMULA_STEPS]; /* zero from nsteps on */
};

/* In which orders the contributions of ranks may be combined. */
static inline bool peal_formula_is_free(const struct peal_formula *f)
{
    return f->flags == (PEAL_FORMULA_COMMUTATIVE | PEAL_FORMULA_ASSOCIATIVE);
}

/* Compares all bits, those of constants too: there is no padding between the members. */
static inline bool peal_formula_is_same(const struct peal_formula *a, const struct peal_formula *b)
{
    return memcmp((const char *)a, (const char *)b, sizeof *a) == 0;
}

/* The index of a formula among others; `count`: it is not there. */
static inline uint32_t peal_formula_find(const struct peal_formula *formulas, uint32_t count,
                                         const struct peal_formula *wanted)
{
    for (uint32_t i = 0; i < count; i++) {
        if (peal_formula_is_same(&formulas[i], wanted))
            return i;
    }
    return count;
}

/* Is it whole: known kinds and functions, a stack that is deep enough, one value at the end? */
bool peal_formula_check(const struct peal_formula *f);
/* Can all its functions and constants be used with elements of that type? The formula must be
 * valid. */
bool peal_formula_takes(const struct peal_formula *f, enum peal_dtype dtype);
/* The same for equal formulas, whatever their names. */
uint64_t peal_formula_hash(const struct peal_formula *f);
/* How many functions one application evaluates; at least 1. */
uint32_t peal_formula_cost(const struct peal_formula *f);

#endif
