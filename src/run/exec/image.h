/* SPDX-License-Identifier: Apache-2.0 */
/* An image: one rank's part of a plan, ready to be executed.
 *
 * Everything that can be resolved once is: cells and scratch become offsets from base pointers,
 * functions become function pointers, launch phases become step lists of their own. A launch only
 * has to fill in the bases of its parameters.
 *
 *   bases   0 .. P-1   the family's region in each rank's window: channels and scratch; rank 0's
 *                      also has all cells, and all ranks' scratch if it is small
 *           P          private scratch and tiles
 *           P+1 ...    parameters: see peal_image_param
 *
 * Clipping. A library collective's plan is made for a class of counts, and a launch may bind less
 * memory than the plan has elements: each parameter base has a limit, and every step that touches
 * parameters is cut to the elements that exist. The accesses are then a subset of those of the
 * proved plan, at the same addresses. By its contract each output element depends only on the input
 * elements of the same index, so the elements that are cut are not needed. Only kernels with an
 * elementwise contract are launched in this way.
 */
#ifndef PEAL_RUN_IMAGE_H
#define PEAL_RUN_IMAGE_H

#include "compute/compute.h"
#include "plan/plan.h"
#include "run/team/shared.h"
#include "run/team/memory/prefault.h"

enum peal_step_kind {
    PEAL_STEP_COPY,
    PEAL_STEP_REDUCE,  /* one dtype throughout, by a reducer */
    PEAL_STEP_COMBINE, /* everything else */
    PEAL_STEP_ACCUMULATE,
    PEAL_STEP_OWN,    /* compute/own.h; mem.extra: columns of the first of two matrices */
    PEAL_STEP_NOTIFY, /* one-writer cell: a release store */
    PEAL_STEP_NOTIFY_SHARED,
    PEAL_STEP_NOTIFY_RAW,
    PEAL_STEP_WAIT, /* one-writer cell */
    PEAL_STEP_WAIT_SHARED,
    PEAL_STEP_WAIT_RAW,
    PEAL_STEP_PEEK,
    PEAL_STEP_FETCH_ADD, /* these four: on raw cells of any rank */
    PEAL_STEP_COMPARE_SWAP,
    PEAL_STEP_TAKE,
    PEAL_STEP_LOOK, /* a wait for a raw cell of a peer */
    PEAL_STEP_SEND,
    PEAL_STEP_RECV,
    PEAL_STEP_RECV_SLOT,
    PEAL_STEP_FREE,
    PEAL_STEP_FLUSH, /* mem.extra: the rank; nothing to do where memory is shared */
    PEAL_STEP_WHEN,  /* fn, mem.rows and mem.count as in the plan; mem.extra: steps up to its END */
    PEAL_STEP_NUMBER, /* mem.rows: the register of a LAUNCH */
    PEAL_STEP_PASS,   /* nothing: the END of a when */
    PEAL_STEP_END,
    /* Added to the kinds above in plans of ranks on several hosts: the step concerns another host,
     * waits while the network must progress, or may begin only when earlier data has left
     * (far.h). */
    PEAL_STEP_FAR = 32
};

enum peal_step_flags {
    PEAL_STEP_CLIP = 1,   /* touches parameters: cut to their limits */
    PEAL_STEP_STREAM = 2, /* only parameters are written: worth streaming when calls are large */
    PEAL_STEP_SET = 4,
    PEAL_STEP_EQUAL = 8,       /* waits */
    PEAL_STEP_STREAM_REST = 8, /* computes: STREAM for all destinations but the first, which is not
                                  a parameter */
    PEAL_STEP_HAS_REG = 16,
    PEAL_STEP_URGENT = 32,  /* a wait before a notify or a send, for which other ranks wait */
    PEAL_STEP_REMOTE = 64,  /* reads peers' parameters that are not mapped here */
    PEAL_STEP_BYPASS = 128, /* a copy into its own window by a rank that goes on without waiting */
    PEAL_STEP_NEAR = 128    /* waits between hosts: the notifier is on this one */
};

/* `kind` without PEAL_STEP_FAR. */
static inline enum peal_step_kind peal_step_near_kind(uint32_t kind)
{
    return (enum peal_step_kind)(kind & ~(uint32_t)PEAL_STEP_FAR);
}
static inline bool peal_step_is_notify(uint32_t kind)
{
    enum peal_step_kind near = peal_step_near_kind(kind);
    return near >= PEAL_STEP_NOTIFY && near <= PEAL_STEP_NOTIFY_RAW;
}
static inline bool peal_step_is_wait(uint32_t kind)
{
    enum peal_step_kind near = peal_step_near_kind(kind);
    return near >= PEAL_STEP_WAIT && near <= PEAL_STEP_WAIT_RAW;
}
/* Copies and computes: steps with a destination, sources and further destinations. */
static inline bool peal_step_is_compute(uint32_t kind)
{
    return peal_step_near_kind(kind) <= PEAL_STEP_ACCUMULATE;
}

/* An operand. Pseudo bases as in plan.h: a constant, or a slot that was received. */
#define PEAL_BASE_CONST UINT32_MAX
#define PEAL_BASE_SLOT (UINT32_MAX - 1)
struct peal_place {
    uint32_t base;
    uint32_t row;    /* times the base's stride; slots: number of older ones that are not freed */
    uint64_t offset; /* constants: the bits of a double */
    uint64_t pitch;  /* scratch of several rows: bytes from one to the next */
    uint16_t dtype;
    uint16_t shift; /* an element has 1 << shift bytes */
    /* Slots: the channel. Otherwise, with ranks on several hosts: the owner if it is on another
     * host, or PEAL_NONE. */
    uint32_t channel;
};

struct peal_step {
    uint8_t kind, fn, flags, dtype;
    uint32_t op; /* index in the plan's ops, for reports */
    union {
        struct {
            uint32_t first; /* places: destination if there is one, sources, more destinations */
            uint16_t nsrc;
            uint16_t more_dsts; /* after the first */
            uint64_t count;
            uint32_t rows;
            uint32_t extra; /* channel, or divisor */
            peal_reducer *reducer;
        } mem;
        struct {
            uint64_t offset; /* of the cell in rank 0's region */
            uint32_t rank;   /* PEAL_NONE: all peers, by one store */
            uint16_t back;
            uint16_t reg;
            int64_t value;   /* one-writer: the count as it stands in the cell, shifted */
            uint32_t shared; /* shared cells: index of its base */
        } sync;
    };
};

struct peal_image_param {
    uint32_t buf;
    uint32_t param; /* position among the kernel's buffer parameters */
    uint32_t base;  /* first of its bases: own, or rank after rank if symmetric */
    uint32_t rows;  /* bases per rank: 1, or the number of rows if each row has its own base */
    uint32_t symmetric;
    uint32_t cols; /* 2-D: elements per row as declared */
    uint64_t len;  /* elements on this rank, as the plan has it */
};

/* Memory bound to a launch. */
struct peal_base {
    char *at;
    uint64_t limit;  /* bytes that exist; parameters only */
    uint64_t stride; /* bytes per row; 2-D parameters only */
    /* Memory that is not mapped here has `at` NULL. On this host it is `from` bytes after the
     * address that rank `owner` has published in *home (remote.h); on another host `home` is NULL,
     * and it is `from` bytes into the exposed segment `owner`. */
    const _Atomic uint64_t *home;
    uint64_t from;
    uint32_t owner;
};

struct peal_image_channel {
    uint32_t sender, receiver;
    uint32_t depth;
    uint32_t mask; /* depth - 1 if depth is a power of two, else 0: saves a division */
    uint64_t slot_bytes;
    uint64_t slots;  /* offset of the first slot in the receiver's region */
    uint64_t stride; /* of a slot */
    uint64_t credit; /* offset of the credit line in the sender's region: slots freed so far */
};

struct peal_image_lane {
    uint32_t first; /* in each phase's steps */
    uint32_t regs;
};

struct peal_family;
struct peal_call;

struct peal_image {
    /* The plan that it was made from, or that plan's template, which differs in sizes and types
     * only: peal_image_plan returns the plan itself. */
    const struct peal_plan *plan;
    uint64_t bytes;             /* of the block that holds the image and its tables */
    bool in_prefault;           /* it lies in a prefault */
    struct peal_plan *owned;    /* NULL: there is none */
    struct peal_plan_size made; /* what the template was resized to */
    bool resized;
    uint32_t rank, size;
    uint32_t nbases;
    uint32_t nparams;
    struct peal_image_param *params;
    uint32_t nlanes;
    struct peal_image_lane *lanes;
    uint32_t period;
    uint32_t nsteps;           /* of one phase, END steps included */
    struct peal_step *steps;   /* period * nsteps */
    struct peal_place *places; /* period * nplaces */
    uint32_t nplaces;
    uint32_t nregs;        /* of all lanes */
    uint32_t max_operands; /* of a step */
    uint32_t nchannels;
    struct peal_image_channel *channels;
    uint32_t nshared;         /* own shared cells */
    int64_t *totals;          /* what is added to each per launch: period * nshared */
    bool clip, rows_as_bases; /* see peal_image_options */
    bool seq_cst;             /* not monotone */
    bool fresh;               /* each launch needs memory that is zero: see peal_frame_forget */
    bool takes;               /* ranks may wait for cells of others: a change wakes all */
    uint32_t count_shift;     /* where a one-writer cell's count begins: below it, the signature */
    uint64_t scratch;         /* offset of window scratch in the region */
    uint64_t private_bytes;   /* private scratch and tiles */
    uint64_t region_bytes;
    struct peal_digest identity; /* see peal_image_options */
    bool reaches;          /* it has window parameters: peers use each other's memory */
    bool remote;           /* peers' window parameters are not mapped here */
    bool writes;           /* and may be written: threads */
    uint64_t bounce_bytes; /* for blocks of their memory */
    bool spans;            /* ranks are on several hosts */
    bool pulled;           /* and those of other hosts read this rank's memory */
    bool pairwise;         /* proved for a network that orders pairs only: needs no flushes */
    uint64_t far_bytes;    /* for blocks in transit between hosts, per lane */
    uint32_t *writers;     /* of cell numbers that share a line, see multicast.h; may be NULL */
    uint32_t *notifiers;   /* a rank that changes each of this rank's cells; may be NULL */
    struct peal_family *families[PEAL_CONTEXTS]; /* found at the first launch in a context */
    struct peal_base *bases[PEAL_CONTEXTS];      /* nbases each; context 0's are in the block */
    const struct peal_call *bound; /* a repeated call that has filled in the bases of context 0 */
    bool receives;                 /* its only wait comes first: see only_receives */
    uint8_t patience, tries;       /* whether polling before the first yield pays: see call.c */
    uint8_t trust, trials;         /* the same after a yield */
    uint64_t turns[PEAL_CONTEXTS]; /* the regions' turn in which the family was found */
};

struct peal_image_options {
    uint32_t rank;
    bool clip;                      /* see above */
    bool rows_as_bases;             /* each row of a 2-D parameter is bound on its own */
    bool remote;                    /* peers' window parameters are not mapped here: see remote.h */
    bool writes;                    /* and may be written: threads */
    const uint8_t *far;             /* by rank: 1 if on another host; NULL: all are on one */
    bool pulled, pairwise;          /* see peal_image */
    struct peal_digest identity;    /* of the kernel, and of all its layout follows from */
    const uint32_t *writers;        /* see multicast.h; NULL: none */
    const uint32_t *notifiers;      /* see peal_notifiers_find; NULL: not known */
    struct peal_prefault *prefault; /* where to allocate it; NULL: in memory of its own */
    /* The plan is this template resized, and stays the caller's; the template must live as long as
     * the image. NULL: the image takes over the plan, even if it cannot be made. */
    const struct peal_plan *template;
    const struct peal_plan_size *made;
};

/* A plan with channels must have all ranks. */
enum peal_status peal_image_new(struct peal_plan *plan, const struct peal_image_options *options,
                                const struct peal_compute *compute, struct peal_image **out);
/* The block of an image in a prefault pool is freed with the pool. NULL is ignored. */
void peal_image_free(struct peal_image *image);
/* The plan that the image executes; if it was resized, it is made again at the first use. NULL:
 * there is no memory. */
const struct peal_plan *peal_image_plan(struct peal_image *image);
/* Bytes of the image, its own plan and the bases of one context. */
uint64_t peal_image_bytes(const struct peal_image *image);

#endif
