/* SPDX-License-Identifier: Apache-2.0 */
/* A growing array. The owner declares `PEAL_VEC(struct thing) things;` in a zeroed struct.
 *
 * push returns false when memory ran out; the array is then unchanged.
 */
#ifndef PEAL_BASE_VEC_H
#define PEAL_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define PEAL_VEC(type)                                                                             \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t len;                                                                                \
        size_t cap;                                                                                \
    }

/* Makes room for len + extra elements. Use through the macros below. */
bool peal_vec_grow(void **at, size_t *cap, size_t len, size_t extra, size_t element);

#define peal_vec_reserve(vec, extra)                                                               \
    ((vec)->cap - (vec)->len >= (size_t)(extra) ||                                                 \
     peal_vec_grow((void **)&(vec)->at, &(vec)->cap, (vec)->len, (extra), sizeof *(vec)->at))
#define peal_vec_push(vec, value)                                                                  \
    (peal_vec_reserve((vec), 1) ? ((vec)->at[(vec)->len++] = (value), true) : false)
#define peal_vec_release(vec) (free((vec)->at), (vec)->at = NULL, (vec)->len = (vec)->cap = 0)

#endif
