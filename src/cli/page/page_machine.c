/* SPDX-License-Identifier: Apache-2.0 */
/* The machine part of a simulation's page: where PEs are, and how busy links are over time. */
#include "cli/page/page_sim.h"

#include <stdio.h>
#include <stdlib.h>

enum { BINS = 400 };

/* Cubes, and SIPs around them, of a machine that has several. */
static void add_frames(struct peal_page *page, const struct peal_graph *graph)
{
    const struct peal_grid *grid = &graph->grid;
    uint32_t in_cube = 1, cubes = 1;
    for (uint32_t d = 0; d < grid->dims; d++) {
        in_cube *= grid->dim[d].inner;
        cubes *= grid->dim[d].outer;
    }
    for (uint32_t i = 0; i < cubes * grid->blocks && cubes * grid->blocks > 1; i++) {
        const struct peal_page_node *first = &page->nodes.at[(size_t)i * in_cube];
        struct peal_page_frame frame = {first->x - 0.5, first->y - 0.5,
                                        first->x + grid->dim[0].inner - 0.5,
                                        first->y + grid->dim[1].inner - 0.5, 0};
        frame.label = grid->blocks > 1
                          ? peal_page_printf(page, "sip %u cube %u", i / cubes, i % cubes)
                          : peal_page_printf(page, "cube %u", i);
        peal_page_frame(page, frame);
    }
}

static void add_nodes(struct peal_page *page, const struct peal_sim *sim,
                      const struct peal_graph *graph, uint32_t nranks)
{
    double total = (double)peal_sim_stats(sim)->time;
    size_t count = graph->nodes.len;
    struct peal_spot *spots = malloc(count * sizeof *spots);
    struct peal_page_node *nodes = calloc(count, sizeof *nodes);
    if (!spots || !nodes || !peal_graph_layout(graph, spots)) {
        page->failed = true;
        goto free_both;
    }
    for (size_t n = 0; n < count; n++)
        nodes[n] =
            (struct peal_page_node){.x = spots[n].x, .y = spots[n].y, .rank = PEAL_PAGE_NONE};
    for (uint32_t rank = 0; rank < nranks; rank++) {
        struct peal_sim_rank_stats stats;
        peal_sim_rank(sim, rank, &stats);
        nodes[stats.pe].rank = rank;
        if (total > 0)
            nodes[stats.pe].load = (double)stats.math_busy / total;
    }
    for (size_t n = 0; n < count; n++) {
        nodes[n].label = peal_page_text(page, graph->nodes.at[n].name);
        if (nodes[n].rank != PEAL_PAGE_NONE)
            nodes[n].detail = peal_page_printf(page, "rank %u", nodes[n].rank);
        peal_page_node(page, nodes[n]);
    }
free_both:
    free(spots);
    free(nodes);
}

void peal_page_machine(struct peal_page *page, const struct peal_sim *sim,
                       const struct peal_machine *machine, uint32_t nranks)
{
    const struct peal_graph *graph = machine->graph;
    double total = (double)peal_sim_stats(sim)->time;
    add_nodes(page, sim, graph, nranks);
    if (graph->grid.dims == 2 && !page->failed)
        add_frames(page, graph);
    for (uint32_t i = 0; i < peal_sim_link_count(sim) && !page->failed; i++) {
        struct peal_sim_link_stats link;
        peal_sim_link(sim, i, &link);
        peal_page_link(page, (struct peal_page_link){
                                 .from = link.from,
                                 .to = link.to,
                                 .load = total > 0 ? (double)link.busy / total : 0,
                                 .bytes = link.bytes,
                                 .detail = peal_page_printf(page, "%llu transfers",
                                                            (unsigned long long)link.messages),
                                 .wraps = peal_graph_link_wraps(graph, &graph->links.at[i])});
    }
}

/* Adds the part of [start, end) that each bin covers. */
static void spread(double *bins, double width, uint64_t start, uint64_t end)
{
    double from = (double)start / width, to = (double)end / width;
    for (long i = (long)from; i < BINS && i <= (long)to; i++) {
        double low = from > (double)i ? from : (double)i;
        double high = to < (double)(i + 1) ? to : (double)(i + 1);
        if (high > low)
            bins[i] += high - low;
    }
}

/* The row of the page that a track of the machine belongs to. */
static int kind_of(uint32_t track)
{
    if (track == PEAL_TRACK_LINK)
        return 0;
    if (track == PEAL_TRACK_DMA)
        return 1;
    return 2;
}

void peal_page_utilisation(struct peal_page *page, const struct peal_sim *sim,
                           const struct peal_sim_log *log, uint32_t nranks)
{
    static const char *const names[] = {"links in use", "dma engines", "math engines"};
    uint64_t time = peal_sim_stats(sim)->time, used = 0;
    if (!log->nbars || time < BINS)
        return;
    double(*bins)[BINS] = calloc(3, sizeof *bins);
    if (!bins) {
        page->failed = true;
        return;
    }
    uint64_t step = (time + BINS - 1) / BINS;
    for (uint64_t i = 0; i < log->nbars; i++) {
        int kind = kind_of(log->bars[i].track);
        spread(bins[kind], (double)step, log->bars[i].start, log->bars[i].end);
    }
    for (uint32_t i = 0; i < peal_sim_link_count(sim); i++) {
        struct peal_sim_link_stats link;
        peal_sim_link(sim, i, &link);
        used += link.messages > 0;
    }
    double counts[3] = {(double)(used ? used : 1), 2.0 * nranks, (double)nranks};
    for (int kind = 0; kind < 3; kind++) {
        double sum = 0;
        for (int i = 0; i < BINS; i++) {
            bins[kind][i] /= counts[kind];
            sum += bins[kind][i];
        }
        if (sum > 0)
            peal_page_series(page, names[kind], 0, step, bins[kind], BINS);
    }
    free(bins);
}
