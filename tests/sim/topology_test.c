/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as machines: closed forms of every generator in whole picoseconds, random graphs, and
 * machine files that are refused.
 *
 * Links of 10 GB/s (beta = 100 ps per byte) and of 50 ns; nothing but links costs time.
 */
#include "base/tests/unit.h"
#include "lib/random.h"
#include "sim_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAT = 50000, BETA = 100, BYTES = 61440 };

#define ENGINES                                                                                    \
    "ipcq: {slots: 1024, slot_bytes: 0}\n"                                                         \
    "dma: {bw_GBps: .inf, queue: 256}\n"                                                           \
    "credit: {bytes: 0}\n"                                                                         \
    "mem: {tcm: {bw_GBps: .inf}}\n"                                                                \
    "math: {clock_GHz: .inf, lanes: {f32: 1}}\n"                                                   \
    "signal: {notify_bytes: 0, request_bytes: 0}\n"
#define LINK "link: {bw_GBps: 10, lat_ns: 50}"
#define LEVEL(generator) "topology: {levels: {" generator ", " LINK "}}\n" ENGINES

static struct peal_machine *read_machine(const char *text, char *said, size_t size)
{
    struct peal_source source = {.name = "m.yaml", .text = text, .len = strlen(text)};
    struct peal_machine *machine = NULL;
    struct peal_diags diags;
    struct peal_text list = {0};
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_read(&source, &diags, &machine);
    peal_diags_print(&diags, false, &list);
    /* Messages are wrapped. */
    snprintf(said, size, "%s", peal_text_get(&list));
    for (char *at = said; (at = strstr(at, "\n  ")) != NULL;)
        memmove(at, at + 2, strlen(at + 2) + 1), *at = ' ';
    assert_true((status == PEAL_OK) == (machine != NULL));
    peal_text_release(&list);
    peal_diags_release(&diags);
    return machine;
}

static const char doubling[] =
    "kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {\n"
    "    let acc = x\n"
    "    for s in 0 .. log2(nranks) {\n"
    "        send acc to rank ^ (1 << s)\n"
    "        acc = op(acc, recv from rank ^ (1 << s))\n"
    "    }\n"
    "    y = acc\n"
    "}\n";
static const char ring[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                           "    y = x\n"
                           "    for s in 1 .. nranks {\n"
                           "        send y to (rank + 1) % nranks\n"
                           "        y = recv from (rank - 1) % nranks\n"
                           "    }\n"
                           "}\n";
/* Round by round: ranks that differ by s exchange their parts. */
static const char pairs[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                            "    y[rank of nranks] = x[rank of nranks]\n"
                            "    for s in 1 .. nranks {\n"
                            "        send x[(rank ^ s) of nranks] to rank ^ s\n"
                            "        y[(rank ^ s) of nranks] = recv from rank ^ s\n"
                            "    }\n"
                            "}\n";
static const char broadcast[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                                "    y = x\n"
                                "    for s in 0 .. log2(nranks) {\n"
                                "        if rank < 1 << s { send y to rank + (1 << s) }\n"
                                "        if rank >= 1 << s and rank < 2 << s {\n"
                                "            y = recv from rank - (1 << s)\n"
                                "        }\n"
                                "    }\n"
                                "}\n";
static const char one_way[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                              "    if rank == 0 { send x to nranks - 1 }\n"
                              "    if rank == nranks - 1 { y = recv from 0 }\n"
                              "}\n";

static uint64_t time_on(const struct peal_machine *machine, const char *kernel, uint32_t nranks)
{
    struct peal_plan *plan = case_plan_make(&(struct case_plan){
        .text = kernel, .nranks = nranks, .count = BYTES / 4, .depth = 1024, .dtype = PEAL_F32});
    struct case_run run = case_run(plan, machine, &(struct peal_sim_options){0}, 1);
    assert_false(run.deadlock);
    free(plan);
    return run.time;
}

/* A message of n bytes over h links. */
#define WAY(h, n) ((uint64_t)(h)*LAT + (uint64_t)(n)*BETA)

TEST(generators_take_the_time_of_their_closed_forms)
{
    static const char full[] = LEVEL("full: 16"), star[] = LEVEL("switch: 16"),
                      circle[] = LEVEL("ring: 16"),
                      rows[] = LEVEL("mesh: [4, 3, 2]") "ccl: {embed: row_major}\n",
                      torus[] = LEVEL("torus: [4, 4, 4]") "ccl: {embed: ring}\n",
                      torus4[] = LEVEL("torus: [4, 2, 3, 5]"),
                      slow[] = LEVEL("star: 16, switch: {lat_ns: 7}"),
                      tree[] = LEVEL("fat_tree: 64, arity: 8, switch: {lat_ns: 7}"),
                      fly[] = LEVEL("dragonfly: [2, 4, 9], global: {bw_GBps: 5, lat_ns: 500}"),
                      boxes[] = "topology:\n"
                                "  levels:\n"
                                "    - {star: [4, 2, 3], name: gpu, " LINK "}\n"
                                "    - {rails: 3, nic: {bw_GBps: 5, lat_ns: 20, pass_ns: 3}, " LINK
                                "}\n" ENGINES;
    static const struct {
        int line;
        const char *machine, *kernel;
        uint32_t ranks;
        uint64_t time;
    } cases[] = {
        {__LINE__, full, ring, 16, 15 * WAY(1, BYTES)},
        {__LINE__, full, doubling, 16, 4 * WAY(1, BYTES)},
        {__LINE__, full, pairs, 16, 15 * WAY(1, BYTES / 16)},
        {__LINE__, full, broadcast, 16, 4 * WAY(1, BYTES)},
        {__LINE__, star, ring, 16, 15 * WAY(2, BYTES)},
        {__LINE__, star, doubling, 16, 4 * WAY(2, BYTES)},
        {__LINE__, star, pairs, 16, 15 * WAY(2, BYTES / 16)},
        {__LINE__, star, broadcast, 16, 4 * WAY(2, BYTES)},
        {__LINE__, slow, broadcast, 16, 4 * (WAY(2, BYTES) + 7000)},
        {__LINE__, circle, ring, 16, 15 * WAY(1, BYTES)},
        {__LINE__, circle, one_way, 9, WAY(8, BYTES)},
        {__LINE__, circle, one_way, 13, WAY(4, BYTES)},
        {__LINE__, torus, ring, 64, 63 * WAY(1, BYTES)},
        {__LINE__, torus4, one_way, 2, WAY(1, BYTES)},
        {__LINE__, rows, one_way, 24, WAY(6, BYTES)},
        /* below one leaf, then across: 3 + 3 steps; 7 + 56 partners */
        {__LINE__, tree, doubling, 64, 3 * (WAY(2, BYTES) + 7000) + 3 * (WAY(4, BYTES) + 21000)},
        {__LINE__, tree, pairs, 64,
         7 * (WAY(2, BYTES / 64) + 7000) + 56 * (WAY(4, BYTES / 64) + 21000)},
        {__LINE__, tree, ring, 8, 7 * (WAY(2, BYTES) + 7000)},
        /* end, router, router, over to the other group, router, end */
        {__LINE__, fly, one_way, 2, WAY(2, BYTES)},
        {__LINE__, fly, one_way, 8, WAY(3, BYTES)},
        {__LINE__, fly, one_way, 72, 4 * LAT + 500000 + BYTES * UINT64_C(200)},
        /* on one rail by two NICs; else by the switch as well */
        {__LINE__, boxes, one_way, 4, WAY(2, BYTES)},
        {__LINE__, boxes, one_way, 5, 2 * LAT + 2 * 20000 + 2 * 3000 + BYTES * UINT64_C(200)},
        {__LINE__, boxes, one_way, 6, 4 * LAT + 2 * 20000 + 2 * 3000 + BYTES * UINT64_C(200)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[400];
        struct peal_machine *machine = read_machine(cases[i].machine, said, sizeof said);
        if (!machine)
            fail_msg("line %d: %s", cases[i].line, said);
        uint64_t time = time_on(machine, cases[i].kernel, cases[i].ranks);
        if (time != cases[i].time)
            fail_msg("line %d: %llu ps, not %llu", cases[i].line, (unsigned long long)time,
                     (unsigned long long)cases[i].time);
        peal_machine_free(machine);
    }
}

/* Any connected graph: a random tree of nodes that forward, PEs among them or below them, and more
 * links, some of them one way. */
static void random_graph(uint64_t *r, struct peal_text *out)
{
    static const char *const rules[] = {"auto", "shortest", "ecmp"};
    uint32_t pes = 2 + below(r, 11), hubs = below(r, 6);
    uint32_t nodes = pes + hubs, more = below(r, nodes);
    peal_text_printf(out, "topology:\n  routes: %s\n  nodes:\n", rules[below(r, 3)]);
    for (uint32_t i = 0; i < nodes; i++)
        peal_text_printf(out, "    - {name: n%u, kind: %s, lat_ns: %u}\n", i,
                         i < hubs ? "switch" : "pe", below(r, 9));
    peal_text_puts(out, "  links:\n");
    for (uint32_t i = 1; i < nodes + more; i++) {
        uint32_t from = i < nodes ? i : below(r, nodes);
        uint32_t to = below(r, i < nodes ? i : nodes);
        if (from == to)
            continue;
        peal_text_printf(out,
                         "    - {from: n%u, to: n%u, bw_GBps: %u, lat_ns: %u, lanes: %u%s%s}\n",
                         from, to, 1 + below(r, 40), below(r, 900), 1 + below(r, 3),
                         below(r, 4) ? "" : ", mode: store-and-forward",
                         i >= nodes && below(r, 2) ? ", one_way: true" : "");
    }
    peal_text_puts(out, ENGINES);
}

/* Every result is right, a run is the same twice, and a printed machine takes the same time. */
TEST(random_graphs_run_and_keep_contracts)
{
    static const char *const kernels[] = {"allreduce_ring",     "allreduce_chunked",
                                          "allgather_ring",     "all_to_all_pairwise",
                                          "broadcast_binomial", "reduce_scatter_ring"};
    enum { SEED = 20261119 }; /* the first of 1,000 */
    for (int i = 0; i < 1000; i++) {
        uint64_t r = SEED + (uint64_t)i;
        struct peal_text text = {0}, printed = {0};
        char said[400];
        random_graph(&r, &text);
        struct peal_machine *machine = read_machine(peal_text_get(&text), said, sizeof said);
        if (!machine)
            fail_msg("seed %llu: %s\n%s", SEED + (unsigned long long)i, said, peal_text_get(&text));
        struct peal_plan *plan =
            case_plan_try(&(struct case_plan){.kernel = kernels[below(&r, 6)],
                                              .nranks = 1 + below(&r, machine->pes),
                                              .count = 1 + (int64_t)below(&r, 300),
                                              .depth = 4,
                                              .dtype = PEAL_F32});
        if (plan) {
            case_check(plan, machine, &(struct peal_sim_options){.data = PEAL_SIM_DATA_FULL}, 1);
            struct case_run run = case_run(plan, machine, &(struct peal_sim_options){0}, 1);
            peal_machine_print(machine, &printed);
            struct peal_machine *again = read_machine(peal_text_get(&printed), said, sizeof said);
            assert_non_null(again);
            struct case_run second = case_run(plan, again, &(struct peal_sim_options){0}, 1);
            assert_int_equal(run.stats.hash, second.stats.hash);
            peal_machine_free(again);
            free(plan);
        }
        peal_machine_free(machine);
        peal_text_release(&text);
        peal_text_release(&printed);
    }
}

/* A faster link, or a shorter one, makes nothing slower where messages do not meet. */
TEST(more_is_never_slower_without_contention)
{
    char text[1024], said[400];
    uint64_t before = UINT64_MAX;
    for (int bw = 1; bw <= 64; bw *= 2) {
        snprintf(text, sizeof text,
                 "topology: {levels: {fat_tree: 16, arity: 4, link: {bw_GBps: %d, lat_ns: "
                 "50}}}\n" ENGINES,
                 bw);
        struct peal_machine *machine = read_machine(text, said, sizeof said);
        uint64_t time = time_on(machine, doubling, 16);
        assert_true(time < before);
        before = time;
        peal_machine_free(machine);
    }
}

#define TWO "topology:\n  nodes:\n    - {name: a}\n    - {name: b}\n"

TEST(bad_graphs_are_refused_with_a_place)
{
    static const struct {
        int line;
        const char *text, *said;
    } rows[] = {
        {__LINE__, TWO ENGINES, "m.yaml:4:7: error: no way leads from 'a' to 'b'"},
        {__LINE__, TWO "    - {name: a}\n" ENGINES, "m.yaml:5:7: error: there are two nodes 'a'"},
        {__LINE__, TWO "    - {name: c, kind: gpu}\n" ENGINES,
         "m.yaml:5:23: error: 'kind' is pe|switch|nic|memory, not 'gpu'"},
        {__LINE__, TWO "    - {name: c, count: 1000000000}\n" ENGINES,
         "m.yaml:5:24: error: 'count' takes a number from 1 to 65536"},
        {__LINE__, TWO "    - {kind: pe}\n" ENGINES, "m.yaml:5:7: error: missing key 'name'"},
        {__LINE__, TWO "  links:\n    - {from: a, to: c, bw_GBps: 1}\n" ENGINES,
         "m.yaml:6:21: error: there is no node 'c'"},
        {__LINE__, TWO "  links:\n    - {from: a, to: a, bw_GBps: 1}\n" ENGINES,
         "m.yaml:6:7: error: 'a' has a link to itself"},
        {__LINE__, TWO "  links:\n    - {from: a, to: b, bw_GBps: 1, lanes: 0}\n" ENGINES,
         "m.yaml:6:43: error: 'lanes' takes a number from 1 to 65536"},
        {__LINE__, TWO "  links:\n    - {from: a, to: b, bw_GBps: 0}\n" ENGINES,
         "m.yaml:6:33: error: 'bw_GBps': '0'"},
        {__LINE__, TWO "  links:\n    - {from: a, to: b, bw_GBps: 1, lat_ns: 0.0001}\n" ENGINES,
         "m.yaml:6:44: error: 'lat_ns': '0.0001'"},
        {__LINE__, TWO "  links:\n    - {from: a, to: b, bw_GBps: 1, colour: red}\n" ENGINES,
         "m.yaml:6:36: error: unknown key 'colour'"},
        {__LINE__,
         TWO "  links:\n    - {from: a, to: b, bw_GBps: 1}\n  ways:\n    - [a, b, a, b]\n" ENGINES,
         "m.yaml:8:7: error: the way comes to 'a' twice"},
        {__LINE__,
         TWO "  links:\n    - {from: a, to: b, bw_GBps: 1}\n  without: [[a, b]]\n" ENGINES,
         "no way leads from 'a' to 'b'"},
        {__LINE__, TWO "  links:\n    - {from: a, to: b, bw_GBps: 1}\n  pes: [2, 2]\n" ENGINES,
         "m.yaml:7:3: error: a topology by 'levels' or 'nodes' has no 'topology.pes'"},
        {__LINE__, "topology: {links: []}\n" ENGINES,
         "m.yaml:1:19: error: the topology has neither 'levels' nor 'nodes'"},
        {__LINE__, LEVEL("full: 1000000000"), "m.yaml:1:27: error: 'full' takes a number"},
        {__LINE__, LEVEL("full: 65536"), "error: more than 2097152 links"},
        {__LINE__, LEVEL("torus: [60000, 60000]"), "'torus' has more than 65536 members"},
        {__LINE__, LEVEL("torus: [2, 2, 2, 2, 2]"), "'torus' takes 1 to 4 numbers"},
        {__LINE__, LEVEL("fat_tree: 10, arity: 4"),
         "10 ends and an arity of 4 do not make a fat tree"},
        {__LINE__, LEVEL("fat_tree: 16"), "a fat_tree needs 'arity'"},
        {__LINE__, LEVEL("dragonfly: [2, 2]"), "'dragonfly' takes three numbers"},
        {__LINE__, LEVEL("star: 4, ring: 4"), "a level has one generator, not two"},
        {__LINE__, LEVEL("name: x"), "m.yaml:1:20: error: a level needs a generator"},
        {__LINE__, LEVEL("star: 4") "ccl: {ranks: 5}\n",
         "'ccl.ranks' is 5, but the machine has 4 PEs"},
        {__LINE__, "topology: {levels: {star: 4, " LINK "}, routes: dimension}\n" ENGINES,
         "'topology.routes: dimension' needs a whole mesh or torus"},
        {__LINE__,
         "topology: {levels: [{star: [2, 2, 2], " LINK "}, {star: 4, " LINK "}]}\n" ENGINES,
         "m.yaml:1:21: error: 3 sizes, but there are more groups"},
        {__LINE__,
         "topology: {levels: [{star: [2, 2, 2], " LINK "}, {star: 2, " LINK "}]}\n" ENGINES,
         "m.yaml:1:21: error: 3 sizes, but only 2 groups"},
        {__LINE__,
         "topology: {levels: [{star: 65536, " LINK "}, {star: 65536, " LINK "}]}\n" ENGINES,
         "error: more than 65536 PEs"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char said[1200];
        struct peal_machine *machine = read_machine(rows[i].text, said, sizeof said);
        if (machine || !strstr(said, rows[i].said))
            fail_msg("line %d: %s", rows[i].line, said);
    }
}

int main(void)
{
    return unit_run();
}
