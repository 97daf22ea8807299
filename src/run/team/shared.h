/* SPDX-License-Identifier: Apache-2.0 */
/* What lies in shared memory: the layout of a rank's window.
 *
 *   0            control block: identity, failure word, calls, waits, report
 *   CONTROL      rank 0's: where each rank sleeps
 *   ...          mailboxes of point-to-point messages, one from each rank
 *   ...          contexts: regions of channels and scratch; in rank 0's, of everyone's cells
 *                too (family.h). First what each has from the beginning, one after the other, so
 *                that large pages hold it; then room for what each may need beyond
 *
 * That is the window of a communicator that was opened, in a file of its own. One that was made from
 * another has its parts at several places of the same files, and nothing populated: windows.h.
 *
 * Each line has one writer unless it says otherwise. Everything is fixed-width and survives the
 * death of its writer at any moment: readers bound every index they find here.
 */
#ifndef PEAL_RUN_SHARED_H
#define PEAL_RUN_SHARED_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PEAL_LINE = 64,
    PEAL_CONTEXTS = 5,      /* context 0: blocking calls; 1 to 4: non-blocking ones in turn */
    PEAL_STREAMS = 2,       /* call sequences: blocking, non-blocking */
    PEAL_CALL_HISTORY = 16, /* last calls of each stream that peers can still compare with */
    PEAL_WINDOW_PARAMS = 2, /* of a library kernel: x and y */
    PEAL_WAIT_WORDS = 40,
    PEAL_LABELS = 8, /* user kernels whose names and arguments peers can read */
    PEAL_LABEL_WORDS = 24,
    PEAL_MEMBER_WORDS = 4, /* bits for the most ranks that there may be */
    PEAL_REPORT_WORDS = 872
};

#define PEAL_CONTROL_MAGIC UINT32_C(0x70656c63)
#define PEAL_CONTROL_VERSION UINT32_C(13)

/* One signal cell. Writer: one rank, or several by atomic add; reader: the window's owner. */
struct peal_cell {
    _Alignas(PEAL_LINE) _Atomic uint64_t value;
};
static_assert(sizeof(struct peal_cell) == PEAL_LINE, "a cell has a line of its own");

/* A call as its peers compare it. seq is stored last (release) and read first (acquire). */
struct peal_call_record {
    _Atomic uint64_t seq;   /* 1 for the first call of the stream */
    _Atomic uint64_t code;  /* peal_call_code */
    _Atomic uint64_t count; /* elements, or a hash of counts */
    uint64_t pad;
};

/* What a user kernel is called, and its arguments, for reports. key is stored last
 * (release) and read first and last (acquire). */
struct peal_label {
    _Atomic uint64_t key; /* the call's count, which is a hash of all that; 0: none */
    _Atomic uint64_t text[PEAL_LABEL_WORDS];
};

enum peal_life {
    PEAL_LIFE_OPENING,
    PEAL_LIFE_OUTSIDE, /* in no call */
    PEAL_LIFE_INSIDE,
    PEAL_LIFE_LEFT, /* closed */
    PEAL_LIFE_KEPT  /* room for a communicator that the rank makes when it needs it */
};

struct peal_control {
    _Alignas(
        PEAL_LINE) uint32_t magic; /* these two lines: written before the window is passed on */
    uint32_t version;
    uint32_t rank, size;
    int32_t pid;
    uint32_t pool_kib; /* populated bytes of context 0; the same on all ranks */
    uint32_t cores;    /* peal_cores of the owner */
    uint16_t large;    /* 1: what is populated when opened has large pages */
    uint16_t lazy;     /* 1: nothing of the pools is populated when opened */
    uint64_t bytes;

    _Alignas(PEAL_LINE) char job[PEAL_LINE]; /* splits: the parent's, a number and the colour */

    /* Written by any rank, once (compare and swap from 0): status | culprit << 8 | who found it << 40.
     * Release; the owner's acquire load is in its slow path. */
    _Alignas(PEAL_LINE) _Atomic uint64_t failure;

    _Alignas(PEAL_LINE) _Atomic uint32_t life; /* enum peal_life */
    _Atomic uint32_t stream;                   /* of the call the owner is in */
    _Atomic uint64_t calls[PEAL_STREAMS];      /* the last seq of each stream */
    _Atomic uint64_t letters;                  /* messages sent and received, or begun */
    _Atomic uint32_t moving;  /* 1 while the owner moves non-blocking calls: see peal_team_settle */
    _Atomic uint64_t dropped; /* once it has left: its first non-blocking call that had not ended;
                                 0: all had. Written before life (release). */
    _Atomic uint64_t finished; /* non-blocking calls of the owner that have ended */

    /* Of a place (windows.h): 1 while the owner has it given out, whatever became of it; how many
     * ranks have left the communicator, for good; and whether the owner has. Release; partners are in
     * windows.c and team.c. */
    _Alignas(PEAL_LINE) _Atomic uint32_t taken;
    _Atomic uint32_t leavers;
    _Atomic uint32_t gone;

    /* Of a meeting after a failure: see survivors.h. Each word has the number of the meeting above 32
     * bits, and is stored with release. */
    _Alignas(PEAL_LINE) _Atomic uint64_t came; /* below: the owner's place, 0 = it has none */
    _Atomic uint64_t decided;                  /* below: status, and who is to blame above 8 bits */
    _Atomic uint64_t members[PEAL_MEMBER_WORDS]; /* a bit for each rank; stored before `decided` */
    _Atomic uint64_t ended;                      /* below: status + 1 of the owner's part */

    /* How far the owner has come in giving the regions of a context back: see family.h. */
    _Alignas(PEAL_LINE) _Atomic uint64_t gates[PEAL_CONTEXTS];

    /* Whether peers may read the owner's private memory: it holds `probe` at `probe_at`, both
     * written before the window is passed on. `reads` says what the owner found of its peers, once
     * (release; partner: peal_remote_agree). See remote.h. */
    _Alignas(PEAL_LINE) _Atomic uint32_t reads; /* enum peal_reads */
    uint64_t probe_at, probe;

    /* The regions that the owner has made in a context so far, by a number and a hash of all of them:
     * see peal_regions_agree. Two, as a rank may be one ahead of another. */
    _Alignas(PEAL_LINE) _Atomic uint64_t made[PEAL_CONTEXTS][2];

    /* Where the owner's parameters are in the launch of each context: see remote.h for the order.
     */
    _Alignas(PEAL_LINE) _Atomic uint64_t homes[PEAL_CONTEXTS][PEAL_LINE / 8];

    _Alignas(PEAL_LINE) struct peal_call_record history[PEAL_STREAMS][PEAL_CALL_HISTORY];

    struct peal_label labels[PEAL_LABELS];

    /* Where the owner waits, as text; a seqlock: odd while it is written. Empty: not waiting. */
    _Alignas(PEAL_LINE) _Atomic uint32_t wait_version;
    _Atomic uint32_t wait_is_request; /* 1: it waits for a non-blocking call */
    _Atomic uint64_t wait_text[PEAL_WAIT_WORDS];
    _Atomic uint64_t wait_since; /* when it began, by peal_now_ns; 0: not known */

    /* Peers that wait have seen the owner outside any call after `idle_after` - 1 calls and
     * messages, at least since `idle_since`. For reports: the last writer is right enough. */
    _Alignas(PEAL_LINE) _Atomic uint64_t idle_after;
    _Atomic uint64_t idle_since;

    /* Of a mirror (span.h) only: when the owner last gave an account of itself, by peal_now_ns of this host,
     * and the name of its host. 0: this is the owner's own block. */
    _Alignas(PEAL_LINE) _Atomic uint64_t heard_ns;
    _Alignas(PEAL_LINE) char host[PEAL_LINE];

    /* Rank 0's: when a rank last warned that nothing moves (peal_now_ns); the rank that sets it warns. */
    _Alignas(PEAL_LINE) _Atomic uint64_t warned_ns;

    /* Rank 0's: the report of the failure, written by the rank that won `failure` here; complete
     * when report_done is 1 (release; partner: the acquire in peal_team_report). */
    _Alignas(PEAL_LINE) _Atomic uint32_t report_done;
    _Atomic uint64_t report_text[PEAL_REPORT_WORDS];
};
static_assert(offsetof(struct peal_control, failure) == 2 * PEAL_LINE, "identity is two lines");

/* Where a rank sleeps. All of them are together in rank 0's window: with many ranks to a core, a
 * notify to each would otherwise touch a page of each.
 * `sleeping` is set by the owner before it sleeps, and read by a rank that has changed something that
 * it may wait for; see backoff.h for the order. `wake` is the futex; any rank adds to it. `core` is
 * where the owner was when it last waited, and 1; 0: not said (own_core.h). */
struct peal_sleep_slot {
    _Alignas(PEAL_LINE) _Atomic uint32_t sleeping;
    _Atomic uint32_t wake;
    _Atomic uint32_t core;
};

/* A message's first line: sequence number and payload beside each other, so that a small message
 * is one line and needs no flag. Larger payloads follow in the slot's next lines. */
enum { PEAL_SLOT_INLINE = 40 };
struct peal_slot {
    _Alignas(PEAL_LINE) _Atomic uint64_t seq; /* message number + 1; stored last, with release */
    uint32_t signature;
    uint32_t launch;
    uint64_t bytes;
    char payload[PEAL_SLOT_INLINE];
};
static_assert(sizeof(struct peal_slot) == PEAL_LINE, "a slot starts with one line");

/* Read once, by its receiver: the slot stays the sender's memory, and the length that was checked
 * must be the one that is used. */
static inline uint64_t peal_slot_bytes(const struct peal_slot *slot)
{
    return *(const volatile uint64_t *)&slot->bytes;
}

/* Beside it: input and output are one, which all ranks do or none. */
#define PEAL_CALL_IN_PLACE (UINT64_C(1) << 63)
/* And the algorithm, by its place in the table; PEAL_CALL_BY has all bits of it. */
#define PEAL_CALL_BY UINT64_C(0xffff0000)
static inline uint64_t peal_call_by(uint64_t algo)
{
    return (algo + 1) << 16 & PEAL_CALL_BY;
}

static inline uint64_t peal_call_code(uint32_t collective, uint32_t dtype, uint32_t reduce,
                                      uint32_t root)
{
    return (uint64_t)collective << 48 | (uint64_t)(dtype & 0xff) << 40 |
           (uint64_t)(reduce & 0xff) << 32 | (root & 0xffff);
}

#endif
