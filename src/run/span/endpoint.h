/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an endpoint, shared by the files of this folder. */
#ifndef PEAL_RUN_ENDPOINT_H
#define PEAL_RUN_ENDPOINT_H

#include "run/span/span.h"

enum {
    PEAL_CONTROL_BYTES = 16384, /* of a control block in a mirror */
    PEAL_GATHERS_KEPT = 64,     /* gatherings that are over and remembered */
    PEAL_TEAMS_KEPT = 256       /* the same for teams that this rank has left */
};

/* What is known of a team that this rank has left, for those who ask later: peers that had no connection to this rank
 * or had not made the team when it left. */
struct peal_left {
    uint64_t id;
    uint64_t calls[PEAL_STREAMS], letters, onesided, dropped, ended; /* as in the control block */
};

/* A message of a gathering that this rank has not begun yet. */
struct peal_gather_note {
    struct peal_gather_note *next;
    uint64_t id;
    uint32_t kind, at, len;
    char bytes[];
};

struct peal_endpoint {
    struct peal_endpoint *next; /* of the process's list */
    pthread_mutex_t lock;
    struct peal_net *net;
    uint32_t users;          /* under the lock */
    uint32_t *nodes;         /* by rank of the net */
    struct peal_span *spans; /* under the lock, as all below */
    uint16_t generations[PEAL_NET_SEGMENTS];
    bool used[PEAL_NET_SEGMENTS];
    struct peal_gather_note *notes;
    uint32_t nnotes;
    uint64_t gathers_over[PEAL_GATHERS_KEPT], ngathers;
    struct peal_left left[PEAL_TEAMS_KEPT];
    uint64_t nleft;
    uint32_t turns;      /* calls of progress */
    int32_t pid;         /* a forked child must not touch the net */
    _Atomic bool marked; /* some team may have control messages that are unsent. Relaxed: a hint */
    /* The thread that serves it: always (peal_endpoint_serve), or while something is unsent and no rank's thread is in a
     * call (peal_span_depart). */
    bool serves, always;
    bool busy; /* it has something to send. Under the lock */
    pthread_t thread;
    _Atomic bool stops;
    int wake_fds[2];
};

/* Sends what is unsent in all teams of the endpoint, as far as the net has room. Under the lock. */
void peal_endpoint_send_unsent(struct peal_endpoint *endpoint);

#endif
