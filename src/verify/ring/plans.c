/* SPDX-License-Identifier: Apache-2.0 */
/* The model against plans: for a few numbers of ranks and counts, every rank's plan must have the
 * notifies, waits, messages and accesses of the model, in that order.
 *
 * Both become a list of marks: one per sync op, in order, and between two of them the accesses,
 * sorted. Tiles are left out, because fusion decides which of them exist. A mistake in reading
 * texts, or in instantiate, shows here. Plans are examined with and without fusion; for fused ones,
 * only accesses to windows are compared.
 */
#include "plan/plan.h"
#include "verify/ring/model.h"

#include <stdlib.h>
#include <string.h>

enum { FAMILIES = 3 };

enum mark_kind { MARK_NOTIFY, MARK_WAIT, MARK_SEND, MARK_RECV, MARK_READ, MARK_WRITE };

/* sync: which sync of the model, and the count; access: buffer, owner, elements. */
struct mark {
    enum mark_kind kind;
    uint32_t buf_or_sync, rank;
    int64_t first, count;
};

struct marks {
    struct mark *at;
    size_t len, cap, sorted; /* accesses from here on are still to be sorted */
    bool failed;
};

struct view {
    const struct ring_model *m;
    const struct peal_plan *plan;
    int64_t family, ranks, count;
    uint32_t rank, lane;
    bool windows_only;
};

/* --- lists of marks -------------------------------------------------------------------------- */

static int compare_marks(const void *left, const void *right)
{
    const struct mark *a = left, *b = right;
    int64_t x[] = {a->kind, a->buf_or_sync, a->rank, a->first, a->count};
    int64_t y[] = {b->kind, b->buf_or_sync, b->rank, b->first, b->count};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    }
    return 0;
}

static void add_mark(struct marks *to, struct mark mark)
{
    if (to->failed)
        return;
    if (to->len == to->cap) {
        size_t cap = to->cap ? 2 * to->cap : 64;
        struct mark *more = realloc(to->at, cap * sizeof *more);
        if (!more) {
            to->failed = true;
            return;
        }
        to->at = more;
        to->cap = cap;
    }
    to->at[to->len++] = mark;
}

/* Sorts the accesses since the last sync, and keeps each once. */
static void settle(struct marks *to)
{
    if (to->failed || to->len == to->sorted)
        return;
    qsort(to->at + to->sorted, to->len - to->sorted, sizeof *to->at, compare_marks);
    size_t end = to->sorted + 1;
    for (size_t i = end; i < to->len; i++) {
        if (compare_marks(&to->at[i], &to->at[end - 1]) != 0)
            to->at[end++] = to->at[i];
    }
    to->len = to->sorted = end;
}

static void add_sync(struct marks *to, struct mark mark)
{
    settle(to);
    add_mark(to, mark);
    to->sorted = to->len;
}

static bool same_marks(struct marks *a, struct marks *b)
{
    settle(a);
    settle(b);
    if (a->failed || b->failed || a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        if (compare_marks(&a->at[i], &b->at[i]) != 0)
            return false;
    }
    return true;
}

/* --- the model ------------------------------------------------------------------------------- */

static int64_t modulo(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest < 0 ? rest + b : rest;
}

static uint32_t find_buf(const struct peal_plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->bufs.count; i++) {
        const struct peal_buf *b = &peal_plan_bufs(plan)[i];
        if (b->kind != PEAL_BUF_TILE && strcmp(peal_plan_string(plan, b->name), name) == 0)
            return i;
    }
    return PEAL_NONE;
}

static void mark_access(const struct view *v, struct marks *to, const struct ring_access *a,
                        int64_t turn, bool writes)
{
    const struct ring_buffer *b = &v->m->buffers[a->buffer];
    if (b->storage == RING_MESSAGE || b->tile || (v->windows_only && !b->window))
        return;
    int64_t begin = v->count * b->sub / b->subs;
    int64_t len = v->count * (b->sub + 1) / b->subs - begin;
    int64_t c = modulo(v->rank + ring_at(a->part, turn, 0, v->family), v->ranks);
    int64_t first = a->whole ? 0 : len * c / v->ranks;
    int64_t end = a->whole ? len : len * (c + 1) / v->ranks;
    if (first == end)
        return;
    if (b->slots > 1) {
        int64_t unit = b->storage == RING_PARTS ? len : (len + v->ranks - 1) / v->ranks;
        begin = unit * modulo(ring_at(a->slot, turn, 0, v->family), b->slots);
    }
    struct mark mark = {.kind = writes ? MARK_WRITE : MARK_READ,
                        .buf_or_sync = find_buf(v->plan, b->symbol->name),
                        .rank = (uint32_t)modulo((int64_t)v->rank + a->shift + b->pushed, v->ranks),
                        .first = begin + first,
                        .count = end - first};
    if (b->storage == RING_SLOT)
        mark.first = begin;
    add_mark(to, mark);
}

/* y = x in place, or y = y: the model has a copy of a place to itself, and a plan has none. */
static bool is_left_out(const struct view *v, const struct ring_op *op)
{
    const struct ring_access *a = &op->source[0], *b = &op->dest;
    bool divides = op->final && v->plan->reduce == PEAL_AVG;
    return op->nsources == 1 && !divides && a->buffer == b->buffer && a->shift == b->shift &&
           a->whole == b->whole && a->named == b->named &&
           memcmp(&a->part, &b->part, sizeof a->part) == 0 &&
           memcmp(&a->slot, &b->slot, sizeof a->slot) == 0;
}

static void mark_op(const struct view *v, struct marks *to, uint32_t op, int64_t turn)
{
    const struct ring_op *at = &v->m->ops[op];
    if (at->kind == RING_POST || at->kind == RING_TAKE) {
        const struct ring_sync *s = &v->m->syncs[at->sync];
        bool post = at->kind == RING_POST;
        struct mark mark = {.kind = post ? MARK_NOTIFY : MARK_WAIT, .buf_or_sync = at->sync};
        if (s->channel)
            mark.kind = post ? MARK_SEND : MARK_RECV;
        else if (post)
            mark.count =
                ring_at(peal_ring_before(v->m, op, RING_POST, at->sync), turn, 0, v->family) + 1;
        else
            mark.count = ring_at(at->threshold, turn, 0, v->family);
        add_sync(to, mark);
        return;
    }
    if (at->kind != RING_MOVE || is_left_out(v, at))
        return;
    for (uint32_t i = 0; i < at->nsources; i++)
        mark_access(v, to, &at->source[i], turn, false);
    mark_access(v, to, &at->dest, turn, true);
}

static void mark_model(const struct view *v, struct marks *to)
{
    for (uint32_t i = 0; i < v->m->nsegments; i++) {
        const struct ring_segment *g = &v->m->segments[i];
        if (g->lane != v->lane)
            continue;
        int64_t end = ring_at(g->end, 0, 0, v->family);
        for (int64_t turn = ring_at(g->first, 0, 0, v->family); turn < end; turn++) {
            for (uint32_t op = g->op; op < g->op + g->ops; op++)
                mark_op(v, to, op, turn);
        }
    }
}

/* --- the plan -------------------------------------------------------------------------------- */

/* The model's number of a cell, seen from its owner or its writer. */
static uint32_t sync_of_cell(const struct view *v, const struct peal_op *op)
{
    const struct peal_signal *signal = &peal_plan_signals(v->plan)[peal_op_signal(op)];
    const char *name = peal_plan_string(v->plan, signal->name);
    for (uint32_t i = 0; i < v->m->nsyncs; i++) {
        const struct ring_sync *s = &v->m->syncs[i];
        int64_t owner = peal_op_is_notify(op) ? (int64_t)v->rank + s->shift : v->rank;
        if (!s->channel && strcmp(s->symbol->name, name) == 0 &&
            op->sync.cell == signal->first_cell + s->index &&
            modulo(owner, v->ranks) == (int64_t)op->sync.rank)
            return i;
    }
    return PEAL_NONE;
}

static uint32_t sync_of_channel(const struct view *v, const struct peal_op *op)
{
    const struct peal_channel *c = &peal_plan_channels(v->plan)[op->mem.channel];
    const char *name = peal_plan_string(v->plan, c->name);
    bool sends = peal_op_sends(op);
    if (c->depth != v->m->depth || (sends ? c->sender : c->receiver) != v->rank)
        return PEAL_NONE;
    for (uint32_t i = 0; i < v->m->nsyncs; i++) {
        const struct ring_sync *s = &v->m->syncs[i];
        const char *known = s->symbol ? s->symbol->name : "";
        if (s->channel && s->lane == v->lane && strcmp(known, name) == 0 &&
            modulo((int64_t)c->sender + s->shift, v->ranks) == (int64_t)c->receiver)
            return i;
    }
    return PEAL_NONE;
}

/* Does the place move by a whole vector from launch to launch, if the model says so, and otherwise
 * stay? */
static bool has_phases(const struct view *v, const struct peal_ref *ref)
{
    const char *name = peal_plan_string(v->plan, peal_plan_bufs(v->plan)[ref->buf].name);
    uint32_t phases = 1;
    for (uint32_t i = 0; i < v->m->nbuffers; i++) {
        const struct ring_buffer *b = &v->m->buffers[i];
        if (b->symbol && !b->tile && strcmp(b->symbol->name, name) == 0)
            phases = b->phases;
    }
    uint64_t vector = (uint64_t)v->count * peal_dtype_size((enum peal_dtype)ref->dtype);
    for (uint32_t l = 0; l < v->plan->period; l++) {
        if (peal_ref_offset(v->plan, ref, l) != ref->offset + l % phases * vector)
            return false;
    }
    return true;
}

static void mark_ref(const struct view *v, struct marks *to, const struct peal_op *op,
                     const struct peal_ref *ref, bool writes)
{
    if (ref->buf == PEAL_BUF_CONST || ref->buf == PEAL_BUF_SLOT || op->mem.count == 0)
        return;
    const struct peal_buf *b = &peal_plan_bufs(v->plan)[ref->buf];
    if (b->kind == PEAL_BUF_TILE || (v->windows_only && b->kind != PEAL_BUF_WINDOW))
        return;
    if (ref->row || op->mem.rows > 1 || !has_phases(v, ref))
        to->failed = true;
    add_mark(to, (struct mark){.kind = writes ? MARK_WRITE : MARK_READ,
                               .buf_or_sync = ref->buf,
                               .rank = ref->rank,
                               .first = (int64_t)(ref->offset / peal_dtype_size(ref->dtype)),
                               .count = (int64_t)op->mem.count});
}

static void mark_refs(const struct view *v, struct marks *to, const struct peal_op *op)
{
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++)
        mark_ref(v, to, op, peal_plan_refs(v->plan) + op->mem.ref + i, peal_op_writes(op, i));
}

static void mark_plan_op(const struct view *v, struct marks *to, const struct peal_op *op,
                         uint32_t *slots)
{
    struct mark mark = {0};
    if (peal_op_is_notify(op) || peal_op_is_wait(op)) {
        mark.kind = peal_op_is_notify(op) ? MARK_NOTIFY : MARK_WAIT;
        mark.buf_or_sync = sync_of_cell(v, op);
        mark.count = peal_op_is_notify(op) ? (int64_t)op->sync.after : op->sync.value;
        if (op->flags || op->sync.phases != PEAL_NONE || *slots)
            to->failed = true;
        add_sync(to, mark);
    } else if (peal_op_has_message(op)) {
        mark.kind = peal_op_sends(op) ? MARK_SEND : MARK_RECV;
        mark.buf_or_sync = sync_of_channel(v, op);
        if (*slots)
            to->failed = true;
        *slots += peal_op_holds(op);
        if (peal_op_sends(op))
            mark_refs(v, to, op);
        add_sync(to, mark);
        if (peal_op_is_recv(op))
            mark_refs(v, to, op);
    } else if (peal_op_is_free(op)) {
        *slots -= *slots ? 1 : 0;
    } else if (peal_op_is_copy(op) || peal_op_is_compute(op)) {
        mark_refs(v, to, op);
    } else {
        to->failed = true;
    }
}

static void mark_plan(const struct view *v, struct marks *to)
{
    const struct peal_lane *lane = peal_plan_lane(v->plan, v->rank, v->lane);
    const struct peal_op *op = peal_plan_ops(v->plan) + lane->first_op;
    uint32_t slots = 0;
    for (uint64_t i = 0; i < lane->ops; i++)
        mark_plan_op(v, to, &op[i], &slots);
}

/* --- comparing ------------------------------------------------------------------------------- */

static bool same_lane(const struct view *v)
{
    struct marks model = {0}, plan = {0};
    mark_model(v, &model);
    mark_plan(v, &plan);
    bool same = same_marks(&model, &plan);
    free(model.at);
    free(plan.at);
    return same;
}

static bool same_plan(struct view v)
{
    if (v.plan->period != v.m->phases)
        return false;
    for (v.rank = 0; v.rank < v.plan->nranks; v.rank++) {
        if (peal_plan_lane_count(v.plan, v.rank) != v.m->lanes)
            return false;
        for (v.lane = 0; v.lane < v.m->lanes; v.lane++) {
            if (!same_lane(&v))
                return false;
        }
    }
    return true;
}

static bool check_plan(const struct ring_model *m, const struct peal_plan_request *request,
                       int64_t family, int64_t count, bool fused)
{
    struct peal_plan_request r = *request;
    struct view v = {.m = m, .family = family, .count = count, .windows_only = fused};
    struct peal_plan *plan = NULL;
    struct peal_diags diags;
    v.ranks = ring_at(ring_ranks(m), 0, 0, family);
    v.count *= m->units ? v.ranks : 1;
    r.count = count;
    r.invent = true;
    r.bind.nranks = (uint32_t)v.ranks;
    r.bind.rank = PEAL_NONE;
    r.bind.symmetric = true;
    r.bind.in_place = m->in_place;
    r.bind.no_fuse = !fused;
    peal_diags_init(&diags);
    enum peal_status status = peal_plan_make(&r, &diags, &plan);
    peal_diags_release(&diags);
    if (status == PEAL_INVALID && count < m->least_count)
        return true;
    if (status != PEAL_OK) /* in place, there are only plans with parts of one length */
        return m->in_place && status == PEAL_INVALID && count % v.ranks;
    v.plan = plan;
    bool good = same_plan(v);
    free(plan);
    return good;
}

bool peal_ring_matches(const struct ring_model *m, const struct peal_plan_request *request,
                       const char **why)
{
    for (int64_t i = 0; i < FAMILIES; i++) {
        int64_t family = m->least + i, ranks = ring_at(ring_ranks(m), 0, 0, family);
        int64_t counts[] = {3 * ranks + 2, 3 * ranks, 1, 0};
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            if (check_plan(m, request, family, counts[k], false) &&
                check_plan(m, request, family, counts[k], true))
                continue;
            *why = "the plan is not what was read from the text";
            return false;
        }
    }
    return true;
}
