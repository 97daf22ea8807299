/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of AVX2 and F16C for vector.inc. Parts of vectors use masks where elements have
 * 4 or 8 bytes, and a copy on the stack otherwise. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VARIANT peal_compute_avx2
#define VARIANT_NAME "avx2"
#define VECTOR_BYTES ((size_t)32)

#define INLINE static inline __attribute__((always_inline))

#define REG_f32 __m256
#define REG_f16 __m256
#define REG_bf16 struct two_f32
#define REG_f64 __m256d
#define REG_i8 __m256i
#define REG_u8 __m256i
#define REG_i32 __m256i
#define REG_i64 __m256i
#define LANES_f32 ((size_t)8)
#define LANES_f16 ((size_t)8)
#define LANES_bf16 ((size_t)16)
#define LANES_f64 ((size_t)4)
#define LANES_i8 ((size_t)32)
#define LANES_u8 ((size_t)32)
#define LANES_i32 ((size_t)8)
#define LANES_i64 ((size_t)4)

/* All ones in the lowest n lanes of 4 bytes, and of 8 bytes. */
INLINE __m256i lanes_32(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE __m256i lanes_64(size_t n)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)n), _mm256_setr_epi64x(0, 1, 2, 3));
}

INLINE void store_fence(void)
{
    _mm_sfence();
}

INLINE __m256 set_f32(float value)
{
    return _mm256_set1_ps(value);
}

/* What f32 and f64 have alike. maxps gives its second operand for zeros of different sign and
 * for NaN. Both orders, and their common bits: +0 unless both are -0. Where either was NaN all bits
 * are set, which is one too. */
#define REAL(T, REG, x, LANES)                                                                     \
    INLINE REG add_##T(REG a, REG b)                                                               \
    {                                                                                              \
        return _mm256_add_##x(a, b);                                                               \
    }                                                                                              \
    INLINE REG mul_##T(REG a, REG b)                                                               \
    {                                                                                              \
        return _mm256_mul_##x(a, b);                                                               \
    }                                                                                              \
    INLINE REG max_##T(REG a, REG b)                                                               \
    {                                                                                              \
        REG m = _mm256_and_##x(_mm256_max_##x(a, b), _mm256_max_##x(b, a));                        \
        return _mm256_or_##x(m, _mm256_cmp_##x(a, b, _CMP_UNORD_Q));                               \
    }                                                                                              \
    INLINE REG min_##T(REG a, REG b)                                                               \
    {                                                                                              \
        REG m = _mm256_or_##x(_mm256_min_##x(a, b), _mm256_min_##x(b, a));                         \
        return _mm256_or_##x(m, _mm256_cmp_##x(a, b, _CMP_UNORD_Q));                               \
    }                                                                                              \
    INLINE REG load_##T(const void *p)                                                             \
    {                                                                                              \
        return _mm256_loadu_##x(p);                                                                \
    }                                                                                              \
    INLINE REG load_part_##T(const void *p, size_t n)                                              \
    {                                                                                              \
        return _mm256_maskload_##x(p, LANES(n));                                                   \
    }                                                                                              \
    INLINE void store_##T(void *p, REG v)                                                          \
    {                                                                                              \
        _mm256_storeu_##x(p, v);                                                                   \
    }                                                                                              \
    INLINE void store_part_##T(void *p, REG v, size_t n)                                           \
    {                                                                                              \
        _mm256_maskstore_##x(p, LANES(n), v);                                                      \
    }                                                                                              \
    INLINE void stream_##T(void *p, REG v)                                                         \
    {                                                                                              \
        _mm256_stream_##x(p, v);                                                                   \
    }
REAL(f32, __m256, ps, lanes_32)
REAL(f64, __m256d, pd, lanes_64)
#undef REAL

INLINE __m256 sub_f32(__m256 a, __m256 b)
{
    return _mm256_sub_ps(a, b);
}
INLINE __m256 div_f32(__m256 a, __m256 b)
{
    return _mm256_div_ps(a, b);
}

INLINE __m256 finish_f32(__m256 v)
{
    __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

/* 8 elements of 16 bits; a part of them by way of the stack. */
INLINE __m128i load_half(const void *p)
{
    return _mm_loadu_si128(p);
}
INLINE __m128i load_part_half(const void *p, size_t n)
{
    uint16_t copy[8] = {0};
    memcpy(copy, p, 2 * n);
    return _mm_loadu_si128((const __m128i *)copy);
}
INLINE void store_part_half(void *p, __m128i v, size_t n)
{
    uint16_t copy[8];
    _mm_storeu_si128((__m128i *)copy, v);
    memcpy(p, copy, 2 * n);
}

/* f16: the conversion instructions round as asked and keep denormals whatever the control word. */
INLINE __m256 widen_f16(__m128i v)
{
    return _mm256_cvtph_ps(v);
}
INLINE __m128i narrow_f16(__m256 v)
{
    return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* bf16: the upper half of an f32. Rounding adds just below half of the last place, and one more if
 * that place is odd; v has no NaN but the canonical one, which this leaves alone. The lower half of
 * the result is of no meaning. */
INLINE __m256i round_bf16(__m256 v)
{
    __m256i bits = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
}
INLINE __m256 widen_bf16(__m128i v)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}
INLINE __m128i narrow_bf16(__m256 v)
{
    __m256i bits = _mm256_srli_epi32(round_bf16(v), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

#define HALF(T)                                                                                    \
    INLINE __m256 widen_load_##T(const void *p)                                                    \
    {                                                                                              \
        return widen_##T(load_half(p));                                                            \
    }                                                                                              \
    INLINE __m256 widen_load_part_##T(const void *p, size_t n)                                     \
    {                                                                                              \
        return widen_##T(load_part_half(p, n));                                                    \
    }                                                                                              \
    INLINE void narrow_store_##T(void *p, __m256 v)                                                \
    {                                                                                              \
        _mm_storeu_si128(p, narrow_##T(v));                                                        \
    }                                                                                              \
    INLINE void narrow_store_part_##T(void *p, __m256 v, size_t n)                                 \
    {                                                                                              \
        store_part_half(p, narrow_##T(v), n);                                                      \
    }
HALF(f16)
HALF(bf16)

#define load_f16 widen_load_f16
#define load_part_f16 widen_load_part_f16
#define store_f16 narrow_store_f16
#define store_part_f16 narrow_store_part_f16
INLINE void stream_f16(void *p, __m256 v)
{
    _mm_stream_si128(p, narrow_f16(v));
}

#include "compute/simd/two_f32.inc"

INLINE struct two_f32 split_bf16(__m256i v)
{
    __m256i high = _mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000));
    return (struct two_f32){_mm256_castsi256_ps(_mm256_slli_epi32(v, 16)),
                            _mm256_castsi256_ps(high)};
}
INLINE __m256i join_bf16(struct two_f32 v)
{
    __m256i even = _mm256_srli_epi32(round_bf16(v.even), 16);
    return _mm256_blend_epi16(even, round_bf16(v.odd), 0xaa);
}
INLINE struct two_f32 load_bf16(const void *p)
{
    return split_bf16(_mm256_loadu_si256(p));
}
INLINE struct two_f32 load_part_bf16(const void *p, size_t n)
{
    uint16_t copy[16] = {0};
    memcpy(copy, p, 2 * n);
    return split_bf16(_mm256_loadu_si256((const __m256i *)copy));
}
INLINE void store_bf16(void *p, struct two_f32 v)
{
    _mm256_storeu_si256(p, join_bf16(v));
}
INLINE void store_part_bf16(void *p, struct two_f32 v, size_t n)
{
    uint16_t copy[16];
    _mm256_storeu_si256((__m256i *)copy, join_bf16(v));
    memcpy(p, copy, 2 * n);
}
INLINE void stream_bf16(void *p, struct two_f32 v)
{
    _mm256_stream_si256(p, join_bf16(v));
}

INLINE __m256d finish_f64(__m256d v)
{
    __m256d nan = _mm256_castsi256_pd(_mm256_set1_epi64x(INT64_C(0x7ff8000000000000)));
    return _mm256_blendv_pd(v, nan, _mm256_cmp_pd(v, v, _CMP_UNORD_Q));
}

#define INTEGER(T, width)                                                                          \
    INLINE __m256i load_##T(const void *p)                                                         \
    {                                                                                              \
        return _mm256_loadu_si256(p);                                                              \
    }                                                                                              \
    INLINE void store_##T(void *p, __m256i v)                                                      \
    {                                                                                              \
        _mm256_storeu_si256(p, v);                                                                 \
    }                                                                                              \
    INLINE void stream_##T(void *p, __m256i v)                                                     \
    {                                                                                              \
        _mm256_stream_si256(p, v);                                                                 \
    }                                                                                              \
    INLINE __m256i add_##T(__m256i a, __m256i b)                                                   \
    {                                                                                              \
        return _mm256_add_epi##width(a, b);                                                        \
    }                                                                                              \
    INLINE __m256i and_##T(__m256i a, __m256i b)                                                   \
    {                                                                                              \
        return _mm256_and_si256(a, b);                                                             \
    }                                                                                              \
    INLINE __m256i or_##T(__m256i a, __m256i b)                                                    \
    {                                                                                              \
        return _mm256_or_si256(a, b);                                                              \
    }                                                                                              \
    INLINE __m256i xor_##T(__m256i a, __m256i b)                                                   \
    {                                                                                              \
        return _mm256_xor_si256(a, b);                                                             \
    }                                                                                              \
    INLINE __m256i finish_##T(__m256i v)                                                           \
    {                                                                                              \
        return v;                                                                                  \
    }
INTEGER(i8, 8)
INTEGER(u8, 8)
INTEGER(i32, 32)
INTEGER(i64, 64)

INLINE __m256i load_part_i32(const void *p, size_t n)
{
    return _mm256_maskload_epi32(p, lanes_32(n));
}
INLINE void store_part_i32(void *p, __m256i v, size_t n)
{
    _mm256_maskstore_epi32(p, lanes_32(n), v);
}
INLINE __m256i load_part_i64(const void *p, size_t n)
{
    return _mm256_maskload_epi64(p, lanes_64(n));
}
INLINE void store_part_i64(void *p, __m256i v, size_t n)
{
    _mm256_maskstore_epi64(p, lanes_64(n), v);
}
INLINE __m256i load_part_u8(const void *p, size_t n)
{
    uint8_t copy[32] = {0};
    memcpy(copy, p, n);
    return _mm256_loadu_si256((const __m256i *)copy);
}
INLINE void store_part_u8(void *p, __m256i v, size_t n)
{
    uint8_t copy[32];
    _mm256_storeu_si256((__m256i *)copy, v);
    memcpy(p, copy, n);
}
#define load_part_i8 load_part_u8
#define store_part_i8 store_part_u8

INLINE __m256i max_i8(__m256i a, __m256i b)
{
    return _mm256_max_epi8(a, b);
}
INLINE __m256i min_i8(__m256i a, __m256i b)
{
    return _mm256_min_epi8(a, b);
}
INLINE __m256i max_u8(__m256i a, __m256i b)
{
    return _mm256_max_epu8(a, b);
}
INLINE __m256i min_u8(__m256i a, __m256i b)
{
    return _mm256_min_epu8(a, b);
}
INLINE __m256i max_i32(__m256i a, __m256i b)
{
    return _mm256_max_epi32(a, b);
}
INLINE __m256i min_i32(__m256i a, __m256i b)
{
    return _mm256_min_epi32(a, b);
}
INLINE __m256i max_i64(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}
INLINE __m256i min_i64(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}

/* There is no product of bytes: even and odd ones as 16-bit products. */
INLINE __m256i mul_u8(__m256i a, __m256i b)
{
    __m256i even = _mm256_mullo_epi16(a, b);
    __m256i odd = _mm256_mullo_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    return _mm256_blendv_epi8(even, _mm256_slli_epi16(odd, 8), _mm256_set1_epi16((short)0xff00));
}
#define mul_i8 mul_u8
INLINE __m256i mul_i32(__m256i a, __m256i b)
{
    return _mm256_mullo_epi32(a, b);
}

/* Nor one of 64 bits: low * low + (low * high + high * low) * 2^32, the rest falls off the end. */
INLINE __m256i mul_i64(__m256i a, __m256i b)
{
    __m256i low = _mm256_mul_epu32(a, b);
    __m256i cross = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), b),
                                     _mm256_mul_epu32(a, _mm256_srli_epi64(b, 32)));
    return _mm256_add_epi64(low, _mm256_slli_epi64(cross, 32));
}

#include "compute/simd/vector.inc"
