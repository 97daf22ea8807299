/* SPDX-License-Identifier: Apache-2.0 */
/* Values that sections of locks leave, in whatever order the sections come.
 *
 * One order is executed. When a section begins, the memory that its lock's sections share is put aside,
 * and holds a *name* instead, which stands for whatever another order would have left there. When the
 * section ends, what it has made of the name is looked at, element by element:
 *
 *   - the name itself: the section has changed nothing, and what was put aside comes back;
 *   - the name, to which values are added (or of which the maximum is taken, ...) that depend on no
 *     name, by the same function in all sections: then any order of them gives the same up to rounding,
 *     and the same is done to what was put aside, marked as left to chance;
 *   - anything else: what is there depends on the order, and gets a name that nobody knows.
 *
 * A name that goes anywhere else, such as to a tile, is never equal to anything that a contract asks for.
 * Memory that no rank has written before its first section is *undefined* at the beginning of every
 * section, until it is written outside: another order may have that section come first.
 *
 * docs/verifier-method.md, "Locks", says why that is enough.
 */
#include "verify/result/symbolic.h"

#include "verify/order/locks.h"

#include <stdlib.h>

#define NAME_BIT (UINT64_C(1) << 63)

struct locked {
    PEAL_VEC(struct piece) before; /* of the section's ranges, in their order */
    PEAL_VEC(struct piece) now;
    PEAL_VEC(bool) named; /* [node] does it depend on a name? as far as it was asked for */
    PEAL_VEC(uint32_t) first_written; /* names of memory that only sections have written */
    PEAL_VEC(uint32_t) name;          /* [range] of the section: one for each location */
    uint8_t *function; /* [range] + 1: by which sections have combined it; 0: not yet */
    uint64_t names;
};

static uint32_t new_name(struct symbolic *s, uint8_t dtype)
{
    struct node node = {.kind = NODE_OPAQUE, .dtype = dtype, .word = NAME_BIT | ++s->locked->names};
    return peal_value_make(&s->values, node);
}

static bool is_name(const struct node *node)
{
    return node->kind == NODE_OPAQUE && node->nchildren == 0 && (node->word & NAME_BIT);
}

static bool depends_on_name(struct symbolic *s, uint32_t node)
{
    struct locked *k = s->locked;
    while (k->named.len <= node && !s->done) {
        const struct node *n = &s->values.nodes.at[k->named.len];
        bool named = is_name(n);
        for (uint32_t i = 0; i < n->nchildren; i++)
            named = named || k->named.at[n->child[i]];
        if (!peal_vec_push(&k->named, named))
            peal_symbolic_no_memory(s);
    }
    return s->done || k->named.at[node];
}

/* Was this memory undefined before the first section that wrote it? */
static bool is_first_written(const struct symbolic *s, uint32_t node)
{
    for (size_t i = 0; i < s->locked->first_written.len; i++) {
        if (s->locked->first_written.at[i] == node)
            return true;
    }
    return false;
}

static uint64_t size_of(const struct symbolic *s, uint32_t location)
{
    return peal_dtype_size((enum peal_dtype)s->p->memory.at[location / s->p->nranks].dtype);
}

/* The pieces of a range, cut to it, added to a list. */
static bool list_pieces(struct symbolic *s, const struct lock_range *r, struct piece **at,
                        size_t *len, size_t *cap)
{
    uint64_t size = size_of(s, r->location), end = r->hi / size;
    for (uint64_t e = r->lo / size; e < end;) {
        struct piece piece = *peal_pieces_find(&s->memory[r->location], e);
        piece.index += e - piece.lo;
        piece.lo = e;
        piece.hi = piece.hi < end ? piece.hi : end;
        if (*cap == *len && !peal_vec_grow((void **)at, cap, *len, 1, sizeof **at))
            return false;
        (*at)[(*len)++] = piece;
        e = piece.hi;
    }
    return true;
}

static void put(struct symbolic *s, uint32_t location, struct piece piece)
{
    if (!s->done &&
        (piece.node == NO_NODE || !peal_pieces_put(&s->memory[location], &s->values, &piece, 1)))
        peal_symbolic_no_memory(s);
}

static void begin(struct symbolic *s, uint32_t lock)
{
    const struct lock_list *list = s->p->locks;
    struct locked *k = s->locked;
    uint32_t location = PEAL_NONE, name = NO_NODE;
    k->before.len = k->name.len = 0;
    for (size_t i = 0; i < list->ranges.len && !s->done; i++) {
        const struct lock_range *r = &list->ranges.at[i];
        size_t first = k->before.len;
        if (r->lock != lock)
            continue;
        if (!list_pieces(s, r, &k->before.at, &k->before.len, &k->before.cap))
            peal_symbolic_no_memory(s);
        if (location != r->location)
            name = new_name(s, s->p->memory.at[r->location / s->p->nranks].dtype);
        location = r->location;
        if (!peal_vec_push(&k->name, name))
            peal_symbolic_no_memory(s);
        for (size_t n = first; n < k->before.len; n++) {
            struct piece piece = k->before.at[n];
            bool undefined = piece.node == s->undefined || is_first_written(s, piece.node);
            piece.node = undefined ? s->undefined : name;
            piece.index = piece.lo;
            put(s, r->location, piece);
        }
    }
}

/* May values be combined by it in any order, up to rounding? */
static bool is_any_order(const struct node *node)
{
    return (node->kind == NODE_FN || node->kind == NODE_CHANCE) && node->nchildren == 2 &&
           (node->fn == PEAL_FN_ADD || node->fn == PEAL_FN_MUL || node->fn == PEAL_FN_MAXIMUM ||
            node->fn == PEAL_FN_MINIMUM || node->fn == PEAL_FN_AND || node->fn == PEAL_FN_OR ||
            node->fn == PEAL_FN_XOR);
}

/* What a section has made of a name, and what is to be there instead. */
struct renamed {
    uint32_t name, old, location;
    uint8_t *function; /* of the range */
};

/* The node with the name replaced, if one function combines the name with values that depend on no
 * name, the same in all sections; otherwise NO_NODE. */
static uint32_t replace(struct symbolic *s, uint32_t node, const struct renamed *r)
{
    if (node == r->name)
        return r->old;
    const struct node n = s->values.nodes.at[node];
    if (n.kind == NODE_CONVERT) {
        uint32_t inner = replace(s, n.child[0], r);
        return inner == NO_NODE ? inner
                                : peal_value_convert(&s->values, inner, (enum peal_dtype)n.dtype);
    }
    if (!is_any_order(&n) || (*r->function && *r->function != n.fn + 1))
        return NO_NODE;
    *r->function = (uint8_t)(n.fn + 1);
    uint32_t named = depends_on_name(s, n.child[0]) ? 0 : 1;
    if (depends_on_name(s, n.child[1 - named]))
        return NO_NODE;
    uint32_t inner = replace(s, n.child[named], r);
    if (inner == NO_NODE)
        return NO_NODE;
    return peal_value_make(&s->values, (struct node){.kind = NODE_CHANCE,
                                                     .fn = n.fn,
                                                     .dtype = n.dtype,
                                                     .nchildren = 2,
                                                     .child = {inner, n.child[1 - named]},
                                                     .word = r->location});
}

/* What memory holds after a section: `now`, of which `before` was put aside. They have the same
 * elements. */
static struct piece after(struct symbolic *s, struct renamed r, struct piece before,
                          struct piece now)
{
    uint32_t location = r.location;
    uint8_t dtype = s->p->memory.at[location / s->p->nranks].dtype;
    if (before.node == s->undefined || is_first_written(s, before.node)) {
        if (now.node == s->undefined)
            return before;
        now.node = new_name(s, dtype);
        if (!peal_vec_push(&s->locked->first_written, now.node))
            now.node = NO_NODE;
        return now;
    }
    bool aligned = now.index == now.lo;
    if (aligned && now.node == r.name)
        return before;
    r.old = peal_value_move(&s->values, before.node, (int64_t)(before.index - now.index));
    uint32_t node = aligned && r.old != NO_NODE ? replace(s, now.node, &r) : NO_NODE;
    now.node = node == NO_NODE ? new_name(s, dtype)
                               : peal_value_convert(&s->values, node, (enum peal_dtype)dtype);
    return now;
}

static void end(struct symbolic *s, uint32_t lock)
{
    const struct lock_list *list = s->p->locks;
    struct locked *k = s->locked;
    size_t b = 0, range = 0;
    for (size_t i = 0; i < list->ranges.len && !s->done; i++) {
        const struct lock_range *r = &list->ranges.at[i];
        k->now.len = 0;
        if (r->lock != lock)
            continue;
        if (!list_pieces(s, r, &k->now.at, &k->now.len, &k->now.cap))
            peal_symbolic_no_memory(s);
        struct renamed renamed = {
            .name = k->name.at[range++], .location = r->location, .function = &k->function[i]};
        for (size_t n = 0; n < k->now.len && !s->done;) {
            struct piece before = k->before.at[b], now = k->now.at[n];
            uint64_t from = before.lo > now.lo ? before.lo : now.lo;
            uint64_t to = before.hi < now.hi ? before.hi : now.hi;
            before = (struct piece){from, to, before.index + from - before.lo, before.node};
            now = (struct piece){from, to, now.index + from - now.lo, now.node};
            put(s, r->location, after(s, renamed, before, now));
            b += to == k->before.at[b].hi;
            n += to == k->now.at[n].hi;
        }
    }
}

void peal_locked_step(struct symbolic *s, uint64_t step)
{
    const struct lock_list *list = s->p->locks;
    if (!s->locked && (s->locked = calloc(1, sizeof *s->locked)))
        s->locked->function = calloc(list->ranges.len + 1, 1);
    if (!s->locked || !s->locked->function) {
        peal_symbolic_no_memory(s);
        return;
    }
    if (list->begins[step])
        begin(s, list->begins[step] - 1);
    if (list->ends[step])
        end(s, list->ends[step] - 1);
}

void peal_locked_release(struct symbolic *s)
{
    if (!s->locked)
        return;
    peal_vec_release(&s->locked->before);
    peal_vec_release(&s->locked->now);
    peal_vec_release(&s->locked->named);
    peal_vec_release(&s->locked->first_written);
    peal_vec_release(&s->locked->name);
    free(s->locked->function);
    free(s->locked);
}
