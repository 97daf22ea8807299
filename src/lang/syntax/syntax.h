/* SPDX-License-Identifier: Apache-2.0 */
/* What parser and printer must agree on: operators with their levels, names of ports.
 *
 *   lex.h    text -> tokens
 *   parse.h  tokens -> tree: parse.c (kernels, parameters), parse_stmt.c, parse_expr.c,
 *            parse_hint.c (what was probably meant)
 *   print.h  tree -> canonical text: print.c, print_expr.c
 */
#ifndef PEAL_LANG_SYNTAX_H
#define PEAL_LANG_SYNTAX_H

#include "lang/tree/module.h"

struct peal_operator {
    const char *text;
    int level; /* a higher one binds tighter */
};

/* Levels that belong to no operator. */
enum { PEAL_LEVEL_LOOSEST = 0, PEAL_LEVEL_POSTFIX = 12 };

/* op must be below PEAL_INT_OP_COUNT. */
const struct peal_operator *peal_operator(enum peal_int_op op);

/* N S E W parent child; PEAL_PORT_PEER has no name. */
const char *peal_port_name(enum peal_port port);
/* -1 when there is no port of that name. */
int peal_port_find(const char *name, size_t len);

#endif
