/* SPDX-License-Identifier: Apache-2.0 */
/* peal bench: times a collective over a range of sizes, in the layout of nccl-tests. */
#include "cli/bench_plot.h"
#include "cli/progress.h"
#include "cli/ranks.h"

#include "report/json.h"
#include "run/pause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_options {
    int64_t ranks, warmup, iterations, root;
    uint64_t begin, end;
    int64_t factor;
    enum peal_dtype dtype;
    enum peal_reduce reduce;
    const char *algo, *svg;
    bool json, threads, symmetric, fresh, explain, no_bind;
};

/* A collective under test. Sizes are of the larger buffer of a rank, as in nccl-tests. */
struct subject {
    const char *name;
    bool send_blocks, recv_blocks; /* that side has a block for every rank */
    bool has_reduce, has_root;
    double bus; /* bus bandwidth over algorithm bandwidth: times (P-1)/P */
    enum peal_status (*call)(struct peal_comm *, void *, void *, uint64_t, enum peal_dtype,
                             enum peal_reduce, uint32_t);
};

#define CALL(name, ...)                                                                            \
    static enum peal_status call_##name(struct peal_comm *comm, void *send, void *recv,            \
                                        uint64_t count, enum peal_dtype dtype,                     \
                                        enum peal_reduce op, uint32_t root)                        \
    {                                                                                              \
        (void)send, (void)recv, (void)count, (void)dtype, (void)op, (void)root;                    \
        return peal_##name(comm, __VA_ARGS__);                                                     \
    }
CALL(allreduce, send, recv, count, dtype, op)
CALL(reduce, send, recv, count, dtype, op, root)
CALL(broadcast, recv, count, dtype, root)
CALL(allgather, send, recv, count, dtype)
CALL(reduce_scatter, send, recv, count, dtype, op)
CALL(gather, send, recv, count, dtype, root)
CALL(scatter, send, recv, count, dtype, root)
CALL(all_to_all, send, recv, count, dtype)
static enum peal_status call_barrier(struct peal_comm *comm, void *send, void *recv, uint64_t count,
                                     enum peal_dtype dtype, enum peal_reduce op, uint32_t root)
{
    (void)send, (void)recv, (void)count, (void)dtype, (void)op, (void)root;
    return peal_barrier(comm);
}

static const struct subject subjects[] = {
    {"allreduce", false, false, true, false, 2, call_allreduce},
    {"allgather", false, true, false, false, 1, call_allgather},
    {"reduce_scatter", true, false, true, false, 1, call_reduce_scatter},
    {"broadcast", false, false, false, true, 0, call_broadcast},
    {"reduce", false, false, true, true, 0, call_reduce},
    {"gather", false, true, false, true, 1, call_gather},
    {"scatter", true, false, false, true, 1, call_scatter},
    {"all_to_all", true, true, false, false, 1, call_all_to_all},
    {"barrier", false, false, false, false, 0, call_barrier},
};

struct bench {
    const struct bench_options *options;
    const struct subject *subject;
    struct peal_progress *progress;
    struct peal_comm *comm;
    struct peal_text rows; /* JSON rows, or nothing */
    struct peal_bench_plot plot;
    char *send, *recv;
};

struct result {
    double time_us; /* median of the slowest rank */
    uint64_t wrong; /* elements on all ranks */
    enum peal_status status;
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* ---- data: small integers, exact in every type and order of summing ---- */

static void put(char *at, enum peal_dtype dtype, uint64_t i, double value)
{
    struct peal_operand dst = {at + i * peal_dtype_size(dtype), 0, dtype};
    struct peal_operand src = {NULL, value, dtype};
    peal_compute_generic.combine(PEAL_FN_ID, &dst, &src, 1, 1, 0);
}

static double get(const char *at, enum peal_dtype dtype, uint64_t i)
{
    double value = 0;
    struct peal_operand dst = {&value, 0, PEAL_F64};
    struct peal_operand src = {(char *)(uintptr_t)at + i * peal_dtype_size(dtype), 0, dtype};
    peal_compute_generic.combine(PEAL_FN_ID, &dst, &src, 1, 1, 0);
    return value;
}

static double input(uint32_t rank, uint64_t i)
{
    return (double)((rank + i) % 3 == 0 ? 2 : 1);
}

static double reduced(enum peal_reduce op, uint32_t ranks, uint64_t i)
{
    double acc = input(0, i);
    for (uint32_t r = 1; r < ranks; r++) {
        double v = input(r, i);
        switch (op) {
        case PEAL_PROD:
            acc *= v;
            break;
        case PEAL_MAX:
            acc = v > acc ? v : acc;
            break;
        case PEAL_MIN:
            acc = v < acc ? v : acc;
            break;
        case PEAL_AND:
            acc = (double)((int)acc & (int)v);
            break;
        case PEAL_OR:
            acc = (double)((int)acc | (int)v);
            break;
        case PEAL_XOR:
            acc = (double)((int)acc ^ (int)v);
            break;
        default:
            acc += v;
        }
    }
    return op == PEAL_AVG ? acc / ranks : acc;
}

/* What element i of this rank's output must be; NAN where it is not looked at. */
static double expected(const struct bench *b, uint64_t block, uint64_t i)
{
    const struct subject *s = b->subject;
    uint32_t rank = peal_comm_rank(b->comm), size = peal_comm_size(b->comm);
    uint32_t root = (uint32_t)b->options->root;
    if (s->has_reduce)
        return reduced(b->options->reduce, size, s->send_blocks ? rank * block + i : i);
    if (s->send_blocks && s->recv_blocks) /* all_to_all */
        return input((uint32_t)(i / block), rank * block + i % block);
    if (s->recv_blocks)
        return input((uint32_t)(i / block), i % block);
    return input(root, s->send_blocks ? rank * block + i : i);
}

static uint64_t check(const struct bench *b, const char *recv, uint64_t block)
{
    const struct subject *s = b->subject;
    uint32_t rank = peal_comm_rank(b->comm), size = peal_comm_size(b->comm);
    uint64_t n = s->recv_blocks ? block * size : block, wrong = 0;
    bool root_only = strcmp(s->name, "reduce") == 0 || strcmp(s->name, "gather") == 0;
    if (s->call == call_barrier || (root_only && rank != (uint32_t)b->options->root))
        return 0;
    uint64_t step = n > 65536 ? n / 65536 : 1; /* large ones by samples */
    for (uint64_t i = 0; i < n; i += step) {
        double want = expected(b, block, i), got = get(recv, b->options->dtype, i);
        double error = got > want ? got - want : want - got;
        wrong += !(error <= 0.01 * (want < 0 ? -want : want));
    }
    return wrong;
}

/* ---- timing ---- */

static int64_t iterations(const struct bench_options *o, uint64_t bytes)
{
    if (o->iterations > 0)
        return o->iterations;
    int64_t n = (int64_t)((UINT64_C(1) << 28) / (bytes + 65536));
    return n < 10 ? 10 : n > 2000 ? 2000 : n;
}

/* Roughly how long a size takes against others: its calls, and making and checking its data. */
static uint64_t weigh(const struct bench *b, uint64_t bytes)
{
    uint64_t calls = (uint64_t)(iterations(b->options, bytes) + b->options->warmup);
    return calls * (bytes + 65536) + bytes * 16;
}

static uint64_t last_size(const struct bench *b)
{
    return b->subject->call == call_barrier ? b->options->begin : b->options->end;
}

static void fill(const struct bench *b, char *send, uint64_t n)
{
    uint32_t rank = peal_comm_rank(b->comm);
    for (uint64_t i = 0; i < n; i++)
        put(send, b->options->dtype, i, input(rank, i));
}

/* Rewrites the input as a program would, and reads the output. */
static void refresh(const char *recv, char *send, uint64_t send_bytes, uint64_t recv_bytes)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i + 8 <= recv_bytes; i += 64) {
        uint64_t word;
        memcpy(&word, recv + i, 8);
        sum += word;
    }
    for (uint64_t i = 0; i < send_bytes; i += 64)
        ((volatile char *)send)[i] = send[i];
    __asm__ volatile("" ::"r"(sum));
}

static struct result time_calls(struct bench *b, uint64_t block, bool in_place)
{
    const struct bench_options *o = b->options;
    const struct subject *s = b->subject;
    uint32_t rank = peal_comm_rank(b->comm), size = peal_comm_size(b->comm);
    uint64_t element = peal_dtype_size(o->dtype), own = rank * block * element;
    uint64_t send_n = s->send_blocks ? block * size : block;
    uint64_t recv_n = s->recv_blocks ? block * size : block;
    char *send = b->send, *recv = b->recv;
    if (in_place) {
        send = s->recv_blocks && !s->send_blocks ? b->recv + own : b->recv;
        recv = s->send_blocks && !s->recv_blocks ? b->recv + own : b->recv;
    }
    if (s->call == call_broadcast)
        send = recv;
    int64_t n = iterations(o, send_n * element);
    double *times = calloc((size_t)n, sizeof *times), *most = calloc((size_t)n, sizeof *most);
    struct result result = {.status = times && most ? PEAL_OK : PEAL_NO_MEMORY};
    bool refill = in_place || s->call == call_broadcast;
    fill(b, send, send_n);
    for (int64_t i = -o->warmup; result.status == PEAL_OK && i < n; i++) {
        if (o->fresh && !refill)
            refresh(recv, send, send_n * element, recv_n * element);
        result.status = peal_barrier(b->comm);
        uint64_t start = peal_now_ns();
        if (result.status == PEAL_OK)
            result.status =
                s->call(b->comm, send, recv, block, o->dtype, o->reduce, (uint32_t)o->root);
        if (i >= 0)
            times[i] = (double)(peal_now_ns() - start) / 1e3;
    }
    if (refill) /* repeated sums have long left the exact range */
        fill(b, send, send_n);
    if (result.status == PEAL_OK)
        result.status = s->call(b->comm, send, recv, block, o->dtype, o->reduce, (uint32_t)o->root);
    uint64_t wrong = check(b, recv, block), all = 0;
    if (result.status == PEAL_OK)
        result.status = peal_allreduce(b->comm, &wrong, &all, 1, PEAL_I64, PEAL_SUM);
    if (result.status == PEAL_OK)
        result.status = peal_allreduce(b->comm, times, most, (uint64_t)n, PEAL_F64, PEAL_MAX);
    if (result.status == PEAL_OK) {
        qsort(most, (size_t)n, sizeof *most, compare_doubles);
        result.time_us = most[n / 2];
        result.wrong = all;
    }
    free(times);
    free(most);
    return result;
}

/* ---- output ---- */

/* The columns of nccl-tests that differ from row to row; the others are said once, to fit 80
 * columns. */
static void print_head(const struct bench *b)
{
    const struct bench_options *o = b->options;
    printf("# peal bench %s: %u ranks (%s), %s buffers, %s\n# %s", b->subject->name,
           peal_comm_size(b->comm), o->threads ? "threads" : "processes",
           o->symmetric ? "symmetric" : "private", o->fresh ? "fresh" : "hot",
           peal_dtype_name(o->dtype));
    if (b->subject->has_reduce)
        printf(", %s", peal_reduce_name(o->reduce));
    if (b->subject->has_root)
        printf(", root %lld", (long long)o->root);
    printf("; median over the calls of the slowest rank's time\n");
    printf("# %9s %20s%12s %18s\n", "", "out-of-place", "", "in-place");
    printf("# %9s", "size");
    for (int i = 0; i < 2; i++)
        printf(" %9s %7s %7s %5s", "time", "algbw", "busbw", "wrong");
    printf("\n# %9s", "(B)");
    for (int i = 0; i < 2; i++)
        printf(" %9s %7s %7s%s", "(us)", "(GB/s)", "(GB/s)", i ? "\n" : "      ");
}

static void add_row(struct bench *b, uint64_t bytes, bool in_place, const struct result *result,
                    const char *algo)
{
    peal_text_printf(&b->rows,
                     "%s\n  {\"collective\": \"%s\", \"ranks\": %u, \"bytes\": %llu, \"time_us\": "
                     "%.3f, \"in_place\": %s, \"buffers\": \"%s\", \"memory\": \"%s\", \"wrong\": "
                     "%llu, \"algo\": \"%s\"}",
                     b->rows.len ? "," : "", b->subject->name, peal_comm_size(b->comm),
                     (unsigned long long)bytes, result->time_us, in_place ? "true" : "false",
                     b->options->fresh ? "fresh" : "hot",
                     b->options->symmetric ? "symmetric" : "private",
                     (unsigned long long)result->wrong, algo);
}

static double bus_factor(const struct bench *b)
{
    double ranks = peal_comm_size(b->comm);
    return b->subject->bus > 0 ? b->subject->bus * (ranks - 1) / ranks : 1;
}

static void put_result(const struct bench *b, uint64_t bytes, const struct result *result,
                       struct peal_text *out)
{
    double algbw = (double)bytes / (result->time_us * 1e3);
    peal_text_printf(out, " %9.2f %7.2f %7.2f %5llu", result->time_us, algbw, algbw * bus_factor(b),
                     (unsigned long long)result->wrong);
}

/* Lines that begin with '#', as programs that read the table expect. */
static void put_remark(const char *remark, struct peal_text *out)
{
    struct peal_text wrapped = {0};
    peal_text_words(&wrapped, remark, strlen(remark), 2, 2);
    for (const char *at = peal_text_get(&wrapped); *at;) {
        int len = (int)strcspn(at, "\n");
        peal_text_printf(out, "# %.*s\n", len, at);
        at += len + (at[len] == '\n');
    }
    peal_text_release(&wrapped);
}

static enum peal_status run_size(struct bench *b, uint64_t bytes, uint64_t *wrong)
{
    const struct bench_options *o = b->options;
    const struct subject *s = b->subject;
    uint32_t size = peal_comm_size(b->comm);
    uint64_t element = peal_dtype_size(o->dtype), count = bytes / element;
    uint64_t block = s->send_blocks || s->recv_blocks ? count / size : count;
    if (s->send_blocks || s->recv_blocks)
        block = block ? block : 1;
    uint64_t real = block * (s->send_blocks || s->recv_blocks ? size : 1) * element;
    bool first = peal_comm_rank(b->comm) == 0, table = first && !o->json;
    bool can_in_place = s->call != call_all_to_all && s->call != call_barrier &&
                        s->call != call_gather && s->call != call_scatter;
    const char *why = peal_comm_explain(b->comm, s->name, block * element, o->symmetric);
    struct peal_text line = {0};
    if (table && o->explain)
        put_remark(why, &line);
    char algo[48] = "";
    const char *quoted = strchr(why, '\'');
    if (quoted)
        snprintf(algo, sizeof algo, "%.*s", (int)strcspn(quoted + 1, "'"), quoted + 1);
    if (table)
        peal_text_printf(&line, "%11llu", (unsigned long long)real);
    enum peal_status status = PEAL_OK;
    for (int in_place = 0; in_place <= can_in_place && status == PEAL_OK; in_place++) {
        struct result result = time_calls(b, block, in_place);
        status = result.status;
        *wrong += result.wrong;
        if (status != PEAL_OK)
            break;
        add_row(b, real, in_place, &result, algo);
        if (table)
            put_result(b, real, &result, &line);
        if (first && !in_place)
            peal_bench_plot_add(&b->plot, (double)real, (double)real / (result.time_us * 1e3));
    }
    peal_text_puts(&line, "\n");
    if (table && status == PEAL_OK)
        peal_progress_print(b->progress, &line);
    if (first && status == PEAL_OK)
        peal_progress_step(b->progress, weigh(b, bytes));
    peal_text_release(&line);
    return status;
}

static enum peal_status make_buffers(struct bench *b)
{
    uint64_t bytes = b->options->end + 256 * 64;
    if (!b->options->symmetric) {
        b->send = aligned_alloc(4096, (bytes + 4095) & ~UINT64_C(4095));
        b->recv = aligned_alloc(4096, (bytes + 4095) & ~UINT64_C(4095));
        if (!b->send || !b->recv)
            return PEAL_NO_MEMORY;
        memset(b->send, 0, bytes);
        memset(b->recv, 0, bytes);
        return PEAL_OK;
    }
    enum peal_status status = peal_symmetric_alloc(b->comm, bytes, (void **)&b->send);
    return status == PEAL_OK ? peal_symmetric_alloc(b->comm, bytes, (void **)&b->recv) : status;
}

static int body(struct peal_comm *comm, void *context)
{
    struct bench bench = *(const struct bench *)context;
    const struct bench_options *o = bench.options;
    bench.comm = comm;
    bool first = peal_comm_rank(comm) == 0;
    uint64_t wrong = 0;
    enum peal_status status = make_buffers(&bench);
    if (status == PEAL_OK && o->algo)
        status = peal_comm_set_algo(comm, bench.subject->name, o->algo);
    if (status == PEAL_OK && first && !o->json)
        print_head(&bench);
    for (uint64_t bytes = o->begin; status == PEAL_OK && bytes <= last_size(&bench);
         bytes *= (uint64_t)o->factor)
        status = run_size(&bench, bytes, &wrong);
    if (status != PEAL_OK && first)
        fprintf(stderr, "peal bench: %s: %s\n", peal_status_text(status), peal_comm_error(comm));
    if (first && o->json)
        printf("[%s\n]\n", peal_text_get(&bench.rows));
    if (first && o->svg && !peal_bench_plot_write(&bench.plot, bench.subject->name, o->svg))
        status = PEAL_SYSTEM;
    peal_text_release(&bench.rows);
    peal_bench_plot_release(&bench.plot);
    if (!o->symmetric) {
        free(bench.send);
        free(bench.recv);
    }
    return status != PEAL_OK ? PEAL_EXIT_OTHER : wrong ? PEAL_EXIT_NO : PEAL_EXIT_OK;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)nargs;
    const struct bench_options *o = options;
    struct bench bench = {.options = o};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (strcmp(subjects[i].name, args[0]) == 0)
            bench.subject = &subjects[i];
    }
    if (!bench.subject)
        return peal_cli_usage(cli, "there is no collective '%s'", args[0]);
    if (o->begin == 0 || o->begin > o->end || o->end > UINT64_C(1) << 40)
        return peal_cli_usage(cli, "sizes from %llu to %llu make no sense",
                              (unsigned long long)o->begin, (unsigned long long)o->end);
    if (o->root >= o->ranks)
        return peal_cli_usage(cli, "root %lld of %lld ranks", (long long)o->root,
                              (long long)o->ranks);
    if (bench.subject->has_reduce && !peal_reduce_takes(o->reduce, o->dtype))
        return peal_cli_usage(cli, "'%s' does not work on %s", peal_reduce_name(o->reduce),
                              peal_dtype_name(o->dtype));
    struct peal_ranks ranks = {.count = (uint32_t)o->ranks,
                               .threads = o->threads,
                               .bind = !o->no_bind,
                               .body = body,
                               .context = &bench};
    struct peal_progress progress = {.what = "sizes"};
    for (uint64_t bytes = o->begin; bytes <= last_size(&bench); bytes *= (uint64_t)o->factor) {
        progress.total++;
        progress.weight += weigh(&bench, bytes);
    }
    bench.progress = &progress;
    peal_progress_begin(&progress);
    int code = peal_ranks_run(cli, &ranks);
    peal_progress_end(&progress);
    return code;
}

#define ROW(name, letter, kind, field, value, help, least, most)                                   \
    {                                                                                              \
        name, letter, kind, offsetof(struct bench_options, field), value, help, least, most        \
    }
static const struct bench_options defaults = {.ranks = 2,
                                              .warmup = 20,
                                              .begin = 8,
                                              .end = 64 << 20,
                                              .factor = 4,
                                              .dtype = PEAL_F32,
                                              .reduce = PEAL_SUM};
static const struct peal_option table[] = {
    ROW("ranks", 'n', PEAL_OPTION_INT, ranks, "P", "number of ranks (default 2)", 1,
        PEAL_MOST_RANKS),
    ROW("begin", 'b', PEAL_OPTION_SIZE, begin, "B", "smallest size (default 8)", 0, 0),
    ROW("end", 'e', PEAL_OPTION_SIZE, end, "B", "largest size (default 64M)", 0, 0),
    ROW("factor", 'f', PEAL_OPTION_INT, factor, "F", "from one size to the next (default 4)", 2,
        1 << 20),
    ROW("iterations", 'i', PEAL_OPTION_INT, iterations, "N", "calls a size (default: by size)", 1,
        1 << 30),
    ROW("warmup", 'w', PEAL_OPTION_INT, warmup, "N", "calls before (default 20)", 0, 1 << 30),
    ROW("dtype", 't', PEAL_OPTION_DTYPE, dtype, "T", "data type (default f32)", 0, 0),
    ROW("op", 0, PEAL_OPTION_REDUCE, reduce, "OP", "reduce operation (default sum)", 0, 0),
    ROW("root", 'r', PEAL_OPTION_INT, root, "R", "root (default 0)", 0, PEAL_MOST_RANKS - 1),
    ROW("algo", 'a', PEAL_OPTION_STRING, algo, "A", "force an algorithm", 0, 0),
    ROW("threads", 0, PEAL_OPTION_FLAG, threads, NULL, "ranks are threads, not processes", 0, 0),
    ROW("symmetric", 0, PEAL_OPTION_FLAG, symmetric, NULL, "buffers in symmetric memory", 0, 0),
    ROW("fresh", 0, PEAL_OPTION_FLAG, fresh, NULL,
        "rewrite the input and read the output before every call", 0, 0),
    ROW("explain", 0, PEAL_OPTION_FLAG, explain, NULL, "say which algorithm is taken, and why", 0,
        0),
    ROW("no-bind", 0, PEAL_OPTION_FLAG, no_bind, NULL, "do not bind ranks to cores", 0, 0),
    ROW("json", 0, PEAL_OPTION_FLAG, json, NULL, "print JSON", 0, 0),
    ROW("svg", 0, PEAL_OPTION_STRING, svg, "FILE", "also plot bandwidth over size", 0, 0),
    {NULL, 0, 0, 0, NULL, NULL, 0, 0},
};

const struct peal_command peal_cmd_bench = {
    .name = "bench",
    .args = "COLLECTIVE",
    .summary = "time a collective over a range of sizes",
    .details = "COLLECTIVE is allreduce, allgather, reduce_scatter, broadcast, reduce, gather, "
               "scatter, all_to_all or barrier. The size is that of the larger buffer of a rank. "
               "Times are medians over the calls of the slowest rank's time; all ranks meet in a "
               "barrier before each call. algbw is size over time, busbw what the busiest link of "
               "a real network would carry (as in nccl-tests).",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .least_args = 1,
    .most_args = 1,
    .run = run,
};
