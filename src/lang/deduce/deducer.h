/* SPDX-License-Identifier: Apache-2.0 */
/* Inside deduce: shared by its files.
 *
 *   deduce.c          the order: callees before callers; one kernel at a time
 *   deduce_names.c    scopes, symbols, slots, unknown names
 *   deduce_expr.c     types, values and shapes of expressions
 *   deduce_part.c     x[...] and x@p
 *   deduce_func.c     functions: of integers, of data, reduce operations
 *   deduce_formula.c  reductions that the text declares
 *   deduce_stmt.c     statements: blocks, and the statements in them
 *   deduce_decl.c     declarations, let and var
 *   deduce_op.c       assignments, notify, wait, send, free
 *   deduce_call.c     calls of kernels
 *   deduce_mix.c      operands that must fit together
 *   deduce_own.c      operands of ops that are written as functions
 *   deduce_atomic.c   fetch_add, compare_swap, take, and what a `when` may contain
 *   deduce_effect.c   directions, signals with both sides
 *   deduce_wide.c     wide tiles
 *   deduce_ensures.c  ensures, old, reductions over ranges
 *   deduce_rules.c    contracts
 *
 * A wrong expression gets type NONE, and nothing more is reported about expressions that contain
 * it.
 */
#ifndef PEAL_LANG_DEDUCER_H
#define PEAL_LANG_DEDUCER_H

#include "base/base.h"
#include "lang/deduce/deduce.h"
#include "lang/tree/poly.h"

/* A visible name. An unknown one is kept too, so that it is reported once. */
struct peal_name {
    const char *name;
    struct peal_symbol *symbol; /* NULL: not visible here */
    bool reported;
};

/* What deduce knows about a symbol, besides the symbol itself; by slot. Polynomials: NULL =
 * unknown. */
struct peal_fact {
    const struct peal_poly *value;    /* of a let */
    const struct peal_poly *shape[2]; /* of a buffer or tile */
    bool varies;                      /* may differ between ranks */
    bool in_slot;                     /* tile of recv_slot */
    bool is_posted;                   /* tile of recv_async */
    bool notified, waited;
    int lane; /* number of the lane block that declares it, 0 = none */
    int when; /* how many when blocks it is declared in */
    struct peal_pos notify_pos, wait_pos;
};

enum peal_kernel_state { PEAL_KERNEL_NEW, PEAL_KERNEL_OPEN, PEAL_KERNEL_DONE, PEAL_KERNEL_BAD };

struct peal_kernel_entry {
    const char *name;
    struct peal_kernel *kernel;
    enum peal_kernel_state state;
};

struct peal_deducer {
    struct peal_module *module;
    const struct peal_module *library;
    struct peal_diags *diags;
    size_t errors;
    bool no_memory;
    PEAL_VEC(struct peal_kernel_entry) kernels;
    struct peal_index kernel_index; /* of kernels */
    struct peal_arena scratch;      /* polynomials and atoms; of the kernel */
    struct peal_intern atoms;
    struct peal_kernel *kernel;
    struct peal_symbol **tail; /* of kernel->symbols */
    PEAL_VEC(struct peal_fact) facts;
    PEAL_VEC(struct peal_name) names;
    struct peal_index name_index; /* of names */
    /* names in order of declaration; the end of a scope shortens it */
    PEAL_VEC(const char *) visible;
    struct peal_symbol *specials[PEAL_NCHILDREN + 1];
    bool own_names[PEAL_NCHILDREN + 1];  /* placement names that the kernel declares itself */
    const struct peal_stmt *grid, *tree; /* set when they are seen */
    bool has_grid, has_tree;             /* somewhere in the kernel */
    const struct peal_stmt *first_lane;
    int lane;         /* number of the enclosing lane block, 0 = none */
    int lanes;        /* so far */
    int nesting;      /* of for, if and when */
    int when;         /* number of enclosing `when` blocks */
    bool in_params;   /* unknown names become dimensions */
    bool clause;      /* an ensures is deduced: private parameters have a peer's copy */
    bool launch_ok;   /* `launch mod` is allowed here */
    bool has_generic; /* some buffer is of T */
};

/* The value of an integer in d[0], or the shape of data: elements, or rows and columns. */
struct peal_value {
    struct peal_poly d[2];
};

/* deduce_names.c */
void peal_deducer_error(struct peal_deducer *d, struct peal_pos pos, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void peal_deducer_note(struct peal_deducer *d, struct peal_pos pos, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* False: too many errors to be useful, or out of memory. */
bool peal_deducer_goes_on(const struct peal_deducer *d);
/* Gives the symbol a slot and makes its name visible; reports a name that is taken. */
void peal_deducer_declare(struct peal_deducer *d, struct peal_symbol *symbol);
/* The same, when it is known what the symbol is. */
void peal_deducer_declare_as(struct peal_deducer *d, struct peal_symbol *symbol,
                             enum peal_symbol_kind kind, enum peal_type_kind type);
struct peal_symbol *peal_deducer_find(struct peal_deducer *d, const char *name);
/* Like find, but reports an unknown name once, with a similar one. */
struct peal_symbol *peal_deducer_lookup(struct peal_deducer *d, const char *name,
                                        struct peal_pos pos);
struct peal_fact *peal_deducer_fact(struct peal_deducer *d, const struct peal_symbol *symbol);
size_t peal_deducer_scope_begin(const struct peal_deducer *d);
void peal_deducer_scope_end(struct peal_deducer *d, size_t scope);
void peal_deducer_names_reset(struct peal_deducer *d);

/* deduce_expr.c */
void peal_deduce_expr(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out);
/* True if it is an integer; `role` ("a loop bound") is for the message. */
bool peal_deduce_int(struct peal_deducer *d, struct peal_expr *expr, const char *role,
                     struct peal_poly *out);
bool peal_deduce_bool(struct peal_deducer *d, struct peal_expr *expr, const char *role);
/* A rank or a port. */
void peal_deduce_peer(struct peal_deducer *d, struct peal_expr *peer);
bool peal_type_is_data(const struct peal_type *type);
/* Marks it as unknown: its error has been reported. */
static inline bool peal_expr_is_empty(const struct peal_expr *expr)
{
    return expr->type.kind == PEAL_TYPE_NONE;
}
/* "an integer", "a buffer", ... */
const char *peal_type_text(const struct peal_type *type);
struct peal_poly peal_deduce_opaque(struct peal_deducer *d, const char *function,
                                    const struct peal_poly *args, int nargs);
const struct peal_poly *peal_deduce_keep(struct peal_deducer *d, const struct peal_poly *poly);
/* May the value differ between ranks? */
bool peal_deduce_varies(struct peal_deducer *d, struct peal_expr *expr);
/* The text of an expression, shortened to fit. */
struct peal_shown {
    char text[64];
};
struct peal_shown peal_show_expr(const struct peal_expr *expr);

/* Several operands that must fit together. */
struct peal_mix {
    const struct peal_expr *first; /* the first with a shape of its own, or NULL */
    const struct peal_expr *real;  /* a floating-point number among the operands, or NULL */
    struct peal_type type;
    struct peal_value shape;
    bool any_data, bad;
};
void peal_mix_add(struct peal_deducer *d, struct peal_mix *mix, struct peal_expr *expr,
                  const struct peal_value *value);
/* Gives the operands without a shape or type of their own (recv, fill) those of the mix. */
void peal_mix_adopt(struct peal_expr *expr, const struct peal_mix *mix);
/* Arithmetic on 16-bit floats is done in f32. */
struct peal_elem peal_elem_widen(struct peal_elem elem);
/* False after a report: lengths that are known to differ. */
bool peal_deduce_fit(struct peal_deducer *d, const struct peal_expr *a, const struct peal_value *x,
                     const struct peal_expr *b, const struct peal_value *y, int dims);
/* The element type of a result of both: T if either is T, otherwise the larger. */
struct peal_elem peal_elem_join(struct peal_elem a, struct peal_elem b);
const char *peal_elem_text(struct peal_elem elem);
/* The symbol of the buffer, tile or signal that a place is a part of, or NULL. */
struct peal_symbol *peal_place_symbol(const struct peal_expr *expr);
bool peal_place_is_remote(const struct peal_expr *expr);

/* deduce_part.c */
void peal_deduce_part(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out);

/* deduce_func.c */
void peal_deduce_func(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out);
bool peal_function_is_known(const char *name);
/* Reports a reduce operation that does not accept the element type. */
void peal_deduce_reduce_takes(struct peal_deducer *d, struct peal_pos pos,
                              enum peal_reduction reduce, struct peal_elem elem);

/* deduce_formula.c */
/* Makes the formulas of the module's reductions, before its kernels are deduced. */
void peal_deduce_reductions(struct peal_deducer *d);
/* A reduce operation by its name: a built-in one, or one of the module. False: there is none. */
bool peal_deducer_reduction(const struct peal_deducer *d, const char *name,
                            enum peal_reduction *out);
/* The declaration of a user-defined one. */
const struct peal_reduce_decl *peal_deducer_decl(const struct peal_deducer *d,
                                                 enum peal_reduction reduce);

/* deduce_atomic.c */
/* Is it a peek or an atomic with a result? Called after it was deduced. */
bool peal_expr_fetches(const struct peal_expr *expr);
void peal_deduce_fetch(struct peal_deducer *d, struct peal_expr *expr);
/* Is the call an atomic whose result nobody wants? Then it becomes a let of a name that no text can
 * contain. */
bool peal_deduce_names_result(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_take(struct peal_deducer *d, struct peal_stmt *stmt);
/* counter = peek ..., where var has declared the counter */
void peal_deduce_fetched(struct peal_deducer *d, struct peal_stmt *stmt,
                         struct peal_symbol *symbol);
/* The condition of a `when`; then what a statement in its block may not do. */
void peal_deduce_test(struct peal_deducer *d, struct peal_expr *expr);
void peal_deduce_within(struct peal_deducer *d, const struct peal_stmt *stmt);

/* deduce_own.c: expr->own(...), with the right number of arguments. If no operand but a mask is data,
 * the result is of type `elem`. */
void peal_deduce_own(struct peal_deducer *d, struct peal_expr *expr, struct peal_elem elem,
                     struct peal_value *out);

/* deduce_decl.c */
/* The lengths of a symbol; `uniform`: they must be the same on all ranks. */
void peal_deduce_lengths(struct peal_deducer *d, const struct peal_symbol *symbol, bool uniform,
                         struct peal_value *out);
void peal_deduce_keep_shape(struct peal_deducer *d, const struct peal_symbol *symbol,
                            const struct peal_value *shape);
void peal_deduce_decl(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_grid(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_let(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_var(struct peal_deducer *d, struct peal_stmt *stmt);

/* deduce_op.c */
void peal_deduce_assign(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_accumulate(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_notify(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_wait(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_send(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_free(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_repost(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_await(struct peal_deducer *d, struct peal_stmt *stmt);

/* deduce_stmt.c */
void peal_deduce_stmts(struct peal_deducer *d, struct peal_stmt *stmt);

/* deduce_call.c */
struct peal_kernel *peal_deduce_callee(struct peal_deducer *d, const struct peal_stmt *stmt);
/* Was the collective called without an algorithm, so that this kernel was chosen for the author? */
bool peal_deduce_is_default(const struct peal_stmt *stmt, const struct peal_kernel *callee);
void peal_deduce_call(struct peal_deducer *d, struct peal_stmt *stmt);

/* deduce_rebind.c */
/* Collectives whose result is assigned become calls: before the callees of a kernel are deduced. */
void peal_deduce_rebinds(struct peal_deducer *d, const struct peal_kernel *kernel,
                         struct peal_stmt *stmt);

/* deduce_effect.c */
/* `sound`: there was no error so far, so that anything missing really is missing. */
void peal_deduce_effects(struct peal_deducer *d, bool sound);

/* deduce_wide.c */
void peal_deduce_wide(struct peal_deducer *d);

/* deduce_ensures.c */
void peal_deduce_ensures(struct peal_deducer *d, struct peal_stmt *stmt);
void peal_deduce_old(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out);
void peal_deduce_over(struct peal_deducer *d, struct peal_expr *expr, struct peal_value *out);
/* Of all ensures in the list, once directions are known. */
void peal_deduce_promises(struct peal_deducer *d, const struct peal_stmt *stmt);

/* deduce_rules.c */
void peal_deduce_contract(struct peal_deducer *d);

/* deduce.c */
struct peal_kernel_entry *peal_deducer_kernel(const struct peal_deducer *d, const char *name);

#endif
