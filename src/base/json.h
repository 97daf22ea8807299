/* SPDX-License-Identifier: Apache-2.0 */
/* A streaming JSON writer for every result that leaves the program.
 *
 *   struct peal_json json;
 *   peal_json_init(&json, &text, 2);
 *   peal_json_object(&json);
 *   peal_json_put_uint(&json, "ranks", 4);
 *   peal_json_object_end(&json);
 *
 * It adds commas, colons and line ends by itself. What it writes is always valid JSON in valid
 * UTF-8, whatever bytes it is given: control characters and the two line separators of Unicode are
 * escaped, and bytes that are not UTF-8 become U+FFFD. With `in_script` it may stand inside a
 * script element of an HTML page: `<`, `>` and `&` are escaped too.
 *
 * Misuse (a value without its key, an unbalanced end) is our own bug and asserted.
 */
#ifndef PEAL_BASE_JSON_H
#define PEAL_BASE_JSON_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEAL_JSON_DEPTH = 64 };

/* Instead of an indent: one line, a blank after each comma and colon. */
#define PEAL_JSON_ONE_LINE (~0u)

struct peal_json {
    struct peal_text *out; /* borrowed */
    unsigned indent;       /* spaces per level; 0 = one line without any; or ONE_LINE */
    unsigned depth;
    uint64_t objects; /* bit per level: an object, not an array */
    uint64_t filled;  /* bit per level: has an element already */
    bool after_key;
    bool in_script;  /* set after init: the text goes into a script element */
    bool break_next; /* see peal_json_break */
    unsigned break_indent;
};

void peal_json_init(struct peal_json *json, struct peal_text *out, unsigned indent);

void peal_json_object(struct peal_json *json);
void peal_json_object_end(struct peal_json *json);
void peal_json_array(struct peal_json *json);
void peal_json_array_end(struct peal_json *json);
void peal_json_key(struct peal_json *json, const char *key);

/* NULL is written as null. */
void peal_json_string(struct peal_json *json, const char *string);
/* len bytes that may hold NUL. */
void peal_json_bytes(struct peal_json *json, const char *bytes, size_t len);
void peal_json_int(struct peal_json *json, int64_t value);
void peal_json_uint(struct peal_json *json, uint64_t value);
/* The shortest text that reads back as the same double; null for what JSON cannot say. */
void peal_json_real(struct peal_json *json, double value);
void peal_json_bool(struct peal_json *json, bool value);
void peal_json_null(struct peal_json *json);
/* A value that is JSON already; it is not checked. */
void peal_json_raw(struct peal_json *json, const char *value);

/* Key and value in one call; an object or array is then filled in and ended as usual. */
void peal_json_put_object(struct peal_json *json, const char *key);
void peal_json_put_array(struct peal_json *json, const char *key);
void peal_json_put_string(struct peal_json *json, const char *key, const char *value);
void peal_json_put_int(struct peal_json *json, const char *key, int64_t value);
void peal_json_put_uint(struct peal_json *json, const char *key, uint64_t value);
void peal_json_put_real(struct peal_json *json, const char *key, double value);
void peal_json_put_fixed(struct peal_json *json, const char *key, double value, int decimals);
void peal_json_put_bool(struct peal_json *json, const char *key, bool value);

/* The next element starts on a line of its own, after `indent` blanks: for long arrays in one-line
 * layouts. */
void peal_json_break(struct peal_json *json, unsigned indent);

/* Length of the UTF-8 sequence that the len (> 0) bytes start with, 0 if it is not one: overlong
 * forms, surrogates and values past U+10FFFF are refused. */
size_t peal_utf8_len(const char *bytes, size_t len);

#endif
