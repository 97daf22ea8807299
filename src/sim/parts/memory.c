/* SPDX-License-Identifier: Apache-2.0 */
/* Memories: a number of ports, each serving one transfer at a time; or ports without limit. */
#include "sim/engine/engine.h"

#include <stdlib.h>

static uint32_t units(const struct peal_sim *sim, int mem)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    if (k->flat || !k->mem_shared[mem])
        return sim->machine->pes;
    return (uint32_t)(k->sips * k->cubes[0] * k->cubes[1]);
}

static uint32_t unit_of(const struct peal_sim *sim, uint32_t pe, uint8_t mem)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    if (k->flat || !k->mem_shared[mem])
        return pe;
    return pe / (uint32_t)(k->pes[0] * k->pes[1]);
}

bool peal_sim_memory_init(struct peal_sim *sim)
{
    uint64_t total = 0;
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
    uint32_t base = sim->nlinks;
    for (int i = 0; i < mem; i++)
        base += units(sim, i);
    return base + unit_of(sim, pe, mem);
}
