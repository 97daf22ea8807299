/* SPDX-License-Identifier: Apache-2.0 */
/* Independent pieces of work on several threads. */
#ifndef PEAL_BASE_PARALLEL_H
#define PEAL_BASE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

/* Calls work(context, i) once for each i below `count`, on at most `workers` threads (and at most
 * 256), of which the calling thread is one. A thread that is free takes the lowest number left. If
 * threads cannot be started, the others do their work. All calls have returned on return, and the
 * caller sees what they wrote. */
void peal_parallel(uint32_t workers, size_t count, void (*work)(void *context, size_t i),
                   void *context);

#endif
