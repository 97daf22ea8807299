/* SPDX-License-Identifier: Apache-2.0 */
/* A program for the standard ABI of MPI, which declares what it uses itself. It runs with
 * standard_mpi.c, or any library with that ABI, and prints the results of every rank, as check.h
 * does. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct handle *H;
#define WORLD ((H)0x101)
#define REQUEST_NULL ((H)0x180)
#define INT ((H)0x209)
#define LONG ((H)0x20a)
#define UNSIGNED ((H)0x20d)
#define FLOAT ((H)0x210)
#define DOUBLE ((H)0x214)
#define DOUBLE_INT ((H)0x229)
#define TWO_INT ((H)0x22b)
#define CHAR ((H)0x243)
#define BYTE ((H)0x247)
#define INT16 ((H)0x248)
#define IN_PLACE ((void *)1)
#define SUM ((H)0x21)

int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Comm_rank(H, int *), MPI_Comm_size(H, int *);
int MPI_Barrier(H), MPI_Bcast(void *, int, H, int, H),
    MPI_Allreduce(const void *, void *, int, H, H, H);
int MPI_Reduce(const void *, void *, int, H, H, int, H),
    MPI_Scan(const void *, void *, int, H, H, H);
int MPI_Exscan(const void *, void *, int, H, H, H),
    MPI_Alltoall(const void *, int, H, void *, int, H, H);
int MPI_Allgather(const void *, int, H, void *, int, H, H), MPI_Comm_dup(H, H *),
    MPI_Comm_free(H *);
int MPI_Gather(const void *, int, H, void *, int, H, int, H),
    MPI_Scatter(const void *, int, H, void *, int, H, int, H);
int MPI_Reduce_scatter_block(const void *, void *, int, H, H, H),
    MPI_Iallreduce(const void *, void *, int, H, H, H, H *);
int MPI_Ibcast(void *, int, H, int, H, H *), MPI_Waitall(int, H *, void *),
    MPI_Type_vector(int, int, int, H, H *);
int MPI_Type_commit(H *), MPI_Type_free(H *), MPI_Wait(H *, void *);

static FILE *file;
static int rank, size;

static void say(const char *name, const void *data, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    fprintf(file, "%d %s %016llx\n", rank, name, (unsigned long long)hash);
}

static void reductions(H comm)
{
    static const struct {
        const char *name;
        H op;
    } ops[] = {{"sum", SUM},      {"min", (H)0x22}, {"max", (H)0x23},  {"prod", (H)0x24},
               {"band", (H)0x28}, {"bor", (H)0x29}, {"bxor", (H)0x2a}, {"land", (H)0x30},
               {"lor", (H)0x31},  {"lxor", (H)0x32}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        int in[30], out[30];
        for (int k = 0; k < 30; k++)
            in[k] = (rank + 2) * (k % 5) - 3;
        MPI_Allreduce(in, out, 30, INT, ops[i].op, comm);
        say(ops[i].name, out, sizeof out);
        memset(out, 0, sizeof out);
        MPI_Reduce(in, out, 30, INT, ops[i].op, size - 1, comm);
        say(ops[i].name, out, sizeof out);
    }
    struct {
        double value;
        int index;
    } pair[4], places[4];
    memset(pair, 0, sizeof pair);
    memset(places, 0, sizeof places);
    for (int k = 0; k < 4; k++)
        pair[k].value = (k + rank) % 3, pair[k].index = rank;
    MPI_Allreduce(pair, places, 4, DOUBLE_INT, (H)0x39, comm);
    for (int k = 0; k < 4; k++)
        fprintf(file, "%d place %g %d\n", rank, places[k].value, places[k].index);
    int two[2] = {rank % 2, rank}, least[2];
    MPI_Allreduce(two, least, 1, TWO_INT, (H)0x38, comm);
    say("minloc", least, sizeof least);
    float f = (float)rank + 0.5f, g;
    MPI_Allreduce(&f, &g, 1, FLOAT, SUM, comm);
    say("float", &g, sizeof g);
    long l = rank, sums = 0;
    MPI_Scan(&l, &sums, 1, LONG, SUM, comm);
    say("scan", &sums, sizeof sums);
    unsigned u = (unsigned)rank, before = 7;
    MPI_Exscan(&u, &before, 1, UNSIGNED, SUM, comm);
    say("exscan", &before, sizeof before);
    int16_t half[64], own[32];
    for (int k = 0; k < 64; k++)
        half[k] = (int16_t)(k * rank);
    MPI_Reduce_scatter_block(half, own, 64 / size, INT16, SUM, comm);
    say("reduce_scatter", own, (size_t)(64 / size) * 2);
    double d[8] = {rank, 1};
    MPI_Allreduce(IN_PLACE, d, 8, DOUBLE, SUM, comm);
    say("in place", d, sizeof d);
}

static void moves(H comm)
{
    char own[40], all[40 * 16];
    H vector, requests[2] = {REQUEST_NULL, REQUEST_NULL};
    memset(own, rank + 1, sizeof own);
    memset(all, 0, sizeof all);
    MPI_Allgather(own, 40, CHAR, all, 40, CHAR, comm);
    say("allgather", all, sizeof all);
    MPI_Alltoall(all, 8, BYTE, all + 320, 8, BYTE, comm);
    say("alltoall", all, sizeof all);
    MPI_Gather(own, 40, CHAR, all, 40, CHAR, 0, comm);
    MPI_Scatter(all, 40, CHAR, own, 40, CHAR, 0, comm);
    say("gather and scatter", own, sizeof own);
    MPI_Type_vector(10, 1, 2, INT, &vector);
    MPI_Type_commit(&vector);
    int strided[20];
    for (int k = 0; k < 20; k++)
        strided[k] = rank * 100 + k;
    MPI_Bcast(strided, 1, vector, size - 1, comm);
    say("vector", strided, sizeof strided);
    int x = rank, y = 0;
    MPI_Iallreduce(&x, &y, 1, INT, SUM, comm, &requests[0]);
    MPI_Ibcast(own, 40, CHAR, 0, comm, &requests[1]);
    MPI_Waitall(2, requests, NULL);
    fprintf(file, "%d requests %d %d\n", rank, requests[0] == REQUEST_NULL,
            requests[1] == REQUEST_NULL);
    say("iallreduce", &y, sizeof y);
    MPI_Type_free(&vector);
    MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    char path[512];
    H copy;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    snprintf(path, sizeof path, "%s/%d", getenv("CHECK_FOLDER"), rank);
    file = fopen(path, "w");
    if (!file || size > 8)
        return 2;
    MPI_Comm_dup(WORLD, &copy);
    for (int i = 0; i < 20; i++) {
        reductions(i % 2 ? copy : WORLD);
        moves(i % 2 ? copy : WORLD);
    }
    MPI_Comm_free(&copy);
    MPI_Finalize();
    fclose(file);
    return 0;
}
