/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts: what each output element must consist of.
 *
 * For each contract, a rank's output is a list of ranges; each is a copy of some rank's input, or
 * the reduction over ranks. An element is right if its tree has exactly the leaves that the
 * contract demands, each once where that matters; how the tree groups them is left to bits.c,
 * except for user-defined reductions, whose declared properties decide.
 *
 * The same is said a second time for data (src/cli/run/contract_check.c) and a third time in the
 * tests, on purpose: they check each other and must not share code.
 */
#include "verify/result/symbolic.h"

#include "base/base.h"
#include "verify/result/sample.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- parts ----------------------------------------------------------------------------------- */

static const struct peal_param *find_param(const struct peal_plan *plan, const char *name)
{
    for (uint64_t i = 0; i < plan->params.count; i++) {
        const struct peal_param *param = &peal_plan_params(plan)[i];
        if (strcmp(peal_plan_string(plan, param->name), name) == 0)
            return param;
    }
    return NULL;
}

/* Value i of an array parameter as `rank` knows it. */
static uint64_t param_value(const struct peal_plan *plan, const struct peal_param *param,
                            uint32_t rank, uint32_t i)
{
    uint64_t at = param->first + (param->is_local ? (uint64_t)rank * param->count : 0) + i;
    int64_t value = peal_plan_values(plan)[at];
    return value < 0 ? 0 : (uint64_t)value;
}

/* The parameter that says how long each rank's part is; NULL: parts are even. */
static const struct peal_param *given_counts(const struct peal_plan *plan)
{
    const struct peal_param *counts = find_param(plan, "counts");
    bool given = counts && !counts->is_local && counts->count == plan->nranks;
    return given ? counts : NULL;
}

/* Where part r of n starts: by `counts` if the kernel has them, otherwise even parts. */
static uint64_t part_begin(const struct peal_plan *plan, uint64_t n, uint32_t r)
{
    const struct peal_param *counts = given_counts(plan);
    if (!counts)
        return n / plan->nranks * r + n % plan->nranks * r / plan->nranks;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r; i++)
        sum += param_value(plan, counts, 0, i);
    return sum;
}

uint64_t peal_contract_part(struct symbolic *s, const struct peal_plan *plan, uint64_t n,
                            uint32_t r)
{
    if (s->begins_of != plan) {
        const struct peal_param *counts = given_counts(plan);
        s->begins_of = plan;
        s->begins.len = 0;
        if (counts && peal_vec_reserve(&s->begins, plan->nranks + 1u)) {
            uint64_t sum = 0;
            for (uint32_t i = 0; i < plan->nranks; i++) {
                s->begins.at[s->begins.len++] = sum;
                sum += param_value(plan, counts, 0, i);
            }
            s->begins.at[s->begins.len++] = sum;
        }
    }
    return s->begins.len ? s->begins.at[r] : part_begin(plan, n, r);
}

uint64_t peal_contract_sum(const struct peal_plan *plan, const char *name, uint32_t rank,
                           uint32_t count)
{
    const struct peal_param *param = find_param(plan, name);
    uint64_t sum = 0;
    if (!param)
        return 0;
    if (count > param->count)
        count = param->count;
    for (uint32_t i = 0; i < count; i++)
        sum += param_value(plan, param, rank, i);
    return sum;
}

uint32_t peal_contract_place(const struct peal_plan *plan, uint32_t buf, uint32_t rank,
                             uint64_t *offset)
{
    const struct peal_buf *b = &peal_plan_bufs(plan)[buf];
    enum peal_contract contract = (enum peal_contract)plan->contract;
    bool at_root_only = peal_contract_parts_on_root(contract);
    *offset = 0;
    if (b->alias == PEAL_NONE || (at_root_only && rank != plan->root))
        return buf;
    uint64_t whole = peal_plan_len(plan, rank, b->alias), own = peal_plan_len(plan, rank, buf);
    bool parts = peal_contract_gathers(contract) || peal_contract_scatters(contract);
    if (parts && own < whole)
        *offset = part_begin(plan, whole, rank);
    return b->alias;
}

/* --- one expected range -------------------------------------------------------------------- */

/* Elements lo..hi of y are x of `from` (copy), or the reduction over all ranks, from `index` on. */
struct expected {
    uint64_t lo, hi, index;
    bool reduces;
    uint32_t from;
};

struct judge {
    struct symbolic *s;
    const struct peal_plan *plan;
    uint32_t rank, launch;
    uint32_t x;        /* memory of x */
    uint32_t location; /* of y */
    uint64_t offset;   /* offset of y in it */
    uint32_t *seen;    /* [rank] how often it was met while a tree is walked */
    uint32_t ranks;    /* a reduction is over this many ranks, from rank 0 */
    enum peal_fn fn;
    bool once;         /* a contribution that occurs twice changes the result */
    uint32_t *visited; /* [node] the last walk that visited it; without `once` */
    uint32_t walk;
};

/* Counts the leaves of a reduction. False: it contains something else, or one leaf too often. */
static bool count_leaves(struct judge *j, uint32_t node, int64_t shift)
{
    const struct node *n = &j->s->values.nodes.at[node];
    if (!j->once) {
        if (j->visited[node] == j->walk)
            return true;
        j->visited[node] = j->walk;
    }
    switch (n->kind) {
    case NODE_INPUT:
        if (n->child[0] != j->launch || n->child[2] != j->x || (int64_t)n->word + shift != 0)
            return false;
        return ++j->seen[n->child[1]] == 1 || !j->once;
    case NODE_CONVERT:
        return count_leaves(j, n->child[0], shift);
    case NODE_FN:
    case NODE_CHANCE:
        if (n->fn != j->fn || n->nchildren != 2)
            return false;
        return count_leaves(j, n->child[0], shift) && count_leaves(j, n->child[1], shift);
    default:
        return false;
    }
}

/* What a node was before it was rounded. */
static const struct node *unrounded(const struct judge *j, uint32_t node)
{
    const struct node *n = &j->s->values.nodes.at[node];
    while (n->kind == NODE_CONVERT)
        n = &j->s->values.nodes.at[n->child[0]];
    return n;
}

/* Is it x of `rank`? */
static bool is_input(const struct judge *j, const struct node *n, uint32_t rank, int64_t shift)
{
    return n->kind == NODE_INPUT && n->child[0] == j->launch && n->child[1] == rank &&
           n->child[2] == j->x && (int64_t)n->word + shift == 0;
}

/* fn(fn(fn(x0, x1), x2), x3), ...: the order of a reduction for which nothing is declared. If it
 * commutes, the two operands of each application may be swapped. */
static bool is_left_fold(const struct judge *j, uint32_t node, int64_t shift, bool commutes)
{
    const struct node *n = unrounded(j, node);
    for (uint32_t r = j->ranks; r-- > 1;) {
        if (n->kind != NODE_FN || n->fn != j->fn || n->nchildren != 2)
            return false;
        const struct node *left = unrounded(j, n->child[0]), *right = unrounded(j, n->child[1]);
        if (is_input(j, right, r, shift))
            n = left;
        else if (commutes && is_input(j, left, r, shift))
            n = right;
        else
            return false;
    }
    return is_input(j, n, 0, shift);
}

/* Are the leaves x of ranks *next, *next + 1, ... from left to right? `next` is left after the last
 * one. Each leaf advances it, so no node is visited more often than there are ranks. */
static bool is_sequence(const struct judge *j, uint32_t node, int64_t shift, uint32_t *next)
{
    const struct node *n = unrounded(j, node);
    if (n->kind == NODE_FN && n->fn == j->fn && n->nchildren == 2)
        return is_sequence(j, n->child[0], shift, next) && is_sequence(j, n->child[1], shift, next);
    if (*next >= j->ranks || !is_input(j, n, *next, shift))
        return false;
    ++*next;
    return true;
}

/* A user-defined reduction keeps the ranks' order and grouping, unless it is declared that they do
 * not matter. */
static bool is_user_reduction(const struct judge *j, uint32_t node, int64_t shift)
{
    uint32_t flags = peal_plan_reduction(j->plan)->flags, next = 0;
    if (!(flags & PEAL_FORMULA_ASSOCIATIVE))
        return is_left_fold(j, node, shift, flags & PEAL_FORMULA_COMMUTATIVE);
    return is_sequence(j, node, shift, &next) && next == j->ranks;
}

static bool is_reduction(struct judge *j, uint32_t node, int64_t shift)
{
    const struct peal_formula *formula = peal_plan_reduction(j->plan);
    if (formula && !peal_formula_is_free(formula))
        return is_user_reduction(j, node, shift);
    enum peal_reduction reduce = (enum peal_reduction)j->plan->reduce;
    const struct node *n = &j->s->values.nodes.at[node];
    if (reduce == PEAL_AVG && j->plan->nranks > 1) {
        if (n->kind == NODE_CONVERT)
            n = &j->s->values.nodes.at[n->child[0]];
        if (n->kind != NODE_DIVIDE || n->word != j->plan->nranks)
            return false;
        node = n->child[0];
    }
    memset(j->seen, 0, j->plan->nranks * sizeof *j->seen);
    j->walk++;
    if (!count_leaves(j, node, shift))
        return false;
    for (uint32_t r = 0; r < j->plan->nranks; r++) {
        if ((j->seen[r] > 0) != (r < j->ranks))
            return false;
    }
    return true;
}

/* Nodes are shared between ranks: each is visited once per launch. */
static bool is_known_reduction(struct judge *j, uint32_t node, int64_t shift)
{
    struct symbolic *s = j->s;
    size_t nodes = s->values.nodes.len;
    while (s->reductions.len < nodes) {
        if (!peal_vec_push(&s->reductions, ((struct reduction){0, 0, 0})))
            return is_reduction(j, node, shift);
    }
    struct reduction *known = &s->reductions.at[node];
    if (known->launch == j->launch + 1 && known->shift == shift && known->ranks == j->ranks)
        return true;
    if (!is_reduction(j, node, shift))
        return false;
    *known = (struct reduction){shift, j->launch + 1, j->ranks};
    return true;
}

static bool is_copy(const struct judge *j, uint32_t node, int64_t shift, uint32_t from)
{
    return is_input(j, &j->s->values.nodes.at[node], from, shift);
}

/* "max over all ranks of x[5]"; for a user-defined one also which regroupings are allowed. */
static void put_reduction(const struct judge *j, const char *x, uint64_t index,
                          struct peal_text *out)
{
    static const char *const orders[] = {
        ", from rank 0 on, folded from the left",
        ", from rank 0 on, folded from the left (operands may be swapped)",
        ", in the order of the ranks", ""};
    const struct peal_formula *formula = peal_plan_reduction(j->plan);
    peal_text_printf(out, "%s over ", peal_plan_reduce_name(j->plan));
    if (j->ranks < j->plan->nranks)
        peal_text_printf(out, "ranks 0 to %u", j->ranks - 1);
    else
        peal_text_puts(out, "all ranks");
    peal_text_printf(out, " of %s[%" PRIu64 "]%s", x, index,
                     formula ? orders[formula->flags & 3] : "");
}

static void report_wrong(struct judge *j, const struct expected *e, const struct piece *piece,
                         uint64_t at, uint64_t end)
{
    struct symbolic *s = j->s;
    const struct peal_plan *plan = j->plan;
    struct peal_text want = {0}, have = {0};
    const char *x = s->p->memory.at[j->x].name;
    uint64_t index = e->index + (at - e->lo);
    if (!e->reduces) {
        peal_text_printf(&want, "%s@%u[%" PRIu64 "]", x, e->from, index);
    } else if (plan->reduce == PEAL_SUM && j->ranks <= 8) {
        for (uint32_t r = 0; r < j->ranks; r++)
            peal_text_printf(&want, "%s%s@%u[%" PRIu64 "]", r ? " + " : "", x, r, index);
    } else {
        put_reduction(j, x, index, &want);
    }
    peal_value_print(&s->values, s->p, piece->node, piece->index + (at - piece->lo), &have);
    peal_answer_refute(s->a, PEAL_FAULT_RESULT);
    s->a->v.wrong = (struct peal_verify_wrong){
        .launch = j->launch,
        .rank = j->rank,
        .buf = peal_answer_text(
            s->a, "%s", peal_plan_string(plan, peal_plan_bufs(plan)[plan->contract_out].name)),
        .first_element = at,
        .elements = end - at,
        .expected = peal_answer_text(s->a, "%s", peal_text_get(&want)),
        .obtained = peal_answer_text(s->a, "%s", peal_text_get(&have)),
    };
    s->a->v.why = peal_answer_text(
        s->a, "element %" PRIu64 " of '%s' on rank %u is %s and should be %s", at,
        s->a->v.wrong.buf, j->rank, s->a->v.wrong.obtained, s->a->v.wrong.expected);
    peal_text_release(&want);
    peal_text_release(&have);
    peal_lost_explain(s, &(struct wrong_element){.launch = j->launch,
                                                 .location = j->location,
                                                 .node = piece->node,
                                                 .x = j->x,
                                                 .at = j->offset + at,
                                                 .index = index,
                                                 .from = e->from,
                                                 .reduces = e->reduces,
                                                 .once = j->once});
    s->done = true;
}

/* Is the value what is expected although it is written differently? True as well if that rests on
 * an identity that is not assumed: then nothing is decided. */
static bool is_right_otherwise(struct judge *j, const struct expected *e, const struct piece *piece,
                               uint64_t at)
{
    struct symbolic *s = j->s;
    const struct peal_plan *plan = j->plan;
    const struct peal_buf *y = &peal_plan_bufs(plan)[plan->contract_out];
    if (peal_plan_reduction(plan))
        return false;
    struct sample_question q = {.dtype = (enum peal_dtype)y->dtype,
                                .nranks = plan->nranks,
                                .launch = j->launch,
                                .x = j->x,
                                .element = e->index + (at - e->lo),
                                .reduces = e->reduces,
                                .averages = plan->reduce == PEAL_AVG,
                                .ranks = j->ranks,
                                .from = e->from,
                                .fn = j->fn};
    if (peal_sample_is_exact(&s->values, piece->node, piece->index, &q))
        return true;
    const char *identity = peal_sample_identity(&s->values, piece->node, piece->index, &q);
    if (!identity)
        return false;
    struct peal_text have = {0};
    peal_value_print(&s->values, s->p, piece->node, piece->index, &have);
    peal_answer_give_up(s->a, peal_answer_text(s->a,
                                               "element %" PRIu64
                                               " of '%s' on rank %u is %s, which is right by "
                                               "%s: that is not assumed",
                                               at, peal_plan_string(plan, y->name), j->rank,
                                               peal_text_get(&have), identity));
    peal_text_release(&have);
    s->done = true;
    return true;
}

/* Is it the result of something that the plan does not say? Then nothing is decided. */
static bool is_unknown(struct judge *j, const struct piece *piece, uint64_t at)
{
    struct symbolic *s = j->s;
    const struct peal_plan *plan = j->plan;
    if (!s->values.nodes.at[piece->node].unknown)
        return false;
    peal_answer_give_up(
        s->a,
        peal_answer_text(
            s->a,
            "element %" PRIu64 " of '%s' on rank %u depends on an operation whose result is not "
            "known",
            at, peal_plan_string(plan, peal_plan_bufs(plan)[plan->contract_out].name), j->rank));
    s->done = true;
    return true;
}

/* Compares a range of y, which begins `offset` elements into its location. */
static void compare(struct judge *j, const struct expected *e, uint32_t location, uint64_t offset)
{
    struct symbolic *s = j->s;
    j->location = location;
    j->offset = offset;
    for (uint64_t at = e->lo; at < e->hi && !s->done;) {
        const struct piece *piece = peal_pieces_find(&s->memory[location], offset + at);
        uint64_t end = piece->hi - offset < e->hi ? piece->hi - offset : e->hi;
        uint64_t index = piece->index + (offset + at - piece->lo);
        int64_t shift = (int64_t)(index - (e->index + (at - e->lo)));
        bool right = e->reduces ? is_known_reduction(j, piece->node, shift)
                                : is_copy(j, piece->node, shift, e->from);
        if (!right) {
            struct piece moved = *piece;
            moved.index = index;
            moved.lo = at;
            if (!is_unknown(j, &moved, at) && !is_right_otherwise(j, e, &moved, at))
                report_wrong(j, e, &moved, at, end);
        }
        at = end;
    }
}

/* --- the contracts --------------------------------------------------------------------------- */

/* Is one parameter both x and y? Then every part is in its place in it. */
static bool one_buffer(const struct peal_plan *plan)
{
    return plan->contract_in == plan->contract_out;
}

/* The i-th of the ranges (see count_ranges) that the rank's y consists of. False: nothing is expected
 * there. */
static bool expect(const struct judge *j, uint32_t i, uint64_t len, struct expected *e)
{
    const struct peal_plan *plan = j->plan;
    uint32_t r = j->rank, n = plan->nranks;
    uint64_t whole;
    *e = (struct expected){.hi = len, .from = plan->root};
    switch ((enum peal_contract)plan->contract) {
    case PEAL_CONTRACT_ALLREDUCE:
    case PEAL_CONTRACT_SCAN:
        e->reduces = true;
        return i == 0;
    case PEAL_CONTRACT_EXSCAN:
        e->reduces = true;
        return i == 0 && r > 0;
    case PEAL_CONTRACT_REDUCE:
        e->reduces = true;
        return i == 0 && r == plan->root;
    case PEAL_CONTRACT_BROADCAST:
        return i == 0;
    case PEAL_CONTRACT_REDUCE_SCATTER:
    case PEAL_CONTRACT_SCATTER:
        whole = peal_plan_len(plan, plan->contract == PEAL_CONTRACT_SCATTER ? plan->root : r,
                              plan->contract_in);
        e->reduces = plan->contract == PEAL_CONTRACT_REDUCE_SCATTER;
        e->index = peal_contract_part(j->s, plan, whole, r);
        return i == 0;
    case PEAL_CONTRACT_ALLGATHER:
    case PEAL_CONTRACT_GATHER:
        if (plan->contract == PEAL_CONTRACT_GATHER && r != plan->root)
            return false;
        e->from = i;
        e->lo = peal_contract_part(j->s, plan, len, i);
        e->hi = peal_contract_part(j->s, plan, len, i + 1);
        e->index = one_buffer(plan) ? e->lo : 0;
        return true;
    case PEAL_CONTRACT_ALL_TO_ALL:
        whole = peal_plan_len(plan, i, plan->contract_in);
        e->from = i;
        e->index = peal_contract_part(j->s, plan, whole, r);
        e->lo = len / n * i;
        e->hi = len / n * (i + 1);
        return true;
    case PEAL_CONTRACT_ALL_TO_ALL_V:
        e->from = i;
        e->lo = peal_contract_sum(plan, "recvs", r, i);
        e->hi = peal_contract_sum(plan, "recvs", r, i + 1);
        e->index = peal_contract_sum(plan, "sends", i, r);
        return find_param(plan, "sends") && find_param(plan, "recvs");
    default:
        return false;
    }
}

/* The number of ranges, one per rank, that the rank's y consists of. */
static uint32_t count_ranges(const struct peal_plan *plan, uint32_t rank)
{
    switch ((enum peal_contract)plan->contract) {
    case PEAL_CONTRACT_GATHER:
        return rank == plan->root ? plan->nranks : 0;
    case PEAL_CONTRACT_ALLGATHER:
    case PEAL_CONTRACT_ALL_TO_ALL:
    case PEAL_CONTRACT_ALL_TO_ALL_V:
        return plan->nranks;
    default:
        return 1;
    }
}

/* Copies the `len` elements of y, which begin `offset` elements into its location. */
static void keep_output(struct symbolic *s, struct pieces *kept, uint32_t location, uint64_t offset,
                        uint64_t len)
{
    for (uint64_t at = 0; at < len;) {
        struct piece piece = *peal_pieces_find(&s->memory[location], offset + at);
        uint64_t end = piece.hi - offset < len ? piece.hi - offset : len;
        piece.index += offset + at - piece.lo;
        piece.lo = at;
        piece.hi = end;
        if (!peal_vec_push(&kept->list, piece))
            s->a->failed = true;
        at = end;
    }
}

void peal_contract_leave(struct symbolic *s, uint32_t rank, uint32_t launch)
{
    const struct peal_plan *plan = s->p->plans[launch];
    if (!peal_contract_has_data((enum peal_contract)plan->contract) ||
        plan->contract_in == PEAL_NONE || plan->contract_out == PEAL_NONE || s->done)
        return;
    struct judge j = {.s = s, .plan = plan, .rank = rank, .launch = launch};
    uint64_t offset, len = peal_plan_len(plan, rank, plan->contract_out);
    uint32_t y = peal_contract_place(plan, plan->contract_out, rank, &offset);
    if (peal_contract_scatters((enum peal_contract)plan->contract) && one_buffer(plan)) {
        /* One buffer for both: y is its own part of it. */
        offset = part_begin(plan, len, rank);
        len = part_begin(plan, len, rank + 1) - offset;
    }
    uint32_t location = s->p->memory_of[launch][y] * s->p->nranks + rank;
    j.ranks = peal_contract_reduced((enum peal_contract)plan->contract, rank, plan->nranks);
    j.x = s->p->memory_of[launch][plan->contract_in];
    j.fn =
        plan->reduce != PEAL_NONE ? peal_reduce_fn((enum peal_reduction)plan->reduce) : PEAL_FN_ADD;
    j.once = !(j.fn == PEAL_FN_MAXIMUM || j.fn == PEAL_FN_MINIMUM || j.fn == PEAL_FN_AND ||
               j.fn == PEAL_FN_OR || j.fn == PEAL_FN_MINLOC || j.fn == PEAL_FN_MAXLOC);
    j.seen = malloc(plan->nranks * sizeof *j.seen);
    j.visited = j.once ? NULL : calloc(s->values.nodes.len + 1, sizeof *j.visited);
    if (!j.seen || (!j.once && !j.visited)) {
        free(j.seen);
        free(j.visited);
        s->a->failed = true;
        return;
    }
    struct expected e;
    uint32_t n = count_ranges(plan, rank);
    for (uint32_t i = 0; i < n && !s->done; i++) {
        if (expect(&j, i, len, &e) && e.hi <= len)
            compare(&j, &e, location, offset);
    }
    free(j.seen);
    free(j.visited);
    if (launch < s->kept && !s->done && plan->contract == PEAL_CONTRACT_ALLREDUCE)
        keep_output(s, &s->outputs[(size_t)launch * plan->nranks + rank], location, offset, len);
}
