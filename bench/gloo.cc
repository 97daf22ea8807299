// SPDX-License-Identifier: Apache-2.0
// The harness on Gloo, through its C++ interface over TCP. BENCH_RANKS ranks on the loopback device, or
// the ranks of `peal exec --hosts` on the device BENCH_IFACE, which meet in the folder BENCH_STORE.
// BENCH_GLOO selects one of Gloo's implementations:
//   ring, bcube   the current interface (PyTorch uses it); the two differ for allreduce only
//   busy          the older classes, whose pairs poll in the calling thread: fast for small sizes
#include "harness.h"

#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

namespace
{

std::shared_ptr<gloo::rendezvous::Context> calm, busy;
std::string way;
std::unique_ptr<gloo::Algorithm> algorithm, busy_barrier; // of the current size, in way "busy"

[[noreturn]] void not_there(const bench_call *c)
{
    std::fprintf(stderr, "gloo: no %s in way '%s'\n", bench_collective_name(c->collective),
                 way.c_str());
    std::exit(3);
}

void call_busy(const bench_call *c)
{
    // These classes work in place. The input is copied, because the other implementations do not change it.
    if (c->collective == BENCH_ALLREDUCE || c->collective == BENCH_REDUCE_SCATTER)
        std::memcpy(c->recv, c->send, c->count * sizeof(float));
    algorithm->run();
}

void call(const bench_call *c)
{
    if (way == "busy") {
        call_busy(c);
        return;
    }
    size_t block = c->count / calm->size;
    switch (c->collective) {
    case BENCH_ALLREDUCE: {
        gloo::AllreduceOptions options(calm);
        using Algorithm = gloo::AllreduceOptions::Algorithm;
        options.setAlgorithm(way == "bcube" ? Algorithm::BCUBE : Algorithm::RING);
        options.setInput(c->send, c->count);
        options.setOutput(c->recv, c->count);
        options.setReduceFunction(
            static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
        gloo::allreduce(options);
        break;
    }
    case BENCH_ALLGATHER: {
        gloo::AllgatherOptions options(calm);
        options.setInput(c->send, block);
        options.setOutput(c->recv, c->count);
        gloo::allgather(options);
        break;
    }
    case BENCH_BROADCAST: {
        gloo::BroadcastOptions options(calm);
        options.setOutput(c->send, c->count);
        options.setRoot(0);
        gloo::broadcast(options);
        break;
    }
    case BENCH_ALL_TO_ALL: {
        gloo::AlltoallOptions options(calm);
        options.setInput(c->send, c->count);
        options.setOutput(c->recv, c->count);
        gloo::alltoall(options);
        break;
    }
    case BENCH_BARRIER: {
        gloo::BarrierOptions options(calm);
        gloo::barrier(options);
        break;
    }
    default:
        not_there(c);
    }
}

void prepare(const bench_call *c)
{
    if (way != "busy") {
        if (c->collective == BENCH_REDUCE_SCATTER)
            not_there(c);
        return;
    }
    std::vector<float *> buffer = {c->recv};
    size_t block = c->count / busy->size;
    std::vector<int> counts(busy->size, static_cast<int>(block));
    switch (c->collective) {
    case BENCH_ALLREDUCE:
        algorithm = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(busy, buffer, c->count);
        break;
    case BENCH_REDUCE_SCATTER:
        algorithm = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(busy, buffer,
                                                                                c->count, counts);
        break;
    case BENCH_ALLGATHER:
        algorithm = std::make_unique<gloo::AllgatherRing<float>>(
            busy, std::vector<const float *>{c->send}, c->recv, block);
        break;
    case BENCH_BROADCAST:
        algorithm = std::make_unique<gloo::BroadcastOneToAll<float>>(
            busy, std::vector<float *>{c->send}, c->count, 0);
        break;
    case BENCH_BARRIER:
        algorithm = std::make_unique<gloo::BarrierAllToAll>(busy);
        break;
    default:
        not_there(c);
    }
}

void barrier()
{
    if (way == "busy") {
        busy_barrier->run();
    } else {
        gloo::BarrierOptions options(calm);
        gloo::barrier(options);
    }
}

void maximum(double *values, int count)
{
    gloo::AllreduceOptions options(calm);
    options.setOutput(values, count);
    options.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::max<double>));
    gloo::allreduce(options);
}

} // namespace

int main(int argc, char **argv)
{
    const char *ranks = std::getenv("BENCH_RANKS"), *chosen = std::getenv("BENCH_GLOO");
    const char *launched = std::getenv("PEAL_RANK"), *shared = std::getenv("BENCH_STORE");
    if (launched)
        ranks = std::getenv("PEAL_SIZE");
    int size = ranks ? std::atoi(ranks) : 2;
    way = chosen ? chosen : "ring";
    char own[] = "/tmp/bench-gloo-XXXXXX";
    if (!shared && !mkdtemp(own))
        return 1;
    std::string store_path = shared ? shared : own;
    std::filesystem::create_directories(store_path);
    std::string name = "gloo, " + way;
    bench_library library = {};
    library.name = name.c_str();
    library.size = size;
    library.pin = false; // each rank has a thread for the network besides the caller's
    library.call = call;
    library.barrier = barrier;
    library.maximum = maximum;
    library.prepare = prepare;
    const char *iface = std::getenv("BENCH_IFACE");
    library.rank = launched ? std::atoi(launched) : bench_fork(size);

    gloo::transport::tcp::attr attr;
    attr.iface = iface ? iface : "lo";
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore files(store_path);
    gloo::rendezvous::PrefixStore calm_store("calm", files), busy_store("busy", files);
    calm = std::make_shared<gloo::rendezvous::Context>(library.rank, size);
    calm->connectFullMesh(calm_store, device);
    if (way == "busy") {
        busy = std::make_shared<gloo::rendezvous::Context>(library.rank, size);
        busy->connectFullMesh(busy_store, device);
        for (int r = 0; r < size; r++) {
            if (r != library.rank)
                busy->getPair(r)->setSync(true, true);
        }
        busy_barrier = std::make_unique<gloo::BarrierAllToAll>(busy);
    }
    double all_are_here = 0;
    maximum(&all_are_here, 1);
    if (library.rank == 0)
        std::filesystem::remove_all(store_path);
    int status = bench_run(&library, argc, argv);
    algorithm.reset();
    busy_barrier.reset();
    std::fflush(stdout);
    std::_Exit(status); // the peers close their sides at their own pace
}
