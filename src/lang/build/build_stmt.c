/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and declarations of the builder. */
#include "lang/build/builder.h"
#include "lang/syntax/print.h"

#include <string.h>

/* A place starts with a name: parentheses, sums and the like cannot be on the left of '='. */
static struct peal_expr *use_place(struct peal_builder *b, const struct peal_expr *place)
{
    const struct peal_expr *root = place;
    while (root && (root->kind == PEAL_EXPR_SLICE || root->kind == PEAL_EXPR_AT))
        root = root->a;
    if (root && root->kind != PEAL_EXPR_NAME)
        return peal_builder_fail(b, "only a named thing, or a part of one, can stand here");
    return peal_builder_use(b, place);
}

static struct peal_expr *declare(struct peal_builder *b, enum peal_symbol_kind kind,
                                 const char *name, struct peal_stmt **out)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_DECL);
    if (!stmt)
        return NULL;
    *out = stmt;
    stmt->symbol = peal_builder_symbol(b, kind, name, false);
    return peal_builder_ref(b, stmt->symbol);
}

static struct peal_expr *build_buffer(struct peal_builder *b, const char *name,
                                      const struct peal_build_memory *memory,
                                      enum peal_buffer_place place)
{
    struct peal_stmt *stmt;
    struct peal_expr *ref = declare(b, PEAL_SYMBOL_BUFFER, name, &stmt);
    if (!ref || !peal_builder_memory(b, stmt->symbol, memory))
        return NULL;
    stmt->symbol->place = place;
    stmt->symbol->is_window = place == PEAL_PLACE_WINDOW;
    return ref;
}

struct peal_expr *peal_build_window(struct peal_builder *b, const char *name,
                                    const struct peal_build_memory *memory)
{
    return build_buffer(b, name, memory, PEAL_PLACE_WINDOW);
}

struct peal_expr *peal_build_private(struct peal_builder *b, const char *name,
                                     const struct peal_build_memory *memory)
{
    return build_buffer(b, name, memory, PEAL_PLACE_PRIVATE);
}

struct peal_expr *peal_build_signal(struct peal_builder *b, const char *name, const char *mode,
                                    struct peal_expr *cells)
{
    static const char *const modes[] = {
        [PEAL_MODE_ONE_WRITER] = "",
        [PEAL_MODE_SHARED] = "shared",
        [PEAL_MODE_RAW] = "raw",
        [PEAL_MODE_RAW_UNINITIALISED] = "raw uninitialised",
    };
    struct peal_stmt *stmt;
    struct peal_expr *ref = declare(b, PEAL_SYMBOL_SIGNAL, name, &stmt);
    if (!ref)
        return NULL;
    int found = 0;
    while (mode && found <= PEAL_MODE_RAW_UNINITIALISED && strcmp(modes[found], mode) != 0)
        found++;
    if (found > PEAL_MODE_RAW_UNINITIALISED)
        return peal_builder_fail(b, "signals have no mode '%.40s'", mode);
    stmt->symbol->mode = (enum peal_signal_mode)found;
    stmt->symbol->shape[0] = peal_builder_use_optional(b, cells);
    return ref;
}

struct peal_expr *peal_build_channel(struct peal_builder *b, const char *name)
{
    struct peal_stmt *stmt;
    return declare(b, PEAL_SYMBOL_CHANNEL, name, &stmt);
}

void peal_build_grid(struct peal_builder *b, struct peal_expr *rows, struct peal_expr *cols,
                     bool torus)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_GRID);
    if (!stmt)
        return;
    stmt->a = peal_builder_use(b, rows);
    stmt->b = peal_builder_use(b, cols);
    stmt->torus = torus;
}

void peal_build_tree(struct peal_builder *b, struct peal_expr *arity, struct peal_expr *root)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_TREE);
    if (!stmt)
        return;
    stmt->a = peal_builder_use(b, arity);
    stmt->b = peal_builder_use_optional(b, root);
}

static bool is_post(const struct peal_expr *value)
{
    return value && value->kind == PEAL_EXPR_RECV && value->is_async;
}

struct peal_expr *peal_build_let(struct peal_builder *b, const char *name,
                                 const struct peal_build_memory *type, struct peal_expr *value)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_LET);
    if (!stmt)
        return NULL;
    stmt->a = peal_builder_use(b, value);
    if (is_post(stmt->a))
        stmt->kind = PEAL_STMT_POST;
    stmt->symbol = peal_builder_symbol(b, PEAL_SYMBOL_LET, name, false);
    if (!stmt->symbol)
        return NULL;
    if (type) {
        stmt->typed = true;
        stmt->symbol->kind = PEAL_SYMBOL_TILE;
        stmt->symbol->wide_written = type->wide;
        if (!peal_builder_memory(b, stmt->symbol, type))
            return NULL;
    }
    return peal_builder_ref(b, stmt->symbol);
}

struct peal_expr *peal_build_var(struct peal_builder *b, const char *name, struct peal_expr *value)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_VAR);
    if (!stmt)
        return NULL;
    stmt->a = peal_builder_use(b, value);
    stmt->symbol = peal_builder_symbol(b, PEAL_SYMBOL_VAR, name, false);
    return peal_builder_ref(b, stmt->symbol);
}

struct peal_expr *peal_build_carry(struct peal_builder *b, enum peal_carried kind, const char *name,
                                   struct peal_expr *initial)
{
    if (kind == PEAL_CARRY_INT)
        return peal_build_var(b, name, initial);
    return peal_build_let(b, name, NULL, initial);
}

void peal_build_assign(struct peal_builder *b, struct peal_expr *place, struct peal_expr *value)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_ASSIGN);
    if (!stmt)
        return;
    stmt->a = use_place(b, place);
    stmt->b = peal_builder_use(b, value);
    if (!is_post(stmt->b))
        return;
    struct peal_expr *recv = stmt->b;
    stmt->kind = PEAL_STMT_POST;
    stmt->b = stmt->a;
    stmt->a = recv;
}

void peal_build_accumulate(struct peal_builder *b, struct peal_expr *place, struct peal_expr *op,
                           struct peal_expr *value, bool exclusive)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_ACCUMULATE);
    if (!stmt)
        return;
    if (op && op->kind != PEAL_EXPR_NAME)
        peal_builder_fail(b, "only a reduce parameter or operation can accumulate");
    stmt->a = use_place(b, place);
    stmt->b = peal_builder_use(b, value);
    if (op)
        stmt->name = op->name;
    else
        stmt->name = peal_builder_intern(b, "sum");
    stmt->exclusive = exclusive;
}

static void check_sync(struct peal_builder *b, const struct peal_build_sync *sync)
{
    if (sync && sync->struct_size > sizeof *sync)
        peal_builder_fail(b, "a notify or wait has fields that this libpeal does not know");
}

/* The orders that an op on a cell, or a fence, may have. */
static unsigned orders_of(enum peal_stmt_kind kind)
{
    switch (kind) {
    case PEAL_STMT_NOTIFY:
        return 1u << PEAL_WRITTEN_RELAXED | 1u << PEAL_WRITTEN_RELEASE;
    case PEAL_STMT_WAIT:
        return 1u << PEAL_WRITTEN_RELAXED | 1u << PEAL_WRITTEN_ACQUIRE;
    case PEAL_STMT_FENCE:
        return 1u << PEAL_WRITTEN_ACQUIRE | 1u << PEAL_WRITTEN_RELEASE |
               1u << PEAL_WRITTEN_ACQ_REL | 1u << PEAL_WRITTEN_FULL;
    default:
        return 1u << PEAL_WRITTEN_RELAXED | 1u << PEAL_WRITTEN_ACQUIRE |
               1u << PEAL_WRITTEN_RELEASE | 1u << PEAL_WRITTEN_ACQ_REL;
    }
}

/* Two words as in a text; NULL: not written. */
static struct peal_ordering read_ordering(struct peal_builder *b, enum peal_stmt_kind kind,
                                          const char *order, const char *scope)
{
    struct peal_ordering out = {0};
    unsigned i = PEAL_WRITTEN_RELAXED, k = PEAL_SCOPE_SYSTEM;
    while (order && i <= PEAL_WRITTEN_FULL && strcmp(peal_written_order_name(i), order) != 0)
        i++;
    while (scope && k <= PEAL_SCOPE_BLOCK && strcmp(peal_scope_name(k), scope) != 0)
        k++;
    if (order && (i > PEAL_WRITTEN_FULL || !(orders_of(kind) >> i & 1)))
        peal_builder_fail(b, "'%s' is no order of this operation", order);
    else if (scope && k > PEAL_SCOPE_BLOCK)
        peal_builder_fail(b, "'%s' is no scope: they are system, device and block", scope);
    else
        out = (struct peal_ordering){(uint8_t)(order ? i : 0), (uint8_t)k};
    return out;
}

void peal_build_order(struct peal_builder *b, const char *order, const char *scope)
{
    if (b->order || b->scope)
        peal_builder_fail(b, "an order was given twice for one operation");
    b->order = order ? peal_builder_intern(b, order) : NULL;
    b->scope = scope ? peal_builder_intern(b, scope) : NULL;
    b->has_order = true;
}

struct peal_ordering peal_builder_ordering(struct peal_builder *b, enum peal_stmt_kind kind)
{
    struct peal_ordering out = {0};
    if (b->has_order)
        out = read_ordering(b, kind, b->order, b->scope);
    b->order = b->scope = NULL;
    b->has_order = false;
    return out;
}

static void set_ordering(struct peal_builder *b, struct peal_stmt *stmt,
                         const struct peal_build_sync *sync)
{
    stmt->ordering = peal_builder_ordering(b, stmt->kind);
    if (sync && sync->relaxed)
        stmt->ordering.order = PEAL_WRITTEN_RELAXED;
}

void peal_build_fence(struct peal_builder *b)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_FENCE);
    if (stmt)
        stmt->ordering = peal_builder_ordering(b, PEAL_STMT_FENCE);
}

void peal_build_notify(struct peal_builder *b, struct peal_expr *cell, struct peal_expr *value,
                       const struct peal_build_sync *sync)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_NOTIFY);
    if (!stmt)
        return;
    check_sync(b, sync);
    if (sync && (sync->equal || sync->back))
        peal_builder_fail(b, "'equal' and 'back' are for waits");
    stmt->a = use_place(b, cell);
    stmt->b = peal_builder_use(b, value);
    set_ordering(b, stmt, sync);
    stmt->is_set = sync && sync->set;
}

void peal_build_wait(struct peal_builder *b, struct peal_expr *cell, struct peal_expr *value,
                     const struct peal_build_sync *sync)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_WAIT);
    if (!stmt)
        return;
    check_sync(b, sync);
    if (sync && (sync->set || sync->back > PEAL_MAX_BACK))
        peal_builder_fail(b, "'set' is for notifies, and 'back' is at most %d", PEAL_MAX_BACK);
    stmt->a = use_place(b, cell);
    stmt->b = peal_builder_use(b, value);
    set_ordering(b, stmt, sync);
    stmt->is_equal = sync && sync->equal;
    if (sync)
        stmt->back = sync->back;
    else
        stmt->back = 0;
}

void peal_build_take(struct peal_builder *b, struct peal_expr *cell, struct peal_expr *from,
                     struct peal_expr *to)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_TAKE);
    if (!stmt)
        return;
    stmt->a = peal_builder_use(b, cell);
    stmt->b = peal_builder_use(b, from);
    stmt->c = peal_builder_use(b, to);
    stmt->ordering = peal_builder_ordering(b, PEAL_STMT_TAKE);
}

void peal_build_send(struct peal_builder *b, struct peal_expr *value, struct peal_expr *peer,
                     struct peal_expr *channel)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_SEND);
    if (!stmt)
        return;
    if (channel && channel->kind != PEAL_EXPR_NAME)
        peal_builder_fail(b, "a channel is given by its name");
    stmt->a = peal_builder_use(b, value);
    stmt->b = peal_builder_use(b, peer);
    stmt->c = peal_builder_use_optional(b, channel);
}

void peal_build_await(struct peal_builder *b, struct peal_expr *tile, struct peal_expr *place)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_AWAIT);
    if (!stmt)
        return;
    if (tile && tile->kind != PEAL_EXPR_NAME)
        peal_builder_fail(b, "a tile is waited for by its name");
    stmt->a = peal_builder_use(b, tile);
    if (place)
        stmt->b = use_place(b, place);
}

void peal_build_free(struct peal_builder *b, struct peal_expr *tile)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_FREE);
    if (!stmt)
        return;
    if (tile && tile->kind != PEAL_EXPR_NAME)
        peal_builder_fail(b, "a tile is freed by its name");
    stmt->a = peal_builder_use(b, tile);
}

void peal_build_flush(struct peal_builder *b, struct peal_expr *rank)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_FLUSH);
    if (stmt)
        stmt->a = peal_builder_use(b, rank);
}

void peal_build_assert(struct peal_builder *b, struct peal_expr *condition, const char *message)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_ASSERT);
    if (!stmt)
        return;
    stmt->a = peal_builder_use(b, condition);
    stmt->name = peal_arena_copy(&b->module->arena, message, strlen(message));
    if (!stmt->name)
        peal_builder_out_of_memory(b);
}

void peal_build_requires(struct peal_builder *b, struct peal_expr *condition)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_ASSERT);
    struct peal_text text = {0};
    if (!stmt)
        return;
    stmt->required = true;
    stmt->a = peal_builder_use(b, condition);
    if (stmt->a) {
        peal_print_expr(stmt->a, &text);
        stmt->name = peal_arena_copy(&b->module->arena, peal_text_get(&text), text.len);
        if (!stmt->name)
            peal_builder_out_of_memory(b);
    }
    peal_text_release(&text);
}

void peal_build_ensures(struct peal_builder *b, struct peal_expr *place, struct peal_expr *value,
                        struct peal_expr *where)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_ENSURES);
    if (!stmt)
        return;
    stmt->a = use_place(b, place);
    stmt->b = peal_builder_use(b, value);
    stmt->c = peal_builder_use_optional(b, where);
}

void peal_build_run_list(struct peal_builder *b, const void *const *words, size_t count)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_CALL);
    if (!stmt)
        return;
    stmt->name = peal_builder_intern(b, words[0]);
    stmt->args = peal_builder_args(b, words, count);
}
