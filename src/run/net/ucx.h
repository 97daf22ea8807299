/* SPDX-License-Identifier: Apache-2.0 */
/* The UCX member's state: see ucx.c. */
#ifndef PEAL_RUN_UCX_H
#define PEAL_RUN_UCX_H

#include "run/net/inbound.h"
#include "run/net/members.h"

#ifdef PEAL_HAVE_UCX

#include <ucp/api/ucp.h>

enum {
    PEAL_UCX_MESSAGE = 17,          /* the active message's number */
    PEAL_UCX_SLOTS = 256,           /* messages under way, of all peers */
    PEAL_UCX_SLOT = PEAL_NET_EAGER, /* bytes that a slot captures */
    PEAL_UCX_LARGE_SLOTS = 8,       /* the first ones capture whole posts */
    PEAL_UCX_PATIENCE_MS = 1000,    /* for what is under way, before a peer is given up */
    PEAL_UCX_WORKER =
        PEAL_NET_ADDRESS - PEAL_NET_TCP_ADDRESS /* bytes of a worker's address, with its length */
};

#define PEAL_UCX_FUNCTIONS(X)                                                                      \
    X(ucp_init_version)                                                                            \
    X(ucp_cleanup)                                                                                 \
    X(ucp_config_read)                                                                             \
    X(ucp_config_modify)                                                                           \
    X(ucp_config_release)                                                                          \
    X(ucp_worker_create)                                                                           \
    X(ucp_worker_destroy)                                                                          \
    X(ucp_worker_get_address)                                                                      \
    X(ucp_worker_release_address)                                                                  \
    X(ucp_worker_progress)                                                                         \
    X(ucp_worker_arm)                                                                              \
    X(ucp_worker_get_efd)                                                                          \
    X(ucp_worker_set_am_recv_handler)                                                              \
    X(ucp_am_send_nbx)                                                                             \
    X(ucp_ep_create)                                                                               \
    X(ucp_ep_close_nbx)                                                                            \
    X(ucp_request_check_status)                                                                    \
    X(ucp_request_free)

struct peal_ucx;

/* A message under way. */
struct peal_ucx_slot {
    struct peal_ucx *ucx;
    bool busy;
    bool answers; /* a get or an atomic */
    uint32_t rank;
    struct peal_net_head head;
    ucp_dt_iov_t parts[PEAL_NET_PARTS];
    struct peal_net_token *token;
    uint8_t *captured; /* PEAL_UCX_SLOT bytes, or PEAL_NET_POST_MAX */
};

struct peal_ucx_peer {
    ucp_ep_h endpoint;
    bool lost;
    bool answering;
    uint64_t flushes;
    struct peal_net_inbound in;
};

struct peal_ucx {
    struct peal_net net;
    struct peal_net *tcp;
    struct peal_net_events events; /* the owner's */
    ucp_context_h context;
    ucp_worker_h worker;
    int epoll;        /* of both */
    uint8_t *workers; /* PEAL_UCX_WORKER bytes of each rank: length, address */
    struct peal_ucx_peer *peers;
    struct peal_ucx_slot slots[PEAL_UCX_SLOTS];
    struct peal_net_segments segments;
#define X(name) __typeof__(&name) name;
    PEAL_UCX_FUNCTIONS(X)
#undef X
};

extern const struct peal_net_ops peal_ucx_ops;
/* The handler of messages, and the callbacks of the TCP net beside. */
ucs_status_t peal_ucx_message(void *context, const void *header, size_t header_bytes, void *data,
                              size_t bytes, const ucp_am_recv_param_t *params);
void peal_ucx_control(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len);
void peal_ucx_lost(void *context, uint32_t rank, enum peal_status status, const char *why);
/* Frees everything but the TCP net. */
void peal_ucx_free(struct peal_ucx *ucx);

#endif
#endif
