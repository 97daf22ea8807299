/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch: a message is one of the requests of the table, a notification, or an answer to a request of ours. */
#include "lsp/server.h"

#include "lsp/requests.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- answers ---- */

void lsp_reply_begin(struct lsp_reply *reply)
{
    *reply = (struct lsp_reply){.error = 0};
    peal_json_init(&reply->json, &reply->text, 0);
}

void lsp_reply_release(struct lsp_reply *reply)
{
    peal_text_release(&reply->text);
    peal_text_release(&reply->why);
}

void lsp_refuse(struct lsp_reply *reply, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    peal_text_release(&reply->why);
    peal_text_vprintf(&reply->why, format, args);
    va_end(args);
    reply->error = error;
}

static void send_text(const struct peal_lsp *server, const struct peal_text *text)
{
    char header[64];
    if (text->failed)
        return;
    int len = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", text->len);
    server->options.write(server->options.context, header, (size_t)len);
    server->options.write(server->options.context, peal_text_get(text), text->len);
}

void lsp_answer(struct peal_lsp *server, const char *id, struct lsp_reply *reply)
{
    struct peal_text out = {0};
    struct peal_json json;
    if (reply->text.failed)
        lsp_refuse(reply, LSP_INTERNAL_ERROR, "out of memory");
    peal_json_init(&json, &out, 0);
    peal_json_object(&json);
    peal_json_put_string(&json, "jsonrpc", "2.0");
    peal_json_key(&json, "id");
    peal_json_raw(&json, id);
    if (reply->error) {
        peal_json_put_object(&json, "error");
        peal_json_put_int(&json, "code", reply->error);
        peal_json_put_string(&json, "message", peal_text_get(&reply->why));
        peal_json_object_end(&json);
    } else {
        peal_json_key(&json, "result");
        peal_json_raw(&json, reply->text.len ? reply->text.at : "null");
    }
    peal_json_object_end(&json);
    send_text(server, &out);
    peal_text_release(&out);
    lsp_reply_release(reply);
}

void lsp_message_begin(struct peal_lsp *server, const char *method, bool is_request,
                       struct lsp_reply *message)
{
    lsp_reply_begin(message);
    peal_json_object(&message->json);
    peal_json_put_string(&message->json, "jsonrpc", "2.0");
    if (is_request)
        peal_json_put_int(&message->json, "id", ++server->requests);
    peal_json_put_string(&message->json, "method", method);
    peal_json_key(&message->json, "params");
}

void lsp_message_end(struct peal_lsp *server, struct lsp_reply *message)
{
    peal_json_object_end(&message->json);
    send_text(server, &message->text);
    lsp_reply_release(message);
}

void lsp_put_position(struct peal_json *json, const char *key, struct lsp_position position)
{
    peal_json_put_object(json, key);
    peal_json_put_uint(json, "line", position.line);
    peal_json_put_uint(json, "character", position.character);
    peal_json_object_end(json);
}

void lsp_put_range(struct peal_json *json, const char *key, const struct lsp_document *doc,
                   struct lsp_range range)
{
    if (key)
        peal_json_key(json, key);
    peal_json_object(json);
    lsp_put_position(json, "start", lsp_position(doc, range.at));
    lsp_put_position(json, "end", lsp_position(doc, range.end));
    peal_json_object_end(json);
}

void lsp_put_edit(struct peal_json *json, const struct lsp_document *doc, struct lsp_range range,
                  const char *text, size_t len)
{
    peal_json_object(json);
    lsp_put_range(json, "range", doc, range);
    peal_json_key(json, "newText");
    peal_json_bytes(json, text, len);
    peal_json_object_end(json);
}

/* ---- parameters ---- */

struct lsp_document *lsp_find_document(const struct peal_lsp *server, const char *uri)
{
    for (size_t i = 0; uri && i < server->documents.len; i++) {
        if (strcmp(server->documents.at[i]->uri, uri) == 0)
            return server->documents.at[i];
    }
    return NULL;
}

static uint32_t read_uint(const struct peal_json_value *object, const char *key)
{
    const struct peal_json_value *value = peal_json_get(object, key);
    if (!value || value->kind != PEAL_JSON_NUMBER || value->number < 0)
        return 0;
    return (uint32_t)peal_size_min((uint64_t)value->number, UINT32_MAX);
}

static size_t read_offset(const struct lsp_document *doc, const struct peal_json_value *position)
{
    return lsp_offset(
        doc, (struct lsp_position){read_uint(position, "line"), read_uint(position, "character")});
}

struct lsp_range lsp_read_range(const struct lsp_document *doc, const struct peal_json_value *range)
{
    size_t at = read_offset(doc, peal_json_get(range, "start")),
           end = read_offset(doc, peal_json_get(range, "end"));
    if (end < at)
        return (struct lsp_range){end, at};
    return (struct lsp_range){at, end};
}

struct lsp_subject lsp_subject(struct peal_lsp *server, const struct peal_json_value *params,
                               struct lsp_reply *reply)
{
    struct lsp_subject subject = {.token = UINT32_MAX};
    const char *uri = peal_json_get_text(peal_json_get(params, "textDocument"), "uri");
    subject.doc = lsp_find_document(server, uri);
    if (!subject.doc) {
        lsp_refuse(reply, LSP_INVALID_PARAMS, "'%s' is not open", peal_text_or_empty(uri));
        return subject;
    }
    if (!lsp_analyse(subject.doc, peal_library_module(server->library))) {
        lsp_forget(subject.doc);
        lsp_refuse(reply, LSP_INTERNAL_ERROR, "out of memory");
        subject.doc = NULL;
        return subject;
    }
    const struct peal_json_value *position = peal_json_get(params, "position");
    if (position) {
        subject.offset = read_offset(subject.doc, position);
        subject.token = lsp_token_at(subject.doc, subject.offset);
    }
    return subject;
}

/* ---- the life of the server ---- */

static bool can(const struct peal_json_value *params, const char *a, const char *b, const char *c)
{
    const struct peal_json_value *at = peal_json_get(peal_json_get(params, "capabilities"), a);
    at = peal_json_get(at, b);
    if (c)
        at = peal_json_get(at, c);
    return at && at->kind == PEAL_JSON_BOOL && at->number;
}

static void put_list(struct peal_json *json, const char *key, const char *const *list)
{
    peal_json_put_array(json, key);
    for (; *list; list++)
        peal_json_string(json, *list);
    peal_json_array_end(json);
}

static void initialize(struct peal_lsp *server, const struct peal_json_value *params,
                       struct lsp_reply *reply)
{
    static const char *const triggers[] = {" ", ":", "@", "(", NULL}, *const no_modifiers[] = {
                                                                          "declaration", NULL};
    static const char *const simple[] = {"hoverProvider",
                                         "definitionProvider",
                                         "referencesProvider",
                                         "documentHighlightProvider",
                                         "documentSymbolProvider",
                                         "documentFormattingProvider",
                                         "documentRangeFormattingProvider",
                                         "inlayHintProvider"};
    static const char *const kinds[] = {"quickfix", NULL};
    struct peal_json *json = &reply->json;
    if (server->initialized) {
        lsp_refuse(reply, LSP_INVALID_REQUEST, "initialize came before");
        return;
    }
    server->initialized = true;
    server->shows_documents = can(params, "window", "showDocument", "support");
    server->refreshes_lenses = can(params, "workspace", "codeLens", "refreshSupport");
    const struct peal_json_value *text =
        peal_json_get(peal_json_get(params, "capabilities"), "textDocument");
    const struct peal_json_value *snippet = peal_json_get(
        peal_json_get(peal_json_get(text, "completion"), "completionItem"), "snippetSupport");
    server->has_snippets = snippet && snippet->number;
    peal_json_object(json);
    peal_json_put_object(json, "capabilities");
    peal_json_put_string(json, "positionEncoding", "utf-16");
    peal_json_put_object(json, "textDocumentSync");
    peal_json_put_bool(json, "openClose", true);
    peal_json_put_int(json, "change", 2); /* incremental */
    peal_json_object_end(json);
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++)
        peal_json_put_bool(json, simple[i], true);
    peal_json_put_object(json, "renameProvider");
    peal_json_put_bool(json, "prepareProvider", true);
    peal_json_object_end(json);
    peal_json_put_object(json, "completionProvider");
    put_list(json, "triggerCharacters", triggers);
    peal_json_object_end(json);
    peal_json_put_object(json, "codeActionProvider");
    put_list(json, "codeActionKinds", kinds);
    peal_json_object_end(json);
    peal_json_put_object(json, "codeLensProvider");
    peal_json_put_bool(json, "resolveProvider", false);
    peal_json_object_end(json);
    peal_json_put_object(json, "executeCommandProvider");
    put_list(json, "commands", lsp_commands);
    peal_json_object_end(json);
    peal_json_put_object(json, "semanticTokensProvider");
    peal_json_put_object(json, "legend");
    put_list(json, "tokenTypes", lsp_token_types);
    put_list(json, "tokenModifiers", no_modifiers);
    peal_json_object_end(json);
    peal_json_put_bool(json, "full", true);
    peal_json_object_end(json);
    peal_json_object_end(json);
    peal_json_put_object(json, "serverInfo");
    peal_json_put_string(json, "name", "peal");
    peal_json_put_string(json, "version", peal_version_text());
    peal_json_object_end(json);
    peal_json_object_end(json);
}

static void shut_down(struct peal_lsp *server, const struct peal_json_value *params,
                      struct lsp_reply *reply)
{
    (void)params, (void)reply;
    server->shut_down = true;
    lsp_interrupt(server, NULL);
}

/* ---- text synchronisation ---- */

static void close_document(struct peal_lsp *server, struct lsp_document *doc)
{
    lsp_interrupt(server, doc);
    for (size_t i = 0; i < server->documents.len; i++) {
        if (server->documents.at[i] == doc)
            server->documents.at[i] = server->documents.at[--server->documents.len];
    }
    lsp_document_free(doc);
}

static void did_open(struct peal_lsp *server, const struct peal_json_value *params)
{
    const struct peal_json_value *item = peal_json_get(params, "textDocument");
    const char *uri = peal_json_get_text(item, "uri"), *text = peal_json_get_text(item, "text");
    if (!uri || !text)
        return;
    struct lsp_document *doc = lsp_find_document(server, uri);
    if (doc)
        close_document(server, doc);
    doc = lsp_document_new(uri, text, peal_json_get(item, "text")->len);
    if (!doc)
        return;
    doc->version = (int64_t)read_uint(item, "version");
    doc->dirty = true;
    if (!peal_vec_push(&server->documents, doc))
        lsp_document_free(doc);
}

static void did_change(struct peal_lsp *server, const struct peal_json_value *params)
{
    const struct peal_json_value *item = peal_json_get(params, "textDocument");
    struct lsp_document *doc = lsp_find_document(server, peal_json_get_text(item, "uri"));
    if (!doc)
        return;
    doc->version = (int64_t)read_uint(item, "version");
    lsp_interrupt(server, doc);
    server->changed_ms = peal_now_ms();
    const struct peal_json_value *change = peal_json_first(peal_json_get(params, "contentChanges"));
    for (; change; change = change->next) {
        const struct peal_json_value *text = peal_json_get(change, "text"),
                                     *range = peal_json_get(change, "range");
        struct lsp_range all = {0, doc->text.len};
        if (!text || text->kind != PEAL_JSON_STRING)
            continue;
        if (range && range->kind == PEAL_JSON_OBJECT)
            all = lsp_read_range(doc, range);
        if (!lsp_document_change(doc, all, text->text, text->len)) {
            close_document(server, doc); /* it could not be kept: better none than a wrong one */
            return;
        }
    }
}

static void did_close(struct peal_lsp *server, const struct peal_json_value *params)
{
    struct lsp_document *doc =
        lsp_find_document(server, peal_json_get_text(peal_json_get(params, "textDocument"), "uri"));
    if (!doc)
        return;
    struct lsp_reply none;
    lsp_message_begin(server, "textDocument/publishDiagnostics", false, &none);
    peal_json_object(&none.json);
    peal_json_put_string(&none.json, "uri", doc->uri);
    peal_json_put_array(&none.json, "diagnostics");
    peal_json_array_end(&none.json);
    peal_json_object_end(&none.json);
    lsp_message_end(server, &none);
    close_document(server, doc);
}

/* ---- dispatch ---- */

static const struct {
    const char *method;
    lsp_handler *handler;
} requests[] = {
    {"initialize", initialize},
    {"shutdown", shut_down},
    {"textDocument/hover", lsp_hover},
    {"textDocument/definition", lsp_definition},
    {"textDocument/references", lsp_references},
    {"textDocument/documentHighlight", lsp_highlights},
    {"textDocument/prepareRename", lsp_prepare_rename},
    {"textDocument/rename", lsp_rename},
    {"textDocument/documentSymbol", lsp_symbols},
    {"textDocument/completion", lsp_completion},
    {"textDocument/formatting", lsp_format},
    {"textDocument/rangeFormatting", lsp_format_range},
    {"textDocument/inlayHint", lsp_hints},
    {"textDocument/semanticTokens/full", lsp_semantic_tokens},
    {"textDocument/codeAction", lsp_actions},
    {"textDocument/codeLens", lsp_lenses},
    {"workspace/executeCommand", lsp_execute},
};

static void notify(struct peal_lsp *server, const char *method,
                   const struct peal_json_value *params)
{
    if (strcmp(method, "exit") == 0)
        server->ended = true;
    if (!server->initialized || server->shut_down)
        return;
    if (strcmp(method, "textDocument/didOpen") == 0)
        did_open(server, params);
    else if (strcmp(method, "textDocument/didChange") == 0)
        did_change(server, params);
    else if (strcmp(method, "textDocument/didClose") == 0)
        did_close(server, params);
}

static void request(struct peal_lsp *server, const char *method, const char *id,
                    const struct peal_json_value *params)
{
    struct lsp_reply reply;
    lsp_handler *handler = NULL;
    lsp_reply_begin(&reply);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (strcmp(requests[i].method, method) == 0)
            handler = requests[i].handler;
    }
    if (server->shut_down)
        lsp_refuse(&reply, LSP_INVALID_REQUEST, "the server was shut down");
    else if (!server->initialized && handler != initialize)
        lsp_refuse(&reply, LSP_NOT_INITIALIZED, "initialize comes first");
    else if (!handler)
        lsp_refuse(&reply, LSP_UNKNOWN_METHOD, "'%s' is not known", method);
    else
        handler(server, params, &reply);
    if (reply.later) {
        free(server->job.id);
        server->job.id = strdup(id);
        lsp_reply_release(&reply);
        return;
    }
    lsp_answer(server, id, &reply);
}

static void refuse_message(struct peal_lsp *server, int error, const char *why)
{
    struct lsp_reply reply;
    lsp_reply_begin(&reply);
    lsp_refuse(&reply, error, "%s", why);
    lsp_answer(server, "null", &reply);
}

/* The id of a request as JSON; false: it is neither a number nor a string. */
static bool id_text(const struct peal_json_value *id, struct peal_text *out)
{
    struct peal_json json;
    if (id && id->kind == PEAL_JSON_NUMBER) {
        peal_text_puts(out, id->text);
        return true;
    }
    if (!id || id->kind != PEAL_JSON_STRING)
        return false;
    peal_json_init(&json, out, 0);
    peal_json_bytes(&json, id->text, id->len);
    return true;
}

static void take_message(struct peal_lsp *server, const char *body, size_t len)
{
    struct peal_source source = {"message", body, len};
    struct peal_arena arena;
    struct peal_diags diags;
    struct peal_json_value *message = NULL;
    struct peal_text id = {0};
    peal_arena_init(&arena, (size_t)1 << 30);
    peal_diags_init(&diags);
    enum peal_status status = peal_json_read(&source, &arena, &diags, &message);
    const char *method = peal_json_get_text(message, "method");
    const struct peal_json_value *params = peal_json_get(message, "params"),
                                 *asked = peal_json_get(message, "id");
    bool has_id = id_text(asked, &id);
    if (status != PEAL_OK)
        refuse_message(server, LSP_PARSE_ERROR,
                       diags.list.len ? diags.list.at[0].message : "out of memory");
    else if (method && strcmp(method, "$/cancelRequest") == 0 &&
             (peal_text_release(&id), id_text(peal_json_get(params, "id"), &id)))
        lsp_cancel(server, peal_text_get(&id));
    else if (method && has_id)
        request(server, method, peal_text_get(&id), params);
    else if (method && !asked)
        notify(server, method, params);
    else if (method || !has_id || message->kind != PEAL_JSON_OBJECT)
        refuse_message(server, LSP_INVALID_REQUEST, "neither a request nor a notification");
    peal_text_release(&id);
    peal_diags_release(&diags);
    peal_arena_release(&arena);
}

struct peal_lsp *peal_lsp_new(const struct peal_lsp_options *options)
{
    struct peal_lsp *server = calloc(1, sizeof *server);
    if (!server)
        return NULL;
    server->options = *options;
    server->job.file = -1;
    if (peal_library_open(NULL, &server->library) == PEAL_OK)
        return server;
    free(server);
    return NULL;
}

void peal_lsp_free(struct peal_lsp *server)
{
    if (!server)
        return;
    lsp_job_release(&server->job);
    for (size_t i = 0; i < server->documents.len; i++)
        lsp_document_free(server->documents.at[i]);
    peal_vec_release(&server->documents);
    peal_frames_release(&server->frames);
    peal_library_close(server->library);
    free(server);
}

void peal_lsp_feed(struct peal_lsp *server, const char *bytes, size_t len)
{
    enum peal_frame_event event;
    peal_frames_add(&server->frames, bytes, len);
    while (!server->ended && (event = peal_frames_next(&server->frames)) != PEAL_FRAME_NONE) {
        if (event == PEAL_FRAME_MESSAGE)
            take_message(server, server->frames.body, server->frames.len);
        else
            refuse_message(server, LSP_PARSE_ERROR,
                           event == PEAL_FRAME_BAD ? "headers without a Content-Length"
                                                   : "a message over 64 MiB");
    }
}

int peal_lsp_idle(struct peal_lsp *server)
{
    for (size_t i = 0; i < server->documents.len; i++) {
        if (server->documents.at[i]->dirty)
            lsp_publish(server, server->documents.at[i]);
    }
    if (!server->options.program || !server->options.folder || server->shut_down)
        return -1;
    return lsp_background(server);
}

int peal_lsp_job_file(const struct peal_lsp *server)
{
    return server->job.pid ? server->job.file : -1;
}

bool peal_lsp_has_ended(const struct peal_lsp *server, int *code)
{
    *code = !server->shut_down;
    return server->ended;
}
