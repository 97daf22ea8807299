/* SPDX-License-Identifier: Apache-2.0 */
/* Two operations on one word of PE 1, and what comes between them: pairs FIRST SECOND BETWEEN. PE 0 makes the first and the last PE
 * the second; shmem/tests/run knows which of them race. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static int word, got, value = 7;

static void act(const char *name)
{
    if (strcmp(name, "put") == 0)
        shmem_int_put(&word, &value, 1, 1);
    else if (strcmp(name, "put_nbi") == 0)
        shmem_int_put_nbi(&word, &value, 1, 1);
    else if (strcmp(name, "iput") == 0)
        shmem_int_iput(&word, &value, 1, 1, 1, 1);
    else if (strcmp(name, "get") == 0)
        shmem_int_get(&got, &word, 1, 1);
    else if (strcmp(name, "get_nbi") == 0)
        shmem_int_get_nbi(&got, &word, 1, 1);
    else if (strcmp(name, "add") == 0)
        shmem_int_atomic_add(&word, 2, 1);
    else if (strcmp(name, "set") == 0)
        shmem_int_atomic_set(&word, 2, 1);
    else if (strcmp(name, "fetch") == 0)
        got = shmem_int_atomic_fetch(&word, 1);
    else if (strcmp(name, "fetch_add") == 0)
        got = shmem_int_atomic_fetch_add(&word, 1, 1);
    else if (strcmp(name, "load") == 0)
        got = word;
    else if (strcmp(name, "store") == 0)
        word = 5;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const char *between = argv[3];
    shmem_init();
    int me = shmem_my_pe();
    shmem_barrier_all();
    if (me == 0)
        act(argv[1]);
    if (strstr(between, "quiet"))
        shmem_quiet();
    if (strstr(between, "fence"))
        shmem_fence();
    if (strstr(between, "sync"))
        shmem_sync_all();
    if (strstr(between, "barrier"))
        shmem_barrier_all();
    if (me == shmem_n_pes() - 1)
        act(argv[2]);
    shmem_barrier_all();
    printf("%d %d\n", word, got);
    shmem_finalize();
    return 0;
}
