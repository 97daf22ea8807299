/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of plans that are never held as a whole.
 *
 *   worker 0: ranks 0, 2, 4, ...   parts --> codes --+
 *                                                    +--> codes, frame --> instance
 *   worker 1: ranks 1, 3, 5, ...   parts --> codes --+
 *
 * A worker makes the ops of one rank after the other and keeps what they cost. Workers share
 * nothing, and the result does not depend on which of them made a rank's ops.
 */
#include "sim/engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 64 };

struct stream_worker {
    const struct peal_sim *sim;
    struct peal_parts *parts;
    struct peal_codes *codes;
    struct peal_diags diags;
    PEAL_VEC(uint8_t) buf_mem;
    uint32_t first, stride, nranks;
    enum peal_status status;
};

static bool visit(void *context, const struct peal_part_lane *lane)
{
    struct stream_worker *w = context;
    uint32_t count;
    const struct peal_buf *bufs = peal_parts_bufs(w->parts, &count);
    if (count > w->buf_mem.len) { /* a rank may declare buffers that earlier ranks did not */
        w->buf_mem.len = 0;
        if (!peal_vec_reserve(&w->buf_mem, count))
            return false;
        w->buf_mem.len = count;
        peal_sim_place_bufs(w->sim, bufs, count, w->buf_mem.at);
    }
    return peal_sim_codes_add(w->sim, w->codes, w->buf_mem.at, lane);
}

static void work(void *context, size_t i)
{
    struct stream_worker *w = (struct stream_worker *)context + i;
    struct peal_sim_pace *pace = w->sim->options.pace;
    for (uint32_t rank = w->first; rank < w->nranks && w->status == PEAL_OK; rank += w->stride) {
        w->status = peal_parts_walk(w->parts, rank, visit, w);
        if (pace) /* relaxed: a number for display */
            atomic_fetch_add_explicit(&pace->made, 1, memory_order_relaxed);
    }
}

static bool check(const struct peal_sim *sim, const struct peal_bind *bind,
                  struct peal_diags *diags, enum peal_status *status)
{
    const struct peal_machine_keys *k = &sim->machine->keys;
    *status = PEAL_UNSUPPORTED;
    if (sim->options.data || sim->options.log)
        peal_diag_error(diags, (struct peal_pos){0},
                        "data and logs need the plan as a whole; it is not kept");
    else if (k->math_async || k->recv_async)
        peal_diag_error(diags, (struct peal_pos){0},
                        "asynchronous ops need the plan as a whole; it is not kept");
    else if (bind->nranks != sim->nranks) {
        *status = PEAL_INVALID;
        peal_diag_error(diags, (struct peal_pos){0},
                        "the kernel is for %u ranks, the simulation for %u", bind->nranks,
                        sim->nranks);
    } else {
        *status = PEAL_OK;
    }
    return *status == PEAL_OK;
}

static enum peal_status run_workers(struct stream_worker *workers, uint32_t count)
{
    peal_parallel(count, count, work, workers);
    for (uint32_t i = 0; i < count; i++) {
        if (workers[i].status != PEAL_OK)
            return workers[i].status;
    }
    return PEAL_OK;
}

/* Collects all channels in the first worker's tables, the frame, and the codes of all ranks. */
static enum peal_status join(struct stream_worker *workers, uint32_t count,
                             struct peal_plan **frame, struct peal_codes **codes)
{
    uint32_t *maps[MAX_WORKERS] = {0};
    struct peal_codes *others[MAX_WORKERS];
    enum peal_status status = PEAL_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t channels = peal_parts_channel_count(workers[i].parts);
        maps[i] = malloc((channels + 1) * sizeof **maps);
        if (!maps[i])
            goto free_maps;
        for (uint32_t c = 0; c < channels; c++)
            maps[i][c] = c; /* holds for the first worker; the others are joined to it */
    }
    for (uint32_t i = 1; i < count; i++) {
        status = peal_parts_join(workers[0].parts, workers[i].parts, maps[i]);
        if (status != PEAL_OK)
            goto free_maps;
    }
    status = peal_parts_end(workers[0].parts, frame);
    workers[0].parts = NULL;
    if (status != PEAL_OK)
        goto free_maps;
    for (uint32_t i = 0; i < count; i++) {
        others[i] = workers[i].codes;
        workers[i].codes = NULL;
    }
    *codes = peal_sim_codes_join(workers[0].sim, others, maps, count, workers[0].nranks);
    if (!*codes)
        status = PEAL_NO_MEMORY;
free_maps:
    for (uint32_t i = 0; i < count; i++)
        free(maps[i]);
    return status;
}

static enum peal_status make(struct stream_worker *workers, uint32_t count,
                             struct peal_plan **frame, struct peal_codes **codes)
{
    enum peal_status status = run_workers(workers, count);
    if (status != PEAL_OK)
        return status;
    for (uint32_t i = 0; i < count; i++) {
        if (!peal_sim_codes_queues_only(workers[i].codes)) {
            peal_diag_error(&workers[0].diags, (struct peal_pos){0},
                            "operands on other ranks need the plan as a whole; it is not kept");
            return PEAL_UNSUPPORTED;
        }
    }
    return join(workers, count, frame, codes);
}

static void pass_on(const struct peal_diags *from, struct peal_diags *to)
{
    for (size_t i = 0; i < from->list.len; i++) {
        const struct peal_diag *d = &from->list.at[i];
        if (d->severity == PEAL_ERROR)
            peal_diag_error(to, d->pos, "%s", d->message);
        else
            peal_diag_note(to, d->pos, "%s", d->message);
    }
}

static void release(struct stream_worker *w)
{
    peal_parts_free(w->parts);
    peal_sim_code_free(w->codes);
    peal_vec_release(&w->buf_mem);
    peal_diags_release(&w->diags);
}

/* Gives every worker its ranks. They are released in every case. */
static enum peal_status open_workers(struct stream_worker *workers, uint32_t count,
                                     struct peal_sim *sim, const struct peal_kernel *kernel,
                                     const struct peal_bind *bind)
{
    for (uint32_t i = 0; i < count; i++) {
        workers[i] =
            (struct stream_worker){.sim = sim, .first = i, .stride = count, .nranks = bind->nranks};
        peal_diags_init(&workers[i].diags);
    }
    for (uint32_t i = 0; i < count; i++) {
        workers[i].codes = peal_sim_codes_new();
        if (!workers[i].codes)
            return PEAL_NO_MEMORY;
        enum peal_status status =
            peal_parts_open(kernel, bind, &workers[i].diags, &workers[i].parts);
        if (status != PEAL_OK)
            return status;
    }
    return PEAL_OK;
}

enum peal_status peal_sim_launch_kernel(struct peal_sim *sim, const struct peal_kernel *kernel,
                                        const struct peal_bind *bind, uint32_t threads,
                                        struct peal_diags *diags)
{
    enum peal_status status;
    if (!check(sim, bind, diags, &status))
        return status;
    uint32_t max_workers = (uint32_t)peal_size_min(bind->nranks, MAX_WORKERS);
    uint32_t count = (uint32_t)peal_size_min(peal_size_max(threads, 1), max_workers);
    struct stream_worker *workers = calloc(count, sizeof *workers);
    struct peal_plan *frame = NULL;
    struct peal_codes *codes = NULL;
    if (!workers)
        return PEAL_NO_MEMORY;
    status = open_workers(workers, count, sim, kernel, bind);
    if (status != PEAL_OK)
        goto release_workers;
    status = make(workers, count, &frame, &codes);
    if (status != PEAL_OK)
        goto free_frame;
    struct peal_instance *instance = peal_sim_instance_new(sim, frame, codes);
    if (!instance) {
        status = PEAL_NO_MEMORY;
        goto free_frame;
    }
    instance->own_plan = frame;
    instance->kernel = kernel;
    instance->bind = bind;
    status = peal_sim_call(sim, instance, NULL);
    goto release_workers;
free_frame:
    free(frame);
release_workers:
    /* One worker's diagnostics are enough: the others usually report the same. */
    for (uint32_t i = 0; i < count; i++) {
        if (workers[i].diags.list.len) {
            pass_on(&workers[i].diags, diags);
            break;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        release(&workers[i]);
    free(workers);
    return status;
}

struct location {
    struct peal_sim *sim;
    const struct peal_instance *instance;
    const struct peal_parts *parts;
    uint32_t count; /* blocked lanes to examine */
};

/* Fills in the source positions of the blocked ops of this lane. */
static bool locate(void *context, const struct peal_part_lane *lane)
{
    const struct location *l = context;
    for (uint32_t i = 0; i < l->count; i++) {
        struct peal_sim_blocked *b = &l->sim->blocked.at[i];
        if (b->rank != lane->rank || b->lane != lane->lane || b->at >= lane->count ||
            l->sim->calls.at[b->launch].instance != l->instance)
            continue;
        const char *file = peal_parts_position(l->parts, &lane->ops[b->at], &b->line, &b->col);
        char *copy = NULL;
        if (file)
            copy = strdup(file);
        if (!copy)
            continue;
        if (peal_vec_push(&l->sim->files, copy))
            b->file = copy;
        else
            free(copy);
    }
    return true;
}

static bool is_walked(const struct peal_sim *sim, uint32_t before, uint32_t rank)
{
    for (uint32_t i = 0; i < before; i++) {
        if (sim->blocked.at[i].rank == rank)
            return true;
    }
    return false;
}

/* Only makes the report more readable: whatever cannot be made again, for lack of memory, is left
 * out. */
void peal_sim_stream_locate(struct peal_sim *sim)
{
    struct location l = {.sim = sim, .count = (uint32_t)sim->blocked.len};
    struct peal_diags diags;
    struct peal_parts *parts = NULL;
    if (l.count > PEAL_DEADLOCK_SHOWN)
        l.count = PEAL_DEADLOCK_SHOWN;
    if (l.count == 0)
        return;
    /* If there are several kernels: the one whose lanes come first. */
    l.instance = sim->calls.at[sim->blocked.at[0].launch].instance;
    if (!l.instance->kernel)
        return;
    peal_diags_init(&diags);
    if (peal_parts_open(l.instance->kernel, l.instance->bind, &diags, &parts) == PEAL_OK) {
        l.parts = parts;
        for (uint32_t i = 0; i < l.count; i++) {
            if (!is_walked(sim, i, sim->blocked.at[i].rank))
                peal_parts_walk(parts, sim->blocked.at[i].rank, locate, &l);
        }
    }
    peal_parts_free(parts);
    peal_diags_release(&diags);
}
