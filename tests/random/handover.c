/* SPDX-License-Identifier: Apache-2.0 */
/* random-handover FIRST COUNT: the verifier against brute force, on launches of two different
 * random plans in turn.
 *
 * Signals have one writer per cell, but the next launch's plan may have another one. The oracle
 * goes through every interleaving of the launches' ops. Its cells are those of the runtime:
 * (launch, count), compared as one number. It finds states in which no rank can move, ranks that
 * can do conflicting accesses next, and cells that fall: they get the value of an earlier launch.
 * The verifier must find a deadlock or a race exactly where the oracle does. If a cell falls, it
 * must refute the sequence, and only then may it blame a signal. In every third program a writer
 * may also set its cell, even to less than it had in this launch.
 */
#include "lib/random.h"
#include "plan/plan.h"
#include "plan/tests/by_hand.h"
#include "random/seen.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 3, CELLS = 2, BUFS = 2, MAX_OPS = 6, LAUNCHES = 3, SLOTS = 1 << 19 };
enum kind { NOTIFY, WAIT, READ, WRITE };

struct op {
    enum kind kind;
    uint32_t rank, at; /* cell or buffer */
    uint32_t value;    /* of this launch */
    bool sets;
};

struct text {
    uint32_t nops[MAX_RANKS];
    struct op ops[MAX_RANKS][MAX_OPS];
};

static struct text make_text(uint64_t *dice, uint32_t ranks, bool sets)
{
    struct text t = {0};
    uint32_t writer[MAX_RANKS][CELLS], count[MAX_RANKS][CELLS] = {{0}};
    uint32_t highest[MAX_RANKS][CELLS] = {{0}};
    for (uint32_t r = 0; r < ranks; r++) {
        for (uint32_t c = 0; c < CELLS; c++)
            writer[r][c] = below(dice, ranks);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        t.nops[r] = 1 + below(dice, MAX_OPS);
        for (uint32_t i = 0; i < t.nops[r]; i++) {
            struct op *op = &t.ops[r][i];
            *op = (struct op){(enum kind)below(dice, 4), below(dice, ranks), below(dice, CELLS), 0,
                              false};
            if (op->kind == NOTIFY && writer[op->rank][op->at] != r)
                op->kind = below(dice, 2) ? WAIT : READ;
            if (op->kind != NOTIFY)
                continue;
            uint32_t *now = &count[op->rank][op->at], *top = &highest[op->rank][op->at];
            op->sets = sets && below(dice, 2);
            *now = op->sets ? below(dice, 4) : *now + 1;
            op->value = *now;
            *top = *now > *top ? *now : *top;
        }
    }
    /* A threshold is a value that the cell may reach; a wait for a cell that no rank notifies
     * becomes a read. */
    for (uint32_t r = 0; r < ranks; r++) {
        for (uint32_t i = 0; i < t.nops[r]; i++) {
            struct op *op = &t.ops[r][i];
            if (op->kind != WAIT)
                continue;
            op->rank = r;
            uint32_t top = highest[r][op->at];
            op->value = 1 + below(dice, top ? top : 1);
            if (top == 0)
                *op = (struct op){READ, r, op->at, 0, false};
        }
    }
    return t;
}

static struct peal_plan *make_plan(const struct text *t, uint32_t ranks)
{
    struct peal_assembler *a = peal_assembler_new(ranks, 0, ranks);
    struct peal_plan *plan = NULL;
    uint32_t buf[BUFS + 1] = {by_hand_scratch(a, "a", PEAL_BUF_WINDOW, PEAL_F32, 1),
                              by_hand_scratch(a, "b", PEAL_BUF_WINDOW, PEAL_F32, 1),
                              by_hand_scratch(a, "tile", PEAL_BUF_TILE, PEAL_F32, 1)};
    uint32_t s = peal_assembler_signal(a, "s", PEAL_SIGNAL_ONE_WRITER, CELLS);
    for (uint32_t r = 0; r < ranks; r++) {
        peal_assembler_rank_begin(a, r);
        for (uint32_t i = 0; i < t->nops[r]; i++) {
            const struct op *op = &t->ops[r][i];
            struct peal_ref tile = peal_ref_make(r, buf[2], PEAL_F32, 0);
            if (op->kind == NOTIFY && op->sets)
                peal_assembler_notify(a, op->rank, s, op->at, PEAL_NONE, op->value, PEAL_OP_SET);
            else if (op->kind == NOTIFY)
                peal_assembler_notify(a, op->rank, s, op->at, PEAL_NONE, 1, 0);
            else if (op->kind == WAIT)
                peal_assembler_wait(a, s, op->at, PEAL_NONE, op->value, 0);
            else if (op->kind == READ)
                peal_assembler_copy(a, tile, peal_ref_make(op->rank, buf[op->at], PEAL_F32, 0), 1,
                                    1);
            else
                peal_assembler_copy(a, peal_ref_make(op->rank, buf[op->at], PEAL_F32, 0),
                                    peal_ref_const(1, PEAL_F32), 1, 1);
        }
    }
    return peal_assembler_finish(a, NULL, &plan) == PEAL_OK ? plan : NULL;
}

/* --- all executions --------------------------------------------------------------------------- */

struct state {
    uint8_t at[MAX_RANKS];
    uint8_t cell[MAX_RANKS][CELLS]; /* (launch + 1) * 16 + count */
};

struct oracle {
    uint32_t ranks, nops[MAX_RANKS];
    struct op ops[MAX_RANKS][LAUNCHES * MAX_OPS]; /* values as those of cells */
    struct seen seen;
    bool deadlock, race, falls;
};

static void load(struct oracle *o, const struct text *const *texts, uint32_t ranks)
{
    o->ranks = ranks;
    for (uint32_t r = 0; r < ranks; r++) {
        o->nops[r] = 0;
        for (uint32_t l = 0; l < LAUNCHES; l++) {
            for (uint32_t i = 0; i < texts[l]->nops[r]; i++) {
                o->ops[r][o->nops[r]] = texts[l]->ops[r][i];
                o->ops[r][o->nops[r]++].value += (l + 1) * 16;
            }
        }
    }
    o->deadlock = o->race = o->falls = false;
    seen_clear(&o->seen);
}

static const struct op *next_op(const struct oracle *o, const struct state *s, uint32_t r)
{
    return s->at[r] < o->nops[r] ? &o->ops[r][s->at[r]] : NULL;
}

static bool is_access(const struct op *op)
{
    return op && (op->kind == READ || op->kind == WRITE);
}

static bool conflict(const struct op *a, const struct op *b)
{
    return is_access(a) && is_access(b) && a->rank == b->rank && a->at == b->at &&
           (a->kind == WRITE || b->kind == WRITE);
}

static void find_race(struct oracle *o, const struct state *s)
{
    for (uint32_t r = 0; r < o->ranks; r++) {
        for (uint32_t q = r + 1; q < o->ranks; q++)
            o->race = o->race || conflict(next_op(o, s, r), next_op(o, s, q));
    }
}

static void enumerate(struct oracle *o, const struct state *from)
{
    bool moved = false, ended = true;
    find_race(o, from);
    for (uint32_t r = 0; r < o->ranks; r++) {
        if (o->seen.full)
            return;
        const struct op *op = next_op(o, from, r);
        struct state s = *from;
        ended = ended && !op;
        if (!op || (op->kind == WAIT && s.cell[op->rank][op->at] < op->value))
            continue;
        moved = true;
        s.at[r]++;
        if (op->kind == NOTIFY) {
            o->falls = o->falls || op->value / 16 < s.cell[op->rank][op->at] / 16;
            s.cell[op->rank][op->at] = (uint8_t)op->value;
        }
        if (seen_add(&o->seen, &s))
            enumerate(o, &s);
    }
    o->deadlock = o->deadlock || (!moved && !ended);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    unsigned wrong = 0, good = 0, races = 0, deadlocks = 0, falls = 0, skipped = 0;
    static struct oracle o;
    if (!seen_new(&o.seen, SLOTS, sizeof(struct state)))
        return 3;
    for (uint64_t seed = first; seed < first + count; seed++) {
        uint64_t dice = seed * 7907 + 3;
        uint32_t ranks = 2 + below(&dice, 2);
        bool sets = seed % 3 == 0;
        struct text one = make_text(&dice, ranks, sets), two = make_text(&dice, ranks, sets);
        const struct text *texts[LAUNCHES] = {&one, &two, below(&dice, 2) ? &one : &two};
        struct peal_plan *plans[2] = {make_plan(&one, ranks), make_plan(&two, ranks)};
        const struct peal_plan *list[LAUNCHES];
        struct peal_verification *v = NULL;
        struct peal_verify_options options = {
            .no_result = true, .no_story = seed % 2, .all_faults = true};
        for (uint32_t l = 0; l < LAUNCHES; l++)
            list[l] = plans[texts[l] == &two];
        if (!plans[0] || !plans[1] || peal_verify_sequence(list, LAUNCHES, &options, &v) != PEAL_OK)
            return 3;
        load(&o, texts, ranks);
        enumerate(&o, &(struct state){0});
        bool blames = v->fault == PEAL_FAULT_SIGNAL;
        bool same = o.falls ? v->verdict == PEAL_REFUTED
                            : !blames && v->has_deadlock == o.deadlock && v->has_race == o.race &&
                                  v->verdict != PEAL_UNDECIDED;
        if (o.seen.full) {
            skipped++;
        } else if (!same) {
            wrong++;
            printf("program %llu: deadlock %d race %d, falls %d; the verifier: %s, %s, deadlock %d "
                   "race %d\n",
                   (unsigned long long)seed, o.deadlock, o.race, o.falls,
                   peal_outcome_name(v->verdict), peal_fault_name(v->fault), v->has_deadlock,
                   v->has_race);
        }
        falls += o.falls;
        races += o.race;
        deadlocks += o.deadlock;
        good += !o.race && !o.deadlock && !o.falls;
        peal_verification_free(v);
        free(plans[0]);
        free(plans[1]);
    }
    printf("%u sound, %u with a race, %u with a deadlock, %u with a cell that falls, %u too large: "
           "%u differ\n",
           good, races, deadlocks, falls, skipped, wrong);
    seen_free(&o.seen);
    return wrong || good < count / 50 || races < count / 20 || falls < count / 20;
}
