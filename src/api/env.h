/* SPDX-License-Identifier: Apache-2.0 */
/* Rank, size and job from the environment of whatever launcher started this process. */
#ifndef PEAL_API_ENV_H
#define PEAL_API_ENV_H

#include "base/text.h"

#include <peal/types.h>
#include <stdint.h>

struct peal_env {
    uint32_t rank, size;
    char job[64];
    const char *launcher; /* "none" when there is none: one rank */
};

/* PEAL_INVALID with a line in `why` when a launcher's variables make no sense, or when its ranks
 * are on several hosts. */
enum peal_status peal_env_read(struct peal_env *out, struct peal_text *why);

#endif
