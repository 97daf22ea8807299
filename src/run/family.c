/* SPDX-License-Identifier: Apache-2.0 */
/* See family.h. */
#include "run/family.h"

#include "base/size.h"
#include "run/window.h"

#include <stdlib.h>

void peal_regions_init(struct peal_regions *regions, const struct peal_team *team, uint32_t context)
{
    uint64_t pool = team->layout.pool_bytes;
    *regions = (struct peal_regions){.offset = team->layout.contexts + context * team->layout.span,
                                     .pool = context == 0 ? pool / 2 : pool / 8,
                                     .span = team->layout.span};
}

void peal_regions_release(struct peal_regions *regions)
{
    while (regions->families) {
        struct peal_family *family = regions->families;
        regions->families = family->next;
        free(family->shared);
        free(family->ports);
        free(family);
    }
}

enum peal_status peal_regions_find(struct peal_regions *regions, const struct peal_team *team,
                                   const struct peal_image *image, struct peal_family **out)
{
    for (struct peal_family *f = regions->families; f; f = f->next) {
        if (f->key == image->family_key) {
            *out = f;
            return PEAL_OK;
        }
    }
    uint64_t bytes = peal_size_align(image->region_bytes, PEAL_LINE);
    if (bytes > regions->span - regions->used)
        return PEAL_NO_MEMORY;
    /* Beyond what was populated at open, memory is reserved now rather than faulted in later. */
    if (regions->used + bytes > regions->pool) {
        enum peal_status status =
            peal_window_reserve(team->fds[team->rank], regions->offset + regions->used, bytes);
        if (status != PEAL_OK)
            return status;
    }
    struct peal_family *family = calloc(1, sizeof *family);
    if (!family)
        return PEAL_NO_MEMORY;
    family->key = image->family_key;
    family->offset = regions->offset + regions->used;
    family->shared = calloc(image->nshared + 1, sizeof *family->shared);
    family->ports = calloc(image->nchannels + 1, sizeof *family->ports);
    if (!family->shared || !family->ports) {
        free(family->shared);
        free(family->ports);
        free(family);
        return PEAL_NO_MEMORY;
    }
    regions->used += bytes;
    family->next = regions->families;
    regions->families = family;
    *out = family;
    return PEAL_OK;
}
