/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of <peal/onesided.h> for peal record: the calls of the program come here first, because this
 * library is loaded before libpeal; they are logged and passed on. Calls of this library itself, and
 * all calls of programs that are not recorded, are only passed on. One communicator is recorded, from
 * its opening to its end; collectives and messages are noticed by an observer and refused by name. */
#include "job.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_AREAS = 256 };

static struct {
    struct peal_comm *world; /* NULL: nothing is recorded */
    struct peal_shmem_team team;
    struct {
        const char *from, *to;
    } areas[MAX_AREAS];
    size_t nareas;
    bool inside; /* a call that has steps of its own */
} direct;

/* libpeal's function of that name: after this library, or before it if the program was linked so. */
static void *find_next(const char *name)
{
    void *next = dlsym(RTLD_NEXT, name);
    return next ? next : dlsym(RTLD_DEFAULT, name);
}

#define NEXT(name)                                                                                 \
    static __typeof__(&name) next;                                                                 \
    if (!next) {                                                                                   \
        void *found = find_next(#name);                                                            \
        memcpy(&next, &found, sizeof next);                                                        \
    }                                                                                              \
    const struct peal_shmem_call call = {#name, __builtin_return_address(0)}

bool peal_shmem_is_direct(const void *address)
{
    for (size_t i = 0; i < direct.nareas; i++) {
        if ((const char *)address >= direct.areas[i].from &&
            (const char *)address < direct.areas[i].to)
            return true;
    }
    return false;
}

/* Is this a call to log? One of another communicator is refused. */
static bool is_seen(const struct peal_shmem_call *call, const struct peal_comm *comm)
{
    if (!direct.world || !peal_shmem_log_is_program(call->from))
        return false;
    if (comm != direct.world)
        peal_shmem_log(call, "refuse %s of another communicator than the first is not recorded",
                       call->name);
    return comm == direct.world;
}

static void notice(void *context, const struct peal_call_event *event)
{
    (void)context;
    if (!direct.inside)
        peal_shmem_log(&(const struct peal_shmem_call){"call", NULL},
                       "refuse 'peal_%s' is not recorded: one-sided calls and peal_barrier are",
                       event->name);
}

/* ---- the communicator and its memory ---- */

enum peal_status peal_comm_open(const struct peal_open *options, struct peal_comm **out)
{
    NEXT(peal_comm_open);
    enum peal_status status = next(options, out);
    if (status != PEAL_OK || direct.world || peal_shmem_is_logged() || !getenv("PEAL_RECORD") ||
        !peal_shmem_log_is_program(call.from))
        return status;
    struct peal_shmem_team *team = &direct.team;
    *team = (struct peal_shmem_team){.size = (int)peal_comm_size(*out)};
    team->pes = calloc((size_t)team->size, sizeof *team->pes);
    if (!team->pes)
        peal_shmem_fail(&call, "no memory to record");
    peal_shmem_log_begin(&call, (int)peal_comm_rank(*out));
    for (int i = 0; i < team->size; i++)
        team->pes[i] = i;
    direct.world = *out;
    (void)peal_comm_set_observer(*out, &(struct peal_observer){.begin = notice});
    return status;
}

void peal_comm_close(struct peal_comm *comm)
{
    NEXT(peal_comm_close);
    if (is_seen(&call, comm)) {
        peal_shmem_log_end(&call);
        direct.world = NULL;
        direct.nareas = 0;
    }
    next(comm);
}

enum peal_status peal_symmetric_alloc(struct peal_comm *comm, size_t bytes, void **out)
{
    NEXT(peal_symmetric_alloc);
    bool seen = is_seen(&call, comm);
    direct.inside = seen;
    enum peal_status status = next(comm, bytes, out);
    direct.inside = false;
    if (!seen || status != PEAL_OK)
        return status;
    if (direct.nareas == MAX_AREAS || peal_shmem_is_direct(*out)) {
        peal_shmem_log(&call, "refuse memory that was freed is used again, or %d pieces of memory",
                       MAX_AREAS);
        return status;
    }
    direct.areas[direct.nareas].from = *out;
    direct.areas[direct.nareas++].to = (const char *)*out + bytes;
    peal_shmem_log_memory(&call, *out, bytes, " symmetric");
    peal_shmem_log_sync(&call, &direct.team);
    direct.inside = true;
    peal_shmem_log_synced(&call, comm);
    direct.inside = false;
    return status;
}

enum peal_status peal_symmetric_free(struct peal_comm *comm, void *memory)
{
    NEXT(peal_symmetric_free);
    direct.inside = is_seen(&call, comm);
    if (direct.inside && memory)
        peal_shmem_log_sync(&call, &direct.team);
    enum peal_status status = next(comm, memory);
    if (direct.inside && memory)
        peal_shmem_log_synced(&call, comm);
    direct.inside = false;
    return status;
}

void *peal_symmetric_at(struct peal_comm *comm, const void *memory, uint32_t rank)
{
    NEXT(peal_symmetric_at);
    if (is_seen(&call, comm) && rank != peal_comm_rank(comm))
        peal_shmem_log(&call, "refuse memory of another rank is accessed directly");
    return next(comm, memory, rank);
}

enum peal_status peal_barrier(struct peal_comm *comm)
{
    NEXT(peal_barrier);
    direct.inside = is_seen(&call, comm);
    if (direct.inside)
        peal_shmem_log_sync(&call, &direct.team);
    enum peal_status status = next(comm);
    if (direct.inside)
        peal_shmem_log_synced(&call, comm);
    direct.inside = false;
    return status;
}

/* ---- puts, gets and signals ---- */

static void log_put(const struct peal_shmem_call *call, void *remote, const void *local,
                    uint64_t bytes, uint32_t rank)
{
    int64_t value = 0;
    int32_t word;
    if (bytes == sizeof word) {
        memcpy(&word, local, sizeof word);
        value = word;
    }
    if (bytes == sizeof value)
        memcpy(&value, local, sizeof value);
    if (bytes)
        peal_shmem_log(call, "put 0 %u %p %p %" PRIu64 " 0 %" PRId64, rank, remote, local, bytes,
                       value);
}

/* After all earlier puts to that rank, which a fence of the others would not say. */
static void log_notify(const struct peal_shmem_call *call, uint64_t *signal, uint64_t add,
                       uint32_t rank)
{
    const struct peal_shmem_call typed = {"peal_u64_notify", call->from};
    peal_shmem_log(call, "after 0 %u", rank);
    peal_shmem_log(&typed, "atomic 0 %u %p 8 add %" PRId64 " (nil) world 0 -", rank, (void *)signal,
                   (int64_t)add);
}

enum peal_status peal_put(struct peal_comm *comm, void *remote, const void *local, uint64_t bytes,
                          uint32_t rank)
{
    NEXT(peal_put);
    if (is_seen(&call, comm))
        log_put(&call, remote, local, bytes, rank);
    return next(comm, remote, local, bytes, rank);
}

enum peal_status peal_get(struct peal_comm *comm, void *local, const void *remote, uint64_t bytes,
                          uint32_t rank)
{
    NEXT(peal_get);
    if (is_seen(&call, comm) && bytes)
        peal_shmem_log(&call, "get 0 %u %p %p %" PRIu64 " 0", rank, local, remote, bytes);
    return next(comm, local, remote, bytes, rank);
}

enum peal_status peal_put_notify(struct peal_comm *comm, void *remote, const void *local,
                                 uint64_t bytes, uint64_t *signal, uint64_t add, uint32_t rank)
{
    NEXT(peal_put_notify);
    if (is_seen(&call, comm)) {
        log_put(&call, remote, local, bytes, rank);
        log_notify(&call, signal, add, rank);
    }
    return next(comm, remote, local, bytes, signal, add, rank);
}

enum peal_status peal_notify(struct peal_comm *comm, uint64_t *signal, uint64_t add, uint32_t rank)
{
    NEXT(peal_notify);
    if (is_seen(&call, comm))
        log_notify(&call, signal, add, rank);
    return next(comm, signal, add, rank);
}

enum peal_status peal_fence(struct peal_comm *comm)
{
    NEXT(peal_fence);
    if (is_seen(&call, comm))
        peal_shmem_log(&call, "fence 0");
    return next(comm);
}

enum peal_status peal_quiet(struct peal_comm *comm)
{
    NEXT(peal_quiet);
    if (is_seen(&call, comm))
        peal_shmem_log(&call, "quiet 0");
    return next(comm);
}

enum peal_status peal_wait_until(struct peal_comm *comm, const uint64_t *signal,
                                 enum peal_compare compare, uint64_t value)
{
    static const char *const signs[] = {"==", "!=", ">=", ">", "<=", "<"};
    NEXT(peal_wait_until);
    if (is_seen(&call, comm) && (unsigned)compare < sizeof signs / sizeof *signs)
        peal_shmem_log(&call, "wait %p 8 %s %" PRId64 " 1", (const void *)signal, signs[compare],
                       (int64_t)value);
    return next(comm, signal, compare, value);
}

/* ---- atomic operations: they block ---- */

struct atomic {
    const char *type; /* in the form of OpenSHMEM's names */
    const char *change;
    int width;
    int64_t value;
    uint64_t compare;
    const void *remote;
    uint32_t rank;
};

static void log_atomic(const struct peal_shmem_call *call, const struct atomic *atomic,
                       bool returns, uint64_t old)
{
    const struct peal_shmem_call typed = {atomic->type, call->from};
    bool only_reads = returns && atomic->value == 0 && strcmp(atomic->change, "add") == 0;
    peal_shmem_log(&typed, "atomic 0 %u %p %d %s %" PRId64 " %s world %" PRIu64 " %" PRIu64,
                   atomic->rank, atomic->remote, atomic->width,
                   only_reads ? "fetch" : atomic->change, atomic->value,
                   returns ? "0xffffffffffffffff" : "-", atomic->compare, old);
}

enum peal_status peal_fetch_add(struct peal_comm *comm, uint64_t *remote, uint64_t add,
                                uint32_t rank, uint64_t *old)
{
    NEXT(peal_fetch_add);
    uint64_t before = 0;
    if (!is_seen(&call, comm))
        return next(comm, remote, add, rank, old);
    enum peal_status status = next(comm, remote, add, rank, &before);
    log_atomic(&call, &(struct atomic){"peal_u64_add", "add", 8, (int64_t)add, 0, remote, rank},
               old, before);
    if (old)
        *old = peal_shmem_script_value(before);
    return status;
}

enum peal_status peal_fetch_add32(struct peal_comm *comm, uint32_t *remote, uint32_t add,
                                  uint32_t rank, uint32_t *old)
{
    NEXT(peal_fetch_add32);
    uint32_t before = 0;
    if (!is_seen(&call, comm))
        return next(comm, remote, add, rank, old);
    enum peal_status status = next(comm, remote, add, rank, &before);
    log_atomic(&call, &(struct atomic){"peal_u32_add", "add", 4, (int32_t)add, 0, remote, rank},
               old, before);
    if (old)
        *old = (uint32_t)peal_shmem_script_value(before);
    return status;
}

enum peal_status peal_compare_swap(struct peal_comm *comm, uint64_t *remote, uint64_t expected,
                                   uint64_t desired, uint32_t rank, uint64_t *old)
{
    NEXT(peal_compare_swap);
    uint64_t before = 0;
    if (!is_seen(&call, comm))
        return next(comm, remote, expected, desired, rank, old);
    enum peal_status status = next(comm, remote, expected, desired, rank, &before);
    log_atomic(&call,
               &(struct atomic){"peal_u64_swap", "compare_swap", 8, (int64_t)desired, expected,
                                remote, rank},
               old, before);
    if (old)
        *old = peal_shmem_script_value(before);
    return status;
}

enum peal_status peal_compare_swap32(struct peal_comm *comm, uint32_t *remote, uint32_t expected,
                                     uint32_t desired, uint32_t rank, uint32_t *old)
{
    NEXT(peal_compare_swap32);
    uint32_t before = 0;
    if (!is_seen(&call, comm))
        return next(comm, remote, expected, desired, rank, old);
    enum peal_status status = next(comm, remote, expected, desired, rank, &before);
    log_atomic(&call,
               &(struct atomic){"peal_u32_swap", "compare_swap", 4, (int32_t)desired, expected,
                                remote, rank},
               old, before);
    if (old)
        *old = (uint32_t)peal_shmem_script_value(before);
    return status;
}

/* ---- what is not recorded ---- */

static void refuse(const struct peal_shmem_call *call, const struct peal_comm *comm)
{
    if (is_seen(call, comm))
        peal_shmem_log(call, "refuse '%s' is not recorded", call->name);
}

enum peal_status peal_iput(struct peal_comm *comm, void *remote, const void *local, uint64_t bytes,
                           uint32_t rank, struct peal_request **out)
{
    NEXT(peal_iput);
    refuse(&call, comm);
    return next(comm, remote, local, bytes, rank, out);
}

enum peal_status peal_iget(struct peal_comm *comm, void *local, const void *remote, uint64_t bytes,
                           uint32_t rank, struct peal_request **out)
{
    NEXT(peal_iget);
    refuse(&call, comm);
    return next(comm, local, remote, bytes, rank, out);
}

enum peal_status peal_iput_notify(struct peal_comm *comm, void *remote, const void *local,
                                  uint64_t bytes, uint64_t *signal, uint64_t add, uint32_t rank,
                                  struct peal_request **out)
{
    NEXT(peal_iput_notify);
    refuse(&call, comm);
    return next(comm, remote, local, bytes, signal, add, rank, out);
}

enum peal_status peal_wait_for(struct peal_comm *comm, int (*condition)(void *context),
                               void *context, const char *what)
{
    NEXT(peal_wait_for);
    refuse(&call, comm);
    return next(comm, condition, context, what);
}
