/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs against peal.h, on ranks that are processes or threads.
 *
 *   chaos processes|threads|hosts|faults|thread-faults|host-faults|soak|soak-hosts SECONDS [SEED [PROGRAMS]]
 *
 * Runs the programs of seeds SEED, SEED + 1, ... until the time is over or PROGRAMS have run. Without
 * SEED, the clock gives one, which is printed. The first program that goes wrong ends the run.
 * CHAOS_TRACE=1 shows the steps of all ranks.
 *
 * With hosts, ranks are processes on two or three hosts, see comm/tests/hosts_of.h.
 *
 * soak takes all kinds in turn, two programs at a time (or CHAOS_SERIES of them), goes on after
 * failures, and ends with a table: calls checked, faults injected, programs wrong, hung or leaking.
 * Its programs are longer and have several faults each (CHAOS_LASTS=1), because a short one spends
 * most of its time on starting processes and reading the library. Between hosts, the network of half
 * of them is bad (comm/tests/bad_network.h); some encrypt, some have a thread that serves the network.
 * soak-hosts takes programs between hosts only.
 */
#include "chaos.h"
#include "comm/tests/hosts_of.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HANGS_AFTER_S = 900 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- leaks ---- */

static uint32_t count_files(void)
{
    uint32_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n;
}

static uint32_t count_windows(void)
{
    char line[512];
    uint32_t n = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        n += strstr(line, "memfd:peal") != NULL;
    if (maps)
        fclose(maps);
    return n;
}

static bool left_nothing(uint64_t seed, uint32_t files)
{
    uint32_t after = count_files(), windows = count_windows();
    if (after != files || windows != 0)
        printf("seed %llu: %u open files, %u before; %u windows mapped\n", (unsigned long long)seed,
               after, files, windows);
    if (after != files || windows != 0)
        atomic_fetch_add(&tally->leaked, 1);
    return after == files && windows == 0;
}

static bool left_no_names(const char *job)
{
    char line[512];
    bool left = false;
    FILE *sockets = fopen("/proc/net/unix", "re");
    while (sockets && fgets(line, sizeof line, sockets))
        left |= strstr(line, job) != NULL;
    if (sockets)
        fclose(sockets);
    if (left) {
        printf("a socket of job %s is left\n", job);
        atomic_fetch_add(&tally->leaked, 1);
    }
    return !left;
}

/* ---- a program ---- */

static uint32_t choose_size(uint64_t seed)
{
    uint64_t random = mix(seed, 11);
    return 2 + (uint32_t)(random % (random >> 32 & 7 ? 8 : MAX_RANKS - 1));
}

static void prepare(struct rank *me, uint64_t seed, uint32_t rank, bool threads, bool faults,
                    struct board *board)
{
    uint64_t state = mix(seed, 12);
    *me = (struct rank){.seed = seed,
                        .own = mix(mix(seed, 13), rank),
                        .rank = rank,
                        .size = choose_size(seed),
                        .steps = 5 + below(&state, 40),
                        .threads = threads,
                        .board = board,
                        .trace = getenv("CHAOS_TRACE") != NULL};
    if (getenv("CHAOS_STEPS"))
        me->steps = (uint32_t)atoi(getenv("CHAOS_STEPS"));
    me->lasts = getenv("CHAOS_LASTS") != NULL;
    if (me->lasts)
        me->steps = faults ? 5 + me->steps % 8 : 8 * me->steps;
    if (faults)
        fault_plan(me, 0, &state);
}

/* NULL: removes it. */
static void set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Random settings of the library. */
static void set_environment(uint64_t seed)
{
    uint64_t state = mix(seed, 14);
    setenv("PEAL_TIMEOUT_MS", "300000", 1);
    static const char *const pools[] = {"64K", "64K", "8M", "512K"};
    setenv("PEAL_WINDOW_POOL", pools[below(&state, 16) % 4], 1);
    set_variable("PEAL_SINGLE_COPY", below(&state, 6) == 0 ? "0" : NULL);
    set_variable("PEAL_CORES", below(&state, 8) == 0 ? "16" : NULL);
    /* The same on all ranks; another algorithm on one rank is a fault, see fault.c. */
    static const char *const forced[] = {
        "allreduce=ring,broadcast=binomial,allgather=central,all_to_all=send",
        "allreduce=halving,broadcast=chain,reduce=binomial,barrier=dissemination",
        "allreduce=relay,reduce_scatter=relay,scan=doubling,exscan=doubling",
        "broadcast=direct,reduce=direct,allgather=send",
        "broadcast=flat,allreduce=doubling,reduce_scatter=send,all_to_all=central"};
    enum { FORCED = sizeof forced / sizeof *forced };
    uint64_t which = below(&state, 3 * FORCED);
    set_variable("PEAL_ALGO", which < FORCED ? forced[which] : NULL);
}

static int run_process(struct rank *me, const char *job, const struct peal_store *store)
{
    uint64_t seed = me->seed;
    uint32_t files = count_files();
    struct peal_open options = {
        .rank = me->rank, .size = me->size, .job = job, .quiet = 1, .store = store};
    struct peal_comm *world = NULL;
    if (peal_comm_open(&options, &world) != PEAL_OK) {
        printf("seed %llu: open: %s\n", (unsigned long long)me->seed, peal_comm_error(NULL));
        return 1;
    }
    program_run(me, world);
    if (me->wrong)
        return 1;
    flights_free(me);
    return left_nothing(seed, files) ? 0 : 1;
}

/* Waits until all ranks have ended, and continues those that stopped themselves. */
static bool reap(pid_t *pids, uint32_t size, uint64_t seed, bool faults)
{
    double limit = now() + HANGS_AFTER_S;
    uint32_t left = size;
    bool ok = true, ended_early = false, slow = false;
    while (left > 0) {
        if (!slow && now() > limit - HANGS_AFTER_S + 10) {
            slow = true;
            printf("seed %llu: %u ranks are slow\n", (unsigned long long)seed, left);
        }
        int status;
        pid_t pid = waitpid(-1, &status, WUNTRACED | WNOHANG);
        if (pid <= 0) {
            nanosleep(&(struct timespec){0, 300000}, NULL);
            if (now() < limit)
                continue;
            printf("seed %llu: %u ranks hang\n", (unsigned long long)seed, left);
            if (!ended_early) /* otherwise the failure has been counted */
                atomic_fetch_add(&tally->hung, 1);
            ok = false;
            if (getenv("CHAOS_KEEP"))
                pause();
            for (uint32_t r = 0; r < size; r++)
                kill(pids[r], SIGKILL);
            limit = now() + HANGS_AFTER_S;
            continue;
        }
        if (WIFSTOPPED(status)) {
            nanosleep(&(struct timespec){0, 2000000}, NULL);
            kill(pid, SIGCONT);
            continue;
        }
        left--;
        bool killed = WIFSIGNALED(status) &&
                      (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGALRM) && faults;
        if (status != 0 && !killed) {
            if (ok)
                printf("seed %llu: a rank ended with %x\n", (unsigned long long)seed,
                       (unsigned)status);
            ok = false;
            if (!ended_early) /* the others wait for it: allow less time than for a hang */
                limit = now() + 5;
            ended_early = true;
        }
        for (uint32_t r = 0; r < size; r++)
            pids[r] = pids[r] == pid ? 0x7ffffff : pids[r];
    }
    return ok;
}

/* Starts a rank; some have a pid namespace of their own, if the system permits. */
static pid_t start_rank(uint64_t seed, uint32_t rank, bool *apart)
{
    uint64_t random = mix(seed, 15);
    pid_t pid = -1;
    *apart = random % 6 == 0 && rank == (random >> 32) % choose_size(seed);
    if (*apart)
        pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
    if (pid > 0)
        atomic_fetch_add(&tally->apart, 1);
    if (pid >= 0)
        return pid;
    *apart = false;
    return fork();
}

static bool run_processes(uint64_t seed, bool faults, struct board *board)
{
    uint32_t size = choose_size(seed);
    struct peal_store *store = hosts_store_new();
    bool apart;
    pid_t pids[MAX_RANKS];
    char job[64];
    snprintf(job, sizeof job, "chaos-%d-%llu", (int)getpid(), (unsigned long long)seed);
    fflush(stdout);
    for (uint32_t r = 0; r < size; r++) {
        pids[r] = start_rank(seed, r, &apart);
        if (pids[r] == 0) {
            static struct rank me;
            prepare(&me, seed, r, false, faults, board);
            me.apart = apart;
            hosts_place(r, size);
            int code = run_process(&me, job, store);
            fflush(stdout);
            exit(code);
        }
    }
    bool ok = reap(pids, size, seed, faults);
    hosts_store_free(store);
    return ok && left_no_names(job);
}

struct worker {
    struct rank rank;
    struct peal_comm *comm;
    pthread_t thread;
};

static void *run_worker(void *context)
{
    struct worker *worker = context;
    program_run(&worker->rank, worker->comm);
    return NULL;
}

static bool run_threads(uint64_t seed, bool faults, struct board *board)
{
    uint32_t size = choose_size(seed), files = count_files();
    struct peal_comm *comms[MAX_RANKS];
    struct worker *workers = calloc(size, sizeof *workers);
    bool ok = true;
    if (!workers || peal_comm_open_threads(size, comms) != PEAL_OK) {
        printf("seed %llu: open: %s\n", (unsigned long long)seed, peal_comm_error(NULL));
        return false;
    }
    for (uint32_t r = 0; r < size; r++) {
        prepare(&workers[r].rank, seed, r, true, faults, board);
        workers[r].comm = comms[r];
    }
    for (uint32_t r = 0; r < size; r++)
        pthread_create(&workers[r].thread, NULL, run_worker, &workers[r]);
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += HANGS_AFTER_S;
    for (uint32_t r = 0; r < size; r++) {
        if (pthread_timedjoin_np(workers[r].thread, NULL, &limit) != 0) {
            printf("seed %llu: rank %u hangs\n", (unsigned long long)seed, r);
            atomic_fetch_add(&tally->hung, 1);
            fflush(stdout);
            if (getenv("CHAOS_KEEP"))
                pause();
            _exit(1);
        }
        ok &= !workers[r].rank.wrong;
    }
    for (uint32_t r = 0; r < size; r++)
        flights_free(&workers[r].rank);
    free(workers);
    return ok && left_nothing(seed, files);
}

static struct board *board_new(void)
{
    void *board =
        mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return board == MAP_FAILED ? NULL : board;
}

/* The kinds of programs, as they are named on the command line. */
static const struct mode {
    const char *name;
    bool threads, hosts, faults;
} modes[] = {{"processes", false, false, false},   {"threads", true, false, false},
             {"hosts", false, true, false},        {"faults", false, false, true},
             {"thread-faults", true, false, true}, {"host-faults", false, true, true}};
enum { MODES = sizeof modes / sizeof *modes };

static void choose_hosts(bool hosts, uint64_t seed)
{
    static const char *const kinds[] = {"2", "3", "2 mixed", "3 mixed"};
    set_variable("TEST_HOSTS", hosts ? kinds[mix(seed, 16) % 4] : NULL);
}

/* The links between the hosts of a soak. */
static void choose_links(uint64_t seed)
{
    uint64_t random = mix(seed, 17);
    char network[32];
    snprintf(network, sizeof network, "bad:%llu", (unsigned long long)(random >> 40));
    set_variable("TEST_NETWORK", random % 2 == 0 ? network : NULL);
    set_variable("PEAL_NET_CRYPT", (random >> 8) % 3 == 0 ? "1" : NULL);
    set_variable("PEAL_PROGRESS", (random >> 16) % 3 == 0 ? "thread" : NULL);
}

/* Prints the command that runs one program again. */
static void print_failed(const struct mode *mode, uint64_t seed)
{
    printf("failed: %schaos %s 60 %llu 1\n", getenv("CHAOS_LASTS") ? "CHAOS_LASTS=1 " : "",
           mode->name, (unsigned long long)seed);
}

static bool run_program(const struct mode *mode, uint64_t seed, struct board *board)
{
    memset((void *)board, 0, sizeof *board);
    atomic_store(&tally->struck_ns[series], 0);
    set_environment(seed);
    choose_hosts(mode->hosts, seed);
    if (getenv("CHAOS_LASTS"))
        choose_links(seed);
    bool ok = mode->threads ? run_threads(seed, mode->faults, board)
                            : run_processes(seed, mode->faults, board);
    atomic_fetch_add(&tally->programs, 1);
    if (!ok)
        print_failed(mode, seed);
    return ok;
}

/* The same; ranks as threads get a process of their own, which may hang or crash. */
static bool run_apart(const struct mode *mode, uint64_t seed, struct board *board)
{
    int status = 0;
    if (!mode->threads)
        return run_program(mode, seed, board);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        bool ok = run_program(mode, seed, board);
        fflush(stdout);
        _exit(ok ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return false;
    if (WIFSIGNALED(status)) {
        printf("seed %llu: signal %d\n", (unsigned long long)seed, WTERMSIG(status));
        print_failed(mode, seed);
        atomic_fetch_add(&tally->wrong, 1);
    }
    return status == 0;
}

static const struct mode *find_mode(const char *name)
{
    for (int i = 0; i < MODES; i++) {
        if (strcmp(modes[i].name, name) == 0)
            return &modes[i];
    }
    return NULL;
}

/* The kinds in a soak. Those with faults are more frequent, because one without has hundreds of
 * calls. */
enum { TURNS = 8 };
static const struct soak {
    const char *name;
    const char *turns[TURNS];
} soaks[] = {
    {"soak",
     {"processes", "faults", "thread-faults", "threads", "host-faults", "faults", "thread-faults",
      "hosts"}},
    {"soak-hosts",
     {"host-faults", "host-faults", "host-faults", "hosts", "host-faults", "host-faults",
      "host-faults", "hosts"}},
};

static const struct soak *find_soak(const char *name)
{
    for (size_t i = 0; i < sizeof soaks / sizeof *soaks; i++) {
        if (strcmp(soaks[i].name, name) == 0)
            return &soaks[i];
    }
    return NULL;
}

struct limits {
    double until;
    uint64_t seed, programs;
    const struct soak *soak; /* NULL: programs of one kind */
};

/* Runs one program after the other, until the time or their number is over. Returns how many
 * failed. */
static uint64_t soak_series(const struct limits *limits)
{
    uint64_t failed = 0;
    struct board *board = board_new();
    while (board && now() < limits->until) {
        uint64_t n = atomic_fetch_add(&tally->next, 1);
        if (n >= limits->programs)
            break;
        failed += !run_apart(find_mode(limits->soak->turns[n % TURNS]), limits->seed + n, board);
    }
    return failed + !board;
}

static bool soak(const struct limits *limits)
{
    const char *wanted = getenv("CHAOS_SERIES");
    uint32_t n = wanted ? (uint32_t)atoi(wanted) : 2;
    pid_t pids[SERIES];
    bool ok = true;
    if (n < 1 || n > SERIES)
        return false;
    setenv("CHAOS_LASTS", "1", 1);
    for (series = 0; series < n; series++) {
        pids[series] = fork();
        if (pids[series] == 0) {
            uint64_t failed = soak_series(limits);
            fflush(stdout);
            _exit(failed > 0);
        }
    }
    for (uint32_t i = 0; i < series; i++) {
        int status = 1;
        ok &= pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && status == 0;
    }
    return ok;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const struct mode *mode = find_mode(argv[1]);
    const struct soak *kinds = find_soak(argv[1]);
    if (!mode && !kinds)
        return 2;
    double began = now();
    struct limits limits = {.until = began + atof(argv[2]),
                            .seed = (uint64_t)time(NULL) * 100000,
                            .programs = UINT64_MAX,
                            .soak = kinds};
    if (argc > 3)
        limits.seed = strtoull(argv[3], NULL, 0);
    if (argc > 4)
        limits.programs = strtoull(argv[4], NULL, 0);
    struct board *board = board_new();
    if (!board || !tally_open())
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%s from seed %llu\n", argv[1], (unsigned long long)limits.seed);
    bool ok = true;
    if (kinds) {
        ok = soak(&limits);
        tally_print(now() - began);
        return ok ? 0 : 1;
    }
    uint64_t n = 0;
    while (ok && n < limits.programs && now() < limits.until)
        ok = run_program(mode, limits.seed + n++, board);
    printf("%llu programs\n", (unsigned long long)n);
    return ok ? 0 : 1;
}
