/* SPDX-License-Identifier: Apache-2.0 */
/* Who this rank is, and by which service it meets the others if they are on several hosts. */
#ifndef PEAL_COMM_MEETING_H
#define PEAL_COMM_MEETING_H

#include "comm/core/env.h"
#include "comm/hosts/hosts.h"

/* Rank, size and job: as given, by a store or by the environment. If the ranks are on several hosts, *meet
 * is how they meet, and nodes[r] (PEAL_MOST_RANKS of them) the host of each; otherwise *meet is NULL. */
enum peal_status peal_meeting_find(const struct peal_open *options, uint32_t meet_ms,
                                   struct peal_env *env, struct peal_meet **meet, uint32_t *nodes,
                                   struct peal_text *why);

#endif
