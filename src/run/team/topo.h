/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's cores, and which of them a rank runs on. */
#ifndef PEAL_RUN_TOPO_H
#define PEAL_RUN_TOPO_H

#include <stdint.h>

/* Binds the calling thread to the rank-th core if PEAL_BIND is "core" and there is one for each
 * rank; "wrap" begins again at the first core where there is not. Not done unasked: threads started
 * later inherit the binding. */
void peal_topo_bind(uint32_t rank, uint32_t size);

/* Cores that this process may use, hyperthreads not counted. */
uint32_t peal_topo_cores(void);

#endif
