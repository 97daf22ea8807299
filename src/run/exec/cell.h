/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: what notifies, waits, peeks and atomics do, wherever the cell is. */
#ifndef PEAL_RUN_CELL_H
#define PEAL_RUN_CELL_H

#include "run/exec/exec.h"
#include "run/span/span.h"
#include "run/wait/backoff.h"

/* The order is a constant at each store: for an order that is not constant the compiler emits a
 * seq_cst exchange, which would hold up everything after it until the cache line has arrived.
 * Partner of all: the acquire load of a wait on the cell's owner. */
static inline void peal_cell_store(struct peal_cell *cell, uint64_t value, bool seq_cst)
{
    if (__builtin_expect(seq_cst, 0))
        atomic_store_explicit(&cell->value, value, memory_order_seq_cst);
    else
        atomic_store_explicit(&cell->value, value, memory_order_release);
}

/* What a one-writer cell holds when its count is `value`. */
static inline uint64_t peal_cell_word(const struct peal_frame *frame, int64_t value)
{
    uint64_t word = frame->launch << 32 | (uint64_t)value;
    return frame->image->count_shift ? word | (frame->signature & 0xffff) : word;
}

/* Changes a cell of a rank on this host. */
static inline void peal_cell_notify(const struct peal_frame *frame, const struct peal_step *step,
                                    const int64_t *regs, struct peal_cell *cell)
{
    int64_t value = step->sync.value;
    bool seq_cst = frame->image->seq_cst;
    if (step->flags & PEAL_STEP_HAS_REG)
        value += regs[step->sync.reg];
    if (peal_step_near_kind(step->kind) == PEAL_STEP_NOTIFY) {
        peal_cell_store(cell, peal_cell_word(frame, value), seq_cst);
    } else if (step->flags & PEAL_STEP_SET) {
        peal_cell_store(cell, (uint64_t)value, seq_cst);
    } else {
        /* seq_cst as well as release: on the machines that matter it costs the same. */
        atomic_fetch_add_explicit(&cell->value, (uint64_t)value, memory_order_seq_cst);
    }
}

static inline bool peal_cell_compare(bool equal, int64_t actual, int64_t wanted)
{
    return equal ? actual == wanted : actual >= wanted;
}

static inline enum peal_step_end peal_cell_test_one_writer(const struct peal_frame *frame,
                                                           const struct peal_step *step,
                                                           uint64_t word)
{
    uint64_t launch = frame->launch - step->sync.back;
    uint32_t shift = frame->image->count_shift;
    uint64_t wanted = launch << 32 | (uint64_t)step->sync.value;
    if (__builtin_expect(step->flags & PEAL_STEP_EQUAL, 0)) {
        /* Nothing is written yet in that launch: that is 0, too. */
        bool zero = step->sync.value == 0 && (int64_t)(word - wanted) < 0;
        if (word >> shift != wanted >> shift && !zero)
            return PEAL_STEP_BLOCKS;
    } else if ((int64_t)(word - wanted) < 0) {
        return PEAL_STEP_BLOCKS;
    }
    /* A word of this launch must have this call's signature; words of older launches were compared
     * in those. A launch number that no rank can have reached means that the word is not a cell: a
     * peer that makes another call has data of its kernel here. */
    enum { FAR = 1 << 24 };
    int32_t ahead = (int32_t)((uint32_t)(word >> 32) - (uint32_t)frame->launch);
    bool other =
        shift && (ahead == 0 ? (word & 0xffff) != (frame->signature & 0xffff) : ahead > FAR);
    return __builtin_expect(other, 0) ? PEAL_STEP_DIFFERS : PEAL_STEP_DONE;
}

/* Does the condition of a wait hold? `cell` belongs to this rank, or is a peer's and raw. */
static inline enum peal_step_end peal_cell_test(const struct peal_frame *frame,
                                                const struct peal_step *step, const int64_t *regs,
                                                struct peal_cell *cell)
{
    /* Acquire; partner: notify on the writer's rank. Plans that need it get seq_cst: constants, as
     * in peal_cell_store. */
    uint64_t word = __builtin_expect(frame->image->seq_cst, 0)
                        ? atomic_load_explicit(&cell->value, memory_order_seq_cst)
                        : atomic_load_explicit(&cell->value, memory_order_acquire);
    if (peal_step_near_kind(step->kind) == PEAL_STEP_WAIT) {
        if (step->sync.back >= frame->launch)
            return PEAL_STEP_DONE; /* it waits for a launch before the first */
        return peal_cell_test_one_writer(frame, step, word);
    }
    int64_t actual = (int64_t)word;
    int64_t wanted = step->sync.value;
    if (peal_step_near_kind(step->kind) == PEAL_STEP_WAIT_SHARED)
        actual -= frame->family->shared[step->sync.shared];
    if (step->flags & PEAL_STEP_HAS_REG)
        wanted += regs[step->sync.reg];
    return peal_cell_compare(step->flags & PEAL_STEP_EQUAL, actual, wanted) ? PEAL_STEP_DONE
                                                                            : PEAL_STEP_BLOCKS;
}

/* Does an atomic. PEAL_STEP_BLOCKS: it is a take, and the cell does not hold the expected value. */
static inline enum peal_step_end peal_cell_atomic(const struct peal_step *step, int64_t *regs,
                                                  struct peal_cell *cell)
{
    enum peal_step_kind kind = peal_step_near_kind(step->kind);
    /* All seq_cst, as the plan was explored. Partners: each other, notifies and waits of the
     * cell. */
    if (kind == PEAL_STEP_FETCH_ADD) {
        regs[step->sync.reg] = (int64_t)atomic_fetch_add_explicit(
            &cell->value, (uint64_t)step->sync.value, memory_order_seq_cst);
        return PEAL_STEP_DONE;
    }
    uint64_t expected = (uint64_t)peal_swap_expected(step->sync.value), found = expected;
    atomic_compare_exchange_strong_explicit(&cell->value, &found,
                                            (uint64_t)peal_swap_desired(step->sync.value),
                                            memory_order_seq_cst, memory_order_seq_cst);
    if (kind == PEAL_STEP_TAKE)
        return found == expected ? PEAL_STEP_DONE : PEAL_STEP_BLOCKS;
    regs[step->sync.reg] = (int64_t)found;
    return PEAL_STEP_DONE;
}

/* After a change of a rank's cell: wakes that rank, or all if ranks may wait for cells of
 * others. */
static inline void peal_cell_wake(const struct peal_frame *frame, uint32_t rank)
{
    if (__builtin_expect(!frame->image->takes, 1)) {
        peal_wake_if_sleeping(frame->team, rank);
        return;
    }
    for (uint32_t r = 0; r < frame->team->size; r++) {
        bool is_here = !frame->team->span || !frame->team->span->far[r];
        if (r != frame->team->rank && is_here)
            peal_wake_if_sleeping(frame->team, r);
    }
}

static inline void peal_cell_peek(const struct peal_frame *frame, const struct peal_step *step,
                                  int64_t *regs, struct peal_cell *cell)
{
    /* Relaxed by meaning; seq_cst because plans with peek are explored that way. */
    uint64_t word = atomic_load_explicit(&cell->value, memory_order_seq_cst);
    const struct peal_op *op = &peal_plan_ops(frame->image->plan)[step->op];
    const struct peal_signal *signal = &peal_plan_signals(frame->image->plan)[peal_op_signal(op)];
    int64_t value = (int64_t)word;
    if (signal->kind == PEAL_SIGNAL_SHARED)
        value -= frame->family->shared[step->sync.shared];
    else if (signal->kind == PEAL_SIGNAL_ONE_WRITER)
        value = word >> 32 == (uint32_t)frame->launch
                    ? (int64_t)((uint32_t)word >> frame->image->count_shift)
                    : 0;
    regs[step->sync.reg] = value;
}

#endif
