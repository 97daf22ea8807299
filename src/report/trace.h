/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome trace JSON, as Perfetto and chrome://tracing open it.
 *
 *   peal_trace_begin(&trace, &text);
 *   peal_trace_group(&trace, 0, "rank 0");            a group of tracks ("process")
 *   peal_trace_track(&trace, 0, 1, "math");           one serial resource ("thread")
 *   peal_trace_bar / _flow / _counter ...
 *   peal_trace_end(&trace);
 *
 * Times are in picoseconds here; the file has microseconds, six digits after the point.
 */
#ifndef PEAL_REPORT_TRACE_H
#define PEAL_REPORT_TRACE_H

#include "base/base.h"

#include <stdint.h>

struct peal_trace {
    struct peal_json json;
};

/* One argument of a bar, shown when it is selected. NULL name = none. */
struct peal_trace_arg {
    const char *name;
    const char *text; /* or NULL: number */
    uint64_t number;
};

struct peal_trace_bar {
    uint32_t group, track;
    uint64_t start, end;
    const char *name, *category;
    struct peal_trace_arg args[4];
};

void peal_trace_begin(struct peal_trace *trace, struct peal_text *out);
void peal_trace_group(struct peal_trace *trace, uint32_t group, const char *name);
void peal_trace_track(struct peal_trace *trace, uint32_t group, uint32_t track, const char *name);
void peal_trace_bar(struct peal_trace *trace, const struct peal_trace_bar *bar);
/* An arrow from inside one bar to inside another. */
void peal_trace_flow(struct peal_trace *trace, uint64_t id, const char *name,
                     const struct peal_trace_bar *from, uint64_t from_time,
                     const struct peal_trace_bar *to, uint64_t to_time);
void peal_trace_counter(struct peal_trace *trace, uint32_t group, const char *name, uint64_t time,
                        double value);
void peal_trace_end(struct peal_trace *trace);

#endif
