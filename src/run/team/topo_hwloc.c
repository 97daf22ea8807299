/* SPDX-License-Identifier: Apache-2.0 */
/* Cores, their caches and binding, by hwloc. */
#include "run/team/topo.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* hwloc asks with larger and larger sets, without end where the call itself is forbidden. EINVAL: the set is too small for this
 * machine, and a larger one will do. */
static bool may_ask_for_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 || errno == EINVAL;
}

/* The topology of this machine; NULL: hwloc cannot say. */
static hwloc_topology_t load(void)
{
    hwloc_topology_t topology;
    if (!may_ask_for_cores() || hwloc_topology_init(&topology) != 0)
        return NULL;
    if (hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return NULL;
    }
    return topology;
}

/* The index-th core that the process may use; NULL if index is -1. *count gets the number of such
 * cores. */
static hwloc_obj_t allowed_core(hwloc_topology_t topology, int index, uint32_t *count)
{
    hwloc_cpuset_t allowed = hwloc_bitmap_alloc();
    hwloc_obj_t found = NULL;
    uint32_t seen = 0;
    if (hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) != 0)
        hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(topology));
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    for (int i = 0; i < cores; i++) {
        hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)i);
        if (!hwloc_bitmap_intersects(core->cpuset, allowed))
            continue;
        if (index >= 0 && seen == (uint32_t)index)
            found = core;
        seen++;
    }
    hwloc_bitmap_free(allowed);
    *count = seen;
    return found;
}

const char *peal_topo_described(void)
{
    static const char *const names[] = {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text && text[0])
            return names[i];
    }
    return NULL;
}

uint32_t peal_topo_cores(void)
{
    hwloc_topology_t topology = load();
    uint32_t count = 0;
    if (topology) {
        allowed_core(topology, -1, &count);
        hwloc_topology_destroy(topology);
    }
    if (count > 0)
        return count;
    return 1;
}

void peal_topo_bind(uint32_t rank, uint32_t size)
{
    const char *setting = getenv("PEAL_BIND");
    if (!setting || (strcmp(setting, "core") != 0 && strcmp(setting, "wrap") != 0))
        return;
    hwloc_topology_t topology = load();
    if (!topology)
        return;
    uint32_t count = 0;
    (void)allowed_core(topology, -1, &count);
    hwloc_obj_t core = NULL;
    if (count > 0)
        core = allowed_core(topology, (int)(rank % count), &count);
    if (core && (size <= count || strcmp(setting, "wrap") == 0))
        (void)hwloc_set_cpubind(topology, core->cpuset, HWLOC_CPUBIND_THREAD);
    hwloc_topology_destroy(topology);
}

/* The smallest second-level cache; 0: hwloc shows none. */
static uint64_t shown_cache(hwloc_topology_t topology)
{
    uint64_t smallest = 0;
    int caches = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L2CACHE);
    for (int i = 0; i < caches; i++) {
        hwloc_obj_t cache = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L2CACHE, (unsigned)i);
        uint64_t bytes = 0;
        if (cache->attr)
            bytes = cache->attr->cache.size;
        if (bytes && (!smallest || bytes < smallest))
            smallest = bytes;
    }
    return smallest;
}

uint64_t peal_topo_core_cache(void)
{
    hwloc_topology_t topology = load();
    uint64_t bytes = 0;
    if (topology) {
        bytes = shown_cache(topology);
        hwloc_topology_destroy(topology);
    }
    if (bytes)
        return bytes;
    long said = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (said <= 0)
        return PEAL_TOPO_CORE_CACHE;
    return (uint64_t)said;
}
