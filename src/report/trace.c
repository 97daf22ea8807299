/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the Trace Event Format, one a line: M names tracks, X is a bar, s and f a flow, C a
 * counter. */
#include "report/trace.h"

#include <inttypes.h>

static void open_event(struct peal_trace *trace, const char *phase, uint32_t group)
{
    peal_text_printf(trace->out, "%s{\"ph\":\"%s\",\"pid\":%u", trace->filled ? ",\n" : "", phase,
                     group);
    trace->filled = true;
}

/* Picoseconds as microseconds, exactly. */
static void put_time(struct peal_trace *trace, const char *key, uint64_t ps)
{
    peal_text_printf(trace->out, ",\"%s\":%" PRIu64 ".%06" PRIu64, key, ps / 1000000, ps % 1000000);
}

static void put_text(struct peal_trace *trace, const char *key, const char *text)
{
    peal_text_printf(trace->out, ",\"%s\":", key);
    peal_text_json(trace->out, text);
}

void peal_trace_begin(struct peal_trace *trace, struct peal_text *out)
{
    *trace = (struct peal_trace){.out = out};
    peal_text_puts(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
}

void peal_trace_group(struct peal_trace *trace, uint32_t group, const char *name)
{
    open_event(trace, "M", group);
    peal_text_puts(trace->out, ",\"name\":\"process_name\",\"args\":{\"name\":");
    peal_text_json(trace->out, name);
    peal_text_puts(trace->out, "}}");
    open_event(trace, "M", group);
    peal_text_printf(trace->out, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%u}}",
                     group);
}

void peal_trace_track(struct peal_trace *trace, uint32_t group, uint32_t track, const char *name)
{
    open_event(trace, "M", group);
    peal_text_printf(trace->out, ",\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":", track);
    peal_text_json(trace->out, name);
    peal_text_puts(trace->out, "}}");
    open_event(trace, "M", group);
    peal_text_printf(trace->out,
                     ",\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}",
                     track, track);
}

void peal_trace_bar(struct peal_trace *trace, const struct peal_trace_bar *bar)
{
    open_event(trace, "X", bar->group);
    peal_text_printf(trace->out, ",\"tid\":%u", bar->track);
    put_time(trace, "ts", bar->start);
    put_time(trace, "dur", bar->end - bar->start);
    put_text(trace, "name", bar->name);
    if (bar->category)
        put_text(trace, "cat", bar->category);
    peal_text_puts(trace->out, ",\"args\":{");
    for (size_t i = 0; i < 4 && bar->args[i].name; i++) {
        peal_text_puts(trace->out, i ? "," : "");
        peal_text_json(trace->out, bar->args[i].name);
        peal_text_puts(trace->out, ":");
        if (bar->args[i].text)
            peal_text_json(trace->out, bar->args[i].text);
        else
            peal_text_printf(trace->out, "%" PRIu64, bar->args[i].number);
    }
    peal_text_puts(trace->out, "}}");
}

static void put_flow(struct peal_trace *trace, const char *phase, uint64_t id, const char *name,
                     const struct peal_trace_bar *bar, uint64_t time)
{
    open_event(trace, phase, bar->group);
    peal_text_printf(trace->out, ",\"tid\":%u,\"id\":%" PRIu64, bar->track, id);
    put_time(trace, "ts", time);
    put_text(trace, "name", name);
    peal_text_puts(trace->out, ",\"cat\":\"message\"");
    peal_text_puts(trace->out, *phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

void peal_trace_flow(struct peal_trace *trace, uint64_t id, const char *name,
                     const struct peal_trace_bar *from, uint64_t from_time,
                     const struct peal_trace_bar *to, uint64_t to_time)
{
    put_flow(trace, "s", id, name, from, from_time);
    put_flow(trace, "f", id, name, to, to_time);
}

void peal_trace_counter(struct peal_trace *trace, uint32_t group, const char *name, uint64_t time,
                        double value)
{
    open_event(trace, "C", group);
    put_time(trace, "ts", time);
    put_text(trace, "name", name);
    peal_text_printf(trace->out, ",\"args\":{\"value\":%.6g}}", value);
}

void peal_trace_end(struct peal_trace *trace)
{
    peal_text_puts(trace->out, "\n]}\n");
}
