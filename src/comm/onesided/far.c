/* SPDX-License-Identifier: Apache-2.0 */
/* See far.h. */
#include "comm/onesided/far.h"

/* Where `remote`, an address in this rank's copy, is at another rank. */
struct far_place {
    uint32_t segment;
    uint64_t offset;
};

static struct far_place find_place(const struct peal_comm *comm, const void *remote, uint32_t rank)
{
    const struct peal_symmetric *memory = peal_symmetric_find(comm, remote, 1);
    uint64_t from = (uint64_t)((const char *)remote - memory->at[comm->team->rank]);
    return (struct far_place){memory->segments[rank], from};
}

enum peal_status peal_rma_end(struct peal_comm *comm, const struct peal_rma *rma)
{
    if (rma->status == PEAL_MISMATCH && comm->team->failed == PEAL_OK)
        return peal_comm_fail(comm, PEAL_MISMATCH,
                              "rank %u does not have this memory any more, or has closed the "
                              "communicator",
                              rma->rank);
    return peal_comm_end(comm, rma->status);
}

/* Runs it to its end, or begins it as a request. */
static enum peal_status run(struct peal_comm *comm, struct peal_rma *rma,
                            struct peal_request *request)
{
    struct peal_calls *engine = &comm->engine;
    if (request) {
        request->is_rma = true;
        request->rma = *rma;
        rma = &request->rma;
    }
    peal_under_way_use(engine);
    peal_rma_begin(comm->team, &engine->rmas, rma);
    if (request) {
        peal_team_depart(comm->team);
        return PEAL_OK;
    }
    (void)peal_calls_wait(engine, &rma->status);
    return peal_rma_end(comm, rma);
}

enum peal_status peal_onesided_put(struct peal_comm *comm,
                                   const struct peal_onesided_access *access,
                                   struct peal_request *request)
{
    uint32_t at = comm->team->span->peers[access->rank].at;
    struct peal_rma rma = {
        .kind = PEAL_RMA_PUT, .rank = access->rank, .part = {access->local, access->bytes}};
    rma.put = (struct peal_net_put){.rank = at};
    if (access->bytes > 0) {
        struct far_place to = find_place(comm, access->remote, access->rank);
        rma.put.segment = to.segment;
        rma.put.offset = to.offset;
        rma.put.nparts = 1;
    }
    if (access->signal) {
        struct far_place to = find_place(comm, access->signal, access->rank);
        rma.put.signal = (struct peal_net_signal){.segment = to.segment,
                                                  .change = PEAL_NET_ADD,
                                                  .offset = to.offset,
                                                  .value = access->add};
    }
    if (access->bytes == 0 && !access->signal)
        return PEAL_OK;
    return run(comm, &rma, request);
}

enum peal_status peal_onesided_get(struct peal_comm *comm, void *local, const void *remote,
                                   uint64_t bytes, uint32_t rank, struct peal_request *request)
{
    if (bytes == 0)
        return PEAL_OK;
    struct far_place from = find_place(comm, remote, rank);
    struct peal_rma rma = {.kind = PEAL_RMA_GET, .rank = rank};
    rma.get = (struct peal_net_get){.rank = comm->team->span->peers[rank].at,
                                    .segment = from.segment,
                                    .offset = from.offset,
                                    .bytes = bytes,
                                    .to = local};
    return run(comm, &rma, request);
}

enum peal_status peal_onesided_atomic(struct peal_comm *comm, const void *remote, uint32_t rank,
                                      const struct peal_net_atomic *request)
{
    struct far_place at = find_place(comm, remote, rank);
    struct peal_rma rma = {.kind = PEAL_RMA_ATOMIC, .rank = rank};
    rma.atomic = *request;
    rma.atomic.rank = comm->team->span->peers[rank].at;
    rma.atomic.segment = at.segment;
    rma.atomic.offset = at.offset;
    return run(comm, &rma, NULL);
}

/* ---- completion ---- */

static void describe_quiet(void *context, struct peal_text *out)
{
    peal_text_printf(out, "quiet of what was put to rank %u", *(const uint32_t *)context);
}

/* Waits a moment and moves everything; the peers are checked as in any wait. */
static enum peal_status pass_time(struct peal_comm *comm, struct peal_backoff *pause)
{
    if (peal_calls_progress(&comm->engine))
        peal_backoff_reset(comm->team, pause);
    return peal_backoff_step(comm->team, pause);
}

/* Has everything that went to that rank arrived there? */
static bool is_quiet(const struct peal_comm *comm, uint32_t rank, bool *asked, uint64_t *ticket)
{
    const struct peal_span *span = comm->team->span;
    if (!peal_rmas_are_begun(&comm->engine.rmas, rank))
        return false;
    struct peal_net *net = peal_endpoint_lock(span->endpoint);
    uint32_t at = span->peers[rank].at;
    enum peal_status status = *asked ? PEAL_OK : peal_net_ticket(net, at, ticket);
    *asked |= status == PEAL_OK;
    bool quiet = status == PEAL_CLOSED || (*asked && peal_net_flushed(net, at, *ticket));
    peal_endpoint_unlock(span->endpoint);
    return quiet;
}

enum peal_status peal_onesided_quiet(struct peal_comm *comm)
{
    struct peal_team *team = comm->team;
    enum peal_status status = PEAL_OK;
    peal_team_enter(peal_team_own(team), PEAL_STREAM_ONESIDED);
    for (uint32_t r = 0; r < team->size && status == PEAL_OK; r++) {
        struct peal_backoff pause = {
            .describe = describe_quiet, .context = &r, .stream = 1, .is_message = true, .peer = r};
        uint64_t ticket = 0;
        bool asked = false;
        while (status == PEAL_OK && peal_team_is_far(team, r) &&
               !is_quiet(comm, r, &asked, &ticket))
            status = pass_time(comm, &pause);
        peal_backoff_reset(team, &pause);
    }
    peal_team_leave(peal_team_own(team));
    peal_team_depart(team);
    return peal_comm_end(comm, status);
}
