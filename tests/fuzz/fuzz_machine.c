/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a machine, or is refused with at least one error. */
#include "sim/machine.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peal_source source = {"input", (const char *)data, size};
    struct peal_diags diags;
    peal_diags_init(&diags);
    struct peal_machine *machine = NULL;
    enum peal_status status = peal_machine_read(&source, &diags, &machine);
    if (status == PEAL_INVALID && diags.errors == 0)
        abort(); /* refused without a word */
    if (status == PEAL_OK && (machine->pes == 0 || machine->pes > PEAL_MACHINE_MOST_PES))
        abort();
    struct peal_text text = {0};
    peal_diags_print(&diags, false, &text);
    peal_text_release(&text);
    if (status == PEAL_OK)
        peal_machine_free(machine);
    peal_diags_release(&diags);
    return 0;
}
