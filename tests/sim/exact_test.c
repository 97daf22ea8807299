/* SPDX-License-Identifier: Apache-2.0 */
/* Closed forms, to the picosecond: machines/exact.yaml and channel kernels.
 *
 * alpha = 50,000 ps per hop, beta = 100 ps per byte, g = 1,000 ps per element of f32 (250 ps
 * per byte), if math is on. In the formulas n is in bytes; counts are in elements of four bytes.
 */
#include "sim_cases.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALPHA = 50000, BETA = 100, G = 250 };
#define NO_MATH "math.clock_GHz=.inf"
#define TORUS(x, y) "topology.flat=0 topology.pes=[" #x "," #y "] topology.wrap.pe=torus"

static const char one_way[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                              "    if rank == 0 { send x to nranks - 1 }\n"
                              "    if rank == nranks - 1 and rank > 0 { y = recv from 0 }\n"
                              "}\n";
static const char incast[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                             "    if rank > 0 { send x to 0 }\n"
                             "    if rank == 0 {\n"
                             "        for p in 1 .. nranks { y = recv from p }\n"
                             "    }\n"
                             "}\n";
static const char stream[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                             "    for i in 0 .. 100 {\n"
                             "        if rank == 0 { send x to 1 }\n"
                             "        if rank == 1 { y = recv from 0 }\n"
                             "    }\n"
                             "}\n";
static const char doubling[] =
    "kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {\n"
    "    let acc = x\n"
    "    for s in 0 .. log2(nranks) {\n"
    "        send acc to rank ^ (1 << s)\n"
    "        acc = op(acc, recv from rank ^ (1 << s))\n"
    "    }\n"
    "    y = acc\n"
    "}\n";
static const char halving[] =
    "kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {\n"
    "    private w: T[n]\n"
    "    w = x\n"
    "    var lo = 0\n"
    "    var len = nranks\n"
    "    for s in 0 .. log2(nranks) {\n"
    "        let half = len / 2\n"
    "        let p = rank ^ half\n"
    "        let keep = select(rank & half == 0, lo, lo + half)\n"
    "        let give = select(rank & half == 0, lo + half, lo)\n"
    "        send w[give * (n / nranks) +: half * (n / nranks)] to p\n"
    "        w[keep * (n / nranks) +: half * (n / nranks)] =\n"
    "            op(w[keep * (n / nranks) +: half * (n / nranks)], recv from p)\n"
    "        lo = keep\n"
    "        len = half\n"
    "    }\n"
    "    for s in 0 .. log2(nranks) {\n"
    "        let p = rank ^ len\n"
    "        let other = select(rank & len == 0, lo + len, lo - len)\n"
    "        send w[lo * (n / nranks) +: len * (n / nranks)] to p\n"
    "        w[other * (n / nranks) +: len * (n / nranks)] = recv from p\n"
    "        lo = min(lo, other)\n"
    "        len = len * 2\n"
    "    }\n"
    "    y = w\n"
    "}\n";
static const char binomial[] =
    "kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {\n"
    "    let acc = x\n"
    "    for s in 0 .. log2(nranks) {\n"
    "        if rank % (2 << s) == 1 << s { send acc to rank - (1 << s) }\n"
    "        if rank % (2 << s) == 0 { acc = op(acc, recv from rank + (1 << s)) }\n"
    "    }\n"
    "    for t in 0 .. log2(nranks) {\n"
    "        let s = log2(nranks) - 1 - t\n"
    "        if rank % (2 << s) == 0 { send acc to rank + (1 << s) }\n"
    "        if rank % (2 << s) == 1 << s { acc = recv from rank - (1 << s) }\n"
    "    }\n"
    "    y = acc\n"
    "}\n";
static const char pairwise[] =
    "kernel k(in x: T[nranks * n], out y: T[nranks * n]) implements all_to_all {\n"
    "    y[rank of nranks] = x[rank of nranks]\n"
    "    for s in 1 .. nranks {\n"
    "        send x[(rank + s) % nranks of nranks] to (rank + s) % nranks\n"
    "        y[(rank - s) % nranks of nranks] = recv from (rank - s) % nranks\n"
    "    }\n"
    "}\n";
/* Rows of the grid first, then columns of each row's part, then back. */
static const char torus[] =
    "kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {\n"
    "    private w: T[n]\n"
    "    grid 4, 8 torus\n"
    "    let X = cols\n"
    "    let Y = rows\n"
    "    w = x\n"
    "    for s in 1 .. X {\n"
    "        send w[(col - s) % X of X] to E\n"
    "        w[(col - s - 1) % X of X] = op(w[(col - s - 1) % X of X], recv from W)\n"
    "    }\n"
    "    for s in 1 .. Y {\n"
    "        send w[col of X][(row - s) % Y of Y] to S\n"
    "        w[col of X][(row - s - 1) % Y of Y] =\n"
    "            op(w[col of X][(row - s - 1) % Y of Y], recv from N)\n"
    "    }\n"
    "    for s in 1 .. Y {\n"
    "        send w[col of X][(row - s + 1) % Y of Y] to S\n"
    "        w[col of X][(row - s) % Y of Y] = recv from N\n"
    "    }\n"
    "    for s in 1 .. X {\n"
    "        send w[(col - s + 1) % X of X] to E\n"
    "        w[(col - s) % X of X] = recv from W\n"
    "    }\n"
    "    y = w\n"
    "}\n";

struct row {
    int line;
    const char *text, *kernel;
    uint32_t nranks;
    int64_t count;
    uint32_t depth;
    const char *settings;
    uint64_t time;
};

#define N UINT64_C(4096) /* bytes */
#define D (ALPHA + N * BETA)

static const struct row rows[] = {
    /* one message, h hops: cut-through, then store-and-forward */
    {__LINE__, one_way, NULL, 2, N / 4, 0, NO_MATH, ALPHA + N *BETA},
    {__LINE__, one_way, NULL, 5, N / 4, 0, NO_MATH " topology.flat=0 topology.pes=[5,1]",
     4 * ALPHA + N *BETA},
    {__LINE__, one_way, NULL, 5, N / 4, 0,
     NO_MATH " topology.flat=0 topology.pes=[5,1] links.mode=store-and-forward",
     4 * (ALPHA + N * BETA)},
    /* across two cubes of two PEs: the cube link is the narrowest */
    {__LINE__, one_way, NULL, 4, N / 4, 0,
     NO_MATH " topology.flat=0 topology.pes=[2,1] topology.cubes=[2,1]",
     2 * ALPHA + 200000 + N * 200},
    {__LINE__, one_way, NULL, 4, N / 4, 0,
     NO_MATH " topology.flat=0 topology.pes=[2,1] topology.cubes=[2,1] "
             "links.mode=store-and-forward",
     2 * (ALPHA + N * BETA) + 200000 + N * 200},
    /* across two SIPs, whose first PEs are linked: sip, then pe */
    {__LINE__, one_way, NULL, 4, N / 4, 0,
     NO_MATH " topology.flat=0 topology.pes=[2,1] topology.sips=2", ALPHA + 1000000 + N * 500},
    /* ring reduce-scatter and allgather */
    {__LINE__, NULL, "allreduce_chunked", 4, N / 4, 0, NULL,
     2 * 3 * (ALPHA + N / 4 * BETA) + 3 * (N / 4) * G},
    {__LINE__, NULL, "allreduce_chunked", 16, N / 4, 0, NULL,
     2 * 15 * (ALPHA + N / 16 * BETA) + 15 * (N / 16) * G},
    /* forwarding ring: blocking and asynchronous math (n g = 51,200 <= D = 101,200 with 512 bytes) */
    {__LINE__, NULL, "allreduce_forward", 8, N / 4, 0, NULL, 7 * (ALPHA + N * BETA + N * G)},
    {__LINE__, NULL, "allreduce_forward", 8, 128, 0, "pe.math_async=true math.clock_GHz=2.5",
     7 * (ALPHA + 512 * BETA) + 512 * G / 5 * 2},
    /* recursive doubling, halving/doubling, binomial reduce and broadcast */
    {__LINE__, doubling, NULL, 16, N / 4, 0, NO_MATH, 4 * D},
    {__LINE__, halving, NULL, 16, N / 4, 0, NO_MATH, 2 * 4 * ALPHA + 2 * 15 * N / 16 * BETA},
    {__LINE__, binomial, NULL, 16, N / 4, 0, NO_MATH, 2 * 4 * D},
    /* X x Y torus */
    {__LINE__, torus, NULL, 32, N / 4, 0, NO_MATH " " TORUS(8, 4),
     2 * 7 * (ALPHA + N / 8 * BETA) + 2 * 3 * (ALPHA + N / 32 * BETA)},
    /* incast of k; pairwise all-to-all */
    {__LINE__, incast, NULL, 9, N / 4, 0, NO_MATH, ALPHA + 8 * N *BETA},
    {__LINE__, pairwise, NULL, 16, N / 4, 0, NO_MATH, 15 * D},
    /* one-way stream of 100: S > (D + C) / m, then credit-bound: m messages every D + C */
    {__LINE__, stream, NULL, 2, N / 4, 4, NO_MATH, ALPHA + 100 * N *BETA},
    {__LINE__, stream, NULL, 2, N / 4, 1, NO_MATH, 100 * D + 99 * ALPHA},
    {__LINE__, stream, NULL, 2, 16, 2, NO_MATH,
     49 * (ALPHA + 64 * BETA + ALPHA) + ALPHA + 2 * 64 * BETA},
    /* memory-bound message: 1 GB/s */
    {__LINE__, one_way, NULL, 2, N / 4, 0, NO_MATH " place.param=sram links.flat.lat_ns=0",
     2 * N * 1000},
    /* two messages into slots of one memory (1 GB/s): with one port the second waits for the first,
     * and copying out for both; with two ports only the copies are serial */
    {__LINE__, incast, NULL, 3, N / 4, 0, NO_MATH " ipcq.space=sram mem.sram.ports=1",
     ALPHA + 4 * N * 1000},
    {__LINE__, incast, NULL, 3, N / 4, 0, NO_MATH " ipcq.space=sram mem.sram.ports=2",
     ALPHA + 3 * N * 1000},
};

TEST(closed_forms_are_met_to_the_picosecond)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        struct peal_plan *plan =
            case_plan_make(&(struct case_plan){.text = r->text,
                                               .kernel = r->kernel,
                                               .nranks = r->nranks,
                                               .count = r->count,
                                               .depth = r->depth ? r->depth : 64,
                                               .dtype = PEAL_F32});
        struct peal_machine *machine = case_machine("exact.yaml", r->settings);
        struct case_run fast = case_run(plan, machine, NULL, 1);
        struct case_run strict =
            case_run(plan, machine, &(struct peal_sim_options){.strict = true}, 1);
        if (fast.time != r->time || strict.time != r->time ||
            fast.stats.hash != strict.stats.hash) {
            printf("line %d: %llu ps (strict %llu), not %llu\n", r->line,
                   (unsigned long long)fast.time, (unsigned long long)strict.time,
                   (unsigned long long)r->time);
            ok = false;
        }
        free(plan);
        peal_machine_free(machine);
    }
    assert_true(ok);
}

/* x_k = D + max(x_(k-1), x_(k-m) + C): step k of a ring with m slots. D: hop, C: credit. */
TEST(a_credit_limited_ring_follows_its_recursion)
{
    for (uint32_t m = 1; m <= 4; m++) {
        /* Every rank forwards what it received and frees it late: only credits limit it. */
        struct peal_plan *plan = case_plan_make(&(struct case_plan){.kernel = "allreduce_forward",
                                                                    .nranks = 8,
                                                                    .count = 16,
                                                                    .depth = m,
                                                                    .dtype = PEAL_F32});
        /* Credits take longer than messages: 4,096 bytes of credit. */
        struct peal_machine *machine =
            case_machine("exact.yaml", NO_MATH " credit.bytes=4096 ipcq.slots=1");
        uint64_t credit = ALPHA + 4096 * BETA, hop = ALPHA + 64 * BETA, x[9] = {0};
        for (uint32_t k = 1; k < 8; k++) {
            x[k] = x[k - 1];
            uint64_t freed = k > m ? x[(k - m) % 8] + credit : 0;
            x[k] = freed > x[k] ? freed : x[k];
            x[k] += hop;
        }
        struct case_run run = case_run(plan, machine, NULL, 1);
        assert_int_equal(run.time, x[7]);
        free(plan);
        peal_machine_free(machine);
    }
}

/* Two lanes of one PE, one copying, one sending: both need the DMA engine. */
static const char two_channels[] = "kernel k(in x: T[n], out y: T[n], out z: T[n]) {\n"
                                   "    lane {\n"
                                   "        if rank == 0 { send x to 1 }\n"
                                   "        if rank == 1 { y = recv from 0 }\n"
                                   "    }\n"
                                   "    lane { if rank == 0 { z = x } }\n"
                                   "}\n";

TEST(two_virtual_channels_share_an_engine)
{
    struct peal_plan *plan = case_plan_make(
        &(struct case_plan){.text = two_channels, .nranks = 2, .count = 65536, .dtype = PEAL_F32});
    static const struct {
        int line;
        const char *arb;
        uint64_t comm, data; /* in units of n / bw */
    } cases[] = {
        {__LINE__, "independent", 1, 1}, {__LINE__, "rr", 2, 2}, {__LINE__, "priority", 1, 2}};
    for (size_t i = 0; i < 3; i++) {
        char settings[256];
        snprintf(settings, sizeof settings,
                 "links.flat.bw_GBps=.inf links.flat.lat_ns=0 dma.bw_GBps=1 dma.arb=%s",
                 cases[i].arb);
        struct peal_machine *machine = case_machine("exact.yaml", settings);
        struct peal_sim *sim =
            case_sim(plan, machine, &(struct peal_sim_options){.log = true}, NULL, 1);
        struct peal_sim_log log;
        peal_sim_log(sim, &log);
        uint64_t unit = UINT64_C(65536) * 4 * 1000, packet = 4096 * 1000, comm = 0, data = 0;
        for (uint64_t k = 0; k < log.nmessages; k++)
            comm = log.messages[k].delivered;
        for (uint64_t k = 0; k < log.nops; k++) {
            if (log.ops[k].rank == 0 && log.ops[k].lane == 1)
                data = log.ops[k].end;
        }
        assert_in_range(comm, cases[i].comm * unit - packet, cases[i].comm * unit + packet);
        assert_in_range(data, cases[i].data * unit - packet, cases[i].data * unit + packet);
        peal_sim_free(sim);
        peal_machine_free(machine);
    }
    free(plan);
}

/* A message of n bytes takes lat + ramp n / (n + half) before its first byte, and n at the protocol's
 * speed; which protocol that is, its size says. */
TEST(a_protocol_costs_what_its_size_says)
{
    static const struct {
        int line;
        int64_t count; /* of f32 */
        uint64_t setup, per_byte;
    } cases[] = {
        {__LINE__, 0, 3000, BETA},
        {__LINE__, 16, 3000, BETA},
        {__LINE__, 17, 20000, 1000},
        {__LINE__, 1024, 20000, 1000},
        {__LINE__, 1025, 70000 + 50493, 200}, /* ceil(100,000 * 4,100 / 8,120) */
        {__LINE__, 1005, 20000, 1000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct peal_plan *plan = case_plan_make(&(struct case_plan){
            .text = one_way, .nranks = 2, .count = cases[i].count, .dtype = PEAL_F32});
        struct peal_machine *machine = case_machine(
            "exact.yaml", NO_MATH " protocol.ll.to_bytes=64 protocol.ll.lat_ns=3 "
                                  "protocol.ll128.to_bytes=4096 protocol.ll128.lat_ns=20 "
                                  "protocol.ll128.bw_GBps=1 protocol.simple.lat_ns=70 "
                                  "protocol.simple.bw_GBps=5 protocol.simple.ramp_ns=100 "
                                  "protocol.simple.ramp_bytes=4020 ccl.launch_ns=9");
        struct case_run run = case_run(plan, machine, NULL, 1);
        uint64_t bytes = 4 * (uint64_t)cases[i].count;
        assert_int_equal(run.time, 9000 + cases[i].setup + ALPHA + bytes * cases[i].per_byte);
        free(plan);
        peal_machine_free(machine);
    }
}

/* A host's ops cost what they touch: own bytes half a copied one, others' the rest of a fetched one, at the
 * rate for the bytes that a rank touches. */
TEST(a_host_costs_what_its_ops_touch)
{
    static const char text[] = "kernel k(in x: T[n], out y: T[n], op: reduce) {\n"
                               "    window w: T[n]\n"
                               "    signal s\n"
                               "    w = x\n"
                               "    notify s@(1 - rank) += 1\n"
                               "    wait s >= 1\n"
                               "    y = op(x, w@(1 - rank))\n"
                               "}\n";
    struct peal_plan *plan = case_plan_make(
        &(struct case_plan){.text = text, .nranks = 2, .count = 1000, .dtype = PEAL_F32});
    struct peal_machine *machine = case_machine(
        "exact.yaml", NO_MATH " host.copy_GBps=4K:10 host.fetch_GBps=4K:5 host.push_GBps=4K:4 "
                              "host.op_ns=7 links.flat.bw_GBps=.inf");
    /* u = 50 ps a touch; pushed 250 - 50, fetched 200 - 50; x, the own part of w, y; and the notify. */
    uint64_t copy = 7000 + 4000 * (50 + 200), sum = 7000 + 4000 * (50 + 150 + 50);
    assert_int_equal(case_run(plan, machine, NULL, 1).time, copy + ALPHA + sum);
    peal_machine_free(machine);
    /* 16,000 bytes: x, w, y and the other's w. Between 8,000 and 24,000 bytes the rate is in the middle. */
    machine = case_machine("exact.yaml", NO_MATH " host.copy_GBps=1000:10 host.fetch_GBps=8000:10 "
                                                 "host.op_ns=0 links.flat.bw_GBps=.inf");
    const char *curve[] = {"host.fetch_GBps=8000:10 24000:5"};
    assert_int_equal(peal_machine_set(machine, curve, 1, NULL), PEAL_OK);
    copy = 4000 * (50 + 50), sum = 4000 * (50 + 100 + 50);
    assert_int_equal(case_run(plan, machine, NULL, 1).time, copy + ALPHA + sum);
    peal_machine_free(machine);
    /* Both on one core: one after the other, and a switch where the other one goes on. */
    machine = case_machine("exact.yaml", NO_MATH " host.copy_GBps=1000:10 host.cores=1 "
                                                 "host.switch_ns=3 links.flat.bw_GBps=.inf");
    copy = 4000 * 100, sum = 4000 * 150;
    uint64_t time = case_run(plan, machine, NULL, 1).time;
    assert_in_range(time, 2 * copy + 2 * sum + 2 * 3000, 2 * copy + 2 * sum + ALPHA + 4 * 3000);
    peal_machine_free(machine);
    free(plan);
}

/* In row-major order, a ring on a torus needs two hops at every row end; as a snake it never does.
 * A message that starts before a row end and travels h hops crosses ceil(h / 8) of them: each costs
 * another latency, and if messages are stored and forwarded, all of their bytes again. */
TEST(a_snake_beats_row_major_on_a_torus)
{
    static const struct {
        int line;
        const char *kernel, *mode;
        uint64_t hops, bytes, ends, end_cost; /* ends: of rows */
    } cases[] = {
        {__LINE__, "allreduce_forward", "cut-through", 63, 65536, 8, ALPHA},
        {__LINE__, "allreduce_chunked", "cut-through", 126, 1024, 16, ALPHA},
        {__LINE__, "allreduce_forward", "store-and-forward", 63, 65536, 8, ALPHA + 65536 * BETA},
        {__LINE__, "allreduce_chunked", "store-and-forward", 126, 1024, 16, ALPHA + 1024 * BETA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char settings[2][256];
        uint64_t want = cases[i].hops * (ALPHA + cases[i].bytes * BETA), got[2];
        struct peal_plan *plan = case_plan_make(&(struct case_plan){.kernel = cases[i].kernel,
                                                                    .nranks = 64,
                                                                    .count = 16384,
                                                                    .depth = 4,
                                                                    .dtype = PEAL_F32});
        for (int k = 0; k < 2; k++) {
            snprintf(settings[k], sizeof settings[k],
                     NO_MATH " " TORUS(8, 8) " links.mode=%s ccl.embed=%s", cases[i].mode,
                     k ? "row_major" : "snake");
            struct peal_machine *machine = case_machine("exact.yaml", settings[k]);
            got[k] = case_run(plan, machine, NULL, 1).time;
            peal_machine_free(machine);
        }
        if (got[0] != want || got[1] != want + cases[i].ends * cases[i].end_cost)
            fail_msg("line %d: snake %llu, row-major %llu", cases[i].line,
                     (unsigned long long)got[0], (unsigned long long)got[1]);
        free(plan);
    }
}

/* One step of a ring, every rank to the next, with the links of docs/simulator.md's example between
 * SIPs: alpha = 1,000 ns, 25 GB/s. 64 KiB take 2,621.44 ns. A step lasts as long as its slowest
 * message: one hop of a snake, two of row-major at the row ends, 1.276 times as long. */
TEST(a_step_of_64_kib_takes_1276_thousandths_in_row_major)
{
    static const char step[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                               "    send x to (rank + 1) % nranks\n"
                               "    y = recv from (rank - 1) % nranks\n"
                               "}\n";
    static const struct {
        const char *embed;
        uint64_t time;
    } cases[] = {{"snake", 1000000 + 2621440}, {"row_major", 2 * 1000000 + 2621440}};
    uint64_t got[2];
    struct peal_plan *plan = case_plan_make(
        &(struct case_plan){.text = step, .nranks = 64, .count = 16384, .dtype = PEAL_F32});
    for (int i = 0; i < 2; i++) {
        char settings[256];
        snprintf(settings, sizeof settings,
                 NO_MATH " " TORUS(8, 8) " links.pe.bw_GBps=25 links.pe.lat_ns=1000 ccl.embed=%s",
                 cases[i].embed);
        struct peal_machine *machine = case_machine("exact.yaml", settings);
        got[i] = case_run(plan, machine, NULL, 1).time;
        assert_int_equal(got[i], cases[i].time);
        peal_machine_free(machine);
    }
    assert_int_equal(got[1] * 1000 / got[0], 1276);
    free(plan);
}

int main(void)
{
    return unit_run();
}
