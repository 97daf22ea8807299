/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify on files of other formats: one or thousands, several at a time.
 *
 * A file is one task: read, opened, verified in every way in which it says it is launched, judged
 * as its engine would, closed. Only what the reports need is kept.
 */
#ifndef PEAL_CLI_IMPORT_FILES_H
#define PEAL_CLI_IMPORT_FILES_H

#include "cli/import/import_args.h"
#include "cli/verify/require.h"
#include "verify/verify.h"

#include <stdatomic.h>

/* What a step of a program's counterexample belongs to. */
struct peal_step_place {
    uint32_t call;    /* from 1 on; 0: none */
    const char *lane; /* "program 3", or NULL */
};

/* One way to launch a file. */
struct peal_file_run {
    bool in_place;
    bool pieces; /* the answer is for chunks that are sent one by one */
    uint64_t count;
    struct peal_verification *answer; /* NULL: no plan */
    const char *why;                  /* if there is no answer: the diagnostics */
    bool refused;               /* a recording whose front end refused a line: nothing is decided */
    uint32_t gpu_line, gpu_col; /* where the rank with a wrong result begins; 0 = another fault */
    uint32_t least_depth;       /* after a deadlock: the least depth without one, 0 = not known */
    struct peal_step_place *steps; /* of a program's counterexample; NULL: there is none */
    bool several_lanes;            /* some rank has several */
    struct peal_plan *plan;        /* kept for a page, or NULL */
    bool never;                    /* after a deadlock: no depth helps */
};

struct peal_file_task {
    const char *file;          /* what is read */
    const char *path;          /* as reports name it */
    struct peal_source source; /* the name is kept, the text only while the task runs */
    uint64_t bytes;
    struct peal_import_facts facts; /* texts copied */
    const char *unreadable;         /* NULL, or why: diagnostics or the system's message */
    uint32_t fault_line, fault_col; /* of the cause; 0 = not known */
    bool wrong_ranks;               /* --ranks does not fit */
    const char *patch; /* all fixes, and what was done with them; NULL: there are none */
    bool fixed;
    bool all_calls; /* of a program: some calls were proved, and stand for any number */
    const char *remedy,
        *no_remedy; /* of a program: settings of the recorder that prove it; or why there are none */
    PEAL_VEC(struct peal_file_run) runs;
    struct peal_findings findings;
    struct peal_arena arena;
    _Atomic bool finished; /* release by the worker, acquire by reports after Ctrl-C */
};

struct peal_files_job {
    const struct peal_kernel_options *options;
    struct peal_verify_options verify;
    uint32_t require; /* enum peal_require */
    uint32_t workers;
    const char *cache;
    bool find_fixes, fix; /* fix: apply them to the file */
    bool keep_plans;
    const struct peal_cli
        *cli; /* of a program, which is recorded again to find what would fix it; or NULL */
    const char *origin; /* of all files: what reports name instead; NULL: each its own */
    struct peal_file_task *tasks;
    size_t ntasks;
};

struct peal_files_tally {
    /* lacking: without what --require demands */
    uint64_t proved, refuted, undecided, unreadable, lacking, ops;
    double ms;
};

struct peal_files_out {
    bool json;
    struct peal_json *results; /* of SARIF, or NULL */
    const char *html;          /* or NULL */
};

/* Verifies the files and reports; returns the exit code. */
int peal_verify_files(struct peal_cli *cli, struct peal_files_job *job,
                      const struct peal_files_out *out, char **paths, int npaths);

/* files_report.c */
void peal_files_report_table(const struct peal_files_job *job, struct peal_text *out);
void peal_files_report_text(const struct peal_files_job *job, const struct peal_files_tally *t,
                            struct peal_text *out);
void peal_files_report_json(const struct peal_files_job *job, const struct peal_files_tally *t,
                            struct peal_text *out);
/* "algo.xml:12:5: error: race: ...": the fault of one way to launch a file. */
void peal_files_put_problem(const struct peal_files_job *job, const struct peal_file_task *task,
                            const struct peal_file_run *run, struct peal_text *out);
/* Fills task->runs: every way that the options or the file demand. */
void peal_files_verify_ways(const struct peal_files_job *job, struct peal_file_task *task,
                            const struct peal_import *import);
void peal_files_release_task(struct peal_file_task *task);
/* files_fix.c: drops edits of findings that do not hold, and adds verified fixes of faults; then
 * makes the patch and, if requested, applies it. Called while the text is loaded. */
void peal_files_find_fixes(const struct peal_files_job *job, struct peal_file_task *task);
void peal_files_use_fixes(const struct peal_files_job *job, struct peal_file_task *task);
/* files_sarif.c: adds results. */
void peal_files_report_sarif(const struct peal_files_job *job, struct peal_json *results);
/* The place that a refutation is about, or line 0. The run must have an answer. */
struct peal_verify_place peal_fault_place(const struct peal_file_task *task,
                                          const struct peal_file_run *run);

#endif
