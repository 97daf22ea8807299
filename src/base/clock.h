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

/* `ms` from now as an absolute time of `clock`, for calls that wait until such a time. */
static inline struct timespec peal_deadline(clockid_t clock, uint64_t ms)
{
    struct timespec at;
    clock_gettime(clock, &at);
    uint64_t ns = (uint64_t)at.tv_nsec + ms % 1000 * 1000000;
    at.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    at.tv_nsec = (long)(ns % 1000000000);
    return at;
}

/* Milliseconds since an earlier peal_now_ns. */
static inline double peal_ms_since(uint64_t start_ns)
{
    return (double)(peal_now_ns() - start_ns) / 1e6;
}

#endif
