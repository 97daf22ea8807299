/* SPDX-License-Identifier: Apache-2.0 */
/* The radix heap of queue.h (Ahuja, Mehlhorn, Orlin, Tarjan: faster algorithms for the shortest
 * path problem, 1990), with a total order among events of one time. */
#include "sim/engine/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void peal_queue_release(struct peal_queue *queue)
{
    peal_vec_release(&queue->batch);
    peal_vec_release(&queue->sorted);
    peal_vec_release(&queue->late);
    for (int i = 0; i < 65; i++)
        peal_vec_release(&queue->bucket[i]);
}

/* A binary heap for events of the current instant. */
static void late_push(struct peal_queue *queue, uint32_t who, uint32_t payload)
{
    struct peal_late_event event = {(uint64_t)who << 32 | queue->late_pushes++, payload};
    if (!peal_vec_push(&queue->late, event)) {
        queue->failed = true;
        return;
    }
    struct peal_late_event *heap = queue->late.at;
    size_t i = queue->late.len - 1;
    while (i > 0 && heap[(i - 1) / 2].key > event.key) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = event;
}

static struct peal_late_event late_pop(struct peal_queue *queue)
{
    struct peal_late_event *heap = queue->late.at;
    struct peal_late_event first = heap[0];
    size_t len = --queue->late.len, i = 0;
    struct peal_late_event moved = heap[len];
    for (size_t child; (child = 2 * i + 1) < len; i = child) {
        if (child + 1 < len && heap[child + 1].key < heap[child].key)
            child++;
        if (heap[child].key >= moved.key)
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
    if (len == 0)
        queue->late_pushes = 0;
    return first;
}

void peal_queue_push(struct peal_queue *queue, uint64_t time, uint32_t who, uint32_t payload)
{
    assert(time >= queue->last && "time never goes back");
    queue->pushed++;
    if (time == queue->last) {
        late_push(queue, who, payload);
        return;
    }
    int bit = 63 - __builtin_clzll(time ^ queue->last);
    struct peal_event event = {time, who, payload};
    if (!peal_vec_push(&queue->bucket[bit + 1], event)) {
        queue->failed = true;
        return;
    }
    queue->filled |= UINT64_C(1) << bit;
}

static void insertion_sort(struct peal_event *at, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        struct peal_event event = at[i];
        size_t j = i;
        for (; j > 0 && at[j - 1].who > event.who; j--)
            at[j] = at[j - 1];
        at[j] = event;
    }
}

/* Stable, by `who`, eight bits per pass, starting with the lowest bit in which any two differ. */
static void radix_sort(struct peal_queue *queue)
{
    size_t len = queue->batch.len;
    queue->sorted.len = 0;
    if (!peal_vec_reserve(&queue->sorted, len)) {
        insertion_sort(queue->batch.at, len);
        return;
    }
    struct peal_event *from = queue->batch.at, *to = queue->sorted.at;
    uint32_t differs = 0;
    for (size_t i = 1; i < len; i++)
        differs |= from[i].who ^ from[0].who;
    while (differs) {
        int shift = __builtin_ctz(differs);
        uint32_t count[256] = {0}, place = 0;
        for (size_t i = 0; i < len; i++)
            count[from[i].who >> shift & 255]++;
        for (int digit = 0; digit < 256; digit++) {
            uint32_t n = count[digit];
            count[digit] = place;
            place += n;
        }
        for (size_t i = 0; i < len; i++)
            to[count[from[i].who >> shift & 255]++] = from[i];
        struct peal_event *swap = from;
        from = to;
        to = swap;
        if (shift >= 24)
            break;
        differs &= ~UINT32_C(0) << (shift + 8);
    }
    if (from != queue->batch.at)
        memcpy(queue->batch.at, from, len * sizeof *from);
}

static void sort_batch(struct peal_queue *queue)
{
    const struct peal_event *at = queue->batch.at;
    size_t len = queue->batch.len, i = 1;
    while (i < len && at[i - 1].who <= at[i].who)
        i++;
    if (i >= len)
        return;
    if (len <= 24)
        insertion_sort(queue->batch.at, len);
    else
        radix_sort(queue);
}

/* Opens the lowest bucket: its earliest events become the batch, the others go to lower buckets. */
static void open_bucket(struct peal_queue *queue)
{
    int bit = __builtin_ctzll(queue->filled);
    struct peal_event *at = queue->bucket[bit + 1].at;
    size_t len = queue->bucket[bit + 1].len;
    uint64_t earliest = at[0].time;
    for (size_t i = 1; i < len; i++) {
        if (at[i].time < earliest)
            earliest = at[i].time;
    }
    queue->last = earliest;
    queue->filled &= queue->filled - 1;
    queue->bucket[bit + 1].len = 0;
    queue->batch.len = 0;
    queue->cursor = 0;
    for (size_t i = 0; i < len; i++) {
        if (at[i].time == earliest) {
            if (!peal_vec_push(&queue->batch, at[i]))
                queue->failed = true;
            continue;
        }
        int lower = 63 - __builtin_clzll(at[i].time ^ earliest);
        assert(lower < bit && "events move to lower buckets");
        if (!peal_vec_push(&queue->bucket[lower + 1], at[i]))
            queue->failed = true;
        queue->filled |= UINT64_C(1) << lower;
    }
    sort_batch(queue);
}

/* Sifts if there is more than the batch to consider. */
bool peal_queue_pop_slowly(struct peal_queue *queue, struct peal_event *out)
{
    if (queue->cursor >= queue->batch.len && queue->late.len == 0) {
        if (!queue->filled)
            return false;
        open_bucket(queue);
    }
    queue->popped++;
    bool has_batch = queue->cursor < queue->batch.len;
    /* On a tie the batch goes first: its events were pushed before this instant began. */
    if (queue->late.len && (!has_batch || (uint32_t)(queue->late.at[0].key >> 32) <
                                              queue->batch.at[queue->cursor].who)) {
        struct peal_late_event late = late_pop(queue);
        *out = (struct peal_event){queue->last, (uint32_t)(late.key >> 32), late.payload};
        return true;
    }
    if (!has_batch) /* a failed allocation lost a batch */
        return false;
    *out = queue->batch.at[queue->cursor++];
    return true;
}
