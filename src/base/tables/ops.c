/* SPDX-License-Identifier: Apache-2.0 */
/* ops.def as arrays. */
#include "base/tables/ops.h"

#define NO false
#define YES true
#define MANY PEAL_SOURCES_MANY
const struct peal_op_facts peal_op_rows[PEAL_OP_KIND_COUNT] = {
#define OP(NAME, name, form, work, shape, dst, src, sources, masks, reach, cell, channel, order,   \
           blocks, syntax, meaning)                                                                \
    {PEAL_FORM_##form,                                                                             \
     PEAL_WORK_##work,                                                                             \
     PEAL_BY_##shape,                                                                              \
     PEAL_EFFECT_##dst,                                                                            \
     PEAL_EFFECT_##src,                                                                            \
     sources,                                                                                      \
     masks,                                                                                        \
     PEAL_REACHES_##reach,                                                                         \
     PEAL_CELL_##cell,                                                                             \
     PEAL_CHANNEL_##channel,                                                                       \
     PEAL_ORDER_##order,                                                                           \
     blocks},
#include "base/tables/ops.def"
};

static const struct peal_op_info texts[PEAL_OP_KIND_COUNT] = {
#define OP(NAME, name, form, work, shape, dst, src, sources, masks, reach, cell, channel, order,   \
           blocks, syntax, meaning)                                                                \
    {name, syntax, meaning},
#include "base/tables/ops.def"
};

/* The columns of a row agree with each other. */
#define OP(NAME, name, form, work, shape, dst, src, sources, masks, reach, cell, channel, order,   \
           blocks, syntax, meaning)                                                                \
    static_assert((PEAL_FORM_##form == PEAL_FORM_CELL) == (PEAL_CELL_##cell != PEAL_CELL_NONE) &&  \
                      (PEAL_FORM_##form == PEAL_FORM_CHANNEL) ==                                   \
                          (PEAL_CHANNEL_##channel != PEAL_CHANNEL_NONE),                           \
                  name ": a form has its cell or channel");                                        \
    static_assert((PEAL_EFFECT_##src == PEAL_EFFECT_NONE) == ((sources) == 0),                     \
                  name ": sources are read");                                                      \
    static_assert(PEAL_FORM_##form != PEAL_FORM_DATA || PEAL_EFFECT_##dst != PEAL_EFFECT_NONE,     \
                  name ": an op on data has a destination");
#include "base/tables/ops.def"

const struct peal_op_info *peal_op_info(enum peal_op_kind kind)
{
    assert((unsigned)kind < PEAL_OP_KIND_COUNT);
    return &texts[kind];
}
