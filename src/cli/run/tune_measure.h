/* SPDX-License-Identifier: Apache-2.0 */
/* What `peal tune` does on the ranks: times algorithms, and selects one for each size. */
#ifndef PEAL_CLI_TUNE_MEASURE_H
#define PEAL_CLI_TUNE_MEASURE_H

#include "cli/progress.h"
#include "cli/run/ranks.h"

#include <peal/choose.h>

enum { PEAL_TUNING_RULES = 16384 };

/* In memory shared by all ranks and the command; rank 0 adds rules. */
struct peal_tuning {
    const char *collective; /* only this one, or NULL */
    uint64_t begin, end, factor;
    uint64_t budget_ns; /* of one measurement */
    uint32_t hosts;     /* number of hosts of the ranks; 0: all are on this one */
    struct peal_progress *progress;
    uint32_t count;
    struct peal_tuned rules[PEAL_TUNING_RULES];
};

/* True for a collective with several algorithms. */
bool peal_tuning_has_choice(const char *collective);
/* Adds what has to be measured on that many ranks. */
void peal_tuning_count(const struct peal_tuning *tuning, uint32_t ranks,
                       struct peal_progress *progress);
/* The memory that this needs on all of them. */
uint64_t peal_tuning_need(const struct peal_tuning *tuning, uint32_t ranks);
/* The body of a rank; context is the tuning. */
int peal_tuning_measure(struct peal_comm *comm, void *context);

#endif
