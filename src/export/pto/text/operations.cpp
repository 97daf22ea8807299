// SPDX-License-Identifier: Apache-2.0
// The kernel: first the operations, then every rank and block as a list of them.
#include "@NAME@.hpp"

#include <pto/pto-inst.hpp>

#include <pto/comm/pto_comm_inst.hpp>

namespace pto_@NAME@ {
namespace {

// One block of one rank in one launch.
struct Run {
    __gm__ uint64_t *windows; // where each rank's window starts
    int32_t rank;
    int64_t launch;
};

using Vec = pto::Tile<pto::TileType::Vec, Elem, 1, kTile, pto::BLayout::RowMajor, -1, -1>;
using Shape = pto::Shape<pto::DYNAMIC, pto::DYNAMIC, pto::DYNAMIC, pto::DYNAMIC, pto::DYNAMIC>;
using Stride = pto::Stride<pto::DYNAMIC, pto::DYNAMIC, pto::DYNAMIC, pto::DYNAMIC, pto::DYNAMIC>;
using Global = pto::GlobalTensor<Elem, Shape, Stride, pto::Layout::ND>;

constexpr uint32_t kFirstTile = 0; // in the unified buffer, in bytes
constexpr uint32_t kSecondTile = kTile * sizeof(Elem);

// An element of a rank's window.
AICORE inline __gm__ Elem *At(const Run &r, int32_t rank, uint64_t element)
{
    return reinterpret_cast<__gm__ Elem *>(r.windows[rank] + kData) + element;
}

// The value for this launch: values take turns.
template <typename... Values>
AICORE inline uint64_t Pick(const Run &r, Values... value)
{
    const uint64_t values[] = {static_cast<uint64_t>(value)...};
    return values[r.launch % static_cast<int64_t>(sizeof...(value))];
}

AICORE inline Global Stretch(__gm__ Elem *at, int32_t count)
{
    return Global(at, Shape(1, 1, 1, 1, count), Stride(count, count, count, count, 1));
}

// Data goes through tiles; each pipe waits for the one before it.
AICORE inline void Copy(int64_t count, __gm__ Elem *dst, __gm__ Elem *src)
{
    for (int64_t done = 0; done < count; done += kTile) {
        const int32_t n = static_cast<int32_t>(count - done < kTile ? count - done : kTile);
        Vec tile(1, n);
        pto::TASSIGN(tile, kFirstTile);
        Global from = Stretch(src + done, n);
        Global to = Stretch(dst + done, n);
        pto::TLOAD(tile, from);
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        pto::TSTORE(to, tile);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
}

struct Add {
    AICORE static inline void Do(Vec &dst, Vec &a, Vec &b) { pto::TADD(dst, a, b); }
};
struct Mul {
    AICORE static inline void Do(Vec &dst, Vec &a, Vec &b) { pto::TMUL(dst, a, b); }
};
struct Max {
    AICORE static inline void Do(Vec &dst, Vec &a, Vec &b) { pto::TMAX(dst, a, b); }
};
struct Min {
    AICORE static inline void Do(Vec &dst, Vec &a, Vec &b) { pto::TMIN(dst, a, b); }
};

// The first source is loaded, the others are combined with it in their order; stored once.
template <typename Fn, typename... Sources>
AICORE inline void Combine(int64_t count, __gm__ Elem *dst, __gm__ Elem *first, Sources... more)
{
    __gm__ Elem *const others[] = {more...};
    for (int64_t done = 0; done < count; done += kTile) {
        const int32_t n = static_cast<int32_t>(count - done < kTile ? count - done : kTile);
        Vec sum(1, n);
        Vec next(1, n);
        pto::TASSIGN(sum, kFirstTile);
        pto::TASSIGN(next, kSecondTile);
        Global from = Stretch(first + done, n);
        pto::TLOAD(sum, from);
        for (uint32_t i = 0; i < sizeof...(more); i++) {
            Global other = Stretch(others[i] + done, n);
            pto::TLOAD(next, other);
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            Fn::Do(sum, sum, next);
            set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
            wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        }
        Global to = Stretch(dst + done, n);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        pto::TSTORE(to, sum);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
}

// Cells are 32-bit counters, each in a cache line of its own. They are never reset.
AICORE inline __gm__ int32_t *Cell(const Run &r, int32_t rank, int32_t cell)
{
    return reinterpret_cast<__gm__ int32_t *>(r.windows[rank] + static_cast<uint64_t>(cell) * kLine);
}

// Everything stored before is there before the cell changes.
AICORE inline void Notify(const Run &r, int32_t rank, int32_t cell, int32_t amount)
{
    pipe_barrier(PIPE_ALL);
    pto::comm::Signal signal(Cell(r, rank, cell));
    pto::comm::TNOTIFY(signal, amount, pto::comm::NotifyOp::AtomicAdd);
}

AICORE inline void WaitFor(const Run &r, int32_t cell, int64_t value)
{
    pto::comm::Signal signal(Cell(r, r.rank, cell));
    pto::comm::TWAIT(signal, static_cast<int32_t>(value), pto::comm::WaitCmp::GE);
    pipe_barrier(PIPE_ALL);
}

// Waits for `value` in the launch that was `back` launches ago, if there was one. `total` is what each launch adds to
// the cell; several totals take turns.
template <typename... Totals>
AICORE inline void Wait(const Run &r, int32_t cell, int64_t value, int64_t back, Totals... total)
{
    const int64_t totals[] = {static_cast<int64_t>(total)...};
    const int64_t turns = static_cast<int64_t>(sizeof...(total));
    const int64_t launch = r.launch - back;
    if (launch < 0)
        return;
    int64_t before = 0;
    for (int64_t i = 0; i < turns; i++)
        before += totals[i] * (launch / turns + (i < launch % turns ? 1 : 0));
    WaitFor(r, cell, before + value);
}

// A channel: `depth` slots in the receiver's window, a cell there that counts messages, and one at the sender that counts
// slots given back.
struct Channel {
    int32_t sender, receiver;
    int32_t full; // cell of the receiver
    int32_t free; // cell of the sender
    int64_t depth;
    int64_t messages; // of a launch
    uint64_t slots;   // first element
    uint64_t slot;    // elements
};

AICORE inline int64_t Number(const Run &r, Channel c, int64_t message)
{
    return r.launch * c.messages + message;
}

AICORE inline __gm__ Elem *Slot(const Run &r, Channel c, int64_t message, uint64_t element)
{
    const uint64_t turn = static_cast<uint64_t>(Number(r, c, message) % c.depth);
    return At(r, c.receiver, c.slots + turn * c.slot + element);
}

AICORE inline void Take(const Run &r, Channel c, int64_t message)
{
    WaitFor(r, c.full, Number(r, c, message) + 1);
}

AICORE inline void Give(const Run &r, Channel c, int64_t)
{
    Notify(r, c.sender, c.free, 1);
}

AICORE inline void Send(const Run &r, Channel c, int64_t message, int64_t count, __gm__ Elem *src)
{
    const int64_t number = Number(r, c, message);
    if (number >= c.depth)
        WaitFor(r, c.free, number - c.depth + 1);
    Copy(count, Slot(r, c, message, 0), src);
    Notify(r, c.receiver, c.full, 1);
}

AICORE inline void Receive(const Run &r, Channel c, int64_t message, int64_t count, __gm__ Elem *dst)
{
    Take(r, c, message);
    Copy(count, dst, Slot(r, c, message, 0));
    Give(r, c, message);
}
