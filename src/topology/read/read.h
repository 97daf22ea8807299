/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other programs that describe a machine, as graphs.
 *
 * peal_machine_open gives every file to peal_topology_read first. What it does not recognise is a
 * machine file of Peal's own.
 */
#ifndef PEAL_TOPOLOGY_READ_READ_H
#define PEAL_TOPOLOGY_READ_READ_H

#include "topology/graph/graph.h"

enum { PEAL_TOPOLOGY_MAX_BYTES = 16 << 20 /* of a file */ };

struct peal_topology {
    /* Finished, the caller's to free; NULL: the text is of no kind known here. */
    struct peal_graph *graph;
    /* What the file says about engines, memories and placement, as lines of a machine file without
     * `topology` and `links`; in the graph's arena, or NULL. Keys that it leaves out have the values
     * of a machine that only its links limit. */
    const char *keys;
};

/* PEAL_OK also for a text that is not recognised. PEAL_INVALID after diagnostics. `source` has to
 * outlive the graph, whose positions point into it, only while diagnostics are printed. */
enum peal_status peal_topology_read(const struct peal_source *source, struct peal_diags *diags,
                                    struct peal_topology *out);

#endif
