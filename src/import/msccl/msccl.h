/* SPDX-License-Identifier: Apache-2.0 */
/* The model of an MSCCL XML file: its contents, in the order in which RCCL takes them.
 *
 * Gpus are sorted by id, thread blocks of a gpu by id, steps of a block by `s`. All three are
 * numbered from 0 without gaps, except that block ids may have gaps here (RCCL refuses those, see
 * engine.c). read.c has checked everything that is needed to make an op.
 */
#ifndef PEAL_IMPORT_MSCCL_H
#define PEAL_IMPORT_MSCCL_H

#include "import/reader.h"

enum msccl_type {
    MSCCL_SEND,
    MSCCL_RECV,
    MSCCL_COPY,
    MSCCL_REDUCE,                /* dst = dst + src */
    MSCCL_RECV_COPY_SEND,        /* rcs */
    MSCCL_RECV_REDUCE_SEND,      /* rrs: writes nothing here */
    MSCCL_RECV_REDUCE_COPY,      /* rrc */
    MSCCL_RECV_REDUCE_COPY_SEND, /* rrcs */
    MSCCL_NOP,
    MSCCL_TYPES
};

/* Properties of the types, indexed by enum msccl_type. */
struct msccl_type_info {
    const char *name;
    bool sends, receives, reads, writes; /* reads the src operand, writes the dst operand */
};
extern const struct msccl_type_info peal_msccl_types[MSCCL_TYPES];

struct msccl_step {
    uint32_t line, col;
    int32_t s, srcoff, dstoff, cnt;
    int32_t depid, deps; /* depid -1: none */
    uint8_t type, srcbuf, dstbuf, hasdep;
};

struct msccl_tb {
    uint32_t line, col;
    int32_t id, send, recv, chan; /* peers: -1 none */
    uint64_t offset;              /* of the tag in the file */
    uint32_t first, count;        /* steps */
    uint32_t published;           /* the last step that publishes, + 1; 0 = none does */
};

struct msccl_gpu {
    uint32_t line, col;
    int32_t id, i_chunks, o_chunks, s_chunks;
    uint32_t first, count; /* thread blocks */
};

/* RCCL loads no file in which a step has this many chunks or more. */
enum { MSCCL_CNT_LIMIT = 72 };

/* Attributes of `algo` that RCCL requires and that files often lack. */
enum {
    MSCCL_HAS_NCHANNELS = 1,
    MSCCL_HAS_INPLACE = 2,
    MSCCL_HAS_OUTOFPLACE = 4,
    MSCCL_HAS_MINBYTES = 8,
    MSCCL_HAS_MAXBYTES = 16
};

struct msccl_algo {
    uint32_t line, col;
    uint64_t tag_end;         /* in the file: where another attribute of algo could be inserted */
    uint32_t has;             /* MSCCL_HAS_... */
    uint32_t nranks, nchunks; /* ngpus, nchunksperloop */
    int32_t nchannels;
    bool inplace, outofplace;
    int64_t min_bytes, max_bytes; /* max 0: no limit */
    uint32_t mult;
    bool has_root;
    uint32_t root;
    struct msccl_gpu *gpus;
    struct msccl_tb *tbs;
    struct msccl_step *steps;
    uint32_t ngpus, ntbs, nsteps;
    /* the first step that waits for what no step publishes; line 0: none */
    struct msccl_step stuck;
    struct {
        struct peal_pos pos;
        /* the first attribute that RCCL requires and that is missing */
        const char *element, *attribute;
    } missing;
    uint32_t max_attributes; /* of any element */
    struct peal_pos max_attributes_at;
    /* elements that are passed over, with all in them: the first one, and how many */
    const char *strange;
    struct peal_pos strange_at;
    uint32_t nstrange;
};

/* Why RCCL's own reader would refuse the text, with the first place. NULL: it would not. */
const char *peal_msccl_syntax(const struct peal_source *source, struct peal_pos *pos);

#endif
