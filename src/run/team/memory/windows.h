/* SPDX-License-Identifier: Apache-2.0 */
/* The window files of the ranks that have met, the processes behind them, and which parts of the
 * files are mapped here. All communicators derived from one opening share them: another one takes
 * no descriptor, no socket and no memory beyond what it uses.
 *
 * A communicator has a *place* in the file of each of its ranks, given out by the file's owner.
 * Files are sparse, so places far apart cost nothing:
 *
 *   0                the window of the communicator that was opened: place 0, see shared.h
 *   HEADS            heads of the others, one after the other: control block and sleep slots.
 *                    Mapped in slabs, each once, and kept until the end
 *   BODIES + k * 1T  the rest of the window of place k + 1: mailboxes, contexts, symmetric memory.
 *                    Mapped as it is used
 *
 * A place is given out again once its head is all zero. The last rank that leaves a communicator
 * clears it (peal_windows_clear); if a rank has died before, its place is lost.
 *
 * Threads that are ranks share one such object, processes have one each. The mutex is for
 * communicators of one process in several threads; calls never take it.
 */
#ifndef PEAL_RUN_WINDOWS_H
#define PEAL_RUN_WINDOWS_H

#include "base/base.h"

#include <peal/types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PEAL_WINDOWS_HEADS (UINT64_C(1) << 40)
#define PEAL_WINDOWS_BODIES (UINT64_C(1) << 41)
#define PEAL_WINDOWS_BODY (UINT64_C(1) << 40)
enum { PEAL_WINDOWS_SLAB = 512 << 10, PEAL_WINDOWS_MAX_PLACES = 1 << 22 };

struct peal_window_file {
    int fd;      /* -1: none yet */
    int pidfd;   /* -1: none */
    int32_t pid; /* in this process's pid namespace; 0: none there */
    PEAL_VEC(char *) slabs;
    /* Used by the owner only: */
    uint32_t places;            /* highest number given out */
    PEAL_VEC(uint32_t) retired; /* places that the owner has left */
    size_t next_retired;        /* the next to be examined */
};

/* A mapped part of a file. */
struct peal_window_part {
    uint64_t offset, bytes;
    uint32_t file, users;
    char *at;
};

struct peal_windows {
    _Atomic uint32_t users; /* acq_rel decrement: the last one sees all others' writes and frees */
    uint32_t count;
    uint32_t forks;      /* peal_forks when it was made */
    uint64_t head_bytes; /* of a place: the same on all ranks */
    pthread_mutex_t lock;
    struct peal_window_file *files; /* of each rank that has met */
    PEAL_VEC(struct peal_window_part) parts;
    struct peal_index part_index; /* of parts */
    uint64_t *probe;              /* what peers try to read: see remote.h; NULL for threads */
};

/* Starts with one user. NULL: no memory. */
struct peal_windows *peal_windows_new(uint32_t count, uint64_t head_bytes);
void peal_windows_hold(struct peal_windows *windows);
void peal_windows_drop(struct peal_windows *windows);

/* Gives out a place in this rank's file, for a window whose body has that many bytes, and allocates
 * memory for its head. */
enum peal_status peal_windows_take(struct peal_windows *windows, uint32_t file, uint64_t bytes,
                                   uint32_t *out);
/* The owner has left its place; others may still use it. */
void peal_windows_retire(struct peal_windows *windows, uint32_t file, uint32_t place);
/* The head of a place; NULL if it cannot be mapped (errno says why). */
void *peal_windows_head(struct peal_windows *windows, uint32_t file, uint32_t place);
/* Where the body of a place begins in its file. */
uint64_t peal_windows_body(uint32_t place);
/* Gives the memory of a place back to the system: only the body's, or all of it, after which the
 * owner may give the place out again. */
void peal_windows_clear(const struct peal_windows *windows, uint32_t file, uint32_t place,
                        bool all);

/* Maps a part of a file, or finds exactly this part mapped: ranks that are threads share mappings.
 * NULL: refused. */
char *peal_windows_map(struct peal_windows *windows, uint32_t file, uint64_t offset,
                       uint64_t bytes);
void peal_windows_unmap(struct peal_windows *windows, uint32_t file, uint64_t offset,
                        uint64_t bytes);

#endif
