/* SPDX-License-Identifier: Apache-2.0 */
/* peal: collectives between the processes of one host, or the threads of one process.
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
 * communicator that has failed is each rank's own from then on. Any address, any alignment. Input and output are the same address (in place) or do not
 * overlap; anything else is refused. Counts are elements. A count of 0 is legal. In place:
 * allreduce, broadcast, reduce: send == recv. allgather: send is the own block of recv, or NULL.
 * reduce_scatter, scatter: recv is the own block of send (scatter: on the root). gather: on the
 * root, send is the own block of recv. all_to_all: send == recv is refused. allreduce, allgather and
 * reduce_scatter are in place on all ranks or on none, whatever their size and memory: PEAL_MISMATCH
 * otherwise. With uneven counts (allgather_v, reduce_scatter_v) each rank does as it likes.
 *
 * Threads. Different communicators may be used from different threads at the same time. One
 * communicator belongs to one thread at a time; its requests too.
 *
 * Processes. A child that is forked while a communicator is open is no rank of it: it may close its
 * copy, which the group does not notice, and do nothing else with it.
 *
 * Memory. Opening takes PEAL_WINDOW_POOL bytes of shared memory per rank: 8 MiB by default, and 16
 * with 5 to 16 ranks where the system makes large pages. Calls add to it as they need, whatever
 * their sizes and the number of ranks: blocking ones up to 32 MiB, and 16 for each of 4 non-blocking
 * ones under way (4 and 2 times PEAL_WINDOW_POOL, where that is set); a user's kernel may declare
 * windows of up to 64 MiB. Messages take 256 KiB for each rank that has sent any. Symmetric memory
 * comes on top, as allocated. All of it is memory of the kernel without a name: nobody else can
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
    uint32_t struct_size; /* sizeof(struct peal_open), or 0: as it is in 0.2.0 (docs/stability.md) */
    uint32_t size; /* ranks; 0: rank, size and job come from the environment */
    uint32_t rank;
    const char *job;                /* what tells this group from others on the host */
    const struct peal_store *store; /* agrees on the job by a store instead; may be NULL */
    uint32_t timeout_ms;            /* see peal_comm_set_timeout */
    int quiet;                      /* reports are kept for peal_comm_error, not printed */
    struct peal_clock *clock;       /* of this rank on a simulated machine; NULL: a new one */
};

/* Collective. NULL opens by the environment. The variables of these launchers are understood, in
 * this order: `peal exec` (PEAL_RANK, PEAL_SIZE, PEAL_JOB), torchrun (RANK, WORLD_SIZE,
 * MASTER_ADDR, MASTER_PORT), Open MPI (OMPI_COMM_WORLD_RANK, ...), MPICH and others with PMI
 * (PMI_RANK, PMI_SIZE), Slurm (SLURM_PROCID, SLURM_NTASKS). Without any of them: one rank.
 * Ranks on several hosts, of several users, or of different versions are refused.
 * PEAL_INVALID: no such rank, a variable that is not understood; PEAL_UNSUPPORTED: several hosts,
 * more than PEAL_MOST_RANKS; PEAL_TIMEOUT: not all ranks came. */
PEAL_API enum peal_status peal_comm_open(const struct peal_open *how, struct peal_comm **out);

/* Makes `size` communicators, one for each rank, all in this process: comms[r] is then used by
 * one thread. Everything works as between processes. All must be closed. */
PEAL_API enum peal_status peal_comm_open_threads(uint32_t size, struct peal_comm **comms);

/* Collective. Ranks with the same color make a new communicator, ordered by key, then by old rank.
 * A negative color takes part and gets NULL. Groups may overlap those of other splits. */
PEAL_API enum peal_status peal_comm_split(struct peal_comm *comm, int color, int key,
                                          struct peal_comm **out);
/* Collective. The same ranks again, with memory of their own: calls on one and on the other do not
 * wait for each other, and may be made by two threads. */
PEAL_API enum peal_status peal_comm_dup(struct peal_comm *comm, struct peal_comm **out);

/* After a failure: the ranks that are alive and make this call become a new communicator, in the
 * old order. All living ranks must call it, or close the old one, which stays failed and still
 * wants closing. */
PEAL_API enum peal_status peal_comm_shrink(struct peal_comm *comm, struct peal_comm **out);

/* Waits for nobody; NULL is ignored. Requests that have not completed are dropped, and end with
 * PEAL_CLOSED: their buffers may still be read by peers, so complete them first. Symmetric memory
 * of this communicator becomes invalid. A closed communicator answers PEAL_CLOSED to every call
 * until 16 others have been closed; then its memory is used again. */
PEAL_API void peal_comm_close(struct peal_comm *comm);

/* The own rank, and how many there are; known without asking anyone. 0 of one that is closed. */
PEAL_API uint32_t peal_comm_rank(const struct peal_comm *comm);
PEAL_API uint32_t peal_comm_size(const struct peal_comm *comm);

/* Milliseconds without progress after which a call fails with PEAL_TIMEOUT; 0 = never. The
 * default is PEAL_TIMEOUT_MS of the environment, or 60,000. Applies to later calls, and to the one
 * under way: any thread may call it, so that a watchdog can end a call that waits too long. */
PEAL_API void peal_comm_set_timeout(struct peal_comm *comm, uint32_t timeout_ms);

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

/* ---- symmetric memory ---- */

/* Collective. Every rank gets `bytes` of memory that peers can address: collectives on it need no
 * staging copy. All ranks must pass the same size, and to collectives the same place within it.
 * Zeroed, aligned to a page. PEAL_NO_MEMORY on every rank if one cannot. */
PEAL_API enum peal_status peal_symmetric_alloc(struct peal_comm *comm, size_t bytes, void **out);
/* Collective. NULL is ignored. */
PEAL_API enum peal_status peal_symmetric_free(struct peal_comm *comm, void *memory);
/* Where rank's copy of symmetric memory is, or NULL. For loads and stores of the caller's own. */
PEAL_API void *peal_symmetric_at(struct peal_comm *comm, const void *memory, uint32_t rank);

/* ---- collectives ---- */

/* All of these are collective and block until the own part is done: send may be written and recv
 * be read. Buffers stay the caller's; send is not changed unless it is recv. PEAL_INVALID: a
 * buffer that is NULL where elements are, a type that lacks the operation, a root that is no
 * rank. */

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
/* send: size * count elements; recv: count, the own block of the reduction. */
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

/* The own blocks of an all_to_all_v; every rank knows its own only. What rank a sends to b must be
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
 * start gives no request. Work is done inside Peal's calls: waiting for one request moves all of
 * its communicator, and none of another. So ranks that wait for requests of several communicators
 * do so in the same order, or test them in turn. With 4 under way on a communicator, starting
 * another one waits for the oldest. */
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

/* ---- user kernels ---- */

/* An argument of a launch, in the order of the kernel's parameters. Dimensions are those that `dims`
 * gives; the others follow from the lengths of buffers. */
enum peal_arg_kind { PEAL_ARG_BUFFER, PEAL_ARG_INT, PEAL_ARG_INTS, PEAL_ARG_REDUCE };
struct peal_arg {
    uint32_t struct_size; /* sizeof(struct peal_arg), the same in all, or 0: as it is in 0.2.0 */
    enum peal_arg_kind kind;
    void *data;                 /* BUFFER */
    uint64_t bytes;             /* BUFFER: how much there is; at least what the kernel needs */
    uint64_t stride;            /* BUFFER of two dimensions: elements a row; 0 = its columns */
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
