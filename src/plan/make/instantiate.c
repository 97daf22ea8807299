/* SPDX-License-Identifier: Apache-2.0 */
/* From a lowered kernel to a plan: parameters are bound, every rank's walk fills its lanes, the
 * assembler finishes the plan.
 *
 * One rank's part can usually be made alone. If it cannot (shared signals, whose totals depend on
 * all ranks; signals used by several inlined calls; declarations that some rank may not reach), the
 * whole plan is made and the part is taken out of it. */
#include "plan/format/part.h"
#include "plan/make/maker.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct peal_bind_value *find_value(const struct peal_bind *bind, const char *name)
{
    for (size_t i = 0; i < bind->nvalues; i++) {
        if (strcmp(bind->values[i].name, name) == 0)
            return &bind->values[i];
    }
    return NULL;
}

static void reject_values(struct instantiation *t, const struct peal_symbol *symbol, size_t count)
{
    peal_inst_fail(t, symbol->pos, "'%s' is one number, not %zu", symbol->name, count);
}

static void bind_dim(struct instantiation *t, const struct peal_symbol *symbol)
{
    const struct peal_bind_value *value = find_value(t->bind, symbol->name);
    if (!value || value->count != 1) {
        if (value)
            reject_values(t, symbol, value->count);
        else
            peal_inst_fail(t, symbol->pos, "dimension '%s' has no value", symbol->name);
        return;
    }
    if (value->values[0] < 0 || value->values[0] > INT64_MAX / 64)
        peal_inst_fail(t, symbol->pos, "dimension '%s' cannot be %" PRId64, symbol->name,
                       value->values[0]);
    t->env[symbol->slot] = (struct binding){.bound = true, .value = value->values[0]};
}

static void bind_int(struct instantiation *t, const struct peal_symbol *symbol)
{
    const struct peal_bind_value *value = find_value(t->bind, symbol->name);
    bool is_root = strcmp(symbol->name, "root") == 0;
    struct binding *b = &t->env[symbol->slot];
    *b = (struct binding){.bound = true};
    if (value) {
        size_t at = 0;
        if (symbol->is_local) {
            if (value->all_ranks || t->bind->rank == PEAL_NONE)
                at = t->rank;
            else
                at = 0;
        }
        if (value->count != 1) {
            reject_values(t, symbol, value->count);
            return;
        }
        b->value = value->values[at];
    } else if (is_root) {
        b->value = t->bind->root;
    } else if (symbol->initial) {
        b->value = peal_inst_int(t, symbol->initial);
    } else {
        peal_inst_fail(t, symbol->pos, "parameter '%s' has no value", symbol->name);
        return;
    }
    if (is_root && (b->value < 0 || b->value >= t->bind->nranks)) {
        peal_inst_exclude(t, PEAL_EXCLUDED);
        peal_inst_fail(t, symbol->pos, "root %" PRId64 " is not a rank of %u", b->value,
                       t->bind->nranks);
    }
}

static void bind_ints(struct instantiation *t, const struct peal_symbol *symbol)
{
    const struct peal_bind_value *value = find_value(t->bind, symbol->name);
    int64_t want = 0;
    if (symbol->shape[0])
        want = peal_inst_int(t, symbol->shape[0]);
    if (!value) {
        peal_inst_fail(t, symbol->pos, "parameter '%s' has no values", symbol->name);
        return;
    }
    if (t->status == PEAL_OK && (want < 0 || value->count != (uint64_t)want)) {
        peal_inst_fail(t, symbol->pos, "'%s' has %zu values where %" PRId64 " are wanted",
                       symbol->name, value->count, want);
        return;
    }
    size_t at = 0;
    if (symbol->is_local && (value->all_ranks || t->bind->rank == PEAL_NONE))
        at = (size_t)t->rank * value->count;
    for (size_t i = 0; i < value->count; i++) {
        if (value->values[at + i] < 0)
            peal_inst_fail(t, symbol->pos, "'%s' holds %" PRId64, symbol->name,
                           value->values[at + i]);
    }
    t->env[symbol->slot] = (struct binding){
        .bound = true,
        .array = value->values + at,
        .array_len = value->count,
    };
}

enum peal_reduction peal_bind_reduction(const struct peal_kernel *kernel,
                                        const struct peal_bind *bind)
{
    if (!peal_reduce_is_user(bind->reduce))
        return bind->reduce;
    uint32_t i = peal_formula_find(kernel->formulas, (uint32_t)kernel->nformulas, bind->formula);
    return (enum peal_reduction)(PEAL_USER_REDUCTION + i);
}

const char *peal_bind_reduce_name(const struct peal_bind *bind)
{
    return peal_reduce_is_user(bind->reduce) ? bind->formula->name : peal_reduce_name(bind->reduce);
}

/* The formula of a function. NULL: it is a built-in function. */
static const struct peal_formula *formula_of(const struct instantiation *t, enum peal_fn fn)
{
    if (!peal_fn_is_user(fn))
        return NULL;
    uint32_t i = (uint32_t)fn - PEAL_FN_USER;
    return i < t->kernel->nformulas ? &t->kernel->formulas[i] : t->bind->formula;
}

bool peal_inst_fn_takes(struct instantiation *t, struct peal_pos pos, enum peal_fn fn,
                        enum peal_dtype dtype)
{
    const struct peal_formula *formula = formula_of(t, fn);
    if (formula ? peal_formula_takes(formula, dtype) : peal_fn_takes(fn, dtype))
        return true;
    peal_inst_fail(t, pos, "'%s' does not take %s",
                   formula ? formula->name : peal_fn_info(fn)->name, peal_dtype_name(dtype));
    return false;
}

static void bind_reduce(struct instantiation *t, const struct peal_symbol *s)
{
    enum peal_reduction reduce = t->bind->reduce;
    const struct peal_formula *formula = peal_reduce_is_user(reduce) ? t->bind->formula : NULL;
    if (formula ? !peal_formula_takes(formula, t->bind->dtype)
                : !peal_reduce_takes(reduce, t->bind->dtype))
        peal_inst_fail(t, s->pos, "'%s' does not take %s", peal_bind_reduce_name(t->bind),
                       peal_dtype_name(t->bind->dtype));
    else if (reduce == PEAL_AVG && !peal_contract_has_avg(t->ends.contract))
        peal_inst_fail(t, s->pos, "%s has no avg", t->kernel->implements);
}

/* Integers first, in order, because a default may refer to what comes before it. */
static void bind_integers(struct instantiation *t)
{
    for (const struct peal_symbol *s = t->kernel->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_DIM)
            bind_dim(t, s);
    }
    for (int i = 0; i < t->kernel->nparams; i++) {
        const struct peal_symbol *s = t->kernel->params[i];
        if (s->kind == PEAL_SYMBOL_INT)
            bind_int(t, s);
        else if (s->kind == PEAL_SYMBOL_INTS)
            bind_ints(t, s);
        else if (s->kind == PEAL_SYMBOL_REDUCE)
            bind_reduce(t, s);
    }
}

/* Makes the buffers of all parameters, once, before the first rank. */
static void declare_params(struct instantiation *t, const struct peal_ends *ends)
{
    uint32_t number = 0;
    bool in_place = t->bind->in_place && ends->x && ends->y && ends->x != ends->y;
    for (int i = 0; i < t->kernel->nparams; i++) {
        const struct peal_symbol *s = t->kernel->params[i];
        if (s->kind != PEAL_SYMBOL_BUFFER)
            continue;
        bool aliased = in_place && (s == ends->x || s == ends->y);
        struct peal_buf_spec spec = {
            .name = s->name,
            .kind = PEAL_BUF_PARAM,
            .dir = aliased ? PEAL_DIR_INOUT : (enum peal_buf_dir)s->dir,
            .dtype = peal_inst_dtype(t, s->type.elem),
            .param = number++,
            .alias = PEAL_NONE,
        };
        if (s->is_window && t->bind->symmetric)
            spec.flags = PEAL_BUF_SYMMETRIC;
        t->decls[s->slot] = peal_inst_buf(t, &spec, s->dir == PEAL_DIR_IN && !aliased);
    }
    if (!in_place)
        return;
    const struct peal_symbol *part = ends->y, *whole = ends->x;
    if (peal_contract_gathers(ends->contract)) {
        part = ends->x;
        whole = ends->y;
    }
    peal_assembler_alias(t->a, t->decls[part->slot], t->decls[whole->slot]);
}

uint64_t peal_inst_part_start(const struct instantiation *t, uint32_t rank, uint64_t n)
{
    for (int i = 0; i < t->kernel->nparams; i++) {
        const struct peal_symbol *s = t->kernel->params[i];
        if (s->kind != PEAL_SYMBOL_INTS || strcmp(s->name, "counts") != 0)
            continue;
        uint64_t sum = 0;
        const struct binding *b = &t->env[s->slot];
        for (size_t r = 0; r < peal_size_min(rank, b->array_len); r++)
            sum += (uint64_t)b->array[r];
        return sum;
    }
    return peal_size_part(rank, n, t->bind->nranks);
}

static uint64_t length_of(const struct binding *b)
{
    return (b->rows ? b->rows : 1) * b->cols;
}

/* Sizes of the buffer parameters on this rank. In place, a part is accessed through the whole. */
static void bind_buffers(struct instantiation *t, const struct peal_ends *ends)
{
    for (int i = 0; i < t->kernel->nparams; i++) {
        const struct peal_symbol *s = t->kernel->params[i];
        if (s->kind != PEAL_SYMBOL_BUFFER)
            continue;
        struct sizes sizes;
        if (!peal_inst_sizes(t, s, &sizes))
            return;
        uint32_t buf = t->decls[s->slot];
        if (s->shape[1])
            peal_assembler_set_cols(t->a, buf, (uint32_t)sizes.cols);
        peal_assembler_len(t->a, t->rank, buf, sizes.len);
        t->env[s->slot] = (struct binding){
            .bound = true,
            .buf = buf,
            .dtype = peal_inst_dtype(t, s->type.elem),
            .rows = sizes.rows,
            .cols = sizes.cols,
        };
    }
    if (!t->bind->in_place || !ends->x || !ends->y || ends->x == ends->y)
        return;
    bool x_part = peal_contract_gathers(ends->contract);
    if (peal_contract_parts_on_root(ends->contract) && t->rank != peal_assembler_header(t->a)->root)
        return;
    struct binding *x = &t->env[ends->x->slot], *y = &t->env[ends->y->slot];
    struct binding *part = y;
    if (x_part)
        part = x;
    const struct binding *whole = x;
    if (x_part)
        whole = y;
    part->buf = whole->buf;
    bool own_part = x_part || peal_contract_scatters(ends->contract);
    if (!own_part && length_of(part) != length_of(whole)) {
        peal_inst_exclude(t, PEAL_EXCLUDED);
        peal_inst_fail(t, ends->y->pos,
                       "in place, '%s' and '%s' are one buffer, but rank %u has %" PRIu64
                       " and %" PRIu64 " elements of them",
                       ends->x->name, ends->y->name, t->rank, length_of(whole), length_of(part));
        return;
    }
    part->own_part = own_part;
    part->whole = part->base = part->base_row = 0;
    if (whole->rows && own_part)
        part->base_row = t->rank;
    if (!whole->rows)
        part->whole = whole->cols;
    if (!whole->rows && own_part)
        part->base = peal_inst_part_start(t, t->rank, whole->cols);
}

bool peal_inst_sizes_on(struct instantiation *t, uint32_t rank, const struct peal_symbol *symbol,
                        struct sizes *out)
{
    uint32_t own = t->rank;
    bool found = true;
    for (int turn = 0; turn < 2; turn++) { /* to that rank, and back */
        t->rank = turn == 0 ? rank : own;
        for (int i = 0; i < t->kernel->nparams && rank != own; i++) {
            const struct peal_symbol *s = t->kernel->params[i];
            if (s->is_local && s->kind == PEAL_SYMBOL_INT)
                bind_int(t, s);
            else if (s->is_local && s->kind == PEAL_SYMBOL_INTS)
                bind_ints(t, s);
        }
        if (turn == 0)
            found = peal_inst_sizes(t, symbol, out);
    }
    return found && t->status == PEAL_OK;
}

/* Stores parameters in the plan as bound, for contracts and reports. */
static void record_params(struct instantiation *t)
{
    for (const struct peal_symbol *s = t->kernel->symbols; s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_DIM)
            peal_assembler_param(t->a, s->name, false, 1, &t->env[s->slot].value);
    }
    for (int i = 0; i < t->kernel->nparams; i++) {
        const struct peal_symbol *s = t->kernel->params[i];
        const struct binding *b = &t->env[s->slot];
        const struct peal_bind_value *value = find_value(t->bind, s->name);
        if (s->kind == PEAL_SYMBOL_INT && !s->is_local)
            peal_assembler_param(t->a, s->name, false, 1, &b->value);
        else if (s->kind == PEAL_SYMBOL_INTS && !s->is_local)
            peal_assembler_param(t->a, s->name, false, (uint32_t)b->array_len, b->array);
        else if (s->is_local && value) {
            bool all = value->all_ranks || t->bind->rank == PEAL_NONE;
            size_t at = 0;
            if (all && t->bind->rank != PEAL_NONE)
                at = t->bind->rank * value->count;
            peal_assembler_param(t->a, s->name, true, (uint32_t)value->count, value->values + at);
        }
    }
}

/* The placement is a uniform parameter too, with a name that no text can contain. */
static void record_placement(struct instantiation *t)
{
    const struct peal_node_map *p = &t->placement;
    int64_t *nodes = NULL;
    if (t->bind->nodes)
        nodes = malloc(p->nranks * sizeof *nodes);
    if (!t->bind->nodes)
        return;
    if (!nodes) {
        peal_inst_no_memory(t);
        return;
    }
    for (uint32_t r = 0; r < p->nranks; r++)
        nodes[r] = p->node[r];
    peal_assembler_placement(t->a, nodes);
    free(nodes);
}

/* Those of the text, then the bound one if it is new: see peal_bind_reduction. */
static void record_formulas(struct instantiation *t)
{
    for (uint32_t i = 0; i < t->kernel->nformulas; i++)
        peal_assembler_formula(t->a, &t->kernel->formulas[i]);
    uint32_t reduce = peal_assembler_header(t->a)->reduce;
    if (peal_reduce_is_user(reduce) && reduce - PEAL_USER_REDUCTION == t->kernel->nformulas)
        peal_assembler_formula(t->a, t->bind->formula);
}

static void fill_header(struct instantiation *t, const struct peal_ends *ends)
{
    struct peal_plan *h = peal_assembler_header(t->a);
    h->period = (uint32_t)(t->kernel->period > 0 ? t->kernel->period : 1);
    h->contract = ends->contract;
    if (ends->x)
        h->contract_in = t->decls[ends->x->slot];
    else
        h->contract_in = PEAL_NONE;
    if (ends->y)
        h->contract_out = t->decls[ends->y->slot];
    else
        h->contract_out = PEAL_NONE;
    h->dtype = t->bind->dtype;
    h->kernel = peal_assembler_string(t->a, t->kernel->name);
    for (int i = 0; i < t->kernel->nparams; i++) {
        const struct peal_symbol *s = t->kernel->params[i];
        if (s->kind == PEAL_SYMBOL_REDUCE)
            h->reduce = peal_bind_reduction(t->kernel, t->bind);
        if (s->kind == PEAL_SYMBOL_INT && strcmp(s->name, "root") == 0)
            h->root = (uint32_t)t->env[s->slot].value;
    }
}

void peal_inst_walk_rank(struct instantiation *t, bool first)
{
    const struct peal_ends *ends = &t->ends;
    memset(t->env, 0, (t->kernel->nslots + 1) * sizeof *t->env);
    t->lane = 0;
    t->lane_open = false;
    t->calls = 0;
    t->grid = (struct grid){0};
    bind_integers(t);
    if (first && t->status == PEAL_OK) {
        declare_params(t, ends);
        fill_header(t, ends);
        record_formulas(t);
        record_params(t);
        record_placement(t);
    }
    if (t->status != PEAL_OK)
        return;
    peal_assembler_rank_begin(t->a, t->rank);
    bind_buffers(t, ends);
    peal_inst_walk(t, t->kernel->body);
    if (!t->lane_open)
        peal_inst_lane_end(t);
}

/* Does a rank's part depend on what other ranks do, because of some statement in `body`? */
static bool needs_all(const struct peal_stmt *body, bool conditional, bool in_loop)
{
    for (const struct peal_stmt *s = body; s; s = s->next) {
        bool decl = s->kind == PEAL_STMT_DECL && (s->symbol->kind == PEAL_SYMBOL_SIGNAL ||
                                                  s->symbol->kind == PEAL_SYMBOL_BUFFER);
        if (decl && (conditional || (s->symbol->kind == PEAL_SYMBOL_SIGNAL &&
                                     s->symbol->mode == PEAL_MODE_SHARED)))
            return true;
        if (s->kind == PEAL_STMT_SCOPE && in_loop)
            return true;
        bool loop = s->kind == PEAL_STMT_FOR || s->kind == PEAL_STMT_FOR_PEERS;
        bool branch = s->kind == PEAL_STMT_IF || loop;
        if (needs_all(s->body, conditional || branch, in_loop || loop) ||
            needs_all(s->other, conditional || branch, in_loop || loop))
            return true;
    }
    return false;
}

/* Two calls that share a signal of the kernel see each other's counts. */
static bool has_two_scopes(const struct peal_stmt *body, int *scopes)
{
    for (const struct peal_stmt *s = body; s; s = s->next) {
        *scopes += s->kind == PEAL_STMT_SCOPE;
        if (*scopes > 1 || has_two_scopes(s->body, scopes) || has_two_scopes(s->other, scopes))
            return true;
    }
    return false;
}

bool peal_inst_is_alone(const struct peal_kernel *kernel)
{
    int scopes = 0;
    return !needs_all(kernel->body, false, false) && !has_two_scopes(kernel->body, &scopes);
}

static bool check_nodes(const struct peal_bind *bind, const struct peal_kernel *kernel,
                        struct peal_diags *diags)
{
    struct peal_node_map placement;
    if (!bind->nodes && !bind->cubes)
        return true;
    enum peal_status status =
        peal_placement_init(&placement, bind->nranks, bind->nodes, bind->cubes);
    if (status == PEAL_OK)
        peal_placement_release(&placement);
    else
        peal_diag_error(diags, kernel->pos,
                        status == PEAL_NO_MEMORY
                            ? "out of memory"
                            : "nodes, and the cubes of a node, are numbered 0, 1, 2, "
                              "... without gaps");
    return status == PEAL_OK;
}

bool peal_inst_check_bind(const struct peal_bind *bind, const struct peal_kernel *kernel,
                          struct peal_diags *diags)
{
    if (bind->nranks < 1 || bind->nranks > PEAL_PLAN_MAX_RANKS) {
        peal_diag_error(diags, kernel->pos, "%u ranks: a plan has 1 to %d", bind->nranks,
                        PEAL_PLAN_MAX_RANKS);
        return false;
    }
    if (bind->rank != PEAL_NONE && bind->rank >= bind->nranks) {
        peal_diag_error(diags, kernel->pos, "rank %u is not one of %u", bind->rank, bind->nranks);
        return false;
    }
    assert(kernel->deduced && kernel->lowered);
    assert(!peal_reduce_is_user(bind->reduce) ||
           (bind->formula && kernel->nformulas < PEAL_FORMULAS));
    return check_nodes(bind, kernel, diags);
}

void peal_inst_release(struct instantiation *t)
{
    peal_placement_release(&t->placement);
    free(t->env);
    free(t->decls);
    peal_lane_ops_release(&t->now);
    peal_lane_ops_release(&t->scratch);
    peal_vec_release(&t->tiles);
    peal_vec_release(&t->operands);
    peal_vec_release(&t->sources);
    peal_vec_release(&t->channel_uses);
    peal_vec_release(&t->posted);
    peal_vec_release(&t->launch_numbers);
    peal_vec_release(&t->launch_regs);
    peal_vec_release(&t->kinds);
    peal_vec_release(&t->stable);
}

/* A short text can ask for any number. What collectives need grows with the pairs of ranks. */
static uint64_t grow_with_pairs(uint64_t few, uint64_t each, uint32_t nranks)
{
    return few + each * nranks * nranks;
}

uint64_t peal_instantiate_max_ops(uint32_t nranks)
{
    const uint64_t max_ops = UINT64_C(1) << 27;
    uint64_t ops = grow_with_pairs(UINT64_C(1) << 21, 256, nranks);
    if (ops < max_ops)
        return ops;
    return max_ops;
}

uint64_t peal_instantiate_max_streamed(uint32_t nranks)
{
    return grow_with_pairs(UINT64_C(1) << 24, 1024, nranks);
}

uint64_t peal_instantiate_max_cells(uint32_t nranks)
{
    uint64_t cells = grow_with_pairs(UINT64_C(1) << 20, 64, nranks);
    if (cells < INT32_MAX)
        return cells;
    return INT32_MAX;
}

bool peal_inst_acquire(struct instantiation *t)
{
    const struct peal_bind *bind = t->bind;
    t->ends = peal_kernel_ends(t->kernel);
    if (peal_placement_init(&t->placement, bind->nranks, bind->nodes, bind->cubes) != PEAL_OK)
        return false; /* the numbers are right: peal_inst_check_bind has checked them */
    t->via = PEAL_NONE;
    if (bind->max_ops)
        t->max_ops = bind->max_ops;
    else
        t->max_ops = peal_instantiate_max_ops(bind->nranks);
    t->max_steps = t->max_ops * 4;
    t->env = calloc(t->kernel->nslots + 1, sizeof *t->env);
    t->decls = malloc((t->kernel->nslots + 1) * sizeof *t->decls);
    if (bind->rank != PEAL_NONE)
        t->a = peal_assembler_new(bind->nranks, bind->rank, 1);
    else
        t->a = peal_assembler_new(bind->nranks, 0, bind->nranks);
    if (!t->env || !t->decls || !t->a)
        return false;
    memset(t->decls, 0xff, (t->kernel->nslots + 1) * sizeof *t->decls); /* PEAL_NONE */
    if (bind->lenient)
        peal_assembler_allow_writers(t->a);
    peal_assembler_channel_shape(t->a, bind->channel_depth ? bind->channel_depth : 2,
                                 bind->slot_bytes);
    return true;
}

static enum peal_status make_whole_then_cut(const struct peal_kernel *kernel,
                                            const struct peal_bind *bind, struct peal_diags *diags,
                                            struct peal_plan **out)
{
    struct peal_bind all = *bind;
    struct peal_plan *whole;
    all.rank = PEAL_NONE;
    for (size_t i = 0; i < bind->nvalues; i++) {
        for (int k = 0; k < kernel->nparams; k++) {
            if (kernel->params[k]->is_local && !bind->values[i].all_ranks &&
                strcmp(kernel->params[k]->name, bind->values[i].name) == 0) {
                peal_diag_error(diags, kernel->params[k]->pos,
                                "one rank's part of '%s' needs the local '%s' of all ranks",
                                kernel->name, bind->values[i].name);
                return PEAL_INVALID;
            }
        }
    }
    enum peal_status status = peal_instantiate(kernel, &all, diags, &whole);
    if (status != PEAL_OK)
        return status;
    status = peal_plan_part(whole, bind->rank, out);
    free(whole);
    return status;
}

enum peal_status peal_instantiate(const struct peal_kernel *kernel, const struct peal_bind *bind,
                                  struct peal_diags *diags, struct peal_plan **out)
{
    struct instantiation t = {.kernel = kernel, .bind = bind, .diags = diags};
    if (!peal_inst_check_bind(bind, kernel, diags))
        return PEAL_INVALID;
    if (bind->rank != PEAL_NONE && !peal_inst_is_alone(kernel))
        return make_whole_then_cut(kernel, bind, diags, out);
    if (!peal_inst_acquire(&t)) {
        peal_inst_no_memory(&t);
        peal_assembler_free(t.a);
        peal_inst_release(&t);
        return PEAL_NO_MEMORY;
    }
    uint32_t first = 0, end = bind->nranks;
    if (bind->rank != PEAL_NONE) {
        first = bind->rank;
        end = bind->rank + 1;
    }
    for (t.rank = first; t.rank < end && t.status == PEAL_OK; t.rank++)
        peal_inst_walk_rank(&t, t.rank == first);
    peal_inst_patch_scopes(&t);
    enum peal_status status = t.status;
    if (status == PEAL_OK)
        status = peal_assembler_finish(t.a, diags, out);
    else
        peal_assembler_free(t.a);
    peal_inst_release(&t);
    return status;
}
