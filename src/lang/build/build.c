/* SPDX-License-Identifier: Apache-2.0 */
/* The builder itself: kernels, parameters, names, blocks. */
#include "lang/build/builder.h"
#include "lang/deduce/deduce.h"
#include "lang/syntax/parse.h"
#include "lang/syntax/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peal_builder *peal_builder_new(void)
{
    struct peal_builder *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->module = peal_module_new();
    if (!b->module) {
        free(b);
        return NULL;
    }
    b->kernels_tail = &b->module->kernels;
    peal_arena_init(&b->used_arena, 0);
    peal_intern_init(&b->used, &b->used_arena);
    return b;
}

void peal_builder_free(struct peal_builder *b)
{
    if (!b)
        return;
    peal_intern_release(&b->used);
    peal_arena_release(&b->used_arena);
    peal_module_free(b->module);
    free(b);
}

void *peal_builder_fail(struct peal_builder *b, const char *format, ...)
{
    if (b->status != PEAL_OK)
        return NULL;
    b->status = PEAL_INVALID;
    va_list args;
    va_start(args, format);
    vsnprintf(b->why, sizeof b->why, format, args);
    va_end(args);
    return NULL;
}

void *peal_builder_out_of_memory(struct peal_builder *b)
{
    if (b->status == PEAL_OK)
        b->status = PEAL_NO_MEMORY;
    return NULL;
}

/* Is there no mistake so far, and is a kernel open? */
static bool is_ready(struct peal_builder *b)
{
    if (!b || b->status != PEAL_OK)
        return false;
    if (!b->kernel)
        peal_builder_fail(b, "no kernel was begun");
    return b->status == PEAL_OK;
}

const char *peal_builder_intern(struct peal_builder *b, const char *name)
{
    const char *text = peal_intern_text(&b->module->names, name, strlen(name));
    if (!text)
        return peal_builder_out_of_memory(b);
    return text;
}

static bool is_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return len > 0 && len < 200 && name[len] == '\0' && !(name[0] >= '0' && name[0] <= '9');
}

/* True: the name was free, and is taken from here on. */
static bool claim(struct peal_builder *b, const char *name)
{
    size_t before = b->used.texts.len;
    if (!peal_intern_text(&b->used, name, strlen(name)))
        peal_builder_out_of_memory(b);
    return b->used.texts.len > before;
}

/* The wanted name, or one with a number after it. `exact`: it is a mistake if the name is taken. */
static const char *choose_name(struct peal_builder *b, const char *wish, bool exact)
{
    char name[256];
    if (!is_name(wish))
        return peal_builder_fail(b, "'%.100s' cannot be a name", wish);
    /* A name that may be changed does not hide a placement name. */
    bool is_free =
        !peal_word_is_reserved(wish, strlen(wish)) && (exact || !peal_name_is_placement(wish));
    if (is_free && claim(b, wish))
        return peal_builder_intern(b, wish);
    if (exact)
        return peal_builder_fail(b, "name '%s' is taken in kernel '%s', or a word of the language",
                                 wish, b->kernel->name);
    for (unsigned i = 1; b->status == PEAL_OK; i++) {
        snprintf(name, sizeof name, "%s_%u", wish, i);
        if (claim(b, name))
            return peal_builder_intern(b, name);
    }
    return NULL;
}

/* Names that have a meaning without a declaration. */
static void claim_known(struct peal_builder *b)
{
    static const char *const known[] = {"rank", "nranks", "row",      "col",
                                        "rows", "cols",   "nchildren"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        claim(b, known[i]);
}

static void end_kernel(struct peal_builder *b)
{
    if (b->kernel && b->nblocks > 1)
        peal_builder_fail(b, "kernel '%s' ends with %d open block%s", b->kernel->name,
                          b->nblocks - 1, peal_text_plural(b->nblocks - 1));
    b->kernel = NULL;
    b->nblocks = 0;
}

void peal_build_kernel(struct peal_builder *b, const char *name, const char *contract)
{
    if (!b || b->status != PEAL_OK)
        return;
    end_kernel(b);
    if (!is_name(name) || peal_word_is_reserved(name, strlen(name))) {
        peal_builder_fail(b, "'%.100s' cannot be the name of a kernel", name);
        return;
    }
    if (contract && !is_name(contract)) {
        peal_builder_fail(b, "'%.100s' cannot be the name of a contract", contract);
        return;
    }
    struct peal_kernel *kernel = PEAL_ARENA_NEW(&b->module->arena, struct peal_kernel);
    if (!kernel) {
        peal_builder_out_of_memory(b);
        return;
    }
    kernel->name = peal_builder_intern(b, name);
    kernel->doc = "";
    if (contract)
        kernel->implements = peal_builder_intern(b, contract);
    else
        kernel->implements = NULL;
    *b->kernels_tail = kernel;
    b->kernels_tail = &kernel->next;
    b->kernel = kernel;
    b->blocks[0] = (struct peal_open_block){.tail = &kernel->body};
    b->nblocks = 1;
    peal_intern_release(&b->used);
    peal_arena_release(&b->used_arena);
    claim_known(b);
}

void peal_build_doc(struct peal_builder *b, const char *text)
{
    if (!is_ready(b))
        return;
    b->kernel->doc = peal_arena_copy(&b->module->arena, text, strlen(text));
    if (!b->kernel->doc)
        peal_builder_out_of_memory(b);
}

/* Nothing can follow. */
static void end_module(struct peal_builder *b)
{
    end_kernel(b);
    if (b->status == PEAL_OK && !b->module->kernels)
        peal_builder_fail(b, "no kernel was built");
}

enum peal_status peal_builder_finish(struct peal_builder *b, struct peal_diags *diags,
                                     struct peal_module **out)
{
    if (!b)
        return PEAL_NO_MEMORY;
    end_module(b);
    enum peal_status status = b->status;
    if (status == PEAL_INVALID)
        peal_diag_error(diags, (struct peal_pos){0}, "builder: %s", b->why);
    if (status == PEAL_OK) {
        *out = b->module;
        b->module = NULL;
    }
    peal_builder_free(b);
    return status;
}

char *peal_builder_text(struct peal_builder *b)
{
    if (!b)
        return NULL;
    end_module(b);
    if (b->status != PEAL_OK)
        return NULL;
    struct peal_text text = {0};
    peal_print_module(b->module, &text);
    if (!text.failed)
        return text.at; /* never NULL: there is a kernel */
    peal_text_release(&text);
    return peal_builder_out_of_memory(b);
}

const char *peal_builder_error(const struct peal_builder *b)
{
    if (!b)
        return "out of memory";
    switch (b->status) {
    case PEAL_OK:
        return NULL;
    case PEAL_NO_MEMORY:
        return "out of memory";
    default:
        return b->why;
    }
}

struct peal_symbol *peal_builder_symbol(struct peal_builder *b, enum peal_symbol_kind kind,
                                        const char *wish, bool exact)
{
    const char *name = choose_name(b, wish, exact);
    if (!name)
        return NULL;
    struct peal_symbol *symbol = peal_symbol_new(b->module, kind, name, (struct peal_pos){0});
    if (!symbol)
        return peal_builder_out_of_memory(b);
    return symbol;
}

bool peal_builder_memory(struct peal_builder *b, struct peal_symbol *symbol,
                         const struct peal_build_memory *memory)
{
    const char *elem = memory->elem;
    if (memory->struct_size > sizeof *memory)
        return peal_builder_fail(b, "memory '%.40s' has fields that this libpeal does not know",
                                 symbol->name);
    if (!elem)
        elem = "T";
    if (strcmp(elem, "T") == 0)
        symbol->type.elem.generic = true;
    else if (!peal_dtype_find(elem, strlen(elem), &symbol->type.elem.dtype))
        return peal_builder_fail(b, "'%.40s' is not an element type", elem);
    symbol->type.elem.wide = memory->wide;
    symbol->type.dims = memory->cols ? 2 : 1;
    symbol->shape[0] = peal_builder_use(b, memory->len);
    symbol->shape[1] = peal_builder_use_optional(b, memory->cols);
    return b->status == PEAL_OK;
}

/* A new parameter, not yet in the list. */
static struct peal_symbol *new_param(struct peal_builder *b, enum peal_symbol_kind kind,
                                     const char *name)
{
    if (!is_ready(b))
        return NULL;
    if (b->kernel->nparams == PEAL_MAX_PARAMS)
        return peal_builder_fail(b, "kernel '%s' has more than %d parameters", b->kernel->name,
                                 PEAL_MAX_PARAMS);
    return peal_builder_symbol(b, kind, name, true);
}

static struct peal_expr *add_param(struct peal_builder *b, struct peal_symbol *symbol)
{
    if (b->status != PEAL_OK)
        return NULL;
    b->kernel->params[b->kernel->nparams++] = symbol;
    return peal_builder_ref(b, symbol);
}

struct peal_expr *peal_build_param(struct peal_builder *b, const char *name,
                                   const struct peal_build_memory *memory)
{
    struct peal_symbol *symbol = new_param(b, PEAL_SYMBOL_BUFFER, name);
    if (!symbol || !peal_builder_memory(b, symbol, memory))
        return NULL;
    if (memory->wide || memory->dir > 3)
        return peal_builder_fail(b,
                                 "parameter '%s': a parameter is not wide, and its direction is "
                                 "0 to 3",
                                 name);
    symbol->place = PEAL_PLACE_PARAM;
    symbol->dir = memory->dir;
    symbol->dir_written = memory->dir != 0;
    symbol->is_window = memory->window;
    return add_param(b, symbol);
}

struct peal_expr *peal_build_int_param(struct peal_builder *b, const char *name, bool is_local,
                                       struct peal_expr *initial)
{
    struct peal_symbol *symbol = new_param(b, PEAL_SYMBOL_INT, name);
    if (!symbol)
        return NULL;
    if (is_local && initial)
        return peal_builder_fail(b, "parameter '%s': a local one has no default", name);
    symbol->is_local = is_local;
    symbol->initial = peal_builder_use_optional(b, initial);
    return add_param(b, symbol);
}

struct peal_expr *peal_build_ints_param(struct peal_builder *b, const char *name, bool is_local,
                                        struct peal_expr *len)
{
    struct peal_symbol *symbol = new_param(b, PEAL_SYMBOL_INTS, name);
    if (!symbol)
        return NULL;
    symbol->is_local = is_local;
    symbol->shape[0] = peal_builder_use(b, len);
    return add_param(b, symbol);
}

struct peal_expr *peal_build_reduce_param(struct peal_builder *b, const char *name)
{
    struct peal_symbol *symbol = new_param(b, PEAL_SYMBOL_REDUCE, name);
    if (!symbol)
        return NULL;
    return add_param(b, symbol);
}

struct peal_stmt *peal_builder_stmt(struct peal_builder *b, enum peal_stmt_kind kind)
{
    if (!is_ready(b))
        return NULL;
    struct peal_stmt *stmt = peal_stmt_new(b->module, kind, (struct peal_pos){0});
    if (!stmt)
        return peal_builder_out_of_memory(b);
    struct peal_open_block *block = &b->blocks[b->nblocks - 1];
    *block->tail = stmt;
    block->tail = &stmt->next;
    return stmt;
}

/* Opens the body of a statement. */
static void open_block(struct peal_builder *b, struct peal_stmt *stmt)
{
    if (b->nblocks == PEAL_MAX_NESTING) {
        peal_builder_fail(b, "blocks are nested deeper than %d", PEAL_MAX_NESTING);
        return;
    }
    b->blocks[b->nblocks++] = (struct peal_open_block){.stmt = stmt, .tail = &stmt->body};
}

struct peal_expr *peal_build_for(struct peal_builder *b, const char *name, struct peal_expr *from,
                                 struct peal_expr *to, struct peal_expr *step)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_FOR);
    if (!stmt)
        return NULL;
    stmt->a = peal_builder_use(b, from);
    stmt->b = peal_builder_use(b, to);
    stmt->c = peal_builder_use_optional(b, step);
    stmt->symbol = peal_builder_symbol(b, PEAL_SYMBOL_LOOP, name, false);
    open_block(b, stmt);
    return peal_builder_ref(b, stmt->symbol);
}

struct peal_expr *peal_build_for_peers(struct peal_builder *b, const char *name)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_FOR_PEERS);
    if (!stmt)
        return NULL;
    stmt->symbol = peal_builder_symbol(b, PEAL_SYMBOL_LOOP, name, false);
    open_block(b, stmt);
    return peal_builder_ref(b, stmt->symbol);
}

static void open_branch(struct peal_builder *b, enum peal_stmt_kind kind,
                        struct peal_expr *condition)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, kind);
    if (!stmt)
        return;
    stmt->a = peal_builder_use(b, condition);
    open_block(b, stmt);
}

void peal_build_if(struct peal_builder *b, struct peal_expr *condition)
{
    open_branch(b, PEAL_STMT_IF, condition);
}

void peal_build_when(struct peal_builder *b, struct peal_expr *condition)
{
    open_branch(b, PEAL_STMT_WHEN, condition);
}

void peal_build_else(struct peal_builder *b)
{
    if (!is_ready(b))
        return;
    struct peal_open_block *block = &b->blocks[b->nblocks - 1];
    if (!block->stmt || block->stmt->kind != PEAL_STMT_IF || block->in_else) {
        peal_builder_fail(b, "'else' without its 'if'");
        return;
    }
    block->in_else = true;
    block->tail = &block->stmt->other;
}

void peal_build_lane(struct peal_builder *b)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_LANE);
    if (stmt)
        open_block(b, stmt);
}

struct peal_expr *peal_build_lanes(struct peal_builder *b, const char *name, struct peal_expr *from,
                                   struct peal_expr *to)
{
    struct peal_stmt *stmt = peal_builder_stmt(b, PEAL_STMT_LANE);
    if (!stmt)
        return NULL;
    stmt->a = peal_builder_use(b, from);
    stmt->b = peal_builder_use(b, to);
    stmt->symbol = peal_builder_symbol(b, PEAL_SYMBOL_LOOP, name, false);
    open_block(b, stmt);
    return peal_builder_ref(b, stmt->symbol);
}

void peal_build_lane_block(struct peal_builder *b, struct peal_expr *number)
{
    if (!is_ready(b))
        return;
    struct peal_stmt *stmt = b->blocks[b->nblocks - 1].stmt;
    if (b->nblocks <= 1 || stmt->kind != PEAL_STMT_LANE || stmt->body)
        peal_builder_fail(b, "'block' comes directly after 'lane' or 'lanes'");
    else
        stmt->c = peal_builder_use(b, number);
}

void peal_build_end(struct peal_builder *b)
{
    if (!is_ready(b))
        return;
    if (b->nblocks <= 1)
        peal_builder_fail(b, "'end' without a block");
    else
        b->nblocks--;
}
