/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a text: the errors of parse and deduce as `peal check` has them, and refuted kernels. */
#include "lsp/requests.h"

#include <string.h>

static bool is_here(const struct lsp_document *doc, const struct peal_pos *pos)
{
    return pos->source == &doc->source && pos->line;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The misspelt name is the first quoted word of the error that stands at its place. */
static bool find_quoted(const struct lsp_document *doc, const struct peal_diag *error,
                        struct lsp_range *range)
{
    struct lsp_range place = lsp_place(doc, &error->pos);
    const char *open = strchr(error->message, '\'');
    while (open) {
        const char *close = strchr(open + 1, '\'');
        if (!close)
            return false;
        char word[256];
        size_t len = peal_size_min((size_t)(close - open) - 1, sizeof word - 1);
        memcpy(word, open + 1, len);
        word[len] = '\0';
        uint32_t token = lsp_token_at(doc, place.at);
        for (; len && token < doc->tokens.len && doc->tokens.at[token].range.at <= place.end;
             token++) {
            *range = doc->tokens.at[token].range;
            if (range->at >= place.at && lsp_token_is(doc, token, word))
                return true;
        }
        open = strchr(close + 1, '\'');
    }
    return false;
}

bool lsp_meant(const struct lsp_document *doc, size_t i, struct lsp_range *range,
               char out[static 256])
{
    static const char start[] = "did you mean '";
    const struct peal_diag *error = &doc->diags.list.at[i];
    if (!is_here(doc, &error->pos))
        return false;
    for (size_t k = i + 1; k < doc->diags.list.len && doc->diags.list.at[k].severity == PEAL_NOTE;
         k++) {
        const char *message = doc->diags.list.at[k].message;
        const char *word = message + sizeof start - 1;
        if (!starts_with(message, start) || !strchr(word, '\''))
            continue;
        size_t len = peal_size_min((size_t)(strchr(word, '\'') - word), 255);
        memcpy(out, word, len);
        out[len] = '\0';
        return find_quoted(doc, error, range);
    }
    return false;
}

/* Notes without a place belong to the message; the others are related information. */
static void put_error(struct peal_json *json, const struct lsp_document *doc, size_t i)
{
    const struct peal_diag *error = &doc->diags.list.at[i];
    struct peal_text message = {0};
    size_t end = i + 1;
    peal_text_puts(&message, error->message);
    for (; end < doc->diags.list.len && doc->diags.list.at[end].severity == PEAL_NOTE; end++) {
        const struct peal_diag *note = &doc->diags.list.at[end];
        if (!is_here(doc, &note->pos) || starts_with(note->message, "did you mean"))
            peal_text_printf(&message, "\n%s", note->message);
    }
    peal_json_object(json);
    lsp_put_range(json, "range", doc, lsp_place(doc, &error->pos));
    peal_json_put_int(json, "severity", 1);
    peal_json_put_string(json, "source", "peal");
    peal_json_put_string(json, "message", peal_text_get(&message));
    peal_json_put_array(json, "relatedInformation");
    for (size_t k = i + 1; k < end; k++) {
        const struct peal_diag *note = &doc->diags.list.at[k];
        if (!is_here(doc, &note->pos))
            continue;
        peal_json_object(json);
        peal_json_put_object(json, "location");
        peal_json_put_string(json, "uri", doc->uri);
        lsp_put_range(json, "range", doc, lsp_place(doc, &note->pos));
        peal_json_object_end(json);
        peal_json_put_string(json, "message", note->message);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_text_release(&message);
}

/* A kernel that goes wrong: at the op where it does, or at its name. */
static void put_refuted(struct peal_json *json, const struct lsp_document *doc,
                        const struct lsp_verdict *verdict)
{
    const struct lsp_block *block = NULL;
    for (size_t i = 0; i < doc->blocks.len; i++) {
        if (lsp_token_is(doc, doc->blocks.at[i].name, verdict->name))
            block = &doc->blocks.at[i];
    }
    if (!block)
        return;
    struct lsp_range range = doc->tokens.at[block->name].range;
    struct peal_pos pos = {&doc->source, verdict->line, verdict->col, 0};
    uint32_t token = pos.line ? lsp_token_at(doc, lsp_place(doc, &pos).at) : UINT32_MAX;
    if (token < doc->tokens.len && lsp_block_of(doc, token) == block)
        range = doc->tokens.at[token].range;
    struct peal_text message = {0};
    peal_text_printf(&message, "%s: %s", verdict->name, verdict->summary);
    if (verdict->why)
        peal_text_printf(&message, "\n%s", verdict->why);
    peal_json_object(json);
    lsp_put_range(json, "range", doc, range);
    peal_json_put_int(json, "severity", 2);
    peal_json_put_string(json, "source", "peal verify");
    peal_json_put_string(json, "message", peal_text_get(&message));
    peal_json_object_end(json);
    peal_text_release(&message);
}

void lsp_publish(struct peal_lsp *server, struct lsp_document *doc)
{
    doc->dirty = false;
    if (!lsp_analyse(doc, peal_library_module(server->library))) {
        lsp_forget(doc);
        return;
    }
    struct lsp_reply message;
    lsp_message_begin(server, "textDocument/publishDiagnostics", false, &message);
    struct peal_json *json = &message.json;
    peal_json_object(json);
    peal_json_put_string(json, "uri", doc->uri);
    peal_json_put_int(json, "version", doc->version);
    peal_json_put_array(json, "diagnostics");
    for (size_t i = 0; i < doc->diags.list.len; i++) {
        if (doc->diags.list.at[i].severity == PEAL_ERROR)
            put_error(json, doc, i);
    }
    for (size_t i = 0; i < doc->verdicts.len && !doc->diags.errors; i++) {
        const struct lsp_verdict *verdict = &doc->verdicts.at[i];
        if (verdict->state == LSP_KNOWN && verdict->refuted && verdict->hash == doc->hash)
            put_refuted(json, doc, verdict);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
    lsp_message_end(server, &message);
}
