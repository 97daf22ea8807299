/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of a file; and every kernel of several files with each number of ranks and each
 * count. */
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
static inline const char *each_number(const char *list, int64_t *out)
{
    char *end;
    *out = strtoll(list, &end, 10);
    return end == list ? NULL : end + (*end == ',');
}

/* Visits the kernels of a file that can be lowered; false: the file cannot be read. */
static inline bool each_kernel(const char *file,
                               void (*visit)(void *context, const struct peal_kernel *kernel),
                               void *context)
{
    struct peal_diags diags;
    struct peal_program *program = NULL;
    peal_diags_init(&diags);
    bool opened = peal_program_open(file, &diags, &program) == PEAL_OK;
    const struct peal_kernel *k = opened ? peal_program_module(program)->kernels : NULL;
    for (; k; k = k->next) {
        const struct peal_kernel *kernel = peal_program_kernel(program, k->name, &diags);
        if (kernel)
            visit(context, kernel);
    }
    peal_program_close(program);
    peal_diags_release(&diags);
    return opened;
}

struct each_visit {
    struct each_case c;
    const char *ranks, *counts; /* lists */
    void (*compare)(void *context, const struct each_case *c);
    void *context;
};

static inline void each_visit_kernel(void *visit, const struct peal_kernel *kernel)
{
    struct each_visit *v = visit;
    int64_t nranks;
    v->c.kernel = kernel;
    for (const char *r = each_number(v->ranks, &nranks); r; r = each_number(r, &nranks)) {
        v->c.nranks = (uint32_t)nranks;
        for (const char *n = each_number(v->counts, &v->c.count); n;
             n = each_number(n, &v->c.count))
            v->compare(v->context, &v->c);
    }
}

/* argv: program, ranks, counts, files. */
static inline void each_file(int argc, char **argv,
                             void (*compare)(void *context, const struct each_case *c),
                             void *context)
{
    for (int i = 3; i < argc; i++) {
        struct each_visit v = {{.file = argv[i]}, argv[1], argv[2], compare, context};
        (void)each_kernel(argv[i], each_visit_kernel, &v);
    }
}

#endif
