/* SPDX-License-Identifier: Apache-2.0 */
/* Which algorithm a call takes: forced before measured before built-in, if the memory allows it. */
#include "base/tests/unit.h"
#include "run/algorithms/select.h"

#include <string.h>

enum { PRIVATE, READS, IN_PLACE, WRITES, SYMMETRIC }; /* IN_PLACE: and peers read */
enum { KEEPS = 100 };                                 /* with these: the machine keeps writes */
static const struct {
    int line;
    uint32_t collective, ranks, cores;
    uint64_t bytes;
    int memory;
    const char *expected;
} rows[] = {
    /* Peers' memory is reached where that is possible; far above the caches only in place. */
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 1 << 20, READS, "read"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 1 << 20, WRITES, "push"},
    {__LINE__, PEAL_CALL_BROADCAST, 2, 2, 1 << 20, READS, "read"},
    {__LINE__, PEAL_CALL_BROADCAST, 2, 2, 1 << 20, WRITES, "share"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 1 << 20, PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 64 << 20, READS, "rows"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 64 << 20, IN_PLACE, "rows"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 64 << 20, SYMMETRIC, "push"},
    /* Where a shared cache keeps writes, long rings of channels, unless cores are shared. */
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 1 << 20, KEEPS + READS, "direct"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 1 << 20, KEEPS + IN_PLACE, "direct"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 1 << 20, KEEPS + PRIVATE, "direct"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 64 << 20, KEEPS + PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 1, 1 << 20, KEEPS + PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 4, 4, 1 << 20, KEEPS + PRIVATE, "rows"},
    /* Few bytes, more ranks than cores: one rank sums for all, from five ranks on. */
    {__LINE__, PEAL_CALL_ALLREDUCE, 4, 2, 8, READS, "small"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 8, 2, 1024, READS, "central"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 8, 2, 1024, SYMMETRIC, "central"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 8, 8, 1024, READS, "small"},
    /* Groups that share a core, where there are more ranks than cores. */
    {__LINE__, PEAL_CALL_ALLREDUCE, 8, 2, 64 << 10, READS, "grouped"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 8, 8, 64 << 10, PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 8, 2, 2 << 20, READS, "relay"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 8, 8, 2 << 20, PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 8, 2, 2 << 20, SYMMETRIC, "push"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 4, 2, 2 << 20, PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 4, 2, 8 << 20, PRIVATE, "relay"},
    {__LINE__, PEAL_CALL_ALLREDUCE, 4, 2, 32 << 20, PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 2, 2, 64 << 10, READS, "send"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 2, 2, 8 << 20, READS, "read"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 2, 2, 16 << 20, READS, "rows"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 2, 2, 8 << 20, PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 4, 2, 24 << 10, PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 4, 2, 64 << 10, READS, "relay"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 16, 2, 12 << 10, PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 16, 2, 16 << 10, PRIVATE, "relay"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 4, 4, 64 << 10, PRIVATE, "rows"},
    /* Few bytes of many ranks are collected in one window. */
    {__LINE__, PEAL_CALL_ALLGATHER, 16, 2, 8 << 10, READS, "central"},
    {__LINE__, PEAL_CALL_ALLGATHER, 8, 2, 64, READS, "rows"},
    {__LINE__, PEAL_CALL_ALLGATHER, 16, 16, 64, READS, "rows"},
    {__LINE__, PEAL_CALL_REDUCE_SCATTER, 16, 2, 128, READS, "central"},
    {__LINE__, PEAL_CALL_ALL_TO_ALL, 16, 2, 512, READS, "central"},
    {__LINE__, PEAL_CALL_ALL_TO_ALL, 16, 2, 512, PRIVATE, "central"},
    {__LINE__, PEAL_CALL_ALL_TO_ALL, 16, 2, 1024, READS, "rows"},
    {__LINE__, PEAL_CALL_BROADCAST, 4, 2, 2048, READS, "direct"},
    {__LINE__, PEAL_CALL_BROADCAST, 4, 2, 2048, SYMMETRIC, "direct"},
    {__LINE__, PEAL_CALL_BROADCAST, 8, 2, 8, READS, "pipe"},
    /* Between processes, large ones are read. */
    {__LINE__, PEAL_CALL_ALLREDUCE, 2, 2, 512 << 10, READS, "direct"},
    {__LINE__, PEAL_CALL_BROADCAST, 2, 2, 2048, READS, "pipe"},
    {__LINE__, PEAL_CALL_BROADCAST, 2, 2, 8192, READS, "direct"},
    {__LINE__, PEAL_CALL_BROADCAST, 3, 2, 512 << 10, READS, "read"},
    {__LINE__, PEAL_CALL_BROADCAST, 4, 2, 512 << 10, READS, "pipe"},
    {__LINE__, PEAL_CALL_BROADCAST, 4, 2, 1 << 20, READS, "read"},
    {__LINE__, PEAL_CALL_BROADCAST, 4, 2, 1 << 20, PRIVATE, "pipe"},
    /* In one-way calls of few ranks, the sender runs ahead over channels. */
    {__LINE__, PEAL_CALL_BROADCAST, 3, 2, 8192, READS, "direct"},
    {__LINE__, PEAL_CALL_BROADCAST, 4, 2, 8192, SYMMETRIC, "pipe"},
    {__LINE__, PEAL_CALL_GATHER, 4, 2, 8, READS, "send"},
    {__LINE__, PEAL_CALL_GATHER, 3, 2, 1 << 20, PRIVATE, "send"},
    {__LINE__, PEAL_CALL_GATHER, 2, 2, 256, SYMMETRIC, "send"},
    {__LINE__, PEAL_CALL_GATHER, 2, 2, 257, READS, "rows"},
    {__LINE__, PEAL_CALL_GATHER, 2, 2, 64 << 10, READS, "send"},
    {__LINE__, PEAL_CALL_GATHER, 8, 2, 8, READS, "rows"},
    {__LINE__, PEAL_CALL_SCATTER, 4, 2, 128 << 10, PRIVATE, "send"},
    {__LINE__, PEAL_CALL_SCATTER, 4, 2, 256 << 10, PRIVATE, "rows"},
    {__LINE__, PEAL_CALL_SCATTER, 2, 2, 256, READS, "send"},
    {__LINE__, PEAL_CALL_SCATTER, 2, 2, 257, READS, "rows"},
    {__LINE__, PEAL_CALL_SCATTER, 4, 4, 8, READS, "rows"},
    {__LINE__, PEAL_CALL_REDUCE, 3, 2, 8, READS, "direct"},
    {__LINE__, PEAL_CALL_REDUCE, 4, 2, 1 << 20, READS, "direct"},
    {__LINE__, PEAL_CALL_REDUCE, 4, 2, 2 << 20, READS, "rows"},
    {__LINE__, PEAL_CALL_REDUCE, 2, 2, 2048, SYMMETRIC, "direct"},
    {__LINE__, PEAL_CALL_REDUCE, 2, 2, 2049, READS, "mesh"},
    {__LINE__, PEAL_CALL_REDUCE, 2, 2, 32 << 10, READS, "rows"},
    {__LINE__, PEAL_CALL_REDUCE, 2, 2, 1 << 20, READS, "direct"},
    {__LINE__, PEAL_CALL_REDUCE, 8, 2, 64, READS, "mesh"},
    {__LINE__, PEAL_CALL_SCAN, 3, 2, 8, READS, "doubling"},
    {__LINE__, PEAL_CALL_SCAN, 4, 2, 4097, READS, "small"},
    {__LINE__, PEAL_CALL_SCAN, 2, 2, 8, READS, "small"},
    {__LINE__, PEAL_CALL_EXSCAN, 4, 2, 4096, SYMMETRIC, "doubling"},
    {__LINE__, PEAL_CALL_EXSCAN, 8, 2, 8, READS, "small"},
    {__LINE__, PEAL_CALL_BARRIER, 2, 2, 0, PRIVATE, "mesh"},
    {__LINE__, PEAL_CALL_BARRIER, 4, 2, 0, PRIVATE, "central"},
};

TEST(built_in_table)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int memory = rows[i].memory % KEEPS;
        struct peal_wish wish = {.collective = rows[i].collective,
                                 .ranks = rows[i].ranks,
                                 .cores = rows[i].cores,
                                 .keeps_writes = rows[i].memory >= KEEPS,
                                 .bytes = rows[i].bytes,
                                 .symmetric = memory == SYMMETRIC,
                                 .reads = memory >= READS && memory <= WRITES,
                                 .writes = memory == WRITES,
                                 .in_place = memory == IN_PLACE};
        struct peal_choice choice = peal_choose(NULL, NULL, &wish);
        if (!choice.algo || strcmp(choice.algo->name, rows[i].expected) != 0)
            fail_msg("%s:%d: '%s' instead of '%s'", __FILE__, rows[i].line,
                     choice.algo ? choice.algo->name : "nothing", rows[i].expected);
        assert_false(choice.tuned);
    }
}

TEST(forced_before_measured_before_built_in)
{
    const struct peal_algo *ring = peal_algo_find(PEAL_CALL_ALLREDUCE, "ring");
    const struct peal_algo *push = peal_algo_find(PEAL_CALL_ALLREDUCE, "push");
    struct peal_rule rule = {.collective = PEAL_CALL_ALLREDUCE,
                             .ranks = 2,
                             .bytes = 4096,
                             .algo = ring,
                             .segment = 4096};
    struct peal_table_of_rules table = {.rules = &rule, .count = 1};
    struct peal_wish wish = {
        .collective = PEAL_CALL_ALLREDUCE, .ranks = 2, .cores = 2, .bytes = 4096};
    struct peal_choice choice = peal_choose(&table, NULL, &wish);
    assert_ptr_equal(choice.algo, ring);
    assert_true(choice.tuned);
    wish.bytes++; /* beyond the rule */
    assert_false(peal_choose(&table, NULL, &wish).tuned);
    assert_ptr_equal(peal_choose(&table, ring, &wish).algo, ring);
    /* An algorithm in which peers reach private memory is not taken where they cannot. */
    assert_ptr_not_equal(peal_choose(NULL, push, &wish).algo, push);
    wish.reads = true;
    assert_ptr_not_equal(peal_choose(NULL, push, &wish).algo, push);
    wish.writes = true;
    assert_ptr_equal(peal_choose(NULL, push, &wish).algo, push);
}

TEST(measured_between_hosts_counts_between_that_many)
{
    struct peal_rule rule = {.collective = PEAL_CALL_ALLREDUCE,
                             .hosts = 2,
                             .ranks = 4,
                             .bytes = 4096,
                             .algo = peal_algo_find(PEAL_CALL_ALLREDUCE, "nodes"),
                             .segment = 4096};
    struct peal_table_of_rules table = {.rules = &rule, .count = 1};
    struct peal_wish wish = {
        .collective = PEAL_CALL_ALLREDUCE, .ranks = 4, .cores = 4, .bytes = 8, .hosts = 2};
    assert_true(peal_choose(&table, NULL, &wish).tuned);
    assert_string_equal(peal_choose(&table, NULL, &wish).why, "measured between hosts");
    wish.symmetric = true; /* whatever their memory */
    assert_true(peal_choose(&table, NULL, &wish).tuned);
    wish.hosts = 3;
    assert_false(peal_choose(&table, NULL, &wish).tuned);
    wish.hosts = 0;
    assert_false(peal_choose(&table, NULL, &wish).tuned);
    rule.hosts = 0; /* what was measured on one host says nothing about several */
    wish.hosts = 2;
    assert_false(peal_choose(&table, NULL, &wish).tuned);
}

/* Two ranks exchange whole vectors whatever their length; more take all seats from some length on. */
TEST(between_hosts_by_length)
{
    static const struct {
        int line;
        uint32_t collective, ranks;
        uint64_t bytes;
        const char *expected;
    } calls[] = {
        {__LINE__, PEAL_CALL_ALLREDUCE, 2, 16 << 20, "heads"},
        {__LINE__, PEAL_CALL_ALLREDUCE, 4, 64 << 10, "heads"},
        {__LINE__, PEAL_CALL_ALLREDUCE, 4, 128 << 10, "nodes"},
        {__LINE__, PEAL_CALL_BROADCAST, 2, 32 << 10, "heads"},
        {__LINE__, PEAL_CALL_BROADCAST, 2, 64 << 10, "nodes"},
        {__LINE__, PEAL_CALL_BROADCAST, 8, 128 << 10, "heads"},
        {__LINE__, PEAL_CALL_BROADCAST, 8, 1 << 20, "nodes"},
        {__LINE__, PEAL_CALL_ALL_TO_ALL, 8, 16 << 10, "heads"},
        {__LINE__, PEAL_CALL_ALL_TO_ALL, 8, 128 << 10, "nodes"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct peal_wish wish = {.collective = calls[i].collective,
                                 .ranks = calls[i].ranks,
                                 .cores = 2,
                                 .bytes = calls[i].bytes,
                                 .hosts = 2};
        struct peal_choice choice = peal_choose(NULL, NULL, &wish);
        if (strcmp(choice.algo->name, calls[i].expected) != 0)
            fail_msg("%s:%d: '%s' instead of '%s'", __FILE__, calls[i].line, choice.algo->name,
                     calls[i].expected);
    }
}

int main(void)
{
    return unit_run();
}
