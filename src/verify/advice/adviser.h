/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder. advice.c chooses what to try; advice_order.c,
 * advice_race.c, advice_slot.c and advice_deadlock.c make the changes. */
#ifndef PEAL_VERIFY_ADVISER_H
#define PEAL_VERIFY_ADVISER_H

#include "verify/advice/edit.h"
#include "verify/story/story.h"

enum { MAX_ADVICE = 64, MAX_LINES = 64 };

struct adviser {
    struct program *p;
    uint32_t
        needs; /* the fewest launches in which a change would hold that does not hold in p; 0: none */
    const struct peal_verify_options *options;
    struct answer *a;
    struct peal_verify_advice list[MAX_ADVICE];
    uint32_t count;
};

/* Keeps a suggestion. `at` and `second` are source positions, or PEAL_NONE. */
void peal_advise(struct adviser *v, bool fixes, const char *text, uint32_t at, uint32_t second);
/* Keeps a piece that could be left out. */
void peal_advise_cut(struct adviser *v, const char *text, const struct peal_verify_cut *cut);
struct peal_verify_place peal_adviser_place(struct adviser *v, uint32_t pos);
/* Lists the source positions of all ops of a kind, at most MAX_LINES. */
uint32_t peal_adviser_lines(const struct program *p, enum peal_op_kind kind, uint32_t *out);
/* "line 7", or "line 124 of sync.peal" if the line is of a kernel from another file. */
const char *peal_adviser_line(struct adviser *v, uint32_t pos);
/* Is the edited program proved, with every reuse that this many launches can show? */
bool peal_adviser_fixes(struct adviser *v, struct edit *e);
/* A barrier of all ranks before every execution of a line, or (PEAL_NONE) at the end of the
 * launch. */
bool peal_adviser_try_barrier(struct adviser *v, uint32_t pos);

/* "ready@1", "((rank + 1) % nranks)" */
const char *peal_adviser_cell(struct adviser *v, uint32_t cell);
const char *peal_adviser_neighbour(struct adviser *v, uint32_t distance);

/* The default order or scope at lines that have another; a release fence. */
void peal_advice_order(struct adviser *v);
void peal_advice_race(struct adviser *v);
/* For launches of different roots or counts: only changes that do not depend on the ranks'
 * roles. */
void peal_advice_sequence(struct adviser *v);
/* A second slot for the buffer that races at `pos`. */
void peal_advice_slot(struct adviser *v, uint32_t memory, uint32_t pos);
void peal_advice_deadlock(struct adviser *v);
void peal_advice_redundant(struct adviser *v);

#endif
