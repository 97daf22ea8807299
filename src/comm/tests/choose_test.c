/* SPDX-License-Identifier: Apache-2.0 */
/* peal/choose.h: calls take the algorithms that can be forced or measured, and tables survive being
 * written and read. */
#include "base/tests/unit.h"

#include <peal/choose.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct peal_comm *open_one(void)
{
    struct peal_comm *comm = NULL;
    setenv("PEAL_TUNE_FILE", "/dev/null", 1);
    assert_int_equal(peal_comm_open_threads(1, &comm), PEAL_OK);
    return comm;
}

TEST(every_algorithm_can_be_forced_or_measured)
{
    struct peal_comm *comm = open_one();
    struct peal_algorithm algo = {.struct_size = sizeof algo};
    size_t count = 0;
    for (; peal_algorithm_get(count, &algo) == PEAL_OK; count++) {
        struct peal_chosen chosen = {.struct_size = sizeof chosen};
        assert_int_equal(peal_comm_set_algo(comm, algo.collective, algo.name), PEAL_OK);
        assert_int_equal(
            peal_comm_chosen(comm, algo.collective, 64, PEAL_CHOOSE_SYMMETRIC, &chosen), PEAL_OK);
        assert_string_equal(chosen.algo, algo.name);
        assert_string_equal(chosen.kernel, algo.kernel);
        assert_string_equal(chosen.why, "forced");
        assert_int_equal(peal_comm_set_algo(comm, algo.collective, NULL), PEAL_OK);

        struct peal_tuned rule = {.struct_size = sizeof rule,
                                  .ranks = 1,
                                  .symmetric = 1,
                                  .collective = algo.collective,
                                  .algo = algo.name,
                                  .bytes = 64,
                                  .segment = 4096};
        assert_int_equal(peal_comm_set_tuning(comm, &rule, 1), PEAL_OK);
        assert_int_equal(
            peal_comm_chosen(comm, algo.collective, 64, PEAL_CHOOSE_SYMMETRIC, &chosen), PEAL_OK);
        assert_true(chosen.measured && chosen.segment == 4096);
        assert_string_equal(chosen.algo, algo.name);
        assert_int_equal(
            peal_comm_chosen(comm, algo.collective, 65, PEAL_CHOOSE_SYMMETRIC, &chosen), PEAL_OK);
        assert_false(chosen.measured);
        assert_int_equal(peal_comm_set_tuning(comm, NULL, 0), PEAL_OK);
        assert_true(algo.segments[0] > 0);
    }
    assert_true(count > 20);
    peal_comm_close(comm);
}

TEST(what_does_not_exist_is_refused)
{
    struct peal_comm *comm = open_one();
    struct peal_chosen chosen = {0};
    assert_int_equal(peal_comm_chosen(comm, "allreduc", 8, 0, &chosen), PEAL_INVALID);
    assert_int_equal(peal_comm_chosen(comm, NULL, 8, 0, &chosen), PEAL_INVALID);
    assert_int_equal(peal_comm_chosen(NULL, "allreduce", 8, 0, &chosen), PEAL_INVALID);
    assert_int_equal(peal_comm_chosen(comm, "allreduce", 8, 0, &chosen), PEAL_OK);
    const struct peal_tuned good = {
        .ranks = 1, .collective = "allreduce", .algo = "ring", .bytes = 8, .segment = 64};
    struct peal_tuned rules[5] = {good, good, good, good, good};
    rules[0].algo = "rung";
    rules[1].collective = "allredoce";
    rules[2].ranks = 0;
    rules[3].segment = 0;
    rules[4].algo = NULL;
    for (int i = 0; i < 5; i++)
        assert_int_equal(peal_comm_set_tuning(comm, &rules[i], 1), PEAL_INVALID);
    assert_int_equal(peal_comm_set_tuning(comm, NULL, 1), PEAL_INVALID);
    struct {
        struct peal_tuned rule;
        uint64_t later; /* a member of a later version */
    } newer = {good, 0};
    newer.rule.struct_size = sizeof newer;
    assert_int_equal(peal_comm_set_tuning(comm, &newer.rule, 1), PEAL_OK);
    newer.later = 1;
    assert_int_equal(peal_comm_set_tuning(comm, &newer.rule, 1), PEAL_INVALID);
    assert_non_null(strstr(peal_comm_error(comm), "struct_size"));
    newer.rule.struct_size = 3;
    assert_int_equal(peal_comm_set_tuning(comm, &newer.rule, 1), PEAL_INVALID);
    assert_int_equal(peal_comm_set_tuning(comm, &good, 1), PEAL_OK);
    peal_comm_close(comm);
    assert_int_equal(peal_comm_set_tuning(comm, NULL, 0), PEAL_CLOSED);
}

struct seen {
    char text[512];
    int count;
};

static void add_seen(void *context, const struct peal_tuned *rule)
{
    struct seen *seen = context;
    size_t len = strlen(seen->text);
    snprintf(seen->text + len, sizeof seen->text - len, "%s %d %u %u %llu %s %llu;",
             rule->collective, rule->symmetric, rule->hosts, rule->ranks,
             (unsigned long long)rule->bytes, rule->algo, (unsigned long long)rule->segment);
    seen->count++;
}

TEST(a_table_is_read_as_it_was_written)
{
    char folder[] = "/tmp/peal-choose-XXXXXX", path[64], inner[80];
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/a", folder);
    snprintf(path, sizeof path, "%s/a/tune", folder);
    const struct peal_tuned rules[] = {
        {0, 2, 0, 0, "allreduce", "ring", 4096, 65536},
        {0, 8, 1, 0, "broadcast", "read", UINT64_MAX, 1 << 20},
        {0, 8, 0, 2, "allreduce", "nodes", 8192, 1 << 20},
    };
    struct seen seen = {0};
    peal_tuning_read(path, add_seen, &seen);
    assert_int_equal(seen.count, 0);
    assert_int_equal(peal_tuning_check(path), PEAL_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(peal_tuning_write(path, rules, 3), PEAL_OK);
    peal_tuning_read(path, add_seen, &seen);
    assert_string_equal(seen.text, "allreduce 0 0 2 4096 ring 65536;"
                                   "broadcast 1 0 8 18446744073709551615 read 1048576;"
                                   "allreduce 0 2 8 8192 nodes 1048576;");
    assert_int_equal(peal_tuning_check(inner), PEAL_SYSTEM); /* a folder */
    assert_int_equal(peal_tuning_write("", rules, 2), PEAL_SYSTEM);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
    setenv("PEAL_TUNE_FILE", "/some/where", 1);
    assert_int_equal(peal_tuning_path(path, sizeof path), PEAL_OK);
    assert_string_equal(path, "/some/where");
    assert_int_equal(peal_tuning_path(path, 4), PEAL_INVALID);
}

TEST(launchers_get_names_and_are_told_of_missing_memory)
{
    char a[40], b[40], why[200] = "";
    assert_int_equal(peal_job_name(a, sizeof a), PEAL_OK);
    assert_int_equal(peal_job_name(b, sizeof b), PEAL_OK);
    assert_string_not_equal(a, b);
    assert_int_equal(peal_job_name(a, 8), PEAL_INVALID);
    assert_int_equal(peal_memory_check(1, 1, 0, NULL, 0), PEAL_OK);
    assert_int_equal(peal_memory_check(2, 0, UINT64_MAX, why, sizeof why), PEAL_NO_MEMORY);
    assert_non_null(strstr(why, "available"));
    assert_int_equal(peal_memory_check(0, 0, 0, NULL, 0), PEAL_INVALID);
}

int main(void)
{
    return unit_run();
}
