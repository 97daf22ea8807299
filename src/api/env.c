/* SPDX-License-Identifier: Apache-2.0 */
/* One row a launcher: which variables hold what. */
#include "api/env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *launcher;
    const char *rank, *size, *local_size; /* local_size must equal size: one host */
    const char *job[2];                   /* parts of the job's name; NULL: the parent's pid */
} rows[] = {
    {"peal exec", "PEAL_RANK", "PEAL_SIZE", NULL, {"PEAL_JOB", NULL}},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", {"MASTER_PORT", "TORCHELASTIC_RUN_ID"}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", {NULL, NULL}},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", NULL, {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

static bool read_number(const char *name, uint32_t *out)
{
    const char *text = name ? getenv(name) : NULL;
    if (!text || !text[0])
        return false;
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno || *end || value > UINT32_MAX || text[0] == '-')
        return false;
    *out = (uint32_t)value;
    return true;
}

static void name_job(size_t row, char out[static 64])
{
    const char *first = rows[row].job[0] ? getenv(rows[row].job[0]) : NULL;
    const char *second = rows[row].job[1] ? getenv(rows[row].job[1]) : NULL;
    if (first && second)
        snprintf(out, 64, "%.30s-%.30s", first, second);
    else if (first || second)
        snprintf(out, 64, "%.60s", first ? first : second);
    else
        snprintf(out, 64, "parent-%d", (int)getppid());
}

enum peal_status peal_env_read(struct peal_env *out, struct peal_text *why)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_env env = {.launcher = rows[i].launcher};
        uint32_t local;
        if (!getenv(rows[i].rank) || !getenv(rows[i].size))
            continue;
        if (!read_number(rows[i].rank, &env.rank) || !read_number(rows[i].size, &env.size) ||
            env.size == 0 || env.rank >= env.size) {
            peal_text_printf(why, "'%s' and '%s' of %s make no sense: '%s' of '%s'", rows[i].rank,
                             rows[i].size, rows[i].launcher, getenv(rows[i].rank),
                             getenv(rows[i].size));
            return PEAL_INVALID;
        }
        if (read_number(rows[i].local_size, &local) && local != env.size) {
            peal_text_printf(why, "%s started %u of %u ranks on this host: one host only",
                             rows[i].launcher, local, env.size);
            return PEAL_UNSUPPORTED;
        }
        name_job(i, env.job);
        *out = env;
        return PEAL_OK;
    }
    *out = (struct peal_env){.size = 1, .launcher = "none"};
    snprintf(out->job, sizeof out->job, "alone-%d", (int)getpid());
    return PEAL_OK;
}
