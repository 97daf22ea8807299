/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated run's data is, bit for bit, what the independent interpreter computes from the same
 * plan and random inputs. */
#include "interp/interp.h"
#include "lib/random.h"
#include "sim_cases.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Random values of moderate exponents, so that their sums are rounded. */
static void fill(void *at, enum peal_dtype dtype, uint64_t len, uint64_t *seed)
{
    for (uint64_t i = 0; i < len; i++) {
        uint64_t r = draw(seed);
        if (dtype == PEAL_F32) {
            float value = (float)((double)(r >> 11) * 0x1p-53 * 8 - 3);
            memcpy((char *)at + 4 * i, &value, 4);
        } else if (dtype == PEAL_F16 || dtype == PEAL_BF16) {
            uint16_t bits =
                (uint16_t)(dtype == PEAL_F16 ? 0x3000 + r % 0x1400 : 0x3e00 + r % 0x0200);
            bits |= (uint16_t)(r >> 63 << 15);
            memcpy((char *)at + 2 * i, &bits, 2);
        } else {
            memcpy((char *)at + peal_dtype_size(dtype) * i, &r, peal_dtype_size(dtype));
        }
    }
}

static void compare(const struct peal_plan *plan, const struct peal_machine *machine, uint64_t seed)
{
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    struct peal_interp *in = peal_interp_new(plan->nranks);
    void *table[64 * 8] = {0};
    uint32_t params = 0;
    size_t launch = peal_interp_launch(in, plan);
    for (uint64_t b = 0; b < plan->bufs.count; b++) {
        if (bufs[b].kind == PEAL_BUF_PARAM && bufs[b].param >= params)
            params = bufs[b].param + 1;
    }
    for (uint32_t rank = 0; rank < plan->nranks; rank++)
        for (uint32_t b = 0; b < plan->bufs.count; b++) {
            if (bufs[b].kind != PEAL_BUF_PARAM)
                continue;
            enum peal_dtype dtype = (enum peal_dtype)bufs[b].dtype;
            uint64_t len = peal_plan_len(plan, rank, b), bytes = len * peal_dtype_size(dtype);
            void *at = table[rank * params + bufs[b].param] = calloc(1, bytes + 64);
            fill(at, dtype, len, &seed);
            memcpy(peal_interp_input(in, launch, rank, b), at, bytes);
        }
    assert_int_equal(peal_interp_run(in, &(struct peal_interp_schedule){0}), PEAL_INTERP_DONE);
    struct peal_sim *sim =
        case_sim(plan, machine, &(struct peal_sim_options){.data = PEAL_SIM_DATA_FULL},
                 &(struct peal_sim_args){.buffers = table}, 1);
    assert_int_equal(peal_sim_sync(sim), PEAL_OK);
    for (uint32_t rank = 0; rank < plan->nranks; rank++)
        for (uint32_t b = 0; b < plan->bufs.count; b++) {
            if (bufs[b].kind != PEAL_BUF_PARAM || !(bufs[b].dir & PEAL_DIR_OUT))
                continue;
            /* These ranks' outputs are never written. */
            if (plan->contract == PEAL_CONTRACT_REDUCE && rank != plan->root)
                continue;
            if (plan->contract == PEAL_CONTRACT_EXSCAN && rank == 0)
                continue;
            uint64_t bytes =
                peal_plan_len(plan, rank, b) * peal_dtype_size((enum peal_dtype)bufs[b].dtype);
            if (memcmp(table[rank * params + bufs[b].param],
                       peal_interp_output(in, launch, rank, b), bytes) != 0)
                fail_msg("%s: rank %u differs", peal_plan_string(plan, plan->kernel), rank);
        }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        free(table[i]);
    peal_sim_free(sim);
    peal_interp_free(in);
}

TEST(simulated_bits_are_those_of_the_interpreter)
{
    static const char *const kernels[] = {
        "allreduce_chunked", "allreduce_forward", "allreduce_tree",      "allreduce_mesh2d",
        "allreduce_ring",    "allreduce_biring",  "allreduce_mesh2",     "allreduce_halving",
        "allreduce_direct",  "reduce_binomial",   "reduce_scatter_ring", "all_to_all_pairwise",
        "scan_doubling",     "exscan_relay"};
    static const enum peal_dtype dtypes[] = {PEAL_F32, PEAL_F16, PEAL_BF16, PEAL_I8};
    static const char *const machines[] = {"mesh4x4.yaml", "system2x4x16.yaml"};
    uint64_t seed = 0x9e3779b97f4a7c15u;
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t m = 0; m < 2; m++) {
        struct peal_machine *machine = case_machine(machines[m], NULL);
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
            for (size_t d = 0; d < 4; d++) {
                struct peal_plan *plan =
                    case_plan_try(&(struct case_plan){.kernel = kernels[k],
                                                      .nranks = 4 + (uint32_t)k % 5,
                                                      .count = 77,
                                                      .dtype = dtypes[d]});
                if (plan)
                    compare(plan, machine, seed + k);
                free(plan);
            }
        peal_machine_free(machine);
    }
}

int main(void)
{
    return unit_run();
}
