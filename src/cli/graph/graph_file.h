/* SPDX-License-Identifier: Apache-2.0 */
/* A file of tensors, domains and tasks (YAML), submitted to a host. Errors are reported with file,
 * line and column. */
#ifndef PEAL_CLI_GRAPH_FILE_H
#define PEAL_CLI_GRAPH_FILE_H

#include "base/base.h"

#include <peal/host.h>

struct peal_graph_file;

/* Reads a text: checks its form, but not what names mean. */
enum peal_status peal_graph_file_open(const struct peal_source *source, struct peal_diags *diags,
                                      struct peal_graph_file **out);
void peal_graph_file_close(struct peal_graph_file *file);
/* What the file says, or 0, or NULL. */
uint32_t peal_graph_file_workers(const struct peal_graph_file *file);
const char *peal_graph_file_machine(const struct peal_graph_file *file);
/* Its functions: stand-ins that take time and change nothing. */
const struct peal_function *peal_graph_file_functions(const struct peal_graph_file *file,
                                                      size_t *count);
/* Reports why no host was opened for the file, at the line responsible. */
void peal_graph_file_refuse(struct peal_graph_file *file, enum peal_status status,
                            const char *words);
/* Makes domains and tensors, and submits all tasks `repeat` times. */
enum peal_status peal_graph_file_submit(struct peal_graph_file *file, struct peal_host *host,
                                        uint32_t repeat, struct peal_diags *diags);

#endif
