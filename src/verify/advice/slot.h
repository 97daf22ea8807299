/* SPDX-License-Identifier: Apache-2.0 */
/* A second slot: the plan that a kernel would have if one of its scratch buffers were there twice.
 *
 * Of every write it is known which write of the same bytes must precede it; it takes the other
 * slot. Of every read it is known whose data it means: the last writes that must precede it. It
 * takes their slot. Accumulates stay with what they add to. So where the new plan has no race,
 * every read finds what it was meant to find: another write of the same slot would have to come
 * between the two.
 *
 * Slots of one op may differ from launch to launch, but only so that `launch mod k` can say it: the
 * new plan's period is that of the old one, or twice that.
 */
#ifndef PEAL_VERIFY_SLOT_H
#define PEAL_VERIFY_SLOT_H

#include "verify/program/program.h"

/* The slot that an operand uses in each launch of the new period. */
struct slot_use {
    uint32_t ref;   /* index into the plan's refs */
    uint32_t slots; /* bit f: slot of phase f */
};

/* How all operands use two slots of a memory. */
struct slot_uses {
    PEAL_VEC(struct slot_use) list;
    uint32_t period; /* of the new plan */
};

/* Finds it in launches of one plan, of a monotone program. False: there is no such use (data would
 * have to be in both slots, or would need too long a period), the program is too large, or out of
 * memory. Release it in every case. */
bool peal_slot_find(const struct program *p, uint32_t memory, uint32_t workers,
                    struct slot_uses *out);
void peal_slot_release(struct slot_uses *uses);

/* The plan with `buf` twice as long and every operand in its slot. Freed with free; NULL: out of
 * memory. It is for the verifier only: it has no hash. */
struct peal_plan *peal_slot_plan(const struct peal_plan *old, uint32_t buf,
                                 const struct slot_uses *uses);

#endif
