/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of AVX-512 (F, BW, DQ, VL) for vector.inc. Parts of vectors use masks, which
 * touch no memory beyond them. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VARIANT peal_compute_avx512
#define VARIANT_NAME "avx512"
#define VECTOR_BYTES ((size_t)64)

#define INLINE static inline __attribute__((always_inline))

#define REG_f32 __m512
#define REG_f16 __m512
#define REG_bf16 struct two_f32
#define REG_f64 __m512d
#define REG_i8 __m512i
#define REG_u8 __m512i
#define REG_i32 __m512i
#define REG_i64 __m512i
#define LANES_f32 ((size_t)16)
#define LANES_f16 ((size_t)16)
#define LANES_bf16 ((size_t)32)
#define LANES_f64 ((size_t)8)
#define LANES_i8 ((size_t)64)
#define LANES_u8 ((size_t)64)
#define LANES_i32 ((size_t)16)
#define LANES_i64 ((size_t)8)

/* The lowest n lanes, n < 64. */
INLINE uint64_t lanes(size_t n)
{
    return (UINT64_C(1) << n) - 1;
}

INLINE void store_fence(void)
{
    _mm_sfence();
}

INLINE __m512 set_f32(float value)
{
    return _mm512_set1_ps(value);
}

/* What f32 and f64 have alike. maxps gives its second operand for zeros of different sign and
 * for NaN. Both orders, and their common bits: +0 unless both are -0. NaN is put in where either
 * was. */
#define REAL(T, REG, x, LANES)                                                                     \
    INLINE REG add_##T(REG a, REG b)                                                               \
    {                                                                                              \
        return _mm512_add_##x(a, b);                                                               \
    }                                                                                              \
    INLINE REG mul_##T(REG a, REG b)                                                               \
    {                                                                                              \
        return _mm512_mul_##x(a, b);                                                               \
    }                                                                                              \
    INLINE REG max_##T(REG a, REG b)                                                               \
    {                                                                                              \
        LANES nan = _mm512_cmp_##x##_mask(a, b, _CMP_UNORD_Q);                                     \
        REG m = _mm512_and_##x(_mm512_max_##x(a, b), _mm512_max_##x(b, a));                        \
        return _mm512_mask_add_##x(m, nan, a, b);                                                  \
    }                                                                                              \
    INLINE REG min_##T(REG a, REG b)                                                               \
    {                                                                                              \
        LANES nan = _mm512_cmp_##x##_mask(a, b, _CMP_UNORD_Q);                                     \
        REG m = _mm512_or_##x(_mm512_min_##x(a, b), _mm512_min_##x(b, a));                         \
        return _mm512_mask_add_##x(m, nan, a, b);                                                  \
    }                                                                                              \
    INLINE REG load_##T(const void *p)                                                             \
    {                                                                                              \
        return _mm512_loadu_##x(p);                                                                \
    }                                                                                              \
    INLINE REG load_part_##T(const void *p, size_t n)                                              \
    {                                                                                              \
        return _mm512_maskz_loadu_##x((LANES)lanes(n), p);                                         \
    }                                                                                              \
    INLINE void store_##T(void *p, REG v)                                                          \
    {                                                                                              \
        _mm512_storeu_##x(p, v);                                                                   \
    }                                                                                              \
    INLINE void store_part_##T(void *p, REG v, size_t n)                                           \
    {                                                                                              \
        _mm512_mask_storeu_##x(p, (LANES)lanes(n), v);                                             \
    }                                                                                              \
    INLINE void stream_##T(void *p, REG v)                                                         \
    {                                                                                              \
        _mm512_stream_##x(p, v);                                                                   \
    }
REAL(f32, __m512, ps, __mmask16)
REAL(f64, __m512d, pd, __mmask8)
#undef REAL

INLINE __m512 sub_f32(__m512 a, __m512 b)
{
    return _mm512_sub_ps(a, b);
}
INLINE __m512 div_f32(__m512 a, __m512 b)
{
    return _mm512_div_ps(a, b);
}

INLINE __m512 finish_f32(__m512 v)
{
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_castsi512_ps(
        _mm512_mask_set1_epi32(_mm512_castps_si512(v), nan, (int)0x7fc00000));
}

/* f16: the conversion instructions round as asked and keep denormals whatever the control word. */
INLINE __m512 widen_f16(__m256i v)
{
    return _mm512_cvtph_ps(v);
}
INLINE __m256i narrow_f16(__m512 v)
{
    return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* bf16: the upper half of an f32. Rounding adds just below half of the last place, and one more if
 * that place is odd; v has no NaN but the canonical one, which this leaves alone. The lower half of
 * the result is of no meaning. */
INLINE __m512i round_bf16(__m512 v)
{
    __m512i bits = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
}
INLINE __m512 widen_bf16(__m256i v)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}
INLINE __m256i narrow_bf16(__m512 v)
{
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_bf16(v), 16));
}

#define HALF(T)                                                                                    \
    INLINE __m512 widen_load_##T(const void *p)                                                    \
    {                                                                                              \
        return widen_##T(_mm256_loadu_si256(p));                                                   \
    }                                                                                              \
    INLINE __m512 widen_load_part_##T(const void *p, size_t n)                                     \
    {                                                                                              \
        return widen_##T(_mm256_maskz_loadu_epi16((__mmask16)lanes(n), p));                        \
    }                                                                                              \
    INLINE void narrow_store_##T(void *p, __m512 v)                                                \
    {                                                                                              \
        _mm256_storeu_si256(p, narrow_##T(v));                                                     \
    }                                                                                              \
    INLINE void narrow_store_part_##T(void *p, __m512 v, size_t n)                                 \
    {                                                                                              \
        _mm256_mask_storeu_epi16(p, (__mmask16)lanes(n), narrow_##T(v));                           \
    }
HALF(f16)
HALF(bf16)

#define load_f16 widen_load_f16
#define load_part_f16 widen_load_part_f16
#define store_f16 narrow_store_f16
#define store_part_f16 narrow_store_part_f16
INLINE void stream_f16(void *p, __m512 v)
{
    _mm256_stream_si256(p, narrow_f16(v));
}

#include "compute/simd/two_f32.inc"

INLINE struct two_f32 split_bf16(__m512i v)
{
    __m512i high = _mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000));
    return (struct two_f32){_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)),
                            _mm512_castsi512_ps(high)};
}
INLINE __m512i join_bf16(struct two_f32 v)
{
    __m512i even = _mm512_srli_epi32(round_bf16(v.even), 16);
    return _mm512_mask_mov_epi16(even, 0xaaaaaaaa, round_bf16(v.odd));
}
INLINE struct two_f32 load_bf16(const void *p)
{
    return split_bf16(_mm512_loadu_si512(p));
}
INLINE struct two_f32 load_part_bf16(const void *p, size_t n)
{
    return split_bf16(_mm512_maskz_loadu_epi16((__mmask32)lanes(n), p));
}
INLINE void store_bf16(void *p, struct two_f32 v)
{
    _mm512_storeu_si512(p, join_bf16(v));
}
INLINE void store_part_bf16(void *p, struct two_f32 v, size_t n)
{
    _mm512_mask_storeu_epi16(p, (__mmask32)lanes(n), join_bf16(v));
}
INLINE void stream_bf16(void *p, struct two_f32 v)
{
    _mm512_stream_si512(p, join_bf16(v));
}

INLINE __m512d finish_f64(__m512d v)
{
    __mmask8 nan = _mm512_cmp_pd_mask(v, v, _CMP_UNORD_Q);
    return _mm512_castsi512_pd(
        _mm512_mask_set1_epi64(_mm512_castpd_si512(v), nan, INT64_C(0x7ff8000000000000)));
}

#define INTEGER(T, width, mask, max, min)                                                          \
    INLINE __m512i load_##T(const void *p)                                                         \
    {                                                                                              \
        return _mm512_loadu_si512(p);                                                              \
    }                                                                                              \
    INLINE __m512i load_part_##T(const void *p, size_t n)                                          \
    {                                                                                              \
        return _mm512_maskz_loadu_epi##width((mask)lanes(n), p);                                   \
    }                                                                                              \
    INLINE void store_##T(void *p, __m512i v)                                                      \
    {                                                                                              \
        _mm512_storeu_si512(p, v);                                                                 \
    }                                                                                              \
    INLINE void store_part_##T(void *p, __m512i v, size_t n)                                       \
    {                                                                                              \
        _mm512_mask_storeu_epi##width(p, (mask)lanes(n), v);                                       \
    }                                                                                              \
    INLINE void stream_##T(void *p, __m512i v)                                                     \
    {                                                                                              \
        _mm512_stream_si512(p, v);                                                                 \
    }                                                                                              \
    INLINE __m512i add_##T(__m512i a, __m512i b)                                                   \
    {                                                                                              \
        return _mm512_add_epi##width(a, b);                                                        \
    }                                                                                              \
    INLINE __m512i max_##T(__m512i a, __m512i b)                                                   \
    {                                                                                              \
        return max(a, b);                                                                          \
    }                                                                                              \
    INLINE __m512i min_##T(__m512i a, __m512i b)                                                   \
    {                                                                                              \
        return min(a, b);                                                                          \
    }                                                                                              \
    INLINE __m512i and_##T(__m512i a, __m512i b)                                                   \
    {                                                                                              \
        return _mm512_and_si512(a, b);                                                             \
    }                                                                                              \
    INLINE __m512i or_##T(__m512i a, __m512i b)                                                    \
    {                                                                                              \
        return _mm512_or_si512(a, b);                                                              \
    }                                                                                              \
    INLINE __m512i xor_##T(__m512i a, __m512i b)                                                   \
    {                                                                                              \
        return _mm512_xor_si512(a, b);                                                             \
    }                                                                                              \
    INLINE __m512i finish_##T(__m512i v)                                                           \
    {                                                                                              \
        return v;                                                                                  \
    }
INTEGER(i8, 8, __mmask64, _mm512_max_epi8, _mm512_min_epi8)
INTEGER(u8, 8, __mmask64, _mm512_max_epu8, _mm512_min_epu8)
INTEGER(i32, 32, __mmask16, _mm512_max_epi32, _mm512_min_epi32)
INTEGER(i64, 64, __mmask8, _mm512_max_epi64, _mm512_min_epi64)

/* There is no product of bytes: even and odd ones as 16-bit products. */
INLINE __m512i mul_u8(__m512i a, __m512i b)
{
    __m512i even = _mm512_mullo_epi16(a, b);
    __m512i odd = _mm512_mullo_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8));
    return _mm512_mask_blend_epi8(UINT64_C(0xaaaaaaaaaaaaaaaa), even, _mm512_slli_epi16(odd, 8));
}
#define mul_i8 mul_u8
INLINE __m512i mul_i32(__m512i a, __m512i b)
{
    return _mm512_mullo_epi32(a, b);
}
INLINE __m512i mul_i64(__m512i a, __m512i b)
{
    return _mm512_mullo_epi64(a, b);
}

#include "compute/simd/vector.inc"
