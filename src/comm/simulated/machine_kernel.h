/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel a machine has for a collective: ccl.algorithm of its file.
 *
 *   ring                               for every collective that has a kernel of that name
 *   mine.peal                          for the collective that the file's last kernel implements
 *   allreduce=ring,broadcast=b.peal    for each collective its own; the last of several counts
 *
 * A collective for which it names none takes a fallback. A file is looked for beside the machine's
 * file, then as written. */
#ifndef PEAL_COMM_MACHINE_KERNEL_H
#define PEAL_COMM_MACHINE_KERNEL_H

#include "lang/lang.h"
#include "sim/sim.h"

/* Is everything that it names there, and can calls launch it? PEAL_INVALID otherwise. */
enum peal_status peal_machine_kernels_check(const struct peal_machine *machine,
                                            struct peal_diags *diags);
/* The kernel for a collective; the fallback where the machine names none. *program must be NULL, and
 * may be set on failure too: close it after printing the diagnostics. */
enum peal_status peal_machine_kernel_open(const struct peal_machine *machine,
                                          enum peal_contract contract, struct peal_diags *diags,
                                          struct peal_program **program,
                                          const struct peal_kernel **kernel);

/* A kernel that asks where its ranks are placed gets the machine's levels: a node is a SIP. Others,
 * and binds that have a placement, are left alone. group NULL: the bind's ranks are the machine's.
 * False: out of memory. */
bool peal_machine_kernel_seat(const struct peal_machine *machine, const struct peal_kernel *kernel,
                              const struct peal_machine_group *group, struct peal_arena *arena,
                              struct peal_bind *bind);

#endif
