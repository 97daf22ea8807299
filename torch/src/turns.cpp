// SPDX-License-Identifier: Apache-2.0
// See turns.h. Failures are not reported: turns are then as long as the kernel makes them.
#include "turns.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace peal {

static const uint64_t SHORT_TURN_NS = 100000; // the least that the kernel takes

Turns::Turns()
{
    Attributes found{};
    bool known = syscall(SYS_sched_getattr, 0, &found, sizeof found, 0) == 0;
    if (known && found.policy == SCHED_OTHER && found.runtime_ns > SHORT_TURN_NS) // 0: the kernel has no such wish
        own_ = found;
}

void Turns::set(uint64_t runtime_ns) const
{
    if (own_.size == 0)
        return;
    Attributes wanted = own_;
    wanted.runtime_ns = runtime_ns;
    (void)syscall(SYS_sched_setattr, 0, &wanted, 0);
}

void Turns::begin_short() const
{
    set(SHORT_TURN_NS);
}

void Turns::end_short() const
{
    set(own_.runtime_ns);
}

} // namespace peal
