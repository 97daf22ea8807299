/* SPDX-License-Identifier: Apache-2.0 */
/* See counted.h for the idea, docs/verifier-method.md for the theorem.
 *
 * Three passes: the cells are chosen (choose_cells), one execution is followed and the changes are
 * counted (follow), and each wait is given the counts that satisfy it (place_use). What must hold
 * for that to be the same program is collected on the way, as orders and ceilings, and asked for in
 * peal_counted_ask.
 *
 * Who owns what. The original program is only read. The counted one is a copy of it with steps,
 * cells and initial values of its own; everything else it shares, so it must not outlive the
 * original. All lists are in the work.
 *
 * What never changes: whatever is not understood makes peal_counted_make return false, and the
 * program is then explored as it is. Conditions may be stronger than needed, never weaker.
 */
#include "verify/order/counted_work.h"

#include "verify/order/lanes.h"
#include "verify/order/order.h"

#include <stdlib.h>
#include <string.h>

/* Beyond every count. */
#define NEVER (INT64_C(1) << 62)
/* Amounts and values up to this can be added up as often as there are steps. */
#define LARGEST (INT64_C(1) << 40)

/* --- which cells ----------------------------------------------------------------------------- */

static void join_thread(uint32_t *known, uint32_t thread)
{
    if (*known == PEAL_NONE)
        *known = thread;
    else if (*known != thread)
        *known = MANY_WRITERS;
}

/* Does the step read and change its cell in one, whatever it finds? */
static bool always_changes(const struct step *s)
{
    return s->kind == STEP_ADD || (s->kind == STEP_FETCH_ADD && s->value != 0) ||
           (s->kind == STEP_TAKE && peal_swap_desired(s->value) != peal_swap_expected(s->value));
}

static void see_step(struct counted_cell *c, uint32_t thread, const struct step *s)
{
    bool waits = s->kind == STEP_WAIT || s->kind == STEP_WAIT_EQUAL;
    join_thread(&c->user, thread);
    c->is_set = c->is_set || s->kind == STEP_SET;
    c->is_looked_at = c->is_looked_at || waits || s->kind == STEP_PEEK ||
                      (peal_step_is_atomic(s) && !always_changes(s));
    c->is_read = c->is_read || s->kind == STEP_PEEK || peal_step_is_atomic(s);
    if (waits || s->kind == STEP_PEEK || peal_step_is_atomic(s))
        join_thread(&c->reader, thread);
    if (s->kind == STEP_ADD && s->value < 0)
        join_thread(&c->taker, thread);
    if (s->kind == STEP_ADD && (s->flags & STEP_HAS_REG))
        c->taker = MANY_WRITERS; /* what it takes away is not known here */
}

static bool choose_cells(struct counted_work *w)
{
    const struct program *p = w->p;
    for (uint32_t c = 0; c < p->ncells; c++) {
        w->cells[c] = (struct counted_cell){.is_counted = p->cells[c].falls,
                                            .reader = PEAL_NONE,
                                            .taker = PEAL_NONE,
                                            .user = PEAL_NONE};
        if (p->cells[c].falls && p->cells[c].handover)
            return false;
    }
    for (uint32_t t = 0; t < p->nthreads; t++) {
        for (uint32_t i = 0; i < p->threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(p, t, i);
            if (s->kind != STEP_NOP)
                see_step(&w->cells[s->cell], t, s);
        }
    }
    for (uint32_t c = 0; c < p->ncells; c++) {
        struct counted_cell *cell = &w->cells[c];
        if (cell->is_read && p->cells[c].kind == CELL_ONE_WRITER)
            return false;
        cell->is_taken_from =
            cell->taker != PEAL_NONE && cell->taker == cell->reader && !cell->is_read;
    }
    return true;
}

/* With weak orders the theorem needs more: no read that does not wait may find a change that it has
 * itself led to, and no set may drop what the stretch before it has released. */
static bool weak_orders_fit(const struct counted_work *w)
{
    const struct program *p = w->p;
    if (p->has_fences || p->has_scopes)
        return false;
    for (uint64_t i = 0; i < p->nsteps; i++) {
        const struct step *s = &p->steps[i];
        const struct counted_cell *c = &w->cells[s->cell];
        if (s->kind == STEP_NOP || c->user != MANY_WRITERS)
            continue;
        if (s->kind == STEP_PEEK || (peal_step_fetches(s) && !peal_step_acquires(s)) ||
            (s->kind == STEP_SET && c->is_counted && (s->flags & STEP_WEAK)))
            return false;
    }
    return true;
}

/* --- the execution that is followed ---------------------------------------------------------- */

static void begin_stretch(struct counted_work *w, uint32_t cell, int64_t value, bool is_unknown)
{
    struct counted_cell *c = &w->cells[cell];
    if (!peal_vec_push(&w->stretches, ((struct count_stretch){.cell = cell,
                                                              .change = PEAL_NONE,
                                                              .first = c->count,
                                                              .value = value,
                                                              .is_unknown = is_unknown})))
        w->failed = true;
    c->stretches++;
    c->taken = 0;
}

static void add_change(struct counted_work *w, uint32_t thread, uint32_t step, uint32_t cell,
                       bool begins)
{
    if (!peal_vec_push(&w->changes,
                       ((struct cell_change){cell, thread, step, begins, w->cells[cell].count})))
        w->failed = true;
}

/* The cell's last stretch is still that of its first value, which is not known. */
static bool is_unset(const struct counted_work *w, uint32_t cell)
{
    return w->p->cells[cell].uninitialised && w->cells[cell].stretches == 1;
}

/* A change other than a count: it begins a stretch with the value `after`. */
static void change_value(struct counted_work *w, uint32_t thread, uint32_t step, uint32_t cell,
                         int64_t after)
{
    w->cells[cell].count++;
    add_change(w, thread, step, cell, true);
    begin_stretch(w, cell, after, false);
}

static void add_use(struct counted_work *w, struct counted_use use)
{
    const struct counted_cell *c = &w->cells[use.cell];
    use.stretch = c->stretches - 1;
    use.count = c->count;
    if (is_unset(w, use.cell) || !peal_vec_push(&w->uses, use))
        w->failed = true;
}

/* What a step of the original becomes. `after`: the cell's value after it. */
struct taken {
    uint32_t thread, step;
    int64_t amount, before, after;
};

static void count_add(struct counted_work *w, const struct taken *x, struct step *s)
{
    struct counted_cell *c = &w->cells[s->cell];
    if (x->amount >= 0) {
        c->count += x->amount;
        s->value = x->amount;
        add_change(w, x->thread, x->step, s->cell, false);
    } else if (c->is_taken_from) {
        c->taken -= x->amount;
        s->kind = STEP_NOP;
        add_change(w, x->thread, x->step, s->cell, false);
    } else {
        w->failed = w->failed || is_unset(w, s->cell);
        change_value(w, x->thread, x->step, s->cell, x->after);
        s->value = 1;
    }
}

static void keep_order(struct step *s, bool orders)
{
    s->flags &= (uint8_t)~STEP_WEAK;
    if (!orders)
        s->flags |= STEP_RELAXED;
}

/* A fetch_add of 0 and a swap that leaves the value as it is are reads, a take that does so is a
 * wait; other atomics change the cell. That they acquire is used of takes only. */
static void count_atomic(struct counted_work *w, const struct taken *x, struct step *s)
{
    struct counted_use use = {
        .cell = s->cell, .thread = x->thread, .step = x->step, .want = x->before};
    bool reads = x->after == x->before;
    if (s->kind == STEP_TAKE && reads) {
        add_use(w, use);
        keep_order(s, peal_step_acquires(s));
        s->kind = STEP_WAIT;
        return;
    }
    if (s->kind == STEP_TAKE) {
        use.takes = true;
        add_use(w, use);
        s->value = w->cells[s->cell].count;
        s->kind = STEP_TURN;
    } else if (reads) {
        use.reads = true;
        add_use(w, use);
        s->kind = STEP_NOP;
        return;
    } else {
        keep_order(s, peal_step_releases(s));
        s->kind = STEP_ADD;
        s->value = 1;
    }
    w->failed = w->failed || is_unset(w, s->cell);
    change_value(w, x->thread, x->step, s->cell, x->after);
}

/* Rewrites a step on a counted cell. Waits get their counts later. */
static void count_step(struct counted_work *w, const struct taken *x, struct step *s)
{
    const struct program *p = w->p;
    bool is_one_writer = p->cells[s->cell].kind == CELL_ONE_WRITER;
    uint64_t first = p->threads[x->thread].first_step;
    w->resolved[first + x->step] = x->amount;
    s->flags &= (uint8_t)~STEP_HAS_REG;
    s->reg = 0;
    if (!is_one_writer && s->kind != STEP_TAKE && s->kind != STEP_COMPARE_SWAP &&
        (x->amount > LARGEST || x->amount < -LARGEST || x->after > LARGEST || x->after < -LARGEST))
        w->failed = true;
    switch ((enum step_kind)s->kind) {
    case STEP_WAIT:
    case STEP_WAIT_EQUAL:
        add_use(w, (struct counted_use){.cell = s->cell,
                                        .thread = x->thread,
                                        .step = x->step,
                                        .at_least = s->kind == STEP_WAIT,
                                        .or_less = is_one_writer && s->kind == STEP_WAIT_EQUAL &&
                                                   !(x->amount & UINT32_MAX),
                                        .want = x->amount + w->cells[s->cell].taken});
        s->kind = STEP_WAIT;
        break;
    case STEP_PEEK:
        add_use(w, (struct counted_use){.cell = s->cell,
                                        .thread = x->thread,
                                        .step = x->step,
                                        .reads = true,
                                        .want = x->before});
        s->kind = STEP_NOP;
        break;
    case STEP_ADD:
        count_add(w, x, s);
        break;
    case STEP_SET:
        change_value(w, x->thread, x->step, s->cell, x->after);
        s->kind = STEP_ADD;
        s->value = 1;
        break;
    case STEP_FETCH_ADD:
    case STEP_COMPARE_SWAP:
    case STEP_TAKE:
        count_atomic(w, x, s);
        break;
    case STEP_NOP:
        break;
    case STEP_WHEN:
    case STEP_TURN:
        w->failed = true;
        break;
    }
}

struct followed {
    uint32_t *at;        /* [thread] */
    uint32_t *first_reg; /* [thread + 1] */
    int64_t *value, *regs;
};

/* Runs one thread as far as it gets. False: it cannot go on. */
static bool follow_thread(struct counted_work *w, struct followed *f, struct program *counted,
                          uint32_t t)
{
    const struct program *p = w->p;
    const struct thread *th = &p->threads[t];
    int64_t *regs = f->regs + f->first_reg[t];
    uint32_t start = f->at[t];
    for (; f->at[t] < th->nsteps && !w->failed; f->at[t]++) {
        uint32_t i = f->at[t];
        const struct step *s = peal_program_step(p, t, i);
        int64_t *value = &f->value[s->cell];
        if (!peal_program_enabled(p, t, i, regs, *value))
            break;
        struct taken x = {.thread = t, .step = i, .amount = s->value, .before = *value};
        if (s->flags & STEP_HAS_REG)
            x.amount = peal_wrap_add(x.amount, regs[s->reg]);
        *value = x.after = peal_program_effect(p, t, i, regs, *value);
        if (w->cells[s->cell].is_counted && s->kind != STEP_NOP)
            count_step(w, &x, &counted->steps[th->first_step + i]);
    }
    return f->at[t] > start;
}

static bool follow_all(struct counted_work *w, struct followed *f, struct program *counted)
{
    const struct program *p = w->p;
    bool moves = true, ended = true;
    while (moves && !w->failed) {
        moves = false;
        for (uint32_t t = 0; t < p->nthreads; t++)
            moves = follow_thread(w, f, counted, t) || moves;
    }
    for (uint32_t t = 0; t < p->nthreads; t++)
        ended = ended && f->at[t] == p->threads[t].nsteps;
    return ended && !w->failed;
}

/* False: it stops short, or finds something that cannot be counted. */
static bool follow(struct counted_work *w, struct program *counted)
{
    const struct program *p = w->p;
    struct followed f = {
        .at = calloc(p->nthreads + 1u, sizeof *f.at),
        .first_reg = calloc(p->nthreads + 1u, sizeof *f.first_reg),
        .value = malloc((p->ncells + 1u) * sizeof *f.value),
    };
    bool good = false;
    if (!f.at || !f.first_reg || !f.value)
        goto release;
    memcpy(f.value, p->initial, p->ncells * sizeof *f.value);
    for (uint32_t t = 0; t < p->nthreads; t++)
        f.first_reg[t + 1] = f.first_reg[t] + p->threads[t].nregs;
    f.regs = calloc(f.first_reg[p->nthreads] + 1u, sizeof *f.regs);
    if (!f.regs)
        goto release;
    for (uint32_t c = 0; c < p->ncells; c++) {
        if (w->cells[c].is_counted)
            begin_stretch(w, c, p->initial[c], p->cells[c].uninitialised);
    }
    good = follow_all(w, &f, counted);
release:
    free(f.at);
    free(f.first_reg);
    free(f.value);
    free(f.regs);
    return good;
}

/* --- lists by cell --------------------------------------------------------------------------- */

static int changes_by_cell(const void *a, const void *b)
{
    const struct cell_change *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    /* The order of the execution: counts rise, and who begins a stretch counts. */
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    if (x->begins != y->begins)
        return x->begins ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

static int stretches_by_cell(const void *a, const void *b)
{
    const struct count_stretch *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static bool sort_by_cell(struct counted_work *w)
{
    uint32_t ncells = w->p->ncells;
    w->first_change = calloc(ncells + 2u, sizeof *w->first_change);
    w->first_stretch = calloc(ncells + 2u, sizeof *w->first_stretch);
    if (!w->first_change || !w->first_stretch)
        return false;
    if (w->changes.len)
        qsort(w->changes.at, w->changes.len, sizeof *w->changes.at, changes_by_cell);
    if (w->stretches.len)
        qsort(w->stretches.at, w->stretches.len, sizeof *w->stretches.at, stretches_by_cell);
    for (size_t i = 0; i < w->changes.len; i++)
        w->first_change[w->changes.at[i].cell + 1]++;
    for (size_t i = 0; i < w->stretches.len; i++)
        w->first_stretch[w->stretches.at[i].cell + 1]++;
    for (uint32_t c = 0; c < ncells; c++) {
        w->first_change[c + 1] += w->first_change[c];
        w->first_stretch[c + 1] += w->first_stretch[c];
    }
    for (uint32_t c = 0; c < ncells; c++) {
        uint32_t next = w->first_stretch[c] + 1;
        for (uint32_t i = w->first_change[c]; i < w->first_change[c + 1]; i++) {
            if (w->changes.at[i].begins)
                w->stretches.at[next++].change = i - w->first_change[c];
        }
    }
    return true;
}

/* --- conditions ------------------------------------------------------------------------------ */

/* The change comes before `later` has taken `steps` steps. In one thread it does: it did. Of a cell
 * that is only changed by steps that read it, each change finds the one before. */
static void demand_order(struct counted_work *w, const struct cell_change *x, uint32_t later,
                         uint32_t steps)
{
    const struct counted_cell *c = &w->cells[x->cell];
    struct precedes order = {x->thread, x->step, later, steps, !c->is_looked_at && !c->is_set, 0};
    if (x->thread != later && !peal_vec_push(&w->orders, order))
        w->failed = true;
}

/* Every change between two that begin a stretch comes after the one and before the other. One
 * question per thread and side is enough. */
static void order_changes(struct counted_work *w, uint32_t cell, uint32_t *seen)
{
    const struct cell_change *at = w->changes.at;
    uint32_t from = w->first_change[cell], end = w->first_change[cell + 1], begun = PEAL_NONE;
    for (uint32_t i = from; i < end; i++) {
        if (begun != PEAL_NONE && (at[i].begins || seen[at[i].thread] <= begun))
            demand_order(w, &at[begun], at[i].thread, at[i].step + 1);
        seen[at[i].thread] = i + 1;
        if (at[i].begins)
            begun = i;
    }
    memset(seen, 0xff, w->p->nthreads * sizeof *seen);
    begun = PEAL_NONE;
    for (uint32_t i = end; i-- > from;) {
        if (begun != PEAL_NONE && (seen[at[i].thread] == PEAL_NONE || seen[at[i].thread] >= begun))
            demand_order(w, &at[i], at[begun].thread, at[begun].step + 1);
        seen[at[i].thread] = i;
        if (at[i].begins)
            begun = i;
    }
    memset(seen, 0, w->p->nthreads * sizeof *seen);
}

/* When the user of the cell stands before its step, the cell has reached this count: so it has if
 * all changes up to there have been made that its stretch has in the execution. */
static void demand_reached(struct counted_work *w, const struct counted_use *use, int64_t count)
{
    const struct cell_change *at = w->changes.at + w->first_change[use->cell];
    uint32_t n = w->first_change[use->cell + 1] - w->first_change[use->cell];
    uint32_t i = 0;
    if (count <= 0)
        return;
    while (i < n && at[i].count < count)
        i++;
    for (; i < n; i--) {
        demand_order(w, &at[i], use->thread, use->step);
        if (at[i].begins || i == 0)
            break;
    }
}

/* The counts of one stretch that satisfy the use; first == end: none. */
struct counts {
    int64_t first, end;
};

static struct counts satisfied_in(const struct counted_work *w, const struct counted_use *use,
                                  uint32_t number)
{
    const struct count_stretch *s = counted_stretch(w, use->cell, number);
    bool is_last = number + 1 == w->cells[use->cell].stretches;
    int64_t end = is_last ? NEVER : s[1].first;
    int64_t above = use->want - s->value; /* counts from the first to the one with this value */
    struct counts found = {s->first, end};
    if (s->is_unknown)
        return found;
    if (use->or_less) {
        found.end = above < 0 ? found.first : found.first + above + 1;
    } else if (use->at_least) {
        found.first += above > 0 ? above : 0;
    } else {
        found.first = above < 0 ? end : s->first + above;
        found.end = found.first + 1;
    }
    if (found.first >= end || found.end <= found.first)
        return (struct counts){end, end};
    found.end = found.end < end ? found.end : end;
    return found;
}

static bool is_none(struct counts c)
{
    return c.first >= c.end;
}

/* Before `number` there is a stretch that would satisfy the use: it must be over by then. */
static void exclude_earlier(struct counted_work *w, const struct counted_use *use, uint32_t number)
{
    while (number-- > 0) {
        struct counts earlier = satisfied_in(w, use, number);
        if (!is_none(earlier)) {
            demand_reached(w, use, earlier.end);
            return;
        }
    }
}

static void demand_below(struct counted_work *w, const struct counted_use *use, int64_t count)
{
    struct ceiling ceiling = {use->thread, use->step, use->cell, count, 0};
    if (count < NEVER && !peal_vec_push(&w->ceilings, ceiling))
        w->failed = true;
}

/* The cell of a lane that takes from it: only the stretch of the execution counts, since in others
 * it would have taken another amount. */
static struct counts place_taken(struct counted_work *w, const struct counted_use *use)
{
    struct counts now = satisfied_in(w, use, use->stretch);
    if (use->stretch > 0)
        demand_reached(w, use, counted_stretch(w, use->cell, use->stretch)->first);
    return now;
}

/* The satisfying counts around the one that was found, over all stretches that follow each other
 * without a gap. */
static struct counts place_free(struct counted_work *w, const struct counted_use *use)
{
    struct counts now = satisfied_in(w, use, use->stretch);
    uint32_t first = use->stretch, last = use->stretch;
    while (first > 0 && now.first == counted_stretch(w, use->cell, first)->first) {
        struct counts before = satisfied_in(w, use, first - 1);
        if (counted_stretch(w, use->cell, first - 1)->is_unknown || is_none(before) ||
            before.end != now.first)
            break;
        now.first = before.first;
        first--;
    }
    while (last + 1 < w->cells[use->cell].stretches &&
           now.end == counted_stretch(w, use->cell, last + 1)->first) {
        struct counts next = satisfied_in(w, use, last + 1);
        if (is_none(next) || next.first != now.end)
            break;
        now.end = next.end;
        last++;
    }
    exclude_earlier(w, use, first);
    return now;
}

static void place_use(struct counted_work *w, const struct counted_use *use,
                      struct program *counted)
{
    if (use->takes) {
        exclude_earlier(w, use, use->stretch);
        return;
    }
    bool is_taken_from = w->cells[use->cell].is_taken_from;
    struct counts now = is_taken_from ? place_taken(w, use) : place_free(w, use);
    if (use->count < now.first || use->count >= now.end) {
        w->failed = true;
        return;
    }
    demand_below(w, use, now.end);
    if (use->reads)
        demand_reached(w, use, now.first);
    else
        counted->steps[w->p->threads[use->thread].first_step + use->step].value = now.first;
}

static bool place_all(struct counted_work *w, struct program *counted)
{
    uint32_t *seen = calloc(w->p->nthreads + 1u, sizeof *seen);
    if (!seen)
        return false;
    for (uint32_t c = 0; c < w->p->ncells; c++)
        order_changes(w, c, seen);
    free(seen);
    for (size_t i = 0; i < w->uses.len && !w->failed; i++)
        place_use(w, &w->uses.at[i], counted);
    return !w->failed;
}

/* --- the counted program --------------------------------------------------------------------- */

static bool copy_program(struct counted_program *c, const struct program *p)
{
    c->p = *p;
    c->p.steps = malloc((p->nsteps + 1) * sizeof *c->p.steps);
    c->p.cells = malloc((p->ncells + 1u) * sizeof *c->p.cells);
    c->p.initial = malloc((p->ncells + 1u) * sizeof *c->p.initial);
    if (!c->p.steps || !c->p.cells || !c->p.initial)
        return false;
    memcpy(c->p.steps, p->steps, p->nsteps * sizeof *c->p.steps);
    memcpy(c->p.cells, p->cells, p->ncells * sizeof *c->p.cells);
    memcpy(c->p.initial, p->initial, p->ncells * sizeof *c->p.initial);
    c->p.monotone = true;
    c->p.has_peeked = false;
    return true;
}

/* In the counted program they are shared cells, which launches count on. */
static void finish_cells(struct counted_program *c, bool repeats)
{
    for (uint32_t i = 0; i < c->p.ncells; i++) {
        struct cell *cell = &c->p.cells[i];
        if (!c->work->cells[i].is_counted)
            continue;
        cell->kind = repeats ? CELL_SHARED : CELL_RAW;
        cell->falls = cell->uninitialised = cell->sets = cell->relaxed = false;
        cell->adds = true;
        cell->writer = PEAL_NONE;
        c->p.initial[i] = 0;
    }
    for (uint32_t t = 0; t < c->p.nthreads; t++) {
        for (uint32_t i = 0; i < c->p.threads[t].nsteps; i++) {
            const struct step *s = peal_program_step(&c->p, t, i);
            if (!c->work->cells[s->cell].is_counted || !peal_step_counts(s))
                continue;
            join_thread(&c->p.cells[s->cell].writer, t);
            if (!peal_step_releases(s))
                c->p.cells[s->cell].relaxed = true;
        }
    }
}

bool peal_counted_make(struct counted_program *c, const struct program *p)
{
    *c = (struct counted_program){.work = calloc(1, sizeof *c->work)};
    struct counted_work *w = c->work;
    if (!w || p->guards || p->pairwise || !copy_program(c, p))
        return false;
    w->p = p;
    w->cells = calloc(p->ncells + 1u, sizeof *w->cells);
    w->resolved = calloc(p->nsteps + 1, sizeof *w->resolved);
    if (!w->cells || !w->resolved || !choose_cells(w) || (p->has_relaxed && !weak_orders_fit(w)) ||
        !follow(w, &c->p) || !sort_by_cell(w) || !place_all(w, &c->p))
        return false;
    c->launches = peal_counted_repeats(w, &c->p);
    finish_cells(c, c->launches > 0);
    return true;
}

void peal_counted_release(struct counted_program *c)
{
    struct counted_work *w = c->work;
    if (w) {
        free(w->cells);
        free(w->resolved);
        free(w->first_change);
        free(w->first_stretch);
        peal_vec_release(&w->changes);
        peal_vec_release(&w->stretches);
        peal_vec_release(&w->uses);
        peal_vec_release(&w->orders);
        peal_vec_release(&w->ceilings);
    }
    free(w);
    free(c->p.steps);
    free(c->p.cells);
    free(c->p.initial);
    *c = (struct counted_program){0};
}

/* --- asking ---------------------------------------------------------------------------------- */

/* In the program in which every step orders, it is only about time. */
static bool ask_orders(const struct counted_program *c, bool in_time, uint32_t workers)
{
    struct counted_work *w = c->work;
    struct program p = c->p;
    struct clock_query *queries = malloc((w->orders.len + 1) * sizeof *queries);
    size_t n = 0;
    if (!queries)
        return false;
    for (size_t i = 0; i < w->orders.len; i++) {
        struct precedes *o = &w->orders.at[i];
        if (o->in_time == in_time)
            queries[n++] = (struct clock_query){o->thread, o->later, o->steps, &o->clock};
    }
    p.has_relaxed = p.has_relaxed && !in_time;
    bool good = n == 0 || peal_order_clocks(&p, queries, n, workers);
    free(queries);
    return good;
}

static int by_place(const void *a, const void *b)
{
    const struct ceiling *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

/* Holds each thread back before each of its steps that has a ceiling. Of lanes that do the same, one
 * is enough. */
static bool ask_ceilings(const struct counted_program *c)
{
    struct counted_work *w = c->work;
    struct lane_groups lanes;
    struct run run;
    if (!w->ceilings.len)
        return true;
    if (peal_lanes_find(&lanes, &c->p, c->p.steps)) {
        size_t kept = 0;
        for (size_t i = 0; i < w->ceilings.len; i++) {
            if (peal_lanes_stands(&lanes, w->ceilings.at[i].thread))
                w->ceilings.at[kept++] = w->ceilings.at[i];
        }
        w->ceilings.len = kept;
        peal_lanes_release(&lanes);
    }
    qsort(w->ceilings.at, w->ceilings.len, sizeof *w->ceilings.at, by_place);
    if (!peal_run_init(&run, &c->p))
        return false;
    for (size_t i = 0; i < w->ceilings.len; i++) {
        struct ceiling *ceiling = &w->ceilings.at[i];
        if (i == 0 || ceiling->thread != ceiling[-1].thread) {
            peal_run_reset(&run);
            run.limit[ceiling->thread] = 0;
            peal_run_go(&run);
        }
        peal_run_allow(&run, ceiling->thread, ceiling->step);
        peal_run_go(&run);
        ceiling->found = run.value[ceiling->cell];
    }
    peal_run_release(&run);
    return true;
}

static void add_hold(struct counted_program *c, uint32_t thread, uint32_t step)
{
    if (c->nholds < MAX_HOLDS)
        c->holds[c->nholds++] = (struct hold){{thread, PEAL_NONE}, {step, 0}};
}

bool peal_counted_ask(struct counted_program *c, uint32_t workers)
{
    struct counted_work *w = c->work;
    bool same = true;
    if (!ask_orders(c, false, workers) || !ask_orders(c, true, workers) || !ask_ceilings(c))
        return false;
    for (size_t i = 0; i < w->ceilings.len; i++) {
        const struct ceiling *ceiling = &w->ceilings.at[i];
        if (ceiling->found >= ceiling->below) {
            add_hold(c, ceiling->thread, ceiling->step);
            same = false;
        }
    }
    for (size_t i = 0; i < w->orders.len; i++) {
        const struct precedes *order = &w->orders.at[i];
        if (order->clock <= order->step) {
            add_hold(c, order->thread, order->step);
            same = false;
        }
    }
    return same;
}
