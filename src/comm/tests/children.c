/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as child processes of a test. */
#include "comm/tests/children.h"

#include "comm/tests/hosts_of.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct children_counters {
    _Atomic uint32_t open; /* ranks that have opened their communicator */
    _Atomic uint32_t done; /* ranks that have called children_say_done */
};

static struct children_counters *own; /* of the group that this process is a rank of */

void children_pause_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static _Noreturn void give_up(const char *step)
{
    fprintf(stderr, "%s: %s\n", step, peal_comm_error(NULL));
    _exit(99);
}

/* The time-out is long because opening may be slow on a busy machine. */
void children_start(struct children *c, uint32_t size, children_body *body, const void *context)
{
    static int number;
    *c = (struct children){.size = size};
    snprintf(c->job, sizeof c->job, "children-%d-%d", (int)getpid(), number++);
    c->counters =
        mmap(NULL, sizeof *c->counters, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (size > CHILDREN_MAX || c->counters == MAP_FAILED)
        abort();
    fflush(stdout);
    struct peal_store *store = hosts_store_new();
    for (uint32_t r = 0; r < size; r++) {
        c->pids[r] = fork();
        if (c->pids[r] != 0)
            continue;
        struct peal_open options = {
            .rank = r, .size = size, .job = c->job, .timeout_ms = CHILDREN_TIMEOUT_MS, .quiet = 1};
        hosts_place(r, size);
        options.store = store;
        struct peal_comm *comm;
        own = c->counters;
        if (peal_comm_open(&options, &comm) != PEAL_OK)
            give_up("open");
        atomic_fetch_add(&own->open, 1); /* partner: children_wait_open */
        int code = body(comm, context);
        peal_comm_close(comm);
        fflush(stdout);
        _exit(code);
    }
    hosts_store_free(store);
}

void children_wait_open(const struct children *c)
{
    while (atomic_load(&c->counters->open) < c->size) /* partner: the add in each rank */
        children_pause_us(500);
}

bool children_finish(struct children *c, uint32_t except)
{
    bool right = true;
    for (uint32_t r = 0; r < c->size; r++) {
        waitpid(c->pids[r], &c->status[r], 0);
        if (r != except && c->status[r] != 0) {
            fprintf(stderr, "rank %u ended with %x\n", r, (unsigned)c->status[r]);
            right = false;
        }
    }
    munmap(c->counters, sizeof *c->counters);
    return right;
}

bool children_run(uint32_t size, children_body *body, const void *context)
{
    struct children c;
    children_start(&c, size, body, context);
    return children_finish(&c, CHILDREN_NOBODY);
}

bool children_left_nothing(const char *job)
{
    char line[512];
    bool left = false;
    FILE *sockets = fopen("/proc/net/unix", "re");
    while (sockets && fgets(line, sizeof line, sockets))
        left |= strstr(line, job) != NULL;
    if (sockets)
        fclose(sockets);
    DIR *files = opendir("/dev/shm");
    if (!files)
        return !left;
    for (struct dirent *entry; (entry = readdir(files)) != NULL;)
        left |= strstr(entry->d_name, "peal") != NULL;
    closedir(files);
    return !left;
}

struct children_files children_open_files(void)
{
    struct children_files found = {0};
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        give_up("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[300], target[64] = "";
        struct stat info;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        found.files++;
        if (readlink(path, target, sizeof target - 1) <= 0 ||
            strncmp(target, "/memfd:peal ", 12) != 0 || stat(path, &info) != 0)
            continue;
        uint64_t bytes = (uint64_t)info.st_blocks * 512;
        found.windows++;
        found.bytes += bytes;
        found.largest = bytes > found.largest ? bytes : found.largest;
    }
    closedir(dir);
    return found;
}

void children_say_done(void)
{
    atomic_fetch_add(&own->done, 1); /* partner: children_wait_done */
}

void children_wait_done(uint32_t ranks)
{
    while (atomic_load(&own->done) < ranks) /* partner: children_say_done */
        children_pause_us(1000);
}
