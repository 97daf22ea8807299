/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's files share, and what the host shares with its workers.
 *
 * Memory. Everything that workers read is mapped before they are forked, at one address for all: a
 * pointer into it means the same everywhere. It is `struct peal_host_shared` (queues, blocks,
 * states, tables) and one area of tensors per worker.
 *
 * A task is a block. The host writes it, then puts its offset into the queue of every member.
 * Queues are rings that only the host pushes to and only one worker's thread takes from; `pushed`
 * and `done` are counters that wrap.
 *
 * Order. A worker's memory is touched by its own two queues only (peers reach into it within a
 * collective, which ends on this worker when they are done with it). Within a queue tasks run in
 * order. So a part of a task waits for one number only: how many tasks of the worker's other queue
 * must be done (`after`).
 *
 * Why nothing deadlocks: docs/host.md. check.c repeats that argument for a given graph.
 *
 * Ends. The member that ends last writes the task's state. States are kept for twice as many tasks
 * as can be queued; later, failures are found in the host's own list.
 */
#ifndef PEAL_DRIVER_STATE_H
#define PEAL_DRIVER_STATE_H

#include "base/base.h"
#include "plan/plan.h"

#include <peal/host.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct peal_away;
enum {
    PEAL_HOST_MAX_WORKERS = 64, /* natively */
    PEAL_HOST_COMPUTE = 0,
    PEAL_HOST_COMM,
    PEAL_HOST_QUEUES, /* of a worker */
    PEAL_HOST_MAX_WORKS = 4096,
    PEAL_HOST_MAX_DOMAINS = 1024,
    PEAL_HOST_MAX_TAINTS = 256,
    PEAL_HOST_REPORTS = 256,
    PEAL_HOST_REPORT_BYTES = 4096,
    PEAL_HOST_NAME = 40,
    PEAL_HOST_STATES = 2 * PEAL_MOST_QUEUED
};
#define PEAL_HOST_BLOCK_BYTES (UINT64_C(128) << 20)
#define PEAL_HOST_TEXT_BYTES (UINT64_C(64) << 20)
#define PEAL_HOST_ALONE UINT32_MAX /* a domain's slot: none, the worker alone */
/* A ring's entry: the task's id, and its block's offset / 64. */
#define PEAL_HOST_BLOCK_BITS 21
static_assert((PEAL_HOST_BLOCK_BYTES / 64) >> PEAL_HOST_BLOCK_BITS <= 1, "offsets of blocks fit");

/* ---- shared with workers ---- */

struct peal_host_queue {
    _Atomic uint32_t pushed; /* release: submit; acquire: worker. A futex */
    _Atomic uint32_t idle;   /* the worker sleeps on `pushed` */
    char pad_a[56];
    _Atomic uint32_t done;   /* release: worker; acquire: the other queue's thread, host. A futex */
    _Atomic uint32_t waited; /* a thread sleeps on `done` */
    char pad_b[56];
};
static_assert(sizeof(struct peal_host_queue) == 128, "two cache lines: one per writer");

enum peal_host_kind {
    PEAL_HOST_RUN_KERNEL,
    PEAL_HOST_RUN_FUNCTION,
    PEAL_HOST_OPEN_DOMAIN,
    PEAL_HOST_CLOSE_DOMAIN,
    PEAL_HOST_COPY_IN, /* between a domain's buffer (argument 0) and plain memory (1) */
    PEAL_HOST_COPY_OUT,
    PEAL_HOST_STOP
};

/* An argument, as far as it is the same on all members. */
struct peal_host_arg {
    uint8_t kind; /* enum peal_task_arg_kind */
    uint8_t dir;  /* tensors: enum peal_buf_dir */
    uint8_t dtype;
    uint8_t local;      /* ints: every member has `nvalues` of its own */
    uint8_t cut;        /* tensors: the dimension in which members' shapes may differ */
    uint32_t symmetric; /* tensors: 0, or 1 + the slot of the domain whose buffer it is; `at` of
                           places is then an offset into that domain's buffers */
    uint32_t ndims;
    uint32_t nvalues;
    uint64_t shape[PEAL_MOST_DIMS];
    int64_t value;         /* int; reduce: enum peal_reduction */
    const int64_t *values; /* ints */
};

/* A tensor argument on one member. */
struct peal_host_place {
    uint64_t at; /* an address, or an offset */
    uint64_t count;
    uint64_t touched; /* bytes from `at` that the work may touch */
};

/* A member's part of a task. */
struct peal_host_part {
    uint32_t worker;
    uint32_t after;      /* tasks of the worker's other queue that must be done before */
    uint32_t position;   /* in its queue */
    uint64_t start, end; /* ns, natively; ps, simulated */
};

struct peal_host_block {
    uint64_t id;
    uint64_t bytes; /* of the block */
    uint32_t kind, queue;
    uint32_t work;   /* index */
    uint32_t domain; /* slot, or PEAL_HOST_ALONE */
    uint32_t members, nargs, ndims, dtype;
    uint64_t variant; /* work.c: index of the plan, for the simulator and check.c */
    /* A bit per member: the host may set it for one that has died, even if it is already set. */
    _Atomic uint64_t arrived; /* acq_rel: members (and the host, for dead ones) */
    _Atomic uint64_t ended;   /* likewise */
    _Atomic uint32_t turn;    /* changes when `arrived` does. A futex */
    _Atomic uint32_t bad;     /* status for which the task does not run; set before `arrived` */
    _Atomic uint32_t status;  /* first failure; set before `ended` */
    _Atomic uint64_t
        cause; /* the task whose failure is why this one does not run; 0: none. Set before `arrived` */
    struct peal_host_arg *args;
    struct peal_host_part *parts;
    struct peal_host_place *places; /* [member * nargs + argument] */
    struct peal_dim *dims;
    char name[PEAL_HOST_NAME];
};

/* Bytes of a worker's memory that a failed task should have written. */
struct peal_host_taint {
    uint64_t begin, end; /* addresses; of domain buffers: see taint.c */
    uint64_t task;       /* that failed first: those that failed because of it pass its number on */
    uint32_t status;
};

struct peal_host_worker {
    _Atomic uint32_t dead; /* release: the watching thread; acquire: all threads */
    _Atomic uint32_t lock; /* of the taints: between the worker's threads and the host */
    _Atomic uint32_t ntaints;
    struct peal_host_taint taints[PEAL_HOST_MAX_TAINTS];
};

/* Why a task failed. A slot is free until a worker writes to it, and again when the host has read it: if there is none,
 * the failures before it are known, and this one by its status. */
struct peal_host_report {
    _Atomic uint64_t task; /* 0: free; UINT64_MAX: being written. Release: worker; acquire: host */
    uint32_t worker;
    char text[PEAL_HOST_REPORT_BYTES];
};

struct peal_host_shared_work {
    bool is_function;
    const struct peal_function *function;
    const char *text, *name; /* of a kernel; text NULL: the library's */
};

/* A user-defined reduction: number PEAL_USER_REDUCTION + its index. Written before any task that
 * names it. */
struct peal_host_shared_reduction {
    const char *text, *name;
};

struct peal_host_shared_domain {
    uint64_t serial;
    uint32_t size;
    uint64_t bytes; /* of its buffers, together */
    uint32_t *workers;
    char **bases; /* by worker: where its buffers are, in the worker. Written by its communication
                     thread when it opens the domain, before any task that uses the buffers */
    /* Threads: every member's communicator per queue, made by the host. */
    struct peal_comm **comms[PEAL_HOST_QUEUES];
};

struct peal_host_shared {
    struct peal_away *away;   /* hosts/hosts.h: in a worker on another host */
    _Atomic uint32_t ended;   /* number of tasks that have ended. A futex; release: workers */
    _Atomic uint32_t waiting; /* the host sleeps on it */
    _Atomic uint32_t nreports;
    uint32_t workers;
    uint32_t timeout_ms;
    bool threads;
    char job[64];
    struct peal_host_queue *queues; /* [worker * 2 + queue] */
    uint64_t *rings;                /* [(worker * 2 + queue) * PEAL_MOST_QUEUED]: task, block */
    _Atomic uint8_t *states;        /* [id % PEAL_HOST_STATES]: 0, or 1 + status. Release: the last
                                       member; acquire: host */
    char *blocks;                   /* PEAL_HOST_BLOCK_BYTES */
    struct peal_host_worker *of_worker;
    struct peal_host_report *reports;
    struct peal_host_shared_work *works;
    struct peal_host_shared_domain *domains;
    struct peal_host_shared_reduction reductions[PEAL_FORMULAS];
    char *texts;
    uint64_t texts_used;
};

/* ---- the host's own ---- */

/* Which tasks touched these bytes last: positions in the worker's queues, plus one; 0: none. */
struct peal_host_span {
    uint64_t begin, end;
    uint64_t wrote[PEAL_HOST_QUEUES], read[PEAL_HOST_QUEUES];
};

/* A tensor's part on one member. */
struct peal_host_piece {
    uint32_t worker;
    uint64_t at; /* address; of domain buffers: offset within them */
    uint64_t bytes;
    uint64_t taken; /* memory taken for it */
    PEAL_VEC(struct peal_host_span) spans;
    uint64_t last[PEAL_HOST_QUEUES]; /* the last task in each queue that uses it, plus one */
};

struct peal_host_tensor {
    char name[PEAL_HOST_NAME];
    enum peal_dtype dtype;
    uint32_t ndims;
    uint64_t shape[PEAL_MOST_DIMS];
    enum peal_placement place;
    uint32_t shard_dim;
    uint32_t npieces;
    struct peal_host_piece *pieces;
    bool of_domain;  /* it is a domain's buffer */
    uint32_t domain; /* that domain's slot */
};

struct peal_host_domain {
    char name[PEAL_HOST_NAME];
    uint32_t slot, size;
    uint32_t *workers;
    struct peal_host_named {
        char name[PEAL_HOST_NAME];
        struct peal_tensor tensor;
    } * buffers;
    size_t nbuffers;
    uint64_t close_task[PEAL_HOST_QUEUES]; /* ids; the slot is free once they have ended */
    bool used[PEAL_HOST_QUEUES];
};

struct peal_host_param {
    const char *name;
    uint8_t kind; /* enum peal_task_arg_kind */
    uint8_t dir;
    bool is_window, is_local, generic, has_default;
    enum peal_dtype dtype;
};

struct peal_program;
struct peal_kernel;
struct peal_host_work {
    char name[PEAL_HOST_NAME];
    const struct peal_function *function; /* or NULL */
    struct peal_program *program;
    const struct peal_kernel *kernel;
    uint32_t nparams;
    struct peal_host_param params[PEAL_MOST_ARGS];
};

/* A kernel's plan for certain arguments. */
struct peal_host_variant {
    uint32_t work;
    struct peal_plan *plan; /* of all ranks */
    bool remote;            /* goes to the communication queue */
    uint8_t proved;         /* an enum of check.c */
};

struct peal_host_handle {
    uint32_t generation;
    uint32_t next_free;
    void *object;
};
struct peal_host_table {
    PEAL_VEC(struct peal_host_handle) rows;
    uint32_t first_free; /* plus one */
};

/* Memory of a freed tensor that queued tasks still use. */
struct peal_host_pending_free {
    uint32_t worker;
    uint64_t at, bytes;
    uint64_t last[PEAL_HOST_QUEUES];
};

struct peal_host_hole {
    uint64_t begin, end;
};

struct peal_host_area {
    char *base;
    struct peal_away *away; /* of a worker on another host: the memory is there */
    uint32_t worker;
    PEAL_VEC(struct peal_host_hole) holes; /* by address */
};

struct peal_host_failure {
    uint64_t id;
    enum peal_status status;
    uint64_t cause; /* the task that failed first; 0: this one */
    char *text;     /* NULL: no longer kept */
};

/* A task as it ran, for pictures. Its parts are in `record_parts`. */
struct peal_host_recorded {
    uint64_t id;
    char name[PEAL_HOST_NAME];
    uint32_t queue, members;
    size_t first_part, first_before, nbefore;
    uint32_t status;
};

struct peal_host_process {
    pid_t pid;
    int pidfd;
    pthread_t threads[PEAL_HOST_QUEUES];
    bool started;
};

struct peal_machine;
struct peal_host {
    uint32_t number; /* in handles */
    uint32_t workers;
    bool threads, simulated, record, holding, verify, stopping;
    uint64_t memory;
    char *platform;
    struct peal_host_shared *shared;
    size_t shared_bytes;
    struct peal_away *away; /* if workers are on other hosts */
    const char *hosts;      /* the list of them, within `platform`; NULL: this host */
    struct peal_host_area *areas;
    char *areas_base;
    struct peal_host_process *processes;
    pthread_t watcher;
    bool watching;
    int stop_fd;
    /* Protects the queues of dying workers between the caller's thread and the watching one. */
    pthread_mutex_t mutex;

    struct peal_host_table tensors, domains, works;
    uint32_t next_slot;
    uint64_t serials;
    struct peal_host_domain *everyone;
    PEAL_VEC(struct peal_host_domain *) released; /* whose slots are not free yet */
    PEAL_VEC(uint32_t) free_slots;
    PEAL_VEC(struct peal_host_variant) variants;
    struct peal_keys variant_keys;            /* of variants: everything they depend on */
    PEAL_VEC(struct peal_host_place) scratch; /* of the request being made */
    PEAL_VEC(struct peal_host_pending_free) frees;
    PEAL_VEC(struct peal_host_failure) failures;
    size_t texts_kept[2],
        texts_from
            [2]; /* of failures with a cause [1], and of others [0]: their number, and the first failure
                                          * that may have one */
    char *first_text;                /* of the first failure that wait_all has to return */
    size_t reported;                 /* failures before this one have been returned by wait_all */
    struct peal_function *functions; /* the caller's, then built-in ones */
    size_t nfunctions;
    struct peal_formula formulas[PEAL_FORMULAS]; /* of shared->reductions */
    uint32_t nformulas;

    uint64_t next_id;              /* ids start at 1 */
    uint64_t oldest;               /* all tasks before this one have ended and are retired */
    uint64_t block_head;           /* where the next block goes */
    uint64_t block_tail;           /* where the oldest one is */
    uint64_t *block_ends;          /* [id % PEAL_MOST_QUEUED]: block_tail once it is retired */
    uint64_t *positions;           /* [worker * 2 + queue]: tasks put into it, published or not */
    struct peal_host_block **held; /* [id % PEAL_MOST_QUEUED] */

    PEAL_VEC(struct peal_host_recorded) records;
    PEAL_VEC(struct peal_host_part) record_parts;
    PEAL_VEC(uint64_t) record_before; /* ids */
    PEAL_VEC(uint64_t) before;        /* of the task being submitted */
    uint64_t **ids;                   /* record: [queue][position]: the task there */
    size_t *ids_cap;
    uint64_t origin_ns;

    struct peal_machine *machine;
    uint64_t time; /* simulated */
    uint64_t math_ps, dma_ps, link_ps;
    struct peal_text error;
};

/* work.c. NULL: it is not a declared user-defined reduction. */
const struct peal_formula *peal_host_formula(const struct peal_host *host,
                                             enum peal_reduction reduce);
/* open.c */
enum peal_status peal_host_fail(struct peal_host *host, enum peal_status status, const char *format,
                                ...) __attribute__((format(printf, 3, 4)));
/* PEAL_OK if the caller may use the host, i.e. not within a task. */
enum peal_status peal_host_enter(struct peal_host *host);
/* Whether the calling thread is running a task. */
void peal_host_in_task(bool inside);
/* Lays out the shared block and returns its bytes. base NULL: only counts them. */
uint64_t peal_host_lay_out(char *base, uint32_t workers, struct peal_host_shared *shared);

/* handle.c: objects behind numbers. `noun` names the object in error texts. */
uint64_t peal_handle_add(struct peal_host *host, struct peal_host_table *table, void *object);
void *peal_handle_find(struct peal_host *host, struct peal_host_table *table, uint64_t id,
                       const char *noun, enum peal_status *status);
void peal_handle_drop(struct peal_host_table *table, uint64_t id);
/* The row with that id. Rows begin with a uint64_t id and are in order of it; NULL: there is
 * none. */
void *peal_row_find(const void *rows, size_t count, size_t row_bytes, uint64_t id);

/* memory.c */
bool peal_area_init(struct peal_host_area *area, char *base, uint64_t bytes);
void peal_area_clear(uint64_t at, uint64_t bytes);
uint64_t peal_area_take(struct peal_host_area *area, uint64_t bytes); /* 0: no memory */
void peal_area_give(struct peal_host_area *area, uint64_t at, uint64_t bytes);

/* tensor.c */
void peal_host_tensor_destroy(struct peal_host *host, struct peal_host_tensor *tensor);
const struct peal_host_piece *peal_tensor_piece_on(const struct peal_host_tensor *tensor,
                                                   uint32_t worker);

/* domain.c */
struct peal_host_domain *peal_host_domain_find(struct peal_host *host, struct peal_domain domain,
                                               enum peal_status *status);
void peal_host_domain_destroy(struct peal_host_domain *domain);
/* If workers are threads: makes the communicators of a domain for a queue. */
enum peal_status peal_host_domain_ready(struct peal_host *host, struct peal_host_domain *domain,
                                        uint32_t queue);

/* Frees the slots of released domains whose tasks have ended. */
void peal_host_domain_collect(struct peal_host *host);
enum peal_status peal_host_domain_make(struct peal_host *host, const struct peal_domain_spec *spec,
                                       struct peal_host_domain **out);

/* work.c */
void peal_host_works_release(struct peal_host *host);
/* A function's parameters, "in, out, int": one word each. False: it is not such a list. */
bool peal_host_signature_read(const char *text, struct peal_host_work *work);
enum { PEAL_HOST_MAX_VARIANTS = 2048 };
/* Finds the plan for a task, or makes it: one for all arguments that look alike. */
struct peal_host_request;
enum peal_status peal_host_variant_find(struct peal_host *host, struct peal_host_request *request);

/* argument.c: a task that is being put together. */
struct peal_host_request {
    const struct peal_task_spec *spec;
    struct peal_host_work *work;
    uint32_t work_index;
    struct peal_host_domain *domain; /* NULL: everyone, or a worker alone */
    uint32_t slot;
    uint32_t members;
    const uint32_t *workers;
    enum peal_dtype dtype;
    bool in_place, any_window;
    struct peal_host_arg args[PEAL_MOST_ARGS];
    struct peal_host_tensor *tensors[PEAL_MOST_ARGS]; /* NULL: no tensor */
    struct peal_dim dims[PEAL_MOST_ARGS];
    uint32_t ndims;
    struct peal_host_place *places; /* [member * nargs + argument] */
    uint64_t variant;
    uint32_t queue;
};
enum peal_status peal_host_request_make(struct peal_host *host, const struct peal_task_spec *spec,
                                        struct peal_host_request *r);

/* A tensor argument's shape on the member that has `count` elements of it. */
void peal_host_arg_shape(const struct peal_host_arg *arg, uint64_t count,
                         uint64_t shape[PEAL_MOST_DIMS]);

/* submit.c */
struct peal_host_internal {
    enum peal_host_kind kind;
    uint32_t queue, slot;
    const uint32_t *workers;
    uint32_t members;
    struct peal_host_place places[2];
    struct peal_host_piece *piece; /* copies: the buffer, and whether it is written */
    bool writes;
    const uint64_t *after; /* by member: tasks of the other queue to wait for; or NULL */
};
/* Submits a task of the host's own. *out, if not NULL, gets its id. */
enum peal_status peal_host_submit_internal(struct peal_host *host,
                                           const struct peal_host_internal *task, uint64_t *out);
void peal_host_publish(struct peal_host *host);

/* order.c: how many tasks of the worker's other queue a task that touches these bytes must wait
 * for. The task, at `position` of its own queue, is then noted as the last that touches them. */
uint64_t peal_order_touch(struct peal_host *host, struct peal_host_piece *piece, uint64_t first,
                          uint64_t bytes, bool writes, uint32_t queue, uint64_t position);
/* How many tasks of each queue must be done before the host may read or write the piece. */
void peal_order_ask(const struct peal_host_piece *piece, bool writes,
                    uint64_t out[PEAL_HOST_QUEUES]);

/* wait.c */
enum peal_status peal_host_wait_position(struct peal_host *host, uint32_t worker, uint32_t queue,
                                         uint64_t count);
/* Retires ended tasks, oldest first. */
void peal_host_retire(struct peal_host *host);
/* Waits until the oldest task has ended. */
void peal_host_wait_oldest(struct peal_host *host);
enum peal_status peal_host_wait_id(struct peal_host *host, uint64_t id);
void peal_host_collect_frees(struct peal_host *host);
/* The error text of a failed task. */
const char *peal_host_failure_text(struct peal_host *host, uint64_t id);

static inline struct peal_host_block *peal_host_ring_block(const struct peal_host_shared *shared,
                                                           uint64_t entry)
{
    uint64_t mask = (UINT64_C(1) << PEAL_HOST_BLOCK_BITS) - 1;
    return (struct peal_host_block *)(shared->blocks + (entry & mask) * 64);
}
static inline uint64_t *peal_host_ring_at(const struct peal_host_shared *shared, uint32_t worker,
                                          uint32_t queue, uint64_t position)
{
    uint64_t ring = (uint64_t)worker * PEAL_HOST_QUEUES + queue;
    return &shared->rings[ring * PEAL_MOST_QUEUED + position % PEAL_MOST_QUEUED];
}
/* Which member of a task a worker is. */
static inline uint32_t peal_host_member_of(const struct peal_host_block *block, uint32_t worker)
{
    uint32_t member = 0;
    while (block->parts[member].worker != worker)
        member++;
    return member;
}
static inline uint64_t peal_host_all_members(const struct peal_host_block *block)
{
    return block->members >= 64 ? UINT64_MAX : (UINT64_C(1) << block->members) - 1;
}

/* worker.c: the loop of one queue; and waiting on shared words. */
struct peal_host_thread {
    struct peal_host_shared *shared;
    uint32_t worker, queue;
};
/* Runs a queue until it is stopped. `argument` is a peal_host_thread, which it frees. */
void *peal_worker_run(void *argument);
void peal_futex_wait(_Atomic uint32_t *word, uint32_t value, uint32_t microseconds);
void peal_futex_wake(_Atomic uint32_t *word);
void peal_worker_push(struct peal_host_queue *queue, uint32_t pushed);
/* A member has ended its part. The block may be reused from then on. */
void peal_worker_end(struct peal_host_shared *shared, struct peal_host_block *block,
                     uint32_t member, enum peal_status status);
/* A member has reached a task; `bad`: why it cannot take part, or PEAL_OK. */
void peal_worker_arrive(struct peal_host_block *block, uint32_t member, enum peal_status bad);
void peal_worker_report(struct peal_host_shared *shared, uint64_t task, uint32_t worker,
                        const char *text);

/* launch.c */
struct peal_launcher;
struct peal_launcher *peal_launcher_new(struct peal_host_shared *shared, uint32_t worker,
                                        uint32_t queue);
void peal_launcher_free(struct peal_launcher *launcher);
enum peal_status peal_launcher_run(struct peal_launcher *launcher, struct peal_host_block *block,
                                   uint32_t member, struct peal_text *why);
enum peal_status peal_launch_function(struct peal_host_shared *shared,
                                      struct peal_host_block *block, uint32_t member,
                                      struct peal_text *why);
/* A member's call of a task's function. `args` gets its arguments. */
struct peal_function_call peal_launch_call(const struct peal_host_shared *shared,
                                           const struct peal_host_block *block, uint32_t member,
                                           struct peal_function_arg args[PEAL_MOST_ARGS]);

/* taint.c */
/* The address of an argument in taints, where domain buffers have addresses of their own. */
uint64_t peal_taint_address(const struct peal_host_block *block, uint32_t member, uint32_t arg);
/* Such an address in the buffers of a domain; `symmetric`: its slot + 1. */
uint64_t peal_taint_buffer(uint32_t symmetric, uint64_t offset);
/* PEAL_OK, or the status of the failed task, *task, that should have written some of the bytes. */
enum peal_status peal_taint_find(struct peal_host_worker *worker, uint64_t begin, uint64_t end,
                                 uint64_t *task);
void peal_taint_clear(struct peal_host_worker *worker, uint64_t begin, uint64_t end);
enum peal_status peal_taint_inputs(struct peal_host_shared *shared,
                                   const struct peal_host_block *block, uint32_t member,
                                   uint64_t *task);
void peal_taint_outputs(struct peal_host_shared *shared, const struct peal_host_block *block,
                        uint32_t member, enum peal_status status);

/* native.c */
enum peal_status peal_native_start(struct peal_host *host);
void peal_host_note_death(struct peal_host *host, uint32_t worker);
void peal_native_stop(struct peal_host *host);

/* simulate.c: runs everything that is queued. */
enum peal_status peal_simulated_flush(struct peal_host *host);

/* record.c: rows for tasks; see also record.h. Called before the task's positions are taken. */
void peal_history_submit(struct peal_host *host, const struct peal_host_block *block);
void peal_history_end(struct peal_host *host, const struct peal_host_block *block,
                     enum peal_status status);
uint64_t peal_history_task_at(const struct peal_host *host, uint32_t index, uint64_t position);
void peal_history_release(struct peal_host *host);

enum peal_status peal_check_variant(struct peal_host *host, uint64_t index);

#define PEAL_HOST_TOO_NEW "%s has fields that this libpeal does not know, or there is no memory"

/* matmul.c */
extern const struct peal_function peal_matmul_function;
/* Its time on the machine that `context` points to: the math engine does as many multiplications
 * with addition at a time as it has lanes. */
uint64_t peal_matmul_cost(const struct peal_function_call *call, void *context);
/* Do a[m,k], b[k,n] and c[m,n] fit each other, and are they of f32 or f64? */
bool peal_matmul_fits(const struct peal_function_arg *args);

#endif
