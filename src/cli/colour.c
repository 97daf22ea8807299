/* SPDX-License-Identifier: Apache-2.0 */
/* Colours for verdicts, put in when a text is printed: whoever makes the text counts columns and
 * need not know. */
#include "cli/cli.h"

#include <string.h>

#define GREEN "\033[32m"
#define RED "\033[1;31m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* A word is tinted where it stands between these two. Two blanks before: a cell of a table. */
static const struct colour {
    const char *before, *word, *after, *color;
} tints[] = {
    {"  ", "proved", " ", GREEN},
    {"", "proved", " at ", GREEN},
    {"", "refuted", " at ", RED},
    {"", "refuted", " on ", RED},
    {"", "not decided", " at ", YELLOW},
    {"  ", "not decided", " ", YELLOW},
    {"  ", "no plan", " ", YELLOW},
    {"  ", "race", " ", RED},
    {"  ", "deadlock", " ", RED},
    {"  ", "wrong result", " ", RED},
    {"  ", "out of bounds", " ", RED},
    {"  ", "overlap", " ", RED},
    {"  ", "uninitialised read", " ", RED},
    {"", "<- collides", "", RED},
    {"", "<- waits for ever", "", RED},
    {"expected  ", "", "", GREEN},
    {"obtained  ", "", "", RED},
};

/* The tint of what begins at `at`, with its length; NULL where there is none. */
static const struct colour *find_tint(const char *text, const char *at, size_t *len)
{
    for (size_t i = 0; i < sizeof tints / sizeof *tints; i++) {
        const struct colour *t = &tints[i];
        size_t before = strlen(t->before);
        *len = *t->word ? strlen(t->word) : strcspn(at, "\n");
        if ((size_t)(at - text) >= before && strncmp(at - before, t->before, before) == 0 &&
            strncmp(at, t->word, strlen(t->word)) == 0 &&
            strncmp(at + *len, t->after, strlen(t->after)) == 0)
            return t;
    }
    return NULL;
}

int peal_cli_print_verdict(const struct peal_cli *cli, struct peal_text *text, int code)
{
    if (!cli->color || text->failed)
        return peal_cli_print(cli, text, code);
    struct peal_text out = {0};
    const char *all = peal_text_get(text);
    for (const char *at = all; *at;) {
        size_t len;
        const struct colour *t = find_tint(all, at, &len);
        if (t)
            peal_text_printf(&out, "%s%.*s" PLAIN, t->color, (int)len, at);
        else
            peal_text_add(&out, at, len = 1);
        at += len;
    }
    peal_text_release(text);
    return peal_cli_print(cli, &out, code);
}
