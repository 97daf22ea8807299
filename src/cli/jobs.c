/* SPDX-License-Identifier: Apache-2.0 */
/* See jobs.h. Nothing is written: the jobs are not affected. */
#include "cli/jobs.h"

#include "cli/process.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A head is three pages or more, a mirror has four. */
enum { CONTROL_BYTES = 12288, MIRROR_BYTES = 16384, PAGE = 4096 };
static_assert(sizeof(struct peal_control) <= CONTROL_BYTES, "a head begins with its control block");

/* The control block at an offset of a window file; NULL: there is none. */
static const struct peal_control *map_control(int fd, off_t offset)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size < offset + CONTROL_BYTES)
        return NULL;
    void *at = mmap(NULL, CONTROL_BYTES, PROT_READ, MAP_SHARED, fd, offset);
    if (at == MAP_FAILED)
        return NULL;
    const struct peal_control *control = at;
    if (control->magic == PEAL_CONTROL_MAGIC && control->version == PEAL_CONTROL_VERSION)
        return control;
    munmap(at, CONTROL_BYTES);
    return NULL;
}

/* The time at which a block was up to date: a rank's own block always is. */
static uint64_t age_of(const struct peal_control *control)
{
    /* Relaxed, here and below: only for display. */
    uint64_t heard = atomic_load_explicit(&control->heard_ns, memory_order_relaxed);
    return heard == 0 ? UINT64_MAX : heard;
}

/* The block found earlier for that rank; for a mirror, that of any rank. NULL: none. */
static const struct peal_control **find_known(struct peal_jobs *jobs,
                                              const struct peal_control *control)
{
    for (size_t i = 0; i < jobs->ranks.len; i++) {
        const struct peal_control **other = &jobs->ranks.at[i].control;
        bool mirrored = age_of(control) != UINT64_MAX || age_of(*other) != UINT64_MAX;
        if ((mirrored || (*other)->pid == control->pid) && (*other)->rank == control->rank &&
            strcmp((*other)->job, control->job) == 0)
            return other;
    }
    return NULL;
}

static void unmap(const struct peal_control *control)
{
    munmap((void *)(uintptr_t)control, CONTROL_BYTES);
}

static void add(const struct peal_control *control, int32_t pid, bool own_only,
                struct peal_jobs *out)
{
    bool own = age_of(control) == UINT64_MAX;
    const struct peal_control **known = find_known(out, control);
    if (own_only && own && control->pid != pid) {
        unmap(control);
    } else if (known && age_of(control) > age_of(*known)) {
        unmap(*known);
        *known = control;
    } else if (known || !peal_vec_push(&out->ranks, ((struct peal_job_rank){control}))) {
        unmap(control);
    }
}

/* All communicators of a window file: the one that was opened, and the open ones derived from it,
 * whose control blocks follow each other (run/team/memory/windows.h). */
static void look_into_file(int fd, int32_t pid, bool own_only, struct peal_jobs *out)
{
    const struct peal_control *control = map_control(fd, 0);
    if (control)
        add(control, pid, own_only, out);
    off_t at = lseek(fd, (off_t)PEAL_WINDOWS_HEADS, SEEK_DATA);
    while (at >= 0 && at < (off_t)PEAL_WINDOWS_BODIES) {
        control = map_control(fd, at);
        /* Relaxed: only for display. */
        if (control && atomic_load_explicit(&control->life, memory_order_relaxed) < PEAL_LIFE_LEFT)
            add(control, pid, own_only, out);
        else if (control)
            unmap(control);
        at = lseek(fd, at + (control ? CONTROL_BYTES : PAGE), SEEK_DATA);
    }
}

/* What a rank knows about ranks on other hosts. */
static void look_into_mirrors(int fd, struct peal_jobs *out)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return;
    for (off_t at = 0; at < info.st_size; at += MIRROR_BYTES) {
        const struct peal_control *control = map_control(fd, at);
        if (control && age_of(control) != UINT64_MAX)
            add(control, 0, false, out);
        else if (control)
            unmap(control);
    }
}

void peal_job_describe(const struct peal_control *control, struct peal_text *out)
{
    enum { FRESH_S = 3 }; /* ranks in a call report their state every second */
    if (age_of(control) != UINT64_MAX) {
        double silent = (double)(peal_now_ns() - age_of(control)) / 1e9;
        peal_text_printf(out, "on %.63s, ", control->host[0] ? control->host : "another host");
        if (silent > FRESH_S)
            peal_text_printf(out, "stopped or not in a call, last heard of %.1f s ago: ", silent);
    }
    peal_doctor_describe(control, out);
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
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (strncmp(target, "/memfd:peal mirrors", 19) == 0)
            look_into_mirrors(fd, out);
        else
            look_into_file(fd, pid, own_only, out);
        close(fd);
    }
    closedir(dir);
}

static int compare_ranks(const void *a, const void *b)
{
    const struct peal_control *x = ((const struct peal_job_rank *)a)->control;
    const struct peal_control *y = ((const struct peal_job_rank *)b)->control;
    int order = strcmp(x->job, y->job);
    if (order)
        return order;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Calls `look` for every process that /proc lists. */
static void each_process(void (*look)(int32_t pid, void *context), void *context)
{
    DIR *dir = opendir("/proc");
    if (!dir)
        return;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (*end == '\0' && number > 0)
            look((int32_t)number, context);
    }
    closedir(dir);
}

static void look_at_own(int32_t pid, void *jobs)
{
    look_into(pid, true, jobs);
}

struct family {
    int32_t ancestor;
    struct peal_jobs *jobs;
};

static void look_at_descendant(int32_t pid, void *context)
{
    enum { MAX_GENERATIONS = 16 };
    struct family *family = context;
    int32_t above = pid;
    for (int i = 0; i < MAX_GENERATIONS; i++) {
        above = peal_process_parent(above);
        if (above == family->ancestor) {
            look_into(pid, true, family->jobs);
            return;
        }
        if (above <= 1)
            return;
    }
}

void peal_jobs_find(int32_t pid, struct peal_jobs *out)
{
    *out = (struct peal_jobs){0};
    if (pid == 0)
        each_process(look_at_own, out);
    else
        look_into(pid, false, out);
    if (pid != 0 && out->ranks.len == 0)
        each_process(look_at_descendant, &(struct family){pid, out});
    if (out->ranks.len > 0)
        qsort(out->ranks.at, out->ranks.len, sizeof *out->ranks.at, compare_ranks);
}

void peal_jobs_release(struct peal_jobs *jobs)
{
    for (size_t i = 0; i < jobs->ranks.len; i++)
        unmap(jobs->ranks.at[i].control);
    peal_vec_release(&jobs->ranks);
}
