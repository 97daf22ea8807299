/* SPDX-License-Identifier: Apache-2.0 */
/* See rma.h. */
#include "run/call/rma.h"

#include "run/span/span.h"

#include <stdlib.h>
#include <string.h>

static uint32_t full_words(const struct peal_team *team)
{
    return (team->size + 63) / 64;
}

enum peal_status peal_rmas_init(struct peal_rmas *rmas, const struct peal_team *team)
{
    *rmas = (struct peal_rmas){0};
    if (!team->span)
        return PEAL_OK;
    rmas->full = calloc(full_words(team), sizeof *rmas->full);
    return rmas->full ? PEAL_OK : PEAL_NO_MEMORY;
}

void peal_rmas_release(struct peal_rmas *rmas)
{
    assert(!rmas->first); /* all have ended */
    free(rmas->full);
    rmas->full = NULL;
}

static enum peal_status hand_over(struct peal_net *net, struct peal_rma *rma)
{
    switch (rma->kind) {
    case PEAL_RMA_PUT:
        return peal_net_put(net, &rma->put, &rma->token);
    case PEAL_RMA_GET:
        return peal_net_get(net, &rma->get, &rma->token);
    default:
        return peal_net_atomic(net, &rma->atomic, &rma->token);
    }
}

/* Hands it over unless an earlier one for that rank has to go first. True if the network has it now. */
static bool try_to_begin(struct peal_net *net, struct peal_rmas *rmas, struct peal_rma *rma)
{
    uint64_t *full = &rmas->full[rma->rank / 64], bit = UINT64_C(1) << rma->rank % 64;
    if (*full & bit)
        return false;
    enum peal_status status = hand_over(net, rma);
    if (status == PEAL_PENDING || status == PEAL_PEER_DEAD)
        *full |= bit;
    else if (status != PEAL_OK)
        rma->status = PEAL_MISMATCH;
    rma->begun = status == PEAL_OK;
    return rma->begun;
}

static void note_end(struct peal_rma *rma)
{
    if (!rma->begun || !peal_net_token_is_done(&rma->token))
        return;
    enum peal_status status = peal_net_token_status(&rma->token);
    if (status == PEAL_OK)
        rma->status = PEAL_OK;
    else if (status != PEAL_PEER_DEAD)
        rma->status = PEAL_MISMATCH;
}

bool peal_rmas_move(const struct peal_team *team, struct peal_rmas *rmas)
{
    bool moved = false;
    struct peal_rma *kept = NULL;
    if (!rmas->first)
        return false;
    memset(rmas->full, 0, full_words(team) * sizeof *rmas->full);
    struct peal_net *net = peal_endpoint_lock(team->span->endpoint);
    for (struct peal_rma *rma = rmas->first, *next; rma; rma = next) {
        next = rma->next;
        if (!rma->begun)
            moved |= try_to_begin(net, rmas, rma);
        note_end(rma);
        if (rma->status == PEAL_PENDING) {
            kept = rma;
            continue;
        }
        moved = true; /* from here on it may be gone */
        if (kept)
            kept->next = next;
        else
            rmas->first = next;
    }
    rmas->last = kept;
    peal_endpoint_unlock(team->span->endpoint);
    return moved;
}

void peal_rma_begin(const struct peal_team *team, struct peal_rmas *rmas, struct peal_rma *rma)
{
    assert(rmas->full && rma->rank < team->size);
    rma->next = NULL;
    rma->status = PEAL_PENDING;
    rma->begun = false;
    if (rma->kind == PEAL_RMA_PUT && rma->put.nparts > 0)
        rma->put.parts = &rma->part;
    if (rmas->last)
        rmas->last->next = rma;
    else
        rmas->first = rma;
    rmas->last = rma;
    (void)peal_rmas_move(team, rmas);
}

void peal_rmas_fail(const struct peal_team *team, struct peal_rmas *rmas, enum peal_status status)
{
    if (!rmas->first)
        return;
    bool forked =
        peal_team_is_forked(team); /* the lock may never be released, and the net is the parent's */
    struct peal_net *net = forked ? NULL : peal_endpoint_lock(team->span->endpoint);
    for (struct peal_rma *rma = rmas->first, *next; rma; rma = next) {
        next = rma->next;
        if (net && rma->begun)
            peal_net_release(net, &rma->token);
        rma->status = status;
    }
    rmas->first = rmas->last = NULL;
    if (net)
        peal_endpoint_unlock(team->span->endpoint);
}

bool peal_rmas_are_begun(const struct peal_rmas *rmas, uint32_t rank)
{
    for (const struct peal_rma *rma = rmas->first; rma; rma = rma->next) {
        if (rma->rank == rank && !rma->begun)
            return false;
    }
    return true;
}

const struct peal_rma *peal_rmas_find(const struct peal_rmas *rmas, const enum peal_status *status)
{
    const struct peal_rma *rma = rmas->first;
    while (rma && &rma->status != status)
        rma = rma->next;
    return rma;
}

void peal_rma_describe(const struct peal_rma *rma, struct peal_text *out)
{
    static const char *const names[] = {"put to", "get from", "atomic operation at"};
    peal_text_printf(out, "%s rank %u, on another host", names[rma->kind], rma->rank);
}
