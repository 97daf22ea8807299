// SPDX-License-Identifier: Apache-2.0
// An allreduce in place on the window: one barrier after staging, one before the result is put back.
// case: => proved 2,3,4,8
#include <cstdint>
#include <pto/pto-inst.hpp>
#include "pto/comm/pto_comm_inst.hpp"
#include "platform_comm/comm_context.h"
#include "tensor.h"

using namespace pto;

constexpr int COUNT = 256;
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, COUNT>, Stride<COUNT, COUNT, COUNT, COUNT, 1>>;
using RowTile = Tile<TileType::Vec, float, 1, COUNT>;

template <typename T>
static T *at_rank(CommContext *ctx, T *mine, int rank) {
    return (T *)(ctx->windowsIn[rank] + ((uint64_t)mine - ctx->windowsIn[ctx->rankId]));
}

// All notify all, and wait for all, on one row of signals.
static void meet(CommContext *ctx, int32_t *row, int nranks) {
    int me = (int)ctx->rankId;
    for (int peer = 0; peer < nranks; peer++) {
        comm::Signal there(at_rank(ctx, row + me, peer));
        if (peer != me) comm::TNOTIFY(there, 1, comm::NotifyOp::AtomicAdd);
    }
    for (int peer = 0; peer < nranks; peer++) {
        comm::Signal here(row + peer);
        if (peer != me) comm::TWAIT(here, 1, comm::WaitCmp::GE);
    }
    for (int peer = 0; peer < nranks; peer++) {
        comm::Signal here(row + peer);
        if (peer != me) comm::TNOTIFY(here, -1, comm::NotifyOp::AtomicAdd);
    }
}

extern "C" void kernel_entry(int64_t *args) {
    float *x = (float *)((ChipTensor *)args[0])->buffer.addr;
    float *y = (float *)((ChipTensor *)args[1])->buffer.addr;
    float *box = (float *)((ChipTensor *)args[2])->buffer.addr;
    int nranks = (int)args[3];
    CommContext *ctx = (CommContext *)args[4];
    int me = (int)ctx->rankId;
    int32_t *row = (int32_t *)(box + COUNT);

    RowTile sum, other;
    TASSIGN(sum, 0x0);
    TASSIGN(other, 0x1000);
    Row mine(x), slot(box), result(y);

    TLOAD(sum, mine);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    TSTORE(slot, sum);
    pipe_barrier(PIPE_ALL);
    meet(ctx, row, nranks);
    for (int step = 1; step < nranks; step++) {
        Row theirs(at_rank(ctx, box, (me + step) % nranks));
        TLOAD(other, theirs);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADD(sum, sum, other);
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    }
    pipe_barrier(PIPE_ALL);
    meet(ctx, row, nranks);
    TSTORE(slot, sum); // in place, for whoever reads it next
    TSTORE(result, sum);
    pipe_barrier(PIPE_ALL);
}
