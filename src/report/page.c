/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the page's description; see page.h.
 *
 * The page owns everything. Texts are stored once each and named by their index (0: the empty
 * text); all other parts are rows of vectors that name each other by index. Adding is sticky: after
 * the first failed allocation `failed` is set, nothing more is added, and indices are 0. The caller
 * checks once, at the end.
 *
 * Pages stay small however long a run was. From the expected number of bars, peal_page_expect
 * chooses a cell of the time axis. Bars shorter than a cell that begin in the same cell of a track
 * become one, with the sums of their times and bytes and the category that took longest; `open` has
 * the bar of each track that is being extended. Of arrows, each track keeps every n-th. Whatever is
 * marked KEEP or BAD is kept as it is. The numbers of bars, arrows, steps and hops seen are
 * counted, so that the page can say how many it left out.
 */
#include "report/page.h"

#include "base/base.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUSH(page, vec, value)                                                                     \
    ((page)->failed = (page)->failed || !peal_vec_push(&(page)->vec, value))

/* The index of the last row of a vector; 0 after a failure. */
static uint32_t last_row(const struct peal_page *page, size_t len)
{
    return page->failed ? 0 : (uint32_t)(len - 1);
}

void peal_page_init(struct peal_page *page, enum peal_page_kind kind, const char *title)
{
    *page = (struct peal_page){.kind = kind, .arrow_every = 1};
    peal_arena_init(&page->arena, 0);
    PUSH(page, texts, "");
    struct peal_page_place nowhere = {.source = PEAL_PAGE_NONE, .via = PEAL_PAGE_NONE};
    PUSH(page, places, nowhere);
    page->title = peal_page_text(page, title);
}

void peal_page_release(struct peal_page *page)
{
    for (size_t i = 0; i < page->tables.len; i++)
        peal_report_table_free(page->tables.at[i].table);
    peal_vec_release(&page->facts);
    peal_vec_release(&page->notes);
    peal_vec_release(&page->sources);
    peal_vec_release(&page->places);
    peal_vec_release(&page->tracks);
    peal_vec_release(&page->bars);
    peal_vec_release(&page->arrows);
    peal_vec_release(&page->steps);
    peal_vec_release(&page->memories);
    peal_vec_release(&page->cells);
    peal_vec_release(&page->accesses);
    peal_vec_release(&page->changes);
    peal_vec_release(&page->nodes);
    peal_vec_release(&page->links);
    peal_vec_release(&page->frames);
    peal_vec_release(&page->series);
    peal_vec_release(&page->path);
    peal_vec_release(&page->stalls);
    peal_vec_release(&page->plots);
    peal_vec_release(&page->curves);
    peal_vec_release(&page->tables);
    peal_vec_release(&page->reals);
    peal_vec_release(&page->texts);
    peal_vec_release(&page->open);
    peal_index_release(&page->text_index);
    peal_arena_release(&page->arena);
}

const char *peal_page_category_name(enum peal_page_category category)
{
    static const char *const names[] = {"copy", "compute", "accumulate", "notify", "wait",
                                        "send", "recv",    "transfer",   "other"};
    static_assert(sizeof names / sizeof names[0] == PEAL_BAR_CATEGORIES, "a name each");
    return names[category];
}

static uint64_t hash_text(const void *rows, uint32_t row)
{
    const char *text = ((const char *const *)rows)[row];
    return peal_hash_bytes(text, strlen(text), 0);
}

uint32_t peal_page_text(struct peal_page *page, const char *text)
{
    if (page->failed || !text || !*text)
        return 0;
    struct peal_index *index = &page->text_index;
    page->failed = !peal_index_reserve(index, hash_text, page->texts.at);
    if (page->failed)
        return 0;
    size_t at = peal_index_begin(index, hash_text(&text, 0));
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        uint32_t row = peal_index_row(index, at);
        if (strcmp(page->texts.at[row], text) == 0)
            return row;
    }
    const char *copy = peal_arena_copy(&page->arena, text, strlen(text));
    page->failed = !copy || page->texts.len >= UINT32_MAX || !peal_vec_push(&page->texts, copy);
    if (page->failed)
        return 0;
    uint32_t row = (uint32_t)(page->texts.len - 1);
    peal_index_put(index, at, row);
    return row;
}

static uint32_t format_text(struct peal_page *page, const char *format, va_list args)
{
    struct peal_text text = {0};
    peal_text_vprintf(&text, format, args);
    page->failed = page->failed || text.failed;
    uint32_t index = peal_page_text(page, peal_text_get(&text));
    peal_text_release(&text);
    return index;
}

uint32_t peal_page_printf(struct peal_page *page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    uint32_t index = format_text(page, format, args);
    va_end(args);
    return index;
}

const char *peal_page_get(const struct peal_page *page, uint32_t text)
{
    if (text < page->texts.len)
        return page->texts.at[text];
    return "";
}

void peal_page_verdict(struct peal_page *page, enum peal_tone tone, const char *verdict)
{
    page->tone = tone;
    page->verdict = peal_page_text(page, verdict);
}

void peal_page_headline(struct peal_page *page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    page->headline = format_text(page, format, args);
    va_end(args);
}

void peal_page_fact(struct peal_page *page, const char *label, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct peal_page_fact fact = {peal_page_text(page, label), format_text(page, format, args)};
    va_end(args);
    PUSH(page, facts, fact);
}

void peal_page_note(struct peal_page *page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    uint32_t note = format_text(page, format, args);
    va_end(args);
    PUSH(page, notes, note);
}

uint32_t peal_page_source(struct peal_page *page, const char *name, const char *text, size_t len)
{
    uint32_t name_text = peal_page_text(page, name);
    for (uint32_t i = 0; i < page->sources.len; i++)
        if (page->sources.at[i].name == name_text)
            return i;
    if (len > PEAL_PAGE_SOURCE_BYTES - page->source_bytes) {
        peal_page_note(page, "the source of '%s' is too long to be shown", name);
        len = 0;
    }
    struct peal_page_source source = {name_text, peal_arena_copy(&page->arena, text, len), len};
    page->failed = page->failed || !source.text;
    PUSH(page, sources, source);
    page->source_bytes += len;
    return last_row(page, page->sources.len);
}

uint32_t peal_page_place(struct peal_page *page, struct peal_page_place place)
{
    PUSH(page, places, place);
    return last_row(page, page->places.len);
}

uint32_t peal_page_track(struct peal_page *page, const char *label, uint32_t rank)
{
    return peal_page_track_of(page, "", label, rank);
}

uint32_t peal_page_track_of(struct peal_page *page, const char *group, const char *label,
                            uint32_t rank)
{
    struct peal_page_track track = {peal_page_text(page, label), rank, peal_page_text(page, group)};
    struct peal_page_open open = {0};
    PUSH(page, tracks, track);
    PUSH(page, open, open);
    return last_row(page, page->tracks.len);
}

void peal_page_expect(struct peal_page *page, uint64_t bars, uint64_t arrows, uint64_t horizon)
{
    if (bars > PEAL_PAGE_BARS && page->tracks.len) {
        uint64_t cells = PEAL_PAGE_BARS / page->tracks.len;
        page->join_width = horizon / (cells ? cells : 1) + 1;
    }
    if (arrows > PEAL_PAGE_ARROWS)
        page->arrow_every = (arrows + PEAL_PAGE_ARROWS - 1) / PEAL_PAGE_ARROWS;
}

static uint8_t longest_category(const struct peal_page_open *open)
{
    uint8_t best = 0;
    for (int i = 1; i < PEAL_BAR_CATEGORIES; i++) {
        if (open->busy[i] > open->busy[best])
            best = (uint8_t)i;
    }
    return best;
}

/* Joins the bar with the open one of its track, if both lie in the same cell of the axis. */
static bool join_bar(struct peal_page *page, struct peal_page_open *open,
                     const struct peal_page_bar *bar)
{
    if (!open->bar)
        return false;
    struct peal_page_bar *into = &page->bars.at[open->bar - 1];
    if (into->start / page->join_width != bar->start / page->join_width)
        return false;
    uint64_t length = bar->end - bar->start;
    open->busy[bar->category] += length;
    into->busy += length;
    into->bytes += bar->bytes;
    if (bar->end > into->end)
        into->end = bar->end;
    into->flags |= bar->flags;
    into->category = longest_category(open);
    into->count++;
    if (into->label != bar->label)
        into->label = 0;
    if (into->place != bar->place)
        into->place = 0;
    into->detail = 0;
    return true;
}

void peal_page_bar(struct peal_page *page, const struct peal_page_bar *bar)
{
    if (page->failed)
        return;
    assert(bar->track < page->tracks.len && bar->end >= bar->start);
    page->bars_seen++;
    struct peal_page_open *open = &page->open.at[bar->track];
    uint64_t length = bar->end - bar->start;
    bool joins = page->join_width > length && !(bar->flags & (PEAL_BAR_KEEP | PEAL_BAR_BAD));
    if (joins && join_bar(page, open, bar))
        return;
    struct peal_page_bar copy = *bar;
    copy.count = 1;
    copy.busy = length;
    PUSH(page, bars, copy);
    open->bar = 0;
    if (joins)
        open->bar = page->bars.len;
    memset(open->busy, 0, sizeof open->busy);
    open->busy[bar->category] = length;
}

void peal_page_arrow(struct peal_page *page, const struct peal_page_arrow *arrow)
{
    if (page->failed)
        return;
    assert(arrow->from_track < page->tracks.len && arrow->to_track < page->tracks.len);
    page->arrows_seen++;
    /* Each track starts its count elsewhere, so that the arrows kept are spread over time. */
    uint64_t number = page->open.at[arrow->from_track].arrows++ + arrow->from_track * UINT64_C(7);
    if (number % page->arrow_every == 0 || (arrow->flags & (PEAL_BAR_KEEP | PEAL_BAR_BAD)))
        PUSH(page, arrows, *arrow);
}

uint32_t peal_page_memory(struct peal_page *page, uint32_t rank, const char *name, uint64_t bytes,
                          uint32_t element)
{
    struct peal_page_memory memory = {rank, peal_page_text(page, name), bytes, element};
    PUSH(page, memories, memory);
    return last_row(page, page->memories.len);
}

uint32_t peal_page_cell(struct peal_page *page, uint32_t rank, const char *name,
                        const char *initial)
{
    struct peal_page_cell cell = {rank, peal_page_text(page, name), peal_page_text(page, initial)};
    PUSH(page, cells, cell);
    return last_row(page, page->cells.len);
}

void peal_page_step(struct peal_page *page, const struct peal_page_step *step)
{
    if (page->steps_seen++ >= PEAL_PAGE_STEPS)
        return;
    struct peal_page_step copy = *step;
    copy.first_change = page->changes.len;
    copy.accesses = copy.changes = 0;
    PUSH(page, steps, copy);
    struct peal_page_bar bar = {.start = page->steps_seen - 1,
                                .end = page->steps_seen,
                                .track = step->track,
                                .label = step->label,
                                .detail = step->detail,
                                .place = step->place,
                                .category = step->category,
                                .flags = step->flags};
    peal_page_bar(page, &bar);
}

void peal_page_access(struct peal_page *page, struct peal_page_access access)
{
    if (page->failed || page->steps_seen > PEAL_PAGE_STEPS)
        return;
    assert(page->steps.len && access.memory < page->memories.len && access.from <= access.to);
    PUSH(page, accesses, access);
    page->steps.at[page->steps.len - 1].accesses += !page->failed;
}

static void add_change(struct peal_page *page, struct peal_page_change change)
{
    if (page->failed || page->steps_seen > PEAL_PAGE_STEPS)
        return;
    PUSH(page, changes, change);
    if (page->steps.len)
        page->steps.at[page->steps.len - 1].changes += !page->failed;
}

void peal_page_change_memory(struct peal_page *page, uint32_t memory, uint64_t from, uint64_t to,
                             const char *value, bool quiet)
{
    add_change(page, (struct peal_page_change){.memory = memory,
                                               .cell = PEAL_PAGE_NONE,
                                               .from = from,
                                               .to = to,
                                               .value = peal_page_text(page, value),
                                               .quiet = quiet});
}

void peal_page_change_cell(struct peal_page *page, uint32_t cell, int64_t value)
{
    add_change(
        page, (struct peal_page_change){.memory = PEAL_PAGE_NONE,
                                        .cell = cell,
                                        .value = peal_page_printf(page, "%lld", (long long)value)});
}

uint32_t peal_page_node(struct peal_page *page, struct peal_page_node node)
{
    PUSH(page, nodes, node);
    return last_row(page, page->nodes.len);
}

void peal_page_link(struct peal_page *page, struct peal_page_link link)
{
    PUSH(page, links, link);
}

void peal_page_frame(struct peal_page *page, struct peal_page_frame frame)
{
    PUSH(page, frames, frame);
}

void peal_page_series(struct peal_page *page, const char *name, uint64_t start, uint64_t step,
                      const double *values, size_t count)
{
    struct peal_page_series series = {peal_page_text(page, name), start, step, page->reals.len,
                                      count};
    for (size_t i = 0; i < count; i++)
        PUSH(page, reals, values[i]);
    PUSH(page, series, series);
}

void peal_page_hop(struct peal_page *page, struct peal_page_hop hop)
{
    if (page->path_seen++ < PEAL_PAGE_PATH)
        PUSH(page, path, hop);
}

void peal_page_stall(struct peal_page *page, struct peal_page_stall stall)
{
    PUSH(page, stalls, stall);
}

uint32_t peal_page_plot(struct peal_page *page, const char *title, struct peal_page_axis x,
                        struct peal_page_axis y)
{
    struct peal_page_plot plot = {.title = peal_page_text(page, title),
                                  .x_label = peal_page_text(page, x.label),
                                  .y_label = peal_page_text(page, y.label),
                                  .x_unit = x.unit,
                                  .y_unit = y.unit,
                                  .x_log = x.log,
                                  .y_log = y.log};
    PUSH(page, plots, plot);
    return last_row(page, page->plots.len);
}

static void add_curve(struct peal_page *page, uint32_t plot, const char *name,
                      enum peal_page_curve_style style, uint32_t of)
{
    struct peal_page_curve curve = {
        plot, peal_page_text(page, name), (uint8_t)style, of, page->reals.len, 0};
    PUSH(page, curves, curve);
}

void peal_page_curve(struct peal_page *page, uint32_t plot, const char *name)
{
    add_curve(page, plot, name, PEAL_CURVE_POINTS, PEAL_PAGE_NONE);
}

void peal_page_closed_form(struct peal_page *page, uint32_t plot, const char *name, uint32_t of)
{
    add_curve(page, plot, name, PEAL_CURVE_CLOSED_FORM, of);
}

void peal_page_point(struct peal_page *page, double x, double y)
{
    PUSH(page, reals, x);
    PUSH(page, reals, y);
    if (!page->failed)
        page->curves.at[page->curves.len - 1].count++;
}

void peal_page_table(struct peal_page *page, const char *title, struct peal_report_table *table)
{
    struct peal_page_table entry = {peal_page_text(page, title), table};
    PUSH(page, tables, entry);
    if (page->failed)
        peal_report_table_free(table);
}

const char *peal_page_time(uint64_t ps, char buf[static 32])
{
    static const struct {
        uint64_t scale;
        const char *name;
    } units[] = {
        {1000000000000, "s"}, {1000000000, "ms"}, {1000000, "\xc2\xb5s"}, {1000, "ns"}, {1, "ps"}};
    size_t unit = 0;
    while (unit < 4 && ps < units[unit].scale)
        unit++;
    snprintf(buf, 32, "%.4g %s", (double)ps / (double)units[unit].scale, units[unit].name);
    return buf;
}

const char *peal_page_bytes(uint64_t bytes, char buf[static 32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; unit < 6 && value >= 1024; unit++)
        value /= 1024;
    snprintf(buf, 32, "%.4g %s", value, units[unit]);
    return buf;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    if (a < b)
        return -1;
    return a > b;
}

static int compare_bars(const void *a, const void *b)
{
    const struct peal_page_bar *x = a, *y = b;
    int order = compare_u64(x->track, y->track);
    if (!order)
        order = compare_u64(x->start, y->start);
    if (order)
        return order;
    return compare_u64(x->end, y->end);
}

static int compare_arrows(const void *a, const void *b)
{
    const struct peal_page_arrow *x = a, *y = b;
    int order = compare_u64(x->from, y->from);
    if (!order)
        order = compare_u64(x->to, y->to);
    if (!order)
        order = compare_u64(x->from_track, y->from_track);
    if (order)
        return order;
    return compare_u64(x->to_track, y->to_track);
}

void peal_page_sort(struct peal_page *page)
{
    if (page->bars.len)
        qsort(page->bars.at, page->bars.len, sizeof *page->bars.at, compare_bars);
    if (page->arrows.len)
        qsort(page->arrows.at, page->arrows.len, sizeof *page->arrows.at, compare_arrows);
}
