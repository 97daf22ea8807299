/* SPDX-License-Identifier: Apache-2.0 */
/* verify: one plan, or a sequence of plans launched back to back, proved over all schedules.
 *
 *   verify.c   peal_verify_plan: unroll, decide, advise
 *   forall.c   the proof for every number of ranks: which class, and what it takes
 *   ring/      rings of every length: guessed from few ranks, checked for all by an SMT solver
 *   forall/    the other classes: meshes, trees, rounds
 *   claim/     what "proved" means: which plans and sequences of plans a kernel's proof consists of
 *   symmetry/  roots that stand for each other (roots.h)
 *   cache/     verdicts by plan hash and by shape (cache.h)
 *   advice/    what would fix it, what could be left out, what a rank that stops does (stops.h)
 *   decide/    the verdict on an unrolled program: which of the following are asked, in which order
 *   result/    what every output element consists of, and whether the contract holds
 *   explore/   programs that are not monotone: explicit states with partial-order reduction,
 *              directed search, schedules made shorter (shrink.h); races through relaxed signals
 *              (relaxed.h)
 *   story/     the counterexample: the steps that lead to the fault, and nothing else
 *   order/     monotone programs: one run decides deadlock, lazy runs give must-precede (order.h);
 *              races, closed or not (race.h); how many launches stand for all (ahead.h); ranks that
 *              do the same (symmetry.h)
 *   program/   plans -> unrolled program: threads, sync steps on cells, memory accesses
 *   verdict/   the questions and the answers (verdict.h), for people and for programs (explain.c,
 *              explain_json.c)
 *
 * Each includes only folders below it in this list.
 *
 * Start reading at claim/claim.h, then verify.c and decide/decide.c, which are the lists of calls.
 * docs/verifier.md says what a verdict means.
 */
#ifndef PEAL_VERIFY_VERIFY_H
#define PEAL_VERIFY_VERIFY_H

#include "verify/advice/stops.h"
#include "verify/cache/cache.h"
#include "verify/claim/claim.h"
#include "verify/forall/forall.h"
#include "verify/verdict/verdict.h"

#endif
