/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of AArch64's NEON for vector.inc. Parts of vectors go by way of the stack. FMAX
 * and FMIN are the maximum and minimum that compute.h wants: NaN wins, -0 < +0. */
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VARIANT peal_compute_neon
#define VARIANT_NAME "neon"
#define VECTOR_BYTES ((size_t)16)

#define INLINE static inline __attribute__((always_inline))

#define REG_f32 float32x4_t
#define REG_f16 float32x4_t
#define REG_bf16 float32x4_t
#define REG_f64 float64x2_t
#define REG_i8 int8x16_t
#define REG_u8 uint8x16_t
#define REG_i32 int32x4_t
#define REG_i64 int64x2_t
#define LANES_f32 ((size_t)4)
#define LANES_f16 ((size_t)4)
#define LANES_bf16 ((size_t)4)
#define LANES_f64 ((size_t)2)
#define LANES_i8 ((size_t)16)
#define LANES_u8 ((size_t)16)
#define LANES_i32 ((size_t)4)
#define LANES_i64 ((size_t)2)

/* The architecture's plain stores serve for streams, so nothing is left to order. */
INLINE void store_fence(void)
{
}

/* Memory is read and written by memcpy of fixed size, which is one instruction and needs no
 * alignment. */
#define MEMORY(T, type, size, widen, narrow)                                                       \
    INLINE REG_##T load_##T(const void *p)                                                         \
    {                                                                                              \
        type v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                   \
        return widen(v);                                                                           \
    }                                                                                              \
    INLINE REG_##T load_part_##T(const void *p, size_t n)                                          \
    {                                                                                              \
        type v;                                                                                    \
        memset(&v, 0, sizeof v);                                                                   \
        memcpy(&v, p, n *(size));                                                                  \
        return widen(v);                                                                           \
    }                                                                                              \
    INLINE void store_##T(void *p, REG_##T v)                                                      \
    {                                                                                              \
        type out = narrow(v);                                                                      \
        memcpy(p, &out, sizeof out);                                                               \
    }                                                                                              \
    INLINE void store_part_##T(void *p, REG_##T v, size_t n)                                       \
    {                                                                                              \
        type out = narrow(v);                                                                      \
        memcpy(p, &out, n *(size));                                                                \
    }                                                                                              \
    INLINE void stream_##T(void *p, REG_##T v)                                                     \
    {                                                                                              \
        store_##T(p, v);                                                                           \
    }

#define SAME(v) (v)
#define WIDEN_F16(v) vcvt_f32_f16(vreinterpret_f16_u16(v))
#define NARROW_F16(v) vreinterpret_u16_f16(vcvt_f16_f32(v))

INLINE float32x4_t widen_bf16(uint16x4_t v)
{
    return vreinterpretq_f32_u32(vshll_n_u16(v, 16));
}

/* Adds just below half of the last place, and one more if that place is odd; v has no NaN but the
 * canonical one, which this leaves alone. */
INLINE uint16x4_t narrow_bf16(float32x4_t v)
{
    uint32x4_t bits = vreinterpretq_u32_f32(v);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    bits = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    return vshrn_n_u32(bits, 16);
}

MEMORY(f32, float32x4_t, 4, SAME, SAME)
MEMORY(f64, float64x2_t, 8, SAME, SAME)
MEMORY(f16, uint16x4_t, 2, WIDEN_F16, NARROW_F16)
MEMORY(bf16, uint16x4_t, 2, widen_bf16, narrow_bf16)
MEMORY(i8, int8x16_t, 1, SAME, SAME)
MEMORY(u8, uint8x16_t, 1, SAME, SAME)
MEMORY(i32, int32x4_t, 4, SAME, SAME)
MEMORY(i64, int64x2_t, 8, SAME, SAME)

#define widen_load_f16 load_f16
#define widen_load_part_f16 load_part_f16
#define narrow_store_f16 store_f16
#define narrow_store_part_f16 store_part_f16
#define widen_load_bf16 load_bf16
#define widen_load_part_bf16 load_part_bf16
#define narrow_store_bf16 store_bf16
#define narrow_store_part_bf16 store_part_bf16

#define BINARY(T, verb, instruction)                                                               \
    INLINE REG_##T verb##_##T(REG_##T a, REG_##T b)                                                \
    {                                                                                              \
        return instruction(a, b);                                                                  \
    }
BINARY(f32, add, vaddq_f32)
BINARY(f32, sub, vsubq_f32)
BINARY(f32, mul, vmulq_f32)
BINARY(f32, div, vdivq_f32)
BINARY(f32, max, vmaxq_f32)
BINARY(f32, min, vminq_f32)
BINARY(f64, add, vaddq_f64)
BINARY(f64, mul, vmulq_f64)
BINARY(f64, max, vmaxq_f64)
BINARY(f64, min, vminq_f64)

INLINE float32x4_t set_f32(float value)
{
    return vdupq_n_f32(value);
}
INLINE float32x4_t finish_f32(float32x4_t v)
{
    float32x4_t nan = vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000));
    return vbslq_f32(vceqq_f32(v, v), v, nan);
}
INLINE float64x2_t finish_f64(float64x2_t v)
{
    float64x2_t nan = vreinterpretq_f64_u64(vdupq_n_u64(UINT64_C(0x7ff8000000000000)));
    return vbslq_f64(vceqq_f64(v, v), v, nan);
}

#define add_bf16 add_f32
#define mul_bf16 mul_f32
#define max_bf16 max_f32
#define min_bf16 min_f32
#define finish_bf16 finish_f32

#define INTEGER(T, suffix)                                                                         \
    BINARY(T, add, vaddq_##suffix)                                                                 \
    BINARY(T, and, vandq_##suffix)                                                                 \
    BINARY(T, or, vorrq_##suffix)                                                                  \
    BINARY(T, xor, veorq_##suffix)                                                                 \
    INLINE REG_##T finish_##T(REG_##T v)                                                           \
    {                                                                                              \
        return v;                                                                                  \
    }
INTEGER(i8, s8)
INTEGER(u8, u8)
INTEGER(i32, s32)
INTEGER(i64, s64)
BINARY(i8, mul, vmulq_s8)
BINARY(i8, max, vmaxq_s8)
BINARY(i8, min, vminq_s8)
BINARY(u8, mul, vmulq_u8)
BINARY(u8, max, vmaxq_u8)
BINARY(u8, min, vminq_u8)
BINARY(i32, mul, vmulq_s32)
BINARY(i32, max, vmaxq_s32)
BINARY(i32, min, vminq_s32)

/* 64-bit elements lack these three: a lane at a time, and by comparison. */
INLINE int64x2_t mul_i64(int64x2_t a, int64x2_t b)
{
    uint64_t low = (uint64_t)vgetq_lane_s64(a, 0) * (uint64_t)vgetq_lane_s64(b, 0);
    uint64_t high = (uint64_t)vgetq_lane_s64(a, 1) * (uint64_t)vgetq_lane_s64(b, 1);
    return vreinterpretq_s64_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
}
INLINE int64x2_t max_i64(int64x2_t a, int64x2_t b)
{
    return vbslq_s64(vcgtq_s64(a, b), a, b);
}
INLINE int64x2_t min_i64(int64x2_t a, int64x2_t b)
{
    return vbslq_s64(vcgtq_s64(a, b), b, a);
}

#include "compute/simd/vector.inc"
