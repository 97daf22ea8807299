/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and the machine of kernel.h. */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>

const char bench_flat_machine[] = "topology: {flat: 65536}\n"
                                  "links: {flat: {bw_GBps: 10, lat_ns: 50}}\n"
                                  "ipcq: {slots: 1024, slot_bytes: 0}\n"
                                  "dma: {bw_GBps: .inf, queue: 256}\n"
                                  "credit: {mode: fast, bytes: 0}\n"
                                  "mem: {tcm: {bw_GBps: .inf}, hbm: {bw_GBps: .inf}}\n"
                                  "math: {clock_GHz: .inf, lanes: {f32: 1}}\n"
                                  "signal: {notify_bytes: 0, request_bytes: 0}\n";

void bench_stop(const char *subject, const struct peal_diags *diags)
{
    struct peal_text text = {0};
    peal_diags_print(diags, false, &text);
    fprintf(stderr, "%s\n%s", subject, peal_text_get(&text));
    exit(1);
}

void bench_kernel_open(const char *name, uint32_t nranks, uint32_t rank, int64_t count,
                       struct bench_kernel *out)
{
    *out = (struct bench_kernel){.count = count};
    peal_diags_init(&out->diags);
    if (peal_program_open(name, &out->diags, &out->program) == PEAL_OK)
        out->kernel = peal_program_kernel(out->program, NULL, &out->diags);
    if (!out->kernel)
        bench_stop(name, &out->diags);
    out->n = (struct peal_bind_value){.name = "n", .values = &out->count, .count = 1};
    out->bind = (struct peal_bind){.nranks = nranks,
                                   .rank = rank,
                                   .dtype = PEAL_F32,
                                   .reduce = PEAL_SUM,
                                   .values = &out->n,
                                   .nvalues = 1};
}

void bench_kernel_close(struct bench_kernel *kernel)
{
    peal_program_close(kernel->program);
    peal_diags_release(&kernel->diags);
}
