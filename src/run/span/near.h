/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of one host of several: they meet among themselves, as those of a job on one host do. */
#ifndef PEAL_RUN_NEAR_H
#define PEAL_RUN_NEAR_H

#include "run/span/span.h"
#include "run/team/rendezvous.h"

struct peal_near {
    const struct peal_team_options *options;
    uint32_t count, seat; /* of them; which of them this rank is */
    uint32_t ranks[PEAL_SPAN_MEMBERS];
    char job[96];
};

/* Finds them, and fills in by which name they meet, and who. `out` is used as long as `meet`. */
void peal_near_find(const struct peal_team_options *options, struct peal_near *out,
                    struct peal_rendezvous *meet);

#endif
