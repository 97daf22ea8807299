/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of one element at a time: load, combine, store. Written from the rules of
 * src/plan/format/format.h and src/compute/functions.h alone. */
#ifndef PEAL_INTERP_SCALAR_H
#define PEAL_INTERP_SCALAR_H

#include "base/base.h"

#include <stdint.h>

/* A value in the type that a function computes in: PEAL_F64, PEAL_F32, PEAL_I64 or PEAL_U64. */
struct peal_scalar {
    enum peal_dtype work;
    double real;     /* of PEAL_F64 and PEAL_F32; in the latter, always a float's value */
    int64_t integer; /* of PEAL_I64 and PEAL_U64; of the latter, the bits */
};

/* The type to compute in for operands of these two types; with PEAL_I8, the other one decides. */
enum peal_dtype peal_scalar_work(enum peal_dtype a, enum peal_dtype b);

struct peal_scalar peal_scalar_load(const void *at, enum peal_dtype dtype, enum peal_dtype work);
void peal_scalar_store(void *at, enum peal_dtype dtype, struct peal_scalar value);
/* A constant is rounded to its dtype first. */
struct peal_scalar peal_scalar_const(double value, enum peal_dtype dtype, enum peal_dtype work);

/* fn of n operands, from left to right if it takes any number; not softmax, which needs a row. */
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
