/* SPDX-License-Identifier: Apache-2.0 */
/* What a designer wants to know about a run: how long it took, how far from the bound, and why;
 * what each rank waited for; which links were busy; how many slots were needed. */
#include "cli/sim/sim_report.h"

#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link_use {
    struct peal_sim_link_stats stats;
    double share; /* of the run's time */
};

static int compare_use(const void *a, const void *b)
{
    const struct link_use *x = a, *y = b;
    if (x->stats.busy != y->stats.busy)
        return x->stats.busy > y->stats.busy ? -1 : 1;
    return strcmp(x->stats.name, y->stats.name);
}

/* All links of the machine, busiest first. */
static struct link_use *list_links(const struct peal_sim *sim, size_t *count)
{
    uint32_t all = peal_sim_link_count(sim);
    struct link_use *list = calloc(all + 1, sizeof *list);
    double time = (double)peal_sim_stats(sim)->time;
    *count = 0;
    if (!list)
        return NULL;
    for (uint32_t i = 0; i < all; i++) {
        struct link_use use = {0};
        peal_sim_link(sim, i, &use.stats);
        if (time > 0)
            use.share = (double)use.stats.busy / time;
        list[(*count)++] = use;
    }
    qsort(list, *count, sizeof *list, compare_use);
    return list;
}

/* "name           text", within 80 columns. Releases the text. */
static void put_fact(struct peal_text *out, const char *name, struct peal_text *fact)
{
    enum { COLUMN = 15 };
    peal_text_printf(out, "%-*s", COLUMN, name);
    peal_text_words(out, peal_text_get(fact), fact->len, COLUMN, COLUMN);
    out->failed = out->failed || fact->failed;
    peal_text_release(fact);
}

/* "  name             12.3 %  34 ns      #####" */
static void put_bar(struct peal_text *out, const char *name, double share, const char *time)
{
    enum { TIME = 10, BAR = 40 };
    size_t pad = TIME - peal_text_columns(time, strlen(time));
    peal_text_printf(out, "  %-14s %5.1f %%", name, 100 * share);
    int bars = (int)(BAR * share + 0.5);
    if (*time)
        peal_text_printf(out, "  %s", time);
    if (bars)
        peal_text_printf(out, "%*s  ", *time ? (int)pad : 0, "");
    for (int i = 0; i < bars; i++)
        peal_text_puts(out, "#");
    peal_text_puts(out, "\n");
}

static void print_head(const struct peal_sim_job *job, struct peal_text *out)
{
    const struct peal_plan *plan = job->plan;
    struct peal_text embed = {0};
    char bytes[24];
    peal_machine_key_value(job->machine, PEAL_KEY_EMBED, &embed);
    peal_text_printf(out, "%s on %s\n%u %s on %u PEs (%s), %s bytes of %s",
                     peal_plan_string(plan, plan->kernel), job->machine->name, plan->nranks,
                     plan->nranks == 1 ? "rank" : "ranks", job->machine->pes, peal_text_get(&embed),
                     peal_size_format((uint64_t)job->bound.bytes, bytes),
                     peal_dtype_name((enum peal_dtype)plan->dtype));
    if (job->launches > 1)
        peal_text_printf(out, ", %u launches", job->launches);
    if (job->segments > 1)
        peal_text_printf(out,
                         "\n%" PRIu64 " segments of %" PRId64
                         " elements: queues do not hold the whole call (--whole)",
                         job->segments, job->segment);
    peal_text_puts(out, "\n\n");
    peal_text_release(&embed);
}

static void put_check(const struct peal_sim_job *job, struct peal_text *out)
{
    const char *amount = "sampled";
    if (job->options.data == PEAL_SIM_DATA_FULL)
        amount = "full";
    const char *said = job->wrong;
    if (job->check == PEAL_CHECK_RIGHT)
        said = "the result is what the contract says";
    struct peal_text check = {0};
    peal_text_printf(&check, "%s: %s", amount, said);
    put_fact(out, "data", &check);
}

static void print_time(const struct peal_sim_job *job, struct peal_text *out)
{
    const struct peal_sim_stats *s = peal_sim_stats(job->sim);
    char buf[32];
    double time = (double)s->time;
    peal_text_printf(out, "time           %s (%" PRIu64 " ps)\n", peal_page_time(s->time, buf),
                     s->time);
    struct peal_text bound = {0}, closed = {0};
    if (job->bound.time > 0 && job->launches == 1) {
        peal_text_printf(&bound, "%s: %s; %.3f times that",
                         peal_page_time((uint64_t)job->bound.time, buf), job->bound.cause,
                         time / job->bound.time);
        put_fact(out, "bound", &bound);
    }
    if (job->bound.closed > 0 && job->launches == 1) {
        peal_text_printf(&closed, "%s: %s; %.3f times that",
                         peal_page_time((uint64_t)job->bound.closed, buf),
                         job->bound.closed_formula, time / job->bound.closed);
        put_fact(out, "closed form", &closed);
    }
    peal_text_printf(
        out, "transfers      %" PRIu64 " between PEs, %" PRIu64 " bytes; %" PRIu64 " within one\n",
        s->transfers, s->bytes, s->moves);
    if (job->options.data && job->check != PEAL_CHECK_NONE)
        put_check(job, out);
}

static void print_causes(const struct peal_sim_stats *s, struct peal_text *out)
{
    peal_text_puts(out, "\ncritical path\n");
    for (int i = 0; i < PEAL_CAUSE_COUNT; i++) {
        char buf[32];
        double share = 0;
        if (s->time)
            share = (double)s->causes[i] / (double)s->time;
        if (s->causes[i])
            put_bar(out, peal_sim_cause_name((enum peal_sim_cause)i), share,
                    peal_page_time(s->causes[i], buf));
    }
}

static int compare_end(const void *a, const void *b)
{
    const struct peal_sim_rank_stats *x = a, *y = b;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return (x->pe > y->pe) - (x->pe < y->pe);
}

/* Per rank, the latest to end first; at most eight, then the mean of all. */
static void print_stalls(const struct peal_sim_job *job, struct peal_text *out)
{
    uint32_t n = job->plan->nranks;
    struct ranked {
        struct peal_sim_rank_stats stats;
        uint32_t rank;
    } *list = calloc(n, sizeof *list);
    struct peal_report_table *table = peal_report_table_new();
    double mean[PEAL_STALL_COUNT] = {0}, ends = 0;
    if (!list || !table)
        goto release;
    peal_report_table_column(table, "rank", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "pe", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "end ns", PEAL_ALIGN_RIGHT);
    for (int s = 0; s < PEAL_STALL_COUNT; s++)
        peal_report_table_column(table, peal_sim_stall_name((enum peal_sim_stall)s),
                                 PEAL_ALIGN_RIGHT);
    for (uint32_t rank = 0; rank < n; rank++) {
        peal_sim_rank(job->sim, rank, &list[rank].stats);
        list[rank].rank = rank;
        ends += (double)list[rank].stats.end / n;
        for (int s = 0; s < PEAL_STALL_COUNT; s++)
            mean[s] += (double)list[rank].stats.stalls[s] / n;
    }
    qsort(list, n, sizeof *list, compare_end);
    uint32_t rows = (uint32_t)peal_size_min(n, 8);
    for (uint32_t i = 0; i < rows; i++) {
        peal_report_table_cell(table, "%u", list[i].rank);
        peal_report_table_cell(table, "%u", list[i].stats.pe);
        peal_report_table_cell(table, "%.1f", (double)list[i].stats.end / 1000);
        for (int s = 0; s < PEAL_STALL_COUNT; s++)
            peal_report_table_cell(table, "%.1f", (double)list[i].stats.stalls[s] / 1000);
    }
    peal_report_table_cell(table, "mean");
    peal_report_table_cell(table, "%s", "");
    peal_report_table_cell(table, "%.1f", ends / 1000);
    for (int s = 0; s < PEAL_STALL_COUNT; s++)
        peal_report_table_cell(table, "%.1f", mean[s] / 1000);
    peal_text_printf(out, "\nstalls, ns%s\n", n > 8 ? " (the last eight to end)" : "");
    peal_report_table_text(table, out);
release:
    peal_report_table_free(table);
    free(list);
}

static void print_links(const struct peal_sim_job *job, struct peal_text *out)
{
    size_t count;
    struct link_use *list = list_links(job->sim, &count);
    const struct peal_sim_stats *s = peal_sim_stats(job->sim);
    double mean = 0;
    uint64_t hops = 0, used = 0;
    for (size_t i = 0; i < count; i++) {
        mean += list[i].share / (double)count;
        hops += list[i].stats.messages;
        used += list[i].stats.messages > 0;
    }
    if (count == 0) {
        free(list);
        return;
    }
    struct peal_text fact = {0};
    peal_text_printf(&fact, "%" PRIu64 " of %zu used, mean %.1f %% busy", used, count, 100 * mean);
    if (s->transfers)
        peal_text_printf(&fact, ", %.2f hops per transfer", (double)hops / (double)s->transfers);
    peal_text_puts(&fact, "; router buffers have no limit");
    peal_text_puts(out, "\n");
    put_fact(out, "links", &fact);
    for (size_t i = 0; i < count && i < 6 && list[i].stats.busy; i++)
        put_bar(out, list[i].stats.name, list[i].share, "");
    free(list);
}

static void print_slots(const struct peal_sim_job *job, struct peal_text *out)
{
    const struct peal_sim_stats *s = peal_sim_stats(job->sim);
    if (job->plan->channels.count == 0)
        return;
    uint32_t depth = peal_plan_channels(job->plan)[0].depth;
    struct peal_text fact = {0};
    peal_text_printf(&fact, "%u per queue, at most %u in use, %" PRIu64 " sends waited for credit",
                     depth, job->slots_used, s->credit_stalls);
    if (job->slots_needed)
        peal_text_printf(&fact, "; %u would never wait", job->slots_needed);
    peal_text_puts(out, "\n");
    put_fact(out, "slots", &fact);
    if (s->polls)
        peal_text_printf(out, "polls          %" PRIu64 "\n", s->polls);
}

void peal_sim_report_text(const struct peal_sim_job *job, struct peal_text *out)
{
    print_head(job, out);
    if (peal_sim_deadlock(job->sim)) {
        peal_sim_deadlock_print(job->sim, out);
        peal_sim_advice(job, out);
        return;
    }
    print_time(job, out);
    print_causes(peal_sim_stats(job->sim), out);
    print_stalls(job, out);
    print_links(job, out);
    print_slots(job, out);
}

/* What makes the work of two runs different: the number of ranks, and the data per rank. */
static void print_sizes(const struct peal_sim_job *job, const struct peal_sim_job *other,
                        struct peal_text *out)
{
    if (job->plan->nranks != other->plan->nranks)
        peal_text_printf(out, "warning: not the same work: %u ranks against %u\n",
                         job->plan->nranks, other->plan->nranks);
    if (job->bound.bytes != other->bound.bytes)
        peal_text_printf(out, "warning: not the same work: %.0f bytes per rank against %.0f\n",
                         job->bound.bytes, other->bound.bytes);
    if (job->plan->contract != other->plan->contract)
        peal_text_printf(out, "warning: not the same work: %s against %s\n",
                         peal_contract_info((enum peal_contract)job->plan->contract)->name,
                         peal_contract_info((enum peal_contract)other->plan->contract)->name);
}

void peal_sim_report_compare(const struct peal_sim_job *job, const struct peal_sim_job *other,
                             struct peal_text *out)
{
    const struct peal_sim_stats *a = peal_sim_stats(job->sim), *b = peal_sim_stats(other->sim);
    struct peal_report_table *table = peal_report_table_new();
    size_t from = out->len;
    peal_text_printf(out, "\ncompared with %s on %s: %.3f times the time\n",
                     peal_plan_string(other->plan, other->plan->kernel), other->machine->name,
                     a->time ? (double)b->time / (double)a->time : 0);
    peal_text_fold(out, from, 2, PEAL_TEXT_WIDTH);
    print_sizes(job, other, out);
    peal_report_table_column(table, "critical path, ns", PEAL_ALIGN_LEFT);
    peal_report_table_column(table, "this", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "other", PEAL_ALIGN_RIGHT);
    peal_report_table_column(table, "difference", PEAL_ALIGN_RIGHT);
    for (int i = 0; i <= PEAL_CAUSE_COUNT; i++) {
        bool total = i == PEAL_CAUSE_COUNT;
        uint64_t x = a->time, y = b->time;
        if (!total) {
            x = a->causes[i];
            y = b->causes[i];
        }
        if (x == 0 && y == 0)
            continue;
        peal_report_table_cell(table, "%s",
                               total ? "total" : peal_sim_cause_name((enum peal_sim_cause)i));
        peal_report_table_cell(table, "%.1f", (double)x / 1000);
        peal_report_table_cell(table, "%.1f", (double)y / 1000);
        peal_report_table_cell(table, "%+.1f", ((double)y - (double)x) / 1000);
    }
    peal_report_table_text(table, out);
    peal_report_table_free(table);
}

static void json_ranks(const struct peal_sim_job *job, struct peal_json *json)
{
    peal_json_put_array(json, "per_rank");
    for (uint32_t rank = 0; rank < job->plan->nranks; rank++) {
        struct peal_sim_rank_stats stats;
        peal_sim_rank(job->sim, rank, &stats);
        peal_json_object(json);
        peal_json_put_uint(json, "rank", rank);
        peal_json_put_uint(json, "pe", stats.pe);
        peal_json_put_uint(json, "end_ps", stats.end);
        peal_json_put_uint(json, "math_ps", stats.math_busy);
        peal_json_put_uint(json, "dma_data_ps", stats.dma_busy[0]);
        peal_json_put_uint(json, "dma_comm_ps", stats.dma_busy[1]);
        peal_json_put_object(json, "stalls_ps");
        for (int s = 0; s < PEAL_STALL_COUNT; s++)
            peal_json_put_uint(json, peal_sim_stall_name((enum peal_sim_stall)s), stats.stalls[s]);
        peal_json_object_end(json);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void json_links(const struct peal_sim_job *job, struct peal_json *json)
{
    size_t count;
    struct link_use *list = list_links(job->sim, &count);
    peal_json_put_array(json, "links");
    for (size_t i = 0; i < count; i++) {
        if (!list[i].stats.messages)
            continue;
        peal_json_object(json);
        peal_json_put_string(json, "name", list[i].stats.name);
        peal_json_put_uint(json, "from_pe", list[i].stats.from);
        peal_json_put_uint(json, "to_pe", list[i].stats.to);
        peal_json_put_uint(json, "bytes", list[i].stats.bytes);
        peal_json_put_uint(json, "messages", list[i].stats.messages);
        peal_json_put_uint(json, "busy_ps", list[i].stats.busy);
        peal_json_put_real(json, "busy", list[i].share);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    free(list);
}

void peal_sim_report_json(const struct peal_sim_job *job, struct peal_json *json)
{
    const struct peal_sim_stats *s = peal_sim_stats(job->sim);
    const struct peal_sim_deadlock *deadlock = peal_sim_deadlock(job->sim);
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, s->hash);
    peal_json_object(json);
    peal_json_put_string(json, "kernel", peal_plan_string(job->plan, job->plan->kernel));
    peal_json_put_string(json, "machine", job->machine->name);
    peal_json_put_uint(json, "ranks", job->plan->nranks);
    peal_json_put_uint(json, "launches", job->launches);
    peal_json_put_uint(json, "segments", job->segments);
    peal_json_put_real(json, "bytes", job->bound.bytes);
    peal_json_put_bool(json, "deadlock", deadlock != NULL);
    peal_json_put_uint(json, "time_ps", s->time);
    /* An unknown value is null, like everything that is not finite. */
    peal_json_put_real(json, "bound_ps", job->bound.time > 0 ? job->bound.time : NAN);
    peal_json_put_real(json, "closed_form_ps", job->bound.closed > 0 ? job->bound.closed : NAN);
    peal_json_put_uint(json, "events", s->events);
    peal_json_put_uint(json, "transfers", s->transfers);
    peal_json_put_uint(json, "messages", s->messages);
    peal_json_put_uint(json, "moves", s->moves);
    peal_json_put_uint(json, "bytes_moved", s->bytes);
    peal_json_put_uint(json, "polls", s->polls);
    peal_json_put_uint(json, "credit_stalls", s->credit_stalls);
    peal_json_put_uint(json, "slots_used", job->slots_used);
    peal_json_put_uint(json, "slots_needed", job->slots_needed);
    peal_json_put_string(json, "trace_hash", hash);
    const char *data = "wrong";
    if (job->check == PEAL_CHECK_RIGHT)
        data = "right";
    if (job->check == PEAL_CHECK_NONE)
        data = "not checked";
    peal_json_put_string(json, "data", data);
    snprintf(hash, sizeof hash, "%016" PRIx64, job->data_hash);
    if (job->has_data)
        peal_json_put_string(json, "data_hash", hash);
    else
        peal_json_put_real(json, "data_hash", NAN);
    peal_json_put_object(json, "critical_path_ps");
    for (int i = 0; i < PEAL_CAUSE_COUNT; i++)
        peal_json_put_uint(json, peal_sim_cause_name((enum peal_sim_cause)i), s->causes[i]);
    peal_json_object_end(json);
    json_ranks(job, json);
    json_links(job, json);
    if (deadlock) {
        struct peal_text text = {0};
        peal_sim_deadlock_print(job->sim, &text);
        peal_sim_advice(job, &text);
        peal_json_put_string(json, "deadlock_report", peal_text_get(&text));
        peal_text_release(&text);
    }
    peal_json_object_end(json);
}
