/* SPDX-License-Identifier: Apache-2.0 */
/* Doubling growth behind vec.h. */
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>

bool peal_vec_grow(void **at, size_t *cap, size_t len, size_t extra, size_t element)
{
    if (extra > SIZE_MAX / 2 - len)
        return false;
    size_t want = len + extra;
    size_t next = *cap < 8 ? 8 : *cap + *cap / 2;
    if (next < want)
        next = want;
    if (next > SIZE_MAX / 2 / element)
        return false;
    void *grown = realloc(*at, next * element);
    if (!grown)
        return false;
    *at = grown;
    *cap = next;
    return true;
}
