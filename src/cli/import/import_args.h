/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other formats where a command takes a kernel: recognising them, and their plans. */
#ifndef PEAL_CLI_IMPORT_ARGS_H
#define PEAL_CLI_IMPORT_ARGS_H

#include "cli/kernel_args.h"
#include "import/import.h"

/* Does this argument name a file that contains XML, JSON or a recording, or a kernel in Python (which
 * is recorded when it is opened)? The content decides. Files that end in
 * .peal are Peal text, those that end in .xml or .json are not, and a name without dot and slash is
 * a built-in kernel. */
bool peal_import_names_file(const char *argument);
/* False, after a usage error: options of kernels in C++, or of programs in Python, are given for something else. */
bool peal_import_options_fit(const struct peal_cli *cli, const struct peal_kernel_options *options,
                             const char *argument);

/* A single file: read, opened, and its plan made. Release it in every case. */
struct peal_import_file {
    struct peal_source source;
    struct peal_diags diags;
    struct peal_import *import;
    struct peal_plan *plan; /* may be taken over: set it to NULL */
};
/* False after a message; *code is the exit code. */
bool peal_import_file_open(const struct peal_cli *cli, const char *path,
                           const struct peal_kernel_options *options, struct peal_import_file *out,
                           int *code);
void peal_import_file_release(struct peal_import_file *file);

#endif
