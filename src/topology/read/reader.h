/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the readers of this folder. */
#ifndef PEAL_TOPOLOGY_READ_READER_H
#define PEAL_TOPOLOGY_READ_READER_H

#include "topology/read/read.h"

struct peal_topology_reader {
    const struct peal_source *source;
    struct peal_diags *diags;
    struct peal_graph *graph;
    PEAL_VEC(struct peal_topology_note) notes;
    const char *format;
    /* Of the file that is read, if there are several: "node1." before each name, and its group. */
    const char *prefix;
    uint32_t group;
    const char *fabric; /* name of the switch that NICs are joined to; NULL: they lead nowhere */
    bool rails;         /* one switch for the first NIC of each file, one for the second, ... */
};

/* Notes that are there already are not added again. */
void peal_topology_note(struct peal_topology_reader *r, enum peal_topology_said said,
                        const char *source, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Memory ran out: the graph is not finished. */
void peal_topology_failed(struct peal_topology_reader *r);
/* A node of the file's group, with its prefix before the name. */
uint32_t peal_topology_node(struct peal_topology_reader *r, enum peal_node_kind kind,
                            struct peal_pos pos, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The switch that a file's NIC of that number is joined to. */
uint32_t peal_topology_fabric(struct peal_topology_reader *r, uint32_t nic);
/* Another file, kept as long as the diagnostics are. NULL after one. */
const struct peal_source *peal_topology_open(struct peal_topology_reader *r, const char *path,
                                             struct peal_pos pos);

/* The figures that files lack: rows of rates.c. */
struct peal_topology_rate {
    const char *GBps;   /* per link and direction */
    const char *source; /* where it is from */
};
const struct peal_topology_rate *peal_rate_of_nvlink(int64_t sm);
/* `gcn`: "gfx942", "908". */
const struct peal_topology_rate *peal_rate_of_xgmi(const char *gcn);
/* Per lane; `speed`: "16.0 GT/s PCIe". NULL: unknown. */
const struct peal_topology_rate *peal_rate_of_pci(const char *speed);
/* Between the NUMA nodes of a host. */
struct peal_topology_cpu {
    const char *arch, *vendor;
    int64_t family, model;
};
const struct peal_topology_rate *peal_rate_of_cpus(const struct peal_topology_cpu *cpu);
/* Of a NIC without a speed. */
const struct peal_topology_rate *peal_rate_of_net(void);
/* What a hop costs: half of it on each of a GPU's links. */
enum peal_topology_hop { PEAL_HOP_NVLINK, PEAL_HOP_XGMI, PEAL_HOP_PCI, PEAL_HOP_NET };
struct peal_topology_latency {
    uint64_t ps;
    const char *source;
};
const struct peal_topology_latency *peal_latency_of_hop(enum peal_topology_hop hop, bool is_amd);

/* The readers. Each adds nodes and links to r->graph. */
enum peal_status peal_nccl_read(struct peal_topology_reader *base);
enum peal_status peal_hwloc_read(struct peal_topology_reader *base);
enum peal_status peal_astra_read(struct peal_topology_reader *base);
enum peal_status peal_infragraph_read(struct peal_topology_reader *base);
enum peal_status peal_several_read(struct peal_topology_reader *r);

/* Reads a file that is none of several. PEAL_OK without nodes: it is of no kind known. */
enum peal_status peal_topology_read_one(struct peal_topology_reader *r);

#endif
