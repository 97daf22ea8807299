/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined calls start with their cells at logical 0, but cells are never reset: what earlier calls
 * of the same launch added to a cell is added to the thresholds (and set values) of later ones.
 *
 *   for i in 0 .. 2 { barrier() }    call 1: wait s >= 1    call 2: wait s >= 1 -> wait s >= 2
 */
#include "plan/assemble/assemble_internal.h"
#include "plan/make/maker.h"

#include <stdlib.h>

struct change {
    uint64_t cell; /* rank << 32 | cell number */
    uint32_t call;
    size_t op;
};

static int by_cell_and_call(const void *x, const void *y)
{
    const struct change *a = x, *b = y;
    if (a->cell != b->cell)
        return a->cell < b->cell ? -1 : 1;
    if (a->call != b->call)
        return a->call < b->call ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op;
}

static uint32_t take_mark(struct peal_op *op)
{
    uint32_t call;
    if (peal_op_is_notify(op))
        call = op->sync.after;
    else
        call = op->sync.reg;
    op->flags &= (uint8_t)~PEAL_OP_SCOPED;
    if (peal_op_is_notify(op))
        op->sync.after = 0;
    else
        op->sync.reg = 0;
    return call;
}

/* One cell's ops, sorted by call: shifts each call's values by what earlier calls added. */
static void move_cell(struct peal_assembler *a, const struct change *at, const struct change *end)
{
    int64_t base = 0;
    while (at < end) {
        const struct change *next = at;
        int64_t added = 0; /* by this call */
        for (; next < end && next->call == at->call; next++) {
            struct peal_op *op = &a->ops.at[next->op];
            if (peal_op_is_notify(op)) {
                if (op->flags & PEAL_OP_SET)
                    added = op->sync.value;
                else
                    added = added + op->sync.value;
            }
            if (peal_op_is_wait(op) || (op->flags & PEAL_OP_SET))
                op->sync.value += base;
        }
        base += added;
        at = next;
    }
}

void peal_inst_patch_scopes(struct instantiation *t)
{
    struct peal_assembler *a = t->a;
    PEAL_VEC(struct change) changes = {0};
    if (!t->any_call || t->status != PEAL_OK)
        return;
    for (size_t i = 0; i < a->ops.len; i++) {
        struct peal_op *op = &a->ops.at[i];
        if (!peal_op_is_sync(op) || !(op->flags & PEAL_OP_SCOPED))
            continue;
        struct change change = {((uint64_t)op->sync.rank << 32) | op->sync.cell, take_mark(op), i};
        if (!peal_vec_push(&changes, change)) {
            peal_inst_no_memory(t);
            break;
        }
    }
    if (t->status == PEAL_OK && changes.len) {
        qsort(changes.at, changes.len, sizeof *changes.at, by_cell_and_call);
        for (size_t i = 0, next; i < changes.len; i = next) {
            for (next = i; next < changes.len && changes.at[next].cell == changes.at[i].cell;
                 next++) {
            }
            move_cell(a, changes.at + i, changes.at + next);
        }
    }
    peal_vec_release(&changes);
}
