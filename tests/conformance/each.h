/* SPDX-License-Identifier: Apache-2.0 */
/* A check of every kernel of some files, reported as TAP, a line per kernel. */
#ifndef PEAL_CONFORMANCE_EACH_H
#define PEAL_CONFORMANCE_EACH_H

#include "base/base.h"
#include "lang/lang.h"

struct answer {
    bool good, skipped; /* skipped: no line is printed */
    uint64_t count;     /* of trials or proofs */
    struct peal_text why;
};

/* `kernel` is lowered. */
typedef struct answer kernel_check(const struct peal_kernel *kernel, bool full);

/* Returns the program's exit code. unit: of the answers' counts; NULL: they are not printed. */
int each_kernel(char **files, bool full, const char *unit, kernel_check *check);
/* The same for a program called as NAME quick|full FILE.peal... */
int each_kernel_main(int argc, char **argv, const char *unit, kernel_check *check);

#endif
