/* SPDX-License-Identifier: Apache-2.0 */
/* Depth-first search over all states.
 *
 * The state space has no cycles (positions only grow), so leaving out commuting steps needs no
 * further care. While results are compared, the order in which conflicting blocks came is part of
 * the state.
 */
#include "verify/explore/search.h"

#include "verify/explore/explore.h"
#include "verify/explore/shrink.h"

#include <stdlib.h>
#include <string.h>

struct search_frame {
    uint32_t next;  /* thread to try next */
    uint32_t alone; /* the only thread to move, or PEAL_NONE */
    struct undo undo;
};

/* --- states ---------------------------------------------------------------------------------- */

static void make_key(struct search *s)
{
    unsigned char *at = s->key;
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        uint16_t narrow = (uint16_t)s->space.at[t];
        size_t n = s->wide ? sizeof s->space.at[t] : sizeof narrow;
        memcpy(at, s->wide ? (void *)&s->space.at[t] : (void *)&narrow, n);
        at += n;
    }
    for (size_t i = 0; i < s->space.stored.len; i++, at += sizeof(int64_t))
        memcpy(at, &s->space.value[s->space.stored.at[i]], sizeof(int64_t));
    at += peal_search_put_registers(s, at);
    if (s->npairs)
        memcpy(at, s->turned, s->npairs);
}

static bool is_new(struct search *s)
{
    make_key(s);
    return peal_states_add(&s->states, s->key);
}

/* A block was left (or is entered again on the way back): updates which pairs have their second
 * block first. */
static void turn_pairs(struct search *s, uint32_t block, bool left)
{
    for (uint32_t i = 0; i < s->npairs; i++) {
        uint32_t a = s->pairs[i].a;
        if (s->pairs[i].b == block &&
            s->space.at[s->space.block_thread[a]] <= s->space.block_step[a])
            s->turned[i] = left;
    }
}

static struct undo take(struct search *s, uint32_t t)
{
    uint32_t block = s->npairs ? peal_space_block(&s->space, t, s->space.at[t]) : 0;
    struct undo undo = peal_space_take(&s->space, t);
    if (block)
        turn_pairs(s, block - 1, true);
    return undo;
}

static void untake(struct search *s, struct undo undo)
{
    peal_space_untake(&s->space, undo);
    uint32_t t = undo.thread;
    uint32_t block = s->npairs ? peal_space_block(&s->space, t, s->space.at[t]) : 0;
    if (block)
        turn_pairs(s, block - 1, false);
}

/* --- reporting ------------------------------------------------------------------------------- */

/* Removes what the fault does not need. The answer says whether nothing more can be removed. */
static void shorten_path(struct search *s, struct shrink *shrink)
{
    s->path.len = peal_shrink_path(shrink, s->path.at, s->path.len);
    s->a->v.story = shrink->budget ? PEAL_STORY_MINIMAL : PEAL_STORY_AS_FOUND;
}

/* In a search for all faults, the first of each kind is enough; when both are found, the search
 * ends. */
static bool go_on(const struct search *s)
{
    return s->options->all_faults && !(s->a->v.has_race && s->a->v.has_deadlock);
}

void peal_search_report_race(struct search *s, uint32_t t, uint32_t u)
{
    s->a->v.has_race = true;
    if (s->options->all_faults && s->a->v.verdict == PEAL_REFUTED)
        return;
    peal_answer_refute(s->a, PEAL_FAULT_RACE);
    struct race race = peal_space_collision(&s->space, t, u);
    if (!s->options->no_story && !s->options->all_faults) {
        struct shrink shrink;
        if (peal_shrink_race(&shrink, &s->space, t, u))
            shorten_path(s, &shrink);
        else
            s->a->failed = true;
        peal_shrink_release(&shrink);
        race = peal_space_collision(&s->space, t, u);
        if (race.a == PEAL_NONE) {
            peal_answer_give_up(s->a, "two threads meet at accesses that conflict, but none of "
                                      "these does: please report this kernel");
            return;
        }
        peal_story_schedule(s->p, &(struct schedule){.thread = s->path.at, .count = s->path.len},
                            &race, NULL, s->a);
    }
    s->a->collision = race;
    if (race.a != PEAL_NONE)
        peal_explore_report_barrier(s->p, &race, s->a);
}

void peal_search_report_deadlock(struct search *s)
{
    s->a->v.has_deadlock = true;
    if (s->options->all_faults && s->a->v.verdict == PEAL_REFUTED)
        return;
    peal_answer_refute(s->a, PEAL_FAULT_DEADLOCK);
    if (!s->options->no_story && !s->options->all_faults) {
        struct shrink shrink;
        if (peal_shrink_deadlock(&shrink, &s->space)) {
            shorten_path(s, &shrink);
            peal_story_schedule(s->p,
                                &(struct schedule){.thread = s->path.at, .count = s->path.len},
                                NULL, shrink.core, s->a);
        } else {
            s->a->failed = true;
        }
        peal_shrink_release(&shrink);
    }
}

/* Does the schedule end with a late write of the answer's cell? */
static bool ends_late(void *context, const uint32_t *path, size_t len)
{
    struct search *s = context;
    peal_space_reset(&s->space);
    for (size_t i = 0; i < len; i++) {
        uint32_t t = path[i];
        if (!peal_space_enabled(&s->space, t))
            return false;
        const struct step *step = peal_program_step(s->p, t, s->space.at[t]);
        bool late = peal_program_comes_late(s->p, step, s->space.value[step->cell]);
        if (late)
            return i + 1 == len && step->cell == s->a->cell;
        (void)peal_space_take(&s->space, t);
    }
    return false;
}

bool peal_search_report_late(struct search *s, uint32_t t, int64_t before)
{
    const struct step *step = peal_program_step(s->p, t, s->space.at[t] - 1);
    struct shrink shrink;
    if (!peal_program_comes_late(s->p, step, before))
        return false;
    if (s->a->v.verdict == PEAL_REFUTED)
        return true;
    peal_answer_refute(s->a, PEAL_FAULT_SIGNAL);
    s->a->cell = step->cell;
    if (s->options->no_story)
        return true;
    if (peal_shrink_any(&shrink, &s->space, ends_late, s, 1))
        shorten_path(s, &shrink);
    else
        s->a->failed = true;
    peal_shrink_release(&shrink);
    peal_story_schedule(s->p, &(struct schedule){.thread = s->path.at, .count = s->path.len}, NULL,
                        NULL, s->a);
    return true;
}

bool peal_search_starts_badly(struct search *s)
{
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        uint32_t u = peal_space_race(&s->space, t);
        if (u != PEAL_NONE) {
            peal_search_report_race(s, t, u);
            return !go_on(s);
        }
    }
    return false;
}

/* --- all states ------------------------------------------------------------------------------ */

static uint32_t find_alone(const struct search *s)
{
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        if (peal_space_enabled(&s->space, t) && peal_space_alone(&s->space, t))
            return t;
    }
    return PEAL_NONE;
}

static uint32_t next_thread(const struct search *s, struct search_frame *f)
{
    if (f->alone != PEAL_NONE) {
        uint32_t t = f->next == 0 ? f->alone : PEAL_NONE;
        f->next = 1;
        return t;
    }
    while (f->next < s->p->nthreads) {
        if (peal_space_enabled(&s->space, f->next++))
            return f->next - 1;
    }
    return PEAL_NONE;
}

static bool any_enabled(const struct search *s)
{
    for (uint32_t t = 0; t < s->p->nthreads; t++) {
        if (peal_space_enabled(&s->space, t))
            return true;
    }
    return false;
}

/* Reports what is wrong in this state. True: the search ends. `t` moved last. After a write that
 * comes too late anything is possible, so that always ends the search. */
static bool look(struct search *s, uint32_t t, int64_t before)
{
    if (peal_search_report_late(s, t, before))
        return true;
    uint32_t u = peal_space_race(&s->space, t);
    bool stuck = s->space.unfinished && !any_enabled(s);
    if (u != PEAL_NONE)
        peal_search_report_race(s, t, u);
    if (stuck)
        peal_search_report_deadlock(s);
    return (u != PEAL_NONE || stuck) && !go_on(s);
}

/* True: a fault was reported, or memory ran out. */
bool peal_search_all(struct search *s)
{
    PEAL_VEC(struct search_frame) stack = {0};
    bool ended = false;
    peal_space_reset(&s->space);
    peal_states_clear(&s->states);
    memset(s->turned, 0, sizeof s->turned);
    s->path.len = 0;
    if (peal_search_starts_badly(s))
        return true;
    (void)is_new(s);
    if (s->space.unfinished && !any_enabled(s)) {
        peal_search_report_deadlock(s);
        ended = !go_on(s);
    }
    if (!ended && !peal_vec_push(&stack, ((struct search_frame){.alone = find_alone(s)})))
        ended = s->no_memory = true;
    while (!ended && !s->states.full && stack.len) {
        struct search_frame *f = &stack.at[stack.len - 1];
        uint32_t t = next_thread(s, f);
        if (t == PEAL_NONE) {
            stack.len--;
            if (stack.len) {
                untake(s, stack.at[stack.len - 1].undo);
                s->path.len--;
            }
            continue;
        }
        f->undo = take(s, t);
        if (!peal_vec_push(&s->path, t))
            ended = s->no_memory = true;
        else if (look(s, t, f->undo.value))
            ended = true;
        else if (!is_new(s)) {
            untake(s, f->undo);
            s->path.len--;
        } else if (s->compares && !s->space.unfinished && peal_search_is_new_end(s) &&
                   peal_result_check_end(s))
            ended = true;
        else if (!peal_vec_push(&stack, ((struct search_frame){.alone = find_alone(s)})))
            ended = s->no_memory = true;
    }
    s->visited += s->states.count;
    peal_vec_release(&stack);
    return ended || s->states.full;
}

/* Says what stopped the search. */
void peal_search_give_up(struct search *s)
{
    if (s->a->v.verdict == PEAL_REFUTED)
        return;
    peal_answer_give_up(
        s->a,
        peal_answer_text(
            s->a, "%s; explored %llu states and found nothing, and neither did a directed search",
            s->states.count >= s->options->max_states ? "the limit of states was reached"
                                                      : "the memory limit was reached",
            (unsigned long long)s->visited));
}
