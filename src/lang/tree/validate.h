/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of every deduced kernel after every pass:
 *
 *   - symbols are numbered 0, 1, ..., nslots-1, each once, and parameters are among them
 *   - every statement is in one place only; lists end
 *   - every expression has a type, every name has a symbol of this kernel that is visible there,
 *     and no two names visible at one place are the same, so that the kernel prints as a text that
 *     reads back
 *   - every function is resolved, every call has its callee; a lowered kernel has no calls
 *
 * A violation is our own bug; it is reported instead of asserted so that the pass can be named.
 */
#ifndef PEAL_LANG_VALIDATE_H
#define PEAL_LANG_VALIDATE_H

#include "lang/tree/module.h"

/* True if all deduced kernels are well formed; otherwise the first violation of each is in diags.
 * `after_pass` is for the message. False also when out of memory. */
bool peal_validate(const struct peal_module *module, const char *after_pass,
                   struct peal_diags *diags);

bool peal_validate_kernel(const struct peal_kernel *kernel, const char *after_pass,
                          struct peal_diags *diags);

#endif
