// SPDX-License-Identifier: Apache-2.0
// The ring allreduce of kernels/channels.peal (allreduce_chunked) on SimGrid, an independent
// simulator, to compare with `plan --sim P BYTES`: simulated microseconds, messages, and the time
// that simulating took.
//
//   simgrid_ring P BYTES
//
// The network is that of kernel.h: a full-duplex link of 10 GB/s and 50 ns between neighbours, the
// model CM02 with its correction factors set to 1 and no interference between the two directions.
#include "measure.h"

#include <simgrid/s4u.hpp>

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

namespace
{

// One rank: 2 (P - 1) times, send a part to the right and take one from the left.
void rank_main(int rank, int ranks, double part)
{
    auto *out = sg::Mailbox::by_name(std::to_string((rank + 1) % ranks));
    auto *in = sg::Mailbox::by_name(std::to_string(rank));
    static int payload;
    for (int step = 0; step < 2 * (ranks - 1); step++) {
        auto sending = out->put_async(&payload, static_cast<uint64_t>(part));
        in->get<int>();
        sending->wait();
    }
}

} // namespace

int main(int argc, char **argv)
{
    sg::Engine engine(&argc, argv);
    sg::Engine::set_config("network/model:CM02");
    sg::Engine::set_config("network/crosstraffic:0");
    sg::Engine::set_config("network/TCP-gamma:0");
    sg::Engine::set_config("network/latency-factor:1");
    sg::Engine::set_config("network/bandwidth-factor:1");
    sg::Engine::set_config("network/weight-S:0");
    if (argc != 3) {
        std::fputs("usage: simgrid_ring P BYTES\n", stderr);
        return 2;
    }
    int ranks = std::atoi(argv[1]);
    double part = static_cast<double>(bench_size(argv[2])) / ranks;
    double start = bench_cpu_us();
    auto *zone = sg::create_full_zone("flat");
    std::vector<sg::Host *> hosts;
    for (int r = 0; r < ranks; r++)
        hosts.push_back(zone->create_host(std::to_string(r), 1e9));
    for (int r = 0; r < ranks; r++) {
        auto *link =
            zone->create_link("link" + std::to_string(r), 10e9)->set_latency(50e-9)->seal();
        zone->add_route(hosts[r]->get_netpoint(), hosts[(r + 1) % ranks]->get_netpoint(), nullptr,
                        nullptr, {sg::LinkInRoute(link)}, false);
    }
    zone->seal();
    for (int r = 0; r < ranks; r++)
        sg::Actor::create(std::to_string(r), hosts[r], rank_main, r, ranks, part);
    engine.run();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    std::printf("{\"what\": \"simulate\", \"system\": \"SimGrid\", \"nranks\": %d, \"messages\": "
                "%d, \"simulated_us\": %.3f, "
                "\"cpu_ms\": %.3f, \"peak_mb\": %ld}\n",
                ranks, 2 * ranks * (ranks - 1), sg::Engine::get_clock() * 1e6,
                (bench_cpu_us() - start) / 1e3, usage.ru_maxrss / 1024);
    return 0;
}
