/* SPDX-License-Identifier: Apache-2.0 */
/* A process that runs the kernel as one rank. It has limits of time and memory, writes its events to a
 * file without a name, and cannot harm this process: a crash, a loop without end or a file full of
 * nonsense is an error with the kernel's name. */
#include "cli/record_limits.h"
#include "cli/record/record.h"

#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory: that of the ranks, and as much as a mistake needs to be seen. */
static struct peal_limits limits_of_kernels(const struct rec_job *job)
{
    struct peal_limits limits = {.cpu_seconds = 5,
                                 .wall_seconds = 120,
                                 .memory = UINT64_C(2) << 30,
                                 .output = UINT64_C(1) << 30};
    for (uint32_t i = 0; i < job->nregions; i++)
        limits.memory += job->regions[i].bytes;
    peal_limits_ask(&limits);
    return limits;
}

/* All memory that the kernel may use by plain loads and stores. */
static bool map_memory(const struct rec_job *job, const struct signature *s)
{
    uint32_t region = 0;
    for (uint32_t i = 0; i < s->len; i++) {
        const struct signature_item *item = &s->items[i];
        uint32_t copies = peal_signature_is_shared(item) ? job->ranks : 1;
        for (uint32_t r = 0; r < copies && item->kind == SIGNATURE_MEMORY; r++, region++) {
            const struct rec_region *at = &job->regions[region];
            void *wanted = (void *)(uintptr_t)at->address;
            void *got =
                mmap(wanted, at->bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
            if (got != wanted)
                return false;
            uint64_t skip = at->bytes * (copies > 1 ? r : job->rank);
            if (item->contents.len < at->bytes * job->ranks)
                skip = 0; /* the same on all ranks */
            if (item->contents.text)
                memcpy(got, item->contents.text + skip,
                       peal_size_min(item->contents.len - skip, at->bytes));
        }
    }
    return true;
}

struct rank_process {
    const struct compiled *c;
    const char *entry;
    struct rec_job *job;
    const struct signature *s;
    int complain; /* messages go there: a pipe, which the parent reads */
};

/* Never returns. */
static void be_rank(void *data)
{
    const struct rank_process *p = data;
    const struct compiled *c = p->c;
    struct rec_job *job = p->job;
    const struct signature *s = p->s;
    int complain = p->complain;
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what the kernel prints is not the answer */
    char object[sizeof c->folder + 16];
    snprintf(object, sizeof object, "%s/kernel.so", c->folder);
    if (!map_memory(job, s)) {
        dprintf(complain, "its memory cannot be laid out");
        _exit(1);
    }
    void *so = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        const char *why = dlerror(), *symbol = strstr(why, "undefined symbol");
        dprintf(complain, "it needs what cannot be recorded: %s", symbol ? symbol : why);
        _exit(1);
    }
    struct link_map *map = NULL;
    void (*go)(const struct rec_job *);
    void *found = dlsym(so, "peal_rec_run");
    memcpy(&go, &found, sizeof go);
    char *(*demangle)(const char *);
    void *reader = dlsym(so, "rec_demangle");
    memcpy(&demangle, &reader, sizeof demangle);
    for (uint32_t i = 0; i < job->ncalls; i++) {
        const char *name = i ? s->then[i - 1].symbol : p->entry;
        struct peal_text mangled = {0};
        job->calls[i].entry = dlsym(so, name);
        if (!job->calls[i].entry && reader &&
            peal_source_find_name(object, name, demangle, &mangled))
            job->calls[i].entry = dlsym(so, peal_text_get(&mangled));
        peal_text_release(&mangled);
        if (!job->calls[i].entry || !found || dlinfo(so, RTLD_DI_LINKMAP, &map) != 0) {
            dprintf(complain,
                    "it has no function '%s', or several: --%s names one, as 'f' or 'f<float, 8>'",
                    i ? s->then[i - 1].entry : name, i ? "then" : "entry");
            _exit(1);
        }
    }
    job->base = (uint64_t)map->l_addr;
    go(job);
    _exit(0);
}

void peal_child_run(const struct peal_cli *cli, const struct compiled *c, const char *entry,
                    struct rec_job *job, const struct signature *s, struct recording *out)
{
    int pipe_fds[2], code;
    char said[512] = "";
    struct peal_limits limits = limits_of_kernels(job);
    *out = (struct recording){.error = "the system refused a process"};
    int fd = memfd_create("peal-record", MFD_CLOEXEC);
    if (fd < 0)
        return;
    if (pipe(pipe_fds) != 0) {
        close(fd);
        return;
    }
    job->fd = fd;
    struct rank_process process = {c, entry, job, s, pipe_fds[1]};
    struct peal_text why = {0};
    peal_text_puts(&why, "it ");
    bool good = peal_limits_run(&limits, be_rank, &process, &code, &why);
    close(pipe_fds[1]);
    struct pollfd ready = {.fd = pipe_fds[0], .events = POLLIN};
    ssize_t n = poll(&ready, 1, 0) > 0 ? read(pipe_fds[0], said, sizeof said - 1) : 0;
    out->error = NULL;
    if (n > 0)
        out->error = peal_arena_copy(cli->arena, said, (size_t)n);
    else if (!good)
        out->error = peal_arena_copy(cli->arena, peal_text_get(&why), why.len);
    peal_text_release(&why);
    close(pipe_fds[0]);
    off_t len = lseek(fd, 0, SEEK_END);
    if (len > 0) {
        void *at = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) {
            out->at = at;
            out->len = (size_t)len;
        }
    }
    close(fd);
}

void peal_child_release(struct recording *recording)
{
    if (recording->at)
        munmap((void *)(uintptr_t)recording->at, recording->len);
    recording->at = NULL;
}
