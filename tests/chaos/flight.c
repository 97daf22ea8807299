/* SPDX-License-Identifier: Apache-2.0 */
/* Requests under way: tested, waited for with and without a limit, in any order. A rank with requests
 * of several communicators polls, because a wait advances those of its own communicator only. */
#include "chaos.h"

#include <stdio.h>
#include <stdlib.h>

static void end_one(struct rank *me, uint32_t i, enum peal_status status, const uint64_t *got,
                    const uint32_t *sender)
{
    struct flight *f = me->flights[i];
    me->flights[i] = NULL;
    if (f->is_message)
        rank_begins(me, "a message %s", f->is_receive ? "received" : "sent");
    else
        rank_begins(me, "end of i%s on group %u, count %llu, key %llx", spec_name(&f->spec),
                    me->groups[f->group].number, (unsigned long long)f->spec.count,
                    (unsigned long long)f->spec.key);
    if (f->too_long && status == PEAL_INVALID)
        status = PEAL_OK;
    else if (f->too_long && status == PEAL_OK)
        rank_complain(me, "a message that is too long was received");
    if (rank_goes_on(me, status, me->comms[f->group]))
        flight_check(me, f, got, sender);
    flight_free(f);
}

/* Tests a request, or waits for it; without a limit only if `alone`: no other communicator has any
 * under way. */
static void try_one(struct rank *me, uint32_t i, bool alone)
{
    struct peal_request *request = me->flights[i]->request;
    uint64_t got = 0;
    uint32_t sender = 0;
    switch (below(&me->own, alone ? 4 : 3)) {
    case 0:
    case 1: {
        enum peal_status status = peal_request_test(request);
        if (status != PEAL_PENDING)
            end_one(me, i, status, NULL, NULL);
        break;
    }
    case 2: {
        enum peal_status status =
            peal_request_wait_for(request, below(&me->own, 300), &got, &sender);
        if (status != PEAL_PENDING)
            end_one(me, i, status, &got, &sender);
        break;
    }
    default:
        if (below(&me->own, 2)) {
            enum peal_status status = peal_request_wait_recv(request, &got, &sender);
            end_one(me, i, status, &got, &sender);
        } else
            end_one(me, i, peal_request_wait(request), NULL, NULL);
    }
}

/* A random request of a group (GROUPS: of any); *alone: all of these are of one group. False: there
 * is none. */
static bool pick(struct rank *me, uint32_t group, uint32_t *out, bool *alone)
{
    uint32_t n = 0, seen = GROUPS;
    *alone = true;
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        const struct flight *f = me->flights[i];
        if (!f || (group != GROUPS && f->group != group))
            continue;
        *alone &= seen == GROUPS || seen == f->group;
        seen = f->group;
        if (below(&me->own, ++n) == 0)
            *out = i;
    }
    return n > 0;
}

void flights_end_group(struct rank *me, uint32_t group)
{
    uint32_t i;
    bool alone;
    while (!me->failed && !me->wrong && pick(me, group, &i, &alone))
        try_one(me, i, alone);
}

void flights_add(struct rank *me, struct flight *flight)
{
    uint32_t i = 0;
    while (me->flights[i])
        i++;
    me->flights[i] = flight;
}

void flights_end(struct rank *me)
{
    flights_end_group(me, GROUPS);
    for (uint32_t g = 0; g < GROUPS; g++)
        me->groups[g].flights = me->groups[g].waiting = me->groups[g].used = 0;
}

void flights_try(struct rank *me)
{
    uint32_t i;
    bool alone;
    if (pick(me, GROUPS, &i, &alone))
        try_one(me, i, false);
}

static bool is_pending(struct rank *me, struct flight *f)
{
    if (!f || !f->request)
        return false;
    enum peal_status status = peal_request_test(f->request);
    if (status == PEAL_PENDING)
        return true;
    f->request = NULL; /* its memory stays until all ranks have left */
    if (status == PEAL_OK && !f->too_long && me->groups[f->group].open)
        flight_check(me, f, NULL, NULL);
    return false;
}

void flights_drop(struct rank *me)
{
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        if (is_pending(me, me->flights[i]))
            rank_complain(me, "a request is under way on a communicator that was closed");
    }
}

void flights_free(struct rank *me)
{
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        if (me->flights[i])
            flight_free(me->flights[i]);
        me->flights[i] = NULL;
    }
}
