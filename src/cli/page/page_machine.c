/* SPDX-License-Identifier: Apache-2.0 */
/* The machine part of a simulation's page: where PEs are, and how busy links are over time. */
#include "cli/page/page_sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS = 400 };

/* Where a PE is drawn: SIPs side by side in rows, cubes within them, PEs within those. The
 * numbering is that of the machine: PE by PE, cube by cube, SIP by SIP. */
static void find_place(const struct peal_machine *machine, uint32_t pe, double *x, double *y)
{
    const struct peal_machine_keys *k = &machine->keys;
    uint64_t in_cube = k->pes[0] * k->pes[1], cubes = k->cubes[0] * k->cubes[1];
    uint64_t cube = pe / in_cube % cubes, sip = pe / (in_cube * cubes), at = pe % in_cube;
    double gap = 0;
    if (cubes > 1)
        gap = 0.6;
    double sip_width = (double)k->cubes[0] * ((double)k->pes[0] + gap) + 1;
    double sip_height = (double)k->cubes[1] * ((double)k->pes[1] + gap) + 1;
    uint64_t across = k->sips <= 4 ? k->sips : (uint64_t)ceil(sqrt((double)k->sips));
    *x = (double)(sip % across) * sip_width +
         (double)(cube % k->cubes[0]) * ((double)k->pes[0] + gap) + (double)(at % k->pes[0]);
    *y = (double)(sip / across) * sip_height +
         (double)(cube / k->cubes[0]) * ((double)k->pes[1] + gap) + (double)(at / k->pes[0]);
}

static void add_frames(struct peal_page *page, const struct peal_machine *machine)
{
    const struct peal_machine_keys *k = &machine->keys;
    uint64_t in_cube = k->pes[0] * k->pes[1], cubes = k->cubes[0] * k->cubes[1];
    if (k->flat || cubes * k->sips <= 1)
        return;
    for (uint64_t i = 0; i < cubes * k->sips; i++) {
        double x, y;
        find_place(machine, (uint32_t)(i * in_cube), &x, &y);
        struct peal_page_frame frame = {x - 0.5, y - 0.5, x + (double)k->pes[0] - 0.5,
                                        y + (double)k->pes[1] - 0.5, 0};
        frame.label = k->sips > 1 ? peal_page_printf(page, "sip %llu cube %llu",
                                                     (unsigned long long)(i / cubes),
                                                     (unsigned long long)(i % cubes))
                                  : peal_page_printf(page, "cube %llu", (unsigned long long)i);
        peal_page_frame(page, frame);
    }
}

/* A flat machine: the PEs that have ranks (the first ones) in a circle around the switch, which is
 * the last node. */
static void add_circle(struct peal_page *page, const struct peal_sim *sim, uint32_t nranks)
{
    double total = (double)peal_sim_stats(sim)->time, radius = nranks / 6.0 + 1;
    for (uint32_t rank = 0; rank < nranks; rank++) {
        struct peal_sim_rank_stats stats;
        double angle = 6.283185307179586 * rank / nranks - 1.5707963267948966;
        peal_sim_rank(sim, rank, &stats);
        peal_page_node(
            page, (struct peal_page_node){.x = radius * cos(angle),
                                          .y = radius * sin(angle),
                                          .load = total > 0 ? (double)stats.math_busy / total : 0,
                                          .rank = rank,
                                          .label = peal_page_printf(page, "pe%u", stats.pe),
                                          .detail = peal_page_printf(page, "rank %u", rank)});
    }
    peal_page_node(page, (struct peal_page_node){.rank = PEAL_PAGE_NONE,
                                                 .label = peal_page_text(page, "switch")});
}

static void add_grid(struct peal_page *page, const struct peal_sim *sim,
                     const struct peal_machine *machine, uint32_t nranks)
{
    double total = (double)peal_sim_stats(sim)->time;
    uint32_t *ranks = malloc((size_t)machine->pes * sizeof *ranks);
    double *loads = calloc(machine->pes, sizeof *loads);
    if (!ranks || !loads) {
        page->failed = true;
        goto free_both;
    }
    for (uint32_t pe = 0; pe < machine->pes; pe++)
        ranks[pe] = PEAL_PAGE_NONE;
    for (uint32_t rank = 0; rank < nranks; rank++) {
        struct peal_sim_rank_stats stats;
        peal_sim_rank(sim, rank, &stats);
        ranks[stats.pe] = rank;
        loads[stats.pe] = 0;
        if (total > 0)
            loads[stats.pe] = (double)stats.math_busy / total;
    }
    for (uint32_t pe = 0; pe < machine->pes; pe++) {
        struct peal_page_node node = {.rank = ranks[pe], .load = loads[pe]};
        find_place(machine, pe, &node.x, &node.y);
        node.label = peal_page_printf(page, "pe%u", pe);
        if (node.rank != PEAL_PAGE_NONE)
            node.detail = peal_page_printf(page, "rank %u", node.rank);
        peal_page_node(page, node);
    }
free_both:
    free(ranks);
    free(loads);
}

/* A link of the grid that joins no neighbours closes a torus. */
static bool wraps(const struct peal_page *page, const struct peal_sim_link_stats *link)
{
    const struct peal_page_node *a = &page->nodes.at[link->from], *b = &page->nodes.at[link->to];
    double max_distance = 1.61;
    if (link->level == PEAL_LEVEL_PE)
        max_distance = 1.01;
    return link->level <= PEAL_LEVEL_CUBE &&
           (fabs(a->x - b->x) > max_distance || fabs(a->y - b->y) > max_distance);
}

void peal_page_machine(struct peal_page *page, const struct peal_sim *sim,
                       const struct peal_machine *machine, uint32_t nranks)
{
    double total = (double)peal_sim_stats(sim)->time;
    bool flat = machine->keys.flat != 0;
    if (flat) {
        add_circle(page, sim, nranks);
    } else {
        add_grid(page, sim, machine, nranks);
        add_frames(page, machine);
    }
    for (uint32_t i = 0; i < peal_sim_link_count(sim) && !page->failed; i++) {
        struct peal_sim_link_stats link;
        if (!peal_sim_link(sim, i, &link))
            continue;
        uint32_t node = link.from < link.to ? link.from : link.to;
        if (flat && node >= nranks)
            continue;
        if (flat) /* the switch, numbered after all PEs, is the last node here */
            link.from < link.to ? (link.to = nranks) : (link.from = nranks);
        peal_page_link(page, (struct peal_page_link){
                                 .from = link.from,
                                 .to = link.to,
                                 .load = total > 0 ? (double)link.busy / total : 0,
                                 .bytes = link.bytes,
                                 .detail = peal_page_printf(page, "%llu transfers",
                                                            (unsigned long long)link.messages),
                                 .wraps = !flat && wraps(page, &link)});
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
        used += peal_sim_link(sim, i, &link) && link.messages > 0;
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
