/* SPDX-License-Identifier: Apache-2.0 */
/* Tables behind dtype.h, and the status texts. */
#include "base/tables/dtype.h"

#include <assert.h>
#include <string.h>

#define ANY PEAL_FN_ANY
#define FLOAT PEAL_FN_FLOAT
#define INT PEAL_FN_INT
static const struct peal_fn_info fn_table[] = {
#define FN(name, text, operands, types, commutes, associative, meaning)                            \
    {text, operands, types, commutes, associative, meaning},
#include "base/tables/fn.def"
};

static const struct {
    const char *name;
    size_t size;
    bool is_float;
} dtype_table[] = {
    [PEAL_F16] = {"f16", 2, true},  [PEAL_BF16] = {"bf16", 2, true}, [PEAL_F32] = {"f32", 4, true},
    [PEAL_F64] = {"f64", 8, true},  [PEAL_I8] = {"i8", 1, false},    [PEAL_U8] = {"u8", 1, false},
    [PEAL_I32] = {"i32", 4, false}, [PEAL_I64] = {"i64", 8, false},
};

static const struct {
    const char *name;
    enum peal_fn fn;
    enum peal_fn_types types;
} reduce_table[] = {
    [PEAL_SUM] = {"sum", PEAL_FN_ADD, ANY},     [PEAL_PROD] = {"prod", PEAL_FN_MUL, ANY},
    [PEAL_MAX] = {"max", PEAL_FN_MAXIMUM, ANY}, [PEAL_MIN] = {"min", PEAL_FN_MINIMUM, ANY},
    [PEAL_AVG] = {"avg", PEAL_FN_ADD, FLOAT},   [PEAL_AND] = {"and", PEAL_FN_AND, INT},
    [PEAL_OR] = {"or", PEAL_FN_OR, INT},        [PEAL_XOR] = {"xor", PEAL_FN_XOR, INT},
};

static const char *const status_text[PEAL_STATUSES] = {
    [PEAL_OK] = "ok",
    [PEAL_INVALID] = "invalid input",
    [PEAL_NO_MEMORY] = "out of memory",
    [PEAL_SYSTEM] = "system error",
    [PEAL_TIMEOUT] = "timed out",
    [PEAL_PEER_DEAD] = "a peer died",
    [PEAL_MISMATCH] = "ranks made different calls",
    [PEAL_UNSUPPORTED] = "not supported",
    [PEAL_CLOSED] = "communicator is closed",
    [PEAL_PENDING] = "not complete yet",
};

static bool same(const char *name, size_t len, const char *text)
{
    return strlen(text) == len && memcmp(name, text, len) == 0;
}

static bool class_takes(enum peal_fn_types types, enum peal_dtype dtype)
{
    return types == ANY || (types == FLOAT) == peal_dtype_is_float(dtype);
}

const char *peal_status_text(enum peal_status status)
{
    return (unsigned)status < PEAL_STATUSES ? status_text[status] : "unknown status";
}

const struct peal_fn_info *peal_fn_info(enum peal_fn fn)
{
    assert((unsigned)fn < PEAL_FN_COUNT);
    return &fn_table[fn];
}

bool peal_fn_find(const char *name, size_t len, enum peal_fn *out)
{
    for (int i = 0; i < PEAL_FN_COUNT; i++) {
        if (same(name, len, fn_table[i].name)) {
            *out = (enum peal_fn)i;
            return true;
        }
    }
    return false;
}

bool peal_fn_takes(enum peal_fn fn, enum peal_dtype dtype)
{
    return class_takes(peal_fn_info(fn)->types, dtype);
}

const char *peal_dtype_name(enum peal_dtype dtype)
{
    assert((unsigned)dtype < PEAL_DTYPES);
    return dtype_table[dtype].name;
}

size_t peal_dtype_size(enum peal_dtype dtype)
{
    assert((unsigned)dtype < PEAL_DTYPES);
    return dtype_table[dtype].size;
}

bool peal_dtype_is_float(enum peal_dtype dtype)
{
    assert((unsigned)dtype < PEAL_DTYPES);
    return dtype_table[dtype].is_float;
}

bool peal_dtype_find(const char *name, size_t len, enum peal_dtype *out)
{
    for (int i = 0; i < PEAL_DTYPES; i++) {
        if (same(name, len, dtype_table[i].name)) {
            *out = (enum peal_dtype)i;
            return true;
        }
    }
    return false;
}

const char *peal_reduce_name(enum peal_reduction reduce)
{
    assert((unsigned)reduce < PEAL_REDUCTIONS);
    return reduce_table[reduce].name;
}

bool peal_reduce_find(const char *name, size_t len, enum peal_reduction *out)
{
    for (int i = 0; i < PEAL_REDUCTIONS; i++) {
        if (same(name, len, reduce_table[i].name)) {
            *out = (enum peal_reduction)i;
            return true;
        }
    }
    return false;
}

bool peal_reduce_takes(enum peal_reduction reduce, enum peal_dtype dtype)
{
    assert((unsigned)reduce < PEAL_REDUCTIONS);
    return class_takes(reduce_table[reduce].types, dtype);
}

enum peal_fn peal_reduce_fn(enum peal_reduction reduce)
{
    assert((unsigned)reduce < PEAL_REDUCTIONS);
    return reduce_table[reduce].fn;
}
