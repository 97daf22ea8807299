/* SPDX-License-Identifier: Apache-2.0 */
/* User kernels as user.c and plan.c share them.
 *
 * A kernel is of one of two kinds. A kernel from text has a program, and an image for each set of
 * arguments that it was launched with. A kernel from a plan has only the image of that plan: sizes
 * and values are fixed, and its arguments are buffers. Both are launched by the same steps. */
#ifndef PEAL_COMM_USER_H
#define PEAL_COMM_USER_H

#include "comm/communicator.h"

/* A plan that was made for certain arguments. */
struct peal_user_version {
    struct peal_user_version *next;
    uint64_t key;
    struct peal_image *image;
};

struct peal_user_kernel {
    struct peal_comm *comm; /* NULL once that is closed */
    struct peal_user_kernel *next;
    struct peal_program *program;
    const struct peal_kernel *kernel; /* NULL: it is of a plan, and has one version */
    uint64_t text_hash;
    struct peal_user_version *versions;
    uint32_t nversions;
    uint64_t bytes;              /* of the versions */
    struct peal_op_times *times; /* NULL: launches are not timed */
};

/* An empty kernel in the communicator's list; peal_user_kernel_free undoes everything. */
struct peal_user_kernel *peal_user_kernel_new(struct peal_comm *comm);
/* Takes the image over. False without memory, and then it does not. */
bool peal_user_version_add(struct peal_user_kernel *kernel, uint64_t key, struct peal_image *image);

/* Binds an argument to a buffer of the plan: adds to bounds, of which there is room for the ranks.
 * PEAL_INVALID, with a reason, if it is too small or not where it must be. */
enum peal_status peal_user_bind(struct peal_comm *comm, const struct peal_image *image,
                                const struct peal_image_param *param, const struct peal_arg *arg,
                                const char *name, struct peal_bound *bounds, uint32_t *n);
/* Runs the image once. `shared` is the same on all ranks that launch the same. */
enum peal_status peal_user_run(struct peal_user_kernel *kernel, struct peal_image *image,
                               struct peal_bound *bounds, uint32_t nbounds, uint64_t shared);
bool peal_user_args_touch(const struct peal_arg *a, const struct peal_arg *b);

/* A launch of a kernel that is of a plan. */
enum peal_status peal_user_plan_launch(struct peal_user_kernel *kernel, enum peal_dtype dtype,
                                       const struct peal_arg *args, size_t nargs, size_t ndims);

#endif
