/* SPDX-License-Identifier: Apache-2.0 */
/* Data types, reduce operations and elementwise functions: names, sizes, what goes with what. */
#ifndef PEAL_BASE_DTYPE_H
#define PEAL_BASE_DTYPE_H

#include <peal/types.h>
#include <stdbool.h>
#include <stddef.h>

/* How many members the public enumerations have; private, because new releases may add some. */
#define PEAL_STATUSES (PEAL_PENDING + 1)
#define PEAL_DTYPES (PEAL_I64 + 1)
#define PEAL_REDUCTIONS (PEAL_XOR + 1)

enum peal_fn {
#define FN(name, text, operands, types, commutes, associative, meaning) PEAL_FN_##name,
#include "base/tables/fn.def"
    PEAL_FN_COUNT
};

enum peal_fn_types { PEAL_FN_ANY, PEAL_FN_FLOAT, PEAL_FN_INT };

struct peal_fn_info {
    const char *name;
    int operands; /* 0 = two or more */
    enum peal_fn_types types;
    bool commutes;
    bool associative;
    const char *meaning;
};

/* The row of fn.def; fn must be below PEAL_FN_COUNT. */
const struct peal_fn_info *peal_fn_info(enum peal_fn fn);
/* The finds return false when there is no such name. */
bool peal_fn_find(const char *name, size_t len, enum peal_fn *out);
bool peal_fn_takes(enum peal_fn fn, enum peal_dtype dtype);

const char *peal_dtype_name(enum peal_dtype dtype);
size_t peal_dtype_size(enum peal_dtype dtype);
bool peal_dtype_is_float(enum peal_dtype dtype);
bool peal_dtype_find(const char *name, size_t len, enum peal_dtype *out);

const char *peal_reduce_name(enum peal_reduction reduce);
bool peal_reduce_find(const char *name, size_t len, enum peal_reduction *out);
bool peal_reduce_takes(enum peal_reduction reduce, enum peal_dtype dtype);
/* The function that combines two contributions (avg adds; its division comes last, see `final`). */
enum peal_fn peal_reduce_fn(enum peal_reduction reduce);

#endif
