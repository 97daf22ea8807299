/* SPDX-License-Identifier: Apache-2.0 */
/* Proves a plan before it is run. */
#ifndef PEAL_CLI_VERIFY_FIRST_H
#define PEAL_CLI_VERIFY_FIRST_H

#include "cli/cli.h"
#include "plan/plan.h"

/* PEAL_EXIT_OK if it is proved; otherwise prints why not. The plan must have all ranks. */
int peal_verify_first(const struct peal_cli *cli, const struct peal_plan *plan);

#endif
