/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a communicator on several hosts. */
#ifndef PEAL_COMM_HOSTS_H
#define PEAL_COMM_HOSTS_H

#include "comm/core/communicator.h"
#include "run/run.h"

/* Which ranks are on which host; *several says whether on more than one. Collective. */
enum peal_status peal_hosts_compare(struct peal_meet *meet, uint32_t *nodes, bool *several,
                                    struct peal_text *why);
/* Opens it: the ranks of each host meet among themselves, all of them through `meet`. Collective; all ranks
 * open or none does, with one reason in `why`. */
enum peal_status peal_hosts_open(struct peal_meet *meet, const uint32_t *nodes,
                                 const struct peal_team_options *options, struct peal_text *why,
                                 struct peal_comm **out);

/* A team of some ranks of another, which may span hosts: further arguments of peal_team_derive. */
struct peal_hosts_part {
    struct peal_span_options span;
    struct peal_span_hello hello;
    uint32_t at[PEAL_MOST_RANKS];
};
/* Fills them in, unless all ranks are on this host. */
void peal_hosts_cut(const struct peal_team *parent, struct peal_hosts_part *part,
                    struct peal_team_group *group);

/* Shrink of a team on several hosts: the ranks that are left, as a new team. */
enum peal_status peal_hosts_shrink(struct peal_comm *comm, const char *job, struct peal_text *why,
                                   struct peal_team **out);

#endif
