/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Wait, MPI_Test and the like, in C. While requests of Peal are pending, a wait is a loop of
 * tests, between which Peal's requests progress and are completed. It does not matter which
 * requests are Peal's: all are requests of the MPI. */
#include "requests.h"

#include <sched.h>

#define EXPORT PEAL_MPI_EXPORT

/* Between two tests. */
static void pause_turn(uint32_t *turns)
{
    enum { BUSY_TURNS = 64 };
    if (++*turns > BUSY_TURNS)
        sched_yield();
}

/* Tests until `done`, or until the MPI or Peal reports an error. */
#define WAIT_BY(test, done)                                                                        \
    do {                                                                                           \
        uint32_t turns = 0;                                                                        \
        for (;;) {                                                                                 \
            int failed = peal_mpi_requests_complete();                                             \
            int code = test;                                                                       \
            if (code != PEAL_MPI_SUCCESS)                                                          \
                return code;                                                                       \
            if (done)                                                                              \
                return failed;                                                                     \
            if (failed)                                                                            \
                return failed;                                                                     \
            pause_turn(&turns);                                                                    \
        }                                                                                          \
    } while (0)

EXPORT int MPI_Wait(void *request, void *status);
EXPORT int MPI_Waitall(int count, void *requests, void *statuses);
EXPORT int MPI_Waitany(int count, void *requests, int *index, void *status);
EXPORT int MPI_Waitsome(int count, void *requests, int *out, int *indices, void *statuses);
EXPORT int MPI_Test(void *request, int *flag, void *status);
EXPORT int MPI_Testall(int count, void *requests, int *flag, void *statuses);
EXPORT int MPI_Testany(int count, void *requests, int *index, int *flag, void *status);
EXPORT int MPI_Testsome(int count, void *requests, int *out, int *indices, void *statuses);
EXPORT int MPI_Request_get_status(void *request, int *flag, void *status);

int MPI_Wait(void *request, void *status)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    int flag = 0;
    if (peal_mpi_requests_pending() == 0)
        return abi->pmpi.Wait(request, status);
    WAIT_BY(abi->pmpi.Test(request, &flag, status), flag);
}

int MPI_Waitall(int count, void *requests, void *statuses)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    int flag = 0;
    if (peal_mpi_requests_pending() == 0)
        return abi->pmpi.Waitall(count, requests, statuses);
    WAIT_BY(abi->pmpi.Testall(count, requests, &flag, statuses), flag);
}

int MPI_Waitany(int count, void *requests, int *index, void *status)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    int flag = 0;
    if (peal_mpi_requests_pending() == 0)
        return abi->pmpi.Waitany(count, requests, index, status);
    WAIT_BY(abi->pmpi.Testany(count, requests, index, &flag, status), flag);
}

int MPI_Waitsome(int count, void *requests, int *out, int *indices, void *statuses)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    if (peal_mpi_requests_pending() == 0)
        return abi->pmpi.Waitsome(count, requests, out, indices, statuses);
    WAIT_BY(abi->pmpi.Testsome(count, requests, out, indices, statuses), *out != 0);
}

/* The result of a test: an error of the MPI comes before one of Peal's requests. */
static int end_test(int failed, int code)
{
    return code != PEAL_MPI_SUCCESS ? code : failed;
}

/* Lets Peal's requests progress, and completes those that have ended. */
static int look(void)
{
    return peal_mpi_requests_pending() > 0 ? peal_mpi_requests_complete() : PEAL_MPI_SUCCESS;
}

int MPI_Test(void *request, int *flag, void *status)
{
    int failed = look();
    return end_test(failed, peal_mpi()->pmpi.Test(request, flag, status));
}

int MPI_Testall(int count, void *requests, int *flag, void *statuses)
{
    int failed = look();
    return end_test(failed, peal_mpi()->pmpi.Testall(count, requests, flag, statuses));
}

int MPI_Testany(int count, void *requests, int *index, int *flag, void *status)
{
    int failed = look();
    return end_test(failed, peal_mpi()->pmpi.Testany(count, requests, index, flag, status));
}

int MPI_Testsome(int count, void *requests, int *out, int *indices, void *statuses)
{
    int failed = look();
    return end_test(failed, peal_mpi()->pmpi.Testsome(count, requests, out, indices, statuses));
}

int MPI_Request_get_status(void *request, int *flag, void *status)
{
    int failed = look();
    const struct peal_mpi_abi *abi = peal_mpi();
    return end_test(failed,
                    abi->pmpi.Request_get_status(peal_mpi_handle(abi, request), flag, status));
}
