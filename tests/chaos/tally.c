/* SPDX-License-Identifier: Apache-2.0 */
/* Counters in memory that all ranks share. */
#include "chaos.h"

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

struct tally *tally;
uint32_t series;

bool tally_open(void)
{
    void *memory =
        mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    tally = memory;
    return true;
}

uint64_t tally_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void tally_fault(enum fault fault, uint64_t delay_ns)
{
    atomic_fetch_add(&tally->faults[fault], 1);
    if (fault == KILLED || fault == KILLED_LATER || fault == EXITS)
        atomic_store(&tally->struck_ns[series], tally_now_ns() + delay_ns);
}

void tally_report(void)
{
    uint64_t struck = atomic_load(&tally->struck_ns[series]), now = tally_now_ns();
    uint64_t longest = atomic_load(&tally->reported_ns);
    if (struck == 0 || now < struck)
        return;
    while (now - struck > longest) {
        if (atomic_compare_exchange_weak(&tally->reported_ns, &longest, now - struck))
            break;
    }
}

static void print_count(const char *name, uint64_t count)
{
    printf("%-40s %12llu\n", name, (unsigned long long)count);
}

void tally_print(double seconds)
{
    static const char *const names[FAULTS] = {
        [KILLED] = "killed",
        [KILLED_LATER] = "killed within milliseconds",
        [EXITS] = "exits without closing",
        [NO_FILES] = "no descriptor left",
        [NO_ADDRESSES] = "no address space left",
        [LEAVES] = "closes while others call",
        [MISTAKES] = "makes another call",
        [STALLS] = "stalls for longer than the time-out",
        [OTHER_ALGO] = "forces another algorithm",
    };
    uint64_t all = 0;
    printf("\n%-40s %12s\n", "one rank ...", "faults");
    for (int i = KILLED; i < FAULTS; i++) {
        print_count(names[i], tally->faults[i]);
        all += tally->faults[i];
    }
    printf("\n%-40s %12.0f\n", "seconds", seconds);
    print_count("programs", tally->programs);
    print_count("  with a rank in another pid namespace", tally->apart);
    print_count("  ranks stopped and continued", tally->stopped);
    print_count("  ranks held up for up to 3 ms", tally->slow);
    print_count("calls checked", tally->calls);
    print_count("messages checked", tally->messages);
    print_count("faults injected", all);
    print_count("wrong", tally->wrong);
    print_count("hung", tally->hung);
    print_count("leaked", tally->leaked);
    printf("%-40s %9.1f ms\n", "slowest report of a death", (double)tally->reported_ns / 1e6);
}
