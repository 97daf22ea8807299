/* SPDX-License-Identifier: Apache-2.0 */
/* A rank leaves, stalls or makes a wrong call; those who are left give up what they have, meet
 * again and go on. */
#include "chaos.h"

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

bool fault_commit(struct rank *me)
{
    bool victim = me->rank == me->victim;
    uint64_t state = mix(me->seed, 4242);
    if (me->trace && victim)
        fprintf(stderr, "[%u] step %u: fault %d\n", me->rank, me->step, (int)me->fault);
    switch (me->fault) {
    case KILLED:
        if (victim)
            raise(SIGKILL);
        return true;
    case KILLED_LATER:
        if (victim) {
            struct itimerval soon = {.it_value.tv_usec = 1 + (long)below(&state, 6000)};
            setitimer(ITIMER_REAL, &soon, NULL);
        }
        return true;
    case EXITS:
        if (victim)
            _exit(0);
        return true;
    case LEAVES:
        if (!victim)
            return true;
        fault_give_up(me);
        rank_close(me, 0);
        flights_drop(me);
        me->gone = true;
        return false;
    case STALLS:
        for (uint32_t g = 0; g < GROUPS; g++) {
            if (me->groups[g].open && rank_in(me, g) < me->groups[g].size)
                peal_comm_set_timeout(me->comms[g], 60);
        }
        if (victim)
            nanosleep(&(struct timespec){0, 20000000 + (long)below(&state, 200000000)}, NULL);
        return true;
    default:
        return true;
    }
}

/* Closes everything but the world. What is under way there is lost; its private buffers stay until
 * nobody can be reading them any more, see flights_free. */
void fault_give_up(struct rank *me)
{
    uint32_t first = below(&me->own, GROUPS - 1);
    for (uint32_t i = 0; i + 1 < GROUPS; i++)
        rank_close(me, 1 + (i + first) % (GROUPS - 1));
    snprintf(me->doing, sizeof me->doing, "the end of what was under way");
}

/* A call that matches nobody's. */
static void call_alone(struct rank *me)
{
    static _Thread_local char x[MOST + 80], y[MOST + 80], z[MOST + 80];
    struct peal_request *request = NULL;
    uint64_t count = 64 + me->rank;
    snprintf(me->doing, sizeof me->doing, "a call that nobody else makes");
    /* Of both kinds: a blocking call is compared with blocking ones only. */
    enum peal_status status =
        peal_iallreduce(me->comms[0], x, z, count, PEAL_U8, PEAL_XOR, &request);
    if (status == PEAL_OK)
        status = peal_allreduce(me->comms[0], x, y, count, PEAL_U8, PEAL_XOR);
    if (request && status != PEAL_OK && peal_request_wait(request) == PEAL_OK && me->size > 1)
        rank_complain(me, "it went well");
    else if (request && status == PEAL_OK)
        (void)peal_request_wait(request);
    if (status == PEAL_OK && me->size > 1)
        rank_complain(me, "it went well");
    else if (status != PEAL_OK)
        (void)rank_goes_on(me, status, me->comms[0]);
}

struct peal_comm *fault_recover(struct rank *me)
{
    struct peal_comm *smaller = NULL, *old = me->comms[0];
    uint32_t size = me->size;
    fault_give_up(me);
    if (me->fault == STALLS || me->may_stall)
        peal_comm_set_timeout(old, 30000);
    call_alone(me);
    if (peal_barrier(old) != PEAL_CLOSED)
        rank_complain(me, "a failed communicator is not closed");
    flights_drop(me);
    snprintf(me->doing, sizeof me->doing, "shrink");
    if (me->trace)
        fprintf(stderr, "[%u] shrink\n", me->rank);
    enum peal_status status = peal_comm_shrink(old, &smaller);
    if (status != PEAL_OK)
        rank_complain(me, "%s: %s", peal_status_text(status), peal_comm_error(old));
    peal_comm_close(old);
    if (me->wrong)
        return NULL;
    /* Whoever may yet die may do so at any time from now on. */
    bool lost = me->fault == KILLED || me->fault == EXITS || me->fault == LEAVES;
    bool known = (lost || me->fault == MISTAKES) && !me->may_fail;
    me->may_fail |= me->fault == KILLED_LATER || me->fault == STALLS;
    me->may_stall |= me->fault == STALLS;
    me->size = peal_comm_size(smaller);
    me->rank = peal_comm_rank(smaller);
    if (known && me->size != size - lost)
        rank_complain(me, "%u of %u ranks are left", me->size, size);
    me->seed = mix(me->seed, 99);
    me->fault = NO_FAULT;
    me->was_mistaken = me->mistaken = false;
    me->steps = 8;
    if (++me->recoveries > 20) {
        rank_complain(me, "it does not end");
        return NULL;
    }
    uint64_t state = mix(me->seed, 5);
    if (known && me->size > 2 && below(&state, 2)) { /* once more */
        me->fault = me->threads ? LEAVES + below(&state, FAULTS - LEAVES)
                                : KILLED + below(&state, FAULTS - KILLED);
        me->victim = below(&state, me->size);
        me->fault_step = below(&state, me->steps);
    }
    /* Nobody reads anything of the old communicators any more: all have left them. */
    flights_free(me);
    return smaller;
}
