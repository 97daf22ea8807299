/* SPDX-License-Identifier: Apache-2.0 */
/* What --fix changes in a file, as text that `patch` takes. */
#ifndef PEAL_CLI_PATCH_H
#define PEAL_CLI_PATCH_H

#include "base/base.h"

/* The changed lines of a text, as a patch of that file, without lines around them. */
void peal_patch_print(const char *path, const struct peal_source *before,
                      const struct peal_source *after, struct peal_text *out);

#endif
