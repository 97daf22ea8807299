/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a program. All ranks go through all steps. A step follows from the seed and its
 * number, so that ranks that take no part in it know how it changes the groups. */
#include "chaos.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- a rank ---- */

void rank_begins(struct rank *me, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(me->doing, sizeof me->doing, format, args);
    va_end(args);
    if (me->trace)
        fprintf(stderr, "[%u] step %u: %s\n", me->rank, me->step, me->doing);
}

void rank_complain(struct rank *me, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stdout, "seed %llu: rank %u of %u, step %u, fault %d: %s: %s\n",
            (unsigned long long)me->seed, me->rank, me->size, me->step, (int)me->fault, me->doing,
            text);
    fflush(stdout);
    atomic_fetch_add(&tally->wrong, 1);
    me->wrong = true;
}

bool rank_goes_on(struct rank *me, enum peal_status status, const struct peal_comm *comm)
{
    bool known = status == PEAL_PEER_DEAD || status == PEAL_MISMATCH || status == PEAL_CLOSED ||
                 (status == PEAL_TIMEOUT && (me->fault == STALLS || me->may_stall));
    if (status == PEAL_OK)
        return !me->wrong;
    if (status == PEAL_PEER_DEAD)
        tally_report();
    if ((me->fault == NO_FAULT && !me->may_fail) || !known)
        rank_complain(me, "%s: %s", peal_status_text(status), peal_comm_error(comm));
    else if (peal_comm_error(comm)[0] == '\0')
        rank_complain(me, "%s, and no reason is given", peal_status_text(status));
    if (me->trace)
        fprintf(stderr, "[%u] step %u: %s: %s\n", me->rank, me->step, peal_status_text(status),
                peal_comm_error(comm));
    me->failed = status;
    return false;
}

uint32_t rank_in(const struct rank *me, uint32_t group)
{
    const struct group *g = &me->groups[group];
    uint32_t i = 0;
    while (i < g->size && g->members[i] != me->rank)
        i++;
    return i;
}

void rank_pause(struct rank *me)
{
    bool may_stop = !me->threads && !me->nested && !me->apart;
    switch (below(&me->own, may_stop ? 16 : 12)) {
    case 0:
        atomic_fetch_add(&tally->slow, 1);
        nanosleep(&(struct timespec){0, (long)below(&me->own, 3000000)}, NULL);
        break;
    case 1:
    case 2:
        nanosleep(&(struct timespec){0, (long)below(&me->own, 100000)}, NULL);
        break;
    case 12:
        if (below(&me->own, 8) == 0) {
            atomic_fetch_add(&tally->stopped, 1);
            raise(SIGSTOP); /* the process that started this rank continues it */
        }
        break;
    default:
        sched_yield();
    }
}

/* ---- groups ---- */

static uint32_t count_open(const struct rank *me)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < GROUPS; g++)
        n += me->groups[g].open;
    return n;
}

static uint32_t any_group(const struct rank *me, uint64_t *state)
{
    uint32_t g;
    do
        g = below(state, GROUPS);
    while (!me->groups[g].open);
    return g;
}

static uint32_t free_group(const struct rank *me)
{
    uint32_t g = 0;
    while (me->groups[g].open)
        g++;
    return g;
}

static void add_group(struct rank *me, uint32_t at, const uint32_t *members, uint32_t size)
{
    me->groups[at] = (struct group){.open = true, .size = size, .number = me->opened++};
    memcpy(me->groups[at].members, members, size * sizeof *members);
}

/* What the members of a group pass to split; a dup is a split with one color and one key. */
struct split {
    bool dup;
    uint32_t size;
    int colors[MAX_RANKS], keys[MAX_RANKS];
};

static void draw_split(struct split *s, uint32_t size, uint64_t *state)
{
    uint32_t kinds = 1 + below(state, 3);
    *s = (struct split){.dup = below(state, 4) == 0, .size = size};
    for (uint32_t r = 0; r < size; r++) {
        if (s->dup)
            break;
        s->colors[r] = (int)below(state, kinds + 1);
        s->colors[r] -= below(state, 3) == 0;
        s->keys[r] = (int)below(state, 5) - 2;
    }
}

/* The ranks of a color in the order of the new group: by key, then by rank. Returns how many. */
static uint32_t order_ranks(const struct split *s, int color, uint32_t out[static MAX_RANKS])
{
    uint32_t n = 0;
    for (int key = -2; key <= 2; key++) {
        for (uint32_t r = 0; r < s->size; r++) {
            if (s->colors[r] == color && s->keys[r] == key)
                out[n++] = r;
        }
    }
    return n;
}

/* Adds the group of n members, of which this rank is one if it has a communicator for it. A group
 * that is one too many is closed at once. */
static void keep_group(struct rank *me, const uint32_t *members, uint32_t n, struct peal_comm *made)
{
    if (count_open(me) == GROUPS) {
        peal_comm_close(made);
        return;
    }
    uint32_t at = free_group(me);
    add_group(me, at, members, n);
    me->comms[at] = made;
    me->symmetric[at] = NULL;
    if (made && (peal_comm_size(made) != n || peal_comm_rank(made) != rank_in(me, at)))
        rank_complain(me, "rank %u of %u, not %u of %u", peal_comm_rank(made), peal_comm_size(made),
                      rank_in(me, at), n);
}

static void split_group(struct rank *me, uint32_t from, uint64_t *state)
{
    const struct group *g = &me->groups[from];
    uint32_t self = rank_in(me, from);
    struct peal_comm *made = NULL, *comm = me->comms[from];
    struct split s;
    draw_split(&s, g->size, state);
    if (self < g->size) {
        int color = s.colors[self];
        rank_begins(me, "split of group %u, color %d", g->number, color);
        enum peal_status status =
            s.dup ? peal_comm_dup(comm, &made) : peal_comm_split(comm, color, s.keys[self], &made);
        if (!rank_goes_on(me, status, comm))
            return;
        if ((color < 0) != (made == NULL))
            rank_complain(me, "color %d, and %s communicator", color, made ? "a" : "no");
    }
    for (int color = 0; color <= 3; color++) {
        uint32_t members[MAX_RANKS], ranks[MAX_RANKS], n = order_ranks(&s, color, ranks);
        for (uint32_t i = 0; i < n; i++)
            members[i] = g->members[ranks[i]];
        bool is_member = self < s.size && s.colors[self] == color;
        if (n > 0)
            keep_group(me, members, n, is_member ? made : NULL);
    }
}

void rank_close(struct rank *me, uint32_t g)
{
    if (me->groups[g].open && rank_in(me, g) < me->groups[g].size)
        peal_comm_close(me->comms[g]);
    me->groups[g].open = false;
    me->comms[g] = NULL;
    me->symmetric[g] = NULL;
}

static void use_symmetric(struct rank *me, uint32_t group, uint64_t *state)
{
    struct group *g = &me->groups[group];
    uint64_t bytes = 20000 + below(state, 400000);
    bool member = rank_in(me, group) < g->size;
    void *memory = NULL;
    if (member)
        rank_begins(me, "symmetric memory of group %u", g->number);
    if (g->symmetric) {
        /* Only this group's calls end first: the memory of other groups stays in use, as on ranks
         * outside this group. */
        if (g->used)
            flights_end_group(me, group);
        g->symmetric = 0;
        if (member && !me->failed)
            rank_goes_on(me, peal_symmetric_free(me->comms[group], me->symmetric[group]),
                         me->comms[group]);
        me->symmetric[group] = NULL;
        return;
    }
    if (member &&
        !rank_goes_on(me, peal_symmetric_alloc(me->comms[group], bytes, &memory), me->comms[group]))
        return;
    g->symmetric = bytes;
    g->used = 0;
    me->symmetric[group] = memory;
    if (member && peal_symmetric_at(me->comms[group], memory, rank_in(me, group)) != memory)
        rank_complain(me, "symmetric memory is elsewhere");
}

static void force_algo(struct rank *me, uint32_t group, uint64_t *state)
{
    static const struct {
        const char *collective, *algos[16];
    } all[] = {
        {"barrier", {"mesh", "central", "dissemination", "direct", ""}},
        {"allreduce",
         {"rows", "small", "direct", "central", "grouped", "relay", "mesh", "mesh2", "ring",
          "ring_slot", "biring", "doubling", "halving", "push", "read", ""}},
        {"reduce", {"rows", "mesh", "binomial", "direct", ""}},
        {"broadcast", {"pipe", "flat", "binomial", "chain", "direct", "read", "share", ""}},
        {"allgather", {"rows", "send", "central", "ring", "read", ""}},
        {"reduce_scatter", {"rows", "send", "central", "relay", "read", ""}},
        {"all_to_all", {"rows", "send", "central", "read", ""}},
    };
    uint32_t which = below(state, sizeof all / sizeof *all), n = 0;
    while (n < 16 && all[which].algos[n] && all[which].algos[n][0])
        n++;
    const char *algo = all[which].algos[below(state, n + 1)];
    if (rank_in(me, group) == me->groups[group].size)
        return;
    rank_begins(me, "%s=%s on group %u", all[which].collective, algo, me->groups[group].number);
    rank_goes_on(me, peal_comm_set_algo(me->comms[group], all[which].collective, algo),
                 me->comms[group]);
}

/* ---- threads beside each other, each with a communicator of its own ---- */

struct side {
    struct rank rank;
    struct peal_comm *comm;
    pthread_t thread;
};

static void *run_side(void *context)
{
    struct side *side = context;
    program_run(&side->rank, side->comm);
    return NULL;
}

static void run_beside(struct rank *me, uint32_t group, uint64_t seed)
{
    enum { SIDES = 2 };
    struct group *g = &me->groups[group];
    uint32_t self = rank_in(me, group);
    if (self == g->size)
        return;
    struct side *sides = calloc(SIDES, sizeof *sides);
    uint32_t n = 0;
    rank_begins(me, "threads beside each other on group %u", g->number);
    for (; n < SIDES; n++) {
        if (!rank_goes_on(me, peal_comm_dup(me->comms[group], &sides[n].comm), me->comms[group]))
            break;
        sides[n].rank = (struct rank){.seed = mix(seed, n),
                                      .own = mix(me->own, n),
                                      .rank = self,
                                      .size = g->size,
                                      .steps = 6,
                                      .threads = me->threads,
                                      .nested = true,
                                      .trace = me->trace,
                                      .board = me->board};
    }
    for (uint32_t i = 0; i < n; i++)
        pthread_create(&sides[i].thread, NULL, run_side, &sides[i]);
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(sides[i].thread, NULL);
        me->wrong |= sides[i].rank.wrong;
    }
    free(sides);
}

/* ---- steps ---- */

static uint32_t count_flights(const struct rank *me)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < GROUPS; i++)
        n += me->groups[i].flights + me->groups[i].waiting;
    return n;
}

static void make_call(struct rank *me, uint32_t group, uint64_t *state)
{
    struct group *g = &me->groups[group];
    struct spec spec;
    spec_make(&spec, g->size, true, g->symmetric > 0, draw(state));
    /* A rank that leaves early unmaps symmetric memory that another thread may still be reading. */
    if (spec.nonblocking && me->threads && (me->fault != NO_FAULT || me->may_fail))
        spec.send = spec.recv = PRIVATE;
    /* Most of the time of a call goes into making its plan: a long program makes it more often. */
    if (me->lasts && !spec.nonblocking && spec.count < 3000)
        spec.repeats = below(state, me->fault == NO_FAULT && !me->may_fail ? 120 : 12);
    if (spec.nonblocking) {
        if (g->flights >= 4 || count_flights(me) > 10)
            flights_end(me);
        g->flights++;
    }
    if (me->fault == MISTAKES && me->step >= me->fault_step && me->rank == me->victim &&
        !me->was_mistaken && rank_in(me, group) < g->size)
        me->mistaken = me->was_mistaken = true;
    if (rank_in(me, group) < g->size && !me->failed)
        call_make(me, group, &spec);
}

static void make_messages(struct rank *me, uint32_t group, uint64_t *state)
{
    if (count_flights(me) > 4)
        flights_end(me);
    /* A receiver learns that a message will not come only when the sender closes the communicator;
     * ranks close the world no earlier than they shrink it. */
    if (group == 0 && (me->fault != NO_FAULT || me->may_fail))
        return;
    me->groups[group].waiting += 12;
    if (!me->failed)
        messages_make(me, group, draw(state));
}

static void make_step(struct rank *me)
{
    uint64_t state = mix(me->seed, 1000 + me->step);
    uint32_t group = any_group(me, &state), kind = below(&state, 100);
    bool member = rank_in(me, group) < me->groups[group].size;
    if (kind < 56)
        make_call(me, group, &state);
    else if (kind < 66)
        make_messages(me, group, &state);
    else if (kind < 72)
        flights_end(me);
    else if (kind < 80)
        split_group(me, group, &state);
    else if (kind < 85) {
        if (group != 0 && me->groups[group].flights + me->groups[group].waiting > 0)
            flights_end(me);
        if (group != 0 && !me->failed)
            rank_close(me, group);
    } else if (kind < 90)
        use_symmetric(me, group, &state);
    else if (kind < 95)
        force_algo(me, group, &state);
    else if (kind < 97) {
        uint32_t timeout = below(&state, 4) ? 300000 + below(&state, 300000) : 0;
        if (member && me->fault != STALLS)
            peal_comm_set_timeout(me->comms[group], timeout);
    } else if (kind < 98 && !me->nested && me->fault == NO_FAULT && !me->may_fail)
        run_beside(me, group, draw(&state));
    else if (member)
        call_refused(me, group);
}

static void begin(struct rank *me, struct peal_comm *world)
{
    uint32_t members[MAX_RANKS];
    for (uint32_t r = 0; r < me->size; r++)
        members[r] = r;
    memset(me->groups, 0, sizeof me->groups);
    me->opened = 0;
    add_group(me, 0, members, me->size);
    me->comms[0] = world;
    me->symmetric[0] = NULL;
    me->step = 0;
    me->failed = PEAL_OK;
    if (peal_comm_size(world) != me->size || peal_comm_rank(world) != me->rank)
        rank_complain(me, "rank %u of %u", peal_comm_rank(world), peal_comm_size(world));
}

/* All steps and a last barrier, or until something fails. */
static void run_steps(struct rank *me)
{
    for (; me->step < me->steps; me->step++) {
        if (me->failed || me->wrong)
            return;
        if (me->fault != NO_FAULT && me->step == me->fault_step && !fault_commit(me))
            return;
        if (below(&me->own, 6) == 0)
            rank_pause(me);
        if (below(&me->own, 4) == 0)
            flights_try(me);
        if (!me->failed && !me->wrong)
            make_step(me);
    }
    flights_end(me);
    if (me->failed || me->wrong)
        return;
    rank_begins(me, "the last barrier");
    rank_goes_on(me, peal_barrier(me->comms[0]), me->comms[0]);
}

void program_run(struct rank *me, struct peal_comm *world)
{
    while (world && !me->wrong) {
        begin(me, world);
        run_steps(me);
        if (me->gone)
            return;
        if (me->wrong)
            return; /* the run is over, and what is open stays open */
        bool must = me->fault == KILLED || me->fault == EXITS || me->fault == LEAVES;
        if (!me->failed && must && me->fault_step < me->steps)
            rank_complain(me, "rank %u is gone, and all went well", me->victim);
        if (!me->failed) {
            for (uint32_t g = GROUPS; g-- > 0;)
                rank_close(me, g);
            return;
        }
        world = fault_recover(me);
    }
}
