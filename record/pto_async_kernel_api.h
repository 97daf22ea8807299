// SPDX-License-Identifier: Apache-2.0
// Kernels whose task ends later than they return: when their transfers are done and their counters have arrived.
#pragma once

#include "intrinsic.h"
#include "pto/pto-inst.hpp"

struct AsyncCtx {};
inline AsyncCtx get_async_ctx(const int64_t *) { return {}; }
inline bool async_ctx_is_deferred(const AsyncCtx &) { return true; }

inline void send_notification(volatile void *counter, int32_t value, pto::comm::NotifyOp how, REC_AT) {
    pto::comm::Signal signal(reinterpret_cast<int32_t *>(const_cast<void *>(counter)));
    pto::comm::TNOTIFY(signal, value, how, rec_line, rec_file);
}
// The task ends after the counter has arrived there. The kernel itself does not wait.
inline void save_expected_notification_counter(AsyncCtx &, volatile void *counter, uint32_t expected, REC_AT) {
    rec_span cell = rec_flat(reinterpret_cast<uint64_t>(counter), 1, REC_I32);
    rec_event e = rec_plain(REC_WAIT, rec_line, expected, REC_GE, 1);
    e.ndst = 1;
    rec_put(e, "save_expected_notification_counter", nullptr, rec_file, &cell);
}
