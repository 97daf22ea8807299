/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a rank become calls of peal/record.h.
 *
 * Lanes. By core, all that a block does is one lane, in the order of the text. By pipe, every block has
 * a lane per pipe: an op runs on the pipe that the table gives it, after S issued it and after what its
 * pipe did before. set_flag and wait_flag are flags between lanes; a barrier of all pipes makes S wait
 * for all of them; a barrier of one pipe orders nothing, because a pipe runs in order anyway. A notify
 * and a wait are done by S.
 *
 * What is read here was written by a process that ran somebody's code: lengths, numbers and strings are
 * checked. */
#include "cli/record/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STRINGS = 8192, MAX_SPANS = 64 };

struct decoder {
    struct recorded *all;
    struct peal_record *record;
    uint32_t rank, block;
    bool by_pipe, ended;
    size_t at;
    const char **strings;
    uint32_t nstrings;
    const struct rec_event *event;
    struct recorded_line frame;          /* the user's innermost one of those that were reported */
    uint64_t first_addresses[MAX_SPANS]; /* of its spans, before a block's own memory was chosen */
};

static const char *string(const struct decoder *d, int64_t number)
{
    return number > 0 && number <= d->nstrings ? d->strings[number - 1] : NULL;
}

static uint32_t lane_of(const struct decoder *d, uint32_t pipe)
{
    if (!d->by_pipe)
        return pipe == REC_PIPE_DMA ? REC_MAX_BLOCKS + d->block : d->block;
    return d->block * REC_PIPES + pipe;
}

static void set_position(struct decoder *d)
{
    const struct rec_event *e = d->event;
    if (e->kind == REC_REFUSE && d->frame.line) {
        peal_record_at(d->record, d->frame.file, d->frame.line);
        return;
    }
    const char *file = string(d, e->file);
    uint32_t line = e->line;
    if (!e->file && e->pc) {
        const struct recorded_line *place = peal_compile_place(d->all->compiled, e->pc);
        file = place ? place->file : d->all->path;
        line = place ? place->line : 0;
    } else if (e->file && (!file || !*file)) {
        file = d->all->path;
    }
    peal_record_at(d->record, file, line);
}

/* Makes `pipe` the current lane, for an op that is issued now. */
static void issue(struct decoder *d, uint32_t pipe)
{
    uint32_t lane = lane_of(d, pipe);
    if (d->by_pipe || pipe == REC_PIPE_DMA)
        peal_record_order(d->record, lane_of(d, REC_PIPE_S), lane);
    peal_record_lane(d->record, lane,
                     d->by_pipe || pipe == REC_PIPE_DMA ? peal_pipe_names[pipe] : NULL);
}

/* S waits for all pipes of its block. */
static void drain(struct decoder *d)
{
    for (uint32_t pipe = 0; d->by_pipe && pipe < REC_PIPES; pipe++) {
        if (pipe != REC_PIPE_S && pipe != REC_PIPE_DMA)
            peal_record_order(d->record, lane_of(d, pipe), lane_of(d, REC_PIPE_S));
    }
}

/* All blocks of the rank wait for each other: a flag for each two of them, counted up each time. */
static void sync_blocks(struct decoder *d)
{
    uint32_t blocks = (uint32_t)d->all->options->blocks, own = lane_of(d, REC_PIPE_S);
    uint32_t width = d->by_pipe ? REC_PIPES : 1;
    drain(d);
    issue(d, REC_PIPE_S);
    for (uint32_t i = 0; i < 2 * blocks; i++) {
        uint32_t other = i % blocks * width + (d->by_pipe ? REC_PIPE_S : 0);
        if (other == own)
            continue;
        if (i < blocks)
            peal_record_flag_set(d->record, own, other, 0);
        else
            peal_record_flag_wait(d->record, other, own, 0);
    }
}

static void refuse(struct decoder *d, const char *why)
{
    peal_record_refuse(d->record, why ? why : "the recording cannot be read");
    d->ended = true;
}

/* Is it in core memory, but beyond its end? Races are found there all the same, and nothing is proved. */
static void check_core(struct decoder *d, uint64_t address, const struct peal_record_span *span)
{
    uint64_t offset = (address - REC_CORE_ADDRESS) % REC_CORE_STRIDE;
    uint64_t space = (address - REC_CORE_ADDRESS) / REC_CORE_STRIDE;
    uint64_t row = span->count * peal_dtype_size(span->dtype);
    uint64_t end = offset + (span->rows > 1 ? (span->rows - 1) * span->stride : 0) + row;
    char where[512] = "";
    if (address < REC_CORE_ADDRESS || space >= REC_SPACES || d->all->beyond ||
        end <= d->all->pipes->memory[space])
        return;
    const char *file = string(d, d->event->file);
    if (file)
        snprintf(where, sizeof where, "%s:%u: ", file, d->event->line);
    struct peal_text why = {0};
    peal_text_printf(&why,
                     "%sa tile is at 0x%" PRIx64 " to 0x%" PRIx64 " of '%s', which has 0x%" PRIx64
                     " bytes",
                     where, offset, end - 1, peal_space_names[space], d->all->pipes->memory[space]);
    d->all->beyond = peal_arena_copy(d->all->cli->arena, peal_text_get(&why), why.len);
    peal_text_release(&why);
}

/* Where a core's own memory is: that of each block is its own. */
static uint64_t core_address(const struct decoder *d, uint64_t address)
{
    uint64_t end = REC_CORE_ADDRESS + REC_SPACES * REC_CORE_STRIDE;
    if (address < REC_CORE_ADDRESS || address >= end)
        return address;
    return address + d->block * REC_SPACES * REC_CORE_STRIDE;
}

static bool take_spans(struct decoder *d, const struct rec_span *from, uint32_t n,
                       struct peal_record_span *out)
{
    for (uint32_t i = 0; i < n; i++) {
        struct rec_span s;
        memcpy(&s, from + i, sizeof s);
        if (s.dtype > PEAL_U64)
            return false;
        d->first_addresses[i] = s.address;
        out[i] = (struct peal_record_span){.address = core_address(d, s.address),
                                           .count = s.count,
                                           .stride = s.stride,
                                           .rows = s.rows,
                                           .dtype = (enum peal_dtype)s.dtype,
                                           .constant = s.constant,
                                           .value = s.value};
    }
    return true;
}

static void wait_for(struct decoder *d, const struct peal_record_span *cell)
{
    static const enum peal_record_relation relations[] = {[REC_EQ] = PEAL_RECORD_EQ,
                                                          [REC_NE] = PEAL_RECORD_NE,
                                                          [REC_GT] = PEAL_RECORD_GT,
                                                          [REC_GE] = PEAL_RECORD_GE};
    if (d->event->b < 0 || d->event->b > REC_GE) {
        refuse(d, "a wait for a signal that is less than something");
        return;
    }
    peal_record_wait(d->record, cell->address, (uint32_t)peal_dtype_size(cell->dtype),
                     relations[d->event->b], d->event->a, 0);
}

static void flag(struct decoder *d)
{
    const struct rec_event *e = d->event;
    if (!d->by_pipe)
        return;
    if (e->a < 0 || e->a >= REC_PIPES || e->b < 0 || e->b >= REC_PIPES || e->c < 0 ||
        e->c > UINT32_MAX) {
        refuse(d, "a flag between pipes that do not exist");
        return;
    }
    uint32_t from = lane_of(d, (uint32_t)e->a), to = lane_of(d, (uint32_t)e->b);
    if (e->kind == REC_FLAG_SET) {
        issue(d, (uint32_t)e->a);
        peal_record_flag_set(d->record, from, to, (uint32_t)e->c);
    } else {
        issue(d, (uint32_t)e->b);
        peal_record_flag_wait(d->record, from, to, (uint32_t)e->c);
    }
}

static const char *file_of(const struct decoder *d, uint32_t *line)
{
    const struct recorded_line *place = peal_compile_place(d->all->compiled, d->event->pc);
    *line = place ? place->line : 0;
    return place ? place->file : d->all->path;
}

/* Notes the bytes of a span, rows and the gaps between them. */
static void note_bytes(struct decoder *d, const struct peal_record_span *span, bool known)
{
    uint64_t row = span->count * peal_dtype_size(span->dtype);
    uint64_t rows = span->rows ? span->rows : 1, stride = span->stride ? span->stride : row;
    struct used_bytes used = {.lo = span->address, .hi = span->address + (rows - 1) * stride + row};
    if (span->constant || !d->all->has_contents)
        return;
    if (span->address < peal_signature_window(0))
        used.space = d->rank + 1;
    used.file = file_of(d, &used.line);
    bool kept = known ? peal_vec_push(&d->all->known, used) : peal_vec_push(&d->all->written, used);
    if (!kept)
        refuse(d, "out of memory");
}

/* Contents of a window are known to the kernel's own loads only. In proofs memory is zero at first: an
 * op that uses bytes of other contents is refused. */
static void check_contents(struct decoder *d, const struct peal_record_span *span)
{
    const struct signature *s = d->all->signature;
    uint64_t row = span->count * peal_dtype_size(span->dtype);
    uint64_t rows = span->rows ? span->rows : 1, stride = span->stride ? span->stride : row;
    uint64_t lo = span->address, hi = lo + (rows - 1) * stride + row;
    for (uint32_t i = 0; i < s->len * d->all->ranks && !span->constant; i++) {
        const struct signature_item *item = &s->items[i / d->all->ranks];
        uint32_t rank = i % d->all->ranks;
        if (item->kind != SIGNATURE_MEMORY || item->memory != PEAL_RECORD_WINDOW ||
            !item->contents.text)
            continue;
        uint64_t bytes = peal_signature_bytes(item, d->all->ranks);
        uint64_t at = peal_signature_address(s, i / d->all->ranks, rank, d->all->ranks);
        uint64_t skip = item->contents.len < bytes * d->all->ranks ? 0 : bytes * rank;
        if (lo < at || lo - at >= bytes)
            continue;
        for (uint64_t k = lo - at; k < hi - at && k < bytes; k++) {
            if (skip + k < item->contents.len && item->contents.text[skip + k]) {
                refuse(d, "an operation uses contents that --input gives: only the kernel's own "
                          "loads may");
                return;
            }
        }
    }
}

static int compare_bytes(const void *a, const void *b)
{
    const struct used_bytes *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Joins sorted ranges that touch each other. */
static size_t join_bytes(struct used_bytes *at, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct used_bytes *last = kept ? &at[kept - 1] : NULL;
        if (!last || last->space != at[i].space || last->hi < at[i].lo)
            at[kept++] = at[i];
        else if (at[i].hi > last->hi)
            last->hi = at[i].hi;
    }
    return kept;
}

void peal_decode_check_known(struct recorded *all, struct peal_record *record)
{
    if (all->written.len && all->known.len) {
        qsort(all->written.at, all->written.len, sizeof *all->written.at, compare_bytes);
        all->written.len = join_bytes(all->written.at, all->written.len);
    }
    for (size_t i = 0; i < all->known.len; i++) {
        const struct used_bytes *load = &all->known.at[i];
        size_t lo = 0, hi = all->written.len; /* the first range that ends after the load begins */
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            const struct used_bytes *w = &all->written.at[mid];
            if (w->space < load->space || (w->space == load->space && w->hi <= load->lo))
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo == all->written.len || all->written.at[lo].space != load->space ||
            all->written.at[lo].lo >= load->hi)
            continue;
        peal_record_at(record, load->file, load->line);
        peal_record_refuse(record,
                           "the kernel reads memory here that it also writes: what it would "
                           "find is not known");
        break;
    }
    all->written.len = all->known.len = 0;
}

static void read_scalar(struct decoder *d, const struct peal_record_span *span)
{
    if (!d->event->a) {
        refuse(d,
               "the kernel reads memory here and may act on what it finds: --input NAME=FILE gives "
               "the contents of a parameter or window, if the kernel does not write it");
        return;
    }
    d->all->acts_on_data = true;
    note_bytes(d, span, true);
    issue(d, REC_PIPE_S);
    peal_record_read(d->record, span);
}

/* The core memory that an op reads, or the vector unit's. */
static uint32_t source_space(const struct decoder *d)
{
    for (uint32_t i = d->event->ndst; i < (uint32_t)d->event->ndst + d->event->nsrc; i++) {
        uint64_t address = d->first_addresses[i];
        if (address >= REC_CORE_ADDRESS &&
            address < REC_CORE_ADDRESS + REC_SPACES * REC_CORE_STRIDE)
            return (uint32_t)((address - REC_CORE_ADDRESS) / REC_CORE_STRIDE);
    }
    return REC_VEC;
}

static void data_op(struct decoder *d, const struct peal_record_span *spans)
{
    const struct rec_event *e = d->event;
    const char *op = string(d, e->op), *function = string(d, e->c);
    if (!op || (e->kind != REC_COPY && !function) || e->ndst < 1 ||
        (e->kind != REC_COMPUTE && (e->ndst != 1 || e->nsrc != 1))) {
        refuse(d, NULL);
        return;
    }
    issue(d, peal_pipes_find(d->all->pipes, op, source_space(d)));
    if (e->kind == REC_COPY)
        peal_record_copy(d->record, &spans[0], &spans[1]);
    else if (e->kind == REC_ACCUMULATE)
        peal_record_accumulate(d->record, function, &spans[0], &spans[1]);
    else
        peal_record_compute(d->record, function, spans, e->ndst, spans + e->ndst, e->nsrc);
}

/* Functions of headers are not what a reader looks for, unless there is nothing else. */
static void take_frame(struct decoder *d)
{
    const struct recorded_line *place = peal_compile_place(d->all->compiled, d->event->pc);
    if (place && (!d->frame.line || (place->is_users && !d->frame.is_users)))
        d->frame = *place;
}

static void decode_event(struct decoder *d, const struct peal_record_span *spans)
{
    const struct rec_event *e = d->event;
    set_position(d);
    for (uint32_t i = 0; i < (uint32_t)e->ndst + e->nsrc; i++) {
        if (!spans[i].constant)
            check_core(d, d->first_addresses[i], &spans[i]);
    }
    for (uint32_t i = 0; i < e->ndst; i++)
        note_bytes(d, &spans[i], false);
    for (uint32_t i = 0; d->all->has_contents && e->kind != REC_READ && !d->ended &&
                         i < (uint32_t)e->ndst + e->nsrc;
         i++)
        check_contents(d, &spans[i]);
    if (d->ended)
        return;
    if (d->all->barrier_line && e->line == d->all->barrier_line && string(d, e->file) &&
        strcmp(string(d, e->file), d->all->barrier_file) == 0)
        drain(d);
    switch ((enum rec_kind)e->kind) {
    case REC_COPY:
    case REC_COMPUTE:
    case REC_ACCUMULATE:
        data_op(d, spans);
        break;
    case REC_READ:
        read_scalar(d, spans);
        break;
    case REC_WRITE:
        issue(d, REC_PIPE_S);
        peal_record_write(d->record, spans, &spans[1].value);
        break;
    case REC_NOTIFY:
        if (d->all->pipes->drains_before)
            drain(d);
        issue(d, REC_PIPE_S);
        peal_record_notify(d->record, spans->address, (uint32_t)peal_dtype_size(spans->dtype),
                           e->b ? PEAL_RECORD_SET : PEAL_RECORD_ADD, e->a, 0);
        if (d->all->pipes->drains_after)
            drain(d);
        break;
    case REC_WAIT:
        issue(d, e->c ? REC_PIPE_DMA : REC_PIPE_S);
        wait_for(d, spans);
        break;
    case REC_FLAG_SET:
    case REC_FLAG_WAIT:
        flag(d);
        break;
    case REC_BARRIER:
        if (e->a == REC_PIPE_ALL)
            drain(d);
        else if (e->a == REC_PIPE_DMA)
            peal_record_order(d->record, lane_of(d, REC_PIPE_DMA), lane_of(d, REC_PIPE_S));
        break;
    case REC_BLOCK:
        if (e->a < 0 || e->a >= REC_MAX_BLOCKS)
            refuse(d, NULL);
        d->block = (uint32_t)e->a;
        break;
    case REC_JOIN:
        peal_record_join(d->record);
        break;
    case REC_FRAME:
        take_frame(d);
        break;
    case REC_REFUSE:
        refuse(d, string(d, e->c));
        break;
    case REC_POLLED:
        d->all->polls = true;
        break;
    case REC_CLOCK:
        d->all->reads_clock = true;
        break;
    case REC_BLOCKS:
        sync_blocks(d);
        break;
    case REC_END:
        d->ended = true;
        break;
    case REC_STRING:
    case REC_KINDS:
        refuse(d, NULL);
        break;
    }
}

/* A string of the stream. False: it is not whole. */
static bool take_string(struct decoder *d, const struct recording *from, int64_t len)
{
    uint64_t padded = peal_size_align((uint64_t)len, 8);
    if (len < 0 || padded > from->len - d->at || d->nstrings == MAX_STRINGS)
        return false;
    d->strings[d->nstrings] =
        peal_arena_copy(d->all->cli->arena, (const char *)from->at + d->at, (size_t)len);
    d->at += padded;
    return d->strings[d->nstrings++] != NULL;
}

/* Takes one event and its spans. False: it is not whole. */
static bool take_event(struct decoder *d, const struct recording *from)
{
    struct peal_record_span spans[MAX_SPANS] = {{0}};
    struct rec_event e;
    if (from->len - d->at < sizeof e)
        return false;
    memcpy(&e, from->at + d->at, sizeof e);
    d->at += sizeof e;
    if (e.kind == REC_STRING)
        return take_string(d, from, e.a);
    uint32_t n = (uint32_t)e.ndst + e.nsrc;
    bool needs_two = e.kind == REC_WRITE,
         needs_one = e.kind == REC_READ || e.kind == REC_NOTIFY || e.kind == REC_WAIT;
    if (e.kind >= REC_KINDS || n > MAX_SPANS || n * sizeof(struct rec_span) > from->len - d->at ||
        (needs_two && n != 2) || (needs_one && n != 1))
        return false;
    if (!take_spans(d, (const struct rec_span *)(const void *)(from->at + d->at), n, spans))
        return false;
    d->at += n * sizeof(struct rec_span);
    d->event = &e;
    decode_event(d, spans);
    return true;
}

void peal_decode_rank(struct recorded *all, uint32_t rank, bool by_pipe, struct peal_record *record)
{
    const struct recording *from = &all->at[rank];
    struct decoder d = {.all = all, .record = record, .rank = rank, .by_pipe = by_pipe};
    d.strings = peal_arena_alloc(all->cli->arena, MAX_STRINGS * sizeof *d.strings);
    peal_record_rank(record, rank);
    while (d.strings && !d.ended && from->at && d.at < from->len && take_event(&d, from))
        ;
    if (d.ended)
        return;
    struct peal_text why = {0};
    peal_text_printf(&why, "'%s' on rank %u: %s", all->entry, rank,
                     from->error ? from->error : "its recording ends before the kernel does");
    peal_record_refuse(record, peal_text_get(&why));
    peal_text_release(&why);
}
