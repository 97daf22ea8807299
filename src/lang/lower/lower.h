/* SPDX-License-Identifier: Apache-2.0 */
/* lower: a kernel becomes one without calls, which instantiate can walk.
 *
 *   lower.c   the pipeline, a list of passes
 *   clone.h   copying trees between kernels, with symbols replaced
 *   inline.c  pass "inline": calls are replaced by the body of the kernel they name
 *   fold.c    pass "fold": evaluates what depends on constants only
 *
 * The given kernel is not changed: the passes work on a copy in another module. Lowering a lowered
 * kernel gives the same text again.
 */
#ifndef PEAL_LANG_LOWER_H
#define PEAL_LANG_LOWER_H

#include "lang/tree/module.h"

/* Called with the kernel before the first pass (pass "") and after each one. */
struct peal_lower_hook {
    void (*after)(const char *pass, const struct peal_kernel *kernel, void *context);
    void *context;
};

/* The lowered copy is in `into` and lives as long as that; sources and the callees' module must
 * outlive it too. hook may be NULL. The kernel must be deduced. */
enum peal_status peal_lower(const struct peal_kernel *kernel, struct peal_module *into,
                            const struct peal_lower_hook *hook, struct peal_diags *diags,
                            struct peal_kernel **out);

/* The passes' names in order; NULL after the last. */
const char *peal_lower_pass_name(int i);

/* The passes. The top of each file says what the pass needs and keeps. */
enum peal_status peal_lower_inline(struct peal_module *module, struct peal_kernel *kernel,
                                   struct peal_diags *diags);
enum peal_status peal_lower_fold(struct peal_module *module, struct peal_kernel *kernel,
                                 struct peal_diags *diags);

#endif
