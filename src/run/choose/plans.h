/* SPDX-License-Identifier: Apache-2.0 */
/* The plan cache: kernels of the library made into images, kept by key. */
#ifndef PEAL_RUN_PLANS_H
#define PEAL_RUN_PLANS_H

#include "lang/lang.h"
#include "run/algorithms/select.h"
#include "run/exec/image.h"
#include "run/team/team.h"

#include <pthread.h>

/* What a library plan depends on. */
struct peal_plan_key {
    const struct peal_algo *algo;
    uint64_t count; /* n, or m: elements the plan is made for */
    uint32_t root;
    uint8_t dtype, reduce;
    bool in_place;
    bool symmetric; /* window parameters ... */
    bool remote;    /* ... that are not mapped here */
};

struct peal_plan_entry {
    struct peal_plan_key key;
    struct peal_image *image; /* NULL: free place */
};

/* What only the whole plan of all ranks shows: arrays by cell number, see multicast.h. Of a library
 * kernel it depends on the ranks and the root only, not on counts, types, operations and what is in
 * place (comm/tests/calls/plans_test.c), so that a new count needs one rank's part only. */
struct peal_cell_writers {
    struct peal_cell_writers *next; /* of the same algorithm */
    uint32_t root;
    bool has_channels; /* where one lies follows from all: such plans are made whole */
    bool pulled;       /* ranks of other hosts read this one's memory */
    uint32_t cells;
    uint32_t *writers, *notifiers; /* NULL: not known */
};

/* The plan from which plans of other sizes, plain types and reductions are made: see
 * plan/format/resize.h. */
struct peal_template {
    struct peal_template *next; /* of the same algorithm */
    struct peal_plan_key key;   /* without sizes */
    struct peal_plan *plan;     /* NULL: this kernel's sizes do not scale */
};

/* What is known of an algorithm. */
struct peal_algo_plans {
    const struct peal_kernel *kernel; /* NULL: not looked for */
    struct peal_cell_writers *cell_writers;
    struct peal_template *templates;
};

/* Limits of what a communicator keeps, in private memory; beyond them all images are freed. */
enum { PEAL_PLANS_MAX = 2048, PEAL_PLANS_MAX_BYTES = 16 << 20 };

/* PEAL_OK: the plan of all ranks is proved; otherwise `why` says what is wrong. The function is
 * passed in by the owner of the cache, because run and verify do not know each other. */
typedef enum peal_status peal_plan_prove(const struct peal_plan *whole, struct peal_text *why);

/* The library's kernels, which communicators that are made from each other share, in whichever
 * threads they are used: lowered at their first use, with the mutex. */
struct peal_plan_library {
    _Atomic uint32_t users;
    pthread_mutex_t lock;
    struct peal_program *program;
};

struct peal_plans {
    const struct peal_team *team;
    PEAL_VEC(struct peal_plan_entry) entries;
    struct peal_index index;         /* of entries */
    uint64_t bytes;                  /* of images and templates */
    struct peal_prefault prefault;   /* of images */
    struct peal_algo_plans *by_algo; /* by algorithm */
    struct peal_plan *draft; /* where templates are resized: plans that live as long as that */
    uint64_t draft_cap;
    struct peal_plan_library *library;
    const struct peal_formula *formulas; /* key.reduce is PEAL_USER_REDUCTION + i: this one */
    peal_plan_prove *prove; /* every plan is proved before its first launch; NULL: none is */
};

void peal_plans_init(struct peal_plans *plans, const struct peal_team *team,
                     peal_plan_prove *prove);
void peal_plans_release(struct peal_plans *plans);
/* Reads the library, or shares that of `other`, unless it is NULL; and makes room for plans. */
enum peal_status peal_plans_open(struct peal_plans *plans, const struct peal_plans *other,
                                 struct peal_text *why);
/* True if there are too many: they must be dropped before the next is made. */
static inline bool peal_plans_are_many(const struct peal_plans *plans)
{
    return plans->entries.len >= PEAL_PLANS_MAX || plans->bytes >= PEAL_PLANS_MAX_BYTES;
}
/* Frees all images, of which none may be in use any more, and templates; cell_writers stay. */
void peal_plans_forget(struct peal_plans *plans);

/* The image for a key, made at its first use. On failure, `why` gets the diagnostics. */
enum peal_status peal_plans_find(struct peal_plans *plans, const struct peal_plan_key *key,
                                 struct peal_text *why, struct peal_image **out);

/* An image of any kernel, not kept: the caller frees it. The plan is made for all ranks (bind->rank
 * is ignored, local values are those of all), and under PEAL_VERIFY it is proved, or refused. */
enum peal_status peal_plans_make(const struct peal_plans *plans, const struct peal_kernel *kernel,
                                 const struct peal_bind *bind,
                                 const struct peal_image_options *options, struct peal_text *why,
                                 struct peal_image **out);
/* The same of a plan of all ranks that is there already. It is taken over in every case. */
enum peal_status peal_plans_take(const struct peal_plans *plans, struct peal_plan *whole,
                                 const struct peal_image_options *options, struct peal_text *why,
                                 struct peal_image **out);

#endif
