/* SPDX-License-Identifier: Apache-2.0 */
/* Machine files: any bytes give a machine or a diagnostic; a machine prints and reads back. */
#include "sim/sim.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peal_source source = {.name = "fuzz", .text = (const char *)data, .len = size};
    struct peal_diags diags;
    struct peal_machine *machine = NULL, *again = NULL;
    struct peal_text text = {0};
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_read(&source, &diags, &machine);
    if ((status == PEAL_OK) != (diags.errors == 0) && status != PEAL_NO_MEMORY)
        abort(); /* refused without a reason */
    if (machine) {
        peal_machine_print(machine, &text);
        struct peal_source printed = {.name = "printed", .text = text.at, .len = text.len};
        if (peal_machine_read(&printed, NULL, &again) != PEAL_OK || again->pes != machine->pes)
            abort();
    }
    peal_machine_free(machine);
    peal_machine_free(again);
    peal_text_release(&text);
    peal_diags_release(&diags);
    return 0;
}
