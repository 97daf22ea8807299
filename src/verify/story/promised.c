/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer says of the kernel's own contract: what the caller promises, and which output
 * elements no clause is about. */
#include "verify/story/story.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int by_element(const void *a, const void *b)
{
    const struct peal_promise *x = a, *y = b;
    if (x->buf != y->buf)
        return x->buf < y->buf ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* The elements of a rank's outputs of which nothing is promised: the first, and how many. */
struct unpromised {
    uint32_t rank, buf;
    uint64_t first, count;
};

static void note_gap(struct unpromised *gap, uint32_t rank, uint32_t buf, uint64_t lo, uint64_t hi)
{
    if (lo >= hi)
        return;
    if (gap->count == 0)
        *gap = (struct unpromised){rank, buf, lo, 0};
    gap->count += hi - lo;
}

static void find_gaps(const struct peal_plan *plan, uint32_t rank,
                      const struct peal_promise *sorted, size_t n, struct unpromised *gap)
{
    size_t i = 0;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
        uint64_t next = 0, len = peal_plan_len(plan, rank, b);
        bool output = buf->kind == PEAL_BUF_PARAM && (buf->dir & PEAL_DIR_OUT);
        for (; i < n && sorted[i].buf <= b; i++) {
            if (output)
                note_gap(gap, rank, b, next, sorted[i].first);
            if (sorted[i].first + sorted[i].count > next)
                next = sorted[i].first + sorted[i].count;
        }
        if (output && b != plan->contract_out)
            note_gap(gap, rank, b, next, len);
        else if (output && plan->contract == PEAL_CONTRACT_NONE)
            note_gap(gap, rank, b, next, len);
    }
}

/* "element 0 of 'y' on rank 1, and 5 more"; NULL: there is none. */
static const char *name_gaps(const struct peal_plan *plan, struct answer *a)
{
    struct unpromised gap = {0};
    struct peal_promise *sorted = malloc((plan->promises.count + 1) * sizeof *sorted);
    if (!sorted) {
        a->failed = true;
        return NULL;
    }
    for (uint32_t r = 0; r < plan->nranks; r++) {
        uint64_t first = peal_plan_first_promise(plan, r);
        size_t n = (size_t)(peal_plan_first_promise(plan, r + 1) - first);
        if (n) {
            memcpy(sorted, peal_plan_promises(plan) + first, n * sizeof *sorted);
            qsort(sorted, n, sizeof *sorted, by_element);
        }
        find_gaps(plan, r, sorted, n, &gap);
    }
    free(sorted);
    if (!gap.count)
        return NULL;
    const char *name = peal_plan_string(plan, peal_plan_bufs(plan)[gap.buf].name);
    if (gap.count == 1)
        return peal_answer_text(a, "element %" PRIu64 " of '%s' on rank %u", gap.first, name,
                                gap.rank);
    return peal_answer_text(a, "element %" PRIu64 " of '%s' on rank %u, and %" PRIu64 " more",
                            gap.first, name, gap.rank, gap.count - 1);
}

void peal_answer_promised(const struct peal_plan *plan, struct answer *a)
{
    struct peal_text text = {0};
    a->v.promises = plan->promises.count;
    for (uint64_t i = 0; i < plan->clauses.count; i++) {
        const struct peal_clause *clause = &peal_plan_clauses(plan)[i];
        if (clause->requires)
            peal_text_printf(&text, "%s%s", text.len ? "; " : "",
                             peal_plan_string(plan, clause->text));
    }
    if (text.len)
        a->v.required = peal_answer_text(a, "%s", peal_text_get(&text));
    peal_text_release(&text);
    if (plan->promises.count)
        a->v.unconstrained = name_gaps(plan, a);
}
