/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of results: one content, printed as aligned text, as CSV or as JSON.
 *
 *   struct peal_report_table *table = peal_report_table_new();
 *   peal_report_table_column(table, "ranks", PEAL_ALIGN_RIGHT);
 *   peal_report_table_column(table, "verdict", PEAL_ALIGN_LEFT);
 *   peal_report_table_cell(table, "%u", 4); peal_report_table_cell(table, "proved");
 *   peal_report_table_text(table, &out);
 *
 * Cells fill row by row. Sticky: after a failed allocation, calls do nothing and print nothing.
 */
#ifndef PEAL_REPORT_TABLE_H
#define PEAL_REPORT_TABLE_H

#include "base/base.h"

enum peal_align { PEAL_ALIGN_LEFT, PEAL_ALIGN_RIGHT };

struct peal_report_table;

/* NULL when out of memory; every call accepts NULL. */
struct peal_report_table *peal_report_table_new(void);
void peal_report_table_free(struct peal_report_table *table);

/* Columns come before cells. Right-aligned columns hold numbers: JSON writes such cells unquoted if
 * they are legal numbers. */
void peal_report_table_column(struct peal_report_table *table, const char *title,
                              enum peal_align align);
void peal_report_table_cell(struct peal_report_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The tone of the cell added last, for texts with colours. */
void peal_report_table_tone(struct peal_report_table *table, enum peal_tone tone);

size_t peal_report_table_columns(const struct peal_report_table *table);
/* The number of rows. A row whose last cells are missing counts, and these are empty. */
size_t peal_report_table_rows(const struct peal_report_table *table);
const char *peal_report_table_title(const struct peal_report_table *table, size_t column);
enum peal_align peal_report_table_align(const struct peal_report_table *table, size_t column);
const char *peal_report_table_get(const struct peal_report_table *table, size_t row, size_t column);

/* Columns two spaces apart, no trailing blanks, the head line first. */
void peal_report_table_text(const struct peal_report_table *table, struct peal_text *out);
/* RFC 4180, with line feeds alone. */
void peal_report_table_csv(const struct peal_report_table *table, struct peal_text *out);
/* An array with one object per row; the titles are the keys. */
void peal_report_table_json(const struct peal_report_table *table, struct peal_json *json);

#endif
