/* SPDX-License-Identifier: Apache-2.0 */
/* Tables behind dtype.h, and the status texts. */
#include "base/tables/dtype.h"

#include <assert.h>
#include <string.h>

#define ALL PEAL_FN_ALL
#define NUMBER PEAL_FN_NUMBER
#define REAL PEAL_FN_REAL
#define FLOAT PEAL_FN_FLOAT
#define INT PEAL_FN_INT
#define BITS PEAL_FN_BITS
#define PAIR PEAL_FN_PAIR
#define INEXACT PEAL_FN_INEXACT
static const struct peal_fn_info fn_table[] = {
#define FN(name, text, operands, types, commutes, associative, meaning)                            \
    {text, operands, types, commutes, associative, meaning},
#include "base/tables/fn.def"
};

static const struct {
    const char *name;
    size_t size;
    enum peal_dtype_kind kind;
} dtype_table[] = {
    [PEAL_F16] = {"f16", 2, PEAL_KIND_FLOAT},
    [PEAL_BF16] = {"bf16", 2, PEAL_KIND_FLOAT},
    [PEAL_F32] = {"f32", 4, PEAL_KIND_FLOAT},
    [PEAL_F64] = {"f64", 8, PEAL_KIND_FLOAT},
    [PEAL_I8] = {"i8", 1, PEAL_KIND_INT},
    [PEAL_U8] = {"u8", 1, PEAL_KIND_INT},
    [PEAL_I32] = {"i32", 4, PEAL_KIND_INT},
    [PEAL_I64] = {"i64", 8, PEAL_KIND_INT},
    [PEAL_I16] = {"i16", 2, PEAL_KIND_INT},
    [PEAL_U16] = {"u16", 2, PEAL_KIND_INT},
    [PEAL_U32] = {"u32", 4, PEAL_KIND_INT},
    [PEAL_U64] = {"u64", 8, PEAL_KIND_INT},
    [PEAL_BOOL] = {"bool", 1, PEAL_KIND_BOOL},
    [PEAL_F8E4M3] = {"f8e4m3", 1, PEAL_KIND_FLOAT},
    [PEAL_F8E5M2] = {"f8e5m2", 1, PEAL_KIND_FLOAT},
    [PEAL_CF32] = {"cf32", 8, PEAL_KIND_COMPLEX},
    [PEAL_CF64] = {"cf64", 16, PEAL_KIND_COMPLEX},
    [PEAL_F32_I32] = {"f32_i32", 8, PEAL_KIND_PAIR},
    [PEAL_F64_I64] = {"f64_i64", 16, PEAL_KIND_PAIR},
    [PEAL_I32_I32] = {"i32_i32", 8, PEAL_KIND_PAIR},
    [PEAL_I64_I64] = {"i64_i64", 16, PEAL_KIND_PAIR},
};

static const struct {
    const char *name;
    enum peal_fn fn;
    enum peal_fn_types types;
} reduce_table[] = {
    [PEAL_SUM] = {"sum", PEAL_FN_ADD, NUMBER},
    [PEAL_PROD] = {"prod", PEAL_FN_MUL, NUMBER},
    [PEAL_MAX] = {"max", PEAL_FN_MAXIMUM, REAL},
    [PEAL_MIN] = {"min", PEAL_FN_MINIMUM, REAL},
    [PEAL_AVG] = {"avg", PEAL_FN_ADD, INEXACT},
    [PEAL_AND] = {"and", PEAL_FN_AND, BITS},
    [PEAL_OR] = {"or", PEAL_FN_OR, BITS},
    [PEAL_XOR] = {"xor", PEAL_FN_XOR, BITS},
    [PEAL_MINLOC] = {"minloc", PEAL_FN_MINLOC, PAIR},
    [PEAL_MAXLOC] = {"maxloc", PEAL_FN_MAXLOC, PAIR},
};

/* The kinds of dtypes in each class, as bits. */
#define KIND(name) (1u << PEAL_KIND_##name)
static const struct {
    const char *text;
    unsigned kinds;
} class_table[] = {
    [PEAL_FN_ALL] = {"any", ~0u},
    [PEAL_FN_NUMBER] = {"numbers", KIND(FLOAT) | KIND(INT) | KIND(COMPLEX)},
    [PEAL_FN_REAL] = {"real numbers", KIND(FLOAT) | KIND(INT)},
    [PEAL_FN_FLOAT] = {"floating point", KIND(FLOAT)},
    [PEAL_FN_INT] = {"integers", KIND(INT)},
    [PEAL_FN_BITS] = {"integers, bool", KIND(INT) | KIND(BOOL)},
    [PEAL_FN_PAIR] = {"pairs", KIND(PAIR)},
    [PEAL_FN_INEXACT] = {"float, complex", KIND(FLOAT) | KIND(COMPLEX)},
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
    [PEAL_REVOKED] = "communicator was revoked",
};

static bool same(const char *name, size_t len, const char *text)
{
    return strlen(text) == len && memcmp(name, text, len) == 0;
}

static bool class_takes(enum peal_fn_types types, enum peal_dtype dtype)
{
    return class_table[types].kinds >> peal_dtype_kind(dtype) & 1;
}

const char *peal_status_text(enum peal_status status)
{
    if ((unsigned)status < PEAL_STATUSES)
        return status_text[status];
    return "unknown status";
}

const struct peal_fn_info *peal_fn_info(enum peal_fn fn)
{
    static const struct peal_fn_info user = {
        .name = "user", .types = PEAL_FN_ALL, .meaning = "a formula of the plan"};
    assert((unsigned)fn < PEAL_FN_END);
    return peal_fn_is_user(fn) ? &user : &fn_table[fn];
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

bool peal_fn_accumulates(enum peal_fn fn, enum peal_dtype dtype)
{
    /* The parts of a complex sum are sums of their own. */
    bool by_parts = fn == PEAL_FN_ADD && peal_dtype_kind(dtype) == PEAL_KIND_COMPLEX;
    return peal_fn_info(fn)->commutes && (by_parts || peal_dtype_size(dtype) <= 8);
}

const char *peal_fn_types_text(enum peal_fn_types types)
{
    return class_table[types].text;
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

enum peal_dtype_kind peal_dtype_kind(enum peal_dtype dtype)
{
    assert((unsigned)dtype < PEAL_DTYPES);
    return dtype_table[dtype].kind;
}

bool peal_dtype_is_float(enum peal_dtype dtype)
{
    return peal_dtype_kind(dtype) == PEAL_KIND_FLOAT;
}

bool peal_dtype_is_narrow(enum peal_dtype dtype)
{
    return peal_dtype_is_float(dtype) && peal_dtype_size(dtype) < 4;
}

bool peal_dtype_is_record(enum peal_dtype dtype)
{
    enum peal_dtype_kind kind = peal_dtype_kind(dtype);
    return kind == PEAL_KIND_COMPLEX || kind == PEAL_KIND_PAIR;
}

bool peal_dtype_is_exact(enum peal_dtype dtype)
{
    enum peal_dtype_kind kind = peal_dtype_kind(dtype);
    return kind != PEAL_KIND_FLOAT && kind != PEAL_KIND_COMPLEX;
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
    if (peal_reduce_is_user(reduce))
        return "user";
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

enum peal_fn_types peal_reduce_types(enum peal_reduction reduce)
{
    if (peal_reduce_is_user(reduce))
        return PEAL_FN_ALL;
    assert((unsigned)reduce < PEAL_REDUCTIONS);
    return reduce_table[reduce].types;
}

bool peal_reduce_takes(enum peal_reduction reduce, enum peal_dtype dtype)
{
    return class_takes(peal_reduce_types(reduce), dtype);
}

enum peal_fn peal_reduce_fn(enum peal_reduction reduce)
{
    if (peal_reduce_is_user(reduce))
        return (enum peal_fn)(PEAL_FN_USER + (reduce - PEAL_USER_REDUCTION));
    assert((unsigned)reduce < PEAL_REDUCTIONS);
    return reduce_table[reduce].fn;
}
