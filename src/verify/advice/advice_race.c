/* SPDX-License-Identifier: Apache-2.0 */
/* What would fix a race between two lines. A notify or wait that exists may stand in the wrong
 * place: moving it is tried first. Then: a notify after the one line and a wait before the other,
 * in the same step, the next step or the next launch; a notify at the end of the launch; a barrier;
 * a second slot for the buffer. */
#include "verify/advice/adviser.h"

#include <string.h>

/* One of the two accesses that collide. It stands for all ops that do the same: read or write that
 * buffer on the rank at that distance. */
struct line {
    uint32_t thread, pos, rank, lane;
    uint32_t memory, distance;
    bool writes;
};

static bool does_the_same(const struct program *p, const struct line *line, const struct access *a)
{
    uint32_t n = p->nranks, rank = p->threads[a->thread].rank;
    return peal_access_has_op(a) && p->threads[a->thread].lane == line->lane &&
           a->location / n == line->memory && (a->kind != ACCESS_READ) == line->writes &&
           (a->location % n + n - rank) % n == line->distance;
}

struct pair {
    uint32_t cell;    /* of the thread that waits */
    uint32_t total;   /* notifies per launch */
    uint32_t late;    /* the k-th wait needs k - late notifies */
    bool steps;       /* waits for steps of the same launch */
    bool last_launch; /* the first wait is for all of the previous launch */
};

typedef void queue_step(struct edit *, struct insertion, uint32_t k, const struct pair *);

/* Calls `queue` for every such op of a thread; k is the op's number within the launch, from 1.
 * Returns how many there are per launch. */
static uint32_t queue_line(struct edit *e, const struct program *p, const struct line *line,
                           uint32_t thread, queue_step *queue, const struct pair *with)
{
    uint32_t k = 0, launch = PEAL_NONE, op = PEAL_NONE, first = 0;
    for (size_t i = 0; i < p->accesses.len; i++) {
        const struct access *a = &p->accesses.at[i];
        if (a->thread != thread || !does_the_same(p, line, a) || a->op == op)
            continue;
        if (a->launch == launch)
            k = k + 1;
        else
            k = 1;
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
    in.step = (struct step){.cell = with->cell, .kind = STEP_ADD, .value = 1};
    peal_edit_insert(e, in);
}

static void queue_wait(struct edit *e, struct insertion in, uint32_t k, const struct pair *with)
{
    uint32_t need = 0;
    if (with->steps && k > with->late)
        need = k - with->late;
    bool first = with->last_launch && k == 1 && in.launch > 0;
    if (need == 0 && !first)
        return;
    if (need >= with->total)
        need = with->total;
    in.step = (struct step){
        .cell = with->cell, .kind = STEP_WAIT, .value = (int64_t)with->total * in.launch + need};
    peal_edit_insert(e, in);
}

enum pair_kind {
    PAIR_SAME_STEP,
    PAIR_NEXT_STEP,
    PAIR_LAST_LAUNCH,
    PAIR_NEXT_AND_LAST, /* the previous step, and for the first step the previous launch */
    PAIR_AT_END,
    PAIR_KINDS
};

/* "after every read like that of line 7 'notify done@((rank + 1) % nranks) += 1'" */
static const char *notify_text(struct adviser *v, const struct line *from, const struct line *to)
{
    uint32_t n = v->p->nranks, distance = (to->rank + n - from->rank) % n;
    const char *line = peal_adviser_line(v, from->pos);
    const char *access = from->writes ? "write" : "read";
    if (distance == 0)
        return peal_answer_text(v->a, "after every %s like that of %s 'notify done += 1'", access,
                                line);
    return peal_answer_text(v->a, "after every %s like that of %s 'notify done@%s += 1'", access,
                            line, peal_adviser_neighbour(v, distance));
}

static const char *pair_text(struct adviser *v, const struct line *from, const struct line *to,
                             enum pair_kind kind, uint32_t total)
{
    const char *does = notify_text(v, from, to), *access = to->writes ? "write" : "read";
    const char *line = peal_adviser_line(v, to->pos);
    switch (kind) {
    case PAIR_SAME_STEP:
    case PAIR_NEXT_STEP:
        return peal_answer_text(
            v->a, "%s, and before every %s like that of %s, the k-th, 'wait done >= k%s'", does,
            access, line, kind == PAIR_NEXT_STEP ? " - 1" : "");
    case PAIR_NEXT_AND_LAST:
        return peal_answer_text(v->a,
                                "%s, and before every %s like that of %s, the k-th, 'wait done "
                                ">= k - 1', the first 'wait done >= %u at launch - 1'",
                                does, access, line, total);
    case PAIR_LAST_LAUNCH:
        return peal_answer_text(
            v->a, "%s, and before the first %s like that of %s 'wait done >= %u at launch - 1'",
            does, access, line, total);
    default:
        return peal_answer_text(v->a, "%s, and at the end of the kernel 'wait done >= %u'", does,
                                total);
    }
}

/* The thread of a rank in a lane, or PEAL_NONE. */
static uint32_t thread_of(const struct program *p, uint32_t rank, uint32_t lane)
{
    uint32_t t = p->thread_of_rank[rank] + lane;
    if (t >= p->thread_of_rank[rank + 1])
        return PEAL_NONE;
    return t;
}

/* Queues the notifies and waits of one direction: rank r notifies rank r + distance. */
static void queue_pairs(struct edit *e, const struct program *p, const struct line *from,
                        const struct line *to, enum pair_kind kind)
{
    uint32_t n = p->nranks, distance = (to->rank + n - from->rank) % n;
    for (uint32_t r = 0; r < n; r++) {
        uint32_t target = (r + distance) % n;
        uint32_t notifies = thread_of(p, r, from->lane), waits = thread_of(p, target, to->lane);
        if (notifies == PEAL_NONE || waits == PEAL_NONE)
            continue;
        struct pair pair = {p->ncells + target, queue_line(e, p, from, notifies, NULL, NULL),
                            kind == PAIR_NEXT_STEP || kind == PAIR_NEXT_AND_LAST,
                            kind != PAIR_LAST_LAUNCH,
                            kind == PAIR_LAST_LAUNCH || kind == PAIR_NEXT_AND_LAST};
        queue_line(e, p, from, notifies, queue_notify, &pair);
        if (kind != PAIR_AT_END) {
            queue_line(e, p, to, waits, queue_wait, &pair);
            continue;
        }
        for (uint32_t l = 0; l < p->launches; l++) {
            peal_edit_insert(e,
                             (struct insertion){.thread = waits,
                                                .launch = l,
                                                .op = PEAL_NONE,
                                                .step = {.cell = pair.cell,
                                                         .kind = STEP_WAIT,
                                                         .value = (int64_t)pair.total * (l + 1)}});
        }
    }
}

static bool try_pair(struct adviser *v, const struct line *from, const struct line *to,
                     enum pair_kind kind)
{
    struct edit e;
    uint32_t total = 0;
    if (from->rank == to->rank && from->lane == to->lane)
        return false;
    bool good = peal_edit_begin(&e, v->p, v->p->nranks);
    if (good) {
        queue_pairs(&e, v->p, from, to, kind);
        total = queue_line(&e, v->p, from, from->thread, NULL, NULL);
        good = e.insertions.len && peal_edit_apply(&e) && peal_adviser_fixes(v, &e);
    }
    peal_edit_end(&e);
    if (good)
        peal_advise(v, true, pair_text(v, from, to, kind, total), from->pos, to->pos);
    return good;
}

/* One of the two accesses as a line. False: it is the caller's own access, on no line of the
 * kernel. */
static bool make_line(const struct adviser *v, uint32_t i, uint32_t memory, struct line *out)
{
    const struct program *p = v->p;
    const struct peal_verify_access *a = &v->a->v.accesses_at[i];
    const struct peal_verify_step *s = &v->a->v.steps[a->step];
    if (s->op == PEAL_NONE)
        return false;
    out->thread = p->thread_of_rank[s->rank] + s->lane;
    out->rank = s->rank;
    out->lane = s->lane;
    out->pos = peal_edit_line(p, out->thread, p->threads[out->thread].first_op[s->launch] + s->op);
    out->writes = a->writes;
    out->distance = (a->rank + p->nranks - s->rank) % p->nranks;
    out->memory = memory;
    return true;
}

/* --- moving ---------------------------------------------------------------------------------- */

/* Moves the notify of a line to after the line of an access, or the wait to before it. */
static bool try_move(struct adviser *v, uint32_t line, uint32_t to, bool notify)
{
    struct edit e;
    bool good = peal_edit_begin(&e, v->p, 0) && peal_edit_move(&e, line, to, notify) &&
                peal_edit_apply(&e) && peal_adviser_fixes(v, &e);
    peal_edit_end(&e);
    if (good)
        peal_advise(v, true,
                    peal_answer_text(v->a,
                                     notify ? "move the notify at %s to after %s"
                                            : "move the wait at %s to before %s",
                                     peal_adviser_line(v, line), peal_adviser_line(v, to)),
                    line, to);
    return good;
}

/* Looks for a notify that comes before what it announces, or a wait that comes after what it
 * protects. */
static bool try_moves(struct adviser *v, const struct line *line)
{
    uint32_t lines[MAX_LINES];
    for (uint32_t notify = 0; notify < 2; notify++) {
        uint32_t n = peal_adviser_lines(v->p, notify ? PEAL_OP_NOTIFY : PEAL_OP_WAIT, lines);
        for (uint32_t i = 0; i < 2 * n; i++) {
            uint32_t to = line[i % 2].pos;
            if (to != PEAL_NONE && try_move(v, lines[i / 2], to, notify != 0))
                return true;
        }
    }
    return false;
}

void peal_advice_sequence(struct adviser *v)
{
    struct line line[2];
    bool race = v->a->v.fault == PEAL_FAULT_RACE && v->a->v.naccesses == 2;
    bool lines = race && make_line(v, 0, 0, &line[0]) && make_line(v, 1, 0, &line[1]);
    if (lines)
        (void)try_moves(v, line);
    if (peal_adviser_try_barrier(v, PEAL_NONE) || !lines)
        return;
    for (uint32_t i = 0; i < 2; i++) {
        if (line[i].pos != PEAL_NONE && peal_adviser_try_barrier(v, line[i].pos))
            return;
    }
}

/* Tries every kind of pair, in both directions. */
static void try_pairs(struct adviser *v, const struct line *line)
{
    for (uint32_t kind = 0; kind < PAIR_KINDS; kind++) {
        for (uint32_t i = 0; i < 2; i++) {
            if (try_pair(v, &line[i], &line[1 - i], (enum pair_kind)kind))
                return;
        }
    }
}

void peal_advice_race(struct adviser *v)
{
    const struct program *p = v->p;
    struct line line[2];
    uint32_t memory = 0;
    bool lines = true;
    while (memory + 1 < p->memory.len &&
           strcmp(p->memory.at[memory].name, v->a->v.accesses_at[0].buf) != 0)
        memory++;
    for (uint32_t i = 0; i < 2; i++)
        lines = make_line(v, i, memory, &line[i]) && lines;
    if (lines) {
        (void)try_moves(v, line);
        try_pairs(v, line);
    }
    bool barrier = peal_adviser_try_barrier(v, PEAL_NONE);
    if (!lines)
        return;
    if (!barrier && !peal_adviser_try_barrier(v, line[0].pos))
        (void)peal_adviser_try_barrier(v, line[1].pos);
    peal_advice_slot(v, memory, line[0].pos);
}
