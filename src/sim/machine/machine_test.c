/* SPDX-License-Identifier: Apache-2.0 */
/* Machine files: what is refused, where the message points, and that the printed form reads back.
 */
#include "sim/machine/machine.h"
#include "base/tests/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REST                                                                                       \
    "dma: {bw_GBps: 128}\n"                                                                        \
    "mem: {tcm: {bw_GBps: 512}}\n"                                                                 \
    "math: {clock_GHz: 1, lanes: {f32: 32}}\n"
#define LINKS "links: {pe: {bw_GBps: 128, lat_ns: 8}}\n"
#define GOOD "topology: {pes: [4, 4]}\n" LINKS REST

static const struct {
    int line;
    const char *text;
    const char *message; /* part of the diagnostics; NULL: the file is good */
} rows[] = {
    {__LINE__, GOOD, NULL},
    {__LINE__, "", "m.yaml:1:1: error: the machine file is empty"},
    {__LINE__, "topology: {pes: [4, 4]}\nlinks: {pe: {bw_GBps: -1, lat_ns: 8}}\n" REST,
     "m.yaml:2:23: error: 'links.pe.bw_GBps' is '-1'"},
    {__LINE__, "topology: {pes: [4, 4]}\nlinks: {pe: {bw_GBps: 0, lat_ns: 8}}\n" REST,
     "must be above 0"},
    {__LINE__, "topology: {pes: [4, 4]}\nlinks: {pe: {bw_GBps: 10GB, lat_ns: 8}}\n" REST,
     "expected a number without a unit"},
    {__LINE__, "topology: {pes: [4, 4]}\nlinks: {pe: {bw_GBps: nan, lat_ns: 8}}\n" REST,
     "expected a number"},
    {__LINE__, "topology: {pes: [4, 4]}\nlinks: {pe: {bw_GBps: 1, lat_ns: 0.0005}}\n" REST,
     "not a whole number of picoseconds"},
    {__LINE__, "topology: {pes: [4, 4]}\n" REST, "missing key 'links.pe.bw_GBps'"},
    {__LINE__, "topology: {pes: [2, 2], cubes: [2, 1]}\n" LINKS REST,
     "missing key 'links.cube.bw_GBps'"},
    {__LINE__, "topology: {pes: [1, 1], sips: 1000000000}\n" REST,
     "m.yaml:1:31: error: 'topology.sips' is '1000000000': out of range: 1 to 65536"},
    {__LINE__, "topology: {pes: [65536, 65536]}\n" LINKS REST, "more than 65536 PEs"},
    {__LINE__, "topology: {pes: [256, 256], cubes: [65536, 65536], sips: 65536}\n" LINKS REST,
     "more than 65536 PEs"},
    {__LINE__, "topology: {pes: 16}\n" LINKS REST, "'topology.pes' takes two numbers"},
    {__LINE__, "topology: {pes: [4, 4, 4]}\n" LINKS REST, "'topology.pes' takes two numbers"},
    {__LINE__, "topology: {pes: [4, [4]]}\n" LINKS REST, "'topology.pes' takes plain values"},
    {__LINE__, GOOD "ipcq: {slotz: 4}\n", "m.yaml:6:8: error: unknown key 'ipcq.slotz'"},
    {__LINE__, GOOD "colour: red\n", "known here: topology, links, ipcq"},
    {__LINE__, GOOD "ipcq: {slots: 4, slots: 5}\n", "'ipcq.slots' is given twice"},
    {__LINE__, GOOD "ipcq: 7\n", "expected 'key: value' lines below ipcq."},
    {__LINE__, GOOD "ipcq: {space: dram}\n", "expected one of tcm|sram|hbm"},
    {__LINE__, GOOD "place: {param: hbm}\n", "missing key 'mem.hbm.bw_GBps'"},
    {__LINE__, GOOD "ccl: {ranks: 17}\n", "'ccl.ranks' is 17, but the machine has 16 PEs"},
    {__LINE__,
     "topology: {pes: [4, 4]}\n" LINKS "dma: {bw_GBps: 1}\nmem: {tcm: {bw_GBps: 1}}\n"
     "math: {clock_GHz: 1, lanes: {f32: 0}}\n",
     "'math.lanes.f32' is '0': out of range"},
    {__LINE__, "a: &x {b: *x}\n", "unknown key 'a'"},
    {__LINE__, "topology: &t {pes: [2, 2], wrap: *t}\n" LINKS REST, "unknown key"},
    {__LINE__, "topology: {pes: [4, 4]\n", "not YAML"},
    {__LINE__, "- 1\n- 2\n", "expected 'key: value' lines"},
    {__LINE__, "topology: {pes: [4, 4]}\nccl: {algorithm: &ring }\n" LINKS REST,
     "expected a name, a file"},
    {__LINE__, "topology: {pes: [4, 4], sips: \"2\\0\"}\n" LINKS REST, "takes plain values"},
};

static struct peal_machine *read_text(const char *text, size_t len, struct peal_text *said)
{
    struct peal_source source = {.name = "m.yaml", .text = text, .len = len};
    struct peal_diags diags;
    struct peal_machine *machine = NULL;
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_read(&source, &diags, &machine);
    assert_true((status == PEAL_OK) == (machine != NULL));
    assert_true((status == PEAL_OK) == (diags.errors == 0));
    peal_diags_print(&diags, false, said);
    peal_diags_release(&diags);
    return machine;
}

/* Undoes the line breaks of a message, which depend on how long it is. */
static void unfold(struct peal_text *said)
{
    struct peal_text out = {0};
    const char *at = peal_text_get(said);
    for (const char *fold; (fold = strstr(at, "\n  ")); at = fold + 3) {
        peal_text_add(&out, at, (size_t)(fold - at));
        peal_text_puts(&out, " ");
    }
    peal_text_puts(&out, at);
    peal_text_release(said);
    *said = out;
}

TEST(bad_files_are_refused_with_a_place)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_text said = {0};
        struct peal_machine *machine = read_text(rows[i].text, strlen(rows[i].text), &said);
        unfold(&said);
        bool ok = rows[i].message ? !machine && strstr(peal_text_get(&said), rows[i].message)
                                  : machine != NULL;
        if (!ok)
            fail_msg("line %d: %s", rows[i].line, peal_text_get(&said));
        peal_machine_free(machine);
        peal_text_release(&said);
    }
}

TEST(deep_and_large_texts_cost_little)
{
    enum { DEEP = 100000 };
    char *text = malloc(2000000);
    struct peal_text said = {0};
    memset(text, '[', DEEP);
    assert_null(read_text(text, DEEP, &said));
    for (int i = 0; i < DEEP; i++)
        text[i] = i % 2 ? ' ' : '-';
    assert_null(read_text(text, DEEP, &said));
    memset(text, ' ', 2000000);
    assert_null(read_text(text, 2000000, &said));
    assert_non_null(strstr(peal_text_get(&said), "at most 1048576 bytes"));
    peal_text_release(&said);
    free(text);
}

TEST(a_printed_machine_reads_back_as_itself)
{
    static const char text[] =
        "topology: {sips: 2, cubes: [2, 3], pes: [4, 5], wrap: {sip: ring}}\n"
        "links:\n  pe: {bw_GBps: 0.1, lat_ns: 8.125}\n"
        "  cube: {bw_GBps: 3.3, lat_ns: 40}\n"
        "  sip: {bw_GBps: 1e3, lat_ns: 1000}\n" REST;
    struct peal_text said = {0}, first = {0}, second = {0};
    struct peal_machine *machine = read_text(text, strlen(text), &said);
    assert_non_null(machine);
    assert_int_equal(machine->pes, 240);
    assert_int_equal(machine->keys.link_lat[PEAL_LEVEL_PE], 8125);
    assert_int_equal(machine->keys.link_bw[PEAL_LEVEL_PE].num, 10000);
    assert_int_equal(machine->keys.link_bw[PEAL_LEVEL_PE].den, 1);
    assert_int_equal(peal_rate_time(machine->keys.link_bw[PEAL_LEVEL_CUBE], 33), 10000);
    assert_int_equal(peal_rate_time(machine->keys.link_bw[PEAL_LEVEL_CUBE], 34), 10304);
    peal_machine_print(machine, &first);
    assert_non_null(strstr(first.at, "bw_GBps: 1000 ")); /* not 1e+03 */
    struct peal_machine *again = read_text(first.at, first.len, &said);
    if (!again)
        fail_msg("%s", peal_text_get(&said));
    peal_machine_print(again, &second);
    /* In the second every key is given: only the remarks differ. */
    assert_int_equal(again->pes, 240);
    assert_memory_equal(&machine->keys.link_bw, &again->keys.link_bw, sizeof again->keys.link_bw);
    peal_machine_free(machine);
    peal_machine_free(again);
    peal_text_release(&said);
    peal_text_release(&first);
    peal_text_release(&second);
}

TEST(settings_are_checked_together_and_undone_on_error)
{
    struct peal_text said = {0};
    struct peal_machine *machine = read_text(GOOD, strlen(GOOD), &said);
    static const char *const good[] = {"topology.pes=[1,1]", "topology.sips=4",
                                       "links.sip.bw_GBps=5", "links.sip.lat_ns=9"};
    static const char *const bad[] = {"ipcq.slots=7", "topology.cubes=[2,2]"};
    assert_int_equal(peal_machine_set(machine, good, 4, NULL), PEAL_OK);
    assert_int_equal(machine->pes, 4);
    assert_int_equal(peal_machine_set(machine, bad, 2, NULL), PEAL_INVALID);
    assert_int_equal(machine->keys.slots, 4);
    assert_int_equal(machine->pes, 4);
    peal_machine_free(machine);
    peal_text_release(&said);
}

/* Where the ranks of a machine of 2 SIPs x 2 x 1 cubes x 2 x 2 PEs are, as node/cube digits. */
static void places_of(const char *embed, const struct peal_machine_group *group, char *out)
{
    char setting[64];
    const char *settings[] = {"topology.sips=2", "topology.cubes=[2,1]", "topology.pes=[2,2]",
                              setting};
    struct peal_machine *machine = NULL;
    struct peal_places places;
    struct peal_arena arena;
    snprintf(setting, sizeof setting, "ccl.embed=%s", embed);
    peal_arena_init(&arena, 0);
    assert_int_equal(peal_machine_open("system2x4x16", NULL, &machine), PEAL_OK);
    assert_int_equal(peal_machine_set(machine, settings, 4, NULL), PEAL_OK);
    assert_int_equal(peal_machine_ranks(machine), 16);
    assert_true(peal_machine_places(machine, group, &arena, &places));
    for (uint32_t r = 0; r < places.nranks; r++)
        out += sprintf(out, "%s%u%u", r ? " " : "", places.nodes[r], places.cubes[r]);
    peal_machine_free(machine);
    peal_arena_release(&arena);
}

TEST(ranks_are_placed_on_the_levels_of_the_machine)
{
    static const uint32_t last[] = {15, 9, 14, 8}, far[] = {6, 7, 12};
    static const struct {
        int line;
        const char *embed;
        struct peal_machine_group group;
        const char *want;
    } cases[] = {
        {__LINE__, "row_major", {16, 16, NULL}, "00 00 00 00 01 01 01 01 10 10 10 10 11 11 11 11"},
        {__LINE__, "row_major", {5, 5, NULL}, "00 00 00 00 01"},
        {__LINE__, "snake", {16, 16, NULL}, "00 00 01 01 01 01 00 00 10 10 11 11 11 11 10 10"},
        {__LINE__, "ring", {3, 3, NULL}, "00 01 01"},
        {__LINE__, "row_major", {4, 16, last}, "01 00 01 00"}, /* SIP 1 alone: no gap before it */
        {__LINE__, "row_major", {3, 16, far}, "00 00 10"},     /* cube 1 of SIP 0, cube 1 of 1 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char have[256];
        places_of(cases[i].embed, &cases[i].group, have);
        if (strcmp(have, cases[i].want) != 0)
            fail_msg("line %d: %s", cases[i].line, have);
    }
}

TEST(every_file_of_the_folder_is_built_in)
{
    size_t files = 0;
    DIR *folder = opendir(SOURCE_ROOT "/machines");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char name[64];
        struct peal_machine *machine = NULL;
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".yaml") != 0)
            continue;
        files++;
        snprintf(name, sizeof name, "%.*s", (int)(dot - entry->d_name), entry->d_name);
        if (peal_machine_open(name, NULL, &machine) != PEAL_OK)
            fail_msg("there is no built-in machine '%s'", name);
        peal_machine_free(machine);
    }
    closedir(folder);
    assert_int_equal(files, peal_machine_text_count);
}

int main(void)
{
    return unit_run();
}
