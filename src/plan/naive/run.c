/* SPDX-License-Identifier: Apache-2.0 */
/* Executes acts in turn: memory, cells, channels, and ranks that enter and leave launches. See
 * machine.h.
 *
 * Ranks take turns, and each lane goes as far as it can; when no lane moves and some launch has not
 * ended, it is a deadlock. There is one memory per rank and buffer, which all launches share, and a
 * copy of the outputs for each launch. The first failure is kept (n->why) and ends every loop.
 * Nothing here may call plan/make or plan/assemble: this interpreter checks them.
 */
#include "plan/naive/machine.h"

#include <stdlib.h>
#include <string.h>

bool peal_naive_spend(struct peal_naive *n, uint64_t elements)
{
    if (elements < n->max_work)
        n->work += elements;
    else
        n->work += n->max_work;
    return n->work <= n->max_work || peal_naive_fail(n, "it would take too long");
}

void *peal_naive_take(struct peal_naive *n, size_t size)
{
    void *at = peal_arena_alloc(&n->now->arena, size);
    if (!at)
        (void)peal_naive_fail(n, "out of memory");
    return at;
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Makes space for at least `len` elements; new ones hold nothing. */
static bool grow(struct peal_naive *n, struct naive_memory *m, uint64_t len)
{
    if (len <= m->len)
        return true;
    if (!peal_naive_spend(n, len - m->len))
        return false;
    uint64_t *at = realloc(m->at, len * sizeof *at);
    if (!at)
        return peal_naive_fail(n, "out of memory");
    for (uint64_t i = m->len; i < len; i++)
        at[i] = peal_naive_undefined();
    *m = (struct naive_memory){at, len};
    return true;
}

static struct naive_memory *memory_of(struct peal_naive *n, struct naive_lane *lane,
                                      const struct naive_place *p)
{
    if (p->tile)
        return &lane->tiles[p->slot];
    return &n->buffers[(uint64_t)p->rank * n->kernel->nslots + p->slot];
}

static uint64_t index_of(const struct naive_place *p, uint64_t k)
{
    if (k < p->count) /* the first row, usually the only one: saves two divisions */
        return p->base + k;
    return p->base + k / p->count * p->stride + k % p->count;
}

static uint64_t evaluate(struct peal_naive *n, struct naive_lane *lane, const struct naive_value *v,
                         uint64_t k);

/* Element k of a product of matrices. */
static uint64_t dot(struct peal_naive *n, struct naive_lane *lane, const struct naive_value *v,
                    uint64_t k)
{
    uint64_t inner = v->word, row = k / v->place.count, column = k % v->place.count, sum = 0;
    if (!peal_naive_spend(n, 0))
        return 0;
    for (uint64_t i = 0; i < inner; i++) {
        uint64_t terms[3] = {evaluate(n, lane, v->first, row * inner + i),
                             evaluate(n, lane, v->first->next, i * v->place.count + column), sum};
        sum = peal_naive_own(PEAL_OP_MATMUL, terms);
    }
    return sum;
}

/* Element k of a value. */
static uint64_t evaluate(struct peal_naive *n, struct naive_lane *lane, const struct naive_value *v,
                         uint64_t k)
{
    uint64_t few[8], out;
    uint32_t count = 0;
    n->work++;
    switch (v->kind) {
    case NAIVE_CONSTANT:
        return v->word;
    case NAIVE_MESSAGE:
        return v->message[k];
    case NAIVE_PLACE: {
        const struct naive_memory *m = memory_of(n, lane, &v->place);
        uint64_t at = index_of(&v->place, k);
        if (at < m->len)
            return m->at[at];
        return peal_naive_undefined();
    }
    case NAIVE_DIVIDE:
        out = evaluate(n, lane, v->first, k);
        if (v->word > 1)
            return peal_naive_divide(out, v->word);
        return out;
    case NAIVE_MATMUL:
        return dot(n, lane, v, k);
    case NAIVE_OWN:
        for (const struct naive_value *x = v->first; x; x = x->next)
            few[count++] = evaluate(n, lane, x, k);
        return peal_naive_own(v->own, few);
    case NAIVE_APPLY:
        break;
    }
    /* If there are too many operands for the array, they are combined from left to right. */
    for (const struct naive_value *x = v->first; x; x = x->next) {
        few[count++] = evaluate(n, lane, x, k);
        if (count == 8) {
            few[0] = peal_naive_apply(v->fn, few, count);
            count = 1;
        }
    }
    if (count == 1 && peal_fn_info(v->fn)->operands == 0)
        return few[0];
    return peal_naive_apply(v->fn, few, count);
}

/* All sources are read before anything is written. */
static void assign(struct peal_naive *n, struct naive_lane *lane, const struct naive_act *act)
{
    const struct naive_place *p = &act->place;
    uint64_t count = p->rows * p->count;
    struct naive_memory *m = memory_of(n, lane, p);
    if (!count || !peal_naive_spend(n, count) || !grow(n, m, index_of(p, count - 1) + 1))
        return;
    uint64_t *values = malloc(count * sizeof *values);
    if (!values) {
        (void)peal_naive_fail(n, "out of memory");
        return;
    }
    for (uint64_t k = 0; k < count; k++)
        values[k] = evaluate(n, lane, act->value, k);
    m = memory_of(n, lane, p);
    for (uint64_t k = 0; k < count; k++) {
        uint64_t *at = &m->at[index_of(p, k)];
        uint64_t both[2] = {*at, values[k]};
        if (act->kind == NAIVE_ACCUMULATE)
            *at = peal_naive_apply(act->fn, both, 2);
        else
            *at = values[k];
    }
    free(values);
}

/* --- cells and queues ------------------------------------------------------------------------ */

static int64_t *cell_of(struct peal_naive *n, const struct naive_act *act, uint32_t launch)
{
    struct naive_cells *cells = &n->cells[(uint64_t)act->rank * n->kernel->nslots + act->slot];
    size_t instance = 0;
    if (!act->raw)
        instance = (size_t)act->call * n->launches + launch;
    while (cells->instances.len <= instance) {
        if (!peal_vec_push(&cells->instances, NULL)) {
            (void)peal_naive_fail(n, "out of memory");
            return NULL;
        }
    }
    int64_t **at = &cells->instances.at[instance];
    if (!*at && !(*at = calloc(act->cells + 1u, sizeof **at)))
        (void)peal_naive_fail(n, "out of memory");
    if (!*at)
        return NULL;
    return *at + act->index;
}

static bool notify(struct peal_naive *n, const struct naive_act *act, uint32_t launch)
{
    int64_t *cell = cell_of(n, act, launch);
    if (cell) {
        if (act->is_set)
            *cell = act->amount;
        else
            *cell = (int64_t)((uint64_t)*cell + (uint64_t)act->amount);
    }
    return cell;
}

static bool wait(struct peal_naive *n, const struct naive_act *act, uint32_t launch)
{
    if (!act->raw && act->back > launch)
        return true;
    const int64_t *cell = cell_of(n, act, launch - (act->raw ? 0 : act->back));
    return cell && *cell >= act->amount;
}

static bool send(struct peal_naive *n, struct naive_lane *lane, const struct naive_act *act)
{
    struct naive_channel *c = &n->channels.at[act->channel];
    uint64_t count = act->place.rows * act->place.count;
    struct naive_memory m = {NULL, 0};
    if (c->sent - c->freed >= n->depth || !grow(n, &m, count))
        return false;
    for (uint64_t k = 0; k < count; k++)
        m.at[k] = evaluate(n, lane, act->value, k);
    if (!peal_vec_push(&c->queue, m)) {
        free(m.at);
        return peal_naive_fail(n, "out of memory");
    }
    c->sent++;
    return true;
}

static bool receive(struct peal_naive *n, const struct naive_act *act)
{
    struct naive_channel *c = &n->channels.at[act->channel];
    if (c->received == c->sent)
        return false;
    struct naive_memory *m = &c->queue.at[c->received];
    if (m->len != act->place.rows * act->place.count)
        return peal_naive_fail(n, "a message of another length than is expected");
    if (m->len)
        memcpy(act->value->message, m->at, m->len * sizeof *m->at);
    free(m->at);
    m->at = NULL;
    c->received++;
    c->freed += !act->holds_slot;
    return true;
}

/* --- lanes and launches ---------------------------------------------------------------------- */

static bool let(struct peal_naive *n, struct naive_lane *lane, const struct naive_act *act)
{
    uint64_t count = act->place.rows * act->place.count;
    struct naive_memory made = {NULL, 0};
    if (!grow(n, &made, count))
        return false;
    for (uint64_t k = 0; k < count; k++)
        made.at[k] = evaluate(n, lane, act->value, k);
    free(lane->tiles[act->place.slot].at); /* the old value may have been an operand */
    lane->tiles[act->place.slot] = made;
    return true;
}

/* Executes an act. False: it blocks. */
static bool perform(struct peal_naive *n, struct naive_lane *lane, const struct naive_act *act,
                    uint32_t launch)
{
    switch (act->kind) {
    case NAIVE_ASSIGN:
    case NAIVE_ACCUMULATE:
        assign(n, lane, act);
        return true;
    case NAIVE_LET:
        return let(n, lane, act);
    case NAIVE_NOTIFY:
        return notify(n, act, launch);
    case NAIVE_WAIT:
        return wait(n, act, launch);
    case NAIVE_SEND:
        return send(n, lane, act);
    case NAIVE_RECV:
        return receive(n, act);
    case NAIVE_FREE:
        n->channels.at[act->channel].freed++;
        return true;
    }
    return false;
}

static bool run_lane(struct peal_naive *n, struct naive_rank *r, struct naive_lane *lane)
{
    bool moved = false;
    while (lane->at < lane->acts.len && !n->why) {
        if (!peal_naive_spend(n, 1) || !perform(n, lane, &lane->acts.at[lane->at], r->launch) ||
            n->why)
            return moved;
        for (size_t i = 0; i < lane->slots.len; i++) {
            const struct naive_slot *slot = &lane->slots.at[i];
            n->channels.at[slot->channel].freed += !slot->freed && slot->last_act == lane->at;
        }
        lane->at++;
        moved = true;
    }
    return moved;
}

static void release_lanes(const struct peal_naive *n, struct naive_rank *r)
{
    for (size_t i = 0; i < r->lanes.len; i++) {
        struct naive_lane *lane = &r->lanes.at[i];
        if (lane->tiles) {
            for (uint32_t s = 0; s < n->kernel->nslots; s++)
                free(lane->tiles[s].at);
        }
        free(lane->tiles);
        peal_vec_release(&lane->acts);
        peal_vec_release(&lane->slots);
        peal_vec_release(&lane->posts);
    }
    r->lanes.len = 0;
}

static bool is_in_place(const struct peal_naive *n, const struct peal_symbol *s)
{
    return n->bind->in_place && n->x && n->y && n->x != n->y && (s == n->x || s == n->y);
}

/* The caller's parameters: if x is a part of y, it is filled in after the whole. */
static void fill_params(struct peal_naive *n)
{
    for (int parts = 0; parts < 2; parts++) {
        for (int i = 0, number = -1; i < n->kernel->nparams && !n->why; i++) {
            const struct peal_symbol *s = n->kernel->params[i];
            uint64_t offset;
            if (s->kind != PEAL_SYMBOL_BUFFER)
                continue;
            number++;
            const struct peal_symbol *home = peal_naive_home(n, s, n->rank, &offset);
            const struct naive_name *name = &n->now->names[s->slot];
            uint64_t len = (name->rows ? name->rows : 1) * name->cols;
            struct naive_memory *m =
                &n->buffers[(uint64_t)n->rank * n->kernel->nslots + home->slot];
            if ((home != s) != (parts == 1) || (home != s && s != n->x) ||
                !grow(n, m, offset + len))
                continue;
            bool in = (s->dir & PEAL_DIR_IN) || is_in_place(n, s);
            for (uint64_t k = 0; k < len; k++) {
                if (in)
                    m->at[offset + k] = peal_naive_input(n->launch, n->rank, (uint32_t)number, k);
                else
                    m->at[offset + k] = peal_naive_undefined();
            }
            (void)peal_naive_spend(n, len);
        }
    }
}

static void enter(struct peal_naive *n, uint32_t rank)
{
    struct naive_rank *r = &n->ranks[rank];
    n->rank = rank;
    n->now = r;
    n->launch = r->launch;
    release_lanes(n, r);
    peal_arena_release(&r->arena);
    peal_arena_init(&r->arena, (size_t)1 << 30);
    memset(r->names, 0, (n->kernel->nslots + 1u) * sizeof *r->names);
    peal_naive_walk(n);
    for (size_t i = 0; i < r->lanes.len; i++) {
        r->lanes.at[i].tiles = calloc(n->kernel->nslots + 1u, sizeof(struct naive_memory));
        if (!r->lanes.at[i].tiles)
            (void)peal_naive_fail(n, "out of memory");
    }
    if (!n->why)
        fill_params(n);
    r->inside = true;
}

/* Keeps a copy of what the parameters hold. */
static void leave(struct peal_naive *n, uint32_t rank)
{
    struct naive_rank *r = &n->ranks[rank];
    n->rank = rank;
    n->now = r;
    for (int i = 0, number = -1; i < n->kernel->nparams && !n->why; i++) {
        const struct peal_symbol *s = n->kernel->params[i];
        uint64_t offset;
        if (s->kind != PEAL_SYMBOL_BUFFER)
            continue;
        number++;
        const struct peal_symbol *home = peal_naive_home(n, s, rank, &offset);
        const struct naive_name *name = &r->names[s->slot];
        const struct naive_memory *m = &n->buffers[(uint64_t)rank * n->kernel->nslots + home->slot];
        struct naive_memory *to =
            &n->outputs[((uint64_t)r->launch * n->bind->nranks + rank) * n->nparams +
                        (uint32_t)number];
        uint64_t len = (name->rows ? name->rows : 1) * name->cols;
        if ((s->dir & PEAL_DIR_OUT || is_in_place(n, s)) && grow(n, to, len) && len)
            memcpy(to->at, m->at + offset, len * sizeof *to->at);
    }
    r->inside = false;
    r->launch++;
}

static bool run_rank(struct peal_naive *n, uint32_t rank)
{
    struct naive_rank *r = &n->ranks[rank];
    bool moved = false, done = true;
    if (r->launch == n->launches)
        return false;
    if (!r->inside) {
        enter(n, rank);
        moved = true;
    }
    for (size_t i = 0; i < r->lanes.len && !n->why; i++) {
        moved = run_lane(n, r, &r->lanes.at[i]) || moved;
        done = done && r->lanes.at[i].at == r->lanes.at[i].acts.len;
    }
    if (done && !n->why)
        leave(n, rank);
    return moved || done;
}

static void run(struct peal_naive *n)
{
    bool moved = true;
    while (moved && !n->why) {
        moved = false;
        for (uint32_t r = 0; r < n->bind->nranks && !n->why; r++)
            moved = run_rank(n, r) || moved;
    }
    for (uint32_t r = 0; r < n->bind->nranks; r++) {
        if (n->ranks[r].launch < n->launches)
            (void)peal_naive_fail(n, "it deadlocks");
    }
}

/* --- from outside ---------------------------------------------------------------------------- */

static void find_ends(struct peal_naive *n)
{
    const struct peal_kernel *k = n->kernel;
    if (k->implements)
        (void)peal_contract_find(k->implements, strlen(k->implements), &n->contract);
    for (int i = k->nparams; i-- > 0;) {
        const struct peal_symbol *s = k->params[i];
        if (s->kind != PEAL_SYMBOL_BUFFER)
            continue;
        n->nparams++;
        if (s->dir & PEAL_DIR_IN)
            n->x = s;
        if (s->dir & PEAL_DIR_OUT)
            n->y = s;
    }
}

static bool acquire(struct peal_naive *n)
{
    size_t ranks = n->bind->nranks, slots = n->kernel->nslots + 1u;
    n->ranks = calloc(ranks, sizeof *n->ranks);
    n->buffers = calloc(ranks * slots, sizeof *n->buffers);
    n->cells = calloc(ranks * slots, sizeof *n->cells);
    n->outputs = calloc((size_t)n->launches * ranks * (n->nparams + 1u), sizeof *n->outputs);
    if (!n->ranks || !n->buffers || !n->cells || !n->outputs)
        return false;
    for (size_t r = 0; r < ranks; r++) {
        peal_arena_init(&n->ranks[r].arena, 0);
        n->ranks[r].names = calloc(slots, sizeof *n->ranks[r].names);
        if (!n->ranks[r].names)
            return false;
    }
    return true;
}

struct peal_naive *peal_naive_run(const struct peal_kernel *kernel, const struct peal_bind *bind,
                                  uint32_t launches, uint64_t max_work, const char **why)
{
    struct peal_naive *n = calloc(1, sizeof *n);
    *why = "out of memory";
    if (!n)
        return NULL;
    n->kernel = kernel;
    n->bind = bind;
    n->launches = launches;
    n->max_work = max_work;
    if (bind->channel_depth)
        n->depth = bind->channel_depth;
    else
        n->depth = 2;
    find_ends(n);
    if (bind->slot_bytes)
        (void)peal_naive_fail(n, "payloads are cut to fit slots of a given size");
    if (!peal_naive_seat(n) || !acquire(n))
        (void)peal_naive_fail(n, "out of memory");
    if (!n->why)
        run(n);
    *why = n->why;
    if (!n->why)
        return n;
    peal_naive_free(n);
    return NULL;
}

void peal_naive_free(struct peal_naive *n)
{
    if (!n)
        return;
    /* A table that could not be allocated has no rows to free. */
    size_t ranks = n->bind->nranks, rows = ranks * (n->kernel->nslots + 1u);
    size_t nranks = 0;
    if (n->ranks)
        nranks = ranks;
    size_t nbuffers = 0;
    if (n->buffers)
        nbuffers = rows;
    size_t ncells = 0;
    if (n->cells)
        ncells = rows;
    size_t noutputs = 0;
    if (n->outputs)
        noutputs = n->launches * ranks * n->nparams;
    for (size_t r = 0; r < nranks; r++) {
        release_lanes(n, &n->ranks[r]);
        peal_vec_release(&n->ranks[r].lanes);
        peal_arena_release(&n->ranks[r].arena);
        free(n->ranks[r].names);
    }
    for (size_t i = 0; i < nbuffers; i++)
        free(n->buffers[i].at);
    for (size_t i = 0; i < ncells; i++) {
        for (size_t k = 0; k < n->cells[i].instances.len; k++)
            free(n->cells[i].instances.at[k]);
        peal_vec_release(&n->cells[i].instances);
    }
    for (size_t i = 0; i < n->channels.len; i++) {
        for (size_t k = 0; k < n->channels.at[i].queue.len; k++)
            free(n->channels.at[i].queue.at[k].at);
        peal_vec_release(&n->channels.at[i].queue);
    }
    for (size_t i = 0; i < noutputs; i++)
        free(n->outputs[i].at);
    peal_vec_release(&n->channels);
    peal_index_release(&n->channel_index);
    free(n->seat);
    free(n->first_seat);
    free(n->seated);
    free(n->ranks);
    free(n->buffers);
    free(n->cells);
    free(n->outputs);
    free(n);
}

const uint64_t *peal_naive_output(const struct peal_naive *n, uint32_t launch, uint32_t rank,
                                  uint32_t param, uint64_t *len)
{
    *len = 0;
    if (launch >= n->launches || rank >= n->bind->nranks || param >= n->nparams)
        return NULL;
    const struct naive_memory *m =
        &n->outputs[((uint64_t)launch * n->bind->nranks + rank) * n->nparams + param];
    *len = m->len;
    return m->at;
}
