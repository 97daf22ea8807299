/* SPDX-License-Identifier: Apache-2.0 */
/* Symmetric memory.
 *
 * The program's own data. Global and static variables are symmetric. So the pages of the program's
 * writable segments become pages of Peal's symmetric memory: their contents are copied there, and
 * that memory is mapped a second time where the variables are. Peers then reach them, and the
 * program notices nothing. What the loader has made read-only stays as it is. Addresses differ
 * between PEs, offsets do not, because all run the same program. A forked child gets private copies
 * again, so that it does not write to its parent's variables.
 *
 * The heap. Pieces of symmetric memory, each divided into blocks by first fit. The program sees a
 * piece through a second mapping too, whose address is a multiple of MAX_ALIGNMENT on every PE. All PEs make the same
 * calls in the same order, so they find the same blocks; what they are asked for is compared. */
#include "job.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, GRAIN = 64, MAX_SEGMENTS = 8, HEAP_BYTES = 16 << 20 };
enum { MAX_ALIGNMENT = 64 << 20 };

/* Where the program sees symmetric memory, and where Peal does. */
struct segment {
    char *from, *symmetric;
    size_t bytes;
};

/* A block that is in use, of a piece; ordered by offset. */
struct block {
    size_t from, bytes;
};

struct piece {
    struct segment at;
    struct block *blocks;
    size_t nblocks, capacity;
    struct piece *next;
};

static struct {
    struct peal_comm *world;
    struct segment segments[MAX_SEGMENTS];
    int nsegments;
    struct piece *pieces;
} memory;

static uintptr_t page_down(uintptr_t at)
{
    return at & ~(uintptr_t)(PAGE - 1);
}

static bool contains(const struct segment *segment, const char *at)
{
    return at >= segment->from && at < segment->from + segment->bytes;
}

/* Maps the symmetric memory a second time. With an old length of 0, mremap does just that. */
static bool map_again(const struct segment *segment)
{
    return mremap(segment->symmetric, 0, segment->bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                  segment->from) != MAP_FAILED;
}

void *peal_shmem_find(const void *address)
{
    const char *at = address;
    for (int i = 0; i < memory.nsegments; i++) {
        if (contains(&memory.segments[i], at))
            return memory.segments[i].symmetric + (at - memory.segments[i].from);
    }
    for (struct piece *piece = memory.pieces; piece; piece = piece->next) {
        if (contains(&piece->at, at))
            return piece->at.symmetric + (at - piece->at.from);
    }
    return NULL;
}

void *peal_shmem_symmetric(const struct peal_shmem_call *call, const void *address)
{
    void *found = peal_shmem_find(address);
    if (!found)
        peal_shmem_fail(call, "%p is not symmetric memory", address);
    return found;
}

/* ---- the program's own data ---- */

/* Called for the program first; it ends the iteration there. */
static int read_segments(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    uintptr_t fixed_from = 0, fixed_to = 0; /* read-only after relocation */
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_GNU_RELRO) {
            fixed_from = page_down(info->dlpi_addr + part->p_vaddr);
            fixed_to = page_down(info->dlpi_addr + part->p_vaddr + part->p_memsz);
        }
    }
    for (int i = 0; i < info->dlpi_phnum && memory.nsegments < MAX_SEGMENTS; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        uintptr_t from = page_down(info->dlpi_addr + part->p_vaddr);
        uintptr_t to = page_down(info->dlpi_addr + part->p_vaddr + part->p_memsz + PAGE - 1);
        if (from >= fixed_from && from < fixed_to)
            from = fixed_to;
        if (from < to)
            memory.segments[memory.nsegments++] =
                (struct segment){.from = (char *)from, .bytes = to - from};
    }
    return 1;
}

/* Private copies at the same addresses. */
static void separate_child(void)
{
    for (int i = 0; i < memory.nsegments; i++) {
        struct segment *segment = &memory.segments[i];
        void *copy =
            mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (copy == MAP_FAILED)
            abort(); /* otherwise the child would change its parent's variables */
        memcpy(copy, segment->from, segment->bytes);
        if (mremap(copy, segment->bytes, segment->bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   segment->from) == MAP_FAILED)
            abort();
    }
}

static void share_segments(const struct peal_shmem_call *call)
{
    dl_iterate_phdr(read_segments, NULL);
    for (int i = 0; i < memory.nsegments; i++) {
        struct segment *segment = &memory.segments[i];
        void *symmetric = NULL;
        peal_shmem_check(call, memory.world,
                         peal_symmetric_alloc(memory.world, segment->bytes, &symmetric));
        segment->symmetric = symmetric;
        memcpy(symmetric, segment->from, segment->bytes);
        if (!map_again(segment))
            peal_shmem_fail(call, "the program's data cannot be shared: %s", strerror(errno));
        peal_shmem_log_memory(call, segment->from, segment->bytes, "");
    }
    pthread_atfork(NULL, NULL, separate_child);
}

/* ---- the heap ---- */

/* SHMEM_SYMMETRIC_SIZE: bytes, or with K, M, G, T. */
static size_t read_size(const struct peal_shmem_call *call)
{
    const char *text = getenv("SHMEM_SYMMETRIC_SIZE");
    if (!text)
        return HEAP_BYTES;
    char *end;
    double bytes = strtod(text, &end);
    for (const char *unit = "KMGT", *at = end[0] ? strchr(unit, end[0] & ~0x20) : NULL; at;
         at = at > unit ? at - 1 : NULL)
        bytes *= 1024;
    if (end == text || !(bytes >= 0 && bytes < 1e15))
        peal_shmem_fail(call, "SHMEM_SYMMETRIC_SIZE='%s' is not a size", text);
    return (size_t)bytes;
}

/* An aligned range of addresses that nothing uses; NULL: there is none. */
static char *reserve(size_t bytes)
{
    size_t whole = bytes + MAX_ALIGNMENT;
    char *at = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)at % MAX_ALIGNMENT;
    if (before > 0)
        munmap(at, before);
    munmap(at + before + bytes, whole - before - bytes);
    return at + before;
}

/* Collective. */
static struct piece *add_piece(const struct peal_shmem_call *call, size_t bytes)
{
    bytes = page_down(bytes + PAGE - 1);
    LOCKED;
    struct piece *piece = calloc(1, sizeof *piece);
    void *symmetric = NULL;
    if (!piece || peal_symmetric_alloc(memory.world, bytes, &symmetric) != PEAL_OK) {
        free(piece);
        return NULL;
    }
    piece->at = (struct segment){reserve(bytes), symmetric, bytes};
    if (!piece->at.from || !map_again(&piece->at))
        peal_shmem_fail(call, "the heap cannot be mapped: %s", strerror(errno));
    peal_shmem_log_memory(call, piece->at.from, bytes, "");
    struct piece **last = &memory.pieces;
    while (*last)
        last = &(*last)->next;
    *last = piece;
    return piece;
}

static bool insert_block(struct piece *piece, size_t index, size_t from, size_t bytes)
{
    if (piece->nblocks == piece->capacity) {
        size_t capacity = piece->capacity ? 2 * piece->capacity : 64;
        struct block *grown = realloc(piece->blocks, capacity * sizeof *grown);
        if (!grown)
            return false;
        piece->blocks = grown;
        piece->capacity = capacity;
    }
    memmove(piece->blocks + index + 1, piece->blocks + index,
            (piece->nblocks - index) * sizeof *piece->blocks);
    piece->blocks[index] = (struct block){from, bytes};
    piece->nblocks++;
    return true;
}

/* First fit in the gaps between blocks. */
static void *take(struct piece *piece, size_t alignment, size_t bytes)
{
    size_t free_from = 0;
    for (size_t i = 0; i <= piece->nblocks; i++) {
        size_t free_to = i < piece->nblocks ? piece->blocks[i].from : piece->at.bytes;
        size_t from = (free_from + alignment - 1) & ~(alignment - 1);
        if (from >= free_from && from <= free_to && bytes <= free_to - from)
            return insert_block(piece, i, from, bytes) ? piece->at.from + from : NULL;
        if (i < piece->nblocks)
            free_from = piece->blocks[i].from + piece->blocks[i].bytes;
    }
    return NULL;
}

static struct piece *find_block(const void *at, size_t *index)
{
    for (struct piece *piece = memory.pieces; piece; piece = piece->next) {
        for (size_t i = 0; i < piece->nblocks; i++) {
            if (piece->at.from + piece->blocks[i].from == at) {
                *index = i;
                return piece;
            }
        }
    }
    return NULL;
}

/* A barrier that also compares what the PEs have been asked for. */
static void agree(const struct peal_shmem_call *call, uint64_t request)
{
    uint64_t all[PEAL_MOST_RANKS];
    peal_shmem_quiet(call, SHMEM_CTX_DEFAULT);
    peal_shmem_log_sync(call, peal_shmem_team(call, SHMEM_TEAM_WORLD));
    struct peal_comm *comm = peal_shmem_team(call, SHMEM_TEAM_WORLD)->comm;
    peal_shmem_check(call, comm, peal_allgather(comm, &request, all, 1, PEAL_U64));
    peal_shmem_log_synced(call, comm);
    for (uint32_t pe = 0; pe < peal_comm_size(comm); pe++) {
        if (all[pe] != request)
            peal_shmem_fail(call, "PE %u calls it with another argument than this PE", pe);
    }
}

static void *allocate(const struct peal_shmem_call *call, size_t alignment, size_t bytes)
{
    (void)peal_shmem_world(call);
    if (bytes == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0 ||
        bytes > (size_t)PTRDIFF_MAX / 4 || alignment > MAX_ALIGNMENT)
        return NULL;
    agree(call, bytes ^ (uint64_t)__builtin_ctzll(alignment) << 56);
    bytes = (bytes + GRAIN - 1) & ~(size_t)(GRAIN - 1);
    alignment = alignment < GRAIN ? GRAIN : alignment;
    void *at = NULL;
    for (struct piece *piece = memory.pieces; piece && !at; piece = piece->next)
        at = take(piece, alignment, bytes);
    if (at)
        return at;
    struct piece *piece = add_piece(call, bytes > HEAP_BYTES ? bytes : HEAP_BYTES);
    return piece ? take(piece, alignment, bytes) : NULL;
}

static void release(const struct peal_shmem_call *call, void *ptr)
{
    size_t index;
    struct piece *piece = find_block(ptr, &index);
    if (!piece)
        peal_shmem_fail(call, "%p is not what shmem_malloc has returned", ptr);
    /* No PE frees what another still uses. */
    agree(call, (uint64_t)piece->blocks[index].from);
    piece->nblocks--;
    memmove(piece->blocks + index, piece->blocks + index + 1,
            (piece->nblocks - index) * sizeof *piece->blocks);
}

static void *reallocate(const struct peal_shmem_call *call, void *ptr, size_t size)
{
    if (!ptr)
        return allocate(call, GRAIN, size);
    if (size == 0) {
        release(call, ptr);
        return NULL;
    }
    size_t index;
    struct piece *piece = find_block(ptr, &index);
    if (!piece)
        peal_shmem_fail(call, "%p is not what shmem_malloc has returned", ptr);
    size_t old = piece->blocks[index].bytes;
    void *grown = allocate(call, GRAIN, size);
    if (grown) {
        memcpy(grown, ptr, old < size ? old : size);
        release(call, ptr);
    }
    return grown;
}

void *shmem_malloc(size_t size)
{
    return allocate(HERE, GRAIN, size);
}

void *shmem_malloc_with_hints(size_t size, long hints)
{
    (void)hints;
    return allocate(HERE, GRAIN, size);
}

void *shmem_calloc(size_t count, size_t size)
{
    if (size != 0 && count > (size_t)PTRDIFF_MAX / size)
        return NULL;
    void *at = allocate(HERE, GRAIN, count * size);
    if (at) {
        memset(at, 0, count * size);
        agree(HERE, count); /* a peer's put comes after the zeroes */
    }
    return at;
}

void *shmem_align(size_t alignment, size_t size)
{
    return allocate(HERE, alignment, size);
}

void *shmem_realloc(void *ptr, size_t size)
{
    return reallocate(HERE, ptr, size);
}

void shmem_free(void *ptr)
{
    (void)peal_shmem_world(HERE);
    if (ptr)
        release(HERE, ptr);
}

void *shmalloc(size_t size)
{
    return allocate(HERE, GRAIN, size);
}

void *shmemalign(size_t alignment, size_t size)
{
    return allocate(HERE, alignment, size);
}

void *shrealloc(void *ptr, size_t size)
{
    return reallocate(HERE, ptr, size);
}

void shfree(void *ptr)
{
    if (ptr)
        release(HERE, ptr);
}

/* ---- begin and end ---- */

void peal_shmem_memory_begin(const struct peal_shmem_call *call, struct peal_comm *world)
{
    memory.world = world;
    share_segments(call);
    size_t bytes = read_size(call);
    if (bytes > 0 && !add_piece(call, bytes))
        peal_shmem_fail(call, "%s", peal_comm_error(world));
    peal_shmem_check(call, world, peal_barrier(world));
}

/* The variables stay where they are: the program may read them after shmem_finalize. */
void peal_shmem_memory_end(void)
{
    while (memory.pieces) {
        struct piece *piece = memory.pieces;
        memory.pieces = piece->next;
        munmap(piece->at.from, piece->at.bytes);
        free(piece->blocks);
        free(piece);
    }
}
