/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise functions of base/tables/fn.def on real data: what each result is, bit for bit.
 *
 * What a result is
 *
 * 1. The *work type* is f64 if any operand, the destination included, is f64; else f32 if any is
 *    floating point; else 64-bit integers, unsigned if any is u64. Each source element is converted
 *    to it: exactly, or to nearest even (i32 and i64 into f32, i64 into f64). A constant is first
 *    converted to its operand's dtype, as rule 4 stores.
 * 2. The function is applied in the work type, each operation rounded to nearest even, nothing
 *    contracted. Two or more sources of a variadic function are combined left to right:
 *    ((s0 + s1) + s2) + ...; a single source stands for itself.
 * 3. A divisor above 1 then divides: floating point in the work type; integers are first wrapped
 *    into the destination's dtype, the quotient truncates.
 * 4. The result is stored in the destination's dtype, rounded once to nearest even. NaN is stored
 *    in one form: quiet, sign 0, payload 0 (f16 0x7e00, bf16 0x7fc0, f32 0x7fc00000,
 *    f64 0x7ff8000000000000, f8e4m3 0x7f, f8e5m2 0x7e). f8e4m3 has no infinity: what is too large
 *    becomes NaN. Integers wrap; floating point into an integer truncates and saturates, NaN gives
 *    0. bool is 0 or 1: whether the value is not 0.
 * 5. Complex numbers and pairs go their own way: see record.h.
 *
 * So add, mul, maximum and minimum commute to the bit. Functions that need a further rule:
 *   id        with equal dtypes and no divisor moves the bits, a NaN's included
 *   maximum   NaN if any operand is NaN; -0 < +0; minimum likewise
 *   div       integers truncate, x / 0 = 0, the lowest value / -1 wraps; cdiv rounds up instead
 *   fma       one rounding in the work type
 *   exp log sqrt recip tanh sigmoid   f64: as elementary.h computes them; f32: that, rounded to f32
 *   softmax   one row of `count` elements: exp(a - max) / sum, all in f64, the sum left to right,
 *             rounded into the destination
 *
 * Memory. An operand holds `count` elements one after the other, at any address (accumulate: at
 * multiples of the element's size). The destination may be exactly a source (same address, same
 * dtype); any other overlap is an error of the caller. Floating point runs in the default
 * environment: round to nearest, denormals kept.
 */
#ifndef PEAL_COMPUTE_FUNCTIONS_H
#define PEAL_COMPUTE_FUNCTIONS_H

#include "base/base.h"

#include <stdint.h>

struct peal_operand {
    void *at;     /* the elements; NULL: a constant (sources only). Sources are only read. */
    double value; /* the constant */
    enum peal_dtype dtype;
};

/* dst[i] = src[0][i] fn src[1][i] fn ..., all of one dtype; nsrc >= 1, no divisor. */
typedef void peal_reducer(void *dst, const void *const *src, uint32_t nsrc, size_t count);

/* A reduction with several destinations, all of one dtype: each of them gets the result. fn must
 * commute (fn.def), or be ID with one source. nsrc, ndst >= 1. A destination may be a source. */
struct peal_spread {
    enum peal_fn fn;
    enum peal_dtype dtype;
    bool stream; /* as combine_stream, the fence included; where the destinations differ in their
                    distance from a multiple of 64 bytes, they are stored to plainly */
    uint32_t cached; /* this many of the first destinations are not streamed, and may be sources */
    uint32_t ndst, nsrc;
    void *const *dst;
    const void *const *src;
    size_t count;
};

/* One variant. All functions may be called from any thread at any time; none allocates. */
struct peal_compute {
    const char *name;

    /* nsrc must fit fn: peal_fn_info(fn)->operands, or at least 1 where that is 0; and the dtypes
     * must be such that fn takes the work type. count 0 does nothing. */
    void (*combine)(enum peal_fn fn, const struct peal_operand *dst, const struct peal_operand *src,
                    uint32_t nsrc, size_t count, uint32_t divisor);

    /* The same result by stores that bypass the caches, where the variant has them and dst is not a
     * source; for destinations that are not read soon (of some MiB or more). Ends with a store
     * fence: a release store after it orders its stores like any others. */
    void (*combine_stream)(enum peal_fn fn, const struct peal_operand *dst,
                           const struct peal_operand *src, uint32_t nsrc, size_t count,
                           uint32_t divisor);

    /* The direct way for sources and destination of one dtype: resolved once, called often. NULL
     * where this variant has none; combine then does it. */
    peal_reducer *(*reducer)(enum peal_fn fn, enum peal_dtype dtype);

    /* Faster than combine and copies of its result: the stores to peers' memory, which wait for
     * their lines, overlap with the loads. */
    void (*spread)(const struct peal_spread *spread);

    /* memcpy; and the same by stores that bypass the caches, followed by a store fence. */
    void (*copy)(void *dst, const void *src, size_t bytes);
    void (*copy_stream)(void *dst, const void *src, size_t bytes);

    /* dst[i] = dst[i] fn src[i], each element as one atomic step; fn must commute (fn.def). Orders
     * nothing by itself: the caller's release after it, and the acquire before, do. */
    void (*accumulate)(enum peal_fn fn, const struct peal_operand *dst,
                       const struct peal_operand *src, size_t count);
};

/* Plain C. */
extern const struct peal_compute peal_compute_generic;

/* The variants that this machine can run, generic first, fastest last; NULL from the end on. */
const struct peal_compute *peal_compute_at(unsigned index);
/* The fastest one. */
const struct peal_compute *peal_compute_best(void);
/* By name ("generic", "avx2", "avx512", "neon"); NULL if unknown or not for this machine. */
const struct peal_compute *peal_compute_find(const char *name);

/* The type that a combination is worked in by rule 1: PEAL_F64, PEAL_F32, PEAL_I64 or PEAL_U64. */
enum peal_dtype peal_compute_work(const struct peal_operand *dst, const struct peal_operand *src,
                                  uint32_t nsrc);

#endif
