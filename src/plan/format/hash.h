/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a plan's content: everything except the hash itself, source positions and strings. */
#ifndef PEAL_PLAN_HASH_H
#define PEAL_PLAN_HASH_H

#include "plan/format/format.h"

uint64_t peal_plan_hash(const struct peal_plan *plan);

#endif
