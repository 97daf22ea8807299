/* SPDX-License-Identifier: Apache-2.0 */
/* From a command's --html FILE to the file: begin, fill by one of page_verify, page_sim, ..., save.
 *
 *   struct peal_page page;
 *   peal_page_begin(cli, &page, PEAL_PAGE_SIM, kernel_name, args[0]);
 *   peal_page_sim(&page, sim, machine, nranks);
 *   if (!peal_page_save(cli, &page, options->html)) return PEAL_EXIT_OTHER;
 */
#ifndef PEAL_CLI_PAGE_FILE_H
#define PEAL_CLI_PAGE_FILE_H

#include "cli/cli.h"
#include "report/report.h"

/* Does the file get only the picture? */
bool peal_page_is_picture(const char *path);
/* `argument` is the kernel argument: if it is a file, the page has its text. Built-in texts are
 * added automatically, see page_plan.h. NULL: neither. */
void peal_page_begin(const struct peal_cli *cli, struct peal_page *page, enum peal_page_kind kind,
                     const char *title, const char *argument);
/* Writes the page, or only the picture if the path ends in .svg, and releases it. False after a
 * message. */
bool peal_page_save(const struct peal_cli *cli, struct peal_page *page, const char *path);

#endif
