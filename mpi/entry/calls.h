/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of arguments, for the rows of calls.def. Of each shape:
 *
 *     _C        parameters in C, handles as void *
 *     _ARGS     their names
 *     _CALL     initialisers of a struct peal_mpi_call
 *     _SIZE     the count and type from which every rank gets the same size; 0, NULL if there are none
 *     _FORTRAN  parameters in Fortran, with the same names
 *     _OPEN     the Fortran parameters converted to C arguments, by functions of fortran.c
 *
 * Non-blocking calls have a request after these. Calls that Peal never takes are only counted: they
 * need no arguments in the struct, and no definition for Fortran. */
#ifndef PEAL_MPI_CALLS_H
#define PEAL_MPI_CALLS_H

#define ALONE_C void *comm
#define ALONE_ARGS comm
#define ALONE_CALL .comm = comm
#define ALONE_SIZE 0, NULL
#define ALONE_FORTRAN int *comm
#define ALONE_OPEN comm_of(comm)

#define ONE_BUFFER_C void *buf, int count, void *type, int root, void *comm
#define ONE_BUFFER_ARGS buf, count, type, root, comm
#define ONE_BUFFER_CALL                                                                            \
    .recv = buf, .recvcount = count, .recvtype = type, .root = root, .comm = comm
#define ONE_BUFFER_SIZE count, type
#define ONE_BUFFER_FORTRAN void *buf, int *count, int *type, int *root, int *comm
#define ONE_BUFFER_OPEN buffer(buf), *count, type_of(type), *root, comm_of(comm)

#define REDUCTION_C const void *send, void *recv, int count, void *type, void *op, void *comm
#define REDUCTION_ARGS send, recv, count, type, op, comm
#define REDUCTION_CALL                                                                             \
    .send = send, .recv = recv, .recvcount = count, .recvtype = type, .op = op, .comm = comm
#define REDUCTION_SIZE count, type
#define REDUCTION_FORTRAN void *send, void *recv, int *count, int *type, int *op, int *comm
#define REDUCTION_OPEN buffer(send), buffer(recv), *count, type_of(type), op_of(op), comm_of(comm)

#define ROOTED_REDUCTION_C                                                                         \
    const void *send, void *recv, int count, void *type, void *op, int root, void *comm
#define ROOTED_REDUCTION_ARGS send, recv, count, type, op, root, comm
#define ROOTED_REDUCTION_CALL REDUCTION_CALL, .root = root
#define ROOTED_REDUCTION_SIZE count, type
#define ROOTED_REDUCTION_FORTRAN                                                                   \
    void *send, void *recv, int *count, int *type, int *op, int *root, int *comm
#define ROOTED_REDUCTION_OPEN                                                                      \
    buffer(send), buffer(recv), *count, type_of(type), op_of(op), *root, comm_of(comm)

#define UNEVEN_REDUCTION_C                                                                         \
    const void *send, void *recv, const int *counts, void *type, void *op, void *comm
#define UNEVEN_REDUCTION_ARGS send, recv, counts, type, op, comm
#define UNEVEN_REDUCTION_CALL                                                                      \
    .send = send, .recv = recv, .recvcounts = counts, .recvtype = type, .op = op, .comm = comm
#define UNEVEN_REDUCTION_SIZE 0, NULL
#define UNEVEN_REDUCTION_FORTRAN void *send, void *recv, int *counts, int *type, int *op, int *comm
#define UNEVEN_REDUCTION_OPEN                                                                      \
    buffer(send), buffer(recv), counts, type_of(type), op_of(op), comm_of(comm)

#define EXCHANGE_C                                                                                 \
    const void *send, int sendcount, void *sendtype, void *recv, int recvcount, void *recvtype,    \
        void *comm
#define EXCHANGE_ARGS send, sendcount, sendtype, recv, recvcount, recvtype, comm
#define EXCHANGE_CALL                                                                              \
    .send = send, .sendcount = sendcount, .sendtype = sendtype, .recv = recv,                      \
    .recvcount = recvcount, .recvtype = recvtype, .comm = comm
#define EXCHANGE_SIZE recvcount, recvtype
#define EXCHANGE_FORTRAN                                                                           \
    void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype, int *comm
#define EXCHANGE_OPEN                                                                              \
    buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount, type_of(recvtype),      \
        comm_of(comm)

#define ROOTED_EXCHANGE_C                                                                          \
    const void *send, int sendcount, void *sendtype, void *recv, int recvcount, void *recvtype,    \
        int root, void *comm
#define ROOTED_EXCHANGE_ARGS send, sendcount, sendtype, recv, recvcount, recvtype, root, comm
#define ROOTED_EXCHANGE_CALL EXCHANGE_CALL, .root = root
#define ROOTED_EXCHANGE_SIZE 0, NULL
#define ROOTED_EXCHANGE_FORTRAN                                                                    \
    void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype,          \
        int *root, int *comm
#define ROOTED_EXCHANGE_OPEN                                                                       \
    buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount, type_of(recvtype),      \
        *root, comm_of(comm)

#define UNEVEN_RECEIVE_C                                                                           \
    const void *send, int sendcount, void *sendtype, void *recv, const int *recvcounts,            \
        const int *displs, void *recvtype, void *comm
#define UNEVEN_RECEIVE_ARGS send, sendcount, sendtype, recv, recvcounts, displs, recvtype, comm
#define UNEVEN_RECEIVE_CALL                                                                        \
    .send = send, .sendcount = sendcount, .sendtype = sendtype, .recv = recv,                      \
    .recvcounts = recvcounts, .recvdispls = displs, .recvtype = recvtype, .comm = comm
#define UNEVEN_RECEIVE_SIZE 0, NULL
#define UNEVEN_RECEIVE_FORTRAN                                                                     \
    void *send, int *sendcount, int *sendtype, void *recv, int *recvcounts, int *displs,           \
        int *recvtype, int *comm
#define UNEVEN_RECEIVE_OPEN                                                                        \
    buffer(send), *sendcount, type_of(sendtype), buffer(recv), recvcounts, displs,                 \
        type_of(recvtype), comm_of(comm)

#define UNEVEN_EXCHANGE_C                                                                          \
    const void *send, const int *sendcounts, const int *senddispls, void *sendtype, void *recv,    \
        const int *recvcounts, const int *recvdispls, void *recvtype, void *comm
#define UNEVEN_EXCHANGE_ARGS                                                                       \
    send, sendcounts, senddispls, sendtype, recv, recvcounts, recvdispls, recvtype, comm
#define UNEVEN_EXCHANGE_CALL                                                                       \
    .send = send, .sendcounts = sendcounts, .senddispls = senddispls, .sendtype = sendtype,        \
    .recv = recv, .recvcounts = recvcounts, .recvdispls = recvdispls, .recvtype = recvtype,        \
    .comm = comm
#define UNEVEN_EXCHANGE_SIZE 0, NULL
#define UNEVEN_EXCHANGE_FORTRAN                                                                    \
    void *send, int *sendcounts, int *senddispls, int *sendtype, void *recv, int *recvcounts,      \
        int *recvdispls, int *recvtype, int *comm
#define UNEVEN_EXCHANGE_OPEN                                                                       \
    buffer(send), sendcounts, senddispls, type_of(sendtype), buffer(recv), recvcounts, recvdispls, \
        type_of(recvtype), comm_of(comm)

#define ROOTED_RECEIVE_C                                                                           \
    const void *send, int sendcount, void *sendtype, void *recv, const int *recvcounts,            \
        const int *displs, void *recvtype, int root, void *comm
#define ROOTED_RECEIVE_ARGS                                                                        \
    send, sendcount, sendtype, recv, recvcounts, displs, recvtype, root, comm
#define ROOTED_RECEIVE_CALL ALONE_CALL
#define ROOTED_RECEIVE_SIZE 0, NULL

#define ROOTED_SEND_C                                                                              \
    const void *send, const int *sendcounts, const int *displs, void *sendtype, void *recv,        \
        int recvcount, void *recvtype, int root, void *comm
#define ROOTED_SEND_ARGS send, sendcounts, displs, sendtype, recv, recvcount, recvtype, root, comm
#define ROOTED_SEND_CALL ALONE_CALL
#define ROOTED_SEND_SIZE 0, NULL

#define MIXED_EXCHANGE_C                                                                           \
    const void *send, const int *sendcounts, const int *senddispls, const void *sendtypes,         \
        void *recv, const int *recvcounts, const int *recvdispls, const void *recvtypes,           \
        void *comm
#define MIXED_EXCHANGE_ARGS                                                                        \
    send, sendcounts, senddispls, sendtypes, recv, recvcounts, recvdispls, recvtypes, comm
#define MIXED_EXCHANGE_CALL ALONE_CALL
#define MIXED_EXCHANGE_SIZE 0, NULL

#endif
