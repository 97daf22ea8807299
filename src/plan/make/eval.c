/* SPDX-License-Identifier: Apache-2.0 */
/* Integers, booleans, peers: everything that is known when a plan is made.
 *
 * Values are those of one rank: `rank`, names bound by `for` and `let`, local parameters. Every
 * operation is checked for overflow and division by zero. A failure is reported once, at the
 * expression, and gives 0, with which the walk continues to its next check of the status. Division
 * rounds down, so that (rank - 1) % nranks is the neighbour on rank 0 too.
 */
#include "lang/lang.h"
#include "plan/make/maker.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

bool peal_inst_fail(struct instantiation *t, struct peal_pos pos, const char *format, ...)
{
    if (t->status != PEAL_OK)
        return false;
    va_list args;
    va_start(args, format);
    peal_diag_add(t->diags, PEAL_ERROR, pos, format, args);
    va_end(args);
    t->status = PEAL_INVALID;
    peal_diag_note(t->diags, (struct peal_pos){0}, "on rank %u of %u", t->rank, t->bind->nranks);
    return false;
}

void peal_inst_exclude(struct instantiation *t, enum peal_exclusion why)
{
    if (t->bind->excluded && t->status == PEAL_OK)
        *t->bind->excluded = why;
}

/* Rounds down, as % is Euclidean for positive divisors. */
static int64_t divide(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t modulo(int64_t a, int64_t b)
{
    if (a >= 0 && a < b) /* the usual case: avoids the division */
        return a;
    if (a < 0 && b > 0 && a >= -b)
        return a + b;
    int64_t r = a % b;
    if (r >= 0)
        return r;
    if (b < 0)
        return r - b;
    return r + b;
}

static int64_t overflow(struct instantiation *t, const struct peal_expr *e)
{
    peal_inst_fail(t, e->pos, "this overflows 64 bits");
    return 0;
}

static int64_t arithmetic(struct instantiation *t, const struct peal_expr *e, int64_t a, int64_t b)
{
    int64_t out = 0;
    switch (e->op) {
    case PEAL_INT_ADD:
        return __builtin_add_overflow(a, b, &out) ? overflow(t, e) : out;
    case PEAL_INT_SUB:
        if (__builtin_sub_overflow(a, b, &out))
            return overflow(t, e);
        return out;
    case PEAL_INT_MUL:
        if (__builtin_mul_overflow(a, b, &out))
            return overflow(t, e);
        return out;
    case PEAL_INT_DIV:
    case PEAL_INT_MOD:
        if (b == 0) {
            peal_inst_fail(t, e->pos, "division by zero");
            return 0;
        }
        if (e->op == PEAL_INT_MOD) {
            if (b == -1)
                return 0;
            return modulo(a, b);
        } /* INT64_MIN % -1 traps */
        if (b != -1)
            return divide(a, b);
        if (__builtin_sub_overflow(0, a, &out))
            return overflow(t, e);
        return out;
    case PEAL_INT_SHL:
        if (b < 0 || b > 62 || a < 0 || a > INT64_MAX >> b)
            return overflow(t, e);
        return a << b;
    case PEAL_INT_SHR:
        if (b < 0)
            return overflow(t, e);
        return a >> (b < 63 ? b : 63);
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
        assert(!"a binary operator of integers");
        return 0;
    }
}

static int64_t special(const struct instantiation *t, int64_t which)
{
    if (which == PEAL_RANK)
        return t->rank;
    if (which == PEAL_NRANKS)
        return t->bind->nranks;
    switch ((enum peal_special)which) {
    case PEAL_RANK:
        return t->rank;
    case PEAL_NRANKS:
        return t->bind->nranks;
    case PEAL_NODE:
        return t->placement.node[t->rank];
    case PEAL_NODES:
        return t->placement.nodes;
    case PEAL_SEAT:
        return t->placement.seat[t->rank];
    case PEAL_SEATS:
        return peal_placement_seats(&t->placement, t->placement.node[t->rank]);
    case PEAL_MAX_SEATS:
        return t->placement.max_seats;
    case PEAL_ROW:
        if (t->grid.cols)
            return t->rank / t->grid.cols;
        return 0;
    case PEAL_COL:
        if (t->grid.cols)
            return t->rank % t->grid.cols;
        return 0;
    case PEAL_ROWS:
        return t->grid.rows;
    case PEAL_COLS:
        return t->grid.cols;
    case PEAL_NCHILDREN: {
        if (!t->grid.arity)
            return 0;
        int64_t n = t->bind->nranks, self = modulo(t->rank - t->grid.root, n);
        int64_t left = n - (self * t->grid.arity + 1);
        if (left < 0)
            return 0;
        if (left < t->grid.arity)
            return left;
        return t->grid.arity;
    }
    }
    return 0;
}

static inline int64_t name_value(struct instantiation *t, const struct peal_expr *e)
{
    const struct peal_symbol *symbol = e->symbol;
    if (symbol->kind == PEAL_SYMBOL_BUILTIN)
        return special(t, symbol->value);
    const struct binding *b = &t->env[symbol->slot];
    if (!b->bound) {
        peal_inst_fail(t, e->pos, "'%s' has no value here", symbol->name);
        return 0;
    }
    if (!b->launch)
        return b->value;
    const struct launch_number *number = &t->launch_numbers.at[b->launch - 1];
    if (number->times)
        peal_inst_fail(t, e->pos, "a place may depend on 'launch mod k', not on 'launch'");
    t->saw_phase = true;
    return number->phases[t->phase];
}

/* The array behind counts[i], sum(counts). */
static const struct binding *array_of(struct instantiation *t, const struct peal_expr *e)
{
    const struct binding *b = NULL;
    if (e->symbol)
        b = &t->env[e->symbol->slot];
    if (!b || !b->bound) {
        peal_inst_fail(t, e->pos, "'%s' has no values here", e->name ? e->name : "?");
        return NULL;
    }
    return b;
}

static int64_t element(struct instantiation *t, const struct peal_expr *e)
{
    const struct binding *b = array_of(t, e->a);
    int64_t i = peal_inst_int(t, e->slices[0].a);
    if (!b)
        return 0;
    if (i < 0 || (uint64_t)i >= b->array_len) {
        peal_inst_fail(t, e->pos, "index %" PRId64 " is outside '%s', which has %zu values", i,
                       e->a->name, b->array_len);
        return 0;
    }
    return b->array[i];
}

static int64_t sum(struct instantiation *t, const struct peal_expr *e)
{
    const struct binding *b = array_of(t, e->a);
    if (!b)
        return 0;
    int64_t n;
    if (e->a->next)
        n = peal_inst_int(t, e->a->next);
    else
        n = (int64_t)b->array_len;
    int64_t total = 0;
    if (n < 0 || (uint64_t)n > b->array_len) {
        peal_inst_fail(t, e->pos, "'%s' has %zu values, not %" PRId64, e->a->name, b->array_len, n);
        return 0;
    }
    for (int64_t i = 0; i < n; i++) {
        if (__builtin_add_overflow(total, b->array[i], &total))
            return overflow(t, e);
    }
    return total;
}

static int64_t part_len(struct instantiation *t, const struct peal_expr *e)
{
    const struct peal_expr *arg = e->a;
    int64_t c = peal_inst_int(t, arg), n = peal_inst_int(t, arg->next);
    int64_t k = peal_inst_int(t, arg->next->next);
    if (k <= 0 || c < 0 || c >= k || n < 0) {
        peal_inst_fail(t, e->pos,
                       "there is no part %" PRId64 " of %" PRId64 " in %" PRId64 " parts", c, n, k);
        return 0;
    }
    return (int64_t)(peal_size_part((uint64_t)c + 1, (uint64_t)n, (uint64_t)k) -
                     peal_size_part((uint64_t)c, (uint64_t)n, (uint64_t)k));
}

static int64_t extreme(struct instantiation *t, const struct peal_expr *e, bool largest)
{
    int64_t out = peal_inst_int(t, e->a);
    for (const struct peal_expr *arg = e->a->next; arg; arg = arg->next) {
        int64_t v = peal_inst_int(t, arg);
        bool is_better;
        if (largest)
            is_better = v > out;
        else
            is_better = v < out;
        if (is_better)
            out = v;
    }
    return out;
}

static bool find_port(struct instantiation *t, const struct peal_expr *e, struct peer *out);

/* "no neighbour 'W' on a torus of 2 x 1": for a port that leads nowhere on this rank. */
static void reject_port(struct instantiation *t, struct peal_pos pos, const struct peal_expr *port)
{
    bool child = port->value >= PEAL_PORT_CHILD;
    const char *name = peal_port_name(child ? PEAL_PORT_CHILD : (enum peal_port)port->value);
    char number[24] = "";
    if (child)
        snprintf(number, sizeof number, " %" PRId64, peal_inst_int(t, port->a));
    if (t->status != PEAL_OK)
        return;
    if (child || port->value == PEAL_PORT_PARENT)
        peal_inst_fail(t, pos, "no neighbour '%s%s' in a tree of %u ranks", name, number,
                       t->bind->nranks);
    else
        peal_inst_fail(t, pos, "no neighbour '%s' on a %s of %" PRId64 " x %" PRId64, name,
                       t->grid.torus ? "torus" : "grid", t->grid.rows, t->grid.cols);
    peal_diag_note(t->diags, (struct peal_pos){0}, "'if has(%s%s)' asks whether there is one", name,
                   number);
}

static bool is_node(struct instantiation *t, const struct peal_expr *e, int64_t node)
{
    if (node >= 0 && node < t->placement.nodes)
        return true;
    return peal_inst_fail(t, e->pos, "there is no node %" PRId64 ": there are %u", node,
                          t->placement.nodes);
}

/* at(node, cube, PE) */
static int64_t rank_in_cube(struct instantiation *t, const struct peal_expr *e, int64_t node,
                            int64_t cube)
{
    const struct peal_node_map *p = &t->placement;
    int64_t pe = peal_inst_int(t, e->a->next->next);
    uint32_t pes = 0;
    if (cube >= 0 && cube < peal_placement_seats(p, (uint32_t)node)) {
        const uint32_t *first = &p->cube_first[p->first[node] + (uint32_t)cube];
        pes = first[1] - first[0];
        if (pe >= 0 && pe < pes)
            return p->by_cube[first[0] + (uint32_t)pe];
    }
    peal_inst_fail(t, e->pos,
                   "there is no PE %" PRId64 " in cube %" PRId64 " of node %" PRId64 ": it has %u",
                   pe, cube, node, pes);
    return 0;
}

/* at(node, seat) */
static int64_t rank_at(struct instantiation *t, const struct peal_expr *e)
{
    const struct peal_node_map *p = &t->placement;
    int64_t node = peal_inst_int(t, e->a), seat = peal_inst_int(t, e->a->next);
    if (!is_node(t, e, node))
        return 0;
    if (e->a->next->next)
        return rank_in_cube(t, e, node, seat);
    uint32_t seats = peal_placement_seats(p, (uint32_t)node);
    if (seat >= 0 && seat < seats)
        return p->ranks[p->first[node] + (uint32_t)seat];
    peal_inst_fail(t, e->pos, "node %" PRId64 " has no seat %" PRId64 ": it has %u", node, seat,
                   seats);
    peal_diag_note(t->diags, (struct peal_pos){0}, "'seats_of(node)' says how many seats it has");
    return 0;
}

static bool is_rank(struct instantiation *t, const struct peal_expr *e, int64_t rank)
{
    if (rank >= 0 && rank < t->bind->nranks)
        return true;
    return peal_inst_fail(t, e->pos, "rank %" PRId64 " does not exist: there are %u", rank,
                          t->bind->nranks);
}

/* program_id(axis), program_id(axis, rank), num_programs(axis) */
static int64_t program(struct instantiation *t, const struct peal_expr *e)
{
    int64_t axis = peal_inst_int(t, e->a), rank = t->rank;
    if (axis < 0 || axis >= PEAL_AXES) {
        peal_inst_fail(t, e->pos,
                       "there is no axis %" PRId64 ": 0 is the PE, 1 the cube, 2 the node", axis);
        return 0;
    }
    if (e->builtin == PEAL_BUILTIN_NUM_PROGRAMS)
        return peal_placement_extent(&t->placement, (enum peal_axis)axis);
    if (e->a->next)
        rank = peal_inst_int(t, e->a->next);
    if (!is_rank(t, e, rank))
        return 0;
    return peal_placement_id(&t->placement, (enum peal_axis)axis, (uint32_t)rank);
}

/* node_of(rank), seat_of(rank) */
static int64_t rank_place(struct instantiation *t, const struct peal_expr *e)
{
    int64_t rank = peal_inst_int(t, e->a);
    if (!is_rank(t, e, rank))
        return 0;
    const struct peal_node_map *p = &t->placement;
    if (e->builtin == PEAL_BUILTIN_NODE_OF)
        return p->node[rank];
    return p->seat[rank];
}

static int64_t seats_of(struct instantiation *t, const struct peal_expr *e)
{
    int64_t node = peal_inst_int(t, e->a);
    if (is_node(t, e, node))
        return peal_placement_seats(&t->placement, (uint32_t)node);
    return 0;
}

static int64_t call_value(struct instantiation *t, const struct peal_expr *e)
{
    struct peer peer;
    struct part part;
    int64_t a, b;
    switch (e->builtin) {
    case PEAL_BUILTIN_MIN:
    case PEAL_BUILTIN_MAX:
        return extreme(t, e, e->builtin == PEAL_BUILTIN_MAX);
    case PEAL_BUILTIN_CDIV:
        a = peal_inst_int(t, e->a);
        b = peal_inst_int(t, e->a->next);
        if (b == 0) {
            peal_inst_fail(t, e->pos, "division by zero");
            return 0;
        }
        if (b == -1 && a == INT64_MIN)
            return overflow(t, e);
        return -divide(-a, b);
    case PEAL_BUILTIN_LOG2:
        a = peal_inst_int(t, e->a);
        if (a <= 0) {
            peal_inst_fail(t, e->pos, "log2 of %" PRId64, a);
            return 0;
        }
        return 63 - __builtin_clzll((unsigned long long)a);
    case PEAL_BUILTIN_PART:
        return part_len(t, e);
    case PEAL_BUILTIN_SELECT:
        if (peal_inst_bool(t, e->a))
            return peal_inst_int(t, e->a->next);
        return peal_inst_int(t, e->a->next->next);
    case PEAL_BUILTIN_SUM:
        return sum(t, e);
    case PEAL_BUILTIN_LEN:
        if (peal_inst_part(t, e->a, &part))
            return (int64_t)(part.rows * part.count);
        return 0;
    case PEAL_BUILTIN_PEER:
        if (!find_port(t, e->a, &peer)) {
            reject_port(t, e->pos, e->a);
            return 0;
        }
        return peer.rank;
    case PEAL_BUILTIN_AT:
        return rank_at(t, e);
    case PEAL_BUILTIN_NODE_OF:
    case PEAL_BUILTIN_SEAT_OF:
        return rank_place(t, e);
    case PEAL_BUILTIN_SEATS_OF:
        return seats_of(t, e);
    case PEAL_BUILTIN_PROGRAM_ID:
    case PEAL_BUILTIN_NUM_PROGRAMS:
        return program(t, e);
    default:
        assert(!"a function of integers");
        return 0;
    }
}

/* Most operands are names and numbers. */
static inline int64_t operand(struct instantiation *t, const struct peal_expr *e)
{
    if (e->kind == PEAL_EXPR_INT)
        return e->value;
    if (e->kind == PEAL_EXPR_NAME)
        return name_value(t, e);
    return peal_inst_int(t, e);
}

int64_t peal_inst_int(struct instantiation *t, const struct peal_expr *e)
{
    switch (e->kind) {
    case PEAL_EXPR_INT:
        return e->value;
    case PEAL_EXPR_NAME:
        return name_value(t, e);
    case PEAL_EXPR_UNARY: {
        int64_t a = operand(t, e->a), out;
        if (__builtin_sub_overflow(0, a, &out))
            return overflow(t, e);
        return out;
    }
    case PEAL_EXPR_BINARY: {
        int64_t a = operand(t, e->a), b = operand(t, e->b);
        return arithmetic(t, e, a, b);
    }
    case PEAL_EXPR_CALL:
        return call_value(t, e);
    case PEAL_EXPR_SLICE:
        return element(t, e);
    case PEAL_EXPR_LAUNCH:
        t->saw_phase = true;
        return t->phase % e->value;
    default:
        assert(!"an integer expression");
        return 0;
    }
}

/* times * launch + value, in the phase that is looked at. */
struct launch_term {
    int64_t times, value;
};

static struct launch_term combine(struct instantiation *t, const struct peal_expr *e,
                                  struct launch_term x, struct launch_term y)
{
    struct launch_term out = {0, 0};
    bool is_sum = e->op == PEAL_INT_ADD || e->op == PEAL_INT_SUB;
    bool is_multiple = e->op == PEAL_INT_MUL && !(x.times && y.times);
    if (is_sum) {
        out.times = arithmetic(t, e, x.times, y.times);
    } else if (is_multiple) {
        out.times =
            x.times ? arithmetic(t, e, x.times, y.value) : arithmetic(t, e, x.value, y.times);
    } else if (x.times || y.times) {
        peal_inst_fail(t, e->pos,
                       "of 'launch' there are sums and multiples; 'launch mod k' goes with all "
                       "operators");
        return out;
    }
    out.value = arithmetic(t, e, x.value, y.value);
    return out;
}

static struct launch_term launch_term(struct instantiation *t, const struct peal_expr *e)
{
    if (e->type.kind != PEAL_TYPE_LAUNCH)
        return (struct launch_term){0, peal_inst_int(t, e)};
    if (e->kind == PEAL_EXPR_LAUNCH)
        return (struct launch_term){!e->value, e->value ? t->phase % e->value : 0};
    if (e->kind == PEAL_EXPR_NAME) {
        uint32_t place = t->env[e->symbol->slot].launch;
        if (place) {
            const struct launch_number *number = &t->launch_numbers.at[place - 1];
            return (struct launch_term){number->times, number->phases[t->phase]};
        }
        peal_inst_fail(t, e->pos, "'%s' has no value here", e->symbol->name);
        return (struct launch_term){0, 0};
    }
    struct launch_term x = launch_term(t, e->a);
    if (e->kind == PEAL_EXPR_BINARY)
        return combine(t, e, x, launch_term(t, e->b));
    if (x.times == INT64_MIN || x.value == INT64_MIN)
        (void)overflow(t, e);
    return (struct launch_term){(int64_t) - (uint64_t)x.times, (int64_t) - (uint64_t)x.value};
}

struct launch_number peal_inst_launch(struct instantiation *t, const struct peal_expr *e)
{
    struct launch_number out = {0};
    uint32_t period = (uint32_t)t->kernel->period;
    for (t->phase = 0; t->phase < period && t->status == PEAL_OK; t->phase++) {
        struct launch_term term = launch_term(t, e);
        if (t->phase && term.times != out.times)
            peal_inst_fail(t, e->pos, "'launch' cannot be multiplied by 'launch mod'");
        out.times = term.times;
        out.phases[t->phase] = term.value;
    }
    t->phase = 0;
    if (out.times != (int32_t)out.times)
        peal_inst_fail(t, e->pos, "%" PRId64 " times 'launch' does not fit in 32 bits", out.times);
    return out;
}

bool peal_inst_sizes(struct instantiation *t, const struct peal_symbol *symbol, struct sizes *out)
{
    bool has_rows = symbol->shape[1] != NULL;
    int64_t rows = 1;
    if (has_rows)
        rows = peal_inst_int(t, symbol->shape[0]);
    int64_t cols = peal_inst_int(t, symbol->shape[has_rows]);
    int64_t len;
    if (t->status != PEAL_OK)
        return false;
    if (rows < 0 || cols < 0 || rows > UINT32_MAX || (has_rows && cols > UINT32_MAX) ||
        __builtin_mul_overflow(rows, cols, &len) || len > INT64_MAX / 64)
        return peal_inst_fail(t, symbol->pos, "'%s' cannot have %" PRId64 " x %" PRId64 " elements",
                              symbol->name, rows, cols);
    *out = (struct sizes){has_rows ? (uint32_t)rows : 0, (uint64_t)cols, (uint64_t)len};
    return true;
}

bool peal_inst_bool(struct instantiation *t, const struct peal_expr *e)
{
    struct peer peer;
    if (e->kind == PEAL_EXPR_UNARY)
        return !peal_inst_bool(t, e->a);
    if (e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_ANDAND)
        return peal_inst_bool(t, e->a) && peal_inst_bool(t, e->b);
    if (e->kind == PEAL_EXPR_BINARY && e->op == PEAL_INT_OROR)
        return peal_inst_bool(t, e->a) || peal_inst_bool(t, e->b);
    if (e->kind == PEAL_EXPR_CALL && e->builtin == PEAL_BUILTIN_HAS)
        return find_port(t, e->a, &peer);
    if (e->kind == PEAL_EXPR_BINARY && e->a->type.kind == PEAL_TYPE_BOOL)
        return (peal_inst_bool(t, e->a) == peal_inst_bool(t, e->b)) == (e->op == PEAL_INT_EQ);
    return peal_inst_int(t, e) != 0;
}

/* Neighbours on the grid; a torus of one row or column has none in that direction. */
static bool grid_port(const struct instantiation *t, enum peal_port port, struct peer *out)
{
    int64_t rows = t->grid.rows, cols = t->grid.cols;
    if (!cols)
        return false;
    int64_t row = t->rank / cols, col = t->rank % cols;
    int64_t r = row + (port == PEAL_PORT_S) - (port == PEAL_PORT_N);
    int64_t c = col + (port == PEAL_PORT_E) - (port == PEAL_PORT_W);
    if (t->grid.torus) {
        r = modulo(r, rows);
        c = modulo(c, cols);
    }
    if (r < 0 || r >= rows || c < 0 || c >= cols || (r == row && c == col))
        return false;
    static const uint32_t opposite[] = {[PEAL_PORT_N] = PEAL_PORT_S,
                                        [PEAL_PORT_S] = PEAL_PORT_N,
                                        [PEAL_PORT_E] = PEAL_PORT_W,
                                        [PEAL_PORT_W] = PEAL_PORT_E};
    *out = (struct peer){(uint32_t)(r * cols + c), port, opposite[port]};
    return true;
}

static bool tree_port(struct instantiation *t, const struct peal_expr *e, struct peer *out)
{
    int64_t k = t->grid.arity, n = t->bind->nranks;
    if (!k)
        return false;
    int64_t self = modulo(t->rank - t->grid.root, n), other;
    if (e->value == PEAL_PORT_PARENT) {
        if (self == 0)
            return false;
        other = (self - 1) / k;
        out->port = PEAL_PORT_PARENT;
        out->incoming_port = PEAL_PORT_CHILD + (uint32_t)((self - 1) % k);
    } else {
        int64_t child = peal_inst_int(t, e->a);
        other = self * k + 1 + child;
        if (child < 0 || child >= k || other >= n)
            return false;
        out->port = PEAL_PORT_CHILD + (uint32_t)child;
        out->incoming_port = PEAL_PORT_PARENT;
    }
    out->rank = (uint32_t)((other + t->grid.root) % n);
    return true;
}

static bool find_port(struct instantiation *t, const struct peal_expr *e, struct peer *out)
{
    if (e->value == PEAL_PORT_PARENT || e->value >= PEAL_PORT_CHILD)
        return tree_port(t, e, out);
    return grid_port(t, (enum peal_port)e->value, out);
}

struct peer peal_inst_peer(struct instantiation *t, const struct peal_expr *e)
{
    struct peer out = {0, PEAL_PORT_PEER, PEAL_PORT_PEER};
    if (e->kind == PEAL_EXPR_PORT) {
        if (!find_port(t, e, &out))
            reject_port(t, e->pos, e);
        return out;
    }
    int64_t rank = peal_inst_int(t, e);
    if (t->status == PEAL_OK && (rank < 0 || rank >= t->bind->nranks))
        peal_inst_fail(t, e->pos, "rank %" PRId64 " does not exist", rank);
    if (t->status == PEAL_OK)
        out.rank = (uint32_t)rank;
    else
        out.rank = 0;
    return out;
}

enum peal_reduction peal_inst_reduce(struct instantiation *t, const struct peal_expr *e)
{
    if (e->symbol && e->symbol->kind == PEAL_SYMBOL_REDUCE)
        return peal_bind_reduction(t->kernel, t->bind);
    return e->reduce;
}
