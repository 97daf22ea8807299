/* SPDX-License-Identifier: Apache-2.0 */
/* The one clock: nanoseconds since some point in the past, never set back. */
#ifndef PEAL_BASE_CLOCK_H
#define PEAL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t peal_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t peal_now_ms(void)
{
    return peal_now_ns() / 1000000;
}

/* Milliseconds since an earlier peal_now_ns. */
static inline double peal_ms_since(uint64_t start_ns)
{
    return (double)(peal_now_ns() - start_ns) / 1e6;
}

#endif
