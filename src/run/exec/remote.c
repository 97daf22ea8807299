/* SPDX-License-Identifier: Apache-2.0 */
/* Peers' memory: whether it may be read, where it is, and the steps that read it. See remote.h for
 * the protocol. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "run/exec/remote.h"

#include "run/exec/operand.h"
#include "run/team/memory/windows.h"
#include "run/wait/backoff.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>

/* ---- whether it may be read ---- */

uint64_t *peal_remote_offer(struct peal_control *own)
{
    const char *wish = getenv("PEAL_SINGLE_COPY");
    uint64_t *probe = malloc(sizeof *probe);
    if (!probe || (wish && strcmp(wish, "0") == 0) ||
        getrandom(probe, sizeof *probe, 0) != (ssize_t)sizeof *probe) {
        free(probe);
        return NULL;
    }
    own->probe_at = (uint64_t)(uintptr_t)probe;
    own->probe = *probe;
    return probe;
}

/* The system calls name a process by its pid, which may be reused once the process has ended. Pids
 * are given out in turn, so one comes back only after thousands of new processes: a peer that was
 * seen alive within the last millisecond still has its own. */
static bool is_there(const struct peal_team *team, uint32_t rank)
{
    enum { FRESH_NS = 1000000 };
    uint64_t now = peal_now_ns();
    if (now - team->seen_ns[rank] < FRESH_NS)
        return true;
    if (peal_team_is_dead(team, rank))
        return false;
    team->seen_ns[rank] = now;
    return true;
}

/* From the memory of a rank's process to `own`. Returns 0 or an errno. */
static int read_memory(const struct peal_team *team, uint32_t rank, char *own, uint64_t other,
                       uint64_t bytes)
{
    int32_t pid = team->pids[rank];
    if (!is_there(team, rank))
        return ESRCH;
    for (uint64_t done = 0; done < bytes;) {
        struct iovec here = {own + done, bytes - done};
        struct iovec there = {(void *)(uintptr_t)(other + done), bytes - done};
        ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n == 0)
            return EFAULT;
        done += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

void peal_remote_probe(struct peal_team *team)
{
    uint32_t found = team->windows->probe && !team->span ? PEAL_READS_YES : PEAL_READS_NO;
    if (team->span) /* memory of another host cannot be read in this way */
        team->reads = PEAL_READS_NO;
    for (uint32_t r = 0; r < team->size && found == PEAL_READS_YES; r++) {
        const struct peal_control *control = team->controls[r];
        uint64_t word = 0;
        if (r == team->rank)
            continue;
        /* Without a descriptor and a pid of the process, its memory cannot be read safely. */
        if (control->probe_at == 0 || team->pidfds[r] < 0 || team->pids[r] == 0 ||
            read_memory(team, r, (char *)&word, control->probe_at, sizeof word) != 0 ||
            word != control->probe)
            found = PEAL_READS_NO;
    }
    /* Partner: peal_remote_agree on every rank. */
    atomic_store_explicit(&peal_team_own(team)->reads, found, memory_order_release);
}

bool peal_remote_expect(const struct peal_team *team)
{
    /* Relaxed: this rank wrote it. */
    return team->reads == PEAL_READS_YES ||
           atomic_load_explicit(&peal_team_own(team)->reads, memory_order_relaxed) ==
               PEAL_READS_YES;
}

bool peal_remote_agree(struct peal_team *team)
{
    if (__builtin_expect(team->reads != PEAL_READS_UNKNOWN, 1))
        return team->reads == PEAL_READS_YES;
    uint32_t all = PEAL_READS_YES;
    struct peal_backoff pause = {0};
    for (uint32_t r = 0; r < team->size; r++) {
        uint32_t one = PEAL_READS_UNKNOWN;
        /* Every peer tries when it opens the team: this wait is short unless the peer has died. */
        do {
            /* Partner: peal_remote_probe. */
            one = atomic_load_explicit(&team->controls[r]->reads, memory_order_acquire);
        } while (one == PEAL_READS_UNKNOWN && peal_backoff_step(team, &pause) == PEAL_OK);
        peal_backoff_reset(team, &pause);
        all = one == PEAL_READS_YES ? all : PEAL_READS_NO;
    }
    team->reads = all;
    return all == PEAL_READS_YES;
}

/* ---- where it is ---- */

void peal_remote_publish(const struct peal_team *team, uint32_t context, uint32_t param,
                         const void *at)
{
    /* Relaxed: the launch's first notify releases it. Partner: home_of. */
    atomic_store_explicit(&peal_team_own(team)->homes[context][param], (uint64_t)(uintptr_t)at,
                          memory_order_relaxed);
}

/* The address of an operand in its owner's memory. */
static uint64_t home_of(const struct peal_base *base, const struct peal_place *place, uint32_t row)
{
    /* Relaxed: the wait before the step has acquired it. Partner: peal_remote_publish. */
    uint64_t home = atomic_load_explicit(base->home, memory_order_relaxed);
    return home + base->from + (place->row + row) * base->stride + place->offset +
           row * place->pitch;
}

/* ---- steps ---- */

static const struct peal_base *remote_base(const struct peal_frame *frame,
                                           const struct peal_place *place)
{
    if (place->base >= PEAL_BASE_SLOT)
        return NULL;
    const struct peal_base *base = &frame->bases[place->base];
    return base->home ? base : NULL;
}

static bool fetch(struct peal_frame *frame, const struct peal_base *base, char *own, uint64_t other,
                  uint64_t bytes)
{
    int error = read_memory(frame->team, base->owner, own, other, bytes);
    if (error == 0)
        return true;
    frame->unread.rank = base->owner;
    frame->unread.error = error;
    return false;
}

static bool copy_row(struct peal_frame *frame, const struct peal_place *places, uint32_t row,
                     uint64_t bytes)
{
    bool writes = remote_base(frame, &places[0]) != NULL;
    const struct peal_place *there = &places[!writes], *here = &places[writes];
    const struct peal_base *base = remote_base(frame, there);
    uint64_t other = home_of(base, there, row);
    char *own = peal_place_address(frame, here, row);
    assert(!writes || frame->team->threads); /* mark_remote has refused it */
    if (!frame->team->threads)
        return fetch(frame, base, own, other, bytes);
    char *at = (char *)(uintptr_t)other;
    if (writes)
        frame->team->compute->copy(at, own, bytes);
    else
        frame->team->compute->copy(own, at, bytes);
    return true;
}

static bool overlap(const char *a, const char *b, uint64_t bytes)
{
    return a < b + bytes && b < a + bytes;
}

/* Elements [first, ...) of an operand. False: it is a peer's, and is not filled in. */
static bool find_own(const struct peal_frame *frame, const struct peal_place *place, uint32_t row,
                     uint64_t first, struct peal_operand *out)
{
    *out = (struct peal_operand){.dtype = (enum peal_dtype)place->dtype};
    if (remote_base(frame, place))
        return false;
    peal_place_operand(frame, place, row, out);
    if (out->at)
        out->at = (char *)out->at + first * peal_dtype_size(out->dtype);
    return true;
}

/* Memory for one source: the destination, unless it overlaps a source or has another type. */
static char *spare_of(const struct peal_frame *frame, const struct peal_step *step,
                      const struct peal_operand *dst, uint64_t bytes)
{
    for (uint32_t i = 0; i < step->mem.nsrc; i++) {
        const struct peal_operand *source = &frame->operands[i];
        if (source->dtype != dst->dtype || (source->at && overlap(source->at, dst->at, bytes)))
            return NULL;
    }
    return dst->at;
}

/* Finds elements [first, first + count) of all operands; peers' are read into the destination and
 * `bounce`. */
static bool gather(struct peal_frame *frame, const struct peal_step *step, uint32_t row,
                   uint64_t first, uint64_t count, struct peal_operand *dst)
{
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint32_t remote = 0;
    find_own(frame, &places[0], row, first, dst);
    for (uint32_t i = 0; i < step->mem.nsrc; i++)
        remote += !find_own(frame, &places[1 + i], row, first, &frame->operands[i]);
    char *spare = spare_of(frame, step, dst, count * peal_dtype_size(dst->dtype));
    char *bounce = frame->bounce;
    for (uint32_t i = 0; i < step->mem.nsrc; i++) {
        const struct peal_base *base = remote_base(frame, &places[1 + i]);
        struct peal_operand *operand = &frame->operands[i];
        uint64_t element = peal_dtype_size(operand->dtype);
        if (!base)
            continue;
        uint64_t from = home_of(base, &places[1 + i], row) + first * element;
        if (frame->team->threads) {
            operand->at = (void *)(uintptr_t)from;
            continue;
        }
        operand->at = spare ? spare : bounce;
        bounce += spare ? 0 : peal_remote_block(remote);
        spare = NULL;
        if (!fetch(frame, base, operand->at, from, count * element))
            return false;
    }
    return true;
}

/* Number of elements of a block, for operands of any type. */
static uint64_t block_of(const struct peal_frame *frame, const struct peal_step *step)
{
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint64_t remote = 0, element = 1;
    for (uint32_t i = 0; i <= step->mem.nsrc; i++) {
        uint64_t bytes = peal_dtype_size((enum peal_dtype)places[i].dtype);
        element = bytes > element ? bytes : element;
        remote += remote_base(frame, &places[i]) != NULL;
    }
    return peal_remote_block(remote) / element;
}

/* Copies elements [first, first + count) of the result, at `own`, to the further destinations. */
static void repeat(struct peal_frame *frame, const struct peal_step *step, uint32_t row,
                   uint64_t first, uint64_t count, char *own)
{
    const struct peal_place *places = &frame->image->places[step->mem.first + 1 + step->mem.nsrc];
    uint64_t element = peal_dtype_size((enum peal_dtype)step->dtype);
    for (uint32_t d = 0; d < step->mem.more_dsts; d++) {
        const struct peal_base *base = remote_base(frame, &places[d]);
        assert(!base || frame->team->threads); /* mark_remote has refused it */
        char *to = base ? (char *)(uintptr_t)home_of(base, &places[d], row)
                        : peal_place_address(frame, &places[d], row);
        frame->team->compute->copy(to + first * element, own, count * element);
    }
}

static bool combine_row(struct peal_frame *frame, const struct peal_step *step, uint32_t row,
                        uint64_t count)
{
    const struct peal_compute *compute = frame->team->compute;
    uint64_t block = block_of(frame, step);
    /* Not with further destinations: the result is read again to be copied there. */
    bool stream = frame->stream && (step->flags & PEAL_STEP_STREAM) && step->mem.more_dsts == 0;
    for (uint64_t first = 0; first < count; first += block) {
        uint64_t n = count - first < block ? count - first : block;
        struct peal_operand dst;
        if (!gather(frame, step, row, first, n, &dst))
            return false;
        bool streams = stream;
        for (uint32_t i = 0; i < step->mem.nsrc; i++)
            streams = streams && frame->operands[i].at != dst.at;
        if (peal_fn_is_user(step->fn))
            peal_formula_combine(compute, peal_plan_formula(frame->image->plan, step->fn), &dst,
                                 frame->operands, step->mem.nsrc, n);
        else
            (streams ? compute->combine_stream : compute->combine)(
                (enum peal_fn)step->fn, &dst, frame->operands, step->mem.nsrc, n, step->mem.extra);
        repeat(frame, step, row, first, n, dst.at);
    }
    return true;
}

bool peal_remote_work(struct peal_frame *frame, const struct peal_step *step)
{
    const struct peal_place *places = &frame->image->places[step->mem.first];
    uint64_t count = step->mem.count;
    if (step->flags & PEAL_STEP_CLIP)
        count = peal_step_clip(frame, step, places, step->mem.nsrc + 1u + step->mem.more_dsts);
    if (count == 0)
        return true;
    uint64_t bytes = count * peal_dtype_size((enum peal_dtype)places[0].dtype);
    for (uint32_t row = 0; row < step->mem.rows; row++) {
        bool done = step->kind == PEAL_STEP_COPY ? copy_row(frame, places, row, bytes)
                                                 : combine_row(frame, step, row, count);
        if (!done)
            return false;
    }
    return true;
}
