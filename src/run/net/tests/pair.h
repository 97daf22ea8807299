/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks of one process, progressed in turn by one thread: the basis of the transports' tests.
 */
#ifndef PEAL_RUN_PAIR_H
#define PEAL_RUN_PAIR_H

#include "run/net/meet.h"
#include "run/net/net.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { RANKS = 2, BYTES = 6 << 20, SEGMENT = 7, CELLS = 9 };

/* Arrivals at a rank. */
struct peal_arrivals {
    uint32_t posts, controls, signals, lost;
    uint32_t kind;
    uint64_t len;
    uint8_t bytes[PEAL_NET_POST_MAX];
    enum peal_status status;
};

struct peal_rank_pair {
    const char *transport;
    bool crypt;
    struct peal_meet *meets[RANKS];
    struct peal_net *nets[RANKS];
    uint8_t *memory[RANKS]; /* SEGMENT */
    uint64_t cells[RANKS][64];
    struct peal_arrivals arrivals[RANKS];
    struct peal_text why[RANKS];
    enum peal_status status[RANKS];
};

/* cmocka's set-up and tear-down: the state is first a model, of which transport and crypt are used,
 * then a pair. */
int peal_pair_setup(void **state);
int peal_pair_teardown(void **state);
/* The pair; the test is skipped if this machine lacks what the transport needs. */
struct peal_rank_pair *peal_pair_ready(void **state);
void peal_pair_progress(struct peal_rank_pair *pair);
/* A limit for what would otherwise hang; nothing depends on how long it takes. */
void peal_pair_check_time(uint64_t start_ns);
uint64_t peal_pair_cell(const struct peal_rank_pair *pair, uint32_t rank, uint32_t index);
void peal_pair_fill(uint8_t *bytes, uint64_t len, uint32_t seed);

#define UNTIL(pair, condition)                                                                     \
    for (uint64_t start_ns = peal_now_ns(); !(condition); peal_pair_check_time(start_ns))          \
    peal_pair_progress(pair)

/* Repeats a call that is pending. */
#define TAKEN(pair, call)                                                                          \
    do {                                                                                           \
        enum peal_status taken_;                                                                   \
        uint64_t start_ns = peal_now_ns();                                                         \
        while ((taken_ = (call)) == PEAL_PENDING) {                                                \
            peal_pair_progress(pair);                                                              \
            peal_pair_check_time(start_ns);                                                        \
        }                                                                                          \
        assert_int_equal(taken_, PEAL_OK);                                                         \
    } while (0)

#endif
