/* SPDX-License-Identifier: Apache-2.0 */
/* See family.h. */
#include "run/family.h"

#include "base/size.h"
#include "run/multicast.h"
#include "run/pause.h"
#include "run/window.h"

#include <stdlib.h>
#include <string.h>

void peal_regions_init(struct peal_regions *regions, const struct peal_team *team, uint32_t context)
{
    const struct peal_layout *layout = &team->layout;
    *regions = (struct peal_regions){.context = context,
                                     .offset = layout->contexts + context * layout->span,
                                     .pool = peal_layout_pool(layout, context),
                                     .span = layout->span,
                                     .limit = peal_layout_limit(layout, context)};
}

static void free_family(struct peal_family *family)
{
    free(family->writers);
    free(family->shared);
    free(family->ports);
    free(family);
}

void peal_regions_release(struct peal_regions *regions)
{
    while (regions->families) {
        struct peal_family *family = regions->families;
        regions->families = family->next;
        free_family(family);
    }
}

/* Cells lie where their writers say: two plans share a family only if they agree on every cell that
 * both of them touch. */
static bool agrees(const struct peal_family *family, const struct peal_image *image)
{
    if (!family->writers != !image->writers)
        return false;
    for (uint32_t c = 0; image->writers && c < image->plan->cells; c++) {
        uint32_t a = family->writers[c], b = image->writers[c];
        if (a != b && a != PEAL_UNTOUCHED && b != PEAL_UNTOUCHED)
            return false;
    }
    return true;
}

static void add_writers(struct peal_family *family, const struct peal_image *image)
{
    for (uint32_t c = 0; image->writers && c < image->plan->cells; c++) {
        if (image->writers[c] != PEAL_UNTOUCHED)
            family->writers[c] = image->writers[c];
    }
}

static struct peal_family *new_family(const struct peal_image *image, uint64_t offset)
{
    struct peal_family *family = calloc(1, sizeof *family);
    if (!family)
        return NULL;
    uint32_t cells = image->plan->cells;
    family->key = image->family_key;
    family->offset = offset;
    family->writers = image->writers ? malloc((cells + 1) * sizeof *family->writers) : NULL;
    family->shared = calloc(image->nshared + 1, sizeof *family->shared);
    family->ports = calloc(image->nchannels + 1, sizeof *family->ports);
    if (!family->shared || !family->ports || (image->writers && !family->writers)) {
        free_family(family);
        return NULL;
    }
    for (uint32_t c = 0; family->writers && c < cells; c++)
        family->writers[c] = PEAL_UNTOUCHED;
    return family;
}

enum peal_status peal_regions_find(struct peal_regions *regions, const struct peal_team *team,
                                   const struct peal_image *image, struct peal_family **out)
{
    for (struct peal_family *f = regions->families; f; f = f->next) {
        if (f->key == image->family_key && agrees(f, image)) {
            add_writers(f, image);
            *out = f;
            return PEAL_OK;
        }
    }
    uint64_t bytes = peal_size_align(image->region_bytes, PEAL_LINE);
    if (bytes > regions->span)
        return PEAL_NO_MEMORY;
    if (regions->used > 0 && regions->used + bytes > regions->limit)
        return PEAL_PENDING;
    /* Beyond what was populated at open, memory is reserved now rather than faulted in later. */
    if (regions->used + bytes > regions->pool) {
        enum peal_status status =
            peal_window_reserve(team->fds[team->rank], regions->offset + regions->used, bytes);
        if (status != PEAL_OK)
            return status;
    }
    struct peal_family *family = new_family(image, regions->offset + regions->used);
    if (!family)
        return PEAL_NO_MEMORY;
    add_writers(family, image);
    regions->used += bytes;
    family->next = regions->families;
    regions->families = family;
    *out = family;
    return PEAL_OK;
}

/* ---- giving back ---- */

static void say(struct peal_team *team, uint32_t context, uint64_t gate)
{
    /* Release; partner: all_have_said on the peers, which then sees what was done before. */
    atomic_store_explicit(&peal_team_own(team)->gates[context], gate, memory_order_release);
    for (uint32_t r = 0; r < team->size; r++) {
        if (r != team->rank)
            peal_wake_if_sleeping(team, r);
    }
}

static bool all_have_said(const struct peal_team *team, uint32_t context, uint64_t gate)
{
    for (uint32_t r = 0; r < team->size; r++) {
        /* Acquire; partner: say. */
        if (atomic_load_explicit(&team->controls[r]->gates[context], memory_order_acquire) < gate)
            return false;
    }
    return true;
}

static void clear(struct peal_regions *regions, const struct peal_team *team)
{
    uint64_t kept = regions->used < regions->pool ? regions->used : regions->pool;
    memset(peal_team_window(team, team->rank) + regions->offset, 0, kept);
    if (regions->used > kept)
        peal_window_discard(team->fds[team->rank], regions->offset + regions->pool,
                            peal_size_align(regions->used - regions->pool, 4096));
    peal_regions_release(regions);
    regions->used = 0;
}

enum peal_status peal_regions_recycle(struct peal_regions *regions, struct peal_team *team,
                                      uint32_t *stage)
{
    uint64_t gate = 2 * regions->turns;
    if (*stage == 0) {
        say(team, regions->context, gate + 1);
        *stage = 1;
    }
    if (*stage == 1 && all_have_said(team, regions->context, gate + 1)) {
        clear(regions, team);
        say(team, regions->context, gate + 2);
        *stage = 2;
    }
    if (*stage != 2 || !all_have_said(team, regions->context, gate + 2))
        return PEAL_PENDING;
    regions->turns++;
    *stage = 0;
    return PEAL_OK;
}
