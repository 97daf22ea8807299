/* SPDX-License-Identifier: Apache-2.0 */
/* peal/plan.h: a plan is what a kernel becomes for certain ranks, sizes and parameters, or what a file
 * of another engine holds. It is what is proved, simulated and run; here it is made, described and
 * launched. It is what `peal run` uses.
 *
 *     struct peal_plan_args args;
 *     struct peal_plan *plan;
 *     struct peal_user_kernel *kernel;
 *     peal_plan_args_init(&args);
 *     args.file = "allreduce.xml";
 *     args.ranks = peal_comm_size(comm);
 *     if (peal_plan_open(&args, &plan) == PEAL_OK &&
 *         peal_user_kernel_load_plan(comm, plan, &kernel) == PEAL_OK)
 *         peal_user_kernel_launch(kernel, PEAL_F32, buffers, 2, NULL, 0);
 *
 * A plan belongs to no communicator. It is not changed once it is made, and any number of threads may
 * use it.
 */
#ifndef PEAL_PLAN_H
#define PEAL_PLAN_H

#include <peal/peal.h>
#include <peal/types.h>
#include <peal/verify.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peal_plan;

/* ---- plans ---- */

/* Zero, or NULL, means the default everywhere but for the kernel and `ranks`. */
struct peal_plan_args {
    uint32_t struct_size; /* sizeof(struct peal_plan_args), or 0: as it is in 0.2.0 */
    uint32_t ranks;       /* files of other engines say it themselves, and must say the same */

    /* One of these. A text or a file is Peal, MSCCL XML or MSCCL++ JSON: its content decides. With a
     * text, `file` is what places in it are called. */
    const char *text;
    const char *file;
    const char *library; /* the name of a kernel of the library */
    const char *kernel;  /* which one of a Peal text; NULL: the last */

    uint64_t
        count; /* elements of every dimension that is not given; 0: 256, or what the file needs */
    const struct peal_verify_value *values; /* given dimensions and parameters; Peal only */
    size_t nvalues;
    enum peal_dtype dtype;  /* peal_plan_args_init: PEAL_F32 */
    enum peal_reduction op; /* of kernels that reduce */
    uint32_t root;
    int in_place;        /* the result takes the place of the input */
    uint32_t depth;      /* slots of a channel; 0: 2, or what the file's engine has */
    uint64_t slot_bytes; /* bytes of a slot; 0: the largest payload */

    char *error; /* where the reason of a failure goes, or NULL */
    size_t error_cap;
};

static inline void peal_plan_args_init(struct peal_plan_args *args)
{
    memset(args, 0, sizeof *args);
    args->struct_size = sizeof *args;
    args->dtype = PEAL_F32;
}

/* PEAL_INVALID: no such kernel, a text that is none, or values that make no plan; `error` has file, line
 * and caret. PEAL_UNSUPPORTED: this build does not read the format. */
PEAL_API enum peal_status peal_plan_open(const struct peal_plan_args *args, struct peal_plan **out);
/* NULL is ignored. Kernels that were loaded from it keep what they need. */
PEAL_API void peal_plan_close(struct peal_plan *plan);

/* Texts live as long as the plan. */
struct peal_plan_facts {
    uint32_t struct_size; /* sizeof(struct peal_plan_facts), or 0: as it is in 0.2.0 */
    uint32_t ranks;
    const char *kernel;
    const char *contract;  /* "allreduce", ...; "none" */
    uint32_t buffers;      /* of the caller's */
    uint64_t ops;          /* of all ranks */
    uint64_t window_bytes; /* per rank: at most PEAL_MOST_WINDOW_BYTES can be launched */
};
PEAL_API void peal_plan_describe(const struct peal_plan *plan, struct peal_plan_facts *out);

/* A buffer that a launch wants from the caller. */
struct peal_plan_buffer {
    uint32_t struct_size; /* sizeof(struct peal_plan_buffer), or 0: as it is in 0.2.0 */
    enum peal_dtype dtype;
    const char *name;
    int reads, writes; /* by the launch */
    int window;        /* in symmetric memory, where peers use it */
    uint32_t columns;  /* of two dimensions: elements per row; otherwise 0 */
    uint64_t elements; /* on this rank */
};
/* By number, in the order of arguments. PEAL_INVALID: no such rank or buffer. */
PEAL_API enum peal_status peal_plan_describe_buffer(const struct peal_plan *plan, uint32_t rank,
                                                    uint32_t index, struct peal_plan_buffer *out);

/* ---- launching plans ---- */

/* A plan made ready for this rank, to be launched by peal_user_kernel_launch with one buffer per buffer
 * of the plan, the type that the plan has and no dimensions. In place, the smaller of the two buffers
 * is within the larger one. Not collective; all ranks must load the same plan: a launch is
 * PEAL_MISMATCH otherwise. PEAL_INVALID: it is for another number of ranks, or with PEAL_VERIFY=1 it is
 * not proved. On a simulated machine it runs on this host, and takes none of the machine's time. */
PEAL_API enum peal_status peal_user_kernel_load_plan(struct peal_comm *comm,
                                                     const struct peal_plan *plan,
                                                     struct peal_user_kernel **out);

/* When an operation ran on this rank, its waiting included, in nanoseconds of the host's monotonic clock. */
struct peal_op_time {
    uint64_t start, end;
    uint64_t op; /* its number in the plan of all ranks, as `peal plan` lists them */
    uint64_t lane;
};
/* Does not grow. */
struct peal_op_times {
    struct peal_op_time *at;
    uint64_t cap;
    uint64_t len, lost; /* written, and dropped for want of room */
};
/* Launches of this kernel from now on add to `times`, which is the caller's; NULL ends it. They take
 * longer: the clock is read twice per operation. */
PEAL_API enum peal_status peal_user_kernel_set_times(struct peal_user_kernel *kernel,
                                                     struct peal_op_times *times);

#ifdef __cplusplus
}
#endif
#endif
