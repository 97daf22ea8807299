/* SPDX-License-Identifier: Apache-2.0 */
/* Topology files of other programs: any bytes give a graph, nothing, or a diagnostic. */
#include "topology/topology.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peal_source source = {.name = "fuzz", .text = (const char *)data, .len = size};
    struct peal_diags diags;
    struct peal_topology got = {0};
    peal_diags_init(&diags);
    enum peal_status status = peal_topology_read(&source, &diags, &got);
    if ((status == PEAL_OK) != (diags.errors == 0) && status != PEAL_NO_MEMORY)
        abort(); /* refused without a reason */
    if (got.graph && got.graph->pes == 0)
        abort();
    peal_graph_free(got.graph);
    peal_diags_release(&diags);
    return 0;
}
