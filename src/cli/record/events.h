/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording process writes, and `peal` reads: events of fixed form, each followed by its spans.
 *
 * This header is compiled into `peal` and, with the user's compiler, into the recording process. Both
 * are of one build on one machine, but what is read is checked all the same: the kernel may have
 * written anything. */
#ifndef PEAL_CLI_RECORD_EVENTS_H
#define PEAL_CLI_RECORD_EVENTS_H

#include <stdint.h>

enum rec_kind {
    REC_STRING,     /* a: its length; the bytes follow, padded to 8. Strings are numbered from 1 */
    REC_COPY,       /* one destination, one source */
    REC_COMPUTE,    /* c: the function, a string */
    REC_ACCUMULATE, /* c: the function, a string */
    REC_READ,       /* a scalar load: one source */
    REC_WRITE,      /* a scalar store: one destination, one constant source */
    REC_NOTIFY,     /* the cell is the destination; a: value, b: 0 add, 1 set */
    REC_WAIT,       /* the cell is the destination; a: value, b: rec_compare, c: 1 if not S waits */
    REC_FLAG_SET,   /* a: from pipe, b: to pipe, c: number */
    REC_FLAG_WAIT,
    REC_BARRIER, /* a: the pipe; of REC_PIPE_DMA: S waits for it */
    REC_BLOCK,   /* a: the block whose events follow */
    REC_JOIN,    /* a kernel of a sequence ended: all of its blocks and pipes are done */
    REC_FRAME,   /* a place that the REC_REFUSE after it was called from, innermost first */
    REC_REFUSE,  /* c: why, a string */
    REC_POLLED,  /* the wait before stands for a loop that polled */
    REC_CLOCK,   /* the kernel read a clock */
    REC_BLOCKS,  /* all blocks wait for each other, and each for its pipes before */
    REC_END,     /* the kernel returned */
    REC_KINDS
};

enum rec_compare { REC_EQ, REC_NE, REC_GT, REC_GE, REC_LT, REC_LE };

enum rec_pipe {
    REC_PIPE_S,
    REC_PIPE_V,
    REC_PIPE_M,
    REC_PIPE_MTE1,
    REC_PIPE_MTE2,
    REC_PIPE_MTE3,
    REC_PIPE_FIX,
    REC_PIPE_DMA, /* asynchronous moves: not a pipe of the core, and no barrier waits for it */
    REC_PIPES,
    REC_PIPE_ALL = REC_PIPES
};

/* Spaces of core memory, in the order of tile types. */
enum rec_space {
    REC_VEC,
    REC_MAT,
    REC_LEFT,
    REC_RIGHT,
    REC_ACC,
    REC_BIAS,
    REC_SCALING,
    REC_SPACES
};
#define REC_CORE_ADDRESS UINT64_C(0x0000200000000000)
#define REC_CORE_STRIDE UINT64_C(0x0000000100000000) /* between spaces */

struct rec_event {
    uint32_t kind;
    uint32_t op;   /* the intrinsic's name, a string; 0: none */
    uint32_t file; /* a string; 0: `pc` says where */
    uint32_t line;
    uint64_t pc; /* of a scalar access: its offset in the kernel's object */
    int64_t a, b, c;
    uint16_t ndst, nsrc;
    uint32_t pad;
};

struct rec_span {
    uint64_t address, count, stride; /* stride in bytes */
    uint32_t rows;
    uint8_t dtype; /* enum peal_dtype */
    uint8_t constant;
    uint16_t pad;
    double value;
};

/* A parameter or window, as the process maps it. */
struct rec_region {
    uint64_t address, bytes;
    uint32_t dtype;
    uint32_t known; /* its contents were given: the kernel may act on them */
};

enum { REC_MAX_ARGS = 32, REC_MAX_RANKS = 64, REC_MAX_CALLS = 8, REC_MAX_BLOCKS = 32 };

/* An argument of the kernel. */
struct rec_arg {
    enum { REC_ARG_TENSOR, REC_ARG_INT, REC_ARG_CONTEXT } kind;
    int64_t value;    /* int */
    uint64_t address; /* tensor */
    uint64_t bytes;
    uint32_t dtype, ndims;
    uint32_t shape[5];
};

/* A kernel, and which of the job's arguments it takes. */
struct rec_call {
    void *entry;
    uint32_t nargs;
    uint8_t args[REC_MAX_ARGS];
};

/* What the process is to do. */
struct rec_job {
    int fd;
    uint32_t rank, ranks, blocks;
    uint32_t packed; /* the kernel takes one array of arguments */
    uint32_t nargs, nregions;
    uint64_t windows[REC_MAX_RANKS];
    uint64_t window_bytes;
    struct rec_arg args[REC_MAX_ARGS];
    const struct rec_region *regions;
    uint32_t ncalls; /* one after the other */
    struct rec_call calls[REC_MAX_CALLS];
    uint64_t base; /* where the kernel's object is loaded */
};

#endif
