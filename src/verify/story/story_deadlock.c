/* SPDX-License-Identifier: Apache-2.0 */
/* Describes deadlocks: the waits that never pass, which ranks could release them, and the cycle.
 *
 * Every blocked thread points to the first thread that could still write its cell; in a deadlock
 * that one is blocked too. So each thread has at most one arrow, and following the arrows leads
 * either to a wait that no rank can release or into a cycle. The *core* that a counterexample shows
 * is one such wait, or the threads of one cycle: the one with the shortest past (choose).
 */
#include "verify/story/follow.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The ranks of threads that could still write the cell. */
static const uint32_t *notifiers(struct follower *t, uint32_t cell, uint32_t *count,
                                 uint32_t *blocked_one)
{
    const struct program *p = t->p;
    uint32_t *ranks = peal_arena_alloc(&t->a->arena, (p->nthreads + 1u) * sizeof *ranks);
    uint32_t n = 0;
    *blocked_one = PEAL_NONE;
    *count = 0;
    if (!ranks)
        return NULL;
    for (uint32_t u = 0; u < p->nthreads; u++) {
        for (uint32_t i = t->at[u]; i < p->threads[u].nsteps; i++) {
            const struct step *s = peal_program_step(p, u, i);
            if (s->cell != cell || !peal_step_writes(s))
                continue;
            if (*blocked_one == PEAL_NONE)
                *blocked_one = u;
            if (n == 0 || ranks[n - 1] != p->threads[u].rank)
                ranks[n++] = p->threads[u].rank;
            break;
        }
    }
    *count = n;
    return ranks;
}

/* Does the step that is shown change the cell? */
static bool changes(const struct peal_verify_step *s, const char *cell)
{
    return s->cell && strcmp(s->cell, cell) == 0 && s->before != s->after;
}

static bool is_related(const struct peal_verify_step *s, const char *relation)
{
    return s->relation && strcmp(s->relation, relation) == 0;
}

/* The last change of the wait's cell among the first n steps that are shown, or NULL. */
static const struct peal_verify_step *last_change(const struct follower *t, size_t n,
                                                  const struct peal_verify_wait *w)
{
    while (n-- > 0) {
        if (changes(&t->steps.at[n], w->cell))
            return &t->steps.at[n];
    }
    return NULL;
}

/* A store that set the cell back, and wiped what another rank had added or set. */
static const char *wiped(const struct follower *t, const struct peal_verify_wait *w)
{
    for (size_t i = t->steps.len; i-- > 0;) {
        const struct peal_verify_step *s = &t->steps.at[i], *lost;
        if (!changes(s, w->cell) || s->after > s->before || !is_related(s, "="))
            continue;
        lost = last_change(t, i, w);
        if (!lost || lost->rank == s->rank || lost->after <= lost->before)
            return NULL;
        return peal_answer_text(t->a,
                                "the reset of %s by rank %u at line %u wipes the notify of rank "
                                "%u%s, and rank %u waits "
                                "for ever",
                                w->cell, s->rank, s->place.line, lost->rank,
                                peal_text_if(lost->launch > s->launch, "'s next launch"), w->rank);
    }
    return NULL;
}

/* Has the cell held as much as is waited for, or less, in the steps that are shown? */
static bool was_lower(const struct follower *t, const struct peal_verify_wait *w)
{
    for (size_t i = 0; i < t->steps.len; i++) {
        if (changes(&t->steps.at[i], w->cell))
            return t->steps.at[i].before <= w->expected;
    }
    return false;
}

/* A wait for equality that a rank has passed by. */
static const char *passed_by(const struct follower *t, const struct peal_verify_wait *w)
{
    const struct peal_verify_step *last = last_change(t, t->steps.len, w);
    if (strcmp(w->relation, "==") != 0 || !last || last->rank == w->rank || !was_lower(t, w) ||
        w->actual <= w->expected || w->actual == PEAL_VERIFY_LATER)
        return NULL;
    return peal_answer_text(t->a,
                            "rank %u waits for %s == %" PRId64
                            ", but rank %u is ahead and has made "
                            "it %" PRId64,
                            w->rank, w->cell, w->expected, last->rank, w->actual);
}

/* A value that was there, and was taken back before the wait looked. */
static const char *taken_back(const struct follower *t, const struct peal_verify_wait *w)
{
    const struct peal_verify_step *last = last_change(t, t->steps.len, w);
    bool equal = strcmp(w->relation, "==") == 0;
    if (!last || (last->rank == w->rank && last->lane == w->lane) || last->after >= last->before ||
        last->before < w->expected || (equal && last->before != w->expected))
        return NULL;
    return peal_answer_text(
        t->a,
        "rank %u waits for %s %s %" PRId64 ", which it was until rank %u made it %" PRId64
        " at line %u, before the wait looked",
        w->rank, w->cell, w->relation, w->expected, last->rank, last->after, last->place.line);
}

/* One sentence: what became of a notify, a cell that no rank will change, or the cycle. */
static const char *reason_of(const struct follower *t, const struct peal_verify_wait *waits,
                             uint32_t n)
{
    struct answer *a = t->a;
    for (uint32_t i = 0; i < n; i++) {
        const char *why = wiped(t, &waits[i]);
        why = why ? why : passed_by(t, &waits[i]);
        why = why ? why : taken_back(t, &waits[i]);
        if (why)
            return why;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct peal_verify_wait *w = &waits[i];
        if (w->nnotifiers > 0)
            continue;
        if (w->actual == PEAL_VERIFY_LATER)
            return peal_answer_text(a, "rank %u waits for %s %s %s, but its writer has gone on",
                                    w->rank, w->cell, w->relation,
                                    peal_verify_cell_words(w->expected).text);
        return peal_answer_text(
            a, "rank %u waits for %s %s %s, it is %s, and no rank will change it", w->rank, w->cell,
            w->relation, peal_verify_cell_words(w->expected).text,
            peal_verify_cell_words(w->actual).text);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (waits[i].in_cycle)
            return peal_answer_text(a, "rank %u waits for %s, and so on in a cycle", waits[i].rank,
                                    waits[i].cell);
    }
    return "a schedule stops short";
}

/* Does the thread stand at a wait that is to be shown? */
static bool is_blocked(const struct follower *t, uint32_t u)
{
    if (t->at[u] >= t->p->threads[u].nsteps || (t->only_core && t->core && !t->core[u]))
        return false;
    uint8_t kind = peal_program_step(t->p, u, t->at[u])->kind;
    return kind == STEP_WAIT || kind == STEP_WAIT_EQUAL || kind == STEP_TAKE;
}

/* What the thread's wait asks for, as its launch counts. */
static int64_t expected_by(const struct follower *t, uint32_t u, const struct step *s,
                           uint32_t launch)
{
    const struct program *p = t->p;
    int64_t value = s->value;
    if (s->kind == STEP_TAKE)
        value = peal_swap_expected(s->value);
    else if (s->flags & STEP_HAS_REG)
        value += t->regs[u][s->reg];
    if (p->cells[s->cell].kind == CELL_ONE_WRITER)
        return value & UINT32_MAX;
    if (p->cells[s->cell].kind == CELL_SHARED)
        return value - p->base[(uint64_t)launch * p->ncells + s->cell];
    return value;
}

static struct peal_verify_wait describe_wait(struct follower *t, uint32_t u)
{
    const struct program *p = t->p;
    const struct step *s = peal_program_step(p, u, t->at[u]);
    uint32_t op = p->step_op[p->threads[u].first_step + t->at[u]];
    uint32_t launch = peal_program_step_launch(p, u, t->at[u]), step = PEAL_NONE;
    if (op != PEAL_NONE)
        (void)peal_program_op(p, u, op, &launch);
    int64_t actual = peal_program_logical(p, s->cell, t->value[s->cell], launch);
    if (op != PEAL_NONE && (!t->core || t->core[u])) {
        step = peal_follower_add_op(t, u, op);
        t->steps.at[step].blocked = true;
        t->steps.at[step].cell = peal_follower_cell_name(t, s->cell);
        t->steps.at[step].before = t->steps.at[step].after = actual;
    }
    return (struct peal_verify_wait){
        .step = step,
        .launch = launch,
        .rank = p->threads[u].rank,
        .lane = p->threads[u].lane,
        .cell = peal_follower_cell_name(t, s->cell),
        .relation = s->kind == STEP_WAIT ? ">=" : "==",
        .expected = expected_by(t, u, s, launch),
        .actual = actual,
    };
}

/* Follows the arrows of `next` from `at` on, at most n of them, and marks the waits on the way if
 * `marks`. Returns where it ends. */
static uint32_t follow(struct peal_verify_wait *waits, uint32_t n, const uint32_t *number,
                       const uint32_t *next, uint32_t at, bool marks)
{
    for (uint32_t i = 0; i < n && at != PEAL_NONE && number[at] != PEAL_NONE; i++) {
        waits[number[at]].in_cycle = marks;
        at = next[at];
    }
    return at;
}

/* Adds the blocked waits, and marks the cycle among them. */
void peal_follower_show_blocked(struct follower *t)
{
    const struct program *p = t->p;
    struct peal_verify_wait *waits =
        peal_arena_alloc(&t->a->arena, (p->nthreads + 1u) * sizeof *waits);
    uint32_t *next = malloc((p->nthreads + 1u) * sizeof *next);
    uint32_t *number = malloc((p->nthreads + 1u) * sizeof *number);
    uint32_t n = 0, first = PEAL_NONE;
    if (!waits || !next || !number) {
        t->a->failed = true;
        goto release;
    }
    for (uint32_t u = 0; u < p->nthreads; u++) {
        next[u] = number[u] = PEAL_NONE;
        if (!is_blocked(t, u))
            continue;
        number[u] = n;
        waits[n] = describe_wait(t, u);
        uint32_t cell = peal_program_step(p, u, t->at[u])->cell;
        waits[n].notifiers = notifiers(t, cell, &waits[n].nnotifiers, &next[u]);
        if (first == PEAL_NONE)
            first = u;
        n++;
    }
    /* After n arrows from any wait, the walk is in the cycle, if there is one. */
    uint32_t inside = follow(waits, n, number, next, first, false);
    (void)follow(waits, n, number, next, inside, true);
    t->a->v.waits = waits;
    t->a->v.nwaits = n;
    if (!t->a->v.why)
        t->a->v.why = reason_of(t, waits, n);
release:
    free(next);
    free(number);
}

/* The thread that each blocked one waits for. PEAL_NONE: no thread will change its cell. */
static void list_next(struct follower *t, const uint32_t *at, uint32_t *next)
{
    const struct program *p = t->p;
    uint32_t count;
    memcpy(t->at, at, p->nthreads * sizeof *at);
    for (uint32_t u = 0; u < p->nthreads; u++) {
        next[u] = PEAL_NONE;
        if (at[u] < p->threads[u].nsteps)
            (void)notifiers(t, peal_program_step(p, u, at[u])->cell, &count, &next[u]);
    }
    memset(t->at, 0, p->nthreads * sizeof *at);
}

/* Does `thread` show a deadlock by itself? Either no rank will change its cell, or it is the first
 * in a cycle of threads that wait for each other. */
static bool find_core(const struct program *p, const uint32_t *next, uint32_t thread, bool *core)
{
    memset(core, 0, p->nthreads * sizeof *core);
    core[thread] = true;
    if (next[thread] == PEAL_NONE)
        return true;
    for (uint32_t u = next[thread]; u != PEAL_NONE; u = next[u]) {
        if (u <= thread || core[u])
            return u == thread;
        core[u] = true;
    }
    return false;
}

/* The core with the shortest past. False: out of memory. */
static bool choose(struct follower *t, const uint32_t *at, uint32_t *need, bool *core,
                   bool *shortest)
{
    const struct program *p = t->p;
    uint32_t n = p->nthreads;
    uint32_t *next = malloc((n + 1u) * sizeof *next), *goal = malloc((n + 1u) * sizeof *goal);
    uint32_t *trial = malloc((n + 1u) * sizeof *trial);
    bool *other = calloc(n + 1u, sizeof *other), good = false;
    uint64_t best = UINT64_MAX, tries = 1 + 20000000 / (p->nsteps + 1);
    if (!next || !goal || !trial || !other)
        goto free_all;
    list_next(t, at, next);
    *shortest = true;
    for (uint32_t u = 0; u < n; u++) {
        bool unique;
        uint64_t steps = 0;
        if (at[u] >= p->threads[u].nsteps || !find_core(p, next, u, other))
            continue;
        if (tries-- == 0) {
            *shortest = false;
            break;
        }
        for (uint32_t k = 0; k < n; k++)
            goal[k] = other[k] ? at[k] : PEAL_NONE;
        if (!peal_story_past(p, goal, trial, &unique))
            goto free_all;
        *shortest = *shortest && unique;
        for (uint32_t k = 0; k < n; k++)
            steps += trial[k] + other[k];
        if (steps < best) {
            best = steps;
            memcpy(need, trial, n * sizeof *need);
            memcpy(core, other, n * sizeof *core);
        }
    }
    good = best != UINT64_MAX;
free_all:
    free(next);
    free(goal);
    free(trial);
    free(other);
    return good;
}

void peal_story_stuck(const struct program *p, const struct run *stuck, struct answer *a)
{
    struct follower t;
    uint32_t *need = malloc((p->nthreads + 1u) * sizeof *need);
    bool *core = calloc(p->nthreads + 1u, sizeof *core);
    bool shortest = false;
    if (!need || !core) {
        a->failed = true;
    } else if (peal_follower_begin(&t, p, a)) {
        /* Blocked threads are blocked at the same place in every schedule: the pasts of the core
         * are the counterexample. */
        if (choose(&t, stuck->at, need, core, &shortest))
            (void)peal_follower_run_to(&t, need);
        else
            a->failed = true;
        /* A thread outside the counterexample is at its end: it makes no further notify. */
        memcpy(t.at, stuck->at, p->nthreads * sizeof *t.at);
        memcpy(t.value, stuck->value, p->ncells * sizeof *t.value);
        t.core = core;
        peal_follower_show_blocked(&t);
        a->v.story = shortest ? PEAL_STORY_SHORTEST : PEAL_STORY_MINIMAL;
        peal_follower_end(&t);
    }
    free(need);
    free(core);
}
