/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all benchmarks: clocks, medians, pinning, sizes on the command line.
 *
 * bench: programs that measure Peal, and other libraries by the same method.
 *
 *   harness.h     times the collectives of any library; mpi.c, gloo.cc and peal.c are its libraries
 *   limit.c       the memory traffic that a collective cannot avoid, and nothing else
 *   cores.c       how far apart two processors are at the moment
 *   compute.c     the elementwise functions compared with memcpy
 *   first.c       first calls of a count compared with later ones
 *   host.c        tasks of a host
 *   plan.c        parsing, instantiating, verifying; kernel.h opens the kernels
 *   sim.c         simulating; simgrid/ and simgrid_ring.cc compare it with SimGrid
 *   compare       runs the libraries in turn, finds the best rival per cell, writes the table;
 *                 systems.py and hosts.py start them, figures.py writes tables and plots
 *   verify, verify_growth, formats      the time of proofs
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
/* The value below which this share (0 .. 1) of the sorted values lies. */
double bench_quantile(const double *sorted, size_t n, double share);
/* Binds the calling thread to the index-th of the processors it may use, round robin. */
void bench_pin(int index);
/* How many processors the process may use. */
int bench_processors(void);
/* "8", "4K", "64M"; ends the program with a message if it is not a size. */
size_t bench_size(const char *text);
enum { BENCH_MAX_SIZES = 64 };
/* "8,512,4K"; ends the program with a message if one is not a size. Returns their number. */
size_t bench_sizes(const char *text, size_t sizes[BENCH_MAX_SIZES]);
/* Zeroed memory, shared with children, aligned to 2 MiB; ends the program if there is none. */
void *bench_shared(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
