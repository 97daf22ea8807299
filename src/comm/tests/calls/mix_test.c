/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that take different algorithms, because they force them or have measured different tables:
 * every rank reports a mismatch, and none gets a result. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const algos[] = {"rows",   "small",    "direct",  "central", "grouped",
                                    "relay",  "mesh",     "mesh2",   "ring",    "ring_slot",
                                    "biring", "doubling", "halving", "read"};
enum { ALGOS = sizeof algos / sizeof *algos, MAX_COUNT = 20000 };

struct mix {
    const char *first, *last; /* the algorithm of the last rank, and of all others */
    uint64_t count;
    int calls; /* calls before, with the same algorithm everywhere */
};

static int force_different(struct peal_comm *comm, const void *context)
{
    const struct mix *mix = context;
    static int32_t x[MAX_COUNT], y[MAX_COUNT];
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    const char *own = rank == size - 1 ? mix->last : mix->first;
    for (int i = 0; i < MAX_COUNT; i++)
        x[i] = (int32_t)rank + i;
    for (int k = 0; k < mix->calls; k++) { /* so that both have been used, and have their places */
        EXPECT(peal_comm_set_algo(comm, "allreduce", k % 2 ? mix->first : mix->last) == PEAL_OK);
        EXPECT(peal_allreduce(comm, x, y, mix->count, PEAL_I32, PEAL_SUM) == PEAL_OK);
    }
    EXPECT(peal_comm_set_algo(comm, "allreduce", own) == PEAL_OK);
    enum peal_status status = peal_allreduce(comm, x, y, mix->count, PEAL_I32, PEAL_SUM);
    EXPECT(status == PEAL_MISMATCH || (size > 2 && status == PEAL_CLOSED)); /* at its entry */
    char name[40];
    snprintf(name, sizeof name, "'%s'", mix->first);
    EXPECT(strstr(peal_comm_error(comm), name));
    snprintf(name, sizeof name, "'%s'", mix->last);
    EXPECT(strstr(peal_comm_error(comm), name));
    return 0;
}

TEST(different_algorithms_are_a_mismatch)
{
    for (int a = 0; a < ALGOS; a++) {
        struct mix mix = {.first = algos[a],
                          .last = algos[(a + 1 + a % 5) % ALGOS],
                          .count = a % 2 ? 1 : MAX_COUNT,
                          .calls = a % 3};
        assert_true(children_run(a % 4 == 0 ? 3 : 2, force_different, &mix));
    }
}

static void write_rule(const char *path, const char *rule)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(rule, file);
    fclose(file);
}

/* The table is read when a communicator is opened. */
static int tune_and_call(uint32_t rank, const char *job, const char *const *paths)
{
    setenv("PEAL_TUNE_FILE", paths[rank], 1);
    struct peal_open options = {
        .size = 2, .rank = rank, .job = job, .quiet = 1, .timeout_ms = 600000};
    struct peal_comm *comm;
    if (peal_comm_open(&options, &comm) != PEAL_OK)
        return 1;
    static float x[64], y[64];
    enum peal_status status = peal_allreduce(comm, x, y, 64, PEAL_F32, PEAL_SUM);
    EXPECT(status == PEAL_MISMATCH || status == PEAL_CLOSED);
    EXPECT(strstr(peal_comm_error(comm), "mismatch"));
    peal_comm_close(comm);
    return 0;
}

TEST(different_tables_are_a_mismatch)
{
    static const char *const rules[][2] = {
        {"allreduce private 2 65536 ring 65536\n", "allreduce private 2 65536 rows 65536\n"},
        {"allreduce private 2 65536 small 65536\n", ""},
        {"allreduce private 2 65536 rows 128\n", "allreduce private 2 65536 rows 65536\n"}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char first[] = "/tmp/peal-mix-XXXXXX", second[] = "/tmp/peal-mix-XXXXXX", job[48];
        const char *const paths[2] = {first, second};
        assert_true(close(mkstemp(first)) == 0 && close(mkstemp(second)) == 0);
        write_rule(first, rules[i][0]);
        write_rule(second, rules[i][1]);
        snprintf(job, sizeof job, "mix-%d-%zu", (int)getpid(), i);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(tune_and_call(1, job, paths));
        pid_t other = fork();
        assert_true(other >= 0);
        if (other == 0)
            _exit(tune_and_call(0, job, paths));
        int status[2];
        assert_int_equal(waitpid(pid, &status[0], 0), pid);
        assert_int_equal(waitpid(other, &status[1], 0), other);
        unlink(first);
        unlink(second);
        assert_int_equal(status[0], 0);
        assert_int_equal(status[1], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(different_algorithms_are_a_mismatch),
                                       cmocka_unit_test(different_tables_are_a_mismatch)};
    return cmocka_run_group_tests_name("mix", tests, NULL, NULL);
}
