/* SPDX-License-Identifier: Apache-2.0 */
/* How long a communicator's messages are on their way on a simulated machine.
 *
 * Every rank has a clock (clock.h). A collective begins on each rank at its own time, and ends on
 * all of them with the last (platform.h). A message leaves when its sender has sent the ones
 * before, and carries the time at which it arrives: the receiver's clock is then no earlier. Both
 * times are found by simulating a kernel with one send and one recv on an otherwise idle machine.
 * They depend only on bytes and ranks, so that every sender can compute them by itself.
 */
#ifndef PEAL_COMM_TRANSIT_H
#define PEAL_COMM_TRANSIT_H

#include "comm/simulated/clock.h"
#include "base/base.h"

struct peal_transit;

/* Of rank `rank` of `size`, on the machine that a file describes. Keeps the clock; NULL: a new one.
 * Returns NULL if there is no memory. */
struct peal_transit *peal_transit_new(const char *path, uint32_t rank, uint32_t size,
                                      struct peal_clock *clock);
void peal_transit_free(struct peal_transit *transit);

const char *peal_transit_path(const struct peal_transit *transit);
struct peal_clock *peal_transit_clock(const struct peal_transit *transit);

/* A message leaves: when the sender has sent it, and when the receiver has it. */
enum peal_status peal_transit_send(struct peal_transit *transit, uint32_t to, uint64_t bytes,
                                   struct peal_diags *diags, uint64_t *sent, uint64_t *arrives);

#endif
