/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of one rank, the victim. If it ends, leaves, stalls or makes a wrong call, calls fail on all
 * ranks; the survivors close everything, shrink the world and go on. If it has no descriptors or no
 * memory left, one call fails and the communicator stays in use. */
#include "chaos.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

void fault_plan(struct rank *me, uint32_t first, uint64_t *state)
{
    enum fault lowest = me->threads ? LEAVES : KILLED;
    me->fault = lowest + below(state, FAULTS - lowest);
    bool starves = me->fault == NO_FILES || me->fault == NO_ADDRESSES;
    if (starves && me->may_fail) /* starve() expects that only its own call fails */
        me->fault = OTHER_ALGO;
    me->victim = below(state, me->size);
    me->fault_step = first + below(state, me->steps - first);
    me->planned++;
}

/* ---- limits of the system ---- */

/* The amount in use: with this limit, the next allocation fails. */
static rlim_t used_now(int resource)
{
    rlim_t used = 0;
    if (resource == RLIMIT_AS) {
        unsigned long pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");
        if (file && fscanf(file, "%lu", &pages) == 1)
            used = pages * (rlim_t)sysconf(_SC_PAGESIZE) + 65536;
        if (file)
            fclose(file);
        return used;
    }
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        rlim_t number = (rlim_t)strtoull(entry->d_name, NULL, 10);
        used = number + 1 > used ? number + 1 : used;
    }
    closedir(folder);
    return used - 1; /* without the folder itself, usually the highest descriptor */
}

static enum peal_status use_world(struct peal_comm *world)
{
    uint8_t one = 1, any = 0;
    void *memory = NULL;
    enum peal_status status = peal_symmetric_alloc(world, 4096, &memory);
    if (status == PEAL_OK)
        status = peal_symmetric_free(world, memory);
    if (status == PEAL_OK)
        status = peal_allreduce(world, &one, &any, 1, PEAL_U8, PEAL_MAX);
    return status;
}

/* Makes the calls of starve() while resources are plenty, so that windows have the size that these
 * calls need: a call for which a window cannot grow ends the communicator. Twice, because the first
 * of them may begin a full window anew, without what earlier calls had placed there. */
static bool warm_up(struct rank *me)
{
    struct peal_comm *world = me->comms[0];
    enum peal_status status = use_world(world);
    if (status == PEAL_OK)
        status = use_world(world);
    if (status != PEAL_OK)
        rank_complain(me, "before that: %s: %s", peal_status_text(status), peal_comm_error(world));
    return status == PEAL_OK;
}

/* All ranks make a call on the world for which the victim has no resources. It must fail on all of
 * them or on none, and later calls succeed. */
static void starve(struct rank *me, bool files)
{
    int resource = files ? RLIMIT_NOFILE : RLIMIT_AS;
    bool victim = me->rank == me->victim;
    struct peal_comm *world = me->comms[0], *made = NULL;
    void *memory = NULL;
    struct rlimit before;
    rank_begins(me, "%s with nothing left on rank %u", files ? "dup" : "symmetric memory",
                me->victim);
    if (!warm_up(me))
        return;
    getrlimit(resource, &before);
    if (victim)
        setrlimit(resource, &(struct rlimit){used_now(resource), before.rlim_max});
    enum peal_status status =
        files ? peal_comm_dup(world, &made) : peal_symmetric_alloc(world, 8 << 20, &memory);
    if (victim)
        setrlimit(resource, &before);
    bool expected = status == PEAL_OK || status == PEAL_NO_MEMORY || status == PEAL_SYSTEM;
    if (!expected || (status != PEAL_OK && peal_comm_error(world)[0] == '\0'))
        rank_complain(me, "%s: %s", peal_status_text(status), peal_comm_error(world));
    uint8_t failed = status != PEAL_OK, any = 0;
    /* The next fault is planned first: faster ranks may commit it during the calls below. */
    me->fault = NO_FAULT;
    uint64_t state = mix(me->seed, 6 + me->step);
    if (me->lasts && me->step + 1 < me->steps)
        fault_plan(me, me->step + 1, &state);
    bool goes_on =
        rank_goes_on(me, peal_allreduce(world, &failed, &any, 1, PEAL_U8, PEAL_MAX), world);
    if (goes_on && any != failed)
        rank_complain(me, "it failed on another rank only");
    if (memory && goes_on)
        rank_goes_on(me, peal_symmetric_free(world, memory), world);
    peal_comm_close(made);
}

/* A barrier by two algorithms fails on all ranks. */
static void mix_algorithms(struct rank *me)
{
    struct peal_comm *world = me->comms[0];
    rank_begins(me, "a barrier by another algorithm on rank %u", me->victim);
    enum peal_status status =
        peal_comm_set_algo(world, "barrier", me->rank == me->victim ? "central" : "mesh");
    if (status == PEAL_OK)
        status = peal_barrier(world);
    if (status == PEAL_OK && me->size > 1)
        rank_complain(me, "it went well");
    else
        rank_goes_on(me, status, world);
}

bool fault_commit(struct rank *me)
{
    bool victim = me->rank == me->victim;
    uint64_t state = mix(me->seed, 4242);
    uint64_t delay_us = 1 + below(&state, 6000);
    if (victim)
        tally_fault(me->fault, me->fault == KILLED_LATER ? delay_us * 1000 : 0);
    if (me->trace && victim)
        fprintf(stderr, "[%u] step %u: fault %d\n", me->rank, me->step, (int)me->fault);
    switch (me->fault) {
    case KILLED:
        if (victim && me->apart) /* the first process of a namespace cannot kill itself */
            _exit(0);
        if (victim)
            raise(SIGKILL);
        return true;
    case KILLED_LATER:
        if (victim) {
            struct itimerval soon = {.it_value.tv_usec = (long)delay_us};
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
    case NO_FILES:
    case NO_ADDRESSES:
        starve(me, me->fault == NO_FILES);
        return true;
    case OTHER_ALGO:
        mix_algorithms(me);
        return true;
    default:
        return true;
    }
}

/* Closes everything but the world. Calls under way are lost; their buffers stay until no rank can
 * read them any more, see flights_free. */
void fault_give_up(struct rank *me)
{
    uint32_t first = below(&me->own, GROUPS - 1);
    for (uint32_t i = 0; i + 1 < GROUPS; i++)
        rank_close(me, 1 + (i + first) % (GROUPS - 1));
    rank_begins(me, "the end of what was under way");
}

/* A call that matches no other rank's. */
static void call_alone(struct rank *me)
{
    static _Thread_local char x[MAX_RANKS + 80], y[MAX_RANKS + 80], z[MAX_RANKS + 80];
    struct peal_request *request = NULL;
    uint64_t count = 64 + me->rank;
    rank_begins(me, "a call that no other rank makes");
    /* One of each kind: a blocking call is compared with other ranks' blocking calls only. */
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
    char reason[320];
    snprintf(reason, sizeof reason, "%s", peal_comm_error(old));
    fault_give_up(me);
    if (me->fault == STALLS || me->may_stall)
        peal_comm_set_timeout(old, 300000);
    call_alone(me);
    if (peal_barrier(old) != PEAL_CLOSED)
        rank_complain(me, "a failed communicator is not closed");
    flights_drop(me);
    rank_begins(me, "shrink");
    enum peal_status status = peal_comm_shrink(old, &smaller);
    if (status != PEAL_OK)
        rank_complain(me, "%s: %s", peal_status_text(status), peal_comm_error(old));
    peal_comm_close(old);
    if (me->wrong)
        return NULL;
    /* A delayed end or a stall may still come, at any time from now on. */
    bool lost = me->fault == KILLED || me->fault == EXITS || me->fault == LEAVES;
    bool known = (lost || me->fault == MISTAKES || me->fault == OTHER_ALGO) && !me->may_fail;
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
    /* Whatever the speed: something fails only if a fault was planned. */
    if (++me->recoveries > me->planned) {
        rank_complain(me, "%u recoveries from %u faults, the last one from %s: %s", me->recoveries,
                      me->planned, peal_status_text(me->failed), reason);
        return NULL;
    }
    uint64_t state = mix(me->seed, 5);
    bool again = known && below(&state, 2);
    if (me->lasts)
        again = me->recoveries < 12;
    if (me->size > 2 && again)
        fault_plan(me, 0, &state);
    /* All ranks have left the old communicators: none reads buffers of calls on them. */
    flights_free(me);
    return smaller;
}
