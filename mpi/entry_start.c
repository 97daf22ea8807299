/* SPDX-License-Identifier: Apache-2.0 */
/* The non-blocking collectives, as C programs call them. */
#include "entry.h"
#include "requests.h"

#define EXPORT PEAL_MPI_EXPORT

EXPORT int MPI_Ibarrier(void *comm, void *request);
EXPORT int MPI_Ibcast(void *buf, int count, void *type, int root, void *comm, void *request);
EXPORT int MPI_Iallreduce(const void *send, void *recv, int count, void *type, void *op, void *comm,
                          void *request);
EXPORT int MPI_Ireduce(const void *send, void *recv, int count, void *type, void *op, int root,
                       void *comm, void *request);
EXPORT int MPI_Iallgather(const void *send, int sendcount, void *sendtype, void *recv,
                          int recvcount, void *recvtype, void *comm, void *request);
EXPORT int MPI_Iallgatherv(const void *send, int sendcount, void *sendtype, void *recv,
                           const int *recvcounts, const int *displs, void *recvtype, void *comm,
                           void *request);
EXPORT int MPI_Ialltoall(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                         void *recvtype, void *comm, void *request);
EXPORT int MPI_Ialltoallv(const void *send, const int *sendcounts, const int *senddispls,
                          void *sendtype, void *recv, const int *recvcounts, const int *recvdispls,
                          void *recvtype, void *comm, void *request);
EXPORT int MPI_Igather(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                       void *recvtype, int root, void *comm, void *request);
EXPORT int MPI_Iscatter(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                        void *recvtype, int root, void *comm, void *request);
EXPORT int MPI_Ireduce_scatter_block(const void *send, void *recv, int count, void *type, void *op,
                                     void *comm, void *request);
EXPORT int MPI_Ireduce_scatter(const void *send, void *recv, const int *counts, void *type,
                               void *op, void *comm, void *request);
EXPORT int MPI_Iscan(const void *send, void *recv, int count, void *type, void *op, void *comm,
                     void *request);
EXPORT int MPI_Iexscan(const void *send, void *recv, int count, void *type, void *op, void *comm,
                       void *request);

int MPI_Ibarrier(void *comm, void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_BARRIER, .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Ibarrier(comm, request));
}

int MPI_Ibcast(void *buf, int count, void *type, int root, void *comm, void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_BCAST,
                                 .recv = buf,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .root = root,
                                 .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Ibcast(buf, count, type, root, comm, request));
}

int MPI_Iallreduce(const void *send, void *recv, int count, void *type, void *op, void *comm,
                   void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_ALLREDUCE,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Iallreduce(send, recv, count, type, op, comm, request));
}

int MPI_Ireduce(const void *send, void *recv, int count, void *type, void *op, int root, void *comm,
                void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_REDUCE,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .root = root,
                                 .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(
        &call, peal_mpi()->pmpi.Ireduce(send, recv, count, type, op, root, comm, request));
}

int MPI_Iallgather(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                   void *recvtype, void *comm, void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_ALLGATHER,
                                 .send = send,
                                 .sendcount = sendcount,
                                 .sendtype = sendtype,
                                 .recv = recv,
                                 .recvcount = recvcount,
                                 .recvtype = recvtype,
                                 .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Iallgather(send, sendcount, sendtype, recv,
                                                              recvcount, recvtype, comm, request));
}

int MPI_Iallgatherv(const void *send, int sendcount, void *sendtype, void *recv,
                    const int *recvcounts, const int *displs, void *recvtype, void *comm,
                    void *request)
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
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Iallgatherv(send, sendcount, sendtype, recv, recvcounts,
                                                        displs, recvtype, comm, request));
}

int MPI_Ialltoall(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                  void *recvtype, void *comm, void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_ALLTOALL,
                                 .send = send,
                                 .sendcount = sendcount,
                                 .sendtype = sendtype,
                                 .recv = recv,
                                 .recvcount = recvcount,
                                 .recvtype = recvtype,
                                 .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Ialltoall(send, sendcount, sendtype, recv,
                                                             recvcount, recvtype, comm, request));
}

int MPI_Ialltoallv(const void *send, const int *sendcounts, const int *senddispls, void *sendtype,
                   void *recv, const int *recvcounts, const int *recvdispls, void *recvtype,
                   void *comm, void *request)
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
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call, peal_mpi()->pmpi.Ialltoallv(send, sendcounts, senddispls,
                                                              sendtype, recv, recvcounts,
                                                              recvdispls, recvtype, comm, request));
}

int MPI_Igather(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                void *recvtype, int root, void *comm, void *request)
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
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Igather(send, sendcount, sendtype, recv, recvcount,
                                                    recvtype, root, comm, request));
}

int MPI_Iscatter(const void *send, int sendcount, void *sendtype, void *recv, int recvcount,
                 void *recvtype, int root, void *comm, void *request)
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
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Iscatter(send, sendcount, sendtype, recv, recvcount,
                                                     recvtype, root, comm, request));
}

int MPI_Ireduce_scatter_block(const void *send, void *recv, int count, void *type, void *op,
                              void *comm, void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_REDUCE_SCATTER_BLOCK,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(
        &call, peal_mpi()->pmpi.Ireduce_scatter_block(send, recv, count, type, op, comm, request));
}

int MPI_Ireduce_scatter(const void *send, void *recv, const int *counts, void *type, void *op,
                        void *comm, void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_REDUCE_SCATTER,
                                 .send = send,
                                 .recv = recv,
                                 .recvcounts = counts,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(
        &call, peal_mpi()->pmpi.Ireduce_scatter(send, recv, counts, type, op, comm, request));
}

int MPI_Iscan(const void *send, void *recv, int count, void *type, void *op, void *comm,
              void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_SCAN,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Iscan(send, recv, count, type, op, comm, request));
}

int MPI_Iexscan(const void *send, void *recv, int count, void *type, void *op, void *comm,
                void *request)
{
    struct peal_mpi_call call = {.what = PEAL_MPI_EXSCAN,
                                 .send = send,
                                 .recv = recv,
                                 .recvcount = count,
                                 .recvtype = type,
                                 .op = op,
                                 .comm = comm};
    if (peal_mpi_take_start(&call))
        return peal_mpi_request_start(&call, request);
    return peal_mpi_passed(&call,
                           peal_mpi()->pmpi.Iexscan(send, recv, count, type, op, comm, request));
}
