/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of calls on a simulated machine, and the segments into which a large call is cut.
 *
 * A payload that is larger than a slot is sent as several messages, and the send ends when all of
 * them have a slot. Where every rank sends before it receives, a payload of more messages than a
 * queue has slots never ends. So a large call is a sequence of launches, equal segments and a tail,
 * as it is on this host; they follow each other without a barrier. The segment is the call's count,
 * halved until a trial without data runs through. That does not depend on when each rank comes: a
 * queue has one sender and one receiver, so either every order of steps ends or none does.
 */
#ifndef PEAL_COMM_MACHINE_PLANS_H
#define PEAL_COMM_MACHINE_PLANS_H

#include "comm/core/arguments.h"
#include "comm/core/shape.h"
#include "sim/sim.h"

struct peal_machine_plans;

/* Borrows the machine. Returns NULL if there is no memory. */
struct peal_machine_plans *peal_machine_plans_new(const struct peal_machine *machine);
/* Plans must outlive the simulations that they were launched on. */
void peal_machine_plans_free(struct peal_machine_plans *plans);

/* The plan of a call of `count` elements instead of args->count. It is kept. */
enum peal_status peal_machine_plans_get(struct peal_machine_plans *plans, struct peal_comm *comm,
                                        const struct peal_arguments *args, uint64_t count,
                                        const struct peal_plan **out);

/* How many of args->count elements one launch takes: all of them, if the machine has the slots. */
enum peal_status peal_machine_plans_segment(struct peal_machine_plans *plans,
                                            struct peal_comm *comm,
                                            const struct peal_arguments *args, uint64_t *out);

/* After a deadlock: would the plan end if queues had any number of slots? */
bool peal_machine_plans_wants_slots(const struct peal_machine_plans *plans,
                                    const struct peal_plan *plan);

#endif
