/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives, as Fortran programs call them.
 *
 * MPICH's Fortran calls its C by MPI_X, which ends in entry.c by itself, from mpif.h, `use mpi` and
 * mostly `use mpi_f08`. Open MPI's calls PMPI_X: mpif.h and `use mpi` come to mpi_x_, and mpi_f08 to
 * ompi_x_f, which both have the same arguments. So these are defined here for Open MPI, and hand on
 * what MPICH's programs call.
 *
 * A handle is a number, by reference; MPI_BOTTOM and MPI_IN_PLACE are the addresses of objects. The
 * calls are made in C, as Open MPI's own Fortran does.
 */
#include "entry.h"

#include <dlfcn.h>
#include <pthread.h>

#define EXPORT PEAL_MPI_EXPORT

/* ---- Open MPI's constants ---- */

static void *in_place, *bottom;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_objects(void)
{
    in_place = dlsym(RTLD_DEFAULT, "mpi_fortran_in_place_");
    bottom = dlsym(RTLD_DEFAULT, "mpi_fortran_bottom_");
}

static void *buffer(void *buf)
{
    pthread_once(&once, find_objects);
    if (in_place && buf == in_place)
        return peal_mpi()->in_place;
    return bottom && buf == bottom ? NULL : buf;
}

static void *comm_of(const int *number)
{
    return peal_mpi()->pmpi.Comm_f2c(*number);
}

static void *type_of(const int *number)
{
    return peal_mpi()->pmpi.Type_f2c(*number);
}

static void *op_of(const int *number)
{
    return peal_mpi()->pmpi.Op_f2c(*number);
}

static void put(int *ierr, int code)
{
    if (ierr)
        *ierr = code;
}

/* ---- names ---- */

/* Defines mpi_NAME_ and ompi_NAME_f by open_NAME; MPICH's programs get MPICH's. */
#define ENTRIES(name, params, args)                                                                \
    EXPORT void mpi_##name##_ params;                                                              \
    EXPORT void ompi_##name##_f params;                                                            \
    void mpi_##name##_ params                                                                      \
    {                                                                                              \
        static void *_Atomic found;                                                                \
        void(*own) params;                                                                         \
        if (!peal_mpi()->int_handles) {                                                            \
            open_##name args;                                                                      \
            return;                                                                                \
        }                                                                                          \
        if (!found)                                                                                \
            found = peal_mpi_find("pmpi_" #name "_");                                              \
        *(void **)&own = found;                                                                    \
        own args;                                                                                  \
    }                                                                                              \
    void ompi_##name##_f params                                                                    \
    {                                                                                              \
        open_##name args;                                                                          \
    }

/* ---- blocking collectives ---- */

static void open_barrier(int *comm, int *ierr)
{
    put(ierr, MPI_Barrier(comm_of(comm)));
}
ENTRIES(barrier, (int *comm, int *ierr), (comm, ierr))

static void open_bcast(void *buf, int *count, int *type, int *root, int *comm, int *ierr)
{
    put(ierr, MPI_Bcast(buffer(buf), *count, type_of(type), *root, comm_of(comm)));
}
ENTRIES(bcast, (void *buf, int *count, int *type, int *root, int *comm, int *ierr),
        (buf, count, type, root, comm, ierr))

static void open_allreduce(void *send, void *recv, int *count, int *type, int *op, int *comm,
                           int *ierr)
{
    put(ierr,
        MPI_Allreduce(buffer(send), buffer(recv), *count, type_of(type), op_of(op), comm_of(comm)));
}
ENTRIES(allreduce, (void *send, void *recv, int *count, int *type, int *op, int *comm, int *ierr),
        (send, recv, count, type, op, comm, ierr))

static void open_reduce(void *send, void *recv, int *count, int *type, int *op, int *root,
                        int *comm, int *ierr)
{
    put(ierr, MPI_Reduce(buffer(send), buffer(recv), *count, type_of(type), op_of(op), *root,
                         comm_of(comm)));
}
ENTRIES(reduce,
        (void *send, void *recv, int *count, int *type, int *op, int *root, int *comm, int *ierr),
        (send, recv, count, type, op, root, comm, ierr))

static void open_allgather(void *send, int *sendcount, int *sendtype, void *recv, int *recvcount,
                           int *recvtype, int *comm, int *ierr)
{
    put(ierr, MPI_Allgather(buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount,
                            type_of(recvtype), comm_of(comm)));
}
ENTRIES(allgather,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype,
         int *comm, int *ierr),
        (send, sendcount, sendtype, recv, recvcount, recvtype, comm, ierr))

static void open_allgatherv(void *send, int *sendcount, int *sendtype, void *recv, int *recvcounts,
                            int *displs, int *recvtype, int *comm, int *ierr)
{
    put(ierr, MPI_Allgatherv(buffer(send), *sendcount, type_of(sendtype), buffer(recv), recvcounts,
                             displs, type_of(recvtype), comm_of(comm)));
}
ENTRIES(allgatherv,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcounts, int *displs,
         int *recvtype, int *comm, int *ierr),
        (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, comm, ierr))

static void open_alltoall(void *send, int *sendcount, int *sendtype, void *recv, int *recvcount,
                          int *recvtype, int *comm, int *ierr)
{
    put(ierr, MPI_Alltoall(buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount,
                           type_of(recvtype), comm_of(comm)));
}
ENTRIES(alltoall,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype,
         int *comm, int *ierr),
        (send, sendcount, sendtype, recv, recvcount, recvtype, comm, ierr))

static void open_alltoallv(void *send, int *sendcounts, int *senddispls, int *sendtype, void *recv,
                           int *recvcounts, int *recvdispls, int *recvtype, int *comm, int *ierr)
{
    put(ierr, MPI_Alltoallv(buffer(send), sendcounts, senddispls, type_of(sendtype), buffer(recv),
                            recvcounts, recvdispls, type_of(recvtype), comm_of(comm)));
}
ENTRIES(alltoallv,
        (void *send, int *sendcounts, int *senddispls, int *sendtype, void *recv, int *recvcounts,
         int *recvdispls, int *recvtype, int *comm, int *ierr),
        (send, sendcounts, senddispls, sendtype, recv, recvcounts, recvdispls, recvtype, comm,
         ierr))

static void open_gather(void *send, int *sendcount, int *sendtype, void *recv, int *recvcount,
                        int *recvtype, int *root, int *comm, int *ierr)
{
    put(ierr, MPI_Gather(buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount,
                         type_of(recvtype), *root, comm_of(comm)));
}
ENTRIES(gather,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype,
         int *root, int *comm, int *ierr),
        (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, ierr))

static void open_scatter(void *send, int *sendcount, int *sendtype, void *recv, int *recvcount,
                         int *recvtype, int *root, int *comm, int *ierr)
{
    put(ierr, MPI_Scatter(buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount,
                          type_of(recvtype), *root, comm_of(comm)));
}
ENTRIES(scatter,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype,
         int *root, int *comm, int *ierr),
        (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, ierr))

static void open_reduce_scatter_block(void *send, void *recv, int *count, int *type, int *op,
                                      int *comm, int *ierr)
{
    put(ierr, MPI_Reduce_scatter_block(buffer(send), buffer(recv), *count, type_of(type), op_of(op),
                                       comm_of(comm)));
}
ENTRIES(reduce_scatter_block,
        (void *send, void *recv, int *count, int *type, int *op, int *comm, int *ierr),
        (send, recv, count, type, op, comm, ierr))

static void open_reduce_scatter(void *send, void *recv, int *counts, int *type, int *op, int *comm,
                                int *ierr)
{
    put(ierr, MPI_Reduce_scatter(buffer(send), buffer(recv), counts, type_of(type), op_of(op),
                                 comm_of(comm)));
}
ENTRIES(reduce_scatter,
        (void *send, void *recv, int *counts, int *type, int *op, int *comm, int *ierr),
        (send, recv, counts, type, op, comm, ierr))

static void open_scan(void *send, void *recv, int *count, int *type, int *op, int *comm, int *ierr)
{
    put(ierr,
        MPI_Scan(buffer(send), buffer(recv), *count, type_of(type), op_of(op), comm_of(comm)));
}
ENTRIES(scan, (void *send, void *recv, int *count, int *type, int *op, int *comm, int *ierr),
        (send, recv, count, type, op, comm, ierr))

static void open_exscan(void *send, void *recv, int *count, int *type, int *op, int *comm,
                        int *ierr)
{
    put(ierr,
        MPI_Exscan(buffer(send), buffer(recv), *count, type_of(type), op_of(op), comm_of(comm)));
}
ENTRIES(exscan, (void *send, void *recv, int *count, int *type, int *op, int *comm, int *ierr),
        (send, recv, count, type, op, comm, ierr))

/* ---- non-blocking collectives ---- */

static void put_request(int *request, void *handle, int *ierr, int code)
{
    if (code == PEAL_MPI_SUCCESS)
        *request = peal_mpi()->pmpi.Request_c2f(handle);
    put(ierr, code);
}

static void open_ibarrier(int *comm, int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Ibarrier(comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(ibarrier, (int *comm, int *request, int *ierr), (comm, request, ierr))

static void open_ibcast(void *buf, int *count, int *type, int *root, int *comm, int *request,
                        int *ierr)
{
    void *handle = NULL;
    int code = MPI_Ibcast(buffer(buf), *count, type_of(type), *root, comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(ibcast, (void *buf, int *count, int *type, int *root, int *comm, int *request, int *ierr),
        (buf, count, type, root, comm, request, ierr))

static void open_iallreduce(void *send, void *recv, int *count, int *type, int *op, int *comm,
                            int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Iallreduce(buffer(send), buffer(recv), *count, type_of(type), op_of(op),
                              comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(iallreduce,
        (void *send, void *recv, int *count, int *type, int *op, int *comm, int *request,
         int *ierr),
        (send, recv, count, type, op, comm, request, ierr))

static void open_ireduce(void *send, void *recv, int *count, int *type, int *op, int *root,
                         int *comm, int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Ireduce(buffer(send), buffer(recv), *count, type_of(type), op_of(op), *root,
                           comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(ireduce,
        (void *send, void *recv, int *count, int *type, int *op, int *root, int *comm, int *request,
         int *ierr),
        (send, recv, count, type, op, root, comm, request, ierr))

static void open_iallgather(void *send, int *sendcount, int *sendtype, void *recv, int *recvcount,
                            int *recvtype, int *comm, int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Iallgather(buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount,
                              type_of(recvtype), comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(iallgather,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype,
         int *comm, int *request, int *ierr),
        (send, sendcount, sendtype, recv, recvcount, recvtype, comm, request, ierr))

static void open_iallgatherv(void *send, int *sendcount, int *sendtype, void *recv, int *recvcounts,
                             int *displs, int *recvtype, int *comm, int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Iallgatherv(buffer(send), *sendcount, type_of(sendtype), buffer(recv),
                               recvcounts, displs, type_of(recvtype), comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(iallgatherv,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcounts, int *displs,
         int *recvtype, int *comm, int *request, int *ierr),
        (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, comm, request, ierr))

static void open_ialltoall(void *send, int *sendcount, int *sendtype, void *recv, int *recvcount,
                           int *recvtype, int *comm, int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Ialltoall(buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount,
                             type_of(recvtype), comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(ialltoall,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype,
         int *comm, int *request, int *ierr),
        (send, sendcount, sendtype, recv, recvcount, recvtype, comm, request, ierr))

static void open_ialltoallv(void *send, int *sendcounts, int *senddispls, int *sendtype, void *recv,
                            int *recvcounts, int *recvdispls, int *recvtype, int *comm,
                            int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Ialltoallv(buffer(send), sendcounts, senddispls, type_of(sendtype), buffer(recv),
                              recvcounts, recvdispls, type_of(recvtype), comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(ialltoallv,
        (void *send, int *sendcounts, int *senddispls, int *sendtype, void *recv, int *recvcounts,
         int *recvdispls, int *recvtype, int *comm, int *request, int *ierr),
        (send, sendcounts, senddispls, sendtype, recv, recvcounts, recvdispls, recvtype, comm,
         request, ierr))

static void open_igather(void *send, int *sendcount, int *sendtype, void *recv, int *recvcount,
                         int *recvtype, int *root, int *comm, int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Igather(buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount,
                           type_of(recvtype), *root, comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(igather,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype,
         int *root, int *comm, int *request, int *ierr),
        (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, request, ierr))

static void open_iscatter(void *send, int *sendcount, int *sendtype, void *recv, int *recvcount,
                          int *recvtype, int *root, int *comm, int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Iscatter(buffer(send), *sendcount, type_of(sendtype), buffer(recv), *recvcount,
                            type_of(recvtype), *root, comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(iscatter,
        (void *send, int *sendcount, int *sendtype, void *recv, int *recvcount, int *recvtype,
         int *root, int *comm, int *request, int *ierr),
        (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, request, ierr))

static void open_ireduce_scatter_block(void *send, void *recv, int *count, int *type, int *op,
                                       int *comm, int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Ireduce_scatter_block(buffer(send), buffer(recv), *count, type_of(type),
                                         op_of(op), comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(ireduce_scatter_block,
        (void *send, void *recv, int *count, int *type, int *op, int *comm, int *request,
         int *ierr),
        (send, recv, count, type, op, comm, request, ierr))

static void open_ireduce_scatter(void *send, void *recv, int *counts, int *type, int *op, int *comm,
                                 int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Ireduce_scatter(buffer(send), buffer(recv), counts, type_of(type), op_of(op),
                                   comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(ireduce_scatter,
        (void *send, void *recv, int *counts, int *type, int *op, int *comm, int *request,
         int *ierr),
        (send, recv, counts, type, op, comm, request, ierr))

static void open_iscan(void *send, void *recv, int *count, int *type, int *op, int *comm,
                       int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Iscan(buffer(send), buffer(recv), *count, type_of(type), op_of(op),
                         comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(iscan,
        (void *send, void *recv, int *count, int *type, int *op, int *comm, int *request,
         int *ierr),
        (send, recv, count, type, op, comm, request, ierr))

static void open_iexscan(void *send, void *recv, int *count, int *type, int *op, int *comm,
                         int *request, int *ierr)
{
    void *handle = NULL;
    int code = MPI_Iexscan(buffer(send), buffer(recv), *count, type_of(type), op_of(op),
                           comm_of(comm), &handle);
    put_request(request, handle, ierr, code);
}
ENTRIES(iexscan,
        (void *send, void *recv, int *count, int *type, int *op, int *comm, int *request,
         int *ierr),
        (send, recv, count, type, op, comm, request, ierr))

/* ---- MPICH's mpi_f08, which calls PMPI_X where there are no buffers ---- */

EXPORT void mpi_barrier_f08_(int *comm, int *ierr);
EXPORT void mpi_ibarrier_f08_(int *comm, int *request, int *ierr);

void mpi_barrier_f08_(int *comm, int *ierr)
{
    if (peal_mpi()->int_handles)
        put(ierr, MPI_Barrier((void *)(uintptr_t)(uint32_t)*comm));
    else
        open_barrier(comm, ierr);
}

void mpi_ibarrier_f08_(int *comm, int *request, int *ierr)
{
    if (peal_mpi()->int_handles)
        put(ierr, MPI_Ibarrier((void *)(uintptr_t)(uint32_t)*comm, request));
    else
        open_ibarrier(comm, request, ierr);
}
