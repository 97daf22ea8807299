/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator's table of algorithms, for the command that measures them. */
#ifndef PEAL_API_RULES_H
#define PEAL_API_RULES_H

#include "run/run.h"

#include <peal/peal.h>

/* From now on the table has this one rule, which is copied; NULL: none. */
enum peal_status peal_comm_use_rule(struct peal_comm *comm, const struct peal_rule *rule);
/* Ranks, cores and memory as this communicator's calls choose by. The same on all ranks. */
void peal_comm_wish(const struct peal_comm *comm, struct peal_wish *out);

#endif
