/* SPDX-License-Identifier: Apache-2.0 */
/* Turns events of libyaml into nodes. Anything that is only YAML is refused: block style, anchors,
 * tags, quotes other than double quotes, words that are not numbers, true, false or null, a second
 * document. Depth and number of nodes are limited, so that a small file cannot use up the stack or
 * all memory. */
#include "import/mscclpp/json.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

enum { MAX_DEPTH = 32, MAX_NODES = 1 << 24, MAX_MEMBERS = 1024 };

struct json_reader {
    struct peal_import *import;
    struct peal_diags *diags;
    enum peal_status status;
    yaml_parser_t parser;
    struct json *stack[MAX_DEPTH];
    uint32_t depth, nodes, documents;
    const char *key; /* of an object's next member; NULL: a key comes next */
    struct json *root;
};

static struct peal_pos pos_of(const struct json_reader *r, yaml_mark_t mark)
{
    return (struct peal_pos){r->import->source, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1,
                             0};
}

static bool refuse(struct json_reader *r, yaml_mark_t mark, const char *why)
{
    peal_diag_error(r->diags, pos_of(r, mark), "not JSON: %s", why);
    return false;
}

static bool parse_number(const char *text, struct json *node)
{
    char *end;
    const char *digits = text + (*text == '-');
    if (*digits < '0' || *digits > '9' ||
        (digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'))
        return false;
    errno = 0;
    node->number = strtoll(text, &end, 10);
    node->is_integer = *end == '\0' && errno == 0;
    if (*end != '\0')
        (void)strtod(text, &end);
    node->kind = JSON_NUMBER;
    return *end == '\0' && !strpbrk(text, "xXpPnN");
}

static bool fill_scalar(struct json_reader *r, const yaml_event_t *event, struct json *node)
{
    const char *text = (const char *)event->data.scalar.value;
    if (event->data.scalar.anchor || event->data.scalar.tag)
        return refuse(r, event->start_mark, "anchors and tags are YAML's");
    if (strlen(text) != event->data.scalar.length)
        return refuse(r, event->start_mark, "a text with a zero byte");
    node->text = peal_arena_copy(&r->import->arena, text, event->data.scalar.length);
    if (!node->text) {
        r->status = PEAL_NO_MEMORY;
        return false;
    }
    if (event->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE) {
        node->kind = JSON_STRING;
        return true;
    }
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return refuse(r, event->start_mark, "texts are in double quotes");
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        node->kind = JSON_BOOL;
        node->number = text[0] == 't';
        return true;
    }
    node->kind = JSON_NULL;
    if (strcmp(text, "null") == 0 || parse_number(text, node))
        return true;
    return refuse(r, event->start_mark, "neither a number nor true, false, null or a quoted text");
}

/* Puts a node at the current place of the document; it is a key if the object expects one. */
static struct json *add_node(struct json_reader *r, const yaml_event_t *event, enum json_kind kind)
{
    struct json *parent = NULL;
    if (r->depth)
        parent = r->stack[r->depth - 1];
    struct json *node = PEAL_ARENA_NEW(&r->import->arena, struct json);
    if (!node || ++r->nodes > MAX_NODES) {
        r->status = PEAL_NO_MEMORY;
        if (node)
            peal_diag_error(r->diags, pos_of(r, event->start_mark), "more than %d values",
                            MAX_NODES);
        return NULL;
    }
    node->kind = kind;
    node->line = (uint32_t)event->start_mark.line + 1;
    node->col = (uint32_t)event->start_mark.column + 1;
    node->key = r->key;
    if (parent && parent->kind == JSON_ARRAY)
        node->key = parent->key;
    r->key = NULL;
    if (!parent) {
        r->root = node;
        return node;
    }
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    parent->count++;
    return node;
}

static bool wants_key(const struct json_reader *r)
{
    return r->depth && r->stack[r->depth - 1]->kind == JSON_OBJECT && !r->key;
}

static bool take_key(struct json_reader *r, const yaml_event_t *event)
{
    struct json key = {0};
    if (!fill_scalar(r, event, &key))
        return false;
    if (r->stack[r->depth - 1]->count == MAX_MEMBERS)
        return refuse(r, event->start_mark, "an object has at most 1024 members");
    if (key.kind != JSON_STRING)
        return refuse(r, event->start_mark, "keys are texts in double quotes");
    if (peal_json_get(r->stack[r->depth - 1], key.text)) {
        peal_diag_error(r->diags, pos_of(r, event->start_mark), "a second '%.60s'", key.text);
        return false;
    }
    r->key = key.text;
    return true;
}

static bool begin(struct json_reader *r, const yaml_event_t *event, enum json_kind kind)
{
    bool flow;
    const void *anchor, *tag;
    if (kind == JSON_OBJECT) {
        flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else {
        flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    }
    if (!flow || anchor || tag)
        return refuse(r, event->start_mark, "block style, anchors and tags are YAML's");
    if (wants_key(r))
        return refuse(r, event->start_mark, "keys are texts in double quotes");
    if (r->depth == MAX_DEPTH)
        return refuse(r, event->start_mark, "nested too deep: at most 32 levels");
    struct json *node = add_node(r, event, kind);
    if (node)
        r->stack[r->depth++] = node;
    return node != NULL;
}

static bool take_event(struct json_reader *r, const yaml_event_t *event)
{
    struct json *node;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return !r->documents++ || refuse(r, event->start_mark, "a second document");
    case YAML_MAPPING_START_EVENT:
        return begin(r, event, JSON_OBJECT);
    case YAML_SEQUENCE_START_EVENT:
        return begin(r, event, JSON_ARRAY);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        r->depth--;
        return true;
    case YAML_ALIAS_EVENT:
        return refuse(r, event->start_mark, "aliases are YAML's");
    case YAML_SCALAR_EVENT:
        if (wants_key(r))
            return take_key(r, event);
        node = add_node(r, event, JSON_NULL);
        return node && fill_scalar(r, event, node);
    default:
        return true;
    }
}

static void read_all(struct json_reader *r)
{
    bool ended = false;
    while (!ended) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event)) {
            yaml_mark_t mark = r->parser.problem_mark;
            r->status = r->parser.error == YAML_MEMORY_ERROR ? PEAL_NO_MEMORY : PEAL_INVALID;
            if (r->status == PEAL_INVALID)
                peal_diag_error(r->diags, pos_of(r, mark), "not JSON: %s",
                                r->parser.problem ? r->parser.problem : "unreadable");
            return;
        }
        bool good = take_event(r, &event);
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (!good) {
            if (r->status == PEAL_OK)
                r->status = PEAL_INVALID;
            return;
        }
    }
}

struct json *peal_json_read(struct peal_import *import, struct peal_diags *diags,
                            enum peal_status *status)
{
    struct json_reader r = {.import = import, .diags = diags, .status = PEAL_OK};
    const struct peal_source *source = import->source;
    if (!yaml_parser_initialize(&r.parser)) {
        *status = PEAL_NO_MEMORY;
        return NULL;
    }
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)source->text, source->len);
    read_all(&r);
    yaml_parser_delete(&r.parser);
    *status = r.status;
    if (r.status != PEAL_OK)
        return NULL;
    return r.root;
}

const struct json *peal_json_get(const struct json *object, const char *key)
{
    if (!object || object->kind != JSON_OBJECT)
        return NULL;
    for (const struct json *member = object->first; member; member = member->next) {
        if (strcmp(member->key, key) == 0)
            return member;
    }
    return NULL;
}
