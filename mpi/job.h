/* SPDX-License-Identifier: Apache-2.0 */
/* A call as Peal makes it: arguments in Peal's terms, data packed where types have holes.
 *
 * peal_mpi_job_begin reads the program's buffers, peal_mpi_job_end writes them; between the two, the
 * job owns its temporary memory and Peal the buffers. */
#ifndef PEAL_MPI_JOB_H
#define PEAL_MPI_JOB_H

#include "take.h"

/* Packed data to be unpacked at the end. */
struct peal_mpi_result {
    const char *from; /* blocks one after the other; NULL: nothing to be done */
    char *to;
    void *type;
    const struct peal_mpi_pair *pair; /* widened ones, `count` of them in one block; NULL: packed */
    int count;                        /* elements of every block, or */
    const int *counts;                /* of each, and where it goes; the program's arrays */
    const int *displs;
    uint32_t blocks;
};

struct peal_mpi_job {
    enum peal_mpi_what what;
    void *comm; /* for packing: any will do, and the call's own may be freed before it ends */
    uint32_t rank, size;
    const void *send;
    void *recv;
    uint64_t count;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t root;
    uint64_t *words; /* of counts and offsets; owned */
    struct peal_blocks out, in;
    void *temps[2]; /* owned */
    char kept[8];   /* the MPI's handle of `result.type`, if that is owned */
    bool keeps_type;
    struct peal_mpi_result result;
};

/* PEAL_NO_MEMORY if there is none; nothing is kept then. */
enum peal_status peal_mpi_job_begin(struct peal_mpi_job *job, const struct peal_mpi_call *call);
/* Runs it. */
enum peal_status peal_mpi_job_run(struct peal_mpi_job *job, struct peal_comm *comm);
/* Starts it. */
enum peal_status peal_mpi_job_start(struct peal_mpi_job *job, struct peal_comm *comm,
                                    struct peal_request **out);
/* Unpacks if it went well, and frees. */
void peal_mpi_job_end(struct peal_mpi_job *job, enum peal_status status);

#endif
