/* SPDX-License-Identifier: Apache-2.0 */
/* words.def as an array; what ops.def says about an op is not written again. */
#include "base/tables/words.h"

#include "base/tables/ops.h"

#include <string.h>

static const struct peal_word rows[] = {
#define NO false
#define YES true
#define WORD(text, reserved, role, syntax, meaning)                                                \
    {text, reserved, PEAL_WORD_##role, syntax, meaning},
#include "base/tables/words.def"
};

const struct peal_word *peal_words(size_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}

const struct peal_word *peal_word_find(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strncmp(rows[i].text, text, len) == 0 && !rows[i].text[len])
            return &rows[i];
    }
    return NULL;
}

/* The op of this name, or PEAL_OP_KIND_COUNT. */
static enum peal_op_kind find_op(const char *name)
{
    int kind = 0;
    while (kind < PEAL_OP_KIND_COUNT &&
           strcmp(peal_op_info((enum peal_op_kind)kind)->name, name) != 0)
        kind++;
    return (enum peal_op_kind)kind;
}

/* NULL: the row says it itself. */
static const struct peal_op_info *op_of(const struct peal_word *word)
{
    if (word->syntax[0])
        return NULL;
    return peal_op_info(find_op(word->text));
}

const char *peal_word_syntax(const struct peal_word *word)
{
    const struct peal_op_info *op = op_of(word);
    return op ? op->syntax : word->syntax;
}

const char *peal_word_meaning(const struct peal_word *word)
{
    enum peal_op_kind kind = find_op(word->text);
    if (word->meaning[0] || kind == PEAL_OP_KIND_COUNT)
        return word->meaning;
    return peal_op_info(kind)->meaning;
}

const char *peal_word_role_name(enum peal_word_role role)
{
    static const char *const names[] = {
        [PEAL_WORD_DECLARES] = "declaration", [PEAL_WORD_CONTROLS] = "statement",
        [PEAL_WORD_OPERATES] = "operation",   [PEAL_WORD_MODIFIES] = "modifier",
        [PEAL_WORD_JOINS] = "operator",       [PEAL_WORD_IS_PORT] = "port",
        [PEAL_WORD_IS_KNOWN] = "name",        [PEAL_WORD_IS_FUNCTION] = "function"};
    assert((unsigned)role < PEAL_WORD_ROLES);
    return names[role];
}

#define IF_YES(text) text,
#define IF_NO(text)
static const char *const reserved_words[] = {
#define WORD(text, reserved, role, syntax, meaning) IF_##reserved(text)
#include "base/tables/words.def"
};
enum { RESERVED = sizeof reserved_words / sizeof *reserved_words };

bool peal_word_is_reserved(const char *word, size_t len)
{
    for (size_t i = 0; i < RESERVED; i++) {
        const char *known = reserved_words[i];
        if (known[0] == word[0] && strlen(known) == len && memcmp(known, word, len) == 0)
            return true;
    }
    return false;
}

const char *peal_word_reserved(size_t i)
{
    if (i >= RESERVED)
        return NULL;
    return reserved_words[i];
}
