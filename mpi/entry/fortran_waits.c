/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Wait, MPI_Test and the like, as Fortran programs call them: see waits.c.
 *
 * The MPI is called by its Fortran names, so that requests, statuses and MPI_STATUS_IGNORE need no
 * conversion: pmpi_test_ for mpif.h and `use mpi`, mpi_test_f08_ for mpi_f08, whose statuses are
 * different. Open MPI's mpi_f08 calls ompi_wait_f, which takes the statuses of mpif.h.
 */
#include "requests.h"

#include <sched.h>
#include <stdio.h>

#define EXPORT PEAL_MPI_EXPORT

/* A Fortran subroutine is called like a C function with pointers; one with fewer parameters ignores
 * the rest. */
typedef void subroutine(void *, void *, void *, void *, void *, void *);

enum own { WAIT, WAITALL, WAITANY, WAITSOME, TEST, TESTALL, TESTANY, TESTSOME, GET_STATUS, OWNS };

static subroutine *find_own(bool f08, enum own which)
{
    static const char *const names[OWNS] = {"wait",     "waitall",  "waitany",
                                            "waitsome", "test",     "testall",
                                            "testany",  "testsome", "request_get_status"};
    static void *_Atomic known[2][OWNS];
    subroutine *own;
    if (!known[f08][which]) {
        char name[48];
        snprintf(name, sizeof name, f08 ? "mpi_%s_f08_" : "pmpi_%s_", names[which]);
        known[f08][which] = peal_mpi_find(name);
    }
    *(void **)&own = known[f08][which];
    return own;
}

static void put(int *ierr, int code)
{
    if (ierr)
        *ierr = code;
}

/* After a test: true if the wait is over, because its requests are complete or because of an error
 * of the MPI or Peal, which is then in `code`. */
static bool is_over(bool done, int failed, int *code)
{
    if (*code != PEAL_MPI_SUCCESS)
        return true;
    *code = failed;
    if (!done && !failed)
        sched_yield();
    return done || failed;
}

static void wait_one(bool f08, int *request, void *status, int *ierr)
{
    int flag = 0, code = 0, failed;
    if (peal_mpi_requests_pending() == 0) {
        find_own(f08, WAIT)(request, status, ierr, NULL, NULL, NULL);
        return;
    }
    do {
        failed = peal_mpi_requests_complete();
        find_own(f08, TEST)(request, &flag, status, &code, NULL, NULL);
    } while (!is_over(flag != 0, failed, &code));
    put(ierr, code);
}

static void wait_all(bool f08, int *count, int *requests, void *statuses, int *ierr)
{
    int flag = 0, code = 0, failed;
    if (peal_mpi_requests_pending() == 0) {
        find_own(f08, WAITALL)(count, requests, statuses, ierr, NULL, NULL);
        return;
    }
    do {
        failed = peal_mpi_requests_complete();
        find_own(f08, TESTALL)(count, requests, &flag, statuses, &code, NULL);
    } while (!is_over(flag != 0, failed, &code));
    put(ierr, code);
}

static void wait_any(bool f08, int *count, int *requests, int *index, void *status, int *ierr)
{
    int flag = 0, code = 0, failed;
    if (peal_mpi_requests_pending() == 0) {
        find_own(f08, WAITANY)(count, requests, index, status, ierr, NULL);
        return;
    }
    do {
        failed = peal_mpi_requests_complete();
        find_own(f08, TESTANY)(count, requests, index, &flag, status, &code);
    } while (!is_over(flag != 0, failed, &code));
    put(ierr, code);
}

static void wait_some(bool f08, int *count, int *requests, int *out, int *indices, void *statuses,
                      int *ierr)
{
    int code = 0, failed;
    if (peal_mpi_requests_pending() == 0) {
        find_own(f08, WAITSOME)(count, requests, out, indices, statuses, ierr);
        return;
    }
    do {
        failed = peal_mpi_requests_complete();
        find_own(f08, TESTSOME)(count, requests, out, indices, statuses, &code);
    } while (!is_over(*out != 0, failed, &code));
    put(ierr, code);
}

/* A test by the MPI, after Peal's requests were given a chance to progress. */
static void test_by(bool f08, enum own which, void *const args[6], int *ierr)
{
    int failed = peal_mpi_requests_pending() > 0 ? peal_mpi_requests_complete() : PEAL_MPI_SUCCESS;
    find_own(f08, which)(args[0], args[1], args[2], args[3], args[4], args[5]);
    if (failed)
        put(ierr, failed);
}

#define ARGS(...) ((void *[6]){__VA_ARGS__})

/* Defines mpi_NAME_, ompi_NAME_f and mpi_NAME_f08_ with one body; in the last one f08 is true. */
#define ENTRIES(name, params, args, ...)                                                           \
    EXPORT void mpi_##name##_ params;                                                              \
    EXPORT void ompi_##name##_f params;                                                            \
    EXPORT void mpi_##name##_f08_ params;                                                          \
    void mpi_##name##_ params                                                                      \
    {                                                                                              \
        const bool f08 = false;                                                                    \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    void mpi_##name##_f08_ params                                                                  \
    {                                                                                              \
        const bool f08 = true;                                                                     \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    void ompi_##name##_f params                                                                    \
    {                                                                                              \
        mpi_##name##_ args;                                                                        \
    }

ENTRIES(wait, (int *request, void *status, int *ierr), (request, status, ierr),
        wait_one(f08, request, status, ierr))
ENTRIES(waitall, (int *count, int *requests, void *statuses, int *ierr),
        (count, requests, statuses, ierr), wait_all(f08, count, requests, statuses, ierr))
ENTRIES(waitany, (int *count, int *requests, int *index, void *status, int *ierr),
        (count, requests, index, status, ierr), wait_any(f08, count, requests, index, status, ierr))
ENTRIES(waitsome, (int *count, int *requests, int *out, int *indices, void *statuses, int *ierr),
        (count, requests, out, indices, statuses, ierr),
        wait_some(f08, count, requests, out, indices, statuses, ierr))
ENTRIES(test, (int *request, int *flag, void *status, int *ierr), (request, flag, status, ierr),
        test_by(f08, TEST, ARGS(request, flag, status, ierr), ierr))
ENTRIES(testall, (int *count, int *requests, int *flag, void *statuses, int *ierr),
        (count, requests, flag, statuses, ierr),
        test_by(f08, TESTALL, ARGS(count, requests, flag, statuses, ierr), ierr))
ENTRIES(testany, (int *count, int *requests, int *index, int *flag, void *status, int *ierr),
        (count, requests, index, flag, status, ierr),
        test_by(f08, TESTANY, ARGS(count, requests, index, flag, status, ierr), ierr))
ENTRIES(testsome, (int *count, int *requests, int *out, int *indices, void *statuses, int *ierr),
        (count, requests, out, indices, statuses, ierr),
        test_by(f08, TESTSOME, ARGS(count, requests, out, indices, statuses, ierr), ierr))
ENTRIES(request_get_status, (int *request, int *flag, void *status, int *ierr),
        (request, flag, status, ierr),
        test_by(f08, GET_STATUS, ARGS(request, flag, status, ierr), ierr))
