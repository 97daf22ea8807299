/* SPDX-License-Identifier: Apache-2.0 */
/* The UCX member: frames as active messages, for fabrics that UCX knows and as an alternative on TCP.
 *
 * Beside UCX stands a TCP net of the same ranks. It authenticates peers and compares versions before the first
 * message, carries control messages, and watches: UCX notices the end of a process, but not a cut link. What
 * UCX itself carries is not authenticated: whoever reaches its ports can write into the process. So this
 * member is used only where PEAL_NET asks for it, and names the device.
 *
 * Every operation is one active message, sent eagerly over one lane, so that a pair's messages arrive in order:
 * the head of frame.h and the data. Effects are those of inbound.h, in the owner's progress; RMA over hardware
 * is not used, so there are no keys. libucp is loaded when it is needed.
 */
#include "run/net/ucx.h"

#ifdef PEAL_HAVE_UCX

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct peal_ucx *of(struct peal_net *net)
{
    return (struct peal_ucx *)(void *)net;
}

/* ---- sending ---- */

static struct peal_ucx_slot *find_slot(struct peal_ucx *ucx, uint64_t captured)
{
    uint32_t end = captured > PEAL_UCX_SLOT ? PEAL_UCX_LARGE_SLOTS : PEAL_UCX_SLOTS;
    uint32_t first = captured > PEAL_UCX_SLOT ? 0 : PEAL_UCX_LARGE_SLOTS;
    for (uint32_t i = first; i < end; i++) {
        if (!ucx->slots[i].busy)
            return &ucx->slots[i];
    }
    return NULL;
}

static void end_slot(struct peal_ucx_slot *slot, ucs_status_t status)
{
    struct peal_ucx_peer *peer = &slot->ucx->peers[slot->rank];
    slot->busy = false;
    peal_net_token_end(slot->token, status == UCS_OK ? PEAL_OK : PEAL_PEER_DEAD);
    if (!slot->answers)
        return;
    peer->answering = false;
    if (peer->in.nanswers > 0)
        peal_net_inbound_answered(&peer->in);
}

static void on_sent(void *request, ucs_status_t status, void *context)
{
    struct peal_ucx_slot *slot = context;
    end_slot(slot, status);
    slot->ucx->ucp_request_free(request);
}

/* Hands a filled slot over; its data is `bytes` in `nparts` pieces. */
static void submit(struct peal_ucx *ucx, struct peal_ucx_slot *slot, uint32_t nparts)
{
    const ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_DATATYPE,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = on_sent,
        .user_data = slot,
        .datatype = UCP_DATATYPE_IOV,
    };
    slot->busy = true;
    ucs_status_ptr_t sent =
        ucx->ucp_am_send_nbx(ucx->peers[slot->rank].endpoint, PEAL_UCX_MESSAGE, &slot->head,
                             sizeof slot->head, slot->parts, nparts, &params);
    if (!UCS_PTR_IS_PTR(sent))
        end_slot(slot, UCS_PTR_STATUS(sent));
    else /* relaxed: a hint; partner: peal_net_is_stuck */
        atomic_store_explicit(&ucx->net.stuck, true, memory_order_relaxed);
}

static void on_error(void *context, ucp_ep_h endpoint, ucs_status_t status)
{
    /* The TCP net notices it, too, and has the reason. */
    (void)context, (void)endpoint, (void)status;
}

static enum peal_status make_endpoint(struct peal_ucx *ucx, uint32_t rank)
{
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *)(ucx->workers + (size_t)rank * PEAL_UCX_WORKER + 8),
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_error},
    };
    if (ucx->peers[rank].endpoint)
        return PEAL_OK;
    return ucx->ucp_ep_create(ucx->worker, &params, &ucx->peers[rank].endpoint) == UCS_OK
               ? PEAL_OK
               : PEAL_PEER_DEAD;
}

/* PEAL_OK: that rank has proved itself on the TCP net, and UCX can reach it. */
static enum peal_status reach(struct peal_ucx *ucx, uint32_t rank)
{
    if (rank >= ucx->net.size || rank == ucx->net.rank)
        return PEAL_INVALID;
    if (ucx->peers[rank].endpoint && !ucx->peers[rank].lost)
        return PEAL_OK;
    enum peal_status status = peal_net_health(ucx->tcp, rank, NULL);
    return status == PEAL_OK ? make_endpoint(ucx, rank) : status;
}

/* One message; data of at most `capture` bytes is copied. */
static enum peal_status send_message(struct peal_ucx *ucx, uint32_t rank,
                                     const struct peal_net_head *head,
                                     const struct peal_net_part *parts, uint32_t nparts,
                                     uint64_t capture, struct peal_net_token *token)
{
    uint64_t bytes = peal_net_parts_bytes(parts, nparts), at = 0;
    if (bytes > UINT32_MAX / 2)
        return PEAL_INVALID;
    bool captured = bytes <= capture;
    struct peal_ucx_slot *slot = find_slot(ucx, captured ? bytes : 0);
    if (!slot)
        return PEAL_PENDING;
    slot->rank = rank;
    slot->answers = false;
    slot->token = captured ? NULL : token;
    slot->head = *head;
    slot->head.bytes = (uint32_t)bytes;
    slot->head.zero = (uint16_t)ucx->net.rank;
    for (uint32_t i = 0; i < nparts; i++) {
        slot->parts[i] = (ucp_dt_iov_t){(void *)(uintptr_t)parts[i].at, parts[i].bytes};
        if (captured)
            memcpy(slot->captured + at, parts[i].at, parts[i].bytes);
        at += parts[i].bytes;
    }
    if (captured) {
        slot->parts[0] = (ucp_dt_iov_t){slot->captured, bytes};
        nparts = bytes > 0;
    }
    peal_net_token_begin(slot->token);
    submit(ucx, slot, nparts);
    return PEAL_OK;
}

static enum peal_status ucx_put(struct peal_net *net, const struct peal_net_put *put,
                                struct peal_net_token *token)
{
    struct peal_net_head head = peal_net_head_put(put);
    enum peal_status status = reach(of(net), put->rank);
    if (status != PEAL_OK)
        return status;
    if (put->nparts > PEAL_NET_PARTS ||
        (!token && peal_net_parts_bytes(put->parts, put->nparts) > PEAL_NET_EAGER))
        return PEAL_INVALID;
    return send_message(of(net), put->rank, &head, put->parts, put->nparts, PEAL_NET_EAGER, token);
}

static enum peal_status ucx_accumulate(struct peal_net *net,
                                       const struct peal_net_accumulate *accumulate,
                                       struct peal_net_token *token)
{
    struct peal_net_head head = peal_net_head_accumulate(accumulate);
    const struct peal_net_part part = {accumulate->from, accumulate->bytes};
    enum peal_status status = reach(of(net), accumulate->rank);
    if (status != PEAL_OK)
        return status;
    bool keeps =
        accumulate->bytes > PEAL_NET_EAGER; /* the caller's memory, until the token says so */
    if (!peal_net_accumulate_is_valid(accumulate) || (keeps && !token))
        return PEAL_INVALID;
    return send_message(of(net), accumulate->rank, &head, &part, 1, PEAL_NET_EAGER, token);
}

static enum peal_status ask(struct peal_ucx *ucx, uint32_t rank, struct peal_net_head *head,
                            const struct peal_net_part *part,
                            const struct peal_net_request *request)
{
    struct peal_net_inbound *in = &ucx->peers[rank].in;
    struct peal_net_request *slot = peal_net_inbound_request(in, head);
    if (!slot)
        return PEAL_PENDING;
    enum peal_status status =
        send_message(ucx, rank, head, part, part ? 1 : 0, PEAL_NET_EAGER, NULL);
    if (status == PEAL_OK)
        peal_net_inbound_asked(slot, request);
    return status;
}

static enum peal_status ucx_get(struct peal_net *net, const struct peal_net_get *get,
                                struct peal_net_token *token)
{
    struct peal_net_head head = peal_net_head_get(get);
    const struct peal_net_request request = {.to = get->to, .bytes = get->bytes, .token = token};
    enum peal_status status = reach(of(net), get->rank);
    if (status == PEAL_OK && (!token || get->bytes > UINT32_MAX / 2))
        status = PEAL_INVALID;
    return status == PEAL_OK ? ask(of(net), get->rank, &head, NULL, &request) : status;
}

static enum peal_status ucx_atomic(struct peal_net *net, const struct peal_net_atomic *atomic,
                                   struct peal_net_token *token)
{
    struct peal_net_head head = peal_net_head_atomic(atomic);
    const struct peal_net_part part = {&atomic->compare, sizeof atomic->compare};
    const struct peal_net_request request = {.atomic = true, .old = atomic->old, .token = token};
    enum peal_status status = reach(of(net), atomic->rank);
    if (status != PEAL_OK)
        return status;
    if (!peal_net_atomic_is_valid(atomic, token))
        return PEAL_INVALID;
    return ask(of(net), atomic->rank, &head, &part, &request);
}

static enum peal_status ucx_post(struct peal_net *net, uint32_t rank, uint32_t kind,
                                 const struct peal_net_part *parts, uint32_t nparts)
{
    struct peal_net_head head = {.kind = PEAL_NET_POST, .flags = kind};
    enum peal_status status = reach(of(net), rank);
    if (status != PEAL_OK)
        return status;
    if (nparts > PEAL_NET_PARTS || peal_net_parts_bytes(parts, nparts) > PEAL_NET_POST_MAX)
        return PEAL_INVALID;
    return send_message(of(net), rank, &head, parts, nparts, PEAL_NET_POST_MAX, NULL);
}

static enum peal_status ucx_control(struct peal_net *net, uint32_t rank, uint32_t kind,
                                    const void *bytes, uint64_t len)
{
    return peal_net_control(of(net)->tcp, rank, kind, bytes, len);
}

static enum peal_status ucx_ticket(struct peal_net *net, uint32_t rank, uint64_t *out)
{
    enum peal_status status = reach(of(net), rank);
    if (status != PEAL_OK)
        return status;
    struct peal_ucx_peer *peer = &of(net)->peers[rank];
    struct peal_net_head head = {.kind = PEAL_NET_FLUSH, .signal_value = peer->flushes + 1};
    status = send_message(of(net), rank, &head, NULL, 0, 0, NULL);
    if (status == PEAL_OK)
        *out = ++peer->flushes;
    return status;
}

static bool ucx_flushed(struct peal_net *net, uint32_t rank, uint64_t ticket)
{
    return of(net)->peers[rank].in.acked >= ticket;
}

static uint64_t ucx_refused(const struct peal_net *net, uint32_t rank)
{
    return ((const struct peal_ucx *)(const void *)net)->peers[rank].in.peer_refused;
}

/* ---- arrivals ---- */

/* Whole frames, from a peer that the TCP net knows. */
static const char *deliver(struct peal_net_inbound *in, const struct peal_net_head *head,
                           const uint8_t *data)
{
    uint8_t *to = NULL;
    const char *bad = peal_net_inbound_begin(in, head, &to);
    if (!bad && to)
        memcpy(to, data, head->bytes);
    return bad ? bad : peal_net_inbound_end(in, head);
}

/* Pieces of an accumulate are as long as deliveries may be; the last one has the signal. */
static const char *deliver_pieces(struct peal_net_inbound *in, const struct peal_net_head *whole,
                                  const uint8_t *data)
{
    uint32_t longest = peal_net_delivery_max(whole->element);
    for (uint32_t done = 0; done < whole->bytes;) {
        struct peal_net_head head = *whole;
        head.bytes = (uint32_t)peal_size_min(whole->bytes - done, longest);
        head.offset += done;
        if (done + head.bytes < whole->bytes)
            head.change = PEAL_NET_NO_SIGNAL;
        const char *bad = deliver(in, &head, data + done);
        if (bad)
            return bad;
        done += head.bytes;
    }
    return NULL;
}

ucs_status_t peal_ucx_message(void *context, const void *header, size_t header_bytes, void *data,
                              size_t bytes, const ucp_am_recv_param_t *params)
{
    struct peal_ucx *ucx = context;
    struct peal_net_head head;
    uint32_t rank;
    (void)params;
    if (header_bytes != sizeof head)
        return UCS_OK;
    memcpy(&head, header, sizeof head);
    rank = head.zero; /* the sender: UCX does not say */
    head.zero = 0;
    struct peal_net_head checked = head;
    bool large = head.kind == PEAL_NET_PUT || head.kind == PEAL_NET_REPLY ||
                 head.kind == PEAL_NET_ACCUMULATE;
    if (large)
        checked.bytes = 0; /* one message, however long */
    if (rank >= ucx->net.size || head.bytes != bytes || peal_net_head_check(&checked))
        return UCS_OK; /* not a frame of a peer */
    struct peal_net_inbound *in = &ucx->peers[rank].in;
    bool cut = head.kind == PEAL_NET_ACCUMULATE && head.bytes > 0;
    /* A wrong frame has had no effect. It is dropped, because its sender is not certain. */
    (void)(cut ? deliver_pieces(in, &head, data) : deliver(in, &head, data));
    return UCS_OK;
}

static bool send_answers(struct peal_ucx *ucx, uint32_t rank)
{
    struct peal_ucx_peer *peer = &ucx->peers[rank];
    uint32_t id = 0;
    struct peal_net_answer *answer = peal_net_inbound_answer(&peer->in, &id);
    if (reach(ucx, rank) != PEAL_OK)
        return false;
    if (peer->in.ack_due) {
        const struct peal_net_head head = {
            .kind = PEAL_NET_ACK, .signal_value = peer->in.flush, .offset = peer->in.refused};
        if (send_message(ucx, rank, &head, NULL, 0, 0, NULL) == PEAL_OK)
            peer->in.ack_due = false;
    }
    struct peal_ucx_slot *slot = answer && !peer->answering ? find_slot(ucx, 0) : NULL;
    if (!slot)
        return false;
    slot->rank = rank;
    slot->answers = true;
    slot->token = NULL;
    slot->head = (struct peal_net_head){.kind = PEAL_NET_REPLY,
                                        .change = answer->refused,
                                        .signal_offset = id,
                                        .zero = (uint16_t)ucx->net.rank};
    if (answer->atomic) {
        slot->head.kind = PEAL_NET_ATOMIC_REPLY;
        slot->head.signal_value = answer->old;
    } else if (!answer->refused) {
        slot->head.bytes = (uint32_t)answer->bytes;
        slot->parts[0] = (ucp_dt_iov_t){(void *)(uintptr_t)answer->from, answer->bytes};
    }
    peer->answering = true;
    submit(ucx, slot, slot->head.bytes > 0);
    return true;
}

static bool ucx_progress(struct peal_net *net)
{
    struct peal_ucx *ucx = of(net);
    bool moved = ucx->ucp_worker_progress(ucx->worker) > 0;
    for (uint32_t r = 0; r < net->size; r++) {
        const struct peal_ucx_peer *peer = &ucx->peers[r];
        if (!peer->lost && (peer->in.ack_due || peer->in.nanswers > 0))
            moved |= send_answers(ucx, r);
    }
    return peal_net_progress(ucx->tcp) || moved;
}

/* UCX keeps what it has been given, and needs progress to send it. */
static bool ucx_unsent(const struct peal_net *net)
{
    const struct peal_ucx *ucx = (const struct peal_ucx *)(const void *)net;
    for (uint32_t i = 0; i < PEAL_UCX_SLOTS; i++) {
        if (ucx->slots[i].busy)
            return true;
    }
    return peal_net_is_stuck(ucx->tcp);
}

static int ucx_arm(struct peal_net *net)
{
    struct peal_ucx *ucx = of(net);
    for (uint32_t r = 0; r < net->size; r++) {
        if (ucx->peers[r].in.ack_due || ucx->peers[r].in.nanswers > 0)
            return -1;
    }
    if (peal_net_arm(ucx->tcp) < 0 || ucx->ucp_worker_arm(ucx->worker) != UCS_OK)
        return -1;
    return ucx->epoll;
}

/* ---- memory ---- */

/* Waits until nothing of that kind is under way; a peer that delays it for too long is given up. */
static void settle(struct peal_ucx *ucx, const struct peal_net_token *token, bool answers)
{
    uint64_t end = peal_now_ms() + PEAL_UCX_PATIENCE_MS;
    for (uint32_t i = 0; i < PEAL_UCX_SLOTS; i++) {
        struct peal_ucx_slot *slot = &ucx->slots[i];
        while (slot->busy && ((token && slot->token == token) || (answers && slot->answers))) {
            (void)ucx->ucp_worker_progress(ucx->worker);
            struct peal_ucx_peer *peer = &ucx->peers[slot->rank];
            if (peal_now_ms() < end || !peer->endpoint)
                continue;
            const ucp_request_param_t params = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                                .flags = UCP_EP_CLOSE_FLAG_FORCE};
            ucs_status_ptr_t closing = ucx->ucp_ep_close_nbx(peer->endpoint, &params);
            if (UCS_PTR_IS_PTR(closing))
                ucx->ucp_request_free(closing);
            peer->endpoint = NULL;
            peer->lost = true;
        }
    }
}

static void ucx_retract(struct peal_net *net, uint32_t segment)
{
    struct peal_ucx *ucx = of(net);
    if (!peal_net_segments_clear(&ucx->segments, segment))
        return;
    for (uint32_t r = 0; r < net->size; r++)
        (void)peal_net_inbound_retract(&ucx->peers[r].in, segment, NULL);
    settle(ucx, NULL, true);
}

static enum peal_status ucx_expose(struct peal_net *net, uint32_t segment, void *base,
                                   uint64_t bytes)
{
    struct peal_ucx *ucx = of(net);
    uint32_t number = segment & 0xffff;
    if (number < PEAL_NET_SEGMENTS && ucx->segments.at[number].base)
        ucx_retract(net, ucx->segments.at[number].name);
    return peal_net_segments_set(&ucx->segments, segment, base, bytes);
}

static void ucx_release(struct peal_net *net, struct peal_net_token *token)
{
    struct peal_ucx *ucx = of(net);
    for (uint32_t r = 0; r < net->size; r++)
        (void)peal_net_inbound_release(&ucx->peers[r].in, token, NULL);
    settle(ucx, token, false);
}

/* ---- peers ---- */

static enum peal_status ucx_health(struct peal_net *net, uint32_t rank, const char **why)
{
    return peal_net_health(of(net)->tcp, rank, why);
}

void peal_ucx_control(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len)
{
    struct peal_ucx *ucx = context;
    if (ucx->events.control)
        ucx->events.control(ucx->events.context, rank, kind, bytes, len);
}

void peal_ucx_lost(void *context, uint32_t rank, enum peal_status status, const char *why)
{
    struct peal_ucx *ucx = context;
    /* What it sent before it left takes effect first. */
    while (ucx->ucp_worker_progress(ucx->worker) > 0)
        continue;
    ucx->peers[rank].lost = true;
    peal_net_inbound_fail(&ucx->peers[rank].in, status);
    if (ucx->events.lost)
        ucx->events.lost(ucx->events.context, rank, status, why);
}

/* ---- opening and closing ---- */

void peal_ucx_free(struct peal_ucx *ucx)
{
    if (ucx->worker)
        ucx->ucp_worker_destroy(ucx->worker);
    if (ucx->context)
        ucx->ucp_cleanup(ucx->context);
    if (ucx->epoll >= 0)
        close(ucx->epoll);
    for (uint32_t i = 0; i < PEAL_UCX_SLOTS; i++)
        free(ucx->slots[i].captured);
    free(ucx->workers);
    free(ucx->peers);
    free(ucx);
}

static void close_endpoints(struct peal_ucx *ucx, uint64_t deadline)
{
    uint32_t npeers = ucx->peers ? ucx->net.size : 0;
    for (uint32_t r = 0; r < npeers; r++) {
        const ucp_request_param_t params = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                            .flags =
                                                ucx->peers[r].lost ? UCP_EP_CLOSE_FLAG_FORCE : 0};
        if (!ucx->peers[r].endpoint)
            continue;
        ucs_status_ptr_t closing = ucx->ucp_ep_close_nbx(ucx->peers[r].endpoint, &params);
        if (!UCS_PTR_IS_PTR(closing))
            continue;
        while (ucx->ucp_request_check_status(closing) == UCS_INPROGRESS && peal_now_ms() < deadline)
            (void)ucx->ucp_worker_progress(ucx->worker);
        ucx->ucp_request_free(closing);
    }
}

static void ucx_close(struct peal_net *net, uint32_t linger_ms)
{
    struct peal_ucx *ucx = of(net);
    uint64_t deadline = peal_now_ms() + linger_ms;
    ucx->net.events = ucx->events = (struct peal_net_events){0};
    memset(&ucx->segments, 0, sizeof ucx->segments);
    close_endpoints(ucx, deadline);
    peal_net_close(ucx->tcp, linger_ms);
    peal_ucx_free(ucx);
}

static void ucx_abandon(struct peal_net *net)
{
    struct peal_ucx *ucx = of(net);
    peal_net_abandon(ucx->tcp);
    peal_ucx_free(ucx);
}

const struct peal_net_ops peal_ucx_ops = {
    .name = "ucx",
    .expose = ucx_expose,
    .retract = ucx_retract,
    .put = ucx_put,
    .get = ucx_get,
    .accumulate = ucx_accumulate,
    .atomic = ucx_atomic,
    .post = ucx_post,
    .control = ucx_control,
    .ticket = ucx_ticket,
    .flushed = ucx_flushed,
    .refused = ucx_refused,
    .progress = ucx_progress,
    .unsent = ucx_unsent,
    .arm = ucx_arm,
    .health = ucx_health,
    .release = ucx_release,
    .close = ucx_close,
    .abandon = ucx_abandon,
};

#endif
