/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and storing blocks: every dtype into and out of every work type. */
#include "compute/stage.h"

#include "compute/convert.h"

#include <assert.h>

/* The low bits of an integer as a value of an integer dtype. */
static int64_t wrap_int(int64_t value, enum peal_dtype dtype)
{
    switch (dtype) {
    case PEAL_I8:
        return (int8_t)value;
    case PEAL_U8:
        return (uint8_t)value;
    case PEAL_I16:
        return (int16_t)value;
    case PEAL_U16:
        return (uint16_t)value;
    case PEAL_I32:
        return (int32_t)value;
    case PEAL_U32:
        return (uint32_t)value;
    case PEAL_BOOL:
        return value != 0;
    default:
        assert(dtype == PEAL_I64 || dtype == PEAL_U64);
        return value;
    }
}

static int64_t float_to_int(double value, enum peal_dtype dtype)
{
    switch (dtype) {
    case PEAL_I8:
        return peal_f64_to_int(value, INT8_MIN, INT8_MAX);
    case PEAL_U8:
        return peal_f64_to_int(value, 0, UINT8_MAX);
    case PEAL_I16:
        return peal_f64_to_int(value, INT16_MIN, INT16_MAX);
    case PEAL_U16:
        return peal_f64_to_int(value, 0, UINT16_MAX);
    case PEAL_I32:
        return peal_f64_to_int(value, INT32_MIN, INT32_MAX);
    case PEAL_U32:
        return peal_f64_to_int(value, 0, UINT32_MAX);
    case PEAL_U64:
        if (value >= 0x1p63) /* NaN is not */
        {
            if (value >= 0x1p64)
                return (int64_t)UINT64_MAX;
            return (int64_t)(uint64_t)value;
        }
        return peal_f64_to_int(value, 0, INT64_MAX);
    case PEAL_BOOL:
        return value < 0 || value > 0;
    default:
        assert(dtype == PEAL_I64);
        return peal_f64_to_int(value, INT64_MIN, INT64_MAX);
    }
}

static int64_t const_int(const struct peal_operand *constant)
{
    return float_to_int(constant->value, constant->dtype);
}

double peal_const_f64(const struct peal_operand *constant)
{
    switch (constant->dtype) {
    case PEAL_F16:
        return peal_f16_to_f32(peal_f64_to_f16(constant->value));
    case PEAL_BF16:
        return peal_bf16_to_f32(peal_f64_to_bf16(constant->value));
    case PEAL_F8E4M3:
        return peal_f8e4m3_to_f32(peal_f64_to_f8e4m3(constant->value));
    case PEAL_F8E5M2:
        return peal_f8e5m2_to_f32(peal_f64_to_f8e5m2(constant->value));
    case PEAL_F32:
        return (float)constant->value;
    case PEAL_F64:
        return constant->value;
    case PEAL_U64:
        return (double)(uint64_t)const_int(constant);
    default:
        return (double)const_int(constant);
    }
}

static void load_const(union peal_stage *stage, enum peal_dtype work,
                       const struct peal_operand *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (work == PEAL_F64)
            stage->f64[i] = peal_const_f64(src);
        else if (work != PEAL_F32)
            stage->i64[i] = const_int(src);
        else if (peal_dtype_is_float(src->dtype))
            stage->f32[i] = (float)peal_const_f64(src);
        else if (src->dtype == PEAL_U64)
            stage->f32[i] = (float)(uint64_t)const_int(src);
        else
            stage->f32[i] = (float)const_int(src);
    }
}

/* ROW(name, type) for every type of whole numbers. */
#define INTEGERS(ROW)                                                                              \
    ROW(PEAL_I8, int8_t)                                                                           \
    ROW(PEAL_U8, uint8_t)                                                                          \
    ROW(PEAL_I16, int16_t)                                                                         \
    ROW(PEAL_U16, uint16_t)                                                                        \
    ROW(PEAL_I32, int32_t)                                                                         \
    ROW(PEAL_U32, uint32_t)                                                                        \
    ROW(PEAL_I64, int64_t)                                                                         \
    ROW(PEAL_U64, uint64_t)

/* stage[i] = convert(element i), elements of `type` at any address. */
#define LOAD(field, type, convert)                                                                 \
    for (size_t i = 0; i < n; i++) {                                                               \
        type element;                                                                              \
        memcpy(&element, (const char *)src->at + (first + i) * sizeof element, sizeof element);    \
        stage->field[i] = convert(element);                                                        \
    }                                                                                              \
    break

#define IS_TRUE(value) ((value) != 0)
#define LOAD_F32(name, type)                                                                       \
    case name:                                                                                     \
        LOAD(f32, type, (float));
#define LOAD_F64(name, type)                                                                       \
    case name:                                                                                     \
        LOAD(f64, type, (double));
#define LOAD_INT(name, type)                                                                       \
    case name:                                                                                     \
        LOAD(i64, type, (int64_t));

static void load_f32(union peal_stage *stage, const struct peal_operand *src, size_t first,
                     size_t n)
{
    switch (src->dtype) {
    case PEAL_F16:
        LOAD(f32, uint16_t, peal_f16_to_f32);
    case PEAL_BF16:
        LOAD(f32, uint16_t, peal_bf16_to_f32);
    case PEAL_F32:
        LOAD(f32, float, (float));
        INTEGERS(LOAD_F32)
    case PEAL_BOOL:
        LOAD(f32, uint8_t, IS_TRUE);
    case PEAL_F8E4M3:
        LOAD(f32, uint8_t, peal_f8e4m3_to_f32);
    case PEAL_F8E5M2:
        LOAD(f32, uint8_t, peal_f8e5m2_to_f32);
    default:
        assert(!"an operand of f64 makes the work type f64");
    }
}

static void load_f64(union peal_stage *stage, const struct peal_operand *src, size_t first,
                     size_t n)
{
    switch (src->dtype) {
    case PEAL_F16:
        LOAD(f64, uint16_t, peal_f16_to_f32);
    case PEAL_BF16:
        LOAD(f64, uint16_t, peal_bf16_to_f32);
    case PEAL_F32:
        LOAD(f64, float, (double));
    case PEAL_F64:
        LOAD(f64, double, (double));
        INTEGERS(LOAD_F64)
    case PEAL_BOOL:
        LOAD(f64, uint8_t, IS_TRUE);
    case PEAL_F8E4M3:
        LOAD(f64, uint8_t, peal_f8e4m3_to_f32);
    case PEAL_F8E5M2:
        LOAD(f64, uint8_t, peal_f8e5m2_to_f32);
    default:
        assert(!"a dtype");
    }
}

static void load_int(union peal_stage *stage, const struct peal_operand *src, size_t first,
                     size_t n)
{
    switch (src->dtype) {
        INTEGERS(LOAD_INT)
    case PEAL_BOOL:
        LOAD(i64, uint8_t, IS_TRUE);
    default:
        assert(!"an operand of floating point makes the work type floating point");
    }
}

void peal_stage_load(union peal_stage *stage, enum peal_dtype work, const struct peal_operand *src,
                     size_t first, size_t n)
{
    if (!src->at)
        load_const(stage, work, src, n);
    else if (work == PEAL_F32)
        load_f32(stage, src, first, n);
    else if (work == PEAL_F64)
        load_f64(stage, src, first, n);
    else
        load_int(stage, src, first, n);
}

/* element i = convert(value i) */
#define STORE(field, type, convert)                                                                \
    for (size_t i = 0; i < n; i++) {                                                               \
        type element = (type)convert(stage->field[i]);                                             \
        memcpy((char *)dst->at + (first + i) * sizeof element, &element, sizeof element);          \
    }                                                                                              \
    break
#define TO_INT(value) float_to_int(value, dst->dtype)
#define STORE_F32(name, type)                                                                      \
    case name:                                                                                     \
        STORE(f32, type, TO_INT);
#define STORE_F64(name, type)                                                                      \
    case name:                                                                                     \
        STORE(f64, type, TO_INT);

static void store_f32(const union peal_stage *stage, const struct peal_operand *dst, size_t first,
                      size_t n)
{
    switch (dst->dtype) {
    case PEAL_F16:
        STORE(f32, uint16_t, peal_f32_to_f16);
    case PEAL_BF16:
        STORE(f32, uint16_t, peal_f32_to_bf16);
    case PEAL_F32:
        STORE(f32, float, peal_f32_canonical);
        INTEGERS(STORE_F32)
    case PEAL_BOOL:
        STORE(f32, uint8_t, TO_INT);
    case PEAL_F8E4M3:
        STORE(f32, uint8_t, peal_f32_to_f8e4m3);
    case PEAL_F8E5M2:
        STORE(f32, uint8_t, peal_f32_to_f8e5m2);
    default:
        assert(!"a destination of f64 makes the work type f64");
    }
}

static void store_f64(const union peal_stage *stage, const struct peal_operand *dst, size_t first,
                      size_t n)
{
    switch (dst->dtype) {
    case PEAL_F16:
        STORE(f64, uint16_t, peal_f64_to_f16);
    case PEAL_BF16:
        STORE(f64, uint16_t, peal_f64_to_bf16);
    case PEAL_F32:
        STORE(f64, float, peal_f32_canonical);
    case PEAL_F64:
        STORE(f64, double, peal_f64_canonical);
        INTEGERS(STORE_F64)
    case PEAL_BOOL:
        STORE(f64, uint8_t, TO_INT);
    case PEAL_F8E4M3:
        STORE(f64, uint8_t, peal_f64_to_f8e4m3);
    case PEAL_F8E5M2:
        STORE(f64, uint8_t, peal_f64_to_f8e5m2);
    default:
        assert(!"a dtype");
    }
}

static void store_int(const union peal_stage *stage, const struct peal_operand *dst, size_t first,
                      size_t n)
{
    switch (dst->dtype) {
    case PEAL_I8:
    case PEAL_U8:
        STORE(i64, uint8_t, (uint64_t));
    case PEAL_I16:
    case PEAL_U16:
        STORE(i64, uint16_t, (uint64_t));
    case PEAL_I32:
    case PEAL_U32:
        STORE(i64, uint32_t, (uint64_t));
    case PEAL_I64:
    case PEAL_U64:
        STORE(i64, uint64_t, (uint64_t));
    case PEAL_BOOL:
        STORE(i64, uint8_t, IS_TRUE);
    default:
        assert(!"a destination of floating point makes the work type floating point");
    }
}

static void divide(union peal_stage *stage, enum peal_dtype work, uint32_t divisor,
                   enum peal_dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (work == PEAL_F32)
            stage->f32[i] /= (float)divisor;
        else if (work == PEAL_F64)
            stage->f64[i] /= divisor;
        else if (work == PEAL_U64)
            stage->i64[i] = (int64_t)((uint64_t)wrap_int(stage->i64[i], dtype) / divisor);
        else
            stage->i64[i] = wrap_int(stage->i64[i], dtype) / (int64_t)divisor;
    }
}

void peal_stage_store(union peal_stage *stage, enum peal_dtype work, uint32_t divisor,
                      const struct peal_operand *dst, size_t first, size_t n)
{
    if (divisor > 1)
        divide(stage, work, divisor, dst->dtype, n);
    if (work == PEAL_F32)
        store_f32(stage, dst, first, n);
    else if (work == PEAL_F64)
        store_f64(stage, dst, first, n);
    else
        store_int(stage, dst, first, n);
}
