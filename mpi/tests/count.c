/* SPDX-License-Identifier: Apache-2.0 */
/* A library between libpeal_mpi.so and the MPI: counts the calls, and prints the numbers at the
 * end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#define NEXT(name) ((__typeof__(&PMPI_##name))dlsym(RTLD_NEXT, "PMPI_" #name))

static int allgathers, iallreduces;

int PMPI_Allgather(const void *send, int n, MPI_Datatype type, void *recv, int m, MPI_Datatype to,
                   MPI_Comm comm)
{
    allgathers++;
    return NEXT(Allgather)(send, n, type, recv, m, to, comm);
}

int PMPI_Iallreduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request)
{
    iallreduces++;
    return NEXT(Iallreduce)(send, recv, n, type, op, comm, request);
}

__attribute__((destructor)) static void say(void)
{
    fprintf(stderr, "by the MPI: %d allgathers, %d iallreduces\n", allgathers, iallreduces);
}
