/* SPDX-License-Identifier: Apache-2.0 */
/* Completion. What may come next follows from the tokens before the cursor, and so do the names in scope: both work in
 * a text that does not parse. */
#include "lsp/requests.h"

#include <string.h>

/* Kinds of the protocol. */
enum {
    ITEM_FUNCTION = 3,
    ITEM_VARIABLE = 6,
    ITEM_MODULE = 9,
    ITEM_OPERATOR = 24,
    ITEM_KEYWORD = 14,
    ITEM_SNIPPET = 15,
    ITEM_TYPE = 25,
    ITEM_EVENT = 23
};

struct completer {
    struct peal_lsp *server;
    struct lsp_subject at;
    uint32_t token; /* the one being written, or where it would be */
    struct peal_json *json;
};

static void put_item(struct completer *c, const char *label, int kind, const char *detail,
                     const char *meaning)
{
    struct peal_json *json = c->json;
    peal_json_object(json);
    peal_json_put_string(json, "label", label);
    peal_json_put_int(json, "kind", kind);
    if (detail && detail[0])
        peal_json_put_string(json, "detail", detail);
    if (meaning && meaning[0])
        peal_json_put_string(json, "documentation", meaning);
    peal_json_object_end(json);
}

static void put_words(struct completer *c, unsigned roles)
{
    size_t count;
    const struct peal_word *words = peal_words(&count);
    for (size_t i = 0; i < count; i++) {
        if (!(roles >> words[i].role & 1))
            continue;
        bool is_function = words[i].role == PEAL_WORD_IS_FUNCTION;
        put_item(c, words[i].text, is_function ? ITEM_FUNCTION : ITEM_KEYWORD,
                 peal_word_syntax(&words[i]), peal_word_meaning(&words[i]));
    }
}

static void put_types(struct completer *c)
{
    put_item(c, "T", ITEM_TYPE, NULL, "the element type that is chosen when the plan is made");
    for (int i = 0; i < PEAL_DTYPES; i++)
        put_item(c, peal_dtype_name((enum peal_dtype)i), ITEM_TYPE, NULL, NULL);
}

static void put_contracts(struct completer *c)
{
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++)
        put_item(c, peal_contract_info((enum peal_contract)i)->name, ITEM_MODULE, "contract", NULL);
}

static void put_kernels(struct completer *c, const struct peal_module *module)
{
    for (const struct peal_kernel *k = module ? module->kernels : NULL; k; k = k->next) {
        struct peal_text signature = {0};
        peal_print_signature(k, &signature);
        put_item(c, k->name, ITEM_FUNCTION, peal_text_get(&signature), k->doc);
        peal_text_release(&signature);
    }
}

static void put_functions(struct completer *c)
{
    put_words(c, 1u << PEAL_WORD_IS_FUNCTION);
    for (int i = 0; i < PEAL_FN_COUNT; i++) {
        const struct peal_fn_info *fn = peal_fn_info((enum peal_fn)i);
        if (!peal_word_find(fn->name, strlen(fn->name)))
            put_item(c, fn->name, ITEM_FUNCTION, peal_fn_types_text(fn->types), fn->meaning);
    }
}

static void put_reductions(struct completer *c)
{
    const struct peal_module *module = c->at.doc->module;
    for (int i = 0; i < PEAL_REDUCTIONS; i++)
        put_item(c, peal_reduce_name((enum peal_reduction)i), ITEM_OPERATOR, "reduce operation",
                 NULL);
    for (const struct peal_reduce_decl *r = module ? module->reductions : NULL; r; r = r->next)
        put_item(c, r->name, ITEM_OPERATOR, "reduction of this text", r->doc);
}

/* ---- names in scope ---- */

/* Does the token's place declare a name? `*block`: it belongs to the block that follows. */
static bool declares(const struct lsp_document *doc, const struct lsp_block *of, uint32_t token,
                     bool *block)
{
    static const char *const words[] = {"let",           "var",     "window", "private",
                                        "wide",          "signal",  "shared", "raw",
                                        "uninitialised", "channel", NULL};
    *block = false;
    if (doc->tokens.at[token].kind != PEAL_TOKEN_NAME)
        return false;
    if (token < of->open && token > of->name) /* a parameter */
        return lsp_token_is(doc, token + 1, ":");
    *block = (lsp_token_is(doc, token - 1, "for") || lsp_token_is(doc, token - 1, "lane")) &&
             lsp_token_is(doc, token + 1, "in");
    for (const char *const *word = words; *word && !*block; word++) {
        bool is_modifier = lsp_token_is(doc, token, "wide") || lsp_token_is(doc, token, "shared") ||
                           lsp_token_is(doc, token, "raw") ||
                           lsp_token_is(doc, token, "uninitialised");
        if (lsp_token_is(doc, token - 1, *word))
            return !is_modifier;
    }
    return *block;
}

/* signal a, b: the names after the first. */
static bool is_further(const struct lsp_document *doc, uint32_t token)
{
    if (doc->tokens.at[token].kind != PEAL_TOKEN_NAME || !lsp_token_is(doc, token - 1, ","))
        return false;
    for (uint32_t i = token - 1; i > 0; i--) {
        if (lsp_token_is(doc, i, "signal") || lsp_token_is(doc, i, "channel"))
            return true;
        if (doc->tokens.at[i].first)
            return false;
    }
    return false;
}

static const struct peal_symbol *find_symbol(const struct lsp_block *block, const char *name)
{
    const struct peal_symbol *s = block->kernel ? block->kernel->symbols : NULL;
    while (s && strcmp(s->name, name) != 0)
        s = s->next;
    return s;
}

static void put_name(struct completer *c, const struct lsp_block *block, uint32_t token,
                     bool channels_only)
{
    char name[256];
    struct peal_text detail = {0};
    lsp_token_text(c->at.doc, token, name);
    const struct peal_symbol *symbol = find_symbol(block, name);
    if (symbol)
        lsp_declaration(symbol, &detail);
    bool is_cell =
        symbol && (symbol->kind == PEAL_SYMBOL_SIGNAL || symbol->kind == PEAL_SYMBOL_CHANNEL);
    bool fits = !channels_only || !symbol || symbol->kind == PEAL_SYMBOL_CHANNEL;
    if (fits)
        put_item(c, name, is_cell ? ITEM_EVENT : ITEM_VARIABLE, peal_text_get(&detail), NULL);
    peal_text_release(&detail);
}

static void put_names(struct completer *c, const struct lsp_block *block, bool channels_only)
{
    enum { MAX_NAMES = 1024, MAX_DEPTH = 256 };
    const struct lsp_document *doc = c->at.doc;
    uint32_t names[MAX_NAMES], marks[MAX_DEPTH];
    uint32_t count = 0, depth = 0, waiting = UINT32_MAX;
    for (uint32_t i = block->name + 1; i < c->token && i < doc->tokens.len; i++) {
        bool of_block;
        bool found = declares(doc, block, i, &of_block) || is_further(doc, i);
        if (lsp_token_is(doc, i, "{") && depth < MAX_DEPTH) {
            marks[depth++] = count;
            if (waiting != UINT32_MAX && count < MAX_NAMES)
                names[count++] = waiting;
            waiting = UINT32_MAX;
        } else if (lsp_token_is(doc, i, "}") && depth) {
            count = marks[--depth];
        } else if (found && of_block) {
            waiting = i;
        } else if (found && count < MAX_NAMES) {
            names[count++] = i;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        put_name(c, block, names[i], channels_only);
    for (const struct peal_symbol *s = block->kernel && !channels_only ? block->kernel->symbols
                                                                       : NULL;
         s; s = s->next) {
        if (s->kind == PEAL_SYMBOL_DIM)
            put_item(c, s->name, ITEM_VARIABLE, "dimension", NULL);
    }
}

/* ---- what may come ---- */

static bool after_any(const struct completer *c, const char *const *words)
{
    for (; *words && c->token; words++) {
        if (lsp_token_is(c->at.doc, c->token - 1, *words))
            return true;
    }
    return false;
}

static void put_expression(struct completer *c, const struct lsp_block *block)
{
    put_names(c, block, false);
    put_words(c, 1u << PEAL_WORD_IS_KNOWN | 1u << PEAL_WORD_JOINS);
    put_functions(c);
    put_reductions(c);
}

static void put_statement(struct completer *c, const struct lsp_block *block)
{
    put_words(c, 1u << PEAL_WORD_DECLARES | 1u << PEAL_WORD_CONTROLS | 1u << PEAL_WORD_OPERATES);
    put_names(c, block, false);
    put_contracts(c);
    put_kernels(c, c->at.doc->module);
    put_kernels(c, peal_library_module(c->server->library));
}

static void put_top(struct completer *c)
{
    put_item(c, "kernel", ITEM_KEYWORD, "kernel name(parameters) { ... }", NULL);
    put_item(c, "reduce", ITEM_KEYWORD, "reduce f(a, b) = value", NULL);
}

/* A word that is being written is a token already, and says whether it begins its line. */
static bool begins_line(const struct completer *c)
{
    const struct lsp_document *doc = c->at.doc;
    if (c->token < doc->tokens.len && doc->tokens.at[c->token].range.at < c->at.offset)
        return doc->tokens.at[c->token].first;
    size_t from = c->token ? doc->tokens.at[c->token - 1].range.end : 0;
    return c->at.offset > from && memchr(doc->text.at + from, '\n', c->at.offset - from);
}

static void put_all(struct completer *c)
{
    static const char *const colon[] = {":", NULL}, *const contract[] = {"implements", NULL},
                             *const on[] = {"on", NULL}, *const peer[] = {"to", "from", NULL},
                             *const range[] = {"in", NULL}, *const begins[] = {"{", "}", NULL},
                             *const cells[] = {"wait", "notify", "take", NULL},
                             *const head[] = {"(", ",", NULL};
    const struct lsp_document *doc = c->at.doc;
    const struct lsp_block *block = c->token ? lsp_block_of(doc, c->token - 1) : NULL;
    bool outside = !block || (block->close < doc->tokens.len && c->token > block->close &&
                              lsp_token_is(doc, block->close, "}"));
    bool in_head = block && !outside && c->token <= block->open;
    bool first = begins_line(c);
    bool in_reduction = block && !outside && !lsp_token_is(doc, block->word, "kernel");
    if (outside || (in_reduction && first)) {
        put_top(c);
    } else if (in_reduction) {
        put_functions(c);
    } else if (after_any(c, contract)) {
        put_contracts(c);
    } else if (after_any(c, colon)) {
        put_types(c);
        put_item(c, "int", ITEM_TYPE, NULL, NULL);
        put_item(c, "reduce", ITEM_TYPE, NULL, NULL);
        put_item(c, "window", ITEM_KEYWORD, NULL, NULL);
    } else if (in_head && after_any(c, head)) {
        static const char *const words[] = {"in", "out", "inout", "local", "capacity", NULL};
        for (const char *const *word = words; *word; word++)
            put_item(c, *word, ITEM_KEYWORD, NULL, NULL);
        put_names(c, block, false);
    } else if (in_head) {
        put_item(c, "implements", ITEM_KEYWORD, "implements allreduce", NULL);
        put_names(c, block, false);
    } else if (after_any(c, on)) {
        put_names(c, block, true);
    } else if (first || after_any(c, begins)) {
        put_statement(c, block);
    } else {
        if (after_any(c, cells))
            put_words(c, 1u << PEAL_WORD_MODIFIES);
        if (after_any(c, peer))
            put_words(c, 1u << PEAL_WORD_IS_PORT);
        if (after_any(c, range))
            put_item(c, "peers", ITEM_KEYWORD, "for p in peers", NULL);
        put_expression(c, block);
        put_words(c, 1u << PEAL_WORD_MODIFIES | 1u << PEAL_WORD_OPERATES);
        put_contracts(c);
        put_kernels(c, peal_library_module(c->server->library));
    }
}

/* Is the cursor in a comment or a string? Then there is nothing to complete. */
static bool in_prose(const struct lsp_subject *at)
{
    const struct lsp_document *doc = at->doc;
    size_t line = at->offset;
    if (at->token != UINT32_MAX && doc->tokens.at[at->token].kind == PEAL_TOKEN_STRING)
        return true;
    while (line && doc->text.at[line - 1] != '\n')
        line--;
    for (size_t i = line; i + 1 < at->offset; i++) {
        bool slashes = doc->text.at[i] == '/' && doc->text.at[i + 1] == '/';
        uint32_t token = slashes ? lsp_token_at(doc, i + 1) : UINT32_MAX;
        bool in_token = token != UINT32_MAX && doc->tokens.at[token].range.end > i;
        if (slashes && !in_token)
            return true;
    }
    return false;
}

void lsp_completion(struct peal_lsp *server, const struct peal_json_value *params,
                    struct lsp_reply *reply)
{
    struct completer c = {
        .server = server, .at = lsp_subject(server, params, reply), .json = &reply->json};
    if (!c.at.doc)
        return;
    while (c.token < c.at.doc->tokens.len && c.at.doc->tokens.at[c.token].range.end < c.at.offset)
        c.token++;
    /* A mark or a number that ends here is complete. */
    if (c.token < c.at.doc->tokens.len && c.at.doc->tokens.at[c.token].range.end == c.at.offset &&
        c.at.doc->tokens.at[c.token].kind != PEAL_TOKEN_NAME)
        c.token++;
    peal_json_array(c.json);
    if (!in_prose(&c.at))
        put_all(&c);
    peal_json_array_end(c.json);
}
