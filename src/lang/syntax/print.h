/* SPDX-License-Identifier: Apache-2.0 */
/* Module to canonical text. Parsing that text and printing it again gives the same text. Only
 * comments directly above a kernel are kept. */
#ifndef PEAL_LANG_PRINT_H
#define PEAL_LANG_PRINT_H

#include "base/base.h"
#include "lang/tree/module.h"

void peal_print_module(const struct peal_module *module, struct peal_text *out);
/* The reductions come before the kernels. */
void peal_print_reduction(const struct peal_reduce_decl *reduce, struct peal_text *out);
void peal_print_kernel(const struct peal_kernel *kernel, struct peal_text *out);
/* The kernel's head on one line: name, parameters with the directions deduced so far, contract. */
void peal_print_signature(const struct peal_kernel *kernel, struct peal_text *out);
void peal_print_expr(const struct peal_expr *expr, struct peal_text *out);
/* The words before a cell: "release device ", each with a space after it. */
void peal_print_ordering(const struct peal_ordering *ordering, struct peal_text *out);
/* What an ensures says: a == b [where c]. */
void peal_print_ensured(const struct peal_stmt *stmt, struct peal_text *out);
/* The peer of a channel op: a name like `N` that is not the port gets parentheses. */
void peal_print_peer(const struct peal_expr *peer, struct peal_text *out);

#endif
