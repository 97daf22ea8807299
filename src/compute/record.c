/* SPDX-License-Identifier: Apache-2.0 */
/* See record.h. */
#include "compute/record.h"

#include "compute/convert.h"
#include "compute/pair.h"

#include <assert.h>
#include <string.h>

struct cf32 {
    float re, im;
};
struct cf64 {
    double re, im;
};
struct f32_i32 {
    float value;
    int32_t index;
};
struct f64_i64 {
    double value;
    int64_t index;
};
struct i32_i32 {
    int32_t value, index;
};
struct i64_i64 {
    int64_t value, index;
};

/* ---- complex ---- */

#define COMPLEX(type, part, canonical)                                                             \
    static struct type type##_pair(enum peal_fn fn, struct type a, struct type b)                  \
    {                                                                                              \
        switch (fn) {                                                                              \
        case PEAL_FN_ADD:                                                                          \
            return (struct type){a.re + b.re, a.im + b.im};                                        \
        case PEAL_FN_SUB:                                                                          \
            return (struct type){a.re - b.re, a.im - b.im};                                        \
        default:                                                                                   \
            assert(fn == PEAL_FN_MUL);                                                             \
            return (struct type){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};            \
        }                                                                                          \
    }                                                                                              \
    static struct type type##_finish(enum peal_fn fn, struct type a, uint32_t divisor)             \
    {                                                                                              \
        if (fn == PEAL_FN_NEG)                                                                     \
            a = (struct type){-a.re, -a.im};                                                       \
        if (divisor > 1)                                                                           \
            a = (struct type){a.re / (part)divisor, a.im / (part)divisor};                         \
        return (struct type){canonical(a.re), canonical(a.im)};                                    \
    }                                                                                              \
    static struct type type##_const(double value)                                                  \
    {                                                                                              \
        return (struct type){(part)value, 0};                                                      \
    }
COMPLEX(cf32, float, peal_f32_canonical)
COMPLEX(cf64, double, peal_f64_canonical)

/* ---- value and index ---- */

/* -1, 0, 1: where a stands in the order of the values, -0 below +0, NaN at either end: the one that
 * `fn` takes. */
#define ORDER_FLOAT(type, part, bits, sign)                                                        \
    static int type##_order(enum peal_fn fn, part a, part b)                                       \
    {                                                                                              \
        int nan = fn == PEAL_FN_MINLOC ? -1 : 1;                                                   \
        if (a != a && b != b)                                                                      \
            return 0;                                                                              \
        if (a != a || b != b)                                                                      \
            return a != a ? nan : -nan;                                                            \
        if (a != b)                                                                                \
            return a < b ? -1 : 1;                                                                 \
        return (int)(bits(b) >> sign) - (int)(bits(a) >> sign);                                    \
    }
#define ORDER_INT(type, part)                                                                      \
    static int type##_order(enum peal_fn fn, part a, part b)                                       \
    {                                                                                              \
        (void)fn;                                                                                  \
        return (a > b) - (a < b);                                                                  \
    }
ORDER_FLOAT(f32_i32, float, peal_f32_bits, 31)
ORDER_FLOAT(f64_i64, double, peal_f64_bits, 63)
ORDER_INT(i32_i32, int32_t)
ORDER_INT(i64_i64, int64_t)

#define LOCATED(type, from, canonical)                                                             \
    static struct type type##_pair(enum peal_fn fn, struct type a, struct type b)                  \
    {                                                                                              \
        assert(fn == PEAL_FN_MINLOC || fn == PEAL_FN_MAXLOC);                                      \
        int order = type##_order(fn, a.value, b.value);                                            \
        if (order == 0)                                                                            \
            return a.index <= b.index ? a : b;                                                     \
        return (order < 0) == (fn == PEAL_FN_MINLOC) ? a : b;                                      \
    }                                                                                              \
    static struct type type##_finish(enum peal_fn fn, struct type a, uint32_t divisor)             \
    {                                                                                              \
        (void)fn, (void)divisor;                                                                   \
        a.value = canonical(a.value);                                                              \
        return a;                                                                                  \
    }                                                                                              \
    static struct type type##_const(double value)                                                  \
    {                                                                                              \
        return (struct type){from(value), 0};                                                      \
    }
#define TO_I32(value) ((int32_t)peal_f64_to_int(value, INT32_MIN, INT32_MAX))
#define TO_I64(value) peal_f64_to_int(value, INT64_MIN, INT64_MAX)
LOCATED(f32_i32, (float), peal_f32_canonical)
LOCATED(f64_i64, (double), peal_f64_canonical)
LOCATED(i32_i32, TO_I32, (int32_t))
LOCATED(i64_i64, TO_I64, (int64_t))

/* ---- all of them ---- */

/* Element i of an operand, at any address. */
#define ELEMENT(type, operand, i, out)                                                             \
    do {                                                                                           \
        if ((operand)->at)                                                                         \
            memcpy(&(out), (const char *)(operand)->at + (i) * sizeof(out), sizeof(out));          \
        else                                                                                       \
            (out) = type##_const((operand)->value);                                                \
    } while (0)

#define COMBINE(type)                                                                              \
    static void type##_combine(enum peal_fn fn, const struct peal_operand *dst,                    \
                               const struct peal_operand *src, uint32_t nsrc, size_t count,        \
                               uint32_t divisor)                                                   \
    {                                                                                              \
        bool moves = fn == PEAL_FN_ID && divisor <= 1;                                             \
        for (size_t i = 0; i < count; i++) {                                                       \
            struct type a, b;                                                                      \
            ELEMENT(type, &src[0], i, a);                                                          \
            for (uint32_t s = 1; s < nsrc; s++) {                                                  \
                ELEMENT(type, &src[s], i, b);                                                      \
                a = type##_pair(fn, a, b);                                                         \
            }                                                                                      \
            if (!moves)                                                                            \
                a = type##_finish(fn, a, divisor);                                                 \
            memcpy((char *)dst->at + i * sizeof a, &a, sizeof a);                                  \
        }                                                                                          \
    }
COMBINE(cf32)
COMBINE(cf64)
COMBINE(f32_i32)
COMBINE(f64_i64)
COMBINE(i32_i32)
COMBINE(i64_i64)

void peal_struct_combine(enum peal_fn fn, const struct peal_operand *dst,
                         const struct peal_operand *src, uint32_t nsrc, size_t count,
                         uint32_t divisor)
{
    for (uint32_t s = 0; s < nsrc; s++)
        assert(src[s].dtype == dst->dtype && "records do not convert");
    switch (dst->dtype) {
    case PEAL_CF32:
        cf32_combine(fn, dst, src, nsrc, count, divisor);
        break;
    case PEAL_CF64:
        cf64_combine(fn, dst, src, nsrc, count, divisor);
        break;
    case PEAL_F32_I32:
        f32_i32_combine(fn, dst, src, nsrc, count, divisor);
        break;
    case PEAL_F64_I64:
        f64_i64_combine(fn, dst, src, nsrc, count, divisor);
        break;
    case PEAL_I32_I32:
        i32_i32_combine(fn, dst, src, nsrc, count, divisor);
        break;
    default:
        assert(dst->dtype == PEAL_I64_I64);
        i64_i64_combine(fn, dst, src, nsrc, count, divisor);
    }
}

/* ---- accumulate ---- */

/* The parts of a complex sum are sums: each is accumulated as a number of its own. */
static void add_parts(const struct peal_operand *dst, const struct peal_operand *src, size_t count)
{
    enum peal_dtype part = dst->dtype == PEAL_CF32 ? PEAL_F32 : PEAL_F64;
    struct peal_operand to = {dst->at, 0, part}, from = {src->at, 0, part};
    if (src->at) {
        peal_compute_generic.accumulate(PEAL_FN_ADD, &to, &from, 2 * count);
        return;
    }
    from.value = src->value;
    for (size_t i = 0; i < count; i++) {
        to.at = (char *)dst->at + i * peal_dtype_size(dst->dtype);
        peal_compute_generic.accumulate(PEAL_FN_ADD, &to, &from, 1);
    }
}

void peal_struct_accumulate(enum peal_fn fn, const struct peal_operand *dst,
                            const struct peal_operand *src, size_t count)
{
    size_t size = peal_dtype_size(dst->dtype);
    if (fn == PEAL_FN_ADD) {
        add_parts(dst, src, count);
        return;
    }
    assert(size == sizeof(uint64_t) && "one atomic step");
    for (size_t i = 0; i < count; i++) {
        /* Room for the largest element: the compiler does not see that only small ones come here. */
        uint64_t *cell = (uint64_t *)dst->at + i, old[2] = {0}, new[2] = {0};
        old[0] = __atomic_load_n(cell, __ATOMIC_RELAXED);
        struct peal_operand pair[2] = {{old, 0, dst->dtype}, *src};
        struct peal_operand out = {new, 0, dst->dtype};
        if (src->at)
            pair[1].at = (char *)src->at + i * size;
        do
            peal_struct_combine(fn, &out, pair, 2, 1, 1);
        while (!__atomic_compare_exchange_n(cell, &old[0], new[0], false, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED));
    }
}
