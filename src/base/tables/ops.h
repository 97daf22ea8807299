/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations (ops.def) as C. */
#ifndef PEAL_BASE_OPS_H
#define PEAL_BASE_OPS_H

enum peal_op_kind {
#define OP(NAME, name, dst, src, cell, channel, order, syntax, meaning) PEAL_OP_##NAME,
#include "base/tables/ops.def"
    PEAL_OP_KIND_COUNT
};

enum peal_effect { PEAL_EFFECT_NONE, PEAL_EFFECT_READ, PEAL_EFFECT_WRITE, PEAL_EFFECT_UPDATE };
enum peal_order { PEAL_ORDER_NONE, PEAL_ORDER_RELEASE, PEAL_ORDER_ACQUIRE, PEAL_ORDER_BOTH };

struct peal_op_info {
    const char *name; /* lower case: "copy", "recv_slot" */
    enum peal_effect dst, src, cell, channel;
    enum peal_order order;
    const char *syntax;
    const char *meaning;
};

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

/* The row of a kind; kind must be below PEAL_OP_KIND_COUNT. */
const struct peal_op_info *peal_op_info(enum peal_op_kind kind);

#endif
