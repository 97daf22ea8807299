/* SPDX-License-Identifier: Apache-2.0 */
/* ops.def as an array. */
#include "base/tables/ops.h"

#include <assert.h>

static const struct peal_op_info table[] = {
#define OP(NAME, name, dst, src, cell, channel, order, syntax, meaning)                            \
    {name,                                                                                         \
     PEAL_EFFECT_##dst,                                                                            \
     PEAL_EFFECT_##src,                                                                            \
     PEAL_EFFECT_##cell,                                                                           \
     PEAL_EFFECT_##channel,                                                                        \
     PEAL_ORDER_##order,                                                                           \
     syntax,                                                                                       \
     meaning},
#include "base/tables/ops.def"
};

const struct peal_op_info *peal_op_info(enum peal_op_kind kind)
{
    assert((unsigned)kind < PEAL_OP_KIND_COUNT);
    return &table[kind];
}
