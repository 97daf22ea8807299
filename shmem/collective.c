/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of teams, and the older ones of active sets, by Peal's. Data that is only moved goes
 * as bytes. */
#include "job.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

static void *take_memory(const struct peal_shmem_call *call, size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (!memory)
        peal_shmem_fail(call, "no memory for %zu times %zu bytes", count, bytes);
    return memory;
}

/* ---- barriers ---- */

void peal_shmem_sync(const struct peal_shmem_call *call, struct peal_shmem_team *team)
{
    peal_shmem_log_sync(call, team);
    peal_shmem_check(call, team->comm, peal_barrier(team->comm));
    peal_shmem_log_synced(call, team->comm);
}

void shmem_barrier_all(void)
{
    peal_shmem_quiet(HERE, SHMEM_CTX_DEFAULT);
    peal_shmem_sync(HERE, peal_shmem_team(HERE, SHMEM_TEAM_WORLD));
}

void shmem_sync_all(void)
{
    peal_shmem_sync(HERE, peal_shmem_team(HERE, SHMEM_TEAM_WORLD));
}

int shmem_team_sync(shmem_team_t team)
{
    if (team == SHMEM_TEAM_INVALID)
        return -1;
    peal_shmem_sync(HERE, peal_shmem_team(HERE, team));
    return 0;
}

void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long *pSync)
{
    (void)pSync;
    peal_shmem_quiet(HERE, SHMEM_CTX_DEFAULT);
    peal_shmem_sync(HERE, peal_shmem_active_set(HERE, PE_start, logPE_stride, PE_size));
}

void(shmem_sync)(int PE_start, int logPE_stride, int PE_size, long *pSync)
{
    (void)pSync;
    peal_shmem_sync(HERE, peal_shmem_active_set(HERE, PE_start, logPE_stride, PE_size));
}

/* ---- data that is moved ---- */

/* One call, whatever its type. */
struct collective {
    const struct peal_shmem_call *call;
    struct peal_shmem_team *team;
    void *dest;
    const void *source;
    size_t bytes; /* of a PE's part */
};

/* dest_bytes and source_bytes: what the call reads and writes on this PE. root: -1 for all. */
static void log_collective(const struct collective *this, int root, size_t dest_bytes,
                           size_t source_bytes)
{
    if (!peal_shmem_is_logged())
        return;
    peal_shmem_log(this->call, "collective %d %p %zu %p %zu", root < 0 ? -1 : this->team->pes[root],
                   this->dest, dest_bytes, this->source, source_bytes);
    peal_shmem_log_sync(this->call, this->team);
}

static int broadcast(const struct collective *this, int root, bool to_root)
{
    const struct peal_shmem_team *team = this->team;
    if (root < 0 || root >= team->size)
        peal_shmem_fail(this->call, "there is no root %d among %d", root, team->size);
    log_collective(this, root, team->rank == root && !to_root ? 0 : this->bytes,
                   team->rank == root ? this->bytes : 0);
    /* The root's source is only read. */
    void *buffer = team->rank == root ? (void *)(uintptr_t)this->source : this->dest;
    peal_shmem_check(this->call, team->comm,
                     peal_broadcast(team->comm, buffer, this->bytes, PEAL_U8, (uint32_t)root));
    if (team->rank == root && to_root && this->bytes > 0)
        memmove(this->dest, this->source, this->bytes);
    return 0;
}

/* Parts of different lengths: they are exchanged first. */
static int collect(const struct collective *this)
{
    const struct peal_shmem_team *team = this->team;
    uint64_t own = this->bytes, counts[PEAL_MOST_RANKS], all = 0;
    peal_shmem_check(this->call, team->comm, peal_allgather(team->comm, &own, counts, 1, PEAL_U64));
    for (int pe = 0; pe < team->size; pe++)
        all += counts[pe];
    log_collective(this, -1, all, own);
    peal_shmem_check(this->call, team->comm,
                     peal_allgather_v(team->comm, this->source, this->dest, counts, NULL, PEAL_U8));
    return 0;
}

static int fcollect(const struct collective *this)
{
    struct peal_comm *comm = this->team->comm;
    log_collective(this, -1, this->bytes * (size_t)this->team->size, this->bytes);
    peal_shmem_check(this->call, comm,
                     peal_allgather(comm, this->source, this->dest, this->bytes, PEAL_U8));
    return 0;
}

static int alltoall(const struct collective *this)
{
    struct peal_comm *comm = this->team->comm;
    log_collective(this, -1, this->bytes * (size_t)this->team->size,
                   this->bytes * (size_t)this->team->size);
    peal_shmem_check(this->call, comm,
                     peal_all_to_all(comm, this->source, this->dest, this->bytes, PEAL_U8));
    return 0;
}

/* Copies `count` elements; strides in elements. */
static void copy_strided(void *to, ptrdiff_t to_stride, const void *from, ptrdiff_t from_stride,
                         size_t width, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy((char *)to + (ptrdiff_t)i * to_stride * (ptrdiff_t)width,
               (const char *)from + (ptrdiff_t)i * from_stride * (ptrdiff_t)width, width);
}

static int alltoalls(const struct collective *this, ptrdiff_t dst, ptrdiff_t sst, size_t width)
{
    size_t all = this->bytes / width * (size_t)this->team->size;
    if (peal_shmem_is_logged() && (dst != 1 || sst != 1))
        peal_shmem_log(this->call, "refuse a strided collective");
    char *packed = take_memory(this->call, 2 * all, width);
    struct collective plain = *this;
    copy_strided(packed, 1, this->source, sst, width, all);
    plain.source = packed;
    plain.dest = packed + all * width;
    (void)alltoall(&plain);
    copy_strided(this->dest, dst, plain.dest, 1, width, all);
    free(packed);
    return 0;
}

#define COLLECTIVE(TEAM, BYTES)                                                                    \
    (&(const struct collective){HERE, TEAM, dest, source, nelems * (BYTES)})
#define OF_TEAM(BYTES) COLLECTIVE(peal_shmem_team(HERE, team), BYTES)
#define DEFINE_TEAM(P, S, T, BYTES)                                                                \
    int P##broadcast##S(shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root)   \
    {                                                                                              \
        return broadcast(OF_TEAM(BYTES), PE_root, true);                                           \
    }                                                                                              \
    int P##collect##S(shmem_team_t team, T *dest, const T *source, size_t nelems)                  \
    {                                                                                              \
        return collect(OF_TEAM(BYTES));                                                            \
    }                                                                                              \
    int P##fcollect##S(shmem_team_t team, T *dest, const T *source, size_t nelems)                 \
    {                                                                                              \
        return fcollect(OF_TEAM(BYTES));                                                           \
    }                                                                                              \
    int P##alltoall##S(shmem_team_t team, T *dest, const T *source, size_t nelems)                 \
    {                                                                                              \
        return alltoall(OF_TEAM(BYTES));                                                           \
    }                                                                                              \
    int P##alltoalls##S(shmem_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, \
                        size_t nelems)                                                             \
    {                                                                                              \
        return alltoalls(OF_TEAM(BYTES), dst, sst, BYTES);                                         \
    }
#define X(A, NAME, T) DEFINE_TEAM(shmem_##NAME##_, , T, sizeof(T))
PEAL_SHMEM_RMA(X, )
#undef X
DEFINE_TEAM(shmem_, mem, void, 1)

#define OF_SET(BYTES)                                                                              \
    COLLECTIVE(((void)pSync, peal_shmem_active_set(HERE, PE_start, logPE_stride, PE_size)), BYTES)
#define DEFINE_SET(BITS, BYTES)                                                                    \
    void shmem_broadcast##BITS(void *dest, const void *source, size_t nelems, int PE_root,         \
                               int PE_start, int logPE_stride, int PE_size, long *pSync)           \
    {                                                                                              \
        (void)broadcast(OF_SET(BYTES), PE_root, false);                                            \
    }                                                                                              \
    void shmem_collect##BITS(void *dest, const void *source, size_t nelems, int PE_start,          \
                             int logPE_stride, int PE_size, long *pSync)                           \
    {                                                                                              \
        (void)collect(OF_SET(BYTES));                                                              \
    }                                                                                              \
    void shmem_fcollect##BITS(void *dest, const void *source, size_t nelems, int PE_start,         \
                              int logPE_stride, int PE_size, long *pSync)                          \
    {                                                                                              \
        (void)fcollect(OF_SET(BYTES));                                                             \
    }                                                                                              \
    void shmem_alltoall##BITS(void *dest, const void *source, size_t nelems, int PE_start,         \
                              int logPE_stride, int PE_size, long *pSync)                          \
    {                                                                                              \
        (void)alltoall(OF_SET(BYTES));                                                             \
    }                                                                                              \
    void shmem_alltoalls##BITS(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,       \
                               size_t nelems, int PE_start, int logPE_stride, int PE_size,         \
                               long *pSync)                                                        \
    {                                                                                              \
        (void)alltoalls(OF_SET(BYTES), dst, sst, BYTES);                                           \
    }
DEFINE_SET(32, 4)
DEFINE_SET(64, 8)

/* ---- reductions ---- */

/* How values of a type are combined: by Peal, or (no such type) by a function of this file. */
struct number {
    int dtype; /* -1: none of Peal's */
    void (*combine)(void *to, const void *from, size_t count, enum peal_reduction op);
};

/* long double is the one type that Peal does not have. */
static void combine_long_double(void *to, const void *from, size_t count, enum peal_reduction op)
{
    long double *a = to;
    const long double *b = from;
    for (size_t i = 0; i < count; i++) {
        if (op == PEAL_SUM)
            a[i] += b[i];
        else if (op == PEAL_PROD)
            a[i] *= b[i];
        else if (op == PEAL_MAX ? b[i] > a[i] : b[i] < a[i])
            a[i] = b[i];
    }
}

/* In the order of PEs. */
static void reduce_here(const struct collective *this, size_t count, const struct number *number,
                        enum peal_reduction op)
{
    int size = this->team->size;
    char *all = take_memory(this->call, (size_t)size, this->bytes > 0 ? this->bytes : 1);
    struct collective gather = *this;
    gather.dest = all;
    (void)fcollect(&gather);
    for (int pe = 1; pe < size; pe++)
        number->combine(all, all + (size_t)pe * this->bytes, count, op);
    memcpy(this->dest, all, this->bytes);
    free(all);
}

static int reduce(const struct collective *this, size_t count, struct number number,
                  enum peal_reduction op)
{
    struct peal_comm *comm = this->team->comm;
    if (number.dtype >= 0)
        log_collective(this, -1, this->bytes, this->bytes);
    if (number.dtype < 0)
        reduce_here(this, count, &number, op);
    else
        peal_shmem_check(this->call, comm,
                         peal_allreduce(comm, this->source, this->dest, count,
                                        (enum peal_dtype)number.dtype, op));
    return 0;
}

#define INTEGER(T)                                                                                 \
    ((T)-1 > 0 ? (sizeof(T) == 1   ? PEAL_U8                                                       \
                  : sizeof(T) == 2 ? PEAL_U16                                                      \
                  : sizeof(T) == 4 ? PEAL_U32                                                      \
                                   : PEAL_U64)                                                     \
               : (sizeof(T) == 1   ? PEAL_I8                                                       \
                  : sizeof(T) == 2 ? PEAL_I16                                                      \
                  : sizeof(T) == 4 ? PEAL_I32                                                      \
                                   : PEAL_I64))
/* Per type, by name. */
#define NUMBER_INTEGER(A, NAME, T)                                                                 \
    static struct number number_##NAME(void) {                                                     \
        return (struct number){INTEGER(T), NULL};                                                  \
    }
PEAL_SHMEM_INTEGERS(NUMBER_INTEGER, )
#define NUMBER_OTHER(NAME, DTYPE, COMBINE)                                                         \
    static struct number number_##NAME(void) {                                                     \
        return (struct number){DTYPE, COMBINE};                                                    \
    }
NUMBER_OTHER(float, PEAL_F32, NULL)
NUMBER_OTHER(double, PEAL_F64, NULL)
NUMBER_OTHER(complexf, PEAL_CF32, NULL)
NUMBER_OTHER(complexd, PEAL_CF64, NULL)
NUMBER_OTHER(longdouble, -1, combine_long_double)

#define OP_and PEAL_AND
#define OP_or PEAL_OR
#define OP_xor PEAL_XOR
#define OP_max PEAL_MAX
#define OP_min PEAL_MIN
#define OP_sum PEAL_SUM
#define OP_prod PEAL_PROD
#define DEFINE_REDUCE(OP, NAME, T)                                                                 \
    int shmem_##NAME##_##OP##_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce)  \
    {                                                                                              \
        size_t nelems = nreduce;                                                                   \
        return reduce(OF_TEAM(sizeof(T)), nreduce, number_##NAME(), OP_##OP);                      \
    }
PEAL_SHMEM_INTEGERS(DEFINE_REDUCE, and)
PEAL_SHMEM_INTEGERS(DEFINE_REDUCE, or)
PEAL_SHMEM_INTEGERS(DEFINE_REDUCE, xor)
PEAL_SHMEM_RMA(DEFINE_REDUCE, max)
PEAL_SHMEM_RMA(DEFINE_REDUCE, min)
PEAL_SHMEM_NUMBERS(DEFINE_REDUCE, sum)
PEAL_SHMEM_NUMBERS(DEFINE_REDUCE, prod)

#define DEFINE_TO_ALL(OP, NAME, T)                                                                 \
    void shmem_##NAME##_##OP##_to_all(T *dest, const T *source, int nreduce, int PE_start,         \
                                      int logPE_stride, int PE_size, T *pWrk, long *pSync)         \
    {                                                                                              \
        size_t nelems = nreduce > 0 ? (size_t)nreduce : 0;                                         \
        (void)pWrk;                                                                                \
        (void)reduce(OF_SET(sizeof(T)), nelems, number_##NAME(), OP_##OP);                         \
    }
PEAL_SHMEM_OLD_INTEGERS(DEFINE_TO_ALL, and)
PEAL_SHMEM_OLD_INTEGERS(DEFINE_TO_ALL, or)
PEAL_SHMEM_OLD_INTEGERS(DEFINE_TO_ALL, xor)
PEAL_SHMEM_OLD_ORDERED(DEFINE_TO_ALL, max)
PEAL_SHMEM_OLD_ORDERED(DEFINE_TO_ALL, min)
PEAL_SHMEM_OLD_NUMBERS(DEFINE_TO_ALL, sum)
PEAL_SHMEM_OLD_NUMBERS(DEFINE_TO_ALL, prod)
