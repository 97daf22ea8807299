/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined reductions: what formula.h promises, on chosen cases. Random ones are in
 * tests/interp/formula_test.c. */
#include "base/tests/unit.h"
#include "compute/compute.h"

#include <stdio.h>
#include <string.h>

#define A                                                                                          \
    {                                                                                              \
        .kind = PEAL_FORMULA_A                                                                     \
    }
#define B                                                                                          \
    {                                                                                              \
        .kind = PEAL_FORMULA_B                                                                     \
    }
#define NUMBER(v)                                                                                  \
    {                                                                                              \
        .kind = PEAL_FORMULA_CONST, .value = (v)                                                   \
    }
#define APPLY(name, n)                                                                             \
    {                                                                                              \
        .kind = PEAL_FORMULA_APPLY, .fn = PEAL_FN_##name, .operands = (n)                          \
    }

/* a * b + a + b, max(a * b, 0), a - b / 2, b, (a + b) * (a - b) in complex numbers, minloc */
static const struct peal_formula join = {
    "join", 0, 7, {A, B, APPLY(MUL, 2), A, APPLY(ADD, 2), B, APPLY(ADD, 2)}};
static const struct peal_formula positive = {
    "positive", 0, 5, {A, B, APPLY(MUL, 2), NUMBER(0), APPLY(MAXIMUM, 2)}};
static const struct peal_formula half = {
    "half", 0, 5, {A, B, NUMBER(2), APPLY(DIV, 2), APPLY(SUB, 2)}};
static const struct peal_formula second = {"second", 0, 1, {B}};
static const struct peal_formula square = {
    "square", 0, 7, {A, B, APPLY(ADD, 2), A, B, APPLY(SUB, 2), APPLY(MUL, 2)}};
static const struct peal_formula least = {"least", 0, 3, {A, B, APPLY(MINLOC, 2)}};
static const struct peal_formula root = {
    "root", 0, 6, {A, A, APPLY(MUL, 2), B, APPLY(ADD, 2), APPLY(SQRT, 1)}};

static void combine(const struct peal_formula *f, enum peal_dtype dtype, void *dst, void *s0,
                    void *s1, void *s2, size_t count)
{
    struct peal_operand to = {dst, 0, dtype};
    struct peal_operand from[3] = {{s0, 0, dtype}, {s1, 0, dtype}, {s2, 0, dtype}};
    assert_true(peal_formula_check(f));
    assert_true(peal_formula_takes(f, dtype));
    const struct peal_compute *variant;
    for (unsigned i = 0; (variant = peal_compute_at(i)); i++)
        peal_formula_combine(variant, f, &to, from, s2 ? 3 : 2, count);
}

TEST(an_expression_is_evaluated_element_by_element)
{
    enum { N = 1000 };
    static float x[N], y[N], z[N], out[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = (float)(i % 7) - 3;
        z[i] = 0.5f;
    }
    combine(&join, PEAL_F32, out, x, y, z, N);
    for (int i = 0; i < N; i++) {
        float two = x[i] * y[i] + x[i] + y[i], three = two * z[i] + two + z[i];
        assert_true(out[i] == three);
    }
    combine(&half, PEAL_F32, out, x, y, NULL, N);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == x[i] - y[i] / 2);
    combine(&second, PEAL_F32, out, x, y, z, N);
    assert_memory_equal(out, z, sizeof out);
}

TEST(the_destination_may_be_any_of_the_sources)
{
    enum { N = 600 };
    for (int which = 0; which < 3; which++) {
        double src[3][N];
        for (int i = 0; i < N; i++) {
            for (int k = 0; k < 3; k++)
                src[k][i] = i + 0.25 * k;
        }
        struct peal_operand from[3] = {
            {src[0], 0, PEAL_F64}, {src[1], 0, PEAL_F64}, {src[2], 0, PEAL_F64}};
        peal_formula_combine(peal_compute_best(), &join, &from[which], from, 3, N);
        for (int i = 0; i < N; i++) {
            double a = i, b = i + 0.25, c = i + 0.5, two = a * b + a + b;
            assert_true(src[which][i] == two * c + two + c);
        }
    }
}

/* 100 * 100 wraps to 16, then 16 * 3 = 48; -100 * 100 wraps to -16, and 0 is larger. */
TEST(integers_wrap_after_each_application)
{
    int8_t a[2] = {100, -100}, b[2] = {100, 100}, c[2] = {3, 3}, out[2];
    combine(&positive, PEAL_I8, out, a, b, c, 2);
    assert_int_equal(out[0], 10000 % 256 * 3); /* max(10000, 0) wraps to 16 */
    assert_int_equal(out[1], 0);
}

/* 2048 * 0.5 + ... in f32: the sum 2048 + 1 has no f16, and must not be rounded before the second
 * application. */
TEST(narrow_types_are_rounded_once)
{
    static const struct peal_formula add = {"add2", 0, 3, {A, B, APPLY(ADD, 2)}};
    uint16_t a = 0x6800, b = 0x3c00, c = 0x3c00, out; /* 2048, 1, 1 */
    combine(&add, PEAL_F16, &out, &a, &b, &c, 1);
    assert_int_equal(out, 0x6801); /* 2050 */
}

TEST(complex_numbers_and_pairs_work_too)
{
    float a[2] = {3, 4}, b[2] = {1, 2}, out[2];
    struct {
        float value;
        int32_t index;
    } p = {2, 7}, q = {1, 9}, r;
    combine(&square, PEAL_CF32, out, a, b, NULL, 1);
    assert_true(out[0] == -4 && out[1] == 20); /* (4 + 6i)(2 + 2i) */
    combine(&least, PEAL_F32_I32, &r, &p, &q, NULL, 1);
    assert_true(r.value == 1 && r.index == 9);
}

TEST(a_constant_is_a_source_like_others)
{
    float x[300], out[300];
    for (int i = 0; i < 300; i++)
        x[i] = (float)i;
    struct peal_operand to = {out, 0, PEAL_F32};
    struct peal_operand from[2] = {{x, 0, PEAL_F32}, {NULL, 3, PEAL_F32}};
    peal_formula_combine(peal_compute_best(), &join, &to, from, 2, 300);
    assert_true(out[299] == 299 * 3 + 299 + 3);
}

TEST(types_that_a_function_lacks_are_refused)
{
    assert_true(peal_formula_takes(&root, PEAL_F16));
    assert_false(peal_formula_takes(&root, PEAL_I32));
    assert_false(peal_formula_takes(&root, PEAL_CF32));
    assert_false(peal_formula_takes(&least, PEAL_F32));
    assert_true(peal_formula_takes(&half, PEAL_U8));
    struct peal_formula third = half;
    third.steps[2].value = 0.5;
    assert_true(peal_formula_takes(&third, PEAL_BF16));
    assert_false(peal_formula_takes(&third, PEAL_I64));
}

TEST(broken_formulas_are_found)
{
    struct peal_formula f;
#define BROKEN(change)                                                                             \
    do {                                                                                           \
        f = join;                                                                                  \
        change;                                                                                    \
        assert_false(peal_formula_check(&f));                                                      \
    } while (0)
    BROKEN(f.nsteps = 0);
    BROKEN(f.nsteps = 6);  /* two values are left */
    BROKEN(f.nsteps = 65); /* beyond the table */
    BROKEN(f.flags = 4);
    BROKEN(f.steps[0].kind = 4);
    BROKEN(f.steps[0] = f.steps[2]); /* nothing is on the stack */
    BROKEN(f.steps[2].fn = PEAL_FN_SOFTMAX);
    BROKEN(f.steps[2].fn = PEAL_FN_USER);
    BROKEN(f.steps[2].operands = 3);
    BROKEN(f.steps[2].operands = 0);
    BROKEN(memset(f.name, 'x', sizeof f.name));
    /* Nine values at once. */
    f = (struct peal_formula){.name = "deep", .nsteps = 17};
    for (int i = 0; i < 17; i++)
        f.steps[i] = i < 9 ? (struct peal_formula_step)A : (struct peal_formula_step)APPLY(ADD, 2);
    assert_false(peal_formula_check(&f));
}

int main(void)
{
    return unit_run();
}
