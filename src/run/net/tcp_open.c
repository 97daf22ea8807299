/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the TCP member: memory, identity and listeners; then the addresses of all ranks. */
#include "run/net/members.h"
#include "run/net/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { CONNECT_MS = 10000 };
static_assert(sizeof(struct peal_address_block) <= PEAL_NET_TCP_ADDRESS, "others come behind it");

static enum peal_status allocate(struct peal_tcp *tcp)
{
    uint32_t size = tcp->net.size;
    tcp->hands_cap = PEAL_TCP_HALF_OPEN + 2 * size;
    tcp->blocks = calloc(size, sizeof *tcp->blocks);
    tcp->peers = calloc(size, sizeof *tcp->peers);
    tcp->hands = calloc(tcp->hands_cap, sizeof *tcp->hands);
    tcp->ready = calloc(size, sizeof *tcp->ready);
    tcp->buffer = malloc(PEAL_TCP_RECEIVE);
    if (tcp->peers) {
        for (uint32_t r = 0; r < size; r++)
            tcp->peers[r].watches[0] = tcp->peers[r].watches[1] = -1;
    }
    if (!tcp->hands)
        tcp->hands_cap = 0;
    for (uint32_t i = 0; i < tcp->hands_cap; i++)
        tcp->hands[i].fd = -1;
    bool all = tcp->blocks && tcp->peers && tcp->hands && tcp->ready && tcp->buffer;
    return all ? PEAL_OK : PEAL_NO_MEMORY;
}

static enum peal_status begin_listening(struct peal_tcp *tcp, const char *where,
                                        struct peal_text *why)
{
    struct peal_address_filter filter;
    enum peal_status status = peal_address_parse(where, &filter, why);
    if (status == PEAL_OK)
        status = peal_address_listen(&filter, &tcp->own, tcp->listeners, &tcp->nlisteners, why);
    if (status != PEAL_OK)
        return status;
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (tcp->epoll < 0) {
        peal_text_printf(why, "cannot wait for connections: %s", strerror(errno));
        return PEAL_SYSTEM;
    }
    for (uint32_t i = 0; i < tcp->nlisteners; i++) {
        struct epoll_event event = {.events = EPOLLIN,
                                    .data.u64 = peal_tcp_event(PEAL_TCP_LISTENER, i)};
        (void)epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, tcp->listeners[i], &event);
    }
    return PEAL_OK;
}

enum peal_status peal_net_open_tcp(const struct peal_net_config *config, const char *where,
                                   struct peal_text *why, struct peal_net **out,
                                   uint8_t address[static PEAL_NET_ADDRESS])
{
    struct peal_tcp *tcp = calloc(1, sizeof *tcp);
    if (!tcp)
        return PEAL_NO_MEMORY;
    tcp->net = (struct peal_net){
        .ops = &peal_tcp_ops, .rank = config->rank, .size = config->size, .events = config->events};
    tcp->epoll = -1;
    tcp->crypt = config->crypt;
    tcp->connect_ms = config->connect_ms ? config->connect_ms : CONNECT_MS;
    tcp->silence_s = config->silence_s;
    enum peal_status status = peal_identity_init(&tcp->identity, config, why);
    if (status == PEAL_OK)
        status = allocate(tcp);
    if (status == PEAL_OK)
        status = begin_listening(tcp, where, why);
    if (status != PEAL_OK) {
        peal_net_abandon(&tcp->net);
        return status;
    }
    memset(address, 0, PEAL_NET_ADDRESS);
    memcpy(address, &tcp->own, sizeof tcp->own);
    *out = &tcp->net;
    return PEAL_OK;
}

enum peal_status peal_net_meet_tcp(struct peal_net *net, const uint8_t *addresses)
{
    struct peal_tcp *tcp = (struct peal_tcp *)(void *)net;
    for (uint32_t r = 0; r < net->size; r++)
        memcpy(&tcp->blocks[r], addresses + (size_t)r * PEAL_NET_ADDRESS, sizeof *tcp->blocks);
    return PEAL_OK;
}
