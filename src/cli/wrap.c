/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks lines of code that are wider than a terminal, without changing their meaning:
 *
 *   kernel k(in x: T[n],             a = f(b, c)
 *           out y: T[n]) {               // where it comes from
 *
 * Only at blanks, never within a string; a comment continues as a comment.
 */
#include "cli/options.h"

#include <limits.h>
#include <string.h>

enum { HANG = 8 }; /* continuation lines are indented deeper than an inner block */

/* Where the comment of a line begins; its length if it has none. */
static size_t find_comment(const char *line, size_t len)
{
    bool in_string = false;
    for (size_t i = 0; i + 1 < len; i++) {
        if (line[i] == '"')
            in_string = !in_string;
        else if (!in_string && line[i] == '/' && line[i + 1] == '/')
            return i;
    }
    return len;
}

/* Where to break so that at most `columns` come before it: at the outermost blank of the
 * latter half, preferably after a comma; else at the last blank, else at the next one; `len` if
 * there is none. Never within a string, nor before the first word or a brace. */
static size_t find_break(const char *text, size_t len, size_t columns)
{
    bool in_string = false;
    size_t best = len;
    int depth = 0, least = INT_MAX;
    for (size_t i = strspn(text, " "); i < len && (i <= columns || best == len); i++) {
        if (text[i] == '"')
            in_string = !in_string;
        if (in_string)
            continue;
        depth += text[i] == '(' || text[i] == '[';
        depth -= text[i] == ')' || text[i] == ']';
        if (text[i] != ' ' || text[i + 1] == '{')
            continue;
        int cost = i < columns / 2 ? INT_MAX : 2 * depth + (text[i - 1] != ',');
        if (cost <= least) {
            least = cost;
            best = i;
        }
    }
    return best;
}

/* The same for the words of a comment. */
static size_t find_blank(const char *text, size_t len, size_t columns)
{
    size_t best = len;
    for (size_t i = 3; i < len && (i <= columns || best == len); i++) {
        if (text[i] == ' ')
            best = i;
    }
    return best;
}

/* Prints a text in pieces; further lines begin with `mark` (for a comment) at column `indent`. The
 * cursor is at `column`; returns its new column. */
static size_t put_pieces(const char *text, size_t len, size_t column, size_t indent,
                         const char *mark, size_t width, struct peal_text *out)
{
    while (column + len > width) {
        size_t columns = 0;
        if (width > column)
            columns = width - column;
        size_t cut = *mark ? find_blank(text, len, columns) : find_break(text, len, columns);
        if (cut == len)
            break;
        peal_text_add(out, text, cut);
        cut += strspn(text + cut, " ");
        text += cut;
        len -= cut;
        peal_text_printf(out, "\n%*s%s", (int)indent, "", mark);
        column = indent + strlen(mark);
    }
    peal_text_add(out, text, len);
    return column + len;
}

static void put_line(const char *line, size_t len, size_t width, struct peal_text *out)
{
    if (len <= width) {
        peal_text_add(out, line, len);
        return;
    }
    size_t indent = strspn(line, " "), comment = find_comment(line, len), code = comment;
    while (code > indent && line[code - 1] == ' ')
        code--;
    size_t column = put_pieces(line, code, 0, indent + HANG, "", width, out);
    if (comment == len)
        return;
    if (code == indent) { /* nothing else on the line */
        put_pieces(line + comment, len - comment, column, indent, "// ", width, out);
        return;
    }
    if (column + 2 + len - comment > width)
        peal_text_printf(out, "\n%*s", (int)(column = indent + HANG), "");
    else
        peal_text_printf(out, "%*s", 2, "");
    put_pieces(line + comment, len - comment, column, column, "// ", width, out);
}

void peal_code_wrap(const char *code, size_t width, struct peal_text *out)
{
    while (*code) {
        size_t len = strcspn(code, "\n");
        put_line(code, len, width, out);
        code += len;
        if (*code == '\n')
            peal_text_add(out, code++, 1);
    }
}
