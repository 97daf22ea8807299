/* SPDX-License-Identifier: Apache-2.0 */
/* Room: how much memory can still be had.
 *
 * The system promises more memory than it has, and ends processes when the promises are called in.
 * So a caller that is about to take much asks here first, for all ranks together, and refuses in words.
 * The smallest of these counts: what the machine has available, and what the limits of the control
 * groups leave that this process is in (a container's, a service's, a batch job's).
 */
#ifndef PEAL_RUN_MEMORY_LIMIT_H
#define PEAL_RUN_MEMORY_LIMIT_H

#include "base/base.h"

#include <stdint.h>

struct peal_memory_limit {
    uint64_t bytes; /* UINT64_MAX: not known */
    bool of_group;  /* the limit is a control group's, not the machine's */
};

/* What can be had now, with a sixteenth left for others. `root` is put before the paths of the
 * system's files: "", or a folder with files for a test. */
void peal_memory_limit_find(const char *root, struct peal_memory_limit *out);

/* True if `bytes` fit that `ranks` want together. Otherwise `why` (may be NULL) gets what is needed
 * and what is available, without a newline. Less than a megabyte always fits. */
bool peal_memory_limit_fits(const struct peal_memory_limit *room, uint64_t bytes, uint32_t ranks,
                            struct peal_text *why);

/* The two together, for this system; it is not asked for less than a megabyte. */
bool peal_memory_limit_has(uint64_t bytes, uint32_t ranks, struct peal_text *why);

#endif
