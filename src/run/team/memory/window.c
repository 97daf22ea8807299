/* SPDX-License-Identifier: Apache-2.0 */
/* Windows are memfds, sealed against shrinking, so that a peer cannot make another's loads
 * fault. */
#include "run/team/memory/window.h"

#include "run/team/memory/memory_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { PAGE = 4096 };

enum peal_status peal_window_grow(int fd, uint64_t bytes)
{
    struct stat file;
    struct rlimit limit;
    do {
        if (fstat(fd, &file) != 0)
            return PEAL_SYSTEM;
        if ((uint64_t)file.st_size >= bytes)
            return PEAL_OK;
        if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
            errno = EFBIG; /* ftruncate would raise SIGXFSZ */
            return PEAL_NO_MEMORY;
        }
        if (ftruncate(fd, (off_t)bytes) == 0)
            return PEAL_OK;
    } while (errno == EPERM); /* another thread has grown it further: this would shrink it */
    return errno == ENOMEM || errno == EFBIG ? PEAL_NO_MEMORY : PEAL_SYSTEM;
}

enum peal_status peal_window_open(uint64_t bytes, int *out)
{
    int fd = memfd_create("peal", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return PEAL_SYSTEM;
    enum peal_status status = peal_window_grow(fd, bytes);
    if (status == PEAL_OK && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        status = PEAL_SYSTEM;
    if (status != PEAL_OK) {
        int error = errno;
        close(fd);
        errno = error;
        return status;
    }
    *out = fd;
    return PEAL_OK;
}

bool peal_window_is_sound(int fd, uint64_t bytes)
{
    struct stat file;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &file) == 0 &&
           (uint64_t)file.st_size >= bytes;
}

/* Allocates memory. Returns 0 or an errno. */
static int take(int fd, uint64_t offset, uint64_t bytes)
{
    int error;
    do {
        if (fallocate(fd, 0, (off_t)offset, (off_t)bytes) == 0)
            error = 0;
        else
            error = errno;
    } while (error == EINTR);
    return error;
}

enum peal_status peal_window_reserve(int fd, uint64_t offset, uint64_t bytes)
{
    if (bytes == 0)
        return PEAL_OK;
    bool fits = offset + bytes >= offset && offset + bytes <= (uint64_t)INT64_MAX;
    /* Not left to fallocate: it takes page after page until it fails, and by then the system may
     * have killed processes. */
    if (!fits || !peal_memory_limit_has(bytes, 1, NULL)) {
        errno = ENOMEM;
        return PEAL_NO_MEMORY;
    }
    int error = take(fd, offset, bytes);
    if (error == 0)
        return PEAL_OK;
    return error == ENOSPC || error == ENOMEM || error == EFBIG ? PEAL_NO_MEMORY : PEAL_SYSTEM;
}

/* An address at which a mapping of the file from `offset` on can have large pages: it has the same
 * remainder as the offset. The address space there is reserved. NULL: anywhere. */
static char *find_address(uint64_t offset, uint64_t bytes)
{
    if (bytes < PEAL_LARGE_PAGE || bytes > SIZE_MAX - PEAL_LARGE_PAGE)
        return NULL;
    char *room = mmap(NULL, bytes + PEAL_LARGE_PAGE, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    uint64_t skip = (offset - (uintptr_t)room) % PEAL_LARGE_PAGE;
    if (skip > 0)
        munmap(room, skip);
    uint64_t end = (bytes + PAGE - 1) / PAGE * PAGE;
    if (PEAL_LARGE_PAGE + bytes > skip + end)
        munmap(room + skip + end, PEAL_LARGE_PAGE + bytes - skip - end);
    return room + skip;
}

void *peal_window_map(int fd, uint64_t offset, uint64_t bytes)
{
    char *place = find_address(offset, bytes);
    void *at = mmap(place, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE | (place ? MAP_FIXED : 0), fd, (off_t)offset);
    if (at == MAP_FAILED && place)
        munmap(place, bytes);
    if (at == MAP_FAILED)
        return NULL;
    (void)madvise(at, bytes, MADV_DONTDUMP);
    (void)madvise(at, bytes, MADV_HUGEPAGE);
    return at;
}

void peal_window_populate(void *at, uint64_t bytes, bool owner)
{
    /* Only saves time, so errors are ignored. */
    (void)madvise(at, bytes, owner ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

bool peal_window_enlarge(int fd, void *at, uint64_t offset, uint64_t bytes)
{
    /* The system collapses only large pages in which at least one page exists. */
    for (uint64_t from = 0; from < bytes; from += PEAL_LARGE_PAGE) {
        if (take(fd, offset + from, PAGE) != 0)
            return false;
        (void)madvise((char *)at + from, PAGE, MADV_POPULATE_WRITE);
    }
    return madvise(at, bytes, MADV_COLLAPSE) == 0;
}

void peal_window_unmap(void *at, uint64_t bytes)
{
    if (at)
        munmap(at, bytes);
}

void peal_window_discard(int fd, uint64_t offset, uint64_t bytes)
{
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}
