/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's clock on a simulated machine, and how long its messages are on their way there.
 *
 * Every rank has a clock. A collective begins on each rank at its own time, and ends on all of them
 * with the last (platform.h). A message leaves when its sender has sent the ones before, and
 * carries the time at which it arrives: the receiver's clock is then no earlier. How long both take
 * is the machine's answer to a kernel with one send and one recv, on a machine that does nothing
 * else; it depends on bytes and ranks only, so that every sender can ask for itself.
 */
#ifndef PEAL_API_TRANSIT_H
#define PEAL_API_TRANSIT_H

#include "base/diag.h"

#include <peal/peal.h>

struct peal_transit;

/* Of rank `rank` of `size`, on the machine that a file describes. NULL: no memory. */
struct peal_transit *peal_transit_new(const char *path, uint32_t rank, uint32_t size);
/* One more owner: communicators of the same ranks share their clocks. */
struct peal_transit *peal_transit_keep(struct peal_transit *transit);
/* The last owner frees it. */
void peal_transit_drop(struct peal_transit *transit);

const char *peal_transit_path(const struct peal_transit *transit);
/* Picoseconds. */
uint64_t peal_transit_time(struct peal_transit *transit);
/* It is that time, or later already. */
void peal_transit_advance(struct peal_transit *transit, uint64_t time);

/* A message leaves: when the sender has sent it, and when the receiver has it. */
enum peal_status peal_transit_send(struct peal_transit *transit, uint32_t to, uint64_t bytes,
                                   struct peal_diags *diags, uint64_t *sent, uint64_t *arrives);

#endif
