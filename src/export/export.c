/* SPDX-License-Identifier: Apache-2.0 */
/* Verify, write, read back, verify again; see export.h. */
#include "export/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const target_names[] = {"msccl", "mscclpp"};

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
    peal_text_release(&exported->text);
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
                if (op->kind == PEAL_OP_NOTIFY && op->sync.rank != r)
                    return true;
                for (uint32_t k = 0; !peal_op_is_sync(op) && k < peal_op_nrefs(op); k++) {
                    const struct peal_ref *ref = peal_plan_refs(plan) + op->mem.ref + k;
                    if (ref->buf < plan->bufs.count && ref->rank != r)
                        return true;
                }
            }
        }
    }
    return false;
}

/* The count that an import of the text has to be made for. */
static uint64_t count_of(const struct peal_plan *plan)
{
    bool gathers =
        plan->contract == PEAL_CONTRACT_ALLGATHER || plan->contract == PEAL_CONTRACT_GATHER;
    uint64_t x = peal_plan_len(plan, 0, plan->contract_in);
    uint64_t y = peal_plan_len(plan, 0, plan->contract_out);
    if (gathers || plan->contract == PEAL_CONTRACT_ALLREDUCE ||
        plan->contract == PEAL_CONTRACT_BROADCAST || plan->contract == PEAL_CONTRACT_REDUCE)
        return plan->contract_in == plan->contract_out && gathers ? y / plan->nranks : x;
    return plan->contract == PEAL_CONTRACT_ALL_TO_ALL ? x / plan->nranks : y;
}

/* The text as an engine would take it, verified. */
static enum peal_status read_back(const struct peal_plan *plan,
                                  const struct peal_verify_options *verify,
                                  struct peal_diags *diags, struct peal_exported *out)
{
    struct peal_source source = {"the exported text", peal_text_get(&out->text), out->text.len};
    struct peal_import *import = NULL;
    struct peal_plan *made = NULL;
    struct peal_import_options how = {
        .count = count_of(plan),
        .dtype = (enum peal_dtype)plan->dtype,
        .reduce = plan->reduce < PEAL_REDUCTIONS ? (enum peal_reduction)plan->reduce : PEAL_SUM,
        .has_root = plan->root < plan->nranks,
        .root = plan->root,
        .lenient = true};
    enum peal_status status = peal_import_open(&source, diags, &import);
    if (status == PEAL_OK)
        status = peal_import_plan(import, &how, diags, &made);
    if (status == PEAL_OK)
        status = peal_verify_plan(made, verify, &out->after);
    free(made);
    peal_import_close(import);
    return status;
}

static void say_why(const struct peal_verification *v, const char *what, struct peal_diags *diags)
{
    const char *why = v->why ? v->why : "";
    peal_diag_error(diags, (struct peal_pos){0}, "%s: %s%s%s", what,
                    v->verdict == PEAL_REFUTED ? peal_fault_name(v->fault)
                                               : peal_outcome_name(v->verdict),
                    *why ? ": " : "", why);
}

/* With the least FIFO depth first: Simple has 2 chunks in flight, LL has 8. */
static enum peal_status write_msccl(const struct peal_plan *plan,
                                    const struct peal_verify_options *verify,
                                    struct peal_diags *diags, struct peal_exported *out)
{
    static const char *const protos[] = {"Simple", "LL"};
    enum peal_status status = PEAL_INVALID;
    for (int i = 0; i < 2; i++) {
        peal_text_release(&out->text);
        peal_verification_free(out->after);
        out->after = NULL;
        if (!peal_msccl_write(plan, protos[i], diags, &out->text))
            return PEAL_INVALID;
        status = read_back(plan, verify, diags, out);
        if (status != PEAL_OK || out->after->verdict == PEAL_PROVED)
            return status;
    }
    return status;
}

enum peal_status peal_export(const struct peal_plan *plan, enum peal_target target,
                             const struct peal_verify_options *verify, struct peal_diags *diags,
                             struct peal_exported *out)
{
    struct peal_plan *sends = NULL;
    bool messages = target == PEAL_TARGET_MSCCL;
    *out = (struct peal_exported){.extension = messages ? "xml" : "json"};
    enum peal_status status = peal_verify_plan(plan, verify, &out->before);
    if (status != PEAL_OK)
        return status;
    if (out->before->verdict != PEAL_PROVED) {
        say_why(out->before, "the plan is not proved", diags);
        return PEAL_INVALID;
    }
    if (messages && reaches_peers(plan)) {
        status = peal_plan_use_sends(plan, diags, &sends);
        out->uses_sends = true;
    }
    if (status == PEAL_OK && messages)
        status = write_msccl(sends ? sends : plan, verify, diags, out);
    else if (status == PEAL_OK && peal_mscclpp_write(plan, diags, &out->text))
        status = read_back(plan, verify, diags, out);
    else if (status == PEAL_OK)
        status = PEAL_INVALID;
    free(sends);
    if (status == PEAL_OK && out->after->verdict != PEAL_PROVED) {
        say_why(out->after, "what was written is not proved when it is read back", diags);
        status = PEAL_INVALID;
    }
    if (status != PEAL_OK)
        peal_text_release(&out->text);
    return status;
}
