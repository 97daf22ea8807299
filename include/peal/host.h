/* SPDX-License-Identifier: Apache-2.0 */
/* peal/host.h: one program that drives many workers.
 *
 *     struct peal_host *host;
 *     struct peal_host_open options = {.workers = 4};
 *     peal_host_open(&options, &host);                        4 processes, unless PEAL_PLATFORM is set
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
 * workers). The result is as if the tasks ran one after the other in the order of submission. On
 * each worker, a task waits for earlier tasks that write bytes which it reads or writes, or read
 * bytes which it writes. All other tasks may run at the same time.
 *
 * Platforms. `native`: workers are processes that the host forks (`native:threads`: threads of this
 * process). `hosts:A:N,B:M`: N workers on host A, M on host B and so on; there the same program is
 * started again and runs up to its first peal_host_open (docs/host.md). `sim:MACHINE`: workers are
 * the PEs (processing elements) of a modelled machine, which is a file or a built-in one
 * (docs/simulator.md); results are computed, and times are those of the machine. The environment
 * variable PEAL_PLATFORM overrides what the program says.
 *
 * Queues. A worker has two, each with a thread of its own. Tasks whose kernel reads or writes other
 * ranks' memory, or uses signals or channels, go to the communication queue, all others to the
 * compute queue. A queue runs its tasks one after the other, in the order of submission. A domain's
 * task is queued on all its members or on none, and begins when all have reached it. No choice of
 * domains can deadlock: of all tasks that have not ended, the oldest is at the head of its queues,
 * and waits only for older ones.
 *
 * Errors. Every call returns a status; peal_host_error has the text. Wrong arguments (PEAL_INVALID)
 * are found when a task is submitted; the task is then not queued. A task that fails leaves its
 * outputs undefined: tasks that read them fail too, until something has overwritten them. When a
 * worker dies, the tasks on it and on its domains fail, and the tasks that read their outputs; no
 * others do. When a communicating task fails while it runs, its domain cannot be used any more:
 * release it, make another.
 *
 * Threads. A host belongs to one thread at a time. Functions that run as tasks must not use it:
 * such calls return PEAL_INVALID, because a task that waits for a task could wait for itself.
 *
 * Handles (tensors, domains, works, tasks) are numbers, valid for their own host. A handle that was
 * freed, or belongs to another host, is refused.
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
/* id 0 means none. */
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

/* An argument as a function sees it. This structure will not get new members. */
struct peal_function_arg {
    void *data;     /* tensors: this worker's part */
    uint64_t count; /* tensors: elements of that part; int arrays: values */
    enum peal_dtype dtype;
    uint32_t
        ndims; /* tensors: dimensions of the whole argument on this worker; 1 if a part is passed */
    uint64_t shape[PEAL_MOST_DIMS];
    int64_t value; /* int */
    const int64_t *values;
};

struct peal_function_call {
    uint32_t struct_size; /* sizeof(struct peal_function_call) in the library */
    uint32_t worker;
    uint32_t rank, size; /* within the task's domain; 0 and 1 for a task on one worker */
    const struct peal_function_arg *args;
    size_t nargs;
    char *error; /* a function that fails may write the reason here */
    size_t error_cap;
};

/* A C function that tasks may run, on the compute queue; it returns a status. Workers are forks of
 * this program, or the same program on another host, so functions are given when the host is
 * opened. */
struct peal_function {
    uint32_t
        struct_size; /* sizeof(struct peal_function), the same in all, or 0: as it is in 0.2.0 */
    const char *name;
    enum peal_status (*run)(const struct peal_function_call *call, void *context);
    void *context;
    /* The kinds of its parameters, separated by commas: in, out, inout (tensors), int, ints. */
    const char *parameters;
    /* How long it occupies the PE's math engine on a simulated machine: what `cost` returns, whose
     * args have no data, or cost_ps if `cost` is NULL. */
    uint64_t cost_ps;
    uint64_t (*cost)(const struct peal_function_call *call, void *context);
};

/* ---- hosts ---- */

/* How to open a host. Zero means the default in every field; a number of workers is there by default
 * only on a modelled machine. */
struct peal_host_open {
    uint32_t struct_size; /* sizeof(struct peal_host_open), or 0: as it is in 0.2.0 */
    uint32_t workers;     /* 0: as many as the modelled machine is made for */
    const char *platform; /* NULL: "native" */
    uint64_t memory;      /* limit of tensors per worker in bytes; 0: 1 GiB. Taken as it is used */
    uint32_t timeout_ms;  /* of communicating tasks, see peal_comm_set_timeout */
    int record;           /* keep the times of all tasks (up to PEAL_MOST_RECORDED) and what they
                                  waited for: for traces, graphs and critical paths */
    int hold;             /* as if peal_host_hold were called first */
    const struct peal_function *functions;
    size_t nfunctions;
};

/* PEAL_INVALID: no workers on this host, or a platform that is not understood; PEAL_UNSUPPORTED: more workers
 * than PEAL_MOST_RANKS, or than the machine has PEs. peal_host_error(NULL) has the text. */
PEAL_API enum peal_status peal_host_open(const struct peal_host_open *options,
                                         struct peal_host **out);
/* Waits for all tasks and ends the workers. NULL is ignored. */
PEAL_API void peal_host_close(struct peal_host *host);
/* The text of the last failure on this host; with NULL, of the last failed opening in this thread.
 * Valid until the next failure. */
PEAL_API const char *peal_host_error(const struct peal_host *host);
PEAL_API uint32_t peal_host_workers(const struct peal_host *host);
/* The platform that the host runs on: "native", "native:threads", "hosts:A:N,B:M" or
 * "sim:MACHINE". */
PEAL_API const char *peal_host_platform(const struct peal_host *host);
/* The process id of a worker on its own host; 0 if workers are threads or simulated. */
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
    const char *name;     /* for reports; may be NULL */
    const uint32_t *workers;
    size_t nworkers; /* rank r of the domain is workers[r] */
    const struct peal_domain_buffer *buffers;
    size_t nbuffers;
};

/* Domains may overlap; each has ranks and windows of its own. Names, sizes and available memory are
 * checked before any buffer is allocated. Buffers are zeroed. */
PEAL_API enum peal_status peal_domain_new(struct peal_host *host,
                                          const struct peal_domain_spec *spec,
                                          struct peal_domain *out);
/* The caller cannot use the domain and its buffers any more; queued tasks still can. Tensors that
 * were placed on the domain stay. */
PEAL_API enum peal_status peal_domain_release(struct peal_host *host, struct peal_domain handle);
/* One of the domain's buffers as a replicated tensor, for window parameters and for reading and
 * writing. It is freed with its domain, not alone. */
PEAL_API enum peal_status peal_domain_tensor(struct peal_host *host, struct peal_domain handle,
                                             const char *name, struct peal_tensor *out);

/* ---- tensors ---- */

enum peal_placement {
    PEAL_ON_WORKER,  /* one copy, on `worker` */
    PEAL_REPLICATED, /* a copy on every member of `domain` */
    PEAL_SHARDED /* cut along shard_dim: rank r of `domain` has indices r*n/size to (r+1)*n/size - 1 */
};

struct peal_tensor_spec {
    uint32_t struct_size; /* sizeof(struct peal_tensor_spec), or 0: as it is in 0.2.0 */
    const char *name;     /* for reports; may be NULL */
    enum peal_dtype dtype;
    uint32_t ndims; /* 1 to PEAL_MOST_DIMS */
    uint64_t shape[PEAL_MOST_DIMS];
    enum peal_placement place;
    uint32_t worker;
    struct peal_domain domain; /* none: all workers */
    uint32_t shard_dim;
};

/* The tensor is zeroed. PEAL_NO_MEMORY: a worker's memory limit, or the system's memory, is used
 * up. */
PEAL_API enum peal_status peal_tensor_new(struct peal_host *host,
                                          const struct peal_tensor_spec *spec,
                                          struct peal_tensor *out);
/* The caller cannot use the tensor any more; its memory is reused when queued tasks have ended. */
PEAL_API enum peal_status peal_tensor_free(struct peal_host *host, struct peal_tensor handle);
/* Writes the whole tensor, row by row, after the tasks that use it. Every replica gets all of it,
 * every shard its part. `bytes` must be the size of the tensor. */
PEAL_API enum peal_status peal_tensor_write(struct peal_host *host, struct peal_tensor handle,
                                            const void *data, uint64_t bytes);
/* Reads the whole tensor, after the tasks that write it; of replicas, the first. If the task that
 * should have written it has failed, fails with the status and text of that task. */
PEAL_API enum peal_status peal_tensor_read(struct peal_host *host, struct peal_tensor handle,
                                           void *data, uint64_t bytes);
/* The same for the part of one member: a whole replica, or a whole shard. `rank` is within the
 * tensor's domain. */
PEAL_API enum peal_status peal_tensor_write_part(struct peal_host *host, struct peal_tensor tensor,
                                                 uint32_t rank, const void *data, uint64_t bytes);
PEAL_API enum peal_status peal_tensor_read_part(struct peal_host *host, struct peal_tensor tensor,
                                                uint32_t rank, void *data, uint64_t bytes);
/* The size in bytes of the whole tensor, and of one member's part; 0 if the handle is not a
 * tensor. */
PEAL_API uint64_t peal_tensor_bytes(const struct peal_host *host, struct peal_tensor handle);
PEAL_API uint64_t peal_tensor_part_bytes(const struct peal_host *host, struct peal_tensor handle,
                                         uint32_t rank);

/* ---- tasks ---- */

/* A kernel from Peal text (name NULL: its last), or the library kernel of that name (text NULL).
 * PEAL_INVALID: the text is wrong; the error has file, line and caret. Valid as long as the
 * host. */
PEAL_API enum peal_status peal_work_kernel(struct peal_host *host, const char *text,
                                           const char *name, struct peal_work *out);
/* A function given to peal_host_open, or the built-in `matmul` (in a[m,k], in b[k,n], inout c[m,n],
 * int accumulate). It computes c = a b, or c += a b, in f32 or f64, with CBLAS if one can be
 * loaded. */
PEAL_API enum peal_status peal_work_function(struct peal_host *host, const char *name,
                                             struct peal_work *out);

/* Declares a user-defined reduction, as peal_reduction_declare does: *out is an operation for the
 * tasks of this host. Declaring a reduction again gives the same operation. There can be 16. */
PEAL_API enum peal_status peal_host_reduction_declare(struct peal_host *host, const char *text,
                                                      const char *name, enum peal_reduction *out);

/* INTS for a `local` parameter has the values of all members one after the other. */
enum peal_task_arg_kind { PEAL_TASK_TENSOR, PEAL_TASK_INT, PEAL_TASK_INTS, PEAL_TASK_REDUCE };
struct peal_task_arg {
    uint32_t
        struct_size; /* sizeof(struct peal_task_arg), the same in all, or 0: as it is in 0.2.0 */
    enum peal_task_arg_kind kind;
    struct peal_tensor tensor;
    uint64_t first,
        count; /* TENSOR: a range within each member's part, in elements; count 0: the rest */
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

/* A task runs on `worker`, on `domain`, or on everyone (all workers; rank r is worker r). Arguments
 * are in the order of the parameters; trailing ints that have a default may be left out. A kernel's
 * T is the type of the first tensor whose parameter has elements of T. Dimensions follow from
 * shapes unless they are given; a kernel has one plan for all members, so shards of different
 * lengths are refused unless its dimensions are given. The kernel says which parameters are read
 * and written. Tensors of a domain's task must have a part on each member. */
struct peal_task_spec {
    uint32_t struct_size; /* sizeof(struct peal_task_spec), or 0: as it is in 0.2.0 */
    const char *name;     /* for reports; NULL: the name of the work */
    struct peal_work work;
    uint32_t worker;
    struct peal_domain domain;
    int everyone;
    const struct peal_task_arg *args;
    size_t nargs;
    const struct peal_dim *dims;
    size_t ndims;
};

/* Queues a task and returns; out may be NULL. If PEAL_MOST_QUEUED tasks have not ended, waits for
 * the oldest of them. On failure nothing is queued. PEAL_INVALID: arguments do not fit the kernel's
 * parameters, a tensor is on other workers or too small, in and out overlap (unless they are the
 * same and the kernel has an in-place plan), or the kernel has no plan for these arguments.
 * PEAL_PEER_DEAD: a worker is dead. PEAL_CLOSED: a tensor was freed, or the domain released. */
PEAL_API enum peal_status
peal_host_submit(struct peal_host *host, const struct peal_task_spec *spec, struct peal_task *out);
/* The same, but returns PEAL_PENDING instead of waiting; nothing is queued then. */
PEAL_API enum peal_status peal_host_try_submit(struct peal_host *host,
                                               const struct peal_task_spec *spec,
                                               struct peal_task *out);

/* Waits for a task to end and returns its status; may be called any number of times. */
PEAL_API enum peal_status peal_host_wait(struct peal_host *host, struct peal_task task);
/* The same without waiting: PEAL_PENDING while it has not ended. */
PEAL_API enum peal_status peal_host_test(struct peal_host *host, struct peal_task task);
/* Waits for the tasks that write a tensor, on every member. */
PEAL_API enum peal_status peal_host_wait_tensor(struct peal_host *host, struct peal_tensor handle);
/* Waits for all tasks. If any has failed since the last such call, returns the status and text of
 * the first. A task that was not run because it depends on a failed one has that one's status, and
 * its text names the task that failed first. */
PEAL_API enum peal_status peal_host_wait_all(struct peal_host *host);

/* ---- graphs ---- */

/* From now on tasks are kept and not started, until peal_host_go or any call that waits. */
PEAL_API enum peal_status peal_host_hold(struct peal_host *host);
PEAL_API enum peal_status peal_host_go(struct peal_host *host);
/* Checks the tasks that are held: no two tasks access the same bytes without an order between them;
 * every kernel is proved for its arguments, and closed if it shares a domain's buffers with another
 * kernel; tasks cannot wait for each other in a cycle. PEAL_OK: all of this holds. PEAL_INVALID: it
 * does not, and peal_host_error says why. PEAL_UNSUPPORTED: a proof was not decided. With
 * PEAL_VERIFY=1 in the environment every kernel is proved before a task with it is accepted, and
 * peal_host_go makes this check. */
PEAL_API enum peal_status peal_host_check(struct peal_host *host);

struct peal_host_stats {
    uint64_t submitted, ended, failed; /* tasks */
    uint64_t time_ps;                  /* simulated time so far; otherwise time since opening */
    /* Of recorded tasks (peal_host_open.record): */
    uint64_t critical_ps; /* length of the chain of waits that ends last */
    uint64_t compute_ps,
        comm_ps;         /* time that the queues of each kind were busy, over all workers */
    uint64_t overlap_ps; /* of that, time during which both queues of a worker were busy */
    /* On a simulated machine: busy time of math engines and DMA engines (over all workers), and of
     * the busiest link. */
    uint64_t math_ps, dma_ps, link_ps;
};
/* Pass sizeof(struct peal_host_stats) as out_size: fields that this library does not know become
 * zero. */
PEAL_API enum peal_status peal_host_stats(struct peal_host *host, struct peal_host_stats *out,
                                          size_t out_size);
/* These wait for all tasks, then write a file about the recorded ones: a trace for ui.perfetto.dev
 * (one track per queue), a drawing of the graph with its critical path (SVG), the critical path as
 * lines of text, and a page with all of these (HTML). */
PEAL_API enum peal_status peal_host_write_trace(struct peal_host *host, const char *path);
PEAL_API enum peal_status peal_host_write_graph(struct peal_host *host, const char *path);
PEAL_API enum peal_status peal_host_write_path(struct peal_host *host, const char *path);
PEAL_API enum peal_status peal_host_write_page(struct peal_host *host, const char *path);

#ifdef __cplusplus
}
#endif
#endif
