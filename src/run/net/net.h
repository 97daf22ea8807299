/* SPDX-License-Identifier: Apache-2.0 */
/* A transport: how a rank reaches the memory of ranks on other hosts.
 *
 * One `struct peal_net` belongs to one rank and reaches all other ranks of its job. Ranks of the same
 * host do not need it: they load and store.
 *
 *   net.c           opens a net: the member (members.h) that PEAL_NET names, or TCP
 *   tcp.h, ucx.c    the members; the same tests run over all of them
 *   frame.h         what TCP and UCX carry         inbound.h  arrivals take effect, or are refused
 *   address.h       where a rank listens           handshake.h, crypto.h  who may connect
 *   meet.h, meet/   how ranks exchange addresses   hosts.h    messages of peal exec --hosts
 *
 * Segments. A rank exposes pieces of its memory, each under a number that the caller chooses, so that
 * a peer can name it without having been told anything. An access names {segment, offset}; the
 * receiver checks it against what is exposed there at that moment. The upper half of a segment's
 * number is a generation: an access to one that is not exposed (any more) is discarded, reported to
 * its sender (peal_net_refused, a get's token) and does no harm. An access that names an exposed
 * segment and leaves its bounds comes from a broken peer: the connection is ended with a message.
 *
 * What is ordered before what. Everything here is about one pair: this rank and one target.
 *   - A signal (with a put or alone) and a post take effect at the target after all earlier puts,
 *     accumulates, signals and posts of this rank to that target. A thread that reads the signal's
 *     word with an acquire load sees the data.
 *   - Puts without a signal may become visible in any order, before the next signal.
 *   - A get sees earlier puts of this rank to that target. Its data is complete when its token is.
 *   - An atomic takes effect after earlier puts to that target, and is atomic with signals that add,
 *     with other ranks' atomics, and with C11 atomics of the owner's host.
 *   - Control messages are ordered among themselves only, and may pass everything else.
 *   - Nothing is ordered between two targets. What needs that asks for remote completion: a ticket.
 *
 * Who progresses. Nothing moves by itself: queued bytes leave, arrivals take effect, connections are
 * made and peers' gets are answered in peal_net_progress of the rank concerned, which every wait has
 * to call. What was sent to a rank that makes no progress waits, and so do gets, atomics and tickets.
 * The functions that start something try to send at once, but receive nothing; callbacks run only in
 * progress. A net may be used by one thread at a time; a second one may sleep on peal_net_arm's
 * descriptor and call progress, under the caller's lock.
 *
 * No function blocks, and none allocates, except peal_net_open, peal_net_close and opening a connection
 * (system calls that return at once). Functions that start something return
 *   PEAL_OK         accepted; the source belongs to the transport until the token is done
 *   PEAL_PENDING    no room, or no connection yet: nothing was accepted. Call progress and try again
 *   PEAL_PEER_DEAD  that rank is lost for good; peal_net_health says why
 *   PEAL_CLOSED     that rank has closed its net normally
 *   PEAL_INVALID    the arguments can never work: a rank or length beyond the limits
 * An error is about one peer; the net and its other peers stay usable.
 *
 * A source of at most PEAL_NET_EAGER bytes in all is captured before the call returns: it needs no
 * token. Tokens are counters that the caller owns: several operations may share one.
 */
#ifndef PEAL_RUN_NET_H
#define PEAL_RUN_NET_H

#include "base/base.h"

#include <assert.h>
#include <peal/types.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    PEAL_NET_PROTOCOL = 1,    /* of frames and handshake: compared when ranks connect */
    PEAL_NET_SECRET = 32,     /* bytes of a job's secret */
    PEAL_NET_SEGMENTS = 1024, /* numbers of exposed segments: 0 to 1023 */
    PEAL_NET_SILENCE = 3,     /* seconds: see peal_net_config */
    PEAL_NET_MIN_SILENCE = 2,
    PEAL_NET_MAX_SILENCE = 3600,
    PEAL_NET_PARTS = 4,              /* pieces that a source is gathered from */
    PEAL_NET_EAGER = 2048,           /* bytes that are always captured */
    PEAL_NET_POST_MAX = 65536,       /* bytes of a post */
    PEAL_NET_ACCUMULATE_MAX = 65536, /* bytes that one delivery of an accumulate has at most */
    PEAL_NET_CONTROL_MAX = 8192,     /* bytes of a control message */
    PEAL_NET_ADDRESS = 1024          /* bytes of a member's address */
};

/* A segment's name in an access: number and generation. */
static inline uint32_t peal_net_segment(uint32_t number, uint32_t generation)
{
    return number | generation << 16;
}

/* Counts operations under way. All zero: none is, and none has failed. */
struct peal_net_token {
    /* Added to when an operation is taken; subtracted from, with release, when it is complete. */
    _Atomic uint32_t pending;
    /* enum peal_status of the first operation that failed; written before `pending`. */
    _Atomic uint32_t status;
};
static inline bool peal_net_token_is_done(const struct peal_net_token *token)
{
    /* Partner: the release when an operation completes (in progress, maybe of another thread). */
    return atomic_load_explicit(&token->pending, memory_order_acquire) == 0;
}
static inline enum peal_status peal_net_token_status(const struct peal_net_token *token)
{
    /* Relaxed: read after `pending` was acquired as 0. */
    return (enum peal_status)atomic_load_explicit(&token->status, memory_order_relaxed);
}

/* A piece of this rank's memory. */
struct peal_net_part {
    const void *at;
    uint64_t bytes;
};

/* A word of a target's memory that changes after data has arrived. 8 bytes, aligned to 8. */
enum peal_net_change { PEAL_NET_NO_SIGNAL, PEAL_NET_SET, PEAL_NET_ADD };
struct peal_net_signal {
    uint32_t segment;
    uint32_t change; /* enum peal_net_change */
    uint64_t offset;
    uint64_t value;
};

/* A put: parts of this rank's memory, one after the other, to one place. No parts: a signal alone. */
struct peal_net_put {
    uint32_t rank;
    uint32_t segment;
    uint64_t offset;
    const struct peal_net_part *parts; /* the array is copied */
    uint32_t nparts;
    struct peal_net_signal signal;
    bool
        later; /* a signal alone that no rank waits for yet: it may leave with the next message to that rank,
                   at the latest in the next progress */
};

struct peal_net_get {
    uint32_t rank;
    uint32_t segment;
    uint64_t offset;
    uint64_t bytes;
    void *to;
};

/* Elements that the owner combines into its memory. `fn`, `dtype` and `flags` are the caller's: they
 * are handed to the owner's callback. A delivery has whole elements only. */
struct peal_net_accumulate {
    uint32_t rank;
    uint32_t segment;
    uint64_t offset;
    const void *from;
    uint64_t bytes; /* a multiple of element */
    uint16_t element;
    uint8_t fn, dtype;
    uint32_t flags;
    struct peal_net_signal signal;
};

enum peal_net_atomic_kind { PEAL_NET_FETCH_ADD, PEAL_NET_COMPARE_SWAP, PEAL_NET_SWAP };
struct peal_net_atomic {
    uint32_t rank;
    uint32_t segment;
    uint64_t offset; /* a multiple of width */
    uint32_t kind;   /* enum peal_net_atomic_kind */
    uint32_t width;  /* 4 or 8 bytes */
    uint64_t operand, compare;
    uint64_t *old; /* gets the previous value; the token says when. May not be NULL */
};

/* What arrives for the owner of the net. Called in peal_net_progress only; they must return soon, and
 * may start operations, but not call progress or close. `bytes` and `from` are
 * aligned to 16 and gone when the callback returns. */
struct peal_net_events {
    void *context;
    /* Combines `bytes` bytes at `from` into `at`, exposed memory that was checked. */
    void (*accumulate)(void *context, uint32_t rank, const struct peal_net_accumulate *accumulate,
                       void *at, const void *from);
    void (*post)(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len);
    void (*control)(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len);
    /* A signal has changed a word, on which a thread may sleep. */
    void (*signalled)(void *context, uint32_t rank);
    /* That rank is lost, once per rank; `status` and `why` as of peal_net_health. */
    void (*lost)(void *context, uint32_t rank, enum peal_status status, const char *why);
};

struct peal_meet;
struct peal_net;

/* What has to be equal on all ranks: compared in the handshake; a difference is refused with a message.
 * Short texts; NULL: not compared. */
struct peal_net_versions {
    const char *library; /* filled in by peal_net_open if NULL */
    const char *kernels; /* hash of the kernel library */
    const char *tune;    /* hash of the table of algorithms */
};

struct peal_net_config {
    uint32_t rank, size;
    const char *job;
    /* PEAL_NET_SECRET bytes, copied: ranks prove to each other that they know them. TCP does not open
     * without a secret. */
    const uint8_t *secret;
    /* As PEAL_NET: a transport, then where it may listen: "tcp", "tcp:eth0", "tcp:10.0.0.0/8,fd00::/8",
     * "ucx:eth0". NULL: the environment's, then tcp on what routes to the peers. */
    const char *transport;
    bool crypt;          /* every frame is encrypted and authenticated: PEAL_NET_CRYPT */
    uint32_t connect_ms; /* for one connection, from the first try; 0: 10000 */
    /* Seconds without an answer of a peer's system after which the peer is lost, PEAL_NET_MIN_SILENCE to
     * PEAL_NET_MAX_SILENCE; 0: those of the variable PEAL_NET_SILENCE, or of the constant. */
    uint32_t silence_s;
    struct peal_net_versions versions;
    struct peal_net_events events; /* callbacks may be NULL: what arrives for them is dropped */
};

/* The member's functions; semantics as above, called through the functions below. */
struct peal_net_ops {
    const char *name;
    enum peal_status (*expose)(struct peal_net *net, uint32_t segment, void *base, uint64_t bytes);
    void (*retract)(struct peal_net *net, uint32_t segment);
    enum peal_status (*put)(struct peal_net *net, const struct peal_net_put *put,
                            struct peal_net_token *token);
    enum peal_status (*get)(struct peal_net *net, const struct peal_net_get *get,
                            struct peal_net_token *token);
    enum peal_status (*accumulate)(struct peal_net *net,
                                   const struct peal_net_accumulate *accumulate,
                                   struct peal_net_token *token);
    enum peal_status (*atomic)(struct peal_net *net, const struct peal_net_atomic *atomic,
                               struct peal_net_token *token);
    enum peal_status (*post)(struct peal_net *net, uint32_t rank, uint32_t kind,
                             const struct peal_net_part *parts, uint32_t nparts);
    enum peal_status (*control)(struct peal_net *net, uint32_t rank, uint32_t kind,
                                const void *bytes, uint64_t len);
    enum peal_status (*ticket)(struct peal_net *net, uint32_t rank, uint64_t *out);
    bool (*flushed)(struct peal_net *net, uint32_t rank, uint64_t ticket);
    uint64_t (*refused)(const struct peal_net *net, uint32_t rank);
    bool (*progress)(struct peal_net *net);
    bool (*unsent)(const struct peal_net *net);
    int (*arm)(struct peal_net *net);
    enum peal_status (*health)(struct peal_net *net, uint32_t rank, const char **why);
    void (*release)(struct peal_net *net, struct peal_net_token *token);
    void (*close)(struct peal_net *net, uint32_t linger_ms);
    void (*abandon)(struct peal_net *net);
};

struct peal_net {
    const struct peal_net_ops *ops;
    uint32_t rank, size;
    struct peal_net_events events;
    /* A connection has not taken all that was to be sent: further progress has to send the rest. It may be false alarm; the
     * member sets it, peal_net_is_stuck clears it. Relaxed: a hint, outside the caller's lock. */
    _Atomic bool stuck;
};

/* Opens this rank's net. Collective over the meeting: addresses and versions are exchanged; connections
 * are made when first needed. `why` gets a line on failure, which all ranks learn of. The meeting is
 * not needed afterwards. */
enum peal_status peal_net_open(const struct peal_net_config *config, struct peal_meet *meet,
                               struct peal_text *why, struct peal_net **out);
/* Closes it: what is queued is sent for at most `linger_ms`, and peers are told. Tokens of operations under
 * way are not touched any more. Accepts NULL. */
static inline void peal_net_close(struct peal_net *net, uint32_t linger_ms)
{
    if (net)
        net->ops->close(net, linger_ms);
}
/* In a forked child: frees the copy, and notifies no rank. */
static inline void peal_net_abandon(struct peal_net *net)
{
    if (net)
        net->ops->abandon(net);
}

/* Lets peers reach `bytes` bytes at `base` as `segment`, in place of what its number named. PEAL_INVALID:
 * no such number. */
static inline enum peal_status peal_net_expose(struct peal_net *net, uint32_t segment, void *base,
                                               uint64_t bytes)
{
    return net->ops->expose(net, segment, base, bytes);
}
/* Ends that. No access that begins in later progress touches the memory; one that has begun (a large
 * put that is being received, a get's reply that is being sent) is ended or discarded here. */
static inline void peal_net_retract(struct peal_net *net, uint32_t segment)
{
    net->ops->retract(net, segment);
}
/* Puts, with a signal or without. The token may be NULL for at most PEAL_NET_EAGER bytes. */
static inline enum peal_status peal_net_put(struct peal_net *net, const struct peal_net_put *put,
                                            struct peal_net_token *token)
{
    return net->ops->put(net, put, token);
}
static inline enum peal_status peal_net_signal(struct peal_net *net, uint32_t rank,
                                               const struct peal_net_signal *signal)
{
    struct peal_net_put put = {.rank = rank, .signal = *signal};
    return net->ops->put(net, &put, NULL);
}
/* The same for a signal that no rank waits for yet. */
static inline enum peal_status peal_net_signal_later(struct peal_net *net, uint32_t rank,
                                                     const struct peal_net_signal *signal)
{
    struct peal_net_put put = {.rank = rank, .signal = *signal, .later = true};
    return net->ops->put(net, &put, NULL);
}
static inline enum peal_status peal_net_get(struct peal_net *net, const struct peal_net_get *get,
                                            struct peal_net_token *token)
{
    return net->ops->get(net, get, token);
}
static inline enum peal_status peal_net_accumulate(struct peal_net *net,
                                                   const struct peal_net_accumulate *accumulate,
                                                   struct peal_net_token *token)
{
    return net->ops->accumulate(net, accumulate, token);
}
static inline enum peal_status peal_net_atomic(struct peal_net *net,
                                               const struct peal_net_atomic *atomic,
                                               struct peal_net_token *token)
{
    return net->ops->atomic(net, atomic, token);
}
/* A message of at most PEAL_NET_POST_MAX bytes, captured, in order with puts; `kind` is the caller's. */
static inline enum peal_status peal_net_post(struct peal_net *net, uint32_t rank, uint32_t kind,
                                             const struct peal_net_part *parts, uint32_t nparts)
{
    return net->ops->post(net, rank, kind, parts, nparts);
}
/* A message of at most PEAL_NET_CONTROL_MAX bytes, captured, that does not wait behind data. */
static inline enum peal_status peal_net_control(struct peal_net *net, uint32_t rank, uint32_t kind,
                                                const void *bytes, uint64_t len)
{
    return net->ops->control(net, rank, kind, bytes, len);
}

/* Remote completion. A ticket stands for everything that this rank has started to that target so far;
 * it is flushed when all of that has taken effect in the target's memory. */
static inline enum peal_status peal_net_ticket(struct peal_net *net, uint32_t rank, uint64_t *out)
{
    return net->ops->ticket(net, rank, out);
}
static inline bool peal_net_flushed(struct peal_net *net, uint32_t rank, uint64_t ticket)
{
    return net->ops->flushed(net, rank, ticket);
}
/* How many accesses that target has refused so far because their segments were not exposed. Those before a
 * ticket are counted when it is flushed. */
static inline uint64_t peal_net_refused(const struct peal_net *net, uint32_t rank)
{
    return net->ops->refused(net, rank);
}

/* Gives up what shares this token, after a failure: from now on neither the token nor any source or
 * destination of those operations is touched. What has not left does not arrive, nor do its signals;
 * of a transfer that is under way, a part may arrive, without its signal. */
static inline void peal_net_release(struct peal_net *net, struct peal_net_token *token)
{
    net->ops->release(net, token);
}

/* Sends, receives and connects as far as possible; true if anything happened. */
static inline bool peal_net_progress(struct peal_net *net)
{
    return net->ops->progress(net);
}
/* Is there anything that a connection has refused to take, and that has not been sent since? */
static inline bool peal_net_is_stuck(struct peal_net *net)
{
    if (!atomic_load_explicit(&net->stuck, memory_order_relaxed))
        return false;
    bool unsent = net->ops->unsent(net);
    atomic_store_explicit(&net->stuck, unsent, memory_order_relaxed);
    return unsent;
}
/* A descriptor that becomes readable when progress has something to do, to be polled, not read: valid
 * until the next call of any function here, and for 100 ms at most, as time-outs of connections need a
 * progress now and then. -1: there is something to do already. */
static inline int peal_net_arm(struct peal_net *net)
{
    return net->ops->arm(net);
}
/* What is known of that rank: PEAL_OK; PEAL_PENDING: not connected yet, which this begins; PEAL_CLOSED: it has
 * closed normally; PEAL_PEER_DEAD, PEAL_MISMATCH (another version) and others: lost for ever. *why (may be NULL
 * as argument) gets a line that lives as long as the net. A peer is watched from the first connection
 * on: the end of its process is known within milliseconds, a cut link or a dead host within 3.5 s, whether
 * or not anything is sent; a process that is stopped or busy elsewhere is PEAL_OK. */
static inline enum peal_status peal_net_health(struct peal_net *net, uint32_t rank,
                                               const char **why)
{
    return net->ops->health(net, rank, why);
}

#endif
