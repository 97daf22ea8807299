/* SPDX-License-Identifier: Apache-2.0 */
/* YAML, and JSON as a part of it, as a tree with positions. */
#ifndef PEAL_TOPOLOGY_READ_TREE_H
#define PEAL_TOPOLOGY_READ_TREE_H

#include "base/base.h"
#include <peal/types.h>

#include <yaml.h>

struct peal_tree {
    const struct peal_source *source;
    struct peal_diags *diags;
    yaml_document_t document;
    bool failed; /* after a diagnostic */
};

/* False after a diagnostic. Released by close in any case. */
bool peal_tree_open(struct peal_tree *yaml, const struct peal_source *source,
                    struct peal_diags *diags);
void peal_tree_close(struct peal_tree *yaml);

const yaml_node_t *peal_tree_root(struct peal_tree *yaml);
struct peal_pos peal_tree_pos(const struct peal_tree *yaml, const yaml_node_t *node);
/* The value of a key, or NULL; also if `map` is NULL or none. */
const yaml_node_t *peal_tree_find(struct peal_tree *yaml, const yaml_node_t *map, const char *key);
/* Items of a list, 0 of anything else. */
size_t peal_tree_count(const yaml_node_t *list);
const yaml_node_t *peal_tree_item(struct peal_tree *yaml, const yaml_node_t *list, size_t i);
/* The text of a scalar, or NULL; also if node is NULL or something else. */
const char *peal_tree_text(const yaml_node_t *node);
/* A text that has to be there: "" after a diagnostic. `at`: where it is missed. */
const char *peal_tree_need(struct peal_tree *yaml, const yaml_node_t *map, const char *key);
/* A whole number; `otherwise` if node is NULL. */
int64_t peal_tree_number(struct peal_tree *yaml, const yaml_node_t *node, int64_t lo, int64_t hi,
                         int64_t otherwise);
void peal_tree_refuse(struct peal_tree *yaml, const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
