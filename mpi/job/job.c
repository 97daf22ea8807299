/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of MPI as calls of Peal. There is a function for each shape of arguments; begin_kind
 * chooses.
 *
 * Reductions keep their type: Peal reads and writes the program's buffers, unless the input must be
 * copied (begin_input) or the type is a pair, which has another layout in Peal. All other calls
 * move bytes. Data of a predefined type is moved in the program's memory; data of a derived type is
 * packed into a temporary copy before the call, and unpacked from another one after it.
 *
 * A job has at most two temporaries: one that is sent from, one that is received into. Arguments
 * that Peal can use directly are not copied. MPI forbids buffers that overlap, but Open MPI works
 * with them, so overlaps are detected and the input is copied.
 *
 * Between begin and end the program may free the datatypes that it passed, but not the buffers. A
 * type that is needed at the end is therefore duplicated (keep_type).
 */
#include "job.h"

#include "pack.h"
#include "pairs.h"

#include <stdlib.h>
#include <string.h>

/* Temporary memory of the job; NULL if there is none. */
static void *take_temp(struct peal_mpi_job *job, uint64_t bytes)
{
    int place = job->temps[0] ? 1 : 0;
    job->temps[place] = malloc(bytes > 0 ? bytes : 1);
    return job->temps[place];
}

static bool overlaps(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y + b_bytes && y < x + a_bytes;
}

/* ---- reductions ---- */

static void make_logical(const void *from, uint64_t count, uint32_t bytes, void *to)
{
    for (uint64_t i = 0; i < count; i++) {
        const char *in = (const char *)from + i * bytes;
        char *out = (char *)to + i * bytes;
        uint64_t value = 0;
        memcpy(&value, in, bytes);
        value = value != 0;
        memcpy(out, &value, bytes);
    }
}

static bool copies_in_place(enum peal_mpi_collective collective)
{
    return collective == PEAL_MPI_REDUCE_SCATTER || collective == PEAL_MPI_REDUCE_SCATTER_BLOCK ||
           collective == PEAL_MPI_SCAN || collective == PEAL_MPI_EXSCAN;
}

/* Where Peal reads the input. Like MPI, Peal works in place for allreduce and for the root of a
 * reduce: both buffers have the same address. Input is copied in place of a reduce_scatter, whose
 * result Peal has elsewhere than MPI; of a scan, which may be in place on some ranks only; if it
 * overlaps the result; and if it must be made 0 or 1. */
static enum peal_status begin_input(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    bool in_place = call->send == peal_mpi()->in_place;
    bool copies = copies_in_place(call->collective);
    bool has_recv = call->collective != PEAL_MPI_REDUCE || (uint32_t)call->root == job->rank;
    const struct peal_mpi_type *type =
        peal_mpi_type_find(peal_mpi_handle(peal_mpi(), call->recvtype));
    uint64_t bytes = call->bytes, elements = bytes / type->bytes;
    const void *input = in_place ? call->recv : call->send;
    job->recv = has_recv ? call->recv : NULL;
    job->send = input;
    bool moves = (in_place && copies) ||
                 (!in_place && has_recv && bytes > 0 && overlaps(input, bytes, call->recv, bytes));
    if (call->reduction->logical && in_place && !copies) {
        make_logical(input, elements, type->bytes, call->recv);
        return PEAL_OK;
    }
    if (!moves && !call->reduction->logical)
        return PEAL_OK;
    void *temp = take_temp(job, bytes);
    if (!temp)
        return PEAL_NO_MEMORY;
    if (call->reduction->logical)
        make_logical(input, elements, type->bytes, temp);
    else
        memcpy(temp, input, bytes);
    job->send = temp;
    return PEAL_OK;
}

static uint64_t count_results(const struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    if (call->collective == PEAL_MPI_REDUCE_SCATTER)
        return (uint64_t)call->recvcounts[job->rank];
    return (uint64_t)call->recvcount;
}

/* Input and result are copies in Peal's layout. */
static enum peal_status begin_pairs(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    const struct peal_mpi_pair *pair = call->pair;
    const void *input = call->send == peal_mpi()->in_place ? call->recv : call->send;
    uint64_t elements = call->bytes / pair->bytes, results = count_results(job, call);
    void *send = take_temp(job, elements * pair->packed_bytes);
    if (!send)
        return PEAL_NO_MEMORY;
    pair->widen(input, elements, send);
    job->send = send;
    if (call->collective == PEAL_MPI_REDUCE && job->rank != job->root)
        return PEAL_OK;
    job->recv = take_temp(job, results * pair->packed_bytes);
    if (!job->recv)
        return PEAL_NO_MEMORY;
    /* The first rank of an exclusive scan has no result. */
    if (call->collective == PEAL_MPI_EXSCAN && job->rank == 0)
        return PEAL_OK;
    job->result = (struct peal_mpi_result){
        .from = job->recv, .to = call->recv, .pair = pair, .count = (int)results};
    return PEAL_OK;
}

static enum peal_status begin_reduction(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    uint32_t parts = call->reduction->parts;
    job->dtype = call->reduction->dtype;
    job->reduce = call->reduction->reduce;
    job->count = (uint64_t)call->recvcount * parts;
    if (call->collective == PEAL_MPI_REDUCE_SCATTER) {
        job->words = malloc(job->size * sizeof *job->words);
        if (!job->words)
            return PEAL_NO_MEMORY;
        for (uint32_t r = 0; r < job->size; r++)
            job->words[r] = (uint64_t)call->recvcounts[r] * parts;
    }
    return call->pair ? begin_pairs(job, call) : begin_input(job, call);
}

/* ---- data that is moved, as bytes ---- */

/* Packs blocks of `count` elements each, one after the other, to `at`. */
static bool pack_blocks(const struct peal_mpi_job *job, const void *buf, int count, void *type,
                        uint32_t blocks, char *at)
{
    struct peal_mpi_shape shape;
    peal_mpi_shape_get(type, &shape);
    for (uint32_t i = 0; i < blocks; i++) {
        const char *from = (const char *)buf + (int64_t)i * count * shape.extent;
        if (!peal_mpi_pack(from, count, type, job->comm, at))
            return false;
        at += (uint64_t)count * shape.bytes;
    }
    return true;
}

static bool is_plain(void *type)
{
    return peal_mpi_type_find(peal_mpi_handle(peal_mpi(), type)) != NULL;
}

/* Sends from the program's memory, or from a packed copy. */
static enum peal_status begin_send(struct peal_mpi_job *job, const void *buf, int count, void *type,
                                   uint32_t blocks)
{
    if (is_plain(type)) {
        job->send = buf;
        return PEAL_OK;
    }
    char *temp = take_temp(job, job->count * blocks);
    if (!temp || !pack_blocks(job, buf, count, type, blocks, temp))
        return PEAL_NO_MEMORY;
    job->send = temp;
    return PEAL_OK;
}

/* Receives into the program's memory, or into memory that is unpacked at the end. */
static enum peal_status begin_recv(struct peal_mpi_job *job, void *buf, int count, void *type,
                                   uint32_t blocks)
{
    if (is_plain(type)) {
        job->recv = buf;
        return PEAL_OK;
    }
    char *temp = take_temp(job, job->count * blocks);
    if (!temp)
        return PEAL_NO_MEMORY;
    job->recv = temp;
    job->result = (struct peal_mpi_result){
        .from = temp, .to = buf, .type = type, .count = count, .blocks = blocks};
    return PEAL_OK;
}

static enum peal_status begin_bcast(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    if (job->rank != job->root)
        return begin_recv(job, call->recv, call->recvcount, call->recvtype, 1);
    enum peal_status status = begin_send(job, call->recv, call->recvcount, call->recvtype, 1);
    job->recv = (void *)(uintptr_t)job->send;
    return status;
}

/* In place: this rank's block of the receive buffer is what it sends, packed if that buffer is. */
static enum peal_status send_own_block(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    struct peal_mpi_shape shape;
    char *own = (char *)job->recv + job->rank * job->count;
    job->send = own;
    if (!job->result.from)
        return PEAL_OK;
    peal_mpi_shape_get(call->recvtype, &shape);
    const char *from =
        (const char *)call->recv + (int64_t)job->rank * call->recvcount * shape.extent;
    bool packed = peal_mpi_pack(from, call->recvcount, call->recvtype, job->comm, own);
    return packed ? PEAL_OK : PEAL_NO_MEMORY;
}

/* allgather, and the root of gather. */
static enum peal_status begin_gathering(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    enum peal_status status =
        begin_recv(job, call->recv, call->recvcount, call->recvtype, job->size);
    if (status != PEAL_OK)
        return status;
    if (call->send == peal_mpi()->in_place)
        return send_own_block(job, call);
    status = begin_send(job, call->send, call->sendcount, call->sendtype, 1);
    bool clash =
        status == PEAL_OK && overlaps(job->send, job->count, job->recv, job->count * job->size);
    if (!clash)
        return status;
    void *temp = take_temp(job, job->count);
    if (!temp)
        return PEAL_NO_MEMORY;
    job->send = memcpy(temp, job->send, job->count);
    return PEAL_OK;
}

static enum peal_status begin_gather(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    if (job->rank == job->root)
        return begin_gathering(job, call);
    return begin_send(job, call->send, call->sendcount, call->sendtype, 1);
}

static enum peal_status begin_scatter(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    if (job->rank != job->root)
        return begin_recv(job, call->recv, call->recvcount, call->recvtype, 1);
    enum peal_status status =
        begin_send(job, call->send, call->sendcount, call->sendtype, job->size);
    if (status != PEAL_OK)
        return status;
    if (call->recv == peal_mpi()->in_place) {
        /* Peal does not write it, because the block is already there. */
        job->recv = (char *)(uintptr_t)job->send + job->rank * job->count;
        return PEAL_OK;
    }
    return begin_recv(job, call->recv, call->recvcount, call->recvtype, 1);
}

static enum peal_status begin_alltoall(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    uint64_t bytes = job->count * job->size;
    enum peal_status status =
        begin_recv(job, call->recv, call->recvcount, call->recvtype, job->size);
    if (status != PEAL_OK)
        return status;
    bool in_place = call->send == peal_mpi()->in_place;
    const void *buf = in_place ? call->recv : call->send;
    int count = in_place ? call->recvcount : call->sendcount;
    void *type = in_place ? call->recvtype : call->sendtype;
    if (is_plain(type) && !overlaps(buf, bytes, job->recv, bytes)) {
        job->send = buf;
        return PEAL_OK;
    }
    char *temp = take_temp(job, bytes);
    if (!temp || !pack_blocks(job, buf, count, type, job->size, temp))
        return PEAL_NO_MEMORY;
    job->send = temp;
    return PEAL_OK;
}

/* ---- uneven counts ---- */

/* Fills in lengths and offsets in bytes. True if the program's memory can be used without
 * packing. */
static bool fill_blocks(const struct peal_mpi_job *job, const int *counts, const int *displs,
                        void *type, uint64_t *bytes, uint64_t *offsets)
{
    struct peal_mpi_shape shape;
    bool plain = is_plain(type);
    peal_mpi_shape_get(type, &shape);
    for (uint32_t r = 0; r < job->size; r++) {
        bytes[r] = (uint64_t)counts[r] * shape.bytes;
        /* The place of an empty block has no meaning. */
        bool has_place = bytes[r] > 0;
        offsets[r] = has_place ? (uint64_t)displs[r] * shape.bytes : 0;
        plain = plain && (!has_place || displs[r] >= 0);
    }
    return plain;
}

/* True if blocks are in the order of ranks, as in most programs. */
static bool blocks_ascend(const uint64_t *bytes, const uint64_t *offsets, uint32_t count)
{
    uint64_t end = 0;
    for (uint32_t r = 0; r < count; r++) {
        if (bytes[r] > 0 && offsets[r] < end)
            return false;
        if (bytes[r] > 0)
            end = offsets[r] + bytes[r];
    }
    return true;
}

/* Blocks may overlap: the program may know that they hold the same data. */
static bool blocks_overlap(const uint64_t *bytes, const uint64_t *offsets, uint32_t count)
{
    if (blocks_ascend(bytes, offsets, count))
        return false;
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            if (offsets[a] < offsets[b] + bytes[b] && offsets[b] < offsets[a] + bytes[a])
                return true;
        }
    }
    return false;
}

static uint64_t sum_words(const uint64_t *words, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += words[i];
    return sum;
}

static enum peal_status begin_recv_uneven(struct peal_mpi_job *job,
                                          const struct peal_mpi_call *call)
{
    uint64_t *bytes = job->words, *offsets = job->words + job->size;
    bool plain =
        fill_blocks(job, call->recvcounts, call->recvdispls, call->recvtype, bytes, offsets) &&
        !blocks_overlap(bytes, offsets, job->size);
    job->in = (struct peal_blocks){bytes, plain ? offsets : NULL};
    job->recv = call->recv;
    if (plain)
        return PEAL_OK;
    char *temp = take_temp(job, sum_words(bytes, job->size));
    if (!temp)
        return PEAL_NO_MEMORY;
    job->recv = temp;
    job->result = (struct peal_mpi_result){.from = temp,
                                           .to = call->recv,
                                           .type = call->recvtype,
                                           .counts = call->recvcounts,
                                           .displs = call->recvdispls,
                                           .blocks = job->size};
    return PEAL_OK;
}

/* Packs block r to `at`. */
static bool pack_uneven(const struct peal_mpi_job *job, const void *buf, const int *counts,
                        const int *displs, void *type, uint32_t r, char *at)
{
    struct peal_mpi_shape shape;
    peal_mpi_shape_get(type, &shape);
    if (counts[r] == 0)
        return true;
    return peal_mpi_pack((const char *)buf + displs[r] * shape.extent, counts[r], type, job->comm,
                         at);
}

static enum peal_status begin_allgatherv(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    job->words = malloc(2 * job->size * sizeof *job->words);
    if (!job->words)
        return PEAL_NO_MEMORY;
    enum peal_status status = begin_recv_uneven(job, call);
    if (status != PEAL_OK)
        return status;
    const uint64_t *bytes = job->in.counts;
    if (call->send != peal_mpi()->in_place) {
        job->count = bytes[job->rank];
        return begin_send(job, call->send, call->sendcount, call->sendtype, 1);
    }
    uint64_t before = job->in.offsets ? job->in.offsets[job->rank] : sum_words(bytes, job->rank);
    char *own = (char *)job->recv + before;
    job->send = own;
    if (!job->result.from)
        return PEAL_OK;
    bool packed = pack_uneven(job, call->recv, call->recvcounts, call->recvdispls, call->recvtype,
                              job->rank, own);
    return packed ? PEAL_OK : PEAL_NO_MEMORY;
}

static enum peal_status begin_alltoallv(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    job->words = malloc(4 * job->size * sizeof *job->words);
    if (!job->words)
        return PEAL_NO_MEMORY;
    enum peal_status status = begin_recv_uneven(job, call);
    if (status != PEAL_OK)
        return status;
    bool in_place = call->send == peal_mpi()->in_place;
    const void *buf = in_place ? call->recv : call->send;
    const int *counts = in_place ? call->recvcounts : call->sendcounts;
    const int *displs = in_place ? call->recvdispls : call->senddispls;
    void *type = in_place ? call->recvtype : call->sendtype;
    uint64_t *bytes = job->words + 2 * job->size, *offsets = job->words + 3 * job->size;
    bool plain = fill_blocks(job, counts, displs, type, bytes, offsets) && !in_place;
    job->out = (struct peal_blocks){bytes, plain ? offsets : NULL};
    job->send = buf;
    if (plain)
        return PEAL_OK;
    char *temp = take_temp(job, sum_words(bytes, job->size));
    if (!temp)
        return PEAL_NO_MEMORY;
    job->send = temp;
    for (uint32_t r = 0; r < job->size; r++) {
        if (!pack_uneven(job, buf, counts, displs, type, r, temp))
            return PEAL_NO_MEMORY;
        temp += bytes[r];
    }
    return PEAL_OK;
}

/* ---- any call ---- */

/* The program may free a type as soon as the call has been started, so the job makes its own.
 * MPI_Type_dup would call the program's attribute functions. */
static bool keep_type(struct peal_mpi_job *job)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    if (abi->pmpi.Type_contiguous(1, job->result.type, job->kept) != PEAL_MPI_SUCCESS)
        return false;
    abi->pmpi.Type_commit(job->kept);
    job->keeps_type = true;
    job->result.type = peal_mpi_load(abi, job->kept);
    return true;
}

static void release(struct peal_mpi_job *job)
{
    if (job->keeps_type)
        peal_mpi()->pmpi.Type_free(job->kept);
    free(job->words);
    free(job->temps[0]);
    free(job->temps[1]);
}

static enum peal_status begin_kind(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    if (peal_mpi_collective_reduces(call->collective))
        return begin_reduction(job, call);
    switch (call->collective) {
    case PEAL_MPI_BCAST:
        return begin_bcast(job, call);
    case PEAL_MPI_ALLGATHER:
        return begin_gathering(job, call);
    case PEAL_MPI_ALLGATHERV:
        return begin_allgatherv(job, call);
    case PEAL_MPI_ALLTOALL:
        return begin_alltoall(job, call);
    case PEAL_MPI_ALLTOALLV:
        return begin_alltoallv(job, call);
    case PEAL_MPI_GATHER:
        return begin_gather(job, call);
    case PEAL_MPI_SCATTER:
        return begin_scatter(job, call);
    default:
        return PEAL_OK;
    }
}

enum peal_status peal_mpi_job_begin(struct peal_mpi_job *job, const struct peal_mpi_call *call)
{
    *job = (struct peal_mpi_job){.collective = call->collective,
                                 .comm = peal_mpi()->comm_self,
                                 .rank = call->state->rank,
                                 .size = call->state->size,
                                 .count = call->bytes,
                                 .dtype = PEAL_U8,
                                 .root = (uint32_t)call->root};
    enum peal_status status = begin_kind(job, call);
    bool needs_type = status == PEAL_OK && call->starts && job->result.type;
    if (needs_type && !keep_type(job))
        status = PEAL_NO_MEMORY;
    if (status != PEAL_OK)
        release(job);
    return status;
}

static void unpack_blocks(const struct peal_mpi_job *job, const struct peal_mpi_result *result)
{
    struct peal_mpi_shape shape;
    peal_mpi_shape_get(result->type, &shape);
    const char *from = result->from;
    for (uint32_t i = 0; i < result->blocks; i++) {
        int count = result->counts ? result->counts[i] : result->count;
        int64_t at = result->displs ? result->displs[i] : (int64_t)i * result->count;
        if (count > 0)
            peal_mpi_unpack(from, result->to + at * shape.extent, count, result->type, job->comm);
        from += (uint64_t)count * shape.bytes;
    }
}

void peal_mpi_job_end(struct peal_mpi_job *job, enum peal_status status)
{
    const struct peal_mpi_result *result = &job->result;
    bool has_result = status == PEAL_OK && result->from;
    if (has_result && result->pair)
        result->pair->narrow(result->from, (uint64_t)result->count, result->to);
    else if (has_result)
        unpack_blocks(job, result);
    release(job);
}

/* Runs the call; with `out`, starts it and writes its request there. */
static enum peal_status make_call(const struct peal_mpi_job *job, struct peal_comm *comm,
                                  struct peal_request **out)
{
#define MAKE(name, ...) out ? peal_i##name(comm, __VA_ARGS__, out) : peal_##name(comm, __VA_ARGS__)
    switch (job->collective) {
    case PEAL_MPI_BARRIER:
        return out ? peal_ibarrier(comm, out) : peal_barrier(comm);
    case PEAL_MPI_BCAST:
        return MAKE(broadcast, job->recv, job->count, job->dtype, job->root);
    case PEAL_MPI_ALLREDUCE:
        return MAKE(allreduce, job->send, job->recv, job->count, job->dtype, job->reduce);
    case PEAL_MPI_REDUCE:
        return MAKE(reduce, job->send, job->recv, job->count, job->dtype, job->reduce, job->root);
    case PEAL_MPI_REDUCE_SCATTER_BLOCK:
        return MAKE(reduce_scatter, job->send, job->recv, job->count, job->dtype, job->reduce);
    case PEAL_MPI_REDUCE_SCATTER:
        return MAKE(reduce_scatter_v, job->send, job->recv, job->words, NULL, job->dtype,
                    job->reduce);
    case PEAL_MPI_SCAN:
        return MAKE(scan, job->send, job->recv, job->count, job->dtype, job->reduce);
    case PEAL_MPI_EXSCAN:
        return MAKE(exscan, job->send, job->recv, job->count, job->dtype, job->reduce);
    case PEAL_MPI_ALLGATHER:
        return MAKE(allgather, job->send, job->recv, job->count, job->dtype);
    case PEAL_MPI_ALLGATHERV:
        return MAKE(allgather_v, job->send, job->recv, job->in.counts, job->in.offsets, job->dtype);
    case PEAL_MPI_ALLTOALL:
        return MAKE(all_to_all, job->send, job->recv, job->count, job->dtype);
    case PEAL_MPI_ALLTOALLV:
        return MAKE(all_to_all_v, job->send, &job->out, job->recv, &job->in, job->dtype);
    case PEAL_MPI_GATHER:
        return MAKE(gather, job->send, job->recv, job->count, job->dtype, job->root);
    case PEAL_MPI_SCATTER:
        return MAKE(scatter, job->send, job->recv, job->count, job->dtype, job->root);
    default:
        return PEAL_INVALID;
    }
#undef MAKE
}

enum peal_status peal_mpi_job_run(struct peal_mpi_job *job, struct peal_comm *comm)
{
    return make_call(job, comm, NULL);
}

enum peal_status peal_mpi_job_start(struct peal_mpi_job *job, struct peal_comm *comm,
                                    struct peal_request **out)
{
    return make_call(job, comm, out);
}
