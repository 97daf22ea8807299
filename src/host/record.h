/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded tasks of a host, for its files of pictures and figures. */
#ifndef PEAL_HOST_RECORD_H
#define PEAL_HOST_RECORD_H

#include "host/state.h"

struct peal_host_recorded *peal_record_find(const struct peal_host *host, uint64_t id);
/* The longest that a member was in a task. */
uint64_t peal_record_time(const struct peal_host *host, const struct peal_host_recorded *row);
/* The critical path: rows in order, freed by the caller; returns its length. *rows is NULL when out
 * of memory. */
uint64_t peal_record_path(const struct peal_host *host, uint32_t **rows, size_t *count);

#endif
