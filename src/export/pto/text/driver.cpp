// SPDX-License-Identifier: Apache-2.0
// Runs the kernel with ranks as threads under pto-isa's CPU headers, and compares every result with the collective.
//
//     driver [LAUNCHES]        1000 by default
//
// Launches of a rank follow each other as fast as they can; nothing is reset between them.
#include "@NAME@.hpp"

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#if !defined(__CPU_SIM)
#error "the driver is for pto-isa's CPU headers: compile with -D__CPU_SIM"
#endif

using namespace pto_@NAME@;

namespace {

// Small whole numbers, so that every order of a sum gives the same. Products stay small as well.
int64_t Input(int32_t rank, uint64_t element, int64_t launch)
{
    const uint64_t mixed = static_cast<uint64_t>(rank) * 7 + element * 3 + static_cast<uint64_t>(launch) * 5;
    if (kReduction == Reduction::Prod)
        return mixed % 5 == 0 && rank < 8 ? 2 : 1;
    return static_cast<int64_t>(mixed % 11) - 3;
}

int64_t Reduced(int64_t a, int64_t b)
{
    switch (kReduction) {
    case Reduction::Prod:
        return a * b;
    case Reduction::Max:
        return a > b ? a : b;
    case Reduction::Min:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

int64_t ReducedOver(int32_t ranks, uint64_t element, int64_t launch)
{
    int64_t value = Input(0, element, launch);
    for (int32_t q = 1; q < ranks; q++)
        value = Reduced(value, Input(q, element, launch));
    return value;
}

// Where the block of `rank` begins in a vector that has a block for every rank.
uint64_t Begin(int32_t rank)
{
    uint64_t begin = 0;
    for (int32_t q = 0; q < rank; q++)
        begin += kBlock[q];
    return begin;
}

int32_t Owner(uint64_t element)
{
    int32_t rank = 0;
    while (element >= Begin(rank) + kBlock[rank])
        rank++;
    return rank;
}

// What the collective promises for an element of the output of `rank`; false: nothing.
bool Expected(int32_t rank, uint64_t element, int64_t launch, int64_t *value)
{
    const int32_t owner = kHasBlocks ? Owner(element) : 0;
    switch (kCollective) {
    case Collective::Allreduce:
        *value = ReducedOver(kRanks, element, launch);
        return true;
    case Collective::Reduce:
        *value = ReducedOver(kRanks, element, launch);
        return rank == kRoot;
    case Collective::ReduceScatter:
        *value = ReducedOver(kRanks, Begin(rank) + element, launch);
        return true;
    case Collective::Scan:
        *value = ReducedOver(rank + 1, element, launch);
        return true;
    case Collective::Exscan:
        *value = rank > 0 ? ReducedOver(rank, element, launch) : 0;
        return rank > 0;
    case Collective::Allgather:
        *value = Input(owner, element - Begin(owner), launch);
        return true;
    case Collective::Gather:
        *value = Input(owner, element - Begin(owner), launch);
        return rank == kRoot;
    case Collective::Scatter:
        *value = Input(kRoot, Begin(rank) + element, launch);
        return true;
    case Collective::Broadcast:
        *value = Input(kRoot, element, launch);
        return true;
    case Collective::Alltoall: {
        // Block q of the output is block `rank` of rank q; all of these have the length of block `rank`.
        const uint64_t size = kBlock[rank];
        *value = Input(static_cast<int32_t>(element / size), Begin(rank) + element % size, launch);
        return true;
    }
    default:
        return false;
    }
}

struct Group {
    std::vector<uint64_t> windows;
    std::atomic<int64_t> wrong{0}, compared{0};
};

Elem *Data(Group &group, int32_t rank, uint64_t element)
{
    return reinterpret_cast<Elem *>(group.windows[rank] + kData) + element;
}

void Compare(Group &group, int32_t rank, int64_t launch)
{
    const Elem *output = Data(group, rank, kOutput[rank]);
    int64_t value = 0, compared = 0;
    for (uint64_t i = 0; i < kOutputLength[rank]; i++) {
        if (!Expected(rank, i, launch, &value))
            return;
        compared++;
        if (output[i] == static_cast<Elem>(value))
            continue;
        if (group.wrong++ < 5)
            std::fprintf(stderr, "launch %lld, rank %d: element %llu is %g, not %lld\n", static_cast<long long>(launch),
                         rank, static_cast<unsigned long long>(i), static_cast<double>(output[i]),
                         static_cast<long long>(value));
    }
    group.compared += compared;
}

// One rank. A kernel that is not closed may still be read by peers when it ends: then all meet between launches.
void RunRank(Group &group, std::barrier<> &meeting, int32_t rank, int64_t launches)
{
    for (int64_t launch = 0; launch < launches; launch++) {
        Elem *input = Data(group, rank, kInput[rank]);
        for (uint64_t i = 0; i < kInputLength[rank]; i++)
            input[i] = static_cast<Elem>(Input(rank, i, launch));
        if (!kClosed)
            meeting.arrive_and_wait();
        if (!Launch(group.windows.data(), rank, launch, nullptr)) {
            std::fprintf(stderr, "launch %lld was refused\n", static_cast<long long>(launch));
            std::exit(1);
        }
        Compare(group, rank, launch);
        if (!kClosed)
            meeting.arrive_and_wait();
    }
}

} // namespace

int main(int argc, char **argv)
{
    // The waits of the CPU headers give up after a while, without a word, unless they are told not to.
    setenv("PTO_CPU_SIM_TWAIT_MAX_SPINS", "0", 0);
    const int64_t launches = argc > 1 ? std::atoll(argv[1]) : 1000;
    Group group;
    for (int32_t rank = 0; rank < kRanks; rank++) {
        void *window = std::aligned_alloc(kLine, kWindow);
        if (!window)
            return 1;
        std::memset(window, 0, kWindow);
        group.windows.push_back(reinterpret_cast<uint64_t>(window));
    }
    std::barrier<> meeting(kRanks);
    std::vector<std::thread> ranks;
    for (int32_t rank = 0; rank < kRanks; rank++)
        ranks.emplace_back(RunRank, std::ref(group), std::ref(meeting), rank, launches);
    for (std::thread &rank : ranks)
        rank.join();
    for (uint64_t window : group.windows)
        std::free(reinterpret_cast<void *>(window));
    std::printf("@NAME@: %d ranks, %lld launches, %lld elements compared, %lld wrong\n", kRanks,
                static_cast<long long>(launches), static_cast<long long>(group.compared),
                static_cast<long long>(group.wrong));
    return group.wrong ? 1 : 0;
}
