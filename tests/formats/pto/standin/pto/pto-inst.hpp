// SPDX-License-Identifier: Apache-2.0
// A stand-in for the CPU headers of pto-isa: the few intrinsics that exported kernels use, so that the tests need no other
// sources. Written from the descriptions of the instructions, not from the headers.
//
// Pipes are as lazy as permitted: a load, a sum or a store happens only when a flag or a barrier requires it. So a
// kernel that does not drain its stores before a notify gives wrong results, and so does one that reads a tile too early.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#define AICORE
#define __global__
#define __gm__

using half = _Float16;

enum pipe_t { PIPE_S, PIPE_V, PIPE_MTE2, PIPE_MTE3, PIPE_ALL };
enum event_t { EVENT_ID0, EVENT_ID1 };

namespace pto {

constexpr int DYNAMIC = -1;

namespace standin {

// The instructions that a core has accepted and not yet done, and its unified buffer. A core is a thread.
struct Core {
    std::deque<std::function<void()>> pipes[PIPE_ALL];
    std::vector<char> buffer = std::vector<char>(192 * 1024);

    void Drain(int pipe)
    {
        while (!pipes[pipe].empty()) {
            pipes[pipe].front()();
            pipes[pipe].pop_front();
        }
    }
    ~Core()
    {
        for (auto &pipe : pipes)
            assert(pipe.empty() && "a block ended without draining its pipes");
    }
};

inline Core &core()
{
    thread_local Core one;
    return one;
}

inline void Later(pipe_t pipe, std::function<void()> work)
{
    core().pipes[pipe].push_back(std::move(work));
}

} // namespace standin

template <int64_t... N>
struct Shape {
    int64_t at[5];
    Shape(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) : at{a, b, c, d, e} {}
    Shape() : at{N...} {}
};

template <int64_t... N>
struct Stride {
    int64_t at[5];
    Stride(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) : at{a, b, c, d, e} {}
    Stride() : at{N...} {}
};

enum class Layout { ND };
enum class TileType { Vec };
enum class BLayout { RowMajor };

template <typename T, typename S, typename D, Layout = Layout::ND>
struct GlobalTensor {
    using DType = T;
    T *base;
    S shape;
    D stride;
    explicit GlobalTensor(T *at, const S &s = S(), const D &d = D()) : base(at), shape(s), stride(d) {}
    T *data() const { return base; }
    int64_t Count() const { return shape.at[0] * shape.at[1] * shape.at[2] * shape.at[3] * shape.at[4]; }
};

template <TileType, typename T, int Rows, int Cols, BLayout = BLayout::RowMajor, int = -1, int = -1>
struct Tile {
    static_assert(Rows * Cols <= 1024, "tiles have at most 1,024 elements here");
    static_assert(Cols * sizeof(T) % 32 == 0, "rows of tiles are multiples of 32 bytes");
    using DType = T;
    int64_t rows, cols;
    T *base = nullptr;
    Tile(int64_t r, int64_t c) : rows(r), cols(c) { assert(r > 0 && r <= Rows && c > 0 && c <= Cols); }
};

template <typename TileData>
void TASSIGN(TileData &tile, uint64_t address)
{
    assert(address % 32 == 0 && address + 1024 * sizeof(typename TileData::DType) <= standin::core().buffer.size());
    tile.base = reinterpret_cast<typename TileData::DType *>(standin::core().buffer.data() + address);
}

template <typename TileData, typename Global>
void TLOAD(TileData &tile, Global &from)
{
    assert(from.Count() == tile.rows * tile.cols);
    standin::Later(PIPE_MTE2, [to = tile.base, at = from.data(), n = from.Count()] {
        std::memcpy(to, at, static_cast<size_t>(n) * sizeof *to);
    });
}

template <typename Global, typename TileData>
void TSTORE(Global &to, TileData &tile)
{
    assert(to.Count() == tile.rows * tile.cols);
    standin::Later(PIPE_MTE3, [from = tile.base, at = to.data(), n = to.Count()] {
        std::memcpy(at, from, static_cast<size_t>(n) * sizeof *from);
    });
}

template <typename TileData, typename Fn>
void Elementwise(TileData &dst, TileData &a, TileData &b, Fn fn)
{
    assert(dst.cols == a.cols && dst.cols == b.cols);
    standin::Later(PIPE_V, [d = dst.base, x = a.base, y = b.base, n = dst.rows * dst.cols, fn] {
        for (int64_t i = 0; i < n; i++)
            d[i] = fn(x[i], y[i]);
    });
}

template <typename T>
void TADD(T &dst, T &a, T &b)
{
    Elementwise(dst, a, b, [](auto x, auto y) { return static_cast<typename T::DType>(x + y); });
}
template <typename T>
void TMUL(T &dst, T &a, T &b)
{
    Elementwise(dst, a, b, [](auto x, auto y) { return static_cast<typename T::DType>(x * y); });
}
template <typename T>
void TMAX(T &dst, T &a, T &b)
{
    Elementwise(dst, a, b, [](auto x, auto y) { return x > y ? x : y; });
}
template <typename T>
void TMIN(T &dst, T &a, T &b)
{
    Elementwise(dst, a, b, [](auto x, auto y) { return x < y ? x : y; });
}

} // namespace pto

// Instructions that the first pipe has accepted are done before the second one goes on.
inline void set_flag(pipe_t, pipe_t, event_t) {}
inline void wait_flag(pipe_t from, pipe_t, event_t)
{
    pto::standin::core().Drain(from);
}

inline void pipe_barrier(pipe_t pipe)
{
    assert(pipe == PIPE_ALL);
    for (int p : {PIPE_MTE2, PIPE_V, PIPE_MTE3})
        pto::standin::core().Drain(p);
}
