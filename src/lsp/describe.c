/* SPDX-License-Identifier: Apache-2.0 */
/* What a name, an op or a word means, as Markdown. Facts come from the tree and the tables. */
#include "lsp/requests.h"

#include <stdio.h>
#include <string.h>

static const char *elem_name(const struct peal_elem *elem)
{
    return elem->generic ? "T" : peal_dtype_name(elem->dtype);
}

void lsp_data_type(const struct peal_symbol *symbol, struct peal_text *out)
{
    bool is_tile = symbol->kind == PEAL_SYMBOL_TILE;
    if (is_tile && symbol->type.elem.wide)
        peal_text_puts(out, "wide ");
    peal_text_puts(out, elem_name(&symbol->type.elem));
    if (symbol->shape[0]) {
        peal_text_puts(out, "[");
        peal_print_expr(symbol->shape[0], out);
        if (symbol->shape[1]) {
            peal_text_puts(out, ", ");
            peal_print_expr(symbol->shape[1], out);
        }
        peal_text_puts(out, "]");
    } else if (symbol->lengths) {
        peal_text_printf(out, "[%s]", symbol->lengths);
    } else {
        peal_text_puts(out, symbol->type.dims > 1 ? "[.., ..]" : "[..]");
    }
}

static const char *direction(const struct peal_symbol *symbol)
{
    static const char *const names[] = {"", "in ", "out ", "inout "};
    return names[(symbol->dir ? symbol->dir : symbol->effects) & 3];
}

static void put_cells(const struct peal_symbol *symbol, struct peal_text *out)
{
    if (!symbol->shape[0])
        return;
    peal_text_puts(out, "[");
    peal_print_expr(symbol->shape[0], out);
    peal_text_puts(out, "]");
}

static void put_buffer(const struct peal_symbol *symbol, struct peal_text *out)
{
    const char *before = symbol->place == PEAL_PLACE_WINDOW ? "window " : "private ";
    const char *window = "";
    if (symbol->place == PEAL_PLACE_PARAM) {
        before = direction(symbol);
        window = symbol->is_window ? "window " : "";
    }
    bool wide = symbol->place != PEAL_PLACE_PARAM && symbol->type.elem.wide;
    peal_text_printf(out, "%s%s%s: %s", before, wide ? "wide " : "", symbol->name, window);
    lsp_data_type(symbol, out);
}

void lsp_declaration(const struct peal_symbol *symbol, struct peal_text *out)
{
    static const char *const modes[] = {"", "shared ", "raw ", "raw uninitialised "};
    switch (symbol->kind) {
    case PEAL_SYMBOL_BUFFER:
        put_buffer(symbol, out);
        break;
    case PEAL_SYMBOL_DIM:
        peal_text_printf(out, "%s: a dimension", symbol->name);
        break;
    case PEAL_SYMBOL_INT:
        peal_text_printf(out, "%s%s%s: int", symbol->is_local ? "local " : "",
                         symbol->is_capacity ? "capacity " : "", symbol->name);
        if (symbol->initial) {
            peal_text_puts(out, " = ");
            peal_print_expr(symbol->initial, out);
        }
        break;
    case PEAL_SYMBOL_INTS:
        peal_text_printf(out, "%s%s: int", symbol->is_local ? "local " : "", symbol->name);
        put_cells(symbol, out);
        break;
    case PEAL_SYMBOL_REDUCE:
        peal_text_printf(out, "%s: reduce", symbol->name);
        break;
    case PEAL_SYMBOL_LET:
    case PEAL_SYMBOL_COUNTER:
        peal_text_printf(out, "%s %s", symbol->is_var ? "var" : "let", symbol->name);
        break;
    case PEAL_SYMBOL_VAR:
        peal_text_printf(out, "var %s", symbol->name);
        break;
    case PEAL_SYMBOL_LOOP:
        peal_text_printf(out, "for %s", symbol->name);
        break;
    case PEAL_SYMBOL_TILE:
        peal_text_printf(out, "let %s: ", symbol->name);
        lsp_data_type(symbol, out);
        break;
    case PEAL_SYMBOL_SIGNAL:
        peal_text_printf(out, "signal %s%s", modes[symbol->mode], symbol->name);
        put_cells(symbol, out);
        break;
    case PEAL_SYMBOL_CHANNEL:
        peal_text_printf(out, "channel %s", symbol->name);
        break;
    case PEAL_SYMBOL_BUILTIN:
        peal_text_puts(out, symbol->name);
        break;
    }
}

static const char *symbol_meaning(const struct peal_symbol *symbol)
{
    static const char *const places[] = {
        [PEAL_PLACE_PARAM] = "the caller's memory",
        [PEAL_PLACE_WINDOW] =
            "scratch memory that peers can address, of the same size on all ranks",
        [PEAL_PLACE_PRIVATE] = "scratch memory of this rank"};
    static const char *const kinds[] = {
        [PEAL_SYMBOL_DIM] = "a length that is bound when the plan is made",
        [PEAL_SYMBOL_INT] = "an integer that is known when the plan is made",
        [PEAL_SYMBOL_INTS] = "a list of integers that is known when the plan is made",
        [PEAL_SYMBOL_REDUCE] = "the reduce operation that the caller chooses",
        [PEAL_SYMBOL_LET] = "an integer that never changes",
        [PEAL_SYMBOL_VAR] = "an integer that later statements may assign",
        [PEAL_SYMBOL_LOOP] = "the variable of a loop or of lanes",
        [PEAL_SYMBOL_TILE] = "a tile: a value of the lane",
        [PEAL_SYMBOL_COUNTER] = "what a cell held: known only at run time",
        [PEAL_SYMBOL_SIGNAL] = "cells in the window, logically 0 when a launch begins",
        [PEAL_SYMBOL_CHANNEL] = "a queue of a few slots for each sender and receiver",
        [PEAL_SYMBOL_BUILTIN] = ""};
    if (symbol->kind != PEAL_SYMBOL_BUFFER)
        return kinds[symbol->kind];
    if (symbol->place == PEAL_PLACE_PARAM && symbol->is_window)
        return "the caller's memory, which peers can address";
    return places[symbol->place];
}

/* What the columns of its row say. */
static void put_op(enum peal_op_kind kind, struct peal_text *out)
{
    static const char *const orders[] = {
        [PEAL_ORDER_NONE] = "Orders nothing by itself.",
        [PEAL_ORDER_ACQUIRE] =
            "Acquires: what was released before is visible to this lane after it.",
        [PEAL_ORDER_RELEASE] =
            "Releases: earlier accesses of this lane are visible to the lane that acquires.",
        [PEAL_ORDER_BOTH] = "Acquires and releases, unless another order is written."};
    static const char *const cells[] = {[PEAL_EFFECT_NONE] = "",
                                        [PEAL_EFFECT_READ] = "Reads a cell. ",
                                        [PEAL_EFFECT_WRITE] = "Changes a cell. ",
                                        [PEAL_EFFECT_UPDATE] = "Reads and changes a cell as one. "};
    static const char *const uses[] = {
        [PEAL_CHANNEL_NONE] = "",
        [PEAL_CHANNEL_SEND] = "Adds a message to a queue. ",
        [PEAL_CHANNEL_HOLD] = "Takes a message, and keeps its slot. ",
        [PEAL_CHANNEL_FREE] = "Gives a slot back. ",
        [PEAL_CHANNEL_RECEIVE] = "Takes a message, and gives its slot back. "};
    const struct peal_op_facts *row = peal_op_facts(kind);
    peal_text_printf(out, "\n\n%s%s%s", cells[row->cell & PEAL_EFFECT_UPDATE], uses[row->channel],
                     row->blocks ? "May have to wait for another lane or rank. " : "");
    if (row->form != PEAL_FORM_NUMBER && row->form != PEAL_FORM_END)
        peal_text_puts(out, orders[row->order]);
}

static void put_word(const char *name, struct peal_text *out)
{
    const struct peal_word *word = peal_word_find(name, strlen(name));
    if (!word)
        return;
    peal_text_printf(out, "```peal\n%s\n```\n%s", peal_word_syntax(word), peal_word_meaning(word));
    for (int kind = 0; kind < PEAL_OP_KIND_COUNT; kind++) {
        if (strcmp(peal_op_info((enum peal_op_kind)kind)->name, name) == 0)
            put_op((enum peal_op_kind)kind, out);
    }
}

static void put_function(const char *name, struct peal_text *out)
{
    enum peal_fn fn;
    if (!peal_fn_find(name, strlen(name), &fn)) {
        put_word(name, out);
        return;
    }
    const struct peal_fn_info *info = peal_fn_info(fn);
    peal_text_printf(out, "```peal\n%s(a%s)\n```\n%s, element by element; of %s", name,
                     info->operands == 1   ? ""
                     : info->operands == 2 ? ", b"
                                           : ", b, ...",
                     info->meaning, peal_fn_types_text(info->types));
}

static void put_reduce(const char *name, struct peal_text *out)
{
    enum peal_reduction reduce;
    if (!peal_reduce_find(name, strlen(name), &reduce))
        return;
    peal_text_printf(out, "```peal\n%s\n```\na reduce operation: combines with `%s`%s; of %s", name,
                     peal_fn_info(peal_reduce_fn(reduce))->name,
                     reduce == PEAL_AVG ? ", and `final` divides by nranks" : "",
                     peal_fn_types_text(peal_reduce_types(reduce)));
}

static void put_contract(const char *name, struct peal_text *out)
{
    static const char *const sides[] = {[PEAL_SIDE_NONE] = "nothing",
                                        [PEAL_SIDE_VECTOR] = "n elements on every rank",
                                        [PEAL_SIDE_BLOCK] = "each rank's own block",
                                        [PEAL_SIDE_ALL] = "a block for each rank, on every rank",
                                        [PEAL_SIDE_ROOT_VECTOR] = "n elements on the root",
                                        [PEAL_SIDE_ROOT_ALL] =
                                            "a block for each rank, on the root"};
    enum peal_contract contract;
    if (!peal_contract_find(name, strlen(name), &contract))
        return;
    const struct peal_contract_info *info = peal_contract_info(contract);
    peal_text_printf(out, "```peal\nimplements %s\n```\n", name);
    if (!peal_contract_has_data(contract)) {
        peal_text_puts(out, "No rank leaves before all have entered.");
        return;
    }
    peal_text_printf(out, "in: %s  \nout: %s%s%s", sides[info->in], sides[info->out],
                     info->has_reduce ? ", reduced over the ranks by `op: reduce`" : "",
                     info->has_root ? "; `root: int` says which rank is the root" : "");
}

static void put_kernel(const struct peal_kernel *kernel, struct peal_text *out)
{
    peal_text_puts(out, "```peal\nkernel ");
    peal_print_signature(kernel, out);
    peal_text_puts(out, "\n```\n");
    peal_text_puts(out, peal_text_or_empty(kernel->doc));
}

static void put_verdict(const struct lsp_document *doc, const struct peal_kernel *kernel,
                        struct peal_text *out)
{
    for (size_t i = 0; i < doc->verdicts.len; i++) {
        const struct lsp_verdict *v = &doc->verdicts.at[i];
        if (v->state == LSP_KNOWN && v->hash == doc->hash && strcmp(v->name, kernel->name) == 0)
            peal_text_printf(out, "\n\n%s%s%s", v->summary, v->why ? ": " : "",
                             peal_text_or_empty(v->why));
    }
}

static void describe(const struct lsp_document *doc, uint32_t token, struct peal_text *out)
{
    const struct lsp_token *t = &doc->tokens.at[token];
    char name[256];
    lsp_token_text(doc, token, name);
    switch (t->meaning) {
    case LSP_NOTHING:
        break;
    case LSP_WORD:
        put_word(name, out);
        break;
    case LSP_FUNCTION:
        put_function(name, out);
        break;
    case LSP_REDUCE:
        put_reduce(name, out);
        break;
    case LSP_TYPE: {
        enum peal_dtype dtype;
        if (peal_dtype_find(name, strlen(name), &dtype))
            peal_text_printf(out, "```peal\n%s\n```\nan element type of %zu byte%s", name,
                             peal_dtype_size(dtype),
                             peal_text_plural((long long)peal_dtype_size(dtype)));
        break;
    }
    case LSP_CONTRACT:
        put_contract(name, out);
        if (t->of.kernel) {
            peal_text_puts(out, "\n\nhere by:\n");
            put_kernel(t->of.kernel, out);
        }
        break;
    case LSP_SYMBOL:
        peal_text_puts(out, "```peal\n");
        lsp_declaration(t->of.symbol, out);
        peal_text_printf(out, "\n```\n%s", symbol_meaning(t->of.symbol));
        break;
    case LSP_KERNEL:
        put_kernel(t->of.kernel, out);
        if (t->of.kernel->implements)
            peal_text_printf(out, "\n\ncontract: %s", t->of.kernel->implements);
        put_verdict(doc, t->of.kernel, out);
        break;
    case LSP_ALGORITHM:
        put_kernel(t->of.kernel, out);
        break;
    case LSP_REDUCTION:
        peal_text_puts(out, "```peal\n");
        peal_print_reduction(t->of.reduction, out);
        peal_text_printf(out, "```\n%s", peal_text_or_empty(t->of.reduction->doc));
        break;
    case LSP_OPERAND:
        peal_text_printf(out, "```peal\n%s\n```\nan operand of the reduction", name);
        break;
    }
}

void lsp_hover(struct peal_lsp *server, const struct peal_json_value *params,
               struct lsp_reply *reply)
{
    struct lsp_subject subject = lsp_subject(server, params, reply);
    struct peal_text text = {0};
    if (!subject.doc || subject.token == UINT32_MAX)
        return;
    describe(subject.doc, subject.token, &text);
    if (text.len) {
        struct peal_json *json = &reply->json;
        peal_json_object(json);
        peal_json_put_object(json, "contents");
        peal_json_put_string(json, "kind", "markdown");
        peal_json_put_string(json, "value", text.at);
        peal_json_object_end(json);
        lsp_put_range(json, "range", subject.doc, subject.doc->tokens.at[subject.token].range);
        peal_json_object_end(json);
    }
    peal_text_release(&text);
}
