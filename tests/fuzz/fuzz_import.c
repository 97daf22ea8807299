/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of other formats: any bytes give a plan that passes its check, or a diagnostic. */
#include "import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Asks for fixes of a fault between two places of the file: their edits can be applied. */
static void propose(const struct peal_source *source, const struct peal_import *import,
                    const struct peal_plan *plan)
{
    struct peal_fix_site site = {.channel = plan->lanes.count % 2, .caller = plan->nranks - 1};
    const struct peal_position *at = peal_plan_positions(plan);
    uint64_t n = plan->positions.count;
    if (n == 0)
        return;
    for (int i = 0; i < 2; i++) {
        site.line[i] = at[i ? n - 1 : n / 2].line;
        site.col[i] = at[i ? n - 1 : n / 2].col;
    }
    for (int i = 0; i < 3; i++) {
        struct peal_findings out;
        site.deadlock = i == 1;
        site.has_caller = i == 2;
        peal_findings_init(&out);
        peal_import_propose(import, &site, &out);
        for (size_t k = 0; k < out.list.len; k++) {
            size_t len;
            free(peal_edits_apply(source, out.list.at[k].edits, out.list.at[k].nedits, &len));
        }
        peal_findings_release(&out);
    }
}

static void make(const struct peal_source *source, const struct peal_import *import,
                 enum peal_import_place place, bool lenient)
{
    struct peal_import_options options = {.dtype = PEAL_F32,
                                          .place = place,
                                          .pieces =
                                              !lenient && peal_import_facts(import)->sends_pieces,
                                          .lenient = lenient};
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    const char *why;
    peal_diags_init(&diags);
    enum peal_status status = peal_import_plan(import, &options, &diags, &plan);
    if (status == PEAL_OK && !peal_plan_check(plan, plan->block_len, &why)) {
        fprintf(stderr, "%s plan: %s\n", lenient ? "lenient" : "strict", why);
        abort();
    }
    if (status == PEAL_INVALID && diags.errors == 0)
        abort(); /* refused without a reason */
    if (status == PEAL_OK)
        propose(source, import, plan);
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
        make(&source, import, PEAL_PLACE_FILE, true);
        make(&source, import, PEAL_PLACE_IN, false);
        peal_import_judge(import, 3, &findings);
    }
    peal_import_close(import);
    peal_findings_release(&findings);
    peal_diags_release(&diags);
    free(text);
    return 0;
}
