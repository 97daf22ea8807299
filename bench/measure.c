/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, medians, cores, sizes. See measure.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "measure.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

double bench_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

double bench_cpu_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const double *sorted, size_t n, double share)
{
    size_t index = (size_t)((double)n * share);
    return sorted[index < n ? index : n - 1];
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int bench_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void bench_pin(int index)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    int wanted = index % CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && wanted-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

size_t bench_size(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    static const char units[] = "kmgKMG";
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (1 + (int)(unit - units) % 3) : 0;
    if (end == text || (*end && (!unit || end[1]))) {
        fprintf(stderr, "not a size: '%s'\n", text);
        exit(2);
    }
    return (size_t)value << shift;
}

size_t bench_sizes(const char *text, size_t sizes[BENCH_MAX_SIZES])
{
    char one[32];
    size_t n = 0;
    while (*text && n < BENCH_MAX_SIZES) {
        size_t len = strcspn(text, ",");
        if (len >= sizeof one) {
            fprintf(stderr, "not a size: '%s'\n", text);
            exit(2);
        }
        memcpy(one, text, len);
        one[len] = '\0';
        sizes[n++] = bench_size(one);
        text += len + (text[len] == ',');
    }
    return n;
}

void *bench_shared(size_t bytes)
{
    size_t huge = (size_t)2 << 20;
    bytes = (bytes + huge - 1) / huge * huge;
    char *map = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    char *at = map + (huge - (uintptr_t)map % huge) % huge;
    memset(at, 0, bytes);
    return at;
}
