/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a team that has failed find out who is left, through the net that they have, and all of them
 * find the same, although any of them may die or leave meanwhile.
 *
 *   everyone        its block to the leader, the lowest member that is not gone
 *   the leader      waits until each has come or is gone, and sends all blocks to all that came
 *   everyone        sends these to all others as well, and only then goes on
 *
 * Why all find the same: a leader decides only when every member that is not gone has asked it. A member
 * that has an earlier leader's decision asks no more, but sends that decision on; so the next leader
 * gets it before it can decide otherwise. And a member that goes on, or leaves, has sent it to everyone before.
 * That a member is gone may be seen before its last messages are read, so these are read before that counts.
 *
 * Messages may arrive before this rank takes part in their gathering: a bounded number of them is kept. Those of a
 * gathering that is over are dropped.
 */
#include "run/span/endpoint.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 4, ALL = 5 }; /* kinds of control messages, after those of control.c */

struct gather_block {
    uint64_t id;
    char bytes[PEAL_SPAN_BLOCK];
};

struct all {
    uint64_t id;
    uint32_t status, pad;
    uint8_t came[PEAL_SPAN_MEMBERS];
    char bytes[PEAL_SPAN_MEMBERS][PEAL_SPAN_BLOCK];
};
static_assert(sizeof(struct all) <= PEAL_NET_CONTROL_MAX, "all blocks are one message");
static_assert(sizeof(struct peal_span_hello) <= PEAL_SPAN_BLOCK, "a hello is a block");

static bool is_over(const struct peal_endpoint *endpoint, uint64_t id)
{
    for (uint32_t i = 0; i < PEAL_GATHERS_KEPT; i++) {
        if (endpoint->gathers_over[i] == id)
            return true;
    }
    return false;
}

void peal_gather_take(struct peal_endpoint *endpoint, uint32_t at, uint32_t kind, const void *bytes,
                      uint64_t len)
{
    enum { MOST_NOTES = 4 * PEAL_SPAN_MEMBERS };
    uint64_t id;
    if (len < sizeof id || len > PEAL_NET_CONTROL_MAX || endpoint->nnotes >= MOST_NOTES)
        return;
    memcpy(&id, bytes, sizeof id);
    if (is_over(endpoint, id))
        return;
    struct peal_gather_note *note = malloc(sizeof *note + len);
    if (!note)
        return;
    *note = (struct peal_gather_note){
        .next = endpoint->notes, .id = id, .kind = kind, .at = at, .len = (uint32_t)len};
    memcpy(note->bytes, bytes, len);
    endpoint->notes = note;
    endpoint->nnotes++;
}

/* Removes a message of that kind and gathering from those that were kept; NULL: none has arrived. */
static struct peal_gather_note *take_note(const struct peal_span_gather *how, uint32_t kind)
{
    struct peal_endpoint *endpoint = how->endpoint;
    (void)peal_endpoint_lock(endpoint);
    struct peal_gather_note **link = &endpoint->notes;
    while (*link && ((*link)->kind != kind || (*link)->id != how->id))
        link = &(*link)->next;
    struct peal_gather_note *found = *link;
    if (found) {
        *link = found->next;
        endpoint->nnotes--;
    }
    peal_endpoint_unlock(endpoint);
    return found;
}

/* Progresses the network until nothing more arrives, sends what is unsent, and waits briefly. A rank that is still to
 * come may not know of the failure yet: it was in no call when that was announced. */
static void pass_time(const struct peal_span_gather *how)
{
    enum { MOST_TURNS = 1000 };
    struct peal_net *net = peal_endpoint_lock(how->endpoint);
    for (uint32_t turn = 0; turn < MOST_TURNS; turn++) {
        if (!peal_net_progress(net))
            break;
    }
    peal_endpoint_send_unsent(how->endpoint);
    peal_endpoint_unlock(how->endpoint);
    nanosleep(&(struct timespec){0, 200000}, NULL);
}

static enum peal_status try_send(const struct peal_span_gather *how, uint32_t member, uint32_t kind,
                                 const void *bytes, uint64_t len)
{
    struct peal_net *net = peal_endpoint_lock(how->endpoint);
    enum peal_status status = peal_net_control(net, how->members[member], kind, bytes, len);
    peal_endpoint_unlock(how->endpoint);
    return status;
}

/* Blocks that have come, into their places. */
static void sort_blocks(const struct peal_span_gather *how, struct all *all)
{
    for (struct peal_gather_note *note; (note = take_note(how, BLOCK)) != NULL; free(note)) {
        for (uint32_t m = 0; m < how->size; m++) {
            if (how->members[m] != note->at || note->len != sizeof(struct gather_block))
                continue;
            memcpy(all->bytes[m], note->bytes + offsetof(struct gather_block, bytes),
                   PEAL_SPAN_BLOCK);
            all->came[m] = 1;
        }
    }
}

/* A decision that has arrived, from any member. */
static bool take_decision(const struct peal_span_gather *how, struct all *all)
{
    struct peal_gather_note *note = take_note(how, ALL);
    bool whole = note && note->len == sizeof *all;
    if (whole)
        memcpy(all, note->bytes, sizeof *all);
    free(note);
    return whole;
}

/* Sends the decision to everyone that came, as far as it can be sent before the time is over. */
static void send_on(const struct peal_span_gather *how, const struct all *all, uint64_t end)
{
    for (uint32_t m = 0; m < how->size; m++) {
        if (m == how->self || !all->came[m])
            continue;
        while (try_send(how, m, ALL, all, sizeof *all) == PEAL_PENDING && peal_now_ms() < end)
            pass_time(how);
    }
}

/* Messages of a gathering go by the network, also between ranks of one host: a rank that cannot be reached will not come. */
static bool is_lost(const struct peal_span_gather *how, uint32_t member)
{
    struct peal_net *net = peal_endpoint_lock(how->endpoint);
    enum peal_status status = peal_net_health(net, how->members[member], NULL);
    peal_endpoint_unlock(how->endpoint);
    return status != PEAL_OK && status != PEAL_PENDING;
}

/* As seen now. The network is moved afterwards, so that what a member sent before it left has come. */
static void look_around(const struct peal_span_gather *how, uint8_t *gone)
{
    for (uint32_t m = 0; m < how->size; m++)
        gone[m] = m != how->self && (how->gone(how->context, m, NULL) || is_lost(how, m));
    pass_time(how);
}

static uint32_t find_leader(const uint8_t *gone)
{
    uint32_t leader = 0;
    while (gone[leader]) /* this rank is never gone */
        leader++;
    return leader;
}

/* What the leader decides: PEAL_PENDING until each has come or is gone. */
static enum peal_status decide(const struct peal_span_gather *how, const struct all *all,
                               const uint8_t *gone)
{
    bool missing = false;
    for (uint32_t m = 0; m < how->size; m++) {
        if (!all->came[m] && !gone[m])
            return PEAL_PENDING;
        missing |= !all->came[m];
    }
    return missing && !how->optional ? PEAL_PEER_DEAD : PEAL_OK;
}

static enum peal_status gather(const struct peal_span_gather *how, const void *own, struct all *all)
{
    uint64_t end = peal_now_ms() + how->timeout_ms;
    uint32_t asked = UINT32_MAX; /* the leader that has this rank's block */
    uint8_t gone[PEAL_SPAN_MEMBERS];
    struct gather_block block = {.id = how->id};
    memcpy(block.bytes, own, how->bytes);
    memcpy(all->bytes[how->self], own, how->bytes);
    all->came[how->self] = 1;
    while (peal_now_ms() < end) {
        look_around(how, gone);
        sort_blocks(how, all);
        uint32_t leader = find_leader(gone);
        struct all decision;
        if (take_decision(how, &decision)) {
            *all = decision;
            send_on(how, all, end);
            return (enum peal_status)all->status;
        }
        if (leader == how->self) {
            enum peal_status status = decide(how, all, gone);
            if (status == PEAL_PENDING)
                continue;
            all->status = (uint32_t)status;
            send_on(how, all, end);
            return status;
        }
        if (leader != asked && try_send(how, leader, BLOCK, &block, sizeof block) == PEAL_OK)
            asked = leader;
    }
    return PEAL_TIMEOUT;
}

/* What is still to come of this gathering is not kept. */
static void forget(const struct peal_span_gather *how)
{
    struct peal_endpoint *endpoint = how->endpoint;
    (void)peal_endpoint_lock(endpoint);
    endpoint->gathers_over[endpoint->ngathers++ % PEAL_GATHERS_KEPT] = how->id;
    peal_endpoint_unlock(endpoint);
    for (struct peal_gather_note *note; (note = take_note(how, ALL)) != NULL;)
        free(note);
    for (struct peal_gather_note *note; (note = take_note(how, BLOCK)) != NULL;)
        free(note);
}

enum peal_status peal_span_gather(const struct peal_span_gather *how, const void *own, void *all,
                                  uint8_t *came)
{
    struct all *found = calloc(1, sizeof *found);
    if (!found)
        return PEAL_NO_MEMORY;
    found->id = how->id;
    enum peal_status status = gather(how, own, found);
    forget(how);
    for (uint32_t m = 0; m < how->size; m++) {
        if (status != PEAL_OK)
            break;
        came[m] = found->came[m];
        memcpy((char *)all + (size_t)m * how->bytes, found->bytes[m], how->bytes);
    }
    free(found);
    return status;
}
