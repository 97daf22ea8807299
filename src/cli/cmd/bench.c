/* SPDX-License-Identifier: Apache-2.0 */
/* peal bench: times a collective over a range of sizes, in the layout of nccl-tests. */
#include "base/base.h"
#include "cli/progress.h"
#include "cli/run/ranks.h"
#include "cli/run/collective_case.h"

#include "report/report.h"

#include <peal/choose.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_options {
    int64_t ranks, warmup, iterations, root;
    uint64_t begin, end;
    int64_t factor;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    const char *algo, *svg;
    bool json, threads, symmetric, fresh, explain, no_bind;
};

struct bench {
    const struct peal_cli *cli;
    const struct bench_options *options;
    const struct peal_case *collective;
    struct peal_progress *progress;
    struct peal_comm *comm;
    struct peal_text rows;                      /* JSON, or nothing */
    struct peal_json json;                      /* writes them; an array */
    PEAL_VEC(struct peal_plot_point) points[2]; /* GB/s over bytes: out of place, in place */
    char *send, *recv;
    uint64_t before; /* the size that was timed last */
};

struct bench_result {
    double time_us; /* median of the slowest rank */
    uint64_t wrong; /* elements on all ranks */
    enum peal_status status;
};

/* ---- timing ---- */

static int64_t iterations(const struct bench_options *o, uint64_t bytes)
{
    if (o->iterations > 0)
        return o->iterations;
    int64_t n = (int64_t)((UINT64_C(1) << 28) / (bytes + 65536));
    if (n < 10)
        return 10;
    if (n < 2000)
        return n;
    return 2000;
}

/* Roughly how long a size takes compared with others: its calls, and making and checking its
 * data. */
static uint64_t weigh(const struct bench *b, uint64_t bytes)
{
    uint64_t calls = (uint64_t)(iterations(b->options, bytes) + b->options->warmup);
    return calls * (bytes + 65536) + bytes * 16;
}

static uint64_t last_size(const struct bench *b)
{
    if (b->collective->contract == PEAL_CONTRACT_BARRIER)
        return b->options->begin;
    return b->options->end;
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

static struct bench_result time_calls(struct bench *b, uint64_t block, bool in_place)
{
    const struct bench_options *o = b->options;
    const struct peal_case *s = b->collective;
    uint32_t rank = peal_comm_rank(b->comm), size = peal_comm_size(b->comm);
    uint64_t element = peal_dtype_size(o->dtype), own = rank * block * element;
    struct peal_case_call data = {.collective = s,
                                  .rank = rank,
                                  .ranks = size,
                                  .root = (uint32_t)o->root,
                                  .dtype = o->dtype,
                                  .reduce = o->reduce,
                                  .block = block};
    uint64_t send_n = peal_case_sends(&data), recv_n = peal_case_receives(&data);
    char *send = b->send, *recv = b->recv;
    if (in_place) {
        send = peal_case_receives_blocks(s) && !peal_case_sends_blocks(s) ? b->recv + own : b->recv;
        recv = peal_case_sends_blocks(s) && !peal_case_receives_blocks(s) ? b->recv + own : b->recv;
    }
    if (s->contract == PEAL_CONTRACT_BROADCAST)
        send = recv;
    int64_t n = iterations(o, send_n * element);
    double *times = calloc((size_t)n, sizeof *times);
    struct bench_result result = {.status = times ? PEAL_OK : PEAL_NO_MEMORY};
    bool refill = in_place || s->contract == PEAL_CONTRACT_BROADCAST;
    peal_case_fill(&data, send);
    for (int64_t i = -o->warmup; i < n && result.status == PEAL_OK; i++) {
        if (o->fresh && !refill)
            refresh(recv, send, send_n * element, recv_n * element);
        result.status = peal_barrier(b->comm);
        uint64_t start = peal_now_ns(), simulated = peal_comm_simulated_ps(b->comm);
        if (result.status == PEAL_OK)
            result.status =
                s->call(b->comm, send, recv, block, o->dtype, o->reduce, (uint32_t)o->root);
        if (i >= 0)
            times[i] = (double)(peal_now_ns() - start) / 1e3;
        if (i >= 0 && simulated)
            times[i] = (double)(peal_comm_simulated_ps(b->comm) - simulated) / 1e6;
    }
    if (refill) /* repeated sums have left the exact range */
        peal_case_fill(&data, send);
    if (result.status == PEAL_OK)
        result.status = s->call(b->comm, send, recv, block, o->dtype, o->reduce, (uint32_t)o->root);
    uint64_t wrong = peal_case_check(&data, recv), all = 0;
    if (result.status == PEAL_OK)
        result.status = peal_allreduce(b->comm, &wrong, &all, 1, PEAL_I64, PEAL_SUM);
    if (result.status == PEAL_OK)
        result.status = peal_ranks_median(b->comm, times, (uint64_t)n, &result.time_us);
    if (result.status == PEAL_OK)
        result.wrong = all;
    free(times);
    return result;
}

/* ---- output ---- */

static const char *memory_of(const struct bench_options *o)
{
    if (o->symmetric)
        return "symmetric";
    return "private";
}

/* Are the buffers touched between calls? */
static const char *age_of(const struct bench_options *o)
{
    if (o->fresh)
        return "fresh";
    return "hot";
}

/* The columns of nccl-tests that differ from row to row; the others are printed once, to fit 80
 * columns. */
static void print_head(const struct bench *b)
{
    const struct bench_options *o = b->options;
    const char *ranks_are = "processes";
    if (o->threads)
        ranks_are = "threads";
    printf("# peal bench %s: %u ranks (%s), %s buffers, %s\n"
           "# medians of the slowest rank's time; err: elements that were wrong\n",
           peal_case_name(b->collective), peal_comm_size(b->comm), ranks_are, memory_of(o),
           age_of(o));
    if (peal_ranks_machine())
        printf("# simulated times on %s, not of this host\n", peal_ranks_machine());
    printf("#%31s%16s %23s\n", "", "out-of-place", "in-place");
    printf("# %6s %8s %4s %4s %4s", "size", "count", "type", "op", "root");
    for (int i = 0; i < 2; i++)
        printf(" %7s %5s %5s %3s", "time", "algbw", "busbw", "err");
    printf("\n# %6s %23s", "(B)", "");
    for (int i = 0; i < 2; i++)
        printf(" %7s %5s %5s%s", "(us)", "GB/s", "GB/s", i ? "\n" : "    ");
}

/* nccl-tests' words for what a collective does not have. */
static const char *op_name(const struct bench *b)
{
    if (peal_case_contract(b->collective)->has_reduce)
        return peal_reduce_name(b->options->reduce);
    return "none";
}

static long long root_of(const struct bench *b)
{
    if (peal_case_contract(b->collective)->has_root)
        return (long long)b->options->root;
    return -1;
}

/* Columns that never change are printed nevertheless: they are those of nccl-tests, for programs
 * that read its tables. */
static void put_subject(const struct bench *b, uint64_t bytes, uint64_t count,
                        struct peal_text *out)
{
    peal_text_printf(out, "%8llu %8llu %4s %4s %4lld", (unsigned long long)bytes,
                     (unsigned long long)count, peal_dtype_name(b->options->dtype), op_name(b),
                     root_of(b));
}

static void add_row(struct bench *b, uint64_t bytes, uint64_t count, bool in_place,
                    const struct bench_result *result, const char *algo)
{
    struct peal_json *json = &b->json;
    peal_json_break(json, 2);
    peal_json_object(json);
    peal_json_put_string(json, "collective", peal_case_name(b->collective));
    peal_json_put_uint(json, "ranks", peal_comm_size(b->comm));
    peal_json_put_uint(json, "bytes", bytes);
    peal_json_put_uint(json, "count", count);
    peal_json_put_string(json, "dtype", peal_dtype_name(b->options->dtype));
    peal_json_put_string(json, "op", op_name(b));
    peal_json_put_int(json, "root", root_of(b));
    peal_json_put_fixed(json, "time_us", result->time_us, 3);
    peal_json_put_bool(json, "simulated", peal_ranks_machine() != NULL);
    peal_json_put_bool(json, "in_place", in_place);
    peal_json_put_string(json, "buffers", age_of(b->options));
    peal_json_put_string(json, "memory", memory_of(b->options));
    peal_json_put_uint(json, "wrong", result->wrong);
    peal_json_put_string(json, "algo", algo);
    peal_json_object_end(json);
}

static double bus_factor(const struct bench *b)
{
    double ranks = peal_comm_size(b->comm);
    if (peal_case_contract(b->collective)->bus > 0)
        return peal_case_contract(b->collective)->bus * (ranks - 1) / ranks;
    return 1;
}

static void put_result(const struct bench *b, uint64_t bytes, const struct bench_result *result,
                       struct peal_text *out)
{
    double algbw = (double)bytes / (result->time_us * 1e3);
    peal_text_printf(out, " %7.*f %5.2f %5.2f %3llu", result->time_us < 1e4 ? 2 : 0,
                     result->time_us, algbw, algbw * bus_factor(b),
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
    const struct peal_case *s = b->collective;
    uint32_t size = peal_comm_size(b->comm);
    uint64_t element = peal_dtype_size(o->dtype), count = bytes / element;
    uint64_t block =
        peal_case_sends_blocks(s) || peal_case_receives_blocks(s) ? count / size : count;
    if (peal_case_sends_blocks(s) || peal_case_receives_blocks(s))
        block = block ? block : 1;
    uint64_t real =
        block * (peal_case_sends_blocks(s) || peal_case_receives_blocks(s) ? size : 1) * element;
    bool first = peal_comm_rank(b->comm) == 0, table = first && !o->json;
    if (bytes > o->begin && real == b->before) { /* a block has at least one element */
        if (first)
            peal_progress_step(b->progress, weigh(b, bytes));
        return PEAL_OK;
    }
    b->before = real;
    const char *name = peal_case_name(s);
    struct peal_chosen chosen = {.struct_size = sizeof chosen};
    enum peal_status status = peal_comm_chosen(b->comm, name, block * element,
                                               o->symmetric ? PEAL_CHOOSE_SYMMETRIC : 0, &chosen);
    if (status != PEAL_OK)
        return status;
    struct peal_text line = {0};
    if (table && o->explain)
        put_remark(peal_comm_explain(b->comm, name, block * element, o->symmetric), &line);
    if (table)
        put_subject(b, real, block, &line);
    for (int in_place = 0; in_place <= s->can_in_place; in_place++) {
        struct bench_result result = time_calls(b, block, in_place);
        status = result.status;
        *wrong += result.wrong;
        if (status != PEAL_OK)
            break;
        add_row(b, real, block, in_place, &result, chosen.algo);
        if (table)
            put_result(b, real, &result, &line);
        struct peal_plot_point point = {(double)real, (double)real / (result.time_us * 1e3)};
        if (!peal_vec_push(&b->points[in_place], point))
            status = PEAL_NO_MEMORY;
    }
    peal_text_puts(&line, "\n");
    if (table && status == PEAL_OK)
        peal_progress_print(b->progress, &line);
    if (first && status == PEAL_OK)
        peal_progress_step(b->progress, weigh(b, bytes));
    peal_text_release(&line);
    return status;
}

static bool write_plot(const struct bench *b)
{
    static const char *const names[2] = {"out of place", "in place"};
    char title[96];
    snprintf(title, sizeof title, "%s, %u ranks, %s", peal_case_name(b->collective),
             peal_comm_size(b->comm), age_of(b->options));
    struct peal_plot plot = {
        .title = title, .x_label = "bytes", .y_label = "algbw, GB/s", .x_log = true, .y_log = true};
    struct peal_text text = {0};
    for (int way = 0; way < 2; way++) {
        if (b->points[way].len > 0)
            peal_plot_curve(&plot, names[way]);
        for (size_t i = 0; i < b->points[way].len; i++)
            peal_plot_add(&plot, b->points[way].at[i].x, b->points[way].at[i].y);
    }
    peal_plot_svg(&plot, &text);
    bool ok = !plot.failed && !text.failed && peal_cli_write(b->cli, b->options->svg, &text);
    peal_plot_release(&plot);
    peal_text_release(&text);
    return ok;
}

/* For each of the two buffers. */
static uint64_t buffer_bytes(const struct bench_options *o)
{
    return peal_size_align(o->end + 256 * 64, 4096);
}

static enum peal_status make_buffers(struct bench *b)
{
    uint64_t bytes = buffer_bytes(b->options);
    if (!b->options->symmetric) {
        b->send = aligned_alloc(4096, bytes);
        b->recv = aligned_alloc(4096, bytes);
        if (!b->send || !b->recv)
            return PEAL_NO_MEMORY;
        memset(b->send, 0, bytes);
        memset(b->recv, 0, bytes);
        return PEAL_OK;
    }
    enum peal_status status = peal_symmetric_alloc(b->comm, bytes, (void **)&b->send);
    if (status != PEAL_OK)
        return status;
    return peal_symmetric_alloc(b->comm, bytes, (void **)&b->recv);
}

static int body(struct peal_comm *comm, void *context)
{
    struct bench bench = *(const struct bench *)context;
    const struct bench_options *o = bench.options;
    bench.comm = comm;
    peal_json_init(&bench.json, &bench.rows, PEAL_JSON_ONE_LINE);
    peal_json_array(&bench.json);
    bool first = peal_comm_rank(comm) == 0;
    uint64_t wrong = 0;
    enum peal_status status = make_buffers(&bench);
    if (status == PEAL_OK && o->algo)
        status = peal_comm_set_algo(comm, peal_case_name(bench.collective), o->algo);
    if (status == PEAL_OK && first && !o->json)
        print_head(&bench);
    for (uint64_t bytes = o->begin; bytes <= last_size(&bench) && status == PEAL_OK;
         bytes *= (uint64_t)o->factor)
        status = run_size(&bench, bytes, &wrong);
    if (status != PEAL_OK && first)
        peal_ranks_fail("bench", comm, status);
    peal_json_array_end(&bench.json);
    if (first && o->json)
        puts(peal_text_get(&bench.rows));
    if (first && status == PEAL_OK && o->svg && !write_plot(&bench))
        status = PEAL_SYSTEM;
    peal_text_release(&bench.rows);
    for (int way = 0; way < 2; way++)
        peal_vec_release(&bench.points[way]);
    if (!o->symmetric) {
        free(bench.send);
        free(bench.recv);
    }
    if (status != PEAL_OK)
        return PEAL_EXIT_OTHER;
    if (wrong)
        return PEAL_EXIT_NO;
    return PEAL_EXIT_OK;
}

static int reject(struct peal_cli *cli, const char *name)
{
    size_t count;
    const struct peal_case *all = peal_cases(&count);
    const char *near = NULL;
    for (size_t i = 0; i < count; i++)
        near = peal_nearer(name, near, peal_case_contract(&all[i])->name);
    if (near)
        return peal_cli_usage(cli, "there is no collective '%s'; did you mean '%s'?", name, near);
    struct peal_algorithm algo = {.struct_size = sizeof algo};
    for (size_t i = 0; peal_algorithm_get(i, &algo) == PEAL_OK; i++) {
        if (strcmp(algo.kernel, name) == 0)
            return peal_cli_usage(cli, "'%s' is a kernel; 'peal bench %s --algo %s' measures it",
                                  name, algo.collective, algo.name);
    }
    return peal_cli_usage(cli, "there is no collective '%s'", name);
}

/* PEAL_EXIT_OK if the collective has the requested algorithm. */
static int check_algo(struct peal_cli *cli, const struct bench *bench)
{
    const char *name = peal_case_name(bench->collective);
    struct peal_text names = {0};
    struct peal_algorithm algo = {.struct_size = sizeof algo};
    bool found = false;
    for (size_t i = 0; peal_algorithm_get(i, &algo) == PEAL_OK; i++) {
        if (strcmp(algo.collective, name) != 0)
            continue;
        found |= strcmp(algo.name, bench->options->algo) == 0;
        peal_text_printf(&names, "%s%s", names.len ? ", " : "", algo.name);
    }
    int code = PEAL_EXIT_OK;
    if (!found)
        code = peal_cli_usage(cli, "%s has no algorithm '%s'; it has %s", name,
                              bench->options->algo, peal_text_get(&names));
    peal_text_release(&names);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)nargs;
    const struct bench_options *o = options;
    struct bench bench = {.cli = cli, .options = o};
    bench.collective = peal_case_find(args[0]);
    if (!bench.collective)
        return reject(cli, args[0]);
    if (o->begin == 0 || o->begin > o->end || o->end > UINT64_C(1) << 40)
        return peal_cli_usage(cli, "sizes go from 1 or more to at most 1T, not from %llu to %llu",
                              (unsigned long long)o->begin, (unsigned long long)o->end);
    if (o->root >= o->ranks)
        return peal_cli_usage(cli, "--root %lld is not a rank: there are %lld", (long long)o->root,
                              (long long)o->ranks);
    if (o->algo && check_algo(cli, &bench) != PEAL_EXIT_OK)
        return PEAL_EXIT_USAGE;
    if (peal_case_contract(bench.collective)->has_reduce && !peal_reduce_takes(o->reduce, o->dtype))
        return peal_cli_usage(cli, "'%s' does not work on %s", peal_reduce_name(o->reduce),
                              peal_dtype_name(o->dtype));
    if (o->reduce == PEAL_AVG && !peal_contract_has_avg(bench.collective->contract))
        return peal_cli_usage(cli, "%s has no avg", peal_case_name(bench.collective));
    struct peal_ranks ranks = {.count = (uint32_t)o->ranks,
                               .threads = o->threads,
                               .bind = !o->no_bind,
                               .bytes =
                                   peal_size_mul_capped(2 * buffer_bytes(o), (uint64_t)o->ranks),
                               .body = body,
                               .context = &bench};
    struct peal_progress progress = {.label = "sizes"};
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

#define ROW(name, letter, kind, field, value, help, lowest, highest)                               \
    {                                                                                              \
        name, letter, kind, offsetof(struct bench_options, field), value, help, lowest, highest    \
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
    ROW("iterations", 'i', PEAL_OPTION_INT, iterations, "N", "calls per size (default: by size)", 1,
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
    .arg_names = PEAL_ARGUMENT_COLLECTIVE,
    .summary = "time a collective over a range of sizes",
    .details = "COLLECTIVE is allreduce, allgather, reduce_scatter, broadcast, reduce, gather, "
               "scatter, all_to_all or barrier. The size is that of the larger buffer of a rank. "
               "Times are medians over the calls of the slowest rank's time; all ranks meet in a "
               "barrier before each call. algbw is size over time, busbw what the busiest link of "
               "a real network would carry (as in nccl-tests).",
    .options = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
