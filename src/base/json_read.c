/* SPDX-License-Identifier: Apache-2.0 */
/* See json_read.h. Open objects and arrays are on a stack of fixed size; between two tokens the reader
 * knows whether a key, a value or an end may come. */
#include "base/json_read.h"

#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32, MAX_VALUES = 1 << 24, MAX_MEMBERS = 1024 };

struct json_reader {
    const struct peal_source *source;
    struct peal_arena *arena;
    struct peal_diags *diags;
    const char *at, *end, *line_start;
    uint32_t line, depth, values;
    struct peal_json_value *stack[MAX_DEPTH];
    struct peal_json_value *root;
    const char *key; /* of an object's next member */
    bool no_memory;
};

static bool refuse(struct json_reader *r, const char *why)
{
    struct peal_pos pos = {r->source, r->line, (uint32_t)(r->at - r->line_start) + 1, 0};
    peal_diag_error(r->diags, pos, "not JSON: %s", why);
    return false;
}

static bool out_of_memory(struct json_reader *r)
{
    r->no_memory = true;
    return false;
}

static char look(const struct json_reader *r)
{
    return r->at < r->end ? *r->at : '\0';
}

static void skip_space(struct json_reader *r)
{
    for (; r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r');
         r->at++) {
        if (*r->at != '\n')
            continue;
        r->line++;
        r->line_start = r->at + 1;
    }
}

/* Adds a code point; what is none, and 0, is replaced. */
static char *put_utf8(char *to, uint32_t code)
{
    if (code == 0 || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = 1 + (code >= 0x800) + (code >= 0x10000);
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(leads[more] | code >> (6 * more));
    while (more--)
        *to++ = (char)(0x80 | (code >> (6 * more) & 0x3f));
    return to;
}

/* Four hexadecimal digits; UINT32_MAX: they are not. */
static uint32_t read_hex(const char *at, const char *end)
{
    uint32_t code = 0;
    if (end - at < 4)
        return UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit =
            at[i] ? strchr(digits, at[i] >= 'A' && at[i] <= 'F' ? at[i] + 32 : at[i]) : NULL;
        if (!digit)
            return UINT32_MAX;
        code = code << 4 | (uint32_t)(digit - digits);
    }
    return code;
}

/* What follows a backslash. NULL after a report. */
static char *read_escape(struct json_reader *r, char *to)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char c = look(r);
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        r->at++;
        *to++ = meanings[name - names];
        return to;
    }
    uint32_t code = c == 'u' ? read_hex(r->at + 1, r->end) : UINT32_MAX;
    if (code == UINT32_MAX) {
        refuse(r, "an unknown escape");
        return NULL;
    }
    r->at += 5;
    bool is_high = code >= 0xd800 && code < 0xdc00;
    if (is_high && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u') {
        uint32_t low = read_hex(r->at + 2, r->end);
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            r->at += 6;
        }
    }
    return put_utf8(to, code);
}

/* A string in the arena; NULL after a report. A text grows only by bytes that are not UTF-8: one becomes three. */
static const char *read_string(struct json_reader *r, size_t *len)
{
    const char *close = r->at + 1;
    size_t odd = 0;
    for (; close < r->end && *close != '"'; close++) {
        odd += (unsigned char)*close >= 0x80;
        close += *close == '\\' && close + 1 < r->end;
    }
    if (close >= r->end) {
        refuse(r, "a text that does not end");
        return NULL;
    }
    char *text = peal_arena_alloc(r->arena, (size_t)(close - r->at) + 2 * odd + 1), *to = text;
    if (!text) {
        r->no_memory = true;
        return NULL;
    }
    for (r->at++; to && *r->at != '"';) {
        size_t step = peal_utf8_len(r->at, (size_t)(r->end - r->at));
        if ((unsigned char)*r->at < 0x20) {
            refuse(r, "a control character in a text");
            return NULL;
        }
        if (*r->at == '\\') {
            r->at++;
            to = read_escape(r, to);
        } else if (step) {
            memcpy(to, r->at, step);
            to += step;
            r->at += step;
        } else {
            to = put_utf8(to, 0);
            r->at++;
        }
    }
    if (!to)
        return NULL;
    r->at++;
    *to = '\0';
    *len = (size_t)(to - text);
    return text;
}

static size_t digits_at(const char *at, const char *end)
{
    size_t n = 0;
    while (at + n < end && at[n] >= '0' && at[n] <= '9')
        n++;
    return n;
}

/* -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool read_number(struct json_reader *r, struct peal_json_value *value)
{
    const char *at = r->at + (look(r) == '-');
    size_t n = digits_at(at, r->end);
    bool good = n > 0 && (n == 1 || *at != '0');
    at += n;
    value->is_integer = true;
    if (good && at < r->end && *at == '.') {
        n = digits_at(++at, r->end);
        at += n;
        good = n > 0;
        value->is_integer = false;
    }
    if (good && at < r->end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < r->end && (*at == '+' || *at == '-');
        n = digits_at(at, r->end);
        at += n;
        good = n > 0;
        value->is_integer = false;
    }
    if (!good)
        return refuse(r, "neither a number nor true, false, null or a quoted text");
    value->kind = PEAL_JSON_NUMBER;
    value->len = (size_t)(at - r->at);
    value->text = peal_arena_copy(r->arena, r->at, value->len);
    if (!value->text)
        return out_of_memory(r);
    errno = 0;
    value->number = strtoll(value->text, NULL, 10);
    value->is_integer = value->is_integer && errno == 0;
    r->at = at;
    return true;
}

static bool read_word(struct json_reader *r, struct peal_json_value *value)
{
    static const struct {
        const char *word;
        enum peal_json_kind kind;
        int number;
    } words[] = {
        {"true", PEAL_JSON_BOOL, 1}, {"false", PEAL_JSON_BOOL, 0}, {"null", PEAL_JSON_NULL, 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i].word);
        if ((size_t)(r->end - r->at) < len || memcmp(r->at, words[i].word, len) != 0)
            continue;
        r->at += len;
        value->kind = words[i].kind;
        value->number = words[i].number;
        return true;
    }
    return read_number(r, value);
}

static struct peal_json_value *add_value(struct json_reader *r)
{
    struct peal_json_value *parent = r->depth ? r->stack[r->depth - 1] : NULL;
    if (++r->values > MAX_VALUES) {
        refuse(r, "more than 16777216 values");
        return NULL;
    }
    struct peal_json_value *value = PEAL_ARENA_NEW(r->arena, struct peal_json_value);
    if (!value) {
        r->no_memory = true;
        return NULL;
    }
    value->line = r->line;
    value->col = (uint32_t)(r->at - r->line_start) + 1;
    value->key = r->key;
    r->key = NULL;
    if (!parent)
        return r->root = value;
    if (parent->kind == PEAL_JSON_ARRAY)
        value->key = parent->key;
    if (parent->last)
        parent->last->next = value;
    else
        parent->first = value;
    parent->last = value;
    parent->count++;
    return value;
}

/* A value, or the beginning of an object or array. */
static bool read_value(struct json_reader *r)
{
    struct peal_json_value *value = add_value(r);
    if (!value)
        return false;
    char c = look(r);
    if (c == '"') {
        value->kind = PEAL_JSON_STRING;
        return (value->text = read_string(r, &value->len)) != NULL;
    }
    if (c != '{' && c != '[')
        return read_word(r, value);
    if (r->depth == MAX_DEPTH)
        return refuse(r, "nested too deep: at most 32 levels");
    value->kind = c == '{' ? PEAL_JSON_OBJECT : PEAL_JSON_ARRAY;
    r->stack[r->depth++] = value;
    r->at++;
    return true;
}

static bool read_key(struct json_reader *r, const struct peal_json_value *object)
{
    size_t len;
    if (look(r) != '"')
        return refuse(r, "keys are texts in double quotes");
    if (object->count == MAX_MEMBERS)
        return refuse(r, "an object has at most 1024 members");
    struct peal_pos pos = {r->source, r->line, (uint32_t)(r->at - r->line_start) + 1, 0};
    r->key = read_string(r, &len);
    if (r->key && peal_json_get(object, r->key)) {
        peal_diag_error(r->diags, pos, "a second '%.60s'", r->key);
        return false;
    }
    skip_space(r);
    if (r->key && look(r) != ':')
        return refuse(r, "a ':' is missing after a key");
    r->at += r->key != NULL;
    skip_space(r);
    return r->key != NULL;
}

/* Within an object or array: its end, or what comes next in it. */
static bool read_member(struct json_reader *r)
{
    struct peal_json_value *open = r->stack[r->depth - 1];
    bool is_object = open->kind == PEAL_JSON_OBJECT;
    char close = is_object ? '}' : ']';
    if (look(r) == close) {
        r->at++;
        r->depth--;
        return true;
    }
    if (open->count) {
        if (look(r) != ',')
            return refuse(r, r->at == r->end ? "it ends too early" : "a ',' or an end is missing");
        r->at++;
        skip_space(r);
    }
    if (r->at == r->end)
        return refuse(r, "it ends too early");
    return (!is_object || read_key(r, open)) && read_value(r);
}

enum peal_status peal_json_read(const struct peal_source *source, struct peal_arena *arena,
                                struct peal_diags *diags, struct peal_json_value **out)
{
    struct json_reader r = {.source = source,
                            .arena = arena,
                            .diags = diags,
                            .at = source->text,
                            .end = source->text + source->len,
                            .line_start = source->text,
                            .line = 1};
    skip_space(&r);
    bool good = r.at < r.end ? read_value(&r) : refuse(&r, "there is nothing");
    while (good && r.depth) {
        skip_space(&r);
        good = read_member(&r);
    }
    skip_space(&r);
    if (good && r.at < r.end)
        good = refuse(&r, "something follows the value");
    if (good)
        *out = r.root;
    if (r.no_memory)
        return PEAL_NO_MEMORY;
    return good ? PEAL_OK : PEAL_INVALID;
}

const struct peal_json_value *peal_json_get(const struct peal_json_value *object, const char *key)
{
    if (!object || object->kind != PEAL_JSON_OBJECT)
        return NULL;
    for (const struct peal_json_value *member = object->first; member; member = member->next) {
        if (strcmp(member->key, key) == 0)
            return member;
    }
    return NULL;
}

const char *peal_json_get_text(const struct peal_json_value *object, const char *key)
{
    const struct peal_json_value *member = peal_json_get(object, key);
    return member && member->kind == PEAL_JSON_STRING ? member->text : NULL;
}
