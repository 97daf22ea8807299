// SPDX-License-Identifier: Apache-2.0
// Puts with and without atomics, polling, conversions, scalar stores, two blocks: entries by name.
// Some kernels replace what asks for the unit of a core.
static int unit_of_core;
#define get_subblockid() unit_of_core
#include <pto/pto-inst.hpp>
#include "pto/comm/pto_comm_inst.hpp"
#include "platform_comm/comm_context.h"
#include "intrinsic.h"
#include "pipe_sync.h"
#include "tensor.h"
#include <cstdlib>
#include <unistd.h>

using namespace pto;

constexpr int N = 32;
template <typename T>
using Row = GlobalTensor<T, Shape<1, 1, 1, 1, N>, Stride<N, N, N, N, 1>>;
template <typename T>
using RowTile = Tile<TileType::Vec, T, 1, N>;

template <typename T>
static T *memory(int64_t *args, int i) {
    return (T *)((ChipTensor *)args[i])->buffer.addr;
}
template <typename T>
static T *at_rank(CommContext *ctx, T *mine, int rank) {
    return (T *)(ctx->windowsIn[rank] + ((uint64_t)mine - ctx->windowsIn[ctx->rankId]));
}

// Everybody adds its vector to everybody's box, which starts as zero, then polls.
extern "C" void add_puts(int64_t *args) {
    float *x = memory<float>(args, 0), *y = memory<float>(args, 1), *box = memory<float>(args, 2);
    int nranks = (int)args[3];
    CommContext *ctx = (CommContext *)args[4];
    int32_t *count = (int32_t *)(box + N);
    RowTile<float> tile;
    TASSIGN(tile, 0);
    Row<float> mine(x), here(box), result(y);
    for (int peer = 0; peer < nranks; peer++) {
        Row<float> there(at_rank(ctx, box, peer));
        comm::TPUT<AtomicType::AtomicAdd>(there, mine, tile);
    }
    pipe_barrier(PIPE_ALL);
    for (int peer = 0; peer < nranks; peer++) {
        comm::Signal there(at_rank(ctx, count, peer));
        comm::TNOTIFY(there, 1, comm::NotifyOp::AtomicAdd);
    }
    comm::Signal done(count);
    while (!comm::TTEST(done, nranks, comm::WaitCmp::GE)) {
    }
    TLOAD(tile, here);
    pipe_barrier(PIPE_ALL);
    TSTORE(result, tile);
}

// The same without waiting: TTEST decides what is done.
extern "C" void test_steers(int64_t *args) {
    float *y = memory<float>(args, 1), *box = memory<float>(args, 2);
    RowTile<float> tile;
    TASSIGN(tile, 0);
    Row<float> here(box), result(y);
    comm::Signal done((int32_t *)(box + N));
    if (comm::TTEST(done, 1, comm::WaitCmp::GE)) TLOAD(tile, here);
    TSTORE(result, tile);
}

// A row sum is a function of which nothing is known; a conversion is known.
extern "C" void functions(int64_t *args) {
    float *x = memory<float>(args, 0), *y = memory<float>(args, 1);
    RowTile<float> a, b;
    RowTile<half> h;
    Tile<TileType::Vec, float, 8, 4> square;
    Tile<TileType::Vec, float, 8, 1, BLayout::ColMajor> column;
    Tile<TileType::Vec, float, 8, 4> scratch;
    TASSIGN(a, 0);
    TASSIGN(b, 0x200);
    TASSIGN(h, 0x400);
    TASSIGN(square, 0);
    TASSIGN(column, 0x600);
    TASSIGN(scratch, 0x800);
    Row<float> mine(x), result(y);
    TLOAD(a, mine);
    pipe_barrier(PIPE_ALL);
    TCVT(h, a, RoundMode::CAST_RINT);
    TCVT(b, h, RoundMode::CAST_RINT);
    TMULS(b, b, 2.0f);
    TROWSUM(column, square, scratch);
    pipe_barrier(PIPE_ALL);
    TSTORE(result, b);
}

// Two tiles that overlap by one element, on two pipes.
extern "C" void overlap(int64_t *args) {
    float *x = memory<float>(args, 0), *y = memory<float>(args, 1);
    RowTile<float> a, b;
    TASSIGN(a, 0);
    TASSIGN(b, (N - 1) * 4);
    Row<float> mine(x), result(y);
    TLOAD(a, mine);
    TEXPANDS(b, 0.0f);
    pipe_barrier(PIPE_ALL);
    TSTORE(result, a);
}

// Each block has half of the vector, and core memory of its own.
extern "C" void blocks(int64_t *args) {
    float *x = memory<float>(args, 0), *y = memory<float>(args, 1);
    int half = N / get_block_num(args), first = half * get_block_idx(args);
    using Part = GlobalTensor<float, Shape<1, 1, 1, 1, DYNAMIC>, Stride<1, 1, 1, 1, 1>>;
    Tile<TileType::Vec, float, 1, N, BLayout::RowMajor, 1, DYNAMIC> tile(half);
    TASSIGN(tile, 0);
    Part from(x + first, Shape<1, 1, 1, 1, DYNAMIC>(half)), to(y + first, Shape<1, 1, 1, 1, DYNAMIC>(half));
    TLOAD(tile, from);
    pipe_barrier(PIPE_ALL);
    TSTORE(to, tile);
}

// A scalar store into a neighbour's box, and a load of it there that decides something.
extern "C" void store(int64_t *args) {
    float *box = memory<float>(args, 2);
    CommContext *ctx = (CommContext *)args[4];
    int next = (int)(ctx->rankId + 1) % (int)args[3];
    at_rank(ctx, box, next)[0] = 1.0f;
    box[0] = 2.0f;
}
extern "C" void steer(int64_t *args) {
    float *x = memory<float>(args, 0), *y = memory<float>(args, 1);
    if (x[0] > 1.0f)
        y[0] = 1.0f;
    else
        y[0] = 2.0f;
}

// What it acts on is what it wrote itself: not the given contents.
extern "C" void stale(int64_t *args) {
    float *box = memory<float>(args, 2), *y = memory<float>(args, 1);
    Row<float> mine(memory<float>(args, 0)), slot(box + 1);
    RowTile<float> tile;
    TASSIGN(tile, 0);
    TLOAD(tile, mine);
    pipe_barrier(PIPE_ALL);
    TSTORE(slot, tile);
    pipe_barrier(PIPE_ALL);
    if (box[3] > 1.0f) y[0] = 1.0f;
}

// Two kernels that follow each other: the first gives the neighbour a vector, the second takes it, with
// arguments in another order.
extern "C" void give(int64_t *args) {
    float *x = memory<float>(args, 0), *box = memory<float>(args, 2);
    CommContext *ctx = (CommContext *)args[4];
    int next = (int)(ctx->rankId + 1) % (int)args[3];
    RowTile<float> tile;
    TASSIGN(tile, 0);
    Row<float> mine(x), there(at_rank(ctx, box, next));
    comm::TPUT(there, mine, tile);
    pipe_barrier(PIPE_ALL);
    comm::Signal told(at_rank(ctx, (int32_t *)(box + N), next));
    comm::TNOTIFY(told, 1, comm::NotifyOp::AtomicAdd);
}
static void take(float *box, float *y, bool waits) {
    RowTile<float> tile;
    TASSIGN(tile, 0);
    Row<float> here(box), result(y);
    comm::Signal told((int32_t *)(box + N));
    if (waits) comm::TWAIT(told, 1, comm::WaitCmp::GE);
    TLOAD(tile, here);
    pipe_barrier(PIPE_ALL);
    TSTORE(result, tile);
}
extern "C" void take_it(int64_t *args) { take(memory<float>(args, 0), memory<float>(args, 1), args[2] == 7); }
extern "C" void take_early(int64_t *args) { take(memory<float>(args, 2), memory<float>(args, 1), false); }

// S waits for the stores before it tells.
template <bool Waits>
static void synced(int64_t *args) {
    float *x = memory<float>(args, 0), *box = memory<float>(args, 2), *y = memory<float>(args, 1);
    CommContext *ctx = (CommContext *)args[4];
    int next = (int)(ctx->rankId + 1) % (int)args[3];
    RowTile<float> tile;
    TASSIGN(tile, 0);
    const half factor = 2.0f + get_subblockid();
    Row<float> mine(x), there(at_rank(ctx, box, next)), here(box), result(y);
    TLOAD(tile, mine);
    pipe_barrier(PIPE_ALL);
    TMULS(tile, tile, factor);
    pipe_barrier(PIPE_ALL);
    TSTORE(there, tile);
    if (Waits) pipe_sync();
    comm::Signal told(at_rank(ctx, (int32_t *)(box + N), next)), heard((int32_t *)(box + N));
    comm::TNOTIFY(told, 1, comm::NotifyOp::AtomicAdd);
    comm::TWAIT(heard, 1, comm::WaitCmp::GE);
    TLOAD(tile, here);
    pipe_barrier(PIPE_ALL);
    TSTORE(result, tile);
}
extern "C" void with_sync(int64_t *args) { synced<true>(args); }
extern "C" void without_sync(int64_t *args) { synced<false>(args); }

// ---- what goes wrong ----
extern "C" void crash(int64_t *args) {
    volatile int *nothing = nullptr;
    *nothing = (int)args[3];
}
extern "C" void forever(int64_t *) {
    for (volatile int i = 0;; i = i + 1) {
    }
}
extern "C" void poll(int64_t *args) {
    volatile int32_t *flag = memory<int32_t>(args, 2);
    while (*flag != 1) {
    }
}
extern "C" void outside(int64_t *args) {
    float *x = memory<float>(args, 0);
    RowTile<float> tile;
    TASSIGN(tile, 0);
    Row<float> past(x + 8);
    TLOAD(tile, past);
}
extern "C" void no_address(int64_t *args) {
    RowTile<float> tile;
    Row<float> mine(memory<float>(args, 0));
    TLOAD(tile, mine);
}
extern "C" void large_tile(int64_t *args) {
    RowTile<float> tile;
    TASSIGN(tile, 196600);
    Row<float> mine(memory<float>(args, 0));
    TLOAD(tile, mine);
}
extern "C" void large_tile_races(int64_t *args) {
    RowTile<float> tile;
    TASSIGN(tile, 196608);
    Row<float> mine(memory<float>(args, 0)), result(memory<float>(args, 1));
    TLOAD(tile, mine);
    TSTORE(result, tile);
}
extern "C" void nothing(int64_t *) { pipe_barrier(PIPE_ALL); }

// Mistakes that must end nothing but the recording.
extern "C" void forks(int64_t *) {
    for (;;)
        fork();
}
extern "C" void ends(int64_t *) {
    exit(0);
}
extern "C" void throws(int64_t *) {
    throw 1;
}
static int deeper(volatile int depth) {
    volatile char used[4096];
    used[0] = (char)depth;
    return deeper(depth + 1) + used[0];
}
extern "C" void recurses(int64_t *) {
    deeper(0);
}
