/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a ring for one number of ranks: what each source finds and what each op writes.
 *
 * All ranks do the same, so what rank r + c has in its memory at a position is what this rank has
 * there. A read of another rank's memory is assumed to happen at the last post that the reader has
 * taken. This is for guessing only: the solver is asked whether it holds in every schedule.
 */
#include "verify/ring/guess.h"

#include <stdlib.h>

struct value {
    int64_t start, length, part;
    bool final, set;
};

struct write {
    uint32_t op;
    int64_t turn;
};

struct trace {
    const struct ring_model *m;
    int64_t family, ranks;
    struct value *values[RING_MAX_OPS]; /* [turn * width + place] */
    struct write *log;                  /* all writes so far, in order */
    size_t nlog, cap;
    uint32_t lane;
    struct ring_samples *origins, *out;
    const char **why;
};

static bool fail(struct trace *t, const char *why)
{
    *t->why = why;
    return false;
}

static int64_t modulo(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest < 0 ? rest + b : rest;
}

static int64_t number(const struct trace *t, struct ring_affine a, int64_t turn)
{
    return ring_at(a, turn, 0, t->family);
}

static bool add_sample(struct ring_samples *to, const struct ring_sample *sample)
{
    if (to->len == to->cap) {
        size_t cap = to->cap ? 2 * to->cap : 256;
        struct ring_sample *more = realloc(to->at, cap * sizeof *more);
        if (!more)
            return false;
        to->at = more;
        to->cap = cap;
    }
    to->at[to->len++] = *sample;
    return true;
}

static struct value *value_of(const struct trace *t, uint32_t op, int64_t turn, int64_t place)
{
    const struct ring_segment *g = &t->m->segments[t->m->ops[op].segment];
    int64_t width = t->m->ops[op].whole ? t->ranks : 1;
    return &t->values[op]
                     [(turn - number(t, g->first, 0)) * width + (t->m->ops[op].whole ? place : 0)];
}

/* The largest threshold that was taken before the op. */
static int64_t taken(const struct trace *t, uint32_t op, int64_t turn, uint32_t sync)
{
    int64_t largest = 0;
    for (uint32_t i = 0; i < t->m->nops; i++) {
        const struct ring_op *take = &t->m->ops[i];
        const struct ring_segment *g = &t->m->segments[take->segment];
        if (take->kind != RING_TAKE || take->sync != sync || take->segment > t->m->ops[op].segment)
            continue;
        int64_t last = number(t, g->end, 0) - 1;
        if (take->segment == t->m->ops[op].segment)
            last = i < op ? turn : turn - 1;
        if (last < number(t, g->first, 0))
            continue;
        int64_t threshold = number(t, take->threshold, last);
        largest = threshold > largest ? threshold : largest;
    }
    return largest;
}

/* Do the takes of the reader at distance -`shift` show that the write has been posted to it? */
static bool is_posted(const struct trace *t, const struct write *w, uint32_t op, int64_t turn,
                      int32_t shift)
{
    for (uint32_t i = 0; i < t->m->nsyncs; i++) {
        if (t->m->syncs[i].shift != -shift || t->m->syncs[i].lane != t->lane)
            continue;
        int64_t before = number(t, peal_ring_before(t->m, w->op, RING_POST, i), w->turn);
        if (before + 1 <= taken(t, op, turn, i))
            return true;
    }
    return false;
}

static int64_t slot_of(const struct trace *t, const struct ring_access *a, int64_t turn)
{
    return modulo(number(t, a->slot, turn), t->m->buffers[a->buffer].slots);
}

static bool covers(const struct trace *t, const struct write *w, const struct ring_access *a,
                   int64_t turn, int64_t place)
{
    const struct ring_access *dest = &t->m->ops[w->op].dest;
    if (dest->buffer != a->buffer || slot_of(t, dest, w->turn) != slot_of(t, a, turn))
        return false;
    if (t->m->buffers[a->buffer].storage != RING_PARTS || dest->whole)
        return true;
    return modulo(number(t, dest->part, w->turn), t->ranks) == place;
}

static const struct write *find_write(const struct trace *t, uint32_t op, int64_t turn,
                                      const struct ring_access *a, int64_t place)
{
    const struct ring_buffer *b = &t->m->buffers[a->buffer];
    int64_t message = 0;
    if (b->storage == RING_MESSAGE)
        message = number(t, peal_ring_before(t->m, op, RING_TAKE, b->sync), turn);
    for (size_t i = t->nlog; i > 0; i--) {
        const struct write *w = &t->log[i - 1];
        if (!covers(t, w, a, turn, place))
            continue;
        if (b->storage == RING_MESSAGE &&
            number(t, peal_ring_before(t->m, w->op, RING_POST, b->sync), w->turn) + 1 != message)
            continue;
        if (a->shift && !is_posted(t, w, op, turn, a->shift))
            continue;
        return w;
    }
    return NULL;
}

/* What a source finds, seen from the reading rank. */
static bool read_source(struct trace *t, uint32_t op, uint32_t source, int64_t turn, int64_t place,
                        struct value *out, uint32_t *writer)
{
    const struct ring_access *a = &t->m->ops[op].source[source];
    const struct ring_buffer *b = &t->m->buffers[a->buffer];
    int32_t shift = b->storage == RING_MESSAGE ? -t->m->syncs[b->sync].shift : a->shift;
    int64_t part = a->whole ? place : number(t, a->part, turn);
    int64_t there = modulo(part - shift, t->ranks);
    const struct write *w = find_write(t, op, turn, a, there);
    if (!w)
        return fail(t, "something is read that is not written before, in the order of the text");
    struct value *found = value_of(t, w->op, w->turn, there);
    struct ring_sample sample = {.op = op,
                                 .source = source,
                                 .family = t->family,
                                 .turn = turn,
                                 .place = place,
                                 .writer = w->op,
                                 .writer_turn = w->turn};
    *out = *found;
    out->start = modulo(found->start + shift, t->ranks);
    out->part = modulo(found->part + shift, t->ranks);
    *writer = w->op;
    return add_sample(t->origins, &sample) ? true : fail(t, "out of memory");
}

/* The ranks of both operands, which must be neighbours in the ring. */
static bool join(struct trace *t, struct value *a, const struct value *b)
{
    if (a->final || b->final || a->part != b->part)
        return fail(t, "a reduction of different parts, or of a result");
    if (modulo(a->start + a->length, t->ranks) != b->start) {
        if (modulo(b->start + b->length, t->ranks) != a->start)
            return fail(t, "a reduction of contributions that are not neighbours");
        a->start = b->start;
    }
    a->length += b->length;
    return true;
}

static bool compute(struct trace *t, uint32_t op, int64_t turn, int64_t place)
{
    const struct ring_op *o = &t->m->ops[op];
    struct ring_sample sample = {.op = op,
                                 .family = t->family,
                                 .turn = turn,
                                 .place = place,
                                 .writers = {PEAL_NONE, PEAL_NONE}};
    struct value v = {.length = 1, .part = o->whole ? place : 0};
    for (uint32_t i = 0; i < o->nsources; i++) {
        struct value next;
        if (!read_source(t, op, i, turn, place, &next, &sample.writers[i]))
            return false;
        if (i == 0)
            v = next;
        else if (!join(t, &v, &next))
            return false;
    }
    if (o->final && v.final)
        return fail(t, "a result that is made final twice");
    v.final = v.final || o->final;
    if (o->kind == RING_OUTPUT)
        return true;
    v.set = true;
    *value_of(t, op, turn, place) = v;
    sample.start = v.start;
    sample.length = v.length;
    sample.part = v.part;
    sample.final = v.final;
    return add_sample(t->out, &sample) ? true : fail(t, "out of memory");
}

static bool log_write(struct trace *t, uint32_t op, int64_t turn)
{
    if (t->nlog == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 256;
        struct write *more = realloc(t->log, cap * sizeof *more);
        if (!more)
            return fail(t, "out of memory");
        t->log = more;
        t->cap = cap;
    }
    t->log[t->nlog++] = (struct write){op, turn};
    return true;
}

static bool run_op(struct trace *t, uint32_t op, int64_t turn)
{
    const struct ring_op *o = &t->m->ops[op];
    if (o->kind == RING_POST || o->kind == RING_TAKE)
        return true;
    int64_t places = o->whole ? t->ranks : 1;
    for (int64_t place = 0; place < places; place++) {
        if (!compute(t, op, turn, place))
            return false;
    }
    return o->kind == RING_OUTPUT || log_write(t, op, turn);
}

static bool run_segment(struct trace *t, const struct ring_segment *g)
{
    for (int64_t turn = number(t, g->first, 0); turn < number(t, g->end, 0); turn++) {
        for (uint32_t i = g->op; i < g->op + g->ops; i++) {
            if (!run_op(t, i, turn))
                return false;
        }
    }
    return true;
}

static bool make_room(struct trace *t)
{
    for (uint32_t i = 0; i < t->m->nops; i++) {
        const struct ring_segment *g = &t->m->segments[t->m->ops[i].segment];
        int64_t turns = number(t, ring_add(g->end, g->first, -1), 0);
        int64_t width = t->m->ops[i].whole ? t->ranks : 1;
        if (turns < 1 || turns > 4096)
            return fail(t, "a loop that is too long to be tried");
        t->values[i] = calloc((size_t)(turns * width), sizeof *t->values[i]);
        if (!t->values[i])
            return fail(t, "out of memory");
    }
    return true;
}

static bool run_lane(struct trace *t)
{
    t->nlog = 0;
    for (uint32_t i = 0; i < t->m->nsegments; i++) {
        if (t->m->segments[i].lane == t->lane && !run_segment(t, &t->m->segments[i]))
            return false;
    }
    return true;
}

bool peal_ring_trace(const struct ring_model *m, int64_t family, struct ring_samples *origins,
                     struct ring_samples *values, const char **why)
{
    struct trace t = {.m = m,
                      .family = family,
                      .ranks = ring_at(ring_ranks(m), 0, 0, family),
                      .origins = origins,
                      .out = values,
                      .why = why};
    bool good = make_room(&t);
    if (good) {
        while (t.lane < m->lanes && run_lane(&t))
            t.lane++;
        good = t.lane == m->lanes;
    }
    for (uint32_t i = 0; i < m->nops; i++)
        free(t.values[i]);
    free(t.log);
    return good;
}
