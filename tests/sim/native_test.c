/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that is simulated and run by ranks of this host, on the same random data, gives the same
 * results, bit for bit. */
#include "lib/random.h"
#include "sim_cases.h"
#include "base/tests/unit.h"

#include <peal/peal.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 5, COUNT = 77 };

struct native_rank {
    struct peal_comm *comm;
    const char *kernel;
    enum peal_dtype dtype;
    void *in, *out;
    enum peal_status status;
    pthread_t thread;
};

static void *run_native(void *context)
{
    struct native_rank *r = context;
    struct peal_user_kernel *kernel = NULL;
    uint64_t bytes = COUNT * peal_dtype_size(r->dtype);
    struct peal_arg args[] = {{.kind = PEAL_ARG_BUFFER, .data = r->in, .bytes = bytes},
                              {.kind = PEAL_ARG_BUFFER, .data = r->out, .bytes = bytes},
                              {.kind = PEAL_ARG_REDUCE, .reduce = PEAL_SUM}};
    struct peal_dim n = {"n", COUNT};
    r->status = peal_user_kernel_load(r->comm, NULL, r->kernel, &kernel);
    if (r->status == PEAL_OK)
        r->status = peal_user_kernel_launch(kernel, r->dtype, args, 3, &n, 1);
    peal_user_kernel_free(kernel);
    return NULL;
}

static void run_simulated(const char *kernel, enum peal_dtype dtype, void **table)
{
    struct peal_machine *machine = case_machine("mesh4x4.yaml", NULL);
    struct peal_plan *plan = case_plan_make(
        &(struct case_plan){.kernel = kernel, .nranks = RANKS, .count = COUNT, .dtype = dtype});
    struct peal_sim *sim =
        case_sim(plan, machine, &(struct peal_sim_options){.data = PEAL_SIM_DATA_FULL},
                 &(struct peal_sim_args){.buffers = table}, 1);
    assert_int_equal(peal_sim_sync(sim), PEAL_OK);
    peal_sim_free(sim);
    free(plan);
    peal_machine_free(machine);
}

/* Values whose sums are rounded, so that a different order of adding would show. */
static void fill(void *at, enum peal_dtype dtype, uint64_t *seed)
{
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t r = draw(seed);
        float value = (float)((double)(r % 100003) * 1e-3 - 40);
        uint16_t half = (uint16_t)((dtype == PEAL_F16 ? 0x3000 : 0x3e00) + r % 0x0200);
        if (dtype == PEAL_F32)
            memcpy((char *)at + 4 * i, &value, 4);
        else
            memcpy((char *)at + 2 * i, &half, 2);
    }
}

static void compare(struct peal_comm **comms, const char *kernel, enum peal_dtype dtype,
                    uint64_t seed)
{
    struct native_rank ranks[RANKS];
    void *table[2 * RANKS];
    uint64_t bytes = COUNT * peal_dtype_size(dtype);
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (struct native_rank){.comm = comms[i],
                                        .kernel = kernel,
                                        .dtype = dtype,
                                        .in = malloc(bytes),
                                        .out = calloc(1, bytes)};
        fill(ranks[i].in, dtype, &seed);
        table[2 * i] = malloc(bytes);
        table[2 * i + 1] = calloc(1, bytes);
        memcpy(table[2 * i], ranks[i].in, bytes);
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, run_native, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    run_simulated(kernel, dtype, table);
    for (int i = 0; i < RANKS; i++) {
        if (ranks[i].status != PEAL_OK)
            fail_msg("%s does not run: %s", kernel, peal_comm_error(comms[i]));
        if (memcmp(ranks[i].out, table[2 * i + 1], bytes) != 0)
            fail_msg("%s, %s: rank %d differs", kernel, peal_dtype_name(dtype), i);
        free(ranks[i].in);
        free(ranks[i].out);
        free(table[2 * i]);
        free(table[2 * i + 1]);
    }
}

TEST(simulated_bits_are_those_of_a_native_run)
{
    static const char *const kernels[] = {
        "allreduce_chunked", "allreduce_bichunked", "allreduce_forward", "allreduce_tree",
        "allreduce_mesh2d",  "allreduce_ring",      "allreduce_biring",  "allreduce_ring_slot",
        "allreduce_mesh",    "allreduce_central",   "allreduce_direct"};
    static const enum peal_dtype dtypes[] = {PEAL_F32, PEAL_F16, PEAL_BF16};
    struct peal_comm *comms[RANKS] = {0};
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
    printf("seed %llu\n", (unsigned long long)seed);
    assert_int_equal(peal_comm_open_threads(RANKS, comms), PEAL_OK);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            compare(comms, kernels[k], dtypes[d], seed + k);
    for (int i = 0; i < RANKS; i++)
        peal_comm_close(comms[i]);
}

int main(void)
{
    return unit_run();
}
