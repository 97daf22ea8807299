// SPDX-License-Identifier: Apache-2.0
// The sum over all ranks of a vector, on a tile accelerator: every rank puts its vector into its own
// window, tells the others, and adds up theirs.
//
//   peal verify sum.cpp --implements allreduce
//       --args 'in x: f32[256], out y: f32[256], window box: 2K zeroed, nranks, ctx'
#include <cstdint>
#include <pto/pto-inst.hpp>
#include "pto/comm/pto_comm_inst.hpp"
#include "platform_comm/comm_context.h"
#include "tensor.h"

using namespace pto;

constexpr int COUNT = 256;
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, COUNT>, Stride<COUNT, COUNT, COUNT, COUNT, 1>>;
using RowTile = Tile<TileType::Vec, float, 1, COUNT>;

// The same place in the window of another rank.
template <typename T>
static T *at_rank(CommContext *ctx, T *mine, int rank) {
    return (T *)(ctx->windowsIn[rank] + ((uint64_t)mine - ctx->windowsIn[ctx->rankId]));
}

extern "C" void kernel_entry(int64_t *args) {
    float *x = (float *)((ChipTensor *)args[0])->buffer.addr;
    float *y = (float *)((ChipTensor *)args[1])->buffer.addr;
    float *box = (float *)((ChipTensor *)args[2])->buffer.addr;
    int nranks = (int)args[3];
    CommContext *ctx = (CommContext *)args[4];
    int me = (int)ctx->rankId;
    int32_t *arrived = (int32_t *)(box + COUNT); // one signal per peer

    RowTile sum, other;
    TASSIGN(sum, 0x0);
    TASSIGN(other, 0x1000);
    Row mine(x), slot(box), result(y);

    TLOAD(sum, mine);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    TSTORE(slot, sum);

    for (int peer = 0; peer < nranks; peer++) {
        comm::Signal there(at_rank(ctx, arrived + me, peer));
        if (peer != me) comm::TNOTIFY(there, 1, comm::NotifyOp::AtomicAdd);
    }
    for (int peer = 0; peer < nranks; peer++) {
        comm::Signal here(arrived + peer);
        if (peer != me) comm::TWAIT(here, 1, comm::WaitCmp::GE);
    }

    for (int peer = 0; peer < nranks; peer++) {
        if (peer == me) continue;
        Row theirs(at_rank(ctx, box, peer));
        TLOAD(other, theirs);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADD(sum, sum, other);
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(result, sum);
    pipe_barrier(PIPE_ALL);
}
