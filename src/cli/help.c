/* SPDX-License-Identifier: Apache-2.0 */
/* Help, from the same tables as parsing. Lines fit 80 columns. */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN = 26 };

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
        /* A paragraph ends at an empty line or before a line that is not to be wrapped. */
        size_t len = strcspn(text, "\n");
        while (text[len] == '\n' && text[len + 1] && text[len + 1] != '\n' && text[len + 1] != ' ')
            len += 1 + strcspn(text + len + 1, "\n");
        peal_text_words(out, text, len, 0, 0);
        text += len + (text[len] == '\n');
    }
}

void peal_options_help(const struct peal_option *table, struct peal_text *out)
{
    for (; peal_option_exists(table); table++) {
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
        peal_text_words(out, table->help, strlen(table->help), COLUMN, COLUMN);
    }
}
