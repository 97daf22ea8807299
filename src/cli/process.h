/* SPDX-License-Identifier: Apache-2.0 */
/* Processes as the system shows them: what a rank does that is not in a call of Peal. */
#ifndef PEAL_CLI_PROCESS_H
#define PEAL_CLI_PROCESS_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

/* 0: there is none, or it is not visible. */
int32_t peal_process_parent(int32_t pid);

/* "running", "asleep in futex_wait_queue", "stopped by a signal", ... False: it is not visible. */
bool peal_process_state(int32_t pid, struct peal_text *out);

/* The functions in which its first thread is, innermost first, one per line and at most `most` of
 * them. Uses eu-stack of elfutils, which stops the process for some milliseconds. False: that is
 * not installed, the system does not allow it, or it took too long. */
bool peal_process_stack(int32_t pid, uint32_t max_names, struct peal_text *out);

#endif
