/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in kernels: the texts of kernels/, part of the binary, parsed and deduced on demand. */
#ifndef PEAL_LANG_LIBRARY_H
#define PEAL_LANG_LIBRARY_H

#include "lang/tree/module.h"

struct peal_library;

/* Parses and deduces all texts. The module points into the library, which must outlive it. On
 * PEAL_OK *out is closed with peal_library_close. */
enum peal_status peal_library_open(struct peal_diags *diags, struct peal_library **out);
void peal_library_close(struct peal_library *library);
const struct peal_module *peal_library_module(const struct peal_library *library);

/* Is this kernel of the library right without flushes on a network that orders only pairs of ranks
 * (plan/format/flush.h)? False for any name that is not in the library. tests/pairwise proves
 * it. */
bool peal_library_orders_pairs(const struct peal_library *library, const char *kernel);

/* The texts; made by the build (embed.py). */
extern const struct peal_source peal_library_texts[];
extern const size_t peal_library_text_count;

#endif
