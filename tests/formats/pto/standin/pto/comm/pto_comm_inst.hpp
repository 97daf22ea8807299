// SPDX-License-Identifier: Apache-2.0
// Signals between ranks: adds release, waits acquire. They belong to no pipe: instructions still in a pipe are not published.
#pragma once

#include "pto/pto-inst.hpp"

#include <atomic>
#include <thread>

namespace pto::comm {

enum class NotifyOp { AtomicAdd, Set };
enum class WaitCmp { EQ, NE, GT, GE, LT, LE };

using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>>;

inline void TNOTIFY(Signal &signal, int32_t value, NotifyOp op)
{
    assert(op == NotifyOp::AtomicAdd && "a set would undo the adds of other launches");
    assert(reinterpret_cast<uintptr_t>(signal.data()) % 64 == 0 && "a cell has a cache line of its own");
    std::atomic_ref<int32_t>(*signal.data()).fetch_add(value, std::memory_order_release);
}

inline void TWAIT(Signal &signal, int32_t value, WaitCmp cmp)
{
    assert(cmp == WaitCmp::GE);
    while (std::atomic_ref<int32_t>(*signal.data()).load(std::memory_order_acquire) < value)
        std::this_thread::yield();
}

} // namespace pto::comm
