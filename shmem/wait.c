/* SPDX-License-Identifier: Apache-2.0 */
/* Waits and tests: of one word or of several, each compared with one value or with its own. */
#include "job.h"

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Does the comparison hold for this word, which is read anew? One function per type. */
typedef int holds_function(const volatile void *word, int cmp, const void *value);

struct condition {
    const struct peal_shmem_call *call;
    holds_function *holds;
    const volatile char *words;
    size_t width, count;
    const int *status; /* nonzero: this word does not count; NULL: all count */
    int cmp;
    const char *values;
    size_t step;     /* from value to value; 0: one for all */
    size_t *indices; /* of words for which it held; may be NULL */
    bool needs_all;
    size_t found, first; /* how many were found, and the one to return */
    bool met;
};

static bool counts(const struct condition *condition, size_t i)
{
    return !condition->status || condition->status[i] == 0;
}

static size_t count_all(const struct condition *condition)
{
    size_t all = 0;
    for (size_t i = 0; i < condition->count; i++)
        all += counts(condition, i);
    return all;
}

/* Where the next wait or test for any word begins to look, so that each has its turn. */
static _Thread_local size_t turn;

/* Finds the words for which it holds. */
static void look(struct condition *condition)
{
    condition->found = 0;
    for (size_t i = 0; i < condition->count; i++) {
        if (!counts(condition, i) ||
            !condition->holds(condition->words + i * condition->width, condition->cmp,
                              condition->values + i * condition->step))
            continue;
        if (condition->indices)
            condition->indices[condition->found] = i;
        if (condition->found == 0 || (i >= turn && condition->first < turn))
            condition->first = i;
        condition->found++;
    }
}

static int is_met(void *context)
{
    struct condition *condition = context;
    look(condition);
    return condition->needs_all ? condition->found == count_all(condition) : condition->found > 0;
}

static void check(const struct condition *condition)
{
    (void)peal_shmem_world(condition->call);
    if (condition->cmp < SHMEM_CMP_EQ || condition->cmp > SHMEM_CMP_GE)
        peal_shmem_fail(condition->call, "there is no comparison %d", condition->cmp);
}

/* The value as a number, whatever its size. */
static int64_t value_of(const struct condition *condition, size_t i)
{
    const char *at = condition->values + i * condition->step;
    int64_t value = 0;
    int32_t word;
    int16_t half;
    memcpy(&value, at, condition->width);
    if (condition->width == sizeof word) {
        memcpy(&word, at, sizeof word);
        value = word;
    } else if (condition->width == sizeof half) {
        memcpy(&half, at, sizeof half);
        value = half;
    }
    return value;
}

/* A wait, a test and its outcome, or a loop of tests. Which of several words came first depends on
 * time. */
static void log_condition(const struct condition *condition, const char *event)
{
    static const char *const signs[] = {"==", "!=", ">", "<=", "<", ">="};
    if (!peal_shmem_is_logged())
        return;
    if (!condition->needs_all && count_all(condition) > 1) {
        peal_shmem_log(condition->call,
                       "refuse which of several words comes first depends on time");
        return;
    }
    for (size_t i = 0; i < condition->count; i++) {
        if (counts(condition, i))
            peal_shmem_log(condition->call, "%s %p %zu %s %" PRId64 " %d", event,
                           (const void *)(uintptr_t)(condition->words + i * condition->width),
                           condition->width, signs[condition->cmp], value_of(condition, i),
                           condition->met);
    }
}

/* Waits until it is met; if no word counts, it is. */
static struct condition wait_for(struct condition condition)
{
    check(&condition);
    if (count_all(&condition) > 0)
        peal_shmem_wait(condition.call, is_met, &condition);
    condition.met = true;
    log_condition(&condition, "wait");
    return condition;
}

/* For a loop that peal record has seen: until it is met, or as long as a program may take to go on. */
static void look_again(struct condition *condition, int (*ends)(void *), void *context)
{
    enum { CHECK = 4096, SECONDS = 20 };
    struct peal_comm *world = peal_shmem_world(condition->call);
    time_t end = time(NULL) + SECONDS;
    for (uint32_t tries = 1; !ends(context) && time(NULL) <= end; tries++) {
        sched_yield();
        if (tries % CHECK == 0)
            peal_shmem_check(condition->call, world, peal_quiet(world));
    }
}

static void test_recorded(struct condition *condition)
{
    uint64_t *value = NULL;
    switch (peal_shmem_log_look(condition->call, (const void *)(uintptr_t)condition->words,
                                count_all(condition), &value)) {
    case PEAL_LOOK_EARLY:
        condition->found = 0;
        condition->met = false;
        break;
    case PEAL_LOOK_AGAIN:
        look_again(condition, is_met, condition);
        condition->met = is_met(condition);
        break;
    case PEAL_LOOK_FREE:
        condition->met = is_met(condition);
        log_condition(condition, "test");
        return;
    }
    log_condition(condition, condition->met ? "loop" : "test");
}

/* Looks without waiting. */
static struct condition test(struct condition condition)
{
    enum { CHECK = 4096 };
    static _Thread_local uint32_t tests;
    check(&condition);
    struct peal_comm *world = peal_shmem_world(condition.call);
    if (peal_shmem_is_logged())
        test_recorded(&condition);
    else
        condition.met = is_met(&condition);
    atomic_thread_fence(memory_order_acquire); /* partner: the put or signal that was seen */
    /* Programs test in loops: these must leave the core to others, and end if a peer has died. */
    if (!condition.met) {
        sched_yield();
        if (++tests % CHECK == 0) {
            LOCKED;
            peal_shmem_check(condition.call, world, peal_quiet(world));
        }
    }
    return condition;
}

static size_t index_of(struct condition condition)
{
    if (condition.found == 0)
        return SIZE_MAX;
    turn = condition.first + 1;
    return condition.first;
}

/* ---- the functions ---- */

#define CONDITION(NAME, WORDS, COUNT, STATUS, VALUES, STEP, INDICES, ALL)                          \
    ((struct condition){HERE, NAME##_holds, (const volatile char *)(WORDS), sizeof *(WORDS),       \
                        COUNT, STATUS, cmp, (const char *)(VALUES), STEP, INDICES, ALL, 0, 0,      \
                        false})
#define DEFINE_HOLDS(NAME, T)                                                                      \
    static int NAME##_holds(const volatile void *word, int cmp, const void *value)                 \
    {                                                                                              \
        /* Acquire; partner: a signal or an atomic operation of any PE. */                         \
        T now = atomic_load_explicit((const volatile _Atomic T *)word, memory_order_acquire);      \
        T then = *(const T *)value;                                                                \
        switch (cmp) {                                                                             \
        case SHMEM_CMP_EQ:                                                                         \
            return now == then;                                                                    \
        case SHMEM_CMP_NE:                                                                         \
            return now != then;                                                                    \
        case SHMEM_CMP_GT:                                                                         \
            return now > then;                                                                     \
        case SHMEM_CMP_LE:                                                                         \
            return now <= then;                                                                    \
        case SHMEM_CMP_LT:                                                                         \
            return now < then;                                                                     \
        default:                                                                                   \
            return now >= then;                                                                    \
        }                                                                                          \
    }
/* The forms of one value for all words (SUFFIX empty), or of a value per word (_vector). */
#define DEFINE_SEVERAL(NAME, T, SUFFIX, VALUE, VALUES, STEP)                                       \
    void shmem_##NAME##_wait_until_all##SUFFIX(volatile T *ivars, size_t nelems,                   \
                                               const int *status, int cmp, T VALUE)                \
    {                                                                                              \
        (void)wait_for(CONDITION(NAME, ivars, nelems, status, VALUES, STEP, NULL, true));          \
    }                                                                                              \
    size_t shmem_##NAME##_wait_until_any##SUFFIX(volatile T *ivars, size_t nelems,                 \
                                                 const int *status, int cmp, T VALUE)              \
    {                                                                                              \
        return index_of(                                                                           \
            wait_for(CONDITION(NAME, ivars, nelems, status, VALUES, STEP, NULL, false)));          \
    }                                                                                              \
    size_t shmem_##NAME##_wait_until_some##SUFFIX(                                                 \
        volatile T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T VALUE)    \
    {                                                                                              \
        return wait_for(CONDITION(NAME, ivars, nelems, status, VALUES, STEP, indices, false))      \
            .found;                                                                                \
    }                                                                                              \
    int shmem_##NAME##_test_all##SUFFIX(volatile T *ivars, size_t nelems, const int *status,       \
                                        int cmp, T VALUE)                                          \
    {                                                                                              \
        return test(CONDITION(NAME, ivars, nelems, status, VALUES, STEP, NULL, true)).met;         \
    }                                                                                              \
    size_t shmem_##NAME##_test_any##SUFFIX(volatile T *ivars, size_t nelems, const int *status,    \
                                           int cmp, T VALUE)                                       \
    {                                                                                              \
        return index_of(test(CONDITION(NAME, ivars, nelems, status, VALUES, STEP, NULL, false)));  \
    }                                                                                              \
    size_t shmem_##NAME##_test_some##SUFFIX(volatile T *ivars, size_t nelems, size_t *indices,     \
                                            const int *status, int cmp, T VALUE)                   \
    {                                                                                              \
        return test(CONDITION(NAME, ivars, nelems, status, VALUES, STEP, indices, false)).found;   \
    }
#define X(A, NAME, T)                                                                              \
    DEFINE_HOLDS(NAME, T)                                                                          \
    void shmem_##NAME##_wait(volatile T *ivar, T cmp_value)                                        \
    {                                                                                              \
        int cmp = SHMEM_CMP_NE;                                                                    \
        (void)wait_for(CONDITION(NAME, ivar, 1, NULL, &cmp_value, 0, NULL, true));                 \
    }                                                                                              \
    void shmem_##NAME##_wait_until(volatile T *ivar, int cmp, T cmp_value)                         \
    {                                                                                              \
        (void)wait_for(CONDITION(NAME, ivar, 1, NULL, &cmp_value, 0, NULL, true));                 \
    }                                                                                              \
    int shmem_##NAME##_test(volatile T *ivar, int cmp, T cmp_value)                                \
    {                                                                                              \
        return test(CONDITION(NAME, ivar, 1, NULL, &cmp_value, 0, NULL, true)).met;                \
    }                                                                                              \
    DEFINE_SEVERAL(NAME, T, , cmp_value, &cmp_value, 0)                                            \
    DEFINE_SEVERAL(NAME, T, _vector, *cmp_values, cmp_values, sizeof(T))
PEAL_SHMEM_WAITS(X, )
#undef X

void(shmem_wait)(volatile long *ivar, long cmp_value)
{
    int cmp = SHMEM_CMP_NE;
    (void)wait_for(CONDITION(long, ivar, 1, NULL, &cmp_value, 0, NULL, true));
}

void(shmem_wait_until)(volatile long *ivar, int cmp, long cmp_value)
{
    (void)wait_for(CONDITION(long, ivar, 1, NULL, &cmp_value, 0, NULL, true));
}

struct signal_look {
    const _Atomic uint64_t *word;
    uint64_t before, now;
};

static int is_changed(void *context)
{
    struct signal_look *look = context;
    /* Acquire; partner: the signal of any PE. */
    look->now = atomic_load_explicit(look->word, memory_order_acquire);
    return look->now != look->before;
}

uint64_t shmem_signal_fetch(const uint64_t *sig_addr)
{
    struct signal_look look = {.word = (const _Atomic uint64_t *)sig_addr};
    uint64_t *last = NULL;
    (void)peal_shmem_world(HERE);
    (void)is_changed(&look);
    if (!peal_shmem_is_logged())
        return look.now;
    enum peal_shmem_look kind = peal_shmem_log_look(HERE, sig_addr, 1, &last);
    if (last)
        look.before = *last;
    if (kind == PEAL_LOOK_EARLY)
        look.now = look.before;
    if (kind == PEAL_LOOK_AGAIN)
        look_again(&(struct condition){.call = HERE}, is_changed, &look);
    if (last)
        *last = look.now;
    peal_shmem_log(HERE, "poll %p %" PRIu64 " %d", (const void *)sig_addr, look.now, (int)kind);
    return look.now;
}

uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)
{
    (void)wait_for(CONDITION(uint64, sig_addr, 1, NULL, &cmp_value, 0, NULL, true));
    return atomic_load_explicit((const _Atomic uint64_t *)sig_addr, memory_order_acquire);
}
