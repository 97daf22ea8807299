/* SPDX-License-Identifier: Apache-2.0 */
/* random-atomics FIRST COUNT [cells|launch|locks]: the verifier against brute force, on random kernels
 * with fetch_add, compare_swap, take and when; with `cells`, on random ways to use cells that fall:
 * credits, resets, flags, epochs and hand-shakes, right and wrong ones; with `launch`, on the same
 * and others with the number of the launch in amounts, thresholds and conditions; with `locks`, on
 * sections of locks that are taken or given by tickets.
 *
 * A kernel is a short list of acts per rank. It is written as a text, which goes through the whole
 * front end to the verifier; and it is run here, act by act, in every possible order. Of a race, a
 * deadlock and a read of memory that no rank has written, both must find the same. There is a race
 * here if two ranks can do conflicting accesses next. Nothing is shared with src/verify. A kernel
 * that is proved repeatable is run for more launches than the proof took.
 */
#include "base/base.h"
#include "lang/lang.h"
#include "lib/random.h"
#include "plan/plan.h"
#include "random/seen.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 3, MAX_ACTS = 24, CELLS = 3, PLACES = 2, SLOTS = 1 << 20, SPARE_CELL = 2 };

enum act_kind {
    ACT_ADD,
    ACT_SET,
    ACT_WAIT,
    ACT_WAIT_EQUAL,
    ACT_FETCH,
    ACT_PEEK,
    ACT_SWAP,
    ACT_TAKE,
    ACT_READ,
    ACT_WRITE,
    ACT_WHEN,
    ACT_END
};

enum relation { EQ, NE, LT, GE };

struct act {
    enum act_kind kind;
    uint32_t rank, at; /* cell or place `at` of `rank` */
    int a, b;          /* amount, value; expected and desired */
    enum relation relation;
    bool plus_t; /* add, set, wait: t more than that */
    /* add, set, wait: more by so often the number of the launch, modulo `mod` unless that is 0; when:
     * that is compared instead of t */
    int times, mod;
};

struct kernel {
    uint32_t ranks, launches;
    uint32_t count[MAX_RANKS];
    struct act acts[MAX_RANKS][MAX_ACTS];
};

/* --- kernels ---------------------------------------------------------------------------------- */

static struct act any_act(uint64_t *dice, uint32_t ranks, uint32_t rank)
{
    static const enum act_kind kinds[] = {ACT_ADD,   ACT_SET,   ACT_WAIT,  ACT_WAIT_EQUAL,
                                          ACT_FETCH, ACT_FETCH, ACT_SWAP,  ACT_SWAP,
                                          ACT_TAKE,  ACT_READ,  ACT_WRITE, ACT_WRITE};
    struct act act = {
        .kind = kinds[below(dice, 12)], .rank = below(dice, ranks), .at = below(dice, 2)};
    act.a = (int)below(dice, 3);
    act.b = (int)below(dice, 3);
    if (act.kind == ACT_ADD || act.kind == ACT_FETCH)
        act.a = (int)below(dice, 3) - (below(dice, 4) == 0);
    bool waits = act.kind == ACT_WAIT || act.kind == ACT_WAIT_EQUAL;
    if (waits && below(dice, 3)) /* mostly for an own cell */
        act.rank = rank;
    else if (below(dice, 2))
        act.rank = 0;
    return act;
}

static void add(struct kernel *k, uint32_t rank, struct act act)
{
    k->acts[rank][k->count[rank]++] = act;
}

/* A critical section behind a lock, sometimes entered without having it. */
static void add_section(uint64_t *dice, struct kernel *k, uint32_t rank)
{
    bool waits = below(dice, 3) == 0; /* for the lock; otherwise it tries once */
    bool broken = below(dice, 6) == 0;
    struct act write = {.kind = ACT_WRITE, .rank = 0, .at = 0}, read = {.kind = ACT_READ};
    struct act swap = {.kind = waits ? ACT_TAKE : ACT_SWAP, .b = 1};
    struct act when = {.kind = ACT_WHEN, .relation = EQ, .a = 0};
    if (broken) {
        when.relation = LT;
        when.a = 2;
    }
    add(k, rank, swap);
    if (!waits)
        add(k, rank, when);
    add(k, rank, write);
    if (below(dice, 2))
        add(k, rank, read);
    add(k, rank, (struct act){.kind = ACT_SET, .a = 0});
    if (!waits)
        add(k, rank, (struct act){.kind = ACT_END});
}

static struct kernel make(uint64_t seed)
{
    uint64_t dice = seed * 6151 + 11;
    struct kernel k = {.ranks = 2 + below(&dice, 3) / 2, .launches = 1 + below(&dice, 3) / 2};
    for (uint32_t r = 0; r < k.ranks; r++) {
        add(&k, r, (struct act){.kind = ACT_FETCH, .rank = r, .at = SPARE_CELL});
        if (seed % 3 == 0)
            add_section(&dice, &k, r);
        uint32_t acts = 1 + below(&dice, k.launches == 1 ? 5 : 3), open = 0;
        for (uint32_t i = 0; i < acts; i++) {
            if (k.count[r] + open + 3 >= MAX_ACTS)
                break;
            if (below(&dice, 3) == 0) {
                open++;
                add(&k, r,
                    (struct act){.kind = ACT_WHEN,
                                 .a = (int)below(&dice, 3),
                                 .relation = (enum relation)below(&dice, 4)});
            }
            add(&k, r, any_act(&dice, k.ranks, r));
            if (open && below(&dice, 2)) {
                open--;
                add(&k, r, (struct act){.kind = ACT_END});
            }
        }
        for (; open > 0; open--)
            add(&k, r, (struct act){.kind = ACT_END});
    }
    return k;
}

/* --- ways to use cells ------------------------------------------------------------------------ */

/* Every rank adds to a cell of every other and waits for all; then the cell is taken from, set back,
 * or left to count on. */
static void add_barrier(uint64_t *dice, struct kernel *k, uint32_t cell)
{
    bool by_set = below(dice, 3) == 0, equal = below(dice, 3) == 0;
    for (uint32_t r = 0; r < k->ranks; r++) {
        int others = (int)k->ranks - 1;
        struct act wait = {.kind = equal ? ACT_WAIT_EQUAL : ACT_WAIT, .rank = r, .at = cell};
        wait.a = others;
        for (uint32_t q = 0; q < k->ranks; q++) {
            if (q != r)
                add(k, r, (struct act){.kind = ACT_ADD, .rank = q, .at = cell, .a = 1});
        }
        add(k, r, wait);
        struct act back = {.kind = ACT_SET, .rank = r, .at = cell};
        if (!by_set)
            back = (struct act){.kind = ACT_ADD, .rank = r, .at = cell, .a = -others};
        add(k, r, back);
    }
}

/* One rank fills a place of another, and both turn a cell of one of them: by swaps, or by sets and
 * waits. */
static void add_handshake(uint64_t *dice, struct kernel *k, uint32_t cell)
{
    uint32_t from = below(dice, k->ranks), to = (from + 1) % k->ranks, place = below(dice, PLACES);
    bool swaps = below(dice, 2);
    struct act empty = {.kind = ACT_TAKE, .rank = to, .at = cell, .a = 0, .b = swaps ? 2 : 0};
    struct act full = {.kind = swaps ? ACT_TAKE : ACT_SET, .rank = to, .at = cell, .a = 1, .b = 1};
    if (swaps)
        full.a = 2;
    struct act got = {.kind = ACT_WAIT_EQUAL, .rank = to, .at = cell, .a = 1};
    struct act back = {.kind = ACT_SET, .rank = to, .at = cell, .a = 0};
    if (below(dice, 2))
        back = (struct act){.kind = ACT_TAKE, .rank = to, .at = cell, .a = 1, .b = 0};
    add(k, from, empty);
    add(k, from, (struct act){.kind = ACT_WRITE, .rank = to, .at = place});
    add(k, from, full);
    add(k, to, got);
    add(k, to, (struct act){.kind = ACT_READ, .rank = to, .at = place});
    add(k, to, back);
}

/* t is the number of the launch, or a little less; every rank sets a flag of its neighbour to it, or one
 * of its own that the neighbour polls. */
static void add_epoch(uint64_t *dice, struct kernel *k, uint32_t cell)
{
    bool equal = below(dice, 3) == 0, afar = below(dice, 2);
    for (uint32_t r = 0; r < k->ranks; r++) {
        uint32_t next = (r + 1) % k->ranks;
        add(k, r,
            (struct act){
                .kind = ACT_SET, .rank = afar ? r : next, .at = cell, .a = 1, .plus_t = true});
        add(k, r,
            (struct act){.kind = equal ? ACT_WAIT_EQUAL : ACT_WAIT,
                         .rank = afar ? next : r,
                         .at = cell,
                         .a = 1,
                         .plus_t = true});
    }
}

/* Every rank adds to a cell of every other, and waits for what all have added so far, or one or two
 * launches ago. */
static void add_rising(uint64_t *dice, struct kernel *k, uint32_t cell)
{
    int others = (int)k->ranks - 1, start = others - (below(dice, 4) == 0);
    if (below(dice, 3) == 0)
        start -= others * (1 + (int)below(dice, 2));
    for (uint32_t r = 0; r < k->ranks; r++) {
        for (uint32_t q = 0; q < k->ranks; q++) {
            if (q != r)
                add(k, r, (struct act){.kind = ACT_ADD, .rank = q, .at = cell, .a = 1});
        }
        add(k, r,
            (struct act){.kind = ACT_WAIT, .rank = r, .at = cell, .a = start, .times = others});
    }
}

/* A flag that changes its sense from launch to launch, and back. */
static void add_sense(uint64_t *dice, struct kernel *k, uint32_t cell)
{
    uint32_t from = below(dice, k->ranks), to = (from + 1) % k->ranks;
    int mod = 2 + (int)below(dice, 2);
    add(k, from,
        (struct act){.kind = ACT_SET, .rank = to, .at = cell, .a = 1, .times = 1, .mod = mod});
    add(k, to,
        (struct act){
            .kind = ACT_WAIT_EQUAL, .rank = to, .at = cell, .a = 1, .times = 1, .mod = mod});
}

static void add_data(uint64_t *dice, struct kernel *k)
{
    uint32_t r = below(dice, k->ranks), place = below(dice, PLACES);
    add(k, r, (struct act){.kind = ACT_WRITE, .rank = r, .at = place});
    if (below(dice, 2))
        add(k, (r + 1) % k->ranks, (struct act){.kind = ACT_READ, .rank = r, .at = place});
}

/* Something is wrong in every other kernel. */
static void spoil(uint64_t *dice, struct kernel *k)
{
    uint32_t r = below(dice, k->ranks);
    if (k->count[r] < 2)
        return;
    uint32_t i = 1 + below(dice, k->count[r] - 1);
    struct act *act = &k->acts[r][i];
    bool in_block = act->kind >= ACT_WHEN || (i + 1 < k->count[r] && act[1].kind >= ACT_WHEN);
    if (in_block)
        return;
    switch (below(dice, 5)) {
    case 0: /* it is left out */
        for (; i + 1 < k->count[r]; i++)
            k->acts[r][i] = k->acts[r][i + 1];
        k->count[r]--;
        break;
    case 1: /* two change places */
        if (i + 1 < k->count[r]) {
            struct act swap = *act;
            *act = act[1];
            act[1] = swap;
        }
        break;
    case 2:
        act->a += act->kind <= ACT_WAIT_EQUAL ? 1 - 2 * (int)below(dice, 2) : 0;
        break;
    case 3:
        if (act->kind == ACT_ADD)
            act->kind = ACT_SET;
        else if (act->kind == ACT_WAIT_EQUAL)
            act->kind = ACT_WAIT;
        break;
    default:
        if (act->kind <= ACT_TAKE)
            act->at = below(dice, SPARE_CELL);
        break;
    }
}

static struct kernel make_cells(uint64_t seed)
{
    uint64_t dice = seed * 9769 + 5;
    struct kernel k = {.ranks = 2 + below(&dice, 3) / 2, .launches = 2};
    bool peeks = below(&dice, 2);
    for (uint32_t r = 0; r < k.ranks; r++) {
        add(&k, r, (struct act){.kind = ACT_FETCH, .rank = r, .at = SPARE_CELL, .a = 1});
        if (peeks)
            add(&k, r, (struct act){.kind = ACT_PEEK, .rank = r, .at = SPARE_CELL});
    }
    uint32_t pieces = 1 + below(&dice, k.ranks == 2 ? 3 : 2);
    for (uint32_t i = 0; i < pieces; i++) {
        static void (*const ways[])(uint64_t *, struct kernel *,
                                    uint32_t) = {add_barrier, add_handshake, add_epoch};
        if (below(&dice, 2))
            add_data(&dice, &k);
        ways[below(&dice, 3)](&dice, &k, below(&dice, SPARE_CELL));
    }
    for (uint32_t i = below(&dice, 4); i > 1; i--)
        spoil(&dice, &k);
    return k;
}

static void add_to_all(struct kernel *k, struct act act)
{
    for (uint32_t r = 0; r < k->ranks; r++)
        add(k, r, act);
}

/* Something that happens in some launches only, before all others or not. */
static void add_block(uint64_t *dice, struct kernel *k, uint32_t cell)
{
    struct act when = {.kind = ACT_WHEN, .times = 1, .mod = below(dice, 3) ? 0 : 2};
    when.relation = (enum relation)(below(dice, 3) ? EQ : below(dice, 4));
    when.a = (int)below(dice, 5) / 3;
    add_to_all(k, when);
    if (below(dice, 2)) {
        add_barrier(dice, k, cell);
    } else { /* a first credit, for whoever waits for one later */
        for (uint32_t r = 0; r < k->ranks; r++)
            add(k, r, (struct act){.kind = ACT_SET, .rank = r, .at = cell, .a = 1});
    }
    if (below(dice, 3) == 0)
        add_data(dice, k);
    add_to_all(k, (struct act){.kind = ACT_END});
}

/* A credit is taken, and given by the neighbour. */
static void add_credit(uint64_t *dice, struct kernel *k, uint32_t cell)
{
    bool first = below(dice, 2);
    for (uint32_t r = 0; r < k->ranks; r++) {
        uint32_t next = (r + 1) % k->ranks;
        struct act give = {.kind = ACT_ADD, .rank = next, .at = cell, .a = 1};
        if (first)
            add(k, r, give);
        add(k, r, (struct act){.kind = ACT_WAIT, .rank = r, .at = cell, .a = 1});
        add(k, r, (struct act){.kind = ACT_ADD, .rank = r, .at = cell, .a = -1});
        if (!first)
            add(k, r, give);
    }
}

static struct kernel make_launches(uint64_t seed)
{
    uint64_t dice = seed * 7919 + 3;
    struct kernel k = {.ranks = 2 + below(&dice, 3) / 2, .launches = 2 + below(&dice, 2)};
    static void (*const ways[])(uint64_t *, struct kernel *, uint32_t) = {
        add_rising, add_sense, add_epoch, add_credit, add_handshake};
    for (uint32_t r = 0; r < k.ranks; r++) { /* none without an act, nor a signal with one side */
        add(&k, r, (struct act){.kind = ACT_ADD, .rank = r, .at = SPARE_CELL});
        add(&k, r, (struct act){.kind = ACT_WAIT, .rank = r, .at = SPARE_CELL});
    }
    if (below(&dice, 2))
        add_block(&dice, &k, below(&dice, SPARE_CELL));
    uint32_t pieces = 1 + below(&dice, k.ranks == 2 ? 2 : 1);
    for (uint32_t i = 0; i < pieces; i++) {
        if (below(&dice, 2))
            add_data(&dice, &k);
        ways[below(&dice, 5)](&dice, &k, below(&dice, SPARE_CELL));
    }
    if (below(&dice, 6) == 0)
        add_block(&dice, &k, below(&dice, SPARE_CELL));
    for (uint32_t i = below(&dice, 4); i > 1; i--)
        spoil(&dice, &k);
    for (uint32_t r = 0; r < k.ranks; r++) {
        for (uint32_t i = 0; i < k.count[r]; i++) {
            struct act *act = &k.acts[r][i];
            act->times += act->plus_t;
            act->plus_t = false;
        }
    }
    return k;
}

/* --- locks ------------------------------------------------------------------------------------ */

/* Accesses of a section, or outside one. */
static void add_accesses(uint64_t *dice, struct kernel *k, uint32_t rank)
{
    for (uint32_t n = below(dice, 3); n > 0; n--) {
        struct act act = {.kind = below(dice, 2) ? ACT_WRITE : ACT_READ};
        act.at = below(dice, PLACES);
        add(k, rank, act);
    }
}

/* A cell of rank 0 is taken and given back; or numbers come from it, and one of rank 1 is served. */
static void add_locked(uint64_t *dice, struct kernel *k, uint32_t rank, bool tickets)
{
    uint32_t how = below(dice, 3);
    struct act enter = {.kind = ACT_TAKE, .b = 1}, leave = {.kind = ACT_SET};
    if (how == 1)
        leave = (struct act){.kind = ACT_TAKE, .a = 1};
    else if (how == 2)
        leave = (struct act){.kind = ACT_ADD, .a = -1};
    if (tickets) {
        add(k, rank, (struct act){.kind = ACT_FETCH, .a = 1});
        enter = (struct act){
            .kind = how ? ACT_WAIT_EQUAL : ACT_WAIT, .rank = 1, .a = 0, .plus_t = true};
        leave = (struct act){.kind = ACT_ADD, .rank = 1, .a = 1};
    }
    if (tickets && how == 2)
        leave = (struct act){.kind = ACT_SET, .rank = 1, .a = 1, .plus_t = true};
    add(k, rank, enter);
    add_accesses(dice, k, rank);
    add(k, rank, leave);
}

static struct kernel make_locks(uint64_t seed)
{
    uint64_t dice = seed * 7919 + 3;
    struct kernel k = {.ranks = 2 + below(&dice, 3) / 2, .launches = 1 + below(&dice, 2)};
    bool tickets = below(&dice, 2), begins = below(&dice, 2), ends = below(&dice, 2);
    for (uint32_t r = 0; r < k.ranks; r++)
        add(&k, r, (struct act){.kind = ACT_FETCH, .rank = r, .at = SPARE_CELL});
    for (uint32_t i = 0; i < PLACES && begins; i++)
        add(&k, 0, (struct act){.kind = ACT_WRITE, .at = i});
    if (begins)
        add_barrier(&dice, &k, 1);
    for (uint32_t r = 0; r < k.ranks; r++) {
        for (uint32_t n = k.ranks == 2 ? 1 + below(&dice, 2) : 1; n > 0; n--)
            add_locked(&dice, &k, r, tickets);
    }
    if (ends)
        add_barrier(&dice, &k, 1);
    if (ends || below(&dice, 4) == 0)
        add_accesses(&dice, &k, 0);
    if (below(&dice, 3) == 0)
        spoil(&dice, &k);
    return k;
}

/* The expression of an amount. */
static const char *sum_of(const struct act *act)
{
    static char text[80];
    int len = snprintf(text, sizeof text, act->plus_t ? "t + %d" : "%d", act->a);
    if (act->times)
        len += snprintf(text + len, sizeof text - (size_t)len, " + %d * launch", act->times);
    if (act->times && act->mod)
        snprintf(text + len, sizeof text - (size_t)len, " mod %d", act->mod);
    return text;
}

static void put_act(const struct act *act, struct peal_text *out)
{
    static const char *const relations[] = {"==", "!=", "<", ">="};
    switch (act->kind) {
    case ACT_ADD:
        peal_text_printf(out, "notify s[%u]@%u += %s\n", act->at, act->rank, sum_of(act));
        break;
    case ACT_SET:
        peal_text_printf(out, "notify s[%u]@%u = %s\n", act->at, act->rank, sum_of(act));
        break;
    case ACT_WAIT:
        peal_text_printf(out, "wait s[%u]@%u >= %s\n", act->at, act->rank, sum_of(act));
        break;
    case ACT_WAIT_EQUAL:
        peal_text_printf(out, "wait s[%u]@%u == %s\n", act->at, act->rank, sum_of(act));
        break;
    case ACT_FETCH:
        peal_text_printf(out, "t = fetch_add(s[%u]@%u, %d)\n", act->at, act->rank, act->a);
        break;
    case ACT_PEEK:
        peal_text_printf(out, "t = peek s[%u]\n", act->at);
        break;
    case ACT_SWAP:
        peal_text_printf(out, "t = compare_swap(s[%u]@%u, %d, %d)\n", act->at, act->rank, act->a,
                         act->b);
        break;
    case ACT_TAKE:
        peal_text_printf(out, "take s[%u]@%u from %d to %d\n", act->at, act->rank, act->a, act->b);
        break;
    case ACT_READ:
        peal_text_printf(out, "y[0] = w@%u[%u]\n", act->rank, act->at);
        break;
    case ACT_WRITE:
        peal_text_printf(out, "w@%u[%u] = 1\n", act->rank, act->at);
        break;
    case ACT_WHEN:
        peal_text_puts(out, act->times ? "when launch" : "when t");
        if (act->mod)
            peal_text_printf(out, " mod %d", act->mod);
        peal_text_printf(out, " %s %d {\n", relations[act->relation], act->a);
        break;
    case ACT_END:
        peal_text_puts(out, "}\n");
        break;
    }
}

static void put_text(const struct kernel *k, struct peal_text *out)
{
    out->len = 0;
    peal_text_puts(out, "kernel k(in x: T[n], out y: T[n]) {\nwindow w: T[2]\nsignal raw s[3]\n"
                        "y = x\n");
    for (uint32_t r = 0; r < k->ranks; r++) {
        peal_text_printf(out, "if rank == %u {\n", r);
        for (uint32_t i = 0; i < k->count[r]; i++) {
            peal_text_puts(out, i == 0 && k->acts[r][0].kind == ACT_FETCH ? "var " : "");
            put_act(&k->acts[r][i], out);
        }
        peal_text_puts(out, "}\n");
    }
    peal_text_puts(out, "}\n");
}

/* --- brute force ------------------------------------------------------------------------------ */

struct state {
    uint8_t at[MAX_RANKS], launch[MAX_RANKS];
    uint8_t written[MAX_RANKS][PLACES];
    int8_t cell[MAX_RANKS][CELLS];
    int8_t t[MAX_RANKS];
};

struct brute {
    const struct kernel *k;
    struct seen seen;
    bool race, deadlock, unwritten;
};

static bool holds(const struct act *when, int t)
{
    switch (when->relation) {
    case EQ:
        return t == when->a;
    case NE:
        return t != when->a;
    case LT:
        return t < when->a;
    default:
        return t >= when->a;
    }
}

static const struct act *next_of(const struct brute *b, const struct state *s, uint32_t r)
{
    return s->launch[r] < b->k->launches ? &b->k->acts[r][s->at[r]] : NULL;
}

static int amount(const struct state *s, uint32_t r, const struct act *act)
{
    int launch = act->mod ? s->launch[r] % act->mod : s->launch[r];
    return act->a + (act->plus_t ? s->t[r] : 0) + act->times * launch;
}

/* What a when compares. */
static int compared(const struct state *s, uint32_t r, const struct act *when)
{
    if (!when->times)
        return s->t[r];
    return when->mod ? s->launch[r] % when->mod : s->launch[r];
}

static bool can(const struct state *s, uint32_t r, const struct act *act)
{
    int value = s->cell[act->rank][act->at];
    if (act->kind == ACT_WAIT)
        return value >= amount(s, r, act);
    return (act->kind != ACT_WAIT_EQUAL && act->kind != ACT_TAKE) || value == amount(s, r, act);
}

/* The act after the end of the when at `at`. */
static uint8_t skip_block(const struct brute *b, uint32_t r, uint8_t at)
{
    for (int depth = 0;; at++) {
        depth += b->k->acts[r][at].kind == ACT_WHEN;
        depth -= b->k->acts[r][at].kind == ACT_END;
        if (depth == 0)
            return (uint8_t)(at + 1);
    }
}

static void move(struct brute *b, struct state *s, uint32_t r)
{
    const struct act *act = next_of(b, s, r);
    int8_t *cell = &s->cell[act->rank][act->at];
    uint8_t next = (uint8_t)(s->at[r] + 1);
    switch (act->kind) {
    case ACT_ADD:
        *cell = (int8_t)(*cell + amount(s, r, act));
        break;
    case ACT_SET:
        *cell = (int8_t)amount(s, r, act);
        break;
    case ACT_PEEK:
        s->t[r] = *cell;
        break;
    case ACT_FETCH:
        s->t[r] = *cell;
        *cell = (int8_t)(*cell + act->a);
        break;
    case ACT_SWAP:
        s->t[r] = *cell;
        *cell = (int8_t)(*cell == act->a ? act->b : *cell);
        break;
    case ACT_TAKE:
        *cell = (int8_t)act->b;
        break;
    case ACT_READ:
        b->unwritten = b->unwritten || !s->written[act->rank][act->at];
        break;
    case ACT_WRITE:
        s->written[act->rank][act->at] = 1;
        break;
    case ACT_WHEN:
        if (!holds(act, compared(s, r, act)))
            next = skip_block(b, r, s->at[r]);
        break;
    default:
        break;
    }
    s->at[r] = next;
    if (next == b->k->count[r]) {
        s->at[r] = 0;
        s->launch[r]++;
    }
}

static bool is_access(const struct act *act)
{
    return act && (act->kind == ACT_READ || act->kind == ACT_WRITE);
}

static bool conflict(const struct act *x, const struct act *y)
{
    return is_access(x) && is_access(y) && x->rank == y->rank && x->at == y->at &&
           (x->kind == ACT_WRITE || y->kind == ACT_WRITE);
}

static void find_race(struct brute *b, const struct state *s)
{
    for (uint32_t r = 0; r < b->k->ranks; r++) {
        for (uint32_t q = 0; q < r; q++)
            b->race = b->race || conflict(next_of(b, s, r), next_of(b, s, q));
    }
}

static void enumerate(struct brute *b, const struct state *from)
{
    bool moved = false, ended = true;
    find_race(b, from);
    for (uint32_t r = 0; r < b->k->ranks; r++) {
        const struct act *act = next_of(b, from, r);
        struct state s = *from;
        ended = ended && !act;
        if (!act || !can(from, r, act))
            continue;
        moved = true;
        move(b, &s, r);
        if (seen_add(&b->seen, &s))
            enumerate(b, &s);
    }
    b->deadlock = b->deadlock || (!moved && !ended);
}

/* --- the verifier ----------------------------------------------------------------------------- */

static struct peal_plan *plan_of(const struct kernel *k, const struct peal_text *text)
{
    struct peal_diags diags;
    struct peal_program *program = NULL;
    struct peal_plan *plan = NULL;
    const struct peal_kernel *kernel = NULL;
    peal_diags_init(&diags);
    if (peal_program_text("k.peal", text->at, text->len, &diags, &program) == PEAL_OK)
        kernel = peal_program_kernel(program, NULL, &diags);
    struct peal_plan_request request = {
        .kernel = kernel,
        .count = 1,
        .bind = {.nranks = k->ranks, .rank = PEAL_NONE, .dtype = PEAL_F32, .symmetric = true}};
    if (kernel)
        (void)peal_plan_make(&request, &diags, &plan);
    if (!plan && diags.list.len)
        printf("%s\n%s\n", diags.list.at[0].message, text->at);
    peal_program_close(program);
    peal_diags_release(&diags);
    return plan;
}

static void search(struct brute *b, const struct kernel *k)
{
    b->k = k;
    b->race = b->deadlock = b->unwritten = false;
    seen_clear(&b->seen);
    enumerate(b, &(struct state){0});
}

/* Launched more often than the proof says, the kernel must still be good. */
static bool repeats_well(struct brute *b, struct kernel k, const struct peal_plan *plan,
                         unsigned *repeatable)
{
    struct peal_verify_options options = {.no_story = true, .max_states = 300000};
    struct peal_verification *v = NULL;
    bool good = true;
    if (peal_verify_plan(plan, &options, &v) != PEAL_OK)
        exit(3);
    if (v->verdict == PEAL_PROVED && v->reuse >= PEAL_REUSE_REPEATABLE) {
        ++*repeatable;
        k.launches = (v->launches < 4 ? v->launches : 4) + 2;
        search(b, &k);
        good = b->seen.full || (!b->race && !b->deadlock && !b->unwritten);
    }
    peal_verification_free(v);
    return good;
}

static bool agree(const struct brute *b, const struct peal_verification *v)
{
    if (v->verdict == PEAL_UNDECIDED || v->has_race != b->race || v->has_deadlock != b->deadlock)
        return false;
    if (b->race || b->deadlock)
        return true;
    return (v->fault == PEAL_FAULT_UNINITIALISED) == b->unwritten;
}

int main(int argc, char **argv)
{
    bool launches = argc == 4 && strcmp(argv[3], "launch") == 0;
    bool locks = argc == 4 && strcmp(argv[3], "locks") == 0;
    bool cells = launches || (argc == 4 && strcmp(argv[3], "cells") == 0);
    if (argc != 3 && !cells && !locks)
        return 2;
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    unsigned wrong = 0, good = 0, races = 0, deadlocks = 0, unwritten = 0, skipped = 0;
    unsigned counted = 0, locked = 0, repeatable = 0;
    struct peal_text text = {0};
    static struct brute b;
    if (!seen_new(&b.seen, SLOTS, sizeof(struct state)))
        return 3;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct kernel k = locks      ? make_locks(seed)
                          : launches ? make_launches(seed)
                          : cells    ? make_cells(seed)
                                     : make(seed);
        struct peal_verification *v = NULL;
        put_text(&k, &text);
        struct peal_plan *plan = plan_of(&k, &text);
        struct peal_verify_options options = {
            .launches = k.launches, .no_story = true, .all_faults = true};
        if (!plan || peal_verify_plan(plan, &options, &v) != PEAL_OK)
            return 3;
        search(&b, &k);
        counted += v->monotone && !plan->monotone;
        locked += v->verdict == PEAL_PROVED && !v->monotone && v->states == 0;
        if (b.seen.full) {
            skipped++;
        } else if (!agree(&b, v)) {
            wrong++;
            printf("kernel %llu, %u ranks, %u launches: race %d deadlock %d unwritten %d; the "
                   "verifier: %s, %s, race %d deadlock %d%s%s\n%s\n",
                   (unsigned long long)seed, k.ranks, k.launches, b.race, b.deadlock, b.unwritten,
                   peal_outcome_name(v->verdict), peal_fault_name(v->fault), v->has_race,
                   v->has_deadlock, peal_text_if(v->why, ", "), peal_text_or_empty(v->why),
                   text.at);
        }
        bool is_good = !b.race && !b.deadlock && !b.unwritten;
        races += b.race;
        deadlocks += b.deadlock;
        unwritten += !b.race && !b.deadlock && b.unwritten;
        good += is_good;
        /* With a counterexample the verifier takes another path: the verdict must be the same. */
        peal_verification_free(v);
        options.no_story = options.all_faults = false;
        if (peal_verify_plan(plan, &options, &v) != PEAL_OK)
            return 3;
        if (!b.seen.full && (v->verdict == PEAL_PROVED) != is_good) {
            wrong++;
            printf("kernel %llu: with its counterexample it is %s\n", (unsigned long long)seed,
                   peal_outcome_name(v->verdict));
        }
        peal_verification_free(v);
        if ((cells || locks) && is_good && !repeats_well(&b, k, plan, &repeatable)) {
            wrong++;
            printf("kernel %llu, %u ranks: proved repeatable, but goes wrong\n%s\n",
                   (unsigned long long)seed, k.ranks, text.at);
        }
        free(plan);
    }
    if (cells || locks)
        printf("%u counted, %u locked, %u repeatable\n", counted, locked, repeatable);
    printf("seeds %llu to %llu: %u sound, %u with a race, %u with a deadlock, %u that read what no "
           "rank wrote, %u too large: %u differ\n",
           (unsigned long long)first, (unsigned long long)(first + count - 1), good, races,
           deadlocks, unwritten, skipped, wrong);
    seen_free(&b.seen);
    peal_text_release(&text);
    if (cells)
        return wrong || counted < count / 10 || repeatable < count / 25 || races < count / 50;
    if (locks)
        return wrong || locked < count / 20 || repeatable < count / 20 || races < count / 20;
    return wrong || good < count / 50 || races < count / 50 || deadlocks < count / 50 ||
           unwritten < count / 200;
}
