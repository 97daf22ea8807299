// SPDX-License-Identifier: Apache-2.0
// How the queue's thread shares its core with the program.
#pragma once

#include <cstdint>

namespace peal {

// For the thread that constructs it. `program_is_plain`: the program's threads have the usual policy. A thread that is then
// SCHED_BATCH was started by a thread of a queue, for instance in a callback, and has inherited that.
//
// Between calls it is a SCHED_BATCH thread, which does not preempt the caller that wakes it. The caller goes on; if it waits soon,
// it makes the call itself, and if it sleeps or computes for long, the thread makes it.
//
// During a call it has short time slices. The threads of two ranks that make one call wait for each other many times. If both
// share their cores with threads that compute, each wait lasts until the computing thread's time slice ends, which takes
// milliseconds: a call of 64 MiB then outlasts the computing, and a core is idle meanwhile. With a short time slice a thread runs
// sooner, and for as much time in all. Kernels before Linux 6.12 ignore the request.
class Turns {
  public:
    explicit Turns(bool program_is_plain);
    void begin_call() const;
    void end_call() const;

  private:
    // Version 0 of the kernel's `struct sched_attr`, which not every C library declares.
    struct Attributes {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns;
        uint64_t deadline_ns;
        uint64_t period_ns;
    };

    void set(uint32_t policy, uint64_t runtime_ns) const;

    Attributes own_{}; // size 0: do not change anything
};

} // namespace peal
