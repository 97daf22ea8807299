/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers and pairs: tables of results, every variant, any address, in place, atomic. */
#include "compute/compute.h"
#include "base/tests/unit.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

TEST(complex_numbers_add_and_multiply_by_parts)
{
    const double a[2] = {3, -2}, b[2] = {-1.5, 4}, c[2] = {0.5, 0.25};
    const float d[2] = {3, -2}, e[2] = {-1.5F, 4};
    double out[2];
    float small[2];
    struct peal_operand src[3] = {{(void *)(uintptr_t)a, 0, PEAL_CF64},
                                  {(void *)(uintptr_t)b, 0, PEAL_CF64},
                                  {(void *)(uintptr_t)c, 0, PEAL_CF64}};
    struct peal_operand dst = {out, 0, PEAL_CF64}, two = {NULL, 2, PEAL_CF64};
    peal_compute_generic.combine(PEAL_FN_ADD, &dst, src, 3, 1, 0);
    assert_true(out[0] == 2 && out[1] == 2.25);
    peal_compute_generic.combine(PEAL_FN_ADD, &dst, src, 3, 1, 4);
    assert_true(out[0] == 0.5 && out[1] == 0.5625);
    peal_compute_generic.combine(PEAL_FN_MUL, &dst, src, 2, 1, 1);
    assert_true(out[0] == 3.5 && out[1] == 15); /* -4.5 + 8, 12 + 3 */
    peal_compute_generic.combine(PEAL_FN_SUB, &dst, src, 2, 1, 1);
    assert_true(out[0] == 4.5 && out[1] == -6);
    peal_compute_generic.combine(PEAL_FN_NEG, &dst, src, 1, 1, 1);
    assert_true(out[0] == -3 && out[1] == 2);
    peal_compute_generic.combine(PEAL_FN_MUL, &dst, (struct peal_operand[]){src[0], two}, 2, 1, 1);
    assert_true(out[0] == 6 && out[1] == -4);
    struct peal_operand less[2] = {{(void *)(uintptr_t)d, 0, PEAL_CF32},
                                   {(void *)(uintptr_t)e, 0, PEAL_CF32}};
    peal_compute_generic.combine(PEAL_FN_MUL, &(struct peal_operand){small, 0, PEAL_CF32}, less, 2,
                                 1, 1);
    assert_true(small[0] == 3.5F && small[1] == 15);
    assert_false(peal_fn_takes(PEAL_FN_MAXIMUM, PEAL_CF32));
    assert_false(peal_fn_takes(PEAL_FN_DIV, PEAL_CF64));
    assert_false(peal_reduce_takes(PEAL_MAX, PEAL_CF64));
    assert_true(peal_reduce_takes(PEAL_AVG, PEAL_CF64) && !peal_reduce_takes(PEAL_AVG, PEAL_I16));
}

struct located {
    double value;
    int64_t index;
};

static struct located locate(enum peal_fn fn, struct located a, struct located b)
{
    struct located out;
    struct peal_operand src[2] = {{&a, 0, PEAL_F64_I64}, {&b, 0, PEAL_F64_I64}};
    peal_compute_generic.combine(fn, &(struct peal_operand){&out, 0, PEAL_F64_I64}, src, 2, 1, 1);
    return out;
}

TEST(the_lower_index_wins_among_equal_values)
{
    const struct {
        int line;
        enum peal_fn fn;
        struct located a, b;
        int first;
    } rows[] = {
        {__LINE__, PEAL_FN_MINLOC, {1, 9}, {2, 3}, 1},
        {__LINE__, PEAL_FN_MAXLOC, {1, 9}, {2, 3}, 0},
        {__LINE__, PEAL_FN_MINLOC, {2, 9}, {2, 3}, 0},
        {__LINE__, PEAL_FN_MAXLOC, {2, 9}, {2, 3}, 0},
        {__LINE__, PEAL_FN_MINLOC, {2, -4}, {2, 3}, 1},
        {__LINE__, PEAL_FN_MINLOC, {-0.0, 9}, {0.0, 3}, 1},
        {__LINE__, PEAL_FN_MAXLOC, {-0.0, 1}, {0.0, 3}, 0},
        {__LINE__, PEAL_FN_MINLOC, {NAN, 9}, {-INFINITY, 3}, 1},
        {__LINE__, PEAL_FN_MAXLOC, {INFINITY, 1}, {NAN, 3}, 0},
        {__LINE__, PEAL_FN_MAXLOC, {NAN, 7}, {NAN, 3}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct located want = rows[i].first ? rows[i].a : rows[i].b;
        struct located got = locate(rows[i].fn, rows[i].a, rows[i].b);
        struct located turned = locate(rows[i].fn, rows[i].b, rows[i].a);
        bool same_bits = got.index == turned.index &&
                         memcmp((char *)&got.value, (char *)&turned.value, sizeof got.value) == 0;
        if (got.index != want.index || !same_bits ||
            (got.value != want.value && !(isnan(got.value) && isnan(want.value))))
            fail_msg("line %d: %g, %lld", rows[i].line, got.value, (long long)got.index);
    }
    int64_t a[2] = {INT64_MAX, 5}, b[2] = {INT64_MIN, 4}, out[2];
    int32_t c[2] = {-7, 1}, d[2] = {-7, 0}, small[2];
    struct peal_operand src[2] = {{a, 0, PEAL_I64_I64}, {b, 0, PEAL_I64_I64}};
    peal_compute_generic.combine(PEAL_FN_MINLOC, &(struct peal_operand){out, 0, PEAL_I64_I64}, src,
                                 2, 1, 1);
    assert_true(out[0] == INT64_MIN && out[1] == 4);
    struct peal_operand less[2] = {{c, 0, PEAL_I32_I32}, {d, 0, PEAL_I32_I32}};
    peal_compute_generic.combine(PEAL_FN_MAXLOC, &(struct peal_operand){small, 0, PEAL_I32_I32},
                                 less, 2, 1, 1);
    assert_true(small[0] == -7 && small[1] == 0);
}

static uint64_t seed = 88172645463325252u;

static uint64_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* Every variant, combine and spread, at odd addresses and in place, against one pair at a time. */
TEST(variants_agree_at_any_address)
{
    enum { MAX_LEN = 70, SOURCES = 4 };
    static char memory[SOURCES][16 * MAX_LEN + 8], want[16 * MAX_LEN], out[2][16 * MAX_LEN + 8];
    for (int round = 0; round < 4000; round++) {
        enum peal_dtype dtype = PEAL_CF32 + (int)(next() % (PEAL_DTYPES - PEAL_CF32));
        bool complex = peal_dtype_kind(dtype) == PEAL_KIND_COMPLEX;
        static const enum peal_fn fns[2][2] = {{PEAL_FN_MAXLOC, PEAL_FN_MINLOC},
                                               {PEAL_FN_MUL, PEAL_FN_ADD}};
        enum peal_fn fn = fns[complex][next() % 2];
        size_t size = peal_dtype_size(dtype), n = next() % MAX_LEN, odd = next() % 8;
        uint32_t nsrc = 1 + next() % SOURCES;
        struct peal_operand src[SOURCES];
        const void *at[SOURCES];
        for (uint32_t s = 0; s < nsrc; s++) {
            at[s] = src[s].at = memory[s] + odd;
            src[s].dtype = dtype;
            for (size_t i = 0; i < n; i++)
                peal_sample_put(memory[s] + odd, dtype, i, (double)(next() % 9) - 4);
        }
        for (size_t i = 0; i < n; i++) {
            struct peal_operand sum = {want + i * size, 0, dtype};
            memcpy(sum.at, memory[0] + odd + i * size, size);
            for (uint32_t s = 1; s < nsrc; s++) {
                struct peal_operand pair[2] = {sum, {memory[s] + odd + i * size, 0, dtype}};
                peal_compute_generic.combine(fn, &sum, pair, 2, 1, 1);
            }
        }
        for (unsigned v = 0; peal_compute_at(v); v++) {
            struct peal_operand dst = {out[0] + odd, 0, dtype};
            void *to[2] = {out[0] + odd, out[1] + odd};
            peal_compute_at(v)->combine(fn, &dst, src, nsrc, n, 1);
            assert_memory_equal(out[0] + odd, want, n * size);
            memset(out, 0, sizeof out);
            peal_compute_at(v)->spread(
                &(struct peal_spread){fn, dtype, next() % 2, 0, 2, nsrc, to, at, n});
            assert_memory_equal(out[0] + odd, want, n * size);
            assert_memory_equal(out[1] + odd, want, n * size);
        }
        peal_compute_best()->combine(fn, &src[0], src, nsrc, n, 1); /* in place */
        assert_memory_equal(memory[0] + odd, want, n * size);
    }
}

static struct {
    double sum[2];
    float product[2];
    struct {
        float value;
        int32_t index;
    } least;
} shared = {.product = {1, 0}, .least = {1e9F, -1}};
enum { STEPS = 20000 };

static void *accumulate(void *argument)
{
    int me = *(int *)argument;
    for (int i = 0; i < STEPS; i++) {
        double one[2] = {1, me};
        float turn[2] = {0, 1}; /* four of them are 1 */
        struct {
            float value;
            int32_t index;
        } mine = {(float)(1000 - i % 1000), me};
        peal_compute_best()->accumulate(PEAL_FN_ADD,
                                        &(struct peal_operand){shared.sum, 0, PEAL_CF64},
                                        &(struct peal_operand){one, 0, PEAL_CF64}, 1);
        peal_compute_best()->accumulate(PEAL_FN_MUL,
                                        &(struct peal_operand){shared.product, 0, PEAL_CF32},
                                        &(struct peal_operand){turn, 0, PEAL_CF32}, 1);
        peal_compute_best()->accumulate(PEAL_FN_MINLOC,
                                        &(struct peal_operand){&shared.least, 0, PEAL_F32_I32},
                                        &(struct peal_operand){&mine, 0, PEAL_F32_I32}, 1);
    }
    return NULL;
}

TEST(accumulations_lose_nothing)
{
    pthread_t threads[2];
    int numbers[2] = {1, 2};
    for (int t = 0; t < 2; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, accumulate, &numbers[t]), 0);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    assert_true(shared.sum[0] == 2 * STEPS && shared.sum[1] == 3 * STEPS);
    assert_true(shared.product[0] == 1 && shared.product[1] == 0);
    assert_true(shared.least.value == 1 && shared.least.index == 1);
    assert_false(peal_fn_accumulates(PEAL_FN_MUL, PEAL_CF64));
    assert_false(peal_fn_accumulates(PEAL_FN_MINLOC, PEAL_I64_I64));
    assert_true(peal_fn_accumulates(PEAL_FN_ADD, PEAL_CF64));
}

int main(void)
{
    return unit_run();
}
