/* SPDX-License-Identifier: Apache-2.0 */
/* See fail.h. Peal has printed the whole report; an error string has room for its first lines
 * only. */
#include "fail.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int error_class = -1;

static int make_code(const char *text)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    int code = -1;
    pthread_mutex_lock(&lock);
    if (error_class < 0 && abi->pmpi.Add_error_class(&error_class) == PEAL_MPI_SUCCESS)
        abi->pmpi.Add_error_string(error_class, "Peal");
    if (abi->pmpi.Add_error_code(error_class, &code) == PEAL_MPI_SUCCESS)
        abi->pmpi.Add_error_string(code, text);
    pthread_mutex_unlock(&lock);
    return code;
}

int peal_mpi_fail(struct peal_mpi_comm *state, enum peal_status status, struct peal_comm *comm)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    if (state->failure == 0) {
        char text[512];
        const char *report = comm ? peal_comm_error(comm) : "";
        snprintf(text, abi->max_error_string, "%s%s%s", peal_status_text(status),
                 report[0] ? ": " : "", report);
        state->failure = make_code(text);
        memset(state->left, 0, sizeof state->left); /* every later call fails, too */
    }
    abi->pmpi.Comm_call_errhandler(state->comm, state->failure);
    return state->failure;
}
