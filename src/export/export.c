/* SPDX-License-Identifier: Apache-2.0 */
/* Verify, write, read back, verify again; see export.h. */
#include "export/writer.h"

#include <inttypes.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const target_names[] = {"msccl", "mscclpp", "pto"};
static_assert(sizeof target_names / sizeof target_names[0] == PEAL_TARGETS, "a name per target");

bool peal_target_find(const char *name, enum peal_target *out)
{
    for (int i = 0; i < PEAL_TARGETS; i++) {
        if (strcmp(name, target_names[i]) == 0) {
            *out = (enum peal_target)i;
            return true;
        }
    }
    return false;
}

void peal_exported_release(struct peal_exported *exported)
{
    peal_text_release(&exported->name);
    for (uint32_t i = 0; i < PEAL_EXPORTED_FILES; i++)
        peal_text_release(&exported->files[i].text);
    peal_verification_free(exported->before);
    peal_verification_free(exported->after);
    *exported = (struct peal_exported){0};
}

/* Does any op touch another rank's memory? */
static bool reaches_peers(const struct peal_plan *plan)
{
    for (uint32_t r = 0; r < plan->nranks; r++) {
        for (uint32_t l = 0; l < peal_plan_lane_count(plan, r); l++) {
            const struct peal_lane *lane = peal_plan_lane(plan, r, l);
            for (uint64_t i = 0; i < lane->ops; i++) {
                const struct peal_op *op = &peal_plan_ops(plan)[lane->first_op + i];
                if (peal_op_is_notify(op) && op->sync.rank != r)
                    return true;
                if (peal_op_is_sync(op))
                    continue;
                for (uint32_t k = 0; k < peal_op_nrefs(op); k++) {
                    const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + k;
                    if (ref->buf < plan->bufs.count && ref->rank != r)
                        return true;
                }
            }
        }
    }
    return false;
}

/* None of the engines has fences, or orders for some lanes only. NULL: the plan has neither. */
static const struct peal_op *find_ordering(const struct peal_plan *plan)
{
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        const struct peal_op *op = peal_plan_ops(plan) + i;
        if (peal_op_is_fence(op) || peal_op_scope(op) != PEAL_SCOPE_SYSTEM)
            return op;
    }
    return NULL;
}

/* The count for which an import of the text has to be made. */
static uint64_t count_of(const struct peal_plan *plan)
{
    uint64_t x = peal_plan_len(plan, 0, plan->contract_in);
    uint64_t y = peal_plan_len(plan, 0, plan->contract_out);
    switch ((enum peal_contract)plan->contract) {
    case PEAL_CONTRACT_ALLREDUCE:
    case PEAL_CONTRACT_BROADCAST:
    case PEAL_CONTRACT_REDUCE:
        return x;
    case PEAL_CONTRACT_ALLGATHER:
    case PEAL_CONTRACT_GATHER:
        if (plan->contract_in == plan->contract_out)
            return y / plan->nranks;
        return x;
    case PEAL_CONTRACT_ALL_TO_ALL:
        return x / plan->nranks;
    default:
        return y;
    }
}

/* Imports and verifies the text, as an engine would use it. */
static enum peal_status read_back(const struct peal_plan *plan,
                                  const struct peal_verify_options *verify,
                                  struct peal_diags *diags, struct peal_exported *out)
{
    const struct peal_text *text = &out->files[0].text;
    struct peal_source source = {"the exported text", peal_text_get(text), text->len};
    struct peal_import *import = NULL;
    struct peal_plan *made = NULL;
    struct peal_import_options options = {
        .count = count_of(plan),
        .dtype = (enum peal_dtype)plan->dtype,
        .reduce = plan->reduce < PEAL_REDUCTIONS ? (enum peal_reduction)plan->reduce : PEAL_SUM,
        .has_root = plan->root < plan->nranks,
        .root = plan->root,
        .lenient = true};
    enum peal_status status = peal_import_open(&source, diags, &import);
    if (status == PEAL_OK)
        status = peal_import_plan(import, &options, diags, &made);
    if (status == PEAL_OK)
        status = peal_verify_plan(made, verify, &out->after);
    free(made);
    made = NULL;
    if (status == PEAL_OK && out->after->verdict == PEAL_PROVED &&
        peal_import_facts(import)->sends_pieces) {
        options.pieces = out->in_pieces = true;
        peal_verification_free(out->after);
        out->after = NULL;
        status = peal_import_plan(import, &options, diags, &made);
        if (status == PEAL_OK)
            status = peal_verify_plan(made, verify, &out->after);
        free(made);
    }
    peal_import_close(import);
    return status;
}

static void say_why(const struct peal_verification *v, const char *claim, struct peal_diags *diags)
{
    const char *name = peal_outcome_name(v->verdict);
    if (v->verdict == PEAL_REFUTED)
        name = peal_fault_name(v->fault);
    if (v->why && *v->why)
        peal_diag_error(diags, (struct peal_pos){0}, "%s: %s: %s", claim, name, v->why);
    else
        peal_diag_error(diags, (struct peal_pos){0}, "%s: %s", claim, name);
}

/* The protocol with the least FIFO depth first: Simple has 2 chunks in flight, LL has 8. */
static enum peal_status write_msccl(const struct peal_plan *plan,
                                    const struct peal_verify_options *verify,
                                    struct peal_diags *diags, struct peal_exported *out)
{
    static const char *const protos[] = {"Simple", "LL"};
    enum peal_status status = PEAL_INVALID;
    for (int i = 0; i < 2; i++) {
        peal_text_release(&out->files[0].text);
        peal_verification_free(out->after);
        out->after = NULL;
        out->in_pieces = false;
        if (!peal_msccl_write(plan, protos[i], diags, &out->files[0].text))
            return PEAL_INVALID;
        status = read_back(plan, verify, diags, out);
        if (status != PEAL_OK || out->after->verdict == PEAL_PROVED)
            return status;
    }
    return status;
}

static enum peal_status write_mscclpp(const struct peal_plan *plan,
                                      const struct peal_verify_options *verify,
                                      struct peal_diags *diags, struct peal_exported *out)
{
    if (!peal_mscclpp_write(plan, diags, &out->files[0].text))
        return PEAL_INVALID;
    return read_back(plan, verify, diags, out);
}

/* Launches follow each other there without a reset: that has to be proved too. */
static enum peal_status write_pto(const struct peal_plan *plan,
                                  const struct peal_verify_options *verify,
                                  struct peal_diags *diags, struct peal_exported *out)
{
    struct peal_plan *made = NULL;
    if (out->before->reuse < PEAL_REUSE_REPEATABLE) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "the plan is proved for one launch only, and nothing resets its cells");
        return PEAL_INVALID;
    }
    bool closed = out->before->reuse == PEAL_REUSE_CLOSED;
    if (!peal_pto_write(plan, peal_text_get(&out->name), closed, diags, out))
        return PEAL_INVALID;
    enum peal_status status = peal_pto_read_back(out, plan, diags, &made);
    if (status == PEAL_OK)
        status = peal_verify_plan(made, verify, &out->after);
    free(made);
    if (status == PEAL_OK && out->after->verdict == PEAL_PROVED &&
        out->after->reuse < out->before->reuse) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "what was written is proved when it is read back, but it is no longer '%s'",
                        peal_reuse_name(out->before->reuse));
        status = PEAL_INVALID;
    }
    return status;
}

/* MSCCL has only messages. */
static enum peal_status write_messages(const struct peal_plan *plan,
                                       const struct peal_verify_options *verify,
                                       struct peal_diags *diags, struct peal_exported *out)
{
    struct peal_plan *sends = NULL;
    enum peal_status status = PEAL_OK;
    if (reaches_peers(plan)) {
        status = peal_plan_use_sends(plan, diags, &sends);
        out->uses_sends = true;
    }
    if (status == PEAL_OK)
        status = write_msccl(sends ? sends : plan, verify, diags, out);
    free(sends);
    return status;
}

/* A name for files and for C++, with letters, digits and '_' only. It may come from a user's
 * file. */
static void choose_name(const struct peal_plan *plan, bool identifier, struct peal_text *out)
{
    const char *name = peal_plan_string(plan, plan->kernel);
    if (!*name || (identifier && *name >= '0' && *name <= '9'))
        peal_text_puts(out, "k");
    for (const char *c = name; *c && out->len < 100; c++) {
        bool word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                    (*c >= '0' && *c <= '9') || *c == '_';
        bool dot = !identifier && c > name && (*c == '.' || *c == '-');
        peal_text_add(out, word || dot ? c : "_", 1);
    }
}

static void forget(struct peal_exported *out)
{
    for (uint32_t i = 0; i < PEAL_EXPORTED_FILES; i++)
        peal_text_release(&out->files[i].text);
    out->nfiles = 0;
}

/* The user-defined reduction that some op applies, or NULL. */
static const struct peal_formula *find_formula(const struct peal_plan *plan)
{
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        const struct peal_op *op = &peal_plan_ops(plan)[i];
        if (peal_op_is_compute(op) && peal_fn_is_user(op->fn))
            return peal_plan_formula(plan, op->fn);
    }
    return peal_plan_reduction(plan);
}

enum peal_status peal_export(const struct peal_plan *plan, enum peal_target target,
                             const struct peal_verify_options *verify, struct peal_diags *diags,
                             struct peal_exported *out)
{
    *out = (struct peal_exported){.nfiles = 1};
    out->files[0].ending = target == PEAL_TARGET_MSCCL ? ".xml" : ".json";
    choose_name(plan, target == PEAL_TARGET_PTO, &out->name);
    const struct peal_formula *formula = find_formula(plan);
    if (formula) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "'%s' is a user-defined reduction, which no other engine has",
                        formula->name);
        return PEAL_INVALID;
    }
    const struct peal_op *ordering = find_ordering(plan);
    if (ordering) {
        struct peal_pos pos = {0};
        if (ordering->pos != PEAL_NONE) {
            pos.line = peal_plan_positions(plan)[ordering->pos].line;
            pos.col = peal_plan_positions(plan)[ordering->pos].col;
        }
        peal_diag_error(diags, (struct peal_pos){0},
                        "line %u: a fence, or an order for a block or device only, is nothing that "
                        "this engine's "
                        "files can say; give the operations on cells their own order",
                        pos.line);
        return PEAL_INVALID;
    }
    enum peal_status status = peal_verify_plan(plan, verify, &out->before);
    if (status != PEAL_OK)
        return status;
    if (out->before->verdict != PEAL_PROVED) {
        say_why(out->before, "the plan is not proved", diags);
        return PEAL_INVALID;
    }
    if (target == PEAL_TARGET_MSCCL)
        status = write_messages(plan, verify, diags, out);
    else if (target == PEAL_TARGET_MSCCLPP)
        status = write_mscclpp(plan, verify, diags, out);
    else
        status = write_pto(plan, verify, diags, out);
    if (status == PEAL_OK && out->after->verdict != PEAL_PROVED) {
        say_why(out->after, "what was written is not proved when it is read back", diags);
        if (out->in_pieces)
            peal_diag_note(diags, (struct peal_pos){0},
                           "large calls send a step's chunks one by one; a --count that the ranks "
                           "divide gives steps of fewer chunks");
        status = PEAL_INVALID;
    }
    if (status != PEAL_OK)
        forget(out);
    return status;
}
