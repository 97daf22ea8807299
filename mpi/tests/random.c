/* SPDX-License-Identifier: Apache-2.0 */
/* Random MPI programs:  random SEED COUNT  runs COUNT of them, one after the other.
 *
 * Two generators: `shared` is the same on all ranks and decides which call is made, on which
 * communicator and with how much data; `own` differs per rank and makes the data. All ranks must
 * therefore draw equally often from `shared`, whether or not they are in the communicator. Results
 * are hashed, and each rank prints its hash after each program. */
#include "check.h"

enum { SLOTS = 5, PENDING = 6, OPS = 40, MAX_COUNT = 700 };

struct slot {
    MPI_Comm comm; /* MPI_COMM_NULL: this rank is not in it */
    int is_open;   /* on some rank */
};

struct pending {
    MPI_Request request;
    char *send, *recv;
    size_t bytes; /* of the result, on this rank */
};

static struct slot slots[SLOTS];
static struct pending pending[PENDING];
static int npending;
static uint64_t shared, own, result;

static int pick(int below)
{
    return (int)(check_random(&shared) % (unsigned)below);
}

static void take(const void *data, size_t bytes)
{
    result = result * 31 + check_hash(data, bytes);
}

/* Small whole numbers in any type, so that sums are exact. */
static char *make_data(MPI_Datatype type, size_t elements)
{
    char *data = calloc(elements * 16 + 64, 1);
    for (size_t i = 0; i < elements; i++) {
        int value = (int)(check_random(&own) % 4);
        if (type == MPI_DOUBLE)
            ((double *)data)[i] = value;
        else if (type == MPI_FLOAT)
            ((float *)data)[i] = (float)value;
        else if (type == MPI_LONG)
            ((long *)data)[i] = value;
        else if (type == MPI_UNSIGNED_CHAR)
            ((unsigned char *)data)[i] = (unsigned char)value;
        else if (type == MPI_SHORT)
            ((short *)data)[i] = (short)value;
        else
            ((int *)data)[i] = value;
    }
    return data;
}

static MPI_Datatype pick_type(void)
{
    static const MPI_Datatype types[] = {MPI_INT,           MPI_DOUBLE, MPI_FLOAT,   MPI_LONG,
                                         MPI_UNSIGNED_CHAR, MPI_SHORT,  MPI_UNSIGNED};
    return types[pick(7)];
}

static MPI_Op pick_op(MPI_Datatype type)
{
    static const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_BAND, MPI_LOR, MPI_BXOR};
    int floating = type == MPI_DOUBLE || type == MPI_FLOAT;
    return ops[pick(floating ? 4 : 7)];
}

enum way { WAIT_ALL, WAIT_EACH, TEST_ALL, WAIT_ANY, WAIT_SOME, TEST_SOME, GET_STATUS, WAYS };

static void complete(MPI_Request *requests, enum way way)
{
    int flag = 0, done = 0, some = 0, indices[PENDING];
    switch (way) {
    case WAIT_ALL:
        MPI_Waitall(npending, requests, MPI_STATUSES_IGNORE);
        break;
    case WAIT_EACH:
        for (int i = 0; i < npending; i++)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        break;
    case TEST_ALL:
        while (!flag)
            MPI_Testall(npending, requests, &flag, MPI_STATUSES_IGNORE);
        break;
    case WAIT_ANY:
        for (int i = 0; i < npending; i++)
            MPI_Waitany(npending, requests, &some, MPI_STATUS_IGNORE);
        break;
    case WAIT_SOME:
    case TEST_SOME:
        while (done < npending) {
            if (way == WAIT_SOME)
                MPI_Waitsome(npending, requests, &some, indices, MPI_STATUSES_IGNORE);
            else
                MPI_Testsome(npending, requests, &some, indices, MPI_STATUSES_IGNORE);
            done += some;
        }
        break;
    default:
        for (int i = npending - 1; i >= 0; i--) {
            for (flag = 0; !flag;)
                MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
            MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        }
    }
}

static void wait_all(void)
{
    MPI_Request requests[PENDING];
    for (int i = 0; i < npending; i++)
        requests[i] = pending[i].request;
    complete(requests, (enum way)pick(WAYS));
    for (int i = 0; i < npending; i++) {
        take(pending[i].recv, pending[i].bytes);
        free(pending[i].send);
        free(pending[i].recv);
    }
    npending = 0;
}

/* A rank that is not in a communicator has no request of its calls, so ranks have different numbers
 * of requests and wait at different times. */
static struct pending *new_pending(char *send, char *recv, size_t bytes)
{
    struct pending *new = &pending[npending++];
    *new = (struct pending){MPI_REQUEST_NULL, send, recv, bytes};
    return new;
}

static void reduce(MPI_Comm comm, int size, int rank)
{
    MPI_Datatype type = pick_type();
    MPI_Op op = pick_op(type);
    int count = pick(4) ? pick(20) : pick(MAX_COUNT), kind = pick(12), root = pick(1000), bytes;
    if (comm == MPI_COMM_NULL)
        return;
    root %= size;
    MPI_Type_size(type, &bytes);
    char *send = make_data(type, (size_t)(count * size)),
         *recv = make_data(type, (size_t)(count * size));
    size_t some = (size_t)bytes * (size_t)count;
    int parts[16];
    for (int r = 0; r < size; r++)
        parts[r] = (r + kind) % 2 ? count : 0;
    switch (kind) {
    case 0:
        MPI_Allreduce(send, recv, count, type, op, comm);
        break;
    case 1:
        MPI_Allreduce(MPI_IN_PLACE, recv, count, type, op, comm);
        break;
    case 2:
        MPI_Reduce(send, recv, count, type, op, root, comm);
        break;
    case 3:
        MPI_Reduce_scatter_block(send, recv, count, type, op, comm);
        break;
    case 4:
        MPI_Reduce_scatter(send, recv, parts, type, op, comm);
        break;
    case 5:
        MPI_Scan(send, recv, count, type, op, comm);
        break;
    case 6:
        MPI_Iallreduce(send, recv, count, type, op, comm, &new_pending(send, recv, some)->request);
        return;
    case 7:
        MPI_Exscan(send, recv, count, type, op, comm); /* leaves rank 0's result unchanged */
        break;
    case 8:
        MPI_Iscan(MPI_IN_PLACE, recv, count, type, op, comm,
                  &new_pending(send, recv, some)->request);
        return;
    case 9:
        MPI_Iexscan(send, recv, count, type, op, comm, &new_pending(send, recv, some)->request);
        return;
    case 10:
        MPI_Ireduce_scatter_block(send, recv, count, type, op, comm,
                                  &new_pending(send, recv, some)->request);
        return;
    default:
        MPI_Ireduce(send, recv, count, type, op, root, comm,
                    &new_pending(send, recv, rank == root ? some : 0)->request);
        return;
    }
    take(recv, kind == 2 && rank != root ? 0 : some);
    free(send);
    free(recv);
}

/* A type that depends on the rank; `*scale` of its elements are 8 bytes on every rank. */
static MPI_Datatype own_type(int rank, int *scale)
{
    MPI_Datatype type;
    int swapped[2] = {1, 0};
    *scale = 2;
    if (rank % 3 == 0)
        MPI_Type_dup(MPI_INT, &type);
    else if (rank % 3 == 1)
        MPI_Type_vector(2, 1, 2, MPI_INT, &type), *scale = 1;
    else
        MPI_Type_create_indexed_block(2, 1, swapped, MPI_INT, &type), *scale = 1;
    MPI_Type_commit(&type);
    return type;
}

static void move(MPI_Comm comm, int size, int rank)
{
    int count = pick(4) ? pick(20) : pick(MAX_COUNT), kind = pick(12), root = pick(1000), scale;
    if (comm == MPI_COMM_NULL)
        return;
    root %= size;
    size_t elements = (size_t)(count * size * 4 + 16);
    char *send = make_data(MPI_INT, elements), *recv = make_data(MPI_INT, elements);
    size_t all = elements * 4;
    MPI_Datatype type = own_type(rank, &scale);
    int n = count * scale, sends[16], recvs[16], splaces[16], rplaces[16], at = 0, back = 0;
    for (int r = 0; r < size; r++) {
        sends[r] = (rank + r + kind) % 3 * (count / 3), splaces[r] = at, at += sends[r];
        recvs[r] = (rank + r + kind) % 3 * (count / 3), rplaces[r] = back, back += recvs[r] + 1;
    }
    switch (kind) {
    case 0:
        MPI_Bcast(recv, n, type, root, comm);
        break;
    case 1:
        MPI_Allgather(send, n, type, recv, 2 * count, MPI_INT, comm);
        break;
    case 2:
        MPI_Alltoall(send, 2 * count, MPI_INT, recv, n, type, comm);
        break;
    case 3:
        MPI_Gather(send, n, type, recv, n, type, root, comm);
        break;
    case 4:
        MPI_Scatter(send, n, type, recv, n, type, root, comm);
        break;
    case 5:
        MPI_Alltoallv(send, sends, splaces, MPI_INT, recv, recvs, rplaces, MPI_INT, comm);
        break;
    case 6:
        MPI_Barrier(comm);
        break;
    case 7:
        MPI_Ibcast(recv, n, type, root, comm, &new_pending(send, recv, all)->request);
        MPI_Type_free(&type);
        return;
    case 8:
        MPI_Ialltoall(send, 2 * count, MPI_INT, recv, n, type, comm,
                      &new_pending(send, recv, all)->request);
        MPI_Type_free(&type);
        return;
    case 9:
        MPI_Igather(send, n, type, recv, n, type, root, comm,
                    &new_pending(send, recv, all)->request);
        MPI_Type_free(&type);
        return;
    case 10:
        MPI_Iscatter(send, n, type, recv, n, type, root, comm,
                     &new_pending(send, recv, all)->request);
        MPI_Type_free(&type);
        return;
    default:
        MPI_Iallgather(send, count, MPI_INT, recv, count, MPI_INT, comm,
                       &new_pending(send, recv, all)->request);
        MPI_Type_free(&type);
        return;
    }
    take(recv, all);
    MPI_Type_free(&type);
    free(send);
    free(recv);
}

/* Messages around a ring, in flight during a collective. */
static void exchange(MPI_Comm comm, int size, int rank)
{
    int count = pick(3) ? pick(2000) : 200000 + pick(100000), with = pick(3), x = 1, y = 0;
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Request requests[2];
    char *send = make_data(MPI_UNSIGNED_CHAR, (size_t)count), *recv = calloc((size_t)count + 1, 1);
    MPI_Irecv(recv, count, MPI_BYTE, (rank + size - 1) % size, 1, comm, &requests[0]);
    if (rank % 2 && size > 1) {
        MPI_Ssend(send, count, MPI_BYTE, (rank + 1) % size, 1, comm);
        requests[1] = MPI_REQUEST_NULL;
    } else {
        MPI_Isend(send, count, MPI_BYTE, (rank + 1) % size, 1, comm, &requests[1]);
    }
    if (with == 0)
        MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm);
    else if (with == 1)
        MPI_Barrier(comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    take(recv, (size_t)count);
    take(&y, sizeof y);
    free(send);
    free(recv);
}

static void change_slot(int to)
{
    int from = pick(SLOTS), kind = pick(3), salt = pick(1000);
    if (to == 0)
        return;
    wait_all();
    if (slots[to].is_open) {
        if (slots[to].comm != MPI_COMM_NULL)
            MPI_Comm_free(&slots[to].comm);
        slots[to] = (struct slot){MPI_COMM_NULL, 0};
        return;
    }
    if (!slots[from].is_open)
        return;
    slots[to].is_open = 1;
    if (slots[from].comm == MPI_COMM_NULL)
        return;
    if (kind == 0) {
        MPI_Comm_dup(slots[from].comm, &slots[to].comm);
        return;
    }
    int key = kind == 1 ? check_rank : -check_rank;
    int color = (check_rank * 7 + salt) % 3 ? check_rank % 2 : MPI_UNDEFINED;
    MPI_Comm_split(slots[from].comm, color, key, &slots[to].comm);
}

static void run_program(uint64_t seed)
{
    shared = seed;
    own = seed * 1000 + (uint64_t)check_rank;
    result = 0;
    for (int i = 0; i < SLOTS; i++)
        slots[i] = (struct slot){MPI_COMM_NULL, 0};
    MPI_Comm_dup(MPI_COMM_WORLD, &slots[0].comm);
    slots[0].is_open = 1;
    for (int i = 0; i < OPS; i++) {
        int slot = pick(SLOTS), action = pick(10), size = 1, rank = 0;
        MPI_Comm comm = slots[slot].comm;
        if (comm != MPI_COMM_NULL) {
            MPI_Comm_size(comm, &size);
            MPI_Comm_rank(comm, &rank);
        }
        if (npending == PENDING)
            wait_all();
        else
            (void)pick(WAYS); /* as wait_all does */
        if (action < 4)
            reduce(comm, size, rank);
        else if (action < 7)
            move(comm, size, rank);
        else if (action < 8)
            exchange(comm, size, rank);
        else
            change_slot(slot);
    }
    wait_all();
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].comm != MPI_COMM_NULL)
            MPI_Comm_free(&slots[i].comm);
    }
    printf("program %llu rank %d: %016llx\n", (unsigned long long)seed, check_rank,
           (unsigned long long)result);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int count = argc > 2 ? atoi(argv[2]) : 10;
    for (int i = 0; i < count; i++)
        run_program(seed + (uint64_t)i);
    return check_end();
}
