/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by exploration and directed search: one state that moves forward and back, which blocks of
 * accesses conflict, and which steps commute with everything that is still to come. */
#ifndef PEAL_VERIFY_SPACE_H
#define PEAL_VERIFY_SPACE_H

#include "verify/program/program.h"
#include "verify/order/race.h"

struct space {
    const struct program *p;
    uint32_t *at;        /* [thread] */
    int64_t *value;      /* [cell] */
    int64_t *reg;        /* all registers of all threads */
    uint32_t *first_reg; /* [thread + 1] */
    uint32_t unfinished;

    /* The accesses between two steps form a block; empty blocks have no number. */
    uint32_t *block_of; /* [first_step + thread + step]: number + 1 */
    uint32_t *block_thread, *block_step;
    uint32_t nblocks;
    uint64_t *conflicts;     /* bit matrix [block][block] */
    uint32_t *last_conflict; /* [block * threads + thread]: last conflicting step + 1 */
    /* [block * threads + thread] fewest steps that thread had taken when the block was left, over
     * all schedules since the last forget */
    uint32_t *lowest;
    bool replays; /* a schedule that was seen already: orders are not noted */

    uint32_t *slot;            /* [cell]: number of a cell that may fall, or PEAL_NONE */
    uint32_t *last_use;        /* [slot * threads + thread]: last step on it + 1 */
    uint32_t *last_other;      /* the same, without plain adds */
    PEAL_VEC(uint32_t) stored; /* cells whose value depends on the order of steps */
};

/* What is needed to undo a step. */
struct undo {
    uint32_t thread;
    int64_t value, reg; /* of the step's cell and register */
};

/* PEAL_NO_MEMORY also if there are too many blocks. Release the space in every case. */
enum peal_status peal_space_init(struct space *s, const struct program *p);
void peal_space_release(struct space *s);
void peal_space_reset(struct space *s);
/* Forgets the orders in which blocks were seen. */
void peal_space_forget(struct space *s);

bool peal_space_enabled(const struct space *s, uint32_t thread);
struct undo peal_space_take(struct space *s, uint32_t thread);
void peal_space_untake(struct space *s, struct undo undo);
/* A thread whose block conflicts with that of `thread`, or PEAL_NONE. */
uint32_t peal_space_race(const struct space *s, uint32_t thread);
/* May `thread`, which is enabled, be moved alone without losing a fault? */
bool peal_space_alone(const struct space *s, uint32_t thread);
/* Two conflicting accesses of the blocks at which the threads stand. .a is PEAL_NONE if there are
 * none, in contradiction to peal_space_race. */
struct race peal_space_collision(const struct space *s, uint32_t t, uint32_t u);

/* Two blocks that conflict and were seen in both orders. */
struct block_pair {
    uint32_t a, b;
};
/* Lists them all. False: out of memory, or more than `max_pairs`. */
bool peal_space_turned(const struct space *s, uint32_t max_pairs, struct block_pair *out,
                       uint32_t *count);

static inline bool peal_space_conflict(const struct space *s, uint32_t a, uint32_t b)
{
    uint64_t bit = (uint64_t)a * s->nblocks + b;
    return s->conflicts[bit / 64] >> (bit % 64) & 1;
}

static inline uint32_t peal_space_block(const struct space *s, uint32_t thread, uint32_t step)
{
    return s->block_of[s->p->threads[thread].first_step + thread + step];
}

#endif
