/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules told as steps: every sync op with the cell's value, every access to the bytes that
 * matter, and the end. */
#include "verify/story.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *peal_answer_text(struct answer *a, const char *format, ...)
{
    struct peal_text text = {0};
    va_list args;
    va_start(args, format);
    peal_text_vprintf(&text, format, args);
    va_end(args);
    char *copy = peal_arena_copy(&a->arena, peal_text_get(&text), text.len);
    peal_text_release(&text);
    if (!copy)
        a->failed = true;
    return copy ? copy : "";
}

struct peal_verify_place peal_story_place(const struct program *p, uint32_t launch,
                                          const struct peal_op *op, struct answer *a)
{
    const struct peal_plan *plan = p->plans[launch];
    if (!op || op->pos == PEAL_NONE)
        return (struct peal_verify_place){"", 0, 0, 0};
    const struct peal_position *at = &peal_plan_positions(plan)[op->pos];
    return (struct peal_verify_place){peal_answer_text(a, "%s", peal_plan_string(plan, at->source)),
                                      at->line, at->col, at->len};
}

/* --- telling --------------------------------------------------------------------------------- */

struct teller {
    const struct program *p;
    struct answer *a;
    PEAL_VEC(struct peal_verify_step) steps;
    uint32_t *at;    /* [thread] steps taken */
    uint32_t *shown; /* [thread] accesses shown: index into mine */
    int64_t *value;  /* [cell] */
    uint32_t *by;    /* [cell] step that changed it last, or PEAL_NONE */
    int64_t **regs;  /* [thread] */
    const struct race *race;
    const bool *core; /* [thread] blocked threads whose step is told; NULL = all */
    bool only_core;   /* the others need not be blocked: their waits are not told either */
};

static bool tell_begin(struct teller *t, const struct program *p, struct answer *a)
{
    *t = (struct teller){.p = p, .a = a};
    t->at = calloc(p->nthreads + 1u, sizeof *t->at);
    t->shown = calloc(p->nthreads + 1u, sizeof *t->shown);
    t->value = calloc(p->ncells + 1u, sizeof *t->value);
    t->by = malloc((p->ncells + 1u) * sizeof *t->by);
    t->regs = peal_arena_alloc(&a->arena, (p->nthreads + 1u) * sizeof *t->regs);
    if (!t->at || !t->shown || !t->value || !t->by || !t->regs)
        return false;
    memcpy(t->value, p->initial, p->ncells * sizeof *t->value);
    memset(t->by, 0xff, p->ncells * sizeof *t->by);
    for (uint32_t i = 0; i < p->nthreads; i++) {
        t->regs[i] = peal_arena_alloc(&a->arena, (p->threads[i].nregs + 1u) * sizeof(int64_t));
        if (!t->regs[i])
            return false;
    }
    return true;
}

static void tell_end(struct teller *t)
{
    struct peal_verification *v = &t->a->v;
    struct peal_verify_step *steps =
        peal_arena_alloc(&t->a->arena, (t->steps.len + 1) * sizeof *steps);
    if (steps) {
        if (t->steps.len)
            memcpy(steps, t->steps.at, t->steps.len * sizeof *steps);
        v->steps = steps;
        v->nsteps = (uint32_t)t->steps.len;
    } else {
        t->a->failed = true;
    }
    peal_vec_release(&t->steps);
    free(t->at);
    free(t->shown);
    free(t->value);
    free(t->by);
}

/* A step for an op of a thread; returns its number. */
static uint32_t tell_op(struct teller *t, uint32_t thread, uint32_t op)
{
    const struct thread *th = &t->p->threads[thread];
    struct peal_verify_step step = {
        .rank = th->rank, .lane = th->lane, .op = PEAL_NONE, .waits_for = PEAL_NONE};
    if (op >= OP_NO_OP) {
        step.place = (struct peal_verify_place){"", 0, 0, 0};
        step.text = op == OP_CALLER_ENTERS     ? "the caller uses its buffer before the launch"
                    : op == OP_CALLER_LEAVES   ? "the caller uses its buffer after the launch"
                    : op == OP_BARRIER_ENTERED ? "has not entered the barrier"
                                               : "has left the barrier";
    } else {
        const struct peal_op *at = peal_program_op(t->p, thread, op, &step.launch);
        struct peal_text text = {0};
        peal_story_op_text(t->p, step.launch, th->rank, at, &text);
        step.op = op - th->first_op[step.launch];
        step.place = peal_story_place(t->p, step.launch, at, t->a);
        step.text = peal_answer_text(t->a, "%s", peal_text_get(&text));
        peal_text_release(&text);
    }
    if (!peal_vec_push(&t->steps, step))
        t->a->failed = true;
    return t->steps.len ? (uint32_t)t->steps.len - 1 : 0;
}

static const char *cell_name(struct teller *t, uint32_t cell)
{
    struct peal_text text = {0};
    peal_program_cell_name(t->p, cell, &text);
    const char *copy = peal_answer_text(t->a, "%s", peal_text_get(&text));
    peal_text_release(&text);
    return copy;
}

/* Accesses of the thread to the contested bytes that come before its next step. */
static void tell_accesses(struct teller *t, uint32_t thread)
{
    if (!t->race)
        return;
    const struct program *p = t->p;
    const struct access *a = &p->accesses.at[t->race->a];
    for (; t->shown[thread] < p->accesses.len; t->shown[thread]++) {
        uint32_t i = t->shown[thread];
        const struct access *x = &p->accesses.at[i];
        if (x->thread > thread || (x->thread == thread && x->step > t->at[thread]))
            return;
        if (x->thread != thread || x->location != a->location || x->hi <= t->race->lo ||
            x->lo >= t->race->hi)
            continue;
        if (i == t->race->a || i == t->race->b)
            return; /* told last */
        if (x->op == OP_BARRIER_ENTERED || x->op == OP_BARRIER_LEFT)
            continue;
        if (t->steps.len && t->steps.at[t->steps.len - 1].rank == p->threads[thread].rank &&
            t->steps.at[t->steps.len - 1].lane == p->threads[thread].lane && x->op < OP_NO_OP &&
            t->steps.at[t->steps.len - 1].op == x->op - p->threads[thread].first_op[x->launch] &&
            t->steps.at[t->steps.len - 1].launch == x->launch)
            continue; /* the same op, its other operand */
        uint32_t step = tell_op(t, thread, x->op);
        if (t->steps.len)
            t->steps.at[step].launch = x->launch;
    }
}

/* Takes the thread's next step. */
static void tell_step(struct teller *t, uint32_t thread)
{
    const struct program *p = t->p;
    uint32_t i = t->at[thread];
    const struct step *s = peal_program_step(p, thread, i);
    uint32_t op = p->step_op[p->threads[thread].first_step + i];
    tell_accesses(t, thread);
    int64_t before = t->value[s->cell];
    int64_t amount = s->value + ((s->flags & STEP_HAS_REG) ? t->regs[thread][s->reg] : 0);
    bool waits = s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL;
    if (s->kind == STEP_ADD)
        t->value[s->cell] += amount;
    else if (s->kind == STEP_SET)
        t->value[s->cell] = amount;
    else if (s->kind == STEP_PEEK)
        t->regs[thread][s->reg] = before;
    uint32_t from = waits ? t->by[s->cell] : PEAL_NONE;
    uint32_t told = PEAL_NONE;
    if (op != PEAL_NONE) {
        struct peal_verify_step *last = t->steps.len ? &t->steps.at[t->steps.len - 1] : NULL;
        uint32_t launch;
        (void)peal_program_op(p, thread, op, &launch);
        /* The second half of a send or recv is not told again. */
        if (i > 0 && p->step_op[p->threads[thread].first_step + i - 1] == op && last) {
            told = (uint32_t)t->steps.len - 1;
        } else {
            told = tell_op(t, thread, op);
            if (t->steps.len) {
                last = &t->steps.at[told];
                last->cell = cell_name(t, s->cell);
                last->before = peal_program_logical(p, s->cell, before, launch);
                last->after = peal_program_logical(p, s->cell, t->value[s->cell], launch);
                last->waits_for = from;
            }
        }
    }
    if (s->kind <= STEP_SET)
        t->by[s->cell] = told;
    t->at[thread]++;
}

/* Runs all threads to `need`, recording who takes the next step: threads in turn, each as far as it
 * can. */
static bool tell_past(struct teller *t, const uint32_t *need)
{
    const struct program *p = t->p;
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < p->nthreads; i++) {
            while (t->at[i] < need[i]) {
                const struct step *s = peal_program_step(p, i, t->at[i]);
                if (s->kind == STEP_WAIT && t->value[s->cell] < s->value)
                    break;
                tell_step(t, i);
                moved = true;
            }
        }
    }
    for (uint32_t i = 0; i < p->nthreads; i++) {
        if (t->at[i] < need[i])
            return false;
    }
    return true;
}

void peal_story_access(const struct program *p, uint32_t i, uint32_t step, uint32_t location,
                       bool writes, struct range bytes, struct answer *a)
{
    const struct memory *m = &p->memory.at[location / p->nranks];
    uint64_t size = peal_dtype_size((enum peal_dtype)m->dtype);
    a->v.accesses_at[i] = (struct peal_verify_access){
        .step = step,
        .writes = writes,
        .buf = peal_answer_text(a, "%s", m->name),
        .rank = location % p->nranks,
        .first_byte = bytes.lo,
        .bytes = bytes.hi - bytes.lo,
        .first_element = bytes.lo / size,
        .elements = (bytes.hi + size - 1) / size - bytes.lo / size,
    };
    if (a->v.naccesses <= i)
        a->v.naccesses = i + 1;
}

static const char *race_kind(const struct access *a, const struct access *b)
{
    if (a->kind == ACCESS_READ || b->kind == ACCESS_READ)
        return "a read and a write";
    return a->kind == ACCESS_WRITE && b->kind == ACCESS_WRITE ? "two writes"
                                                              : "a write and an accumulate";
}

static void tell_collision(struct teller *t, const struct race *race)
{
    const struct program *p = t->p;
    const struct access *x[2] = {&p->accesses.at[race->a], &p->accesses.at[race->b]};
    for (uint32_t i = 0; i < 2; i++)
        tell_accesses(t, x[i]->thread);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t step = tell_op(t, x[i]->thread, x[i]->op);
        if (t->steps.len) {
            t->steps.at[step].launch = x[i]->launch;
            t->steps.at[step].collides = true;
        }
        peal_story_access(p, i, step, x[i]->location, x[i]->kind != ACCESS_READ,
                          (struct range){race->lo, race->hi}, t->a);
    }
    const struct peal_verify_access *at = &t->a->v.accesses_at[0];
    const struct thread *one = &p->threads[x[0]->thread], *two = &p->threads[x[1]->thread];
    const char *who =
        one->rank == two->rank
            ? peal_answer_text(t->a, "lanes %u and %u of rank %u", one->lane, two->lane, one->rank)
            : peal_answer_text(t->a, "ranks %u and %u", one->rank, two->rank);
    t->a->v.why = peal_answer_text(t->a, "%s: %s of '%s' on rank %u can happen at once", who,
                                   race_kind(x[0], x[1]), at->buf, at->rank);
}

struct bound {
    uint64_t steps;
    uint32_t race;
};

static int by_bound(const void *a, const void *b)
{
    const struct bound *x = a, *y = b;
    if (x->steps != y->steps)
        return x->steps < y->steps ? -1 : 1;
    return (x->race > y->race) - (x->race < y->race);
}

/* The race with the shortest story: branch and bound over those with the fewest own steps. */
static const struct race *choose(const struct program *p, const struct race_report *report,
                                 uint32_t *need, bool *shortest)
{
    struct bound *bounds = malloc((report->races.len + 1) * sizeof *bounds);
    uint32_t *goal = malloc((p->nthreads + 1u) * sizeof *goal);
    uint32_t *trial = malloc((p->nthreads + 1u) * sizeof *trial);
    const struct race *best = NULL;
    uint64_t best_steps = UINT64_MAX, tries = 0, most_tries = 1 + 20000000 / (p->nsteps + 1);
    if (!bounds || !goal || !trial)
        goto done;
    for (uint32_t i = 0; i < report->races.len; i++) {
        const struct race *r = &report->races.at[i];
        bounds[i] =
            (struct bound){(uint64_t)p->accesses.at[r->a].step + p->accesses.at[r->b].step, i};
    }
    qsort(bounds, report->races.len, sizeof *bounds, by_bound);
    *shortest = report->total == report->races.len;
    for (uint32_t i = 0; i < report->races.len && bounds[i].steps < best_steps; i++) {
        const struct race *r = &report->races.at[bounds[i].race];
        bool unique;
        uint64_t steps = 0;
        if (++tries > most_tries) {
            *shortest = false;
            break;
        }
        memset(goal, 0xff, p->nthreads * sizeof *goal);
        goal[p->accesses.at[r->a].thread] = p->accesses.at[r->a].step;
        goal[p->accesses.at[r->b].thread] = p->accesses.at[r->b].step;
        if (!peal_story_past(p, goal, trial, &unique))
            break;
        *shortest = *shortest && unique;
        for (uint32_t t = 0; t < p->nthreads; t++)
            steps += trial[t];
        if (steps < best_steps) {
            best = r;
            best_steps = steps;
            memcpy(need, trial, p->nthreads * sizeof *need);
        }
    }
done:
    free(bounds);
    free(goal);
    free(trial);
    return best;
}

void peal_story_race(const struct program *p, const struct race_report *report, struct answer *a)
{
    struct teller t;
    uint32_t *need = malloc((p->nthreads + 1u) * sizeof *need);
    bool shortest = false;
    const struct race *race = need ? choose(p, report, need, &shortest) : NULL;
    if (!race || !tell_begin(&t, p, a)) {
        a->failed = true;
        free(need);
        return;
    }
    t.race = race;
    a->v.story = shortest ? PEAL_STORY_SHORTEST : PEAL_STORY_MINIMAL;
    (void)tell_past(&t, need);
    tell_collision(&t, race);
    tell_end(&t);
    free(need);
}

void peal_story_cell(const struct program *p, const struct race_report *report, struct answer *a)
{
    struct teller t;
    uint32_t *goal = malloc((p->nthreads + 1u) * sizeof *goal);
    uint32_t *need = malloc((p->nthreads + 1u) * sizeof *need);
    bool shortest = false;
    if (goal && need && tell_begin(&t, p, a)) {
        memset(goal, 0xff, p->nthreads * sizeof *goal);
        /* The later write goes first: that is what must not happen. */
        goal[report->cell_thread[1]] = report->cell_step[1] + 1;
        uint32_t first = report->cell_step[0];
        if (!peal_story_past(p, goal, need, &shortest))
            a->failed = true;
        if (need[report->cell_thread[0]] > first)
            need[report->cell_thread[0]] = first;
        (void)tell_past(&t, need);
        while (t.at[report->cell_thread[0]] < first + 1) {
            const struct step *s =
                peal_program_step(p, report->cell_thread[0], t.at[report->cell_thread[0]]);
            if (s->kind == STEP_WAIT && t.value[s->cell] < s->value)
                break;
            tell_step(&t, report->cell_thread[0]);
        }
        uint32_t cell = peal_program_step(p, report->cell_thread[1], report->cell_step[1])->cell;
        a->v.why = peal_answer_text(a,
                                    "cell %s is written by rank %u and by rank %u, and nothing "
                                    "orders them: the count falls",
                                    cell_name(&t, cell), p->threads[report->cell_thread[0]].rank,
                                    p->threads[report->cell_thread[1]].rank);
        a->v.story = shortest ? PEAL_STORY_SHORTEST : PEAL_STORY_MINIMAL;
        tell_end(&t);
    } else {
        a->failed = true;
    }
    free(goal);
    free(need);
}

void peal_story_op(const struct program *p, uint32_t thread, uint32_t launch, uint32_t op,
                   struct answer *a)
{
    struct teller t;
    if (!tell_begin(&t, p, a)) {
        a->failed = true;
        return;
    }
    uint32_t step = tell_op(&t, thread, op);
    if (t.steps.len)
        t.steps.at[step].launch = launch;
    tell_end(&t);
    a->v.story = PEAL_STORY_SHORTEST;
}

/* --- deadlock -------------------------------------------------------------------------------- */

/* Threads that could still write the cell, as ranks. */
static const uint32_t *notifiers(struct teller *t, uint32_t cell, uint32_t *count,
                                 uint32_t *blocked_one)
{
    const struct program *p = t->p;
    uint32_t *ranks = peal_arena_alloc(&t->a->arena, (p->nthreads + 1u) * sizeof *ranks);
    uint32_t n = 0;
    *blocked_one = PEAL_NONE;
    for (uint32_t u = 0; u < p->nthreads && ranks; u++) {
        for (uint32_t i = t->at[u]; i < p->threads[u].nsteps; i++) {
            const struct step *s = peal_program_step(p, u, i);
            if (s->cell != cell || s->kind > STEP_SET)
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

/* One sentence: a cell that nobody will change, or the circle. */
static void say_why(struct teller *t, const struct peal_verify_wait *waits, uint32_t n)
{
    for (uint32_t i = 0; i < n && !t->a->v.why; i++) {
        if (waits[i].nnotifiers == 0)
            t->a->v.why = peal_answer_text(t->a,
                                           "rank %u waits for %s %s %" PRId64 ", it is %" PRId64
                                           ", and nobody will change it",
                                           waits[i].rank, waits[i].cell, waits[i].relation,
                                           waits[i].expected, waits[i].actual);
    }
    for (uint32_t i = 0; i < n && !t->a->v.why; i++) {
        if (waits[i].in_cycle)
            t->a->v.why = peal_answer_text(t->a, "rank %u waits for %s, and so on in a circle",
                                           waits[i].rank, waits[i].cell);
    }
    if (!t->a->v.why)
        t->a->v.why = "a schedule stops short";
}

/* Adds the blocked waits, and marks the cycle among them. */
static void tell_blocked(struct teller *t)
{
    const struct program *p = t->p;
    struct peal_verify_wait *waits =
        peal_arena_alloc(&t->a->arena, (p->nthreads + 1u) * sizeof *waits);
    uint32_t *next = malloc((p->nthreads + 1u) * sizeof *next);
    uint32_t *number = malloc((p->nthreads + 1u) * sizeof *number);
    uint32_t n = 0, first = PEAL_NONE;
    if (!waits || !next || !number) {
        t->a->failed = true;
        free(next);
        free(number);
        return;
    }
    for (uint32_t u = 0; u < p->nthreads; u++) {
        next[u] = number[u] = PEAL_NONE;
        if (t->at[u] >= p->threads[u].nsteps || (t->only_core && t->core && !t->core[u]))
            continue;
        const struct step *s = peal_program_step(p, u, t->at[u]);
        if (s->kind != STEP_WAIT && s->kind != STEP_WAIT_EQUAL)
            continue;
        uint32_t op = p->step_op[p->threads[u].first_step + t->at[u]];
        uint32_t launch = peal_program_step_launch(p, u, t->at[u]), step = PEAL_NONE;
        int64_t expected = s->value + ((s->flags & STEP_HAS_REG) ? t->regs[u][s->reg] : 0);
        if (op != PEAL_NONE)
            (void)peal_program_op(p, u, op, &launch);
        if (op != PEAL_NONE && (!t->core || t->core[u])) {
            step = tell_op(t, u, op);
            t->steps.at[step].blocked = true;
            t->steps.at[step].cell = cell_name(t, s->cell);
            t->steps.at[step].before = t->steps.at[step].after =
                peal_program_logical(p, s->cell, t->value[s->cell], launch);
        }
        number[u] = n;
        int64_t base = p->cells[s->cell].kind == CELL_SHARED
                           ? p->base[(uint64_t)launch * p->ncells + s->cell]
                           : 0;
        waits[n] = (struct peal_verify_wait){
            .step = step,
            .launch = launch,
            .rank = p->threads[u].rank,
            .lane = p->threads[u].lane,
            .cell = cell_name(t, s->cell),
            .relation = s->kind == STEP_WAIT ? ">=" : "==",
            .expected =
                p->cells[s->cell].kind == CELL_ONE_WRITER ? expected & UINT32_MAX : expected - base,
            .actual = peal_program_logical(p, s->cell, t->value[s->cell], launch),
        };
        waits[n].notifiers = notifiers(t, s->cell, &waits[n].nnotifiers, &next[u]);
        if (first == PEAL_NONE)
            first = u;
        n++;
    }
    uint32_t at = first;
    for (uint32_t i = 0; i < n && at != PEAL_NONE && number[at] != PEAL_NONE; i++)
        at = next[at] == PEAL_NONE ? PEAL_NONE : next[at];
    for (uint32_t i = 0; i < n && at != PEAL_NONE && number[at] != PEAL_NONE; i++) {
        waits[number[at]].in_cycle = true;
        at = next[at];
    }
    t->a->v.waits = waits;
    t->a->v.nwaits = n;
    say_why(t, waits, n);
    free(next);
    free(number);
}

/* Why it stands still, in as few threads as possible: one whose cell nobody will change any more,
 * or a circle of threads that wait for each other. */
static void find_core(struct teller *t, const uint32_t *at, bool *core)
{
    const struct program *p = t->p;
    uint32_t count, next, first = PEAL_NONE, alone = PEAL_NONE;
    memcpy(t->at, at, p->nthreads * sizeof *at);
    for (uint32_t u = 0; u < p->nthreads; u++) {
        if (at[u] >= p->threads[u].nsteps)
            continue;
        first = first == PEAL_NONE ? u : first;
        (void)notifiers(t, peal_program_step(p, u, at[u])->cell, &count, &next);
        if (next == PEAL_NONE && (alone == PEAL_NONE || at[u] < at[alone]))
            alone = u;
    }
    uint32_t u = first;
    for (uint32_t i = 0; alone == PEAL_NONE && i < 2 * p->nthreads; i++) {
        if (i >= p->nthreads)
            core[u] = true; /* by now it goes round in the circle */
        (void)notifiers(t, peal_program_step(p, u, at[u])->cell, &count, &next);
        u = next;
    }
    if (alone != PEAL_NONE)
        core[alone] = true;
    memset(t->at, 0, p->nthreads * sizeof *at);
}

void peal_story_stuck(const struct program *p, const struct run *stuck, struct answer *a)
{
    struct teller t;
    uint32_t *goal = malloc((p->nthreads + 1u) * sizeof *goal);
    uint32_t *need = malloc((p->nthreads + 1u) * sizeof *need);
    bool *core = calloc(p->nthreads + 1u, sizeof *core);
    bool shortest = false;
    if (!goal || !need || !core || !tell_begin(&t, p, a)) {
        a->failed = true;
        goto free_all;
    }
    /* Those that stand still stand where they stand in every schedule: the pasts of the core are
     * the story. */
    find_core(&t, stuck->at, core);
    for (uint32_t u = 0; u < p->nthreads; u++)
        goal[u] = core[u] ? stuck->at[u] : PEAL_NONE;
    if (!peal_story_past(p, goal, need, &shortest))
        a->failed = true;
    else
        (void)tell_past(&t, need);
    /* Who has left the story stands at its end: it will notify nobody any more. */
    memcpy(t.at, stuck->at, p->nthreads * sizeof *t.at);
    memcpy(t.value, stuck->value, p->ncells * sizeof *t.value);
    t.core = core;
    tell_blocked(&t);
    a->v.story = shortest ? PEAL_STORY_SHORTEST : PEAL_STORY_MINIMAL;
    tell_end(&t);
free_all:
    free(goal);
    free(need);
    free(core);
}

void peal_story_schedule(const struct program *p, const struct schedule *s, const struct race *race,
                         const bool *core, struct answer *a)
{
    struct teller t;
    if (!tell_begin(&t, p, a)) {
        a->failed = true;
        return;
    }
    t.race = race;
    t.core = core;
    t.only_core = true;
    for (uint64_t i = 0; i < s->count; i++)
        tell_step(&t, s->thread[i]);
    if (race)
        tell_collision(&t, race);
    else if (a->v.fault == PEAL_FAULT_DEADLOCK)
        tell_blocked(&t);
    tell_end(&t);
}
