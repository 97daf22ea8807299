/* SPDX-License-Identifier: Apache-2.0 */
/* What peal ci says: lines for a log, Markdown for a service's summary, SARIF. */
#include "cli/ci/ci.h"

#include "cli/verify/sarif.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DETAILS = 400 << 10, MAX_DETAIL = 16 << 10 };

static const char *verdict_of(const struct peal_ci_row *row)
{
    if (row->skipped)
        return "not run";
    if (row->code == PEAL_EXIT_OK)
        return "proved";
    return row->code == PEAL_EXIT_NO ? "refuted" : "not decided";
}

/* One line: control characters, and the marks that turn the direction of text, as \x1b; also "##[",
 * by which a line is a command to some services. */
static void put_line(const char *text, size_t len, struct peal_text *out)
{
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t n = peal_utf8_len(text + i, len - i);
        bool turns = n == 3 && c == 0xe2 &&
                     (((unsigned char)text[i + 1] == 0x80 && (unsigned char)text[i + 2] >= 0xa8) ||
                      (unsigned char)text[i + 1] == 0x81);
        if (c == '#' && i + 1 < len && text[i + 1] == '[') {
            peal_text_puts(out, "# [");
            i += 2;
        } else if (n == 0 || c < ' ' || c == 0x7f || turns ||
                   (n == 2 && c == 0xc2 && (unsigned char)text[i + 1] < 0xa0)) {
            for (size_t end = i + (n ? n : 1); i < end; i++)
                peal_text_printf(out, "\\x%02x", (unsigned char)text[i]);
        } else {
            peal_text_add(out, text + i, n);
            i += n;
        }
    }
}

void peal_ci_put_safe(const char *text, const char *indent, struct peal_text *out)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        size_t blank = len ? strlen(indent) : strcspn(indent, "|") + (strchr(indent, '|') != NULL);
        peal_text_add(out, indent, blank);
        put_line(text, len, out);
        peal_text_puts(out, "\n");
        text += len + (text[len] == '\n');
    }
}

/* A name: line ends are shown, too. */
static void put_name(const char *name, struct peal_text *out)
{
    put_line(name, strlen(name), out);
}

void peal_ci_report_row(const struct peal_ci_row *row, struct peal_text *out)
{
    size_t from = out->len;
    struct peal_text line = {0};
    put_name(row->path, out);
    peal_text_puts(out, ": ");
    peal_ci_put_safe(row->line, "", &line);
    for (char *c = line.at; c && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    size_t len = line.len;
    while (len && line.at[len - 1] == ' ')
        len--;
    peal_text_words(out, peal_text_get(&line), len,
                    peal_text_columns(out->at + from, out->len - from), 2);
    line.len = 0;
    peal_text_puts(&line, row->text);
    peal_text_fold(&line, 0, 4, PEAL_TEXT_WIDTH - 4);
    if (row->code != PEAL_EXIT_OK) /* no line begins as its author wants */
        peal_ci_put_safe(peal_text_get(&line), "  | ", out);
    peal_text_release(&line);
}

struct tally {
    size_t proved, refuted, undecided, skipped;
};

static struct tally count(const struct peal_ci_rows *rows)
{
    struct tally t = {0};
    for (size_t i = 0; i < rows->list.len; i++) {
        const struct peal_ci_row *row = &rows->list.at[i];
        t.skipped += row->skipped;
        t.proved += row->code == PEAL_EXIT_OK;
        t.refuted += row->code == PEAL_EXIT_NO;
        t.undecided += !row->skipped && row->code != PEAL_EXIT_OK && row->code != PEAL_EXIT_NO;
    }
    return t;
}

/* "2 proved, 1 refuted, 0 not decided", and the files. */
static void put_tally(const struct peal_ci_report *report, struct peal_text *out)
{
    struct tally t = count(report->rows);
    peal_text_printf(out, "%zu proved, %zu refuted, %zu not decided", t.proved, t.refuted,
                     t.undecided);
    if (t.skipped)
        peal_text_printf(out, ", %zu not run", t.skipped);
    peal_text_printf(out, "; %zu of %zu files", report->affected, report->files);
    if (report->tree->base)
        peal_text_printf(out, " since %.12s", report->tree->base);
}

void peal_ci_report_end(const struct peal_ci_report *report, struct peal_text *out)
{
    size_t from = out->len;
    put_tally(report, out);
    peal_text_puts(out, "\n");
    if (report->settings_changed)
        peal_text_puts(out, "peal.yaml changes: what is required is what this change says\n");
    for (size_t i = 0; i < report->rows->list.len; i++) {
        const struct peal_ci_row *row = &report->rows->list.at[i];
        bool plain = row->path[strcspn(row->path, " \n\t'\"\\$`!*?&;|<>(){}[]~#\x7f")] == '\0';
        if (row->code != PEAL_EXIT_NO || !plain)
            continue;
        peal_text_printf(out, "to step through it: peal verify %s%s%s --html race.html\n",
                         row->path, row->kernel[0] ? " --kernel " : "", row->kernel);
        break;
    }
    peal_text_fold(out, from, 2, PEAL_TEXT_WIDTH);
}

/* Text that means nothing in Markdown or HTML: all but letters, digits and a few others as numbers. */
static void put_escaped(const char *text, size_t len, struct peal_text *out)
{
    struct peal_text line = {0};
    put_line(text, len, &line);
    for (size_t i = 0; i < line.len; i++) {
        unsigned char c = (unsigned char)line.at[i];
        if (c >= 0x80 || isalnum(c) || strchr(" ,.:;=+/-", c))
            peal_text_add(out, line.at + i, 1);
        else
            peal_text_printf(out, "&#%d;", c);
    }
    peal_text_release(&line);
}

static void put_details(const struct peal_ci_row *row, struct peal_text *out)
{
    const char *text = row->text;
    size_t from = out->len;
    peal_text_puts(out, "\n<details><summary>");
    put_escaped(row->path, strlen(row->path), out);
    peal_text_puts(out, " ");
    put_escaped(row->kernel, strlen(row->kernel), out);
    peal_text_puts(out, "</summary>\n\n<pre>\n");
    while (*text && out->len - from < MAX_DETAIL) {
        size_t len = strcspn(text, "\n");
        put_escaped(text, len, out);
        peal_text_puts(out, len ? "\n" : " \n");
        text += len + (text[len] == '\n');
    }
    peal_text_printf(out, "%s</pre></details>\n", *text ? "...\n" : "");
}

void peal_ci_report_markdown(const struct peal_ci_report *report, struct peal_text *out)
{
    const struct peal_ci_rows *rows = report->rows;
    peal_text_puts(out, "### Peal: ");
    put_tally(report, out);
    peal_text_puts(out, "\n\n");
    if (report->settings_changed)
        peal_text_puts(out,
                       "**peal.yaml changes:** what is required is what this change says.\n\n");
    if (rows->list.len)
        peal_text_puts(out, "| file | kernel | verdict | what was found |\n|---|---|---|---|\n");
    for (size_t i = 0; i < rows->list.len; i++) {
        const struct peal_ci_row *row = &rows->list.at[i];
        struct peal_text line = {0};
        peal_text_puts(&line, row->line);
        for (char *c = line.at; c && *c; c++)
            *c = *c == '\n' ? ' ' : *c;
        peal_text_puts(out, "| ");
        put_escaped(row->path, strlen(row->path), out);
        peal_text_puts(out, " | ");
        put_escaped(row->kernel, strlen(row->kernel), out);
        peal_text_printf(out, " | %s%s%s | ", row->code ? "**" : "", verdict_of(row),
                         row->code ? "**" : "");
        put_escaped(peal_text_get(&line), line.len, out);
        peal_text_puts(out, " |\n");
        peal_text_release(&line);
    }
    for (size_t i = 0; i < rows->list.len && out->len < MAX_DETAILS; i++) {
        const struct peal_ci_row *row = &rows->list.at[i];
        if (row->code != PEAL_EXIT_OK && row->text[0])
            put_details(row, out);
    }
}

void peal_ci_report_sarif(const struct peal_ci_report *report, struct peal_text *out)
{
    struct peal_json json;
    peal_sarif_begin(&json, out);
    for (size_t i = 0; i < report->rows->list.len; i++) {
        if (report->rows->list.at[i].sarif[0])
            peal_json_raw(&json, report->rows->list.at[i].sarif);
    }
    peal_sarif_end(&json, out);
}
