/* SPDX-License-Identifier: Apache-2.0 */
/* Families: where launches of the same layout live.
 *
 * A family is a region at the same offset of every rank's window (cells, channels, scratch), with
 * launch numbers of its own from 1 on. Plans of one kernel with the same layout share it, whatever
 * their type, operation and root; different kernels or sizes never do. So the launches that follow
 * each other in a region are exactly the sequences that verify proves safe.
 *
 * Regions are taken in the order of the calls of one stream, which is the same on all ranks. When
 * one does not fit the context's limit, all of them are given back, on all ranks at the same call:
 *
 *   say "full", wait until all say so    no rank is in an older launch any more
 *   clear its part of the window         cells, channels, scratch; past the pool, to the system
 *   say "clear", wait until all say so   no rank writes into what is still to be cleared
 *
 * so that a context never has more than its limit, or than its largest plan needs.
 *
 * Offsets in a context count from the start of its pool, and go on where that ends and what the
 * context has beyond begins, elsewhere in the window: no region lies in both.
 *
 * The pools of a communicator that was opened are mapped and populated then. Everything else is mapped
 * when a region first needs it, in extents that grow, and reserved on the region's own rank. One that
 * was made from another has no pools, so that it takes no memory before it is used.
 *
 * Ranks may disagree on what they call (other algorithms forced, other tables measured). A new region
 * is used only when all ranks have made it, the same one: peal_regions_agree.
 *
 * The first part of the pool (128 KiB for each rank, a third at most) is for small regions, so that
 * a few large ones do not send small calls to memory that the system has yet to provide.
 */
#ifndef PEAL_RUN_FAMILY_H
#define PEAL_RUN_FAMILY_H

#include "run/exec/image.h"
#include "run/team/memory/prefault.h"
#include "run/team/team.h"

/* What plans of one family have in common. It is compared in full. */
struct peal_family_layout {
    struct peal_digest identity; /* peal_image's */
    uint64_t scratch, region_bytes;
    uint32_t cells, shared, count_shift;
    uint32_t nchannels;
    struct peal_image_channel *channels; /* copies of the image's */
};

/* This rank's ends of a channel; messages are numbered from 0 over all launches. */
struct peal_port_state {
    uint64_t sent;
    uint64_t credit; /* slots known to be free again: the last value read */
    uint64_t received;
    uint64_t freed;
};

/* One block of the regions' prefault, with its tables after it. */
struct peal_family {
    struct peal_family_layout layout;
    uint32_t *writers; /* see peal_image; cells that no plan has touched yet are PEAL_UNTOUCHED */
    uint64_t offset;   /* of the region in the context, */
    uint64_t window;   /* and in the window */
    char **at;         /* by rank: the region, as mapped here */
    uint64_t launches; /* so far; the current one during a launch */
    int64_t *shared;   /* what each own shared cell held before this launch */
    struct peal_port_state *ports;
};

/* Memory of a context that is mapped here; a region lies in one. */
struct peal_extent {
    struct peal_extent *next; /* older */
    uint64_t begin, end;      /* in the context; multiples of pages */
    char *at[];               /* by rank: where it begins */
};

/* Where regions are taken one after the other. */
struct peal_area {
    uint64_t begin, used;
    uint64_t mapped;            /* bytes so far */
    struct peal_extent *extent; /* that is being filled; NULL: none yet */
};

enum peal_area_kind { PEAL_AREA_SMALL, PEAL_AREA_MAIN, PEAL_AREAS };

/* A context's regions. */
struct peal_regions {
    const struct peal_team *team;
    PEAL_VEC(struct peal_family *) families;
    struct peal_index index;       /* of families, by identity */
    struct peal_prefault prefault; /* what families are cut from */
    uint32_t context;
    uint64_t pool_at, rest_at; /* of the pool in the window, and of what comes after it */
    uint64_t small_end;        /* bytes at its start that are for small regions only */
    struct peal_area areas[PEAL_AREAS];
    struct peal_extent *extents; /* all that were mapped for this context, newest first */
    uint64_t ready;              /* bytes that were populated when opened */
    uint64_t pool, span;
    uint64_t limit;  /* from here on regions are given back */
    uint64_t made;   /* regions so far, */
    uint64_t chain;  /* and a hash of what they are, in order */
    uint64_t agreed; /* of them, all ranks have made the same: see peal_regions_agree */
    uint64_t turns;  /* how often they were: families of older turns are gone */
};

enum peal_status peal_regions_init(struct peal_regions *regions, const struct peal_team *team,
                                   uint32_t context);
void peal_regions_release(struct peal_regions *regions);
/* The family of an image in these regions, made if it is new. PEAL_PENDING when the regions must be
 * given back first: there is no room, or a launch that needs zeroes would not find them; PEAL_NO_MEMORY when there is no memory, or the image is too large for any. */
enum peal_status peal_regions_find(struct peal_regions *regions, const struct peal_image *image,
                                   struct peal_family **out);

/* All ranks have made the same regions, in the same order? PEAL_PENDING: some have not come to the last
 * one; PEAL_MISMATCH: one has made another. Ranks that choose different algorithms would find each
 * other's cells and data where they expect their own: so no rank uses a new region before this. */
enum peal_status peal_regions_agree(struct peal_regions *regions, const struct peal_team *team);
/* A rank that has not come to the last region yet; size: all have. */
uint32_t peal_regions_missing(const struct peal_regions *regions, const struct peal_team *team);

/* One step of giving everything back; to be called until it is not PEAL_PENDING. `stage` starts at
 * 0 and is the caller's to keep. */
enum peal_status peal_regions_recycle(struct peal_regions *regions, struct peal_team *team,
                                      uint32_t *stage);

#endif
