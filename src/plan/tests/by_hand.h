/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: buffers of plans that are assembled by hand. */
#ifndef PEAL_PLAN_BY_HAND_H
#define PEAL_PLAN_BY_HAND_H

#include "plan/plan.h"

/* The parameter x (PEAL_DIR_IN) or y (PEAL_DIR_OUT). */
static inline uint32_t by_hand_param(struct peal_assembler *a, enum peal_buf_dir dir,
                                     enum peal_dtype dtype, uint64_t len)
{
    bool is_input = dir == PEAL_DIR_IN;
    return peal_assembler_buf(a, &(struct peal_buf_spec){.name = is_input ? "x" : "y",
                                                         .kind = PEAL_BUF_PARAM,
                                                         .dir = dir,
                                                         .dtype = dtype,
                                                         .param = !is_input,
                                                         .alias = PEAL_NONE,
                                                         .len = len});
}

/* A window, private memory or a tile. */
static inline uint32_t by_hand_scratch(struct peal_assembler *a, const char *name,
                                       enum peal_buf_kind kind, enum peal_dtype dtype, uint64_t len)
{
    return peal_assembler_buf(a, &(struct peal_buf_spec){.name = name,
                                                         .kind = kind,
                                                         .dtype = dtype,
                                                         .param = PEAL_NONE,
                                                         .alias = PEAL_NONE,
                                                         .len = len});
}

#endif
