/* SPDX-License-Identifier: Apache-2.0 */
/* A claim's answers copied into a public verdict.
 *
 * A verdict is one arena: `struct owned_verdict` holds the arena and begins with the public struct, so that
 * the owner is known from the pointer that the caller has. Everything is copied, so that verdict and
 * claim have nothing to do with each other afterwards. Lists are arrays of pointers, because the
 * structs may grow. Out of memory is sticky: `failed` is checked once, at the end.
 */
#include "comm/verdict.h"

#include <stdlib.h>
#include <string.h>

struct owned_verdict {
    struct peal_verdict public;
    struct peal_arena arena;
    bool failed;
};

struct peal_verdict *peal_verdict_new(void)
{
    struct owned_verdict *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    peal_arena_init(&v->arena, 0);
    v->public = (struct peal_verdict){.struct_size = sizeof v->public,
                                      .outcome = PEAL_UNDECIDED,
                                      .why = "",
                                      .text = "",
                                      .kernel = ""};
    return &v->public;
}

void peal_verdict_free(struct peal_verdict *verdict)
{
    if (!verdict)
        return;
    struct owned_verdict *v = (struct owned_verdict *)verdict;
    peal_arena_release(&v->arena);
    free(v);
}

static void *allocate(struct owned_verdict *v, size_t bytes)
{
    void *at = peal_arena_alloc(&v->arena, bytes ? bytes : 1);
    if (at)
        memset(at, 0, bytes);
    else
        v->failed = true;
    return at;
}

#define NEW(v, type) ((type *)allocate(v, sizeof(type)))

/* NULL stays NULL. */
static const char *copy(struct owned_verdict *v, const char *text)
{
    if (!text)
        return NULL;
    const char *at = peal_arena_copy(&v->arena, text, strlen(text));
    if (!at)
        v->failed = true;
    if (at)
        return at;
    return "";
}

static struct peal_verdict_place copy_place(struct owned_verdict *v,
                                            const struct peal_verify_place *from)
{
    const char *file = peal_text_or_empty(from->file);
    return (struct peal_verdict_place){copy(v, file), from->line, from->col, from->len};
}

/* ---- steps ---- */

static struct peal_verdict_operand *copy_operand(struct owned_verdict *v,
                                                 const struct peal_plan *plan,
                                                 const struct peal_op *op, uint32_t i,
                                                 uint32_t launch)
{
    struct peal_verdict_operand *out = NEW(v, struct peal_verdict_operand);
    const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + i;
    struct peal_op seen = peal_op_of_operand(op, i);
    if (!out)
        return NULL;
    *out = (struct peal_verdict_operand){.struct_size = sizeof *out,
                                         .writes = peal_op_writes(op, i),
                                         .rank = ref->rank,
                                         .elements = seen.mem.count * seen.mem.rows};
    if (ref->buf == PEAL_BUF_CONST || ref->buf == PEAL_BUF_SLOT) {
        out->rank = PEAL_VERDICT_NONE;
        return out;
    }
    const struct peal_buf *buf = &peal_plan_bufs(plan)[ref->buf];
    uint64_t bytes = peal_ref_offset(plan, ref, launch);
    out->buffer = copy(v, peal_plan_string(plan, buf->name));
    out->first_element =
        (uint64_t)ref->row * buf->cols + bytes / peal_dtype_size((enum peal_dtype)ref->dtype);
    return out;
}

static void copy_operands(struct owned_verdict *v, const struct peal_plan *plan,
                          const struct peal_op *op, struct peal_verdict_step *out)
{
    uint32_t count = peal_op_nrefs(op);
    const struct peal_verdict_operand **list = allocate(v, count * sizeof *list);
    if (!list)
        return;
    for (uint32_t i = 0; i < count; i++)
        list[i] = copy_operand(v, plan, op, i, out->launch);
    out->operands = list;
    out->noperands = count;
}

static void copy_cell(struct owned_verdict *v, const struct peal_plan *plan,
                      const struct peal_op *op, struct peal_verdict_step *out)
{
    const struct peal_signal *signal = &peal_plan_signals(plan)[peal_op_signal(op)];
    out->signal = copy(v, peal_plan_string(plan, signal->name));
    out->index = peal_op_cell(plan, op, out->launch) - signal->first_cell;
    out->cell_rank = op->sync.rank;
    out->value = op->sync.value;
}

/* What the plan knows about the step; nothing for the caller's own accesses between launches. */
static void copy_op(struct owned_verdict *v, const struct peal_plan *plan,
                    struct peal_verdict_step *out)
{
    out->kind = "";
    if (!plan || out->op == PEAL_NONE)
        return;
    const struct peal_lane *lane = peal_plan_lane(plan, out->rank, out->lane);
    const struct peal_op *op = &peal_plan_ops(plan)[lane->first_op + out->op];
    out->kind = peal_op_info((enum peal_op_kind)op->kind)->name;
    if (peal_op_is_sync(op))
        copy_cell(v, plan, op, out);
    else
        copy_operands(v, plan, op, out);
}

static void copy_steps(struct owned_verdict *v, const struct peal_claim *claim,
                       const struct peal_claim_task *task, struct peal_counterexample *out)
{
    const struct peal_verification *answer = task->answer;
    const struct peal_verdict_step **list = allocate(v, answer->nsteps * sizeof *list);
    if (!list)
        return;
    for (uint32_t i = 0; i < answer->nsteps; i++) {
        const struct peal_verify_step *from = &answer->steps[i];
        struct peal_verdict_step *step = NEW(v, struct peal_verdict_step);
        if (!step)
            return;
        *step = (struct peal_verdict_step){.struct_size = sizeof *step,
                                           .launch = from->launch,
                                           .rank = from->rank,
                                           .lane = from->lane,
                                           .op = from->op,
                                           .text = copy(v, from->text),
                                           .place = copy_place(v, &from->place),
                                           .index = PEAL_VERDICT_NONE,
                                           .cell_rank = PEAL_VERDICT_NONE,
                                           .before = from->before,
                                           .after = from->after,
                                           .waits_for = from->waits_for,
                                           .collides = from->collides,
                                           .blocked = from->blocked};
        copy_op(v, peal_claim_plan(claim, task, from->launch), step);
        list[i] = step;
    }
    out->steps = list;
    out->nsteps = answer->nsteps;
}

/* ---- what the steps lead to ---- */

static void copy_accesses(struct owned_verdict *v, const struct peal_verification *answer,
                          struct peal_counterexample *out)
{
    const struct peal_verdict_access **list = allocate(v, answer->naccesses * sizeof *list);
    if (!list)
        return;
    for (uint32_t i = 0; i < answer->naccesses; i++) {
        const struct peal_verify_access *from = &answer->accesses_at[i];
        struct peal_verdict_access *access = NEW(v, struct peal_verdict_access);
        if (!access)
            return;
        *access = (struct peal_verdict_access){.struct_size = sizeof *access,
                                               .step = from->step,
                                               .writes = from->writes,
                                               .buffer = copy(v, from->buf),
                                               .rank = from->rank,
                                               .first_byte = from->first_byte,
                                               .bytes = from->bytes,
                                               .first_element = from->first_element,
                                               .elements = from->elements};
        list[i] = access;
    }
    out->accesses = list;
    out->naccesses = answer->naccesses;
}

static void copy_waits(struct owned_verdict *v, const struct peal_verification *answer,
                       struct peal_counterexample *out)
{
    const struct peal_verdict_wait **list = allocate(v, answer->nwaits * sizeof *list);
    if (!list)
        return;
    for (uint32_t i = 0; i < answer->nwaits; i++) {
        const struct peal_verify_wait *from = &answer->waits[i];
        struct peal_verdict_wait *wait = NEW(v, struct peal_verdict_wait);
        uint32_t *notifiers = allocate(v, from->nnotifiers * sizeof *notifiers);
        if (!wait || !notifiers)
            return;
        if (from->nnotifiers)
            memcpy(notifiers, from->notifiers, from->nnotifiers * sizeof *notifiers);
        *wait = (struct peal_verdict_wait){.struct_size = sizeof *wait,
                                           .step = from->step,
                                           .launch = from->launch,
                                           .rank = from->rank,
                                           .lane = from->lane,
                                           .cell = copy(v, from->cell),
                                           .relation = copy(v, from->relation),
                                           .expected = from->expected,
                                           .actual = from->actual,
                                           .notifiers = notifiers,
                                           .nnotifiers = from->nnotifiers,
                                           .in_cycle = from->in_cycle};
        list[i] = wait;
    }
    out->waits = list;
    out->nwaits = answer->nwaits;
}

static void copy_wrong(struct owned_verdict *v, const struct peal_verify_wrong *from,
                       struct peal_counterexample *out)
{
    struct peal_verdict_wrong *wrong = from->buf ? NEW(v, struct peal_verdict_wrong) : NULL;
    if (!wrong)
        return;
    *wrong = (struct peal_verdict_wrong){.struct_size = sizeof *wrong,
                                         .launch = from->launch,
                                         .rank = from->rank,
                                         .buffer = copy(v, from->buf),
                                         .first_element = from->first_element,
                                         .elements = from->elements,
                                         .expected = copy(v, from->expected),
                                         .obtained = copy(v, from->obtained)};
    out->wrong = wrong;
}

static const struct peal_counterexample *copy_counterexample(struct owned_verdict *v,
                                                             const struct peal_claim *claim,
                                                             const struct peal_claim_task *task)
{
    const struct peal_verification *answer = task->answer;
    struct peal_counterexample *out = NEW(v, struct peal_counterexample);
    if (!out)
        return NULL;
    *out = (struct peal_counterexample){.struct_size = sizeof *out,
                                        .fault = answer->fault,
                                        .why = copy(v, peal_text_or_empty(answer->why)),
                                        .nranks = answer->nranks,
                                        .launches = answer->launches,
                                        .count = (uint64_t)task->count,
                                        .sequence = copy(v, task->launched)};
    copy_steps(v, claim, task, out);
    copy_accesses(v, answer, out);
    copy_waits(v, answer, out);
    copy_wrong(v, &answer->wrong, out);
    return out;
}

/* ---- the whole ---- */

static void copy_text(struct owned_verdict *v, const struct peal_claim_task *failure)
{
    struct peal_text text = {0};
    if (failure->launched)
        peal_text_printf(&text, "launched with %s:\n", failure->launched);
    peal_verification_explain(failure->answer, &text);
    v->failed = v->failed || text.failed;
    v->public.text = copy(v, peal_text_get(&text));
    peal_text_release(&text);
}

enum peal_status peal_verdict_add_diags(struct peal_verdict *verdict,
                                        const struct peal_diags *diags)
{
    struct owned_verdict *v = (struct owned_verdict *)verdict;
    const struct peal_verdict_error **list = allocate(v, diags->list.len * sizeof *list);
    struct peal_text text = {0};
    size_t count = 0;
    if (!list)
        return PEAL_NO_MEMORY;
    for (size_t i = 0; i < diags->list.len; i++) {
        const struct peal_diag *from = &diags->list.at[i];
        struct peal_verdict_error *error = NEW(v, struct peal_verdict_error);
        if (!error)
            return PEAL_NO_MEMORY;
        const char *file = from->pos.source ? from->pos.source->name : "";
        *error = (struct peal_verdict_error){
            .struct_size = sizeof *error,
            .place = {copy(v, file), from->pos.line, from->pos.col, from->pos.len},
            .message = copy(v, from->message)};
        list[count++] = error;
    }
    verdict->errors = list;
    verdict->nerrors = count;
    verdict->why = "";
    if (count)
        verdict->why = list[0]->message;
    peal_diags_print(diags, false, &text);
    verdict->text = copy(v, peal_text_get(&text));
    peal_text_release(&text);
    if (v->failed)
        return PEAL_NO_MEMORY;
    return PEAL_OK;
}

static enum peal_bits bits_of(const struct peal_claim_sum *sum)
{
    if (!sum->bits_known)
        return PEAL_BITS_UNKNOWN;
    if (sum->bits_same)
        return PEAL_BITS_SAME;
    return PEAL_BITS_DIFFERENT;
}

enum peal_status peal_verdict_fill(struct peal_verdict *verdict, const struct peal_claim *claim,
                                   const struct peal_claim_sum *sum)
{
    struct owned_verdict *v = (struct owned_verdict *)verdict;
    const struct peal_claim_task *failure = peal_claim_failure(claim);
    verdict->outcome = peal_claim_verdict(sum);
    verdict->kernel = copy(v, peal_request_name(&claim->request));
    verdict->proved = sum->proved;
    verdict->refuted = sum->refuted;
    verdict->undecided = sum->undecided;
    verdict->no_plan = sum->no_plan;
    verdict->sequences = sum->sequences;
    verdict->all_sequences = sum->all_sequences;
    verdict->two_only = sum->two_only;
    verdict->max_launches = sum->launches;
    verdict->reuse = PEAL_REUSE_NONE;
    if (sum->proved && !sum->refuted)
        verdict->reuse = sum->reuse;
    verdict->bits = bits_of(sum);
    verdict->least_depth = sum->least_depth;
    verdict->ops = sum->ops;
    verdict->milliseconds = sum->ms;
    verdict->operations = peal_claim_operations(claim);
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *task = &claim->tasks[i];
        bool has_none = !task->answer && task->status == PEAL_INVALID;
        if (has_none && !verdict->nerrors && peal_verdict_add_diags(verdict, &task->diags))
            return PEAL_NO_MEMORY;
    }
    if (failure) {
        verdict->why = copy(v, peal_text_or_empty(failure->answer->why));
        copy_text(v, failure);
    }
    if (failure && failure->answer->verdict == PEAL_REFUTED)
        verdict->counterexample = copy_counterexample(v, claim, failure);
    if (v->failed)
        return PEAL_NO_MEMORY;
    return PEAL_OK;
}
