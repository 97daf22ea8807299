/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that concern ranks on other hosts.
 *
 *   copy to a peer        a put, from where the data is
 *   copy from a peer      a get, to where it is wanted
 *   compute               blocks of the far sources are fetched two ahead, combined as the plan says, and
 *                         put from a block if the destination is far: the same bits as on one host
 *   accumulate            the owner computes
 *   notify                a signal; in the frame of the copy before it if both go to one rank
 *   send                  one put of slot and payload, with the slot's number as its signal (far_channel.c)
 *   receive, free         as on one host; the credit is a signal
 *   wait, peek            of this rank's cell, while the network moves
 *   fetch_add, ...        the owner does it, and answers; a take asks again until it has the cell
 *
 * A step that has no room blocks, and goes on from where it is when it is tried again.
 *
 * Sources. What is put belongs to the transport until it has left. A lane goes on meanwhile; whatever may change
 * the memory waits until it has left: peal_far_is_ready. A window may be changed by every step that writes
 * and, after a wait, by a peer. The caller's own memory is out of reach of peers: only a step that writes into
 * the very bytes waits for them, so that what has arrived is handed on while more is being sent. The end
 * of a lane waits for all.
 *
 * Order. A network orders what one rank sends to another, and nothing else; a notify of the plan follows
 * everything that its lane did before. If the plan was not proved for less, a notify waits until puts
 * to other ranks have arrived there (a flush). Where cells are more than counters that grow, the notifies
 * to others are waited for, too.
 */
#ifndef PEAL_RUN_FAR_H
#define PEAL_RUN_FAR_H

#include "run/exec/exec.h"
#include "run/net/net.h"

enum { PEAL_FAR_DEPTH = 3, PEAL_FAR_BLOCK = 64 << 10, PEAL_FAR_RANGES = 32, PEAL_FAR_HEADERS = 16 };

/* What a lane has under way. */
struct peal_far_lane {
    struct peal_net_token sources; /* puts from windows, which may not change yet, */
    struct peal_net_token own;     /* and from the caller's memory: */
    struct peal_far_range {
        const char *from;
        uint64_t bytes;
    } ranges[PEAL_FAR_RANGES]; /* which bytes of it; more than there is room for: all of it */
    uint32_t nranges;
    /* Headers of messages whose payload is being sent with them: part of `sources`. */
    struct peal_far_header {
        char bytes[sizeof(struct peal_slot)];
    } headers[PEAL_FAR_HEADERS];
    uint32_t nheaders;
    /* Of the step that is under way: */
    uint64_t begun, ended; /* rows; or blocks, see far_block.c */
    uint32_t operand;      /* of the block that is being begun */
    uint64_t computed;
    uint32_t sending;             /* destination of the block that is being sent */
    bool is_computed;             /* and that block is computed */
    struct peal_net_token atomic; /* that is under way, and what its cell held */
    uint64_t found;
    struct peal_net_token gets[PEAL_FAR_DEPTH], puts[PEAL_FAR_DEPTH];
    /* Ranks that have been sent something since it was last known to have arrived: bit sets, and the
     * tickets by rank that are waited for. */
    uint64_t unflushed[4], asked[4];
    uint64_t *tickets;
};

/* Room that a step needs for blocks; `sources` of its sources are far. */
uint64_t peal_far_bounce_bytes(const struct peal_image *image, const struct peal_step *step,
                               uint32_t sources);
/* Makes room for an image's lanes. */
enum peal_status peal_far_prepare(struct peal_frame *frame, const struct peal_image *image);
/* Gives back what is under way: after a failure, or when the frame goes. */
void peal_far_release(struct peal_frame *frame);

/* A cell of a rank on this host. */
static inline struct peal_cell *peal_far_cell(const struct peal_frame *frame, uint32_t rank,
                                              uint64_t offset)
{
    return (struct peal_cell *)(frame->bases[rank].at + offset);
}

/* May the step begin, as far as what was sent before is concerned? */
bool peal_far_is_ready(struct peal_frame *frame, const struct peal_frame_lane *lane,
                       const struct peal_step *step);
/* Has the step begun, and blocked? */
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
/* Has everything arrived that this lane has sent to others than `rank`? */
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
/* A notify as the network has it. */
struct peal_net_signal peal_far_signal(const struct peal_frame *frame, const struct peal_step *step,
                                       const int64_t *regs);
/* Computations and accumulates: block after block. */
enum peal_step_end peal_far_blocks(struct peal_frame *frame, struct peal_frame_lane *lane,
                                   const struct peal_step *step, uint64_t count);
/* What came of operations: an error ends the launch. */
enum peal_step_end peal_far_judge(struct peal_frame *frame, enum peal_status status, uint32_t rank);

#endif
