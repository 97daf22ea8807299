/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that concern ranks on other hosts.
 *
 *   copy to a peer        a put, from where the data is
 *   copy from a peer      a get, to where it is wanted
 *   compute               blocks of the far sources are fetched two ahead, combined as the plan
 *                         says, and put from a block if the destination is far: the same bits as on
 *                         one host
 *   accumulate            the owner computes
 *   notify                a signal; part of the put before it if both go to one rank
 *   send                  one put of slot and payload, with the slot's number as its signal
 *                         (far_channel.c)
 *   receive, free         as on one host; the credit is a signal
 *   wait, peek            on this rank's cell, while the network progresses
 *   fetch_add, ...        done by the cell's owner, who answers; a take asks again until it has the
 *                         cell
 *
 * If the transport has no room, the step blocks, and goes on from where it is when it is tried
 * again.
 *
 * Sources. What is put belongs to the transport until it has left. A lane goes on meanwhile; a step
 * that may change the memory waits until then: peal_far_is_ready. A window may be changed by every
 * step that writes and, after a wait, by a peer. Peers cannot reach the caller's own memory: only a
 * step that writes the very bytes being sent waits, so that what has arrived is passed on while
 * more is being sent. The end of a lane waits for everything.
 *
 * Order. A network orders what one rank sends to another, and nothing else; a notify of the plan
 * follows everything that its lane did before. Unless the plan was proved with the weaker order
 * (`pairwise`), a notify waits until puts to other ranks have arrived there (a flush). In plans
 * with cells that are not counters that only grow, it also waits for notifies to other ranks.
 */
#ifndef PEAL_RUN_FAR_H
#define PEAL_RUN_FAR_H

#include "run/exec/exec.h"
#include "run/net/net.h"

enum { PEAL_FAR_DEPTH = 3, PEAL_FAR_BLOCK = 64 << 10, PEAL_FAR_RANGES = 32, PEAL_FAR_HEADERS = 16 };

/* What a lane has in transit. */
struct peal_far_lane {
    struct peal_net_token sources; /* puts from windows, which may not change yet */
    struct peal_net_token own;     /* puts from the caller's memory */
    struct peal_far_range {
        const char *from;
        uint64_t bytes;
    } ranges[PEAL_FAR_RANGES]; /* of these bytes */
    uint32_t nranges;          /* above PEAL_FAR_RANGES: of any bytes */
    /* Headers of messages that are sent with their payload: part of `sources`. */
    struct peal_far_header {
        char bytes[sizeof(struct peal_slot)];
    } headers[PEAL_FAR_HEADERS];
    uint32_t nheaders;
    /* Of the step in progress: */
    uint64_t begun, ended; /* rows; or blocks, see far_block.c */
    uint32_t operand;      /* of the block that is being begun */
    uint64_t computed;
    uint32_t sending; /* destination of the block that is being sent */
    bool is_computed; /* that block is */
    struct peal_net_token atomic;
    uint64_t found; /* what the atomic's cell held */
    struct peal_net_token gets[PEAL_FAR_DEPTH], puts[PEAL_FAR_DEPTH];
    /* Bit sets of ranks: those to which something was sent that may not have arrived, and those of
     * them for which tickets[rank] is being waited for. */
    uint64_t unflushed[4], asked[4];
    uint64_t *tickets;
};

/* Bytes that a step needs for blocks; `sources` of its sources are far. */
uint64_t peal_far_bounce_bytes(const struct peal_image *image, const struct peal_step *step,
                               uint32_t sources);
/* Allocates what an image's lanes need. */
enum peal_status peal_far_prepare(struct peal_frame *frame, const struct peal_image *image);
/* Gives up what is in transit: after a failure, the network touches no memory of the call any more. */
void peal_far_let_go(struct peal_frame *frame);
/* The same when the frame is released. */
void peal_far_release(struct peal_frame *frame);

/* A cell of a rank on this host. */
static inline struct peal_cell *peal_far_cell(const struct peal_frame *frame, uint32_t rank,
                                              uint64_t offset)
{
    return (struct peal_cell *)(frame->bases[rank].at + offset);
}

/* May the step begin, or does it have to wait for the sources of what was sent before? */
bool peal_far_is_ready(struct peal_frame *frame, const struct peal_frame_lane *lane,
                       const struct peal_step *step);
/* Has the step been tried before, and blocked after it had begun? */
bool peal_far_has_begun(const struct peal_frame *frame, const struct peal_frame_lane *lane);

enum peal_step_end peal_far_work(struct peal_frame *frame, struct peal_frame_lane *lane,
                                 const struct peal_step *step);
enum peal_step_end peal_far_notify(struct peal_frame *frame, struct peal_frame_lane *lane,
                                   const struct peal_step *step);
enum peal_step_end peal_far_atomic(struct peal_frame *frame, struct peal_frame_lane *lane,
                                   const struct peal_step *step);
enum peal_step_end peal_far_send(struct peal_frame *frame, struct peal_frame_lane *lane,
                                 const struct peal_step *step);
enum peal_step_end peal_far_give_back(struct peal_frame *frame, struct peal_frame_lane *lane,
                                      const struct peal_step *step);

/* ---- shared by far.c, far_block.c and far_channel.c ---- */

static inline struct peal_far_lane *peal_far_of(const struct peal_frame *frame,
                                                const struct peal_frame_lane *lane)
{
    return &frame->far[lane - frame->lanes];
}

struct peal_far_place {
    uint32_t rank; /* of the team */
    uint32_t segment;
    uint64_t offset;
};
/* Where element `first` of a far operand's row is. */
struct peal_far_place peal_far_find(const struct peal_frame *frame, const struct peal_place *place,
                                    uint32_t row, uint64_t first);
/* Something was sent to `rank`. */
static inline void peal_far_note_sent(struct peal_far_lane *far, uint32_t rank)
{
    far->unflushed[rank / 64] |= UINT64_C(1) << rank % 64;
    far->asked[rank / 64] &= ~(UINT64_C(1) << rank % 64);
}
/* Has everything arrived that this lane has sent to ranks other than `rank`? */
bool peal_far_is_flushed(struct peal_frame *frame, struct peal_far_lane *far, uint32_t rank);
/* One put or get of this frame. PEAL_STEP_BLOCKS: there is no room. */
enum peal_step_end peal_far_put(struct peal_frame *frame, struct peal_far_lane *far,
                                const struct peal_far_place *to, const void *from, uint64_t bytes,
                                const struct peal_net_signal *signal, struct peal_net_token *token);
enum peal_step_end peal_far_put_parts(struct peal_frame *frame, struct peal_far_lane *far,
                                      const struct peal_far_place *to,
                                      const struct peal_net_part *parts, uint32_t nparts,
                                      const struct peal_net_signal *signal,
                                      struct peal_net_token *token);
enum peal_step_end peal_far_get(struct peal_frame *frame, const struct peal_far_place *from,
                                void *to, uint64_t bytes, struct peal_net_token *token);
/* Can the notify after a step travel with the last bytes that the step sends to `rank`? */
bool peal_far_joins(struct peal_frame *frame, const struct peal_frame_lane *lane,
                    const struct peal_step *step, uint32_t rank);
/* A notify as a signal of the network. */
struct peal_net_signal peal_far_signal(const struct peal_frame *frame, const struct peal_step *step,
                                       const int64_t *regs);
/* Computations and accumulates, block by block. */
enum peal_step_end peal_far_blocks(struct peal_frame *frame, struct peal_frame_lane *lane,
                                   const struct peal_step *step, uint64_t count);
/* What the status of an operation means for the step: an error ends the launch. */
enum peal_step_end peal_far_judge(struct peal_frame *frame, enum peal_status status, uint32_t rank);

#endif
