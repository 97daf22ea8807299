/* SPDX-License-Identifier: Apache-2.0 */
/* See far.h. */
#include "comm/onesided/far.h"

/* An operation that is tried until there is room, and then until it is done. */
struct operation {
    struct peal_comm *comm;
    uint32_t rank; /* of the team */
    /* One of these: */
    const struct peal_net_put *put;
    const struct peal_net_get *get;
    const struct peal_net_atomic *atomic;
    struct peal_net_token token;
};

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

static void describe(void *context, struct peal_text *out)
{
    const struct operation *operation = context;
    const char *name = "atomic operation at";
    if (operation->put)
        name = "put to";
    else if (operation->get)
        name = "get from";
    peal_text_printf(out, "%s rank %u, on another host", name, operation->rank);
}

static enum peal_status start(struct operation *operation)
{
    struct peal_endpoint *endpoint = operation->comm->team->span->endpoint;
    struct peal_net *net = peal_endpoint_lock(endpoint);
    enum peal_status status;
    if (operation->put)
        status = peal_net_put(net, operation->put, &operation->token);
    else if (operation->get)
        status = peal_net_get(net, operation->get, &operation->token);
    else
        status = peal_net_atomic(net, operation->atomic, &operation->token);
    peal_endpoint_unlock(endpoint);
    return status;
}

static void give_up(struct operation *operation)
{
    struct peal_endpoint *endpoint = operation->comm->team->span->endpoint;
    struct peal_net *net = peal_endpoint_lock(endpoint);
    peal_net_release(net, &operation->token);
    peal_endpoint_unlock(endpoint);
}

/* Waits a moment and moves everything; the peers are checked as in any wait. */
static enum peal_status pass_time(struct peal_comm *comm, struct peal_backoff *pause)
{
    if (peal_calls_progress(&comm->engine))
        peal_backoff_reset(comm->team, pause);
    return peal_backoff_step(comm->team, pause);
}

static enum peal_status run(struct operation *operation)
{
    struct peal_comm *comm = operation->comm;
    struct peal_backoff pause = {.describe = describe,
                                 .context = operation,
                                 .stream = 1,
                                 .is_message = true,
                                 .peer = operation->rank};
    peal_team_enter(peal_team_own(comm->team), 1);
    enum peal_status waited = PEAL_OK, status = start(operation);
    while (waited == PEAL_OK && (status == PEAL_PENDING || status == PEAL_PEER_DEAD)) {
        waited = pass_time(comm, &pause); /* which finds the dead, and reports them */
        if (waited == PEAL_OK)
            status = start(operation);
    }
    while (waited == PEAL_OK && status == PEAL_OK && !peal_net_token_is_done(&operation->token))
        waited = pass_time(comm, &pause);
    peal_backoff_reset(comm->team, &pause);
    peal_team_leave(peal_team_own(comm->team));
    if (waited != PEAL_OK) {
        give_up(operation);
        return peal_comm_end(comm, waited);
    }
    if (status == PEAL_OK)
        status = peal_net_token_status(&operation->token);
    if (status != PEAL_OK)
        return peal_comm_fail(comm, PEAL_MISMATCH,
                              "rank %u does not have this memory any more, or has closed the "
                              "communicator",
                              operation->rank);
    return PEAL_OK;
}

enum peal_status peal_onesided_put(struct peal_comm *comm, const void *remote, const void *local,
                                   uint64_t bytes, uint32_t rank,
                                   const struct peal_onesided_signal *signal)
{
    struct peal_net_part part = {local, bytes};
    struct peal_net_put put = {.rank = comm->team->span->peers[rank].at};
    if (bytes > 0) {
        struct far_place to = find_place(comm, remote, rank);
        put.segment = to.segment;
        put.offset = to.offset;
        put.parts = &part;
        put.nparts = 1;
    }
    if (signal) {
        struct far_place to = find_place(comm, signal->word, rank);
        put.signal = (struct peal_net_signal){.segment = to.segment,
                                              .change = PEAL_NET_ADD,
                                              .offset = to.offset,
                                              .value = signal->add};
    }
    if (bytes == 0 && !signal)
        return PEAL_OK;
    return run(&(struct operation){.comm = comm, .rank = rank, .put = &put});
}

enum peal_status peal_onesided_get(struct peal_comm *comm, void *local, const void *remote,
                                   uint64_t bytes, uint32_t rank)
{
    if (bytes == 0)
        return PEAL_OK;
    struct far_place from = find_place(comm, remote, rank);
    struct peal_net_get get = {.rank = comm->team->span->peers[rank].at,
                               .segment = from.segment,
                               .offset = from.offset,
                               .bytes = bytes,
                               .to = local};
    return run(&(struct operation){.comm = comm, .rank = rank, .get = &get});
}

enum peal_status peal_onesided_atomic(struct peal_comm *comm, const void *remote, uint32_t rank,
                                      const struct peal_net_atomic *request)
{
    struct far_place at = find_place(comm, remote, rank);
    struct peal_net_atomic atomic = *request;
    atomic.rank = comm->team->span->peers[rank].at;
    atomic.segment = at.segment;
    atomic.offset = at.offset;
    return run(&(struct operation){.comm = comm, .rank = rank, .atomic = &atomic});
}

/* ---- completion ---- */

static void describe_quiet(void *context, struct peal_text *out)
{
    peal_text_printf(out, "quiet, of what was put to rank %u", *(const uint32_t *)context);
}

/* Has everything that went to that rank arrived there? */
static bool is_quiet(const struct peal_span *span, uint32_t rank, bool *asked, uint64_t *ticket)
{
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
    peal_team_enter(peal_team_own(team), 1);
    for (uint32_t r = 0; r < team->size; r++) {
        if (status != PEAL_OK)
            break;
        struct peal_backoff pause = {
            .describe = describe_quiet, .context = &r, .stream = 1, .is_message = true, .peer = r};
        uint64_t ticket = 0;
        bool asked = false;
        while (status == PEAL_OK && peal_team_is_far(team, r) &&
               !is_quiet(team->span, r, &asked, &ticket))
            status = pass_time(comm, &pause);
        peal_backoff_reset(team, &pause);
    }
    peal_team_leave(peal_team_own(team));
    return peal_comm_end(comm, status);
}
