/* SPDX-License-Identifier: Apache-2.0 */
/* Tables behind table.h: every text in one arena, cells in one flat list. */
#include "report/table.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct column {
    const char *title;
    enum peal_align align;
};

struct table_cell {
    const char *text;
    enum peal_tone tone;
};

struct peal_report_table {
    struct peal_arena arena;
    PEAL_VEC(struct column) columns;
    PEAL_VEC(struct table_cell) cells;
    bool failed;
};

struct peal_report_table *peal_report_table_new(void)
{
    struct peal_report_table *table = calloc(1, sizeof *table);
    if (table)
        peal_arena_init(&table->arena, 0);
    return table;
}

void peal_report_table_free(struct peal_report_table *table)
{
    if (!table)
        return;
    peal_arena_release(&table->arena);
    peal_vec_release(&table->columns);
    peal_vec_release(&table->cells);
    free(table);
}

void peal_report_table_column(struct peal_report_table *table, const char *title,
                              enum peal_align align)
{
    if (!table || table->failed)
        return;
    const char *copy = peal_arena_copy(&table->arena, title, strlen(title));
    struct column column = {copy, align};
    table->failed = !copy || !peal_vec_push(&table->columns, column);
}

void peal_report_table_cell(struct peal_report_table *table, const char *format, ...)
{
    if (!table || table->failed)
        return;
    struct peal_text text = {0};
    va_list args;
    va_start(args, format);
    peal_text_vprintf(&text, format, args);
    va_end(args);
    struct table_cell cell = {.text =
                                  peal_arena_copy(&table->arena, peal_text_get(&text), text.len)};
    table->failed = text.failed || !cell.text || !peal_vec_push(&table->cells, cell);
    peal_text_release(&text);
}

void peal_report_table_tone(struct peal_report_table *table, enum peal_tone tone)
{
    if (table && !table->failed && table->cells.len)
        table->cells.at[table->cells.len - 1].tone = tone;
}

size_t peal_report_table_columns(const struct peal_report_table *table)
{
    if (table && !table->failed)
        return table->columns.len;
    return 0;
}

size_t peal_report_table_rows(const struct peal_report_table *table)
{
    size_t columns = peal_report_table_columns(table);
    if (columns)
        return (table->cells.len + columns - 1) / columns;
    return 0;
}

const char *peal_report_table_title(const struct peal_report_table *table, size_t column)
{
    return table->columns.at[column].title;
}

enum peal_align peal_report_table_align(const struct peal_report_table *table, size_t column)
{
    return table->columns.at[column].align;
}

const char *peal_report_table_get(const struct peal_report_table *table, size_t row, size_t column)
{
    size_t at = row * table->columns.len + column;
    if (at < table->cells.len)
        return table->cells.at[at].text;
    return "";
}

static enum peal_tone tone_of(const struct peal_report_table *table, long row, size_t column)
{
    if (row < 0)
        return PEAL_TONE_NEUTRAL;
    size_t at = (size_t)row * table->columns.len + column;
    return at < table->cells.len ? table->cells.at[at].tone : PEAL_TONE_NEUTRAL;
}

static size_t text_width(const char *text)
{
    return peal_text_columns(text, strlen(text));
}

static size_t column_width(const struct peal_report_table *table, size_t column)
{
    size_t width = text_width(peal_report_table_title(table, column));
    for (size_t row = 0; row < peal_report_table_rows(table); row++) {
        size_t cell = text_width(peal_report_table_get(table, row, column));
        if (cell > width)
            width = cell;
    }
    return width;
}

static void add_blanks(struct peal_text *out, size_t count)
{
    peal_text_printf(out, "%*s", (int)count, "");
}

/* row -1 is the head line. */
static void add_line(const struct peal_report_table *table, const size_t *widths, long row,
                     struct peal_text *out)
{
    size_t columns = peal_report_table_columns(table);
    size_t pending = 0; /* blanks that are written only if something follows */
    for (size_t i = 0; i < columns; i++) {
        const char *cell = row < 0 ? peal_report_table_title(table, i)
                                   : peal_report_table_get(table, (size_t)row, i);
        size_t rest = widths[i] - text_width(cell);
        bool right = peal_report_table_align(table, i) == PEAL_ALIGN_RIGHT;
        if (right)
            pending += rest;
        if (*cell) {
            add_blanks(out, pending);
            pending = 0;
            enum peal_tone tone = tone_of(table, row, i);
            if (tone == PEAL_TONE_NEUTRAL)
                peal_text_puts(out, cell);
            else
                peal_text_toned(out, tone, cell);
        } else {
            pending += widths[i] - rest;
        }
        pending += (right ? 0 : rest) + 2;
    }
    peal_text_puts(out, "\n");
}

void peal_report_table_text(const struct peal_report_table *table, struct peal_text *out)
{
    size_t columns = peal_report_table_columns(table);
    size_t *widths = calloc(columns ? columns : 1, sizeof *widths);
    if (!widths) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < columns; i++)
        widths[i] = column_width(table, i);
    if (columns)
        add_line(table, widths, -1, out);
    for (size_t row = 0; row < peal_report_table_rows(table); row++)
        add_line(table, widths, (long)row, out);
    free(widths);
}

static void add_csv(struct peal_text *out, const char *cell)
{
    if (!cell[strcspn(cell, ",\"\r\n")]) {
        peal_text_puts(out, cell);
        return;
    }
    peal_text_puts(out, "\"");
    for (; *cell; cell++) {
        if (*cell == '"')
            peal_text_puts(out, "\"");
        peal_text_add(out, cell, 1);
    }
    peal_text_puts(out, "\"");
}

void peal_report_table_csv(const struct peal_report_table *table, struct peal_text *out)
{
    size_t columns = peal_report_table_columns(table);
    for (size_t i = 0; i < columns; i++) {
        add_csv(out, peal_report_table_title(table, i));
        peal_text_puts(out, i + 1 < columns ? "," : "\n");
    }
    for (size_t row = 0; row < peal_report_table_rows(table); row++)
        for (size_t i = 0; i < columns; i++) {
            add_csv(out, peal_report_table_get(table, row, i));
            peal_text_puts(out, i + 1 < columns ? "," : "\n");
        }
}

/* JSON's own grammar, so that an unquoted number is always legal: no "007", no "0x1", no "nan". */
static bool reads_as_number(const char *cell)
{
    cell += *cell == '-';
    size_t digits = strspn(cell, "0123456789");
    if (digits == 0 || (digits > 1 && *cell == '0'))
        return false;
    cell += digits;
    if (*cell == '.') {
        digits = strspn(++cell, "0123456789");
        if (digits == 0)
            return false;
        cell += digits;
    }
    if (*cell == 'e' || *cell == 'E') {
        cell++;
        cell += *cell == '+' || *cell == '-';
        digits = strspn(cell, "0123456789");
        if (digits == 0)
            return false;
        cell += digits;
    }
    return *cell == '\0';
}

void peal_report_table_json(const struct peal_report_table *table, struct peal_json *json)
{
    peal_json_array(json);
    for (size_t row = 0; row < peal_report_table_rows(table); row++) {
        peal_json_object(json);
        for (size_t i = 0; i < peal_report_table_columns(table); i++) {
            const char *cell = peal_report_table_get(table, row, i);
            peal_json_key(json, peal_report_table_title(table, i));
            if (peal_report_table_align(table, i) == PEAL_ALIGN_RIGHT && reads_as_number(cell))
                peal_json_raw(json, cell);
            else if (peal_report_table_align(table, i) == PEAL_ALIGN_RIGHT && !*cell)
                peal_json_null(json); /* no number */
            else
                peal_json_string(json, cell);
        }
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}
