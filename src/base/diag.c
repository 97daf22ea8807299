/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting and printing diagnostics. */
#include "base/diag.h"

#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void peal_diags_init(struct peal_diags *diags)
{
    *diags = (struct peal_diags){.errors = 0};
    peal_arena_init(&diags->arena, 0);
}

void peal_diags_release(struct peal_diags *diags)
{
    peal_vec_release(&diags->list);
    peal_arena_release(&diags->arena);
    diags->errors = 0;
}

void peal_diag_add(struct peal_diags *diags, enum peal_severity severity, struct peal_pos pos,
                   const char *format, va_list args)
{
    if (!diags)
        return;
    if (severity == PEAL_ERROR)
        diags->errors++;
    if (diags->errors > PEAL_DIAG_LIMIT)
        return;
    char buf[1024];
    int len = vsnprintf(buf, sizeof buf, format, args);
    if (len < 0)
        return;
    size_t kept = (size_t)len < sizeof buf ? (size_t)len : sizeof buf - 1;
    char *message = peal_arena_copy(&diags->arena, buf, kept);
    if (message)
        (void)peal_vec_push(&diags->list, ((struct peal_diag){severity, pos, message}));
}

void peal_diag_error(struct peal_diags *diags, struct peal_pos pos, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    peal_diag_add(diags, PEAL_ERROR, pos, format, args);
    va_end(args);
}

void peal_diag_note(struct peal_diags *diags, struct peal_pos pos, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    peal_diag_add(diags, PEAL_NOTE, pos, format, args);
    va_end(args);
}

/* The line of `pos`, without its newline; false when the source does not have it. */
static bool find_line(struct peal_pos pos, const char **out, size_t *out_len)
{
    if (!pos.source || !pos.source->text || pos.line == 0)
        return false;
    const char *at = pos.source->text;
    const char *end = at + pos.source->len;
    for (uint32_t line = 1; line < pos.line; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            return false;
        at = newline + 1;
    }
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    *out = at;
    *out_len = (size_t)((newline ? newline : end) - at);
    return true;
}

/* How many bytes of valid UTF-8 begin at `at`: one printable character; 0 where there is none. */
static size_t find_character(const unsigned char *at, size_t len)
{
    if (at[0] < 0x80)
        return at[0] >= 0x20 && at[0] != 0x7f;
    size_t want = peal_utf8_length(at[0]);
    if (at[0] < 0xc2 || at[0] > 0xf4 || want > len)
        return 0;
    for (size_t i = 1; i < want; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    bool is_control = at[0] == 0xc2 && at[1] < 0xa0;
    if (is_control)
        return 0;
    return want;
}

/* Writes a text that is safe for a terminal: bytes that could move its cursor become a blank or
 * '?'. Returns the number of columns written. */
static size_t put_clean(const char *text, size_t len, struct peal_text *out)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t columns = 0;
    for (size_t i = 0, step; i < len; i += step, columns++) {
        step = find_character(at + i, len - i);
        if (step)
            peal_text_add(out, text + i, step);
        else
            peal_text_puts(out, at[i] < 0x20 ? " " : "?");
        if (!step)
            step = 1;
    }
    return columns;
}

/* Shows as much of the line as fits, from a place that keeps the caret in view. */
static void print_caret(struct peal_pos pos, bool color, struct peal_text *out)
{
    const char *line;
    size_t len;
    if (!find_line(pos, &line, &len) || len == 0 || pos.col == 0 || pos.col > len + 1)
        return;
    enum { MARGIN = 4, WIDEST = PEAL_TEXT_WIDTH - MARGIN };
    size_t column = pos.col - 1;
    size_t from = 0;
    if (len > WIDEST && column > WIDEST - 40)
        from = peal_size_min(column - (WIDEST - 40), len - WIDEST);
    size_t shown = WIDEST;
    if (len - from < WIDEST)
        shown = len - from;
    peal_text_printf(out, "%*s", MARGIN, "");
    size_t blanks = put_clean(line + from, column - from, out);
    put_clean(line + column, from + shown - column, out);
    peal_text_printf(out, "\n%*s%s", (int)blanks + MARGIN, "", color ? "\033[32m^" : "^");
    for (size_t i = 1; i < pos.len && column + i < from + shown; i++)
        peal_text_puts(out, "~");
    peal_text_puts(out, color ? "\033[0m\n" : "\n");
}

/* Messages quote what was read, and may have several lines. `folded`: what is too long for a line
 * goes on below, so that the first one keeps the place, for editors, and the first word. */
static void put_message(const char *message, bool folded, struct peal_text *out)
{
    enum { INDENT = 2 };
    for (;;) {
        size_t len = strcspn(message, "\n");
        size_t line = out->len;
        while (line && out->at[line - 1] != '\n')
            line--;
        size_t column = peal_text_columns(out->at + line, out->len - line);
        struct peal_text clean = {0};
        size_t columns = put_clean(message, len, &clean);
        if (folded && column + columns > PEAL_TEXT_WIDTH)
            peal_text_words(out, peal_text_get(&clean), clean.len, column, INDENT);
        else
            peal_text_printf(out, "%s\n", peal_text_get(&clean));
        peal_text_release(&clean);
        if (!message[len])
            return;
        message += len + 1;
    }
}

static void put_severity(enum peal_severity severity, bool color, struct peal_text *out)
{
    static const char *const plain[] = {[PEAL_ERROR] = "error: ", [PEAL_NOTE] = "note: "};
    static const char *const bright[] = {
        [PEAL_ERROR] = "\033[31merror:\033[0m ", [PEAL_NOTE] = "\033[36mnote:\033[0m "};
    peal_text_puts(out, color ? bright[severity] : plain[severity]);
}

/* `quoted`: inside another message, which is folded as a whole, and in which only notes and places
 * are marked. */
static void print(const struct peal_diags *diags, bool color, bool quoted, struct peal_text *out)
{
    for (size_t i = 0; i < diags->list.len; i++) {
        const struct peal_diag *diag = &diags->list.at[i];
        if (diag->pos.source) {
            peal_text_puts(out, diag->pos.source->name);
            if (diag->pos.line)
                peal_text_printf(out, ":%u:%u", diag->pos.line, diag->pos.col);
            peal_text_puts(out, ": ");
        }
        if (!quoted || diag->pos.source || diag->severity == PEAL_NOTE)
            put_severity(diag->severity, color, out);
        put_message(diag->message, !quoted, out);
        print_caret(diag->pos, color, out);
    }
    if (diags->errors > PEAL_DIAG_LIMIT)
        peal_text_printf(out, "and %zu more errors\n", diags->errors - PEAL_DIAG_LIMIT);
}

void peal_diags_print(const struct peal_diags *diags, bool color, struct peal_text *out)
{
    print(diags, color, false, out);
}

void peal_diags_quote(const struct peal_diags *diags, struct peal_text *out)
{
    print(diags, false, true, out);
}
