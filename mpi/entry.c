/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking collectives, as C programs call them. Each says what its arguments are; those whose
 * arguments are left out are never Peal's, and only counted. */
#include "entry.h"
#include "take.h"

#define EXPORT PEAL_MPI_EXPORT

EXPORT int MPI_Barrier(void *comm);
EXPORT int MPI_Bcast(void *buf, int count, void *type, int root, void *comm);
EXPORT int MPI_Allreduce(const void *send, void *recv, int count, void *type, void *op, void *comm);
EXPORT int MPI_Reduce(const void *send, void *recv, int count, void *type, void *op, int root,
                      void *comm);
EXPORT int MPI_Allgather(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                         void *recvtype, void *comm);
EXPORT int MPI_Allgatherv(const void *send, int sendcount, void *sendtype, void *recv,
                          const int *recvcounts, const int *displs, void *recvtype, void *comm);
EXPORT int MPI_Alltoall(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                        void *recvtype, void *comm);
EXPORT int MPI_Alltoallv(const void *send, const int *sendcounts, const int *senddispls,
                         void *sendtype, void *recv, const int *recvcounts, const int *recvdispls,
                         void *recvtype, void *comm);
EXPORT int MPI_Gather(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                      void *recvtype, int root, void *comm);
EXPORT int MPI_Scatter(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                       void *recvtype, int root, void *comm);
EXPORT int MPI_Reduce_scatter_block(const void *send, void *recv, int count, void *type, void *op,
                                    void *comm);
EXPORT int MPI_Reduce_scatter(const void *send, void *recv, const int *counts, void *type, void *op,
                              void *comm);
EXPORT int MPI_Scan(const void *send, void *recv, int count, void *type, void *op, void *comm);
EXPORT int MPI_Exscan(const void *send, void *recv, int count, void *type, void *op, void *comm);
EXPORT int MPI_Gatherv(const void *send, int sendcount, void *sendtype, void *recv,
                       const int *recvcounts, const int *displs, void *recvtype, int root,
                       void *comm);
EXPORT int MPI_Scatterv(const void *send, const int *sendcounts, const int *displs, void *sendtype,
                        void *recv, int recvcount, void *recvtype, int root, void *comm);
EXPORT int MPI_Alltoallw(const void *send, const int *sendcounts, const int *senddispls,
                         const void *sendtypes, void *recv, const int *recvcounts,
                         const int *recvdispls, const void *recvtypes, void *comm);

int MPI_Barrier(void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_BARRIER, .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Barrier(comm));
}

int MPI_Bcast(void *buf, int count, void *type, int root, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_BCAST,
                                 .recv = buf,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .root = root,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Bcast(buf, count, type, root, comm));
}

int MPI_Allreduce(const void *send, void *recv, int count, void *type, void *op, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_ALLREDUCE,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Allreduce(send, recv, count, type, op, comm));
}

int MPI_Reduce(const void *send, void *recv, int count, void *type, void *op, int root, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_REDUCE,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .root = root,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Reduce(send, recv, count, type, op, root, comm));
}

int MPI_Allgather(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                  void *recvtype, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_ALLGATHER,
                                 .send = send,
                                 .sendcount = sendcount,
                                 .sendtype = sendtype,
                                 .recv = recv,
                                 .recvcount = recvcount,
                                 .recvtype = recvtype,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Allgather(send, sendcount, sendtype, recv,
                                                             recvcount, recvtype, comm));
}

int MPI_Allgatherv(const void *send, int sendcount, void *sendtype, void *recv,
                   const int *recvcounts, const int *displs, void *recvtype, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_ALLGATHERV,
                                 .send = send,
                                 .sendcount = sendcount,
                                 .sendtype = sendtype,
                                 .recv = recv,
                                 .recvcounts = recvcounts,
                                 .recvdispls = displs,
                                 .recvtype = recvtype,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Allgatherv(send, sendcount, sendtype, recv,
                                                              recvcounts, displs, recvtype, comm));
}

int MPI_Alltoall(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                 void *recvtype, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_ALLTOALL,
                                 .send = send,
                                 .sendcount = sendcount,
                                 .sendtype = sendtype,
                                 .recv = recv,
                                 .recvcount = recvcount,
                                 .recvtype = recvtype,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Alltoall(send, sendcount, sendtype, recv,
                                                            recvcount, recvtype, comm));
}

int MPI_Alltoallv(const void *send, const int *sendcounts, const int *senddispls, void *sendtype,
                  void *recv, const int *recvcounts, const int *recvdispls, void *recvtype,
                  void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_ALLTOALLV,
                                 .send = send,
                                 .sendcounts = sendcounts,
                                 .senddispls = senddispls,
                                 .sendtype = sendtype,
                                 .recv = recv,
                                 .recvcounts = recvcounts,
                                 .recvdispls = recvdispls,
                                 .recvtype = recvtype,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Alltoallv(send, sendcounts, senddispls, sendtype, recv,
                                                      recvcounts, recvdispls, recvtype, comm));
}

int MPI_Gather(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
               void *recvtype, int root, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_GATHER,
                                 .send = send,
                                 .sendcount = sendcount,
                                 .sendtype = sendtype,
                                 .recv = recv,
                                 .recvcount = recvcount,
                                 .recvtype = recvtype,
                                 .root = root,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Gather(send, sendcount, sendtype, recv,
                                                          recvcount, recvtype, root, comm));
}

int MPI_Scatter(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                void *recvtype, int root, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_SCATTER,
                                 .send = send,
                                 .sendcount = sendcount,
                                 .sendtype = sendtype,
                                 .recv = recv,
                                 .recvcount = recvcount,
                                 .recvtype = recvtype,
                                 .root = root,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Scatter(send, sendcount, sendtype, recv,
                                                           recvcount, recvtype, root, comm));
}

int MPI_Reduce_scatter_block(const void *send, void *recv, int count, void *type, void *op,
                             void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_REDUCE_SCATTER_BLOCK,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(
        &call, peal_mpi()->pmpi.Reduce_scatter_block(send, recv, count, type, op, comm));
}

int MPI_Reduce_scatter(const void *send, void *recv, const int *counts, void *type, void *op,
                       void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_REDUCE_SCATTER,
                                 .send = send,
                                 .recv = recv,
                                 .recvcounts = counts,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Reduce_scatter(send, recv, counts, type, op, comm));
}

int MPI_Scan(const void *send, void *recv, int count, void *type, void *op, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_SCAN,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Scan(send, recv, count, type, op, comm));
}

int MPI_Exscan(const void *send, void *recv, int count, void *type, void *op, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_EXSCAN,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Exscan(send, recv, count, type, op, comm));
}

int MPI_Gatherv(const void *send, int sendcount, void *sendtype, void *recv, const int *recvcounts,
                const int *displs, void *recvtype, int root, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_GATHERV, .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Gatherv(send, sendcount, sendtype, recv, recvcounts,
                                                    displs, recvtype, root, comm));
}

int MPI_Scatterv(const void *send, const int *sendcounts, const int *displs, void *sendtype,
                 void *recv, int recvcount, void *recvtype, int root, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_SCATTERV, .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Scatterv(send, sendcounts, displs, sendtype,
                                                            recv, recvcount, recvtype, root, comm));
}

int MPI_Alltoallw(const void *send, const int *sendcounts, const int *senddispls,
                  const void *sendtypes, void *recv, const int *recvcounts, const int *recvdispls,
                  const void *recvtypes, void *comm)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_ALLTOALLW, .comm = comm};
    int code;
    if (peal_mpi_take(&call, &code))
        return code;
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Alltoallw(send, sendcounts, senddispls, sendtypes, recv,
                                                      recvcounts, recvdispls, recvtypes, comm));
}
