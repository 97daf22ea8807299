/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes of peers' windows become messages.
 *
 * before, on rank r                         after, on rank r
 *     wait ready >= 1                           t = recv_slot from q
 *     acc = acc + slot@q                        acc = acc + t; free t
 * and on q                                  and on q
 *     slot = x; notify ready@r += 1             slot = x; send slot to r
 *
 * A read of q's window is served by a send in front of the notify of q that the reader waited for
 * last: what is there then is what the read finds, since the plan has no race. A write to q's
 * window is a send where it stands, and a recv after the wait of q that waits for the writer's next
 * notify. Signals between ranks have no work left and are dropped; those between lanes of a rank
 * stay.
 *
 * Needs one-writer cells, '>=' waits of the same launch, no accumulates; breaks no other property
 * that verify would not find: the result is to be verified again. Messages between two lanes share
 * a channel as long as both sides have them in one order.
 */
#include "export/writer.h"

#include <stdlib.h>
#include <string.h>

/* One message. Places are indices of ops within a lane of the plan. */
struct transfer {
    uint32_t from_lane, to_lane; /* of the plan */
    uint64_t send_at;            /* before this op; a push: in its place */
    uint64_t recv_at;            /* for this op; a push: after this wait */
    bool push;
    uint32_t operand;    /* of the op: which ref */
    struct peal_ref ref; /* the window's part, on its owner */
    uint64_t count;
    uint32_t channel, port;
};

struct notice { /* a notify of a cell */
    uint32_t lane;
    uint64_t op;
    int64_t after;
};

struct sends_pass {
    const struct peal_plan *plan;
    struct peal_diags *diags;
    struct peal_assembler *a;
    PEAL_VEC(struct transfer) transfers;
    struct {
        PEAL_VEC(struct notice) list;
    } * cells;            /* [rank * cells + cell] */
    uint32_t *rank_of;    /* [lane of the plan] */
    uint32_t *first_lane; /* [rank] */
    uint32_t tile;
    uint64_t tile_len;
    struct peal_source *sources; /* [position] */
    bool failed;
};

static const struct peal_op *op_at(const struct sends_pass *s, uint32_t lane, uint64_t i)
{
    return &peal_plan_ops(s->plan)[peal_plan_lanes(s->plan)[lane].first_op + i];
}

static void refuse(struct sends_pass *s, uint32_t rank, const struct peal_op *op, const char *why)
{
    struct peal_text text = {0};
    if (s->failed)
        return;
    s->failed = true;
    peal_plan_dump_op(s->plan, rank, op, &text);
    if (op->pos != PEAL_NONE) {
        const struct peal_position *at = &peal_plan_positions(s->plan)[op->pos];
        peal_diag_error(s->diags, (struct peal_pos){0}, "%s:%u:%u: '%s' of rank %u: %s",
                        peal_plan_string(s->plan, at->source), at->line, at->col,
                        peal_text_get(&text), rank, why);
    } else {
        peal_diag_error(s->diags, (struct peal_pos){0}, "'%s' of rank %u: %s", peal_text_get(&text),
                        rank, why);
    }
    peal_text_release(&text);
}

/* --- finding messages ------------------------------------------------------------------------ */

/* Does an operand's place depend on the launch? */
static bool has_phases(const struct sends_pass *s, const struct peal_op *op)
{
    if (peal_op_is_sync(op) || peal_op_is_free(op))
        return false;
    for (uint32_t k = 0; k < peal_op_nrefs(op); k++) {
        if (peal_plan_refs(s->plan)[op->mem.ref + k].phases != PEAL_NONE)
            return true;
    }
    return false;
}

static void list_notices(struct sends_pass *s)
{
    for (uint32_t l = 0; l < s->plan->lanes.count && !s->failed; l++) {
        for (uint64_t i = 0; i < peal_plan_lanes(s->plan)[l].ops && !s->failed; i++) {
            const struct peal_op *op = op_at(s, l, i);
            if (has_phases(s, op))
                refuse(s, s->rank_of[l], op, "places cannot depend on the launch");
            if (!peal_op_is_sync(op))
                continue;
            const struct peal_signal *signal = &peal_plan_signals(s->plan)[peal_op_signal(op)];
            if (signal->kind != PEAL_SIGNAL_ONE_WRITER || op->sync.phases != PEAL_NONE ||
                !(peal_op_is_notify(op) || peal_op_is_wait(op)) || op->flags ||
                (peal_op_is_wait(op) && op->sync.back)) {
                refuse(s, s->rank_of[l], op,
                       "only one-writer signals of one launch, with += and >=");
                return;
            }
            if (!peal_op_is_notify(op) || op->sync.cell >= s->plan->cells)
                continue;
            uint64_t cell = (uint64_t)op->sync.rank * s->plan->cells + op->sync.cell;
            if (!peal_vec_push(&s->cells[cell].list, ((struct notice){l, i, op->sync.after})))
                s->failed = true;
        }
    }
}

/* The first notify that lets a wait pass. NULL: there is none. */
static const struct notice *notice_for(const struct sends_pass *s, uint32_t rank,
                                       const struct peal_op *wait)
{
    uint64_t cell = (uint64_t)rank * s->plan->cells + wait->sync.cell;
    for (size_t i = 0; i < s->cells[cell].list.len; i++) {
        if (s->cells[cell].list.at[i].after >= wait->sync.value)
            return &s->cells[cell].list.at[i];
    }
    return NULL;
}

static bool is_remote(const struct sends_pass *s, uint32_t rank, const struct peal_ref *ref)
{
    return ref->buf < s->plan->bufs.count && ref->rank != rank;
}

static void add_transfer(struct sends_pass *s, struct transfer t)
{
    if (!peal_vec_push(&s->transfers, t))
        s->failed = true;
}

/* Reads of one lane: each is served at the last wait for a notify of the window's owner. */
static void find_reads(struct sends_pass *s, uint32_t lane, const struct notice **last)
{
    uint32_t rank = s->rank_of[lane];
    memset(last, 0, s->plan->nranks * sizeof *last);
    for (uint64_t i = 0; i < peal_plan_lanes(s->plan)[lane].ops && !s->failed; i++) {
        const struct peal_op *op = op_at(s, lane, i);
        if (peal_op_is_wait(op)) {
            const struct notice *n = notice_for(s, rank, op);
            if (n)
                last[s->rank_of[n->lane]] = n;
        }
        if (peal_op_is_sync(op) || peal_op_is_free(op))
            continue;
        for (uint32_t k = 0; k < peal_op_nrefs(op); k++) {
            const struct peal_ref *ref = peal_plan_refs(s->plan) + op->mem.ref + k;
            if (!is_remote(s, rank, ref) || peal_op_writes(op, k))
                continue;
            if (!(peal_op_is_copy(op) || peal_op_is_compute(op)) || op->mem.rows > 1) {
                refuse(s, rank, op, "only copies and computes of one row can read other ranks");
                return;
            }
            if (!last[ref->rank]) {
                refuse(s, rank, op, "no notify of the owner comes before this read");
                return;
            }
            const struct notice *n = last[ref->rank];
            add_transfer(s, (struct transfer){.from_lane = n->lane,
                                              .to_lane = lane,
                                              .send_at = n->op,
                                              .recv_at = i,
                                              .operand = k,
                                              .ref = *ref,
                                              .count = op->mem.count});
        }
    }
}

/* The wait on `rank` that the notify at op i of `lane`, or a later one, is the first to satisfy. */
static bool find_wait(const struct sends_pass *s, uint32_t rank, const struct peal_op *notify,
                      uint32_t *lane, uint64_t *at)
{
    uint32_t end;
    if (rank + 1 < s->plan->nranks)
        end = s->first_lane[rank + 1];
    else
        end = (uint32_t)s->plan->lanes.count;
    for (*lane = s->first_lane[rank]; *lane < end; (*lane)++) {
        for (*at = 0; *at < peal_plan_lanes(s->plan)[*lane].ops; (*at)++) {
            const struct peal_op *op = op_at(s, *lane, *at);
            if (peal_op_is_wait(op) && op->sync.cell == notify->sync.cell &&
                op->sync.value >= (int64_t)notify->sync.after)
                return true;
        }
    }
    return false;
}

/* Writes of one lane: each is sent with the next notify to the window's owner. */
static void find_writes(struct sends_pass *s, uint32_t lane)
{
    uint32_t rank = s->rank_of[lane];
    uint64_t ops = peal_plan_lanes(s->plan)[lane].ops;
    for (uint64_t i = 0; i < ops && !s->failed; i++) {
        const struct peal_op *op = op_at(s, lane, i);
        const struct peal_ref *dst = NULL;
        if (!peal_op_is_sync(op))
            dst = peal_op_dst(s->plan, op);
        if (!dst || !is_remote(s, rank, dst))
            continue;
        if (!(peal_op_is_copy(op) || peal_op_is_compute(op)) || op->mem.more_dsts ||
            op->mem.rows > 1) {
            refuse(s, rank, op, "only copies and computes to a peer can become messages");
            return;
        }
        uint32_t to;
        uint64_t at = 0, k = i + 1;
        for (; k < ops; k++) {
            const struct peal_op *n = op_at(s, lane, k);
            if (peal_op_is_notify(n) && n->sync.rank == dst->rank)
                break;
        }
        if (k == ops || !find_wait(s, dst->rank, op_at(s, lane, k), &to, &at)) {
            refuse(s, rank, op, "no notify that its owner waits for comes after this write");
            return;
        }
        add_transfer(s, (struct transfer){.from_lane = lane,
                                          .to_lane = to,
                                          .send_at = i,
                                          .recv_at = at,
                                          .push = true,
                                          .ref = *dst,
                                          .count = op->mem.count});
        if (peal_op_is_compute(op))
            s->tile_len = peal_size_max(s->tile_len, op->mem.count);
    }
}

/* --- channels -------------------------------------------------------------------------------- */

static int by_send(const void *a, const void *b)
{
    const struct transfer *x = a, *y = b;
    const uint64_t keys[][2] = {{x->from_lane, y->from_lane},
                                {x->to_lane, y->to_lane},
                                {x->send_at, y->send_at},
                                {x->recv_at, y->recv_at},
                                {x->operand, y->operand}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    }
    return 0;
}

/* Messages between two lanes that are in the same order on both sides share a channel; others get
 * another port. */
static void choose_channels(struct sends_pass *s)
{
    enum { MAX_PORTS = 64, FIRST_PORT = 1000 };
    struct transfer *t = s->transfers.at;
    uint64_t last[MAX_PORTS] = {0};
    bool used[MAX_PORTS] = {false};
    if (s->transfers.len)
        qsort(t, s->transfers.len, sizeof *t, by_send);
    for (size_t i = 0; i < s->transfers.len && !s->failed; i++) {
        bool same =
            i > 0 && t[i].from_lane == t[i - 1].from_lane && t[i].to_lane == t[i - 1].to_lane;
        if (!same)
            memset(used, 0, sizeof used);
        uint64_t key = t[i].recv_at * 64 + t[i].operand % 64 + 1;
        uint32_t port = 0;
        while (port < MAX_PORTS && used[port] && last[port] >= key)
            port++;
        if (port == MAX_PORTS) {
            peal_diag_error(s->diags, (struct peal_pos){0},
                            "messages between two lanes would have to overtake each other");
            s->failed = true;
            return;
        }
        used[port] = true;
        last[port] = key;
        /* The lanes are part of the port, so that lanes do not share a channel. */
        t[i].port = FIRST_PORT + port +
                    64 * (t[i].from_lane - s->first_lane[s->rank_of[t[i].from_lane]]) +
                    4096 * (t[i].to_lane - s->first_lane[s->rank_of[t[i].to_lane]]);
        t[i].channel = peal_assembler_channel(s->a, "", s->rank_of[t[i].from_lane], t[i].port,
                                              s->rank_of[t[i].to_lane]);
    }
}

/* --- the new plan ---------------------------------------------------------------------------- */

static void copy_tables(struct sends_pass *s)
{
    const struct peal_plan *plan = s->plan;
    peal_export_copy_buffers(plan, s->a);
    s->tile =
        peal_assembler_buf(s->a, &(struct peal_buf_spec){.name = "outgoing",
                                                         .kind = PEAL_BUF_PRIVATE,
                                                         .dtype = (enum peal_dtype)plan->dtype,
                                                         .param = PEAL_NONE,
                                                         .alias = PEAL_NONE,
                                                         .len = s->tile_len * plan->lanes.count});
    for (uint32_t i = 0; i < plan->signals.count; i++) {
        const struct peal_signal *signal = &peal_plan_signals(plan)[i];
        (void)peal_assembler_signal(s->a, peal_plan_string(plan, signal->name),
                                    (enum peal_signal_kind)signal->kind, signal->cells);
    }
    uint32_t depth = 2;
    for (uint32_t i = 0; i < plan->channels.count; i++) {
        const struct peal_channel *c = &peal_plan_channels(plan)[i];
        (void)peal_assembler_channel(s->a, peal_plan_string(plan, c->name), c->sender, c->port,
                                     c->receiver);
        depth = c->depth;
    }
    peal_assembler_channel_shape(s->a, depth, 0);
    peal_assembler_take_over(s->a, plan);
}

static void mark(struct sends_pass *s, const struct peal_op *like)
{
    struct peal_op *op = peal_assembler_last(s->a);
    if (!op)
        return;
    op->pos = PEAL_NONE;
    if (like->pos == PEAL_NONE)
        return;
    const struct peal_position *at = &peal_plan_positions(s->plan)[like->pos];
    struct peal_source *source = &s->sources[like->pos];
    source->name = peal_plan_string(s->plan, at->source);
    uint32_t pos = peal_assembler_position(
        s->a, (struct peal_pos){source, at->line, at->col, at->len}, PEAL_NONE);
    op = peal_assembler_last(s->a);
    if (op)
        op->pos = pos;
}

/* The op with its reads from peers replaced by slots. */
static void put_reader(struct sends_pass *s, const struct peal_op *op,
                       const struct transfer *const *mine, uint32_t n)
{
    uint32_t nrefs = peal_op_nrefs(op);
    struct peal_ref *refs = malloc((nrefs + 1u) * sizeof *refs);
    if (!refs) {
        s->failed = true;
        return;
    }
    memcpy(refs, peal_plan_refs(s->plan) + op->mem.ref, nrefs * sizeof *refs);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t older = 0;
        for (uint32_t j = 0; j < k; j++)
            older += mine[j]->channel == mine[k]->channel;
        peal_assembler_recv_slot(s->a, mine[k]->channel, (enum peal_dtype)mine[k]->ref.dtype,
                                 mine[k]->count);
        mark(s, op);
        struct peal_ref slot =
            peal_ref_make(older, PEAL_BUF_SLOT, (enum peal_dtype)mine[k]->ref.dtype, 0);
        slot.row = mine[k]->channel;
        refs[mine[k]->operand] = slot;
    }
    peal_assembler_append(s->a, op, refs);
    mark(s, op);
    for (uint32_t k = 0; k < n; k++) {
        peal_assembler_free_slot(s->a, mine[k]->channel);
        mark(s, op);
    }
    free(refs);
}

/* A write to a peer: a copy is a send of its source, a compute goes through a tile. */
static void put_writer(struct sends_pass *s, uint32_t lane, const struct peal_op *op,
                       const struct transfer *t)
{
    const struct peal_ref *refs = peal_plan_refs(s->plan) + op->mem.ref;
    if (peal_op_is_copy(op)) {
        peal_assembler_send(s->a, t->channel, refs[1], 1, t->count);
    } else {
        uint64_t size = peal_dtype_size((enum peal_dtype)op->dtype);
        struct peal_ref tile = peal_ref_make(s->rank_of[lane], s->tile, (enum peal_dtype)op->dtype,
                                             lane * s->tile_len * size);
        peal_assembler_compute(s->a, (enum peal_fn)op->fn, tile, refs + 1, op->mem.nsrc, 1,
                               t->count, op->mem.divisor);
        mark(s, op);
        peal_assembler_send(s->a, t->channel, tile, 1, t->count);
    }
    mark(s, op);
}

/* Transfers in the order in which a lane needs them: sorted views of the list. */
struct sends_view {
    const struct transfer **at;
    size_t len;
};

static int by_place(const void *a, const void *b)
{
    const struct transfer *x = *(const struct transfer *const *)a;
    const struct transfer *y = *(const struct transfer *const *)b;
    if (x->to_lane != y->to_lane)
        return x->to_lane < y->to_lane ? -1 : 1;
    if (x->recv_at != y->recv_at)
        return x->recv_at < y->recv_at ? -1 : 1;
    if (x < y)
        return -1;
    return x > y;
}

static void put_op(struct sends_pass *s, uint32_t lane, uint64_t i,
                   const struct transfer *const *in, uint32_t nin, const struct transfer *out)
{
    const struct peal_op *op = op_at(s, lane, i);
    uint32_t rank = s->rank_of[lane];
    if (out) {
        if (nin)
            refuse(s, rank, op, "it reads from a peer and writes to one");
        else
            put_writer(s, lane, op, out);
        return;
    }
    if (peal_op_is_wait(op)) {
        const struct notice *n = notice_for(s, rank, op);
        if (n && s->rank_of[n->lane] == rank) {
            peal_assembler_append(s->a, op, NULL);
            mark(s, op);
        }
        for (uint32_t k = 0; k < nin; k++) {
            peal_assembler_recv(s->a, in[k]->channel, in[k]->ref, 1, in[k]->count);
            mark(s, op);
        }
        return;
    }
    if (peal_op_is_notify(op)) {
        if (op->sync.rank == rank) {
            peal_assembler_append(s->a, op, NULL);
            mark(s, op);
        }
        return;
    }
    if (nin) {
        put_reader(s, op, in, nin);
        return;
    }
    peal_assembler_append(s->a, op,
                          peal_plan_refs(s->plan) + (peal_op_nrefs(op) ? op->mem.ref : 0));
    mark(s, op);
}

static void put_lanes(struct sends_pass *s, const struct sends_view *received)
{
    const struct transfer **at = received->at;
    size_t in = 0, out = 0;
    for (uint32_t l = 0; l < s->plan->lanes.count && !s->failed; l++) {
        if (l == s->first_lane[s->rank_of[l]])
            peal_assembler_rank_begin(s->a, s->rank_of[l]);
        else
            peal_assembler_lane_begin(s->a);
        while (out < s->transfers.len && s->transfers.at[out].from_lane < l)
            out++;
        for (uint64_t i = 0; i < peal_plan_lanes(s->plan)[l].ops && !s->failed; i++) {
            size_t first = in;
            const struct transfer *push = NULL;
            while (in < received->len && at[in]->to_lane == l && at[in]->recv_at == i)
                in++;
            for (size_t k = out; k < s->transfers.len && s->transfers.at[k].from_lane == l; k++) {
                const struct transfer *t = &s->transfers.at[k];
                if (t->send_at != i)
                    continue;
                if (t->push) {
                    push = t;
                } else {
                    peal_assembler_send(s->a, t->channel, t->ref, 1, t->count);
                    mark(s, op_at(s, l, i));
                }
            }
            put_op(s, l, i, at + first, (uint32_t)(in - first), push);
        }
    }
}

static bool prepare(struct sends_pass *s)
{
    const struct peal_plan *plan = s->plan;
    s->cells = calloc((size_t)plan->nranks * plan->cells + 1, sizeof *s->cells);
    s->rank_of = calloc(plan->lanes.count + 1, sizeof *s->rank_of);
    s->first_lane = calloc(plan->nranks + 1u, sizeof *s->first_lane);
    s->sources = calloc(plan->positions.count + 1, sizeof *s->sources);
    s->a = peal_assembler_new(plan->nranks, 0, plan->nranks);
    if (!s->cells || !s->rank_of || !s->first_lane || !s->sources || !s->a)
        return false;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        const struct peal_rank_part *part = &peal_plan_ranks(plan)[r];
        s->first_lane[r] = part->first_lane;
        for (uint32_t l = 0; l < part->lanes; l++)
            s->rank_of[part->first_lane + l] = r;
    }
    return true;
}

static void release(struct sends_pass *s)
{
    uint64_t ncells = 0;
    if (s->cells)
        ncells = (uint64_t)s->plan->nranks * s->plan->cells;
    for (uint64_t i = 0; i < ncells; i++)
        peal_vec_release(&s->cells[i].list);
    peal_vec_release(&s->transfers);
    free(s->cells);
    free(s->rank_of);
    free(s->first_lane);
    free(s->sources);
}

enum peal_status peal_plan_use_sends(const struct peal_plan *plan, struct peal_diags *diags,
                                     struct peal_plan **out)
{
    struct sends_pass s = {.plan = plan, .diags = diags};
    enum peal_status status = PEAL_INVALID;
    struct sends_view received = {0};
    const struct notice **last = calloc(plan->nranks, sizeof *last);
    s.failed = !prepare(&s) || !last;
    if (!s.failed)
        list_notices(&s);
    for (uint32_t l = 0; l < plan->lanes.count && !s.failed; l++) {
        find_reads(&s, l, last);
        if (!s.failed)
            find_writes(&s, l);
    }
    if (!s.failed) {
        copy_tables(&s);
        choose_channels(&s);
    }
    received.at = malloc((s.transfers.len + 1) * sizeof *received.at);
    s.failed = s.failed || !received.at;
    for (size_t i = 0; i < s.transfers.len && !s.failed; i++)
        received.at[received.len++] = &s.transfers.at[i];
    if (!s.failed && received.len)
        qsort(received.at, received.len, sizeof *received.at, by_place);
    if (!s.failed)
        put_lanes(&s, &received);
    if (s.failed)
        peal_assembler_free(s.a);
    else
        status = peal_assembler_finish(s.a, diags, out);
    free(received.at);
    free(last);
    release(&s);
    return status;
}
