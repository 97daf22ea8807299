/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded tasks of a host, for pictures and figures. */
#ifndef PEAL_DRIVER_RECORD_H
#define PEAL_DRIVER_RECORD_H

#include "driver/state/state.h"

struct peal_host_recorded *peal_history_find(const struct peal_host *host, uint64_t id);
/* The time of a task on the member where it took longest. */
uint64_t peal_history_time(const struct peal_host *host, const struct peal_host_recorded *row);
/* The critical path: rows in order, to be freed by the caller. Returns its length. *rows NULL:
 * there is no memory. */
uint64_t peal_record_path(const struct peal_host *host, uint32_t **rows, size_t *count);

#endif
