/* SPDX-License-Identifier: Apache-2.0 */
/* peal/build.h: making kernels in a C program.
 *
 *     struct peal_builder *b = peal_builder_new();
 *     struct peal_expr *n = peal_build_name(b, "n"), *rank = peal_build_name(b, "rank");
 *     struct peal_expr *one = peal_build_int(b, 1);
 *     peal_build_kernel(b, "shift", NULL);
 *     struct peal_expr *x = peal_build_param(b, "x", &(struct peal_build_memory){.len = n});
 *     struct peal_expr *y = peal_build_param(b, "y", &(struct peal_build_memory){.len = n});
 *     peal_build_send(b, x, peal_build_add(b, rank, one), NULL);
 *     peal_build_assign(b, y, peal_build_recv(b, peal_build_sub(b, rank, one), NULL));
 *     char *text = peal_builder_text(b);       NULL: peal_builder_error(b) says why
 *     peal_builder_free(b);
 *
 * The text is Peal (docs/language.md): it can be kept, checked, proved, and loaded with
 * peal_user_kernel_load.
 *
 * Statements go to the innermost open block: peal_build_for, _if, _lane open one, peal_build_end
 * closes it. A value carried through a loop or out of a branch is a var (integers) or a tile (data)
 * made before it and assigned inside: peal_build_carry.
 *
 * Names of lets, vars, loop variables and declarations are suggestions: a name that is already in
 * use, at any depth, gets a number (`c`, `c_1`, ...). The returned expression stands for the named
 * thing. It can be used as an operand any number of times, and is valid as long as the builder.
 *
 * Errors are sticky: the first mistake is remembered, and later calls do nothing (expressions are
 * NULL, which every call accepts). A builder belongs to one thread at a time.
 */
#ifndef PEAL_BUILD_H
#define PEAL_BUILD_H

#include <peal/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peal_builder;
struct peal_expr;

/* NULL when out of memory; every call accepts that. */
PEAL_API struct peal_builder *peal_builder_new(void);
PEAL_API void peal_builder_free(struct peal_builder *b);
/* All kernels as text; free it with free(). NULL after a mistake, or when out of memory. */
PEAL_API char *peal_builder_text(struct peal_builder *b);
/* The first mistake, in words; NULL if there was none. */
PEAL_API const char *peal_builder_error(const struct peal_builder *b);

/* Begins a kernel, and ends the one before. contract may be NULL. */
PEAL_API void peal_build_kernel(struct peal_builder *b, const char *name, const char *contract);
/* The comment above the kernel; lines are separated by '\n'. */
PEAL_API void peal_build_doc(struct peal_builder *b, const char *text);

/* Memory: a parameter, a window or private buffer, the type of a let. */
struct peal_build_memory {
    uint32_t struct_size; /* sizeof(struct peal_build_memory), or 0: as it is in 0.2.0 */
    const char *elem;     /* "T", "f32", ...; NULL = "T" */
    struct peal_expr *len;
    struct peal_expr *cols; /* 2-D: then len is the number of rows; NULL = 1-D */
    unsigned dir;           /* parameters: 1 in, 2 out, 3 inout, 0 = to be deduced */
    bool window;            /* parameters: peers can address it */
    bool wide;              /* scratch and tiles */
};

/* Parameters, in order. Their names are never changed. */
PEAL_API struct peal_expr *peal_build_param(struct peal_builder *b, const char *name,
                                            const struct peal_build_memory *memory);
/* initial may be NULL. */
PEAL_API struct peal_expr *peal_build_int_param(struct peal_builder *b, const char *name,
                                                bool is_local, struct peal_expr *initial);
PEAL_API struct peal_expr *peal_build_ints_param(struct peal_builder *b, const char *name,
                                                 bool is_local, struct peal_expr *len);
PEAL_API struct peal_expr *peal_build_reduce_param(struct peal_builder *b, const char *name);

/* A user-defined reduction, `reduce NAME(a, b) = value`, where names "a" and "b" stand for the two
 * contributions; `properties` is NULL, "commutative", "associative" or "commutative associative".
 * The result can be applied to data and passed to kernels, in every kernel of the module. */
PEAL_API struct peal_expr *peal_build_reduction(struct peal_builder *b, const char *name,
                                                const char *properties, struct peal_expr *value);

/* Declarations. */
PEAL_API struct peal_expr *peal_build_window(struct peal_builder *b, const char *name,
                                             const struct peal_build_memory *memory);
PEAL_API struct peal_expr *peal_build_private(struct peal_builder *b, const char *name,
                                              const struct peal_build_memory *memory);
/* mode: "shared", "raw" or "raw uninitialised"; NULL = one writer. cells NULL = one cell, not an
 * array. */
PEAL_API struct peal_expr *peal_build_signal(struct peal_builder *b, const char *name,
                                             const char *mode, struct peal_expr *cells);
PEAL_API struct peal_expr *peal_build_channel(struct peal_builder *b, const char *name);
PEAL_API void peal_build_grid(struct peal_builder *b, struct peal_expr *rows,
                              struct peal_expr *cols, bool torus);
/* root NULL = rank 0 */
PEAL_API void peal_build_tree(struct peal_builder *b, struct peal_expr *arity,
                              struct peal_expr *root);

/* Expressions. */
PEAL_API struct peal_expr *peal_build_int(struct peal_builder *b, int64_t value);
PEAL_API struct peal_expr *peal_build_real(struct peal_builder *b, double value);
/* rank, nranks, node, nodes, seat, seats, max_seats, a dimension, sum, max, ... */
PEAL_API struct peal_expr *peal_build_name(struct peal_builder *b, const char *name);
/* An operator as it is written: "+", "%", "<=", "and", ...; c NULL for "-" and "not" of one
 * operand. */
PEAL_API struct peal_expr *peal_build_op(struct peal_builder *b, const char *op,
                                         struct peal_expr *a, struct peal_expr *c);
/* A function of integers or of data, by its name: peal_build_call(b, "min", i, j). C++ does not
 * have the array literals of this macro and of peal_build_run: call the functions behind them
 * there. */
#define peal_build_call(b, ...)                                                                    \
    peal_build_call_list((b), PEAL_BUILD_LIST(__VA_ARGS__), PEAL_BUILD_COUNT(__VA_ARGS__))
/* A reduce parameter applied to data. */
PEAL_API struct peal_expr *peal_build_apply(struct peal_builder *b, struct peal_expr *op,
                                            struct peal_expr *x, struct peal_expr *y);
/* A reduction over integers, in an ensures: op(name in from .. to where condition: value). The
 * condition and the value use the name by peal_build_name; where NULL = all. */
struct peal_build_over {
    const char *name;
    struct peal_expr *from, *to, *where;
};
PEAL_API struct peal_expr *peal_build_reduced(struct peal_builder *b, struct peal_expr *op,
                                              const struct peal_build_over *over,
                                              struct peal_expr *value);
/* x[i], x[from +: len], x[c of k] */
PEAL_API struct peal_expr *peal_build_index(struct peal_builder *b, struct peal_expr *x,
                                            struct peal_expr *i);
PEAL_API struct peal_expr *peal_build_range(struct peal_builder *b, struct peal_expr *x,
                                            struct peal_expr *from, struct peal_expr *len);
PEAL_API struct peal_expr *peal_build_part(struct peal_builder *b, struct peal_expr *x,
                                           struct peal_expr *c, struct peal_expr *k);
/* Two dimensions: a slice of the rows, a slice of the columns. */
enum peal_build_slice_kind {
    PEAL_BUILD_ALL,   /* : */
    PEAL_BUILD_INDEX, /* a */
    PEAL_BUILD_RANGE, /* a +: b */
    PEAL_BUILD_PART   /* a of b */
};
struct peal_build_slice {
    enum peal_build_slice_kind kind;
    struct peal_expr *a, *b;
};
PEAL_API struct peal_expr *peal_build_block(struct peal_builder *b, struct peal_expr *x,
                                            struct peal_build_slice rows,
                                            struct peal_build_slice cols);
PEAL_API struct peal_expr *peal_build_at(struct peal_builder *b, struct peal_expr *x,
                                         struct peal_expr *peer);
/* launch mod k, and launch itself */
PEAL_API struct peal_expr *peal_build_launch(struct peal_builder *b);
PEAL_API struct peal_expr *peal_build_launch_mod(struct peal_builder *b, int k);
/* "N" "S" "E" "W" "parent"; "child" with its number, which is NULL for the others. */
PEAL_API struct peal_expr *peal_build_port(struct peal_builder *b, const char *port,
                                           struct peal_expr *number);
/* channel NULL = the unnamed one */
PEAL_API struct peal_expr *peal_build_recv(struct peal_builder *b, struct peal_expr *peer,
                                           struct peal_expr *channel);
PEAL_API struct peal_expr *peal_build_recv_slot(struct peal_builder *b, struct peal_expr *peer,
                                                struct peal_expr *channel);
/* A receive that is posted: the value of a let with a written type, or assigned to the tile of such
 * a let, and of nothing else. peal_build_await waits for it. */
PEAL_API struct peal_expr *peal_build_recv_async(struct peal_builder *b, struct peal_expr *peer,
                                                 struct peal_expr *channel);
PEAL_API struct peal_expr *peal_build_peek(struct peal_builder *b, struct peal_expr *cell);
/* Atomics on a cell of a raw signal, this rank's or a peer's (docs/language.md, "Atomics"). Their
 * value is what the cell held before, to be named by peal_build_let or peal_build_var. */
PEAL_API struct peal_expr *peal_build_fetch_add(struct peal_builder *b, struct peal_expr *cell,
                                                struct peal_expr *amount);
PEAL_API struct peal_expr *peal_build_compare_swap(struct peal_builder *b, struct peal_expr *cell,
                                                   struct peal_expr *from, struct peal_expr *to);

/* Statements. */
/* type NULL = that of the value */
PEAL_API struct peal_expr *peal_build_let(struct peal_builder *b, const char *name,
                                          const struct peal_build_memory *type,
                                          struct peal_expr *value);
PEAL_API struct peal_expr *peal_build_var(struct peal_builder *b, const char *name,
                                          struct peal_expr *value);
PEAL_API void peal_build_assign(struct peal_builder *b, struct peal_expr *place,
                                struct peal_expr *value);
/* place op= value; op NULL = sum */
PEAL_API void peal_build_accumulate(struct peal_builder *b, struct peal_expr *place,
                                    struct peal_expr *op, struct peal_expr *value, bool exclusive);

struct peal_build_sync {
    uint32_t struct_size; /* sizeof(struct peal_build_sync), or 0: as it is in 0.2.0 */
    bool relaxed;
    bool set;      /* notify: = instead of += */
    bool equal;    /* wait: == instead of >= */
    uint32_t back; /* wait: at launch - back */
};
/* sync may be NULL. */
PEAL_API void peal_build_notify(struct peal_builder *b, struct peal_expr *cell,
                                struct peal_expr *value, const struct peal_build_sync *sync);
PEAL_API void peal_build_wait(struct peal_builder *b, struct peal_expr *cell,
                              struct peal_expr *value, const struct peal_build_sync *sync);
/* The order ("relaxed", "acquire", "release", "acq_rel"; fences: "full", too) and the scope ("block",
 * "device", "system") of the next notify, wait, take, fetch_add, compare_swap or fence. NULL: as
 * without this call. */
PEAL_API void peal_build_order(struct peal_builder *b, const char *order, const char *scope);
PEAL_API void peal_build_fence(struct peal_builder *b);
/* take cell from one value to another: blocks until the cell holds the first */
PEAL_API void peal_build_take(struct peal_builder *b, struct peal_expr *cell,
                              struct peal_expr *from, struct peal_expr *to);
PEAL_API void peal_build_send(struct peal_builder *b, struct peal_expr *value,
                              struct peal_expr *peer, struct peal_expr *channel);
/* flush to rank: see docs/language.md, "Several hosts" */
PEAL_API void peal_build_flush(struct peal_builder *b, struct peal_expr *rank);
/* wait tile [into place]: place may be NULL */
PEAL_API void peal_build_await(struct peal_builder *b, struct peal_expr *tile,
                               struct peal_expr *place);
PEAL_API void peal_build_free(struct peal_builder *b, struct peal_expr *tile);
PEAL_API void peal_build_assert(struct peal_builder *b, struct peal_expr *condition,
                                const char *message);
/* requires condition: what the caller promises */
PEAL_API void peal_build_requires(struct peal_builder *b, struct peal_expr *condition);
/* ensures place == value where condition: what the kernel promises. An index of the place that is a
 * new name stands for all elements; where NULL = all of them. See docs/contracts.md. */
PEAL_API void peal_build_ensures(struct peal_builder *b, struct peal_expr *place,
                                 struct peal_expr *value, struct peal_expr *where);
/* Calls a kernel or collective, by its name: peal_build_run(b, "allreduce", g, sum). */
#define peal_build_run(b, ...)                                                                     \
    peal_build_run_list((b), PEAL_BUILD_LIST(__VA_ARGS__), PEAL_BUILD_COUNT(__VA_ARGS__))

/* The functions behind the two macros: a name (const char *), then count - 1 expressions. */
PEAL_API struct peal_expr *peal_build_call_list(struct peal_builder *b, const void *const *words,
                                                size_t count);
PEAL_API void peal_build_run_list(struct peal_builder *b, const void *const *words, size_t count);
#define PEAL_BUILD_LIST(...) ((const void *const[]){__VA_ARGS__})
#define PEAL_BUILD_COUNT(...) (sizeof(PEAL_BUILD_LIST(__VA_ARGS__)) / sizeof(const void *))

/* Blocks. Each returns its variable, if it has one. step NULL = 1. */
PEAL_API struct peal_expr *peal_build_for(struct peal_builder *b, const char *name,
                                          struct peal_expr *from, struct peal_expr *to,
                                          struct peal_expr *step);
PEAL_API struct peal_expr *peal_build_for_peers(struct peal_builder *b, const char *name);
PEAL_API void peal_build_if(struct peal_builder *b, struct peal_expr *condition);
PEAL_API void peal_build_else(struct peal_builder *b);
/* when condition { ... }: compares a counter with an integer while the plan runs */
PEAL_API void peal_build_when(struct peal_builder *b, struct peal_expr *condition);
PEAL_API void peal_build_lane(struct peal_builder *b);
PEAL_API struct peal_expr *peal_build_lanes(struct peal_builder *b, const char *name,
                                            struct peal_expr *from, struct peal_expr *to);
/* Directly after either: these lanes are of the block of this number. */
PEAL_API void peal_build_lane_block(struct peal_builder *b, struct peal_expr *number);
PEAL_API void peal_build_end(struct peal_builder *b);

/* A value that a loop carries or a branch leaves: made before it, assigned inside with
 * peal_build_assign, used inside and after. */
enum peal_carried { PEAL_CARRY_INT, PEAL_CARRY_DATA };
PEAL_API struct peal_expr *peal_build_carry(struct peal_builder *b, enum peal_carried kind,
                                            const char *name, struct peal_expr *initial);

/* The operators by their names. On data + - * / are elementwise. */
#define PEAL_BUILD_BINARY(verb, op)                                                                \
    static inline struct peal_expr *peal_build_##verb(struct peal_builder *b, struct peal_expr *a, \
                                                      struct peal_expr *c)                         \
    {                                                                                              \
        return peal_build_op(b, op, a, c);                                                         \
    }
PEAL_BUILD_BINARY(add, "+")
PEAL_BUILD_BINARY(sub, "-")
PEAL_BUILD_BINARY(mul, "*")
PEAL_BUILD_BINARY(div, "/")
PEAL_BUILD_BINARY(mod, "%")
PEAL_BUILD_BINARY(equal, "==")
PEAL_BUILD_BINARY(not_equal, "!=")
PEAL_BUILD_BINARY(less, "<")
PEAL_BUILD_BINARY(at_most, "<=")
PEAL_BUILD_BINARY(more, ">")
PEAL_BUILD_BINARY(at_least, ">=")
#undef PEAL_BUILD_BINARY

#ifdef __cplusplus
}
#endif
#endif
