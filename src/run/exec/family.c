/* SPDX-License-Identifier: Apache-2.0 */
/* See family.h for what a family and a region are.
 *
 * Who owns what. struct peal_regions is one context's, and owns its families (cut from `prefault`,
 * all freed together), the index over them, and the extents that it has mapped. The pool is part of
 * the window and only borrowed. An image keeps pointers to its families, and compares `turns`
 * before it uses them: when the regions are given back, those pointers are stale, and no image is
 * told.
 *
 * What never changes:
 *   - Offsets. `offset` of a region depends on nothing but the sizes of the regions made before it
 *     in this context, and on numbers that all ranks have in common. So each rank finds the region
 *     in a peer's window without asking. Whatever is added to choose_area, next_place or extend must
 *     keep to that: never look at which memory this rank happens to have.
 *   - A region lies within one extent, so that one pointer per rank is enough for it.
 *   - Memory of a region is zero when it is first used: fresh from the system, or cleared by
 *     clear_area on its own rank. Launches in it are numbered from 1, so that a zero cell is older
 *     than all.
 *   - No rank touches a region before all ranks have said that they made it (say_made, agree), and
 *     no rank clears before all have said that they are at the same call (recycle). Ranks clear
 *     their own windows only.
 *   - A region that one rank has no memory for is a failure of the whole team: the next offsets of
 *     all others follow from it.
 *
 * Why all regions are given back at once, and not the one used least: to agree on a single victim
 * the ranks would have to exchange what each still needs, and holes would have to be managed alike
 * everywhere. Starting over needs two gates and no bookkeeping, and happens only where a program
 * uses more shapes of calls than its memory holds. Why two words for say_made: a fast rank may be
 * one region ahead of the slowest reader, never two.
 */
#include "run/exec/family.h"

#include "base/base.h"
#include "run/exec/multicast.h"
#include "run/span/span.h"
#include "run/team/memory/window.h"
#include "run/wait/backoff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static uint64_t hash_family(const void *rows, uint32_t row)
{
    struct peal_family *const *families = rows;
    return families[row]->layout.identity.words[0];
}

/* Not mapped yet. */
static struct peal_extent *new_extent(struct peal_regions *regions, uint64_t begin, uint64_t end)
{
    struct peal_extent *extent =
        calloc(1, sizeof *extent + regions->team->size * sizeof extent->at[0]);
    if (!extent)
        return NULL;
    extent->begin = begin;
    extent->end = end;
    extent->next = regions->extents;
    regions->extents = extent;
    return extent;
}

/* Empty areas. In the pool they share one extent, which is part of the window. */
static void begin_areas(struct peal_regions *regions)
{
    struct peal_extent *pool = regions->extents;
    assert(!pool || !pool->next);
    for (int a = 0; a < PEAL_AREAS; a++) {
        uint64_t begin = a == PEAL_AREA_SMALL ? 0 : regions->small_end;
        regions->areas[a] = (struct peal_area){.begin = begin, .used = begin, .extent = pool};
        regions->areas[a].mapped = regions->pool;
    }
}

enum peal_status peal_regions_init(struct peal_regions *regions, const struct peal_team *team,
                                   uint32_t context)
{
    enum { STOCK = 64 << 10, STEP = 16 << 10, FAMILIES = 256, SMALL_PER_RANK = 128 << 10 };
    const struct peal_layout *layout = &team->layout;
    *regions = (struct peal_regions){.team = team,
                                     .context = context,
                                     .pool_at = peal_layout_pool(layout, context),
                                     .rest_at = layout->contexts + context * layout->stride,
                                     .pool = peal_layout_share(layout->pool_bytes, context),
                                     .span = layout->span,
                                     .limit = peal_layout_limit(layout, context)};
    if (peal_team_own(team)->large)
        regions->ready = regions->pool;
    else
        regions->ready = peal_layout_share(layout->unit, context);
    if (team->lazy)
        regions->ready = 0;
    uint64_t third = (team->lazy ? layout->unit : regions->pool) / 3 / PAGE * PAGE;
    regions->small_end = peal_size_min(SMALL_PER_RANK * team->size, third);
    /* Blocking calls find everything there. */
    regions->prefault.step = STEP;
    if (context == 0 && !team->lazy) {
        peal_prefault_init(&regions->prefault, STOCK, STEP);
        if (peal_vec_reserve(&regions->families, FAMILIES))
            memset(regions->families.at, 0, FAMILIES * sizeof *regions->families.at); /* touched */
    }
    if (regions->pool > 0) {
        struct peal_extent *pool = new_extent(regions, 0, regions->pool);
        if (!pool)
            return PEAL_NO_MEMORY;
        for (uint32_t r = 0; r < team->size; r++) {
            if (!peal_team_is_far(team, r))
                pool->at[r] = peal_team_window(team, r) + regions->pool_at;
        }
    }
    begin_areas(regions);
    return PEAL_OK;
}

/* Where in the window something is that begins at `offset` of the context. */
static uint64_t place_in_window(const struct peal_regions *regions, uint64_t offset)
{
    if (offset < regions->pool)
        return regions->pool_at + offset;
    return regions->rest_at + offset - regions->pool;
}

/* Unmaps what does not lie in the pool. */
static void unmap_extents(struct peal_regions *regions)
{
    const struct peal_team *team = regions->team;
    while (regions->extents && regions->extents->end > regions->pool) {
        struct peal_extent *extent = regions->extents;
        uint64_t at = place_in_window(regions, extent->begin);
        for (uint32_t r = 0; r < team->size; r++) {
            if (extent->at[r])
                peal_team_unmap(team, r, at, extent->end - extent->begin);
        }
        regions->extents = extent->next;
        free(extent);
    }
}

void peal_regions_release(struct peal_regions *regions)
{
    if (regions->team)
        unmap_extents(regions);
    free(regions->extents); /* the pool's */
    peal_prefault_release(&regions->prefault);
    peal_vec_release(&regions->families);
    peal_index_release(&regions->index);
    *regions = (struct peal_regions){0};
}

/* ---- families ---- */

static struct peal_family_layout layout_of(const struct peal_image *image)
{
    return (struct peal_family_layout){.identity = image->identity,
                                       .scratch = image->scratch,
                                       .region_bytes = image->region_bytes,
                                       .cells = image->plan->cells,
                                       .shared = image->nshared,
                                       .count_shift = image->count_shift,
                                       .nchannels = image->nchannels,
                                       .channels = image->channels};
}

static bool same_layout(const struct peal_family_layout *a, const struct peal_family_layout *b)
{
    if (memcmp(&a->identity, &b->identity, sizeof a->identity) != 0 || a->scratch != b->scratch ||
        a->region_bytes != b->region_bytes || a->cells != b->cells || a->shared != b->shared ||
        a->count_shift != b->count_shift || a->nchannels != b->nchannels)
        return false;
    for (uint32_t c = 0; c < a->nchannels; c++) {
        const struct peal_image_channel *x = &a->channels[c], *y = &b->channels[c];
        if (x->sender != y->sender || x->receiver != y->receiver || x->depth != y->depth ||
            x->stride != y->stride)
            return false;
    }
    return true;
}

/* For other ranks to compare. */
static uint64_t hash_layout(const struct peal_family_layout *layout)
{
    uint64_t hash = peal_hash_bytes(&layout->identity, sizeof layout->identity, layout->cells);
    hash = peal_hash_u64(layout->scratch, hash);
    hash = peal_hash_u64(layout->region_bytes, hash);
    hash = peal_hash_u64((uint64_t)layout->count_shift << 32 | layout->shared, hash);
    for (uint32_t c = 0; c < layout->nchannels; c++) {
        const struct peal_image_channel *channel = &layout->channels[c];
        hash = peal_hash_u64((uint64_t)channel->sender << 32 | channel->receiver, hash);
        hash = peal_hash_u64(channel->stride * 64 + channel->depth, hash);
    }
    return hash;
}

/* Cells lie where their writers say: two plans share a family only if they agree on every cell that
 * both of them touch. */
static bool agrees(const struct peal_family *family, const struct peal_image *image)
{
    if (!family->writers != !image->writers)
        return false;
    if (!image->writers)
        return true;
    for (uint32_t c = 0; c < image->plan->cells; c++) {
        uint32_t a = family->writers[c], b = image->writers[c];
        if (a != b && a != PEAL_UNTOUCHED && b != PEAL_UNTOUCHED)
            return false;
    }
    return true;
}

static void add_writers(struct peal_family *family, const struct peal_image *image)
{
    if (!image->writers)
        return;
    for (uint32_t c = 0; c < image->plan->cells; c++) {
        if (image->writers[c] != PEAL_UNTOUCHED)
            family->writers[c] = image->writers[c];
    }
}

static struct peal_family *new_family(struct peal_regions *regions, const struct peal_image *image,
                                      const struct peal_extent *extent, uint64_t offset)
{
    uint64_t cells = image->writers ? image->plan->cells : 0;
    uint32_t size = regions->team->size;
    uint64_t ports = sizeof(struct peal_family);
    uint64_t shared = ports + image->nchannels * sizeof(struct peal_port_state);
    uint64_t at = shared + image->nshared * sizeof(int64_t);
    uint64_t channels = at + size * sizeof(char *);
    uint64_t writers = channels + image->nchannels * sizeof *image->channels;
    char *block = peal_prefault_take(&regions->prefault, writers + cells * sizeof(uint32_t));
    if (!block)
        return NULL;
    struct peal_family *family = (struct peal_family *)block;
    *family = (struct peal_family){
        .layout = layout_of(image),
        .offset = offset,
        .window = place_in_window(regions, offset),
        .at = (char **)(block + at),
        .ports = (struct peal_port_state *)(block + ports),
        .shared = (int64_t *)(block + shared),
        .writers = image->writers ? (uint32_t *)(block + writers) : NULL,
    };
    family->layout.channels = (struct peal_image_channel *)(block + channels);
    if (image->nchannels > 0)
        memcpy(family->layout.channels, image->channels,
               image->nchannels * sizeof *image->channels);
    for (uint32_t r = 0; r < size; r++) {
        if (extent->at[r])
            family->at[r] = extent->at[r] + (offset - extent->begin);
        else
            family->at[r] = NULL;
    }
    for (uint32_t c = 0; c < cells; c++)
        family->writers[c] = PEAL_UNTOUCHED;
    return family;
}

/* ---- memory of a region ---- */

/* Where the next region of an area goes: into its extent, or to where that ends. */
static uint64_t next_place(const struct peal_area *area, uint64_t bytes)
{
    const struct peal_extent *extent = area->extent;
    bool fits = extent && area->used + bytes <= extent->end;
    if (fits || !extent)
        return area->used;
    return extent->end;
}

/* Which area a region goes to, and where that is, from the start of the context. PEAL_PENDING: all
 * regions must be given back first. */
static enum peal_status choose_area(struct peal_regions *regions, uint64_t bytes,
                                    struct peal_area **area, uint64_t *out)
{
    enum { SMALL = 256 << 10 };
    struct peal_area *small = &regions->areas[PEAL_AREA_SMALL];
    struct peal_area *main = &regions->areas[PEAL_AREA_MAIN];
    if (bytes > regions->span)
        return PEAL_NO_MEMORY;
    *area = small;
    *out = next_place(small, bytes);
    if (bytes <= SMALL && *out + bytes <= regions->small_end)
        return PEAL_OK;
    *area = main;
    *out = next_place(main, bytes);
    /* One that needs more than the limit may have all of the span, alone. */
    if (*out + bytes <= regions->limit || regions->families.len == 0)
        return PEAL_OK;
    return PEAL_PENDING;
}

/* Maps an extent for a region at `offset`, on all ranks' windows: twice what the area has, within
 * limits that keep it from the next area. NULL: refused. */
static struct peal_extent *extend(struct peal_regions *regions, struct peal_area *area,
                                  uint64_t offset, uint64_t bytes)
{
    enum { MIN_EXTENT = 16 << 10, MAX_EXTENT = 4 << 20 };
    const struct peal_team *team = regions->team;
    bool is_small = area == &regions->areas[PEAL_AREA_SMALL];
    uint64_t limit = is_small ? regions->small_end : regions->limit;
    uint64_t left = limit > offset ? limit - offset : 0;
    uint64_t wanted = peal_size_min(peal_size_max(area->mapped, MIN_EXTENT), MAX_EXTENT);
    wanted = peal_size_max(peal_size_min(wanted, left), bytes);
    wanted = peal_size_align(wanted, PAGE);
    struct peal_extent *extent = new_extent(regions, offset, offset + wanted);
    if (!extent)
        return NULL;
    uint64_t at = place_in_window(regions, offset);
    for (uint32_t r = 0; r < team->size; r++) {
        if (peal_team_is_far(team, r))
            continue;
        extent->at[r] = peal_team_map(team, r, at, wanted);
        if (!extent->at[r])
            return NULL; /* unmapped with all others */
    }
    area->extent = extent;
    area->mapped += wanted;
    return extent;
}

/* Beyond what was populated at open, memory is reserved now rather than faulted in later. */
static enum peal_status populate(const struct peal_regions *regions,
                                 const struct peal_extent *extent, uint64_t offset, uint64_t bytes)
{
    const struct peal_team *team = regions->team;
    uint64_t from = peal_size_max(offset, regions->ready), end = offset + bytes;
    uint64_t begin = team->starts[team->rank] + place_in_window(regions, from);
    enum peal_status status = peal_window_reserve(team->fds[team->rank], begin, end - from);
    from = from / PAGE * PAGE;
    if (status == PEAL_OK)
        peal_window_populate(extent->at[team->rank] + (from - extent->begin),
                             peal_size_align(end, PAGE) - from, true);
    return status;
}

/* ---- agreeing ---- */

enum { MADE_SHIFT = 40 }; /* number above, hash below */

/* A word of this rank's control block has changed, which peers may be waiting for. */
static void announce(const struct peal_team *team, _Atomic uint64_t *word)
{
    if (team->span)
        peal_span_publish(team->span, word);
    for (uint32_t r = 0; r < team->size; r++) {
        if (r != team->rank)
            peal_wake_if_sleeping(team, r);
    }
}

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
    announce(team, &own[regions->made % 2]);
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

/* Takes a region's memory, which is mapped and reserved then. */
static enum peal_status take_memory(struct peal_regions *regions, uint64_t bytes,
                                    struct peal_extent **extent, uint64_t *offset)
{
    struct peal_area *area;
    enum peal_status status = choose_area(regions, bytes, &area, offset);
    if (status != PEAL_OK)
        return status;
    *extent = area->extent;
    if (!*extent || *offset + bytes > (*extent)->end)
        *extent = extend(regions, area, *offset, bytes);
    if (!*extent)
        return PEAL_NO_MEMORY;
    if (*offset + bytes > regions->ready)
        status = populate(regions, *extent, *offset, bytes);
    if (status == PEAL_OK)
        area->used = *offset + bytes;
    return status;
}

enum peal_status peal_regions_find(struct peal_regions *regions, const struct peal_image *image,
                                   struct peal_family **out)
{
    const struct peal_team *team = regions->team;
    struct peal_index *index = &regions->index;
    if (!peal_index_reserve(index, hash_family, regions->families.at) ||
        !peal_vec_reserve(&regions->families, 1))
        return PEAL_NO_MEMORY;
    struct peal_family_layout layout = layout_of(image);
    size_t at = peal_index_begin(index, layout.identity.words[0]);
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        struct peal_family *f = regions->families.at[peal_index_row(index, at)];
        if (same_layout(&f->layout, &layout) && agrees(f, image)) {
            if (image->fresh && f->launches > 0)
                return PEAL_PENDING;
            add_writers(f, image);
            *out = f;
            return PEAL_OK;
        }
    }
    uint64_t bytes = peal_size_align(image->region_bytes, PEAL_LINE), offset;
    struct peal_extent *extent;
    enum peal_status status = take_memory(regions, bytes, &extent, &offset);
    if (status != PEAL_OK)
        return status;
    struct peal_family *family = new_family(regions, image, extent, offset);
    if (!family)
        return PEAL_NO_MEMORY;
    add_writers(family, image);
    peal_index_put(index, at, (uint32_t)regions->families.len);
    regions->families.at[regions->families.len++] = family;
    if (team->size > 1) /* alone, everything is agreed on */
        say_made(regions, team, hash_layout(&layout));
    *out = family;
    return PEAL_OK;
}

/* ---- giving back ---- */

static void say(struct peal_team *team, uint32_t context, uint64_t gate)
{
    /* Release; partner: all_have_said on the peers, which then sees what was done before. */
    atomic_store_explicit(&peal_team_own(team)->gates[context], gate, memory_order_release);
    announce(team, &peal_team_own(team)->gates[context]);
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

/* Gives back the memory that an area has taken: zeroed in the pool, beyond it the system's. */
static void clear_area(struct peal_regions *regions, const struct peal_area *area)
{
    const struct peal_team *team = regions->team;
    uint64_t begin = area->begin, end = area->used;
    if (begin < regions->pool) {
        uint64_t kept = peal_size_min(end, regions->pool);
        memset(peal_team_window(team, team->rank) + regions->pool_at + begin, 0, kept - begin);
        begin = regions->pool;
    }
    if (end > begin)
        peal_window_discard(team->fds[team->rank],
                            team->starts[team->rank] + place_in_window(regions, begin),
                            peal_size_align(end - begin, PAGE));
}

static void clear(struct peal_regions *regions)
{
    for (int a = 0; a < PEAL_AREAS; a++)
        clear_area(regions, &regions->areas[a]);
    unmap_extents(regions);
    begin_areas(regions);
    peal_prefault_empty(&regions->prefault);
    regions->families.len = 0;
    peal_index_clear(&regions->index);
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
        clear(regions);
        say(team, regions->context, gate + 2);
        *stage = 2;
    }
    if (*stage != 2 || !all_have_said(team, regions->context, gate + 2))
        return PEAL_PENDING;
    regions->turns++;
    *stage = 0;
    return PEAL_OK;
}
