/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts belong to plans: kept by plan hash, and shared by plans of the same shape.
 *
 * The *shape* of a plan is its op lists with every byte range replaced by which cuts it lies
 * between, where the cuts of a buffer are all starts and ends of ranges on any rank, and the parts
 * that the contract speaks of. Two plans of one shape overlap in the same pattern, so they are
 * proved or not together. Only proofs are kept: a counterexample names bytes, and is found anew.
 */
#ifndef PEAL_VERIFY_CACHE_H
#define PEAL_VERIFY_CACHE_H

#include "base/base.h"
#include "verify/verdict.h"

/* The shape as its SHA-256: two plans of different shapes are never taken for one. False: the plan
 * has no shape that others could share, and `out` is of the plan itself. */
bool peal_plan_shape(const struct peal_plan *plan, char out[PEAL_SHA256_HEX + 1]);

/* $PEAL_CACHE, or peal/ in the user's cache folder, made if it is not there; NULL: none. */
const char *peal_cache_folder(struct peal_arena *arena);

/* Like peal_verify_plan, with the folder asked first and updated afterwards. folder NULL: no cache. */
enum peal_status peal_verify_cached(const struct peal_plan *plan,
                                    const struct peal_verify_options *options, const char *folder,
                                    struct peal_verification **out);

#endif
