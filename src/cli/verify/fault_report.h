/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `peal verify --fault stop`, as text and JSON. */
#ifndef PEAL_CLI_FAULT_REPORT_H
#define PEAL_CLI_FAULT_REPORT_H

#include "verify/verify.h"

void peal_fault_report_text(const char *kernel, const struct peal_stops *all,
                            struct peal_text *out);
void peal_fault_report_json(const char *kernel, const struct peal_stops *all,
                            struct peal_text *out);

#endif
