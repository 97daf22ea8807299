/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of peal/record.h: addresses become places, ops are kept per rank and lane. */
#include "record/record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_MAX_OPS = 4 << 20, MAX_ROWS = 1 << 20 };
#define DEFAULT_MAX_BYTES (UINT64_C(1) << 30)
#define MAX_REGION_BYTES (UINT64_C(1) << 40)

/* ---- failures ---- */

static void fail(struct peal_record *r, uint32_t pos, enum peal_status status, const char *format,
                 va_list args)
{
    if (r->status != PEAL_OK)
        return;
    r->status = status;
    if (pos != PEAL_NONE)
        peal_text_printf(&r->why, "%s:%u: ", r->positions.at[pos].file, r->positions.at[pos].line);
    peal_text_vprintf(&r->why, format, args);
}

void peal_record_fail(struct peal_record *r, enum peal_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(r, r->pos, status, format, args);
    va_end(args);
}

void peal_record_fail_at(struct peal_record *r, uint32_t pos, enum peal_status status,
                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(r, pos, status, format, args);
    va_end(args);
}

static void no_memory(struct peal_record *r)
{
    peal_record_fail(r, PEAL_NO_MEMORY, "out of memory");
}

/* ---- the record ---- */

static enum peal_status check_args(const struct peal_record_args *a, enum peal_contract *contract)
{
    *contract = PEAL_CONTRACT_NONE;
    if (a->ranks < 1 || a->ranks > PEAL_PLAN_MAX_RANKS || (unsigned)a->op >= PEAL_REDUCTIONS ||
        a->root >= a->ranks)
        return PEAL_INVALID;
    if (a->implements && !peal_contract_find(a->implements, strlen(a->implements), contract))
        return PEAL_INVALID;
    return PEAL_OK;
}

static const char *keep_name(struct peal_record *r, const char *name)
{
    const char *kept = name ? peal_intern_text(&r->names, name, strlen(name)) : NULL;
    if (name && !kept)
        no_memory(r);
    return kept;
}

enum peal_status peal_record_new(const struct peal_record_args *args, struct peal_record **out)
{
    struct peal_record_args a = {0};
    size_t given = args->struct_size ? args->struct_size : sizeof a;
    memcpy(&a, args, peal_size_min(given, sizeof a));
    enum peal_contract contract;
    enum peal_status status = check_args(&a, &contract);
    if (status != PEAL_OK)
        return status;
    struct peal_record *r = calloc(1, sizeof *r);
    if (!r)
        return PEAL_NO_MEMORY;
    r->args = a;
    r->contract = contract;
    r->pos = PEAL_NONE;
    if (!r->args.max_ops)
        r->args.max_ops = DEFAULT_MAX_OPS;
    if (!r->args.max_bytes)
        r->args.max_bytes = DEFAULT_MAX_BYTES;
    peal_arena_init(&r->arena, 0);
    peal_intern_init(&r->names, &r->arena);
    r->ranks = calloc(a.ranks, sizeof *r->ranks);
    if (!r->ranks)
        no_memory(r);
    r->rank = PEAL_NONE;
    r->args.kernel = keep_name(r, a.kernel ? a.kernel : "kernel");
    r->args.input = keep_name(r, a.input);
    r->args.output = keep_name(r, a.output);
    r->args.implements = NULL;
    if (r->status != PEAL_OK) {
        peal_record_free(r);
        return PEAL_NO_MEMORY;
    }
    *out = r;
    return PEAL_OK;
}

void peal_record_free(struct peal_record *r)
{
    if (!r)
        return;
    if (r->ranks)
        peal_record_forget_order(r);
    for (uint32_t i = 0; r->ranks && i < r->args.ranks; i++) {
        for (size_t k = 0; k < r->ranks[i].lanes.len; k++) {
            peal_vec_release(&r->ranks[i].lanes.at[k]->ops);
            free(r->ranks[i].lanes.at[k]);
        }
        peal_vec_release(&r->ranks[i].lanes);
    }
    free(r->ranks);
    peal_vec_release(&r->regions);
    peal_vec_release(&r->copies);
    peal_vec_release(&r->positions);
    peal_vec_release(&r->spans);
    peal_vec_release(&r->flags);
    peal_vec_release(&r->cells);
    peal_vec_release(&r->parts);
    peal_index_release(&r->position_index);
    peal_index_release(&r->flag_index);
    peal_intern_release(&r->names);
    peal_text_release(&r->why);
    peal_arena_release(&r->arena);
    free(r);
}

/* ---- memory ---- */

static bool is_shared(const struct region *region)
{
    return region->kind == PEAL_RECORD_WINDOW || (region->flags & PEAL_RECORD_SHARED);
}

/* The region of that name, made if it is new; PEAL_NONE: it failed. */
static uint32_t find_region(struct peal_record *r, const struct peal_record_region *given)
{
    const char *name = keep_name(r, given->name);
    for (uint32_t i = 0; i < r->regions.len; i++) {
        struct region *old = &r->regions.at[i];
        if (old->name != name)
            continue;
        if (old->kind != given->kind || old->flags != given->flags) {
            peal_record_fail(r, PEAL_INVALID, "region '%s' is declared in two ways", name);
            return PEAL_NONE;
        }
        if (given->bytes > old->bytes)
            old->bytes = given->bytes;
        return i;
    }
    struct region new = {.name = name,
                         .kind = given->kind,
                         .flags = given->flags,
                         .dtype = given->dtype,
                         .bytes = given->bytes};
    if (!name || r->regions.len == RECORD_MAX_REGIONS || !peal_vec_push(&r->regions, new)) {
        peal_record_fail(r, PEAL_NO_MEMORY, "more than %d regions", RECORD_MAX_REGIONS);
        return PEAL_NONE;
    }
    return (uint32_t)r->regions.len - 1;
}

void peal_record_region(struct peal_record *r, const struct peal_record_region *region)
{
    if (r->status != PEAL_OK)
        return;
    if (r->sorted) {
        peal_record_fail(r, PEAL_INVALID, "a region is declared after the first rank began");
        return;
    }
    if (!region->name || region->owner >= r->args.ranks || region->bytes > MAX_REGION_BYTES ||
        region->address > UINT64_MAX - region->bytes || region->kind > PEAL_RECORD_CORE ||
        (unsigned)region->dtype >= PEAL_DTYPES) {
        peal_record_fail(r, PEAL_INVALID, "a region has no name, no owner, or no possible range");
        return;
    }
    uint32_t i = find_region(r, region);
    if (i == PEAL_NONE)
        return;
    struct region_copy copy = {i, region->owner, region->address, region->bytes};
    if (!peal_vec_push(&r->copies, copy))
        no_memory(r);
}

static int compare_copies(const void *a, const void *b)
{
    const struct region_copy *x = a, *y = b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return 0;
}

/* Shared copies first, as if all had one owner, then those of each rank; sorted by address. The
 * owner of a shared one is in `region_copy.owner` again afterwards. */
static void sort_copies(struct peal_record *r)
{
    PEAL_VEC(struct region_copy) shared = {0}, own = {0};
    for (size_t i = 0; i < r->copies.len && r->status == PEAL_OK; i++) {
        bool all = is_shared(&r->regions.at[r->copies.at[i].region]);
        if (all ? !peal_vec_push(&shared, r->copies.at[i]) : !peal_vec_push(&own, r->copies.at[i]))
            no_memory(r);
    }
    if (r->status == PEAL_OK) {
        /* by address alone */
        for (size_t i = 1; i < shared.len; i++) {
            struct region_copy copy = shared.at[i];
            size_t k = i;
            for (; k > 0 && shared.at[k - 1].address > copy.address; k--)
                shared.at[k] = shared.at[k - 1];
            shared.at[k] = copy;
        }
        if (own.len)
            qsort(own.at, own.len, sizeof *own.at, compare_copies);
        r->nshared = (uint32_t)shared.len;
        for (size_t i = 0; i < shared.len; i++)
            r->copies.at[i] = shared.at[i];
        for (size_t i = 0; i < own.len; i++)
            r->copies.at[shared.len + i] = own.at[i];
    }
    for (size_t i = 1; i < r->copies.len && r->status == PEAL_OK; i++) {
        const struct region_copy *a = &r->copies.at[i - 1], *b = &r->copies.at[i];
        bool together = i < r->nshared || (i > r->nshared && a->owner == b->owner);
        if (together && a->address + a->bytes > b->address)
            peal_record_fail(r, PEAL_INVALID, "regions '%s' and '%s' overlap",
                             r->regions.at[a->region].name, r->regions.at[b->region].name);
    }
    peal_vec_release(&shared);
    peal_vec_release(&own);
    r->sorted = true;
}

/* The last copy in [lo, hi) that begins at or before the address and belongs to the owner. */
static const struct region_copy *search(const struct peal_record *r, size_t lo, size_t hi,
                                        uint32_t owner, uint64_t address)
{
    size_t first = lo;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct region_copy *c = &r->copies.at[mid];
        bool before =
            owner != PEAL_NONE && c->owner != owner ? c->owner < owner : c->address <= address;
        if (before)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == first)
        return NULL;
    const struct region_copy *c = &r->copies.at[lo - 1];
    bool mine = owner == PEAL_NONE || c->owner == owner;
    return mine && address - c->address < c->bytes ? c : NULL;
}

/* The copy that has the address, as the current rank sees memory. */
static const struct region_copy *find_copy(const struct peal_record *r, uint64_t address)
{
    const struct region_copy *c = search(r, r->nshared, r->copies.len, r->rank, address);
    return c ? c : search(r, 0, r->nshared, PEAL_NONE, address);
}

/* An address a little after the end of some memory is probably meant to be in it. */
static void fail_outside(struct peal_record *r, uint64_t address)
{
    const struct region_copy *near = NULL;
    for (size_t i = 0; i < r->copies.len; i++) {
        const struct region_copy *c = &r->copies.at[i];
        bool sees = i < r->nshared || c->owner == r->rank;
        uint64_t past = address - c->address;
        if (sees && past >= c->bytes && past <= 2 * c->bytes &&
            (!near || c->address > near->address))
            near = c;
    }
    if (near)
        peal_record_fail(r, PEAL_INVALID,
                         "rank %u uses byte %" PRIu64 " of '%s' on rank %u, which has %" PRIu64,
                         r->rank, address - near->address, r->regions.at[near->region].name,
                         near->owner, near->bytes);
    else
        peal_record_fail(r, PEAL_INVALID,
                         "rank %u uses address 0x%" PRIx64 ", which is in no memory of the kernel",
                         r->rank, address);
}

/* Finds where a span is. False: nowhere, or it leaves its region. */
static bool locate(struct peal_record *r, const struct peal_record_span *given, struct span *out)
{
    if (r->rank == PEAL_NONE) {
        peal_record_fail(r, PEAL_INVALID, "an op before the first rank began");
        return false;
    }
    if ((unsigned)given->dtype >= PEAL_DTYPES || given->rows > MAX_ROWS) {
        peal_record_fail(r, PEAL_INVALID, "no such type of elements, or more than %d rows",
                         MAX_ROWS);
        return false;
    }
    uint64_t size = peal_dtype_size(given->dtype);
    *out = (struct span){.region = PEAL_NONE,
                         .count = given->count,
                         .rows = given->rows ? given->rows : 1,
                         .stride = given->stride,
                         .dtype = (uint8_t)given->dtype};
    if (given->constant) {
        memcpy(&out->offset, &given->value, sizeof out->offset);
        return true;
    }
    uint64_t row, bytes;
    if (!peal_size_mul(given->count, size, &row) || row > MAX_REGION_BYTES)
        row = MAX_REGION_BYTES;
    if (!out->stride)
        out->stride = row;
    if (out->stride > MAX_REGION_BYTES || !peal_size_mul(out->stride, out->rows - 1, &bytes))
        bytes = MAX_REGION_BYTES;
    bytes += row;
    const struct region_copy *c = find_copy(r, given->address);
    if (!c) {
        fail_outside(r, given->address);
        return false;
    }
    uint64_t offset = given->address - c->address;
    if (bytes > c->bytes - offset) {
        peal_record_fail(
            r, PEAL_INVALID,
            "rank %u uses bytes %" PRIu64 " to %" PRIu64 " of '%s', which has %" PRIu64, r->rank,
            offset, offset + bytes - 1, r->regions.at[c->region].name, c->bytes);
        return false;
    }
    if (out->rows > 1 && out->stride < row) {
        peal_record_fail(r, PEAL_UNSUPPORTED, "rows that overlap each other");
        return false;
    }
    out->region = c->region;
    out->rank = c->owner;
    out->offset = offset;
    r->regions.at[c->region].accessed = true;
    return true;
}

/* ---- where ---- */

static bool check_bytes(struct peal_record *r)
{
    uint64_t bytes = r->ops * sizeof(struct record_op) + r->spans.len * sizeof(struct span) +
                     r->nlanes * sizeof(struct record_lane);
    if (bytes <= r->args.max_bytes)
        return true;
    peal_record_fail(r, PEAL_UNSUPPORTED,
                     "the recording takes more than %" PRIu64 " bytes: that is the limit",
                     r->args.max_bytes);
    return false;
}

struct record_lane *peal_record_get_lane(struct peal_record *r, uint32_t lane)
{
    struct record_rank *rank = &r->ranks[r->rank];
    if (lane >= RECORD_MAX_LANES) {
        peal_record_fail(r, PEAL_UNSUPPORTED, "more than %d lanes", RECORD_MAX_LANES);
        return NULL;
    }
    while (rank->lanes.len <= lane) {
        if (!check_bytes(r))
            return NULL;
        struct record_lane *new = calloc(1, sizeof *new);
        if (!new || !peal_vec_push(&rank->lanes, new)) {
            free(new);
            no_memory(r);
            return NULL;
        }
        new->joined = rank->joined;
        r->nlanes++;
    }
    return rank->lanes.at[lane];
}

void peal_record_rank(struct peal_record *r, uint32_t rank)
{
    if (r->status != PEAL_OK)
        return;
    r->pos = PEAL_NONE;
    if (!r->sorted)
        sort_copies(r);
    if (rank >= r->args.ranks || r->ranks[rank].begun) {
        peal_record_fail(r, PEAL_INVALID, "rank %u is begun twice, or is no rank", rank);
        return;
    }
    peal_record_forget_order(r);
    r->rank = rank;
    r->ranks[rank].begun = true;
    r->lane = 0;
    (void)peal_record_get_lane(r, 0);
}

void peal_record_lane(struct peal_record *r, uint32_t lane, const char *name)
{
    if (r->status != PEAL_OK || r->rank == PEAL_NONE)
        return;
    struct record_lane *l = peal_record_get_lane(r, lane);
    if (!l)
        return;
    r->lane = lane;
    if (name)
        l->name = keep_name(r, name);
}

void peal_record_block(struct peal_record *r, uint32_t block)
{
    if (r->status != PEAL_OK)
        return;
    struct record_lane *l = r->rank == PEAL_NONE ? NULL : peal_record_get_lane(r, r->lane);
    if (!l || block > UINT16_MAX || (l->block && l->block != block + 1))
        peal_record_fail(r, PEAL_INVALID, "a lane is in two blocks, or in one that is none");
    else
        l->block = block + 1;
}

static uint64_t hash_position(const void *record, uint32_t row)
{
    const struct record_position *p = &((const struct peal_record *)record)->positions.at[row];
    return peal_hash_u64((uint64_t)(uintptr_t)p->file, p->line + ((uint64_t)p->call << 32));
}

void peal_record_at(struct peal_record *r, const char *file, uint32_t line)
{
    if (r->status != PEAL_OK)
        return;
    r->pos = PEAL_NONE;
    if (!file)
        return;
    struct record_position new = {keep_name(r, file), line, r->call};
    if (!new.file || !peal_index_reserve(&r->position_index, hash_position, r)) {
        no_memory(r);
        return;
    }
    size_t at =
        peal_index_begin(&r->position_index, peal_hash_u64((uint64_t)(uintptr_t) new.file,
                                                           line + ((uint64_t) new.call << 32)));
    for (; peal_index_is_used(&r->position_index, at);
         at = peal_index_next(&r->position_index, at)) {
        uint32_t row = peal_index_row(&r->position_index, at);
        const struct record_position *known = &r->positions.at[row];
        if (known->file == new.file && known->line == line && known->call == new.call) {
            r->pos = row;
            return;
        }
    }
    if (!peal_vec_push(&r->positions, new)) {
        no_memory(r);
        return;
    }
    r->pos = (uint32_t)r->positions.len - 1;
    peal_index_put(&r->position_index, at, r->pos);
}

void peal_record_call(struct peal_record *r, uint32_t call)
{
    r->call = call;
    r->pos = PEAL_NONE;
}

/* ---- ops ---- */

void peal_record_append(struct peal_record *r, uint32_t lane, struct record_op op)
{
    struct record_lane *l = r->status == PEAL_OK ? peal_record_get_lane(r, lane) : NULL;
    if (!l)
        return;
    peal_record_catch_up(r, lane);
    if (r->ops >= r->args.max_ops) {
        peal_record_fail(r, PEAL_UNSUPPORTED,
                         "the kernel does more than %" PRIu64 " operations: that is the limit",
                         r->args.max_ops);
        return;
    }
    if (!check_bytes(r))
        return;
    op.pos = r->pos;
    if (!peal_vec_push(&l->ops, op)) {
        no_memory(r);
        return;
    }
    r->ops++;
    if (op.kind < RECORD_RELEASE)
        peal_record_event(l);
}

static bool push_spans(struct peal_record *r, const struct peal_record_span *spans, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct span span;
        if (!locate(r, &spans[i], &span))
            return false;
        if (!peal_vec_push(&r->spans, span)) {
            no_memory(r);
            return false;
        }
    }
    return true;
}

static void add_op(struct peal_record *r, struct record_op op, const struct peal_record_span *dsts,
                   uint32_t ndsts, const struct peal_record_span *srcs, uint32_t nsrcs)
{
    if (r->status != PEAL_OK)
        return;
    op.span = (uint32_t)r->spans.len;
    op.ndst = (uint16_t)ndsts;
    op.nsrc = (uint16_t)nsrcs;
    if (ndsts > UINT16_MAX || nsrcs > UINT16_MAX) {
        peal_record_fail(r, PEAL_UNSUPPORTED, "an op of more than %u operands", UINT16_MAX);
        return;
    }
    for (uint32_t i = 0; i < ndsts; i++) {
        if (dsts[i].constant)
            peal_record_fail(r, PEAL_INVALID, "a number is written to, which is no memory");
    }
    if (push_spans(r, dsts, ndsts) && push_spans(r, srcs, nsrcs))
        peal_record_append(r, r->lane, op);
}

static uint64_t elements(const struct peal_record_span *span)
{
    uint64_t n;
    return peal_size_mul(span->count, span->rows ? span->rows : 1, &n) ? n : UINT64_MAX;
}

/* Do all spans that are memory have as many elements as the first? */
static bool same_size(const struct peal_record_span *dst, const struct peal_record_span *srcs,
                      uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!srcs[i].constant && elements(&srcs[i]) != elements(dst))
            return false;
    }
    return true;
}

void peal_record_copy(struct peal_record *r, const struct peal_record_span *dst,
                      const struct peal_record_span *src)
{
    if (r->status != PEAL_OK)
        return;
    if (!same_size(dst, src, 1)) {
        peal_record_fail(r, PEAL_INVALID, "%" PRIu64 " elements are copied to %" PRIu64,
                         elements(src), elements(dst));
        return;
    }
    add_op(r, (struct record_op){.kind = RECORD_COPY}, dst, 1, src, 1);
}

/* Is it a function of this many operands, of this type? softmax is one of a single row. */
static bool is_known(const char *function, const struct peal_record_span *dst,
                     const struct peal_record_span *srcs, uint32_t nsrcs, enum peal_fn *out)
{
    if (!peal_fn_find(function, strlen(function), out) || (unsigned)dst->dtype >= PEAL_DTYPES ||
        !peal_fn_takes(*out, dst->dtype))
        return false;
    if (*out == PEAL_FN_SOFTMAX && (dst->rows > 1 || !nsrcs || srcs->rows > 1 || srcs->constant))
        return false;
    int operands = peal_fn_info(*out)->operands;
    return operands ? nsrcs == (uint32_t)operands : nsrcs >= 2;
}

void peal_record_compute(struct peal_record *r, const char *function,
                         const struct peal_record_span *dsts, uint32_t ndsts,
                         const struct peal_record_span *srcs, uint32_t nsrcs)
{
    enum peal_fn fn;
    struct record_op op = {.kind = RECORD_OPAQUE};
    if (ndsts == 1 && same_size(dsts, srcs, nsrcs) && is_known(function, dsts, srcs, nsrcs, &fn)) {
        op.kind = RECORD_COMPUTE;
        op.how = (uint8_t)fn;
        for (uint32_t i = 0; i < nsrcs; i++) {
            if (srcs[i].dtype != dsts[0].dtype)
                op.kind = RECORD_OPAQUE;
        }
    }
    op.name = keep_name(r, function); /* types of memory may make a known one opaque later */
    add_op(r, op, dsts, ndsts, srcs, nsrcs);
}

void peal_record_accumulate(struct peal_record *r, const char *function,
                            const struct peal_record_span *dst, const struct peal_record_span *src)
{
    enum peal_fn fn;
    if (r->status != PEAL_OK)
        return;
    if (!peal_fn_find(function, strlen(function), &fn) || (unsigned)dst->dtype >= PEAL_DTYPES ||
        !peal_fn_accumulates(fn, dst->dtype) || src->dtype != dst->dtype ||
        !same_size(dst, src, 1)) {
        peal_record_fail(r, PEAL_UNSUPPORTED, "there is no atomic '%s' of these operands",
                         function);
        return;
    }
    add_op(r, (struct record_op){.kind = RECORD_ACCUMULATE, .how = (uint8_t)fn}, dst, 1, src, 1);
}

void peal_record_read(struct peal_record *r, const struct peal_record_span *src)
{
    add_op(r, (struct record_op){.kind = RECORD_READ}, NULL, 0, src, 1);
}

void peal_record_write(struct peal_record *r, const struct peal_record_span *dst,
                       const double *value)
{
    struct peal_record_span src = {.count = 1, .dtype = dst->dtype, .constant = 1};
    if (value)
        src.value = *value;
    add_op(r, (struct record_op){.kind = RECORD_WRITE}, dst, 1, &src, value ? 1 : 0);
}

static void add_message(struct peal_record *r, struct record_op op,
                        const struct peal_record_span *data)
{
    if (r->status != PEAL_OK)
        return;
    if (op.cell >= r->args.ranks || op.cell == r->rank || data->constant)
        peal_record_fail(r, PEAL_INVALID, "a message between ranks %u and %u", r->rank, op.cell);
    bool sends = op.kind == RECORD_SEND;
    add_op(r, op, data, !sends, data, sends);
}

void peal_record_send(struct peal_record *r, uint32_t to, const struct peal_record_span *src)
{
    add_message(r, (struct record_op){.kind = RECORD_SEND, .cell = to}, src);
}

void peal_record_recv(struct peal_record *r, uint32_t from, const struct peal_record_span *dst)
{
    add_message(r, (struct record_op){.kind = RECORD_RECV, .cell = from}, dst);
}

/* At most one order, of those that the op can have, and one scope. */
static void check_order(struct peal_record *r, const struct record_op *op, uint32_t flags)
{
    static const char *const whats[] = {[RECORD_FENCE] = "a fence",
                                        [RECORD_NOTIFY] = "a store",
                                        [RECORD_WAIT] = "a wait",
                                        [RECORD_TAKE] = "a swap"};
    uint32_t scope = flags & (PEAL_RECORD_DEVICE | PEAL_RECORD_BLOCK);
    uint32_t order = flags & (PEAL_RECORD_RELAXED | PEAL_RECORD_ACQ_REL | PEAL_RECORD_SEQ_CST);
    bool sets = op->kind == RECORD_NOTIFY && op->how == PEAL_RECORD_SET;
    uint32_t none = op->kind == RECORD_FENCE ? PEAL_RECORD_RELAXED : 0; /* it cannot have these */
    if (sets)
        none = PEAL_RECORD_ACQUIRE;
    else if (op->kind == RECORD_WAIT)
        none = PEAL_RECORD_RELEASE;
    bool two = order != PEAL_RECORD_ACQ_REL && (order & (order - 1));
    if (flags != (order | scope) || two || (scope & (scope - 1)))
        peal_record_fail(r, PEAL_INVALID, "an op has two orders, two scopes, or one that is none");
    else if (order & none)
        peal_record_fail(r, PEAL_UNSUPPORTED, "%s that %s", whats[op->kind],
                         none == PEAL_RECORD_RELAXED ? "is relaxed orders nothing"
                         : sets                      ? "acquires"
                                                     : "releases");
}

void peal_record_fence(struct peal_record *r, uint32_t flags)
{
    struct record_op op = {.kind = RECORD_FENCE, .flags = (uint8_t)flags};
    if (r->status == PEAL_OK && r->rank == PEAL_NONE)
        peal_record_fail(r, PEAL_INVALID, "an op before the first rank began");
    check_order(r, &op, flags);
    add_op(r, op, NULL, 0, NULL, 0);
}

static void add_cell_op(struct peal_record *r, uint64_t address, uint32_t bytes, uint32_t flags,
                        struct record_op op)
{
    struct peal_record_span cell = {
        .address = address, .count = 1, .dtype = bytes == 8 ? PEAL_I64 : PEAL_I32};
    if (r->status != PEAL_OK)
        return;
    if (bytes != 4 && bytes != 8) {
        peal_record_fail(r, PEAL_UNSUPPORTED, "a signal of %u bytes: 4 or 8 are possible", bytes);
        return;
    }
    check_order(r, &op, flags);
    op.flags = (uint8_t)flags;
    op.rise = r->rise;
    r->rise = 0;
    if (op.rise && (op.kind == RECORD_TAKE || peal_record_is_fetch(&op)))
        peal_record_fail(r, PEAL_UNSUPPORTED, "an atomic whose value rises with the launch");
    add_op(r, op, &cell, 1, NULL, 0);
    if (r->status != PEAL_OK)
        return;
    const struct span *span = &r->spans.at[r->spans.len - 1];
    const struct region *region = &r->regions.at[span->region];
    if (!is_shared(region) || span->offset % bytes)
        peal_record_fail(r, PEAL_INVALID, "the signal at byte %" PRIu64 " of '%s' is %s",
                         span->offset, region->name,
                         is_shared(region) ? "not aligned" : "not in a window");
    else if (op.kind == RECORD_WAIT && span->rank != r->rank)
        peal_record_fail(r, PEAL_UNSUPPORTED,
                         "rank %u waits for a signal of rank %u: a rank waits "
                         "for its own signals only",
                         r->rank, span->rank);
}

void peal_record_notify(struct peal_record *r, uint64_t address, uint32_t bytes,
                        enum peal_record_change change, int64_t value, uint32_t flags)
{
    add_cell_op(r, address, bytes, flags,
                (struct record_op){.kind = RECORD_NOTIFY, .how = (uint8_t)change, .value = value});
}

void peal_record_wait(struct peal_record *r, uint64_t address, uint32_t bytes,
                      enum peal_record_relation relation, int64_t value, uint32_t flags)
{
    struct record_op op = {.kind = RECORD_WAIT, .how = (uint8_t)relation, .value = value};
    if (relation == PEAL_RECORD_GT && value < INT64_MAX) {
        op.how = PEAL_RECORD_GE;
        op.value++;
    }
    if (relation > PEAL_RECORD_NE || (relation == PEAL_RECORD_NE && value != 0))
        peal_record_fail(r, PEAL_UNSUPPORTED, "a wait for a signal that is not %" PRId64, value);
    add_cell_op(r, address, bytes, flags, op);
}

void peal_record_rise(struct peal_record *r, int64_t times)
{
    if (times && r->args.launches == 1)
        peal_record_fail(r, PEAL_INVALID, "a value rises with the launch, and there is one launch");
    r->rise = times;
}

void peal_record_take(struct peal_record *r, uint64_t address, uint32_t bytes, int32_t from,
                      int32_t to)
{
    peal_record_take_flags(r, address, bytes, from, to, 0);
}

void peal_record_take_flags(struct peal_record *r, uint64_t address, uint32_t bytes, int32_t from,
                            int32_t to, uint32_t flags)
{
    add_cell_op(r, address, bytes, flags,
                (struct record_op){.kind = RECORD_TAKE, .value = peal_swap_value(from, to)});
}

/* ---- the end ---- */

void peal_record_refuse(struct peal_record *r, const char *why)
{
    peal_record_fail(r, PEAL_UNSUPPORTED, "%s", why);
}

static void check_ranks(struct peal_record *r)
{
    for (uint32_t i = 0; i < r->args.ranks; i++) {
        if (!r->ranks[i].begun)
            peal_record_fail(r, PEAL_INVALID, "rank %u was not recorded", i);
    }
}

enum peal_status peal_record_finish(struct peal_record *r, char *error, size_t error_cap,
                                    struct peal_plan **out)
{
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    peal_diags_init(&diags);
    r->pos = PEAL_NONE;
    check_ranks(r);
    if (r->status == PEAL_OK)
        peal_record_find_kinds(r);
    if (r->status == PEAL_OK)
        r->status = peal_record_emit(r, &diags, &plan);
    enum peal_status status = r->status;
    if (status == PEAL_OK)
        *out = plan;
    else if (!r->why.len)
        peal_diags_quote(&diags, &r->why);
    if (status != PEAL_OK && error && error_cap)
        snprintf(error, error_cap, "%s", peal_text_get(&r->why));
    peal_diags_release(&diags);
    peal_record_free(r);
    return status;
}
