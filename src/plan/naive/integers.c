/* SPDX-License-Identifier: Apache-2.0 */
/* Integers, booleans, peers and parameters, as docs/language.md says. */
#include "plan/naive/machine.h"

#include <stdlib.h>
#include <string.h>

bool peal_naive_fail(struct peal_naive *n, const char *why)
{
    if (!n->why)
        n->why = why;
    return false;
}

static int64_t floor_divide(struct peal_naive *n, int64_t a, int64_t b)
{
    if (b == 0 || (b == -1 && a == INT64_MIN)) {
        (void)peal_naive_fail(n, "a division that has no value");
        return 0;
    }
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0))
        return q - 1;
    return q;
}

/* The remainder of Euclid: never negative. */
static int64_t remainder_of(struct peal_naive *n, int64_t a, int64_t b)
{
    if (b == 0) {
        (void)peal_naive_fail(n, "a division that has no value");
        return 0;
    }
    if (b == -1)
        return 0;
    int64_t r = a % b;
    if (r < 0) {
        if (b < 0)
            r += -b;
        else
            r += b;
    }
    return r;
}

static int64_t binary(struct peal_naive *n, enum peal_int_op op, int64_t a, int64_t b)
{
    int64_t out = 0;
    bool bad = false;
    switch (op) {
    case PEAL_INT_ADD:
        bad = __builtin_add_overflow(a, b, &out);
        break;
    case PEAL_INT_SUB:
        bad = __builtin_sub_overflow(a, b, &out);
        break;
    case PEAL_INT_MUL:
        bad = __builtin_mul_overflow(a, b, &out);
        break;
    case PEAL_INT_DIV:
        return floor_divide(n, a, b);
    case PEAL_INT_MOD:
        return remainder_of(n, a, b);
    case PEAL_INT_SHL:
        bad = b < 0 || b > 62 || a < 0;
        out = a;
        for (int64_t i = 0; i < b; i++) {
            bad = bad || __builtin_mul_overflow(out, 2, &out);
            if (bad)
                break;
        }
        break;
    case PEAL_INT_SHR:
        bad = b < 0;
        out = a;
        for (int64_t i = 0; i < b; i++) {
            if (i == 64) /* nothing is left to shift out */
                break;
            out = floor_divide(n, out, 2);
        }
        break;
    case PEAL_INT_AND:
        return a & b;
    case PEAL_INT_OR:
        return a | b;
    case PEAL_INT_XOR:
        return a ^ b;
    case PEAL_INT_EQ:
        return a == b;
    case PEAL_INT_NE:
        return a != b;
    case PEAL_INT_LT:
        return a < b;
    case PEAL_INT_LE:
        return a <= b;
    case PEAL_INT_GT:
        return a > b;
    case PEAL_INT_GE:
        return a >= b;
    default:
        bad = true;
    }
    if (bad)
        (void)peal_naive_fail(n, "an integer that cannot be computed");
    return out;
}

/* --- the placement --------------------------------------------------------------------------- */

static uint32_t node_of(const struct peal_naive *n, int64_t rank)
{
    if (n->bind->nodes)
        return n->bind->nodes[rank];
    return 0;
}

/* Ranks by node; a rank's seat is its position among those of its node. */
bool peal_naive_seat(struct peal_naive *n)
{
    uint32_t nranks = n->bind->nranks;
    n->seat = calloc(nranks + 1u, sizeof *n->seat);
    n->first_seat = calloc(nranks + 2u, sizeof *n->first_seat);
    n->seated = calloc(nranks + 1u, sizeof *n->seated);
    if (!n->seat || !n->first_seat || !n->seated)
        return false;
    for (uint32_t r = 0; r < nranks; r++) {
        if (node_of(n, r) >= nranks)
            return false;
        n->seat[r] = n->first_seat[node_of(n, r) + 1]++;
    }
    for (uint32_t m = 0; m < nranks; m++)
        n->first_seat[m + 1] += n->first_seat[m];
    for (uint32_t r = 0; r < nranks; r++)
        n->seated[n->first_seat[node_of(n, r)] + n->seat[r]] = r;
    return true;
}

static int64_t seats_of(const struct peal_naive *n, int64_t node)
{
    if (node >= n->bind->nranks)
        return 0;
    return n->first_seat[node + 1] - n->first_seat[node];
}

static int64_t seat_of(const struct peal_naive *n, int64_t rank)
{
    return n->seat[rank];
}

static int64_t count_nodes(const struct peal_naive *n)
{
    int64_t nodes = 0;
    while (seats_of(n, nodes) > 0)
        nodes++;
    return nodes;
}

static int64_t max_seats(const struct peal_naive *n)
{
    int64_t largest = 0;
    for (int64_t m = 0; seats_of(n, m) > 0; m++) {
        if (seats_of(n, m) > largest)
            largest = seats_of(n, m);
    }
    return largest;
}

static uint32_t cube_of(const struct peal_naive *n, int64_t rank)
{
    if (n->bind->cubes)
        return n->bind->cubes[rank];
    return 0;
}

static bool is_same_cube(const struct peal_naive *n, int64_t a, int64_t b)
{
    return node_of(n, a) == node_of(n, b) && cube_of(n, a) == cube_of(n, b);
}

/* A rank's number among those of its cube. */
static int64_t pe_of(const struct peal_naive *n, int64_t rank)
{
    int64_t pe = 0;
    for (int64_t r = 0; r < rank; r++)
        pe += is_same_cube(n, r, rank);
    return pe;
}

static int64_t program_id(const struct peal_naive *n, int64_t axis, int64_t rank)
{
    if (axis == 0)
        return pe_of(n, rank);
    if (axis == 1)
        return cube_of(n, rank);
    return node_of(n, rank);
}

/* program_id(axis), program_id(axis, rank), num_programs(axis) */
static int64_t program(struct peal_naive *n, const struct peal_expr *e)
{
    int64_t axis = peal_naive_int(n, e->a), rank = n->rank, extent = 0;
    if (e->builtin == PEAL_BUILTIN_PROGRAM_ID && e->a->next)
        rank = peal_naive_int(n, e->a->next);
    if (axis < 0 || axis > 2 || rank < 0 || rank >= n->bind->nranks) {
        (void)peal_naive_fail(n, "an axis or rank that does not exist");
        return 0;
    }
    if (e->builtin == PEAL_BUILTIN_PROGRAM_ID)
        return program_id(n, axis, rank);
    for (int64_t r = 0; r < n->bind->nranks; r++) {
        int64_t id = program_id(n, axis, r);
        if (id >= extent)
            extent = id + 1;
    }
    return extent;
}

/* at(node, cube, PE) */
static int64_t rank_in_cube(struct peal_naive *n, const struct peal_expr *e)
{
    int64_t node = peal_naive_int(n, e->a), cube = peal_naive_int(n, e->a->next),
            pe = peal_naive_int(n, e->a->next->next);
    for (int64_t r = 0; r < n->bind->nranks; r++) {
        if ((int64_t)node_of(n, r) == node && (int64_t)cube_of(n, r) == cube && pe_of(n, r) == pe)
            return r;
    }
    (void)peal_naive_fail(n, "a PE that does not exist");
    return 0;
}

/* node_of, seat_of, seats_of, at */
static int64_t place_value(struct peal_naive *n, enum peal_builtin which, int64_t a, int64_t b)
{
    bool of_rank = which == PEAL_BUILTIN_NODE_OF || which == PEAL_BUILTIN_SEAT_OF;
    bool exists = a >= 0 && a < n->bind->nranks;
    if (!of_rank)
        exists = a >= 0 && seats_of(n, a) > 0;
    if (!exists) {
        (void)peal_naive_fail(n, "a rank or node that does not exist");
        return 0;
    }
    if (of_rank) {
        if (which == PEAL_BUILTIN_NODE_OF)
            return (int64_t)node_of(n, a);
        return seat_of(n, a);
    }
    if (which == PEAL_BUILTIN_SEATS_OF)
        return seats_of(n, a);
    if (b >= 0 && b < seats_of(n, a))
        return n->seated[n->first_seat[a] + b];
    (void)peal_naive_fail(n, "a seat that does not exist");
    return 0;
}

static int64_t special(const struct peal_naive *n, enum peal_special which)
{
    const struct naive_grid *g = &n->grid;
    int64_t ranks = n->bind->nranks, rank = n->rank, children = 0;
    switch (which) {
    case PEAL_RANK:
        return rank;
    case PEAL_NRANKS:
        return ranks;
    case PEAL_NODE:
        return node_of(n, rank);
    case PEAL_NODES:
        return count_nodes(n);
    case PEAL_SEAT:
        return seat_of(n, rank);
    case PEAL_SEATS:
        return seats_of(n, node_of(n, rank));
    case PEAL_MAX_SEATS:
        return max_seats(n);
    case PEAL_ROW:
        if (g->cols)
            return rank / g->cols;
        return 0;
    case PEAL_COL:
        if (g->cols)
            return rank % g->cols;
        return 0;
    case PEAL_ROWS:
        return g->rows;
    case PEAL_COLS:
        return g->cols;
    case PEAL_NCHILDREN:
        for (int64_t c = 0; c < g->arity; c++) {
            int64_t self = (rank - g->root + ranks) % ranks;
            children += self * g->arity + 1 + c < ranks;
        }
        return children;
    }
    return 0;
}

/* --- peers ----------------------------------------------------------------------------------- */

static bool find_tree(struct peal_naive *n, const struct peal_expr *e, struct naive_peer *out)
{
    int64_t k = n->grid.arity, ranks = n->bind->nranks, other;
    int64_t self = (n->rank - n->grid.root + ranks) % ranks;
    if (!k)
        return false;
    if (e->value == PEAL_PORT_PARENT) {
        if (self == 0)
            return false;
        other = (self - 1) / k;
        *out = (struct naive_peer){0, PEAL_PORT_PARENT,
                                   PEAL_PORT_CHILD + (uint32_t)(self - 1 - other * k)};
    } else {
        int64_t child = peal_naive_int(n, e->a);
        other = self * k + 1 + child;
        if (child < 0 || child >= k || other >= ranks)
            return false;
        *out = (struct naive_peer){0, PEAL_PORT_CHILD + (uint32_t)child, PEAL_PORT_PARENT};
    }
    out->rank = (uint32_t)((other + n->grid.root) % ranks);
    return true;
}

static bool find_grid(const struct peal_naive *n, int64_t port, struct naive_peer *out)
{
    static const int move[5][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, 1}, {0, -1}}; /* - N S E W */
    static const uint32_t back[5] = {0, PEAL_PORT_S, PEAL_PORT_N, PEAL_PORT_W, PEAL_PORT_E};
    const struct naive_grid *g = &n->grid;
    if (!g->cols || port < PEAL_PORT_N || port > PEAL_PORT_W)
        return false;
    int64_t row = n->rank / g->cols + move[port][0], col = n->rank % g->cols + move[port][1];
    if (g->torus) {
        row = (row + g->rows) % g->rows;
        col = (col + g->cols) % g->cols;
    }
    if (row < 0 || col < 0 || row >= g->rows || col >= g->cols)
        return false;
    *out = (struct naive_peer){(uint32_t)(row * g->cols + col), (uint32_t)port, back[port]};
    return out->rank != n->rank;
}

static bool find_port(struct peal_naive *n, const struct peal_expr *e, struct naive_peer *out)
{
    if (e->value >= PEAL_PORT_PARENT)
        return find_tree(n, e, out);
    return find_grid(n, e->value, out);
}

struct naive_peer peal_naive_peer(struct peal_naive *n, const struct peal_expr *e)
{
    struct naive_peer out = {0, PEAL_PORT_PEER, PEAL_PORT_PEER};
    if (e->kind == PEAL_EXPR_PORT) {
        if (!find_port(n, e, &out))
            (void)peal_naive_fail(n, "a port without a neighbour");
        return out;
    }
    int64_t rank = peal_naive_int(n, e);
    if (rank < 0 || rank >= n->bind->nranks)
        (void)peal_naive_fail(n, "a rank that does not exist");
    else
        out.rank = (uint32_t)rank;
    return out;
}

/* --- expressions ----------------------------------------------------------------------------- */

static int64_t name_value(struct peal_naive *n, const struct peal_expr *e)
{
    if (e->symbol->kind == PEAL_SYMBOL_BUILTIN)
        return special(n, (enum peal_special)e->symbol->value);
    const struct naive_name *name = &n->now->names[e->symbol->slot];
    if (!name->bound)
        (void)peal_naive_fail(n, "a name without a value");
    return name->value;
}

static int64_t sum(struct peal_naive *n, const struct peal_expr *e)
{
    const struct naive_name *array = &n->now->names[e->a->symbol->slot];
    int64_t count;
    if (e->a->next)
        count = peal_naive_int(n, e->a->next);
    else
        count = (int64_t)array->array_len;
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        if ((uint64_t)i >= array->array_len) {
            (void)peal_naive_fail(n, "an index outside its array");
            break;
        }
        total = binary(n, PEAL_INT_ADD, total, array->array[i]);
    }
    return total;
}

static int64_t part_length(struct peal_naive *n, const struct peal_expr *e)
{
    int64_t c = peal_naive_int(n, e->a), len = peal_naive_int(n, e->a->next);
    int64_t k = peal_naive_int(n, e->a->next->next);
    if (k <= 0 || c < 0 || c >= k || len < 0) {
        (void)peal_naive_fail(n, "a part that does not exist");
        return 0;
    }
    return (int64_t)(peal_size_part((uint64_t)c + 1, (uint64_t)len, (uint64_t)k) -
                     peal_size_part((uint64_t)c, (uint64_t)len, (uint64_t)k));
}

static int64_t call(struct peal_naive *n, const struct peal_expr *e)
{
    int64_t a, out;
    struct naive_place place;
    struct naive_peer peer;
    switch (e->builtin) {
    case PEAL_BUILTIN_MIN:
    case PEAL_BUILTIN_MAX:
        out = peal_naive_int(n, e->a);
        for (const struct peal_expr *x = e->a->next; x; x = x->next) {
            a = peal_naive_int(n, x);
            bool is_better;
            if (e->builtin == PEAL_BUILTIN_MIN)
                is_better = a < out;
            else
                is_better = a > out;
            if (is_better)
                out = a;
        }
        return out;
    case PEAL_BUILTIN_CDIV:
        a = peal_naive_int(n, e->a);
        return -floor_divide(n, a == INT64_MIN ? 0 : -a, peal_naive_int(n, e->a->next));
    case PEAL_BUILTIN_LOG2:
        a = peal_naive_int(n, e->a);
        if (a <= 0)
            (void)peal_naive_fail(n, "the logarithm of a number that is not positive");
        for (out = 0; a > 1; out++)
            a /= 2;
        return out;
    case PEAL_BUILTIN_PART:
        return part_length(n, e);
    case PEAL_BUILTIN_SELECT:
        return peal_naive_int(n, peal_naive_bool(n, e->a) ? e->a->next : e->a->next->next);
    case PEAL_BUILTIN_SUM:
        return sum(n, e);
    case PEAL_BUILTIN_LEN:
        if (peal_naive_place(n, e->a, &place))
            return (int64_t)(place.rows * place.count);
        return 0;
    case PEAL_BUILTIN_PEER:
        peer = peal_naive_peer(n, e->a);
        return peer.rank;
    case PEAL_BUILTIN_NODE_OF:
    case PEAL_BUILTIN_SEAT_OF:
    case PEAL_BUILTIN_SEATS_OF:
        a = peal_naive_int(n, e->a);
        return place_value(n, e->builtin, a, 0);
    case PEAL_BUILTIN_PROGRAM_ID:
    case PEAL_BUILTIN_NUM_PROGRAMS:
        return program(n, e);
    case PEAL_BUILTIN_AT:
        if (e->a->next->next)
            return rank_in_cube(n, e);
        a = peal_naive_int(n, e->a);
        return place_value(n, e->builtin, a, peal_naive_int(n, e->a->next));
    default:
        (void)peal_naive_fail(n, "a function that is not known here");
        return 0;
    }
}

int64_t peal_naive_int(struct peal_naive *n, const struct peal_expr *e)
{
    const struct naive_name *array;
    int64_t i;
    if (n->why)
        return 0;
    switch (e->kind) {
    case PEAL_EXPR_INT:
        return e->value;
    case PEAL_EXPR_NAME:
        return name_value(n, e);
    case PEAL_EXPR_UNARY:
        return binary(n, PEAL_INT_SUB, 0, peal_naive_int(n, e->a));
    case PEAL_EXPR_BINARY:
        i = peal_naive_int(n, e->a);
        return binary(n, e->op, i, peal_naive_int(n, e->b));
    case PEAL_EXPR_CALL:
        return call(n, e);
    case PEAL_EXPR_SLICE:
        array = &n->now->names[e->a->symbol->slot];
        i = peal_naive_int(n, e->slices[0].a);
        if (i < 0 || (uint64_t)i >= array->array_len) {
            (void)peal_naive_fail(n, "an index outside its array");
            return 0;
        }
        return array->array[i];
    case PEAL_EXPR_LAUNCH:
        return e->value ? n->launch % e->value : n->launch;
    default:
        (void)peal_naive_fail(n, "an integer that is not known here");
        return 0;
    }
}

bool peal_naive_bool(struct peal_naive *n, const struct peal_expr *e)
{
    struct naive_peer peer;
    if (e->kind == PEAL_EXPR_UNARY)
        return !peal_naive_bool(n, e->a);
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_HAS)
        return find_port(n, e->a, &peer);
    if (e->kind != PEAL_EXPR_BINARY)
        return peal_naive_int(n, e) != 0;
    if (e->op == PEAL_INT_ANDAND)
        return peal_naive_bool(n, e->a) && peal_naive_bool(n, e->b);
    if (e->op == PEAL_INT_OROR)
        return peal_naive_bool(n, e->a) || peal_naive_bool(n, e->b);
    if (e->a->type.kind != PEAL_TYPE_BOOL)
        return peal_naive_int(n, e) != 0;
    bool same = peal_naive_bool(n, e->a) == peal_naive_bool(n, e->b);
    if (e->op == PEAL_INT_EQ)
        return same;
    return !same;
}

/* --- parameters ------------------------------------------------------------------------------ */

static void bind_one(struct peal_naive *n, const struct peal_symbol *s)
{
    struct naive_name *name = &n->now->names[s->slot];
    const struct peal_bind_value *given = NULL;
    for (size_t i = 0; i < n->bind->nvalues; i++) {
        if (strcmp(n->bind->values[i].name, s->name) == 0) {
            given = &n->bind->values[i];
            break;
        }
    }
    *name = (struct naive_name){.bound = true};
    if (given) {
        size_t at = 0;
        if (s->is_local)
            at = n->rank * given->count;
        name->array = given->values + at;
        name->array_len = given->count;
        name->value = name->array[0];
    } else if (strcmp(s->name, "root") == 0) {
        name->value = n->bind->root;
    } else if (s->initial) {
        name->value = peal_naive_int(n, s->initial);
    } else {
        (void)peal_naive_fail(n, "a parameter without a value");
    }
}

void peal_naive_bind_buffer(struct peal_naive *n, const struct peal_symbol *s)
{
    bool two_d = s->shape[1];
    int64_t rows = 0;
    if (two_d)
        rows = peal_naive_int(n, s->shape[0]);
    int64_t cols = peal_naive_int(n, s->shape[two_d]);
    if (rows < 0 || cols < 0)
        (void)peal_naive_fail(n, "a buffer of a negative size");
    n->now->names[s->slot] =
        (struct naive_name){.bound = true, .rows = (uint64_t)rows, .cols = (uint64_t)cols};
}

void peal_naive_bind(struct peal_naive *n)
{
    for (const struct peal_symbol *s = n->kernel->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_DIM)
            bind_one(n, s);
    }
    for (int i = 0; i < n->kernel->nparams; i++) {
        const struct peal_symbol *s = n->kernel->params[i];
        if (s->kind == PEAL_SYMBOL_INT || s->kind == PEAL_SYMBOL_INTS)
            bind_one(n, s);
    }
    for (int i = 0; i < n->kernel->nparams && !n->why; i++) {
        if (n->kernel->params[i]->kind == PEAL_SYMBOL_BUFFER)
            peal_naive_bind_buffer(n, n->kernel->params[i]);
    }
}

/* Where a rank's part of this many elements begins. */
static uint64_t part_offset(const struct peal_naive *n, uint32_t rank, uint64_t whole)
{
    for (int i = 0; i < n->kernel->nparams; i++) {
        const struct peal_symbol *s = n->kernel->params[i];
        const struct naive_name *counts = &n->now->names[s->slot];
        uint64_t start = 0;
        if (s->kind != PEAL_SYMBOL_INTS || strcmp(s->name, "counts") != 0)
            continue;
        for (size_t r = 0; r < peal_size_min(rank, counts->array_len); r++)
            start += (uint64_t)counts->array[r];
        return start;
    }
    return peal_size_part(rank, whole, n->bind->nranks);
}

const struct peal_symbol *peal_naive_home(const struct peal_naive *n,
                                          const struct peal_symbol *symbol, uint32_t rank,
                                          uint64_t *offset)
{
    enum peal_contract c = n->contract;
    bool x_is_part = c == PEAL_CONTRACT_ALLGATHER || c == PEAL_CONTRACT_GATHER;
    bool y_is_part = c == PEAL_CONTRACT_REDUCE_SCATTER || c == PEAL_CONTRACT_SCATTER;
    bool at_root = c == PEAL_CONTRACT_GATHER || c == PEAL_CONTRACT_SCATTER;
    const struct peal_symbol *part;
    if (x_is_part)
        part = n->x;
    else
        part = n->y;
    const struct peal_symbol *whole;
    if (x_is_part)
        whole = n->y;
    else
        whole = n->x;
    *offset = 0;
    if (!n->bind->in_place || !n->x || !n->y || n->x == n->y || symbol != part)
        return symbol;
    for (int i = 0; i < n->kernel->nparams; i++) {
        const struct peal_symbol *s = n->kernel->params[i];
        if (at_root && s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "root") == 0 &&
            n->now->names[s->slot].value != rank)
            return symbol;
    }
    const struct naive_name *all = &n->now->names[whole->slot];
    if (x_is_part || y_is_part) {
        if (all->rows)
            *offset = rank * all->cols;
        else
            *offset = part_offset(n, rank, all->cols);
    }
    return whole;
}
