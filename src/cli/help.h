/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts of the program and of a command, made from the tables. */
#ifndef PEAL_CLI_HELP_H
#define PEAL_CLI_HELP_H

#include "cli/cli.h"

void peal_help_overview(struct peal_text *out);
void peal_help_command(const struct peal_command *command, struct peal_text *out);
/* The same as a manual page in scdoc's notation. */
void peal_help_man(const struct peal_command *command, struct peal_text *out);
/* Completion scripts for all commands. */
void peal_help_bash(struct peal_text *out);
void peal_help_zsh(struct peal_text *out);
/* Reports that there is no such command, and a similar one; returns PEAL_EXIT_USAGE. */
int peal_help_unknown(const struct peal_cli *cli, const char *name);

#endif
