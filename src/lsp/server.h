/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the server: its state, and how a request is answered.
 *
 * A request's handler gets the parameters and writes its result, one JSON value, into the reply. It may refuse with
 * lsp_refuse instead, or say that the answer comes later (lsp_later). What it never does is write to the client: that
 * is done in one place, so that there is exactly one answer to every request.
 */
#ifndef PEAL_LSP_SERVER_H
#define PEAL_LSP_SERVER_H

#include "lsp/document.h"
#include "lsp/frame.h"
#include "lsp/job.h"
#include "lsp/lsp.h"

enum lsp_error {
    LSP_PARSE_ERROR = -32700,
    LSP_INVALID_REQUEST = -32600,
    LSP_UNKNOWN_METHOD = -32601,
    LSP_INVALID_PARAMS = -32602,
    LSP_INTERNAL_ERROR = -32603,
    LSP_NOT_INITIALIZED = -32002,
    LSP_CANCELLED = -32800,
    LSP_FAILED = -32803
};

struct peal_lsp {
    struct peal_lsp_options options;
    struct peal_frames frames;
    struct peal_library *library;
    PEAL_VEC(struct lsp_document *) documents;
    bool initialized, shut_down, ended;
    /* What the client can do. */
    bool shows_documents, refreshes_lenses, has_snippets;
    int64_t requests;    /* numbers of our own requests to the client */
    uint64_t changed_ms; /* when the last change came */
    struct lsp_job job;
    uint32_t files; /* written into the folder, to number them */
};

struct lsp_reply {
    struct peal_json json; /* of `text` */
    struct peal_text text;
    int error; /* 0: the text is the result */
    struct peal_text why;
    bool later;
};

/* What a request is about: the document and the place that its parameters name. */
struct lsp_subject {
    struct lsp_document *doc; /* analysed; NULL: it is not open */
    size_t offset;            /* of `position`, or 0 */
    uint32_t token;           /* there, or UINT32_MAX */
};

void lsp_refuse(struct lsp_reply *reply, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The document is refused if it is not open: then doc is NULL. */
struct lsp_subject lsp_subject(struct peal_lsp *server, const struct peal_json_value *params,
                               struct lsp_reply *reply);
struct lsp_document *lsp_find_document(const struct peal_lsp *server, const char *uri);

/* Parts of results. */
void lsp_put_position(struct peal_json *json, const char *key, struct lsp_position position);
void lsp_put_range(struct peal_json *json, const char *key, const struct lsp_document *doc,
                   struct lsp_range range);
struct lsp_range lsp_read_range(const struct lsp_document *doc,
                                const struct peal_json_value *range);
/* A TextEdit. */
void lsp_put_edit(struct peal_json *json, const struct lsp_document *doc, struct lsp_range range,
                  const char *text, size_t len);

/* Notifications and requests of our own: between begin and end, one JSON value, `params`,
 * goes into message->json. */
void lsp_message_begin(struct peal_lsp *server, const char *method, bool is_request,
                       struct lsp_reply *message);
void lsp_message_end(struct peal_lsp *server, struct lsp_reply *message);
/* Answers a request; `id` is its JSON text. */
void lsp_answer(struct peal_lsp *server, const char *id, struct lsp_reply *reply);
void lsp_reply_release(struct lsp_reply *reply);
/* An object {"jsonrpc": ..., begun in `text`. */
void lsp_reply_begin(struct lsp_reply *reply);

#endif
