/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of every type, computed by the generic functions. See sample.h. */
#include "compute/sample.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { CHUNK = 512, MAX_ELEMENT_BYTES = 16 };

/* Elements of two parts: the value, and a second part that is 0. */
static void put_record(char *at, enum peal_dtype dtype, double value)
{
    static const enum peal_dtype parts[] = {
        [PEAL_CF32] = PEAL_F32,    [PEAL_CF64] = PEAL_F64,    [PEAL_F32_I32] = PEAL_F32,
        [PEAL_F64_I64] = PEAL_F64, [PEAL_I32_I32] = PEAL_I32, [PEAL_I64_I64] = PEAL_I64};
    memset(at, 0, peal_dtype_size(dtype));
    peal_sample_put(at, parts[dtype], 0, value);
}

static double get_record(const char *at, enum peal_dtype dtype)
{
    static const enum peal_dtype parts[] = {
        [PEAL_CF32] = PEAL_F32,    [PEAL_CF64] = PEAL_F64,    [PEAL_F32_I32] = PEAL_F32,
        [PEAL_F64_I64] = PEAL_F64, [PEAL_I32_I32] = PEAL_I32, [PEAL_I64_I64] = PEAL_I64};
    static const char zero[8] = {0};
    size_t half = peal_dtype_size(dtype) / 2;
    if (memcmp(at + half, zero, half) != 0)
        return NAN; /* it has never been anything but 0 */
    return peal_sample_get(at, parts[dtype], 0);
}

static int64_t whole_of(enum peal_dtype dtype, double value)
{
    if (dtype == PEAL_BOOL) /* 1 and 2 are true and false: bitwise operations agree with logic */
        return (int64_t)fmod(value, 2);
    if (fabs(value) < 0x1p62)
        return (int64_t)value;
    return (int64_t)fmod(value, 0x1p62);
}

/* A constant of an integer type would saturate: integers go through one that holds them. */
static void put_integers(struct peal_operand dst, uint64_t count, const double *values)
{
    int64_t whole[CHUNK];
    struct peal_operand src = {whole, 0, PEAL_I64};
    for (uint64_t done = 0; done < count; done += CHUNK) {
        uint64_t n = peal_size_min(CHUNK, count - done);
        for (uint64_t i = 0; i < n; i++)
            whole[i] = whole_of(dst.dtype, values[done + i]);
        peal_compute_generic.combine(PEAL_FN_ID, &dst, &src, 1, n, 0);
        dst.at = (char *)dst.at + n * peal_dtype_size(dst.dtype);
    }
}

void peal_sample_put_all(void *at, enum peal_dtype dtype, uint64_t count, const double *values)
{
    struct peal_operand dst = {at, 0, dtype};
    if (peal_dtype_is_record(dtype)) {
        for (uint64_t i = 0; i < count; i++)
            put_record((char *)at + i * peal_dtype_size(dtype), dtype, values[i]);
    } else if (peal_dtype_is_float(dtype)) {
        struct peal_operand src = {(double *)(uintptr_t)values, 0, PEAL_F64};
        peal_compute_generic.combine(PEAL_FN_ID, &dst, &src, 1, count, 0);
    } else {
        put_integers(dst, count, values);
    }
}

void peal_sample_put(void *at, enum peal_dtype dtype, uint64_t i, double value)
{
    peal_sample_put_all((char *)at + i * peal_dtype_size(dtype), dtype, 1, &value);
}

double peal_sample_get(const void *at, enum peal_dtype dtype, uint64_t i)
{
    double value = 0;
    if (peal_dtype_is_record(dtype))
        return get_record((const char *)at + i * peal_dtype_size(dtype), dtype);
    struct peal_operand dst = {&value, 0, PEAL_F64};
    struct peal_operand src = {(char *)(uintptr_t)at + i * peal_dtype_size(dtype), 0, dtype};
    peal_compute_generic.combine(PEAL_FN_ID, &dst, &src, 1, 1, 0);
    return value;
}

double peal_sample_input(uint32_t rank, uint64_t i)
{
    return (double)(1 + (rank * 7 + i * 3) % PEAL_SAMPLE_PERIOD % 2);
}

void peal_sample_inputs(uint32_t rank, uint64_t first, uint64_t count, double *out)
{
    for (uint64_t i = 0; i < count && i < PEAL_SAMPLE_PERIOD; i++)
        out[i] = peal_sample_input(rank, first + i);
    for (uint64_t i = PEAL_SAMPLE_PERIOD; i < count; i++)
        out[i] = out[i - PEAL_SAMPLE_PERIOD];
}

double peal_sample_reduced(enum peal_reduction op, uint32_t ranks, uint64_t i)
{
    double acc = peal_sample_input(0, i);
    for (uint32_t r = 1; r < ranks; r++) {
        double v = peal_sample_input(r, i);
        switch (op) {
        case PEAL_PROD:
            acc *= v;
            break;
        case PEAL_MAX:
        case PEAL_MAXLOC:
            acc = v > acc ? v : acc;
            break;
        case PEAL_MIN:
        case PEAL_MINLOC:
            acc = v < acc ? v : acc;
            break;
        case PEAL_AND:
            acc = (double)((long)acc & (long)v);
            break;
        case PEAL_OR:
            acc = (double)((long)acc | (long)v);
            break;
        case PEAL_XOR:
            acc = (double)((long)acc ^ (long)v);
            break;
        default:
            acc += v;
        }
    }
    if (op == PEAL_AVG)
        return acc / ranks;
    return acc;
}

double peal_sample_folded(const struct peal_formula *f, enum peal_dtype dtype, uint32_t ranks,
                          uint64_t i)
{
    enum peal_dtype as = peal_dtype_is_float(dtype) ? PEAL_F64 : dtype;
    char acc[16], next[16];
    struct peal_operand pair[2] = {{acc, 0, as}, {next, 0, as}};
    peal_sample_put(acc, as, 0, peal_sample_input(0, i));
    for (uint32_t r = 1; r < ranks; r++) {
        peal_sample_put(next, as, 0, peal_sample_input(r, i));
        peal_formula_combine(&peal_compute_generic, f, &pair[0], pair, 2, 1);
    }
    return peal_sample_get(acc, as, 0);
}

bool peal_sample_fits(const void *at, enum peal_dtype dtype, uint64_t i, double wanted)
{
    char cell[16];
    peal_sample_put(cell, dtype, 0, wanted);
    double want = peal_sample_get(cell, dtype, 0), got = peal_sample_get(at, dtype, i);
    /* Partial sums that are rounded to so few digits stop growing: at 8, where 16 is exact. */
    bool coarse = dtype == PEAL_F8E4M3 || dtype == PEAL_F8E5M2;
    return fabs(got - want) <= (coarse ? 0.6 : 0.01) * fabs(want);
}

uint64_t peal_sample_mismatches(const void *at, enum peal_dtype dtype, uint64_t count,
                                const double *wanted, uint64_t *first)
{
    char cells[CHUNK * MAX_ELEMENT_BYTES];
    uint64_t size = peal_dtype_size(dtype), wrong = 0;
    assert(size <= MAX_ELEMENT_BYTES);
    for (uint64_t done = 0; done < count; done += CHUNK) {
        uint64_t n = peal_size_min(CHUNK, count - done);
        peal_sample_put_all(cells, dtype, n, wanted + done);
        if (memcmp(cells, (const char *)at + done * size, n * size) == 0)
            continue;
        for (uint64_t i = done; i < done + n; i++) {
            if (!peal_sample_fits(at, dtype, i, wanted[i]) && wrong++ == 0)
                *first = i;
        }
    }
    return wrong;
}
