/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of launchers and settings, and which values are refused. Real launchers: tests/jobs. */
#include "base/tests/unit.h"
#include "comm/core/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const known[] = {
    "PEAL_RANK",        "PEAL_SIZE",
    "PEAL_JOB",         "RANK",
    "WORLD_SIZE",       "LOCAL_WORLD_SIZE",
    "MASTER_PORT",      "TORCHELASTIC_RUN_ID",
    "PMIX_NAMESPACE",   "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",         "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",         "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",  "OMPI_MCA_ess_base_jobid",
    "SLURM_PROCID",     "SLURM_NTASKS",
    "SLURM_JOB_ID",     "SLURM_STEP_ID",
    "PEAL_TIMEOUT_MS",  "PEAL_WINDOW_POOL",
    "PEAL_CORES",       "PEAL_BIND",
    "PEAL_COMPUTE",     "PEAL_VERIFY",
    "PEAL_SINGLE_COPY", "PEAL_NET_SILENCE",
    "PEAL_ALGOS",       "PEAL_PLATFROM",
    "PEAL_PLATFORM",    "PEAL_BIN",
    "PEAL_VENDOR",
};

/* An environment with only these variables: "A=1 B=2". */
static void set_all(const char *words)
{
    char copy[512];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        unsetenv(known[i]);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *rest = copy, *word; (word = strsep(&rest, " ")) != NULL;) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = '\0';
        setenv(word, value, 1);
    }
}

TEST(launchers_say_rank_size_and_job)
{
    static const struct {
        int line;
        const char *set;
        enum peal_status status;
        uint32_t rank, size;
        const char *said; /* the job, or a part of the reason for the refusal */
        bool hosts;       /* ranks may be on several */
    } rows[] = {
        {__LINE__, "", PEAL_OK, 0, 1, "alone-", false},
        {__LINE__, "PEAL_RANK=1 PEAL_SIZE=3 PEAL_JOB=j", PEAL_OK, 1, 3, "j", false},
        {__LINE__, "RANK=1 WORLD_SIZE=2 MASTER_PORT=29500", PEAL_OK, 1, 2, "29500", false},
        {__LINE__, "RANK=1 WORLD_SIZE=2 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none", PEAL_OK, 1, 2,
         "29500-none", false},
        {__LINE__, "RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2", PEAL_OK, 1, 4, "launcher-", true},
        {__LINE__,
         "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
         "PMIX_NAMESPACE=123",
         PEAL_OK, 0, 2, "123", false},
        {__LINE__, "PMI_RANK=3 PMI_SIZE=4 MPI_LOCALNRANKS=4", PEAL_OK, 3, 4, "launcher-", false},
        {__LINE__, "PMI_RANK=3 PMI_SIZE=4 MPI_LOCALNRANKS=2", PEAL_OK, 3, 4, "launcher-", true},
        {__LINE__, "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0", PEAL_OK, 1, 2,
         "7-0", false},
        {__LINE__,
         "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=2",
         PEAL_OK, 1, 2, "7-0", true},
        /* Peal's own come first: `peal exec` within a job of another launcher. */
        {__LINE__, "PEAL_RANK=0 PEAL_SIZE=1 PEAL_JOB=j PMI_RANK=3 PMI_SIZE=4", PEAL_OK, 0, 1, "j",
         false},
        {__LINE__, "PEAL_RANK=2 PEAL_SIZE=2", PEAL_INVALID, 0, 0, "do not fit together: '2' of '2'",
         false},
        {__LINE__, "RANK=-1 WORLD_SIZE=2", PEAL_INVALID, 0, 0, "do not fit together", false},
        {__LINE__, "RANK=x WORLD_SIZE=2", PEAL_INVALID, 0, 0, "do not fit together: 'x' of '2'",
         false},
        {__LINE__, "RANK=0 WORLD_SIZE=0", PEAL_INVALID, 0, 0, "do not fit together", false},
        {__LINE__, "PEAL_RANK=0", PEAL_INVALID, 0, 0, "'PEAL_SIZE' is not", false},
        {__LINE__, "PEAL_SIZE=2", PEAL_INVALID, 0, 0, "'PEAL_RANK' is not", false},
        {__LINE__, "RANK=3", PEAL_OK, 0, 1, "alone-",
         false}, /* a name that other programs use, too */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_env env = {0};
        struct peal_text why = {0};
        set_all(rows[i].set);
        enum peal_status status = peal_env_read(&env, &why);
        const char *said = status == PEAL_OK ? env.job : peal_text_get(&why);
        if (status != rows[i].status || !strstr(said, rows[i].said) ||
            (status == PEAL_OK &&
             (env.rank != rows[i].rank || env.size != rows[i].size || env.hosts != rows[i].hosts)))
            fail_msg("row of line %d: status %d, rank %u of %u, '%s'", rows[i].line, (int)status,
                     env.rank, env.size, said);
        peal_text_release(&why);
    }
}

TEST(settings_that_are_not_understood_are_refused)
{
    static const struct {
        int line;
        const char *set, *said; /* NULL: it is accepted */
    } rows[] = {
        {__LINE__, "", NULL},
        {__LINE__, "PEAL_TIMEOUT_MS=", NULL},
        {__LINE__, "PEAL_TIMEOUT_MS=0", NULL},
        {__LINE__, "PEAL_TIMEOUT_MS=4294967295", NULL},
        {__LINE__, "PEAL_TIMEOUT_MS=4294967296", "milliseconds"},
        {__LINE__, "PEAL_TIMEOUT_MS=60s", "PEAL_TIMEOUT_MS is '60s', and should be a number"},
        {__LINE__, "PEAL_TIMEOUT_MS=-1", "milliseconds"},
        {__LINE__, "PEAL_WINDOW_POOL=64K", NULL},
        {__LINE__, "PEAL_WINDOW_POOL=0", "a size such as 8M"},
        {__LINE__, "PEAL_WINDOW_POOL=much", "a size such as 8M"},
        {__LINE__, "PEAL_CORES=2", NULL},
        {__LINE__, "PEAL_CORES=0", "a number of processors"},
        {__LINE__, "PEAL_CORES=two", "a number of processors"},
        {__LINE__, "PEAL_BIND=core", NULL},
        {__LINE__, "PEAL_BIND=none", NULL},
        {__LINE__, "PEAL_BIND=cores", "core, wrap or none"},
        {__LINE__, "PEAL_COMPUTE=generic", NULL},
        {__LINE__, "PEAL_COMPUTE=mmx", "an instruction set that this processor has"},
        {__LINE__, "PEAL_SINGLE_COPY=no", "0 or 1"},
        {__LINE__, "PEAL_VERIFY=1", NULL},
        {__LINE__, "PEAL_VERIFY=yes", "0 or 1"},
        {__LINE__, "PEAL_NET_SILENCE=2", NULL},
        {__LINE__, "PEAL_NET_SILENCE=3600", NULL},
        {__LINE__, "PEAL_NET_SILENCE=1", "a number of seconds from 2 to 3600"},
        {__LINE__, "PEAL_NET_SILENCE=3601", "a number of seconds from 2 to 3600"},
        {__LINE__, "PEAL_NET_SILENCE=3s", "a number of seconds from 2 to 3600"},
        {__LINE__, "PEAL_PLATFORM=native:threads", NULL},
        {__LINE__, "PEAL_PLATFORM=sm:mesh4x4", "should be 'native' or 'sim:MACHINE'"},
        {__LINE__, "PEAL_ALGOS=allreduce=ring", "PEAL_ALGOS; did you mean PEAL_ALGO?"},
        {__LINE__, "PEAL_PLATFROM=native", "PEAL_PLATFROM; did you mean PEAL_PLATFORM?"},
        {__LINE__, "PEAL_BIN=/usr/bin PEAL_VENDOR=me", NULL}, /* of other programs */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_text why = {0};
        set_all(rows[i].set);
        enum peal_status status = peal_env_check(&why);
        if (status != (rows[i].said ? PEAL_INVALID : PEAL_OK) ||
            (rows[i].said && !strstr(peal_text_get(&why), rows[i].said)))
            fail_msg("row of line %d: status %d, '%s'", rows[i].line, (int)status,
                     peal_text_get(&why));
        peal_text_release(&why);
    }
}

TEST(long_jobs_stay_different)
{
    char a[200], b[200], cut_a[PEAL_JOB_BYTES], cut_b[PEAL_JOB_BYTES];
    memset(a, 'x', sizeof a);
    a[199] = '\0';
    memcpy(b, a, sizeof b);
    b[198] = 'y';
    peal_env_job(a, cut_a);
    peal_env_job(b, cut_b);
    assert_string_not_equal(cut_a, cut_b);
    assert_true(strlen(cut_a) < PEAL_JOB_BYTES);
    peal_env_job(a, cut_b);
    assert_string_equal(cut_a, cut_b);
    peal_env_job("short", cut_a);
    assert_string_equal(cut_a, "short");
}

int main(void)
{
    return unit_run();
}
