/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of syntax.h. */
#include "lang/syntax/syntax.h"

#include <assert.h>
#include <string.h>

static const struct peal_operator operators[PEAL_INT_OP_COUNT] = {
    [PEAL_INT_OROR] = {"or", 1}, [PEAL_INT_ANDAND] = {"and", 2}, [PEAL_INT_NOT] = {"not", 3},
    [PEAL_INT_EQ] = {"==", 4},   [PEAL_INT_NE] = {"!=", 4},      [PEAL_INT_LT] = {"<", 4},
    [PEAL_INT_LE] = {"<=", 4},   [PEAL_INT_GT] = {">", 4},       [PEAL_INT_GE] = {">=", 4},
    [PEAL_INT_OR] = {"|", 5},    [PEAL_INT_XOR] = {"^", 6},      [PEAL_INT_AND] = {"&", 7},
    [PEAL_INT_SHL] = {"<<", 8},  [PEAL_INT_SHR] = {">>", 8},     [PEAL_INT_ADD] = {"+", 9},
    [PEAL_INT_SUB] = {"-", 9},   [PEAL_INT_MUL] = {"*", 10},     [PEAL_INT_DIV] = {"/", 10},
    [PEAL_INT_MOD] = {"%", 10},  [PEAL_INT_NEG] = {"-", 11},
};

static const char *const ports[] = {
    [PEAL_PORT_N] = "N", [PEAL_PORT_S] = "S",           [PEAL_PORT_E] = "E",
    [PEAL_PORT_W] = "W", [PEAL_PORT_PARENT] = "parent", [PEAL_PORT_CHILD] = "child",
};

const struct peal_operator *peal_operator(enum peal_int_op op)
{
    assert((unsigned)op < PEAL_INT_OP_COUNT);
    return &operators[op];
}

const char *peal_port_name(enum peal_port port)
{
    assert(port > PEAL_PORT_PEER && port <= PEAL_PORT_CHILD);
    return ports[port];
}

int peal_port_find(const char *name, size_t len)
{
    for (int i = PEAL_PORT_N; i <= PEAL_PORT_CHILD; i++) {
        if (strlen(ports[i]) == len && memcmp(ports[i], name, len) == 0)
            return i;
    }
    return -1;
}
