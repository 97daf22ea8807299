/* SPDX-License-Identifier: Apache-2.0 */
/* Wires: the order of a network in an unrolled program (peal verify --order pairwise).
 *
 * A network orders what one rank does to another, and nothing else. What lane l of rank A does to a
 * rank C on another node (puts, accumulates, notifies, sends, freed slots) is taken from the lane
 * and given to a thread of its own, the *wire* from l to C, which carries it out later, in the same
 * order:
 *
 *   lane l    ... put ------+  notify B   flush C ...       ADD issued        WAIT arrived >= 1
 *                    issued |                   ^
 *   wire l->C              put, arrived --------+           WAIT issued >= 1, write, ADD arrived
 *
 * So such an access happens before later ones of the same wire, and before what follows an acquire
 * at C of one of them; nothing else that l does orders it. Reads, including those of C's memory,
 * stay in the lane: a get has its data, and a put's source is captured, when the op is done.
 *
 * Lanes come first among the threads, in the same order as without wires. A wire has the rank, lane
 * and op numbers of its lane, so that explanations of a step name the op that caused it. Two nodes
 * are needed: without a placement every rank is a node.
 */
#ifndef PEAL_VERIFY_WIRES_H
#define PEAL_VERIFY_WIRES_H

#include "verify/program/program.h"

/* Are they on different nodes of this launch's plan? False in programs without wires. */
bool peal_wires_separate(const struct program *p, uint32_t launch, uint32_t a, uint32_t b);
/* Puts an item on the wire of `thread` to `target`. True: the lane takes a step that issues it
 * (peal_wires_issue), which several items of one op share. */
bool peal_wires_put(struct program *p, uint32_t thread, uint32_t target, struct wire_item item);
struct step peal_wires_issue(const struct program *p, uint32_t thread, uint32_t target);
/* What a flush waits for: everything issued before it has arrived. */
struct step peal_wires_flush(const struct program *p, uint32_t thread, uint32_t target);

/* Called by build: allocates threads and cells; then, when all lanes have been walked, writes the
 * wires' steps from `end` on. Returns the end of all steps. */
uint64_t peal_wires_thread_count(const struct program *p, uint64_t lanes);
void peal_wires_make_cells(struct program *p, uint32_t first);
uint64_t peal_wires_unroll(struct program *p, uint64_t end, uint64_t cap);

#endif
