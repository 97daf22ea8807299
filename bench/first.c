/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a new count: the first call of each size compared with later ones, and uneven calls
 * with new counts every time compared with calls that repeat their counts.
 *
 *   first [--ranks 2,4] [--json] [allreduce,...]
 *
 * Sizes are 3/4 of 4^k, then 4^k. The former is the first of its class, so the latter is a new
 * count of a known class. The very first size is the first use of the collective.
 *
 * Large calls use different memory each time: for the first two or three uses of a buffer, whether
 * it has been touched matters more than whether the count is new.
 *
 * Each cell (a collective, a size, a number of ranks) is the median of several rounds, each with a
 * new communicator, because a first call happens only once. Limits: a first call may take 50 us or
 * 5 % longer than later ones, whichever is more; an uneven call with new counts 5 us (50 us for
 * more than four ranks) or 5 %. Cells above their limit are listed and counted.
 */
#include <peal/peal.h>

#include "measure.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUNDS = 5,
    LATER = 40,
    LARGE = 64 << 10,
    LATER_LARGE = 10, /* besides the first one, each with its own memory */
    MAX_BYTES = 4 << 20,
    AREA = 2 * (LATER_LARGE + 2) * MAX_BYTES,
    SIZES = 17, /* up to MAX_BYTES */
    MAX_RANKS = 16
};

#define ALL_NAMES                                                                                  \
    "allreduce,reduce,broadcast,allgather,reduce_scatter,all_to_all,allgather_v,"                  \
    "reduce_scatter_v,all_to_all_v"

struct line {
    double first[ROUNDS], later[ROUNDS];
};

static struct peal_comm *comm;
static char *area, *send, *recv;
static size_t area_used;

static void check(enum peal_status status)
{
    if (status != PEAL_OK) {
        fprintf(stderr, "first: %s\n%s\n", peal_status_text(status), peal_comm_error(comm));
        exit(1);
    }
}

/* Counts around n that differ from call to call, the same on all ranks. */
static void uneven(uint64_t n, uint64_t turn, uint64_t counts[MAX_RANKS])
{
    for (uint32_t r = 0; r < peal_comm_size(comm); r++)
        counts[r] = n - (turn * 7 + r * 3) % (n / 2 + 1);
}

static void call(const char *name, uint64_t bytes, uint64_t turn)
{
    uint32_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    uint64_t n = bytes / 4, block = n / size, counts[MAX_RANKS], back[MAX_RANKS];
    uneven(block, turn, counts);
    struct peal_blocks out = {counts, NULL}, in = {back, NULL};
    for (uint32_t r = 0; r < size; r++)
        back[r] = counts[rank];
    if (strcmp(name, "allreduce") == 0)
        check(peal_allreduce(comm, send, recv, n, PEAL_F32, PEAL_SUM));
    else if (strcmp(name, "reduce") == 0)
        check(peal_reduce(comm, send, recv, n, PEAL_F32, PEAL_SUM, 0));
    else if (strcmp(name, "broadcast") == 0)
        check(peal_broadcast(comm, recv, n, PEAL_F32, 0));
    else if (strcmp(name, "allgather") == 0)
        check(peal_allgather(comm, send, recv, block, PEAL_F32));
    else if (strcmp(name, "reduce_scatter") == 0)
        check(peal_reduce_scatter(comm, send, recv, block, PEAL_F32, PEAL_SUM));
    else if (strcmp(name, "all_to_all") == 0)
        check(peal_all_to_all(comm, send, recv, block, PEAL_F32));
    else if (strcmp(name, "allgather_v") == 0)
        check(peal_allgather_v(comm, send, recv, counts, NULL, PEAL_F32));
    else if (strcmp(name, "reduce_scatter_v") == 0)
        check(peal_reduce_scatter_v(comm, send, recv, counts, NULL, PEAL_F32, PEAL_SUM));
    else
        check(peal_all_to_all_v(comm, send, &out, recv, &in, PEAL_F32));
}

/* Takes the next part of the area. Using all parts in turn gives each the longest time unused. */
static void choose_memory(uint64_t bytes)
{
    if (area_used + 2 * bytes > AREA)
        area_used = 0;
    send = area + area_used;
    recv = send + bytes;
    area_used += 2 * bytes;
}

/* The slowest rank's time for one call. The buffers are rewritten before it, so that they are in
 * the same caches for a first call as for later ones. */
static double timed(const char *name, uint64_t bytes, uint64_t turn)
{
    double slowest;
    if (bytes > LARGE)
        choose_memory(bytes);
    memset(send, 1, bytes);
    memset(recv, 1, bytes);
    check(peal_barrier(comm));
    double start = bench_now_us();
    call(name, bytes, turn);
    double took = bench_now_us() - start;
    check(peal_allreduce(comm, &took, &slowest, 1, PEAL_F64, PEAL_MAX));
    return slowest;
}

/* One size: the first call and later ones, or uneven calls with new and with repeated counts. */
static void measure(const char *name, uint64_t bytes, double *first, double *later)
{
    bool is_v = strstr(name, "_v") != NULL;
    double again[LATER], fresh[LATER];
    size_t n = bytes > LARGE ? LATER_LARGE : LATER;
    double begin = timed(name, bytes, 0);
    for (size_t i = 0; i < n; i++) {
        again[i] = timed(name, bytes, 0);
        if (is_v)
            fresh[i] = timed(name, bytes, i + 1);
    }
    *first = is_v ? bench_median(fresh, n) : begin;
    *later = bench_median(again, n);
}

/* 64, 192, 256, 768, 1024, ... */
static uint64_t bytes_of(int index)
{
    uint64_t bytes = UINT64_C(64) << (index + 1) / 2 * 2;
    return index % 2 == 0 ? bytes : bytes - bytes / 4;
}

static void run_rank(int ranks, int rank, int round, const char *names, struct line *lines)
{
    char job[64], copy[256], *rest = copy;
    snprintf(job, sizeof job, "first-%d-%d", (int)getppid(), round);
    struct peal_open options = {.size = (uint32_t)ranks, .rank = (uint32_t)rank, .job = job};
    bench_pin(rank);
    if (peal_comm_open(&options, &comm) != PEAL_OK) {
        fprintf(stderr, "first: %s\n", peal_comm_error(NULL));
        exit(1);
    }
    area = malloc(AREA);
    if (!area)
        exit(1);
    memset(area, 1, AREA);
    choose_memory(MAX_BYTES);
    snprintf(copy, sizeof copy, "%s", names);
    double one = 1;
    check(peal_allreduce(comm, &one, send, 1, PEAL_F64, PEAL_MAX));
    for (char *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
        for (int i = 0; i < SIZES; i++, lines++) {
            double first, later;
            measure(name, bytes_of(i), &first, &later);
            if (rank == 0) {
                lines->first[round] = first;
                lines->later[round] = later;
            }
        }
    }
    peal_comm_close(comm);
    exit(0);
}

/* ---- cells ---- */

enum kind { NEW_COUNT, NEW_CLASS, FIRST_USE, NEW_COUNT_LARGE, NEW_CLASS_LARGE, UNEVEN, KINDS };
static const char *const kinds[KINDS] = {"new count, small",          "new class, small",
                                         "first use of a collective", "new count, large",
                                         "new class, large",          "new counts, uneven"};

struct cell {
    const char *collective;
    int ranks;
    uint64_t bytes;
    enum kind kind;
    double later, more, least, allowed;
};

static void judge(const char *name, int ranks, int index, struct line *line, struct cell *out)
{
    double more[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        more[round] = line->first[round] - line->later[round];
    *out = (struct cell){.collective = name, .ranks = ranks, .bytes = bytes_of(index)};
    out->later = bench_median(line->later, ROUNDS);
    out->more = bench_median(more, ROUNDS);
    out->least = more[0];
    bool large = out->bytes > LARGE;
    if (strstr(name, "_v"))
        out->kind = UNEVEN;
    else if (index == 0)
        out->kind = FIRST_USE;
    else if (index % 2 == 0)
        out->kind = large ? NEW_COUNT_LARGE : NEW_COUNT;
    else
        out->kind = large ? NEW_CLASS_LARGE : NEW_CLASS;
    out->allowed = out->kind == UNEVEN && ranks <= 4 ? 5 : 50;
    if (out->later / 20 > out->allowed)
        out->allowed = out->later / 20;
}

static bool is_met(const struct cell *cell)
{
    return cell->more <= cell->allowed;
}

static void print_json(const struct cell *cell)
{
    printf("{\"collective\": \"%s\", \"ranks\": %d, \"bytes\": %llu, \"what\": \"%s\", "
           "\"later_us\": %.1f, \"more_us\": %.1f, \"least_more_us\": %.1f, "
           "\"allowed_us\": %.1f, \"met\": %s}\n",
           cell->collective, cell->ranks, (unsigned long long)cell->bytes, kinds[cell->kind],
           cell->later, cell->more, cell->least, cell->allowed, is_met(cell) ? "true" : "false");
}

/* ---- the table ---- */

/* The median and the worst of the cells of a kind, and how many are above their limit. */
static void print_kind(const struct cell *cells, size_t n, int ranks, enum kind kind)
{
    double *more = malloc((n + 1) * sizeof *more);
    size_t found = 0, missed = 0;
    if (!more)
        exit(1);
    for (size_t i = 0; i < n; i++) {
        if (cells[i].ranks != ranks || cells[i].kind != kind)
            continue;
        more[found++] = cells[i].more;
        missed += !is_met(&cells[i]);
    }
    if (found == 0) {
        printf(" |");
    } else {
        double median = bench_median(more, found);
        double worst = more[found - 1];
        printf(" %.*f (%.*f)", median < 9.95, median, worst < 9.95, worst);
        if (missed > 0)
            printf(", %zu of %zu", missed, found);
        printf(" |");
    }
    free(more);
}

static void print_table(const struct cell *cells, size_t n, const int *ranks, size_t nranks)
{
    size_t missed = 0;
    printf("| ranks |");
    for (int k = 0; k < KINDS; k++)
        printf(" %s |", kinds[k]);
    printf("\n|---|---|---|---|---|---|---|\n");
    for (size_t r = 0; r < nranks; r++) {
        printf("| %d |", ranks[r]);
        for (int k = 0; k < KINDS; k++)
            print_kind(cells, n, ranks[r], (enum kind)k);
        printf("\n");
    }
    printf("\n");
    for (size_t i = 0; i < n; i++) {
        if (is_met(&cells[i]))
            continue;
        missed++;
        printf("too long: %s of %llu bytes, %d ranks (%s): %.0f us more than %.0f, %.0f allowed\n",
               cells[i].collective, (unsigned long long)cells[i].bytes, cells[i].ranks,
               kinds[cells[i].kind], cells[i].more, cells[i].later, cells[i].allowed);
    }
    printf("%zu of %zu cells take longer than allowed\n", missed, n);
}

/* ---- running ---- */

static bool run_rounds(int ranks, const char *names, struct line *lines)
{
    for (int round = 0; round < ROUNDS; round++) {
        fflush(stdout);
        bool failed = false;
        for (int rank = 0; rank < ranks; rank++) {
            pid_t pid = fork();
            if (pid == 0)
                run_rank(ranks, rank, round, names, lines);
            if (pid < 0) {
                failed = true; /* the ranks already started give up after their time-out */
                break;
            }
        }
        for (int status; wait(&status) > 0;)
            failed |= status != 0;
        if (failed)
            return false;
    }
    return true;
}

/* Is each name of the list a known one, and is none repeated? */
static bool are_known(const char *list)
{
    char copy[256], *rest = copy, seen[256] = ",";
    snprintf(copy, sizeof copy, "%s", list);
    for (char *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
        char framed[64];
        snprintf(framed, sizeof framed, ",%.60s,", name);
        if (!strstr("," ALL_NAMES ",", framed) || strstr(seen, framed))
            return false;
        strcat(seen, framed + 1); /* fits: different names of ALL_NAMES */
    }
    return true;
}

static int usage(void)
{
    fprintf(stderr, "usage: first [--ranks 2,4] [--json] [allreduce,...]\n"
                    "collectives: " ALL_NAMES "\n");
    return 2;
}

/* Reads "2,4" and returns the number of numbers. */
static int read_ranks(char *list, int ranks[MAX_RANKS])
{
    int n = 0;
    for (char *one = strsep(&list, ","); one; one = strsep(&list, ",")) {
        if (n == MAX_RANKS)
            break;
        ranks[n++] = atoi(one);
    }
    return n;
}

int main(int argc, char **argv)
{
    static char names[256] = ALL_NAMES;
    int ranks[MAX_RANKS] = {2}, nranks = 1;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc) {
            nranks = read_ranks(argv[++i], ranks);
        } else if (argv[i][0] != '-') {
            snprintf(names, sizeof names, "%s", argv[i]);
        } else {
            return usage();
        }
    }
    if (!are_known(names))
        return usage();
    struct line *lines = bench_shared(32 * SIZES * sizeof *lines);
    struct cell *cells = calloc((size_t)nranks * 32 * SIZES, sizeof *cells);
    char copy[256];
    size_t n = 0;
    if (!cells)
        return 1;
    for (int r = 0; r < nranks; r++) {
        char *rest = copy;
        struct line *line = lines;
        if (ranks[r] < 1 || ranks[r] > MAX_RANKS)
            return usage();
        if (!run_rounds(ranks[r], names, lines))
            return 1;
        snprintf(copy, sizeof copy, "%s", names);
        for (char *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
            for (int i = 0; i < SIZES; i++)
                judge(name, ranks[r], i, line++, &cells[n++]);
        }
    }
    if (json) {
        for (size_t i = 0; i < n; i++)
            print_json(&cells[i]);
    } else {
        print_table(cells, n, ranks, (size_t)nranks);
    }
    free(cells);
    return 0;
}
