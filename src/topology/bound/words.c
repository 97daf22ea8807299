/* SPDX-License-Identifier: Apache-2.0 */
/* What causes a bound, in words: "these 8 PEs leave through 400 GB/s, 8 links: node0.gpu0 ... node0.gpu7". */
#include "topology/bound/bound.h"

#include <string.h>

/* The PEs of one side, runs of neighbours in number as "first ... last"; at most eight runs. */
static void put_pes(const struct peal_graph *graph, const bool *inside, bool side,
                    struct peal_text *out)
{
    enum { MAX_RUNS = 8 };
    uint32_t runs = 0, left = 0;
    for (uint32_t pe = 0; pe < graph->pes; pe++) {
        uint32_t last = pe;
        if (inside[pe] != side)
            continue;
        while (last + 1 < graph->pes && inside[last + 1] == side)
            last++;
        if (runs++ < MAX_RUNS) {
            peal_text_printf(out, "%s%s", runs > 1 ? ", " : "", graph->nodes.at[pe].name);
            if (last > pe)
                peal_text_printf(out, last == pe + 1 ? ", %s" : " ... %s",
                                 graph->nodes.at[last].name);
        } else {
            left += last - pe + 1;
        }
        pe = last;
    }
    if (left)
        peal_text_printf(out, " and %u more", left);
}

static void put_cut(const struct peal_graph *graph, const struct peal_graph_bound *bound,
                    struct peal_text *out)
{
    uint32_t inside = 0;
    for (uint32_t pe = 0; pe < graph->pes; pe++)
        inside += bound->inside[pe];
    /* The side with fewer PEs is easier to see. */
    bool side = inside <= graph->pes - inside;
    bool enters = bound->enters == side;
    uint32_t count = side ? inside : graph->pes - inside;
    if (count == 1)
        peal_text_printf(out, "this PE %s through ", enters ? "is reached" : "leaves");
    else
        peal_text_printf(out, "these %u PEs %s through ", count, enters ? "are reached" : "leave");
    peal_rate_print(bound->at, out);
    peal_text_printf(out, " GB/s, %u link%s: ", bound->links, peal_text_plural(bound->links));
    put_pes(graph, bound->inside, side, out);
}

void peal_graph_bound_words(const struct peal_graph *graph, const struct peal_graph_bound *bound,
                            struct peal_text *out)
{
    switch (bound->kind) {
    case PEAL_BOUND_NOTHING:
        peal_text_puts(out, "no link limits it");
        break;
    case PEAL_BOUND_CUT:
        put_cut(graph, bound, out);
        break;
    case PEAL_BOUND_PARTS:
        peal_text_printf(out, "%u %s%s, all together, leave through ", bound->parts,
                         bound->level ? "groups of level " : "PEs",
                         bound->level ? bound->level : "");
        peal_rate_print(bound->at, out);
        peal_text_puts(out, " GB/s");
        break;
    case PEAL_BOUND_LENGTHS:
        peal_text_puts(out, "all links together, whatever the routes (dual of the linear program)");
        break;
    }
}
