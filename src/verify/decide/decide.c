/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on an unrolled program: order if it is monotone, exploration if not, then values.
 *
 * Who owns what. The program belongs to the caller. Some questions change it for a while (first
 * values of unknown cells, accesses that stand for barriers), so they are asked one after the
 * other. Only one other thread exists: it computes values ahead, and check_races joins it before it
 * goes on. The answer and its arena belong to the caller too.
 *
 * What never changes: a check that returns false has set the verdict, and nothing else is asked
 * then, unless all faults are wanted. A limit that is reached, or a combination that no analysis
 * covers, is "undecided" with its reason, never "proved". Levels of reuse and bits are only stated
 * of proofs.
 *
 * Why in this order: whether a schedule can stop short does not depend on races, and clocks say
 * nothing about steps that no execution reaches, so deadlock comes first. Values come last: they
 * are the same in all schedules only if nothing races.
 */
#include "verify/decide/decide.h"

#include "verify/explore/explore.h"
#include "verify/explore/relaxed.h"
#include "verify/order/ahead.h"
#include "verify/order/compose.h"
#include "verify/order/counted.h"
#include "verify/order/locks.h"
#include "verify/result/symbolic.h"

#include <pthread.h>
#include <stdlib.h>

static void set_uninitialised(struct program *p, int64_t value)
{
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (p->cells[c].uninitialised)
            p->initial[c] = value;
    }
}

static bool has_unknown(const struct program *p)
{
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (p->cells[c].uninitialised)
            return true;
    }
    return false;
}

/* The thread's first write to the cell in the launch of `s`. */
static uint32_t first_write(const struct program *p, uint32_t thread, const struct step *s)
{
    uint32_t i = 0;
    for (; i + 1 < p->threads[thread].nsteps; i++) {
        const struct step *x = peal_program_step(p, thread, i);
        if (x->kind == STEP_SET && x->cell == s->cell && x->value >> 32 == s->value >> 32)
            break;
    }
    return i;
}

static bool has_handover(const struct program *p)
{
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (p->cells[c].handover)
            return true;
    }
    return false;
}

static void refute_writers(const struct program *p, uint32_t first, uint32_t second, uint32_t step,
                           struct answer *a)
{
    const struct step *s = peal_program_step(p, second, step);
    struct peal_text name = {0};
    peal_program_cell_name(p, s->cell, &name);
    peal_answer_refute(a, PEAL_FAULT_SIGNAL);
    peal_story_two(p, first, first_write(p, first, s), second, step, a);
    a->v.why =
        peal_answer_text(a,
                         "%s is written by ranks %u and %u in one launch; a cell with "
                         "several writers is declared 'signal shared'",
                         peal_text_get(&name), p->threads[first].rank, p->threads[second].rank);
    peal_text_release(&name);
}

/* If two threads write a one-writer cell in one launch, it holds the count of whichever wrote
 * last. */
static bool check_writers(const struct program *p, struct answer *a)
{
    if (!has_handover(p))
        return true;
    uint32_t *writer = calloc((uint64_t)p->ncells * p->launches, sizeof *writer);
    bool good = false;
    if (!writer)
        return true; /* peal_demands_ask will report it too */
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            if (s->kind != STEP_SET || !p->cells[s->cell].handover)
                continue;
            uint32_t launch = (uint32_t)(s->value >> 32) - 1;
            uint32_t *by = &writer[(uint64_t)launch * p->ncells + s->cell];
            if (*by && *by != t + 1) {
                refute_writers(p, *by - 1, t, i, a);
                goto free_writer;
            }
            *by = t + 1;
        }
    }
    good = true;
free_writer:
    free(writer);
    return good;
}

/* One run decides. A cell of unknown value is assumed to be as low as possible. */
static bool check_deadlock(struct program *p, const struct peal_verify_options *o, struct answer *a)
{
    struct run run;
    set_uninitialised(p, -PEAL_VERIFY_ANY);
    if (!peal_run_init(&run, p)) {
        peal_answer_give_up(a, "out of memory");
        return false;
    }
    peal_run_go(&run);
    bool finished = peal_run_finished(&run);
    if (!finished) {
        peal_answer_refute(a, PEAL_FAULT_DEADLOCK);
        a->v.has_deadlock = true;
        if (!o->no_story)
            peal_story_stuck(p, &run, a);
    }
    peal_run_release(&run);
    return finished;
}

static void note_open(const struct program *p, const struct race_report *r, struct answer *a)
{
    if (r->closed || r->open == PEAL_NONE)
        return;
    const struct access *x = &p->accesses.at[r->open];
    uint32_t launch;
    struct peal_verify_place at = {"", 0, 0, 0};
    if (peal_access_has_op(x))
        at = peal_story_place(p, x->launch, peal_program_op(p, x->thread, x->op, &launch), a);
    const char *does = x->kind == ACCESS_READ ? "may read" : "may write";
    const char *when =
        r->open_at_entry ? "before that rank has entered" : "after that rank has left";
    a->v.open_why =
        peal_answer_text(a, "rank %u %s '%s' of rank %u %s (%s:%u)", p->threads[x->thread].rank,
                         does, p->memory.at[x->location / p->nranks].name, x->location % p->nranks,
                         when, at.file, at.line);
}

/* The clocks of lazy runs treat relaxed signals as weaker than they may be. What they find is
 * therefore searched for in real executions. False: decided. */
static bool check_relaxed(struct program *p, const struct peal_verify_options *o, struct answer *a,
                          struct race_report *r)
{
    enum relaxed_answer answer = peal_relaxed_search(p, o, false, a);
    if (answer == RELAXED_RACE) {
        a->v.has_race = a->v.fault == PEAL_FAULT_RACE;
        a->v.verdict = PEAL_REFUTED;
    } else if (answer == RELAXED_UNDECIDED) {
        peal_answer_give_up(
            a, "only relaxed signals or peeks keep some accesses apart; no execution was found in "
               "which they race, and not all were examined");
    }
    if (r) {
        r->races.len = 0;
        r->barrier_broken = r->cell_broken = false;
    }
    return answer == RELAXED_NONE;
}

/* Entering and leaving become accesses that conflict; the shortest of these races is the
 * counterexample. */
static void report_barrier(struct program *p, const struct peal_verify_options *o, struct answer *a)
{
    struct race_report r = {0};
    if (peal_explore_add_barriers(p) &&
        peal_race_find(p, o->workers, o->max_bytes, &r) == PEAL_OK && r.races.len) {
        peal_story_race(p, &r, a);
        peal_explore_report_barrier(p, &a->collision, a);
    }
    peal_race_release(&r);
}

/* Values, computed during the search for races. They are used only if there are none. */
struct values_ahead {
    struct program *p;
    const struct peal_verify_options *options;
    struct answer answer;
    pthread_t thread;
    bool started;
};

static void *compute_values(void *at)
{
    struct values_ahead *ahead = at;
    struct symbolic_run run = {.max_bytes = ahead->options->max_bytes};
    peal_symbolic_check(ahead->p, &run, &ahead->answer);
    return NULL;
}

static bool has_accumulates(const struct program *p)
{
    for (size_t i = 0; i < p->accesses.len; i++) {
        if (p->accesses.at[i].kind == ACCESS_ACCUMULATE)
            return true;
    }
    return false;
}

/* For large programs, if there are cores for it. Not with accumulates in an arbitrary order, which
 * are known only after the races, nor with cells of unknown value, which are set for each
 * question. */
static void start_values(struct program *p, const struct peal_verify_options *o,
                         struct values_ahead *ahead)
{
    enum { LARGE = 1 << 16 };
    *ahead = (struct values_ahead){.p = p, .options = o, .answer.v.verdict = PEAL_PROVED};
    if (o->workers < 2 || p->nsteps < LARGE || o->no_result || o->pairwise || p->unbalanced ||
        has_unknown(p) || has_accumulates(p))
        return;
    peal_arena_init(&ahead->answer.arena, 0);
    ahead->started = pthread_create(&ahead->thread, NULL, compute_values, ahead) == 0;
}

/* Must come before anything else is done to the program. */
static void await_values(struct values_ahead *ahead)
{
    if (ahead->started)
        pthread_join(ahead->thread, NULL);
}

/* True: the values are right, and *a has what they say about bits. */
static bool take_values(struct values_ahead *ahead, bool wanted, struct answer *a)
{
    if (!ahead->started)
        return false;
    const struct peal_verification *v = &ahead->answer.v;
    bool good = wanted && v->verdict == PEAL_PROVED && !ahead->answer.failed;
    if (good) {
        a->v.verdict = PEAL_PROVED;
        a->v.bits = v->bits;
        a->v.reads_zeroed = v->reads_zeroed;
        a->v.same_order = v->same_order;
        a->v.order = v->order;
        if (v->bits_why)
            a->v.bits_why = peal_answer_text(a, "%s", v->bits_why);
    }
    peal_arena_release(&ahead->answer.arena);
    return good;
}

/* Checks races, cells with two writers, and barriers. If `ahead` is given, values are computed
 * meanwhile. False: decided. */
static bool check_races(struct program *p, const struct peal_verify_options *o, struct answer *a,
                        struct race_report *r, struct values_ahead *ahead)
{
    set_uninitialised(p, PEAL_VERIFY_ANY);
    if (ahead)
        start_values(p, o, ahead);
    enum peal_status status = peal_race_find(p, o->workers, o->max_bytes, r);
    if (ahead)
        await_values(ahead);
    if (status != PEAL_OK) {
        peal_answer_give_up(a, "the memory limit was reached while looking for races");
        return false;
    }
    if (p->has_relaxed && (r->races.len || r->cell_broken || r->barrier_broken) &&
        !check_relaxed(p, o, a, r))
        return false;
    /* If the writers of a cell are not ordered, a race that was found may not be real. */
    bool race = r->races.len && (!r->cell_broken || peal_story_race_is_real(p, r));
    if (r->cell_broken && !race && a->v.verdict != PEAL_REFUTED) {
        peal_answer_refute(a, PEAL_FAULT_SIGNAL);
        if (!o->no_story)
            peal_story_cell(p, r, a);
        return false;
    }
    if (race) {
        a->v.has_race = true;
        if (a->v.verdict == PEAL_REFUTED)
            return false;
        peal_answer_refute(a, PEAL_FAULT_RACE);
        if (!o->no_story)
            peal_story_race(p, r, a);
        return false;
    }
    if (a->v.verdict == PEAL_REFUTED)
        return false; /* a deadlock has been reported */
    if (r->barrier_broken) {
        peal_answer_refute(a, PEAL_FAULT_RESULT);
        a->v.why = peal_answer_text(
            a, "rank %u may leave launch %u of the barrier before rank %u has entered it",
            r->leaves, r->broken_launch, r->enters);
        if (!o->no_story)
            report_barrier(p, o, a);
        return false;
    }
    note_open(p, r, a);
    return true;
}

/* What the adding steps give a shared cell must equal the total that the plan gives its owner. */
static bool check_totals(const struct program *p, struct answer *a)
{
    if (!p->base)
        return true;
    int64_t *sum = calloc(p->ncells + 1u, sizeof *sum);
    if (!sum)
        return false;
    for (uint64_t i = 0; i < p->nsteps; i++) {
        if (p->steps[i].kind == STEP_ADD)
            sum[p->steps[i].cell] += p->steps[i].value;
    }
    const int64_t *end = p->base + (uint64_t)p->launches * p->ncells;
    uint32_t c = 0;
    while (c < p->ncells && (p->cells[c].kind != CELL_SHARED || sum[c] == end[c]))
        c++;
    free(sum);
    if (c == p->ncells)
        return true;
    struct peal_text name = {0};
    peal_program_cell_name(p, c, &name);
    peal_answer_refute(a, PEAL_FAULT_SIGNAL);
    a->v.why =
        peal_answer_text(a, "%s: its owner's total is not what is added", peal_text_get(&name));
    peal_text_release(&name);
    return false;
}

static void check_balance(const struct program *p, struct answer *a)
{
    for (uint32_t c = 0; c < p->channels.len; c++) {
        const struct channel *ch = &p->channels.at[c];
        if (ch->nsent == ch->nreceived)
            continue;
        peal_answer_refute(a, PEAL_FAULT_CHANNEL);
        a->v.why = peal_answer_text(
            a, "%llu sends but %llu recvs in %u launch%s on the channel from rank %u to rank %u",
            (unsigned long long)ch->nsent, (unsigned long long)ch->nreceived, p->launches,
            p->launches == 1 ? "" : "es", ch->sender, ch->receiver);
        if (ch->nsent > ch->nreceived)
            peal_story_op(p, ch->sender_thread, 0, ch->sender_op, a);
        else
            peal_story_op(p, ch->receiver_thread, 0, ch->receiver_op, a);
        return;
    }
}

/* All schedules are known to agree: checks the values, and what can be said about them. */
static void finish_proof(struct program *p, const struct peal_verify_options *o,
                         const bool *unordered, struct answer *a)
{
    a->v.verdict = PEAL_PROVED;
    if (p->unbalanced) {
        check_balance(p, a);
        return;
    }
    struct symbolic_run run = {.unordered = unordered, .max_bytes = o->max_bytes};
    if (!o->no_result)
        peal_symbolic_check(p, &run, a);
}

/* What further launches could change. */
static void note_ahead(const struct program *p, const struct peal_verify_options *o,
                       struct answer *a)
{
    a->v.needs_launches = peal_ahead_launches(p, o->workers);
    a->v.in_order = peal_ahead_in_order(p, o->workers);
}

/* Asks the same questions under the order of a network between nodes. Deadlock is not one of them,
 * because a network only delays. *r is then what holds for both orders. False: decided. */
static bool check_pairwise(struct program *p, const struct peal_verify_options *o, struct answer *a,
                           struct race_report *r)
{
    struct program wired;
    struct race_report weak = {0};
    bool good = false;
    a->v.pairwise = true;
    enum peal_status status =
        peal_program_build_pairwise(&wired, p->plans, p->launches, o->max_bytes);
    if (status != PEAL_OK)
        peal_answer_give_up(a, wired.why);
    else if (wired.has_relaxed)
        peal_answer_give_up(a,
                            "relaxed signals and the order of a network are not decided together");
    else
        good = check_races(&wired, o, a, &weak, NULL);
    if (good) {
        peal_race_release(r);
        *r = weak;
        if (p->launches > 1 && !o->all_faults)
            note_ahead(&wired, o, a);
    } else {
        peal_race_release(&weak);
    }
    if (!good && a->v.verdict == PEAL_REFUTED && a->v.why)
        a->v.why = peal_answer_text(a, "%s, on a network that orders pairs of ranks", a->v.why);
    peal_program_release(&wired);
    return good;
}

/* What the plan says about sequences. Each launch of a period must read what it wrote itself, no
 * matter what was launched before. If all launches are alike, the first has shown that. */
static struct peal_composition *find_composition(struct program *p,
                                                 const struct peal_verify_options *o,
                                                 const struct race_report *r, struct answer *a)
{
    struct peal_composition *found = peal_composition_find(p, r, o->workers, &a->arena);
    if (!found || p->plans[0]->period == 1)
        return found;
    struct answer scratch = {.v.verdict = PEAL_PROVED};
    peal_arena_init(&scratch.arena, 0);
    peal_symbolic_check(
        p,
        &(struct symbolic_run){.fresh = true, .unordered = r->unordered, .max_bytes = o->max_bytes},
        &scratch);
    bool good = scratch.v.verdict == PEAL_PROVED && !scratch.failed;
    peal_arena_release(&scratch.arena);
    return good ? found : NULL;
}

static void decide_monotone(struct program *p, const struct peal_verify_options *o,
                            struct answer *a)
{
    struct values_ahead ahead;
    struct race_report r = {0};
    if (!check_writers(p, a) || !check_totals(p, a))
        return;
    /* With cells of unknown value, a wait that passes too early is a better counterexample than one
     * that never passes. */
    bool early = has_unknown(p) && !check_races(p, o, a, &r, NULL);
    peal_race_release(&r);
    if (early || (!check_deadlock(p, o, a) && !o->all_faults))
        return;
    bool ordered =
        check_races(p, o, a, &r, &ahead) && (!o->pairwise || check_pairwise(p, o, a, &r));
    bool has_values = take_values(&ahead, ordered, a);
    if (ordered) {
        a->v.reuse = r.closed ? PEAL_REUSE_CLOSED : PEAL_REUSE_REPEATABLE;
        if (p->launches < 2)
            a->v.reuse = PEAL_REUSE_SINGLE_SHOT;
        if (!has_values)
            finish_proof(p, o, r.unordered, a);
        if (o->compose && a->v.verdict == PEAL_PROVED)
            a->v.composition = find_composition(p, o, &r, a);
    }
    peal_race_release(&r);
    if (a->v.verdict == PEAL_PROVED && p->channels.len && !o->no_story) {
        uint64_t max_sent = 1;
        for (uint32_t c = 0; c < p->channels.len; c++) {
            a->v.depth = p->channels.at[c].depth;
            max_sent = p->channels.at[c].nsent > max_sent ? p->channels.at[c].nsent : max_sent;
        }
        a->v.least_depth =
            peal_order_least_depth(p, (uint32_t)(max_sent < 1u << 30 ? max_sent : 1u << 30));
    }
}

/* Relaxed signals do not order the accesses of different ranks in one launch. */
static void explore_closed(struct program *p, const struct peal_verify_options *o, struct answer *a)
{
    struct race_report r;
    if (p->has_relaxed || p->has_peeked || p->guards || has_unknown(p)) {
        a->v.closed_undecided = true;
        a->v.open_why = "it has cells of unknown value and is not monotone";
        if (p->guards)
            a->v.open_why = "it has blocks that a counter decides about";
        if (p->has_peeked)
            a->v.open_why = "it goes by what it peeks at";
        if (p->has_relaxed)
            a->v.open_why = "it has relaxed signals and is not monotone";
    } else if (!peal_explore_closed(p, o, a, &r)) {
        a->v.closed_undecided = true;
        a->v.open_why = "a limit was reached while looking for it";
    } else if (r.closed) {
        a->v.reuse = PEAL_REUSE_CLOSED;
    } else {
        note_open(p, &r, a);
    }
}

static void decide_explore(struct program *p, const struct peal_verify_options *o, struct answer *a)
{
    peal_explore(p, o, a);
    if (a->v.verdict == PEAL_PROVED && o->pairwise)
        peal_answer_give_up(a, "the order of a network is decided for monotone kernels only");
    if (a->v.verdict == PEAL_PROVED && p->has_relaxed && has_unknown(p))
        peal_answer_give_up(a,
                            "relaxed signals and cells of unknown value are not decided together");
    else if (a->v.verdict == PEAL_PROVED && (p->has_relaxed || p->has_peeked))
        (void)check_relaxed(p, o, a, NULL);
    if (a->v.verdict == PEAL_PROVED) {
        a->v.reuse = p->launches > 1 ? PEAL_REUSE_REPEATABLE : PEAL_REUSE_SINGLE_SHOT;
        if (p->unbalanced)
            check_balance(p, a);
        if (a->v.reuse == PEAL_REUSE_REPEATABLE && !o->all_faults)
            explore_closed(p, o, a);
    }
}

/* Where exploration looks first: where a condition of the counted program fails, or where two
 * accesses race in it. */
static void note_holds(struct program *p, const struct counted_program *counted,
                       const struct race_report *r)
{
    p->nholds = counted->nholds;
    for (uint32_t i = 0; i < counted->nholds; i++)
        p->holds[i] = counted->holds[i];
    for (size_t i = 0; r && i < r->races.len && p->nholds < MAX_HOLDS; i++) {
        const struct access *x = &p->accesses.at[r->races.at[i].a],
                            *y = &p->accesses.at[r->races.at[i].b];
        p->holds[p->nholds++] = (struct hold){{x->thread, y->thread}, {x->step, y->step}};
    }
}

static bool has_no_race(struct program *p, const struct peal_verify_options *o,
                        struct race_report *r)
{
    return peal_race_find(p, o->workers, o->max_bytes, r) == PEAL_OK && !r->races.len &&
           !r->cell_broken && !r->barrier_broken;
}

/* A program whose cells fall, decided as the monotone one that has the same executions. True: the
 * verdict is found; if it is good, the values have been judged. */
static bool decide_counted(struct program *p, const struct peal_verify_options *o, struct answer *a)
{
    struct counted_program counted;
    struct race_report r = {0};
    struct answer scratch = {.v.verdict = PEAL_PROVED};
    struct peal_verify_options quiet = *o;
    quiet.no_story = true;
    quiet.all_faults = false;
    bool searched = false;
    peal_arena_init(&scratch.arena, 0);
    bool good = peal_counted_make(&counted, p) && check_deadlock(&counted.p, &quiet, &scratch);
    if (good) {
        /* A wait that passes at once orders nothing: what is ordered then always is. */
        set_uninitialised(&counted.p, PEAL_VERIFY_ANY);
        bool same = peal_counted_ask(&counted, o->workers);
        good = same && has_no_race(&counted.p, o, &r);
        note_holds(p, &counted, good ? NULL : &r);
        /* Where weak orders alone let accesses meet, it may not be so in any execution. */
        searched = same && !good && p->has_relaxed && !has_unknown(p);
        good = good || (searched && check_relaxed(p, o, a, NULL));
    }
    if (good) {
        a->v.monotone = true;
        a->v.reuse = r.closed ? PEAL_REUSE_CLOSED : PEAL_REUSE_REPEATABLE;
        if (p->launches < 2)
            a->v.reuse = PEAL_REUSE_SINGLE_SHOT;
        note_open(p, &r, a);
        p->counted = &counted.p;
        finish_proof(p, o, r.unordered, a);
        p->counted = NULL;
        if (a->v.verdict == PEAL_PROVED && p->launches > 1 && !o->all_faults) {
            const struct program *judged = counted.launches ? &counted.p : p;
            a->v.needs_launches = peal_ahead_launches(judged, o->workers);
            if (a->v.needs_launches < counted.launches)
                a->v.needs_launches = counted.launches;
            a->v.in_order = peal_ahead_in_order(p, o->workers);
        }
    }
    peal_race_release(&r);
    peal_counted_release(&counted);
    peal_arena_release(&scratch.arena);
    return good || searched;
}

/* Deadlock and races of the program without its locks, which may itself have to be counted. */
static bool is_good_without(struct lock_list *locks, const struct peal_verify_options *quiet,
                            struct counted_program *counted, struct race_report *r)
{
    struct program *q = &locks->without;
    struct answer scratch = {.v.verdict = PEAL_PROVED};
    peal_arena_init(&scratch.arena, 0);
    struct program *judged = q->monotone ? q : &counted->p;
    bool good =
        (q->monotone || peal_counted_make(counted, q)) && check_deadlock(judged, quiet, &scratch);
    if (good) {
        set_uninitialised(judged, PEAL_VERIFY_ANY);
        good = (q->monotone || peal_counted_ask(counted, quiet->workers)) &&
               has_no_race(judged, quiet, r);
    }
    peal_arena_release(&scratch.arena);
    return good;
}

/* A program whose only choices are who comes first at its locks. False: not decided. */
static bool decide_locked(struct program *p, const struct peal_verify_options *o, struct answer *a)
{
    struct lock_list locks;
    struct counted_program counted = {0};
    struct race_report r = {0};
    struct values_ahead values = {.started = true, .answer.v.verdict = PEAL_PROVED};
    struct peal_verify_options quiet = *o;
    quiet.no_story = true;
    quiet.all_faults = false;
    peal_arena_init(&values.answer.arena, 0);
    bool good = peal_locks_find(&locks, p) && is_good_without(&locks, &quiet, &counted, &r);
    if (good && !o->no_result) {
        struct symbolic_run run = {.unordered = r.unordered, .max_bytes = o->max_bytes};
        p->locks = &locks;
        peal_symbolic_check(p, &run, &values.answer);
        p->locks = NULL;
    }
    p->is_safe = good;
    good = take_values(&values, good, a) && good;
    if (good) {
        struct program *judged = locks.without.monotone ? &locks.without : &counted.p;
        a->v.verdict = PEAL_PROVED;
        a->v.reuse = r.closed ? PEAL_REUSE_CLOSED : PEAL_REUSE_REPEATABLE;
        if (p->launches < 2)
            a->v.reuse = PEAL_REUSE_SINGLE_SHOT;
        note_open(p, &r, a);
        if (p->launches > 1 && !o->all_faults) {
            a->v.needs_launches = peal_ahead_launches(
                locks.without.monotone || counted.launches ? judged : &locks.without, o->workers);
            if (a->v.needs_launches < counted.launches)
                a->v.needs_launches = counted.launches;
            a->v.in_order = peal_ahead_in_order(p, o->workers);
        }
    }
    peal_race_release(&r);
    peal_counted_release(&counted);
    peal_locks_release(&locks);
    return good;
}

void peal_verify_decide(struct program *p, const struct peal_verify_options *o, struct answer *a)
{
    bool counted = false;
    if (p->monotone && o->engine != PEAL_ENGINE_EXPLORE) {
        decide_monotone(p, o, a);
    } else if (o->engine == PEAL_ENGINE_ORDER) {
        peal_answer_give_up(a, p->not_monotone);
    } else if (check_writers(p, a) && check_totals(p, a)) {
        counted = o->engine == PEAL_ENGINE_AUTO && !o->pairwise &&
                  (decide_counted(p, o, a) || decide_locked(p, o, a));
        if (!counted)
            decide_explore(p, o, a);
    }
    if (a->v.verdict != PEAL_PROVED)
        a->v.reuse = PEAL_REUSE_NONE;
    else if (p->launches > 1 && !o->all_faults && !o->pairwise && !counted)
        note_ahead(p, o, a); /* for pairwise, check_pairwise has done so */
}
