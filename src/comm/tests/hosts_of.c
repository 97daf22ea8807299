/* SPDX-License-Identifier: Apache-2.0 */
/* See hosts_of.h. */
#include "comm/tests/hosts_of.h"

#include "comm/tests/bad_network.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ENTRIES = 4096, KEY = 120, VALUE = 1400 };

struct entry {
    char key[KEY];
    size_t len;
    char value[VALUE];
};

struct table {
    struct peal_store store;
    pthread_mutex_t lock;
    uint32_t count;
    struct entry entries[ENTRIES];
};

static int set(void *context, const char *key, const void *value, size_t len)
{
    struct table *table = context;
    pthread_mutex_lock(&table->lock);
    bool fits = table->count < ENTRIES && len <= VALUE && strlen(key) < KEY;
    if (fits) {
        struct entry *entry = &table->entries[table->count++];
        snprintf(entry->key, KEY, "%s", key);
        memcpy(entry->value, value, len);
        entry->len = len;
    }
    pthread_mutex_unlock(&table->lock);
    return fits ? 0 : -1;
}

static const struct entry *find(struct table *table, const char *key)
{
    const struct entry *found = NULL;
    pthread_mutex_lock(&table->lock);
    for (uint32_t i = 0; i < table->count; i++) {
        if (strcmp(table->entries[i].key, key) != 0)
            continue;
        found = &table->entries[i];
        break;
    }
    pthread_mutex_unlock(&table->lock);
    return found;
}

static int get(void *context, const char *key, void *value, size_t cap, size_t *len)
{
    enum { TRIES = 600000 }; /* of a millisecond */
    for (int i = 0; i < TRIES; i++) {
        const struct entry *found = find(context, key);
        if (found) {
            *len = found->len;
            memcpy(value, found->value, found->len < cap ? found->len : cap);
            return 0;
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return -1;
}

struct peal_store *hosts_store_new(void)
{
    if (!getenv("TEST_HOSTS"))
        return NULL;
    struct table *table =
        mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t shared;
    if (table == MAP_FAILED || pthread_mutexattr_init(&shared) != 0)
        abort();
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&table->lock, &shared);
    pthread_mutexattr_destroy(&shared);
    table->store = (struct peal_store){table, set, get};
    return &table->store;
}

void hosts_store_free(struct peal_store *store)
{
    if (store)
        munmap(store->context, sizeof(struct table));
}

/* Enters the network namespace of the process that stands for that host. */
static void enter_network(const char *spaces, unsigned host)
{
    char path[64];
    for (unsigned i = 0; i < host; i++) {
        spaces = strchr(spaces, ',');
        if (!spaces)
            abort();
        spaces++;
    }
    snprintf(path, sizeof path, "/proc/%lu/ns/net", strtoul(spaces, NULL, 10));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
        perror(path);
        abort();
    }
    close(fd);
}

void hosts_place(uint32_t rank, uint32_t size)
{
    const char *wish = getenv("TEST_HOSTS");
    unsigned hosts = wish ? (unsigned)strtoul(wish, NULL, 10) : 0;
    char name[32];
    if (hosts == 0)
        return;
    bad_network_begin(rank);
    hosts = hosts < size ? hosts : size;
    unsigned host = strstr(wish, "mixed") ? rank % hosts : rank * hosts / size;
    snprintf(name, sizeof name, "host-%u", host);
    setenv("PEAL_HOST", name, 1);
    setenv("PEAL_NET", "tcp:127.0.0.0/8", 0);
    const char *spaces = getenv("TEST_HOSTS_SPACES");
    if (spaces)
        enter_network(spaces, host);
}
