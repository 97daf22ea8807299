/* SPDX-License-Identifier: Apache-2.0 */
/* The emitted header and kernel, read back into a plan.
 *
 * From the writer, only the collective, the type and the lengths of buffers are used: places come
 * from the header's constants, cells and messages from the kernel's lines. On the way these are
 * checked: buffers and slots do not overlap and are within the window, no cell has two uses, every
 * wait names what launches really add to its cell, messages of a channel are numbered in order, and
 * the operations are the ones that this program knows. There are two passes over the lines: the
 * first counts what is added to each cell, the second makes the ops.
 */
#include "export/pto/read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- words ----------------------------------------------------------------------------------- */

void peal_pto_fail(struct pto_reader *r, const char *why)
{
    struct peal_pos pos = {&r->source, r->line, (uint32_t)(r->at - r->line_begin) + 1, 0};
    if (!r->failed)
        peal_diag_error(r->diags, pos, "%s", why);
    r->failed = true;
}

bool peal_pto_next_is(struct pto_reader *r, const char *text)
{
    size_t len = strlen(text);
    if ((size_t)(r->line_end - r->at) < len || memcmp(r->at, text, len) != 0)
        return false;
    r->at += len;
    return true;
}

void peal_pto_expect(struct pto_reader *r, const char *text)
{
    if (!r->failed && !peal_pto_next_is(r, text))
        peal_pto_fail(r, "not a line that is written here");
}

uint64_t peal_pto_number(struct pto_reader *r)
{
    uint64_t value = 0;
    const char *begin = r->at;
    for (; r->at < r->line_end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (value > (UINT64_MAX - 9) / 10)
            break;
        value = value * 10 + (uint64_t)(*r->at - '0');
    }
    if (r->at == begin)
        peal_pto_expect(r, "0");
    return value;
}

uint64_t peal_pto_below(struct pto_reader *r, uint64_t limit)
{
    uint64_t value = peal_pto_number(r);
    if (!r->failed && value >= limit)
        peal_pto_fail(r, "there is no such rank, buffer, cell or channel");
    if (r->failed)
        return 0;
    return value;
}

bool peal_pto_next_line(struct pto_reader *r, const char **text)
{
    if (!**text)
        return false;
    const char *end = strchr(*text, '\n');
    r->line_begin = r->at = *text;
    if (end)
        r->line_end = end;
    else
        r->line_end = *text + strlen(*text);
    r->line++;
    if (end)
        *text = end + 1;
    else
        *text = r->line_end;
    return true;
}

/* A place in the data, in elements. */
struct element_range {
    uint64_t start, len;
};

/* --- the header ------------------------------------------------------------------------------ */

static void read_constant(struct pto_reader *r)
{
    const struct {
        const char *name;
        uint64_t *out;
    } known[] = {{"int32_t kRanks = ", &r->ranks},
                 {"int32_t kBlocks = ", &r->blocks},
                 {"int64_t kPeriod = ", &r->period},
                 {"uint64_t kData = ", &r->data},
                 {"uint64_t kWindow = ", &r->window}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (peal_pto_next_is(r, known[i].name)) {
            *known[i].out = peal_pto_number(r);
            peal_pto_expect(r, ";");
            return;
        }
    }
    if (peal_pto_next_is(r, "uint64_t b")) {
        uint64_t buf = peal_pto_below(r, r->like->bufs.count);
        while (r->at < r->line_end && *r->at != ' ')
            r->at++;
        peal_pto_expect(r, " = ");
        r->starts[buf] = peal_pto_number(r);
        peal_pto_expect(r, ";");
    }
}

static void read_header(struct pto_reader *r, const char *text)
{
    while (!r->failed && peal_pto_next_line(r, &text)) {
        if (peal_pto_next_is(r, "constexpr "))
            read_constant(r);
    }
    bool sound = r->ranks == r->like->nranks && r->period == r->like->period && r->period > 0 &&
                 r->period <= PEAL_PLAN_MAX_PERIOD && r->blocks > 0 && r->data % PTO_LINE == 0 &&
                 r->data <= r->window && r->data / PTO_LINE < UINT32_MAX;
    if (!sound)
        peal_pto_fail(r, "the header's constants do not fit together");
    r->cells = (uint32_t)(r->data / PTO_LINE);
    r->line = 0;
}

/* --- the layout ------------------------------------------------------------------------------ */

static int by_start(const void *a, const void *b)
{
    const struct element_range *x = a, *y = b;
    if (x->start < y->start)
        return -1;
    return x->start > y->start;
}

static uint64_t longest(const struct peal_plan *plan, uint32_t buf)
{
    uint64_t len = 0;
    for (uint32_t r = 0; r < plan->nranks; r++)
        len = peal_size_max(len, peal_plan_len(plan, r, buf));
    return len;
}

static void check_layout(struct pto_reader *r)
{
    PEAL_VEC(struct element_range) all = {0};
    uint64_t size = peal_dtype_size((enum peal_dtype)r->like->dtype);
    bool good = true;
    for (uint32_t b = 0; b < r->like->bufs.count; b++) {
        struct element_range s = {r->starts[b], longest(r->like, b)};
        good = good && (s.len == 0 || peal_vec_push(&all, s));
    }
    for (size_t i = 0; i < r->channels.len; i++) {
        const struct pto_read_channel *c = &r->channels.at[i];
        struct element_range s = {c->slots, c->slot * c->depth};
        good = good && (s.len == 0 || peal_vec_push(&all, s));
    }
    if (all.len)
        qsort(all.at, all.len, sizeof *all.at, by_start);
    uint64_t end = 0;
    for (size_t i = 0; i < all.len; i++) {
        good = good && all.at[i].start >= end;
        end = all.at[i].start + all.at[i].len;
    }
    if (!good || end > (r->window - r->data) / size)
        peal_pto_fail(r, "buffers and slots overlap, or are outside the window");
    peal_vec_release(&all);
}

/* --- cells ----------------------------------------------------------------------------------- */

/* Consecutive cells of one kind are one signal. */
static void declare_signals(struct pto_reader *r)
{
    uint32_t count = 0, signals = 0, kind = 0;
    for (uint32_t c = 0; c <= r->cells; c++) {
        bool shared = false;
        uint64_t nwriters = 0;
        if (c < r->cells)
            nwriters = r->ranks;
        for (uint64_t q = 0; q < nwriters; q++)
            shared = shared || r->writer[peal_pto_cell_at(r, q, c)] == SEVERAL_WRITERS;
        uint32_t wanted = shared ? PEAL_SIGNAL_SHARED : PEAL_SIGNAL_ONE_WRITER;
        if (count && (c == r->cells || wanted != kind)) {
            (void)peal_assembler_signal(r->a, "cell", (enum peal_signal_kind)kind, count);
            signals++;
            count = 0;
        }
        if (c == r->cells)
            break;
        kind = wanted;
        r->signal[c] = signals;
        r->index[c] = count++;
    }
}

static void read_channels(struct pto_reader *r, const char *text)
{
    while (!r->failed && peal_pto_next_line(r, &text)) {
        if (!peal_pto_next_is(r, "constexpr Channel c"))
            continue;
        struct pto_read_channel c = {.number = (uint32_t)r->channels.len};
        uint64_t *const fields[] = {&c.sender, &c.receiver, &c.full,  &c.free,
                                    &c.depth,  &c.messages, &c.slots, &c.slot};
        if (peal_pto_number(r) != r->channels.len)
            peal_pto_fail(r, "channels are not in order");
        peal_pto_expect(r, " = {");
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            if (i)
                peal_pto_expect(r, ", ");
            *fields[i] = peal_pto_number(r);
        }
        peal_pto_expect(r, "};");
        bool sound = c.sender < r->ranks && c.receiver < r->ranks && c.full < r->cells &&
                     c.free < r->cells && c.full != c.free && c.depth > 0 && c.depth < 1 << 20 &&
                     c.slot < r->window;
        if (!r->failed && (!sound || r->of_channel[c.full] || r->of_channel[c.free]))
            peal_pto_fail(r, "a channel's numbers do not fit together");
        if (!r->failed)
            r->of_channel[c.full] = r->of_channel[c.free] = true;
        if (!r->failed && !peal_vec_push(&r->channels, c))
            peal_pto_fail(r, "out of memory");
    }
    r->line = 0;
}

/* --- the plan -------------------------------------------------------------------------------- */

static void declare_buffers(struct pto_reader *r)
{
    const struct peal_plan *plan = r->like;
    struct peal_plan *h = peal_assembler_header(r->a);
    h->period = plan->period;
    peal_export_copy_buffers(plan, r->a);
    peal_assembler_take_over(r->a, plan);
}

static void declare_channels(struct pto_reader *r)
{
    uint64_t depth = r->channels.len ? r->channels.at[0].depth : 2, slot = 1;
    for (size_t i = 0; i < r->channels.len; i++) {
        struct pto_read_channel *c = &r->channels.at[i];
        if (c->depth != depth)
            peal_pto_fail(r, "channels of different depths");
        if (c->slot > slot)
            slot = c->slot;
        c->number = peal_assembler_channel(r->a, "", (uint32_t)c->sender, (uint32_t)i,
                                           (uint32_t)c->receiver);
    }
    peal_assembler_channel_shape(r->a, (uint32_t)depth,
                                 slot * peal_dtype_size((enum peal_dtype)r->like->dtype));
}

/* The operations before the blocks are fixed: their text must match byte by byte. */
static void check_operations(struct pto_reader *r, const char *kernel, const char *name)
{
    struct peal_text fixed = {0};
    peal_pto_text("operations", name, &fixed);
    if (fixed.failed || !strstr(kernel, peal_text_get(&fixed)))
        peal_pto_fail(r, "these are not the operations that are known");
    peal_text_release(&fixed);
}

static bool prepare(struct pto_reader *r)
{
    uint64_t all = r->ranks * r->cells;
    r->totals = calloc(all * r->period + 1, sizeof *r->totals);
    r->writer = malloc((all + 1) * sizeof *r->writer);
    r->of_channel = calloc(r->cells + 1u, sizeof *r->of_channel);
    r->signal = calloc(r->cells + 1u, sizeof *r->signal);
    r->index = calloc(r->cells + 1u, sizeof *r->index);
    r->a = peal_assembler_new((uint32_t)r->ranks, 0, (uint32_t)r->ranks);
    if (!r->totals || !r->writer || !r->of_channel || !r->signal || !r->index || !r->a)
        return false;
    for (uint64_t i = 0; i < all; i++)
        r->writer[i] = NO_WRITER;
    return true;
}

static void release(struct pto_reader *r)
{
    for (size_t i = 0; i < r->channels.len; i++)
        peal_vec_release(&r->channels.at[i].counts);
    peal_vec_release(&r->channels);
    peal_vec_release(&r->refs);
    free(r->starts);
    free(r->totals);
    free(r->writer);
    free(r->of_channel);
    free(r->signal);
    free(r->index);
}

enum peal_status peal_pto_read(const char *header, const char *kernel, const char *name,
                               const struct peal_plan *like, struct peal_diags *diags,
                               struct peal_plan **out)
{
    struct pto_reader r = {.like = like, .diags = diags, .at = header, .line_begin = header};
    enum peal_status status = PEAL_INVALID;
    r.source = (struct peal_source){"the exported header", header, strlen(header)};
    r.starts = calloc(like->bufs.count + 1, sizeof *r.starts);
    if (!r.starts)
        return PEAL_NO_MEMORY;
    read_header(&r, header);
    r.source = (struct peal_source){"the exported kernel", kernel, strlen(kernel)};
    check_operations(&r, kernel, name);
    if (!r.failed && !prepare(&r)) {
        peal_assembler_free(r.a);
        release(&r);
        return PEAL_NO_MEMORY;
    }
    if (!r.failed)
        read_channels(&r, kernel);
    if (!r.failed)
        check_layout(&r);
    if (!r.failed)
        peal_pto_read_blocks(&r, kernel);
    if (!r.failed) {
        declare_buffers(&r);
        declare_signals(&r);
        declare_channels(&r);
        r.making = true;
        peal_pto_read_blocks(&r, kernel);
    }
    if (r.failed)
        peal_assembler_free(r.a);
    else
        status = peal_assembler_finish(r.a, diags, out);
    release(&r);
    return status;
}
