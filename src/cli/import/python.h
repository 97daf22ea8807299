/* SPDX-License-Identifier: Apache-2.0 */
/* Tile kernels in Python as arguments: recorded by python/peal/record.py, which is part of this
 * program and runs in a process of its own with limits; the recordings are then files like others
 * of another format. This runs the user's code. */
#ifndef PEAL_CLI_IMPORT_PYTHON_H
#define PEAL_CLI_IMPORT_PYTHON_H

#include "cli/kernel_args.h"

#include <limits.h>

/* Does the argument name a Python file, or a configuration whose algorithms are Python modules? */
bool peal_python_names_file(const char *argument);

/* Recordings of one argument, in a folder that ends with them. */
struct peal_python_recordings {
    char folder[PEAL_CLI_FOLDER];
    char **paths; /* in the order of ranks, then counts */
    int npaths;
};
/* Records the kernel for each number of ranks (that which the file names, or `fallback`, unless ranks
 * are given) and each count. False after a message;
 * release it in every case. */
bool peal_python_record(const struct peal_cli *cli, const char *path,
                        const struct peal_kernel_options *options, const char *fallback,
                        struct peal_python_recordings *out);
void peal_python_release(struct peal_python_recordings *recordings);

/* Runs script `number` with these arguments (ended by NULL), which write to this program's output;
 * `folder` is for its text. Returns its exit code. */
int peal_python_run(const char *folder, int number, const char *const *args);

/* Where libpeal_shmem.so and its header are: of an installation, or of a build folder in its source. */
bool peal_shmem_places(char library[static PATH_MAX], char include[static PATH_MAX]);

/* record.py, shmem.py, shmem_runs.py, then tiles/; made by the build. */
extern const struct peal_source peal_python_texts[];
extern const size_t peal_python_text_count;

#endif
