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
    if (!peal_shmem_find(at) && !peal_shmem_is_direct(at) && !peal_shmem_is_local(at, bytes))
        return;
    peal_shmem_log(&(const struct peal_shmem_call){writes ? "STORE" : "LOAD", from}, "%s %#zx %zu",
                   writes ? "store" : "load", (size_t)(uintptr_t)at, bytes);
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

API void __tsan_init(void);
API void __tsan_init(void)
{
}

API void __tsan_func_entry(void *from);
API void __tsan_func_entry(void *from)
{
    (void)from;
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
