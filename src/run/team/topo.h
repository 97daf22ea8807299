/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's cores and which of them a rank runs on; which machine it is. */
#ifndef PEAL_RUN_TOPO_H
#define PEAL_RUN_TOPO_H

#include <stdbool.h>
#include <stdint.h>

/* Binds the calling thread to the rank-th core if PEAL_BIND is "core" and each rank has one; "wrap"
 * begins again at the first core if there are fewer cores. Not the default, since threads started
 * later inherit the binding. */
void peal_topo_bind(uint32_t rank, uint32_t size);

/* Identifies the cores that this process may use: equal for processes of one machine that may use
 * the same cores, in any namespaces. */
uint64_t peal_topo_machine(void);

/* Identifies this host since its boot: "NAME BOOT"; BOOT is "-" if the system does not say. */
void peal_host_identify(char out[static 112]);
/* False if the two identify different hosts for certain. */
bool peal_host_may_be(const char *a, const char *b);

/* The variable by which hwloc is given another machine than this one (HWLOC_SYNTHETIC, HWLOC_XMLFILE); NULL: it is not. */
const char *peal_topo_described(void);
/* Cores that this process may use, hyperthreads not counted; or those of the machine that hwloc is given. */
uint32_t peal_topo_cores(void);

/* Used if neither hwloc nor the C library knows of a second-level cache. */
#define PEAL_TOPO_CORE_CACHE (UINT64_C(2) << 20)
/* Bytes of a core's second-level cache: the smallest that hwloc shows, else what the C library
 * says, else PEAL_TOPO_CORE_CACHE. Takes milliseconds: keep the answer. */
uint64_t peal_topo_core_cache(void);

#endif
