/* SPDX-License-Identifier: Apache-2.0 */
/* See shape.h. */
#include "comm/core/shape.h"

struct peal_call_shape peal_call_shape(enum peal_collective collective, uint64_t count,
                                       uint32_t size)
{
    const struct peal_contract_info *info =
        peal_contract_info(peal_collective_contract(collective));
    uint64_t all = count * size;
    struct peal_call_shape shape = {0};
    if (info->in == PEAL_SIDE_NONE)
        return shape;
    shape.in = peal_side_has_blocks(info->in) ? all : count;
    shape.out = peal_side_has_blocks(info->out) ? all : count;
    shape.n = peal_size_max(shape.in, shape.out);
    return shape;
}

static bool has_length(const struct peal_plan *plan, uint32_t buf, uint64_t wanted, uint32_t rank,
                       struct peal_text *why)
{
    uint64_t length = peal_plan_len(plan, rank, buf);
    if (length == wanted)
        return true;
    peal_text_printf(why, "'%s' of '%s' has %llu elements on rank %u, the call has %llu",
                     peal_plan_string(plan, peal_plan_bufs(plan)[buf].name),
                     peal_plan_string(plan, plan->kernel), (unsigned long long)length, rank,
                     (unsigned long long)wanted);
    return false;
}

bool peal_shape_fits(const struct peal_plan *plan, const struct peal_call_shape *shape,
                     uint32_t root, struct peal_text *why)
{
    const struct peal_contract_info *info = peal_contract_info((enum peal_contract)plan->contract);
    if (plan->contract_in == PEAL_NONE || plan->contract_out == PEAL_NONE ||
        info->in == PEAL_SIDE_NONE)
        return true;
    bool one = plan->contract_in == plan->contract_out;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        bool in = peal_side_is_here(info->in, r, root), out = peal_side_is_here(info->out, r, root);
        if (one && (in || out) && !has_length(plan, plan->contract_in, shape->n, r, why))
            return false;
        if (!one && in && !has_length(plan, plan->contract_in, shape->in, r, why))
            return false;
        if (!one && out && !has_length(plan, plan->contract_out, shape->out, r, why))
            return false;
    }
    return true;
}

void peal_call_arguments(const struct peal_kernel *kernel, const struct peal_call_shape *shape,
                         const int64_t *counts, const struct peal_bind *bind,
                         struct peal_plan_arg *out)
{
    for (int i = 0; i < kernel->nparams; i++) {
        out[i] = (struct peal_plan_arg){.kind = PEAL_GIVES_NOTHING};
        switch (peal_param_role(kernel, i)) {
        case PEAL_ROLE_INPUT:
            out[i] = (struct peal_plan_arg){.kind = PEAL_GIVES_BUFFER, .elements = shape->in};
            break;
        case PEAL_ROLE_OUTPUT:
            out[i] = (struct peal_plan_arg){.kind = PEAL_GIVES_BUFFER, .elements = shape->out};
            break;
        case PEAL_ROLE_BOTH:
            out[i] = (struct peal_plan_arg){.kind = PEAL_GIVES_BUFFER, .elements = shape->n};
            break;
        case PEAL_ROLE_REDUCE:
            out[i].kind = PEAL_GIVES_REDUCE;
            break;
        case PEAL_ROLE_ROOT:
            out[i] =
                (struct peal_plan_arg){.kind = PEAL_GIVES_INT, .values = &bind->root, .nvalues = 1};
            break;
        case PEAL_ROLE_COUNTS:
            out[i] = (struct peal_plan_arg){
                .kind = PEAL_GIVES_INTS, .values = counts, .nvalues = bind->nranks};
            break;
        case PEAL_ROLE_NONE:
        case PEAL_ROLE_SCRATCH:
        case PEAL_ROLE_DEFAULT:
            break;
        }
    }
}
