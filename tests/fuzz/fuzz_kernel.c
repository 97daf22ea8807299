/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of any text becomes a plan that passes its check, or is refused with an error, in bounded
 * time and memory. Dimensions and parameters that the text leaves open are 5. */
#include "lang/lang.h"
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 3, MAX_VALUES = 64, MAX_OPS = 20000 };

static void make_plan(const struct peal_kernel *kernel, bool in_place)
{
    static const int64_t fives[RANKS * 8] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,
                                             5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    struct peal_bind_value values[MAX_VALUES];
    size_t count = 0;
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next) {
        if (count == MAX_VALUES)
            break;
        if (s->kind == PEAL_SYMBOL_DIM || s->kind == PEAL_SYMBOL_INT)
            values[count++] = (struct peal_bind_value){s->name, fives, 1, false};
        else if (s->kind == PEAL_SYMBOL_INTS)
            values[count++] =
                (struct peal_bind_value){s->name, fives, s->is_local ? RANKS * RANKS : RANKS, true};
    }
    struct peal_bind bind = {
        .nranks = RANKS,
        .rank = PEAL_NONE,
        .dtype = PEAL_F32,
        .reduce = PEAL_SUM,
        .values = values,
        .nvalues = count,
        .in_place = in_place,
        .symmetric = true,
        .max_ops = MAX_OPS,
    };
    struct peal_diags diags;
    peal_diags_init(&diags);
    struct peal_plan *plan = NULL;
    enum peal_status status = peal_instantiate(kernel, &bind, &diags, &plan);
    const char *why = NULL;
    if (status == PEAL_INVALID && diags.errors == 0)
        abort(); /* refused without a reason */
    if (status == PEAL_OK && !peal_plan_check(plan, plan->block_len, &why)) {
        fprintf(stderr, "instantiate made a plan that fails its check: %s\n", why);
        abort();
    }
    if (status == PEAL_OK) {
        struct peal_text text = {0};
        peal_plan_dump(plan, PEAL_NONE, &text);
        peal_text_release(&text);
    }
    free(plan);
    peal_diags_release(&diags);
}

static void make_plans(const struct peal_module *module, struct peal_diags *diags)
{
    struct peal_module *lowered = peal_module_new();
    if (!lowered)
        return;
    for (const struct peal_kernel *kernel = module->kernels; kernel; kernel = kernel->next) {
        struct peal_kernel *copy;
        if (peal_lower(kernel, lowered, NULL, diags, &copy) != PEAL_OK)
            continue;
        make_plan(copy, false);
        make_plan(copy, true);
    }
    peal_module_free(lowered);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Opened once, because that takes a hundred times as long as a small input. */
    static struct peal_library *library;
    struct peal_diags diags;
    peal_diags_init(&diags);
    if (!library && peal_library_open(&diags, &library) != PEAL_OK)
        abort();
    struct peal_source source = {"input", (const char *)data, size};
    struct peal_module *module = NULL;
    if (peal_parse(&source, &diags, &module) == PEAL_OK &&
        peal_deduce(module, peal_library_module(library), &diags) == PEAL_OK)
        make_plans(module, &diags);
    else if (diags.errors == 0)
        abort(); /* refused without a reason */
    peal_module_free(module);
    peal_diags_release(&diags);
    return 0;
}
