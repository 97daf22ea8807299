/* SPDX-License-Identifier: Apache-2.0 */
/* The definition itself: rows of operands and the bits that compute.h promises for them. */
#include "compute/functions.h"

#include "compute/convert.h"
#include "base/tests/unit.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

/* Operands and result as raw bits of their dtype. */
struct row {
    int line;
    enum peal_fn fn;
    enum peal_dtype dtype;
    uint32_t nsrc;
    uint64_t src[3];
    uint32_t divisor;
    uint64_t expected;
};

#define FN(name) PEAL_FN_##name

static const struct row rows[] = {
    /* A result that is NaN has one form, whichever operand was NaN. */
    {__LINE__, FN(ADD), PEAL_F32, 2, {0xffc12345, 0x3f800000}, 1, 0x7fc00000},
    {__LINE__, FN(ADD), PEAL_F32, 2, {0x3f800000, 0x7f800001}, 1, 0x7fc00000},
    {__LINE__, FN(ADD), PEAL_F32, 2, {0x7f800000, 0xff800000}, 1, 0x7fc00000},
    {__LINE__, FN(MUL), PEAL_F32, 2, {0x7f800000, 0x80000000}, 1, 0x7fc00000},
    {__LINE__, FN(MAXIMUM), PEAL_F32, 2, {0x3f800000, 0xffffffff}, 1, 0x7fc00000},
    {__LINE__, FN(MINIMUM), PEAL_F32, 2, {0xffffffff, 0x3f800000}, 1, 0x7fc00000},
    {__LINE__, FN(MAXIMUM), PEAL_F32, 3, {0xffc00001, 0x3f800000, 0x40000000}, 1, 0x7fc00000},
    {__LINE__, FN(ADD), PEAL_F16, 2, {0xfe01, 0x3c00}, 1, 0x7e00},
    {__LINE__, FN(ADD), PEAL_BF16, 2, {0xff81, 0x3f80}, 1, 0x7fc0},
    {__LINE__,
     FN(ADD),
     PEAL_F64,
     2,
     {UINT64_C(0xfff0000000000001), 0},
     1,
     UINT64_C(0x7ff8000000000000)},
    {__LINE__, FN(NEG), PEAL_F32, 1, {0x7fc00000}, 1, 0x7fc00000},
    {__LINE__, FN(ID), PEAL_F32, 1, {0xffc12345}, 1, 0xffc12345},
    /* Zeros. */
    {__LINE__, FN(MAXIMUM), PEAL_F32, 2, {0x80000000, 0x00000000}, 1, 0x00000000},
    {__LINE__, FN(MAXIMUM), PEAL_F32, 2, {0x00000000, 0x80000000}, 1, 0x00000000},
    {__LINE__, FN(MINIMUM), PEAL_F32, 2, {0x80000000, 0x00000000}, 1, 0x80000000},
    {__LINE__, FN(MINIMUM), PEAL_F32, 2, {0x00000000, 0x80000000}, 1, 0x80000000},
    {__LINE__, FN(ADD), PEAL_F32, 2, {0x80000000, 0x80000000}, 1, 0x80000000},
    {__LINE__, FN(MINIMUM), PEAL_F16, 2, {0x0000, 0x8000}, 1, 0x8000},
    /* 2048 + 1 + 1 in f32, rounded once: 2050. Rounded between, f16 would stay at 2048. */
    {__LINE__, FN(ADD), PEAL_F16, 3, {0x6800, 0x3c00, 0x3c00}, 1, 0x6801},
    /* 256 + 1 + 1 in bf16: 258. */
    {__LINE__, FN(ADD), PEAL_BF16, 3, {0x4380, 0x3f80, 0x3f80}, 1, 0x4381},
    /* avg divides before rounding: (2048 + 2) / 2 = 1025. */
    {__LINE__, FN(ADD), PEAL_F16, 2, {0x6800, 0x4000}, 2, 0x6401},
    {__LINE__, FN(ADD), PEAL_F32, 3, {0x3f800000, 0x40000000, 0x40400000}, 3, 0x40000000},
    {__LINE__, FN(ADD), PEAL_F16, 2, {0x7bff, 0x7bff}, 1, 0x7c00},
    {__LINE__, FN(ADD), PEAL_F16, 2, {0x7bff, 0x7bff}, 2, 0x7bff},
    /* Denormals stay. */
    {__LINE__, FN(ADD), PEAL_F32, 2, {1, 1}, 1, 2},
    {__LINE__, FN(ADD), PEAL_F16, 2, {1, 2}, 1, 3},
    {__LINE__, FN(MUL), PEAL_BF16, 2, {0x0001, 0x4000}, 1, 0x0002},
    /* Integers wrap. */
    {__LINE__, FN(ADD), PEAL_I8, 2, {0x7f, 1}, 1, 0x80},
    {__LINE__, FN(SUB), PEAL_U8, 2, {3, 5}, 1, 0xfe},
    {__LINE__, FN(MUL), PEAL_I32, 2, {0x10001, 0x10001}, 1, 0x20001},
    {__LINE__, FN(ADD), PEAL_I64, 2, {INT64_MAX, 1}, 1, UINT64_C(0x8000000000000000)},
    {__LINE__, FN(NEG), PEAL_I8, 1, {0x80}, 1, 0x80},
    {__LINE__, FN(ABS), PEAL_I32, 1, {0x80000000}, 1, 0x80000000},
    {__LINE__, FN(ABS), PEAL_I32, 1, {0xfffffffe}, 1, 2},
    {__LINE__, FN(ADD), PEAL_I32, 2, {0x7fffffff, 1}, 2, 0xc0000000},
    {__LINE__, FN(DIV), PEAL_I32, 2, {0xfffffff9, 2}, 1, 0xfffffffd},
    {__LINE__, FN(DIV), PEAL_I32, 2, {7, 0}, 1, 0},
    {__LINE__, FN(DIV), PEAL_I8, 2, {0x80, 0xff}, 1, 0x80},
    {__LINE__, FN(DIV), PEAL_U8, 2, {0x80, 0xff}, 1, 0},
    {__LINE__,
     FN(DIV),
     PEAL_I64,
     2,
     {UINT64_C(0x8000000000000000), UINT64_MAX},
     1,
     UINT64_C(0x8000000000000000)},
    {__LINE__, FN(CDIV), PEAL_I32, 2, {7, 2}, 1, 4},
    {__LINE__, FN(CDIV), PEAL_I32, 2, {0xfffffff9, 2}, 1, 0xfffffffd},
    {__LINE__, FN(CDIV), PEAL_I32, 2, {7, 0xfffffffe}, 1, 0xfffffffd},
    {__LINE__, FN(CDIV), PEAL_I32, 2, {0xfffffff9, 0xfffffffe}, 1, 4},
    {__LINE__, FN(CDIV), PEAL_I32, 2, {6, 2}, 1, 3},
    {__LINE__, FN(CDIV), PEAL_I32, 2, {6, 0}, 1, 0},
    {__LINE__, FN(MAXIMUM), PEAL_I8, 2, {0x80, 1}, 1, 1},
    {__LINE__, FN(MAXIMUM), PEAL_U8, 2, {0x80, 1}, 1, 0x80},
    {__LINE__, FN(XOR), PEAL_U8, 3, {0xf0, 0xff, 0x01}, 1, 0x0e},
    /* Three operands. */
    {__LINE__, FN(CLAMP), PEAL_I32, 3, {50, 0, 10}, 1, 10},
    {__LINE__, FN(CLAMP), PEAL_F32, 3, {0xbf800000, 0, 0x3f800000}, 1, 0},
    /* (1 + 2^-12)^2 - (1 + 2^-11): the product rounded alone would give 0. */
    {__LINE__, FN(FMA), PEAL_F32, 3, {0x3f800800, 0x3f800800, 0xbf801000}, 1, 0x33800000},
    /* One operand. */
    {__LINE__, FN(SQRT), PEAL_F32, 1, {0x40000000}, 1, 0x3fb504f3},
    {__LINE__, FN(SQRT), PEAL_F32, 1, {0xbf800000}, 1, 0x7fc00000},
    {__LINE__, FN(RECIP), PEAL_F32, 1, {0x40400000}, 1, 0x3eaaaaab},
    {__LINE__, FN(RECIP), PEAL_F32, 1, {0x80000000}, 1, 0xff800000},
    {__LINE__, FN(EXP), PEAL_F32, 1, {0x3f800000}, 1, 0x402df854},
    {__LINE__, FN(LOG), PEAL_F32, 1, {0x40000000}, 1, 0x3f317218},
    {__LINE__, FN(TANH), PEAL_F32, 1, {0x3f800000}, 1, 0x3f42f7d6},
    {__LINE__, FN(SIGMOID), PEAL_F32, 1, {0}, 1, 0x3f000000},
    {__LINE__, FN(ABS), PEAL_F16, 1, {0xbc00}, 1, 0x3c00},
    {__LINE__, FN(NEG), PEAL_BF16, 1, {0x0000}, 1, 0x8000},
};

TEST(results_have_the_promised_bits)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        uint64_t src[3] = {row->src[0], row->src[1], row->src[2]}, got = 0;
        struct peal_operand dst = {&got, 0, row->dtype}, operands[3];
        for (uint32_t s = 0; s < row->nsrc; s++)
            operands[s] = (struct peal_operand){&src[s], 0, row->dtype};
        peal_compute_generic.combine(row->fn, &dst, operands, row->nsrc, 1, row->divisor);
        if (got != row->expected)
            fail_msg("line %d: got 0x%llx", row->line, (unsigned long long)got);
    }
}

TEST(mixed_dtypes_go_through_the_work_type)
{
    /* f16 sources into f32 keep what f16 would round away. */
    uint16_t half[2] = {0x6800, 0x3c00};
    float wide = 0;
    struct peal_operand to_wide = {&wide, 0, PEAL_F32};
    struct peal_operand src[2] = {{&half[0], 0, PEAL_F16}, {&half[1], 0, PEAL_F16}};
    peal_compute_generic.combine(PEAL_FN_ADD, &to_wide, src, 2, 1, 1);
    assert_true(wide == 2049.0f);
    /* f64 into f16 rounds once: 1 + 2^-11 + 2^-40 is above the middle of two f16 values; f32 would
     * round it to the middle. */
    double fine = 1 + 0x1p-11 + 0x1p-40;
    uint16_t narrow = 0;
    struct peal_operand to_half = {&narrow, 0, PEAL_F16}, from = {&fine, 0, PEAL_F64};
    peal_compute_generic.combine(PEAL_FN_ID, &to_half, &from, 1, 1, 1);
    assert_int_equal(narrow, 0x3c01);
    /* A constant takes its operand's dtype first. */
    float one = 1.0f, sum = 0;
    struct peal_operand add[2] = {{&one, 0, PEAL_F32}, {NULL, 0.1, PEAL_BF16}};
    struct peal_operand to = {&sum, 0, PEAL_F32};
    peal_compute_generic.combine(PEAL_FN_ADD, &to, add, 2, 1, 1);
    assert_true(sum == 1.0f + peal_bf16_to_f32(0x3dcd));
    /* Integers of several widths work in 64 bits and wrap at the end. */
    int8_t small = -1;
    int32_t large = 0;
    struct peal_operand ints[2] = {{&small, 0, PEAL_I8}, {NULL, 300, PEAL_I32}};
    struct peal_operand to_int = {&large, 0, PEAL_I32};
    peal_compute_generic.combine(PEAL_FN_MUL, &to_int, ints, 2, 1, 1);
    assert_int_equal(large, -300);
}

TEST(softmax_rows_sum_to_one_and_survive_large_values)
{
    enum { N = 600 }; /* more than two blocks */
    float row[N];
    double total = 0;
    for (int i = 0; i < N; i++)
        row[i] = 1000.0f + (float)(i % 7);
    struct peal_operand operand = {row, 0, PEAL_F32};
    peal_compute_generic.combine(PEAL_FN_SOFTMAX, &operand, &operand, 1, N, 1);
    for (int i = 0; i < N; i++)
        total += row[i];
    assert_true(fabs(total - 1) < 1e-5);
    assert_true(fabs(row[1] / row[0] - exp(1)) < 1e-5);
    assert_true(row[0] == row[7]);
}

enum { THREADS = 4, ROUNDS = 2000, CELLS = 3 };

static void *accumulate_ones(void *arg)
{
    const struct peal_operand *dst = arg;
    struct peal_operand one = {NULL, 1, dst->dtype};
    for (int i = 0; i < ROUNDS; i++)
        peal_compute_generic.accumulate(PEAL_FN_ADD, dst, &one, CELLS);
    return NULL;
}

/* 4 * 2000 is exact in every dtype but those below f32 (f16 stops at 2048, bf16 at 256, f8 at 16 and
 * 8) and wraps in 8 bits. */
TEST(concurrent_accumulates_lose_no_update)
{
    for (enum peal_dtype dtype = 0; dtype < PEAL_SCALAR_DTYPES; dtype++) {
        if (!peal_fn_takes(PEAL_FN_ADD, dtype))
            continue;
        uint64_t memory[CELLS] = {0};
        struct peal_operand dst = {memory, 0, dtype};
        pthread_t threads[THREADS];
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, accumulate_ones, &dst), 0);
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
        double expected = THREADS * ROUNDS, got[CELLS];
        if (dtype == PEAL_F8E4M3 || dtype == PEAL_F8E5M2)
            expected = dtype == PEAL_F8E4M3 ? 16 : 8;
        if (dtype == PEAL_F16 || dtype == PEAL_BF16)
            expected = dtype == PEAL_F16 ? 2048 : 256;
        if (dtype == PEAL_I8 || dtype == PEAL_U8)
            expected = THREADS * ROUNDS % 256;
        struct peal_operand out = {got, 0, PEAL_F64};
        peal_compute_generic.combine(PEAL_FN_ID, &out, &dst, 1, CELLS, 1);
        for (int i = 0; i < CELLS; i++) {
            if (got[i] != expected)
                fail_msg("%s: %g instead of %g", peal_dtype_name(dtype), got[i], expected);
        }
    }
}

TEST(accumulate_equals_combine_for_all_functions_and_dtypes)
{
    for (enum peal_fn fn = 0; fn < PEAL_FN_COUNT; fn++) {
        for (enum peal_dtype d = 0; d < PEAL_SCALAR_DTYPES; d++) {
            for (enum peal_dtype s = 0; s < PEAL_SCALAR_DTYPES; s++) {
                if (!peal_fn_info(fn)->commutes || !peal_fn_takes(fn, d) || !peal_fn_takes(fn, s))
                    continue;
                uint64_t a[300], b[300], source[300];
                for (int i = 0; i < 300; i++) {
                    source[i] = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(i + 1);
                    a[i] = b[i] = source[i] * UINT64_C(0xd6e8feb86659fd93);
                }
                struct peal_operand to_a = {a, 0, d}, from = {source, 0, s};
                struct peal_operand to_b = {b, 0, d}, both[2] = {to_b, from};
                peal_compute_generic.accumulate(fn, &to_a, &from, 300);
                peal_compute_generic.combine(fn, &to_b, both, 2, 300, 1);
                if (memcmp(a, b, sizeof a) != 0)
                    fail_msg("%s of %s into %s", peal_fn_info(fn)->name, peal_dtype_name(s),
                             peal_dtype_name(d));
            }
        }
    }
}

int main(void)
{
    return unit_run();
}
