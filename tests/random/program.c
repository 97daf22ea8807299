/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs: choosing the ops, making the plan, writing the Promela text. */
#include "random/program.h"

#include "base/base.h"
#include "lib/random.h"
#include "plan/plan.h"

#include <stdlib.h>

/* --- making ----------------------------------------------------------------------------------- */

bool random_op_is_access(const struct random_op *op)
{
    return op->kind >= RANDOM_READ && op->kind <= RANDOM_MAX_TO;
}

static struct random_op any_op(uint64_t *dice, const struct random_program *p, uint32_t thread)
{
    static const enum random_kind monotone[] = {RANDOM_ADD,   RANDOM_ADD,    RANDOM_WAIT,
                                                RANDOM_WAIT,  RANDOM_READ,   RANDOM_READ,
                                                RANDOM_WRITE, RANDOM_ADD_TO, RANDOM_MAX_TO};
    static const enum random_kind other[] = {RANDOM_ADD,   RANDOM_SET,        RANDOM_WAIT,
                                             RANDOM_WAIT,  RANDOM_WAIT_EQUAL, RANDOM_READ,
                                             RANDOM_WRITE, RANDOM_ADD,        RANDOM_ADD_TO};
    struct random_op op = {.rank = below(dice, p->ranks), .at = below(dice, CELLS)};
    op.kind = p->monotone ? monotone[below(dice, 9)] : other[below(dice, 9)];
    if (op.kind == RANDOM_ADD)
        op.value = p->monotone ? 1 + (int)below(dice, 2) : (int)below(dice, 4) - 1;
    else
        op.value = (int)below(dice, 3);
    if (op.kind == RANDOM_WAIT || op.kind == RANDOM_WAIT_EQUAL)
        op.rank = p->rank_of[thread];
    if (op.kind == RANDOM_WAIT)
        op.value = 1 + (int)below(dice, 2);
    return op;
}

/* At a random place. */
static void insert(uint64_t *dice, struct random_program *p, uint32_t thread, struct random_op op)
{
    uint32_t at = below(dice, p->nops[thread] + 1);
    for (uint32_t i = p->nops[thread]++; i > at; i--)
        p->ops[thread][i] = p->ops[thread][i - 1];
    p->ops[thread][at] = op;
}

static int added_by(const struct random_op *op, uint32_t rank, uint32_t cell)
{
    return op->kind == RANDOM_ADD && op->rank == rank && op->at == cell ? op->value : 0;
}

static void append(struct random_program *p, uint32_t thread, struct random_op op)
{
    p->ops[thread][p->nops[thread]++] = op;
}

/* A send anywhere in the sender; a recv, or recv_slot and free, at the end of the receiver. */
static void add_message(uint64_t *dice, struct random_program *p, uint32_t channel)
{
    uint32_t sender = p->sender[channel], receiver = p->receiver[channel];
    if (p->nops[sender] == MAX_OPS || p->nops[receiver] + 1 >= MAX_OPS)
        return;
    struct random_op op = {RANDOM_SEND, p->rank_of[sender], channel, (int)below(dice, BUFS), false};
    insert(dice, p, sender, op);
    op.rank = p->rank_of[receiver];
    op.value = (int)below(dice, BUFS);
    op.kind = below(dice, 3) ? RANDOM_RECV : RANDOM_RECV_SLOT;
    append(p, receiver, op);
    if (op.kind == RANDOM_RECV_SLOT) {
        /* A slot is freed before the next recv, so slots are freed in the order of arrival. */
        if (p->nops[receiver] + 1 < MAX_OPS && below(dice, 2))
            append(p, receiver, any_op(dice, p, receiver));
        op.kind = RANDOM_FREE;
        append(p, receiver, op);
    }
}

/* The sum of all adds to a cell. */
static int sum_of_adds(const struct random_program *p, uint32_t rank, uint32_t cell)
{
    int sum = 0;
    for (uint32_t t = 0; t < p->threads; t++) {
        for (uint32_t i = 0; i < p->nops[t]; i++)
            sum += added_by(&p->ops[t][i], rank, cell);
    }
    return sum;
}

/* The sum of the adds to a wait's cell that its own thread makes after it. */
static int sum_of_later_adds(const struct random_program *p, uint32_t thread, uint32_t wait)
{
    const struct random_op *op = &p->ops[thread][wait];
    int sum = 0;
    for (uint32_t i = wait + 1; i < p->nops[thread]; i++)
        sum += added_by(&p->ops[thread][i], op->rank, op->at);
    return sum;
}

/* Without this, most waits would never pass and most accesses would collide. So most waits get a
 * threshold that the adds reach, and half of the accesses move to a place of their own thread. */
static void soften(uint64_t *dice, struct random_program *p)
{
    for (uint32_t t = 0; t < p->threads; t++) {
        for (uint32_t i = 0; i < p->nops[t]; i++) {
            struct random_op *op = &p->ops[t][i];
            if (random_op_is_access(op) && below(dice, 2)) {
                op->rank = t % p->ranks;
                op->at = t / p->ranks % BUFS;
            }
            if ((op->kind != RANDOM_WAIT && op->kind != RANDOM_WAIT_EQUAL) || below(dice, 6) == 0)
                continue;
            int sum = sum_of_adds(p, op->rank, op->at) - sum_of_later_adds(p, t, i);
            if (sum <= 0)
                *op = (struct random_op){RANDOM_READ, t % p->ranks, t / p->ranks % BUFS, 0, false};
            else
                op->value = below(dice, 2) ? sum : 1 + (int)below(dice, (uint32_t)sum);
        }
    }
}

struct random_program random_program_make(uint64_t seed)
{
    uint64_t dice = seed * 7919 + 1;
    struct random_program p = {.ranks = 2 + below(&dice, 2), .launches = 1 + below(&dice, 4) / 3};
    p.monotone = below(&dice, 2);
    p.shared = p.monotone && below(&dice, 2);
    p.depth = 1 + below(&dice, 2);
    for (uint32_t r = 0; r < p.ranks; r++) {
        uint32_t lanes = 1 + (p.threads + p.ranks - r < MAX_THREADS && below(&dice, 4) == 0);
        for (uint32_t l = 0; l < lanes; l++) {
            p.rank_of[p.threads] = r;
            p.lane_of[p.threads++] = l;
        }
    }
    for (uint32_t t = 0; t < p.threads; t++) {
        uint32_t n = 1 + below(&dice, p.ranks == 2 ? 5 : 4);
        for (uint32_t i = 0; i < n; i++)
            append(&p, t, any_op(&dice, &p, t));
    }
    soften(&dice, &p);
    p.nchannels = below(&dice, MAX_CHANNELS + 1);
    for (uint32_t c = 0; c < p.nchannels; c++) {
        p.sender[c] = below(&dice, p.threads);
        p.receiver[c] = (p.sender[c] + 1 + below(&dice, p.threads - 1)) % p.threads;
        /* One channel per pair of ranks: two would have the same name. */
        if (p.rank_of[p.sender[c]] == p.rank_of[p.receiver[c]] ||
            (c == 1 && p.rank_of[p.sender[0]] == p.rank_of[p.sender[1]] &&
             p.rank_of[p.receiver[0]] == p.rank_of[p.receiver[1]])) {
            p.nchannels = c;
            break;
        }
        uint32_t messages = 1 + below(&dice, 3);
        for (uint32_t m = 0; m < messages; m++)
            add_message(&dice, &p, c);
    }
    return p;
}

static bool is_sync(enum random_kind kind)
{
    return kind <= RANDOM_WAIT_EQUAL;
}

struct random_program random_program_make_relaxed(uint64_t seed)
{
    struct random_program p = random_program_make(seed);
    uint64_t dice = seed * 104729 + 3;
    p.launches = 1;
    p.nchannels = 0;
    p.threads = p.ranks;
    for (uint32_t t = 0; t < p.threads; t++) {
        uint32_t n = 0;
        p.rank_of[t] = t;
        p.lane_of[t] = 0;
        for (uint32_t i = 0; i < p.nops[t]; i++) {
            struct random_op op = p.ops[t][i];
            if (op.kind >= RANDOM_SEND)
                continue;
            if (op.kind == RANDOM_WAIT || op.kind == RANDOM_WAIT_EQUAL)
                op.rank = t;
            op.relaxed = is_sync(op.kind) && below(&dice, 3) == 0;
            p.ops[t][n++] = op;
        }
        p.nops[t] = n;
    }
    return p;
}

/* --- as a plan -------------------------------------------------------------------------------- */

struct plan_maker {
    struct peal_assembler *a;
    const struct random_program *p;
    uint32_t buf[BUFS], tile[2], channel[MAX_CHANNELS], signal;
};

static void add_op(struct plan_maker *m, uint32_t thread, const struct random_op *op)
{
    struct peal_ref tile =
        peal_ref_make(m->p->rank_of[thread], m->tile[m->p->lane_of[thread]], PEAL_F32, 0);
    struct peal_ref one = peal_ref_const(1, PEAL_F32);
    bool channels = op->kind >= RANDOM_SEND;
    uint32_t relaxed = op->relaxed ? PEAL_OP_RELAXED : 0;
    struct peal_ref memory =
        peal_ref_make(op->rank, m->buf[channels ? op->value : (int)op->at], PEAL_F32, 0);
    switch (op->kind) {
    case RANDOM_ADD:
    case RANDOM_SET:
        peal_assembler_notify(m->a, op->rank, m->signal, op->at, PEAL_NONE, op->value,
                              op->kind == RANDOM_SET ? relaxed | PEAL_OP_SET : relaxed);
        break;
    case RANDOM_WAIT:
    case RANDOM_WAIT_EQUAL:
        peal_assembler_wait(m->a, m->signal, op->at, PEAL_NONE, op->value,
                            op->kind == RANDOM_WAIT_EQUAL ? relaxed | PEAL_OP_EQUAL : relaxed);
        break;
    case RANDOM_READ:
        peal_assembler_copy(m->a, tile, memory, 1, 1);
        break;
    case RANDOM_WRITE:
        peal_assembler_copy(m->a, memory, one, 1, 1);
        break;
    case RANDOM_ADD_TO:
    case RANDOM_MAX_TO:
        peal_assembler_accumulate(m->a, op->kind == RANDOM_ADD_TO ? PEAL_FN_ADD : PEAL_FN_MAXIMUM,
                                  memory, one, 1, 1, 0);
        break;
    case RANDOM_SEND:
        peal_assembler_send(m->a, m->channel[op->at], memory, 1, 1);
        break;
    case RANDOM_RECV:
        peal_assembler_recv(m->a, m->channel[op->at], memory, 1, 1);
        break;
    case RANDOM_RECV_SLOT:
        peal_assembler_recv_slot(m->a, m->channel[op->at], PEAL_F32, 1);
        break;
    case RANDOM_FREE:
        peal_assembler_free_slot(m->a, m->channel[op->at]);
        break;
    }
}

struct peal_plan *random_program_plan(const struct random_program *p)
{
    struct plan_maker m = {.a = peal_assembler_new(p->ranks, 0, p->ranks), .p = p};
    struct peal_plan *plan = NULL;
    struct peal_buf_spec spec = {.name = "a",
                                 .kind = PEAL_BUF_WINDOW,
                                 .dtype = PEAL_F32,
                                 .param = PEAL_NONE,
                                 .alias = PEAL_NONE,
                                 .len = 1};
    m.buf[0] = peal_assembler_buf(m.a, &spec);
    spec.name = "b";
    m.buf[1] = peal_assembler_buf(m.a, &spec);
    spec.kind = PEAL_BUF_TILE;
    for (spec.lane = 0; spec.lane < 2; spec.lane++) {
        spec.name = "tile";
        m.tile[spec.lane] = peal_assembler_buf(m.a, &spec);
    }
    m.signal =
        peal_assembler_signal(m.a, "s", p->shared ? PEAL_SIGNAL_SHARED : PEAL_SIGNAL_RAW, CELLS);
    for (uint32_t c = 0; c < p->nchannels; c++)
        m.channel[c] = peal_assembler_channel(m.a, "", p->rank_of[p->sender[c]], PEAL_PORT_PEER,
                                              p->rank_of[p->receiver[c]]);
    peal_assembler_channel_shape(m.a, p->depth, 0);
    for (uint32_t t = 0; t < p->threads; t++) {
        if (p->lane_of[t] == 0)
            peal_assembler_rank_begin(m.a, p->rank_of[t]);
        else
            peal_assembler_lane_begin(m.a);
        for (uint32_t i = 0; i < p->nops[t]; i++)
            add_op(&m, t, &p->ops[t][i]);
    }
    return peal_assembler_finish(m.a, NULL, &plan) == PEAL_OK ? plan : NULL;
}

/* --- as Promela ------------------------------------------------------------------------------- */

/* The value of a shared cell at the start of a launch: the sum that earlier launches have added. */
static int base_of(const struct random_program *p, uint32_t rank, uint32_t cell, uint32_t launch)
{
    return p->shared ? sum_of_adds(p, rank, cell) * (int)launch : 0;
}

static void put_op(const struct random_program *p, const struct random_op *op, uint32_t launch,
                   struct peal_text *out)
{
    uint32_t cell = op->rank * CELLS + op->at, place = op->rank * BUFS + op->at;
    uint32_t own = op->rank * BUFS + (uint32_t)op->value;
    int want = op->value + base_of(p, op->rank, op->at, launch);
    switch (op->kind) {
    case RANDOM_ADD:
        peal_text_printf(out, "  c[%u] = c[%u] + %d;\n", cell, cell, op->value);
        break;
    case RANDOM_SET:
        peal_text_printf(out, "  c[%u] = %d;\n", cell, op->value);
        break;
    case RANDOM_WAIT:
        peal_text_printf(out, "  c[%u] >= %d;\n", cell, want);
        break;
    case RANDOM_WAIT_EQUAL:
        peal_text_printf(out, "  c[%u] == %d;\n", cell, want);
        break;
    case RANDOM_READ:
        peal_text_printf(out, "  READ(%u);\n", place);
        break;
    case RANDOM_WRITE:
        peal_text_printf(out, "  WRITE(%u);\n", place);
        break;
    case RANDOM_ADD_TO:
        peal_text_printf(out, "  ADDTO(%u);\n", place);
        break;
    case RANDOM_MAX_TO:
        peal_text_printf(out, "  MAXTO(%u);\n", place);
        break;
    case RANDOM_SEND:
        peal_text_printf(out, "  nfull(q%u); READ(%u); q%u!0;\n", op->at, own, op->at);
        break;
    case RANDOM_RECV:
        peal_text_printf(out, "  nempty(q%u); WRITE(%u); q%u?_;\n", op->at, own, op->at);
        break;
    case RANDOM_RECV_SLOT:
        peal_text_printf(out, "  nempty(q%u);\n", op->at);
        break;
    case RANDOM_FREE:
        peal_text_printf(out, "  q%u?_;\n", op->at);
        break;
    }
}

void random_program_promela(const struct random_program *p, unsigned number, struct peal_text *out)
{
    for (uint32_t t = 0; t < p->threads; t++) {
        uint32_t lanes = 0;
        for (uint32_t u = 0; u < p->threads; u++)
            lanes += p->rank_of[u] == p->rank_of[t];
        peal_text_printf(out, "proctype T%u_%u(chan q0; chan q1) {\n", number, t);
        for (uint32_t l = 0; l < p->launches; l++) {
            uint32_t r = p->rank_of[t];
            if (lanes > 1)
                peal_text_printf(
                    out, p->lane_of[t] ? "  started[%u] > %u;\n" : "  started[%u]++;\n", r, l);
            for (uint32_t i = 0; i < p->nops[t]; i++)
                put_op(p, &p->ops[t][i], l, out);
            if (lanes > 1 && p->lane_of[t])
                peal_text_printf(out, "  ended[%u]++;\n", r);
            else if (lanes > 1)
                peal_text_printf(out, "  ended[%u] >= %u;\n", r, (lanes - 1) * (l + 1));
        }
        peal_text_puts(out, "  skip\n}\n");
    }
    peal_text_printf(
        out,
        "proctype Start%u() {\n  chan q0 = [%u] of {bit}; chan q1 = [%u] of {bit};\n  atomic {\n",
        number, p->depth, p->depth);
    for (uint32_t t = 0; t < p->threads; t++)
        peal_text_printf(out, "    run T%u_%u(q0, q1);\n", number, t);
    peal_text_puts(out, "  }\n}\n");
}
