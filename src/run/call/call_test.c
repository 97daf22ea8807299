/* SPDX-License-Identifier: Apache-2.0 */
/* Plans run with threads as ranks: results, launches back to back, segments, faults. Plans are
 * assembled here, so that only src/run can be at fault. */
#include "base/tests/unit.h"
#include "plan/plan.h"
#include "plan/tests/by_hand.h"
#include "run/call/call.h"
#include "run/bootstrap/open.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every rank publishes its vector, waits for all others and adds up all vectors; launches use the
 * two halves of the window in turn. */
static struct peal_plan *flat_plan(uint32_t nranks, uint32_t rank, uint64_t n)
{
    struct peal_assembler *a = peal_assembler_new(nranks, rank, 1);
    struct peal_plan *header = peal_assembler_header(a);
    header->period = 2;
    header->kernel = peal_assembler_string(a, "flat");
    uint32_t x = by_hand_param(a, PEAL_DIR_IN, PEAL_I32, n);
    uint32_t y = by_hand_param(a, PEAL_DIR_OUT, PEAL_I32, n);
    uint32_t slot = by_hand_scratch(a, "slot", PEAL_BUF_WINDOW, PEAL_I32, 2 * n);
    uint32_t ready = peal_assembler_signal(a, "ready", PEAL_SIGNAL_ONE_WRITER, nranks);
    uint64_t halves[2] = {0, n * 4};
    uint32_t phases = peal_assembler_phases(a, halves);
    peal_assembler_rank_begin(a, rank);
    struct peal_ref own = peal_ref_make(rank, slot, PEAL_I32, 0);
    own.phases = phases;
    peal_assembler_copy(a, own, peal_ref_make(rank, x, PEAL_I32, 0), 1, n);
    for (uint32_t p = 0; p < nranks; p++) {
        if (p != rank)
            peal_assembler_notify(a, p, ready, rank, PEAL_NONE, 1, 0);
    }
    struct peal_ref all[16];
    for (uint32_t p = 0; p < nranks; p++) {
        if (p != rank)
            peal_assembler_wait(a, ready, p, PEAL_NONE, 1, 0);
        all[p] = peal_ref_make(p, slot, PEAL_I32, 0);
        all[p].phases = phases;
    }
    peal_assembler_compute(a, PEAL_FN_ADD, peal_ref_make(rank, y, PEAL_I32, 0), all, nranks, 1, n,
                           0);
    struct peal_plan *plan = NULL;
    assert_int_equal(peal_assembler_finish(a, NULL, &plan), PEAL_OK);
    return plan;
}

struct worker {
    struct peal_team *team;
    pthread_t thread;
    uint32_t count; /* elements of a call */
    uint32_t calls;
    uint32_t absent; /* this rank makes no calls; UINT32_MAX: none */
    uint32_t odd;    /* this rank's signature differs; UINT32_MAX: none */
    enum peal_status status;
    uint32_t wrong;
};

enum { SEGMENT = 64 }; /* elements of a launch */

static void *work(void *argument)
{
    struct worker *w = argument;
    struct peal_calls engine;
    if (peal_calls_init(&engine, w->team) != PEAL_OK || w->team->rank == w->absent)
        goto release;
    uint32_t rank = w->team->rank, size = w->team->size;
    struct peal_image *image = NULL;
    struct peal_image_options options = {.rank = rank, .clip = true};
    w->status = peal_image_new(flat_plan(size, rank, SEGMENT), &options, w->team->compute, &image);
    if (w->status != PEAL_OK)
        goto release;
    int32_t *x = calloc(w->count + 1, sizeof *x), *y = calloc(w->count + 1, sizeof *y);
    for (uint32_t c = 0; c < w->calls; c++) {
        for (uint32_t i = 0; i < w->count; i++)
            x[i] = (int32_t)(rank * 1000 + i + c);
        struct peal_bound bounds[2] = {
            {.base = image->params[0].base, .at = (char *)x, .bytes = w->count * 4},
            {.base = image->params[1].base, .at = (char *)y, .bytes = w->count * 4}};
        struct peal_call call = {.image = image,
                                 .bounds = bounds,
                                 .nbounds = 2,
                                 .segment = SEGMENT * 4,
                                 .launches = (w->count + SEGMENT - 1) / SEGMENT,
                                 .element = 4,
                                 .code = 1,
                                 .count = w->count,
                                 .signature = 7};
        if (rank == w->odd) {
            call.code = 2;
            call.signature = 8;
        }
        w->status = peal_call_run(&engine, &call);
        if (w->status != PEAL_OK)
            break;
        for (uint32_t i = 0; i < w->count; i++) {
            int32_t sum = (int32_t)(size * (i + c) + 1000 * (size * (size - 1) / 2));
            w->wrong += y[i] != sum;
        }
    }
    free(x);
    free(y);
    peal_image_free(image);
release:
    peal_calls_release(&engine);
    return NULL;
}

/* Waits until all but the absent rank are in their call, and ends the wait of the first. */
static void time_out(uint32_t size, struct peal_team **teams, uint32_t absent)
{
    for (uint32_t r = 0; r < size; r++) {
        while (r != absent && atomic_load(&peal_team_own(teams[r])->life) != PEAL_LIFE_INSIDE)
            sched_yield();
    }
    atomic_store(&teams[0]->timeout_ms, 1);
}

static void run(uint32_t size, struct worker *workers, const struct worker *like)
{
    struct peal_team *teams[16];
    assert_int_equal(peal_team_open_threads(size, 600000, NULL, teams), PEAL_OK);
    for (uint32_t r = 0; r < size; r++) {
        workers[r] = *like;
        workers[r].team = teams[r];
        teams[r]->quiet = true;
        pthread_create(&workers[r].thread, NULL, work, &workers[r]);
    }
    if (like->absent < size)
        time_out(size, teams, like->absent);
    for (uint32_t r = 0; r < size; r++)
        pthread_join(workers[r].thread, NULL);
}

static void close_all(uint32_t size, struct worker *workers)
{
    for (uint32_t r = 0; r < size; r++)
        peal_team_close(workers[r].team);
}

TEST(sums_are_right_over_many_launches)
{
    static const struct {
        int line;
        uint32_t size, count, calls;
    } rows[] = {
        {__LINE__, 1, 10, 3},   {__LINE__, 2, 1, 500},  {__LINE__, 2, 1000, 50},
        {__LINE__, 3, 64, 50},  {__LINE__, 4, 65, 100}, {__LINE__, 7, 0, 5},
        {__LINE__, 8, 129, 20}, {__LINE__, 16, 7, 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct worker workers[16];
        struct worker like = {.count = rows[i].count,
                              .calls = rows[i].calls,
                              .absent = UINT32_MAX,
                              .odd = UINT32_MAX};
        run(rows[i].size, workers, &like);
        for (uint32_t r = 0; r < rows[i].size; r++) {
            if (workers[r].status != PEAL_OK || workers[r].wrong != 0)
                fail_msg("row at line %d, rank %u: %s, %u wrong", rows[i].line, r,
                         peal_status_text(workers[r].status), workers[r].wrong);
        }
        close_all(rows[i].size, workers);
    }
}

TEST(a_missing_rank_times_out_on_all_with_one_report)
{
    struct worker workers[16];
    struct worker like = {.count = 5, .calls = 3, .absent = 1, .odd = UINT32_MAX};
    run(3, workers, &like);
    for (uint32_t r = 0; r < 3; r++) {
        if (r == 1)
            continue;
        assert_int_equal(workers[r].status, PEAL_TIMEOUT);
        const char *text = peal_text_get(&workers[r].team->error);
        assert_non_null(strstr(text, "no progress for"));
        assert_non_null(strstr(text, "rank 1"));
        assert_non_null(strstr(text, "outside any call"));
        assert_non_null(strstr(text, "kernel 'flat'"));
        assert_string_equal(text, peal_text_get(&workers[0].team->error));
    }
    close_all(3, workers);
}

TEST(another_call_on_one_rank_is_a_mismatch_on_all)
{
    struct worker workers[16];
    struct worker like = {.count = 5, .calls = 3, .absent = UINT32_MAX, .odd = 2};
    run(4, workers, &like);
    for (uint32_t r = 0; r < 4; r++) {
        assert_int_equal(workers[r].status, PEAL_MISMATCH);
        assert_non_null(strstr(peal_text_get(&workers[r].team->error), "mismatch in call 1"));
    }
    close_all(4, workers);
}

static int call_once(struct peal_calls *engine, struct peal_image *image, uint32_t n, bool blocks);

/* A rank that is alone waits for no other: only the failure can keep it from moving data. */
TEST(nothing_moves_in_a_team_that_has_failed)
{
    for (int blocks = 0; blocks < 2; blocks++) {
        struct peal_team *team;
        struct peal_calls engine;
        struct peal_image *image;
        struct peal_text report = {0};
        struct peal_image_options options = {.rank = 0};
        assert_int_equal(peal_team_open_threads(1, 1000, NULL, &team), PEAL_OK);
        team->quiet = true;
        assert_int_equal(peal_calls_init(&engine, team), PEAL_OK);
        assert_int_equal(peal_image_new(flat_plan(1, 0, 16), &options, team->compute, &image),
                         PEAL_OK);
        assert_int_equal(call_once(&engine, image, 16, blocks), 0);
        assert_int_equal(peal_team_fail(team, PEAL_TIMEOUT, 0, &report), PEAL_TIMEOUT);
        assert_int_equal(call_once(&engine, image, 16, blocks), -1);
        peal_calls_release(&engine);
        peal_image_free(image);
        peal_team_close(team);
    }
}

/* ---- memory ---- */

enum { LAYOUTS = 12, ROUNDS = 5 };

/* One call of an image, blocking or not; the number of wrong results, or -1. */
static int call_once(struct peal_calls *engine, struct peal_image *image, uint32_t n, bool blocks)
{
    uint32_t rank = engine->team->rank, size = engine->team->size;
    int32_t *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
    int wrong = 0;
    for (uint32_t i = 0; i < n; i++)
        x[i] = (int32_t)(rank * 1000 + i + n);
    struct peal_bound bounds[2] = {
        {.base = image->params[0].base, .at = (char *)x, .bytes = n * 4},
        {.base = image->params[1].base, .at = (char *)y, .bytes = n * 4}};
    struct peal_call call = {.image = image,
                             .bounds = bounds,
                             .nbounds = 2,
                             .segment = n * 4,
                             .launches = 1,
                             .element = 4,
                             .code = 1,
                             .count = n,
                             .signature = n};
    enum peal_status status = PEAL_OK;
    if (blocks) {
        status = peal_call_run(engine, &call);
    } else {
        peal_call_start(engine, &call);
        status = peal_calls_wait(engine, &call.status);
    }
    for (uint32_t i = 0; i < n; i++)
        wrong += y[i] != (int32_t)(size * (i + n) + 1000 * (size * (size - 1) / 2));
    free(x);
    free(y);
    return status == PEAL_OK ? wrong : -1;
}

/* Plans of many layouts, which together need several times what a context may have. */
static void *work_in_little_memory(void *argument)
{
    struct worker *w = argument;
    struct peal_calls engine;
    struct peal_image *images[LAYOUTS] = {0};
    if (peal_calls_init(&engine, w->team) != PEAL_OK)
        return NULL;
    for (uint32_t i = 0; i < LAYOUTS; i++) {
        struct peal_image_options options = {.rank = w->team->rank, .identity = {{i}}};
        w->status = peal_image_new(flat_plan(w->team->size, w->team->rank, 8000 + 16 * i), &options,
                                   w->team->compute, &images[i]);
        if (w->status != PEAL_OK)
            goto release;
    }
    for (uint32_t round = 0; round < ROUNDS * LAYOUTS; round++) {
        uint32_t i = round * 5 % LAYOUTS;
        for (uint32_t k = 0; k < 3; k++) {
            int wrong = call_once(&engine, images[i], 8000 + 16 * i, (round + k) % 3 != 0);
            w->wrong += wrong != 0;
        }
        for (uint32_t c = 0; c < PEAL_CONTEXTS; c++)
            w->wrong += engine.frames[c].regions.areas[PEAL_AREA_MAIN].used >
                        engine.frames[c].regions.limit;
    }
    w->calls = (uint32_t)engine.frames[0].regions.turns;
release:
    for (uint32_t i = 0; i < LAYOUTS; i++)
        peal_image_free(images[i]);
    peal_calls_release(&engine);
    return NULL;
}

TEST(regions_are_given_back_before_a_context_passes_its_limit)
{
    enum { SIZE = 3 };
    struct peal_team *teams[SIZE];
    struct worker workers[SIZE] = {0};
    setenv("PEAL_WINDOW_POOL", "64K", 1);
    assert_int_equal(peal_team_open_threads(SIZE, 20000, NULL, teams), PEAL_OK);
    unsetenv("PEAL_WINDOW_POOL");
    for (uint32_t r = 0; r < SIZE; r++) {
        workers[r].team = teams[r];
        pthread_create(&workers[r].thread, NULL, work_in_little_memory, &workers[r]);
    }
    for (uint32_t r = 0; r < SIZE; r++) {
        pthread_join(workers[r].thread, NULL);
        assert_int_equal(workers[r].status, PEAL_OK);
        assert_int_equal(workers[r].wrong, 0);
        assert_true(workers[r].calls > ROUNDS); /* times that all was given back */
    }
    close_all(SIZE, workers);
}

/* A region with two halves of `words` words each, and a few cells. */
static enum peal_status find_region(struct peal_regions *regions, const struct peal_team *team,
                                    uint64_t words, uint64_t key, uint64_t *offset)
{
    struct peal_image_options options = {.rank = 0, .identity = {{key}}};
    struct peal_image *image = NULL;
    struct peal_family *family = NULL;
    assert_int_equal(peal_image_new(flat_plan(1, 0, words), &options, team->compute, &image),
                     PEAL_OK);
    enum peal_status status = peal_regions_find(regions, image, &family);
    if (status == PEAL_OK) {
        *offset = family->offset;
        struct peal_family *again = NULL;
        assert_int_equal(peal_regions_find(regions, image, &again), PEAL_OK);
        assert_ptr_equal(again, family);
    }
    peal_image_free(image);
    return status;
}

/* However many large regions there are, small ones have memory that was populated at open; a region
 * that needs more than the limit has all of the memory to itself; and no region lies on both sides
 * of the end of the pool. */
TEST(small_regions_have_a_place_of_their_own)
{
    enum { WORDS = 100 << 10, SMALL = 1 << 8 };
    struct peal_team *team;
    struct peal_regions regions;
    uint64_t offset = 0, last = 0, end = 0, key = 0;
    assert_int_equal(peal_team_open_threads(1, 1000, NULL, &team), PEAL_OK);
    assert_int_equal(peal_regions_init(&regions, team, 0), PEAL_OK);
    while (find_region(&regions, team, WORDS, ++key, &offset) == PEAL_OK) {
        assert_true(offset >= end && offset >= regions.small_end);
        assert_true(offset + WORDS * 8 <= regions.limit);
        assert_true(offset >= regions.pool || offset + WORDS * 8 <= regions.pool);
        end = offset + WORDS * 8;
        assert_int_equal(find_region(&regions, team, SMALL, ++key, &offset), PEAL_OK);
        assert_true(offset + SMALL * 8 <= regions.small_end && offset >= last);
        last = offset + SMALL * 8;
    }
    assert_true(end > regions.pool);
    uint32_t stage = 0;
    assert_int_equal(peal_regions_recycle(&regions, team, &stage), PEAL_OK);
    assert_int_equal(regions.turns, 1);
    uint64_t huge = (regions.limit / 8) + 4096;
    assert_int_equal(find_region(&regions, team, huge, 1, &offset), PEAL_OK);
    assert_int_equal(offset, regions.pool);
    assert_int_equal(find_region(&regions, team, SMALL, 2, &offset), PEAL_OK);
    assert_int_equal(find_region(&regions, team, WORDS, 3, &offset), PEAL_PENDING);
    peal_regions_release(&regions);
    peal_team_close(team);
}

int main(void)
{
    return unit_run();
}
