/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: where their parts lie, and reads and writes by the host, which wait for earlier tasks
 * and are done before later ones are submitted. */
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

static uint64_t count_of(const struct peal_host_tensor *tensor)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < tensor->ndims; d++)
        count *= tensor->shape[d];
    return count;
}

static uint64_t bytes_of(const struct peal_host_tensor *tensor)
{
    return count_of(tensor) * peal_dtype_size(tensor->dtype);
}

const struct peal_host_piece *peal_tensor_piece_on(const struct peal_host_tensor *tensor,
                                                   uint32_t worker)
{
    for (uint32_t i = 0; i < tensor->npieces; i++) {
        if (tensor->pieces[i].worker == worker)
            return &tensor->pieces[i];
    }
    return NULL;
}

void peal_host_tensor_destroy(struct peal_host *host, struct peal_host_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->npieces; i++) {
        struct peal_host_piece *piece = &tensor->pieces[i];
        struct peal_host_pending_free gone = {
            piece->worker, piece->at, piece->taken, {piece->last[0], piece->last[1]}};
        if (piece->taken)
            peal_vec_push(&host->frees, gone);
        peal_vec_release(&piece->spans);
    }
    free(tensor->pieces);
    free(tensor);
}

/* ---- making ---- */

static enum peal_status check_spec(struct peal_host *host, const struct peal_tensor_spec *spec)
{
    uint64_t bytes = 1;
    if (!spec)
        return peal_host_fail(host, PEAL_INVALID, "no tensor is described");
    if ((unsigned)spec->dtype >= PEAL_DTYPES)
        return peal_host_fail(host, PEAL_INVALID, "there is no data type %d", (int)spec->dtype);
    if (spec->ndims < 1 || spec->ndims > PEAL_MOST_DIMS)
        return peal_host_fail(host, PEAL_INVALID, "a tensor has 1 to %d dimensions, not %u",
                              PEAL_MOST_DIMS, spec->ndims);
    for (uint32_t d = 0; d < spec->ndims; d++) {
        if (!peal_size_mul(bytes, spec->shape[d], &bytes) || bytes > UINT64_MAX / 64)
            return peal_host_fail(host, PEAL_INVALID, "a tensor that no memory can hold");
    }
    if ((unsigned)spec->place > PEAL_SHARDED)
        return peal_host_fail(host, PEAL_INVALID, "there is no placement %d", (int)spec->place);
    if (spec->place == PEAL_ON_WORKER && spec->worker >= host->workers)
        return peal_host_fail(host, PEAL_INVALID, "there is no worker %u of %u", spec->worker,
                              host->workers);
    if (spec->place == PEAL_SHARDED && spec->shard_dim >= spec->ndims)
        return peal_host_fail(host, PEAL_INVALID, "dimension %u of a tensor that has %u",
                              spec->shard_dim, spec->ndims);
    return PEAL_OK;
}

/* The first index of a member's shard along the dimension that is cut. */
static uint64_t cut_at(const struct peal_host_tensor *tensor, uint32_t member)
{
    return (uint64_t)((__uint128_t)tensor->shape[tensor->shard_dim] * member / tensor->npieces);
}

static uint64_t part_bytes(const struct peal_host_tensor *tensor, uint32_t member)
{
    uint64_t bytes = peal_dtype_size(tensor->dtype);
    for (uint32_t d = 0; d < tensor->ndims; d++) {
        uint64_t extent = tensor->shape[d];
        if (tensor->place == PEAL_SHARDED && d == tensor->shard_dim)
            extent = cut_at(tensor, member + 1) - cut_at(tensor, member);
        bytes *= extent;
    }
    return bytes;
}

static enum peal_status take_memory(struct peal_host *host, struct peal_host_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->npieces; i++) {
        struct peal_host_piece *piece = &tensor->pieces[i];
        piece->bytes = part_bytes(tensor, i);
        piece->at = peal_area_take(&host->areas[piece->worker], piece->bytes);
        /* Freed memory becomes available when the tasks that use it have ended. */
        while (!piece->at && host->frees.len) {
            size_t before = host->frees.len;
            peal_host_collect_frees(host);
            if (host->frees.len == before && host->oldest < host->next_id)
                peal_host_wait_oldest(host);
            piece->at = peal_area_take(&host->areas[piece->worker], piece->bytes);
        }
        if (!piece->at)
            return peal_host_fail(host, PEAL_NO_MEMORY,
                                  "tensor '%s' needs %llu bytes on worker %u, whose memory of %llu "
                                  "has no such room",
                                  tensor->name, (unsigned long long)piece->bytes, piece->worker,
                                  (unsigned long long)host->memory);
        if (piece->bytes)
            piece->taken = piece->bytes;
        else
            piece->taken = 1;
    }
    return PEAL_OK;
}

static enum peal_status new_known(struct peal_host *host, const struct peal_tensor_spec *spec,
                                  struct peal_tensor *out)
{
    enum peal_status status = peal_host_enter(host);
    if (status == PEAL_OK)
        status = check_spec(host, spec);
    if (status != PEAL_OK)
        return status;
    const struct peal_host_domain *domain = host->everyone;
    if (spec->domain.id && spec->place != PEAL_ON_WORKER)
        domain = peal_host_domain_find(host, spec->domain, &status);
    if (status != PEAL_OK)
        return status;
    struct peal_host_tensor *tensor = calloc(1, sizeof *tensor);
    uint32_t npieces = 1;
    if (spec->place != PEAL_ON_WORKER)
        npieces = domain->size;
    if (tensor)
        tensor->pieces = calloc(npieces, sizeof *tensor->pieces);
    if (!tensor || !tensor->pieces) {
        free(tensor);
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a tensor");
    }
    snprintf(tensor->name, sizeof tensor->name, "%s", spec->name ? spec->name : "tensor");
    tensor->dtype = spec->dtype;
    tensor->ndims = spec->ndims;
    memcpy(tensor->shape, spec->shape, sizeof tensor->shape);
    tensor->place = spec->place;
    tensor->shard_dim = spec->shard_dim;
    tensor->npieces = npieces;
    for (uint32_t i = 0; i < npieces; i++) {
        if (spec->place == PEAL_ON_WORKER)
            tensor->pieces[i].worker = spec->worker;
        else
            tensor->pieces[i].worker = domain->workers[i];
    }
    status = take_memory(host, tensor);
    if (status == PEAL_OK) {
        out->id = peal_handle_add(host, &host->tensors, tensor);
        if (!out->id)
            status = peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a tensor");
    }
    if (status != PEAL_OK)
        peal_host_tensor_destroy(host, tensor);
    return status;
}

enum peal_status peal_tensor_new(struct peal_host *host, const struct peal_tensor_spec *spec,
                                 struct peal_tensor *out)
{
    void *made;
    const struct peal_tensor_spec *known =
        peal_growth_view(spec, 1, PEAL_TENSOR_SPEC_FIRST_BYTES, sizeof *known, &made);
    if (spec && !known)
        return peal_host_fail(host, PEAL_UNSUPPORTED, PEAL_HOST_TOO_NEW, "a tensor");
    enum peal_status status = new_known(host, known, out);
    free(made);
    return status;
}

static struct peal_host_tensor *find_tensor(struct peal_host *host, struct peal_tensor tensor,
                                            enum peal_status *status)
{
    *status = peal_host_enter(host);
    if (*status != PEAL_OK)
        return NULL;
    return peal_handle_find(host, &host->tensors, tensor.id, "tensor", status);
}

enum peal_status peal_tensor_free(struct peal_host *host, struct peal_tensor handle)
{
    enum peal_status status;
    struct peal_host_tensor *tensor = find_tensor(host, handle, &status);
    if (!tensor)
        return status;
    if (tensor->of_domain)
        return peal_host_fail(host, PEAL_INVALID, "'%s' is a domain's buffer: release the domain",
                              tensor->name);
    peal_handle_drop(&host->tensors, handle.id);
    peal_host_tensor_destroy(host, tensor);
    return PEAL_OK;
}

uint64_t peal_tensor_bytes(const struct peal_host *host, struct peal_tensor handle)
{
    enum peal_status status;
    struct peal_host_tensor *tensor = find_tensor((struct peal_host *)host, handle, &status);
    if (tensor)
        return bytes_of(tensor);
    return 0;
}

uint64_t peal_tensor_part_bytes(const struct peal_host *host, struct peal_tensor handle,
                                uint32_t rank)
{
    enum peal_status status;
    struct peal_host_tensor *tensor = find_tensor((struct peal_host *)host, handle, &status);
    if (tensor && rank < tensor->npieces)
        return tensor->pieces[rank].bytes;
    return 0;
}

/* ---- reading and writing ---- */

/* Waits for the tasks that use a piece; then the host may use it. */
static enum peal_status settle(struct peal_host *host, const struct peal_host_piece *piece,
                               bool writes)
{
    uint64_t counts[PEAL_HOST_QUEUES];
    enum peal_status status = PEAL_OK;
    peal_order_ask(piece, writes, counts);
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES && status == PEAL_OK; q++) {
        if (counts[q])
            status = peal_host_wait_position(host, piece->worker, q, counts[q]);
    }
    return status;
}

static enum peal_status check_clean(struct peal_host *host, const struct peal_host_tensor *tensor,
                                    const struct peal_host_piece *piece, bool writes)
{
    struct peal_host_worker *worker = &host->shared->of_worker[piece->worker];
    uint64_t at;
    if (tensor->of_domain)
        at = peal_taint_buffer(tensor->domain + 1, piece->at);
    else
        at = piece->at;
    uint64_t task = 0;
    /* acquire; partner: peal_host_note_death */
    if (atomic_load_explicit(&worker->dead, memory_order_acquire))
        return peal_host_fail(host, PEAL_PEER_DEAD, "tensor '%s' was on worker %u, which is dead",
                              tensor->name, piece->worker);
    if (writes) {
        peal_taint_clear(worker, at, at + piece->bytes);
        if (host->away)
            peal_away_clean(host, piece->worker, at, at + piece->bytes);
        return PEAL_OK;
    }
    enum peal_status status = peal_taint_find(worker, at, at + piece->bytes, &task);
    if (status == PEAL_OK)
        return PEAL_OK;
    peal_host_retire(host);
    return peal_host_fail(host, status, "tensor '%s' was to be written by a task that failed: %s",
                          tensor->name, peal_host_failure_text(host, task));
}

/* Between the caller's memory and a worker's area. */
static enum peal_status copy_area(struct peal_host *host, uint32_t worker, uint64_t at, void *data,
                                  uint64_t bytes, bool writes)
{
    if (host->away)
        return peal_away_copy(host, worker, at, data, bytes, writes);
    if (writes)
        memcpy((void *)(uintptr_t)at, data, bytes);
    else
        memcpy(data, (void *)(uintptr_t)at, bytes);
    return PEAL_OK;
}

/* The host cannot reach a domain's buffer: the worker copies it, from or to memory that both
 * see. */
static enum peal_status move_buffer(struct peal_host *host, const struct peal_host_tensor *tensor,
                                    struct peal_host_piece *piece, void *data, bool writes)
{
    struct peal_host_area *area = &host->areas[piece->worker];
    uint64_t id = 0, stage = peal_area_take(area, piece->bytes);
    if (!stage)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory to reach a domain's buffer");
    enum peal_status status = PEAL_OK;
    if (writes)
        status = copy_area(host, piece->worker, stage, data, piece->bytes, true);
    struct peal_host_internal task = {
        .kind = writes ? PEAL_HOST_COPY_IN : PEAL_HOST_COPY_OUT,
        .queue = PEAL_HOST_COMM,
        .slot = tensor->domain,
        .workers = &piece->worker,
        .members = 1,
        .places = {{piece->at, piece->bytes, piece->bytes}, {stage, piece->bytes, 0}},
        .piece = piece,
        .writes = writes};
    if (status == PEAL_OK)
        status = peal_host_submit_internal(host, &task, &id);
    if (status == PEAL_OK)
        status = peal_host_wait_id(host, id);
    if (status != PEAL_OK)
        peal_host_fail(host, status, "buffer '%s' cannot be reached on worker %u", tensor->name,
                       piece->worker);
    else if (!writes)
        status = copy_area(host, piece->worker, stage, data, piece->bytes, false);
    peal_area_give(area, stage, piece->bytes);
    return status;
}

static enum peal_status move_part(struct peal_host *host, struct peal_host_tensor *tensor,
                                  uint32_t member, void *data, bool writes)
{
    struct peal_host_piece *piece = &tensor->pieces[member];
    enum peal_status status = settle(host, piece, writes);
    if (status == PEAL_OK)
        status = check_clean(host, tensor, piece, writes);
    if (status != PEAL_OK || piece->bytes == 0)
        return status;
    if (tensor->of_domain && !host->simulated)
        return move_buffer(host, tensor, piece, data, writes);
    uint64_t at = piece->at;
    if (tensor->of_domain)
        at += (uint64_t)(uintptr_t)host->shared->domains[tensor->domain].bases[piece->worker];
    return copy_area(host, piece->worker, at, data, piece->bytes, writes);
}

/* Copies between the whole tensor and one member's shard, which is `outer` runs of bytes. */
static void cut(const struct peal_host_tensor *tensor, uint32_t member, char *whole, char *shard,
                bool from_whole)
{
    uint64_t outer = 1, inner = peal_dtype_size(tensor->dtype);
    for (uint32_t d = 0; d < tensor->shard_dim; d++)
        outer *= tensor->shape[d];
    for (uint32_t d = tensor->shard_dim + 1; d < tensor->ndims; d++)
        inner *= tensor->shape[d];
    uint64_t first = cut_at(tensor, member) * inner;
    uint64_t run = cut_at(tensor, member + 1) * inner - first;
    uint64_t stride = tensor->shape[tensor->shard_dim] * inner;
    if (run == 0)
        return;
    for (uint64_t i = 0; i < outer; i++) {
        if (from_whole)
            memcpy(shard + i * run, whole + i * stride + first, run);
        else
            memcpy(whole + i * stride + first, shard + i * run, run);
    }
}

static enum peal_status move_shard(struct peal_host *host, struct peal_host_tensor *tensor,
                                   uint32_t member, char *whole, bool writes)
{
    char *shard = malloc(tensor->pieces[member].bytes + 1);
    if (!shard)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a shard of '%s'", tensor->name);
    if (writes)
        cut(tensor, member, whole, shard, true);
    enum peal_status status = move_part(host, tensor, member, shard, writes);
    if (status == PEAL_OK && !writes)
        cut(tensor, member, whole, shard, false);
    free(shard);
    return status;
}

static enum peal_status check_move(struct peal_host *host, const struct peal_host_tensor *tensor,
                                   const void *data, uint64_t bytes, uint64_t wanted)
{
    if (bytes != wanted)
        return peal_host_fail(host, PEAL_INVALID, "tensor '%s' has %llu bytes there, not %llu",
                              tensor->name, (unsigned long long)wanted, (unsigned long long)bytes);
    if (!data && bytes)
        return peal_host_fail(host, PEAL_INVALID, "no memory for tensor '%s'", tensor->name);
    return PEAL_OK;
}

/* Between the caller's memory and all of a tensor. Every replica is written, one of them is read. */
static enum peal_status move_all(struct peal_host *host, struct peal_tensor handle, void *data,
                                 uint64_t bytes, bool writes)
{
    enum peal_status status;
    struct peal_host_tensor *tensor = find_tensor(host, handle, &status);
    if (!tensor)
        return status;
    bool sharded = tensor->place == PEAL_SHARDED;
    uint32_t parts = sharded || writes ? tensor->npieces : 1;
    status = check_move(host, tensor, data, bytes, bytes_of(tensor));
    for (uint32_t i = 0; i < parts && status == PEAL_OK; i++) {
        if (sharded)
            status = move_shard(host, tensor, i, data, writes);
        else
            status = move_part(host, tensor, i, data, writes);
    }
    return status;
}

enum peal_status peal_tensor_write(struct peal_host *host, struct peal_tensor handle,
                                   const void *data, uint64_t bytes)
{
    return move_all(host, handle, (void *)data, bytes, true);
}

enum peal_status peal_tensor_read(struct peal_host *host, struct peal_tensor handle, void *data,
                                  uint64_t bytes)
{
    return move_all(host, handle, data, bytes, false);
}

static enum peal_status move_one(struct peal_host *host, struct peal_tensor handle, uint32_t rank,
                                 void *data, uint64_t bytes, bool writes)
{
    enum peal_status status;
    struct peal_host_tensor *tensor = find_tensor(host, handle, &status);
    if (!tensor)
        return status;
    if (rank >= tensor->npieces)
        return peal_host_fail(host, PEAL_INVALID, "tensor '%s' has %u parts; there is no part %u",
                              tensor->name, tensor->npieces, rank);
    status = check_move(host, tensor, data, bytes, tensor->pieces[rank].bytes);
    if (status == PEAL_OK)
        return move_part(host, tensor, rank, data, writes);
    return status;
}

enum peal_status peal_tensor_write_part(struct peal_host *host, struct peal_tensor tensor,
                                        uint32_t rank, const void *data, uint64_t bytes)
{
    return move_one(host, tensor, rank, (void *)data, bytes, true);
}

enum peal_status peal_tensor_read_part(struct peal_host *host, struct peal_tensor tensor,
                                       uint32_t rank, void *data, uint64_t bytes)
{
    return move_one(host, tensor, rank, data, bytes, false);
}

enum peal_status peal_host_wait_tensor(struct peal_host *host, struct peal_tensor handle)
{
    enum peal_status status;
    struct peal_host_tensor *tensor = find_tensor(host, handle, &status);
    if (!tensor)
        return status;
    for (uint32_t i = 0; i < tensor->npieces && status == PEAL_OK; i++) {
        status = settle(host, &tensor->pieces[i], false);
        if (status == PEAL_OK)
            status = check_clean(host, tensor, &tensor->pieces[i], false);
    }
    return status;
}
