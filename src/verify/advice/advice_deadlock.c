/* SPDX-License-Identifier: Apache-2.0 */
/* What would fix a deadlock of a monotone program: deeper channels, a lower threshold, a notify
 * that comes before the wait instead of after it, or a notify that is missing.
 *
 * A missing notify is found by repair. While a wait falls short and no rank has a notify of its
 * cell left to make, a rank is chosen by comparison with how the same signal is used elsewhere, and
 * a notify is added to it.
 */
#include "verify/advice/adviser.h"
#include "verify/order/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPAIRS = 64, MAX_MOVES = 16 };

static const struct step *blocked_step(const struct program *p, const struct run *run, uint32_t t)
{
    if (run->at[t] >= p->threads[t].nsteps)
        return NULL;
    return peal_program_step(p, t, run->at[t]);
}

/* How much the blocked wait still needs, in counts of its launch. */
static int64_t missing(const struct program *p, const struct run *run, uint32_t t)
{
    const struct step *s = blocked_step(p, run, t);
    if (p->cells[s->cell].kind != CELL_ONE_WRITER)
        return s->value - run->value[s->cell];
    bool now = s->value >> 32 == run->value[s->cell] >> 32;
    return (s->value & UINT32_MAX) - (now ? run->value[s->cell] & UINT32_MAX : 0);
}

/* Does any thread still have a notify of the cell to make? */
static bool has_notifier(const struct program *p, const struct run *run, uint32_t cell)
{
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = run->at[t]; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            if (s->cell == cell && peal_step_is_notify(s))
                return true;
        }
    }
    return false;
}

/* --- depth, thresholds, order ---------------------------------------------------------------- */

static bool try_depth(struct adviser *v, const struct run *run)
{
    struct program *p = v->p;
    bool full = false;
    uint64_t max_sent = 1;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        const struct step *s = blocked_step(p, run, t);
        full = full || (s && p->cells[s->cell].kind == CELL_FREED);
    }
    for (uint32_t c = 0; c < p->channels.len; c++) {
        if (p->channels.at[c].nsent > max_sent)
            max_sent = p->channels.at[c].nsent;
    }
    uint32_t depth = 0;
    if (full && max_sent < 1u << 30)
        depth = peal_order_least_depth(p, (uint32_t)max_sent);
    struct edit e;
    if (!depth)
        return false;
    bool good = peal_edit_begin(&e, p, 0);
    if (good)
        peal_edit_set_depth(&e, depth);
    good = good && peal_adviser_fixes(v, &e);
    peal_edit_end(&e);
    if (good)
        peal_advise(v, true,
                    peal_answer_text(v->a, "channels of depth %u (--depth %u)", depth, depth),
                    PEAL_NONE, PEAL_NONE);
    return good;
}

/* The blocked line, and with it, if wanted, all waits on the same signal. */
static bool try_lower(struct adviser *v, const struct run *run, uint32_t t, bool all)
{
    struct program *p = v->p;
    uint32_t pos = peal_edit_pos(p, t, run->at[t]);
    uint32_t signal = p->cells[blocked_step(p, run, t)->cell].owner;
    const struct peal_op *ops = peal_plan_ops(p->plans[0]);
    int64_t by = missing(p, run, t);
    struct edit e;
    if (pos == PEAL_NONE || by <= 0)
        return false;
    bool good = peal_edit_begin(&e, p, 0) && peal_edit_raise(&e, pos, -by);
    uint32_t done[MAX_LINES] = {pos}, n = 1;
    for (uint64_t i = 0; i < p->plans[0]->ops.count; i++) {
        if (!good || !all || n >= MAX_LINES)
            break;
        uint32_t k = 0;
        while (k < n && done[k] != ops[i].pos)
            k++;
        if (!peal_op_is_wait(&ops[i]) || k < n || ops[i].pos == PEAL_NONE ||
            p->signal_of[0][peal_op_signal(&ops[i])] != signal)
            continue;
        done[n++] = ops[i].pos;
        good = peal_edit_raise(&e, ops[i].pos, -by);
    }
    good = good && peal_adviser_fixes(v, &e);
    peal_edit_end(&e);
    if (good && all)
        peal_advise(v, true,
                    peal_answer_text(v->a,
                                     "the thresholds of all waits on '%s' lowered by %" PRId64,
                                     p->signals.at[signal].name, by),
                    pos, PEAL_NONE);
    else if (good)
        peal_advise(v, true,
                    peal_answer_text(v->a, "the threshold of the wait at %s lowered by %" PRId64,
                                     peal_adviser_line(v, pos), by),
                    pos, PEAL_NONE);
    return good;
}

static bool try_move(struct adviser *v, uint32_t notify, uint32_t before, uint32_t rank)
{
    struct edit e;
    bool good = peal_edit_begin(&e, v->p, 0);
    if (good)
        peal_edit_move_up(&e, notify, before, rank);
    good =
        good && !e.failed && e.insertions.len && peal_edit_apply(&e) && peal_adviser_fixes(v, &e);
    peal_edit_end(&e);
    if (!good)
        return false;
    const char *text = peal_answer_text(v->a, "the notify of %s before the wait of %s",
                                        peal_adviser_line(v, notify), peal_adviser_line(v, before));
    if (rank != PEAL_NONE)
        text = peal_answer_text(v->a, "on rank %u alone, %s", rank, text);
    peal_advise(v, true, text, notify, before);
    return true;
}

/* The search for a notify to move: at most 2 * MAX_MOVES are tried. */
struct moves {
    const struct run *run;
    bool *wanted; /* cells that some rank waits for */
    uint32_t tries;
};

/* Tries the notifies of wanted cells that stand behind the wait at which the thread is blocked;
 * alone: on its rank only. */
static bool try_moves_of(struct adviser *v, struct moves *m, uint32_t t, bool alone)
{
    struct program *p = v->p;
    if (!blocked_step(p, m->run, t))
        return false;
    uint32_t before = peal_edit_pos(p, t, m->run->at[t]), last = PEAL_NONE;
    if (before == PEAL_NONE)
        return false;
    for (uint32_t i = m->run->at[t]; i < p->threads[t].nsteps; i++) {
        const struct step *s = peal_program_step(p, t, i);
        uint32_t notify = peal_edit_pos(p, t, i);
        if (!peal_step_is_notify(s) || !m->wanted[s->cell] || notify == PEAL_NONE ||
            notify == last || !peal_cell_is_signal(&p->cells[s->cell]))
            continue;
        if (++m->tries > 2 * MAX_MOVES)
            return false;
        last = notify;
        if (try_move(v, notify, before, alone ? p->threads[t].rank : PEAL_NONE))
            return true;
    }
    return false;
}

/* Looks for notifies that some rank waits for and that stand behind a wait that never passes. */
static bool try_moves(struct adviser *v, const struct run *run)
{
    struct program *p = v->p;
    struct moves m = {.run = run, .wanted = calloc(p->ncells + 1u, sizeof *m.wanted)};
    bool found = false;
    if (!m.wanted)
        return false;
    for (uint32_t t = 0; t < p->nthreads; t++) {
        const struct step *s = blocked_step(p, run, t);
        if (s)
            m.wanted[s->cell] = true;
    }
    /* On all ranks first, then on the rank alone. */
    for (uint32_t i = 0; i < 2 * p->nthreads; i++) {
        found = try_moves_of(v, &m, i % p->nthreads, i >= p->nthreads);
        if (found)
            break;
    }
    free(m.wanted);
    return found;
}

/* --- a missing notify ------------------------------------------------------------------------ */

/* Which rank notifies, and where. The rank is the one that the cell's index names, or the one at a
 * fixed distance. The place is before what that rank is blocked at, or the beginning or the end of
 * the launch. */
enum where { WHERE_BLOCKED, WHERE_FIRST, WHERE_END, WHERES };

struct rule {
    bool by_index;
    uint32_t distance;
    enum where where;
};

struct repair {
    uint32_t notifier, owner, cell,
        pos; /* ranks; pos: the line before which it stands, or PEAL_NONE */
    int64_t by;
};

/* Adds the notify on a new cell, and a wait for it before the one that falls short. This has the
 * same effect as one more notify of the cell itself, and works however that cell counts. */
static bool put_notify(struct edit *e, const struct run *run, uint32_t waiter, uint32_t fresh,
                       const struct rule *rule, struct repair *out)
{
    struct program *p = &e->p;
    const struct step *s = blocked_step(p, run, waiter);
    uint32_t n = p->nranks, owner = p->threads[waiter].rank, launch;
    uint32_t notifier;
    if (rule->by_index)
        notifier = p->cells[s->cell].index;
    else
        notifier = (owner + rule->distance) % n;
    uint32_t at = p->step_op[p->threads[waiter].first_step + run->at[waiter]];
    if (notifier >= n || notifier == owner || at == PEAL_NONE || (s->flags & STEP_INSERTED))
        return false;
    uint32_t by = p->thread_of_rank[notifier];
    (void)peal_program_op(p, waiter, at, &launch);
    at -= p->threads[waiter].first_op[launch];
    uint32_t place = 0, from = launch;
    if (rule->where == WHERE_BLOCKED) {
        if (blocked_step(p, run, by))
            place = p->step_op[p->threads[by].first_step + run->at[by]];
        else
            place = PEAL_NONE;
        if (place == PEAL_NONE)
            return false;
        (void)peal_program_op(p, by, place, &from);
        place -= p->threads[by].first_op[from];
    }
    int64_t less = missing(p, run, waiter);
    *out = (struct repair){notifier, owner, s->cell, PEAL_NONE, less};
    if (rule->where == WHERE_BLOCKED)
        out->pos = peal_edit_pos(p, by, run->at[by]);
    for (uint32_t l = 0; l < p->launches; l++) {
        struct insertion in = {.thread = by, .launch = l, .op = p->threads[by].first_op[l] + place};
        if (rule->where == WHERE_END)
            in.op = PEAL_NONE;
        in.step = (struct step){.cell = fresh, .kind = STEP_ADD, .value = 1};
        peal_edit_insert(e, in);
        in = (struct insertion){
            .thread = waiter, .launch = l, .op = p->threads[waiter].first_op[l] + at};
        in.step = (struct step){.cell = fresh, .kind = STEP_WAIT, .value = (int64_t)l + 1};
        peal_edit_insert(e, in);
        for (uint32_t i = 0; i < p->threads[waiter].nsteps; i++) {
            uint64_t k = p->threads[waiter].first_step + i;
            struct step *w = &p->steps[k];
            if (p->step_op[k] != p->threads[waiter].first_op[l] + at || w->kind != STEP_WAIT ||
                (w->flags & STEP_INSERTED))
                continue;
            w->value -= less;
            /* A wait for a count of 0 or less passes at once. */
            if (p->cells[w->cell].kind == CELL_ONE_WRITER && (w->value & UINT32_MAX) == 0)
                *w = (struct step){.kind = STEP_NOP, .flags = w->flags & STEP_AT_END};
        }
    }
    bool good = peal_edit_apply(e);
    e->insertions.len = 0;
    return good;
}

/* Repairs until no wait falls short. Returns the number of repairs, or 0. */
static uint32_t repair(struct edit *e, const struct rule *rule, uint32_t fresh,
                       struct repair *repairs)
{
    uint32_t count = 0;
    for (bool done = false; !done;) {
        struct run run;
        uint32_t waiter = PEAL_NONE;
        if (!peal_run_init(&run, &e->p))
            return 0;
        peal_run_go(&run);
        done = peal_run_finished(&run);
        for (uint32_t t = 0; t < e->p.nthreads && waiter == PEAL_NONE; t++) {
            const struct step *s = blocked_step(&e->p, &run, t);
            if (s && peal_cell_is_signal(&e->p.cells[s->cell]) &&
                !has_notifier(&e->p, &run, s->cell))
                waiter = t;
        }
        bool good = done || (waiter != PEAL_NONE && count < MAX_REPAIRS &&
                             put_notify(e, &run, waiter, fresh + count, rule, &repairs[count]));
        count += !done;
        peal_run_release(&run);
        if (!good)
            return 0;
    }
    return count;
}

static const char *repair_text(struct adviser *v, const struct repair *list, uint32_t count,
                               const struct rule *rule)
{
    static const char *const places[] = {"", "at the beginning", "at the end"};
    struct peal_text text = {0};
    for (uint32_t i = 0; i < count && i < 3; i++) {
        const struct repair *r = &list[i];
        peal_text_printf(&text, "%srank %u, ", i ? "; " : "", r->notifier);
        if (rule->where == WHERE_BLOCKED && r->pos != PEAL_NONE)
            peal_text_printf(&text, "before %s", peal_adviser_line(v, r->pos));
        else
            peal_text_puts(&text, places[rule->where]);
        peal_text_printf(&text, ": 'notify %s += %" PRId64 "'", peal_adviser_cell(v, r->cell),
                         r->by);
    }
    if (count > 3)
        peal_text_printf(&text, "; and %u more like these", count - 3);
    const char *copy = peal_answer_text(v->a, "a notify that is missing: %s", peal_text_get(&text));
    peal_text_release(&text);
    return copy;
}

static bool try_rule(struct adviser *v, const struct rule *rule)
{
    struct repair repairs[MAX_REPAIRS];
    struct edit e;
    bool good = peal_edit_begin(&e, v->p, MAX_REPAIRS);
    uint32_t count = 0;
    if (good)
        count = repair(&e, rule, v->p->ncells, repairs);
    good = count && peal_adviser_fixes(v, &e);
    peal_edit_end(&e);
    if (good)
        peal_advise(v, true, repair_text(v, repairs, count, rule), repairs[0].pos, PEAL_NONE);
    return good;
}

static void try_missing(struct adviser *v)
{
    uint32_t n = v->p->nranks, distances = n - 1 < 8 ? n - 1 : 8;
    for (uint32_t w = 0; w < WHERES; w++) {
        struct rule rule = {.by_index = true, .where = (enum where)w};
        if (try_rule(v, &rule))
            return;
        rule.by_index = false;
        /* The nearest first: 1, n - 1, 2, n - 2, ... */
        for (uint32_t k = 0; k < distances; k++) {
            if (k % 2 == 0)
                rule.distance = 1 + k / 2;
            else
                rule.distance = n - 1 - k / 2;
            if (try_rule(v, &rule))
                return;
        }
    }
}

void peal_advice_deadlock(struct adviser *v)
{
    struct run run;
    if (!v->p->monotone || !peal_run_init(&run, v->p))
        return;
    peal_run_go(&run);
    bool short_of = false, lowered = false;
    (void)try_depth(v, &run);
    for (uint32_t t = 0; t < v->p->nthreads; t++) {
        const struct step *s = blocked_step(v->p, &run, t);
        if (!s || !peal_cell_is_signal(&v->p->cells[s->cell]))
            continue;
        short_of = short_of || !has_notifier(v->p, &run, s->cell);
        lowered = lowered || try_lower(v, &run, t, false) || try_lower(v, &run, t, true);
    }
    if (!short_of)
        (void)try_moves(v, &run);
    peal_run_release(&run);
    if (short_of)
        try_missing(v);
}
