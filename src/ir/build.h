/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels made by a C program: the same tree as the parser makes, so it prints as text, reads back
 * as the same text, and is deduced, lowered and run like any other.
 *
 *   struct peal_builder *b = peal_builder_new();
 *   struct peal_expr *n = peal_build_name(b, "n"), *rank = peal_build_name(b, "rank");
 *   peal_build_kernel(b, "shift", NULL);
 *   struct peal_expr *x = peal_build_param(b, "x", &(struct peal_build_memory){.len = n});
 *   struct peal_expr *y = peal_build_param(b, "y", &(struct peal_build_memory){.len = n});
 *   peal_build_send(b, x, peal_build_add(b, rank, peal_build_int(b, 1)), NULL);
 *   peal_build_assign(b, y, peal_build_recv(b, peal_build_sub(b, rank, peal_build_int(b, 1)),
 * NULL)); status = peal_builder_finish(b, diags, &module);         frees the builder in every case
 *
 * Statements go to the innermost open block: peal_build_for, _if, _lane open one, peal_build_end
 * closes it. A value carried through a loop or out of a branch is a var (integers) or a tile (data)
 * made before it and assigned inside: peal_build_carry.
 *
 * Names of lets, vars, loop variables and declarations are wishes: one that is taken, at whatever
 * depth, gets a number (`c`, `c_1`, ...). What is returned stands for the thing, and can be used as
 * an operand any number of times.
 *
 * Sticky: the first mistake is remembered, later calls do nothing (expressions are NULL, which
 * every call accepts), finish reports it.
 */
#ifndef PEAL_IR_BUILD_H
#define PEAL_IR_BUILD_H

#include "ir/module.h"

struct peal_builder;

/* NULL when out of memory; every call accepts that. */
struct peal_builder *peal_builder_new(void);
void peal_builder_free(struct peal_builder *b);
/* Ends the last kernel. The module is not deduced yet. */
enum peal_status peal_builder_finish(struct peal_builder *b, struct peal_diags *diags,
                                     struct peal_module **out);

/* Begins a kernel, and ends the one before. contract may be NULL. */
void peal_build_kernel(struct peal_builder *b, const char *name, const char *contract);
/* The comment above the kernel; lines are separated by '\n'. */
void peal_build_doc(struct peal_builder *b, const char *text);

/* Memory: a parameter, a window or private buffer, the type of a let. */
struct peal_build_memory {
    const char *elem; /* "T", "f32", ...; NULL = "T" */
    struct peal_expr *len;
    struct peal_expr *cols; /* 2-D: then len is the number of rows; NULL = 1-D */
    unsigned dir;           /* parameters: 1 in, 2 out, 3 inout, 0 = to be deduced */
    bool window;            /* parameters: peers can address it */
    bool wide;              /* scratch and tiles */
};

/* Parameters, in order. Their names are taken as they are. */
struct peal_expr *peal_build_param(struct peal_builder *b, const char *name,
                                   const struct peal_build_memory *memory);
/* initial may be NULL. */
struct peal_expr *peal_build_int_param(struct peal_builder *b, const char *name, bool is_local,
                                       struct peal_expr *initial);
struct peal_expr *peal_build_ints_param(struct peal_builder *b, const char *name, bool is_local,
                                        struct peal_expr *len);
struct peal_expr *peal_build_reduce_param(struct peal_builder *b, const char *name);

/* Declarations. */
struct peal_expr *peal_build_window(struct peal_builder *b, const char *name,
                                    const struct peal_build_memory *memory);
struct peal_expr *peal_build_private(struct peal_builder *b, const char *name,
                                     const struct peal_build_memory *memory);
/* cells NULL = one cell, not an array */
struct peal_expr *peal_build_signal(struct peal_builder *b, const char *name,
                                    enum peal_signal_mode mode, struct peal_expr *cells);
struct peal_expr *peal_build_channel(struct peal_builder *b, const char *name);
void peal_build_grid(struct peal_builder *b, struct peal_expr *rows, struct peal_expr *cols,
                     bool torus);
/* root NULL = rank 0 */
void peal_build_tree(struct peal_builder *b, struct peal_expr *arity, struct peal_expr *root);

/* Expressions. */
struct peal_expr *peal_build_int(struct peal_builder *b, int64_t value);
struct peal_expr *peal_build_real(struct peal_builder *b, double value);
/* rank, nranks, a dimension, sum, max, ... */
struct peal_expr *peal_build_name(struct peal_builder *b, const char *name);
struct peal_expr *peal_build_unary(struct peal_builder *b, enum peal_int_op op,
                                   struct peal_expr *a);
struct peal_expr *peal_build_binary(struct peal_builder *b, enum peal_int_op op,
                                    struct peal_expr *a, struct peal_expr *c);
/* A function of integers or of data, by its name: peal_build_call(b, "min", i, j). */
#define peal_build_call(b, ...)                                                                    \
    peal_build_call_list((b), PEAL_BUILD_LIST(__VA_ARGS__), PEAL_BUILD_COUNT(__VA_ARGS__))
/* A reduce parameter applied to data. */
struct peal_expr *peal_build_apply(struct peal_builder *b, struct peal_expr *op,
                                   struct peal_expr *x, struct peal_expr *y);
/* x[i], x[from +: len], x[c of k] */
struct peal_expr *peal_build_index(struct peal_builder *b, struct peal_expr *x,
                                   struct peal_expr *i);
struct peal_expr *peal_build_range(struct peal_builder *b, struct peal_expr *x,
                                   struct peal_expr *from, struct peal_expr *len);
struct peal_expr *peal_build_part(struct peal_builder *b, struct peal_expr *x, struct peal_expr *c,
                                  struct peal_expr *k);
/* Any slices, one or two. */
struct peal_expr *peal_build_slices(struct peal_builder *b, struct peal_expr *x,
                                    const struct peal_slice *slices, int count);
struct peal_expr *peal_build_at(struct peal_builder *b, struct peal_expr *x,
                                struct peal_expr *peer);
/* launch mod k */
struct peal_expr *peal_build_launch_mod(struct peal_builder *b, int k);
/* N S E W parent; child: number is its number, otherwise NULL */
struct peal_expr *peal_build_port(struct peal_builder *b, enum peal_port port,
                                  struct peal_expr *number);
/* channel NULL = the unnamed one */
struct peal_expr *peal_build_recv(struct peal_builder *b, struct peal_expr *peer,
                                  struct peal_expr *channel);
struct peal_expr *peal_build_recv_slot(struct peal_builder *b, struct peal_expr *peer,
                                       struct peal_expr *channel);
struct peal_expr *peal_build_peek(struct peal_builder *b, struct peal_expr *cell);

/* Statements. */
/* type NULL = that of the value */
struct peal_expr *peal_build_let(struct peal_builder *b, const char *name,
                                 const struct peal_build_memory *type, struct peal_expr *value);
struct peal_expr *peal_build_var(struct peal_builder *b, const char *name, struct peal_expr *value);
void peal_build_assign(struct peal_builder *b, struct peal_expr *place, struct peal_expr *value);
/* place op= value; op NULL = sum */
void peal_build_accumulate(struct peal_builder *b, struct peal_expr *place, struct peal_expr *op,
                           struct peal_expr *value, bool exclusive);

struct peal_build_sync {
    bool relaxed;
    bool set;      /* notify: = instead of += */
    bool equal;    /* wait: == instead of >= */
    uint32_t back; /* wait: at launch - back */
};
/* sync may be NULL. */
void peal_build_notify(struct peal_builder *b, struct peal_expr *cell, struct peal_expr *value,
                       const struct peal_build_sync *sync);
void peal_build_wait(struct peal_builder *b, struct peal_expr *cell, struct peal_expr *value,
                     const struct peal_build_sync *sync);
void peal_build_send(struct peal_builder *b, struct peal_expr *value, struct peal_expr *peer,
                     struct peal_expr *channel);
void peal_build_free(struct peal_builder *b, struct peal_expr *tile);
void peal_build_assert(struct peal_builder *b, struct peal_expr *condition, const char *message);
/* Calls a kernel or collective, by its name: peal_build_run(b, "allreduce", g, sum). */
#define peal_build_run(b, ...)                                                                     \
    peal_build_run_list((b), PEAL_BUILD_LIST(__VA_ARGS__), PEAL_BUILD_COUNT(__VA_ARGS__))

/* Behind the two: a name (const char *), then count - 1 expressions. */
struct peal_expr *peal_build_call_list(struct peal_builder *b, const void *const *words,
                                       size_t count);
void peal_build_run_list(struct peal_builder *b, const void *const *words, size_t count);
#define PEAL_BUILD_LIST(...) ((const void *const[]){__VA_ARGS__})
#define PEAL_BUILD_COUNT(...) (sizeof(PEAL_BUILD_LIST(__VA_ARGS__)) / sizeof(const void *))

/* Blocks. Each returns its variable, if it has one. step NULL = 1. */
struct peal_expr *peal_build_for(struct peal_builder *b, const char *name, struct peal_expr *from,
                                 struct peal_expr *to, struct peal_expr *step);
struct peal_expr *peal_build_for_peers(struct peal_builder *b, const char *name);
void peal_build_if(struct peal_builder *b, struct peal_expr *condition);
void peal_build_else(struct peal_builder *b);
void peal_build_lane(struct peal_builder *b);
struct peal_expr *peal_build_lanes(struct peal_builder *b, const char *name, struct peal_expr *from,
                                   struct peal_expr *to);
void peal_build_end(struct peal_builder *b);

/* A value that a loop carries or a branch leaves: made before it, assigned inside with
 * peal_build_assign, used inside and after. */
enum peal_carried { PEAL_CARRY_INT, PEAL_CARRY_DATA };
struct peal_expr *peal_build_carry(struct peal_builder *b, enum peal_carried kind, const char *name,
                                   struct peal_expr *initial);

/* The operators by their names. On data + - * / are elementwise. */
#define PEAL_BUILD_BINARY(verb, OP)                                                                \
    static inline struct peal_expr *peal_build_##verb(struct peal_builder *b, struct peal_expr *a, \
                                                      struct peal_expr *c)                         \
    {                                                                                              \
        return peal_build_binary(b, PEAL_INT_##OP, a, c);                                          \
    }
PEAL_BUILD_BINARY(add, ADD)
PEAL_BUILD_BINARY(sub, SUB)
PEAL_BUILD_BINARY(mul, MUL)
PEAL_BUILD_BINARY(div, DIV)
PEAL_BUILD_BINARY(mod, MOD)
PEAL_BUILD_BINARY(shl, SHL)
PEAL_BUILD_BINARY(shr, SHR)
PEAL_BUILD_BINARY(bit_and, AND)
PEAL_BUILD_BINARY(bit_or, OR)
PEAL_BUILD_BINARY(bit_xor, XOR)
PEAL_BUILD_BINARY(equal, EQ)
PEAL_BUILD_BINARY(not_equal, NE)
PEAL_BUILD_BINARY(less, LT)
PEAL_BUILD_BINARY(at_most, LE)
PEAL_BUILD_BINARY(more, GT)
PEAL_BUILD_BINARY(at_least, GE)
PEAL_BUILD_BINARY(both, ANDAND)
PEAL_BUILD_BINARY(either, OROR)
#undef PEAL_BUILD_BINARY

static inline struct peal_expr *peal_build_negate(struct peal_builder *b, struct peal_expr *a)
{
    return peal_build_unary(b, PEAL_INT_NEG, a);
}

static inline struct peal_expr *peal_build_not(struct peal_builder *b, struct peal_expr *a)
{
    return peal_build_unary(b, PEAL_INT_NOT, a);
}

#endif
