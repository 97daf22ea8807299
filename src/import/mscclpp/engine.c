/* SPDX-License-Identifier: Apache-2.0 */
/* What MSCCL++'s executor will do with a plan: its limits, and where it does not do what the plan
 * says. Facts as of its public sources, see docs/formats.md. */
#include "import/mscclpp/mscclpp.h"

#include <string.h>

enum { MAX_OPS = 64, MAX_CHANNELS = 16 };

static void judge_op(const struct peal_import *import, const struct mscclpp_op *op,
                     struct peal_findings *out, bool *swapped)
{
    uint64_t pairs = 0;
    if (op->name == MPP_GET)
        pairs = peal_size_min(op->nsrc, op->ndst);
    for (uint32_t i = 0; i < pairs; i++) {
        if (op->src[i].index == op->dst[i].index || *swapped)
            continue;
        *swapped = true;
        peal_finding_add(out, PEAL_FINDING_WARNING, "mscclpp-get",
                         (struct peal_pos){import->source, op->line, op->col, 1},
                         "the executor swaps the two offsets of a get: it does what is meant only "
                         "where both indices are equal");
    }
    for (uint32_t i = 0; i < op->ninner; i++)
        judge_op(import, &op->inner[i], out, swapped);
}

/* What the executor assumes. */
static void judge_shape(const struct peal_import *import, struct peal_findings *out)
{
    const struct mscclpp_plan *plan = import->mscclpp;
    if (plan->disorder_line)
        peal_finding_add(
            out, PEAL_FINDING_WARNING, "mscclpp-order",
            (struct peal_pos){import->source, plan->disorder_line, plan->disorder_col, 1},
            "gpus and thread blocks are taken by their place in the list: this one is "
            "not where its id says");
    for (uint32_t r = 0; r < plan->nranks; r++) {
        const struct mscclpp_gpu *gpu = &plan->gpus[r];
        if (gpu->input_chunks && gpu->output_chunks)
            continue;
        peal_finding_add(out, PEAL_FINDING_WARNING, "mscclpp-chunks",
                         (struct peal_pos){import->source, gpu->line, gpu->col, 1},
                         "gpu %u has no %s chunks: newer executors divide by that number", r,
                         gpu->input_chunks ? "output" : "input");
        return;
    }
}

struct peal_pos peal_mscclpp_rank_pos(const struct peal_import *import, uint32_t rank)
{
    const struct mscclpp_gpu *gpu = &import->mscclpp->gpus[rank];
    return (struct peal_pos){import->source, gpu->line, gpu->col, 1};
}

void peal_mscclpp_judge(const struct peal_import *import, uint32_t least_depth,
                        struct peal_findings *out)
{
    (void)least_depth; /* its channels are not FIFOs */
    const struct mscclpp_plan *plan = import->mscclpp;
    bool swapped = false, many_ops = false, many_channels = false;
    judge_shape(import, out);
    for (uint32_t r = 0; r < plan->nranks; r++) {
        const struct mscclpp_gpu *gpu = &plan->gpus[r];
        for (uint32_t t = 0; t < gpu->ntbs; t++) {
            const struct mscclpp_tb *tb = &gpu->tbs[t];
            struct peal_pos pos = {import->source, tb->line, tb->col, 1};
            uint32_t ops = tb->nops;
            for (uint32_t i = 0; i < tb->nops; i++) {
                ops += tb->ops[i].ninner;
                many_channels = many_channels || tb->ops[i].nchannels > MAX_CHANNELS;
                judge_op(import, &tb->ops[i], out, &swapped);
            }
            if (ops > MAX_OPS && !many_ops)
                peal_finding_add(out, PEAL_FINDING_WARNING, "mscclpp-ops", pos,
                                 "%u ops in thread block %u of gpu %u: the executor takes %d", ops,
                                 t, r, MAX_OPS);
            many_ops = many_ops || ops > MAX_OPS;
        }
    }
    if (many_channels)
        peal_finding_add(out, PEAL_FINDING_WARNING, "mscclpp-channels",
                         (struct peal_pos){import->source, plan->line, plan->col, 1},
                         "an op of more than %d channels: the executor takes %d", MAX_CHANNELS,
                         MAX_CHANNELS);
    if (plan->max_bytes < plan->min_bytes)
        peal_finding_add(out, PEAL_FINDING_WARNING, "mscclpp-never-chosen",
                         (struct peal_pos){import->source, plan->line, plan->col, 1},
                         "max_message_size is below min_message_size: no message fits");
}
