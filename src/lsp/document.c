/* SPDX-License-Identifier: Apache-2.0 */
/* A text and its lines: see document.h. */
#include "lsp/document.h"

#include <stdlib.h>
#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The path of a file: URI, or NULL. */
static char *path_of(const char *uri)
{
    static const char scheme[] = "file://";
    if (strncmp(uri, scheme, sizeof scheme - 1) != 0)
        return NULL;
    const char *at = strchr(uri + sizeof scheme - 1, '/');
    char *path = at ? malloc(strlen(at) + 1) : NULL, *to = path;
    if (!path)
        return NULL;
    while (*at) {
        bool escaped = at[0] == '%' && hex_value(at[1]) >= 0 && hex_value(at[2]) >= 0;
        char c = *at;
        if (escaped)
            c = (char)(hex_value(at[1]) << 4 | hex_value(at[2]));
        *to++ = c;
        at += escaped ? 3 : 1;
    }
    *to = '\0';
    if (strlen(path) == (size_t)(to - path))
        return path;
    free(path); /* a %00 */
    return NULL;
}

static void find_lines(struct lsp_document *doc)
{
    const char *text = peal_text_get(&doc->text);
    doc->lines.len = doc->newlines.len = 0;
    doc->crlf = false;
    bool good = peal_vec_push(&doc->lines, 0) && peal_vec_push(&doc->newlines, 0);
    for (size_t i = 0; i < doc->text.len && good; i++) {
        bool pair = text[i] == '\r' && text[i + 1] == '\n';
        if (text[i] == '\n' || (text[i] == '\r' && !pair))
            good = peal_vec_push(&doc->lines, i + 1);
        if (text[i] == '\n' && good)
            good = peal_vec_push(&doc->newlines, i + 1);
        doc->crlf = doc->crlf || pair;
    }
    doc->text.failed = doc->text.failed || !good;
}

struct lsp_document *lsp_document_new(const char *uri, const char *text, size_t len)
{
    struct lsp_document *doc = calloc(1, sizeof *doc);
    if (!doc)
        return NULL;
    peal_diags_init(&doc->diags);
    doc->uri = strdup(uri);
    if (doc->uri)
        doc->path = path_of(uri);
    peal_text_add(&doc->text, text, len);
    find_lines(doc);
    if (doc->uri && !doc->text.failed)
        return doc;
    lsp_document_free(doc);
    return NULL;
}

void lsp_forget(struct lsp_document *doc)
{
    peal_module_free(doc->module);
    doc->module = NULL;
    peal_diags_release(&doc->diags);
    peal_diags_init(&doc->diags);
    doc->tokens.len = doc->blocks.len = 0;
    doc->analysed = false;
}

void lsp_document_free(struct lsp_document *doc)
{
    if (!doc)
        return;
    lsp_forget(doc);
    for (size_t i = 0; i < doc->verdicts.len; i++) {
        struct lsp_verdict *v = &doc->verdicts.at[i];
        free(v->name), free(v->summary), free(v->why), free(v->fixed), free(v->fix);
    }
    peal_vec_release(&doc->verdicts);
    peal_vec_release(&doc->tokens);
    peal_vec_release(&doc->blocks);
    peal_vec_release(&doc->lines);
    peal_vec_release(&doc->newlines);
    peal_diags_release(&doc->diags);
    peal_text_release(&doc->text);
    free(doc->uri);
    free(doc->path);
    free(doc);
}

bool lsp_document_change(struct lsp_document *doc, struct lsp_range range, const char *text,
                         size_t len)
{
    struct peal_text changed = {0};
    const char *old = peal_text_get(&doc->text);
    peal_text_add(&changed, old, range.at);
    peal_text_add(&changed, text, len);
    peal_text_add(&changed, old + range.end, doc->text.len - range.end);
    lsp_forget(doc); /* its places point into the old text */
    peal_text_release(&doc->text);
    doc->text = changed;
    doc->dirty = true;
    find_lines(doc);
    if (!doc->text.failed)
        return true;
    peal_text_release(&doc->text);
    doc->lines.len = doc->newlines.len = 0;
    return false;
}

/* ---- places ---- */

/* Bytes of the character at `at`: the text is UTF-8. */
static size_t step_at(const char *text, size_t at, size_t end)
{
    size_t step = peal_utf8_len(text + at, end - at);
    return step ? step : 1;
}

/* Where the line's text ends: before its line end. */
static size_t line_end(const struct lsp_document *doc, size_t line)
{
    const char *text = peal_text_get(&doc->text);
    if (line + 1 >= doc->lines.len)
        return doc->text.len;
    size_t end = doc->lines.at[line + 1] - 1;
    if (end > doc->lines.at[line] && text[end] == '\n' && text[end - 1] == '\r')
        end--;
    return end;
}

size_t lsp_offset(const struct lsp_document *doc, struct lsp_position position)
{
    const char *text = peal_text_get(&doc->text);
    if (position.line >= doc->lines.len)
        return doc->text.len;
    size_t at = doc->lines.at[position.line], end = line_end(doc, position.line);
    for (uint32_t units = position.character; units && at < end;) {
        size_t step = step_at(text, at, end);
        uint32_t wide = step == 4 ? 2 : 1;
        if (wide > units)
            break;
        units -= wide;
        at += step;
    }
    return at;
}

/* The last line that begins at or before the offset; `starts` has at least one. */
static size_t find_line(const size_t *starts, size_t count, size_t offset)
{
    size_t low = 0, high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (starts[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct lsp_position lsp_position(const struct lsp_document *doc, size_t offset)
{
    struct lsp_position position = {0, 0};
    if (!doc->lines.len)
        return position;
    size_t line = find_line(doc->lines.at, doc->lines.len, offset);
    size_t end = peal_size_min(offset, line_end(doc, line));
    position.line = (uint32_t)line;
    for (size_t at = doc->lines.at[line]; at < end;) {
        size_t step = step_at(doc->text.at, at, doc->text.len);
        position.character += step == 4 ? 2 : 1;
        at += step;
    }
    return position;
}

struct lsp_range lsp_place(const struct lsp_document *doc, const struct peal_pos *pos)
{
    if (!pos->line || !doc->newlines.len)
        return (struct lsp_range){0, 0};
    size_t line = peal_size_min(pos->line, doc->newlines.len) - 1;
    size_t at =
        peal_size_min(doc->newlines.at[line] + (pos->col ? pos->col - 1 : 0), doc->text.len);
    size_t end = peal_size_min(at + pos->len, doc->text.len);
    const char *text = peal_text_get(&doc->text);
    if (end == at && at < doc->text.len && text[at] != '\n' && text[at] != '\r')
        end = at + step_at(text, at, doc->text.len);
    return (struct lsp_range){at, end};
}

uint32_t lsp_token_at(const struct lsp_document *doc, size_t offset)
{
    uint32_t found = UINT32_MAX;
    size_t low = 0, high = doc->tokens.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (doc->tokens.at[middle].range.end < offset)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < doc->tokens.len && doc->tokens.at[i].range.at <= offset; i++) {
        if (found == UINT32_MAX || doc->tokens.at[i].kind == PEAL_TOKEN_NAME)
            found = (uint32_t)i;
    }
    return found;
}

bool lsp_token_is(const struct lsp_document *doc, uint32_t token, const char *text)
{
    if (token >= doc->tokens.len)
        return false;
    const struct lsp_token *t = &doc->tokens.at[token];
    bool word = t->kind == PEAL_TOKEN_NAME || t->kind == PEAL_TOKEN_PUNCT;
    return word && strlen(text) == t->range.end - t->range.at &&
           memcmp(doc->text.at + t->range.at, text, strlen(text)) == 0;
}

const char *lsp_token_text(const struct lsp_document *doc, uint32_t token, char buf[static 256])
{
    const struct lsp_token *t = &doc->tokens.at[token];
    size_t len = peal_size_min(t->range.end - t->range.at, 255);
    memcpy(buf, doc->text.at + t->range.at, len);
    buf[len] = '\0';
    return buf;
}

struct lsp_block *lsp_block_of(const struct lsp_document *doc, uint32_t token)
{
    struct lsp_block *found = NULL;
    for (size_t i = 0; i < doc->blocks.len && doc->blocks.at[i].word <= token; i++)
        found = &doc->blocks.at[i];
    if (!found || token > found->close)
        return NULL;
    return found;
}
