/* SPDX-License-Identifier: Apache-2.0 */
/* Puts and gets, plain, strided and with a signal; what orders them. The non-blocking forms have
 * done their work when they return, which is allowed. */
#include "job.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* One call, whatever its type. */
struct move {
    const struct peal_shmem_call *call;
    shmem_ctx_t ctx;
    void *dest;
    const void *source;
    size_t width; /* of an element */
    size_t count;
    int pe;
    bool nbi;
};

static void check_count(const struct move *move)
{
    if (move->count > (size_t)PTRDIFF_MAX / move->width)
        peal_shmem_fail(move->call, "%zu elements", move->count);
}

/* Values of words are kept: others may wait for them. */
static void log_put(const struct move *move, uint32_t pe)
{
    int64_t value = 0;
    int32_t word;
    size_t bytes = move->count * move->width;
    if (!peal_shmem_is_logged() || bytes == 0)
        return;
    if (bytes == sizeof word) {
        memcpy(&word, move->source, sizeof word);
        value = word;
    }
    if (bytes == sizeof value)
        memcpy(&value, move->source, sizeof value);
    if (move->nbi)
        peal_shmem_log_local(move->source, bytes);
    peal_shmem_log(move->call, "put %p %u %p %p %zu %d %" PRId64, (void *)move->ctx, pe, move->dest,
                   move->source, bytes, move->nbi, value);
}

static void log_get(const struct move *move, uint32_t pe)
{
    size_t bytes = move->count * move->width;
    if (!peal_shmem_is_logged() || bytes == 0)
        return;
    if (move->nbi)
        peal_shmem_log_local(move->dest, bytes);
    peal_shmem_log(move->call, "get %p %u %p %p %zu %d", (void *)move->ctx, pe, move->dest,
                   move->source, bytes, move->nbi);
}

static void put(const struct move *move)
{
    struct peal_comm *world = peal_shmem_world(move->call);
    uint32_t pe = peal_shmem_target(move->call, move->ctx, move->pe);
    check_count(move);
    log_put(move, pe);
    LOCKED;
    if (move->count > 0)
        peal_shmem_check(move->call, world,
                         peal_put(world, peal_shmem_symmetric(move->call, move->dest), move->source,
                                  move->count * move->width, pe));
}

static void get(const struct move *move)
{
    struct peal_comm *world = peal_shmem_world(move->call);
    uint32_t pe = peal_shmem_target(move->call, move->ctx, move->pe);
    check_count(move);
    log_get(move, pe);
    LOCKED;
    if (move->count > 0)
        peal_shmem_check(move->call, world,
                         peal_get(world, move->dest, peal_shmem_symmetric(move->call, move->source),
                                  move->count * move->width, pe));
}

/* Element by element: strides in elements, of the destination and of the source. */
static void move_strided(const struct move *whole, ptrdiff_t dst, ptrdiff_t sst,
                         void (*one)(const struct move *))
{
    struct move move = *whole;
    move.count = 1;
    check_count(whole);
    for (size_t i = 0; i < whole->count; i++) {
        one(&move);
        move.dest = (char *)move.dest + dst * (ptrdiff_t)whole->width;
        move.source = (const char *)move.source + sst * (ptrdiff_t)whole->width;
    }
}

static void put_signal(const struct move *move, uint64_t *signal, uint64_t value, int op)
{
    struct peal_comm *world = peal_shmem_world(move->call);
    uint32_t pe = peal_shmem_target(move->call, move->ctx, move->pe);
    if (op != SHMEM_SIGNAL_SET && op != SHMEM_SIGNAL_ADD)
        peal_shmem_fail(move->call, "there is no signal operation %d", op);
    put(move);
    peal_shmem_log(move->call, "signal %p %u %p %" PRIu64 " %d", (void *)move->ctx, pe,
                   (void *)signal, value, op);
    LOCKED;
    uint64_t *word = peal_shmem_symmetric(move->call, signal);
    if (op == SHMEM_SIGNAL_ADD) {
        peal_shmem_check(move->call, world, peal_notify(world, word, value, pe));
        return;
    }
    _Atomic uint64_t *near = peal_symmetric_at(world, word, pe);
    if (near) {
        /* Release: the data is there first; partner: a wait of the target. */
        atomic_store_explicit(near, value, memory_order_release);
        return;
    }
    peal_shmem_check(move->call, world, peal_fence(world));
    peal_shmem_check(move->call, world, peal_put(world, word, &value, sizeof value, pe));
}

/* ---- order ---- */

static void fence(const struct peal_shmem_call *call, shmem_ctx_t ctx)
{
    struct peal_comm *world = peal_shmem_world(call);
    peal_shmem_log(call, "fence %p", (void *)ctx);
    LOCKED;
    peal_shmem_check(call, world, peal_fence(world));
}

void peal_shmem_quiet(const struct peal_shmem_call *call, shmem_ctx_t ctx)
{
    struct peal_comm *world = peal_shmem_world(call);
    peal_shmem_log(call, "quiet %p", (void *)ctx);
    LOCKED;
    peal_shmem_check(call, world, peal_quiet(world));
}

void shmem_fence(void)
{
    fence(HERE, SHMEM_CTX_DEFAULT);
}

void shmem_ctx_fence(shmem_ctx_t ctx)
{
    fence(HERE, ctx);
}

void shmem_quiet(void)
{
    peal_shmem_quiet(HERE, SHMEM_CTX_DEFAULT);
}

void shmem_ctx_quiet(shmem_ctx_t ctx)
{
    peal_shmem_quiet(HERE, ctx);
}

/* ---- the functions: P is the prefix, PARAMETERS adds the context, CTX is it ---- */

#define MOVE(CTX, WIDTH, NBI)                                                                      \
    (&(const struct move){HERE, CTX, dest, source, WIDTH, nelems, pe, NBI})
#define DEFINE_MOVES(P, PARAMETERS, CTX, NAME, T, WIDTH)                                           \
    void P##put##NAME PARAMETERS(T *dest, const T *source, size_t nelems, int pe)                  \
    {                                                                                              \
        put(MOVE(CTX, WIDTH, false));                                                              \
    }                                                                                              \
    void P##get##NAME PARAMETERS(T *dest, const T *source, size_t nelems, int pe)                  \
    {                                                                                              \
        get(MOVE(CTX, WIDTH, false));                                                              \
    }                                                                                              \
    void P##put##NAME##_nbi PARAMETERS(T *dest, const T *source, size_t nelems, int pe)            \
    {                                                                                              \
        put(MOVE(CTX, WIDTH, true));                                                               \
    }                                                                                              \
    void P##get##NAME##_nbi PARAMETERS(T *dest, const T *source, size_t nelems, int pe)            \
    {                                                                                              \
        get(MOVE(CTX, WIDTH, true));                                                               \
    }                                                                                              \
    void P##put##NAME##_signal PARAMETERS(T *dest, const T *source, size_t nelems,                 \
                                          uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) \
    {                                                                                              \
        put_signal(MOVE(CTX, WIDTH, false), sig_addr, signal, sig_op);                             \
    }                                                                                              \
    void P##put##NAME##_signal_nbi PARAMETERS(T *dest, const T *source, size_t nelems,             \
                                              uint64_t *sig_addr, uint64_t signal, int sig_op,     \
                                              int pe)                                              \
    {                                                                                              \
        put_signal(MOVE(CTX, WIDTH, true), sig_addr, signal, sig_op);                              \
    }
#define DEFINE_STRIDED(P, PARAMETERS, CTX, NAME, T, WIDTH)                                         \
    void P##iput##NAME PARAMETERS(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,          \
                                  size_t nelems, int pe)                                           \
    {                                                                                              \
        move_strided(MOVE(CTX, WIDTH, false), dst, sst, put);                                      \
    }                                                                                              \
    void P##iget##NAME PARAMETERS(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,          \
                                  size_t nelems, int pe)                                           \
    {                                                                                              \
        move_strided(MOVE(CTX, WIDTH, false), dst, sst, get);                                      \
    }
#define DEFINE_ONE(P, PARAMETERS, CTX, T)                                                          \
    void P##p PARAMETERS(T *dest, T value, int pe)                                                 \
    {                                                                                              \
        put(&(const struct move){HERE, CTX, dest, &value, sizeof(T), 1, pe, false});               \
    }                                                                                              \
    T P##g PARAMETERS(const T *source, int pe)                                                     \
    {                                                                                              \
        T value;                                                                                   \
        get(&(const struct move){HERE, CTX, &value, source, sizeof(T), 1, pe, false});             \
        return value;                                                                              \
    }

#define X(A, NAME, T)                                                                              \
    DEFINE_MOVES(shmem_##NAME##_, PEAL_SHMEM_NO_CTX, SHMEM_CTX_DEFAULT, , T, sizeof(T))            \
    DEFINE_MOVES(shmem_ctx_##NAME##_, PEAL_SHMEM_CTX, ctx, , T, sizeof(T))                         \
    DEFINE_STRIDED(shmem_##NAME##_, PEAL_SHMEM_NO_CTX, SHMEM_CTX_DEFAULT, , T, sizeof(T))          \
    DEFINE_STRIDED(shmem_ctx_##NAME##_, PEAL_SHMEM_CTX, ctx, , T, sizeof(T))                       \
    DEFINE_ONE(shmem_##NAME##_, PEAL_SHMEM_NO_CTX, SHMEM_CTX_DEFAULT, T)                           \
    DEFINE_ONE(shmem_ctx_##NAME##_, PEAL_SHMEM_CTX, ctx, T)
PEAL_SHMEM_RMA(X, )
#undef X
#define X(A, NAME, BYTES)                                                                          \
    DEFINE_MOVES(shmem_, PEAL_SHMEM_NO_CTX, SHMEM_CTX_DEFAULT, NAME, void, BYTES)                  \
    DEFINE_MOVES(shmem_ctx_, PEAL_SHMEM_CTX, ctx, NAME, void, BYTES)                               \
    DEFINE_STRIDED(shmem_, PEAL_SHMEM_NO_CTX, SHMEM_CTX_DEFAULT, NAME, void, BYTES)                \
    DEFINE_STRIDED(shmem_ctx_, PEAL_SHMEM_CTX, ctx, NAME, void, BYTES)
PEAL_SHMEM_SIZES(X, )
#undef X
DEFINE_MOVES(shmem_, PEAL_SHMEM_NO_CTX, SHMEM_CTX_DEFAULT, mem, void, 1)
DEFINE_MOVES(shmem_ctx_, PEAL_SHMEM_CTX, ctx, mem, void, 1)
