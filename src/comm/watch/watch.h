/* SPDX-License-Identifier: Apache-2.0 */
/* Who watches a communicator's calls: a program's observer (peal_comm_set_observer) and the trace
 * (PEAL_TRACE).
 *
 *   observer.c  both, behind the engine's one watch      stats.c  counters, and the table at closing
 *   tracer.h    the trace's file
 */
#ifndef PEAL_COMM_WATCH_WATCH_H
#define PEAL_COMM_WATCH_WATCH_H

#include "comm/core/communicator.h"

/* Of a new communicator: begins its trace if the environment wants one. `parent` is what it was made
 * from, whose file it shares, or NULL. Without memory there is no trace, and a message says so. */
void peal_watch_open(struct peal_comm *comm, const struct peal_comm *parent);
/* When it is closed, after its last call: the rest of the trace, and the table of PEAL_STATS. */
void peal_watch_close(struct peal_comm *comm);

/* Rank 0, before the ranks of a job meet: a trace that an earlier job of this name has left is removed. */
void peal_watch_forget_trace(const char *job);

/* The table of PEAL_STATS. */
void peal_stats_print(const struct peal_comm *comm);

#endif
