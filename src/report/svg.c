/* SPDX-License-Identifier: Apache-2.0 */
/* The picture behind svg.h. Colours are classes in a style element with a media query; bars that
 * fall into one pixel are drawn as one rectangle. */
#include "report/svg.h"

#include "report/escape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { AXIS = 26, MARGIN = 12, LEGEND = 30, CHAR = 7 };

struct picture {
    const struct peal_page *page;
    struct peal_text *out;
    uint64_t from, to;
    double left, width; /* of the plot */
    double row;
    uint32_t tracks;
};

static const char style[] =
    "<style>\n"
    "text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#5b6572}\n"
    ".b{font-size:11px;fill:#fff}.bw{font-size:11px}.g{stroke:#e6e9ed}.l{stroke:#d4d9df}\n"
    ".bg{fill:#fff}.c0{fill:#4373cf}.c1{fill:#2f9460}.c2{fill:#138a8f}.c3{fill:#d98218}\n"
    ".c4{fill:#ccd2da}.c5{fill:#7d5cc6}.c6{fill:#b65aa6}.c7{fill:#4aa3d8}.c8{fill:#8791a0}\n"
    ".x{fill:#c8202c}.a{fill:none;stroke-width:1.3}.p{fill:none;stroke:#d4168a;stroke-width:2.5}\n"
    ".s3{stroke:#d98218}.s5{stroke:#7d5cc6}.s7{stroke:#4aa3d8}.s0{stroke:#4373cf}\n"
    ".sx{stroke:#c8202c}\n"
    "@media(prefers-color-scheme:dark){text{fill:#98a4b2}.b{fill:#0e1216}.g{stroke:#222a33}\n"
    ".l{stroke:#2f3842}.bg{fill:#0e1216}.c0{fill:#6f9cf2}.c1{fill:#56bd88}.c2{fill:#45b9bd}\n"
    ".c3{fill:#f0a848}.c4{fill:#39434f}.c5{fill:#a68af0}.c6{fill:#dc86cd}.c7{fill:#71bfec}\n"
    ".c8{fill:#97a3b2}.x{fill:#ff6d72}.p{stroke:#ff6cc0}.s3{stroke:#f0a848}.s5{stroke:#a68af0}\n"
    ".s7{stroke:#71bfec}.s0{stroke:#6f9cf2}.sx{stroke:#ff6d72}}\n"
    "</style>\n";

/* XML text: markup is escaped, control characters become blanks, and whatever is not UTF-8 or not
 * allowed in XML becomes a question mark. At most `maximum` code points, then an ellipsis. */
static void add_xml(struct peal_text *out, const char *text, size_t maximum)
{
    size_t len = strlen(text), step;
    for (size_t points = 0; len > 0; points++, text += step, len -= step) {
        step = peal_utf8_len(text, len);
        bool valid = step > 0 && !(step == 3 && memcmp(text, "\xef\xbf\xbe", 2) == 0);
        if (!step)
            step = 1;
        if (points >= maximum) {
            peal_text_puts(out, "\xe2\x80\xa6");
            return;
        }
        const char *escape = peal_markup_escape(*text);
        if (escape)
            peal_text_puts(out, escape);
        else if (step == 1 && (unsigned char)*text < 0x20)
            peal_text_puts(out, " ");
        else if (valid)
            peal_text_add(out, text, step);
        else
            peal_text_puts(out, "?");
    }
}

static size_t count_points(const char *text)
{
    size_t points = 0;
    for (; *text; text++)
        points += ((unsigned char)*text & 0xc0) != 0x80;
    return points;
}

static double x_of(const struct picture *p, uint64_t time)
{
    double span = (double)(p->to - p->from);
    double at = ((double)time - (double)p->from) / span;
    at = fmin(fmax(at, 0), 1);
    return p->left + at * p->width;
}

static double y_of(const struct picture *p, uint32_t track)
{
    return MARGIN + AXIS + track * p->row;
}

static void add_time(const struct picture *p, uint64_t time)
{
    char buf[32];
    if (p->page->unit == PEAL_UNIT_STEPS)
        peal_text_printf(p->out, "%llu", (unsigned long long)time);
    else
        peal_text_puts(p->out, time ? peal_page_time(time, buf) : "0");
}

/* 1, 2 or 5 times a power of ten. */
static uint64_t tick_step(uint64_t span, unsigned maximum)
{
    static const unsigned factors[] = {1, 2, 5};
    uint64_t power = 1;
    for (;; power *= 10)
        for (size_t i = 0; i < 3; i++)
            if (span / (power * factors[i]) <= maximum || power > UINT64_MAX / 100)
                return power * factors[i];
}

static void add_axis(const struct picture *p)
{
    double bottom = y_of(p, p->tracks);
    uint64_t step = tick_step(p->to - p->from, (unsigned)(p->width / 90) + 1);
    uint64_t first = p->from + (step - p->from % step) % step;
    for (uint64_t t = first; t <= p->to; t += step) {
        double x = x_of(p, t);
        peal_text_printf(p->out, "<path class=\"g\" d=\"M%.1f %dV%.1f\"/>", x, MARGIN + AXIS,
                         bottom);
        if (p->page->unit == PEAL_UNIT_STEPS) { /* a step's number stands over its bar */
            if (t == 0 || t == p->from)
                continue;
            x = (x + x_of(p, t - 1)) / 2;
        }
        peal_text_printf(p->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">", x, MARGIN + 14,
                         x > p->left + p->width - 30 ? "end" : "middle");
        add_time(p, t);
        peal_text_puts(p->out, "</text>\n");
    }
    for (uint32_t track = 0; track < p->tracks; track++) {
        double y = y_of(p, track);
        peal_text_printf(p->out, "<path class=\"g\" d=\"M%.1f %.1fH%.1f\"/>", p->left, y + p->row,
                         p->left + p->width);
        if (p->row < 11 && track % (unsigned)(14 / p->row + 1) != 0)
            continue;
        peal_text_printf(p->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", p->left - 8,
                         y + p->row / 2 + 4);
        add_xml(p->out, peal_page_get(p->page, p->page->tracks.at[track].label), 24);
        peal_text_puts(p->out, "</text>\n");
    }
}

/* The space above and below a bar, within its row. */
static double inset_of(const struct picture *p)
{
    if (p->row >= 14)
        return 4;
    return p->row >= 7 ? 1 : 0;
}

static void add_bar(const struct picture *p, const struct peal_page_bar *bar)
{
    double x = x_of(p, bar->start), width = x_of(p, bar->end) - x;
    double inset = inset_of(p);
    double y = y_of(p, bar->track) + inset, height = p->row - 2 * inset;
    width = width > 3 ? width - 1 : fmax(width, 0.6);
    peal_text_printf(p->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", x, y,
                     width, height);
    if (width > 6 && height > 10)
        peal_text_puts(p->out, " rx=\"3\"");
    if (bar->flags & PEAL_BAR_BAD)
        peal_text_puts(p->out, " class=\"x\"/>");
    else
        peal_text_printf(p->out, " class=\"c%u\"/>", bar->category);
    const char *label = peal_page_get(p->page, bar->label);
    size_t maximum = 0;
    if (width > 10)
        maximum = (size_t)((width - 6) / 6.6);
    if (height >= 12 && (maximum >= 4 || (*label && maximum >= count_points(label)))) {
        bool light = bar->category == PEAL_BAR_WAIT && !(bar->flags & PEAL_BAR_BAD);
        peal_text_printf(p->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", light ? "bw" : "b",
                         x + 4, y + height / 2 + 4);
        add_xml(p->out, label, maximum < count_points(label) ? maximum - 1 : maximum);
        peal_text_puts(p->out, "</text>");
    }
    peal_text_puts(p->out, "\n");
}

static void add_bars(const struct picture *p)
{
    double drawn_to = -1; /* right end of the last sub-pixel bar on this track */
    uint32_t track = PEAL_PAGE_NONE;
    for (size_t i = 0; i < p->page->bars.len; i++) {
        const struct peal_page_bar *bar = &p->page->bars.at[i];
        if (bar->track >= p->tracks || bar->end < p->from || bar->start > p->to)
            continue;
        if (bar->track != track)
            track = bar->track, drawn_to = -1;
        double end = x_of(p, bar->end);
        if (end < drawn_to + 0.7 && !(bar->flags & PEAL_BAR_BAD))
            continue;
        add_bar(p, bar);
        drawn_to = end;
    }
}

static const char *stroke_of(const struct peal_page_arrow *arrow)
{
    if (arrow->flags & PEAL_BAR_BAD)
        return "x";
    if (arrow->category == PEAL_BAR_NOTIFY)
        return "3";
    if (arrow->category == PEAL_BAR_SEND)
        return "5";
    if (arrow->category == PEAL_BAR_COPY)
        return "0";
    return "7";
}

/* From the edge of one bar to the edge of the other: the head, which may have the colour of the bar
 * that it points to, lies beside that bar. */
static void add_arrow(const struct picture *p, const struct peal_page_arrow *arrow)
{
    double slant = 0;
    if (p->page->unit == PEAL_UNIT_STEPS)
        slant = 0.22 * (x_of(p, p->from + 1) - p->left);
    double half = p->row / 2, reach = half < 7 ? 0 : half - inset_of(p) + 1;
    if (arrow->to_track < arrow->from_track)
        reach = -reach;
    else if (arrow->to_track == arrow->from_track)
        reach = 0;
    peal_text_printf(p->out,
                     "<path class=\"a s%s\" marker-end=\"url(#h)\" d=\"M%.1f %.1fL%.1f "
                     "%.1f\"/>\n",
                     stroke_of(arrow), x_of(p, arrow->from) - slant,
                     y_of(p, arrow->from_track) + half + reach, x_of(p, arrow->to) + slant,
                     y_of(p, arrow->to_track) + half - reach);
}

static void add_arrows(const struct picture *p)
{
    size_t visible = 0;
    for (size_t i = 0; i < p->page->arrows.len; i++) {
        const struct peal_page_arrow *arrow = &p->page->arrows.at[i];
        if (arrow->from_track >= p->tracks || arrow->to_track >= p->tracks ||
            arrow->from < p->from || arrow->to > p->to || visible++ >= 2000)
            continue;
        add_arrow(p, arrow);
    }
}

static void add_path(const struct picture *p)
{
    if (!p->page->path.len)
        return;
    peal_text_puts(p->out, "<path class=\"p\" stroke-linejoin=\"round\" d=\"");
    bool begun = false;
    for (size_t i = 0; i < p->page->path.len; i++) {
        const struct peal_page_hop *hop = &p->page->path.at[i];
        if (hop->track >= p->tracks || hop->end < p->from || hop->start > p->to)
            continue;
        double y = y_of(p, hop->track) + p->row / 2;
        peal_text_printf(p->out, "%c%.1f %.1fL%.1f %.1f", begun ? 'L' : 'M', x_of(p, hop->start), y,
                         x_of(p, hop->end), y);
        begun = true;
    }
    peal_text_puts(p->out, "\"/>\n");
}

static void add_legend(const struct picture *p)
{
    bool used[PEAL_BAR_CATEGORIES] = {false}, bad = false;
    for (size_t i = 0; i < p->page->bars.len; i++) {
        used[p->page->bars.at[i].category] = true;
        bad = bad || (p->page->bars.at[i].flags & PEAL_BAR_BAD);
    }
    double x = p->left, y = y_of(p, p->tracks) + 14;
    for (int i = 0; i <= PEAL_BAR_CATEGORIES; i++) {
        bool last = i == PEAL_BAR_CATEGORIES;
        if (last ? !bad : !used[i])
            continue;
        const char *name = last ? "collides or stuck" : peal_page_category_name(i);
        if (last)
            peal_text_puts(p->out, "<rect class=\"x\"");
        else
            peal_text_printf(p->out, "<rect class=\"c%d\"", i);
        peal_text_printf(p->out,
                         " x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"11\" rx=\"3\"/><text "
                         "x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                         x, y, x + 16, y + 10, name);
        x += 34 + CHAR * (double)strlen(name);
    }
}

static void measure(struct picture *p, const struct peal_svg_options *options)
{
    const struct peal_page *page = p->page;
    uint32_t maximum = 64;
    if (options->tracks)
        maximum = options->tracks;
    while (p->tracks < page->tracks.len && p->tracks < maximum && !page->tracks.at[p->tracks].group)
        p->tracks++; /* tracks shown on request come last */
    p->row = 34;
    if (options->row)
        p->row = options->row;
    p->from = options->from;
    p->to = options->to;
    if (!options->to) {
        for (size_t i = 0; i < page->bars.len; i++)
            if (page->bars.at[i].end > p->to)
                p->to = page->bars.at[i].end;
    }
    if (p->to <= p->from)
        p->to = p->from + 1;
    size_t label = 4;
    for (uint32_t i = 0; i < p->tracks; i++) {
        size_t points = count_points(peal_page_get(page, page->tracks.at[i].label));
        if (points > label)
            label = points;
    }
    p->left = MARGIN + CHAR * (double)(label < 24 ? label : 24) + 8;
    double width = 900;
    if (options->width)
        width = options->width;
    p->width = width - p->left - MARGIN;
    p->width = p->width < 50 ? 50 : p->width;
}

enum peal_status peal_page_svg(struct peal_page *page, const struct peal_svg_options *options,
                               struct peal_text *out)
{
    struct peal_svg_options defaults = {0};
    struct picture p = {.page = page, .out = out};
    peal_page_sort(page);
    measure(&p, options ? options : &defaults);
    double width = p.left + p.width + MARGIN, height = y_of(&p, p.tracks) + LEGEND + MARGIN;
    peal_text_printf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                     "width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>",
                     width, height, width, height);
    add_xml(out, peal_page_get(page, page->title), 200);
    if (page->headline) {
        peal_text_puts(out, ": ");
        add_xml(out, peal_page_get(page, page->headline), 400);
    }
    peal_text_puts(out, "</title>\n");
    peal_text_puts(out, style);
    peal_text_puts(out,
                   "<defs><marker id=\"h\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
                   "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0.8L8 4L0 "
                   "7.2z\" fill=\"context-stroke\"/></marker></defs>\n");
    peal_text_printf(out, "<rect class=\"bg\" width=\"%.0f\" height=\"%.0f\" rx=\"10\"/>\n", width,
                     height);
    add_axis(&p);
    add_bars(&p);
    add_arrows(&p);
    add_path(&p);
    add_legend(&p);
    peal_text_puts(out, "</svg>\n");
    if (page->failed || out->failed)
        return PEAL_NO_MEMORY;
    return PEAL_OK;
}
