/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder and by result/result.c: one search over the states of a
 * program. explore.h lists the files. */
#ifndef PEAL_VERIFY_SEARCH_H
#define PEAL_VERIFY_SEARCH_H

#include "verify/explore/space.h"
#include "verify/explore/states.h"
#include "verify/story/story.h"

enum { MAX_PAIRS = 1024, MAX_RESULTS = 20000, MAX_STARTS = 20000 };

struct search {
    struct space space;
    struct program *p;
    const struct peal_verify_options *options;
    struct answer *a;
    PEAL_VEC(uint32_t) path;
    struct states states;
    uint64_t visited; /* states of all searches */
    bool wide;        /* positions need 32 bits */
    unsigned char *key;
    bool no_memory;

    /* While results are compared: pairs of blocks that schedules order in either way, and which of
     * them have their second block first so far. */
    struct block_pair pairs[MAX_PAIRS];
    unsigned char turned[MAX_PAIRS];
    uint32_t npairs;
    bool compares;      /* results are being compared: every final state is executed */
    uint64_t results;   /* number of final states examined */
    struct states ends; /* those that differ in what was done to data */
    uint32_t *reg_last; /* [register]: its last use, + 1 */
    bool *reg_data;     /* [register] is it of a `when` whose block has ops on data? */
    bool *unordered;    /* [location]: several threads accumulate there */
};

/* registers.c. False: out of memory. */
bool peal_search_registers(struct search *s);
/* Writes the registers that belong to the state; returns how many bytes. */
size_t peal_search_put_registers(const struct search *s, unsigned char *at);
/* Does this final state have values that none before it had? Overwrites the key. */
bool peal_search_is_new_end(struct search *s);
/* Visits all states, beginning with the first. True: a fault was reported, or memory ran out. */
bool peal_search_all(struct search *s);
/* Says what stopped the search. */
void peal_search_give_up(struct search *s);
/* True: a fault was reported. */
bool peal_search_directed(struct search *s);
/* Reports a race in the initial state. True: the search ends. */
bool peal_search_starts_badly(struct search *s);
/* Reports the fault that the current path has led to. */
void peal_search_report_race(struct search *s, uint32_t t, uint32_t u);
void peal_search_report_deadlock(struct search *s);
/* Reports that the last step of `t` wrote a one-writer cell too late; `before` is what the cell
 * held. False: it did not. */
bool peal_search_report_late(struct search *s, uint32_t t, int64_t before);
/* Is the result of this complete schedule wrong? Then it is reported. */
bool peal_result_is_wrong(struct search *s);
/* Checks the result of the schedule that led to this final state. True: the search ends. */
bool peal_result_check_end(struct search *s);
/* After a search that found nothing: is the result right in every schedule? */
bool peal_result_check_all(struct search *s);

#endif
