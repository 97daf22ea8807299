/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that topology files lack, as NCCL and RCCL assume them: what transfers reach, which is less than a
 * data sheet's. Each with the name of the constant. Read in NCCL 5067397c and RCCL 0cbce2a.
 */
#include "topology/read/reader.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    int64_t least; /* compute capability, times ten */
    struct peal_topology_rate rate;
} nvlinks[] = {
    {100, {"40.1", "NCCL src/graph/topo.h, SM100_NVLINK_BW"}},
    {90, {"20.6", "NCCL src/graph/topo.h, SM90_NVLINK_BW"}},
    {87, {"20.0", "NCCL src/graph/topo.h, SM80_NVLINK_BW"}},
    {86, {"12.0", "NCCL src/graph/topo.h, SM86_NVLINK_BW"}},
    {80, {"20.0", "NCCL src/graph/topo.h, SM80_NVLINK_BW"}},
    {70, {"20.0", "NCCL src/graph/topo.h, SM70_NVLINK_BW"}},
    {60, {"18.0", "NCCL src/graph/topo.h, SM60_NVLINK_BW"}},
    {INT64_MIN, {"20.0", "NCCL src/graph/topo.h, SM80_NVLINK_BW"}},
};

const struct peal_topology_rate *peal_rate_of_nvlink(int64_t sm)
{
    size_t i = 0;
    while (sm < nvlinks[i].least)
        i++;
    return &nvlinks[i].rate;
}

static const struct {
    const char *begins;
    struct peal_topology_rate rate;
} xgmis[] = {
    {"gfx90a", {"36.0", "RCCL src/graph/topo.h, MI200_XGMI_WIDTH"}},
    {"90a", {"36.0", "RCCL src/graph/topo.h, MI200_XGMI_WIDTH"}},
    {"910", {"36.0", "RCCL src/graph/topo.h, MI200_XGMI_WIDTH"}},
    {"gfx94", {"48.0", "RCCL src/graph/topo.h, GFX94X_XGMI_WIDTH"}},
    {"94", {"48.0", "RCCL src/graph/topo.h, GFX94X_XGMI_WIDTH"}},
    {"gfx95", {"48.0", "RCCL src/graph/topo.h, GFX95X_XGMI_WIDTH"}},
    {"", {"24.0", "RCCL src/graph/topo.h, VEGA_XGMI_WIDTH"}},
};

const struct peal_topology_rate *peal_rate_of_xgmi(const char *gcn)
{
    size_t i = 0;
    while (strncmp(gcn, xgmis[i].begins, strlen(xgmis[i].begins)) != 0)
        i++;
    return &xgmis[i].rate;
}

/* Per lane: what NCCL counts of each generation. */
static const struct {
    double GTps;
    struct peal_topology_rate rate;
} pcis[] = {
    {2.5, {"0.1875", "NCCL src/graph/topo.cc, kvDictPciGen: 1.5 Gbit/s a lane at 2.5 GT/s"}},
    {5, {"0.375", "NCCL src/graph/topo.cc, kvDictPciGen: 3 Gbit/s a lane at 5 GT/s"}},
    {8, {"0.75", "NCCL src/graph/topo.cc, kvDictPciGen: 6 Gbit/s a lane at 8 GT/s"}},
    {16, {"1.5", "NCCL src/graph/topo.cc, kvDictPciGen: 12 Gbit/s a lane at 16 GT/s"}},
    {32, {"3.0", "NCCL src/graph/topo.cc, kvDictPciGen: 24 Gbit/s a lane at 32 GT/s"}},
    {64, {"6.0", "NCCL src/graph/topo.cc, kvDictPciGen: 48 Gbit/s a lane at 64 GT/s"}},
};

const struct peal_topology_rate *peal_rate_of_pci(const char *speed)
{
    double GTps = strtod(speed, NULL);
    for (size_t i = 0; i < sizeof pcis / sizeof *pcis; i++) {
        if (GTps == pcis[i].GTps)
            return &pcis[i].rate;
    }
    return NULL;
}

static const struct {
    const char *arch, *vendor;
    int64_t family, model; /* at least this model, of this family; 0: any */
    struct peal_topology_rate rate;
} cpus[] = {
    {"ppc64", NULL, 0, 0, {"32.0", "NCCL src/graph/topo.h, P9_BW"}},
    {"arm64", NULL, 0, 0, {"6.0", "NCCL src/graph/topo.h, ARM_BW"}},
    {"x86_64", "AuthenticAMD", 0, 0, {"16.0", "NCCL src/graph/topo.h, AMD_BW"}},
    {"x86_64", "GenuineIntel", 6, 0xcf, {"40.0", "NCCL src/graph/topo.h, ERP_QPI_BW"}},
    {"x86_64", "GenuineIntel", 6, 0x8f, {"22.0", "NCCL src/graph/topo.h, SRP_QPI_BW"}},
    {"x86_64", "GenuineIntel", 6, 0x55, {"10.0", "NCCL src/graph/topo.h, SKL_QPI_BW"}},
    {"x86_64", "GenuineIntel", 0, 0, {"6.0", "NCCL src/graph/topo.h, BDW_QPI_BW"}},
    {"x86_64", "CentaurHauls", 7, 0x5b, {"9.0", "NCCL src/graph/topo.h, YONGFENG_ZPI_BW"}},
    {"x86_64", "CentaurHauls", 0, 0, {"6.0", "NCCL src/graph/topo.h, ZPI_BW"}},
    {NULL, NULL, 0, 0, {"6.0", "NCCL src/graph/topo.h, BDW_QPI_BW: the file names no known CPU"}},
};

const struct peal_topology_rate *peal_rate_of_cpus(const struct peal_topology_cpu *cpu)
{
    size_t i = 0;
    for (; cpus[i].arch; i++) {
        if (strcmp(cpu->arch, cpus[i].arch) == 0 &&
            (!cpus[i].vendor || strcmp(cpu->vendor, cpus[i].vendor) == 0) &&
            (cpus[i].family == 0 || (cpu->family == cpus[i].family && cpu->model >= cpus[i].model)))
            break;
    }
    return &cpus[i].rate;
}

const struct peal_topology_rate *peal_rate_of_net(void)
{
    static const struct peal_topology_rate net = {"12.0", "NCCL src/graph/topo.h, NET_BW"};
    return &net;
}

const struct peal_topology_latency *peal_latency_of_hop(enum peal_topology_hop hop, bool is_amd)
{
    static const struct peal_topology_latency nvidia[] = {
        [PEAL_HOP_NVLINK] = {600000, "NCCL src/graph/tuning.cc, hwLat: ring LL over NVLink 0.6 us"},
        [PEAL_HOP_XGMI] = {800000, "RCCL src/graph/tuning.cc, hwLat: ring LL over xGMI 0.8 us"},
        [PEAL_HOP_PCI] = {1000000, "NCCL src/graph/tuning.cc, hwLat: ring LL over PCI 1.0 us"},
        [PEAL_HOP_NET] = {2700000, "NCCL src/graph/tuning.cc, hwLat: ring LL over the net 2.7 us"},
    };
    static const struct peal_topology_latency amd[] = {
        [PEAL_HOP_PCI] = {2200000, "RCCL src/graph/tuning.cc, hwLat: ring LL over PCI 2.2 us"},
        [PEAL_HOP_NET] = {9500000, "RCCL src/graph/tuning.cc, hwLat: ring LL over the net 9.5 us"},
    };
    if (is_amd && (hop == PEAL_HOP_PCI || hop == PEAL_HOP_NET))
        return &amd[hop];
    return &nvidia[hop];
}
