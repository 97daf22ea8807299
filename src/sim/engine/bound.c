/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of the machine's graph, and the formulas of bound.h as a table. */
#include "sim/engine/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct terms {
    double p, a, nb, ng; /* ranks, alpha, n * beta, n * g */
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

/* What blocks of ranks add up to at least: where they are uneven, some have an element less. */
static uint64_t whole_blocks(const struct peal_plan *plan, uint64_t bytes)
{
    const struct peal_contract_info *info = peal_contract_info((enum peal_contract)plan->contract);
    uint64_t size = peal_dtype_size((enum peal_dtype)plan->dtype);
    if (!peal_side_has_blocks(info->in) && !peal_side_has_blocks(info->out))
        return bytes;
    return bytes / size / plan->nranks * plan->nranks * size;
}

/* No algorithm is faster than this. Left out where it cannot be computed: out->time stays 0. */
static void find_least(const struct peal_machine *machine, const struct peal_plan *plan,
                       struct peal_cost_bound *out)
{
    struct peal_arena arena;
    struct peal_graph_bound bound;
    struct peal_text words = {0};
    uint64_t bytes = whole_blocks(plan, (uint64_t)out->bytes);
    enum peal_contract contract = (enum peal_contract)plan->contract;
    if (contract == PEAL_CONTRACT_NONE || (bytes == 0 && contract != PEAL_CONTRACT_BARRIER) ||
        plan->nranks > machine->pes)
        return;
    peal_arena_init(&arena, 0);
    uint32_t *pes = peal_arena_alloc(&arena, plan->nranks * sizeof *pes);
    struct peal_graph_bound_ask ask = {machine->graph, contract, pes, plan->nranks, 0};
    if (peal_contract_info(contract)->has_root && plan->root < plan->nranks)
        ask.root = plan->root;
    if (pes && peal_machine_place(machine, plan->nranks, pes) &&
        peal_graph_bound_find(&ask, &arena, NULL, &bound) == PEAL_OK) {
        uint64_t transfer = peal_rate_time(bound.per_byte, bytes);
        out->time = (double)peal_graph_bound_time(&bound, bytes);
        if (transfer >= bound.latency)
            peal_graph_bound_words(machine->graph, &bound, &words);
        else
            peal_text_puts(&words, "the latency of the longest way");
        snprintf(out->cause, sizeof out->cause, "%s", peal_text_get(&words));
    }
    peal_text_release(&words);
    peal_arena_release(&arena);
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
                      .a = out->alpha,
                      .nb = out->bytes * out->beta,
                      .ng = out->bytes * out->g};
    find_least(machine, plan, out);
    for (size_t i = 0; i < sizeof closed_forms / sizeof *closed_forms; i++) {
        if (strcmp(peal_plan_string(plan, plan->kernel), closed_forms[i].kernel) != 0)
            continue;
        out->closed = closed_forms[i].time(&t);
        out->closed_formula = closed_forms[i].formula;
    }
}
