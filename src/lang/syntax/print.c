/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and statements as text. */
#include "lang/syntax/print.h"

#include <assert.h>
#include <string.h>

enum { WIDEST = 100 };

static void print_stmts(const struct peal_stmt *stmt, int indent, struct peal_text *out);

static void print_elem(struct peal_elem elem, struct peal_text *out)
{
    if (elem.generic)
        peal_text_puts(out, "T");
    else
        peal_text_puts(out, peal_dtype_name(elem.dtype));
}

static void print_shape(const struct peal_symbol *symbol, struct peal_text *out)
{
    if (!symbol->shape[0])
        return;
    peal_text_puts(out, "[");
    peal_print_expr(symbol->shape[0], out);
    if (symbol->shape[1]) {
        peal_text_puts(out, ", ");
        peal_print_expr(symbol->shape[1], out);
    }
    peal_text_puts(out, "]");
}

static void print_memory(const struct peal_symbol *symbol, struct peal_text *out)
{
    print_elem(symbol->type.elem, out);
    print_shape(symbol, out);
}

static void print_decl(const struct peal_symbol *symbol, struct peal_text *out)
{
    static const char *const modes[] = {"", "shared ", "raw ", "raw uninitialised "};
    switch (symbol->kind) {
    case PEAL_SYMBOL_SIGNAL:
        peal_text_printf(out, "signal %s%s", modes[symbol->mode], symbol->name);
        print_shape(symbol, out);
        break;
    case PEAL_SYMBOL_CHANNEL:
        peal_text_printf(out, "channel %s", symbol->name);
        break;
    default:
        assert(symbol->kind == PEAL_SYMBOL_BUFFER && symbol->place != PEAL_PLACE_PARAM);
        peal_text_puts(out, symbol->place == PEAL_PLACE_WINDOW ? "window " : "private ");
        if (symbol->type.elem.wide)
            peal_text_puts(out, "wide ");
        peal_text_printf(out, "%s: ", symbol->name);
        print_memory(symbol, out);
    }
}

static void print_block(const struct peal_stmt *body, int indent, struct peal_text *out)
{
    peal_text_puts(out, " {\n");
    print_stmts(body, indent + 1, out);
    peal_text_printf(out, "%*s}", indent * 4, "");
}

static void print_if(const struct peal_stmt *stmt, int indent, struct peal_text *out)
{
    for (;;) {
        peal_text_puts(out, "if ");
        peal_print_expr(stmt->a, out);
        print_block(stmt->body, indent, out);
        if (!stmt->other)
            return;
        peal_text_puts(out, " else");
        bool chained = stmt->other->kind == PEAL_STMT_IF && !stmt->other->next;
        if (!chained) {
            print_block(stmt->other, indent, out);
            return;
        }
        peal_text_puts(out, " ");
        stmt = stmt->other;
    }
}

static void print_string(const char *text, struct peal_text *out)
{
    peal_text_puts(out, "\"");
    for (; *text; text++) {
        switch (*text) {
        case '"':
            peal_text_puts(out, "\\\"");
            break;
        case '\\':
            peal_text_puts(out, "\\\\");
            break;
        case '\n':
            peal_text_puts(out, "\\n");
            break;
        case '\t':
            peal_text_puts(out, "\\t");
            break;
        default:
            peal_text_add(out, text, 1);
        }
    }
    peal_text_puts(out, "\"");
}

/* a <mark> b */
static void print_pair(const struct peal_expr *a, const char *mark, const struct peal_expr *b,
                       struct peal_text *out)
{
    peal_print_expr(a, out);
    peal_text_puts(out, mark);
    peal_print_expr(b, out);
}

static void print_let(const struct peal_stmt *stmt, struct peal_text *out)
{
    if (stmt->symbol->name[0] == '#') { /* an atomic whose result has no name */
        peal_print_expr(stmt->a, out);
        return;
    }
    peal_text_printf(out, "let %s", stmt->symbol->name);
    if (stmt->typed) {
        peal_text_puts(out, stmt->symbol->wide_written ? ": wide " : ": ");
        print_memory(stmt->symbol, out);
    }
    peal_text_puts(out, " = ");
    peal_print_expr(stmt->a, out);
}

static void print_for(const struct peal_stmt *stmt, const char *word, struct peal_text *out)
{
    peal_text_printf(out, "%s %s in ", word, stmt->symbol->name);
    if (stmt->kind == PEAL_STMT_FOR_PEERS)
        peal_text_puts(out, "peers");
    else
        print_pair(stmt->a, " .. ", stmt->b, out);
    if (stmt->kind == PEAL_STMT_FOR && stmt->c) {
        peal_text_puts(out, " step ");
        peal_print_expr(stmt->c, out);
    }
}

static void print_call(const struct peal_stmt *stmt, struct peal_text *out)
{
    peal_text_printf(out, "%s(", stmt->name);
    for (const struct peal_expr *arg = stmt->args; arg; arg = arg->next) {
        peal_print_expr(arg, out);
        if (arg->next)
            peal_text_puts(out, ", ");
    }
    peal_text_puts(out, ")");
}

static void print_accumulate(const struct peal_stmt *stmt, struct peal_text *out)
{
    if (stmt->exclusive)
        peal_text_puts(out, "exclusive ");
    peal_print_expr(stmt->a, out);
    if (strcmp(stmt->name, "sum") == 0)
        peal_text_puts(out, " += ");
    else
        peal_text_printf(out, " %s= ", stmt->name);
    peal_print_expr(stmt->b, out);
}

static void print_send(const struct peal_stmt *stmt, struct peal_text *out)
{
    peal_text_puts(out, "send ");
    peal_print_expr(stmt->a, out);
    peal_text_puts(out, " to ");
    peal_print_peer(stmt->b, out);
    if (stmt->c)
        peal_text_printf(out, " on %s", stmt->c->name);
}

void peal_print_ensured(const struct peal_stmt *stmt, struct peal_text *out)
{
    print_pair(stmt->a, " == ", stmt->b, out);
    if (stmt->c) {
        peal_text_puts(out, " where ");
        peal_print_expr(stmt->c, out);
    }
}

/* The forms without a body. */
static void print_simple(const struct peal_stmt *stmt, struct peal_text *out)
{
    switch (stmt->kind) {
    case PEAL_STMT_DECL:
        print_decl(stmt->symbol, out);
        break;
    case PEAL_STMT_GRID:
        peal_text_puts(out, "grid ");
        print_pair(stmt->a, ", ", stmt->b, out);
        if (stmt->torus)
            peal_text_puts(out, " torus");
        break;
    case PEAL_STMT_TREE:
        peal_text_puts(out, "tree ");
        peal_print_expr(stmt->a, out);
        if (stmt->b) {
            peal_text_puts(out, " from ");
            peal_print_expr(stmt->b, out);
        }
        break;
    case PEAL_STMT_LET:
        print_let(stmt, out);
        break;
    case PEAL_STMT_VAR:
        peal_text_printf(out, "var %s = ", stmt->symbol->name);
        peal_print_expr(stmt->a, out);
        break;
    case PEAL_STMT_ASSIGN:
        print_pair(stmt->a, " = ", stmt->b, out);
        break;
    case PEAL_STMT_ACCUMULATE:
        print_accumulate(stmt, out);
        break;
    case PEAL_STMT_NOTIFY:
        peal_text_puts(out, "notify ");
        peal_print_ordering(&stmt->ordering, out);
        print_pair(stmt->a, stmt->is_set ? " = " : " += ", stmt->b, out);
        break;
    case PEAL_STMT_WAIT:
        peal_text_puts(out, "wait ");
        peal_print_ordering(&stmt->ordering, out);
        print_pair(stmt->a, stmt->is_equal ? " == " : " >= ", stmt->b, out);
        if (stmt->back)
            peal_text_printf(out, " at launch - %u", stmt->back);
        break;
    case PEAL_STMT_SEND:
        print_send(stmt, out);
        break;
    case PEAL_STMT_FLUSH:
        peal_text_puts(out, "flush to ");
        peal_print_expr(stmt->a, out);
        break;
    case PEAL_STMT_FENCE: {
        struct peal_text words = {0};
        peal_print_ordering(&stmt->ordering, &words);
        peal_text_printf(out, "fence%s%.*s", words.len ? " " : "",
                         (int)(words.len ? words.len - 1 : 0), peal_text_get(&words));
        peal_text_release(&words);
        break;
    }
    case PEAL_STMT_TAKE:
        peal_text_puts(out, "take ");
        peal_print_ordering(&stmt->ordering, out);
        print_pair(stmt->a, " from ", stmt->b, out);
        peal_text_puts(out, " to ");
        peal_print_expr(stmt->c, out);
        break;
    case PEAL_STMT_FREE:
        peal_text_printf(out, "free %s", stmt->a->name);
        break;
    case PEAL_STMT_POST:
        if (stmt->b) {
            print_pair(stmt->b, " = ", stmt->a, out);
            break;
        }
        print_let(stmt, out);
        break;
    case PEAL_STMT_AWAIT:
        peal_text_printf(out, "wait %s", stmt->a->name);
        if (stmt->b) {
            peal_text_puts(out, " into ");
            peal_print_expr(stmt->b, out);
        }
        break;
    case PEAL_STMT_ENSURES:
        peal_text_puts(out, "ensures ");
        peal_print_ensured(stmt, out);
        break;
    case PEAL_STMT_ASSERT:
        peal_text_puts(out, stmt->required ? "requires " : "assert ");
        peal_print_expr(stmt->a, out);
        if (stmt->required)
            break;
        peal_text_puts(out, ", ");
        print_string(stmt->name, out);
        break;
    case PEAL_STMT_CALL:
        print_call(stmt, out);
        break;
    default:
        assert(!"a statement without a body");
    }
}

/* A statement with its body, every line indented by `indent` times four spaces. */
static void print_stmt(const struct peal_stmt *stmt, int indent, struct peal_text *out)
{
    peal_text_printf(out, "%*s", indent * 4, "");
    switch (stmt->kind) {
    case PEAL_STMT_FOR:
    case PEAL_STMT_FOR_PEERS:
        print_for(stmt, "for", out);
        print_block(stmt->body, indent, out);
        break;
    case PEAL_STMT_LANE:
        if (stmt->symbol)
            print_for(stmt, "lane", out);
        else
            peal_text_puts(out, "lane");
        if (stmt->c) {
            peal_text_puts(out, " block ");
            peal_print_expr(stmt->c, out);
        }
        print_block(stmt->body, indent, out);
        break;
    case PEAL_STMT_IF:
        print_if(stmt, indent, out);
        break;
    case PEAL_STMT_WHEN:
        peal_text_puts(out, "when ");
        peal_print_expr(stmt->a, out);
        print_block(stmt->body, indent, out);
        break;
    case PEAL_STMT_SCOPE:
        peal_text_printf(out, "scope %s", stmt->name);
        print_block(stmt->body, indent, out);
        break;
    default:
        print_simple(stmt, out);
    }
    peal_text_puts(out, "\n");
}

static void print_stmts(const struct peal_stmt *stmt, int indent, struct peal_text *out)
{
    for (; stmt; stmt = stmt->next)
        print_stmt(stmt, indent, out);
}

static void print_param(const struct peal_symbol *param, struct peal_text *out)
{
    static const char *const dirs[] = {"", "in ", "out ", "inout "};
    switch (param->kind) {
    case PEAL_SYMBOL_INT:
    case PEAL_SYMBOL_INTS:
        if (param->is_local)
            peal_text_puts(out, "local ");
        if (param->is_capacity)
            peal_text_puts(out, "capacity ");
        peal_text_printf(out, "%s: int", param->name);
        print_shape(param, out);
        if (param->initial) {
            peal_text_puts(out, " = ");
            peal_print_expr(param->initial, out);
        }
        break;
    case PEAL_SYMBOL_REDUCE:
        peal_text_printf(out, "%s: reduce", param->name);
        break;
    default:
        peal_text_printf(out, "%s%s: %s", dirs[param->dir], param->name,
                         param->is_window ? "window " : "");
        print_memory(param, out);
    }
}

static void print_params(const struct peal_kernel *kernel, const char *separator,
                         struct peal_text *out)
{
    for (int i = 0; i < kernel->nparams; i++) {
        if (i)
            peal_text_puts(out, separator);
        print_param(kernel->params[i], out);
    }
}

static void print_doc(const char *doc, struct peal_text *out)
{
    while (doc && *doc) {
        size_t len = strcspn(doc, "\n");
        peal_text_puts(out, len ? "// " : "//");
        peal_text_add(out, doc, len);
        peal_text_puts(out, "\n");
        doc += len;
        doc += *doc == '\n';
    }
}

void peal_print_signature(const struct peal_kernel *kernel, struct peal_text *out)
{
    peal_text_printf(out, "%s(", kernel->name);
    print_params(kernel, ", ", out);
    peal_text_puts(out, ")");
    if (kernel->implements)
        peal_text_printf(out, " implements %s", kernel->implements);
}

void peal_print_kernel(const struct peal_kernel *kernel, struct peal_text *out)
{
    print_doc(kernel->doc, out);
    struct peal_text head = {0};
    struct peal_text promise = {0};
    if (kernel->implements)
        peal_text_printf(&promise, " implements %s", kernel->implements);
    print_params(kernel, ", ", &head);
    /* "kernel name(...) implements c {" on one line if it fits, otherwise one parameter per line */
    size_t len = strlen("kernel () {") + strlen(kernel->name) + head.len + promise.len;
    peal_text_printf(out, "kernel %s(", kernel->name);
    if (len <= WIDEST) {
        peal_text_puts(out, peal_text_get(&head));
    } else {
        peal_text_puts(out, "\n        ");
        print_params(kernel, ",\n        ", out);
    }
    peal_text_printf(out, ")%s", peal_text_get(&promise));
    print_block(kernel->body, 0, out);
    peal_text_puts(out, "\n");
    out->failed |= head.failed || promise.failed;
    peal_text_release(&head);
    peal_text_release(&promise);
}

void peal_print_reduction(const struct peal_reduce_decl *reduce, struct peal_text *out)
{
    print_doc(reduce->doc, out);
    peal_text_printf(out, "reduce %s(%s, %s)", reduce->name, reduce->operands[0],
                     reduce->operands[1]);
    if (reduce->flags & PEAL_FORMULA_COMMUTATIVE)
        peal_text_puts(out, " commutative");
    if (reduce->flags & PEAL_FORMULA_ASSOCIATIVE)
        peal_text_puts(out, " associative");
    peal_text_puts(out, " = ");
    peal_print_expr(reduce->value, out);
    peal_text_puts(out, "\n");
}

void peal_print_module(const struct peal_module *module, struct peal_text *out)
{
    for (const struct peal_reduce_decl *r = module->reductions; r; r = r->next) {
        peal_print_reduction(r, out);
        peal_text_puts(out, r->next || module->kernels ? "\n" : "");
    }
    for (const struct peal_kernel *kernel = module->kernels; kernel; kernel = kernel->next) {
        peal_print_kernel(kernel, out);
        if (kernel->next)
            peal_text_puts(out, "\n");
    }
}
