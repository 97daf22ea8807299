/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators that are made from others are cheap: they share descriptors and mappings, need no
 * socket, and take memory when they are used. What is closed by all is given back. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Bytes that this process has mapped, and has in memory. */
static void measure(uint64_t *space, uint64_t *memory)
{
    unsigned long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lu %lu", &pages, &resident) != 2)
        pages = resident = 0;
    if (file)
        fclose(file);
    *space = (uint64_t)pages * 4096;
    *memory = (uint64_t)resident * 4096;
}

/* A sum over a communicator is that of its ranks. */
static int sum_of(struct peal_comm *comm)
{
    int64_t one = 1 + peal_comm_rank(comm), sum = 0, size = peal_comm_size(comm);
    EXPECT(peal_allreduce(comm, &one, &sum, 1, PEAL_I64, PEAL_SUM) == PEAL_OK);
    EXPECT(sum == size * (size + 1) / 2);
    return 0;
}

/* ---- a thousand ---- */

enum { THOUSAND = 1000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LIMITED = 0 }; /* they take terabytes */
#else
enum { LIMITED = 1 };
#endif

static int make_thousand(struct peal_comm *comm, const void *context)
{
    (void)context;
    static struct peal_comm *made[THOUSAND];
    EXPECT(setrlimit(RLIMIT_NOFILE, &(struct rlimit){1024, 1024}) == 0);
    EXPECT(!LIMITED || setrlimit(RLIMIT_AS, &(struct rlimit){1 << 30, 1 << 30}) == 0);
    uint32_t before = children_open_files().files;
    for (int i = 0; i < THOUSAND; i++)
        EXPECT(peal_comm_dup(comm, &made[i]) == PEAL_OK);
    EXPECT(children_open_files().files == before);
    for (int i = 0; i < THOUSAND; i++)
        EXPECT(sum_of(made[i]) == 0);
    for (int i = 0; i < THOUSAND; i++)
        peal_comm_close(made[i]);
    return sum_of(comm);
}

TEST(a_thousand_fit_the_usual_limits)
{
    struct children ranks;
    children_start(&ranks, 16, make_thousand, NULL);
    assert_true(children_finish(&ranks, CHILDREN_NOBODY));
    assert_true(children_left_nothing(ranks.job));
}

/* ---- groups ---- */

/* Halves, pairs and whole ones in turn, kept and used. */
static int make_groups(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { GROUPS = 256 };
    static struct peal_comm *made[GROUPS];
    EXPECT(setrlimit(RLIMIT_NOFILE, &(struct rlimit){1024, 1024}) == 0);
    for (int i = 0; i < GROUPS; i++) {
        int color = (int)peal_comm_rank(comm) >> i % 4;
        EXPECT(peal_comm_split(comm, color, 0, &made[i]) == PEAL_OK);
        EXPECT(peal_comm_size(made[i]) == 1u << i % 4);
    }
    for (int i = 0; i < GROUPS; i++) {
        EXPECT(sum_of(made[i]) == 0);
        peal_comm_close(made[i]);
    }
    return 0;
}

TEST(hundreds_of_groups_fit_too)
{
    assert_true(children_run(8, make_groups, NULL));
}

/* ---- memory ---- */

static int weigh(struct peal_comm *comm, const void *context)
{
    const uint64_t *max_bytes = context;
    enum { SOME = 32 };
    struct peal_comm *made[SOME], *warm;
    uint64_t space, before, after;
    EXPECT(peal_comm_dup(comm, &warm) == PEAL_OK);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    measure(&space, &before);
    uint64_t windows_before = children_open_files().bytes;
    EXPECT(peal_barrier(comm) == PEAL_OK);
    for (int i = 0; i < SOME; i++)
        EXPECT(peal_comm_dup(comm, &made[i]) == PEAL_OK);
    measure(&space, &after);
    uint64_t own = after > before ? after - before : 0;
    uint64_t shared = (children_open_files().bytes - windows_before) / peal_comm_size(comm);
    if (peal_comm_rank(comm) == 0)
        fprintf(stderr,
                "%u ranks: a new communicator takes %llu KiB per rank, %llu of them shared\n",
                peal_comm_size(comm), (unsigned long long)(own + shared) / SOME >> 10,
                (unsigned long long)shared / SOME >> 10);
    EXPECT(!LIMITED || own + shared <= *max_bytes * SOME);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    for (int i = 0; i < SOME; i++)
        peal_comm_close(made[i]);
    peal_comm_close(warm);
    return 0;
}

TEST(what_is_not_used_takes_little_memory)
{
    static const struct {
        uint32_t ranks;
        uint64_t max_bytes;
    } rows[] = {{2, 1 << 20}, {8, 2 << 20}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(children_run(rows[i].ranks, weigh, &rows[i].max_bytes));
    }
}

/* Communicators are made, used in every way and closed repeatedly: slots, memory and addresses are
 * given back. */
static int come_and_go(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { TURNS = 60, WARM = 20, WORDS = 1 << 16 };
    static int32_t x[WORDS], y[WORDS];
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    uint64_t space = 0, memory = 0, windows = 0, space_after, memory_after;
    for (int i = 0; i < TURNS; i++) {
        struct peal_comm *made;
        int32_t word = (int32_t)rank, got = -1;
        void *symmetric;
        EXPECT(peal_comm_dup(comm, &made) == PEAL_OK);
        EXPECT(sum_of(made) == 0);
        for (int w = 0; w < WORDS; w++)
            x[w] = w + (int32_t)rank;
        EXPECT(peal_allreduce(made, x, y, WORDS, PEAL_I32, PEAL_SUM) == PEAL_OK);
        EXPECT(y[7] == (int32_t)(7 * size + size * (size - 1) / 2));
        EXPECT(peal_symmetric_alloc(made, 1 << 20, &symmetric) == PEAL_OK);
        memset(symmetric, 1, 1 << 20);
        struct peal_message out = {
            .data = &word, .bytes = sizeof word, .rank = (rank + 1) % size, .tag = 5};
        struct peal_message in = {
            .data = &got, .bytes = sizeof got, .rank = (rank + size - 1) % size, .tag = 5};
        EXPECT(peal_sendrecv(made, &out, &in) == PEAL_OK);
        EXPECT(got == (int32_t)((rank + size - 1) % size));
        peal_comm_close(made);
        EXPECT(peal_barrier(comm) == PEAL_OK); /* all have closed it */
        if (i == WARM) {
            measure(&space, &memory);
            windows = children_open_files().bytes;
        }
        EXPECT(peal_barrier(comm) == PEAL_OK);
    }
    measure(&space_after, &memory_after);
    EXPECT(children_open_files().bytes <= windows + (256 << 10));
    EXPECT(!LIMITED || space_after <= space + (1 << 20));
    return 0;
}

TEST(what_is_closed_is_given_back)
{
    assert_true(children_run(3, come_and_go, NULL));
}

/* ---- no socket ---- */

/* A rank that cannot open any more files still takes part in splits and shrinks. */
static int split_with_no_descriptor_left(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_comm *half, *whole, *left;
    EXPECT(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}) == 0);
    EXPECT(peal_comm_split(comm, (int)peal_comm_rank(comm) % 2, 0, &half) == PEAL_OK);
    EXPECT(peal_comm_dup(half, &whole) == PEAL_OK);
    EXPECT(sum_of(half) == 0 && sum_of(whole) == 0);
    EXPECT(peal_comm_shrink(comm, &left) == PEAL_OK);
    EXPECT(peal_comm_size(left) == peal_comm_size(comm) && sum_of(left) == 0);
    peal_comm_close(left);
    peal_comm_close(whole);
    peal_comm_close(half);
    return 0;
}

TEST(sub_communicators_need_no_descriptor)
{
    assert_true(children_run(4, split_with_no_descriptor_left, NULL));
}

/* The old one may be closed first. */
static int outlive(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_comm *made, *again;
    EXPECT(peal_comm_dup(comm, &made) == PEAL_OK);
    peal_comm_close(comm);
    EXPECT(sum_of(made) == 0);
    EXPECT(peal_comm_dup(made, &again) == PEAL_OK);
    peal_comm_close(made);
    EXPECT(sum_of(again) == 0);
    peal_comm_close(again);
    return 0;
}

TEST(the_new_outlives_the_old)
{
    assert_true(children_run(3, outlive, NULL));
}

/* ---- twins ---- */

enum { LETTER = 1 << 20 };

/* Rank 0 sends to rank 1 before rank 1 has made the twin; the others never make it. */
static int write_early(struct peal_comm *comm, struct peal_comm *made, int turn)
{
    static int32_t letter[LETTER];
    uint32_t rank = peal_comm_rank(comm);
    struct peal_comm *twin = NULL, *second = NULL;
    struct peal_request *request;
    if (rank == 0) {
        EXPECT(peal_comm_twin(made, &twin) == PEAL_OK);
        EXPECT(peal_comm_twin(made, &second) == PEAL_INVALID);
        EXPECT(peal_comm_size(twin) == peal_comm_size(made));
        for (int32_t i = 0; i < LETTER; i++)
            letter[i] = i + turn;
        EXPECT(peal_isend(twin, letter, sizeof letter, 1, 3, &request) == PEAL_OK);
        EXPECT(peal_request_test(request) == PEAL_PENDING); /* longer than a mailbox */
    }
    EXPECT(peal_barrier(comm) == PEAL_OK);
    if (rank == 0)
        EXPECT(peal_request_wait(request) == PEAL_OK);
    if (rank == 1) {
        memset(letter, 0, sizeof letter);
        EXPECT(peal_comm_twin(made, &twin) == PEAL_OK);
        EXPECT(peal_recv(twin, letter, sizeof letter, 0, 3, NULL, NULL) == PEAL_OK);
        EXPECT(letter[0] == turn && letter[LETTER - 1] == LETTER - 1 + turn);
    }
    peal_comm_close(twin);
    return 0;
}

/* Repeatedly: twins that are never made are given back, too. */
static int make_twins(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { TURNS = 60, WARM = 20 };
    uint64_t windows = 0;
    for (int i = 0; i < TURNS; i++) {
        struct peal_comm *made, *twin;
        EXPECT(peal_comm_split_twin(comm, 0, 0, &made) == PEAL_OK);
        if (i % 2 == 0)
            EXPECT(write_early(comm, made, i) == 0);
        EXPECT(sum_of(made) == 0);
        peal_comm_close(made);
        EXPECT(peal_comm_twin(made, &twin) == PEAL_INVALID);
        EXPECT(peal_barrier(comm) == PEAL_OK); /* all have closed it */
        if (i == WARM)
            windows = children_open_files().bytes;
        EXPECT(peal_barrier(comm) == PEAL_OK);
    }
    EXPECT(children_open_files().bytes <= windows + (256 << 10));
    return 0;
}

TEST(a_twin_is_made_by_each_rank_when_it_needs_it)
{
    struct children ranks;
    children_start(&ranks, 4, make_twins, NULL);
    assert_true(children_finish(&ranks, CHILDREN_NOBODY));
    assert_true(children_left_nothing(ranks.job));
}

/* One rank wants a twin and the others do not: no rank gets a communicator, and the old one still
 * works. */
static int disagree(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_comm *made = NULL;
    for (int i = 0; i < 3; i++) {
        enum peal_status status = peal_comm_rank(comm) == 1
                                      ? peal_comm_split_twin(comm, 0, 0, &made)
                                      : peal_comm_split(comm, 0, 0, &made);
        EXPECT(status == PEAL_MISMATCH && !made);
        EXPECT(strstr(peal_comm_error(comm), "do not agree on a twin"));
    }
    EXPECT(peal_comm_dup(comm, &made) == PEAL_OK);
    EXPECT(peal_comm_twin(made, &made) == PEAL_INVALID);
    peal_comm_close(made);
    return sum_of(comm);
}

TEST(ranks_agree_on_twins)
{
    assert_true(children_run(3, disagree, NULL));
}

/* A rank waits for a peer that has not made its twin: the report says so. A peer that leaves
 * without having made it is noticed. */
static int wait_for_no_one(struct peal_comm *comm, const void *context)
{
    (void)context;
    struct peal_comm *made, *twin;
    int32_t word = 0;
    EXPECT(peal_comm_split_twin(comm, 0, 0, &made) == PEAL_OK);
    if (peal_comm_rank(comm) == 0) {
        EXPECT(peal_comm_twin(made, &twin) == PEAL_OK);
        peal_comm_set_timeout(twin, 100);
        EXPECT(peal_recv(twin, &word, sizeof word, 1, 3, NULL, NULL) == PEAL_TIMEOUT);
        EXPECT(strstr(peal_comm_error(twin), "has not used the communicator yet"));
        peal_comm_close(twin);
    }
    EXPECT(peal_barrier(comm) == PEAL_OK);
    peal_comm_close(made);
    EXPECT(peal_comm_split_twin(comm, 0, 0, &made) == PEAL_OK);
    if (peal_comm_rank(comm) == 1)
        peal_comm_close(made);
    if (peal_comm_rank(comm) == 0) {
        EXPECT(peal_comm_twin(made, &twin) == PEAL_OK);
        EXPECT(peal_recv(twin, &word, sizeof word, 1, 3, NULL, NULL) == PEAL_MISMATCH);
        peal_comm_close(twin);
        peal_comm_close(made);
    }
    return sum_of(comm);
}

TEST(a_rank_without_its_twin_is_reported)
{
    assert_true(children_run(2, wait_for_no_one, NULL));
}

int main(void)
{
    return unit_run();
}
