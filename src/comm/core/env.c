/* SPDX-License-Identifier: Apache-2.0 */
/* Rank, size and job from a launcher's variables: one row per launcher. */
#include "comm/core/env.h"

#include "base/base.h"
#include "comm/core/communicator.h"
#include "compute/compute.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *launcher;
    const char *rank, *size, *local_size; /* other than size: several hosts */
    const char *job[2];                   /* parts of the job's name; none: the launcher's pid */
    const char *hosts;                    /* how many; NULL: local_size says */
} rows[] = {
    {"peal exec", "PEAL_RANK", "PEAL_SIZE", NULL, {"PEAL_JOB", NULL}, NULL},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_WORLD_SIZE",
     {"MASTER_PORT", "TORCHELASTIC_RUN_ID"},
     NULL},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     NULL},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", {NULL, NULL}, NULL},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     NULL,
     {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     "SLURM_STEP_NUM_NODES"},
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

/* ---- the job's name ---- */

void peal_env_job(const char *name, char out[static PEAL_JOB_BYTES])
{
    size_t len = strlen(name);
    if (len < PEAL_JOB_BYTES)
        snprintf(out, PEAL_JOB_BYTES, "%s", name);
    else /* cut, and still another one for every name */
        snprintf(out, PEAL_JOB_BYTES, "%.40s-%016llx", name,
                 (unsigned long long)peal_hash_bytes(name, len, 1));
}

/* Was the process started with this variable in its environment? */
static bool has_variable(int pid, const char *name)
{
    char path[64], *entry = NULL;
    size_t cap = 0, len = strlen(name);
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    FILE *file = fopen(path, "re");
    while (file && !found && getdelim(&entry, &cap, '\0', file) > 0)
        found = strncmp(entry, name, len) == 0 && entry[len] == '=';
    if (file)
        fclose(file);
    free(entry);
    return found;
}

static int parent_of(int pid)
{
    char path[64], line[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t got = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[got] = '\0';
    const char *after = strrchr(line, ')'); /* a program's name may have blanks and brackets */
    if (!after || sscanf(after + 1, " %*c %d", &parent) != 1)
        return 0;
    return parent;
}

/* The nearest ancestor that was not given a rank: with a script around each rank, parents
 * differ. */
static int find_launcher(const char *rank_variable)
{
    int pid = (int)getppid();
    while (pid > 1 && has_variable(pid, rank_variable))
        pid = parent_of(pid);
    return pid;
}

static void name_job(size_t row, char out[static PEAL_JOB_BYTES])
{
    const char *first = rows[row].job[0] ? getenv(rows[row].job[0]) : NULL;
    const char *second = NULL;
    if (rows[row].job[1])
        second = getenv(rows[row].job[1]);
    struct peal_text name = {0};
    if (first && second)
        peal_text_printf(&name, "%s-%s", first, second);
    else if (first || second)
        peal_text_puts(&name, first ? first : second);
    else
        peal_text_printf(&name, "launcher-%d", find_launcher(rows[row].rank));
    peal_env_job(peal_text_get(&name), out);
    peal_text_release(&name);
}

/* ---- settings ---- */

static bool is_milliseconds(const char *text)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    return errno == 0 && *end == '\0' && text[0] >= '0' && text[0] <= '9' && value <= UINT32_MAX;
}

static bool is_size(const char *text)
{
    uint64_t bytes;
    return peal_size_parse(text, &bytes) && bytes > 0;
}

static bool is_cores(const char *text)
{
    return is_milliseconds(text) && strtoul(text, NULL, 10) >= 1 &&
           strtoul(text, NULL, 10) <= CPU_SETSIZE;
}

static bool is_binding(const char *text)
{
    return strcmp(text, "core") == 0 || strcmp(text, "wrap") == 0 || strcmp(text, "none") == 0;
}

static bool is_variant(const char *text)
{
    return peal_compute_find(text) != NULL;
}

static bool is_progress(const char *text)
{
    return strcmp(text, "thread") == 0 || strcmp(text, "wait") == 0;
}

static bool is_switch(const char *text)
{
    return strcmp(text, "0") == 0 || strcmp(text, "1") == 0;
}

static bool is_silence(const char *text)
{
    return is_milliseconds(text) && strtoul(text, NULL, 10) >= PEAL_NET_MIN_SILENCE &&
           strtoul(text, NULL, 10) <= PEAL_NET_MAX_SILENCE;
}

/* Which machine or hosts, whoever uses them says. */
static bool is_platform(const char *text)
{
    return strcmp(text, "native") == 0 || strncmp(text, "native:", 7) == 0 ||
           strncmp(text, "sim:", 4) == 0 || strncmp(text, "hosts:", 6) == 0;
}

static const struct setting {
    const char *name;
    bool (*is_right)(const char *text); /* NULL: whoever reads it says what is wrong */
    const char *wanted;
    bool is_short; /* one letter from what other programs use, such as PEAL_BIN */
} settings[] = {
    {"PEAL_TIMEOUT_MS", is_milliseconds, "a number of milliseconds, or 0 for never", false},
    {"PEAL_WARN_MS", is_milliseconds, "a number of milliseconds, or 0 for never", false},
    {"PEAL_WINDOW_POOL", is_size, "a size such as 8M", false},
    {"PEAL_CORES", is_cores, "a number of processors", false},
    {"PEAL_BIND", is_binding, "core, wrap or none", true},
    {"PEAL_COMPUTE", is_variant, "generic, or an instruction set that this processor has", false},
    {"PEAL_SINGLE_COPY", is_switch, "0 or 1", false},
    {"PEAL_VERIFY", is_switch, "0 or 1", false},
    {"PEAL_PROGRESS", is_progress, "wait or thread", false},
    {"PEAL_NET_CRYPT", is_switch, "0 or 1", false},
    {"PEAL_NET_SILENCE", is_silence, "a number of seconds from 2 to 3600", false},
    {"PEAL_ALGO", NULL, NULL, false},
    {"PEAL_PLATFORM", is_platform, "'native' or 'sim:MACHINE' (a file, or a built-in's name)",
     false},
    {"PEAL_SECRET_FILE", NULL, NULL, false},
    {"PEAL_SIM_TRACE", NULL, NULL, false},
    {"PEAL_STATS", NULL, NULL, false},
    {"PEAL_TRACE", NULL, NULL, false},
    {"PEAL_TUNE_FILE", NULL, NULL, false},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

static bool is_setting(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < SETTINGS && !found; i++)
        found = strcmp(settings[i].name, name) == 0;
    return found;
}

/* Other PEAL_ names may be a program's own; only what is nearly a setting was meant to be one. */
static enum peal_status check_names(struct peal_text *why)
{
    enum { LONGEST = 40 };
    for (char **at = environ; *at; at++) {
        char name[LONGEST + 1];
        size_t len = strcspn(*at, "=");
        if (strncmp(*at, "PEAL_", 5) != 0 || len > LONGEST)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)len, *at);
        if (is_setting(name))
            continue;
        const char *near = NULL;
        for (size_t i = 0; i < SETTINGS; i++) {
            if (!settings[i].is_short)
                near = peal_nearer(name, near, settings[i].name);
        }
        if (!near)
            continue;
        peal_text_printf(why, "nothing reads the variable %s; did you mean %s?", name, near);
        return PEAL_INVALID;
    }
    return PEAL_OK;
}

enum peal_status peal_env_check(struct peal_text *why)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *text = getenv(settings[i].name);
        if (!settings[i].is_right || !text || !text[0] || settings[i].is_right(text))
            continue;
        peal_text_printf(why, "%s is '%s', and should be %s", settings[i].name, text,
                         settings[i].wanted);
        return PEAL_INVALID;
    }
    return check_names(why);
}

/* ---- rank and size ---- */

/* Only some of Peal's own variables are set: an error, because the intention is unclear. */
static bool is_half_given(struct peal_text *why)
{
    const char *rank = getenv(rows[0].rank), *size = getenv(rows[0].size);
    if (!rank == !size)
        return false;
    const char *set = rows[0].rank, *missing = rows[0].size;
    if (!rank) {
        set = rows[0].size;
        missing = rows[0].rank;
    }
    peal_text_printf(why, "'%s' is set and '%s' is not: set both, or neither for one rank", set,
                     missing);
    return true;
}

static bool has_hosts(const char *name)
{
    uint32_t hosts;
    return read_number(name, &hosts) && hosts > 1;
}

enum peal_status peal_env_read(struct peal_env *out, struct peal_text *why)
{
    if (is_half_given(why))
        return PEAL_INVALID;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_env env = {.launcher = rows[i].launcher};
        uint32_t local;
        if (!getenv(rows[i].rank) || !getenv(rows[i].size))
            continue;
        if (!read_number(rows[i].rank, &env.rank) || !read_number(rows[i].size, &env.size) ||
            env.size == 0 || env.rank >= env.size) {
            peal_text_printf(why, "'%s' and '%s' of %s do not fit together: '%s' of '%s'",
                             rows[i].rank, rows[i].size, rows[i].launcher, getenv(rows[i].rank),
                             getenv(rows[i].size));
            return PEAL_INVALID;
        }
        env.hosts = getenv("PEAL_MEET_FD") != NULL || has_hosts(rows[i].hosts) ||
                    (read_number(rows[i].local_size, &local) && local != env.size);
        name_job(i, env.job);
        *out = env;
        return PEAL_OK;
    }
    *out = (struct peal_env){.size = 1, .launcher = "none"};
    snprintf(out->job, sizeof out->job, "alone-%d", (int)getpid());
    return PEAL_OK;
}

enum peal_status peal_env_force(struct peal_comm *comm)
{
    enum { MAX_BYTES = 64 << 10 }; /* paths of files for all collectives, and no more */
    const char *text = getenv("PEAL_ALGO");
    if (!text)
        return PEAL_OK;
    if (strlen(text) > MAX_BYTES)
        return peal_comm_fail(comm, PEAL_INVALID, "PEAL_ALGO has more than %d bytes", MAX_BYTES);
    char *copy = strdup(text);
    if (!copy)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for PEAL_ALGO");
    char *rest = copy;
    enum peal_status status = PEAL_OK;
    for (char *item; status == PEAL_OK && (item = strsep(&rest, ",")) != NULL;) {
        char *algo = strchr(item, '=');
        if (item[0] == '\0')
            continue;
        if (algo && algo > item && algo[1]) {
            *algo++ = '\0';
            status = peal_comm_set_algo(comm, item, algo);
        } else {
            status =
                peal_comm_fail(comm, PEAL_INVALID, "PEAL_ALGO: '%s' is not COLLECTIVE=ALGO", item);
        }
    }
    free(copy);
    return status;
}
