/* SPDX-License-Identifier: Apache-2.0 */
/* Every library kernel under the order of a network, with each rank on its own node: proved as it
 * is, or, if peal_library_orders_pairs says that it needs flushes, refuted without and proved with
 * them.
 *
 *   library MAX_RANKS      prints TAP, a line per kernel, and the list of those that need flushes
 */
#include "lang/lang.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 24, MAX_RANKS = 15 }; /* COUNT: a multiple of 2, 3 and 4, for all_to_all_window */

/* The verdict over all numbers of ranks that have a plan. */
static enum peal_outcome outcome_of(const struct peal_kernel *kernel, const int64_t *ranks,
                                    size_t nranks, bool flush)
{
    static const int64_t counts[] = {COUNT};
    struct peal_claim_sum sum;
    struct peal_claim claim = {
        .request = {.kernel = kernel, .bind = {.dtype = PEAL_F32, .reduce = PEAL_SUM}},
        .ranks = ranks,
        .nranks = nranks,
        .counts = counts,
        .ncounts = 1,
        .flush = flush,
        .verify = {.pairwise = true}};
    enum peal_outcome outcome = PEAL_UNDECIDED;
    if (peal_claim_prove(&claim, &sum) == PEAL_OK)
        outcome = peal_claim_verdict(&sum);
    peal_claim_release(&claim);
    return outcome;
}

/* Does peal_library_orders_pairs say the truth about the kernel? */
static bool check(const struct peal_library *library, const char *name, int64_t max_ranks)
{
    struct peal_program *program = NULL;
    struct peal_diags diags;
    int64_t ranks[MAX_RANKS];
    size_t nranks = 0;
    for (int64_t r = 2; r <= max_ranks; r++)
        ranks[nranks++] = r;
    peal_diags_init(&diags);
    bool good = peal_program_builtin(name, &diags, &program) == PEAL_OK;
    const struct peal_kernel *kernel = good ? peal_program_kernel(program, NULL, &diags) : NULL;
    bool right_alone = peal_library_orders_pairs(library, name);
    enum peal_outcome alone = PEAL_UNDECIDED, flushed = PEAL_UNDECIDED;
    if (kernel) {
        alone = outcome_of(kernel, ranks, nranks, false);
        flushed = outcome_of(kernel, ranks, nranks, true);
    }
    good = kernel && alone == (right_alone ? PEAL_PROVED : PEAL_REFUTED) && flushed == PEAL_PROVED;
    if (!good)
        printf("# %s: %s as it is, %s with flushes\n", name, peal_outcome_name(alone),
               peal_outcome_name(flushed));
    if (!right_alone)
        printf("# needs flushes: %s\n", name);
    peal_program_close(program);
    peal_diags_release(&diags);
    return good;
}

int main(int argc, char **argv)
{
    struct peal_library *library;
    struct peal_diags diags;
    int64_t max_ranks = argc > 1 ? atoll(argv[1]) : 4;
    int bad = 0, number = 0;
    if (max_ranks > MAX_RANKS)
        return 2;
    peal_diags_init(&diags);
    if (peal_library_open(&diags, &library) != PEAL_OK)
        return 2;
    const struct peal_module *module = peal_library_module(library);
    for (const struct peal_kernel *k = module->kernels; k; k = k->next) {
        bool good = check(library, k->name, max_ranks);
        bad += !good;
        printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, k->name);
    }
    printf("1..%d\n", number);
    bad += peal_library_orders_pairs(library, "no_kernel_of_the_library");
    peal_library_close(library);
    peal_diags_release(&diags);
    return bad ? 1 : 0;
}
