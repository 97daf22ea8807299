/* SPDX-License-Identifier: Apache-2.0 */
/* Notes for readers who are used to another language, and for typing errors: what was probably
 * meant where something else was expected. */
#include "base/base.h"
#include "lang/syntax/parser.h"

#include <string.h>

enum { LONGEST = 40 };

/* Marks of other languages that the parser may find. */
static const struct {
    const char *text, *note;
} marks[] = {
    {";", "a statement ends by itself: leave the ';' out"},
    {"#", "a comment begins with '//'"},
    {"/*", "a comment begins with '//' and ends with its line"},
    {"&", "'and' joins conditions"},
    {"||", "'or' joins conditions"},
    {"!", "'not' negates a condition"},
    {"++", "a var is counted up by 'i = i + 1'"},
};

/* Words of other languages at the beginning of a statement. */
static const struct {
    const char *word, *note;
} words[] = {
    {"while", "loops are 'for i in a .. b { ... }': how often is known when the plan is made"},
    {"elif", "that is 'else if'"},
    {"elsif", "that is 'else if'"},
    {"int", "an integer is 'let a = ...', or 'var a = ...' if it changes"},
    {"float", "data is 'let a = ...', a tile"},
    {"return", "a kernel ends with its last statement; results go to its 'out' parameters"},
};

/* NULL when none is near. */
static const char *find_near(const char *word, size_t len, const char *const *candidates)
{
    char name[LONGEST + 1];
    if (len > LONGEST)
        return NULL;
    memcpy(name, word, len);
    name[len] = '\0';
    return peal_nearest(name, candidates);
}

bool peal_token_is_near(const struct peal_token *token, const char *word)
{
    const char *const candidates[] = {word, NULL};
    return token->kind == PEAL_TOKEN_NAME && find_near(token->text, token->len, candidates);
}

void peal_parser_hint_word(struct peal_parser *p, const char *word, size_t len,
                           const char *const *candidates)
{
    const char *near = find_near(word, len, candidates);
    if (near && (strlen(near) != len || memcmp(near, word, len) != 0))
        peal_diag_note(p->diags, (struct peal_pos){0}, "did you mean '%s'?", near);
}

void peal_parser_hint_statement(struct peal_parser *p, const char *word,
                                const char *const *candidates)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].word, word) == 0) {
            peal_diag_note(p->diags, (struct peal_pos){0}, "%s", words[i].note);
            return;
        }
    }
    peal_parser_hint_word(p, word, strlen(word), candidates);
}

void peal_parser_hint_found(struct peal_parser *p, const char *wanted)
{
    const struct peal_token *token = &p->token;
    const char *const candidates[] = {wanted, NULL};
    if (token->kind == PEAL_TOKEN_NAME) {
        peal_parser_hint_word(p, token->text, token->len, candidates);
        return;
    }
    if (token->kind != PEAL_TOKEN_BAD && token->kind != PEAL_TOKEN_PUNCT)
        return;
    if (*wanted == ']' && *token->text == ':') {
        peal_diag_note(p->diags, (struct peal_pos){0},
                       "a slice is 'start +: length', 'c of k', or ':' for all");
        return;
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t len = strlen(marks[i].text);
        if ((size_t)(p->lexer.end - token->text) >= len &&
            memcmp(token->text, marks[i].text, len) == 0) {
            peal_diag_note(p->diags, (struct peal_pos){0}, "%s", marks[i].note);
            return;
        }
    }
}
