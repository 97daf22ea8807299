/* SPDX-License-Identifier: Apache-2.0 */
/* The page's description as JSON: what viewer/model.js reads.
 *
 * Lists of things are written as columns ("start":[...],"label":[...]), which is a third of the
 * size of one object each and reads straight into typed arrays. Texts are indices into one list.
 * Bars come sorted by track and start; their start is the distance from the bar before on that
 * track. A column that is all zero is left out; -1 stands for none.
 */
#include "report/page.h"

/* A column: `expr` for every element `it` of the vector. */
#define COLUMN(json, key, vec, expr)                                                               \
    do {                                                                                           \
        bool any_ = false;                                                                         \
        for (size_t i_ = 0; i_ < (vec).len && !any_; i_++) {                                       \
            const void *at_ = &(vec).at[i_];                                                       \
            any_ = expr(at_) != 0;                                                                 \
        }                                                                                          \
        if (!any_)                                                                                 \
            break;                                                                                 \
        peal_json_key((json), (key));                                                              \
        peal_json_array(json);                                                                     \
        for (size_t i_ = 0; i_ < (vec).len; i_++)                                                  \
            peal_json_int((json), expr(&(vec).at[i_]));                                            \
        peal_json_array_end(json);                                                                 \
    } while (0)

/* `field` of a thing as a column's number; PEAL_PAGE_NONE is -1. */
#define GETTER(name, type, field)                                                                  \
    static int64_t name(const void *at)                                                            \
    {                                                                                              \
        const type *it = at;                                                                       \
        return (int64_t)(it->field);                                                               \
    }
#define GETTER_OR_NONE(name, type, field)                                                          \
    static int64_t name(const void *at)                                                            \
    {                                                                                              \
        const type *it = at;                                                                       \
        return it->field == PEAL_PAGE_NONE ? -1 : (int64_t)it->field;                              \
    }

GETTER_OR_NONE(place_source, struct peal_page_place, source)
GETTER(place_line, struct peal_page_place, line)
GETTER(place_col, struct peal_page_place, col)
GETTER(place_len, struct peal_page_place, len)
GETTER_OR_NONE(place_via, struct peal_page_place, via)
GETTER(track_label, struct peal_page_track, label)
GETTER_OR_NONE(track_rank, struct peal_page_track, rank)
GETTER(track_group, struct peal_page_track, group)
GETTER(bar_track, struct peal_page_bar, track)
GETTER(bar_length, struct peal_page_bar, end - it->start)
GETTER(bar_bytes, struct peal_page_bar, bytes)
GETTER(bar_label, struct peal_page_bar, label)
GETTER(bar_detail, struct peal_page_bar, detail)
GETTER(bar_place, struct peal_page_bar, place)
GETTER(bar_category, struct peal_page_bar, category)
GETTER(bar_flags, struct peal_page_bar, flags)
GETTER(bar_joined, struct peal_page_bar, count - 1)
GETTER(bar_idle, struct peal_page_bar, end - it->start - it->busy)
GETTER(arrow_from, struct peal_page_arrow, from)
GETTER(arrow_length, struct peal_page_arrow, to - (int64_t)it->from)
GETTER(arrow_from_track, struct peal_page_arrow, from_track)
GETTER(arrow_to_track, struct peal_page_arrow, to_track)
GETTER(arrow_bytes, struct peal_page_arrow, bytes)
GETTER(arrow_label, struct peal_page_arrow, label)
GETTER(arrow_category, struct peal_page_arrow, category)
GETTER(arrow_flags, struct peal_page_arrow, flags)
GETTER(step_track, struct peal_page_step, track)
GETTER(step_rank, struct peal_page_step, rank)
GETTER(step_lane, struct peal_page_step, lane)
GETTER(step_launch, struct peal_page_step, launch)
GETTER(step_label, struct peal_page_step, label)
GETTER(step_detail, struct peal_page_step, detail)
GETTER(step_place, struct peal_page_step, place)
GETTER(step_category, struct peal_page_step, category)
GETTER(step_flags, struct peal_page_step, flags)
GETTER(step_accesses, struct peal_page_step, accesses)
GETTER(step_changes, struct peal_page_step, changes)
GETTER(memory_rank, struct peal_page_memory, rank)
GETTER(memory_name, struct peal_page_memory, name)
GETTER(memory_bytes, struct peal_page_memory, bytes)
GETTER(memory_element, struct peal_page_memory, element)
GETTER(cell_rank, struct peal_page_cell, rank)
GETTER(cell_name, struct peal_page_cell, name)
GETTER(cell_initial, struct peal_page_cell, initial)
GETTER(access_memory, struct peal_page_access, memory)
GETTER(access_from, struct peal_page_access, from)
GETTER(access_to, struct peal_page_access, to)
GETTER(access_kind, struct peal_page_access, kind)
GETTER(access_flags, struct peal_page_access, flags)
GETTER_OR_NONE(change_memory, struct peal_page_change, memory)
GETTER_OR_NONE(change_cell, struct peal_page_change, cell)
GETTER(change_from, struct peal_page_change, from)
GETTER(change_to, struct peal_page_change, to)
GETTER(change_value, struct peal_page_change, value)
GETTER(change_quiet, struct peal_page_change, quiet)
GETTER(hop_track, struct peal_page_hop, track)
GETTER(hop_start, struct peal_page_hop, start)
GETTER(hop_end, struct peal_page_hop, end)
GETTER(hop_cause, struct peal_page_hop, cause)
GETTER(hop_label, struct peal_page_hop, label)
GETTER(hop_place, struct peal_page_hop, place)
GETTER(stall_track, struct peal_page_stall, track)
GETTER(stall_cause, struct peal_page_stall, cause)
GETTER(stall_amount, struct peal_page_stall, amount)

static void begin_list(struct peal_json *json, const char *key, size_t count)
{
    peal_json_key(json, key);
    peal_json_object(json);
    peal_json_put_uint(json, "count", count);
}

static void write_notes(const struct peal_page *page, struct peal_json *json)
{
    struct peal_text text = {0};
    char width[32];
    peal_json_key(json, "notes");
    peal_json_array(json);
    for (size_t i = 0; i < page->notes.len; i++)
        peal_json_string(json, peal_page_get(page, page->notes.at[i]));
    if (page->bars_seen > page->bars.len)
        peal_text_printf(&text,
                         "%llu operations are drawn as %zu bars: neighbours shorter than %s were "
                         "joined\n",
                         (unsigned long long)page->bars_seen, page->bars.len,
                         peal_page_time(page->join_width, width));
    if (page->arrows_seen > page->arrows.len)
        peal_text_printf(&text, "%zu of %llu arrows are drawn\n", page->arrows.len,
                         (unsigned long long)page->arrows_seen);
    if (page->steps_seen > page->steps.len)
        peal_text_printf(&text, "only the first %zu of %llu steps are shown\n", page->steps.len,
                         (unsigned long long)page->steps_seen);
    if (page->path_seen > page->path.len)
        peal_text_printf(&text, "only the first %zu of %llu parts of the critical path are shown\n",
                         page->path.len, (unsigned long long)page->path_seen);
    const char *line = peal_text_get(&text);
    for (const char *at = line; *at; at++)
        if (*at == '\n') {
            peal_json_bytes(json, line, (size_t)(at - line));
            line = at + 1;
        }
    peal_json_array_end(json);
    json->out->failed = json->out->failed || text.failed;
    peal_text_release(&text);
}

static void write_sources(const struct peal_page *page, struct peal_json *json)
{
    peal_json_key(json, "sources");
    peal_json_array(json);
    for (size_t i = 0; i < page->sources.len; i++) {
        peal_json_object(json);
        peal_json_put_string(json, "name", peal_page_get(page, page->sources.at[i].name));
        peal_json_key(json, "text");
        peal_json_bytes(json, page->sources.at[i].text, page->sources.at[i].len);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    begin_list(json, "places", page->places.len);
    COLUMN(json, "source", page->places, place_source);
    COLUMN(json, "line", page->places, place_line);
    COLUMN(json, "col", page->places, place_col);
    COLUMN(json, "len", page->places, place_len);
    COLUMN(json, "via", page->places, place_via);
    peal_json_object_end(json);
}

static void write_bars(const struct peal_page *page, struct peal_json *json)
{
    begin_list(json, "tracks", page->tracks.len);
    COLUMN(json, "label", page->tracks, track_label);
    COLUMN(json, "rank", page->tracks, track_rank);
    COLUMN(json, "group", page->tracks, track_group);
    peal_json_object_end(json);

    begin_list(json, "bars", page->bars.len);
    COLUMN(json, "track", page->bars, bar_track);
    peal_json_key(json, "start");
    peal_json_array(json);
    for (size_t i = 0; i < page->bars.len; i++) {
        const struct peal_page_bar *bar = &page->bars.at[i];
        bool same = i > 0 && bar[-1].track == bar->track;
        peal_json_uint(json, bar->start - (same ? bar[-1].start : 0));
    }
    peal_json_array_end(json);
    COLUMN(json, "length", page->bars, bar_length);
    COLUMN(json, "label", page->bars, bar_label);
    COLUMN(json, "detail", page->bars, bar_detail);
    COLUMN(json, "place", page->bars, bar_place);
    COLUMN(json, "bytes", page->bars, bar_bytes);
    COLUMN(json, "category", page->bars, bar_category);
    COLUMN(json, "flags", page->bars, bar_flags);
    COLUMN(json, "joined", page->bars, bar_joined);
    COLUMN(json, "idle", page->bars, bar_idle);
    peal_json_object_end(json);

    begin_list(json, "arrows", page->arrows.len);
    COLUMN(json, "from", page->arrows, arrow_from);
    COLUMN(json, "length", page->arrows, arrow_length);
    COLUMN(json, "fromTrack", page->arrows, arrow_from_track);
    COLUMN(json, "toTrack", page->arrows, arrow_to_track);
    COLUMN(json, "label", page->arrows, arrow_label);
    COLUMN(json, "bytes", page->arrows, arrow_bytes);
    COLUMN(json, "category", page->arrows, arrow_category);
    COLUMN(json, "flags", page->arrows, arrow_flags);
    peal_json_object_end(json);
}

static void write_steps(const struct peal_page *page, struct peal_json *json)
{
    begin_list(json, "steps", page->steps.len);
    COLUMN(json, "track", page->steps, step_track);
    COLUMN(json, "rank", page->steps, step_rank);
    COLUMN(json, "lane", page->steps, step_lane);
    COLUMN(json, "launch", page->steps, step_launch);
    COLUMN(json, "label", page->steps, step_label);
    COLUMN(json, "detail", page->steps, step_detail);
    COLUMN(json, "place", page->steps, step_place);
    COLUMN(json, "category", page->steps, step_category);
    COLUMN(json, "flags", page->steps, step_flags);
    COLUMN(json, "accesses", page->steps, step_accesses);
    COLUMN(json, "changes", page->steps, step_changes);
    peal_json_object_end(json);
    begin_list(json, "memories", page->memories.len);
    COLUMN(json, "rank", page->memories, memory_rank);
    COLUMN(json, "name", page->memories, memory_name);
    COLUMN(json, "bytes", page->memories, memory_bytes);
    COLUMN(json, "element", page->memories, memory_element);
    peal_json_object_end(json);
    begin_list(json, "cells", page->cells.len);
    COLUMN(json, "rank", page->cells, cell_rank);
    COLUMN(json, "name", page->cells, cell_name);
    COLUMN(json, "initial", page->cells, cell_initial);
    peal_json_object_end(json);
    begin_list(json, "accesses", page->accesses.len);
    COLUMN(json, "memory", page->accesses, access_memory);
    COLUMN(json, "from", page->accesses, access_from);
    COLUMN(json, "to", page->accesses, access_to);
    COLUMN(json, "kind", page->accesses, access_kind);
    COLUMN(json, "flags", page->accesses, access_flags);
    peal_json_object_end(json);
    begin_list(json, "changes", page->changes.len);
    COLUMN(json, "memory", page->changes, change_memory);
    COLUMN(json, "cell", page->changes, change_cell);
    COLUMN(json, "from", page->changes, change_from);
    COLUMN(json, "to", page->changes, change_to);
    COLUMN(json, "value", page->changes, change_value);
    COLUMN(json, "quiet", page->changes, change_quiet);
    peal_json_object_end(json);
}

static void write_machine(const struct peal_page *page, struct peal_json *json)
{
    peal_json_key(json, "nodes");
    peal_json_array(json);
    for (size_t i = 0; i < page->nodes.len; i++) {
        const struct peal_page_node *node = &page->nodes.at[i];
        peal_json_array(json);
        peal_json_real(json, node->x);
        peal_json_real(json, node->y);
        peal_json_real(json, node->load);
        peal_json_int(json, node->rank == PEAL_PAGE_NONE ? -1 : (int64_t)node->rank);
        peal_json_uint(json, node->label);
        peal_json_uint(json, node->detail);
        peal_json_array_end(json);
    }
    peal_json_array_end(json);
    peal_json_key(json, "links");
    peal_json_array(json);
    for (size_t i = 0; i < page->links.len; i++) {
        const struct peal_page_link *link = &page->links.at[i];
        peal_json_array(json);
        peal_json_uint(json, link->from);
        peal_json_uint(json, link->to);
        peal_json_real(json, link->load);
        peal_json_uint(json, link->bytes);
        peal_json_uint(json, link->detail);
        peal_json_uint(json, link->wraps);
        peal_json_array_end(json);
    }
    peal_json_array_end(json);
    peal_json_key(json, "frames");
    peal_json_array(json);
    for (size_t i = 0; i < page->frames.len; i++) {
        const struct peal_page_frame *frame = &page->frames.at[i];
        peal_json_array(json);
        peal_json_real(json, frame->x0);
        peal_json_real(json, frame->y0);
        peal_json_real(json, frame->x1);
        peal_json_real(json, frame->y1);
        peal_json_uint(json, frame->label);
        peal_json_array_end(json);
    }
    peal_json_array_end(json);
}

static void write_reals(const struct peal_page *page, struct peal_json *json, size_t first,
                        size_t count)
{
    peal_json_array(json);
    for (size_t i = first; i < first + count; i++)
        peal_json_real(json, page->reals.at[i]);
    peal_json_array_end(json);
}

static void write_time(const struct peal_page *page, struct peal_json *json)
{
    peal_json_key(json, "series");
    peal_json_array(json);
    for (size_t i = 0; i < page->series.len; i++) {
        const struct peal_page_series *series = &page->series.at[i];
        peal_json_object(json);
        peal_json_put_string(json, "name", peal_page_get(page, series->name));
        peal_json_put_uint(json, "start", series->start);
        peal_json_put_uint(json, "step", series->step);
        peal_json_key(json, "values");
        write_reals(page, json, series->first, series->count);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    begin_list(json, "path", page->path.len);
    COLUMN(json, "track", page->path, hop_track);
    COLUMN(json, "start", page->path, hop_start);
    COLUMN(json, "end", page->path, hop_end);
    COLUMN(json, "cause", page->path, hop_cause);
    COLUMN(json, "label", page->path, hop_label);
    COLUMN(json, "place", page->path, hop_place);
    peal_json_object_end(json);
    begin_list(json, "stalls", page->stalls.len);
    COLUMN(json, "track", page->stalls, stall_track);
    COLUMN(json, "cause", page->stalls, stall_cause);
    COLUMN(json, "amount", page->stalls, stall_amount);
    peal_json_object_end(json);
}

static void write_curves(const struct peal_page *page, struct peal_json *json, uint32_t plot)
{
    peal_json_key(json, "curves");
    peal_json_array(json);
    for (size_t i = 0; i < page->curves.len; i++) {
        const struct peal_page_curve *curve = &page->curves.at[i];
        if (curve->plot != plot)
            continue;
        peal_json_object(json);
        peal_json_put_string(json, "name", peal_page_get(page, curve->name));
        peal_json_put_bool(json, "closedForm", curve->style == PEAL_CURVE_CLOSED_FORM);
        peal_json_key(json, "points");
        write_reals(page, json, curve->first, 2 * curve->count);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void write_plots(const struct peal_page *page, struct peal_json *json)
{
    peal_json_key(json, "plots");
    peal_json_array(json);
    for (uint32_t i = 0; i < page->plots.len; i++) {
        const struct peal_page_plot *plot = &page->plots.at[i];
        peal_json_object(json);
        peal_json_put_string(json, "title", peal_page_get(page, plot->title));
        peal_json_put_string(json, "x", peal_page_get(page, plot->x_label));
        peal_json_put_string(json, "y", peal_page_get(page, plot->y_label));
        peal_json_put_bool(json, "xLog", plot->x_log);
        peal_json_put_bool(json, "yLog", plot->y_log);
        write_curves(page, json, i);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void write_table(const struct peal_report_table *table, struct peal_json *json)
{
    size_t columns = peal_report_table_columns(table);
    peal_json_key(json, "columns");
    peal_json_array(json);
    for (size_t i = 0; i < columns; i++) {
        peal_json_array(json);
        peal_json_string(json, peal_report_table_title(table, i));
        peal_json_bool(json, peal_report_table_align(table, i) == PEAL_ALIGN_RIGHT);
        peal_json_array_end(json);
    }
    peal_json_array_end(json);
    peal_json_key(json, "rows");
    peal_json_array(json);
    for (size_t row = 0; row < peal_report_table_rows(table); row++) {
        peal_json_array(json);
        for (size_t i = 0; i < columns; i++)
            peal_json_string(json, peal_report_table_get(table, row, i));
        peal_json_array_end(json);
    }
    peal_json_array_end(json);
}

static void write_head(const struct peal_page *page, struct peal_json *json)
{
    static const char *const kinds[] = {"verify", "sim", "run", "sweep"};
    static const char *const tones[] = {"neutral", "good", "bad", "unsure"};
    peal_json_put_uint(json, "version", 1);
    peal_json_put_string(json, "kind", kinds[page->kind]);
    peal_json_put_string(json, "tone", tones[page->tone]);
    peal_json_put_string(json, "unit", page->unit == PEAL_UNIT_STEPS ? "steps" : "ps");
    peal_json_put_string(json, "title", peal_page_get(page, page->title));
    peal_json_put_string(json, "verdict", peal_page_get(page, page->verdict));
    peal_json_put_string(json, "headline", peal_page_get(page, page->headline));
    peal_json_key(json, "facts");
    peal_json_array(json);
    for (size_t i = 0; i < page->facts.len; i++) {
        peal_json_array(json);
        peal_json_string(json, peal_page_get(page, page->facts.at[i].label));
        peal_json_string(json, peal_page_get(page, page->facts.at[i].value));
        peal_json_array_end(json);
    }
    peal_json_array_end(json);
    peal_json_key(json, "categories");
    peal_json_array(json);
    for (int i = 0; i < PEAL_BAR_CATEGORIES; i++)
        peal_json_string(json, peal_page_category_name((enum peal_page_category)i));
    peal_json_array_end(json);
}

void peal_page_json(struct peal_page *page, struct peal_json *json)
{
    peal_page_sort(page);
    peal_json_object(json);
    write_head(page, json);
    write_notes(page, json);
    peal_json_key(json, "texts");
    peal_json_array(json);
    for (size_t i = 0; i < page->texts.len; i++)
        peal_json_string(json, page->texts.at[i]);
    peal_json_array_end(json);
    write_sources(page, json);
    write_bars(page, json);
    write_steps(page, json);
    write_machine(page, json);
    write_time(page, json);
    write_plots(page, json);
    peal_json_key(json, "tables");
    peal_json_array(json);
    for (size_t i = 0; i < page->tables.len; i++) {
        peal_json_object(json);
        peal_json_put_string(json, "title", peal_page_get(page, page->tables.at[i].title));
        write_table(page->tables.at[i].table, json);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
}
