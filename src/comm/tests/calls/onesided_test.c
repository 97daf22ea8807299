/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided calls, between processes and between threads: data, order, atomic operations, waits,
 * refusals. */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <peal/onesided.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1 << 16, ROUNDS = 300, MAX_RANKS = 4 };

/* A rank's symmetric memory. */
struct memory {
    uint64_t arrived[MAX_RANKS]; /* signals, by sender */
    uint64_t counter, lock, inside;
    uint32_t counter32, lock32;
    unsigned char boxes[MAX_RANKS][BYTES]; /* by sender */
};

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* In every round each rank writes a random part of its box at every peer, then signals; the
 * receiver knows the generator, and compares with a copy of its own. */
static int exchange(struct peal_comm *comm, struct memory *own, uint64_t base)
{
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    static _Thread_local unsigned char expected[MAX_RANKS][BYTES], data[BYTES], back[BYTES];
    memset(expected, 0, sizeof expected);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (uint32_t to = 0; to < size; to++) {
            uint64_t seed = base + round * 64 + rank * 8 + to;
            uint64_t at = next_random(&seed) % BYTES, len = next_random(&seed) % (BYTES - at);
            memset(data, (int)next_random(&seed) & 0xff, len);
            unsigned char *box = own->boxes[rank] + at;
            struct peal_request *request = NULL;
            if (round % 3 == 0) {
                EXPECT(peal_put(comm, box, data, len, to) == PEAL_OK);
                EXPECT(peal_notify(comm, &own->arrived[rank], 1, to) == PEAL_OK);
            } else if (round % 3 == 1) {
                EXPECT(peal_put_notify(comm, box, data, len, &own->arrived[rank], 1, to) ==
                       PEAL_OK);
            } else {
                EXPECT(peal_iput_notify(comm, box, data, len, &own->arrived[rank], 1, to,
                                        &request) == PEAL_OK);
                EXPECT(peal_request_wait(request) == PEAL_OK);
            }
        }
        for (uint32_t from = 0; from < size; from++) {
            uint64_t seed = base + round * 64 + from * 8 + rank;
            uint64_t at = next_random(&seed) % BYTES, len = next_random(&seed) % (BYTES - at);
            memset(expected[from] + at, (int)next_random(&seed) & 0xff, len);
            EXPECT(peal_wait_until(comm, &own->arrived[from], PEAL_GE, round) == PEAL_OK);
            EXPECT(memcmp(own->boxes[from], expected[from], BYTES) == 0);
        }
        EXPECT(peal_barrier(comm) == PEAL_OK); /* all have compared */
        uint32_t peer = (uint32_t)(round % size);
        EXPECT(peal_get(comm, back, own->boxes[rank], BYTES, peer) == PEAL_OK);
        EXPECT(peer != rank || memcmp(back, expected[rank], BYTES) == 0);
        EXPECT(peal_barrier(comm) == PEAL_OK);
    }
    return 0;
}

/* A counter, and a lock made of compare_swap around two plain words. */
static int contend(struct peal_comm *comm, struct memory *own)
{
    uint32_t size = peal_comm_size(comm), old32 = 0;
    uint64_t old = 0, inside = 0;
    EXPECT(peal_barrier(comm) == PEAL_OK);
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT(peal_fetch_add(comm, &own->counter, 3, 0, i % 2 ? &old : NULL) == PEAL_OK);
        EXPECT(old % 3 == 0);
        EXPECT(peal_fetch_add32(comm, &own->counter32, 1, 0, &old32) == PEAL_OK);
        do
            EXPECT(peal_compare_swap(comm, &own->lock, 0, 1, 0, &old) == PEAL_OK);
        while (old != 0);
        EXPECT(peal_get(comm, &inside, &own->inside, sizeof inside, 0) == PEAL_OK);
        inside++;
        EXPECT(peal_put(comm, &own->inside, &inside, sizeof inside, 0) == PEAL_OK);
        EXPECT(peal_compare_swap(comm, &own->lock, 1, 0, 0, &old) == PEAL_OK && old == 1);
        old = 0;
    }
    EXPECT(peal_compare_swap32(comm, &own->lock32, 7, 1, 0, &old32) == PEAL_OK && old32 == 0);
    EXPECT(peal_quiet(comm) == PEAL_OK && peal_fence(comm) == PEAL_OK);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    EXPECT(peal_get(comm, &old, &own->counter, sizeof old, 0) == PEAL_OK);
    EXPECT(old == (uint64_t)size * ROUNDS * 3);
    EXPECT(peal_get(comm, &old32, &own->counter32, sizeof old32, 0) == PEAL_OK);
    EXPECT(old32 == size * ROUNDS);
    EXPECT(peal_get(comm, &inside, &own->inside, sizeof inside, 0) == PEAL_OK);
    EXPECT(inside == (uint64_t)size * ROUNDS);
    EXPECT(peal_barrier(comm) == PEAL_OK); /* all have read it */
    return 0;
}

/* Both halves of the word are read: no comparison of one signal says that. They may arrive meanwhile, byte by byte, which is
 * what the condition is for: the thread sanitizer must not object. */
__attribute__((no_sanitize("thread"))) static int halves_are_equal(void *context)
{
    volatile uint32_t *halves = context;
    return halves[0] == halves[1];
}

__attribute__((no_sanitize("thread"))) static int wait_for_condition(struct peal_comm *comm,
                                                                     struct memory *own)
{
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm), half = 7;
    own->counter = 7;
    EXPECT(peal_barrier(comm) == PEAL_OK);
    EXPECT(peal_put(comm, (uint32_t *)(void *)&own->counter + 1, &half, sizeof half,
                    (rank + 1) % size) == PEAL_OK);
    EXPECT(peal_wait_for(comm, halves_are_equal, &own->counter, "two halves") == PEAL_OK);
    EXPECT(own->counter == 7 + (UINT64_C(7) << 32));
    EXPECT(peal_wait_for(comm, NULL, NULL, NULL) == PEAL_INVALID);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

static int compare(struct peal_comm *comm, struct memory *own)
{
    own->counter = 5;
    EXPECT(peal_wait_until(comm, &own->counter, PEAL_EQ, 5) == PEAL_OK);
    EXPECT(peal_wait_until(comm, &own->counter, PEAL_NE, 4) == PEAL_OK);
    EXPECT(peal_wait_until(comm, &own->counter, PEAL_GE, 5) == PEAL_OK);
    EXPECT(peal_wait_until(comm, &own->counter, PEAL_GT, 4) == PEAL_OK);
    EXPECT(peal_wait_until(comm, &own->counter, PEAL_LE, 5) == PEAL_OK);
    EXPECT(peal_wait_until(comm, &own->counter, PEAL_LT, 6) == PEAL_OK);
    EXPECT(peal_wait_until(comm, &own->counter, (enum peal_compare)9, 6) == PEAL_INVALID);
    return 0;
}

static int refuse(struct peal_comm *comm, struct memory *own)
{
    char local[64] = {0};
    struct peal_request *request;
    void *freed;
    uint32_t size = peal_comm_size(comm);
    EXPECT(peal_put(comm, local, local, 8, 0) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "not symmetric memory") != NULL);
    EXPECT(peal_put(comm, own, local, sizeof *own * 100, 0) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "past the end") != NULL);
    EXPECT(peal_put(comm, own, NULL, 8, 0) == PEAL_INVALID);
    EXPECT(peal_put(comm, own, local, 8, size) == PEAL_INVALID);
    EXPECT(peal_get(comm, local, own, 8, size + 7) == PEAL_INVALID);
    EXPECT(peal_put(NULL, own, local, 8, 0) == PEAL_INVALID);
    EXPECT(peal_notify(comm, (uint64_t *)(void *)((char *)own + 4), 1, 0) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "not aligned") != NULL);
    EXPECT(peal_iput(comm, own, local, 8, 0, NULL) == PEAL_INVALID);
    EXPECT(peal_iget(comm, local, local, 8, 0, &request) == PEAL_INVALID);
    EXPECT(peal_put(comm, own, NULL, 0, 0) == PEAL_OK);
    EXPECT(peal_symmetric_alloc(comm, 100, &freed) == PEAL_OK);
    EXPECT(peal_symmetric_free(comm, freed) == PEAL_OK);
    EXPECT(peal_put(comm, freed, local, 8, 0) == PEAL_INVALID);
    return 0;
}

static int body(struct peal_comm *comm, const void *context)
{
    struct memory *own;
    EXPECT(peal_symmetric_alloc(comm, sizeof *own, (void **)&own) == PEAL_OK);
    int wrong = exchange(comm, own, *(const uint64_t *)context);
    if (!wrong)
        wrong = contend(comm, own);
    if (!wrong)
        wrong = compare(comm, own);
    if (!wrong)
        wrong = wait_for_condition(comm, own);
    if (!wrong)
        wrong = refuse(comm, own);
    EXPECT(!wrong && peal_barrier(comm) == PEAL_OK);
    return wrong;
}

static uint64_t pick_seed(void)
{
    const char *given = getenv("PEAL_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

TEST(processes_exchange_data_and_signals)
{
    uint64_t seed = pick_seed();
    for (uint32_t ranks = 1; ranks <= MAX_RANKS; ranks++) {
        assert_true(children_run(ranks, body, &seed));
    }
}

struct thread {
    struct peal_comm *comm;
    uint64_t seed;
    int wrong;
};

static void *run_thread(void *context)
{
    struct thread *thread = context;
    thread->wrong = body(thread->comm, &thread->seed);
    peal_comm_close(thread->comm);
    return NULL;
}

TEST(threads_exchange_data_and_signals)
{
    enum { RANKS = 3 };
    struct peal_comm *comms[RANKS];
    pthread_t threads[RANKS];
    struct thread contexts[RANKS];
    uint64_t seed = pick_seed();
    assert_int_equal(peal_comm_open_threads(RANKS, comms), PEAL_OK);
    for (int r = 0; r < RANKS; r++) {
        contexts[r] = (struct thread){comms[r], seed, 1};
        assert_int_equal(pthread_create(&threads[r], NULL, run_thread, &contexts[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(threads[r], NULL);
        assert_int_equal(contexts[r].wrong, 0);
    }
}

/* Rank 1 dies; the others wait for its signal. */
static int lose_peer(struct peal_comm *comm, const void *context)
{
    uint64_t *signal;
    (void)context;
    EXPECT(peal_symmetric_alloc(comm, 64, (void **)&signal) == PEAL_OK);
    /* What it has sent for the allocation must have left it. */
    if (peal_comm_rank(comm) == 1 && peal_wait_until(comm, signal, PEAL_GE, 2) == PEAL_OK)
        raise(SIGKILL);
    EXPECT(peal_notify(comm, signal, 1, 1) == PEAL_OK);
    /* A rank that comes later learns that the communicator is finished. */
    enum peal_status status = peal_wait_until(comm, signal, PEAL_GE, 1);
    EXPECT(status == PEAL_PEER_DEAD || status == PEAL_CLOSED);
    EXPECT(strstr(peal_comm_error(comm), "is dead") != NULL);
    EXPECT(peal_put(comm, signal, signal, 8, 0) == PEAL_CLOSED);
    return 0;
}

static int time_out(struct peal_comm *comm, const void *context)
{
    uint64_t *signal;
    (void)context;
    EXPECT(peal_symmetric_alloc(comm, 64, (void **)&signal) == PEAL_OK);
    EXPECT(peal_notify(comm, signal, 2, peal_comm_rank(comm)) == PEAL_OK);
    children_say_done();
    children_wait_done(2); /* the first time-out is the end of all calls */
    peal_comm_set_timeout(comm, 300);
    enum peal_status status = peal_wait_until(comm, signal, PEAL_GE, 7);
    EXPECT(status == PEAL_TIMEOUT || status == PEAL_CLOSED);
    EXPECT(status == PEAL_CLOSED ||
           strstr(peal_comm_error(comm), "is 2, waiting for >= 7") != NULL);
    return 0;
}

/* Rank 0 waits for ranks that close the communicator. */
static int be_left(struct peal_comm *comm, const void *context)
{
    uint64_t *signal;
    (void)context;
    EXPECT(peal_symmetric_alloc(comm, 64, (void **)&signal) == PEAL_OK);
    if (peal_comm_rank(comm) == 0)
        EXPECT(peal_wait_until(comm, signal, PEAL_NE, 0) == PEAL_MISMATCH);
    return 0;
}

TEST(waits_fail_cleanly)
{
    struct children c;
    children_start(&c, 3, lose_peer, NULL);
    assert_true(children_finish(&c, 1));
    assert_true(children_run(2, time_out, NULL));
    assert_true(children_run(3, be_left, NULL));
}

/* ---- ranks that loop in calls which do not wait ---- */

struct loop {
    struct peal_comm *comm, *self;
    uint64_t *words; /* [0] is set to 0 by rank 1; the others are this rank's to play with */
};

static enum peal_status put_near(const struct loop *loop)
{
    uint64_t x = 1;
    return peal_put(loop->comm, loop->words + 1, &x, 8, 0);
}

static enum peal_status get_near(const struct loop *loop)
{
    uint64_t x;
    return peal_get(loop->comm, &x, loop->words + 1, 8, 0);
}

static enum peal_status notify_near(const struct loop *loop)
{
    return peal_notify(loop->comm, loop->words + 1, 1, 0);
}

static enum peal_status add_near(const struct loop *loop)
{
    return peal_fetch_add(loop->comm, loop->words + 1, 1, 0, NULL);
}

static enum peal_status swap_near(const struct loop *loop)
{
    return peal_compare_swap(loop->comm, loop->words, 77, 78, 0, NULL);
}

static enum peal_status start_near(const struct loop *loop)
{
    struct peal_request *request;
    uint64_t x = 1;
    enum peal_status status = peal_iput(loop->comm, loop->words + 1, &x, 8, 0, &request);
    return status == PEAL_OK ? peal_request_wait(request) : status;
}

static enum peal_status wait_for_nothing(const struct loop *loop)
{
    return peal_wait_until(loop->comm, loop->words + 1, PEAL_GE, 0);
}

static enum peal_status fence(const struct loop *loop)
{
    return peal_fence(loop->comm);
}

static enum peal_status look_for_own_mail(const struct loop *loop)
{
    return peal_iprobe(loop->comm, 0, 1, NULL, NULL); /* it is there */
}

static enum peal_status reduce_alone(const struct loop *loop)
{
    int32_t x = 1;
    return peal_allreduce(loop->self, &x, &x, 1, PEAL_I32, PEAL_SUM);
}

typedef enum peal_status loop_step(const struct loop *loop);
static loop_step *const steps[] = {put_near,          get_near,    notify_near,      add_near,
                                   swap_near,         start_near,  wait_for_nothing, fence,
                                   look_for_own_mail, reduce_alone};

/* Rank 0 loops until rank 1, on another host, has reached it. */
static int loop_in_calls(struct peal_comm *comm, const void *context)
{
    struct loop loop = {.comm = comm};
    struct peal_request *sent;
    char byte = 0;
    (void)context;
    uint32_t rank = peal_comm_rank(comm);
    EXPECT(peal_symmetric_alloc(comm, 64, (void **)&loop.words) == PEAL_OK);
    EXPECT(peal_comm_split(comm, (int)rank, 0, &loop.self) == PEAL_OK);
    EXPECT(rank != 0 || peal_isend(comm, &byte, 1, 0, 1, &sent) == PEAL_OK);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)loop.words;
        /* Relaxed: the barrier is between it and the notify, which is the partner of the load. */
        atomic_store_explicit(word, 1, memory_order_relaxed);
        EXPECT(peal_barrier(comm) == PEAL_OK);
        while (rank == 0 && atomic_load_explicit(word, memory_order_acquire) == 1)
            EXPECT(steps[i](&loop) == PEAL_OK);
        EXPECT(rank == 0 || peal_notify(comm, loop.words, UINT64_MAX, 0) == PEAL_OK);
        EXPECT(rank == 0 || peal_quiet(comm) == PEAL_OK);
        EXPECT(peal_barrier(comm) == PEAL_OK);
    }
    EXPECT(rank != 0 || peal_recv(comm, &byte, 1, 0, 1, NULL, NULL) == PEAL_OK);
    EXPECT(rank != 0 || peal_request_wait(sent) == PEAL_OK);
    peal_comm_close(loop.self);
    return 0;
}

TEST(a_rank_that_loops_in_calls_is_reached)
{
    assert_true(children_run(2, loop_in_calls, NULL));
}

/* ---- requests ---- */

enum {
    LONG = 8 << 20,
    GETS = 200
}; /* more bytes than sockets hold, more gets than one peer answers at once */

static bool is_filled(const uint8_t *bytes, size_t len, uint8_t value)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != value)
            return false;
    }
    return true;
}

/* Rank 1 comes to no call before rank 0 has started everything; then all of it is there, in order. */
static int start_all(struct peal_comm *comm, const void *context)
{
    (void)context;
    uint8_t *remote, *own = malloc(LONG);
    uint64_t *signals, got[GETS];
    struct peal_request *requests[GETS + 4];
    size_t count = 0;
    uint32_t rank = peal_comm_rank(comm);
    EXPECT(peal_symmetric_alloc(comm, 2 * LONG, (void **)&remote) == PEAL_OK);
    EXPECT(peal_symmetric_alloc(comm, 64, (void **)&signals) == PEAL_OK);
    memset(own, 7, LONG);
    memset(remote, rank == 1 ? 3 : 0, 2 * LONG);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    if (rank == 1) {
        children_wait_done(1);
        EXPECT(peal_wait_until(comm, signals, PEAL_GE, 3) == PEAL_OK);
        EXPECT(is_filled(remote, LONG, 7) && is_filled(remote + LONG, 100, 7));
        EXPECT(is_filled(remote + LONG + 100, LONG - 100, 3));
    } else {
        for (; count < GETS; count++)
            EXPECT(peal_iget(comm, &got[count], remote + LONG + 200, 8, 1, &requests[count]) ==
                   PEAL_OK);
        EXPECT(peal_iput(comm, remote, own, LONG, 1, &requests[count++]) == PEAL_OK);
        EXPECT(peal_iput_notify(comm, remote + LONG, own, 100, signals, 1, 1, &requests[count++]) ==
               PEAL_OK);
        EXPECT(peal_iput_notify(comm, NULL, NULL, 0, signals, 1, 1, &requests[count++]) == PEAL_OK);
        children_say_done();
        EXPECT(peal_notify(comm, signals, 1, 1) == PEAL_OK);
        EXPECT(peal_quiet(comm) == PEAL_OK);
        EXPECT(peal_request_wait_all(requests, count, NULL) == PEAL_OK);
        EXPECT(is_filled((const uint8_t *)got, sizeof got, 3));
    }
    EXPECT(peal_barrier(comm) == PEAL_OK);
    free(own);
    return 0;
}

/* What is under way ends with the communicator, or because the target dies. */
static int drop_requests(struct peal_comm *comm, const void *context)
{
    const bool dies = *(const bool *)context;
    uint8_t *remote, *own = calloc(1, LONG);
    struct peal_request *put, *get;
    EXPECT(peal_symmetric_alloc(comm, LONG, (void **)&remote) == PEAL_OK);
    EXPECT(peal_barrier(comm) == PEAL_OK);
    if (peal_comm_rank(comm) == 1) {
        children_wait_done(1);
        if (dies)
            raise(SIGKILL);
        children_wait_done(2);
        return 0;
    }
    EXPECT(peal_iput(comm, remote, own, LONG, 1, &put) == PEAL_OK);
    EXPECT(peal_iget(comm, own, remote, 8, 1, &get) == PEAL_OK);
    children_say_done();
    if (dies) {
        enum peal_status got = peal_request_wait(get), was_put = peal_request_wait(put);
        EXPECT(got == PEAL_PEER_DEAD || got == PEAL_OK); /* on one host it was done at once */
        /* A put is done when its bytes have left, which they may have before the target died. */
        EXPECT(was_put == PEAL_OK || (was_put == PEAL_PEER_DEAD && got == PEAL_PEER_DEAD));
        free(own);
        return 0;
    }
    peal_comm_close(comm);
    enum peal_status status = peal_request_wait(put);
    bool right = status == PEAL_CLOSED || status == PEAL_OK;
    status = peal_request_wait(get);
    right = right && (status == PEAL_CLOSED || status == PEAL_OK);
    children_say_done();
    free(own);
    _exit(right ? 0 : 1); /* the communicator is closed already */
}

TEST(starting_a_request_waits_for_no_rank)
{
    assert_true(children_run(2, start_all, NULL));
}

TEST(requests_under_way_end_with_the_communicator)
{
    bool dies = false;
    assert_true(children_run(2, drop_requests, &dies));
    struct children c;
    dies = true;
    children_start(&c, 2, drop_requests, &dies);
    assert_true(children_finish(&c, 1));
}

/* Rank 0 never comes to the barrier. */
static int be_reported(struct peal_comm *comm, const void *context)
{
    uint64_t *words;
    (void)context;
    EXPECT(peal_symmetric_alloc(comm, 64, (void **)&words) == PEAL_OK);
    enum peal_status status = PEAL_OK;
    while (peal_comm_rank(comm) == 0 && status == PEAL_OK)
        status = peal_compare_swap(comm, words, 1, 2, 0, NULL);
    if (peal_comm_rank(comm) == 0)
        return status != PEAL_CLOSED;
    peal_comm_set_timeout(comm, 1000);
    EXPECT(peal_barrier(comm) == PEAL_TIMEOUT);
    /* Over a bad network the answer may not come in time. */
    bool silent = strstr(peal_comm_error(comm), "has not answered") != NULL;
    EXPECT(silent || strstr(peal_comm_error(comm), "making one-sided calls (") != NULL);
    EXPECT(silent || strstr(peal_comm_error(comm), "'compare_swap')") != NULL);
    return 0;
}

TEST(reports_say_that_a_rank_makes_onesided_calls)
{
    assert_true(children_run(2, be_reported, NULL));
}

/* Rank 0 waits for a word that no rank writes, and never comes to the barrier. */
static int wait_for_a_word(struct peal_comm *comm, const void *context)
{
    uint64_t *word;
    (void)context;
    EXPECT(peal_symmetric_alloc(comm, 64, (void **)&word) == PEAL_OK);
    *word = 0;
    if (peal_comm_rank(comm) == 0)
        return peal_wait_until(comm, word, PEAL_GE, 1) == PEAL_OK;
    peal_comm_set_timeout(comm, 1000);
    EXPECT(peal_barrier(comm) == PEAL_TIMEOUT);
    bool silent = strstr(peal_comm_error(comm), "has not answered") != NULL;
    EXPECT(silent || strstr(peal_comm_error(comm), "in a one-sided call: ") != NULL);
    return 0;
}

TEST(reports_name_the_wait_of_a_onesided_call)
{
    assert_true(children_run(2, wait_for_a_word, NULL));
}

int main(void)
{
    return unit_run();
}
