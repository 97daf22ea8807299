/* SPDX-License-Identifier: Apache-2.0 */
/* Is this call Peal's? Communicators as this library knows them, and the decision for each call.
 *
 * A communicator's life, all of it in blocking collectives, because those may synchronise:
 *
 *     new ── greet ──▶ counting ── attach ──▶ attached
 *              │                      │
 *              └──────▶ refused ◀─────┘
 *
 * Greeting (greet.h), at the first blocking collective: each rank learns the settings and hosts of all
 * others. From then on they know the same, and so decide the same.
 *
 * Attaching (attach.h), when enough calls were made that Peal could have taken: the ranks open a Peal
 * communicator; if one cannot, none does. Ranks on several hosts meet through messages of the MPI
 * (store.h). Requests use a second Peal communicator, opened in the same way once enough non-blocking
 * calls were made: so they share no lock with blocking calls, and starting one never waits for other
 * ranks.
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
    uint32_t left[PEAL_MPI_WHATS];   /* the same bits, for peal_mpi_is_left */
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

/* The library is loaded with the program, so that the place of this among a thread's data is known. */
#define PEAL_MPI_OWN_THREAD _Thread_local __attribute__((tls_model("initial-exec")))

/* Communicators of this thread's last calls. One counts as long as none has been freed since, because its
 * handle may have been given to another. */
struct peal_mpi_recent {
    void *comm;
    struct peal_mpi_comm *state;
    uint64_t frees;
};
enum { PEAL_MPI_RECENT = 8 };
extern PEAL_MPI_OWN_THREAD struct peal_mpi_recent peal_mpi_recent[PEAL_MPI_RECENT];
extern _Atomic uint64_t peal_mpi_frees; /* from 1 */

static inline struct peal_mpi_recent *peal_mpi_recent_at(const void *comm)
{
    return &peal_mpi_recent[peal_mpi_place_of(comm) % PEAL_MPI_RECENT];
}

/* NULL: it is not among the last ones. */
static inline struct peal_mpi_comm *peal_mpi_recall(const void *comm)
{
    const struct peal_mpi_recent *recent = peal_mpi_recent_at(comm);
    /* Relaxed: the program orders the freeing of a communicator and the making of another. */
    uint64_t frees = atomic_load_explicit(&peal_mpi_frees, memory_order_relaxed);
    return recent->comm == comm && recent->frees == frees ? recent->state : NULL;
}

/* Bytes of all blocks of a rank. `count_bytes` are of what the call counts: one block, where there are several. */
static inline uint64_t peal_mpi_all_bytes(enum peal_mpi_what what, uint64_t count_bytes,
                                          uint32_t size)
{
    bool is_block = what == PEAL_MPI_ALLGATHER || what == PEAL_MPI_ALLTOALL ||
                    what == PEAL_MPI_REDUCE_SCATTER_BLOCK;
    return is_block ? count_bytes * size : count_bytes;
}

/* Bytes by powers of two. */
static inline uint32_t peal_mpi_class_of(uint64_t bytes)
{
    uint32_t class = 63 - (uint32_t)__builtin_clzll(bytes | 1);
    return class < PEAL_MPI_CLASSES ? class : PEAL_MPI_CLASSES - 1;
}

/* True if the call is left to the MPI, and nobody wants to know: found in a few instructions, because
 * such calls are the shortest. By the collective and bytes alone; what else there may be to a call
 * (operation, root, wrong arguments) would leave it to the MPI, too. */
static inline bool peal_mpi_is_left(enum peal_mpi_what what, const void *comm, int count,
                                    const void *type)
{
    const struct peal_mpi_comm *state = peal_mpi_recall(comm);
    if (!state || state->left[what] == 0)
        return false;
    const struct peal_mpi_type *known = peal_mpi_type_find(type);
    if (!known)
        return false;
    uint64_t bytes = (uint64_t)(uint32_t)count * known->bytes;
    return state->left[what] >> peal_mpi_class_of(peal_mpi_all_bytes(what, bytes, state->size)) & 1;
}

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
