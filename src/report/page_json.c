/* SPDX-License-Identifier: Apache-2.0 */
/* The page's description as JSON: what viewer/model.js reads.
 *
 * Lists are written as columns ("start":[...],"label":[...]), which takes a third of the
 * space of one object each and can be read directly into typed arrays. Texts are indices into one
 * list. Bars come sorted by track and start; their start is the distance from the previous bar on
 * that track. A column that is all zero is left out; -1 stands for none.
 */
#include "report/page.h"

#include <assert.h>
#include <string.h>

/* A column: the offset of a member, or how it is computed. Members are unsigned. */
struct field {
    const char *key; /* NULL ends a list of them */
    size_t offset, size;
    bool may_be_none; /* PEAL_PAGE_NONE is -1 */
    int64_t (*get)(const void *row);
};
#define FIELD(key, type, member)                                                                   \
    {                                                                                              \
        key, offsetof(struct peal_page_##type, member),                                            \
            sizeof(((struct peal_page_##type *)0)->member), false, NULL                            \
    }
#define FIELD_OR_NONE(key, type, member)                                                           \
    {                                                                                              \
        key, offsetof(struct peal_page_##type, member),                                            \
            sizeof(((struct peal_page_##type *)0)->member), true, NULL                             \
    }
#define NO_FIELD                                                                                   \
    {                                                                                              \
        NULL, 0, 0, false, NULL                                                                    \
    }

static int64_t bar_length(const void *row)
{
    const struct peal_page_bar *it = row;
    return (int64_t)(it->end - it->start);
}

static int64_t bar_joined(const void *row)
{
    const struct peal_page_bar *it = row;
    return (int64_t)(it->count - 1);
}

static int64_t bar_idle(const void *row)
{
    const struct peal_page_bar *it = row;
    return (int64_t)(it->end - it->start - it->busy);
}

static int64_t arrow_length(const void *row)
{
    const struct peal_page_arrow *it = row;
    return (int64_t)(it->to - (int64_t)it->from);
}

static const struct field place_fields[] = {
    FIELD_OR_NONE("source", place, source),
    FIELD("line", place, line),
    FIELD("col", place, col),
    FIELD("len", place, len),
    FIELD_OR_NONE("via", place, via),
    NO_FIELD,
};

static const struct field track_fields[] = {
    FIELD("label", track, label),
    FIELD_OR_NONE("rank", track, rank),
    FIELD("group", track, group),
    NO_FIELD,
};

static const struct field arrow_fields[] = {
    FIELD("from", arrow, from),
    {"length", 0, 0, false, arrow_length},
    FIELD("fromTrack", arrow, from_track),
    FIELD("toTrack", arrow, to_track),
    FIELD("label", arrow, label),
    FIELD("bytes", arrow, bytes),
    FIELD("category", arrow, category),
    FIELD("flags", arrow, flags),
    NO_FIELD,
};

static const struct field step_fields[] = {
    FIELD("track", step, track),     FIELD("rank", step, rank),
    FIELD("lane", step, lane),       FIELD("launch", step, launch),
    FIELD("label", step, label),     FIELD("detail", step, detail),
    FIELD("place", step, place),     FIELD("category", step, category),
    FIELD("flags", step, flags),     FIELD("accesses", step, accesses),
    FIELD("changes", step, changes), NO_FIELD,
};

static const struct field memory_fields[] = {
    FIELD("rank", memory, rank),
    FIELD("name", memory, name),
    FIELD("bytes", memory, bytes),
    FIELD("element", memory, element),
    NO_FIELD,
};

static const struct field cell_fields[] = {
    FIELD("rank", cell, rank),
    FIELD("name", cell, name),
    FIELD("initial", cell, initial),
    NO_FIELD,
};

static const struct field access_fields[] = {
    FIELD("memory", access, memory), FIELD("from", access, from),   FIELD("to", access, to),
    FIELD("kind", access, kind),     FIELD("flags", access, flags), NO_FIELD,
};

static const struct field change_fields[] = {
    FIELD_OR_NONE("memory", change, memory),
    FIELD_OR_NONE("cell", change, cell),
    FIELD("from", change, from),
    FIELD("to", change, to),
    FIELD("value", change, value),
    FIELD("quiet", change, quiet),
    NO_FIELD,
};

static const struct field hop_fields[] = {
    FIELD("track", hop, track),
    FIELD("start", hop, start),
    FIELD("end", hop, end),
    FIELD("cause", hop, cause),
    FIELD("label", hop, label),
    FIELD("place", hop, place),
    NO_FIELD,
};

static const struct field stall_fields[] = {
    FIELD("track", stall, track),
    FIELD("cause", stall, cause),
    FIELD("amount", stall, amount),
    NO_FIELD,
};

static const struct field bar_fields[] = {
    FIELD("track", bar, track),
    {"length", 0, 0, false, bar_length},
    FIELD("label", bar, label),
    FIELD("detail", bar, detail),
    FIELD("place", bar, place),
    FIELD("bytes", bar, bytes),
    FIELD("category", bar, category),
    FIELD("flags", bar, flags),
    {"joined", 0, 0, false, bar_joined},
    {"idle", 0, 0, false, bar_idle},
    NO_FIELD,
};

static int64_t load(const void *row, const struct field *field)
{
    const char *at = (const char *)row + field->offset;
    uint64_t wide;
    uint32_t word;
    if (field->get)
        return field->get(row);
    switch (field->size) {
    case sizeof wide:
        memcpy(&wide, at, sizeof wide);
        return (int64_t)wide;
    case sizeof word:
        memcpy(&word, at, sizeof word);
        if (field->may_be_none && word == PEAL_PAGE_NONE)
            return -1;
        return (int64_t)word;
    default:
        assert(field->size == 1 && "members of a thing are of 1, 4 or 8 bytes");
        return *(const uint8_t *)at;
    }
}

/* Writes a key and a list for every field that is not zero everywhere. */
static void write_columns(struct peal_json *json, const void *things, size_t count, size_t size,
                          const struct field *fields)
{
    for (; fields->key; fields++) {
        const char *at = things;
        size_t i = 0;
        while (i < count && load(at + i * size, fields) == 0)
            i++;
        if (i == count)
            continue;
        peal_json_put_array(json, fields->key);
        for (i = 0; i < count; i++)
            peal_json_int(json, load(at + i * size, fields));
        peal_json_array_end(json);
    }
}

static void begin_list(struct peal_json *json, const char *key, size_t count)
{
    peal_json_put_object(json, key);
    peal_json_put_uint(json, "count", count);
}

#define WRITE_LIST(json, key, vec, fields)                                                         \
    write_list((json), (key), (vec).at, (vec).len, sizeof *(vec).at, (fields))
static void write_list(struct peal_json *json, const char *key, const void *things, size_t count,
                       size_t size, const struct field *fields)
{
    begin_list(json, key, count);
    write_columns(json, things, count, size, fields);
    peal_json_object_end(json);
}

static void write_notes(const struct peal_page *page, struct peal_json *json)
{
    struct peal_text text = {0};
    char width[32];
    peal_json_put_array(json, "notes");
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
    peal_json_put_array(json, "sources");
    for (size_t i = 0; i < page->sources.len; i++) {
        peal_json_object(json);
        peal_json_put_string(json, "name", peal_page_get(page, page->sources.at[i].name));
        peal_json_key(json, "text");
        peal_json_bytes(json, page->sources.at[i].text, page->sources.at[i].len);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    WRITE_LIST(json, "places", page->places, place_fields);
}

static void write_bars(const struct peal_page *page, struct peal_json *json)
{
    WRITE_LIST(json, "tracks", page->tracks, track_fields);

    begin_list(json, "bars", page->bars.len);
    peal_json_put_array(json, "start");
    for (size_t i = 0; i < page->bars.len; i++) {
        const struct peal_page_bar *bar = &page->bars.at[i];
        bool same = i > 0 && bar[-1].track == bar->track;
        peal_json_uint(json, bar->start - (same ? bar[-1].start : 0));
    }
    peal_json_array_end(json);
    write_columns(json, page->bars.at, page->bars.len, sizeof *page->bars.at, bar_fields);
    peal_json_object_end(json);

    WRITE_LIST(json, "arrows", page->arrows, arrow_fields);
}

static void write_steps(const struct peal_page *page, struct peal_json *json)
{
    WRITE_LIST(json, "steps", page->steps, step_fields);
    WRITE_LIST(json, "memories", page->memories, memory_fields);
    WRITE_LIST(json, "cells", page->cells, cell_fields);
    WRITE_LIST(json, "accesses", page->accesses, access_fields);
    WRITE_LIST(json, "changes", page->changes, change_fields);
}

static void write_machine(const struct peal_page *page, struct peal_json *json)
{
    peal_json_put_array(json, "nodes");
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
    peal_json_put_array(json, "links");
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
    peal_json_put_array(json, "frames");
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
    peal_json_put_array(json, "series");
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
    WRITE_LIST(json, "path", page->path, hop_fields);
    WRITE_LIST(json, "stalls", page->stalls, stall_fields);
}

static void write_curves(const struct peal_page *page, struct peal_json *json, uint32_t plot)
{
    peal_json_put_array(json, "curves");
    for (size_t i = 0; i < page->curves.len; i++) {
        const struct peal_page_curve *curve = &page->curves.at[i];
        if (curve->plot != plot)
            continue;
        peal_json_object(json);
        peal_json_put_string(json, "name", peal_page_get(page, curve->name));
        peal_json_put_bool(json, "closedForm", curve->style == PEAL_CURVE_CLOSED_FORM);
        if (curve->of != PEAL_PAGE_NONE)
            peal_json_put_uint(json, "of", curve->of);
        peal_json_key(json, "points");
        write_reals(page, json, curve->first, 2 * curve->count);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static const char *const units[] = {
    [PEAL_UNIT_STEPS] = "steps",
    [PEAL_UNIT_PS] = "ps",
    [PEAL_UNIT_BYTES] = "bytes",
    [PEAL_UNIT_NONE] = "",
};

static void write_plots(const struct peal_page *page, struct peal_json *json)
{
    peal_json_put_array(json, "plots");
    for (uint32_t i = 0; i < page->plots.len; i++) {
        const struct peal_page_plot *plot = &page->plots.at[i];
        peal_json_object(json);
        peal_json_put_string(json, "title", peal_page_get(page, plot->title));
        peal_json_put_string(json, "x", peal_page_get(page, plot->x_label));
        peal_json_put_string(json, "y", peal_page_get(page, plot->y_label));
        peal_json_put_string(json, "xUnit", units[plot->x_unit]);
        peal_json_put_string(json, "yUnit", units[plot->y_unit]);
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
    peal_json_put_array(json, "columns");
    for (size_t i = 0; i < columns; i++) {
        peal_json_array(json);
        peal_json_string(json, peal_report_table_title(table, i));
        peal_json_bool(json, peal_report_table_align(table, i) == PEAL_ALIGN_RIGHT);
        peal_json_array_end(json);
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "rows");
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
    peal_json_put_string(json, "unit", units[page->unit]);
    peal_json_put_string(json, "title", peal_page_get(page, page->title));
    peal_json_put_string(json, "verdict", peal_page_get(page, page->verdict));
    peal_json_put_string(json, "headline", peal_page_get(page, page->headline));
    peal_json_put_array(json, "facts");
    for (size_t i = 0; i < page->facts.len; i++) {
        peal_json_array(json);
        peal_json_string(json, peal_page_get(page, page->facts.at[i].label));
        peal_json_string(json, peal_page_get(page, page->facts.at[i].value));
        peal_json_array_end(json);
    }
    peal_json_array_end(json);
    peal_json_put_array(json, "categories");
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
    peal_json_put_array(json, "texts");
    for (size_t i = 0; i < page->texts.len; i++)
        peal_json_string(json, page->texts.at[i]);
    peal_json_array_end(json);
    write_sources(page, json);
    write_bars(page, json);
    write_steps(page, json);
    write_machine(page, json);
    write_time(page, json);
    write_plots(page, json);
    peal_json_put_array(json, "tables");
    for (size_t i = 0; i < page->tables.len; i++) {
        peal_json_object(json);
        peal_json_put_string(json, "title", peal_page_get(page, page->tables.at[i].title));
        write_table(page->tables.at[i].table, json);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
}
