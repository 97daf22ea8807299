/* SPDX-License-Identifier: Apache-2.0 */
/* The model is in docs/verifier.md, "Orders, fences and scopes". See executions.h. */
#include "random/executions.h"

static const struct op *op_of(const struct kernel *k, unsigned id)
{
    unsigned lane = id / STRIDE;
    return &k->ops[lane][k->nops[lane] ? id % STRIDE % k->nops[lane] : 0];
}

static bool reads(const struct op *op)
{
    return op->kind == WAIT || op->kind == WAIT_EQUAL || op->kind == PEEK || op->kind == FETCH ||
           op->kind == ADD || op->kind == SWAP || op->kind == TAKE;
}

static bool may_write(const struct op *op)
{
    return op->kind == ADD || op->kind == SET || op->kind == FETCH || op->kind == SWAP ||
           op->kind == TAKE;
}

static bool is_access(const struct op *op)
{
    return op->kind == READ || op->kind == WRITE || op->kind == IF_WRITE || op->kind == SEND ||
           op->kind == RECV;
}

static bool is_done(const struct execution *e, unsigned id)
{
    return e->done >> id & 1;
}

/* Has it changed its cell? */
static bool wrote(const struct kernel *k, const struct execution *e, unsigned id)
{
    const struct op *op = op_of(k, id);
    return is_done(e, id) && may_write(op) && (op->kind != SWAP || e->found[id] == op->value);
}

static unsigned launch_of(const struct kernel *k, unsigned id)
{
    return id % STRIDE / k->nops[id / STRIDE];
}

static unsigned end_of(const struct kernel *k, unsigned lane)
{
    return lane * STRIDE + k->nops[lane] * k->launches;
}

/* A notify that adds reads its cell, but never acquires. */
static bool acquires(const struct op *op)
{
    return (op->bits & ACQUIRES) && reads(op) && op->kind != ADD;
}

static unsigned least_scope(const struct kernel *k, unsigned a, unsigned b)
{
    unsigned x = a / STRIDE, y = b / STRIDE;
    if (x == y)
        return BLOCK;
    if (k->rank[x] != k->rank[y])
        return SYSTEM;
    return k->block[x] && k->block[x] == k->block[y] ? BLOCK : DEVICE;
}

static bool meet(const struct kernel *k, unsigned a, unsigned scope_a, unsigned b, unsigned scope_b)
{
    unsigned least = least_scope(k, a, b);
    return scope_a <= least && scope_b <= least;
}

static unsigned narrower(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

typedef uint64_t relation[IDS]; /* [b] bits of all a with a before b */

static void close_relation(relation r)
{
    for (unsigned k = 0; k < IDS; k++) {
        for (unsigned i = 0; i < IDS; i++) {
            if (r[i] >> k & 1)
                r[i] |= r[k];
        }
    }
}

/* What head `w` of a chain that read `r` ends releases, and what r and the fences after it acquire. */
static void synchronise(const struct kernel *k, const struct execution *e, unsigned w, unsigned r,
                        relation hb)
{
    const struct op *head = op_of(k, w), *tail = op_of(k, r);
    for (unsigned f = w - w % STRIDE; f <= w; f++) {
        const struct op *x = op_of(k, f);
        bool fence = f < w && x->kind == FENCE && (x->bits & RELEASES);
        if (!fence && !(f == w && (head->bits & RELEASES)))
            continue;
        unsigned scope_x = narrower(x->scope, head->scope);
        for (unsigned g = r; g < end_of(k, r / STRIDE); g++) {
            const struct op *y = op_of(k, g);
            if (!is_done(e, g))
                continue;
            bool late = g > r && y->kind == FENCE && (y->bits & ACQUIRES);
            if (!late && !(g == r && acquires(tail)))
                continue;
            if (meet(k, w, scope_x, r, narrower(y->scope, tail->scope)))
                hb[g] |= UINT64_C(1) << f;
        }
    }
}

/* All ops of the rank's earlier launches, and those of the lane before this one. */
static uint64_t before_in_rank(const struct kernel *k, unsigned id)
{
    uint64_t before = ((UINT64_C(1) << id % STRIDE) - 1) << (id - id % STRIDE);
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        unsigned earlier = k->nops[lane] * launch_of(k, id);
        if (k->rank[lane] == k->rank[id / STRIDE] && lane != id / STRIDE)
            before |= ((UINT64_C(1) << earlier) - 1) << lane * STRIDE;
    }
    return before;
}

/* The n-th op of this kind on a channel, in all launches; IDS: there are not that many. */
static unsigned message(const struct kernel *k, unsigned lane, unsigned kind, unsigned channel,
                        unsigned n)
{
    for (unsigned id = lane * STRIDE; id < end_of(k, lane); id++) {
        const struct op *op = op_of(k, id);
        if (op->kind == kind && op->place == channel && n-- == 0)
            return id;
    }
    return IDS;
}

/* What a send or recv waits for: the message, or the slot that it needs. IDS: nothing. */
static unsigned partner(const struct kernel *k, unsigned id)
{
    const struct op *op = op_of(k, id);
    unsigned n = 0;
    if (op->kind != SEND && op->kind != RECV)
        return IDS;
    while (message(k, id / STRIDE, op->kind, op->place, n) != id)
        n++;
    if (op->kind == RECV)
        return message(k, k->sender[op->place], SEND, op->place, n);
    if (n < k->depth)
        return IDS;
    return message(k, k->receiver[op->place], RECV, op->place, n - k->depth);
}

static void find_order(const struct kernel *k, const struct execution *e, relation hb)
{
    memset(hb, 0, sizeof(relation));
    for (unsigned id = 0; id < IDS; id++) {
        if (!is_done(e, id))
            continue;
        hb[id] |= before_in_rank(k, id) & e->done;
        const struct op *op = op_of(k, id);
        unsigned other = partner(k, id);
        if (other != IDS)
            hb[id] |= UINT64_C(1) << other;
        if (!reads(op) || op->kind == ADD)
            continue;
        unsigned near = id, w = e->from[id];
        while (w != INITIAL && meet(k, near, op_of(k, near)->scope, w, op_of(k, w)->scope)) {
            synchronise(k, e, w, id, hb);
            if (!reads(op_of(k, w)))
                break;
            near = w;
            w = e->from[w];
        }
    }
    /* A fetch_add is the end of chains, too, and a link of them. */
    close_relation(hb);
}

/* The number of a change in the order of its cell; 0 is the first value. */
static unsigned number_of(const struct kernel *k, const struct execution *e, unsigned id)
{
    if (id == INITIAL)
        return 0;
    unsigned place = op_of(k, id)->place, i = 0;
    while (e->changes[place][i] != id)
        i++;
    return i + 1;
}

struct numbers {
    int read[IDS], write[IDS]; /* -1: it does not */
};

/* May the relaxed change w take effect before the read r, which stands earlier in its lane, as in load buffering? */
static bool may_be_buffered(const struct kernel *k, unsigned r, unsigned w)
{
    const struct op *read = op_of(k, r), *change = op_of(k, w);
    bool loads = read->kind == PEEK || read->kind == FETCH || read->kind == SWAP;
    bool stores =
        change->kind == ADD || change->kind == SET || change->kind == FETCH || change->kind == SWAP;
    if (!loads || !stores || (read->bits & ACQUIRES) || change->bits)
        return false;
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        /* A launch of several lanes begins and ends with a wait for them. */
        if (lane != r / STRIDE && k->rank[lane] == k->rank[r / STRIDE] &&
            launch_of(k, r) != launch_of(k, w))
            return false;
    }
    for (unsigned id = r + 1; id < w; id++) {
        const struct op *op = op_of(k, id);
        bool waits = op->kind == WAIT || op->kind == WAIT_EQUAL || op->kind == TAKE;
        if (waits || op->kind == FENCE || op->kind == SEND || op->kind == RECV || op->bits)
            return false;
    }
    return true;
}

/* Does the op have to be done before the other one, of the same rank, whatever they find? An access has no effect on
 * cells, so that changes need not come after it. */
static bool comes_first(const struct kernel *k, unsigned first, unsigned second)
{
    const struct op *x = op_of(k, first), *y = op_of(k, second);
    if (first / STRIDE != second / STRIDE)
        return true;
    if ((x->kind == READ || x->kind == WRITE || x->kind == IF_WRITE) && may_write(y) &&
        y->kind != TAKE && !y->bits)
        return false;
    return !may_be_buffered(k, first, second);
}

static void find_numbers(const struct kernel *k, const struct execution *e, struct numbers *n)
{
    for (unsigned id = 0; id < IDS; id++) {
        const struct op *op = op_of(k, id);
        n->read[id] = is_done(e, id) && reads(op) ? (int)number_of(k, e, e->from[id]) : -1;
        n->write[id] = wrote(k, e, id) ? (int)number_of(k, e, id) : -1;
    }
}

static bool same_cell(const struct kernel *k, const struct numbers *n, unsigned a, unsigned b)
{
    bool cells = (n->read[a] >= 0 || n->write[a] >= 0) && (n->read[b] >= 0 || n->write[b] >= 0);
    return cells && a != b && op_of(k, a)->place == op_of(k, b)->place;
}

/* Does b come before a by reads-from, the order of changes, or as a read before later changes? */
static bool comes_before(const struct numbers *n, unsigned b, unsigned a)
{
    bool ww = n->write[b] >= 0 && n->write[b] < n->write[a];
    bool wr = n->write[b] >= 0 && n->write[b] <= n->read[a];
    bool rw = n->read[b] >= 0 && n->read[b] < n->write[a];
    bool rr = n->read[b] >= 0 && n->read[b] < n->read[a];
    return ww || wr || rw || rr;
}

static bool is_full(const struct kernel *k, const struct execution *e, unsigned id)
{
    return is_done(e, id) && op_of(k, id)->kind == FENCE && (op_of(k, id)->bits & FULL);
}

/* Full fences have one order that agrees with program order, reads-from, and what they let be seen. */
static bool fences_agree(const struct kernel *k, const struct execution *e, const relation hb,
                         const struct numbers *n)
{
    relation order;
    bool any = false;
    for (unsigned id = 0; id < IDS; id++) {
        order[id] = 0;
        if (!is_done(e, id))
            continue;
        any = any || is_full(k, e, id);
        for (unsigned b = 0; b < id % STRIDE; b++) {
            if (comes_first(k, id - b - 1, id))
                order[id] |= UINT64_C(1) << (id - b - 1);
        }
        order[id] |= before_in_rank(k, id) & ~(UINT64_C(0xffff) << (id - id % STRIDE));
        order[id] &= e->done;
        if (reads(op_of(k, id)) && e->from[id] != INITIAL)
            order[id] |= UINT64_C(1) << e->from[id];
        if (partner(k, id) != IDS)
            order[id] |= UINT64_C(1) << partner(k, id);
    }
    if (!any)
        return true;
    for (unsigned f = 0; f < IDS; f++) {
        for (unsigned g = 0; is_full(k, e, f) && g < IDS; g++) {
            if (!is_full(k, e, g) || f == g ||
                !meet(k, f, op_of(k, f)->scope, g, op_of(k, g)->scope))
                continue;
            for (unsigned a = 0; a < IDS; a++) {
                for (unsigned b = 0; (hb[a] >> f & 1) && b < IDS; b++) {
                    if ((hb[g] >> b & 1) && same_cell(k, n, a, b) && comes_before(n, a, b))
                        order[g] |= UINT64_C(1) << f;
                }
            }
        }
    }
    close_relation(order);
    for (unsigned f = 0; f < IDS; f++) {
        if (order[f] >> f & 1)
            return false;
    }
    return true;
}

static bool is_consistent(const struct kernel *k, const struct execution *e, relation hb)
{
    struct numbers n;
    find_order(k, e, hb);
    find_numbers(k, e, &n);
    for (unsigned a = 0; a < IDS; a++) {
        if (hb[a] >> a & 1)
            return false;
        if (n.read[a] >= 0 && n.write[a] >= 0 && n.write[a] != n.read[a] + 1)
            return false;
        for (unsigned b = 0; b < IDS; b++) {
            if ((hb[b] >> a & 1) && same_cell(k, &n, a, b) && comes_before(&n, b, a))
                return false;
        }
    }
    return fences_agree(k, e, hb, &n);
}

/* --- enumeration ----------------------------------------------------------------------------- */

static bool is_done_access(const struct kernel *k, const struct execution *e, unsigned id)
{
    return is_done(e, id) && is_access(op_of(k, id)) &&
           (op_of(k, id)->kind != IF_WRITE || e->left[id]);
}

static unsigned buffer_of(const struct op *op)
{
    return op->kind == SEND || op->kind == RECV ? (unsigned)op->value : op->place;
}

static bool only_reads(const struct op *op)
{
    return op->kind == READ || op->kind == SEND;
}

static bool has_race(const struct kernel *k, const struct execution *e, const relation hb)
{
    for (unsigned a = 0; a < IDS; a++) {
        for (unsigned b = a + 1; is_done_access(k, e, a) && b < IDS; b++) {
            const struct op *x = op_of(k, a), *y = op_of(k, b);
            if (is_done_access(k, e, b) && a / STRIDE != b / STRIDE &&
                buffer_of(x) == buffer_of(y) && !(only_reads(x) && only_reads(y)) &&
                !(hb[b] >> a & 1) && !(hb[a] >> b & 1))
                return true;
        }
    }
    return false;
}

static bool satisfies(const struct op *op, int value)
{
    if (op->kind == WAIT)
        return value >= op->value;
    return (op->kind != WAIT_EQUAL && op->kind != TAKE) || value == op->value;
}

static int value_of(const struct execution *e, unsigned id)
{
    return id == INITIAL ? 0 : e->left[id];
}

/* The lane's first op that is not done. */
static unsigned next_of(const struct kernel *k, const struct execution *e, unsigned lane)
{
    unsigned id = lane * STRIDE;
    while (id < end_of(k, lane) && is_done(e, id))
        id++;
    return id;
}

/* Has every lane done what stands before what it has done? */
static bool has_no_gap(const struct kernel *k, const struct execution *e)
{
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        unsigned next = next_of(k, e, lane);
        uint64_t own = (e->done >> lane * STRIDE) & 0xffff;
        if (own >> next % STRIDE)
            return false;
    }
    return true;
}

static void enumerate(struct oracle *o, const struct execution *from);

/* Goes on from an execution that may be none. */
static void try(struct oracle *o, const struct execution *e)
{
    relation hb;
    if (!is_consistent(o->k, e, hb))
        return;
    o->race = o->race || (has_no_gap(o->k, e) && has_race(o->k, e, hb));
    if (seen_add(&o->seen, e))
        enumerate(o, e);
}

static void insert(struct execution *e, unsigned place, unsigned at, unsigned id)
{
    for (unsigned i = e->count[place]++; i > at; i--)
        e->changes[place][i] = e->changes[place][i - 1];
    e->changes[place][at] = (uint8_t)id;
}

static int after(const struct op *op, int found)
{
    if (op->kind == SWAP || op->kind == TAKE)
        return op->desired;
    return op->kind == SET ? op->value : found + op->value;
}

static void step(struct oracle *o, const struct execution *from, unsigned id)
{
    const struct op *op = op_of(o->k, id);
    bool on_cell = reads(op) || may_write(op);
    unsigned place = op->place, n = on_cell ? from->count[place] : 0;
    for (unsigned i = 0; i <= n && !o->seen.full; i++) {
        struct execution e = *from;
        e.done |= UINT64_C(1) << id;
        if (op->kind == IF_WRITE)
            e.left[id] = from->found[id - 1] == op->value;
        if (reads(op)) {
            unsigned w = i ? from->changes[place][i - 1] : INITIAL;
            if (!satisfies(op, value_of(from, w)))
                continue;
            e.from[id] = (uint8_t)w;
            e.found[id] = (int8_t)value_of(from, w);
        }
        if (wrote(o->k, &e, id)) {
            e.left[id] = (int8_t)after(op, e.found[id]);
            insert(&e, place, i, id);
        }
        try(o, &e);
    }
}

/* Can the op be the next one? */
static bool is_ready(const struct kernel *k, const struct execution *e, unsigned id)
{
    uint64_t before = before_in_rank(k, id) & ~e->done;
    unsigned other = partner(k, id);
    if (is_done(e, id) || (other != IDS && !is_done(e, other)))
        return false;
    for (unsigned b = 0; b < IDS; b++) {
        if ((before >> b & 1) && comes_first(k, b, id))
            return false;
    }
    return true;
}

/* Does the lane wait for what the last change of the cell is not, or for a message, a slot, or other lanes? */
static bool is_stuck(const struct kernel *k, const struct execution *e, unsigned lane)
{
    unsigned id = next_of(k, e, lane);
    if (id == end_of(k, lane) || (before_in_rank(k, id) & ~e->done))
        return true;
    const struct op *op = op_of(k, id);
    if (op->kind == SEND || op->kind == RECV)
        return !is_ready(k, e, id);
    if (op->kind != WAIT && op->kind != WAIT_EQUAL && op->kind != TAKE)
        return false;
    unsigned n = e->count[op->place];
    return !satisfies(op, value_of(e, n ? e->changes[op->place][n - 1] : INITIAL));
}

static void enumerate(struct oracle *o, const struct execution *from)
{
    const struct kernel *k = o->k;
    bool stuck = has_no_gap(k, from), ended = true;
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        stuck = stuck && is_stuck(k, from, lane);
        ended = ended && next_of(k, from, lane) == end_of(k, lane);
    }
    o->deadlock = o->deadlock || (stuck && !ended);
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        for (unsigned id = next_of(k, from, lane); id < end_of(k, lane); id++) {
            if ((o->race && o->deadlock) || o->seen.full)
                return;
            if (is_ready(k, from, id))
                step(o, from, id);
        }
    }
}

void executions_enumerate(struct oracle *o, const struct kernel *k)
{
    struct execution none = {0};
    o->k = k;
    o->race = o->deadlock = false;
    seen_clear(&o->seen);
    memset(none.from, INITIAL, sizeof none.from);
    enumerate(o, &none);
}
