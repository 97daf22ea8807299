/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds against tables of exact optima, against closed forms, and against all cuts of random graphs. */
#include "base/tests/unit.h"
#include "topology/topology.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A graph under construction: GB/s in whole numbers. */
static uint32_t node(struct peal_graph *g, enum peal_node_kind kind, const char *format, ...)
{
    char name[64];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    uint32_t found = peal_graph_find(g, name);
    if (found != PEAL_GRAPH_NONE)
        return found;
    return peal_graph_add_node(
        g, &(struct peal_graph_node){.name = name, .kind = kind, .group = PEAL_GRAPH_NONE});
}

static void join(struct peal_graph *g, uint32_t from, uint32_t to, uint64_t GBps, bool both)
{
    struct peal_graph_link link = {
        .from = from, .to = to, .lanes = 1, .lat = 1000, .rate = peal_rate_reduced(1000, GBps)};
    if (both)
        peal_graph_add_both(g, &link);
    else
        peal_graph_add_link(g, &link);
}

struct answer {
    struct peal_arena arena;
    struct peal_graph_bound bound;
    uint32_t *pes;
};

/* One rank per PE. */
static struct answer find(struct peal_graph *g, enum peal_contract contract, uint32_t root)
{
    struct answer answer = {0};
    peal_arena_init(&answer.arena, 0);
    answer.pes = peal_arena_alloc(&answer.arena, g->pes * sizeof *answer.pes);
    for (uint32_t i = 0; i < g->pes; i++)
        answer.pes[i] = i;
    struct peal_graph_bound_ask ask = {g, contract, answer.pes, g->pes, root};
    assert_int_equal(peal_graph_bound_find(&ask, &answer.arena, NULL, &answer.bound), PEAL_OK);
    return answer;
}

/* In ps per byte of M: num / den GB/s^-1 over `shares`. */
static void expect(struct peal_graph *g, enum peal_contract contract, uint32_t root, uint64_t num,
                   uint64_t den, int line)
{
    struct answer answer = find(g, contract, root);
    struct peal_rate want = peal_rate_reduced(1000 * num, den);
    if (answer.bound.per_byte.num != want.num || answer.bound.per_byte.den != want.den) {
        print_message("line %d: %s: %" PRIu64 "/%" PRIu64 ", not %" PRIu64 "/%" PRIu64 "\n", line,
                      peal_contract_info(contract)->name, answer.bound.per_byte.num,
                      answer.bound.per_byte.den, want.num, want.den);
        fail();
    }
    peal_arena_release(&answer.arena);
}

static struct peal_graph *finished(struct peal_graph *g)
{
    assert_int_equal(peal_graph_finish(g), PEAL_OK);
    return g;
}

static struct peal_graph *star(uint32_t pes, uint64_t GBps)
{
    struct peal_graph *g = peal_graph_new(NULL);
    uint32_t hub = node(g, PEAL_NODE_SWITCH, "hub");
    for (uint32_t i = 0; i < pes; i++)
        join(g, node(g, PEAL_NODE_PE, "gpu%u", i), hub, GBps, true);
    return finished(g);
}

static struct peal_graph *full(uint32_t pes, uint64_t GBps)
{
    struct peal_graph *g = peal_graph_new(NULL);
    for (uint32_t i = 0; i < pes; i++) {
        for (uint32_t j = 0; j < i; j++)
            join(g, node(g, PEAL_NODE_PE, "gpu%u", j), node(g, PEAL_NODE_PE, "gpu%u", i), GBps,
                 true);
    }
    return finished(g);
}

/* Sides of a grid; closed if it wraps (a side of 2 has one link). */
static struct peal_graph *grid(const uint32_t *side, uint32_t dims, uint64_t GBps, bool wrap)
{
    struct peal_graph *g = peal_graph_new(NULL);
    uint32_t count = 1;
    for (uint32_t d = 0; d < dims; d++)
        count *= side[d];
    for (uint32_t i = 0; i < count; i++)
        node(g, PEAL_NODE_PE, "pe%u", i);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t d = 0, stride = 1; d < dims; stride *= side[d++]) {
            uint32_t x = i / stride % side[d];
            if (x + 1 < side[d])
                join(g, i, i + stride, GBps, true);
            else if (wrap && side[d] > 2)
                join(g, i, i - x * stride, GBps, true);
        }
    }
    return finished(g);
}

/* Boxes of 8 behind a switch each, a NIC per GPU, a switch per rail. */
static struct peal_graph *rails(uint32_t boxes, uint64_t inside, uint64_t nic)
{
    struct peal_graph *g = peal_graph_new(NULL);
    for (uint32_t b = 0; b < boxes; b++) {
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t gpu = node(g, PEAL_NODE_PE, "gpu%u.%u", b, i);
            uint32_t card = node(g, PEAL_NODE_NIC, "nic%u.%u", b, i);
            join(g, gpu, node(g, PEAL_NODE_SWITCH, "nvs%u", b), inside, true);
            join(g, gpu, card, nic, true);
            join(g, card, node(g, PEAL_NODE_SWITCH, "rail%u", i), nic, true);
        }
    }
    return finished(g);
}

static struct peal_graph *two_meshes(void)
{
    struct peal_graph *g = peal_graph_new(NULL);
    uint32_t net = node(g, PEAL_NODE_SWITCH, "net");
    for (uint32_t b = 0; b < 2; b++) {
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t gpu = node(g, PEAL_NODE_PE, "gpu%u.%u", b, i);
            for (uint32_t j = 0; j < i; j++)
                join(g, gpu, node(g, PEAL_NODE_PE, "gpu%u.%u", b, j), 64, true);
            join(g, gpu, net, 50, true);
        }
    }
    return finished(g);
}

/* Groups of 4 routers of 2 hosts; a global link between each pair of groups: 8 of each, two a router. */
static struct peal_graph *dragonfly(void)
{
    struct peal_graph *g = peal_graph_new(NULL);
    for (uint32_t a = 0; a < 9; a++) {
        for (uint32_t r = 0; r < 4; r++) {
            uint32_t router = node(g, PEAL_NODE_SWITCH, "r%u.%u", a, r);
            for (uint32_t h = 0; h < 2; h++)
                join(g, node(g, PEAL_NODE_PE, "h%u.%u.%u", a, r, h), router, 25, true);
            for (uint32_t s = 0; s < r; s++)
                join(g, router, node(g, PEAL_NODE_SWITCH, "r%u.%u", a, s), 25, true);
        }
    }
    for (uint32_t a = 0; a < 9; a++) {
        for (uint32_t b = 0; b < a; b++)
            join(g, node(g, PEAL_NODE_SWITCH, "r%u.%u", a, b / 2),
                 node(g, PEAL_NODE_SWITCH, "r%u.%u", b, (a - 1) / 2), 25, true);
    }
    return finished(g);
}

#define SIDES(...) (const uint32_t[]){__VA_ARGS__}, sizeof(uint32_t[]){__VA_ARGS__} / 4

/* The ratios of a published formula's exact optima. */
TEST(allgather_and_reduce_scatter_of_generated_machines)
{
    const struct {
        int line;
        struct peal_graph *graph;
        uint64_t num, den; /* ranks in S / GB/s that leave it */
    } rows[] = {
        {__LINE__, star(8, 300), 7, 300},
        {__LINE__, star(8, 450), 7, 450},
        {__LINE__, star(16, 150), 1, 10},
        {__LINE__, full(8, 64), 1, 64},
        {__LINE__, full(8, 28), 1, 28},
        {__LINE__, rails(2, 450, 50), 3, 100},
        {__LINE__, rails(4, 450, 50), 31, 500},
        {__LINE__, two_meshes(), 5, 166},
        {__LINE__, grid(SIDES(4, 4), 50, true), 3, 40},
        {__LINE__, grid(SIDES(3, 3, 3), 50, true), 13, 150},
        {__LINE__, grid(SIDES(4, 4, 4), 50, true), 21, 100},
        {__LINE__, grid(SIDES(10, 10), 100, false), 99, 200},
        {__LINE__, grid(SIDES(3, 3, 3), 50, false), 13, 75},
        {__LINE__, dragonfly(), 71, 25},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_graph *g = rows[i].graph;
        expect(g, PEAL_CONTRACT_ALLGATHER, 0, rows[i].num, rows[i].den * g->pes, rows[i].line);
        expect(g, PEAL_CONTRACT_REDUCE_SCATTER, 0, rows[i].num, rows[i].den * g->pes, rows[i].line);
        peal_graph_free(g);
    }
}

TEST(closed_forms_of_a_switch)
{
    struct peal_graph *g = star(8, 300);
    expect(g, PEAL_CONTRACT_ALLREDUCE, 0, 14, 8 * 300, __LINE__);
    expect(g, PEAL_CONTRACT_BROADCAST, 3, 1, 300, __LINE__);
    expect(g, PEAL_CONTRACT_REDUCE, 3, 1, 300, __LINE__);
    expect(g, PEAL_CONTRACT_GATHER, 3, 7, 8 * 300, __LINE__);
    expect(g, PEAL_CONTRACT_SCATTER, 3, 7, 8 * 300, __LINE__);
    expect(g, PEAL_CONTRACT_SCAN, 0, 1, 300, __LINE__);
    expect(g, PEAL_CONTRACT_ALL_TO_ALL, 0, 7, 8 * 300, __LINE__);
    struct answer all = find(g, PEAL_CONTRACT_ALLREDUCE, 0);
    assert_int_equal(all.bound.kind, PEAL_BOUND_PARTS);
    assert_int_equal(all.bound.latency, 2000);
    assert_true(peal_rate_compare(all.bound.pair, all.bound.per_byte) == 0);
    assert_int_equal(peal_graph_bound_time(&all.bound, 2400), 14000);
    assert_int_equal(peal_graph_bound_time(&all.bound, 1), 2000);
    peal_arena_release(&all.arena);
    struct answer none = find(g, PEAL_CONTRACT_BARRIER, 0);
    assert_int_equal(none.bound.kind, PEAL_BOUND_NOTHING);
    assert_int_equal(none.bound.latency, 2000);
    peal_arena_release(&none.arena);
    peal_graph_free(g);
}

/* A bisection of a torus: 4 x 4, 8 links of 50 each way, 8 · 8 / (16 · 400). */
TEST(all_to_all_of_a_torus_and_a_mesh)
{
    struct peal_graph *g = grid(SIDES(4, 4), 50, true);
    expect(g, PEAL_CONTRACT_ALL_TO_ALL, 0, 64, 16 * 400, __LINE__);
    peal_graph_free(g);
    g = grid(SIDES(4, 4), 50, false);
    expect(g, PEAL_CONTRACT_ALL_TO_ALL, 0, 64, 16 * 200, __LINE__);
    peal_graph_free(g);
    g = full(8, 50); /* every link carries one piece */
    expect(g, PEAL_CONTRACT_ALL_TO_ALL, 0, 7, 8 * 350, __LINE__);
    peal_graph_free(g);
}

/* A switch that adds up and sends on: a message to it is worth several, and only cuts remain. */
TEST(switches_that_compute_leave_the_cut)
{
    struct peal_graph *g = peal_graph_new(NULL);
    uint32_t hub = peal_graph_add_node(
        g, &(struct peal_graph_node){
               .name = "hub", .kind = PEAL_NODE_SWITCH, .group = PEAL_GRAPH_NONE, .reduces = true});
    for (uint32_t i = 0; i < 8; i++)
        join(g, node(g, PEAL_NODE_PE, "gpu%u", i), hub, 450, true);
    finished(g);
    expect(g, PEAL_CONTRACT_ALLREDUCE, 0, 1, 450, __LINE__);
    struct answer all = find(g, PEAL_CONTRACT_ALLREDUCE, 0);
    assert_true(all.bound.in_switch);
    peal_arena_release(&all.arena);
    peal_graph_free(g);
}

/* What a PE that forwards nothing has beside it is no way; with a rank it is. */
TEST(only_ranks_and_switches_pass_on)
{
    struct peal_graph *g = peal_graph_new(NULL);
    uint32_t pe[4];
    for (uint32_t i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "pe%u", i);
        pe[i] = peal_graph_add_node(
            g, &(struct peal_graph_node){
                   .name = name, .kind = PEAL_NODE_PE, .group = PEAL_GRAPH_NONE, .ends = true});
    }
    uint32_t hub = node(g, PEAL_NODE_SWITCH, "hub");
    for (uint32_t i = 0; i < 4; i++) {
        join(g, pe[i], pe[(i + 1) % 4], 10, true);
        join(g, pe[i], hub, 1, true);
    }
    finished(g);
    struct peal_arena arena;
    struct peal_graph_bound some;
    const uint32_t ranks[] = {0, 2, 0}; /* two ranks share pe0 */
    peal_arena_init(&arena, 0);
    struct peal_graph_bound_ask ask = {g, PEAL_CONTRACT_BROADCAST, ranks, 2, 0};
    assert_int_equal(peal_graph_bound_find(&ask, &arena, NULL, &some), PEAL_OK);
    assert_true(peal_rate_compare(some.per_byte, (struct peal_rate){1000, 1}) == 0);
    ask = (struct peal_graph_bound_ask){g, PEAL_CONTRACT_ALLGATHER, ranks, 3, 0};
    assert_int_equal(peal_graph_bound_find(&ask, &arena, NULL, &some), PEAL_OK);
    assert_true(peal_rate_compare(some.per_byte, (struct peal_rate){2000, 3}) == 0);
    assert_int_equal(some.ranks, 2);
    assert_true(some.inside[0] && !some.inside[2]);
    peal_arena_release(&arena);
    peal_graph_free(g);
    g = grid(SIDES(4), 10, true);
    expect(g, PEAL_CONTRACT_BROADCAST, 0, 1, 20, __LINE__);
    peal_graph_free(g);
}

TEST(refuses_rates_without_a_common_denominator)
{
    static const uint64_t primes[] = {1000003, 1000033, 1000037, 1000039, 1000081};
    struct peal_graph *g = peal_graph_new(NULL);
    uint32_t hub = node(g, PEAL_NODE_SWITCH, "hub");
    for (uint32_t i = 0; i < 5; i++)
        peal_graph_add_both(g, &(struct peal_graph_link){.from = node(g, PEAL_NODE_PE, "pe%u", i),
                                                         .to = hub,
                                                         .rate = {primes[i], 7},
                                                         .lanes = 1});
    finished(g);
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_graph_bound bound;
    const uint32_t pes[] = {0, 1, 2, 3, 4};
    peal_arena_init(&arena, 0);
    peal_diags_init(&diags);
    struct peal_graph_bound_ask ask = {g, PEAL_CONTRACT_ALLGATHER, pes, 5, 0};
    assert_int_equal(peal_graph_bound_find(&ask, &arena, &diags, &bound), PEAL_UNSUPPORTED);
    assert_int_equal(diags.errors, 1);
    peal_diags_release(&diags);
    peal_arena_release(&arena);
    peal_graph_free(g);
}

/* Random graphs against all their cuts. */
static uint64_t random_state;
static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

/* A closed walk through all nodes, so that everything is reached, and links at random. */
static struct peal_graph *random_graph(uint32_t pes, uint32_t switches)
{
    struct peal_graph *g = peal_graph_new(NULL);
    uint32_t nodes = pes + switches, order[64];
    for (uint32_t i = 0; i < nodes; i++) {
        node(g, i < pes ? PEAL_NODE_PE : PEAL_NODE_SWITCH, "n%u", i);
        order[i] = i;
    }
    for (uint32_t i = nodes - 1; i > 0; i--) {
        uint32_t j = draw(i + 1), other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
    for (uint32_t i = 0; i < nodes; i++)
        join(g, order[i], order[(i + 1) % nodes], 1 + draw(40), draw(3) > 0);
    for (uint32_t i = 0; i < 2 * nodes; i++) {
        uint32_t a = draw(nodes), b = draw(nodes);
        if (a != b)
            join(g, a, b, 1 + draw(40), draw(2) > 0);
    }
    return finished(g);
}

/* The largest ratios of all cuts, one after the other in Gray's order: what leaves and what is inside
 * change by one node. */
struct ratios {
    uint64_t gather_num, gather_den; /* allgather: ranks in S / leaves S */
    uint64_t back_num, back_den;     /* reduce_scatter: ranks in S / enters S */
    uint64_t root_den, any_den;      /* the least that leaves S with rank 0, S with any */
    uint64_t pairs_num, pairs_den;   /* all_to_all: a (N - a) / leaves S */
};

static void larger(uint64_t *num, uint64_t *den, uint64_t a, uint64_t b)
{
    if (*den == 0 || a * *den > *num * b) {
        *num = a;
        *den = b;
    }
}

static void try_all_cuts(const struct peal_graph *g, struct ratios *r)
{
    uint64_t rate[64][64] = {{0}}, out = 0, in = 0, inside = 0;
    uint32_t nodes = (uint32_t)g->nodes.len, ranks = 0;
    for (size_t i = 0; i < g->links.len; i++)
        rate[g->links.at[i].from][g->links.at[i].to] +=
            1000 * g->links.at[i].rate.den / g->links.at[i].rate.num;
    *r = (struct ratios){.root_den = UINT64_MAX, .any_den = UINT64_MAX};
    for (uint64_t code = 1; code < (uint64_t)1 << nodes; code++) {
        uint32_t n = (uint32_t)__builtin_ctzll(code);
        bool enters = !(inside >> n & 1);
        inside ^= (uint64_t)1 << n;
        ranks += n < g->pes ? (enters ? 1 : UINT32_MAX) : 0;
        for (uint32_t m = 0; m < nodes; m++) {
            bool other = m != n && (inside >> m & 1);
            if (m == n)
                continue;
            /* n inside now: its links to the outside leave, those from the inside no longer do */
            if (enters) {
                out += other ? 0 : rate[n][m];
                out -= other ? rate[m][n] : 0;
                in += other ? 0 : rate[m][n];
                in -= other ? rate[n][m] : 0;
            } else {
                out -= other ? 0 : rate[n][m];
                out += other ? rate[m][n] : 0;
                in -= other ? 0 : rate[m][n];
                in += other ? rate[n][m] : 0;
            }
        }
        if (ranks == 0 || ranks == g->pes)
            continue;
        larger(&r->gather_num, &r->gather_den, ranks, out);
        larger(&r->back_num, &r->back_den, ranks, in);
        larger(&r->pairs_num, &r->pairs_den, (uint64_t)ranks * (g->pes - ranks), out);
        r->any_den = peal_size_min(r->any_den, out);
        if (inside & 1)
            r->root_den = peal_size_min(r->root_den, out);
    }
}

static void compare(struct peal_graph *g, int line)
{
    struct ratios r;
    uint64_t n = g->pes;
    try_all_cuts(g, &r);
    expect(g, PEAL_CONTRACT_ALLGATHER, 0, r.gather_num, n * r.gather_den, line);
    expect(g, PEAL_CONTRACT_REDUCE_SCATTER, 0, r.back_num, n * r.back_den, line);
    expect(g, PEAL_CONTRACT_BROADCAST, 0, 1, r.root_den, line);
    struct answer all = find(g, PEAL_CONTRACT_ALLREDUCE, 0);
    struct peal_rate cut = peal_rate_reduced(1000, r.any_den);
    assert_true(peal_rate_compare(all.bound.per_byte, cut) >= 0);
    if (all.bound.kind == PEAL_BOUND_CUT)
        assert_true(peal_rate_compare(all.bound.per_byte, cut) == 0);
    assert_true(peal_rate_compare(all.bound.per_byte, all.bound.pair) <= 0);
    peal_arena_release(&all.arena);
    /* No cut is more than the linear program's optimum, which is at most `gap` more than the bound. */
    struct answer pairs = find(g, PEAL_CONTRACT_ALL_TO_ALL, 0);
    struct peal_rate worst = peal_rate_reduced(1000 * r.pairs_num, n * r.pairs_den);
    double reached = (double)pairs.bound.per_byte.num / (double)pairs.bound.per_byte.den;
    double most = reached * (1 + pairs.bound.gap / 1000.0);
    assert_true((double)worst.num / (double)worst.den <= most * 1.0000001);
    peal_arena_release(&pairs.arena);
}

TEST(equals_the_worst_of_all_cuts_of_random_graphs)
{
    uint64_t seed = (uint64_t)time(NULL);
    print_message("seed %" PRIu64 "\n", seed);
    random_state = seed;
    for (int i = 0; i < 500; i++) {
        uint32_t pes = 4 + draw(i % 50 == 0 ? 17 : 9), switches = draw(5);
        struct peal_graph *g = random_graph(pes, switches);
        compare(g, __LINE__);
        peal_graph_free(g);
    }
}

/* Tables of optima, where they are. A graph: lines of from, to and GB/s; gpus are compute nodes. */
static struct peal_graph *read_graph(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[256], from[64], to[64];
    uint64_t rate;
    if (!file)
        return NULL;
    struct peal_graph *g = peal_graph_new(NULL);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#' || sscanf(line, "%63s %63s %" SCNu64, from, to, &rate) != 3)
            continue;
        uint32_t a = node(g, strncmp(from, "gpu", 3) ? PEAL_NODE_SWITCH : PEAL_NODE_PE, "%s", from);
        uint32_t b = node(g, strncmp(to, "gpu", 3) ? PEAL_NODE_SWITCH : PEAL_NODE_PE, "%s", to);
        join(g, a, b, rate, false);
    }
    fclose(file);
    return finished(g);
}

TEST(equals_the_optima_of_graphs_beside_the_project)
{
    static const struct {
        const char *file;
        uint64_t num, den;
    } rows[] = {{"dgx1", 7, 150}, {"a100x2", 3, 65}, {"mi250x1", 7, 150}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[512];
        snprintf(path, sizeof path, SOURCE_ROOT "/../shared/machines/bounds/graphs/%s.tsv",
                 rows[i].file);
        struct peal_graph *g = read_graph(path);
        if (!g) {
            print_message("no %s: not compared\n", path);
            continue;
        }
        expect(g, PEAL_CONTRACT_ALLGATHER, 0, rows[i].num, rows[i].den * g->pes, __LINE__);
        peal_graph_free(g);
    }
}

int main(void)
{
    return unit_run();
}
