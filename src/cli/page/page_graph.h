/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of a machine by itself, without a run. */
#ifndef PEAL_CLI_PAGE_GRAPH_H
#define PEAL_CLI_PAGE_GRAPH_H

#include "report/report.h"
#include "topology/topology.h"

/* Its nodes and links. `sends`: of each node, whether it is on the side of a cut that sends; the cut's
 * links are drawn as fully loaded. NULL: there is no cut. */
void peal_page_graph(struct peal_page *page, const struct peal_graph *graph, const bool *sends);

#endif
