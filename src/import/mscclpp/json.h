/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text -> tree, every node with its position. libyaml reads it, because JSON is YAML's flow
 * style; whatever only YAML has is refused. */
#ifndef PEAL_IMPORT_JSON_H
#define PEAL_IMPORT_JSON_H

#include "import/reader.h"

enum json_kind { JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER, JSON_BOOL, JSON_NULL };

struct json {
    enum json_kind kind;
    uint32_t line, col;
    const char *key;    /* in an object; for an element, that of its array */
    const char *text;   /* strings, numbers */
    int64_t number;     /* numbers, and bools as 0 and 1 */
    bool is_integer;    /* numbers */
    uint32_t count;     /* children */
    struct json *first; /* children */
    struct json *last, *next;
};

/* The document's root, in the import's arena. NULL: diags say why, or *status is not
 * PEAL_INVALID. */
struct json *peal_json_read(struct peal_import *import, struct peal_diags *diags,
                            enum peal_status *status);
/* The member of that name; NULL: there is none, or it is not an object. */
const struct json *peal_json_get(const struct json *object, const char *key);
/* A list that may be missing: its first element, and how many there are. */
static inline const struct json *peal_json_first(const struct json *list)
{
    return list ? list->first : NULL;
}
static inline uint32_t peal_json_count(const struct json *list)
{
    return list ? (uint32_t)list->count : 0;
}

#endif
