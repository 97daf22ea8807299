/* SPDX-License-Identifier: Apache-2.0 */
/* Rank, size and job from the environment of whatever launcher started this process. */
#ifndef PEAL_COMM_ENV_H
#define PEAL_COMM_ENV_H

#include "base/base.h"

#include <peal/types.h>
#include <stdbool.h>
#include <stdint.h>

struct peal_comm;

enum { PEAL_JOB_BYTES = 64 };

struct peal_env {
    uint32_t rank, size;
    char job[PEAL_JOB_BYTES];
    const char *launcher; /* "none" when there is none: one rank */
    bool hosts;           /* its ranks may be on several hosts: a service of the launcher says */
};

/* PEAL_INVALID with a line in `why` when a launcher's variables do not fit together. */
enum peal_status peal_env_read(struct peal_env *out, struct peal_text *why);
/* The settings that opening reads (PEAL_TIMEOUT_MS, ...): PEAL_INVALID with a line in `why` if one
 * is not understood, or a variable is nearly the name of one. Ignoring it would be worse. */
enum peal_status peal_env_check(struct peal_text *why);
/* A job's name in the form that ranks meet by: long names are shortened, and stay different. */
void peal_env_job(const char *name, char out[static PEAL_JOB_BYTES]);

/* PEAL_ALGO="allreduce=ring,broadcast=flat". What is not understood is an error: ignoring a forced
 * algorithm would be worse. */
enum peal_status peal_env_force(struct peal_comm *comm);

#endif
