/* SPDX-License-Identifier: Apache-2.0 */
/* Element-atomic accumulation.
 *
 * All accesses are relaxed: an accumulate is data, and the plan's notify (release) and wait
 * (acquire) order it. The partners of each access are the same accesses by other ranks; what must
 * hold between them is only that no update of an element is lost, and a single atomic object's
 * modification order gives that.
 */
#include "compute/atomic.h"

#include "compute/convert.h"
#include "compute/pair.h"
#include "compute/record.h"
#include "compute/stage.h"

#include <assert.h>

/* dst = stored(fn(loaded(dst), value)) until no other thread came between. */
#define UPDATE(word, work_type, loaded, pair, stored, field)                                       \
    do {                                                                                           \
        word *cell = (word *)dst->at + first;                                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            word old = __atomic_load_n(&cell[i], __ATOMIC_RELAXED), new;                           \
            do {                                                                                   \
                work_type value = pair(fn, loaded(old), stage->field[i]);                          \
                new = (word)stored(value);                                                         \
            } while (!__atomic_compare_exchange_n(&cell[i], &old, new, true, __ATOMIC_RELAXED,     \
                                                  __ATOMIC_RELAXED));                              \
        }                                                                                          \
    } while (0)

#define BITS_F32(value) peal_f32_bits(peal_f32_canonical(value))
#define BITS_F64(value) peal_f64_bits(peal_f64_canonical(value))
#define SIGNED_8(bits) ((int8_t)(bits))
#define SIGNED_16(bits) ((int16_t)(bits))
#define SIGNED_32(bits) ((int32_t)(bits))
#define SAME(bits) ((int64_t)(bits))
#define IS_TRUE(bits) ((bits) != 0)

static void update_f32(enum peal_fn fn, const struct peal_operand *dst,
                       const union peal_stage *stage, size_t first, size_t n)
{
    if (dst->dtype == PEAL_F16)
        UPDATE(uint16_t, float, peal_f16_to_f32, peal_float_pair, peal_f32_to_f16, f32);
    else if (dst->dtype == PEAL_BF16)
        UPDATE(uint16_t, float, peal_bf16_to_f32, peal_float_pair, peal_f32_to_bf16, f32);
    else if (dst->dtype == PEAL_F8E4M3)
        UPDATE(uint8_t, float, peal_f8e4m3_to_f32, peal_float_pair, peal_f32_to_f8e4m3, f32);
    else if (dst->dtype == PEAL_F8E5M2)
        UPDATE(uint8_t, float, peal_f8e5m2_to_f32, peal_float_pair, peal_f32_to_f8e5m2, f32);
    else
        UPDATE(uint32_t, float, peal_f32_of_bits, peal_float_pair, BITS_F32, f32);
}

static void update_int(enum peal_fn fn, const struct peal_operand *dst,
                       const union peal_stage *stage, size_t first, size_t n)
{
    switch (dst->dtype) {
    case PEAL_I8:
        UPDATE(uint8_t, int64_t, SIGNED_8, peal_int_pair, SAME, i64);
        break;
    case PEAL_U8:
        UPDATE(uint8_t, int64_t, SAME, peal_int_pair, SAME, i64);
        break;
    case PEAL_I16:
        UPDATE(uint16_t, int64_t, SIGNED_16, peal_int_pair, SAME, i64);
        break;
    case PEAL_U16:
        UPDATE(uint16_t, int64_t, SAME, peal_int_pair, SAME, i64);
        break;
    case PEAL_I32:
        UPDATE(uint32_t, int64_t, SIGNED_32, peal_int_pair, SAME, i64);
        break;
    case PEAL_U32:
        UPDATE(uint32_t, int64_t, SAME, peal_int_pair, SAME, i64);
        break;
    case PEAL_U64:
        UPDATE(uint64_t, int64_t, SAME, peal_uint_pair, SAME, i64);
        break;
    case PEAL_BOOL:
        UPDATE(uint8_t, int64_t, IS_TRUE, peal_int_pair, IS_TRUE, i64);
        break;
    default:
        UPDATE(uint64_t, int64_t, SAME, peal_int_pair, SAME, i64);
    }
}

/* Integer adds are one instruction each. */
static void add_int(const struct peal_operand *dst, const union peal_stage *stage, size_t first,
                    size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value = (uint64_t)stage->i64[i];
        switch (peal_dtype_size(dst->dtype)) {
        case 1:
            __atomic_fetch_add((uint8_t *)dst->at + first + i, (uint8_t)value, __ATOMIC_RELAXED);
            break;
        case 2:
            __atomic_fetch_add((uint16_t *)dst->at + first + i, (uint16_t)value, __ATOMIC_RELAXED);
            break;
        case 4:
            __atomic_fetch_add((uint32_t *)dst->at + first + i, (uint32_t)value, __ATOMIC_RELAXED);
            break;
        default:
            __atomic_fetch_add((uint64_t *)dst->at + first + i, value, __ATOMIC_RELAXED);
        }
    }
}

static void read_cell(const void *cell, size_t size, void *out)
{
    if (size == 1)
        __atomic_load((const uint8_t *)cell, (uint8_t *)out, __ATOMIC_RELAXED);
    else if (size == 2)
        __atomic_load((const uint16_t *)cell, (uint16_t *)out, __ATOMIC_RELAXED);
    else if (size == 4)
        __atomic_load((const uint32_t *)cell, (uint32_t *)out, __ATOMIC_RELAXED);
    else
        __atomic_load((const uint64_t *)cell, (uint64_t *)out, __ATOMIC_RELAXED);
}

#define EXCHANGE(word)                                                                             \
    __atomic_compare_exchange((word *)cell, (word *)old, (word *)new, false, __ATOMIC_RELAXED,     \
                              __ATOMIC_RELAXED)

static bool exchange_cell(void *cell, size_t size, void *old, void *new)
{
    switch (size) {
    case 1:
        return EXCHANGE(uint8_t);
    case 2:
        return EXCHANGE(uint16_t);
    case 4:
        return EXCHANGE(uint32_t);
    default:
        return EXCHANGE(uint64_t);
    }
}

/* Work types other than the destination's own (f64 into f32, floating point into integers): each
 * step takes a copy of the element through rules 1 to 4. */
static void update_mixed(enum peal_fn fn, enum peal_dtype work, const struct peal_operand *dst,
                         const struct peal_operand *src, size_t i)
{
    size_t size = peal_dtype_size(dst->dtype);
    char *cell = (char *)dst->at + i * size;
    for (;;) {
        uint64_t old = 0, new = 0;
        struct peal_operand was = {&old, 0, dst->dtype}, becomes = {&new, 0, dst->dtype};
        union peal_stage a, b;
        read_cell(cell, size, &old);
        peal_stage_load(&a, work, &was, 0, 1);
        peal_stage_load(&b, work, src, i, 1);
        if (work == PEAL_F64)
            a.f64[0] = peal_double_pair(fn, a.f64[0], b.f64[0]);
        else if (work == PEAL_U64)
            a.i64[0] = peal_uint_pair(fn, a.i64[0], b.i64[0]);
        else
            a.f32[0] = peal_float_pair(fn, a.f32[0], b.f32[0]);
        peal_stage_store(&a, work, 1, &becomes, 0, 1);
        if (exchange_cell(cell, size, &old, &new))
            return;
    }
}

void peal_accumulate(enum peal_fn fn, const struct peal_operand *dst,
                     const struct peal_operand *src, size_t count)
{
    assert(peal_fn_accumulates(fn, dst->dtype) && peal_fn_takes(fn, dst->dtype));
    if (peal_dtype_is_record(dst->dtype)) {
        peal_struct_accumulate(fn, dst, src, count);
        return;
    }
    assert((uintptr_t)dst->at % peal_dtype_size(dst->dtype) == 0);
    enum peal_dtype work = peal_compute_work(dst, src, 1);
    bool mixed = peal_dtype_is_float(dst->dtype) != peal_dtype_is_float(work) ||
                 (work == PEAL_F64) != (dst->dtype == PEAL_F64) ||
                 (work == PEAL_U64) != (dst->dtype == PEAL_U64 && !peal_dtype_is_float(work));
    if (mixed) {
        for (size_t i = 0; i < count; i++)
            update_mixed(fn, work, dst, src, i);
        return;
    }
    for (size_t first = 0; first < count; first += PEAL_STAGE_LEN) {
        size_t n = PEAL_STAGE_LEN;
        if (count - first < PEAL_STAGE_LEN)
            n = count - first;
        union peal_stage block, *stage = &block;
        peal_stage_load(stage, work, src, first, n);
        if (work == PEAL_F32)
            update_f32(fn, dst, stage, first, n);
        else if (work == PEAL_F64)
            UPDATE(uint64_t, double, peal_f64_of_bits, peal_double_pair, BITS_F64, f64);
        else if (fn == PEAL_FN_ADD)
            add_int(dst, stage, first, n);
        else
            update_int(fn, dst, stage, first, n);
    }
}
