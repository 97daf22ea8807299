/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by a kernel from a file: PEAL_ALGO=allreduce=./mine.peal, or peal_comm_set_algo.
 *
 * The file's last kernel must implement the collective. What each of its parameters is to the
 * contract (plan/make/signature.h) says what a call passes: memory of the call, scratch, the
 * operation, the root. A parameter for which a call has nothing is refused when the kernel is named.
 * Blocking even calls take it, launched as a user kernel is; all others take what they would take
 * without it.
 */
#ifndef PEAL_COMM_FROM_FILE_H
#define PEAL_COMM_FROM_FILE_H

#include "comm/core/arguments.h"

/* From now on, instead of what was forced before. */
enum peal_status peal_from_file_use(struct peal_comm *comm, uint32_t collective, const char *path);
void peal_from_file_drop(struct peal_comm *comm, uint32_t collective);
/* Fills in comm->explained if the collective has a file. */
bool peal_from_file_explain(struct peal_comm *comm, uint32_t collective);

static inline bool peal_from_file_takes(const struct peal_comm *comm,
                                        const struct peal_arguments *args)
{
    return comm->from_file[args->collective] && !args->counts;
}
/* A user-defined reduction that is not free to be combined in any order is refused. */
enum peal_status peal_from_file_check(struct peal_comm *comm, const struct peal_arguments *args);
enum peal_status peal_from_file_run(struct peal_comm *comm, const struct peal_arguments *args);

#endif
