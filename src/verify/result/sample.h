/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are right for all sampled inputs, though their form is not the contract's. */
#ifndef PEAL_VERIFY_SAMPLE_H
#define PEAL_VERIFY_SAMPLE_H

#include "verify/result/value.h"

/* What the contract expects of one element. */
struct sample_question {
    enum peal_dtype dtype;
    uint32_t nranks;
    uint32_t launch, x; /* x: the memory of the inputs */
    uint64_t element;   /* of x */
    bool reduces;       /* over the first `ranks` ranks; otherwise x of rank `from` */
    bool averages;
    uint32_t ranks, from;
    enum peal_fn fn;
    bool compares; /* with node `want`, of the same index, instead of all this but the type */
    uint32_t want;
};

enum peal_sample_result { PEAL_SAMPLE_DIFFERS, PEAL_SAMPLE_AGREES, PEAL_SAMPLE_UNKNOWN };

/* Integers wrap, so sums, differences and multiples by numbers are exact: is the node the sum (or
 * copy) that is expected, after all that cancels is left out? This is a proof. */
bool peal_sample_is_exact(const struct values *v, uint32_t node, uint64_t index,
                          const struct sample_question *q);
/* The identity that makes the node at that index what is expected: "a + 0 = a, ..."; NULL: it is
 * something else. */
const char *peal_sample_identity(const struct values *v, uint32_t node, uint64_t index,
                                 const struct sample_question *q);

/* The same question about any two nodes (q->want); unknown: some function is not understood. */
enum peal_sample_result peal_sample_compare(const struct values *v, uint32_t node, uint64_t index,
                                            const struct sample_question *q);

#endif
