/* SPDX-License-Identifier: Apache-2.0 */
/* An open text. Places in it are byte offsets; the protocol's are lines and UTF-16 units. A line ends with LF, CR LF
 * or CR, as the protocol says; the lexer counts LF alone, so its places are converted by `place`. */
#ifndef PEAL_LSP_DOCUMENT_H
#define PEAL_LSP_DOCUMENT_H

#include "base/base.h"
#include "lang/lang.h"

struct lsp_position {
    uint32_t line, character; /* from 0; in UTF-16 units */
};

struct lsp_range {
    size_t at, end; /* bytes */
};

/* A token, and what it stands for. */
enum lsp_meaning {
    LSP_NOTHING,   /* a mark, a number, or a name of which nothing is known */
    LSP_WORD,      /* a word of the language: of words.def */
    LSP_FUNCTION,  /* of fn.def or words.def */
    LSP_REDUCE,    /* sum, max, ... */
    LSP_TYPE,      /* an element type */
    LSP_CONTRACT,  /* after `implements`, or called */
    LSP_SYMBOL,    /* of a kernel: `symbol` */
    LSP_KERNEL,    /* of the text or the library: `kernel` */
    LSP_ALGORITHM, /* the last word of a kernel's name: `kernel` */
    LSP_REDUCTION, /* of the text: `reduction` */
    LSP_OPERAND    /* of a reduction: `operand` */
};

struct lsp_token {
    struct lsp_range range;
    enum peal_token_kind kind;
    bool first; /* on its line */
    enum lsp_meaning meaning;
    bool declares;
    union {
        const struct peal_symbol *symbol;
        const struct peal_kernel *kernel;
        const struct peal_reduce_decl *reduction;
        const char *const *operand;
        const void *thing; /* for comparing */
    } of;
};

/* A kernel or reduction as its tokens show it, parsed or not. */
struct lsp_block {
    uint32_t word, name;              /* tokens: `kernel` or `reduce`, its name */
    uint32_t open, close;             /* its braces; the last token + 1 if there are none */
    const struct peal_kernel *kernel; /* NULL: it does not parse, or is a reduction */
    const struct peal_reduce_decl *reduction;
};

enum lsp_state { LSP_UNKNOWN, LSP_WAITING, LSP_RUNNING, LSP_KNOWN };

/* What is known about one kernel of the text. */
struct lsp_verdict {
    char *name;
    uint64_t hash; /* of the text's tokens that it is about */
    enum lsp_state state, fix_state;
    bool proved, refuted;
    char *summary;      /* "proved at 2..4 ranks", "refuted on 2 ranks: race" */
    char *why;          /* of a refuted one, or NULL */
    uint32_t line, col; /* where it goes wrong, or 0; as in a diagnostic */
    char *fixed, *fix;  /* the text that is proved, and what was changed; NULL: none known */
};

struct lsp_document {
    char *uri, *path; /* path: NULL if it is no file */
    int64_t version;
    struct peal_text text;
    PEAL_VEC(size_t) lines;    /* where each begins, as the protocol counts them */
    PEAL_VEC(size_t) newlines; /* where each begins, as the lexer counts them */
    bool dirty;                /* changed since diagnostics were published */
    bool crlf;                 /* lines end with CR LF */
    /* What follows is made from the text when it is asked for. */
    bool analysed;
    struct peal_source source;
    struct peal_module *module; /* what could be parsed of it; or NULL */
    struct peal_diags diags;
    PEAL_VEC(struct lsp_token) tokens;
    PEAL_VEC(struct lsp_block) blocks;
    uint64_t hash; /* of all tokens */
    PEAL_VEC(struct lsp_verdict) verdicts;
};

/* NULL: out of memory. */
struct lsp_document *lsp_document_new(const char *uri, const char *text, size_t len);
void lsp_document_free(struct lsp_document *doc);
/* Replaces a part of the text. False: out of memory; the document is then empty. */
bool lsp_document_change(struct lsp_document *doc, struct lsp_range range, const char *text,
                         size_t len);

/* A position past a line's end is its end; past the text, the text's end; within a character, its beginning. */
size_t lsp_offset(const struct lsp_document *doc, struct lsp_position position);
struct lsp_position lsp_position(const struct lsp_document *doc, size_t offset);
/* The bytes of a lexer's place, at least one character unless the text ends there; never a line's end. */
struct lsp_range lsp_place(const struct lsp_document *doc, const struct peal_pos *pos);
/* The token that holds the offset, or ends there; UINT32_MAX: none. Names are preferred. */
uint32_t lsp_token_at(const struct lsp_document *doc, size_t offset);
bool lsp_token_is(const struct lsp_document *doc, uint32_t token, const char *text);
/* A copy of its text in the buffer, cut if it is longer. */
const char *lsp_token_text(const struct lsp_document *doc, uint32_t token, char buf[static 256]);
/* The block that the token is in, or NULL. */
struct lsp_block *lsp_block_of(const struct lsp_document *doc, uint32_t token);

/* Parses, deduces and names all tokens, unless that was done. False: out of memory. */
bool lsp_analyse(struct lsp_document *doc, const struct peal_module *library);
/* After a change. */
void lsp_forget(struct lsp_document *doc);

#endif
