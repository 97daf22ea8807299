/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations (ops.def) as C. What one op of a plan does, with its operands and flags, is in
 * plan/format/effects.h. */
#ifndef PEAL_BASE_OPS_H
#define PEAL_BASE_OPS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum peal_op_kind {
#define OP(NAME, ...) PEAL_OP_##NAME,
#include "base/tables/ops.def"
    PEAL_OP_KIND_COUNT
};

enum peal_op_form {
    PEAL_FORM_DATA,
    PEAL_FORM_CELL,
    PEAL_FORM_CHANNEL,
    PEAL_FORM_FLUSH,
    PEAL_FORM_WHEN,
    PEAL_FORM_END,
    PEAL_FORM_FENCE,
    PEAL_FORM_NUMBER
};
enum peal_op_work { PEAL_WORK_NONE, PEAL_WORK_MOVE, PEAL_WORK_FN, PEAL_WORK_OWN };
enum peal_op_shape { PEAL_BY_NONE, PEAL_BY_EACH, PEAL_BY_MATRIX };
enum peal_op_reach { PEAL_REACHES_NONE, PEAL_REACHES_ANY, PEAL_REACHES_OWN };
enum { PEAL_SOURCES_MANY = 255 };

/* Effects, orders and uses of cells and channels are sets of bits. */
enum peal_effect {
    PEAL_EFFECT_NONE = 0,
    PEAL_EFFECT_READ = 1,
    PEAL_EFFECT_WRITE = 2,
    PEAL_EFFECT_UPDATE = PEAL_EFFECT_READ | PEAL_EFFECT_WRITE
};
enum peal_cell_use {
    PEAL_CELL_NONE = PEAL_EFFECT_NONE,
    PEAL_CELL_READ = PEAL_EFFECT_READ,
    PEAL_CELL_WRITE = PEAL_EFFECT_WRITE,
    PEAL_CELL_ADD = PEAL_EFFECT_UPDATE | 4,
    PEAL_CELL_SWAP = PEAL_EFFECT_UPDATE | 8
};
enum peal_order {
    PEAL_ORDER_NONE = 0,
    PEAL_ORDER_ACQUIRE = 1,
    PEAL_ORDER_RELEASE = 2,
    PEAL_ORDER_BOTH = PEAL_ORDER_ACQUIRE | PEAL_ORDER_RELEASE
};
/* Which lanes an order reaches: those of the lane's block, of its rank, all. */
enum peal_scope { PEAL_SCOPE_SYSTEM, PEAL_SCOPE_DEVICE, PEAL_SCOPE_BLOCK };
enum peal_channel_use {
    PEAL_CHANNEL_NONE = 0,
    PEAL_CHANNEL_SEND = 1,
    PEAL_CHANNEL_HOLD = 2,
    PEAL_CHANNEL_FREE = 4,
    PEAL_CHANNEL_RECEIVE = PEAL_CHANNEL_HOLD | PEAL_CHANNEL_FREE
};

/* The columns of a row that code asks about; all but the numbers and `blocks` are values of the enums above. */
struct peal_op_facts {
    _Alignas(16) uint8_t form;
    uint8_t work, shape;
    uint8_t dst, src;
    uint8_t sources; /* PEAL_SOURCES_MANY: one or more */
    uint8_t masks;   /* of the sources */
    uint8_t reach;
    uint8_t cell, channel;
    uint8_t order;
    bool blocks;
};

struct peal_op_info {
    const char *name; /* lower case: "copy", "recv_slot" */
    const char *syntax;
    const char *meaning;
};

/* By kind. peal_op_facts() checks the kind; loops over ops that were checked use the table. */
extern const struct peal_op_facts peal_op_rows[PEAL_OP_KIND_COUNT];

static inline const struct peal_op_facts *peal_op_facts(enum peal_op_kind kind)
{
    assert((unsigned)kind < PEAL_OP_KIND_COUNT);
    return &peal_op_rows[kind];
}

/* The port by which a channel leaves its sender; a channel is (name, sender, port, receiver). */
enum peal_port {
    PEAL_PORT_PEER, /* by peer expression */
    PEAL_PORT_N,
    PEAL_PORT_S,
    PEAL_PORT_E,
    PEAL_PORT_W,
    PEAL_PORT_PARENT,
    PEAL_PORT_CHILD /* + child number */
};

/* The texts of a kind; kind must be below PEAL_OP_KIND_COUNT. */
const struct peal_op_info *peal_op_info(enum peal_op_kind kind);

#endif
