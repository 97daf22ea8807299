/* SPDX-License-Identifier: Apache-2.0 */
/* topology: machines as graphs.
 *
 *   graph/graph.h   nodes and links: built, checked and indexed
 *   graph/layout.h  where nodes are drawn
 *   graph/make.h    generators: grids, rings, switches, fat trees, dragonflies, rails, nested
 *   graph/route.h   which link a message takes next
 *   read/read.h     files of other programs that describe a machine
 *   bound/bound.h   the least time of a collective: exact cuts (cut.h) by max-flow (flow.h)
 *
 * Start reading at graph/graph.h.
 */
#ifndef PEAL_TOPOLOGY_TOPOLOGY_H
#define PEAL_TOPOLOGY_TOPOLOGY_H

#include "topology/bound/bound.h"
#include "topology/graph/graph.h"
#include "topology/graph/layout.h"
#include "topology/graph/make.h"
#include "topology/graph/route.h"
#include "topology/read/read.h"

#endif
