/* SPDX-License-Identifier: Apache-2.0 */
/* What `peal explain` quotes: docs/explain.md and docs/glossary.md as text, made by the build. */
#ifndef PEAL_CLI_EXPLAIN_H
#define PEAL_CLI_EXPLAIN_H

#include "base/base.h"

extern const struct peal_source peal_explain_texts[];
extern const size_t peal_explain_text_count;

#endif
