/* SPDX-License-Identifier: Apache-2.0 */
/* lsp: the language server, LSP 3.17 (microsoft.github.io/language-server-protocol). Messages in, messages out; what
 * a text means is asked of lang, what the tables say of base. Verdicts, simulations and plans come from the `peal`
 * command itself, which runs beside the server, with limits.
 *
 *   lsp.h        this file: bytes in, bytes out; no process, no clock
 *   server.h     the server: its documents, what the client can do; dispatch, replies (server.c)
 *   frame.h      bytes -> messages
 *   document.h   a text, its lines, positions in UTF-16, changes
 *   names.c      what every name of a text stands for: the tree's answer for each token
 *   describe.c   what a name, an op or a word means, for people
 *   requests.h   one function per request: diagnostics.c, lookup.c (definition, references, rename, symbols),
 *                complete.c, layout.c (formatting, inlay hints, semantic tokens), action.c (quick fixes, lenses)
 *   job.h        a command that runs in the background: verdicts, fixes, commands of a lens
 *
 * Start reading at server.c: its table is the list of requests.
 */
#ifndef PEAL_LSP_LSP_H
#define PEAL_LSP_LSP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the server sends: whole messages with their headers. */
typedef void peal_lsp_write(void *context, const char *bytes, size_t len);

struct peal_lsp_options {
    peal_lsp_write *write;
    void *context;
    uint32_t limit_s;    /* for a verdict; a fix has twice as long, a command six times; 0: 10 */
    const char *program; /* the `peal` command; NULL: nothing runs in the background */
    const char *
        folder; /* of the server, for files that an editor opens and the command reads; NULL: none */
};

struct peal_lsp;

/* NULL: out of memory, or the library cannot be read. The strings of `options` are borrowed. */
struct peal_lsp *peal_lsp_new(const struct peal_lsp_options *options);
void peal_lsp_free(struct peal_lsp *server);
/* Takes bytes in pieces of any size and answers every message that is complete. */
void peal_lsp_feed(struct peal_lsp *server, const char *bytes, size_t len);
/* Publishes what has changed, and starts or ends what runs in the background. Called when no more bytes
 * are there; returns after how many milliseconds it wants to be called again, or -1. */
int peal_lsp_idle(struct peal_lsp *server);
/* The file from which the background's output comes, for poll; -1: nothing runs. */
int peal_lsp_job_file(const struct peal_lsp *server);
/* True when the client has said `exit`; *code is then 0 if it said `shutdown` before, else 1. */
bool peal_lsp_has_ended(const struct peal_lsp *server, int *code);

#endif
