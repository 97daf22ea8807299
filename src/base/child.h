/* SPDX-License-Identifier: Apache-2.0 */
/* Running another program for what it writes. */
#ifndef PEAL_BASE_CHILD_H
#define PEAL_BASE_CHILD_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

#include <peal/types.h>

struct peal_child {
    /* The program, found on the search path, and its arguments; then NULL. */
    const char *const *argv;
    int input;         /* a file; -1: there is none */
    bool errors;       /* what it writes to its error output counts, too */
    uint32_t limit_ms; /* then it is ended */
    int *status;       /* or NULL: how it ended, as of waitpid */
};

/* Adds what the program writes to `out`. PEAL_OK: it has ended, however it did; PEAL_TIMEOUT: it was
 * ended; PEAL_SYSTEM: it could not be started. */
enum peal_status peal_child_output(const struct peal_child *child, struct peal_text *out);

#endif
