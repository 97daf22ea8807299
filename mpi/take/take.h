/* SPDX-License-Identifier: Apache-2.0 */
/* Decides for each call whether Peal takes it, and keeps what it must know of communicators for
 * that.
 *
 * The phases of a communicator change in blocking collectives only, because these may synchronise:
 *
 *     new ── agree ──▶ counting ── attach ──▶ attached
 *              │                      │
 *              └──────▶ refused ◀─────┘
 *
 * Agree (agree.h), at the first blocking collective: each rank learns the settings and hosts of the
 * others. From then on all ranks know the same, and so decide the same.
 *
 * Attach (attach.h), after enough calls that Peal could have taken: the ranks open a Peal
 * communicator. If one of them cannot, none does. Ranks on several hosts find each other through
 * messages of the MPI (store.h). Requests have a second Peal communicator, opened in the same way
 * after enough non-blocking calls. So they share no lock with blocking calls, and starting one
 * never waits for other ranks.
 *
 * What is known of a communicator is an attribute of it, which is not copied with the communicator
 * and is deleted with it.
 */
#ifndef PEAL_MPI_TAKE_H
#define PEAL_MPI_TAKE_H

#include "abi.h"
#include "settings.h"

#include <stdatomic.h>

/* Why a call is left to the MPI; TAKEN: it is not. stats.c has the texts. */
enum peal_mpi_reason {
    PEAL_MPI_TAKEN,
    PEAL_MPI_OFF,         /* PEAL_MPI=off, or a setting that was not understood */
    PEAL_MPI_DIFFERS,     /* ranks have different settings */
    PEAL_MPI_INTER,       /* an intercommunicator */
    PEAL_MPI_ALONE,       /* one rank */
    PEAL_MPI_OTHER_WORLD, /* a rank of another MPI_COMM_WORLD */
    PEAL_MPI_LARGE,       /* more than PEAL_MOST_RANKS ranks */
    PEAL_MPI_NO_MEMORY,   /* Peal could not be opened */
    PEAL_MPI_EARLY,       /* not attached yet */
    PEAL_MPI_RULED,       /* PEAL_MPI_RULES */
    PEAL_MPI_SLOWER,      /* by the measured table */
    PEAL_MPI_USER_OP,
    PEAL_MPI_TYPE,  /* Peal has no such operation on this type */
    PEAL_MPI_EMPTY, /* no data */
    PEAL_MPI_HUGE,  /* 2 GiB or more */
    PEAL_MPI_WRONG, /* arguments that are an error, which the MPI reports */
    PEAL_MPI_NEVER, /* a collective that Peal never takes */
    PEAL_MPI_REASONS
};

/* Classes of sizes, by powers of two. */
enum { PEAL_MPI_CLASSES = 32 };

enum peal_mpi_phase { PEAL_MPI_NEW, PEAL_MPI_COUNTING, PEAL_MPI_REFUSED, PEAL_MPI_ATTACHED };

struct peal_mpi_comm {
    struct peal_mpi_comm *next, **link; /* in the list of all */
    void *comm;                         /* the MPI's handle */
    uint32_t rank, size;
    bool spans;        /* several hosts */
    bool shares_cores; /* has more ranks than its host has cores */
    uint32_t
        slower[PEAL_MPI_COLLECTIVES]; /* bit i: left to the MPI from 2^i bytes to the next power */
    uint32_t left[PEAL_MPI_COLLECTIVES]; /* the same bits, for peal_mpi_is_left */
    enum peal_mpi_phase phase;
    enum peal_mpi_reason why;      /* why it is refused */
    uint64_t rules;                /* bit i: rule i applies to it */
    uint64_t score, request_score; /* calls made: see peal_mpi_score */
    struct peal_comm *blocking;    /* NULL until it is attached */
    struct peal_comm *requests;    /* NULL until it is opened */
    bool requests_refused;
    char progress[8]; /* an MPI_Request that never completes: see attach.c */
    bool has_progress;
    uint64_t chain;         /* hash of all decisions so far, with PEAL_MPI_CHECK */
    int failure;            /* the error code of a failed communicator, or 0 */
    _Atomic uint32_t users; /* the attribute, and pending requests */
};

/* One collective, as the program called it. */
struct peal_mpi_call {
    enum peal_mpi_collective collective;
    bool starts; /* non-blocking */
    int root;
    const void *send;
    void *recv;
    int sendcount, recvcount; /* a call with one count has it in recvcount */
    const int *sendcounts, *senddispls, *recvcounts, *recvdispls;
    void *sendtype, *recvtype;
    void *op;
    void *comm;
    /* Filled in by the decision. */
    struct peal_mpi_comm *state;
    const struct peal_mpi_reduction *reduction;
    const struct peal_mpi_pair *pair; /* the type, if it is in pairs.def; NULL if in types.def */
    uint64_t bytes;                   /* equal on all ranks; 0 where counts differ per rank */
    enum peal_mpi_reason reason;
    uint64_t since_ns; /* for statistics */
};

/* Faster access: the library is loaded with the program, so its thread-local data has a fixed
 * place. */
#define PEAL_MPI_OWN_THREAD _Thread_local __attribute__((tls_model("initial-exec")))

/* A cache of the communicators of this thread's last calls. Freeing any communicator invalidates
 * it, because the handle may be given to another. */
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

/* NULL if it is not in the cache. */
static inline struct peal_mpi_comm *peal_mpi_recall(const void *comm)
{
    const struct peal_mpi_recent *recent = peal_mpi_recent_at(comm);
    /* Relaxed: the program makes sure that a communicator is freed before another one gets its
     * handle. */
    uint64_t frees = atomic_load_explicit(&peal_mpi_frees, memory_order_relaxed);
    return recent->comm == comm && recent->frees == frees ? recent->state : NULL;
}

/* Bytes of all of a rank's data. `count_bytes` are those that a call's count says: of one block, if
 * there are several. */
static inline uint64_t peal_mpi_all_bytes(enum peal_mpi_collective collective, uint64_t count_bytes,
                                          uint32_t size)
{
    bool is_block = collective == PEAL_MPI_ALLGATHER || collective == PEAL_MPI_ALLTOALL ||
                    collective == PEAL_MPI_REDUCE_SCATTER_BLOCK;
    return is_block ? count_bytes * size : count_bytes;
}

/* The class of a size. */
static inline uint32_t peal_mpi_class_of(uint64_t bytes)
{
    uint32_t class = 63 - (uint32_t)__builtin_clzll(bytes | 1);
    return class < PEAL_MPI_CLASSES ? class : PEAL_MPI_CLASSES - 1;
}

/* True if the call is left to the MPI and need not be counted. Collective and bytes are enough to
 * know it: whatever else there may be about the call (operation, root, wrong arguments) could only
 * leave it to the MPI, too. */
bool peal_mpi_is_left(enum peal_mpi_collective collective, const void *comm, int count,
                      const void *type);

/* Communicator and type of this thread's last call for which that was true. */
struct peal_mpi_last {
    const void *comm, *type;
    uint64_t frees;
    const struct peal_mpi_comm *state;
    uint64_t bytes; /* of an element */
};
extern PEAL_MPI_OWN_THREAD struct peal_mpi_last peal_mpi_last;

/* The same for the communicator and type of the last call. It takes a few instructions only,
 * because such calls are the shortest of all. */
static inline bool peal_mpi_is_left_again(enum peal_mpi_collective collective, const void *comm,
                                          int count, const void *type)
{
    const struct peal_mpi_last *last = &peal_mpi_last;
    /* Relaxed: see peal_mpi_recall. */
    uint64_t frees = atomic_load_explicit(&peal_mpi_frees, memory_order_relaxed);
    if (last->comm != comm || last->type != type || last->frees != frees)
        return false;
    uint64_t bytes =
        peal_mpi_all_bytes(collective, (uint64_t)(uint32_t)count * last->bytes, last->state->size);
    return last->state->left[collective] >> peal_mpi_class_of(bytes) & 1;
}

/* Decides on a blocking call. True if Peal has taken it; `code` is then the result. False if the
 * caller has to call the MPI, and then peal_mpi_passed. */
bool peal_mpi_take(struct peal_mpi_call *call, int *code);
/* Decides on a non-blocking call, without waiting for other ranks. True if Peal takes it. */
bool peal_mpi_take_start(struct peal_mpi_call *call);
/* Counts a call that the MPI has made. Returns `code`. */
int peal_mpi_passed(const struct peal_mpi_call *call, int code);

/* Drops one user; the last one closes Peal's communicators. */
void peal_mpi_comm_drop(struct peal_mpi_comm *state);

#endif
