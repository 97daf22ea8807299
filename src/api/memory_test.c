/* SPDX-License-Identifier: Apache-2.0 */
/* How much shared memory a rank has, whatever it calls: measured at the windows' files. */
#include <peal/peal.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, POOL_KIB = 512, MESSAGE = 4 << 20 };

/* As peal.h states it, in bytes: blocking, non-blocking, messages; and pages for control blocks. */
static const uint64_t bound =
    (4 + 4 * 2) * (POOL_KIB << 10) + RANKS * ((256 << 10) + 8192) + (64 << 10);

/* The windows that this process has: how many, and the memory of the largest. */
static uint64_t largest_window(int *count)
{
    uint64_t most = 0;
    DIR *dir = opendir("/proc/self/fd");
    *count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char path[300], target[64] = "";
        struct stat info;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) <= 0 ||
            strncmp(target, "/memfd:peal ", 12) != 0 || stat(path, &info) != 0)
            continue;
        uint64_t bytes = (uint64_t)info.st_blocks * 512;
        most = bytes > most ? bytes : most;
        ++*count;
    }
    if (dir)
        closedir(dir);
    return most;
}

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n%s\n", __FILE__, __LINE__, #condition,             \
                    peal_comm_error(comm));                                                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* Every collective with every root, blocking and four at once. */
static int call_all(struct peal_comm *comm, char *x, char *y, uint64_t n)
{
    struct peal_request *requests[4];
    for (uint32_t root = 0; root < RANKS; root++) {
        EXPECT(peal_broadcast(comm, x, n, PEAL_F32, root) == PEAL_OK);
        EXPECT(peal_reduce(comm, x, y, n, PEAL_F32, PEAL_SUM, root) == PEAL_OK);
        EXPECT(peal_gather(comm, x, y, n / RANKS, PEAL_F32, root) == PEAL_OK);
        EXPECT(peal_scatter(comm, x, y, n / RANKS, PEAL_F32, root) == PEAL_OK);
    }
    EXPECT(peal_allreduce(comm, x, y, n, PEAL_F32, PEAL_SUM) == PEAL_OK);
    EXPECT(peal_allgather(comm, x, y, n / RANKS, PEAL_F32) == PEAL_OK);
    EXPECT(peal_reduce_scatter(comm, x, y, n / RANKS, PEAL_F32, PEAL_SUM) == PEAL_OK);
    EXPECT(peal_all_to_all(comm, x, y, n / RANKS, PEAL_F32) == PEAL_OK);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    EXPECT(peal_ireduce_scatter(comm, x, y, n / RANKS, PEAL_F32, PEAL_SUM, &requests[0]) ==
           PEAL_OK);
    EXPECT(peal_iall_to_all(comm, x, y + MESSAGE, n / RANKS, PEAL_F32, &requests[1]) == PEAL_OK);
    EXPECT(peal_iallreduce(comm, x, y + 2 * MESSAGE, n, PEAL_F32, PEAL_SUM, &requests[2]) ==
           PEAL_OK);
    EXPECT(peal_ibroadcast(comm, y + 3 * MESSAGE, n, PEAL_F32, 1, &requests[3]) == PEAL_OK);
    for (int i = 0; i < 4; i++)
        EXPECT(peal_request_wait(requests[i]) == PEAL_OK);
    return 0;
}

static int check_rank(struct peal_comm *comm)
{
    char *x = calloc(1, 4 * MESSAGE), *y = calloc(1, 4 * MESSAGE);
    int before, after;
    EXPECT(x && y);
    for (uint64_t bytes = 4; bytes <= MESSAGE; bytes *= 4)
        EXPECT(call_all(comm, x, y, bytes / 4) == 0);
    uint64_t most = largest_window(&before);
    if (peal_comm_rank(comm) == 0)
        printf("%llu KiB, of at most %llu\n", (unsigned long long)most >> 10,
               (unsigned long long)bound >> 10);
    EXPECT(before == RANKS);
    EXPECT(most <= bound);
    /* Communicators that are closed leave nothing. */
    for (int i = 0; i < 20; i++) {
        struct peal_comm *part;
        EXPECT(peal_comm_split(comm, i % 2, 0, &part) == PEAL_OK);
        EXPECT(call_all(part, x, y, 4096) == 0);
        peal_comm_close(part);
    }
    EXPECT(largest_window(&after) <= bound);
    EXPECT(before == after);
    free(x);
    free(y);
    return 0;
}

static void a_window_stays_within_what_is_stated(void **state)
{
    (void)state;
    char job[64], pool[32];
    snprintf(job, sizeof job, "memory-%d", (int)getpid());
    snprintf(pool, sizeof pool, "%dK", POOL_KIB);
    setenv("PEAL_WINDOW_POOL", pool, 1);
    fflush(stdout);
    for (uint32_t r = 0; r < RANKS; r++) {
        if (fork() != 0)
            continue;
        struct peal_open how = {.rank = r, .size = RANKS, .job = job};
        struct peal_comm *comm;
        if (peal_comm_open(&how, &comm) != PEAL_OK) {
            fprintf(stderr, "open: %s\n", peal_comm_error(NULL));
            _exit(1);
        }
        int code = check_rank(comm);
        peal_comm_close(comm);
        fflush(stdout);
        _exit(code);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        int status = -1;
        wait(&status);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_window_stays_within_what_is_stated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
