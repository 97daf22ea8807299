/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the parser: shared by parse.c, parse_stmt.c and parse_expr.c.
 *
 * A recursive-descent parser with two tokens of lookahead. The first error of a statement puts it
 * in panic: functions return NULL (or false) up to the statement list, which skips to the next
 * statement and continues. Depth is counted, so that no input can overflow the stack.
 */
#ifndef PEAL_LANG_PARSER_H
#define PEAL_LANG_PARSER_H

#include "lang/syntax/lex.h"
#include "lang/tree/module.h"

struct peal_parser {
    struct peal_lexer lexer;
    struct peal_token token; /* the current one */
    struct peal_token ahead; /* the one after it */
    struct peal_pos last;    /* of the token before the current one */
    struct peal_module *module;
    struct peal_diags *diags;
    int depth;
    bool panic;     /* this statement is abandoned: report nothing more about it */
    bool gave_up;   /* too many errors, too deep or out of memory: stop reading */
    bool no_memory; /* why it gave up */
    bool partial;   /* kernels and blocks with errors are kept, as far as they were read */
    size_t errors;
    struct peal_pos error_pos; /* of the latest error */
};

/* Moves to the next token. */
void peal_parser_step(struct peal_parser *p);
/* Reports an error, unless in panic already, and enters panic. Always NULL, for `return`. */
void *peal_parser_fail(struct peal_parser *p, struct peal_pos pos, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void *peal_parser_out_of_memory(struct peal_parser *p);
/* Reports "expected <what>, found ...". Always NULL. */
void *peal_parser_expected(struct peal_parser *p, const char *expected);

/* Notes after an error, where helpful: the nearest of some words; about a word that begins no
 * statement; about the token that was found instead of `wanted`. */
void peal_parser_hint_word(struct peal_parser *p, const char *word, size_t len,
                           const char *const *candidates);
void peal_parser_hint_statement(struct peal_parser *p, const char *word,
                                const char *const *candidates);
/* The word, or a misspelling of it. */
bool peal_token_is_near(const struct peal_token *token, const char *word);
void peal_parser_hint_found(struct peal_parser *p, const char *wanted);

/* Is the token this word or mark? The second steps over it if so; the third also fails if not. */
bool peal_parser_at(const struct peal_parser *p, const char *text);
bool peal_parser_ahead(const struct peal_parser *p, const char *text);
bool peal_parser_take(struct peal_parser *p, const char *text);
bool peal_parser_want(struct peal_parser *p, const char *text);
/* A name that is not reserved, interned; NULL after a failure. `expected` is for the message. */
const char *peal_parser_name(struct peal_parser *p, const char *expected, struct peal_pos *pos);

bool peal_parser_enter(struct peal_parser *p);
void peal_parser_leave(struct peal_parser *p);
/* From start to the end of the last token, as long as they are on one line. */
struct peal_pos peal_parser_span(const struct peal_parser *p, struct peal_pos start);

struct peal_expr *peal_parse_expr(struct peal_parser *p);
/* [order] [scope] before a cell or in a fence; `orders`: those that may stand there, a bit for each
 * of enum peal_written_order; `what`: for the message. */
bool peal_parse_ordering(struct peal_parser *p, const char *what, unsigned orders,
                         struct peal_ordering *out);
enum {
    PEAL_ORDERS_OF_ATOMICS = 1u << PEAL_WRITTEN_RELAXED | 1u << PEAL_WRITTEN_ACQUIRE |
                             1u << PEAL_WRITTEN_RELEASE | 1u << PEAL_WRITTEN_ACQ_REL
};
/* The same after the parenthesis of a call, if it is a fetch_add or compare_swap. */
bool peal_parse_fetch_ordering(struct peal_parser *p, const char *name, struct peal_ordering *out);
/* recv from peer [on channel]; also recv_slot and recv_async */
struct peal_expr *peal_parse_recv(struct peal_parser *p);
struct peal_expr *peal_parse_peer(struct peal_parser *p);
struct peal_expr *peal_parse_place(struct peal_parser *p);
/* Arguments up to and including the closing parenthesis; `ports`: N, S, ... are ports there. */
bool peal_parse_args(struct peal_parser *p, bool ports, struct peal_expr **out);

/* elem shape: `T[n]`, `f32[rows, cols]`. Sets type and shape of the symbol. */
bool peal_parse_memory(struct peal_parser *p, struct peal_symbol *symbol);
/* A block with its braces. */
bool peal_parse_block(struct peal_parser *p, struct peal_stmt **out);

#endif
