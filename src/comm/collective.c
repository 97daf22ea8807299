/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of peal.h, blocking and not: each says what its arguments are.
 *
 * Programs repeat their calls, and a small call takes less time than its checks would. So a
 * communicator keeps the last blocking call of each collective, ready to run (struct peal_memo): a
 * call with the same arguments runs it again, and nothing else happens. A memo holds while team,
 * memory and algorithms stay as they are; whatever changes one of these calls peal_comm_forget.
 *
 * Every other call takes the same path: check the arguments (arguments.c), find plan and memory
 * (resolve.c), run. A call that runs on a simulated machine, or by a kernel from a file, leaves
 * this path after the check: core/backend.h, choice/from_file.c.
 *
 * The bounds of a blocking call are in the memo. A non-blocking call has its own, in its request,
 * because several may be under way. */
#include "comm/choice/from_file.h"
#include "comm/core/arguments.h"
#include "comm/core/backend.h"

#include <stdlib.h>
#include <string.h>

static enum peal_status run_on_host(struct peal_comm *comm, const struct peal_arguments *args,
                                    const void *send)
{
    struct peal_memo *memo = &comm->memos[args->collective];
    if (peal_from_file_takes(comm, args))
        return peal_from_file_run(comm, args);
    memo->repeats = false;
    memo->call = (struct peal_call){0};
    enum peal_status status = peal_arguments_resolve(comm, args, memo->bounds, &memo->call);
    if (status != PEAL_OK)
        return status;
    memo->call.image->bound = NULL;
    memo->call.repeats = memo->repeats = !args->counts && !comm->platform;
    memo->asked =
        peal_call_code(args->collective, (uint32_t)args->dtype, (uint32_t)args->reduce, args->root);
    memo->send = send;
    memo->recv = args->recv;
    return peal_comm_end(comm, peal_call_run(&comm->engine, &memo->call));
}

static enum peal_status check_and_run(struct peal_comm *comm, struct peal_arguments args,
                                      const struct peal_backend *backend)
{
    const void *send = args.send; /* the check may fill it in */
    enum peal_status status = peal_arguments_check(comm, &args);
    if (status == PEAL_OK && peal_from_file_takes(comm, &args))
        status = peal_from_file_check(comm, &args);
    return status == PEAL_OK ? backend->run(comm, &args, send) : status;
}

/* Anything but a repetition of the last call of its kind. */
static __attribute__((noinline)) enum peal_status run_new(struct peal_comm *comm,
                                                          struct peal_arguments args)
{
    enum peal_status status = peal_comm_check(comm);
    return status == PEAL_OK ? check_and_run(comm, args, comm->backend) : status;
}

enum peal_status peal_comm_run_here(struct peal_comm *comm, struct peal_arguments args)
{
    enum peal_status status = peal_comm_check(comm);
    return status == PEAL_OK ? check_and_run(comm, args, &peal_backend_host) : status;
}

static enum peal_status start_on_host(struct peal_comm *comm, const struct peal_arguments *args,
                                      struct peal_arrival **out)
{
    (void)comm, (void)args, (void)out;
    return PEAL_OK;
}

static enum peal_status launched_on_host(struct peal_comm *comm, const struct peal_kernel *kernel,
                                         const struct peal_bind *bind, struct peal_plan **plan)
{
    (void)comm, (void)kernel, (void)bind, (void)plan;
    return PEAL_OK;
}

const struct peal_backend peal_backend_host = {.run = run_on_host,
                                               .exchange = peal_exchange_here,
                                               .start = start_on_host,
                                               .launched = launched_on_host};

/* A repetition needs no check, no plan and no binding: all of that follows from the arguments. */
static inline bool is_repetition(const struct peal_comm *comm, struct peal_arguments args)
{
    if (__builtin_expect(!comm || !peal_team_is_well(comm->team) || comm->platform ||
                             peal_team_is_forked(comm->team),
                         0))
        return false;
    if (__builtin_expect(comm->team->idling, 0))
        return false;
    const struct peal_memo *memo = &comm->memos[args.collective];
    uint64_t code =
        peal_call_code(args.collective, (uint32_t)args.dtype, (uint32_t)args.reduce, args.root);
    bool fits = (((uint32_t)args.dtype | (uint32_t)args.reduce) & ~0xffu) == 0; /* into `code` */
    return fits && memo->repeats && memo->asked == code && memo->call.count == args.count &&
           memo->send == args.send && memo->recv == args.recv;
}

static inline enum peal_status run_again(struct peal_comm *comm, enum peal_collective collective)
{
    if (!comm->team->span) /* otherwise the call itself serves the network */
        peal_team_assist(comm->team);
    enum peal_status status = peal_call_run(&comm->engine, &comm->memos[collective].call);
    return __builtin_expect(status == PEAL_OK, 1) ? status : peal_comm_end(comm, status);
}

static enum peal_status start_by(const struct peal_backend *backend, struct peal_comm *comm,
                                 struct peal_arguments args, struct peal_request **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status == PEAL_OK)
        status = peal_arguments_check(comm, &args);
    if (status != PEAL_OK)
        return status;
    struct peal_request *request = peal_request_new(comm, out, 0, &status);
    if (!request)
        return status;
    status = peal_arguments_resolve(comm, &args, request->bounds, &request->call);
    if (status == PEAL_OK)
        status = backend->start(comm, &args, &request->arrival);
    return peal_request_start(request, status, out);
}

static enum peal_status start(struct peal_comm *comm, struct peal_arguments args,
                              struct peal_request **out)
{
    return start_by(comm ? comm->backend : NULL, comm, args, out);
}

enum peal_status peal_comm_start_here(struct peal_comm *comm, struct peal_arguments args,
                                      struct peal_request **out)
{
    return start_by(&peal_backend_host, comm, args, out);
}

#define ARGS(...)                                                                                  \
    (struct peal_arguments)                                                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* What the calls with even and with uneven blocks have in common, from their parameters of these
 * names. */
#define EVEN .send = send, .recv = recv, .count = count, .dtype = dtype
#define UNEVEN                                                                                     \
    .send = send, .recv = recv, .count = 0, .dtype = dtype, .counts = counts, .offsets = offsets

/* A repetition does not store its arguments in memory: that would take longer than its way to the
 * first step. */
#define RUN(comm, which, ...)                                                                      \
    (is_repetition(comm, ARGS(.collective = (which), __VA_ARGS__))                                 \
         ? run_again(comm, which)                                                                  \
         : run_new(comm, ARGS(.collective = (which), __VA_ARGS__)))

enum peal_status peal_barrier(struct peal_comm *comm)
{
    return RUN(comm, PEAL_CALL_BARRIER, .count = 0);
}

enum peal_status peal_allreduce(struct peal_comm *comm, const void *send, void *recv,
                                uint64_t count, enum peal_dtype dtype, enum peal_reduction op)
{
    return RUN(comm, PEAL_CALL_ALLREDUCE, EVEN, .reduce = op);
}

enum peal_status peal_reduce(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                             enum peal_dtype dtype, enum peal_reduction op, uint32_t root)
{
    return RUN(comm, PEAL_CALL_REDUCE, EVEN, .reduce = op, .root = root);
}

enum peal_status peal_broadcast(struct peal_comm *comm, void *buffer, uint64_t count,
                                enum peal_dtype dtype, uint32_t root)
{
    return RUN(comm, PEAL_CALL_BROADCAST, .send = buffer, .recv = buffer, .count = count,
               .dtype = dtype, .root = root);
}

enum peal_status peal_allgather(struct peal_comm *comm, const void *send, void *recv,
                                uint64_t count, enum peal_dtype dtype)
{
    return RUN(comm, PEAL_CALL_ALLGATHER, EVEN);
}

enum peal_status peal_reduce_scatter(struct peal_comm *comm, const void *send, void *recv,
                                     uint64_t count, enum peal_dtype dtype, enum peal_reduction op)
{
    return RUN(comm, PEAL_CALL_REDUCE_SCATTER, EVEN, .reduce = op);
}

enum peal_status peal_gather(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                             enum peal_dtype dtype, uint32_t root)
{
    return RUN(comm, PEAL_CALL_GATHER, EVEN, .root = root);
}

enum peal_status peal_scatter(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                              enum peal_dtype dtype, uint32_t root)
{
    return RUN(comm, PEAL_CALL_SCATTER, EVEN, .root = root);
}

enum peal_status peal_scan(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                           enum peal_dtype dtype, enum peal_reduction op)
{
    return RUN(comm, PEAL_CALL_SCAN, EVEN, .reduce = op);
}

enum peal_status peal_exscan(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                             enum peal_dtype dtype, enum peal_reduction op)
{
    return RUN(comm, PEAL_CALL_EXSCAN, EVEN, .reduce = op);
}

enum peal_status peal_all_to_all(struct peal_comm *comm, const void *send, void *recv,
                                 uint64_t count, enum peal_dtype dtype)
{
    return RUN(comm, PEAL_CALL_ALL_TO_ALL, EVEN);
}

enum peal_status peal_allgather_v(struct peal_comm *comm, const void *send, void *recv,
                                  const uint64_t *counts, const uint64_t *offsets,
                                  enum peal_dtype dtype)
{
    return RUN(comm, PEAL_CALL_ALLGATHER_V, UNEVEN);
}

enum peal_status peal_reduce_scatter_v(struct peal_comm *comm, const void *send, void *recv,
                                       const uint64_t *counts, const uint64_t *offsets,
                                       enum peal_dtype dtype, enum peal_reduction op)
{
    return RUN(comm, PEAL_CALL_REDUCE_SCATTER_V, UNEVEN, .reduce = op);
}

enum peal_status peal_gather_v(struct peal_comm *comm, const void *send, void *recv,
                               const uint64_t *counts, const uint64_t *offsets,
                               enum peal_dtype dtype, uint32_t root)
{
    return RUN(comm, PEAL_CALL_GATHER_V, UNEVEN, .root = root);
}

enum peal_status peal_scatter_v(struct peal_comm *comm, const void *send, void *recv,
                                const uint64_t *counts, const uint64_t *offsets,
                                enum peal_dtype dtype, uint32_t root)
{
    return RUN(comm, PEAL_CALL_SCATTER_V, UNEVEN, .root = root);
}

enum peal_status peal_ibarrier(struct peal_comm *comm, struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_BARRIER), out);
}

enum peal_status peal_iallreduce(struct peal_comm *comm, const void *send, void *recv,
                                 uint64_t count, enum peal_dtype dtype, enum peal_reduction op,
                                 struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_ALLREDUCE, EVEN, .reduce = op), out);
}

enum peal_status peal_ireduce(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                              enum peal_dtype dtype, enum peal_reduction op, uint32_t root,
                              struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_REDUCE, EVEN, .reduce = op, .root = root), out);
}

enum peal_status peal_ibroadcast(struct peal_comm *comm, void *buffer, uint64_t count,
                                 enum peal_dtype dtype, uint32_t root, struct peal_request **out)
{
    return start(comm,
                 ARGS(.collective = PEAL_CALL_BROADCAST, .send = buffer, .recv = buffer,
                      .count = count, .dtype = dtype, .root = root),
                 out);
}

enum peal_status peal_iallgather(struct peal_comm *comm, const void *send, void *recv,
                                 uint64_t count, enum peal_dtype dtype, struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_ALLGATHER, EVEN), out);
}

enum peal_status peal_ireduce_scatter(struct peal_comm *comm, const void *send, void *recv,
                                      uint64_t count, enum peal_dtype dtype, enum peal_reduction op,
                                      struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_REDUCE_SCATTER, EVEN, .reduce = op), out);
}

enum peal_status peal_igather(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                              enum peal_dtype dtype, uint32_t root, struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_GATHER, EVEN, .root = root), out);
}

enum peal_status peal_iscatter(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                               enum peal_dtype dtype, uint32_t root, struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_SCATTER, EVEN, .root = root), out);
}

enum peal_status peal_iscan(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                            enum peal_dtype dtype, enum peal_reduction op,
                            struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_SCAN, EVEN, .reduce = op), out);
}

enum peal_status peal_iexscan(struct peal_comm *comm, const void *send, void *recv, uint64_t count,
                              enum peal_dtype dtype, enum peal_reduction op,
                              struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_EXSCAN, EVEN, .reduce = op), out);
}

enum peal_status peal_iall_to_all(struct peal_comm *comm, const void *send, void *recv,
                                  uint64_t count, enum peal_dtype dtype, struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_ALL_TO_ALL, EVEN), out);
}

enum peal_status peal_iallgather_v(struct peal_comm *comm, const void *send, void *recv,
                                   const uint64_t *counts, const uint64_t *offsets,
                                   enum peal_dtype dtype, struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_ALLGATHER_V, UNEVEN), out);
}

enum peal_status peal_ireduce_scatter_v(struct peal_comm *comm, const void *send, void *recv,
                                        const uint64_t *counts, const uint64_t *offsets,
                                        enum peal_dtype dtype, enum peal_reduction op,
                                        struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_REDUCE_SCATTER_V, UNEVEN, .reduce = op), out);
}

enum peal_status peal_igather_v(struct peal_comm *comm, const void *send, void *recv,
                                const uint64_t *counts, const uint64_t *offsets,
                                enum peal_dtype dtype, uint32_t root, struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_GATHER_V, UNEVEN, .root = root), out);
}

enum peal_status peal_iscatter_v(struct peal_comm *comm, const void *send, void *recv,
                                 const uint64_t *counts, const uint64_t *offsets,
                                 enum peal_dtype dtype, uint32_t root, struct peal_request **out)
{
    return start(comm, ARGS(.collective = PEAL_CALL_SCATTER_V, UNEVEN, .root = root), out);
}

enum peal_status peal_comm_exchange(struct peal_comm *comm, enum peal_collective collective,
                                    const void *own, void *all, uint64_t bytes)
{
    struct peal_arguments args = ARGS(.collective = PEAL_CALL_ALLGATHER, .send = own, .recv = all,
                                      .count = bytes, .dtype = PEAL_U8);
    struct peal_call call = {0};
    enum peal_status status = peal_comm_check(comm);
    /* It was open when the program's call began: what has failed is a part of that call. */
    if (status == PEAL_CLOSED)
        return peal_comm_fail(comm, peal_team_failure(comm->team), "%s",
                              peal_text_get(&comm->team->error));
    if (status == PEAL_OK)
        status = peal_arguments_resolve(comm, &args, comm->bounds, &call);
    if (status != PEAL_OK)
        return status;
    call.code = peal_call_code(collective, 0, 0, 0);
    call.signature ^= collective * UINT32_C(0x9e3779b9);
    return peal_comm_end(comm, peal_call_run(&comm->engine, &call));
}
