/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, parts of them, tiles and cells: from an expression to an operand. */
#include "plan/make/maker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void peal_inst_no_memory(struct instantiation *t)
{
    if (t->status == PEAL_OK) {
        t->status = PEAL_NO_MEMORY;
        peal_diag_error(t->diags, t->pos, "out of memory");
    }
}

enum peal_dtype peal_inst_dtype(const struct instantiation *t, struct peal_elem elem)
{
    enum peal_dtype dtype;
    if (elem.generic)
        dtype = t->bind->dtype;
    else
        dtype = elem.dtype;
    if (elem.wide && peal_dtype_is_narrow(dtype))
        return PEAL_F32;
    return dtype;
}

uint32_t peal_inst_buf(struct instantiation *t, const struct peal_buf_spec *spec, bool stable)
{
    uint32_t buf = peal_assembler_buf(t->a, spec);
    if (!peal_vec_push(&t->kinds, (uint8_t)spec->kind) || !peal_vec_push(&t->stable, stable))
        peal_inst_no_memory(t);
    return buf;
}

/* Part a of k of n elements: floor(a n / k) up to floor((a + 1) n / k). n / k is remembered, since
 * a loop asks for all parts of one whole; if it is exact, no further division is needed. */
static void find_bounds(struct instantiation *t, uint64_t a, uint64_t n, uint64_t k, int64_t *from,
                        int64_t *len)
{
    struct known_quotient *known = &t->known_quotients[(n ^ k) % 8];
    uint64_t product, rest;
    if (known->n != n || known->k != k)
        *known = (struct known_quotient){n, k, n / k, n % k};
    if (known->rest == 0) {
        *from = (int64_t)(a * known->quotient);
        *len = (int64_t)known->quotient;
    } else if (!__builtin_mul_overflow(a, n, &product)) {
        *from = (int64_t)(product / k);
        rest = product % k;
        *len = (int64_t)(known->quotient + (rest + known->rest >= k));
    } else {
        *from = (int64_t)peal_size_part(a, n, k);
        *len = (int64_t)peal_size_part(a + 1, n, k) - *from;
    }
}

/* Narrows `extent` elements from *first on. False: outside, and reported. */
static bool narrow(struct instantiation *t, const struct peal_expr *e, const struct peal_slice *s,
                   uint64_t *first, uint64_t *extent)
{
    int64_t n = (int64_t)*extent, from = 0, len = n;
    if (s->kind == PEAL_SLICE_ALL)
        return true;
    int64_t a = peal_inst_int(t, s->a), b = peal_inst_int_or(t, s->b, 1);
    if (t->status != PEAL_OK)
        return false;
    if (s->kind == PEAL_SLICE_PART) {
        if (b <= 0 || a < 0 || a >= b)
            return peal_inst_fail(t, e->pos, "there is no part %" PRId64 " of %" PRId64, a, b);
        find_bounds(t, (uint64_t)a, (uint64_t)n, (uint64_t)b, &from, &len);
    } else {
        from = a;
        if (s->kind == PEAL_SLICE_INDEX)
            len = 1;
        else
            len = b;
    }
    bool inside = from >= 0 && len >= 0 && from <= n && len <= n - from;
    bool tolerable =
        t->bind->lenient && from >= 0 && len >= 0 && from < INT64_MAX / 64 && len < INT64_MAX / 64;
    if (!inside && !tolerable)
        return peal_inst_fail(t, e->pos,
                              "%" PRId64 " elements from %" PRId64 " on are outside %" PRId64, len,
                              from, n);
    *first += (uint64_t)from;
    *extent = (uint64_t)len;
    return true;
}

static bool narrow_rows(struct instantiation *t, const struct peal_expr *e,
                        const struct peal_slice *s, struct part *p)
{
    uint64_t first = p->row, extent = p->rows;
    if (!narrow(t, e, s, &first, &extent))
        return false;
    if (first > UINT32_MAX || extent > UINT32_MAX)
        return peal_inst_fail(t, e->pos, "a part has at most %u rows", UINT32_MAX);
    p->row = (uint32_t)first;
    p->rows = (uint32_t)extent;
    return true;
}

static bool narrow_part(struct instantiation *t, const struct peal_expr *e, struct part *p)
{
    if (p->dims == 1)
        return narrow(t, e, &e->slices[0], &p->first, &p->count);
    if (!narrow_rows(t, e, &e->slices[0], p))
        return false;
    if (e->nslices == 1) {
        if (e->slices[0].kind == PEAL_SLICE_INDEX)
            p->dims = 1; /* a row */
        return true;
    }
    if (!narrow(t, e, &e->slices[1], &p->first, &p->count))
        return false;
    if (e->slices[0].kind == PEAL_SLICE_INDEX)
        p->dims = 1;
    return true;
}

/* Written field by field, once: this is done for every operand of every op. */
void peal_inst_tile_part(const struct instantiation *t, const struct binding *b, struct part *out)
{
    if (b->in_slot) {
        out->ref.rank = b->message;
        out->ref.buf = PEAL_BUF_SLOT;
        out->ref.row = b->channel;
    } else {
        out->ref.rank = t->rank;
        out->ref.buf = (uint16_t)b->buf;
        out->ref.row = 0;
    }
    out->ref.dtype = (uint8_t)b->dtype;
    out->ref.pad = 0;
    out->ref.phases = PEAL_NONE;
    out->ref.offset = 0;
    if (b->rows)
        out->rows = b->rows;
    else
        out->rows = 1;
    out->count = b->cols;
    out->first = b->base;
    out->row = b->base_row;
    out->dims = b->rows ? 2 : 1;
    out->any_shape = false;
}

/* In place, a peer's part begins where that of the peer does, not where this rank's does. */
static void move_part(const struct instantiation *t, const struct binding *b, struct part *p)
{
    if (b->whole)
        p->first += peal_inst_part_start(t, p->ref.rank, b->whole) - b->base;
    else
        p->row += p->ref.rank - b->base_row;
}

/* The part without its byte offset. */
static bool find_part(struct instantiation *t, const struct peal_expr *e, struct part *out)
{
    if (e->kind == PEAL_EXPR_NAME) {
        const struct binding *b = &t->env[e->symbol->slot];
        if (!b->bound)
            return peal_inst_fail(t, e->pos, "'%s' has no value here", e->symbol->name);
        if (b->freed)
            return peal_inst_fail(t, e->pos, "'%s' was freed", e->symbol->name);
        if (b->is_posted)
            return peal_inst_fail(t, e->pos, "'%s' has not been received: 'wait %s' comes first",
                                  e->symbol->name, e->symbol->name);
        peal_inst_tile_part(t, b, out);
        return true;
    }
    if (!find_part(t, e->a, out))
        return false;
    if (e->kind == PEAL_EXPR_SLICE)
        return narrow_part(t, e, out);
    assert(e->kind == PEAL_EXPR_AT);
    out->ref.rank = peal_inst_peer(t, e->b).rank;
    if (t->status != PEAL_OK)
        return false;
    if (e->a->kind == PEAL_EXPR_NAME && t->env[e->a->symbol->slot].own_part)
        move_part(t, &t->env[e->a->symbol->slot], out);
    return true;
}

/* Elements per row in memory, if that is known; for parameters it is bound at launch. */
static bool row_stride(const struct instantiation *t, const struct part *p, uint64_t *out)
{
    if (p->ref.buf == PEAL_BUF_SLOT || t->kinds.at[p->ref.buf] == PEAL_BUF_PARAM)
        return false;
    *out = peal_assembler_cols(t->a, p->ref.buf);
    return *out != 0;
}

static void set_offset(const struct instantiation *t, struct part *p)
{
    uint64_t elements = p->first, stride;
    if (p->ref.buf != PEAL_BUF_SLOT) {
        p->ref.row = p->row;
        if (p->row && row_stride(t, p, &stride)) {
            elements += p->row * stride;
            p->ref.row = 0;
        }
    }
    p->ref.offset = elements * peal_dtype_size(p->ref.dtype);
}

/* The same place in the other phases of the launch period; everything except the offset must
 * agree. Rows of no elements have no offset, and which one it is does not matter. */
static bool set_phases(struct instantiation *t, const struct peal_expr *e, struct part *p)
{
    uint64_t offsets[PEAL_PLAN_MAX_PERIOD];
    offsets[0] = p->ref.offset;
    for (t->phase = 1; t->phase < (uint32_t)t->kernel->period; t->phase++) {
        struct part other;
        if (!find_part(t, e, &other))
            break;
        set_offset(t, &other);
        offsets[t->phase] = other.ref.offset;
        bool same_row = other.ref.row == p->ref.row || !p->count;
        if (other.ref.rank != p->ref.rank || !same_row || other.rows != p->rows ||
            other.count != p->count) {
            peal_inst_fail(t, e->pos, "only the place may depend on 'launch mod', not the shape");
            break;
        }
    }
    t->phase = 0;
    if (t->status == PEAL_OK)
        p->ref.phases = peal_assembler_phases(t->a, offsets);
    return t->status == PEAL_OK;
}

bool peal_inst_part(struct instantiation *t, const struct peal_expr *e, struct part *out)
{
    bool outer = t->saw_phase;
    t->saw_phase = false;
    bool ok = t->status == PEAL_OK && find_part(t, e, out);
    if (ok) {
        set_offset(t, out);
        if (t->saw_phase && t->phase == 0 && t->kernel->period > 1)
            ok = set_phases(t, e, out);
    }
    t->saw_phase |= outer;
    return ok;
}

static struct tile_buf *find_tile(struct instantiation *t, uint32_t slot, enum peal_dtype dtype,
                                  uint32_t cols)
{
    for (size_t i = 0; i < t->tiles.len; i++) {
        struct tile_buf *tile = &t->tiles.at[i];
        if (tile->slot == slot && tile->lane == t->lane && tile->dtype == dtype &&
            tile->cols == cols && !tile->busy)
            return tile;
    }
    return NULL;
}

enum { PEAL_TILE_NAME = 256 };

/* `tmp`, `tmp_1`, ...: unlike every other name in the lane. */
static void name_tile(const struct instantiation *t, const struct peal_symbol *symbol,
                      char out[static PEAL_TILE_NAME])
{
    const char *base = symbol ? symbol->name : "tmp";
    uint32_t slot = symbol ? symbol->slot : PEAL_NONE;
    uint32_t number = 0;
    for (size_t i = 0; i < t->tiles.len; i++)
        number += t->tiles.at[i].slot == slot && t->tiles.at[i].lane == t->lane;
    snprintf(out, PEAL_TILE_NAME, "%s", base);
    if (number)
        snprintf(out, PEAL_TILE_NAME, "%.240s_%u", base, number);
    while (peal_assembler_has_name(t->a, out, t->lane))
        snprintf(out, PEAL_TILE_NAME, "%.240s_%u", base, ++number);
}

struct part peal_inst_tile(struct instantiation *t, const struct peal_symbol *symbol,
                           enum peal_dtype dtype, const struct part *shape)
{
    uint32_t slot = PEAL_NONE;
    if (symbol)
        slot = symbol->slot;
    uint32_t cols = 0;
    if (shape->dims == 2)
        cols = (uint32_t)shape->count;
    struct part p = {.rows = shape->rows, .count = shape->count, .dims = shape->dims};
    struct tile_buf *tile = find_tile(t, slot, dtype, cols);
    if (!tile) {
        char name[PEAL_TILE_NAME];
        name_tile(t, symbol, name);
        struct peal_buf_spec spec = {
            .name = name,
            .kind = PEAL_BUF_TILE,
            .dtype = dtype,
            .param = PEAL_NONE,
            .alias = PEAL_NONE,
            .cols = cols,
            .lane = t->lane,
        };
        struct tile_buf made = {slot, t->lane, peal_inst_buf(t, &spec, false), cols, dtype, false};
        if (t->status != PEAL_OK || !peal_vec_push(&t->tiles, made)) {
            peal_inst_no_memory(t);
            return p;
        }
        tile = &t->tiles.at[t->tiles.len - 1];
    }
    tile->busy = !symbol;
    peal_assembler_at_least(t->a, tile->buf, shape->rows * shape->count);
    p.ref = peal_ref_make(t->rank, tile->buf, dtype, 0);
    return p;
}

/* Signal, rank and index without phases. */
static bool find_cell(struct instantiation *t, const struct peal_expr *e, struct cell_ref *out,
                      int64_t *index)
{
    if (e->kind == PEAL_EXPR_NAME) {
        const struct binding *b = &t->env[e->symbol->slot];
        if (!b->bound)
            return peal_inst_fail(t, e->pos, "signal '%s' is not declared here", e->symbol->name);
        *out = (struct cell_ref){t->rank, b->signal, 0, PEAL_NONE};
        *index = 0;
        return true;
    }
    if (!find_cell(t, e->a, out, index))
        return false;
    if (e->kind == PEAL_EXPR_AT) {
        out->rank = peal_inst_peer(t, e->b).rank;
        return t->status == PEAL_OK;
    }
    *index = peal_inst_int(t, e->slices[0].a);
    return t->status == PEAL_OK;
}

bool peal_inst_cell(struct instantiation *t, const struct peal_expr *e, struct cell_ref *out)
{
    uint64_t numbers[PEAL_PLAN_MAX_PERIOD];
    t->saw_phase = false;
    for (t->phase = 0; t->phase < (uint32_t)t->kernel->period; t->phase++) {
        int64_t index;
        struct cell_ref cell;
        if (!find_cell(t, e, &cell, &index))
            break;
        uint32_t cells = peal_assembler_cells(t->a, cell.signal);
        if (index < 0 || index >= UINT32_MAX / 2 || (index >= cells && !t->bind->lenient)) {
            peal_inst_fail(t, e->pos, "cell %" PRId64 " is outside a signal of %u cells", index,
                           cells);
            break;
        }
        cell.index = (uint32_t)index;
        numbers[t->phase] = peal_assembler_cell(t->a, cell.signal, cell.index);
        if (t->phase == 0)
            *out = cell;
        else if (cell.rank != out->rank)
            peal_inst_fail(t, e->pos, "the rank may not depend on 'launch mod'");
        if (!t->saw_phase)
            break;
    }
    bool phased = t->saw_phase && t->kernel->period > 1;
    t->phase = 0;
    t->saw_phase = false;
    if (t->status == PEAL_OK && phased)
        out->phases = peal_assembler_phases(t->a, numbers);
    return t->status == PEAL_OK;
}
