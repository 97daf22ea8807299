/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other programs that describe a machine, as graphs.
 *
 *   nccl.c       NCCL's and RCCL's topology XML          tree.c  YAML and JSON, as a tree with positions
 *   hwloc.c      hwloc's XML                             rates.c figures that files lack, with sources
 *   astra.c      ASTRA-sim's analytical networks         several.c  several files, joined by a fabric
 *   infragraph.c InfraGraph's YAML and JSON
 *   xml.c        XML as a stream, by expat
 *
 * peal_machine_open gives every file to peal_topology_read first. What it does not recognise is a
 * machine file of Peal's own.
 */
#ifndef PEAL_TOPOLOGY_READ_READ_H
#define PEAL_TOPOLOGY_READ_READ_H

#include "topology/graph/graph.h"

enum { PEAL_TOPOLOGY_MAX_BYTES = 16 << 20 /* of a file */ };

/* What a reader made of a file, in words. */
enum peal_topology_said {
    PEAL_TOPOLOGY_ASSUMED, /* a figure that the file lacks, and where it comes from */
    PEAL_TOPOLOGY_MISSING, /* what the file could say and does not */
    PEAL_TOPOLOGY_IGNORED  /* what it says and a machine cannot have */
};
struct peal_topology_note {
    enum peal_topology_said said;
    const char *text;
    const char *source; /* of an assumed figure */
};

struct peal_topology {
    /* Finished, the caller's to free; NULL: the text is of no kind known here. */
    struct peal_graph *graph;
    /* What the file says about engines, memories and placement, as lines of a machine file without
     * `topology` and `links`; in the graph's arena, or NULL. Keys that it leaves out have the values
     * of a machine that only its links limit. */
    const char *keys;
    const char *format;                     /* "NCCL topology XML" */
    const struct peal_topology_note *notes; /* in the graph's arena */
    uint32_t nnotes;
};

/* PEAL_OK also for a text that is not recognised. PEAL_INVALID after diagnostics. `source` has to
 * outlive the graph, whose positions point into it, only while diagnostics are printed. */
enum peal_status peal_topology_read(const struct peal_source *source, struct peal_diags *diags,
                                    struct peal_topology *out);

/* "h100.xml*4,mi300x.xml,rails=ib" (or fabric=ib) as the text that names several files. False: it is the
 * name of one file. */
bool peal_topology_list(const char *path, struct peal_text *out);

#endif
