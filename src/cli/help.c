/* SPDX-License-Identifier: Apache-2.0 */
/* Help, from the tables that parse. Lines fit 80 columns. */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 80, COLUMN = 26 };

/* Appends words of `text` (up to len), breaking before WIDTH and going on at `indent`. */
static void add_words(const char *text, size_t len, size_t column, size_t indent,
                      struct peal_text *out)
{
    const char *end = text + len;
    bool first = true;
    while (text < end) {
        while (text < end && (*text == ' ' || *text == '\n'))
            text++;
        size_t word = 0;
        while (text + word < end && text[word] != ' ' && text[word] != '\n')
            word++;
        if (!word)
            break;
        if (!first && column + 1 + word > WIDTH) {
            peal_text_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            peal_text_puts(out, " ");
            column++;
        }
        peal_text_add(out, text, word);
        column += word;
        text += word;
        first = false;
    }
    peal_text_puts(out, "\n");
}

void peal_help_wrap(const char *text, struct peal_text *out)
{
    while (*text) {
        if (*text == '\n' || *text == ' ') {
            size_t line = strcspn(text, "\n");
            line += text[line] == '\n';
            peal_text_add(out, text, line);
            text += line;
            if (*text == '\0' && text[-1] != '\n')
                peal_text_puts(out, "\n");
            continue;
        }
        /* A paragraph ends at an empty line or before a line that is to stay as it is. */
        size_t len = strcspn(text, "\n");
        while (text[len] == '\n' && text[len + 1] && text[len + 1] != '\n' && text[len + 1] != ' ')
            len += 1 + strcspn(text + len + 1, "\n");
        add_words(text, len, 0, 0, out);
        text += len + (text[len] == '\n');
    }
}

void peal_options_help(const struct peal_option *table, struct peal_text *out)
{
    for (; table && table->name; table++) {
        char left[80];
        int len = table->letter
                      ? snprintf(left, sizeof left, "  -%c, --%s", table->letter, table->name)
                      : snprintf(left, sizeof left, "      --%s", table->name);
        if (table->value && len > 0 && (size_t)len < sizeof left)
            len += snprintf(left + len, sizeof left - (size_t)len, " %s", table->value);
        peal_text_puts(out, left);
        if (len >= COLUMN - 1)
            peal_text_printf(out, "\n%*s", COLUMN, "");
        else
            peal_text_printf(out, "%*s", COLUMN - len, "");
        add_words(table->help, strlen(table->help), COLUMN, COLUMN, out);
    }
}
