/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective: types, operations, counts, roots, in place, types with holes that differ per
 * rank, on the world and on half of it.  rows [few] */
#include "check.h"

enum { MAX_COUNT = 3000 };
static const int counts[] = {0, 1, 3, 64, 1000, MAX_COUNT};
enum { COUNTS = sizeof counts / sizeof *counts };

static MPI_Comm comm;
static const char *comm_name;
static int rank, size;
static char *in, *out;
static int few; /* only a few counts */

static void fill(char *buf, size_t bytes, int kind, int salt)
{
    uint64_t seed = (uint64_t)(rank * 1000 + salt);
    memset(buf, 0, bytes);
    switch (kind) {
    case 'd':
        for (size_t i = 0; i < bytes / 8; i++)
            ((double *)buf)[i] = (double)(check_random(&seed) % 7);
        break;
    case 'f':
        for (size_t i = 0; i < bytes / 4; i++)
            ((float *)buf)[i] = (float)(check_random(&seed) % 5);
        break;
    case 'b':
        for (size_t i = 0; i < bytes; i++)
            buf[i] = (char)(check_random(&seed) % 2);
        break;
    case 's': /* in Open MPI sums of 1 and 2 bytes saturate; MPICH compares unsigned as signed */
        for (size_t i = 0; i < bytes; i++)
            buf[i] = (char)(check_random(&seed) % 6);
        break;
    case 'u': /* MPICH 4.0.2 takes unsigned numbers for signed ones in maxima and minima */
        for (size_t i = 0; i < bytes; i++)
            buf[i] = (char)(check_random(&seed) % 128);
        break;
    case 'l':
        for (size_t i = 0; i < bytes / 4; i++)
            ((int *)buf)[i] = (int)(check_random(&seed) % 2);
        break;
    default:
        for (size_t i = 0; i < bytes; i++)
            buf[i] = (char)check_random(&seed);
    }
}

static void say(const char *collective, const char *variant, int count, int root, size_t bytes)
{
    char name[160];
    snprintf(name, sizeof name, "%s %s %s count %d root %d", comm_name, collective, variant, count,
             root);
    check_say(name, out, bytes);
}

struct type {
    const char *name;
    MPI_Datatype type;
    int kind;
};

struct op {
    const char *name;
    MPI_Op op;
    const char *kinds; /* of types that have it: integers, floating point, bool, logical, bits */
};

static void reduce_all(const struct type *t, const struct op *o, int count)
{
    int bytes;
    char variant[96];
    MPI_Type_size(t->type, &bytes);
    size_t all = (size_t)bytes * (size_t)count;
    snprintf(variant, sizeof variant, "%s %s", t->name, o->name);
    fill(in, all * (size_t)size, t->kind, count);
    memset(out, 0, all * (size_t)size);
    MPI_Allreduce(in, out, count, t->type, o->op, comm);
    say("allreduce", variant, count, 0, all);
    memcpy(out, in, all);
    MPI_Allreduce(MPI_IN_PLACE, out, count, t->type, o->op, comm);
    say("allreduce in place", variant, count, 0, all);
    int root = count % size;
    memset(out, 0, all);
    MPI_Reduce(in, out, count, t->type, o->op, root, comm);
    say("reduce", variant, count, root, rank == root ? all : 0);
    memcpy(out, in, all);
    /* With root 0: MPICH 4.0.2 crashes with other roots, even without Peal. */
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : in, out, count, t->type, o->op, 0, comm);
    say("reduce in place", variant, count, 0, rank == 0 ? all : 0);
    MPI_Reduce_scatter_block(in, out, count, t->type, o->op, comm);
    say("reduce_scatter_block", variant, count, 0, all);
    memcpy(out, in, all * (size_t)size);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, out, count, t->type, o->op, comm);
    say("reduce_scatter_block in place", variant, count, 0, all);
    int parts[16];
    for (int r = 0; r < size; r++)
        parts[r] = r % 2 ? count : count / 2;
    MPI_Reduce_scatter(in, out, parts, t->type, o->op, comm);
    say("reduce_scatter", variant, count, 0, (size_t)bytes * (size_t)parts[rank]);
    memcpy(out, in, all * (size_t)size);
    MPI_Reduce_scatter(MPI_IN_PLACE, out, parts, t->type, o->op, comm);
    say("reduce_scatter in place", variant, count, 0, (size_t)bytes * (size_t)parts[rank]);
    memset(out, 0, all);
    MPI_Scan(in, out, count, t->type, o->op, comm);
    say("scan", variant, count, 0, all);
    memset(out, 0, all);
    MPI_Exscan(in, out, count, t->type, o->op, comm);
    say("exscan", variant, count, 0, rank ? all : 0);
}

static void reductions(void)
{
    static const struct type types[] = {
        {"int", MPI_INT, 'i'},
        {"unsigned", MPI_UNSIGNED, 'u'},
        {"long", MPI_LONG, 'i'},
        {"short", MPI_SHORT, 's'},
        {"uint8", MPI_UINT8_T, 's'},
        {"int8", MPI_INT8_T, 's'},
        {"uint16", MPI_UINT16_T, 's'},
        {"uint64", MPI_UINT64_T, 'u'},
        {"aint", MPI_AINT, 'i'},
        {"float", MPI_FLOAT, 'f'},
        {"double", MPI_DOUBLE, 'd'},
        {"bool", MPI_C_BOOL, 'b'},
        {"complex", MPI_C_FLOAT_COMPLEX, 'f'},
        {"double complex", MPI_C_DOUBLE_COMPLEX, 'd'},
        {"byte", MPI_BYTE, 'y'},
    };
    static const struct op ops[] = {
        {"sum", MPI_SUM, "suifd"},  {"prod", MPI_PROD, "suifd"}, {"max", MPI_MAX, "suifd"},
        {"min", MPI_MIN, "suifd"},  {"land", MPI_LAND, "suib"},  {"lor", MPI_LOR, "suib"},
        {"lxor", MPI_LXOR, "suib"}, {"band", MPI_BAND, "suiy"},  {"bor", MPI_BOR, "suiy"},
        {"bxor", MPI_BXOR, "suiy"},
    };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
            int is_complex = strstr(types[t].name, "complex") != NULL;
            if (!strchr(ops[o].kinds, types[t].kind) || (is_complex && o > 1))
                continue;
            for (int c = few ? 2 : 0; c < COUNTS; c += few ? 10 : 1 + (o > 0))
                reduce_all(&types[t], &ops[o], counts[c]);
        }
    }
}

/* Each pair type, both operations, most reductions. Holes of the result are not compared: an MPI
 * may write them or not. */
#define PAIRS(name, type, mpi_type)                                                                \
    struct pair_##name {                                                                           \
        type value;                                                                                \
        int place;                                                                                 \
    };                                                                                             \
    static void say_##name(const char *collective, const char *variant, int count)                 \
    {                                                                                              \
        struct pair_##name *b = (struct pair_##name *)out, whole;                                  \
        for (int i = 0; i < count; i++) {                                                          \
            memset(&whole, 0, sizeof whole);                                                       \
            whole.value = b[i].value, whole.place = b[i].place;                                    \
            memcpy(&b[i], &whole, sizeof whole);                                                   \
        }                                                                                          \
        say(collective, variant, count, 0, (size_t)count * sizeof *b);                             \
    }                                                                                              \
    static void pairs_of_##name(MPI_Op op, const char *variant)                                    \
    {                                                                                              \
        enum { COUNT = 37 };                                                                       \
        struct pair_##name *a = (struct pair_##name *)in;                                          \
        int parts[16];                                                                             \
        memset(in, 0x33, COUNT * sizeof *a * (size_t)size);                                        \
        for (int i = 0; i < COUNT * size; i++)                                                     \
            a[i].value = (type)((i * 7 + rank * 3) % 11 - 5), a[i].place = rank - 2;               \
        for (int r = 0; r < size; r++)                                                             \
            parts[r] = r % 2 ? COUNT : COUNT / 2;                                                  \
        MPI_Allreduce(in, out, COUNT, mpi_type, op, comm);                                         \
        say_##name("allreduce " #name, variant, COUNT);                                            \
        memcpy(out, in, COUNT * sizeof *a);                                                        \
        MPI_Allreduce(MPI_IN_PLACE, out, COUNT, mpi_type, op, comm);                               \
        say_##name("allreduce in place " #name, variant, COUNT);                                   \
        MPI_Reduce(in, out, COUNT, mpi_type, op, size - 1, comm);                                  \
        say_##name("reduce " #name, variant, rank == size - 1 ? COUNT : 0);                        \
        MPI_Reduce_scatter(in, out, parts, mpi_type, op, comm);                                    \
        say_##name("reduce_scatter " #name, variant, parts[rank]);                                 \
        MPI_Exscan(in, out, COUNT, mpi_type, op, comm);                                            \
        say_##name("exscan " #name, variant, rank ? COUNT : 0);                                    \
    }
PAIRS(double_int, double, MPI_DOUBLE_INT)
PAIRS(long_int, long, MPI_LONG_INT)
PAIRS(short_int, short, MPI_SHORT_INT)
PAIRS(float_int, float, MPI_FLOAT_INT)
PAIRS(two_int, int, MPI_2INT)

static void all_pairs(void)
{
    static void (*const of[])(MPI_Op, const char *) = {pairs_of_double_int, pairs_of_long_int,
                                                       pairs_of_short_int, pairs_of_float_int,
                                                       pairs_of_two_int};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        of[i](MPI_MINLOC, "minloc");
        of[i](MPI_MAXLOC, "maxloc");
    }
}

/* Pairs of a value and its place: types with holes among them. */
static void pairs(void)
{
    struct {
        double value;
        int place;
    } a[50], b[50];
    struct {
        short value;
        int place;
    } c[50], d[50];
    memset(a, 0, sizeof a), memset(b, 0, sizeof b);
    memset(c, 0, sizeof c), memset(d, 0, sizeof d);
    for (int i = 0; i < 50; i++) {
        a[i].value = (i * 7 + rank * 3) % 11, a[i].place = rank;
        c[i].value = (short)((i * 5 + rank) % 9), c[i].place = rank;
    }
    MPI_Allreduce(a, b, 50, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    for (int i = 0; i < 50; i++)
        memcpy(out + 12 * i, &b[i].value, 8), memcpy(out + 12 * i + 8, &b[i].place, 4);
    say("maxloc", "double_int", 50, 0, 600);
    MPI_Allreduce(c, d, 50, MPI_SHORT_INT, MPI_MINLOC, comm);
    for (int i = 0; i < 50; i++)
        memcpy(out + 6 * i, &d[i].value, 2), memcpy(out + 6 * i + 2, &d[i].place, 4);
    say("minloc", "short_int", 50, 0, 300);
    /* Data movement must not touch the holes. */
    memset(b, 0x55, sizeof b);
    if (rank == 0)
        memcpy(b, a, sizeof b);
    MPI_Bcast(b, 50, MPI_DOUBLE_INT, 0, comm);
    for (int i = 0; i < 50; i++)
        memcpy(out + 12 * i, &b[i].value, 8), memcpy(out + 12 * i + 8, &b[i].place, 4);
    say("bcast", "double_int", 50, 0, 600);
    char hole[4];
    memcpy(hole, (char *)&b[3] + 12, 4);
    CHECK(rank == 0 || memcmp(hole, "\x55\x55\x55\x55", 4) == 0);
}

/* All blocks have the same contents, and are received at one place. */
static void shared_blocks(void)
{
    int counts_of[16], places[16];
    for (int r = 0; r < size; r++)
        counts_of[r] = 50, places[r] = 3;
    memset(in, 0x17, 200);
    memset(out, 0, 400);
    MPI_Allgatherv(in, 50, MPI_INT, out, counts_of, places, MPI_INT, comm);
    say("allgatherv", "shared blocks", 50, 0, 400);
}

static void user_sum(void *a, void *b, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)b)[i] += ((int *)a)[i] + 1;
}

static void user_ops(void)
{
    MPI_Op op;
    MPI_Op_create(user_sum, 1, &op);
    for (int i = 0; i < 20; i++) {
        fill(in, 400, 'l', i);
        MPI_Allreduce(in, out, 100, MPI_INT, op, comm);
        say("allreduce", "user op", i, 0, 400);
    }
    MPI_Op_free(&op);
}

/* The same number of bytes on every rank, in different types: plain ints, a vector with holes, ints
 * in another order, a struct that begins before its address. */
static MPI_Datatype make_type(int which, int *elements)
{
    MPI_Datatype type, resized;
    int places[2] = {1, 0};
    switch (which) {
    case 0:
        *elements = 4;
        MPI_Type_dup(MPI_INT, &type);
        break;
    case 1:
        *elements = 2;
        MPI_Type_vector(2, 1, 3, MPI_INT, &type);
        break;
    case 2:
        *elements = 2;
        MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &type);
        break;
    default:
        *elements = 1;
        MPI_Type_contiguous(4, MPI_INT, &type);
        MPI_Type_create_resized(type, -4, 24, &resized);
        MPI_Type_free(&type);
        type = resized;
    }
    MPI_Type_commit(&type);
    return type;
}

static void derived(int shift)
{
    int elements;
    MPI_Datatype type = make_type((rank + shift) % 4, &elements);
    for (int n = few ? 15 : 1; n <= (few ? 15 : 50); n += 7) {
        int count = n * elements, root = n % size;
        size_t room = (size_t)n * 64 * (size_t)size + 64;
        char variant[32];
        snprintf(variant, sizeof variant, "derived %d", shift);
        fill(in, room, 'i', n);
        memcpy(out, in, room);
        MPI_Bcast(out + 16, count, type, root, comm);
        say("bcast", variant, n, root, room);
        memset(out, 1, room);
        MPI_Allgather(in + 16, n * 4, MPI_INT, out + 16, count, type, comm);
        say("allgather", variant, n, root, room);
        memcpy(out, in, room);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out + 16, count, type, comm);
        say("allgather in place", variant, n, root, room);
        memset(out, 2, room);
        MPI_Alltoall(in + 16, count, type, out + 16, n * 4, MPI_INT, comm);
        say("alltoall", variant, n, root, room);
        memcpy(out, in, room);
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out + 16, count, type, comm);
        say("alltoall in place", variant, n, root, room);
        memset(out, 3, room);
        MPI_Gather(in + 16, count, type, out + 16, count, type, root, comm);
        say("gather", variant, n, root, room);
        memset(out, 4, room);
        MPI_Scatter(in + 16, count, type, out + 16, count, type, root, comm);
        say("scatter", variant, n, root, room);
        memcpy(out, in, room);
        if (rank == root)
            MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out + 16, count, type, root, comm);
        else
            MPI_Gather(in + 16, count, type, NULL, 0, MPI_DATATYPE_NULL, root, comm);
        say("gather in place", variant, n, root, room);
        memcpy(out, in, room);
        if (rank == root)
            MPI_Scatter(out + 16, count, type, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, comm);
        else
            MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, out + 16, count, type, root, comm);
        say("scatter in place", variant, n, root, room);
    }
    MPI_Type_free(&type);
}

static void uneven(MPI_Datatype type, const char *variant)
{
    int sends[16], sdispls[16], recvs[16], rdispls[16], own[16], at = 0, back = 0;
    MPI_Aint lb, extent;
    MPI_Type_get_extent(type, &lb, &extent);
    for (int n = 0; n < 12; n += few ? 4 : 1) {
        at = back = 0;
        for (int r = 0; r < size; r++) {
            sends[r] = (rank * 3 + r * 5 + n) % 4 * n;
            recvs[r] = (r * 3 + rank * 5 + n) % 4 * n;
            own[r] = (r + n) % 3 * n;
            sdispls[r] = sends[r] ? at : -5; /* empty blocks need no valid place */
            rdispls[r] = back;
            at += sends[r] + 1;
            back += recvs[r] + 2;
        }
        size_t room = (size_t)(at > back ? at : back) * (size_t)extent + 4096;
        fill(in, room, 'i', n);
        memset(out, 5, room);
        MPI_Alltoallv(in, sends, sdispls, type, out, recvs, rdispls, type, comm);
        say("alltoallv", variant, n, 0, room);
        back = 0;
        for (int r = 0; r < size; r++)
            rdispls[r] = back, back += own[r] + 1;
        room = (size_t)back * (size_t)extent + 4096;
        memset(out, 6, room);
        MPI_Allgatherv(in, own[rank], type, out, own, rdispls, type, comm);
        say("allgatherv", variant, n, 0, room);
        fill(out, room, 'i', n + 1);
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, own, rdispls, type, comm);
        say("allgatherv in place", variant, n, 0, room);
        memset(out, 7, room);
        MPI_Gatherv(in, own[rank], type, out, own, rdispls, type, n % size, comm);
        say("gatherv", variant, n, n % size, room);
        memset(out, 8, room);
        MPI_Scatterv(in, own, rdispls, type, out, own[rank], type, n % size, comm);
        say("scatterv", variant, n, n % size, room);
        for (int r = 0; r < size; r++)
            recvs[r] = (r + rank) % 3 * n, rdispls[r] = r * 3 * n;
        room = (size_t)(size * 3 * n) * (size_t)extent + 4096;
        fill(out, room, 'i', n + 2);
        MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out, recvs, rdispls, type, comm);
        say("alltoallv in place", variant, n, 0, room);
    }
}

static void all_rows(void)
{
    MPI_Datatype vector;
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Barrier(comm);
    reductions();
    pairs();
    all_pairs();
    shared_blocks();
    user_ops();
    for (int shift = 0; shift < 4; shift++)
        derived(shift);
    uneven(MPI_INT, "int");
    uneven(vector, "vector");
    MPI_Type_free(&vector);
    for (int i = 0; i < 10; i++)
        MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    in = calloc(1, 1 << 22);
    out = calloc(1, 1 << 22);
    rank = check_rank, size = check_size;
    few = argc > 1 && strcmp(argv[1], "few") == 0;
    comm = MPI_COMM_WORLD, comm_name = "world";
    all_rows();
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &half);
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &size);
    comm = half, comm_name = "half";
    all_rows();
    MPI_Comm_free(&half);
    free(in);
    free(out);
    return check_end();
}
