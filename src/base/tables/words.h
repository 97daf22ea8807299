/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the language (words.def) as C. */
#ifndef PEAL_BASE_WORDS_H
#define PEAL_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum peal_word_role {
    PEAL_WORD_DECLARES,
    PEAL_WORD_CONTROLS,
    PEAL_WORD_OPERATES,
    PEAL_WORD_MODIFIES,
    PEAL_WORD_JOINS,
    PEAL_WORD_IS_PORT,
    PEAL_WORD_IS_KNOWN,
    PEAL_WORD_IS_FUNCTION,
    PEAL_WORD_ROLES
};

struct peal_word {
    const char *text;
    bool reserved;
    enum peal_word_role role;
    const char *syntax, *meaning; /* of the row; ask the functions below */
};

/* All of them, in the order of their letters. */
const struct peal_word *peal_words(size_t *count);
/* NULL: it is no word of the language. */
const struct peal_word *peal_word_find(const char *text, size_t len);
/* How it is written and what it means: for the name of an op, what ops.def says. */
const char *peal_word_syntax(const struct peal_word *word);
const char *peal_word_meaning(const struct peal_word *word);
/* "declaration", "statement", "operation", "modifier", "operator", "port", "name", "function". */
const char *peal_word_role_name(enum peal_word_role role);

/* True for the words that cannot be names. */
bool peal_word_is_reserved(const char *word, size_t len);
/* The i-th of them; NULL after the last. */
const char *peal_word_reserved(size_t i);

#endif
