/* SPDX-License-Identifier: Apache-2.0 */
/* The page's description: what is kept, what is joined, and that no text leaves its place. */
#include "base/tests/unit.h"
#include "report/page.h"
#include "report/svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(texts_are_kept_once)
{
    struct peal_page page;
    peal_page_init(&page, PEAL_PAGE_SIM, "title");
    char text[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 500; i++) {
            snprintf(text, sizeof text, "text %d", i);
            uint32_t index = peal_page_text(&page, text);
            assert_int_equal(index, i + 2);
            assert_string_equal(peal_page_get(&page, index), text);
        }
    assert_int_equal(peal_page_text(&page, ""), 0);
    assert_int_equal(peal_page_text(&page, NULL), 0);
    assert_string_equal(peal_page_get(&page, 12345), "");
    peal_page_release(&page);
}

TEST(bars_come_out_by_track_and_start)
{
    static const uint64_t starts[] = {10, 0, 5, 30, 20};
    static const uint32_t tracks[] = {1, 1, 0, 0, 1};
    struct peal_page page;
    peal_page_init(&page, PEAL_PAGE_SIM, "t");
    page.unit = PEAL_UNIT_PS;
    peal_page_track(&page, "a", 0);
    peal_page_track(&page, "b", 1);
    for (size_t i = 0; i < 5; i++)
        peal_page_bar(&page, &(struct peal_page_bar){
                                 .track = tracks[i], .start = starts[i], .end = starts[i] + 3});
    struct peal_text out = {0};
    struct peal_json json;
    peal_json_init(&json, &out, 0);
    peal_page_json(&page, &json);
    const char *bars = strstr(peal_text_get(&out), "\"bars\":");
    assert_non_null(bars);
    const char *expected = "\"bars\":{\"count\":5,\"start\":[5,25,0,10,10],\"track\":[0,0,1,1,1],"
                           "\"length\":[3,3,3,3,3]}";
    assert_memory_equal(bars, expected, strlen(expected));
    peal_text_release(&out);
    peal_page_release(&page);
}

/* A million ops on four tracks; every 1000th must be kept, and nothing may be lost in the sums. */
TEST(many_bars_are_joined_and_kept_ones_are_not)
{
    enum { TRACKS = 4, EACH = 250000 };
    struct peal_page page;
    peal_page_init(&page, PEAL_PAGE_SIM, "t");
    for (uint32_t i = 0; i < TRACKS; i++)
        peal_page_track(&page, "x", i);
    peal_page_expect(&page, (uint64_t)TRACKS * EACH, 0, UINT64_C(10) * EACH);
    for (uint64_t i = 0; i < EACH; i++) {
        struct peal_page_bar bar = {.start = i * 10, .end = i * 10 + 7, .bytes = 2};
        bar.category = i % 3 ? PEAL_BAR_COPY : PEAL_BAR_WAIT;
        bar.flags = i % 1000 == 0 ? PEAL_BAR_KEEP : 0;
        for (bar.track = 0; bar.track < TRACKS; bar.track++)
            peal_page_bar(&page, &bar);
    }
    assert_true(page.bars.len <= 2 * PEAL_PAGE_BARS);
    assert_true(page.bars.len > PEAL_PAGE_BARS / 4);
    peal_page_sort(&page);
    uint64_t count = 0, bytes = 0, busy = 0, kept = 0;
    for (size_t i = 0; i < page.bars.len; i++) {
        const struct peal_page_bar *bar = &page.bars.at[i];
        count += bar->count, bytes += bar->bytes, busy += bar->busy;
        kept += (bar->flags & PEAL_BAR_KEEP) && bar->count == 1;
        if (i && bar[-1].track == bar->track)
            assert_true(bar[-1].end <= bar->start);
    }
    assert_int_equal(count, TRACKS * EACH);
    assert_int_equal(bytes, 2 * TRACKS * EACH);
    assert_int_equal(busy, 7 * TRACKS * EACH);
    assert_int_equal(kept, TRACKS * EACH / 1000);
    peal_page_release(&page);
}

TEST(few_bars_are_left_alone)
{
    struct peal_page page;
    peal_page_init(&page, PEAL_PAGE_SIM, "t");
    peal_page_track(&page, "x", 0);
    peal_page_expect(&page, 100, 100, 1000);
    for (uint64_t i = 0; i < 100; i++) {
        peal_page_bar(&page, &(struct peal_page_bar){.start = i * 10, .end = i * 10 + 1});
        peal_page_arrow(&page, &(struct peal_page_arrow){.from = i, .to = i + 1});
    }
    assert_int_equal(page.bars.len, 100);
    assert_int_equal(page.arrows.len, 100);
    peal_page_release(&page);
}

TEST(arrows_are_thinned_but_for_kept_ones)
{
    struct peal_page page;
    peal_page_init(&page, PEAL_PAGE_SIM, "t");
    peal_page_track(&page, "x", 0);
    uint64_t total = 10 * PEAL_PAGE_ARROWS, kept = 0;
    peal_page_expect(&page, 0, total, total);
    for (uint64_t i = 0; i < total; i++)
        peal_page_arrow(&page, &(struct peal_page_arrow){
                                   .from = i, .to = i, .flags = i % 997 ? 0 : PEAL_BAR_KEEP});
    for (size_t i = 0; i < page.arrows.len; i++)
        kept += page.arrows.at[i].flags & PEAL_BAR_KEEP ? 1 : 0;
    assert_int_equal(kept, (total + 996) / 997);
    assert_in_range(page.arrows.len, PEAL_PAGE_ARROWS, PEAL_PAGE_ARROWS + kept);
    peal_page_release(&page);
}

TEST(steps_own_what_follows_them)
{
    struct peal_page page;
    peal_page_init(&page, PEAL_PAGE_VERIFY, "t");
    peal_page_track(&page, "rank 0", 0);
    uint32_t memory = peal_page_memory(&page, 0, "slot", 64, 4);
    uint32_t cell = peal_page_cell(&page, 0, "ready", "0");
    peal_page_change_memory(&page, memory, 0, 64, "x0", false);
    peal_page_step(&page, &(struct peal_page_step){.label = peal_page_text(&page, "copy")});
    peal_page_access(&page, (struct peal_page_access){memory, 0, 64, PEAL_ACCESS_WRITE, 0});
    peal_page_step(&page, &(struct peal_page_step){.label = peal_page_text(&page, "notify")});
    peal_page_change_cell(&page, cell, -3);
    assert_int_equal(page.steps.at[0].accesses, 1);
    assert_int_equal(page.steps.at[0].changes, 0);
    assert_int_equal(page.steps.at[1].first_change, 1);
    assert_int_equal(page.steps.at[1].changes, 1);
    assert_string_equal(peal_page_get(&page, page.changes.at[1].value), "-3");
    assert_int_equal(page.bars.at[1].start, 1);
    peal_page_release(&page);
}

static size_t count_text(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

/* The page of a hostile kernel has exactly as many tags as that of a harmless one. */
TEST(no_text_ends_its_element)
{
    static const char *const names[] = {
        "tame", "</script><script>x()</script><!-- <script> ]]> </title><title> \" '"};
    size_t tags[2], svg_tags[2];
    for (size_t i = 0; i < 2; i++) {
        struct peal_page page;
        peal_page_init(&page, PEAL_PAGE_VERIFY, names[i]);
        peal_page_headline(&page, "%s", names[i]);
        peal_page_source(&page, names[i], names[i], strlen(names[i]));
        peal_page_track(&page, names[i], 0);
        peal_page_step(&page, &(struct peal_page_step){.label = peal_page_text(&page, names[i])});
        struct peal_text out = {0}, picture = {0};
        assert_int_equal(peal_page_html(&page, &out), PEAL_OK);
        assert_int_equal(peal_page_svg(&page, NULL, &picture), PEAL_OK);
        tags[i] = count_text(peal_text_get(&out), "<");
        svg_tags[i] = count_text(peal_text_get(&picture), "<");
        assert_int_equal(count_text(peal_text_get(&out), "<title>"), 1);
        peal_text_release(&out);
        peal_text_release(&picture);
        peal_page_release(&page);
    }
    assert_int_equal(tags[0], tags[1]);
    assert_int_equal(svg_tags[0], svg_tags[1]);
}

/* An arrow may have the colour of the bar that it points to, so its head must not lie on it. */
TEST(an_arrow_ends_beside_its_bar)
{
    struct peal_page page;
    struct peal_text picture = {0};
    peal_page_init(&page, PEAL_PAGE_VERIFY, "t");
    page.unit = PEAL_UNIT_STEPS;
    for (uint32_t rank = 0; rank < 2; rank++) {
        peal_page_track(&page, "rank", rank);
        peal_page_bar(&page,
                      &(struct peal_page_bar){.track = rank, .start = rank, .end = rank + 1u});
    }
    peal_page_arrow(&page, &(struct peal_page_arrow){.from = 1, .to = 1, .to_track = 1});
    assert_int_equal(peal_page_svg(&page, NULL, &picture), PEAL_OK);
    double top[2], height[2], from_x, from_y, to_x, to_y;
    const char *at = peal_text_get(&picture);
    for (int i = 0; i < 2; i++) {
        at = strstr(at + 1, "<rect x=");
        assert_int_equal(
            sscanf(at, "<rect x=\"%*f\" y=\"%lf\" width=\"%*f\" height=\"%lf", &top[i], &height[i]),
            2);
    }
    at = strstr(at, "d=\"M");
    assert_int_equal(sscanf(at, "d=\"M%lf %lfL%lf %lf", &from_x, &from_y, &to_x, &to_y), 4);
    assert_true(top[0] + height[0] <= from_y && from_y <= to_y && to_y <= top[1]);
    peal_text_release(&picture);
    peal_page_release(&page);
}

TEST(bytes_are_said_in_their_unit)
{
    char buf[32];
    assert_string_equal(peal_page_bytes(0, buf), "0 B");
    assert_string_equal(peal_page_bytes(1023, buf), "1023 B");
    assert_string_equal(peal_page_bytes(1966080, buf), "1.875 MiB");
    assert_string_equal(peal_page_bytes(UINT64_MAX, buf), "16 EiB");
}

TEST(times_are_said_in_their_unit)
{
    static const struct {
        int line;
        uint64_t ps;
        const char *expected;
    } rows[] = {
        {__LINE__, 0, "0 ps"},           {__LINE__, 999, "999 ps"},
        {__LINE__, 1000, "1 ns"},        {__LINE__, 12345, "12.35 ns"},
        {__LINE__, 12200000, "12.2 µs"}, {__LINE__, UINT64_C(3000000000000), "3 s"},
    };
    char buf[32];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(peal_page_time(rows[i].ps, buf), rows[i].expected) != 0)
            fail_msg("row of line %d gave %s", rows[i].line, buf);
}

int main(void)
{
    return unit_run();
}
