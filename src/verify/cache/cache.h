/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts belong to plans. They are kept under a hash of the plan, and plans of one shape share
 * them.
 *
 * The *shape* of a plan is its op lists with every byte range replaced by the pair of cuts that it
 * lies between. The cuts of a buffer are all starts and ends of ranges on any rank, and of the
 * parts that the contract speaks of. Two plans of one shape overlap in the same way, so either both
 * are proved or neither is. Only proofs are kept: a counterexample names bytes, and is searched for
 * again.
 */
#ifndef PEAL_VERIFY_CACHE_H
#define PEAL_VERIFY_CACHE_H

#include "base/base.h"
#include "verify/verdict/verdict.h"

/* The SHA-256 of the shape, so that plans of different shapes are never confused. False: the plan
 * has no shape that others could share, and `out` is a hash of the plan itself. */
bool peal_plan_shape(const struct peal_plan *plan, char out[PEAL_SHA256_HEX + 1]);

/* $PEAL_CACHE, or peal/ in the user's cache folder, made if missing. NULL: no folder. */
const char *peal_cache_folder(struct peal_arena *arena);

/* Like peal_verify_plan, but looks into the folder first and adds the proof afterwards. folder
 * NULL: no cache. */
enum peal_status peal_verify_cached(const struct peal_plan *plan,
                                    const struct peal_verify_options *options, const char *folder,
                                    struct peal_verification **out);

#endif
