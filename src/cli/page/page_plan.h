/* SPDX-License-Identifier: Apache-2.0 */
/* What every page takes from a plan: tracks, places in the source, names of ops. */
#ifndef PEAL_CLI_PAGE_PLAN_H
#define PEAL_CLI_PAGE_PLAN_H

#include "plan/plan.h"
#include "report/report.h"

/* The texts and places of one plan within one page. A failed init leaves zeros; release is always
 * allowed. */
struct peal_page_plan {
    struct peal_page *page;
    const struct peal_plan *plan;
    uint32_t *places; /* page place by plan position */
    uint32_t *labels; /* page text by op, made on demand: 0 = not yet */
    uint32_t *tracks; /* page track of each lane, by the plan's lane number */
};

/* Files that positions name must have been added to the page before; built-in texts are added
 * here. */
void peal_page_plan_init(struct peal_page_plan *p, struct peal_page *page,
                         const struct peal_plan *plan);
void peal_page_plan_release(struct peal_page_plan *p);

/* A track for every lane of every rank: "rank 2", or "rank 2 lane 1" if there are several. */
void peal_page_plan_tracks(struct peal_page_plan *p);
uint32_t peal_page_plan_track(const struct peal_page_plan *p, uint32_t rank, uint32_t lane);

/* `op` is an index into the plan's ops. */
uint32_t peal_page_plan_label(struct peal_page_plan *p, uint32_t rank, uint64_t op);
uint32_t peal_page_plan_place(const struct peal_page_plan *p, uint64_t op);
enum peal_page_category peal_page_op_category(const struct peal_op *op);
/* Bytes that the op writes or sends; 0 for ops on cells. */
uint64_t peal_page_op_bytes(const struct peal_plan *plan, const struct peal_op *op);

/* "4096 f32, sum, root 2": how the plan's parameters are bound. */
void peal_page_plan_facts(struct peal_page *page, const struct peal_plan *plan);

/* The arrow from what let an op pass: a notify for a wait, a message for the others. The arrow's
 * times and tracks are set. */
void peal_page_plan_arrow(struct peal_page_plan *p, const struct peal_op *op,
                          struct peal_page_arrow arrow);

#endif
