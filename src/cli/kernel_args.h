/* SPDX-License-Identifier: Apache-2.0 */
/* The options that bind a kernel's parameters, shared by every command that makes plans.
 *
 * How dimensions are bound: --count gives its value to every dimension that --set does not name.
 * `T[n]` with --count 1K has n = 1024; `T[rows, cols]` with --set cols=64 --count 32 has 32 rows.
 * Other integer parameters come from --set, except `root`, which has an option of its own.
 */
#ifndef PEAL_CLI_KERNEL_ARGS_H
#define PEAL_CLI_KERNEL_ARGS_H

#include "lang/lang.h"
#include "plan/plan.h"
#include "cli/cli.h"

enum peal_record_level { PEAL_LEVEL_BOTH, PEAL_LEVEL_CORE, PEAL_LEVEL_PIPE };

/* Options of commands that take such kernels. */
struct peal_recorded_options {
    const char *entry, *args, *then, *implements, *pipes;
    int level; /* enum peal_record_level */
    int64_t blocks;
    struct peal_pairs inputs; /* NAME=FILE: contents that the kernel may act on */
    /* of programs in Python */
    int64_t calls; /* 0: not given */
    int between, model;
    bool in_order_copies;
    const char *
        tries; /* what the recorder changes to see whether it helps: lines of KEY=VALUE; not an option */
    char **arguments; /* of the program; not an option */
    int narguments;
};

/* What only programs in Python have. */
#define PEAL_PROGRAM_ROWS(type, member)                                                            \
    {"calls",                                                                                      \
     0,                                                                                            \
     PEAL_OPTION_INT,                                                                              \
     offsetof(type, member.calls),                                                                 \
     "N",                                                                                          \
     "PROGRAM.py: how often 'for _ in peal.calls()' repeats (default 3); 1: what a second call "   \
     "finds is not asked",                                                                         \
     1,                                                                                            \
     64},                                                                                          \
        {"between",                                                                                \
         0,                                                                                        \
         PEAL_OPTION_CHOICE,                                                                       \
         offsetof(type, member.between),                                                           \
         PEAL_PROGRAM_BETWEEN,                                                                     \
         "PROGRAM.py: what the host does between calls",                                           \
         0,                                                                                        \
         0},                                                                                       \
        {"model",                                                                                  \
         0,                                                                                        \
         PEAL_OPTION_CHOICE,                                                                       \
         offsetof(type, member.model),                                                             \
         PEAL_PROGRAM_MODELS,                                                                      \
         "PROGRAM.py: whose memory orders and copies are meant (auto: pallas-tpu if it imports "   \
         "jax, otherwise triton-nvidia)",                                                          \
         0,                                                                                        \
         0},                                                                                       \
    {                                                                                              \
        "in-order-copies", 0, PEAL_OPTION_FLAG, offsetof(type, member.in_order_copies), NULL,      \
            "PROGRAM.py: copies from one rank to another arrive in the order of their starts", 0,  \
            0                                                                                      \
    }
#define PEAL_PROGRAM_BETWEEN "none|barrier"
#define PEAL_PROGRAM_MODELS "auto|triton-nvidia|triton-amd|pallas-tpu"

#define PEAL_RECORDED_ROWS(type, member)                                                           \
    {"entry",                                                                                      \
     0,                                                                                            \
     PEAL_OPTION_STRING,                                                                           \
     offsetof(type, member.entry),                                                                 \
     "NAME",                                                                                       \
     "KERNEL.cpp: the function to record (default kernel_entry); peal verify takes several",       \
     0,                                                                                            \
     0},                                                                                           \
        {"args",                                                                                   \
         0,                                                                                        \
         PEAL_OPTION_STRING,                                                                       \
         offsetof(type, member.args),                                                              \
         "LIST",                                                                                   \
         "KERNEL.cpp: what it is called with: 'in x: f32[256], out y: f32[256], window s: 2K "     \
         "zeroed, nranks, ctx'; PROGRAM.py: its arguments, quoted as in a shell",                  \
         0,                                                                                        \
         0},                                                                                       \
        {"then",                                                                                   \
         0,                                                                                        \
         PEAL_OPTION_STRING,                                                                       \
         offsetof(type, member.then),                                                              \
         "LIST",                                                                                   \
         "KERNEL.cpp: kernels that follow on the same memory: 'second(x, s, ctx), third'",         \
         0,                                                                                        \
         0},                                                                                       \
        {"implements",                                                                             \
         0,                                                                                        \
         PEAL_OPTION_STRING,                                                                       \
         offsetof(type, member.implements),                                                        \
         "NAME",                                                                                   \
         "KERNEL.cpp, PROGRAM.py: what it promises: allreduce, ... (default: nothing)",            \
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
        PEAL_PROGRAM_ROWS(type, member),                                                           \
    {                                                                                              \
        "input", 0, PEAL_OPTION_PAIRS, offsetof(type, member.inputs), "NAME=FILE",                 \
            "KERNEL.cpp, PROGRAM.py: contents of memory on all ranks, as bytes, for kernels "      \
            "that act on data; the verdict is then for these contents",                            \
            0, 0                                                                                   \
    }

struct peal_kernel_options {
    struct peal_ints ranks;  /* -n; empty = not given */
    struct peal_ints counts; /* --count; empty = not given */
    const char *kernel;      /* --kernel; NULL = the file's last, or the built-in named */
    enum peal_dtype dtype;
    struct peal_operation op;
    struct peal_ints roots; /* --root; empty = 0 */
    int64_t depth;
    uint64_t slot_bytes;
    bool in_place;
    const char *nodes;   /* --nodes; NULL = not given */
    const char *machine; /* -m: whose ranks, levels and queues are meant; NULL = none */
    struct peal_pairs set;
    struct peal_recorded_options recorded;
    /* Ranks of a kernel in Python, if neither --ranks nor its file names them; 0: 4. Not an option. */
    uint32_t fallback;
    uint32_t levels[2]; /* and the PEs of a cube and cubes of a SIP that it sees; 0: those of -m */
};

/* The count where none is given: a kilobyte of f32. */
enum { PEAL_KERNEL_COUNT = 256 };

#define PEAL_KERNEL_DEFAULTS                                                                       \
    {                                                                                              \
        .dtype = PEAL_F32, .op = { PEAL_SUM, NULL, false }                                         \
    }

/* The rows, for a struct `type` with a member `member` of type struct peal_kernel_options; no_ranks
 * is the help text for the case that -n is not given. */
#define PEAL_KERNEL_ROWS(type, member, no_ranks)                                                   \
    PEAL_KERNEL_ROWS_WITH(type, member, "P", no_ranks, "256", " (default 2)",                      \
                          " (default: the largest payload)", "the last one")
/* The same for peal verify: -n also accepts `all`, and more is claimed by default. */
#define PEAL_KERNEL_ROWS_VERIFY(type, member, no_ranks)                                            \
    PEAL_KERNEL_ROWS_WITH(type, member, PEAL_OPTION_OR_ALL, no_ranks, "several, see below",        \
                          " (default 2)", " (default: the largest payload)", "all of them")
/* The same, where a machine provides what is not given. */
#define PEAL_KERNEL_ROWS_MACHINE(type, member)                                                     \
    PEAL_KERNEL_ROWS_WITH(type, member, "P", " (default: ccl.ranks, or one per PE)", "256",        \
                          " (default: the machine's ipcq.slots)",                                  \
                          " (default: the machine's ipcq.slot_bytes)", "the last one")
#define PEAL_KERNEL_ROWS_WITH(type, member, ranks_value, no_ranks, no_count, no_depth, no_slot,    \
                              no_kernel)                                                           \
    {"ranks",                                                                                      \
     'n',                                                                                          \
     PEAL_OPTION_LIST,                                                                             \
     offsetof(type, member.ranks),                                                                 \
     ranks_value,                                                                                  \
     "number of ranks" no_ranks,                                                                   \
     1,                                                                                            \
     PEAL_PLAN_MAX_RANKS},                                                                         \
        {"count",                                                                                  \
         'c',                                                                                      \
         PEAL_OPTION_LIST,                                                                         \
         offsetof(type, member.counts),                                                            \
         "N",                                                                                      \
         "elements: binds every dimension that --set does not name (default " no_count ")",        \
         0,                                                                                        \
         INT64_MAX},                                                                               \
        {"dtype",                                                                                  \
         't',                                                                                      \
         PEAL_OPTION_DTYPE,                                                                        \
         offsetof(type, member.dtype),                                                             \
         "T",                                                                                      \
         "the type T: f16 bf16 f32 f64 i8 u8 i32 i64 (default f32)",                               \
         0,                                                                                        \
         0},                                                                                       \
        {"op",                                                                                     \
         0,                                                                                        \
         PEAL_OPTION_OPERATION,                                                                    \
         offsetof(type, member.op),                                                                \
         "OP",                                                                                     \
         "the reduce operation: sum prod max min avg and or xor, or a user-defined one of the "    \
         "file, or FILE.peal:NAME (default sum)",                                                  \
         0,                                                                                        \
         0},                                                                                       \
        {"root",                                                                                   \
         'r',                                                                                      \
         PEAL_OPTION_LIST,                                                                         \
         offsetof(type, member.roots),                                                             \
         "R",                                                                                      \
         "the root, or several, one after the other: 0..3 (default 0)",                            \
         0,                                                                                        \
         PEAL_PLAN_MAX_RANKS - 1},                                                                 \
        {"depth",                                                                                  \
         0,                                                                                        \
         PEAL_OPTION_INT,                                                                          \
         offsetof(type, member.depth),                                                             \
         "D",                                                                                      \
         "slots of a channel" no_depth,                                                            \
         1,                                                                                        \
         65536},                                                                                   \
        {"slot-bytes",                                                                             \
         0,                                                                                        \
         PEAL_OPTION_SIZE,                                                                         \
         offsetof(type, member.slot_bytes),                                                        \
         "B",                                                                                      \
         "bytes of a channel's slot; larger payloads are split" no_slot,                           \
         0,                                                                                        \
         0},                                                                                       \
        {"in-place",                                                                               \
         0,                                                                                        \
         PEAL_OPTION_FLAG,                                                                         \
         offsetof(type, member.in_place),                                                          \
         NULL,                                                                                     \
         "the result takes the place of the input",                                                \
         0,                                                                                        \
         0},                                                                                       \
        {"nodes",                                                                                  \
         0,                                                                                        \
         PEAL_OPTION_STRING,                                                                       \
         offsetof(type, member.nodes),                                                             \
         "SHAPE",                                                                                  \
         "which ranks share a node: 5+3, 2x4, with cubes 2x4x16, or every rank's node, 0,1,1,0 "   \
         "(default: one node)",                                                                    \
         0,                                                                                        \
         0},                                                                                       \
        {"set",                                                                                    \
         's',                                                                                      \
         PEAL_OPTION_PAIRS,                                                                        \
         offsetof(type, member.set),                                                               \
         "NAME=V",                                                                                 \
         "bind a dimension or an integer parameter; lists for arrays; may be repeated",            \
         0,                                                                                        \
         0},                                                                                       \
    {                                                                                              \
        "kernel", 'k', PEAL_OPTION_STRING, offsetof(type, member.kernel), "NAME",                  \
            "which kernel of the file (default: " no_kernel ")", 0, 0                              \
    }

/* -m of commands that make plans and do not simulate. */
#define PEAL_KERNEL_MACHINE_ROW(type, member)                                                      \
    {                                                                                              \
        "machine", 'm', PEAL_OPTION_STRING, offsetof(type, member.machine), "M",                   \
            "as on this machine, a file or a built-in one: its number of ranks, its levels as "    \
            "nodes and cubes, the slots of its queues",                                            \
            0, 0                                                                                   \
    }

/* peal_program_open, which also knows the museum's kernels where there are no such files. */
enum peal_status peal_kernel_program(const char *argument, struct peal_diags *diags,
                                     struct peal_program **out);

/* The kernel that a command names: `argument` is a file or a built-in kernel, --kernel selects. If
 * it does not, and the file has several, a line on stderr says which one was taken.
 * NULL after a message (PEAL_EXIT_OTHER). The program owns the kernel; close it with
 * peal_program_close. */
const struct peal_kernel *peal_kernel_open(const struct peal_cli *cli, const char *argument,
                                           const struct peal_kernel_options *options,
                                           struct peal_program **program);

/* The same for a command that does not make do with the last kernel: it says nothing if there are
 * several. `diags` has what was printed; the texts that it points into are gone. */
const struct peal_kernel *peal_kernel_open_quietly(const struct peal_cli *cli, const char *argument,
                                                   const struct peal_kernel_options *options,
                                                   struct peal_diags *diags,
                                                   struct peal_program **program);

/* False after a message: a user-defined reduction was given where no text can declare it. */
bool peal_operation_is_known(const struct peal_cli *cli, const struct peal_operation *op);

/* The first root, which is the only one unless a command takes several. */
int64_t peal_kernel_root(const struct peal_kernel_options *options);
/* For commands that do one thing after the other: the same options with one of the roots. How many
 * there are, at least 1, is returned. */
size_t peal_kernel_nth_root(const struct peal_kernel_options *options, size_t i,
                            struct peal_kernel_options *out);

/* What the options give by name, for peal_plan_make and for a claim. The number of ranks (0, or
 * what --nodes or -m places) and the count are left to the caller. Values live in the command's arena.
 * False after a message (a usage error: PEAL_EXIT_USAGE). */
bool peal_kernel_request(const struct peal_cli *cli, const struct peal_kernel *kernel,
                         const struct peal_kernel_options *options, struct peal_plan_request *out);
/* The same for one number of ranks and one count, which are set; the root must be a rank. */
bool peal_kernel_request_one(const struct peal_cli *cli, const struct peal_kernel *kernel,
                             const struct peal_kernel_options *options, uint32_t nranks,
                             int64_t count, struct peal_plan_request *out);
/* The bindings of such a request, for callers that change them before making plans. */
bool peal_kernel_bind(const struct peal_cli *cli, const struct peal_kernel *kernel,
                      const struct peal_kernel_options *options, uint32_t nranks, int64_t count,
                      struct peal_bind *out);

/* The value of a list option of which a command takes only one; `fallback` if it was not given
 * (negative: the option is required). False after a message. */
bool peal_kernel_one(const struct peal_cli *cli, const struct peal_ints *list, const char *name,
                     int64_t fallback, int64_t *out);

/* --nodes, or the levels of -m: how many ranks are placed, and where; 0 and NULL if neither is
 * given. False after a message. */
bool peal_kernel_placement(const struct peal_cli *cli, const struct peal_kernel_options *options,
                           struct peal_places *out);
/* The number of ranks of a command: -n, else what --nodes or -m places, else `fallback` (negative: -n is
 * required). False after a message. */
bool peal_kernel_ranks(const struct peal_cli *cli, const struct peal_kernel_options *options,
                       int64_t fallback, int64_t *out);
/* The platform's machine (may be NULL) is that of -m where neither -m nor --nodes nor -n all is given. */
void peal_kernel_take_machine(struct peal_kernel_options *options, const char *platform);
/* As many ranks as a machine, a file or a built-in one, is made for. 0 after a message. */
uint32_t peal_kernel_machine_ranks(const struct peal_cli *cli, const char *path);
/* Does --nodes, if it is given, place this many ranks? False after a message. */
bool peal_kernel_places(const struct peal_cli *cli, const struct peal_kernel_options *options,
                        uint32_t placed, int64_t nranks);

#endif
