// SPDX-License-Identifier: Apache-2.0
// Moves with two tiles, asynchronous moves, collectives of a root, a product of matrices: entries by name. Lines that
// end with "// sync" are left out one at a time by tests/record/run; each must then be a race.
#include <pto/pto-inst.hpp>
#include "pto/comm/pto_comm_inst.hpp"
#include "platform_comm/comm_context.h"
#include "tensor.h"

using namespace pto;

constexpr int N = 32, PART = 8;
template <int C>
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, C>, Stride<C, C, C, C, 1>>;
template <int C>
using RowTile = Tile<TileType::Vec, float, 1, C>;

struct Rank {
    float *x, *y, *box;
    int nranks, me;
    CommContext *ctx;
    Rank(int64_t *args)
        : x(memory(args[0])), y(memory(args[1])), box(memory(args[2])), nranks((int)args[3]), ctx((CommContext *)args[4]) {
        me = (int)ctx->rankId;
    }
    static float *memory(int64_t a) { return (float *)((ChipTensor *)a)->buffer.addr; }
    template <typename T>
    T *at(T *mine, int rank) const {
        return (T *)((uint64_t)mine - ctx->windowsIn[me] + ctx->windowsIn[rank]);
    }
    // Everybody tells everybody else with signal `which`, and waits for all.
    void meet(int which) const {
        int32_t *cell = (int32_t *)(box + 2 * N) + which;
        for (int p = 0; p < nranks; p++) {
            comm::Signal there(at(cell, p));
            if (p != me) comm::TNOTIFY(there, 1, comm::NotifyOp::AtomicAdd);
        }
        comm::Signal here(cell);
        comm::TWAIT(here, nranks - 1, comm::WaitCmp::GE);
    }
};

// A put and a get of four pieces through two tiles.
extern "C" void two_tiles(int64_t *args) {
    Rank k(args);
    int next = (k.me + 1) % k.nranks;
    RowTile<PART> ping, pong;
    TASSIGN(ping, 0);
    TASSIGN(pong, 0x100);
    Row<N> mine(k.x), there(k.at(k.box, next)), here(k.box), result(k.y);
    comm::TPUT(there, mine, ping, pong);
    pipe_barrier(PIPE_ALL); // sync
    k.meet(0);              // sync
    comm::TGET(result, here, ping, pong);
}

// The first tile is in use by something else.
extern "C" void two_tiles_shared(int64_t *args) {
    Rank k(args);
    RowTile<PART> ping, pong;
    TASSIGN(ping, 0);
    TASSIGN(pong, 0x100);
    TEXPANDS(ping, 0.0f);
    Row<N> mine(k.x), there(k.box);
    comm::TPUT(there, mine, ping, pong);
}

extern "C" void async(int64_t *args) {
    Rank k(args);
    int next = (k.me + 1) % k.nranks;
    RowTile<64> scratch;
    TASSIGN(scratch, 0);
    comm::AsyncSession session;
    if (!comm::BuildAsyncSession(scratch, (uint8_t *)k.box, session)) return;
    Row<N> mine(k.x), there(k.at(k.box, next)), here(k.box), result(k.y);
    auto put = comm::TPUT_ASYNC(there, mine, session);
    put.Wait(session); // sync
    k.meet(0);         // sync
    auto get = comm::TGET_ASYNC(result, here, session);
    get.Wait(session);
}

// The root adds up, then gives the sum to all.
extern "C" void reduce(int64_t *args) {
    Rank k(args);
    RowTile<PART> acc, ping, pong;
    TASSIGN(acc, 0);
    TASSIGN(ping, 0x100);
    TASSIGN(pong, 0x200);
    Row<N> slots[8], sums[8], mine(k.x), here(k.box), sum(k.box + N), result(k.y);
    for (int p = 0; p < k.nranks; p++) {
        slots[p] = Row<N>(k.at(k.box, p));
        sums[p] = Row<N>(k.at(k.box + N, p));
    }
    comm::TPUT(here, mine, ping);
    pipe_barrier(PIPE_ALL); // sync
    k.meet(0);              // sync
    if (k.me == 0) {
        comm::ParallelGroup<Row<N>> from(slots, k.nranks, 0), to(sums, k.nranks, 0);
        comm::TREDUCE(from, sum, acc, ping, pong, comm::ReduceOp::Sum);
        comm::TBROADCAST(to, sum, ping);
        pipe_barrier(PIPE_ALL); // sync
    }
    k.meet(1);              // sync
    comm::TPUT(result, sum, ping);
}
extern "C" void reduce_one_tile(int64_t *args) {
    Rank k(args);
    RowTile<N> acc, tile;
    TASSIGN(acc, 0);
    TASSIGN(tile, 0x100);
    Row<N> slots[8], mine(k.x), here(k.box), result(k.y);
    for (int p = 0; p < k.nranks; p++) slots[p] = Row<N>(k.at(k.box, p));
    comm::TPUT(here, mine, tile);
    pipe_barrier(PIPE_ALL);
    k.meet(0);
    comm::ParallelGroup<Row<N>> group(slots, k.nranks, k.me);
    comm::TREDUCE(group, result, acc, tile, comm::ReduceOp::Sum);
}

// The root gathers a part of each rank, and scatters what it has.
template <int P>
static void gather(const Rank &k) {
    using Parts = GlobalTensor<float, Shape<1, 1, 1, P, PART>, Stride<1, 1, 1, PART, 1>>;
    RowTile<PART> ping, pong;
    TASSIGN(ping, 0);
    TASSIGN(pong, 0x100);
    Row<PART> slots[P], sums[P], mine(k.x), here(k.box), back(k.box + N), result(k.y);
    for (int p = 0; p < P; p++) {
        slots[p] = Row<PART>(k.at(k.box, p));
        sums[p] = Row<PART>(k.at(k.box + N, p));
    }
    comm::TPUT(here, mine, ping);
    pipe_barrier(PIPE_ALL); // sync
    k.meet(0);              // sync
    if (k.me == 0) {
        comm::ParallelGroup<Row<PART>> from(slots, P, 0), to(sums, P, 0);
        Parts all(k.box + PART);
        comm::TGATHER(from, all, ping, pong);
        comm::TSCATTER(to, all, ping);
        pipe_barrier(PIPE_ALL); // sync
    }
    k.meet(1);              // sync
    comm::TPUT(result, back, ping);
}
extern "C" void gather_scatter(int64_t *args) {
    Rank k(args);
    if (k.nranks == 2) gather<2>(k);
    if (k.nranks == 3) gather<3>(k);
}

// A product: from memory to the matrix unit and back, each step on a pipe of its own.
extern "C" void product(int64_t *args) {
    Rank k(args);
    using Matrix = Tile<TileType::Mat, float, 4, 4, BLayout::ColMajor, 4, 4, SLayout::RowMajor>;
    using Square = GlobalTensor<float, Shape<1, 1, 1, 4, 4>, Stride<16, 16, 16, 4, 1>>;
    Matrix a, b;
    TileLeft<float, 4, 4> left;
    TileRight<float, 4, 4> right;
    TileAcc<float, 4, 4> sum;
    TASSIGN(a, 0);
    TASSIGN(b, 0x1000);
    TASSIGN(left, 0);
    TASSIGN(right, 0);
    TASSIGN(sum, 0);
    Square first(k.x), second(k.x + 16), result(k.y), again(k.y + 16);
    TLOAD(a, first);
    TLOAD(b, second);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0); // sync
    TMOV(left, a);
    TEXTRACT(right, b, 0, 0);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0); // sync
    TMATMUL(sum, left, right);
    TMATMUL_ACC<AccPhase::Final>(sum, left, right);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0); // sync
    TSTORE(result, sum);
    TSTORE<TileAcc<float, 4, 4>, Square, AtomicType::AtomicNone>(again, sum);
}
