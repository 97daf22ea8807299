/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.5 on Peal: see docs/shmem.md. Libraries: libpeal_shmem.so (pkg-config peal-shmem).
 *
 * The typed functions are rows of the tables below. A table names types, and a DECLARE macro says
 * which functions each of them has; the library defines them from the same tables. */
#ifndef PEAL_SHMEM_H
#define PEAL_SHMEM_H

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <complex>
typedef std::complex<float> peal_shmem_complexf;
typedef std::complex<double> peal_shmem_complexd;
extern "C" {
#else
typedef float _Complex peal_shmem_complexf;
typedef double _Complex peal_shmem_complexd;
#endif

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 5
#define SHMEM_MAX_NAME_LEN 64
#define SHMEM_VENDOR_STRING "Peal"
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING

/* Handles. The structs have a member only because the generic forms below tell contexts from data
 * by what a pointer points to. */
struct peal_shmem_ctx {
    int unused;
};
struct peal_shmem_team;
typedef struct peal_shmem_ctx *shmem_ctx_t;
typedef struct peal_shmem_team *shmem_team_t;
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)2)
typedef struct {
    int num_contexts;
} shmem_team_config_t;

enum { SHMEM_TEAM_NUM_CONTEXTS = 1 };
enum { SHMEM_CTX_SERIALIZED = 1, SHMEM_CTX_PRIVATE = 2, SHMEM_CTX_NOSTORE = 4 };
enum { SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED, SHMEM_THREAD_MULTIPLE };
enum { SHMEM_MALLOC_ATOMICS_REMOTE = 1, SHMEM_MALLOC_SIGNAL_REMOTE = 2 };
enum { SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD };
enum { SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_LE, SHMEM_CMP_LT, SHMEM_CMP_GE };
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_GE SHMEM_CMP_GE

/* Work arrays of the active-set collectives, which Peal does not use. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_SYNC_SIZE 1
#define SHMEM_BARRIER_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

#define PEAL_SHMEM_API __attribute__((visibility("default")))

/* ---- types: X(A, name in functions, type) ---- */

#define PEAL_SHMEM_SIGNED_WORDS(X, A) X(A, int, int) X(A, long, long) X(A, longlong, long long)
#define PEAL_SHMEM_UNSIGNED_WORDS(X, A)                                                            \
    X(A, uint, unsigned int)                                                                       \
    X(A, ulong, unsigned long) X(A, ulonglong, unsigned long long)
#define PEAL_SHMEM_EXACT_WORDS(X, A)                                                               \
    X(A, int32, int32_t) X(A, int64, int64_t) X(A, uint32, uint32_t) X(A, uint64, uint64_t)
#define PEAL_SHMEM_REALS(X, A) X(A, float, float) X(A, double, double)
#define PEAL_SHMEM_SMALL(X, A)                                                                     \
    X(A, char, char)                                                                               \
    X(A, schar, signed char)                                                                       \
    X(A, short, short) X(A, uchar, unsigned char) X(A, ushort, unsigned short)
#define PEAL_SHMEM_EXACT_SMALL(X, A)                                                               \
    X(A, int8, int8_t) X(A, int16, int16_t) X(A, uint8, uint8_t) X(A, uint16, uint16_t)
#define PEAL_SHMEM_COMPLEX(X, A)                                                                   \
    X(A, complexf, peal_shmem_complexf) X(A, complexd, peal_shmem_complexd)

/* Distinct types, for the generic forms; then all names. */
#define PEAL_SHMEM_WORDS(X, A) PEAL_SHMEM_SIGNED_WORDS(X, A) PEAL_SHMEM_UNSIGNED_WORDS(X, A)
#define PEAL_SHMEM_C11_AMO(X, A) PEAL_SHMEM_WORDS(X, A) PEAL_SHMEM_REALS(X, A)
#define PEAL_SHMEM_C11_RMA(X, A)                                                                   \
    PEAL_SHMEM_C11_AMO(X, A) PEAL_SHMEM_SMALL(X, A) X(A, longdouble, long double)
#define PEAL_SHMEM_C11_INTEGERS(X, A) PEAL_SHMEM_WORDS(X, A) PEAL_SHMEM_SMALL(X, A)
#define PEAL_SHMEM_C11_NUMBERS(X, A) PEAL_SHMEM_C11_RMA(X, A) PEAL_SHMEM_COMPLEX(X, A)

#define PEAL_SHMEM_AMO(X, A)                                                                       \
    PEAL_SHMEM_WORDS(X, A)                                                                         \
    PEAL_SHMEM_EXACT_WORDS(X, A) X(A, size, size_t) X(A, ptrdiff, ptrdiff_t)
#define PEAL_SHMEM_EXTENDED_AMO(X, A) PEAL_SHMEM_AMO(X, A) PEAL_SHMEM_REALS(X, A)
#define PEAL_SHMEM_BITWISE_AMO(X, A) PEAL_SHMEM_UNSIGNED_WORDS(X, A) PEAL_SHMEM_EXACT_WORDS(X, A)
#define PEAL_SHMEM_INTEGERS(X, A)                                                                  \
    PEAL_SHMEM_AMO(X, A) PEAL_SHMEM_SMALL(X, A) PEAL_SHMEM_EXACT_SMALL(X, A)
#define PEAL_SHMEM_RMA(X, A)                                                                       \
    PEAL_SHMEM_INTEGERS(X, A) PEAL_SHMEM_REALS(X, A) X(A, longdouble, long double)
#define PEAL_SHMEM_NUMBERS(X, A) PEAL_SHMEM_RMA(X, A) PEAL_SHMEM_COMPLEX(X, A)
#define PEAL_SHMEM_WAITS(X, A) PEAL_SHMEM_AMO(X, A) X(A, short, short) X(A, ushort, unsigned short)
/* Of the active-set reductions. */
#define PEAL_SHMEM_OLD_INTEGERS(X, A) PEAL_SHMEM_SIGNED_WORDS(X, A) X(A, short, short)
#define PEAL_SHMEM_OLD_ORDERED(X, A)                                                               \
    PEAL_SHMEM_OLD_INTEGERS(X, A) PEAL_SHMEM_REALS(X, A) X(A, longdouble, long double)
#define PEAL_SHMEM_OLD_NUMBERS(X, A) PEAL_SHMEM_OLD_ORDERED(X, A) PEAL_SHMEM_COMPLEX(X, A)

/* ---- the library, memory, threads ---- */

PEAL_SHMEM_API void shmem_init(void);
PEAL_SHMEM_API int shmem_init_thread(int requested, int *provided);
PEAL_SHMEM_API void shmem_query_thread(int *provided);
PEAL_SHMEM_API void shmem_finalize(void);
__attribute__((noreturn)) PEAL_SHMEM_API void shmem_global_exit(int status);
PEAL_SHMEM_API int shmem_my_pe(void);
PEAL_SHMEM_API int shmem_n_pes(void);
PEAL_SHMEM_API int shmem_pe_accessible(int pe);
PEAL_SHMEM_API int shmem_addr_accessible(const void *addr, int pe);
PEAL_SHMEM_API void *shmem_ptr(const void *dest, int pe);
PEAL_SHMEM_API void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe);
PEAL_SHMEM_API void shmem_info_get_version(int *major, int *minor);
PEAL_SHMEM_API void shmem_info_get_name(char *name);
PEAL_SHMEM_API void shmem_pcontrol(int level, ...);

PEAL_SHMEM_API void *shmem_malloc(size_t size);
PEAL_SHMEM_API void *shmem_malloc_with_hints(size_t size, long hints);
PEAL_SHMEM_API void *shmem_calloc(size_t count, size_t size);
PEAL_SHMEM_API void *shmem_align(size_t alignment, size_t size);
PEAL_SHMEM_API void *shmem_realloc(void *ptr, size_t size);
PEAL_SHMEM_API void shmem_free(void *ptr);

/* Names of earlier versions. */
PEAL_SHMEM_API void start_pes(int npes);
PEAL_SHMEM_API int _my_pe(void);
PEAL_SHMEM_API int _num_pes(void);
PEAL_SHMEM_API void *shmalloc(size_t size);
PEAL_SHMEM_API void *shmemalign(size_t alignment, size_t size);
PEAL_SHMEM_API void *shrealloc(void *ptr, size_t size);
PEAL_SHMEM_API void shfree(void *ptr);
PEAL_SHMEM_API void shmem_clear_cache_inv(void);
PEAL_SHMEM_API void shmem_set_cache_inv(void);
PEAL_SHMEM_API void shmem_clear_cache_line_inv(void *dest);
PEAL_SHMEM_API void shmem_set_cache_line_inv(void *dest);
PEAL_SHMEM_API void shmem_udcflush(void);
PEAL_SHMEM_API void shmem_udcflush_line(void *dest);

/* ---- teams and contexts ---- */

PEAL_SHMEM_API int shmem_team_my_pe(shmem_team_t team);
PEAL_SHMEM_API int shmem_team_n_pes(shmem_team_t team);
PEAL_SHMEM_API int shmem_team_get_config(shmem_team_t team, long config_mask,
                                         shmem_team_config_t *config);
PEAL_SHMEM_API int shmem_team_translate_pe(shmem_team_t src_team, int src_pe,
                                           shmem_team_t dest_team);
PEAL_SHMEM_API int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                                            const shmem_team_config_t *config, long config_mask,
                                            shmem_team_t *new_team);
PEAL_SHMEM_API int shmem_team_split_2d(shmem_team_t parent, int xrange,
                                       const shmem_team_config_t *xaxis_config, long xaxis_mask,
                                       shmem_team_t *xaxis_team,
                                       const shmem_team_config_t *yaxis_config, long yaxis_mask,
                                       shmem_team_t *yaxis_team);
PEAL_SHMEM_API void shmem_team_destroy(shmem_team_t team);
PEAL_SHMEM_API int shmem_ctx_create(long options, shmem_ctx_t *ctx);
PEAL_SHMEM_API int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx);
PEAL_SHMEM_API int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team);
PEAL_SHMEM_API void shmem_ctx_destroy(shmem_ctx_t ctx);

/* ---- order, barriers, locks ---- */

PEAL_SHMEM_API void shmem_fence(void);
PEAL_SHMEM_API void shmem_ctx_fence(shmem_ctx_t ctx);
PEAL_SHMEM_API void shmem_quiet(void);
PEAL_SHMEM_API void shmem_ctx_quiet(shmem_ctx_t ctx);
PEAL_SHMEM_API void shmem_barrier_all(void);
PEAL_SHMEM_API void shmem_sync_all(void);
PEAL_SHMEM_API int shmem_team_sync(shmem_team_t team);
PEAL_SHMEM_API void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long *pSync);
PEAL_SHMEM_API void shmem_sync(int PE_start, int logPE_stride, int PE_size, long *pSync);
PEAL_SHMEM_API void shmem_set_lock(long *lock);
PEAL_SHMEM_API void shmem_clear_lock(long *lock);
PEAL_SHMEM_API int shmem_test_lock(long *lock);

/* ---- puts and gets ---- */

/* Each with and without a context: P is the prefix, C the context parameter. */
#define PEAL_SHMEM_DECLARE_MOVES(P, C, NAME, T)                                                    \
    PEAL_SHMEM_API void P##put##NAME C(T *dest, const T *source, size_t nelems, int pe);           \
    PEAL_SHMEM_API void P##get##NAME C(T *dest, const T *source, size_t nelems, int pe);           \
    PEAL_SHMEM_API void P##put##NAME##_nbi C(T *dest, const T *source, size_t nelems, int pe);     \
    PEAL_SHMEM_API void P##get##NAME##_nbi C(T *dest, const T *source, size_t nelems, int pe);     \
    PEAL_SHMEM_API void P##put##NAME##_signal C(T *dest, const T *source, size_t nelems,           \
                                                uint64_t *sig_addr, uint64_t signal, int sig_op,   \
                                                int pe);                                           \
    PEAL_SHMEM_API void P##put##NAME##_signal_nbi C(T *dest, const T *source, size_t nelems,       \
                                                    uint64_t *sig_addr, uint64_t signal,           \
                                                    int sig_op, int pe);
#define PEAL_SHMEM_DECLARE_STRIDED(P, C, NAME, T)                                                  \
    PEAL_SHMEM_API void P##iput##NAME C(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,    \
                                        size_t nelems, int pe);                                    \
    PEAL_SHMEM_API void P##iget##NAME C(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,    \
                                        size_t nelems, int pe);
#define PEAL_SHMEM_CTX(...) (shmem_ctx_t ctx, __VA_ARGS__)
#define PEAL_SHMEM_NO_CTX(...) (__VA_ARGS__)

#define PEAL_SHMEM_DECLARE_RMA(P, C, T)                                                            \
    PEAL_SHMEM_DECLARE_MOVES(P, C, , T)                                                            \
    PEAL_SHMEM_DECLARE_STRIDED(P, C, , T)                                                          \
    PEAL_SHMEM_API void P##p C(T *dest, T value, int pe);                                          \
    PEAL_SHMEM_API T P##g C(const T *source, int pe);
#define PEAL_SHMEM_X(A, NAME, T)                                                                   \
    PEAL_SHMEM_DECLARE_RMA(shmem_##NAME##_, PEAL_SHMEM_NO_CTX, T)                                  \
    PEAL_SHMEM_DECLARE_RMA(shmem_ctx_##NAME##_, PEAL_SHMEM_CTX, T)
PEAL_SHMEM_RMA(PEAL_SHMEM_X, )
#undef PEAL_SHMEM_X

/* By size: in words of a number of bits, or in bytes. */
#define PEAL_SHMEM_SIZES(X, A) X(A, 8, 1) X(A, 16, 2) X(A, 32, 4) X(A, 64, 8) X(A, 128, 16)
#define PEAL_SHMEM_X(A, NAME, BYTES)                                                               \
    PEAL_SHMEM_DECLARE_MOVES(shmem_, PEAL_SHMEM_NO_CTX, NAME, void)                                \
    PEAL_SHMEM_DECLARE_MOVES(shmem_ctx_, PEAL_SHMEM_CTX, NAME, void)                               \
    PEAL_SHMEM_DECLARE_STRIDED(shmem_, PEAL_SHMEM_NO_CTX, NAME, void)                              \
    PEAL_SHMEM_DECLARE_STRIDED(shmem_ctx_, PEAL_SHMEM_CTX, NAME, void)
PEAL_SHMEM_SIZES(PEAL_SHMEM_X, )
#undef PEAL_SHMEM_X
PEAL_SHMEM_DECLARE_MOVES(shmem_, PEAL_SHMEM_NO_CTX, mem, void)
PEAL_SHMEM_DECLARE_MOVES(shmem_ctx_, PEAL_SHMEM_CTX, mem, void)

/* ---- atomic operations ---- */

#define PEAL_SHMEM_DECLARE_EXTENDED(P, C, T)                                                       \
    PEAL_SHMEM_API T P##fetch C(const T *source, int pe);                                          \
    PEAL_SHMEM_API void P##set C(T *dest, T value, int pe);                                        \
    PEAL_SHMEM_API T P##swap C(T *dest, T value, int pe);                                          \
    PEAL_SHMEM_API void P##fetch_nbi C(T *fetch, const T *source, int pe);                         \
    PEAL_SHMEM_API void P##swap_nbi C(T *fetch, T *dest, T value, int pe);
#define PEAL_SHMEM_DECLARE_AMO(P, C, T)                                                            \
    PEAL_SHMEM_API T P##compare_swap C(T *dest, T cond, T value, int pe);                          \
    PEAL_SHMEM_API void P##compare_swap_nbi C(T *fetch, T *dest, T cond, T value, int pe);         \
    PEAL_SHMEM_API T P##fetch_inc C(T *dest, int pe);                                              \
    PEAL_SHMEM_API void P##fetch_inc_nbi C(T *fetch, T *dest, int pe);                             \
    PEAL_SHMEM_API void P##inc C(T *dest, int pe);                                                 \
    PEAL_SHMEM_DECLARE_CHANGE(P, C, T, add)
#define PEAL_SHMEM_DECLARE_CHANGE(P, C, T, OP)                                                     \
    PEAL_SHMEM_API void P##OP C(T *dest, T value, int pe);                                         \
    PEAL_SHMEM_API T P##fetch_##OP C(T *dest, T value, int pe);                                    \
    PEAL_SHMEM_API void P##fetch_##OP##_nbi C(T *fetch, T *dest, T value, int pe);
#define PEAL_SHMEM_DECLARE_BITWISE(P, C, T)                                                        \
    PEAL_SHMEM_DECLARE_CHANGE(P, C, T, and)                                                        \
    PEAL_SHMEM_DECLARE_CHANGE(P, C, T, or)                                                         \
    PEAL_SHMEM_DECLARE_CHANGE(P, C, T, xor)
#define PEAL_SHMEM_X(DECLARE, NAME, T)                                                             \
    DECLARE(shmem_##NAME##_atomic_, PEAL_SHMEM_NO_CTX, T)                                          \
    DECLARE(shmem_ctx_##NAME##_atomic_, PEAL_SHMEM_CTX, T)
PEAL_SHMEM_EXTENDED_AMO(PEAL_SHMEM_X, PEAL_SHMEM_DECLARE_EXTENDED)
PEAL_SHMEM_AMO(PEAL_SHMEM_X, PEAL_SHMEM_DECLARE_AMO)
PEAL_SHMEM_BITWISE_AMO(PEAL_SHMEM_X, PEAL_SHMEM_DECLARE_BITWISE)
#undef PEAL_SHMEM_X

/* Names of earlier versions. */
#define PEAL_SHMEM_X(A, NAME, T)                                                                   \
    PEAL_SHMEM_API T shmem_##NAME##_fetch(const T *source, int pe);                                \
    PEAL_SHMEM_API void shmem_##NAME##_set(T *dest, T value, int pe);                              \
    PEAL_SHMEM_API T shmem_##NAME##_swap(T *dest, T value, int pe);
PEAL_SHMEM_SIGNED_WORDS(PEAL_SHMEM_X, )
PEAL_SHMEM_REALS(PEAL_SHMEM_X, )
#undef PEAL_SHMEM_X
#define PEAL_SHMEM_X(A, NAME, T)                                                                   \
    PEAL_SHMEM_API T shmem_##NAME##_cswap(T *dest, T cond, T value, int pe);                       \
    PEAL_SHMEM_API T shmem_##NAME##_finc(T *dest, int pe);                                         \
    PEAL_SHMEM_API void shmem_##NAME##_inc(T *dest, int pe);                                       \
    PEAL_SHMEM_API T shmem_##NAME##_fadd(T *dest, T value, int pe);                                \
    PEAL_SHMEM_API void shmem_##NAME##_add(T *dest, T value, int pe);
PEAL_SHMEM_SIGNED_WORDS(PEAL_SHMEM_X, )
#undef PEAL_SHMEM_X

/* ---- waiting ---- */

PEAL_SHMEM_API uint64_t shmem_signal_fetch(const uint64_t *sig_addr);
PEAL_SHMEM_API uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value);
#define PEAL_SHMEM_X(A, NAME, T)                                                                   \
    PEAL_SHMEM_API void shmem_##NAME##_wait(volatile T *ivar, T cmp_value);                        \
    PEAL_SHMEM_API void shmem_##NAME##_wait_until(volatile T *ivar, int cmp, T cmp_value);         \
    PEAL_SHMEM_API int shmem_##NAME##_test(volatile T *ivar, int cmp, T cmp_value);                \
    PEAL_SHMEM_API void shmem_##NAME##_wait_until_all(volatile T *ivars, size_t nelems,            \
                                                      const int *status, int cmp, T cmp_value);    \
    PEAL_SHMEM_API size_t shmem_##NAME##_wait_until_any(volatile T *ivars, size_t nelems,          \
                                                        const int *status, int cmp, T cmp_value);  \
    PEAL_SHMEM_API size_t shmem_##NAME##_wait_until_some(volatile T *ivars, size_t nelems,         \
                                                         size_t *indices, const int *status,       \
                                                         int cmp, T cmp_value);                    \
    PEAL_SHMEM_API int shmem_##NAME##_test_all(volatile T *ivars, size_t nelems,                   \
                                               const int *status, int cmp, T cmp_value);           \
    PEAL_SHMEM_API size_t shmem_##NAME##_test_any(volatile T *ivars, size_t nelems,                \
                                                  const int *status, int cmp, T cmp_value);        \
    PEAL_SHMEM_API size_t shmem_##NAME##_test_some(volatile T *ivars, size_t nelems,               \
                                                   size_t *indices, const int *status, int cmp,    \
                                                   T cmp_value);                                   \
    PEAL_SHMEM_API void shmem_##NAME##_wait_until_all_vector(                                      \
        volatile T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values);              \
    PEAL_SHMEM_API size_t shmem_##NAME##_wait_until_any_vector(                                    \
        volatile T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values);              \
    PEAL_SHMEM_API size_t shmem_##NAME##_wait_until_some_vector(                                   \
        volatile T *ivars, size_t nelems, size_t *indices, const int *status, int cmp,             \
        T *cmp_values);                                                                            \
    PEAL_SHMEM_API int shmem_##NAME##_test_all_vector(volatile T *ivars, size_t nelems,            \
                                                      const int *status, int cmp, T *cmp_values);  \
    PEAL_SHMEM_API size_t shmem_##NAME##_test_any_vector(                                          \
        volatile T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values);              \
    PEAL_SHMEM_API size_t shmem_##NAME##_test_some_vector(volatile T *ivars, size_t nelems,        \
                                                          size_t *indices, const int *status,      \
                                                          int cmp, T *cmp_values);
PEAL_SHMEM_WAITS(PEAL_SHMEM_X, )
#undef PEAL_SHMEM_X
/* Of earlier versions: the type is long. */
PEAL_SHMEM_API void shmem_wait(volatile long *ivar, long cmp_value);
PEAL_SHMEM_API void shmem_wait_until(volatile long *ivar, int cmp, long cmp_value);

/* ---- collectives of teams ---- */

#define PEAL_SHMEM_DECLARE_TEAM(P, T)                                                              \
    PEAL_SHMEM_API int P##broadcast(shmem_team_t team, T *dest, const T *source, size_t nelems,    \
                                    int PE_root);                                                  \
    PEAL_SHMEM_API int P##collect(shmem_team_t team, T *dest, const T *source, size_t nelems);     \
    PEAL_SHMEM_API int P##fcollect(shmem_team_t team, T *dest, const T *source, size_t nelems);    \
    PEAL_SHMEM_API int P##alltoall(shmem_team_t team, T *dest, const T *source, size_t nelems);    \
    PEAL_SHMEM_API int P##alltoalls(shmem_team_t team, T *dest, const T *source, ptrdiff_t dst,    \
                                    ptrdiff_t sst, size_t nelems);
#define PEAL_SHMEM_X(A, NAME, T) PEAL_SHMEM_DECLARE_TEAM(shmem_##NAME##_, T)
PEAL_SHMEM_RMA(PEAL_SHMEM_X, )
#undef PEAL_SHMEM_X
PEAL_SHMEM_API int shmem_broadcastmem(shmem_team_t team, void *dest, const void *source,
                                      size_t nelems, int PE_root);
PEAL_SHMEM_API int shmem_collectmem(shmem_team_t team, void *dest, const void *source,
                                    size_t nelems);
PEAL_SHMEM_API int shmem_fcollectmem(shmem_team_t team, void *dest, const void *source,
                                     size_t nelems);
PEAL_SHMEM_API int shmem_alltoallmem(shmem_team_t team, void *dest, const void *source,
                                     size_t nelems);
PEAL_SHMEM_API int shmem_alltoallsmem(shmem_team_t team, void *dest, const void *source,
                                      ptrdiff_t dst, ptrdiff_t sst, size_t nelems);

#define PEAL_SHMEM_DECLARE_REDUCE(OP, NAME, T)                                                     \
    PEAL_SHMEM_API int shmem_##NAME##_##OP##_reduce(shmem_team_t team, T *dest, const T *source,   \
                                                    size_t nreduce);
PEAL_SHMEM_INTEGERS(PEAL_SHMEM_DECLARE_REDUCE, and)
PEAL_SHMEM_INTEGERS(PEAL_SHMEM_DECLARE_REDUCE, or)
PEAL_SHMEM_INTEGERS(PEAL_SHMEM_DECLARE_REDUCE, xor)
PEAL_SHMEM_RMA(PEAL_SHMEM_DECLARE_REDUCE, max)
PEAL_SHMEM_RMA(PEAL_SHMEM_DECLARE_REDUCE, min)
PEAL_SHMEM_NUMBERS(PEAL_SHMEM_DECLARE_REDUCE, sum)
PEAL_SHMEM_NUMBERS(PEAL_SHMEM_DECLARE_REDUCE, prod)

/* ---- collectives of active sets, of earlier versions ---- */

#define PEAL_SHMEM_X(A, BITS, BYTES)                                                               \
    PEAL_SHMEM_API void shmem_broadcast##BITS(void *dest, const void *source, size_t nelems,       \
                                              int PE_root, int PE_start, int logPE_stride,         \
                                              int PE_size, long *pSync);                           \
    PEAL_SHMEM_API void shmem_collect##BITS(void *dest, const void *source, size_t nelems,         \
                                            int PE_start, int logPE_stride, int PE_size,           \
                                            long *pSync);                                          \
    PEAL_SHMEM_API void shmem_fcollect##BITS(void *dest, const void *source, size_t nelems,        \
                                             int PE_start, int logPE_stride, int PE_size,          \
                                             long *pSync);                                         \
    PEAL_SHMEM_API void shmem_alltoall##BITS(void *dest, const void *source, size_t nelems,        \
                                             int PE_start, int logPE_stride, int PE_size,          \
                                             long *pSync);                                         \
    PEAL_SHMEM_API void shmem_alltoalls##BITS(void *dest, const void *source, ptrdiff_t dst,       \
                                              ptrdiff_t sst, size_t nelems, int PE_start,          \
                                              int logPE_stride, int PE_size, long *pSync);
PEAL_SHMEM_X(, 32, 4)
PEAL_SHMEM_X(, 64, 8)
#undef PEAL_SHMEM_X

#define PEAL_SHMEM_DECLARE_TO_ALL(OP, NAME, T)                                                     \
    PEAL_SHMEM_API void shmem_##NAME##_##OP##_to_all(T *dest, const T *source, int nreduce,        \
                                                     int PE_start, int logPE_stride, int PE_size,  \
                                                     T *pWrk, long *pSync);
PEAL_SHMEM_OLD_INTEGERS(PEAL_SHMEM_DECLARE_TO_ALL, and)
PEAL_SHMEM_OLD_INTEGERS(PEAL_SHMEM_DECLARE_TO_ALL, or)
PEAL_SHMEM_OLD_INTEGERS(PEAL_SHMEM_DECLARE_TO_ALL, xor)
PEAL_SHMEM_OLD_ORDERED(PEAL_SHMEM_DECLARE_TO_ALL, max)
PEAL_SHMEM_OLD_ORDERED(PEAL_SHMEM_DECLARE_TO_ALL, min)
PEAL_SHMEM_OLD_NUMBERS(PEAL_SHMEM_DECLARE_TO_ALL, sum)
PEAL_SHMEM_OLD_NUMBERS(PEAL_SHMEM_DECLARE_TO_ALL, prod)

/* ---- generic forms ---- */

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L

#define PEAL_SHMEM_1(a, ...) a
#define PEAL_SHMEM_2(a, b, ...) b
#define PEAL_SHMEM_PICK(OP, NAME, T)                                                               \
    T:                                                                                             \
    shmem_##NAME##_##OP,
#define PEAL_SHMEM_PICK_CTX(OP, NAME, T)                                                           \
    T * : shmem_ctx_##NAME##_##OP,                                                                 \
          const T * : shmem_ctx_##NAME##_##OP,                                                     \
                      volatile T * : shmem_ctx_##NAME##_##OP,
/* By what the first argument points to, or the second: a context, or a team, comes first. */
#define PEAL_SHMEM_FIRST(TYPES, OP, ...)                                                           \
    _Generic(*(PEAL_SHMEM_1(__VA_ARGS__, 0)), TYPES(PEAL_SHMEM_PICK, OP) default : 0)(__VA_ARGS__)
#define PEAL_SHMEM_SECOND(TYPES, OP, ...)                                                          \
    _Generic(*(PEAL_SHMEM_2(__VA_ARGS__, 0)), TYPES(PEAL_SHMEM_PICK, OP) default : 0)(__VA_ARGS__)
#define PEAL_SHMEM_EITHER(TYPES, OP, ...)                                                          \
    _Generic(                                                                                      \
        *(PEAL_SHMEM_1(__VA_ARGS__, 0)), TYPES(PEAL_SHMEM_PICK, OP) struct peal_shmem_ctx          \
        : _Generic((PEAL_SHMEM_2(__VA_ARGS__, 0)), TYPES(PEAL_SHMEM_PICK_CTX, OP) default : 0),    \
          default : 0)(__VA_ARGS__)

#define shmem_put(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, put, __VA_ARGS__)
#define shmem_get(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, get, __VA_ARGS__)
#define shmem_put_nbi(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, get_nbi, __VA_ARGS__)
#define shmem_put_signal(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, put_signal_nbi, __VA_ARGS__)
#define shmem_iput(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, iput, __VA_ARGS__)
#define shmem_iget(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, iget, __VA_ARGS__)
#define shmem_p(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, p, __VA_ARGS__)
#define shmem_g(...) PEAL_SHMEM_EITHER(PEAL_SHMEM_C11_RMA, g, __VA_ARGS__)

#define PEAL_SHMEM_ATOMIC(TYPES, OP, ...) PEAL_SHMEM_EITHER(TYPES, atomic_##OP, __VA_ARGS__)
#define shmem_atomic_fetch(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_AMO, fetch, __VA_ARGS__)
#define shmem_atomic_set(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_AMO, set, __VA_ARGS__)
#define shmem_atomic_swap(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_AMO, swap, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_AMO, fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_AMO, swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap(...)                                                             \
    PEAL_SHMEM_ATOMIC(PEAL_SHMEM_WORDS, compare_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...)                                                         \
    PEAL_SHMEM_ATOMIC(PEAL_SHMEM_WORDS, compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_WORDS, fetch_inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...)                                                            \
    PEAL_SHMEM_ATOMIC(PEAL_SHMEM_WORDS, fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_inc(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_WORDS, inc, __VA_ARGS__)
#define shmem_atomic_add(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_WORDS, add, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_WORDS, fetch_add, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...)                                                            \
    PEAL_SHMEM_ATOMIC(PEAL_SHMEM_WORDS, fetch_add_nbi, __VA_ARGS__)
/* int32_t and int64_t are the signed words that have bitwise operations. */
#define PEAL_SHMEM_C11_BITWISE(X, A)                                                               \
    PEAL_SHMEM_UNSIGNED_WORDS(X, A) X(A, int32, int32_t) X(A, int64, int64_t)
#define shmem_atomic_and(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_BITWISE, and, __VA_ARGS__)
#define shmem_atomic_or(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_BITWISE, or, __VA_ARGS__)
#define shmem_atomic_xor(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_BITWISE, xor, __VA_ARGS__)
#define shmem_atomic_fetch_and(...)                                                                \
    PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_BITWISE, fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_BITWISE, fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...)                                                                \
    PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_BITWISE, fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...)                                                            \
    PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_BITWISE, fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...)                                                             \
    PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_BITWISE, fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...)                                                            \
    PEAL_SHMEM_ATOMIC(PEAL_SHMEM_C11_BITWISE, fetch_xor_nbi, __VA_ARGS__)
#define PEAL_SHMEM_OLD_EXTENDED(X, A) PEAL_SHMEM_SIGNED_WORDS(X, A) PEAL_SHMEM_REALS(X, A)
#define shmem_fetch(...) PEAL_SHMEM_FIRST(PEAL_SHMEM_OLD_EXTENDED, fetch, __VA_ARGS__)
#define shmem_set(...) PEAL_SHMEM_FIRST(PEAL_SHMEM_OLD_EXTENDED, set, __VA_ARGS__)
#define shmem_swap(...) PEAL_SHMEM_FIRST(PEAL_SHMEM_OLD_EXTENDED, swap, __VA_ARGS__)
#define shmem_cswap(...) PEAL_SHMEM_FIRST(PEAL_SHMEM_SIGNED_WORDS, cswap, __VA_ARGS__)
#define shmem_finc(...) PEAL_SHMEM_FIRST(PEAL_SHMEM_SIGNED_WORDS, finc, __VA_ARGS__)
#define shmem_inc(...) PEAL_SHMEM_FIRST(PEAL_SHMEM_SIGNED_WORDS, inc, __VA_ARGS__)
#define shmem_fadd(...) PEAL_SHMEM_FIRST(PEAL_SHMEM_SIGNED_WORDS, fadd, __VA_ARGS__)
#define shmem_add(...) PEAL_SHMEM_FIRST(PEAL_SHMEM_SIGNED_WORDS, add, __VA_ARGS__)

#define PEAL_SHMEM_C11_WAITS(X, A)                                                                 \
    PEAL_SHMEM_WORDS(X, A) X(A, short, short) X(A, ushort, unsigned short)
#define PEAL_SHMEM_WAIT(OP, ...) PEAL_SHMEM_FIRST(PEAL_SHMEM_C11_WAITS, OP, __VA_ARGS__)
#define shmem_wait_until(...) PEAL_SHMEM_WAIT(wait_until, __VA_ARGS__)
#define shmem_wait_until_all(...) PEAL_SHMEM_WAIT(wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...) PEAL_SHMEM_WAIT(wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...) PEAL_SHMEM_WAIT(wait_until_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...) PEAL_SHMEM_WAIT(wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...) PEAL_SHMEM_WAIT(wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) PEAL_SHMEM_WAIT(wait_until_some_vector, __VA_ARGS__)
#define shmem_test(...) PEAL_SHMEM_WAIT(test, __VA_ARGS__)
#define shmem_test_all(...) PEAL_SHMEM_WAIT(test_all, __VA_ARGS__)
#define shmem_test_any(...) PEAL_SHMEM_WAIT(test_any, __VA_ARGS__)
#define shmem_test_some(...) PEAL_SHMEM_WAIT(test_some, __VA_ARGS__)
#define shmem_test_all_vector(...) PEAL_SHMEM_WAIT(test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...) PEAL_SHMEM_WAIT(test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...) PEAL_SHMEM_WAIT(test_some_vector, __VA_ARGS__)

#define shmem_broadcast(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_RMA, broadcast, __VA_ARGS__)
#define shmem_collect(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_RMA, collect, __VA_ARGS__)
#define shmem_fcollect(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_RMA, fcollect, __VA_ARGS__)
#define shmem_alltoall(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_RMA, alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_RMA, alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_INTEGERS, and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_INTEGERS, or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_INTEGERS, xor_reduce, __VA_ARGS__)
#define shmem_max_reduce(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_RMA, max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_RMA, min_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_NUMBERS, sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) PEAL_SHMEM_SECOND(PEAL_SHMEM_C11_NUMBERS, prod_reduce, __VA_ARGS__)
/* Of a team, with one argument; of an active set, with four. */
#define PEAL_SHMEM_5(a, b, c, d, e, ...) e
#define shmem_sync(...) PEAL_SHMEM_5(__VA_ARGS__, shmem_sync, 0, 0, shmem_team_sync, 0)(__VA_ARGS__)

#endif

#ifdef __cplusplus
}
/* Complex numbers in C's form, which compilers have in C++ too: the same bits. */
#define PEAL_SHMEM_X(OP, NAME, T)                                                                  \
    __extension__ static inline int shmem_complex##NAME##_##OP##_reduce(                           \
        shmem_team_t team, T _Complex *dest, const T _Complex *source, size_t nreduce)             \
    {                                                                                              \
        return shmem_complex##NAME##_##OP##_reduce(                                                \
            team, reinterpret_cast<std::complex<T> *>(dest),                                       \
            reinterpret_cast<const std::complex<T> *>(source), nreduce);                           \
    }                                                                                              \
    __extension__ static inline void shmem_complex##NAME##_##OP##_to_all(                          \
        T _Complex *dest, const T _Complex *source, int nreduce, int PE_start, int logPE_stride,   \
        int PE_size, T _Complex *pWrk, long *pSync)                                                \
    {                                                                                              \
        shmem_complex##NAME##_##OP##_to_all(reinterpret_cast<std::complex<T> *>(dest),             \
                                            reinterpret_cast<const std::complex<T> *>(source),     \
                                            nreduce, PE_start, logPE_stride, PE_size,              \
                                            reinterpret_cast<std::complex<T> *>(pWrk), pSync);     \
    }
PEAL_SHMEM_X(sum, f, float)
PEAL_SHMEM_X(prod, f, float)
PEAL_SHMEM_X(sum, d, double)
PEAL_SHMEM_X(prod, d, double)
#undef PEAL_SHMEM_X
#endif
#endif
