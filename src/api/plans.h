/* SPDX-License-Identifier: Apache-2.0 */
/* The plan cache: kernels of the library made into images, kept by key. */
#ifndef PEAL_API_PLANS_H
#define PEAL_API_PLANS_H

#include "api/load.h"
#include "run/image.h"
#include "run/select.h"
#include "run/team.h"

/* What a library plan depends on. */
struct peal_plan_key {
    const struct peal_algo *algo;
    uint64_t count; /* n, or m: elements the plan is made for */
    uint64_t most;  /* for kernels with `most` */
    uint32_t root;
    uint8_t dtype, reduce;
    bool in_place;
    bool symmetric;
};

struct peal_plan_entry {
    struct peal_plan_key key;
    struct peal_image *image; /* NULL: free place */
};

struct peal_plans {
    const struct peal_team *team;
    struct peal_plan_entry *entries;
    size_t count, cap;            /* cap is a power of two */
    struct peal_program *library; /* opened at the first use */
};

void peal_plans_init(struct peal_plans *plans, const struct peal_team *team);
void peal_plans_release(struct peal_plans *plans);

/* The image for a key, made at its first use. On failure, `why` gets the diagnostics. */
enum peal_status peal_plans_find(struct peal_plans *plans, const struct peal_plan_key *key,
                                 struct peal_text *why, struct peal_image **out);

/* An image of any kernel, not kept: the caller frees it. `bind->rank` is set here. */
enum peal_status peal_plans_make(const struct peal_team *team, const struct peal_kernel *kernel,
                                 const struct peal_bind *bind, const struct peal_image_how *how,
                                 struct peal_text *why, struct peal_image **out);

#endif
