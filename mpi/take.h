/* SPDX-License-Identifier: Apache-2.0 */
/* Is this call Peal's? Communicators as this library knows them, and the decision for each call.
 *
 * A communicator's life, all of it in blocking collectives, because those may synchronise:
 *
 *     new ── greet ──▶ counting ── attach ──▶ attached
 *              │                      │
 *              └──────▶ refused ◀─────┘
 *
 * Greeting, at the first blocking collective: the ranks compare settings and hosts, by the MPI. From
 * then on they know the same and so decide the same. Ranks on several hosts meet through the MPI
 * (store.h) when they attach. Attaching, when enough calls were made that
 * Peal could have taken: the ranks open a Peal communicator; if one cannot, none does. Requests use
 * a second Peal communicator, opened in the same way once enough non-blocking calls were made:
 * so they share no lock with blocking calls, and starting one never waits for other ranks.
 *
 * A communicator is remembered by an attribute, which its copies do not get, and which goes with it.
 */
#ifndef PEAL_MPI_TAKE_H
#define PEAL_MPI_TAKE_H

#include "abi.h"
#include "settings.h"

#include <stdatomic.h>

/* Why a call is not Peal's; TAKEN: it is. The order is that of `reasons` in stats.c. */
enum peal_mpi_reason {
    PEAL_MPI_TAKEN,
    PEAL_MPI_OFF,       /* PEAL_MPI=off, or a setting that was not understood */
    PEAL_MPI_DIFFERS,   /* ranks have different settings */
    PEAL_MPI_INTER,     /* an intercommunicator */
    PEAL_MPI_ALONE,     /* one rank */
    PEAL_MPI_STRANGERS, /* a rank of another MPI_COMM_WORLD */
    PEAL_MPI_LARGE,     /* more ranks than Peal has */
    PEAL_MPI_NO_MEMORY, /* Peal could not be opened */
    PEAL_MPI_EARLY,     /* not attached yet */
    PEAL_MPI_RULED,     /* PEAL_MPI_RULES */
    PEAL_MPI_SLOWER,    /* the measured table */
    PEAL_MPI_USER_OP,
    PEAL_MPI_TYPE,  /* Peal has no such operation on this type */
    PEAL_MPI_EMPTY, /* no data */
    PEAL_MPI_HUGE,  /* 2 GiB or more */
    PEAL_MPI_WRONG, /* arguments that the MPI is to complain about */
    PEAL_MPI_NEVER, /* a collective that is always the MPI's */
    PEAL_MPI_REASONS
};

/* Sizes by powers of two, as many as an int can count. */
enum { PEAL_MPI_CLASSES = 32 };

enum peal_mpi_phase { PEAL_MPI_NEW, PEAL_MPI_COUNTING, PEAL_MPI_REFUSED, PEAL_MPI_ATTACHED };

struct peal_mpi_comm {
    struct peal_mpi_comm *next, **link; /* of all that there are */
    void *comm;                         /* the MPI's handle */
    uint32_t rank, size;
    bool spans;                      /* hosts */
    bool shares_cores;               /* more ranks than its host has */
    uint32_t slower[PEAL_MPI_WHATS]; /* bit i: left to the MPI from 2^i bytes to the next power */
    enum peal_mpi_phase phase;
    enum peal_mpi_reason why;      /* refused */
    uint64_t rules;                /* bit i: rule i is for this one */
    uint64_t score, request_score; /* calls made: see peal_mpi_score */
    struct peal_comm *blocking;    /* attached */
    struct peal_comm *requests;    /* NULL until it is opened */
    bool requests_refused;
    char pump[8]; /* a pending MPI_Request: testing it drives the MPI */
    bool has_pump;
    uint64_t chain;         /* hash of all decisions so far, with PEAL_MPI_CHECK */
    int failure;            /* the error code of a failed communicator, or 0 */
    _Atomic uint32_t users; /* the attribute, and requests under way */
};

/* One collective, as the program called it. */
struct peal_mpi_call {
    enum peal_mpi_what what;
    bool starts; /* non-blocking */
    int root;
    const void *send;
    void *recv;
    int sendcount, recvcount; /* of both sides, where they are one number */
    const int *sendcounts, *senddispls, *recvcounts, *recvdispls;
    void *sendtype, *recvtype;
    void *op;
    void *comm;
    /* Found by the decision. */
    struct peal_mpi_comm *state;
    const struct peal_mpi_reduction *reduction;
    const struct peal_mpi_pair *pair; /* elements are these; NULL: a type of types.def */
    uint64_t bytes; /* equal on all ranks; 0 for collectives with counts that differ */
    enum peal_mpi_reason reason;
    uint64_t since_ns; /* for statistics */
};

/* Decides on a blocking call and, if it is Peal's, makes it: true, and `code` is what to return.
 * False: the MPI is to be called, and peal_mpi_passed afterwards. */
bool peal_mpi_take(struct peal_mpi_call *call, int *code);
/* Decides on a non-blocking call; never waits for other ranks. True: it is Peal's. */
bool peal_mpi_take_start(struct peal_mpi_call *call);
/* After the MPI has done it. Returns `code`. */
int peal_mpi_passed(const struct peal_mpi_call *call, int code);

/* Gives up one use; the last closes. */
void peal_mpi_comm_drop(struct peal_mpi_comm *state);

#endif
