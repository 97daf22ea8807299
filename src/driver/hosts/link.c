/* SPDX-License-Identifier: Apache-2.0 */
/* The net between a driver and its workers: what both sides use. */
#include "driver/hosts/hosts.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct peal_away *peal_away_new(struct peal_host *host)
{
    struct peal_away *away = calloc(1, sizeof *away);
    if (!away)
        return NULL;
    pthread_mutex_init(&away->lock, NULL);
    pthread_cond_init(&away->changed, NULL);
    away->host = host;
    away->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    away->meet_fd = -1;
    return away;
}

void peal_away_free(struct peal_away *away)
{
    if (!away)
        return;
    for (size_t i = 0; i < away->inbox.len; i++)
        free(away->inbox.at[i].bytes);
    for (size_t i = 0; i < away->store.len; i++) {
        free(away->store.at[i].key);
        free(away->store.at[i].value);
    }
    peal_vec_release(&away->inbox);
    peal_vec_release(&away->store);
    if (away->wake_fd >= 0)
        close(away->wake_fd);
    pthread_cond_destroy(&away->changed);
    pthread_mutex_destroy(&away->lock);
    free(away->clocks);
    free(away);
}

static void on_post(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len)
{
    struct peal_away *away = context;
    if (len < sizeof(struct peal_away_head))
        return;
    if (away->shared)
        peal_away_apply(away, rank, kind, bytes, len);
    else
        peal_away_keep(away, rank, kind, bytes, len);
}

static void on_lost(void *context, uint32_t rank, enum peal_status status, const char *why)
{
    if (status != PEAL_CLOSED) /* closed: it has left in order */
        peal_away_note_lost(context, rank, why);
}

enum peal_status peal_away_open(struct peal_away *away, struct peal_meet *meet,
                                struct peal_text *why)
{
    uint8_t secret[PEAL_NET_SECRET] = {0};
    const char *transport = getenv("PEAL_NET");
    bool other = transport && strncmp(transport, "tcp", 3) != 0;
    away->rank = meet->rank;
    away->size = meet->size;
    enum peal_status status = peal_meet_secret(meet, true, secret, why);
    if (status != PEAL_OK)
        return status;
    struct peal_net_config config = {
        .rank = meet->rank,
        .size = meet->size,
        .job = meet->job,
        .secret = secret,
        .transport = other ? "tcp" : NULL, /* other transports do not authenticate */
        .crypt = true,
        .events = {.context = away, .post = on_post, .lost = on_lost}};
    status = peal_net_open(&config, meet, why, &away->net);
    explicit_bzero(secret, sizeof secret);
    return status;
}

enum peal_status peal_away_send(struct peal_away *away, uint32_t rank, enum peal_away_kind kind,
                                const struct peal_away_head *head, const void *bytes, size_t len)
{
    struct peal_net_part parts[2] = {{head, sizeof *head}, {bytes, len}};
    enum peal_status status;
    pthread_mutex_lock(&away->lock);
    for (;;) {
        status = peal_net_post(away->net, rank, kind, parts, len ? 2 : 1);
        bool moved = peal_net_progress(away->net);
        if (status != PEAL_PENDING)
            break;
        pthread_mutex_unlock(&away->lock);
        if (!moved)
            sched_yield();
        pthread_mutex_lock(&away->lock);
    }
    pthread_mutex_unlock(&away->lock);
    return status;
}

void peal_away_wake(struct peal_away *away)
{
    uint64_t one = 1;
    (void)!write(away->wake_fd, &one, sizeof one);
}

void peal_away_serve_once(struct peal_away *away)
{
    enum { LIMIT_MS = 20 };
    uint64_t count;
    pthread_mutex_lock(&away->lock);
    bool moved = peal_net_progress(away->net) || away->inbox.len;
    struct pollfd fds[2] = {{-1, POLLIN, 0}, {away->wake_fd, POLLIN, 0}};
    if (!moved)
        fds[0].fd = peal_net_arm(away->net);
    pthread_mutex_unlock(&away->lock);
    if (fds[0].fd < 0)
        return;
    (void)poll(fds, 2, LIMIT_MS);
    if (fds[1].revents)
        (void)!read(away->wake_fd, &count, sizeof count);
}

enum peal_status peal_away_agree(struct peal_meet *meet, enum peal_status status,
                                 struct peal_text *why)
{
    struct peal_away_account own = {.status = (uint32_t)status};
    struct peal_away_account *all = calloc(meet->size, sizeof *all);
    snprintf(own.why, sizeof own.why, "%s", peal_text_get(why));
    if (!all) {
        peal_text_puts(why, "out of memory");
        return PEAL_NO_MEMORY;
    }
    enum peal_status gathered = peal_meet_gather(meet, &own, sizeof own, all, why);
    for (uint32_t r = 0; r < meet->size; r++) {
        if (gathered != PEAL_OK || all[r].status == PEAL_OK)
            continue;
        all[r].why[sizeof all[r].why - 1] = '\0';
        why->len = 0;
        if (r + 1 < meet->size)
            peal_text_printf(why, "worker %u: ", r);
        peal_text_puts(why, all[r].why);
        gathered = (enum peal_status)all[r].status;
    }
    free(all);
    return gathered;
}
