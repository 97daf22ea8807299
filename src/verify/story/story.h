/* SPDX-License-Identifier: Apache-2.0 */
/* The counterexample: which steps lead to the fault, and nothing else.
 *
 * For monotone programs the steps that must come before a point are its causal past. If every cell
 * has one writer that past is unique, so the union of the two pasts is the shortest counterexample.
 * Otherwise a wait may have been satisfied in several ways: the counterexample is reduced until no
 * step can be left out.
 *
 *   story.c           schedules as steps: races, wrong results
 *   story_deadlock.c  waits that never pass, and the cycle
 *   follow.h          follows one schedule and records what matters
 *   causal_past.c     how far every thread must have gone
 *   story_text.c      a step's data, and its one line of text
 */
#ifndef PEAL_VERIFY_STORY_H
#define PEAL_VERIFY_STORY_H

#include "verify/order/race.h"

/* The answer under construction. v comes first, so that its owner can be found from it. */
struct answer {
    struct peal_verification v;
    struct peal_arena arena;
    struct race collision; /* exploration: the race that was found */
    uint32_t thread, op;   /* a fault of one op: which */
    uint32_t cell;         /* a cell with two writers: which */
    bool failed;           /* out of memory: texts may be missing */
};

/* A schedule: which thread takes each step. */
struct schedule {
    uint32_t *thread;
    uint64_t count;
    const uint32_t *older; /* NULL: 0. The read finds its cell as it was this many changes ago */
};

static inline void peal_answer_refute(struct answer *a, enum peal_fault fault)
{
    a->v.verdict = PEAL_REFUTED;
    a->v.fault = fault;
}

/* `why` must live as long as the answer. */
static inline void peal_answer_give_up(struct answer *a, const char *why)
{
    a->v.verdict = PEAL_UNDECIDED;
    a->v.why = why;
}

/* A copy that lives as long as the answer; never NULL. */
const char *peal_answer_text(struct answer *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets promises, required and unconstrained. */
void peal_answer_promised(const struct peal_plan *plan, struct answer *a);

/* The steps that every thread has to take so that each thread t with goal[t] != PEAL_NONE can reach
 * goal[t]. False: out of memory. *shortest: the past is unique. */
bool peal_story_past(const struct program *p, const uint32_t *goal, uint32_t *need, bool *shortest);

/* Describes a race. The pair with the shortest schedule is chosen. */
void peal_story_race(const struct program *p, const struct race_report *report, struct answer *a);
/* Can the race that would be shown happen with the actual values of cells? Clocks assume that a
 * cell holds the largest value written to it, which is not so if its writers come in the wrong
 * order. */
bool peal_story_race_is_real(const struct program *p, const struct race_report *report);
/* Describes a deadlock of a monotone program: `stuck` is the run that stopped. */
void peal_story_stuck(const struct program *p, const struct run *stuck, struct answer *a);
/* Describes what a schedule leads to, in a program that need not be monotone: a race or a deadlock,
 * as the answer's fault says (core: the threads whose waits are shown), or something else that is
 * shown elsewhere. The caller sets the kind of counterexample. */
void peal_story_schedule(const struct program *p, const struct schedule *s, const struct race *race,
                         const bool *core, struct answer *a);
/* Two steps of one thread each that nothing orders. */
void peal_story_cell(const struct program *p, const struct race_report *report, struct answer *a);
/* One op, no schedule needed: bounds, slots, uninitialised memory. */
void peal_story_op(const struct program *p, uint32_t thread, uint32_t launch, uint32_t op,
                   struct answer *a);
/* Two ops that conflict, in whatever order. */
void peal_story_two_ops(const struct program *p, const struct early_fault *e, struct answer *a);
/* Two steps that must not both exist: the thread of each, and the number of its step. */
void peal_story_two(const struct program *p, uint32_t one, uint32_t one_step, uint32_t two,
                    uint32_t two_step, struct answer *a);
/* An op that its thread reaches after this many steps in every schedule. Shows what leads there
 * (for programs that are not monotone, only the op), then the op. */
void peal_story_reach(const struct program *p, uint32_t thread, uint32_t steps, uint32_t op,
                      struct answer *a);
/* Fills accesses_at[i] for a step. */
void peal_story_access(const struct program *p, uint32_t i, uint32_t step, uint32_t location,
                       bool writes, struct range bytes, struct answer *a);

/* story_text.c. Fills in the step's data from its op; rank and launch are set already. */
void peal_story_fill(const struct program *p, const struct peal_op *op, struct answer *a,
                     struct peal_verify_step *step);
/* The step, as the rank's text would say it. */
void peal_step_text(const struct peal_verify_step *s, struct peal_text *out);

struct peal_verify_place peal_story_place(const struct program *p, uint32_t launch,
                                          const struct peal_op *op, struct answer *a);

#endif
