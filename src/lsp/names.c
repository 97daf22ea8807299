/* SPDX-License-Identifier: Apache-2.0 */
/* What the names of a text stand for. The tokens are the skeleton: they exist whether the text parses or not. The
 * tree, or what could be made of it, says for the place of a name which symbol or kernel it is; for all other names the
 * tables are asked. The last part of each name's answer is therefore the parser's own. */
#include "lsp/document.h"

#include <stdlib.h>
#include <string.h>

struct namer {
    struct lsp_document *doc;
    const struct peal_kernel *kernel;
};

/* The token that begins at the place; NULL: none, or it is in another text. */
static struct lsp_token *token_of(const struct namer *n, const struct peal_pos *pos)
{
    if (pos->source != &n->doc->source || !pos->line)
        return NULL;
    size_t at = lsp_place(n->doc, pos).at;
    uint32_t token = lsp_token_at(n->doc, at);
    for (; token < n->doc->tokens.len && n->doc->tokens.at[token].range.at < at; token++)
        continue;
    if (token >= n->doc->tokens.len || n->doc->tokens.at[token].range.at != at)
        return NULL;
    return &n->doc->tokens.at[token];
}

static bool token_has(const struct namer *n, const struct lsp_token *token, const char *name)
{
    return token && lsp_token_is(n->doc, (uint32_t)(token - n->doc->tokens.at), name);
}

static void name_symbol(const struct namer *n, struct lsp_token *token,
                        const struct peal_symbol *symbol)
{
    if (!token || !symbol || !token_has(n, token, symbol->name))
        return;
    token->meaning = symbol->kind == PEAL_SYMBOL_BUILTIN ? LSP_WORD : LSP_SYMBOL;
    token->of.symbol = symbol;
    token->declares = symbol->kind != PEAL_SYMBOL_BUILTIN && token_of(n, &symbol->pos) == token;
}

static const struct peal_reduce_decl *user_reduction(const struct namer *n, const char *name)
{
    return n->doc->module ? peal_module_find_reduction(n->doc->module, name) : NULL;
}

static void name_reduction(struct lsp_token *token, const struct peal_reduce_decl *reduction)
{
    token->meaning = LSP_REDUCTION;
    token->of.reduction = reduction;
}

static void name_expr(struct peal_expr *expr, void *context)
{
    const struct namer *n = context;
    if (expr->kind != PEAL_EXPR_NAME && expr->kind != PEAL_EXPR_CALL)
        return;
    struct lsp_token *token = token_of(n, &expr->pos);
    if (!token_has(n, token, expr->name))
        return;
    const struct peal_reduce_decl *reduction = expr->symbol ? NULL : user_reduction(n, expr->name);
    if (expr->symbol)
        name_symbol(n, token, expr->symbol);
    else if (reduction)
        name_reduction(token, reduction);
}

/* `y max= x`: the name before the `=` of the statement. */
static void name_accumulate(const struct namer *n, const struct peal_stmt *stmt)
{
    struct lsp_token *token = token_of(n, &stmt->pos);
    const struct lsp_token *end = n->doc->tokens.at + n->doc->tokens.len;
    for (; token && token + 1 < end; token++) {
        uint32_t next = (uint32_t)(token - n->doc->tokens.at) + 1;
        if (!lsp_token_is(n->doc, next, "=") && !lsp_token_is(n->doc, next, "+="))
            continue;
        const struct peal_reduce_decl *reduction = user_reduction(n, stmt->name);
        if (!token_has(n, token, stmt->name))
            return;
        if (stmt->reduce_symbol)
            name_symbol(n, token, stmt->reduce_symbol);
        else if (reduction)
            name_reduction(token, reduction);
        return;
    }
}

/* A call by a contract's name: the algorithm, the last argument, is the end of the kernel's name. */
static void name_call(const struct namer *n, const struct peal_stmt *stmt)
{
    struct lsp_token *token = token_of(n, &stmt->pos);
    enum peal_contract contract;
    /* y = allreduce(x, sum): the name comes later in the statement */
    for (int i = 0; i < 12 && token && !token_has(n, token, stmt->name); i++)
        token = token + 1 < n->doc->tokens.at + n->doc->tokens.len ? token + 1 : NULL;
    if (!token || !stmt->callee)
        return;
    token->meaning = LSP_KERNEL;
    token->of.kernel = stmt->callee;
    if (strcmp(stmt->callee->name, stmt->name) == 0)
        return;
    if (peal_contract_find(stmt->name, strlen(stmt->name), &contract))
        token->meaning = LSP_CONTRACT;
    for (struct peal_expr *arg = stmt->args; arg; arg = arg->next) {
        struct lsp_token *last = token_of(n, &arg->pos);
        bool is_algorithm = !arg->next && arg->kind == PEAL_EXPR_NAME && !arg->symbol &&
                            token_has(n, last, arg->name) && last->meaning != LSP_REDUCTION;
        enum peal_reduction reduce;
        if (!is_algorithm || peal_reduce_find(arg->name, strlen(arg->name), &reduce))
            continue;
        last->meaning = LSP_ALGORITHM;
        last->of.kernel = stmt->callee;
    }
}

static void name_stmts(struct namer *n, struct peal_stmt *stmt)
{
    for (; stmt; stmt = stmt->next) {
        peal_stmt_walk_exprs(stmt, name_expr, n);
        if (stmt->kind == PEAL_STMT_ACCUMULATE)
            name_accumulate(n, stmt);
        if (stmt->kind == PEAL_STMT_CALL)
            name_call(n, stmt);
        name_stmts(n, stmt->body);
        name_stmts(n, stmt->other);
    }
}

static struct lsp_block *block_at(const struct namer *n, const struct lsp_token *name)
{
    uint32_t token = (uint32_t)(name - n->doc->tokens.at);
    struct lsp_block *block = lsp_block_of(n->doc, token);
    return block && block->name == token ? block : NULL;
}

static void name_kernel(struct namer *n, struct peal_kernel *kernel)
{
    struct lsp_token *token = token_of(n, &kernel->pos);
    struct lsp_block *block = token ? block_at(n, token) : NULL;
    if (!block || !token_has(n, token, kernel->name))
        return;
    n->kernel = block->kernel = kernel;
    token->meaning = LSP_KERNEL;
    token->declares = true;
    token->of.kernel = kernel;
    token = kernel->implements ? token_of(n, &kernel->implements_pos) : NULL;
    if (token)
        token->meaning = LSP_CONTRACT;
    for (const struct peal_symbol *s = kernel->symbols; s; s = s->next)
        name_symbol(n, token_of(n, &s->pos), s);
    for (int i = 0; i < kernel->nparams; i++) /* where deduce has not come to them */
        name_symbol(n, token_of(n, &kernel->params[i]->pos), kernel->params[i]);
    for (int i = 0; i < kernel->nparams; i++) {
        struct peal_symbol *param = kernel->params[i];
        struct peal_expr *const exprs[] = {param->shape[0], param->shape[1], param->initial};
        for (int k = 0; k < 3; k++)
            peal_expr_walk(exprs[k], name_expr, n);
    }
    name_stmts(n, kernel->body);
}

/* Its operands are names of the declaration alone. */
static void name_reduce(struct namer *n, const struct peal_reduce_decl *reduction)
{
    struct lsp_token *token = token_of(n, &reduction->pos);
    struct lsp_block *block = token ? block_at(n, token) : NULL;
    if (!block)
        return;
    block->reduction = reduction;
    name_reduction(token, reduction);
    token->declares = true;
    for (uint32_t i = block->name + 1; i <= block->close && i < n->doc->tokens.len; i++) {
        for (int k = 0; k < 2; k++) {
            if (!reduction->operands[k] || !lsp_token_is(n->doc, i, reduction->operands[k]))
                continue;
            n->doc->tokens.at[i].meaning = LSP_OPERAND;
            n->doc->tokens.at[i].of.operand = &reduction->operands[k];
            n->doc->tokens.at[i].declares = i == block->name + 2 + 2 * (uint32_t)k;
        }
    }
}

/* What a name means that the tree does not know. */
static enum lsp_meaning by_tables(const char *text, size_t len, bool is_call)
{
    enum peal_contract contract;
    enum peal_reduction reduce;
    enum peal_dtype dtype;
    enum peal_fn fn;
    const struct peal_word *word = peal_word_find(text, len);
    if (word && (is_call || word->role != PEAL_WORD_IS_FUNCTION))
        return word->role == PEAL_WORD_IS_FUNCTION ? LSP_FUNCTION : LSP_WORD;
    if (peal_reduce_find(text, len, &reduce))
        return LSP_REDUCE;
    if (is_call && peal_fn_find(text, len, &fn))
        return LSP_FUNCTION;
    if (peal_dtype_find(text, len, &dtype))
        return LSP_TYPE;
    return is_call && peal_contract_find(text, len, &contract) ? LSP_CONTRACT : LSP_NOTHING;
}

/* ---- tokens ---- */

/* All tokens; the hash is of their texts, whatever stands between them. */
static bool read_tokens(struct lsp_document *doc)
{
    struct peal_lexer lexer;
    doc->hash = 0;
    peal_lexer_init(&lexer, &doc->source);
    for (;;) {
        struct peal_token token = peal_lexer_next(&lexer);
        if (token.kind == PEAL_TOKEN_END)
            return true;
        size_t at = (size_t)(token.text - doc->source.text) - (token.kind == PEAL_TOKEN_STRING);
        if (token.kind == PEAL_TOKEN_BAD && at && doc->source.text[at - 1] == '"')
            at--; /* a string that does not end */
        struct lsp_token kept = {
            {at, at + token.pos.len}, token.kind, token.first, LSP_NOTHING, false, {NULL}};
        doc->hash = peal_hash_bytes(doc->source.text + at, token.pos.len, doc->hash + 1);
        if (!peal_vec_push(&doc->tokens, kept))
            return false;
    }
}

/* Kernels and reductions begin on a line of their own, as the parser has it. */
static bool find_blocks(struct lsp_document *doc)
{
    uint32_t count = (uint32_t)doc->tokens.len;
    for (uint32_t i = 0; i < count; i++) {
        bool is_kernel = lsp_token_is(doc, i, "kernel");
        bool begins =
            is_kernel || (lsp_token_is(doc, i, "reduce") && lsp_token_is(doc, i + 2, "("));
        if (!begins || !doc->tokens.at[i].first || i + 1 >= count ||
            doc->tokens.at[i + 1].kind != PEAL_TOKEN_NAME)
            continue;
        struct lsp_block block = {.word = i, .name = i + 1, .open = count, .close = count};
        if (!peal_vec_push(&doc->blocks, block))
            return false;
    }
    for (size_t b = 0; b < doc->blocks.len; b++) {
        struct lsp_block *block = &doc->blocks.at[b];
        uint32_t end = b + 1 < doc->blocks.len ? block[1].word : count, depth = 0;
        block->open = block->close = end;
        for (uint32_t i = block->name; i < end && block->close == end; i++) {
            if (lsp_token_is(doc, i, "{") && depth++ == 0)
                block->open = i;
            if (lsp_token_is(doc, i, "}") && depth && --depth == 0)
                block->close = i;
        }
        if (block->close == end && end > block->name)
            block->close = end - 1;
    }
    return true;
}

bool lsp_analyse(struct lsp_document *doc, const struct peal_module *library)
{
    if (doc->analysed)
        return true;
    doc->source = (struct peal_source){doc->path ? doc->path : doc->uri, peal_text_get(&doc->text),
                                       doc->text.len};
    if (!read_tokens(doc) || !find_blocks(doc))
        return false;
    enum peal_status status = peal_parse_partial(&doc->source, &doc->diags, &doc->module);
    if (doc->module) {
        /* Where the syntax is wrong, it is all that is said. */
        struct peal_diags *diags = status == PEAL_OK ? &doc->diags : NULL;
        doc->module->keeps_lengths = true;
        enum peal_status deduced = peal_deduce(doc->module, library, diags);
        if (status == PEAL_OK)
            status = deduced;
    }
    if (status == PEAL_NO_MEMORY)
        return false;
    struct namer n = {.doc = doc};
    for (size_t i = 0; i < doc->tokens.len; i++) {
        struct lsp_token *t = &doc->tokens.at[i];
        if (t->kind == PEAL_TOKEN_NAME)
            t->meaning = by_tables(doc->source.text + t->range.at, t->range.end - t->range.at,
                                   lsp_token_is(doc, (uint32_t)i + 1, "("));
    }
    for (struct peal_reduce_decl *r = doc->module ? doc->module->reductions : NULL; r; r = r->next)
        name_reduce(&n, r);
    for (struct peal_kernel *k = doc->module ? doc->module->kernels : NULL; k; k = k->next)
        name_kernel(&n, k);
    doc->analysed = true;
    return true;
}
