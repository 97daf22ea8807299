/* SPDX-License-Identifier: Apache-2.0 */
/* What lies in shared memory: the layout of a rank's window.
 *
 *   0            control block: identity, failure word, calls, waits, report
 *   CONTROL      in rank 0's window: the sleep slots of all ranks
 *   ...          mailboxes for point-to-point messages, one per sender
 *   ...          contexts: regions of channels and scratch; in rank 0's window also the cells of
 *                all ranks (family.h). First the pool of each context, one after the other, so that
 *                they share large pages; then address space for what each may need beyond its pool
 *
 * That is the window of a communicator that was opened, in a file of its own. One that was made
 * from another has its parts at several places in the same files, and nothing is populated:
 * windows.h.
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
    PEAL_STREAM_ONESIDED = PEAL_STREAMS, /* of a rank that waits in a one-sided call: of neither */
    PEAL_CALL_HISTORY = 16, /* last calls of each stream that peers can still compare with */
    PEAL_WINDOW_PARAMS = 2, /* of a library kernel: x and y */
    PEAL_WAIT_WORDS = 40,
    PEAL_LABELS = 8, /* user kernels whose names and arguments peers can read */
    PEAL_LABEL_WORDS = 24,
    PEAL_MEMBER_WORDS = 4, /* a bit for each of PEAL_MOST_RANKS */
    PEAL_REPORT_WORDS = 872
};

#define PEAL_CONTROL_MAGIC UINT32_C(0x70656c63)
#define PEAL_CONTROL_VERSION UINT32_C(13)

/* One signal cell. Writer: one rank, or several by atomic add; reader: the window's owner. */
struct peal_cell {
    _Alignas(PEAL_LINE) _Atomic uint64_t value;
};
static_assert(sizeof(struct peal_cell) == PEAL_LINE, "a cell has a line of its own");

/* A call, for peers to compare with theirs. seq is stored last (release) and read first
 * (acquire). */
struct peal_call_record {
    _Atomic uint64_t seq;   /* 1 for the first call of the stream */
    _Atomic uint64_t code;  /* peal_call_code */
    _Atomic uint64_t count; /* elements, or a hash of counts */
    uint64_t pad;
};

/* The name and arguments of a user kernel, for reports. key is stored last (release) and read first
 * and last (acquire). */
struct peal_label {
    _Atomic uint64_t key; /* the call's count, which is a hash of kernel and arguments; 0: none */
    _Atomic uint64_t text[PEAL_LABEL_WORDS];
};

enum peal_life {
    PEAL_LIFE_OPENING,
    PEAL_LIFE_OUTSIDE, /* in no call */
    PEAL_LIFE_INSIDE,
    PEAL_LIFE_LEFT, /* closed */
    PEAL_LIFE_KEPT  /* reserved for a communicator that the rank makes when it needs it */
};

/* The calls of peal/onesided.h, for reports. */
enum peal_onesided_kind {
    PEAL_ONESIDED_NONE,
    PEAL_ONESIDED_PUT,
    PEAL_ONESIDED_GET,
    PEAL_ONESIDED_NOTIFY,
    PEAL_ONESIDED_PUT_NOTIFY,
    PEAL_ONESIDED_FETCH_ADD,
    PEAL_ONESIDED_COMPARE_SWAP,
    PEAL_ONESIDED_WAIT_UNTIL,
    PEAL_ONESIDED_FENCE,
    PEAL_ONESIDED_QUIET,
    PEAL_ONESIDED_KINDS
};

struct peal_control {
    /* Two lines that are written before the window is passed to peers. */
    _Alignas(PEAL_LINE) uint32_t magic;
    uint32_t version;
    uint32_t rank, size;
    int32_t pid;
    uint32_t pool_kib; /* populated bytes of context 0; the same on all ranks */
    uint32_t cores;    /* that the owner may use: peal_cores */
    uint16_t large;    /* 1: the pools have large pages */
    uint16_t lazy;     /* 1: nothing of the pools is populated when opened */
    uint64_t bytes;

    _Alignas(PEAL_LINE) char job[PEAL_LINE]; /* splits: the parent's, a number and the colour */

    /* Written by any rank, once (compare and swap from 0): status | culprit << 8 | finder << 40.
     * Release; the owner's acquire load is in its slow path. */
    _Alignas(PEAL_LINE) _Atomic uint64_t failure;

    _Alignas(PEAL_LINE) _Atomic uint32_t life; /* enum peal_life */
    _Atomic uint32_t stream;                   /* of the call the owner is in */
    _Atomic uint64_t calls[PEAL_STREAMS];      /* the last seq of each stream */
    _Atomic uint64_t letters;                  /* point-to-point messages begun, both ways */
    _Atomic uint32_t moving;  /* 1 while the owner moves non-blocking calls: see peal_team_settle */
    _Atomic uint64_t dropped; /* once it has left: its first non-blocking call that had not ended;
                                 0: none. Written before life (release). */
    _Atomic uint64_t finished; /* non-blocking calls of the owner that have ended */

    /* Of a place (windows.h): 1 from when the owner gives it out until it is cleared; the number of
     * ranks that have closed the communicator; whether the owner has. Release; partners are in
     * windows.c and team.c. */
    _Alignas(PEAL_LINE) _Atomic uint32_t taken;
    _Atomic uint32_t leavers;
    _Atomic uint32_t gone;

    /* Of a meeting after a failure: see survivors.h. Each word has the number of the meeting in its
     * upper half, and is stored with release. Lower halves: */
    _Alignas(PEAL_LINE) _Atomic uint64_t came;   /* the owner's place; 0: it has none */
    _Atomic uint64_t decided;                    /* status | culprit << 8 */
    _Atomic uint64_t members[PEAL_MEMBER_WORDS]; /* a bit for each rank; stored before `decided` */
    _Atomic uint64_t ended;                      /* status + 1 of the owner's part */

    /* The owner's progress in giving back the regions of a context: see family.h. */
    _Alignas(PEAL_LINE) _Atomic uint64_t gates[PEAL_CONTEXTS];

    /* Whether peers may read the owner's private memory, which holds `probe` at `probe_at`; both
     * are written before the window is passed on. `reads` says whether the owner can read its
     * peers, and is written once (release; partner: peal_remote_agree). See remote.h. */
    _Alignas(PEAL_LINE) _Atomic uint32_t reads; /* enum peal_reads */
    uint64_t probe_at, probe;

    /* The number of regions that the owner has made in a context, with a hash of all of them: see
     * peal_regions_agree. Two words, as a rank may be one region ahead of another. */
    _Alignas(PEAL_LINE) _Atomic uint64_t made[PEAL_CONTEXTS][2];

    /* Where the owner's parameters are in the launch of each context: see remote.h for the
     * order. */
    _Alignas(PEAL_LINE) _Atomic uint64_t homes[PEAL_CONTEXTS][PEAL_LINE / 8];

    _Alignas(PEAL_LINE) struct peal_call_record history[PEAL_STREAMS][PEAL_CALL_HISTORY];

    struct peal_label labels[PEAL_LABELS];

    /* Where the owner waits, as text. A seqlock: odd while it is written. Empty: it does not
     * wait. */
    _Alignas(PEAL_LINE) _Atomic uint32_t wait_version;
    _Atomic uint32_t wait_is_request; /* 1: it waits for a non-blocking call */
    _Atomic uint64_t wait_text[PEAL_WAIT_WORDS];
    _Atomic uint64_t wait_since; /* when the wait began, by peal_now_ns; 0: not known */

    /* Waiting peers have seen the owner outside any call after `idle_after` - 1 calls and messages,
     * at least since `idle_since`. For reports: any peer's value will do. */
    _Alignas(PEAL_LINE) _Atomic uint64_t idle_after;
    _Atomic uint64_t idle_since;

    /* Of a mirror (span.h) only: when the owner last sent its status, by peal_now_ns of this host,
     * and the name of its host. 0: this is the owner's block itself. */
    _Alignas(PEAL_LINE) _Atomic uint64_t heard_ns;
    /* One-sided calls of the owner: their number << 8 | enum peal_onesided_kind of the last one. For reports: in a line that
     * no peer reads in a call, as the owner writes it in every such call. */
    _Atomic uint64_t onesided;
    _Alignas(PEAL_LINE) char host[PEAL_LINE];

    /* Rank 0's: when a rank last warned that nothing progresses (peal_now_ns). The rank that sets
     * it prints the warning. */
    _Alignas(PEAL_LINE) _Atomic uint64_t warned_ns;

    /* Rank 0's: the report of the failure, written by the rank that won `failure` here; complete
     * when report_done is 1 (release; partner: the acquire in peal_team_report). */
    _Alignas(PEAL_LINE) _Atomic uint32_t report_done;
    _Atomic uint64_t report_text[PEAL_REPORT_WORDS];
};
static_assert(offsetof(struct peal_control, failure) == 2 * PEAL_LINE, "identity is two lines");

/* Where a rank sleeps. All slots are together in rank 0's window: otherwise a rank that notifies
 * all others would touch a page of each, which is slow with many ranks per core. `sleeping` is set
 * by the owner before it sleeps, and read by a rank that has changed something that the owner may
 * wait for; see backoff.h for the order. `wake` is the futex; any rank adds to it. `core` is 1 +
 * the core where the owner last waited; 0: not known (own_core.h). */
struct peal_sleep_slot {
    _Alignas(PEAL_LINE) _Atomic uint32_t sleeping;
    _Atomic uint32_t wake;
    _Atomic uint32_t core;
};

/* A message's first line: sequence number and payload together, so that a small message is one line
 * and needs no flag. Larger payloads follow in the slot's next lines. */
enum { PEAL_SLOT_INLINE = 40 };
struct peal_slot {
    _Alignas(PEAL_LINE) _Atomic uint64_t seq; /* message number + 1; stored last, with release */
    uint32_t signature;
    uint32_t launch;
    uint64_t bytes;
    char payload[PEAL_SLOT_INLINE];
};
static_assert(sizeof(struct peal_slot) == PEAL_LINE, "a slot starts with one line");

/* The receiver reads the length once: the sender can still write the slot, and the length that is
 * used must be the one that was checked. */
static inline uint64_t peal_slot_bytes(const struct peal_slot *slot)
{
    return *(const volatile uint64_t *)&slot->bytes;
}

/* A call in one word, for comparison and reports: peal_call_code, combined by OR with peal_call_by
 * and PEAL_CALL_IN_PLACE. In place, input and output are the same on all ranks or on none. */
#define PEAL_CALL_IN_PLACE (UINT64_C(1) << 63)
/* All bits of the algorithm, which is its position in the table + 1. */
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
