/* SPDX-License-Identifier: Apache-2.0 */
/* The options of peal verify, and what it does with one kernel. */
#ifndef PEAL_CLI_VERIFY_KERNEL_H
#define PEAL_CLI_VERIFY_KERNEL_H

#include "cli/kernel_args.h"
#include "verify/verify.h"

enum { PEAL_ORDER_WINDOWS, PEAL_ORDER_PAIRWISE };

/* Who wants to know of each kernel of a file, before it is verified and when its verdict is known: exit
 * code, and a line such as "ring: proved at 2..5 ranks\n". One that has no plan begins and does not end. */
struct peal_verify_watch {
    void (*begins)(void *context, const char *kernel);
    void (*ended)(void *context, const char *kernel, int code, const char *line);
    void *context;
    const char *after; /* kernels up to this one are left out; NULL: none is */
};

struct peal_verify_settings {
    struct peal_kernel_options kernel;
    int64_t launches, states, jobs;
    uint64_t memory;
    int order;
    bool json, advice, alone, no_cache, plain, flush, allow_sample, fix, fix_all, quick;
    const char *html, *require, *fault, *sarif, *certificate, *check, *output;
    /* Not options: set by commands. */
    struct peal_json *results; /* of --sarif, or NULL */
    const struct peal_verify_watch *watch;
};

/* What is collected while the kernels of a file are verified: a line, or an object, for each. */
struct peal_verify_lines {
    struct peal_text lines;
    struct peal_json *json; /* an open array, or NULL */
    int worst;
};

/* Threads: -j, or one per core. */
uint32_t peal_verify_workers(const struct peal_verify_settings *o);
/* The claim that the options make about a kernel, proved without a word. False after a message;
 * release the claim in both cases. */
bool peal_verify_prove(struct peal_cli *cli, const struct peal_verify_settings *o,
                       const struct peal_kernel *kernel, struct peal_claim *out);
/* --fix: changes the file, or writes --output, if a change proves the kernels of these names. Returns
 * the exit code. */
int peal_verify_fix(struct peal_cli *cli, const struct peal_verify_settings *o, const char *path,
                    const char *const *names, size_t nnames);
/* The same for a file with an error in its text, as one from which a notify or a wait was lost. */
int peal_verify_fix_text(struct peal_cli *cli, const struct peal_verify_settings *o,
                         const char *path);
/* Proves the kernel and reports; returns the exit code. several: NULL, or where the kernel of a file
 * with others gets its line; a report then follows only if it is not proved. */
int peal_verify_kernel(struct peal_cli *cli, const struct peal_verify_settings *o,
                       const struct peal_kernel *kernel, const char *file,
                       struct peal_verify_lines *several);

#endif
