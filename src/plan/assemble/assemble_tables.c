/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that ops name: strings, buffers, signals, channels, parameters, positions, phases.
 * Equal rows share a place, found by hash. */
#include "plan/assemble/assemble_internal.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* The row with this hash for which same(a, row, key) holds, or PEAL_NONE. */
static uint32_t find_row(const struct peal_assembler *a, const struct peal_index *index,
                         uint64_t hash,
                         bool (*same)(const struct peal_assembler *, uint32_t, const void *),
                         const void *key)
{
    if (!index->cap)
        return PEAL_NONE;
    size_t at = peal_index_begin(index, hash);
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        if (same(a, peal_index_row(index, at), key))
            return peal_index_row(index, at);
    }
    return PEAL_NONE;
}

static void add_row(struct peal_assembler *a, struct peal_index *index, uint32_t row,
                    peal_index_hash *hash)
{
    if (!peal_index_reserve(index, hash, a)) {
        peal_assembler_no_memory(a);
        return;
    }
    size_t at = peal_index_begin(index, hash(a, row));
    while (peal_index_is_used(index, at))
        at = peal_index_next(index, at);
    peal_index_put(index, at, row);
}

static bool same_string(const struct peal_assembler *a, uint32_t row, const void *key)
{
    return strcmp(a->strings.at + row, key) == 0;
}

static uint64_t hash_string(const void *assembler, uint32_t row)
{
    const struct peal_assembler *a = assembler;
    return peal_hash_bytes(a->strings.at + row, strlen(a->strings.at + row), 0);
}

uint32_t peal_assembler_string(struct peal_assembler *a, const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || a->status != PEAL_OK)
        return 0;
    uint32_t row = find_row(a, &a->string_index, peal_hash_bytes(text, len, 0), same_string, text);
    if (row != PEAL_NONE)
        return row;
    if (a->strings.len + len >= UINT32_MAX || !peal_vec_reserve(&a->strings, len + 1)) {
        peal_assembler_no_memory(a);
        return 0;
    }
    row = (uint32_t)a->strings.len;
    memcpy(a->strings.at + row, text, len + 1);
    a->strings.len += len + 1;
    add_row(a, &a->string_index, row, hash_string);
    return row;
}

bool peal_assembler_has_name(const struct peal_assembler *a, const char *name, uint32_t lane)
{
    uint64_t hash = peal_hash_bytes(name, strlen(name), 0);
    uint32_t row = find_row(a, &a->string_index, hash, same_string, name);
    for (size_t i = 0; i < a->bufs.len && row != PEAL_NONE; i++) {
        const struct peal_buf *buf = &a->bufs.at[i];
        if (buf->name == row && (buf->kind != PEAL_BUF_TILE || buf->lane == lane))
            return true;
    }
    return false;
}

uint32_t peal_assembler_buf(struct peal_assembler *a, const struct peal_buf_spec *spec)
{
    if (a->bufs.len >= PEAL_BUF_SLOT) {
        peal_assembler_fail(a, PEAL_INVALID, "a plan has at most 65534 buffers and tiles");
        return 0;
    }
    struct peal_buf buf = {
        .name = peal_assembler_string(a, spec->name),
        .kind = (uint8_t)spec->kind,
        .dir = (uint8_t)spec->dir,
        .dtype = (uint8_t)spec->dtype,
        .flags = (uint8_t)spec->flags,
        .param = spec->param,
        .alias = spec->alias,
        .cols = spec->cols,
        .lane = spec->lane,
    };
    PUSH(a, bufs, buf);
    PUSH(a, lens, spec->len);
    return (uint32_t)a->bufs.len - 1;
}

uint32_t peal_assembler_signal(struct peal_assembler *a, const char *name,
                               enum peal_signal_kind kind, uint32_t cells)
{
    struct peal_signal signal = {
        .name = peal_assembler_string(a, name),
        .kind = kind,
        .first_cell = a->header.cells,
        .cells = cells,
        .first_total = a->header.totals_stride,
    };
    if (cells > UINT32_MAX / 2 - a->header.cells) {
        peal_assembler_fail(a, PEAL_INVALID, "a rank has at most 2147483647 cells of signals");
        return 0;
    }
    a->header.cells += cells;
    if (kind == PEAL_SIGNAL_SHARED)
        a->header.totals_stride += cells;
    PUSH(a, signals, signal);
    return (uint32_t)a->signals.len - 1;
}

static bool same_channel(const struct peal_assembler *a, uint32_t row, const void *key)
{
    const struct peal_channel *x = &a->channels.at[row], *y = key;
    return x->name == y->name && x->port == y->port && x->sender == y->sender &&
           x->receiver == y->receiver;
}

static uint64_t hash_key(const struct peal_channel *c)
{
    return peal_hash_u64(((uint64_t)c->sender << 32) | c->receiver,
                         ((uint64_t)c->name << 32) | c->port);
}

static uint64_t hash_channel(const void *assembler, uint32_t row)
{
    const struct peal_assembler *a = assembler;
    return hash_key(&a->channels.at[row]);
}

uint32_t peal_assembler_channel(struct peal_assembler *a, const char *name, uint32_t sender,
                                uint32_t port, uint32_t receiver)
{
    struct peal_channel key = {
        .name = peal_assembler_string(a, name),
        .port = port,
        .sender = sender,
        .receiver = receiver,
        .sender_lane = UINT16_MAX, /* not used yet */
        .receiver_lane = UINT16_MAX,
    };
    uint32_t row = find_row(a, &a->channel_index, hash_key(&key), same_channel, &key);
    if (row != PEAL_NONE || a->status != PEAL_OK) {
        if (row == PEAL_NONE)
            return 0;
        return row;
    }
    PUSH(a, channels, key);
    if (a->status == PEAL_OK)
        add_row(a, &a->channel_index, (uint32_t)a->channels.len - 1, hash_channel);
    if (a->channels.len)
        return (uint32_t)a->channels.len - 1;
    return 0;
}

void peal_assembler_param(struct peal_assembler *a, const char *name, bool is_local, uint32_t count,
                          const int64_t *values)
{
    struct peal_param param = {
        .name = peal_assembler_string(a, name),
        .is_local = is_local,
        .first = (uint32_t)a->values.len,
        .count = count,
    };
    uint64_t total = (uint64_t)count * (is_local ? a->header.rank_count : 1);
    if (total + a->values.len > UINT32_MAX || !peal_vec_reserve(&a->values, total)) {
        peal_assembler_no_memory(a);
        return;
    }
    if (total)
        memcpy(a->values.at + a->values.len, values, total * sizeof *values);
    a->values.len += total;
    PUSH(a, params, param);
}

static bool same_term(const struct peal_assembler *a, uint32_t row, const void *key)
{
    return memcmp(&a->terms.at[row], key, sizeof(struct peal_promise_term)) == 0;
}

static uint64_t hash_term(const void *assembler, uint32_t row)
{
    const struct peal_assembler *a = assembler;
    return peal_hash_bytes(&a->terms.at[row], sizeof a->terms.at[row], 0);
}

uint32_t peal_assembler_term(struct peal_assembler *a, const struct peal_promise_term *term)
{
    uint64_t hash = peal_hash_bytes(term, sizeof *term, 0);
    uint32_t row = find_row(a, &a->term_index, hash, same_term, term);
    if (row != PEAL_NONE || a->status != PEAL_OK)
        return row == PEAL_NONE ? 0 : row;
    PUSH(a, terms, *term);
    if (a->status != PEAL_OK)
        return 0;
    add_row(a, &a->term_index, (uint32_t)a->terms.len - 1, hash_term);
    return (uint32_t)a->terms.len - 1;
}

uint32_t peal_assembler_clause(struct peal_assembler *a, bool requires, const char *text,
                               uint32_t pos)
{
    struct peal_clause clause = {requires, peal_assembler_string(a, text), pos, 0};
    for (uint32_t i = 0; i < a->clauses.len; i++) {
        if (memcmp(&a->clauses.at[i], &clause, sizeof clause) == 0)
            return i;
    }
    PUSH(a, clauses, clause);
    return a->clauses.len ? (uint32_t)a->clauses.len - 1 : 0;
}

void peal_assembler_promise(struct peal_assembler *a, const struct peal_promise *promise)
{
    if (a->promises.len) {
        struct peal_promise *last = &a->promises.at[a->promises.len - 1];
        if (last->rank == promise->rank && last->buf == promise->buf &&
            last->term == promise->term && last->clause == promise->clause &&
            last->first + last->count == promise->first) {
            last->count += promise->count;
            return;
        }
    }
    PUSH(a, promises, *promise);
}

/* Terms and clauses keep their numbers: nothing was added before. */
static void take_over_promises(struct peal_assembler *a, const struct peal_plan *plan)
{
    assert(a->terms.len == 0 && a->clauses.len == 0);
    for (uint64_t i = 0; i < plan->terms.count; i++)
        (void)peal_assembler_term(a, &peal_plan_terms(plan)[i]);
    for (uint64_t i = 0; i < plan->clauses.count; i++) {
        struct peal_clause clause = peal_plan_clauses(plan)[i];
        clause.text = peal_assembler_string(a, peal_plan_string(plan, clause.text));
        clause.pos = PEAL_NONE;
        PUSH(a, clauses, clause);
    }
    for (uint64_t i = 0; i < plan->promises.count; i++)
        PUSH(a, promises, peal_plan_promises(plan)[i]);
}

void peal_assembler_take_over(struct peal_assembler *a, const struct peal_plan *plan)
{
    struct peal_plan *h = peal_assembler_header(a);
    for (uint32_t i = 0; i < plan->params.count; i++) {
        const struct peal_param *p = &peal_plan_params(plan)[i];
        peal_assembler_param(a, peal_plan_string(plan, p->name), p->is_local, p->count,
                             peal_plan_values(plan) + p->first);
    }
    h->kernel = peal_assembler_string(a, peal_plan_string(plan, plan->kernel));
    h->contract = plan->contract;
    h->contract_in = plan->contract_in;
    h->contract_out = plan->contract_out;
    h->dtype = plan->dtype;
    h->reduce = plan->reduce;
    h->root = plan->root;
    h->flags = plan->flags;
    take_over_promises(a, plan);
}

void peal_assembler_formula(struct peal_assembler *a, const struct peal_formula *formula)
{
    assert(a->formulas.len < PEAL_FORMULAS && peal_formula_check(formula));
    PUSH(a, formulas, *formula);
}

const struct peal_formula *peal_assembler_formulas(const struct peal_assembler *a)
{
    return a->formulas.at;
}

void peal_assembler_placement(struct peal_assembler *a, const int64_t *nodes)
{
    peal_assembler_param(a, PEAL_PLAN_PLACEMENT, false, a->header.nranks, nodes);
    a->header.placement = (uint32_t)a->params.len;
}

struct position_key {
    struct peal_position position;
    const struct peal_source *source;
};

static bool same_position(const struct peal_assembler *a, uint32_t row, const void *key)
{
    const struct position_key *want = key;
    return a->sources.at[row] == want->source &&
           memcmp(&a->positions.at[row], &want->position, sizeof want->position) == 0;
}

static uint64_t hash_position(const void *assembler, uint32_t row)
{
    const struct peal_assembler *a = assembler;
    return peal_hash_bytes(&a->positions.at[row], sizeof(struct peal_position), 0);
}

uint32_t peal_assembler_position(struct peal_assembler *a, struct peal_pos pos, uint32_t via)
{
    if (!pos.source && !pos.line)
        return PEAL_NONE;
    struct position_key key = {
        {
            .source = peal_assembler_string(a, pos.source ? pos.source->name : ""),
            .line = pos.line,
            .col = (uint16_t)peal_size_min(pos.col, UINT16_MAX),
            .len = (uint16_t)peal_size_min(pos.len, UINT16_MAX),
            .via = via,
        },
        pos.source,
    };
    uint64_t hash = peal_hash_bytes(&key.position, sizeof key.position, 0);
    uint32_t row = find_row(a, &a->position_index, hash, same_position, &key);
    if (row != PEAL_NONE || a->status != PEAL_OK)
        return row;
    PUSH(a, positions, key.position);
    PUSH(a, sources, key.source);
    if (a->status != PEAL_OK)
        return PEAL_NONE;
    add_row(a, &a->position_index, (uint32_t)a->positions.len - 1, hash_position);
    return (uint32_t)a->positions.len - 1;
}

static bool same_phases(const struct peal_assembler *a, uint32_t row, const void *key)
{
    size_t period = a->header.period;
    return memcmp(a->phases.at + row * period, key, period * sizeof(uint64_t)) == 0;
}

static uint64_t hash_phases(const void *assembler, uint32_t row)
{
    const struct peal_assembler *a = assembler;
    size_t period = a->header.period;
    return peal_hash_bytes(a->phases.at + row * period, period * sizeof(uint64_t), 0);
}

uint32_t peal_assembler_phases(struct peal_assembler *a, const uint64_t *values)
{
    uint32_t period = a->header.period;
    if (a->status != PEAL_OK)
        return PEAL_NONE;
    uint64_t hash = peal_hash_bytes(values, period * sizeof *values, 0);
    uint32_t row = find_row(a, &a->phase_index, hash, same_phases, values);
    if (row != PEAL_NONE)
        return row * period;
    row = (uint32_t)(a->phases.len / period);
    if (!peal_vec_reserve(&a->phases, period)) {
        peal_assembler_no_memory(a);
        return PEAL_NONE;
    }
    memcpy(a->phases.at + a->phases.len, values, period * sizeof *values);
    a->phases.len += period;
    add_row(a, &a->phase_index, row, hash_phases);
    return row * period;
}

void peal_assembler_len(struct peal_assembler *a, uint32_t rank, uint32_t buf, uint64_t len)
{
    PUSH(a, own_lens, ((struct own_len){rank, buf, len}));
}

void peal_assembler_at_least(struct peal_assembler *a, uint32_t buf, uint64_t len)
{
    if (a->status == PEAL_OK && a->lens.at[buf] < len)
        a->lens.at[buf] = len;
}

void peal_assembler_alias(struct peal_assembler *a, uint32_t part, uint32_t whole)
{
    if (a->status == PEAL_OK)
        a->bufs.at[part].alias = whole;
}

void peal_assembler_set_cols(struct peal_assembler *a, uint32_t buf, uint32_t cols)
{
    if (a->status == PEAL_OK)
        a->bufs.at[buf].cols = cols;
}

uint32_t peal_assembler_cols(const struct peal_assembler *a, uint32_t buf)
{
    if (buf < a->bufs.len)
        return a->bufs.at[buf].cols;
    return 0;
}

uint32_t peal_assembler_cells(const struct peal_assembler *a, uint32_t signal)
{
    if (signal < a->signals.len)
        return a->signals.at[signal].cells;
    return 0;
}

enum peal_signal_kind peal_assembler_signal_kind(const struct peal_assembler *a, uint32_t signal)
{
    if (signal >= a->signals.len)
        return PEAL_SIGNAL_ONE_WRITER;
    return (enum peal_signal_kind)a->signals.at[signal].kind;
}
