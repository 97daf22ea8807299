/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of bound.h, as tables. */
#include "sim/engine/bound.h"

#include <math.h>
#include <string.h>

struct terms {
    double p, log2p, a, nb, ng; /* ranks, ceil(log2), alpha, n * beta, n * g */
};

struct contract_row {
    enum peal_contract contract;
    double latencies; /* times log2 P alpha */
    double bytes;     /* times (P-1)/P n beta; negative: times n beta */
    const char *formula;
};

static const struct contract_row contracts[] = {
    {PEAL_CONTRACT_ALLREDUCE, 1, 2, "log2 P alpha + 2 (P-1)/P n beta"},
    {PEAL_CONTRACT_ALLGATHER, 1, 1, "log2 P alpha + (P-1)/P n beta"},
    {PEAL_CONTRACT_REDUCE_SCATTER, 1, 1, "log2 P alpha + (P-1)/P n beta"},
    {PEAL_CONTRACT_BROADCAST, 1, -1, "log2 P alpha + n beta"},
    {PEAL_CONTRACT_REDUCE, 1, -1, "log2 P alpha + n beta"},
    {PEAL_CONTRACT_SCAN, 1, -1, "log2 P alpha + n beta"},
    {PEAL_CONTRACT_EXSCAN, 1, -1, "log2 P alpha + n beta"},
    {PEAL_CONTRACT_GATHER, 1, 1, "log2 P alpha + (P-1)/P n beta"},
    {PEAL_CONTRACT_SCATTER, 1, 1, "log2 P alpha + (P-1)/P n beta"},
    {PEAL_CONTRACT_ALL_TO_ALL, 1, 1, "log2 P alpha + (P-1)/P n beta"},
    {PEAL_CONTRACT_BARRIER, 1, 0, "log2 P alpha"},
};

static double ring(const struct terms *t)
{
    return 2 * (t->p - 1) * (t->a + t->nb / t->p) + (t->p - 1) * t->ng / t->p;
}

static double forward(const struct terms *t)
{
    return (t->p - 1) * (t->a + t->nb + t->ng);
}

static double pairwise(const struct terms *t)
{
    return (t->p - 1) * (t->a + t->nb / t->p);
}

static double tree(const struct terms *t)
{
    return 2 * (ceil(log2(t->p + 1)) - 1) * (t->a + 2 * t->nb);
}

static const struct {
    const char *kernel;
    double (*time)(const struct terms *t);
    const char *formula;
} closed_forms[] = {
    {"allreduce_chunked", ring, "2 (P-1) (alpha + n beta / P) + (P-1) n g / P"},
    {"allreduce_forward", forward, "(P-1) (alpha + n beta + n g)"},
    {"all_to_all_pairwise", pairwise, "(P-1) (alpha + n beta / P)"},
    {"allreduce_tree", tree, "2 depth (alpha + 2 n beta), g = 0"},
};

/* The way to the nearest PE from the first one. */
static void find_link(const struct peal_machine *machine, double *alpha, double *beta)
{
    const struct peal_machine_keys *k = &machine->keys;
    struct peal_routes *routes = peal_routes_new(machine->graph);
    struct peal_route_cost best = {.lat = UINT64_MAX, .rate = {0, 1}}, cost;
    double dma = (double)k->dma_bw.num / (double)k->dma_bw.den;
    for (uint32_t pe = 1; routes && pe < machine->pes; pe++) {
        if (peal_routes_cost(routes, 0, pe, &cost) && cost.lat < best.lat)
            best = cost;
    }
    peal_routes_free(routes);
    double link = (double)best.rate.num / (double)best.rate.den;
    *alpha = machine->pes > 1 ? (double)best.lat : 0;
    *beta = link > dma ? link : dma;
}

static double vector_bytes(const struct peal_plan *plan)
{
    uint64_t maximum = 0;
    const uint32_t bufs[] = {plan->contract_in, plan->contract_out};
    for (int i = 0; i < 2; i++) {
        if (bufs[i] == PEAL_NONE)
            continue;
        for (uint32_t rank = 0; rank < plan->rank_count; rank++)
            maximum = peal_size_max(maximum, peal_plan_len(plan, plan->rank_first + rank, bufs[i]));
    }
    return (double)maximum * (double)peal_dtype_size((enum peal_dtype)plan->dtype);
}

void peal_bound_find(const struct peal_machine *machine, const struct peal_plan *plan,
                     struct peal_cost_bound *out)
{
    const struct peal_machine_keys *k = &machine->keys;
    *out = (struct peal_cost_bound){.bytes = vector_bytes(plan)};
    double size = (double)peal_dtype_size((enum peal_dtype)plan->dtype);
    double cycle = (double)k->math_cycle.num / (double)k->math_cycle.den;
    double lanes = (double)k->math_lanes[plan->dtype];
    if (lanes == 0)
        lanes = (double)k->math_lanes[PEAL_F32] * 4 / size;
    find_link(machine, &out->alpha, &out->beta);
    out->g = cycle / lanes / size;
    struct terms t = {.p = plan->nranks,
                      .log2p = ceil(log2(plan->nranks)),
                      .a = out->alpha,
                      .nb = out->bytes * out->beta,
                      .ng = out->bytes * out->g};
    for (size_t i = 0; i < sizeof contracts / sizeof *contracts; i++) {
        const struct contract_row *row = &contracts[i];
        if (row->contract != (enum peal_contract)plan->contract)
            continue;
        double share = 1;
        if (row->bytes >= 0)
            share = row->bytes * (t.p - 1) / t.p;
        out->time = row->latencies * t.log2p * t.a + share * t.nb;
        out->formula = row->formula;
    }
    for (size_t i = 0; i < sizeof closed_forms / sizeof *closed_forms; i++) {
        if (strcmp(peal_plan_string(plan, plan->kernel), closed_forms[i].kernel) != 0)
            continue;
        out->closed = closed_forms[i].time(&t);
        out->closed_formula = closed_forms[i].formula;
    }
}
