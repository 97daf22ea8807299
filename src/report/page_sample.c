/* SPDX-License-Identifier: Apache-2.0 */
/* Writes pages with invented contents, for the tests of the page in a browser:
 *
 *   report-page-sample KIND FILE     KIND: counterexample simulation sweep large hostile
 *
 * The numbers mean nothing; each kind has every part of the description that its command uses.
 */
#include "report/page.h"
#include "report/svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kernel_text[] =
    "// Ring allreduce by pulling, with one exchange slot and a cheaper barrier.\n"
    "kernel allreduce_slot(in x: T[n], out y: T[n], op: reduce) implements allreduce {\n"
    "    window slot: T[cdiv(n, nranks)]\n"
    "    signal left, right\n"
    "    let l = (rank - 1) % nranks\n"
    "    let r = (rank + 1) % nranks\n"
    "    y = x\n"
    "    for s in 1 .. nranks {\n"
    "        slot = y[(rank - s) % nranks of nranks]\n"
    "        notify left@r += 1\n"
    "        wait left >= 2 * s - 1\n"
    "        let c = (rank - s - 1) % nranks\n"
    "        y[c of nranks] = op(y[c of nranks], slot@l)\n"
    "        notify left@r += 1\n"
    "        wait left >= 2 * s\n"
    "    }\n"
    "}\n";

static uint32_t add_place(struct peal_page *page, uint32_t source, uint32_t line, uint32_t col,
                          uint32_t len)
{
    return peal_page_place(page, (struct peal_page_place){source, line, col, len, PEAL_PAGE_NONE});
}

struct sample_step {
    uint32_t rank;
    const char *label;
    uint8_t category;
    uint32_t line;
    uint8_t flags;
};

static const struct sample_step sample_steps[] = {
    {0, "copy slot = y[1..2)", PEAL_BAR_COPY, 9, 0},
    {1, "copy slot = y[0..1)", PEAL_BAR_COPY, 9, 0},
    {2, "copy slot = y[2..3)", PEAL_BAR_COPY, 9, 0},
    {0, "notify left@1 += 1", PEAL_BAR_NOTIFY, 10, 0},
    {1, "notify left@2 += 1", PEAL_BAR_NOTIFY, 10, 0},
    {2, "notify left@0 += 1", PEAL_BAR_NOTIFY, 10, 0},
    {0, "wait left >= 1", PEAL_BAR_WAIT, 11, 0},
    {2, "wait left >= 1", PEAL_BAR_WAIT, 11, 0},
    {0, "compute y = op(y, slot@2)", PEAL_BAR_COMPUTE, 13, 0},
    {0, "notify left@1 += 1", PEAL_BAR_NOTIFY, 14, 0},
    {2, "compute y = op(y, slot@1)", PEAL_BAR_COMPUTE, 13, 0},
    {2, "notify left@0 += 1", PEAL_BAR_NOTIFY, 14, 0},
    {0, "wait left >= 2", PEAL_BAR_WAIT, 15, 0},
    {0, "copy slot = y[0..1)", PEAL_BAR_COPY, 9, PEAL_BAR_BAD},
    {1, "compute y = op(y, slot@0)", PEAL_BAR_COMPUTE, 13, PEAL_BAR_BAD},
};

static void add_step_effects(struct peal_page *page, size_t i, const uint32_t *slots,
                             const uint32_t *cells)
{
    const struct sample_step *step = &sample_steps[i];
    static int64_t counts[3];
    char value[64];
    if (step->category == PEAL_BAR_COPY) {
        snprintf(value, sizeof value, "x%u[%u]", step->rank, (unsigned)(i % 3));
        peal_page_access(page, (struct peal_page_access){slots[step->rank], 0, 1024,
                                                         PEAL_ACCESS_WRITE, step->flags});
        peal_page_change_memory(page, slots[step->rank], 0, 1024, value, false);
    } else if (step->category == PEAL_BAR_COMPUTE) {
        uint32_t left = (step->rank + 2) % 3;
        peal_page_access(
            page, (struct peal_page_access){slots[left], 0, 1024, PEAL_ACCESS_READ, step->flags});
        peal_page_access(page, (struct peal_page_access){slots[3 + step->rank], 1024, 2048,
                                                         PEAL_ACCESS_UPDATE, 0});
        snprintf(value, sizeof value, "x%u + x%u", left, step->rank);
        peal_page_change_memory(page, slots[3 + step->rank], 1024, 2048, value, false);
    } else if (step->category == PEAL_BAR_NOTIFY) {
        uint32_t right = (step->rank + 1) % 3;
        peal_page_change_cell(page, cells[right], ++counts[right]);
    }
}

static void make_counterexample(struct peal_page *page)
{
    peal_page_init(page, PEAL_PAGE_VERIFY, "allreduce_slot");
    page->unit = PEAL_UNIT_STEPS;
    peal_page_verdict(page, PEAL_TONE_BAD, "refuted at 3 ranks");
    peal_page_headline(page,
                       "race: rank 0 writes slot@0 [0 .. 256) at line 9 while rank 1 reads it "
                       "at line 13; nothing orders the two");
    peal_page_fact(page, "ranks", "2 proved, 3 refuted");
    peal_page_fact(page, "count", "768 f32");
    peal_page_fact(page, "launches", "2");
    peal_page_fact(page, "counterexample", "15 steps, shortest");
    uint32_t source =
        peal_page_source(page, "allreduce_slot.peal", kernel_text, strlen(kernel_text));
    uint32_t slots[6], cells[3];
    char name[16];
    for (uint32_t rank = 0; rank < 3; rank++) {
        snprintf(name, sizeof name, "rank %u", rank);
        peal_page_track(page, name, rank);
        slots[rank] = peal_page_memory(page, rank, "slot", 1024, 4);
        cells[rank] = peal_page_cell(page, rank, "left", "0");
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        slots[3 + rank] = peal_page_memory(page, rank, "y", 3072, 4);
        snprintf(name, sizeof name, "x%u", rank);
        peal_page_change_memory(page, slots[3 + rank], 0, 3072, name, false);
    }
    for (size_t i = 0; i < sizeof sample_steps / sizeof sample_steps[0]; i++) {
        const struct sample_step *step = &sample_steps[i];
        peal_page_step(page, &(struct peal_page_step){
                                 .track = step->rank,
                                 .rank = step->rank,
                                 .label = peal_page_text(page, step->label),
                                 .place = add_place(page, source, step->line, 9,
                                                    (uint32_t)strcspn(step->label, " ") + 4),
                                 .category = step->category,
                                 .flags = step->flags});
        add_step_effects(page, i, slots, cells);
    }
    static const uint32_t pairs[][4] = {{3, 0, 15, 1}, {5, 2, 6, 0}, {4, 1, 7, 2}, {11, 2, 12, 0}};
    for (size_t i = 1; i < 4; i++)
        peal_page_arrow(page, &(struct peal_page_arrow){.from = pairs[i][0] + 1,
                                                        .from_track = pairs[i][1],
                                                        .to = pairs[i][2],
                                                        .to_track = pairs[i][3],
                                                        .label = peal_page_text(page, "left"),
                                                        .category = PEAL_BAR_NOTIFY});
}

/* A ring of `ranks` on a square mesh: each step a send, a transfer, a wait and a compute. */
static void add_ring(struct peal_page *page, uint32_t ranks, uint32_t steps, const uint32_t *places)
{
    uint64_t step_ps = 400000;
    uint32_t texts[4] = {peal_page_text(page, "send y[c of 16] to 1"),
                         peal_page_text(page, "recv y[c of 16] from 3"),
                         peal_page_text(page, "compute y = y + slot"),
                         peal_page_text(page, "message")};
    peal_page_expect(page, (uint64_t)ranks * steps * 3, (uint64_t)ranks * steps,
                     (uint64_t)steps * step_ps + 100000);
    for (uint32_t step = 0; step < steps; step++)
        for (uint32_t rank = 0; rank < ranks; rank++) {
            uint64_t skew = (rank * UINT64_C(7919)) % 97 * 400;
            uint64_t at = step * step_ps + skew;
            uint8_t keep = rank == step % ranks ? PEAL_BAR_KEEP : 0;
            struct peal_page_bar bar = {.track = rank, .flags = keep};
            bar.start = at, bar.end = at + 60000, bar.label = texts[0], bar.place = places[0];
            bar.category = PEAL_BAR_SEND, bar.bytes = 65536;
            peal_page_bar(page, &bar);
            bar.start = at + 62000, bar.end = at + 240000 - skew, bar.label = texts[1];
            bar.category = PEAL_BAR_RECV, bar.place = places[1];
            if (rank % 3 == 1)
                bar.category = PEAL_BAR_WAIT;
            peal_page_bar(page, &bar);
            bar.start = bar.end + 1000, bar.end = at + 390000 - skew, bar.label = texts[2];
            bar.category = PEAL_BAR_COMPUTE, bar.place = places[2];
            peal_page_bar(page, &bar);
            peal_page_arrow(page, &(struct peal_page_arrow){.from = at + 60000,
                                                            .to = at + 200000,
                                                            .bytes = 65536,
                                                            .from_track = rank,
                                                            .to_track = (rank + 1) % ranks,
                                                            .label = texts[3],
                                                            .category = PEAL_BAR_SEND});
        }
}

static void add_machine(struct peal_page *page, uint32_t side)
{
    char name[32];
    for (uint32_t i = 0; i < side * side; i++) {
        snprintf(name, sizeof name, "pe %u,%u", i / side, i % side);
        peal_page_node(page, (struct peal_page_node){.x = i % side,
                                                     .y = i / side,
                                                     .load = (i * 37 % 100) / 150.0,
                                                     .rank = i,
                                                     .label = peal_page_text(page, name)});
    }
    for (uint32_t i = 0; i < side * side; i++) {
        if (i % side + 1 < side) {
            double load = (i * 53 % 100) / 100.0;
            peal_page_link(page, (struct peal_page_link){i, i + 1, load, i * 65536, 0, false});
            peal_page_link(page, (struct peal_page_link){i + 1, i, load / 3, i * 8192, 0, false});
        }
        if (i / side + 1 < side)
            peal_page_link(page, (struct peal_page_link){i, i + side, (i * 29 % 100) / 100.0,
                                                         i * 65536, 0, false});
    }
}

static void add_shape(struct peal_page *page, uint32_t ranks, uint32_t steps)
{
    static const char *const causes[] = {"latency", "serialisation", "queueing", "credit", "math"};
    for (uint32_t step = 0; step < steps; step++) {
        uint64_t at = step * UINT64_C(400000);
        for (uint32_t part = 0; part < 3; part++)
            peal_page_hop(page, (struct peal_page_hop){
                                    .start = at + part * 130000,
                                    .end = at + (part + 1) * 130000,
                                    .track = step % ranks,
                                    .cause = peal_page_text(page, causes[(step + part) % 5]),
                                    .label = peal_page_text(page, part == 1 ? "send" : "compute"),
                                    .place = 1 + part});
    }
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t i = 0; i < 4; i++)
            peal_page_stall(page,
                            (struct peal_page_stall){.amount = 10000 * ((rank * 7 + i * 13) % 31),
                                                     .track = rank,
                                                     .cause = peal_page_text(page, causes[i])});
    double values[512];
    for (size_t i = 0; i < 512; i++)
        values[i] = 0.5 + 0.4 * ((double)((i * 37) % 100) / 100 - 0.5);
    peal_page_series(page, "links", 0, steps * UINT64_C(400000) / 512, values, 512);
    for (size_t i = 0; i < 512; i++)
        values[i] = 0.25 + 0.2 * ((double)((i * 11) % 64) / 64 - 0.5);
    peal_page_series(page, "math engines", 0, steps * UINT64_C(400000) / 512, values, 512);
}

static void make_simulation(struct peal_page *page, uint32_t side, uint32_t steps)
{
    char name[32];
    uint32_t ranks = side * side;
    peal_page_init(page, PEAL_PAGE_SIM, "allreduce_ring");
    page->unit = PEAL_UNIT_PS;
    peal_page_verdict(page, PEAL_TONE_NEUTRAL, "12.2 µs");
    peal_page_headline(page,
                       "bottleneck: link pe 0,3 → pe 1,3 is 94 %% busy; 41 %% of the critical "
                       "path is serialisation");
    peal_page_fact(page, "ranks", "%u on %ux%u PEs", ranks, side, side);
    peal_page_fact(page, "count", "1M f32");
    peal_page_fact(page, "bound", "11.8 µs (103 %%)");
    uint32_t source =
        peal_page_source(page, "allreduce_ring.peal", kernel_text, strlen(kernel_text));
    uint32_t places[3] = {add_place(page, source, 9, 9, 30), add_place(page, source, 11, 9, 22),
                          add_place(page, source, 13, 9, 43)};
    for (uint32_t rank = 0; rank < ranks; rank++) {
        snprintf(name, sizeof name, "rank %u", rank);
        peal_page_track(page, name, rank);
    }
    add_ring(page, ranks, steps, places);
    add_machine(page, side);
    add_shape(page, ranks, steps);
    peal_page_note(page, "router buffers are taken as infinite");
}

static void make_sweep(struct peal_page *page)
{
    struct peal_report_table *table = peal_report_table_new();
    peal_report_table_column(table, "bytes", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "algorithm", PEAL_ALIGN_LEFT);
    peal_report_table_column(table, "µs", PEAL_ALIGN_RIGHT);
    peal_page_init(page, PEAL_PAGE_SWEEP, "allreduce on mesh16");
    peal_page_fact(page, "machine", "mesh16.yaml");
    peal_page_fact(page, "runs", "30");
    uint32_t plot = peal_page_plot(page, "Time by size",
                                   (struct peal_page_axis){"bytes", PEAL_UNIT_BYTES, true},
                                   (struct peal_page_axis){"time", PEAL_UNIT_PS, true});
    static const char *const names[] = {"ring", "tree"};
    for (size_t i = 0; i < 2; i++) {
        peal_page_curve(page, plot, names[i]);
        for (double bytes = 1024; bytes <= 64 << 20; bytes *= 4) {
            double ps = i ? 4 * (8000 + bytes * 8) : 30 * (8000 + bytes * 8 / 16);
            peal_page_point(page, bytes, ps * 1.03);
            peal_report_table_cell(table, "%.0f", bytes);
            peal_report_table_cell(table, "%s", names[i]);
            peal_report_table_cell(table, "%.3f", ps / 1e6);
        }
    }
    peal_page_closed_form(page, plot, "ring, closed form", 0);
    for (double bytes = 1024; bytes <= 64 << 20; bytes *= 1.4)
        peal_page_point(page, bytes, 30 * (8000 + bytes * 8 / 16));
    uint32_t second = peal_page_plot(page, "Time by ranks",
                                     (struct peal_page_axis){"ranks", PEAL_UNIT_NONE, false},
                                     (struct peal_page_axis){"time", PEAL_UNIT_PS, false});
    peal_page_curve(page, second, "ring");
    for (double ranks = 2; ranks <= 64; ranks += 2)
        peal_page_point(page, ranks, 2 * (ranks - 1) * 20000);
    peal_page_table(page, "All runs", table);
}

/* Texts that would break out of a careless page. */
static void make_hostile(struct peal_page *page)
{
    static const char evil[] =
        "</script><script>document.documentElement.dataset.pwned = 1</script><!--<script>\xff"
        "\xe2\x80\xa8<img src=x onerror=\"document.documentElement.dataset.pwned=1\">";
    peal_page_init(page, PEAL_PAGE_VERIFY, evil);
    page->unit = PEAL_UNIT_STEPS;
    peal_page_verdict(page, PEAL_TONE_BAD, evil);
    peal_page_headline(page, "%s", evil);
    peal_page_fact(page, evil, "%s", evil);
    peal_page_note(page, "%s", evil);
    uint32_t source = peal_page_source(page, evil, evil, sizeof evil - 1);
    peal_page_track(page, evil, 0);
    uint32_t memory = peal_page_memory(page, 0, evil, 16, 4);
    peal_page_cell(page, 0, evil, evil);
    peal_page_step(page, &(struct peal_page_step){.label = peal_page_text(page, evil),
                                                  .place = add_place(page, source, 1, 1, 9)});
    peal_page_change_memory(page, memory, 0, 8, evil, false);
}

static int write_text(const char *path, const struct peal_text *text)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return 1;
    size_t written = fwrite(peal_text_get(text), 1, text->len, file);
    return fclose(file) != 0 || written != text->len;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: report-page-sample KIND FILE\n");
        return 2;
    }
    struct peal_page page = {0};
    if (strcmp(argv[1], "counterexample") == 0)
        make_counterexample(&page);
    else if (strcmp(argv[1], "simulation") == 0)
        make_simulation(&page, 4, 30);
    else if (strcmp(argv[1], "large") == 0)
        make_simulation(&page, 32, 2046);
    else if (strcmp(argv[1], "hostile") == 0)
        make_hostile(&page);
    else if (strcmp(argv[1], "sweep") == 0)
        make_sweep(&page);
    else
        return 2;
    struct peal_text out = {0};
    size_t len = strlen(argv[2]);
    bool is_svg = len > 4 && strcmp(argv[2] + len - 4, ".svg") == 0;
    enum peal_status status =
        is_svg ? peal_page_svg(&page, NULL, &out) : peal_page_html(&page, &out);
    int failed = status != PEAL_OK || write_text(argv[2], &out);
    peal_text_release(&out);
    peal_page_release(&page);
    return failed;
}
