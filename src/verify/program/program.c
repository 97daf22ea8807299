/* SPDX-License-Identifier: Apache-2.0 */
/* Plans -> unrolled program. Names are matched first (the same name is the same memory in every
 * launch), then cells and threads are made, then each thread's ops are walked (unroll.c). */
#include "verify/program/program.h"

#include "base/base.h"
#include "verify/program/wires.h"

#include <stdlib.h>
#include <string.h>

void peal_program_fail(struct program *p, enum peal_status status, const char *why)
{
    if (p->status == PEAL_OK) {
        p->status = status;
        p->why = why;
    }
}

void *peal_program_take(struct program *p, uint64_t count, size_t size)
{
    uint64_t bytes;
    void *at = NULL;
    if (peal_size_mul(count, size, &bytes) && bytes < SIZE_MAX / 2)
        at = peal_arena_alloc(&p->arena, bytes);
    if (!at)
        peal_program_fail(p, PEAL_NO_MEMORY, "the memory limit was reached");
    return at;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void make_threads(struct program *p)
{
    p->thread_of_rank = peal_program_take(p, p->nranks + 1, sizeof *p->thread_of_rank);
    for (uint32_t r = 0; r < p->nranks && p->status == PEAL_OK; r++) {
        uint32_t lanes = 1;
        for (uint32_t l = 0; l < p->launches; l++) {
            uint32_t n = peal_plan_lane_count(p->plans[l], r);
            lanes = n > lanes ? n : lanes;
        }
        p->thread_of_rank[r + 1] = p->thread_of_rank[r] + lanes;
    }
    if (p->status != PEAL_OK)
        return;
    p->nthreads = p->nlanes = p->thread_of_rank[p->nranks];
    p->threads =
        peal_program_take(p, p->nlanes + peal_wires_thread_count(p, p->nlanes), sizeof *p->threads);
    for (uint32_t r = 0; r < p->nranks && p->status == PEAL_OK; r++) {
        for (uint32_t t = p->thread_of_rank[r]; t < p->thread_of_rank[r + 1]; t++) {
            p->threads[t].rank = r;
            p->threads[t].lane = t - p->thread_of_rank[r];
            p->threads[t].enter = peal_program_take(p, p->launches, sizeof(uint32_t));
            p->threads[t].leave = peal_program_take(p, p->launches, sizeof(uint32_t));
            p->threads[t].first_op = peal_program_take(p, p->launches + 1, sizeof(uint32_t));
        }
    }
}

/* Buffers where two threads could meet: windows, parameters that peers reach, and with several
 * lanes also private memory. */
static void watch_memory(struct program *p)
{
    bool lanes = p->nthreads > p->nranks;
    for (uint32_t l = 0; l < p->launches; l++) {
        const struct peal_plan *plan = p->plans[l];
        for (uint32_t b = 0; b < plan->bufs.count; b++) {
            const struct peal_buf *buf = &peal_plan_bufs(plan)[b];
            bool reached = buf->flags & (PEAL_BUF_PEER_READ | PEAL_BUF_PEER_WRITE);
            if (reached || (lanes && buf->kind != PEAL_BUF_TILE))
                p->memory.at[p->memory_of[l][b]].watched = true;
        }
    }
}

static enum peal_status build(struct program *p, const struct peal_plan *const *plans,
                              uint32_t launches, uint64_t max_bytes, bool pairwise)
{
    *p = (struct program){.plans = plans,
                          .launches = launches,
                          .nranks = plans[0]->nranks,
                          .barrier = PEAL_NONE,
                          .pairwise = pairwise,
                          .plain = pairwise};
    peal_arena_init(&p->arena, max_bytes);
    uint64_t ops = 0;
    for (uint32_t l = 0; l < launches; l++) {
        if (plans[l]->nranks != p->nranks || plans[l]->rank_count != p->nranks)
            peal_program_fail(p, PEAL_INVALID,
                              "all plans need all ranks, and the same number of them");
        ops += plans[l]->ops.count;
    }
    if (ops >= UINT32_MAX / 4)
        peal_program_fail(p, PEAL_NO_MEMORY, "a proof covers at most 1073741823 ops");
    if (p->status == PEAL_OK)
        peal_program_name(p);
    if (p->status == PEAL_OK)
        make_threads(p);
    if (p->status == PEAL_OK)
        peal_program_make_cells(p);
    if (p->status == PEAL_OK)
        peal_program_make_bases(p);
    if (p->status == PEAL_OK) {
        watch_memory(p);
        peal_program_unroll(p);
    }
    if (p->status == PEAL_OK)
        peal_program_drop_orders(p);
    if (p->status == PEAL_OK)
        peal_program_classify(p);
    return p->status;
}

enum peal_status peal_program_build(struct program *p, const struct peal_plan *const *plans,
                                    uint32_t launches, uint64_t max_bytes)
{
    return build(p, plans, launches, max_bytes, false);
}

enum peal_status peal_program_build_pairwise(struct program *p,
                                             const struct peal_plan *const *plans,
                                             uint32_t launches, uint64_t max_bytes)
{
    return build(p, plans, launches, max_bytes, true);
}

void peal_program_release(struct program *p)
{
    peal_vec_release(&p->memory);
    peal_vec_release(&p->signals);
    peal_vec_release(&p->channels);
    peal_vec_release(&p->accesses);
    peal_vec_release(&p->wires.items);
    peal_arena_release(&p->arena);
}
