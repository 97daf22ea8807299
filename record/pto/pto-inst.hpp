// SPDX-License-Identifier: Apache-2.0
// Tile kernels, recorded: the types and intrinsics that such kernels use, which report what they would
// do instead of doing it. Written from the published descriptions of the instructions; which pipe each
// runs on is not said here but in a table (`peal verify --pipes`).
//
// Line numbers come from default arguments, which are evaluated where the intrinsic is called.
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

// In brackets, because kernels have macros of these names.
inline int64_t (get_block_idx)() { return rec_block; }
inline int64_t (get_block_num)() { return rec_blocks; }
inline int64_t (get_subblockid)() { return 0; }
inline int64_t (get_subblockdim)() { return 1; }

namespace pto {

constexpr int DYNAMIC = -1;
constexpr int C0_SIZE_BYTE = 32; // a block of a fractal

enum class Layout { ND, DN, NZ, SCALE, MAX };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling };
enum class PadValue { Null, Zero, Max, Min };
enum class CompactMode { Null, Normal, RowPlusOne, RowAlignedPadding };
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class AtomicType { AtomicNone, AtomicAdd, AtomicMax, AtomicMin };
enum class CmpMode { EQ, NE, LT, GT, GE, LE };
enum class MaskPattern { P0101 = 1, P1010, P0001, P0010, P0100, P1000, P1111 };
enum class SaturationMode { ON, OFF };
enum class AccPhase { Unspecified, Partial, Final };
enum class STPhase { Unspecified, Partial, Final };
enum class ReluPreMode { NoRelu, NormalRelu };
enum class AccToVecMode { SingleModeVec0, SingleModeVec1, DualModeSplitM, DualModeSplitN };
enum class ScatterAxis { SCATTER_ROW, SCATTER_COL };
enum class DivAlgorithm { DEFAULT, HIGH_PRECISION };
enum class ExpAlgorithm { DEFAULT, HIGH_PRECISION };
enum class LogAlgorithm { DEFAULT, HIGH_PRECISION };
enum class PowAlgorithm { DEFAULT, HIGH_PRECISION };
enum class RecipAlgorithm { DEFAULT, HIGH_PRECISION };
enum class RsqrtAlgorithm { DEFAULT, HIGH_PRECISION };
enum class SqrtAlgorithm { DEFAULT, HIGH_PRECISION };
namespace GlobalTensorDim {
constexpr int DIM_0 = 0, DIM_1 = 1, DIM_2 = 2, DIM_3 = 3, DIM_4 = 4, TOTAL_DIM = 5;
}
struct MrgSortExecutedNumList {
    uint16_t mrgSortList0, mrgSortList1, mrgSortList2, mrgSortList3;
};
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
template <TileType Space, typename T, int R, int C, BLayout B = BLayout::RowMajor, int ValidRows = R, int ValidCols = C,
          SLayout S = SLayout::NoneBox, int Fractal = 512, PadValue Pad = PadValue::Null,
          CompactMode Compact = CompactMode::Null>
struct Tile {
    using DType = T;
    using rec_tile = void;
    static constexpr TileType Loc = Space;
    static constexpr int Rows = R, Cols = C, ValidRow = ValidRows, ValidCol = ValidCols, Numel = R * C;
    static constexpr bool isRowMajor = B == BLayout::RowMajor;
    static constexpr int RowStride = isRowMajor ? C : 1, ColStride = isRowMajor ? 1 : R;
    static constexpr BLayout BFractal = B;
    static constexpr SLayout SFractal = S;
    int64_t rows = ValidRows == DYNAMIC ? R : ValidRows, cols = ValidCols == DYNAMIC ? C : ValidCols;
    uint64_t address = 0;
    bool assigned = false;
    Tile() = default;
    Tile(int64_t r) : rows(ValidRows == DYNAMIC ? r : ValidRows), cols(ValidRows == DYNAMIC ? ValidCols : r) {}
    Tile(int64_t r, int64_t c) : rows(r), cols(c) {}
    void SetValidShape(int64_t r, int64_t c) {
        rows = r;
        cols = c;
    }
    T *data() const { return reinterpret_cast<T *>(address); }
    int64_t GetValidRow() const { return rows; }
    int64_t GetValidCol() const { return cols; }
    static constexpr int64_t GetRow() { return R; }
    static constexpr int64_t GetCol() { return C; }
    // The part of it that is used.
    rec_span span(const char *op, const char *file, int line) const {
        if (!assigned) rec_refuse(op, "a tile is used before TASSIGN gave it an address", file, line);
        return used();
    }
    rec_span used() const {
        rec_span s = {};
        constexpr bool by_row = B == BLayout::RowMajor;
        s.address = REC_CORE_ADDRESS + static_cast<uint64_t>(Space) * REC_CORE_STRIDE + address;
        s.count = static_cast<uint64_t>(by_row ? cols : rows);
        s.rows = static_cast<uint32_t>(by_row ? rows : cols);
        s.stride = (by_row ? C : R) * sizeof(T);
        s.dtype = rec_type<T>();
        if (S != SLayout::NoneBox) { // in fractals: all of it
            s.count = uint64_t(R) * C;
            s.rows = 1;
            s.stride = 0;
        }
        return s;
    }
};
template <typename T, int R, int C, int VR = R, int VC = C>
using TileLeft = Tile<TileType::Left, T, R, C, BLayout::RowMajor, VR, VC, SLayout::RowMajor>;
template <typename T, int R, int C, int VR = R, int VC = C>
using TileRight = Tile<TileType::Right, T, R, C, BLayout::RowMajor, VR, VC, SLayout::ColMajor>;
template <typename T, int R, int C, int VR = R, int VC = C>
using TileAcc = Tile<TileType::Acc, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor>;

template <typename T>
struct rec_is_memory : std::false_type {};
template <typename T, typename S, typename D, Layout L>
struct rec_is_memory<GlobalTensor<T, S, D, L>> : std::true_type {};
template <uint64_t Address, typename A>
inline void TASSIGN(A &what) {
    what.address = Address;
    what.assigned = true;
}
template <typename A, typename N>
inline void TASSIGN(A &what, N address) {
    if constexpr (rec_is_memory<A>::value) {
        what.SetAddr(address);
    } else {
        what.address = (uint64_t)address;
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

// dst = src, element by element if they are in the same order.
inline void rec_move(const char *op, rec_span dst, rec_span src, AtomicType atomic, bool in_order, int line, const char *file) {
    rec_span spans[] = {dst, src};
    if (!in_order || rec_elements(dst) != rec_elements(src)) rec_op(REC_COMPUTE, op, op, spans, 1, 1, line, file);
    else if (atomic != AtomicType::AtomicNone) rec_op(REC_ACCUMULATE, op, rec_atomic(atomic), spans, 1, 1, line, file);
    else rec_op(REC_COPY, op, nullptr, spans, 1, 1, line, file);
}

// Are the elements of the tile in the order of those in memory? Otherwise only what is read and written is known.
template <typename T, typename G>
inline bool rec_in_order(const T &tile) {
    bool rows = T::BFractal == BLayout::RowMajor && G::layout == Layout::ND;
    bool columns = T::BFractal == BLayout::ColMajor && G::layout == Layout::DN;
    return T::SFractal == SLayout::NoneBox && (rows || columns || tile.rows == 1 || tile.cols == 1);
}
template <typename T, typename G>
inline RecordEvent TLOAD(T &dst, G &src, REC_AT) {
    rec_move("TLOAD", dst.span("TLOAD", rec_file, rec_line), rec_memory(src, "TLOAD", rec_file, rec_line),
             AtomicType::AtomicNone, rec_in_order<T, G>(dst), rec_line, rec_file);
    return {};
}
template <AtomicType A, typename G, typename T>
inline RecordEvent rec_store(G &dst, T &src, int line, const char *file) {
    rec_move("TSTORE", rec_memory(dst, "TSTORE", file, line), src.span("TSTORE", file, line), A, rec_in_order<T, G>(src), line,
             file);
    return {};
}
// The type of a tile comes first in the template arguments, those of memory second.
template <AtomicType A = AtomicType::AtomicNone, typename G, typename T>
inline RecordEvent TSTORE(G &dst, T &src, REC_AT) { return rec_store<A>(dst, src, rec_line, rec_file); }
template <typename T, typename G, AtomicType A = AtomicType::AtomicNone>
inline RecordEvent TSTORE(std::common_type_t<G> &dst, std::common_type_t<T> &src, REC_AT) {
    return rec_store<A>(dst, src, rec_line, rec_file);
}
template <typename T, typename G>
inline RecordEvent TPREFETCH(T &, G &) { return {}; }
inline void TSYNC() {}

// An operand of an intrinsic, of whatever type, and where the intrinsic is called.
struct rec_operand {
    enum { NOTHING, TILE, NUMBER, OTHER } kind = NOTHING;
    rec_span span = {};
    bool assigned = true;
    int order = 0; // of its elements: two tiles whose orders differ are not copied element by element
    int line = 0;
    const char *file = nullptr;

    rec_operand() = default;
    rec_operand(const RecordEvent &) {}
    template <typename T>
    rec_operand(T &&what, REC_AT) : line(rec_line), file(rec_file) { take(what); }

private:
    template <typename T, typename = typename T::rec_tile>
    void take_tile(const T &tile, int) {
        kind = TILE;
        span = tile.used();
        assigned = tile.assigned;
        bool flat = T::SFractal == SLayout::NoneBox && (tile.rows == 1 || tile.cols == 1);
        order = flat ? 0 : 1 + static_cast<int>(T::BFractal) + 2 * static_cast<int>(T::SFractal);
    }
    template <typename T>
    void take_tile(const T &, long) { kind = OTHER; }
    template <typename T>
    void take(const T &what) {
        using U = std::decay_t<T>;
        if constexpr (std::is_arithmetic_v<U> || std::is_same_v<U, half> || std::is_same_v<U, bfloat16_t>) {
            kind = NUMBER;
            if constexpr (std::is_arithmetic_v<U>) span = rec_number(static_cast<double>(what), REC_F32);
            else span = rec_number(static_cast<float>(what), REC_F32);
        } else if constexpr (std::is_pointer_v<U> && std::is_class_v<std::remove_pointer_t<U>>) {
            if (what) take_tile(*what, 0);
            else kind = OTHER;
        } else if constexpr (std::is_class_v<U>) {
            take_tile(what, 0);
        } else {
            kind = OTHER;
        }
    }
};

// Do the operands have these roles? Up to '|', see tiles.def.
inline bool rec_fits(const char *roles, const rec_operand *const *given, int n) {
    for (int i = 0; i < n; i++, roles++) {
        if (!*roles || *roles == '|') return false;
        auto wanted = *roles == 'n' ? rec_operand::NUMBER : *roles == '-' ? rec_operand::OTHER : rec_operand::TILE;
        if (given[i]->kind != wanted && !(*roles == '-' && given[i]->kind == rec_operand::NUMBER)) return false;
    }
    return !*roles || *roles == '|';
}

// One intrinsic: `rows` are the roles of its operands in each of its forms.
inline RecordEvent rec_row(const char *op, const char *rows, const char *function, const rec_operand *const *given, int n) {
    rec_span spans[16];
    int ndst = 0, nsrc = 0, line = given[0]->line;
    const char *file = given[0]->file;
    while (n > 0 && given[n - 1]->kind == rec_operand::NOTHING) n--;
    while (!rec_fits(rows, given, n)) {
        while (*rows && *rows != '|') rows++;
        if (!*rows) rec_refuse(op, "this form of it is not recorded: its operands are not those of its row", file, line);
        rows++;
    }
    bool known = true; // of one type and size, as Peal's functions are
    int order = given[0]->order;
    for (int pass = 0; pass < 2; pass++) {
        const char *wanted = pass == 0 ? "wta" : "ran";
        for (int i = 0; i < n; i++) {
            if (!rows[i] || !std::strchr(wanted, rows[i])) continue;
            if (!given[i]->assigned) rec_refuse(op, "a tile is used before TASSIGN gave it an address", file, line);
            rec_span &s = spans[ndst + nsrc];
            s = given[i]->span;
            if (s.constant) s.dtype = spans[0].dtype;
            else if (given[i]->order != order || s.count * s.rows != spans[0].count * spans[0].rows) known = false;
            ++(pass == 0 ? ndst : nsrc);
        }
    }
    bool copies = std::strcmp(function, "=") == 0;
    for (int i = 1; i < ndst + nsrc && !copies; i++) known = known && spans[i].dtype == spans[0].dtype;
    if (ndst == 1 && known && copies && nsrc == 1) rec_op(REC_COPY, op, nullptr, spans, 1, 1, line, file);
    else rec_op(REC_COMPUTE, op, ndst == 1 && known && !copies ? function : op, spans, ndst, nsrc, line, file);
    return {};
}
#define REC_OPERANDS                                                                                                     \
    rec_operand a, rec_operand b = {}, rec_operand c = {}, rec_operand d = {}, rec_operand e = {}, rec_operand f = {},   \
        rec_operand g = {}, rec_operand h = {}
#define REC_FORM(name, rows, function)                                          \
    inline RecordEvent name(REC_OPERANDS) {                                     \
        const rec_operand *given[] = {&a, &b, &c, &d, &e, &f, &g, &h};          \
        return rec_row(#name, rows, function, given, 8);                        \
    }
// Template arguments that kernels give say types, which the operands have, and modes, which change no access.
#define REC_TILE_OP(name, rows, function)                                                                        \
    template <auto... M> REC_FORM(name, rows, function)                                                          \
    template <typename T, auto... M> REC_FORM(name, rows, function)                                              \
    template <typename T, typename U, auto... M> REC_FORM(name, rows, function)                                  \
    template <typename T, typename U, typename V, auto... M> REC_FORM(name, rows, function)                      \
    template <typename T, typename U, typename V, typename W, typename... X> REC_FORM(name, rows, function)
#include "pto/tiles.def"
#include "pto/extra.def"

// Another name of the same memory: nothing is moved.
template <typename D, typename S>
inline RecordEvent TRESHAPE(D &dst, S &src) {
    dst.address = src.address;
    dst.assigned = src.assigned;
    return {};
}
template <typename D, typename S>
inline RecordEvent TSUBVIEW(D &dst, S &src, int row, int col) {
    dst.address = src.address + (row * S::RowStride + col * S::ColStride) * sizeof(typename S::DType);
    dst.assigned = src.assigned;
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

// ---- moves between memory through tiles: what the intrinsics are made of, flags included ----

// Pieces of tensors of one shape, as large as a tile.
struct rec_pieces {
    uint64_t all, room, done = 0;
    bool flat = true;
    rec_pieces(const char *op, rec_span shape, rec_span tile, int line, const char *file)
        : all(rec_elements(shape)), room(rec_elements(tile)) {
        if (!room && all) rec_refuse(op, "a tile without room", file, line);
    }
    void add(const char *op, rec_span s, int line, const char *file) {
        if (rec_elements(s) != all) rec_refuse(op, "source and destination have different sizes", file, line);
        flat = flat && (s.rows == 1 || s.stride == s.count * rec_size(s.dtype));
        if (!flat && all > room) rec_refuse(op, "a tensor with gaps that is larger than the tile", file, line);
    }
    uint64_t now() const { return all - done < room ? all - done : room; }
    rec_span of(rec_span s) const {
        return flat ? rec_flat(s.address + done * rec_size(s.dtype), now(), s.dtype) : s;
    }
    rec_span in(rec_span tile) const { return rec_flat(tile.address, now(), tile.dtype); }
    bool next() { return (done += now()) < all; }
};

struct rec_site {
    const char *op, *load, *store, *file;
    int line;
    void set(pipe_t from, pipe_t to, int id) const {
        rec_put(rec_plain(REC_FLAG_SET, line, from, to, 100 + id), op, nullptr, file, nullptr);
    }
    void wait(pipe_t from, pipe_t to, int id) const {
        rec_put(rec_plain(REC_FLAG_WAIT, line, from, to, 100 + id), op, nullptr, file, nullptr);
    }
    void order(pipe_t from, pipe_t to, int id) const {
        set(from, to, id);
        wait(from, to, id);
    }
    void drain() const { rec_put(rec_plain(REC_BARRIER, line, PIPE_ALL, 0, 0), op, nullptr, file, nullptr); }
    void move(const char *name, rec_span dst, rec_span src, AtomicType atomic = AtomicType::AtomicNone) const {
        rec_move(name, dst, src, atomic, true, line, file);
    }
};
#define REC_SITE(name) rec_site{name, name ".load", name ".store", rec_file, rec_line}

// With one tile: a load, a store after it, then the next load. With two, a store and the next load at the same time.
inline void rec_through(const rec_site &at, rec_span dst, rec_span src, const rec_span *tiles, int ntiles, AtomicType atomic) {
    rec_pieces pieces(at.op, src, tiles[0], at.line, at.file);
    pieces.add(at.op, src, at.line, at.file);
    pieces.add(at.op, dst, at.line, at.file);
    if (!pieces.all) return;
    if (ntiles == 1 || pieces.all <= pieces.room) {
        do {
            at.move(at.load, pieces.in(tiles[0]), pieces.of(src));
            at.order(PIPE_MTE2, PIPE_MTE3, 0);
            at.move(at.store, pieces.of(dst), pieces.in(tiles[0]), atomic);
            at.order(PIPE_MTE3, PIPE_MTE2, 0);
        } while (pieces.next());
        return;
    }
    int now = 0;
    rec_span held = pieces.in(tiles[0]), goal = pieces.of(dst);
    at.move(at.load, held, pieces.of(src));
    at.set(PIPE_MTE2, PIPE_MTE3, 0);
    while (pieces.next()) {
        at.wait(PIPE_MTE2, PIPE_MTE3, now);
        at.drain();
        at.move(at.store, goal, held, atomic);
        held = pieces.in(tiles[1 - now]);
        goal = pieces.of(dst);
        at.move(at.load, held, pieces.of(src));
        at.set(PIPE_MTE3, PIPE_MTE2, now);
        at.set(PIPE_MTE2, PIPE_MTE3, 1 - now);
        at.wait(PIPE_MTE3, PIPE_MTE2, now);
        now = 1 - now;
    }
    at.wait(PIPE_MTE2, PIPE_MTE3, now);
    at.drain();
    at.move(at.store, goal, held, atomic);
    at.order(PIPE_MTE3, PIPE_MTE2, now);
}

template <typename D, typename S, typename T>
inline RecordEvent rec_transfer(const rec_site &at, D &dst, S &src, T &tile, T *second, AtomicType atomic) {
    rec_span tiles[2] = {tile.span(at.op, at.file, at.line)};
    if (second) tiles[1] = second->span(at.op, at.file, at.line);
    rec_through(at, rec_memory(dst, at.op, at.file, at.line), rec_memory(src, at.op, at.file, at.line), tiles, second ? 2 : 1,
                atomic);
    return {};
}
template <AtomicType A = AtomicType::AtomicNone, typename D, typename S, typename T>
inline RecordEvent TPUT(D &dst, S &src, T &tile, REC_AT) {
    return rec_transfer(REC_SITE("TPUT"), dst, src, tile, static_cast<T *>(nullptr), A);
}
template <AtomicType A = AtomicType::AtomicNone, typename D, typename S, typename T>
inline RecordEvent TPUT(D &dst, S &src, T &ping, T &pong, REC_AT) {
    return rec_transfer(REC_SITE("TPUT"), dst, src, ping, &pong, A);
}
// The same with the atomic operation as a value.
template <typename D, typename S, typename T>
inline RecordEvent TPUT(D &dst, S &src, T &tile, AtomicType atomic, REC_AT) {
    return rec_transfer(REC_SITE("TPUT"), dst, src, tile, static_cast<T *>(nullptr), atomic);
}
template <typename D, typename S, typename T>
inline RecordEvent TGET(D &dst, S &src, T &tile, REC_AT) {
    return rec_transfer(REC_SITE("TGET"), dst, src, tile, static_cast<T *>(nullptr), AtomicType::AtomicNone);
}
template <typename D, typename S, typename T>
inline RecordEvent TGET(D &dst, S &src, T &ping, T &pong, REC_AT) {
    return rec_transfer(REC_SITE("TGET"), dst, src, ping, &pong, AtomicType::AtomicNone);
}

// ---- collectives: done by the root alone, with the tensors of all ranks ----

template <typename G>
struct ParallelGroup {
    using value_type = G;
    G *tensors = nullptr;
    int nranks = 0, rootIdx = -1;
    ParallelGroup() = default;
    ParallelGroup(G *all, int size, int root) : tensors(all), nranks(size), rootIdx(root) {}
    static ParallelGroup Create(G *all, int size, int root) { return ParallelGroup(all, size, root); }
    int GetRootIdx() const { return rootIdx; }
    int GetSize() const { return nranks; }
    bool empty() const { return nranks == 0; }
    G &operator[](int rank) const { return tensors[rank]; }
};

// The part of the whole that is rank's: they follow each other in the fourth dimension.
template <typename W, typename P>
inline rec_span rec_part(W &whole, P &part, int rank, const rec_site &at) {
    rec_span s = rec_memory(part, at.op, at.file, at.line);
    s.address = reinterpret_cast<uint64_t>(whole.pointer) +
                static_cast<uint64_t>(rank) * part.GetShape(3) * whole.GetStride(3) * rec_size(s.dtype);
    if (s.rows > 1) s.stride = static_cast<uint64_t>(whole.GetStride(3)) * rec_size(s.dtype);
    return s;
}
template <typename P, typename G, typename T>
inline RecordEvent rec_gather(const rec_site &at, P &group, G &whole, T &tile, T *second, bool scatters) {
    rec_span tiles[2] = {tile.span(at.op, at.file, at.line)};
    if (second) tiles[1] = second->span(at.op, at.file, at.line);
    for (int r = 0; r < group.GetSize(); r++) {
        rec_span theirs = rec_memory(group[r], at.op, at.file, at.line), part = rec_part(whole, group[r], r, at);
        rec_through(at, scatters ? theirs : part, scatters ? part : theirs, tiles, second ? 2 : 1, AtomicType::AtomicNone);
    }
    return {};
}
template <typename P, typename G, typename T>
inline RecordEvent TGATHER(P &group, G &whole, T &tile, REC_AT) {
    return rec_gather(REC_SITE("TGATHER"), group, whole, tile, static_cast<T *>(nullptr), false);
}
template <typename P, typename G, typename T>
inline RecordEvent TGATHER(P &group, G &whole, T &ping, T &pong, REC_AT) {
    return rec_gather(REC_SITE("TGATHER"), group, whole, ping, &pong, false);
}
template <typename P, typename G, typename T>
inline RecordEvent TSCATTER(P &group, G &whole, T &tile, REC_AT) {
    return rec_gather(REC_SITE("TSCATTER"), group, whole, tile, static_cast<T *>(nullptr), true);
}
template <typename P, typename G, typename T>
inline RecordEvent TSCATTER(P &group, G &whole, T &ping, T &pong, REC_AT) {
    return rec_gather(REC_SITE("TSCATTER"), group, whole, ping, &pong, true);
}

// A load, then a store to every rank. The form with two tiles is recorded as one after the other, in its two tiles.
template <typename P, typename G, typename T>
inline RecordEvent rec_broadcast(const rec_site &at, P &group, G &whole, T &tile, T *second) {
    rec_span src = rec_memory(whole, at.op, at.file, at.line);
    rec_span tiles[] = {tile.span(at.op, at.file, at.line), (second ? *second : tile).span(at.op, at.file, at.line)};
    rec_pieces pieces(at.op, src, tiles[0], at.line, at.file);
    for (int r = 0; r < group.GetSize(); r++) pieces.add(at.op, rec_memory(group[r], at.op, at.file, at.line), at.line, at.file);
    pieces.add(at.op, src, at.line, at.file);
    int now = 0;
    if (!pieces.all) return {};
    do {
        at.move(at.load, pieces.in(tiles[now]), pieces.of(src));
        at.order(PIPE_MTE2, PIPE_MTE3, now);
        for (int r = 0; r < group.GetSize(); r++)
            at.move(at.store, pieces.of(rec_memory(group[r], at.op, at.file, at.line)), pieces.in(tiles[now]));
        at.order(PIPE_MTE3, PIPE_MTE2, now);
        now = 1 - now;
    } while (pieces.next());
    return {};
}
template <typename P, typename G, typename T>
inline RecordEvent TBROADCAST(P &group, G &src, T &tile, REC_AT) {
    return rec_broadcast(REC_SITE("TBROADCAST"), group, src, tile, static_cast<T *>(nullptr));
}
template <typename P, typename G, typename T>
inline RecordEvent TBROADCAST(P &group, G &src, T &ping, T &pong, REC_AT) {
    return rec_broadcast(REC_SITE("TBROADCAST"), group, src, ping, &pong);
}

// The root's own, then that of each other rank in turn; with two tiles, the next is loaded while one is added.
template <typename P, typename G, typename T>
inline RecordEvent rec_reduce(const rec_site &at, P &group, G &whole, T &acc, T &one, T &two, ReduceOp op) {
    static const char *const functions[] = {"add", "maximum", "minimum"};
    rec_span dst = rec_memory(whole, at.op, at.file, at.line), sum = acc.span(at.op, at.file, at.line);
    rec_span tiles[] = {one.span(at.op, at.file, at.line), two.span(at.op, at.file, at.line)};
    bool ahead = tiles[0].address != tiles[1].address;
    int root = group.GetRootIdx(), others = group.GetSize() - 1;
    auto other = [&](int i) { return rec_memory(group[i < root ? i : i + 1], at.op, at.file, at.line); };
    rec_pieces pieces(at.op, dst, sum, at.line, at.file);
    pieces.add(at.op, dst, at.line, at.file);
    for (int r = 0; r <= others; r++) pieces.add(at.op, rec_memory(group[r], at.op, at.file, at.line), at.line, at.file);
    if (!pieces.all) return {};
    do {
        at.move(at.load, pieces.in(sum), pieces.of(rec_memory(group[root], at.op, at.file, at.line)));
        at.order(PIPE_MTE2, others ? PIPE_V : PIPE_MTE3, 0);
        for (int i = 0, loaded = 0; i < others; i++) {
            for (; loaded < others && loaded <= i + ahead; loaded++) {
                at.move(at.load, pieces.in(tiles[loaded % 2]), pieces.of(other(loaded)));
                at.set(PIPE_MTE2, PIPE_V, 1 + loaded % 2);
            }
            at.wait(PIPE_MTE2, PIPE_V, 1 + i % 2);
            rec_span spans[] = {pieces.in(sum), pieces.in(sum), pieces.in(tiles[i % 2])};
            rec_op(REC_COMPUTE, "TREDUCE", functions[static_cast<int>(op)], spans, 1, 2, at.line, at.file);
            at.order(PIPE_V, PIPE_MTE2, 0);
        }
        if (others) at.order(PIPE_V, PIPE_MTE3, 0);
        at.move(at.store, pieces.of(dst), pieces.in(sum));
        at.order(PIPE_MTE3, PIPE_MTE2, 0);
    } while (pieces.next());
    return {};
}
template <typename P, typename G, typename T>
inline RecordEvent TREDUCE(P &group, G &dst, T &acc, T &tile, ReduceOp op, REC_AT) {
    return rec_reduce(REC_SITE("TREDUCE"), group, dst, acc, tile, tile, op);
}
template <typename P, typename G, typename T>
inline RecordEvent TREDUCE(P &group, G &dst, T &acc, T &ping, T &pong, ReduceOp op, REC_AT) {
    return rec_reduce(REC_SITE("TREDUCE"), group, dst, acc, ping, pong, op);
}

// ---- asynchronous moves: by an engine that no barrier of pipes waits for ----

enum class DmaEngine : uint8_t { SDMA, URMA, RDMA };
namespace sdma {
struct SdmaBaseConfig {
    uint64_t block_bytes, comm_block_offset;
    uint32_t queue_num;
};
constexpr uint32_t UB_ALIGN_SIZE = 256, kUbAlignSize = 256, kAutoChannelGroupIdx = UINT32_MAX;
constexpr uint64_t kDefaultSdmaBlockBytes = 1 << 20;
} // namespace sdma
struct AsyncSession {
    DmaEngine engine = DmaEngine::SDMA;
    bool valid = false;
};
struct AsyncEvent {
    uint64_t handle = 0;
    DmaEngine engine = DmaEngine::SDMA;
    AsyncEvent() = default;
    AsyncEvent(uint64_t h, DmaEngine e) : handle(h), engine(e) {}
    bool valid() const { return handle != 0; }
    // S waits for all that the engine was given up to now, this move among it.
    bool Wait(const AsyncSession &, REC_AT) const {
        if (handle) rec_put(rec_plain(REC_BARRIER, rec_line, REC_PIPE_DMA, 0, 0), "AsyncEvent", nullptr, rec_file, nullptr);
        return true;
    }
    bool Test(const AsyncSession &, REC_AT) const {
        rec_refuse("AsyncEvent::Test", "its answer steers the kernel; Wait can be recorded", rec_file, rec_line);
    }
};
template <DmaEngine E = DmaEngine::SDMA, typename... A>
inline bool BuildAsyncSession(A &&...args) {
    auto open = [](auto &arg) {
        if constexpr (std::is_same_v<std::decay_t<decltype(arg)>, AsyncSession>) arg.engine = E, arg.valid = true;
    };
    (open(args), ...);
    return true;
}
template <typename D, typename S>
inline AsyncEvent rec_async(const rec_site &at, D &dst, S &src, DmaEngine engine) {
    at.move(at.op, rec_memory(dst, at.op, at.file, at.line), rec_memory(src, at.op, at.file, at.line));
    return AsyncEvent(1, engine);
}
template <DmaEngine E = DmaEngine::SDMA, typename D, typename S>
inline AsyncEvent TPUT_ASYNC(D &dst, S &src, const AsyncSession &, REC_AT) { return rec_async(REC_SITE("TPUT_ASYNC"), dst, src, E); }
template <DmaEngine E = DmaEngine::SDMA, typename D, typename S>
inline AsyncEvent TGET_ASYNC(D &dst, S &src, const AsyncSession &, REC_AT) { return rec_async(REC_SITE("TGET_ASYNC"), dst, src, E); }

} // namespace comm
} // namespace pto
