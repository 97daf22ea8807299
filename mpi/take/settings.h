/* SPDX-License-Identifier: Apache-2.0 */
/* The settings, from the environment variables that begin with PEAL_MPI: see docs/mpi.md. */
#ifndef PEAL_MPI_SETTINGS_H
#define PEAL_MPI_SETTINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The collectives, in the order of `names` in settings.c. */
enum peal_mpi_collective {
    PEAL_MPI_BARRIER,
    PEAL_MPI_BCAST,
    PEAL_MPI_ALLREDUCE,
    PEAL_MPI_REDUCE,
    PEAL_MPI_ALLGATHER,
    PEAL_MPI_ALLGATHERV,
    PEAL_MPI_ALLTOALL,
    PEAL_MPI_ALLTOALLV,
    PEAL_MPI_GATHER,
    PEAL_MPI_SCATTER,
    PEAL_MPI_REDUCE_SCATTER_BLOCK,
    PEAL_MPI_REDUCE_SCATTER,
    PEAL_MPI_SCAN,
    PEAL_MPI_EXSCAN,
    PEAL_MPI_GATHERV,
    PEAL_MPI_SCATTERV,
    PEAL_MPI_ALLTOALLW,
    PEAL_MPI_COLLECTIVES
};

const char *peal_mpi_collective_name(enum peal_mpi_collective collective);

/* Does it combine contributions? */
static inline bool peal_mpi_collective_reduces(enum peal_mpi_collective collective)
{
    switch (collective) {
    case PEAL_MPI_ALLREDUCE:
    case PEAL_MPI_REDUCE:
    case PEAL_MPI_REDUCE_SCATTER_BLOCK:
    case PEAL_MPI_REDUCE_SCATTER:
    case PEAL_MPI_SCAN:
    case PEAL_MPI_EXSCAN:
        return true;
    default:
        return false;
    }
}

enum { PEAL_MPI_MAX_RULES = 32 };

/* A rule of PEAL_MPI_RULES: calls to which it applies go to Peal if their bytes are within its
 * limits. */
struct peal_mpi_rule {
    int collective; /* a collective; -1: all */
    bool has_name, has_ranks;
    bool spans;     /* for communicators on several hosts */
    char name[64];  /* of the communicator, by MPI_Comm_get_name */
    uint32_t ranks; /* of the communicator */
    uint64_t min_bytes, max_bytes;
    bool is_sized; /* has limits; not for collectives whose sizes differ per rank */
};

struct peal_mpi_settings {
    bool off;
    bool check;      /* PEAL_MPI_CHECK: ranks compare their decisions at every call */
    int stats;       /* PEAL_MPI_STATS: 0, 1: rank 0 prints, 2: all ranks */
    uint64_t attach; /* PEAL_MPI_ATTACH: score at which a communicator is opened */
    bool tabled;     /* PEAL_MPI_TABLE: calls that Peal makes little faster are left to the MPI */
    uint32_t nrules;
    struct peal_mpi_rule rules[PEAL_MPI_MAX_RULES];
    uint64_t hash; /* of everything that decisions depend on */
};

/* Read at the first call. A value that is not understood is reported, and turns Peal off. */
extern const struct peal_mpi_settings *_Atomic peal_mpi_settings_read;
const struct peal_mpi_settings *peal_mpi_settings_read_own(void);
static inline const struct peal_mpi_settings *peal_mpi_settings(void)
{
    /* Acquire; partner: peal_mpi_settings_read_own. */
    const struct peal_mpi_settings *read =
        atomic_load_explicit(&peal_mpi_settings_read, memory_order_acquire);
    return read ? read : peal_mpi_settings_read_own();
}

/* Extends a hash by `data`; the first one extends PEAL_MPI_HASH_START. */
#define PEAL_MPI_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t peal_mpi_hash(uint64_t hash, const void *data, uint64_t len);

#endif
