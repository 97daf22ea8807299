/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the benchmarks of plans and simulations: a library kernel bound to ranks and a count,
 * and a machine on which only links take time. */
#ifndef PEAL_BENCH_KERNEL_H
#define PEAL_BENCH_KERNEL_H

#include "lang/lang.h"
#include "plan/plan.h"

struct bench_kernel {
    struct peal_diags diags;
    struct peal_program *program;
    const struct peal_kernel *kernel;
    struct peal_bind bind; /* f32, sum; borrows from this struct: it may not be moved */
    struct peal_bind_value n;
    int64_t count;
};

/* Prints what went wrong and ends the program. */
_Noreturn void bench_stop(const char *subject, const struct peal_diags *diags);

/* The only kernel of a library file, or the library kernel of that name. rank PEAL_NONE: all. */
void bench_kernel_open(const char *name, uint32_t nranks, uint32_t rank, int64_t count,
                       struct bench_kernel *out);
void bench_kernel_close(struct bench_kernel *kernel);

/* A machine file that other simulators can model too, so that times can be compared. */
extern const char bench_flat_machine[];

#endif
