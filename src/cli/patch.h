/* SPDX-License-Identifier: Apache-2.0 */
/* What --fix changes in a file, as text that `patch` takes. */
#ifndef PEAL_CLI_PATCH_H
#define PEAL_CLI_PATCH_H

#include "base/base.h"

/* The changed lines of a text, as a patch of that file, without lines around them. */
void peal_patch_print(const char *path, const struct peal_source *before,
                      const struct peal_source *after, struct peal_text *out);
/* Puts the text in the place of the file, which is kept as PATH.orig, and says so: "PATH: DONE; the file as it was is PATH.orig".
 * False: it is not changed, and that is said. */
bool peal_patch_replace(const char *path, const char *text, size_t len, const char *done,
                        struct peal_text *said);

#endif
