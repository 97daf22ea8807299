/* SPDX-License-Identifier: Apache-2.0 */
/* For the programs of this folder: every kernel of a file with each number of ranks and each count. */
#ifndef PEAL_SYMMETRY_EACH_H
#define PEAL_SYMMETRY_EACH_H

#include "base/base.h"
#include "lang/lang.h"

#include <stdlib.h>

struct each_case {
    const char *file;
    const struct peal_kernel *kernel;
    uint32_t nranks;
    int64_t count;
};

/* The next number of a list such as 2,3,5; NULL: there is none. */
static const char *each_number(const char *list, int64_t *out)
{
    char *end;
    *out = strtoll(list, &end, 10);
    return end == list ? NULL : end + (*end == ',');
}

static void each_of(const struct peal_kernel *kernel, const char *file, char **lists,
                    void (*compare)(void *context, const struct each_case *c), void *context)
{
    struct each_case c = {.file = file, .kernel = kernel};
    int64_t number;
    for (const char *r = lists[0]; (r = each_number(r, &number));) {
        c.nranks = (uint32_t)number;
        for (const char *n = lists[1]; (n = each_number(n, &c.count));)
            compare(context, &c);
    }
}

/* argv: program, ranks, counts, files. */
static void each_file(int argc, char **argv,
                      void (*compare)(void *context, const struct each_case *c), void *context)
{
    for (int i = 3; i < argc; i++) {
        struct peal_diags diags;
        struct peal_program *program = NULL;
        peal_diags_init(&diags);
        const struct peal_kernel *k = NULL;
        if (peal_program_open(argv[i], &diags, &program) == PEAL_OK)
            k = peal_program_module(program)->kernels;
        for (; k; k = k->next) {
            const struct peal_kernel *kernel = peal_program_kernel(program, k->name, &diags);
            if (kernel)
                each_of(kernel, argv[i], argv + 1, compare, context);
        }
        if (program)
            peal_program_close(program);
        peal_diags_release(&diags);
    }
}

#endif
