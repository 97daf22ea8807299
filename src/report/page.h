/* SPDX-License-Identifier: Apache-2.0 */
/* The page behind --html: a neutral description of what happened, and its two printers.
 *
 *   page.c        the builder: commands fill a struct peal_page
 *   page_html.c   one self-contained HTML file of it (viewer/ is its script, page_json.c its data)
 *   svg.h         a static space-time picture of the same
 *
 * The description knows tracks, bars and arrows, not plans or machines, so that a counterexample, a
 * simulation and a run are drawn by the same code. Start reading at struct peal_page.
 *
 * Sticky: after a failed allocation the builder calls do nothing and the printers return
 * PEAL_NO_MEMORY. Indices handed out after a failure are 0, which is always a valid text and place.
 *
 * Size: the caller says how much is coming (peal_page_expect); past the limits below, neighbouring
 * bars of a track are joined and arrows are thinned out while they are added, so memory and file
 * stay small however long the run was. The page says that it did so.
 */
#ifndef PEAL_REPORT_PAGE_H
#define PEAL_REPORT_PAGE_H

#include "base/base.h"
#include "report/table.h"

#include <peal/types.h>
#include <stdint.h>

enum {
    PEAL_PAGE_BARS = 300000,  /* approximately: joined bars, plus those that are never joined */
    PEAL_PAGE_ARROWS = 60000, /* approximately */
    PEAL_PAGE_STEPS = 20000,
    PEAL_PAGE_PATH = 20000,
    PEAL_PAGE_SOURCE_BYTES = 4 << 20
};

#define PEAL_PAGE_NONE UINT32_MAX

enum peal_page_kind { PEAL_PAGE_VERIFY, PEAL_PAGE_SIM, PEAL_PAGE_RUN, PEAL_PAGE_SWEEP };
/* The unit of the numbers on an axis. */
enum peal_page_unit { PEAL_UNIT_STEPS, PEAL_UNIT_PS, PEAL_UNIT_BYTES, PEAL_UNIT_NONE };

/* The kind of a bar, which determines its colour. */
enum peal_page_category {
    PEAL_BAR_COPY,
    PEAL_BAR_COMPUTE,
    PEAL_BAR_ACCUMULATE,
    PEAL_BAR_NOTIFY,
    PEAL_BAR_WAIT,
    PEAL_BAR_SEND,
    PEAL_BAR_RECV,
    PEAL_BAR_TRANSFER, /* bytes on a link or in a DMA engine */
    PEAL_BAR_OTHER,
    PEAL_BAR_CATEGORIES
};

enum peal_page_flags {
    PEAL_BAR_BAD = 1,  /* drawn in red: collides, or is stuck */
    PEAL_BAR_KEEP = 2, /* never joined or left out: on the critical path */
    PEAL_BAR_OPEN = 4  /* has not ended: a wait that never passes */
};

struct peal_page_place {
    uint32_t source; /* or PEAL_PAGE_NONE */
    uint32_t line, col, len;
    uint32_t via; /* place of the call that this was inlined by, or PEAL_PAGE_NONE */
};

struct peal_page_track {
    uint32_t label; /* text */
    uint32_t rank;  /* for the filter by rank, or PEAL_PAGE_NONE */
    uint32_t group; /* text: shown only on request, under this name; 0 = always */
};

/* Texts and places are indices from peal_page_text and peal_page_place; 0 is none. */
struct peal_page_bar {
    uint64_t start, end;
    uint64_t bytes;
    uint64_t busy; /* joined bars: time covered; set by the builder */
    uint32_t track;
    uint32_t label, detail;
    uint32_t place;
    uint32_t count; /* ops joined into this bar; set by the builder */
    uint8_t category;
    uint8_t flags;
};

struct peal_page_arrow {
    uint64_t from, to; /* times */
    uint64_t bytes;
    uint32_t from_track, to_track;
    uint32_t label;
    uint8_t category; /* notify, send, ...: the colour */
    uint8_t flags;
};

/* One step of a counterexample. It is also a bar on its track, from its number to the next. */
struct peal_page_step {
    uint32_t track;
    uint32_t rank, lane;
    uint64_t launch;
    uint32_t label, detail, place;
    uint8_t category, flags;
    size_t accesses, first_change, changes; /* set by the builder */
};

/* A buffer or signal cell whose state the page shows at each step. */
struct peal_page_memory {
    uint32_t rank;
    uint32_t name;
    uint64_t bytes;
    uint32_t element; /* bytes of an element, for the scale */
};

struct peal_page_cell {
    uint32_t rank;
    uint32_t name;
    uint32_t initial; /* text: a number, or "unknown" */
};

enum peal_page_access_kind { PEAL_ACCESS_READ, PEAL_ACCESS_WRITE, PEAL_ACCESS_UPDATE };

struct peal_page_access {
    uint32_t memory;
    uint64_t from, to; /* bytes */
    uint8_t kind;
    uint8_t flags; /* PEAL_BAR_BAD: one of the colliding accesses */
};

/* From this step on, bytes of a memory, or a cell, hold `value`. */
struct peal_page_change {
    uint32_t memory; /* or PEAL_PAGE_NONE: then `cell` */
    uint32_t cell;
    uint64_t from, to;
    uint32_t value; /* text */
    bool quiet;     /* not an effect of this step itself: not highlighted */
};

/* The machine: nodes at places that the caller chooses, directed links, frames around groups. */
struct peal_page_node {
    double x, y;
    double load; /* 0..1 */
    uint32_t rank;
    uint32_t label, detail;
};

struct peal_page_link {
    uint32_t from, to;
    double load;
    uint64_t bytes;
    uint32_t detail;
    bool wraps; /* closes a torus: drawn as two stubs */
};

struct peal_page_frame {
    double x0, y0, x1, y1;
    uint32_t label;
};

struct peal_page_series {
    uint32_t name;
    uint64_t start, step;
    size_t first, count; /* in reals */
};

/* A piece of the critical path. */
struct peal_page_hop {
    uint64_t start, end;
    uint32_t track;
    uint32_t cause, label, place;
};

struct peal_page_stall {
    uint64_t amount;
    uint32_t track;
    uint32_t cause;
};

enum peal_page_curve_style { PEAL_CURVE_POINTS, PEAL_CURVE_CLOSED_FORM };

struct peal_page_curve {
    uint32_t plot;
    uint32_t name;
    uint8_t style;
    uint32_t of; /* a closed form: the curve of the plot that it belongs to, or PEAL_PAGE_NONE */
    size_t first, count; /* in reals: x, y, x, y, ... */
};

struct peal_page_axis {
    const char *label;
    enum peal_page_unit unit;
    bool log;
};

struct peal_page_plot {
    uint32_t title, x_label, y_label;
    enum peal_page_unit x_unit, y_unit;
    bool x_log, y_log;
};

struct peal_page_fact {
    uint32_t label, value;
};

struct peal_page_source {
    uint32_t name;
    const char *text;
    size_t len;
};

struct peal_page_table {
    uint32_t title;
    struct peal_report_table *table; /* owned by the page */
};

/* The open bar of a track, which others are joined with, and how its time is spent. */
struct peal_page_open {
    size_t bar; /* index + 1; 0 = none */
    uint64_t busy[PEAL_BAR_CATEGORIES];
    uint64_t arrows;
};

struct peal_page {
    enum peal_page_kind kind;
    enum peal_tone tone;
    enum peal_page_unit unit;
    uint32_t title, verdict, headline; /* texts: "allreduce_ring", "refuted", one sentence */

    PEAL_VEC(struct peal_page_fact) facts;
    PEAL_VEC(uint32_t) notes;
    PEAL_VEC(struct peal_page_source) sources;
    PEAL_VEC(struct peal_page_place) places; /* [0] is no place */
    PEAL_VEC(struct peal_page_track) tracks;
    PEAL_VEC(struct peal_page_bar) bars;
    PEAL_VEC(struct peal_page_arrow) arrows;
    PEAL_VEC(struct peal_page_step) steps;
    PEAL_VEC(struct peal_page_memory) memories;
    PEAL_VEC(struct peal_page_cell) cells;
    PEAL_VEC(struct peal_page_access) accesses;
    /* those before the first step are the initial state */
    PEAL_VEC(struct peal_page_change) changes;
    PEAL_VEC(struct peal_page_node) nodes;
    PEAL_VEC(struct peal_page_link) links;
    PEAL_VEC(struct peal_page_frame) frames;
    PEAL_VEC(struct peal_page_series) series;
    PEAL_VEC(struct peal_page_hop) path;
    PEAL_VEC(struct peal_page_stall) stalls;
    PEAL_VEC(struct peal_page_plot) plots;
    PEAL_VEC(struct peal_page_curve) curves;
    PEAL_VEC(struct peal_page_table) tables;
    PEAL_VEC(double) reals;

    /* Private to the builder. */
    struct peal_arena arena;
    PEAL_VEC(const char *) texts; /* [0] is "" */
    struct peal_index text_index; /* of texts but the first */
    uint64_t join_width;          /* bars shorter than this may be joined; 0 = none */
    uint64_t arrow_every;
    PEAL_VEC(struct peal_page_open) open; /* per track */
    size_t source_bytes;
    uint64_t bars_seen, arrows_seen, steps_seen, path_seen;
    bool failed;
};

void peal_page_init(struct peal_page *page, enum peal_page_kind kind, const char *title);
void peal_page_release(struct peal_page *page);

uint32_t peal_page_text(struct peal_page *page, const char *text);
uint32_t peal_page_printf(struct peal_page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *peal_page_get(const struct peal_page *page, uint32_t text);

void peal_page_verdict(struct peal_page *page, enum peal_tone tone, const char *verdict);
void peal_page_headline(struct peal_page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* One line of the summary; the value is formatted. */
void peal_page_fact(struct peal_page *page, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Something that the reader must know about the page. */
void peal_page_note(struct peal_page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The text is copied. A source of the same name is added once. */
uint32_t peal_page_source(struct peal_page *page, const char *name, const char *text, size_t len);
uint32_t peal_page_place(struct peal_page *page, struct peal_page_place place);
uint32_t peal_page_track(struct peal_page *page, const char *label, uint32_t rank);
/* A track that is shown on request: an engine, a link. */
uint32_t peal_page_track_of(struct peal_page *page, const char *group, const char *label,
                            uint32_t rank);

/* After the tracks, before the bars: how many bars and arrows will follow, and when the last
 * ends. */
void peal_page_expect(struct peal_page *page, uint64_t bars, uint64_t arrows, uint64_t horizon);
/* The bars of one track come in order of their start; tracks may alternate. */
void peal_page_bar(struct peal_page *page, const struct peal_page_bar *bar);
void peal_page_arrow(struct peal_page *page, const struct peal_page_arrow *arrow);

uint32_t peal_page_memory(struct peal_page *page, uint32_t rank, const char *name, uint64_t bytes,
                          uint32_t element);
uint32_t peal_page_cell(struct peal_page *page, uint32_t rank, const char *name,
                        const char *initial);
/* Accesses and changes belong to the step added last; changes before the first step are the initial
 * state. */
void peal_page_step(struct peal_page *page, const struct peal_page_step *step);
void peal_page_access(struct peal_page *page, struct peal_page_access access);
void peal_page_change_memory(struct peal_page *page, uint32_t memory, uint64_t from, uint64_t to,
                             const char *value, bool quiet);
void peal_page_change_cell(struct peal_page *page, uint32_t cell, int64_t value);

uint32_t peal_page_node(struct peal_page *page, struct peal_page_node node);
void peal_page_link(struct peal_page *page, struct peal_page_link link);
void peal_page_frame(struct peal_page *page, struct peal_page_frame frame);

/* Values in 0..1, one every `step`, beginning at `start`. */
void peal_page_series(struct peal_page *page, const char *name, uint64_t start, uint64_t step,
                      const double *values, size_t count);
void peal_page_hop(struct peal_page *page, struct peal_page_hop hop);
void peal_page_stall(struct peal_page *page, struct peal_page_stall stall);

uint32_t peal_page_plot(struct peal_page *page, const char *title, struct peal_page_axis x,
                        struct peal_page_axis y);
void peal_page_curve(struct peal_page *page, uint32_t plot, const char *name);
/* `of` is a curve of the plot. PEAL_PAGE_NONE: none that is shown. */
void peal_page_closed_form(struct peal_page *page, uint32_t plot, const char *name, uint32_t of);
/* Points go to the curve added last. */
void peal_page_point(struct peal_page *page, double x, double y);
/* The page takes ownership of the table. */
void peal_page_table(struct peal_page *page, const char *title, struct peal_report_table *table);

/* Sorts bars by track and start, arrows by start; both printers call it first. */
void peal_page_sort(struct peal_page *page);
/* The description alone. */
void peal_page_json(struct peal_page *page, struct peal_json *json);
/* The whole file: no network, no other file, a content security policy that runs no other
 * script. */
enum peal_status peal_page_html(struct peal_page *page, struct peal_text *out);

/* "12.25 µs": a time in a readable form, four digits. Returns buf. */
const char *peal_page_time(uint64_t ps, char buf[static 32]);
/* "1.875 MiB". Returns buf. */
const char *peal_page_bytes(uint64_t bytes, char buf[static 32]);
const char *peal_page_category_name(enum peal_page_category category);

#endif
