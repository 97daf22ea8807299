/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's side: what it sends to workers, and how it applies their reports.
 *
 * The caller's thread sends, under the host's mutex or without it; the serving thread applies
 * reports, and takes the mutex only in peal_host_note_death. So the order is always mutex, then the net's
 * lock, and no thread that holds the lock waits for anything but the net. */
#include "driver/hosts/hosts.h"

#include <sched.h>
#include <string.h>

/* ---- to workers ---- */

static uint64_t offset_of(const struct peal_host *host, const struct peal_host_block *block)
{
    return (uint64_t)((const char *)block - host->shared->blocks);
}

void peal_away_table(struct peal_host *host, const void *at, size_t bytes)
{
    const char *from = at;
    while (bytes > 0) {
        size_t piece = bytes < PEAL_AWAY_PIECE ? bytes : PEAL_AWAY_PIECE;
        struct peal_away_head head = {.at = (uint64_t)(from - (const char *)host->shared)};
        for (uint32_t w = 0; w < host->workers; w++)
            peal_away_send(host->away, w, PEAL_AWAY_TABLE, &head, from, piece);
        from += piece;
        bytes -= piece;
    }
}

void peal_away_function(struct peal_host *host, uint32_t work, const char *name)
{
    struct peal_away_head head = {.count = work};
    for (uint32_t w = 0; w < host->workers; w++)
        peal_away_send(host->away, w, PEAL_AWAY_FUNCTION, &head, name, strlen(name) + 1);
}

/* A block that is too large for one message is sent before, as tables. */
static void send_large(struct peal_host *host, const struct peal_host_block *block, uint32_t worker)
{
    uint64_t first = (uint64_t)((const char *)block - (const char *)host->shared);
    for (uint64_t done = 0; done < block->bytes; done += PEAL_AWAY_PIECE) {
        uint64_t left = block->bytes - done;
        struct peal_away_head head = {.at = first + done};
        peal_away_send(host->away, worker, PEAL_AWAY_TABLE, &head, (const char *)block + done,
                       left < PEAL_AWAY_PIECE ? left : PEAL_AWAY_PIECE);
    }
}

void peal_away_task(struct peal_host *host, const struct peal_host_block *block, uint32_t member,
                    uint64_t entry)
{
    uint32_t worker = block->parts[member].worker;
    struct peal_away_head head = {.id = block->id,
                                  .block = offset_of(host, block),
                                  .at = entry,
                                  .queue = block->queue,
                                  .count = block->parts[member].position};
    bool large = block->bytes > PEAL_AWAY_PIECE;
    if (large)
        send_large(host, block, worker);
    peal_away_send(host->away, worker, PEAL_AWAY_TASK, &head, block, large ? 0 : block->bytes);
}

void peal_away_push(struct peal_host *host, uint32_t index, uint32_t pushed)
{
    struct peal_away_head head = {.queue = index % PEAL_HOST_QUEUES, .count = pushed};
    peal_away_send(host->away, index / PEAL_HOST_QUEUES, PEAL_AWAY_PUSH, &head, NULL, 0);
}

void peal_away_meet(struct peal_host *host, struct peal_host_block *block)
{
    /* acquire; partner: peal_worker_arrive, perhaps in another thread */
    if (atomic_load_explicit(&block->arrived, memory_order_acquire) != peal_host_all_members(block))
        return;
    struct peal_away_head head = {
        .id = block->id, .block = offset_of(host, block), .status = atomic_load(&block->bad)};
    for (uint32_t m = 0; m < block->members; m++)
        peal_away_send(host->away, block->parts[m].worker, PEAL_AWAY_MET, &head, NULL, 0);
}

void peal_away_zero(struct peal_away *away, uint32_t worker, uint64_t at, uint64_t bytes)
{
    struct peal_away_head head = {.at = at, .bytes = bytes};
    peal_away_send(away, worker, PEAL_AWAY_ZERO, &head, NULL, 0);
}

void peal_away_clean(struct peal_host *host, uint32_t worker, uint64_t begin, uint64_t end)
{
    struct peal_away_head head = {.at = begin, .bytes = end - begin};
    peal_away_send(host->away, worker, PEAL_AWAY_CLEAN, &head, NULL, 0);
}

/* ---- tensors ---- */

static enum peal_status start_copy(struct peal_away *away, const struct peal_net_put *put,
                                   const struct peal_net_get *get, struct peal_net_token *token)
{
    if (put)
        return peal_net_put(away->net, put, token);
    return peal_net_get(away->net, get, token);
}

/* Copies one piece, and waits until that has ended. */
static enum peal_status copy_piece(struct peal_away *away, const struct peal_net_put *put,
                                   const struct peal_net_get *get)
{
    struct peal_net_token token = {0};
    enum peal_status status = PEAL_PENDING;
    uint32_t rank = put ? put->rank : get->rank;
    pthread_mutex_lock(&away->lock);
    while (status == PEAL_PENDING || (status == PEAL_OK && !peal_net_token_is_done(&token))) {
        if (status == PEAL_PENDING)
            status = start_copy(away, put, get, &token);
        enum peal_status health = peal_net_health(away->net, rank, NULL);
        if (health != PEAL_OK && health != PEAL_PENDING)
            status = health;
        bool moved = peal_net_progress(away->net);
        pthread_mutex_unlock(&away->lock);
        if (!moved)
            sched_yield();
        pthread_mutex_lock(&away->lock);
    }
    if (status == PEAL_OK)
        status = peal_net_token_status(&token);
    if (status != PEAL_OK)
        peal_net_release(away->net, &token);
    pthread_mutex_unlock(&away->lock);
    return status;
}

enum peal_status peal_away_copy(struct peal_host *host, uint32_t worker, uint64_t at, void *data,
                                uint64_t bytes, bool writes)
{
    enum { PIECE = 1 << 20 };
    uint64_t area = (uint64_t)(uintptr_t)host->areas[worker].base;
    enum peal_status status = PEAL_OK;
    for (uint64_t done = 0; done < bytes && status == PEAL_OK; done += PIECE) {
        uint64_t piece = bytes - done < PIECE ? bytes - done : PIECE;
        struct peal_net_part part = {(char *)data + done, piece};
        struct peal_net_put put = {.rank = worker,
                                   .segment = PEAL_AWAY_AREA,
                                   .offset = at + done - area,
                                   .parts = &part,
                                   .nparts = 1};
        struct peal_net_get get = {worker, PEAL_AWAY_AREA, at + done - area, piece,
                                   (char *)data + done};
        if (writes)
            status = copy_piece(host->away, &put, NULL);
        else
            status = copy_piece(host->away, NULL, &get);
    }
    if (status == PEAL_OK)
        return PEAL_OK;
    return peal_host_fail(host, PEAL_PEER_DEAD, "worker %u cannot be reached", worker);
}

/* ---- from workers ---- */

void peal_away_keep(struct peal_away *away, uint32_t rank, uint32_t kind, const void *bytes,
                    uint64_t len)
{
    struct peal_away_letter letter = {.rank = rank, .kind = kind};
    memcpy(&letter.head, bytes, sizeof letter.head);
    letter.len = len - sizeof letter.head;
    letter.bytes = calloc(1, letter.len + 1);
    if (!letter.bytes || !peal_vec_push(&away->inbox, letter)) {
        free(letter.bytes);
        return;
    }
    if (letter.len)
        memcpy(letter.bytes, (const char *)bytes + sizeof letter.head, letter.len);
    peal_away_wake(away);
}

/* The block that a report is about; NULL: the sender has no part in such a task. */
static struct peal_host_block *block_of(const struct peal_host *host,
                                        const struct peal_away_letter *letter)
{
    const struct peal_away_head *head = &letter->head;
    if (head->block % 64 || head->block > PEAL_HOST_BLOCK_BYTES - sizeof(struct peal_host_block))
        return NULL;
    struct peal_host_block *block = (struct peal_host_block *)(host->shared->blocks + head->block);
    bool right = block->id == head->id && head->member < block->members &&
                 block->parts[head->member].worker == letter->rank;
    return right ? block : NULL;
}

static void note_end(struct peal_host *host, struct peal_host_block *block,
                     const struct peal_away_letter *letter)
{
    const struct peal_away_head *head = &letter->head;
    struct peal_host_shared *shared = host->shared;
    struct peal_host_part *part = &block->parts[head->member];
    enum peal_status status = PEAL_SYSTEM;
    if (head->status < PEAL_STATUSES)
        status = (enum peal_status)head->status;
    part->start = head->start + (uint64_t)host->away->clocks[letter->rank];
    part->end = head->end + (uint64_t)host->away->clocks[letter->rank];
    if (status != PEAL_OK && head->at != 0 && head->at < block->id)
        atomic_store(&block->cause, head->at);
    else if (status != PEAL_OK)
        peal_worker_report(shared, block->id, letter->rank, letter->bytes);
    peal_taint_outputs(shared, block, head->member, status);
    uint32_t index = letter->rank * PEAL_HOST_QUEUES + block->queue;
    peal_worker_end(shared, block, head->member, status);
    /* seq_cst, with `waited`: see wait_count in worker.c */
    atomic_store(&shared->queues[index].done, head->count);
    if (atomic_load(&shared->queues[index].waited))
        peal_futex_wake(&shared->queues[index].done);
}

/* The other workers are notified: they may wait for it without being connected to it. */
static void note_lost(struct peal_host *host, uint32_t worker)
{
    struct peal_away_head head = {.member = worker};
    peal_host_note_death(host, worker);
    for (uint32_t w = 0; w < host->workers; w++) {
        if (w != worker)
            peal_away_send(host->away, w, PEAL_AWAY_LOST, &head, NULL, 0);
    }
}

static void take(struct peal_host *host, struct peal_away_letter *letter)
{
    if (letter->rank >= host->workers)
        return;
    if (letter->kind == PEAL_AWAY_LOST) {
        note_lost(host, letter->rank);
        return;
    }
    struct peal_host_block *block = block_of(host, letter);
    if (block && letter->kind == PEAL_AWAY_ARRIVED) {
        peal_worker_arrive(block, letter->head.member, (enum peal_status)letter->head.status);
        peal_away_meet(host, block);
    } else if (block && letter->kind == PEAL_AWAY_ENDED) {
        note_end(host, block, letter);
    }
}

void *peal_away_serve(void *context)
{
    struct peal_away *away = context;
    /* Relaxed: joined afterwards. */
    while (!atomic_load_explicit(&away->stop, memory_order_relaxed)) {
        peal_away_serve_once(away);
        pthread_mutex_lock(&away->lock);
        struct peal_away_letter *letters = away->inbox.at;
        size_t count = away->inbox.len;
        away->inbox.at = NULL;
        away->inbox.len = away->inbox.cap = 0;
        pthread_mutex_unlock(&away->lock);
        for (size_t i = 0; i < count; i++) {
            take(away->host, &letters[i]);
            free(letters[i].bytes);
        }
        free(letters);
    }
    return NULL;
}
