/* SPDX-License-Identifier: Apache-2.0 */
/* The builder of <peal/build.h> with a module as its result. It makes the same tree as the parser,
 * so the result prints as text, reads back as the same text, and is deduced, lowered and run like
 * any other. */
#ifndef PEAL_LANG_BUILD_H
#define PEAL_LANG_BUILD_H

#include "lang/tree/module.h"

#include <peal/build.h>

/* Ends the last kernel. The module is not deduced. Frees the builder in every case; the first
 * mistake is in diags. */
enum peal_status peal_builder_finish(struct peal_builder *b, struct peal_diags *diags,
                                     struct peal_module **out);

#endif
