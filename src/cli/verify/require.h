/* SPDX-License-Identifier: Apache-2.0 */
/* --require: properties besides "proved" on which the exit code depends. */
#ifndef PEAL_CLI_VERIFY_REQUIRE_H
#define PEAL_CLI_VERIFY_REQUIRE_H

#include "cli/cli.h"
#include "verify/verify.h"

enum peal_require {
    PEAL_REQUIRE_SAME_BITS = 1,
    PEAL_REQUIRE_CLOSED = 2,
    PEAL_REQUIRE_REPEATABLE = 4,
    PEAL_REQUIRE_RESULT = 8
};

/* "same-bits,closed" into flags; NULL is none. False after a message. */
bool peal_require_parse(const struct peal_cli *cli, const char *text, uint32_t *out);

/* The first required property that a proved answer lacks, as text. NULL: none. */
const char *peal_require_lacks(uint32_t require, const struct peal_verification *v);

#endif
