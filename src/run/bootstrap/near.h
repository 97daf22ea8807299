/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of one host among several: they meet among themselves, like those of a job on one
 * host. */
#ifndef PEAL_RUN_NEAR_H
#define PEAL_RUN_NEAR_H

#include "run/bootstrap/open.h"
#include "run/bootstrap/rendezvous.h"
#include "run/span/span.h"

struct peal_near {
    const struct peal_team_options *options;
    uint32_t count; /* of ranks on this host */
    uint32_t seat;  /* this rank's position among them */
    uint32_t ranks[PEAL_SPAN_MEMBERS];
    char job[96];
};

/* Finds them, and fills in `meet` for them alone. `out` must live as long as `meet`. */
void peal_near_find(const struct peal_team_options *options, struct peal_near *out,
                    struct peal_rendezvous *meet);

#endif
