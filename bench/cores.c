/* SPDX-License-Identifier: Apache-2.0 */
/* How far apart the first two processors of this process are: the round trip of one cache line
 * between them, in nanoseconds, as one line of JSON. A virtual machine's host may move them between
 * caches at any time, and the time of messages between ranks then changes severalfold.
 *
 *   cores
 */
#include "measure.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 15, TRIPS = 1000 };

/* Each side writes a counter in its own cache line: the child repeats what the parent wrote. */
struct lines {
    _Alignas(256) _Atomic uint32_t asked;
    _Alignas(256) _Atomic uint32_t answered;
};

static void answer_all(struct lines *lines)
{
    for (uint32_t n = 1; n <= ROUNDS * TRIPS; n++) {
        while (atomic_load_explicit(&lines->asked, memory_order_acquire) != n)
            ;
        atomic_store_explicit(&lines->answered, n, memory_order_release);
    }
}

static void ask(struct lines *lines, uint32_t n)
{
    atomic_store_explicit(&lines->asked, n, memory_order_release);
    while (atomic_load_explicit(&lines->answered, memory_order_acquire) != n)
        ;
}

int main(void)
{
    if (bench_processors() < 2) {
        fputs("cores: this process may use one processor only\n", stderr);
        return 1;
    }
    struct lines *lines = bench_shared(sizeof *lines);
    pid_t child = fork();
    if (child < 0) {
        perror("cores: fork");
        return 1;
    }
    bench_pin(child == 0);
    if (child == 0) {
        answer_all(lines);
        _exit(0);
    }
    double trips_ns[ROUNDS];
    uint32_t n = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_now_us();
        for (int trip = 0; trip < TRIPS; trip++)
            ask(lines, ++n);
        trips_ns[round] = (bench_now_us() - start) * 1e3 / TRIPS;
    }
    waitpid(child, NULL, 0);
    printf("{\"round_trip_ns\": %.0f}\n", bench_median(trips_ns, ROUNDS));
    return 0;
}
