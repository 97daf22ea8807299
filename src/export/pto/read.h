/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of emitted kernels, shared by its files. */
#ifndef PEAL_EXPORT_PTO_READ_H
#define PEAL_EXPORT_PTO_READ_H

#include "export/pto/pto.h"

enum { NO_WRITER = -1, SEVERAL_WRITERS = -2 };

struct pto_read_channel {
    uint64_t sender, receiver, full, free, depth, messages, slots, slot;
    uint64_t sent, taken, given; /* so far */
    uint32_t number;             /* in the plan */
    PEAL_VEC(uint64_t) counts;   /* elements of each message */
};

struct pto_reader {
    const struct peal_plan *like;
    struct peal_diags *diags;
    struct peal_assembler *a;
    struct peal_source source; /* the kernel */
    const char *at;            /* in a line */
    const char *line_begin, *line_end;
    uint32_t line;
    uint64_t ranks, blocks, period, data, window; /* of the header */
    uint64_t *starts;                             /* [buf] */
    uint32_t cells;
    int64_t *totals;  /* [(rank * cells + cell) * period + phase] */
    int64_t *writer;  /* [rank * cells + cell]: rank * blocks + block, or one of the above */
    bool *of_channel; /* [cell] */
    uint32_t *signal, *index; /* [cell] in the plan */
    PEAL_VEC(struct pto_read_channel) channels;
    PEAL_VEC(struct peal_ref) refs;
    uint32_t rank, block;
    bool making; /* the second pass */
    bool failed;
};

/* Reports what is wrong at this place; only the first time. */
void peal_pto_fail(struct pto_reader *r, const char *why);
/* Is this what comes next in the line? Then it is skipped. */
bool peal_pto_next_is(struct pto_reader *r, const char *text);
void peal_pto_expect(struct pto_reader *r, const char *text);
uint64_t peal_pto_number(struct pto_reader *r);
/* A number below `limit`; 0 after a failure. */
uint64_t peal_pto_below(struct pto_reader *r, uint64_t limit);
/* The next line of a text. False: there is none. */
bool peal_pto_next_line(struct pto_reader *r, const char **text);

static inline uint64_t peal_pto_cell_at(const struct pto_reader *r, uint64_t rank, uint64_t cell)
{
    return rank * r->cells + cell;
}

/* All blocks of the kernel: counts what is added to cells or, when `making`, appends ops. */
void peal_pto_read_blocks(struct pto_reader *r, const char *text);

#endif
