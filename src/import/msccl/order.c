/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the collected elements in order: gpus by id, blocks by id, steps by number. A duplicate
 * number, or a gap where a gap has no meaning, is refused. */
#include "import/msccl/read.h"

#include <stdlib.h>
#include <string.h>

static struct peal_pos place(const struct msccl_reader *r, uint32_t line, uint32_t col)
{
    return (struct peal_pos){r->import->source, line, col, 0};
}

static int by_gpu(const void *a, const void *b)
{
    const struct msccl_gpu *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_tb(const void *a, const void *b)
{
    const struct msccl_tb *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_step(const void *a, const void *b)
{
    const struct msccl_step *x = a, *y = b;
    return (x->s > y->s) - (x->s < y->s);
}

/* Reports that two elements have one number. */
static bool report_duplicate(struct msccl_reader *r, const char *element, int32_t number,
                             struct peal_pos one, struct peal_pos other)
{
    bool later = one.line > other.line || (one.line == other.line && one.col > other.col);
    struct peal_pos first = one;
    if (later)
        first = other;
    struct peal_pos second = other;
    if (later)
        second = one;
    peal_diag_error(r->diags, second, "a second %s %d", element, number);
    peal_diag_note(r->diags, first, "the first one is here");
    return false;
}

static bool order_steps(struct msccl_reader *r, struct msccl_tb *tb)
{
    if (!tb->count)
        return true; /* the file may have no steps at all */
    struct msccl_step *steps = r->steps.at + tb->first;
    bool sorted = true;
    for (uint32_t i = 1; i < tb->count; i++)
        sorted = sorted && steps[i - 1].s < steps[i].s;
    if (!sorted)
        qsort(steps, tb->count, sizeof *steps, by_step);
    for (uint32_t i = 0; i < tb->count; i++) {
        if (i > 0 && steps[i].s == steps[i - 1].s)
            return report_duplicate(r, "step", steps[i].s,
                                    place(r, steps[i - 1].line, steps[i - 1].col),
                                    place(r, steps[i].line, steps[i].col));
        if (steps[i].s != (int32_t)i) {
            peal_diag_error(r->diags, place(r, steps[i].line, steps[i].col),
                            "there is no step %u before step %d", i, steps[i].s);
            return false;
        }
        if (steps[i].hasdep)
            tb->published = i + 1;
    }
    return true;
}

static const struct msccl_tb *find_tb(const struct msccl_reader *r, const struct msccl_gpu *gpu,
                                      int32_t id)
{
    struct msccl_tb key = {.id = id};
    return bsearch(&key, r->tbs.at + gpu->first, gpu->count, sizeof key, by_tb);
}

/* A dependency names a block of the same gpu. What it waits for may never be published: the first
 * such step is kept. */
static bool check_dependencies(struct msccl_reader *r, const struct msccl_gpu *gpu,
                               const struct msccl_tb *tb)
{
    for (uint32_t i = 0; i < tb->count; i++) {
        const struct msccl_step *step = &r->steps.at[tb->first + i];
        if (step->depid < 0)
            continue;
        const struct msccl_tb *other = find_tb(r, gpu, step->depid);
        if (!other) {
            peal_diag_error(r->diags, place(r, step->line, step->col),
                            "depid %d: gpu %d has no such thread block", step->depid, gpu->id);
            return false;
        }
        if (step->deps < 0) {
            peal_diag_error(r->diags, place(r, step->line, step->col),
                            "depid %d without the number of a step in deps", step->depid);
            return false;
        }
        if (other->published <= (uint32_t)step->deps && !r->algo->stuck.line)
            r->algo->stuck = *step;
    }
    return true;
}

static bool order_gpu(struct msccl_reader *r, struct msccl_gpu *gpu)
{
    if (!gpu->count)
        return true;
    struct msccl_tb *tbs = r->tbs.at + gpu->first;
    if (gpu->count > 1)
        qsort(tbs, gpu->count, sizeof *tbs, by_tb);
    for (uint32_t i = 0; i < gpu->count; i++) {
        if (i > 0 && tbs[i].id == tbs[i - 1].id)
            return report_duplicate(r, "thread block", tbs[i].id,
                                    place(r, tbs[i - 1].line, tbs[i - 1].col),
                                    place(r, tbs[i].line, tbs[i].col));
        if (!order_steps(r, &tbs[i]))
            return false;
    }
    for (uint32_t i = 0; i < gpu->count; i++) {
        if (!check_dependencies(r, gpu, &tbs[i]))
            return false;
    }
    return true;
}

static void *copy(struct msccl_reader *r, const void *from, size_t bytes)
{
    void *to = peal_arena_alloc(&r->import->arena, bytes ? bytes : 1);
    if (!to)
        r->status = PEAL_NO_MEMORY;
    else if (bytes)
        memcpy(to, from, bytes);
    return to;
}

/* Are there messages of several chunks, and few enough to be examined chunk by chunk? */
static bool sends_pieces(const struct msccl_reader *r)
{
    enum { MAX_PIECES = 1 << 23 };
    uint64_t pieces = 0;
    bool several = false;
    for (size_t i = 0; i < r->steps.len; i++) {
        const struct msccl_step *step = &r->steps.at[i];
        const struct msccl_type_info *info = &peal_msccl_types[step->type];
        if (!info->sends && !info->receives)
            continue;
        if (step->cnt >= MSCCL_CNT_LIMIT)
            return false;
        several = several || step->cnt > 1;
        if (step->cnt > 0)
            pieces += (uint64_t)step->cnt;
    }
    return several && pieces <= MAX_PIECES;
}

bool peal_msccl_order(struct msccl_reader *r)
{
    struct msccl_algo *algo = r->algo;
    if (r->gpus.len > 1)
        qsort(r->gpus.at, r->gpus.len, sizeof *r->gpus.at, by_gpu);
    for (uint32_t i = 0; i < r->gpus.len; i++) {
        struct msccl_gpu *gpu = &r->gpus.at[i];
        if (i > 0 && gpu->id == gpu[-1].id)
            return report_duplicate(r, "gpu", gpu->id, place(r, gpu[-1].line, gpu[-1].col),
                                    place(r, gpu->line, gpu->col));
        if (gpu->id != (int32_t)i)
            break;
        if (!order_gpu(r, gpu))
            return false;
    }
    for (uint32_t i = 0; i < algo->nranks; i++) {
        if (i < r->gpus.len && r->gpus.at[i].id == (int32_t)i)
            continue;
        peal_diag_error(r->diags, place(r, algo->line, algo->col),
                        "ngpus is %u, and there is no gpu %u", algo->nranks, i);
        return false;
    }
    algo->gpus = copy(r, r->gpus.at, r->gpus.len * sizeof *r->gpus.at);
    algo->tbs = copy(r, r->tbs.at, r->tbs.len * sizeof *r->tbs.at);
    algo->steps = copy(r, r->steps.at, r->steps.len * sizeof *r->steps.at);
    algo->ngpus = (uint32_t)r->gpus.len;
    algo->ntbs = (uint32_t)r->tbs.len;
    algo->nsteps = (uint32_t)r->steps.len;
    r->import->facts.steps = r->steps.len;
    r->import->facts.sends_pieces = sends_pieces(r);
    return r->status == PEAL_OK;
}
