/* SPDX-License-Identifier: Apache-2.0 */
/* The timing method, the same for every library. See harness.h. */
#include "harness.h"

#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[BENCH_COLLECTIVES] = {
    [BENCH_ALLREDUCE] = "allreduce",
    [BENCH_ALLGATHER] = "allgather",
    [BENCH_REDUCE_SCATTER] = "reduce_scatter",
    [BENCH_BROADCAST] = "broadcast",
    [BENCH_ALL_TO_ALL] = "all_to_all",
    [BENCH_REDUCE] = "reduce",
    [BENCH_GATHER] = "gather",
    [BENCH_SCATTER] = "scatter",
    [BENCH_BARRIER] = "barrier",
    [BENCH_SCAN] = "scan",
    [BENCH_EXSCAN] = "exscan",
    [BENCH_ALLGATHER_V] = "allgather_v",
    [BENCH_REDUCE_SCATTER_V] = "reduce_scatter_v",
    [BENCH_GATHER_V] = "gather_v",
    [BENCH_SCATTER_V] = "scatter_v",
    [BENCH_ALL_TO_ALL_V] = "all_to_all_v",
};

static const char usage[] =
    "usage: PROGRAM COLLECTIVE [-s 8,4K,1M] [-t SECONDS] [-i ITERATIONS] [-m MODE] [-l LABEL]\n"
    "COLLECTIVE is allreduce, allgather, reduce_scatter, broadcast, all_to_all, reduce, gather, "
    "scatter,\n"
    "scan, exscan, barrier, or one with uneven blocks: allgather_v, reduce_scatter_v, gather_v, "
    "scatter_v, all_to_all_v\n"
    "-s  sizes in bytes, the larger buffer of a rank   -t  seconds for each result\n"
    "-i  most calls for each result                    -m  hot, fresh, both, row or all\n"
    "-l  the name to print for the library\n";

enum mode { HOT, FRESH, ROW, MODES };
static const char *const mode_names[MODES] = {"hot", "fresh", "row"};

struct options {
    enum bench_collective collective;
    size_t sizes[BENCH_MAX_SIZES], nsizes, largest;
    double seconds;
    int max_calls;
    bool modes[MODES];
    const char *label;
};

static volatile float sink; /* keeps the compiler from dropping the reads */

const char *bench_collective_name(enum bench_collective collective)
{
    return names[collective];
}

enum bench_collective bench_collective_find(const char *name)
{
    for (int i = 0; i < BENCH_COLLECTIVES; i++) {
        if (strcmp(name, names[i]) == 0)
            return (enum bench_collective)i;
    }
    fprintf(stderr, "no collective '%s'\n%s", name, usage);
    exit(2);
}

static void read_modes(struct options *o, const char *value)
{
    bool all = strcmp(value, "all") == 0, both = all || strcmp(value, "both") == 0;
    for (int mode = 0; mode < MODES; mode++)
        o->modes[mode] = strcmp(value, mode_names[mode]) == 0;
    o->modes[HOT] |= both;
    o->modes[FRESH] |= both;
    o->modes[ROW] |= all;
}

static struct options read_options(const char *label, int argc, char **argv)
{
    struct options o = {
        .seconds = 0.5, .max_calls = 2000, .modes = {[HOT] = true, [FRESH] = true}, .label = label};
    const char *sizes = "8,512,8K,128K,2M,32M";
    if (argc < 2 || argc % 2 != 0) {
        fputs(usage, stderr);
        exit(2);
    }
    o.collective = bench_collective_find(argv[1]);
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "-s") == 0) {
            sizes = value;
        } else if (strcmp(argv[i], "-t") == 0) {
            o.seconds = atof(value);
        } else if (strcmp(argv[i], "-i") == 0) {
            o.max_calls = atoi(value);
        } else if (strcmp(argv[i], "-m") == 0) {
            read_modes(&o, value);
        } else if (strcmp(argv[i], "-l") == 0) {
            o.label = value;
        } else {
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (o.max_calls < 3)
        o.max_calls = 3;
    o.nsizes = bench_sizes(o.collective == BENCH_BARRIER ? "0" : sizes, o.sizes);
    for (size_t i = 0; i < o.nsizes; i++)
        o.largest = o.sizes[i] > o.largest ? o.sizes[i] : o.largest;
    return o;
}

static bool has_blocks(enum bench_collective collective)
{
    return collective == BENCH_ALLGATHER || collective == BENCH_REDUCE_SCATTER ||
           collective == BENCH_ALL_TO_ALL || collective == BENCH_GATHER ||
           collective == BENCH_SCATTER;
}

static bool is_uneven(enum bench_collective collective)
{
    return collective >= BENCH_ALLGATHER_V && collective <= BENCH_ALL_TO_ALL_V;
}

/* Blocks whose lengths grow with the rank, `count` elements in all. */
static void cut(size_t count, size_t ranks, size_t *counts, size_t *offsets)
{
    size_t at = 0;
    for (size_t r = 0; r < ranks; r++) {
        counts[r] = r + 1 < ranks ? count * (r + 1) * 2 / (ranks * (ranks + 1)) : count - at;
        offsets[r] = at;
        at += counts[r];
    }
}

/* Small integers, whose sums are exact in f32 in any order. */
static float value_at(int rank, size_t i)
{
    return (float)(rank + 1 + (int)(i % 7));
}

static size_t input_count(const struct bench_library *library, const struct bench_call *call)
{
    bool from_root = call->collective == BENCH_BROADCAST || call->collective == BENCH_SCATTER ||
                     call->collective == BENCH_SCATTER_V;
    if (call->collective == BENCH_BARRIER || (from_root && library->rank != 0))
        return 0;
    if (call->collective == BENCH_ALLGATHER_V || call->collective == BENCH_GATHER_V)
        return call->counts[library->rank];
    if (call->collective == BENCH_ALLGATHER || call->collective == BENCH_GATHER)
        return call->count / (size_t)library->size;
    return call->count;
}

static size_t output_count(const struct bench_library *library, const struct bench_call *call)
{
    bool to_root = call->collective == BENCH_REDUCE || call->collective == BENCH_GATHER ||
                   call->collective == BENCH_GATHER_V;
    bool exclusive = call->collective == BENCH_EXSCAN && library->rank == 0;
    if (call->collective == BENCH_BARRIER || (to_root && library->rank != 0) || exclusive)
        return 0;
    if (call->collective == BENCH_REDUCE_SCATTER_V || call->collective == BENCH_SCATTER_V)
        return call->counts[library->rank];
    if (call->collective == BENCH_ALL_TO_ALL_V)
        return call->counts[library->rank] * (size_t)library->size;
    if (call->collective == BENCH_REDUCE_SCATTER || call->collective == BENCH_SCATTER)
        return call->count / (size_t)library->size;
    return call->count;
}

static float *output_of(const struct bench_call *call)
{
    return call->collective == BENCH_BROADCAST ? call->send : call->recv;
}

static void write_input(const struct bench_library *library, const struct bench_call *call)
{
    size_t n = input_count(library, call);
    for (size_t i = 0; i < n; i++)
        call->send[i] = value_at(library->rank, i);
}

/* The sum of the inputs of ranks 0 to last - 1. */
static float sum_of(int last, size_t i)
{
    return (float)(last * (last + 1) / 2 + last * (int)(i % 7));
}

static float expected_of_uneven(const struct bench_library *library, const struct bench_call *call,
                                size_t i)
{
    int from = 0;
    size_t own = call->offsets[library->rank];
    switch (call->collective) {
    case BENCH_REDUCE_SCATTER_V:
        return sum_of(library->size, own + i);
    case BENCH_SCATTER_V:
        return value_at(0, own + i);
    case BENCH_ALL_TO_ALL_V:
        from = (int)(i / call->counts[library->rank]);
        return value_at(from, own + i % call->counts[library->rank]);
    default:
        while (i >= call->offsets[from] + call->counts[from])
            from++;
        return value_at(from, i - call->offsets[from]);
    }
}

static float expected_at(const struct bench_library *library, const struct bench_call *call,
                         size_t i)
{
    int size = library->size;
    size_t block = call->count / (size_t)size, own = block * (size_t)library->rank;
    if (is_uneven(call->collective))
        return expected_of_uneven(library, call, i);
    switch (call->collective) {
    case BENCH_ALLREDUCE:
    case BENCH_REDUCE:
        return sum_of(size, i);
    case BENCH_SCAN:
        return sum_of(library->rank + 1, i);
    case BENCH_EXSCAN:
        return sum_of(library->rank, i);
    case BENCH_REDUCE_SCATTER:
        return sum_of(size, own + i);
    case BENCH_ALLGATHER:
    case BENCH_GATHER:
        return value_at((int)(i / block), i % block);
    case BENCH_ALL_TO_ALL:
        return value_at((int)(i / block), own + i % block);
    case BENCH_SCATTER:
        return value_at(0, own + i);
    default:
        return value_at(0, i);
    }
}

static bool result_is_right(const struct bench_library *library, const struct bench_call *call)
{
    size_t n = output_count(library, call);
    const float *output = output_of(call);
    for (size_t i = 0; i < n; i++) {
        if (output[i] != expected_at(library, call, i))
            return false;
    }
    return true;
}

/* Writes the input again and reads a value of each cache line of the output. */
static void touch(const struct bench_library *library, const struct bench_call *call)
{
    size_t n = output_count(library, call);
    const float *output = output_of(call);
    float sum = 0;
    for (size_t i = 0; i < n; i += 16)
        sum += output[i];
    sink = sum;
    write_input(library, call);
}

/* The average over many calls that follow each other directly. */
static double time_row(const struct bench_library *library, const struct bench_call *call)
{
    enum { CALLS = 64 };
    library->barrier();
    double start = bench_now_us();
    for (int i = 0; i < CALLS; i++)
        library->call(call);
    return (bench_now_us() - start) / CALLS;
}

static double time_once(const struct bench_library *library, const struct bench_call *call,
                        enum mode mode)
{
    if (mode == ROW)
        return time_row(library, call);
    if (mode == FRESH) {
        /* If ranks share a core, touching would slow down ranks still in the previous call. */
        library->barrier();
        touch(library, call);
    }
    library->barrier();
    double start = bench_now_us();
    library->call(call);
    return bench_now_us() - start;
}

static void measure(const struct bench_library *library, const struct bench_call *call,
                    const struct options *o, enum mode mode, bool right)
{
    double *times = malloc((size_t)o->max_calls * sizeof *times);
    if (!times)
        exit(1);
    /* How many calls fit into the time, including everything around them, on the slowest rank. The
     * minimum of several trials, so that one interruption does not decide. */
    double each = INFINITY;
    for (int i = 0; i < 5; i++) {
        double start = bench_now_us();
        time_once(library, call, mode);
        each = fmin(each, bench_now_us() - start);
    }
    library->maximum(&each, 1);
    double fits = o->seconds * 1e6 / each;
    int n = fits > o->max_calls ? o->max_calls : (int)fits;
    if (n < 5 && o->max_calls >= 5)
        n = 5;
    for (int i = 0; i < n; i++)
        times[i] = time_once(library, call, mode);
    library->maximum(times, n);
    if (library->rank == 0) {
        size_t bytes = call->collective == BENCH_BARRIER ? 0 : call->count * sizeof(float);
        double median = bench_median(times, (size_t)n);
        printf("{\"system\": \"%s\", \"collective\": \"%s\", \"nranks\": %d, \"bytes\": %zu, "
               "\"mode\": \"%s\", \"calls\": %d, \"min_us\": %.3f, \"median_us\": %.3f, "
               "\"p90_us\": %.3f, \"right\": %s}\n",
               o->label, bench_collective_name(call->collective), library->size, bytes,
               mode_names[mode], n, times[0], median, bench_quantile(times, (size_t)n, 0.9),
               right ? "true" : "false");
        fflush(stdout);
    }
    free(times);
}

static void measure_size(const struct bench_library *library, const struct options *o,
                         struct bench_call *call)
{
    if (library->prepare)
        library->prepare(call);
    memset(call->recv, 0, output_count(library, call) * sizeof(float));
    if (call->collective == BENCH_BROADCAST)
        memset(call->send, 0, call->count * sizeof(float));
    write_input(library, call);
    library->barrier();
    library->call(call);
    double wrong = !result_is_right(library, call);
    library->maximum(&wrong, 1);
    for (int mode = 0; mode < MODES; mode++) {
        if (o->modes[mode])
            measure(library, call, o, (enum mode)mode, wrong == 0);
    }
}

static void *own_memory(size_t bytes)
{
    void *at = NULL;
    return posix_memalign(&at, 4096, bytes) == 0 ? at : NULL;
}

int bench_fork(int ranks)
{
    for (int r = 0; r < ranks; r++) {
        pid_t pid = fork();
        if (pid < 0) {
            perror("fork");
            exit(1);
        }
        if (pid == 0)
            return r;
    }
    int worst = 0, status;
    while (wait(&status) > 0) {
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        worst = code > worst ? code : worst;
    }
    exit(worst);
}

int bench_run(const struct bench_library *library, int argc, char **argv)
{
    struct options o = read_options(library->name, argc, argv);
    if (library->pin)
        bench_pin(library->rank);
    size_t room = (o.largest + 4096) / sizeof(float) * sizeof(float) + (size_t)library->size * 64;
    void *(*alloc)(size_t) = library->alloc ? library->alloc : own_memory;
    if (o.collective == BENCH_ALL_TO_ALL_V) /* the last rank receives nearly twice what it sends */
        room *= 2;
    float *send = alloc(room), *recv = alloc(room);
    size_t *cuts = calloc(2 * (size_t)library->size, sizeof *cuts);
    if (!send || !recv || !cuts) {
        fprintf(stderr, "no memory for buffers of %zu bytes\n", room);
        return 1;
    }
    memset(send, 0, room);
    memset(recv, 0, room);
    for (size_t i = 0; i < o.nsizes; i++) {
        size_t count = o.sizes[i] / sizeof(float), size = (size_t)library->size;
        if (has_blocks(o.collective))
            count = count < size ? size : count / size * size;
        cut(count, size, cuts, cuts + size);
        struct bench_call call = {o.collective, send, recv, count, cuts, cuts + size};
        measure_size(library, &o, &call);
    }
    free(cuts);
    return 0;
}
