/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance suite of transports: every member behaves as net.h says.
 * What a
 * member cannot do at all on this machine is skipped, with a message.
 */
#include "run/net/tests/pair.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- tests ---- */

static void puts_arrive_before_their_signal(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    static const uint64_t sizes[] = {0,    1,    8,     40,     464,    465,     2047,
                                     2048, 2049, 70000, 262144, 262145, 5u << 20};
    uint8_t *source = malloc(BYTES);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct peal_net_token token = {0};
        peal_pair_fill(source, sizes[i], (uint32_t)i);
        const struct peal_net_part part = {source, sizes[i]};
        const struct peal_net_put put = {.rank = 1,
                                         .segment = SEGMENT,
                                         .offset = 100,
                                         .parts = &part,
                                         .nparts = 1,
                                         .signal = {CELLS, PEAL_NET_SET, 8, i + 1}};
        TAKEN(pair, peal_net_put(pair->nets[0], &put, &token));
        UNTIL(pair, peal_pair_cell(pair, 1, 1) == i + 1);
        assert_memory_equal(pair->memory[1] + 100, source, sizes[i]);
        UNTIL(pair, peal_net_token_is_done(&token));
        assert_int_equal(peal_net_token_status(&token), PEAL_OK);
    }
    free(source);
}

/* Alone it is sent in progress; otherwise it arrives before anything that is sent after it. */
static void signals_may_leave_later(void **state)
{
    enum { COUNT = 200 };
    struct peal_rank_pair *pair = peal_pair_ready(state);
    uint8_t source[5000];
    for (uint64_t i = 1; i <= COUNT; i++) {
        const struct peal_net_signal signal = {CELLS, PEAL_NET_SET, 8, i};
        const struct peal_net_part part = {source, i * 25};
        const struct peal_net_put put = {.rank = 1,
                                         .segment = SEGMENT,
                                         .parts = &part,
                                         .nparts = 1,
                                         .signal = {CELLS, PEAL_NET_SET, 16, i}};
        struct peal_net_token token = {0};
        peal_pair_fill(source, part.bytes, (uint32_t)i);
        TAKEN(pair, peal_net_signal_later(pair->nets[0], 1, &signal));
        if (i % 3 == 0) {
            UNTIL(pair, peal_pair_cell(pair, 1, 1) == i);
            continue;
        }
        TAKEN(pair, peal_net_put(pair->nets[0], &put, &token));
        UNTIL(pair, peal_pair_cell(pair, 1, 2) == i);
        assert_int_equal(peal_pair_cell(pair, 1, 1), i);
        assert_memory_equal(pair->memory[1], source, part.bytes);
        UNTIL(pair, peal_net_token_is_done(&token));
    }
}

static void parts_are_gathered(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    uint8_t *source = malloc(600000);
    struct peal_net_token token = {0};
    peal_pair_fill(source, 600000, 5);
    static const uint64_t scales[] = {1, 100, 10000, 50000}; /* the last: chunks end within parts */
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        uint64_t scale = scales[i];
        const struct peal_net_part parts[] = {{source, 3 * scale},
                                              {source + 100000, 0},
                                              {source + 200000, 7 * scale},
                                              {source, scale}};
        const struct peal_net_put put = {.rank = 0,
                                         .segment = SEGMENT,
                                         .offset = 0,
                                         .parts = parts,
                                         .nparts = 4,
                                         .signal = {CELLS, PEAL_NET_ADD, 16, 1}};
        uint64_t before = peal_pair_cell(pair, 0, 2);
        TAKEN(pair, peal_net_put(pair->nets[1], &put, &token));
        UNTIL(pair, peal_pair_cell(pair, 0, 2) == before + 1 && peal_net_token_is_done(&token));
        assert_memory_equal(pair->memory[0], source, 3 * scale);
        assert_memory_equal(pair->memory[0] + 3 * scale, source + 200000, 7 * scale);
        assert_memory_equal(pair->memory[0] + 10 * scale, source, scale);
    }
    free(source);
}

static void gets_bring_what_is_there(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    static const uint64_t sizes[] = {0, 1, 4096, 262145, 5u << 20};
    uint8_t *to = malloc(BYTES);
    peal_pair_fill(pair->memory[1], BYTES, 9);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct peal_net_token token = {0};
        memset(to, 0, BYTES);
        const struct peal_net_get get = {1, SEGMENT, 64, sizes[i], to};
        TAKEN(pair, peal_net_get(pair->nets[0], &get, &token));
        UNTIL(pair, peal_net_token_is_done(&token));
        assert_int_equal(peal_net_token_status(&token), PEAL_OK);
        assert_memory_equal(to, pair->memory[1] + 64, sizes[i]);
        assert_int_equal(to[sizes[i]], 0);
    }
    free(to);
}

static void gets_see_earlier_puts(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    for (uint32_t i = 0; i < 200; i++) {
        struct peal_net_token token = {0};
        uint32_t value = i * 77, got = 0;
        const struct peal_net_part part = {&value, sizeof value};
        const struct peal_net_put put = {
            .rank = 1, .segment = SEGMENT, .offset = 4 * i, .parts = &part, .nparts = 1};
        const struct peal_net_get get = {1, SEGMENT, 4 * i, sizeof got, &got};
        TAKEN(pair, peal_net_put(pair->nets[0], &put, NULL));
        TAKEN(pair, peal_net_get(pair->nets[0], &get, &token));
        UNTIL(pair, peal_net_token_is_done(&token));
        assert_int_equal(got, value);
    }
}

static void accumulates_are_the_owners_work(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    static const uint64_t counts[] = {1, 512, 513, 70000};
    uint32_t *add = malloc(70000 * 4);
    uint32_t *sum = (uint32_t *)(void *)pair->memory[1];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct peal_net_token token = {0};
        uint64_t count = counts[i];
        for (uint64_t k = 0; k < count; k++) {
            add[k] = (uint32_t)k;
            sum[k] = 1000;
        }
        const struct peal_net_accumulate accumulate = {.rank = 1,
                                                       .segment = SEGMENT,
                                                       .from = add,
                                                       .bytes = count * 4,
                                                       .element = 4,
                                                       .fn = 3,
                                                       .signal = {CELLS, PEAL_NET_SET, 0, i + 1}};
        TAKEN(pair, peal_net_accumulate(pair->nets[0], &accumulate, &token));
        UNTIL(pair, peal_pair_cell(pair, 1, 0) == i + 1 && peal_net_token_is_done(&token));
        for (uint64_t k = 0; k < count; k++)
            assert_int_equal(sum[k], 1000 + 3 * k);
    }
    free(add);
}

static void atomics_return_the_former_value(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    struct peal_net_token token = {0};
    uint64_t old = 99;
    const struct peal_net_atomic rows[] = {
        {1, CELLS, 24, PEAL_NET_FETCH_ADD, 8, 5, 0, &old},
        {1, CELLS, 24, PEAL_NET_COMPARE_SWAP, 8, 70, 4, &old},
        {1, CELLS, 24, PEAL_NET_COMPARE_SWAP, 8, 70, 5, &old},
        {1, CELLS, 24, PEAL_NET_SWAP, 8, UINT64_MAX, 0, &old},
        {1, CELLS, 28, PEAL_NET_FETCH_ADD, 4, 1, 0, &old},
        {1, CELLS, 24, PEAL_NET_COMPARE_SWAP, 4, 3, UINT32_MAX, &old},
    };
    static const uint64_t olds[] = {0, 5, 5, 70, UINT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TAKEN(pair, peal_net_atomic(pair->nets[0], &rows[i], &token));
        UNTIL(pair, peal_net_token_is_done(&token));
        assert_int_equal(peal_net_token_status(&token), PEAL_OK);
        assert_int_equal(old, olds[i]);
    }
    assert_int_equal(peal_pair_cell(pair, 1, 3), 3);
}

static void messages_arrive_whole(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    static const uint64_t sizes[] = {0, 1, 3000, PEAL_NET_CONTROL_MAX, PEAL_NET_POST_MAX};
    uint8_t *bytes = malloc(PEAL_NET_POST_MAX);
    struct peal_arrivals *arrivals = &pair->arrivals[1];
    peal_pair_fill(bytes, PEAL_NET_POST_MAX, 3);
    for (uint32_t i = 0; i < 5; i++) {
        const struct peal_net_part parts[] = {{bytes, sizes[i] / 3},
                                              {bytes + sizes[i] / 3, sizes[i] - sizes[i] / 3}};
        TAKEN(pair, peal_net_post(pair->nets[0], 1, 40 + i, parts, 2));
        UNTIL(pair, arrivals->posts == i + 1);
        assert_int_equal(arrivals->kind, 40 + i);
        assert_int_equal(arrivals->len, sizes[i]);
        assert_memory_equal(arrivals->bytes, bytes, sizes[i]);
        if (sizes[i] > PEAL_NET_CONTROL_MAX)
            continue;
        TAKEN(pair, peal_net_control(pair->nets[0], 1, 90 + i, bytes, sizes[i]));
        UNTIL(pair, arrivals->controls == i + 1);
        assert_int_equal(arrivals->kind, 90 + i);
        assert_int_equal(arrivals->len, sizes[i]);
        assert_memory_equal(arrivals->bytes, bytes, sizes[i]);
    }
    assert_int_equal(peal_net_control(pair->nets[0], 1, 0, bytes, PEAL_NET_CONTROL_MAX + 1),
                     PEAL_INVALID);
    free(bytes);
}

static void tickets_say_that_all_has_arrived(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    uint8_t *source = malloc(BYTES);
    for (uint32_t i = 1; i <= 20; i++) {
        struct peal_net_token token = {0};
        uint64_t ticket, bytes = 200000 * (i % 3) + i;
        peal_pair_fill(source, bytes, i);
        const struct peal_net_part part = {source, bytes};
        const struct peal_net_put put = {
            .rank = 1, .segment = SEGMENT, .parts = &part, .nparts = 1};
        TAKEN(pair, peal_net_put(pair->nets[0], &put, &token));
        TAKEN(pair, peal_net_ticket(pair->nets[0], 1, &ticket));
        UNTIL(pair, peal_net_flushed(pair->nets[0], 1, ticket));
        assert_memory_equal(pair->memory[1], source, bytes);
        UNTIL(pair, peal_net_token_is_done(&token));
    }
    free(source);
}

static void absent_segments_are_refused(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    struct peal_net_token token = {0};
    uint64_t ticket, word = 5, old = 1;
    const struct peal_net_part part = {&word, sizeof word};
    const uint32_t newer = peal_net_segment(SEGMENT, 1);
    const struct peal_net_put put = {.rank = 1,
                                     .segment = newer,
                                     .parts = &part,
                                     .nparts = 1,
                                     .signal = {CELLS, PEAL_NET_SET, 0, 1}};
    TAKEN(pair, peal_net_put(pair->nets[0], &put, NULL));
    TAKEN(pair, peal_net_ticket(pair->nets[0], 1, &ticket));
    UNTIL(pair, peal_net_flushed(pair->nets[0], 1, ticket));
    assert_int_equal(peal_net_refused(pair->nets[0], 1), 1);
    assert_int_equal(peal_pair_cell(pair, 1, 0), 0);
    const struct peal_net_get get = {1, newer, 0, 8, &old};
    TAKEN(pair, peal_net_get(pair->nets[0], &get, &token));
    UNTIL(pair, peal_net_token_is_done(&token));
    assert_int_equal(peal_net_token_status(&token), PEAL_INVALID);
    assert_int_equal(old, 1);
    token = (struct peal_net_token){0};
    const struct peal_net_atomic atomic = {1, newer, 0, PEAL_NET_SWAP, 8, 1, 0, &old};
    TAKEN(pair, peal_net_atomic(pair->nets[0], &atomic, &token));
    UNTIL(pair, peal_net_token_is_done(&token));
    assert_int_equal(peal_net_token_status(&token), PEAL_INVALID);
    /* Once the segment is exposed it works, and the pair is intact. */
    assert_int_equal(peal_net_expose(pair->nets[1], newer, pair->memory[1], 8), PEAL_OK);
    TAKEN(pair, peal_net_put(pair->nets[0], &put, NULL));
    UNTIL(pair, peal_pair_cell(pair, 1, 0) == 1);
    assert_int_equal(*(uint64_t *)(void *)pair->memory[1], 5);
}

static void wrong_arguments_are_refused(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    uint8_t byte[8] = {0};
    uint64_t old;
    struct peal_net_token token = {0};
    const struct peal_net_part large = {pair->memory[0], PEAL_NET_EAGER + 1};
    struct peal_net_put put = {.rank = 1, .segment = SEGMENT, .parts = &large, .nparts = 1};
    const struct peal_net_signal signal = {CELLS, PEAL_NET_SET, 0, 1};
    TAKEN(pair, peal_net_signal(pair->nets[0], 1, &signal));
    assert_int_equal(peal_net_put(pair->nets[0], &put, NULL), PEAL_INVALID);
    put.rank = RANKS;
    assert_int_equal(peal_net_put(pair->nets[0], &put, &token), PEAL_INVALID);
    put.rank = 0;
    assert_int_equal(peal_net_put(pair->nets[0], &put, &token), PEAL_INVALID);
    const struct peal_net_get get = {1, SEGMENT, 0, 8, byte};
    assert_int_equal(peal_net_get(pair->nets[0], &get, NULL), PEAL_INVALID);
    const struct peal_net_atomic atomic = {1, CELLS, 4, PEAL_NET_SWAP, 8, 1, 0, &old};
    assert_int_equal(peal_net_atomic(pair->nets[0], &atomic, &token), PEAL_INVALID);
    assert_int_equal(peal_net_expose(pair->nets[0], PEAL_NET_SEGMENTS, byte, 8), PEAL_INVALID);
}

/* Nothing is received meanwhile: the sender must say when it can take no more, and lose nothing. */
static void a_full_queue_is_pending(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    enum { MAX_PUTS = 200000 };
    struct peal_net_signal signal = {CELLS, PEAL_NET_SET, 0, 0};
    uint8_t bytes[1500];
    uint32_t taken = 0;
    peal_pair_fill(bytes, sizeof bytes, 1);
    TAKEN(pair, peal_net_signal(pair->nets[0], 1, &signal));
    for (; taken < MAX_PUTS; taken++) {
        const struct peal_net_part part = {bytes, sizeof bytes};
        const struct peal_net_put put = {.rank = 1,
                                         .segment = SEGMENT,
                                         .parts = &part,
                                         .nparts = 1,
                                         .signal = {CELLS, PEAL_NET_ADD, 8, 1}};
        enum peal_status status = peal_net_put(pair->nets[0], &put, NULL);
        if (status == PEAL_PENDING)
            break;
        assert_int_equal(status, PEAL_OK);
    }
    UNTIL(pair, peal_pair_cell(pair, 1, 1) == taken);
    assert_memory_equal(pair->memory[1], bytes, sizeof bytes);
}

/* A put that is half received when its segment is retracted touches nothing afterwards. */
static void retracted_memory_is_not_touched(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    struct peal_net_token token = {0};
    uint8_t *source = malloc(BYTES);
    memset(source, 0xee, BYTES);
    const struct peal_net_part part = {source, BYTES};
    const struct peal_net_put put = {.rank = 1,
                                     .segment = SEGMENT,
                                     .parts = &part,
                                     .nparts = 1,
                                     .signal = {CELLS, PEAL_NET_SET, 0, 1}};
    const struct peal_net_signal after = {CELLS, PEAL_NET_SET, 8, 1};
    TAKEN(pair, peal_net_put(pair->nets[0], &put, &token));
    (void)peal_net_progress(pair->nets[1]);
    peal_net_retract(pair->nets[1], SEGMENT);
    uint8_t *copy = malloc(BYTES);
    memcpy(copy, pair->memory[1], BYTES);
    TAKEN(pair, peal_net_signal(pair->nets[0], 1, &after));
    UNTIL(pair, peal_pair_cell(pair, 1, 1) == 1);
    assert_memory_equal(copy, pair->memory[1], BYTES);
    bool arrived = copy[BYTES - 1] == 0xee;
    assert_int_equal(peal_pair_cell(pair, 1, 0), arrived);
    free(source);
    free(copy);
}

/* Gets whose segment is retracted while their answers are under way, at any moment, bring what was there or an error. */
static void a_get_of_retracted_memory_is_right_or_refused(void **state)
{
    enum { GETS = 24, EACH = 200000, TURNS = 8 };
    struct peal_rank_pair *pair = peal_pair_ready(state);
    /* UCX waits in retract until its peer has taken the answers. */
    if (strncmp(pair->transport, "ucx", 3) == 0)
        skip();
    uint8_t *to = malloc((size_t)GETS * EACH), *was = malloc((size_t)GETS * EACH);
    peal_pair_fill(was, (size_t)GETS * EACH, 3);
    for (int turns = 0; turns < TURNS; turns++) {
        struct peal_net_token tokens[GETS] = {0};
        memcpy(pair->memory[1], was, (size_t)GETS * EACH);
        assert_int_equal(peal_net_expose(pair->nets[1], SEGMENT, pair->memory[1], BYTES), PEAL_OK);
        for (uint32_t i = 0; i < GETS; i++) {
            uint64_t at = (uint64_t)i * EACH;
            const struct peal_net_get get = {1, SEGMENT, at, EACH, to + at};
            TAKEN(pair, peal_net_get(pair->nets[0], &get, &tokens[i]));
        }
        for (int i = 0; i < turns; i++)
            (void)peal_net_progress(pair->nets[1]);
        peal_net_retract(pair->nets[1], SEGMENT);
        memset(pair->memory[1], 0xdd, BYTES);
        for (uint32_t i = 0; i < GETS; i++) {
            UNTIL(pair, peal_net_token_is_done(&tokens[i]));
            enum peal_status status = peal_net_token_status(&tokens[i]);
            assert_true(status == PEAL_OK || status == PEAL_INVALID);
            if (status == PEAL_OK)
                assert_memory_equal(to + (size_t)i * EACH, was + (size_t)i * EACH, EACH);
        }
    }
    free(to);
    free(was);
}

/* Puts that are given up while they are under way, at any moment: where the signal arrives, the data has. */
static void a_released_put_is_not_announced_without_its_data(void **state)
{
    enum { PUTS = 24, EACH = 200000, TURNS = 8 };
    struct peal_rank_pair *pair = peal_pair_ready(state);
    if (strncmp(pair->transport, "ucx", 3) == 0)
        skip();
    uint8_t *from = malloc((size_t)PUTS * EACH), *was = malloc((size_t)PUTS * EACH);
    peal_pair_fill(was, (size_t)PUTS * EACH, 4);
    for (uint64_t turns = 1; turns <= TURNS; turns++) {
        struct peal_net_token token = {0};
        const struct peal_net_signal after = {CELLS, PEAL_NET_SET, 8 * PUTS, turns};
        memcpy(from, was, (size_t)PUTS * EACH);
        memset(pair->memory[1], 0, BYTES);
        for (uint32_t i = 0; i < PUTS; i++) {
            uint64_t at = (uint64_t)i * EACH;
            const struct peal_net_part parts[] = {{from + at, 1000},
                                                  {from + at + 1000, EACH - 1000}};
            const struct peal_net_put put = {.rank = 1,
                                             .segment = SEGMENT,
                                             .offset = at,
                                             .parts = parts,
                                             .nparts = 2,
                                             .signal = {CELLS, PEAL_NET_SET, 8 * i, turns}};
            TAKEN(pair, peal_net_put(pair->nets[0], &put, &token));
        }
        for (uint64_t i = 1; i < turns; i++)
            (void)peal_net_progress(pair->nets[0]);
        peal_net_release(pair->nets[0], &token);
        memset(from, 0xdd, (size_t)PUTS * EACH);
        TAKEN(pair, peal_net_signal(pair->nets[0], 1, &after));
        UNTIL(pair, peal_pair_cell(pair, 1, PUTS) == turns);
        for (uint32_t i = 0; i < PUTS; i++) {
            if (peal_pair_cell(pair, 1, i) == turns)
                assert_memory_equal(pair->memory[1] + (size_t)i * EACH, was + (size_t)i * EACH,
                                    EACH);
        }
    }
    free(from);
    free(was);
}

static void what_is_released_is_not_touched(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    struct peal_net_token token = {0}, got = {0};
    uint8_t *source = malloc(BYTES), *to = calloc(1, BYTES);
    const struct peal_net_part part = {source, BYTES};
    const struct peal_net_put put = {.rank = 1, .segment = SEGMENT, .parts = &part, .nparts = 1};
    const struct peal_net_get get = {1, SEGMENT, 0, BYTES, to};
    const struct peal_net_signal after = {CELLS, PEAL_NET_SET, 8, 1};
    memset(pair->memory[1], 0x33, BYTES);
    memset(source, 0xee, BYTES);
    TAKEN(pair, peal_net_get(pair->nets[0], &get, &got));
    for (int i = 0; i < 3; i++)
        TAKEN(pair, peal_net_put(pair->nets[0], &put, &token));
    peal_pair_progress(pair);
    peal_net_release(pair->nets[0], &token);
    peal_net_release(pair->nets[0], &got);
    free(source); /* the address sanitizer sees a later use */
    uint8_t *copy = malloc(BYTES);
    memcpy(copy, to, BYTES);
    uint32_t pending = atomic_load(&token.pending);
    TAKEN(pair, peal_net_signal(pair->nets[0], 1, &after));
    UNTIL(pair, peal_pair_cell(pair, 1, 1) == 1);
    for (int i = 0; i < 1000; i++)
        peal_pair_progress(pair);
    assert_memory_equal(copy, to, BYTES);
    assert_int_equal(atomic_load(&token.pending), pending);
    free(copy);
    free(to);
}

/* A random program of both ranks against a model of each other's memory. */
static void random_programs_end_as_written(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    enum { STEPS = 3000, PLACES = 64, PLACE = BYTES / PLACES };
    const char *given = getenv("NET_SEED");
    uint32_t seed = given ? (uint32_t)strtoul(given, NULL, 10) : (uint32_t)time(NULL);
    print_message("seed %u\n", seed);
    uint32_t state32 = seed * 2 + 1;
    uint8_t *model[RANKS];
    uint64_t sent[RANKS] = {0};
    static uint8_t source[RANKS][PLACES][PLACE];
    struct peal_net_token tokens[RANKS][PLACES] = {0};
    for (uint32_t r = 0; r < RANKS; r++)
        model[r] = calloc(1, BYTES);
    for (uint32_t i = 0; i < STEPS; i++) {
        state32 = state32 * 1664525 + 1013904223;
        uint32_t from = state32 >> 31, place = state32 >> 8 & (PLACES - 1);
        uint32_t size = (state32 >> 14 & 7) == 0 ? PLACE : (state32 >> 17 & 0xfff);
        UNTIL(pair, peal_net_token_is_done(&tokens[from][place]));
        peal_pair_fill(source[from][place], size, i);
        const struct peal_net_part part = {source[from][place], size};
        const struct peal_net_put put = {.rank = 1 - from,
                                         .segment = SEGMENT,
                                         .offset = (uint64_t)place * PLACE,
                                         .parts = &part,
                                         .nparts = 1,
                                         .signal = {CELLS, PEAL_NET_ADD, 40, 1}};
        TAKEN(pair, peal_net_put(pair->nets[from], &put, &tokens[from][place]));
        memcpy(model[1 - from] + (uint64_t)place * PLACE, source[from][place], size);
        sent[1 - from]++;
        if ((state32 >> 5 & 3) == 0)
            (void)peal_net_progress(pair->nets[state32 >> 7 & 1]);
    }
    UNTIL(pair, peal_pair_cell(pair, 0, 5) == sent[0] && peal_pair_cell(pair, 1, 5) == sent[1]);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_memory_equal(pair->memory[r], model[r], BYTES);
        free(model[r]);
    }
}

static void who_closes_is_known_to_have(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    const struct peal_net_signal signal = {CELLS, PEAL_NET_SET, 0, 1};
    TAKEN(pair, peal_net_signal(pair->nets[0], 1, &signal));
    UNTIL(pair, peal_pair_cell(pair, 1, 0) == 1);
    assert_int_equal(peal_net_health(pair->nets[1], 0, NULL), PEAL_OK);
    const struct peal_net_signal last = {CELLS, PEAL_NET_SET, 8, 1};
    TAKEN(pair, peal_net_signal(pair->nets[0], 1, &last));
    peal_net_close(pair->nets[0], 0);
    pair->nets[0] = NULL;
    for (uint64_t start = peal_now_ns(); pair->arrivals[1].lost == 0; peal_pair_check_time(start))
        (void)peal_net_progress(pair->nets[1]);
    assert_int_equal(pair->arrivals[1].status, PEAL_CLOSED);
    assert_int_equal(peal_pair_cell(pair, 1, 1), 1); /* what was sent before has arrived */
    assert_int_equal(peal_net_signal(pair->nets[1], 0, &signal), PEAL_CLOSED);
    assert_int_equal(peal_net_health(pair->nets[1], 0, NULL), PEAL_CLOSED);
}

static void arming_gives_a_descriptor_or_says_there_is_work(void **state)
{
    struct peal_rank_pair *pair = peal_pair_ready(state);
    const struct peal_net_signal signal = {CELLS, PEAL_NET_SET, 0, 1};
    TAKEN(pair, peal_net_signal(pair->nets[0], 1, &signal));
    UNTIL(pair, peal_pair_cell(pair, 1, 0) == 1);
    UNTIL(pair, peal_net_arm(pair->nets[1]) >= 0);
    assert_true(peal_net_arm(pair->nets[0]) >= -1);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name, peal_pair_setup, peal_pair_teardown, model                                    \
    }
static int run_all(const char *title, struct peal_rank_pair *model)
{
    const struct CMUnitTest tests[] = {
        TEST(puts_arrive_before_their_signal),
        TEST(signals_may_leave_later),
        TEST(parts_are_gathered),
        TEST(gets_bring_what_is_there),
        TEST(gets_see_earlier_puts),
        TEST(accumulates_are_the_owners_work),
        TEST(atomics_return_the_former_value),
        TEST(messages_arrive_whole),
        TEST(tickets_say_that_all_has_arrived),
        TEST(absent_segments_are_refused),
        TEST(wrong_arguments_are_refused),
        TEST(a_full_queue_is_pending),
        TEST(retracted_memory_is_not_touched),
        TEST(a_get_of_retracted_memory_is_right_or_refused),
        TEST(a_released_put_is_not_announced_without_its_data),
        TEST(what_is_released_is_not_touched),
        TEST(random_programs_end_as_written),
        TEST(who_closes_is_known_to_have),
        TEST(arming_gives_a_descriptor_or_says_there_is_work),
    };
    return cmocka_run_group_tests_name(title, tests, NULL, NULL);
}

int main(void)
{
    struct peal_rank_pair models[] = {
        {.transport = "tcp"},
        {.transport = "tcp", .crypt = true},
        {.transport = "ucx:lo"},
    };
    int failed = run_all("tcp", &models[0]);
    failed += run_all("tcp, encrypted", &models[1]);
    failed += run_all("ucx", &models[2]);
    return failed;
}
