/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a schedule and records every sync op with its cell's value and every access to the bytes
 * that matter. Shared by
 *
 *   story.c           races, cells with two writers, single ops, schedules
 *   story_deadlock.c  which threads are blocked, and on which others
 *   story_text.c      one op as a line
 */
#ifndef PEAL_VERIFY_FOLLOW_H
#define PEAL_VERIFY_FOLLOW_H

#include "verify/story/story.h"

/* What a change of a cell has replaced. */
struct cell_before {
    uint32_t cell, by;
    int64_t value;
};

struct follower {
    const struct program *p;
    struct answer *a;
    PEAL_VEC(struct peal_verify_step) steps;
    uint32_t *at;    /* [thread] steps taken */
    uint32_t *shown; /* [thread] accesses shown: index into mine */
    int64_t *value;  /* [cell] */
    uint32_t *by;    /* [cell] step that changed it last, or PEAL_NONE */
    uint32_t older;  /* the next step reads its cell as it was so many changes ago */
    PEAL_VEC(struct cell_before) history;
    int64_t **regs;  /* [thread] */
    const struct race *race;
    uint32_t race_step[2]; /* where its accesses are shown, or PEAL_NONE */
    /* steps: a write of a cell with changing writers, then one of an earlier launch */
    uint32_t fell[2];
    const bool *core; /* [thread] blocked threads whose step is shown; NULL = all */
    bool only_core;   /* the others need not be blocked: their waits are not shown either */
};

/* False: out of memory; the answer says so. */
bool peal_follower_begin(struct follower *t, const struct program *p, struct answer *a);
/* Moves the steps to the answer. */
void peal_follower_end(struct follower *t);
/* Adds a step for an op of a thread; returns its number. */
uint32_t peal_follower_add_op(struct follower *t, uint32_t thread, uint32_t op);
const char *peal_follower_cell_name(struct follower *t, uint32_t cell);
/* Shows accesses of the thread to the contested bytes that come before its next step. Those that
 * race are shown last, unless the thread goes on from there (`leaving`). */
void peal_follower_show_accesses(struct follower *t, uint32_t thread, bool leaving);
/* Takes the thread's next step. */
void peal_follower_take_step(struct follower *t, uint32_t thread);
/* Runs all threads to `need`: threads in turn, each as far as it can, but not beyond the first
 * write that comes too late (`fell`). False: a thread cannot get there. */
bool peal_follower_run_to(struct follower *t, const uint32_t *need);
/* Adds the blocked waits, and marks the cycle among them. */
void peal_follower_show_blocked(struct follower *t);

#endif
