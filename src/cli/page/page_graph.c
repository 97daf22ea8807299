/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/page/page_graph.h"

#include <stdlib.h>

static void add_nodes(struct peal_page *page, const struct peal_graph *graph, const bool *sends)
{
    struct peal_spot *spots = malloc(graph->nodes.len * sizeof *spots);
    if (!spots || !peal_graph_layout(graph, spots)) {
        page->failed = true;
        free(spots);
        return;
    }
    for (size_t n = 0; n < graph->nodes.len; n++) {
        const struct peal_graph_node *node = &graph->nodes.at[n];
        struct peal_page_node drawn = {.x = spots[n].x, .y = spots[n].y, .rank = PEAL_PAGE_NONE};
        drawn.label = peal_page_text(page, node->name);
        drawn.detail = peal_page_printf(page, "%s%s", peal_node_kind_name(node->kind),
                                        sends && sends[n] ? ", sends through the cut" : "");
        drawn.load = sends && sends[n] ? 1 : 0;
        if (node->kind == PEAL_NODE_PE)
            drawn.rank = (uint32_t)n;
        peal_page_node(page, drawn);
    }
    free(spots);
}

void peal_page_graph(struct peal_page *page, const struct peal_graph *graph, const bool *sends)
{
    add_nodes(page, graph, sends);
    for (size_t i = 0; i < graph->links.len && !page->failed; i++) {
        const struct peal_graph_link *link = &graph->links.at[i];
        bool cut = sends && sends[link->from] && !sends[link->to];
        struct peal_text text = {0};
        peal_rate_print(link->rate, &text);
        peal_page_link(page, (struct peal_page_link){
                                 .from = link->from,
                                 .to = link->to,
                                 .load = cut ? 1 : 0,
                                 .detail = peal_page_printf(
                                     page, "%s, %s GB/s, %g ns%s", link->kind, peal_text_get(&text),
                                     1e-3 * (double)link->lat, cut ? ", of the cut" : ""),
                                 .wraps = peal_graph_link_wraps(graph, link)});
        peal_text_release(&text);
    }
}
