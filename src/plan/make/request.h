/* SPDX-License-Identifier: Apache-2.0 */
/* The one way from a kernel and the values that a user gives to a plan.
 *
 * A user gives some dimensions and parameters by name, and one count. The count binds every
 * dimension that was not given; `root` has its own field in peal_bind. A proof needs values for the
 * rest too: with `invent`, arrays that were not given are invented, uneven and partly empty.
 *
 * A program gives arguments instead, one for each parameter: peal_request_take makes them values by
 * name, and finds the dimensions that follow from the lengths of buffers.
 */
#ifndef PEAL_PLAN_REQUEST_H
#define PEAL_PLAN_REQUEST_H

#include "base/base.h"
#include "plan/make/instantiate.h"

struct peal_plan_request {
    const struct peal_kernel *kernel;
    struct peal_bind bind; /* everything but the values, which come from the members below */
    /* By name. Values of a `local` parameter: `count` of every rank in turn if `all_ranks` is set;
     * otherwise `count` in all, which are those of every rank in turn, or of one rank for all. */
    const struct peal_bind_value *given;
    size_t ngiven;
    int64_t count;     /* of every dimension that is not given; -1: there is none */
    bool invent;       /* invent `counts`, `sends`, `recvs` and capacities without a default */
    /* The largest count of the launches that follow each other: a capacity that is not given is
     * what it is at that count. Up to `count`: this launch alone, and it has its default. */
    int64_t max_count;
};

/* The kernel's name, "" without one. */
const char *peal_request_name(const struct peal_plan_request *request);
/* Does the kernel have a dimension or an integer parameter of this name? */
bool peal_request_has(const struct peal_kernel *kernel, const char *name);
/* Does it have an integer parameter `root`? */
bool peal_request_has_root(const struct peal_kernel *kernel);
/* Says why it has none: "kernel 'k' has no parameter 'nn'; did you mean 'n'?" */
void peal_request_reject(const struct peal_kernel *kernel, const char *name, struct peal_text *out);

/* An argument of a program, for the parameter at its place. */
enum peal_plan_arg_kind {
    PEAL_GIVES_BUFFER,
    PEAL_GIVES_INT,
    PEAL_GIVES_INTS,
    PEAL_GIVES_REDUCE,
    PEAL_GIVES_NOTHING /* an int that has a default, or a buffer whose length follows */
};
struct peal_plan_arg {
    enum peal_plan_arg_kind kind;
    uint64_t
        elements;     /* BUFFER: the same on every rank; PEAL_ANY_LENGTH: nothing follows from it */
    uint64_t columns; /* BUFFER of two dimensions: elements of a row, 0: not known */
    const int64_t *values; /* INT, INTS: of a `local` one those of every rank in turn */
    size_t nvalues;        /* of one rank */
};
#define PEAL_ANY_LENGTH UINT64_MAX

/* Adds the values of the arguments to the dimensions that the request has by name, then those that
 * follow. `symmetric` of the binding is set if there are window parameters. The reduction is left to
 * the caller. Values stay where they are, lists are in the arena. PEAL_INVALID: `why` says what does
 * not fit. */
enum peal_status peal_request_take(struct peal_plan_request *request,
                                   const struct peal_plan_arg *args, size_t nargs,
                                   struct peal_arena *arena, struct peal_text *why);

/* The binder: collects everything that instantiate needs. Values live in the arena, or stay where
 * the caller has them. PEAL_INVALID: the kernel has no such name; diags say so. */
enum peal_status peal_request_bind(const struct peal_plan_request *request,
                                   struct peal_arena *arena, struct peal_diags *diags,
                                   struct peal_bind *out);

/* Everything that a plan of the kernel depends on, as bytes: equal bindings have equal keys, and
 * different plans different ones. Without `locals`, values that each rank has for itself are left
 * out, and so is whether it is in place. */
void peal_bind_key(const struct peal_kernel *kernel, const struct peal_bind *bind, bool locals,
                   struct peal_text *out);

/* Binds, then instantiates. On PEAL_OK the plan is freed with free. */
enum peal_status peal_plan_make(const struct peal_plan_request *request, struct peal_diags *diags,
                                struct peal_plan **out);

#endif
