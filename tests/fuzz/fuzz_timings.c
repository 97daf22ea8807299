/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of times: any bytes give rows, each size once and in order, or a diagnostic. */
#include "sim/fit/timings.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peal_source source = {.name = "fuzz", .text = (const char *)data, .len = size};
    const struct peal_timings_where where = {"machine", "a"};
    for (int form = 0; form < 4; form++) {
        struct peal_timings_options options = {
            .in_place = form & 1, .where = &where, .nwhere = form / 2};
        struct peal_diags diags;
        struct peal_timings timings;
        peal_diags_init(&diags);
        enum peal_status status = peal_timings_read(&source, &options, &diags, &timings);
        if ((status == PEAL_OK) != (diags.errors == 0))
            abort(); /* refused without a reason */
        for (size_t i = 0; status == PEAL_OK && i < timings.rows.len; i++) {
            const struct peal_measured_time *row = &timings.rows.at[i];
            if (!(row->us > 0) || row->bytes == 0 || row->series >= timings.series.len)
                abort();
            if (i && row->series == row[-1].series && row->bytes <= row[-1].bytes)
                abort();
        }
        peal_timings_release(&timings);
        peal_diags_release(&diags);
    }
    return 0;
}
