/* SPDX-License-Identifier: Apache-2.0 */
/* peal/host.h: one program that drives many workers.
 *
 *     struct peal_host *host;
 *     struct peal_host_open how = {.workers = 4};
 *     peal_host_open(&how, &host);                            4 processes, or what PEAL_PLATFORM says
 *     struct peal_tensor x;
 *     peal_tensor_new(host, &(struct peal_tensor_spec){.dtype = PEAL_F32, .shape = {256}, .ndims = 1,
 *                                                      .place = PEAL_REPLICATED}, &x);
 *     peal_tensor_write(host, x, data, sizeof data);
 *     struct peal_work ring;
 *     peal_work_kernel(host, NULL, "allreduce_ring", &ring);
 *     struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(x), peal_arg_reduce(PEAL_SUM)};
 *     peal_host_submit(host, &(struct peal_task_spec){.work = ring, .everyone = 1, .args = args,
 *                                                     .nargs = 3}, NULL);
 *     peal_tensor_read(host, x, data, sizeof data);
 *     peal_host_close(host);
 *
 * A host places tensors on its workers and submits tasks to one worker or to a domain (a group of
 * workers). The result is as if the tasks ran one by one in the order of submission: a task waits
 * for earlier ones that write what it reads or writes, or read what it writes, byte by byte, on each
 * worker for itself. Everything else may run at once.
 *
 * Platforms. `native`: workers are processes that the host forks (`native:threads`: threads of this
 * one). `hosts:A:N,B:M`: N workers on host A, M on B and so on, which are the same program, run again there up
 * to its first peal_host_open (docs/host.md). `sim:MACHINE`: workers are the PEs of a modelled machine (a file, or a built-in's name, see
 * docs/simulator.md): results are computed, times are the machine's. The environment variable
 * PEAL_PLATFORM, where it is set, wins over what the program says; nothing else changes.
 *
 * Queues. A worker has two, each a thread: tasks whose kernel reads or writes other ranks' memory,
 * or uses signals or channels, go to the communication queue, all others to the compute queue. A
 * queue starts its tasks in the order of submission, one after the other. A domain's task is queued
 * on all its members or on none, and begins when all have reached it. Nothing deadlocks, whatever
 * the domains: of all tasks that have not ended, the oldest has only ended ones before it in its
 * queues, and waits for older ones only.
 *
 * Errors. Every call returns a status; peal_host_error has the words. Wrong arguments (PEAL_INVALID)
 * are found when a task is submitted, which then has not happened. A task that fails leaves what it
 * was to write undefined: tasks that read that fail too, until something has overwritten it. A worker
 * that dies fails the tasks that are on it, on its domains, or read what those were to write, and no
 * others. A communicating task that fails while it runs ends its domain: release it, make another.
 *
 * Threads. A host belongs to one thread at a time. Functions that run as tasks must not call it:
 * such calls return PEAL_INVALID, because a task that waits for a task could wait for itself.
 *
 * Handles (tensors, domains, works, tasks) are numbers, valid for their own host. One that was freed,
 * or belongs to another host, is refused in words.
 */
#ifndef PEAL_HOST_H
#define PEAL_HOST_H

#include <peal/peal.h>
#include <peal/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peal_host;
/* id 0 is none. */
struct peal_tensor {
    uint64_t id;
};
struct peal_domain {
    uint64_t id;
};
struct peal_work {
    uint64_t id;
};
struct peal_task {
    uint64_t id;
};

enum {
    PEAL_MOST_DIMS = 4,
    PEAL_MOST_ARGS = 64,       /* of a task */
    PEAL_MOST_QUEUED = 131072, /* tasks of a host that have not ended; submitting more waits */
    PEAL_MOST_RECORDED = 1 << 20
};

/* ---- functions ---- */

/* An argument as a function sees it. It does not grow. */
struct peal_function_arg {
    void *data;     /* tensors: this worker's part */
    uint64_t count; /* tensors: its elements; int arrays: how many */
    enum peal_dtype dtype;
    uint32_t
        ndims; /* tensors: of the whole argument on this worker; 1 where only a part is passed */
    uint64_t shape[PEAL_MOST_DIMS];
    int64_t value; /* int */
    const int64_t *values;
};

struct peal_function_call {
    uint32_t struct_size; /* of this structure, as the library has it */
    uint32_t worker;
    uint32_t rank, size; /* within the task's domain; 0 of 1 on a worker alone */
    const struct peal_function_arg *args;
    size_t nargs;
    char *error; /* a function that fails may write words here */
    size_t error_cap;
};

/* A C function that tasks may run, on the compute queue. Workers are forks of this program, or the same
 * program on another host, so functions are given when the host is opened. It returns PEAL_OK or why not. */
struct peal_function {
    uint32_t
        struct_size; /* sizeof(struct peal_function), the same in all, or 0: as it is in 0.2.0 */
    const char *name;
    enum peal_status (*run)(const struct peal_function_call *call, void *context);
    void *context;
    /* Its parameters, separated by commas: in, out, inout (tensors), int, ints. */
    const char *parameters;
    /* What it costs on a simulated machine, where it holds the PE's math engine for that long; cost
     * NULL: cost_ps. args have no data there. */
    uint64_t cost_ps;
    uint64_t (*cost)(const struct peal_function_call *call, void *context);
};

/* ---- hosts ---- */

/* How to open. Zero means the default everywhere, but for workers. */
struct peal_host_open {
    uint32_t struct_size; /* sizeof(struct peal_host_open), or 0: as it is in 0.2.0 */
    uint32_t workers;
    const char *platform; /* NULL: "native" */
    uint64_t memory;      /* bytes of tensors per worker, at most; 1 GiB. Taken as used */
    uint32_t timeout_ms;  /* of communicating tasks, see peal_comm_set_timeout */
    int record;           /* keep the times of every task (up to PEAL_MOST_RECORDED) and what
                                  they waited for, for traces, graphs and critical paths */
    int hold;             /* as peal_host_hold from the start */
    const struct peal_function *functions;
    size_t nfunctions;
};

/* PEAL_INVALID: no workers, a platform that is not understood; PEAL_UNSUPPORTED: more than
 * PEAL_MOST_RANKS, or than the machine has PEs. The words are peal_host_error(NULL)'s. */
PEAL_API enum peal_status peal_host_open(const struct peal_host_open *how, struct peal_host **out);
/* Waits for all tasks, ends the workers. NULL is ignored. */
PEAL_API void peal_host_close(struct peal_host *host);
/* The words of the last failure on this host; NULL: of the last open in this thread that failed.
 * Lives until the next failure. */
PEAL_API const char *peal_host_error(const struct peal_host *host);
PEAL_API uint32_t peal_host_workers(const struct peal_host *host);
/* "native", "native:threads", "hosts:A:N,B:M" or "sim:MACHINE": what it runs on. */
PEAL_API const char *peal_host_platform(const struct peal_host *host);
/* The process of a worker, as its own host numbers it; 0 where workers are threads or simulated. */
PEAL_API int64_t peal_host_pid(const struct peal_host *host, uint32_t worker);

/* ---- domains ---- */

/* A named symmetric buffer: every member has `count` elements that the others can address. */
struct peal_domain_buffer {
    uint32_t
        struct_size; /* sizeof(struct peal_domain_buffer), the same in all, or 0: as it is in 0.2.0 */
    const char *name;
    enum peal_dtype dtype;
    uint64_t count;
};

struct peal_domain_spec {
    uint32_t struct_size; /* sizeof(struct peal_domain_spec), or 0: as it is in 0.2.0 */
    const char *name;     /* for reports; NULL will do */
    const uint32_t *workers;
    size_t nworkers; /* rank r of the domain is workers[r] */
    const struct peal_domain_buffer *buffers;
    size_t nbuffers;
};

/* Domains may overlap; each has ranks and windows of its own. Buffers are checked (names, sizes, what
 * memory there is) before anything is allocated, and zeroed before anyone sees them. */
PEAL_API enum peal_status peal_domain_new(struct peal_host *host,
                                          const struct peal_domain_spec *spec,
                                          struct peal_domain *out);
/* The domain and its buffers are gone for the caller at once, for queued tasks when they have ended.
 * Tensors that were placed over it stay. */
PEAL_API enum peal_status peal_domain_release(struct peal_host *host, struct peal_domain handle);
/* One of its buffers as a tensor, replicated over the domain: for window parameters, and to read and
 * write. It cannot be freed alone. */
PEAL_API enum peal_status peal_domain_tensor(struct peal_host *host, struct peal_domain handle,
                                             const char *name, struct peal_tensor *out);

/* ---- tensors ---- */

enum peal_placement {
    PEAL_ON_WORKER,  /* one copy, on `worker` */
    PEAL_REPLICATED, /* a copy on every member of `domain` */
    PEAL_SHARDED /* cut along shard_dim: rank r of `domain` has indices r*n/size .. (r+1)*n/size */
};

struct peal_tensor_spec {
    uint32_t struct_size; /* sizeof(struct peal_tensor_spec), or 0: as it is in 0.2.0 */
    const char *name;     /* for reports; NULL will do */
    enum peal_dtype dtype;
    uint32_t ndims; /* 1 to PEAL_MOST_DIMS */
    uint64_t shape[PEAL_MOST_DIMS];
    enum peal_placement place;
    uint32_t worker;
    struct peal_domain domain; /* none: all workers */
    uint32_t shard_dim;
};

/* Zeroed. PEAL_NO_MEMORY: the workers' memory is full, or the system's. */
PEAL_API enum peal_status peal_tensor_new(struct peal_host *host,
                                          const struct peal_tensor_spec *spec,
                                          struct peal_tensor *out);
/* Gone for the caller at once; its memory is used again when queued tasks have ended. */
PEAL_API enum peal_status peal_tensor_free(struct peal_host *host, struct peal_tensor handle);
/* The whole tensor, row by row, after the tasks that use it: every replica gets the same, shards
 * theirs. bytes must be the tensor's. */
PEAL_API enum peal_status peal_tensor_write(struct peal_host *host, struct peal_tensor handle,
                                            const void *data, uint64_t bytes);
/* The whole tensor, after the tasks that write it; of replicas, the first one's. Fails with the
 * status and the words of the task that was to write it, if that failed. */
PEAL_API enum peal_status peal_tensor_read(struct peal_host *host, struct peal_tensor handle,
                                           void *data, uint64_t bytes);
/* What one member has: a replica or a shard, all of it. rank: within the tensor's domain. */
PEAL_API enum peal_status peal_tensor_write_part(struct peal_host *host, struct peal_tensor tensor,
                                                 uint32_t rank, const void *data, uint64_t bytes);
PEAL_API enum peal_status peal_tensor_read_part(struct peal_host *host, struct peal_tensor tensor,
                                                uint32_t rank, void *data, uint64_t bytes);
/* Bytes of the whole, and of one member's part; 0 of what is not a tensor. */
PEAL_API uint64_t peal_tensor_bytes(const struct peal_host *host, struct peal_tensor handle);
PEAL_API uint64_t peal_tensor_part_bytes(const struct peal_host *host, struct peal_tensor handle,
                                         uint32_t rank);

/* ---- tasks ---- */

/* A kernel from Peal text (name NULL: the text's last), or the library's of that name (text NULL).
 * Bad text: PEAL_INVALID with file, line and caret. Lives as long as the host. */
PEAL_API enum peal_status peal_work_kernel(struct peal_host *host, const char *text,
                                           const char *name, struct peal_work *out);
/* A function given at open, or the built-in `matmul` (in a[m,k], in b[k,n], inout c[m,n], int
 * accumulate: c = a b, or c += a b; f32 and f64; by CBLAS if one can be loaded). */
PEAL_API enum peal_status peal_work_function(struct peal_host *host, const char *name,
                                             struct peal_work *out);

/* Declares a user-defined reduction, as peal_reduction_declare does: *out is an operation for the tasks of this host.
 * Declaring one again gives the same operation. At most 16. */
PEAL_API enum peal_status peal_host_reduction_declare(struct peal_host *host, const char *text,
                                                      const char *name, enum peal_reduction *out);

/* A list of members' values is for `local` parameters: rank after rank. */
enum peal_task_arg_kind { PEAL_TASK_TENSOR, PEAL_TASK_INT, PEAL_TASK_INTS, PEAL_TASK_REDUCE };
struct peal_task_arg {
    uint32_t
        struct_size; /* sizeof(struct peal_task_arg), the same in all, or 0: as it is in 0.2.0 */
    enum peal_task_arg_kind kind;
    struct peal_tensor tensor;
    uint64_t first,
        count; /* TENSOR: a part of every member's part, in elements; count 0: the rest */
    int64_t value;
    const int64_t *values; /* copied */
    size_t nvalues;
    enum peal_reduction reduce;
};

static inline struct peal_task_arg peal_arg_tensor(struct peal_tensor tensor)
{
    struct peal_task_arg arg = {sizeof arg, PEAL_TASK_TENSOR, tensor, 0, 0, 0, NULL, 0, PEAL_SUM};
    return arg;
}
static inline struct peal_task_arg peal_arg_part(struct peal_tensor tensor, uint64_t first,
                                                 uint64_t count)
{
    struct peal_task_arg arg = {sizeof arg, PEAL_TASK_TENSOR, tensor, first, count, 0, NULL,
                                0,          PEAL_SUM};
    return arg;
}
static inline struct peal_task_arg peal_arg_int(int64_t value)
{
    struct peal_task_arg arg = {sizeof arg, PEAL_TASK_INT, {0}, 0, 0, value, NULL, 0, PEAL_SUM};
    return arg;
}
static inline struct peal_task_arg peal_arg_reduce(enum peal_reduction reduce)
{
    struct peal_task_arg arg = {sizeof arg, PEAL_TASK_REDUCE, {0}, 0, 0, 0, NULL, 0, reduce};
    return arg;
}

/* Where: on `worker`, on `domain`, or on everyone (all workers, rank r is worker r). Arguments are in
 * the order of the parameters; ints that have a default may be left out at the end. T of a kernel is
 * the type of the first tensor that stands for a T; dimensions follow from shapes, or are given: a
 * kernel has one plan for all members, so shards of different lengths are refused unless they are.
 * Which parameters are read and written is the kernel's to say. Tensors of a domain's task must
 * have a part on each member. */
struct peal_task_spec {
    uint32_t struct_size; /* sizeof(struct peal_task_spec), or 0: as it is in 0.2.0 */
    const char *name;     /* for reports; NULL: the work's */
    struct peal_work work;
    uint32_t worker;
    struct peal_domain domain;
    int everyone;
    const struct peal_task_arg *args;
    size_t nargs;
    const struct peal_dim *dims;
    size_t ndims;
};

/* Queues a task and returns; out may be NULL. With PEAL_MOST_QUEUED under way it waits for the oldest
 * to end. Refused, with nothing queued: arguments that do not fit the kernel's parameters, a tensor
 * that is elsewhere or too small, in and out that overlap (unless they are the same and the kernel
 * has an in-place plan), a kernel that has no plan for these arguments (PEAL_INVALID); a dead worker
 * (PEAL_PEER_DEAD); what was freed or released (PEAL_CLOSED). */
PEAL_API enum peal_status
peal_host_submit(struct peal_host *host, const struct peal_task_spec *spec, struct peal_task *out);
/* The same, but PEAL_PENDING, with nothing queued, where that would wait. */
PEAL_API enum peal_status peal_host_try_submit(struct peal_host *host,
                                               const struct peal_task_spec *spec,
                                               struct peal_task *out);

/* Waits for a task to end, and returns how: the same each time it is asked. */
PEAL_API enum peal_status peal_host_wait(struct peal_host *host, struct peal_task task);
/* The same without waiting: PEAL_PENDING while it has not ended. */
PEAL_API enum peal_status peal_host_test(struct peal_host *host, struct peal_task task);
/* Waits for the tasks that write a tensor, on every member. */
PEAL_API enum peal_status peal_host_wait_tensor(struct peal_host *host, struct peal_tensor handle);
/* Waits for everything. Not PEAL_OK if a task has failed since the last such call: the first one's
 * status and words. */
PEAL_API enum peal_status peal_host_wait_all(struct peal_host *host);

/* ---- graphs ---- */

/* From now on tasks are recorded and not started, until peal_host_go, or something that waits. */
PEAL_API enum peal_status peal_host_hold(struct peal_host *host);
PEAL_API enum peal_status peal_host_go(struct peal_host *host);
/* Looks at what is held: do any two tasks touch the same bytes with nothing that orders them; is
 * every kernel proved for its arguments, and closed where it shares a domain's buffers with another
 * one; could tasks wait for each other in a circle. PEAL_OK: no fault. PEAL_INVALID: peal_host_error
 * says which. PEAL_UNSUPPORTED: a proof was not decided. With PEAL_VERIFY=1 in the environment every
 * kernel is proved before a task with it is accepted, and peal_host_go checks what was held. */
PEAL_API enum peal_status peal_host_check(struct peal_host *host);

struct peal_host_stats {
    uint64_t submitted, ended, failed; /* tasks */
    uint64_t time_ps;                  /* simulated time so far; natively since open */
    /* Of recorded tasks (peal_host_open.record): */
    uint64_t critical_ps; /* from the start to the end of the chain of waits that ends last */
    uint64_t compute_ps, comm_ps; /* time in each kind of queue, summed over workers */
    uint64_t overlap_ps;          /* of it, when both queues of a worker were at work */
    /* Simulated: how long math engines, DMA engines (both summed over workers) and the busiest link
     * were at work. */
    uint64_t math_ps, dma_ps, link_ps;
};
/* out_size is sizeof(struct peal_host_stats): fields that this library lacks become zero. */
PEAL_API enum peal_status peal_host_stats(struct peal_host *host, struct peal_host_stats *out,
                                          size_t out_size);
/* Files about the recorded tasks, after waiting for all: a trace for ui.perfetto.dev (one track per
 * queue), a drawing of the graph with its critical path (SVG), the critical path as lines of text,
 * and a page with all of it (HTML). */
PEAL_API enum peal_status peal_host_write_trace(struct peal_host *host, const char *path);
PEAL_API enum peal_status peal_host_write_graph(struct peal_host *host, const char *path);
PEAL_API enum peal_status peal_host_write_path(struct peal_host *host, const char *path);
PEAL_API enum peal_status peal_host_write_page(struct peal_host *host, const char *path);

#ifdef __cplusplus
}
#endif
#endif
