/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor-parallel MLP and a mixture of experts: the kernels of layers.peal as tasks of a host,
 * their results against plain loops.
 *
 *   cc -o layers layers.c $(pkg-config --cflags --libs peal)
 *   ./layers layers.peal 4
 *   PEAL_PLATFORM=sim:mesh4x4 ./layers layers.peal 16       the same on a modelled machine
 */
#include <peal/host.h>

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 6, WIDTH = 8, HIDDEN = 4, MAX_WORKERS = 64 }; /* HIDDEN: per worker */

static struct peal_host *host;
static uint32_t workers;

static void must(enum peal_status status, const char *action)
{
    if (status == PEAL_OK)
        return;
    fprintf(stderr, "%s: %s\n", action, peal_host_error(host));
    exit(1);
}

static struct peal_tensor tensor(uint64_t rows, uint64_t cols, enum peal_placement place,
                                 uint32_t shard_dim)
{
    struct peal_tensor made;
    struct peal_tensor_spec spec = {.dtype = PEAL_F32,
                                    .ndims = 2,
                                    .shape = {rows, cols},
                                    .place = place,
                                    .shard_dim = shard_dim};
    must(peal_tensor_new(host, &spec, &made), "tensor");
    return made;
}

/* Small whole numbers: their sums are exact in any order. */
static float *numbers(uint64_t n, unsigned seed)
{
    float *out = malloc(n * sizeof *out);
    if (!out)
        return NULL;
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)((i * 7 + seed) % 5) - 2;
    return out;
}

/* out = max(row up, 0) down, for one row. */
static void layer(const float *row, const float *up, const float *down, uint64_t hidden, float *out)
{
    for (int i = 0; i < WIDTH; i++)
        out[i] = 0;
    for (uint64_t j = 0; j < hidden; j++) {
        float v = 0;
        for (uint64_t k = 0; k < WIDTH; k++)
            v += row[k] * up[k * hidden + j];
        if (v <= 0)
            continue;
        for (uint64_t i = 0; i < WIDTH; i++)
            out[i] += v * down[j * WIDTH + i];
    }
}

static int rows_are(const float *got, const float *want)
{
    int right = 1;
    for (int i = 0; i < WIDTH; i++)
        right &= got[i] == want[i];
    return right;
}

static int mlp(struct peal_work work)
{
    uint64_t hidden = (uint64_t)HIDDEN * workers;
    float *x = numbers(TOKENS * WIDTH, 1), *up = numbers(WIDTH * hidden, 2),
          *down = numbers(WIDTH * hidden, 3), y[TOKENS][WIDTH], want[WIDTH];
    struct peal_tensor tx = tensor(TOKENS, WIDTH, PEAL_REPLICATED, 0);
    struct peal_tensor tup = tensor(WIDTH, hidden, PEAL_SHARDED, 1);
    struct peal_tensor tdown = tensor(hidden, WIDTH, PEAL_SHARDED, 0);
    struct peal_tensor ty = tensor(TOKENS, WIDTH, PEAL_REPLICATED, 0);
    int right = 1;
    must(peal_tensor_write(host, tx, x, TOKENS * WIDTH * sizeof *x), "write");
    must(peal_tensor_write(host, tup, up, WIDTH * hidden * sizeof *up), "write");
    must(peal_tensor_write(host, tdown, down, WIDTH * hidden * sizeof *down), "write");
    struct peal_task_arg args[] = {peal_arg_tensor(tx), peal_arg_tensor(tup),
                                   peal_arg_tensor(tdown), peal_arg_tensor(ty)};
    struct peal_task_spec task = {.work = work, .everyone = 1, .args = args, .nargs = 4};
    must(peal_host_submit(host, &task, NULL), "mlp");
    for (uint32_t r = 0; r < workers; r++) {
        must(peal_tensor_read_part(host, ty, r, y, sizeof y), "read");
        for (int t = 0; t < TOKENS; t++) {
            layer(x + t * WIDTH, up, down, hidden, want);
            right &= rows_are(y[t], want);
        }
    }
    free(x);
    free(up);
    free(down);
    return right;
}

/* Worker r sends 1 + (r + q) % 3 rows to the expert of worker q. */
static int64_t rows_between(uint32_t r, uint32_t q)
{
    return 1 + (r + q) % 3;
}

static int experts(struct peal_work work)
{
    int64_t sends[MAX_WORKERS * MAX_WORKERS], recvs[MAX_WORKERS * MAX_WORKERS];
    uint64_t max_rows = 3 * (uint64_t)workers, all = (uint64_t)workers * workers;
    float *x = numbers(max_rows * WIDTH, 4), *y = malloc(max_rows * WIDTH * sizeof *y), want[WIDTH];
    struct peal_tensor tx = tensor(max_rows, WIDTH, PEAL_REPLICATED, 0);
    struct peal_tensor ty = tensor(max_rows, WIDTH, PEAL_REPLICATED, 0);
    struct peal_tensor tup = tensor(WIDTH, HIDDEN, PEAL_REPLICATED, 0);
    struct peal_tensor tdown = tensor(HIDDEN, WIDTH, PEAL_REPLICATED, 0);
    int right = 1;
    must(peal_tensor_write(host, tx, x, max_rows * WIDTH * sizeof *x), "write");
    for (uint32_t r = 0; r < workers; r++) {
        float *up = numbers(WIDTH * HIDDEN, 5 + r), *down = numbers(WIDTH * HIDDEN, 6 + r);
        must(peal_tensor_write_part(host, tup, r, up, WIDTH * HIDDEN * sizeof *up), "write");
        must(peal_tensor_write_part(host, tdown, r, down, WIDTH * HIDDEN * sizeof *down), "write");
        for (uint32_t q = 0; q < workers; q++) {
            sends[r * workers + q] = rows_between(r, q);
            recvs[r * workers + q] = rows_between(q, r);
        }
        free(up);
        free(down);
    }
    struct peal_task_arg args[] = {peal_arg_tensor(tx),
                                   peal_arg_tensor(tup),
                                   peal_arg_tensor(tdown),
                                   peal_arg_tensor(ty),
                                   {.kind = PEAL_TASK_INTS, .values = sends, .nvalues = all},
                                   {.kind = PEAL_TASK_INTS, .values = recvs, .nvalues = all}};
    struct peal_task_spec task = {.work = work, .everyone = 1, .args = args, .nargs = 6};
    must(peal_host_submit(host, &task, NULL), "experts");
    for (uint32_t r = 0; r < workers; r++) {
        must(peal_tensor_read_part(host, ty, r, y, max_rows * WIDTH * sizeof *y), "read");
        uint64_t row = 0;
        for (uint32_t q = 0; q < workers; q++) {
            float *up = numbers(WIDTH * HIDDEN, 5 + q), *down = numbers(WIDTH * HIDDEN, 6 + q);
            for (int64_t i = 0; i < sends[r * workers + q]; i++, row++) {
                layer(x + row * WIDTH, up, down, HIDDEN, want);
                right &= rows_are(y + row * WIDTH, want);
            }
            free(up);
            free(down);
        }
    }
    free(x);
    free(y);
    return right;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    if (!file || !text || fread(text, 1, (1 << 16) - 1, file) == 0) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    struct peal_host_open options = {.workers = argc > 2 ? (uint32_t)atoi(argv[2]) : 4,
                                     .record = 1};
    char *text = read_file(argc > 1 ? argv[1] : "layers.peal");
    struct peal_work work[2];
    struct peal_host_stats stats;
    int right[2];
    workers = options.workers;
    if (workers > MAX_WORKERS || peal_host_open(&options, &host) != PEAL_OK) {
        fprintf(stderr, "layers: %s\n", peal_host_error(NULL));
        return 1;
    }
    must(peal_work_kernel(host, text, "mlp", &work[0]), "mlp");
    must(peal_work_kernel(host, text, "experts", &work[1]), "experts");
    right[0] = mlp(work[0]);
    right[1] = experts(work[1]);
    must(peal_host_stats(host, &stats, sizeof stats), "stats");
    static const char *const words[] = {"WRONG", "right"};
    printf("%u workers on %s: mlp %s, experts %s, %.3f us in all\n", workers,
           peal_host_platform(host), words[right[0]], words[right[1]], (double)stats.time_ps / 1e6);
    peal_host_close(host);
    free(text);
    return right[0] && right[1] ? 0 : 1;
}
