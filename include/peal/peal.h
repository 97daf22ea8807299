/* SPDX-License-Identifier: Apache-2.0 */
/* peal: collectives between the processes of one host or several, or the threads of one process.
 *
 *     struct peal_comm *comm;
 *     if (peal_comm_open(NULL, &comm) == PEAL_OK) {
 *         peal_allreduce(comm, x, y, count, PEAL_F32, PEAL_SUM);
 *         peal_comm_close(comm);
 *     }
 *
 * Every call returns a status; peal_comm_error has the text of what went wrong. For a time-out, a
 * dead peer or a mismatched call this is a report of which rank waits where, and for which rank.
 *
 * Order. All ranks of a communicator make the same calls in the same order. Blocking calls match
 * blocking calls, and non-blocking calls (peal_i...) match non-blocking calls. A call that differs
 * from its peers' in collective, count, type, operation, root or algorithm ends with PEAL_MISMATCH
 * on every rank that is in it. After a failed collective the communicator cannot be used any more:
 * every later call returns PEAL_CLOSED, even on ranks that had not reached the failed call or had
 * already completed it. peal_comm_shrink makes a new communicator of the remaining ranks. Wrong
 * arguments (PEAL_INVALID) are found before anything is sent; the communicator stays usable.
 *
 * Buffers. Once a call has returned, with whatever status, no peer writes to its buffers. A peer
 * that was stopped in the middle of the call may still read them; its own call then fails. When a
 * communicator has failed, each rank's symmetric memory belongs to that rank alone. Buffers may
 * have any address and any alignment. Input and output either have the same address (in place) or
 * do not overlap; anything else is refused. Counts are in elements, and 0 is allowed. In place
 * means:
 *
 *     allreduce, broadcast, reduce, scan, exscan   send == recv
 *     allgather                                    send is this rank's block of recv, or NULL
 *     gather                                       on the root, send is its block of recv
 *     reduce_scatter                               recv is this rank's block of send
 *     scatter                                      on the root, recv is its block of send
 *     all_to_all                                   never: send == recv is refused
 *
 * allreduce, allgather and reduce_scatter must be in place on all ranks or on none; otherwise they
 * end with PEAL_MISMATCH. With uneven counts (allgather_v, reduce_scatter_v) each rank may choose.
 *
 * Threads. Different communicators may be used from different threads at the same time. One
 * communicator, with its requests, belongs to one thread at a time.
 *
 * Processes. A child that is forked while a communicator is open is not a rank of it. The child may
 * close its copy, which does not affect the group; every other call returns PEAL_INVALID.
 *
 * Memory. Opening takes PEAL_WINDOW_POOL bytes of shared memory per rank: 8 MiB by default, or 16
 * MiB with 5 to 16 ranks where the system provides large pages. Calls take more when they need it,
 * up to a limit that depends neither on their size nor on the number of ranks: 32 MiB for blocking
 * calls and 16 MiB for each of 4 non-blocking calls under way (4 and 2 times PEAL_WINDOW_POOL, if
 * that is set). A user kernel may declare windows of up to 64 MiB. Messages take 256 KiB for each
 * rank that has sent any. Symmetric memory is added as it is allocated. None of this memory has a
 * name in the file system: no other user can open it, and it is gone when the processes have ended.
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

/* The largest number of ranks in a communicator. */
enum { PEAL_MOST_RANKS = 256 };
/* The largest total size, in bytes per rank, of the windows of a user kernel. */
enum { PEAL_MOST_WINDOW_BYTES = 64 << 20 };

/* ---- communicators ---- */

/* A key-value store that all ranks share, such as a launcher's. Both functions return 0 on success.
 * `get` blocks until the key exists, or fails after a time-out of its own; it writes at most cap
 * bytes to value, and their number to len. Keys and values are short texts. */
struct peal_store {
    void *context;
    int (*set)(void *context, const char *key, const void *value, size_t len);
    int (*get)(void *context, const char *key, void *value, size_t cap, size_t *len);
};

/* How to open a communicator. Zero means the default in every field. */
struct peal_open {
    uint32_t
        struct_size; /* sizeof(struct peal_open), or 0: as it is in 0.2.0 (docs/stability.md) */
    uint32_t size;   /* ranks; 0: rank, size and job come from the environment */
    uint32_t rank;
    const char *job; /* a name that distinguishes this group from others on the host */
    const struct peal_store
        *store;               /* where ranks find each other, also on several hosts; may be NULL */
    uint32_t timeout_ms;      /* see peal_comm_set_timeout */
    int quiet;                /* do not print reports; peal_comm_error still has them */
    struct peal_clock *clock; /* of this rank on a simulated machine; NULL: a new one */
};

/* Collective. With NULL, rank and size come from the environment. The variables of these launchers
 * are understood, in this order: `peal exec` (PEAL_RANK, PEAL_SIZE, PEAL_JOB), torchrun (RANK,
 * WORLD_SIZE, MASTER_ADDR, MASTER_PORT), Open MPI (OMPI_COMM_WORLD_RANK, ...), MPICH and others
 * with PMI (PMI_RANK, PMI_SIZE), Slurm (SLURM_PROCID, SLURM_NTASKS). Without any of them there is
 * one rank. All ranks must have the same user and the same version of Peal. Ranks on several hosts
 * meet through a store, or through a service of their launcher: `peal exec --hosts`, PMIx, PMI; see
 * docs/hosts.md. Either all ranks open the communicator or none does. If one rank cannot, every
 * rank returns its status, and peal_comm_error(NULL) has its reason: PEAL_INVALID: no such rank, or
 * a variable that is not understood; PEAL_UNSUPPORTED: several hosts without such a service, or
 * more than PEAL_MOST_RANKS ranks; PEAL_TIMEOUT: some rank did not come; PEAL_PEER_DEAD: the
 * process of a rank has ended; PEAL_NO_MEMORY and PEAL_SYSTEM: a rank has no memory, address space
 * or file descriptors left. */
PEAL_API enum peal_status peal_comm_open(const struct peal_open *options, struct peal_comm **out);

/* Opens one communicator per rank, all in this process: comms[r] is then used by one thread.
 * Everything works as it does between processes. Each of them must be closed. */
PEAL_API enum peal_status peal_comm_open_threads(uint32_t size, struct peal_comm **comms);

/* Collective. Ranks with the same color become a new communicator, ordered by key, then by old
 * rank. A rank with a negative color takes part in the call and gets NULL. Groups may overlap those
 * of other splits. Either all ranks of a group get the communicator or none does; on failure every
 * rank of the group returns the status of the rank that failed, and the old communicator stays
 * usable. */
PEAL_API enum peal_status peal_comm_split(struct peal_comm *comm, int color, int key,
                                          struct peal_comm **out);
/* Collective. Makes another communicator of the same ranks. Calls on the two do not wait for each
 * other and may be made by two threads. Like a split, it opens no file descriptor, and takes memory
 * only when it is used. */
PEAL_API enum peal_status peal_comm_dup(struct peal_comm *comm, struct peal_comm **out);

/* Collective. Like peal_comm_split, but also reserves a twin of the new communicator: a second one
 * of the same ranks. All ranks of a group must call the same one of these two functions. */
PEAL_API enum peal_status peal_comm_split_twin(struct peal_comm *comm, int color, int key,
                                               struct peal_comm **out);
/* Makes the twin of a communicator that peal_comm_split_twin has made; once. Not collective: each
 * rank calls it when it first needs the twin, and waits for no other rank. Messages to a rank that
 * has not made its twin yet are kept for it. Another thread may be in a call on `comm`.
 * PEAL_INVALID: `comm` has no twin, or the twin has been made already. */
PEAL_API enum peal_status peal_comm_twin(struct peal_comm *comm, struct peal_comm **out);

/* After a failure: the ranks that are alive and make this call become a new communicator, in the
 * old order. Every living rank must either call it or close the old communicator. The old one stays
 * failed and must still be closed. */
PEAL_API enum peal_status peal_comm_shrink(struct peal_comm *comm, struct peal_comm **out);

/* Makes the communicator unusable on all ranks: every call that is under way, and every later one,
 * returns PEAL_REVOKED. peal_comm_shrink then makes a new communicator. May be called from any
 * thread, even while another thread is in a call. Not collective; does not wait. For programs that
 * have found an error which Peal cannot see. NULL is ignored. */
PEAL_API void peal_comm_revoke(struct peal_comm *comm);

/* Does not wait for other ranks; NULL is ignored. Requests that have not completed are dropped and
 * end with PEAL_CLOSED. Complete them first, because peers may still read their buffers. Symmetric
 * memory of this communicator becomes invalid. Calls on a closed communicator return PEAL_CLOSED
 * until 16 others have been closed; then its memory is reused, and it must not be passed to any
 * function. */
PEAL_API void peal_comm_close(struct peal_comm *comm);

/* The rank of the caller, and the number of ranks. Both are local calls, and return 0 for a closed
 * communicator. */
PEAL_API uint32_t peal_comm_rank(const struct peal_comm *comm);
PEAL_API uint32_t peal_comm_size(const struct peal_comm *comm);

/* Sets the number of milliseconds without progress after which a call fails with PEAL_TIMEOUT; 0
 * means never. The default is PEAL_TIMEOUT_MS of the environment, or 30 minutes. Long before that,
 * after a minute without progress (PEAL_WARN_MS), a report is printed of which rank waits for
 * which. Applies to later calls and to the one under way. Any thread may call it, so that a
 * watchdog can end a call that waits too long. Opening and splitting have a time-out of their own:
 * the one given to peal_comm_open, otherwise PEAL_TIMEOUT_MS, otherwise a minute. */
PEAL_API void peal_comm_set_timeout(struct peal_comm *comm, uint32_t timeout_ms);

/* Sets a function that a rank calls while it waits in a blocking call of this communicator: every
 * few polls and before every sleep, which then lasts at most 100 us. For programs that have
 * something else to keep moving, such as another library's messages. NULL removes it. Communicators
 * made from this one do not inherit it. To be set while no call of this communicator is under way.
 *
 * The function runs in the waiting thread, inside the call, and should take only microseconds. It
 * may use other communicators, and wait in their calls. On this one it may ask for rank, size and
 * error, set the time-out and test requests; it is not called again meanwhile. Calls that would
 * start or allocate something return PEAL_INVALID and change nothing. It must not close this
 * communicator. A wait that ends after a few polls does not call it, nor does a test of a request,
 * which does not wait. */
PEAL_API void peal_comm_set_idle(struct peal_comm *comm, void (*idle)(void *context),
                                 void *context);

/* Lets the program end a call that waits, for example after a signal. `interrupted` is called about
 * every 20 ms of a wait, in the waiting thread. Once it returns nonzero, the call ends with
 * PEAL_REVOKED, as if this rank had called peal_comm_revoke. It may take long, and must not use
 * this communicator. NULL removes it. Communicators made from this one do not inherit it. To be set
 * while no call of this communicator is under way. */
PEAL_API void peal_comm_set_interrupt(struct peal_comm *comm, int (*interrupted)(void *context),
                                      void *context);

/* Forces one algorithm for a collective ("allreduce", "ring"; see `peal list`); NULL or "" lets
 * Peal choose again. The environment variable PEAL_ALGO="allreduce=ring,broadcast=flat" does the
 * same. Ranks that force different algorithms get PEAL_MISMATCH. Peal still chooses for calls whose
 * memory the forced algorithm cannot use. PEAL_INVALID: no algorithm of this name. */
PEAL_API enum peal_status peal_comm_set_algo(struct peal_comm *comm, const char *collective,
                                             const char *algo);
/* Says which algorithm a call of that many bytes would take, and where the choice comes from. The
 * text is valid until the next call of this function on this communicator. */
PEAL_API const char *peal_comm_explain(struct peal_comm *comm, const char *collective,
                                       uint64_t bytes, int symmetric);

/* The text of the last failure on this communicator, or "" if there was none. With NULL: of the
 * last failed opening in this thread. The text is valid until the next call that fails. */
PEAL_API const char *peal_comm_error(const struct peal_comm *comm);

/* This rank's simulated time so far, in picoseconds; 0 where nothing is simulated.
 *
 * With PEAL_PLATFORM=sim:MACHINE in the environment of peal_comm_open and peal_comm_open_threads,
 * blocking collectives run on that machine (a file, or the name of a built-in one; see
 * docs/simulator.md), and their results are those of the simulation. A collective ends on all ranks
 * when it ends on the last. One that is too large for the slots of the machine's queues becomes a
 * sequence of launches; if none of their sizes fits, the call returns PEAL_UNSUPPORTED, and the
 * report says which slots are missing. Uneven counts take the time of even counts as large as the
 * largest. A message takes the time that it takes on an otherwise idle machine; messages of one
 * sender follow each other. Non-blocking collectives and user kernels run on this host and take no
 * simulated time. Communicators made from this one run on the machine too, each as if it were alone
 * there. A rank has one clock in all of them: what it does in one comes after what it did in
 * another. */
PEAL_API uint64_t peal_comm_simulated_ps(const struct peal_comm *comm);

/* A rank's simulated clock, for communicators that are opened separately: give the same clock to
 * all of them. It may be freed at any time, because communicators keep a reference. NULL is
 * ignored. */
PEAL_API enum peal_status peal_clock_new(struct peal_clock **out);
PEAL_API void peal_clock_free(struct peal_clock *clock);

/* ---- launchers ---- */

/* For programs that start ranks themselves, as `peal run` does. */

/* Writes a name for struct peal_open's `job` that no other group on this host has. 40 bytes are
 * enough; PEAL_INVALID: `cap` is too small. */
PEAL_API enum peal_status peal_job_name(char *out, size_t cap);
/* Checks whether this host has memory for that many ranks, as processes or as threads, and for
 * `bytes` more that the program needs in all. It compares with the memory that the machine has
 * available and with the limits of this process's control groups, because the system grants more
 * than it has. PEAL_NO_MEMORY: `why`, if it is not NULL, gets what is needed and what is
 * available. */
PEAL_API enum peal_status peal_memory_check(uint32_t ranks, int threads, uint64_t bytes, char *why,
                                            size_t cap);

/* ---- statistics and profiling ---- */

/* What a communicator has done on this rank. Counting is always on. */
struct peal_stats {
    uint32_t
        struct_size;   /* sizeof(struct peal_stats), set by the caller; or 0: as it is in 0.2.0 */
    uint64_t calls;    /* blocking and non-blocking calls that succeeded */
    uint64_t failures; /* calls that failed */
    uint64_t bytes;    /* of the program's data: of each call, its larger side */
    uint64_t direct;   /* calls that used peers' memory in place; the others copied it to windows */
    uint64_t wait_ns;  /* waiting for other ranks, in blocking calls, without the first microseconds
                             of each wait, which are spent polling */
    uint64_t sent, sent_bytes;         /* messages; 0 in statistics of one collective */
    uint64_t received, received_bytes; /* likewise */
};
/* The statistics of one collective ("allreduce", "allgather_v"; "kernel" for user kernels); with
 * NULL, of all collectives and messages together. PEAL_INVALID: no such collective. With
 * PEAL_STATS=1 in the environment, rank 0 prints a table of them when the communicator is closed;
 * with PEAL_STATS=all, every rank does. */
PEAL_API enum peal_status peal_comm_stats(const struct peal_comm *comm, const char *collective,
                                          struct peal_stats *out);

/* A call, as an observer sees it. */
struct peal_call_event {
    uint32_t struct_size; /* sizeof(struct peal_call_event) in the library, which may be newer */
    int blocking;         /* 0: started by a peal_i... call */
    const char *name; /* "allreduce", "kernel", "split"; valid as long as the library is loaded */
    const char *algo; /* "ring", or the name of a user kernel; valid during the call */
    uint64_t
        number; /* of the call in its communicator; non-blocking calls are numbered separately */
    uint64_t bytes;          /* as in peal_stats */
    enum peal_status status; /* for `end`: how the call ended */
};

/* For profilers: functions that are called when a call begins and when it ends, in the thread that
 * makes it. A non-blocking call ends inside whichever Peal call completes it. They must not call
 * Peal. */
struct peal_observer {
    uint32_t struct_size; /* sizeof(struct peal_observer), or 0: as it is in 0.2.0 */
    void *context;
    void (*begin)(void *context, const struct peal_call_event *event); /* may be NULL */
    void (*end)(void *context, const struct peal_call_event *event);   /* may be NULL */
};
/* The structure is copied; NULL removes the observer. Communicators made from this one do not
 * inherit it. To be set while no call of this communicator is under way. PEAL_NO_MEMORY;
 * PEAL_UNSUPPORTED: the structure is of a newer version. */
PEAL_API enum peal_status peal_comm_set_observer(struct peal_comm *comm,
                                                 const struct peal_observer *observer);

/* With PEAL_TRACE=FOLDER in the environment, every call and each of its steps is written to a file
 * in that folder, one for all ranks of a job. Perfetto opens it; see docs/runtime.md. */

/* ---- symmetric memory ---- */

/* Collective. Allocates `bytes` on every rank that its peers can address: collectives on this
 * memory need no copy to a window. All ranks must pass the same size, and must pass the same offset
 * within the memory to a collective. It is zeroed and aligned to a page. PEAL_NO_MEMORY on every
 * rank if one rank has not enough. */
PEAL_API enum peal_status peal_symmetric_alloc(struct peal_comm *comm, size_t bytes, void **out);
/* Collective. NULL is ignored. */
PEAL_API enum peal_status peal_symmetric_free(struct peal_comm *comm, void *memory);
/* The address, in this process, of that rank's copy of symmetric memory, for the caller's own loads
 * and stores. NULL if the memory is not symmetric or the rank is on another host. */
PEAL_API void *peal_symmetric_at(struct peal_comm *comm, const void *memory, uint32_t rank);

/* ---- collectives ---- */

/* All of these are collective, and block until this rank's part is done: send may then be
 * overwritten and recv read. Peal never changes send unless it is also recv. PEAL_INVALID: a buffer
 * is NULL and the count is not 0, the type does not have the operation, or the root is not a
 * rank. */

/* Declares a user-defined reduction. `text` has a line like "reduce mine(a, b) = a + b - a * b"
 * (docs/language.md, "User-defined reductions"); `name` says which one if it has several (NULL: the
 * last). *out is an operation for the collectives and kernels of this communicator, and of
 * communicators that are made from it later, until they are closed. Not collective, but all ranks
 * must declare the same reductions in the same order; calls with different ones end with
 * PEAL_MISMATCH. Declaring a reduction again gives the same operation. Contributions are combined
 * from left to right, beginning with rank 0, unless it is declared `associative` or `commutative`;
 * a forced algorithm that would combine them in another order returns PEAL_UNSUPPORTED.
 * PEAL_INVALID: the text is wrong; peal_comm_error says where. PEAL_NO_MEMORY: more than 16
 * reductions. */
PEAL_API enum peal_status peal_reduction_declare(struct peal_comm *comm, const char *text,
                                                 const char *name, enum peal_reduction *out);

/* No rank leaves before all have entered. */
PEAL_API enum peal_status peal_barrier(struct peal_comm *comm);
/* recv = op over all ranks' send, the same bits on every rank. */
PEAL_API enum peal_status peal_allreduce(struct peal_comm *comm, const void *send, void *recv,
                                         uint64_t count, enum peal_dtype dtype,
                                         enum peal_reduction op);
/* The same, but recv is written on the root only; elsewhere it may be NULL. */
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
/* send: count elements; recv on the root: size * count, block r from rank r; elsewhere recv may be
 * NULL. */
PEAL_API enum peal_status peal_gather(struct peal_comm *comm, const void *send, void *recv,
                                      uint64_t count, enum peal_dtype dtype, uint32_t root);
/* send on the root: size * count elements, block r for rank r; elsewhere send may be NULL. recv:
 * count elements. */
PEAL_API enum peal_status peal_scatter(struct peal_comm *comm, const void *send, void *recv,
                                       uint64_t count, enum peal_dtype dtype, uint32_t root);
/* recv on rank r = op over the send of ranks 0 to r, combined in rank order. op must not be
 * PEAL_AVG. */
PEAL_API enum peal_status peal_scan(struct peal_comm *comm, const void *send, void *recv,
                                    uint64_t count, enum peal_dtype dtype, enum peal_reduction op);
/* The same over ranks 0 to r - 1; recv on rank 0 is not changed. */
PEAL_API enum peal_status peal_exscan(struct peal_comm *comm, const void *send, void *recv,
                                      uint64_t count, enum peal_dtype dtype,
                                      enum peal_reduction op);
/* send and recv: size * count elements; block q of send goes to rank q, block q of recv comes from
 * rank q. */
PEAL_API enum peal_status peal_all_to_all(struct peal_comm *comm, const void *send, void *recv,
                                          uint64_t count, enum peal_dtype dtype);

/* Uneven counts. counts[r] is the length of rank r's block in elements, and must be the same on all
 * ranks. offsets[r] is where that block begins in the buffer that has all blocks, and may differ
 * between ranks; with NULL, blocks follow each other without gaps. Blocks that are written must not
 * overlap. The other buffer may lie in a gap between two blocks. */
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

/* This rank's blocks of an all_to_all_v. Each rank needs to know only its own. The count that rank
 * a sends to b must be the count that b receives from a; otherwise the call ends with
 * PEAL_MISMATCH. */
struct peal_blocks {
    const uint64_t *counts;  /* elements to, or from, each rank */
    const uint64_t *offsets; /* NULL: blocks follow each other without gaps */
};
PEAL_API enum peal_status peal_all_to_all_v(struct peal_comm *comm, const void *send,
                                            const struct peal_blocks *send_blocks, void *recv,
                                            const struct peal_blocks *recv_blocks,
                                            enum peal_dtype dtype);

/* ---- non-blocking collectives ---- */

/* These start a call and return. Buffers and arrays must not be changed or freed until the call has
 * completed. If a call cannot be started, there is no request. Work is done inside Peal's calls:
 * every call that blocks, and every test of a request, advances all requests of its thread, on all
 * communicators. Starting never waits for another rank: 4 calls of a communicator are under way at
 * a time, and further ones are queued. */
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

/* Returns PEAL_PENDING while the call is under way. Otherwise returns how it ended and frees the
 * request. A NULL request is PEAL_OK, here and in the waits below. */
PEAL_API enum peal_status peal_request_test(struct peal_request *request);
/* Blocks until the call has ended, returns how, and frees the request. */
PEAL_API enum peal_status peal_request_wait(struct peal_request *request);

/* Several requests, which may be of different communicators. NULL entries count as ended with
 * PEAL_OK; entries that end here become NULL. statuses may be NULL. PEAL_INVALID: requests is
 * NULL. */
/* Blocks until all have ended. Returns PEAL_OK, or the status of the first that failed; statuses[i]
 * is how each ended. */
PEAL_API enum peal_status peal_request_wait_all(struct peal_request **requests, size_t count,
                                                enum peal_status *statuses);
/* Blocks until one has ended, returns how, and stores its index. If all entries are NULL, returns
 * PEAL_OK and stores count. */
PEAL_API enum peal_status peal_request_wait_any(struct peal_request **requests, size_t count,
                                                size_t *index);
/* Returns PEAL_PENDING and changes nothing while any is under way; otherwise like wait_all. */
PEAL_API enum peal_status peal_request_test_all(struct peal_request **requests, size_t count,
                                                enum peal_status *statuses);

/* ---- point to point ---- */

#define PEAL_ANY_SOURCE UINT32_MAX

/* A message of bytes from one rank to another. Messages between the same two ranks with the same
 * tag arrive in order. A send returns when the buffer may be used again, which for a large message
 * is when the receiver has taken it. A receive into a buffer that is too small fails with
 * PEAL_INVALID; one that is larger than the message is allowed, and `got` says how many bytes
 * came. */
PEAL_API enum peal_status peal_send(struct peal_comm *comm, const void *data, uint64_t bytes,
                                    uint32_t to, uint32_t tag);
/* Receives from that rank, or from PEAL_ANY_SOURCE. got and sender may be NULL. */
PEAL_API enum peal_status peal_recv(struct peal_comm *comm, void *data, uint64_t bytes,
                                    uint32_t from, uint32_t tag, uint64_t *got, uint32_t *sender);
/* These start a message and return. The data must not be changed or freed until the request has
 * ended. */
PEAL_API enum peal_status peal_isend(struct peal_comm *comm, const void *data, uint64_t bytes,
                                     uint32_t to, uint32_t tag, struct peal_request **out);
PEAL_API enum peal_status peal_irecv(struct peal_comm *comm, void *data, uint64_t bytes,
                                     uint32_t from, uint32_t tag, struct peal_request **out);
/* Like peal_request_wait, and also says what a receive got. got and sender may be NULL. */
PEAL_API enum peal_status peal_request_wait_recv(struct peal_request *request, uint64_t *got,
                                                 uint32_t *sender);
/* Waits for at most that long. Returns PEAL_PENDING, and keeps the request, if it has not ended by
 * then. The time of repeated calls for one request adds up towards its time-out. */
PEAL_API enum peal_status peal_request_wait_for(struct peal_request *request, uint64_t microseconds,
                                                uint64_t *got, uint32_t *sender);

/* Sends one message and receives one at the same time, so that ranks that send to each other, or
 * around a ring, do not deadlock. The two may have different lengths, tags and peers. */
struct peal_message {
    uint32_t struct_size; /* sizeof(struct peal_message), or 0: as it is in 0.2.0 */
    void *data;           /* not changed when it is sent */
    uint64_t bytes;       /* of a receive: the size of data before, the bytes that came after */
    uint32_t rank; /* the peer; of a receive: PEAL_ANY_SOURCE or a rank before, the sender after */
    uint32_t tag;
};
PEAL_API enum peal_status peal_sendrecv(struct peal_comm *comm, const struct peal_message *out,
                                        struct peal_message *in);

/* Blocks until a message with that tag has come from that rank, or from PEAL_ANY_SOURCE. Says how
 * long it is and who sent it; the message stays for the next receive. bytes and sender may be
 * NULL. */
PEAL_API enum peal_status peal_probe(struct peal_comm *comm, uint32_t from, uint32_t tag,
                                     uint64_t *bytes, uint32_t *sender);
/* The same without waiting: PEAL_PENDING if there is no such message yet. */
PEAL_API enum peal_status peal_iprobe(struct peal_comm *comm, uint32_t from, uint32_t tag,
                                      uint64_t *bytes, uint32_t *sender);

/* ---- user kernels ---- */

/* An argument of a launch, in the order of the kernel's parameters. Dimensions that `dims` does not
 * give follow from the lengths of the buffers. */
enum peal_arg_kind { PEAL_ARG_BUFFER, PEAL_ARG_INT, PEAL_ARG_INTS, PEAL_ARG_REDUCE };
struct peal_arg {
    uint32_t struct_size; /* sizeof(struct peal_arg), the same in all, or 0: as it is in 0.2.0 */
    enum peal_arg_kind kind;
    void *data;                 /* BUFFER */
    uint64_t bytes;             /* BUFFER: its size, at least what the kernel needs */
    uint64_t stride;            /* BUFFER of two dimensions: elements from row to row; 0: columns */
    int64_t value;              /* INT */
    const int64_t *values;      /* INTS */
    size_t nvalues;             /* INTS */
    enum peal_reduction reduce; /* REDUCE */
};

struct peal_dim {
    const char *name;
    int64_t value;
};

/* Loads a kernel from Peal text (see docs/language.md), or the library kernel of that name if text
 * is NULL. name NULL: the last kernel of the text. PEAL_INVALID: the text is wrong; peal_comm_error
 * has file, line and caret. Not collective, but all ranks must load the same text. */
PEAL_API enum peal_status peal_user_kernel_load(struct peal_comm *comm, const char *text,
                                                const char *name, struct peal_user_kernel **out);
/* Collective; blocks. Arguments are checked against the kernel's parameters. Window parameters must
 * be in symmetric memory, aligned to their element size. dtype is the type that T stands for. */
PEAL_API enum peal_status peal_user_kernel_launch(struct peal_user_kernel *kernel,
                                                  enum peal_dtype dtype,
                                                  const struct peal_arg *args, size_t nargs,
                                                  const struct peal_dim *dims, size_t ndims);
/* NULL is ignored. A kernel must be freed even if its communicator has been closed; until then,
 * launches return PEAL_CLOSED. */
PEAL_API void peal_user_kernel_free(struct peal_user_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
