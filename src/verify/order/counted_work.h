/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by counted.c and counted_repeat.c: the execution that was followed, and what it says. */
#ifndef PEAL_VERIFY_COUNTED_WORK_H
#define PEAL_VERIFY_COUNTED_WORK_H

#include "verify/order/counted.h"

/* A change of a counted cell, in the order of the execution; `count`: of the cell afterwards. */
struct cell_change {
    uint32_t cell, thread, step;
    bool begins; /* a stretch */
    int64_t count;
};

/* From count `first` on the cell holds `value`, and one more with each count. */
struct count_stretch {
    uint32_t cell;
    uint32_t change; /* that begins it, counted within its cell; PEAL_NONE: the first stretch */
    int64_t first, value;
    bool is_unknown; /* nothing has set the cell yet */
};

/* A wait for a value of a counted cell, or a read of it. */
struct counted_use {
    uint32_t cell, thread, step;
    uint32_t stretch; /* counted within the cell */
    bool reads;       /* false: waits */
    bool takes;       /* waits and changes the cell in one step */
    bool at_least;    /* is content with more than `want` */
    bool or_less;     /* is content with less than `want`: a launch's logical zero */
    int64_t want;     /* including what the thread has taken since the stretch began */
    int64_t count;    /* that it found */
};

/* The step (thread, step) must be taken before `later` has taken `steps` steps; `in_time`: it need not
 * be known to `later`. */
struct precedes {
    uint32_t thread, step, later, steps;
    bool in_time;
    uint32_t clock; /* the answer */
};

/* While `thread` stands before `step`, its cell must not reach the count `below`. */
struct ceiling {
    uint32_t thread, step, cell;
    int64_t below, found;
};

struct counted_cell {
    bool is_counted;
    bool is_taken_from; /* by `reader`, its only one */
    bool is_read;       /* not only waited for */
    bool is_looked_at;  /* by a step that does not change it */
    bool is_set;
    uint32_t reader, taker, user;
    uint32_t stretches;
    int64_t count, taken; /* taken: since the last stretch began */
};

struct counted_work {
    const struct program *p; /* the original */
    struct counted_cell *cells;
    int64_t *resolved; /* [step] its amount, with what its register adds */
    PEAL_VEC(struct cell_change) changes;
    PEAL_VEC(struct count_stretch) stretches;
    PEAL_VEC(struct counted_use) uses;
    uint32_t *first_change, *first_stretch; /* [cell + 1], once both lists are sorted by cell */
    PEAL_VEC(struct precedes) orders;
    PEAL_VEC(struct ceiling) ceilings;
    bool failed; /* out of memory, or something that cannot be counted */
};

static inline const struct count_stretch *counted_stretch(const struct counted_work *w,
                                                          uint32_t cell, uint32_t number)
{
    return &w->stretches.at[w->first_stretch[cell] + number];
}

/* counted_repeat.c. If every launch is like the one a period before it, counts and values moved on: the
 * number of launches that show all conditions, and in counted->lead how many come before those that are
 * alike. More than the program has: so many would show whether they are. Otherwise 0. */
uint32_t peal_counted_repeats(const struct counted_work *w, struct program *counted);

#endif
