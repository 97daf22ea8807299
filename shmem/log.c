/* SPDX-License-Identifier: Apache-2.0 */
/* What this PE does, for peal record: a file per PE in the folder that PEAL_RECORD names, one line
 * per event: its name, the place in the program (the address of the call, as in the file of the
 * program), and its numbers. python/peal/shmem.py says what they mean. */
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LOCALS = 4096, MAX_LOOKS = 256, MAX_LINES = 1000000 };

static struct {
    FILE *file;
    uint64_t lines, syncs;
    char path[4096];
    pthread_t thread; /* the only one whose calls have an order */
    bool forked;      /* this is a child process */
    bool sees_plain, failed;
    int nthreads; /* when it began */
    struct {      /* a store of a word, which is reported before it is done */
        const void *from, *at;
        size_t bytes;
    } store;
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

void peal_shmem_log_failed(const struct peal_shmem_call *call, const char *why)
{
    peal_shmem_log(call, "failed %.*s", (int)strcspn(why, "\n"), why);
    event_log.failed = true;
}

void peal_shmem_log_sees_plain(void)
{
    event_log.sees_plain = true;
}

static int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));)
        count += task->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

/* Where the program was when a signal ended it, or when its time was over. */
static void log_end_at(const char *how)
{
    enum { MAX_FRAMES = 64 };
    void *frames[MAX_FRAMES];
    int nframes = backtrace(frames, MAX_FRAMES), i = 0;
    while (i < nframes && !peal_shmem_log_is_program(frames[i]))
        i++;
    (void)fflush_unlocked(event_log.file);
    dprintf(fileno(event_log.file), "%" PRIxPTR " %s\n",
            i < nframes ? (uintptr_t)frames[i] - event_log.base - 1 : 0, how);
}

static void end_by_signal(int number)
{
    char how[32];
    snprintf(how, sizeof how, "signal killed %d", number);
    if (event_log.file)
        log_end_at(how);
    raise(number); /* its handler is no longer this one */
}

static void end_by_exit(void)
{
    if (event_log.file && !event_log.forked && !event_log.failed)
        log_end_at("exit exited");
}

static void begin_signals(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,
                                  SIGABRT, SIGXCPU, SIGALRM, SIGTERM};
    const char *seconds = getenv("PEAL_RECORD_ALARM");
    void *frame;
    (void)backtrace(&frame, 1); /* the first call loads a library */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction now, own = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND};
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &own, NULL);
    }
    if (seconds)
        alarm((unsigned)strtoul(seconds, NULL, 10));
}

/* The child must not write what its parent has buffered, and has a file of its own. */
static void flush_before_fork(void)
{
    if (event_log.file)
        fflush(event_log.file);
}

static void begin_child(void)
{
    if (!event_log.file)
        return;
    strncat(event_log.path, ".child", sizeof event_log.path - strlen(event_log.path) - 1);
    event_log.file = fopen(event_log.path, "a");
    event_log.forked = true;
}

void peal_shmem_log_begin(const struct peal_shmem_call *call, int rank)
{
    const char *folder = getenv("PEAL_RECORD");
    if (!folder)
        return;
    snprintf(event_log.path, sizeof event_log.path, "%s/pe%d", folder, rank);
    event_log.file = fopen(event_log.path, "wx");
    if (!event_log.file)
        peal_shmem_fail(call, "cannot record to %s: %s", event_log.path, strerror(errno));
    pthread_atfork(flush_before_fork, NULL, begin_child);
    event_log.thread = pthread_self();
    event_log.nthreads = count_threads();
    begin_signals();
    (void)atexit(end_by_exit);
    peal_shmem_script_begin(call, rank);
    peal_shmem_log(call, "stack %p%s", __builtin_frame_address(0),
                   event_log.sees_plain ? " plain" : "");
}

bool peal_shmem_log_is_program(const void *from)
{
    if (!event_log.end)
        dl_iterate_phdr(find_program, NULL);
    return (uintptr_t)from > event_log.base && (uintptr_t)from <= event_log.end;
}

void peal_shmem_log_end(const struct peal_shmem_call *call)
{
    /* Such as those of OpenMP, which may have done what another run does in the first thread. */
    if (event_log.file && !event_log.sees_plain && count_threads() > event_log.nthreads)
        peal_shmem_log(call,
                       "refuse there are threads, and what they do is not seen: peal cc compiles "
                       "the program so that it is");
    peal_shmem_log(call, "end");
    if (event_log.file)
        fclose(event_log.file);
    event_log.file = NULL;
}

bool peal_shmem_is_logged(void)
{
    return event_log.file != NULL;
}

bool peal_shmem_is_second_thread(void)
{
    return !event_log.forked && !pthread_equal(pthread_self(), event_log.thread);
}

/* What another thread or a child process does is refused, once: its order is not known. */
static bool is_outside(const struct peal_shmem_call *call)
{
    static atomic_flag refused = ATOMIC_FLAG_INIT;
    if (!event_log.forked && !peal_shmem_is_second_thread())
        return false;
    /* Relaxed: only one line is wanted. */
    if (!atomic_flag_test_and_set_explicit(&refused, memory_order_relaxed)) {
        fprintf(event_log.file, "%" PRIxPTR " %s refuse what %s does is not recorded\n",
                (uintptr_t)call->from - event_log.base - 1, call->name,
                event_log.forked ? "a child process" : "a second thread");
        fflush(event_log.file);
    }
    return true;
}

/* False: nothing is logged, and why not has been. */
static bool may_log(const struct peal_shmem_call *call)
{
    if (!event_log.file || is_outside(call) || event_log.lines > MAX_LINES)
        return false;
    if (event_log.lines++ < MAX_LINES)
        return true;
    fprintf(event_log.file, "%" PRIxPTR " %s refuse a PE does more than %d operations\n",
            (uintptr_t)call->from - event_log.base - 1, call->name, MAX_LINES);
    fflush(event_log.file);
    return false;
}

/* With the value that it has left: others may wait for it. */
static void put_store(void)
{
    int64_t value = 0;
    int32_t word;
    if (!event_log.store.at)
        return;
    if (event_log.store.bytes == sizeof word) {
        memcpy(&word, event_log.store.at, sizeof word);
        value = word;
    } else {
        memcpy(&value, event_log.store.at, sizeof value);
    }
    fprintf(event_log.file, "%" PRIxPTR " STORE store %#zx %zu %" PRId64 "\n",
            (uintptr_t)event_log.store.from - event_log.base - 1,
            (size_t)(uintptr_t)event_log.store.at, event_log.store.bytes, value);
    event_log.store.at = NULL;
}

static void put_head(const struct peal_shmem_call *call)
{
    put_store();
    uintptr_t from = (uintptr_t)call->from;
    bool inside = peal_shmem_log_is_program(call->from);
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
    if (!event_log.file || is_outside(call))
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
    if (!may_log(call))
        return;
    put_head(call);
    va_start(args, format);
    vfprintf(event_log.file, format, args);
    va_end(args);
    fputc('\n', event_log.file);
    fflush(event_log.file); /* the last call is known, however the program ends */
}

void peal_shmem_log_access(const void *from, const void *at, size_t bytes, bool writes)
{
    const struct peal_shmem_call call = {writes ? "STORE" : "LOAD", from};
    if (!may_log(&call))
        return;
    if (writes && (bytes == sizeof(int32_t) || bytes == sizeof(int64_t)) &&
        peal_shmem_log_is_program(from)) {
        put_store();
        event_log.store.from = from;
        event_log.store.at = at;
        event_log.store.bytes = bytes;
        return;
    }
    put_head(&call);
    fprintf(event_log.file, "%s %#zx %zu\n", writes ? "store" : "load", (size_t)(uintptr_t)at,
            bytes);
}

void peal_shmem_log_sync(const struct peal_shmem_call *call, const struct peal_shmem_team *team)
{
    if (!may_log(call))
        return;
    put_head(call);
    fputs("sync", event_log.file);
    for (int i = 0; i < team->size; i++)
        fprintf(event_log.file, " %d", team->pes[i]);
    fputc('\n', event_log.file);
    fflush(event_log.file);
    event_log.syncs++;
}

void peal_shmem_log_synced(const struct peal_shmem_call *call, struct peal_comm *comm)
{
    if (event_log.file)
        peal_shmem_script_sync(call, comm, event_log.syncs - 1);
}

void peal_shmem_log_local(const void *at, size_t bytes)
{
    if (!event_log.file || bytes == 0 || peal_shmem_is_second_thread())
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
