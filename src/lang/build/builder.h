/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the builder: shared by build.c, build_stmt.c and build_expr.c. */
#ifndef PEAL_LANG_BUILDER_H
#define PEAL_LANG_BUILDER_H

#include "lang/build/build.h"

/* An open block: where its next statement goes. */
struct peal_open_block {
    struct peal_stmt *stmt; /* NULL: the kernel's body */
    struct peal_stmt **tail;
    bool in_else;
};

struct peal_builder {
    struct peal_module *module;
    struct peal_kernel *kernel;
    struct peal_kernel **kernels_tail;
    struct peal_intern used; /* names of the current kernel */
    struct peal_arena used_arena;
    struct peal_open_block blocks[PEAL_MAX_NESTING];
    int nblocks;
    const char *order, *scope; /* of the next op on a cell, or fence; NULL: its own */
    bool has_order;
    enum peal_status status;
    char why[256];
};

/* Keeps the first mistake. Always returns NULL. */
void *peal_builder_fail(struct peal_builder *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void *peal_builder_out_of_memory(struct peal_builder *b);
const char *peal_builder_intern(struct peal_builder *b, const char *name);
/* A copy of an operand, for its place in the tree. NULL after a failure. */
struct peal_expr *peal_builder_use(struct peal_builder *b, const struct peal_expr *expr);
/* The same for an operand that may be left out: NULL gives NULL, which is not an error. */
struct peal_expr *peal_builder_use_optional(struct peal_builder *b, const struct peal_expr *expr);
/* Copies of all expressions of a list except the first, linked. */
struct peal_expr *peal_builder_args(struct peal_builder *b, const void *const *words, size_t count);
/* A statement at the end of the innermost block. NULL after a failure. */
struct peal_stmt *peal_builder_stmt(struct peal_builder *b, enum peal_stmt_kind kind);
/* What peal_build_order has said of this operation. */
struct peal_ordering peal_builder_ordering(struct peal_builder *b, enum peal_stmt_kind kind);
/* A name expression for the symbol. */
struct peal_expr *peal_builder_ref(struct peal_builder *b, const struct peal_symbol *symbol);
/* Element type and shape of a symbol. False after a failure. */
bool peal_builder_memory(struct peal_builder *b, struct peal_symbol *symbol,
                         const struct peal_build_memory *memory);
struct peal_symbol *peal_builder_symbol(struct peal_builder *b, enum peal_symbol_kind kind,
                                        const char *wish, bool exact);

#endif
