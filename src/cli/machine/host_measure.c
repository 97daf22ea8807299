/* SPDX-License-Identifier: Apache-2.0 */
/* Measures this host for host.h: two processes, each bound to a core, do to each other what ranks do.
 *
 * Both run the same rounds. In a round each writes what the other is to read, they meet, each reads, they
 * meet again; the parent's times count, the median of the rounds. Buffers lie at the same addresses in both
 * processes: `shared` is one memory, `own` is each one's.
 */
#include "cli/machine/host.h"

#include "compute/compute.h"

#include <hwloc.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_BYTES = 16 << 20,
    TRIPS = 500,
    PATIENCE = 5000,
    TRIP_ROUNDS = 9,
    CALLS = 20000,
    WAKES = 40
};

static const uint64_t sizes[PEAL_HOST_SIZES] = {128,       512,     2 << 10, 8 << 10, 32 << 10,
                                                128 << 10, 1 << 20, 4 << 20, 16 << 20};

/* Between the two processes. Each member that one writes and the other polls has its own lines. */
struct meeting {
    _Alignas(256) _Atomic uint32_t here[2]; /* the first's; the second's is a line further */
    _Alignas(256) _Atomic uint32_t second;
    _Alignas(256) _Atomic uint32_t word; /* to sleep on */
    _Alignas(256) _Atomic uint64_t woken_at;
    _Alignas(256) uint32_t rounds; /* the parent says how many */
    pid_t pids[2];
};

/* One of the two. */
struct host_side {
    struct meeting *meeting;
    uint32_t me, turn;
    pid_t other;
    char *shared[2];                    /* the first's, the second's */
    char *own[2];                       /* source, target */
    const struct peal_compute *compute; /* what the runtime uses */
    peal_reducer *sum;
};

static uint64_t now(void)
{
    return peal_now_ns();
}

static _Atomic uint32_t *flag_of(struct host_side *s, uint32_t side)
{
    return side ? &s->meeting->second : &s->meeting->here[0];
}

/* Until the other one has said `turn`, or more: it may go on before this is seen. acquire with the other's
 * release: what each wrote before is read after. */
static void await_other(struct host_side *s, uint32_t turn)
{
    for (uint32_t polls = 0;
         atomic_load_explicit(flag_of(s, 1 - s->me), memory_order_acquire) - turn > 1u << 31;
         polls++) {
        if (polls > PATIENCE) /* the other one's core is busy with something else */
            sched_yield();
    }
}

/* Both are here. */
static void meet(struct host_side *s)
{
    s->turn++;
    atomic_store_explicit(flag_of(s, s->me), s->turn, memory_order_release);
    await_other(s, s->turn);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean of the middle half: a clock that counts in tens of nanoseconds still tells 25 from 28. */
static double median(double *values, size_t count)
{
    double sum = 0;
    size_t first = count / 4, last = count - count / 4;
    qsort(values, count, sizeof *values, compare);
    for (size_t i = first; i < last; i++)
        sum += values[i];
    return sum / (double)(last - first);
}

static void bind_to(hwloc_topology_t topology, uint32_t core)
{
    hwloc_obj_t object = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, core);
    hwloc_bitmap_t one = object ? hwloc_bitmap_dup(object->cpuset) : NULL;
    if (one) {
        hwloc_bitmap_singlify(one);
        (void)hwloc_set_cpubind(topology, one,
                                HWLOC_CPUBIND_THREAD); /* unbound, it measures more */
    }
    hwloc_bitmap_free(one);
}

/* --- what a core costs alone ------------------------------------------------------------------------ */

static double time_calls(int number)
{
    double times[9];
    for (int round = 0; round < 9; round++) {
        uint64_t start = now();
        for (int i = 0; i < CALLS / 9; i++)
            (void)syscall(number);
        times[round] = (double)(now() - start) / (CALLS / 9.0);
    }
    return median(times, 9);
}

/* --- the two together --------------------------------------------------------------------------------- */

/* The round trip of a line: the second repeats what the first says. */
static double time_trips(struct host_side *s)
{
    double times[TRIP_ROUNDS];
    for (int round = 0; round < TRIP_ROUNDS; round++) {
        uint64_t start = now();
        for (int i = 0; i < TRIPS; i++) {
            uint32_t turn = ++s->turn;
            if (s->me == 0)
                atomic_store_explicit(flag_of(s, 0), turn, memory_order_release);
            await_other(s, turn);
            if (s->me == 1)
                atomic_store_explicit(flag_of(s, 1), turn, memory_order_release);
        }
        times[round] = (double)(now() - start) / TRIPS;
        meet(s);
    }
    return median(times, TRIP_ROUNDS);
}

/* From the waker's store to the sleeper's first instruction: the second sleeps. */
static double time_wakes(struct host_side *s)
{
    double times[WAKES];
    struct timespec pause = {.tv_nsec =
                                 300000}; /* it has fallen asleep by then, or the round is short */
    for (uint32_t i = 0; i < WAKES; i++) {
        meet(s);
        if (s->me == 1) {
            while (atomic_load_explicit(&s->meeting->word, memory_order_acquire) != i + 1)
                (void)syscall(SYS_futex, &s->meeting->word, FUTEX_WAIT, i, NULL, NULL, 0);
            atomic_store_explicit(&s->meeting->woken_at, now(), memory_order_release);
        } else {
            nanosleep(&pause, NULL);
            times[i] = (double)now();
            atomic_store_explicit(&s->meeting->word, i + 1, memory_order_release);
            (void)syscall(SYS_futex, &s->meeting->word, FUTEX_WAKE, 1, NULL, NULL, 0);
        }
        meet(s);
        if (s->me == 0)
            times[i] = (double)atomic_load_explicit(&s->meeting->woken_at, memory_order_acquire) -
                       times[i];
    }
    return median(times, WAKES);
}

enum way { COPY, FETCH, PUSH, KERNEL, REDUCE, WAYS };

/* One copy of n bytes in this way. False: the kernel refuses. */
static bool copy_once(struct host_side *s, enum way way, uint64_t n)
{
    char *mine = s->shared[s->me], *theirs = s->shared[1 - s->me];
    struct iovec to = {s->own[1], n}, from = {s->own[0], n};
    const void *both[] = {s->own[0], theirs};
    switch (way) {
    case COPY:
        s->compute->copy(s->own[1], s->own[0], n);
        break;
    case FETCH:
        s->compute->copy(s->own[1], theirs, n);
        break;
    case PUSH:
        s->compute->copy(mine, s->own[0], n);
        break;
    case REDUCE:
        s->sum(s->own[1], both, 2, n / sizeof(float));
        break;
    default:
        return process_vm_readv(s->other, &to, 1, &from, 1, 0) == (ssize_t)n;
    }
    __asm__ volatile("" : : "r"(s->own[1]), "r"(mine) : "memory");
    return true;
}

/* Before a copy: lines are where a launch finds them. */
static void prepare(struct host_side *s, enum way way, uint64_t n, int round)
{
    if (way == FETCH || way == REDUCE)
        memset(s->shared[s->me], round, n);
    if (way == PUSH) {
        meet(s);
        memcpy(s->own[1], s->shared[1 - s->me], n);
    }
    if (way == COPY || way == KERNEL)
        memset(s->own[0], round, n);
}

/* One round. The copy's time; < 0: the kernel refuses. */
static double time_copy(struct host_side *s, enum way way, uint64_t n, int round)
{
    prepare(s, way, n, round);
    meet(s);
    uint64_t start = now();
    bool ok = copy_once(s, way, n);
    uint64_t end = now();
    meet(s);
    return ok ? (double)(end - start) : -1;
}

/* As many rounds as take 40 ms, so that a busy host takes no minutes. */
static double time_copies(struct host_side *s, enum way way, uint64_t n)
{
    enum { FIRST = 4, LEAST = 7, MOST = 401 };
    double times[MOST], least = 0;
    uint64_t start = now();
    for (int round = 0; round < FIRST; round++)
        times[round] = time_copy(s, way, n, round);
    if (s->me == 0)
        s->meeting->rounds = (uint32_t)peal_size_min(
            MOST, peal_size_max(LEAST, UINT64_C(40000000) * FIRST / (now() - start + 1)));
    meet(s);
    for (uint32_t round = 0; round < s->meeting->rounds; round++) {
        times[round] = time_copy(s, way, n, (int)round);
        least = times[round] < least ? times[round] : least;
    }
    size_t rounds = s->meeting->rounds;
    meet(s);
    return least < 0 ? -1 : median(times, rounds);
}

/* What reading the clock costs is in every time. */
static double clock_ns(void)
{
    double times[99];
    for (int i = 0; i < 99; i++) {
        uint64_t start = now();
        times[i] = (double)(now() - start);
    }
    return median(times, 99);
}

static void measure_pair(struct host_side *s, struct peal_host_figures *out, bool whole)
{
    double *tables[WAYS] = {out->copy, out->fetch, out->push, out->kernel, out->reduce},
           clock = clock_ns();
    meet(s);
    out->pairs[out->npairs].round_trip_ns = time_trips(s);
    if (!whole)
        return;
    out->wake_ns = time_wakes(s);
    for (int way = 0; way < WAYS; way++) {
        for (int i = 0; i < PEAL_HOST_SIZES; i++) {
            double ns = time_copies(s, (enum way)way, sizes[i]);
            out->bytes[i] = sizes[i];
            tables[way][i] = ns < 0 ? -1 : ns > clock + 1 ? ns - clock : 1;
        }
    }
    out->has_kernel = out->kernel[0] >= 0;
    out->kernel_ns = out->kernel[0];
}

static void *map(uint64_t bytes, int kind)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static enum peal_status measure_on(hwloc_topology_t topology, const uint32_t cores[2], bool whole,
                                   struct peal_host_figures *out)
{
    uint64_t shared_bytes = 2 * (uint64_t)MAX_BYTES + sizeof(struct meeting);
    char *shared = map(shared_bytes, MAP_SHARED), *own = map(2 * (uint64_t)MAX_BYTES, MAP_PRIVATE);
    enum peal_status status = PEAL_SYSTEM;
    hwloc_bitmap_t before = hwloc_bitmap_alloc();
    if (!shared || !own || !before ||
        hwloc_get_cpubind(topology, before, HWLOC_CPUBIND_THREAD) != 0)
        goto unmap;
    struct host_side side = {.meeting =
                                 (struct meeting *)(void *)(shared + 2 * (uint64_t)MAX_BYTES),
                             .shared = {shared, shared + MAX_BYTES},
                             .own = {own, own + MAX_BYTES},
                             .compute = peal_compute_best(),
                             .sum = peal_compute_best()->reducer(PEAL_FN_ADD, PEAL_F32)};
    side.meeting->pids[0] = getpid();
    pid_t child = fork();
    if (child < 0)
        goto unmap;
    side.me = child == 0;
    side.other = child ? child : side.meeting->pids[0];
    bind_to(topology, cores[side.me]);
    memset(own, 1, 2 * (size_t)MAX_BYTES);
    memset(side.shared[side.me], 1, MAX_BYTES);
    measure_pair(&side, out, whole);
    if (child == 0)
        _exit(0);
    int ended = 0;
    if (waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        status = PEAL_OK;
    (void)hwloc_set_cpubind(topology, before, HWLOC_CPUBIND_THREAD);
unmap:
    if (shared)
        munmap(shared, shared_bytes);
    if (own)
        munmap(own, 2 * (uint64_t)MAX_BYTES);
    hwloc_bitmap_free(before);
    return status;
}

/* The nearest thing that both cores are in, by hwloc. */
static void name_shared(hwloc_topology_t topology, const uint32_t cores[2], char out[static 32])
{
    hwloc_obj_t a = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, cores[0]);
    hwloc_obj_t b = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, cores[1]);
    hwloc_obj_t both = hwloc_get_common_ancestor_obj(topology, a, b);
    hwloc_obj_type_snprintf(out, 32, both, 0);
}

/* A pair of cores for each kind of thing that the first core shares with another. */
static void list_pairs(hwloc_topology_t topology, struct peal_host_figures *out)
{
    for (uint32_t core = 1; core < out->cores && out->npairs < PEAL_HOST_PAIRS; core++) {
        struct peal_host_pair pair = {.cores = {0, core}};
        bool known = false;
        name_shared(topology, pair.cores, pair.shared);
        for (uint32_t i = 0; i < out->npairs; i++)
            known |= strcmp(out->pairs[i].shared, pair.shared) == 0;
        if (!known)
            out->pairs[out->npairs++] = pair;
    }
}

static void name_processor(hwloc_topology_t topology, char *out, size_t size)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *name = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    snprintf(out, size, "%s", name ? name : "unknown processor");
}

enum peal_status peal_host_measure(struct peal_host_figures *out)
{
    hwloc_topology_t topology;
    *out = (struct peal_host_figures){0};
    if (hwloc_topology_init(&topology) != 0)
        return PEAL_SYSTEM;
    enum peal_status status = PEAL_SYSTEM;
    if (hwloc_topology_load(topology) != 0)
        goto destroy;
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    out->cores = cores > 0 ? (uint32_t)cores : 1;
    name_processor(topology, out->processor, sizeof out->processor);
    status = PEAL_UNSUPPORTED;
    if (out->cores < 2)
        goto destroy;
    list_pairs(topology, out);
    out->syscall_ns = time_calls(SYS_getppid);
    out->yield_ns = time_calls(SYS_sched_yield);
    uint32_t npairs = out->npairs;
    for (out->npairs = 0; out->npairs < npairs; out->npairs++) {
        /* Ranks 0 and 1 are on cores 0 and 1: those are measured in full. */
        const struct peal_host_pair *pair = &out->pairs[out->npairs];
        status = measure_on(topology, pair->cores, pair->cores[1] == 1, out);
        if (status != PEAL_OK)
            break;
    }
destroy:
    hwloc_topology_destroy(topology);
    return status;
}
