/* SPDX-License-Identifier: Apache-2.0 */
/* See windows.h. */
#include "run/team/windows.h"

#include "run/team/shared.h"
#include "run/team/team.h"
#include "run/team/window.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { BUCKETS = 256 };

struct peal_window_part {
    struct peal_window_part *next;
    uint64_t offset, bytes;
    uint32_t file, users;
    char *at;
};

struct peal_windows *peal_windows_new(uint32_t count, uint64_t head_bytes)
{
    struct peal_windows *windows = calloc(1, sizeof *windows);
    if (!windows)
        return NULL;
    windows->files = calloc(count, sizeof *windows->files);
    windows->parts = calloc(BUCKETS, sizeof(struct peal_window_part *));
    if (!windows->files || !windows->parts) {
        free(windows->files);
        free(windows->parts);
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
    int error = errno; /* why it is given up */
    /* Partner: the other users' decrements. */
    if (!windows || atomic_fetch_sub_explicit(&windows->users, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t b = 0; b < BUCKETS; b++) {
        for (struct peal_window_part *part = windows->parts[b], *next; part; part = next) {
            next = part->next;
            peal_window_unmap(part->at, part->bytes);
            free(part);
        }
    }
    for (uint32_t f = 0; f < windows->count; f++)
        release_file(&windows->files[f]);
    pthread_mutex_destroy(&windows->lock);
    free(windows->files);
    free(windows->parts);
    free(windows->probe);
    free(windows);
    errno = error;
}

/* A forked child has one thread, and may have been forked while another one held the mutex. */
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
    if (file >= windows->count || place == 0 || place > PEAL_WINDOWS_MOST_PLACES)
        return NULL;
    begin(windows);
    char *head = find_head(windows, file, place);
    end(windows);
    return head;
}

/* A place that all ranks have left; 0: none of the few that are examined. With the mutex. */
static uint32_t find_retired(struct peal_windows *windows, uint32_t file)
{
    enum { LOOKS = 8 };
    struct peal_window_file *f = &windows->files[file];
    for (uint32_t i = 0; i < LOOKS; i++) {
        if (f->retired.len == 0)
            break;
        if (f->next_retired >= f->retired.len)
            f->next_retired = 0;
        uint32_t place = f->retired.at[f->next_retired];
        const struct peal_control *head = (struct peal_control *)find_head(windows, file, place);
        /* Acquire; partner: peal_windows_clear on the last rank, by way of the system. */
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
    enum peal_status status = place > PEAL_WINDOWS_MOST_PLACES ? PEAL_NO_MEMORY : PEAL_OK;
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
        /* Release; partner: find_retired, of another thread. */
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
    /* Without memory the place is used up. */
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

static bool is_part(const struct peal_window_part *part, uint32_t file, uint64_t offset,
                    uint64_t bytes)
{
    return part->file == file && part->offset == offset && part->bytes == bytes;
}

/* Where the part hangs, or is to hang. */
static struct peal_window_part **find_part(struct peal_windows *windows, uint32_t file,
                                           uint64_t offset, uint64_t bytes)
{
    uint64_t hash = peal_hash_u64(offset, file);
    struct peal_window_part **link = &windows->parts[hash % BUCKETS];
    while (*link && !is_part(*link, file, offset, bytes))
        link = &(*link)->next;
    return link;
}

/* A part that was not mapped yet; NULL: refused. */
static struct peal_window_part *new_part(const struct peal_windows *windows, uint32_t file,
                                         uint64_t offset, uint64_t bytes)
{
    struct peal_window_part *part = calloc(1, sizeof *part);
    if (!part)
        return NULL;
    *part = (struct peal_window_part){.offset = offset, .bytes = bytes, .file = file};
    part->at = peal_window_map(windows->files[file].fd, offset, bytes);
    if (part->at)
        return part;
    free(part);
    return NULL;
}

char *peal_windows_map(struct peal_windows *windows, uint32_t file, uint64_t offset, uint64_t bytes)
{
    begin(windows);
    struct peal_window_part **link = find_part(windows, file, offset, bytes);
    if (!*link)
        *link = new_part(windows, file, offset, bytes);
    struct peal_window_part *part = *link;
    if (part)
        part->users++;
    end(windows);
    if (!part)
        return NULL;
    return part->at;
}

void peal_windows_unmap(struct peal_windows *windows, uint32_t file, uint64_t offset,
                        uint64_t bytes)
{
    begin(windows);
    struct peal_window_part **link = find_part(windows, file, offset, bytes);
    struct peal_window_part *part = *link;
    if (part && --part->users == 0) {
        *link = part->next;
        peal_window_unmap(part->at, part->bytes);
        free(part);
    }
    end(windows);
}
