/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a plan's content: everything except the hash itself, source positions and strings.
 * Two plans may have the same one; what must not confuse them adds the content to a digest. */
#ifndef PEAL_PLAN_HASH_H
#define PEAL_PLAN_HASH_H

#include "base/base.h"
#include "plan/format/format.h"

uint64_t peal_plan_hash(const struct peal_plan *plan);
/* Adds what the hash covers. */
void peal_plan_add_content(const struct peal_plan *plan, struct peal_sha256 *sha);

#endif
