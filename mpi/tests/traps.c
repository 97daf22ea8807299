/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators, errors and threads, as programs use them:  traps CASE...  (see `cases`) */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* Communicators made in every way, and many of them. */
static void many_communicators(void)
{
    for (int i = 0; i < 300; i++) {
        MPI_Comm comm;
        int size;
        MPI_Comm_split(MPI_COMM_WORLD, (check_rank + i) % 3, check_rank, &comm);
        MPI_Comm_size(comm, &size);
        CHECK(check_sum(comm, 1 + i % 5) == size);
        MPI_Comm_free(&comm);
    }
    MPI_Comm comms[40];
    for (int i = 0; i < 40; i++) {
        MPI_Comm_dup(i ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
        CHECK(check_sum(comms[i], 40) == check_size);
    }
    for (int i = 0; i < 40; i++)
        MPI_Comm_free(&comms[i]);
    int dims[1] = {check_size}, periods[1] = {1};
    MPI_Comm cart, made, shared;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &cart);
    CHECK(check_sum(cart, 40) == check_size);
    MPI_Group group;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &made);
    CHECK(check_sum(made, 40) == check_size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
    CHECK(check_sum(shared, 40) == check_size);
    MPI_Comm_free(&shared), MPI_Comm_free(&made), MPI_Comm_free(&cart), MPI_Group_free(&group);
    CHECK(check_sum(MPI_COMM_SELF, 40) == 1);
}

/* Communicators that are used once or twice, before and after MPI_COMM_WORLD is. */
static void short_lived(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(check_sum(comm, 2) == check_size);
    MPI_Comm_free(&comm);
    CHECK(check_sum(MPI_COMM_WORLD, 2) == check_size);
    for (int i = 0; i < 20; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &comm);
        CHECK(check_sum(comm, 1 + i % 2) == check_size);
        MPI_Comm_free(&comm);
    }
}

/* Requests get their communicator even if the table leaves all blocking calls to the MPI. */
static void requests(void)
{
    MPI_Request request;
    int x = 1, y;
    CHECK(check_sum(MPI_COMM_WORLD, 2) == check_size);
    for (int i = 0; i < 50; i++) {
        y = 0;
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(y == check_size);
        MPI_Bcast(&y, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

static void intercommunicator(void)
{
    MPI_Comm half, inter, merged;
    int side = check_rank % 2, x = check_rank, y = -1, n;
    MPI_Comm_split(MPI_COMM_WORLD, side, check_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
    for (int i = 0; i < 40; i++)
        MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_MAX, inter);
    MPI_Comm_remote_size(inter, &n);
    CHECK(y == (1 - side) + 2 * (n - 1));
    MPI_Barrier(inter);
    MPI_Intercomm_merge(inter, side, &merged);
    CHECK(check_sum(merged, 40) == check_size);
    MPI_Comm_free(&merged), MPI_Comm_free(&inter), MPI_Comm_free(&half);
}

/* A rank that is started later, with or without this library: the MPI decides. */
static void spawns(void)
{
    MPI_Comm parent, inter, merged;
    char path[512] = "", *arguments[] = {"spawns", NULL};
    int size = 0;
    MPI_Comm_get_parent(&parent);
    inter = parent;
    if (parent == MPI_COMM_NULL) {
        CHECK(check_sum(MPI_COMM_WORLD, 40) == check_size);
        CHECK(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
        MPI_Comm_spawn(path, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
    }
    MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged);
    MPI_Comm_size(merged, &size);
    CHECK(check_sum(merged, 40) == size);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
}

/* Errors that the MPI finds, returned; Peal goes on afterwards. */
static void errors_returned(void)
{
    int x = 1, y = 0, class = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(check_sum(MPI_COMM_WORLD, 40) == check_size);
#ifdef OPEN_MPI /* Debian's MPICH checks no arguments */
    int code = MPI_Allreduce(&x, &y, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_COUNT);
    code = MPI_Bcast(&x, 1, MPI_INT, check_size + 3, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_ROOT);
    code = MPI_Bcast(&x, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_TYPE);
#endif
    CHECK(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(check_sum(MPI_COMM_WORLD, 3) == check_size);
}

static void *sum_in_thread(void *context)
{
    MPI_Comm comm = *(MPI_Comm *)context;
    for (int i = 0; i < 300; i++) {
        MPI_Request request;
        int x = i, y = 0, z = 0;
        CHECK(check_sum(comm, 1) == check_size);
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm, &request);
        MPI_Bcast(&z, 1, MPI_INT, 0, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(y == i * check_size);
    }
    return NULL;
}

static void threads(void)
{
    enum { THREADS = 3 };
    MPI_Comm comms[THREADS];
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&ids[i], NULL, sum_in_thread, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

/* The program's own attributes and names. */
static int copies, deletes;
static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}
static int delete (MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deletes++;
    return MPI_SUCCESS;
}
static void attributes(void)
{
    int key, value = 3;
    MPI_Comm comm, again;
    MPI_Comm_create_keyval(copy, delete, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, &value);
    CHECK(check_sum(comm, 40) == check_size);
    MPI_Comm_dup(comm, &again);
    CHECK(check_sum(again, 40) == check_size);
    MPI_Comm_free(&comm);
    CHECK(check_sum(again, 40) == check_size);
    MPI_Comm_free(&again);
    CHECK(copies == 1 && deletes == 2);
    MPI_Comm_free_keyval(&key);
}

/* A few calls of several kinds, on the world and a copy of it, for tests of settings. */
static void some_calls(void)
{
    MPI_Comm comm;
    int x = 1, y = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 5; i++) {
        CHECK(check_sum(MPI_COMM_WORLD, 2) == check_size);
        CHECK(check_sum(comm, 2) == check_size);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Reduce(&x, &y, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&comm);
}

/* ---- ranks that end ---- */

/* Repeated calls that the table leaves to the MPI, between calls that differ only in size, root,
 * operation or communicator, also one with the handle of a freed one. */
static void repeats(void)
{
    int sent[1024], got[1024];
    for (int round = 0; round < 12; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int i = 0; i < 200; i++) {
            int count = i % 7 == 6 ? 1024 : 16, root = i / 20 % check_size;
            MPI_Comm where = i % 5 == 4 ? MPI_COMM_WORLD : comm;
            for (int k = 0; k < 1024; k++)
                sent[k] = got[k] = check_rank * 1000 + i + k;
            MPI_Bcast(sent, count, MPI_INT, root, where);
            MPI_Reduce(sent, got, count, MPI_INT, i / 30 % 2 ? MPI_SUM : MPI_MAX, root, where);
            if (check_rank != root)
                memset(got, 0, sizeof got);
            check_say("repeats", sent, sizeof sent);
            check_say("repeats", got, sizeof got);
        }
        MPI_Comm_free(&comm);
    }
}

static void print_handler(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;
    (void)comm;
    MPI_Error_string(*code, text, &len);
    fprintf(stderr, "handler called: %.60s\n", text);
    fflush(stderr);
}

/* The last rank dies between collectives. */
static void killed(void)
{
    check_sum(MPI_COMM_WORLD, 100);
    if (check_rank == check_size - 1)
        kill(getpid(), SIGKILL);
    check_sum(MPI_COMM_WORLD, 1000000000);
}

static void aborts(void)
{
    check_sum(MPI_COMM_WORLD, 100);
    if (check_rank == check_size - 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    check_sum(MPI_COMM_WORLD, 1000000000);
}

/* Peal finds a mismatch and the program's handler gets it; the program goes on without that
 * communicator. */
static void mismatch(void)
{
    MPI_Errhandler handler;
    int x = 1, y[64], code, again;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(print_handler, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    check_sum(comm, 100);
    code = check_rank == 0 ? MPI_Allgather(&x, 1, MPI_INT, y, 1, MPI_INT, comm)
                           : MPI_Allreduce(&x, y, 1, MPI_INT, MPI_SUM, comm);
    again = MPI_Barrier(comm);
    CHECK(code != MPI_SUCCESS || again != MPI_SUCCESS);
    CHECK(check_sum(MPI_COMM_WORLD, 40) == check_size);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"communicators", many_communicators},
    {"short-lived", short_lived},
    {"short-lived with threads", short_lived},
    {"requests", requests},
    {"inter", intercommunicator},
    {"spawns", spawns},
    {"errors", errors_returned},
    {"threads", threads},
    {"attributes", attributes},
    {"some", some_calls},
    {"repeats", repeats},
    {"killed", killed},
    {"aborts", aborts},
    {"mismatch", mismatch},
};

int main(int argc, char **argv)
{
    int given;
    if (argc > 1 && strstr(argv[1], "threads"))
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    else
        MPI_Init(&argc, &argv);
    check_open();
    for (int a = 1; a < argc; a++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            if (strcmp(argv[a], cases[i].name) == 0)
                cases[i].run();
        }
        printf("rank %d is done with %s\n", check_rank, argv[a]);
    }
    return check_end();
}
