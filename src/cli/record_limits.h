/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that run a user's kernel so that it is recorded: one set of limits, one way to wait, the same
 * words when it does not end well. The limits contain mistakes, not attackers. */
#ifndef PEAL_CLI_RECORD_LIMITS_H
#define PEAL_CLI_RECORD_LIMITS_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct peal_limits {
    uint32_t cpu_seconds, wall_seconds;
    uint64_t memory, output; /* bytes; of output those of one file */
};

/* PEAL_RECORD_SECONDS, if it is set: that much processor time, and four times that in all. */
void peal_limits_ask(struct peal_limits *limits);
/* In the process itself. It ends with its parent. SIGXCPU comes two seconds before it is ended. */
void peal_limits_begin(const struct peal_limits *limits);
/* In its parent: waits. False: it was ended because its time was over. */
bool peal_limits_await(const struct peal_limits *limits, pid_t pid, int *status);
/* Why it did not end well, after "it": nothing if it did. */
void peal_limits_explain(const struct peal_limits *limits, bool in_time, int status,
                         struct peal_text *out);

#endif
