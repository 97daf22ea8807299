/* SPDX-License-Identifier: Apache-2.0 */
/* Execution traces: any bytes, as those of two ranks, give a graph's text or a diagnostic. */
#include "cli/graph/chakra.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peal_source source = {.name = "fuzz", .text = (const char *)data, .len = size};
    struct peal_text text = {0}, notes = {0};
    struct peal_chakra trace;
    struct peal_diags diags;
    peal_chakra_init(&trace);
    peal_diags_init(&diags);
    enum peal_status status = peal_chakra_add(&trace, &source, &diags);
    if (status == PEAL_OK)
        status = peal_chakra_add(&trace, &source, &diags);
    if (status == PEAL_OK)
        status = peal_chakra_graph(&trace, &diags, &text, &notes);
    if ((status == PEAL_OK) != (diags.errors == 0) && status != PEAL_NO_MEMORY)
        abort(); /* refused without a reason */
    peal_text_release(&text);
    peal_text_release(&notes);
    peal_diags_release(&diags);
    peal_chakra_release(&trace);
    return 0;
}
