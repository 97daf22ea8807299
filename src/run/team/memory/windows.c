/* SPDX-License-Identifier: Apache-2.0 */
/* Places of communicators in window files, and mapped parts of the files. See windows.h. Parts are
 * found by a hash of file and offset; each counts its users and is unmapped with the last. The
 * mutex is skipped in a forked child, where it may never be released and there is only one
 * thread. */
#include "run/team/memory/windows.h"

#include "run/team/shared.h"
#include "run/team/team.h"
#include "run/team/memory/window.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct peal_windows *peal_windows_new(uint32_t count, uint64_t head_bytes)
{
    struct peal_windows *windows = calloc(1, sizeof *windows);
    if (!windows)
        return NULL;
    windows->files = calloc(count, sizeof *windows->files);
    if (!windows->files) {
        free(windows);
        return NULL;
    }
    atomic_init(&windows->users, 1);
    windows->count = count;
    windows->head_bytes = head_bytes;
    windows->forks = atomic_load_explicit(&peal_forks, memory_order_relaxed);
    pthread_mutex_init(&windows->lock, NULL);
    for (uint32_t f = 0; f < count; f++)
        windows->files[f].fd = windows->files[f].pidfd = -1;
    return windows;
}

void peal_windows_hold(struct peal_windows *windows)
{
    /* Relaxed: the caller holds one already. */
    atomic_fetch_add_explicit(&windows->users, 1, memory_order_relaxed);
}

static void release_file(struct peal_window_file *file)
{
    for (size_t s = 0; s < file->slabs.len; s++)
        peal_window_unmap(file->slabs.at[s], PEAL_WINDOWS_SLAB);
    peal_vec_release(&file->slabs);
    peal_vec_release(&file->retired);
    if (file->fd >= 0)
        close(file->fd);
    if (file->pidfd >= 0)
        close(file->pidfd);
}

void peal_windows_drop(struct peal_windows *windows)
{
    int error = errno; /* kept for the caller's message */
    /* Partner: the other users' decrements. */
    if (!windows || atomic_fetch_sub_explicit(&windows->users, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < windows->parts.len; i++)
        peal_window_unmap(windows->parts.at[i].at, windows->parts.at[i].bytes);
    for (uint32_t f = 0; f < windows->count; f++)
        release_file(&windows->files[f]);
    pthread_mutex_destroy(&windows->lock);
    free(windows->files);
    peal_vec_release(&windows->parts);
    peal_index_release(&windows->part_index);
    free(windows->probe);
    free(windows);
    errno = error;
}

static bool is_forked(const struct peal_windows *windows)
{
    return windows->forks != atomic_load_explicit(&peal_forks, memory_order_relaxed);
}

static void begin(struct peal_windows *windows)
{
    if (!is_forked(windows))
        pthread_mutex_lock(&windows->lock);
}

static void end(struct peal_windows *windows)
{
    if (!is_forked(windows))
        pthread_mutex_unlock(&windows->lock);
}

/* ---- places ---- */

uint64_t peal_windows_body(uint32_t place)
{
    if (place == 0)
        return 0;
    return PEAL_WINDOWS_BODIES + (place - 1) * PEAL_WINDOWS_BODY;
}

static uint32_t heads_per_slab(const struct peal_windows *windows)
{
    return (uint32_t)(PEAL_WINDOWS_SLAB / windows->head_bytes);
}

/* Where the head of a place is in its slab. */
static uint64_t offset_in_slab(const struct peal_windows *windows, uint32_t place)
{
    return (place - 1) % heads_per_slab(windows) * windows->head_bytes;
}

static uint64_t slab_offset(const struct peal_windows *windows, uint32_t place)
{
    return PEAL_WINDOWS_HEADS +
           (uint64_t)((place - 1) / heads_per_slab(windows)) * PEAL_WINDOWS_SLAB;
}

/* With the mutex. */
static char *find_head(struct peal_windows *windows, uint32_t file, uint32_t place)
{
    struct peal_window_file *f = &windows->files[file];
    uint32_t slab = (place - 1) / heads_per_slab(windows);
    while (f->slabs.len <= slab) {
        if (!peal_vec_push(&f->slabs, NULL))
            return NULL;
    }
    if (!f->slabs.at[slab]) {
        uint64_t offset = slab_offset(windows, place);
        if (!peal_window_is_sound(f->fd, offset + PEAL_WINDOWS_SLAB)) {
            errno = EINVAL;
            return NULL;
        }
        f->slabs.at[slab] = peal_window_map(f->fd, offset, PEAL_WINDOWS_SLAB);
    }
    if (!f->slabs.at[slab])
        return NULL;
    return f->slabs.at[slab] + offset_in_slab(windows, place);
}

void *peal_windows_head(struct peal_windows *windows, uint32_t file, uint32_t place)
{
    if (file >= windows->count || place == 0 || place > PEAL_WINDOWS_MAX_PLACES)
        return NULL;
    begin(windows);
    char *head = find_head(windows, file, place);
    end(windows);
    return head;
}

/* A place that all ranks have left; 0: none among the few that are examined. With the mutex. */
static uint32_t find_retired(struct peal_windows *windows, uint32_t file)
{
    enum { LOOKS = 8 };
    struct peal_window_file *f = &windows->files[file];
    for (uint32_t i = 0; i < LOOKS && f->retired.len != 0; i++) {
        if (f->next_retired >= f->retired.len)
            f->next_retired = 0;
        uint32_t place = f->retired.at[f->next_retired];
        const struct peal_control *head = (struct peal_control *)find_head(windows, file, place);
        /* Acquire; partner: the system call of peal_windows_clear on the last rank. */
        if (head && atomic_load_explicit(&head->taken, memory_order_acquire) == 0) {
            f->retired.at[f->next_retired] = f->retired.at[--f->retired.len];
            return place;
        }
        f->next_retired++;
    }
    return 0;
}

enum peal_status peal_windows_take(struct peal_windows *windows, uint32_t file, uint64_t bytes,
                                   uint32_t *out)
{
    struct peal_window_file *f = &windows->files[file];
    begin(windows);
    uint32_t place = find_retired(windows, file);
    bool reused = place != 0;
    if (!reused)
        place = f->places + 1;
    enum peal_status status = place > PEAL_WINDOWS_MAX_PLACES ? PEAL_NO_MEMORY : PEAL_OK;
    if (status == PEAL_OK)
        status = peal_window_grow(f->fd, peal_windows_body(place) + bytes);
    uint64_t head_at = slab_offset(windows, place) + offset_in_slab(windows, place);
    if (status == PEAL_OK)
        status = peal_window_reserve(f->fd, head_at, windows->head_bytes);
    struct peal_control *head = NULL;
    if (status == PEAL_OK)
        head = (struct peal_control *)find_head(windows, file, place);
    if (status == PEAL_OK && !head)
        status = PEAL_NO_MEMORY;
    if (status == PEAL_OK) {
        /* Release; partner: find_retired in another thread. */
        atomic_store_explicit(&head->taken, 1, memory_order_release);
        if (!reused)
            f->places = place;
        *out = place;
    }
    end(windows);
    return status;
}

void peal_windows_retire(struct peal_windows *windows, uint32_t file, uint32_t place)
{
    begin(windows);
    /* If there is no memory, the place is lost. */
    (void)peal_vec_push(&windows->files[file].retired, place);
    end(windows);
}

void peal_windows_clear(const struct peal_windows *windows, uint32_t file, uint32_t place, bool all)
{
    int fd = windows->files[file].fd;
    peal_window_discard(fd, peal_windows_body(place), PEAL_WINDOWS_BODY);
    if (all && place > 0) /* the head last: from then on it may be another communicator's */
        peal_window_discard(fd, slab_offset(windows, place) + offset_in_slab(windows, place),
                            windows->head_bytes);
}

/* ---- parts ---- */

static uint64_t hash_part(const void *rows, uint32_t row)
{
    const struct peal_window_part *part = (const struct peal_window_part *)rows + row;
    return peal_hash_u64(part->offset, part->file);
}

/* The position of the part in the index, or where it belongs. */
static size_t find_part(const struct peal_windows *windows, const struct peal_window_part *like)
{
    const struct peal_index *index = &windows->part_index;
    size_t at = peal_index_begin(index, hash_part(like, 0));
    for (; peal_index_is_used(index, at); at = peal_index_next(index, at)) {
        const struct peal_window_part *part = &windows->parts.at[peal_index_row(index, at)];
        if (part->file == like->file && part->offset == like->offset && part->bytes == like->bytes)
            break;
    }
    return at;
}

/* Adds a user to a part, which is mapped for the first one. NULL: refused. */
static char *add_user(struct peal_windows *windows, struct peal_window_part part)
{
    if (!peal_index_reserve(&windows->part_index, hash_part, windows->parts.at) ||
        !peal_vec_reserve(&windows->parts, 1))
        return NULL;
    size_t at = find_part(windows, &part);
    if (!peal_index_is_used(&windows->part_index, at)) {
        part.at = peal_window_map(windows->files[part.file].fd, part.offset, part.bytes);
        if (!part.at)
            return NULL;
        peal_index_put(&windows->part_index, at, (uint32_t)windows->parts.len);
        windows->parts.at[windows->parts.len++] = part;
    }
    struct peal_window_part *mapped = &windows->parts.at[peal_index_row(&windows->part_index, at)];
    mapped->users++;
    return mapped->at;
}

char *peal_windows_map(struct peal_windows *windows, uint32_t file, uint64_t offset, uint64_t bytes)
{
    begin(windows);
    char *at = add_user(windows, (struct peal_window_part){offset, bytes, file, 0, NULL});
    end(windows);
    return at;
}

static void drop_user(struct peal_windows *windows, const struct peal_window_part *like)
{
    if (windows->parts.len == 0)
        return;
    size_t at = find_part(windows, like);
    if (!peal_index_is_used(&windows->part_index, at))
        return;
    uint32_t row = peal_index_row(&windows->part_index, at);
    struct peal_window_part *part = &windows->parts.at[row];
    if (--part->users > 0)
        return;
    uint32_t last = (uint32_t)windows->parts.len - 1;
    peal_window_unmap(part->at, part->bytes);
    peal_index_remove(&windows->part_index, row, last, hash_part, windows->parts.at);
    *part = windows->parts.at[last];
    windows->parts.len--;
}

void peal_windows_unmap(struct peal_windows *windows, uint32_t file, uint64_t offset,
                        uint64_t bytes)
{
    begin(windows);
    drop_user(windows, &(struct peal_window_part){offset, bytes, file, 0, NULL});
    end(windows);
}
