/* SPDX-License-Identifier: Apache-2.0 */
/* The lexer. Marks of one or two characters are matched longest first; a number never includes the
 * first dot of `..`. */
#include "lang/syntax/lex.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const marks[] = {
    "<<", ">>", "<=", ">=", "==", "!=", "+=", "+:", "..", "(", ")", "{", "}", "[", "]",
    ",",  ":",  "=",  "+",  "-",  "*",  "/",  "%",  "&",  "|", "^", "<", ">", "@",
};

void peal_lexer_init(struct peal_lexer *lexer, const struct peal_source *source)
{
    *lexer = (struct peal_lexer){
        .source = source,
        .at = source->text,
        .end = source->text + source->len,
        .line_start = source->text,
        .line = 1,
        .first = true,
    };
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The byte `ahead` of the current one, 0 past the end. */
static char look(const struct peal_lexer *lexer, ptrdiff_t ahead)
{
    return lexer->end - lexer->at > ahead ? lexer->at[ahead] : '\0';
}

static void skip_comment(struct peal_lexer *lexer)
{
    bool follows = lexer->comment && lexer->comment_line + 1 == lexer->line;
    if (!lexer->first)
        lexer->comment = NULL; /* a comment after code belongs to that line, not to what follows */
    else if (!follows)
        lexer->comment = lexer->at;
    lexer->comment_line = lexer->line;
    const char *newline = memchr(lexer->at, '\n', (size_t)(lexer->end - lexer->at));
    if (newline)
        lexer->at = newline;
    else
        lexer->at = lexer->end;
}

static void skip_space(struct peal_lexer *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '\n') {
            lexer->line++;
            lexer->line_start = ++lexer->at;
            lexer->first = true;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            lexer->at++;
        } else if (c == '/' && look(lexer, 1) == '/') {
            skip_comment(lexer);
        } else {
            return;
        }
    }
}

static void lex_number(struct peal_lexer *lexer, struct peal_token *token)
{
    const char *at = lexer->at;
    token->kind = PEAL_TOKEN_INT;
    while (is_digit(look(lexer, 0)))
        lexer->at++;
    if (look(lexer, 0) == '.' && is_digit(look(lexer, 1))) {
        token->kind = PEAL_TOKEN_FLOAT;
        lexer->at++;
        while (is_digit(look(lexer, 0)))
            lexer->at++;
    }
    bool has_sign = look(lexer, 1) == '+' || look(lexer, 1) == '-';
    if ((look(lexer, 0) == 'e' || look(lexer, 0) == 'E') &&
        is_digit(look(lexer, has_sign ? 2 : 1))) {
        token->kind = PEAL_TOKEN_FLOAT;
        lexer->at += has_sign ? 2 : 1;
        while (is_digit(look(lexer, 0)))
            lexer->at++;
    }
    char buf[64];
    size_t len = (size_t)(lexer->at - at);
    if (is_letter(look(lexer, 0)) || len >= sizeof buf) {
        while (is_letter(look(lexer, 0)) || is_digit(look(lexer, 0)))
            lexer->at++;
        token->kind = PEAL_TOKEN_BAD;
        token->why =
            len >= sizeof buf ? "this number is too long" : "a number may not end in letters";
        return;
    }
    memcpy(buf, at, len);
    buf[len] = '\0';
    errno = 0;
    if (token->kind == PEAL_TOKEN_INT)
        token->value = strtoll(buf, NULL, 10);
    else
        token->real = strtod(buf, NULL);
    if (errno == ERANGE && (token->kind == PEAL_TOKEN_INT || isinf(token->real))) {
        token->kind = PEAL_TOKEN_BAD;
        token->why = "this number is too large";
    }
}

static void lex_string(struct peal_lexer *lexer, struct peal_token *token)
{
    token->text = ++lexer->at;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
        lexer->at += *lexer->at == '\\' && look(lexer, 1) != '\n' && look(lexer, 1) ? 2 : 1;
    if (lexer->at > lexer->end)
        lexer->at = lexer->end;
    token->len = (uint32_t)(lexer->at - token->text);
    token->kind = look(lexer, 0) == '"' ? PEAL_TOKEN_STRING : PEAL_TOKEN_BAD;
    if (token->kind == PEAL_TOKEN_STRING)
        lexer->at++;
    else
        token->why = "this string does not end on its line";
}

static void lex_mark(struct peal_lexer *lexer, struct peal_token *token)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (*lexer->at != marks[i][0])
            continue;
        size_t len = marks[i][1] ? 2 : 1;
        if (len == 1 || look(lexer, 1) == marks[i][1]) {
            token->kind = PEAL_TOKEN_PUNCT;
            lexer->at += len;
            return;
        }
    }
    token->kind = PEAL_TOKEN_BAD;
    token->why = "this character has no meaning here";
    lexer->at++;
    while (lexer->at < lexer->end && ((unsigned char)*lexer->at & 0xc0) == 0x80)
        lexer->at++; /* the rest of a UTF-8 character */
}

struct peal_token peal_lexer_next(struct peal_lexer *lexer)
{
    skip_space(lexer);
    const char *start = lexer->at;
    struct peal_token token = {
        .pos = {lexer->source, lexer->line, (uint32_t)(start - lexer->line_start) + 1, 0},
        .text = start,
        .first = lexer->first,
    };
    if (lexer->first && lexer->comment && lexer->comment_line + 1 == lexer->line)
        token.doc = lexer->comment;
    lexer->first = false;
    if (start == lexer->end) {
        token.kind = PEAL_TOKEN_END;
        token.first = true;
        return token;
    }
    if (is_letter(*start)) {
        token.kind = PEAL_TOKEN_NAME;
        while (is_letter(look(lexer, 0)) || is_digit(look(lexer, 0)))
            lexer->at++;
    } else if (is_digit(*start)) {
        lex_number(lexer, &token);
    } else if (*start == '"') {
        lex_string(lexer, &token);
    } else {
        lex_mark(lexer, &token);
    }
    token.pos.len = (uint32_t)(lexer->at - start);
    if (token.kind != PEAL_TOKEN_STRING)
        token.len = token.pos.len;
    return token;
}
