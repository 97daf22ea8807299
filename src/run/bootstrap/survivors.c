/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks agree by polling each other's words; no rank waits for a message. See survivors.h. What a
 * rank wrote before it died still holds: so each loop reads a word again after it has seen that its
 * writer is gone. */
#include "run/bootstrap/survivors.h"

#include "base/base.h"

#include <assert.h>
#include <sched.h>
#include <time.h>

static_assert(PEAL_MOST_RANKS <= 64 * PEAL_MEMBER_WORDS, "a bit for each rank");
enum { TURN_SHIFT = 32, CULPRIT_SHIFT = 8 };

/* Repeated polls at growing intervals. */
struct patience {
    uint64_t deadline;
    uint32_t polls;
};

/* Waits before the next poll. False: the deadline has passed. */
static bool wait_to_poll(struct patience *patience)
{
    enum { YIELDS = 200, SHORT_WAITS = 1000, SHORT_NS = 50000, LONG_NS = 1000000 };
    if (peal_now_ms() >= patience->deadline)
        return false;
    patience->polls++;
    if (patience->polls < YIELDS)
        sched_yield();
    else
        nanosleep(&(struct timespec){0, patience->polls < SHORT_WAITS ? SHORT_NS : LONG_NS}, NULL);
    return true;
}

/* True if that rank has died or has closed its communicator. */
static bool is_gone(const struct peal_team *team, uint32_t rank)
{
    /* Acquire; partner: peal_team_close. */
    return peal_team_is_dead(team, rank) ||
           atomic_load_explicit(&team->controls[rank]->life, memory_order_acquire) ==
               PEAL_LIFE_LEFT;
}

/* Was the word written in this meeting? *low gets its lower half. Acquire; partner: write_word. */
static bool read_word(const _Atomic uint64_t *word, uint32_t turn, uint32_t *low)
{
    uint64_t value = atomic_load_explicit(word, memory_order_acquire);
    *low = (uint32_t)value;
    return value >> TURN_SHIFT == turn;
}

static void write_word(_Atomic uint64_t *word, uint32_t turn, uint32_t low)
{
    /* Partner: read_word on the peers. */
    atomic_store_explicit(word, (uint64_t)turn << TURN_SHIFT | low, memory_order_release);
}

/* What the leader decides. */
struct decision {
    enum peal_status status;
    uint32_t culprit;
    uint64_t members[PEAL_MEMBER_WORDS];
};

/* Which ranks have come. PEAL_PENDING: `culprit` has not. */
static void count_members(const struct peal_team *team, uint32_t turn, struct decision *out)
{
    *out = (struct decision){.status = PEAL_OK};
    for (uint32_t r = 0; r < team->size; r++) {
        uint32_t place;
        bool came = read_word(&team->controls[r]->came, turn, &place);
        if (r != team->rank && is_gone(team, r))
            continue;
        if (!came || place == 0) {
            out->status = came ? PEAL_NO_MEMORY : PEAL_PENDING;
            out->culprit = r;
            return;
        }
        out->members[r / 64] |= UINT64_C(1) << r % 64;
    }
}

static void decide(struct peal_team *team, uint32_t turn, struct patience *patience)
{
    struct peal_control *own = peal_team_own(team);
    struct decision decision;
    do {
        count_members(team, turn, &decision);
    } while (decision.status == PEAL_PENDING && wait_to_poll(patience));
    if (decision.status == PEAL_PENDING)
        decision.status = PEAL_TIMEOUT;
    for (uint32_t w = 0; w < PEAL_MEMBER_WORDS; w++) /* relaxed: `decided` releases them */
        atomic_store_explicit(&own->members[w], decision.members[w], memory_order_relaxed);
    write_word(&own->decided, turn, (uint32_t)decision.status | decision.culprit << CULPRIT_SHIFT);
}

/* The rank that has made the decision, or has to make it. A rank's decision is read after checking
 * whether it is gone, since it may have decided just before. */
static uint32_t find_leader(const struct peal_team *team, uint32_t turn, bool *decided)
{
    uint32_t low;
    for (uint32_t r = 0; r < team->size; r++) {
        bool gone = r != team->rank && is_gone(team, r);
        *decided = read_word(&team->controls[r]->decided, turn, &low);
        if (*decided || !gone)
            return r;
    }
    return team->rank; /* not reached: this rank is there */
}

static void say_why(const struct peal_team *team, const struct decision *decision,
                    struct peal_text *why)
{
    if (decision->status == PEAL_TIMEOUT)
        peal_text_printf(why, "rank %u of %u did not come in time", decision->culprit, team->size);
    else
        peal_text_printf(why, "rank %u: no room for a window", decision->culprit);
}

static void read_decision(const struct peal_control *leader, struct decision *out)
{
    uint32_t low = (uint32_t)atomic_load_explicit(&leader->decided, memory_order_acquire);
    out->status = (enum peal_status)(low & 0xff);
    out->culprit = low >> CULPRIT_SHIFT;
    for (uint32_t w = 0; w < PEAL_MEMBER_WORDS; w++) /* relaxed: acquired with `decided` */
        out->members[w] = atomic_load_explicit(&leader->members[w], memory_order_relaxed);
}

static void list_members(const struct peal_team *team, uint32_t turn,
                         const struct decision *decision, struct peal_survivors *out)
{
    out->size = out->rank = 0;
    for (uint32_t r = 0; r < team->size; r++) {
        if (!(decision->members[r / 64] >> r % 64 & 1))
            continue;
        if (r == team->rank)
            out->rank = out->size;
        (void)read_word(&team->controls[r]->came, turn, &out->places[out->size]);
        out->ranks[out->size++] = r;
    }
}

enum peal_status peal_survivors_meet(struct peal_team *team, uint32_t turn, uint32_t place,
                                     enum peal_status status, struct peal_text *why,
                                     struct peal_survivors *out)
{
    struct patience patience = {.deadline = peal_now_ms() + team->meet_ms};
    bool decided = false;
    write_word(&peal_team_own(team)->came, turn, place);
    uint32_t leader = find_leader(team, turn, &decided);
    while (!decided) {
        if (leader == team->rank)
            decide(team, turn, &patience);
        else if (!wait_to_poll(&patience))
            break;
        leader = find_leader(team, turn, &decided);
    }
    struct decision decision = {.status = PEAL_TIMEOUT, .culprit = leader};
    if (decided)
        read_decision(team->controls[leader], &decision);
    if (decision.status != PEAL_OK) {
        bool own = decision.culprit == team->rank && status != PEAL_OK;
        if (own) /* the caller knows the reason */
            return status;
        say_why(team, &decision, why);
        return decision.status;
    }
    list_members(team, turn, &decision, out);
    return PEAL_OK;
}

/* Waits for the `ended` word of a rank. False: the rank is gone, or the deadline has passed. */
static bool wait_for_end(const struct peal_team *team, uint32_t rank, uint32_t turn,
                         struct patience *patience, uint32_t *low, bool *gone)
{
    for (;;) {
        *gone = is_gone(team, rank);
        if (read_word(&team->controls[rank]->ended, turn, low))
            return true;
        if (*gone || !wait_to_poll(patience))
            return false;
    }
}

enum peal_status peal_survivors_agree(struct peal_team *team, uint32_t turn,
                                      const struct peal_survivors *survivors,
                                      enum peal_status status, struct peal_text *why)
{
    struct patience patience = {.deadline = peal_now_ms() + team->meet_ms};
    enum peal_status lost = PEAL_OK;
    write_word(&peal_team_own(team)->ended, turn, (uint32_t)status + 1);
    for (uint32_t i = 0; i < survivors->size; i++) {
        uint32_t r = survivors->ranks[i], low = 0;
        bool gone = false, ended = wait_for_end(team, r, turn, &patience, &low, &gone);
        if (!ended && lost == PEAL_OK) {
            lost = gone ? PEAL_PEER_DEAD : PEAL_TIMEOUT;
            peal_text_printf(why, "rank %u %s", r, gone ? "has died or left" : "did not come on");
        }
        if (ended && low != (uint32_t)PEAL_OK + 1 && status == PEAL_OK) {
            status = (enum peal_status)(low - 1);
            peal_text_printf(why, "rank %u: %s", r, peal_status_text(status));
        }
    }
    if (status != PEAL_OK)
        return status;
    return lost;
}
