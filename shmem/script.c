/* SPDX-License-Identifier: Apache-2.0 */
/* What peal record tells a later run to do, so that every outcome which the first one could have had is
 * seen: the folder that PEAL_RECORD_SCRIPT names has a file per PE, and `turns`, words that all PEs share.
 *
 *   fetch N VALUE                         the N-th atomic operation with a result returns VALUE
 *   poke N SEGMENT OFFSET WIDTH VALUE     at the N-th synchronisation this word of its own becomes VALUE
 *   lock N GROUP TURN                     the N-th lock is taken when GROUP's word is TURN
 *
 * python/peal/shmem_runs.py writes it. */
#include "job.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LINES = 4096, MAX_SEGMENTS = 64, MAX_TURNS = 512, WAIT_SECONDS = 10 };

struct line {
    char kind[8];
    uint64_t number, values[4];
};

static struct {
    struct line *lines; /* NULL: this run follows no script */
    size_t nlines;
    _Atomic uint64_t *turns;
    char *segments[MAX_SEGMENTS];
    size_t nsegments;
    uint64_t fetches, locks;
} script;

static void read_lines(FILE *file)
{
    char text[256];
    while (script.nlines < MAX_LINES && fgets(text, sizeof text, file)) {
        struct line *line = &script.lines[script.nlines];
        if (sscanf(text, "%7s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, line->kind,
                   &line->number, &line->values[0], &line->values[1], &line->values[2],
                   &line->values[3]) >= 3)
            script.nlines++;
    }
}

void peal_shmem_script_begin(const struct peal_shmem_call *call, int rank)
{
    const char *folder = getenv("PEAL_RECORD_SCRIPT");
    char path[4096];
    if (!folder)
        return;
    memset(&script, 0, sizeof script);
    snprintf(path, sizeof path, "%s/pe%d", folder, rank);
    FILE *file = fopen(path, "r");
    snprintf(path, sizeof path, "%s/turns", folder);
    int turns = open(path, O_RDWR | O_CLOEXEC);
    script.lines = calloc(MAX_LINES, sizeof *script.lines);
    void *words =
        mmap(NULL, MAX_TURNS * sizeof *script.turns, PROT_READ | PROT_WRITE, MAP_SHARED, turns, 0);
    if (!file || turns < 0 || !script.lines || words == MAP_FAILED)
        peal_shmem_fail(call, "cannot read the script in %s", folder);
    script.turns = words;
    read_lines(file);
    fclose(file);
    close(turns);
}

void peal_shmem_script_segment(void *at)
{
    if (script.nsegments < MAX_SEGMENTS)
        script.segments[script.nsegments++] = at;
}

uint64_t peal_shmem_script_value(uint64_t old)
{
    uint64_t number = script.fetches++;
    for (size_t i = 0; i < script.nlines; i++) {
        if (strcmp(script.lines[i].kind, "fetch") == 0 && script.lines[i].number == number)
            return script.lines[i].values[0];
    }
    return old;
}

/* All operations have ended and nobody has gone on: words can change as if others had come last. */
void peal_shmem_script_sync(const struct peal_shmem_call *call, struct peal_comm *comm,
                            uint64_t number)
{
    if (!script.lines)
        return;
    for (size_t i = 0; i < script.nlines; i++) {
        const struct line *line = &script.lines[i];
        if (strcmp(line->kind, "poke") == 0 && line->number == number &&
            line->values[0] < script.nsegments && line->values[2] <= sizeof line->values[3])
            memcpy(script.segments[line->values[0]] + line->values[1], &line->values[3],
                   line->values[2]);
    }
    peal_shmem_check(call, comm, peal_barrier(comm));
}

static const struct line *find_lock(void)
{
    for (size_t i = 0; i < script.nlines; i++) {
        const struct line *line = &script.lines[i];
        if (strcmp(line->kind, "lock") == 0 && line->number == script.locks &&
            line->values[0] < MAX_TURNS)
            return line;
    }
    return NULL;
}

void peal_shmem_script_lock(const struct peal_shmem_call *call)
{
    const struct line *line = find_lock();
    time_t end = time(NULL) + WAIT_SECONDS;
    /* Acquire; partner: the release of the PE that had the turn before. */
    while (line && atomic_load_explicit(&script.turns[line->values[0]], memory_order_acquire) <
                       line->values[1]) {
        if (time(NULL) > end)
            peal_shmem_fail(call, "this order of locks does not come about");
        sched_yield();
    }
}

void peal_shmem_script_locked(void)
{
    const struct line *line = find_lock();
    script.locks++;
    if (line) /* release; partner: the acquire of the PE that has the next turn */
        atomic_store_explicit(&script.turns[line->values[0]], line->values[1] + 1,
                              memory_order_release);
}
