/* SPDX-License-Identifier: Apache-2.0 */
/* Remote memory access: puts, gets and atomic operations on memory of ranks on other hosts that are under way.
 *
 * An operation is handed to the network when that has room for it: to one rank in the order in which they were begun, so
 * that a signal follows the puts before it; ranks do not wait for each other. Beginning one never waits. They move with
 * the other requests of their engine (peal_calls_move), and end when the caller's memory is its own again.
 */
#ifndef PEAL_RUN_RMA_H
#define PEAL_RUN_RMA_H

#include "run/net/net.h"
#include "run/team/team.h"

enum peal_rma_kind { PEAL_RMA_PUT, PEAL_RMA_GET, PEAL_RMA_ATOMIC };

/* The caller's, and where it is until it has ended. */
struct peal_rma {
    struct peal_rma *next;
    /* PEAL_PENDING while it is under way. PEAL_MISMATCH: the target does not have this memory any more, or has closed the
     * communicator. */
    enum peal_status status;
    enum peal_rma_kind kind;
    uint32_t rank; /* of the team; those below name the rank of the net */
    union {
        struct peal_net_put put; /* of `part`, unless it has no parts */
        struct peal_net_get get;
        struct peal_net_atomic atomic;
    };
    struct peal_net_part part;
    bool begun; /* the network has it */
    struct peal_net_token token;
};

/* Those of an engine, in the order in which they were begun. */
struct peal_rmas {
    struct peal_rma *first, *last;
    uint64_t *
        full; /* a bit per rank: the network takes nothing for it now. NULL: all ranks are on one host */
};

enum peal_status peal_rmas_init(struct peal_rmas *rmas, const struct peal_team *team);
void peal_rmas_release(struct peal_rmas *rmas);

void peal_rma_begin(const struct peal_team *team, struct peal_rmas *rmas, struct peal_rma *rma);
/* Hands over what the network takes, and ends what is complete; true if there was any. A target that has died ends nothing:
 * whoever waits finds that. */
bool peal_rmas_move(const struct peal_team *team, struct peal_rmas *rmas);
/* After a failure all of them end. */
void peal_rmas_fail(const struct peal_team *team, struct peal_rmas *rmas, enum peal_status status);
/* Has the network everything for that rank? */
bool peal_rmas_are_begun(const struct peal_rmas *rmas, uint32_t rank);
/* The one whose status that is, or NULL. */
const struct peal_rma *peal_rmas_find(const struct peal_rmas *rmas, const enum peal_status *status);
void peal_rma_describe(const struct peal_rma *rma, struct peal_text *out);

#endif
