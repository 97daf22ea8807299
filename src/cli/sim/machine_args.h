/* SPDX-License-Identifier: Apache-2.0 */
/* A machine as an option, for commands that ask about the machine itself. */
#ifndef PEAL_CLI_MACHINE_ARGS_H
#define PEAL_CLI_MACHINE_ARGS_H

#include "cli/cli.h"
#include "sim/sim.h"

/* Opens `path` (NULL: the machine of PEAL_PLATFORM) and applies the settings. False after a message; *code
 * is the exit code. */
bool peal_machine_args_open(const struct peal_cli *cli, const char *path,
                            const struct peal_pairs *settings, struct peal_machine **out,
                            int *code);

#endif
