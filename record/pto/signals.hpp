// SPDX-License-Identifier: Apache-2.0
// Signals between ranks: notify, wait, test.
#pragma once

#include "pto/memory.hpp"

namespace pto {
namespace comm {

enum class NotifyOp : uint8_t { AtomicAdd, Set };
enum class WaitCmp : uint8_t { EQ, NE, GT, GE, LT, LE };
enum class ReduceOp : uint8_t { Sum, Max, Min };

using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>, Layout::ND>;
template <typename T, typename S, typename D, Layout L = Layout::ND>
using GlobalSignal = GlobalTensor<T, S, D, L>;
template <int Rows, int Cols>
struct Signal2D : GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>, Layout::ND> {
    using Base = GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>, Layout::ND>;
    Signal2D(int32_t *p) : Base(p, {}, Stride<1, 1, 1, DYNAMIC, 1>(Cols)) {}
    Signal2D(int32_t *p, int stride) : Base(p, {}, Stride<1, 1, 1, DYNAMIC, 1>(stride)) {}
};

// One signal after the other, of a matrix of them.
template <typename G, typename F>
inline bool rec_signals(const char *op, G &g, int line, const char *file, F &&use) {
    rec_span s = rec_memory(g, op, file, line);
    bool all = true;
    for (uint32_t r = 0; r < s.rows; r++) {
        for (uint64_t c = 0; c < s.count; c++)
            all = use(rec_flat(s.address + r * s.stride + c * rec_size(s.dtype), 1, s.dtype)) && all;
    }
    return all;
}

template <typename G>
inline void TNOTIFY(G &signal, int32_t value, NotifyOp how, REC_AT) {
    rec_signals("TNOTIFY", signal, rec_line, rec_file, [&](rec_span cell) {
        rec_event e = rec_plain(REC_NOTIFY, rec_line, value, how == NotifyOp::Set, 0);
        e.ndst = 1;
        rec_put(e, "TNOTIFY", nullptr, rec_file, &cell);
        return true;
    });
}
template <typename G>
inline void TWAIT(G &signal, int32_t value, WaitCmp cmp, REC_AT) {
    rec_signals("TWAIT", signal, rec_line, rec_file, [&](rec_span cell) {
        rec_event e = rec_plain(REC_WAIT, rec_line, value, static_cast<int64_t>(cmp), 0);
        e.ndst = 1;
        rec_put(e, "TWAIT", nullptr, rec_file, &cell);
        return true;
    });
}
template <typename G>
inline bool TTEST(G &signal, int32_t value, WaitCmp cmp, REC_AT) {
    rec_span s = rec_memory(signal, "TTEST", rec_file, rec_line);
    if (rec_elements(s) != 1) rec_refuse("TTEST", "a test of several signals", rec_file, rec_line);
    rec_event e = rec_plain(REC_WAIT, rec_line, value, static_cast<int64_t>(cmp), 0);
    e.ndst = 1;
    return rec_test(e, "TTEST", rec_file, &s);
}

} // namespace comm
} // namespace pto
