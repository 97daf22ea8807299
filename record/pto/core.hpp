// SPDX-License-Identifier: Apache-2.0
// Elements, pipes, flags and barriers: what a core has besides tiles.
#pragma once

#include "peal/record.hpp"

#include <cstring>
#include <type_traits>

#ifndef __gm__
#define __gm__
#endif
#ifndef __ubuf__
#define __ubuf__
#endif
#ifndef __aicore__
#define __aicore__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __tf__
#define __tf__
#endif
#ifndef AICORE
#define AICORE
#endif
#ifndef PTO_INTERNAL
#define PTO_INTERNAL inline
#endif
#define PTO_INST inline

#define REC_AT int rec_line = __builtin_LINE(), const char *rec_file = __builtin_FILE()

// ---- types of elements ----

struct rec_half {
    uint16_t bits;
    rec_half() = default;
    rec_half(float v) : bits(static_cast<uint16_t>(v)) {}
    operator float() const { return bits; }
};
using half = rec_half;
using float16_t = rec_half;
struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    bfloat16_t(float v) : bits(static_cast<uint16_t>(v)) {}
    operator float() const { return bits; }
};
using bfloat16 = bfloat16_t;
using float32_t = float;

template <typename T>
constexpr uint8_t rec_type() {
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, half>) return REC_F16;
    else if constexpr (std::is_same_v<U, bfloat16_t>) return REC_BF16;
    else if constexpr (std::is_same_v<U, float>) return REC_F32;
    else if constexpr (std::is_same_v<U, double>) return REC_F64;
    else if constexpr (std::is_integral_v<U>) {
        constexpr bool s = std::is_signed_v<U>;
        return sizeof(U) == 1 ? (s ? REC_I8 : REC_U8) : sizeof(U) == 2 ? (s ? REC_I16 : REC_U16)
             : sizeof(U) == 4 ? (s ? REC_I32 : REC_U32) : (s ? REC_I64 : REC_U64);
    } else {
        static_assert(!sizeof(U), "no such type of elements can be recorded");
        return 0;
    }
}

// ---- pipes ----

// Kernels have macros of some of these names, for headers in which they are missing.
#undef PIPE_FIX
#undef SINGLE_CACHE_LINE
#undef ENTIRE_DATA_CACHE
#undef CACHELINE_OUT
enum pipe_t {
    PIPE_S = REC_PIPE_S,
    PIPE_V = REC_PIPE_V,
    PIPE_M = REC_PIPE_M,
    PIPE_MTE1 = REC_PIPE_MTE1,
    PIPE_MTE2 = REC_PIPE_MTE2,
    PIPE_MTE3 = REC_PIPE_MTE3,
    PIPE_FIX = REC_PIPE_FIX,
    PIPE_ALL = REC_PIPE_ALL
};
#define PIPE_FIX PIPE_FIX
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum mem_dsb_t { DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ };
enum class cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class dcci_dst_t { CACHELINE_OUT, CACHELINE_UB, CACHELINE_ALL, CACHELINE_ATOMIC };
constexpr cache_line_t SINGLE_CACHE_LINE = cache_line_t::SINGLE_CACHE_LINE;
constexpr cache_line_t ENTIRE_DATA_CACHE = cache_line_t::ENTIRE_DATA_CACHE;
constexpr dcci_dst_t CACHELINE_OUT = dcci_dst_t::CACHELINE_OUT;

inline rec_event rec_plain(rec_kind kind, int line, int64_t a, int64_t b, int64_t c) {
    rec_event e = {};
    e.kind = kind;
    e.line = static_cast<uint32_t>(line);
    e.a = a;
    e.b = b;
    e.c = c;
    return e;
}
inline void set_flag(pipe_t from, pipe_t to, int id, REC_AT) {
    rec_put(rec_plain(REC_FLAG_SET, rec_line, from, to, id), "set_flag", nullptr, rec_file, nullptr);
}
inline void wait_flag(pipe_t from, pipe_t to, int id, REC_AT) {
    rec_put(rec_plain(REC_FLAG_WAIT, rec_line, from, to, id), "wait_flag", nullptr, rec_file, nullptr);
}
inline void pipe_barrier(pipe_t pipe, REC_AT) {
    rec_put(rec_plain(REC_BARRIER, rec_line, pipe, 0, 0), "pipe_barrier", nullptr, rec_file, nullptr);
}
// These order memory and caches. They do not wait for pipes.
inline void dsb(mem_dsb_t) {}
template <typename T, typename L, typename... D>
inline void dcci(T *, L, D...) {}

// In brackets, because kernels have macros of these names.
inline int64_t (get_block_idx)() { return rec_block; }
inline int64_t (get_block_num)() { return rec_blocks; }
inline int64_t (get_subblockid)() { return 0; }
inline int64_t (get_subblockdim)() { return 1; }
// Modes of the vector unit change no access; a mask that leaves elements out is used by raw intrinsics only.
inline void set_mask_norm() {}
inline void set_mask_count() {}
inline void set_vector_mask(uint64_t, uint64_t) {}
// A clock. What it says is not known: that the kernel does the same whatever it says is assumed, and named.
inline int64_t get_sys_cnt(REC_AT) {
    static int64_t now = 0;
    rec_put(rec_plain(REC_CLOCK, rec_line, 0, 0, 0), "get_sys_cnt", nullptr, rec_file, nullptr);
    return ++now;
}
// Loads and stores by S that go past its cache. The kernel's own ones are seen by the compiler's calls.
template <typename T>
__attribute__((no_sanitize("thread"))) inline T ld_dev(T *from, int64_t offset = 0, REC_AT) {
    T *at = reinterpret_cast<T *>(reinterpret_cast<char *>(from) + offset);
    rec_scalar(reinterpret_cast<uint64_t>(at), sizeof(T), false, rec_line, rec_file);
    return *at;
}
template <typename V, typename T>
__attribute__((no_sanitize("thread"))) inline void st_dev(V value, T *to, int64_t offset = 0, REC_AT) {
    T *at = reinterpret_cast<T *>(reinterpret_cast<char *>(to) + offset);
    rec_scalar(reinterpret_cast<uint64_t>(at), sizeof(T), true, rec_line, rec_file);
    *at = static_cast<T>(value);
}
