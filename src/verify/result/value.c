/* SPDX-License-Identifier: Apache-2.0 */
/* Hash-consed trees, and memory as sorted pieces.
 *
 * Nodes are only ever added, children before their parents, and equal nodes have one number: other
 * files compare numbers instead of trees, and may go through the table in order. A failure (memory,
 * or a tree that is too high) is sticky: everything gives NO_NODE after it, and the caller checks
 * once.
 *
 * Pieces are sorted and without gaps, and a change replaces whole pieces: those at its ends are
 * divided first. Neighbours that continue each other are joined again, so that copying a vector
 * part by part leaves one piece; only in very long lists they stay divided.
 */
#include "verify/result/value.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void peal_values_init(struct values *v, uint64_t max_nodes)
{
    *v = (struct values){.max_nodes = max_nodes < UINT32_MAX / 2 ? max_nodes : UINT32_MAX / 2};
}

void peal_values_release(struct values *v)
{
    peal_vec_release(&v->nodes);
    peal_index_release(&v->index);
    free(v->moved);
    v->moved = NULL;
}

static uint64_t hash_node(const struct node *n)
{
    uint64_t h = peal_hash_u64((uint64_t)n->kind | (uint64_t)n->fn << 8 | (uint64_t)n->dtype << 16 |
                                   (uint64_t)n->nchildren << 24 | (uint64_t)n->child[0] << 32,
                               1);
    h = peal_hash_u64((uint64_t)n->child[1] << 32 | n->child[2], h);
    return peal_hash_u64(n->word, h);
}

static bool same_node(const struct node *a, const struct node *b)
{
    return a->kind == b->kind && a->fn == b->fn && a->dtype == b->dtype &&
           a->nchildren == b->nchildren && a->child[0] == b->child[0] &&
           a->child[1] == b->child[1] && a->child[2] == b->child[2] && a->word == b->word;
}

static uint64_t hash_row(const void *values, uint32_t row)
{
    return hash_node(&((const struct values *)values)->nodes.at[row]);
}

/* Properties that follow from the children. The larger of two numbers is one of them, so it fits
 * any type that both fit; a sum is as wide as it was computed. */
static void describe(const struct values *v, struct node *node)
{
    bool chooses = (node->kind == NODE_FN || node->kind == NODE_CHANCE) &&
                   (node->fn == PEAL_FN_MAXIMUM || node->fn == PEAL_FN_MINIMUM);
    node->height = 0;
    node->uniform = node->kind != NODE_INPUT && node->kind != NODE_OPAQUE;
    node->unknown = node->kind == NODE_CONST && node->word == PEAL_PLAN_UNKNOWN;
    bool fixed = node->kind == NODE_AT;
    node->holds = chooses ? v->nodes.at[node->child[0]].holds : node->dtype;
    for (uint32_t i = 0; i < node->nchildren; i++) {
        const struct node *child = &v->nodes.at[node->child[i]];
        node->height = child->height >= node->height ? child->height + 1 : node->height;
        node->uniform = node->uniform && (child->uniform || fixed);
        node->unknown = node->unknown || child->unknown;
        if (chooses && child->holds != node->holds)
            node->holds = node->dtype;
    }
}

uint32_t peal_value_make(struct values *v, struct node node)
{
    if (v->failed)
        return NO_NODE;
    uint32_t simpler = NO_NODE;
    if (!v->as_written)
        simpler = peal_value_simplify(v, &node);
    if (simpler != NO_NODE)
        return simpler;
    if (node.kind == NODE_FN && node.nchildren == 2 &&
        peal_fn_info((enum peal_fn)node.fn)->commutes && node.child[0] > node.child[1]) {
        uint32_t child = node.child[0];
        node.child[0] = node.child[1];
        node.child[1] = child;
    }
    if (!peal_index_reserve(&v->index, hash_row, v)) {
        v->failed = true;
        return NO_NODE;
    }
    size_t at = peal_index_begin(&v->index, hash_node(&node));
    for (; peal_index_is_used(&v->index, at); at = peal_index_next(&v->index, at)) {
        uint32_t row = peal_index_row(&v->index, at);
        if (same_node(&v->nodes.at[row], &node))
            return row;
    }
    describe(v, &node);
    if (node.height > MAX_HEIGHT || v->nodes.len >= v->max_nodes ||
        !peal_vec_push(&v->nodes, node)) {
        v->failed = true;
        return NO_NODE;
    }
    peal_index_put(&v->index, at, (uint32_t)v->nodes.len - 1);
    return (uint32_t)v->nodes.len - 1;
}

uint32_t peal_value_input(struct values *v, uint32_t launch, uint32_t rank, uint32_t memory,
                          enum peal_dtype dtype)
{
    return peal_value_make(v, (struct node){.kind = NODE_INPUT,
                                            .dtype = (uint8_t)dtype,
                                            .child = {launch, rank, memory}});
}

bool peal_value_fits(enum peal_dtype from, enum peal_dtype to)
{
    if (from == to)
        return true;
    bool narrow = peal_dtype_is_narrow(from), byte = narrow && peal_dtype_size(from) == 1;
    switch (to) {
    case PEAL_F16:
    case PEAL_BF16:
        return byte;
    case PEAL_F32:
        return narrow || from == PEAL_I8 || from == PEAL_U8;
    case PEAL_F64:
        return narrow || from == PEAL_F32 || from == PEAL_I8 || from == PEAL_U8 || from == PEAL_I32;
    case PEAL_I32:
        return from == PEAL_I8 || from == PEAL_U8;
    case PEAL_I64:
        return from == PEAL_I8 || from == PEAL_U8 || from == PEAL_I32;
    default:
        return false;
    }
}

uint32_t peal_value_convert(struct values *v, uint32_t n, enum peal_dtype dtype)
{
    if (v->failed)
        return NO_NODE;
    const struct node *node = &v->nodes.at[n];
    if (node->kind == NODE_UNDEFINED || peal_value_fits((enum peal_dtype)node->holds, dtype))
        return n;
    return peal_value_make(
        v,
        (struct node){.kind = NODE_CONVERT, .dtype = (uint8_t)dtype, .nchildren = 1, .child = {n}});
}

enum { MOVED_SLOTS = 1 << 12 };

struct moved {
    uint32_t node, result; /* + 1 */
    int64_t delta;
};

/* The entry that remembers how a tree is moved, or NULL. */
static struct moved *find_moved(struct values *v, uint32_t node, int64_t delta)
{
    if (!v->moved)
        v->moved = calloc(MOVED_SLOTS, sizeof *v->moved);
    return v->moved ? &v->moved[peal_hash_u64(node, (uint64_t)delta) % MOVED_SLOTS] : NULL;
}

uint32_t peal_value_at(struct values *v, uint32_t n, uint64_t index)
{
    if (v->failed || v->nodes.at[n].uniform)
        return v->failed ? NO_NODE : n;
    return peal_value_make(v, (struct node){.kind = NODE_AT,
                                            .dtype = v->nodes.at[n].holds,
                                            .nchildren = 1,
                                            .child = {n},
                                            .word = index});
}

uint32_t peal_value_move(struct values *v, uint32_t node, int64_t delta)
{
    if (v->failed)
        return NO_NODE;
    struct node n = v->nodes.at[node];
    if (delta == 0 || n.uniform)
        return node;
    if (n.kind == NODE_INPUT) {
        n.word += (uint64_t)delta;
        return peal_value_make(v, n);
    }
    struct moved *known = find_moved(v, node, delta);
    if (known && known->node == node + 1 && known->delta == delta)
        return known->result;
    for (uint32_t i = 0; i < n.nchildren; i++) {
        n.child[i] = peal_value_move(v, n.child[i], delta);
        if (v->failed)
            return NO_NODE;
    }
    if (n.kind == NODE_OPAQUE) {
        uint64_t moved = ((uint64_t)n.child[2] << 32 | n.child[1]) + (uint64_t)delta;
        n.child[1] = (uint32_t)moved;
        n.child[2] = (uint32_t)(moved >> 32);
    }
    uint32_t result = peal_value_make(v, n);
    if (known)
        *known = (struct moved){node + 1, result, delta};
    return result;
}

static bool holds(const struct pieces *pieces, size_t i, uint64_t e)
{
    return i < pieces->list.len && pieces->list.at[i].lo <= e && e < pieces->list.at[i].hi;
}

const struct piece *peal_pieces_find(struct pieces *pieces, uint64_t e)
{
    size_t near = pieces->last, lo = 0, hi = pieces->list.len;
    if (near > 0 && holds(pieces, near - 1, e))
        lo = near - 1;
    else if (holds(pieces, near, e))
        lo = near;
    else if (holds(pieces, near + 1, e))
        lo = near + 1;
    if (holds(pieces, lo, e))
        hi = lo + 1;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (pieces->list.at[mid].lo <= e)
            lo = mid;
        else
            hi = mid;
    }
    assert(holds(pieces, lo, e));
    pieces->last = lo;
    return &pieces->list.at[lo];
}

enum { LONG_LIST = 1 << 13 };

static bool continues(const struct values *v, const struct piece *a, const struct piece *b)
{
    return a->node == b->node && a->hi == b->lo &&
           (a->index + (a->hi - a->lo) == b->index || peal_value_is_uniform(v, a->node));
}

bool peal_pieces_put(struct pieces *pieces, const struct values *v, const struct piece *with,
                     size_t n)
{
    if (n == 0)
        return true;
    uint64_t lo = with[0].lo, hi = with[n - 1].hi;
    size_t first = (size_t)(peal_pieces_find(pieces, lo) - pieces->list.at);
    size_t last = first;
    if (hi > pieces->list.at[first].hi)
        last = (size_t)(peal_pieces_find(pieces, hi - 1) - pieces->list.at);
    struct piece head = pieces->list.at[first], tail = pieces->list.at[last];
    bool has_head = head.lo<lo, has_tail = tail.hi> hi;
    head.hi = lo;
    tail.index += hi - tail.lo;
    tail.lo = hi;
    if (!peal_vec_reserve(&pieces->list, n + 2))
        return false;
    size_t fresh = n + has_head + has_tail, old = last - first + 1;
    struct piece *at = pieces->list.at;
    if (fresh != old)
        memmove(at + first + fresh, at + last + 1, (pieces->list.len - last - 1) * sizeof *at);
    pieces->list.len += fresh;
    pieces->list.len -= old;
    size_t k = first;
    if (has_head)
        at[k++] = head;
    memcpy(at + k, with, n * sizeof *at);
    k += n;
    if (has_tail)
        at[k++] = tail;
    /* A long list stays cut: if joined here, it would be cut again for the next one. */
    if (pieces->list.len > LONG_LIST)
        return true;
    /* Joins neighbours that continue each other, from the piece before the change to the one after
     * it. */
    size_t from = first ? first - 1 : 0;
    size_t to = k < pieces->list.len ? k : k - 1;
    size_t w = from;
    for (size_t i = from + 1; i <= to; i++) {
        if (continues(v, &at[w], &at[i]))
            at[w].hi = at[i].hi;
        else
            at[++w] = at[i];
    }
    memmove(at + w + 1, at + to + 1, (pieces->list.len - to - 1) * sizeof *at);
    pieces->list.len -= to - w;
    return true;
}

static void print_node(const struct values *v, const struct program *p, uint32_t node,
                       uint64_t index, unsigned depth, struct peal_text *out)
{
    const struct node *n = &v->nodes.at[node];
    if (out->len > 600) {
        peal_text_puts(out, "...");
        return;
    }
    switch (n->kind) {
    case NODE_UNDEFINED:
        peal_text_puts(out, "undefined");
        return;
    case NODE_CONST: {
        double value;
        memcpy(&value, &n->word, sizeof value);
        peal_text_printf(out, "%g", value);
        return;
    }
    case NODE_INPUT:
        peal_text_printf(out, "%s@%u[%" PRIu64 "]", p->memory.at[n->child[2]].name, n->child[1],
                         index + n->word);
        if (n->child[0] > 0)
            peal_text_printf(out, "#%u", n->child[0]);
        return;
    case NODE_AT:
        print_node(v, p, n->child[0], n->word, depth, out);
        return;
    default:
        break;
    }
    bool infix =
        n->kind != NODE_OWN && (n->fn == PEAL_FN_ADD || n->fn == PEAL_FN_MUL) && n->nchildren == 2;
    if (n->kind == NODE_CONVERT)
        peal_text_printf(out, "%s(", peal_dtype_name((enum peal_dtype)n->dtype));
    else if (n->kind == NODE_OPAQUE)
        peal_text_printf(out, "%s(", peal_fn_info((enum peal_fn)n->fn)->name);
    else if (n->kind == NODE_OWN)
        peal_text_printf(out, "%s(", peal_op_info((enum peal_op_kind)n->fn)->name);
    else if (n->kind == NODE_DIVIDE)
        peal_text_puts(out, "(");
    else if (!infix)
        peal_text_printf(out, "%s(", peal_plan_fn_name(p->plans[0], n->fn));
    else if (depth)
        peal_text_puts(out, "(");
    const char *between = ", ";
    if (infix)
        between = n->fn == PEAL_FN_ADD ? " + " : " * ";
    for (uint32_t i = 0; i < n->nchildren; i++) {
        peal_text_puts(out, i == 0 ? "" : between);
        print_node(v, p, n->child[i], index, depth + 1, out);
    }
    if (n->kind == NODE_DIVIDE)
        peal_text_printf(out, ") / %" PRIu64, n->word);
    else if (!infix || depth)
        peal_text_puts(out, ")");
}

void peal_value_print(const struct values *v, const struct program *p, uint32_t node,
                      uint64_t index, struct peal_text *out)
{
    print_node(v, p, node, index, 0, out);
}

/* Of children whose digests are there. */
static struct peal_digest digest_node(const struct node *n, const struct peal_digest *digests)
{
    struct peal_digest children[3];
    struct peal_sha256 sha;
    uint32_t nchildren = n->kind == NODE_INPUT ? 0 : n->nchildren;
    bool commutes =
        n->kind == NODE_FN && n->nchildren == 2 && peal_fn_info((enum peal_fn)n->fn)->commutes;
    for (uint32_t i = 0; i < nchildren; i++)
        children[i] = digests[n->child[i]];
    if (commutes && memcmp(&children[0], &children[1], sizeof *children) > 0) {
        children[0] = digests[n->child[1]];
        children[1] = digests[n->child[0]];
    }
    peal_sha256_begin(&sha);
    peal_sha256_add_u64(&sha, (uint64_t)n->kind | (uint64_t)n->fn << 8 | (uint64_t)n->dtype << 16);
    peal_sha256_add_u64(&sha, n->kind == NODE_CHANCE ? 0 : n->word);
    if (n->kind == NODE_INPUT)
        peal_sha256_add_u64(&sha, n->child[1]);
    peal_sha256_add(&sha, children, nchildren * sizeof *children);
    return peal_sha256_digest(&sha);
}

/* `twins`: what each node of the first tree was found to be like, plus one; it is like one only. */
static bool is_alike(const struct values *v, uint32_t a, uint32_t b, uint32_t *twins)
{
    const struct node *x = &v->nodes.at[a], *y = &v->nodes.at[b];
    if (twins[a])
        return twins[a] == b + 1;
    if (x->kind != y->kind || x->fn != y->fn || x->dtype != y->dtype ||
        x->nchildren != y->nchildren || (x->word != y->word && x->kind != NODE_CHANCE))
        return false;
    twins[a] = b + 1;
    if (x->kind == NODE_INPUT)
        return x->child[1] == y->child[1];
    for (uint32_t i = 0; i < x->nchildren; i++) {
        if (!is_alike(v, x->child[i], y->child[i], twins))
            return false;
    }
    return true;
}

bool peal_value_alike(const struct values *v, uint32_t a, uint32_t b)
{
    uint32_t *twins = calloc((size_t)a + 1, sizeof *twins);
    bool alike = twins && is_alike(v, a, b, twins);
    free(twins);
    return alike;
}

/* Children are older than their parents: so those of the tree are marked downwards, and their digests
 * are made upwards. */
bool peal_value_order(const struct values *v, uint32_t node, struct peal_digest *out)
{
    struct peal_digest *digests = calloc((size_t)node + 1, sizeof *digests);
    bool *needed = calloc((size_t)node + 1, sizeof *needed);
    if (digests && needed) {
        needed[node] = true;
        for (uint32_t i = node + 1; i-- > 0;) {
            const struct node *n = &v->nodes.at[i];
            for (uint32_t k = 0; needed[i] && n->kind != NODE_INPUT && k < n->nchildren; k++) {
                assert(n->child[k] < i);
                needed[n->child[k]] = true;
            }
        }
        for (uint32_t i = 0; i <= node; i++) {
            if (needed[i])
                digests[i] = digest_node(&v->nodes.at[i], digests);
        }
        *out = digests[node];
    }
    bool made = digests && needed;
    free(digests);
    free(needed);
    return made;
}
