/* SPDX-License-Identifier: Apache-2.0 */
/* Monotone programs: one run decides deadlock, and one lazy run per thread gives must-precede.
 *
 * In a monotone program an enabled step stays enabled until it is taken, so all maximal runs take
 * the same steps: if one run stops short, all do. In the lazy run of thread l, l is held back at
 * step i, and everything that can run without further steps of l does run. An execution in which l
 * has taken at most i steps contains no other steps. So the smallest i whose run takes a step is
 * the step's *clock* for l:
 *
 *   a (of l, after s(a) steps) must-precede b   iff   clock_l(b) > s(a)
 *
 * because no execution reaches b before l took the step that follows a. See
 * docs/verifier-method.md.
 *
 *   order.c        runs and lazy runs               symmetry.h     ranks that do the same
 *   lanes.h        lanes that do the same
 *   race.h         accesses that nothing orders     chain.h        the same by fewer questions
 *   demands.c      closed, barrier, and cells that are handed over: asked together with races
 *   ahead.h        how many launches a proof needs  in_order.c     launches do not overtake on a cell
 *   counted.h      programs whose cells fall, as monotone ones that have the same executions
 *   compose.h      plans that may be launched in any sequence; compose_facts.h: what one plan says
 */
#ifndef PEAL_VERIFY_ORDER_H
#define PEAL_VERIFY_ORDER_H

#include "verify/program/program.h"

/* One execution in progress. */
struct run {
    const struct program *p;
    const struct step *steps; /* the program's, or those that carry order (see order_steps) */
    int64_t *value;           /* [cell] */
    uint32_t *at;             /* [thread] steps taken */
    uint32_t *limit;          /* [thread] steps it may take */
    uint32_t *waiter;         /* [cell] first blocked thread + 1 */
    uint32_t *next_waiter;    /* [thread] + 1 */
    int64_t *least;           /* [cell] what the first of its waiters to go on waits for, if any */
    uint32_t *ready;          /* stack of threads that can go on */
    uint32_t nready;
    uint32_t *clock; /* [step] or NULL: the value of `now` when the step was taken */
    uint32_t now;
    bool counts; /* `now` is incremented by every step */
};

/* false: out of memory. */
bool peal_run_init(struct run *run, const struct program *p);
void peal_run_release(struct run *run);
/* Back to the start; every thread may run to its end. */
void peal_run_reset(struct run *run);
/* Raises a thread's limit. */
void peal_run_allow(struct run *run, uint32_t thread, uint32_t limit);
/* Runs until no thread can continue within its limit. */
void peal_run_go(struct run *run);
bool peal_run_finished(const struct run *run);

/* One question to the lazy run of thread `of`: its clock at `step` (steps taken) of `thread`. */
struct clock_query {
    uint32_t of;
    uint32_t thread;
    uint32_t step;
    uint32_t *answer;
};

/* Answers all queries, and sorts them; `workers` threads share the lazy runs. False: out of
 * memory. */
bool peal_order_clocks(const struct program *p, struct clock_query *queries, uint64_t count,
                       uint32_t workers);

/* The least depth of all channels with which the program does not deadlock. 0: none suffices. */
uint32_t peal_order_least_depth(struct program *p, uint32_t max_depth);

#endif
