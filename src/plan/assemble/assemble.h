/* SPDX-License-Identifier: Apache-2.0 */
/* Assembles a plan. Used by instantiate, which appends ops as it makes them, and by tests that need
 * a plan without text, which call one function per op.
 *
 *   struct peal_assembler *a = peal_assembler_new(nranks, 0, nranks);
 *   uint32_t x = peal_assembler_buf(a, &(struct peal_buf_spec){.name = "x", ...});
 *   peal_assembler_rank_begin(a, 0); ... ops ...   peal_assembler_rank_begin(a, 1); ...
 *   status = peal_assembler_finish(a, diags, &plan);     frees the assembler in every case
 *   free(plan);
 *
 * Sticky: the first failure is kept, later calls do nothing, finish reports it. Ops go to the
 * current lane of the current rank. Ranks are begun in order.
 */
#ifndef PEAL_PLAN_ASSEMBLE_H
#define PEAL_PLAN_ASSEMBLE_H

#include "base/base.h"
#include "plan/format/effects.h"

struct peal_assembler;

struct peal_buf_spec {
    const char *name;
    enum peal_buf_kind kind;
    enum peal_buf_dir dir;
    enum peal_dtype dtype;
    uint32_t flags;
    uint32_t param; /* or PEAL_NONE */
    uint32_t alias; /* or PEAL_NONE */
    uint32_t cols;
    uint32_t lane;
    uint64_t len; /* elements, on every rank; peal_assembler_len changes it for one */
};

/* NULL: out of memory. rank_first and rank_count say which ranks' lanes the plan has. */
struct peal_assembler *peal_assembler_new(uint32_t nranks, uint32_t rank_first,
                                          uint32_t rank_count);
void peal_assembler_free(struct peal_assembler *a);

/* The header that finish copies. Set kernel, contract, dtype, reduce, root, grid and period (before
 * the first phase); finish fills in tables, sizes, hash and monotone. */
struct peal_plan *peal_assembler_header(struct peal_assembler *a);
uint32_t peal_assembler_string(struct peal_assembler *a, const char *text);

/* Is there a buffer of that name, or a tile of that lane? */
bool peal_assembler_has_name(const struct peal_assembler *a, const char *name, uint32_t lane);
uint32_t peal_assembler_buf(struct peal_assembler *a, const struct peal_buf_spec *spec);
void peal_assembler_len(struct peal_assembler *a, uint32_t rank, uint32_t buf, uint64_t len);
/* Makes the buffer at least this long on every rank. */
void peal_assembler_at_least(struct peal_assembler *a, uint32_t buf, uint64_t len);
uint32_t peal_assembler_signal(struct peal_assembler *a, const char *name,
                               enum peal_signal_kind kind, uint32_t cells);
/* The channel with this key, made if it is new. The send and recv ops record its lanes. */
uint32_t peal_assembler_channel(struct peal_assembler *a, const char *name, uint32_t sender,
                                uint32_t port, uint32_t receiver);
void peal_assembler_param(
    struct peal_assembler *a, const char *name, bool is_local, uint32_t count,
    const int64_t *values); /* local: count values for each of the plan's ranks */
/* Copies what another plan with the same buffers and ranks promises: its kernel's name, parameters,
 * contract, promises, type, reduction, root and flags. */
void peal_assembler_take_over(struct peal_assembler *a, const struct peal_plan *plan);
/* A term of the kernel's own contract; equal ones share a place. */
uint32_t peal_assembler_term(struct peal_assembler *a, const struct peal_promise_term *term);
/* A clause, the same for all ranks; found by its place in the text. pos: PEAL_NONE: none. */
uint32_t peal_assembler_clause(struct peal_assembler *a, bool requires, const char *text,
                               uint32_t pos);
/* One that continues the promise before it becomes part of that. */
void peal_assembler_promise(struct peal_assembler *a, const struct peal_promise *promise);
/* Adds a user-defined reduction: function PEAL_FN_USER, PEAL_FN_USER + 1, ...; at most
 * PEAL_FORMULAS. */
void peal_assembler_formula(struct peal_assembler *a, const struct peal_formula *formula);
/* Those added so far. Valid until the next one is added. */
const struct peal_formula *peal_assembler_formulas(const struct peal_assembler *a);
/* The node of every rank. */
void peal_assembler_placement(struct peal_assembler *a, const int64_t *nodes);
uint32_t peal_assembler_position(struct peal_assembler *a, struct peal_pos pos, uint32_t via);
/* `period` values; equal groups share a place. */
uint32_t peal_assembler_phases(struct peal_assembler *a, const uint64_t *values);

void peal_assembler_rank_begin(struct peal_assembler *a, uint32_t rank);
/* A rank has lane 0 from the start; this adds the next one and makes it current. */
void peal_assembler_lane_begin(struct peal_assembler *a);
/* The current lane belongs to a block of its rank. */
void peal_assembler_lane_block(struct peal_assembler *a, uint32_t block);
uint32_t peal_assembler_reg(struct peal_assembler *a); /* a new register of the current lane */

/* A ref to `offset` bytes into `buf` of `rank`. */
struct peal_ref peal_ref_make(uint32_t rank, uint32_t buf, enum peal_dtype dtype, uint64_t offset);
struct peal_ref peal_ref_const(double value, enum peal_dtype dtype);

void peal_assembler_copy(struct peal_assembler *a, struct peal_ref dst, struct peal_ref src,
                         uint32_t rows, uint64_t count);
void peal_assembler_compute(struct peal_assembler *a, enum peal_fn fn, struct peal_ref dst,
                            const struct peal_ref *src, uint32_t nsrc, uint32_t rows,
                            uint64_t count, uint32_t divisor);
void peal_assembler_accumulate(struct peal_assembler *a, enum peal_fn fn, struct peal_ref dst,
                               struct peal_ref src, uint32_t rows, uint64_t count, uint32_t flags);
/* The cell number of a signal's cell. The index may be past the signal's end: the verifier finds
 * that. */
uint32_t peal_assembler_cell(const struct peal_assembler *a, uint32_t signal, uint32_t index);
/* Cell `index` of `signal`, or with phases (not PEAL_NONE) the cell numbers in the phase table.
 * flags: PEAL_OP_SET, PEAL_OP_RELAXED, PEAL_OP_EQUAL, PEAL_OP_HAS_REG. */
void peal_assembler_notify(struct peal_assembler *a, uint32_t rank, uint32_t signal, uint32_t index,
                           uint32_t phases, int64_t value, uint32_t flags);
void peal_assembler_wait(struct peal_assembler *a, uint32_t signal, uint32_t index, uint32_t phases,
                         int64_t value, uint32_t flags);
void peal_assembler_peek(struct peal_assembler *a, uint32_t signal, uint32_t index, uint32_t phases,
                         uint16_t reg);
void peal_assembler_send(struct peal_assembler *a, uint32_t channel, struct peal_ref src,
                         uint32_t rows, uint64_t count);
void peal_assembler_recv(struct peal_assembler *a, uint32_t channel, struct peal_ref dst,
                         uint32_t rows, uint64_t count);
void peal_assembler_recv_slot(struct peal_assembler *a, uint32_t channel, enum peal_dtype dtype,
                              uint64_t count);
void peal_assembler_free_slot(struct peal_assembler *a, uint32_t channel);

/* In place: `part` is a part of `whole`. */
void peal_assembler_alias(struct peal_assembler *a, uint32_t part, uint32_t whole);
void peal_assembler_set_cols(struct peal_assembler *a, uint32_t buf, uint32_t cols);
/* Adds an op as declared. */
uint32_t peal_assembler_cols(const struct peal_assembler *a, uint32_t buf);
uint32_t peal_assembler_cells(const struct peal_assembler *a, uint32_t signal);
enum peal_signal_kind peal_assembler_signal_kind(const struct peal_assembler *a, uint32_t signal);

/* Adds an op of any kind with its refs, copied from another list. */
void peal_assembler_append(struct peal_assembler *a, const struct peal_op *op,
                           const struct peal_ref *refs);

/* Counts the sends and recvs among ops of the current lane that are not added. */
void peal_assembler_note_channels(struct peal_assembler *a, const struct peal_op *ops,
                                  uint64_t count);

/* The op added last, for members that the calls above do not set (sync.reg, sync.back). NULL after
 * a failure. */
struct peal_op *peal_assembler_last(struct peal_assembler *a);

/* Lets a one-writer cell have several writers, each with its own count, and one end of a channel
 * several lanes. These are faults for the verifier to find; without this call, finish rejects
 * them. */
void peal_assembler_allow_writers(struct peal_assembler *a);
/* Channel depth and slot size of every channel; slot_bytes 0 = the largest payload of the plan. */
void peal_assembler_channel_shape(struct peal_assembler *a, uint32_t depth, uint64_t slot_bytes);

/* Lays out scratch, computes one-writer counts, shared totals and the hash, and makes the block
 * (freed with free). PEAL_INVALID: a one-writer cell with several writers, a channel with two
 * sending lanes, ...; diags have messages with positions. Unequal numbers of sends and recvs are
 * for the verifier to find. Frees the assembler in every case. */
enum peal_status peal_assembler_finish(struct peal_assembler *a, struct peal_diags *diags,
                                       struct peal_plan **out);

#endif
