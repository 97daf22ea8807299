/* SPDX-License-Identifier: Apache-2.0 */
/* The one way from a kernel and the values that a user gives by name to a plan.
 *
 * A user gives some dimensions and parameters by name, and one count. The count binds every
 * dimension that was not given; `root` has its own field in peal_bind. A proof needs values for the
 * rest too: with `invent`, arrays that were not given are invented, uneven and partly empty.
 */
#ifndef PEAL_PLAN_REQUEST_H
#define PEAL_PLAN_REQUEST_H

#include "base/base.h"
#include "plan/make/instantiate.h"

struct peal_plan_request {
    const struct peal_kernel *kernel;
    struct peal_bind bind; /* everything but the values, which come from the members below */
    /* By name. Values of a `local` parameter are those of every rank in turn, or those of one rank
     * for all. */
    const struct peal_bind_value *given;
    size_t ngiven;
    int64_t count;     /* of every dimension that is not given */
    bool invent;       /* invent `counts`, `sends`, `recvs` and `most` if they are not given */
    int64_t max_count; /* invent: for a parameter `most`, the largest count of all launches */
};

/* The kernel's name, "" without one. */
const char *peal_request_name(const struct peal_plan_request *request);
/* Does the kernel have a dimension or an integer parameter of this name? */
bool peal_request_has(const struct peal_kernel *kernel, const char *name);
/* Does it have an integer parameter `root`? */
bool peal_request_has_root(const struct peal_kernel *kernel);
/* Says why it has none: "kernel 'k' has no parameter 'nn'; did you mean 'n'?" */
void peal_request_reject(const struct peal_kernel *kernel, const char *name, struct peal_text *out);

/* The binder: collects everything that instantiate needs. Values live in the arena, or stay where
 * the caller has them. PEAL_INVALID: the kernel has no such name; diags say so. */
enum peal_status peal_request_bind(const struct peal_plan_request *request,
                                   struct peal_arena *arena, struct peal_diags *diags,
                                   struct peal_bind *out);

/* Binds, then instantiates. On PEAL_OK the plan is freed with free. */
enum peal_status peal_plan_make(const struct peal_plan_request *request, struct peal_diags *diags,
                                struct peal_plan **out);

#endif
