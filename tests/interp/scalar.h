/* SPDX-License-Identifier: Apache-2.0 */
/* One element at a time: load, combine, store, by the rules of plan.h and compute.h, written again
 * from the rules: by value (frexp, nearbyint), where compute works on bits. For tests only. */
#ifndef PEAL_INTERP_SCALAR_H
#define PEAL_INTERP_SCALAR_H

#include "base/base.h"

#include <stdint.h>

/* In which type a combination is worked: PEAL_F64, PEAL_F32, PEAL_I64 or PEAL_U64. */
struct peal_scalar {
    enum peal_dtype work;
    double real;     /* PEAL_F64; PEAL_F32: a value that fits a float */
    int64_t integer; /* PEAL_I64; PEAL_U64: its bits */
};

/* The work type of operands of these two types; start with PEAL_I8. */
enum peal_dtype peal_scalar_work(enum peal_dtype a, enum peal_dtype b);

struct peal_scalar peal_scalar_load(const void *at, enum peal_dtype dtype, enum peal_dtype work);
void peal_scalar_store(void *at, enum peal_dtype dtype, struct peal_scalar value);
/* A constant is rounded to its dtype first. */
struct peal_scalar peal_scalar_const(double value, enum peal_dtype dtype, enum peal_dtype work);

/* fn of n operands, from left to right where there may be many; not softmax, which needs a row. */
struct peal_scalar peal_scalar_apply(enum peal_fn fn, const struct peal_scalar *operands,
                                     uint32_t n);
/* A user-defined reduction of n operands, from left to right, by recursion over its steps; integers are wrapped into dtype
 * after each application. Not for complex numbers and pairs. */
struct peal_scalar peal_scalar_formula(const struct peal_formula *f,
                                       const struct peal_scalar *operands, uint32_t n,
                                       enum peal_dtype dtype);
/* The division of avg; integers are wrapped into dtype first. */
struct peal_scalar peal_scalar_divide(struct peal_scalar value, uint32_t divisor,
                                      enum peal_dtype dtype);

#endif
