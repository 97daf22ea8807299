/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's clock on a simulated machine. All communicators of a rank that are made from one another
 * share one; those that are opened apart do so if they are given the same (peal_open.clock). They
 * may be used by several threads, hence the mutex. */
#ifndef PEAL_COMM_CLOCK_H
#define PEAL_COMM_CLOCK_H

#include <peal/peal.h>

/* One more owner; peal_clock_free takes one away, and the last frees it. */
struct peal_clock *peal_clock_keep(struct peal_clock *clock);

/* Picoseconds. */
uint64_t peal_clock_time(struct peal_clock *clock);
/* Sets the clock to that time, unless it is later already. */
void peal_clock_advance(struct peal_clock *clock, uint64_t time);
/* A message that takes the sender that long leaves now, or when the ones before have been sent.
 * Returns when it leaves. */
uint64_t peal_clock_send(struct peal_clock *clock, uint64_t busy);

#endif
