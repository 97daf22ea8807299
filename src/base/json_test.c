/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: layout, numbers, and what untrusted bytes become. */
#include "base/json.h"
#include "base/json_read.h"
#include "base/tests/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int line;
    const char *bytes;
    size_t len;
    const char *expected;
} strings[] = {
    {__LINE__, "plain", 5, "\"plain\""},
    {__LINE__, "a\"b\\c", 5, "\"a\\\"b\\\\c\""},
    {__LINE__, "\n\t\r\x01\x7f", 5, "\"\\n\\t\\u000d\\u0001\\u007f\""},
    {__LINE__, "</script>", 9, "\"\\u003c/script\\u003e\""},
    {__LINE__, "<!--&", 5, "\"\\u003c!--\\u0026\""},
    {__LINE__, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x94", 9,
     "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x94\""},
    {__LINE__, "\xe2\x80\xa8\xe2\x80\xa9", 6, "\"\\u2028\\u2029\""},
    {__LINE__, "\xff", 1, "\"\xef\xbf\xbd\""},
    {__LINE__, "\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong '/' */
    {__LINE__, "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
    {__LINE__, "\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* truncated */
    {__LINE__, "\xf4\x90\x80\x80", 4,
     "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* above U+10FFFF */
    {__LINE__, "a\0b", 3, "\"a\\u0000b\""},
};

TEST(strings_are_quoted_for_json_and_for_a_script_element)
{
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        struct peal_text text = {0};
        struct peal_json json;
        peal_json_init(&json, &text, 0);
        json.in_script = true;
        peal_json_bytes(&json, strings[i].bytes, strings[i].len);
        if (strcmp(peal_text_get(&text), strings[i].expected) != 0)
            fail_msg("row of line %d gave %s", strings[i].line, peal_text_get(&text));
        peal_text_release(&text);
    }
}

/* Outside pages, `<` and the like are themselves; everything else is as above. */
TEST(markup_is_escaped_in_scripts_only)
{
    struct peal_text text = {0};
    struct peal_json json;
    peal_json_init(&json, &text, 0);
    peal_json_string(&json, "wait a >= 1 & <b>\xff\x01");
    assert_string_equal(peal_text_get(&text), "\"wait a >= 1 & <b>\xef\xbf\xbd\\u0001\"");
    peal_text_release(&text);
}

static const struct {
    int line;
    double value;
    const char *expected;
} reals[] = {
    {__LINE__, 0.0, "0"},        {__LINE__, 0.1, "0.1"},
    {__LINE__, 1e300, "1e+300"}, {__LINE__, 1.0 / 3, "0.3333333333333333"},
    {__LINE__, NAN, "null"},     {__LINE__, -INFINITY, "null"},
};

TEST(reals_are_the_shortest_that_read_back)
{
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        struct peal_text text = {0};
        struct peal_json json;
        peal_json_init(&json, &text, 0);
        peal_json_real(&json, reals[i].value);
        if (strcmp(peal_text_get(&text), reals[i].expected) != 0)
            fail_msg("row of line %d gave %s", reals[i].line, peal_text_get(&text));
        peal_text_release(&text);
    }
}

static void write_sample(struct peal_json *json)
{
    peal_json_object(json);
    peal_json_put_uint(json, "max", UINT64_MAX);
    peal_json_put_int(json, "min", INT64_MIN);
    peal_json_key(json, "list");
    peal_json_array(json);
    peal_json_bool(json, true);
    peal_json_null(json);
    peal_json_array(json);
    peal_json_array_end(json);
    peal_json_object(json);
    peal_json_object_end(json);
    peal_json_array_end(json);
    peal_json_put_string(json, "none", NULL);
    peal_json_object_end(json);
}

TEST(layout_is_compact_or_indented)
{
    struct peal_text text = {0};
    struct peal_json json;
    peal_json_init(&json, &text, 0);
    write_sample(&json);
    assert_string_equal(peal_text_get(&text),
                        "{\"max\":18446744073709551615,\"min\":-9223372036854775808,"
                        "\"list\":[true,null,[],{}],\"none\":null}");
    peal_text_release(&text);
    peal_json_init(&json, &text, 2);
    write_sample(&json);
    assert_string_equal(peal_text_get(&text), "{\n"
                                              "  \"max\": 18446744073709551615,\n"
                                              "  \"min\": -9223372036854775808,\n"
                                              "  \"list\": [\n"
                                              "    true,\n"
                                              "    null,\n"
                                              "    [],\n"
                                              "    {}\n"
                                              "  ],\n"
                                              "  \"none\": null\n"
                                              "}");
    peal_text_release(&text);
    peal_json_init(&json, &text, PEAL_JSON_ONE_LINE);
    write_sample(&json);
    assert_string_equal(peal_text_get(&text),
                        "{\"max\": 18446744073709551615, \"min\": -9223372036854775808, "
                        "\"list\": [true, null, [], {}], \"none\": null}");
    peal_text_release(&text);
}

TEST(an_element_may_start_a_line)
{
    struct peal_text text = {0};
    struct peal_json json;
    peal_json_init(&json, &text, PEAL_JSON_ONE_LINE);
    peal_json_array(&json);
    for (int i = 0; i < 2; i++) {
        peal_json_break(&json, 2);
        peal_json_object(&json);
        peal_json_put_fixed(&json, "a", i + 0.25, 1);
        peal_json_put_fixed(&json, "b", INFINITY, 1);
        peal_json_object_end(&json);
    }
    peal_json_array_end(&json);
    assert_string_equal(peal_text_get(&text), "[\n  {\"a\": 0.2, \"b\": null},"
                                              "\n  {\"a\": 1.2, \"b\": null}]");
    peal_text_release(&text);
}

TEST(a_text_is_read_strictly)
{
    static const struct {
        int line;
        const char *text, *why; /* NULL: it is JSON */
    } rows[] = {
        {__LINE__, "{}", NULL},
        {__LINE__, " [1, -0.5e+3, \"a\\u00e9\", true, null] ", NULL},
        {__LINE__, "", "there is nothing"},
        {__LINE__, "[1,]", "neither a number"},
        {__LINE__, "[01]", "neither a number"},
        {__LINE__, "[1 2]", "',' or an end"},
        {__LINE__, "{\"a\" 1}", "':' is missing"},
        {__LINE__, "{\"a\": 1, \"a\": 2}", "a second 'a'"},
        {__LINE__, "[1", "ends too early"},
        {__LINE__, "[1]]", "something follows"},
        {__LINE__, "\"a\nb\"", "a control character"},
        {__LINE__, "\"\\x\"", "an unknown escape"},
        {__LINE__, "\"a", "does not end"},
        {__LINE__, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1", "nested too deep"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_source source = {"text", rows[i].text, strlen(rows[i].text)};
        struct peal_arena arena;
        struct peal_diags diags;
        struct peal_json_value *value = NULL;
        peal_arena_init(&arena, 0);
        peal_diags_init(&diags);
        enum peal_status status = peal_json_read(&source, &arena, &diags, &value);
        if ((status == PEAL_OK) != !rows[i].why || (status == PEAL_OK) != (value != NULL))
            fail_msg("line %d: %s", rows[i].line,
                     status == PEAL_OK ? "read" : diags.list.at[0].message);
        if (rows[i].why && !strstr(diags.list.at[0].message, rows[i].why))
            fail_msg("line %d: %s", rows[i].line, diags.list.at[0].message);
        peal_diags_release(&diags);
        peal_arena_release(&arena);
    }
}

TEST(strings_become_utf8)
{
    static const char text[] =
        "{\"k\": \"\\ud83d\\ude00 \\ud800x \\u0000 \xff\xc3\xa9\", \"n\": 9223372036854775808}";
    struct peal_source source = {"text", text, sizeof text - 1};
    struct peal_arena arena;
    struct peal_json_value *value = NULL;
    peal_arena_init(&arena, 0);
    assert_int_equal(peal_json_read(&source, &arena, NULL, &value), PEAL_OK);
    assert_string_equal(peal_json_get_text(value, "k"),
                        "\xf0\x9f\x98\x80 \xef\xbf\xbdx \xef\xbf\xbd \xef\xbf\xbd\xc3\xa9");
    assert_false(peal_json_get(value, "n")->is_integer); /* out of range */
    assert_null(peal_json_get(value, "none"));
    peal_arena_release(&arena);
}

int main(void)
{
    return unit_run();
}
