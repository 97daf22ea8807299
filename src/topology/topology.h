/* SPDX-License-Identifier: Apache-2.0 */
/* topology: machines as graphs.
 *
 *   graph/graph.h   nodes and links: built, checked and indexed
 *   bound/bound.h   the least time of a collective: exact cuts (cut.h) by max-flow (flow.h)
 *
 * Start reading at graph/graph.h.
 */
#ifndef PEAL_TOPOLOGY_TOPOLOGY_H
#define PEAL_TOPOLOGY_TOPOLOGY_H

#include "topology/bound/bound.h"
#include "topology/graph/graph.h"

#endif
