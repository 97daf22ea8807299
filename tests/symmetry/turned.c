/* SPDX-License-Identifier: Apache-2.0 */
/* turned RANKS COUNTS FILE.peal...: if the verifier finds that a text does the same with every
 * root, its plans do.
 *
 * For each number of ranks and each count (lists: 2,3,5), peal_root_read reads every kernel with a
 * root. If it finds that one root stands for all, the plans of all roots are made and compared rank
 * by rank: rank q + r with root r must do what rank q does with root 0, with ranks, cells and
 * elements rotated as the formulas of the text say. Notifies that follow each other may be in
 * another order, and so may waits, and accesses between two of these. Prints the differences, then
 * the number of texts and of those with one root for all.
 */
#include "base/base.h"
#include "lang/lang.h"
#include "plan/plan.h"
#include "symmetry/each.h"
#include "verify/symmetry/root_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct turned {
    struct each_case c;
    struct root_text text;
    uint64_t texts, alike, plans, differ;
};

/* --- the actions of a rank -------------------------------------------------------------------- */

enum action_kind { ACTION_NOTIFY, ACTION_WAIT, ACTION_ACCESS };

struct action {
    uint64_t group; /* actions of one group may be in any order */
    uint64_t fields[6];
    uint32_t kind;
};

struct actions {
    struct action *at;
    size_t len, cap;
    uint64_t group;
};

static void push(struct actions *list, struct action action)
{
    if (list->len && list->at[list->len - 1].kind != action.kind)
        list->group++;
    action.group = list->group;
    if (list->len == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 64;
        list->at = realloc(list->at, list->cap * sizeof *list->at);
        if (!list->at)
            abort();
    }
    list->at[list->len++] = action;
}

static int by_group(const void *a, const void *b)
{
    const struct action *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return memcmp(x->fields, y->fields, sizeof x->fields);
}

static struct formula formula_of(const struct turned *t, const char *name)
{
    for (const struct peal_symbol *s = t->c.kernel->symbols; s; s = s->next) {
        if ((s->kind == PEAL_SYMBOL_BUFFER || s->kind == PEAL_SYMBOL_SIGNAL) &&
            strcmp(s->name, name) == 0)
            return t->text.formulas[s->slot];
    }
    return (struct formula){FORMULA_UNSET, 0};
}

/* Rotates elements or cells by r ranks. False: they do not stay together. */
static bool rotate(const struct turned *t, struct formula f, uint32_t r, uint64_t *from,
                   uint64_t len)
{
    if (f.kind != FORMULA_MOVES)
        return true;
    uint64_t unit = (uint64_t)f.unit, group = unit * t->c.nranks;
    if (*from % group == 0 && len % group == 0)
        return true;
    if (*from % unit + len > unit)
        return false;
    uint64_t i = *from / unit % t->c.nranks;
    *from = *from / group * group + (i + r) % t->c.nranks * unit + *from % unit;
    return true;
}

/* --- a plan's actions, rotated by r ranks ----------------------------------------------------- */

struct walk {
    const struct turned *t;
    const struct peal_plan *plan;
    uint32_t launch, r;
    struct actions out;
};

static void add_access(struct walk *w, const struct peal_op *op, const struct peal_ref *ref,
                       bool writes)
{
    const struct peal_plan *plan = w->plan;
    if (ref->buf >= plan->bufs.count || peal_plan_bufs(plan)[ref->buf].kind == PEAL_BUF_TILE)
        return;
    const struct peal_buf *buf = &peal_plan_bufs(plan)[ref->buf];
    const char *name = peal_plan_string(plan, buf->name);
    uint64_t size = peal_dtype_size((enum peal_dtype)ref->dtype);
    uint64_t from = peal_ref_offset(plan, ref, w->launch) / size +
                    (uint64_t)ref->row * (buf->cols ? buf->cols : 1);
    uint64_t len = op->mem.count * op->mem.rows;
    bool together = rotate(w->t, formula_of(w->t, name), w->r, &from, len);
    push(&w->out, (struct action){.kind = ACTION_ACCESS,
                                  .fields = {peal_hash_bytes(name, strlen(name), 1),
                                             (ref->rank + w->r) % plan->nranks, from, len, writes,
                                             together ? w->launch : UINT64_MAX}});
}

static void add_sync(struct walk *w, const struct peal_op *op)
{
    const struct peal_signal *s = &peal_plan_signals(w->plan)[peal_op_signal(op)];
    uint64_t cell = peal_op_cell(w->plan, op, w->launch) - s->first_cell;
    (void)rotate(w->t, formula_of(w->t, peal_plan_string(w->plan, s->name)), w->r, &cell, 1);
    push(&w->out, (struct action){.kind = op->kind == PEAL_OP_NOTIFY ? ACTION_NOTIFY : ACTION_WAIT,
                                  .fields = {op->kind, peal_op_signal(op), cell,
                                             (op->sync.rank + w->r) % w->plan->nranks,
                                             (uint64_t)op->sync.value, op->sync.after}});
}

static void add_op(struct walk *w, const struct peal_op *op)
{
    if (peal_op_is_sync(op)) {
        add_sync(w, op);
        return;
    }
    if (peal_op_has_dst(op))
        add_access(w, op, peal_op_dst(w->plan, op), true);
    for (uint32_t i = 0; i < op->mem.more_dsts; i++)
        add_access(w, op, peal_op_more_dst(w->plan, op, i), true);
    for (uint32_t i = 0; i < op->mem.nsrc; i++)
        add_access(w, op, peal_op_src(w->plan, op, i), false);
}

static struct actions list_actions(const struct turned *t, const struct peal_plan *plan,
                                   uint32_t rank, uint32_t launch, uint32_t r)
{
    struct walk w = {t, plan, launch, r, {0}};
    const struct peal_lane *lane = peal_plan_lane(plan, rank, 0);
    for (uint64_t i = 0; i < lane->ops; i++)
        add_op(&w, peal_plan_ops(plan) + lane->first_op + i);
    if (w.out.len)
        qsort(w.out.at, w.out.len, sizeof *w.out.at, by_group);
    return w.out;
}

static bool same_actions(const struct actions *a, const struct actions *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        if (by_group(&a->at[i], &b->at[i]) != 0 || a->at[i].kind != b->at[i].kind)
            return false;
    }
    return true;
}

static bool same_rank(const struct turned *t, const struct peal_plan *zero,
                      const struct peal_plan *plan, uint32_t rank, uint32_t r)
{
    for (uint32_t l = 0; l < zero->period; l++) {
        struct actions a = list_actions(t, zero, rank, l, r);
        struct actions b = list_actions(t, plan, (rank + r) % t->c.nranks, l, 0);
        bool same = same_actions(&a, &b);
        free(a.at);
        free(b.at);
        if (!same)
            return false;
    }
    return true;
}

/* With root r, `plan` does what `zero` does with root 0, rotated by r. */
static bool same_plan(const struct turned *t, const struct peal_plan *zero,
                      const struct peal_plan *plan, uint32_t r)
{
    if (!zero || !plan)
        return !zero == !plan;
    for (uint32_t rank = 0; rank < t->c.nranks; rank++) {
        if (peal_plan_lane_count(plan, rank) != 1 || !same_rank(t, zero, plan, rank, r))
            return false;
    }
    return true;
}

/* --- kernels ---------------------------------------------------------------------------------- */

static struct peal_plan *make_plan(const struct peal_plan_request *request, uint32_t root)
{
    struct peal_plan_request r = *request;
    struct peal_plan *plan = NULL;
    struct peal_diags diags;
    r.bind.root = root;
    peal_diags_init(&diags);
    (void)peal_plan_make(&r, &diags, &plan);
    peal_diags_release(&diags);
    return plan;
}

static void compare_roots(struct turned *t, const struct peal_plan_request *request)
{
    struct peal_plan *zero = make_plan(request, 0);
    for (uint32_t r = 1; r < t->c.nranks; r++) {
        struct peal_plan *plan = make_plan(request, r);
        t->plans += plan != NULL;
        if (!same_plan(t, zero, plan, r)) {
            t->differ++;
            printf("%s kernel %s ranks %u count %lld: root %u is not root 0 rotated\n", t->c.file,
                   t->c.kernel->name, t->c.nranks, (long long)t->c.count, r);
        }
        free(plan);
    }
    free(zero);
}

static void compare(void *context, const struct each_case *c)
{
    struct turned *t = context;
    t->c = *c;
    struct peal_plan_request request = {.kernel = t->c.kernel,
                                        .count = t->c.count,
                                        .max_count = t->c.count + t->c.count % 2 * t->c.nranks,
                                        .invent = true,
                                        .bind = {.nranks = t->c.nranks,
                                                 .rank = PEAL_NONE,
                                                 .dtype = PEAL_I32,
                                                 .reduce = PEAL_SUM,
                                                 .symmetric = true,
                                                 .lenient = true}};
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_bind bind;
    if (!peal_request_has_root(t->c.kernel))
        return;
    peal_arena_init(&arena, 0);
    peal_diags_init(&diags);
    if (peal_request_bind(&request, &arena, &diags, &bind) == PEAL_OK) {
        t->texts++;
        if (peal_root_read(&t->text, t->c.kernel, &bind)) {
            t->alike++;
            compare_roots(t, &request);
        }
        peal_root_release(&t->text);
    }
    peal_diags_release(&diags);
    peal_arena_release(&arena);
}

int main(int argc, char **argv)
{
    struct turned t = {0};
    if (argc < 4)
        return 2;
    each_file(argc, argv, compare, &t);
    printf("%llu texts, %llu with one root for all, %llu plans, %llu differ\n",
           (unsigned long long)t.texts, (unsigned long long)t.alike, (unsigned long long)t.plans,
           (unsigned long long)t.differ);
    return t.differ || !t.alike;
}
