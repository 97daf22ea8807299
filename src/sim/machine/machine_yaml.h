/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a YAML document: where a node is, and what a scalar says. Used by the readers of machine
 * files only.
 */
#ifndef PEAL_SIM_MACHINE_YAML_H
#define PEAL_SIM_MACHINE_YAML_H

#include "sim/machine/machine.h"

#include <yaml.h>

struct peal_yaml {
    const struct peal_source *source;
    yaml_document_t *document;
    struct peal_diags *diags;
};

struct peal_pos peal_yaml_pos(const struct peal_yaml *y, const yaml_node_t *node);
/* The text of a scalar. NULL: the node is something else or contains a NUL byte. */
const char *peal_yaml_text(const yaml_node_t *node);

/* The parts of `topology` that make a graph. Nodes of the document, or NULL. */
struct peal_yaml_graph {
    const yaml_node_t *levels, *nodes, *links, *without, *ways;
};
/* The member of that name, or NULL. */
const yaml_node_t **peal_yaml_graph_part(struct peal_yaml_graph *parts, const char *name);
/* Gives the machine a graph of its own. False after a diagnostic. */
bool peal_yaml_graph_read(const struct peal_yaml *y, const struct peal_yaml_graph *parts,
                          struct peal_machine *machine);

/* The graph of a machine with its own, as lines of a machine file below `topology`. */
void peal_yaml_graph_print(const struct peal_machine *machine, struct peal_text *out);

#endif
