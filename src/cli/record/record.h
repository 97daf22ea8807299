/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in C++ for tile accelerators, recorded: `peal verify kernel.cpp`.
 *
 *   signature.c  --args: what the kernel is called with, and where its memory is
 *   compile.c    the user's compiler makes a shared object of the kernel and the recording headers
 *   child.c      a process per rank that runs it and writes events (events.h)
 *   decode.c     events, and the table of pipes, become calls of peal/record.h
 *   pipes.c      the table: which pipe runs which intrinsic, how large core memory is
 *   recorded.c   all of this for one number of ranks and one level
 *   ../verify/verify_recorded.c  peal verify: all ranks and levels, what would fix it, reports
 *   story.c      counterexamples with the kernel's own lines and pipes
 *
 * This compiles and runs the user's code, and only that of files named on the command line. The limits
 * of the recording process (time, memory, files) contain mistakes, not attackers.
 */
#ifndef PEAL_CLI_RECORD_RECORD_H
#define PEAL_CLI_RECORD_RECORD_H

#include "cli/cli.h"
#include "cli/record/events.h"
#include "plan/plan.h"

#include <peal/record.h>

/* The recording headers, embedded; the name has '+' for '/'. */
extern const struct peal_source peal_record_texts[];
extern const size_t peal_record_text_count;

enum peal_record_level { PEAL_LEVEL_BOTH, PEAL_LEVEL_CORE, PEAL_LEVEL_PIPE };

/* Options of commands that take such kernels. */
struct peal_recorded_options {
    const char *entry, *args, *implements, *pipes;
    int level; /* enum peal_record_level */
    int64_t blocks;
    struct peal_pairs inputs; /* NAME=FILE: contents that the kernel may act on */
};

#define PEAL_RECORDED_ROWS(type, member)                                                           \
    {"entry",                                                                                      \
     0,                                                                                            \
     PEAL_OPTION_STRING,                                                                           \
     offsetof(type, member.entry),                                                                 \
     "NAME",                                                                                       \
     "KERNEL.cpp: the function to record (default kernel_entry)",                                  \
     0,                                                                                            \
     0},                                                                                           \
        {"args",                                                                                   \
         0,                                                                                        \
         PEAL_OPTION_STRING,                                                                       \
         offsetof(type, member.args),                                                              \
         "LIST",                                                                                   \
         "KERNEL.cpp: what it is called with: 'in x: f32[256], out y: f32[256], window s: 2K "     \
         "zeroed, nranks, ctx'",                                                                   \
         0,                                                                                        \
         0},                                                                                       \
        {"implements",                                                                             \
         0,                                                                                        \
         PEAL_OPTION_STRING,                                                                       \
         offsetof(type, member.implements),                                                        \
         "NAME",                                                                                   \
         "KERNEL.cpp: what it promises: allreduce, ... (default: nothing)",                        \
         0,                                                                                        \
         0},                                                                                       \
        {"level",                                                                                  \
         0,                                                                                        \
         PEAL_OPTION_CHOICE,                                                                       \
         offsetof(type, member.level),                                                             \
         "both|core|pipe",                                                                         \
         "KERNEL.cpp: the order of ops is that of the text (core), or of hardware pipes",          \
         0,                                                                                        \
         0},                                                                                       \
        {"pipes",                                                                                  \
         0,                                                                                        \
         PEAL_OPTION_STRING,                                                                       \
         offsetof(type, member.pipes),                                                             \
         "FILE",                                                                                   \
         "KERNEL.cpp: the table of pipes: a file, or pto-a2a3 (default) or pto-a5",                \
         0,                                                                                        \
         0},                                                                                       \
        {"blocks",                                                                                 \
         0,                                                                                        \
         PEAL_OPTION_INT,                                                                          \
         offsetof(type, member.blocks),                                                            \
         "B",                                                                                      \
         "KERNEL.cpp: blocks per rank (default 1)",                                                \
         1,                                                                                        \
         32},                                                                                      \
    {                                                                                              \
        "input", 0, PEAL_OPTION_PAIRS, offsetof(type, member.inputs), "NAME=FILE",                 \
            "KERNEL.cpp: contents of a parameter or window on all ranks, as bytes, for kernels "   \
            "that act on data; the verdict is then for these contents",                            \
            0, 0                                                                                   \
    }

/* Does the argument name a C++ file? */
bool peal_recorded_names_file(const char *argument);

/* --- signature.c --- */

enum signature_kind {
    SIGNATURE_MEMORY,
    SIGNATURE_NUMBER,
    SIGNATURE_RANKS,
    SIGNATURE_RANK,
    SIGNATURE_ROOT,
    SIGNATURE_CONTEXT
};

struct signature_item {
    enum signature_kind kind;
    const char *name; /* memory */
    enum peal_record_kind memory;
    uint32_t flags; /* of the region */
    enum peal_dtype dtype;
    uint32_t ndims;
    int64_t shape[5];            /* elements, ... */
    bool per_rank[5];            /* ... times the number of ranks */
    int64_t value;               /* number */
    struct peal_source contents; /* --input, or text NULL */
};

struct signature {
    struct signature_item items[REC_MAX_ARGS];
    uint32_t len;
    bool plain; /* the kernel takes its arguments one by one, not in one array */
};

/* False after a message. */
bool peal_signature_parse(struct peal_cli *cli, const char *text, struct signature *out);
/* The bytes of a memory item. */
uint64_t peal_signature_bytes(const struct signature_item *item, uint32_t ranks);
/* Where it is on a rank: windows and shared parameters have an address per rank. */
uint64_t peal_signature_address(const struct signature *s, uint32_t item, uint32_t rank,
                                uint32_t ranks);
uint64_t peal_signature_window(uint32_t rank);
bool peal_signature_is_shared(const struct signature_item *item);

/* --- pipes.c --- */

struct pipe_table {
    const char *name;
    struct pipe_row {
        char op[32];
        uint8_t pipe;
    } rows[256];
    uint32_t nrows;
    uint8_t other;                    /* the pipe of what has no row */
    bool drains_before, drains_after; /* what a notify does to all pipes */
    uint64_t memory[REC_SPACES];
};
extern const char *const peal_pipe_names[REC_PIPES];
extern const char *const peal_space_names[REC_SPACES];
/* `name` is a file or a built-in table. False after a message. */
bool peal_pipes_read(struct peal_cli *cli, const char *name, struct pipe_table *out);
uint8_t peal_pipes_find(const struct pipe_table *t, const char *op);

/* --- compile.c, child.c --- */

/* A kernel that was compiled. Release it in every case. */
struct compiled {
    struct peal_cli *cli;
    char folder[64]; /* "" : none */
    const char *path;
    PEAL_VEC(struct recorded_line) lines; /* of scalar accesses, by pc */
};
struct recorded_line {
    uint64_t pc;
    const char *file;
    uint32_t line;
};
/* False after a message; *code is the exit code. */
bool peal_compile(struct peal_cli *cli, const char *path, struct compiled *out, int *code);
void peal_compile_release(struct compiled *c);
/* Looks up the places of these offsets in the object, as far as the system can. */
void peal_compile_places(struct compiled *c, const uint64_t *pcs, size_t n);
const struct recorded_line *peal_compile_place(const struct compiled *c, uint64_t pc);

/* What a rank's process wrote. */
struct recording {
    const unsigned char *at; /* mapped; NULL: none */
    size_t len;
    const char *error; /* the process did not end as it should; in the arena */
};
void peal_child_run(struct peal_cli *cli, const struct compiled *c, const char *entry,
                    struct rec_job *job, const struct signature *s, struct recording *out);
void peal_child_release(struct recording *recording);

/* --- decode.c, recorded.c --- */

/* Bytes that a rank uses. Memory that only a rank can see has that rank as its space. */
struct used_bytes {
    uint32_t space; /* rank + 1, or 0: all ranks see it */
    uint32_t line;
    uint64_t lo, hi;
    const char *file;
};

/* The recordings of all ranks of a kernel. */
struct recorded {
    struct peal_cli *cli;
    const char *path, *entry;
    const struct peal_recorded_options *options;
    const struct signature *signature;
    const struct pipe_table *pipes;
    struct compiled *compiled;
    uint32_t ranks, root;
    enum peal_reduction op;
    uint32_t launches;
    struct recording *at;                /* [rank] */
    bool polls;                          /* some wait stands for a loop that polled */
    bool has_contents;                   /* --input was given */
    bool acts_on_data;                   /* for the given contents only */
    PEAL_VEC(struct used_bytes) known;   /* loads of memory whose contents were given ... */
    PEAL_VEC(struct used_bytes) written; /* ... and whatever is written, if there are contents */
    /* A barrier of all pipes is tried before what is done at this line; 0: none. */
    uint32_t barrier_line;
    const char *barrier_file;
};
/* After all ranks: is some load of known contents one of bytes that the kernel writes? Then what the
 * process found there need not be what the kernel would find: refuses it. */
void peal_decode_check_known(struct recorded *all, struct peal_record *record);
/* Gives the events of a rank to the record, as lanes of pipes or as one lane per block. */
void peal_decode_rank(struct recorded *all, uint32_t rank, bool by_pipe,
                      struct peal_record *record);

/* Runs the kernel for all ranks. False after a message. Release `all` in both cases. */
bool peal_recorded_run(struct recorded *all);
/* A plan of one level, freed with free. NULL: `error` says why, with file and line. */
struct peal_plan *peal_recorded_plan(struct recorded *all, bool by_pipe, char *error,
                                     size_t error_cap);
void peal_recorded_release(struct recorded *all);

#endif
