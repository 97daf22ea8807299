/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and frees simulations, queues launches, answers questions about a run.
 *
 * A simulation borrows its machine and the plans of peal_sim_launch; both must outlive it. An
 * *instance* is what a plan needs while it is simulated: cells, queues and the code of its lanes.
 * All launches of one plan share an instance, so that cells and credits go on from launch to launch
 * as on a real machine. A *call* is one launch: it has copies of the caller's argument tables, not
 * of the buffers.
 *
 * Rates are compared by their numbers: rank_rates sorts them once, and the slower of two has the
 * larger number.
 */
#include "sim/engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cause_names[PEAL_CAUSE_COUNT] = {
    "issue", "latency", "serialisation", "queueing", "credit", "memory", "math", "wake-up"};
static const char *const stall_names[PEAL_STALL_COUNT] = {"data",   "credit", "dma",
                                                          "memory", "math",   "polling"};

const char *peal_sim_cause_name(enum peal_sim_cause cause)
{
    return cause_names[cause];
}

const char *peal_sim_stall_name(enum peal_sim_stall stall)
{
    return stall_names[stall];
}

struct ranked_rate {
    struct peal_rate rate;
    bool is_memory;
    uint8_t *where;
};

/* Rising ps/B; at equal rates memory comes first, so that the link or DMA is named as the cause. */
static int compare_rates(const void *a, const void *b)
{
    const struct ranked_rate *x = a, *y = b;
    int by_rate = peal_rate_compare(x->rate, y->rate);
    if (by_rate)
        return by_rate;
    if (x->is_memory != y->is_memory)
        return x->is_memory ? -1 : 1;
    return x->where < y->where ? -1 : 1;
}

/* One of each rate of the graph's links. Their number is 0 after more than fit. */
static size_t distinct_rates(const struct peal_graph *graph, struct ranked_rate *list, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < graph->links.len; i++) {
        size_t j = 0;
        while (j < n && peal_rate_compare(list[j].rate, graph->links.at[i].rate) != 0)
            j++;
        if (j == max)
            return 0;
        if (j == n)
            list[n++] = (struct ranked_rate){graph->links.at[i].rate, false, NULL};
    }
    return n;
}

/* The rate of each link. They are in rising order; of equal ones, the last is no memory's. */
static void rank_links(struct peal_sim *sim, size_t count)
{
    const struct peal_graph *graph = sim->machine->graph;
    for (size_t i = 0; i < graph->links.len; i++) {
        size_t low = 0, high = count;
        while (high - low > 1) {
            size_t middle = (low + high) / 2;
            if (peal_rate_compare(sim->rates[middle], graph->links.at[i].rate) <= 0)
                low = middle;
            else
                high = middle;
        }
        sim->link_rate[i] = (uint8_t)low;
    }
}

static enum peal_status rank_rates(struct peal_sim *sim, struct peal_diags *diags)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    const struct peal_graph *graph = sim->machine->graph;
    enum { OTHERS = 2 + PEAL_PROTOCOL_COUNT + 2 * PEAL_MEM_COUNT };
    struct ranked_rate list[PEAL_RATES];
    size_t n = distinct_rates(graph, list, PEAL_RATES - OTHERS);
    sim->link_rate = malloc(graph->links.len + 1);
    if (!sim->link_rate)
        return PEAL_NO_MEMORY;
    if (n == 0 && graph->links.len) {
        peal_diag_error(diags, (struct peal_pos){0}, "the links have more than %d different rates",
                        PEAL_RATES - OTHERS);
        return PEAL_INVALID;
    }
    list[n++] = (struct ranked_rate){{0, 1}, true, &sim->no_rate};
    list[n++] = (struct ranked_rate){k->dma_bw, false, &sim->dma_rate};
    for (int i = 0; i < PEAL_PROTOCOL_COUNT; i++)
        list[n++] = (struct ranked_rate){k->protocol_bw[i], false, &sim->protocol_rate[i]};
    for (int i = 0; i < PEAL_MEM_COUNT; i++) {
        struct peal_rate twice = k->mem_bw[i];
        twice.num *= 2;
        list[n++] = (struct ranked_rate){k->mem_bw[i], true, &sim->mem_rate[i]};
        list[n++] = (struct ranked_rate){twice, true, &sim->add_rate[i]};
    }
    qsort(list, n, sizeof *list, compare_rates);
    for (size_t i = 0; i < n; i++) {
        sim->rates[i] = list[i].rate;
        sim->rate_is_memory[i] = list[i].is_memory;
        if (list[i].where)
            *list[i].where = (uint8_t)i;
    }
    for (int i = 0; i < PEAL_PROTOCOL_COUNT; i++)
        sim->protocol_rate[i] = peal_size_max(sim->protocol_rate[i], sim->dma_rate);
    rank_links(sim, n);
    for (int i = 0; i < PEAL_DTYPES; i++) {
        sim->dtype_size[i] = peal_dtype_size((enum peal_dtype)i);
        uint64_t scaled = k->math_lanes[PEAL_F32] * 4 / sim->dtype_size[i];
        sim->math_lanes[i] = k->math_lanes[i];
        if (!sim->math_lanes[i])
            sim->math_lanes[i] = peal_size_max(scaled, 1);
    }
    return PEAL_OK;
}

static bool init_ranks(struct peal_sim *sim)
{
    uint32_t *pe_of_rank = calloc(sim->nranks, sizeof *pe_of_rank);
    uint64_t depth = sim->machine->keys.dma_queue;
    bool ok = false;
    sim->ranks = peal_sim_alloc(sim->nranks, sizeof *sim->ranks);
    sim->pe_rank = malloc((sim->machine->pes + 1) * sizeof *sim->pe_rank);
    sim->dma_starts = calloc(sim->nranks * 2 * depth, sizeof *sim->dma_starts);
    if (!pe_of_rank || !sim->ranks || !sim->pe_rank || !sim->dma_starts ||
        !peal_machine_place(sim->machine, sim->nranks, pe_of_rank))
        goto free_places;
    memset(sim->ranks, 0, sim->nranks * sizeof *sim->ranks);
    memset(sim->pe_rank, 0xff, (sim->machine->pes + 1) * sizeof *sim->pe_rank);
    for (uint32_t i = 0; i < sim->nranks; i++) {
        sim->ranks[i].pe = pe_of_rank[i];
        sim->pe_rank[pe_of_rank[i]] = i;
        for (int vc = 0; vc < PEAL_VC_COUNT; vc++)
            sim->ranks[i].dma_queue[vc].starts =
                sim->dma_starts + (i * (uint64_t)PEAL_VC_COUNT + (uint64_t)vc) * depth;
    }
    ok = true;
free_places:
    free(pe_of_rank);
    return ok;
}

enum peal_status peal_sim_new(const struct peal_machine *machine, uint32_t nranks,
                              const struct peal_sim_options *options, struct peal_diags *diags,
                              struct peal_sim **out)
{
    const struct peal_machine_keys *k = &machine->keys;
    if (nranks == 0 || nranks > machine->pes) {
        peal_diag_error(diags, (struct peal_pos){0}, "%u ranks on a machine of %u PEs", nranks,
                        machine->pes);
        return PEAL_INVALID;
    }
    struct peal_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return PEAL_NO_MEMORY;
    sim->machine = machine;
    sim->options = *options;
    sim->nranks = nranks;
    sim->free_xfer = PEAL_NONE;
    sim->pace_next = options->pace ? 0 : UINT64_MAX;
    bool ports = k->mem_ports[0] || k->mem_ports[1] || k->mem_ports[2];
    sim->dma_event = ports || k->dma_arb != PEAL_ARB_INDEPENDENT;
    sim->lean_sends = !options->log && !sim->dma_event;
    bool shares = peal_sim_host(sim) && k->host_cores && k->host_cores < nranks;
    sim->strict = options->strict || sim->dma_event || shares;
    enum peal_status status = rank_rates(sim, diags);
    if (status != PEAL_OK) {
        peal_sim_free(sim);
        return status;
    }
    sim->protocols = peal_sim_protocols_cost(k);
    if (shares && !(sim->core_user = calloc(k->host_cores, sizeof *sim->core_user))) {
        peal_sim_free(sim);
        return PEAL_NO_MEMORY;
    }
    if (!peal_sim_router_init(sim) || !peal_sim_memory_init(sim) || !init_ranks(sim) ||
        (k->link_mode == PEAL_LINK_FLUID && !peal_sim_fluid_init(sim))) {
        peal_sim_free(sim);
        return PEAL_NO_MEMORY;
    }
    *out = sim;
    return PEAL_OK;
}

static void free_instance(struct peal_instance *instance)
{
    if (!instance)
        return;
    free(instance->queues);
    free(instance->stalls);
    free(instance->cells);
    free(instance->bases);
    free(instance->kinds);
    free(instance->totals);
    free(instance->buf_mem);
    peal_sim_code_free(instance->codes);
    free(instance->own_plan);
    free(instance);
}

void peal_sim_free(struct peal_sim *sim)
{
    if (!sim)
        return;
    peal_sim_replay_free(sim->replay); /* reads the instances */
    for (size_t i = 0; i < sim->instances.len; i++)
        free_instance(sim->instances.at[i]);
    for (size_t i = 0; i < sim->calls.len; i++) {
        free(sim->calls.at[i].buffers);
        free(sim->calls.at[i].row_bytes);
        free(sim->calls.at[i].not_before);
    }
    for (size_t i = 0; i < sim->lanes.len; i++) {
        free(sim->lanes.at[i].regs);
        free(sim->lanes.at[i].pending);
    }
    peal_queue_release(&sim->queue);
    peal_vec_release(&sim->instances);
    peal_vec_release(&sim->calls);
    peal_vec_release(&sim->lanes);
    peal_vec_release(&sim->ready);
    peal_vec_release(&sim->takers);
    peal_vec_release(&sim->xfers);
    peal_vec_release(&sim->log_ops);
    peal_vec_release(&sim->log_messages);
    peal_vec_release(&sim->log_bars);
    peal_vec_release(&sim->blocked);
    for (size_t i = 0; i < sim->files.len; i++)
        free(sim->files.at[i]);
    peal_vec_release(&sim->files);
    peal_sim_fluid_free(sim->fluid);
    peal_routes_free(sim->routes);
    free(sim->link_rate);
    free(sim->unit);
    free(sim->pe_rank);
    free(sim->links);
    free(sim->ports);
    free(sim->ranks);
    free(sim->dma_starts);
    free(sim->core_user);
    free(sim);
}

static void init_cells(struct peal_instance *instance)
{
    const struct peal_plan *plan = instance->plan;
    const struct peal_signal *signals = peal_plan_signals(plan);
    for (uint64_t i = 0; i < plan->signals.count; i++)
        for (uint32_t c = 0; c < signals[i].cells; c++) {
            instance->kinds[signals[i].first_cell + c] = (uint8_t)signals[i].kind;
            instance->totals[signals[i].first_cell + c] = signals[i].first_total + c;
        }
}

void peal_sim_place_bufs(const struct peal_sim *sim, const struct peal_buf *bufs, uint64_t count,
                         uint8_t *buf_mem)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    const uint64_t places[] = {[PEAL_BUF_PARAM] = k->place_param,
                               [PEAL_BUF_WINDOW] = k->place_window,
                               [PEAL_BUF_PRIVATE] = k->place_private,
                               [PEAL_BUF_TILE] = k->place_tile};
    for (uint64_t i = 0; i < count; i++)
        buf_mem[i] = (uint8_t)places[bufs[i].kind];
}

/* Every lane's ops as steps. */
static struct peal_codes *make_codes(const struct peal_sim *sim,
                                     const struct peal_instance *instance)
{
    const struct peal_plan *plan = instance->plan;
    struct peal_codes *codes = peal_sim_codes_new();
    if (!codes)
        return NULL;
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        for (uint32_t i = 0; i < peal_plan_lane_count(plan, rank); i++) {
            const struct peal_lane *source = peal_plan_lane(plan, rank, i);
            struct peal_part_lane lane = {.rank = rank,
                                          .lane = i,
                                          .count = source->ops,
                                          .ops = peal_plan_ops(plan) + source->first_op,
                                          .refs = peal_plan_refs(plan),
                                          .formulas = peal_plan_formulas(plan)};
            if (!peal_sim_codes_add(sim, codes, instance->buf_mem, &lane)) {
                peal_sim_code_free(codes);
                return NULL;
            }
        }
    }
    return codes;
}

/* Slots of the argument table: parameters are numbered from 0. */
static uint32_t param_count(const struct peal_plan *plan)
{
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    uint32_t count = 0;
    for (uint64_t i = 0; i < plan->bufs.count; i++)
        if (bufs[i].kind == PEAL_BUF_PARAM && bufs[i].param >= count)
            count = bufs[i].param + 1;
    return count;
}

struct peal_instance *peal_sim_instance_new(struct peal_sim *sim, const struct peal_plan *plan,
                                            struct peal_codes *codes)
{
    uint64_t cells = (uint64_t)plan->nranks * plan->cells + 1;
    struct peal_instance *instance = calloc(1, sizeof *instance);
    if (!instance) {
        peal_sim_code_free(codes);
        return NULL;
    }
    instance->plan = plan;
    instance->codes = codes;
    instance->params = param_count(plan);
    instance->cells = calloc(cells, sizeof *instance->cells);
    instance->bases = calloc(cells, sizeof *instance->bases);
    instance->kinds = calloc(plan->cells + 1, sizeof *instance->kinds);
    instance->totals = calloc(plan->cells + 1, sizeof *instance->totals);
    instance->buf_mem = calloc(plan->bufs.count + 1, sizeof *instance->buf_mem);
    for (uint32_t rank = 0; rank < plan->nranks; rank++) {
        uint32_t lanes = peal_plan_lane_count(plan, rank);
        if (lanes > instance->lanes)
            instance->lanes = lanes;
    }
    if (!instance->cells || !instance->bases || !instance->kinds || !instance->totals ||
        !instance->buf_mem)
        goto fail;
    init_cells(instance);
    peal_sim_place_bufs(sim, peal_plan_bufs(plan), plan->bufs.count, instance->buf_mem);
    if (!codes && peal_sim_host(sim) && !(sim->host = peal_sim_host_use_new(plan)))
        goto fail;
    if (!codes)
        instance->codes = make_codes(sim, instance);
    peal_sim_host_use_free(sim->host);
    sim->host = NULL;
    if (!instance->codes || !peal_sim_ipcq_init(sim, instance) ||
        !peal_vec_push(&sim->instances, instance))
        goto fail;
    instance->steps = peal_sim_codes_steps(instance->codes);
    for (uint32_t rank = 0; rank < plan->nranks; rank++)
        for (uint32_t i = 0; i < peal_sim_code_lanes(instance->codes, rank); i++)
            instance->ops += peal_sim_code(instance->codes, rank, i)->count;
    return instance;
fail:
    free_instance(instance);
    return NULL;
}

static void *copy_array(const void *source, uint64_t count, size_t size)
{
    void *copy = malloc(count * size + 1);
    if (copy)
        memcpy(copy, source, count * size);
    return copy;
}

enum peal_status peal_sim_call(struct peal_sim *sim, struct peal_instance *instance,
                               const struct peal_sim_args *args)
{
    struct peal_sim_call call = {.instance = instance};
    const struct peal_plan *plan = instance->plan;
    if (!peal_sim_make_lanes(sim, instance->lanes))
        return PEAL_NO_MEMORY;
    /* Lanes of one rank share its engines, and programs that are not monotone depend on the exact
     * instant. */
    if (instance->lanes > 1 || !plan->monotone)
        sim->strict = true;
    uint64_t count = (uint64_t)instance->params * plan->nranks;
    bool ok = true;
    if (args && args->buffers)
        ok &= (call.buffers = copy_array(args->buffers, count, sizeof(void *))) != NULL;
    if (args && args->row_bytes)
        ok &= (call.row_bytes = copy_array(args->row_bytes, count, sizeof(uint64_t))) != NULL;
    if (args && args->not_before)
        ok &= (call.not_before = copy_array(args->not_before, plan->nranks, sizeof(uint64_t))) !=
              NULL;
    if (ok && peal_vec_push(&sim->calls, call)) {
        sim->ops_total += instance->ops;
        sim->end = PEAL_NEVER;
        return PEAL_OK;
    }
    free(call.buffers);
    free(call.row_bytes);
    free(call.not_before);
    return PEAL_NO_MEMORY;
}

enum peal_status peal_sim_launch(struct peal_sim *sim, const struct peal_plan *plan,
                                 const struct peal_sim_args *args, struct peal_diags *diags)
{
    struct peal_instance *instance = NULL;
    if (plan->nranks != sim->nranks || plan->rank_count != plan->nranks) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "the plan is for %u of %u ranks, the simulation for all of %u",
                        plan->rank_count, plan->nranks, sim->nranks);
        return PEAL_INVALID;
    }
    if (sim->options.data && !(args && args->buffers) && param_count(plan)) {
        peal_diag_error(diags, (struct peal_pos){0}, "data is asked for, but no buffers are given");
        return PEAL_INVALID;
    }
    for (size_t i = 0; i < sim->instances.len; i++) {
        if (sim->instances.at[i]->plan == plan)
            instance = sim->instances.at[i];
    }
    if (!instance)
        instance = peal_sim_instance_new(sim, plan, NULL);
    if (!instance)
        return PEAL_NO_MEMORY;
    return peal_sim_call(sim, instance, args);
}

enum peal_status peal_sim_run_plan(const struct peal_machine *machine, const struct peal_plan *plan,
                                   const struct peal_sim_turns *turns, struct peal_diags *diags,
                                   struct peal_sim **out)
{
    static const struct peal_sim_options plain = {0};
    const struct peal_sim_options *options = turns->options ? turns->options : &plain;
    enum peal_status status = peal_sim_new(machine, plan->nranks, options, diags, out);
    for (uint32_t i = 0; i < turns->launches && status == PEAL_OK; i++)
        status = peal_sim_launch(*out, plan, turns->args, diags);
    return status == PEAL_OK ? peal_sim_run(*out) : status;
}

const struct peal_sim_stats *peal_sim_stats(const struct peal_sim *sim)
{
    return &sim->stats;
}

const struct peal_plan *peal_sim_launch_plan(const struct peal_sim *sim, uint32_t launch)
{
    return sim->calls.at[launch].instance->plan;
}

void peal_sim_rank(const struct peal_sim *sim, uint32_t rank, struct peal_sim_rank_stats *out)
{
    const struct peal_rank_run *r = &sim->ranks[rank];
    *out = (struct peal_sim_rank_stats){.end = r->time,
                                        .pe = r->pe,
                                        .math_busy = r->math_busy,
                                        .dma_busy = {r->dma[0].busy, r->dma[1].busy}};
    for (size_t i = rank; i < sim->lanes.len; i += sim->nranks)
        for (int s = 0; s < PEAL_STALL_COUNT; s++)
            out->stalls[s] += sim->lanes.at[i].stalls[s];
}

uint32_t peal_sim_link_count(const struct peal_sim *sim)
{
    return sim->nlinks;
}

void peal_sim_link(const struct peal_sim *sim, uint32_t link, struct peal_sim_link_stats *out)
{
    const struct peal_graph *graph = sim->machine->graph;
    const struct peal_link_run *run = &sim->links[link];
    *out = (struct peal_sim_link_stats){.from = graph->links.at[link].from,
                                        .to = run->to,
                                        .bytes = run->bytes,
                                        .busy = run->busy,
                                        .messages = run->messages};
    snprintf(out->name, sizeof out->name, "%s->%s", graph->nodes.at[out->from].name,
             graph->nodes.at[out->to].name);
}
