/* SPDX-License-Identifier: Apache-2.0 */
/* Public structures that grow: a program may have been compiled against older or newer headers than
 * this library (docs/stability.md). Each begins with its size, 0 standing for the size that it had
 * in 0.2.0. */
#ifndef PEAL_COMM_GROWTH_H
#define PEAL_COMM_GROWTH_H

#include <stdbool.h>
#include <stddef.h>

/* Copies a program's structure of `given` bytes into ours of `known` bytes. What the program's lacks
 * becomes zero. False: it is smaller than any version, or uses fields that this library lacks. */
bool peal_growth_read(void *out, size_t known, const void *in, size_t given);

/* The sizes of 0.2.0. */
enum { PEAL_OPEN_FIRST_BYTES = 48, PEAL_ARG_FIRST_BYTES = 64 };

#endif
