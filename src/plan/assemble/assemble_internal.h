/* SPDX-License-Identifier: Apache-2.0 */
/* The assembler's state, shared by assemble.c (ops), assemble_tables.c (what ops
 * name) and finish.c (checking and laying out). */
#ifndef PEAL_PLAN_ASSEMBLE_INTERNAL_H
#define PEAL_PLAN_ASSEMBLE_INTERNAL_H

#include "plan/assemble/assemble.h"

struct own_len {
    uint32_t rank, buf;
    uint64_t len;
};

struct peal_assembler {
    struct peal_plan header;
    enum peal_status status; /* sticky */
    const char *why;         /* when status is PEAL_INVALID: a static text */
    uint32_t rank, lane;     /* current; lane within the rank */
    uint32_t depth;
    uint64_t slot_bytes;
    bool many_writers; /* see peal_assembler_allow_writers */
    PEAL_VEC(struct peal_rank_part) ranks;
    PEAL_VEC(struct peal_lane) lanes;
    PEAL_VEC(struct peal_op) ops;
    PEAL_VEC(struct peal_ref) refs;
    PEAL_VEC(struct peal_buf) bufs;
    PEAL_VEC(uint64_t) lens; /* by buf, for all ranks that have no other length in own_lens */
    PEAL_VEC(struct own_len) own_lens;
    PEAL_VEC(struct peal_signal) signals;
    PEAL_VEC(int64_t) totals;
    PEAL_VEC(struct peal_channel) channels;
    PEAL_VEC(uint64_t) phases;
    PEAL_VEC(struct peal_param) params;
    PEAL_VEC(int64_t) values;
    PEAL_VEC(struct peal_formula) formulas;
    PEAL_VEC(struct peal_promise_term) terms;
    PEAL_VEC(struct peal_promise) promises;
    PEAL_VEC(struct peal_clause) clauses;
    PEAL_VEC(struct peal_position) positions;
    PEAL_VEC(const struct peal_source *) sources; /* one per position, for diagnostics */
    PEAL_VEC(char) strings;
    struct peal_index string_index, channel_index, position_index, phase_index, term_index;
};

void peal_assembler_fail(struct peal_assembler *a, enum peal_status status, const char *why);
void peal_assembler_no_memory(struct peal_assembler *a);

/* Pushes, or makes the assembler fail. */
#define PUSH(a, table, value)                                                                      \
    do {                                                                                           \
        if (!peal_vec_push(&(a)->table, (value)))                                                  \
            peal_assembler_no_memory(a);                                                           \
    } while (0)

#endif
