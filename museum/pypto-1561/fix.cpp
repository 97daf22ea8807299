// SPDX-License-Identifier: Apache-2.0
// A row is stored into the right neighbour's window, and a notify says that it is there.
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

extern "C" void kernel_entry(int64_t *args) {
    float *x = (float *)((ChipTensor *)args[0])->buffer.addr;
    float *y = (float *)((ChipTensor *)args[1])->buffer.addr;
    float *box = (float *)((ChipTensor *)args[2])->buffer.addr;
    int nranks = (int)args[3];
    CommContext *ctx = (CommContext *)args[4];
    int me = (int)ctx->rankId;
    int right = (me + 1) % nranks;
    int32_t *arrived = (int32_t *)(box + COUNT);

    RowTile mine, theirs;
    TASSIGN(mine, 0x0);
    TASSIGN(theirs, 0x1000);
    Row input(x), slot(box), there(at_rank(ctx, box, right)), result(y);

    TLOAD(mine, input);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    TSTORE(there, mine);
    pipe_barrier(PIPE_ALL);
    dsb(DSB_DDR);
    comm::Signal their_signal(at_rank(ctx, arrived, right));
    comm::TNOTIFY(their_signal, 1, comm::NotifyOp::AtomicAdd);

    comm::Signal my_signal(arrived);
    comm::TWAIT(my_signal, 1, comm::WaitCmp::GE);
    TLOAD(theirs, slot);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1);
    TSTORE(result, theirs);
    pipe_barrier(PIPE_ALL);
}
