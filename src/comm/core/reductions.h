/* SPDX-License-Identifier: Apache-2.0 */
/* The user-defined reductions of a communicator. */
#ifndef PEAL_COMM_REDUCTIONS_H
#define PEAL_COMM_REDUCTIONS_H

#include "comm/core/communicator.h"

/* The formula of an operation; NULL: it is not a user-defined one, or none that was declared
 * here. */
const struct peal_formula *peal_comm_formula(const struct peal_comm *comm,
                                             enum peal_reduction reduce);
/* In which orders algorithms may combine with it. */
enum peal_moves peal_comm_moves(const struct peal_comm *comm, enum peal_reduction reduce);
/* As the text calls it. */
const char *peal_comm_reduce_name(const struct peal_comm *comm, enum peal_reduction reduce);
/* A new communicator starts with those of its parent. False: there is no memory. */
bool peal_reductions_inherit(struct peal_comm *comm, const struct peal_comm *parent);

#endif
