/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs against peal.h alone. From a seed, all ranks make up the same program: which
 * communicators there are, which calls are made on them, with which data. What is a rank's own
 * affair (when it tests a request, where its private buffers lie, when it pauses) it draws from a
 * generator of its own. What should come out is computed by naive loops that share no code with
 * Peal.
 *
 *   value.c    elements of all types, and what a reduction of them is
 *   spec.c     what a call is: kind, type, counts, offsets, the value of every input element
 *   call.c     a call on one rank: its buffers, the call itself, the comparison afterwards
 *   message.c  point to point
 *   program.c  the steps of a program           fault.c  a rank leaves, the others go on
 *   tally.c    what was done and what was found, over all ranks and programs
 *   main.c     ranks as processes and as threads; what is left behind
 */
#ifndef CHAOS_H
#define CHAOS_H

#include "interp/kinds.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many types and reductions there are to choose from: the types of one part. */
enum { DTYPES = PEAL_F8E5M2 + 1, REDUCTIONS = PEAL_XOR + 1 };

enum { MOST = 16, GROUPS = 12, FLIGHTS = 24, NAMES = 64, SERIES = 16 };

/* ---- random numbers ---- */

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2))) *
                 UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static inline uint64_t draw(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(*state, 77);
}
static inline uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(draw(state) >> 33) % n;
}

/* ---- values ---- */

/* How a call's input elements are made. */
enum flavour { BITS, EXACT, ROUGH };

size_t value_size(enum peal_dtype dtype);
bool value_is_float(enum peal_dtype dtype);
/* So few digits that sums of small numbers are rounded. */
bool value_is_coarse(enum peal_dtype dtype);
const char *value_name(enum peal_dtype dtype);
bool value_takes(enum peal_dtype dtype, enum peal_reduction op);
/* One element, as bits. */
uint64_t value_make(enum peal_dtype dtype, enum peal_reduction op, enum flavour flavour,
                    uint64_t key);
/* What n elements come to; *slack is by how much the result may differ (floats only). */
uint64_t value_reduce(enum peal_dtype dtype, enum peal_reduction op, const uint64_t *values,
                      uint32_t n, double *slack);
double value_read(enum peal_dtype dtype, uint64_t bits);

/* ---- calls ---- */

enum { KINDS = KERNEL_BUILTIN + 1 };

/* Where the sides of a call lie; the same on all ranks. */
enum place { PRIVATE, SYMMETRIC };

struct spec {
    enum kind kind;
    bool nonblocking, in_place;
    enum peal_dtype dtype;
    enum peal_reduction op;
    enum flavour flavour;
    enum place send, recv;
    uint64_t count; /* of the largest block */
    uint64_t counts[MOST];
    uint32_t size, root;
    uint32_t repeats; /* of a blocking call, with the same buffers */
    uint64_t key;     /* of all that is drawn for it */
    uint64_t salt;    /* of its values: which repetition */
};

/* What a call on `size` ranks is, drawn from a seed. */
void spec_make(struct spec *spec, uint32_t size, bool can_block, bool has_symmetric, uint64_t seed);
/* Another call in its stead, as a rank would make that is mistaken. */
void spec_spoil(struct spec *spec, uint64_t seed);
const char *spec_name(const struct spec *spec);
/* The text if the condition holds, otherwise "". */
static inline const char *text_if(bool holds, const char *text)
{
    return holds ? text : "";
}
bool spec_is_v(const struct spec *spec);
bool spec_reduces(const struct spec *spec);
/* Elements of the block that `from` sends to `to`. */
uint64_t spec_block(const struct spec *spec, uint32_t from, uint32_t to);
/* Where the blocks of a side begin on a rank. False: none are given, they follow each other. */
bool spec_offsets(const struct spec *spec, uint32_t rank, bool output, uint64_t out[static MOST]);
/* Elements from the first to the last one of each side on a rank. */
uint64_t spec_sends(const struct spec *spec, uint32_t rank);
uint64_t spec_takes(const struct spec *spec, uint32_t rank);
/* The input element of a rank at a position. */
uint64_t spec_value(const struct spec *spec, uint32_t rank, uint64_t at);
/* Bytes that a side takes at most on any rank. */
uint64_t spec_room(const struct spec *spec);

/* ---- a rank ---- */

struct flight; /* a call or message under way */

struct group {
    bool open;
    uint32_t size, number; /* of all that were ever opened */
    uint32_t members[MOST];
    uint32_t flights;   /* non-blocking calls under way */
    uint32_t waiting;   /* of them: messages */
    uint64_t symmetric; /* bytes allocated, 0: none */
    uint64_t used;      /* of them, by calls under way */
    uint64_t uneven;    /* step of the last non-blocking all_to_all_v */
};

/* One call's results that must be the same bits everywhere. */
struct board {
    _Atomic uint64_t words[4096];
    _Atomic uint32_t opened;
};

/* The first of them need processes. NO_FILES and NO_ROOM fail one call and no more: the program
 * goes on. */
enum fault {
    NO_FAULT,
    KILLED,
    KILLED_LATER,
    EXITS,
    NO_FILES, /* no descriptor is left when a communicator is made */
    NO_ROOM,  /* no address space is left when symmetric memory is taken */
    LEAVES,
    MISTAKES,
    STALLS,
    OTHER_ALGO, /* than the others', forced */
    FAULTS
};

/* Over all ranks and programs, in shared memory. */
struct tally {
    _Atomic uint64_t calls, messages, programs;
    _Atomic uint64_t faults[FAULTS];
    _Atomic uint64_t apart; /* programs with a rank in a pid namespace of its own */
    _Atomic uint64_t stopped,
        slow; /* ranks that were stopped and continued, or held up for up to 3 ms */
    _Atomic uint64_t wrong, hung, leaked;
    /* When a rank of each series' program went, on the monotonic clock. */
    _Atomic uint64_t struck_ns[SERIES];
    _Atomic uint64_t reported_ns; /* the longest that a survivor took to return from its call */
    _Atomic uint64_t next;        /* program that a series takes */
};
extern struct tally *tally;
/* Which of the series of programs that run side by side this process belongs to. */
extern uint32_t series;
bool tally_open(void);
uint64_t tally_now_ns(void);
/* A fault happens now, or after that many nanoseconds; the report is timed only of a rank that
 * ends. */
void tally_fault(enum fault fault, uint64_t delay_ns);
/* A call has just returned what a rank's death makes of it. */
void tally_report(void);
void tally_print(double seconds);

struct rank {
    uint64_t seed, own; /* of the program, and this rank's */
    uint32_t rank, size;
    uint32_t steps, step;
    bool threads, nested, apart; /* apart: in a pid namespace of its own, where it is process 1 */
    bool lasts;                  /* a long program, with faults one after the other */
    struct group groups[GROUPS];
    uint32_t opened;
    struct peal_comm *comms[GROUPS];
    char *symmetric[GROUPS];
    struct flight *flights[FLIGHTS];
    struct board *board;
    bool trace;

    enum fault fault;
    uint32_t fault_step, victim;
    bool mistaken; /* this rank makes a wrong call now */
    bool was_mistaken;
    bool may_fail, may_stall; /* of an earlier fault, which may still come */
    bool gone;                /* this rank has left */
    uint32_t recoveries;
    enum peal_status failed;
    bool wrong; /* something that must not be was seen */
    char doing[160];
};

/* Says what is wrong, and that the program is. */
void rank_complain(struct rank *me, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A status that a call returned: true to go on. Otherwise the program ends here. */
bool rank_goes_on(struct rank *me, enum peal_status status, const struct peal_comm *comm);
/* This rank's number in a group; its size if it is none of it. */
uint32_t rank_in(const struct rank *me, uint32_t group);
void rank_pause(struct rank *me);

/* Makes the call, or starts it and keeps it under way. */
void call_make(struct rank *me, uint32_t group, const struct spec *spec);
/* Calls that must be refused. */
void call_refused(struct rank *me, uint32_t group);
/* Ends all requests, or tries one. */
void flights_end(struct rank *me);
void flights_end_group(struct rank *me, uint32_t group);
void flights_try(struct rank *me);
/* One round over all requests, or one of them; true if some are still under way. */
bool flights_poll(struct rank *me);
bool flights_poll_one(struct rank *me, uint32_t i);
/* After the communicators were closed or have failed: they can only say so. */
void flights_drop(struct rank *me);
/* Their memory, when no rank reads it any more. */
void flights_free(struct rank *me);

/* Messages between the ranks of a group. */
void messages_make(struct rank *me, uint32_t group, uint64_t seed);

/* Buffers with something around them that must not change. */
struct region {
    char *memory; /* allocated, or in symmetric memory */
    char *wanted; /* what it should hold afterwards */
    uint64_t bytes, start;
    bool borrowed;
};
void region_make(struct region *region, uint64_t bytes, uint64_t start, char *at);
void region_paint(struct region *region, uint64_t key);
void region_free(struct region *region);
/* Afterwards: false, and where, if it is not as it should be. */
bool region_holds(const struct region *region, uint64_t *where);

/* What is under way. */
struct flight {
    struct peal_request *request;
    uint32_t group;
    struct spec spec;
    struct region send, recv;
    char *input;
    uint64_t counts[MOST], offsets[MOST], in_counts[MOST], in_offsets[MOST];
    bool has_offsets, has_in_offsets;
    /* of a message */
    bool is_message, is_receive, too_long;
    uint64_t length;
    uint32_t from;
};
void flight_free(struct flight *flight);
/* It has ended well: are its buffers as they should be? */
void flight_check(struct rank *me, struct flight *flight, const uint64_t *got,
                  const uint32_t *sender);

/* ---- programs ---- */

/* Runs a program on a communicator, which is closed at the end. */
void program_run(struct rank *me, struct peal_comm *world);
/* After a failure: what is left is closed, those that are left meet again. NULL: it is over. */
struct peal_comm *fault_recover(struct rank *me);
void fault_give_up(struct rank *me);
void rank_close(struct rank *me, uint32_t group);
/* Before a step: what this rank does to the others. False: it is gone. */
bool fault_commit(struct rank *me);
/* One of those that a program on threads, or on processes, can have. */
enum fault fault_draw(uint64_t *state, bool threads);
/* Draws one, in a step from `first` on. */
void fault_plan(struct rank *me, uint32_t first, uint64_t *state);

#endif
