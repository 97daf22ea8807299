/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals: frames of one peer take effect in the owner's memory, or are refused.
 *
 * Every access is checked here against the segments that are exposed at that moment, whichever member
 * carried it. What has to be answered (gets, atomics, flushes) is noted in the inbound's tables, which
 * are as large as the number of requests that a peer may have under way: a member sends the answers
 * when its connection has room, and nothing that a peer sends makes memory grow.
 */
#ifndef PEAL_RUN_INBOUND_H
#define PEAL_RUN_INBOUND_H

#include "run/net/frame.h"

#include <stdalign.h>

struct peal_net_segments {
    struct {
        uint8_t *base; /* NULL: not exposed */
        uint64_t bytes;
        uint32_t name; /* number and generation */
    } at[PEAL_NET_SEGMENTS];
};

enum peal_status peal_net_segments_set(struct peal_net_segments *segments, uint32_t segment,
                                       void *base, uint64_t bytes);
/* False: there is no such segment, and nothing has changed. */
bool peal_net_segments_clear(struct peal_net_segments *segments, uint32_t segment);

/* A request of the peer that has to be answered: memory to send, or the previous value of a word. */
struct peal_net_answer {
    bool busy;
    bool atomic;
    bool refused; /* or it has become so: the segment was retracted */
    uint32_t segment;
    const uint8_t *from;
    uint64_t bytes, done;
    uint64_t old;
};

/* A request of this rank that the peer has to answer. */
struct peal_net_request {
    bool busy;
    bool atomic;
    uint8_t *to; /* NULL: given up */
    uint64_t bytes, done;
    uint64_t *old;
    struct peal_net_token *token;
};

struct peal_net_inbound {
    struct peal_net *net;
    uint32_t rank; /* the peer's */
    struct peal_net_segments *segments;
    uint8_t *started; /* where the data of the current frame goes */
    uint64_t refused; /* the peer's accesses that found no segment */
    bool ack_due;
    uint64_t flush;        /* the peer's last flush */
    uint64_t acked;        /* the last flush of this rank that the peer has acknowledged */
    uint64_t peer_refused; /* accesses of this rank that the peer has refused */
    bool bye;
    bool dropped;      /* the current frame's segment was retracted meanwhile, or never there */
    uint32_t nanswers; /* busy ones, in the order in which they came: */
    uint32_t answer_first;
    uint8_t answer_order[PEAL_NET_REQUESTS];
    struct peal_net_answer answers[PEAL_NET_REQUESTS];
    struct peal_net_request requests[PEAL_NET_REQUESTS];
    /* Data that has no place of its own, until its frame is complete. Of this peer alone: frames of several peers may
     * be half received at the same time. */
    alignas(16) uint8_t stage[PEAL_NET_POST_MAX];
};

/* `begin` and `end` of a sink: for the parser, or for a member that receives whole frames. */
const char *peal_net_inbound_begin(void *inbound, const struct peal_net_head *head, uint8_t **to);
const char *peal_net_inbound_end(void *inbound, const struct peal_net_head *head);
/* A segment goes away: no answer reads it any more. True if the current frame was going there. */
bool peal_net_inbound_retract(struct peal_net_inbound *inbound, uint32_t segment,
                              const struct peal_net_head *current);
/* A free slot of `requests`, or NULL; the head of the message to the peer gets its number. And: that
 * message was sent, and the answer goes where `request` says. */
struct peal_net_request *peal_net_inbound_request(struct peal_net_inbound *inbound,
                                                  struct peal_net_head *head);
void peal_net_inbound_asked(struct peal_net_request *slot, const struct peal_net_request *request);
/* The oldest answer that is to be sent, or NULL; and: it has been sent. */
struct peal_net_answer *peal_net_inbound_answer(struct peal_net_inbound *inbound, uint32_t *id);
void peal_net_inbound_answered(struct peal_net_inbound *inbound);
/* Requests with this token are given up: their data is dropped when it comes. True if the current frame
 * was going there. */
bool peal_net_inbound_release(struct peal_net_inbound *inbound, const struct peal_net_token *token,
                              const struct peal_net_head *current);
/* The peer is lost: every token under way fails. */
void peal_net_inbound_fail(struct peal_net_inbound *inbound, enum peal_status status);

/* An operation is under way, or complete. */
void peal_net_token_begin(struct peal_net_token *token);
void peal_net_token_end(struct peal_net_token *token, enum peal_status status);

#endif
