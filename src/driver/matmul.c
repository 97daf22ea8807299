/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in function `matmul`: c = a b, or c += a b, row by row. */
#include "driver/state/state.h"

#include "compute/compute.h"
#include "sim/sim.h"

struct matmul_sizes {
    uint64_t m, k, n;
};

/* a[m,k] b[k,n] c[m,n]; false: they do not fit. */
static bool find_sizes(const struct peal_function_arg *args, struct matmul_sizes *out)
{
    const struct peal_function_arg *a = &args[0], *b = &args[1], *c = &args[2];
    if (a->ndims != 2 || b->ndims != 2 || c->ndims != 2)
        return false;
    *out = (struct matmul_sizes){a->shape[0], a->shape[1], b->shape[1]};
    return b->shape[0] == out->k && c->shape[0] == out->m && c->shape[1] == out->n &&
           a->dtype == b->dtype && b->dtype == c->dtype &&
           (a->dtype == PEAL_F32 || a->dtype == PEAL_F64) && out->m < INT32_MAX &&
           out->k < INT32_MAX && out->n < INT32_MAX;
}

bool peal_matmul_fits(const struct peal_function_arg *args)
{
    struct matmul_sizes s;
    return find_sizes(args, &s);
}

static enum peal_status run(const struct peal_function_call *call, void *context)
{
    struct matmul_sizes s;
    (void)context;
    if (!find_sizes(call->args, &s))
        return PEAL_INVALID; /* not reached: the submit has refused it */
    peal_product_run(&(struct peal_product){.dtype = call->args[0].dtype,
                                            .adds = call->args[3].value != 0,
                                            .rows = s.m,
                                            .inner = s.k,
                                            .columns = s.n,
                                            .a = call->args[0].data,
                                            .b = call->args[1].data,
                                            .c = call->args[2].data,
                                            .a_stride = s.k,
                                            .b_stride = s.n,
                                            .c_stride = s.n});
    return PEAL_OK;
}

uint64_t peal_matmul_cost(const struct peal_function_call *call, void *context)
{
    const struct peal_machine_keys *keys = &((const struct peal_machine *)context)->keys;
    enum peal_dtype dtype = call->args[0].dtype;
    struct matmul_sizes s;
    if (!find_sizes(call->args, &s))
        return 0;
    uint64_t rate = peal_machine_products(keys, dtype);
    uint64_t steps = (s.m * s.n * s.k + rate - 1) / rate;
    return keys->math_setup + peal_rate_time(keys->math_cycle, steps);
}

/* On a machine its cost is peal_matmul_cost: see open.c. */
const struct peal_function peal_matmul_function = {
    .name = "matmul", .run = run, .parameters = "in, in, inout, int"};
