/* SPDX-License-Identifier: Apache-2.0 */
/* What this PE does, for peal record: a file per PE in the folder that PEAL_RECORD names, one line
 * per event: its name, the place in the program (the address of the call, as in the file of the
 * program), and its numbers. python/peal/shmem.py says what they mean. */
#include "job.h"

#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LOCALS = 4096, MAX_LOOKS = 256 };

static struct {
    FILE *file;
    uint64_t lines, syncs;
    pthread_t thread;    /* the only one whose calls have an order */
    uintptr_t base, end; /* of the program: what is outside has no place */
    struct {
        const char *from, *to;
    } locals[MAX_LOCALS];
    size_t nlocals;
} event_log;

static int find_program(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    event_log.base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > event_log.end)
            event_log.end = end;
    }
    return 1;
}

void peal_shmem_log_begin(const struct peal_shmem_call *call, int rank)
{
    const char *folder = getenv("PEAL_RECORD");
    char path[4096];
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/pe%d", folder, rank);
    event_log.file = fopen(path, "wx");
    if (!event_log.file)
        peal_shmem_fail(call, "cannot record to %s: %s", path, strerror(errno));
    event_log.thread = pthread_self();
    dl_iterate_phdr(find_program, NULL);
    peal_shmem_script_begin(call, rank);
    peal_shmem_log(call, "stack %p", __builtin_frame_address(0));
}

/* Of what was begun by another library than the program. */
void peal_shmem_log_cancel(int rank)
{
    const char *folder = getenv("PEAL_RECORD");
    char path[4096];
    if (!event_log.file)
        return;
    peal_shmem_log_end();
    snprintf(path, sizeof path, "%s/pe%d", folder ? folder : "", rank);
    (void)unlink(path);
}

bool peal_shmem_log_is_program(const void *from)
{
    return (uintptr_t)from > event_log.base && (uintptr_t)from <= event_log.end;
}

void peal_shmem_log_end(void)
{
    if (event_log.file)
        fclose(event_log.file);
    event_log.file = NULL;
}

bool peal_shmem_is_logged(void)
{
    return event_log.file != NULL;
}

/* Their order with those of the first thread is not known. */
static bool is_other_thread(const struct peal_shmem_call *call)
{
    bool other = !pthread_equal(pthread_self(), event_log.thread);
    if (other && call)
        fprintf(event_log.file,
                "%" PRIxPTR " %s refuse calls of a second thread are not recorded\n",
                (uintptr_t)call->from - event_log.base - 1, call->name);
    return other;
}

static void put_head(const struct peal_shmem_call *call)
{
    uintptr_t from = (uintptr_t)call->from;
    bool inside = peal_shmem_log_is_program(call->from);
    event_log.lines++;
    fprintf(event_log.file, "%" PRIxPTR " %s ", inside ? from - event_log.base - 1 : 0, call->name);
}

enum peal_shmem_look peal_shmem_log_look(const struct peal_shmem_call *call, const void *word,
                                         uint64_t lines, uint64_t **value)
{
    static struct look {
        const void *from, *word;
        uint64_t value, lines;
        bool is_pending;
    } looks[MAX_LOOKS];
    static size_t nlooks;
    struct look *look = looks;
    if (!event_log.file || is_other_thread(call))
        return PEAL_LOOK_FREE;
    while (look < looks + nlooks && (look->from != call->from || look->word != word))
        look++;
    if (look == looks + nlooks) {
        if (nlooks == MAX_LOOKS)
            return PEAL_LOOK_FREE;
        *look = (struct look){.from = call->from, .word = word};
        nlooks++;
    }
    *value = &look->value;
    bool again = look->is_pending && look->lines == event_log.lines;
    look->is_pending = again || !look->is_pending;
    look->lines = event_log.lines + lines;
    if (again)
        return PEAL_LOOK_AGAIN;
    return look->is_pending ? PEAL_LOOK_EARLY : PEAL_LOOK_FREE;
}

void peal_shmem_log_memory(const struct peal_shmem_call *call, void *at, size_t bytes,
                           const char *kind)
{
    peal_shmem_log(call, "memory %p %zu%s", at, bytes, kind);
    peal_shmem_script_segment(at);
}

void peal_shmem_log(const struct peal_shmem_call *call, const char *format, ...)
{
    va_list args;
    if (!event_log.file || is_other_thread(call))
        return;
    put_head(call);
    va_start(args, format);
    vfprintf(event_log.file, format, args);
    va_end(args);
    fputc('\n', event_log.file);
}

void peal_shmem_log_sync(const struct peal_shmem_call *call, const struct peal_shmem_team *team)
{
    if (!event_log.file || is_other_thread(call))
        return;
    put_head(call);
    fputs("sync", event_log.file);
    for (int i = 0; i < team->size; i++)
        fprintf(event_log.file, " %d", team->pes[i]);
    fputc('\n', event_log.file);
    event_log.syncs++;
}

void peal_shmem_log_synced(const struct peal_shmem_call *call, struct peal_comm *comm)
{
    if (event_log.file)
        peal_shmem_script_sync(call, comm, event_log.syncs - 1);
}

void peal_shmem_log_local(const void *at, size_t bytes)
{
    if (!event_log.file || bytes == 0 || is_other_thread(NULL))
        return;
    if (event_log.nlocals == MAX_LOCALS) /* the oldest has most likely ended */
        event_log.nlocals = 0;
    event_log.locals[event_log.nlocals].from = at;
    event_log.locals[event_log.nlocals].to = (const char *)at + bytes;
    event_log.nlocals++;
}

bool peal_shmem_is_local(const void *at, size_t bytes)
{
    const char *from = at, *to = from + bytes;
    for (size_t i = 0; i < event_log.nlocals; i++) {
        if (from < event_log.locals[i].to && event_log.locals[i].from < to)
            return true;
    }
    return false;
}
