/* SPDX-License-Identifier: Apache-2.0 */
/* The command that needs no library has no hwloc, which finds the cores to measure. */
#include "cli/machine/host.h"

enum peal_status peal_host_measure(struct peal_host_figures *out)
{
    *out = (struct peal_host_figures){.no_cores = true};
    return PEAL_UNSUPPORTED;
}
