/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: the memory around a launch, and how a blocked one describes itself.
 *
 * A context has one frame, which is loaded with an image, launched, run (exec.c), and launched
 * again. Loading finds the image's family (the region of windows where its launches live) and the
 * memory that its steps refer to; it is where memory may run out. From the launch on nothing is
 * allocated.
 *
 * An image remembers, for each context, its family and the turn in which it was found. When regions
 * are given back the turn changes, and the family is looked up again: pointers into an older turn
 * are never followed. Arrays of the frame only grow and are shared by all images that it is loaded
 * with. */
#include "run/exec/exec.h"

#include "plan/plan.h"
#include "run/exec/far.h"
#include "run/exec/remote.h"
#include "run/span/span.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow_bounce(struct peal_frame *frame, uint64_t bytes)
{
    if (bytes <= frame->bounce_cap)
        return true;
    free(frame->bounce);
    frame->bounce = aligned_alloc(4096, bytes);
    frame->bounce_cap = frame->bounce ? bytes : 0;
    return frame->bounce != NULL;
}

enum peal_status peal_frame_init(struct peal_frame *frame, const struct peal_team *team,
                                 uint32_t context)
{
    *frame = (struct peal_frame){.team = team, .context = context};
    enum peal_status status = peal_regions_init(&frame->regions, team, context);
    /* Blocking calls will read peers' memory into this; touching its pages would take most of the
     * first call's time. If there is no memory, the call that needs it reports that. */
    if (context == 0 && team->size > 1 && !team->threads && !team->lazy &&
        peal_remote_expect(team) && grow_bounce(frame, 2 * PEAL_REMOTE_MAX_BYTES))
        memset(frame->bounce, 0, frame->bounce_cap);
    return status;
}

void peal_frame_release(struct peal_frame *frame)
{
    peal_regions_release(&frame->regions);
    if (frame->team)
        peal_far_release(frame);
    free(frame->far_bounce);
    free(frame->scratch);
    free(frame->pointers);
    free(frame->operands);
    free(frame->bounce);
    free(frame->lanes);
    free(frame->regs);
    *frame = (struct peal_frame){0};
}

/* Makes *at hold `wanted` elements, zeroed and touched; contents are not kept. */
static bool make_room(void **at, uint32_t *cap, uint32_t wanted, size_t element)
{
    if (wanted <= *cap)
        return true;
    void *bigger = malloc(wanted * element);
    if (!bigger)
        return false;
    memset(bigger, 0, wanted * element);
    free(*at);
    *at = bigger;
    *cap = wanted;
    return true;
}

enum peal_status peal_frame_prepare(struct peal_frame *frame, const struct peal_image *image)
{
    uint32_t sources = image->max_operands;
    uint32_t operands_cap = frame->pointers_cap;
    if (!make_room((void **)&frame->lanes, &frame->lanes_cap, image->nlanes,
                   sizeof *frame->lanes) ||
        !make_room((void **)&frame->regs, &frame->regs_cap, image->nregs + 1,
                   sizeof *frame->regs) ||
        !make_room((void **)&frame->operands, &operands_cap, sources, sizeof *frame->operands) ||
        !make_room((void **)&frame->pointers, &frame->pointers_cap, sources,
                   sizeof *frame->pointers))
        return PEAL_NO_MEMORY;
    if (!grow_bounce(frame, image->bounce_bytes) || peal_far_prepare(frame, image) != PEAL_OK)
        return PEAL_NO_MEMORY;
    if (image->private_bytes > frame->scratch_cap) {
        uint64_t bytes = (image->private_bytes + 4095) & ~UINT64_C(4095);
        char *bigger = aligned_alloc(PEAL_LINE, bytes);
        if (!bigger)
            return PEAL_NO_MEMORY;
        memset(bigger, 0, bytes); /* touched */
        free(frame->scratch);
        frame->scratch = bigger;
        frame->scratch_cap = image->private_bytes;
    }
    return PEAL_OK;
}

enum peal_status peal_frame_load(struct peal_frame *frame, struct peal_image *image,
                                 uint32_t context)
{
    if (frame->image == image || peal_frame_reload(frame, image, context))
        return PEAL_OK;
    frame->image = NULL;
    enum peal_status status = peal_frame_prepare(frame, image);
    if (status == PEAL_OK && !image->bases[context]) {
        image->bases[context] = calloc(image->nbases, sizeof(struct peal_base));
        status = image->bases[context] ? PEAL_OK : PEAL_NO_MEMORY;
    }
    if (status != PEAL_OK)
        return status;
    if (!image->families[context] || image->turns[context] != frame->regions.turns)
        status = peal_regions_find(&frame->regions, image, &image->families[context]);
    if (status != PEAL_OK)
        return status;
    image->turns[context] = frame->regions.turns;
    if (image->pulled)
        frame->team->span->lent = true;
    for (uint32_t r = 0; r < image->size; r++)
        image->bases[context][r].at = image->families[context]->at[r];
    bool loaded = peal_frame_reload(frame, image, context);
    assert(loaded);
    return loaded ? PEAL_OK : PEAL_SYSTEM;
}

void peal_frame_reach(struct peal_frame *frame, char *const *const *mapped,
                      const uint32_t *const *segments)
{
    const struct peal_image *image = frame->image;
    const struct peal_team *team = frame->team;
    assert(image->nparams <= PEAL_WINDOW_PARAMS);
    for (uint32_t i = 0; i < image->nparams; i++) {
        const struct peal_image_param *param = &image->params[i];
        if (!param->symmetric)
            continue;
        struct peal_base *first = &frame->bases[param->base];
        const struct peal_base *own = first + team->rank * param->rows;
        for (uint32_t k = 0; k < image->size * param->rows; k++) {
            uint32_t rank = k / param->rows, row = k % param->rows;
            if (rank == team->rank)
                continue;
            first[k] = own[row];
            if (mapped[i] && peal_team_is_far(team, rank)) {
                first[k].at = NULL;
                first[k].from = (uint64_t)(own[row].at - mapped[i][team->rank]);
                first[k].owner = segments[i][rank];
                continue;
            }
            if (mapped[i]) {
                first[k].at = mapped[i][rank] + (own[row].at - mapped[i][team->rank]);
                continue;
            }
            first[k].at = NULL;
            first[k].home = &team->controls[rank]->homes[frame->context][i];
            first[k].from = (uintptr_t)own[row].at - (uintptr_t)own->at;
            first[k].owner = rank;
        }
    }
}

/* Publishes where this rank's window parameters are. */
static void publish(const struct peal_frame *frame)
{
    const struct peal_image *image = frame->image;
    for (uint32_t i = 0; i < image->nparams; i++) {
        const struct peal_image_param *param = &image->params[i];
        if (param->symmetric)
            peal_remote_publish(frame->team, frame->context, i,
                                frame->bases[param->base + image->rank * param->rows].at);
    }
}

void peal_frame_launch(struct peal_frame *frame)
{
    const struct peal_image *image = frame->image;
    if (__builtin_expect(image->remote, 0))
        publish(frame);
    frame->launch = ++frame->family->launches;
    const struct peal_step *steps =
        image->steps + peal_image_phase(image, frame->launch) * image->nsteps;
    int64_t *regs = frame->regs;
    for (uint32_t l = 0; l < image->nlanes; l++) {
        frame->lanes[l] = (struct peal_frame_lane){steps + image->lanes[l].first, regs};
        regs += image->lanes[l].regs;
    }
    frame->live = image->nlanes;
}

static const char *source_line(const struct peal_plan *plan, const struct peal_op *op,
                               char buf[static 96])
{
    buf[0] = '\0';
    if (op->pos == PEAL_NONE || op->pos >= plan->positions.count)
        return buf;
    const struct peal_position *pos = &peal_plan_positions(plan)[op->pos];
    snprintf(buf, 96, " at %.70s:%u", peal_plan_string(plan, pos->source), pos->line);
    return buf;
}

/* What the cell of a wait holds, as the kernel counts. */
static long long read_actual(const struct peal_frame *frame, const struct peal_step *step)
{
    uint32_t owner = frame->image->spans ? frame->team->rank : 0;
    enum peal_step_kind kind = peal_step_near_kind(step->kind);
    const struct peal_cell *cell =
        (const struct peal_cell *)(frame->bases[owner].at + step->sync.offset);
    /* Relaxed: for a report only. */
    uint64_t word = atomic_load_explicit(&cell->value, memory_order_relaxed);
    if (kind == PEAL_STEP_WAIT_SHARED)
        return (long long)word - frame->family->shared[step->sync.shared];
    if (kind != PEAL_STEP_WAIT)
        return (long long)word;
    bool current = (uint32_t)(word >> 32) == (uint32_t)(frame->launch - step->sync.back);
    return current ? (long long)((uint32_t)word >> frame->image->count_shift) : 0;
}

static void describe_step(const struct peal_frame *frame, const struct peal_plan *plan,
                          const struct peal_step *step, uint64_t launch, struct peal_text *out)
{
    const struct peal_op *op = &peal_plan_ops(plan)[step->op];
    char where[96];
    peal_text_printf(out, "kernel '%s'%s: ", peal_plan_string(plan, plan->kernel),
                     source_line(plan, op, where));
    peal_plan_dump_op(plan, frame->team->rank, op, out);
    if (!peal_step_is_wait(step->kind))
        return;
    peal_text_printf(out, ", actual %lld", frame->live > 0 ? read_actual(frame, step) : 0);
    uint32_t number = peal_op_cell(plan, op, launch - 1);
    uint32_t notifier = frame->image->notifiers ? frame->image->notifiers[number] : PEAL_NONE;
    if (notifier != PEAL_NONE)
        peal_text_printf(out, ", to be notified by rank %u", notifier);
}

void peal_frame_describe(const struct peal_frame *frame, struct peal_text *out)
{
    const struct peal_plan *plan =
        frame->image && frame->live > 0 ? peal_image_plan(frame->image) : NULL;
    if (!plan)
        return;
    for (uint32_t l = 0; l < frame->image->nlanes; l++) {
        const struct peal_step *step = frame->lanes[l].at;
        if (!step || peal_step_near_kind(step->kind) == PEAL_STEP_END)
            continue;
        describe_step(frame, plan, step, frame->launch, out);
        return;
    }
}

void peal_frame_describe_first(const struct peal_frame *frame, struct peal_text *out)
{
    struct peal_image *image = frame->image;
    const struct peal_plan *plan = image ? peal_image_plan(image) : NULL;
    if (!plan)
        return;
    uint64_t phase = peal_image_phase(image, frame->family->launches + 1);
    for (uint32_t i = 0; i < image->nsteps; i++) {
        const struct peal_step *step = &image->steps[phase * image->nsteps + i];
        enum peal_step_kind kind = peal_step_near_kind(step->kind);
        if (!peal_step_is_wait(kind) && kind != PEAL_STEP_RECV && kind != PEAL_STEP_RECV_SLOT)
            continue;
        describe_step(frame, plan, step, frame->family->launches + 1, out);
        peal_text_puts(out, ", ");
        return;
    }
    peal_text_printf(out, "kernel '%s': ", peal_plan_string(plan, plan->kernel));
}
