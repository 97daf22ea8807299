/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP member.
 *
 *   tcp.c          the functions of the table, progress, closing
 *   tcp_open.c     opening
 *   tcp_connect.c  listeners, half-open connections, which of two simultaneous connections is kept
 *   tcp_queue.c    the queue of what is to be sent to a peer, and sending
 *   tcp_receive.c  receiving
 *   tcp_state.c    what always holds of a link, as assertions
 *
 * Connections. A pair of ranks has a watching connection and a data connection, made in this order by the
 * rank that first needs one. Nothing is ever sent on the watching connection: the system's keep-alive on it
 * shows when the peer's host has not answered for `silence_s` seconds. The data connection cannot show that: with
 * TCP_USER_TIMEOUT the system also ends a connection whose peer is alive but has not read for that long, and
 * a rank that computes or is stopped reads nothing.
 *
 * A peer that is in no call answers no handshake, although its system accepts the connection. The initiator
 * then waits for the answer as long as the peer's host is alive.
 *
 * If two ranks connect to each other at the same time, the connection of the lower rank is kept: it answers
 * the other's proof on a data connection with "yield", and the higher rank gives up its own attempt when the
 * lower one's arrives. Each may then have a watching connection of its own.
 *
 * Sending. Each link has a queue of items in order: runs of small frames, copied into a ring of bytes,
 * and long transfers, which are sent in chunks from where they are. Between two frames, control messages and
 * acknowledgements go first, then answers to gets in turn with the queue. What is accepted and cannot be sent
 * at once stays in the queue; if the queue is full, PEAL_PENDING.
 *
 * A link as a state machine. Each direction of a link is in one of these states, whatever the other direction and other
 * links do. Nothing that belongs to a half-read or half-written frame is shared between links; `buffer` of the net is
 * empty again when peal_tcp_receive returns.
 *
 *   reading   what is half read                   fields                                   next
 *   -------   ---------------------------------   --------------------------------------   ---------------------------
 *   between   nothing                             have == 0                                a byte: head
 *   head      a head                              0 < have < PEAL_NET_HEAD                 last byte: between (no data,
 *                                                                                          takes effect), data, bad
 *   data      a frame's data                      have == PEAL_NET_HEAD, left > 0;         last byte: takes effect,
 *                                                 to: where, NULL: dropped                 between, bad
 *   bad       (the peer broke the protocol)       bad                                      the link is lost
 *   bye       (the peer sends nothing more)       in.bye, have == 0                        the link is lost
 *   Sealed, a part of a record lies in front of it: incoming_len, less than a whole record.
 *
 *   writing   what is half written                fields                                   next
 *   -------   ---------------------------------   --------------------------------------   ---------------------------
 *   nothing   nothing                             out == PEAL_TCP_NOTHING                  next_frame: one of these
 *   control   frames of the control ring          out_bytes of the ring                    last byte: they leave the ring
 *   head      an acknowledgement                  out_head                                 last byte: nothing
 *   answer    the first answer, or a chunk of it  out_head, out_iov; kept: data copied     last byte: it is `done`
 *   item      the first item: a run of frames,    out_head, out_iov; kept: data copied     last byte: the item is `done`,
 *             or a chunk of a long transfer                                                its token ends
 *   In all but `nothing`, out_iov from out_first to out_count is what has not left: never empty, no empty piece.
 *   Sealed, sealed_done < sealed_len: a part of a record leaves behind which all of the above comes.
 *
 * Assertions come in pairs. Where a frame is written: its head is one that peal_net_head_check accepts, and the pieces
 * have as many bytes as the head says. Where it is read: the head is checked again, which is no assertion, because a
 * peer may send anything; a frame takes effect when exactly these bytes have come, and no byte of it is left.
 * tests/fuzz/fuzz_links.c drives several links at once through all of this, against a naive model.
 */
#ifndef PEAL_RUN_TCP_H
#define PEAL_RUN_TCP_H

#include "run/net/address.h"
#include "run/net/frame.h"
#include "run/net/handshake.h"
#include "run/net/inbound.h"

#include <sys/uio.h>

enum {
    PEAL_TCP_ITEMS = 128,
    PEAL_TCP_RING = 256 << 10,        /* bytes of small frames per link; a power of two */
    PEAL_TCP_CONTROL_RING = 32 << 10, /* the same for control messages */
    PEAL_TCP_RECEIVE = 64 << 10,      /* bytes received at a time, unless straight into memory */
    PEAL_TCP_HALF_OPEN = 64,    /* connections whose peer has not proved that it knows the secret */
    PEAL_TCP_HELLO_MS = 3000,   /* for a whole handshake */
    PEAL_TCP_RECORD = 32 << 10, /* bytes of an encrypted record, ... */
    PEAL_TCP_RECORD_HEAD = 4    /* ... whose number is sent before them, and their tag after them */
};

/* Bytes in a ring: `head` and `tail` only grow. */
struct peal_tcp_ring {
    uint8_t *at;
    uint32_t cap; /* a power of two */
    uint64_t head, tail;
};

struct peal_tcp_item {
    bool run;       /* of bytes of the ring; otherwise a long transfer */
    bool released;  /* given up: nothing more of it is sent */
    uint32_t bytes; /* of the run */
    struct peal_net_head head;
    struct peal_net_part parts[PEAL_NET_PARTS];
    uint32_t nparts;
    uint64_t total, done;
    struct peal_net_token *token;
};

/* What the frame being sent belongs to. */
enum peal_tcp_out {
    PEAL_TCP_NOTHING,
    PEAL_TCP_CONTROL,
    PEAL_TCP_HEAD,
    PEAL_TCP_ANSWER,
    PEAL_TCP_ITEM
};

struct peal_tcp_link {
    int fd;
    struct peal_net_inbound in;
    struct peal_net_parser parser;

    struct peal_tcp_item items[PEAL_TCP_ITEMS];
    uint64_t first, last; /* items that are queued: their numbers only grow */
    struct peal_tcp_ring ring, control;
    uint64_t flushes; /* the number of the last flush */
    bool answer_next; /* an answer's turn before the queue's */
    bool
        held; /* the queue has only frames that may leave later: no attempt to send them was made */

    enum peal_tcp_out out;
    uint8_t out_head[PEAL_NET_HEAD];
    struct iovec out_iov[1 + PEAL_NET_PARTS];
    uint32_t out_first, out_count;
    uint32_t out_bytes; /* of the frame's data, or of the run */
    uint8_t *kept; /* a copy of its data, whose memory has gone away; NULL until that happens */
    bool blocked;  /* the socket took no more */
    int send_error; /* why it never will again; 0: it may. What has arrived is read before the peer is lost */
    bool wants_out; /* epoll is asked for that */
    /* Bytes of the send buffer (0: the system chooses), and how often in a row the socket soon accepted bytes again:
     * see set_buffer. When it stopped accepting bytes; 0: it accepts them. */
    uint32_t buffer, prompt;
    uint64_t stuck_ns;

    /* Encrypted connections: a record on its way out, and received bytes that have yet to be opened. */
    struct peal_cipher *seal, *open;
    uint8_t *sealed, *incoming;
    uint32_t sealed_len, sealed_done, incoming_len;
};

enum peal_tcp_state {
    PEAL_TCP_IDLE,
    PEAL_TCP_CONNECTING,
    PEAL_TCP_YIELDED, /* the peer's own connection is to come */
    PEAL_TCP_READY,
    PEAL_TCP_LOST
};

struct peal_tcp_peer {
    enum peal_tcp_state state;
    struct peal_tcp_link *link;
    int watches[2]; /* watching connections: made by the peer, made by this rank; -1: none */
    enum peal_status status; /* once lost */
    bool lost_due;           /* the owner has not been told */
    char why[320];
    struct peal_address to[PEAL_ADDRESSES];
    uint32_t addresses, next_address;
    struct peal_address at; /* that worked */
    uint64_t deadline_ms;   /* of connecting */
    uint32_t failures;      /* attempts that had reached a process */
    uint32_t silent;        /* addresses in a row where no process was reached */
    bool refused;           /* one of them refused the connection: no process listens there */
    uint64_t retry_ms;      /* not before that */
};

/* A connection that has not been accepted by both sides. */
enum peal_tcp_step { PEAL_HAND_CONNECT, PEAL_HAND_HELLO, PEAL_HAND_ANSWER };
/* What follows when everything that this rank says in the handshake has left. Until then nothing is read: what comes behind
 * the handshake belongs to the link. */
enum peal_tcp_then { PEAL_HAND_GO_ON, PEAL_HAND_BEGIN, PEAL_HAND_END };
struct peal_tcp_hand {
    int fd; /* -1: free */
    bool initiator;
    enum peal_tcp_step step; /* what this rank waits for */
    uint32_t kind, rank;     /* rank: as the peer says, until it is proved */
    uint64_t deadline_ms;    /* UINT64_MAX: none */
    struct peal_address at;
    char from[64];
    struct peal_net_hello own, theirs;
    uint8_t in[sizeof(struct peal_net_hello)];
    uint32_t have;
    uint8_t out[sizeof(struct peal_net_hello) + sizeof(struct peal_net_hello_answer)];
    uint32_t out_len, out_done;
    enum peal_tcp_then then;
};

struct peal_tcp {
    struct peal_net net; /* first: the caller's view */
    struct peal_net_identity identity;
    uint32_t connect_ms;
    uint32_t silence_s; /* without an answer of its system, and a peer is lost */
    bool crypt;
    int epoll;
    int listeners[PEAL_LISTENERS];
    uint32_t nlisteners;
    struct peal_address_block own;
    struct peal_address_block *blocks; /* of all ranks */
    struct peal_tcp_peer *peers;
    struct peal_tcp_hand *hands;
    uint32_t nhands, hands_cap;
    uint32_t *ready; /* ranks whose links are up */
    uint32_t nready;
    uint32_t turns; /* calls of progress since the last service */
    uint32_t nlost_due;
    uint64_t silence_due_ms; /* when the watching connections are next examined */
    uint32_t complaints;     /* about strangers, on standard error */
    struct peal_net_segments segments;
    uint8_t *buffer; /* received bytes, which the parser of their link takes at once */
};

/* What an event of epoll belongs to. */
enum peal_tcp_source {
    PEAL_TCP_LISTENER,
    PEAL_TCP_HAND,
    PEAL_TCP_DATA,
    PEAL_TCP_WATCH /* made by the peer; the next number: made by this rank */
};
static inline uint64_t peal_tcp_event(enum peal_tcp_source source, uint32_t index)
{
    return (uint64_t)source << 32 | index;
}

/* tcp.c */
extern const struct peal_net_ops peal_tcp_ops;
/* The peer is lost: its connections are closed, its tokens fail, and the owner is told by the next
 * progress. Only the first reason counts. The link stays until the net is closed: a callback may be
 * the one that loses it. */
void peal_tcp_lose(struct peal_tcp *tcp, uint32_t rank, enum peal_status status, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

/* The same by what the system says of a connection; 0: that it was closed. */
void peal_tcp_lose_by(struct peal_tcp *tcp, uint32_t rank, int error);

/* tcp_connect.c */
/* Begins to connect unless that is under way. PEAL_OK: the link is up; PEAL_PENDING: not yet; or why not. */
enum peal_status peal_tcp_reach(struct peal_tcp *tcp, uint32_t rank);
void peal_tcp_accept(struct peal_tcp *tcp, uint32_t listener);
void peal_tcp_hand_event(struct peal_tcp *tcp, uint32_t index);
/* Deadlines and further attempts. */
void peal_tcp_tick(struct peal_tcp *tcp);

/* tcp_queue.c */
enum peal_status peal_tcp_link_init(struct peal_tcp_link *link);
/* After the handshake: sets the options of a data connection. */
void peal_tcp_link_tune(struct peal_tcp_link *link);
void peal_tcp_link_release(struct peal_tcp_link *link);
/* The peer is lost: what is queued is dropped, tokens fail. */
void peal_tcp_link_fail(struct peal_tcp_link *link, enum peal_status status);
/* A segment is retracted: nothing more is read from it or written to it. False, as in the next function: there is no memory for
 * what has to be sent of it, so the connection must end. */
bool peal_tcp_link_retract(struct peal_tcp_link *link, uint32_t segment);
/* Gives up the operations that share the token. */
bool peal_tcp_link_drop(struct peal_tcp_link *link, const struct peal_net_token *token);
/* Takes a frame with up to PEAL_NET_POST_MAX bytes of data, captured. */
enum peal_status peal_tcp_send(struct peal_tcp *tcp, uint32_t rank, struct peal_net_head *head,
                               const struct peal_net_part *parts, uint32_t nparts);
/* The same for a frame without data that may leave together with the next one. */
enum peal_status peal_tcp_send_later(struct peal_tcp *tcp, uint32_t rank,
                                     struct peal_net_head *head);
/* Takes a long transfer: `head` is of all of it. */
enum peal_status peal_tcp_transfer(struct peal_tcp *tcp, uint32_t rank,
                                   const struct peal_net_head *head,
                                   const struct peal_net_part *parts, uint32_t nparts,
                                   struct peal_net_token *token);
enum peal_status peal_tcp_send_control(struct peal_tcp *tcp, uint32_t rank,
                                       struct peal_net_head *head, const void *bytes);
/* Sends what the socket takes; true if anything was. */
bool peal_tcp_pump(struct peal_tcp *tcp, uint32_t rank);
bool peal_tcp_has_output(const struct peal_tcp_link *link);

/* tcp_receive.c */
bool peal_tcp_receive(struct peal_tcp *tcp, uint32_t rank);

/* tcp_state.c */
/* Asserts all that holds of a link between two calls; see the state machine above. */
void peal_tcp_link_check(const struct peal_tcp_link *link);

#endif
