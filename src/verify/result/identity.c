/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that are equal to a simpler one in every bit, whatever the inputs are.
 *
 * Only what is exact for the type is used: a * 1, a / 1, -(-a) and maximum(a, a) are a for numbers
 * of every kind, infinities, -0 and NaN included (a NaN stays a NaN). a + 0 is a for integers; for
 * floating point it is not: -0 + 0 is 0, so there only a + -0 and a - 0 are a. Complex products by
 * 1 are not either: the zero imaginary part meets infinities.
 */
#include "verify/result/value.h"

#include "base/base.h"

#include <math.h>
#include <string.h>

static const struct node *node_at(const struct values *v, uint32_t node)
{
    return &v->nodes.at[node];
}

/* Is it this number? Of two zeros, with the same sign unless integers are meant. */
static bool is_number(const struct values *v, uint32_t node, double number, bool integer)
{
    const struct node *n = node_at(v, node);
    double value;
    if (n->kind != NODE_CONST)
        return false;
    memcpy(&value, &n->word, sizeof value);
    return value == number && (integer || !signbit(value) == !signbit(number));
}

/* The operand that the function leaves as it is, because the other one is neutral; NO_NODE:
 * neither. */
static uint32_t without_neutral(const struct values *v, const struct node *n, bool integer)
{
    uint32_t a = n->child[0], b = n->child[1];
    switch ((enum peal_fn)n->fn) {
    case PEAL_FN_MUL:
        if (is_number(v, a, 1, integer))
            return b;
        return is_number(v, b, 1, integer) ? a : NO_NODE;
    case PEAL_FN_DIV:
        return is_number(v, b, 1, integer) ? a : NO_NODE;
    case PEAL_FN_ADD:
        if (is_number(v, a, -0.0, integer))
            return b;
        return is_number(v, b, -0.0, integer) ? a : NO_NODE;
    case PEAL_FN_SUB:
        return is_number(v, b, 0, integer) ? a : NO_NODE;
    case PEAL_FN_OR:
    case PEAL_FN_XOR:
        if (is_number(v, a, 0, true))
            return b;
        return is_number(v, b, 0, true) ? a : NO_NODE;
    default:
        return NO_NODE;
    }
}

static bool takes_the_same_twice(enum peal_fn fn)
{
    return fn == PEAL_FN_MAXIMUM || fn == PEAL_FN_MINIMUM || fn == PEAL_FN_AND ||
           fn == PEAL_FN_OR || fn == PEAL_FN_MINLOC || fn == PEAL_FN_MAXLOC;
}

uint32_t peal_value_simplify(const struct values *v, const struct node *n)
{
    enum peal_dtype dtype = (enum peal_dtype)n->dtype;
    uint32_t same = NO_NODE;
    if (n->kind != NODE_FN || n->fn >= PEAL_FN_COUNT)
        return NO_NODE;
    if (n->nchildren == 2 && n->child[0] == n->child[1] && takes_the_same_twice(n->fn))
        same = n->child[0];
    bool number = !peal_dtype_is_record(dtype);
    if (same == NO_NODE && n->nchildren == 2 && number)
        same = without_neutral(v, n, !peal_dtype_is_float(dtype));
    if (n->fn == PEAL_FN_NEG) {
        const struct node *inner = node_at(v, n->child[0]);
        if (inner->kind == NODE_FN && inner->fn == PEAL_FN_NEG && inner->dtype == n->dtype)
            same = inner->child[0];
    }
    /* An operand that the function would round first is not left as it is. */
    if (same == NO_NODE || !peal_value_fits((enum peal_dtype)node_at(v, same)->holds, dtype))
        return NO_NODE;
    return same;
}
