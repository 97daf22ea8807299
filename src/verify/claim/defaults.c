/* SPDX-License-Identifier: Apache-2.0 */
/* What is claimed where the caller names neither numbers of ranks nor counts.
 *
 * Counts are chosen per number of ranks P: 0, 1, P - 1, P, P + 1, 3P + 2 and 256P. Parts are then
 * empty, of one element, even and uneven; the last is large and divisible by P and by 256, for
 * kernels that demand such counts. Whether fewer are claimed is decided by counted work alone,
 * never by a clock, so that a verdict does not depend on the machine.
 */
#include "verify/claim/task.h"

#include "lang/lang.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_COUNTS = 7,
    LARGE = 256,
    /* Beyond this many ops of a plan, only one count is claimed. */
    MAX_OPS = 1 << 17
};

static const int64_t default_ranks[] = {2, 3, 4, 5, PEAL_CLAIM_MAX_RANKS};
static const int64_t quick_ranks[] = {2, 3, 4};

static bool is_given(const struct peal_plan_request *request, const char *name)
{
    for (size_t i = 0; i < request->ngiven; i++) {
        if (strcmp(request->given[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Does any value of the plan come from the count? */
static bool depends_on_count(const struct peal_plan_request *request)
{
    for (const struct peal_symbol *s = request->kernel->symbols; s; s = s->next) {
        bool counted = s->kind == PEAL_SYMBOL_DIM || s->kind == PEAL_SYMBOL_INTS;
        if (counted && !is_given(request, s->name))
            return true;
    }
    return false;
}

static int64_t uneven_count(int64_t nranks)
{
    return 3 * nranks + 2;
}

/* Has the plan of the uneven count more ops than can be proved for every default count? */
static bool is_large(const struct peal_claim *claim, uint32_t nranks)
{
    struct peal_claim_task task = {.nranks = nranks};
    int64_t count = uneven_count(nranks);
    peal_diags_init(&task.diags);
    struct peal_plan *plan =
        peal_task_make_plan(claim, &task, count, claim->request.bind.root, count);
    bool large = plan && plan->ops.count > MAX_OPS;
    free(plan);
    peal_diags_release(&task.diags);
    return large;
}

/* Ascending, each count once. Returns how many. */
static size_t list_counts(const struct peal_claim *claim, uint32_t nranks, int64_t *out,
                          bool *fewer)
{
    const int64_t p = nranks;
    const int64_t all[MAX_COUNTS] = {0, 1, p - 1, p, p + 1, uneven_count(p), LARGE * p};
    size_t n = 0;
    out[0] = 1;
    if (!depends_on_count(&claim->request))
        return 1;
    *fewer = is_large(claim, nranks);
    out[0] = uneven_count(p);
    if (claim->quick || *fewer)
        return 1;
    for (size_t i = 0; i < MAX_COUNTS; i++) {
        if (n == 0 || all[i] > out[n - 1])
            out[n++] = all[i];
    }
    return n;
}

enum peal_status peal_claim_choose(struct peal_claim *claim)
{
    if (!claim->nranks) {
        claim->ranks = claim->quick ? quick_ranks : default_ranks;
        claim->nranks = sizeof default_ranks / sizeof *default_ranks;
        if (claim->quick)
            claim->nranks = sizeof quick_ranks / sizeof *quick_ranks;
    }
    size_t bytes = claim->nranks * (sizeof *claim->chosen + MAX_COUNTS * sizeof(int64_t));
    claim->chosen = calloc(1, bytes + 1);
    if (!claim->chosen)
        return PEAL_NO_MEMORY;
    claim->default_counts = !claim->ncounts;
    int64_t *free_list = (int64_t *)(claim->chosen + claim->nranks);
    for (size_t i = 0; i < claim->nranks; i++, free_list += MAX_COUNTS) {
        struct peal_claim_counts *chosen = &claim->chosen[i];
        *chosen = (struct peal_claim_counts){claim->counts, claim->ncounts, false};
        if (!claim->default_counts)
            continue;
        chosen->at = free_list;
        chosen->len = list_counts(claim, (uint32_t)claim->ranks[i], free_list, &chosen->fewer);
    }
    return PEAL_OK;
}

const struct peal_claim_counts *peal_claim_counts(const struct peal_claim *claim, uint32_t nranks)
{
    for (size_t i = 0; i < claim->nranks; i++) {
        if (claim->ranks[i] == (int64_t)nranks)
            return &claim->chosen[i];
    }
    assert(!"counts are chosen for every number of ranks");
    return NULL;
}

/* Which counts sequences keep, if not all: uneven and large ones first. */
static size_t place_of(uint32_t nranks, int64_t count)
{
    const int64_t p = nranks;
    const int64_t order[MAX_COUNTS] = {uneven_count(p), LARGE * p, 1, p + 1, 0, p - 1, p};
    size_t place = 0;
    while (place < MAX_COUNTS && order[place] != count)
        place++;
    return place;
}

int64_t peal_claim_next_to_drop(const struct peal_claim_counts *counts, uint32_t nranks,
                                const bool *dropped)
{
    int64_t last = -1;
    for (size_t i = 0; i < counts->len; i++) {
        bool later =
            last < 0 || place_of(nranks, counts->at[i]) > place_of(nranks, counts->at[last]);
        if (!dropped[i] && later)
            last = (int64_t)i;
    }
    return last;
}
