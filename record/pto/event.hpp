// SPDX-License-Identifier: Apache-2.0
// Events between intrinsics: a flag from the pipe of one to that of the other.
#pragma once

#include "pto/memory.hpp"

namespace pto {

enum class Op : uint16_t {
    TLOAD, TSTORE_VEC, TSTORE_ACC, TSTORE_MAT, TMOV_V2V, TMOV_V2M, TMOV_M2V, TMOV_M2L, TMOV_M2R, TMOV_M2B, TMOV_M2S, TMOV_A2V,
    TMOV_A2M, SCALAR, VECTOR,
#define REC_TILE_OP(name, rows, function) name,
#include "pto/tiles.def"
#undef REC_TILE_OP
};

constexpr pipe_t rec_pipe_of(Op op) {
    switch (op) {
    case Op::TLOAD: return PIPE_MTE2;
    case Op::TSTORE_VEC: case Op::TSTORE_MAT: case Op::TMOV_V2M: return PIPE_MTE3;
    case Op::TSTORE_ACC: case Op::TMOV_A2V: case Op::TMOV_A2M: case Op::TMOV_FP: case Op::TEXTRACT_FP: case Op::TINSERT_FP:
        return PIPE_FIX;
    case Op::TMOV_M2V: case Op::TMOV_M2L: case Op::TMOV_M2R: case Op::TMOV_M2B: case Op::TMOV_M2S: case Op::TEXTRACT:
    case Op::TIMG2COL: return PIPE_MTE1;
    case Op::TMATMUL: case Op::TMATMUL_ACC: case Op::TMATMUL_BIAS: case Op::TMATMUL_MX: case Op::TGEMV: case Op::TGEMV_ACC:
    case Op::TGEMV_BIAS: case Op::TGEMV_MX: return PIPE_M;
    case Op::SCALAR: case Op::TCI: return PIPE_S;
    default: return PIPE_V;
    }
}

// Numbers of events that have none of their own: eight for each pair of pipes, in turn.
template <pipe_t From, pipe_t To>
inline event_t rec_next_event() {
    static int next = 0;
    return static_cast<event_t>(next++ % 8);
}

// Between intrinsics of one pipe it orders nothing, because a pipe runs in order anyway.
template <Op From, Op To, bool Counts = true, event_t Given = EVENT_ID0>
struct Event {
    using rec_waits = void;
    static constexpr pipe_t from = rec_pipe_of(From), to = rec_pipe_of(To);
    event_t token = Counts ? rec_next_event<from, to>() : Given;
    Event() = default;
    Event(RecordEvent) { Record(rec_last_line, rec_last_file); }
    Event &operator=(RecordEvent) { // of the intrinsic that was just recorded
        return Record(rec_last_line, rec_last_file);
    }
    Event &Record(REC_AT) {
        if (from != to) set_flag(from, to, token, rec_line, rec_file);
        return *this;
    }
    Event &Init(REC_AT) { return Record(rec_line, rec_file); }
    Event &Wait(REC_AT) {
        if (from != to) wait_flag(from, to, token, rec_line, rec_file);
        return *this;
    }
};

template <typename... E>
inline void TSYNC(E &...events) { (events.Wait(rec_last_line, rec_last_file), ...); }
template <typename T, typename G, typename E, typename = typename E::rec_waits>
inline RecordEvent TLOAD(T &dst, G &src, E &event, REC_AT) {
    event.Wait(rec_line, rec_file);
    return TLOAD(dst, src, rec_line, rec_file);
}
template <typename G, typename T, typename E, typename = typename E::rec_waits>
inline RecordEvent TSTORE(G &dst, T &src, E &event, REC_AT) {
    event.Wait(rec_line, rec_file);
    return rec_store<AtomicType::AtomicNone>(dst, src, rec_line, rec_file);
}

} // namespace pto
