/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: one function per form, found by the word that starts it. */
#include "lang/syntax/parser.h"
#include "lang/syntax/print.h"

#include <string.h>

/* A statement function gets the node and starts after the word. False after a failure. */
typedef bool parse_form(struct peal_parser *p, struct peal_stmt *stmt);

static struct peal_symbol *parse_symbol(struct peal_parser *p, enum peal_symbol_kind kind,
                                        const char *expected)
{
    struct peal_pos pos;
    const char *name = peal_parser_name(p, expected, &pos);
    if (!name)
        return NULL;
    struct peal_symbol *symbol = peal_symbol_new(p->module, kind, name, pos);
    if (!symbol)
        return peal_parser_out_of_memory(p);
    return symbol;
}

static bool parse_buffer(struct peal_parser *p, struct peal_stmt *stmt,
                         enum peal_buffer_place place)
{
    bool wide = peal_parser_take(p, "wide");
    stmt->symbol = parse_symbol(p, PEAL_SYMBOL_BUFFER, "the name of a buffer");
    if (!stmt->symbol)
        return false;
    stmt->symbol->place = place;
    stmt->symbol->is_window = place == PEAL_PLACE_WINDOW;
    stmt->symbol->type.elem.wide = wide;
    return peal_parser_want(p, ":") && peal_parse_memory(p, stmt->symbol);
}

static bool parse_window(struct peal_parser *p, struct peal_stmt *stmt)
{
    return parse_buffer(p, stmt, PEAL_PLACE_WINDOW);
}

static bool parse_private(struct peal_parser *p, struct peal_stmt *stmt)
{
    return parse_buffer(p, stmt, PEAL_PLACE_PRIVATE);
}

/* Makes one statement per name: the first is `stmt`, further ones are linked after it. */
static bool parse_names(struct peal_parser *p, struct peal_stmt *stmt, enum peal_symbol_kind kind,
                        enum peal_signal_mode mode)
{
    const char *expected =
        kind == PEAL_SYMBOL_SIGNAL ? "the name of a signal" : "the name of a channel";
    for (;;) {
        stmt->symbol = parse_symbol(p, kind, expected);
        if (!stmt->symbol)
            return false;
        stmt->symbol->mode = mode;
        if (kind == PEAL_SYMBOL_SIGNAL && peal_parser_take(p, "[")) {
            stmt->symbol->shape[0] = peal_parse_expr(p);
            if (!stmt->symbol->shape[0] || !peal_parser_want(p, "]"))
                return false;
        }
        if (!peal_parser_take(p, ","))
            return true;
        stmt->next = peal_stmt_new(p->module, PEAL_STMT_DECL, p->token.pos);
        if (!stmt->next)
            return peal_parser_out_of_memory(p);
        stmt = stmt->next;
    }
}

static bool parse_signal(struct peal_parser *p, struct peal_stmt *stmt)
{
    enum peal_signal_mode mode = PEAL_MODE_ONE_WRITER;
    if (peal_parser_take(p, "shared")) {
        mode = PEAL_MODE_SHARED;
    } else if (peal_parser_take(p, "raw")) {
        mode = PEAL_MODE_RAW;
        if (peal_parser_take(p, "uninitialised"))
            mode = PEAL_MODE_RAW_UNINITIALISED;
    }
    return parse_names(p, stmt, PEAL_SYMBOL_SIGNAL, mode);
}

static bool parse_channel(struct peal_parser *p, struct peal_stmt *stmt)
{
    return parse_names(p, stmt, PEAL_SYMBOL_CHANNEL, PEAL_MODE_ONE_WRITER);
}

static bool parse_grid(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->a = peal_parse_expr(p);
    if (!stmt->a || !peal_parser_want(p, ","))
        return false;
    stmt->b = peal_parse_expr(p);
    stmt->torus = stmt->b && peal_parser_take(p, "torus");
    return stmt->b != NULL;
}

static bool parse_tree(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->a = peal_parse_expr(p);
    if (!stmt->a)
        return false;
    return !peal_parser_take(p, "from") || (stmt->b = peal_parse_expr(p));
}

static bool at_post(const struct peal_parser *p)
{
    return peal_parser_at(p, "recv_async") && peal_parser_ahead(p, "from");
}

/* recv_async from ..., after what it is for */
static bool parse_post(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->kind = PEAL_STMT_POST;
    return (stmt->a = peal_parse_recv(p));
}

static bool parse_let(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->symbol = parse_symbol(p, PEAL_SYMBOL_LET, "a new name");
    if (!stmt->symbol)
        return false;
    if (peal_parser_take(p, ":")) {
        stmt->typed = true;
        stmt->symbol->kind = PEAL_SYMBOL_TILE;
        stmt->symbol->wide_written = peal_parser_take(p, "wide");
        stmt->symbol->type.elem.wide = stmt->symbol->wide_written;
        if (!peal_parse_memory(p, stmt->symbol))
            return false;
    }
    if (!peal_parser_want(p, "="))
        return false;
    if (at_post(p))
        return parse_post(p, stmt);
    return (stmt->a = peal_parse_expr(p));
}

static bool parse_var(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->symbol = parse_symbol(p, PEAL_SYMBOL_VAR, "a new name");
    return stmt->symbol && peal_parser_want(p, "=") && (stmt->a = peal_parse_expr(p));
}

/* `relaxed` is reserved after these two words. */
static bool parse_ordering(struct peal_parser *p, const char *what, enum peal_written_order order,
                           struct peal_stmt *stmt)
{
    if (peal_parser_take(p, "relaxed"))
        stmt->ordering.order = PEAL_WRITTEN_RELAXED;
    unsigned orders = stmt->ordering.order ? 0 : 1u << PEAL_WRITTEN_RELAXED | 1u << order;
    return peal_parse_ordering(p, what, orders, &stmt->ordering);
}

static bool parse_notify(struct peal_parser *p, struct peal_stmt *stmt)
{
    if (!parse_ordering(p, "a notify", PEAL_WRITTEN_RELEASE, stmt))
        return false;
    stmt->a = peal_parse_place(p);
    if (!stmt->a)
        return false;
    if (peal_parser_take(p, "="))
        stmt->is_set = true;
    else if (!peal_parser_take(p, "+="))
        return peal_parser_expected(p, "'+=' or '='");
    return (stmt->b = peal_parse_expr(p));
}

static bool parse_wait(struct peal_parser *p, struct peal_stmt *stmt)
{
    if (!parse_ordering(p, "a wait", PEAL_WRITTEN_ACQUIRE, stmt))
        return false;
    stmt->a = peal_parse_place(p);
    if (!stmt->a)
        return false;
    bool is_over = p->token.kind == PEAL_TOKEN_NAME || peal_parser_at(p, "}");
    if (is_over && !stmt->ordering.order && !stmt->ordering.scope &&
        stmt->a->kind == PEAL_EXPR_NAME) {
        stmt->kind = PEAL_STMT_AWAIT;
        return !peal_parser_take(p, "into") || (stmt->b = peal_parse_place(p));
    }
    if (peal_parser_take(p, "=="))
        stmt->is_equal = true;
    else if (!peal_parser_take(p, ">="))
        return peal_parser_expected(p, "'>=' or '=='");
    stmt->b = peal_parse_expr(p);
    if (!stmt->b)
        return false;
    if (!peal_parser_take(p, "at"))
        return true;
    if (!peal_parser_want(p, "launch") || !peal_parser_want(p, "-"))
        return false;
    if (p->token.kind != PEAL_TOKEN_INT || p->token.value < 1 || p->token.value > PEAL_MAX_BACK)
        return peal_parser_expected(p, "a number from 1 to 15");
    stmt->back = (uint32_t)p->token.value;
    peal_parser_step(p);
    return true;
}

static bool parse_send(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->a = peal_parse_expr(p);
    if (!stmt->a || !peal_parser_want(p, "to") || !(stmt->b = peal_parse_peer(p)))
        return false;
    if (!peal_parser_take(p, "on"))
        return true;
    stmt->c = peal_parse_place(p);
    if (stmt->c && stmt->c->kind != PEAL_EXPR_NAME)
        return peal_parser_fail(p, stmt->c->pos, "expected the name of a channel");
    return stmt->c != NULL;
}

static bool parse_free(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->a = peal_expr_new(p->module, PEAL_EXPR_NAME, p->token.pos);
    if (!stmt->a)
        return peal_parser_out_of_memory(p);
    return (stmt->a->name = peal_parser_name(p, "the name of a tile", NULL));
}

/* The words of `forms`, and those that are not forms of their own. */
static const char *const first_words[] = {
    "window",    "private", "signal", "channel", "grid",     "tree",    "let",
    "var",       "notify",  "wait",   "send",    "for",      "if",      "assert",
    "exclusive", "lane",    "free",   "else",    "requires", "ensures", NULL,
};

static bool parse_bounds(struct peal_parser *p, struct peal_stmt *stmt)
{
    static const char *const peers[] = {"peers", NULL};
    size_t errors = p->errors;
    stmt->a = peal_parse_expr(p);
    if (stmt->a && peal_parser_want(p, ".."))
        return (stmt->b = peal_parse_expr(p));
    if (p->errors > errors && stmt->a && stmt->a->kind == PEAL_EXPR_NAME)
        peal_parser_hint_word(p, stmt->a->name, strlen(stmt->a->name), peers);
    return false;
}

static bool parse_for(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->symbol = parse_symbol(p, PEAL_SYMBOL_LOOP, "the name of the loop variable");
    if (!stmt->symbol || !peal_parser_want(p, "in"))
        return false;
    if (peal_parser_at(p, "peers") && peal_parser_ahead(p, "{")) {
        peal_parser_step(p);
        stmt->kind = PEAL_STMT_FOR_PEERS;
    } else {
        if (!parse_bounds(p, stmt))
            return false;
        if (peal_parser_take(p, "step") && !(stmt->c = peal_parse_expr(p)))
            return false;
    }
    stmt->pos = peal_parser_span(p, stmt->pos);
    return peal_parse_block(p, &stmt->body);
}

static bool parse_if(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->a = peal_parse_expr(p);
    if (!stmt->a)
        return false;
    stmt->pos = peal_parser_span(p, stmt->pos);
    if (!peal_parse_block(p, &stmt->body))
        return false;
    if (!peal_parser_take(p, "else"))
        return true;
    if (!peal_parser_at(p, "if"))
        return peal_parse_block(p, &stmt->other);
    stmt->other = peal_stmt_new(p->module, PEAL_STMT_IF, p->token.pos);
    if (!stmt->other)
        return peal_parser_out_of_memory(p);
    if (!peal_parser_enter(p))
        return false;
    peal_parser_step(p);
    bool ok = parse_if(p, stmt->other);
    if (!ok && !stmt->other->body)
        stmt->other = NULL; /* a tree that is kept has no half of a statement */
    peal_parser_leave(p);
    return ok;
}

static bool parse_when(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->a = peal_parse_expr(p);
    if (!stmt->a)
        return false;
    stmt->pos = peal_parser_span(p, stmt->pos);
    return peal_parse_block(p, &stmt->body);
}

/* take cell from a to b */
static bool parse_take(struct peal_parser *p, struct peal_stmt *stmt)
{
    /* `take full from 1 to 0`: a cell may have the name of an order. */
    if (!peal_parser_ahead(p, "from") &&
        !peal_parse_ordering(p, "a take", PEAL_ORDERS_OF_ATOMICS, &stmt->ordering))
        return false;
    stmt->a = peal_parse_place(p);
    if (!stmt->a || !peal_parser_want(p, "from") || !(stmt->b = peal_parse_expr(p)))
        return false;
    return peal_parser_want(p, "to") && (stmt->c = peal_parse_expr(p));
}

/* The text of a string token with its escapes replaced. */
static const char *read_string(struct peal_parser *p)
{
    if (p->token.kind != PEAL_TOKEN_STRING)
        return peal_parser_expected(p, "a message in double quotes");
    char *text = peal_arena_copy(&p->module->arena, p->token.text, p->token.len);
    if (!text)
        return peal_parser_out_of_memory(p);
    static const char escapes[] = "\\\"nt";
    static const char meanings[] = "\\\"\n\t";
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '\\' || !from[1]) {
            *to++ = *from;
            continue;
        }
        from++;
        const char *escape = strchr(escapes, *from);
        if (!escape)
            return peal_parser_fail(
                p, p->token.pos, "'\\%c' has no meaning: a string knows \\\\ \\\" \\n \\t", *from);
        *to++ = meanings[escape - escapes];
    }
    *to = '\0';
    peal_parser_step(p);
    return text;
}

static bool parse_assert(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->a = peal_parse_expr(p);
    return stmt->a && peal_parser_want(p, ",") && (stmt->name = read_string(p));
}

/* The message is what is required, in canonical form. */
static bool parse_requires(struct peal_parser *p, struct peal_stmt *stmt)
{
    struct peal_text text = {0};
    stmt->required = true;
    stmt->a = peal_parse_expr(p);
    if (!stmt->a)
        return false;
    peal_print_expr(stmt->a, &text);
    if (!text.failed)
        stmt->name = peal_intern_text(&p->module->names, text.at, text.len);
    peal_text_release(&text);
    if (!stmt->name)
        (void)peal_parser_out_of_memory(p);
    return stmt->name != NULL;
}

static bool parse_ensures(struct peal_parser *p, struct peal_stmt *stmt)
{
    struct peal_expr *both = peal_parse_expr(p);
    if (!both)
        return false;
    if (both->kind != PEAL_EXPR_BINARY || both->op != PEAL_INT_EQ) {
        (void)peal_parser_fail(p, both->pos,
                               "an ensures has the form 'y[i] == value', with one '=='");
        return false;
    }
    stmt->a = both->a;
    stmt->b = both->b;
    if (peal_parser_take(p, "where"))
        return (stmt->c = peal_parse_expr(p)) != NULL;
    return true;
}

static bool parse_lane(struct peal_parser *p, struct peal_stmt *stmt)
{
    bool in_block = peal_parser_at(p, "block") && !peal_parser_ahead(p, "in");
    if (!peal_parser_at(p, "{") && !in_block) {
        stmt->symbol = parse_symbol(p, PEAL_SYMBOL_LOOP, "the name of the lane variable");
        if (!stmt->symbol || !peal_parser_want(p, "in") || !parse_bounds(p, stmt))
            return false;
    }
    if (peal_parser_take(p, "block") && !(stmt->c = peal_parse_expr(p)))
        return false;
    stmt->pos = peal_parser_span(p, stmt->pos);
    return peal_parse_block(p, &stmt->body);
}

/* A place to which nothing is assigned: a typing error in the first word, or a sum after `@`. */
static bool reject_assign(struct peal_parser *p, const struct peal_stmt *stmt)
{
    size_t errors = p->errors;
    peal_parser_expected(p, stmt->exclusive ? "'+=' or a reduce operation and '='"
                                            : "'=', '+=' or a reduce operation and '='");
    if (p->errors == errors)
        return false;
    if (stmt->a->kind == PEAL_EXPR_NAME)
        peal_parser_hint_statement(p, stmt->a->name, first_words);
    else if (stmt->a->kind == PEAL_EXPR_AT && p->token.kind == PEAL_TOKEN_PUNCT &&
             strchr("+-*/%", *p->token.text))
        peal_diag_note(p->diags, (struct peal_pos){0},
                       "after '@' a sum or product needs parentheses: 'x@(p + 1)'");
    return false;
}

/* What follows the place in: place = expr, [exclusive] place op= expr */
static bool parse_change(struct peal_parser *p, struct peal_stmt *stmt)
{
    if (!stmt->exclusive && peal_parser_take(p, "=")) {
        stmt->kind = PEAL_STMT_ASSIGN;
        if (at_post(p)) {
            stmt->b = stmt->a;
            return parse_post(p, stmt);
        }
        return (stmt->b = peal_parse_expr(p));
    }
    stmt->kind = PEAL_STMT_ACCUMULATE;
    if (p->token.kind == PEAL_TOKEN_NAME && peal_parser_ahead(p, "=")) {
        stmt->name = peal_intern_text(&p->module->names, p->token.text, p->token.len);
        peal_parser_step(p);
        peal_parser_step(p);
    } else if (peal_parser_take(p, "+=")) {
        stmt->name = peal_intern_text(&p->module->names, "sum", 3);
    } else {
        return reject_assign(p, stmt);
    }
    if (!stmt->name)
        return peal_parser_out_of_memory(p);
    return (stmt->b = peal_parse_expr(p));
}

static bool parse_assign(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->a = peal_parse_place(p);
    return stmt->a && parse_change(p, stmt);
}

static bool parse_exclusive(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->exclusive = true;
    return parse_assign(p, stmt);
}

static bool parse_call(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->name = peal_parser_name(p, "the name of a kernel", NULL);
    peal_parser_step(p); /* over the parenthesis that made it a call */
    return stmt->name && peal_parse_fetch_ordering(p, stmt->name, &stmt->ordering) &&
           peal_parse_args(p, false, &stmt->args);
}

/* scope name { ... }: what inlining makes of a call */
static bool parse_scope(struct peal_parser *p, struct peal_stmt *stmt)
{
    stmt->name = peal_parser_name(p, "the name of a kernel", NULL);
    stmt->pos = peal_parser_span(p, stmt->pos);
    return stmt->name && peal_parse_block(p, &stmt->body);
}

static const struct {
    const char *word;
    enum peal_stmt_kind kind;
    parse_form *form;
} forms[] = {
    {"window", PEAL_STMT_DECL, parse_window},
    {"private", PEAL_STMT_DECL, parse_private},
    {"signal", PEAL_STMT_DECL, parse_signal},
    {"channel", PEAL_STMT_DECL, parse_channel},
    {"grid", PEAL_STMT_GRID, parse_grid},
    {"tree", PEAL_STMT_TREE, parse_tree},
    {"let", PEAL_STMT_LET, parse_let},
    {"var", PEAL_STMT_VAR, parse_var},
    {"notify", PEAL_STMT_NOTIFY, parse_notify},
    {"wait", PEAL_STMT_WAIT, parse_wait},
    {"send", PEAL_STMT_SEND, parse_send},
    {"for", PEAL_STMT_FOR, parse_for},
    {"if", PEAL_STMT_IF, parse_if},
    {"assert", PEAL_STMT_ASSERT, parse_assert},
    {"lane", PEAL_STMT_LANE, parse_lane},
    {"scope", PEAL_STMT_SCOPE, parse_scope},
    {"exclusive", PEAL_STMT_ACCUMULATE, parse_exclusive},
};

/* fence [order] [scope]. A buffer may have that name: `fence max = x` accumulates. */
static bool parse_fence(struct peal_parser *p, struct peal_stmt *stmt)
{
    enum {
        ORDERS = 1u << PEAL_WRITTEN_ACQUIRE | 1u << PEAL_WRITTEN_RELEASE |
                 1u << PEAL_WRITTEN_ACQ_REL | 1u << PEAL_WRITTEN_FULL
    };
    struct peal_pos pos = p->token.pos;
    const char *name = peal_intern_text(&p->module->names, p->token.text, p->token.len);
    peal_parser_step(p);
    if (p->token.kind == PEAL_TOKEN_NAME && !p->token.first && peal_parser_ahead(p, "=")) {
        stmt->a = peal_expr_new(p->module, PEAL_EXPR_NAME, pos);
        if (!stmt->a || !name)
            return peal_parser_out_of_memory(p);
        stmt->a->name = name;
        (void)peal_expr_measure(stmt->a);
        return parse_change(p, stmt);
    }
    stmt->kind = PEAL_STMT_FENCE;
    return peal_parse_ordering(p, "a fence", ORDERS, &stmt->ordering);
}

static bool parse_by_word(struct peal_parser *p, struct peal_stmt *stmt)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (peal_parser_take(p, forms[i].word)) {
            stmt->kind = forms[i].kind;
            return forms[i].form(p, stmt);
        }
    }
    /* `free` is a legal name for a signal: it is the statement only before another name. */
    if (peal_parser_at(p, "free") && p->ahead.kind == PEAL_TOKEN_NAME) {
        peal_parser_step(p);
        stmt->kind = PEAL_STMT_FREE;
        return parse_free(p, stmt);
    }
    /* `take` and `when`, like `free`, are statements only if a name follows. */
    if (peal_parser_at(p, "take") && p->ahead.kind == PEAL_TOKEN_NAME) {
        peal_parser_step(p);
        stmt->kind = PEAL_STMT_TAKE;
        return parse_take(p, stmt);
    }
    if (peal_parser_at(p, "when") && p->ahead.kind == PEAL_TOKEN_NAME) {
        peal_parser_step(p);
        stmt->kind = PEAL_STMT_WHEN;
        return parse_when(p, stmt);
    }
    bool has_value = p->ahead.kind == PEAL_TOKEN_NAME || p->ahead.kind == PEAL_TOKEN_INT;
    if (peal_parser_at(p, "requires") && has_value) {
        peal_parser_step(p);
        stmt->kind = PEAL_STMT_ASSERT;
        return parse_requires(p, stmt);
    }
    if (peal_parser_at(p, "ensures") && p->ahead.kind == PEAL_TOKEN_NAME) {
        peal_parser_step(p);
        stmt->kind = PEAL_STMT_ENSURES;
        return parse_ensures(p, stmt);
    }
    if (peal_parser_at(p, "flush") && peal_parser_ahead(p, "to")) {
        peal_parser_step(p);
        peal_parser_step(p);
        stmt->kind = PEAL_STMT_FLUSH;
        stmt->a = peal_parse_expr(p);
        return stmt->a != NULL;
    }
    bool alone = p->ahead.kind == PEAL_TOKEN_NAME || p->ahead.kind == PEAL_TOKEN_END ||
                 peal_parser_ahead(p, "}");
    if (peal_parser_at(p, "fence") && alone)
        return parse_fence(p, stmt);
    if (p->token.kind == PEAL_TOKEN_NAME && peal_parser_ahead(p, "(")) {
        stmt->kind = PEAL_STMT_CALL;
        return parse_call(p, stmt);
    }
    if (p->token.kind == PEAL_TOKEN_NAME)
        return parse_assign(p, stmt);
    return peal_parser_expected(p, "a statement");
}

static bool has_block(const struct peal_stmt *stmt)
{
    return stmt->kind == PEAL_STMT_FOR || stmt->kind == PEAL_STMT_FOR_PEERS ||
           stmt->kind == PEAL_STMT_IF || stmt->kind == PEAL_STMT_WHEN ||
           stmt->kind == PEAL_STMT_LANE || stmt->kind == PEAL_STMT_SCOPE;
}

/* NULL after a failure, or, for a partial tree, a block that does not end. A declaration of several names gives a list. */
static struct peal_stmt *parse_stmt(struct peal_parser *p)
{
    struct peal_stmt *stmt = peal_stmt_new(p->module, PEAL_STMT_DECL, p->token.pos);
    if (!stmt)
        return peal_parser_out_of_memory(p);
    if (!parse_by_word(p, stmt)) {
        bool keeps = p->partial && has_block(stmt) && stmt->body;
        return keeps ? stmt : NULL; /* it is in panic */
    }
    if (!has_block(stmt) && !stmt->next)
        stmt->pos = peal_parser_span(p, stmt->pos);
    return stmt;
}

/* Ends a panic: skips to the next line of this block that may start a statement, or to the block's
 * end. */
static void skip_stmt(struct peal_parser *p, struct peal_pos start)
{
    int braces = 0;
    bool moved = p->token.pos.line != start.line || p->token.pos.col != start.col;
    while (p->token.kind != PEAL_TOKEN_END && !p->gave_up) {
        if (braces == 0 && moved && (p->token.first || peal_parser_at(p, "}")))
            break;
        if (p->token.first && peal_parser_at(p, "kernel"))
            break;
        if (peal_parser_at(p, "{"))
            braces++;
        else if (peal_parser_at(p, "}") && braces > 0)
            braces--;
        peal_parser_step(p);
        moved = true;
    }
    p->panic = false;
}

bool peal_parse_block(struct peal_parser *p, struct peal_stmt **out)
{
    struct peal_pos open = p->token.pos;
    struct peal_stmt **tail = out;
    if (!peal_parser_want(p, "{") || !peal_parser_enter(p))
        return false;
    while (!p->gave_up && !peal_parser_at(p, "}")) {
        if (p->token.kind == PEAL_TOKEN_END || (p->token.first && peal_parser_at(p, "kernel"))) {
            size_t errors = p->errors;
            peal_parser_expected(p, "'}'");
            if (p->errors > errors)
                peal_diag_note(p->diags, open, "the block starts here");
            break;
        }
        struct peal_pos start = p->token.pos;
        struct peal_stmt *stmt = parse_stmt(p);
        if (!stmt || p->panic)
            skip_stmt(p, start);
        if (!stmt)
            continue;
        *tail = stmt;
        while (*tail)
            tail = &(*tail)->next;
    }
    peal_parser_leave(p);
    return !p->panic && !p->gave_up && peal_parser_want(p, "}");
}
