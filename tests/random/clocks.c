/* SPDX-License-Identifier: Apache-2.0 */
/* See clocks.h. */
#include "random/clocks.h"

#include <string.h>

bool random_ops_conflict(const struct random_op *a, const struct random_op *b)
{
    if (!random_op_is_access(a) || !random_op_is_access(b) || a->rank != b->rank || a->at != b->at)
        return false;
    return !(a->kind == b->kind && a->kind != RANDOM_WRITE);
}

bool clocks_block(const struct clocks *s, const struct random_op *op)
{
    int value = s->cell[op->rank * CELLS + op->at];
    return (op->kind == RANDOM_WAIT && value < op->value) ||
           (op->kind == RANDOM_WAIT_EQUAL && value != op->value);
}

bool clocks_go(const struct random_program *p, struct clocks *s, uint32_t t)
{
    const struct random_op *op = &p->ops[t][s->at[t]];
    if (s->at[t] >= p->nops[t] || clocks_block(s, op))
        return false;
    uint32_t cell = op->rank * CELLS + op->at;
    bool waits = op->kind == RANDOM_WAIT || op->kind == RANDOM_WAIT_EQUAL;
    bool notifies = op->kind == RANDOM_ADD || op->kind == RANDOM_SET;
    s->know[t][t] = ++s->at[t];
    if (op->kind == RANDOM_ADD)
        s->cell[cell] = (int8_t)(s->cell[cell] + op->value);
    if (op->kind == RANDOM_SET) {
        s->cell[cell] = (int8_t)op->value;
        memset(s->carried[cell], 0, sizeof s->carried[cell]);
    }
    uint32_t ordered = op->relaxed ? 0 : THREADS;
    for (uint32_t u = 0; u < ordered; u++) {
        if (waits && s->carried[cell][u] > s->know[t][u])
            s->know[t][u] = s->carried[cell][u];
        if (notifies && s->know[t][u] > s->carried[cell][u])
            s->carried[cell][u] = s->know[t][u];
    }
    return true;
}
