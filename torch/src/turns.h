// SPDX-License-Identifier: Apache-2.0
// How long a thread of Peal's own computes before the kernel gives its core to another one.
#pragma once

#include <cstdint>

namespace peal {

// Of the thread that makes it. The threads of two ranks that make one call wait for each other again and again. Beside threads that
// compute, each of these waits ends only after the turn of such a thread, which is some milliseconds: a call of 64 MiB then takes
// longer than the computing, and a core that has ended its part stands idle. Linux (from 6.12 on) runs a thread that asks for
// short turns sooner and for as much time in all. Elsewhere nothing changes.
class Turns {
  public:
    Turns();
    // From here on, short ones: while it makes a call.
    void begin_short() const;
    // As before. A thread that is woken must not have short turns: it would take the core from whoever woke it, who is to go on.
    void end_short() const;

  private:
    // As the kernel has it: version 0 of `struct sched_attr`, which the C library does not declare everywhere.
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

    void set(uint64_t runtime_ns) const;

    Attributes own_{}; // size 0: not known
};

} // namespace peal
