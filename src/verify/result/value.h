/* SPDX-License-Identifier: Apache-2.0 */
/* What memory holds, as trees over the inputs.
 *
 * Nodes are hash-consed: equal trees have equal numbers. A node is a function of an index: INPUT
 * gives element index + delta of a rank's parameter. A range of memory holds a node and the index
 * of its first element, so that a million equal sums are one entry. The operands of a two-operand
 * node that commutes in every bit are sorted, so equal numbers mean equal bits.
 */
#ifndef PEAL_VERIFY_VALUE_H
#define PEAL_VERIFY_VALUE_H

#include "verify/program/program.h"

enum node_kind {
    NODE_UNDEFINED,
    NODE_CONST,   /* word: the bits of a double; child[0] 1: memory that the caller zeroed */
    NODE_INPUT,   /* launch, rank, memory; word: delta */
    NODE_FN,      /* fn of up to three children, in the precision of dtype */
    NODE_CHANCE,  /* fn of two children, by accumulates in an arbitrary order; word: location */
    NODE_CONVERT, /* rounds its child to dtype */
    NODE_DIVIDE,  /* its child divided by word */
    NODE_OPAQUE,  /* a function of more than one index (softmax); word: a unique number;
                     child[1], child[2]: by how much the index is moved, lower half first */
    NODE_OWN,     /* the function of an op of its own (enum peal_op_kind fn) of its children */
    NODE_AT       /* its child at index `word`, whatever the index is: a factor of a matmul's row */
};

#define NO_NODE UINT32_MAX

struct node {
    uint8_t kind, fn, dtype, nchildren;
    uint32_t child[3]; /* INPUT: launch, rank, memory */
    uint64_t word;
    uint32_t height; /* at most MAX_HEIGHT: trees are walked recursively */
    uint8_t holds; /* a type that all its values fit: the dtype, or a narrower one (see value.c) */
    bool uniform;  /* does not depend on the index */
    bool unknown;  /* depends on PEAL_PLAN_UNKNOWN */
};

enum { MAX_HEIGHT = 20000 };

/* Trees share common parts, so a tree of a few nodes may have more paths than can be walked: code
 * that walks one must remember what it has visited. */
struct values {
    PEAL_VEC(struct node) nodes;
    struct peal_index index; /* of nodes */
    struct moved *moved;     /* results of recent moves */
    bool failed;
    bool as_written; /* trees are not simplified */
    uint64_t max_nodes;
};

void peal_values_init(struct values *v, uint64_t max_nodes);
void peal_values_release(struct values *v);
/* The node, or an older one that is equal to it in every bit. NO_NODE after a failure. */
uint32_t peal_value_make(struct values *v, struct node node);
uint32_t peal_value_input(struct values *v, uint32_t launch, uint32_t rank, uint32_t memory,
                          enum peal_dtype dtype);
/* identity.c: the child, or grandchild, that a node is equal to in every bit; NO_NODE: none. */
uint32_t peal_value_simplify(const struct values *v, const struct node *node);
/* Can every value of `from` be held by `to`? */
bool peal_value_fits(enum peal_dtype from, enum peal_dtype to);
/* Rounds to dtype where that can change a bit. */
uint32_t peal_value_convert(struct values *v, uint32_t node, enum peal_dtype dtype);
/* Its value at that index, as a node that does not depend on the index. */
uint32_t peal_value_at(struct values *v, uint32_t node, uint64_t index);
/* The same function at index + delta. */
uint32_t peal_value_move(struct values *v, uint32_t node, int64_t delta);
static inline bool peal_value_is_uniform(const struct values *v, uint32_t node)
{
    return v->nodes.at[node].uniform;
}

/* A range of memory: elements lo..hi hold `node` at index, index + 1, ... */
struct piece {
    uint64_t lo, hi;
    uint64_t index;
    uint32_t node;
};

struct pieces {
    PEAL_VEC(struct piece) list; /* sorted, without gaps */
    size_t last;                 /* where the last one was found; the next one is usually near it */
};

/* The piece that holds element e; the list must cover it. */
const struct piece *peal_pieces_find(struct pieces *pieces, uint64_t e);
/* Replaces [with[0].lo, with[n-1].hi) by `with`, and joins neighbours that continue each other.
 * False: out of memory. */
bool peal_pieces_put(struct pieces *pieces, const struct values *v, const struct piece *with,
                     size_t n);

/* "x@0[5] + x@1[5]" */
void peal_value_print(const struct values *v, const struct program *p, uint32_t node,
                      uint64_t index, struct peal_text *out);
/* Are they, operand by operand, of one form and ranks, whatever the launch and memory? Then their
 * orders are equal; those of other trees may be too. */
bool peal_value_alike(const struct values *v, uint32_t a, uint32_t b);
/* The tree's form and ranks, without launch and memory. False: out of memory. */
bool peal_value_order(const struct values *v, uint32_t node, struct peal_digest *out);

#endif
