/* SPDX-License-Identifier: Apache-2.0 */
/* A traced launch as a page; see page_run.h.
 *
 * Arrows are found afterwards: the notify that brought a cell to what a wait asks for, by the order
 * of their ends; the send that a recv took, by their order in the channel.
 */
#include "cli/page/page_run.h"

#include "cli/page/page_plan.h"

#include <stdlib.h>
#include <string.h>

/* A recorded notify or send: what it changed, and when it ended. */
struct event {
    uint64_t key; /* notify: rank * cells + cell; send: the channel */
    uint64_t end;
    uint64_t number; /* send: its place in program order */
    int64_t value;
    uint32_t track;
    bool sets;
};

struct events {
    struct event *at;
    size_t len, cap;
};

struct run_view {
    struct peal_page *page;
    struct peal_page_plan plan;
    const struct peal_page_rank_trace *traces;
    uint64_t start; /* ns of the first op */
    struct events notifies, sends;
};

static uint64_t to_ps(const struct run_view *v, uint64_t ns)
{
    return (ns - v->start) * 1000;
}

static void push(struct run_view *v, struct events *events, struct event event)
{
    if (!peal_vec_push(events, event))
        v->page->failed = true;
}

static int compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    if (x->number < y->number)
        return -1;
    return x->number > y->number;
}

static uint64_t cell_key(const struct peal_plan *plan, const struct peal_op *op)
{
    return (uint64_t)op->sync.rank * plan->cells + peal_op_cell(plan, op, 0);
}

static void add_op(struct run_view *v, uint32_t rank, const struct peal_op_time *entry)
{
    const struct peal_plan *plan = v->plan.plan;
    const struct peal_op *op = &peal_plan_ops(plan)[entry->op];
    uint32_t track = peal_page_plan_track(&v->plan, rank, (uint32_t)entry->lane);
    peal_page_bar(v->page,
                  &(struct peal_page_bar){.start = to_ps(v, entry->start),
                                          .end = to_ps(v, entry->end),
                                          .bytes = peal_page_op_bytes(plan, op),
                                          .track = track,
                                          .label = peal_page_plan_label(&v->plan, rank, entry->op),
                                          .place = peal_page_plan_place(&v->plan, entry->op),
                                          .category = (uint8_t)peal_page_op_category(op)});
    struct event event = {.end = entry->end, .number = entry->op, .track = track};
    if (peal_op_is_notify(op)) {
        event.key = cell_key(plan, op);
        event.value = op->sync.value;
        event.sets = op->flags & PEAL_OP_SET;
        push(v, &v->notifies, event);
    } else if (peal_op_sends(op)) {
        event.key = op->mem.channel;
        push(v, &v->sends, event);
    }
}

static const struct event *first_of(const struct events *events, uint64_t key)
{
    size_t low = 0, high = events->len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (events->at[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return events->at + low;
}

/* The notify after which the cell had the value that the wait asks for. */
static const struct event *find_notify(const struct run_view *v, const struct peal_op *op)
{
    uint64_t key = cell_key(v->plan.plan, op);
    int64_t now = 0;
    const struct event *end = v->notifies.at + v->notifies.len;
    for (const struct event *e = first_of(&v->notifies, key); e < end && e->key == key; e++) {
        now = e->sets ? e->value : now + e->value;
        if (op->flags & PEAL_OP_EQUAL ? now == op->sync.value : now >= op->sync.value)
            return e;
    }
    return NULL;
}

static void add_arrow(struct run_view *v, const struct event *from, uint32_t track, uint64_t end,
                      const struct peal_op *op)
{
    if (!from || from->track == track)
        return;
    struct peal_page_arrow arrow = {.from = to_ps(v, from->end),
                                    .to = to_ps(v, peal_size_max(end, from->end)),
                                    .from_track = from->track,
                                    .to_track = track};
    peal_page_plan_arrow(&v->plan, op, arrow);
}

static void add_arrows(struct run_view *v, uint32_t rank, uint64_t *received)
{
    const struct peal_plan *plan = v->plan.plan;
    for (uint64_t i = 0; i < v->traces[rank].len; i++) {
        const struct peal_op_time *entry = &v->traces[rank].at[i];
        const struct peal_op *op = &peal_plan_ops(plan)[entry->op];
        uint32_t track = peal_page_plan_track(&v->plan, rank, (uint32_t)entry->lane);
        if (peal_op_is_wait(op) && !op->sync.back && !(op->flags & PEAL_OP_HAS_REG)) {
            add_arrow(v, find_notify(v, op), track, entry->end, op);
        } else if (peal_op_receives(op)) {
            const struct event *e = first_of(&v->sends, op->mem.channel);
            e += received[op->mem.channel]++;
            if (e < v->sends.at + v->sends.len && e->key == op->mem.channel)
                add_arrow(v, e, track, entry->end, op);
        }
    }
}

static void add_head(struct run_view *v, const struct peal_page_run_facts *facts, uint64_t end)
{
    char time[32], bytes[32];
    const struct peal_plan *plan = v->plan.plan;
    peal_page_time((uint64_t)(facts->median_us * 1e6), time);
    if (!facts->checked)
        peal_page_verdict(v->page, PEAL_TONE_NEUTRAL, "not checked");
    else if (facts->wrong)
        peal_page_verdict(v->page, PEAL_TONE_BAD, "wrong");
    else
        peal_page_verdict(v->page, PEAL_TONE_GOOD, "right");
    peal_page_headline(v->page,
                       "%s per launch (median of %llu), %.2f GB/s; drawn is one launch more, "
                       "slowed down by the clock being read twice per op",
                       time, (unsigned long long)facts->launches,
                       facts->median_us > 0 ? (double)facts->bytes / (facts->median_us * 1e3) : 0);
    peal_page_fact(v->page, "ranks", "%u %s", plan->nranks, facts->ranks_are);
    peal_page_plan_facts(v->page, plan);
    peal_page_fact(v->page, "bytes", "%s", peal_page_bytes(facts->bytes, bytes));
    peal_page_fact(v->page, "drawn launch", "%s", peal_page_time(to_ps(v, end), time));
}

static void add_waiting(struct run_view *v)
{
    const struct peal_plan *plan = v->plan.plan;
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        uint64_t spent[PEAL_BAR_CATEGORIES] = {0};
        for (uint64_t i = 0; i < v->traces[rank].len; i++) {
            const struct peal_op_time *entry = &v->traces[rank].at[i];
            spent[peal_page_op_category(&peal_plan_ops(plan)[entry->op])] +=
                (entry->end - entry->start) * 1000;
        }
        for (int i = 0; i < PEAL_BAR_CATEGORIES; i++)
            if (spent[i])
                peal_page_stall(v->page,
                                (struct peal_page_stall){
                                    .amount = spent[i],
                                    .track = peal_page_plan_track(&v->plan, rank, 0),
                                    .cause = peal_page_text(v->page, peal_page_category_name(i))});
    }
}

void peal_page_run(struct peal_page *page, const struct peal_plan *plan,
                   const struct peal_page_rank_trace *traces,
                   const struct peal_page_run_facts *facts)
{
    struct run_view v = {.page = page, .traces = traces, .start = UINT64_MAX};
    uint64_t end = 0, ops = 0, lost = 0;
    for (uint32_t rank = 0; rank < plan->nranks; rank++)
        for (uint64_t i = 0; i < traces[rank].len; i++) {
            const struct peal_op_time *entry = &traces[rank].at[i];
            if (entry->start < v.start)
                v.start = entry->start;
            if (entry->end > end)
                end = entry->end;
            ops++;
        }
    if (!ops)
        v.start = 0;
    page->unit = PEAL_UNIT_PS;
    peal_page_plan_init(&v.plan, page, plan);
    peal_page_plan_tracks(&v.plan);
    uint64_t *received = calloc(plan->channels.count + 1, sizeof *received);
    page->failed = page->failed || !received;
    if (!page->failed) {
        add_head(&v, facts, end);
        peal_page_expect(page, ops, ops, to_ps(&v, end));
        for (uint32_t rank = 0; rank < plan->nranks; rank++)
            for (uint64_t i = 0; i < traces[rank].len; i++) {
                if (page->failed)
                    break;
                add_op(&v, rank, &traces[rank].at[i]);
            }
        if (v.notifies.len)
            qsort(v.notifies.at, v.notifies.len, sizeof *v.notifies.at, compare_events);
        if (v.sends.len)
            qsort(v.sends.at, v.sends.len, sizeof *v.sends.at, compare_events);
        for (uint32_t rank = 0; rank < plan->nranks && !page->failed; rank++) {
            add_arrows(&v, rank, received);
            lost += traces[rank].lost;
        }
        add_waiting(&v);
        if (lost)
            peal_page_note(page, "%llu ops were not recorded", (unsigned long long)lost);
    }
    free(received);
    free(v.notifies.at);
    free(v.sends.at);
    peal_page_plan_release(&v.plan);
}
