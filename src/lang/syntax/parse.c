/* SPDX-License-Identifier: Apache-2.0 */
/* The top level of the parser: tokens, errors, kernels and their parameters. */
#include "lang/syntax/parse.h"

#include "lang/syntax/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void peal_parser_step(struct peal_parser *p)
{
    p->last = p->token.pos;
    p->token = p->ahead;
    p->ahead = peal_lexer_next(&p->lexer);
}

void *peal_parser_fail(struct peal_parser *p, struct peal_pos pos, const char *format, ...)
{
    if (p->panic || p->gave_up)
        return NULL;
    p->panic = true;
    if (p->errors && pos.line == p->error_pos.line && pos.col == p->error_pos.col)
        return NULL; /* the same error again, seen from an outer block */
    p->error_pos = pos;
    va_list args;
    va_start(args, format);
    peal_diag_add(p->diags, PEAL_ERROR, pos, format, args);
    va_end(args);
    if (++p->errors >= PEAL_DIAG_LIMIT)
        p->gave_up = true;
    return NULL;
}

void *peal_parser_out_of_memory(struct peal_parser *p)
{
    /* The arena asks for less than this at a time: with more left, it was the system that refused. */
    enum { MAX_BLOCK = 2 << 20 };
    if (!p->no_memory && p->module->arena.total > PEAL_MODULE_LIMIT - MAX_BLOCK)
        peal_parser_fail(p, p->token.pos, "the text needs more than %zu MiB of memory",
                         PEAL_MODULE_LIMIT >> 20);
    else if (!p->no_memory)
        peal_parser_fail(p, p->token.pos, "the system has no memory for the text");
    p->gave_up = p->no_memory = p->panic = true;
    return NULL;
}

/* `wanted`: the only word or mark that is allowed here; "" if there are several. */
static void *report_expected(struct peal_parser *p, const char *expected, const char *wanted)
{
    const struct peal_token *token = &p->token;
    size_t errors = p->errors;
    int len = 40;
    if (token->len < 40)
        len = (int)token->len;
    if (token->kind == PEAL_TOKEN_BAD)
        peal_parser_fail(p, token->pos, "%s", token->why);
    else if (token->kind == PEAL_TOKEN_END)
        peal_parser_fail(p, token->pos, "expected %s, found the end of the text", expected);
    else
        peal_parser_fail(p, token->pos, "expected %s, found '%.*s'", expected, len, token->text);
    if (p->errors > errors)
        peal_parser_hint_found(p, wanted);
    return NULL;
}

void *peal_parser_expected(struct peal_parser *p, const char *expected)
{
    return report_expected(p, expected, "");
}

static bool token_is(const struct peal_token *token, const char *text)
{
    return (token->kind == PEAL_TOKEN_NAME || token->kind == PEAL_TOKEN_PUNCT) &&
           token->text[0] == text[0] && strlen(text) == token->len &&
           memcmp(token->text, text, token->len) == 0;
}

bool peal_parser_at(const struct peal_parser *p, const char *text)
{
    return token_is(&p->token, text);
}

bool peal_parser_ahead(const struct peal_parser *p, const char *text)
{
    return token_is(&p->ahead, text);
}

bool peal_parser_take(struct peal_parser *p, const char *text)
{
    if (!peal_parser_at(p, text))
        return false;
    peal_parser_step(p);
    return true;
}

bool peal_parser_want(struct peal_parser *p, const char *text)
{
    if (peal_parser_take(p, text))
        return true;
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", text);
    report_expected(p, quoted, text);
    return false;
}

const char *peal_parser_name(struct peal_parser *p, const char *expected, struct peal_pos *pos)
{
    if (p->token.kind != PEAL_TOKEN_NAME)
        return peal_parser_expected(p, expected);
    if (peal_word_is_reserved(p->token.text, p->token.len))
        return peal_parser_fail(p, p->token.pos,
                                "'%.*s' is a word of the language and cannot be %s",
                                (int)p->token.len, p->token.text, expected);
    if (p->token.len > 255)
        return peal_parser_fail(p, p->token.pos, "a name has at most 255 letters");
    const char *name = peal_intern_text(&p->module->names, p->token.text, p->token.len);
    if (!name)
        return peal_parser_out_of_memory(p);
    if (pos)
        *pos = p->token.pos;
    peal_parser_step(p);
    return name;
}

bool peal_parser_enter(struct peal_parser *p)
{
    if (p->depth >= PEAL_MAX_NESTING) {
        peal_parser_fail(p, p->token.pos, "nested deeper than %d levels", PEAL_MAX_NESTING);
        p->gave_up = true;
        return false;
    }
    p->depth++;
    return true;
}

void peal_parser_leave(struct peal_parser *p)
{
    p->depth--;
}

struct peal_pos peal_parser_span(const struct peal_parser *p, struct peal_pos start)
{
    if (p->last.line == start.line && p->last.col + p->last.len > start.col)
        start.len = p->last.col + p->last.len - start.col;
    return start;
}

static bool parse_elem(struct peal_parser *p, struct peal_elem *out)
{
    if (peal_parser_take(p, "T")) {
        out->generic = true;
        return true;
    }
    enum peal_dtype dtype;
    if (p->token.kind != PEAL_TOKEN_NAME || !peal_dtype_find(p->token.text, p->token.len, &dtype)) {
        const char *known[PEAL_DTYPES + 1] = {NULL};
        size_t errors = p->errors;
        for (int i = 0; i < PEAL_DTYPES; i++)
            known[i] = peal_dtype_name((enum peal_dtype)i);
        peal_parser_expected(p, "an element type (T, f16, bf16, f32, f64, i8, u8, i32 or i64)");
        if (p->errors > errors && p->token.kind == PEAL_TOKEN_NAME)
            peal_parser_hint_word(p, p->token.text, p->token.len, known);
        return false;
    }
    out->dtype = dtype;
    peal_parser_step(p);
    return true;
}

bool peal_parse_memory(struct peal_parser *p, struct peal_symbol *symbol)
{
    if (!parse_elem(p, &symbol->type.elem) || !peal_parser_want(p, "["))
        return false;
    for (int i = 0; i < 2; i++) {
        symbol->shape[i] = peal_parse_expr(p);
        if (!symbol->shape[i])
            return false;
        symbol->type.dims = i + 1;
        if (!peal_parser_take(p, ","))
            break;
    }
    return peal_parser_want(p, "]");
}

/* What follows the colon of a parameter. */
static bool parse_param_type(struct peal_parser *p, struct peal_symbol *symbol)
{
    bool has_dir = symbol->dir_written;
    struct peal_pos pos = p->token.pos;
    if (peal_parser_take(p, "int")) {
        symbol->kind = PEAL_SYMBOL_INT;
        if (peal_parser_take(p, "[")) {
            symbol->kind = PEAL_SYMBOL_INTS;
            symbol->shape[0] = peal_parse_expr(p);
            if (!symbol->shape[0] || !peal_parser_want(p, "]"))
                return false;
        } else if (!symbol->is_local && peal_parser_take(p, "=")) {
            symbol->initial = peal_parse_expr(p);
            if (!symbol->initial)
                return false;
        }
    } else if (peal_parser_take(p, "reduce")) {
        symbol->kind = PEAL_SYMBOL_REDUCE;
    } else {
        symbol->kind = PEAL_SYMBOL_BUFFER;
        symbol->place = PEAL_PLACE_PARAM;
        symbol->is_window = peal_parser_take(p, "window");
        if (!peal_parse_memory(p, symbol))
            return false;
    }
    if (has_dir && symbol->kind != PEAL_SYMBOL_BUFFER)
        return peal_parser_fail(p, pos, "only buffers have a direction; '%s' is always read",
                                symbol->name);
    if (symbol->is_local && symbol->kind != PEAL_SYMBOL_INT && symbol->kind != PEAL_SYMBOL_INTS)
        return peal_parser_fail(p, pos, "only int parameters can be local");
    if (symbol->is_capacity && symbol->kind != PEAL_SYMBOL_INT)
        return peal_parser_fail(p, pos, "only an int parameter can be a capacity");
    return true;
}

static struct peal_symbol *parse_param(struct peal_parser *p)
{
    static const struct {
        const char *word;
        unsigned dir;
    } dirs[] = {{"in", 1}, {"out", 2}, {"inout", 3}};
    unsigned dir = 0;
    for (int i = 0; i < 3; i++) {
        if (peal_parser_take(p, dirs[i].word)) {
            dir = dirs[i].dir;
            break;
        }
    }
    bool is_local = !dir && peal_parser_take(p, "local");
    struct peal_pos pos;
    const char *name = peal_parser_name(p, "the name of a parameter", &pos);
    /* Not a word of the language: only before another name. */
    bool is_capacity = name && !dir && !is_local && strcmp(name, "capacity") == 0 &&
                       p->token.kind == PEAL_TOKEN_NAME;
    if (is_capacity)
        name = peal_parser_name(p, "the name of a parameter", &pos);
    if (!name)
        return NULL;
    struct peal_symbol *symbol = peal_symbol_new(p->module, PEAL_SYMBOL_BUFFER, name, pos);
    if (!symbol)
        return peal_parser_out_of_memory(p);
    symbol->dir = dir;
    symbol->dir_written = dir != 0;
    symbol->is_local = is_local;
    symbol->is_capacity = is_capacity;
    if (!peal_parser_want(p, ":") || !parse_param_type(p, symbol))
        return NULL;
    return symbol;
}

static bool parse_params(struct peal_parser *p, struct peal_kernel *kernel)
{
    if (!peal_parser_want(p, "("))
        return false;
    if (peal_parser_take(p, ")"))
        return true;
    do {
        struct peal_pos pos = p->token.pos;
        struct peal_symbol *param = parse_param(p);
        if (!param)
            return false;
        if (kernel->nparams == PEAL_MAX_PARAMS)
            return peal_parser_fail(p, pos, "kernel '%s' has more than %d parameters", kernel->name,
                                    PEAL_MAX_PARAMS);
        kernel->params[kernel->nparams++] = param;
    } while (peal_parser_take(p, ","));
    return peal_parser_want(p, ")");
}

/* The comment's lines without slashes, without their first space and trailing spaces. */
static const char *read_doc(struct peal_parser *p, const char *at)
{
    struct peal_text text = {0};
    const char *end = p->lexer.end;
    while (at < end && *at == '/') {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline;
        if (!stop)
            stop = end;
        const char *start = at + 2;
        if (start < stop && *start == ' ')
            start++;
        const char *last = stop;
        while (last > start && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r'))
            last--;
        if (text.len)
            peal_text_puts(&text, "\n");
        peal_text_add(&text, start, (size_t)(last - start));
        at = stop;
        while (at < end && (*at == '\n' || *at == ' ' || *at == '\t' || *at == '\r'))
            at++;
    }
    const char *doc = NULL;
    if (!text.failed)
        doc = peal_arena_copy(&p->module->arena, peal_text_get(&text), text.len);
    peal_text_release(&text);
    if (!doc)
        return peal_parser_out_of_memory(p);
    return doc;
}

/* *out is set as soon as the kernel has a name. False after a failure. */
static bool parse_kernel(struct peal_parser *p, struct peal_kernel **out)
{
    struct peal_kernel *kernel = PEAL_ARENA_NEW(&p->module->arena, struct peal_kernel);
    if (!kernel)
        return peal_parser_out_of_memory(p);
    if (!peal_parser_at(p, "kernel")) {
        peal_parser_want(p, "kernel");
        return false;
    }
    if (p->token.doc)
        kernel->doc = read_doc(p, p->token.doc);
    else
        kernel->doc = "";
    peal_parser_step(p);
    kernel->name = peal_parser_name(p, "the name of a kernel", &kernel->pos);
    if (!kernel->name)
        return false;
    *out = kernel;
    if (!parse_params(p, kernel))
        return false;
    if (peal_parser_take(p, "implements")) {
        kernel->implements = peal_parser_name(p, "the name of a contract", &kernel->implements_pos);
        if (!kernel->implements)
            return false;
    }
    if (peal_parser_at(p, "requires") || peal_parser_at(p, "ensures"))
        return peal_parser_fail(
            p, p->token.pos, "'requires' and 'ensures' begin the body: write them behind the '{'");
    if (p->token.kind == PEAL_TOKEN_NAME && !kernel->implements) {
        peal_parser_want(p, "implements");
        return false;
    }
    return peal_parse_block(p, &kernel->body);
}

static bool parse_operands(struct peal_parser *p, struct peal_reduce_decl *reduce)
{
    struct peal_pos pos;
    if (!peal_parser_want(p, "("))
        return false;
    reduce->operands[0] = peal_parser_name(p, "the name of the first operand", &pos);
    if (!reduce->operands[0] || !peal_parser_want(p, ","))
        return false;
    reduce->operands[1] = peal_parser_name(p, "the name of the second operand", &pos);
    return reduce->operands[1] && peal_parser_want(p, ")");
}

static struct peal_reduce_decl *parse_reduce(struct peal_parser *p)
{
    struct peal_reduce_decl *reduce = PEAL_ARENA_NEW(&p->module->arena, struct peal_reduce_decl);
    if (!reduce)
        return peal_parser_out_of_memory(p);
    reduce->doc = p->token.doc ? read_doc(p, p->token.doc) : "";
    peal_parser_step(p);
    reduce->name = peal_parser_name(p, "the name of a reduction", &reduce->pos);
    if (!reduce->name || !parse_operands(p, reduce))
        return NULL;
    if (peal_parser_take(p, "commutative"))
        reduce->flags |= PEAL_FORMULA_COMMUTATIVE;
    if (peal_parser_take(p, "associative"))
        reduce->flags |= PEAL_FORMULA_ASSOCIATIVE;
    if (!peal_parser_want(p, "="))
        return NULL;
    reduce->value = peal_parse_expr(p);
    return reduce->value ? reduce : NULL;
}

static bool at_declaration(const struct peal_parser *p)
{
    return p->token.first && (peal_parser_at(p, "kernel") || peal_parser_at(p, "reduce"));
}

/* Skips to the next line that starts a kernel or a reduction. */
static void skip_to_declaration(struct peal_parser *p)
{
    while (p->token.kind != PEAL_TOKEN_END && !p->gave_up && !at_declaration(p))
        peal_parser_step(p);
    p->panic = false;
    p->depth = 0;
}

/* Appends a reduction to those of the module. */
static void add_reduction(struct peal_parser *p, struct peal_reduce_decl *reduce)
{
    struct peal_reduce_decl **tail = &p->module->reductions;
    while (*tail)
        tail = &(*tail)->next;
    *tail = reduce;
}

static void parse_module(struct peal_parser *p, struct peal_kernel **tail)
{
    uint32_t reductions = 0;
    while (p->token.kind != PEAL_TOKEN_END && !p->gave_up) {
        if (peal_parser_at(p, "reduce")) {
            struct peal_pos pos = p->token.pos;
            struct peal_reduce_decl *reduce = parse_reduce(p);
            if (reduce && reductions++ == PEAL_FORMULAS - 1)
                reduce =
                    peal_parser_fail(p, pos, "a text has at most %d reductions", PEAL_FORMULAS - 1);
            if (reduce)
                add_reduction(p, reduce);
            else
                skip_to_declaration(p);
            continue;
        }
        struct peal_kernel *kernel = NULL;
        bool whole = parse_kernel(p, &kernel);
        if (!whole)
            skip_to_declaration(p);
        if (!kernel || !(whole || p->partial))
            continue;
        *tail = kernel;
        tail = &kernel->next;
    }
}

static enum peal_status parse_text(struct peal_module *module, const struct peal_source *source,
                                   struct peal_diags *diags, bool partial)
{
    if (source->len >= (size_t)1 << 31) {
        peal_diag_error(diags, (struct peal_pos){.source = source},
                        "the text is longer than 2 GiB");
        return PEAL_INVALID;
    }
    const char *nul = NULL;
    if (source->len)
        nul = memchr(source->text, '\0', source->len);
    if (nul) {
        peal_diag_error(diags, (struct peal_pos){.source = source},
                        "there is a NUL byte at offset %zu: this is not a text",
                        (size_t)(nul - source->text));
        return PEAL_INVALID;
    }
    struct peal_parser p = {.module = module, .diags = diags, .partial = partial};
    struct peal_kernel **tail = &module->kernels;
    while (*tail)
        tail = &(*tail)->next;
    peal_lexer_init(&p.lexer, source);
    p.ahead = peal_lexer_next(&p.lexer);
    peal_parser_step(&p);
    parse_module(&p, tail);
    if (p.errors == 0 && !p.no_memory && !*tail && !module->reductions) {
        peal_diag_error(diags, p.token.pos, "there is no kernel in this text");
        p.errors++;
    }
    if (!p.errors && !p.no_memory)
        return PEAL_OK;
    if (!partial)
        *tail = NULL;
    return p.no_memory ? PEAL_NO_MEMORY : PEAL_INVALID;
}

enum peal_status peal_parse_into(struct peal_module *module, const struct peal_source *source,
                                 struct peal_diags *diags)
{
    return parse_text(module, source, diags, false);
}

static enum peal_status parse_new(const struct peal_source *source, struct peal_diags *diags,
                                  bool partial, struct peal_module **out)
{
    struct peal_module *module = peal_module_new();
    if (!module)
        return PEAL_NO_MEMORY;
    module->source = source;
    enum peal_status status = parse_text(module, source, diags, partial);
    bool keeps = status == PEAL_OK || (partial && status == PEAL_INVALID);
    if (keeps)
        *out = module;
    else
        peal_module_free(module);
    return status;
}

enum peal_status peal_parse(const struct peal_source *source, struct peal_diags *diags,
                            struct peal_module **out)
{
    return parse_new(source, diags, false, out);
}

enum peal_status peal_parse_partial(const struct peal_source *source, struct peal_diags *diags,
                                    struct peal_module **out)
{
    return parse_new(source, diags, true, out);
}
