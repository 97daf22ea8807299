/* SPDX-License-Identifier: Apache-2.0 */
/* A text parses, or is rejected with at least one error. A parsed text is printed canonically: parsed
 * and printed again, it is the same. Deducing succeeds or gives an error; its result is well formed,
 * and the printed text is accepted if and only if the original is. */
#include "lang/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct peal_module *parse(const char *name, const char *text, size_t len,
                                 struct peal_source *source)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    *source = (struct peal_source){name, text, len};
    struct peal_module *module = NULL;
    enum peal_status status = peal_parse(source, &diags, &module);
    if (status == PEAL_INVALID && diags.errors == 0)
        abort(); /* rejected without a reason */
    struct peal_text shown = {0};
    peal_diags_print(&diags, false, &shown);
    peal_text_release(&shown);
    peal_diags_release(&diags);
    return status == PEAL_OK ? module : NULL;
}

/* The library, opened once: texts may call its kernels. It lives as long as the process. */
static const struct peal_module *library(void)
{
    static struct peal_library *opened;
    if (!opened && peal_library_open(NULL, &opened) != PEAL_OK)
        abort();
    return peal_library_module(opened);
}

/* True if the module is right. */
static bool deduce(struct peal_module *module)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_deduce(module, library(), &diags);
    if ((status == PEAL_INVALID) != (diags.errors > 0))
        abort(); /* an error that is not one, or a rejection without a reason */
    if (!peal_validate(module, "deduce", &diags)) {
        struct peal_text shown = {0};
        peal_diags_print(&diags, false, &shown);
        fputs(peal_text_get(&shown), stderr);
        abort();
    }
    peal_diags_release(&diags);
    return status == PEAL_OK;
}

/* What an editor makes of it: as much of the tree as can be read, deduced without a report. */
static void read_partially(const char *text, size_t len)
{
    struct peal_source source = {"input", text, len};
    struct peal_module *module = NULL;
    enum peal_status status = peal_parse_partial(&source, NULL, &module);
    if (!module && status != PEAL_NO_MEMORY)
        abort();
    if (module) {
        module->keeps_lengths = true;
        (void)peal_deduce(module, library(), NULL);
    }
    peal_module_free(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_partially((const char *)data, size);
    struct peal_source source, again_source;
    struct peal_module *module = parse("input", (const char *)data, size, &source);
    if (!module)
        return 0;
    struct peal_text first = {0}, second = {0};
    peal_print_module(module, &first);
    struct peal_module *again = parse("printed", peal_text_get(&first), first.len, &again_source);
    if (!again) {
        fprintf(stderr, "printed text does not parse:\n%s\n", peal_text_get(&first));
        abort();
    }
    peal_print_module(again, &second);
    if (strcmp(peal_text_get(&first), peal_text_get(&second)) != 0) {
        fprintf(stderr, "printing twice differs:\n%s----\n%s\n", peal_text_get(&first),
                peal_text_get(&second));
        abort();
    }
    if (deduce(module) != deduce(again)) {
        fprintf(stderr,
                "printed text is not right where the original is, or the other way round\n");
        abort();
    }
    peal_text_release(&first);
    peal_text_release(&second);
    peal_module_free(again);
    peal_module_free(module);
    return 0;
}
