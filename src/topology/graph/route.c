/* SPDX-License-Identifier: Apache-2.0 */
/* Routes by table and by coordinates.
 *
 * What is asked most often is answered first: a node with one link has no choice; a node that is
 * joined to the destination of a single link takes that link. So what needs a table is a way between
 * nodes that forward, and PEs below one switch share its column.
 *
 * A column of `shortest` has, for each node, which of its links comes next (its place among the links
 * that leave the node). ecmp and up_down choose among equals when asked, and need the distance.
 */
#include "topology/graph/route.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT64_MAX
enum { REFERENCE_BYTES = 65536, MAX_TABLE_BYTES = 1 << 30, NO_PORT = 0xffff, MAX_LINKS = 4096 };
#define MAX_COST UINT64_C(10000000000)
#define MAX_CHECK_WORK (UINT64_C(1) << 28)

/* Distances to one node. */
struct route_column {
    uint32_t node;
    uint16_t *port;     /* shortest: of each node */
    uint64_t *distance; /* ecmp, up_down: of each node */
    uint64_t *down;     /* up_down: along links that lead down */
};

struct route_distance {
    uint64_t distance;
    uint32_t node;
};

struct coordinate {
    uint16_t outer, inner;
};

struct peal_routes {
    const struct peal_graph *graph;
    uint32_t *ends;   /* where graph->out[i] leads */
    uint32_t *hang;   /* of each PE: the node that its only link comes from, or the PE itself */
    uint64_t *cost;   /* of each link */
    uint32_t *height; /* up_down: of each node, from the nearest PE */
    uint32_t *turn;   /* up_down: as many destinations in a row take the same link up */
    struct coordinate *at; /* dimension: [pe * dims + dim] */

    struct route_column *columns; /* a ring of the newest */
    uint32_t *column_of;          /* of each node: its place there + 1 */
    uint32_t max_columns, count, next;
    PEAL_VEC(struct route_distance) heap;
};

/* The link from one node to a neighbour that comes first among those that join them, or NONE. */
static uint32_t link_to(const struct peal_routes *r, uint32_t at, uint32_t to)
{
    const uint32_t *first = r->graph->first_out;
    for (uint32_t i = first[at]; i < first[at + 1]; i++) {
        if (r->ends[i] == to)
            return r->graph->out[i];
    }
    return PEAL_GRAPH_NONE;
}

/* Coordinates. */

/* +1 or -1: the way from a to b on a line of n, or a ring; on a tie, rising numbers. */
static int direction(uint32_t a, uint32_t b, uint32_t n, bool ring)
{
    uint32_t up = b > a ? b - a : b + n - a;
    if (!ring)
        return b > a ? 1 : -1;
    return up <= n - up ? 1 : -1;
}

static uint32_t moved(uint32_t a, int by, uint32_t n)
{
    return (a + n + (uint32_t)by) % n;
}

/* One step along a dimension, from `a` towards `to`. */
static struct coordinate step(const struct peal_grid_dim *dim, struct coordinate a,
                              struct coordinate to)
{
    if (a.outer != to.outer) {
        int by = direction(a.outer, to.outer, dim->outer, dim->wrap_outer);
        uint32_t edge = by > 0 ? dim->inner - 1 : 0;
        if (a.inner == edge)
            return (struct coordinate){(uint16_t)moved(a.outer, by, dim->outer),
                                       (uint16_t)(dim->inner - 1 - edge)};
        to.inner = (uint16_t)edge;
    }
    int by = direction(a.inner, to.inner, dim->inner, dim->wrap_inner);
    return (struct coordinate){a.outer, (uint16_t)moved(a.inner, by, dim->inner)};
}

static uint32_t next_on_grid(const struct peal_routes *r, uint32_t at, uint32_t to)
{
    const struct peal_grid *grid = &r->graph->grid;
    uint32_t block_pes = peal_grid_block(grid), block = at / block_pes, to_block = to / block_pes;
    uint32_t place[PEAL_GRAPH_MAX_DIMS];
    if (block != to_block) {
        if (at == block * block_pes) {
            int by = direction(block, to_block, grid->blocks, grid->wrap_blocks);
            return link_to(r, at, moved(block, by, grid->blocks) * block_pes);
        }
        to = block * block_pes;
    }
    const struct coordinate *a = r->at + (size_t)at * grid->dims;
    const struct coordinate *b = r->at + (size_t)to * grid->dims;
    uint32_t d = 0;
    while (a[d].outer == b[d].outer && a[d].inner == b[d].inner)
        d++;
    for (uint32_t e = 0; e < grid->dims; e++) {
        struct coordinate c = e == d ? step(&grid->dim[d], a[d], b[d]) : a[e];
        place[e] = c.outer * grid->dim[e].inner + c.inner;
    }
    return link_to(r, at, peal_grid_at(grid, block, place));
}

/* Columns. */

static bool push(struct peal_routes *r, uint64_t distance, uint32_t node)
{
    if (!peal_vec_push(&r->heap, ((struct route_distance){distance, node})))
        return false;
    size_t i = r->heap.len - 1;
    struct route_distance *heap = r->heap.at, entry = heap[i];
    for (; i > 0 && heap[(i - 1) / 2].distance > distance; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
    return true;
}

static struct route_distance pop(struct peal_routes *r)
{
    struct route_distance *heap = r->heap.at, top = heap[0], last = heap[--r->heap.len];
    size_t i = 0, count = r->heap.len;
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && heap[child + 1].distance < heap[child].distance)
            child++;
        if (heap[child].distance >= last.distance)
            break;
        heap[i] = heap[child];
    }
    if (count)
        heap[i] = last;
    return top;
}

/* Does this link lead away from the PEs? Between nodes of one height, towards the lower number. */
static bool leads_up(const struct peal_routes *r, uint32_t link)
{
    const struct peal_graph_link *l = &r->graph->links.at[link];
    uint32_t from = r->height[l->from], to = r->height[l->to];
    return to > from || (to == from && l->to < l->from);
}

enum which { ALL, DOWN, UP };

/* Distances to what is in the heap already, backwards along links of one kind. */
static bool spread(struct peal_routes *r, uint64_t *distance, enum which which)
{
    const struct peal_graph *graph = r->graph;
    while (r->heap.len) {
        struct route_distance e = pop(r);
        if (e.distance > distance[e.node])
            continue;
        for (uint32_t i = graph->first_in[e.node]; i < graph->first_in[e.node + 1]; i++) {
            uint32_t link = graph->in[i], from = graph->links.at[link].from;
            if (which != ALL && leads_up(r, link) != (which == UP))
                continue;
            uint64_t far = e.distance + r->cost[link];
            if (far >= distance[from])
                continue;
            distance[from] = far;
            /* What ends ways may only be their start. */
            if (!graph->nodes.at[from].ends && !push(r, far, from))
                return false;
        }
    }
    return true;
}

/* The place among the links of a node of the n-th of those that are on a best way. n is taken modulo
 * their number. */
static uint32_t choose(const struct peal_routes *r, const uint64_t *distance, uint32_t at,
                       enum which which, uint64_t n)
{
    const struct peal_graph *graph = r->graph;
    uint32_t first = graph->first_out[at], end = graph->first_out[at + 1], equal = 0;
    uint64_t best = NEVER;
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = first; i < end; i++) {
            uint32_t link = graph->out[i];
            uint64_t rest = distance[r->ends[i]];
            if (rest == NEVER || (which != ALL && leads_up(r, link) != (which == UP)) ||
                (graph->nodes.at[r->ends[i]].ends && rest != 0))
                continue;
            if (turn && rest + r->cost[link] == best && n-- == 0)
                return i - first;
            if (!turn && rest + r->cost[link] < best) {
                best = rest + r->cost[link];
                equal = 0;
            }
            equal += !turn && rest + r->cost[link] == best;
        }
        if (!equal)
            return NO_PORT;
        if (!turn)
            n %= equal;
    }
    return NO_PORT;
}

static void release(struct route_column *column)
{
    free(column->port);
    free(column->distance);
    free(column->down);
    *column = (struct route_column){0};
}

static uint64_t *distances(size_t nodes)
{
    uint64_t *out = malloc(nodes * sizeof *out);
    if (out)
        memset(out, 0xff, nodes * sizeof *out);
    return out;
}

static bool fill(struct peal_routes *r, struct route_column *c, uint32_t node)
{
    const struct peal_graph *graph = r->graph;
    size_t nodes = graph->nodes.len;
    bool up_down = graph->rule == PEAL_ROUTE_UP_DOWN;
    c->node = node;
    c->distance = distances(nodes);
    c->down = up_down ? distances(nodes) : NULL;
    if (!c->distance || (up_down && !c->down))
        return false;
    r->heap.len = 0;
    c->distance[node] = 0;
    if (up_down) {
        c->down[node] = 0;
        if (!push(r, 0, node) || !spread(r, c->down, DOWN))
            return false;
        for (uint32_t n = 0; n < nodes; n++) {
            c->distance[n] = c->down[n];
            if (c->down[n] != NEVER && (n == node || !graph->nodes.at[n].ends) &&
                !push(r, c->down[n], n))
                return false;
        }
        return spread(r, c->distance, UP);
    }
    if (!push(r, 0, node) || !spread(r, c->distance, ALL))
        return false;
    if (graph->rule == PEAL_ROUTE_ECMP)
        return true;
    c->port = malloc(nodes * sizeof *c->port);
    if (!c->port)
        return false;
    for (uint32_t n = 0; n < nodes; n++)
        c->port[n] = n == node ? NO_PORT : (uint16_t)choose(r, c->distance, n, ALL, 0);
    free(c->distance);
    c->distance = NULL;
    return true;
}

/* The column of a node. NULL: out of memory. */
static const struct route_column *column_of(struct peal_routes *r, uint32_t node)
{
    if (r->column_of[node])
        return &r->columns[r->column_of[node] - 1];
    uint32_t place = r->next;
    struct route_column *c = &r->columns[place];
    r->next = (r->next + 1) % r->max_columns;
    if (place < r->count)
        r->column_of[c->node] = 0;
    else
        r->count++;
    release(c);
    if (!fill(r, c, node)) {
        release(c);
        return NULL;
    }
    r->column_of[node] = place + 1;
    return c;
}

static uint32_t next_by_table(struct peal_routes *r, uint32_t from, uint32_t at, uint32_t to)
{
    const struct peal_graph *graph = r->graph;
    const struct route_column *c = column_of(r, r->hang[to]);
    uint32_t port;
    if (!c)
        return PEAL_GRAPH_NONE;
    if (graph->rule == PEAL_ROUTE_ECMP)
        port = choose(r, c->distance, at, ALL, peal_hash_u64((uint64_t)from << 32 | to, at) >> 16);
    else if (graph->rule == PEAL_ROUTE_UP_DOWN && c->down[at] != NEVER)
        port = choose(r, c->down, at, DOWN, to);
    else if (graph->rule == PEAL_ROUTE_UP_DOWN)
        port = choose(r, c->distance, at, UP, to / r->turn[at]);
    else
        port = c->port[at];
    return port == NO_PORT ? PEAL_GRAPH_NONE : graph->out[graph->first_out[at] + port];
}

/* The given way between two PEs, or NULL. */
static const struct peal_graph_way *find_way(const struct peal_graph *graph, uint32_t from,
                                             uint32_t to)
{
    size_t low = 0, high = graph->ways.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct peal_graph_way *way = &graph->ways.at[middle];
        if (way->from < from || (way->from == from && way->to < to))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == graph->ways.len || graph->ways.at[low].from != from || graph->ways.at[low].to != to)
        return NULL;
    return &graph->ways.at[low];
}

uint32_t peal_routes_next(struct peal_routes *r, uint32_t from, uint32_t at, uint32_t to)
{
    const struct peal_graph *graph = r->graph;
    assert(at != to && to < graph->pes);
    const struct peal_graph_way *way = graph->ways.len ? find_way(graph, from, to) : NULL;
    for (uint32_t i = 0; way && i < way->count; i++) {
        uint32_t link = graph->steps.at[way->first + i];
        if (graph->links.at[link].from == at)
            return link;
    }
    uint32_t first = graph->first_out[at];
    if (graph->first_out[at + 1] == first + 1)
        return graph->out[first];
    if (graph->rule == PEAL_ROUTE_DIMENSION)
        return next_on_grid(r, at, to);
    if (r->hang[to] == at)
        return graph->in[graph->first_in[to]];
    return next_by_table(r, from, at, to);
}

bool peal_routes_cost(struct peal_routes *r, uint32_t from, uint32_t to,
                      struct peal_route_cost *out)
{
    struct peal_route_cost cost = {.rate = {0, 1}};
    for (uint32_t at = from; at != to; cost.links++) {
        uint32_t link = peal_routes_next(r, from, at, to);
        if (link == PEAL_GRAPH_NONE)
            return false;
        const struct peal_graph_link *l = &r->graph->links.at[link];
        at = l->to;
        cost.lat += l->lat + (at == to ? 0 : r->graph->nodes.at[at].lat);
        if (peal_rate_compare(l->rate, cost.rate) > 0)
            cost.rate = l->rate;
    }
    *out = cost;
    return true;
}

/* What the links below a node have chosen among already, it does not choose by: a node two levels up
 * takes the next link only after all links of one level up have had their turn. */
static void find_turns(struct peal_routes *r, const uint32_t *list, uint32_t count)
{
    const struct peal_graph *graph = r->graph;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = list[i], ups = 0;
        for (uint32_t l = graph->first_out[at]; l < graph->first_out[at + 1]; l++)
            ups += r->height[r->ends[l]] == r->height[at] + 1;
        uint64_t turn = (uint64_t)r->turn[at] * peal_size_max(ups, 1);
        for (uint32_t l = graph->first_out[at]; l < graph->first_out[at + 1]; l++) {
            uint32_t to = r->ends[l];
            if (r->height[to] == r->height[at] + 1 && turn > r->turn[to])
                r->turn[to] = (uint32_t)peal_size_min(turn, PEAL_GRAPH_MAX_PES);
        }
    }
}

/* Heights by breadth: PEs first. */
static bool find_heights(struct peal_routes *r)
{
    const struct peal_graph *graph = r->graph;
    size_t nodes = graph->nodes.len;
    uint32_t *list = malloc(nodes * sizeof *list), count = graph->pes;
    r->height = malloc(nodes * sizeof *r->height);
    r->turn = malloc(nodes * sizeof *r->turn);
    bool good = list && r->height && r->turn;
    if (good) {
        memset(r->height, 0xff, nodes * sizeof *r->height);
        for (size_t n = 0; n < nodes; n++)
            r->turn[n] = 1;
        for (uint32_t pe = 0; pe < graph->pes; pe++) {
            r->height[pe] = 0;
            list[pe] = pe;
        }
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t l = graph->first_out[list[i]]; l < graph->first_out[list[i] + 1]; l++) {
                uint32_t to = r->ends[l];
                if (r->height[to] == UINT32_MAX) {
                    r->height[to] = r->height[list[i]] + 1;
                    list[count++] = to;
                }
            }
        }
        find_turns(r, list, count);
    }
    free(list);
    return good;
}

static bool find_coordinates(struct peal_routes *r)
{
    const struct peal_graph *graph = r->graph;
    const struct peal_grid *grid = &graph->grid;
    uint32_t place[PEAL_GRAPH_MAX_DIMS];
    r->at = malloc((size_t)graph->pes * grid->dims * sizeof *r->at);
    for (uint32_t pe = 0; r->at && pe < graph->pes; pe++) {
        peal_grid_find(grid, pe, place);
        for (uint32_t d = 0; d < grid->dims; d++)
            r->at[(size_t)pe * grid->dims + d] =
                (struct coordinate){(uint16_t)(place[d] / grid->dim[d].inner),
                                    (uint16_t)(place[d] % grid->dim[d].inner)};
    }
    return r->at != NULL;
}

static void find_ends(struct peal_routes *r)
{
    const struct peal_graph *graph = r->graph;
    for (size_t i = 0; i < graph->links.len; i++) {
        const struct peal_graph_link *link = &graph->links.at[i];
        uint64_t time = peal_rate_time(link->rate, REFERENCE_BYTES);
        time = peal_size_min(time, MAX_COST) + link->lat + graph->nodes.at[link->to].lat;
        r->ends[i] = graph->links.at[graph->out[i]].to;
        /* In the lowest digits the number of links, for equal times. No sum overflows. */
        r->cost[i] = peal_size_min(time, MAX_COST) * MAX_LINKS + 1;
    }
    for (uint32_t pe = 0; pe < graph->pes; pe++) {
        uint32_t first = graph->first_in[pe];
        r->hang[pe] = pe;
        if (graph->first_in[pe + 1] == first + 1) {
            uint32_t from = graph->links.at[graph->in[first]].from;
            if (!graph->nodes.at[from].ends)
                r->hang[pe] = from;
        }
    }
}

struct peal_routes *peal_routes_new(const struct peal_graph *graph)
{
    struct peal_routes *r = calloc(1, sizeof *r);
    size_t nodes = graph->nodes.len, links = graph->links.len;
    if (!r)
        return NULL;
    assert(graph->out && (graph->rule != PEAL_ROUTE_DIMENSION || graph->grid.dims));
    r->graph = graph;
    size_t each = nodes * (graph->rule == PEAL_ROUTE_SHORTEST ? sizeof(uint16_t) : 16);
    r->max_columns = (uint32_t)peal_size_min(peal_size_max(MAX_TABLE_BYTES / each, 1), nodes);
    r->ends = malloc((links + 1) * sizeof *r->ends);
    r->cost = malloc((links + 1) * sizeof *r->cost);
    r->hang = malloc(graph->pes * sizeof *r->hang);
    r->columns = calloc(r->max_columns, sizeof *r->columns);
    r->column_of = calloc(nodes, sizeof *r->column_of);
    bool good = r->ends && r->cost && r->hang && r->columns && r->column_of;
    if (good)
        find_ends(r);
    if (good && graph->rule == PEAL_ROUTE_UP_DOWN)
        good = find_heights(r);
    if (good && graph->rule == PEAL_ROUTE_DIMENSION)
        good = find_coordinates(r);
    if (good)
        return r;
    peal_routes_free(r);
    return NULL;
}

void peal_routes_free(struct peal_routes *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; r->columns && i < r->count; i++)
        release(&r->columns[i]);
    peal_vec_release(&r->heap);
    free(r->ends);
    free(r->hang);
    free(r->cost);
    free(r->height);
    free(r->turn);
    free(r->at);
    free(r->columns);
    free(r->column_of);
    free(r);
}

enum peal_status peal_routes_check(const struct peal_graph *graph, struct peal_diags *diags)
{
    struct peal_routes *r = NULL;
    enum peal_status status = PEAL_OK;
    if (graph->rule != PEAL_ROUTE_UP_DOWN)
        return PEAL_OK; /* every PE reaches every other one: the graph is finished */
    if ((uint64_t)graph->pes * (graph->nodes.len + graph->links.len) > MAX_CHECK_WORK) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "up_down routes need a fat tree here: too many nodes to try all pairs");
        return PEAL_INVALID;
    }
    r = peal_routes_new(graph);
    if (!r)
        return PEAL_NO_MEMORY;
    for (uint32_t to = 0; to < graph->pes && status == PEAL_OK; to++) {
        if (to > 0 && r->hang[to] == r->hang[to - 1])
            continue;
        const struct route_column *c = column_of(r, r->hang[to]);
        if (!c)
            status = PEAL_NO_MEMORY;
        for (uint32_t from = 0; from < graph->pes && status == PEAL_OK; from++) {
            if (c->distance[from] != NEVER)
                continue;
            peal_diag_error(diags, graph->nodes.at[from].pos,
                            "no way from '%s' to '%s' goes up first and then down",
                            graph->nodes.at[from].name, graph->nodes.at[to].name);
            status = PEAL_INVALID;
        }
    }
    peal_routes_free(r);
    return status;
}
