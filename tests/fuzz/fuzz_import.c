/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of other formats: any bytes give a plan or a diagnostic, and every plan is a sound block. */
#include "import/import.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make(const struct peal_import *import, enum peal_import_place place, bool lenient)
{
    struct peal_import_options options = {.dtype = PEAL_F32, .place = place, .lenient = lenient};
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    const char *why;
    peal_diags_init(&diags);
    enum peal_status status = peal_import_plan(import, &options, &diags, &plan);
    if (status == PEAL_OK && !peal_plan_check(plan, plan->block_len, &why))
        abort();
    if (status == PEAL_INVALID && diags.errors == 0)
        abort(); /* refused without a word */
    free(plan);
    peal_diags_release(&diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    struct peal_source source = {.name = "fuzz", .text = text, .len = size};
    struct peal_diags diags;
    struct peal_import *import = NULL;
    struct peal_findings findings;
    peal_diags_init(&diags);
    peal_findings_init(&findings);
    enum peal_status status = peal_import_open(&source, &diags, &import);
    if (status == PEAL_INVALID && diags.errors == 0)
        abort();
    if (status == PEAL_OK) {
        make(import, PEAL_PLACE_FILE, true);
        make(import, PEAL_PLACE_IN, false);
        peal_import_judge(import, 3, &findings);
    }
    peal_import_close(import);
    peal_findings_release(&findings);
    peal_diags_release(&diags);
    free(text);
    return 0;
}
