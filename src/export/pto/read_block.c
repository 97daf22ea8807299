/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of an emitted kernel: one op each, except that an op whose cell depends on the launch
 * has a line for every phase ("turns").
 *
 * The first pass counts: what every phase adds to each cell and which block adds it, and the length
 * of each message. Only then are the signals known, and the totals that a wait states can be
 * checked. The second pass (`making`) reads the same lines again and appends ops. Both keep
 * counters of each channel, in the order of the lines: messages sent, taken and given back.
 *
 * The reader accepts exactly the texts that kernel.c writes. It never guesses: whatever it does not
 * know is a failure, so that a line with a fault cannot be skipped.
 */
#include "export/pto/read.h"

#include <string.h>

/* --- cells ----------------------------------------------------------------------------------- */

static void count_notify(struct pto_reader *r, uint64_t rank, uint64_t cell, int64_t amount,
                         const bool *phases)
{
    int64_t me = (int64_t)(r->rank * r->blocks + r->block);
    int64_t *writer = &r->writer[peal_pto_cell_at(r, rank, cell)];
    if (*writer != me) {
        if (*writer == NO_WRITER)
            *writer = me;
        else
            *writer = SEVERAL_WRITERS;
    }
    for (uint64_t i = 0; i < r->period; i++) {
        if (phases[i])
            r->totals[peal_pto_cell_at(r, rank, cell) * r->period + i] += amount;
    }
}

/* One op on cells: as many consecutive lines as there are phases. */
struct block_sync {
    bool notify;
    uint64_t rank;
    uint64_t cells[PEAL_PLAN_MAX_PERIOD];
    int64_t value;
    uint64_t back;
};

static void check_totals(struct pto_reader *r, uint64_t cell)
{
    for (uint64_t i = 0; i < r->period; i++) {
        peal_pto_expect(r, ", ");
        int64_t total = (int64_t)peal_pto_number(r);
        if (!r->failed && r->making &&
            total != r->totals[peal_pto_cell_at(r, r->rank, cell) * r->period + i])
            peal_pto_fail(r, "the total is not what a launch adds to this cell");
    }
}

static void read_sync(struct pto_reader *r, uint64_t phase, struct block_sync *s)
{
    struct block_sync old = *s;
    s->notify = peal_pto_next_is(r, "Notify(r, ");
    if (!s->notify)
        peal_pto_expect(r, "Wait(r, ");
    s->rank = r->rank;
    if (s->notify) {
        s->rank = peal_pto_below(r, r->ranks);
        peal_pto_expect(r, ", ");
    }
    s->cells[phase] = peal_pto_below(r, r->cells);
    if (!r->failed && r->of_channel[s->cells[phase]])
        peal_pto_fail(r, "this cell belongs to a channel");
    peal_pto_expect(r, ", ");
    s->value = (int64_t)peal_pto_number(r);
    if (!s->notify) {
        peal_pto_expect(r, ", ");
        s->back = peal_pto_number(r);
        check_totals(r, s->cells[phase]);
    }
    peal_pto_expect(r, ");");
    bool same = s->notify == old.notify && s->rank == old.rank && s->value == old.value &&
                s->back == old.back;
    if (phase > 0 && !same)
        peal_pto_fail(r, "the turns of an op differ in more than the cell");
}

static void make_sync(struct pto_reader *r, const struct block_sync *s)
{
    uint32_t phases = PEAL_NONE;
    uint32_t cell = (uint32_t)s->cells[0];
    for (uint64_t i = 1; i < r->period; i++) {
        if (s->cells[i] != s->cells[0]) {
            phases = peal_assembler_phases(r->a, s->cells);
            break;
        }
    }
    if (s->notify)
        peal_assembler_notify(r->a, (uint32_t)s->rank, r->signal[cell], r->index[cell], phases,
                              s->value, 0);
    else
        peal_assembler_wait(r->a, r->signal[cell], r->index[cell], phases, s->value, 0);
    struct peal_op *op = peal_assembler_last(r->a);
    if (op && !s->notify)
        op->sync.back = (uint16_t)s->back;
}

static void read_guard(struct pto_reader *r, uint64_t phase)
{
    peal_pto_expect(r, "if (r.launch % kPeriod == ");
    if (peal_pto_number(r) != phase)
        peal_pto_fail(r, "a turn is missing");
    peal_pto_expect(r, ") ");
}

/* One line for all launches, or one per phase, of which this is the first. */
static void take_sync(struct pto_reader *r, const char **text)
{
    struct block_sync s = {0};
    bool turns = r->line_end - r->at > 3 && memcmp(r->at, "if ", 3) == 0;
    bool phases[PEAL_PLAN_MAX_PERIOD] = {false};
    uint64_t lines = 1;
    if (turns)
        lines = r->period;
    for (uint64_t phase = 0; phase < lines && !r->failed; phase++) {
        if (phase > 0 && !peal_pto_next_line(r, text))
            peal_pto_fail(r, "a turn is missing");
        if (phase > 0)
            peal_pto_expect(r, "    ");
        if (turns)
            read_guard(r, phase);
        read_sync(r, phase, &s);
        for (uint64_t i = 0; i < r->period; i++)
            phases[i] = !turns || i == phase;
        if (!r->failed && !r->making && s.notify)
            count_notify(r, s.rank, s.cells[phase], s.value, phases);
    }
    if (!turns) {
        for (uint64_t i = 1; i < r->period; i++)
            s.cells[i] = s.cells[0];
    }
    if (!r->failed && r->making)
        make_sync(r, &s);
}

/* --- data ------------------------------------------------------------------------------------ */

static struct pto_read_channel *read_channel(struct pto_reader *r)
{
    peal_pto_expect(r, "c");
    uint64_t number = peal_pto_below(r, r->channels.len);
    if (r->failed)
        return NULL;
    return &r->channels.at[number];
}

/* A message that is still in its slot; the first pass needs no refs. */
static struct peal_ref read_slot(struct pto_reader *r)
{
    struct pto_read_channel *c = read_channel(r);
    peal_pto_expect(r, ", ");
    uint64_t message = peal_pto_number(r);
    peal_pto_expect(r, ", ");
    uint64_t element = peal_pto_number(r);
    peal_pto_expect(r, ")");
    if (r->failed)
        return (struct peal_ref){0};
    if (c->receiver != r->rank || message < c->given || message >= c->taken)
        peal_pto_fail(r, "this message is not in a slot here");
    uint64_t size = peal_dtype_size((enum peal_dtype)r->like->dtype);
    struct peal_ref ref = peal_ref_make((uint32_t)(message - c->given), PEAL_BUF_SLOT,
                                        (enum peal_dtype)r->like->dtype, element * size);
    ref.row = c->number;
    return ref;
}

static struct peal_ref read_operand(struct pto_reader *r)
{
    uint64_t size = peal_dtype_size((enum peal_dtype)r->like->dtype);
    if (peal_pto_next_is(r, "Slot(r, "))
        return read_slot(r);
    peal_pto_expect(r, "At(r, ");
    uint64_t rank = peal_pto_below(r, r->ranks);
    peal_pto_expect(r, ", b");
    uint64_t buf = peal_pto_below(r, r->like->bufs.count);
    while (r->at < r->line_end && *r->at != ' ')
        r->at++;
    peal_pto_expect(r, " + ");
    struct peal_ref ref =
        peal_ref_make((uint32_t)rank, (uint32_t)buf, (enum peal_dtype)r->like->dtype, 0);
    if (peal_pto_next_is(r, "Pick(r")) {
        uint64_t offsets[PEAL_PLAN_MAX_PERIOD] = {0};
        for (uint64_t i = 0; i < r->period; i++) {
            peal_pto_expect(r, ", ");
            offsets[i] = peal_pto_number(r) * size;
        }
        peal_pto_expect(r, ")");
        ref.offset = offsets[0];
        if (!r->failed && r->making)
            ref.phases = peal_assembler_phases(r->a, offsets);
    } else {
        ref.offset = peal_pto_number(r) * size;
    }
    peal_pto_expect(r, ")");
    return ref;
}

static bool find_function(struct pto_reader *r, enum peal_fn *fn)
{
    static const struct {
        const char *text;
        enum peal_fn fn;
    } known[] = {{"Combine<Add>(", PEAL_FN_ADD},
                 {"Combine<Mul>(", PEAL_FN_MUL},
                 {"Combine<Max>(", PEAL_FN_MAXIMUM},
                 {"Combine<Min>(", PEAL_FN_MINIMUM}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (peal_pto_next_is(r, known[i].text)) {
            *fn = known[i].fn;
            return true;
        }
    }
    return false;
}

/* Destination and sources. */
static void take_data(struct pto_reader *r, bool combines, enum peal_fn fn)
{
    r->refs.len = 0;
    uint64_t count = peal_pto_number(r);
    while (!r->failed && peal_pto_next_is(r, ", ")) {
        struct peal_ref ref = read_operand(r);
        if (!peal_vec_push(&r->refs, ref))
            peal_pto_fail(r, "out of memory");
    }
    peal_pto_expect(r, ");");
    if (!r->failed && r->refs.len < (combines ? 3u : 2u))
        peal_pto_fail(r, "an operand is missing");
    if (r->failed || !r->making)
        return;
    if (combines)
        peal_assembler_compute(r->a, fn, r->refs.at[0], r->refs.at + 1, (uint32_t)r->refs.len - 1,
                               1, count, 0);
    else
        peal_assembler_copy(r->a, r->refs.at[0], r->refs.at[1], 1, count);
}

/* --- messages -------------------------------------------------------------------------------- */

enum block_end { SENT, TAKEN, GIVEN };

/* The channel of a message, which must be the next one that is sent, taken or freed. */
static struct pto_read_channel *read_message(struct pto_reader *r, enum block_end end)
{
    struct pto_read_channel *c = read_channel(r);
    peal_pto_expect(r, ", ");
    uint64_t message = peal_pto_number(r);
    if (r->failed)
        return NULL;
    uint64_t *const counters[] = {[SENT] = &c->sent, [TAKEN] = &c->taken, [GIVEN] = &c->given};
    uint64_t *next = counters[end], owner = end == SENT ? c->sender : c->receiver;
    if (owner != r->rank || message != *next || message >= c->messages) {
        peal_pto_fail(r, "not the next message of this end");
        return NULL;
    }
    (*next)++;
    return c;
}

/* The same, then the length and place of its data. */
static struct pto_read_channel *read_payload(struct pto_reader *r, enum block_end end,
                                             uint64_t *count, struct peal_ref *place)
{
    struct pto_read_channel *c = read_message(r, end);
    peal_pto_expect(r, ", ");
    *count = peal_pto_number(r);
    peal_pto_expect(r, ", ");
    *place = read_operand(r);
    peal_pto_expect(r, ");");
    return c;
}

static void take_send(struct pto_reader *r)
{
    uint64_t count;
    struct peal_ref src;
    struct pto_read_channel *c = read_payload(r, SENT, &count, &src);
    if (r->failed)
        return;
    if (count > c->slot)
        peal_pto_fail(r, "a message is longer than its slot");
    else if (r->making)
        peal_assembler_send(r->a, c->number, src, 1, count);
    else if (!peal_vec_push(&c->counts, count))
        peal_pto_fail(r, "out of memory");
}

static void take_receive(struct pto_reader *r)
{
    uint64_t count;
    struct peal_ref dst;
    struct pto_read_channel *c = read_payload(r, TAKEN, &count, &dst);
    if (r->failed)
        return;
    c->given++;
    if (c->taken != c->given)
        peal_pto_fail(r, "an earlier message is still in its slot");
    else if (r->making)
        peal_assembler_recv(r->a, c->number, dst, 1, count);
}

static void take_slot(struct pto_reader *r)
{
    struct pto_read_channel *c = read_message(r, TAKEN);
    peal_pto_expect(r, ");");
    if (!r->failed && r->making)
        peal_assembler_recv_slot(r->a, c->number, (enum peal_dtype)r->like->dtype,
                                 c->counts.at[c->taken - 1]);
}

static void give_slot(struct pto_reader *r)
{
    struct pto_read_channel *c = read_message(r, GIVEN);
    peal_pto_expect(r, ");");
    if (!r->failed && c->given > c->taken)
        peal_pto_fail(r, "a slot is freed before its message was taken");
    if (!r->failed && r->making)
        peal_assembler_free_slot(r->a, c->number);
}

/* --- the kernel ------------------------------------------------------------------------------ */

static void mark(struct pto_reader *r)
{
    if (r->failed || !r->making)
        return;
    struct peal_pos pos = {&r->source, r->line, 5, 0};
    uint32_t position = peal_assembler_position(r->a, pos, PEAL_NONE);
    struct peal_op *op = peal_assembler_last(r->a);
    if (op)
        op->pos = position;
}

static void take_line(struct pto_reader *r, const char **text)
{
    enum peal_fn fn = PEAL_FN_ID;
    peal_pto_expect(r, "    ");
    if (peal_pto_next_is(r, "Copy("))
        take_data(r, false, fn);
    else if (find_function(r, &fn))
        take_data(r, true, fn);
    else if (peal_pto_next_is(r, "Send(r, "))
        take_send(r);
    else if (peal_pto_next_is(r, "Receive(r, "))
        take_receive(r);
    else if (peal_pto_next_is(r, "Take(r, "))
        take_slot(r);
    else if (peal_pto_next_is(r, "Give(r, "))
        give_slot(r);
    else
        take_sync(r, text);
    mark(r);
}

/* From the line after "{" to the one with "}". The last op drains the pipes. */
static void take_block(struct pto_reader *r, const char **text)
{
    bool drained = false;
    peal_pto_expect(r, "(const Run &r)");
    if (!peal_pto_next_line(r, text) || !peal_pto_next_is(r, "{"))
        peal_pto_fail(r, "not a line that is written here");
    while (!r->failed && peal_pto_next_line(r, text)) {
        if (peal_pto_next_is(r, "}"))
            break;
        if (drained)
            peal_pto_fail(r, "an op after the end");
        if (peal_pto_next_is(r, "    (void)r;"))
            continue;
        drained = peal_pto_next_is(r, "    pipe_barrier(PIPE_ALL);");
        if (!drained)
            take_line(r, text);
    }
    if (!r->failed && !drained)
        peal_pto_fail(r, "the block does not drain its pipes at its end");
}

static void begin_block(struct pto_reader *r, uint64_t rank, uint64_t block)
{
    bool next = rank == r->rank && block == r->block + 1;
    bool first = rank == r->rank + 1 && block == 0;
    if (!next && !first) {
        peal_pto_fail(r, "blocks are not in order");
        return;
    }
    r->rank = (uint32_t)rank;
    r->block = (uint32_t)block;
    if (r->making && first)
        peal_assembler_rank_begin(r->a, r->rank);
    else if (r->making)
        peal_assembler_lane_begin(r->a);
}

void peal_pto_read_blocks(struct pto_reader *r, const char *text)
{
    r->rank = UINT32_MAX;
    r->block = 0;
    for (size_t i = 0; i < r->channels.len; i++) {
        struct pto_read_channel *c = &r->channels.at[i];
        c->sent = c->taken = c->given = 0;
    }
    while (!r->failed && peal_pto_next_line(r, &text)) {
        if (!peal_pto_next_is(r, "AICORE inline void Rank"))
            continue;
        uint64_t rank = peal_pto_below(r, r->ranks);
        peal_pto_expect(r, "Block");
        uint64_t block = peal_pto_below(r, r->blocks);
        if (!r->failed)
            begin_block(r, rank, block);
        take_block(r, &text);
    }
    if (!r->failed && r->rank + 1 != r->ranks)
        peal_pto_fail(r, "a rank is missing");
    for (size_t i = 0; i < r->channels.len && !r->failed; i++) {
        const struct pto_read_channel *c = &r->channels.at[i];
        if (c->sent != c->messages || c->given != c->messages)
            peal_pto_fail(r, "a channel has other messages than it says");
    }
    r->line = 0;
}
