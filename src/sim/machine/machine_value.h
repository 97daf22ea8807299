/* SPDX-License-Identifier: Apache-2.0 */
/* Values of machine keys: from text, checked; and back. Used by machine.c only. */
#ifndef PEAL_SIM_MACHINE_VALUE_H
#define PEAL_SIM_MACHINE_VALUE_H

#include "sim/machine/machine.h"

/* One scalar, or the first two of a list of `count`. A text is NULL if it is not a plain scalar. */
struct peal_machine_input {
    const char *texts[2];
    size_t count;
    bool is_list;
};

void peal_machine_defaults(struct peal_machine *machine);
/* False with a diagnostic at pos. */
bool peal_machine_value_read(struct peal_machine *machine, enum peal_machine_key key,
                             const struct peal_machine_input *input, struct peal_pos pos,
                             struct peal_diags *diags);
/* Checks that need several keys: missing keys, the number of PEs. Fills in what follows from other
 * keys. */
bool peal_machine_complete(struct peal_machine *machine, struct peal_pos top,
                           struct peal_diags *diags);

/* machine_graph.c: the graph that follows from the keys, instead of the machine's former one; of a
 * machine with its own, the rule of its routes. */
bool peal_machine_make_graph(struct peal_machine *machine, struct peal_pos top,
                             struct peal_diags *diags);

#endif
