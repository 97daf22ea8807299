/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer behind json.h, and the only place that knows how to quote untrusted bytes. */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void peal_json_init(struct peal_json *json, struct peal_text *out, unsigned indent)
{
    *json = (struct peal_json){.out = out, .indent = indent};
}

static uint64_t level_bit(const struct peal_json *json)
{
    return UINT64_C(1) << (json->depth - 1);
}

static bool is_indented(const struct peal_json *json)
{
    return json->indent != 0 && json->indent != PEAL_JSON_ONE_LINE;
}

static void new_line(struct peal_json *json)
{
    if (is_indented(json))
        peal_text_printf(json->out, "\n%*s", (int)(json->indent * json->depth), "");
}

/* What stands between the elements of a level, and before the first. */
static void separate(struct peal_json *json)
{
    bool follows = json->filled & level_bit(json);
    json->filled |= level_bit(json);
    if (follows)
        peal_text_puts(json->out, ",");
    if (json->break_next) {
        peal_text_printf(json->out, "\n%*s", (int)json->break_indent, "");
        json->break_next = false;
    } else if (follows && json->indent == PEAL_JSON_ONE_LINE) {
        peal_text_puts(json->out, " ");
    }
    new_line(json);
}

void peal_json_break(struct peal_json *json, unsigned indent)
{
    json->break_next = true;
    json->break_indent = indent;
}

/* Comma and line end before an element, unless its key has already seen to that. */
static void begin_value(struct peal_json *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->depth == 0)
        return;
    assert(!(json->objects & level_bit(json)) && "a member of an object needs its key");
    separate(json);
}

static void open_level(struct peal_json *json, bool is_object)
{
    begin_value(json);
    assert(json->depth < PEAL_JSON_DEPTH && "nested too deeply");
    json->depth++;
    json->filled &= ~level_bit(json);
    json->objects &= ~level_bit(json);
    if (is_object)
        json->objects |= level_bit(json);
    peal_text_puts(json->out, is_object ? "{" : "[");
}

static void close_level(struct peal_json *json, bool is_object)
{
    assert(json->depth > 0 && !json->after_key && "an end without its begin");
    assert(!!(json->objects & level_bit(json)) == is_object && "the other kind of end");
    bool filled = json->filled & level_bit(json);
    json->depth--;
    if (filled)
        new_line(json);
    peal_text_puts(json->out, is_object ? "}" : "]");
}

void peal_json_object(struct peal_json *json)
{
    open_level(json, true);
}

void peal_json_object_end(struct peal_json *json)
{
    close_level(json, true);
}

void peal_json_array(struct peal_json *json)
{
    open_level(json, false);
}

void peal_json_array_end(struct peal_json *json)
{
    close_level(json, false);
}

size_t peal_utf8_len(const char *bytes, size_t len)
{
    const unsigned char *p = (const unsigned char *)bytes;
    if (p[0] < 0x80)
        return 1;
    size_t want = peal_utf8_length(p[0]);
    if (p[0] < 0xc2 || p[0] > 0xf4 || len < want)
        return 0;
    for (size_t i = 1; i < want; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return want;
}

static bool is_plain(unsigned char c, bool in_script)
{
    bool is_markup = c == '<' || c == '>' || c == '&';
    bool is_special = c == '"' || c == '\\' || (is_markup && in_script);
    return c >= 0x20 && c < 0x7f && !is_special;
}

static void add_escaped(struct peal_text *out, unsigned char c)
{
    if (c == '"' || c == '\\')
        peal_text_printf(out, "\\%c", c);
    else if (c == '\n')
        peal_text_puts(out, "\\n");
    else if (c == '\t')
        peal_text_puts(out, "\\t");
    else
        peal_text_printf(out, "\\u%04x", c);
}

static void add_quoted(struct peal_text *out, const char *bytes, size_t len, bool in_script)
{
    const unsigned char *p = (const unsigned char *)bytes;
    peal_text_puts(out, "\"");
    for (size_t i = 0; i < len;) {
        size_t plain = i;
        while (plain < len && is_plain(p[plain], in_script))
            plain++;
        if (plain > i) {
            peal_text_add(out, bytes + i, plain - i);
            i = plain;
            continue;
        }
        size_t step = peal_utf8_len(bytes + i, len - i);
        if (step == 0)
            peal_text_puts(out, "\xef\xbf\xbd"), step = 1;
        else if (step == 1)
            add_escaped(out, p[i]);
        else if (step == 3 && memcmp(p + i, "\xe2\x80\xa8", 3) == 0)
            peal_text_puts(out, "\\u2028");
        else if (step == 3 && memcmp(p + i, "\xe2\x80\xa9", 3) == 0)
            peal_text_puts(out, "\\u2029");
        else
            peal_text_add(out, bytes + i, step);
        i += step;
    }
    peal_text_puts(out, "\"");
}

void peal_json_key(struct peal_json *json, const char *key)
{
    assert(json->depth > 0 && (json->objects & level_bit(json)) && !json->after_key &&
           "a key stands in an object");
    separate(json);
    add_quoted(json->out, key, strlen(key), json->in_script);
    peal_text_puts(json->out, json->indent ? ": " : ":");
    json->after_key = true;
}

void peal_json_bytes(struct peal_json *json, const char *bytes, size_t len)
{
    begin_value(json);
    add_quoted(json->out, bytes, len, json->in_script);
}

void peal_json_string(struct peal_json *json, const char *string)
{
    if (string)
        peal_json_bytes(json, string, strlen(string));
    else
        peal_json_null(json);
}

/* By hand, because pages hold millions of numbers and printf would be most of their cost. */
static void add_digits(struct peal_text *out, bool negative, uint64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    if (negative)
        digits[--at] = '-';
    peal_text_add(out, digits + at, sizeof digits - at);
}

void peal_json_int(struct peal_json *json, int64_t value)
{
    begin_value(json);
    add_digits(json->out, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void peal_json_uint(struct peal_json *json, uint64_t value)
{
    begin_value(json);
    add_digits(json->out, false, value);
}

void peal_json_real(struct peal_json *json, double value)
{
    if (!isfinite(value)) {
        peal_json_null(json);
        return;
    }
    begin_value(json);
    char digits[40];
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    peal_text_puts(json->out, digits);
}

/* That many digits after the point; null for what JSON cannot say. */
static void write_fixed(struct peal_json *json, double value, int decimals)
{
    if (!isfinite(value)) {
        peal_json_null(json);
        return;
    }
    begin_value(json);
    peal_text_printf(json->out, "%.*f", decimals, value);
}

void peal_json_bool(struct peal_json *json, bool value)
{
    begin_value(json);
    peal_text_puts(json->out, value ? "true" : "false");
}

void peal_json_null(struct peal_json *json)
{
    begin_value(json);
    peal_text_puts(json->out, "null");
}

void peal_json_raw(struct peal_json *json, const char *value)
{
    begin_value(json);
    peal_text_puts(json->out, value);
}

void peal_json_put_object(struct peal_json *json, const char *key)
{
    peal_json_key(json, key);
    peal_json_object(json);
}

void peal_json_put_array(struct peal_json *json, const char *key)
{
    peal_json_key(json, key);
    peal_json_array(json);
}

void peal_json_put_string(struct peal_json *json, const char *key, const char *value)
{
    peal_json_key(json, key);
    peal_json_string(json, value);
}

void peal_json_put_int(struct peal_json *json, const char *key, int64_t value)
{
    peal_json_key(json, key);
    peal_json_int(json, value);
}

void peal_json_put_uint(struct peal_json *json, const char *key, uint64_t value)
{
    peal_json_key(json, key);
    peal_json_uint(json, value);
}

void peal_json_put_real(struct peal_json *json, const char *key, double value)
{
    peal_json_key(json, key);
    peal_json_real(json, value);
}

void peal_json_put_fixed(struct peal_json *json, const char *key, double value, int decimals)
{
    peal_json_key(json, key);
    write_fixed(json, value, decimals);
}

void peal_json_put_bool(struct peal_json *json, const char *key, bool value)
{
    peal_json_key(json, key);
    peal_json_bool(json, value);
}
