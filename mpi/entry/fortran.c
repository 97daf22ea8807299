/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives, as Fortran programs call them.
 *
 * MPICH's Fortran functions call MPI_X in C and so reach entry.c by themselves, with mpif.h, `use
 * mpi` and, for most functions, `use mpi_f08`. Open MPI's call PMPI_X, which bypasses this library.
 * So it defines mpi_x_ (mpif.h and `use mpi`) and ompi_x_f (mpi_f08), which have the same
 * arguments. mpi_x_ of an MPICH program is passed on to MPICH.
 *
 * In Fortran a handle is a number, passed by reference, and MPI_BOTTOM and MPI_IN_PLACE are
 * addresses of objects. Both are converted, and the call is made in C, as Open MPI's own Fortran
 * functions do.
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

static void put_request(int *request, void *handle, int *ierr, int code)
{
    if (code == PEAL_MPI_SUCCESS)
        *request = peal_mpi()->pmpi.Request_c2f(handle);
    put(ierr, code);
}

/* ---- names ---- */

/* Defines mpi_NAME_ and ompi_NAME_f, which call open_NAME; with MPICH, its own pmpi_NAME_ is
 * called. */
#define ENTRIES(name, params, args)                                                                \
    PEAL_MPI_EXPORT void mpi_##name##_ params;                                                     \
    PEAL_MPI_EXPORT void ompi_##name##_f params;                                                   \
    void mpi_##name##_ params                                                                      \
    {                                                                                              \
        static void *_Atomic found;                                                                \
        void(*own) params;                                                                         \
        if (peal_mpi()->flavour == PEAL_MPI_OPEN) {                                                \
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

#define COUNTED(name, start, lower, istart, which, shape)
#define CALL(name, start, lower, istart, which, shape)                                             \
    static void open_##lower(shape##_FORTRAN, int *ierr)                                           \
    {                                                                                              \
        put(ierr, MPI_##name(shape##_OPEN));                                                       \
    }                                                                                              \
    static void open_##istart(shape##_FORTRAN, int *request, int *ierr)                            \
    {                                                                                              \
        void *handle = NULL;                                                                       \
        int code = MPI_##start(shape##_OPEN, &handle);                                             \
        put_request(request, handle, ierr, code);                                                  \
    }                                                                                              \
    ENTRIES(lower, (shape##_FORTRAN, int *ierr), (shape##_ARGS, ierr))                             \
    ENTRIES(istart, (shape##_FORTRAN, int *request, int *ierr), (shape##_ARGS, request, ierr))
#include "calls.def"
#undef CALL
#undef COUNTED

/* ---- MPICH's mpi_f08 calls PMPI_X where there are no buffers ---- */

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
