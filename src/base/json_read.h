/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text -> tree, every value with its position: strict (RFC 8259), without recursion that the text
 * controls, and with limits, so that a small text cannot use up the stack or all memory.
 *
 * Strings become UTF-8: half a surrogate pair, a byte that is not UTF-8 and U+0000 become U+FFFD, so
 * that every string ends where its NUL is.
 */
#ifndef PEAL_BASE_JSON_READ_H
#define PEAL_BASE_JSON_READ_H

#include "base/diag.h"

#include <peal/types.h>

enum peal_json_kind {
    PEAL_JSON_OBJECT,
    PEAL_JSON_ARRAY,
    PEAL_JSON_STRING,
    PEAL_JSON_NUMBER,
    PEAL_JSON_BOOL,
    PEAL_JSON_NULL
};

struct peal_json_value {
    enum peal_json_kind kind;
    uint32_t line, col;
    const char *key;  /* in an object; for an element, that of its array */
    const char *text; /* strings, numbers */
    size_t len;
    int64_t number;                       /* numbers, and bools as 0 and 1 */
    bool is_integer;                      /* numbers: without fraction and exponent, and in range */
    uint32_t count;                       /* children */
    struct peal_json_value *first, *last; /* children */
    struct peal_json_value *next;
};

/* The root, in the arena. PEAL_INVALID: diags say why; then, and when memory is out, *out is left alone.
 * An object has at most 1024 members, no two of the same name; there are at most 32 levels. */
enum peal_status peal_json_read(const struct peal_source *source, struct peal_arena *arena,
                                struct peal_diags *diags, struct peal_json_value **out);
/* The member of that name; NULL: there is none, or it is not an object, which may be NULL. */
const struct peal_json_value *peal_json_get(const struct peal_json_value *object, const char *key);
/* The text of a member that is a string; NULL: there is none. */
const char *peal_json_get_text(const struct peal_json_value *object, const char *key);
/* The first element of a list that may be missing. */
static inline const struct peal_json_value *peal_json_first(const struct peal_json_value *list)
{
    return list ? list->first : NULL;
}
static inline uint32_t peal_json_count(const struct peal_json_value *list)
{
    return list ? list->count : 0;
}

#endif
