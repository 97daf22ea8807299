/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: blocks, and which file handles the statements in them. */
#include "lang/deduce/deducer.h"

static void deduce_block(struct peal_deducer *d, struct peal_stmt *body)
{
    size_t scope = peal_deducer_scope_begin(d);
    d->nesting++;
    peal_deduce_stmts(d, body);
    d->nesting--;
    peal_deducer_scope_end(d, scope);
}

static void deduce_for(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_poly poly;
    int64_t step;
    bool varies = stmt->kind == PEAL_STMT_FOR_PEERS;
    if (stmt->kind == PEAL_STMT_FOR) {
        peal_deduce_int(d, stmt->a, "a loop bound", &poly);
        peal_deduce_int(d, stmt->b, "a loop bound", &poly);
        varies = peal_deduce_varies(d, stmt->a) || peal_deduce_varies(d, stmt->b);
        if (stmt->c && peal_deduce_int(d, stmt->c, "a step", &poly) &&
            peal_poly_is_int(&poly, &step) && step == 0)
            peal_deducer_error(d, stmt->c->pos, "a step of 0 never ends");
    }
    size_t scope = peal_deducer_scope_begin(d);
    peal_deducer_declare_as(d, stmt->symbol, PEAL_SYMBOL_LOOP, PEAL_TYPE_INT);
    if (!d->no_memory)
        peal_deducer_fact(d, stmt->symbol)->varies = varies;
    deduce_block(d, stmt->body);
    peal_deducer_scope_end(d, scope);
}

static void deduce_lane(struct peal_deducer *d, struct peal_stmt *stmt)
{
    struct peal_poly poly;
    bool varies = false;
    if (d->nesting || d->lane)
        peal_deducer_error(d, stmt->pos, "a lane must stand at the top of its kernel");
    if (stmt->symbol) {
        peal_deduce_int(d, stmt->a, "a number of a lane", &poly);
        peal_deduce_int(d, stmt->b, "a number of a lane", &poly);
        varies = peal_deduce_varies(d, stmt->a) || peal_deduce_varies(d, stmt->b);
    }
    size_t scope = peal_deducer_scope_begin(d);
    int outer = d->lane;
    d->lane = ++d->lanes;
    if (stmt->symbol)
        peal_deducer_declare_as(d, stmt->symbol, PEAL_SYMBOL_LOOP, PEAL_TYPE_INT);
    if (stmt->symbol && !d->no_memory)
        peal_deducer_fact(d, stmt->symbol)->varies = varies;
    if (stmt->c)
        peal_deduce_int(d, stmt->c, "the number of a block", &poly);
    peal_deduce_stmts(d, stmt->body);
    d->lane = outer;
    peal_deducer_scope_end(d, scope);
}

static void deduce_if(struct peal_deducer *d, struct peal_stmt *stmt)
{
    peal_deduce_bool(d, stmt->a, "a condition");
    deduce_block(d, stmt->body);
    deduce_block(d, stmt->other);
}

static void deduce_when(struct peal_deducer *d, struct peal_stmt *stmt)
{
    peal_deduce_test(d, stmt->a);
    d->when++;
    deduce_block(d, stmt->body);
    d->when--;
}

/* An inlined call: it may contain declarations. */
static void deduce_scope(struct peal_deducer *d, struct peal_stmt *stmt)
{
    size_t scope = peal_deducer_scope_begin(d);
    int nesting = d->nesting;
    d->nesting = 0;
    peal_deduce_stmts(d, stmt->body);
    d->nesting = nesting;
    peal_deducer_scope_end(d, scope);
}

/* Is it an operation of the plan, or only integers and declarations? */
static bool is_operation(const struct peal_stmt *stmt)
{
    switch (stmt->kind) {
    case PEAL_STMT_LET:
    case PEAL_STMT_VAR:
        return stmt->symbol->kind == PEAL_SYMBOL_TILE || stmt->symbol->kind == PEAL_SYMBOL_COUNTER;
    case PEAL_STMT_ASSIGN:
        return peal_type_is_data(&stmt->a->type) || stmt->a->type.kind == PEAL_TYPE_COUNTER;
    case PEAL_STMT_ACCUMULATE:
    case PEAL_STMT_NOTIFY:
    case PEAL_STMT_WAIT:
    case PEAL_STMT_SEND:
    case PEAL_STMT_FREE:
    case PEAL_STMT_POST:
    case PEAL_STMT_AWAIT:
    case PEAL_STMT_FLUSH:
    case PEAL_STMT_FENCE:
    case PEAL_STMT_CALL:
    case PEAL_STMT_TAKE:
    case PEAL_STMT_WHEN:
        return true;
    default:
        return false;
    }
}

static void deduce_stmt(struct peal_deducer *d, struct peal_stmt *stmt)
{
    switch (stmt->kind) {
    case PEAL_STMT_DECL:
        peal_deduce_decl(d, stmt);
        break;
    case PEAL_STMT_GRID:
    case PEAL_STMT_TREE:
        peal_deduce_grid(d, stmt);
        break;
    case PEAL_STMT_LET:
        peal_deduce_let(d, stmt);
        break;
    case PEAL_STMT_VAR:
        peal_deduce_var(d, stmt);
        break;
    case PEAL_STMT_ASSIGN:
        peal_deduce_assign(d, stmt);
        break;
    case PEAL_STMT_ACCUMULATE:
        peal_deduce_accumulate(d, stmt);
        break;
    case PEAL_STMT_NOTIFY:
        peal_deduce_notify(d, stmt);
        break;
    case PEAL_STMT_WAIT:
        peal_deduce_wait(d, stmt);
        break;
    case PEAL_STMT_SEND:
        peal_deduce_send(d, stmt);
        break;
    case PEAL_STMT_FREE:
        peal_deduce_free(d, stmt);
        break;
    case PEAL_STMT_POST:
        if (stmt->b)
            peal_deduce_repost(d, stmt);
        else
            peal_deduce_let(d, stmt);
        break;
    case PEAL_STMT_AWAIT:
        peal_deduce_await(d, stmt);
        break;
    case PEAL_STMT_FLUSH: {
        struct peal_poly ignored;
        (void)peal_deduce_int(d, stmt->a, "the rank of a flush", &ignored);
        break;
    }
    case PEAL_STMT_FENCE:
        break;
    case PEAL_STMT_FOR:
    case PEAL_STMT_FOR_PEERS:
        deduce_for(d, stmt);
        break;
    case PEAL_STMT_IF:
        deduce_if(d, stmt);
        break;
    case PEAL_STMT_WHEN:
        deduce_when(d, stmt);
        break;
    case PEAL_STMT_TAKE:
        peal_deduce_take(d, stmt);
        break;
    case PEAL_STMT_ASSERT:
        peal_deduce_bool(d, stmt->a, stmt->required ? "what is required" : "what is asserted");
        break;
    case PEAL_STMT_ENSURES:
        peal_deduce_ensures(d, stmt);
        break;
    case PEAL_STMT_LANE:
        deduce_lane(d, stmt);
        break;
    case PEAL_STMT_CALL:
        if (peal_deduce_names_result(d, stmt))
            peal_deduce_let(d, stmt);
        else
            peal_deduce_call(d, stmt);
        break;
    case PEAL_STMT_SCOPE:
        deduce_scope(d, stmt);
        break;
    }
}

void peal_deduce_stmts(struct peal_deducer *d, struct peal_stmt *stmt)
{
    for (; stmt; stmt = stmt->next) {
        if (!peal_deducer_goes_on(d))
            break;
        deduce_stmt(d, stmt);
        if (d->when)
            peal_deduce_within(d, stmt);
        if (d->first_lane && !d->lane && is_operation(stmt)) {
            peal_deducer_error(d, stmt->pos, "an operation outside the lanes");
            peal_deducer_note(d, d->first_lane->pos,
                              "the kernel has lanes: they hold all operations");
        }
    }
}
