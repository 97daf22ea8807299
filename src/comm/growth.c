/* SPDX-License-Identifier: Apache-2.0 */
/* See growth.h. */
#include "comm/growth.h"

#include <peal/peal.h>

#include <assert.h>
#include <string.h>

/* From the release of 0.2.0 on the structures may only become larger: then these become >=. */
static_assert(sizeof(struct peal_open) == PEAL_OPEN_FIRST_BYTES, "0.2.0 has this size");
static_assert(sizeof(struct peal_arg) == PEAL_ARG_FIRST_BYTES, "0.2.0 has this size");

bool peal_growth_read(void *out, size_t known, const void *in, size_t given)
{
    const unsigned char *bytes = in;
    if (given < sizeof(uint32_t))
        return false;
    for (size_t i = known; i < given; i++) {
        if (bytes[i] != 0)
            return false;
    }
    memset(out, 0, known);
    memcpy(out, in, given < known ? given : known);
    return true;
}
