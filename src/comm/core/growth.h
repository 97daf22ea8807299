/* SPDX-License-Identifier: Apache-2.0 */
/* Public structures that may get new members: a program may have been compiled with older or newer
 * headers than this library (docs/stability.md). Each structure begins with its size; 0 stands for
 * the size that it had in 0.2.0. */
#ifndef PEAL_COMM_GROWTH_H
#define PEAL_COMM_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of a program's structure, from its first member. */
static inline size_t peal_growth_size(uint32_t struct_size, size_t first)
{
    return struct_size ? struct_size : first;
}
/* Copies a program's structure of `given` bytes into the library's of `known` bytes. Members that
 * the program does not have become zero. False: the structure is smaller than in any version, or
 * sets members that this library does not know. */
bool peal_growth_read(void *out, size_t known, const void *in, size_t given);
/* The same for `n` structures in a row. Returns `in` itself if the sizes agree; otherwise copies,
 * which the caller frees by *made. NULL: as above, or no memory. */
const void *peal_growth_view(const void *in, size_t n, size_t first, size_t known, void **made);
/* Copies a structure of the library to a program whose structure has `size` bytes. */
void peal_growth_write(void *out, size_t size, const void *from, size_t known);

/* The sizes of 0.2.0. */
enum {
    PEAL_OPEN_FIRST_BYTES = 48,
    PEAL_ARG_FIRST_BYTES = 64,
    PEAL_VERIFY_ARGS_FIRST_BYTES = 160,
    PEAL_HOST_OPEN_FIRST_BYTES = 56,
    PEAL_FUNCTION_FIRST_BYTES = 56,
    PEAL_DOMAIN_SPEC_FIRST_BYTES = 48,
    PEAL_DOMAIN_BUFFER_FIRST_BYTES = 32,
    PEAL_TENSOR_SPEC_FIRST_BYTES = 80,
    PEAL_TASK_SPEC_FIRST_BYTES = 80,
    PEAL_TASK_ARG_FIRST_BYTES = 64,
    PEAL_SIMULATE_FIRST_BYTES = 112,
    PEAL_SIMULATE_ARG_FIRST_BYTES = 56,
    PEAL_STATS_FIRST_BYTES = 80,
    PEAL_OBSERVER_FIRST_BYTES = 32,
    PEAL_ALGORITHM_FIRST_BYTES = 40,
    PEAL_CHOSEN_FIRST_BYTES = 40,
    PEAL_TUNED_FIRST_BYTES = 48,
    PEAL_PLAN_ARGS_FIRST_BYTES = 112,
    PEAL_PLAN_FACTS_FIRST_BYTES = 48,
    PEAL_PLAN_BUFFER_FIRST_BYTES = 40
};

#endif
