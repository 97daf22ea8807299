/* SPDX-License-Identifier: Apache-2.0 */
/* The formatter: a text as its author laid it out, with the same tokens, comments and lines, but
 * indented and spaced in one way. */
#ifndef PEAL_LANG_FORMAT_H
#define PEAL_LANG_FORMAT_H

#include "base/base.h"

/* Appends the formatted text. What is formatted stays as it is when it is formatted again, and
 * parses to the same tree. The text must parse. */
void peal_format(const struct peal_source *source, struct peal_text *out);

#endif
