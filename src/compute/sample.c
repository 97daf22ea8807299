/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of every type, one at a time: for checks, not for speed. See sample.h. */
#include "compute/sample.h"

#include <math.h>

void peal_sample_put(void *at, enum peal_dtype dtype, uint64_t i, double value)
{
    /* A constant of an integer type would saturate: integers go through one that holds them. */
    int64_t whole = (int64_t)fmod(value, 0x1p62);
    struct peal_operand dst = {(char *)at + i * peal_dtype_size(dtype), 0, dtype};
    struct peal_operand real = {NULL, value, dtype}, integer = {&whole, 0, PEAL_I64};
    peal_compute_generic.combine(PEAL_FN_ID, &dst, peal_dtype_is_float(dtype) ? &real : &integer, 1,
                                 1, 0);
}

double peal_sample_get(const void *at, enum peal_dtype dtype, uint64_t i)
{
    double value = 0;
    struct peal_operand dst = {&value, 0, PEAL_F64};
    struct peal_operand src = {(char *)(uintptr_t)at + i * peal_dtype_size(dtype), 0, dtype};
    peal_compute_generic.combine(PEAL_FN_ID, &dst, &src, 1, 1, 0);
    return value;
}

double peal_sample_input(uint32_t rank, uint64_t i)
{
    return (double)(1 + (rank * 7 + i * 3) % 11 % 2);
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
            acc = v > acc ? v : acc;
            break;
        case PEAL_MIN:
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
    return op == PEAL_AVG ? acc / ranks : acc;
}

bool peal_sample_fits(const void *at, enum peal_dtype dtype, uint64_t i, double wanted)
{
    char cell[8];
    peal_sample_put(cell, dtype, 0, wanted);
    double want = peal_sample_get(cell, dtype, 0), got = peal_sample_get(at, dtype, i);
    return fabs(got - want) <= 0.01 * fabs(want);
}
