/* SPDX-License-Identifier: Apache-2.0 */
/* The model of an MSCCL++ plan: the contents of the JSON, with indices resolved.
 *
 * Channels of a gpu are flattened by type, as in the executor: `memory` and `port` channels one per
 * connected peer, `switch` channels one per group of ranks. A block's own lists of channels and
 * remote buffers are resolved: operands name rank and buffer.
 */
#ifndef PEAL_IMPORT_MSCCLPP_H
#define PEAL_IMPORT_MSCCLPP_H

#include "import/reader.h"

/* OP(NAME, text, place, packets). place: 'd' the block's data threads, 's' the threads that signal
 * and wait, 'b' both. packets: which operands are packets. */
#define MSCCLPP_OPS(OP)                                                                            \
    OP(NOP, "nop", 'b')                                                                            \
    OP(BARRIER, "barrier", 'b')                                                                    \
    OP(PUT, "put", 'd')                                                                            \
    OP(PUT_SIGNAL, "pws", 's')                                                                     \
    OP(PUT_SIGNAL_FLUSH, "pwsf", 's')                                                              \
    OP(GET, "get", 'd')                                                                            \
    OP(COPY, "copy", 'd')                                                                          \
    OP(SIGNAL, "signal", 's')                                                                      \
    OP(WAIT, "wait", 's')                                                                          \
    OP(FLUSH, "flush", 's')                                                                        \
    OP(REDUCE, "re", 'd')                                                                          \
    OP(REDUCE_SEND, "res", 'd')                                                                    \
    OP(READ_REDUCE, "rre", 'd')                                                                    \
    OP(READ_REDUCE_SEND, "rres", 'd')                                                              \
    OP(PUT_PACKETS, "ppkt", 'd')                                                                   \
    OP(READ_PUT_PACKETS, "rppkt", 'd')                                                             \
    OP(REDUCE_SEND_PACKETS, "respkt", 'd')                                                         \
    OP(COPY_PACKETS, "cpkt", 'd')                                                                  \
    OP(UNPACK_PACKETS, "upkt", 'd')                                                                \
    OP(REDUCE_PACKETS, "repkt", 'd')                                                               \
    OP(REDUCE_COPY_PACKETS, "recpkt", 'd')                                                         \
    OP(REDUCE_COPY_SEND_PACKETS, "recspkt", 'd')                                                   \
    OP(GROUP_LOAD_REDUCE_STORE, "glres", 'd')                                                      \
    OP(GROUP_STORE, "gstore", 'd')                                                                 \
    OP(GROUP_STORE_PACKETS, "gstorepkt", 'd')                                                      \
    OP(RELAXED_SIGNAL, "rlxsignal", 's')                                                           \
    OP(RELAXED_WAIT, "rlxwait", 's')                                                               \
    OP(SEM_ACQUIRE, "sem_acquire", 's')                                                            \
    OP(SEM_RELEASE, "sem_release", 's')                                                            \
    OP(PIPELINE, "pipeline", 'b')

enum mscclpp_name {
#define OP(name, text, place) MPP_##name,
    MSCCLPP_OPS(OP)
#undef OP
        MPP_NAMES
};

enum mscclpp_channel_type { MPP_NO_CHANNEL, MPP_MEMORY, MPP_PORT, MPP_SWITCH, MPP_CHANNEL_TYPES };

struct mscclpp_operand {
    uint32_t index, size; /* chunks */
    uint8_t buffer;       /* IMPORT_INPUT, ... */
    bool is_group;        /* all ranks of switch channel `group` */
    uint32_t rank;        /* its own, or a peer */
    uint32_t group;
};

struct mscclpp_op {
    uint32_t line, col;
    uint8_t name, channel_type;
    uint32_t nchannels, nsrc, ndst, nsemaphores;
    uint32_t *channels;   /* into the gpu's channels of that type */
    uint32_t *semaphores; /* into the gpu's */
    struct mscclpp_operand *src, *dst;
    uint32_t tb_id, tbg_size; /* part tb_id of tbg_size of each operand */
    uint32_t barrier, blocks;
    uint64_t unit_bytes; /* pipeline */
    uint32_t unit_chunks;
    struct mscclpp_op *inner;
    uint32_t ninner;
};

struct mscclpp_tb {
    uint32_t line, col;
    struct mscclpp_op *ops;
    uint32_t nops;
    uint32_t *channels; /* memory channels of the gpu that the block lists, in its order */
    uint32_t nchannels;
};

struct mscclpp_channel {
    uint32_t line, col;
    uint32_t peer;
    uint32_t order;   /* number among this rank's channels of this type to that peer */
    uint8_t src, dst; /* older plans: the buffers at both ends */
};

struct mscclpp_group {
    uint8_t buffer;
    uint32_t *ranks;
    uint32_t nranks;
};

struct mscclpp_gpu {
    uint32_t line, col;
    uint32_t input_chunks, output_chunks, scratch_chunks;
    struct mscclpp_channel *channels[MPP_CHANNEL_TYPES]; /* memory, port */
    uint32_t nchannels[MPP_CHANNEL_TYPES];
    struct mscclpp_group *groups;
    uint32_t ngroups;
    int64_t *semaphores; /* initial values */
    uint32_t nsemaphores;
    struct mscclpp_tb *tbs;
    uint32_t ntbs;
};

struct mscclpp_plan {
    uint32_t line, col;
    bool packets; /* protocol LL */
    bool older;   /* written for the first executors, see read_older.c */
    bool double_scratch;
    uint32_t disorder_line, disorder_col; /* of the first gpu or block not at the place of its id */
    uint32_t alignment;
    uint64_t min_bytes, max_bytes;
    uint32_t threads;
    struct mscclpp_gpu *gpus;
    uint32_t nranks;
};

const char *peal_mscclpp_name(enum mscclpp_name name);

#endif
