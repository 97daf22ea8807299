/* SPDX-License-Identifier: Apache-2.0 */
/* pto: a plan as a pto-isa kernel in C++, with the code that starts it and a driver that checks it.
 *
 *   window.c   where cells, buffers and slots of channels are in a rank's window
 *   kernel.c   the ops of every rank and block, one line each
 *   header.c   the constants that the emitted files share
 *   read.c     the emitted text back into a plan, to be verified
 *   text/      what is the same in every kernel: the operations, the start of a launch, the driver
 *
 * Cells are counters that no launch resets: a wait for v waits for v plus what all earlier launches
 * added. Blocks are lanes. A channel is a ring of slots at the receiver and two cells.
 */
#ifndef PEAL_EXPORT_PTO_H
#define PEAL_EXPORT_PTO_H

#include "export/writer.h"

enum { PTO_TILE = 1024, PTO_LINE = 64, PTO_MAX_OPS = 50000, PTO_MAX_BLOCKS = 64 };

struct pto_channel {
    uint32_t full, free;  /* cells: of the receiver, of the sender */
    uint64_t slots, slot; /* elements: where the first slot is, how long each is */
};

/* Elements are counted from the end of the cells, which come first. */
struct pto_window {
    const struct peal_plan *plan;
    uint64_t *start;              /* [buf] */
    struct pto_channel *channels; /* [channel] */
    int64_t *totals;   /* [(rank * cells of the plan + cell) * period + phase]: added by a launch */
    uint32_t cells;    /* including those of channels */
    uint32_t blocks;   /* the largest number of any rank */
    uint64_t elements; /* of all buffers and slots */
    int64_t launches;  /* before a 32-bit cell could overflow */
};

/* False: refused, and diags say why. Release it in every case. */
bool peal_pto_window_init(const struct peal_plan *plan, struct peal_diags *diags,
                          struct pto_window *out);
void peal_pto_window_release(struct pto_window *window);
int64_t peal_pto_total(const struct pto_window *window, uint32_t rank, uint32_t cell,
                       uint32_t phase);

/* The name of a buffer in the emitted text: unique, an identifier. */
void peal_pto_buf_name(const struct peal_plan *plan, uint32_t buf, struct peal_text *out);
/* The type's name in C++. NULL: the engine does not compute with it. */
const char *peal_pto_type(enum peal_dtype dtype);

/* False: refused, and diags say why. */
bool peal_pto_kernel(const struct pto_window *window, const char *name, struct peal_diags *diags,
                     struct peal_text *out);
void peal_pto_header(const struct pto_window *window, const char *name, bool closed,
                     struct peal_text *out);
/* A text of text/ with its name filled in. */
void peal_pto_text(const char *file, const char *name, struct peal_text *out);

/* The emitted header and kernel as a plan, with the contract of `like`. PEAL_INVALID: diags say
 * why. */
enum peal_status peal_pto_read(const char *header, const char *kernel, const char *name,
                               const struct peal_plan *like, struct peal_diags *diags,
                               struct peal_plan **out);

/* The files of text/; made by the build. */
extern const struct peal_source peal_pto_texts[];
extern const size_t peal_pto_text_count;

#endif
