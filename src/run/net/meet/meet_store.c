/* SPDX-License-Identifier: Apache-2.0 */
/* The meeting through the program's own store, such as torch's. */
#include "run/net/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store {
    struct peal_meet meet;
    struct peal_meet_store functions;
    uint64_t round; /* of gathers */
    char prefix[128];
};

static enum peal_status store_gather(struct peal_meet *meet, const void *own, size_t bytes,
                                     void *all, struct peal_text *why)
{
    struct store *store = (struct store *)(void *)meet;
    const struct peal_meet_store *functions = &store->functions;
    char name[192];
    store->round++;
    snprintf(name, sizeof name, "%s/%llu/%u", store->prefix, (unsigned long long)store->round,
             meet->rank);
    if (!functions->set(functions->context, name, own, bytes)) {
        peal_text_puts(why, "the store does not take what ranks have to exchange");
        return PEAL_SYSTEM;
    }
    for (uint32_t r = 0; r < meet->size; r++) {
        snprintf(name, sizeof name, "%s/%llu/%u", store->prefix, (unsigned long long)store->round,
                 r);
        int64_t got = functions->get(functions->context, name, (uint8_t *)all + r * bytes, bytes,
                                     meet->timeout_ms);
        if (got == (int64_t)bytes)
            continue;
        if (got < 0)
            peal_text_printf(why, "rank %u has not come to the meeting", r);
        else
            peal_text_printf(why, "rank %u exchanges something else: it makes another call", r);
        return got < 0 ? PEAL_TIMEOUT : PEAL_MISMATCH;
    }
    return PEAL_OK;
}

static void store_close(struct peal_meet *meet)
{
    free(meet);
}

static const struct peal_meet_ops ops = {"the program's store", store_gather, store_close};

enum peal_status peal_meet_open_store(const struct peal_meet_store *store, const char *prefix,
                                      uint32_t rank, uint32_t size, uint32_t timeout_ms,
                                      struct peal_meet **out)
{
    struct store *own = calloc(1, sizeof *own);
    if (!own)
        return PEAL_NO_MEMORY;
    own->functions = *store;
    snprintf(own->prefix, sizeof own->prefix, "%s", prefix);
    own->meet =
        (struct peal_meet){.ops = &ops, .rank = rank, .size = size, .timeout_ms = timeout_ms};
    snprintf(own->meet.job, sizeof own->meet.job, "%.63s", prefix);
    *out = &own->meet;
    return PEAL_OK;
}
