/* SPDX-License-Identifier: Apache-2.0 */
/* Several messages that need the same link, engine, queue or memory port, to the picosecond.
 *
 * Every row's figures are worked out by hand in the comment above it, from the rules of
 * docs/simulator.md: links and ports serve in the order of arrival, the port that is free first is
 * taken first, engines grant packets in turn or by priority. On machines/exact.yaml a link takes
 * 50,000 ps and 100 ps per byte; whatever a row's settings do not name costs nothing.
 */
#include "sim_cases.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE(x) "math.clock_GHz=.inf topology.flat=0 topology.pes=[" #x ",1]"
/* Only the engine costs time: 1,000 ps per byte, packets of 64 bytes. */
#define ENGINE "links.flat.bw_GBps=.inf links.flat.lat_ns=0 dma.bw_GBps=1 dma.packet_bytes=64 "

static const char to_last[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                              "    if rank < nranks - 1 { send x to nranks - 1 }\n"
                              "    if rank == nranks - 1 {\n"
                              "        for p in 0 .. nranks - 1 { y = recv from p }\n"
                              "    }\n"
                              "}\n";
/* Rank 1 sends its second message after 40 elements of math. */
static const char late[] = "kernel k(in x: T[n], out y: T[n], out z: T[40]) {\n"
                           "    if rank == 0 { send x to 2 }\n"
                           "    if rank == 1 {\n"
                           "        send x to 2\n"
                           "        z = x[0 +: 40] + x[0 +: 40]\n"
                           "        send x to 2\n"
                           "    }\n"
                           "    if rank == 2 {\n"
                           "        y = recv from 1\n"
                           "        y = recv from 0\n"
                           "        y = recv from 1\n"
                           "    }\n"
                           "}\n";
static const char two_each[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                               "    if rank == 1 { for i in 0 .. 2 { send x to 2 } }\n"
                               "    if rank == 2 { for i in 0 .. 2 { y = recv from 1 } }\n"
                               "}\n";
static const char burst[] = "kernel k(in x: T[n], out y: T[n], out z: T[n]) {\n"
                            "    if rank == 0 {\n"
                            "        for i in 0 .. 3 { send x to 1 }\n"
                            "        z = x + x\n"
                            "    }\n"
                            "    if rank == 1 { for i in 0 .. 3 { y = recv from 0 } }\n"
                            "}\n";
/* Messages of 3 packets and 1 packet, a copy of 2 packets; the first lane asks first. */
#define COPIES "    lane { if rank == 0 { z[0 +: 32] = x[0 +: 32] } }\n"
#define SENDS                                                                                      \
    "    lane {\n"                                                                                 \
    "        if rank == 0 {\n"                                                                     \
    "            send x[0 +: 48] to 1\n"                                                           \
    "            send x[0 +: 16] to 1\n"                                                           \
    "        }\n"                                                                                  \
    "        if rank == 1 {\n"                                                                     \
    "            y[0 +: 48] = recv from 0\n"                                                       \
    "            y[0 +: 16] = recv from 0\n"                                                       \
    "        }\n"                                                                                  \
    "    }\n"
static const char sends_first[] =
    "kernel k(in x: T[n], out y: T[n], out z: T[n]) {\n" SENDS COPIES "}\n";
static const char copies_first[] =
    "kernel k(in x: T[n], out y: T[n], out z: T[n]) {\n" COPIES SENDS "}\n";
static const char loads[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                            "    window w: T[n]\n"
                            "    if rank > 0 { y = w@0 }\n"
                            "}\n";
static const char writes[] = "kernel k(in x: T[n]) {\n"
                             "    window w: T[nranks * n]\n"
                             "    signal shared s\n"
                             "    if rank > 0 {\n"
                             "        w@0[rank of nranks] = x\n"
                             "        notify s@0 += 1\n"
                             "    }\n"
                             "    if rank == 0 { wait s >= nranks - 1 }\n"
                             "}\n";

/* Writes to a far and a near rank, then a notify to the far one. */
static const char behind[] = "kernel k(in x: T[n]) {\n"
                             "    window w: T[n]\n"
                             "    signal s\n"
                             "    if rank == 0 {\n"
                             "        w@3 = x\n"
                             "        w@1[0 +: 1] = x[0 +: 1]\n"
                             "        notify s@3 += 1\n"
                             "    }\n"
                             "    if rank == 3 { wait s >= 1 }\n"
                             "}\n";
/* A write and its notify, and another write that the lane posts before they arrive. */
static const char overtaken[] = "kernel k(in x: T[n]) {\n"
                                "    window w: T[n]\n"
                                "    signal s\n"
                                "    if rank == 0 {\n"
                                "        w@1 = x\n"
                                "        notify s@1 += 1\n"
                                "        w@2 = x\n"
                                "    }\n"
                                "    if rank == 1 { wait s >= 1 }\n"
                                "}\n";
static const char to_middle[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                                "    if rank != 1 { send x to 1 }\n"
                                "    if rank == 1 {\n"
                                "        let a: T[n] = recv_slot from 0\n"
                                "        let b: T[n] = recv_slot from 2\n"
                                "        y[0] = a[0]\n"
                                "        y[0] = b[0]\n"
                                "    }\n"
                                "}\n";
static const char prepares[] = "kernel k(in x: T[n], out y: T[n], out z: T[n]) {\n"
                               "    if rank == 1 { send x to 0 }\n"
                               "    if rank == 0 {\n"
                               "        z[0 +: 100] = x[0 +: 100] + x[0 +: 100]\n"
                               "        z = x\n"
                               "        y = recv from 1\n"
                               "    }\n"
                               "}\n";
static const char one[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                          "    if rank == 0 { send x to 2 }\n"
                          "    if rank == 2 {\n"
                          "        y = recv from 0\n"
                          "    }\n"
                          "}\n";
static const char gathers[] = "kernel k(in x: T[n]) {\n"
                              "    window w: T[n]\n"
                              "    if rank == 0 { w@1 += x }\n"
                              "}\n";

static const struct row {
    int line;
    const char *text;
    uint32_t nranks;
    int64_t count;
    const char *settings;
    uint64_t arrivals[6]; /* of all messages, sorted; 0: no more */
    uint64_t ends[4];     /* of the first ranks; 0: not checked */
} rows[] = {
    /* PEs 0, 1, 2 of a line send 4,096 bytes to PE 3 at 0; S = 409,600. PE 2's message has the last
     * link from 0 to S. PE 1's reaches it at 50,000 and starts at S. PE 0's waits for PE 1's on the
     * link before (until S), reaches the last one at S + 50,000, and starts at 2 S. Each arrives
     * 50,000 + S after its start. */
    {__LINE__, to_last, 4, 1024, LINE(4), .arrivals = {459600, 869200, 1278800},
     .ends = {0, 0, 0, 1278800}},
    /* Stored and forwarded: PE 1's reaches the last link at S + 50,000 = 459,600, after PE 2's has
     * left it at S; PE 0's at 2 (S + 50,000): neither waits. */
    {__LINE__, to_last, 4, 1024, LINE(4) " links.mode=store-and-forward",
     .arrivals = {459600, 919200, 1378800}},
    /* In the order of arrival, not of the sender: 300 bytes take 30,000. PE 1's first message has
     * the link from 0 to 30,000; its second, sent at 40,000 (40 elements at 1,000), from 40,000 to
     * 70,000. PE 0's reaches it at 50,000 and starts at 70,000. Each arrives 80,000 after its
     * start. */
    {__LINE__, late, 3, 75, "topology.flat=0 topology.pes=[3,1]",
     .arrivals = {80000, 120000, 150000}, .ends = {0, 40000, 150000}},
    /* Two messages, stored and forwarded over two links of S = 409,600: the second starts on the
     * first link at S, is stored at 2 S + 50,000, when the first has left the second link (S +
     * 50,000 + S), and arrives S + 50,000 later. (PE 0 idle, PEs 1 and 2 two apart.) */
    {__LINE__, two_each, 3, 1024,
     "math.clock_GHz=.inf topology.flat=0 topology.pes=[2,2] links.mode=store-and-forward "
     "ccl.embed=row_major",
     .arrivals = {2 * 459600, 3 * 409600 + 100000}},
    /* An engine whose queue has one place: of three messages of 64 bytes (64,000 each) the first is
     * moved at 0, the second waits in the queue, and the lane waits with the third until the second
     * starts, at 64,000; then 16,000 of math. Copying out takes the receiver 64,000 per message: it
     * ends at 4 * 64,000. The same with channels that share the engine, and with limited ports. */
    {__LINE__, burst, 2, 16, ENGINE "dma.queue=1", .arrivals = {64000, 128000, 192000},
     .ends = {80000, 256000}},
    {__LINE__, burst, 2, 16, ENGINE "dma.queue=1 dma.arb=rr", .arrivals = {64000, 128000, 192000},
     .ends = {80000, 256000}},
    {__LINE__, burst, 2, 16, ENGINE "dma.queue=1 dma.arb=priority",
     .arrivals = {64000, 128000, 192000}, .ends = {80000, 256000}},
    {__LINE__, burst, 2, 16, ENGINE "dma.queue=1 mem.hbm.ports=4 mem.tcm.ports=4",
     .arrivals = {64000, 128000, 192000}, .ends = {80000, 256000}},
    /* In turn, 64,000 per packet: c1 d1 c2 d2 c3, then the second message alone. The first message
     * arrives with c3 at 320,000; the copy, and with it rank 0, ends with d2 at 256,000. */
    {__LINE__, sends_first, 2, 48, ENGINE "dma.arb=rr", .arrivals = {320000, 384000},
     .ends = {256000}},
    /* The copy asks first: d1 c1 d2 c2 c3. */
    {__LINE__, copies_first, 2, 48, ENGINE "dma.arb=rr", .arrivals = {320000, 384000},
     .ends = {192000}},
    /* Messages first: c1 c2 c3 at 192,000, the second at 256,000, then the copy. */
    {__LINE__, sends_first, 2, 48, ENGINE "dma.arb=priority", .arrivals = {192000, 256000},
     .ends = {384000}},
    /* A packet that has begun is not interrupted: d1, then both messages, then d2. */
    {__LINE__, copies_first, 2, 48, ENGINE "dma.arb=priority", .arrivals = {256000, 320000},
     .ends = {384000}},
    /* Three messages into slots of one memory, M = 4,096,000 each, one port: written 50,000 .. + 3
     * M in the order of arrival (50,000, + S, + 2 S); the copies, which ask from the first arrival
     * on, come after them: 50,000 + 6 M. */
    {__LINE__, to_last, 4, 1024, "math.clock_GHz=.inf ipcq.space=sram mem.sram.ports=1",
     .arrivals = {4146000, 8242000, 12338000}, .ends = {0, 0, 0, 24626000}},
    /* Two ports: the first is written by port A until 50,000 + M, the second by B until 50,000 + S
     * + M, the third again by A until 50,000 + 2 M. The first copy, asked for at 50,000 + M, gets B
     * at 50,000 + S + M; the others follow one by one and find a free port: 50,000 + S + 4 M. */
    {__LINE__, to_last, 4, 1024, "math.clock_GHz=.inf ipcq.space=sram mem.sram.ports=2",
     .arrivals = {4146000, 4555600, 8242000}, .ends = {0, 0, 0, 16843600}},
    /* Three ranks load 4,096 bytes from rank 0: the requests arrive at 50,000, the answers leave
     * one after the other: 100,000 + k S. */
    {__LINE__, loads, 4, 1024, "math.clock_GHz=.inf", .arrivals = {509600, 919200, 1328800},
     .ends = {0, 509600, 919200, 1328800}},
    /* Three ranks write 4,096 bytes to rank 0 and notify it (no bytes). All writes reach the link
     * into rank 0 at 50,000 and arrive at 50,000 + k S. The notifies leave after them, at S, and
     * reach that link at S + 50,000, behind all writes: they arrive with the last of them. */
    {__LINE__, writes, 4, 1024, "math.clock_GHz=.inf",
     .arrivals = {459600, 869200, 1278800, 1278800, 1278800, 1278800}, .ends = {1278800}},
    /* A line of PEs; S = 409,600, the near write takes 400. It is on the first link after the far
     * one, from S to S + 400, and arrives at S + 50,400. The notify (no bytes) waits only for that:
     * the far write arrives at S + 150,000, and the notify, sent at S + 50,400, takes 150,000. */
    {__LINE__, behind, 4, 1024, LINE(4), .arrivals = {460000, 559600, 610000},
     .ends = {460000, 0, 0, 610000}},
    /* Memories have a latency of 70,000 at both ends: the write arrives at 190,000 + S. Its notify
     * needs no memory, but is not visible before the write, whatever the lane does meanwhile. The
     * second write waits S for its link. */
    {__LINE__, overtaken, 3, 1024, "math.clock_GHz=.inf mem.tcm.lat_ns=70",
     .arrivals = {599600, 599600, 1009200}, .ends = {0, 599600}},
    {__LINE__, overtaken, 3, 1024, "math.clock_GHz=.inf mem.tcm.lat_ns=70 dma.arb=rr",
     .arrivals = {599600, 599600, 1009200}, .ends = {0, 599600}},
    /* A port is held while bytes come in, not for the time that memory alone would need: of two
     * messages that come from both sides at 50,000, one waits until 50,000 + S. */
    {__LINE__, to_middle, 3, 1024, LINE(3) " mem.tcm.ports=1", .arrivals = {459600, 869200},
     .ends = {0, 869200}},
    /* A transfer asks for a port after its set-up (200,000), not before. Rank 1's message reaches
     * rank 0's memory at 250,000, while rank 0 sets up a copy out of it, from 100,000 (after math)
     * to 300,000: it is written at once, at the speed of memory, 2 S = 819,200. */
    {__LINE__, prepares, 2, 1024, "dma.setup_ps=200000 mem.tcm.ports=1 mem.tcm.bw_GBps=5",
     .arrivals = {250000 + 819200}},
    /* Two links, stored: S + 50,000 each; memory takes 2 S instead of S for what comes out of the
     * second, not 2 S more. */
    {__LINE__, one, 3, 1024,
     LINE(3) " links.mode=store-and-forward ipcq.space=sram mem.sram.bw_GBps=5",
     .arrivals = {459600 + 50000 + 819200}},
    /* A message that is alone takes the same time as a flow; memory is faster than the links. */
    {__LINE__, one, 3, 1024, LINE(3) " links.mode=fluid ipcq.space=sram mem.sram.bw_GBps=20",
     .arrivals = {509600}},
    /* The source of an accumulate is a parameter, in a memory with a latency of 30,000. */
    {__LINE__, gathers, 2, 1024, "math.clock_GHz=.inf place.param=hbm mem.hbm.lat_ns=30",
     .arrivals = {489600}},
};

static int compare_times(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool check(const struct row *r, const struct peal_plan *plan,
                  const struct peal_machine *machine, bool strict)
{
    struct peal_sim *sim =
        case_sim(plan, machine, &(struct peal_sim_options){.log = true, .strict = strict}, NULL, 1);
    struct peal_sim_log log;
    uint64_t arrivals[8] = {0};
    bool ok = true;
    peal_sim_log(sim, &log);
    assert_in_range(log.nmessages, 1, 6);
    for (uint64_t i = 0; i < log.nmessages; i++)
        arrivals[i] = log.messages[i].delivered;
    qsort(arrivals, log.nmessages, sizeof *arrivals, compare_times);
    for (int i = 0; i < 6; i++) {
        if (arrivals[i] == r->arrivals[i])
            continue;
        printf("line %d%s: message %d arrives at %llu, not %llu\n", r->line,
               strict ? " (strict)" : "", i, (unsigned long long)arrivals[i],
               (unsigned long long)r->arrivals[i]);
        ok = false;
    }
    uint32_t checked = r->nranks < 4 ? r->nranks : 4;
    for (uint32_t i = 0; i < checked; i++) {
        struct peal_sim_rank_stats stats;
        peal_sim_rank(sim, i, &stats);
        if (!r->ends[i] || stats.end == r->ends[i])
            continue;
        printf("line %d%s: rank %u ends at %llu, not %llu\n", r->line, strict ? " (strict)" : "", i,
               (unsigned long long)stats.end, (unsigned long long)r->ends[i]);
        ok = false;
    }
    peal_sim_free(sim);
    return ok;
}

TEST(messages_that_contend_arrive_as_worked_out_by_hand)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_plan *plan = case_plan_make(&(struct case_plan){.text = rows[i].text,
                                                                    .nranks = rows[i].nranks,
                                                                    .count = rows[i].count,
                                                                    .depth = 64,
                                                                    .dtype = PEAL_F32});
        struct peal_machine *machine = case_machine("exact.yaml", rows[i].settings);
        ok &= check(&rows[i], plan, machine, false);
        ok &= check(&rows[i], plan, machine, true);
        free(plan);
        peal_machine_free(machine);
    }
    assert_true(ok);
}

int main(void)
{
    return unit_run();
}
