/* SPDX-License-Identifier: Apache-2.0 */
/* cli: the command line. Turns arguments into calls of the other folders and results into text.
 *
 *   commands.def   the list of commands, in the order help shows them
 *   cmd/NAME.c     one command: its options (a table), its help, its run function
 *   main.c         finds the command, parses, runs, ends with its exit code
 *   options.h      tables of options: parsing and help come from the same rows
 *   kernel_args.h  the options that name and bind a kernel, shared by plan, verify, sim, run, ...
 *   progress.h     a line with an estimate on a terminal, nothing in a pipe
 *   help.c, manpage.c, completion.c  what users read about commands, made from the tables
 *   jobs.h         jobs on this host, for ps and doctor; process.h: what their processes do
 *   wrap.c         lines of code broken to a terminal's width
 *
 * What commands share, or what is too long for one file of cmd/:
 *
 *   run/      ranks as processes or threads, on this host and on others; data for them, and whether
 *             results are what the contract says (contract_check.h)
 *   sim/      simulations as jobs, their reports        verify/  reports of verdicts
 *   ci/       what a change of a Git repository could break
 *   machine/  this host as a machine
 *   import/   files of other engines as arguments       graph/   files of task graphs, traces
 *   record/   kernels in C++ as arguments: compiled, run, recorded
 *   museum/   the texts of museum/, found by name
 *   page/     what --html writes: results as report's neutral description, one file per kind
 *
 * To add a command: a line in commands.def and a file cmd/NAME.c that defines peal_cmd_NAME. Start
 * reading at cmd/plan.c.
 */
#ifndef PEAL_CLI_CLI_H
#define PEAL_CLI_CLI_H

#include "base/base.h"
#include "cli/options.h"

#include <peal/types.h>

/* Exit codes of `peal`. */
enum peal_exit {
    PEAL_EXIT_OK = 0,    /* done; proved; the result is right */
    PEAL_EXIT_NO = 1,    /* the answer is no: refuted, rejected, a wrong result */
    PEAL_EXIT_USAGE = 2, /* the command line is wrong; nothing was done */
    PEAL_EXIT_OTHER = 3  /* no answer: unreadable input, not decided, the system refused */
};

struct peal_command;

/* What a command may use while it runs. */
struct peal_cli {
    const struct peal_command *command;
    struct peal_arena *arena; /* freed when the command has ended */
    bool color;               /* on stdout: it is a terminal, and NO_COLOR is not set */
    bool color_err;           /* the same for stderr */
    size_t width;             /* columns of that terminal, or $COLUMNS; 0 = no limit */
};

/* What the arguments of a command name, for completion in shells. */
enum peal_argument { PEAL_ARGUMENT_OTHER, PEAL_ARGUMENT_KERNEL, PEAL_ARGUMENT_COLLECTIVE };

struct peal_command {
    const char *name;
    const char *args;                  /* as shown after the options: "KERNEL", "FILE...", "" */
    enum peal_argument arg_names;      /* what those are */
    const char *summary;               /* one line, lower case, no full stop */
    const char *details;               /* paragraphs for `peal help NAME`; NULL = none */
    const struct peal_option *options; /* ends with a row without a name; NULL = none */
    const void *defaults;              /* the options struct with its default values */
    size_t size;                       /* of that struct */
    int min_args, max_args;            /* max_args < 0: any number */
    bool stops_at_arg; /* options end at the first argument: what follows belongs to it */
    int (*run)(struct peal_cli *cli, const void *options, char **args, int nargs);
};

#define COMMAND(name) extern const struct peal_command peal_cmd_##name;
#include "cli/commands.def"
#undef COMMAND

/* All commands, and how many. */
const struct peal_command *const *peal_commands(size_t *count);
/* NULL when there is none of that name. */
const struct peal_command *peal_command_find(const char *name);

/* Each prints a message to stderr and returns the exit code to end with. */
int peal_cli_usage(const struct peal_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int peal_cli_fail(const struct peal_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A line on stderr that is no error. */
void peal_cli_note(const struct peal_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the diagnostics, or the status as text if there are none. */
int peal_cli_diags(const struct peal_cli *cli, enum peal_status status,
                   const struct peal_diags *diags);

/* Ends the output. False after a message: some of it could not be written. Each process that prints
 * calls it once, as its last action. */
bool peal_cli_flush(const struct peal_cli *cli);

/* Writes the text to stdout, releases it and returns `code`, or PEAL_EXIT_OTHER if the text could
 * not be made. Errors in writing are found at the end, see peal_cli_flush. */
int peal_cli_print(const struct peal_cli *cli, struct peal_text *text, int code);

/* The same for Peal text and plans: lines wider than a terminal are broken. */
int peal_cli_print_code(const struct peal_cli *cli, struct peal_text *text, int code);

/* Reads a whole file into the command's arena; false after a message. Limited to 256 MiB. "-" is
 * stdin; where there is no museum/NAME/FILE, the museum's text of that name is read. */
bool peal_cli_read(const struct peal_cli *cli, const char *path, struct peal_source *out);
/* Puts a new file in the place of an existing one, in one step and with its permissions. `backup`:
 * the name under which the old one is kept, or NULL. False: errno says why (EEXIST: the backup). Any
 * thread may call it. */
bool peal_cli_replace(const char *path, const char *text, size_t len, const char *backup);
/* A new folder that only this user can enter, in TMPDIR or /tmp. However the command ends, it is removed. False
 * after a message; then `out` is "". */
enum { PEAL_CLI_FOLDER = 64 };
bool peal_cli_folder_open(const struct peal_cli *cli, char out[PEAL_CLI_FOLDER]);
/* Removes it with everything in it. "" is ignored. */
void peal_cli_folder_remove(const char *folder);
/* Writes a whole file; false after a message. "-" is stdout. */
bool peal_cli_write(const struct peal_cli *cli, const char *path, const struct peal_text *text);

#endif
