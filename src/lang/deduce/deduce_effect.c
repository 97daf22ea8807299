/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel does to its parameters and signals, according to the table of operations.
 *
 * A call does to an argument what the callee's body does to the parameter, so directions are the
 * same before and after inlining.
 */
#include "lang/deduce/deducer.h"

#include <stdlib.h>

static void touch(struct peal_deducer *d, const struct peal_expr *place, unsigned bits)
{
    struct peal_symbol *symbol = peal_place_symbol(place);
    if (!symbol || symbol->kind != PEAL_SYMBOL_BUFFER || symbol->place != PEAL_PLACE_PARAM)
        return;
    bool first_write = (bits & PEAL_EFFECT_WRITE) && !(symbol->effects & PEAL_EFFECT_WRITE);
    symbol->effects |= bits;
    if (first_write && symbol->dir_written && symbol->dir == 1) {
        peal_deducer_error(d, place->pos, "'%s' is an in parameter and cannot be written",
                           symbol->name);
        peal_deducer_note(d, symbol->pos, "it is declared here");
    }
}

/* Everything that the value of an expression depends on is read. */
static void touch_sources(struct peal_deducer *d, const struct peal_expr *expr, unsigned bits)
{
    if (!expr || !peal_type_is_data(&expr->type))
        return;
    if (peal_place_symbol(expr)) {
        touch(d, expr, bits);
    } else if (expr->kind == PEAL_EXPR_CALL) {
        for (const struct peal_expr *arg = expr->a; arg; arg = arg->next)
            touch_sources(d, arg, bits);
    } else if (expr->kind != PEAL_EXPR_RECV) {
        touch_sources(d, expr->a, bits);
        touch_sources(d, expr->b, bits);
    }
}

/* The operation that implements an assignment. */
static enum peal_op_kind operation_of(const struct peal_expr *value)
{
    if (value->kind == PEAL_EXPR_RECV)
        return value->in_slot ? PEAL_OP_RECV_SLOT : PEAL_OP_RECV;
    return peal_place_symbol(value) ? PEAL_OP_COPY : PEAL_OP_COMPUTE;
}

static void note_cell(struct peal_deducer *d, const struct peal_expr *cell, unsigned effect)
{
    const struct peal_symbol *symbol = peal_place_symbol(cell);
    if (!symbol || symbol->kind != PEAL_SYMBOL_SIGNAL)
        return;
    struct peal_fact *fact = peal_deducer_fact(d, symbol);
    if ((effect & PEAL_EFFECT_WRITE) && !fact->notified) {
        fact->notified = true;
        fact->notify_pos = cell->pos;
    }
    if ((effect & PEAL_EFFECT_READ) && !fact->waited) {
        fact->waited = true;
        fact->wait_pos = cell->pos;
    }
}

/* The cell of a peek or an atomic. */
static void note_fetch(struct peal_deducer *d, const struct peal_expr *expr)
{
    if (!peal_expr_fetches(expr))
        return;
    enum peal_op_kind kind = expr->kind == PEAL_EXPR_PEEK ? PEAL_OP_PEEK : PEAL_OP_FETCH_ADD;
    note_cell(d, expr->a, peal_op_facts(kind)->cell);
}

static void call_effects(struct peal_deducer *d, const struct peal_stmt *stmt)
{
    if (!stmt->callee || !stmt->callee->deduced)
        return;
    struct peal_call_expr call = peal_call_bind(stmt);
    for (int i = 0; i < call.callee->nparams; i++) {
        if (call.args[i] && call.callee->params[i]->kind == PEAL_SYMBOL_BUFFER)
            touch(d, call.args[i], call.callee->params[i]->effects);
    }
    if (call.signal) {
        note_cell(d, call.signal, PEAL_EFFECT_WRITE);
        note_cell(d, call.signal, PEAL_EFFECT_READ);
    }
}

static void visit_period(struct peal_expr *expr, void *context)
{
    int *period = context;
    if (expr->kind != PEAL_EXPR_LAUNCH || !expr->value)
        return;
    int a = *period;
    int b = (int)expr->value;
    while (b) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    *period = *period / a * (int)expr->value;
}

static void stmt_effects(struct peal_deducer *d, struct peal_stmt *stmt)
{
    const struct peal_op_facts *op;
    peal_stmt_walk_exprs(stmt, visit_period, &d->kernel->period);
    switch (stmt->kind) {
    case PEAL_STMT_LET:
        touch_sources(d, stmt->a, peal_op_facts(PEAL_OP_COPY)->src);
        note_fetch(d, stmt->a);
        break;
    case PEAL_STMT_VAR:
        note_fetch(d, stmt->a);
        break;
    case PEAL_STMT_TAKE:
        note_cell(d, stmt->a, peal_op_facts(PEAL_OP_TAKE)->cell);
        break;
    case PEAL_STMT_ASSIGN:
        note_fetch(d, stmt->b);
        op = peal_op_facts(operation_of(stmt->b));
        touch(d, stmt->a, op->dst);
        touch_sources(d, stmt->b, op->src);
        break;
    case PEAL_STMT_ACCUMULATE:
        op = peal_op_facts(PEAL_OP_ACCUMULATE);
        touch(d, stmt->a, op->dst);
        touch_sources(d, stmt->b, op->src);
        break;
    case PEAL_STMT_SEND:
        touch_sources(d, stmt->a, peal_op_facts(PEAL_OP_SEND)->src);
        break;
    case PEAL_STMT_NOTIFY:
        note_cell(d, stmt->a, peal_op_facts(PEAL_OP_NOTIFY)->cell);
        break;
    case PEAL_STMT_WAIT:
        note_cell(d, stmt->a, peal_op_facts(PEAL_OP_WAIT)->cell);
        break;
    case PEAL_STMT_AWAIT:
        if (stmt->b)
            touch(d, stmt->b, peal_op_facts(PEAL_OP_RECV)->dst);
        break;
    case PEAL_STMT_CALL:
        call_effects(d, stmt);
        if (stmt->callee) {
            struct peal_expr mod = {.kind = PEAL_EXPR_LAUNCH, .value = stmt->callee->period};
            if (stmt->callee->period)
                visit_period(&mod, &d->kernel->period);
        }
        break;
    default:
        break;
    }
}

static void block_effects(struct peal_deducer *d, struct peal_stmt *stmt)
{
    for (; stmt; stmt = stmt->next) {
        stmt_effects(d, stmt);
        block_effects(d, stmt->body);
        block_effects(d, stmt->other);
    }
}

static void check_signals(struct peal_deducer *d)
{
    for (const struct peal_symbol *s = d->kernel->symbols; s; s = s->next) {
        if (s->kind != PEAL_SYMBOL_SIGNAL)
            continue;
        const struct peal_fact *fact = peal_deducer_fact(d, s);
        if (fact->waited && !fact->notified) {
            peal_deducer_error(d, fact->wait_pos, "signal '%s' is never notified", s->name);
            peal_deducer_note(d, s->pos, "it is declared here");
        } else if (fact->notified && !fact->waited) {
            peal_deducer_error(d, fact->notify_pos, "signal '%s' is never waited on", s->name);
            peal_deducer_note(d, s->pos, "it is declared here");
        }
    }
}

void peal_deduce_effects(struct peal_deducer *d, bool sound)
{
    d->kernel->period = 1;
    block_effects(d, d->kernel->body);
    for (int i = 0; i < d->kernel->nparams; i++) {
        struct peal_symbol *param = d->kernel->params[i];
        if (param->kind != PEAL_SYMBOL_BUFFER)
            continue;
        if (!param->dir_written) {
            if (param->effects)
                param->dir = param->effects;
            else
                param->dir = 1;
        } else if (sound && (param->dir & 2) && !(param->effects & 2))
            peal_deducer_error(d, param->pos, "'%s' is an %s parameter and is never written",
                               param->name, param->dir == 2 ? "out" : "inout");
    }
    if (sound)
        check_signals(d);
}
