/* SPDX-License-Identifier: Apache-2.0 */
/* Proposals for a fault of an MSCCL++ plan. All of them insert ops:
 *
 *   race inside a block                a nop before one of the two ops
 *   race of two ranks, with a signal   a wait before the later op, or at the end of its block
 *     that no wait takes
 *   race of two ranks                  a signal after one op, or at the start of its block, and a
 *                                      wait before the other op, or at the end of its block
 *   a wait that never passes           nop and signal after an op of the rank that could signal
 *
 * Which op is the later one, and which channel is meant, is not known: every guess is a proposal,
 * and the caller must verify a proposal before offering it.
 */
#include "import/mscclpp/mscclpp.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PROPOSALS = 128 };

struct site {
    const struct mscclpp_gpu *gpu;
    const struct mscclpp_tb *tb;
    const struct mscclpp_op *op;
    uint32_t rank;
};

struct proposer {
    const struct peal_import *import;
    const struct mscclpp_plan *plan;
    struct peal_findings *out;
};

static bool find_op(const struct mscclpp_plan *plan, uint32_t line, uint32_t col, struct site *out)
{
    for (uint32_t r = 0; r < plan->nranks; r++) {
        for (uint32_t t = 0; t < plan->gpus[r].ntbs; t++) {
            const struct mscclpp_tb *tb = &plan->gpus[r].tbs[t];
            for (uint32_t i = 0; i < tb->nops; i++) {
                if (tb->ops[i].line == line && tb->ops[i].col == col) {
                    *out = (struct site){&plan->gpus[r], tb, &tb->ops[i], r};
                    return true;
                }
            }
        }
    }
    return false;
}

/* --- places ---------------------------------------------------------------------------------- */

static size_t begin_of(const struct proposer *p, const struct mscclpp_op *op)
{
    return peal_edits_offset(p->import->source, op->line, op->col);
}

/* The position after the closing brace of the object that begins at the op. */
static size_t end_of(const struct proposer *p, const struct mscclpp_op *op)
{
    const struct peal_source *source = p->import->source;
    uint32_t depth = 0;
    bool quoted = false;
    for (size_t i = begin_of(p, op); i < source->len; i++) {
        char c = source->text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == '{')
            depth++;
        else if (!quoted && c == '}' && --depth == 0)
            return i + 1;
    }
    return source->len;
}

static bool is_object(const struct proposer *p, const struct mscclpp_op *op)
{
    size_t at = begin_of(p, op);
    return at < p->import->source->len && p->import->source->text[at] == '{';
}

static struct peal_finding *propose(struct proposer *p, const char *rule,
                                    const struct mscclpp_op *at, const char *text)
{
    struct peal_pos pos = {p->import->source, at->line, at->col, 1};
    if (p->out->list.len >= MAX_PROPOSALS)
        return NULL;
    return peal_finding_add(p->out, PEAL_FINDING_NOTE, rule, pos, "fix: %s", text);
}

/* --- channels -------------------------------------------------------------------------------- */

/* How often a launch signals, or waits, on a memory channel of a gpu. */
static uint32_t count_uses(const struct mscclpp_gpu *gpu, uint32_t channel, bool waits)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < gpu->ntbs; t++) {
        for (uint32_t i = 0; i < gpu->tbs[t].nops; i++) {
            const struct mscclpp_op *op = &gpu->tbs[t].ops[i];
            bool wait = op->name == MPP_WAIT || op->name == MPP_RELAXED_WAIT;
            bool signal = op->name == MPP_SIGNAL || op->name == MPP_RELAXED_SIGNAL;
            if (op->channel_type != MPP_MEMORY || !(waits ? wait : signal))
                continue;
            for (uint32_t k = 0; k < op->nchannels; k++)
                n += op->channels[k] == channel;
        }
    }
    return n;
}

/* The peer's end of a memory channel: the one with the same number in the other direction.
 * PEAL_NONE: there is none. */
static uint32_t other_end(const struct proposer *p, uint32_t rank, uint32_t channel)
{
    const struct mscclpp_channel *c = &p->plan->gpus[rank].channels[MPP_MEMORY][channel];
    const struct mscclpp_gpu *peer = &p->plan->gpus[c->peer];
    for (uint32_t i = 0; i < peer->nchannels[MPP_MEMORY]; i++) {
        const struct mscclpp_channel *d = &peer->channels[MPP_MEMORY][i];
        if (d->peer == rank && d->order == c->order)
            return i;
    }
    return PEAL_NONE;
}

/* The channel's index in the block's list. PEAL_NONE: the block does not have it. */
static uint32_t place_in(const struct mscclpp_tb *tb, uint32_t channel)
{
    for (uint32_t i = 0; i < tb->nchannels; i++) {
        if (tb->channels[i] == channel)
            return i;
    }
    return PEAL_NONE;
}

/* Where an op is inserted: before or after another one, or at the start or the end of a block. */
struct spot {
    const struct mscclpp_tb *tb;
    const struct mscclpp_op *op;
    bool behind;
};

static struct spot at_end(const struct mscclpp_tb *tb)
{
    return (struct spot){tb, &tb->ops[tb->nops - 1], true};
}

static struct spot at_start(const struct mscclpp_tb *tb)
{
    return (struct spot){tb, &tb->ops[0], false};
}

/* An op as the file has it: a nop, or a signal or wait on one of the block's channels. */
static void write_op(struct peal_text *out, const char *name, const uint32_t *channel)
{
    struct peal_json json;
    peal_json_init(&json, out, PEAL_JSON_ONE_LINE);
    peal_json_object(&json);
    peal_json_put_string(&json, "name", name);
    if (channel) {
        peal_json_put_string(&json, "channel_type", "memory");
        peal_json_put_array(&json, "channel_ids");
        peal_json_uint(&json, *channel);
        peal_json_array_end(&json);
    }
    peal_json_object_end(&json);
}

static void insert_nop(struct proposer *p, struct peal_finding *f, const struct mscclpp_op *before)
{
    struct peal_text text = {0};
    write_op(&text, "nop", NULL);
    peal_text_puts(&text, ", ");
    if (!text.failed)
        peal_finding_edit(p->out, f, begin_of(p, before), 0, peal_text_get(&text));
    peal_text_release(&text);
}

/* A signal comes after a nop, a wait before one; neither is needed at an end of the block. */
static void insert(struct proposer *p, struct peal_finding *f, struct spot at, bool waits,
                   uint32_t place)
{
    const char *name = waits ? "wait" : "signal";
    struct peal_text text = {0};
    uint64_t offset;
    if (at.behind) {
        offset = end_of(p, at.op);
        peal_text_puts(&text, ", ");
        write_op(&text, "nop", NULL);
        peal_text_puts(&text, ", ");
        write_op(&text, name, &place);
    } else {
        offset = begin_of(p, at.op);
        write_op(&text, name, &place);
        peal_text_puts(&text, ", ");
        if (waits) {
            write_op(&text, "nop", NULL);
            peal_text_puts(&text, ", ");
        }
    }
    if (!text.failed)
        peal_finding_edit(p->out, f, offset, 0, peal_text_get(&text));
    peal_text_release(&text);
}

/* --- proposals ------------------------------------------------------------------------------- */

static void propose_nop(struct proposer *p, const struct site *s)
{
    struct peal_finding *f =
        propose(p, "fix-nop", s->op, "a nop before this op joins the block's threads");
    if (f)
        insert_nop(p, f, s->op);
}

/* One side of an order between two ranks: an op, or without one anywhere in the rank. */
struct side {
    uint32_t rank;
    const struct mscclpp_tb *tb; /* NULL: every block */
    const struct mscclpp_op *op;
};

/* The signal: after the op, or at the start of a block. */
static void propose_signals(struct proposer *p, const struct side *first, uint32_t back,
                            uint32_t waiter, struct spot wait, uint32_t place)
{
    const struct mscclpp_gpu *gpu = &p->plan->gpus[first->rank];
    char text[160];
    snprintf(text, sizeof text, "gpu %u signals, and gpu %u waits for it", first->rank, waiter);
    for (uint32_t t = 0; t < gpu->ntbs; t++) {
        const struct mscclpp_tb *tb = &gpu->tbs[t];
        uint32_t there = place_in(tb, back);
        if ((first->tb && tb != first->tb) || there == PEAL_NONE || !tb->nops)
            continue;
        struct spot spots[] = {{tb, first->op, true}, at_start(tb)};
        for (int i = first->op ? 0 : 1; i < 2; i++) {
            struct peal_finding *f = propose(p, "fix-signal", wait.op, text);
            if (!f)
                return;
            insert(p, f, spots[i], false, there);
            insert(p, f, wait, true, place);
        }
    }
}

/* The wait: before the op, or at the end of a block; for an existing signal, or a new one. */
static void propose_order(struct proposer *p, const struct side *first, const struct side *later)
{
    const struct mscclpp_gpu *gpu = &p->plan->gpus[later->rank];
    char text[160];
    for (uint32_t t = 0; t < gpu->ntbs; t++) {
        const struct mscclpp_tb *tb = &gpu->tbs[t];
        if ((later->tb && tb != later->tb) || !tb->nops)
            continue;
        for (uint32_t i = 0; i < tb->nchannels; i++) {
            uint32_t channel = tb->channels[i];
            uint32_t back = other_end(p, later->rank, channel);
            if (gpu->channels[MPP_MEMORY][channel].peer != first->rank || back == PEAL_NONE)
                continue;
            bool spare = count_uses(&p->plan->gpus[first->rank], back, false) >
                         count_uses(gpu, channel, true);
            struct spot spots[] = {{tb, later->op, false}, at_end(tb)};
            for (int k = later->op ? 0 : 1; k < 2; k++) {
                snprintf(text, sizeof text, "gpu %u waits for a signal of gpu %u", later->rank,
                         first->rank);
                struct peal_finding *f = NULL;
                if (spare)
                    f = propose(p, "fix-wait", spots[k].op, text);
                if (f)
                    insert(p, f, spots[k], true, i);
                propose_signals(p, first, back, later->rank, spots[k], i);
            }
        }
    }
}

/* A wait that is never satisfied: a signal of the peer, after any of its ops, trying the last op
 * first. */
static void propose_signal(struct proposer *p, const struct site *s)
{
    char text[160];
    if (s->op->channel_type != MPP_MEMORY)
        return;
    for (uint32_t k = 0; k < s->op->nchannels; k++) {
        uint32_t peer = s->gpu->channels[MPP_MEMORY][s->op->channels[k]].peer;
        const struct mscclpp_gpu *gpu = &p->plan->gpus[peer];
        uint32_t back = other_end(p, s->rank, s->op->channels[k]);
        if (back == PEAL_NONE ||
            count_uses(gpu, back, false) >= count_uses(s->gpu, s->op->channels[k], true))
            continue;
        for (uint32_t t = 0; t < gpu->ntbs; t++) {
            const struct mscclpp_tb *tb = &gpu->tbs[t];
            uint32_t place = place_in(tb, back);
            if (place == PEAL_NONE)
                continue;
            snprintf(text, sizeof text, "gpu %u signals after this op; gpu %u waits for it", peer,
                     s->rank);
            for (uint32_t i = tb->nops; i-- > 0;) {
                if (!is_object(p, &tb->ops[i]))
                    continue;
                struct peal_finding *f = propose(p, "fix-signal", &tb->ops[i], text);
                if (f)
                    insert(p, f, (struct spot){tb, &tb->ops[i], true}, false, place);
            }
        }
    }
}

void peal_mscclpp_propose(const struct peal_import *import, const struct peal_fix_site *site,
                          struct peal_findings *out)
{
    struct proposer p = {import, import->mscclpp, out};
    struct site a, b;
    if (site->channel || p.plan->older)
        return;
    if (!find_op(p.plan, site->line[0], site->col[0], &a) || !is_object(&p, a.op))
        return;
    if (site->deadlock) {
        propose_signal(&p, &a);
        return;
    }
    if (!find_op(p.plan, site->line[1], site->col[1], &b) || !is_object(&p, b.op))
        return;
    propose_nop(&p, &b);
    propose_nop(&p, &a);
    struct side x = {a.rank, a.tb, a.op}, y = {b.rank, b.tb, b.op};
    if (site->has_caller)
        y = (struct side){.rank = site->caller};
    if (x.rank != y.rank && y.rank < p.plan->nranks) {
        propose_order(&p, &x, &y);
        propose_order(&p, &y, &x);
    }
}
