/* SPDX-License-Identifier: Apache-2.0 */
/* See store.h. A message is two lengths, the key and the value. Every rank keeps what it has set or
 * received until the store is closed; its sends read from there. */
#include "store.h"

#include "stats.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    TAG = 1,
    MAX_VALUE = 1 << 17, /* ranks exchange about a page */
    MAX_KEY = 256,
    DEFAULT_PATIENCE_MS = 60000
};

struct item {
    struct item *next;
    char *requests; /* if this rank has set it: one per rank, 8 bytes each; otherwise NULL */
    uint32_t key_len, value_len;
    char text[]; /* key, then value */
};

struct peal_mpi_store {
    char comm[8]; /* the MPI's handle, as the MPI wrote it */
    uint32_t rank, size;
    uint64_t patience_ns;
    struct item *items;
    uint64_t set;       /* items that this rank has set */
    uint64_t *received; /* items from each other rank */
    struct peal_store functions;
};

static void *comm_of(const struct peal_mpi_store *store)
{
    return peal_mpi_load(peal_mpi(), store->comm);
}

static uint64_t item_bytes(const struct item *item)
{
    return 2 * sizeof(uint32_t) + (uint64_t)item->key_len + item->value_len;
}

static const struct item *find(const struct peal_mpi_store *store, const char *key)
{
    for (const struct item *item = store->items; item; item = item->next) {
        if (item->key_len == strlen(key) && memcmp(item->text, key, item->key_len) == 0)
            return item;
    }
    return NULL;
}

static void keep(struct peal_mpi_store *store, struct item *item)
{
    item->next = store->items;
    store->items = item;
}

/* ---- setting ---- */

static int set(void *context, const char *key, const void *value, size_t len)
{
    struct peal_mpi_store *store = context;
    const struct peal_mpi_abi *abi = peal_mpi();
    size_t key_len = strlen(key);
    if (key_len > MAX_KEY || len > MAX_VALUE)
        return -1;
    struct item *item = calloc(1, sizeof *item + key_len + len);
    char *requests = calloc(store->size, 8);
    if (!item || !requests) {
        free(item);
        free(requests);
        return -1;
    }
    item->key_len = (uint32_t)key_len;
    item->value_len = (uint32_t)len;
    item->requests = requests;
    memcpy(item->text, key, key_len);
    memcpy(item->text + key_len, value, len);
    keep(store, item);
    store->set++;
    for (uint32_t r = 0; r < store->size; r++) {
        if (r != store->rank)
            abi->pmpi.Isend(&item->key_len, (int)item_bytes(item), abi->byte, (int)r, TAG,
                            comm_of(store), requests + 8 * (size_t)r);
    }
    return 0;
}

/* ---- getting ---- */

/* Receives the next message of a rank, if there is one. */
static bool receive(struct peal_mpi_store *store, uint32_t from)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    char status[64];
    int there = 0;
    if (abi->pmpi.Iprobe((int)from, TAG, comm_of(store), &there, status) != 0 || !there)
        return false;
    struct item *item = calloc(1, sizeof *item + MAX_KEY + MAX_VALUE);
    if (!item)
        return false;
    abi->pmpi.Recv(&item->key_len, 2 * (int)sizeof(uint32_t) + MAX_KEY + MAX_VALUE, abi->byte,
                   (int)from, TAG, comm_of(store), status);
    keep(store, item);
    store->received[from]++;
    return true;
}

static void receive_some(struct peal_mpi_store *store)
{
    for (uint32_t r = 0; r < store->size; r++) {
        if (r != store->rank)
            receive(store, r);
    }
}

static int get(void *context, const char *key, void *value, size_t cap, size_t *len)
{
    struct peal_mpi_store *store = context;
    uint64_t began_ns = peal_mpi_now_ns();
    const struct item *item = find(store, key);
    while (!item) {
        if (peal_mpi_now_ns() - began_ns > store->patience_ns)
            return -1;
        receive_some(store);
        item = find(store, key);
        if (!item)
            sched_yield();
    }
    *len = item->value_len < cap ? item->value_len : cap;
    memcpy(value, item->text + item->key_len, *len);
    return 0;
}

/* ---- opening and closing ---- */

static uint64_t read_patience_ns(void)
{
    const char *wish = getenv("PEAL_TIMEOUT_MS");
    uint64_t ms = wish ? strtoull(wish, NULL, 10) : 0;
    return (ms > 0 ? ms : DEFAULT_PATIENCE_MS) * 1000000;
}

static struct peal_mpi_store *make(const struct peal_mpi_comm *state)
{
    struct peal_mpi_store *store = calloc(1, sizeof *store);
    uint64_t *received = calloc(state->size, sizeof *received);
    if (!store || !received) {
        free(store);
        free(received);
        return NULL;
    }
    store->rank = state->rank;
    store->size = state->size;
    store->received = received;
    store->patience_ns = read_patience_ns();
    store->functions = (struct peal_store){store, set, get};
    return store;
}

static void discard(struct peal_mpi_store *store)
{
    if (store)
        free(store->received);
    free(store);
}

bool peal_mpi_store_open(const struct peal_mpi_comm *state, struct peal_mpi_store **out)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    struct peal_mpi_store *store = make(state);
    uint64_t own = store != NULL, all = 0;
    int code = abi->pmpi.Allreduce(&own, &all, 1, abi->uint64, abi->op_min, state->comm);
    if (code != PEAL_MPI_SUCCESS || !all) {
        discard(store);
        return false;
    }
    if (abi->pmpi.Comm_split(state->comm, 0, (int)state->rank, store->comm) != PEAL_MPI_SUCCESS) {
        discard(store);
        return false;
    }
    *out = store;
    return true;
}

const struct peal_store *peal_mpi_store_functions(struct peal_mpi_store *store)
{
    return &store->functions;
}

/* Receives everything that was sent to this rank, because otherwise sends might never complete. */
static void receive_rest(struct peal_mpi_store *store)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    uint64_t *sent = calloc(store->size, sizeof *sent);
    if (!sent)
        return; /* sends of small messages complete all the same */
    abi->pmpi.Allgather(&store->set, 1, abi->uint64, sent, 1, abi->uint64, comm_of(store));
    sent[store->rank] = 0; /* to itself */
    for (uint32_t r = 0; r < store->size; r++) {
        while (store->received[r] < sent[r]) {
            if (!receive(store, r))
                sched_yield();
        }
    }
    free(sent);
}

static void free_items(struct peal_mpi_store *store)
{
    char status[64];
    for (struct item *item = store->items; item; item = store->items) {
        store->items = item->next;
        for (uint32_t r = 0; r < store->size; r++) {
            if (item->requests && r != store->rank)
                peal_mpi()->pmpi.Wait(item->requests + 8 * (size_t)r, status);
        }
        free(item->requests);
        free(item);
    }
}

void peal_mpi_store_close(struct peal_mpi_store *store)
{
    if (!store)
        return;
    receive_rest(store);
    free_items(store);
    peal_mpi()->pmpi.Comm_free(store->comm);
    discard(store);
}
