/* SPDX-License-Identifier: Apache-2.0 */
/* peal exec --agent: starts the ranks of one host and passes on their output.
 *
 * All commands come by standard input. When that ends, peal exec has ended, and the agent ends the
 * ranks. Standard output is reserved for messages: what ranks write comes through pipes.
 */
#include "cli/run/hosts.h"
#include "cli/run/ranks.h"
#include "cli/run/wire.h"

#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 2000 /* from SIGTERM to SIGKILL */ };

struct agent_rank {
    pid_t pid;
    bool ended;
    int pipes[2];          /* read ends of its output and errors; -1: closed */
    struct peal_wire meet; /* for its meetings */
};

struct agent {
    struct peal_wire wire; /* to peal exec */
    struct peal_hosts_start start;
    char *folder, **args, **settings;
    struct agent_rank *ranks;
    uint32_t left; /* ranks that run, or whose output is open */
    int signals, status_fd;
    uint64_t kill_at_ms; /* 0: not yet */
};

/* ---- starting ---- */

/* Reads the texts after the start message. False: it is malformed. */
static bool take_start(struct agent *agent, const uint8_t *bytes, size_t len)
{
    struct peal_hosts_start *start = &agent->start;
    if (len < sizeof *start || bytes[len - 1] != '\0')
        return false;
    memcpy(start, bytes, sizeof *start);
    uint64_t texts = 1 + (uint64_t)start->nargs + start->nsettings;
    if (start->protocol != PEAL_NET_PROTOCOL || start->count == 0 || start->nargs == 0 ||
        texts > len || start->count > start->size || start->first > start->size - start->count)
        return false;
    char *at = malloc(len - sizeof *start);
    char **all = calloc(texts + 2, sizeof *all);
    agent->ranks = calloc(start->count, sizeof *agent->ranks);
    if (!at || !all || !agent->ranks)
        return false;
    memcpy(at, bytes + sizeof *start, len - sizeof *start);
    const char *end = at + len - sizeof *start;
    agent->folder = at;
    agent->args = all;
    agent->settings = all + start->nargs + 1;
    for (uint64_t i = 0; i < texts; i++) {
        if (at >= end)
            return false;
        if (i > start->nargs)
            agent->settings[i - start->nargs - 1] = at;
        else if (i > 0)
            agent->args[i - 1] = at;
        at += strlen(at) + 1;
    }
    start->host[sizeof start->host - 1] = start->job[sizeof start->job - 1] = '\0';
    return true;
}

static void set_number(const char *name, uint32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    setenv(name, text, 1);
}

/* In the child: becomes the rank. */
static void become(const struct agent *agent, uint32_t rank, int out, int err, int meet)
{
    const struct peal_hosts_start *start = &agent->start;
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    for (uint32_t i = 0; i < start->nsettings; i++)
        putenv(agent->settings[i]);
    set_number("PEAL_RANK", rank);
    set_number("PEAL_SIZE", start->size);
    peal_ranks_set_torch(rank, start->size, rank - start->first, start->count);
    setenv("PEAL_JOB", start->job, 1);
    setenv("PEAL_HOST", start->host, 0);
    set_number("PEAL_MEET_FD", (uint32_t)meet);
    set_number("PEAL_STATUS_FD", (uint32_t)agent->status_fd);
    fcntl(meet, F_SETFD, 0);
    if (start->bind && start->count <= peal_topo_cores())
        setenv("PEAL_BIND", "core", 0);
    if (chdir(agent->folder) != 0) {
        fprintf(stderr, "peal exec: cannot enter '%s' on %s: %s\n", agent->folder, start->host,
                strerror(errno));
        _exit(126);
    }
    execvp(agent->args[0], agent->args);
    int error = errno;
    if (rank == start->first) /* it is the same for all ranks of the host */
        fprintf(stderr, "peal exec: cannot run '%s' on %s: %s\n", agent->args[0], start->host,
                strerror(error));
    _exit(error == ENOENT ? 127 : 126);
}

static bool start_rank(struct agent *agent, uint32_t index)
{
    struct agent_rank *rank = &agent->ranks[index];
    int out[2] = {-1, -1}, err[2] = {-1, -1}, meet[2] = {-1, -1};
    bool ok = pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 &&
              socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, meet) == 0;
    rank->pid = -1;
    if (ok)
        rank->pid = fork();
    if (rank->pid == 0)
        become(agent, agent->start.first + index, out[1], err[1], meet[1]);
    for (int i = 0; i < 3; i++) {
        int other = (int[]){out[1], err[1], meet[1]}[i];
        if (other >= 0)
            close(other);
    }
    rank->pipes[0] = out[0];
    rank->pipes[1] = err[0];
    peal_wire_init(&rank->meet, meet[0], meet[0]);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    return rank->pid > 0;
}

static int start_all(struct agent *agent)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    sigset_t caught;
    sigemptyset(&caught);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&caught, numbers[i]);
    sigprocmask(SIG_BLOCK, &caught, NULL);
    signal(SIGPIPE, SIG_IGN);
    agent->signals = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    agent->status_fd = peal_ranks_status_open(agent->start.size);
    for (uint32_t i = 0; i < agent->start.count; i++) {
        if (agent->signals >= 0 && agent->status_fd >= 0 && start_rank(agent, i))
            continue;
        fprintf(stderr, "peal exec: cannot start rank %u on %s: %s\n", agent->start.first + i,
                agent->start.host, strerror(errno));
        return PEAL_EXIT_OTHER;
    }
    agent->left = agent->start.count;
    return PEAL_EXIT_OK;
}

/* ---- forwarding ---- */

static void kill_all(struct agent *agent, int number)
{
    for (uint32_t i = 0; i < agent->start.count; i++) {
        if (!agent->ranks[i].ended && agent->ranks[i].pid > 0)
            kill(agent->ranks[i].pid, number);
    }
}

static void take_orders(struct agent *agent)
{
    struct peal_hosts_head head;
    const uint8_t *bytes;
    peal_wire_fill(&agent->wire);
    while (peal_wire_next(&agent->wire, &head, &bytes)) {
        if (head.kind == PEAL_HOSTS_SIGNAL)
            kill_all(agent, (int)head.rank);
        if (head.kind != PEAL_HOSTS_GATHERED && head.kind != PEAL_HOSTS_FAILED)
            continue;
        for (uint32_t i = 0; i < agent->start.count; i++)
            peal_wire_put(&agent->ranks[i].meet, head.kind, 0, bytes, head.bytes);
    }
}

static void take_meeting(struct agent *agent, uint32_t index)
{
    struct agent_rank *rank = &agent->ranks[index];
    struct peal_hosts_head head;
    const uint8_t *bytes;
    peal_wire_fill(&rank->meet);
    while (peal_wire_next(&rank->meet, &head, &bytes)) {
        uint32_t number = agent->start.first + index;
        if (head.kind == PEAL_HOSTS_HELLO) {
            struct peal_hosts_welcome welcome = {.rank = number, .size = agent->start.size};
            memcpy(welcome.job, agent->start.job, sizeof welcome.job);
            memcpy(welcome.secret, agent->start.secret, sizeof welcome.secret);
            peal_wire_put(&rank->meet, PEAL_HOSTS_WELCOME, number, &welcome, sizeof welcome);
            explicit_bzero(&welcome, sizeof welcome);
        } else if (head.kind == PEAL_HOSTS_GATHER && head.bytes <= PEAL_HOSTS_ROW) {
            peal_wire_put(&agent->wire, PEAL_HOSTS_GATHER, number, bytes, head.bytes);
        }
    }
}

static void take_output(struct agent *agent, uint32_t index, int stream)
{
    char bytes[16384];
    struct agent_rank *rank = &agent->ranks[index];
    uint32_t kind = PEAL_HOSTS_ERROR;
    if (stream == 0)
        kind = PEAL_HOSTS_OUTPUT;
    ssize_t got;
    while ((got = read(rank->pipes[stream], bytes, sizeof bytes)) > 0)
        peal_wire_put(&agent->wire, kind, agent->start.first + index, bytes, (size_t)got);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close(rank->pipes[stream]);
    rank->pipes[stream] = -1;
}

static void reap(struct agent *agent)
{
    struct signalfd_siginfo info;
    int status;
    while (read(agent->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD)
            kill_all(agent, (int)info.ssi_signo);
    }
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (uint32_t i = 0; i < agent->start.count; i++) {
            struct agent_rank *rank = &agent->ranks[i];
            if (rank->pid != pid || rank->ended)
                continue;
            const int32_t words[2] = {status, (int32_t)pid};
            rank->ended = true;
            agent->left--;
            peal_ranks_status_put(agent->status_fd, agent->start.first + i, pid, status);
            /* What it wrote is sent before its end is reported. */
            for (int s = 0; s < 2; s++) {
                if (rank->pipes[s] >= 0)
                    take_output(agent, i, s);
            }
            peal_wire_put(&agent->wire, PEAL_HOSTS_ENDED, agent->start.first + i, words,
                          sizeof words);
        }
    }
}

/* peal exec has ended: the ranks must end too. */
static void end_ranks(struct agent *agent)
{
    if (agent->kill_at_ms == 0) {
        kill_all(agent, SIGTERM);
        agent->kill_at_ms = peal_now_ms() + GRACE_MS;
    } else if (peal_now_ms() >= agent->kill_at_ms) {
        kill_all(agent, SIGKILL);
    }
}

static short wanted(const struct peal_wire *wire)
{
    return (short)(POLLIN | (wire->unsent.len > 0 ? POLLOUT : 0));
}

static void serve(struct agent *agent)
{
    uint32_t count = agent->start.count;
    struct pollfd *polls = calloc(3 + 3 * (size_t)count, sizeof *polls);
    while (polls && (agent->left > 0 || (agent->wire.unsent.len > 0 && !agent->wire.broken))) {
        bool alone = agent->wire.broken;
        polls[0] = (struct pollfd){agent->signals, POLLIN, 0};
        polls[1] = (struct pollfd){alone ? -1 : agent->wire.in, POLLIN, 0};
        polls[2] =
            (struct pollfd){agent->wire.unsent.len && !alone ? agent->wire.out : -1, POLLOUT, 0};
        for (uint32_t i = 0; i < count; i++) {
            const struct agent_rank *rank = &agent->ranks[i];
            bool meets = !rank->meet.broken;
            polls[3 + 3 * i] = (struct pollfd){rank->pipes[0], POLLIN, 0};
            polls[4 + 3 * i] = (struct pollfd){rank->pipes[1], POLLIN, 0};
            polls[5 + 3 * i] = (struct pollfd){meets ? rank->meet.in : -1, wanted(&rank->meet), 0};
        }
        (void)poll(polls, 3 + 3 * count, 100);
        if (!alone) {
            take_orders(agent);
            peal_wire_flush(&agent->wire);
        }
        for (uint32_t i = 0; i < count; i++) {
            struct agent_rank *rank = &agent->ranks[i];
            for (int s = 0; s < 2; s++) {
                if (polls[3 + 3 * i + (uint32_t)s].revents && rank->pipes[s] >= 0)
                    take_output(agent, i, s);
            }
            if (!rank->meet.broken)
                take_meeting(agent, i);
            peal_wire_flush(&rank->meet);
        }
        reap(agent);
        if (agent->wire.broken)
            end_ranks(agent);
    }
    free(polls);
}

/* Reads the start message, however long it takes. False: standard input has ended before. */
static bool read_start(struct agent *agent)
{
    struct peal_hosts_head head;
    const uint8_t *bytes;
    while (!agent->wire.broken) {
        struct pollfd polled = {agent->wire.in, POLLIN, 0};
        if (peal_wire_next(&agent->wire, &head, &bytes))
            return head.kind == PEAL_HOSTS_START && take_start(agent, bytes, head.bytes);
        (void)poll(&polled, 1, -1);
        peal_wire_fill(&agent->wire);
    }
    return false;
}

int peal_hosts_agent(void)
{
    struct agent agent = {.signals = -1, .status_fd = -1};
    int code = PEAL_EXIT_OTHER;
    (void)!write(STDOUT_FILENO, PEAL_WIRE_GREETING, strlen(PEAL_WIRE_GREETING));
    peal_wire_init(&agent.wire, STDIN_FILENO, STDOUT_FILENO);
    if (isatty(STDIN_FILENO) || !read_start(&agent)) {
        fprintf(stderr,
                "peal exec: --agent is for 'peal exec --hosts' of the same version, which starts "
                "it\n");
        goto release;
    }
    code = start_all(&agent);
    if (code == PEAL_EXIT_OK)
        serve(&agent);
    else
        kill_all(&agent, SIGKILL);
release:
    if (agent.ranks) {
        for (uint32_t i = 0; i < agent.start.count; i++)
            peal_wire_release(&agent.ranks[i].meet);
    }
    explicit_bzero(&agent.start, sizeof agent.start);
    free(agent.ranks);
    free(agent.folder);
    free(agent.args);
    peal_wire_release(&agent.wire);
    return code;
}
