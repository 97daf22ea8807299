/* SPDX-License-Identifier: Apache-2.0 */
/* Work while a reduction is under way, messages between neighbours, groups of rows.
 *
 *   cc -o overlap overlap.c $(pkg-config --cflags --libs peal)
 *   peal exec -n 4 -- ./overlap
 *
 * Peal does its work inside its calls: peal_request_test between pieces of the program's own work
 * moves a reduction on. Two communicators of the same ranks (peal_comm_dup) do not wait for each
 * other.
 */
#include <peal/peal.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100000, PIECES = 50 };

static void want(struct peal_comm *comm, const char *call, enum peal_status status)
{
    if (status == PEAL_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, peal_status_text(status), peal_comm_error(comm));
    exit(1);
}

/* Reduces x while it sums up y; the sum of y. */
static double reduce_and_work(struct peal_comm *comm, float *x, const float *y)
{
    struct peal_request *request;
    enum peal_status status = PEAL_PENDING;
    double sum = 0;
    want(comm, "iallreduce", peal_iallreduce(comm, x, x, COUNT, PEAL_F32, PEAL_SUM, &request));
    for (int piece = 0; piece < PIECES; piece++) {
        for (int i = 0; i < COUNT / PIECES; i++)
            sum += (double)y[piece * (COUNT / PIECES) + i];
        if (status == PEAL_PENDING)
            status = peal_request_test(request); /* frees the request when it has ended */
    }
    if (status == PEAL_PENDING)
        status = peal_request_wait(request);
    want(comm, "wait", status);
    return sum;
}

/* Gives a number to the right, takes one from the left. */
static uint32_t shift(struct peal_comm *comm, uint32_t number)
{
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm), came = 0, sender;
    struct peal_request *out, *in;
    uint64_t got;
    want(comm, "irecv", peal_irecv(comm, &came, sizeof came, (rank + size - 1) % size, 7, &in));
    want(comm, "isend", peal_isend(comm, &number, sizeof number, (rank + 1) % size, 7, &out));
    want(comm, "wait", peal_request_wait_recv(in, &got, &sender));
    want(comm, "wait", peal_request_wait(out));
    return got == sizeof came && sender == (rank + size - 1) % size ? came : UINT32_MAX;
}

int main(void)
{
    struct peal_comm *comm, *second, *row;
    static float x[COUNT], y[COUNT];
    if (peal_comm_open(NULL, &comm) != PEAL_OK) {
        fprintf(stderr, "cannot join: %s\n", peal_comm_error(NULL));
        return 1;
    }
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(rank + 1);
        y[i] = 1;
    }
    want(comm, "dup", peal_comm_dup(comm, &second));
    double sum = reduce_and_work(second, x, y);
    uint32_t left = shift(comm, rank);

    /* Rows of two ranks: each has a communicator with ranks 0 and 1. */
    int32_t members = 1, all = 0;
    want(comm, "split", peal_comm_split(comm, (int)rank / 2, (int)rank, &row));
    want(row, "allreduce", peal_allreduce(row, &members, &all, 1, PEAL_I32, PEAL_SUM));

    printf("rank %u: summed up %.0f meanwhile, x is %.0f, from the left came %u, %d in my row\n",
           rank, sum, (double)x[COUNT - 1], left, (int)all);
    bool right = x[COUNT - 1] == (float)(size * (size + 1) / 2) && left == (rank + size - 1) % size;
    peal_comm_close(row);
    peal_comm_close(second);
    peal_comm_close(comm);
    return !right;
}
