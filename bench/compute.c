/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise functions compared with memcpy: nanoseconds per call for small calls, GB/s (bytes
 * read and written) for large ones. One line of JSON per result.
 *
 *   compute [VARIANT]      default: the best one
 */
#include "compute/compute.h"

#include "measure.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 64 << 20, ROUNDS = 9, MAX_SRC = 8 };

struct task {
    const struct peal_compute *compute;
    enum peal_fn fn; /* PEAL_FN_COUNT: memcpy; PEAL_FN_ID: copy_stream */
    enum peal_dtype dtype;
    uint32_t nsrc;
    bool stream;
    size_t bytes; /* of each operand */
    char *dst, *src[MAX_SRC];
};

static void once(const struct task *task)
{
    if (task->fn == PEAL_FN_COUNT) {
        memcpy(task->dst, task->src[0], task->bytes);
    } else if (task->fn == PEAL_FN_ID) {
        task->compute->copy_stream(task->dst, task->src[0], task->bytes);
    } else {
        struct peal_operand dst = {task->dst, 0, task->dtype}, src[MAX_SRC];
        size_t count = task->bytes / peal_dtype_size(task->dtype);
        for (uint32_t s = 0; s < task->nsrc; s++)
            src[s] = (struct peal_operand){task->src[s], 0, task->dtype};
        if (task->stream)
            task->compute->combine_stream(task->fn, &dst, src, task->nsrc, count, 1);
        else
            task->compute->combine(task->fn, &dst, src, task->nsrc, count, 1);
    }
    __asm__ volatile(""
                     :
                     : "r"(task->dst)
                     : "memory"); /* keeps the compiler from dropping the call */
}

static void measure(const char *name, const struct task *task)
{
    size_t repeat = (size_t)(8 << 20) / (task->bytes * (task->nsrc + 1)) + 1;
    if (repeat > 100000)
        repeat = 100000;
    double times[ROUNDS];
    once(task);
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_now_us();
        for (size_t i = 0; i < repeat; i++)
            once(task);
        times[round] = (bench_now_us() - start) / (double)repeat;
    }
    double us = bench_median(times, ROUNDS);
    double moved = (double)task->bytes * (task->nsrc + 1);
    printf("{\"what\": \"%s\", \"variant\": \"%s\", \"dtype\": \"%s\", \"sources\": %u, \"bytes\": "
           "%zu, \"median_ns\": %.1f, \"gb_per_s\": %.2f}\n",
           name, task->compute->name, peal_dtype_name(task->dtype), task->nsrc, task->bytes,
           us * 1e3, moved / us * 1e-3);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const struct peal_compute *compute =
        argc > 1 ? peal_compute_find(argv[1]) : peal_compute_best();
    if (!compute) {
        fprintf(stderr, "no variant '%s' here\n", argv[1]);
        return 2;
    }
    bench_pin(0);
    struct task task = {.compute = compute, .dst = bench_shared(MAX_BYTES)};
    for (int s = 0; s < MAX_SRC; s++)
        task.src[s] = bench_shared(MAX_BYTES);
    static const size_t sizes[] = {8, 64, 512, 4096, 32768, 524288, 4 << 20, 64 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        task.bytes = sizes[i];
        task.dtype = PEAL_U8;
        task.nsrc = 1;
        task.stream = false;
        task.fn = PEAL_FN_COUNT;
        measure("memcpy", &task);
        task.fn = PEAL_FN_ID;
        measure("copy_stream", &task);
        task.fn = PEAL_FN_ADD;
        static const uint32_t numbers[] = {2, 4, 8};
        for (int n = 0; n < 3; n++) {
            task.nsrc = numbers[n];
            task.dtype = PEAL_F32;
            measure("add", &task);
        }
        task.nsrc = 2;
        task.stream = true;
        measure("add, streaming", &task);
        task.stream = false;
        task.fn = PEAL_FN_MAXIMUM;
        measure("maximum", &task);
        task.fn = PEAL_FN_ADD;
        static const enum peal_dtype dtypes[] = {PEAL_F64, PEAL_F16, PEAL_BF16, PEAL_I8, PEAL_I32};
        for (int d = 0; d < 5; d++) {
            task.dtype = dtypes[d];
            measure("add", &task);
        }
    }
    return 0;
}
