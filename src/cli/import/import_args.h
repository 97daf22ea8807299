/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other formats where a command takes a kernel: are these such files, and their plan. */
#ifndef PEAL_CLI_IMPORT_ARGS_H
#define PEAL_CLI_IMPORT_ARGS_H

#include "cli/kernel_args.h"
#include "import/import.h"

/* Does this argument name a file that holds XML or JSON? The content decides; files that end in
 * .peal are text, those that end in .xml or .json are not, and a name without point and slash is a
 * built-in kernel. */
bool peal_import_names_file(const char *what);

/* A file on its own: read, opened, made. Release it in every case. */
struct peal_import_file {
    struct peal_source source;
    struct peal_diags diags;
    struct peal_import *import;
    struct peal_plan *plan; /* may be taken over: set it to NULL */
};
/* False after a message, with the code to end with. */
bool peal_import_file_open(const struct peal_cli *cli, const char *path,
                           const struct peal_kernel_options *options, struct peal_import_file *out,
                           int *code);
void peal_import_file_release(struct peal_import_file *file);

#endif
