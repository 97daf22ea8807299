/* SPDX-License-Identifier: Apache-2.0 */
/* Processes as the system shows them: what a rank does that is in no call of Peal's. */
#ifndef PEAL_CLI_PROCESS_H
#define PEAL_CLI_PROCESS_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

/* 0: there is none, or it cannot be seen. */
int32_t peal_process_parent(int32_t pid);

/* "running", "asleep in futex_wait_queue", "stopped by a signal", ...; false: it cannot be seen. */
bool peal_process_state(int32_t pid, struct peal_text *out);

/* The functions that its first thread is in, innermost first, one per line and at most `most` of them.
 * By eu-stack of the elfutils, which stops the process for some milliseconds. False: that is not
 * installed, the system does not allow it, or it took too long. */
bool peal_process_stack(int32_t pid, uint32_t max_names, struct peal_text *out);

#endif
