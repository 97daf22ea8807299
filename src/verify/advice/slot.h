/* SPDX-License-Identifier: Apache-2.0 */
/* A second slot: the plan that a kernel would have if one of its scratch buffers existed twice.
 *
 * For every write, the write of the same bytes that must come before it is known; the write takes
 * the other slot. For every read, the last writes that must come before it are known; the read
 * takes their slot. Accumulates stay in the slot of the data that they add to. So if the new plan
 * has no race, every read finds the data that it was meant to find: any other write to the slot
 * would have to come between the two, and would race.
 *
 * The slot of an op may differ from launch to launch, but only in a way that `launch mod k` can
 * express: the new plan's period is that of the old one, or twice that.
 */
#ifndef PEAL_VERIFY_SLOT_H
#define PEAL_VERIFY_SLOT_H

#include "verify/program/program.h"

/* The slot that an operand uses in each launch of the new period. */
struct slot_use {
    uint32_t ref;   /* index into the plan's refs */
    uint32_t slots; /* bit f: the slot in phase f */
};

/* How all operands use the two slots of a memory. */
struct slot_uses {
    PEAL_VEC(struct slot_use) list;
    uint32_t period; /* of the new plan */
};

/* Finds the use of slots in launches of one plan of a monotone program. False: there is none (data
 * would have to be in both slots, or the period would be too long), the program is too large, or
 * out of memory. Release `out` in every case. */
bool peal_slot_find(const struct program *p, uint32_t memory, uint32_t workers,
                    struct slot_uses *out);
void peal_slot_release(struct slot_uses *uses);

/* The plan with `buf` twice as long and every operand in its slot. Freed with free; NULL: out of
 * memory. The plan is for the verifier only: it has no hash. */
struct peal_plan *peal_slot_plan(const struct peal_plan *old, uint32_t buf,
                                 const struct slot_uses *uses);

#endif
