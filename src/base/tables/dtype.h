/* SPDX-License-Identifier: Apache-2.0 */
/* Data types, reduce operations and elementwise functions: names, sizes, what goes with what. */
#ifndef PEAL_BASE_DTYPE_H
#define PEAL_BASE_DTYPE_H

#include <peal/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many members the public enumerations have; private, because new releases may add some. */
#define PEAL_STATUSES (PEAL_REVOKED + 1)
#define PEAL_SCALAR_DTYPES PEAL_CF32 /* those of one part come first */
#define PEAL_DTYPES (PEAL_I64_I64 + 1)
#define PEAL_REDUCTIONS (PEAL_MAXLOC + 1)

enum peal_fn {
#define FN(name, text, operands, types, commutes, associative, meaning) PEAL_FN_##name,
#include "base/tables/fn.def"
    PEAL_FN_COUNT,
    PEAL_FN_USER =
        PEAL_FN_COUNT, /* from here on: the formulas of a plan, see base/formula.h */
    PEAL_FN_END = PEAL_FN_USER + 16
};
/* How many formulas a plan has at most. */
enum { PEAL_FORMULAS = PEAL_FN_END - PEAL_FN_USER };

enum peal_fn_types {
    PEAL_FN_ALL,
    PEAL_FN_NUMBER,
    PEAL_FN_REAL,
    PEAL_FN_FLOAT,
    PEAL_FN_INT,
    PEAL_FN_BITS,
    PEAL_FN_PAIR,
    PEAL_FN_INEXACT /* of reduce operations only: floating point and complex */
};
/* As messages and tables show them. */
const char *peal_fn_types_text(enum peal_fn_types types);

enum peal_dtype_kind {
    PEAL_KIND_FLOAT,
    PEAL_KIND_INT,
    PEAL_KIND_BOOL,
    PEAL_KIND_COMPLEX,
    PEAL_KIND_PAIR
};

struct peal_fn_info {
    const char *name;
    int operands; /* 0 = two or more */
    enum peal_fn_types types;
    bool commutes;
    bool associative;
    const char *meaning;
};

/* The row of fn.def. All formulas share a row: two or more operands of any type, neither
 * commutative nor associative. fn must be below PEAL_FN_END. */
const struct peal_fn_info *peal_fn_info(enum peal_fn fn);
/* The finds return false when there is no such name. */
bool peal_fn_find(const char *name, size_t len, enum peal_fn *out);
bool peal_fn_takes(enum peal_fn fn, enum peal_dtype dtype);
/* Can it be accumulated element by element in atomic steps? fn must take the dtype. */
bool peal_fn_accumulates(enum peal_fn fn, enum peal_dtype dtype);

const char *peal_dtype_name(enum peal_dtype dtype);
size_t peal_dtype_size(enum peal_dtype dtype);
enum peal_dtype_kind peal_dtype_kind(enum peal_dtype dtype);
/* Floating point; not complex. */
bool peal_dtype_is_float(enum peal_dtype dtype);
/* Floating point below f32: combined, and kept in tiles, in f32. */
bool peal_dtype_is_narrow(enum peal_dtype dtype);
/* Complex numbers and pairs: two parts, which convert to nothing else. */
bool peal_dtype_is_record(enum peal_dtype dtype);
/* Does a sum have the same result in every order? */
bool peal_dtype_is_exact(enum peal_dtype dtype);
bool peal_dtype_find(const char *name, size_t len, enum peal_dtype *out);

/* Is it a formula of the plan, rather than a row of the table? */
static inline bool peal_fn_is_user(uint32_t fn)
{
    return fn >= PEAL_FN_USER && fn < PEAL_FN_END;
}
static inline bool peal_reduce_is_user(uint32_t reduce)
{
    return reduce >= PEAL_USER_REDUCTION && reduce < PEAL_USER_REDUCTION + (uint32_t)PEAL_FORMULAS;
}

/* For user-defined reductions these give common answers; details are in the formula. */
const char *peal_reduce_name(enum peal_reduction reduce);
bool peal_reduce_find(const char *name, size_t len, enum peal_reduction *out);
enum peal_fn_types peal_reduce_types(enum peal_reduction reduce);
bool peal_reduce_takes(enum peal_reduction reduce, enum peal_dtype dtype);
/* The function that combines two contributions (avg adds; its division comes last, see `final`). */
enum peal_fn peal_reduce_fn(enum peal_reduction reduce);

#endif
