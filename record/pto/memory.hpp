// SPDX-License-Identifier: Apache-2.0
// Tensors in memory, tiles in core memory, and what moves between them.
#pragma once

#include "pto/core.hpp"

namespace pto {

constexpr int DYNAMIC = -1;
constexpr int C0_SIZE_BYTE = 32; // a block of a fractal

enum class Layout {
    ND, DN, NZ, SCALE, MX_A_ND, MX_A_DN, MX_A_ZZ, MX_B_ND, MX_B_DN, MX_B_NN, NC1HWC0, GNC1HWC0, NCHW, NHWC, NDC1HWC0, NCDHW,
    FRACTAL_Z, FRACTAL_Z_3D, MAX
};
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

// The same for a matrix, in the order of its layout: rows, columns, or fractals of 16 rows and 32 bytes.
constexpr int rec_part_of(int64_t n, int64_t by) { return n == DYNAMIC ? DYNAMIC : static_cast<int>(n / by); }
constexpr int rec_times(int64_t n, int64_t by) { return n == DYNAMIC || by == DYNAMIC ? DYNAMIC : static_cast<int>(n * by); }
template <typename T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct TileShape2D : Shape<1, 1, 1, Rows, Cols> {
    TileShape2D() = default;
    TileShape2D(int64_t r, int64_t c) : Shape<1, 1, 1, Rows, Cols>(1, 1, 1, r, c) {}
    using Shape<1, 1, 1, Rows, Cols>::Shape;
};
template <typename T, int64_t Rows, int64_t Cols>
struct TileShape2D<T, Rows, Cols, Layout::NZ>
    : Shape<1, rec_part_of(Cols, C0_SIZE_BYTE / sizeof(T)), rec_part_of(Rows, 16), 16, C0_SIZE_BYTE / sizeof(T)> {
    static constexpr int C0 = C0_SIZE_BYTE / sizeof(T);
    using Base = Shape<1, rec_part_of(Cols, C0), rec_part_of(Rows, 16), 16, C0>;
    TileShape2D() = default;
    TileShape2D(int64_t r, int64_t c) : Base(1, c / C0, r / 16, 16, C0) {}
    using Base::Base;
};
template <typename T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct BaseShape2D : Stride<rec_times(Rows, Cols), rec_times(Rows, Cols), rec_times(Rows, Cols), L == Layout::DN ? 1 : int(Cols),
                            L == Layout::DN ? int(Rows) : 1> {
    using Base = Stride<rec_times(Rows, Cols), rec_times(Rows, Cols), rec_times(Rows, Cols), L == Layout::DN ? 1 : int(Cols),
                        L == Layout::DN ? int(Rows) : 1>;
    BaseShape2D() = default;
    BaseShape2D(int64_t r, int64_t c) : Base(r * c, r * c, r * c, L == Layout::DN ? 1 : c, L == Layout::DN ? r : 1) {}
    using Base::Base;
};
template <typename T, int64_t Rows, int64_t Cols>
struct BaseShape2D<T, Rows, Cols, Layout::NZ>
    : Stride<rec_times(Rows, Cols), rec_times(Rows, C0_SIZE_BYTE / sizeof(T)), 16 * C0_SIZE_BYTE / sizeof(T),
             C0_SIZE_BYTE / sizeof(T), 1> {
    static constexpr int C0 = C0_SIZE_BYTE / sizeof(T);
    using Base = Stride<rec_times(Rows, Cols), rec_times(Rows, C0), 16 * C0, C0, 1>;
    BaseShape2D() = default;
    BaseShape2D(int64_t r, int64_t c) : Base(r * c, r * C0, 16 * C0, C0, 1) {}
    using Base::Base;
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
    union { // kernels store in the second ones too
        int64_t rows = ValidRows == DYNAMIC ? R : ValidRows, RowMaskInternal;
    };
    union {
        int64_t cols = ValidCols == DYNAMIC ? C : ValidCols, ColMaskInternal;
    };
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
    // One element, stored by S.
    void SetValue(uint32_t i, T value, REC_AT) {
        rec_span s = span("SetValue", rec_file, rec_line);
        rec_span spans[] = {rec_flat(s.address + i * sizeof(T), 1, s.dtype), rec_number(static_cast<double>(value), s.dtype)};
        rec_event e = rec_plain(REC_WRITE, rec_line, 0, 0, 0);
        e.ndst = e.nsrc = 1;
        rec_put(e, "SetValue", nullptr, rec_file, spans);
    }
    T GetValue(uint32_t, REC_AT) const {
        rec_refuse("GetValue", "what it finds in the tile may steer the kernel, and is not known", rec_file, rec_line);
    }
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
inline RecordEvent TLOAD_IMPL(T &dst, G &src, REC_AT) { return TLOAD(dst, src, rec_line, rec_file); }
template <typename T, typename G, AtomicType A = AtomicType::AtomicNone>
inline RecordEvent TSTORE_IMPL(G &dst, T &src, REC_AT) { return rec_store<A>(dst, src, rec_line, rec_file); }
template <typename T, typename G>
inline RecordEvent TPREFETCH(T &, G &) { return {}; }

} // namespace pto
