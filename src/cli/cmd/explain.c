/* SPDX-License-Identifier: Apache-2.0 */
/* peal explain: what a word means. docs/explain.md has the words of verdicts, with examples that the test
 * suite runs; docs/glossary.md all others; the tables those of the language. All are part of the command. */
#include "cli/cli.h"
#include "cli/explain.h"

#include <string.h>
#include <strings.h>

static const struct peal_source *find_text(const char *name)
{
    for (size_t i = 0; i < peal_explain_text_count; i++) {
        if (strstr(peal_explain_texts[i].name, name))
            return &peal_explain_texts[i];
    }
    return NULL;
}

/* Steps to the next line; false at the end. */
static bool next_line(const char **at, const char **line, size_t *len)
{
    if (!**at)
        return false;
    *line = *at;
    *len = strcspn(*at, "\n");
    *at += *len + ((*at)[*len] == '\n');
    return true;
}

static bool same_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

/* [text](link) becomes text, `code` and **bold** lose their marks. */
static void put_plain(struct peal_text *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const char *end =
            text[i] == ']' && text[i + 1] == '(' ? memchr(text + i, ')', len - i) : NULL;
        if (end)
            i = (size_t)(end - text);
        else if (text[i] != '`' && text[i] != '[' && text[i] != '*')
            peal_text_add(out, text + i, 1);
        else if (text[i] == '[' && !memchr(text + i, '(', len - i))
            peal_text_add(out, text + i, 1);
    }
}

/* A paragraph and an empty line, if there is one. */
static void put_paragraph(struct peal_text *out, struct peal_text *prose)
{
    if (prose->len) {
        peal_text_words(out, prose->at, prose->len, 0, 0);
        peal_text_puts(out, "\n");
    }
    peal_text_release(prose);
}

/* The section of explain.md; false: there is none. Code stays as it is, text is wrapped. */
static bool put_section(const char *word, struct peal_text *out)
{
    const struct peal_source *source = find_text("explain.md");
    const char *at = source ? source->text : "", *line;
    struct peal_text prose = {0};
    bool inside = false, code = false, found = false;
    size_t len;
    while (next_line(&at, &line, &len)) {
        if (strncmp(line, "## ", 3) == 0) {
            inside = same_word(line + 3, len - 3, word);
            found = found || inside;
            if (inside)
                peal_text_printf(out, "%.*s\n\n", (int)len - 3, line + 3);
        } else if (!inside) {
            continue;
        } else if (strncmp(line, "```", 3) == 0) {
            code = !code;
            if (!code)
                peal_text_puts(out, "\n");
        } else if (code) {
            peal_text_printf(out, "  %.*s\n", (int)len, line);
        } else if (len) {
            put_plain(&prose, line, len);
            peal_text_puts(&prose, " ");
        } else {
            put_paragraph(out, &prose);
        }
    }
    put_paragraph(out, &prose);
    return found;
}

/* The word of a row of the glossary, "| **word**, **other** | meaning |": of the ones in bold. */
static bool row_has(const char *line, size_t len, const char *word)
{
    const char *end = memchr(line + 1, '|', len - 1);
    for (const char *at = line; end && (at = strstr(at, "**")) && at < end;) {
        const char *close = strstr(at + 2, "**");
        if (!close || close > end)
            return false;
        if (same_word(at + 2, (size_t)(close - at) - 2, word))
            return true;
        at = close + 2;
    }
    return false;
}

static void put_glossary(const char *word, struct peal_text *out)
{
    const struct peal_source *source = find_text("glossary.md");
    const char *at = source ? source->text : "", *line;
    size_t len;
    while (next_line(&at, &line, &len)) {
        if (strncmp(line, "| **", 4) != 0 || !row_has(line, len, word))
            continue;
        struct peal_text row = {0};
        const char *meaning = (const char *)memchr(line + 1, '|', len - 1) + 2;
        peal_text_printf(&row, "%s: ", word);
        put_plain(&row, meaning, (size_t)(line + len - meaning) - 2);
        peal_text_words(out, peal_text_get(&row), row.len, 0, 2);
        peal_text_release(&row);
        return;
    }
}

static bool put_language(const char *name, struct peal_text *out)
{
    const struct peal_word *word = peal_word_find(name, strlen(name));
    enum peal_fn fn;
    if (word)
        peal_text_printf(out, "%s: a word of the language (%s)\n\n  %s\n\n", name,
                         peal_word_role_name(word->role), peal_word_syntax(word));
    if (word)
        peal_text_words(out, peal_word_meaning(word), strlen(peal_word_meaning(word)), 0, 0);
    if (word || !peal_fn_find(name, strlen(name), &fn))
        return word != NULL;
    peal_text_printf(out, "%s: a function of data: %s\n", name, peal_fn_info(fn)->meaning);
    return true;
}

/* Calls `use` with every word that is known, until it returns false. */
static void each_word(bool (*use)(void *context, const char *word, size_t len), void *context)
{
    const struct peal_source *page = find_text("explain.md"), *glossary = find_text("glossary.md");
    const char *at = page ? page->text : "", *line;
    size_t len;
    while (next_line(&at, &line, &len)) {
        if (strncmp(line, "## ", 3) == 0 && !use(context, line + 3, len - 3))
            return;
    }
    at = glossary ? glossary->text : "";
    while (next_line(&at, &line, &len)) {
        const char *close = strncmp(line, "| **", 4) == 0 ? strstr(line + 4, "**") : NULL;
        if (close && !use(context, line + 4, (size_t)(close - line) - 4))
            return;
    }
}

struct nearest {
    struct peal_cli *cli;
    const char *word, *meant;
};

static bool compare(void *context, const char *word, size_t len)
{
    struct nearest *n = context;
    const char *candidate = peal_arena_copy(n->cli->arena, word, len);
    if (candidate)
        n->meant = peal_nearer(n->word, n->meant, candidate);
    return candidate != NULL;
}

/* Is the word in a text of words with ", " between them? */
static bool is_listed(const char *words, const char *word, size_t len)
{
    for (const char *at = words; at; at = strstr(at, ", ")) {
        at += at == words ? 0 : 2;
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

static bool list(void *context, const char *word, size_t len)
{
    struct peal_text *out = context;
    if (is_listed(peal_text_get(out), word, len))
        return true; /* the glossary has it, too */
    peal_text_printf(out, "%s%.*s", out->len ? ", " : "", (int)len, word);
    return true;
}

/* Says which word was meant by one that is not known. */
static int refuse(struct peal_cli *cli, const char *asked)
{
    struct nearest n = {.cli = cli, .word = asked};
    size_t count;
    const struct peal_word *words = peal_words(&count);
    each_word(compare, &n);
    for (size_t i = 0; i < count; i++)
        n.meant = peal_nearer(asked, n.meant, words[i].text);
    if (n.meant)
        return peal_cli_usage(cli, "'%s' is not a word of Peal; did you mean '%s'?", asked,
                              n.meant);
    return peal_cli_usage(cli, "'%s' is not a word of Peal: 'peal explain' lists them", asked);
}

static int list_words(struct peal_cli *cli)
{
    struct peal_text out = {0}, words = {0};
    each_word(list, &words);
    peal_text_puts(&out, "peal explain WORD says what a word means:\n\n");
    peal_text_words(&out, peal_text_get(&words), words.len, 0, 0);
    peal_text_puts(&out, "\nand the words of the language, see 'peal ops'.\n");
    peal_text_release(&words);
    return peal_cli_print(cli, &out, PEAL_EXIT_OK);
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)options;
    struct peal_text out = {0}, language = {0}, word = {0};
    int code = PEAL_EXIT_OK;
    if (nargs == 0)
        return list_words(cli);
    for (int i = 0; i < nargs; i++)
        peal_text_printf(&word, "%s%s", i ? " " : "", args[i]);
    const char *asked = peal_text_get(&word);
    if (!put_section(asked, &out)) {
        put_glossary(asked, &out);
        if (put_language(asked, &language))
            peal_text_printf(&out, "%s%s", out.len ? "\n" : "", peal_text_get(&language));
    }
    if (!out.len)
        code = refuse(cli, asked);
    peal_text_release(&language);
    peal_text_release(&word);
    return peal_cli_print(cli, &out, code);
}

const struct peal_command peal_cmd_explain = {
    .name = "explain",
    .args = "[WORD...]",
    .summary = "say what a word of the output means",
    .details = "The words of a verdict come with an example; others are explained in a line. "
               "Without a word, lists "
               "them.\n\n"
               "  peal explain race\n"
               "  peal explain not decided\n"
               "  peal explain notify",
    .options = NULL,
    .min_args = 0,
    .max_args = -1,
    .run = run,
};
