/* SPDX-License-Identifier: Apache-2.0 */
/* User kernels as user.c and plan.c share them.
 *
 * A kernel is of one of two kinds. A kernel from text has a program, and an image for each set of
 * arguments that it was launched with. A kernel from a plan has only the image of that plan: sizes
 * and values are fixed, and its arguments are buffers. Both are launched by the same steps. */
#ifndef PEAL_COMM_USER_H
#define PEAL_COMM_USER_H

#include "comm/core/communicator.h"

/* A plan that was made for certain arguments. */
struct peal_user_version {
    struct peal_image *image;
    struct peal_plan *modelled; /* the same for a modelled machine; NULL: not made */
};

struct peal_user_kernel {
    struct peal_comm *comm; /* NULL once that is closed */
    struct peal_user_kernel *next;
    struct peal_program *program;
    const struct peal_kernel *kernel; /* NULL: it is of a plan, and has one version */
    struct peal_sha256 text;          /* of text and name: the beginning of identities */
    uint64_t serial;       /* among the kernels that were ever loaded by the communicator */
    struct peal_keys keys; /* of the versions: everything they depend on */
    PEAL_VEC(struct peal_user_version) versions; /* by key */
    uint64_t bytes;                              /* of the versions */
    struct peal_op_times *times;                 /* NULL: launches are not timed */
};

/* An empty kernel in the communicator's list; peal_user_kernel_free undoes everything. */
struct peal_user_kernel *peal_user_kernel_new(struct peal_comm *comm);
/* Takes the image over. False without memory, and then it does not. */
bool peal_user_version_add(struct peal_user_kernel *kernel, const struct peal_text *key,
                           struct peal_image *image);

/* One launch of a kernel from text. The caller fills in the request's dimensions and count, and of
 * its binding type, reduction and whether the call is in place; begin finds the image. */
struct peal_user_launch {
    struct peal_plan_request request;
    struct peal_arena arena;
    struct peal_bind bind;
    uint32_t version; /* of the kernel's */
};
/* Values of `local` arguments are this rank's, and are gathered. To be ended in every case. */
enum peal_status peal_user_launch_begin(struct peal_user_kernel *kernel,
                                        const struct peal_plan_arg *args, size_t nargs,
                                        struct peal_user_launch *launch);
/* `memory`: of each buffer parameter, in their order. */
enum peal_status peal_user_launch_run(struct peal_user_kernel *kernel,
                                      struct peal_user_launch *launch,
                                      const struct peal_arg *memory);
void peal_user_launch_end(struct peal_user_launch *launch);

/* Binds the memory to the image's parameters and runs it once. PEAL_INVALID, with a reason, if
 * memory is too small or not where it must be. */
enum peal_status peal_user_run(struct peal_user_kernel *kernel, struct peal_image *image,
                               const struct peal_arg *memory);

/* A launch of a kernel that is of a plan. */
enum peal_status peal_user_plan_launch(struct peal_user_kernel *kernel, enum peal_dtype dtype,
                                       const struct peal_arg *args, size_t nargs, size_t ndims);

#endif
