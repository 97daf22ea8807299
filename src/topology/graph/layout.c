/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of layout.h. */
#include "topology/graph/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FULL_TURN 6.283185307179586

static void place_on_grid(const struct peal_grid *grid, uint32_t pe, struct peal_spot *out)
{
    uint32_t place[PEAL_GRAPH_MAX_DIMS] = {0}, block = pe / peal_grid_block(grid);
    double at[PEAL_GRAPH_MAX_DIMS] = {0}, size[PEAL_GRAPH_MAX_DIMS] = {1, 1, 1, 1};
    peal_grid_find(grid, pe, place);
    for (uint32_t d = 0; d < grid->dims; d++) {
        const struct peal_grid_dim *dim = &grid->dim[d];
        double gap = dim->outer > 1 || (grid->dim[0].outer > 1 && d == 1) ? 0.6 : 0;
        at[d] = place[d] + gap * (place[d] / dim->inner);
        size[d] = dim->outer * (dim->inner + gap);
    }
    /* Cards behind each other: a column of them is as wide as they are many. */
    double card = grid->dims > 2 ? size[2] + 0.8 : 1;
    double width = size[0] * card + 1, height = size[1] * card + 1;
    uint32_t across = grid->blocks <= 4 ? grid->blocks : (uint32_t)ceil(sqrt(grid->blocks));
    out->x = at[0] * card + at[2] + at[3] * (width + 1) + block % across * width;
    out->y = at[1] * card - 0.62 * at[2] + (double)(block / across) * height;
}

bool peal_graph_link_wraps(const struct peal_graph *graph, const struct peal_graph_link *link)
{
    const struct peal_grid *grid = &graph->grid;
    uint32_t a[PEAL_GRAPH_MAX_DIMS], b[PEAL_GRAPH_MAX_DIMS], block = 0;
    if (!grid->dims)
        return false;
    block = peal_grid_block(grid);
    if (link->from / block != link->to / block)
        return false;
    peal_grid_find(grid, link->from, a);
    peal_grid_find(grid, link->to, b);
    for (uint32_t d = 0; d < grid->dims; d++) {
        if (a[d] > b[d] + 1 || b[d] > a[d] + 1)
            return true;
    }
    return false;
}

/* Nodes by rings: how far each is from the nearest PE. */
struct rings {
    const struct peal_graph *graph;
    uint32_t *ring; /* of each node */
    double *angle;
    uint32_t *order; /* nodes of the ring that is laid out */
    uint32_t *count; /* nodes of each ring */
    double *radius;
    uint32_t rings;
};

static bool find_rings(struct rings *r)
{
    const struct peal_graph *graph = r->graph;
    size_t nodes = graph->nodes.len;
    uint32_t done = graph->pes;
    memset(r->ring, 0xff, nodes * sizeof *r->ring);
    for (uint32_t pe = 0; pe < graph->pes; pe++) {
        r->ring[pe] = 0;
        r->order[pe] = pe;
    }
    for (uint32_t i = 0; i < done; i++) {
        uint32_t at = r->order[i];
        for (int back = 0; back < 2; back++) {
            const uint32_t *first = back ? graph->first_in : graph->first_out;
            for (uint32_t l = first[at]; l < first[at + 1]; l++) {
                const struct peal_graph_link *link =
                    &graph->links.at[(back ? graph->in : graph->out)[l]];
                uint32_t to = back ? link->from : link->to;
                if (r->ring[to] == UINT32_MAX) {
                    r->ring[to] = r->ring[at] + 1;
                    r->order[done++] = to;
                }
            }
        }
    }
    for (size_t n = 0; n < nodes; n++) {
        if (r->ring[n] == UINT32_MAX)
            r->ring[n] = 1; /* joined to nothing */
        r->rings = (uint32_t)peal_size_max(r->rings, r->ring[n] + 1);
    }
    r->count = calloc(r->rings, sizeof *r->count);
    r->radius = calloc(r->rings, sizeof *r->radius);
    for (size_t n = 0; r->count && n < nodes; n++)
        r->count[r->ring[n]]++;
    return r->count && r->radius;
}

static void find_radii(struct rings *r)
{
    uint32_t last = r->rings - 1;
    for (uint32_t i = r->rings; i-- > 0;) {
        double own = r->count[i] / 6.0 + (i == 0);
        r->radius[i] = i == last ? own : fmax(own, r->radius[i + 1] + 1.5);
        if (i == last && r->count[i] == 1)
            r->radius[i] = 0;
    }
    /* Rings that have room go outwards, so that lines are not all in the middle. */
    for (uint32_t i = 1; i < r->rings; i++) {
        double even = r->radius[0] * (double)(r->rings - i - (r->count[last] == 1)) / r->rings;
        r->radius[i] = fmax(r->radius[i], even);
    }
}

/* PEs in order, a gap of one between groups of the outermost level. */
static void place_pes(struct rings *r)
{
    const struct peal_graph *graph = r->graph;
    uint32_t gaps = 0, slot = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t pe = 0; pe < graph->pes; pe++) {
            bool gap = graph->levels && peal_graph_group_at(graph, pe, 0) !=
                                            peal_graph_group_at(graph, (pe + 1) % graph->pes, 0);
            if (turn)
                r->angle[pe] = FULL_TURN * slot / (graph->pes + gaps) - FULL_TURN / 4;
            else
                gaps += gap;
            slot += 1 + gap;
        }
        slot = 0;
    }
}

/* The direction of the neighbours of the ring around, if they have one. */
static void aim(struct rings *r, uint32_t node, uint32_t index)
{
    const struct peal_graph *graph = r->graph;
    double x = 0, y = 0, n = 0;
    for (uint32_t l = graph->first_in[node]; l < graph->first_in[node + 1]; l++) {
        uint32_t from = graph->links.at[graph->in[l]].from;
        if (r->ring[from] + 1 != r->ring[node])
            continue;
        x += cos(r->angle[from]);
        y += sin(r->angle[from]);
        n++;
    }
    if (n > 0 && hypot(x, y) / n > 0.2)
        r->angle[node] = atan2(y, x);
    else
        r->angle[node] = FULL_TURN * index / r->count[r->ring[node]] - FULL_TURN / 4;
    while (r->angle[node] < -FULL_TURN / 4)
        r->angle[node] += FULL_TURN;
}

/* By angle, from the top: insertion is enough, for nodes come nearly in order. */
static void sort_ring(struct rings *r, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t node = r->order[i], j = i;
        for (; j > 0 && r->angle[r->order[j - 1]] > r->angle[node]; j--)
            r->order[j] = r->order[j - 1];
        r->order[j] = node;
    }
}

static void place_ring(struct rings *r, uint32_t ring)
{
    uint32_t count = 0;
    for (uint32_t n = r->graph->pes; n < r->graph->nodes.len; n++) {
        if (r->ring[n] != ring)
            continue;
        aim(r, n, count);
        r->order[count++] = n;
    }
    sort_ring(r, count);
    double apart = fmin(1 / fmax(r->radius[ring], 1), FULL_TURN / count), widest = FULL_TURN;
    for (uint32_t i = 1; i < count; i++)
        widest = fmin(widest, r->angle[r->order[i]] - r->angle[r->order[i - 1]]);
    for (uint32_t i = 0; i < count && widest < apart * 0.99; i++)
        r->angle[r->order[i]] = r->angle[r->order[0]] + FULL_TURN * i / count;
}

static bool place_in_rings(const struct peal_graph *graph, struct peal_spot *out)
{
    size_t nodes = graph->nodes.len;
    struct rings r = {.graph = graph};
    r.ring = malloc(nodes * sizeof *r.ring);
    r.order = malloc(nodes * sizeof *r.order);
    r.angle = calloc(nodes, sizeof *r.angle);
    bool good = r.ring && r.order && r.angle && find_rings(&r);
    if (good) {
        find_radii(&r);
        place_pes(&r);
        for (uint32_t ring = 1; ring < r.rings; ring++)
            place_ring(&r, ring);
        for (size_t n = 0; n < nodes; n++)
            out[n] = (struct peal_spot){r.radius[r.ring[n]] * cos(r.angle[n]),
                                        r.radius[r.ring[n]] * sin(r.angle[n])};
    }
    free(r.ring);
    free(r.order);
    free(r.angle);
    free(r.count);
    free(r.radius);
    return good;
}

bool peal_graph_layout(const struct peal_graph *graph, struct peal_spot *out)
{
    if (!graph->grid.dims)
        return place_in_rings(graph, out);
    for (uint32_t pe = 0; pe < graph->pes; pe++)
        place_on_grid(&graph->grid, pe, &out[pe]);
    return true;
}
