/* SPDX-License-Identifier: Apache-2.0 */
/* Is the result right in every schedule?
 *
 * The values that a schedule leaves depend only on the order in which conflicting accesses came.
 * The search notes which pairs it has seen in both orders. If there are none, every schedule leaves
 * the same values, and one is executed. Otherwise the search is done again with the order of those
 * pairs as part of the state, and for every choice of orders the values of one schedule are
 * examined. If blocks of `when` may be left out, every final state is examined as well: registers,
 * which say what was executed, are part of the state.
 */
#include "verify/explore/search.h"
#include "verify/explore/shrink.h"
#include "verify/result/symbolic.h"

static const char too_many_orders[] =
    "accesses come in too many orders for all results to be compared";

/* Executes this part of a schedule, and nothing more, in `to`. */
static void execute(struct search *s, const uint32_t *threads, size_t n, struct answer *to)
{
    struct schedule schedule = {.thread = (uint32_t *)threads, .count = n};
    struct symbolic_run run = {
        .schedule = &schedule, .part = true, .max_bytes = s->options->max_bytes};
    to->v.verdict = PEAL_PROVED;
    peal_symbolic_check(s->p, &run, to);
}

/* Does the schedule leave a wrong result? It is the beginning of one that may continue in any
 * way. */
static bool goes_wrong(void *context, const uint32_t *threads, size_t n)
{
    struct search *s = context;
    peal_space_reset(&s->space);
    for (size_t i = 0; i < n; i++) {
        if (!peal_space_enabled(&s->space, threads[i]))
            return false;
        (void)peal_space_take(&s->space, threads[i]);
    }
    struct answer scratch = {0};
    peal_arena_init(&scratch.arena, 0);
    execute(s, threads, n, &scratch);
    peal_arena_release(&scratch.arena);
    return scratch.v.verdict == PEAL_REFUTED && scratch.v.fault == s->a->v.fault;
}

/* Removes what the fault does not need, and reports the rest. `some`: other schedules give a right
 * result. */
static void report_wrong(struct search *s, bool some)
{
    enum { REPLAYS = 50 };
    struct peal_verification *v = &s->a->v;
    struct shrink shrink;
    if (!goes_wrong(s, s->path.at, s->path.len))
        return; /* another fault comes first: the existing report must do */
    if (peal_shrink_any(&shrink, &s->space, goes_wrong, s, REPLAYS)) {
        s->path.len = peal_shrink_path(&shrink, s->path.at, s->path.len);
        v->story = shrink.budget ? PEAL_STORY_MINIMAL : PEAL_STORY_AS_FOUND;
        execute(s, s->path.at, s->path.len, s->a);
        const char *why = v->why;
        peal_story_schedule(s->p, &(struct schedule){.thread = s->path.at, .count = s->path.len},
                            NULL, NULL, s->a);
        v->why = some ? peal_answer_text(s->a, "in some schedules, %s", why) : why;
    } else {
        s->a->failed = true;
    }
    peal_shrink_release(&shrink);
}

/* Makes any complete schedule the path. False: out of memory. */
static bool follow_any(struct search *s)
{
    s->path.len = 0;
    peal_space_reset(&s->space);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t t = 0; t < s->p->nthreads; t++) {
            while (peal_space_enabled(&s->space, t)) {
                (void)peal_space_take(&s->space, t);
                moved = true;
                if (!peal_vec_push(&s->path, t))
                    return false;
            }
        }
    }
    return true;
}

bool peal_result_is_wrong(struct search *s)
{
    struct schedule schedule = {.thread = s->path.at, .count = s->path.len};
    struct symbolic_run run = {
        .unordered = s->unordered, .schedule = &schedule, .max_bytes = s->options->max_bytes};
    struct answer scratch = {.v.verdict = PEAL_PROVED};
    peal_arena_init(&scratch.arena, 0);
    peal_symbolic_check(s->p, &run, &scratch);
    bool wrong = scratch.v.verdict == PEAL_REFUTED;
    peal_arena_release(&scratch.arena);
    if (!wrong)
        return false;
    s->a->v.verdict = PEAL_PROVED;
    peal_symbolic_check(s->p, &run, s->a);
    if (!s->options->no_story)
        report_wrong(s, true);
    return true;
}

/* Checks the result of the schedule that led here. True: the search ends. */
bool peal_result_check_end(struct search *s)
{
    struct peal_verification *v = &s->a->v;
    struct peal_digest order = v->order;
    bool same = v->same_order;
    enum peal_bits bits = v->bits;
    struct schedule schedule = {.thread = s->path.at, .count = s->path.len};
    if (++s->results > MAX_RESULTS) {
        peal_answer_give_up(s->a, too_many_orders);
        return true;
    }
    struct symbolic_run run = {
        .unordered = s->unordered, .schedule = &schedule, .max_bytes = s->options->max_bytes};
    v->verdict = PEAL_PROVED;
    peal_symbolic_check(s->p, &run, s->a);
    if (v->verdict == PEAL_REFUTED && !s->options->no_story)
        report_wrong(s, true);
    if (v->verdict != PEAL_PROVED)
        return true;
    /* The bits agree if every schedule has them in the same order. */
    if (s->results > 1 && v->bits != PEAL_BITS_UNKNOWN &&
        (bits == PEAL_BITS_DIFFERENT || memcmp(&order, &v->order, sizeof order) != 0 ||
         same != v->same_order)) {
        v->bits = PEAL_BITS_DIFFERENT;
        v->bits_why = "the order of the reduction depends on the schedule";
    }
    return false;
}

/* No schedule stops or races. If all of them order conflicting accesses alike, one gives the result
 * of all; otherwise the search is done again with the order as part of the state, and every final
 * state is examined. True: right. */
bool peal_result_check_all(struct search *s)
{
    struct peal_verification *v = &s->a->v;
    struct symbolic_run run = {.unordered = s->unordered, .max_bytes = s->options->max_bytes};
    s->npairs = 0;
    s->results = 0;
    if (!peal_space_turned(&s->space, MAX_PAIRS, s->pairs, &s->npairs)) {
        s->npairs = 0;
        peal_answer_give_up(s->a, too_many_orders);
        return false;
    }
    v->verdict = PEAL_PROVED;
    if (s->npairs == 0 && !s->p->guards) {
        peal_symbolic_check(s->p, &run, s->a);
        if (v->verdict == PEAL_REFUTED && !s->options->no_story && follow_any(s))
            report_wrong(s, false);
        return v->verdict == PEAL_PROVED;
    }
    s->states.key_bytes += s->npairs;
    peal_states_release(&s->states);
    peal_states_init(&s->states, s->states.key_bytes, s->options->max_states,
                     s->options->max_bytes);
    s->compares = true;
    peal_states_init(&s->ends, s->space.first_reg[s->p->nthreads] + s->npairs, MAX_RESULTS,
                     s->options->max_bytes);
    bool ended = peal_search_all(s);
    s->compares = false;
    peal_states_release(&s->ends);
    if (s->states.full || s->no_memory) {
        v->verdict = PEAL_PROVED;
        peal_search_give_up(s);
        v->why = "no deadlock and no race, but the result depends on the order of accesses, and a "
                 "limit was reached before all orders were seen";
    }
    size_t key_bytes = s->states.key_bytes - s->npairs;
    peal_states_release(&s->states);
    peal_states_init(&s->states, key_bytes, s->options->max_states, s->options->max_bytes);
    s->npairs = 0;
    return !ended && v->verdict == PEAL_PROVED;
}
