/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two ways to make a team: opening (open.c) and deriving from another (derive.c). */
#ifndef PEAL_RUN_TEAM_MAKE_H
#define PEAL_RUN_TEAM_MAKE_H

#include "run/bootstrap/open.h"

/* The layout of a window of a communicator that is opened, and of one that is made from another:
 * there, offsets count from the start of the body, and no pool is populated. */
void peal_layout_open(uint32_t size, struct peal_layout *out);
void peal_layout_derive(uint32_t size, struct peal_layout *out);
/* Bytes of a control block and sleep slots. */
uint64_t peal_head_bytes(uint32_t size);

/* A team whose tables of `size` ranks are still to be filled in; NULL: no memory. */
struct peal_team *peal_team_new(uint32_t rank, uint32_t size, const char *job, uint32_t timeout_ms);
/* Fills in the identity of this rank's control block. */
void peal_control_write(struct peal_control *control, uint32_t rank, uint32_t size, const char *job,
                        const struct peal_layout *layout);
/* The same for a window that was reserved before: only what was not known then, since peers may
 * already read the rest. */
void peal_control_name(struct peal_control *control, uint32_t rank, uint32_t size, const char *job,
                       const struct peal_layout *layout);
/* Once the tables are filled in: computes what depends on all ranks. */
void peal_team_complete(struct peal_team *team);

#endif
