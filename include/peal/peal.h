/* SPDX-License-Identifier: Apache-2.0 */
/* peal: collectives between the processes of one host or several, or the threads of one process.
 *
 *     struct peal_comm *comm;
 *     if (peal_comm_open(NULL, &comm) == PEAL_OK) {
 *         peal_allreduce(comm, x, y, count, PEAL_F32, PEAL_SUM);
 *         peal_comm_close(comm);
 *     }
 *
 * Every call returns a status; peal_comm_error has the text of what went wrong, which for a
 * time-out, a dead peer or a mismatched call is a report of who waits where and for whom.
 *
 * Order. All ranks of a communicator make the same calls in the same order. A blocking call
 * matches blocking calls and a non-blocking one (peal_i...) non-blocking ones. A call that does
 * not match its peers' (another collective, count, type, operation, root or algorithm) ends with
 * PEAL_MISMATCH on every rank that is in it. After a failed collective the communicator is finished:
 * every later call returns PEAL_CLOSED, also on ranks that had not come to the failed one or had
 * ended it, until peal_comm_shrink makes a new one of the ranks that are left.
 * Wrong arguments (PEAL_INVALID) are found before anything is sent and leave it usable.
 *
 * Buffers. Once a call has returned, however it ended, no peer writes to its buffers: a peer that was
 * stopped in it meanwhile may still read them, and its own call then fails. Symmetric memory of a
 * communicator that has failed is each rank's own from then on. Buffers may have any address and any
 * alignment. Input and output are the same address (in place) or do not overlap; anything else is
 * refused. Counts are elements. A count of 0 is legal. In place:
 *
 *     allreduce, broadcast, reduce, scan, exscan   send == recv
 *     allgather                                    send is this rank's block of recv, or NULL
 *     gather                                       on the root, send is its block of recv
 *     reduce_scatter                               recv is this rank's block of send
 *     scatter                                      on the root, recv is its block of send
 *     all_to_all                                   never: send == recv is refused
 *
 * allreduce, allgather and reduce_scatter are in place on all ranks or on none, whatever their size and
 * memory: PEAL_MISMATCH otherwise. With uneven counts (allgather_v, reduce_scatter_v) each rank may
 * choose.
 *
 * Threads. Different communicators may be used from different threads at the same time. One
 * communicator belongs to one thread at a time; its requests too.
 *
 * Processes. A child that is forked while a communicator is open is not a rank of it: it may close
 * its copy, which the group does not notice, and do nothing else with it: calls are PEAL_INVALID.
 *
 * Memory. Opening takes PEAL_WINDOW_POOL bytes of shared memory per rank: 8 MiB by default, and 16
 * with 5 to 16 ranks where the system makes large pages. Calls add to it as they need, whatever
 * their sizes and the number of ranks: blocking ones up to 32 MiB, and 16 for each of 4 non-blocking
 * ones under way (4 and 2 times PEAL_WINDOW_POOL, where that is set); a user's kernel may declare
 * windows of up to 64 MiB. Messages take 256 KiB for each rank that has sent any. Symmetric memory
 * comes on top, as allocated. All of it is memory of the kernel without a name: no other user can
 * open it, and it is gone when the processes are.
 */
#ifndef PEAL_PEAL_H
#define PEAL_PEAL_H

#include <peal/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peal_comm;
struct peal_clock;
struct peal_request;
struct peal_user_kernel;

/* The most ranks of a communicator. */
enum { PEAL_MOST_RANKS = 256 };
/* The most bytes per rank that the windows of a user's kernel may have. */
enum { PEAL_MOST_WINDOW_BYTES = 64 << 20 };

/* ---- communicators ---- */

/* A key-value store that all ranks share, such as a launcher's. Both return 0 on success. `get`
 * blocks until the key is there, or fails after its own time-out; it writes at most cap bytes and
 * the number of them. Keys and values are short texts. */
struct peal_store {
    void *context;
    int (*set)(void *context, const char *key, const void *value, size_t len);
    int (*get)(void *context, const char *key, void *value, size_t cap, size_t *len);
};

/* How to open. Zero means the default everywhere. */
struct peal_open {
    uint32_t
        struct_size; /* sizeof(struct peal_open), or 0: as it is in 0.2.0 (docs/stability.md) */
    uint32_t size;   /* ranks; 0: rank, size and job come from the environment */
    uint32_t rank;
    const char *job; /* what distinguishes this group from others on the host */
    const struct peal_store
        *store;          /* ranks meet by a store instead, also on several hosts; may be NULL */
    uint32_t timeout_ms; /* see peal_comm_set_timeout */
    int quiet;           /* reports are kept for peal_comm_error, not printed */
    struct peal_clock *clock; /* of this rank on a simulated machine; NULL: a new one */
};

/* Collective. NULL opens by the environment. The variables of these launchers are understood, in
 * this order: `peal exec` (PEAL_RANK, PEAL_SIZE, PEAL_JOB), torchrun (RANK, WORLD_SIZE,
 * MASTER_ADDR, MASTER_PORT), Open MPI (OMPI_COMM_WORLD_RANK, ...), MPICH and others with PMI
 * (PMI_RANK, PMI_SIZE), Slurm (SLURM_PROCID, SLURM_NTASKS). Without any of them: one rank.
 * Ranks of several users, or of different versions, are refused. Ranks on several hosts meet through a store, or
 * a service of their launcher: `peal exec --hosts`, PMIx, PMI; see docs/hosts.md.
 * All ranks open or none does: what keeps one from it is returned on all, with its reason.
 * PEAL_INVALID: no such rank, a variable that is not understood; PEAL_UNSUPPORTED: several hosts
 * without such a service, more than PEAL_MOST_RANKS; PEAL_TIMEOUT: not all ranks came; PEAL_PEER_DEAD: one has ended before it
 * came, as `peal exec` knows, or while it opened; PEAL_NO_MEMORY and PEAL_SYSTEM: one has no memory,
 * address space or descriptors left. */
PEAL_API enum peal_status peal_comm_open(const struct peal_open *how, struct peal_comm **out);

/* Makes `size` communicators, one for each rank, all in this process: comms[r] is then used by
 * one thread. Everything works as between processes. All must be closed. */
PEAL_API enum peal_status peal_comm_open_threads(uint32_t size, struct peal_comm **comms);

/* Collective. Ranks with the same color make a new communicator, ordered by key, then by old rank.
 * A negative color takes part and gets NULL. Groups may overlap those of other splits. A group has its
 * communicator on all of its ranks or on none; what kept one from it is returned on all of them, and the
 * old communicator goes on. */
PEAL_API enum peal_status peal_comm_split(struct peal_comm *comm, int color, int key,
                                          struct peal_comm **out);
/* Collective. The same ranks again: calls on one and on the other do not wait for each other, and may be
 * made by two threads. Like a split, it opens no descriptor and takes memory when it is used. */
PEAL_API enum peal_status peal_comm_dup(struct peal_comm *comm, struct peal_comm **out);

/* Collective. As peal_comm_split, and keeps room for a twin of the new communicator: another one of the same
 * ranks. All ranks of a group call this one, or all the other. */
PEAL_API enum peal_status peal_comm_split_twin(struct peal_comm *comm, int color, int key,
                                               struct peal_comm **out);
/* Makes the twin of a communicator from peal_comm_split_twin, once. Not collective: each rank makes it
 * when it first needs it and waits for no other; messages to a rank that has not made it yet wait there.
 * Another thread may be in a call of `comm`. PEAL_INVALID: it has none, or was asked before. */
PEAL_API enum peal_status peal_comm_twin(struct peal_comm *comm, struct peal_comm **out);

/* After a failure: the ranks that are alive and make this call become a new communicator, in the
 * old order. All living ranks must call it, or close the old one, which stays failed and still
 * wants closing. */
PEAL_API enum peal_status peal_comm_shrink(struct peal_comm *comm, struct peal_comm **out);

/* Ends the communicator on all ranks: every call that is under way, and every later one, returns
 * PEAL_REVOKED, until peal_comm_shrink makes a new one. From any thread, also while another is in a
 * call; not collective, and does not wait. For programs that have seen something go wrong which Peal
 * cannot see. NULL is ignored. */
PEAL_API void peal_comm_revoke(struct peal_comm *comm);

/* Does not wait for other ranks; NULL is ignored. Requests that have not completed are dropped, and end with
 * PEAL_CLOSED: their buffers may still be read by peers, so complete them first. Symmetric memory
 * of this communicator becomes invalid. A closed communicator answers PEAL_CLOSED to every call
 * until 16 others have been closed; then its memory is used again. */
PEAL_API void peal_comm_close(struct peal_comm *comm);

/* This rank, and the number of ranks; known without asking anyone. 0 of one that is closed. */
PEAL_API uint32_t peal_comm_rank(const struct peal_comm *comm);
PEAL_API uint32_t peal_comm_size(const struct peal_comm *comm);

/* Milliseconds without progress after which a call fails with PEAL_TIMEOUT; 0 = never. The
 * default is PEAL_TIMEOUT_MS of the environment, or 30 minutes; long before, after a minute without
 * progress (PEAL_WARN_MS), a report of who waits for whom is printed. Applies to later calls, and to
 * the one under way: any thread may call it, so that a watchdog can end a call that waits too long.
 * Opening and the making of new communicators have a time-out of their own: what was given to
 * peal_comm_open, PEAL_TIMEOUT_MS, or a minute. */
PEAL_API void peal_comm_set_timeout(struct peal_comm *comm, uint32_t timeout_ms);

/* What a rank does while it waits in a blocking call of this communicator: `idle` is called with its
 * context every few polls and before every sleep, which then lasts 100 us at most. For programs that
 * have something else to drive, such as another library's messages. NULL ends it. Communicators
 * made from this one have none.
 *
 * It runs in the waiting thread, inside the call, and should take microseconds. It may use other
 * communicators, also waiting in them. On this one it may ask for rank, size and error, set the
 * time-out and test requests, and is not called again meanwhile; whatever starts or allocates
 * something returns PEAL_INVALID and changes nothing. It must not close it. A wait that ends while still
 * polling never calls it. Tests of requests do not wait, so they do not call it either. To be set while no call of this communicator is under way. */
PEAL_API void peal_comm_set_idle(struct peal_comm *comm, void (*idle)(void *context),
                                 void *context);

/* Lets the program end a call that waits: `interrupted` is asked about every 20 ms of a wait, in the
 * waiting thread, and once it returns nonzero the call ends with PEAL_REVOKED, as if this rank had called
 * peal_comm_revoke. For signals and the like. It may take its time and must not use this
 * communicator. NULL ends it. Communicators made from this one have none. To be set while no call
 * of this communicator is under way. */
PEAL_API void peal_comm_set_interrupt(struct peal_comm *comm, int (*interrupted)(void *context),
                                      void *context);

/* Forces one algorithm for a collective ("allreduce", "ring"; see `peal list`); NULL or "" gives
 * the choice back. The environment variable PEAL_ALGO="allreduce=ring,broadcast=flat" does the
 * same. Ranks that force different ones get PEAL_MISMATCH. One that the memory does not allow is not
 * taken. PEAL_INVALID if there is none of this name. */
PEAL_API enum peal_status peal_comm_set_algo(struct peal_comm *comm, const char *collective,
                                             const char *algo);
/* Why this algorithm: which one a call of that many bytes would take, and from where the choice
 * comes. The text lives until the next call of this function on this communicator. */
PEAL_API const char *peal_comm_explain(struct peal_comm *comm, const char *collective,
                                       uint64_t bytes, int symmetric);

/* The text of the last failure on this communicator, "" if there was none. NULL: of the last open
 * that failed in this thread. Lives until the next call that fails. */
PEAL_API const char *peal_comm_error(const struct peal_comm *comm);

/* With PEAL_PLATFORM=sim:MACHINE in the environment of peal_comm_open and peal_comm_open_threads,
 * blocking collectives run on that machine (a file or a built-in's name, see docs/simulator.md):
 * their results are the simulation's, and this is this rank's simulated time so far, in
 * picoseconds. A collective ends on all ranks when it ends on the last. One that is too large for
 * the slots of the machine's queues is a sequence of launches; where no size of them ends, it is
 * PEAL_UNSUPPORTED, and the report says which slots are missing. Uneven counts take the
 * time of even ones as large as the largest. A message takes what it does on a machine that is
 * idle otherwise, and those of a sender follow each other. Non-blocking collectives and user
 * kernels run on this host and take none. Communicators made from this one run on the machine too,
 * each as if it were alone there, and a rank has one clock in all of them: what it does in one
 * comes after what it did in another. 0 on this host itself. */
PEAL_API uint64_t peal_comm_simulated_ps(const struct peal_comm *comm);

/* A rank's clock, for communicators that are opened one by one and not made from each other: give
 * all of them the same. Communicators keep it: it may be freed at any time. NULL is ignored. */
PEAL_API enum peal_status peal_clock_new(struct peal_clock **out);
PEAL_API void peal_clock_free(struct peal_clock *clock);

/* ---- launchers ---- */

/* For programs that start ranks themselves, as `peal run` does. */

/* A name for struct peal_open's `job` that no other group on this host has. PEAL_INVALID: no room, 40
 * bytes will do. */
PEAL_API enum peal_status peal_job_name(char *out, size_t cap);
/* Is there memory for that many ranks on this host, as processes or as threads, and for `bytes` more of
 * their own, all together? What the machine has available and what the control groups of this process
 * leave are checked, because the system promises more than it has. PEAL_NO_MEMORY: `why`, if it is
 * not NULL, gets what is needed and what is available. */
PEAL_API enum peal_status peal_memory_check(uint32_t ranks, int threads, uint64_t bytes, char *why,
                                            size_t cap);

/* ---- statistics and profiling ---- */

/* What a communicator has done on this rank. Counting is always on. */
struct peal_stats {
    uint32_t
        struct_size;   /* sizeof(struct peal_stats), set by the caller; or 0: as it is in 0.2.0 */
    uint64_t calls;    /* blocking and non-blocking ones that ended well */
    uint64_t failures; /* that did not */
    uint64_t bytes;    /* of the program's data in them, each call's larger side */
    uint64_t direct;   /* calls in which peers' memory was used where it is; the others staged it */
    uint64_t wait_ns;  /* waiting for other ranks, in blocking calls; the first microseconds of
                             each wait, which are spent polling, are not measured */
    uint64_t sent, sent_bytes;         /* messages; only in the total */
    uint64_t received, received_bytes; /* likewise */
};
/* Of one collective ("allreduce", "allgather_v"; "kernel" for user kernels), or of all together and
 * messages if it is NULL. PEAL_INVALID: no such collective. With PEAL_STATS=1 in the environment, rank
 * 0 prints a table of them when the communicator is closed; with PEAL_STATS=all, every rank does. */
PEAL_API enum peal_status peal_comm_stats(const struct peal_comm *comm, const char *collective,
                                          struct peal_stats *out);

/* A call, as an observer sees it. */
struct peal_call_event {
    uint32_t
        struct_size;  /* sizeof(struct peal_call_event) of the library: later ones may have more */
    int blocking;     /* 0: started by a peal_i... call */
    const char *name; /* "allreduce", "kernel", "split"; lives as long as the library */
    const char *algo; /* "ring", or the kernel's name, which lives as long as the call */
    uint64_t number;  /* of the call in its communicator; blocking ones and others count apart */
    uint64_t bytes;   /* as in peal_stats */
    enum peal_status status; /* at the end: how it ended */
};

/* For profilers: called in the thread that makes the call, when it begins and when it ends. A
 * non-blocking call ends in whatever call of Peal's moves it last. They must not call Peal. */
struct peal_observer {
    uint32_t struct_size; /* sizeof(struct peal_observer), or 0: as it is in 0.2.0 */
    void *context;
    void (*begin)(void *context, const struct peal_call_event *event); /* may be NULL */
    void (*end)(void *context, const struct peal_call_event *event);   /* may be NULL */
};
/* The structure is copied; NULL ends it. Communicators made from this one have none. To be set while no
 * call of this communicator is under way. PEAL_NO_MEMORY, or PEAL_UNSUPPORTED for a newer structure. */
PEAL_API enum peal_status peal_comm_set_observer(struct peal_comm *comm,
                                                 const struct peal_observer *observer);

/* With PEAL_TRACE=FOLDER in the environment, every call and every step of it that ran is written to a
 * file in that folder, one for all ranks of a job, which Perfetto opens: see docs/runtime.md. */

/* ---- symmetric memory ---- */

/* Collective. Every rank gets `bytes` of memory that peers can address: collectives on it need no
 * staging copy. All ranks must pass the same size, and to collectives the same place within it.
 * Zeroed, aligned to a page. PEAL_NO_MEMORY on every rank if one cannot. */
PEAL_API enum peal_status peal_symmetric_alloc(struct peal_comm *comm, size_t bytes, void **out);
/* Collective. NULL is ignored. */
PEAL_API enum peal_status peal_symmetric_free(struct peal_comm *comm, void *memory);
/* Where that rank's copy of symmetric memory is; NULL if there is none, or it is on another host. For the
 * caller's own loads and stores. */
PEAL_API void *peal_symmetric_at(struct peal_comm *comm, const void *memory, uint32_t rank);

/* ---- collectives ---- */

/* All of these are collective and block until this rank's part is done: send may be written and recv
 * be read. Buffers stay the caller's; send is not changed unless it is recv. PEAL_INVALID: a
 * buffer that is NULL where elements are, a type that lacks the operation, a root that is not
 * a rank. */

/* Declares a user-defined reduction: `text` has a line like "reduce mine(a, b) = a + b - a * b" (docs/language.md,
 * "User-defined reductions"), `name` says which one if it has several (NULL: the last). *out is an operation for the
 * collectives and kernels of this communicator, and of communicators made from it afterwards, until they are closed. Local;
 * all ranks declare the same ones in the same order, and ranks that pass different ones get PEAL_MISMATCH. Declaring one
 * again gives the same operation. The contributions are combined from rank 0 on, from the left, unless it is declared
 * `associative` or `commutative`; a forced algorithm that would move them otherwise is PEAL_UNSUPPORTED.
 * PEAL_INVALID: what is wrong with the text is in peal_comm_error. PEAL_NO_MEMORY: there are more than 16. */
PEAL_API enum peal_status peal_reduction_declare(struct peal_comm *comm, const char *text,
                                                 const char *name, enum peal_reduction *out);

/* No rank leaves before all have entered. */
PEAL_API enum peal_status peal_barrier(struct peal_comm *comm);
/* recv = op over all ranks' send, the same bits on every rank. */
PEAL_API enum peal_status peal_allreduce(struct peal_comm *comm, const void *send, void *recv,
                                         uint64_t count, enum peal_dtype dtype,
                                         enum peal_reduction op);
/* recv on the root only; elsewhere it may be NULL. */
PEAL_API enum peal_status peal_reduce(struct peal_comm *comm, const void *send, void *recv,
                                      uint64_t count, enum peal_dtype dtype, enum peal_reduction op,
                                      uint32_t root);
/* buffer: read on the root, written everywhere else. */
PEAL_API enum peal_status peal_broadcast(struct peal_comm *comm, void *buffer, uint64_t count,
                                         enum peal_dtype dtype, uint32_t root);
/* send: count elements; recv: size * count, block r from rank r. */
PEAL_API enum peal_status peal_allgather(struct peal_comm *comm, const void *send, void *recv,
                                         uint64_t count, enum peal_dtype dtype);
/* send: size * count elements; recv: count, this rank's block of the reduction. */
PEAL_API enum peal_status peal_reduce_scatter(struct peal_comm *comm, const void *send, void *recv,
                                              uint64_t count, enum peal_dtype dtype,
                                              enum peal_reduction op);
/* send: count elements; recv on the root: size * count, block r from rank r; elsewhere NULL will
 * do. */
PEAL_API enum peal_status peal_gather(struct peal_comm *comm, const void *send, void *recv,
                                      uint64_t count, enum peal_dtype dtype, uint32_t root);
/* send on the root: size * count elements, block r for rank r; elsewhere NULL will do. recv:
 * count. */
PEAL_API enum peal_status peal_scatter(struct peal_comm *comm, const void *send, void *recv,
                                       uint64_t count, enum peal_dtype dtype, uint32_t root);
/* recv on rank r = op over the send of ranks 0 to r, lower ranks on the left. No PEAL_AVG. */
PEAL_API enum peal_status peal_scan(struct peal_comm *comm, const void *send, void *recv,
                                    uint64_t count, enum peal_dtype dtype, enum peal_reduction op);
/* The same over ranks 0 to r - 1: rank 0's recv is not touched. */
PEAL_API enum peal_status peal_exscan(struct peal_comm *comm, const void *send, void *recv,
                                      uint64_t count, enum peal_dtype dtype,
                                      enum peal_reduction op);
/* send and recv: size * count; block q of send goes to rank q, block q of recv comes from it. */
PEAL_API enum peal_status peal_all_to_all(struct peal_comm *comm, const void *send, void *recv,
                                          uint64_t count, enum peal_dtype dtype);

/* Uneven counts. counts[r], in elements, is of rank r's block and the same on all ranks. offsets[r]
 * is where it begins in the side that has all blocks, and may differ between ranks; NULL: blocks
 * follow each other. Blocks that are written must not overlap; the other side may lie between two
 * of them. */
PEAL_API enum peal_status peal_allgather_v(struct peal_comm *comm, const void *send, void *recv,
                                           const uint64_t *counts, const uint64_t *offsets,
                                           enum peal_dtype dtype);
PEAL_API enum peal_status peal_reduce_scatter_v(struct peal_comm *comm, const void *send,
                                                void *recv, const uint64_t *counts,
                                                const uint64_t *offsets, enum peal_dtype dtype,
                                                enum peal_reduction op);
PEAL_API enum peal_status peal_gather_v(struct peal_comm *comm, const void *send, void *recv,
                                        const uint64_t *counts, const uint64_t *offsets,
                                        enum peal_dtype dtype, uint32_t root);
PEAL_API enum peal_status peal_scatter_v(struct peal_comm *comm, const void *send, void *recv,
                                         const uint64_t *counts, const uint64_t *offsets,
                                         enum peal_dtype dtype, uint32_t root);

/* This rank's blocks of an all_to_all_v; every rank knows its own only. What rank a sends to b must be
 * what b receives from a: PEAL_MISMATCH otherwise. */
struct peal_blocks {
    const uint64_t *counts;  /* elements for, or from, each rank */
    const uint64_t *offsets; /* NULL: blocks follow each other */
};
PEAL_API enum peal_status peal_all_to_all_v(struct peal_comm *comm, const void *send,
                                            const struct peal_blocks *send_blocks, void *recv,
                                            const struct peal_blocks *recv_blocks,
                                            enum peal_dtype dtype);

/* ---- non-blocking collectives ---- */

/* Start and return; buffers and arrays belong to the call until it has completed. A failure to
 * start gives no request. Work is done inside Peal's calls: every call that blocks, and every test of a
 * request, moves all that its thread has under way, on all communicators. Starting never waits for
 * another rank: 4 calls of a communicator are under way at a time, further ones stand in a queue. */
PEAL_API enum peal_status peal_ibarrier(struct peal_comm *comm, struct peal_request **out);
PEAL_API enum peal_status peal_iallreduce(struct peal_comm *comm, const void *send, void *recv,
                                          uint64_t count, enum peal_dtype dtype,
                                          enum peal_reduction op, struct peal_request **out);
PEAL_API enum peal_status peal_ireduce(struct peal_comm *comm, const void *send, void *recv,
                                       uint64_t count, enum peal_dtype dtype,
                                       enum peal_reduction op, uint32_t root,
                                       struct peal_request **out);
PEAL_API enum peal_status peal_ibroadcast(struct peal_comm *comm, void *buffer, uint64_t count,
                                          enum peal_dtype dtype, uint32_t root,
                                          struct peal_request **out);
PEAL_API enum peal_status peal_iallgather(struct peal_comm *comm, const void *send, void *recv,
                                          uint64_t count, enum peal_dtype dtype,
                                          struct peal_request **out);
PEAL_API enum peal_status peal_ireduce_scatter(struct peal_comm *comm, const void *send, void *recv,
                                               uint64_t count, enum peal_dtype dtype,
                                               enum peal_reduction op, struct peal_request **out);
PEAL_API enum peal_status peal_igather(struct peal_comm *comm, const void *send, void *recv,
                                       uint64_t count, enum peal_dtype dtype, uint32_t root,
                                       struct peal_request **out);
PEAL_API enum peal_status peal_iscatter(struct peal_comm *comm, const void *send, void *recv,
                                        uint64_t count, enum peal_dtype dtype, uint32_t root,
                                        struct peal_request **out);
PEAL_API enum peal_status peal_iscan(struct peal_comm *comm, const void *send, void *recv,
                                     uint64_t count, enum peal_dtype dtype, enum peal_reduction op,
                                     struct peal_request **out);
PEAL_API enum peal_status peal_iexscan(struct peal_comm *comm, const void *send, void *recv,
                                       uint64_t count, enum peal_dtype dtype,
                                       enum peal_reduction op, struct peal_request **out);
PEAL_API enum peal_status peal_iall_to_all(struct peal_comm *comm, const void *send, void *recv,
                                           uint64_t count, enum peal_dtype dtype,
                                           struct peal_request **out);
PEAL_API enum peal_status peal_iallgather_v(struct peal_comm *comm, const void *send, void *recv,
                                            const uint64_t *counts, const uint64_t *offsets,
                                            enum peal_dtype dtype, struct peal_request **out);
PEAL_API enum peal_status peal_ireduce_scatter_v(struct peal_comm *comm, const void *send,
                                                 void *recv, const uint64_t *counts,
                                                 const uint64_t *offsets, enum peal_dtype dtype,
                                                 enum peal_reduction op, struct peal_request **out);
PEAL_API enum peal_status peal_igather_v(struct peal_comm *comm, const void *send, void *recv,
                                         const uint64_t *counts, const uint64_t *offsets,
                                         enum peal_dtype dtype, uint32_t root,
                                         struct peal_request **out);
PEAL_API enum peal_status peal_iscatter_v(struct peal_comm *comm, const void *send, void *recv,
                                          const uint64_t *counts, const uint64_t *offsets,
                                          enum peal_dtype dtype, uint32_t root,
                                          struct peal_request **out);
PEAL_API enum peal_status peal_iall_to_all_v(struct peal_comm *comm, const void *send,
                                             const struct peal_blocks *send_blocks, void *recv,
                                             const struct peal_blocks *recv_blocks,
                                             enum peal_dtype dtype, struct peal_request **out);

/* PEAL_PENDING while it runs; otherwise how it ended, and the request is gone. NULL is PEAL_OK, here
 * and wherever a request is waited for. */
PEAL_API enum peal_status peal_request_test(struct peal_request *request);
/* Blocks until it has ended; the request is gone. */
PEAL_API enum peal_status peal_request_wait(struct peal_request *request);

/* Several requests, which may be of different communicators. Entries that are NULL have ended well;
 * those that end here become NULL. statuses may be NULL. PEAL_INVALID: no array. */
/* Blocks until all have ended. PEAL_OK, or how the first that failed ended; statuses[i] is how each
 * did. */
PEAL_API enum peal_status peal_request_wait_all(struct peal_request **requests, size_t count,
                                                enum peal_status *statuses);
/* Blocks until one has ended: how it did, and which one it was. With none at all, PEAL_OK and
 * count. */
PEAL_API enum peal_status peal_request_wait_any(struct peal_request **requests, size_t count,
                                                size_t *index);
/* PEAL_PENDING while any of them runs, and all are still there; otherwise as wait_all. */
PEAL_API enum peal_status peal_request_test_all(struct peal_request **requests, size_t count,
                                                enum peal_status *statuses);

/* ---- point to point ---- */

#define PEAL_ANY_SOURCE UINT32_MAX

/* Bytes from one rank to another; messages of one pair with one tag arrive in order. A send returns
 * when the buffer may be used again, which for a large message is when the receiver has taken it.
 * Receiving fewer bytes than were sent fails with PEAL_INVALID; more is legal, `got` says how many
 * came. */
PEAL_API enum peal_status peal_send(struct peal_comm *comm, const void *data, uint64_t bytes,
                                    uint32_t to, uint32_t tag);
/* From that rank, or PEAL_ANY_SOURCE. got and sender may be NULL. */
PEAL_API enum peal_status peal_recv(struct peal_comm *comm, void *data, uint64_t bytes,
                                    uint32_t from, uint32_t tag, uint64_t *got, uint32_t *sender);
/* Start and return: the data belongs to the call until its request has ended. */
PEAL_API enum peal_status peal_isend(struct peal_comm *comm, const void *data, uint64_t bytes,
                                     uint32_t to, uint32_t tag, struct peal_request **out);
PEAL_API enum peal_status peal_irecv(struct peal_comm *comm, void *data, uint64_t bytes,
                                     uint32_t from, uint32_t tag, struct peal_request **out);
/* As peal_request_wait, and says what a receive got; got and sender may be NULL. */
PEAL_API enum peal_status peal_request_wait_recv(struct peal_request *request, uint64_t *got,
                                                 uint32_t *sender);
/* Waits for at most that long: PEAL_PENDING if it has not ended by then, and the request is still
 * there. Time-outs and dead peers are seen as by wait, over all such calls for a request. */
PEAL_API enum peal_status peal_request_wait_for(struct peal_request *request, uint64_t microseconds,
                                                uint64_t *got, uint32_t *sender);

/* One message out and one in, at the same time: ranks that send to each other, or round a ring, do
 * not wait for each other. The two may have different lengths, tags and peers. */
struct peal_message {
    uint32_t struct_size; /* sizeof(struct peal_message), or 0: as it is in 0.2.0 */
    void *data;           /* only read where it is sent */
    uint64_t bytes;       /* received: room before, how many came after */
    uint32_t rank;        /* to, or from; received: PEAL_ANY_SOURCE before, the sender after */
    uint32_t tag;
};
PEAL_API enum peal_status peal_sendrecv(struct peal_comm *comm, const struct peal_message *out,
                                        struct peal_message *in);

/* Blocks until a message of that tag has come from that rank, or PEAL_ANY_SOURCE, and says how long
 * it is and of whom; the message is left for the next receive. bytes and sender may be NULL. */
PEAL_API enum peal_status peal_probe(struct peal_comm *comm, uint32_t from, uint32_t tag,
                                     uint64_t *bytes, uint32_t *sender);
/* The same without waiting: PEAL_PENDING if there is none yet. */
PEAL_API enum peal_status peal_iprobe(struct peal_comm *comm, uint32_t from, uint32_t tag,
                                      uint64_t *bytes, uint32_t *sender);

/* ---- user kernels ---- */

/* An argument of a launch, in the order of the kernel's parameters. Dimensions are those that `dims`
 * gives; the others follow from the lengths of buffers. */
enum peal_arg_kind { PEAL_ARG_BUFFER, PEAL_ARG_INT, PEAL_ARG_INTS, PEAL_ARG_REDUCE };
struct peal_arg {
    uint32_t struct_size; /* sizeof(struct peal_arg), the same in all, or 0: as it is in 0.2.0 */
    enum peal_arg_kind kind;
    void *data;                 /* BUFFER */
    uint64_t bytes;             /* BUFFER: how much there is; at least what the kernel needs */
    uint64_t stride;            /* BUFFER of two dimensions: elements per row; 0 = its columns */
    int64_t value;              /* INT */
    const int64_t *values;      /* INTS */
    size_t nvalues;             /* INTS */
    enum peal_reduction reduce; /* REDUCE */
};

struct peal_dim {
    const char *name;
    int64_t value;
};

/* A kernel from Peal text (see docs/language.md), or the built-in of that name if text is NULL.
 * name NULL: the text's last kernel. Bad text: PEAL_INVALID, and peal_comm_error has file, line and
 * caret. Not collective; all ranks must load the same text. */
PEAL_API enum peal_status peal_user_kernel_load(struct peal_comm *comm, const char *text,
                                                const char *name, struct peal_user_kernel **out);
/* Collective, blocking. Arguments are checked against the kernel's parameters; window parameters
 * must be in symmetric memory, at a multiple of their elements' size. dtype is what T stands for. */
PEAL_API enum peal_status peal_user_kernel_launch(struct peal_user_kernel *kernel,
                                                  enum peal_dtype dtype,
                                                  const struct peal_arg *args, size_t nargs,
                                                  const struct peal_dim *dims, size_t ndims);
/* NULL is ignored. Also after its communicator was closed, when all it can be is freed: a launch
 * is PEAL_CLOSED. */
PEAL_API void peal_user_kernel_free(struct peal_user_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
