/* SPDX-License-Identifier: Apache-2.0 */
/* How long one launch of a plan takes on a modelled machine. */
#ifndef PEAL_CLI_PLAN_TIME_H
#define PEAL_CLI_PLAN_TIME_H

#include "cli/cli.h"
#include "plan/plan.h"

/* `argument`: the kernel, as the user named it, for messages. Returns the exit code; after PEAL_EXIT_OK *out is the
 * time in microseconds. */
int peal_plan_time(const struct peal_cli *cli, const char *argument, const struct peal_plan *plan,
                   const char *machine, double *out);

#endif
