/* SPDX-License-Identifier: Apache-2.0 */
/* Ops as the engine runs them: what each costs on this machine, computed before the first event.
 *
 *   plan, one lane                              its code      the steps, shared by all lanes
 *   send  x[0 +: 1024] channel 17   ->            3           3: send  port 0, 4096 bytes from tcm
 *   recv  x[1024 +: 1024] channel 16  ->          4           4: recv  port 1, 4096 bytes to tcm
 *   send  x[1024 +: 1024] channel 17  ->          3
 *
 * A simulation visits its lanes in turn, so their op lists would be read a few bytes at a time from
 * all over the plan. Reading each list once, from front to back, is much cheaper, and the result is
 * small: offsets do not matter for time, and lanes whose ops cost the same share one code.
 */
#include "sim/engine/engine.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* Everything that determines a step: equal keys, equal steps. Four words, assembled in registers,
 * because a key is made and compared for every op. */
struct step_key {
    uint64_t head;  /* kind, reach << 8, dtype (sync ops, fences: flags) << 16, port << 32 */
    uint64_t count; /* elements per row; sync ops: cell, phases << 32 */
    uint64_t shape; /* rows, combinations or inner << 32; sync ops: after */
    /* source, target << 8, operands << 16 (see peal_sim_math_cost and peal_sim_product); sync:
     * value */
    uint64_t where;
};

/* An op as it is in the plan, with everything that its key depends on. Most ops are like the one
 * that followed the last time: comparing them takes a third of the time of making the key. */
enum { RAW_REFS = 3, RAW_NONE = PEAL_OP_KIND_COUNT };
/* Marks an op that states its own duration. */
#define OUTSIDE UINT32_MAX
struct raw_op {
    uint8_t kind, fn, dtype, nrefs; /* kind RAW_NONE: unlike any op */
    uint32_t port;                  /* send, recv, recv_slot, free */
    uint16_t nsrc, more_dsts;
    uint32_t rows;
    uint64_t count;
    uint32_t refs[RAW_REFS]; /* buf, dtype << 16, all on this rank */
};

/* Sync ops can all be different. If there are too many, the rest are looked up in the plan. */
enum { MAX_STEPS = 1 << 18 };

struct shared_code {
    uint64_t hash, count;
    uint32_t *steps;
};

struct peal_codes {
    PEAL_VEC(struct peal_coded_op) steps;
    PEAL_VEC(struct step_key) keys;   /* one per step */
    PEAL_VEC(uint32_t) follower;      /* one per step: which step came next the last time */
    PEAL_VEC(struct raw_op) raws;     /* one per step: its last op */
    struct peal_index index;          /* of keys */
    PEAL_VEC(struct peal_code) lanes; /* [rank's first + lane] */
    PEAL_VEC(uint32_t) first_lane;    /* of each rank */
    PEAL_VEC(struct shared_code) shared;
    uint32_t newest; /* the one of these found last */
    bool meets;      /* ranks meet elsewhere than in channels */
    /* For the lane being read: */
    PEAL_VEC(uint32_t) now, now_ports;
};

uint8_t peal_sim_code_memory(const struct peal_sim *sim, const uint8_t *buf_mem,
                             const struct peal_ref *ref)
{
    if (ref->buf == PEAL_BUF_CONST)
        return PEAL_NO_MEM;
    if (ref->buf == PEAL_BUF_SLOT)
        return (uint8_t)sim->machine->keys.space;
    return buf_mem[ref->buf];
}

static bool is_sync(const struct step_key *key)
{
    return peal_op_is_sync(&(struct peal_op){.kind = (uint8_t)key->head});
}

static struct peal_coded_op make_step(const struct peal_sim *sim, const struct step_key *key)
{
    struct peal_coded_op step = {.kind = (uint8_t)key->head,
                                 .reach = (uint8_t)(key->head >> 8),
                                 .port = (uint32_t)(key->head >> 32)};
    if (peal_op_is_fence(&(struct peal_op){.kind = (uint8_t)key->head})) {
        step.flags = (uint8_t)(key->head >> 16);
        return step;
    }
    if (is_sync(key)) {
        step.flags = (uint8_t)(key->head >> 16);
        step.sync.cell = (uint32_t)key->count;
        step.sync.phases = (uint32_t)(key->count >> 32);
        step.sync.after = (uint32_t)key->shape;
        step.sync.value = (int64_t)key->where;
        return step;
    }
    enum peal_dtype dtype = (enum peal_dtype)(key->head >> 16 & 255);
    uint64_t elements = key->count * (uint32_t)key->shape;
    step.source = (uint8_t)key->where;
    step.target = (uint8_t)(key->where >> 8);
    step.bytes = elements * peal_dtype_size(dtype);
    const struct peal_op_facts *row = peal_op_facts(step.kind);
    if (row->channel & PEAL_CHANNEL_SEND)
        step.bytes += sim->machine->keys.header_bytes;
    if (key->shape >> 32 == OUTSIDE) { /* its count is its time */
        step.bytes = 1;
        step.work = elements;
    } else if (sim->host && row->form == PEAL_FORM_DATA && row->shape != PEAL_BY_MATRIX) {
        step.source = step.target = 0;
        peal_sim_host_cost(sim, key->where, &step);
    } else if (row->work >= PEAL_WORK_FN && row->shape == PEAL_BY_EACH && step.bytes)
        peal_sim_math_cost(sim, dtype, elements, key->shape >> 32, (uint32_t)(key->where >> 16),
                           &step);
    else if (row->shape == PEAL_BY_MATRIX && step.bytes)
        peal_sim_product_cost(sim, dtype,
                              &(struct peal_sim_product){(uint32_t)key->shape, key->shape >> 32,
                                                         key->count, (uint32_t)(key->where >> 16)},
                              &step);
    return step;
}

static bool same_key(const struct step_key *a, const struct step_key *b)
{
    return a->head == b->head && a->count == b->count && a->shape == b->shape &&
           a->where == b->where;
}

static uint64_t hash_row(const void *codes, uint32_t row)
{
    const struct peal_codes *c = codes;
    return peal_hash_bytes(&c->keys.at[row], sizeof(struct step_key), 0);
}

/* The step of this key, made if it is new. PEAL_NONE: out of memory. */
static uint32_t find_step(const struct peal_sim *sim, struct peal_codes *codes,
                          const struct step_key *key)
{
    if (!peal_index_reserve(&codes->index, hash_row, codes))
        return PEAL_NONE;
    size_t at = peal_index_begin(&codes->index, peal_hash_bytes(key, sizeof *key, 0));
    for (; peal_index_is_used(&codes->index, at); at = peal_index_next(&codes->index, at)) {
        uint32_t number = peal_index_row(&codes->index, at);
        if (same_key(&codes->keys.at[number], key))
            return number;
    }
    struct step_key in_plan = {.head = (uint8_t)key->head | PEAL_REACH_OP << 8};
    if (codes->keys.len >= MAX_STEPS && is_sync(key) && !same_key(key, &in_plan))
        return find_step(sim, codes, &in_plan);
    if (codes->keys.len >= PEAL_NONE - 1 || !peal_vec_push(&codes->steps, make_step(sim, key)) ||
        !peal_vec_push(&codes->keys, *key) || !peal_vec_push(&codes->follower, 0) ||
        !peal_vec_push(&codes->raws, (struct raw_op){.kind = RAW_NONE}))
        return PEAL_NONE;
    peal_index_put(&codes->index, at, (uint32_t)codes->keys.len - 1);
    return (uint32_t)codes->keys.len - 1;
}

/* The number of a channel or rank among the lane's ports. Most lanes have a few. Those with many
 * use each for a while, or in turn, so the search starts where the last one was found. */
static uint32_t port_of(struct peal_codes *codes, uint32_t wanted, size_t *last)
{
    size_t len = codes->now_ports.len;
    for (size_t i = 0; i < len; i++) {
        size_t at;
        if (*last + i < len)
            at = *last + i;
        else
            at = *last + i - len;
        if (codes->now_ports.at[at] == wanted) {
            *last = at;
            return (uint32_t)at;
        }
    }
    *last = len;
    if (!peal_vec_push(&codes->now_ports, wanted))
        return PEAL_NONE;
    return (uint32_t)len;
}

/* The lane being coded, and where its buffers are. */
struct coding {
    const struct peal_sim *sim;
    struct peal_codes *codes;
    const uint8_t *buf_mem;
    const struct peal_part_lane *lane;
    size_t last_port;
};

/* Where an op's operands are: memories, and other ranks. */
struct op_operands {
    uint64_t where; /* see step_key */
    enum peal_reach reach;
    uint32_t rank; /* load, store */
};

/* On a host the rank itself does it, wherever the operands are. */
static bool is_hosts(const struct peal_sim *sim, const struct peal_op *op)
{
    return sim->host && peal_op_is_data(op) && !peal_op_has_matrices(op) &&
           !(op->flags & PEAL_OP_OUTSIDE);
}

static struct op_operands operands_of(const struct coding *c, const struct peal_op *op)
{
    const struct peal_ref *refs = c->lane->refs + op->mem.ref;
    if (is_hosts(c->sim, op))
        return (struct op_operands){.where = peal_sim_host_touches(c->sim, c->lane, op)};
    bool computes = peal_op_applies(op) || peal_op_is_own(op);
    struct op_operands out = {0};
    if (peal_op_has_matrices(op)) {
        for (uint32_t i = 0; i < peal_op_nrefs(op); i++)
            out.where |= (uint64_t)peal_sim_code_memory(c->sim, c->buf_mem, &refs[i])
                         << (16 + 4 * i);
        return out;
    }
    for (uint32_t i = 0; i < peal_op_nrefs(op); i++) {
        uint64_t mem = peal_sim_code_memory(c->sim, c->buf_mem, &refs[i]);
        bool writes = peal_op_writes(op, i);
        if (refs[i].buf < PEAL_BUF_SLOT && refs[i].rank != c->lane->rank) {
            bool simple = out.reach == PEAL_REACH_OWN && op->mem.more_dsts == 0 &&
                          c->sim->dtype_size[refs[i].dtype] == c->sim->dtype_size[op->dtype];
            out.reach = writes ? PEAL_REACH_STORE : PEAL_REACH_LOAD;
            if (!simple)
                out.reach = PEAL_REACH_OP;
            out.rank = refs[i].rank;
            out.where |= mem << (writes ? 8 : 0);
        } else if (!computes) {
            out.where |= mem << (writes ? 8 : 0);
        } else if (mem != PEAL_NO_MEM) {
            out.where |= c->sim->dtype_size[refs[i].dtype] << (4 * mem + 16);
        }
    }
    /* What a compute loads or stores passes through the memory of tiles. */
    if (computes && out.reach == PEAL_REACH_LOAD)
        out.where |= c->sim->machine->keys.place_tile << 8;
    if (peal_op_is_compute(op) && out.reach == PEAL_REACH_STORE)
        out.where |= c->sim->machine->keys.place_tile;
    /* An accumulate on another rank computes nothing here: its source leaves from where it is. */
    if (peal_op_accumulates(op) && out.reach == PEAL_REACH_STORE)
        out.where |= peal_sim_code_memory(c->sim, c->buf_mem, &refs[1]);
    if (out.reach == PEAL_REACH_OP)
        out.where &= ~UINT64_C(0xffff);
    return out;
}

static struct step_key sync_key(struct coding *c, const struct peal_op *op)
{
    uint64_t port = 0;
    if (peal_op_is_notify(op))
        port = port_of(c->codes, PEAL_PORT_RANK | op->sync.rank, &c->last_port);
    if (peal_op_is_wait(op) && op->sync.rank != c->lane->rank)
        return (struct step_key){.head = op->kind | PEAL_REACH_OP << 8 | (uint64_t)op->flags << 16};
    return (struct step_key){op->kind | (uint64_t)op->flags << 16 | port << 32,
                             op->sync.cell | (uint64_t)op->sync.phases << 32, op->sync.after,
                             (uint64_t)op->sync.value};
}

static struct step_key key_of(struct coding *c, const struct peal_op *op)
{
    uint64_t port = 0, combinations = 0;
    if (peal_op_is_sync(op))
        return sync_key(c, op);
    if (peal_op_is_fence(op))
        return (struct step_key){.head = op->kind | (uint64_t)op->flags << 16};
    if (peal_op_has_channel(op))
        port = port_of(c->codes, op->mem.channel, &c->last_port);
    if (peal_op_is_flush(op))
        port = port_of(c->codes, PEAL_PORT_RANK | op->mem.target, &c->last_port);
    if (peal_op_applies(op)) {
        if (op->mem.nsrc > 1)
            combinations = op->mem.nsrc - 1;
        else
            combinations = 1;
        if (op->mem.nsrc > 2 && peal_fn_info((enum peal_fn)op->fn)->operands > 0)
            combinations = 1; /* fma, clamp: one step */
        if (peal_fn_is_user(op->fn))
            combinations *= peal_formula_cost(&c->lane->formulas[op->fn - PEAL_FN_USER]);
        if (op->flags & PEAL_OP_OUTSIDE)
            combinations = OUTSIDE;
    }
    if (peal_op_is_own(op))
        combinations = peal_op_has_matrices(op) ? op->mem.inner : 1;
    struct op_operands operands = operands_of(c, op);
    if (operands.reach == PEAL_REACH_LOAD || operands.reach == PEAL_REACH_STORE)
        port = port_of(c->codes, PEAL_PORT_RANK | operands.rank, &c->last_port);
    return (struct step_key){op->kind | (uint64_t)operands.reach << 8 | (uint64_t)op->dtype << 16 |
                                 port << 32,
                             op->mem.count, op->mem.rows | combinations << 32, operands.where};
}

static bool is_own(const struct coding *c, const struct peal_ref *ref)
{
    return ref->rank == c->lane->rank || ref->buf >= PEAL_BUF_SLOT;
}

static struct raw_op raw_of(const struct coding *c, const struct peal_op *op, uint32_t port)
{
    struct raw_op raw = {.kind = op->kind,
                         .fn = op->fn,
                         .dtype = op->dtype,
                         .port = port,
                         .nsrc = op->mem.nsrc,
                         .more_dsts = op->mem.more_dsts,
                         .rows = op->mem.rows,
                         .count = op->mem.count};
    bool is_short = peal_op_nrefs(op) <= RAW_REFS && !peal_op_has_matrices(op);
    bool is_plain = peal_op_is_data(op) || peal_op_has_channel(op);
    if (!is_plain || !is_short)
        return (struct raw_op){.kind = RAW_NONE};
    raw.nrefs = (uint8_t)peal_op_nrefs(op);
    for (uint32_t i = 0; i < raw.nrefs; i++) {
        const struct peal_ref *ref = &c->lane->refs[op->mem.ref + i];
        if (!is_own(c, ref))
            return (struct raw_op){.kind = RAW_NONE};
        raw.refs[i] = ref->buf | (uint32_t)ref->dtype << 16;
    }
    return raw;
}

static bool is_like(const struct coding *c, const struct peal_op *op, const struct raw_op *raw)
{
    if (op->kind != raw->kind || op->fn != raw->fn || op->dtype != raw->dtype ||
        op->mem.nsrc != raw->nsrc || op->mem.more_dsts != raw->more_dsts ||
        op->mem.rows != raw->rows || op->mem.count != raw->count)
        return false;
    if (peal_op_has_channel(op) && (raw->port >= c->codes->now_ports.len ||
                                    c->codes->now_ports.at[raw->port] != op->mem.channel))
        return false;
    const struct peal_ref *refs = c->lane->refs + op->mem.ref;
    for (uint32_t i = 0; i < raw->nrefs; i++) {
        if ((refs[i].buf | (uint32_t)refs[i].dtype << 16) != raw->refs[i] || !is_own(c, &refs[i]))
            return false;
    }
    return true;
}

static bool is_list(const struct shared_code *list, const uint32_t *steps, uint64_t count)
{
    return list->count == count &&
           (!count || memcmp(list->steps, steps, count * sizeof *steps) == 0);
}

/* Lanes with the same steps share them: the number of the list, or PEAL_NONE. */
static uint32_t share(struct peal_codes *codes, const uint32_t *steps, uint64_t count)
{
    if (codes->shared.len && is_list(&codes->shared.at[codes->newest], steps, count))
        return codes->newest;
    uint64_t hash = 0;
    if (count)
        hash = peal_hash_bytes(steps, count * sizeof *steps, count);
    /* Ranks that do the same are usually among the last few distinct ones. */
    for (size_t i = codes->shared.len; i-- > 0;) {
        if (codes->shared.len - i > 64)
            break;
        const struct shared_code *other = &codes->shared.at[i];
        if (other->hash == hash && is_list(other, steps, count))
            return codes->newest = (uint32_t)i;
    }
    struct shared_code made = {hash, count, malloc((count + 1) * sizeof *made.steps)};
    if (!made.steps || !peal_vec_push(&codes->shared, made)) {
        free(made.steps);
        return PEAL_NONE;
    }
    if (count)
        memcpy(made.steps, steps, count * sizeof *made.steps);
    made.steps[count] = 0; /* may be read ahead, but is never run */
    return codes->newest = (uint32_t)codes->shared.len - 1;
}

/* Adds the lane as the next one of its rank. */
static bool push_lane(struct peal_codes *codes, uint32_t shared, const uint32_t *ports,
                      size_t nports)
{
    struct peal_code code = {.shared = shared,
                             .nports = (uint32_t)nports,
                             .ports = malloc((nports + 1) * sizeof *code.ports)};
    if (shared == PEAL_NONE || !code.ports || !peal_vec_push(&codes->lanes, code)) {
        free(code.ports);
        return false;
    }
    if (nports)
        memcpy(code.ports, ports, nports * sizeof *ports);
    struct peal_code *made = &codes->lanes.at[codes->lanes.len - 1];
    made->steps = codes->shared.at[shared].steps;
    made->count = codes->shared.at[shared].count;
    return true;
}

bool peal_sim_codes_add(const struct peal_sim *sim, struct peal_codes *codes,
                        const uint8_t *buf_mem, const struct peal_part_lane *lane)
{
    struct coding c = {.sim = sim, .codes = codes, .buf_mem = buf_mem, .lane = lane};
    uint32_t step = 0;
    if (lane->lane == 0 && !peal_vec_push(&codes->first_lane, (uint32_t)codes->lanes.len))
        return false;
    /* Step 0 exists from the start: the follower of nothing. No op has its key. */
    if (find_step(sim, codes, &(struct step_key){.head = PEAL_OP_END, .count = UINT64_MAX}) ==
        PEAL_NONE)
        return false;
    codes->now.len = codes->now_ports.len = 0;
    if (!peal_vec_reserve(&codes->now, lane->count))
        return false;
    for (uint64_t i = 0; i < lane->count; i++) {
        uint32_t next = codes->follower.at[step];
        if (!is_like(&c, &lane->ops[i], &codes->raws.at[next])) {
            struct step_key key = key_of(&c, &lane->ops[i]);
            if (!same_key(&codes->keys.at[next], &key))
                next = find_step(sim, codes, &key);
            if (next == PEAL_NONE)
                return false;
            codes->follower.at[step] = next;
            codes->raws.at[next] = raw_of(&c, &lane->ops[i], (uint32_t)(key.head >> 32));
            codes->meets |= (key.head >> 8 & 255) != PEAL_REACH_OWN || is_sync(&key);
        }
        codes->now.at[codes->now.len++] = step = next;
    }
    return push_lane(codes, share(codes, codes->now.at, codes->now.len), codes->now_ports.at,
                     codes->now_ports.len);
}

struct peal_codes *peal_sim_codes_new(void)
{
    return calloc(1, sizeof(struct peal_codes));
}

/* The lists of one of the others, in the result's step numbers; *lists[i]: the number there. */
static bool join_lists(const struct peal_sim *sim, struct peal_codes *codes,
                       const struct peal_codes *other, uint32_t **lists)
{
    uint32_t *steps = malloc((other->steps.len + 1) * sizeof *steps);
    *lists = malloc((other->shared.len + 1) * sizeof **lists);
    bool ok = false;
    if (!steps || !*lists)
        goto free_steps;
    for (size_t i = 0; i < other->steps.len; i++) {
        steps[i] = find_step(sim, codes, &other->keys.at[i]);
        if (steps[i] == PEAL_NONE)
            goto free_steps;
    }
    for (size_t i = 0; i < other->shared.len; i++) {
        const struct shared_code *list = &other->shared.at[i];
        for (uint64_t k = 0; k < list->count; k++)
            list->steps[k] = steps[list->steps[k]];
        (*lists)[i] = share(codes, list->steps, list->count);
        free(list->steps); /* two copies of everything would be too much memory */
        other->shared.at[i].steps = NULL;
        if ((*lists)[i] == PEAL_NONE)
            goto free_steps;
    }
    ok = true;
free_steps:
    free(steps);
    return ok;
}

/* Appends the lanes that `other` has for its rank `rank`. */
static bool join_rank(struct peal_codes *codes, const struct peal_codes *other, uint32_t rank,
                      const uint32_t *channels, const uint32_t *lists)
{
    uint32_t lanes = peal_sim_code_lanes(other, rank);
    if (!peal_vec_push(&codes->first_lane, (uint32_t)codes->lanes.len))
        return false;
    for (uint32_t i = 0; i < lanes; i++) {
        const struct peal_code *lane = peal_sim_code(other, rank, i);
        for (uint32_t k = 0; k < lane->nports; k++) {
            if (!(lane->ports[k] & PEAL_PORT_RANK))
                lane->ports[k] = channels[lane->ports[k]];
        }
        if (!push_lane(codes, lists[lane->shared], lane->ports, lane->nports))
            return false;
    }
    return true;
}

struct peal_codes *peal_sim_codes_join(const struct peal_sim *sim, struct peal_codes **others,
                                       uint32_t *const *channels, uint32_t count, uint32_t nranks)
{
    struct peal_codes *codes = peal_sim_codes_new();
    uint32_t **lists = calloc(count, sizeof *lists);
    bool ok = false;
    if (!codes || !lists)
        goto free_others;
    for (uint32_t i = 0; i < count; i++) {
        if (!join_lists(sim, codes, others[i], &lists[i]))
            goto free_others;
        codes->meets |= others[i]->meets;
    }
    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint32_t by = rank % count; /* ranks were distributed in turn */
        if (!join_rank(codes, others[by], rank / count, channels[by], lists[by]))
            goto free_others;
    }
    ok = true;
free_others:
    for (uint32_t i = 0; i < count; i++) {
        peal_sim_code_free(others[i]);
        if (lists)
            free(lists[i]);
    }
    free(lists);
    if (ok)
        return codes;
    peal_sim_code_free(codes);
    return NULL;
}

bool peal_sim_codes_queues_only(const struct peal_codes *codes)
{
    return !codes->meets;
}

const struct peal_coded_op *peal_sim_codes_steps(const struct peal_codes *codes)
{
    return codes->steps.at;
}

const struct peal_code *peal_sim_code(const struct peal_codes *codes, uint32_t rank, uint32_t lane)
{
    return &codes->lanes.at[codes->first_lane.at[rank] + lane];
}

uint32_t peal_sim_code_lanes(const struct peal_codes *codes, uint32_t rank)
{
    size_t end;
    if (rank + 1 < codes->first_lane.len)
        end = codes->first_lane.at[rank + 1];
    else
        end = codes->lanes.len;
    return (uint32_t)end - codes->first_lane.at[rank];
}

void peal_sim_code_free(struct peal_codes *codes)
{
    if (!codes)
        return;
    for (size_t i = 0; i < codes->shared.len; i++)
        free(codes->shared.at[i].steps);
    for (size_t i = 0; i < codes->lanes.len; i++)
        free(codes->lanes.at[i].ports);
    peal_vec_release(&codes->steps);
    peal_vec_release(&codes->keys);
    peal_vec_release(&codes->follower);
    peal_vec_release(&codes->raws);
    peal_vec_release(&codes->lanes);
    peal_vec_release(&codes->first_lane);
    peal_vec_release(&codes->shared);
    peal_vec_release(&codes->now);
    peal_vec_release(&codes->now_ports);
    peal_index_release(&codes->index);
    free(codes);
}
