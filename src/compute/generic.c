/* SPDX-License-Identifier: Apache-2.0 */
/* The definition, in plain C: operands are taken through the work type in blocks.
 *
 *   load source 0 -> a;   for each further source: load -> b, a = a fn b;   divide, store a
 *
 * A block is loaded from all sources before it is stored, and blocks do not overlap: so the
 * destination may be a source.
 */
#include "compute/functions.h"

#include "compute/atomic.h"
#include "compute/convert.h"
#include "compute/elementary.h"
#include "compute/pair.h"
#include "compute/record.h"
#include "compute/stage.h"

#include <assert.h>
#include <float.h>
#include <math.h>

static_assert(FLT_EVAL_METHOD == 0, "f32 and f64 are evaluated in their own precision");

enum peal_dtype peal_compute_work(const struct peal_operand *dst, const struct peal_operand *src,
                                  uint32_t nsrc)
{
    enum peal_dtype work = peal_dtype_is_float(dst->dtype) ? PEAL_F32 : PEAL_I64;
    bool wide = dst->dtype == PEAL_F64, is_unsigned = dst->dtype == PEAL_U64;
    for (uint32_t i = 0; i < nsrc; i++) {
        if (peal_dtype_is_float(src[i].dtype))
            work = PEAL_F32;
        wide |= src[i].dtype == PEAL_F64;
        is_unsigned |= src[i].dtype == PEAL_U64;
    }
    if (work == PEAL_I64 && is_unsigned)
        work = PEAL_U64;
    if (wide)
        return PEAL_F64;
    return work;
}

/* a[i] = a[i] fn b[i], with the switch outside the loop for the functions that matter. */
#define EACH_PAIR(field, pair, name)                                                               \
    case name:                                                                                     \
        for (size_t i = 0; i < n; i++)                                                             \
            a->field[i] = pair(name, a->field[i], b->field[i]);                                    \
        break

static void apply_pair(enum peal_fn fn, enum peal_dtype work, union peal_stage *a,
                       const union peal_stage *b, size_t n)
{
    if (work == PEAL_F32) {
        switch (fn) {
            EACH_PAIR(f32, peal_float_pair, PEAL_FN_ADD);
            EACH_PAIR(f32, peal_float_pair, PEAL_FN_MUL);
        default:
            for (size_t i = 0; i < n; i++)
                a->f32[i] = peal_float_pair(fn, a->f32[i], b->f32[i]);
        }
    } else if (work == PEAL_F64) {
        switch (fn) {
            EACH_PAIR(f64, peal_double_pair, PEAL_FN_ADD);
            EACH_PAIR(f64, peal_double_pair, PEAL_FN_MUL);
        default:
            for (size_t i = 0; i < n; i++)
                a->f64[i] = peal_double_pair(fn, a->f64[i], b->f64[i]);
        }
    } else if (work == PEAL_U64) {
        for (size_t i = 0; i < n; i++)
            a->i64[i] = peal_uint_pair(fn, a->i64[i], b->i64[i]);
    } else {
        switch (fn) {
            EACH_PAIR(i64, peal_int_pair, PEAL_FN_ADD);
        default:
            for (size_t i = 0; i < n; i++)
                a->i64[i] = peal_int_pair(fn, a->i64[i], b->i64[i]);
        }
    }
}

static double one_f64(enum peal_fn fn, double a)
{
    switch (fn) {
    case PEAL_FN_NEG:
        return -a;
    case PEAL_FN_ABS:
        return fabs(a);
    case PEAL_FN_EXP:
        return peal_elementary_exp(a);
    case PEAL_FN_LOG:
        return peal_elementary_log(a);
    case PEAL_FN_SQRT:
        return sqrt(a);
    case PEAL_FN_RECIP:
        return 1.0 / a;
    case PEAL_FN_TANH:
        return peal_elementary_tanh(a);
    case PEAL_FN_SIGMOID:
        return peal_elementary_sigmoid(a);
    default:
        assert(!"a function of one operand");
        return a;
    }
}

static int64_t one_int(enum peal_fn fn, int64_t a)
{
    assert(fn == PEAL_FN_NEG || fn == PEAL_FN_ABS);
    if (fn == PEAL_FN_NEG || a < 0)
        return (int64_t)(0 - (uint64_t)a);
    return a;
}

/* In f32, too, the result is the f64 one rounded: for sqrt and 1/a that is the correctly rounded
 * one, as f64 has more than twice the digits. */
static void apply_one(enum peal_fn fn, enum peal_dtype work, union peal_stage *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (work == PEAL_F32)
            a->f32[i] = (float)one_f64(fn, a->f32[i]);
        else if (work == PEAL_F64)
            a->f64[i] = one_f64(fn, a->f64[i]);
        else if (work == PEAL_I64 || fn != PEAL_FN_ABS) /* the unsigned are what they are */
            a->i64[i] = one_int(fn, a->i64[i]);
    }
}

static void apply_three(enum peal_fn fn, enum peal_dtype work, union peal_stage *a,
                        union peal_stage *b, const union peal_stage *c, size_t n)
{
    if (fn == PEAL_FN_CLAMP) {
        apply_pair(PEAL_FN_MAXIMUM, work, a, b, n);
        apply_pair(PEAL_FN_MINIMUM, work, a, c, n);
        return;
    }
    assert(fn == PEAL_FN_FMA && peal_dtype_is_float(work));
    for (size_t i = 0; i < n; i++) {
        if (work == PEAL_F32)
            a->f32[i] = fmaf(a->f32[i], b->f32[i], c->f32[i]);
        else
            a->f64[i] = fma(a->f64[i], b->f64[i], c->f64[i]);
    }
}

/* Three passes over the row; exp twice instead of a row of memory. */
static void softmax(const struct peal_operand *dst, const struct peal_operand *src, size_t count)
{
    union peal_stage stage;
    double maximum = -INFINITY, sum = 0;
    for (int pass = 0; pass < 3; pass++) {
        for (size_t first = 0; first < count; first += PEAL_STAGE_LEN) {
            size_t n = PEAL_STAGE_LEN;
            if (count - first < PEAL_STAGE_LEN)
                n = count - first;
            peal_stage_load(&stage, PEAL_F64, src, first, n);
            for (size_t i = 0; i < n; i++) {
                double a = stage.f64[i];
                if (pass == 0)
                    maximum = peal_double_maximum(maximum, a);
                else if (pass == 1)
                    sum += peal_elementary_exp(a - maximum);
                else
                    stage.f64[i] = peal_elementary_exp(a - maximum) / sum;
            }
            if (pass == 2)
                peal_stage_store(&stage, PEAL_F64, 1, dst, first, n);
        }
    }
}

static void combine_block(enum peal_fn fn, enum peal_dtype work, const struct peal_operand *src,
                          uint32_t nsrc, size_t first, size_t n, union peal_stage *a)
{
    union peal_stage b, c;
    peal_stage_load(a, work, &src[0], first, n);
    switch (peal_fn_info(fn)->operands) {
    case 1:
        if (fn != PEAL_FN_ID)
            apply_one(fn, work, a, n);
        break;
    case 3:
        peal_stage_load(&b, work, &src[1], first, n);
        peal_stage_load(&c, work, &src[2], first, n);
        apply_three(fn, work, a, &b, &c, n);
        break;
    default:
        for (uint32_t s = 1; s < nsrc; s++) {
            peal_stage_load(&b, work, &src[s], first, n);
            apply_pair(fn, work, a, &b, n);
        }
    }
}

static void combine(enum peal_fn fn, const struct peal_operand *dst, const struct peal_operand *src,
                    uint32_t nsrc, size_t count, uint32_t divisor)
{
    int operands = peal_fn_info(fn)->operands;
    assert(dst->at && nsrc >= 1 && (operands == 0 || nsrc == (uint32_t)operands));
    (void)operands;
    if (peal_dtype_is_record(dst->dtype)) {
        peal_struct_combine(fn, dst, src, nsrc, count, divisor);
        return;
    }
    enum peal_dtype work = peal_compute_work(dst, src, nsrc);
    assert(peal_fn_takes(fn, work));
    if (fn == PEAL_FN_SOFTMAX) {
        softmax(dst, src, count);
        return;
    }
    if (fn == PEAL_FN_ID && src->at && src->dtype == dst->dtype && divisor <= 1) {
        if (count && dst->at != src->at)
            memcpy(dst->at, src->at, count * peal_dtype_size(dst->dtype));
        return;
    }
    for (size_t first = 0; first < count; first += PEAL_STAGE_LEN) {
        size_t n = PEAL_STAGE_LEN;
        if (count - first < PEAL_STAGE_LEN)
            n = count - first;
        union peal_stage a;
        combine_block(fn, work, src, nsrc, first, n, &a);
        peal_stage_store(&a, work, divisor, dst, first, n);
    }
}

static void copy(void *dst, const void *src, size_t bytes)
{
    if (bytes) /* so that NULL with 0 bytes is fine */
        memcpy(dst, src, bytes);
}

/* Element by element, as a destination may be a source. */
static void spread_records(const struct peal_spread *job)
{
    size_t size = peal_dtype_size(job->dtype);
    for (size_t i = 0; i < job->count; i++) {
        char sum[16], next[16];
        struct peal_operand pair[2] = {{sum, 0, job->dtype}, {next, 0, job->dtype}};
        memcpy(sum, (const char *)job->src[0] + i * size, size);
        for (uint32_t s = 1; s < job->nsrc; s++) {
            memcpy(next, (const char *)job->src[s] + i * size, size);
            peal_struct_combine(job->fn, &pair[0], pair, 2, 1, 1);
        }
        for (uint32_t d = 0; d < job->ndst; d++)
            memcpy((char *)job->dst[d] + i * size, sum, size);
    }
}

static void spread(const struct peal_spread *job)
{
    assert(job->nsrc >= 1 && job->ndst >= 1);
    if (job->fn == PEAL_FN_ID) {
        for (uint32_t d = 0; d < job->ndst; d++) {
            if (job->dst[d] != job->src[0])
                copy(job->dst[d], job->src[0], job->count * peal_dtype_size(job->dtype));
        }
        return;
    }
    assert(peal_fn_info(job->fn)->commutes && peal_fn_takes(job->fn, job->dtype));
    if (peal_dtype_is_record(job->dtype)) {
        spread_records(job);
        return;
    }
    struct peal_operand operand = {NULL, 0, job->dtype};
    enum peal_dtype work = peal_compute_work(&operand, &operand, 1);
    for (size_t first = 0; first < job->count; first += PEAL_STAGE_LEN) {
        size_t n = PEAL_STAGE_LEN;
        if (job->count - first < PEAL_STAGE_LEN)
            n = job->count - first;
        union peal_stage a, b;
        for (uint32_t s = 0; s < job->nsrc; s++) {
            operand.at = (void *)(uintptr_t)job->src[s]; /* sources are only read */
            peal_stage_load(s == 0 ? &a : &b, work, &operand, first, n);
            if (s > 0)
                apply_pair(job->fn, work, &a, &b, n);
        }
        for (uint32_t d = 0; d < job->ndst; d++) {
            operand.at = job->dst[d];
            peal_stage_store(&a, work, 1, &operand, first, n);
        }
    }
}

static peal_reducer *no_reducer(enum peal_fn fn, enum peal_dtype dtype)
{
    (void)fn;
    (void)dtype;
    return NULL;
}

const struct peal_compute peal_compute_generic = {
    .name = "generic",
    .combine = combine,
    .combine_stream = combine,
    .reducer = no_reducer,
    .spread = spread,
    .copy = copy,
    .copy_stream = copy,
    .accumulate = peal_accumulate,
};
