/* SPDX-License-Identifier: Apache-2.0 */
/* A `peal` command that runs in the background, at most one at a time, with limits of time and memory. */
#ifndef PEAL_LSP_JOB_H
#define PEAL_LSP_JOB_H

#include "base/base.h"

#include <sys/types.h>

enum lsp_job_kind { LSP_JOB_NONE, LSP_JOB_VERDICT, LSP_JOB_FIX, LSP_JOB_COMMAND };

enum { LSP_OUTPUT_MAX = 4 << 20 };

struct lsp_job {
    enum lsp_job_kind kind;
    pid_t pid;
    int file; /* its output */
    uint64_t end_ms;
    struct peal_text output;
    /* What it is about: copies. */
    char *uri, *kernel, *command, *id, *path;
    uint64_t hash;
    bool timed_out;
};

/* Starts argv[0] with its output and errors in job->file. False: it could not be started. */
bool lsp_job_start(struct lsp_job *job, const char *const *argv, uint32_t limit_ms);
/* Takes what has come. True: it has ended, by itself or because its time is over; *code is its exit code, or -1. */
bool lsp_job_poll(struct lsp_job *job, int *code);
/* Ends it, and forgets it. */
void lsp_job_release(struct lsp_job *job);

#endif
