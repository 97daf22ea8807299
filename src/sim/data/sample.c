/* SPDX-License-Identifier: Apache-2.0 */
/* The closure of sample.h: starts of carried ranges per buffer, propagated along the ops until
 * nothing is new. Messages are joined in one pseudo buffer, the wire, at their relative position.
 */
#include "sim/data/sample.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STARTS = 1 << 20, MAX_EDGES = 1 << 22 };

/* Elements [at_a, at_a + len) of buffer a correspond to [at_b, at_b + len) of b. */
struct edge {
    uint64_t at_a, at_b, len;
    uint32_t a, b;
};

struct start {
    uint64_t at;
    uint32_t buf;
};

struct set {
    PEAL_VEC(uint64_t) values;
    struct peal_index index; /* of values */
};

struct peal_sample {
    uint32_t nbufs;    /* the wire is the last */
    bool all;          /* too many: carry everything */
    uint64_t **starts; /* per buffer, sorted */
    size_t *counts;
};

struct builder {
    const struct peal_plan *plan;
    struct set *sets; /* per buffer */
    struct set known; /* hashes of edges */
    PEAL_VEC(struct edge) edges;
    PEAL_VEC(struct start) work;
    size_t total;
    bool failed;
};

static void release(struct set *set)
{
    peal_vec_release(&set->values);
    peal_index_release(&set->index);
}

static uint64_t hash_value(const void *rows, uint32_t row)
{
    return peal_hash_u64(((const uint64_t *)rows)[row], 1);
}

/* True: the value is new. False: it was there, or out of memory. */
static bool set_add(struct set *set, uint64_t value)
{
    struct peal_index *index = &set->index;
    if (!peal_index_reserve(index, hash_value, set->values.at))
        return false;
    size_t at = peal_index_begin(index, hash_value(&value, 0));
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        if (set->values.at[peal_index_row(index, at)] == value)
            return false;
    }
    if (!peal_vec_push(&set->values, value))
        return false;
    peal_index_put(index, at, (uint32_t)(set->values.len - 1));
    return true;
}

static void add_start(struct builder *b, uint32_t buf, uint64_t at)
{
    if (b->total >= MAX_STARTS) {
        b->failed = true;
        return;
    }
    if (!set_add(&b->sets[buf], at))
        return;
    b->total++;
    struct start start = {at, buf};
    if (!peal_vec_push(&b->work, start))
        b->failed = true;
}

static void add_edge(struct builder *b, struct edge edge)
{
    uint64_t hash = peal_hash_bytes(&edge.at_a, sizeof edge.at_a, edge.a);
    hash = peal_hash_u64(edge.at_b, peal_hash_u64(edge.len, hash) ^ edge.b);
    if (b->edges.len >= MAX_EDGES) {
        b->failed = true;
        return;
    }
    if (!set_add(&b->known, hash >> 1))
        return;
    if (!peal_vec_push(&b->edges, edge))
        b->failed = true;
    add_start(b, edge.a, edge.at_a);
    add_start(b, edge.b, edge.at_b);
}

/* Where a ref starts: buffer (or wire) and element. False for constants. */
static bool place(const struct peal_plan *plan, const struct peal_ref *ref, uint64_t launch,
                  uint32_t *buf, uint64_t *at)
{
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    if (ref->buf == PEAL_BUF_CONST)
        return false;
    if (ref->buf == PEAL_BUF_SLOT)
        *buf = (uint32_t)plan->bufs.count;
    else
        *buf = ref->buf;
    *at = peal_ref_offset(plan, ref, launch) / size;
    if (ref->buf != PEAL_BUF_SLOT)
        *at += (uint64_t)ref->row * peal_plan_bufs(plan)[ref->buf].cols;
    return true;
}

static void read_op(struct builder *b, const struct peal_op *op, uint64_t launch)
{
    const struct peal_plan *plan = b->plan;
    uint32_t wire = (uint32_t)plan->bufs.count;
    bool is_message = peal_op_has_message(op) && !peal_op_holds(op);
    if ((!peal_op_is_elementwise(op) && !is_message) || op->mem.rows != 1 || op->mem.count == 0)
        return;
    uint32_t nrefs = peal_op_nrefs(op);
    struct edge edge = {.len = op->mem.count, .a = wire, .at_a = 0};
    uint32_t first = 0;
    if (!is_message) {
        while (first < nrefs && !place(plan, peal_plan_refs(plan) + op->mem.ref + first, launch,
                                       &edge.a, &edge.at_a))
            first++;
        first++;
    }
    for (uint32_t i = first; i < nrefs; i++) {
        if (place(plan, peal_plan_refs(plan) + op->mem.ref + i, launch, &edge.b, &edge.at_b))
            add_edge(b, edge);
    }
}

static void propagate(struct builder *b)
{
    while (b->work.len && !b->failed) {
        struct start s = b->work.at[--b->work.len];
        for (size_t i = 0; i < b->edges.len; i++) {
            const struct edge *e = &b->edges.at[i];
            if (e->a == s.buf && s.at - e->at_a < e->len)
                add_start(b, e->b, e->at_b + (s.at - e->at_a));
            if (e->b == s.buf && s.at - e->at_b < e->len)
                add_start(b, e->a, e->at_a + (s.at - e->at_b));
        }
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    if (x < y)
        return -1;
    return x > y;
}

static bool take_sets(struct peal_sample *sample, struct builder *b)
{
    for (uint32_t buf = 0; buf < sample->nbufs; buf++) {
        const struct set *set = &b->sets[buf];
        size_t count = set->values.len;
        uint64_t *list = malloc((count + 1) * sizeof *list);
        if (!list)
            return false;
        sample->starts[buf] = list;
        sample->counts[buf] = count;
        if (count > 0)
            memcpy(list, set->values.at, count * sizeof *list);
        qsort(list, count, sizeof *list, compare);
    }
    return true;
}

struct peal_sample *peal_sample_new(const struct peal_plan *plan)
{
    struct peal_sample *sample = calloc(1, sizeof *sample);
    struct builder b = {.plan = plan};
    if (!sample)
        return NULL;
    sample->nbufs = (uint32_t)plan->bufs.count + 1;
    sample->starts = calloc(sample->nbufs, sizeof *sample->starts);
    sample->counts = calloc(sample->nbufs, sizeof *sample->counts);
    b.sets = calloc(sample->nbufs, sizeof *b.sets);
    bool ok = sample->starts && sample->counts && b.sets;
    if (ok) {
        for (uint64_t launch = 0; launch < plan->period; launch++)
            for (uint64_t i = 0; i < plan->ops.count; i++) {
                if (b.failed)
                    break;
                read_op(&b, peal_plan_ops(plan) + i, launch);
            }
        propagate(&b);
        sample->all = b.failed;
        ok = b.failed || take_sets(sample, &b);
    }
    uint32_t nsets = 0;
    if (b.sets)
        nsets = sample->nbufs;
    for (uint32_t i = 0; i < nsets; i++)
        release(&b.sets[i]);
    free(b.sets);
    release(&b.known);
    peal_vec_release(&b.edges);
    peal_vec_release(&b.work);
    if (ok)
        return sample;
    peal_sample_free(sample);
    return NULL;
}

void peal_sample_free(struct peal_sample *sample)
{
    if (!sample)
        return;
    uint32_t nstarts = 0;
    if (sample->starts)
        nstarts = sample->nbufs;
    for (uint32_t i = 0; i < nstarts; i++)
        free(sample->starts[i]);
    free(sample->starts);
    free(sample->counts);
    free(sample);
}

/* The number of starts at or before `at`. */
static size_t starts_before(const struct peal_sample *sample, uint32_t buf, uint64_t at)
{
    size_t lo = 0, hi = sample->counts[buf];
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (sample->starts[buf][mid] <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool peal_sample_has(const struct peal_sample *sample, uint32_t buf, uint64_t element)
{
    if (sample->all)
        return true;
    size_t n = starts_before(sample, buf, element);
    return n > 0 && element - sample->starts[buf][n - 1] < PEAL_SAMPLE_ELEMENTS;
}

bool peal_sample_next(const struct peal_sample *sample, const struct peal_plan *plan,
                      const struct peal_op *op, uint64_t launch, uint64_t *from, uint64_t *count)
{
    uint64_t at = 0, length = op->mem.count, end;
    uint32_t buf = 0, nrefs = peal_op_nrefs(op), i = 0;
    if (*from >= length)
        return false;
    while (i < nrefs && !place(plan, peal_plan_refs(plan) + op->mem.ref + i, launch, &buf, &at))
        i++;
    if (sample->all || i == nrefs) {
        *count = length - *from;
        return true;
    }
    size_t n = starts_before(sample, buf, at + *from);
    if (n > 0 && at + *from - sample->starts[buf][n - 1] < PEAL_SAMPLE_ELEMENTS) {
        end = sample->starts[buf][n - 1] + PEAL_SAMPLE_ELEMENTS;
    } else {
        if (n == sample->counts[buf] || sample->starts[buf][n] - at >= length)
            return false;
        *from = sample->starts[buf][n] - at;
        end = sample->starts[buf][n] + PEAL_SAMPLE_ELEMENTS;
    }
    if (end - at < length)
        *count = end - at - *from;
    else
        *count = length - *from;
    return true;
}
