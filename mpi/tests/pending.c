/* SPDX-License-Identifier: Apache-2.0 */
/* Non-blocking collectives, and progress of both libraries: these programs are legal, and hang if a
 * wait in the MPI or in Peal stops the progress of the other. */
#include "check.h"

#include <pthread.h>

enum { BIG = 4 << 20 };
static int peers;

/* A large message is in flight while ranks are in a collective. */
static void rendezvous_around_collectives(void)
{
    char *a = malloc(BIG), *b = malloc(BIG);
    int x = check_rank, y = 0, next = (check_rank + 1) % check_size;
    int previous = (check_rank + check_size - 1) % check_size;
    memset(a, check_rank, BIG);
    for (int i = 0; i < 3; i++) {
        MPI_Request receive;
        if (check_rank % 2 == 0) {
            MPI_Irecv(b, BIG, MPI_BYTE, previous, 1, MPI_COMM_WORLD, &receive);
            MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&receive, MPI_STATUS_IGNORE);
            MPI_Send(a, BIG, MPI_BYTE, next, 1, MPI_COMM_WORLD);
        } else {
            MPI_Send(a, BIG, MPI_BYTE, next, 1, MPI_COMM_WORLD);
            MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Recv(b, BIG, MPI_BYTE, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        CHECK(y == check_size * (check_size - 1) / 2 && b[BIG / 2] == (char)previous);
    }
    free(a);
    free(b);
}

/* Rank 0 waits in MPI_Recv while rank 1 waits for the collective. */
static void receive_between_start_and_wait(void)
{
    int x = 1 + check_rank, y = 0, token = 7;
    for (int i = 0; i < 20; i++) {
        MPI_Request request;
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        if (check_rank == 0)
            MPI_Recv(&token, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (check_rank == 1)
            MPI_Send(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        CHECK(y == check_size * (check_size + 1) / 2);
    }
}

/* Starting must not wait for other ranks, however many collectives are pending. */
static void many_started_before_a_message(void)
{
    enum { MANY = 24 };
    int x[MANY], y[MANY], token = 1;
    MPI_Request requests[MANY];
    if (check_rank == 1)
        MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY; i++) {
        x[i] = check_rank * i;
        MPI_Iallreduce(&x[i], &y[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    }
    if (check_rank == 0)
        MPI_Send(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++)
        CHECK(y[i] == i * check_size * (check_size - 1) / 2);
}

/* Waits through PMPI, like a tool below this library, also for requests of other kinds. */
static void waited_for_by_the_other_name(void)
{
    int next = (check_rank + 1) % check_size, previous = (check_rank + check_size - 1) % check_size;
    for (int i = 0; i < 20; i++) {
        MPI_Request requests[3], one;
        int x = check_rank, y = 0, a = i, b = -1, flag = 0;
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &one);
        PMPI_Wait(&one, MPI_STATUS_IGNORE);
        CHECK(y == peers);
        MPI_Irecv(&b, 1, MPI_INT, previous, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&a, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &requests[2]);
        PMPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK(y == check_size - 1 && b == i);
        MPI_Ibarrier(MPI_COMM_WORLD, &one);
        while (!flag)
            PMPI_Test(&one, &flag, MPI_STATUS_IGNORE);
    }
}

/* A blocking collective between start and wait, on another communicator, in which some ranks wait
 * first. */
static void blocking_between(void)
{
    MPI_Comm other;
    int x = 1, y = 0, z = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    check_warm_up(other);
    for (int i = 0; i < 10; i++) {
        MPI_Request request;
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        if (check_rank % 2)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&x, &z, 1, MPI_INT, MPI_SUM, other);
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank % 2 == 0)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(y == check_size && z == check_size);
    }
    MPI_Comm_free(&other);
}

/* The communicator is freed while its collective is pending. */
static void freed_before_the_end(void)
{
#ifdef OPEN_MPI
    return; /* 4.1.4 crashes even without Peal */
#endif
    for (int i = 0; i < 5; i++) {
        MPI_Comm comm;
        MPI_Request request;
        int x = check_rank, y = -1;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        check_warm_up(comm);
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_MAX, comm, &request);
        MPI_Comm_free(&comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(y == check_size - 1);
    }
}

/* Every function that waits, with requests of both libraries mixed. */
static void every_wait(void)
{
    int next = (check_rank + 1) % check_size, previous = (check_rank + check_size - 1) % check_size;
    for (int way = 0; way < 8; way++) {
        int x = check_rank, y = 0, a = way * 100 + check_rank, b = -1, flag = 0, index, some,
            done = 0;
        int indices[4];
        char c[16] = {0};
        MPI_Request requests[4];
        MPI_Status statuses[4];
        c[0] = check_rank == 0 ? (char)way : 99;
        MPI_Irecv(&b, 1, MPI_INT, previous, 4, MPI_COMM_WORLD, &requests[0]);
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&a, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[2]);
        MPI_Ibcast(c, 16, MPI_CHAR, 0, MPI_COMM_WORLD, &requests[3]);
        switch (way) {
        case 0:
            MPI_Waitall(4, requests, statuses);
            CHECK(statuses[0].MPI_SOURCE == previous && statuses[0].MPI_TAG == 4);
            break;
        case 1:
            while (!flag)
                MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE);
            break;
        case 2:
            for (int i = 0; i < 4; i++) {
                MPI_Waitany(4, requests, &index, &statuses[0]);
                CHECK(index >= 0 && index < 4 && requests[index] == MPI_REQUEST_NULL);
            }
            MPI_Waitany(4, requests, &index, &statuses[0]);
            CHECK(index == MPI_UNDEFINED);
            break;
        case 3:
            while (done < 4) {
                MPI_Testany(4, requests, &index, &flag, MPI_STATUS_IGNORE);
                done += flag;
            }
            break;
        case 4:
            while (done < 4) {
                MPI_Waitsome(4, requests, &some, indices, statuses);
                CHECK(some > 0);
                done += some;
            }
            break;
        case 5:
            while (done < 4) {
                MPI_Testsome(4, requests, &some, indices, MPI_STATUSES_IGNORE);
                done += some;
            }
            break;
        case 6:
            for (int i = 3; i >= 0; i--) {
                for (flag = 0; !flag;)
                    MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
                MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            }
            break;
        default:
            for (int i = 0; i < 4; i++) {
                for (flag = 0; !flag;)
                    MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
            }
        }
        CHECK(y == peers && b == way * 100 + previous && c[0] == way);
    }
}

/* Non-blocking collectives, with derived types and in place. */
static void every_collective(void)
{
    enum { N = 40 };
    MPI_Datatype vector;
    MPI_Request r[12];
    int n = check_size, parts[16], places[16], sends[16], send_places[16];
    int *in = calloc((size_t)(N * n), 4), *out[12];
    MPI_Type_vector(N / 2, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    for (int i = 0; i < 12; i++)
        out[i] = calloc((size_t)(2 * N * n), 4);
    for (int i = 0; i < n; i++) {
        parts[i] = i % 3 * 5, places[i] = i * 12;
        sends[i] = check_rank % 3 * 5, send_places[i] = i * 15;
    }
    for (int i = 0; i < N * n; i++)
        in[i] = check_rank * 1000 + i, out[3][i] = in[i], out[8][i] = in[i];
    MPI_Ibarrier(MPI_COMM_WORLD, &r[0]);
    out[1][0] = check_rank == n - 1 ? 5 : 0;
    MPI_Ibcast(out[1], 1, vector, n - 1, MPI_COMM_WORLD, &r[1]);
    MPI_Ireduce(in, out[2], N, MPI_INT, MPI_MAX, n - 1, MPI_COMM_WORLD, &r[2]);
    MPI_Iallreduce(MPI_IN_PLACE, out[3], N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[3]);
    MPI_Iallgather(in, 1, vector, out[4], N / 2, MPI_INT, MPI_COMM_WORLD, &r[4]);
    MPI_Iallgatherv(in, parts[check_rank], MPI_INT, out[5], parts, places, MPI_INT, MPI_COMM_WORLD,
                    &r[5]);
    MPI_Ialltoall(in, 3, MPI_INT, out[6], 3, MPI_INT, MPI_COMM_WORLD, &r[6]);
    MPI_Ialltoallv(in, sends, send_places, MPI_INT, out[7], parts, places, MPI_INT, MPI_COMM_WORLD,
                   &r[7]);
    MPI_Ireduce_scatter_block(MPI_IN_PLACE, out[8], 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[8]);
    MPI_Ireduce_scatter(in, out[9], parts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[9]);
    MPI_Igather(in, 7, MPI_INT, out[10], 7, MPI_INT, 0, MPI_COMM_WORLD, &r[10]);
    MPI_Iscatter(in, 7, MPI_INT, out[11], 7, MPI_INT, 0, MPI_COMM_WORLD, &r[11]);
    MPI_Waitall(12, r, MPI_STATUSES_IGNORE);
    for (int i = 1; i < 12; i++) {
        char name[32];
        size_t bytes = (size_t)(2 * N * n) * 4;
        if (i == 8) /* the rest of an in-place buffer is undefined */
            bytes = 16;
        snprintf(name, sizeof name, "non-blocking %d", i);
        check_say(name, out[i], bytes);
        free(out[i]);
    }
    MPI_Type_free(&vector);
    free(in);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    peers = check_size * (check_size - 1) / 2;
    rendezvous_around_collectives();
    check_warm_up(MPI_COMM_WORLD);
    rendezvous_around_collectives();
    receive_between_start_and_wait();
    many_started_before_a_message();
    every_wait();
    for (int i = 0; i < 3; i++)
        every_collective();
#ifdef OPEN_MPI /* only Open MPI calls this library while it waits: see requests.c */
    waited_for_by_the_other_name();
#endif
    blocking_between();
    freed_before_the_end();
    return check_end();
}
