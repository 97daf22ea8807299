// SPDX-License-Identifier: Apache-2.0
// What orders the blocks of a launch.
#pragma once

#include "pto/memory.hpp"

namespace pto {

enum class SyncAllMode : uint8_t { Hard, Soft };
enum class SyncCoreType : uint8_t { AIVOnly, AICOnly, Mix };
constexpr int32_t SYNCALL_SOFT_WORKSPACE_INT32 = 16;

// All blocks wait for each other, and each for its own pipes before. Counters in a workspace are not recorded: the barrier is.
inline void rec_sync_blocks(int line, const char *file) {
    rec_put(rec_plain(REC_BLOCKS, line, 0, 0, 0), "SYNCALL", nullptr, file, nullptr);
}
template <auto... M>
inline void SYNCALL(REC_AT) { rec_sync_blocks(rec_line, rec_file); }
template <auto... M, typename G, typename = typename G::DType>
inline void SYNCALL(G &, int32_t used = 0, REC_AT) {
    if (used && used != rec_blocks) rec_refuse("SYNCALL", "a barrier of some of the blocks", rec_file, rec_line);
    rec_sync_blocks(rec_line, rec_file);
}

} // namespace pto
