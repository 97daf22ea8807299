// SPDX-License-Identifier: Apache-2.0
// What a device's compiler has and a host's has not: launches, macros of its units, barriers of blocks, events, clocks.
#ifndef PIPE_FIX
#define PIPE_FIX static_cast<pipe_t>(10)
#endif
#include <acl/acl.h>
#include <pto/pto-inst.hpp>
#include "backend/sdma/sdma_completion_kernel.h"
#include "platform_comm/comm_context.h"
#include "intrinsic.h"
#include "pto/comm/pto_comm_inst.hpp"
#include "pto_async_kernel_api.h"
#include "tensor.h"

using namespace pto;
#define SINGLE_CACHE_LINE 0

constexpr int N = 32;
using Row = GlobalTensor<float, TileShape2D<float, 1, N>, BaseShape2D<float, 1, N>>;
using RowTile = Tile<TileType::Vec, float, 1, N>;

template <typename T>
static T *memory(int64_t *args, int i) {
    return (T *)((ChipTensor *)args[i])->buffer.addr;
}
template <typename T>
static T *at_rank(CommContext *ctx, T *mine, int rank) {
    return (T *)(ctx->windowsIn[rank] + ((uint64_t)mine - ctx->windowsIn[ctx->rankId]));
}

// A template that is launched has no C linkage, and the function that launches it has none either.
template <int Count>
__global__ AICORE void copy_kernel(__gm__ float *x, __gm__ float *y) {
#if defined(__DAV_VEC__) && defined(__CCE_AICORE__) && !defined(__DAV_CUBE__)
    RowTile tile;
    TASSIGN(tile, 0);
    Row from(x), to(y);
    TLOAD_IMPL(tile, from);
    pipe_barrier(PIPE_ALL);
    TSTORE_IMPL<RowTile, Row, AtomicType::AtomicNone>(to, tile);
#endif
}
void launch_copy(float *x, float *y, aclrtStream stream) {
    copy_kernel<N><<<1,
                     nullptr, stream>>>(x, y);
}
void twice(float *) {}
void twice(int *) {}

// Every block stores a row of private memory, and the first one reads all of them.
template <bool Waits>
static void of_blocks(int64_t *args) {
    float *x = memory<float>(args, 0), *y = memory<float>(args, 1), *rows = memory<float>(args, 2);
    RowTile tile;
    TASSIGN(tile, 0);
    Row mine(x), row(rows + get_block_idx(args) * N), out(y);
    TLOAD(tile, mine);
    pipe_barrier(PIPE_ALL);
    TSTORE(row, tile);
    Row workspace(rows);
    if (Waits) SYNCALL<SyncAllMode::Soft>(workspace, get_block_num(args));
    if (get_block_idx(args) != 0) return;
    for (int i = 0; i < get_block_num(args); i++) {
        Row theirs(rows + i * N);
        TLOAD(tile, theirs);
        pipe_barrier(PIPE_ALL);
    }
    TSTORE(out, tile);
}
extern "C" void blocks_wait(int64_t *args) { of_blocks<true>(args); }
extern "C" void blocks_do_not(int64_t *args) { of_blocks<false>(args); }
extern "C" void one_block_waits(int64_t *args) {
    if (get_block_idx(args) == 0) SYNCALL();
}

// Flags that events set and wait for.
template <bool Waits>
static void by_events(int64_t *args) {
    RowTile a, b;
    TASSIGN(a, 0);
    TASSIGN(b, 256);
    Row x(memory<float>(args, 0)), y(memory<float>(args, 1));
    Event<Op::TLOAD, Op::TADD> loaded;
    Event<Op::TADD, Op::TSTORE_VEC> added;
    loaded = TLOAD(a, x);
    if (Waits) added = TADD(b, a, a, loaded);
    else added = TADD(b, a, a);
    TSYNC(added);
    TSTORE(y, b);
}
extern "C" void events(int64_t *args) { by_events<true>(args); }
extern "C" void events_unused(int64_t *args) { by_events<false>(args); }

// Elements that S stores are there for what it issues next.
extern "C" void element(int64_t *args) {
    RowTile a;
    TASSIGN(a, 0);
    Row y(memory<float>(args, 1));
    for (int i = 0; i < N; i++) a.SetValue(i, 1.5f);
    TSTORE(y, a);
}
extern "C" void element_steers(int64_t *args) {
    RowTile a;
    TASSIGN(a, 0);
    if (a.GetValue(3) > 0) pipe_barrier(PIPE_ALL);
}
extern "C" void past_the_cache(int64_t *args) {
    int32_t *box = memory<int32_t>(args, 2);
    st_dev(static_cast<uint32_t>(7), reinterpret_cast<uint32_t *>(box), 0);
    dcci(box, SINGLE_CACHE_LINE, CACHELINE_OUT);
    dsb(DSB_DDR);
    if (ld_dev(box + 1, 0)) pipe_barrier(PIPE_ALL);
}
extern "C" void clock_is_read(int64_t *args) {
    int64_t before = get_sys_cnt();
    float scale = from_u64<float>(to_u64(1.5f));
    *memory<float>(args, 1) = scale;
    (void)(get_sys_cnt() - before);
}

// The second of two launches stores where others still read what the first stored.
extern "C" void refills(int64_t *args) {
    float *t = memory<float>(args, 0);
    int32_t *count = (int32_t *)args[1];
    CommContext *ctx = (CommContext *)args[2];
    RowTile tile;
    TASSIGN(tile, 0);
    Row own(t), first(at_rank(ctx, t, 0));
    if (ctx->rankId == 0) {
        TLOAD(tile, own);
        pipe_barrier(PIPE_ALL);
        TSTORE(own, tile);
        pipe_barrier(PIPE_ALL);
        for (uint32_t peer = 1; peer < ctx->rankNum; peer++) {
            comm::Signal there(at_rank(ctx, count, peer));
            comm::TNOTIFY(there, 1, comm::NotifyOp::AtomicAdd);
        }
        return;
    }
    comm::Signal here(count);
    comm::TWAIT(here, 1, comm::WaitCmp::GE);
    comm::TNOTIFY(here, -1, comm::NotifyOp::AtomicAdd);
    TLOAD(tile, first);
    pipe_barrier(PIPE_ALL);
    TSTORE(own, tile);
}

// The task ends after the transfer; the next kernel uses what came.
extern "C" void get_later(int64_t *args) {
    CommContext *ctx = (CommContext *)args[4];
    Row theirs(at_rank(ctx, memory<float>(args, 2), (ctx->rankId + 1) % ctx->rankNum)), y(memory<float>(args, 1));
    Tile<TileType::Vec, uint8_t, 1, SDMA_SCRATCH_ALIGNMENT> scratch;
    TASSIGN(scratch, 0);
    AsyncCtx later = get_async_ctx(args);
    send_request_entry(later, SdmaTget(y, theirs, scratch, get_dma_workspace(args, DMA_WORKSPACE_SDMA)));
}
extern "C" void use_it(int64_t *args) {
    RowTile tile;
    TASSIGN(tile, 0);
    Row y(memory<float>(args, 1));
    TLOAD(tile, y);
}
extern "C" void get_and_use(int64_t *args) {
    get_later(args);
    use_it(args);
}
extern "C" void expect(int64_t *args) {
    CommContext *ctx = (CommContext *)args[4];
    int32_t *counter = memory<int32_t>(args, 2);
    AsyncCtx later = get_async_ctx(args);
    save_expected_notification_counter(later, counter, 1);
    send_notification(at_rank(ctx, counter, (ctx->rankId + 1) % ctx->rankNum), 1, comm::NotifyOp::AtomicAdd);
}
