/* SPDX-License-Identifier: Apache-2.0 */
/* See family.h. */
#include "run/call/family.h"

#include "base/base.h"
#include "run/exec/multicast.h"
#include "run/call/backoff.h"
#include "run/team/window.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static uint32_t place_of(const struct peal_regions *regions, uint64_t key)
{
    return (uint32_t)peal_hash_u64(key, 0) & (regions->cap - 1);
}

/* Makes room for half as many families. */
static bool grow(struct peal_regions *regions, uint32_t cap)
{
    enum { LEAST = 64 };
    struct peal_regions bigger = {.cap = cap < LEAST ? LEAST : cap};
    bigger.families = malloc(bigger.cap * sizeof(struct peal_family *));
    if (!bigger.families)
        return false;
    memset(bigger.families, 0, bigger.cap * sizeof(struct peal_family *)); /* and touched */
    for (uint32_t i = 0; i < regions->cap; i++) {
        struct peal_family *family = regions->families[i];
        if (!family)
            continue;
        uint32_t at = place_of(&bigger, family->key);
        while (bigger.families[at])
            at = (at + 1) & (bigger.cap - 1);
        bigger.families[at] = family;
    }
    free(regions->families);
    regions->families = bigger.families;
    regions->cap = bigger.cap;
    return true;
}

void peal_regions_init(struct peal_regions *regions, const struct peal_team *team, uint32_t context)
{
    enum { STOCK = 64 << 10, STEP = 16 << 10, FAMILIES = 512, LITTLE = 128 << 10 };
    const struct peal_layout *layout = &team->layout;
    *regions = (struct peal_regions){.context = context,
                                     .pool_at = peal_layout_pool(layout, context),
                                     .rest_at = layout->contexts + context * layout->span,
                                     .pool = peal_layout_share(layout->pool_bytes, context),
                                     .span = layout->span,
                                     .limit = peal_layout_limit(layout, context)};
    regions->ready =
        peal_team_own(team)->large ? regions->pool : peal_layout_share(layout->unit, context);
    uint64_t third = regions->pool / 3 / PEAL_LINE * PEAL_LINE;
    regions->little = LITTLE * team->size < third ? LITTLE * team->size : third;
    regions->used = regions->little;
    /* Blocking calls find everything there. */
    regions->prefault.step = STEP;
    if (context == 0) {
        peal_prefault_init(&regions->prefault, STOCK, STEP);
        (void)grow(regions, FAMILIES);
    }
}

void peal_regions_release(struct peal_regions *regions)
{
    peal_prefault_release(&regions->prefault);
    free(regions->families);
    regions->families = NULL;
    regions->count = regions->cap = 0;
}

/* ---- families ---- */

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

static struct peal_family *new_family(struct peal_regions *regions, const struct peal_image *image,
                                      uint64_t offset)
{
    uint64_t cells = image->writers ? image->plan->cells : 0;
    uint64_t ports = sizeof(struct peal_family);
    uint64_t shared = ports + image->nchannels * sizeof(struct peal_port_state);
    uint64_t writers = shared + image->nshared * sizeof(int64_t);
    char *block = peal_prefault_take(&regions->prefault, writers + cells * sizeof(uint32_t));
    if (!block)
        return NULL;
    struct peal_family *family = (struct peal_family *)block;
    *family = (struct peal_family){
        .key = image->family_key,
        .offset = offset,
        .ports = (struct peal_port_state *)(block + ports),
        .shared = (int64_t *)(block + shared),
        .writers = image->writers ? (uint32_t *)(block + writers) : NULL,
    };
    for (uint32_t c = 0; c < cells; c++)
        family->writers[c] = PEAL_UNTOUCHED;
    return family;
}

/* Where in the window something is that begins at `offset` of the context. */
static uint64_t place_in_window(const struct peal_regions *regions, uint64_t offset)
{
    return offset < regions->pool ? regions->pool_at + offset
                                  : regions->rest_at + offset - regions->pool;
}

/* Where a region goes, from the start of the context. */
static enum peal_status find_room(const struct peal_regions *regions, uint64_t bytes, uint64_t *out)
{
    enum { SMALL = 256 << 10 };
    if (bytes > regions->span)
        return PEAL_NO_MEMORY;
    uint64_t at = regions->used;
    if (at < regions->pool && at + bytes > regions->pool)
        at = regions->pool;
    if (bytes <= SMALL && regions->little_used + bytes <= regions->little)
        *out = regions->little_used;
    else if (at + bytes <= regions->limit)
        *out = at;
    else if (regions->count > 0)
        return PEAL_PENDING;
    else
        *out = regions->pool; /* one that needs more than the limit has all that is behind it */
    return PEAL_OK;
}

/* Beyond what was populated at open, memory is reserved now rather than faulted in later. */
static enum peal_status populate(const struct peal_regions *regions, const struct peal_team *team,
                                 uint64_t offset, uint64_t bytes)
{
    uint64_t from = offset > regions->ready ? offset : regions->ready;
    uint64_t begin = place_in_window(regions, from), end = begin + (offset + bytes - from);
    enum peal_status status = peal_window_reserve(team->fds[team->rank], begin, end - begin);
    begin = begin / PAGE * PAGE;
    if (status == PEAL_OK)
        peal_window_populate(peal_team_window(team, team->rank) + begin,
                             peal_size_align(end, PAGE) - begin, true);
    return status;
}

/* ---- agreeing ---- */

enum { MADE_SHIFT = 40 }; /* number above, hash below */

/* Says that a region was made. Whoever reads it has made the one before, or waits for it: a rank goes
 * on to region n + 1 when all have said n, and says n + 2 when all have said n + 1, which they do
 * after they have compared n. So of two words none is overwritten before it was read. */
static void say_made(struct peal_regions *regions, const struct peal_team *team, uint64_t key)
{
    regions->made++;
    regions->chain = peal_hash_u64(key, regions->chain);
    uint64_t word = regions->made << MADE_SHIFT | regions->chain >> (64 - MADE_SHIFT);
    _Atomic uint64_t *own = peal_team_own(team)->made[regions->context];
    /* Release; partner: peal_regions_agree on the peers. */
    atomic_store_explicit(&own[regions->made % 2], word, memory_order_release);
    for (uint32_t r = 0; r < team->size; r++) {
        if (r != team->rank)
            peal_wake_if_sleeping(team, r);
    }
}

uint32_t peal_regions_missing(const struct peal_regions *regions, const struct peal_team *team)
{
    uint32_t r = 0;
    for (; r < team->size; r++) {
        /* Relaxed: for reports. */
        uint64_t its = atomic_load_explicit(
            &team->controls[r]->made[regions->context][regions->made % 2], memory_order_relaxed);
        if (its >> MADE_SHIFT != (regions->made << MADE_SHIFT) >> MADE_SHIFT)
            break;
    }
    return r;
}

enum peal_status peal_regions_agree(struct peal_regions *regions, const struct peal_team *team)
{
    if (__builtin_expect(regions->agreed == regions->made, 1))
        return PEAL_OK;
    uint64_t turn = regions->made % 2;
    const struct peal_control *control = peal_team_own(team);
    /* Relaxed: ours. */
    uint64_t own =
        atomic_load_explicit(&control->made[regions->context][turn], memory_order_relaxed);
    for (uint32_t r = 0; r < team->size; r++) {
        /* Acquire; partner: say_made. */
        uint64_t its = atomic_load_explicit(&team->controls[r]->made[regions->context][turn],
                                            memory_order_acquire);
        if (its >> MADE_SHIFT != own >> MADE_SHIFT)
            return PEAL_PENDING;
        if (its != own)
            return PEAL_MISMATCH;
    }
    regions->agreed = regions->made;
    return PEAL_OK;
}

/* ---- finding ---- */

enum peal_status peal_regions_find(struct peal_regions *regions, const struct peal_team *team,
                                   const struct peal_image *image, struct peal_family **out)
{
    if (2 * (regions->count + 1) > regions->cap && !grow(regions, 2 * regions->cap))
        return PEAL_NO_MEMORY;
    uint32_t at = place_of(regions, image->family_key);
    for (; regions->families[at]; at = (at + 1) & (regions->cap - 1)) {
        struct peal_family *f = regions->families[at];
        if (f->key == image->family_key && agrees(f, image)) {
            add_writers(f, image);
            *out = f;
            return PEAL_OK;
        }
    }
    uint64_t bytes = peal_size_align(image->region_bytes, PEAL_LINE), offset;
    enum peal_status status = find_room(regions, bytes, &offset);
    if (status == PEAL_OK && offset + bytes > regions->ready)
        status = populate(regions, team, offset, bytes);
    if (status != PEAL_OK)
        return status;
    struct peal_family *family = new_family(regions, image, place_in_window(regions, offset));
    if (!family)
        return PEAL_NO_MEMORY;
    add_writers(family, image);
    if (offset < regions->little)
        regions->little_used = offset + bytes;
    else if (offset + bytes > regions->used)
        regions->used = offset + bytes;
    regions->families[at] = family;
    regions->count++;
    if (team->size > 1) /* alone, everything is agreed on */
        say_made(regions, team, family->key);
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
    char *own = peal_team_window(team, team->rank) + regions->pool_at;
    uint64_t kept = regions->used < regions->pool ? regions->used : regions->pool;
    memset(own, 0, regions->little_used);
    memset(own + regions->little, 0, kept - regions->little);
    if (regions->used > kept)
        peal_window_discard(team->fds[team->rank], regions->rest_at,
                            peal_size_align(regions->used - regions->pool, PAGE));
    peal_prefault_empty(&regions->prefault);
    memset(regions->families, 0, regions->cap * sizeof(struct peal_family *));
    regions->count = 0;
    regions->little_used = 0;
    regions->used = regions->little;
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
