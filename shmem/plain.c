/* SPDX-License-Identifier: Apache-2.0 */
/* Plain loads and stores of a program that peal cc has compiled: the compiler reports them through
 * the functions of its thread sanitizer, whose own library is not linked. Those of symmetric memory,
 * and of local memory that an operation under way uses, are logged. */
#include "job.h"

#include <string.h>

#define API __attribute__((visibility("default")))

static void note(const void *from, const void *at, size_t bytes, bool writes)
{
    if (!peal_shmem_is_logged())
        return;
    /* What another thread does is refused, wherever: nothing here shows what orders it. */
    if (!peal_shmem_is_second_thread() && !peal_shmem_find(at) && !peal_shmem_is_direct(at) &&
        !peal_shmem_is_local(at, bytes))
        return;
    peal_shmem_log_access(from, at, bytes, writes);
}

#define ACCESS(N)                                                                                  \
    API void __tsan_read##N(void *at);                                                             \
    API void __tsan_read##N(void *at)                                                              \
    {                                                                                              \
        note(__builtin_return_address(0), at, N, false);                                           \
    }                                                                                              \
    API void __tsan_write##N(void *at);                                                            \
    API void __tsan_write##N(void *at)                                                             \
    {                                                                                              \
        note(__builtin_return_address(0), at, N, true);                                            \
    }                                                                                              \
    API void __tsan_unaligned_read##N(void *at);                                                   \
    API void __tsan_unaligned_read##N(void *at)                                                    \
    {                                                                                              \
        note(__builtin_return_address(0), at, N, false);                                           \
    }                                                                                              \
    API void __tsan_unaligned_write##N(void *at);                                                  \
    API void __tsan_unaligned_write##N(void *at)                                                   \
    {                                                                                              \
        note(__builtin_return_address(0), at, N, true);                                            \
    }                                                                                              \
    API void __tsan_volatile_read##N(void *at);                                                    \
    API void __tsan_volatile_read##N(void *at)                                                     \
    {                                                                                              \
        note(__builtin_return_address(0), at, N, false);                                           \
    }                                                                                              \
    API void __tsan_volatile_write##N(void *at);                                                   \
    API void __tsan_volatile_write##N(void *at)                                                    \
    {                                                                                              \
        note(__builtin_return_address(0), at, N, true);                                            \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

API void __tsan_read_range(void *at, size_t bytes);
API void __tsan_read_range(void *at, size_t bytes)
{
    note(__builtin_return_address(0), at, bytes, false);
}

API void __tsan_write_range(void *at, size_t bytes);
API void __tsan_write_range(void *at, size_t bytes)
{
    note(__builtin_return_address(0), at, bytes, true);
}

/* ---- C11 atomics: done here, and logged where others may see the word ---- */

static void note_atomic(const void *from, const volatile void *word, size_t bytes)
{
    const void *at = (const void *)(uintptr_t)word;
    if (peal_shmem_is_logged() && (peal_shmem_is_second_thread() || peal_shmem_find(at) ||
                                   peal_shmem_is_direct(at) || peal_shmem_is_local(at, bytes)))
        peal_shmem_log(&(const struct peal_shmem_call){"ATOMIC", from}, "own_atomic %p %zu", at,
                       bytes);
}

/* Orders are those of the strongest. */
#define FETCH(BITS, T, NAME)                                                                       \
    API T __tsan_atomic##BITS##_fetch_##NAME(volatile T *at, T value, int order);                  \
    API T __tsan_atomic##BITS##_fetch_##NAME(volatile T *at, T value, int order)                   \
    {                                                                                              \
        (void)order;                                                                               \
        note_atomic(__builtin_return_address(0), at, sizeof *at);                                  \
        return __atomic_fetch_##NAME(at, value, __ATOMIC_SEQ_CST);                                 \
    }
#define COMPARE(BITS, T, NAME)                                                                     \
    API int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile T *at, T *expected, T desired,  \
                                                          int order, int other);                   \
    API int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile T *at, T *expected, T desired,  \
                                                          int order, int other)                    \
    {                                                                                              \
        (void)order, (void)other;                                                                  \
        note_atomic(__builtin_return_address(0), at, sizeof *at);                                  \
        return __atomic_compare_exchange_n(at, expected, desired, 0, __ATOMIC_SEQ_CST,             \
                                           __ATOMIC_SEQ_CST);                                      \
    }
#define ATOMIC(BITS, T)                                                                            \
    API T __tsan_atomic##BITS##_load(const volatile T *at, int order);                             \
    API T __tsan_atomic##BITS##_load(const volatile T *at, int order)                              \
    {                                                                                              \
        (void)order;                                                                               \
        note_atomic(__builtin_return_address(0), at, sizeof *at);                                  \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                              \
    }                                                                                              \
    API void __tsan_atomic##BITS##_store(volatile T *at, T value, int order);                      \
    API void __tsan_atomic##BITS##_store(volatile T *at, T value, int order)                       \
    {                                                                                              \
        (void)order;                                                                               \
        note_atomic(__builtin_return_address(0), at, sizeof *at);                                  \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                             \
    }                                                                                              \
    API T __tsan_atomic##BITS##_exchange(volatile T *at, T value, int order);                      \
    API T __tsan_atomic##BITS##_exchange(volatile T *at, T value, int order)                       \
    {                                                                                              \
        (void)order;                                                                               \
        note_atomic(__builtin_return_address(0), at, sizeof *at);                                  \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                              \
    FETCH(BITS, T, add)                                                                            \
    FETCH(BITS, T, sub)                                                                            \
    FETCH(BITS, T, and)                                                                            \
    FETCH(BITS, T, or)                                                                             \
    FETCH(BITS, T, xor)                                                                            \
    FETCH(BITS, T, nand)                                                                           \
    COMPARE(BITS, T, strong)                                                                       \
    COMPARE(BITS, T, weak)
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

API void __tsan_atomic_thread_fence(int order);
API void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

API void __tsan_atomic_signal_fence(int order);
API void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- what else the compiler calls ---- */

API void __tsan_init(void);
API void __tsan_init(void)
{
    peal_shmem_log_sees_plain();
}

API void __tsan_func_entry(void *from);
API void __tsan_func_entry(void *from)
{
    (void)from;
    if (peal_shmem_is_logged() && peal_shmem_is_second_thread())
        note(__builtin_return_address(0), NULL, 0, false);
}

API void __tsan_func_exit(void);
API void __tsan_func_exit(void)
{
}

/* The linker sends the program's calls here (--wrap). */
API void *__wrap_memcpy(void *to, const void *from, size_t bytes);
API void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    note(__builtin_return_address(0), from, bytes, false);
    note(__builtin_return_address(0), to, bytes, true);
    return memcpy(to, from, bytes);
}

API void *__wrap_memmove(void *to, const void *from, size_t bytes);
API void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    note(__builtin_return_address(0), from, bytes, false);
    note(__builtin_return_address(0), to, bytes, true);
    return memmove(to, from, bytes);
}

API void *__wrap_memset(void *to, int value, size_t bytes);
API void *__wrap_memset(void *to, int value, size_t bytes)
{
    note(__builtin_return_address(0), to, bytes, true);
    return memset(to, value, bytes);
}
