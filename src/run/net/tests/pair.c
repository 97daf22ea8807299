/* SPDX-License-Identifier: Apache-2.0 */
/* See pair.h. */
#include "run/net/tests/pair.h"

#include <stdlib.h>
#include <string.h>

/* ---- callbacks ---- */

static void on_accumulate(void *context, uint32_t rank,
                          const struct peal_net_accumulate *accumulate, void *at, const void *from)
{
    const uint32_t *add = from;
    uint32_t *sum = at;
    (void)context, (void)rank;
    for (uint64_t i = 0; i < accumulate->bytes / 4; i++)
        sum[i] += add[i] * accumulate->fn;
}

static void on_post(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len)
{
    struct peal_arrivals *arrivals = context;
    (void)rank;
    arrivals->posts++;
    arrivals->kind = kind;
    arrivals->len = len;
    memcpy(arrivals->bytes, bytes, len);
}

static void on_control(void *context, uint32_t rank, uint32_t kind, const void *bytes, uint64_t len)
{
    struct peal_arrivals *arrivals = context;
    (void)rank;
    arrivals->controls++;
    arrivals->kind = kind;
    arrivals->len = len;
    memcpy(arrivals->bytes, bytes, len);
}

static void on_signal(void *context, uint32_t rank)
{
    struct peal_arrivals *arrivals = context;
    (void)rank;
    arrivals->signals++;
}

static void on_lost(void *context, uint32_t rank, enum peal_status status, const char *why)
{
    struct peal_arrivals *arrivals = context;
    (void)rank, (void)why;
    arrivals->lost++;
    arrivals->status = status;
}

/* ---- two ranks ---- */

struct opening {
    struct peal_rank_pair *pair;
    uint32_t rank;
};

static void *open_rank(void *argument)
{
    const struct opening *opening = argument;
    struct peal_rank_pair *pair = opening->pair;
    uint32_t rank = opening->rank;
    static const uint8_t secret[PEAL_NET_SECRET] = {1, 2, 3};
    const struct peal_net_config config = {
        .rank = rank,
        .size = RANKS,
        .job = "conformance",
        .secret = secret,
        .transport = pair->transport,
        .crypt = pair->crypt,
        .events = {&pair->arrivals[rank], on_accumulate, on_post, on_control, on_signal, on_lost},
    };
    pair->status[rank] =
        peal_net_open(&config, pair->meets[rank], &pair->why[rank], &pair->nets[rank]);
    return NULL;
}

static void open_pair(struct peal_rank_pair *pair)
{
    pthread_t threads[RANKS];
    struct opening openings[RANKS];
    assert_int_equal(peal_meet_open_local(RANKS, 20000, pair->meets), PEAL_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        openings[r] = (struct opening){pair, r};
        pthread_create(&threads[r], NULL, open_rank, &openings[r]);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        pthread_join(threads[r], NULL);
        peal_meet_close(pair->meets[r]);
    }
}

int peal_pair_setup(void **state)
{
    const struct peal_rank_pair *model = *state;
    struct peal_rank_pair *pair = calloc(1, sizeof *pair);
    pair->transport = model->transport;
    pair->crypt = model->crypt;
    open_pair(pair);
    for (uint32_t r = 0; r < RANKS; r++) {
        if (pair->status[r] != PEAL_OK)
            continue;
        pair->memory[r] = calloc(1, BYTES);
        assert_int_equal(peal_net_expose(pair->nets[r], SEGMENT, pair->memory[r], BYTES), PEAL_OK);
        assert_int_equal(
            peal_net_expose(pair->nets[r], CELLS, pair->cells[r], sizeof pair->cells[r]), PEAL_OK);
    }
    *state = pair;
    return 0;
}

int peal_pair_teardown(void **state)
{
    struct peal_rank_pair *pair = *state;
    for (uint32_t r = 0; r < RANKS; r++) {
        peal_net_close(pair->nets[r], 0);
        peal_text_release(&pair->why[r]);
        free(pair->memory[r]);
    }
    free(pair);
    return 0;
}

struct peal_rank_pair *peal_pair_ready(void **state)
{
    struct peal_rank_pair *pair = *state;
    if (pair->status[0] == PEAL_OK)
        return pair;
    print_message("%s: %s\n", pair->transport, peal_text_get(&pair->why[0]));
    assert_int_equal(pair->status[0], PEAL_UNSUPPORTED);
    skip();
    return NULL;
}

void peal_pair_progress(struct peal_rank_pair *pair)
{
    for (uint32_t r = 0; r < RANKS; r++)
        (void)peal_net_progress(pair->nets[r]);
}

void peal_pair_check_time(uint64_t start_ns)
{
    if (peal_ms_since(start_ns) > 60000)
        fail_msg("nothing has moved for a minute");
}

uint64_t peal_pair_cell(const struct peal_rank_pair *pair, uint32_t rank, uint32_t index)
{
    return atomic_load_explicit((const _Atomic uint64_t *)&pair->cells[rank][index],
                                memory_order_acquire);
}

void peal_pair_fill(uint8_t *bytes, uint64_t len, uint32_t seed)
{
    for (uint64_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 7);
}
