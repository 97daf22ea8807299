/* SPDX-License-Identifier: Apache-2.0 */
/* One module from many texts: each is parsed into the same arena, then all are deduced together, so
 * that kernels of one file can call those of another. */
#include "lang/library.h"

#include "lang/deduce/deduce.h"
#include "lang/syntax/parse.h"

#include <stdlib.h>
#include <string.h>

struct peal_library {
    struct peal_module *module;
};

enum peal_status peal_library_open(struct peal_diags *diags, struct peal_library **out)
{
    enum peal_status status = PEAL_NO_MEMORY;
    struct peal_library *library = calloc(1, sizeof *library);
    if (!library)
        return status;
    library->module = peal_module_new();
    if (!library->module)
        goto close_library;
    for (size_t i = 0; i < peal_library_text_count; i++) {
        status = peal_parse_into(library->module, &peal_library_texts[i], diags);
        if (status != PEAL_OK)
            goto close_library;
    }
    status = peal_deduce(library->module, NULL, diags);
    if (status != PEAL_OK)
        goto close_library;
    *out = library;
    return PEAL_OK;
close_library:
    peal_library_close(library);
    return status;
}

void peal_library_close(struct peal_library *library)
{
    if (!library)
        return;
    peal_module_free(library->module);
    free(library);
}

const struct peal_module *peal_library_module(const struct peal_library *library)
{
    return library->module;
}

bool peal_library_orders_pairs(const struct peal_library *library, const char *kernel)
{
    /* Kernels whose sums travel through windows of third ranks. */
    static const char *const need_flushes[] = {"allreduce_relay", "reduce_scatter_relay"};
    if (!peal_module_find(library->module, kernel))
        return false;
    for (size_t i = 0; i < sizeof need_flushes / sizeof *need_flushes; i++) {
        if (strcmp(need_flushes[i], kernel) == 0)
            return false;
    }
    return true;
}
