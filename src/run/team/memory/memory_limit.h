/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory is available.
 *
 * The system grants more memory than it has, and kills processes when too much of it is used. So a
 * caller that is about to take much memory asks here first, for all ranks together, and fails with
 * a message. The smallest of these counts: the memory available on the machine, and what is left of
 * the limits of this process's control groups (those of a container, a service, a batch job).
 */
#ifndef PEAL_RUN_MEMORY_LIMIT_H
#define PEAL_RUN_MEMORY_LIMIT_H

#include "base/base.h"

#include <stdint.h>

struct peal_memory_limit {
    uint64_t bytes; /* UINT64_MAX: not known */
    bool of_group;  /* the limit is a control group's, not the machine's */
};

/* What is available now, less a sixteenth for other programs. `root` is put before the paths of the
 * system's files: "", or a folder with files for a test. */
void peal_memory_limit_find(const char *root, struct peal_memory_limit *out);

/* True if the `bytes` that `ranks` need together fit. Otherwise `why` (may be NULL) gets what is
 * needed and what is available, without a newline. Less than a megabyte always fits. */
bool peal_memory_limit_fits(const struct peal_memory_limit *available, uint64_t bytes,
                            uint32_t ranks, struct peal_text *why);

/* Both together, on this system. */
bool peal_memory_limit_has(uint64_t bytes, uint32_t ranks, struct peal_text *why);

#endif
