/* SPDX-License-Identifier: Apache-2.0 */
/* Private to root_*.c: reading a kernel's text for what it does with another root.
 *
 * Two ranks are compared: rank q where the root is 0, and rank q + r where the root is r (modulo
 * P). A number of the text is described by how its values on the two differ, for every q and r:
 *
 *   SAME        they are equal
 *   RANK        both are ranks, 0 to P - 1, and differ by r modulo P
 *   ROW         g P + i and g P + i', where i and i' are as above
 *   SUM         they differ by r modulo P
 *   DIFFERENCE  they are equal modulo P
 *   UNRELATED   nothing is known
 *
 * A signal's cells and a buffer's elements follow one of two formulas: they stay, or element g P u
 * + i u + o (o < u; cells: u = 1) becomes g P u + i' u + o. Each has one formula in the whole text.
 */
#ifndef PEAL_VERIFY_ROOT_TEXT_H
#define PEAL_VERIFY_ROOT_TEXT_H

#include "lang/lang.h"
#include "plan/plan.h"

enum number_kind {
    NUMBER_UNRELATED,
    NUMBER_SAME,
    NUMBER_RANK,
    NUMBER_ROW,
    NUMBER_SUM,
    NUMBER_DIFFERENCE
};

struct number {
    enum number_kind kind;
    bool known;       /* SAME: it is `value` on all ranks and in all launches */
    int64_t value;    /* ROW: not used */
    int64_t multiple; /* SAME: a multiple of this number; 0: it is 0 */
};

enum formula_kind { FORMULA_UNSET, FORMULA_STAYS, FORMULA_MOVES };

struct formula {
    enum formula_kind kind;
    int64_t unit; /* MOVES: elements in a part */
};

enum { EFFECT_NOTIFY = 1, EFFECT_WAIT = 2, EFFECT_DATA = 4, EFFECT_VAR = 8 };

struct root_text {
    const struct peal_kernel *kernel;
    const struct peal_bind *bind;
    int64_t nranks;
    /* [slot] of lets, loop variables and, joined over the text, variables */
    struct number *numbers;
    struct formula *formulas; /* [slot] of buffers, tiles and signals */
    bool *is_var_seen;        /* [slot] */
    bool changed;             /* a variable or a formula: the text has to be read again */
    uint32_t dead;            /* enclosing blocks that some rank enters and its image does not */
    uint32_t effects;         /* EFFECT_* of the statements so far */
};

static inline struct number peal_root_same(int64_t value)
{
    return (struct number){NUMBER_SAME, true, value, value};
}

/* peal_symmetry_of_text, and the functions behind it. Released in both cases. */
bool peal_root_read(struct root_text *t, const struct peal_kernel *kernel,
                    const struct peal_bind *bind);
void peal_root_release(struct root_text *t);

struct number peal_root_number(struct root_text *t, const struct peal_expr *e);
/* 1 if the expression is left out. */
struct number peal_root_number_or_one(struct root_text *t, const struct peal_expr *e);

/* A cell: its signal, index and rank. */
bool peal_root_cell(struct root_text *t, const struct peal_expr *e);
/* dst = value, element by element; dst NULL: into a new tile of `tile`. */
bool peal_root_data(struct root_text *t, const struct peal_expr *dst,
                    const struct peal_symbol *tile, const struct peal_expr *value);

#endif
