/* SPDX-License-Identifier: Apache-2.0 */
/* Two independent definitions of the arithmetic give the same bits: every variant of compute that
 * this machine runs against the interpreter's scalars, all functions, all combinations of types. */
#include "base/base.h"
#include "compute/compute.h"
#include "interp/scalar.h"
#include "base/tests/unit.h"
#include "lib/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 67, SOURCES = 4 };

/* Small whole numbers, fractions, raw bits and special values. */
static void fill(unsigned char *at, enum peal_dtype dtype, uint64_t seed)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 65504.0, 1e-7};
    size_t size = peal_dtype_size(dtype);
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t random = peal_hash_u64(i, seed);
        double value = special[random / 8 % (sizeof special / sizeof *special)];
        if (random % 4 == 1)
            value = (double)(random / 8 % 64) - 32;
        if (random % 4 == 2)
            value = ((double)(random >> 12) * 0x1p-52 - 0.5) * 256;
        peal_scalar_store(at + i * size, dtype, (struct peal_scalar){PEAL_F64, value, 0});
        if (random % 4 == 3)
            memcpy(at + i * size, &random, size);
    }
}

/* Functions whose results are near to the C library's, but not equal. */
static bool is_elementary(enum peal_fn fn)
{
    return fn == PEAL_FN_EXP || fn == PEAL_FN_LOG || fn == PEAL_FN_TANH || fn == PEAL_FN_SIGMOID;
}

static bool agree(enum peal_fn fn, const unsigned char *a, const unsigned char *b,
                  enum peal_dtype dtype)
{
    if (memcmp(a, b, peal_dtype_size(dtype)) == 0)
        return true;
    if (!is_elementary(fn) || !peal_dtype_is_float(dtype))
        return false;
    double x = peal_scalar_load(a, dtype, PEAL_F64).real;
    double y = peal_scalar_load(b, dtype, PEAL_F64).real;
    /* One unit in the last place, and the smallest number. */
    static const double unit[] = {
        [PEAL_F16] = 0x1p-10, [PEAL_BF16] = 0x1p-7,   [PEAL_F32] = 0x1p-23,
        [PEAL_F64] = 0x1p-50, [PEAL_F8E4M3] = 0x1p-3, [PEAL_F8E5M2] = 0x1p-2};
    static const double least[] = {
        [PEAL_F16] = 0x1p-24,   [PEAL_BF16] = 0x1p-133, [PEAL_F32] = 0x1p-149,
        [PEAL_F64] = 0x1p-1070, [PEAL_F8E4M3] = 0x1p-9, [PEAL_F8E5M2] = 0x1p-16};
    return fabs(x - y) <= unit[dtype] * fabs(y) + least[dtype];
}

struct combination {
    enum peal_fn fn;
    enum peal_dtype dst, src[SOURCES];
    uint32_t nsrc, divisor;
};

static void check(const struct peal_compute *variant, const struct combination *m, uint64_t seed)
{
    unsigned char src[SOURCES][COUNT * 8], got[COUNT * 8], want[8];
    struct peal_operand operands[SOURCES];
    enum peal_dtype work = peal_scalar_work(PEAL_I8, m->dst);
    for (uint32_t k = 0; k < m->nsrc; k++) {
        fill(src[k], m->src[k], seed * 16 + k);
        operands[k] = (struct peal_operand){.at = src[k], .dtype = m->src[k]};
        work = peal_scalar_work(work, m->src[k]);
    }
    /* Rounded to an integer, results that are near may differ by 1. */
    bool is_vague = is_elementary(m->fn) && !peal_dtype_is_float(m->dst);
    if (!peal_fn_takes(m->fn, work) || is_vague)
        return;
    struct peal_operand dst = {.at = got, .dtype = m->dst};
    variant->combine(m->fn, &dst, operands, m->nsrc, COUNT, m->divisor);
    size_t size = peal_dtype_size(m->dst);
    for (size_t i = 0; i < COUNT; i++) {
        struct peal_scalar values[SOURCES];
        for (uint32_t k = 0; k < m->nsrc; k++)
            values[k] = peal_scalar_load(src[k] + i * peal_dtype_size(m->src[k]), m->src[k], work);
        struct peal_scalar result = peal_scalar_apply(m->fn, values, m->nsrc);
        if (m->divisor > 1)
            result = peal_scalar_divide(result, m->divisor, m->dst);
        peal_scalar_store(want, m->dst, result);
        if (m->fn == PEAL_FN_ID && m->divisor <= 1 && m->src[0] == m->dst)
            memcpy(want, src[0] + i * size, size);
        if (!agree(m->fn, got + i * size, want, m->dst))
            fail_msg("%s: %s of %u into %s, divisor %u, seed %llu, element %zu: a is %.17g",
                     variant->name, peal_fn_info(m->fn)->name, m->nsrc, peal_dtype_name(m->dst),
                     m->divisor, (unsigned long long)seed, i,
                     values[0].work == PEAL_I64 ? (double)values[0].integer : values[0].real);
    }
}

static struct combination draw_combination(enum peal_fn fn, uint64_t *state)
{
    uint32_t operands = (uint32_t)peal_fn_info(fn)->operands;
    struct combination m = {.fn = fn,
                            .dst = (enum peal_dtype)below(state, PEAL_SCALAR_DTYPES),
                            .nsrc = operands ? operands : 1 + below(state, SOURCES)};
    if (below(state, 2))
        m.divisor = 1 + below(state, 16);
    bool same = below(state, 2);
    for (uint32_t k = 0; k < SOURCES; k++)
        m.src[k] = same ? m.dst : (enum peal_dtype)below(state, PEAL_SCALAR_DTYPES);
    return m;
}

TEST(compute_and_interpreter_agree)
{
    uint64_t seed = 0, random = 5;
    for (unsigned v = 0; peal_compute_at(v); v++) {
        for (int fn = 0; fn < PEAL_FN_COUNT; fn++) {
            if (fn == PEAL_FN_SOFTMAX)
                continue; /* works on rows, not on elements */
            for (int round = 0; round < 300; round++) {
                struct combination m = draw_combination((enum peal_fn)fn, &random);
                check(peal_compute_at(v), &m, ++seed);
            }
        }
    }
}

int main(void)
{
    return unit_run();
}
