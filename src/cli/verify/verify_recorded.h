/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify KERNEL.cpp: records the kernel, proves it at every number of ranks and level, reports. */
#ifndef PEAL_CLI_VERIFY_RECORDED_H
#define PEAL_CLI_VERIFY_RECORDED_H

#include "cli/verify/verify_kernel.h"

int peal_verify_recorded(struct peal_cli *cli, const struct peal_verify_settings *o,
                         const char *path);

#endif
