/* SPDX-License-Identifier: Apache-2.0 */
/* What members of a domain exchange while they open its communicator: a member that sets a key
 * sends it to all members, and each waits for it in its own table. Keys of old domains are
 * dropped. */
#include "driver/hosts/hosts.h"

#include <string.h>

enum { KEPT_DOMAINS = 256, GET_MS = 60000 };

/* Under the lock. */
static void drop_old(struct peal_away *away, uint64_t domain)
{
    size_t kept = 0;
    for (size_t i = 0; i < away->store.len; i++) {
        struct peal_away_entry *entry = &away->store.at[i];
        if (entry->domain + KEPT_DOMAINS >= domain) {
            away->store.at[kept++] = *entry;
            continue;
        }
        free(entry->key);
        free(entry->value);
    }
    away->store.len = kept;
}

void peal_away_store_put(struct peal_away *away, uint64_t domain, const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\0', len);
    if (!end)
        return;
    size_t value_len = len - (size_t)(end + 1 - bytes);
    struct peal_away_entry entry = {domain, strdup(bytes), malloc(value_len + 1), value_len};
    drop_old(away, domain);
    if (!entry.key || !entry.value || !peal_vec_reserve(&away->store, 1)) {
        free(entry.key);
        free(entry.value);
        return; /* its reader times out */
    }
    memcpy(entry.value, end + 1, value_len);
    away->store.at[away->store.len++] = entry;
    pthread_cond_broadcast(&away->changed);
}

static int set(void *context, const char *key, const void *value, size_t len)
{
    const struct peal_away_meeting *meeting = context;
    struct peal_away *away = meeting->away;
    struct peal_away_head head = {.at = meeting->domain};
    struct peal_text text = {0};
    peal_text_add(&text, key, strlen(key) + 1);
    peal_text_add(&text, value, len);
    bool ok = !text.failed && text.len <= PEAL_AWAY_PIECE;
    for (uint32_t m = 0; m < meeting->block->members; m++) {
        uint32_t worker = meeting->block->parts[m].worker;
        if (!ok)
            break;
        if (worker != away->rank) {
            ok = peal_away_send(away, worker, PEAL_AWAY_SET, &head, text.at, text.len) == PEAL_OK;
            continue;
        }
        pthread_mutex_lock(&away->lock);
        peal_away_store_put(away, meeting->domain, text.at, text.len);
        pthread_mutex_unlock(&away->lock);
    }
    peal_text_release(&text);
    return ok ? 0 : -1;
}

/* Under the lock. */
static const struct peal_away_entry *find(const struct peal_away *away, const char *key)
{
    for (size_t i = 0; i < away->store.len; i++) {
        if (strcmp(away->store.at[i].key, key) == 0)
            return &away->store.at[i];
    }
    return NULL;
}

static bool has_lost_member(const struct peal_away_meeting *meeting)
{
    for (uint32_t m = 0; m < meeting->block->members; m++) {
        if (meeting->away->lost[meeting->block->parts[m].worker])
            return true;
    }
    return false;
}

static int get(void *context, const char *key, void *value, size_t cap, size_t *len)
{
    const struct peal_away_meeting *meeting = context;
    struct peal_away *away = meeting->away;
    uint64_t deadline = peal_now_ms() + GET_MS;
    int result = -1;
    pthread_mutex_lock(&away->lock);
    const struct peal_away_entry *entry = find(away, key);
    while (!entry) {
        if (has_lost_member(meeting) || peal_now_ms() >= deadline)
            break;
        struct timespec until = peal_deadline(CLOCK_REALTIME, 1000);
        (void)pthread_cond_timedwait(&away->changed, &away->lock, &until);
        entry = find(away, key);
    }
    if (entry && entry->len <= cap) {
        memcpy(value, entry->value, entry->len);
        *len = entry->len;
        result = 0;
    }
    pthread_mutex_unlock(&away->lock);
    return result;
}

struct peal_store peal_away_store(struct peal_away_meeting *meeting)
{
    return (struct peal_store){meeting, set, get};
}
