/* SPDX-License-Identifier: Apache-2.0 */
/* Where a name is declared and used; rename; the outline. */
#include "lsp/requests.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct lsp_token *token_of(const struct lsp_subject *subject)
{
    if (!subject->doc || subject->token == UINT32_MAX)
        return NULL;
    return &subject->doc->tokens.at[subject->token];
}

/* Has it a declaration, and does it stand for the same as the other? */
static bool same_thing(const struct lsp_token *a, const struct lsp_token *b)
{
    bool declared = a->meaning == LSP_SYMBOL || a->meaning == LSP_KERNEL ||
                    a->meaning == LSP_REDUCTION || a->meaning == LSP_OPERAND;
    return declared && a->meaning == b->meaning && a->of.thing == b->of.thing;
}

/* The library's text as a file that an editor can open. False: there is no folder, or it cannot be written. */
static bool library_file(const struct peal_lsp *server, const struct peal_source *source,
                         struct peal_text *path)
{
    if (!server->options.folder || !source)
        return false;
    const char *name = strrchr(source->name, '/');
    peal_text_printf(path, "%s/%s", server->options.folder, name ? name + 1 : source->name);
    FILE *file = path->failed ? NULL : fopen(path->at, "wbx");
    if (!file)
        return !path->failed && errno == EEXIST;
    bool good = fwrite(source->text, 1, source->len, file) == source->len;
    (void)fchmod(fileno(file), 0444);
    return fclose(file) == 0 && good;
}

/* A Location in a text of the library, whose places need no document. */
static bool put_library_place(const struct peal_lsp *server, const struct peal_pos *pos,
                              struct peal_json *json)
{
    struct peal_text path = {0};
    bool good = library_file(server, pos->source, &path);
    if (good) {
        struct lsp_position start = {pos->line - 1, pos->col - 1}, end = start;
        struct peal_text uri = {0};
        end.character += pos->len;
        peal_text_printf(&uri, "file://%s", path.at);
        peal_json_object(json);
        peal_json_put_string(json, "uri", peal_text_get(&uri));
        peal_json_put_object(json, "range");
        lsp_put_position(json, "start", start);
        lsp_put_position(json, "end", end);
        peal_json_object_end(json);
        peal_json_object_end(json);
        peal_text_release(&uri);
    }
    peal_text_release(&path);
    return good;
}

static void put_location(struct peal_json *json, const struct lsp_document *doc,
                         struct lsp_range range)
{
    peal_json_object(json);
    peal_json_put_string(json, "uri", doc->uri);
    lsp_put_range(json, "range", doc, range);
    peal_json_object_end(json);
}

void lsp_definition(struct peal_lsp *server, const struct peal_json_value *params,
                    struct lsp_reply *reply)
{
    struct lsp_subject subject = lsp_subject(server, params, reply);
    const struct lsp_token *token = token_of(&subject);
    if (!token)
        return;
    bool calls = token->meaning == LSP_KERNEL || token->meaning == LSP_ALGORITHM ||
                 token->meaning == LSP_CONTRACT;
    if (calls && token->of.kernel && token->of.kernel->pos.source != &subject.doc->source) {
        put_library_place(server, &token->of.kernel->pos, &reply->json);
        return;
    }
    for (size_t i = 0; i < subject.doc->tokens.len; i++) {
        const struct lsp_token *other = &subject.doc->tokens.at[i];
        bool found = same_thing(token, other) && other->declares;
        if (calls && other->meaning == LSP_KERNEL && other->declares)
            found = other->of.kernel == token->of.kernel;
        if (found) {
            put_location(&reply->json, subject.doc, other->range);
            return;
        }
    }
}

void lsp_references(struct peal_lsp *server, const struct peal_json_value *params,
                    struct lsp_reply *reply)
{
    struct lsp_subject subject = lsp_subject(server, params, reply);
    const struct lsp_token *token = token_of(&subject);
    const struct peal_json_value *with =
        peal_json_get(peal_json_get(params, "context"), "includeDeclaration");
    if (!subject.doc)
        return;
    peal_json_array(&reply->json);
    for (size_t i = 0; token && i < subject.doc->tokens.len; i++) {
        const struct lsp_token *other = &subject.doc->tokens.at[i];
        bool skipped = other->declares && with && !with->number;
        if (same_thing(token, other) && !skipped)
            put_location(&reply->json, subject.doc, other->range);
    }
    peal_json_array_end(&reply->json);
}

void lsp_highlights(struct peal_lsp *server, const struct peal_json_value *params,
                    struct lsp_reply *reply)
{
    struct lsp_subject subject = lsp_subject(server, params, reply);
    const struct lsp_token *token = token_of(&subject);
    if (!subject.doc)
        return;
    peal_json_array(&reply->json);
    for (size_t i = 0; token && i < subject.doc->tokens.len; i++) {
        if (!same_thing(token, &subject.doc->tokens.at[i]))
            continue;
        peal_json_object(&reply->json);
        lsp_put_range(&reply->json, "range", subject.doc, subject.doc->tokens.at[i].range);
        peal_json_object_end(&reply->json);
    }
    peal_json_array_end(&reply->json);
}

/* ---- rename ---- */

/* False after a refusal. */
static bool may_rename(const struct lsp_subject *subject, struct lsp_reply *reply)
{
    const struct lsp_token *token = token_of(subject);
    char name[256] = "";
    if (token)
        lsp_token_text(subject->doc, subject->token, name);
    bool own_kernel = token && token->meaning == LSP_KERNEL &&
                      token->of.kernel->pos.source == &subject->doc->source;
    if (!token || !same_thing(token, token))
        lsp_refuse(reply, LSP_FAILED, "%s%s%s", token ? "'" : "", name,
                   token ? "' belongs to the language: it cannot be renamed"
                         : "there is no name here");
    else if (token->meaning == LSP_KERNEL && !own_kernel)
        lsp_refuse(reply, LSP_FAILED,
                   "kernel '%s' belongs to the library: it cannot be renamed here", name);
    return reply->error == 0;
}

void lsp_prepare_rename(struct peal_lsp *server, const struct peal_json_value *params,
                        struct lsp_reply *reply)
{
    struct lsp_subject subject = lsp_subject(server, params, reply);
    char name[256];
    if (!subject.doc || !may_rename(&subject, reply))
        return;
    peal_json_object(&reply->json);
    lsp_put_range(&reply->json, "range", subject.doc, token_of(&subject)->range);
    peal_json_put_string(&reply->json, "placeholder",
                         lsp_token_text(subject.doc, subject.token, name));
    peal_json_object_end(&reply->json);
}

static bool is_name(const char *text)
{
    size_t letters =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    bool digit = text[0] >= '0' && text[0] <= '9';
    return text[0] && !text[letters] && letters < 256 && !digit &&
           !peal_word_is_reserved(text, letters);
}

/* Reads the text with the new name: it must be right, and every token must stand for what it stood for. */
static bool keeps_meaning(struct peal_lsp *server, const struct lsp_subject *subject,
                          const char *name, struct lsp_reply *reply)
{
    const struct lsp_document *doc = subject->doc;
    const struct lsp_token *token = token_of(subject);
    struct peal_text text = {0};
    size_t at = 0;
    for (size_t i = 0; i < doc->tokens.len; i++) {
        if (!same_thing(token, &doc->tokens.at[i]))
            continue;
        peal_text_add(&text, doc->text.at + at, doc->tokens.at[i].range.at - at);
        peal_text_puts(&text, name);
        at = doc->tokens.at[i].range.end;
    }
    peal_text_add(&text, doc->text.at + at, doc->text.len - at);
    struct lsp_document *renamed =
        text.failed ? NULL : lsp_document_new(doc->uri, peal_text_get(&text), text.len);
    peal_text_release(&text);
    if (!renamed || !lsp_analyse(renamed, peal_library_module(server->library))) {
        lsp_refuse(reply, LSP_INTERNAL_ERROR, "out of memory");
    } else if (renamed->diags.errors) {
        lsp_refuse(reply, LSP_FAILED, "with '%s' the text would be wrong: %s", name,
                   renamed->diags.list.at[0].message);
    } else {
        const struct lsp_token *now = &renamed->tokens.at[subject->token];
        for (size_t i = 0; i < doc->tokens.len && !reply->error; i++) {
            if (same_thing(token, &doc->tokens.at[i]) != same_thing(now, &renamed->tokens.at[i]))
                lsp_refuse(reply, LSP_FAILED, "'%s' means something else in this text", name);
        }
    }
    lsp_document_free(renamed);
    return reply->error == 0;
}

void lsp_rename(struct peal_lsp *server, const struct peal_json_value *params,
                struct lsp_reply *reply)
{
    struct lsp_subject subject = lsp_subject(server, params, reply);
    const char *name = peal_json_get_text(params, "newName");
    if (!subject.doc || !may_rename(&subject, reply))
        return;
    if (!name || !is_name(name)) {
        lsp_refuse(reply, LSP_INVALID_PARAMS, "'%s' cannot be a name", peal_text_or_empty(name));
        return;
    }
    if (subject.doc->diags.errors) {
        lsp_refuse(reply, LSP_FAILED, "the text has errors: correct them first");
        return;
    }
    if (!keeps_meaning(server, &subject, name, reply))
        return;
    struct peal_json *json = &reply->json;
    peal_json_object(json);
    peal_json_put_object(json, "changes");
    peal_json_put_array(json, subject.doc->uri);
    for (size_t i = 0; i < subject.doc->tokens.len; i++) {
        if (same_thing(token_of(&subject), &subject.doc->tokens.at[i]))
            lsp_put_edit(json, subject.doc, subject.doc->tokens.at[i].range, name, strlen(name));
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_object_end(json);
}

/* ---- the outline ---- */

static void begin_symbol(struct peal_json *json, const struct lsp_document *doc, uint32_t token,
                         int kind, struct lsp_range whole)
{
    char name[256];
    peal_json_object(json);
    peal_json_put_string(json, "name", lsp_token_text(doc, token, name));
    peal_json_put_int(json, "kind", kind);
    lsp_put_range(json, "range", doc, whole);
    lsp_put_range(json, "selectionRange", doc, doc->tokens.at[token].range);
}

/* Kinds of the protocol. */
enum {
    KIND_FUNCTION = 12,
    KIND_VARIABLE = 13,
    KIND_ARRAY = 18,
    KIND_EVENT = 24,
    KIND_OPERATOR = 25
};

static int symbol_kind(const struct peal_symbol *symbol)
{
    switch (symbol->kind) {
    case PEAL_SYMBOL_BUFFER:
        return KIND_ARRAY;
    case PEAL_SYMBOL_SIGNAL:
    case PEAL_SYMBOL_CHANNEL:
        return KIND_EVENT;
    case PEAL_SYMBOL_INT:
    case PEAL_SYMBOL_INTS:
    case PEAL_SYMBOL_REDUCE:
        return KIND_VARIABLE;
    default:
        return 0;
    }
}

void lsp_symbols(struct peal_lsp *server, const struct peal_json_value *params,
                 struct lsp_reply *reply)
{
    const struct lsp_document *doc = lsp_subject(server, params, reply).doc;
    struct peal_json *json = &reply->json;
    if (!doc)
        return;
    peal_json_array(json);
    for (size_t b = 0; b < doc->blocks.len; b++) {
        const struct lsp_block *block = &doc->blocks.at[b];
        struct lsp_range whole = doc->tokens.at[block->word].range;
        uint32_t last =
            block->close < doc->tokens.len ? block->close : (uint32_t)doc->tokens.len - 1;
        whole.end = doc->tokens.at[last].range.end;
        begin_symbol(json, doc, block->name,
                     lsp_token_is(doc, block->word, "kernel") ? KIND_FUNCTION : KIND_OPERATOR,
                     whole);
        if (block->kernel && block->kernel->implements)
            peal_json_put_string(json, "detail", block->kernel->implements);
        peal_json_put_array(json, "children");
        for (uint32_t i = block->name + 1; i <= last; i++) {
            const struct lsp_token *token = &doc->tokens.at[i];
            int kind =
                token->meaning == LSP_SYMBOL && token->declares ? symbol_kind(token->of.symbol) : 0;
            if (!kind)
                continue;
            struct peal_text detail = {0};
            begin_symbol(json, doc, i, kind, token->range);
            lsp_declaration(token->of.symbol, &detail);
            peal_json_put_string(json, "detail", peal_text_get(&detail));
            peal_json_object_end(json);
            peal_text_release(&detail);
        }
        peal_json_array_end(json);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}
