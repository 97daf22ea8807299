/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting, inlay hints and semantic tokens: what is shown of a text beside its letters. */
#include "lsp/requests.h"

#include <string.h>

/* ---- formatting ---- */

/* The white space and comments before a token, or at the end. */
struct lsp_gap {
    size_t at, end;
};

static struct lsp_gap next_gap(struct peal_lexer *lexer, const struct peal_source *source,
                               size_t from, bool *more)
{
    struct peal_token token = peal_lexer_next(lexer);
    struct lsp_gap gap = {from,
                          (size_t)(token.text - source->text) - (token.kind == PEAL_TOKEN_STRING)};
    *more = token.kind != PEAL_TOKEN_END;
    return gap;
}

/* Line ends as the document has them. */
static void put_gap_edit(struct peal_json *json, const struct lsp_document *doc, struct lsp_gap old,
                         const char *text, size_t len)
{
    struct peal_text with = {0};
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n' && doc->crlf)
            peal_text_puts(&with, "\r");
        peal_text_add(&with, text + i, 1);
    }
    bool same = with.len == old.end - old.at &&
                (!with.len || memcmp(with.at, doc->text.at + old.at, with.len) == 0);
    if (!same && !with.failed)
        lsp_put_edit(json, doc, (struct lsp_range){old.at, old.end}, peal_text_get(&with),
                     with.len);
    peal_text_release(&with);
}

/* The formatter changes what stands between tokens and nothing else, so the edits are the gaps that differ. */
static void format(struct peal_lsp *server, const struct peal_json_value *params, bool all,
                   struct lsp_reply *reply)
{
    const struct lsp_document *doc = lsp_subject(server, params, reply).doc;
    struct peal_text formatted = {0};
    struct peal_diags diags;
    struct peal_module *module = NULL;
    if (!doc)
        return;
    peal_diags_init(&diags);
    enum peal_status status = peal_parse(&doc->source, &diags, &module);
    if (status != PEAL_OK)
        lsp_refuse(reply, LSP_FAILED, "a text with errors is not formatted%s%s",
                   diags.list.len ? ": " : "", diags.list.len ? diags.list.at[0].message : "");
    peal_module_free(module);
    peal_diags_release(&diags);
    if (status != PEAL_OK)
        return;
    struct lsp_range range = {0, doc->text.len};
    if (!all)
        range = lsp_read_range(doc, peal_json_get(params, "range"));
    peal_format(&doc->source, &formatted);
    struct peal_source after = {doc->source.name, peal_text_get(&formatted), formatted.len};
    struct peal_lexer old, new;
    size_t from = 0, to = 0;
    bool more = !formatted.failed, also = more;
    peal_lexer_init(&old, &doc->source);
    peal_lexer_init(&new, &after);
    peal_json_array(&reply->json);
    while (more && also) {
        struct lsp_gap gap = next_gap(&old, &doc->source, from, &more),
                       wanted = next_gap(&new, &after, to, &also);
        if (gap.at >= range.at && gap.end <= range.end)
            put_gap_edit(&reply->json, doc, gap, after.text + wanted.at, wanted.end - wanted.at);
        from = (size_t)(old.at - doc->source.text);
        to = (size_t)(new.at - after.text);
    }
    peal_json_array_end(&reply->json);
    peal_text_release(&formatted);
}

void lsp_format(struct peal_lsp *server, const struct peal_json_value *params,
                struct lsp_reply *reply)
{
    format(server, params, true, reply);
}

void lsp_format_range(struct peal_lsp *server, const struct peal_json_value *params,
                      struct lsp_reply *reply)
{
    format(server, params, false, reply);
}

/* ---- inlay hints ---- */

struct hinter {
    const struct lsp_document *doc;
    struct lsp_range range;
    struct peal_json *json;
};

static void put_hint(const struct hinter *h, size_t at, const char *label, const char *tooltip,
                     bool after)
{
    if (at < h->range.at || at > h->range.end)
        return;
    peal_json_object(h->json);
    lsp_put_position(h->json, "position", lsp_position(h->doc, at));
    peal_json_put_string(h->json, "label", label);
    if (tooltip)
        peal_json_put_string(h->json, "tooltip", tooltip);
    peal_json_put_bool(h->json, after ? "paddingLeft" : "paddingRight", true);
    peal_json_object_end(h->json);
}

/* What a statement does to the cell of a signal: which place it writes, or NULL. */
static const struct peal_expr *written_cell(const struct peal_stmt *stmt)
{
    const struct peal_expr *value = stmt->a;
    if (stmt->kind == PEAL_STMT_NOTIFY || stmt->kind == PEAL_STMT_TAKE)
        return stmt->a;
    if (stmt->kind != PEAL_STMT_LET && stmt->kind != PEAL_STMT_VAR &&
        stmt->kind != PEAL_STMT_ASSIGN)
        return NULL;
    if (stmt->kind == PEAL_STMT_ASSIGN)
        value = stmt->b;
    bool atomic =
        value && value->kind == PEAL_EXPR_CALL &&
        (value->builtin == PEAL_BUILTIN_FETCH_ADD || value->builtin == PEAL_BUILTIN_COMPARE_SWAP);
    return atomic ? value->a : NULL;
}

static void find_writers(const struct peal_stmt *stmt, const struct peal_symbol *signal,
                         bool *peers, struct peal_text *lines, struct peal_text *places)
{
    for (; stmt; stmt = stmt->next) {
        const struct peal_expr *cell = written_cell(stmt), *root = cell;
        bool remote = false;
        while (root && (root->kind == PEAL_EXPR_AT || root->kind == PEAL_EXPR_SLICE)) {
            remote = remote || root->kind == PEAL_EXPR_AT;
            root = root->a;
        }
        if (root && root->symbol == signal) {
            *peers = *peers || remote;
            peal_text_printf(lines, "%s%u", lines->len ? ", " : "", stmt->pos.line);
            peal_text_printf(places, "%sline %u: ", places->len ? "\n" : "", stmt->pos.line);
            peal_print_expr(cell, places);
        }
        find_writers(stmt->body, signal, peers, lines, places);
        find_writers(stmt->other, signal, peers, lines, places);
    }
}

static void hint_writers(const struct hinter *h, const struct lsp_block *block, uint32_t token)
{
    const struct peal_symbol *signal = h->doc->tokens.at[token].of.symbol;
    struct peal_text lines = {0}, places = {0}, label = {0};
    bool peers = false;
    find_writers(block->kernel->body, signal, &peers, &lines, &places);
    if (lines.len) {
        size_t end = h->doc->tokens.at[token].range.end;
        if (lsp_token_is(h->doc, token + 1, "[")) {
            while (token < block->close && !lsp_token_is(h->doc, token, "]"))
                token++;
            end = h->doc->tokens.at[token].range.end;
        }
        peal_text_printf(&label, "written by %s, line%s %s", peers ? "peers" : "this rank",
                         peal_text_plural(strchr(lines.at, ',') ? 2 : 1), lines.at);
        put_hint(h, end, peal_text_get(&label), peal_text_get(&places), true);
    }
    peal_text_release(&lines);
    peal_text_release(&places);
    peal_text_release(&label);
}

static void hint_token(const struct hinter *h, const struct lsp_block *block, uint32_t i)
{
    static const char *const directions[] = {NULL, "in", "out", "inout"};
    const struct lsp_token *token = &h->doc->tokens.at[i];
    const struct peal_symbol *symbol = token->of.symbol;
    bool is_param = symbol->kind == PEAL_SYMBOL_BUFFER && symbol->place == PEAL_PLACE_PARAM;
    if (is_param && !symbol->dir_written && directions[symbol->dir & 3])
        put_hint(h, token->range.at, directions[symbol->dir & 3],
                 "deduced from what the kernel does", false);
    if (symbol->kind == PEAL_SYMBOL_SIGNAL)
        hint_writers(h, block, i);
    if (symbol->kind == PEAL_SYMBOL_TILE && !symbol->shape[0] && symbol->lengths) {
        struct peal_text type = {0};
        peal_text_puts(&type, ": ");
        lsp_data_type(symbol, &type);
        put_hint(h, token->range.end, peal_text_get(&type), NULL, true);
        peal_text_release(&type);
    }
}

void lsp_hints(struct peal_lsp *server, const struct peal_json_value *params,
               struct lsp_reply *reply)
{
    struct hinter h = {.doc = lsp_subject(server, params, reply).doc, .json = &reply->json};
    if (!h.doc)
        return;
    h.range = lsp_read_range(h.doc, peal_json_get(params, "range"));
    peal_json_array(h.json);
    for (size_t b = 0; b < h.doc->blocks.len; b++) {
        const struct lsp_block *block = &h.doc->blocks.at[b];
        for (uint32_t i = block->name; block->kernel && i <= block->close && i < h.doc->tokens.len;
             i++) {
            if (h.doc->tokens.at[i].meaning == LSP_SYMBOL && h.doc->tokens.at[i].declares)
                hint_token(&h, block, i);
        }
    }
    peal_json_array_end(h.json);
}

/* ---- semantic tokens ---- */

enum {
    TYPE_KEYWORD,
    TYPE_PARAMETER,
    TYPE_VARIABLE,
    TYPE_FUNCTION,
    TYPE_TYPE,
    TYPE_EVENT,
    TYPE_INTERFACE
};
const char *const lsp_token_types[] = {"keyword", "parameter", "variable",  "function",
                                       "type",    "event",     "interface", NULL};

static int symbol_type(const struct peal_symbol *symbol)
{
    switch (symbol->kind) {
    case PEAL_SYMBOL_SIGNAL:
    case PEAL_SYMBOL_CHANNEL:
        return TYPE_EVENT;
    case PEAL_SYMBOL_INT:
    case PEAL_SYMBOL_INTS:
    case PEAL_SYMBOL_REDUCE:
        return TYPE_PARAMETER;
    case PEAL_SYMBOL_BUFFER:
        return symbol->place == PEAL_PLACE_PARAM ? TYPE_PARAMETER : TYPE_VARIABLE;
    default:
        return TYPE_VARIABLE;
    }
}

/* -1: it has none. */
static int token_type(const struct lsp_token *token)
{
    switch (token->meaning) {
    case LSP_WORD:
        return token->of.symbol ? TYPE_VARIABLE : TYPE_KEYWORD;
    case LSP_FUNCTION:
    case LSP_REDUCE:
    case LSP_REDUCTION:
    case LSP_KERNEL:
    case LSP_ALGORITHM:
        return TYPE_FUNCTION;
    case LSP_TYPE:
        return TYPE_TYPE;
    case LSP_CONTRACT:
        return TYPE_INTERFACE;
    case LSP_SYMBOL:
        return symbol_type(token->of.symbol);
    case LSP_OPERAND:
        return TYPE_PARAMETER;
    case LSP_NOTHING:
        break;
    }
    return -1;
}

void lsp_semantic_tokens(struct peal_lsp *server, const struct peal_json_value *params,
                         struct lsp_reply *reply)
{
    const struct lsp_document *doc = lsp_subject(server, params, reply).doc;
    struct peal_json *json = &reply->json;
    struct lsp_position last = {0, 0};
    if (!doc)
        return;
    peal_json_object(json);
    peal_json_put_array(json, "data");
    for (size_t i = 0; i < doc->tokens.len; i++) {
        const struct lsp_token *token = &doc->tokens.at[i];
        int type = token_type(token);
        if (type < 0)
            continue;
        struct lsp_position at = lsp_position(doc, token->range.at);
        peal_json_uint(json, at.line - last.line);
        peal_json_uint(json, at.line == last.line ? at.character - last.character : at.character);
        peal_json_uint(json, token->range.end - token->range.at); /* names are ASCII */
        peal_json_int(json, type);
        peal_json_uint(json, token->declares);
        last = at;
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
}
