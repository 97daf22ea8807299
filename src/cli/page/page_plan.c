/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a page that comes from its plan; see page_plan.h. */
#include "cli/page/page_plan.h"

#include "lang/lang.h"
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A source that the page has, or a built-in text, which is added. */
static uint32_t find_source(struct peal_page *page, const char *name)
{
    for (uint32_t i = 0; i < page->sources.len; i++)
        if (strcmp(peal_page_get(page, page->sources.at[i].name), name) == 0)
            return i;
    for (size_t i = 0; i < peal_library_text_count; i++) {
        const struct peal_source *text = &peal_library_texts[i];
        if (strcmp(text->name, name) == 0)
            return peal_page_source(page, name, text->text, text->len);
    }
    return PEAL_PAGE_NONE;
}

/* Positions may refer to callers later in the table, so places are numbered first: position i
 * becomes place first + i. */
static void add_places(struct peal_page_plan *p)
{
    const struct peal_plan *plan = p->plan;
    uint32_t first = (uint32_t)p->page->places.len;
    for (uint64_t i = 0; i < plan->positions.count; i++) {
        const struct peal_position *at = &peal_plan_positions(plan)[i];
        struct peal_page_place place = {
            .source = find_source(p->page, peal_plan_string(plan, at->source)),
            .line = at->line,
            .col = at->col,
            .len = at->len,
            .via = at->via == PEAL_NONE ? PEAL_PAGE_NONE : first + at->via};
        p->places[i] = peal_page_place(p->page, place);
    }
}

void peal_page_plan_init(struct peal_page_plan *p, struct peal_page *page,
                         const struct peal_plan *plan)
{
    *p = (struct peal_page_plan){.page = page, .plan = plan};
    p->places = calloc(plan->positions.count + 1, sizeof *p->places);
    p->labels = calloc(plan->ops.count + 1, sizeof *p->labels);
    p->tracks = calloc(plan->lanes.count + 1, sizeof *p->tracks);
    if (!p->places || !p->labels || !p->tracks) {
        page->failed = true;
        return;
    }
    add_places(p);
}

void peal_page_plan_release(struct peal_page_plan *p)
{
    free(p->places);
    free(p->labels);
    free(p->tracks);
    *p = (struct peal_page_plan){0};
}

static uint32_t lane_number(const struct peal_plan *plan, uint32_t rank, uint32_t lane)
{
    return (uint32_t)(peal_plan_lane(plan, rank, lane) - peal_plan_lanes(plan));
}

void peal_page_plan_tracks(struct peal_page_plan *p)
{
    char name[48];
    if (p->page->failed)
        return;
    for (uint32_t rank = p->plan->rank_first; rank < p->plan->rank_first + p->plan->rank_count;
         rank++) {
        uint32_t lanes = peal_plan_lane_count(p->plan, rank);
        for (uint32_t lane = 0; lane < lanes; lane++) {
            if (lanes > 1)
                snprintf(name, sizeof name, "rank %u lane %u", rank, lane);
            else
                snprintf(name, sizeof name, "rank %u", rank);
            p->tracks[lane_number(p->plan, rank, lane)] = peal_page_track(p->page, name, rank);
        }
    }
}

uint32_t peal_page_plan_track(const struct peal_page_plan *p, uint32_t rank, uint32_t lane)
{
    if (p->tracks)
        return p->tracks[lane_number(p->plan, rank, lane)];
    return 0;
}

uint32_t peal_page_plan_label(struct peal_page_plan *p, uint32_t rank, uint64_t op)
{
    if (p->page->failed)
        return 0;
    if (!p->labels[op]) {
        struct peal_text text = {0};
        peal_plan_dump_op(p->plan, rank, &peal_plan_ops(p->plan)[op], &text);
        p->labels[op] = peal_page_text(p->page, peal_text_get(&text));
        p->page->failed = p->page->failed || text.failed;
        peal_text_release(&text);
    }
    return p->labels[op];
}

uint32_t peal_page_plan_place(const struct peal_page_plan *p, uint64_t op)
{
    uint32_t pos = peal_plan_ops(p->plan)[op].pos;
    if (pos == PEAL_NONE || !p->places)
        return 0;
    return p->places[pos];
}

enum peal_page_category peal_page_op_category(const struct peal_op *op)
{
    if (peal_op_accumulates(op))
        return PEAL_BAR_ACCUMULATE;
    if (peal_op_is_data(op))
        return peal_op_is_copy(op) ? PEAL_BAR_COPY : PEAL_BAR_COMPUTE;
    if (peal_op_is_notify(op))
        return PEAL_BAR_NOTIFY;
    if (peal_op_is_wait(op))
        return PEAL_BAR_WAIT;
    if (peal_op_sends(op))
        return PEAL_BAR_SEND;
    return peal_op_receives(op) ? PEAL_BAR_RECV : PEAL_BAR_OTHER;
}

uint64_t peal_page_op_bytes(const struct peal_plan *plan, const struct peal_op *op)
{
    (void)plan;
    if (!peal_op_is_data(op) && !peal_op_has_message(op))
        return 0;
    return op->mem.count * op->mem.rows * peal_dtype_size((enum peal_dtype)op->dtype);
}

void peal_page_plan_facts(struct peal_page *page, const struct peal_plan *plan)
{
    struct peal_text text = {0};
    peal_text_printf(&text, "%s", peal_dtype_name((enum peal_dtype)plan->dtype));
    if (plan->reduce != PEAL_NONE)
        peal_text_printf(&text, ", %s", peal_plan_reduce_name(plan));
    peal_page_fact(page, "type", "%s", peal_text_get(&text));
    peal_text_release(&text);
    for (uint64_t i = 0; i < plan->params.count; i++) {
        const struct peal_param *param = &peal_plan_params(plan)[i];
        if (param->count == 1 && !param->is_local)
            peal_page_fact(page, peal_plan_string(plan, param->name), "%lld",
                           (long long)peal_plan_values(plan)[param->first]);
    }
}

void peal_page_plan_arrow(struct peal_page_plan *p, const struct peal_op *op,
                          struct peal_page_arrow arrow)
{
    if (peal_op_is_wait(op)) {
        arrow.label = peal_page_text(p->page, "notify");
        arrow.category = PEAL_BAR_NOTIFY;
    } else {
        arrow.label = peal_page_text(p->page, "message");
        arrow.category = PEAL_BAR_SEND;
        arrow.bytes = peal_page_op_bytes(p->plan, op);
    }
    peal_page_arrow(p->page, &arrow);
}
