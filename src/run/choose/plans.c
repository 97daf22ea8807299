/* SPDX-License-Identifier: Apache-2.0 */
/* The plan cache. See plans.h for its structs.
 *
 * A call of a new kind needs an image: this rank's part of a plan, made ready for the executor.
 * There are three ways to it, the fastest first:
 *
 *   found in the cache             a key that was used before
 *   a template, resized            a key that differs in size, plain type or reduction (resize.h)
 *   the kernel, instantiated       everything else
 *
 * Who owns what. The cache owns images, templates and what is known of cell writers. Images are cut
 * from `prefault` and are all freed together, by peal_plans_forget, when they take too much memory.
 * No call may be under way then, and pointers to images must be dropped (comm/core/resolve.c). Cell
 * writers are kept. A resized plan is built in `draft`, which the next one overwrites: an image
 * copies what it needs.
 *
 * What never changes. All ranks come to the same layout of cells, channels and windows without
 * asking each other. So whether a plan is made whole or for one rank only, and which writers its
 * cells have, follows from the kernel, the number of ranks and the root, and never from what this
 * rank happens to have made before. With PEAL_VERIFY a plan is always instantiated whole, and
 * proved before its first launch.
 *
 * Why one rank's part: a plan of all ranks takes time in proportion to their number, in every
 * process. What only the whole plan shows, the writers of cells, does not depend on sizes and
 * types, so it is found once per kernel and root. */
#include "run/choose/plans.h"

#include "base/base.h"
#include "plan/plan.h"
#include "run/exec/multicast.h"
#include "run/span/span.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Bytes that are populated for images: what the prepared ones take (some 55 KiB per rank, for
     * up to 16 ranks) and half as much for others; then in steps. */
    FIRST_BYTES = 64 << 10,
    RANK_BYTES = 80 << 10,
    MAX_BYTES = FIRST_BYTES + 16 * RANK_BYTES,
    STEP_BYTES = 64 << 10,
    FIRST_PLANS = 256 /* twice as many as are prepared when a communicator is opened */
};

void peal_plans_init(struct peal_plans *plans, const struct peal_team *team, peal_plan_prove *prove)
{
    *plans = (struct peal_plans){.team = team, .prove = prove};
}

void peal_plans_forget(struct peal_plans *plans)
{
    size_t algos;
    peal_algos(&algos);
    for (size_t i = 0; i < plans->entries.len; i++)
        peal_image_free(plans->entries.at[i].image);
    peal_prefault_empty(&plans->prefault);
    plans->entries.len = 0;
    peal_index_clear(&plans->index);
    if (plans->by_algo) {
        for (size_t i = 0; i < algos; i++) {
            struct peal_algo_plans *algo_plans = &plans->by_algo[i];
            while (algo_plans->templates) {
                struct peal_template *template = algo_plans->templates;
                algo_plans->templates = template->next;
                free(template->plan);
                free(template);
            }
        }
    }
    plans->bytes = 0;
}

static void release_cell_writers(struct peal_cell_writers *writers)
{
    free(writers->writers);
    free(writers->notifiers);
    writers->writers = writers->notifiers = NULL;
}

static void drop_library(struct peal_plan_library *library)
{
    /* acq_rel: the last one sees what the others have lowered. Partner: their decrements. */
    if (!library || atomic_fetch_sub_explicit(&library->users, 1, memory_order_acq_rel) != 1)
        return;
    peal_program_close(library->program);
    pthread_mutex_destroy(&library->lock);
    free(library);
}

void peal_plans_release(struct peal_plans *plans)
{
    size_t algos;
    peal_algos(&algos);
    peal_plans_forget(plans);
    peal_prefault_release(&plans->prefault);
    if (plans->by_algo) {
        for (size_t i = 0; i < algos; i++) {
            struct peal_algo_plans *algo_plans = &plans->by_algo[i];
            while (algo_plans->cell_writers) {
                struct peal_cell_writers *writers = algo_plans->cell_writers;
                algo_plans->cell_writers = writers->next;
                release_cell_writers(writers);
                free(writers);
            }
        }
    }
    peal_vec_release(&plans->entries);
    peal_index_release(&plans->index);
    free(plans->by_algo);
    free(plans->draft);
    drop_library(plans->library);
    *plans = (struct peal_plans){0};
}

static bool same_key(const struct peal_plan_key *a, const struct peal_plan_key *b)
{
    return a->algo == b->algo && a->count == b->count && a->root == b->root &&
           a->dtype == b->dtype && a->reduce == b->reduce && a->in_place == b->in_place &&
           a->symmetric == b->symmetric && a->remote == b->remote;
}

static uint64_t hash_key(const struct peal_plan_key *key)
{
    uint64_t small = (uint64_t)key->root << 32 | (uint64_t)key->dtype << 24 |
                     (uint64_t)key->reduce << 16 | (uint64_t)key->remote << 2 |
                     (uint64_t)key->in_place << 1 | key->symmetric;
    uint64_t hash = peal_hash_u64((uint64_t)(uintptr_t)key->algo, small);
    return peal_hash_u64(key->count, hash);
}

static uint64_t hash_entry(const void *rows, uint32_t row)
{
    return hash_key(&((const struct peal_plan_entry *)rows + row)->key);
}

static enum peal_status open_library(struct peal_text *why, struct peal_plan_library **out)
{
    struct peal_plan_library *library = calloc(1, sizeof *library);
    struct peal_diags diags;
    if (!library)
        return PEAL_NO_MEMORY;
    atomic_init(&library->users, 1);
    pthread_mutex_init(&library->lock, NULL);
    peal_diags_init(&diags);
    enum peal_status status = peal_program_open("barrier_mesh", &diags, &library->program);
    if (status != PEAL_OK) {
        peal_diags_print(&diags, false, why); /* before the text it points into is gone */
        drop_library(library);
    } else {
        *out = library;
    }
    peal_diags_release(&diags);
    return status;
}

enum peal_status peal_plans_open(struct peal_plans *plans, const struct peal_plans *other,
                                 struct peal_text *why)
{
    size_t algos;
    peal_algos(&algos);
    if (!plans->by_algo)
        plans->by_algo = calloc(algos, sizeof *plans->by_algo);
    if (!plans->by_algo)
        return PEAL_NO_MEMORY;
    if (plans->team->lazy) {
        plans->prefault.step = STEP_BYTES;
    } else {
        size_t prefault = FIRST_BYTES + (size_t)plans->team->size * RANK_BYTES;
        if (!peal_vec_reserve(&plans->entries, FIRST_PLANS))
            return PEAL_NO_MEMORY;
        memset(plans->entries.at, 0, FIRST_PLANS * sizeof *plans->entries.at); /* touched */
        peal_prefault_init(&plans->prefault, prefault < MAX_BYTES ? prefault : FIRST_BYTES,
                           STEP_BYTES);
    }
    if (!other)
        return open_library(why, &plans->library);
    /* Relaxed: the other one holds it. */
    atomic_fetch_add_explicit(&other->library->users, 1, memory_order_relaxed);
    plans->library = other->library;
    return PEAL_OK;
}

static enum peal_status find_kernel(struct peal_plans *plans, const struct peal_algo *algo,
                                    struct peal_text *why)
{
    struct peal_algo_plans *algo_plans = &plans->by_algo[peal_algo_index(algo)];
    struct peal_diags diags;
    if (algo_plans->kernel)
        return PEAL_OK;
    peal_diags_init(&diags);
    pthread_mutex_lock(&plans->library->lock);
    algo_plans->kernel = peal_program_kernel(plans->library->program, algo->kernel, &diags);
    pthread_mutex_unlock(&plans->library->lock);
    if (!algo_plans->kernel)
        peal_diags_print(&diags, false, why);
    peal_diags_release(&diags);
    return algo_plans->kernel ? PEAL_OK : PEAL_INVALID;
}

/* On failure, `why` gets the diagnostics. */
static enum peal_status instantiate(const struct peal_kernel *kernel, const struct peal_bind *bind,
                                    struct peal_text *why, struct peal_plan **out)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    enum peal_status status = peal_instantiate(kernel, bind, &diags, out);
    if (status != PEAL_OK)
        peal_diags_print(&diags, false, why);
    peal_diags_release(&diags);
    return status;
}

/* What only the whole plan shows. */
static enum peal_status find_writers(const struct peal_plan *whole, const struct peal_team *team,
                                     struct peal_cell_writers *out)
{
    uint32_t rank = team->rank;
    out->pulled = team->span && peal_pulls_find(whole, rank, team->span->far);
    out->cells = whole->cells;
    out->writers = calloc(whole->cells + 1, sizeof *out->writers);
    out->notifiers = calloc(whole->cells + 1, sizeof *out->notifiers);
    if (!out->writers || !out->notifiers)
        return PEAL_NO_MEMORY;
    peal_multicast_find(whole, out->writers);
    peal_notifiers_find(whole, rank, out->notifiers);
    return PEAL_OK;
}

/* A library kernel's: nothing but the plan decides whether the whole is made, as all ranks must
 * come to the same writers. */
static enum peal_status look_at_whole(const struct peal_team *team,
                                      const struct peal_kernel *kernel,
                                      const struct peal_bind *bind, const struct peal_plan *part,
                                      peal_plan_prove *prove, struct peal_text *why,
                                      struct peal_cell_writers *out)
{
    enum { MAX_RANKS = 64 }; /* beyond, the whole plan costs more than it saves */
    struct peal_bind all = *bind;
    struct peal_plan *made = NULL;
    out->cells = part->cells;
    if (!prove && (part->nranks < 2 || part->nranks > MAX_RANKS || part->cells == 0))
        return PEAL_OK;
    all.rank = PEAL_NONE;
    if (part->rank_count != part->nranks) {
        enum peal_status status = instantiate(kernel, &all, why, &made);
        if (status != PEAL_OK)
            return status;
    }
    const struct peal_plan *whole = made ? made : part;
    enum peal_status status = prove ? prove(whole, why) : PEAL_OK;
    if (status == PEAL_OK)
        status = find_writers(whole, team, out);
    free(made);
    return status;
}

/* A library kernel's plan: this rank's part, or the whole where it has channels, whose places
 * follow from all of them (image.h). Every rank of such a kernel has some. */
static enum peal_status make_own_part(const struct peal_team *team,
                                      const struct peal_kernel *kernel,
                                      const struct peal_bind *bind,
                                      const struct peal_cell_writers *known, struct peal_text *why,
                                      struct peal_plan **out)
{
    struct peal_bind own = *bind;
    struct peal_plan *plan = NULL;
    own.rank = known && known->has_channels ? PEAL_NONE : team->rank;
    enum peal_status status = instantiate(kernel, &own, why, &plan);
    if (status == PEAL_OK && plan->channels.count > 0 && own.rank != PEAL_NONE) {
        free(plan);
        own.rank = PEAL_NONE;
        status = instantiate(kernel, &own, why, &plan);
    }
    if (status == PEAL_OK)
        *out = plan;
    return status;
}

/* As peal_image_new, of a plan of which nothing is known yet: `fresh` is filled in. */
static enum peal_status
look_and_make(const struct peal_team *team, const struct peal_kernel *kernel,
              const struct peal_bind *bind, const struct peal_image_options *options,
              peal_plan_prove *prove, struct peal_plan *plan, struct peal_cell_writers *fresh,
              struct peal_text *why, struct peal_image **out)
{
    struct peal_bind own = *bind;
    struct peal_image_options full = *options;
    own.rank = team->rank;
    fresh->has_channels = plan->channels.count > 0;
    enum peal_status status = look_at_whole(team, kernel, &own, plan, prove, why, fresh);
    if (status != PEAL_OK) {
        if (!options->template)
            free(plan);
        return status;
    }
    full.writers = fresh->writers;
    full.notifiers = fresh->notifiers;
    full.pulled = fresh->pulled;
    return peal_image_new(plan, &full, team->compute, out);
}

enum peal_status peal_plans_take(const struct peal_plans *plans, struct peal_plan *whole,
                                 const struct peal_image_options *options, struct peal_text *why,
                                 struct peal_image **out)
{
    const struct peal_team *team = plans->team;
    struct peal_cell_writers writers = {0};
    struct peal_image_options full = *options;
    enum peal_status status = PEAL_OK;
    full.far = team->span ? team->span->far : NULL;
    if (plans->prove)
        status = plans->prove(whole, why);
    if (status == PEAL_OK)
        status = find_writers(whole, team, &writers);
    full.writers = writers.writers;
    full.notifiers = writers.notifiers;
    full.pulled = writers.pulled;
    if (status == PEAL_OK)
        status = peal_image_new(whole, &full, team->compute, out);
    else
        free(whole);
    release_cell_writers(&writers);
    return status;
}

/* Always makes the whole plan: channels, signals, windows and lanes may exist on some ranks only,
 * so the layout does not follow from one rank's part. */
enum peal_status peal_plans_make(const struct peal_plans *plans, const struct peal_kernel *kernel,
                                 const struct peal_bind *bind,
                                 const struct peal_image_options *options, struct peal_text *why,
                                 struct peal_image **out)
{
    struct peal_bind all = *bind;
    struct peal_plan *whole = NULL;
    all.rank = PEAL_NONE;
    enum peal_status status = instantiate(kernel, &all, why, &whole);
    if (status != PEAL_OK)
        return status;
    return peal_plans_take(plans, whole, options, why, out);
}

static struct peal_cell_writers *find_cell_writers(const struct peal_algo_plans *algo_plans,
                                                   uint32_t root)
{
    struct peal_cell_writers *i = algo_plans->cell_writers;
    while (i && i->root != root)
        i = i->next;
    return i;
}

static void keep_cell_writers(struct peal_algo_plans *algo_plans, uint32_t root,
                              struct peal_cell_writers *fresh)
{
    struct peal_cell_writers *kept = malloc(sizeof *kept);
    if (!kept) { /* they are found again next time */
        release_cell_writers(fresh);
        return;
    }
    *kept = *fresh;
    kept->root = root;
    kept->next = algo_plans->cell_writers;
    algo_plans->cell_writers = kept;
}

/* Should a channel be so long that slots have left the sender's cache before they are read? Only
 * for two collectives, because the memory of all kernels has to fit into a context. */
static bool goes_round(const struct peal_team *team, uint32_t collective, uint64_t slot_bytes)
{
    enum { MIN_BYTES = 4096 };
    if (!team->policy.keeps_writes || team->span || team->size != 2 || team->policy.cores < 2)
        return false;
    return slot_bytes >= MIN_BYTES &&
           (collective == PEAL_CALL_ALLREDUCE || collective == PEAL_CALL_REDUCE_SCATTER);
}

/* The number of slots of a channel. Lines that a peer has read recently are slow to write again, so
 * a longer channel is faster, as long as it fits into the caches; with many ranks memory counts
 * more. Where a shared cache takes what a core's own cache evicts, a channel larger than the core's
 * cache is faster still. */
static uint32_t depth_for(const struct peal_team *team, uint32_t collective, uint64_t slot_bytes)
{
    enum { MIN_DEPTH = 4, MAX_DEPTH = 32, MAX_LONG_DEPTH = 512 };
    uint64_t limit = MAX_DEPTH, bytes = (UINT64_C(1) << 20) / team->size;
    if (goes_round(team, collective, slot_bytes)) {
        limit = MAX_LONG_DEPTH;
        bytes = UINT64_C(2) << 20; /* twice what a core has */
    }
    uint64_t depth = bytes / (slot_bytes + PEAL_LINE);
    return (uint32_t)peal_size_min(peal_size_max(depth, MIN_DEPTH), limit);
}

/* ---- plans by key ---- */

/* A key as instantiate wants it. */
struct plan_binding {
    struct peal_bind bind;
    struct peal_bind_value values[3];
    int64_t count, capacity, groups;
};

static const struct peal_formula *formula_of(const struct peal_plans *plans,
                                             const struct peal_plan_key *key)
{
    if (!peal_reduce_is_user(key->reduce))
        return NULL;
    return &plans->formulas[key->reduce - PEAL_USER_REDUCTION];
}

/* As a plan of a library kernel numbers it: its only formula is the first. */
static enum peal_reduction reduce_of(const struct peal_plan_key *key)
{
    return peal_reduce_is_user(key->reduce) ? PEAL_USER_REDUCTION
                                            : (enum peal_reduction)key->reduce;
}

static void bind_key(const struct peal_plans *plans, const struct peal_plan_key *key,
                     struct plan_binding *out)
{
    uint8_t shape = key->algo->shape;
    bool rows = shape == PEAL_SHAPE_ROWS || shape == PEAL_SHAPE_BLOCKS;
    uint64_t element = peal_dtype_size((enum peal_dtype)key->dtype);
    *out = (struct plan_binding){.count = (int64_t)key->count,
                                 .capacity = (int64_t)key->count,
                                 .groups = plans->team->policy.cores};
    out->values[0] = (struct peal_bind_value){rows ? "m" : "n", &out->count, 1, false};
    uint32_t nvalues = shape == PEAL_SHAPE_NONE ? 0 : 1;
    if (key->algo->has_capacity)
        out->values[nvalues++] = (struct peal_bind_value){"most", &out->capacity, 1, false};
    if (key->algo->has_groups)
        out->values[nvalues++] = (struct peal_bind_value){"groups", &out->groups, 1, false};
    out->bind = (struct peal_bind){
        .nranks = plans->team->size,
        .dtype = (enum peal_dtype)key->dtype,
        .reduce = (enum peal_reduction)key->reduce,
        .formula = formula_of(plans, key),
        .values = out->values,
        .nvalues = nvalues,
        .root = key->root,
        .in_place = key->in_place,
        .symmetric = key->symmetric,
        .nodes = plans->team->span ? plans->team->span->places : NULL,
        .channel_depth = depth_for(plans->team, key->algo->collective, key->count * element),
        .slot_bytes = key->count * element};
}

/* The template that serves a key, made at its first use. NULL: there is none, or no memory. */
static const struct peal_plan *find_template(struct peal_plans *plans,
                                             struct peal_algo_plans *algo_plans,
                                             const struct peal_plan_key *key)
{
    struct peal_plan_key shared = *key;
    shared.count = PEAL_TEMPLATE_COUNT;
    shared.dtype = (uint8_t)peal_template_dtype((enum peal_dtype)key->dtype);
    shared.reduce = (uint8_t)peal_template_reduce((enum peal_reduction)key->reduce);
    shared.remote = false; /* the image's, not the plan's */
    for (struct peal_template *p = algo_plans->templates; p; p = p->next) {
        if (same_key(&p->key, &shared))
            return p->plan;
    }
    struct plan_binding binding;
    struct peal_text why = {0};
    struct peal_template *template = calloc(1, sizeof *template);
    if (!template)
        return NULL;
    bind_key(plans, &shared, &binding);
    binding.capacity = PEAL_TEMPLATE_CAPACITY;
    enum peal_status status = find_kernel(plans, key->algo, &why);
    if (status == PEAL_OK)
        status = make_own_part(plans->team, algo_plans->kernel, &binding.bind,
                               find_cell_writers(algo_plans, key->root), &why, &template->plan);
    peal_text_release(&why);
    if (status != PEAL_OK || !peal_plan_is_template(template->plan)) {
        if (status == PEAL_OK)
            free(template->plan);
        template->plan = NULL;
    }
    template->key = shared;
    template->next = algo_plans->templates;
    algo_plans->templates = template;
    plans->bytes += sizeof *template + (template->plan ? template->plan->block_len : 0);
    return template->plan;
}

/* Resizes a template in the draft. */
static enum peal_status resize(struct peal_plans *plans, const struct peal_plan *template,
                               const struct peal_plan_size *size, struct peal_plan **out)
{
    if (template->block_len > plans->draft_cap) {
        uint64_t cap = peal_size_align(template->block_len * 2, PEAL_LINE);
        struct peal_plan *bigger = aligned_alloc(PEAL_LINE, cap);
        if (!bigger)
            return PEAL_NO_MEMORY;
        free(plans->draft);
        plans->draft = bigger;
        plans->draft_cap = cap;
    }
    peal_plan_resize_into(template, size, plans->draft);
    *out = plans->draft;
    return PEAL_OK;
}

/* Steps between buffers follow from the bytes, where sizes are rounded. */
static struct peal_digest identify(const struct peal_algo *algo, uint64_t bytes)
{
    struct peal_sha256 sha;
    peal_sha256_begin(&sha);
    peal_sha256_add(&sha, algo->kernel, strlen(algo->kernel) + 1);
    peal_sha256_add_u64(&sha, bytes);
    return peal_sha256_digest(&sha);
}

static enum peal_status make(struct peal_plans *plans, const struct peal_plan_key *key,
                             struct peal_text *why, struct peal_image **out)
{
    struct peal_algo_plans *algo_plans = &plans->by_algo[peal_algo_index(key->algo)];
    struct peal_cell_writers *known = find_cell_writers(algo_plans, key->root), fresh = {0};
    uint8_t shape = key->algo->shape;
    uint64_t element = peal_dtype_size((enum peal_dtype)key->dtype);
    struct plan_binding binding;
    bind_key(plans, key, &binding);
    struct peal_plan_size size = {.count = key->count,
                                  .capacity = key->algo->has_capacity ? key->count : 0,
                                  .dtype = (enum peal_dtype)key->dtype,
                                  .reduce = reduce_of(key),
                                  .channel_depth = binding.bind.channel_depth,
                                  .slot_bytes = binding.bind.slot_bytes};
    struct peal_image_options options = {
        .rank = plans->team->rank,
        .clip = shape != PEAL_SHAPE_WHOLE,
        .rows_as_bases = shape == PEAL_SHAPE_ROWS || shape == PEAL_SHAPE_BLOCKS,
        .remote = key->remote,
        .writes = plans->team->threads,
        .pairwise = peal_program_orders_pairs(plans->library->program, key->algo->kernel),
        .identity = identify(key->algo, key->count * element),
        .prefault = &plans->prefault,
        .made = &size};
    if (plans->team->span)
        options.far = plans->team->span->far;
    /* PEAL_VERIFY proves what instantiate makes. */
    if (shape != PEAL_SHAPE_WHOLE && !plans->prove)
        options.template = find_template(plans, algo_plans, key);
    bool looked =
        known && !plans->prove && (!options.template || options.template->cells == known->cells);
    enum peal_status status =
        options.template && looked ? PEAL_OK : find_kernel(plans, key->algo, why);
    struct peal_plan *plan = NULL;
    if (status == PEAL_OK)
        status = options.template ? resize(plans, options.template, &size, &plan)
                                  : make_own_part(plans->team, algo_plans->kernel, &binding.bind,
                                                  known, why, &plan);
    if (status != PEAL_OK)
        return status;
    if (looked && plan->cells == known->cells) {
        options.writers = known->writers;
        options.notifiers = known->notifiers;
        options.pulled = known->pulled;
        return peal_image_new(plan, &options, plans->team->compute, out);
    }
    status = look_and_make(plans->team, algo_plans->kernel, &binding.bind, &options, plans->prove,
                           plan, &fresh, why, out);
    if (status == PEAL_OK && !known)
        keep_cell_writers(algo_plans, key->root, &fresh);
    else
        release_cell_writers(&fresh);
    return status;
}

enum peal_status peal_plans_find(struct peal_plans *plans, const struct peal_plan_key *key,
                                 struct peal_text *why, struct peal_image **out)
{
    if (!peal_index_reserve(&plans->index, hash_entry, plans->entries.at) ||
        !peal_vec_reserve(&plans->entries, 1))
        return PEAL_NO_MEMORY;
    size_t at = peal_index_begin(&plans->index, hash_key(key));
    for (; peal_index_is_used(&plans->index, at); at = peal_index_next(&plans->index, at)) {
        const struct peal_plan_entry *entry = &plans->entries.at[peal_index_row(&plans->index, at)];
        if (same_key(&entry->key, key)) {
            *out = entry->image;
            return PEAL_OK;
        }
    }
    enum peal_status status = make(plans, key, why, out);
    if (status != PEAL_OK)
        return status;
    peal_index_put(&plans->index, at, (uint32_t)plans->entries.len);
    plans->entries.at[plans->entries.len++] = (struct peal_plan_entry){*key, *out};
    plans->bytes += peal_image_bytes(*out);
    return PEAL_OK;
}
