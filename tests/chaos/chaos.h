/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs against peal.h alone. From a seed, all ranks derive the same program: its
 * communicators, the calls on them, and the data of each call. Each rank has a second generator for
 * its own decisions: when it tests a request, where its private buffers lie, when it pauses.
 * Expected results are computed by naive loops that share no code with Peal.
 *
 *   value.c    elements of all types, and their reductions
 *   spec.c     a call: kind, type, counts, offsets, the value of every input element
 *   call.c     a call on one rank: its buffers, the call itself, the comparison afterwards
 *   flight.c   calls and messages under way     message.c  point to point
 *   refused.c  calls with wrong arguments
 *   program.c  the steps of a program           fault.c  a rank leaves, the others go on
 *   tally.c    counts of calls, faults and failures over all ranks and programs
 *   main.c     ranks as processes and as threads; leaks
 */
#ifndef CHAOS_H
#define CHAOS_H

#include "interp/kinds.h"
#include "lib/random.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The types and reductions that programs use: types of one part, such as no complex numbers. */
enum { DTYPES = PEAL_F8E5M2 + 1, REDUCTIONS = PEAL_XOR + 1 };

/* Limits: ranks of a program; communicators, and calls and messages under way, of one rank at a
 * time; programs side by side. */
enum { MAX_RANKS = 16, GROUPS = 12, FLIGHTS = 24, SERIES = 16 };

/* ---- values ---- */

/* Input elements: any bits, for data that is only moved; numbers whose reductions are exact; numbers
 * whose reductions are rounded. */
enum flavour { BITS, EXACT, ROUGH };

size_t value_size(enum peal_dtype dtype);
bool value_is_float(enum peal_dtype dtype);
/* A type with so few digits that sums of small numbers are rounded. */
bool value_is_coarse(enum peal_dtype dtype);
const char *value_name(enum peal_dtype dtype);
bool value_takes(enum peal_dtype dtype, enum peal_reduction op);
/* One element, as bits. */
uint64_t value_make(enum peal_dtype dtype, enum peal_reduction op, enum flavour flavour,
                    uint64_t key);
/* The reduction of n elements; a result may differ from it by *slack (0 for integers). */
uint64_t value_reduce(enum peal_dtype dtype, enum peal_reduction op, const uint64_t *values,
                      uint32_t n, double *slack);
double value_read(enum peal_dtype dtype, uint64_t bits);

/* ---- calls ---- */

enum { KINDS = KERNEL_BUILTIN + 1 };

/* The memory of a call's input or output; the same on all ranks. */
enum place { PRIVATE, SYMMETRIC };

struct spec {
    enum kind kind;
    bool nonblocking, in_place;
    enum peal_dtype dtype;
    enum peal_reduction op;
    enum flavour flavour;
    enum place send, recv;
    uint64_t count; /* elements of the largest block */
    uint64_t counts[MAX_RANKS];
    uint32_t size, root;
    uint32_t repeats; /* of a blocking call, with the same buffers */
    uint64_t key;     /* seed of values, offsets and block lengths */
    uint64_t salt;    /* of the values: the number of the repetition */
};

/* A random call on `size` ranks. */
void spec_make(struct spec *spec, uint32_t size, bool can_block, bool has_symmetric, uint64_t seed);
/* Changes it into another call, as a faulty rank would make it. */
void spec_spoil(struct spec *spec, uint64_t seed);
const char *spec_name(const struct spec *spec);
/* The text if the condition holds, otherwise "". */
static inline const char *text_if(bool holds, const char *text)
{
    return holds ? text : "";
}
/* Its blocks have lengths of their own. */
bool spec_is_v(const struct spec *spec);
bool spec_reduces(const struct spec *spec);
/* Blocks of the input go to several ranks, and each rank receives one block. */
bool spec_scatters(const struct spec *spec);
/* Elements of the block that `from` sends to `to`. */
uint64_t spec_block(const struct spec *spec, uint32_t from, uint32_t to);
/* Where the blocks of a rank's input or output begin. False: the call gives no offsets, and blocks
 * follow each other. */
bool spec_offsets(const struct spec *spec, uint32_t rank, bool output,
                  uint64_t out[static MAX_RANKS]);
/* Elements from the first to the last one of a rank's input and output. */
uint64_t spec_sends(const struct spec *spec, uint32_t rank);
uint64_t spec_takes(const struct spec *spec, uint32_t rank);
/* The input element of a rank at a position. */
uint64_t spec_value(const struct spec *spec, uint32_t rank, uint64_t at);
/* Bytes of the longest input or output of any rank. */
uint64_t spec_max_bytes(const struct spec *spec);

/* ---- a rank ---- */

struct flight; /* a call or message under way */

struct group {
    bool open;
    uint32_t size, number; /* number: how many were opened before it */
    uint32_t members[MAX_RANKS];
    uint32_t flights;   /* non-blocking calls under way */
    uint32_t waiting;   /* messages under way, at most */
    uint64_t symmetric; /* bytes allocated, 0: none */
    uint64_t used;      /* of them, by calls under way */
};

/* Hashes of results that must be the same bits on all ranks; the first rank to finish stores one. */
enum { WORDS = 65536 };
struct board {
    _Atomic uint64_t words[WORDS];
};

/* Those before LEAVES need processes. NO_FILES and NO_ADDRESSES fail one call only: the program goes
 * on. */
enum fault {
    NO_FAULT,
    KILLED,
    KILLED_LATER,
    EXITS,
    NO_FILES,     /* no descriptor is left when a communicator is made */
    NO_ADDRESSES, /* no address space is left when symmetric memory is allocated */
    LEAVES,
    MISTAKES,
    STALLS,
    OTHER_ALGO, /* forces another algorithm than the other ranks */
    FAULTS
};

/* Over all ranks and programs, in shared memory. */
struct tally {
    _Atomic uint64_t calls, messages, programs;
    _Atomic uint64_t faults[FAULTS];
    _Atomic uint64_t apart;         /* programs with a rank in a pid namespace of its own */
    _Atomic uint64_t stopped, slow; /* pauses: stopped and continued, or up to 3 ms of sleep */
    _Atomic uint64_t wrong, hung, leaked;
    /* When a rank of each series' program ended, on the monotonic clock. */
    _Atomic uint64_t struck_ns[SERIES];
    _Atomic uint64_t reported_ns; /* the longest time from such an end to a survivor's report */
    _Atomic uint64_t next;        /* number of the next program to start */
};
extern struct tally *tally;
/* Several series of programs run side by side; this is the number of this process's one. */
extern uint32_t series;
bool tally_open(void);
uint64_t tally_now_ns(void);
/* A fault happens in delay_ns. If it ends the rank, reports of it are timed from then on. */
void tally_fault(enum fault fault, uint64_t delay_ns);
/* A call has just reported that a rank ended. */
void tally_report(void);
void tally_print(double seconds);

struct rank {
    uint64_t seed, own; /* the program's seed, the state of this rank's generator */
    uint32_t rank, size;
    uint32_t steps, step;
    bool threads; /* ranks are threads */
    bool nested;  /* this program is one step of another one */
    bool apart;   /* in a pid namespace of its own, where it is process 1 */
    bool lasts;   /* a long program, with faults one after the other */
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
    bool may_fail, may_stall; /* an earlier fault may still show */
    bool gone;                /* this rank has left */
    uint32_t recoveries,
        planned; /* planned: faults, each of which fails one call of a rank or none */
    enum peal_status failed;
    bool wrong; /* a check failed */
    char doing[160];
};

/* Describes what the rank does next, for later complaints and for CHAOS_TRACE. */
void rank_begins(struct rank *me, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A check failed: prints why and sets `wrong`. */
void rank_complain(struct rank *me, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes the status of a call. False: the program ends here, because it failed or is wrong. */
bool rank_goes_on(struct rank *me, enum peal_status status, const struct peal_comm *comm);
/* This rank's number in a group; the group's size if it is no member. */
uint32_t rank_in(const struct rank *me, uint32_t group);
void rank_pause(struct rank *me);

/* Makes a blocking call, or starts a non-blocking one. */
void call_make(struct rank *me, uint32_t group, const struct spec *spec);
/* Makes a call that must be refused. */
void call_refused(struct rank *me, uint32_t group);
/* Keeps a call or message that is under way. */
void flights_add(struct rank *me, struct flight *flight);
/* Waits for all requests, for those of a group; tests a random one. */
void flights_end(struct rank *me);
void flights_end_group(struct rank *me, uint32_t group);
void flights_try(struct rank *me);
/* After the communicators were closed or have failed: no request may be pending. */
void flights_drop(struct rank *me);
/* Frees their buffers, when no rank reads them any more. */
void flights_free(struct rank *me);

/* Messages between the ranks of a group. */
void messages_make(struct rank *me, uint32_t group, uint64_t seed);

/* A buffer with guard bytes before and behind it, which must not change. */
struct region {
    char *memory; /* owned, unless borrowed from symmetric memory */
    char *wanted; /* expected contents */
    uint64_t bytes, start;
    bool borrowed;
};
void region_make(struct region *region, uint64_t bytes, uint64_t start, char *at);
void region_paint(struct region *region, uint64_t key);
void region_free(struct region *region);
/* Does it hold what is wanted? If not, *where is the first byte that differs. */
bool region_holds(const struct region *region, uint64_t *where);

/* A call or message under way. */
struct flight {
    struct peal_request *request;
    uint32_t group;
    struct spec spec;
    struct region send, recv;
    char *input;
    uint64_t counts[MAX_RANKS], offsets[MAX_RANKS], in_counts[MAX_RANKS], in_offsets[MAX_RANKS];
    bool has_offsets, has_in_offsets;
    /* The rest is of messages only. */
    bool is_message, is_receive, too_long;
    uint64_t length;
    uint32_t from;
};
void flight_free(struct flight *flight);
/* After a success: compares its buffers, length and sender with what is expected. */
void flight_check(struct rank *me, struct flight *flight, const uint64_t *got,
                  const uint32_t *sender);

/* ---- programs ---- */

/* Runs a program on a communicator, which is closed at the end. */
void program_run(struct rank *me, struct peal_comm *world);
/* After a failure: closes everything and shrinks to the ranks that are left. NULL: the program is
 * over. */
struct peal_comm *fault_recover(struct rank *me);
void fault_give_up(struct rank *me);
void rank_close(struct rank *me, uint32_t group);
/* Commits the planned fault, before a step. False: this rank has left. */
bool fault_commit(struct rank *me);
/* Draws a fault, its step (from `first` on) and its victim. */
void fault_plan(struct rank *me, uint32_t first, uint64_t *state);

#endif
