/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the verifier as a page; see page_verify.h.
 *
 * A counterexample is shown step by step, in the order of the verdict's steps, with what memory
 * holds before and after each (page_contents.h). A proof is shown as one schedule of the plan
 * (page_schedule.h). The verdict's steps are data: no code here parses explanations.
 */
#include "cli/page/page_verify.h"

#include "cli/page/page_contents.h"
#include "cli/page/page_plan.h"
#include "cli/page/page_schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int badness[] = {[PEAL_PROVED] = 0, [PEAL_REFUTED] = 2, [PEAL_UNDECIDED] = 1};

/* The cells that a counterexample names, by their text: "ready[1]@2". */
struct cells {
    struct {
        const char *name;
        uint32_t cell; /* the page's */
    } * at;
    size_t len, cap;
};

/* How far a lane has got. */
struct progress {
    uint32_t launch, op;
};

struct counterexample {
    struct peal_page *page;
    struct peal_page_plan plan;
    const struct peal_verification *v;
    struct peal_contents *contents;
    struct cells cells;
    struct progress *lanes; /* by the plan's lane number */
};

static const struct peal_op *op_of(const struct counterexample *s,
                                   const struct peal_verify_step *step)
{
    if (step->op == PEAL_NONE || !s->plan.plan)
        return NULL;
    const struct peal_lane *lane = peal_plan_lane(s->plan.plan, step->rank, step->lane);
    return peal_plan_ops(s->plan.plan) + lane->first_op + step->op;
}

/* Without a plan (a sequence of several) there is one track per rank. */
static uint32_t track_of(const struct counterexample *s, const struct peal_verify_step *step)
{
    if (s->plan.plan)
        return peal_page_plan_track(&s->plan, step->rank, step->lane);
    return step->rank;
}

static enum peal_page_category category_of(const struct counterexample *s,
                                           const struct peal_verify_step *step)
{
    static const struct {
        const char *kind;
        enum peal_page_category category;
    } kinds[] = {{"notify", PEAL_BAR_NOTIFY}, {"wait", PEAL_BAR_WAIT},
                 {"send", PEAL_BAR_SEND},     {"recv", PEAL_BAR_RECV},
                 {"copy", PEAL_BAR_COPY},     {"recv_slot", PEAL_BAR_RECV}};
    const struct peal_op *op = op_of(s, step);
    if (op)
        return peal_page_op_category(op);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (step->kind && strcmp(step->kind, kinds[i].kind) == 0)
            return kinds[i].category;
    }
    if (step->noperands)
        return PEAL_BAR_COPY;
    return PEAL_BAR_OTHER;
}

/* The caller's own accesses have no op, but may have a position. */
static uint32_t place_of(const struct counterexample *s, const struct peal_verify_step *step)
{
    const struct peal_op *op = op_of(s, step);
    if (op)
        return peal_page_plan_place(&s->plan, (uint64_t)(op - peal_plan_ops(s->plan.plan)));
    for (uint32_t i = 0; i < s->page->sources.len; i++)
        if (step->place.line &&
            strcmp(peal_page_get(s->page, s->page->sources.at[i].name), step->place.file) == 0)
            return peal_page_place(s->page,
                                   (struct peal_page_place){i, step->place.line, step->place.col,
                                                            step->place.len, PEAL_PAGE_NONE});
    return 0;
}

static uint32_t find_cell(const struct counterexample *s, const char *name)
{
    for (size_t i = 0; i < s->cells.len; i++)
        if (strcmp(s->cells.at[i].name, name) == 0)
            return s->cells.at[i].cell;
    return PEAL_PAGE_NONE;
}

/* A cell belongs to the rank after its '@', or to the rank that names it without one. */
static void add_cell(struct counterexample *s, const struct peal_verify_step *step)
{
    if (!step->cell || find_cell(s, step->cell) != PEAL_PAGE_NONE)
        return;
    const char *at = strrchr(step->cell, '@');
    uint32_t rank = at ? (uint32_t)strtoul(at + 1, NULL, 10) : step->rank;
    char name[128], value[48];
    snprintf(name, sizeof name, "%.*s", at ? (int)(at - step->cell) : 100, step->cell);
    snprintf(value, sizeof value, "%s", peal_verify_cell_words(step->before).text);
    if (s->cells.len == s->cells.cap && !peal_vec_grow((void **)&s->cells.at, &s->cells.cap,
                                                       s->cells.len, 1, sizeof *s->cells.at)) {
        s->page->failed = true;
        return;
    }
    s->cells.at[s->cells.len].name = step->cell;
    s->cells.at[s->cells.len++].cell = peal_page_cell(s->page, rank, name, value);
}

static uint32_t step_detail(const struct counterexample *s, const struct peal_verify_step *step)
{
    struct peal_text text = {0};
    if (step->cell && step->before != step->after)
        peal_text_printf(&text, "%s: %s -> %s", step->cell,
                         peal_verify_cell_words(step->before).text,
                         peal_verify_cell_words(step->after).text);
    else if (step->cell)
        peal_text_printf(&text, "%s is %s", step->cell, peal_verify_cell_words(step->before).text);
    if (step->blocked)
        peal_text_printf(&text, "%swaits for ever", text.len ? "; " : "");
    if (step->collides)
        peal_text_printf(&text, "%scollides", text.len ? "; " : "");
    uint32_t index = peal_page_text(s->page, peal_text_get(&text));
    peal_text_release(&text);
    return index;
}

/* A counterexample leaves out what does not matter. Everything before a step in program order has
 * nevertheless happened: up to `op` of `launch` in this lane, and all of earlier launches in all
 * lanes. */
static void catch_up_lane(struct counterexample *s, uint32_t rank, uint32_t lane, uint32_t launch,
                          uint32_t op)
{
    const struct peal_plan *plan = s->plan.plan;
    const struct peal_lane *from = peal_plan_lane(plan, rank, lane);
    struct progress *at = &s->lanes[from - peal_plan_lanes(plan)];
    while (at->launch < launch || (at->launch == launch && at->op < op)) {
        if (at->op < from->ops)
            peal_contents_skip(s->contents, rank, at->launch,
                               peal_plan_ops(plan) + from->first_op + at->op++);
        if (at->op >= from->ops && at->launch < launch)
            *at = (struct progress){at->launch + 1, 0};
        else if (at->op >= from->ops)
            break;
    }
}

static void catch_up(struct counterexample *s, const struct peal_verify_step *step)
{
    for (uint32_t lane = 0; lane < peal_plan_lane_count(s->plan.plan, step->rank); lane++)
        catch_up_lane(s, step->rank, lane, step->launch,
                      lane == step->lane && step->op != PEAL_NONE ? step->op : 0);
}

static void pass_step(struct counterexample *s, const struct peal_verify_step *step)
{
    const struct peal_lane *lane = peal_plan_lane(s->plan.plan, step->rank, step->lane);
    if (step->op != PEAL_NONE)
        s->lanes[lane - peal_plan_lanes(s->plan.plan)].op = step->op + 1;
}

/* The number of memories if there is none of this rank and name. */
static uint32_t find_memory(const struct peal_page *page, uint32_t rank, const char *name)
{
    uint32_t i = 0;
    for (; i < page->memories.len; i++) {
        const struct peal_page_memory *memory = &page->memories.at[i];
        if (memory->rank == rank && strcmp(peal_page_get(page, memory->name), name) == 0)
            break;
    }
    return i;
}

/* Without a plan only the bytes that collide are known: these are shown. */
static void show_collision(struct counterexample *s, uint32_t step)
{
    if (s->plan.plan)
        return;
    for (uint32_t k = 0; k < s->v->naccesses; k++) {
        const struct peal_verify_access *a = &s->v->accesses_at[k];
        uint64_t end = a->first_byte + a->bytes;
        if (a->step != step || !a->buf)
            continue;
        uint32_t memory = find_memory(s->page, a->rank, a->buf);
        if (memory == s->page->memories.len)
            peal_page_memory(s->page, a->rank, a->buf, end,
                             a->elements ? (uint32_t)(a->bytes / a->elements) : 1);
        if (s->page->failed)
            return;
        if (end > s->page->memories.at[memory].bytes)
            s->page->memories.at[memory].bytes = end;
        peal_page_access(s->page,
                         (struct peal_page_access){memory, a->first_byte, end,
                                                   a->writes ? PEAL_ACCESS_WRITE : PEAL_ACCESS_READ,
                                                   PEAL_BAR_BAD});
    }
}

static void add_step(struct counterexample *s, uint32_t i)
{
    const struct peal_verify_step *step = &s->v->steps[i];
    const struct peal_op *op = op_of(s, step);
    uint8_t flags = 0;
    if (step->collides)
        flags |= PEAL_BAR_BAD;
    if (step->blocked)
        flags |= PEAL_BAR_BAD | PEAL_BAR_OPEN;
    peal_page_step(s->page, &(struct peal_page_step){.track = track_of(s, step),
                                                     .rank = step->rank,
                                                     .lane = step->lane,
                                                     .launch = step->launch,
                                                     .label = peal_page_text(s->page, step->text),
                                                     .detail = step_detail(s, step),
                                                     .place = place_of(s, step),
                                                     .category = (uint8_t)category_of(s, step),
                                                     .flags = flags});
    struct peal_contents_mark marks[2];
    uint32_t nmarks = 0;
    for (uint32_t k = 0; k < s->v->naccesses; k++) {
        const struct peal_verify_access *a = &s->v->accesses_at[k];
        if (a->step == i && a->buf)
            marks[nmarks++] =
                (struct peal_contents_mark){a->buf, a->rank, a->first_byte, a->bytes, a->writes};
    }
    if (s->contents) {
        catch_up(s, step);
        if (!step->blocked)
            pass_step(s, step);
    }
    show_collision(s, i);
    if (op && !step->blocked)
        peal_contents_step(s->contents, step->rank, step->launch, op, marks, nmarks);
    if (step->cell && step->before != step->after)
        peal_page_change_cell(s->page, find_cell(s, step->cell), step->after);
}

static void add_arrow(struct counterexample *s, uint32_t from, uint32_t to, const char *label,
                      uint8_t flags, enum peal_page_category category)
{
    const struct peal_verify_step *a = &s->v->steps[from], *b = &s->v->steps[to];
    peal_page_arrow(s->page, &(struct peal_page_arrow){.from = from + 1,
                                                       .to = to > from ? to : from + 1,
                                                       .from_track = track_of(s, a),
                                                       .to_track = track_of(s, b),
                                                       .label = peal_page_text(s->page, label),
                                                       .category = (uint8_t)category,
                                                       .flags = flags});
}

static void add_steps(struct counterexample *s)
{
    for (uint32_t i = 0; i < s->v->nsteps; i++) {
        const struct peal_op *op = op_of(s, &s->v->steps[i]);
        add_cell(s, &s->v->steps[i]);
        if (op)
            peal_contents_touch(s->contents, op);
    }
    peal_contents_start(s->contents);
    for (uint32_t i = 0; i < s->v->nsteps; i++)
        add_step(s, i);
    uint32_t shown = (uint32_t)peal_size_min(s->v->nsteps, PEAL_PAGE_STEPS);
    for (uint32_t i = 0; i < shown; i++) {
        const struct peal_verify_step *step = &s->v->steps[i];
        if (step->waits_for == PEAL_NONE || step->waits_for >= i)
            continue;
        if (step->cell)
            add_arrow(s, step->waits_for, i, step->cell, 0, PEAL_BAR_NOTIFY);
        else
            add_arrow(s, step->waits_for, i, "message", 0, PEAL_BAR_SEND);
    }
    if (s->v->naccesses == 2) {
        uint32_t a = s->v->accesses_at[0].step, b = s->v->accesses_at[1].step;
        if (a != b && a < s->v->nsteps && b < s->v->nsteps)
            add_arrow(s, (uint32_t)peal_size_min(a, b), (uint32_t)peal_size_max(a, b),
                      "nothing orders these two", PEAL_BAR_BAD, PEAL_BAR_OTHER);
    }
}

static void add_waits(struct peal_page *page, const struct peal_verification *v)
{
    struct peal_report_table *table = peal_report_table_new();
    static const char *const titles[] = {"rank", "waits for", "is", "could be notified by", ""};
    for (size_t i = 0; i < 5; i++)
        peal_report_table_column(table, titles[i], i == 0 || i == 2 ? PEAL_ALIGN_RIGHT : 0);
    for (uint32_t i = 0; i < v->nwaits; i++) {
        const struct peal_verify_wait *w = &v->waits[i];
        struct peal_text who = {0};
        for (uint32_t k = 0; k < w->nnotifiers; k++)
            peal_text_printf(&who, "%srank %u", k ? ", " : "", w->notifiers[k]);
        peal_report_table_cell(table, "%u", w->rank);
        peal_report_table_cell(table, "%s %s %s", w->cell, w->relation,
                               peal_verify_cell_words(w->expected).text);
        peal_report_table_cell(table, "%s", peal_verify_cell_words(w->actual).text);
        peal_report_table_cell(table, "%s", w->nnotifiers ? peal_text_get(&who) : "no rank");
        peal_report_table_cell(table, "%s", w->in_cycle ? "in the cycle" : "");
        peal_text_release(&who);
    }
    peal_page_table(page, "Who waits for whom", table);
}

static void add_wrong(struct peal_page *page, const struct peal_verify_wrong *wrong)
{
    struct peal_report_table *table = peal_report_table_new();
    peal_report_table_column(table, "", PEAL_ALIGN_LEFT);
    peal_report_table_column(table, "", PEAL_ALIGN_LEFT);
    peal_report_table_cell(table, "where");
    peal_report_table_cell(table, "%s@%u, elements %" PRIu64 " .. %" PRIu64 ", launch %u",
                           wrong->buf, wrong->rank, wrong->first_element,
                           wrong->first_element + wrong->elements, wrong->launch);
    peal_report_table_cell(table, "expected");
    peal_report_table_cell(table, "%s", wrong->expected);
    peal_report_table_cell(table, "obtained");
    peal_report_table_cell(table, "%s", wrong->obtained);
    peal_page_table(page, "The wrong result", table);
}

static void add_advice(struct peal_page *page, const struct peal_verification *v)
{
    struct peal_report_table *table = peal_report_table_new();
    peal_report_table_column(table, "", PEAL_ALIGN_LEFT);
    peal_report_table_column(table, "what", PEAL_ALIGN_LEFT);
    for (uint32_t i = 0; i < v->nadvice; i++) {
        peal_report_table_cell(table, "%s", v->advice[i].fixes ? "would fix it" : "not needed");
        peal_report_table_cell(table, "%s", v->advice[i].text);
    }
    peal_page_table(page, "Advice", table);
}

static void add_answers(struct peal_page *page, const struct peal_page_answer *answers,
                        size_t count)
{
    static const struct {
        const char *title;
        enum peal_align align;
    } columns[] = {
        {"ranks", PEAL_ALIGN_RIGHT},    {"count", PEAL_ALIGN_RIGHT}, {"verdict", PEAL_ALIGN_LEFT},
        {"fault", PEAL_ALIGN_LEFT},     {"reuse", PEAL_ALIGN_LEFT},  {"bits", PEAL_ALIGN_LEFT},
        {"launches", PEAL_ALIGN_RIGHT}, {"ops", PEAL_ALIGN_RIGHT},   {"ms", PEAL_ALIGN_RIGHT}};
    static const char *const bits[] = {"", "same on all ranks", "differ between ranks"};
    struct peal_report_table *table = peal_report_table_new();
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        peal_report_table_column(table, columns[i].title, columns[i].align);
    for (size_t i = 0; i < count; i++) {
        const struct peal_verification *v = answers[i].verification;
        peal_report_table_cell(table, "%u", v->nranks);
        if (answers[i].sequence)
            peal_report_table_cell(table, "%s", answers[i].sequence);
        else
            peal_report_table_cell(table, "%" PRIu64, answers[i].count);
        peal_report_table_cell(table, "%s", peal_outcome_name(v->verdict));
        peal_report_table_cell(table, "%s",
                               v->verdict == PEAL_REFUTED ? peal_fault_name(v->fault) : "");
        peal_report_table_cell(table, "%s",
                               v->verdict == PEAL_PROVED ? peal_reuse_name(v->reuse) : "");
        peal_report_table_cell(table, "%s", v->verdict == PEAL_PROVED ? bits[v->bits] : "");
        peal_report_table_cell(table, "%u", v->launches);
        peal_report_table_cell(table, "%" PRIu64, v->ops);
        peal_report_table_cell(table, "%.2f", v->milliseconds);
    }
    peal_page_table(page, "All answers", table);
}

/* A number of ranks counts once, with its worst verdict. */
static bool is_worst(const struct peal_page_answer *answers, size_t count, size_t at)
{
    const struct peal_verification *v = answers[at].verification;
    for (size_t i = 0; i < count; i++) {
        const struct peal_verification *other = answers[i].verification;
        if (other->nranks == v->nranks && badness[other->verdict] > badness[v->verdict])
            return false;
    }
    return true;
}

/* "proved 2..4 ranks": one fact per verdict. */
static void add_summary(struct peal_page *page, const struct peal_page_answer *answers,
                        size_t count)
{
    for (int verdict = PEAL_PROVED; verdict <= PEAL_UNDECIDED; verdict++) {
        struct peal_text text = {0};
        uint32_t last = 0, run = 0; /* consecutive rank numbers become a range */
        for (size_t i = 0; i < count; i++) {
            const struct peal_verification *v = answers[i].verification;
            if ((int)v->verdict != verdict || (text.len && v->nranks == last) ||
                !is_worst(answers, count, i))
                continue;
            if (text.len && v->nranks == last + 1) {
                run++;
            } else {
                if (run)
                    peal_text_printf(&text, "..%u", last);
                peal_text_printf(&text, "%s%u", text.len ? ", " : "", v->nranks);
                run = 0;
            }
            last = v->nranks;
        }
        if (run)
            peal_text_printf(&text, "..%u", last);
        if (text.len)
            peal_page_fact(page, peal_outcome_name((enum peal_outcome)verdict), "%s ranks",
                           peal_text_get(&text));
        peal_text_release(&text);
    }
}

/* The worst verdict. Among those, one with a plan; among proved ones, the one nearest to four
 * ranks, which is enough to see the pattern and few enough to read. */
static size_t choose(const struct peal_page_answer *answers, size_t count)
{
    size_t best = 0;
    long best_score = -1;
    for (size_t i = 0; i < count; i++) {
        const struct peal_verification *v = answers[i].verification;
        long away = v->nranks > 4 ? (long)v->nranks - 4 : 4 - (long)v->nranks;
        long score = badness[v->verdict] * 1000000L + (answers[i].plan ? 500000L : 0);
        if (v->verdict == PEAL_PROVED)
            score += 400000L - (away < 400000L ? away : 400000L);
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

static void put_proved(struct peal_page *page, const struct peal_verification *v)
{
    struct peal_text contract = {0};
    if (v->contract != PEAL_CONTRACT_NONE)
        peal_text_printf(&contract, "; every element is what the contract says: %s",
                         peal_contract_name(v->contract));
    if (v->promises)
        peal_text_puts(&contract, "; outputs are what the kernel ensures");
    peal_page_headline(page,
                       "no deadlock, no race, no uninitialised read over all schedules of %u "
                       "launch%s%s",
                       v->launches, v->launches == 1 ? "" : "es back to back",
                       peal_text_get(&contract));
    peal_text_release(&contract);
}

static void add_head(struct peal_page *page, const struct peal_page_answer *shown)
{
    const struct peal_verification *v = shown->verification;
    char verdict[64];
    if (v->verdict == PEAL_PROVED)
        snprintf(verdict, sizeof verdict, "proved");
    else
        snprintf(verdict, sizeof verdict, "%s at %u ranks", peal_outcome_name(v->verdict),
                 v->nranks);
    peal_page_verdict(page, peal_outcome_tone(v->verdict), verdict);
    if (v->verdict == PEAL_PROVED)
        put_proved(page, v);
    else if (v->verdict == PEAL_REFUTED)
        peal_page_headline(page, "%s: %s", peal_fault_name(v->fault), peal_text_or_empty(v->why));
    else
        peal_page_headline(page, "%s", peal_text_or_empty(v->why));
}

static void add_facts(struct peal_page *page, const struct peal_page_answer *shown)
{
    const struct peal_verification *v = shown->verification;
    if (shown->plan)
        peal_page_plan_facts(page, shown->plan);
    if (shown->sequence)
        peal_page_fact(page, "launched with", "%s", shown->sequence);
    peal_page_fact(page, "launches", "%u", v->launches);
    if (v->verdict == PEAL_PROVED)
        peal_page_fact(page, "reuse", "%s", peal_reuse_name(v->reuse));
    if (v->verdict == PEAL_REFUTED && v->nsteps)
        peal_page_fact(page, "counterexample", "%u step%s, %s", v->nsteps,
                       peal_text_plural(v->nsteps), peal_story_name(v->story));
    if (v->least_depth)
        peal_page_fact(page, "channel depth", "%u suffices", v->least_depth);
}

void peal_page_verify(struct peal_page *page, const struct peal_page_answer *answers, size_t count)
{
    const struct peal_page_answer *shown = &answers[choose(answers, count)];
    const struct peal_verification *v = shown->verification;
    struct counterexample s = {.page = page, .v = v};
    page->unit = PEAL_UNIT_STEPS;
    add_head(page, shown);
    add_summary(page, answers, count);
    add_facts(page, shown);
    if (shown->plan) {
        peal_page_plan_init(&s.plan, page, shown->plan);
        peal_page_plan_tracks(&s.plan);
        s.contents = NULL;
        if (v->nsteps)
            s.contents = peal_contents_new(page, shown->plan);
        s.lanes = calloc(shown->plan->lanes.count + 1, sizeof *s.lanes);
        page->failed = page->failed || (v->nsteps && !s.contents) || !s.lanes;
    } else if (v->nsteps) {
        char name[32];
        for (uint32_t rank = 0; rank < v->nranks; rank++) {
            snprintf(name, sizeof name, "rank %u", rank);
            peal_page_track(page, name, rank);
        }
    }
    if (v->nsteps && !page->failed)
        add_steps(&s);
    else if (shown->plan && !page->failed)
        peal_page_schedule(&s.plan);
    if (v->nwaits)
        add_waits(page, v);
    if (v->wrong.buf)
        add_wrong(page, &v->wrong);
    if (v->nadvice)
        add_advice(page, v);
    add_answers(page, answers, count);
    peal_contents_free(s.contents);
    peal_page_plan_release(&s.plan);
    free(s.lanes);
    free(s.cells.at);
}
