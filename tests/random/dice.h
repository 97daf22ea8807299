/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for the programs of this folder: the same seed and salt give the same ones. */
#ifndef PEAL_RANDOM_DICE_H
#define PEAL_RANDOM_DICE_H

#include "base/base.h"

struct dice {
    uint64_t state, salt;
};

/* 0 .. sides - 1 */
static inline uint32_t roll(struct dice *d, uint32_t sides)
{
    d->state += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(peal_hash_u64(d->state, d->salt) >> 33) % sides;
}

#endif
