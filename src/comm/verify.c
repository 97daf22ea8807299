/* SPDX-License-Identifier: Apache-2.0 */
/* peal_verify: arguments from outside become a claim, its answers a verdict (verdict.h). */
#include "comm/verdict.h"

#include "comm/core/growth.h"
#include "lang/lang.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_VALUES = 65536 /* numbers of ranks, counts, values of one parameter */
};

static_assert(offsetof(struct peal_verify_args, nodes) == PEAL_VERIFY_ARGS_FIRST_BYTES,
              "0.2.0 has what stands before");

struct question {
    struct peal_verify_args args; /* with zeroes for what the caller does not know */
    struct peal_program *program;
    struct peal_claim claim;
    struct peal_formula formula; /* of the arguments */
    struct peal_diags diags;
    struct peal_arena arena;
};

static enum peal_status read_args(const struct peal_verify_args *args, struct question *q)
{
    size_t given = peal_growth_size(args->struct_size, PEAL_VERIFY_ARGS_FIRST_BYTES);
    bool has_kernel = given >= offsetof(struct peal_verify_args, kernel);
    if (has_kernel && peal_growth_read(&q->args, sizeof q->args, args, given))
        return PEAL_OK;
    peal_diag_error(&q->diags, (struct peal_pos){0},
                    "the arguments have %zu bytes: too few, or set members that this version does "
                    "not know; see peal_verify_args_init",
                    given);
    return PEAL_INVALID;
}

static enum peal_status refuse(struct question *q, const char *problem, uint64_t value)
{
    peal_diag_error(&q->diags, (struct peal_pos){0}, "%s: %llu", problem,
                    (unsigned long long)value);
    return PEAL_INVALID;
}

static enum peal_status check_args(struct question *q)
{
    const struct peal_verify_args *a = &q->args;
    if (a->nranks > MAX_VALUES || (a->nranks && !a->ranks))
        return refuse(q, "bad list of numbers of ranks", a->nranks);
    if (a->ncounts > MAX_VALUES || (a->ncounts && !a->counts))
        return refuse(q, "bad list of counts", a->ncounts);
    if (a->nvalues > MAX_VALUES || (a->nvalues && !a->values))
        return refuse(q, "bad list of values", a->nvalues);
    if ((unsigned)a->dtype >= PEAL_DTYPES)
        return refuse(q, "no such data type", (unsigned)a->dtype);
    if ((unsigned)a->op >= PEAL_REDUCTIONS)
        return refuse(q, "no such operation", (unsigned)a->op);
    for (size_t i = 0; i < a->nranks; i++) {
        if (a->ranks[i] < 1 || a->ranks[i] > PEAL_PLAN_MAX_RANKS)
            return refuse(q, "no such number of ranks", a->ranks[i]);
    }
    if (a->pairwise && a->advice)
        return refuse(q, "advice is for the order of windows only, not pairwise", 1);
    if (a->nodes && (a->nranks != 1 || a->nnodes != a->ranks[0]))
        return refuse(q, "nodes are given for one number of ranks, a node for each; not for",
                      a->nnodes);
    for (size_t i = 0; i < a->ncounts; i++) {
        if (a->counts[i] > INT64_MAX)
            return refuse(q, "no such count", a->counts[i]);
    }
    for (size_t i = 0; i < a->nvalues; i++) {
        const struct peal_verify_value *v = &a->values[i];
        if (!v->name || !v->values || v->count < 1 || v->count > MAX_VALUES)
            return refuse(q, "bad value", i);
    }
    return PEAL_OK;
}

static enum peal_status load(struct question *q)
{
    const struct peal_verify_args *a = &q->args;
    const char *name = a->file ? a->file : "text";
    if ((a->text || a->file) ? a->library != NULL : a->library == NULL) {
        peal_diag_error(&q->diags, (struct peal_pos){0},
                        "one of 'text', 'file' and 'library' names the kernel");
        return PEAL_INVALID;
    }
    enum peal_status status = PEAL_OK;
    if (a->text)
        status = peal_program_text(name, a->text, strlen(a->text), &q->diags, &q->program);
    else if (a->file)
        status = peal_program_file(a->file, &q->diags, &q->program);
    else
        status = peal_program_builtin(a->library, &q->diags, &q->program);
    if (status != PEAL_OK)
        return status;
    q->claim.request.kernel = peal_program_kernel(q->program, a->kernel, &q->diags);
    if (q->claim.request.kernel)
        return PEAL_OK;
    return PEAL_INVALID;
}

static enum peal_status take_reduction(struct question *q)
{
    struct peal_bind *bind = &q->claim.request.bind;
    bind->reduce = q->args.op;
    if (!q->args.reduction)
        return PEAL_OK;
    struct peal_text why = {0};
    enum peal_status status =
        peal_formula_given(q->claim.request.kernel, q->args.reduction, &q->formula, &why);
    if (status != PEAL_OK)
        peal_diag_error(&q->diags, (struct peal_pos){0}, "%s", peal_text_get(&why));
    peal_text_release(&why);
    bind->reduce = PEAL_USER_REDUCTION;
    bind->formula = &q->formula;
    return status;
}

/* The lists, in the types of a claim. Empty ones are left to it. */
static enum peal_status make_lists(struct question *q)
{
    const struct peal_verify_args *a = &q->args;
    size_t nranks = a->nranks, ncounts = a->ncounts;
    int64_t *ranks = peal_arena_alloc(&q->arena, nranks * sizeof *ranks);
    int64_t *counts = peal_arena_alloc(&q->arena, ncounts * sizeof *counts);
    struct peal_bind_value *given = peal_arena_alloc(&q->arena, (a->nvalues + 1) * sizeof *given);
    if (!ranks || !counts || !given)
        return PEAL_NO_MEMORY;
    for (size_t i = 0; i < nranks; i++)
        ranks[i] = a->ranks[i];
    for (size_t i = 0; i < ncounts; i++)
        counts[i] = (int64_t)a->counts[i];
    for (size_t i = 0; i < a->nvalues; i++)
        given[i] = (struct peal_bind_value){a->values[i].name, a->values[i].values,
                                            a->values[i].count, false};
    q->claim.ranks = ranks;
    q->claim.nranks = nranks;
    q->claim.counts = counts;
    q->claim.ncounts = ncounts;
    q->claim.request.given = given;
    q->claim.request.ngiven = a->nvalues;
    return PEAL_OK;
}

static void make_claim(struct question *q)
{
    const struct peal_verify_args *a = &q->args;
    struct peal_claim *claim = &q->claim;
    claim->request.bind.dtype = a->dtype;
    claim->request.bind.root = a->root;
    claim->request.bind.in_place = a->in_place;
    claim->request.bind.nodes = a->nodes;
    claim->request.bind.channel_depth = a->depth;
    claim->request.bind.slot_bytes = a->slot_bytes;
    claim->request.bind.no_fuse =
        a->advice; /* as peal verify --advice: a place between any lines */
    claim->verify.launches = a->launches;
    claim->verify.max_states = a->max_states;
    claim->verify.max_bytes = a->max_bytes;
    claim->verify.advice = a->advice;
    claim->verify.pairwise = a->pairwise;
    claim->alone = a->alone || a->launches == 1;
    claim->keep_plans = true; /* steps are looked up in them */
    claim->workers = a->threads;
    claim->cache = a->advice ? NULL : a->cache;
}

static enum peal_status ask(const struct peal_verify_args *args, struct question *q,
                            struct peal_verdict *verdict)
{
    struct peal_claim_sum sum;
    enum peal_status status = read_args(args, q);
    if (status == PEAL_OK)
        status = check_args(q);
    if (status == PEAL_OK)
        status = load(q);
    if (status == PEAL_OK)
        status = take_reduction(q);
    if (status == PEAL_OK)
        status = make_lists(q);
    if (status != PEAL_OK)
        return status;
    make_claim(q);
    status = peal_claim_prove(&q->claim, &sum);
    if (status != PEAL_OK && status != PEAL_INVALID)
        return status;
    if (status == PEAL_OK && q->args.advice)
        peal_claim_judge_advice(&q->claim);
    bool open = q->args.op == PEAL_SUM && !q->args.reduction && !q->args.advice;
    if (status == PEAL_OK && open)
        status = peal_claim_try_operations(&q->claim);
    const struct peal_claim *shown = peal_claim_shown(&q->claim);
    sum = peal_claim_add_up(shown);
    enum peal_status filled = peal_verdict_fill(verdict, shown, &sum);
    if (filled == PEAL_OK)
        return status;
    return filled;
}

enum peal_status peal_verify(const struct peal_verify_args *args, struct peal_verdict **out)
{
    struct question q = {0};
    if (!out)
        return PEAL_INVALID;
    *out = NULL;
    if (!args)
        return PEAL_INVALID;
    struct peal_verdict *verdict = peal_verdict_new();
    if (!verdict)
        return PEAL_NO_MEMORY;
    peal_diags_init(&q.diags);
    peal_arena_init(&q.arena, 0);
    enum peal_status status = ask(args, &q, verdict);
    if (status == PEAL_INVALID && q.diags.list.len &&
        peal_verdict_add_diags(verdict, &q.diags) != PEAL_OK)
        status = PEAL_NO_MEMORY;
    peal_claim_release(&q.claim);
    peal_diags_release(&q.diags);
    peal_program_close(q.program);
    peal_arena_release(&q.arena);
    if (status == PEAL_OK || status == PEAL_INVALID)
        *out = verdict;
    else
        peal_verdict_free(verdict);
    return status;
}
