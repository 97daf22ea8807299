/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of a machine by itself, without a run. */
#ifndef PEAL_CLI_PAGE_GRAPH_H
#define PEAL_CLI_PAGE_GRAPH_H

#include "report/report.h"
#include "topology/topology.h"

/* Its nodes and links. `inside`: of each node, whether it is in a cut, whose links are drawn as fully
 * loaded; or NULL. */
void peal_page_graph(struct peal_page *page, const struct peal_graph *graph, const bool *inside);

#endif
