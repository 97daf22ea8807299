/* SPDX-License-Identifier: Apache-2.0 */
/* verify: one plan, or a sequence of plans launched back to back, proved over all schedules.
 *
 *   verdict.h  the questions and the answers        cache.h    verdicts by plan hash and by shape
 *   claim/     what "proved" means: which plans and sequences of plans a kernel's proof consists of
 *   forall/    proofs for every number of ranks
 *   ring/      the same for rings: guessed from few ranks, checked for all by an SMT solver
 *   symmetry/  ranks that do the same: checked symmetry, clocks in one pass
 *   decide.h   the verdict on an unrolled program: which of the following are asked, in which order
 *   program/   plans -> unrolled program: threads, sync steps on cells, memory accesses
 *   order/     monotone programs: one run decides deadlock, lazy runs give must-precede (order.h);
 *              races, closed or not (race.h); how many launches stand for all (ahead.h); races
 *              through relaxed signals (relaxed.h); what a rank that stops does (stops.h)
 *   explore/   everything else: explicit states with partial-order reduction, directed search
 *   result/    what every output element consists of, and whether the contract holds
 *   story/     the counterexample: the steps that lead to the fault, and nothing else; explain.c
 *              and explain_json.c present it to people and to programs
 *   advice/    what would fix it, what could be left out
 *
 * Start reading at claim/claim.h, then verify.c and decide.c, which are the lists of calls.
 * docs/verifier.md says what a verdict means.
 */
#ifndef PEAL_VERIFY_VERIFY_H
#define PEAL_VERIFY_VERIFY_H

#include "verify/cache.h"
#include "verify/claim/claim.h"
#include "verify/forall/forall.h"
#include "verify/order/stops.h"
#include "verify/verdict.h"

#endif
