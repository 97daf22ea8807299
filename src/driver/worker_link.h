/* SPDX-License-Identifier: Apache-2.0 */
/* All queued tasks as one plan, for the simulator. See link.c. */
#ifndef PEAL_DRIVER_WORKER_LINK_H
#define PEAL_DRIVER_WORKER_LINK_H

#include "driver/state/state.h"

/* A task's ops in one lane of the plan. */
struct peal_linked_part {
    uint64_t task;
    uint32_t member;
    uint64_t first_op, ops;
};

struct peal_linked {
    struct peal_plan *plan;
    uint64_t *first, *count; /* by queue: position of its first task in the plan, and number */
    PEAL_VEC(struct peal_linked_part) parts; /* in order of their ops */
};

enum peal_status peal_link(struct peal_host *host, struct peal_linked *out);
void peal_linked_release(struct peal_linked *linked);

#endif
