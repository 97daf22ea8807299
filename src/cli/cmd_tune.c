/* SPDX-License-Identifier: Apache-2.0 */
/* peal tune: measures the algorithms on this machine and keeps the best of each size. */
#include "cli/progress.h"
#include "cli/ranks.h"

#include "run/pause.h"
#include "run/select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct tune_options {
    struct peal_ints ranks;
    const char *collective, *output;
    uint64_t end;
};

struct tune {
    const struct tune_options *options;
    const char *path; /* of the new table */
    struct peal_progress *progress;
};

/* Sizes at which algorithms are compared: a rule holds up to the size before the next change. */
static const uint64_t sizes[] = {40,        512,     4096,    16384,   65536,
                                 256 << 10, 1 << 20, 4 << 20, 16 << 20};
static const uint32_t collectives[] = {PEAL_CALL_ALLREDUCE, PEAL_CALL_REDUCE, PEAL_CALL_BROADCAST,
                                       PEAL_CALL_BARRIER};
enum { MOST_CALLS = 200 }; /* timed, of one size */
static const uint64_t segments[] = {64 << 10, 256 << 10, 1 << 20};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static enum peal_status call(struct peal_comm *comm, uint32_t collective, char *send, char *recv,
                             uint64_t bytes)
{
    uint64_t count = bytes / 4;
    switch (collective) {
    case PEAL_CALL_ALLREDUCE:
        return peal_allreduce(comm, send, recv, count, PEAL_F32, PEAL_SUM);
    case PEAL_CALL_REDUCE:
        return peal_reduce(comm, send, recv, count, PEAL_F32, PEAL_SUM, 0);
    case PEAL_CALL_BROADCAST:
        return peal_broadcast(comm, recv, count, PEAL_F32, 0);
    case PEAL_CALL_BARRIER:
        return peal_barrier(comm);
    default:
        return PEAL_UNSUPPORTED;
    }
}

static bool is_wanted(const struct tune_options *options, uint32_t collective)
{
    return !options->collective ||
           strcmp(options->collective, peal_collective_name(collective)) == 0;
}

/* Calls of a size that are timed. */
static int calls_of(uint64_t bytes)
{
    return bytes <= 65536 ? MOST_CALLS : bytes <= 1 << 20 ? 40 : 12;
}

/* Roughly how long a size takes against others. */
static uint64_t weigh(uint64_t bytes)
{
    return (uint64_t)calls_of(bytes) * (bytes + 65536);
}

/* What has to be measured for one number of ranks. */
static void count_steps(const struct tune_options *options, struct peal_progress *progress)
{
    size_t count;
    const struct peal_algo *algos = peal_algos(&count);
    for (size_t i = 0; i < count; i++) {
        bool is_barrier = algos[i].collective == PEAL_CALL_BARRIER, is_known = false;
        for (size_t c = 0; c < sizeof collectives / sizeof *collectives; c++)
            is_known = is_known || collectives[c] == algos[i].collective;
        if (!is_known || !is_wanted(options, algos[i].collective))
            continue;
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes && sizes[s] <= options->end; s++) {
            if (is_barrier && s > 0)
                break;
            progress->total++;
            progress->weight += weigh(sizes[s]);
        }
    }
}

/* Median time of a call, the same on all ranks. */
static enum peal_status measure(struct peal_comm *comm, uint32_t collective, char *send, char *recv,
                                uint64_t bytes, double *out)
{
    double times[MOST_CALLS], slowest[MOST_CALLS];
    int n = calls_of(bytes);
    enum peal_status status = PEAL_OK;
    for (int i = -5; i < n && status == PEAL_OK; i++) {
        status = peal_barrier(comm);
        uint64_t start = peal_now_ns();
        if (status == PEAL_OK)
            status = call(comm, collective, send, recv, bytes);
        if (i >= 0)
            times[i] = (double)(peal_now_ns() - start);
    }
    if (status == PEAL_OK)
        status = peal_allreduce(comm, times, slowest, (uint64_t)n, PEAL_F64, PEAL_MAX);
    if (status != PEAL_OK)
        return status;
    qsort(slowest, (size_t)n, sizeof *slowest, compare_doubles);
    *out = slowest[n / 2];
    return PEAL_OK;
}

struct best {
    const struct peal_algo *algo;
    uint64_t segment;
    double time;
};

/* Tries one algorithm with the segments that make a difference, through a table of one rule. */
static enum peal_status try_algo(struct peal_comm *comm, const struct peal_algo *algo, char *send,
                                 char *recv, uint64_t bytes, struct best *best)
{
    enum peal_status status =
        peal_comm_set_algo(comm, peal_collective_name(algo->collective), algo->name);
    double time;
    if (status == PEAL_OK)
        status = measure(comm, algo->collective, send, recv, bytes, &time);
    if (status == PEAL_OK && (!best->algo || time < best->time * 0.97))
        *best = (struct best){algo,
                              algo->memory != PEAL_PEERS_STAGE ? 16 << 20
                              : algo->shape == PEAL_SHAPE_ROWS ? segments[1]
                                                               : segments[0],
                              time};
    return status;
}

static enum peal_status tune_collective(const struct tune *tune, struct peal_comm *comm,
                                        uint32_t collective, char *send, char *recv, FILE *file)
{
    size_t count;
    const struct peal_algo *algos = peal_algos(&count);
    enum peal_status status = PEAL_OK;
    uint64_t end = tune->options->end;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes && sizes[s] <= end; s++) {
        struct best best = {0};
        for (size_t i = 0; i < count && status == PEAL_OK; i++) {
            if (algos[i].collective != collective)
                continue;
            status = try_algo(comm, &algos[i], send, recv, sizes[s], &best);
            if (file && status == PEAL_OK)
                peal_progress_step(tune->progress, weigh(sizes[s]));
        }
        if (status != PEAL_OK)
            break;
        bool last = s + 1 == sizeof sizes / sizeof *sizes || sizes[s + 1] > end;
        uint64_t up_to = last ? UINT64_MAX : (sizes[s] + sizes[s + 1]) / 2;
        if (file) {
            fprintf(file, "%s private %u %llu %s %llu\n", peal_collective_name(collective),
                    peal_comm_size(comm), (unsigned long long)up_to, best.algo->name,
                    (unsigned long long)best.segment);
            struct peal_text line = {0};
            peal_text_printf(&line, "%-10s %3u ranks %9llu bytes: %-12s %10.2f us\n",
                             peal_collective_name(collective), peal_comm_size(comm),
                             (unsigned long long)sizes[s], best.algo->name, best.time / 1e3);
            peal_progress_print(tune->progress, &line);
            peal_text_release(&line);
        }
        if (collective == PEAL_CALL_BARRIER)
            break;
    }
    (void)peal_comm_set_algo(comm, peal_collective_name(collective), NULL);
    return status;
}

static int body(struct peal_comm *comm, void *context)
{
    const struct tune *tune = context;
    uint64_t end = tune->options->end;
    char *send = calloc(1, end + 64), *recv = calloc(1, end + 64);
    FILE *file = peal_comm_rank(comm) == 0 ? fopen(tune->path, "ae") : NULL;
    enum peal_status status = send && recv ? PEAL_OK : PEAL_NO_MEMORY;
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives && status == PEAL_OK; i++) {
        if (is_wanted(tune->options, collectives[i]))
            status = tune_collective(tune, comm, collectives[i], send, recv, file);
    }
    if (status != PEAL_OK)
        fprintf(stderr, "peal tune: rank %u: %s: %s\n", peal_comm_rank(comm),
                peal_status_text(status), peal_comm_error(comm));
    if (file)
        fclose(file);
    free(send);
    free(recv);
    return status == PEAL_OK ? PEAL_EXIT_OK : PEAL_EXIT_OTHER;
}

/* Makes the folders of a path. */
static void make_folders(const char *path)
{
    char copy[300];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = copy + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(copy, 0777);
        *slash = '/';
    }
}

/* After Ctrl-C: half a table is of no use, and the old one stays. */
static void drop_table(void *path)
{
    (void)remove(path);
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)args, (void)nargs;
    const struct tune_options *o = options;
    char path[256], fresh[300];
    if (o->output)
        snprintf(path, sizeof path, "%s", o->output);
    else if (!peal_tune_path(path, sizeof path))
        return peal_cli_fail(cli, "neither HOME nor XDG_CONFIG_HOME is set; use --output");
    if (o->end > 1 << 30)
        return peal_cli_usage(cli, "--end is at most 1G");
    make_folders(path);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    (void)remove(fresh);
    setenv("PEAL_TUNE_FILE", "/dev/null", 1); /* the old table must not decide */
    static int64_t usual[] = {2, 4, 8};
    struct peal_ints ranks = o->ranks.len ? o->ranks : (struct peal_ints){usual, 3};
    struct peal_progress progress = {
        .what = "measurements", .report = drop_table, .context = fresh};
    struct tune tune = {.options = o, .path = fresh, .progress = &progress};
    int code = PEAL_EXIT_OK;
    for (size_t i = 0; i < ranks.len; i++)
        count_steps(o, &progress);
    peal_progress_begin(&progress);
    for (size_t i = 0; i < ranks.len && code == PEAL_EXIT_OK; i++) {
        struct peal_ranks start = {
            .count = (uint32_t)ranks.at[i], .bind = true, .body = body, .context = &tune};
        code = peal_ranks_run(cli, &start);
    }
    peal_progress_end(&progress);
    if (code != PEAL_EXIT_OK) {
        drop_table(fresh);
        return code;
    }
    if (rename(fresh, path) != 0)
        return peal_cli_fail(cli, "cannot write '%s': %s", path, strerror(errno));
    printf("kept in %s\n", path);
    return PEAL_EXIT_OK;
}

static const struct tune_options defaults = {.end = 16 << 20};
static const struct peal_option table[] = {
    {"ranks", 'n', PEAL_OPTION_LIST, offsetof(struct tune_options, ranks), "P",
     "numbers of ranks (default 2,4,8)", 1, PEAL_MOST_RANKS},
    {"collective", 0, PEAL_OPTION_STRING, offsetof(struct tune_options, collective), "C",
     "only this one", 0, 0},
    {"end", 'e', PEAL_OPTION_SIZE, offsetof(struct tune_options, end), "B",
     "largest size (default 16M)", 0, 0},
    {"output", 'o', PEAL_OPTION_STRING, offsetof(struct tune_options, output), "FILE",
     "where the table is kept (default: peal/tune in the configuration folder)", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_tune = {
    .name = "tune",
    .args = "",
    .summary = "measure the algorithms on this machine and keep the best",
    .details =
        "Times every algorithm of allreduce, reduce, broadcast and barrier over a range of "
        "sizes, and writes a table that communicators read when they are opened. A size for "
        "which another algorithm than the first of the list is not at least 3 % faster keeps "
        "the first. 'peal bench --explain' says what a call takes, and why.",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .least_args = 0,
    .most_args = 0,
    .run = run,
};
