/* SPDX-License-Identifier: Apache-2.0 */
/* Cores, their caches and binding without hwloc, for the command that needs no library: what Linux and the
 * C library say. */
#include "run/team/topo.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *peal_topo_described(void)
{
    return NULL;
}

/* The first hyperthread of the core that a processor belongs to; itself, if the system does not say. */
static int first_sibling(int cpu)
{
    char path[96];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    if (file && (fscanf(file, "%d", &first) != 1 || first < 0 || first >= CPU_SETSIZE))
        first = cpu;
    if (file)
        fclose(file);
    return first;
}

/* The processor of the index-th core that this process may use, -1 if there is none. *count gets the
 * number of such cores. */
static int allowed_core(int index, uint32_t *count)
{
    cpu_set_t allowed, seen;
    int found = -1;
    *count = 0;
    CPU_ZERO(&seen);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        int core = CPU_ISSET(cpu, &allowed) ? first_sibling(cpu) : -1;
        if (core < 0 || CPU_ISSET(core, &seen))
            continue;
        CPU_SET(core, &seen);
        if (index >= 0 && *count == (uint32_t)index)
            found = cpu;
        ++*count;
    }
    return found;
}

uint32_t peal_topo_cores(void)
{
    uint32_t count;
    (void)allowed_core(-1, &count);
    return count ? count : 1;
}

void peal_topo_bind(uint32_t rank, uint32_t size)
{
    const char *setting = getenv("PEAL_BIND");
    bool wraps = setting && strcmp(setting, "wrap") == 0;
    uint32_t count = peal_topo_cores(), allowed;
    if (!setting || (!wraps && strcmp(setting, "core") != 0) || (!wraps && size > count))
        return;
    int cpu = allowed_core((int)(rank % count), &allowed);
    cpu_set_t one;
    CPU_ZERO(&one);
    if (cpu < 0)
        return;
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

uint64_t peal_topo_core_cache(void)
{
    long said = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (said <= 0)
        return PEAL_TOPO_CORE_CACHE;
    return (uint64_t)said;
}
