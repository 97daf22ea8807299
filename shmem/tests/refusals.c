/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused, by number: shmem/tests/run knows the words. Every PE makes the same mistake. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    static long word;
    long local = 0;
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "early") == 0)
        shmem_barrier_all();
    shmem_init();
    if (strcmp(what, "local") == 0)
        shmem_long_p(&local, 1, 0);
    else if (strcmp(what, "pe") == 0)
        shmem_long_put(&word, &local, 1, shmem_n_pes());
    else if (strcmp(what, "sizes") == 0)
        (void)shmem_malloc(100 + (size_t)shmem_my_pe());
    else if (strcmp(what, "free") == 0)
        shmem_free(&word);
    else if (strcmp(what, "compare") == 0)
        shmem_long_wait_until(&word, 17, 0);
    else if (strcmp(what, "lock") == 0)
        shmem_clear_lock(&word);
    else if (strcmp(what, "set") == 0)
        shmem_barrier(1, 0, shmem_n_pes(), &word);
    else if (strcmp(what, "team") == 0)
        shmem_team_destroy(SHMEM_TEAM_WORLD);
    else if (strcmp(what, "context") == 0)
        shmem_ctx_long_p(SHMEM_CTX_INVALID, &word, 1, 0);
    else if (strcmp(what, "signal") == 0)
        shmem_long_put_signal(&word, &local, 1, (uint64_t *)&word, 1, 7, 0);
    else if (strcmp(what, "exit") == 0 && shmem_my_pe() == 1)
        shmem_global_exit(7);
    else if (strcmp(what, "exit 0") == 0 && shmem_my_pe() == 1)
        shmem_global_exit(0);
    else if (strncmp(what, "exit", 4) == 0)
        shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1); /* which never comes */
    shmem_finalize();
    if (strcmp(what, "late") == 0)
        shmem_barrier_all();
    return 0;
}
