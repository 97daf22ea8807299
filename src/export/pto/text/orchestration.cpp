// SPDX-License-Identifier: Apache-2.0
// Starts a launch: all blocks of one rank.
#include "@NAME@.hpp"

#if defined(__CPU_SIM)
#include <thread>
#include <vector>
#endif

namespace pto_@NAME@ {

bool Launch(uint64_t *windows, int32_t rank, int64_t launch, void *stream)
{
    if (rank < 0 || rank >= kRanks || launch < 0 || launch >= kLaunches)
        return false;
#if defined(__CPU_SIM)
    (void)stream;
    std::vector<std::thread> blocks;
    for (int32_t block = 1; block < kBlocks; block++)
        blocks.emplace_back(RunBlock, windows, rank, block, launch);
    RunBlock(windows, rank, 0, launch);
    for (std::thread &block : blocks)
        block.join();
#else
    StartBlocks(windows, rank, launch, stream);
#endif
    return true;
}

} // namespace pto_@NAME@
