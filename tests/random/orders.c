/* SPDX-License-Identifier: Apache-2.0 */
/* random-orders FIRST COUNT [cells]: the verifier against the memory model of docs/verifier.md, on random kernels with
 * orders, scopes, blocks, fences, atomics and channels, launched once or twice; with `cells`, on hand-shakes, credits and
 * flags whose ops have any orders. executions.h is the oracle. */
#include "random/executions.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 17 };

/* --- random kernels -------------------------------------------------------------------------- */

static unsigned below(uint64_t *dice, unsigned n)
{
    *dice = peal_hash_u64(*dice, 77);
    return (unsigned)(*dice >> 20) % n;
}

/* How many ops a lane has at most. */
static unsigned room(const struct kernel *k)
{
    return k->launches == 1 ? 7 : 4;
}

static void add(struct kernel *k, unsigned lane, struct op op)
{
    if (k->nops[lane] < room(k))
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
    if (below(dice, 2) == 0) {
        op.kind = below(dice, 2) ? SWAP : FETCH;
        op.place = (uint8_t)(below(dice, k->ranks) * CELLS + below(dice, CELLS));
        op.value = op.kind == FETCH ? 1 : (int8_t)below(dice, 2);
        op.desired = (int8_t)(1 + below(dice, 2));
        op.bits = (uint8_t)below(dice, 4);
        op.scope = any_scope(dice);
    }
    add(k, lane, op);
    if (k->nops[lane] == room(k))
        k->nops[lane]--;
    else if (op.kind != SWAP || below(dice, 3))
        add(k, lane,
            (struct op){
                .kind = IF_WRITE, .place = (uint8_t)buffer, .value = (int8_t)below(dice, 2)});
}

/* Takes a cell, and gives it back or hands it on. */
static void add_take(struct kernel *k, unsigned lane, unsigned place, unsigned buffer,
                     uint64_t *dice)
{
    unsigned held = below(dice, 2);
    struct op take = {.kind = TAKE,
                      .place = (uint8_t)place,
                      .bits = (uint8_t)below(dice, 4),
                      .scope = any_scope(dice),
                      .value = (int8_t)held,
                      .desired = (int8_t)(1 - held)};
    struct op back = {.kind = SET,
                      .place = (uint8_t)place,
                      .bits = below(dice, 3) ? RELEASES : 0,
                      .scope = any_scope(dice),
                      .value = (int8_t)below(dice, 2)};
    add(k, lane, take);
    if (below(dice, 3))
        add(k, lane, (struct op){.kind = below(dice, 2) ? WRITE : READ, .place = (uint8_t)buffer});
    if (below(dice, 3))
        add(k, lane, back);
}

/* A message through a channel, whose ends are lanes of different ranks. */
static void add_packet(struct kernel *k, uint64_t *dice)
{
    unsigned channel = k->channels, from = below(dice, k->lanes), to = below(dice, k->lanes);
    if (k->channels && below(dice, 2)) {
        channel = below(dice, k->channels);
        from = k->sender[channel];
        to = k->receiver[channel];
    }
    for (unsigned c = 0; c < k->channels && channel == k->channels; c++) {
        if (k->rank[k->sender[c]] == k->rank[from] && k->rank[k->receiver[c]] == k->rank[to])
            return;
    }
    if (channel == CHANNELS || k->rank[from] == k->rank[to] || k->nops[from] == room(k) ||
        k->nops[to] == room(k))
        return;
    k->sender[channel] = (uint8_t)from;
    k->receiver[channel] = (uint8_t)to;
    k->channels += channel == k->channels;
    add(k, from,
        (struct op){.kind = SEND, .place = (uint8_t)channel, .value = (int8_t)below(dice, 2)});
    add(k, to,
        (struct op){.kind = RECV, .place = (uint8_t)channel, .value = (int8_t)below(dice, 2)});
}

static void add_any(struct kernel *k, unsigned lane, bool steers, uint64_t *dice)
{
    static const uint8_t dealt[] = {READ, WRITE, ADD,  ADD,  FENCE, WAIT,
                                    TAKE, ADD,   PEEK, PEEK, PEEK,  PEEK};
    unsigned which = dealt[below(dice, steers ? 12 : 6)], buffer = below(dice, 2);
    if (which == READ || which == WRITE)
        add(k, lane, (struct op){.kind = (uint8_t)which, .place = (uint8_t)buffer});
    else if (which == ADD)
        add_notify(k, lane, below(dice, k->ranks) * CELLS + below(dice, CELLS), dice);
    else if (which == FENCE)
        add_fence(k, lane, dice);
    else if (which == WAIT)
        add_wait(k, lane, below(dice, CELLS), dice);
    else if (which == TAKE)
        add_take(k, lane, below(dice, k->ranks) * CELLS + below(dice, CELLS), buffer, dice);
    else
        add_read(k, lane, buffer, dice);
}

/* Two lanes that each change a cell of the other and look at their own, as in load and store buffering. */
static void add_crossing(struct kernel *k, unsigned lane, uint64_t *dice)
{
    unsigned buffer = below(dice, 2), cell = below(dice, CELLS), loads_first = below(dice, 3);
    for (unsigned i = lane; i < lane + 2; i++) {
        unsigned other = i == lane ? lane + 1 : lane;
        struct op look = {.kind = PEEK, .place = (uint8_t)(k->rank[i] * CELLS + cell)};
        struct op change = {
            .kind = ADD, .place = (uint8_t)(k->rank[other] * CELLS + cell), .value = 1};
        struct op depends = {
            .kind = IF_WRITE, .place = (uint8_t)buffer, .value = (int8_t)(loads_first != 0)};
        if (k->rank[i] == k->rank[other]) /* of one rank: two cells */
            change.place = (uint8_t)(k->rank[i] * CELLS + 1 - cell);
        cell = k->rank[i] == k->rank[other] ? 1 - cell : cell;
        if (below(dice, 3) == 0)
            look = (struct op){.kind = FETCH, .place = look.place};
        change.bits = below(dice, 4) ? 0 : RELEASES;
        if (!loads_first)
            add(k, i, change);
        if (!loads_first && below(dice, 2))
            add_fence(k, i, dice);
        add(k, i, look);
        add(k, i, depends);
        if (loads_first && below(dice, 6) == 0)
            add_fence(k, i, dice);
        if (loads_first)
            add(k, i, change);
    }
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
    struct kernel k = {.launches = below(&dice, 3) ? 1 : 2, .depth = 1 + below(&dice, 2)};
    const uint8_t *shape = shapes[below(&dice, 6)];
    for (unsigned i = 0; i < LANES && shape[i] != 9; i++, k.lanes++) {
        k.rank[i] = shape[i];
        k.lane_of[i] = i && shape[i] == shape[i - 1] ? (uint8_t)(k.lane_of[i - 1] + 1) : 0;
        k.block[i] = (uint8_t)below(&dice, 3);
        k.ranks = shape[i] + 1u;
    }
    bool steers = below(&dice, 3) == 0, sends = below(&dice, 4) == 0;
    for (unsigned n = sends ? below(&dice, 3) : 0; n > 0; n--)
        add_packet(&k, &dice);
    if (k.lanes > 1 && below(&dice, 12) == 0)
        add_crossing(&k, below(&dice, k.lanes - 1), &dice);
    for (unsigned i = 0; i + 1 < k.lanes && below(&dice, steers ? 3 : 5); i++)
        add_message(&k, i, i + 1, &dice);
    for (unsigned i = 0; i < k.lanes; i++) {
        for (unsigned n = below(&dice, k.lanes == 2 ? 4 : 3); n > 0; n--)
            add_any(&k, i, steers, &dice);
    }
    for (unsigned n = sends ? below(&dice, 3) : 0; n > 0; n--)
        add_packet(&k, &dice);
    return k;
}

/* --- ways to use cells that fall ------------------------------------------------------------- */

/* Mostly what is needed. */
static uint8_t any_order(uint64_t *dice, uint8_t needed)
{
    return (uint8_t)(below(dice, 5) ? needed : below(dice, 4));
}

static struct op take_of(uint64_t *dice, unsigned place, uint8_t needed, int from)
{
    return (struct op){.kind = TAKE,
                       .place = (uint8_t)place,
                       .bits = any_order(dice, needed),
                       .value = (int8_t)from,
                       .desired = (int8_t)(1 - from)};
}

/* One lane tells another: by two swaps, an add and a swap, an add that is taken from, or a flag that is set back. */
static void add_hand(struct kernel *k, unsigned from, unsigned to, unsigned place, unsigned way,
                     uint64_t *dice)
{
    struct op came = take_of(dice, place, ACQUIRES, 1);
    struct op tell = {.kind = ADD, .place = (uint8_t)place, .value = 1};
    struct op back = {.kind = ADD, .place = (uint8_t)place, .value = -1};
    tell.bits = any_order(dice, RELEASES) & RELEASES;
    back.bits = any_order(dice, RELEASES) & RELEASES;
    if (way == 0)
        tell = take_of(dice, place, RELEASES, 0);
    if (way > 1)
        came = (struct op){.kind = WAIT, .place = (uint8_t)place, .value = 1};
    if (way > 1)
        came.bits = any_order(dice, ACQUIRES) & ACQUIRES;
    if (way == 3) {
        tell.kind = back.kind = SET;
        back.value = 0;
        came.kind = below(dice, 2) ? WAIT : WAIT_EQUAL;
    }
    add(k, from, tell);
    add(k, to, came);
    if (way > 1)
        add(k, to, back);
}

/* Something is left out, or two change places. */
static void spoil(struct kernel *k, uint64_t *dice)
{
    unsigned lane = below(dice, k->lanes);
    if (k->nops[lane] < 3)
        return;
    unsigned i = below(dice, k->nops[lane] - 1u);
    struct op op = k->ops[lane][i];
    k->ops[lane][i] = k->ops[lane][i + 1];
    k->ops[lane][i + 1] = op;
    if (below(dice, 2))
        k->nops[lane]--;
}

static struct kernel make_cells(uint64_t seed)
{
    uint64_t dice = peal_hash_u64(seed, 9);
    struct kernel k = {.launches = 1 + below(&dice, 2), .depth = 1};
    k.lanes = k.ranks = below(&dice, 5) ? 2 : 3;
    for (unsigned i = 0; i < k.lanes; i++) {
        k.rank[i] = (uint8_t)i;
        k.block[i] = (uint8_t)i;
    }
    unsigned hands = 2 + below(&dice, 2), way = below(&dice, 6), buffer = below(&dice, 2);
    for (unsigned n = 0; n < hands; n++) {
        unsigned from = n % k.lanes, to = (n + 1) % k.lanes;
        if (below(&dice, 3))
            add(&k, from, (struct op){.kind = WRITE, .place = (uint8_t)buffer});
        add_hand(&k, from, to, to * CELLS + (k.lanes == 2 ? n / 2 : 0) % CELLS,
                 way < 4 ? way : below(&dice, 4), &dice);
        if (below(&dice, 3))
            add(&k, to, (struct op){.kind = READ, .place = (uint8_t)buffer});
    }
    if (below(&dice, 3) == 0)
        spoil(&k, &dice);
    return k;
}

/* --- as a plan ------------------------------------------------------------------------------- */

struct maker {
    struct peal_assembler *a;
    uint32_t buf[2], tile[LANES], signal, channel[CHANNELS];
};

static uint32_t flags_of(const struct op *op)
{
    static const uint32_t scopes[] = {0, PEAL_OP_DEVICE, PEAL_OP_BLOCK};
    uint32_t flags = scopes[op->scope];
    if (op->kind == FENCE && (op->bits & FULL))
        return flags | PEAL_OP_FULL;
    if (op->kind == FENCE || op->kind == FETCH || op->kind == SWAP || op->kind == TAKE) {
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
    struct peal_ref memory = peal_ref_make(0, m->buf[op->value & 1], PEAL_F32, 0);
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
    case SWAP:
    case TAKE:
        made.kind = op->kind == FETCH ? PEAL_OP_FETCH_ADD : PEAL_OP_COMPARE_SWAP;
        if (op->kind == TAKE)
            made.kind = PEAL_OP_TAKE;
        made.fn = (uint8_t)m->signal;
        made.sync.cell = peal_assembler_cell(m->a, m->signal, index);
        made.sync.rank = rank;
        made.sync.phases = PEAL_NONE;
        made.sync.reg = op->kind == TAKE ? 0 : reg;
        made.sync.value = op->kind == FETCH ? op->value : peal_swap_value(op->value, op->desired);
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
    case SEND:
        peal_assembler_send(m->a, m->channel[op->place], memory, 1, 1);
        break;
    case RECV:
        peal_assembler_recv(m->a, m->channel[op->place], memory, 1, 1);
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
    for (unsigned c = 0; c < k->channels; c++)
        m.channel[c] = peal_assembler_channel(m.a, "", k->rank[k->sender[c]], PEAL_PORT_PEER,
                                              k->rank[k->receiver[c]]);
    peal_assembler_channel_shape(m.a, k->depth, 0);
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        if (k->lane_of[lane] == 0)
            peal_assembler_rank_begin(m.a, k->rank[lane]);
        else
            peal_assembler_lane_begin(m.a);
        if (k->block[lane])
            peal_assembler_lane_block(m.a, k->block[lane]);
        uint16_t reg = 0;
        for (unsigned i = 0; i < k->nops[lane]; i++) {
            uint8_t kind = k->ops[lane][i].kind;
            if (kind == PEEK || kind == FETCH || kind == SWAP)
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
    unsigned wrong, proved, race, deadlock, undecided, undecided_sound, weak, counted, large;
};

static void judge(struct oracle *o, uint64_t seed, bool cells, struct tally *t)
{
    struct kernel k = cells ? make_cells(seed) : make_kernel(seed);
    struct peal_plan *plan = make_plan(&k);
    struct peal_verification *v = NULL;
    struct peal_verify_options options = {
        .launches = k.launches, .no_result = true, .no_story = true};
    if (!plan || peal_verify_plan(plan, &options, &v) != PEAL_OK) {
        t->wrong++;
        printf("kernel %llu cannot be made\n", (unsigned long long)seed);
        free(plan);
        return;
    }
    executions_enumerate(o, &k);
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
        printf("kernel %llu, %u launches: race %d, deadlock %d; the verifier: %s, %s: %s\n",
               (unsigned long long)seed, k.launches, o->race, o->deadlock,
               peal_outcome_name(v->verdict), peal_fault_name(v->fault),
               peal_text_or_empty(v->why));
        show(plan);
    }
    t->proved += v->verdict == PEAL_PROVED;
    t->weak += v->has_relaxed && v->verdict == PEAL_PROVED;
    t->counted += v->has_relaxed && v->verdict == PEAL_PROVED && v->monotone && !plan->monotone;
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
    bool cells = argc == 4 && strcmp(argv[3], "cells") == 0;
    if ((argc != 3 && !cells) || !seen_new(&o.seen, SLOTS, sizeof(struct execution)))
        return 2;
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    for (uint64_t seed = first; seed < first + count; seed++)
        judge(&o, seed, cells, &t);
    printf("%u proved (%u with weak orders left, %u of these counted), %u with a race, %u with a "
           "deadlock, %u not "
           "decided (%u of them sound), "
           "%u too large: %u differ\n",
           t.proved, t.weak, t.counted, t.race, t.deadlock, t.undecided, t.undecided_sound, t.large,
           t.wrong);
    seen_free(&o.seen);
    /* Every kind of answer is common enough to be worth something. */
    if (cells && t.counted < count / 50)
        return 1;
    return t.wrong || t.proved < count / 50 || t.race < count / 20 || t.undecided > count / 10 ||
           t.large > count / 50;
}
