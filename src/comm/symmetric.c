/* SPDX-License-Identifier: Apache-2.0 */
/* Symmetric memory: a range at the same offset of every rank's window file, mapped by all ranks.
 *
 * The communicator owns the allocations, in a list. From the allocation that contains an address, a
 * rank knows the same address in every other rank's copy. Allocation is collective and succeeds on
 * all ranks or on none, because peers' calls rely on it. Ranks on other hosts have no mapping: they
 * reach it through a segment that its owner exposes.
 *
 * After a failure a peer that was stopped in the failed call may still write. So this rank's part
 * is then replaced by a private copy at the same address. Not between threads, which share one
 * address space and see each other's stores anyway. */
#include "comm/core/communicator.h"

#include "base/base.h"
#include "run/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

/* Lets the ranks of other hosts reach this rank's part. */
static uint32_t expose(const struct peal_team *team, const struct peal_symmetric *memory)
{
    if (!team->span)
        return 0;
    (void)peal_endpoint_lock(team->span->endpoint);
    uint32_t segment =
        peal_endpoint_expose(team->span->endpoint, memory->at[team->rank], memory->bytes);
    peal_endpoint_unlock(team->span->endpoint);
    return segment;
}

static void retract(const struct peal_team *team, const struct peal_symmetric *memory)
{
    if (!team->span || !memory->segments || memory->segments[team->rank] == PEAL_NONE)
        return;
    (void)peal_endpoint_lock(team->span->endpoint);
    peal_endpoint_retract(team->span->endpoint, memory->segments[team->rank]);
    memory->segments[team->rank] = PEAL_NONE;
    peal_endpoint_unlock(team->span->endpoint);
}

static void unmap(struct peal_comm *comm, struct peal_symmetric *memory)
{
    struct peal_team *team = comm->team;
    retract(team, memory);
    for (uint32_t r = 0; r < team->size; r++) {
        if (!team->threads || r == team->rank)
            peal_window_unmap(memory->at[r], memory->bytes);
    }
    free(memory->segments);
    free(memory->at);
    free(memory);
}

void peal_symmetric_release(struct peal_comm *comm)
{
    while (comm->symmetric) {
        struct peal_symmetric *memory = comm->symmetric;
        comm->symmetric = memory->next;
        unmap(comm, memory);
    }
}

void peal_symmetric_isolate(struct peal_comm *comm)
{
    for (struct peal_symmetric *m = comm->symmetric; m && !comm->team->threads; m = m->next) {
        char *own = m->at[comm->team->rank];
        retract(comm->team, m);
        if (m->isolated || !own || m->bytes == 0 || !peal_memory_limit_has(m->bytes, 1, NULL))
            continue;
        void *copy =
            mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (copy == MAP_FAILED)
            continue;
        memcpy(copy, own, m->bytes);
        m->isolated = mremap(copy, m->bytes, m->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, own) == own;
        if (!m->isolated)
            munmap(copy, m->bytes);
    }
}

const struct peal_symmetric *peal_symmetric_find(const struct peal_comm *comm, const void *at,
                                                 uint64_t bytes)
{
    for (const struct peal_symmetric *m = comm->symmetric; m; m = m->next) {
        const char *own = m->at[comm->team->rank];
        if ((const char *)at >= own && (const char *)at < own + m->bytes &&
            bytes <= m->bytes - (uint64_t)((const char *)at - own))
            return m;
    }
    return NULL;
}

/* What each rank sends all others about an allocation. */
struct symmetric_offer {
    uint64_t status;
    uint64_t bytes;
    uint64_t at; /* threads: the address, valid for all; several hosts: the segment */
};

static char *map_part(const struct peal_team *team, uint32_t rank, uint64_t offset, uint64_t bytes)
{
    char *at = peal_window_map(team->fds[rank], team->starts[rank] + offset, bytes);
    if (at)
        peal_window_populate(at, bytes, rank == team->rank);
    return at;
}

/* Gives this rank's part's memory back. */
static void discard(const struct peal_team *team, uint64_t offset, uint64_t bytes)
{
    peal_window_discard(team->fds[team->rank], team->starts[team->rank] + offset, bytes);
}

static struct peal_symmetric *map_own(struct peal_comm *comm, uint64_t bytes,
                                      enum peal_status *status)
{
    struct peal_team *team = comm->team;
    struct peal_symmetric *memory = calloc(1, sizeof *memory);
    *status = PEAL_NO_MEMORY;
    if (!memory)
        return NULL;
    memory->at = calloc(team->size, sizeof(char *));
    memory->segments = calloc(team->size, sizeof *memory->segments);
    if (memory->segments)
        memory->segments[team->rank] = PEAL_NONE;
    memory->bytes = bytes;
    memory->offset = team->heap_end;
    bool fits = bytes <= PEAL_WINDOWS_BODY && memory->offset <= PEAL_WINDOWS_BODY - bytes;
    if (memory->at && memory->segments && bytes > 0 && fits) {
        *status = peal_window_reserve(team->fds[team->rank],
                                      team->starts[team->rank] + memory->offset, bytes);
        if (*status == PEAL_OK) {
            memory->at[team->rank] = map_part(team, team->rank, memory->offset, bytes);
            *status = memory->at[team->rank] ? PEAL_OK : PEAL_NO_MEMORY;
        }
        if (*status == PEAL_OK) {
            memory->segments[team->rank] = expose(team, memory);
            *status = memory->segments[team->rank] == PEAL_NONE ? PEAL_NO_MEMORY : PEAL_OK;
        }
    }
    return memory;
}

/* What all ranks ask for, before any rank takes it. */
struct wish {
    uint64_t bytes;
    struct peal_memory_limit room;
};

/* All ranks want the same, and the machine has it for all of them: each for itself would see room
 * that the others are about to take, and the system would end processes, not refuse. */
static enum peal_status agree(struct peal_comm *comm, uint64_t bytes)
{
    uint32_t size = comm->team->size;
    struct wish own = {.bytes = bytes}, all[PEAL_MOST_RANKS];
    peal_memory_limit_find("", &own.room);
    enum peal_status status =
        peal_comm_exchange(comm, PEAL_CALL_SYMMETRIC_ALLOC, &own, all, sizeof own);
    struct peal_memory_limit room = own.room;
    if (status == PEAL_OK) {
        for (uint32_t r = 0; r < size; r++) {
            if (all[r].bytes != bytes)
                return peal_comm_fail(comm, PEAL_MISMATCH,
                                      "symmetric_alloc: rank %u wants %llu bytes, rank %u %llu", r,
                                      (unsigned long long)all[r].bytes, comm->team->rank,
                                      (unsigned long long)bytes);
            if (all[r].room.bytes < room.bytes)
                room = all[r].room;
        }
    }
    struct peal_text why = {0};
    if (status == PEAL_OK &&
        !peal_memory_limit_fits(&room, peal_size_mul_capped(bytes, size), size, &why))
        status = peal_comm_fail(comm, PEAL_NO_MEMORY, "symmetric_alloc: %s", peal_text_get(&why));
    peal_text_release(&why);
    return status;
}

/* Where the peers' memory is. */
static enum peal_status map_peers(const struct peal_team *team,
                                  const struct symmetric_offer *offers,
                                  struct peal_symmetric *memory)
{
    for (uint32_t r = 0; r < team->size; r++) {
        if (r == team->rank)
            continue;
        if (peal_team_is_far(team, r)) {
            memory->segments[r] = (uint32_t)offers[r].at;
            continue;
        }
        memory->at[r] = team->threads ? (char *)(uintptr_t)offers[r].at
                                      : map_part(team, r, memory->offset, memory->bytes);
        if (!memory->at[r])
            return PEAL_NO_MEMORY;
    }
    return PEAL_OK;
}

/* True if every rank has its memory, or has mapped that of all ranks. */
static bool all_have(struct peal_comm *comm, const struct symmetric_offer *offers,
                     enum peal_status *status)
{
    for (uint32_t r = 0; r < comm->team->size; r++) {
        if (offers[r].status != PEAL_OK) {
            *status = peal_comm_fail(comm, (enum peal_status)offers[r].status,
                                     "symmetric_alloc: rank %u has no room for %llu bytes", r,
                                     (unsigned long long)offers[r].bytes);
            return false;
        }
    }
    return true;
}

enum peal_status peal_symmetric_alloc(struct peal_comm *comm, size_t bytes, void **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK || !out)
        return status != PEAL_OK ? status : PEAL_INVALID;
    status = agree(comm, bytes);
    if (status != PEAL_OK)
        return status;
    struct peal_team *team = comm->team;
    uint64_t whole = 0; /* too much for any memory */
    if (bytes <= (uint64_t)INT64_MAX / 4)
        whole = peal_size_align(peal_size_max(bytes, 1), PAGE);
    struct peal_symmetric *memory = map_own(comm, whole, &status);
    struct symmetric_offer own = {.status = status, .bytes = bytes}, all[PEAL_MOST_RANKS];
    if (memory && memory->at && memory->segments)
        own.at =
            team->span ? memory->segments[team->rank] : (uint64_t)(uintptr_t)memory->at[team->rank];
    status = peal_comm_exchange(comm, PEAL_CALL_SYMMETRIC_ALLOC, &own, all, sizeof own);
    bool ok = status == PEAL_OK && all_have(comm, all, &status);
    if (ok) {
        /* A rank may be refused what the others are given: then no rank keeps it, and the next
         * allocation begins at the same offset everywhere. */
        own.status = map_peers(team, all, memory);
        status = peal_comm_exchange(comm, PEAL_CALL_SYMMETRIC_ALLOC, &own, all, sizeof own);
        ok = status == PEAL_OK && all_have(comm, all, &status);
    }
    if (ok) {
        peal_comm_forget(comm); /* private memory may have been where this is now */
        team->heap_end += whole;
        memory->next = comm->symmetric;
        comm->symmetric = memory;
        *out = memory->at[team->rank];
        return PEAL_OK;
    }
    if (memory && memory->at) {
        if (memory->at[team->rank])
            discard(team, memory->offset, whole);
        unmap(comm, memory);
    } else {
        free(memory);
    }
    return status;
}

enum peal_status peal_symmetric_free(struct peal_comm *comm, void *memory)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK || !memory)
        return status;
    struct peal_team *team = comm->team;
    struct peal_symmetric **link = &comm->symmetric;
    while (*link && (*link)->at[team->rank] != memory)
        link = &(*link)->next;
    if (!*link)
        return peal_comm_fail(comm, PEAL_INVALID, "this is not symmetric memory");
    struct peal_symmetric *found = *link;
    uint64_t own = found->offset, all[PEAL_MOST_RANKS];
    /* After this, no peer is in an earlier call that may still use it. */
    status = peal_comm_exchange(comm, PEAL_CALL_SYMMETRIC_FREE, &own, all, sizeof own);
    if (status != PEAL_OK)
        return status;
    for (uint32_t r = 0; r < team->size; r++) {
        if (all[r] != own)
            return peal_comm_fail(comm, PEAL_MISMATCH,
                                  "symmetric_free: rank %u frees other memory than rank %u", r,
                                  team->rank);
    }
    *link = found->next;
    peal_comm_forget(comm);
    /* Offsets are not reused, only the memory is given back: peers' views stay distinct. */
    discard(team, found->offset, found->bytes);
    unmap(comm, found);
    return PEAL_OK;
}

void *peal_symmetric_at(struct peal_comm *comm, const void *memory, uint32_t rank)
{
    const struct peal_symmetric *found = comm ? peal_symmetric_find(comm, memory, 1) : NULL;
    if (!found || rank >= comm->team->size)
        return NULL;
    if (!found->at[rank])
        return NULL; /* on another host */
    return found->at[rank] + ((const char *)memory - found->at[comm->team->rank]);
}
