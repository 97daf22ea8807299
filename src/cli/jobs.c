/* SPDX-License-Identifier: Apache-2.0 */
/* See jobs.h. Nothing is written: a job does not notice. */
#include "cli/jobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONTROL_BYTES = 16384 };

static const struct peal_control *map_control(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0)
        return NULL;
    void *at = MAP_FAILED;
    if (fstat(fd, &info) == 0 && info.st_size >= CONTROL_BYTES)
        at = mmap(NULL, CONTROL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return NULL;
    const struct peal_control *control = at;
    if (control->magic == PEAL_CONTROL_MAGIC && control->version == PEAL_CONTROL_VERSION)
        return control;
    munmap(at, CONTROL_BYTES);
    return NULL;
}

static bool is_known(const struct peal_jobs *jobs, const struct peal_control *control)
{
    for (size_t i = 0; i < jobs->ranks.len; i++) {
        const struct peal_control *other = jobs->ranks.at[i].control;
        if (other->pid == control->pid && other->rank == control->rank &&
            strcmp(other->job, control->job) == 0)
            return true;
    }
    return false;
}

static void look_into(int32_t pid, bool own_only, struct peal_jobs *out)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[400], target[64];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ssize_t len = readlink(path, target, sizeof target - 1);
        if (len <= 0)
            continue;
        target[len] = '\0';
        if (strncmp(target, "/memfd:peal ", 12) != 0)
            continue;
        const struct peal_control *control = map_control(path);
        if (!control)
            continue;
        if ((own_only && control->pid != pid) || is_known(out, control) ||
            !peal_vec_push(&out->ranks, ((struct peal_job_rank){control})))
            munmap((void *)(uintptr_t)control, CONTROL_BYTES);
    }
    closedir(dir);
}

static int compare_ranks(const void *a, const void *b)
{
    const struct peal_control *x = ((const struct peal_job_rank *)a)->control;
    const struct peal_control *y = ((const struct peal_job_rank *)b)->control;
    int order = strcmp(x->job, y->job);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

void peal_jobs_find(int32_t pid, struct peal_jobs *out)
{
    *out = (struct peal_jobs){0};
    if (pid != 0) {
        look_into(pid, false, out);
    } else {
        DIR *dir = opendir("/proc");
        for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
            char *end;
            long number = strtol(entry->d_name, &end, 10);
            if (*end == '\0' && number > 0)
                look_into((int32_t)number, true, out);
        }
        if (dir)
            closedir(dir);
    }
    if (out->ranks.len > 0)
        qsort(out->ranks.at, out->ranks.len, sizeof *out->ranks.at, compare_ranks);
}

void peal_jobs_release(struct peal_jobs *jobs)
{
    for (size_t i = 0; i < jobs->ranks.len; i++)
        munmap((void *)(uintptr_t)jobs->ranks.at[i].control, CONTROL_BYTES);
    peal_vec_release(&jobs->ranks);
}
