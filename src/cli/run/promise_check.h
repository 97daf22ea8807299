/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel's own contract on data: what parameters begin with, and whether they end with what the
 * plan promises. Used by `peal run` and `peal sim`. */
#ifndef PEAL_CLI_PROMISE_CHECK_H
#define PEAL_CLI_PROMISE_CHECK_H

#include "plan/plan.h"

/* Puts the first `count` elements of a parameter on a rank into memory, as they are before the launch:
 * peal_sample_input if the plan has a contract of a collective, otherwise numbers that also tell
 * parameters and elements apart. */
void peal_promise_fill(const struct peal_plan *plan, uint32_t rank, uint32_t buf, uint64_t count,
                       enum peal_dtype dtype, void *at);

/* Are there promises that data can be compared with? */
bool peal_promise_is_checkable(const struct peal_plan *plan);

/* A rank's parameters after a launch. */
struct peal_promise_data {
    void *context;
    const void *(*at)(void *context, uint32_t buf); /* where a parameter begins */
    /* has this element been computed? NULL: all have */
    bool (*has)(void *context, uint32_t buf, uint64_t element);
};

/* The first element that differs. */
struct peal_promise_wrong {
    const struct peal_promise *promise;
    uint64_t element;
    double want, have;
};

/* How many elements differ from what is promised of the rank; UINT64_MAX: out of memory. */
uint64_t peal_promise_check(const struct peal_plan *plan, uint32_t rank,
                            const struct peal_promise_data *data, struct peal_promise_wrong *first);
/* "y[6] is 3 and should be 5, to ensure ..." */
void peal_promise_say(const struct peal_plan *plan, const struct peal_promise_wrong *wrong,
                      struct peal_text *out);

#endif
