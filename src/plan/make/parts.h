/* SPDX-License-Identifier: Apache-2.0 */
/* Plans too large to hold: every rank's ops are made, visited and discarded.
 *
 *   peal_parts_open(kernel, bind, ...)          several may work on one kernel, each in its thread
 *   peal_parts_walk(parts, rank, visit, ...)    calls visit with each lane of that rank
 *   peal_parts_join(parts, other, ...)          adds what another one has seen
 *   peal_parts_end(parts, &frame)               the plan with all of its tables and no ops
 *
 * The lanes visited are those of the whole plan, op by op (except for the numbers of channels,
 * buffers and positions, which follow the order in which ranks were walked). Only for kernels whose
 * ranks communicate through channels: counts and totals of signals need all ranks at once.
 */
#ifndef PEAL_PLAN_PARTS_H
#define PEAL_PLAN_PARTS_H

#include "plan/make/instantiate.h"

struct peal_parts;

struct peal_part_lane {
    uint32_t rank, lane;
    uint64_t count;
    const struct peal_op *ops;
    const struct peal_ref *refs;         /* op.mem.ref counts from here */
    const struct peal_formula *formulas; /* of the plan */
};

/* `lane` is valid until the next walk. False: out of memory, and the walk ends. */
typedef bool peal_part_visit(void *context, const struct peal_part_lane *lane);

/* kernel and bind are borrowed until the end; bind->rank is not used. PEAL_UNSUPPORTED, with a
 * diagnostic: this kernel's plan can only be made as a whole. */
enum peal_status peal_parts_open(const struct peal_kernel *kernel, const struct peal_bind *bind,
                                 struct peal_diags *diags, struct peal_parts **out);
void peal_parts_free(struct peal_parts *parts);

/* Each rank once, in any order. */
enum peal_status peal_parts_walk(struct peal_parts *parts, uint32_t rank, peal_part_visit *visit,
                                 void *context);

/* What the refs and channel numbers of the lanes seen so far refer to. */
const struct peal_buf *peal_parts_bufs(const struct peal_parts *parts, uint32_t *count);
uint32_t peal_parts_channel_count(const struct peal_parts *parts);

/* The file that an op of the visited lane comes from, with line and column. NULL: it has no
 * position. */
const char *peal_parts_position(const struct peal_parts *parts, const struct peal_op *op,
                                uint32_t *line, uint32_t *col);

/* map[channel of `other`] becomes the number of that channel in `parts`. */
enum peal_status peal_parts_join(struct peal_parts *parts, const struct peal_parts *other,
                                 uint32_t *map);

/* Freed with free. Frees parts in every case. */
enum peal_status peal_parts_end(struct peal_parts *parts, struct peal_plan **frame);

#endif
