/* SPDX-License-Identifier: Apache-2.0 */
/* Options as tables: a row says how an option is written, what it takes and where its value goes.
 *
 *   struct plan_options { struct peal_kernel_options kernel; bool json; };
 *   static const struct peal_option options[] = {
 *       PEAL_KERNEL_ROWS(struct plan_options, kernel, ""),
 *       {"json", 0, PEAL_OPTION_FLAG, offsetof(struct plan_options, json), NULL,
 *        "print JSON", 0, 0},
 *       {NULL},
 *   };
 *
 * Written `--name VALUE`, `--name=VALUE`, `-x VALUE` or `-xVALUE`; `--` ends the options.
 */
#ifndef PEAL_CLI_OPTIONS_H
#define PEAL_CLI_OPTIONS_H

#include "base/base.h"

#include <stdint.h>

enum peal_option_kind {
    PEAL_OPTION_FLAG,      /* bool */
    PEAL_OPTION_INT,       /* int64_t, lowest .. highest */
    PEAL_OPTION_SIZE,      /* uint64_t; takes K, M, G */
    PEAL_OPTION_LIST,      /* struct peal_ints, the same: 4, 2..16, 0..64+8, 8..64K*2, 2,3,8 */
    PEAL_OPTION_STRING,    /* const char * */
    PEAL_OPTION_PAIRS,     /* struct peal_pairs: KEY=VALUE, may be repeated */
    PEAL_OPTION_DTYPE,     /* enum peal_dtype */
    PEAL_OPTION_REDUCE,    /* enum peal_reduction */
    PEAL_OPTION_OPERATION, /* struct peal_operation */
    PEAL_OPTION_CHOICE     /* int: which of the words in `value`, "spin|yield|futex" */
};

struct peal_ints {
    int64_t *at;
    size_t len; /* 0 = not given, or `all` */
    bool all;   /* the word, for an option whose value is called PEAL_OPTION_OR_ALL */
};

/* A reduce operation, or the name of a user-defined one: `mine`, or `FILE.peal:mine`. */
struct peal_operation {
    enum peal_reduction reduce; /* PEAL_USER_REDUCTION: `user` */
    const char *user;           /* or NULL */
    bool given;                 /* by the command line, not by default */
};

#define PEAL_OPTION_OR_ALL "P|all"

struct peal_pair {
    const char *key;
    const char *value;
};

struct peal_pairs {
    struct peal_pair *at;
    size_t len;
};

/* A range or list gives at most this many values. */
enum { PEAL_OPTION_MAX_VALUES = 65536 };

struct peal_option {
    const char *name; /* without dashes; NULL ends the table */
    char letter;      /* 0 = none */
    enum peal_option_kind kind;
    size_t offset;     /* into the command's options struct */
    const char *value; /* what help calls the value: "P", "FILE"; CHOICE: the words */
    const char *help;
    int64_t lowest, highest; /* INT, LIST; both 0 = any number from 0 */
};

/* Is this a row of a table, and not its end? Commands without options have no table. */
static inline bool peal_option_exists(const struct peal_option *row)
{
    return row && row->name;
}

/* The arguments between the options, in order. Points into argv. */
struct peal_args {
    char **at;
    int len;
};

/* Parses argv[0 .. argc-1] (without the program name) by the table into `target`, which holds the
 * defaults. Lists, pairs and args live in the arena, strings in argv. False: `error` has a
 * message. */
bool peal_options_parse(const struct peal_option *table, bool stops_at_arg, int argc, char **argv,
                        void *target, struct peal_arena *arena, struct peal_args *args,
                        struct peal_text *error);

/* Reads one value like LIST. False: `error` has a message. */
bool peal_ints_parse(const char *text, struct peal_arena *arena, struct peal_ints *out,
                     struct peal_text *error);

/* The table as help text, at most 80 columns wide. */
void peal_options_help(const struct peal_option *table, struct peal_text *out);
/* Wraps paragraphs (separated by empty lines) at 80 columns; lines that start with a space are
 * kept. */
void peal_help_wrap(const char *text, struct peal_text *out);
/* Breaks lines of Peal text, or of a plan, that are wider than `width`, without changing their
 * meaning. */
void peal_code_wrap(const char *code, size_t width, struct peal_text *out);

#endif
