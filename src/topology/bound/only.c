/* SPDX-License-Identifier: Apache-2.0 */
#include "topology/bound/bound.h"

#include <string.h>

/* Is it one of "xgmi,nvlink"? */
static bool is_listed(const char *kinds, const char *kind)
{
    size_t len = strlen(kind);
    for (const char *at = kinds; *at; at += strcspn(at, ",")) {
        at += *at == ',';
        if (strcspn(at, ",") == len && memcmp(at, kind, len) == 0)
            return true;
    }
    return false;
}

static void list_kinds(const struct peal_graph *graph, struct peal_text *out)
{
    for (size_t i = 0; i < graph->links.len; i++) {
        if (!out->len || !is_listed(peal_text_get(out), graph->links.at[i].kind))
            peal_text_printf(out, "%s%s", out->len ? "," : "", graph->links.at[i].kind);
    }
}

struct peal_graph *peal_graph_only(const struct peal_graph *graph, const char *kinds,
                                   struct peal_diags *diags)
{
    struct peal_graph *only = peal_graph_new(diags);
    size_t count = 0;
    if (!only)
        return NULL;
    for (size_t n = 0; n < graph->nodes.len; n++) {
        struct peal_graph_node node = graph->nodes.at[n];
        node.group = PEAL_GRAPH_NONE;
        node.pos = (struct peal_pos){0}; /* the text is gone */
        node.ends = node.kind == PEAL_NODE_MEMORY;
        peal_graph_add_node(only, &node);
    }
    for (size_t i = 0; i < graph->links.len; i++) {
        struct peal_graph_link link = graph->links.at[i];
        link.lanes = 1; /* the rate is that of all lanes already */
        link.pos = (struct peal_pos){0};
        if (is_listed(kinds, link.kind)) {
            peal_graph_add_link(only, &link);
            count++;
        }
    }
    if (count == 0 && diags) {
        struct peal_text known = {0};
        list_kinds(graph, &known);
        peal_diag_error(diags, (struct peal_pos){0}, "no link is of kind '%.60s'", kinds);
        peal_diag_note(diags, (struct peal_pos){0}, "there are: %s", peal_text_get(&known));
        peal_text_release(&known);
    } else if (peal_graph_finish(only) == PEAL_OK) {
        return only;
    }
    peal_graph_free(only);
    return NULL;
}
