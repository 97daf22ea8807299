// SPDX-License-Identifier: Apache-2.0
// The same sum in C++, which includes the C headers unchanged.
#include <peal/peal.h>

#include <cstdio>
#include <thread>
#include <vector>

int main()
{
    peal_comm *comms[2];
    if (peal_comm_open_threads(2, comms) != PEAL_OK) {
        std::fprintf(stderr, "could not open: %s\n", peal_comm_error(nullptr));
        return 1;
    }
    std::vector<float> sums(2);
    std::vector<std::thread> ranks;
    for (int r = 0; r < 2; r++)
        ranks.emplace_back([&, r] {
            float mine = static_cast<float>(r + 1);
            if (peal_allreduce(comms[r], &mine, &sums[r], 1, PEAL_F32, PEAL_SUM) != PEAL_OK)
                sums[r] = -1;
        });
    for (auto &rank : ranks)
        rank.join();
    for (auto *comm : comms)
        peal_comm_close(comm);
    if (sums[0] != sums[1])
        return 1;
    std::printf("sum over %d ranks: %g\n", 2, static_cast<double>(sums[0]));
}
