/* SPDX-License-Identifier: Apache-2.0 */
/* Fixes of a user's file: proposals for a fault, and edits applied to the text. A proposal is a
 * guess: before offering it, the caller must verify the edited file. */
#ifndef PEAL_IMPORT_FIX_H
#define PEAL_IMPORT_FIX_H

#include "import/finding.h"

struct peal_import;

/* The fault: two places that race, two users of one end of a channel, or one place that waits for
 * ever. */
struct peal_fix_site {
    bool channel, deadlock;
    /* the second place is not in the file: the caller of that rank uses its buffer */
    bool has_caller;
    uint32_t caller;
    uint32_t line[2], col[2];
};

/* Adds proposals, the most likely first, each with its edits. Those for MSCCL++ only insert. */
void peal_import_propose(const struct peal_import *import, const struct peal_fix_site *site,
                         struct peal_findings *out);

/* The byte offset of a line and column in the text. */
size_t peal_edits_offset(const struct peal_source *source, uint32_t line, uint32_t col);

/* The edited text, to be freed. NULL: out of memory, or edits overlap. */
char *peal_edits_apply(const struct peal_source *source, const struct peal_edit *edits,
                       uint32_t count, size_t *len);

#endif
