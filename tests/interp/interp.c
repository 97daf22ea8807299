/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, memory and schedules of the interpreter.
 *
 * A launch owns an image of every parameter of every rank: the inputs that the caller gave, and the
 * outputs of the last run. Everything else (windows, private memory, cells, channels) is made when a
 * run starts and is as large as the largest launch needs; so a run never sees a trace of the one
 * before it. Ranks are moved by one op at a time; a schedule is nothing but the choice of the rank
 * that moves next. */
#include "interp/interp.h"

#include "interp/state.h"
#include "lib/random.h"

#include <stdlib.h>
#include <string.h>

/* Fills memory that nothing has been written to: a conspicuous value as a float, a double or an
 * integer of any size. */
enum { UNUSED_MEMORY = 0xa5 };

struct peal_interp *peal_interp_new(uint32_t nranks)
{
    struct peal_interp *in = calloc(1, sizeof *in);
    if (in)
        in->nranks = nranks;
    return in;
}

static void release_images(struct bytes *images, size_t count)
{
    if (!images)
        return;
    for (size_t i = 0; i < count; i++)
        free(images[i].at);
    free(images);
}

static void release_lanes(struct rank *rank)
{
    for (uint32_t i = 0; i < rank->lanes; i++)
        free(rank->lane[i].regs);
    free(rank->lane);
    rank->lane = NULL;
    rank->lanes = 0;
}

static void release_rank(struct rank *rank, size_t bufs)
{
    release_lanes(rank);
    free(rank->window);
    free(rank->private_memory);
    free(rank->cells);
    free(rank->bases);
    if (!rank->params)
        return;
    for (size_t b = 0; b < bufs; b++)
        free(rank->params[b]);
    free(rank->params);
}

static void release_state(struct peal_interp *in)
{
    uint32_t ranks = in->ranks ? in->nranks : 0;
    for (uint32_t r = 0; r < ranks; r++)
        release_rank(&in->ranks[r], in->bufs);
    free(in->ranks);
    in->ranks = NULL;
    for (size_t i = 0; i < in->channels.len; i++) {
        struct channel *c = &in->channels.at[i];
        for (size_t m = 0; m < c->messages.len; m++)
            free(c->messages.at[m].payload);
        peal_vec_release(&c->messages);
    }
    peal_vec_release(&in->channels);
}

void peal_interp_free(struct peal_interp *in)
{
    if (!in)
        return;
    release_state(in);
    for (size_t l = 0; l < in->launches.len; l++) {
        struct launch *launch = &in->launches.at[l];
        release_images(launch->inputs, in->nranks * launch->plan->bufs.count);
        release_images(launch->outputs, in->nranks * launch->plan->bufs.count);
    }
    peal_vec_release(&in->launches);
    peal_text_release(&in->why);
    free(in);
}

static bool is_image(const struct peal_buf *buf)
{
    return buf->kind == PEAL_BUF_PARAM;
}

static unsigned char *unused_memory(size_t len)
{
    unsigned char *at = malloc(len + 1);
    if (at)
        memset(at, UNUSED_MEMORY, len);
    return at;
}

/* An image per rank and parameter, of unused memory. */
static struct bytes *make_images(const struct peal_plan *plan)
{
    struct bytes *images = calloc(plan->nranks * plan->bufs.count + 1, sizeof *images);
    if (!images)
        return NULL;
    for (uint32_t r = 0; r < plan->nranks; r++) {
        for (uint32_t b = 0; b < plan->bufs.count; b++) {
            const struct peal_buf *buf = peal_plan_bufs(plan) + b;
            struct bytes *image = &images[r * plan->bufs.count + b];
            if (!is_image(buf))
                continue;
            image->len = peal_plan_len(plan, r, b) * peal_dtype_size(buf->dtype);
            image->at = unused_memory(image->len);
            if (!image->at) {
                release_images(images, plan->nranks * plan->bufs.count);
                return NULL;
            }
        }
    }
    return images;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t peal_interp_launch(struct peal_interp *in, const struct peal_plan *plan)
{
    if (plan->nranks != in->nranks || plan->rank_count != in->nranks)
        return SIZE_MAX;
    struct launch launch = {.plan = plan};
    launch.inputs = make_images(plan);
    launch.outputs = make_images(plan);
    if (!launch.inputs || !launch.outputs || !peal_vec_push(&in->launches, launch)) {
        release_images(launch.inputs, plan->nranks * plan->bufs.count);
        release_images(launch.outputs, plan->nranks * plan->bufs.count);
        return SIZE_MAX;
    }
    release_state(in);
    in->cells = larger(in->cells, plan->cells);
    in->window_bytes = larger(in->window_bytes, plan->window_bytes);
    in->private_bytes = larger(in->private_bytes, plan->private_bytes);
    in->bufs = larger(in->bufs, plan->bufs.count);
    for (size_t i = 0; i < plan->nranks * plan->bufs.count; i++)
        in->param_bytes = larger(in->param_bytes, launch.inputs[i].len);
    return in->launches.len - 1;
}

void *peal_interp_input(struct peal_interp *in, size_t launch, uint32_t rank, uint32_t buf)
{
    struct launch *l = &in->launches.at[launch];
    return l->inputs[rank * l->plan->bufs.count + buf].at;
}

const void *peal_interp_output(const struct peal_interp *in, size_t launch, uint32_t rank,
                               uint32_t buf)
{
    const struct launch *l = &in->launches.at[launch];
    return l->outputs[rank * l->plan->bufs.count + buf].at;
}

/* Shared cells go on counting in the next launch, so its thresholds start from this launch's totals. */
static void find_bases(const struct peal_interp *in, struct rank *rank)
{
    for (size_t l = 0; l < in->launches.len; l++) {
        const struct peal_plan *plan = in->launches.at[l].plan;
        int64_t *base = rank->bases + l * in->cells;
        memcpy(base + in->cells, base, in->cells * sizeof *base);
        for (uint64_t s = 0; s < plan->signals.count; s++) {
            const struct peal_signal *signal = peal_plan_signals(plan) + s;
            if (signal->kind != PEAL_SIGNAL_SHARED)
                continue;
            for (uint32_t c = 0; c < signal->cells; c++)
                base[in->cells + signal->first_cell + c] +=
                    peal_plan_total(plan, (uint32_t)(rank - in->ranks), l, signal, c);
        }
    }
}

static bool make_rank(struct peal_interp *in, struct rank *rank)
{
    rank->window = unused_memory(in->window_bytes);
    rank->private_memory = unused_memory(in->private_bytes);
    rank->params = calloc(in->bufs + 1, sizeof *rank->params);
    rank->cells = calloc(in->cells + 1, sizeof *rank->cells);
    rank->bases = calloc((in->launches.len + 1) * in->cells + 1, sizeof *rank->bases);
    if (!rank->window || !rank->private_memory || !rank->params || !rank->cells || !rank->bases)
        return false;
    for (size_t b = 0; b < in->bufs; b++) {
        rank->params[b] = unused_memory(in->param_bytes);
        if (!rank->params[b])
            return false;
    }
    find_bases(in, rank);
    return true;
}

/* Cells of signals declared uninitialised may hold anything at first: here, a small random number. */
static void fill_uninitialised(struct peal_interp *in)
{
    const struct peal_plan *plan = in->launches.at[0].plan;
    for (uint64_t s = 0; s < plan->signals.count; s++) {
        const struct peal_signal *signal = peal_plan_signals(plan) + s;
        if (signal->kind != PEAL_SIGNAL_RAW_UNINITIALISED)
            continue;
        for (uint32_t r = 0; r < in->nranks; r++) {
            for (uint32_t c = 0; c < signal->cells; c++)
                in->ranks[r].cells[signal->first_cell + c] = below(&in->random, 4);
        }
    }
}

uint32_t peal_interp_entered(const struct peal_interp *in, size_t launch)
{
    return in->launches.at[launch].entered_first;
}

static bool start(struct peal_interp *in, const struct peal_interp_schedule *schedule)
{
    release_state(in);
    for (size_t l = 0; l < in->launches.len; l++)
        in->launches.at[l].entered = in->launches.at[l].entered_first = 0;
    in->end = PEAL_INTERP_DONE;
    in->random = schedule->seed;
    peal_text_release(&in->why);
    in->ranks = calloc(in->nranks + 1, sizeof *in->ranks);
    if (!in->ranks)
        return false;
    for (uint32_t r = 0; r < in->nranks; r++) {
        if (!make_rank(in, &in->ranks[r]))
            return false;
    }
    if (in->launches.len)
        fill_uninitialised(in);
    return true;
}

/* The caller's part before a launch: inputs are put in place, outputs and private memory become
 * unused. */
static bool enter(struct peal_interp *in, uint32_t r)
{
    struct rank *rank = &in->ranks[r];
    struct launch *launch = &in->launches.at[rank->launch];
    const struct peal_plan *plan = launch->plan;
    launch->entered++;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct bytes *image = &launch->inputs[r * plan->bufs.count + b];
        const struct peal_buf *buf = peal_plan_bufs(plan) + b;
        if (!is_image(buf))
            continue;
        if (buf->dir == PEAL_DIR_OUT)
            memset(rank->params[b], UNUSED_MEMORY, image->len);
        else
            memcpy(rank->params[b], image->at, image->len);
    }
    memset(rank->private_memory, UNUSED_MEMORY, in->private_bytes);
    rank->lanes = peal_plan_lane_count(plan, r);
    rank->lane = calloc(rank->lanes + 1, sizeof *rank->lane);
    if (!rank->lane) {
        rank->lanes = 0;
        return false;
    }
    for (uint32_t i = 0; i < rank->lanes; i++)
        rank->lane[i].regs = calloc(peal_plan_lane(plan, r, i)->regs + 1, sizeof(int64_t));
    rank->inside = true;
    return true;
}

/* The caller's part after a launch: outputs are taken. */
static void leave(struct peal_interp *in, uint32_t r)
{
    struct rank *rank = &in->ranks[r];
    struct launch *launch = &in->launches.at[rank->launch];
    const struct peal_plan *plan = launch->plan;
    if (!launch->entered_first)
        launch->entered_first = launch->entered;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        const struct bytes *image = &launch->outputs[r * plan->bufs.count + b];
        if (image->at)
            memcpy(image->at, rank->params[b], image->len);
    }
    release_lanes(rank);
    rank->inside = false;
    rank->launch++;
}

static bool has_ended(const struct peal_interp *in, uint32_t r)
{
    return in->ranks[r].launch == in->launches.len;
}

/* One step of a rank: enters or leaves a launch, or moves one of its lanes. False: it cannot. */
static bool move(struct peal_interp *in, uint32_t r, bool random)
{
    struct rank *rank = &in->ranks[r];
    if (has_ended(in, r))
        return false;
    if (!rank->inside) {
        if (!enter(in, r))
            in->end = PEAL_INTERP_NO_MEMORY;
        return true;
    }
    const struct peal_plan *plan = in->launches.at[rank->launch].plan;
    uint32_t first = random && rank->lanes > 1 ? below(&in->random, rank->lanes) : 0;
    uint32_t ended = 0;
    bool moved = false;
    for (uint32_t i = 0; i < rank->lanes; i++) {
        uint32_t lane = (first + i) % rank->lanes;
        if (rank->lane[lane].op == peal_plan_lane(plan, r, lane)->ops)
            ended++;
        else if ((!moved || !random) && peal_interp_step(in, r, lane))
            moved = true;
    }
    if (ended < rank->lanes)
        return moved;
    leave(in, r);
    return true;
}

/* Moves one rank that can, by the schedule. False: none can. */
static bool move_any(struct peal_interp *in, const struct peal_interp_schedule *s, uint32_t *turn)
{
    uint32_t chosen = s->chosen % in->nranks;
    if (s->order == PEAL_INTERP_EAGER && move(in, chosen, true))
        return true;
    uint32_t first = s->order == PEAL_INTERP_ROUND_ROBIN ? *turn : below(&in->random, in->nranks);
    for (uint32_t i = 0; i < in->nranks; i++) {
        uint32_t r = (first + i) % in->nranks;
        if (s->order == PEAL_INTERP_LAZY && r == chosen)
            continue;
        if (move(in, r, s->order != PEAL_INTERP_ROUND_ROBIN)) {
            *turn = (r + 1) % in->nranks;
            return true;
        }
    }
    return s->order == PEAL_INTERP_LAZY && move(in, chosen, true);
}

static bool all_have_ended(const struct peal_interp *in)
{
    for (uint32_t r = 0; r < in->nranks; r++) {
        if (!has_ended(in, r))
            return false;
    }
    return true;
}

/* Describes where every rank stands. */
static void describe_deadlock(struct peal_interp *in)
{
    for (uint32_t r = 0; r < in->nranks; r++) {
        struct rank *rank = &in->ranks[r];
        if (has_ended(in, r)) {
            peal_text_printf(&in->why, "rank %u has ended\n", r);
            continue;
        }
        const struct peal_plan *plan = in->launches.at[rank->launch].plan;
        for (uint32_t i = 0; i < rank->lanes; i++) {
            const struct peal_lane *lane = peal_plan_lane(plan, r, i);
            if (rank->lane[i].op == lane->ops)
                continue;
            const struct peal_op *op = peal_plan_ops(plan) + lane->first_op + rank->lane[i].op;
            peal_text_printf(&in->why, "rank %u lane %u launch %zu stands at op %llu, %s", r, i,
                             rank->launch, (unsigned long long)rank->lane[i].op,
                             peal_op_info(op->kind)->name);
            if (op->pos != PEAL_NONE)
                peal_text_printf(&in->why, ", line %u", peal_plan_positions(plan)[op->pos].line);
            peal_text_puts(&in->why, "\n");
        }
    }
}

enum peal_interp_end peal_interp_run(struct peal_interp *in,
                                     const struct peal_interp_schedule *schedule)
{
    if (!start(in, schedule))
        return in->end = PEAL_INTERP_NO_MEMORY;
    uint32_t turn = 0;
    while (in->end == PEAL_INTERP_DONE && move_any(in, schedule, &turn))
        continue;
    if (in->end == PEAL_INTERP_DONE && !all_have_ended(in)) {
        in->end = PEAL_INTERP_DEADLOCK;
        describe_deadlock(in);
    }
    return in->end;
}

const char *peal_interp_why(const struct peal_interp *in)
{
    return peal_text_get(&in->why);
}
