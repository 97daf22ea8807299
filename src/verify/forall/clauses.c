/* SPDX-License-Identifier: Apache-2.0 */
/* Which `ensures` and `requires` a mesh may have.
 *
 * A clause must say the same for all ranks that are equal and different in the same way, as the
 * text of a mesh does: then how often an element of an input is in an element of an output is known
 * for all numbers of ranks if it is known for few (docs/verifier-all-ranks.md, "Meshes: clauses").
 * So its places are those of meshes, its conditions are equality of ranks, and its value is one
 * element or one reduction:
 *
 *   y[i] == x@root[i]                                     i stands for all elements
 *   y[i] == op(q in 0 .. nranks: x@q[i])
 *   y[i] == x@(i / n)[i % n]                              y: T[nranks * n]
 *   y[i] == x@(i / n)[rank * n + i % n]                   x and y likewise
 *   y[i] == sum(q in 0 .. nranks: x@q[rank * n + i])      x: T[nranks * n]
 *   y[q] == x@q[rank]                                     rows of T[nranks, n]
 *   y[r of nranks] == x@r[r of nranks]                    parts, slots and pieces, without an i
 */
#include "verify/forall/linear.h"
#include "verify/forall/mesh.h"
#include "verify/forall/words.h"

/* The reduction of the clause that is read. */
struct clause_value {
    const struct peal_expr *reduction; /* the first; NULL: none so far */
    uint32_t depth, digits;
};

static bool is_call(const struct peal_expr *e, enum peal_builtin builtin)
{
    return e && e->kind == PEAL_EXPR_CALL && e->builtin == builtin;
}

static bool mentions_index(const struct mesh *m, const struct peal_expr *e)
{
    if (!e || !m->index)
        return false;
    if (e->kind == PEAL_EXPR_NAME)
        return e->symbol == m->index;
    return mentions_index(m, e->a) || (e->kind != PEAL_EXPR_CALL && mentions_index(m, e->b));
}

/* --- places ---------------------------------------------------------------------------------- */

/* The index itself, or what is left of it within a rank's elements. */
static bool is_offset(const struct mesh *m, const struct peal_expr *e)
{
    if (!m->split)
        return peal_word_is_name(e, m->index);
    return peal_word_is_binary(e, PEAL_INT_MOD) && peal_word_is_name(e->a, m->index) &&
           peal_linear_same(e->b, m->unit);
}

/* r * unit, with a rank r */
static bool is_start(struct mesh *m, const struct peal_expr *e, const struct peal_expr *unit)
{
    if (!peal_word_is_binary(e, PEAL_INT_MUL))
        return false;
    return (peal_mesh_is_rank(m, e->a) && peal_linear_same(e->b, unit)) ||
           (peal_mesh_is_rank(m, e->b) && peal_linear_same(e->a, unit));
}

/* x[i] with the clause's index: all of x, or the elements that x has for one rank. */
static bool is_element(struct mesh *m, const struct peal_expr *at, uint32_t digits,
                       const struct peal_expr *unit)
{
    if (digits > 1 || !peal_linear_same(unit, m->unit))
        return false;
    if (digits == 0)
        return is_offset(m, at);
    if (m->split && peal_word_is_name(at, m->index))
        return true;
    struct linear sum = peal_linear_of(at, false);
    peal_linear_pack(&sum);
    bool two = sum.good && !sum.one && sum.nterms == 2 && sum.terms[0].factor == 1 &&
               sum.terms[1].factor == 1;
    if (!two)
        return false;
    const struct peal_expr *a = sum.terms[0].atom, *b = sum.terms[1].atom;
    return (is_offset(m, a) && is_start(m, b, unit)) || (is_offset(m, b) && is_start(m, a, unit));
}

/* An element of a parameter, of any rank. */
static bool read_place(struct mesh *m, const struct peal_expr *e, uint32_t *digits)
{
    const struct peal_expr *name = e, *at = NULL, *unit;
    uint32_t remote = m->remote, slices = 0;
    bool reaches = m->reaches, good = true;
    for (; name->kind == PEAL_EXPR_AT || name->kind == PEAL_EXPR_SLICE; name = name->a) {
        if (name->kind == PEAL_EXPR_AT) {
            good = good && peal_mesh_is_rank(m, name->b);
            continue;
        }
        slices++;
        at = name->nslices == 1 && name->slices[0].kind == PEAL_SLICE_INDEX ? name->slices[0].a
                                                                            : NULL;
    }
    const struct peal_symbol *x = name->kind == PEAL_EXPR_NAME ? name->symbol : NULL;
    if (!x || x->kind != PEAL_SYMBOL_BUFFER || !peal_mesh_shape(m, x, digits, &unit))
        return peal_mesh_refuse(m, e->pos, "a clause about something else than parts of meshes");
    if (m->index && x->type.dims == 1) {
        good = good && slices == 1 && at && is_element(m, at, *digits, unit);
        m->by_rank[x->slot] = m->by_rank[x->slot] || *digits;
    } else {
        good = good && peal_mesh_region(m, e);
    }
    *digits += 1; /* a rank's part of each of them */
    m->remote = remote;
    m->reaches = reaches;
    return good ||
           peal_mesh_refuse(m, e->pos, "a clause about something else than parts of meshes");
}

/* --- values ---------------------------------------------------------------------------------- */

static bool same_reduction(struct clause_value *v, const struct peal_expr *e)
{
    if (!v->reduction)
        v->reduction = e;
    return v->reduction->symbol == e->symbol && v->reduction->reduce == e->reduce;
}

static bool read_value(struct mesh *m, const struct peal_expr *e, struct clause_value *v);

/* op(q in a .. b where c: value) */
static bool read_over(struct mesh *m, const struct peal_expr *e, struct clause_value *v)
{
    const struct peal_expr *q = e->a, *from = q->next, *to = from->next, *value = to->next;
    if (!peal_mesh_is_over_ranks(m, from, to))
        return peal_mesh_refuse(m, e->pos, "a reduction that is not over all ranks");
    m->role[q->symbol->slot] = MESH_RANK;
    if (value->next && !peal_mesh_is_condition(m, value->next))
        return peal_mesh_refuse(m, e->pos, "a condition that is not equality of ranks");
    v->depth++;
    return read_value(m, value, v);
}

static bool read_value(struct mesh *m, const struct peal_expr *e, struct clause_value *v)
{
    uint32_t digits = 0;
    if (is_call(e, PEAL_BUILTIN_OLD))
        return read_value(m, e->a, v);
    if (is_call(e, PEAL_BUILTIN_SELECT)) {
        if (!peal_mesh_is_condition(m, e->a))
            return peal_mesh_refuse(m, e->pos, "a choice that is not by equality of ranks");
        return read_value(m, e->a->next, v) && read_value(m, e->a->next->next, v);
    }
    if (is_call(e, PEAL_BUILTIN_REDUCE) || is_call(e, PEAL_BUILTIN_OVER)) {
        if (!same_reduction(v, e))
            return peal_mesh_refuse(m, e->pos, "a clause with two reductions");
        if (e->builtin == PEAL_BUILTIN_OVER)
            return read_over(m, e, v);
        for (const struct peal_expr *arg = e->a; arg; arg = arg->next) {
            if (!read_value(m, arg, v))
                return false;
        }
        return true;
    }
    if (e->kind != PEAL_EXPR_NAME && e->kind != PEAL_EXPR_AT && e->kind != PEAL_EXPR_SLICE)
        return peal_mesh_refuse(m, e->pos, "a clause that is neither an element nor a reduction");
    bool good = read_place(m, e, &digits);
    v->digits = v->digits < digits ? digits : v->digits;
    return good;
}

/* The left side: of one index for all elements, for how many of them ranks are counted up. */
static bool read_target(struct mesh *m, const struct peal_stmt *s, uint32_t *digits)
{
    const struct peal_expr *e = s->a, *unit;
    m->index = s->symbol;
    m->unit = NULL;
    m->split = false;
    if (!s->symbol)
        return read_place(m, e, digits);
    const struct peal_symbol *y =
        e->kind == PEAL_EXPR_SLICE && e->a->kind == PEAL_EXPR_NAME ? e->a->symbol : NULL;
    if (!y || !peal_mesh_shape(m, y, digits, &unit) || *digits > 1)
        return peal_mesh_refuse(m, s->pos, "a clause about something else than parts of meshes");
    if (y->type.dims == 2) {
        m->role[s->symbol->slot] = MESH_RANK;
        m->index = NULL;
    } else {
        m->unit = unit;
        m->split = *digits > 0;
        m->by_rank[y->slot] = m->by_rank[y->slot] || m->split;
    }
    *digits += 1;
    return true;
}

bool peal_mesh_ensures(struct mesh *m, const struct peal_stmt *s)
{
    struct clause_value v = {0};
    uint32_t target = 0;
    const struct peal_expr *value = s->b;
    m->clauses = true;
    bool good = read_target(m, s, &target);
    if (good && s->c && (mentions_index(m, s->c) || !peal_mesh_is_condition(m, s->c)))
        good = peal_mesh_refuse(m, s->c->pos, "a condition that is not equality of ranks");
    if (is_call(value, PEAL_BUILTIN_FINAL)) /* outermost only, where it is what the text makes */
        value = value->a->next;
    good = good && read_value(m, value, &v);
    m->index = NULL;
    m->unit = NULL;
    m->split = false;
    uint32_t digits = target + v.digits;
    m->clause_digits = m->clause_digits < digits ? digits : m->clause_digits;
    uint32_t depth = m->depth + v.depth;
    m->clause_depth = m->clause_depth < depth ? depth : m->clause_depth;
    return good;
}

/* n >= 1, nranks >= 2, root < nranks: what few ranks and counts may lack, and many have. */
bool peal_mesh_requires(struct mesh *m, const struct peal_expr *e)
{
    int64_t least = 0;
    if (peal_word_is_binary(e, PEAL_INT_ANDAND))
        return peal_mesh_requires(m, e->a) && peal_mesh_requires(m, e->b);
    if (e->kind != PEAL_EXPR_BINARY)
        return false;
    bool root = peal_word_is_root(e->a);
    if (root && ((e->op == PEAL_INT_LT && peal_mesh_is_nranks(e->b)) ||
                 (e->op == PEAL_INT_GE && peal_word_is_int(e->b, 0))))
        return true;
    if (!peal_word_is_floor(e, &least))
        return false;
    int64_t *known = peal_mesh_is_nranks(e->a) ? &m->least_ranks : &m->least_count;
    *known = *known < least ? least : *known;
    return true;
}
