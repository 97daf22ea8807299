/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: layout, numbers, and what untrusted bytes become. */
#include "base/json.h"
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

int main(void)
{
    return unit_run();
}
