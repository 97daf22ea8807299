/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify --fault stop: which ranks wait for ever if a rank stops, by the op where it stops. */
#include "cli/verify/fault_report.h"

#include "report/report.h"

#include <inttypes.h>

/* "0, 2..4": ranks with a blocked lane, or with `finish` those without. */
static void put_ranks(const struct peal_stops *all, const struct peal_stop *s, bool finish,
                      struct peal_text *out)
{
    uint32_t first = PEAL_NONE, last = PEAL_NONE;
    size_t start = out->len;
    for (uint32_t r = 0; r <= all->nranks; r++) {
        bool blocked = false;
        for (uint32_t i = 0; i < s->nwaits; i++)
            blocked = blocked || s->waits[i].rank == r;
        bool mine = r < all->nranks && (r != s->rank || blocked) && blocked != finish;
        if (mine && first == PEAL_NONE)
            first = r;
        if (mine)
            last = r;
        if (mine || first == PEAL_NONE)
            continue;
        peal_text_printf(out, "%s%u", out->len > start ? ", " : "", first);
        if (last > first)
            peal_text_printf(out, "..%u", last);
        first = PEAL_NONE;
    }
    if (out->len == start)
        peal_text_puts(out, "none");
}

static void put_place(const struct peal_stop *s, struct peal_text *out)
{
    peal_text_printf(out, "%u:%u", s->first.place.line, s->first.place.col);
    if (s->last.place.line != s->first.place.line || s->last.place.col != s->first.place.col)
        peal_text_printf(out, " to %u:%u", s->last.place.line, s->last.place.col);
}

void peal_fault_report_text(const char *kernel, const struct peal_stops *all, struct peal_text *out)
{
    struct peal_report_table *table = peal_report_table_new();
    static const char *const titles[] = {"rank", "stops at", "op", "wait for ever", "finish"};
    uint32_t unnoticed = 0;
    for (int i = 0; i < 5; i++)
        peal_report_table_column(table, titles[i], i == 0 ? PEAL_ALIGN_RIGHT : PEAL_ALIGN_LEFT);
    for (uint32_t i = 0; i < all->count; i++) {
        const struct peal_stop *s = &all->at[i];
        struct peal_text place = {0}, waits = {0}, ends = {0};
        put_place(s, &place);
        put_ranks(all, s, false, &waits);
        put_ranks(all, s, true, &ends);
        peal_report_table_cell(table, "%u", s->rank);
        peal_report_table_cell(table, "%s", peal_text_get(&place));
        peal_report_table_cell(table, "%s", s->first.text);
        peal_report_table_cell(table, "%s", peal_text_get(&waits));
        peal_report_table_cell(table, "%s", peal_text_get(&ends));
        unnoticed += s->nwaits == 0;
        peal_text_release(&place);
        peal_text_release(&waits);
        peal_text_release(&ends);
    }
    peal_text_printf(out, "%s at %u ranks, one launch: if a rank stops, the others\n", kernel,
                     all->nranks);
    peal_report_table_text(table, out);
    peal_report_table_free(table);
    peal_text_printf(out,
                     "\na wait that is named here looks like one for a slow rank: only a "
                     "time-out\n  ends it\n%u of %u stops are noticed by no other rank in this launch\n",
                     unnoticed, all->count);
}

static void put_at(struct peal_json *json, const char *name, const struct peal_verify_place *at)
{
    peal_json_put_object(json, name);
    peal_json_put_string(json, "file", at->file);
    peal_json_put_uint(json, "line", at->line);
    peal_json_put_uint(json, "col", at->col);
    peal_json_put_uint(json, "len", at->len);
    peal_json_object_end(json);
}

static void put_blocked(struct peal_json *json, const struct peal_stop_wait *w)
{
    peal_json_object(json);
    peal_json_put_uint(json, "rank", w->rank);
    peal_json_put_uint(json, "lane", w->lane);
    put_at(json, "at", &w->place);
    peal_json_put_string(json, "cell", w->cell);
    peal_json_object_end(json);
}

static void put_stop(struct peal_json *json, const struct peal_stop *s)
{
    peal_json_break(json, 0);
    peal_json_object(json);
    peal_json_put_uint(json, "rank", s->rank);
    peal_json_put_uint(json, "lane", s->lane);
    peal_json_put_uint(json, "first_op", s->first.op);
    peal_json_put_uint(json, "last_op", s->last.op);
    put_at(json, "at", &s->first.place);
    put_at(json, "to", &s->last.place);
    peal_json_put_string(json, "text", s->first.text);
    peal_json_put_array(json, "blocked");
    for (uint32_t k = 0; k < s->nwaits; k++)
        put_blocked(json, &s->waits[k]);
    peal_json_array_end(json);
    peal_json_object_end(json);
}

void peal_fault_report_json(const char *kernel, const struct peal_stops *all, struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, PEAL_JSON_ONE_LINE);
    peal_json_object(&json);
    peal_json_put_string(&json, "kernel", kernel);
    peal_json_put_uint(&json, "ranks", all->nranks);
    peal_json_put_string(&json, "fault", "stop");
    peal_json_put_array(&json, "stops");
    for (uint32_t i = 0; i < all->count; i++)
        put_stop(&json, &all->at[i]);
    peal_json_array_end(&json);
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}
