/* SPDX-License-Identifier: Apache-2.0 */
/* The header's name in programs of earlier versions. */
#include <shmem.h>
