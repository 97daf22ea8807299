/* SPDX-License-Identifier: Apache-2.0 */
/* random-orders FIRST COUNT: the verifier against the memory model of docs/verifier.md, on random kernels with orders,
 * scopes, blocks and fences.
 *
 * The oracle enumerates executions: for every read of a cell the change that it reads from, for every cell an order of its
 * changes. An execution grows by one op of a lane at a time, in every order that agrees with program order and reads-from;
 * what is reached twice is dropped. It is kept if it is consistent: coherence, atomicity, full fences. A race is two
 * conflicting accesses of which neither happens before the other; a deadlock is an execution in which all lanes that have not
 * ended wait for a value that the last change of the cell is not.
 *
 * Nothing here is shared with src/verify but the plan.
 */
#include "random/seen.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LANES = 3,
    OPS = 7,
    STRIDE = 8,
    IDS = LANES * STRIDE,
    CELLS = 2,
    PLACES = LANES * CELLS,
    SLOTS = 1 << 17
};

enum kind { READ, WRITE, ADD, SET, WAIT, WAIT_EQUAL, FENCE, PEEK, FETCH, IF_WRITE };
enum { RELEASES = 1, ACQUIRES = 2, FULL = 4 };
enum { SYSTEM, DEVICE, BLOCK };

struct op {
    uint8_t kind, place; /* cell: rank * CELLS + index; access: buffer */
    uint8_t bits, scope;
    int8_t value; /* IF_WRITE: what the op before it must have found */
};

struct kernel {
    uint32_t ranks, lanes;
    uint8_t rank[LANES], lane_of[LANES], block[LANES], nops[LANES];
    struct op ops[LANES][OPS];
};

/* --- executions ------------------------------------------------------------------------------ */

/* Events are named by lane and op. INITIAL is the first value of a cell. */
enum { INITIAL = 0xff };
struct execution {
    uint8_t at[LANES];
    uint8_t from[IDS];            /* reads: whose value */
    int8_t found[IDS], left[IDS]; /* values read and written */
    uint8_t changes[PLACES][IDS], count[PLACES];
};

struct oracle {
    const struct kernel *k;
    struct seen seen;
    bool race, deadlock;
};

static const struct op *op_of(const struct kernel *k, unsigned id)
{
    return &k->ops[id / STRIDE][id % STRIDE];
}

static bool reads(const struct op *op)
{
    return op->kind == WAIT || op->kind == WAIT_EQUAL || op->kind == PEEK || op->kind == FETCH ||
           op->kind == ADD;
}

static bool writes(const struct op *op)
{
    return op->kind == ADD || op->kind == SET || op->kind == FETCH;
}

static bool is_done(const struct execution *e, unsigned id)
{
    return id % STRIDE < e->at[id / STRIDE];
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

typedef uint32_t relation[IDS]; /* [b] bits of all a with a before b */

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
    unsigned first = w - w % STRIDE, after = r - r % STRIDE;
    for (unsigned f = first; f <= w; f++) {
        const struct op *x = op_of(k, f);
        bool fence = f < w && x->kind == FENCE && (x->bits & RELEASES);
        if (!fence && !(f == w && (head->bits & RELEASES)))
            continue;
        unsigned scope_x = narrower(x->scope, head->scope);
        for (unsigned g = r; g < after + e->at[r / STRIDE]; g++) {
            const struct op *y = op_of(k, g);
            bool late = g > r && y->kind == FENCE && (y->bits & ACQUIRES);
            if (!late && !(g == r && acquires(tail)))
                continue;
            if (meet(k, w, scope_x, r, narrower(y->scope, tail->scope)))
                hb[g] |= 1u << f;
        }
    }
}

static void find_order(const struct kernel *k, const struct execution *e, relation hb)
{
    memset(hb, 0, sizeof(relation));
    for (unsigned id = 0; id < IDS; id++) {
        if (!is_done(e, id))
            continue;
        if (id % STRIDE)
            hb[id] |= 1u << (id - 1);
        const struct op *op = op_of(k, id);
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

static void find_numbers(const struct kernel *k, const struct execution *e, struct numbers *n)
{
    for (unsigned id = 0; id < IDS; id++) {
        const struct op *op = op_of(k, id);
        n->read[id] = is_done(e, id) && reads(op) ? (int)number_of(k, e, e->from[id]) : -1;
        n->write[id] = is_done(e, id) && writes(op) ? (int)number_of(k, e, id) : -1;
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
        if (id % STRIDE)
            order[id] |= 1u << (id - 1);
        if (reads(op_of(k, id)) && e->from[id] != INITIAL)
            order[id] |= 1u << e->from[id];
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
                        order[g] |= 1u << f;
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

static bool is_access(const struct kernel *k, const struct execution *e, unsigned id)
{
    const struct op *op = op_of(k, id);
    if (!is_done(e, id))
        return false;
    return op->kind == READ || op->kind == WRITE || (op->kind == IF_WRITE && e->left[id]);
}

static bool has_race(const struct kernel *k, const struct execution *e, const relation hb)
{
    for (unsigned a = 0; a < IDS; a++) {
        for (unsigned b = a + 1; is_access(k, e, a) && b < IDS; b++) {
            const struct op *x = op_of(k, a), *y = op_of(k, b);
            if (is_access(k, e, b) && a / STRIDE != b / STRIDE && x->place == y->place &&
                (x->kind != READ || y->kind != READ) && !(hb[b] >> a & 1) && !(hb[a] >> b & 1))
                return true;
        }
    }
    return false;
}

static bool satisfies(const struct op *op, int value)
{
    if (op->kind == WAIT)
        return value >= op->value;
    return op->kind != WAIT_EQUAL || value == op->value;
}

static int value_of(const struct execution *e, unsigned id)
{
    return id == INITIAL ? 0 : e->left[id];
}

static void enumerate(struct oracle *o, const struct execution *from);

/* Goes on from an execution that may be none. */
static void try(struct oracle *o, const struct execution *e)
{
    relation hb;
    if (!is_consistent(o->k, e, hb))
        return;
    o->race = o->race || has_race(o->k, e, hb);
    if (seen_add(&o->seen, e))
        enumerate(o, e);
}

static void insert(struct execution *e, unsigned place, unsigned at, unsigned id)
{
    for (unsigned i = e->count[place]++; i > at; i--)
        e->changes[place][i] = e->changes[place][i - 1];
    e->changes[place][at] = (uint8_t)id;
}

static void step(struct oracle *o, const struct execution *from, unsigned lane)
{
    unsigned id = lane * STRIDE + from->at[lane];
    const struct op *op = op_of(o->k, id);
    unsigned place = op->place, n = reads(op) || writes(op) ? from->count[place] : 0;
    for (unsigned i = 0; i <= n; i++) {
        struct execution e = *from;
        e.at[lane]++;
        if (op->kind == IF_WRITE)
            e.left[id] = from->found[id - 1] == op->value;
        if (reads(op)) {
            unsigned w = i ? from->changes[place][i - 1] : INITIAL;
            if (!satisfies(op, value_of(from, w)))
                continue;
            e.from[id] = (uint8_t)w;
            e.found[id] = (int8_t)value_of(from, w);
        }
        if (writes(op)) {
            e.left[id] = (int8_t)(op->value + (reads(op) ? e.found[id] : 0));
            insert(&e, place, i, id);
        }
        try(o, &e);
        if (o->seen.full)
            return;
    }
}

/* Does the lane wait for what the last change of the cell is not? */
static bool is_stuck(const struct kernel *k, const struct execution *e, unsigned lane)
{
    const struct op *op = &k->ops[lane][e->at[lane]];
    if (e->at[lane] == k->nops[lane])
        return true;
    if (op->kind != WAIT && op->kind != WAIT_EQUAL)
        return false;
    unsigned n = e->count[op->place];
    return !satisfies(op, value_of(e, n ? e->changes[op->place][n - 1] : INITIAL));
}

static void enumerate(struct oracle *o, const struct execution *from)
{
    bool stuck = true, ended = true;
    for (unsigned lane = 0; lane < o->k->lanes; lane++) {
        stuck = stuck && is_stuck(o->k, from, lane);
        ended = ended && from->at[lane] == o->k->nops[lane];
    }
    o->deadlock = o->deadlock || (stuck && !ended);
    for (unsigned lane = 0; lane < o->k->lanes; lane++) {
        if ((o->race && o->deadlock) || o->seen.full)
            return;
        if (from->at[lane] < o->k->nops[lane])
            step(o, from, lane);
    }
}

/* --- random kernels -------------------------------------------------------------------------- */

static unsigned below(uint64_t *dice, unsigned n)
{
    *dice = peal_hash_u64(*dice, 77);
    return (unsigned)(*dice >> 20) % n;
}

static void add(struct kernel *k, unsigned lane, struct op op)
{
    if (k->nops[lane] < OPS)
        k->ops[lane][k->nops[lane]++] = op;
}

static uint8_t any_scope(uint64_t *dice)
{
    return (uint8_t)(below(dice, 3) ? SYSTEM : below(dice, 3));
}

static void add_fence(struct kernel *k, unsigned lane, uint64_t *dice)
{
    static const uint8_t bits[] = {RELEASES, ACQUIRES, RELEASES | ACQUIRES,
                                   RELEASES | ACQUIRES | FULL};
    add(k, lane,
        (struct op){.kind = FENCE, .bits = bits[below(dice, 4)], .scope = any_scope(dice)});
}

static void add_notify(struct kernel *k, unsigned lane, unsigned place, uint64_t *dice)
{
    struct op op = {
        .kind = (uint8_t)(below(dice, 4) ? ADD : SET), .place = (uint8_t)place, .value = 1};
    if (op.kind == SET)
        op.value = (int8_t)(1 + below(dice, 2));
    op.bits = below(dice, 2) ? RELEASES : 0;
    op.scope = any_scope(dice);
    add(k, lane, op);
}

static void add_wait(struct kernel *k, unsigned lane, unsigned index, uint64_t *dice)
{
    struct op op = {.kind = (uint8_t)(below(dice, 8) ? WAIT : WAIT_EQUAL),
                    .place = (uint8_t)(k->rank[lane] * CELLS + index),
                    .value = (int8_t)(below(dice, 4) ? 1 : 2)};
    op.bits = below(dice, 2) ? ACQUIRES : 0;
    op.scope = any_scope(dice);
    add(k, lane, op);
}

/* A read that does not wait, and an access that depends on what it finds. */
static void add_read(struct kernel *k, unsigned lane, unsigned buffer, uint64_t *dice)
{
    struct op op = {.kind = PEEK, .place = (uint8_t)(k->rank[lane] * CELLS + below(dice, CELLS))};
    if (below(dice, 3) == 0) {
        op.kind = FETCH;
        op.place = (uint8_t)(below(dice, k->ranks) * CELLS + below(dice, CELLS));
        op.value = 1;
        op.bits = (uint8_t)below(dice, 4);
        op.scope = any_scope(dice);
    }
    add(k, lane, op);
    if (k->nops[lane] == OPS)
        k->nops[lane]--;
    else
        add(k, lane,
            (struct op){
                .kind = IF_WRITE, .place = (uint8_t)buffer, .value = (int8_t)below(dice, 2)});
}

static void add_any(struct kernel *k, unsigned lane, bool steers, uint64_t *dice)
{
    static const uint8_t dealt[] = {READ, WRITE, ADD, ADD, FENCE, WAIT, ADD, PEEK, PEEK, PEEK};
    unsigned which = dealt[below(dice, steers ? 10 : 6)], buffer = below(dice, 2);
    if (which == READ || which == WRITE)
        add(k, lane, (struct op){.kind = (uint8_t)which, .place = (uint8_t)buffer});
    else if (which == ADD)
        add_notify(k, lane, below(dice, k->ranks) * CELLS + below(dice, CELLS), dice);
    else if (which == FENCE)
        add_fence(k, lane, dice);
    else if (which == WAIT)
        add_wait(k, lane, below(dice, CELLS), dice);
    else
        add_read(k, lane, buffer, dice);
}

/* A message from one lane to the next, by notify and wait, with or without fences. */
static void add_message(struct kernel *k, unsigned lane, unsigned to, uint64_t *dice)
{
    unsigned cell = below(dice, CELLS), buffer = below(dice, 2);
    if (below(dice, 3))
        add(k, lane, (struct op){.kind = WRITE, .place = (uint8_t)buffer});
    if (below(dice, 2))
        add_fence(k, lane, dice);
    add_notify(k, lane, k->rank[to] * CELLS + cell, dice);
    add_wait(k, to, cell, dice);
    if (below(dice, 2))
        add_fence(k, to, dice);
    if (below(dice, 3))
        add(k, to, (struct op){.kind = READ, .place = (uint8_t)buffer});
}

static struct kernel make_kernel(uint64_t seed)
{
    static const uint8_t shapes[][LANES] = {{0, 1, 2}, {0, 1, 9}, {0, 0, 1},
                                            {0, 0, 0}, {0, 0, 9}, {0, 1, 1}};
    uint64_t dice = peal_hash_u64(seed, 5);
    struct kernel k = {0};
    const uint8_t *shape = shapes[below(&dice, 6)];
    for (unsigned i = 0; i < LANES && shape[i] != 9; i++, k.lanes++) {
        k.rank[i] = shape[i];
        k.lane_of[i] = i && shape[i] == shape[i - 1] ? (uint8_t)(k.lane_of[i - 1] + 1) : 0;
        k.block[i] = (uint8_t)below(&dice, 3);
        k.ranks = shape[i] + 1u;
    }
    bool steers = below(&dice, 3) == 0;
    for (unsigned i = 0; i + 1 < k.lanes && below(&dice, steers ? 3 : 5); i++)
        add_message(&k, i, i + 1, &dice);
    for (unsigned i = 0; i < k.lanes; i++) {
        for (unsigned n = below(&dice, k.lanes == 2 ? 4 : 3); n > 0; n--)
            add_any(&k, i, steers, &dice);
    }
    return k;
}

/* --- as a plan ------------------------------------------------------------------------------- */

struct maker {
    struct peal_assembler *a;
    uint32_t buf[2], tile[LANES], signal;
};

static uint32_t flags_of(const struct op *op)
{
    static const uint32_t scopes[] = {0, PEAL_OP_DEVICE, PEAL_OP_BLOCK};
    uint32_t flags = scopes[op->scope];
    if (op->kind == FENCE && (op->bits & FULL))
        return flags | PEAL_OP_FULL;
    if (op->kind == FENCE || op->kind == FETCH) {
        unsigned both = op->bits & (RELEASES | ACQUIRES);
        if (both == 0)
            return flags | PEAL_OP_RELAXED;
        if (both == RELEASES)
            return flags | PEAL_OP_RELEASE;
        return both == ACQUIRES ? flags | PEAL_OP_ACQUIRE : flags;
    }
    return op->bits ? flags : flags | PEAL_OP_RELAXED;
}

static void put_access(struct maker *m, const struct kernel *k, unsigned lane, const struct op *op)
{
    struct peal_ref memory = peal_ref_make(0, m->buf[op->place], PEAL_F32, 0);
    struct peal_ref tile = peal_ref_make(k->rank[lane], m->tile[k->lane_of[lane]], PEAL_F32, 0);
    if (op->kind == READ)
        peal_assembler_copy(m->a, tile, memory, 1, 1);
    else
        peal_assembler_copy(m->a, memory, peal_ref_const(1, PEAL_F32), 1, 1);
}

static void put_op(struct maker *m, const struct kernel *k, unsigned lane, unsigned i, uint16_t reg)
{
    const struct op *op = &k->ops[lane][i];
    uint32_t rank = op->place / CELLS, index = op->place % CELLS, flags = flags_of(op);
    struct peal_op made = {.pos = PEAL_NONE, .flags = (uint8_t)flags};
    switch ((enum kind)op->kind) {
    case READ:
    case WRITE:
        put_access(m, k, lane, op);
        break;
    case ADD:
    case SET:
        peal_assembler_notify(m->a, rank, m->signal, index, PEAL_NONE, op->value,
                              op->kind == SET ? flags | PEAL_OP_SET : flags);
        break;
    case WAIT:
    case WAIT_EQUAL:
        peal_assembler_wait(m->a, m->signal, index, PEAL_NONE, op->value,
                            op->kind == WAIT_EQUAL ? flags | PEAL_OP_EQUAL : flags);
        break;
    case FENCE:
        made.kind = PEAL_OP_FENCE;
        made.mem.rows = 1;
        peal_assembler_append(m->a, &made, NULL);
        break;
    case PEEK:
        peal_assembler_peek(m->a, m->signal, index, PEAL_NONE, reg);
        break;
    case FETCH:
        made.kind = PEAL_OP_FETCH_ADD;
        made.fn = (uint8_t)m->signal;
        made.sync.cell = peal_assembler_cell(m->a, m->signal, index);
        made.sync.rank = rank;
        made.sync.phases = PEAL_NONE;
        made.sync.reg = reg;
        made.sync.value = op->value;
        peal_assembler_append(m->a, &made, NULL);
        break;
    case IF_WRITE:
        made = (struct peal_op){.kind = PEAL_OP_WHEN, .fn = PEAL_RELATION_EQ, .pos = PEAL_NONE};
        made.mem.rows = reg;
        made.mem.count = (uint64_t)op->value;
        peal_assembler_append(m->a, &made, NULL);
        put_access(m, k, lane, op);
        peal_assembler_append(m->a, &(struct peal_op){.kind = PEAL_OP_END, .pos = PEAL_NONE}, NULL);
        break;
    }
}

static struct peal_plan *make_plan(const struct kernel *k)
{
    struct maker m = {.a = peal_assembler_new(k->ranks, 0, k->ranks)};
    struct peal_plan *plan = NULL;
    struct peal_buf_spec spec = {.kind = PEAL_BUF_WINDOW,
                                 .dtype = PEAL_F32,
                                 .param = PEAL_NONE,
                                 .alias = PEAL_NONE,
                                 .flags = PEAL_BUF_ZEROED,
                                 .len = 1};
    for (unsigned i = 0; i < 2; i++) {
        spec.name = i ? "b" : "a";
        m.buf[i] = peal_assembler_buf(m.a, &spec);
    }
    spec = (struct peal_buf_spec){.name = "tile",
                                  .kind = PEAL_BUF_TILE,
                                  .dtype = PEAL_F32,
                                  .param = PEAL_NONE,
                                  .alias = PEAL_NONE,
                                  .len = 1};
    for (spec.lane = 0; spec.lane < LANES; spec.lane++)
        m.tile[spec.lane] = peal_assembler_buf(m.a, &spec);
    m.signal = peal_assembler_signal(m.a, "s", PEAL_SIGNAL_RAW, CELLS);
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        if (k->lane_of[lane] == 0)
            peal_assembler_rank_begin(m.a, k->rank[lane]);
        else
            peal_assembler_lane_begin(m.a);
        if (k->block[lane])
            peal_assembler_lane_block(m.a, k->block[lane]);
        uint16_t reg = 0;
        for (unsigned i = 0; i < k->nops[lane]; i++) {
            if (k->ops[lane][i].kind == PEEK || k->ops[lane][i].kind == FETCH)
                reg = (uint16_t)peal_assembler_reg(m.a);
            put_op(&m, k, lane, i, reg);
        }
    }
    return peal_assembler_finish(m.a, NULL, &plan) == PEAL_OK ? plan : NULL;
}

static void show(const struct peal_plan *plan)
{
    struct peal_text text = {0};
    peal_plan_dump(plan, PEAL_NONE, &text);
    fputs(peal_text_get(&text), stdout);
    peal_text_release(&text);
}

/* --- comparison ------------------------------------------------------------------------------ */

struct tally {
    unsigned wrong, proved, race, deadlock, undecided, undecided_sound, weak, large;
};

static void judge(struct oracle *o, uint64_t seed, struct tally *t)
{
    struct kernel k = make_kernel(seed);
    struct peal_plan *plan = make_plan(&k);
    struct peal_verification *v = NULL;
    struct peal_verify_options options = {.launches = 1, .no_result = true, .no_story = true};
    if (!plan || peal_verify_plan(plan, &options, &v) != PEAL_OK) {
        t->wrong++;
        printf("kernel %llu cannot be made\n", (unsigned long long)seed);
        free(plan);
        return;
    }
    struct execution none = {0};
    o->k = &k;
    o->race = o->deadlock = false;
    seen_clear(&o->seen);
    memset(none.from, INITIAL, sizeof none.from);
    enumerate(o, &none);
    bool sound = !o->race && !o->deadlock, good = true;
    if (o->seen.full)
        t->large++;
    else if (v->verdict == PEAL_PROVED)
        good = sound;
    else if (v->verdict == PEAL_REFUTED)
        good =
            v->fault == PEAL_FAULT_RACE ? o->race : o->deadlock && v->fault == PEAL_FAULT_DEADLOCK;
    if (!good) {
        t->wrong++;
        printf("kernel %llu: race %d, deadlock %d; the verifier: %s, %s: %s\n",
               (unsigned long long)seed, o->race, o->deadlock, peal_outcome_name(v->verdict),
               peal_fault_name(v->fault), peal_text_or_empty(v->why));
        show(plan);
    }
    t->proved += v->verdict == PEAL_PROVED;
    t->weak += v->has_relaxed && v->verdict == PEAL_PROVED;
    t->race += v->fault == PEAL_FAULT_RACE;
    t->deadlock += v->fault == PEAL_FAULT_DEADLOCK;
    t->undecided += v->verdict == PEAL_UNDECIDED;
    t->undecided_sound += v->verdict == PEAL_UNDECIDED && sound;
    if (getenv("SHOW_UNDECIDED") && v->verdict == PEAL_UNDECIDED && sound) {
        printf("kernel %llu, undecided: %s\n", (unsigned long long)seed,
               peal_text_or_empty(v->why));
        show(plan);
    }
    peal_verification_free(v);
    free(plan);
}

int main(int argc, char **argv)
{
    struct oracle o = {0};
    struct tally t = {0};
    if (argc != 3 || !seen_new(&o.seen, SLOTS, sizeof(struct execution)))
        return 2;
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    for (uint64_t seed = first; seed < first + count; seed++)
        judge(&o, seed, &t);
    printf("%u proved (%u with weak orders left), %u with a race, %u with a deadlock, %u not "
           "decided (%u of them sound), "
           "%u too large: %u differ\n",
           t.proved, t.weak, t.race, t.deadlock, t.undecided, t.undecided_sound, t.large, t.wrong);
    seen_free(&o.seen);
    /* Every kind of answer is common enough to be worth something. */
    return t.wrong || t.proved < count / 50 || t.race < count / 20 || t.undecided > count / 10 ||
           t.large > count / 50;
}
