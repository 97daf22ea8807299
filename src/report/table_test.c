/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as text, CSV and JSON. */
#include "report/table.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct peal_report_table *make_table(void)
{
    struct peal_report_table *table = peal_report_table_new();
    peal_report_table_column(table, "ranks", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "verdict", PEAL_ALIGN_LEFT);
    peal_report_table_column(table, "µs", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "note", PEAL_ALIGN_LEFT);
    static const char *const rows[][4] = {
        {"2", "proved", "1.5", ""},
        {"16", "refuted", "-", "a \"race\", at 3"},
        {"007", "not decided", "12e3", "→ x"},
    };
    for (size_t row = 0; row < 3; row++)
        for (size_t i = 0; i < 4; i++)
            peal_report_table_cell(table, "%s", rows[row][i]);
    return table;
}

TEST(text_is_aligned_without_trailing_blanks)
{
    struct peal_report_table *table = make_table();
    struct peal_text out = {0};
    peal_report_table_text(table, &out);
    assert_string_equal(peal_text_get(&out), "ranks  verdict        µs  note\n"
                                             "    2  proved        1.5\n"
                                             "   16  refuted         -  a \"race\", at 3\n"
                                             "  007  not decided  12e3  → x\n");
    peal_text_release(&out);
    peal_report_table_free(table);
}

TEST(csv_quotes_what_needs_it)
{
    struct peal_report_table *table = make_table();
    struct peal_text out = {0};
    peal_report_table_csv(table, &out);
    assert_string_equal(peal_text_get(&out), "ranks,verdict,µs,note\n"
                                             "2,proved,1.5,\n"
                                             "16,refuted,-,\"a \"\"race\"\", at 3\"\n"
                                             "007,not decided,12e3,→ x\n");
    peal_text_release(&out);
    peal_report_table_free(table);
}

TEST(json_writes_only_real_numbers_bare)
{
    struct peal_report_table *table = make_table();
    struct peal_text out = {0};
    struct peal_json json;
    peal_json_init(&json, &out, 0);
    peal_report_table_json(table, &json);
    assert_string_equal(
        peal_text_get(&out),
        "[{\"ranks\":2,\"verdict\":\"proved\",\"µs\":1.5,\"note\":\"\"},"
        "{\"ranks\":16,\"verdict\":\"refuted\",\"µs\":\"-\",\"note\":\"a \\\"race\\\", at 3\"},"
        "{\"ranks\":\"007\",\"verdict\":\"not decided\",\"µs\":12e3,\"note\":\"→ x\"}]");
    peal_text_release(&out);
    peal_report_table_free(table);
}

TEST(json_of_no_number_is_null)
{
    struct peal_report_table *table = peal_report_table_new();
    struct peal_text out = {0};
    struct peal_json json;
    peal_report_table_column(table, "text", PEAL_ALIGN_LEFT);
    peal_report_table_column(table, "number", PEAL_ALIGN_RIGHT);
    peal_report_table_cell(table, "%s", "");
    peal_report_table_cell(table, "%s", "");
    peal_json_init(&json, &out, 0);
    peal_report_table_json(table, &json);
    assert_string_equal(peal_text_get(&out), "[{\"text\":\"\",\"number\":null}]");
    peal_text_release(&out);
    peal_report_table_free(table);
}

TEST(a_short_last_row_has_empty_cells)
{
    struct peal_report_table *table = peal_report_table_new();
    peal_report_table_column(table, "a", PEAL_ALIGN_LEFT);
    peal_report_table_column(table, "b", PEAL_ALIGN_LEFT);
    peal_report_table_cell(table, "1");
    assert_int_equal(peal_report_table_rows(table), 1);
    assert_string_equal(peal_report_table_get(table, 0, 1), "");
    peal_report_table_free(table);
}

int main(void)
{
    return unit_run();
}
