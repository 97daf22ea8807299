/* SPDX-License-Identifier: Apache-2.0 */
/* A call in Peal's terms: its arguments, and packed copies of data that is not contiguous.
 *
 * peal_mpi_job_begin reads the program's buffers, and peal_mpi_job_end writes them. In between, the
 * job owns its temporary memory, and Peal uses it and the program's buffers. */
#ifndef PEAL_MPI_JOB_H
#define PEAL_MPI_JOB_H

#include "take.h"

/* Packed data to be unpacked at the end. */
struct peal_mpi_result {
    const char *from; /* blocks one after the other; NULL: there is nothing to unpack */
    char *to;
    void *type;
    const struct peal_mpi_pair *pair; /* `count` widened pairs in one block; NULL: packed data */
    int count;                        /* elements of every block, or: */
    const int *counts; /* elements of each block, and its place: the program's arrays */
    const int *displs;
    uint32_t blocks;
};

struct peal_mpi_job {
    enum peal_mpi_collective collective;
    void *comm; /* for MPI_Pack: MPI_COMM_SELF, because the call's own may be freed earlier */
    uint32_t rank, size;
    const void *send;
    void *recv;
    uint64_t count;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t root;
    uint64_t *words; /* counts and offsets in bytes; owned */
    struct peal_blocks out, in;
    void *temps[2]; /* owned */
    char kept[8];   /* the handle of `result.type`, if the job owns that type */
    bool keeps_type;
    struct peal_mpi_result result;
};

/* After PEAL_NO_MEMORY there is nothing to end. */
enum peal_status peal_mpi_job_begin(struct peal_mpi_job *job, const struct peal_mpi_call *call);
enum peal_status peal_mpi_job_run(struct peal_mpi_job *job, struct peal_comm *comm);
enum peal_status peal_mpi_job_start(struct peal_mpi_job *job, struct peal_comm *comm,
                                    struct peal_request **out);
/* Unpacks the result if `status` is PEAL_OK, and frees the job's memory. */
void peal_mpi_job_end(struct peal_mpi_job *job, enum peal_status status);

#endif
