/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that do not end well, by name, and those whose end says nothing against them; shmem/tests/run
 * knows what peal record says of each. Two PEs. */
#include <pthread.h>
#include <shmem.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long word, other;
static atomic_long counter;

static void *look(void *from)
{
    return *(long *)from ? from : NULL;
}

static void *count(void *from)
{
    return counter++ == 0 ? from : NULL;
}

/* In both PEs. */
static void be_in_parallel(const char *what)
{
    pthread_t thread;
    long local = 1;
    if (strcmp(what, "thread") == 0) {
        pthread_create(&thread, NULL, look, &local);
        pthread_join(thread, NULL);
    } else if (strcmp(what, "atomic") == 0 || strcmp(what, "own atomic") == 0) {
        if (what[0] == 'a')
            shmem_long_atomic_inc((long *)(void *)&counter, 0);
        (void)count(NULL);
    } else if (strcmp(what, "child") == 0 || strcmp(what, "calling child") == 0) {
        pid_t child = fork();
        if (child == 0) {
            if (what[1] == 'a')
                shmem_long_p(&word, 1, 0);
            _exit(0);
        }
        (void)waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long local = 1;
    volatile int forever = 1;
    shmem_init();
    int me = shmem_my_pe();
    if (strcmp(what, "crash") == 0 && me == 1)
        abort();
    if (strcmp(what, "exit") == 0 && me == 1)
        exit(0);
    if (strcmp(what, "silent exit") == 0 && me == 1)
        _exit(0);
    if (strcmp(what, "wait for ever") == 0 && me == 1)
        shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
    while (strcmp(what, "loop for ever") == 0 && me == 1 && forever)
        continue;
    if (strcmp(what, "local") == 0)
        shmem_long_p(&local, 1, 0);
    if (strcmp(what, "global exit") == 0)
        shmem_global_exit(0);
    be_in_parallel(what);
    if (strcmp(what, "code") == 0 && me == 1)
        shmem_long_p(&other, 1, 0);
    long seen = strcmp(what, "code") == 0 && me == 0 ? other : 0;
    shmem_barrier_all();
    shmem_finalize();
    return strcmp(what, "code") == 0 ? 3 + (seen > 1) : 0;
}
