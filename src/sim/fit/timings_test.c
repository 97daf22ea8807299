/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of times: what is read from which form, and where errors point. */
#include "sim/fit/timings.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <string.h>

#define NCCL_HEAD                                                                                  \
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2(factor)\n"                                 \
    "#\n# Using devices\n"                                                                         \
    "#  Rank  0 Group  0 Pid 77 on    box device  0 [0x07] Some GPU\n"                             \
    "#  Rank  1 Group  0 Pid 77 on    box device  1 [0x0f] Some GPU\n"                             \
    "box:77:77 [0] NCCL INFO nothing of interest\n"                                                \
    "#\n#                                              out-of-place                       "        \
    "in-place\n"                                                                                   \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "    \
    "time   algbw   busbw #wrong\n"                                                                \
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "    \
    "(us)  (GB/s)  (GB/s)\n"

/* What a table says: series and rows as text. */
static const struct {
    int line;
    const char *text, *where; /* where: COLUMN=VALUE or NULL */
    bool in_place;
    const char *expected; /* rows, or a part of the diagnostics */
} rows[] = {
    {__LINE__, "8 10\n16 11.5 99\n", NULL, false, "none 0 f32: 8=10 16=11.5; skipped 0"},
    {__LINE__, "8 10 7\n16 11.5 9\n", NULL, true, "none 0 f32: 8=7 16=9; skipped 0"},
    {__LINE__, "# a comment\n1K 10\r\n\n1MiB 20", NULL, false,
     "none 0 f32: 1024=10 1048576=20; skipped 0"},
    {__LINE__, "16 9\n8 10\n8 30\n8 11\n16 10\n", NULL, false,
     "none 0 f32: 8=11 16=9.5; skipped 0"},
    {__LINE__, "0 3\n8 0\n16 4\n", NULL, false, "none 0 f32: 16=4; skipped 2"},
    {__LINE__, "Size (B),Latency (us)\n8,1\n", NULL, false, "none 0 f32: 8=1; skipped 0"},
    {__LINE__, "# made up: bytes, us\n8 1\n", NULL, false, "none 0 f32: 8=1; skipped 0"},
    {__LINE__, "# bytes time_ms\n8 1\n", NULL, false, "none 0 f32: 8=1000; skipped 0"},
    {__LINE__,
     "who\tcollective\tranks\tbytes\ttime_us\tip_time_us\n"
     "me\tall_gather\t4\t8\t1\t2\nyou\tallgather\t4\t8\t7\t8\nme\tAllReduce\t2\t8\t3\t4\n",
     "who=me", true, "allgather 4 f32: 8=2 allreduce 2 f32: 8=4; skipped 0"},
    {__LINE__,
     NCCL_HEAD
     "           8             2     float     sum      -1     5.00    0.00    0.00      0 "
     "    4.00    0.00    0.00      0\n"
     "     1048576        262144     float     sum      -1    100.0   10.49   10.49    N/A"
     "     99.0   10.59   10.59    N/A\n# Out of bounds values : 0 OK\n",
     NULL, false, "allreduce 2 f32: 8=5 1048576=100; skipped 0"},
    {__LINE__,
     NCCL_HEAD
     "     1048576        262144      half    none       0    100.0   10.49   10.49      0"
     "     99.0   10.59   10.59      0\n",
     NULL, true, "broadcast 2 f16: 1048576=99; skipped 0"},
    {__LINE__,
     "# Collective test starting: reduce_scatter_perf\n" NCCL_HEAD
     "     1048576        262144      int8    sum      100.0   10.49    5.24      0"
     "     99.0   10.59   5.29      0\n",
     NULL, false, "reduce_scatter 2 i8: 1048576=100; skipped 0"},
    {__LINE__, "", NULL, false, "t:1:1: error: the table has no row"},
    {__LINE__, "8 ten\n", NULL, false, "t:1:3: error: 'ten' is not a time"},
    {__LINE__, "8 1\n-8 1\n", NULL, false, "t:2:1: error: '-8' is not a size"},
    {__LINE__, "8 1\n16 inf\n", NULL, false, "t:2:4: error: 'inf' is not a time"},
    {__LINE__, "8 -1\n", NULL, false, "t:1:3: error: '-1' is not a time"},
    {__LINE__, "8 nan\n", NULL, false, "is not a time"},
    {__LINE__, "8\n", NULL, false, "t:1:1: error: expected a size and a time"},
    {__LINE__, "fish and chips\n", NULL, false, "t:1:1: error: expected a size in bytes"},
    {__LINE__, "99999999999999999999 1\n", NULL, false, "is not a size"},
    {__LINE__, "bytes,time_us\n8\n", NULL, false, "t:2:1: error: the line has 1 fields"},
    {__LINE__, "bytes,time_us\n8,1\n", NULL, true, "no column of times in place"},
    {__LINE__, "bytes,time_us\n8,1\n", "who=me", false, "no column is called 'who'"},
    {__LINE__, "8 1\n", "who=me", false, "only a table with a head"},
    {__LINE__, "bytes,time_us,coll\n8,1,allfish\n", NULL, false, "'allfish' is not a collective"},
    {__LINE__, "bytes,time_us,ranks\n8,1,1.5\n", NULL, false, "'1.5' is not a number of ranks"},
    {__LINE__, NCCL_HEAD "8 2 float sum -1 5.00 0.00\n 8 2 float sum -1 5.00 0.00 0 4\n", NULL,
     false, "a row of nccl-tests has"},
};

static void print(const struct peal_timings *t, struct peal_text *out)
{
    uint32_t series = UINT32_MAX;
    for (size_t i = 0; i < t->rows.len; i++) {
        const struct peal_measured_time *row = &t->rows.at[i];
        const struct peal_timing_series *s = &t->series.at[row->series];
        if (row->series != series)
            peal_text_printf(out, "%s%s %u %s:", i ? " " : "",
                             peal_contract_info(s->collective)->name, s->ranks,
                             peal_dtype_name(s->dtype));
        series = row->series;
        peal_text_printf(out, " %llu=%g", (unsigned long long)row->bytes, row->us);
    }
    peal_text_printf(out, "; skipped %u", t->skipped);
}

TEST(a_table_is_read_in_each_of_its_forms)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_source source = {"t", rows[i].text, strlen(rows[i].text)};
        char column[40] = "";
        struct peal_timings_where where = {column, NULL};
        struct peal_timings_options options = {.in_place = rows[i].in_place, .where = &where};
        struct peal_diags diags;
        struct peal_timings timings;
        struct peal_text text = {0};
        if (rows[i].where) {
            snprintf(column, sizeof column, "%s", rows[i].where);
            *strchr(column, '=') = 0;
            where.value = rows[i].where + strlen(column) + 1;
            options.nwhere = 1;
        }
        peal_diags_init(&diags);
        enum peal_status status = peal_timings_read(&source, &options, &diags, &timings);
        assert_int_equal(status == PEAL_OK, diags.errors == 0);
        if (status == PEAL_OK)
            print(&timings, &text);
        else
            peal_diags_print(&diags, false, &text);
        bool same = status == PEAL_OK ? strcmp(peal_text_get(&text), rows[i].expected) == 0
                                      : strstr(peal_text_get(&text), rows[i].expected) != NULL;
        if (!same)
            fail_msg("line %d: %s", rows[i].line, peal_text_get(&text));
        peal_text_release(&text);
        peal_timings_release(&timings);
        peal_diags_release(&diags);
    }
}

int main(void)
{
    return unit_run();
}
