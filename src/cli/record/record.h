/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in C++ for tile accelerators, recorded: `peal verify kernel.cpp`.
 *
 *   signature.c  --args: what the kernel is called with, and where its memory is
 *   beside.c     KERNEL.yaml beside the kernel: options that the command line does not have
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

#include "cli/kernel_args.h"
#include "cli/record/events.h"
#include "plan/plan.h"

#include <peal/record.h>

/* The recording headers, embedded; the name has '+' for '/'. */
extern const struct peal_source peal_record_texts[];
extern const size_t peal_record_text_count;

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
    bool pointer;   /* its address is passed, and not a descriptor */
    enum peal_dtype dtype;
    uint32_t ndims;
    int64_t shape[5];            /* elements, ... */
    bool per_rank[5];            /* ... times the number of ranks */
    int64_t value;               /* number */
    struct peal_source contents; /* --input, or text NULL */
};

/* A kernel that follows the first one on the same memory: --then. */
struct signature_call {
    const char *entry, *file; /* NULL: that of the first kernel */
    const char *symbol;       /* the entry's name in the object: see compile.c */
    uint32_t nargs;
    uint8_t args[REC_MAX_ARGS]; /* items */
};

struct signature {
    struct signature_item items[REC_MAX_ARGS];
    uint32_t len, first; /* the first kernel takes the first of them */
    struct signature_call then[REC_MAX_CALLS - 1];
    uint32_t nthen;
    bool plain; /* the kernel takes its arguments one by one, not in one array */
};

/* The bytes of a memory item. */
uint64_t peal_signature_bytes(const struct signature_item *item, uint32_t ranks);
/* Where it is on a rank: windows and shared parameters have an address per rank. */
uint64_t peal_signature_address(const struct signature *s, uint32_t item, uint32_t rank,
                                uint32_t ranks);
uint64_t peal_signature_window(uint32_t rank);
bool peal_signature_is_shared(const struct signature_item *item);

/* beside.c: adds what KERNEL.yaml beside the kernel says to the options, if --args is not given. False
 * after a message. */
bool peal_beside_read(const struct peal_cli *cli, const char *kernel,
                      struct peal_recorded_options *options);

/* --- pipes.c --- */

struct pipe_table {
    const char *name;
    struct pipe_row {
        char op[32];
        uint8_t pipe;
        char roles[32]; /* of an intrinsic that the headers do not have; "": none */
    } rows[256];
    uint32_t nrows;
    uint8_t other;                    /* the pipe of what has no row */
    bool drains_before, drains_after; /* what a notify does to all pipes */
    uint64_t memory[REC_SPACES];
    struct pipe_define {
        char name[32];
        char core; /* v: of the vector unit, c: of the matrix unit, a: of all */
    } defines[16];
    uint32_t ndefines;
};
extern const char *const peal_pipe_names[REC_PIPES];
extern const char *const peal_space_names[REC_SPACES];
/* `name` is a file or a built-in table. False after a message. */
bool peal_pipes_read(const struct peal_cli *cli, const char *name, struct pipe_table *out);
/* The pipe of an op that reads core memory `space`: NAME.SPACE, or NAME. */
uint8_t peal_pipes_find(const struct pipe_table *t, const char *op, uint32_t space);

/* --- compile.c, child.c --- */

/* A kernel that was compiled. Release it in every case. */
struct compiled {
    const struct peal_cli *cli;
    char folder[PEAL_CLI_FOLDER]; /* "" : none */
    const char *path;
    PEAL_VEC(struct recorded_line) lines; /* of places in it, sorted by pc */
};
struct recorded_line {
    uint64_t pc;
    const char *file;
    uint32_t line;
    bool is_users; /* not of a header of the system's, nor of those for recording */
};
/* The files of all kernels in sequence, the first of which is `path`. False after a message; *code is the
 * exit code. */
bool peal_compile(const struct peal_cli *cli, const char *path, const struct pipe_table *pipes,
                  const struct signature *s, struct compiled *out, int *code);
void peal_compile_release(struct compiled *c);
/* Writes a file into the folder, and makes the folders that its name has. */
bool peal_compile_write(const struct compiled *c, const char *name, const char *text, size_t len);
/* Looks up the places of these offsets in the object, as far as the system can: sorted, each once. */
void peal_compile_places(struct compiled *c, const uint64_t *pcs, size_t n);
const struct recorded_line *peal_compile_place(const struct compiled *c, uint64_t pc);

/* --- source.c --- */

bool peal_source_write_forwards(const struct compiled *c);
bool peal_source_write_defines(const struct compiled *c, const struct pipe_table *t,
                               const struct peal_text *text);
bool peal_source_has_launches(const struct peal_text *text);
void peal_source_without_launches(const char *path, const struct peal_text *text,
                                  struct peal_text *out);
/* The symbol of the only function of that name with C++ linkage, or of the only instance of that template:
 * with the given arguments, if the name has "<float, 256>". False: none, or several. */
bool peal_source_find_name(const char *path, const char *name, char *(*demangle)(const char *),
                           struct peal_text *out);

/* What a rank's process wrote. */
struct recording {
    const unsigned char *at; /* mapped; NULL: none */
    size_t len;
    const char *error; /* the process did not end as it should; in the arena */
};
void peal_child_run(const struct peal_cli *cli, const struct compiled *c, const char *entry,
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
    const struct peal_cli *cli;
    const char *path, *entry;
    const struct peal_recorded_options *options;
    const struct signature *signature;
    const struct pipe_table *pipes;
    struct compiled *compiled;
    uint32_t ranks, root;
    enum peal_reduction op;
    uint32_t launches;
    struct recording *at; /* [rank] */
    bool polls;           /* some wait stands for a loop that polled */
    bool reads_clock;
    const char *beyond;                  /* a tile that is beyond the end of core memory, or NULL */
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

/* A kernel in C++ as a plan, for commands that take plans of files: by pipe with --level pipe. False
 * after a message; *code is the exit code. The plan is freed with free. */
bool peal_recorded_open(const struct peal_cli *cli, const char *path,
                        const struct peal_kernel_options *options, struct peal_plan **out,
                        int *code);
/* False after a message: --args or --then is missing or wrong, or --input names no memory. */
bool peal_signature_read(const struct peal_cli *cli, const struct peal_recorded_options *options,
                         struct signature *out);

#endif
