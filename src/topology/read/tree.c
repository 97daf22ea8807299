/* SPDX-License-Identifier: Apache-2.0 */
#include "topology/read/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* libyaml takes quadratic time for deeply nested brackets. */
static bool is_too_deep(struct peal_tree *yaml)
{
    enum { MAX_DEPTH = 64 };
    int depth = 0;
    uint32_t line = 1;
    for (size_t i = 0; i < yaml->source->len; i++) {
        char c = yaml->source->text[i];
        line += c == '\n';
        depth += c == '[' || c == '{';
        depth -= (c == ']' || c == '}') && depth > 0;
        if (depth > MAX_DEPTH) {
            struct peal_pos pos = {.source = yaml->source, .line = line, .col = 1};
            peal_diag_error(yaml->diags, pos, "brackets are nested more than %d deep", MAX_DEPTH);
            return true;
        }
    }
    return false;
}

bool peal_tree_open(struct peal_tree *yaml, const struct peal_source *source,
                    struct peal_diags *diags)
{
    yaml_parser_t parser;
    *yaml = (struct peal_tree){.source = source, .diags = diags};
    if (is_too_deep(yaml) || !yaml_parser_initialize(&parser)) {
        yaml->failed = true;
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)source->text, source->len);
    if (!yaml_parser_load(&parser, &yaml->document)) {
        struct peal_pos pos = {.source = source,
                               .line = (uint32_t)parser.problem_mark.line + 1,
                               .col = (uint32_t)parser.problem_mark.column + 1};
        peal_diag_error(diags, pos, "not YAML: %s", parser.problem ? parser.problem : "unreadable");
        yaml->failed = true;
    } else if (!yaml_document_get_root_node(&yaml->document)) {
        peal_diag_error(diags, (struct peal_pos){.source = source, .line = 1, .col = 1},
                        "the file is empty");
        yaml->failed = true;
    }
    yaml_parser_delete(&parser);
    return !yaml->failed;
}

void peal_tree_close(struct peal_tree *yaml)
{
    yaml_document_delete(&yaml->document);
}

const yaml_node_t *peal_tree_root(struct peal_tree *yaml)
{
    return yaml_document_get_root_node(&yaml->document);
}

struct peal_pos peal_tree_pos(const struct peal_tree *yaml, const yaml_node_t *node)
{
    size_t len = 0;
    if (node->start_mark.line == node->end_mark.line)
        len = node->end_mark.column - node->start_mark.column;
    return (struct peal_pos){.source = yaml->source,
                             .line = (uint32_t)node->start_mark.line + 1,
                             .col = (uint32_t)node->start_mark.column + 1,
                             .len = (uint32_t)len};
}

const char *peal_tree_text(const yaml_node_t *node)
{
    if (!node || node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL;
}

const yaml_node_t *peal_tree_find(struct peal_tree *yaml, const yaml_node_t *map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE)
        return NULL;
    const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
    for (; pair < map->data.mapping.pairs.top; pair++) {
        const char *name = peal_tree_text(yaml_document_get_node(&yaml->document, pair->key));
        if (name && strcmp(name, key) == 0)
            return yaml_document_get_node(&yaml->document, pair->value);
    }
    return NULL;
}

size_t peal_tree_count(const yaml_node_t *list)
{
    if (!list || list->type != YAML_SEQUENCE_NODE)
        return 0;
    return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

const yaml_node_t *peal_tree_item(struct peal_tree *yaml, const yaml_node_t *list, size_t i)
{
    return yaml_document_get_node(&yaml->document, list->data.sequence.items.start[i]);
}

void peal_tree_refuse(struct peal_tree *yaml, const yaml_node_t *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    peal_diag_add(yaml->diags, PEAL_ERROR, peal_tree_pos(yaml, node), format, args);
    va_end(args);
    yaml->failed = true;
}

const char *peal_tree_need(struct peal_tree *yaml, const yaml_node_t *map, const char *key)
{
    const yaml_node_t *node = peal_tree_find(yaml, map, key);
    const char *text = peal_tree_text(node);
    if (!text || !*text)
        peal_tree_refuse(yaml, node ? node : map, "'%s' is %s", key,
                         node ? "no name" : "missing here");
    return text ? text : "";
}

int64_t peal_tree_number(struct peal_tree *yaml, const yaml_node_t *node, int64_t lo, int64_t hi,
                         int64_t otherwise)
{
    const char *text = peal_tree_text(node);
    char *end = NULL;
    if (!node)
        return otherwise;
    errno = 0;
    long long value = text ? strtoll(text, &end, 10) : 0;
    if (text && *text && *end == 0 && errno == 0 && value >= lo && value <= hi)
        return value;
    peal_tree_refuse(yaml, node, "'%.40s' is no whole number from %lld to %lld", text ? text : "",
                     (long long)lo, (long long)hi);
    return lo;
}
