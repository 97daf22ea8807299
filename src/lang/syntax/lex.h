/* SPDX-License-Identifier: Apache-2.0 */
/* Text to tokens, one at a time; nothing is allocated. */
#ifndef PEAL_LANG_LEX_H
#define PEAL_LANG_LEX_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

enum peal_token_kind {
    PEAL_TOKEN_END,
    PEAL_TOKEN_NAME, /* names and words of the language alike */
    PEAL_TOKEN_INT,
    PEAL_TOKEN_FLOAT,
    PEAL_TOKEN_STRING, /* text is what is between the quotes, with escapes */
    PEAL_TOKEN_PUNCT,  /* text is one of the marks: ( ) { } [ ] , : = + ... << += +: .. */
    PEAL_TOKEN_BAD     /* `why` says what is wrong */
};

struct peal_token {
    enum peal_token_kind kind;
    struct peal_pos pos;
    const char *text; /* in the source; not NUL-terminated */
    uint32_t len;
    bool first; /* on its line */
    int64_t value;
    double real;
    const char *why;
    const char *doc; /* the `//` lines that end on the line directly above, or NULL */
};

struct peal_lexer {
    const struct peal_source *source;
    const char *at, *end;
    const char *line_start;
    uint32_t line;
    bool first;
    /* The latest run of `//` lines: where it starts, and the line of its last one. */
    const char *comment;
    uint32_t comment_line;
};

/* The source must be shorter than 2 GiB. */
void peal_lexer_init(struct peal_lexer *lexer, const struct peal_source *source);
struct peal_token peal_lexer_next(struct peal_lexer *lexer);

#endif
