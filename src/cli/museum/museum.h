/* SPDX-License-Identifier: Apache-2.0 */
/* The museum: bugs that happened, as kernels. Its texts (museum/NAME/bug.peal, fix.peal, page.md) are
 * part of the command, so that they are found wherever it is installed. */
#ifndef PEAL_CLI_MUSEUM_MUSEUM_H
#define PEAL_CLI_MUSEUM_MUSEUM_H

#include "base/base.h"

/* The text of that name, NAME/FILE. NULL: there is none. */
const struct peal_source *peal_museum_find(const char *name);
/* The text that stands in for museum/NAME/FILE where there is no such file. NULL: there is one, or
 * no such text. */
const struct peal_source *peal_museum_instead_of(const char *path);

/* The texts, called NAME/FILE, by name; made by the build. */
extern const struct peal_source peal_museum_texts[];
extern const size_t peal_museum_text_count;

#endif
