/* SPDX-License-Identifier: Apache-2.0 */
/* The tree: kernels between text and plan.
 *
 *   ops.def     the table of operations                 parse.h    text -> module
 *   module.h    this file: the tree                      print.h    module -> canonical text
 *   deduce.h    names, types, shapes, directions         build.h    a module made by a C program
 *   validate.h  what must hold after every pass          library.h  the built-in kernels
 *
 * A module is a list of kernels, and of reductions that they can use. A kernel is parameters and a
 * tree of statements over expressions. The tree lives in the module's arena and is freed with it;
 * nodes are reached by pointers and lists by `next`. Names are interned in the module: equal names
 * are equal pointers.
 *
 * Life of a module:  parse (or build) -> deduce -> lower's passes -> instantiate (folder plan).
 * parse leaves the `deduced` fields empty; deduce fills them or reports; every later pass keeps
 * them right.
 */
#ifndef PEAL_LANG_MODULE_H
#define PEAL_LANG_MODULE_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

struct peal_expr;
struct peal_stmt;
struct peal_kernel;

/* The kinds of expressions. */
enum peal_type_kind {
    PEAL_TYPE_NONE,   /* not deduced yet */
    PEAL_TYPE_INT,    /* known when a plan is made */
    PEAL_TYPE_BOOL,   /* likewise */
    PEAL_TYPE_FLOAT,  /* a floating-point number known when a plan is made */
    PEAL_TYPE_INTS,   /* an array of ints: a parameter `counts: int[n]` */
    PEAL_TYPE_BUFFER, /* memory: a parameter, window, private buffer, or a part of one */
    PEAL_TYPE_TILE,   /* a value of the lane: let, or the result of a function */
    PEAL_TYPE_SIGNAL, /* a cell or an array of cells */
    /* a run-time integer from a cell; added in a wait or notify, compared in a when */
    PEAL_TYPE_COUNTER,
    PEAL_TYPE_LAUNCH, /* an integer that follows from the number of the launch */
    PEAL_TYPE_REDUCE, /* a reduce operation: a parameter `op: reduce`, or sum, max, ... */
    PEAL_TYPE_CHANNEL,
    PEAL_TYPE_TEST /* a counter or launch number compared with an integer: known at run time only */
};

/* Element types: a fixed dtype, or T, the kernel's generic one; `wide` = f32 where T is f16 or
 * bf16. */
struct peal_elem {
    bool generic; /* T */
    bool wide;
    enum peal_dtype dtype; /* when not generic */
};

struct peal_type {
    enum peal_type_kind kind;
    struct peal_elem elem; /* buffers and tiles */
    int dims;       /* buffers, tiles: 1 or 2; signals, ints: 0 or 1; 0 = that of its context */
    bool is_window; /* buffers */
};

enum peal_expr_kind {
    PEAL_EXPR_INT,    /* 42 */
    PEAL_EXPR_FLOAT,  /* 0.5 */
    PEAL_EXPR_NAME,   /* a name; `symbol` after deduce */
    PEAL_EXPR_UNARY,  /* -a, not a: `op` */
    PEAL_EXPR_BINARY, /* a + b, ...: `op`; on tiles the elementwise function */
    /* name(args): an integer function, elementwise function, reduce parameter or fill, final */
    PEAL_EXPR_CALL,
    PEAL_EXPR_SLICE,  /* base[slice] or base[slice, slice] */
    PEAL_EXPR_AT,     /* base@peer */
    PEAL_EXPR_LAUNCH, /* launch mod k: `value` is k; launch: it is 0 */
    PEAL_EXPR_RECV,   /* recv from peer, recv_slot from peer (`in_slot`) */
    PEAL_EXPR_PEEK,   /* peek cell */
    PEAL_EXPR_PORT    /* N S E W parent child i, as peer of a channel op or argument of has, peer */
};

enum peal_int_op {
    PEAL_INT_ADD,
    PEAL_INT_SUB,
    PEAL_INT_MUL,
    PEAL_INT_DIV, /* floors: with % Euclidean for positive divisors */
    PEAL_INT_MOD, /* Euclidean: 0 <= a % b < |b| */
    PEAL_INT_SHL,
    PEAL_INT_SHR,
    PEAL_INT_AND,
    PEAL_INT_OR,
    PEAL_INT_XOR,
    PEAL_INT_EQ,
    PEAL_INT_NE,
    PEAL_INT_LT,
    PEAL_INT_LE,
    PEAL_INT_GT,
    PEAL_INT_GE,
    PEAL_INT_ANDAND,
    PEAL_INT_OROR, /* `and`, `or` on booleans */
    PEAL_INT_NEG,
    PEAL_INT_NOT, /* unary; `not` on booleans */
    PEAL_INT_OP_COUNT
};

/* Functions known to the language that are not elementwise; elementwise ones are in fn.def. */
enum peal_builtin {
    PEAL_BUILTIN_NONE,
    PEAL_BUILTIN_MIN, /* min(a, b, ...) of ints */
    PEAL_BUILTIN_MAX,
    PEAL_BUILTIN_CDIV, /* cdiv(a, b) of ints */
    PEAL_BUILTIN_LOG2, /* log2(a): floor */
    PEAL_BUILTIN_PART, /* part(c, n, k): length of part c of n elements in k parts */
    /* select(condition, a, b) of ints or data; only the chosen one is evaluated */
    PEAL_BUILTIN_SELECT,
    PEAL_BUILTIN_SUM,          /* sum(counts), sum(counts, k): the first k */
    PEAL_BUILTIN_LEN,          /* len(buffer or tile): elements */
    PEAL_BUILTIN_HAS,          /* has(port): is there a neighbour? */
    PEAL_BUILTIN_PEER,         /* peer(port): its rank */
    PEAL_BUILTIN_AT,           /* at(node, seat), at(node, cube, PE): the rank there */
    PEAL_BUILTIN_NODE_OF,      /* node_of(rank) */
    PEAL_BUILTIN_SEAT_OF,      /* seat_of(rank) */
    PEAL_BUILTIN_SEATS_OF,     /* seats_of(node): its ranks */
    PEAL_BUILTIN_PROGRAM_ID,   /* program_id(axis): 0 PE of its cube, 1 cube of its node, 2 node */
    PEAL_BUILTIN_NUM_PROGRAMS, /* num_programs(axis): the most there are on that axis */
    PEAL_BUILTIN_FILL,         /* fill(value, len), fill(value, rows, cols): a tile */
    PEAL_BUILTIN_FINAL,        /* final(op, tile): divides by nranks if op is avg */
    PEAL_BUILTIN_OWN,          /* an op that is written as a function, such as matmul: `own` */
    PEAL_BUILTIN_FETCH_ADD,    /* fetch_add(cell, amount): a counter */
    PEAL_BUILTIN_COMPARE_SWAP, /* compare_swap(cell, expected, desired): a counter */
    PEAL_BUILTIN_FN,           /* an elementwise function: `fn` */
    PEAL_BUILTIN_OLD,          /* old(place), in an ensures: its value when the launch began */
    /* op(a, b, ...): a reduce parameter (`symbol`) or constant (`reduce`) */
    PEAL_BUILTIN_REDUCE,
    /* op(q in a .. b where c: value), in an ensures: `over`; the arguments are q, a, b, value, c */
    PEAL_BUILTIN_OVER
};

enum peal_slice_kind {
    PEAL_SLICE_ALL,   /* : */
    PEAL_SLICE_INDEX, /* a */
    PEAL_SLICE_RANGE, /* a +: len */
    PEAL_SLICE_PART   /* c of k */
};

struct peal_slice {
    enum peal_slice_kind kind;
    struct peal_expr *a; /* index, start or c */
    struct peal_expr *b; /* len or k */
};

enum {
    PEAL_MAX_SLICES = 2,
    PEAL_MAX_PARAMS = 64,
    PEAL_MAX_BACK = 15, /* wait ... at launch - back */
    /* Both limit the recursion of every pass over the tree, for any input. */
    PEAL_MAX_HEIGHT = 500, /* of an expression: also of a + b + c + ... */
    PEAL_MAX_NESTING = 200 /* of blocks and parentheses in a text */
};

/* The order that is written with an op on a cell or a fence, and whom it reaches. */
enum peal_written_order {
    PEAL_WRITTEN_NONE, /* that of its kind */
    PEAL_WRITTEN_RELAXED,
    PEAL_WRITTEN_ACQUIRE,
    PEAL_WRITTEN_RELEASE,
    PEAL_WRITTEN_ACQ_REL,
    PEAL_WRITTEN_FULL
};

struct peal_ordering {
    uint8_t order; /* enum peal_written_order */
    uint8_t scope; /* enum peal_scope */
};

/* "relaxed", ...; "" for PEAL_WRITTEN_NONE. "system", "device", "block". */
const char *peal_written_order_name(unsigned order);
const char *peal_scope_name(unsigned scope);

struct peal_expr {
    enum peal_expr_kind kind;
    struct peal_pos pos;
    struct peal_expr *next;     /* in an argument list */
    struct peal_type type;      /* deduced */
    int64_t value;              /* INT; LAUNCH: k; PORT: enum peal_port */
    double real;                /* FLOAT */
    const char *name;           /* NAME, CALL */
    struct peal_symbol *symbol; /* NAME, and CALL of a reduce parameter: deduced */
    enum peal_int_op op;        /* UNARY, BINARY */
    enum peal_builtin builtin;  /* CALL: deduced */
    enum peal_op_kind own;      /* CALL of an op with a function of its own: deduced */
    enum peal_fn fn; /* CALL of an elementwise function, UNARY and BINARY on data: deduced */
    enum peal_reduction reduce; /* CALL or NAME of a constant reduce operation: deduced */
    /* operand, base, or first argument; RECV: peer; PEEK: cell; PORT child: number */
    struct peal_expr *a;
    struct peal_expr *b; /* second operand; AT: peer; RECV: channel name or NULL */
    struct peal_slice slices[PEAL_MAX_SLICES];
    int nslices;
    bool in_slot;                  /* RECV */
    bool is_async;                 /* RECV: of a post */
    bool over;                     /* CALL: a reduction over a range of integers */
    struct peal_ordering ordering; /* CALL of fetch_add, compare_swap */
    uint16_t height; /* of the tree under this node, itself included; at most PEAL_MAX_HEIGHT */
};

/* A named thing of a kernel. */
enum peal_symbol_kind {
    PEAL_SYMBOL_BUFFER,  /* buffer parameter, window or private buffer */
    PEAL_SYMBOL_DIM,     /* a name first used in a parameter's shape; bound at instantiate */
    PEAL_SYMBOL_INT,     /* int parameter */
    PEAL_SYMBOL_INTS,    /* int array parameter */
    PEAL_SYMBOL_REDUCE,  /* op: reduce */
    PEAL_SYMBOL_LET,     /* let of an int, bool or launch number: never changes */
    PEAL_SYMBOL_VAR,     /* var: an int that may be assigned */
    PEAL_SYMBOL_LOOP,    /* for variable, lane variable */
    PEAL_SYMBOL_TILE,    /* let of a tile; may be assigned tiles of the same shape */
    PEAL_SYMBOL_COUNTER, /* let or var of a peek, fetch_add or compare_swap */
    PEAL_SYMBOL_SIGNAL,
    PEAL_SYMBOL_CHANNEL,
    PEAL_SYMBOL_BUILTIN /* rank nranks node ... row ... nchildren: `value` says which (enum
                           peal_special) */
};

enum peal_special {
    PEAL_RANK,
    PEAL_NRANKS,
    /* The placement: known everywhere, unless the kernel declares something of that name. */
    PEAL_NODE,
    PEAL_NODES,
    PEAL_SEAT,
    PEAL_SEATS,     /* of its own node */
    PEAL_MAX_SEATS, /* of the largest node */
    /* Known only in a kernel with a grid, or with a tree. */
    PEAL_ROW,
    PEAL_COL,
    PEAL_ROWS,
    PEAL_COLS,
    PEAL_NCHILDREN
};

enum peal_signal_mode {
    PEAL_MODE_ONE_WRITER,
    PEAL_MODE_SHARED,
    PEAL_MODE_RAW,
    PEAL_MODE_RAW_UNINITIALISED
};

enum peal_buffer_place { PEAL_PLACE_PARAM, PEAL_PLACE_WINDOW, PEAL_PLACE_PRIVATE };

struct peal_symbol {
    enum peal_symbol_kind kind;
    /* unique among the names visible at one place; buffers, signals and channels: within the
     * kernel */
    const char *name;
    struct peal_pos pos;      /* where it is declared */
    struct peal_symbol *next; /* all symbols of the kernel, in order of declaration */
    struct peal_type type;
    uint32_t slot; /* 0, 1, ... within the kernel: instantiate's environment index */
    /* buffers: rows and columns, or elements; signals and ints: cells or length, may be NULL */
    struct peal_expr *shape[2];
    enum peal_buffer_place place; /* buffers */
    /* buffer parameters: as written (0 = to be inferred), then inferred: 1 in, 2 out, 3 inout */
    unsigned dir;
    bool dir_written;
    unsigned
        effects;    /* buffer parameters: 1 read, 2 written by the body, including calls; deduced */
    bool is_window; /* buffer parameters: declared `window` */
    bool wide_written; /* tiles: declared `wide`; type.elem.wide is deduced from assignments */
    bool is_local;     /* int parameters: known on its own rank only */
    bool is_capacity;  /* int parameters: the same for launches of different counts */
    bool synthesised;  /* made by a pass, not by the author */
    bool is_var;       /* counters: declared by var, and may be fetched again */
    enum peal_signal_mode mode; /* signals */
    struct peal_expr *initial;  /* int parameters: the default if none is bound, or NULL */
    int64_t value;              /* BUILTIN: enum peal_special */
    /* tiles of a module that keeps lengths: "n", or "rows, cols"; NULL: not that simple */
    const char *lengths;
};

enum peal_stmt_kind {
    PEAL_STMT_DECL,       /* window, private, signal, channel: `symbol` (one statement per name) */
    PEAL_STMT_GRID,       /* grid a, b [torus] */
    PEAL_STMT_TREE,       /* tree a [from b] */
    PEAL_STMT_LET,        /* let symbol [: elem[shape]] = a */
    PEAL_STMT_VAR,        /* var symbol = a */
    PEAL_STMT_ASSIGN,     /* a = b: to a var, tile or buffer part */
    PEAL_STMT_ACCUMULATE, /* [exclusive] a op= b */
    PEAL_STMT_NOTIFY,     /* notify [ordering] a += b, or = b (`is_set`) */
    PEAL_STMT_WAIT,       /* wait [ordering] a >= b, or == b (`is_equal`) [at launch - back] */
    PEAL_STMT_SEND,       /* send a to b [on channel c] */
    PEAL_STMT_FREE,       /* free a: ends a recv_slot tile */
    /* let symbol: elem[shape] = recv_async ..., or b = recv_async ...: `a` is the recv */
    PEAL_STMT_POST,
    PEAL_STMT_AWAIT,     /* wait a [into b]: a was posted */
    PEAL_STMT_FLUSH,     /* flush to a: everything that this lane did to rank a has arrived there */
    PEAL_STMT_FENCE,     /* fence [ordering] */
    PEAL_STMT_FOR,       /* for symbol in a .. b [step c] { body } */
    PEAL_STMT_FOR_PEERS, /* for symbol in peers { body }: the other ranks, starting with rank + 1 */
    PEAL_STMT_IF,        /* if a { body } else { other } */
    PEAL_STMT_WHEN,      /* when a { body }: a compares a counter with an integer, at run time */
    PEAL_STMT_TAKE,      /* take [ordering] a from b to c */
    PEAL_STMT_ASSERT,    /* assert a, "message"; requires a (`required`) */
    PEAL_STMT_ENSURES,   /* ensures a == b [where c]; symbol: the index of all elements, or NULL */
    PEAL_STMT_LANE,      /* lane [block c] { body }, lane symbol in a .. b [block c] { body } */
    PEAL_STMT_CALL,      /* name(args): a composite or another kernel */
    /* body of an inlined call (`name`): one instance of cells that start at logical 0 */
    PEAL_STMT_SCOPE
};

struct peal_stmt {
    enum peal_stmt_kind kind;
    struct peal_pos pos;
    struct peal_stmt *next;
    struct peal_symbol *symbol; /* DECL, LET, VAR, FOR, LANE: what it declares */
    struct peal_expr *a, *b, *c;
    struct peal_stmt *body;
    struct peal_stmt *other; /* IF: else; an `else if` is an IF alone in here */
    const char *
        name; /* CALL, SCOPE: kernel; ASSERT: message, or what is required; ACCUMULATE: the reduce name */
    struct peal_expr *args;            /* CALL */
    struct peal_kernel *callee;        /* CALL: deduced */
    struct peal_symbol *reduce_symbol; /* ACCUMULATE with a reduce parameter: deduced */
    enum peal_reduction reduce;        /* ACCUMULATE otherwise: deduced */
    uint32_t back;                     /* WAIT */
    struct peal_ordering ordering; /* NOTIFY, WAIT, TAKE, FENCE; CALL of fetch_add, compare_swap */
    bool is_set, is_equal, exclusive, torus, required;
    bool typed; /* LET: the type was written; its shape is symbol->shape */
};

/* Has the op on a cell the order of its kind, for everyone? */
static inline bool peal_stmt_orders_fully(const struct peal_stmt *stmt)
{
    unsigned order = stmt->ordering.order;
    bool full = order == PEAL_WRITTEN_NONE ||
                (order == PEAL_WRITTEN_RELEASE && stmt->kind == PEAL_STMT_NOTIFY) ||
                (order == PEAL_WRITTEN_ACQUIRE && stmt->kind == PEAL_STMT_WAIT) ||
                (order == PEAL_WRITTEN_ACQ_REL && stmt->kind == PEAL_STMT_TAKE);
    return full && stmt->ordering.scope == PEAL_SCOPE_SYSTEM;
}

struct peal_kernel {
    const char *name;
    struct peal_pos pos;
    struct peal_kernel *next;
    const char *doc;        /* the comment directly above the kernel, "" if none */
    const char *implements; /* NULL = no contract */
    struct peal_pos implements_pos;
    struct peal_symbol *params[PEAL_MAX_PARAMS]; /* in order */
    int nparams;
    struct peal_symbol *symbols; /* all of them; deduce links and numbers them */
    uint32_t nslots;
    struct peal_stmt *body;
    /* The reductions that its module declares: PEAL_USER_REDUCTION + i is the i-th. Deduced. */
    const struct peal_formula *formulas;
    uint32_t nformulas;
    bool deduced; /* types and symbols are set */
    bool lowered; /* no calls are left */
    int period;   /* lcm of all `launch mod`; deduced */
};

/* reduce mine(a, b) [commutative] [associative] = expr */
struct peal_reduce_decl {
    const char *name;
    struct peal_pos pos;
    struct peal_reduce_decl *next;
    const char *doc;         /* as a kernel's */
    const char *operands[2]; /* the names of a and b */
    unsigned flags;          /* enum peal_formula_flags */
    struct peal_expr *value; /* not deduced like the expressions of kernels: see deduce_formula.c */
    struct peal_formula formula; /* deduced */
};

struct peal_module {
    struct peal_arena arena;
    struct peal_intern names;
    struct peal_kernel *kernels;         /* in order */
    struct peal_reduce_decl *reductions; /* in order: expr.reduce is PEAL_USER_REDUCTION + index */
    const struct peal_source *source;    /* of the text; borrowed, NULL for built modules */
    bool keeps_lengths;                  /* set before deduce: tiles get theirs as text */
};

/* The memory of a module never grows beyond this. */
#define PEAL_MODULE_LIMIT ((size_t)256 << 20)

/* NULL when out of memory. */
struct peal_module *peal_module_new(void);
void peal_module_free(struct peal_module *module);
/* NULL when there is none of that name. */
struct peal_kernel *peal_module_find(const struct peal_module *module, const char *name);
/* Does another kernel of the module call this one? After deduce. */
bool peal_module_calls(const struct peal_module *module, const struct peal_kernel *kernel);
const struct peal_reduce_decl *peal_module_find_reduction(const struct peal_module *module,
                                                          const char *name);

/* Nodes in the module's arena, zeroed except for what is given. NULL: out of memory. The name must
 * be interned in the module. */
struct peal_expr *peal_expr_new(struct peal_module *module, enum peal_expr_kind kind,
                                struct peal_pos pos);
struct peal_stmt *peal_stmt_new(struct peal_module *module, enum peal_stmt_kind kind,
                                struct peal_pos pos);
struct peal_symbol *peal_symbol_new(struct peal_module *module, enum peal_symbol_kind kind,
                                    const char *name, struct peal_pos pos);
/* A copy of the whole tree under expr, alone (next is NULL); names are shared. NULL: out of
 * memory. */
struct peal_expr *peal_expr_copy(struct peal_module *module, const struct peal_expr *expr);
/* Sets expr->height from its operands. False: the tree is higher than PEAL_MAX_HEIGHT. */
bool peal_expr_measure(struct peal_expr *expr);

/* Walks: `visit` gets every expression of an expression or statement (but not of its body),
 * operands first. */
typedef void peal_expr_visit(struct peal_expr *expr, void *context);
void peal_expr_walk(struct peal_expr *expr, peal_expr_visit *visit, void *context);
void peal_stmt_walk_exprs(struct peal_stmt *stmt, peal_expr_visit *visit, void *context);
/* The same for a kernel: its parameters, and its statements with their bodies. */
void peal_kernel_walk_exprs(const struct peal_kernel *kernel, peal_expr_visit *visit,
                            void *context);

#endif
