/* SPDX-License-Identifier: Apache-2.0 */
/* The closure of sample.h: starts of carried stretches per buffer, propagated along the ops until
 * nothing is new. Messages meet in one pseudo buffer, the wire, at their relative position. */
#include "sim/data/sample.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STARTS = 1 << 20, MOST_EDGES = 1 << 22 };

/* Elements [at_a, at_a + len) of buffer a and [at_b, at_b + len) of b go together. */
struct edge {
    uint64_t at_a, at_b, len;
    uint32_t a, b;
};

struct start {
    uint64_t at;
    uint32_t buf;
};

struct set {
    uint64_t *slots; /* value + 1, 0 = empty */
    size_t count, cap;
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

static bool set_add(struct set *set, uint64_t value)
{
    if (2 * set->count >= set->cap) {
        struct set bigger = {.cap = set->cap ? set->cap * 2 : 64};
        bigger.slots = calloc(bigger.cap, sizeof *bigger.slots);
        if (!bigger.slots)
            return false;
        for (size_t i = 0; i < set->cap; i++) {
            if (set->slots[i])
                set_add(&bigger, set->slots[i] - 1);
        }
        free(set->slots);
        *set = bigger;
    }
    size_t at = peal_hash_u64(value, 1) & (set->cap - 1);
    while (set->slots[at]) {
        if (set->slots[at] == value + 1)
            return false;
        at = (at + 1) & (set->cap - 1);
    }
    set->slots[at] = value + 1;
    set->count++;
    return true;
}

static void add_start(struct builder *b, uint32_t buf, uint64_t at)
{
    if (b->total >= MOST_STARTS) {
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
    if (b->edges.len >= MOST_EDGES) {
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
    *buf = ref->buf == PEAL_BUF_SLOT ? (uint32_t)plan->bufs.count : ref->buf;
    *at = peal_ref_offset(plan, ref, launch) / size;
    if (ref->buf != PEAL_BUF_SLOT)
        *at += (uint64_t)ref->row * peal_plan_bufs(plan)[ref->buf].cols;
    return true;
}

static void read_op(struct builder *b, const struct peal_op *op, uint64_t launch)
{
    const struct peal_plan *plan = b->plan;
    uint32_t wire = (uint32_t)plan->bufs.count;
    if (peal_op_is_sync(op) || op->mem.rows != 1 || op->mem.count == 0 ||
        op->kind == PEAL_OP_RECV_SLOT || op->kind == PEAL_OP_FREE)
        return;
    uint32_t nrefs = peal_op_nrefs(op);
    struct edge edge = {.len = op->mem.count, .a = wire, .at_a = 0};
    bool is_message = op->kind == PEAL_OP_SEND || op->kind == PEAL_OP_RECV;
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
    return x < y ? -1 : x > y;
}

static bool take_sets(struct peal_sample *sample, struct builder *b)
{
    for (uint32_t buf = 0; buf < sample->nbufs; buf++) {
        const struct set *set = &b->sets[buf];
        uint64_t *list = malloc((set->count + 1) * sizeof *list);
        if (!list)
            return false;
        sample->starts[buf] = list;
        for (size_t i = 0; i < set->cap; i++) {
            if (set->slots[i])
                list[sample->counts[buf]++] = set->slots[i] - 1;
        }
        qsort(list, sample->counts[buf], sizeof *list, compare);
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
            for (uint64_t i = 0; i < plan->ops.count && !b.failed; i++)
                read_op(&b, peal_plan_ops(plan) + i, launch);
        propagate(&b);
        sample->all = b.failed;
        ok = b.failed || take_sets(sample, &b);
    }
    for (uint32_t i = 0; b.sets && i < sample->nbufs; i++)
        free(b.sets[i].slots);
    free(b.sets);
    free(b.known.slots);
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
    for (uint32_t i = 0; sample->starts && i < sample->nbufs; i++)
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
    uint64_t at = 0, most = op->mem.count, end;
    uint32_t buf = 0, nrefs = peal_op_nrefs(op), i = 0;
    if (*from >= most)
        return false;
    while (i < nrefs && !place(plan, peal_plan_refs(plan) + op->mem.ref + i, launch, &buf, &at))
        i++;
    if (sample->all || i == nrefs) {
        *count = most - *from;
        return true;
    }
    size_t n = starts_before(sample, buf, at + *from);
    if (n > 0 && at + *from - sample->starts[buf][n - 1] < PEAL_SAMPLE_ELEMENTS) {
        end = sample->starts[buf][n - 1] + PEAL_SAMPLE_ELEMENTS;
    } else {
        if (n == sample->counts[buf] || sample->starts[buf][n] - at >= most)
            return false;
        *from = sample->starts[buf][n] - at;
        end = sample->starts[buf][n] + PEAL_SAMPLE_ELEMENTS;
    }
    *count = end - at < most ? end - at - *from : most - *from;
    return true;
}
