/* SPDX-License-Identifier: Apache-2.0 */
/* The MPI's C functions that this library defines, for its Fortran ones. Handles are void *. */
#ifndef PEAL_MPI_ENTRY_H
#define PEAL_MPI_ENTRY_H

#include "abi.h"

PEAL_MPI_EXPORT int MPI_Barrier(void *comm);
PEAL_MPI_EXPORT int MPI_Ibarrier(void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Bcast(void *buf, int count, void *type, int root, void *comm);
PEAL_MPI_EXPORT int MPI_Ibcast(void *buf, int count, void *type, int root, void *comm,
                               void *request);
PEAL_MPI_EXPORT int MPI_Allreduce(const void *send, void *recv, int count, void *type, void *op,
                                  void *comm);
PEAL_MPI_EXPORT int MPI_Iallreduce(const void *send, void *recv, int count, void *type, void *op,
                                   void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Reduce(const void *send, void *recv, int count, void *type, void *op,
                               int root, void *comm);
PEAL_MPI_EXPORT int MPI_Ireduce(const void *send, void *recv, int count, void *type, void *op,
                                int root, void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Allgather(const void *send, int sendcount, void *sendtype, void *recv,
                                  int recvcount, void *recvtype, void *comm);
PEAL_MPI_EXPORT int MPI_Iallgather(const void *send, int sendcount, void *sendtype, void *recv,
                                   int recvcount, void *recvtype, void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Allgatherv(const void *send, int sendcount, void *sendtype, void *recv,
                                   const int *recvcounts, const int *displs, void *recvtype,
                                   void *comm);
PEAL_MPI_EXPORT int MPI_Iallgatherv(const void *send, int sendcount, void *sendtype, void *recv,
                                    const int *recvcounts, const int *displs, void *recvtype,
                                    void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Alltoall(const void *send, int sendcount, void *sendtype, void *recv,
                                 int recvcount, void *recvtype, void *comm);
PEAL_MPI_EXPORT int MPI_Ialltoall(const void *send, int sendcount, void *sendtype, void *recv,
                                  int recvcount, void *recvtype, void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Alltoallv(const void *send, const int *sendcounts, const int *senddispls,
                                  void *sendtype, void *recv, const int *recvcounts,
                                  const int *recvdispls, void *recvtype, void *comm);
PEAL_MPI_EXPORT int MPI_Ialltoallv(const void *send, const int *sendcounts, const int *senddispls,
                                   void *sendtype, void *recv, const int *recvcounts,
                                   const int *recvdispls, void *recvtype, void *comm,
                                   void *request);
PEAL_MPI_EXPORT int MPI_Gather(const void *send, int sendcount, void *sendtype, void *recv,
                               int recvcount, void *recvtype, int root, void *comm);
PEAL_MPI_EXPORT int MPI_Igather(const void *send, int sendcount, void *sendtype, void *recv,
                                int recvcount, void *recvtype, int root, void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Scatter(const void *send, int sendcount, void *sendtype, void *recv,
                                int recvcount, void *recvtype, int root, void *comm);
PEAL_MPI_EXPORT int MPI_Iscatter(const void *send, int sendcount, void *sendtype, void *recv,
                                 int recvcount, void *recvtype, int root, void *comm,
                                 void *request);
PEAL_MPI_EXPORT int MPI_Reduce_scatter_block(const void *send, void *recv, int count, void *type,
                                             void *op, void *comm);
PEAL_MPI_EXPORT int MPI_Ireduce_scatter_block(const void *send, void *recv, int count, void *type,
                                              void *op, void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Reduce_scatter(const void *send, void *recv, const int *counts, void *type,
                                       void *op, void *comm);
PEAL_MPI_EXPORT int MPI_Ireduce_scatter(const void *send, void *recv, const int *counts, void *type,
                                        void *op, void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Scan(const void *send, void *recv, int count, void *type, void *op,
                             void *comm);
PEAL_MPI_EXPORT int MPI_Iscan(const void *send, void *recv, int count, void *type, void *op,
                              void *comm, void *request);
PEAL_MPI_EXPORT int MPI_Exscan(const void *send, void *recv, int count, void *type, void *op,
                               void *comm);
PEAL_MPI_EXPORT int MPI_Iexscan(const void *send, void *recv, int count, void *type, void *op,
                                void *comm, void *request);

#endif
