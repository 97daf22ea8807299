/* SPDX-License-Identifier: Apache-2.0 */
/* peal exec --hosts: one agent per host, started by ssh or by a command that the user gives. This
 * process gathers what ranks exchange, prints what they write, and reports how they end.
 *
 * This process talks to agents (agent.c) over their standard input and output, in messages of
 * wire.h, and to no other process. What ranks of different hosts must know about each other before
 * they are connected passes through it. It owns the agents and, through them, the ranks: an agent
 * whose input ends kills its ranks and ends, so that no host keeps ranks of a job that has ended.
 *
 * With --join the last rank is one more process: the one that started this one, connected by a
 * socket. It drives workers on several hosts (src/driver/hosts). It takes part in the meetings and in
 * nothing else, and when it ends, the ranks are ended.
 *
 * A rank's end is reported once, after everything that it wrote. The first rank that fails decides
 * the exit code and, with a limit, when the others are ended.
 */
#include "cli/run/hosts.h"

#include "cli/run/ranks.h"
#include "cli/run/wire.h"
#include "run/run.h"
#include <peal/peal.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct host {
    const struct peal_hosts_entry *entry;
    pid_t pid; /* of the process that connects to its agent */
    struct peal_wire wire;
    bool greeted; /* the agent has sent its greeting */
    bool ended;
};

struct host_rank {
    bool ended;
    int code;
    bool has_row;
    uint8_t *row;
    uint32_t row_bytes;
    struct peal_text lines[2]; /* of output and errors: the incomplete last line */
};

struct hosts_job {
    const struct peal_cli *cli;
    const struct peal_hosts_options *options;
    struct peal_hosts_list list;
    struct host *hosts;
    struct host_rank *ranks;
    uint32_t size; /* of the job: the ranks, and the process that joins */
    uint32_t left, rows;
    struct peal_wire caller; /* the process that joins: the last rank */
    bool left_by_caller;     /* it has ended, and the ranks are being ended */
    struct peal_hosts_welcome welcome;
    char failed[256]; /* why meetings cannot be completed; "": they can */
    int signals;
    int code;          /* of the first rank that failed */
    int64_t countdown; /* tenths of a second until the others are ended; -1: none */
};

/* ---- starting ---- */

/* Environment variables that are passed on: Peal's, torch's meeting place, and where libraries are
 * found. */
static bool goes_along(const char *setting)
{
    static const char *const own[] = {
        "PEAL_RANK=", "PEAL_SIZE=", "PEAL_JOB=", "PEAL_MEET_FD=", "PEAL_STATUS_FD="};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strncmp(setting, own[i], strlen(own[i])) == 0)
            return false;
    }
    return strncmp(setting, "PEAL_", 5) == 0 || strncmp(setting, "MASTER_", 7) == 0 ||
           strncmp(setting, "LD_LIBRARY_PATH=", 16) == 0 ||
           strncmp(setting, "PYTHONPATH=", 11) == 0 ||
           strncmp(setting, "OMP_NUM_THREADS=", 16) == 0;
}

static void put_start(struct host *host, const struct peal_hosts_start *common, char **args)
{
    struct peal_text message = {0};
    struct peal_hosts_start start = *common;
    char folder[4096];
    start.first = host->entry->first;
    start.count = host->entry->count;
    memcpy(start.host, host->entry->name, sizeof start.host);
    for (char **at = args; *at; at++)
        start.nargs++;
    for (char **at = environ; *at; at++)
        start.nsettings += goes_along(*at);
    peal_text_add(&message, (const char *)&start, sizeof start);
    if (!getcwd(folder, sizeof folder))
        snprintf(folder, sizeof folder, "/");
    peal_text_add(&message, folder, strlen(folder) + 1);
    for (char **at = args; *at; at++)
        peal_text_add(&message, *at, strlen(*at) + 1);
    for (char **at = environ; *at; at++) {
        if (goes_along(*at))
            peal_text_add(&message, *at, strlen(*at) + 1);
    }
    peal_wire_put(&host->wire, PEAL_HOSTS_START, 0, message.at, message.len);
    explicit_bzero(&start, sizeof start);
    explicit_bzero(message.at, message.len);
    peal_text_release(&message);
}

static bool start_agent(struct hosts_job *job, struct host *host, const char *self)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    char **command =
        peal_hosts_command(job->options->via, host->entry->name, self, job->cli->arena);
    if (!command || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return false;
    host->pid = fork();
    if (host->pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        setpgid(0, 0); /* Ctrl-C reaches it through this process, once */
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        execvp(command[0], command);
        fprintf(stderr, "peal exec: cannot run '%s': %s\n", command[0], strerror(errno));
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    peal_wire_init(&host->wire, from[0], to[1]);
    return host->pid > 0;
}

/* ---- meetings ---- */

static void tell_all(struct hosts_job *job, uint32_t kind, const void *bytes, size_t len)
{
    for (uint32_t h = 0; h < job->list.count; h++) {
        if (!job->hosts[h].ended)
            peal_wire_put(&job->hosts[h].wire, kind, 0, bytes, len);
    }
    if (job->size > job->list.ranks)
        peal_wire_put(&job->caller, kind, 0, bytes, len);
}

static void clear_rows(struct hosts_job *job)
{
    for (uint32_t r = 0; r < job->size; r++) {
        free(job->ranks[r].row);
        job->ranks[r].row = NULL;
        job->ranks[r].has_row = false;
    }
    job->rows = 0;
}

/* No rank has to wait for a meeting that cannot be completed. */
static void fail_meeting(struct hosts_job *job)
{
    if (job->rows == 0 || job->failed[0] == '\0')
        return;
    tell_all(job, PEAL_HOSTS_FAILED, job->failed, strlen(job->failed));
    clear_rows(job);
}

static void take_row(struct hosts_job *job, uint32_t rank, const uint8_t *bytes, uint32_t len)
{
    struct host_rank *row = &job->ranks[rank];
    if (row->has_row || !(row->row = malloc(len ? len : 1)))
        return;
    memcpy(row->row, bytes, len);
    row->row_bytes = len;
    row->has_row = true;
    job->rows++;
    fail_meeting(job);
    if (job->rows < job->size)
        return;
    struct peal_text all = {0};
    bool same = true;
    for (uint32_t r = 0; r < job->size; r++) {
        same = same && job->ranks[r].row_bytes == len;
        peal_text_add(&all, (const char *)job->ranks[r].row, job->ranks[r].row_bytes);
    }
    static const char words[] = "ranks exchange different things: they make different calls";
    if (same && !all.failed)
        tell_all(job, PEAL_HOSTS_GATHERED, all.at, all.len);
    else
        tell_all(job, PEAL_HOSTS_FAILED, words, sizeof words - 1);
    if (all.at)
        explicit_bzero(all.at, all.len);
    peal_text_release(&all);
    clear_rows(job);
}

/* ---- output and ends ---- */

/* Prints whole lines; the rest is kept until it is complete, or until the output ends (`last`). */
static void print_lines(struct hosts_job *job, uint32_t rank, int stream, bool last)
{
    struct peal_text *text = &job->ranks[rank].lines[stream];
    FILE *to = stderr;
    if (stream == 0)
        to = stdout;
    size_t done = 0;
    while (done < text->len) {
        const char *start = text->at + done, *end = memchr(start, '\n', text->len - done);
        if (!end && !last && text->len - done < 65536)
            break;
        size_t len = end ? (size_t)(end - start) + 1 : text->len - done;
        if (job->options->prefix)
            fprintf(to, "[%u] ", rank);
        fwrite(start, 1, len, to);
        if (!end && job->options->prefix)
            fputc('\n', to);
        done += len;
    }
    fflush(to);
    if (done == 0)
        return;
    memmove(text->at, text->at + done, text->len - done);
    text->len -= done;
}

static void note_end(struct hosts_job *job, uint32_t rank, int status, int pid)
{
    struct host_rank *entry = &job->ranks[rank];
    if (entry->ended)
        return;
    entry->ended = true;
    job->left--;
    print_lines(job, rank, 0, true);
    print_lines(job, rank, 1, true);
    entry->code = peal_ranks_ended(rank, pid, status);
    if (job->failed[0] == '\0')
        snprintf(job->failed, sizeof job->failed,
                 "rank %u has ended before the meeting was complete", rank);
    fail_meeting(job);
    if (entry->code == 0)
        return;
    if (job->code == 0)
        job->code = entry->code;
    if (job->countdown < 0 && job->options->kill_after >= 0)
        job->countdown = job->options->kill_after * 10;
}

static void take_message(struct hosts_job *job, const struct host *host,
                         const struct peal_hosts_head *head, const uint8_t *bytes)
{
    uint32_t first = host->entry->first;
    if (head->rank < first || head->rank - first >= host->entry->count)
        return;
    switch ((enum peal_hosts_kind)head->kind) {
    case PEAL_HOSTS_OUTPUT:
    case PEAL_HOSTS_ERROR: {
        int stream = head->kind == PEAL_HOSTS_ERROR;
        peal_text_add(&job->ranks[head->rank].lines[stream], (const char *)bytes, head->bytes);
        print_lines(job, head->rank, stream, !job->options->prefix);
        return;
    }
    case PEAL_HOSTS_GATHER:
        take_row(job, head->rank, bytes, head->bytes);
        return;
    case PEAL_HOSTS_ENDED: {
        int32_t words[2];
        if (head->bytes != sizeof words)
            return;
        memcpy(words, bytes, sizeof words);
        note_end(job, head->rank, words[0], words[1]);
        return;
    }
    default:
        return;
    }
}

/* Nothing more can be heard from its ranks. */
static void lose_host(struct hosts_job *job, struct host *host)
{
    bool told = false;
    host->ended = true;
    for (uint32_t i = 0; i < host->entry->count; i++) {
        uint32_t rank = host->entry->first + i;
        if (job->ranks[rank].ended)
            continue;
        if (!told)
            fprintf(stderr, "peal exec: the agent on '%s' %s\n", host->entry->name,
                    host->greeted ? "has ended before its ranks" : "could not be started");
        told = true;
        note_end(job, rank, PEAL_EXIT_OTHER << 8, 0);
    }
}

static void serve_host(struct hosts_job *job, struct host *host)
{
    struct peal_hosts_head head;
    const uint8_t *bytes;
    if (host->ended)
        return;
    peal_wire_flush(&host->wire);
    peal_wire_fill(&host->wire);
    if (!host->greeted)
        host->greeted = peal_wire_skip(&host->wire, PEAL_WIRE_GREETING);
    while (host->greeted && peal_wire_next(&host->wire, &head, &bytes))
        take_message(job, host, &head, bytes);
    if (host->wire.broken)
        lose_host(job, host);
}

/* ---- watching ---- */

static void pass_signals(struct hosts_job *job)
{
    struct signalfd_siginfo info;
    while (read(job->signals, &info, sizeof info) == sizeof info) {
        for (uint32_t h = 0; h < job->list.count; h++) {
            if (!job->hosts[h].ended && info.ssi_signo != SIGCHLD)
                peal_wire_put(&job->hosts[h].wire, PEAL_HOSTS_SIGNAL, info.ssi_signo, NULL, 0);
        }
    }
}

static void kill_ranks(struct hosts_job *job)
{
    for (uint32_t h = 0; h < job->list.count; h++) {
        if (!job->hosts[h].ended)
            peal_wire_put(&job->hosts[h].wire, PEAL_HOSTS_SIGNAL, SIGKILL, NULL, 0);
    }
}

static void end_others(struct hosts_job *job)
{
    fprintf(stderr, "peal exec: ending the other ranks\n");
    kill_ranks(job);
}

/* The process that started this one takes part in meetings; when it ends, the job ends. */
static void serve_caller(struct hosts_job *job)
{
    struct peal_hosts_head head;
    const uint8_t *bytes;
    uint32_t rank = job->list.ranks;
    if (job->size == rank || job->left_by_caller)
        return;
    peal_wire_flush(&job->caller);
    peal_wire_fill(&job->caller);
    while (peal_wire_next(&job->caller, &head, &bytes)) {
        if (head.kind == PEAL_HOSTS_HELLO)
            peal_wire_put(&job->caller, PEAL_HOSTS_WELCOME, rank, &job->welcome,
                          sizeof job->welcome);
        else if (head.kind == PEAL_HOSTS_GATHER)
            take_row(job, rank, bytes, head.bytes);
    }
    peal_wire_flush(&job->caller);
    job->left_by_caller = job->caller.broken; /* noticed here, or when something was sent to it */
    if (job->left_by_caller)
        kill_ranks(job);
}

static void watch(struct hosts_job *job)
{
    uint32_t npolls = 2 + 2 * job->list.count;
    struct pollfd *polls = calloc(npolls, sizeof *polls);
    while (polls && job->left > 0) {
        polls[npolls - 1] = (struct pollfd){job->caller.broken ? -1 : job->caller.in, POLLIN, 0};
        polls[0] = (struct pollfd){job->signals, POLLIN, 0};
        for (uint32_t h = 0; h < job->list.count; h++) {
            const struct host *host = &job->hosts[h];
            bool unsent = host->wire.unsent.len > 0;
            polls[1 + 2 * h] = (struct pollfd){host->ended ? -1 : host->wire.in, POLLIN, 0};
            polls[2 + 2 * h] =
                (struct pollfd){host->ended || !unsent ? -1 : host->wire.out, POLLOUT, 0};
        }
        uint64_t before = peal_now_ms();
        (void)poll(polls, npolls, 100);
        pass_signals(job);
        serve_caller(job);
        for (uint32_t h = 0; h < job->list.count; h++)
            serve_host(job, &job->hosts[h]);
        bool waited = peal_now_ms() - before >= 90;
        if (job->countdown < 0 || !waited)
            continue;
        if (job->countdown-- == 0)
            end_others(job);
    }
    free(polls);
}

/* Is this rank the first with its exit code? */
static bool is_first_of_code(const int *codes, uint32_t rank)
{
    for (uint32_t before = 0; before < rank; before++) {
        if (codes[before] == codes[rank])
            return false;
    }
    return true;
}

void peal_hosts_report_codes(const int *codes, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        int code = codes[r];
        if (code == 0 || code > 128 || !is_first_of_code(codes, r))
            continue;
        struct peal_text ranks = {0};
        uint32_t same = 0;
        for (uint32_t other = r; other < count; other++) {
            if (codes[other] == code)
                peal_text_printf(&ranks, "%s%u", same++ ? ", " : "", other);
        }
        fprintf(stderr, "peal exec: %s %s ended with exit code %d\n", same > 1 ? "ranks" : "rank",
                peal_text_get(&ranks), code);
        peal_text_release(&ranks);
    }
}

static bool start_all(struct hosts_job *job, char **args)
{
    char self[4096] = "";
    struct peal_hosts_start common = {
        .protocol = PEAL_NET_PROTOCOL, .size = job->size, .bind = job->options->bind};
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    char name[40];
    peal_job_make(name);
    memcpy(common.job, name, sizeof name);
    uint8_t secret[PEAL_NET_SECRET];
    if (len <= 0 || !peal_random_bytes(secret, sizeof secret))
        return false;
    memcpy(common.secret, secret, sizeof secret);
    job->welcome = (struct peal_hosts_welcome){.rank = job->list.ranks, .size = job->size};
    memcpy(job->welcome.job, common.job, sizeof common.job);
    memcpy(job->welcome.secret, secret, sizeof secret);
    explicit_bzero(secret, sizeof secret);
    for (uint32_t h = 0; h < job->list.count; h++) {
        job->hosts[h].entry = &job->list.at[h];
        if (!start_agent(job, &job->hosts[h], self))
            return false;
        put_start(&job->hosts[h], &common, args);
    }
    explicit_bzero(&common, sizeof common);
    return true;
}

int peal_exec_signals(void)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t forwarded;
    sigemptyset(&forwarded);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&forwarded, numbers[i]);
    sigprocmask(SIG_BLOCK, &forwarded, NULL);
    return signalfd(-1, &forwarded, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void release(struct hosts_job *job)
{
    if (job->hosts) {
        for (uint32_t h = 0; h < job->list.count; h++) {
            peal_wire_release(&job->hosts[h].wire); /* an agent ends when its input ends */
            if (job->hosts[h].pid > 0)
                (void)waitpid(job->hosts[h].pid, NULL, 0);
        }
    }
    if (job->ranks) {
        for (uint32_t r = 0; r < job->size; r++) {
            free(job->ranks[r].row);
            peal_text_release(&job->ranks[r].lines[0]);
            peal_text_release(&job->ranks[r].lines[1]);
        }
    }
    if (job->signals >= 0)
        close(job->signals);
    peal_wire_release(&job->caller);
    explicit_bzero(&job->welcome, sizeof job->welcome);
    free(job->hosts);
    free(job->ranks);
}

int peal_hosts_run(struct peal_cli *cli, const struct peal_hosts_options *options, char **args)
{
    struct hosts_job job = {.cli = cli, .options = options, .countdown = -1, .signals = -1};
    job.caller.in = job.caller.out = -1;
    struct peal_text error = {0};
    if (!peal_hosts_parse(options->hosts, cli->arena, &job.list, &error)) {
        job.code = peal_cli_usage(cli, "--hosts: %s", peal_text_get(&error));
        peal_text_release(&error);
        return job.code;
    }
    job.left = job.size = job.list.ranks;
    if (options->join >= 0) {
        job.size++;
        peal_wire_init(&job.caller, (int)options->join, (int)options->join);
        fcntl((int)options->join, F_SETFD, FD_CLOEXEC);
    }
    job.hosts = calloc(job.list.count, sizeof *job.hosts);
    job.ranks = calloc(job.size, sizeof *job.ranks);
    int *codes = peal_arena_alloc(cli->arena, job.list.ranks * sizeof *codes);
    if (job.hosts) {
        for (uint32_t h = 0; h < job.list.count; h++)
            job.hosts[h].wire.in = job.hosts[h].wire.out = -1;
    }
    peal_ranks_set_master(job.list.at[0].name);
    job.signals = peal_exec_signals();
    signal(SIGPIPE, SIG_IGN);
    fflush(stdout);
    if (!job.hosts || !job.ranks || !codes || job.signals < 0 || !start_all(&job, args)) {
        job.code = peal_cli_fail(cli, "cannot start agents: %s", strerror(errno));
        release(&job);
        return job.code;
    }
    watch(&job);
    for (uint32_t r = 0; r < job.list.ranks; r++)
        codes[r] = job.ranks[r].code;
    peal_hosts_report_codes(codes, job.list.ranks);
    release(&job);
    return job.code;
}
