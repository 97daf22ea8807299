/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the Trace Event Format, one per line: M names tracks, X is a bar, s and f a flow, C a
 * counter. */
#include "report/trace.h"

#include <inttypes.h>
#include <stdio.h>

static struct peal_json *open_event(struct peal_trace *trace, const char *phase, uint32_t group)
{
    struct peal_json *json = &trace->json;
    peal_json_break(json, 0);
    peal_json_object(json);
    peal_json_put_string(json, "ph", phase);
    peal_json_put_uint(json, "pid", group);
    return json;
}

/* Picoseconds as microseconds, exactly. */
static void put_time(struct peal_json *json, const char *key, uint64_t ps)
{
    char digits[40];
    snprintf(digits, sizeof digits, "%" PRIu64 ".%06" PRIu64, ps / 1000000, ps % 1000000);
    peal_json_key(json, key);
    peal_json_raw(json, digits);
}

/* An event that names something: its arguments are one text. */
static void name_event(struct peal_json *json, const char *event, const char *name)
{
    peal_json_put_string(json, "name", event);
    peal_json_put_object(json, "args");
    peal_json_put_string(json, "name", name);
    peal_json_object_end(json);
    peal_json_object_end(json);
}

static void sort_event(struct peal_json *json, const char *event, uint32_t index)
{
    peal_json_put_string(json, "name", event);
    peal_json_put_object(json, "args");
    peal_json_put_uint(json, "sort_index", index);
    peal_json_object_end(json);
    peal_json_object_end(json);
}

void peal_trace_begin(struct peal_trace *trace, struct peal_text *out)
{
    struct peal_json *json = &trace->json;
    peal_json_init(json, out, 0);
    peal_json_object(json);
    peal_json_put_string(json, "displayTimeUnit", "ns");
    peal_json_put_array(json, "traceEvents");
}

void peal_trace_group(struct peal_trace *trace, uint32_t group, const char *name)
{
    name_event(open_event(trace, "M", group), "process_name", name);
    sort_event(open_event(trace, "M", group), "process_sort_index", group);
}

void peal_trace_track(struct peal_trace *trace, uint32_t group, uint32_t track, const char *name)
{
    struct peal_json *json = open_event(trace, "M", group);
    peal_json_put_uint(json, "tid", track);
    name_event(json, "thread_name", name);
    open_event(trace, "M", group);
    peal_json_put_uint(json, "tid", track);
    sort_event(json, "thread_sort_index", track);
}

void peal_trace_bar(struct peal_trace *trace, const struct peal_trace_bar *bar)
{
    struct peal_json *json = open_event(trace, "X", bar->group);
    peal_json_put_uint(json, "tid", bar->track);
    put_time(json, "ts", bar->start);
    put_time(json, "dur", bar->end - bar->start);
    peal_json_put_string(json, "name", bar->name);
    if (bar->category)
        peal_json_put_string(json, "cat", bar->category);
    peal_json_put_object(json, "args");
    for (size_t i = 0; i < 4 && bar->args[i].name; i++) {
        if (bar->args[i].text)
            peal_json_put_string(json, bar->args[i].name, bar->args[i].text);
        else
            peal_json_put_uint(json, bar->args[i].name, bar->args[i].number);
    }
    peal_json_object_end(json);
    peal_json_object_end(json);
}

static void put_flow(struct peal_trace *trace, const char *phase, uint64_t id, const char *name,
                     const struct peal_trace_bar *bar, uint64_t time)
{
    struct peal_json *json = open_event(trace, phase, bar->group);
    peal_json_put_uint(json, "tid", bar->track);
    peal_json_put_uint(json, "id", id);
    put_time(json, "ts", time);
    peal_json_put_string(json, "name", name);
    peal_json_put_string(json, "cat", "message");
    if (*phase == 'f')
        peal_json_put_string(json, "bp", "e");
    peal_json_object_end(json);
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
    struct peal_json *json = open_event(trace, "C", group);
    put_time(json, "ts", time);
    peal_json_put_string(json, "name", name);
    peal_json_put_object(json, "args");
    peal_json_put_real(json, "value", value);
    peal_json_object_end(json);
    peal_json_object_end(json);
}

void peal_trace_end(struct peal_trace *trace)
{
    peal_json_array_end(&trace->json);
    peal_json_object_end(&trace->json);
    peal_text_puts(trace->json.out, "\n");
}
