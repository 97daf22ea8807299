/* SPDX-License-Identifier: Apache-2.0 */
/* Host programs: one process places tensors on its workers, submits tasks, and reads results.
 *
 *   cc -o host host.c $(pkg-config --cflags --libs peal)
 *   ./host 4                                       4 worker processes
 *   PEAL_PLATFORM=native:threads ./host 4
 *   PEAL_PLATFORM=sim:mesh4x4 ./host 16            the same on a modelled machine
 */
#include <peal/host.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 64 };

static struct peal_host *host;
static uint32_t workers;
static int failures;

static void must(enum peal_status status, const char *action)
{
    if (status == PEAL_OK)
        return;
    fprintf(stderr, "%s: %s\n", action, peal_host_error(host));
    exit(1);
}

static void check(const char *action, int right)
{
    printf("%-40s %s\n", action, right ? "right" : "WRONG");
    failures += !right;
}

static struct peal_work kernel(const char *text, const char *name)
{
    struct peal_work work;
    must(peal_work_kernel(host, text, name, &work), name ? name : "kernel");
    return work;
}

static struct peal_tensor tensor(enum peal_placement place, uint32_t ndims, uint64_t rows,
                                 uint64_t cols, struct peal_domain domain)
{
    struct peal_tensor made;
    struct peal_tensor_spec spec = {
        .dtype = PEAL_F32, .ndims = ndims, .shape = {rows, cols}, .place = place, .domain = domain};
    must(peal_tensor_new(host, &spec, &made), "tensor");
    return made;
}

static const struct peal_domain none = {0};

static void submit(const char *name, struct peal_work work, struct peal_domain domain,
                   const struct peal_task_arg *args, size_t nargs)
{
    struct peal_task_spec spec = {.name = name,
                                  .work = work,
                                  .domain = domain,
                                  .everyone = domain.id == 0,
                                  .args = args,
                                  .nargs = nargs};
    must(peal_host_submit(host, &spec, NULL), name);
}

/* ---- collectives; out[i] is the sum over r of (i + 100 r), and the like ---- */

static void allreduce(const char *algorithm)
{
    enum { N = 256 };
    struct peal_tensor x = tensor(PEAL_REPLICATED, 1, N, 0, none);
    struct peal_tensor y = tensor(PEAL_REPLICATED, 1, N, 0, none);
    float data[N];
    int right = 1;
    for (uint32_t r = 0; r < workers; r++) {
        for (int i = 0; i < N; i++)
            data[i] = (float)i + 100.0f * (float)r;
        must(peal_tensor_write_part(host, x, r, data, sizeof data), "write");
    }
    struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(y),
                                   peal_arg_reduce(PEAL_SUM)};
    submit(algorithm, kernel(NULL, algorithm), none, args, 3);
    for (uint32_t r = 0; r < workers; r++) {
        must(peal_tensor_read_part(host, y, r, data, sizeof data), "read");
        for (int i = 0; i < N; i++) {
            float golden =
                (float)workers * (float)i + 50.0f * (float)workers * (float)(workers - 1);
            right &= fabsf(data[i] - golden) <= 1e-3f * golden + 1e-3f;
        }
    }
    check(algorithm, right);
    must(peal_tensor_free(host, x), "free");
    must(peal_tensor_free(host, y), "free");
}

static void broadcast(void)
{
    enum { N = 64 };
    struct peal_tensor x = tensor(PEAL_REPLICATED, 1, N, 0, none);
    struct peal_tensor y = tensor(PEAL_REPLICATED, 1, N, 0, none);
    struct peal_work work = kernel(NULL, "broadcast_flat");
    float data[N];
    int right = 1;
    for (uint32_t root = 0; root < workers; root++) {
        for (int i = 0; i < N; i++)
            data[i] = 100.0f * (float)root + (float)i;
        must(peal_tensor_write_part(host, x, root, data, sizeof data), "write");
        struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(y), peal_arg_int(root)};
        submit("broadcast", work, none, args, 3);
        for (uint32_t r = 0; r < workers; r++) {
            must(peal_tensor_read_part(host, y, r, data, sizeof data), "read");
            for (int i = 0; i < N; i++)
                right &= data[i] == 100.0f * (float)root + (float)i;
        }
    }
    check("broadcast from every root", right);
}

static void all_to_all(void)
{
    enum { C = 16 };
    uint64_t n = (uint64_t)workers * C, bytes = n * sizeof(float);
    struct peal_tensor x = tensor(PEAL_REPLICATED, 1, n, 0, none);
    struct peal_tensor y = tensor(PEAL_REPLICATED, 1, n, 0, none);
    float *data = malloc(bytes);
    int right = 1;
    for (uint32_t r = 0; r < workers; r++) {
        for (uint64_t i = 0; i < n; i++)
            data[i] = 1000.0f * (float)r + 100.0f * (float)(i / C) + (float)(i % C);
        must(peal_tensor_write_part(host, x, r, data, bytes), "write");
    }
    struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(y)};
    submit("all to all", kernel(NULL, "all_to_all_pull"), none, args, 2);
    for (uint32_t r = 0; r < workers; r++) {
        must(peal_tensor_read_part(host, y, r, data, bytes), "read");
        for (uint64_t i = 0; i < n; i++)
            right &= data[i] == 1000.0f * (float)(i / C) + 100.0f * (float)r + (float)(i % C);
    }
    check("all to all", right);
    free(data);
}

/* Two domains that share a worker: each sums over its own members, and neither waits for the other
 * but where they meet. */
static void overlapping(void)
{
    enum { N = 32 };
    uint32_t half = workers / 2 + 1, low[MAX_WORKERS], high[MAX_WORKERS];
    for (uint32_t i = 0; i < half; i++) {
        low[i] = i;
        high[i] = workers - 1 - i;
    }
    struct peal_domain a, b;
    struct peal_domain_spec spec = {.name = "low", .workers = low, .nworkers = half};
    must(peal_domain_new(host, &spec, &a), "domain");
    spec = (struct peal_domain_spec){.name = "high", .workers = high, .nworkers = half};
    must(peal_domain_new(host, &spec, &b), "domain");
    struct peal_tensor x = tensor(PEAL_REPLICATED, 1, N, 0, none);
    struct peal_tensor y = tensor(PEAL_REPLICATED, 1, N, 0, none);
    float data[N], sum_low = 0, sum_high = 0;
    for (uint32_t r = 0; r < workers; r++) {
        for (int i = 0; i < N; i++)
            data[i] = (float)(r + 1);
        must(peal_tensor_write_part(host, x, r, data, sizeof data), "write");
        sum_low += r < half ? (float)(r + 1) : 0;
    }
    struct peal_work ring = kernel(NULL, "allreduce_ring");
    struct peal_task_arg first[] = {peal_arg_tensor(x), peal_arg_tensor(x),
                                    peal_arg_reduce(PEAL_SUM)};
    struct peal_task_arg second[] = {peal_arg_tensor(x), peal_arg_tensor(y),
                                     peal_arg_reduce(PEAL_SUM)};
    submit("sum of low", ring, a, first, 3); /* in place */
    submit("sum of high", ring, b, second, 3);
    for (uint32_t i = 0; i < half; i++)
        sum_high += high[i] < half ? sum_low : (float)(high[i] + 1);
    must(peal_tensor_read_part(host, y, workers - 1, data, sizeof data), "read");
    must(peal_domain_release(host, a), "release");
    must(peal_domain_release(host, b), "release");
    check("two overlapping domains", data[0] == sum_high && data[N - 1] == sum_high);
}

/* ---- experts: rows travel to the workers of their experts and back ---- */

static const char experts[] =
    "kernel dispatch(in rows: T[sum(sends), width], out got: T[sum(recvs), width],\n"
    "                local sends: int[nranks], local recvs: int[nranks]) {\n"
    "    for p in peers { send rows[sum(sends, p) +: sends[p], :] to p }\n"
    "    got[sum(recvs, rank) +: recvs[rank], :] = rows[sum(sends, rank) +: sends[rank], :]\n"
    "    for p in peers { got[sum(recvs, p) +: recvs[p], :] = recv from p }\n"
    "}\n";

/* The expert of rank r multiplies by r + 1. */
static enum peal_status expert(const struct peal_function_call *call, void *context)
{
    float *rows = call->args[0].data;
    (void)context;
    for (uint64_t i = 0; i < call->args[0].count; i++)
        rows[i] *= (float)(call->rank + 1);
    return PEAL_OK;
}

static void moe(void)
{
    enum { TOKENS = 12, WIDTH = 8 };
    uint64_t max_rows = (uint64_t)TOKENS * workers;
    struct peal_tensor rows = tensor(PEAL_REPLICATED, 2, TOKENS, WIDTH, none);
    struct peal_tensor got = tensor(PEAL_REPLICATED, 2, max_rows, WIDTH, none);
    struct peal_tensor back = tensor(PEAL_REPLICATED, 2, TOKENS, WIDTH, none);
    int64_t *sends = calloc((size_t)workers * workers, sizeof *sends);
    int64_t *recvs = calloc((size_t)workers * workers, sizeof *recvs);
    float data[TOKENS][WIDTH];
    int right = 1;
    /* The router: token t of worker r goes to expert (t * t + r) % workers; rows are packed by
     * it. */
    for (uint32_t r = 0; r < workers; r++) {
        for (uint32_t t = 0; t < TOKENS; t++)
            sends[r * workers + (t * t + r) % workers]++;
        for (uint32_t q = 0; q < workers; q++)
            recvs[q * workers + r] = sends[r * workers + q];
        for (int t = 0; t < TOKENS; t++)
            for (int i = 0; i < WIDTH; i++)
                data[t][i] = (float)(1000 * r + 10 * (uint32_t)t + (uint32_t)i);
        must(peal_tensor_write_part(host, rows, r, data, sizeof data), "write");
    }
    size_t all = (size_t)workers * workers;
    struct peal_task_arg to = {.kind = PEAL_TASK_INTS, .values = sends, .nvalues = all};
    struct peal_task_arg from = {.kind = PEAL_TASK_INTS, .values = recvs, .nvalues = all};
    struct peal_work exchange = kernel(experts, "dispatch"), work;
    struct peal_task_arg out[] = {peal_arg_tensor(rows), peal_arg_tensor(got), to, from};
    submit("dispatch", exchange, none, out, 4);
    must(peal_work_function(host, "expert", &work), "expert");
    struct peal_task_arg run[] = {peal_arg_tensor(got)};
    submit("experts", work, none, run, 1);
    struct peal_task_arg in[] = {peal_arg_tensor(got), peal_arg_tensor(back), from, to};
    submit("combine", exchange, none, in, 4);
    for (uint32_t r = 0; r < workers; r++) {
        must(peal_tensor_read_part(host, back, r, data, sizeof data), "read");
        int64_t t = 0;
        for (uint32_t q = 0; q < workers; q++)
            for (int64_t k = 0; k < sends[r * workers + q]; k++, t++)
                for (int i = 0; i < WIDTH; i++)
                    right &= data[t][i] ==
                             (float)((1000 * r + 10 * (uint32_t)t + (uint32_t)i) * (q + 1));
    }
    check("expert dispatch and combine", right);
    free(sends);
    free(recvs);
}

/* ---- a feed-forward layer, tensor parallel: y = relu(x A) B, A cut by columns, B by rows ---- */

static void ffn(void)
{
    enum { TOKENS = 6, WIDTH = 8 };
    uint64_t hidden = (uint64_t)4 * workers;
    static const char relu[] = "kernel relu(inout h: T[n]) {\n    h = max(h, 0.0)\n}\n";
    struct peal_tensor x = tensor(PEAL_REPLICATED, 2, TOKENS, WIDTH, none);
    struct peal_tensor a = {0}, b = tensor(PEAL_SHARDED, 2, hidden, WIDTH, none);
    struct peal_tensor h = {0}, part = tensor(PEAL_REPLICATED, 2, TOKENS, WIDTH, none);
    struct peal_tensor y = tensor(PEAL_REPLICATED, 2, TOKENS, WIDTH, none);
    struct peal_tensor_spec columns = {.dtype = PEAL_F32,
                                       .ndims = 2,
                                       .shape = {WIDTH, hidden},
                                       .place = PEAL_SHARDED,
                                       .shard_dim = 1};
    must(peal_tensor_new(host, &columns, &a), "tensor");
    columns.shape[0] = TOKENS;
    must(peal_tensor_new(host, &columns, &h), "tensor");
    float dx[TOKENS * WIDTH], dy[TOKENS * WIDTH], golden[TOKENS * WIDTH] = {0};
    float *da = malloc(WIDTH * hidden * sizeof *da), *db = malloc(WIDTH * hidden * sizeof *db);
    for (int i = 0; i < TOKENS * WIDTH; i++)
        dx[i] = (float)(i % 7 - 3);
    for (uint64_t i = 0; i < WIDTH * hidden; i++) {
        da[i] = (float)((int)(i % 5) - 2);
        db[i] = (float)((int)(i % 3) - 1);
    }
    must(peal_tensor_write(host, x, dx, sizeof dx), "write");
    must(peal_tensor_write(host, a, da, WIDTH * hidden * sizeof *da), "write");
    must(peal_tensor_write(host, b, db, WIDTH * hidden * sizeof *db), "write");
    struct peal_work matmul;
    must(peal_work_function(host, "matmul", &matmul), "matmul");
    struct peal_task_arg up[] = {peal_arg_tensor(x), peal_arg_tensor(a), peal_arg_tensor(h),
                                 peal_arg_int(0)};
    struct peal_task_arg bend[] = {peal_arg_tensor(h)};
    struct peal_task_arg down[] = {peal_arg_tensor(h), peal_arg_tensor(b), peal_arg_tensor(part),
                                   peal_arg_int(0)};
    struct peal_task_arg sum[] = {peal_arg_tensor(part), peal_arg_tensor(y),
                                  peal_arg_reduce(PEAL_SUM)};
    submit("x A", matmul, none, up, 4);
    submit("relu", kernel(relu, NULL), none, bend, 1);
    submit("h B", matmul, none, down, 4);
    submit("sum", kernel(NULL, "allreduce_ring"), none, sum, 3);
    must(peal_tensor_read(host, y, dy, sizeof dy), "read");
    for (int t = 0; t < TOKENS; t++) {
        for (uint64_t j = 0; j < hidden; j++) {
            float v = 0;
            for (int k = 0; k < WIDTH; k++)
                v += dx[t * WIDTH + k] * da[(uint64_t)k * hidden + j];
            if (v <= 0)
                continue;
            for (int i = 0; i < WIDTH; i++)
                golden[t * WIDTH + i] += v * db[j * WIDTH + (uint64_t)i];
        }
    }
    check("tensor-parallel feed-forward layer", memcmp(dy, golden, sizeof dy) == 0);
    free(da);
    free(db);
}

int main(int argc, char **argv)
{
    struct peal_function functions[] = {
        {.name = "expert", .run = expert, .parameters = "inout", .cost_ps = 100000}};
    struct peal_host_open options = {.workers = argc > 1 ? (uint32_t)atoi(argv[1]) : 4,
                                     .record = 1,
                                     .functions = functions,
                                     .nfunctions = 1};
    workers = options.workers;
    if (workers > MAX_WORKERS || peal_host_open(&options, &host) != PEAL_OK) {
        fprintf(stderr, "host: %s\n", peal_host_error(NULL));
        return 1;
    }
    printf("%u workers on %s\n", workers, peal_host_platform(host));
    allreduce("allreduce_mesh");  /* one phase */
    allreduce("allreduce_mesh2"); /* two phases */
    allreduce("allreduce_ring");
    broadcast();
    all_to_all();
    overlapping();
    moe();
    ffn();
    must(peal_host_wait_all(host), "tasks");
    if (argc > 2)
        must(peal_host_write_page(host, argv[2]), "page");
    struct peal_host_stats stats;
    must(peal_host_stats(host, &stats, sizeof stats), "stats");
    printf("%llu tasks, %.3f us in all, critical path %.3f us\n",
           (unsigned long long)stats.submitted, (double)stats.time_ps / 1e6,
           (double)stats.critical_ps / 1e6);
    peal_host_close(host);
    return failures ? 1 : 0;
}
