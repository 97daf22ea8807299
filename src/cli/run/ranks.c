/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a command, as children of this process or as its threads.
 *
 * As processes: this process forks all ranks and then only waits; it is not a rank itself. Each
 * child opens its own communicator, which the common job name connects, and runs the body. Children
 * are killed if this process ends, whatever the reason. When a child ends, this process writes how
 * into a file that all ranks have inherited (PEAL_STATUS_FD), so that the others can report it
 * instead of a time-out. If not all can be started, those that were are killed.
 *
 * As threads: this process opens all communicators together, and closes them after every thread has
 * ended.
 */
#include "cli/run/ranks.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_number(const char *name, uint32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    setenv(name, text, 1);
}

/* A port that nobody uses now; 0: the system has none. */
static uint16_t find_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    bool found = bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
                 getsockname(fd, (struct sockaddr *)&at, &len) == 0;
    close(fd);
    return found ? ntohs(at.sin_port) : 0;
}

void peal_ranks_set_master(const char *host)
{
    enum { USUAL = 29500 };
    uint16_t port = find_port();
    if (!getenv("MASTER_PORT"))
        set_number("MASTER_PORT", port ? port : USUAL);
    setenv("MASTER_ADDR", host, 0);
}

void peal_ranks_set_torch(uint32_t rank, uint32_t size, uint32_t local, uint32_t local_size)
{
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    set_number("LOCAL_RANK", local);
    set_number("LOCAL_WORLD_SIZE", local_size);
}

int peal_ranks_status_open(uint32_t count)
{
    int fd = memfd_create("peal-status", 0); /* inherited */
    if (fd >= 0 && ftruncate(fd, (off_t)(count * sizeof(uint64_t))) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void peal_ranks_status_put(int fd, uint32_t rank, pid_t pid, int wait_status)
{
    uint64_t word = (uint64_t)pid << 32 | (uint32_t)wait_status;
    ssize_t done = pwrite(fd, &word, sizeof word, (off_t)(rank * sizeof word));
    (void)done; /* only a report would be less precise */
}

int peal_ranks_ended(uint32_t rank, pid_t pid, int wait_status)
{
    if (WIFEXITED(wait_status))
        return WEXITSTATUS(wait_status);
    int number = WTERMSIG(wait_status);
    fprintf(stderr, "peal exec: rank %u (pid %d) was killed by signal %d (%s)\n", rank, (int)pid,
            number, strsignal(number));
    return 128 + number;
}

/* A user who runs a kernel to try it should not have to wait for half an hour. */
static void set_patience(const struct peal_ranks *ranks)
{
    setenv("PEAL_TIMEOUT_MS", "60000", 0);
    if (ranks->warn_ms && !getenv("PEAL_WARN_MS"))
        set_number("PEAL_WARN_MS", ranks->warn_ms);
}

/* ---- processes ---- */

static int run_child(const struct peal_cli *cli, const struct peal_ranks *ranks,
                     const struct peal_open *options, pid_t parent)
{
    struct peal_comm *comm;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it ended before it could be watched */
        return PEAL_EXIT_OTHER;
    if (ranks->bind)
        setenv("PEAL_BIND", "wrap", 0);
    set_patience(ranks);
    if (peal_comm_open(options, &comm) != PEAL_OK)
        return peal_cli_fail(cli, "%s", peal_comm_error(NULL));
    int code = ranks->body(comm, ranks->context);
    peal_comm_close(comm);
    if (!peal_cli_flush(cli) && code == PEAL_EXIT_OK)
        code = PEAL_EXIT_OTHER;
    return code;
}

struct processes {
    pid_t *pids; /* 0: it has ended */
    uint32_t started;
    int status_fd;
};

static void kill_all(const struct processes *p)
{
    for (uint32_t r = 0; r < p->started; r++) {
        if (p->pids[r])
            kill(p->pids[r], SIGKILL);
    }
}

static bool start_all(const struct peal_cli *cli, const struct peal_ranks *ranks,
                      struct processes *p)
{
    char job[40], number[16];
    snprintf(number, sizeof number, "%d", p->status_fd);
    setenv("PEAL_STATUS_FD", number, 1);
    (void)peal_job_name(job, sizeof job); /* the buffer is large enough */
    fflush(stdout);
    fflush(stderr);
    const pid_t parent = getpid();
    for (; p->started < ranks->count; p->started++) {
        struct peal_open options = {
            .size = ranks->count, .rank = p->started, .job = job, .quiet = ranks->quiet};
        pid_t pid = fork();
        if (pid == 0)
            _exit(run_child(cli, ranks, &options, parent));
        if (pid < 0) {
            peal_cli_fail(cli, "cannot start rank %u: %s", p->started, strerror(errno));
            return false;
        }
        p->pids[p->started] = pid;
    }
    return true;
}

/* The highest exit code. If the reader of a rank's output ends (`peal bench ... | head`), all ranks
 * are ended before they notice, and then this process, like a program of one process. */
static int wait_all(const struct peal_cli *cli, struct processes *p)
{
    int worst = PEAL_EXIT_OK;
    bool reader_left = false;
    for (uint32_t left = p->started; left > 0;) {
        int status;
        pid_t pid = wait(&status);
        if (pid < 0 && errno != EINTR)
            break;
        uint32_t rank = 0;
        while (rank < p->started && p->pids[rank] != pid)
            rank++;
        if (rank == p->started)
            continue;
        left--;
        p->pids[rank] = 0;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) {
            reader_left = true;
            kill_all(p);
        }
        peal_ranks_status_put(p->status_fd, rank, pid, status);
        int code = PEAL_EXIT_OTHER;
        if (WIFEXITED(status))
            code = WEXITSTATUS(status);
        if (WIFSIGNALED(status) && !reader_left)
            peal_cli_fail(cli, "rank %u was killed by signal %d", rank, WTERMSIG(status));
        if (code > worst)
            worst = code;
    }
    if (reader_left)
        raise(SIGPIPE);
    return worst;
}

static int run_processes(const struct peal_cli *cli, const struct peal_ranks *ranks)
{
    struct processes p = {.pids = calloc(ranks->count, sizeof *p.pids),
                          .status_fd = peal_ranks_status_open(ranks->count)};
    int worst = PEAL_EXIT_OTHER;
    if (!p.pids || p.status_fd < 0) {
        peal_cli_fail(cli, "cannot start ranks: %s", strerror(errno));
        goto close_status;
    }
    bool all = start_all(cli, ranks, &p);
    if (!all)
        kill_all(&p);
    worst = wait_all(cli, &p);
    if (!all)
        worst = PEAL_EXIT_OTHER;
close_status:
    if (p.status_fd >= 0)
        close(p.status_fd);
    free(p.pids);
    return worst;
}

/* ---- threads ---- */

struct rank_thread {
    pthread_t id;
    const struct peal_ranks *ranks;
    struct peal_comm *comm;
    int code;
};

static void *run_thread(void *argument)
{
    struct rank_thread *thread = argument;
    thread->code = thread->ranks->body(thread->comm, thread->ranks->context);
    return NULL;
}

static int run_threads(const struct peal_cli *cli, const struct peal_ranks *ranks)
{
    struct peal_comm *comms[PEAL_MOST_RANKS];
    set_patience(ranks);
    if (peal_comm_open_threads(ranks->count, comms) != PEAL_OK)
        return peal_cli_fail(cli, "%s", peal_comm_error(NULL));
    struct rank_thread *threads = calloc(ranks->count, sizeof *threads);
    int worst = threads ? PEAL_EXIT_OK : peal_cli_fail(cli, "out of memory");
    uint32_t started = 0;
    for (; started < (threads ? ranks->count : 0); started++) {
        threads[started] = (struct rank_thread){.ranks = ranks, .comm = comms[started]};
        int error = pthread_create(&threads[started].id, NULL, run_thread, &threads[started]);
        if (error) {
            worst = peal_cli_fail(cli, "cannot start rank %u: %s", started, strerror(error));
            break;
        }
    }
    for (uint32_t r = 0; r < started; r++) {
        pthread_join(threads[r].id, NULL);
        if (threads[r].code > worst)
            worst = threads[r].code;
    }
    for (uint32_t r = 0; r < ranks->count; r++)
        peal_comm_close(comms[r]);
    free(threads);
    return worst;
}

bool peal_ranks_platform(const struct peal_cli *cli, const char *platform)
{
    if (!platform)
        return true;
    bool known = strcmp(platform, "native") == 0 ||
                 (strncmp(platform, "sim:", 4) == 0 && platform[4] != '\0');
    if (!known)
        peal_cli_usage(cli, "--platform is 'native' or 'sim:MACHINE', not '%s'", platform);
    else
        setenv("PEAL_PLATFORM", platform, 1);
    return known;
}

/* Restricts this process and its ranks to these cores. False after a message. */
static bool use_cores(const struct peal_cli *cli, const struct peal_ints *cores)
{
    cpu_set_t allowed, set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        CPU_ZERO(&allowed);
    for (size_t i = 0; i < cores->len; i++) {
        bool there = cores->at[i] < CPU_SETSIZE && CPU_ISSET((size_t)cores->at[i], &allowed);
        if (!there) {
            peal_cli_usage(cli, "--devices: there is no core %lld", (long long)cores->at[i]);
            return false;
        }
        CPU_SET((size_t)cores->at[i], &set);
    }
    if (sched_setaffinity(0, sizeof set, &set) == 0)
        return true;
    peal_cli_fail(cli, "cannot use these cores: %s", strerror(errno));
    return false;
}

/* "0-3" as "0..3". */
static void spread_ranges(const char *devices, struct peal_text *out)
{
    for (const char *at = devices; *at; at++) {
        if (*at == '-' && at > devices)
            peal_text_puts(out, "..");
        else
            peal_text_printf(out, "%c", *at);
    }
}

bool peal_ranks_devices(const struct peal_cli *cli, const char *devices, uint32_t *count)
{
    struct peal_text list = {0}, error = {0};
    struct peal_ints at = {0};
    spread_ranges(devices, &list);
    bool good = peal_ints_parse(peal_text_get(&list), cli->arena, &at, &error);
    if (!good)
        peal_cli_usage(cli, "--devices: %s", peal_text_get(&error));
    peal_text_release(&list);
    peal_text_release(&error);
    for (size_t i = 0; good && i < at.len; i++) {
        bool wrong = at.at[i] < 0 || (i && at.at[i] <= at.at[i - 1]) ||
                     (peal_ranks_machine() && at.at[i] != (int64_t)i);
        if (wrong)
            peal_cli_usage(cli, "--devices: %s",
                           peal_ranks_machine() ? "a modelled machine's are numbered from 0 on"
                                                : "each is named once, in order");
        good = !wrong;
    }
    good = good && (peal_ranks_machine() || use_cores(cli, &at));
    *count = (uint32_t)at.len;
    return good;
}

const char *peal_ranks_machine(void)
{
    const char *platform = getenv("PEAL_PLATFORM");
    if (platform && strncmp(platform, "sim:", 4) == 0)
        return platform + 4;
    return NULL;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    if (x < y)
        return -1;
    return x > y;
}

enum peal_status peal_ranks_median(struct peal_comm *comm, const double *times, uint64_t n,
                                   double *out)
{
    double *slowest = calloc(n, sizeof *slowest);
    if (!slowest)
        return PEAL_NO_MEMORY;
    enum peal_status status = peal_allreduce(comm, times, slowest, n, PEAL_F64, PEAL_MAX);
    if (status == PEAL_OK) {
        qsort(slowest, n, sizeof *slowest, compare_doubles);
        *out = slowest[n / 2];
    }
    free(slowest);
    return status;
}

int peal_ranks_fail(const char *command, struct peal_comm *comm, enum peal_status status)
{
    /* The rank that noticed has reported it. */
    bool told = status == PEAL_TIMEOUT || status == PEAL_PEER_DEAD || status == PEAL_MISMATCH;
    const char *why = told ? "" : peal_comm_error(comm);
    fflush(stdout);
    fprintf(stderr, "peal %s: %s%s%s\n", command, peal_status_text(status), *why ? ": " : "", why);
    return PEAL_EXIT_OTHER;
}

int peal_ranks_memory_limit(const struct peal_cli *cli, const struct peal_ranks *ranks)
{
    char why[256] = "";
    if (peal_memory_check(ranks->count, ranks->threads, ranks->bytes, why, sizeof why) == PEAL_OK)
        return PEAL_EXIT_OK;
    return peal_cli_fail(cli, "not enough memory: %s", why);
}

int peal_ranks_run(const struct peal_cli *cli, const struct peal_ranks *ranks)
{
    assert(ranks->count >= 1 && ranks->count <= PEAL_MOST_RANKS && "commands have checked it");
    int code = peal_ranks_memory_limit(cli, ranks);
    if (code != PEAL_EXIT_OK)
        return code;
    if (ranks->threads)
        return run_threads(cli, ranks);
    return run_processes(cli, ranks);
}
