// SPDX-License-Identifier: Apache-2.0
// Kernels that do what a recording cannot show. The comment after each such line is what must be said of it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <future>
#include <random>
#include <unistd.h>

#include <pto/pto-inst.hpp>
#include "acl/acl.h"
#include "pto/comm/pto_comm_inst.hpp"
#include "tensor.h"

using namespace pto;

extern int is_nowhere(int);
static volatile int64_t got;

static float *memory(int64_t *args, int i) {
    return (float *)((ChipTensor *)args[i])->buffer.addr; // is an argument missing in --args?
}
static int seed() {
    std::random_device device; // the kernel asks for random numbers, which
    return (int)device();
}

extern "C" {
void thread(int64_t *) { std::thread([] {}).join(); }                // the kernel starts a thread, which
void task(int64_t *) { got = std::async([] { return 1; }).get(); }   // the kernel starts a thread, which
void file(int64_t *) { fopen("left", "w"); }                         // the kernel uses files by fopen
void stream(int64_t *) { std::ofstream("left") << 1; }               // the kernel uses files, which
void clock_c(int64_t *) { got = time(nullptr); }                     // the kernel reads a clock by time
void clock_cpp(int64_t *) { got = std::chrono::steady_clock::now().time_since_epoch().count(); } // the kernel reads a clock
void chance_c(int64_t *) { got = rand(); }                           // the kernel asks for random numbers by rand
void chance_cpp(int64_t *) { got = seed(); }
void home(int64_t *) { got = getenv("HOME") != nullptr; }            // the kernel calls getenv
void nowhere(int64_t *) { got = is_nowhere(3); }                     // the kernel calls 'is_nowhere(int)', which is not there
void host(int64_t *) { aclrtMalloc(nullptr, 3); }                    // the kernel calls 'aclrtMalloc', which is not there
void beyond(int64_t *args) { memory(args, 0)[32] = 1; }              // beyond the end of what it was given
void missing(int64_t *args) { memory(args, 9)[0] = 1; }
void shared_atomic(int64_t *args) {
    __atomic_fetch_add((int32_t *)memory(args, 2), 1, __ATOMIC_SEQ_CST); // an atomic of C++ on memory that the kernel was given
}
// Its own memory and numbers that are the same each time are a kernel's own business.
void harmless(int64_t *args) {
    std::atomic<int> own{0};
    own.fetch_add(1);
    std::mt19937 numbers(own.load());
    memory(args, 1)[numbers() % 2] = 1;
    printf("harmless\n");
}
}
