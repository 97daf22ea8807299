// SPDX-License-Identifier: Apache-2.0
// A sum over all ranks in two rounds of one slot, so that every kind of synchronisation has a reason.
// tests/record/run leaves out each line that ends with "// sync", one at a time.
#include <pto/pto-inst.hpp>
#include "pto/comm/pto_comm_inst.hpp"
#include "platform_comm/comm_context.h"
#include "tensor.h"

using namespace pto;

constexpr int HALF = 64;
using Row = GlobalTensor<float, Shape<1, 1, 1, 1, HALF>, Stride<HALF, HALF, HALF, HALF, 1>>;
using RowTile = Tile<TileType::Vec, float, 1, HALF>;

static int32_t *at_rank(CommContext *ctx, int32_t *mine, int rank) {
    return (int32_t *)(ctx->windowsIn[rank] + ((uint64_t)mine - ctx->windowsIn[ctx->rankId]));
}

static void tell_all(CommContext *ctx, int32_t *signals, int nranks) {
    for (int peer = 0; peer < nranks; peer++) {
        comm::Signal there(at_rank(ctx, signals + ctx->rankId, peer));
        if (peer == (int)ctx->rankId) continue;
        comm::TNOTIFY(there, 1, comm::NotifyOp::AtomicAdd);
    }
}

static void hear_all(CommContext *ctx, int32_t *signals, int nranks) {
    for (int peer = 0; peer < nranks; peer++) {
        comm::Signal here(signals + peer);
        if (peer == (int)ctx->rankId) continue;
        comm::TWAIT(here, 1, comm::WaitCmp::GE);
    }
}

extern "C" void kernel_entry(int64_t *args) {
    float *x = (float *)((ChipTensor *)args[0])->buffer.addr;
    float *y = (float *)((ChipTensor *)args[1])->buffer.addr;
    float *box = (float *)((ChipTensor *)args[2])->buffer.addr;
    int nranks = (int)args[3];
    CommContext *ctx = (CommContext *)args[4];
    int32_t *signals = (int32_t *)(box + HALF);
    RowTile sum, other;
    TASSIGN(sum, 0);
    TASSIGN(other, 0x1000);
    for (int half = 0; half < 2; half++, signals += 2 * nranks) {
        Row mine(x + half * HALF), slot(box), result(y + half * HALF);
        TLOAD(sum, mine);
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0); // sync
        TSTORE(slot, sum);
        pipe_barrier(PIPE_ALL);           // sync
        tell_all(ctx, signals, nranks);
        hear_all(ctx, signals, nranks);   // sync
        for (int peer = 0; peer < nranks; peer++) {
            if (peer == (int)ctx->rankId) continue;
            Row theirs((float *)at_rank(ctx, (int32_t *)box, peer));
            TLOAD(other, theirs);
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);  // sync
            TADD(sum, sum, other);
            set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
            wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);  // sync
        }
        pipe_barrier(PIPE_ALL);           // sync
        tell_all(ctx, signals + nranks, nranks);
        hear_all(ctx, signals + nranks, nranks); // sync
        TSTORE(result, sum);
        pipe_barrier(PIPE_ALL);           // sync
    }
}
