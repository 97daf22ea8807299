/* SPDX-License-Identifier: Apache-2.0 */
/* How an MSCCL++ plan becomes a plan of Peal. Internal to this folder.
 *
 *   thread block        up to three lanes: its data threads, the threads that signal and wait, and
 *                       the proxy that executes what is given to port channels
 *   nop                 joins the first two: without one between a wait and a put, nothing orders
 *                       the put's threads after the waiting one
 *   barrier             a shared cell that all its blocks add to and wait for, between two joins
 *   channel             a cell of the receiver; the k-th channel A->B of a type belongs to the k-th
 *                       B->A. The executor's counts continue over launches: if a launch signals as
 *                       often as it waits, that is a cell that is 0 at every launch; if it signals
 *                       more often, it is a raw cell from which waits take
 *   packets             data with a flag: a cell for each range of the scratch buffer between two
 *                       cuts of packet accesses, set by writers, waited for by readers
 *   double scratch      a launch period of two; the second half begins where the scratch of the
 *                       *executing* rank ends, even in a peer's buffer
 *   relaxed signal      at the start of a block, it publishes what was there before the kernel
 *                       began, like the start of a kernel; elsewhere it orders nothing
 *   switch channel      reduce over all ranks, in the order of the hardware: an unordered compute
 *
 * scan.c counts the cells that are needed, make.c declares them and walks the ops, make_op.c emits
 * the ops.
 */
#ifndef PEAL_IMPORT_MSCCLPP_MAKER_H
#define PEAL_IMPORT_MSCCLPP_MAKER_H

#include "import/mscclpp/mscclpp.h"

enum mpp_lane { LANE_DATA = 1, LANE_SYNC = 2, LANE_PROXY = 4 };
enum cell_class { CLASS_ONE_WRITER, CLASS_SHARED, CLASS_RAW, CLASSES };

/* The receiving end of a channel. */
struct mpp_inbound {
    uint32_t signals, waits; /* per launch */
    uint32_t starts;         /* relaxed signals while their block was fresh */
    uint32_t writer, waiter; /* lane + 1 of any rank, block + 1; 0 = none */
    bool many_writers;
    uint8_t cell_class;
    uint32_t cell;   /* in the signal of its class */
    uint32_t waited; /* while ops are emitted */
};

struct mpp_semaphore {
    uint32_t acquires, releases, acquirer, acquired;
    const struct mscclpp_op *op; /* the first that uses it */
};

struct mpp_slice {
    uint64_t first, count; /* elements */
};

struct mpp_maker {
    const struct peal_import *import;
    const struct mscclpp_plan *plan;
    const struct peal_import_options *options;
    struct peal_diags *diags;
    struct peal_assembler *a;
    struct peal_import_bufs bufs;
    uint64_t *chunk; /* [rank] elements */
    uint64_t size;   /* bytes of an element */
    uint32_t scratch, packets;
    uint32_t signals[CLASSES], join, go, back, bar, sem, pkt;
    struct mpp_inbound *inbound[MPP_CHANNEL_TYPES]; /* memory, port: all ranks', see first */
    uint32_t *first[MPP_CHANNEL_TYPES];             /* [rank] in inbound */
    uint32_t *pair[MPP_CHANNEL_TYPES];              /* [inbound] the other end, or PEAL_NONE */
    struct mpp_semaphore *semaphores;               /* of all ranks */
    uint32_t *first_semaphore;
    struct mpp_cuts {
        PEAL_VEC(uint64_t) at;           /* sorted elements of the packet buffer */
        uint64_t plain[2], packed[2];    /* bytes of scratch in use: from, to; equal = none */
        const struct mscclpp_op *packer; /* the first op with packets there */
    } * cuts;                            /* [rank] */
    bool remote_input, remote_output, writes_input;
    uint32_t max_tbs, nbarriers, max_semaphores, cells[CLASSES];

    /* The op being scanned or emitted. */
    uint32_t rank, tb;
    uint32_t lanes, lane; /* of the block: all, and the current one (or several in one) */
    uint32_t lane_number; /* over all ranks, of the block's first lane */
    const struct mscclpp_op *op;
    /* bytes: the position of the pipeline, and how much it handles at once */
    uint64_t offset, unit;
    bool fresh; /* the block's signalling threads have only signalled so far */
    uint32_t joins, triggers, flushes;
    uint32_t *barrier_uses;
    uint32_t pos;
    uint64_t emitted;
    bool failed; /* reported in diags, or out of memory */
    enum peal_status status;
};

void peal_mpp_fail(struct mpp_maker *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Calls visit for every op of the block, with pipelines unrolled. */
void peal_mpp_walk(struct mpp_maker *m, const struct mscclpp_tb *tb,
                   void (*visit)(struct mpp_maker *m));

/* The elements of an operand that the current op handles in this iteration. */
struct mpp_slice peal_mpp_slice(const struct mpp_maker *m, const struct mscclpp_operand *operand);
/* Is operand i, of the sources or destinations, in packets? */
bool peal_mpp_is_packet(const struct mscclpp_op *op, bool source, uint32_t i);
/* The lanes that run the current op: flags of enum mpp_lane. */
uint32_t peal_mpp_lanes(const struct mscclpp_op *op);
/* Does the block stay fresh after the current op? Its data threads are a separate lane: what they
 * do is not published before the next join. */
bool peal_mpp_stays_fresh(const struct mpp_maker *m);
/* The first element of a half of double scratch, as the current rank counts. */
uint64_t peal_mpp_half(const struct mpp_maker *m);

/* scan.c. False: failed. */
bool peal_mpp_scan(struct mpp_maker *m);
/* make_op.c: the current op, for the current lane. */
void peal_mpp_emit(struct mpp_maker *m);

#endif
