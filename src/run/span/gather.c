/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a team that has failed find out which of them are left, through the net that they
 * have. All find the same members, although any of them may die or leave meanwhile.
 *
 *   every member    sends its block to the leader, the lowest member that is not gone
 *   the leader      waits until each has come or is gone, and decides: all blocks that came
 *   every member    that has a decision sends it to all that came, and goes on when each of these has
 *                   sent it the same one, or is gone
 *
 * Why all find the same. A leader decides only when every member that is not gone has sent it a block,
 * and a member that has a decision sends no more blocks. If a leader dies, some members may have its
 * decision and others go on to the next leader, which may decide otherwise: a decision takes the place
 * of one by a lower leader. So a member goes on with a decision only when every living member that came
 * has it too; no later leader can decide any more. A member that is seen to have left, or to be dead,
 * before its last messages have arrived does no harm: if it went on, all others have its decision.
 *
 * Messages may arrive before this rank takes part in their gathering: a bounded number of them is
 * kept. Those of a gathering that is over are dropped.
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
    uint32_t status, leader; /* leader: the member that decided */
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
    enum { MAX_NOTES = 4 * PEAL_SPAN_MEMBERS };
    uint64_t id;
    if (len < sizeof id || len > PEAL_NET_CONTROL_MAX || endpoint->nnotes >= MAX_NOTES)
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

/* Removes a message of this gathering and that kind from those that are kept; NULL: there is
 * none. */
static struct peal_gather_note *take_note(const struct peal_span_gather *gather, uint32_t kind)
{
    struct peal_endpoint *endpoint = gather->endpoint;
    (void)peal_endpoint_lock(endpoint);
    struct peal_gather_note **link = &endpoint->notes;
    while (*link && ((*link)->kind != kind || (*link)->id != gather->id))
        link = &(*link)->next;
    struct peal_gather_note *found = *link;
    if (found) {
        *link = found->next;
        endpoint->nnotes--;
    }
    peal_endpoint_unlock(endpoint);
    return found;
}

/* Serves the network until nothing more arrives, sends what is unsent, and waits briefly. What is
 * unsent matters: a rank that is still to come may not have been sent the failure yet. */
static void pass_time(const struct peal_span_gather *gather)
{
    enum { MAX_TURNS = 1000 };
    struct peal_net *net = peal_endpoint_lock(gather->endpoint);
    for (uint32_t turn = 0; turn < MAX_TURNS && peal_net_progress(net); turn++) {
    }
    peal_endpoint_send_unsent(gather->endpoint);
    peal_endpoint_unlock(gather->endpoint);
    nanosleep(&(struct timespec){0, 200000}, NULL);
}

static enum peal_status try_send(const struct peal_span_gather *gather, uint32_t member,
                                 uint32_t kind, const void *bytes, uint64_t len)
{
    struct peal_net *net = peal_endpoint_lock(gather->endpoint);
    enum peal_status status = peal_net_control(net, gather->members[member], kind, bytes, len);
    peal_endpoint_unlock(gather->endpoint);
    return status;
}

/* Moves the blocks that have arrived into their places. */
static void sort_blocks(const struct peal_span_gather *gather, struct all *all)
{
    for (struct peal_gather_note *note; (note = take_note(gather, BLOCK)) != NULL; free(note)) {
        for (uint32_t m = 0; m < gather->size; m++) {
            if (gather->members[m] != note->at || note->len != sizeof(struct gather_block))
                continue;
            memcpy(all->bytes[m], note->bytes + offsetof(struct gather_block, bytes),
                   PEAL_SPAN_BLOCK);
            all->came[m] = 1;
        }
    }
}

/* Members of one host, too, send each other messages through the network: one that cannot be
 * reached there will not come. */
static bool is_lost(const struct peal_span_gather *gather, uint32_t member)
{
    struct peal_net *net = peal_endpoint_lock(gather->endpoint);
    enum peal_status status = peal_net_health(net, gather->members[member], NULL);
    peal_endpoint_unlock(gather->endpoint);
    return status != PEAL_OK && status != PEAL_PENDING;
}

/* Which members are gone now. The network is served afterwards. */
static void find_gone(const struct peal_span_gather *gather, uint8_t *gone)
{
    for (uint32_t m = 0; m < gather->size; m++)
        gone[m] =
            m != gather->self && (gather->gone(gather->context, m, NULL) || is_lost(gather, m));
    pass_time(gather);
}

static uint32_t find_leader(const uint8_t *gone)
{
    uint32_t leader = 0;
    while (gone[leader]) /* this rank is never gone */
        leader++;
    return leader;
}

/* What the leader decides: PEAL_PENDING until each has come or is gone. */
static enum peal_status decide(const struct peal_span_gather *gather, const struct all *all,
                               const uint8_t *gone)
{
    bool missing = false;
    for (uint32_t m = 0; m < gather->size; m++) {
        if (!all->came[m] && !gone[m])
            return PEAL_PENDING;
        missing |= !all->came[m];
    }
    return missing && !gather->optional ? PEAL_PEER_DEAD : PEAL_OK;
}

/* A member's way through a gathering. */
struct course {
    const struct peal_span_gather *gather;
    struct all *all; /* the decision, or the blocks so far */
    bool decided;
    uint32_t asked; /* the leader that has this rank's block */
    uint8_t gone[PEAL_SPAN_MEMBERS];
    uint8_t sent[PEAL_SPAN_MEMBERS];  /* the decision, to that member */
    uint8_t heard[PEAL_SPAN_MEMBERS]; /* the same one, from that member */
};

static void begin_decision(struct course *course)
{
    course->decided = true;
    memset(course->sent, 0, sizeof course->sent);
    memset(course->heard, 0, sizeof course->heard);
}

/* Takes the decisions that have arrived: the first, and any by a later leader. */
static void take_decisions(struct course *course)
{
    const struct peal_span_gather *gather = course->gather;
    for (struct peal_gather_note *note; (note = take_note(gather, ALL)) != NULL; free(note)) {
        struct all found;
        if (note->len != sizeof found)
            continue;
        memcpy(&found, note->bytes, sizeof found);
        if (!course->decided || found.leader > course->all->leader) {
            *course->all = found;
            begin_decision(course);
        }
        for (uint32_t m = 0; m < gather->size && found.leader == course->all->leader; m++)
            course->heard[m] |= gather->members[m] == note->at;
    }
}

/* Decides as the leader, or sends the leader this rank's block. */
static void move_on(struct course *course, const struct gather_block *block)
{
    uint32_t leader = find_leader(course->gone), self = course->gather->self;
    if (leader == self) {
        enum peal_status status = decide(course->gather, course->all, course->gone);
        if (status == PEAL_PENDING)
            return;
        course->all->status = (uint32_t)status;
        course->all->leader = self;
        begin_decision(course);
    } else if (leader != course->asked &&
               try_send(course->gather, leader, BLOCK, block, sizeof *block) == PEAL_OK) {
        course->asked = leader;
    }
}

/* Sends the decision to members that came and have not got it from this rank. True: each of them has it, and has said so. */
static bool pass_on(struct course *course)
{
    const struct peal_span_gather *gather = course->gather;
    bool all_have_it = true;
    for (uint32_t m = 0; m < gather->size; m++) {
        if (m == gather->self || !course->all->came[m] || course->gone[m])
            continue;
        if (!course->sent[m])
            course->sent[m] = try_send(gather, m, ALL, course->all, sizeof *course->all) == PEAL_OK;
        all_have_it &= course->sent[m] && course->heard[m];
    }
    return all_have_it;
}

static enum peal_status run_gather(const struct peal_span_gather *gather, const void *own,
                                   struct all *all)
{
    uint64_t end = peal_now_ms() + gather->timeout_ms;
    struct course course = {.gather = gather, .all = all, .asked = UINT32_MAX};
    struct gather_block block = {.id = gather->id};
    memcpy(block.bytes, own, gather->bytes);
    memcpy(all->bytes[gather->self], own, gather->bytes);
    all->came[gather->self] = 1;
    while (peal_now_ms() < end) {
        find_gone(gather, course.gone);
        take_decisions(&course);
        if (!course.decided) {
            sort_blocks(gather, all);
            move_on(&course, &block);
        }
        /* A member that is not in the decision was taken for gone: the others do not wait for it. */
        if (course.decided && (!all->came[gather->self] || pass_on(&course)))
            return (enum peal_status)all->status;
    }
    return PEAL_TIMEOUT;
}

/* Drops this gathering's messages, those to come included. */
static void forget(const struct peal_span_gather *gather)
{
    struct peal_endpoint *endpoint = gather->endpoint;
    (void)peal_endpoint_lock(endpoint);
    endpoint->gathers_over[endpoint->ngathers++ % PEAL_GATHERS_KEPT] = gather->id;
    peal_endpoint_unlock(endpoint);
    for (struct peal_gather_note *note; (note = take_note(gather, ALL)) != NULL;)
        free(note);
    for (struct peal_gather_note *note; (note = take_note(gather, BLOCK)) != NULL;)
        free(note);
}

enum peal_status peal_span_gather(const struct peal_span_gather *gather, const void *own, void *all,
                                  uint8_t *came)
{
    struct all *found = calloc(1, sizeof *found);
    if (!found)
        return PEAL_NO_MEMORY;
    found->id = gather->id;
    enum peal_status status = run_gather(gather, own, found);
    forget(gather);
    for (uint32_t m = 0; m < gather->size && status == PEAL_OK; m++) {
        came[m] = found->came[m];
        memcpy((char *)all + (size_t)m * gather->bytes, found->bytes[m], gather->bytes);
    }
    free(found);
    return status;
}
