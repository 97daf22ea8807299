/* SPDX-License-Identifier: Apache-2.0 */
/* docs/language.md repeats some tables of the code: they must be the same. (tests/doc runs `peal
 * ops` and the examples in it.) */
#include "base/base.h"
#include "lang/deduce/deduce.h"
#include "lang/syntax/parse.h"
#include "lang/syntax/syntax.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_document(void **state)
{
    FILE *file = fopen(SOURCE_ROOT "/docs/language.md", "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text)
        return -1;
    size_t len = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    *state = text;
    return len > 0 ? 0 : -1;
}

static int free_document(void **state)
{
    free(*state);
    return 0;
}

/* The words from `start` (not included) to the first full stop, each followed by one space. */
static void words_after(const char *document, const char *start, char out[static 1024])
{
    const char *at = strstr(document, start);
    if (!at)
        fail_msg("'%s' is not in the document", start);
    size_t len = 0;
    bool gap = true;
    at += strlen(start);
    const char *end = strchr(at, '.');
    assert_true(end && end - at < 1000);
    for (; at < end; at++) {
        bool is_space = *at == ' ' || *at == '\n';
        if (!is_space)
            out[len++] = *at;
        else if (!gap)
            out[len++] = ' ';
        gap = is_space;
    }
    out[len++] = ' ';
    out[len] = '\0';
}

TEST(the_lists_of_words_are_those_of_the_tables)
{
    char shown[1024];
    struct peal_text words = {0};
    for (size_t i = 0; peal_word_reserved(i); i++)
        peal_text_printf(&words, "%s ", peal_word_reserved(i));
    words_after(*state, "Words that cannot be names:", shown);
    assert_string_equal(shown, peal_text_get(&words));

    peal_text_release(&words);
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++)
        peal_text_printf(&words, "%s ", peal_contract_info((enum peal_contract)i)->name);
    words_after(*state, "CONTRACT is one of", shown);
    assert_string_equal(shown, peal_text_get(&words));

    peal_text_release(&words);
    for (int i = 0; i < PEAL_REDUCTIONS; i++)
        peal_text_printf(&words, "%s ", peal_reduce_name((enum peal_reduction)i));
    words_after(*state, "REDUCE is a `reduce` parameter or one of", shown);
    assert_string_equal(shown, peal_text_get(&words));
    peal_text_release(&words);
}

TEST(every_contract_has_its_row_in_order)
{
    const char *at = strstr(*state, "| contract | x on rank r");
    assert_non_null(at);
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++) {
        char row[64];
        snprintf(row, sizeof row, "\n| %s |", peal_contract_info((enum peal_contract)i)->name);
        at = strstr(at, row);
        if (!at)
            fail_msg("no row '%s', or not in order", row + 1);
    }
}

TEST(every_function_is_described)
{
    for (size_t i = 0; peal_function_name(i); i++) {
        char call[64];
        snprintf(call, sizeof call, "`%s(", peal_function_name(i));
        if (!strstr(*state, call))
            fail_msg("'%s' is not in the document", call);
        const struct peal_word *word =
            peal_word_find(peal_function_name(i), strlen(peal_function_name(i)));
        if (!word || word->role != PEAL_WORD_IS_FUNCTION)
            fail_msg("'%s' is no function in words.def", peal_function_name(i));
    }
}

TEST(every_word_is_in_the_document_and_has_a_meaning)
{
    size_t count;
    const struct peal_word *words = peal_words(&count);
    for (size_t i = 0; i < count; i++) {
        if (!strstr(*state, words[i].text))
            fail_msg("'%s' is not in the document", words[i].text);
        if (!peal_word_syntax(&words[i])[0] || !peal_word_meaning(&words[i])[0])
            fail_msg("'%s' has no syntax or no meaning", words[i].text);
        if (i && strcmp(words[i - 1].text, words[i].text) >= 0)
            fail_msg("'%s' is not in its place", words[i].text);
    }
    for (int port = PEAL_PORT_N; port <= PEAL_PORT_CHILD; port++) {
        const char *name = peal_port_name((enum peal_port)port);
        const struct peal_word *word = peal_word_find(name, strlen(name));
        if (!word || word->role != PEAL_WORD_IS_PORT)
            fail_msg("'%s' is no port in words.def", name);
    }
}

/* Every word that the grammar quotes is in the table: reductions, types and contracts have their own. */
TEST(every_quoted_word_of_the_grammar_is_in_the_table)
{
    const char *at = strstr(*state, "    module   = {");
    const char *end = at ? strstr(at, "CONTRACT is one of") : NULL;
    assert_non_null(end);
    for (; at < end; at++) {
        size_t len = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (*at != '"' || len == 0 || at[1 + len] != '"')
            continue;
        enum peal_dtype dtype;
        if (!peal_word_find(at + 1, len) && !peal_dtype_find(at + 1, len, &dtype))
            fail_msg("'%.*s' is not in words.def", (int)len, at + 1);
        at += len + 1;
    }
}

/* The line of operators, from loosest to tightest. */
TEST(operators_stand_in_the_order_of_their_levels)
{
    const char *line = strstr(*state, "\"or\"   \"and\"");
    assert_non_null(line);
    const char *end = strchr(line, '\n');
    int last = 0;
    for (const char *at = line; at < end;) {
        size_t len = strcspn(at, " \n");
        const char *word = *at == '"' ? at + 1 : at;
        size_t word_len = *at == '"' ? len - 2 : len;
        for (int i = 0; i < PEAL_INT_NEG; i++) {
            const struct peal_operator *operator= peal_operator((enum peal_int_op)i);
            if (strlen(operator->text) == word_len && memcmp(operator->text, word, word_len) == 0 &&
                !(word_len == 1 && *word == '-' && at > strstr(line, "unary"))) {
                if (operator->level<last)
                    fail_msg("'%s' stands too late", operator->text);
                last = operator->level;
            }
        }
        at += len + strspn(at + len, " ");
    }
    assert_int_equal(last, peal_operator(PEAL_INT_MUL)->level);
}

int main(void)
{
    return unit_run_with(read_document, free_document);
}
