/* SPDX-License-Identifier: Apache-2.0 */
/* Rare uses of MPI that are legal, or work with both MPIs:  corners [CASE...]  (see `cases`) */
#include "check.h"

#include <unistd.h>

enum { WARM = 40, N = 30 };

/* A copy of MPI_COMM_WORLD, warmed up: Peal, if loaded, takes its blocking and non-blocking
 * calls. */
static MPI_Comm world;

/* A derived type may be freed as soon as the call that uses it has been started. */
static void type_freed_after_the_start(void)
{
    for (int i = 0; i < 8; i++) {
        int data[2 * N], in[2 * N], out[4 * N * 16];
        MPI_Datatype vector, others[4];
        MPI_Request requests[3];
        for (int j = 0; j < 2 * N; j++)
            data[j] = check_rank == 0 ? j + i : -1, in[j] = check_rank * 100 + j;
        memset(out, 0, sizeof out);
        MPI_Type_vector(N, 1, 2, MPI_INT, &vector);
        MPI_Type_commit(&vector);
        MPI_Ibcast(data, 1, vector, 0, world, &requests[0]);
        MPI_Iallgather(in, N, MPI_INT, out, 1, vector, world, &requests[1]);
        MPI_Ibarrier(world, &requests[2]);
        MPI_Type_free(&vector);
        for (int k = 0; k < 4; k++) { /* which may reuse its handle */
            MPI_Type_vector(3 + k, 2, 3, MPI_DOUBLE, &others[k]);
            MPI_Type_commit(&others[k]);
        }
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        check_say("bcast, type freed", data, sizeof data);
        check_say("allgather, type freed", out, sizeof out);
        for (int k = 0; k < 4; k++)
            MPI_Type_free(&others[k]);
    }
}

/* Rank 0 has no result, and programs expect its memory to stay unchanged. */
static void exscan_of_rank_0(void)
{
    struct {
        double value;
        int place;
    } pair = {check_rank, check_rank}, best = {-7, -7};
    MPI_Request request;
    for (int i = 0; i < WARM; i++) {
        int x = check_rank + 1, y = -5, z = check_rank + 1;
        double d = 1.5, e = -5;
        MPI_Exscan(&x, &y, 1, MPI_INT, MPI_SUM, world);
        MPI_Exscan(MPI_IN_PLACE, &z, 1, MPI_INT, MPI_SUM, world);
        MPI_Exscan(&d, &e, 1, MPI_DOUBLE, MPI_SUM, world);
        CHECK(check_rank ? y == check_rank * (check_rank + 1) / 2 : y == -5);
        CHECK(check_rank ? z == y : z == 1);
        CHECK(check_rank ? e == 1.5 * check_rank : e == -5);
        y = -5;
        MPI_Iexscan(&x, &y, 1, MPI_INT, MPI_MAX, world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(check_rank ? y == check_rank : y == -5);
        MPI_Exscan(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, world);
        CHECK(check_rank ? best.place == check_rank - 1 : best.place == -7);
    }
}

/* The same buffer twice on one rank: wrong, but Open MPI accepts it. */
static void aliases_on_one_rank(void)
{
#ifdef OPEN_MPI
    int *all = calloc((size_t)check_size, sizeof *all), own = check_rank + 1;
    for (int i = 0; i < WARM; i++) {
        int x = 1, y = 0;
        all[0] = 1;
        MPI_Allgather(check_rank == 0 ? all : &own, 1, MPI_INT, all, 1, MPI_INT, world);
        for (int r = 0; r < check_size; r++)
            CHECK(all[r] == r + 1);
        if (check_rank == 0)
            y = 1;
        MPI_Allreduce(check_rank == 0 ? &y : &x, &y, 1, MPI_INT, MPI_SUM, world);
        CHECK(y == check_size);
    }
    free(all);
#endif
}

/* Ranks that do not know how many messages they will get test for a barrier meanwhile. */
static void consensus(void)
{
    for (int i = 0; i < 20; i++) {
        MPI_Request send, barrier = MPI_REQUEST_NULL;
        int to = (check_rank * 3 + i) % check_size, done = 0, sent = 0, received = 0, value = 0;
        MPI_Issend(&i, 1, MPI_INT, to, 7, world, &send);
        while (!done) {
            int there = 0;
            MPI_Iprobe(MPI_ANY_SOURCE, 7, world, &there, MPI_STATUS_IGNORE);
            if (there) {
                MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 7, world, MPI_STATUS_IGNORE);
                CHECK(value == i);
                received++;
            }
            if (barrier != MPI_REQUEST_NULL) {
                MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
            } else if (!sent) {
                MPI_Test(&send, &sent, MPI_STATUS_IGNORE);
                if (sent)
                    MPI_Ibarrier(world, &barrier);
            }
        }
        MPI_Allreduce(MPI_IN_PLACE, &received, 1, MPI_INT, MPI_SUM, world);
        CHECK(received == check_size);
    }
}

/* A rank reads the window of a rank that is in a collective, and joins the collective later. */
static void one_sided_during_a_collective(void)
{
    int *value, got = -1, next = (check_rank + 1) % check_size;
    MPI_Win win;
    MPI_Win_allocate(sizeof *value, sizeof *value, MPI_INFO_NULL, world, &value, &win);
    *value = 100 + check_rank;
    MPI_Barrier(world);
    for (int i = 0; i < 5; i++) {
        if (check_rank == i % check_size) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
            MPI_Get(&got, 1, MPI_INT, next, 0, 1, MPI_INT, win);
            MPI_Win_unlock(next, win);
#ifdef OPEN_MPI /* MPICH 4.0.2 reads other values, even without Peal */
            CHECK(got == 100 + next);
#endif
        }
        MPI_Barrier(world);
        CHECK(check_sum(world, 1) == check_size);
    }
    MPI_Win_free(&win);
}

/* Data at absolute addresses. */
static void bottom(void)
{
    int x = check_rank == 1 ? 77 : 0, *out = calloc((size_t)check_size, sizeof *out), one = 1;
    MPI_Aint at;
    MPI_Datatype type, place, types = MPI_INT;
    MPI_Get_address(&x, &at);
    MPI_Type_create_struct(1, &one, &at, &types, &type);
    MPI_Type_commit(&type);
    MPI_Get_address(out, &at);
    MPI_Type_create_struct(1, &one, &at, &types, &place);
    MPI_Type_create_resized(place, 0, sizeof(int), &types);
    MPI_Type_commit(&types);
    for (int i = 0; i < 5; i++) {
        MPI_Bcast(MPI_BOTTOM, 1, type, 1, world);
        CHECK(x == 77);
        MPI_Allgather(MPI_BOTTOM, 1, type, MPI_BOTTOM, 1, types, world);
        CHECK(out[check_size - 1] == 77);
    }
    MPI_Type_free(&type), MPI_Type_free(&place), MPI_Type_free(&types);
    free(out);
}

/* A matrix by columns: interleaved blocks, of a type whose extent is shorter than its data. */
static void columns(void)
{
    enum { ROWS = 6 };
    int n = check_size, *matrix = calloc((size_t)(ROWS * n), sizeof(int)), own[ROWS];
    MPI_Datatype column, narrow;
    MPI_Type_vector(ROWS, 1, n, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
    MPI_Type_commit(&narrow);
    for (int i = 0; i < 5; i++) {
        for (int r = 0; r < ROWS; r++)
            own[r] = check_rank * 10 + r + i;
        MPI_Allgather(own, ROWS, MPI_INT, matrix, 1, narrow, world);
        for (int r = 0; r < ROWS; r++)
            CHECK(matrix[r * n + n - 1] == (n - 1) * 10 + r + i);
        memset(own, 0, sizeof own);
        MPI_Scatter(matrix, 1, narrow, own, ROWS, MPI_INT, i % n, world);
        CHECK(own[ROWS - 1] == check_rank * 10 + ROWS - 1 + i);
        MPI_Gather(own, ROWS, MPI_INT, matrix, 1, narrow, i % n, world);
        CHECK(matrix[n] == 1 + i);
    }
    MPI_Type_free(&column), MPI_Type_free(&narrow);
    free(matrix);
}

/* No data, in many ways. */
static void nothing(void)
{
    MPI_Datatype empty;
    int zero[16] = {0}, x = 3, y = 3;
    MPI_Request r[4];
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int i = 0; i < 3; i++) {
        MPI_Bcast(NULL, 0, MPI_INT, 0, world);
        MPI_Bcast(&x, 5, empty, 0, world);
        MPI_Allreduce(&x, &y, 0, MPI_DOUBLE, MPI_SUM, world);
        MPI_Reduce_scatter(&x, &y, zero, MPI_INT, MPI_SUM, world);
        MPI_Allgatherv(&x, 0, MPI_INT, &y, zero, zero, MPI_INT, world);
        MPI_Allgatherv(&x, 2, empty, &y, zero, zero, MPI_INT, world);
        MPI_Alltoallv(&x, zero, zero, MPI_INT, &y, zero, zero, MPI_INT, world);
        MPI_Scan(&x, &y, 0, MPI_INT, MPI_SUM, world);
        MPI_Ibcast(NULL, 0, MPI_INT, 0, world, &r[0]);
        MPI_Ialltoallv(&x, zero, zero, MPI_INT, &y, zero, zero, MPI_INT, world, &r[1]);
        MPI_Iallgatherv(&x, 0, MPI_INT, &y, zero, zero, MPI_INT, world, &r[2]);
        MPI_Ireduce_scatter(&x, &y, zero, MPI_INT, MPI_SUM, world, &r[3]);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    }
    CHECK(x == 3 && y == 3);
    MPI_Type_free(&empty);
}

/* Communicators made by rarely used functions. */
static void rare_communicators(void)
{
    MPI_Comm made, graph, star, grid, line, twin;
    MPI_Group group, some;
    MPI_Request request;
    int *index = calloc((size_t)check_size, sizeof *index),
        *edges = calloc((size_t)check_size, sizeof *edges);
    int dims[2] = {check_size, 1}, periods[2] = {0, 0}, keep[2] = {1, 0}, size, to, from,
        range[1][3];
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    range[0][0] = 0, range[0][1] = check_size - 1, range[0][2] = 2;
    MPI_Group_range_incl(group, 1, range, &some);
    if (check_rank % 2 == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &made);
        MPI_Comm_size(made, &size);
        check_warm_up(made);
        CHECK(check_sum(made, WARM) == size);
        MPI_Comm_free(&made);
    }
    for (int r = 0; r < check_size; r++)
        index[r] = r + 1, edges[r] = (r + 1) % check_size;
    MPI_Graph_create(MPI_COMM_WORLD, check_size, index, edges, 0, &graph);
    check_warm_up(graph);
    CHECK(check_sum(graph, WARM) == check_size);
    to = (check_rank + 1) % check_size, from = (check_rank + check_size - 1) % check_size;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &star);
    for (int i = 0; i < 10; i++) {
        int got = -1;
        MPI_Neighbor_allgather(&check_rank, 1, MPI_INT, &got, 1, MPI_INT, star);
        CHECK(got == from && check_sum(star, 3) == check_size);
        MPI_Ineighbor_allgather(&check_rank, 1, MPI_INT, &got, 1, MPI_INT, star, &request);
        CHECK(check_sum(star, 1) == check_size);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_sub(grid, keep, &line);
    check_warm_up(line);
    CHECK(check_sum(line, WARM) == check_size);
    MPI_Comm_idup(line, &twin, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_warm_up(twin);
    CHECK(check_sum(twin, WARM) == check_size);
    MPI_Comm_disconnect(&twin);
    MPI_Comm_free(&line), MPI_Comm_free(&grid), MPI_Comm_free(&star), MPI_Comm_free(&graph);
    MPI_Group_free(&some), MPI_Group_free(&group);
    free(index);
    free(edges);
}

/* Ranks leave a collective early and free the communicator while others are still in it. */
static void leaves_early(void)
{
    for (int i = 0; i < 6; i++) {
        MPI_Comm comm;
        int x = check_rank, y = 0;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        check_warm_up(comm);
        if (check_rank == i % check_size)
            usleep(20000);
        if (i % 2)
            MPI_Reduce(&x, &y, 1, MPI_INT, MPI_SUM, i % check_size, comm);
        else
            MPI_Bcast(&x, 1, MPI_INT, (i + 1) % check_size, comm);
        MPI_Comm_free(&comm);
        CHECK(i % 2 || x == (i + 1) % check_size);
        CHECK(!(i % 2) || check_rank != i % check_size || y == check_size * (check_size - 1) / 2);
    }
    /* The same at the end of the program. */
    int x = check_rank;
    check_warm_up(MPI_COMM_WORLD);
    if (check_rank == 0)
        usleep(100000);
    MPI_Bcast(&x, 1, MPI_INT, check_size - 1, MPI_COMM_WORLD);
    CHECK(x == check_size - 1);
}

/* MPI_Request_get_status of a collective, while messages are freed and cancelled. */
static void asked_about(void)
{
    for (int i = 0; i < 10; i++) {
        int x = 1, y = 0, flag = 0, sent = 5, got = 0;
        MPI_Request request, message;
        MPI_Status status;
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, world, &request);
        while (!flag)
            MPI_Request_get_status(request, &flag, &status);
        flag = 0;
        MPI_Request_get_status(request, &flag, &status);
        CHECK(flag && y == check_size && request != MPI_REQUEST_NULL);
        MPI_Test(&request, &flag, &status);
        CHECK(flag && request == MPI_REQUEST_NULL);
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, world, &request);
        MPI_Isend(&sent, 1, MPI_INT, (check_rank + 1) % check_size, 9, world, &message);
        MPI_Request_free(&message);
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 10, world, &message);
        MPI_Cancel(&message);
        MPI_Wait(&message, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag);
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 9, world, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(got == 5 && y == check_size);
    }
}

/* Persistent requests, of messages and (if the MPI has them) of collectives, besides Peal's. */
static void persistent(void)
{
    int x = 1, y = 0, a = check_rank, b = -1, z = 0;
    MPI_Request r[4];
    MPI_Send_init(&a, 1, MPI_INT, (check_rank + 1) % check_size, 11, world, &r[0]);
    MPI_Recv_init(&b, 1, MPI_INT, (check_rank + check_size - 1) % check_size, 11, world, &r[1]);
#if MPI_VERSION >= 4
    MPI_Allreduce_init(&x, &z, 1, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &r[2]);
#else
    MPI_Send_init(&a, 1, MPI_INT, MPI_PROC_NULL, 12, world, &r[2]);
#endif
    for (int i = 0; i < 10; i++) {
        int done = 0, some, indices[4];
        b = -1, y = 0;
        MPI_Startall(3, r);
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, world, &r[3]);
        CHECK(check_sum(world, 2) == check_size);
        while (done < 4) {
            MPI_Waitsome(4, r, &some, indices, MPI_STATUSES_IGNORE);
            done += some;
        }
        CHECK(y == check_size && b == (check_rank + check_size - 1) % check_size);
#if MPI_VERSION >= 4
        CHECK(z == check_size);
#endif
    }
    for (int i = 0; i < 3; i++)
        MPI_Request_free(&r[i]);
}

/* A program starts another one between collectives. */
static void forks(void)
{
    for (int i = 0; i < 3; i++) {
        MPI_Request request;
        int x = 1, y = 0;
        CHECK(check_sum(world, 3) == check_size);
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, world, &request);
        CHECK(system("true") == 0);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(y == check_size && check_sum(world, 3) == check_size);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"type", type_freed_after_the_start},
    {"exscan", exscan_of_rank_0},
    {"aliases", aliases_on_one_rank},
    {"consensus", consensus},
    {"window", one_sided_during_a_collective},
    {"bottom", bottom},
    {"columns", columns},
    {"nothing", nothing},
    {"rare", rare_communicators},
    {"asked", asked_about},
    {"persistent", persistent},
    {"forks", forks},
    {"early", leaves_early},
};

static int is_wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return 1;
    }
    return argc < 2;
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    check_warm_up(world);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!is_wanted(argc, argv, cases[i].name))
            continue;
        cases[i].run();
        printf("rank %d is done with %s\n", check_rank, cases[i].name);
        fflush(stdout);
    }
    MPI_Comm_free(&world);
    return check_end();
}
