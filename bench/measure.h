/* SPDX-License-Identifier: Apache-2.0 */
/* What all benchmarks measure with: a clock, medians, pinning, sizes of the command line.
 *
 * bench: programs that measure Peal and its comparators by one method.
 *
 *   harness.h   times the collectives of any library; mpi.c, gloo.cc and peal.c are its libraries
 *   limit.c     the traffic a collective cannot avoid, by two workers and nothing else
 *   cores.c     how far apart two processors are at the moment
 *   compute.c   the elementwise functions against memcpy
 *   plan.c      parsing, instantiating, verifying
 *   compare     runs all of them alternating, takes the best rival per cell, writes the table
 */
#ifndef PEAL_BENCH_MEASURE_H
#define PEAL_BENCH_MEASURE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Microseconds of a clock that never jumps. */
double bench_now_us(void);
/* Microseconds of processor time of this process: other work on the machine does not add to it. */
double bench_cpu_us(void);
/* Sorts the values. n must not be 0. */
double bench_median(double *values, size_t n);
/* The value below which a share (0 .. 1) of the sorted values lies. */
double bench_quantile(const double *sorted, size_t n, double share);
/* Binds the calling thread to the index-th of the processors it may use, round robin. */
void bench_pin(int index);
/* How many processors the process may use. */
int bench_processors(void);
/* "8", "4K", "64M"; ends the program with a message if it is none. */
size_t bench_size(const char *text);
enum { BENCH_MOST_SIZES = 64 };
/* "8,512,4K"; ends the program with a message if one is none. Returns how many. */
size_t bench_sizes(const char *text, size_t sizes[BENCH_MOST_SIZES]);
/* Zeroed memory, shared with children, aligned to 2 MiB; ends the program if there is none. */
void *bench_shared(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
