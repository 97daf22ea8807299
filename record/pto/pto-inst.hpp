// SPDX-License-Identifier: Apache-2.0
// Tile kernels, recorded: the types and intrinsics that such kernels use, which report what they would
// do instead of doing it. Written from the published descriptions of the instructions; which pipe each
// runs on is not said here but in a table (`peal verify --pipes`).
//
// Line numbers come from default arguments, which are evaluated where the intrinsic is called.
#pragma once

#include "peal/record.hpp"

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
    explicit rec_half(float v) : bits(static_cast<uint16_t>(v)) {}
    operator float() const { return bits; }
};
using half = rec_half;
using float16_t = rec_half;
struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    explicit bfloat16_t(float v) : bits(static_cast<uint16_t>(v)) {}
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
template <typename T>
inline void dcci(T *, cache_line_t) {}
template <typename T>
inline void dcci(T *, cache_line_t, dcci_dst_t) {}

inline int64_t get_block_idx() { return rec_block; }
inline int64_t get_block_num() { return rec_blocks; }
inline int64_t get_subblockid() { return 0; }
inline int64_t get_subblockdim() { return 1; }

namespace pto {

constexpr int DYNAMIC = -1;

enum class Layout { ND, DN, NZ, SCALE, MAX };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling };
enum class PadValue { Null, Zero, Max, Min };
enum class CompactMode { Null, Normal };
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class AtomicType { AtomicNone, AtomicAdd, AtomicMax, AtomicMin };
enum class CmpMode { EQ, NE, LT, GT, GE, LE };
struct RecordEvent {};

// ---- shapes and memory ----

template <int N1 = 1, int N2 = 1, int N3 = 1, int N4 = 1, int N5 = 1>
struct Shape {
    int64_t shape[5] = {N1, N2, N3, N4, N5};
    Shape() = default;
    // Given values fill the places that are DYNAMIC, or all five.
    template <typename... A, typename = std::enable_if_t<(sizeof...(A) > 0)>>
    Shape(A... values) {
        int64_t given[] = {static_cast<int64_t>(values)...};
        constexpr int fixed[] = {N1, N2, N3, N4, N5};
        size_t next = 0;
        for (int i = 0; i < 5; i++) {
            if (sizeof...(A) == 5) shape[i] = given[i];
            else if (fixed[i] == DYNAMIC && next < sizeof...(A)) shape[i] = given[next++];
        }
    }
};
template <int N1 = 1, int N2 = 1, int N3 = 1, int N4 = 1, int N5 = 1>
struct Stride : Shape<N1, N2, N3, N4, N5> {
    using Shape<N1, N2, N3, N4, N5>::Shape;
};

template <typename T, typename S, typename D, Layout L = Layout::ND>
struct GlobalTensor {
    using DType = T;
    using RawDType = std::remove_cv_t<T>;
    using ShapeType = S;
    using StrideType = D;
    static constexpr Layout layout = L;
    T *pointer = nullptr;
    S shape_;
    D stride_;
    GlobalTensor() = default;
    GlobalTensor(T *p) : pointer(p) {}
    GlobalTensor(T *p, const S &s) : pointer(p), shape_(s) {}
    GlobalTensor(T *p, const S &s, const D &d) : pointer(p), shape_(s), stride_(d) {}
    T *data() const { return pointer; }
    void SetAddr(T *p) { pointer = p; }
    int64_t GetShape(int i) const { return shape_.shape[i]; }
    int64_t GetStride(int i) const { return stride_.shape[i]; }
};

// Tiles are rows of core memory. ColMajor tiles are recorded as their transpose.
template <TileType Space, typename T, int Rows, int Cols, BLayout B = BLayout::RowMajor, int ValidRows = Rows,
          int ValidCols = Cols, SLayout S = SLayout::NoneBox, int Fractal = 512, PadValue Pad = PadValue::Null,
          CompactMode C = CompactMode::Null>
struct Tile {
    using DType = T;
    static constexpr TileType Loc = Space;
    int64_t rows = ValidRows == DYNAMIC ? Rows : ValidRows, cols = ValidCols == DYNAMIC ? Cols : ValidCols;
    uint64_t address = 0;
    bool assigned = false;
    Tile() = default;
    Tile(int64_t r) : rows(ValidRows == DYNAMIC ? r : ValidRows), cols(ValidRows == DYNAMIC ? ValidCols : r) {}
    Tile(int64_t r, int64_t c) : rows(r), cols(c) {}
    void SetValidShape(int64_t r, int64_t c) {
        rows = r;
        cols = c;
    }
    int64_t GetValidRow() const { return rows; }
    int64_t GetValidCol() const { return cols; }
    static constexpr int64_t GetRow() { return Rows; }
    static constexpr int64_t GetCol() { return Cols; }
    // The part of it that is used, or with `whole` all of it.
    rec_span span(const char *op, const char *file, int line) const {
        if (!assigned) rec_refuse(op, "a tile is used before TASSIGN gave it an address", file, line);
        rec_span s = {};
        constexpr bool by_row = B == BLayout::RowMajor;
        s.address = REC_CORE_ADDRESS + static_cast<uint64_t>(Space) * REC_CORE_STRIDE + address;
        s.count = static_cast<uint64_t>(by_row ? cols : rows);
        s.rows = static_cast<uint32_t>(by_row ? rows : cols);
        s.stride = (by_row ? Cols : Rows) * sizeof(T);
        s.dtype = rec_type<T>();
        if (S != SLayout::NoneBox) { // in fractals: all of it
            s.count = uint64_t(Rows) * Cols;
            s.rows = 1;
            s.stride = 0;
        }
        return s;
    }
};
template <typename T, int Rows, int Cols, int VR = Rows, int VC = Cols>
using TileLeft = Tile<TileType::Left, T, Rows, Cols, BLayout::RowMajor, VR, VC, SLayout::RowMajor>;
template <typename T, int Rows, int Cols, int VR = Rows, int VC = Cols>
using TileRight = Tile<TileType::Right, T, Rows, Cols, BLayout::RowMajor, VR, VC, SLayout::ColMajor>;
template <typename T, int Rows, int Cols, int VR = Rows, int VC = Cols>
using TileAcc = Tile<TileType::Acc, T, Rows, Cols, BLayout::ColMajor, VR, VC, SLayout::RowMajor>;

template <typename A, typename N>
inline void TASSIGN(A &what, N address) {
    if constexpr (std::is_pointer_v<N>) {
        what.SetAddr(address);
    } else {
        what.address = static_cast<uint64_t>(address);
        what.assigned = true;
    }
}

// The rows of a tensor in memory: its two inner dimensions; outer ones must be 1, or without gaps.
template <typename G>
inline rec_span rec_memory(const G &g, const char *op, const char *file, int line) {
    rec_span s = {};
    bool dn = G::layout == Layout::DN;
    int inner = dn ? 3 : 4, outer = dn ? 4 : 3;
    s.address = reinterpret_cast<uint64_t>(g.pointer);
    s.dtype = rec_type<typename G::DType>();
    s.count = static_cast<uint64_t>(g.GetShape(inner));
    s.rows = static_cast<uint32_t>(g.GetShape(outer));
    s.stride = static_cast<uint64_t>(g.GetStride(outer)) * rec_size(s.dtype);
    if (s.count > 1 && g.GetStride(inner) != 1) {
        if (s.rows != 1) rec_refuse(op, "a tensor whose elements are not next to each other in either direction", file, line);
        s.rows = static_cast<uint32_t>(s.count);
        s.stride = static_cast<uint64_t>(g.GetStride(inner)) * rec_size(s.dtype);
        s.count = 1;
    }
    uint64_t rows = s.rows, stride = s.rows > 1 ? s.stride : s.count * rec_size(s.dtype);
    for (int d = 2; d >= 0; d--) {
        uint64_t n = static_cast<uint64_t>(g.GetShape(d)), step = static_cast<uint64_t>(g.GetStride(d)) * rec_size(s.dtype);
        if (n <= 1) continue;
        if (rows == 1) stride = step;
        else if (step != rows * stride) rec_refuse(op, "a tensor of more than two dimensions with gaps", file, line);
        rows *= n;
    }
    s.rows = static_cast<uint32_t>(rows);
    s.stride = rows > 1 ? stride : 0;
    return s;
}

inline void rec_op(rec_kind kind, const char *op, const char *function, const rec_span *spans, int ndst, int nsrc, int line,
                   const char *file) {
    rec_event e = rec_plain(kind, line, 0, 0, 0);
    e.ndst = static_cast<uint16_t>(ndst);
    e.nsrc = static_cast<uint16_t>(nsrc);
    rec_put(e, op, function, file, spans);
}

inline const char *rec_atomic(AtomicType a) {
    return a == AtomicType::AtomicAdd ? "add" : a == AtomicType::AtomicMax ? "maximum" : "minimum";
}

inline uint64_t rec_elements(const rec_span &s) { return s.constant ? 0 : s.count * s.rows; }

// dst = src; what of the two is smaller is moved.
inline void rec_move(const char *op, rec_span dst, rec_span src, AtomicType atomic, int line, const char *file) {
    rec_span spans[] = {dst, src};
    if (rec_elements(dst) != rec_elements(src)) rec_op(REC_COMPUTE, op, op, spans, 1, 1, line, file);
    else if (atomic != AtomicType::AtomicNone) rec_op(REC_ACCUMULATE, op, rec_atomic(atomic), spans, 1, 1, line, file);
    else rec_op(REC_COPY, op, nullptr, spans, 1, 1, line, file);
}

template <typename T, typename G>
inline RecordEvent TLOAD(T &dst, G &src, REC_AT) {
    rec_move("TLOAD", dst.span("TLOAD", rec_file, rec_line), rec_memory(src, "TLOAD", rec_file, rec_line),
             AtomicType::AtomicNone, rec_line, rec_file);
    return {};
}
template <AtomicType A = AtomicType::AtomicNone, typename G, typename T>
inline RecordEvent TSTORE(G &dst, T &src, REC_AT) {
    rec_move("TSTORE", rec_memory(dst, "TSTORE", rec_file, rec_line), src.span("TSTORE", rec_file, rec_line), A, rec_line,
             rec_file);
    return {};
}
template <typename T, typename G>
inline RecordEvent TPREFETCH(T &, G &) { return {}; }
inline void TSYNC() {}

// Tiles by their number of operands: destinations, sources, function (Peal's name, or the
// intrinsic's own: then nothing is known of the result).
template <typename D, typename... S>
inline RecordEvent rec_tiles(const char *op, const char *function, int line, const char *file, D &dst, S &...srcs) {
    rec_span spans[] = {dst.span(op, file, line), srcs.span(op, file, line)...};
    rec_op(REC_COMPUTE, op, function, spans, 1, sizeof...(S), line, file);
    return {};
}
#define REC_TILES_1(name, function)                                     \
    template <typename D, typename A>                                   \
    inline RecordEvent name(D &dst, A &a, REC_AT) {                     \
        return rec_tiles(#name, function, rec_line, rec_file, dst, a);  \
    }
#define REC_TILES_2(name, function)                                        \
    template <typename D, typename A, typename B>                          \
    inline RecordEvent name(D &dst, A &a, B &b, REC_AT) {                  \
        return rec_tiles(#name, function, rec_line, rec_file, dst, a, b);  \
    }
#define REC_TILES_3(name, function)                                           \
    template <typename D, typename A, typename B, typename C>                 \
    inline RecordEvent name(D &dst, A &a, B &b, C &c, REC_AT) {               \
        return rec_tiles(#name, function, rec_line, rec_file, dst, a, b, c);  \
    }
// A source and a tile of scratch, which is written too.
#define REC_TILES_TMP(name)                                                                              \
    template <typename D, typename A, typename T>                                                        \
    inline RecordEvent name(D &dst, A &a, T &tmp, REC_AT) {                                              \
        rec_span spans[] = {dst.span(#name, rec_file, rec_line), tmp.span(#name, rec_file, rec_line),    \
                            a.span(#name, rec_file, rec_line)};                                          \
        rec_op(REC_COMPUTE, #name, #name, spans, 2, 1, rec_line, rec_file);                              \
        return {};                                                                                       \
    }
// A tile and a number.
#define REC_TILE_SCALAR(name, function)                                                             \
    template <typename D, typename A>                                                               \
    inline RecordEvent name(D &dst, A &a, typename D::DType scalar, REC_AT) {                       \
        rec_span spans[] = {dst.span(#name, rec_file, rec_line), a.span(#name, rec_file, rec_line), \
                            rec_number(static_cast<double>(scalar), rec_type<typename D::DType>())}; \
        rec_op(REC_COMPUTE, #name, function, spans, 1, 2, rec_line, rec_file);                      \
        return {};                                                                                  \
    }
#include "pto/tiles.def"

template <typename D>
inline RecordEvent TEXPANDS(D &dst, typename D::DType scalar, REC_AT) {
    rec_span spans[] = {dst.span("TEXPANDS", rec_file, rec_line),
                        rec_number(static_cast<double>(scalar), rec_type<typename D::DType>())};
    rec_op(REC_COPY, "TEXPANDS", nullptr, spans, 1, 1, rec_line, rec_file);
    return {};
}
template <typename D, typename A>
inline RecordEvent TMOV(D &dst, A &a, REC_AT) {
    rec_move("TMOV", dst.span("TMOV", rec_file, rec_line), a.span("TMOV", rec_file, rec_line), AtomicType::AtomicNone,
             rec_line, rec_file);
    return {};
}
template <typename D, typename A>
inline RecordEvent TCVT(D &dst, A &a, RoundMode, REC_AT) {
    rec_move("TCVT", dst.span("TCVT", rec_file, rec_line), a.span("TCVT", rec_file, rec_line), AtomicType::AtomicNone,
             rec_line, rec_file);
    return {};
}

namespace comm {

enum class NotifyOp : uint8_t { AtomicAdd, Set };
enum class WaitCmp : uint8_t { EQ, NE, GT, GE, LT, LE };
enum class ReduceOp : uint8_t { Sum, Max, Min };

using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>, Layout::ND>;
template <typename T, typename S, typename D, Layout L = Layout::ND>
using GlobalSignal = GlobalTensor<T, S, D, L>;
template <int Rows, int Cols>
struct Signal2D : GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>, Layout::ND> {
    using Base = GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>, Layout::ND>;
    Signal2D(int32_t *p) : Base(p, {}, Stride<1, 1, 1, DYNAMIC, 1>(Cols)) {}
    Signal2D(int32_t *p, int stride) : Base(p, {}, Stride<1, 1, 1, DYNAMIC, 1>(stride)) {}
};

// One signal after the other, of a matrix of them.
template <typename G, typename F>
inline bool rec_signals(const char *op, G &g, int line, const char *file, F &&use) {
    rec_span s = rec_memory(g, op, file, line);
    bool all = true;
    for (uint32_t r = 0; r < s.rows; r++) {
        for (uint64_t c = 0; c < s.count; c++)
            all = use(rec_flat(s.address + r * s.stride + c * rec_size(s.dtype), 1, s.dtype)) && all;
    }
    return all;
}

template <typename G>
inline void TNOTIFY(G &signal, int32_t value, NotifyOp how, REC_AT) {
    rec_signals("TNOTIFY", signal, rec_line, rec_file, [&](rec_span cell) {
        rec_event e = rec_plain(REC_NOTIFY, rec_line, value, how == NotifyOp::Set, 0);
        e.ndst = 1;
        rec_put(e, "TNOTIFY", nullptr, rec_file, &cell);
        return true;
    });
}
template <typename G>
inline void TWAIT(G &signal, int32_t value, WaitCmp cmp, REC_AT) {
    rec_signals("TWAIT", signal, rec_line, rec_file, [&](rec_span cell) {
        rec_event e = rec_plain(REC_WAIT, rec_line, value, static_cast<int64_t>(cmp), 0);
        e.ndst = 1;
        rec_put(e, "TWAIT", nullptr, rec_file, &cell);
        return true;
    });
}
template <typename G>
inline bool TTEST(G &signal, int32_t value, WaitCmp cmp, REC_AT) {
    rec_span s = rec_memory(signal, "TTEST", rec_file, rec_line);
    if (rec_elements(s) != 1) rec_refuse("TTEST", "a test of several signals", rec_file, rec_line);
    rec_event e = rec_plain(REC_WAIT, rec_line, value, static_cast<int64_t>(cmp), 0);
    e.ndst = 1;
    return rec_test(e, "TTEST", rec_file, &s);
}

// Through a tile, as much at a time as it holds: a load, then a store after it, then the next load.
template <typename T>
inline void rec_through(const char *op, const char *load, const char *store, rec_span dst, rec_span src, T *tiles[], int ntiles,
                        AtomicType atomic, int line, const char *file) {
    uint64_t all = rec_elements(src), done = 0;
    bool flat = (src.rows == 1 || src.stride == src.count * rec_size(src.dtype)) &&
                (dst.rows == 1 || dst.stride == dst.count * rec_size(dst.dtype));
    rec_span room = tiles[0]->span(op, file, line);
    uint64_t most = rec_elements(room);
    if (rec_elements(dst) != all) rec_refuse(op, "source and destination have different sizes", file, line);
    if (!flat && all > most) rec_refuse(op, "a tensor with gaps that is larger than the tile", file, line);
    if (!most && all) rec_refuse(op, "a tile without room", file, line);
    if (ntiles == 2) rec_refuse(op, "the form with two tiles is not recorded yet", file, line);
    while (done < all) {
        uint64_t n = all - done < most ? all - done : most;
        rec_span from = src, to = dst, tile = rec_flat(room.address, n, room.dtype);
        if (flat) {
            from = rec_flat(src.address + done * rec_size(src.dtype), n, src.dtype);
            to = rec_flat(dst.address + done * rec_size(dst.dtype), n, dst.dtype);
        }
        rec_move(load, tile, from, AtomicType::AtomicNone, line, file);
        rec_put(rec_plain(REC_FLAG_SET, line, PIPE_MTE2, PIPE_MTE3, 100), op, nullptr, file, nullptr);
        rec_put(rec_plain(REC_FLAG_WAIT, line, PIPE_MTE2, PIPE_MTE3, 100), op, nullptr, file, nullptr);
        rec_move(store, to, tile, atomic, line, file);
        rec_put(rec_plain(REC_FLAG_SET, line, PIPE_MTE3, PIPE_MTE2, 100), op, nullptr, file, nullptr);
        rec_put(rec_plain(REC_FLAG_WAIT, line, PIPE_MTE3, PIPE_MTE2, 100), op, nullptr, file, nullptr);
        done += n;
    }
}

template <AtomicType A = AtomicType::AtomicNone, typename D, typename S, typename T>
inline RecordEvent TPUT(D &dst, S &src, T &tile, REC_AT) {
    T *tiles[] = {&tile};
    rec_through("TPUT", "TPUT.load", "TPUT.store", rec_memory(dst, "TPUT", rec_file, rec_line),
                rec_memory(src, "TPUT", rec_file, rec_line), tiles, 1, A, rec_line, rec_file);
    return {};
}
template <typename D, typename S, typename T>
inline RecordEvent TGET(D &dst, S &src, T &tile, REC_AT) {
    T *tiles[] = {&tile};
    rec_through("TGET", "TGET.load", "TGET.store", rec_memory(dst, "TGET", rec_file, rec_line),
                rec_memory(src, "TGET", rec_file, rec_line), tiles, 1, AtomicType::AtomicNone, rec_line, rec_file);
    return {};
}

} // namespace comm
} // namespace pto
