/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: runs the lanes of one launch until they end or block.
 *
 *   image.h        one rank's part of a plan, made ready: image_layout.h (where things lie),
 *                  image_step.h (ops -> steps), image_mark.h and image_far.h (marks)
 *   frame.c        one launch: its memory, and how a blocked one describes itself
 *   exec.c         the loop over the steps; operand.h: where their operands are
 *   cell.h         notify, wait, atomics          channel.h   the two ends of a queue
 *   multicast.h    cells of all peers in one line  remote.h    memory of other processes
 *   far.h          steps that concern other hosts: far_block.c (computations), far_channel.c
 *   trace.h        what lanes did when, for pages
 *
 * Start reading at image.h.
 */
#ifndef PEAL_RUN_EXEC_H
#define PEAL_RUN_EXEC_H

#include "run/exec/family.h"
#include "run/exec/image.h"
#include "run/exec/trace.h"
#include "run/team/team.h"

struct peal_far_lane;

struct peal_frame_lane {
    const struct peal_step *at; /* NULL: ended */
    int64_t *regs;
};

enum peal_frame_state {
    PEAL_RUN_ENDED,
    PEAL_RUN_BLOCKED,  /* nothing can move */
    PEAL_RUN_MISMATCH, /* a peer is in another call */
    PEAL_RUN_UNREAD,   /* a peer's memory could not be read: see `unread` */
};

/* How far a step has come. */
enum peal_step_end {
    PEAL_STEP_BLOCKS,
    PEAL_STEP_DONE,
    PEAL_STEP_DONE_TWO, /* the step and the one after it */
    PEAL_STEP_DIFFERS,  /* a peer is in another call */
    PEAL_STEP_UNREAD    /* see peal_frame's `unread` */
};

/* A launch in a context. */
struct peal_frame {
    const struct peal_team *team;
    uint32_t context;
    struct peal_regions regions;
    struct peal_image *image;
    struct peal_family *family;
    struct peal_base *bases; /* the image's, of this context */
    char *scratch;           /* private */
    uint64_t scratch_cap;
    void **pointers; /* room for a step's operands */
    struct peal_operand *operands;
    uint32_t pointers_cap;
    char *bounce; /* where blocks of other processes' memory are read to; private */
    uint64_t bounce_cap;
    struct peal_frame_lane *lanes;
    uint32_t lanes_cap;
    int64_t *regs;
    uint32_t regs_cap;
    uint32_t live;               /* lanes that have not ended */
    uint32_t signature;          /* of the call; its low 16 bits are in cells */
    bool stream;                 /* large call: parameters are written past the caches */
    bool moved;                  /* something was done since the caller cleared it */
    uint64_t launch;             /* the family's number of this launch */
    struct peal_op_trace *trace; /* NULL: not traced */
    struct peal_far_lane *far;   /* by lane: what is in transit to other hosts; NULL: one host */
    uint32_t far_cap;
    char *far_bounce; /* blocks in transit from and to other hosts: image->far_bytes per lane */
    uint64_t far_bounce_cap;
    struct {
        uint32_t rank;
        int error; /* errno */
    } unread;
};

enum peal_status peal_frame_init(struct peal_frame *frame, const struct peal_team *team,
                                 uint32_t context);
void peal_frame_release(struct peal_frame *frame);

/* Allocates the private memory that an image will need, ahead of its first load. */
enum peal_status peal_frame_prepare(struct peal_frame *frame, const struct peal_image *image);
/* Makes the frame ready for launches of an image: memory and family. The caller fills in the bases
 * of parameters. PEAL_PENDING: the context's regions must be given back first, see family.h. */
enum peal_status peal_frame_load(struct peal_frame *frame, struct peal_image *image,
                                 uint32_t context);
/* The same for an image that was loaded before. False: it was not, or its region was given back
 * since: call peal_frame_load. */
static inline bool peal_frame_reload(struct peal_frame *frame, struct peal_image *image,
                                     uint32_t context)
{
    if (!image->families[context] || image->turns[context] != frame->regions.turns)
        return false;
    frame->image = image;
    frame->family = image->families[context];
    frame->bases = image->bases[context];
    frame->bases[image->size].at = frame->scratch; /* may have grown for another image */
    return true;
}
/* After a launch of an image that needs zeroes: the next one asks for its region again, which is then
 * given back with all others, and cleared. */
static inline void peal_frame_forget(struct peal_frame *frame, struct peal_image *image,
                                     uint32_t context)
{
    frame->image = NULL;
    image->families[context] = NULL;
}
/* Binds the peers' window parameters, which have the layout of this rank's. mapped[i][r] is where
 * rank r's memory of parameter i is mapped here; mapped[i] NULL: it is not mapped, and its owner
 * publishes where it is. segments[i][r]: the number of its exposed segment, if r is on another
 * host. */
void peal_frame_reach(struct peal_frame *frame, char *const *const *mapped,
                      const uint32_t *const *segments);
/* The phase of a launch, which says which list of steps it takes. A family counts launches from 1,
 * and the first one has phase 0, as in the verifier and the simulator. */
static inline uint64_t peal_image_phase(const struct peal_image *image, uint64_t launch)
{
    uint32_t period = image->period;
    launch--;
    /* A division takes longer than the rest of a small launch. */
    return (period & (period - 1)) == 0 ? launch & (period - 1) : launch % period;
}
/* Begins a launch: the image must be loaded and its parameters bound. */
void peal_frame_launch(struct peal_frame *frame);
/* Continues the launch. A single lane polls `spins` times before it counts as blocked. */
enum peal_frame_state peal_frame_run(struct peal_frame *frame, uint32_t spins);

/* True if other ranks wait for what the blocked launch does next. */
static inline bool peal_frame_is_urgent(const struct peal_frame *frame)
{
    const struct peal_step *step = frame->lanes[0].at;
    return frame->image->nlanes == 1 && step && step->flags & PEAL_STEP_URGENT;
}

/* A wait for a rank of this host serves the network this many times less often than a wait for
 * another host. */
enum { PEAL_NEAR_FACTOR = 8 };
static inline bool peal_step_waits_near(const struct peal_step *step)
{
    return step->kind == (PEAL_STEP_FAR | PEAL_STEP_WAIT) && step->flags & PEAL_STEP_NEAR;
}
/* True if the blocked launch of ranks on several hosts waits for a rank of this host. */
static inline bool peal_frame_waits_near(const struct peal_frame *frame)
{
    const struct peal_step *step = frame->lanes[0].at;
    return frame->image->nlanes == 1 && step && peal_step_waits_near(step);
}

/* Where the first blocked lane waits, as one line. */
void peal_frame_describe(const struct peal_frame *frame, struct peal_text *out);
/* The same for a launch that has not begun: where it would wait first, followed by a comma. */
void peal_frame_describe_first(const struct peal_frame *frame, struct peal_text *out);

#endif
