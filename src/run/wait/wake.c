/* SPDX-License-Identifier: Apache-2.0 */
/* Two questions of every wait: is the peer alive, and how to end its sleep. */
#include "run/span/span.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

bool peal_team_is_dead(const struct peal_team *team, uint32_t rank)
{
    if (peal_team_is_far(team, rank))
        return peal_span_is_dead(team->span, rank, NULL);
    if (team->pidfds[rank] <
        0) /* no such descriptors: rely on the pid that the owner has written */
        return !team->threads && rank != team->rank && kill(team->controls[rank]->pid, 0) != 0 &&
               errno == ESRCH;
    struct pollfd poll_fd = {team->pidfds[rank], POLLIN, 0};
    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN);
}

void peal_team_wake(const struct peal_team *team, uint32_t rank)
{
    struct peal_sleep_slot *sleep_slot = &team->sleep_slots[rank];
    /* Relaxed: the futex call orders it; the sleeper compares the value that it read before it
     * polled. */
    atomic_fetch_add_explicit(&sleep_slot->wake, 1, memory_order_relaxed);
    syscall(SYS_futex, &sleep_slot->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}
