/* SPDX-License-Identifier: Apache-2.0 */
/* Memories: a number of ports, each serving one transfer at a time; or ports without limit. */
#include "sim/engine/engine.h"

#include <stdlib.h>

static bool is_shared(const struct peal_sim *sim, int mem)
{
    const struct peal_machine *m = sim->machine;
    /* A graph's groups share a memory only if that is said. */
    if (m->has_own_graph &&
        !m->given[PEAL_KEY_TCM_PER + mem * (PEAL_KEY_SRAM_PER - PEAL_KEY_TCM_PER)])
        return false;
    return m->keys.mem_shared[mem];
}

static uint32_t units(const struct peal_sim *sim, int mem)
{
    return is_shared(sim, mem) ? sim->units : sim->machine->pes;
}

static uint32_t unit_of(const struct peal_sim *sim, uint32_t pe, uint8_t mem)
{
    return is_shared(sim, mem) ? sim->unit[pe] : pe;
}

/* One unit for each group that has PEs of its own, and for each PE without a group. */
static bool number_units(struct peal_sim *sim)
{
    const struct peal_graph *graph = sim->machine->graph;
    uint32_t *number = calloc(graph->groups.len + 1, sizeof *number);
    sim->unit = malloc((graph->pes + 1) * sizeof *sim->unit);
    for (uint32_t pe = 0; number && sim->unit && pe < graph->pes; pe++) {
        uint32_t group = graph->nodes.at[pe].group;
        if (group == PEAL_GRAPH_NONE)
            sim->unit[pe] = sim->units++;
        else if (number[group])
            sim->unit[pe] = number[group] - 1;
        else
            number[group] = 1 + (sim->unit[pe] = sim->units++);
    }
    free(number);
    return number && sim->unit;
}

bool peal_sim_memory_init(struct peal_sim *sim)
{
    uint64_t total = 0;
    if (!number_units(sim))
        return false;
    for (int mem = 0; mem < PEAL_MEM_COUNT; mem++) {
        sim->port_base[mem] = (uint32_t)total;
        total += units(sim, mem) * sim->machine->keys.mem_ports[mem];
    }
    sim->ports = calloc(total + 1, sizeof *sim->ports);
    return sim->ports != NULL;
}

bool peal_sim_memory_limited(const struct peal_sim *sim, uint8_t mem)
{
    return mem != PEAL_NO_MEM && sim->machine->keys.mem_ports[mem] != 0;
}

/* When the first free port starts to serve; it is then busy for `held`. */
uint64_t peal_sim_memory_take(struct peal_sim *sim, uint32_t pe, uint8_t mem, uint64_t from,
                              uint64_t held)
{
    uint64_t count = sim->machine->keys.mem_ports[mem];
    uint64_t *ports = sim->ports + sim->port_base[mem] + unit_of(sim, pe, mem) * count;
    uint64_t best = 0;
    for (uint64_t i = 1; i < count; i++) {
        if (ports[i] < ports[best])
            best = i;
    }
    uint64_t start = peal_size_max(ports[best], from);
    ports[best] = start + held;
    return start;
}

uint32_t peal_sim_memory_component(const struct peal_sim *sim, uint32_t pe, uint8_t mem)
{
    uint32_t base = sim->link_components;
    for (int i = 0; i < mem; i++)
        base += units(sim, i);
    return base + unit_of(sim, pe, mem);
}
