/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline. */
#include "lang/lower/lower.h"

#include "lang/tree/validate.h"
#include "lang/lower/clone.h"

#include <string.h>

static const struct {
    const char *name;
    enum peal_status (*run)(struct peal_module *, struct peal_kernel *, struct peal_diags *);
} passes[] = {
    {"inline", peal_lower_inline},
    {"fold", peal_lower_fold},
};

enum { PASSES = sizeof passes / sizeof *passes };

const char *peal_lower_pass_name(int i)
{
    if (i < 0 || i >= PASSES)
        return NULL;
    return passes[i].name;
}

/* A copy of the kernel in another module: same names, same order of symbols. */
static struct peal_kernel *copy_kernel(const struct peal_kernel *kernel, struct peal_module *into)
{
    struct peal_kernel *copy = PEAL_ARENA_NEW(&into->arena, struct peal_kernel);
    struct peal_clone clone;
    struct peal_clone_names names = {0};
    if (!copy)
        return NULL;
    *copy = *kernel;
    copy->next = NULL;
    copy->name = peal_intern_text(&into->names, kernel->name, strlen(kernel->name));
    copy->symbols = NULL;
    copy->nslots = 0;
    if (kernel->nformulas) {
        size_t bytes = sizeof *kernel->formulas * kernel->nformulas;
        struct peal_formula *formulas = peal_arena_alloc(&into->arena, bytes);
        if (!formulas)
            return NULL;
        copy->formulas = memcpy(formulas, kernel->formulas, bytes);
    }
    (void)peal_clone_begin(&clone, into, copy, &names, kernel->nslots); /* sticky */
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next)
        (void)peal_clone_symbol(&clone, s);
    for (int i = 0; i < kernel->nparams; i++)
        copy->params[i] = peal_clone_symbol(&clone, kernel->params[i]);
    copy->body = peal_clone_body(&clone, kernel->body);
    bool failed = clone.failed || !copy->name;
    peal_clone_end(&clone);
    peal_clone_names_release(&names);
    if (failed)
        return NULL;
    return copy;
}

enum peal_status peal_lower(const struct peal_kernel *kernel, struct peal_module *into,
                            const struct peal_lower_hook *hook, struct peal_diags *diags,
                            struct peal_kernel **out)
{
    struct peal_kernel *copy = copy_kernel(kernel, into);
    if (!copy) {
        peal_diag_error(diags, kernel->pos, "out of memory");
        return PEAL_NO_MEMORY;
    }
    struct peal_kernel **tail = &into->kernels;
    while (*tail)
        tail = &(*tail)->next;
    *tail = copy;
    if (hook)
        hook->after("", copy, hook->context);
    for (int i = 0; i < PASSES; i++) {
        enum peal_status status = passes[i].run(into, copy, diags);
        if (status != PEAL_OK) {
            *tail = NULL;
            return status;
        }
        copy->lowered = true; /* after the first pass there are no calls */
        if (!peal_validate_kernel(copy, passes[i].name, diags)) {
            *tail = NULL;
            return PEAL_INVALID;
        }
        if (hook)
            hook->after(passes[i].name, copy, hook->context);
    }
    *out = copy;
    return PEAL_OK;
}
