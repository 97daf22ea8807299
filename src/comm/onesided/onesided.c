/* SPDX-License-Identifier: Apache-2.0 */
/* peal/onesided.h. Between ranks that share memory: loads, stores and atomic operations on the
 * mapped copies of symmetric memory. To other hosts: far.h.
 *
 * Order. A put is a copy with ordinary stores, and a signal an atomic addition that releases them:
 * the partner is the acquiring load in wait_until, or the program's own. Nothing here streams past
 * the caches, so a release orders every put. peal_quiet needs no more than a full fence, as stores
 * to shared memory have arrived once they are visible. */
#include "comm/onesided/far.h"

#include <peal/onesided.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* First in every call: it may be made at all, and reports know of it. */
static enum peal_status begin(struct peal_comm *comm, enum peal_onesided_kind kind)
{
    enum peal_status status = peal_comm_check(comm);
    if (status == PEAL_OK)
        peal_team_count_onesided(peal_team_own(comm->team), kind);
    return status;
}

/* Stores in `out` where `rank`'s copy of [remote, remote + bytes) is mapped; NULL: it is on another
 * host. */
static enum peal_status find_remote(struct peal_comm *comm, const void *remote, uint64_t bytes,
                                    uint32_t rank, char **out)
{
    if (rank >= comm->team->size)
        return peal_comm_fail(comm, PEAL_INVALID, "rank %u of %u", rank, comm->team->size);
    /* Partner: peal_team_close. A thread's memory goes with its communicator. */
    if (atomic_load_explicit(&comm->team->controls[rank]->life, memory_order_acquire) ==
        PEAL_LIFE_LEFT)
        return peal_comm_fail(comm, PEAL_MISMATCH, "rank %u has closed the communicator", rank);
    const struct peal_symmetric *found = peal_symmetric_find(comm, remote, bytes);
    if (!found && bytes > 0 && peal_symmetric_find(comm, remote, 1))
        return peal_comm_fail(comm, PEAL_INVALID,
                              "%" PRIu64 " bytes go past the end of the symmetric memory", bytes);
    if (!found && bytes > 0)
        return peal_comm_fail(comm, PEAL_INVALID, "this is not symmetric memory");
    *out = NULL;
    if (found && found->at[rank])
        *out = found->at[rank] + ((const char *)remote - found->at[comm->team->rank]);
    return PEAL_OK;
}

static enum peal_status find_word(struct peal_comm *comm, const void *remote, uint64_t bytes,
                                  uint32_t rank, char **out)
{
    if ((uintptr_t)remote % bytes != 0)
        return peal_comm_fail(comm, PEAL_INVALID, "a word of %" PRIu64 " bytes is not aligned",
                              bytes);
    return find_remote(comm, remote, bytes, rank, out);
}

static enum peal_status check_local(struct peal_comm *comm, const void *local, uint64_t bytes)
{
    if (bytes == 0 || local)
        return PEAL_OK;
    return peal_comm_fail(comm, PEAL_INVALID, "no buffer");
}

/* ---- data: with a request, or NULL ---- */

static enum peal_status put(struct peal_comm *comm, const struct peal_onesided_access *access,
                            struct peal_request *request)
{
    char *at = NULL, *signal = NULL;
    enum peal_status status = PEAL_OK;
    if (access->signal)
        status = find_word(comm, access->signal, sizeof *access->signal, access->rank, &signal);
    if (status == PEAL_OK)
        status = find_remote(comm, access->remote, access->bytes, access->rank, &at);
    if (status == PEAL_OK)
        status = check_local(comm, access->local, access->bytes);
    if (status != PEAL_OK)
        return status;
    if (peal_team_is_far(comm->team, access->rank))
        return peal_onesided_put(comm, access, request);
    if (access->bytes > 0)
        memmove(at, access->local, access->bytes); /* to this rank, the two may overlap */
    if (signal) {
        /* Release; partner: holds. Whoever waits for the word may be asleep. */
        atomic_fetch_add_explicit((_Atomic uint64_t *)(void *)signal, access->add,
                                  memory_order_release);
        peal_wake_if_sleeping(comm->team, access->rank);
    }
    return PEAL_OK;
}

static enum peal_status get(struct peal_comm *comm, void *local, const void *remote, uint64_t bytes,
                            uint32_t rank, struct peal_request *request)
{
    char *at;
    enum peal_status status = find_remote(comm, remote, bytes, rank, &at);
    if (status == PEAL_OK)
        status = check_local(comm, local, bytes);
    if (status != PEAL_OK)
        return status;
    if (peal_team_is_far(comm->team, rank))
        return peal_onesided_get(comm, local, remote, bytes, rank, request);
    if (bytes > 0)
        memmove(local, at, bytes);
    return PEAL_OK;
}

enum peal_status peal_put(struct peal_comm *comm, void *remote, const void *local, uint64_t bytes,
                          uint32_t rank)
{
    enum peal_status status = begin(comm, PEAL_ONESIDED_PUT);
    if (status != PEAL_OK)
        return status;
    return put(comm, &(struct peal_onesided_access){remote, local, bytes, rank, NULL, 0}, NULL);
}

enum peal_status peal_get(struct peal_comm *comm, void *local, const void *remote, uint64_t bytes,
                          uint32_t rank)
{
    enum peal_status status = begin(comm, PEAL_ONESIDED_GET);
    return status == PEAL_OK ? get(comm, local, remote, bytes, rank, NULL) : status;
}

/* A signal that is NULL is refused like any other address that is not symmetric. */
static enum peal_status check_signal(struct peal_comm *comm, const uint64_t *signal)
{
    return signal ? PEAL_OK : peal_comm_fail(comm, PEAL_INVALID, "this is not symmetric memory");
}

enum peal_status peal_notify(struct peal_comm *comm, uint64_t *signal, uint64_t add, uint32_t rank)
{
    enum peal_status status = begin(comm, PEAL_ONESIDED_NOTIFY);
    if (status == PEAL_OK)
        status = check_signal(comm, signal);
    if (status != PEAL_OK)
        return status;
    return put(comm, &(struct peal_onesided_access){NULL, NULL, 0, rank, signal, add}, NULL);
}

enum peal_status peal_put_notify(struct peal_comm *comm, void *remote, const void *local,
                                 uint64_t bytes, uint64_t *signal, uint64_t add, uint32_t rank)
{
    enum peal_status status = begin(comm, PEAL_ONESIDED_PUT_NOTIFY);
    if (status == PEAL_OK)
        status = check_signal(comm, signal);
    if (status != PEAL_OK)
        return status;
    return put(comm, &(struct peal_onesided_access){remote, local, bytes, rank, signal, add}, NULL);
}

/* ---- requests: to ranks of this host they are done when they are started ---- */

/* Before anything is written: a call that cannot give a request has done nothing. */
static enum peal_status begin_request(struct peal_comm *comm, enum peal_onesided_kind kind,
                                      struct peal_request **out, struct peal_request **request)
{
    enum peal_status status = begin(comm, kind);
    if (status == PEAL_OK)
        *request = peal_request_new(comm, out, 0, &status);
    return status;
}

/* A request that could not be started is freed. */
static enum peal_status end_request(struct peal_request *request, enum peal_status status,
                                    struct peal_request **out)
{
    if (status != PEAL_OK)
        return peal_request_start(request, status, out);
    *out = request;
    return PEAL_OK;
}

enum peal_status peal_iput(struct peal_comm *comm, void *remote, const void *local, uint64_t bytes,
                           uint32_t rank, struct peal_request **out)
{
    const struct peal_onesided_access access = {remote, local, bytes, rank, NULL, 0};
    struct peal_request *request;
    enum peal_status status = begin_request(comm, PEAL_ONESIDED_PUT, out, &request);
    if (status != PEAL_OK)
        return status;
    return end_request(request, put(comm, &access, request), out);
}

enum peal_status peal_iget(struct peal_comm *comm, void *local, const void *remote, uint64_t bytes,
                           uint32_t rank, struct peal_request **out)
{
    struct peal_request *request;
    enum peal_status status = begin_request(comm, PEAL_ONESIDED_GET, out, &request);
    if (status != PEAL_OK)
        return status;
    return end_request(request, get(comm, local, remote, bytes, rank, request), out);
}

enum peal_status peal_iput_notify(struct peal_comm *comm, void *remote, const void *local,
                                  uint64_t bytes, uint64_t *signal, uint64_t add, uint32_t rank,
                                  struct peal_request **out)
{
    const struct peal_onesided_access access = {remote, local, bytes, rank, signal, add};
    struct peal_request *request;
    enum peal_status status = begin_request(comm, PEAL_ONESIDED_PUT_NOTIFY, out, &request);
    if (status != PEAL_OK)
        return status;
    status = check_signal(comm, signal);
    if (status == PEAL_OK)
        status = put(comm, &access, request);
    return end_request(request, status, out);
}

/* ---- atomic operations ---- */

/* On a word of a rank of this host: its previous value. Both orders: a word may be a lock, and a
 * signal. Partners: these, and holds. */
#define NEAR(suffix, type)                                                                         \
    static uint64_t near##suffix(void *at, const struct peal_net_atomic *atomic)                   \
    {                                                                                              \
        type expected = (type)atomic->compare, operand = (type)atomic->operand;                    \
        if (atomic->kind == PEAL_NET_FETCH_ADD)                                                    \
            return atomic_fetch_add_explicit((_Atomic type *)at, operand, memory_order_acq_rel);   \
        atomic_compare_exchange_strong_explicit((_Atomic type *)at, &expected, operand,            \
                                                memory_order_acq_rel, memory_order_acquire);       \
        return expected; /* the previous value */                                                  \
    }
NEAR(64, uint64_t)
NEAR(32, uint32_t)
#undef NEAR

/* On a word of any rank; *atomic->old gets its previous value. */
static enum peal_status run_atomic(struct peal_comm *comm, void *remote, uint32_t rank,
                                   struct peal_net_atomic *atomic)
{
    char *at;
    bool adds = atomic->kind == PEAL_NET_FETCH_ADD;
    enum peal_status status =
        begin(comm, adds ? PEAL_ONESIDED_FETCH_ADD : PEAL_ONESIDED_COMPARE_SWAP);
    if (status == PEAL_OK)
        status = find_word(comm, remote, atomic->width, rank, &at);
    if (status != PEAL_OK)
        return status;
    if (peal_team_is_far(comm->team, rank))
        return peal_onesided_atomic(comm, remote, rank, atomic);
    *atomic->old = atomic->width == sizeof(uint64_t) ? near64(at, atomic) : near32(at, atomic);
    peal_wake_if_sleeping(comm->team, rank);
    return PEAL_OK;
}

#define ATOMICS(suffix, type)                                                                      \
    enum peal_status peal_fetch_add##suffix(struct peal_comm *comm, type *remote, type add,        \
                                            uint32_t rank, type *old)                              \
    {                                                                                              \
        uint64_t word = 0;                                                                         \
        struct peal_net_atomic atomic = {                                                          \
            .kind = PEAL_NET_FETCH_ADD, .width = sizeof *remote, .operand = add, .old = &word};    \
        enum peal_status status = run_atomic(comm, remote, rank, &atomic);                         \
        if (status == PEAL_OK && old)                                                              \
            *old = (type)word;                                                                     \
        return status;                                                                             \
    }                                                                                              \
    enum peal_status peal_compare_swap##suffix(struct peal_comm *comm, type *remote,               \
                                               type expected, type desired, uint32_t rank,         \
                                               type *old)                                          \
    {                                                                                              \
        uint64_t word = 0;                                                                         \
        struct peal_net_atomic atomic = {.kind = PEAL_NET_COMPARE_SWAP,                            \
                                         .width = sizeof *remote,                                  \
                                         .operand = desired,                                       \
                                         .compare = expected,                                      \
                                         .old = &word};                                            \
        enum peal_status status = run_atomic(comm, remote, rank, &atomic);                         \
        if (status == PEAL_OK && old)                                                              \
            *old = (type)word;                                                                     \
        return status;                                                                             \
    }
ATOMICS(, uint64_t)
ATOMICS(32, uint32_t)
#undef ATOMICS

/* ---- waiting ---- */

struct wait {
    const _Atomic uint64_t *signal;
    enum peal_compare compare;
    uint64_t value;
    uint64_t offset; /* in its allocation: for reports */
};

static const char *const signs[] = {[PEAL_EQ] = "==", [PEAL_NE] = "!=", [PEAL_GE] = ">=",
                                    [PEAL_GT] = ">",  [PEAL_LE] = "<=", [PEAL_LT] = "<"};

static bool holds(void *context)
{
    const struct wait *wait = context;
    /* Partner: add_word and the atomic operations, of any rank. */
    uint64_t now = atomic_load_explicit(wait->signal, memory_order_acquire);
    switch (wait->compare) {
    case PEAL_EQ:
        return now == wait->value;
    case PEAL_NE:
        return now != wait->value;
    case PEAL_GE:
        return now >= wait->value;
    case PEAL_GT:
        return now > wait->value;
    case PEAL_LE:
        return now <= wait->value;
    default:
        return now < wait->value;
    }
}

static void describe(void *context, struct peal_text *out)
{
    const struct wait *wait = context;
    /* Relaxed: only shown. */
    uint64_t now = atomic_load_explicit(wait->signal, memory_order_relaxed);
    peal_text_printf(out,
                     "wait_until: the signal at byte %" PRIu64
                     " of its symmetric memory is %" PRIu64 ", waiting for %s %" PRIu64,
                     wait->offset, now, signs[wait->compare], wait->value);
}

/* What a wait is for. */
struct condition {
    bool (*holds)(void *context);
    void (*describe)(void *context, struct peal_text *out);
    void *context;
    uint64_t max_sleep_ns; /* 0: whatever makes it hold wakes this rank */
};

static enum peal_status wait_for(struct peal_comm *comm, const struct condition *condition)
{
    struct peal_team *team = comm->team;
    for (uint32_t polls = 0; polls < team->policy.spins; polls++) {
        if (condition->holds(condition->context))
            return PEAL_OK;
        peal_relax();
    }
    struct peal_backoff pause = {.describe = condition->describe,
                                 .context = condition->context,
                                 .stream = 1,
                                 .is_message = true, /* of any rank, and of no call */
                                 .peer = UINT32_MAX,
                                 .max_sleep_ns = condition->max_sleep_ns};
    enum peal_status status = PEAL_OK;
    peal_team_enter(peal_team_own(team), PEAL_STREAM_ONESIDED);
    while (status == PEAL_OK && !condition->holds(condition->context)) {
        if (peal_calls_progress(&comm->engine))
            peal_backoff_reset(team, &pause);
        status = peal_backoff_step(team, &pause);
    }
    peal_backoff_reset(team, &pause);
    peal_team_leave(peal_team_own(team));
    peal_team_depart(team);
    return peal_comm_end(comm, status);
}

enum peal_status peal_wait_until(struct peal_comm *comm, const uint64_t *signal,
                                 enum peal_compare compare, uint64_t value)
{
    char *at;
    enum peal_status status = begin(comm, PEAL_ONESIDED_WAIT_UNTIL);
    if (status == PEAL_OK)
        status = find_word(comm, signal, sizeof *signal, comm->team->rank, &at);
    if (status != PEAL_OK)
        return status;
    if ((unsigned)compare > PEAL_LT)
        return peal_comm_fail(comm, PEAL_INVALID, "there is no comparison %d", (int)compare);
    const struct peal_symmetric *memory = peal_symmetric_find(comm, signal, sizeof *signal);
    struct wait wait = {.signal = (const _Atomic uint64_t *)(const void *)at,
                        .compare = compare,
                        .value = value,
                        .offset = (uint64_t)(at - memory->at[comm->team->rank])};
    return wait_for(comm, &(struct condition){holds, describe, &wait, 0});
}

struct user_condition {
    int (*holds)(void *context);
    void *context;
    const char *what;
};

static bool user_holds(void *context)
{
    const struct user_condition *condition = context;
    bool held = condition->holds(condition->context) != 0;
    atomic_thread_fence(memory_order_acquire); /* partner: the release of whoever made it hold */
    return held;
}

static void describe_user(void *context, struct peal_text *out)
{
    peal_text_puts(out, ((const struct user_condition *)context)->what);
}

enum peal_status peal_wait_for(struct peal_comm *comm, int (*condition)(void *context),
                               void *context, const char *what)
{
    enum { MAX_SLEEP_NS = 100000 }; /* a put wakes no rank */
    enum peal_status status = begin(comm, PEAL_ONESIDED_WAIT_UNTIL);
    if (status != PEAL_OK)
        return status;
    if (!condition)
        return peal_comm_fail(comm, PEAL_INVALID, "no condition");
    struct user_condition user = {condition, context, what ? what : "wait_for"};
    return wait_for(comm, &(struct condition){user_holds, describe_user, &user, MAX_SLEEP_NS});
}

/* ---- completion ---- */

enum peal_status peal_fence(struct peal_comm *comm)
{
    enum peal_status status = begin(comm, PEAL_ONESIDED_FENCE);
    if (status == PEAL_OK)
        atomic_thread_fence(memory_order_release); /* partner: the acquire that sees a later put */
    return status;
}

static void describe_quiet(void *context, struct peal_text *out)
{
    (void)context;
    peal_text_puts(out, "quiet");
}

enum peal_status peal_quiet(struct peal_comm *comm)
{
    enum peal_status status = begin(comm, PEAL_ONESIDED_QUIET);
    if (status != PEAL_OK)
        return status;
    atomic_thread_fence(memory_order_seq_cst); /* partner: the peers' loads */
    if (comm->team->span)
        return peal_onesided_quiet(comm);
    struct peal_backoff pause = {.describe = describe_quiet, .stream = 1, .bereaved = true};
    return peal_comm_end(comm, peal_doctor_check(comm->team, &pause, 0));
}
