/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions, each tried before it is made.
 *
 * For a race between two lines: tell the one rank when the other is done (a notify after the one
 * line, a wait before the other, the same step or the step after), tell it at the end of the
 * launch, a barrier at the end of the launch or before one of the lines, or a second slot for the
 * buffer. For a proof: each line of waits, and each signal, taken out.
 */
#include "verify/advice.h"

#include "verify/edit.h"

#include <string.h>

enum { MOST_ADVICE = 8, MOST_STEPS = 400000 };

struct adviser {
    struct program *p;
    const struct peal_verify_options *options;
    struct answer *a;
    struct peal_verify_advice list[MOST_ADVICE];
    uint32_t count;
};

static void advise(struct adviser *v, bool mends, const char *text, struct peal_verify_place at,
                   struct peal_verify_place also)
{
    if (v->count < MOST_ADVICE)
        v->list[v->count++] = (struct peal_verify_advice){mends, text, at, also};
}

/* --- mending a race -------------------------------------------------------------------------- */

/* One of the two accesses that collide, and with it all ops that do the same: read or write that
 * buffer of the rank at that distance. */
struct line {
    uint32_t thread, pos, rank;
    uint32_t memory, distance;
    bool writes;
    struct peal_verify_place place;
};

static uint32_t pos_of(const struct program *p, uint32_t thread, uint32_t op)
{
    uint32_t launch;
    return peal_program_op(p, thread, op, &launch)->pos;
}

static bool does_the_same(const struct program *p, const struct line *line, const struct access *a)
{
    uint32_t n = p->nranks, rank = p->threads[a->thread].rank;
    return a->op < OP_NO_OP && a->location / n == line->memory &&
           (a->kind != ACCESS_READ) == line->writes &&
           (a->location % n + n - rank) % n == line->distance;
}

struct pair {
    uint32_t cell;    /* of the thread that waits */
    uint32_t total;   /* notifies a launch */
    uint32_t late;    /* the k-th wait needs k - late notifies */
    bool steps;       /* waits for steps of this launch */
    bool last_launch; /* the first waits for all of the launch before */
};

typedef void queue_step(struct edit *, struct insertion, uint32_t k, const struct pair *);

/* Calls for every such op of a thread: k is its number within the launch, from 1. Returns how many
 * there are in a launch. */
static uint32_t queue_line(struct edit *e, const struct program *p, const struct line *line,
                           uint32_t thread, queue_step *queue, const struct pair *with)
{
    uint32_t k = 0, launch = PEAL_NONE, op = PEAL_NONE, first = 0;
    for (size_t i = 0; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        if (a->thread != thread || !does_the_same(p, line, a) || a->op == op)
            continue;
        k = a->launch == launch ? k + 1 : 1;
        launch = a->launch;
        op = a->op;
        first += launch == 0;
        if (queue)
            queue(e, (struct insertion){.thread = thread, .launch = launch, .op = op}, k, with);
    }
    return first;
}

static void queue_notify(struct edit *e, struct insertion in, uint32_t k, const struct pair *with)
{
    (void)k;
    in.op++; /* after the line */
    uint32_t end = e->p.threads[in.thread].first_op[in.launch + 1];
    in.op = in.op >= end ? PEAL_NONE : in.op;
    in.step = (struct step){.cell = with->cell, .kind = STEP_ADD, .value = 1};
    peal_edit_insert(e, in);
}

static void queue_wait(struct edit *e, struct insertion in, uint32_t k, const struct pair *with)
{
    uint32_t need = with->steps && k > with->late ? k - with->late : 0;
    bool first = with->last_launch && k == 1 && in.launch > 0;
    if (need == 0 && !first)
        return;
    need = need < with->total ? need : with->total;
    in.step = (struct step){
        .cell = with->cell, .kind = STEP_WAIT, .value = (int64_t)with->total * in.launch + need};
    peal_edit_insert(e, in);
}

enum pair_kind {
    PAIR_SAME_STEP,
    PAIR_NEXT_STEP,
    PAIR_LAST_LAUNCH,
    PAIR_NEXT_AND_LAST, /* the step before, and for the first step the launch before */
    PAIR_AT_END,
    PAIR_KINDS
};

static const char *pair_text(struct adviser *v, const struct line *from, const struct line *to,
                             enum pair_kind kind, uint32_t total)
{
    uint32_t n = v->p->nranks, distance = (to->rank + n - from->rank) % n;
    const char *whom = distance == 1 ? "((rank + 1) % nranks)"
                       : distance + 1 == n
                           ? "((rank - 1) % nranks)"
                           : peal_answer_text(v->a, "((rank + %u) %% nranks)", distance);
    const char *does =
        peal_answer_text(v->a, "after every %s like that of line %u 'notify done@%s += 1'",
                         from->writes ? "write" : "read", from->place.line, whom);
    const char *what = to->writes ? "write" : "read";
    switch (kind) {
    case PAIR_SAME_STEP:
    case PAIR_NEXT_STEP:
        return peal_answer_text(
            v->a, "%s, and before every %s like that of line %u, the k-th, 'wait done >= k%s'",
            does, what, to->place.line, kind == PAIR_NEXT_STEP ? " - 1" : "");
    case PAIR_NEXT_AND_LAST:
        return peal_answer_text(
            v->a,
            "%s, and before every %s like that of line %u, the k-th, 'wait done "
            ">= k - 1', the first 'wait done >= %u at launch - 1'",
            does, what, to->place.line, total);
    case PAIR_LAST_LAUNCH:
        return peal_answer_text(
            v->a,
            "%s, and before the first %s like that of line %u 'wait done >= %u at launch - 1'",
            does, what, to->place.line, total);
    default:
        return peal_answer_text(v->a, "%s, and at the end of the kernel 'wait done >= %u'", does,
                                total);
    }
}

/* From the one access to the other: rank r tells rank r + distance. */
static bool try_pair(struct adviser *v, const struct line *from, const struct line *to,
                     enum pair_kind kind)
{
    struct program *p = v->p;
    uint32_t n = p->nranks, distance = (to->rank + n - from->rank) % n;
    struct edit e;
    if (distance == 0)
        return false;
    bool good = peal_edit_begin(&e, p, n);
    for (uint32_t r = 0; good && r < n; r++) {
        uint32_t target = (r + distance) % n;
        struct pair pair = {p->ncells + target, queue_line(&e, p, from, r, NULL, NULL),
                            kind == PAIR_NEXT_STEP || kind == PAIR_NEXT_AND_LAST,
                            kind != PAIR_LAST_LAUNCH,
                            kind == PAIR_LAST_LAUNCH || kind == PAIR_NEXT_AND_LAST};
        queue_line(&e, p, from, r, queue_notify, &pair);
        if (kind != PAIR_AT_END)
            queue_line(&e, p, to, target, queue_wait, &pair);
        for (uint32_t l = 0; l < p->launches && kind == PAIR_AT_END; l++)
            peal_edit_insert(&e,
                             (struct insertion){.thread = target,
                                                .launch = l,
                                                .op = PEAL_NONE,
                                                .step = {.cell = pair.cell,
                                                         .kind = STEP_WAIT,
                                                         .value = (int64_t)pair.total * (l + 1)}});
    }
    good =
        good && e.insertions.len && peal_edit_apply(&e) && peal_edit_holds(&e, v->options, false);
    uint32_t total = good ? queue_line(&e, p, from, from->thread, NULL, NULL) : 0;
    peal_edit_end(&e);
    if (good)
        advise(v, true, pair_text(v, from, to, kind, total), from->place, to->place);
    return good;
}

static void queue_barrier(struct edit *e, uint32_t thread, uint32_t launch, uint32_t op,
                          uint32_t first, int64_t target)
{
    uint32_t n = e->p.nranks;
    for (uint32_t k = 1; k < n; k++)
        peal_edit_insert(
            e, (struct insertion){
                   .thread = thread,
                   .launch = launch,
                   .op = op,
                   .step = {.cell = first + (thread + k) % n, .kind = STEP_ADD, .value = 1}});
    peal_edit_insert(e, (struct insertion){
                            .thread = thread,
                            .launch = launch,
                            .op = op,
                            .step = {.cell = first + thread, .kind = STEP_WAIT, .value = target}});
}

/* A barrier before every execution of a line, or (pos NONE) at the end of the launch. */
static bool try_barrier(struct adviser *v, const struct line *line)
{
    struct program *p = v->p;
    struct edit e;
    bool good = peal_edit_begin(&e, p, p->nranks);
    for (uint32_t t = 0; good && t < p->nthreads; t++) {
        int64_t target = 0;
        for (uint32_t l = 0; l < p->launches; l++) {
            for (uint32_t op = p->threads[t].first_op[l];
                 line && op < p->threads[t].first_op[l + 1]; op++) {
                if (pos_of(p, t, op) == line->pos)
                    queue_barrier(&e, t, l, op, p->ncells, target += p->nranks - 1);
            }
            if (!line)
                queue_barrier(&e, t, l, PEAL_NONE, p->ncells, target += p->nranks - 1);
        }
    }
    good = good && peal_edit_apply(&e) && peal_edit_holds(&e, v->options, false);
    peal_edit_end(&e);
    if (good && line)
        advise(v, true,
               peal_answer_text(v->a, "a barrier of all ranks before line %u", line->place.line),
               line->place, (struct peal_verify_place){"", 0, 0, 0});
    else if (good)
        advise(v, true, "a barrier of all ranks at the end of the kernel",
               (struct peal_verify_place){"", 0, 0, 0}, (struct peal_verify_place){"", 0, 0, 0});
    return good;
}

static void try_slot(struct adviser *v, uint32_t memory, struct peal_verify_place at)
{
    struct edit e;
    if (v->p->memory.at[memory].kind != PEAL_BUF_WINDOW)
        return;
    if (peal_edit_begin(&e, v->p, 0) && peal_edit_second_slot(&e, memory) &&
        peal_edit_holds(&e, v->options, false))
        advise(v, true,
               peal_answer_text(v->a, "a second slot for '%s': every write takes the other one",
                                v->p->memory.at[memory].name),
               at, (struct peal_verify_place){"", 0, 0, 0});
    peal_edit_end(&e);
}

static void mend_race(struct adviser *v)
{
    const struct program *p = v->p;
    struct line line[2];
    uint32_t memory = 0;
    while (memory + 1 < p->memory.len &&
           strcmp(p->memory.at[memory].name, v->a->v.accesses_at[0].buf) != 0)
        memory++;
    for (uint32_t i = 0; i < 2; i++) {
        const struct peal_verify_step *s = &v->a->v.steps[v->a->v.accesses_at[i].step];
        if (s->op == PEAL_NONE)
            return; /* the caller's own access: only order at the ends of the launch helps */
        line[i].thread = p->thread_of_rank[s->rank];
        line[i].rank = s->rank;
        line[i].place = s->place;
        line[i].pos =
            pos_of(p, line[i].thread, p->threads[line[i].thread].first_op[s->launch] + s->op);
        line[i].writes = v->a->v.accesses_at[i].writes;
        line[i].distance = (v->a->v.accesses_at[i].rank + p->nranks - s->rank) % p->nranks;
        line[i].memory = memory;
    }
    bool found = false;
    for (uint32_t kind = 0; kind < PAIR_KINDS && !found; kind++) {
        for (uint32_t i = 0; i < 2 && !found; i++)
            found = try_pair(v, &line[i], &line[1 - i], (enum pair_kind)kind);
    }
    if (!try_barrier(v, NULL)) {
        for (uint32_t i = 0; i < 2; i++) {
            if (try_barrier(v, &line[i]))
                break;
        }
    }
    try_slot(v, memory, line[0].place);
}

/* --- what a proof does not need -------------------------------------------------------------- */

static void try_without_wait(struct adviser *v, uint32_t pos)
{
    const struct peal_plan *plan = v->p->plans[0];
    const struct peal_position *at = &peal_plan_positions(plan)[pos];
    struct edit e;
    if (peal_edit_begin(&e, v->p, 0)) {
        peal_edit_remove_wait(&e, pos);
        if (peal_edit_holds(&e, v->options, v->a->v.reuse == PEAL_REUSE_CLOSED))
            advise(v, false, peal_answer_text(v->a, "the wait at line %u", at->line),
                   (struct peal_verify_place){
                       peal_answer_text(v->a, "%s", peal_plan_string(plan, at->source)), at->line,
                       at->col, at->len},
                   (struct peal_verify_place){"", 0, 0, 0});
    }
    peal_edit_end(&e);
}

static void try_without_signal(struct adviser *v, uint32_t signal)
{
    struct edit e;
    if (peal_edit_begin(&e, v->p, 0)) {
        peal_edit_remove_signal(&e, signal);
        if (peal_edit_holds(&e, v->options, v->a->v.reuse == PEAL_REUSE_CLOSED))
            advise(v, false,
                   peal_answer_text(v->a, "all notifies and waits of signal '%s'",
                                    v->p->signals.at[signal].name),
                   (struct peal_verify_place){"", 0, 0, 0},
                   (struct peal_verify_place){"", 0, 0, 0});
    }
    peal_edit_end(&e);
}

static void find_redundant(struct adviser *v)
{
    const struct peal_plan *plan = v->p->plans[0];
    const struct peal_op *op = peal_plan_ops(plan);
    bool *tried = peal_arena_alloc(&v->a->arena, plan->positions.count + 1);
    for (uint32_t s = 0; s < v->p->signals.len && v->count < MOST_ADVICE; s++)
        try_without_signal(v, s);
    for (uint64_t i = 0; tried && i < plan->ops.count && v->count < MOST_ADVICE; i++) {
        if (op[i].kind != PEAL_OP_WAIT || op[i].pos == PEAL_NONE || tried[op[i].pos])
            continue;
        tried[op[i].pos] = true;
        try_without_wait(v, op[i].pos);
    }
}

void peal_advice_find(struct program *p, const struct peal_verify_options *options,
                      struct answer *a)
{
    struct adviser v = {.p = p, .options = options, .a = a};
    bool race = a->v.verdict == PEAL_REFUTED && a->v.fault == PEAL_FAULT_RACE;
    if (!p->monotone || p->nthreads != p->nranks || p->nsteps > MOST_STEPS)
        return;
    if (race && a->v.naccesses == 2)
        mend_race(&v);
    else if (a->v.verdict == PEAL_PROVED)
        find_redundant(&v);
    struct peal_verify_advice *list = peal_arena_alloc(&a->arena, sizeof v.list);
    if (list) {
        memcpy(list, v.list, sizeof v.list);
        a->v.advice = list;
        a->v.nadvice = v.count;
    }
}
