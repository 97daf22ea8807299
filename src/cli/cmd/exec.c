/* SPDX-License-Identifier: Apache-2.0 */
/* peal exec: starts the ranks of a job.
 *
 * The ranks are children of this process. It stays to pass on signals, to prefix their output if
 * requested, and to record how each ends in a file that all ranks have (PEAL_STATUS_FD): a rank
 * that waits for another learns from it that the other has ended, and how. The exit code is that of
 * the first rank that failed. With --hosts, run/hosts.c does all this through agents.
 */
#include "cli/run/hosts.h"
#include "cli/kernel_args.h"
#include "cli/run/ranks.h"

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
#include <sys/wait.h>
#include <unistd.h>

struct exec_options {
    int64_t ranks;
    int64_t kill_after;
    int64_t join;
    bool prefix;
    bool no_bind;
    const char *hosts, *via;
    bool agent;
};

/* What a rank writes to standard output or standard error. */
struct stream {
    int fd;     /* the read end, or -1 */
    char *line; /* the incomplete last line */
    size_t len;
};

struct child {
    pid_t pid;
    struct stream streams[2];
    bool ended;
    int code; /* as a shell would report it */
};

struct exec_job {
    const struct exec_options *options;
    pid_t pid; /* of exec itself */
    struct child *children;
    uint32_t count, left;
    int status_fd;
    int code;          /* of the first rank that failed */
    int64_t countdown; /* tenths of a second until the others are ended; -1: none */
};

enum { LONGEST_LINE = 65536 };

/* ---- starting ---- */

static void become(const struct exec_job *job, uint32_t rank, const char *name, char **args,
                   int pipes[2][2])
{
    char number[16];
    sigset_t none;
    /* However exec ends, its ranks end too; it may have ended before this request. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != job->pid)
        _exit(128 + SIGTERM);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(number, sizeof number, "%u", rank);
    setenv("PEAL_RANK", number, 1);
    snprintf(number, sizeof number, "%u", job->count);
    setenv("PEAL_SIZE", number, 1);
    setenv("PEAL_JOB", name, 1);
    snprintf(number, sizeof number, "%d", job->status_fd);
    setenv("PEAL_STATUS_FD", number, 1);
    peal_ranks_set_torch(rank, job->count, rank, job->count);
    if (!job->options->no_bind && job->count <= peal_topo_cores())
        setenv("PEAL_BIND", "core", 0);
    if (job->options->prefix) {
        dup2(pipes[0][1], STDOUT_FILENO);
        dup2(pipes[1][1], STDERR_FILENO);
    }
    execvp(args[0], args);
    int error = errno;
    if (rank == 0) /* it is the same for all */
        fprintf(stderr, "peal exec: cannot run '%s': %s\n", args[0], strerror(error));
    _exit(error == ENOENT ? 127 : 126);
}

/* Makes the read end of a pipe a stream. False: the system has none left. */
static bool open_stream(struct stream *stream, int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *stream = (struct stream){.fd = ends[0], .line = malloc(LONGEST_LINE)};
    return stream->line != NULL;
}

static void close_stream(struct stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->line);
    *stream = (struct stream){.fd = -1};
}

static bool start(struct exec_job *job, uint32_t rank, const char *name, char **args)
{
    struct child *child = &job->children[rank];
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    bool ok = true;
    if (job->options->prefix) {
        for (int s = 0; s < 2; s++)
            ok = ok && open_stream(&child->streams[s], pipes[s]);
    }
    child->pid = -1;
    if (ok)
        child->pid = fork();
    if (child->pid == 0)
        become(job, rank, name, args, pipes);
    for (int s = 0; s < 2; s++) {
        if (pipes[s][1] >= 0)
            close(pipes[s][1]);
    }
    return child->pid > 0;
}

/* ---- watching ---- */

/* Prints whole lines, each prefixed with its rank; an incomplete line is kept. */
static void forward(struct stream *stream, uint32_t rank, FILE *to)
{
    while (stream->fd >= 0) {
        ssize_t got = read(stream->fd, stream->line + stream->len, LONGEST_LINE - stream->len);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (got <= 0) {
            if (stream->len > 0)
                fprintf(to, "[%u] %.*s\n", rank, (int)stream->len, stream->line);
            close_stream(stream);
            break;
        }
        stream->len += (size_t)got;
        for (char *end; (end = memchr(stream->line, '\n', stream->len)) != NULL;) {
            size_t len = (size_t)(end - stream->line);
            fprintf(to, "[%u] %.*s\n", rank, (int)len, stream->line);
            stream->len -= len + 1;
            memmove(stream->line, end + 1, stream->len);
        }
        if (stream->len == LONGEST_LINE) {
            fprintf(to, "[%u] %.*s\n", rank, LONGEST_LINE, stream->line);
            stream->len = 0;
        }
    }
    fflush(to);
}

static void forward_all(const struct exec_job *job)
{
    for (uint32_t r = 0; r < job->count; r++) {
        forward(&job->children[r].streams[0], r, stdout);
        forward(&job->children[r].streams[1], r, stderr);
    }
}

static void signal_all(const struct exec_job *job, int number)
{
    for (uint32_t r = 0; r < job->count; r++) {
        if (!job->children[r].ended && job->children[r].pid > 0)
            kill(job->children[r].pid, number);
    }
}

static void note_end(struct exec_job *job, uint32_t rank, int status)
{
    job->children[rank].ended = true;
    job->left--;
    peal_ranks_status_put(job->status_fd, rank, job->children[rank].pid, status);
    job->children[rank].code = peal_ranks_ended(rank, job->children[rank].pid, status);
    if (job->children[rank].code == 0)
        return;
    if (job->code == 0)
        job->code = job->children[rank].code;
    if (job->countdown < 0 && job->options->kill_after >= 0)
        job->countdown = job->options->kill_after * 10;
}

static void reap(struct exec_job *job)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (uint32_t r = 0; r < job->count; r++) {
            if (job->children[r].pid == pid && !job->children[r].ended)
                note_end(job, r, status);
        }
    }
}

/* Passes signals on. What a terminal sends (Ctrl-C) goes to the whole process group, so the ranks
 * have received it. */
static void pass_signals(const struct exec_job *job, int signals)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD && info.ssi_code != SI_KERNEL)
            signal_all(job, (int)info.ssi_signo);
    }
}

static void watch(struct exec_job *job, int signals)
{
    struct pollfd *polls = calloc(2 * (size_t)job->count + 1, sizeof *polls);
    while (polls && job->left > 0) {
        polls[0] = (struct pollfd){signals, POLLIN, 0};
        for (uint32_t i = 0; i < 2 * job->count; i++)
            polls[i + 1] = (struct pollfd){job->children[i / 2].streams[i % 2].fd, POLLIN, 0};
        poll(polls, 2 * job->count + 1, 100);
        pass_signals(job, signals);
        forward_all(job);
        reap(job);
        if (job->countdown >= 0 && job->countdown-- == 0) {
            fprintf(stderr, "peal exec: ending the other ranks\n");
            signal_all(job, SIGKILL);
        }
    }
    forward_all(job);
    free(polls);
}

/* Without -n: as many as the modelled machine is made for, or 2. 0 after a message. */
static uint32_t count_ranks(const struct peal_cli *cli, const struct exec_options *o)
{
    enum { DEFAULT_RANKS = 2 };
    const char *machine = peal_ranks_machine();
    uint32_t ranks = DEFAULT_RANKS;
    if (o->ranks)
        return (uint32_t)o->ranks;
    if (machine)
        ranks = peal_kernel_machine_ranks(cli, machine);
    if (ranks <= PEAL_MOST_RANKS)
        return ranks;
    peal_cli_usage(cli, "'%s' has %u ranks, at most %d can be started: -n says how many", machine,
                   ranks, PEAL_MOST_RANKS);
    return 0;
}

/* The ranks of one host, as children of this process. */
static int run_here(struct peal_cli *cli, const struct exec_options *o, char **args)
{
    uint32_t ranks = count_ranks(cli, o);
    if (!ranks)
        return PEAL_EXIT_USAGE;
    struct exec_job job = {
        .options = o, .pid = getpid(), .count = ranks, .left = ranks, .countdown = -1};
    char name[40];
    peal_job_make(name);
    peal_ranks_set_master("127.0.0.1");
    job.children = calloc(job.count, sizeof *job.children);
    int *codes = peal_arena_alloc(cli->arena, job.count * sizeof *codes);
    job.status_fd = peal_ranks_status_open(job.count);
    int signals = peal_exec_signals();
    if (!job.children || !codes || job.status_fd < 0 || signals < 0) {
        job.code = peal_cli_fail(cli, "cannot start ranks: %s", strerror(errno));
        goto release;
    }
    fflush(stdout);
    for (uint32_t i = 0; i < 2 * job.count; i++)
        job.children[i / 2].streams[i % 2].fd = -1;
    for (uint32_t r = 0; r < job.count; r++) {
        if (!start(&job, r, name, args)) {
            job.code = peal_cli_fail(cli, "cannot start rank %u: %s", r, strerror(errno));
            signal_all(&job, SIGKILL);
            goto end_streams;
        }
    }
    watch(&job, signals);
    for (uint32_t r = 0; r < job.count; r++)
        codes[r] = job.children[r].code;
    peal_hosts_report_codes(codes, job.count);
end_streams:
    for (uint32_t i = 0; i < 2 * job.count; i++)
        close_stream(&job.children[i / 2].streams[i % 2]);
release:
    if (signals >= 0)
        close(signals);
    if (job.status_fd >= 0)
        close(job.status_fd);
    free(job.children);
    return job.code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct exec_options *o = options;
    if (o->agent)
        return peal_hosts_agent();
    if (nargs == 0)
        return peal_cli_usage(cli, "which program is to be run?");
    if (o->via && !o->hosts)
        return peal_cli_usage(cli, "--via is for --hosts");
    const char *via = o->via;
    if (!via)
        via = getenv("PEAL_VIA");
    if (via && !via[0])
        via = NULL;
    if (o->hosts)
        return peal_hosts_run(cli,
                              &(struct peal_hosts_options){.hosts = o->hosts,
                                                           .via = via,
                                                           .join = o->join,
                                                           .kill_after = o->kill_after,
                                                           .prefix = o->prefix,
                                                           .bind = !o->no_bind},
                              args);
    return run_here(cli, o, args);
}

static const struct exec_options defaults = {.kill_after = -1, .join = -1};
static const struct peal_option table[] = {
    {"ranks", 'n', PEAL_OPTION_INT, offsetof(struct exec_options, ranks), "P",
     "number of ranks (default: the machine's of PEAL_PLATFORM=sim:M, or 2)", 1, PEAL_MOST_RANKS},
    {"prefix", 'p', PEAL_OPTION_FLAG, offsetof(struct exec_options, prefix), NULL,
     "put '[rank] ' in front of every line that a rank writes", 0, 0},
    {"kill-after", 0, PEAL_OPTION_INT, offsetof(struct exec_options, kill_after), "S",
     "end all ranks S seconds after one has failed (default: let them finish)", 0, 86400},
    {"no-bind", 0, PEAL_OPTION_FLAG, offsetof(struct exec_options, no_bind), NULL,
     "do not bind ranks to cores even if there is one for each", 0, 0},
    {"hosts", 0, PEAL_OPTION_STRING, offsetof(struct exec_options, hosts), "A:N,B:M",
     "start N ranks on host A, M on B and so on, instead of -n ranks here", 0, 0},
    {"via", 0, PEAL_OPTION_STRING, offsetof(struct exec_options, via), "COMMAND",
     "how to run a program on a host: words in which {host} is its name (default: PEAL_VIA, or "
     "ssh)",
     0, 0},
    {"join", 0, PEAL_OPTION_INT, offsetof(struct exec_options, join), "FD",
     "with --hosts: the process that has started this one is the last rank, over a socket", 3,
     65535},
    {"agent", 0, PEAL_OPTION_FLAG, offsetof(struct exec_options, agent), NULL,
     "internal: what --hosts starts on each host, driven through standard input", 0, 0},
    {NULL, 0, 0, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_exec = {
    .name = "exec",
    .args = "PROGRAM [ARGS...]",
    .summary = "start a program on several ranks",
    .details =
        "Each process finds its rank, the number of ranks and the job's name in PEAL_RANK, "
        "PEAL_SIZE and PEAL_JOB, where peal_comm_open(NULL, ...) looks for them. For PyTorch's "
        "env:// there are also "
        "RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT; the last two "
        "only if they are not set already. Signals are "
        "passed on, and if exec itself is killed, the ranks get SIGTERM. Ends with the exit code "
        "of the first rank that failed: its own, 128 + the signal that "
        "killed it, 127 if there is no such program, 126 if it cannot be run.\n\n"
        "With --hosts, ranks 0 to N-1 run on host A, the next M on B, and so on. An agent (peal "
        "exec --agent, at the same path as here) is started on each host by 'ssh -o "
        "BatchMode=yes', or as --via says: --via 'ip netns exec {host}' runs the agents in network "
        "namespaces. The ranks run in the folder of the same name; the variables PEAL_..., "
        "LD_LIBRARY_PATH, PYTHONPATH and OMP_NUM_THREADS are passed on, and MASTER_ADDR is host A. "
        "The agents receive, by "
        "standard input, a secret of 256 bits by which the ranks recognise each other. What ranks "
        "write is printed here, and their standard input is empty.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 0,
    .max_args = -1,
    .stops_at_arg = true,
    .run = run,
};
