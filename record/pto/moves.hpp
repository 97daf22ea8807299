// SPDX-License-Identifier: Apache-2.0
// Moves between ranks: through tiles, of a root with all ranks, and asynchronous ones.
#pragma once

#include "pto/signals.hpp"

namespace pto {
namespace comm {

// ---- moves between memory through tiles: what the intrinsics are made of, flags included ----

// Pieces of tensors of one shape, as large as a tile.
struct rec_pieces {
    uint64_t all, room, done = 0;
    bool flat = true;
    rec_pieces(const char *op, rec_span shape, rec_span tile, int line, const char *file)
        : all(rec_elements(shape)), room(rec_elements(tile)) {
        if (!room && all) rec_refuse(op, "a tile without room", file, line);
    }
    void add(const char *op, rec_span s, int line, const char *file) {
        if (rec_elements(s) != all) rec_refuse(op, "source and destination have different sizes", file, line);
        flat = flat && (s.rows == 1 || s.stride == s.count * rec_size(s.dtype));
        if (!flat && all > room) rec_refuse(op, "a tensor with gaps that is larger than the tile", file, line);
    }
    uint64_t now() const { return all - done < room ? all - done : room; }
    rec_span of(rec_span s) const {
        return flat ? rec_flat(s.address + done * rec_size(s.dtype), now(), s.dtype) : s;
    }
    rec_span in(rec_span tile) const { return rec_flat(tile.address, now(), tile.dtype); }
    bool next() { return (done += now()) < all; }
};

struct rec_site {
    const char *op, *load, *store, *file;
    int line;
    void set(pipe_t from, pipe_t to, int id) const {
        rec_put(rec_plain(REC_FLAG_SET, line, from, to, 100 + id), op, nullptr, file, nullptr);
    }
    void wait(pipe_t from, pipe_t to, int id) const {
        rec_put(rec_plain(REC_FLAG_WAIT, line, from, to, 100 + id), op, nullptr, file, nullptr);
    }
    void order(pipe_t from, pipe_t to, int id) const {
        set(from, to, id);
        wait(from, to, id);
    }
    void drain() const { rec_put(rec_plain(REC_BARRIER, line, PIPE_ALL, 0, 0), op, nullptr, file, nullptr); }
    void move(const char *name, rec_span dst, rec_span src, AtomicType atomic = AtomicType::AtomicNone) const {
        rec_move(name, dst, src, atomic, true, line, file);
    }
};
#define REC_SITE(name) rec_site{name, name ".load", name ".store", rec_file, rec_line}

// With one tile: a load, a store after it, then the next load. With two, a store and the next load at the same time.
inline void rec_through(const rec_site &at, rec_span dst, rec_span src, const rec_span *tiles, int ntiles, AtomicType atomic) {
    rec_pieces pieces(at.op, src, tiles[0], at.line, at.file);
    pieces.add(at.op, src, at.line, at.file);
    pieces.add(at.op, dst, at.line, at.file);
    if (!pieces.all) return;
    if (ntiles == 1 || pieces.all <= pieces.room) {
        do {
            at.move(at.load, pieces.in(tiles[0]), pieces.of(src));
            at.order(PIPE_MTE2, PIPE_MTE3, 0);
            at.move(at.store, pieces.of(dst), pieces.in(tiles[0]), atomic);
            at.order(PIPE_MTE3, PIPE_MTE2, 0);
        } while (pieces.next());
        return;
    }
    int now = 0;
    rec_span held = pieces.in(tiles[0]), goal = pieces.of(dst);
    at.move(at.load, held, pieces.of(src));
    at.set(PIPE_MTE2, PIPE_MTE3, 0);
    while (pieces.next()) {
        at.wait(PIPE_MTE2, PIPE_MTE3, now);
        at.drain();
        at.move(at.store, goal, held, atomic);
        held = pieces.in(tiles[1 - now]);
        goal = pieces.of(dst);
        at.move(at.load, held, pieces.of(src));
        at.set(PIPE_MTE3, PIPE_MTE2, now);
        at.set(PIPE_MTE2, PIPE_MTE3, 1 - now);
        at.wait(PIPE_MTE3, PIPE_MTE2, now);
        now = 1 - now;
    }
    at.wait(PIPE_MTE2, PIPE_MTE3, now);
    at.drain();
    at.move(at.store, goal, held, atomic);
    at.order(PIPE_MTE3, PIPE_MTE2, now);
}

template <typename D, typename S, typename T>
inline RecordEvent rec_transfer(const rec_site &at, D &dst, S &src, T &tile, T *second, AtomicType atomic) {
    rec_span tiles[2] = {tile.span(at.op, at.file, at.line)};
    if (second) tiles[1] = second->span(at.op, at.file, at.line);
    rec_through(at, rec_memory(dst, at.op, at.file, at.line), rec_memory(src, at.op, at.file, at.line), tiles, second ? 2 : 1,
                atomic);
    return {};
}
template <AtomicType A = AtomicType::AtomicNone, typename D, typename S, typename T>
inline RecordEvent TPUT(D &dst, S &src, T &tile, REC_AT) {
    return rec_transfer(REC_SITE("TPUT"), dst, src, tile, static_cast<T *>(nullptr), A);
}
template <AtomicType A = AtomicType::AtomicNone, typename D, typename S, typename T>
inline RecordEvent TPUT(D &dst, S &src, T &ping, T &pong, REC_AT) {
    return rec_transfer(REC_SITE("TPUT"), dst, src, ping, &pong, A);
}
// The same with the atomic operation as a value.
template <typename D, typename S, typename T>
inline RecordEvent TPUT(D &dst, S &src, T &tile, AtomicType atomic, REC_AT) {
    return rec_transfer(REC_SITE("TPUT"), dst, src, tile, static_cast<T *>(nullptr), atomic);
}
template <typename D, typename S, typename T>
inline RecordEvent TGET(D &dst, S &src, T &tile, REC_AT) {
    return rec_transfer(REC_SITE("TGET"), dst, src, tile, static_cast<T *>(nullptr), AtomicType::AtomicNone);
}
template <typename D, typename S, typename T>
inline RecordEvent TGET(D &dst, S &src, T &ping, T &pong, REC_AT) {
    return rec_transfer(REC_SITE("TGET"), dst, src, ping, &pong, AtomicType::AtomicNone);
}

// ---- collectives: done by the root alone, with the tensors of all ranks ----

template <typename G>
struct ParallelGroup {
    using value_type = G;
    G *tensors = nullptr;
    int nranks = 0, rootIdx = -1;
    ParallelGroup() = default;
    ParallelGroup(G *all, int size, int root) : tensors(all), nranks(size), rootIdx(root) {}
    static ParallelGroup Create(G *all, int size, int root) { return ParallelGroup(all, size, root); }
    int GetRootIdx() const { return rootIdx; }
    int GetSize() const { return nranks; }
    bool empty() const { return nranks == 0; }
    G &operator[](int rank) const { return tensors[rank]; }
};

// The part of the whole that is rank's: they follow each other in the fourth dimension.
template <typename W, typename P>
inline rec_span rec_part(W &whole, P &part, int rank, const rec_site &at) {
    rec_span s = rec_memory(part, at.op, at.file, at.line);
    s.address = reinterpret_cast<uint64_t>(whole.pointer) +
                static_cast<uint64_t>(rank) * part.GetShape(3) * whole.GetStride(3) * rec_size(s.dtype);
    if (s.rows > 1) s.stride = static_cast<uint64_t>(whole.GetStride(3)) * rec_size(s.dtype);
    return s;
}
template <typename P, typename G, typename T>
inline RecordEvent rec_gather(const rec_site &at, P &group, G &whole, T &tile, T *second, bool scatters) {
    rec_span tiles[2] = {tile.span(at.op, at.file, at.line)};
    if (second) tiles[1] = second->span(at.op, at.file, at.line);
    for (int r = 0; r < group.GetSize(); r++) {
        rec_span theirs = rec_memory(group[r], at.op, at.file, at.line), part = rec_part(whole, group[r], r, at);
        rec_through(at, scatters ? theirs : part, scatters ? part : theirs, tiles, second ? 2 : 1, AtomicType::AtomicNone);
    }
    return {};
}
template <typename P, typename G, typename T>
inline RecordEvent TGATHER(P &group, G &whole, T &tile, REC_AT) {
    return rec_gather(REC_SITE("TGATHER"), group, whole, tile, static_cast<T *>(nullptr), false);
}
template <typename P, typename G, typename T>
inline RecordEvent TGATHER(P &group, G &whole, T &ping, T &pong, REC_AT) {
    return rec_gather(REC_SITE("TGATHER"), group, whole, ping, &pong, false);
}
template <typename P, typename G, typename T>
inline RecordEvent TSCATTER(P &group, G &whole, T &tile, REC_AT) {
    return rec_gather(REC_SITE("TSCATTER"), group, whole, tile, static_cast<T *>(nullptr), true);
}
template <typename P, typename G, typename T>
inline RecordEvent TSCATTER(P &group, G &whole, T &ping, T &pong, REC_AT) {
    return rec_gather(REC_SITE("TSCATTER"), group, whole, ping, &pong, true);
}

// A load, then a store to every rank. The form with two tiles is recorded as one after the other, in its two tiles.
template <typename P, typename G, typename T>
inline RecordEvent rec_broadcast(const rec_site &at, P &group, G &whole, T &tile, T *second) {
    rec_span src = rec_memory(whole, at.op, at.file, at.line);
    rec_span tiles[] = {tile.span(at.op, at.file, at.line), (second ? *second : tile).span(at.op, at.file, at.line)};
    rec_pieces pieces(at.op, src, tiles[0], at.line, at.file);
    for (int r = 0; r < group.GetSize(); r++) pieces.add(at.op, rec_memory(group[r], at.op, at.file, at.line), at.line, at.file);
    pieces.add(at.op, src, at.line, at.file);
    int now = 0;
    if (!pieces.all) return {};
    do {
        at.move(at.load, pieces.in(tiles[now]), pieces.of(src));
        at.order(PIPE_MTE2, PIPE_MTE3, now);
        for (int r = 0; r < group.GetSize(); r++)
            at.move(at.store, pieces.of(rec_memory(group[r], at.op, at.file, at.line)), pieces.in(tiles[now]));
        at.order(PIPE_MTE3, PIPE_MTE2, now);
        now = 1 - now;
    } while (pieces.next());
    return {};
}
template <typename P, typename G, typename T>
inline RecordEvent TBROADCAST(P &group, G &src, T &tile, REC_AT) {
    return rec_broadcast(REC_SITE("TBROADCAST"), group, src, tile, static_cast<T *>(nullptr));
}
template <typename P, typename G, typename T>
inline RecordEvent TBROADCAST(P &group, G &src, T &ping, T &pong, REC_AT) {
    return rec_broadcast(REC_SITE("TBROADCAST"), group, src, ping, &pong);
}

// The root's own, then that of each other rank in turn; with two tiles, the next is loaded while one is added.
template <typename P, typename G, typename T>
inline RecordEvent rec_reduce(const rec_site &at, P &group, G &whole, T &acc, T &one, T &two, ReduceOp op) {
    static const char *const functions[] = {"add", "maximum", "minimum"};
    rec_span dst = rec_memory(whole, at.op, at.file, at.line), sum = acc.span(at.op, at.file, at.line);
    rec_span tiles[] = {one.span(at.op, at.file, at.line), two.span(at.op, at.file, at.line)};
    bool ahead = tiles[0].address != tiles[1].address;
    int root = group.GetRootIdx(), others = group.GetSize() - 1;
    auto other = [&](int i) { return rec_memory(group[i < root ? i : i + 1], at.op, at.file, at.line); };
    rec_pieces pieces(at.op, dst, sum, at.line, at.file);
    pieces.add(at.op, dst, at.line, at.file);
    for (int r = 0; r <= others; r++) pieces.add(at.op, rec_memory(group[r], at.op, at.file, at.line), at.line, at.file);
    if (!pieces.all) return {};
    do {
        at.move(at.load, pieces.in(sum), pieces.of(rec_memory(group[root], at.op, at.file, at.line)));
        at.order(PIPE_MTE2, others ? PIPE_V : PIPE_MTE3, 0);
        for (int i = 0, loaded = 0; i < others; i++) {
            for (; loaded < others && loaded <= i + ahead; loaded++) {
                at.move(at.load, pieces.in(tiles[loaded % 2]), pieces.of(other(loaded)));
                at.set(PIPE_MTE2, PIPE_V, 1 + loaded % 2);
            }
            at.wait(PIPE_MTE2, PIPE_V, 1 + i % 2);
            rec_span spans[] = {pieces.in(sum), pieces.in(sum), pieces.in(tiles[i % 2])};
            rec_op(REC_COMPUTE, "TREDUCE", functions[static_cast<int>(op)], spans, 1, 2, at.line, at.file);
            at.order(PIPE_V, PIPE_MTE2, 0);
        }
        if (others) at.order(PIPE_V, PIPE_MTE3, 0);
        at.move(at.store, pieces.of(dst), pieces.in(sum));
        at.order(PIPE_MTE3, PIPE_MTE2, 0);
    } while (pieces.next());
    return {};
}
template <typename P, typename G, typename T>
inline RecordEvent TREDUCE(P &group, G &dst, T &acc, T &tile, ReduceOp op, REC_AT) {
    return rec_reduce(REC_SITE("TREDUCE"), group, dst, acc, tile, tile, op);
}
template <typename P, typename G, typename T>
inline RecordEvent TREDUCE(P &group, G &dst, T &acc, T &ping, T &pong, ReduceOp op, REC_AT) {
    return rec_reduce(REC_SITE("TREDUCE"), group, dst, acc, ping, pong, op);
}

// ---- asynchronous moves: by an engine that no barrier of pipes waits for ----

enum class DmaEngine : uint8_t { SDMA, URMA, RDMA };
namespace sdma {
struct SdmaBaseConfig {
    uint64_t block_bytes, comm_block_offset;
    uint32_t queue_num;
};
constexpr uint32_t UB_ALIGN_SIZE = 256, kUbAlignSize = 256, kAutoChannelGroupIdx = UINT32_MAX;
constexpr uint64_t kDefaultSdmaBlockBytes = 1 << 20;
} // namespace sdma
struct AsyncSession {
    DmaEngine engine = DmaEngine::SDMA;
    bool valid = false;
};
struct AsyncEvent {
    uint64_t handle = 0;
    DmaEngine engine = DmaEngine::SDMA;
    AsyncEvent() = default;
    AsyncEvent(uint64_t h, DmaEngine e) : handle(h), engine(e) {}
    bool valid() const { return handle != 0; }
    // S waits for all that the engine was given up to now, this move among it.
    bool Wait(const AsyncSession &, REC_AT) const {
        if (handle) rec_put(rec_plain(REC_BARRIER, rec_line, REC_PIPE_DMA, 0, 0), "AsyncEvent", nullptr, rec_file, nullptr);
        return true;
    }
    bool Test(const AsyncSession &, REC_AT) const {
        rec_refuse("AsyncEvent::Test", "its answer steers the kernel; Wait can be recorded", rec_file, rec_line);
    }
};
template <DmaEngine E = DmaEngine::SDMA, typename... A>
inline bool BuildAsyncSession(A &&...args) {
    auto open = [](auto &arg) {
        if constexpr (std::is_same_v<std::decay_t<decltype(arg)>, AsyncSession>) arg.engine = E, arg.valid = true;
    };
    (open(args), ...);
    return true;
}
template <typename D, typename S>
inline AsyncEvent rec_async(const rec_site &at, D &dst, S &src, DmaEngine engine) {
    at.move(at.op, rec_memory(dst, at.op, at.file, at.line), rec_memory(src, at.op, at.file, at.line));
    return AsyncEvent(1, engine);
}
template <DmaEngine E = DmaEngine::SDMA, typename D, typename S>
inline AsyncEvent TPUT_ASYNC(D &dst, S &src, const AsyncSession &, REC_AT) { return rec_async(REC_SITE("TPUT_ASYNC"), dst, src, E); }
template <DmaEngine E = DmaEngine::SDMA, typename D, typename S>
inline AsyncEvent TGET_ASYNC(D &dst, S &src, const AsyncSession &, REC_AT) { return rec_async(REC_SITE("TGET_ASYNC"), dst, src, E); }

} // namespace comm
} // namespace pto
