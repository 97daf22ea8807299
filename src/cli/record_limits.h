/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that run a user's kernel so that it is recorded: one set of limits, one way to wait, the same
 * words when it does not end well. The limits contain mistakes, not attackers. */
#ifndef PEAL_CLI_RECORD_LIMITS_H
#define PEAL_CLI_RECORD_LIMITS_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

struct peal_limits {
    uint32_t cpu_seconds, wall_seconds;
    uint64_t memory, output; /* bytes; of output those of one file */
};

/* PEAL_RECORD_SECONDS, if it is set: that much processor time, and thirty times that in all. */
void peal_limits_ask(struct peal_limits *limits);
/* Runs `body` in a process of its own, which must not return, and waits for it. It ends with its parent, and
 * what it started ends with it. True: it ended with code 0. Otherwise `why` has the reason, as in "it did not
 * end", and `code` its exit code, or -1. */
bool peal_limits_run(const struct peal_limits *limits, void (*body)(void *data), void *data,
                     int *code, struct peal_text *why);

#endif
