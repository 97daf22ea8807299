/* SPDX-License-Identifier: Apache-2.0 */
/* The formatter works on tokens, not on the tree, so that nothing an author wrote gets lost: it
 * copies every token and comment, and decides only about the white space between them.
 *
 *   - Four spaces per open block; a line within parentheses begins where they opened, another line
 *     that continues a statement four spaces further right.
 *   - Line ends stay, except before `{` and `else`, which join the line before. Of several empty
 *     lines one stays, and none next to a brace or at the ends of the text.
 *   - One space around operators and after commas; none around `@`, within parentheses and before
 *     the parenthesis of a call; one before a comment that follows code.
 *
 * White space only separates tokens, and no two are joined that would read as one, so the text
 * means what it meant.
 */
#include "lang/syntax/format.h"

#include "lang/syntax/lex.h"

#include <string.h>

enum { INDENT = 4, MAX_OPEN = 512 };

struct formatter {
    struct peal_text *out;
    size_t start;      /* of the formatted text in `out` */
    size_t line_start; /* of the current line in `out` */
    uint32_t blocks;   /* open braces */
    uint32_t nopen;    /* open parentheses and brackets ... */
    size_t open[MAX_OPEN];
    bool is_bracket[MAX_OPEN];
    /* the last token, the one before it, and whether the last one is a sign */
    struct peal_token last, before;
    bool is_sign;
    bool begins_line; /* the last token is the first of its line */
};

static bool is_mark(const struct peal_token *token, const char *mark)
{
    return token->kind == PEAL_TOKEN_PUNCT && token->len == strlen(mark) &&
           memcmp(token->text, mark, token->len) == 0;
}

static bool is_any_mark(const struct peal_token *token, const char *const *list)
{
    for (; *list; list++) {
        if (is_mark(token, *list))
            return true;
    }
    return false;
}

static bool is_any_name(const struct peal_token *token, const char *const *list)
{
    for (; *list; list++) {
        if (token->kind == PEAL_TOKEN_NAME && token->len == strlen(*list) &&
            memcmp(token->text, *list, token->len) == 0)
            return true;
    }
    return false;
}

/* A word after which a value begins: no function, and no left operand. */
static bool is_word(const struct peal_token *token)
{
    static const char *const words[] = {
        "and",  "or",     "not",  "in",       "of",      "to",        "from",  "mod",  "step",
        "on",   "if",     "when", "else",     "wait",    "take",      "send",  "free", "grid",
        "tree", "notify", "peek", "assert",   "relaxed", "exclusive", "flush", "let",  "var",
        "for",  "lane",   "recv", "requires", "ensures", "where",     NULL};
    return is_any_name(token, words);
}

/* A word that joins what stands before and after it. */
static bool is_joint(const struct peal_token *token)
{
    static const char *const words[] = {"and", "or", "not", "of", "mod", NULL};
    return is_any_name(token, words);
}

/* Can a left operand end with it? */
static bool ends_operand(const struct peal_token *token)
{
    static const char *const closing[] = {")", "]", NULL};
    switch (token->kind) {
    case PEAL_TOKEN_NAME:
        return !is_word(token);
    case PEAL_TOKEN_INT:
    case PEAL_TOKEN_FLOAT:
        return true;
    case PEAL_TOKEN_PUNCT:
        return is_any_mark(token, closing);
    default:
        return false;
    }
}

static bool in_brackets(const struct formatter *f)
{
    return f->nopen && f->nopen <= MAX_OPEN && f->is_bracket[f->nopen - 1];
}

/* `y max= x`: the name and the mark are one operator, if they were written as one. */
static bool is_accumulate(const struct formatter *f, const struct peal_token *token)
{
    return is_mark(token, "=") && f->last.kind == PEAL_TOKEN_NAME && !f->begins_line &&
           f->last.text + f->last.len == token->text && ends_operand(&f->before);
}

static bool needs_space(const struct formatter *f, const struct peal_token *token)
{
    static const char *const opening[] = {"(", "[", "@", NULL};
    static const char *const tight[] = {")", "]", ",", "@", "[", NULL};
    if (is_any_mark(&f->last, opening) || is_any_mark(token, tight) || f->is_sign)
        return false;
    if (is_mark(token, ":") || (is_mark(&f->last, ":") && in_brackets(f)))
        return false;
    if (is_mark(token, "("))
        return !ends_operand(&f->last) || f->last.kind != PEAL_TOKEN_NAME;
    if (is_mark(token, "}") && is_mark(&f->last, "{"))
        return false;
    return !is_accumulate(f, token);
}

static size_t column(const struct formatter *f)
{
    return f->out->len - f->line_start;
}

static void put_spaces(struct formatter *f, size_t count)
{
    peal_text_printf(f->out, "%*s", (int)count, "");
}

/* Does the line that ends here go on with this token? */
static bool continues(const struct formatter *f, const struct peal_token *token)
{
    static const char *const closes[] = {"{", "}", ")", "]", NULL};
    static const char *const opens[] = {"(", "{", "}", NULL};
    static const char *const clauses[] = {"implements", "where", NULL};
    bool open =
        is_joint(&f->last) || (f->last.kind == PEAL_TOKEN_PUNCT && !is_any_mark(&f->last, closes));
    bool binary = token->kind == PEAL_TOKEN_PUNCT && !is_any_mark(token, opens);
    return open || binary || is_joint(token) || is_any_name(token, clauses);
}

static size_t line_indent(const struct formatter *f, uint32_t blocks)
{
    if (f->nopen && f->nopen <= MAX_OPEN)
        return f->open[f->nopen - 1];
    return (size_t)INDENT * blocks;
}

static void put_indent(struct formatter *f, const struct peal_token *token)
{
    uint32_t blocks = f->blocks + continues(f, token);
    if (is_mark(token, "}") && blocks)
        blocks--;
    put_spaces(f, line_indent(f, blocks));
}

static void put_token(struct formatter *f, const struct peal_token *token, bool begins_line)
{
    if (begins_line)
        put_indent(f, token);
    else if (f->out->len > f->start && needs_space(f, token))
        put_spaces(f, 1);
    const char *text = token->text;
    if (token->kind == PEAL_TOKEN_STRING)
        text--; /* its quotes */
    peal_text_add(f->out, text, token->pos.len);
    bool bracket = is_mark(token, "[");
    if (bracket || is_mark(token, "(")) {
        if (f->nopen < MAX_OPEN) {
            f->open[f->nopen] = column(f);
            f->is_bracket[f->nopen] = bracket;
        }
        f->nopen++;
    }
    if ((is_mark(token, ")") || is_mark(token, "]")) && f->nopen)
        f->nopen--;
    f->blocks += is_mark(token, "{");
    if (is_mark(token, "}") && f->blocks)
        f->blocks--;
    f->is_sign = is_mark(token, "-") && !ends_operand(&f->last);
    f->before = f->last;
    f->last = *token;
    f->begins_line = begins_line;
}

static void end_line(struct formatter *f)
{
    while (f->out->len > f->start && f->out->at[f->out->len - 1] == ' ')
        f->out->len--;
    peal_text_puts(f->out, "\n");
    f->line_start = f->out->len;
}

/* The white space and the comments between two tokens. */
struct gap {
    const char *at, *end;
    uint32_t lines; /* line ends since the last token or comment */
    bool any_comments;
};

/* Writes the next comment of the gap. False: there are no more. */
static bool put_comment(struct formatter *f, struct gap *gap)
{
    while (gap->at < gap->end && *gap->at != '/')
        gap->lines += *gap->at++ == '\n';
    if (gap->at == gap->end)
        return false;
    const char *newline = memchr(gap->at, '\n', (size_t)(gap->end - gap->at));
    const char *end = newline ? newline : gap->end;
    bool at_start = f->out->len == f->start;
    bool own_line = gap->lines || at_start;
    if (own_line && !at_start) {
        end_line(f);
        bool opens = is_mark(&f->last, "{") && !gap->any_comments;
        if (gap->lines > 1 && !opens)
            end_line(f);
    }
    size_t indent = 1;
    if (own_line)
        indent = line_indent(f, f->blocks);
    put_spaces(f, indent);
    const char *last = end;
    while (last > gap->at && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r'))
        last--;
    peal_text_add(f->out, gap->at, (size_t)(last - gap->at));
    gap->at = end;
    gap->lines = 0;
    gap->any_comments = true;
    return true;
}

/* `{` and `else` stand on the line that they belong to. */
static bool joins(const struct formatter *f, const struct peal_token *token)
{
    bool is_else = token->kind == PEAL_TOKEN_NAME && token->len == 4 &&
                   memcmp(token->text, "else", 4) == 0 && is_mark(&f->last, "}");
    return is_mark(token, "{") || is_else;
}

static void put_gap(struct formatter *f, struct gap gap, const struct peal_token *token)
{
    while (put_comment(f, &gap))
        ;
    bool begins_line = f->out->len == f->start;
    bool breaks = gap.any_comments || (gap.lines && !joins(f, token));
    if (breaks && !begins_line) {
        bool at_brace = (is_mark(&f->last, "{") && !gap.any_comments) || is_mark(token, "}");
        end_line(f);
        if (gap.lines > 1 && !at_brace && token->kind != PEAL_TOKEN_END)
            end_line(f);
        begins_line = true;
    }
    if (token->kind != PEAL_TOKEN_END)
        put_token(f, token, begins_line);
}

void peal_format(const struct peal_source *source, struct peal_text *out)
{
    struct peal_lexer lexer;
    struct formatter f = {.out = out, .start = out->len, .line_start = out->len};
    const char *at = source->text;
    peal_lexer_init(&lexer, source);
    for (;;) {
        struct peal_token token = peal_lexer_next(&lexer);
        const char *start = token.text;
        if (token.kind == PEAL_TOKEN_STRING)
            start--; /* its quote */
        put_gap(&f, (struct gap){.at = at, .end = start}, &token);
        if (token.kind == PEAL_TOKEN_END)
            break;
        at = start + token.pos.len;
    }
    if (out->len > f.start && out->at[out->len - 1] != '\n')
        end_line(&f);
}
