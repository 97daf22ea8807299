/* SPDX-License-Identifier: Apache-2.0 */
/* See growth.h. */
#include "comm/core/growth.h"

#include "base/base.h"

#include <peal/host.h>
#include <peal/peal.h>
#include <peal/simulate.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* From the release of 0.2.0 on the structures may only become larger: then these become >=. */
static_assert(sizeof(struct peal_open) == PEAL_OPEN_FIRST_BYTES, "0.2.0 has this size");
static_assert(sizeof(struct peal_arg) == PEAL_ARG_FIRST_BYTES, "0.2.0 has this size");
#define HAS(type, bytes) static_assert(sizeof(struct type) == (bytes), "0.2.0 has this size")
HAS(peal_host_open, PEAL_HOST_OPEN_FIRST_BYTES);
HAS(peal_function, PEAL_FUNCTION_FIRST_BYTES);
HAS(peal_domain_spec, PEAL_DOMAIN_SPEC_FIRST_BYTES);
HAS(peal_domain_buffer, PEAL_DOMAIN_BUFFER_FIRST_BYTES);
HAS(peal_tensor_spec, PEAL_TENSOR_SPEC_FIRST_BYTES);
HAS(peal_task_spec, PEAL_TASK_SPEC_FIRST_BYTES);
HAS(peal_task_arg, PEAL_TASK_ARG_FIRST_BYTES);
HAS(peal_simulate, PEAL_SIMULATE_FIRST_BYTES);
HAS(peal_simulate_arg, PEAL_SIMULATE_ARG_FIRST_BYTES);
#undef HAS

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
    memcpy(out, in, peal_size_min(given, known));
    return true;
}

const void *peal_growth_view(const void *in, size_t n, size_t first, size_t known, void **made)
{
    uint32_t given = 0;
    *made = NULL;
    if (!in || n == 0)
        return in;
    memcpy(&given, in, sizeof given);
    size_t size = peal_growth_size(given, first);
    if (size == known)
        return in;
    char *copy = calloc(n, known);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (peal_growth_read(copy + i * known, known, (const char *)in + i * size, size))
            continue;
        free(copy);
        return NULL;
    }
    return *made = copy;
}

void peal_growth_write(void *out, size_t size, const void *from, size_t known)
{
    memset(out, 0, size);
    memcpy(out, from, peal_size_min(size, known));
}
