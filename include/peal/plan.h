/* SPDX-License-Identifier: Apache-2.0 */
/* peal/plan.h: making, describing and launching plans. A plan is what a kernel becomes for a number
 * of ranks, sizes and parameters, or what a file of another engine contains; plans are what Peal
 * proves, simulates and runs. `peal run` uses this header.
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
 * A plan belongs to no communicator. It never changes, and any number of threads may use it.
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

/* Zero or NULL means the default in every field except the kernel and `ranks`. */
struct peal_plan_args {
    uint32_t struct_size; /* sizeof(struct peal_plan_args), or 0: as it is in 0.2.0 */
    uint32_t ranks;       /* a file of another engine must be for this number */

    /* The kernel: one of these three. A text or file is Peal, MSCCL XML or MSCCL++ JSON, as its
     * content shows. With a text, `file` is the file name in messages. */
    const char *text;
    const char *file;
    const char *library; /* the name of a kernel of the library */
    const char *kernel;  /* which kernel of a Peal text; NULL: the last */

    uint64_t count; /* elements of each dimension without a value; 0: 256, or what the file needs */
    const struct peal_verify_value *values; /* dimensions and parameters; for Peal texts only */
    size_t nvalues;
    enum peal_dtype dtype;  /* peal_plan_args_init: PEAL_F32 */
    enum peal_reduction op; /* of kernels that reduce */
    uint32_t root;
    int in_place;        /* the result replaces the input */
    uint32_t depth;      /* slots per channel; 0: 2, or as many as the file's engine has */
    uint64_t slot_bytes; /* bytes per slot; 0: the largest payload */

    char *error; /* gets the reason of a failure; may be NULL */
    size_t error_cap;
};

static inline void peal_plan_args_init(struct peal_plan_args *args)
{
    memset(args, 0, sizeof *args);
    args->struct_size = sizeof *args;
    args->dtype = PEAL_F32;
}

/* PEAL_INVALID: there is no such kernel, the text is wrong, or these values make no plan; `error`
 * has file, line and caret. PEAL_UNSUPPORTED: this build does not read the format. */
PEAL_API enum peal_status peal_plan_open(const struct peal_plan_args *args, struct peal_plan **out);
/* NULL is ignored. Kernels that were loaded from the plan stay usable. */
PEAL_API void peal_plan_close(struct peal_plan *plan);

/* Texts are valid as long as the plan is open. */
struct peal_plan_facts {
    uint32_t struct_size; /* sizeof(struct peal_plan_facts), or 0: as it is in 0.2.0 */
    uint32_t ranks;
    const char *kernel;
    const char *contract; /* "allreduce", ...; or "none" */
    uint32_t buffers;     /* that the caller passes to a launch */
    uint64_t ops;         /* of all ranks */
    uint64_t
        window_bytes; /* per rank; a plan with more than PEAL_MOST_WINDOW_BYTES cannot be launched */
};
PEAL_API void peal_plan_describe(const struct peal_plan *plan, struct peal_plan_facts *out);

/* A buffer that the caller passes to a launch. */
struct peal_plan_buffer {
    uint32_t struct_size; /* sizeof(struct peal_plan_buffer), or 0: as it is in 0.2.0 */
    enum peal_dtype dtype;
    const char *name;
    int reads, writes; /* whether a launch reads it, and writes it */
    int window;        /* must be in symmetric memory, because peers use it */
    uint32_t columns;  /* with two dimensions: elements per row; otherwise 0 */
    uint64_t elements; /* on this rank */
};
/* `index` is a position in the arguments of a launch. PEAL_INVALID: no such rank or buffer. */
PEAL_API enum peal_status peal_plan_describe_buffer(const struct peal_plan *plan, uint32_t rank,
                                                    uint32_t index, struct peal_plan_buffer *out);

/* ---- launching plans ---- */

/* Makes a plan ready to be launched on this rank. peal_user_kernel_launch then takes the buffers of
 * the plan, its type, and no dimensions. In place, the smaller of the two buffers lies in the
 * larger one. Not collective, but all ranks must load the same plan; otherwise launches end with
 * PEAL_MISMATCH. PEAL_INVALID: the plan is for another number of ranks, or PEAL_VERIFY=1 is set and
 * it is not proved. With a simulated machine it runs on this host and takes no simulated time. */
PEAL_API enum peal_status peal_user_kernel_load_plan(struct peal_comm *comm,
                                                     const struct peal_plan *plan,
                                                     struct peal_user_kernel **out);

/* When an operation ran on this rank, including its waits, in nanoseconds of the host's monotonic
 * clock. */
struct peal_op_time {
    uint64_t start, end;
    uint64_t op; /* its number in the plan of all ranks, as `peal plan` lists them */
    uint64_t lane;
};
/* This structure will not get new members. */
struct peal_op_times {
    struct peal_op_time *at;
    uint64_t cap;
    uint64_t len, lost; /* entries written, and entries dropped because the array was full */
};
/* Later launches of this kernel add to `times`, which the caller owns; NULL stops that. They take
 * longer, because the clock is read twice per operation. */
PEAL_API enum peal_status peal_user_kernel_set_times(struct peal_user_kernel *kernel,
                                                     struct peal_op_times *times);

#ifdef __cplusplus
}
#endif
#endif
