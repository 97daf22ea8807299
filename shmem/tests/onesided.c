/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of <peal/onesided.h> for peal record, by name; shmem/tests/run knows the verdict of each. Two
 * ranks: 0 sends, 1 receives. */
#include <peal/onesided.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct peal_comm *comm;
static struct memory {
    uint64_t signal, counter;
    uint32_t small;
    int data, more, result;
} * memory;

static void check(enum peal_status status)
{
    if (status != PEAL_OK) {
        fprintf(stderr, "%s: %s\n", peal_status_text(status), peal_comm_error(comm));
        exit(1);
    }
}

static void *put_in_thread(void *unused)
{
    check(peal_put(comm, &memory->more, &(int){3}, sizeof(int), 1));
    return unused;
}

static void send(const char *what)
{
    int local = 7;
    uint64_t old = 0;
    struct peal_request *request = NULL;
    if (strcmp(what, "steer") == 0) {
        check(peal_fetch_add(comm, &memory->counter, 1, 1, &old));
        if (old > 0)
            return;
    }
    if (strcmp(what, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, put_in_thread, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(what, "iput") == 0) {
        check(peal_iput(comm, &memory->data, &local, sizeof local, 1, &request));
        check(peal_request_wait(request));
    } else if (strcmp(what, "put_notify") == 0) {
        check(peal_put(comm, &memory->more, &local, sizeof local, 1));
        check(peal_put_notify(comm, &memory->data, &local, sizeof local, &memory->signal, 1, 1));
    } else {
        check(peal_put(comm, &memory->data, &local, sizeof local, 1));
    }
    if (strcmp(what, "late put") == 0)
        check(peal_notify(comm, &memory->signal, 1, 1));
    if (strcmp(what, "late put") == 0)
        check(peal_put(comm, &memory->data, &local, sizeof local, 1));
    if (strcmp(what, "two puts") == 0 || strcmp(what, "fence") == 0) {
        if (what[0] == 'f')
            check(peal_fence(comm));
        check(peal_put(comm, &memory->data, &(int){8}, sizeof(int), 1));
    }
    if (strcmp(what, "quiet") == 0 || strcmp(what, "swap") == 0)
        check(peal_quiet(comm));
    if (strcmp(what, "notify") == 0)
        check(peal_notify(comm, &memory->signal, 1, 1));
}

static void receive(const char *what)
{
    int got = 0;
    if (strstr(what, "notify") || strcmp(what, "late put") == 0) {
        check(peal_wait_until(comm, &memory->signal, PEAL_GE, 1));
        got = memory->data + memory->more;
    }
    if (strcmp(what, "swap") == 0)
        check(peal_compare_swap32(comm, &memory->small, 0, 5, 0, NULL));
    if (strcmp(what, "steer") == 0)
        check(peal_fetch_add(comm, &memory->counter, 1, 1, NULL));
    if (strcmp(what, "get") == 0)
        check(peal_get(comm, &got, &memory->data, sizeof got, 1));
    memory->result = got;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    void *made;
    check(peal_comm_open(NULL, &comm));
    check(peal_symmetric_alloc(comm, sizeof *memory, &made));
    memory = made;
    if (peal_comm_rank(comm) == 0)
        send(what);
    else
        receive(what);
    if (strcmp(what, "allreduce") == 0)
        check(peal_allreduce(comm, &(float){1}, &(float){0}, 1, PEAL_F32, PEAL_SUM));
    if (strcmp(what, "split") == 0) {
        struct peal_comm *half;
        check(peal_comm_dup(comm, &half));
        check(peal_barrier(half));
        peal_comm_close(half);
    }
    check(peal_barrier(comm));
    if (peal_comm_rank(comm) == 1 && (strcmp(what, "barrier") == 0 || strcmp(what, "quiet") == 0))
        memory->result = memory->data;
    check(peal_symmetric_free(comm, memory));
    peal_comm_close(comm);
    return 0;
}
