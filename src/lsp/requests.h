/* SPDX-License-Identifier: Apache-2.0 */
/* What the server can do, a function per request; the table in server.c says which. */
#ifndef PEAL_LSP_REQUESTS_H
#define PEAL_LSP_REQUESTS_H

#include "lsp/server.h"

typedef void lsp_handler(struct peal_lsp *server, const struct peal_json_value *params,
                         struct lsp_reply *reply);

/* diagnostics.c: what is wrong with a text, published as it changes. */
void lsp_publish(struct peal_lsp *server, struct lsp_document *doc);
/* The words of a "did you mean" that belongs to error i, and what they replace. False: it has none. */
bool lsp_meant(const struct lsp_document *doc, size_t i, struct lsp_range *range,
               char out[static 256]);

/* describe.c */
lsp_handler lsp_hover;
/* A symbol as it could be declared: "in x: T[n]", "signal ready[nranks]". */
void lsp_declaration(const struct peal_symbol *symbol, struct peal_text *out);
/* The element type and lengths of data: "T[n]". */
void lsp_data_type(const struct peal_symbol *symbol, struct peal_text *out);

/* lookup.c */
lsp_handler lsp_definition, lsp_references, lsp_highlights, lsp_prepare_rename, lsp_rename,
    lsp_symbols;

/* complete.c */
lsp_handler lsp_completion;

/* layout.c */
lsp_handler lsp_format, lsp_format_range, lsp_hints, lsp_semantic_tokens;
extern const char *const lsp_token_types[]; /* ends with NULL */

/* action.c */
lsp_handler lsp_actions, lsp_lenses;
lsp_handler lsp_execute;
/* Starts the next piece of background work if there is any and nothing runs; takes over what has come. Returns
 * after how many milliseconds to ask again, or -1. */
int lsp_background(struct peal_lsp *server);
/* The document was changed or closed: what runs for it ends. */
void lsp_interrupt(struct peal_lsp *server, const struct lsp_document *doc);
/* The request was cancelled. */
void lsp_cancel(struct peal_lsp *server, const char *id);
extern const char *const lsp_commands[]; /* ends with NULL */

#endif
