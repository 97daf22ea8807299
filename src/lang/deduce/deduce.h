/* SPDX-License-Identifier: Apache-2.0 */
/* deduce: what the text means.
 *
 *   names        every name gets its symbol, every symbol its slot
 *   types        every expression gets its type; shapes are compared where possible
 *   calls        resolved to kernels of the module, then of the library
 *   directions   in, out, inout of every buffer parameter, from what the operations do to it
 *   rules        signals have both sides, lanes are at the top, contracts fit, ...
 *
 * Whatever depends on actual numbers (generic types, lengths) is left to instantiate. deducer.h
 * lists the files.
 */
#ifndef PEAL_LANG_DEDUCE_H
#define PEAL_LANG_DEDUCE_H

#include "lang/tree/module.h"

/* Deduces every kernel of the module that has not been deduced yet. Uses at most 2 MiB of stack: an
 * expression of PEAL_MAX_HEIGHT levels in blocks nested PEAL_MAX_NESTING deep. PEAL_INVALID: the
 * errors, possibly several, are in diags. library may be NULL; it must be deduced, and outlive the
 * module. */
enum peal_status peal_deduce(struct peal_module *module, const struct peal_module *library,
                             struct peal_diags *diags);

/* The arguments of a deduced call, one per parameter of its callee. */
struct peal_call_expr {
    struct peal_kernel *callee;
    /* NULL: left out, the parameter's `initial` applies; one buffer given for both x and y appears
     * twice */
    struct peal_expr *args[PEAL_MAX_PARAMS];
    struct peal_expr *signal;     /* replaces the callee's only signal, or NULL */
    struct peal_symbol *replaced; /* that signal of the callee */
};

/* Sorts the arguments of a call that deduce has accepted. */
struct peal_call_expr peal_call_bind(const struct peal_stmt *stmt);

/* The functions that are not elementwise (fn.def has the elementwise ones): min, max, part, ...;
 * NULL after the last. */
const char *peal_function_name(size_t i);

/* node nodes seat seats max_seats: names that a kernel may also declare for something else. */
bool peal_special_is_placement(int64_t special);
bool peal_name_is_placement(const char *name);
/* Does what a lowered kernel does depend on where its ranks are placed? */
bool peal_kernel_is_placed(const struct peal_kernel *kernel);

#endif
