/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations and locks. Peal adds and compares-and-swaps words of any PE; the others are made
 * of these two. */
#include "job.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

enum change { ADD, AND, OR, XOR, SWAP, COMPARE_SWAP };

static uint64_t changed(enum change change, uint64_t old, uint64_t operand)
{
    switch (change) {
    case AND:
        return old & operand;
    case OR:
        return old | operand;
    case XOR:
        return old ^ operand;
    case ADD:
        return old + operand;
    case SWAP:
    case COMPARE_SWAP:
        break;
    }
    return operand;
}

/* The two operations that Peal has. */
static uint64_t add(const struct peal_shmem_call *call, void *at, size_t width, uint64_t operand,
                    uint32_t pe)
{
    struct peal_comm *world = peal_shmem_world(call);
    uint64_t old64 = 0;
    uint32_t old32 = 0;
    if (width == sizeof old64)
        peal_shmem_check(call, world, peal_fetch_add(world, at, operand, pe, &old64));
    else
        peal_shmem_check(call, world, peal_fetch_add32(world, at, (uint32_t)operand, pe, &old32));
    return width == sizeof old64 ? old64 : old32;
}

static uint64_t compare_swap(const struct peal_shmem_call *call, void *at, size_t width,
                             uint64_t expected, uint64_t desired, uint32_t pe)
{
    struct peal_comm *world = peal_shmem_world(call);
    uint64_t old64 = 0;
    uint32_t old32 = 0;
    if (width == sizeof old64)
        peal_shmem_check(call, world, peal_compare_swap(world, at, expected, desired, pe, &old64));
    else
        peal_shmem_check(
            call, world,
            peal_compare_swap32(world, at, (uint32_t)expected, (uint32_t)desired, pe, &old32));
    return width == sizeof old64 ? old64 : old32;
}

/* One call, whatever its type: of a word of 4 or 8 bytes. */
struct atomic {
    shmem_ctx_t ctx;
    enum change change;
    void *remote;
    size_t width;
    uint64_t operand, compare;
    uint32_t pe;
    void *fetch; /* see CHANGE */
};

/* `old` and what it is compared with: peal record finds which other values could have come back. */
static void log_atomic(const struct peal_shmem_call *call, const struct atomic *atomic,
                       uint64_t old)
{
    static const char *const names[] = {"add", "and", "or", "xor", "swap", "compare_swap"};
    bool only_reads = atomic->change == ADD && atomic->operand == 0 && atomic->fetch;
    if (!peal_shmem_is_logged())
        return;
    if (atomic->fetch && atomic->fetch != (void *)-1)
        peal_shmem_log_local(atomic->fetch, atomic->width);
    int64_t value =
        atomic->width == sizeof(int32_t) ? (int32_t)atomic->operand : (int64_t)atomic->operand;
    peal_shmem_log(call, "atomic %p %u %p %zu %s %" PRId64 " %p %s %" PRIu64 " %" PRIu64,
                   (void *)atomic->ctx, atomic->pe, atomic->remote, atomic->width,
                   only_reads ? "fetch" : names[atomic->change], value, atomic->fetch,
                   peal_shmem_domain(atomic->ctx), atomic->compare, old);
}

/* Returns the previous bits. */
static uint64_t change_word(const struct peal_shmem_call *call, const struct atomic *atomic)
{
    LOCKED;
    enum change change = atomic->change;
    size_t width = atomic->width;
    uint64_t operand = atomic->operand;
    uint32_t pe = atomic->pe;
    void *at = peal_shmem_symmetric(call, atomic->remote);
    if (change == ADD)
        return add(call, at, width, operand, pe);
    if (change == COMPARE_SWAP)
        return compare_swap(call, at, width, atomic->compare, operand, pe);
    uint64_t mask = width == sizeof mask ? UINT64_MAX : UINT32_MAX;
    uint64_t guess = add(call, at, width, 0, pe);
    for (;;) {
        uint64_t old =
            compare_swap(call, at, width, guess, changed(change, guess, operand) & mask, pe);
        if (old == guess)
            return old;
        guess = old;
    }
}

static uint64_t apply(const struct peal_shmem_call *call, const struct atomic *atomic)
{
    uint64_t old = change_word(call, atomic);
    log_atomic(call, atomic, old);
    return atomic->fetch ? peal_shmem_script_value(old) : old;
}

/* ---- locks: the word of PE 0 is 0, or 1 + the PE that has the lock ---- */

static bool try_lock(const struct peal_shmem_call *call, long *lock, uint32_t own)
{
    LOCKED;
    return compare_swap(call, peal_shmem_symmetric(call, lock), sizeof *lock, 0, 1 + own, 0) == 0;
}

static void take_lock(const struct peal_shmem_call *call, long *lock)
{
    enum { CHECK = 4096 }; /* tries between two checks whether all PEs are alive */
    struct peal_comm *world = peal_shmem_world(call);
    peal_shmem_script_lock(call);
    for (uint32_t tries = 1; !try_lock(call, lock, peal_comm_rank(world)); tries++) {
        sched_yield();
        if (tries % CHECK == 0) {
            LOCKED;
            peal_shmem_check(call, world, peal_quiet(world));
        }
    }
    peal_shmem_script_locked();
    peal_shmem_log(call, "lock %p", (void *)lock);
}

void shmem_set_lock(long *lock)
{
    take_lock(HERE, lock);
}

int shmem_test_lock(long *lock)
{
    struct peal_comm *world = peal_shmem_world(HERE);
    uint64_t *value = NULL;
    enum peal_shmem_look look = peal_shmem_log_look(HERE, lock, 1, &value);
    if (look == PEAL_LOOK_AGAIN) {
        take_lock(HERE, lock);
        return 0;
    }
    peal_shmem_log(HERE, look == PEAL_LOOK_EARLY ? "test"
                                                 : "refuse whether a lock is free depends on time");
    return look == PEAL_LOOK_EARLY || !try_lock(HERE, lock, peal_comm_rank(world));
}

void shmem_clear_lock(long *lock)
{
    uint32_t own = peal_comm_rank(peal_shmem_world(HERE));
    /* What was put under the lock is there when the next PE has it. */
    peal_shmem_quiet(HERE, SHMEM_CTX_DEFAULT);
    peal_shmem_log(HERE, "unlock %p", (void *)lock);
    LOCKED;
    uint64_t old =
        compare_swap(HERE, peal_shmem_symmetric(HERE, lock), sizeof *lock, 1 + own, 0, 0);
    if (old != 1 + own)
        peal_shmem_fail(HERE, "this PE does not have the lock");
}

/* ---- the functions ---- */

/* The bits of a value, and back. */
#define BITS(T, VALUE)                                                                             \
    uint64_t bits = 0;                                                                             \
    memcpy(&bits, &(T){VALUE}, sizeof(T));
#define VALUE_OF(T, FROM)                                                                          \
    uint64_t word = FROM;                                                                          \
    T old;                                                                                         \
    memcpy(&old, &word, sizeof old);
#define TARGET(CTX) peal_shmem_target(HERE, CTX, pe)
/* FETCH: where the previous value goes; NULL: nowhere, and the call need not wait. */
#define RESULT ((void *)-1)
#define CHANGE(OP, CTX, OPERAND, COMPARE, FETCH)                                                   \
    apply(HERE, &(const struct atomic){CTX, OP, (void *)(uintptr_t)dest, sizeof *dest, OPERAND,    \
                                       COMPARE, TARGET(CTX), FETCH})

/* P##NAME changes, P##fetch_NAME (F) also returns, and its _nbi form stores, the previous value. */
#define DEFINE_CHANGE(P, PARAMETERS, CTX, T, NAME, F, OP)                                          \
    void P##NAME PARAMETERS(T *dest, T value, int pe)                                              \
    {                                                                                              \
        BITS(T, value)                                                                             \
        (void)CHANGE(OP, CTX, bits, 0, NULL);                                                      \
    }                                                                                              \
    T P##F PARAMETERS(T *dest, T value, int pe)                                                    \
    {                                                                                              \
        BITS(T, value)                                                                             \
        VALUE_OF(T, CHANGE(OP, CTX, bits, 0, RESULT))                                              \
        return old;                                                                                \
    }                                                                                              \
    void P##F##_nbi PARAMETERS(T *fetch, T *dest, T value, int pe)                                 \
    {                                                                                              \
        BITS(T, value)                                                                             \
        VALUE_OF(T, CHANGE(OP, CTX, bits, 0, fetch))                                               \
        *fetch = old;                                                                              \
    }
#define DEFINE_EXTENDED(P, PARAMETERS, CTX, T)                                                     \
    DEFINE_CHANGE(P, PARAMETERS, CTX, T, set, swap, SWAP)                                          \
    T P##fetch PARAMETERS(const T *dest, int pe)                                                   \
    {                                                                                              \
        VALUE_OF(T, CHANGE(ADD, CTX, 0, 0, RESULT))                                                \
        return old;                                                                                \
    }                                                                                              \
    void P##fetch_nbi PARAMETERS(T *fetch, const T *dest, int pe)                                  \
    {                                                                                              \
        VALUE_OF(T, CHANGE(ADD, CTX, 0, 0, fetch))                                                 \
        *fetch = old;                                                                              \
    }
#define DEFINE_AMO(P, PARAMETERS, CTX, T)                                                          \
    DEFINE_CHANGE(P, PARAMETERS, CTX, T, add, fetch_add, ADD)                                      \
    void P##inc PARAMETERS(T *dest, int pe)                                                        \
    {                                                                                              \
        (void)CHANGE(ADD, CTX, 1, 0, NULL);                                                        \
    }                                                                                              \
    T P##fetch_inc PARAMETERS(T *dest, int pe)                                                     \
    {                                                                                              \
        return (T)CHANGE(ADD, CTX, 1, 0, RESULT);                                                  \
    }                                                                                              \
    void P##fetch_inc_nbi PARAMETERS(T *fetch, T *dest, int pe)                                    \
    {                                                                                              \
        *fetch = (T)CHANGE(ADD, CTX, 1, 0, fetch);                                                 \
    }                                                                                              \
    T P##compare_swap PARAMETERS(T *dest, T cond, T value, int pe)                                 \
    {                                                                                              \
        return (T)CHANGE(COMPARE_SWAP, CTX, (uint64_t)value, (uint64_t)cond, RESULT);              \
    }                                                                                              \
    void P##compare_swap_nbi PARAMETERS(T *fetch, T *dest, T cond, T value, int pe)                \
    {                                                                                              \
        *fetch = (T)CHANGE(COMPARE_SWAP, CTX, (uint64_t)value, (uint64_t)cond, fetch);             \
    }
#define DEFINE_BITWISE(P, PARAMETERS, CTX, T)                                                      \
    DEFINE_CHANGE(P, PARAMETERS, CTX, T, and, fetch_and, AND)                                      \
    DEFINE_CHANGE(P, PARAMETERS, CTX, T, or, fetch_or, OR)                                         \
    DEFINE_CHANGE(P, PARAMETERS, CTX, T, xor, fetch_xor, XOR)
#define X(DEFINE, NAME, T)                                                                         \
    DEFINE(shmem_##NAME##_atomic_, PEAL_SHMEM_NO_CTX, SHMEM_CTX_DEFAULT, T)                        \
    DEFINE(shmem_ctx_##NAME##_atomic_, PEAL_SHMEM_CTX, ctx, T)
PEAL_SHMEM_EXTENDED_AMO(X, DEFINE_EXTENDED)
PEAL_SHMEM_AMO(X, DEFINE_AMO)
PEAL_SHMEM_BITWISE_AMO(X, DEFINE_BITWISE)
#undef X

/* Names of earlier versions. */
#define X(A, NAME, T)                                                                              \
    T shmem_##NAME##_fetch(const T *dest, int pe)                                                  \
    {                                                                                              \
        VALUE_OF(T, CHANGE(ADD, SHMEM_CTX_DEFAULT, 0, 0, RESULT))                                  \
        return old;                                                                                \
    }                                                                                              \
    void shmem_##NAME##_set(T *dest, T value, int pe)                                              \
    {                                                                                              \
        BITS(T, value)                                                                             \
        (void)CHANGE(SWAP, SHMEM_CTX_DEFAULT, bits, 0, NULL);                                      \
    }                                                                                              \
    T shmem_##NAME##_swap(T *dest, T value, int pe)                                                \
    {                                                                                              \
        BITS(T, value)                                                                             \
        VALUE_OF(T, CHANGE(SWAP, SHMEM_CTX_DEFAULT, bits, 0, RESULT))                              \
        return old;                                                                                \
    }
PEAL_SHMEM_SIGNED_WORDS(X, )
PEAL_SHMEM_REALS(X, )
#undef X
#define X(A, NAME, T)                                                                              \
    T shmem_##NAME##_cswap(T *dest, T cond, T value, int pe)                                       \
    {                                                                                              \
        return (T)CHANGE(COMPARE_SWAP, SHMEM_CTX_DEFAULT, (uint64_t)value, (uint64_t)cond,         \
                         RESULT);                                                                  \
    }                                                                                              \
    T shmem_##NAME##_finc(T *dest, int pe)                                                         \
    {                                                                                              \
        return (T)CHANGE(ADD, SHMEM_CTX_DEFAULT, 1, 0, RESULT);                                    \
    }                                                                                              \
    void shmem_##NAME##_inc(T *dest, int pe)                                                       \
    {                                                                                              \
        (void)CHANGE(ADD, SHMEM_CTX_DEFAULT, 1, 0, NULL);                                          \
    }                                                                                              \
    T shmem_##NAME##_fadd(T *dest, T value, int pe)                                                \
    {                                                                                              \
        return (T)CHANGE(ADD, SHMEM_CTX_DEFAULT, (uint64_t)value, 0, RESULT);                      \
    }                                                                                              \
    void shmem_##NAME##_add(T *dest, T value, int pe)                                              \
    {                                                                                              \
        (void)CHANGE(ADD, SHMEM_CTX_DEFAULT, (uint64_t)value, 0, NULL);                            \
    }
PEAL_SHMEM_SIGNED_WORDS(X, )
#undef X
