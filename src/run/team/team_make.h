/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ways to a team share: opening (open.c), and making it from another (derive.c). */
#ifndef PEAL_RUN_TEAM_MAKE_H
#define PEAL_RUN_TEAM_MAKE_H

#include "run/team/team.h"

/* The layout of a window of a communicator that is opened, and of one that is made from another:
 * there, offsets count from the start of the body, and no pool is populated. */
void peal_layout_open(uint32_t size, struct peal_layout *out);
void peal_layout_derive(uint32_t size, struct peal_layout *out);
/* Bytes of a control block and sleep slots. */
uint64_t peal_head_bytes(uint32_t size);

/* A team without windows, of which `size` ranks are still to be filled in; NULL without memory. */
struct peal_team *peal_team_new(uint32_t rank, uint32_t size, const char *job, uint32_t timeout_ms);
/* Who the owner of a control block is. */
void peal_control_write(struct peal_control *control, uint32_t rank, uint32_t size, const char *job,
                        const struct peal_layout *layout);
/* Of a window that was reserved: only what was not known then. Peers may be looking at the rest. */
void peal_control_name(struct peal_control *control, uint32_t rank, uint32_t size, const char *job,
                       const struct peal_layout *layout);
/* All ranks are there: takes what follows from them. */
void peal_team_complete(struct peal_team *team);

#endif
