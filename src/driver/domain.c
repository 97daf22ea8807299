/* SPDX-License-Identifier: Apache-2.0 */
/* Domains: groups of workers, each with a communicator per queue that its members open at the first
 * task (or when the domain is made, if it has buffers). A release is a task like any other: it runs
 * after the tasks that are queued. */
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include "comm/comm.h"

#include "run/run.h"

#include <stdio.h>
#include <string.h>

struct peal_host_domain *peal_host_domain_find(struct peal_host *host, struct peal_domain domain,
                                               enum peal_status *status)
{
    return peal_handle_find(host, &host->domains, domain.id, "domain", status);
}

void peal_host_domain_destroy(struct peal_host_domain *domain)
{
    if (!domain)
        return;
    free(domain->workers);
    free(domain->buffers);
    free(domain);
}

/* ---- making ---- */

static enum peal_status check_members(struct peal_host *host, const struct peal_domain_spec *spec)
{
    bool seen[PEAL_MOST_RANKS] = {false};
    if (!spec || !spec->workers || spec->nworkers == 0)
        return peal_host_fail(host, PEAL_INVALID, "a domain without workers");
    if (spec->nworkers > host->workers)
        return peal_host_fail(host, PEAL_INVALID, "a domain of %zu workers, the host has %u",
                              spec->nworkers, host->workers);
    for (size_t i = 0; i < spec->nworkers; i++) {
        uint32_t worker = spec->workers[i];
        if (worker >= host->workers)
            return peal_host_fail(host, PEAL_INVALID, "there is no worker %u of %u", worker,
                                  host->workers);
        if (seen[worker])
            return peal_host_fail(host, PEAL_INVALID, "worker %u is twice in a domain", worker);
        seen[worker] = true;
    }
    return PEAL_OK;
}

static enum peal_status check_buffers(struct peal_host *host, const struct peal_domain_spec *spec,
                                      uint64_t *total)
{
    struct peal_text why = {0};
    *total = 0;
    for (size_t i = 0; i < spec->nbuffers; i++) {
        const struct peal_domain_buffer *buffer = &spec->buffers[i];
        uint64_t bytes;
        if (!buffer->name || !buffer->name[0] || strlen(buffer->name) >= PEAL_HOST_NAME)
            return peal_host_fail(host, PEAL_INVALID, "buffer %zu has no name of 1 to %d letters",
                                  i, PEAL_HOST_NAME - 1);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(spec->buffers[j].name, buffer->name) == 0)
                return peal_host_fail(host, PEAL_INVALID, "two buffers are called '%s'",
                                      buffer->name);
        }
        if ((unsigned)buffer->dtype >= PEAL_DTYPES || buffer->count == 0)
            return peal_host_fail(host, PEAL_INVALID, "buffer '%s' has no type or no elements",
                                  buffer->name);
        if (!peal_size_mul(buffer->count, peal_dtype_size(buffer->dtype), &bytes) ||
            bytes > (UINT64_C(1) << 43) - *total - 64)
            return peal_host_fail(host, PEAL_INVALID, "buffer '%s' is larger than any memory",
                                  buffer->name);
        *total += peal_size_align(bytes, 64);
    }
    /* The memory of other hosts is checked there. */
    bool fits = host->away || peal_memory_limit_has(*total, (uint32_t)spec->nworkers, &why);
    enum peal_status status = PEAL_OK;
    if (!fits)
        status =
            peal_host_fail(host, PEAL_NO_MEMORY, "a domain's buffers: %s", peal_text_get(&why));
    peal_text_release(&why);
    return status;
}

static enum peal_status take_slot(struct peal_host *host, uint32_t *slot)
{
    peal_host_domain_collect(host);
    if (host->free_slots.len) {
        *slot = host->free_slots.at[--host->free_slots.len];
        return PEAL_OK;
    }
    if (host->next_slot < PEAL_HOST_MAX_DOMAINS) {
        *slot = host->next_slot++;
        return PEAL_OK;
    }
    if (!host->released.len)
        return peal_host_fail(host, PEAL_NO_MEMORY, "a host has at most %d domains",
                              PEAL_HOST_MAX_DOMAINS);
    while (!host->free_slots.len && host->oldest < host->next_id) {
        peal_host_wait_oldest(host);
        peal_host_domain_collect(host);
    }
    return take_slot(host, slot);
}

/* A buffer as a tensor, at the same offset on every member. */
static struct peal_host_tensor *buffer_tensor(const struct peal_host_domain *domain,
                                              const struct peal_domain_buffer *buffer,
                                              uint64_t offset)
{
    struct peal_host_tensor *tensor = calloc(1, sizeof *tensor);
    if (tensor)
        tensor->pieces = calloc(domain->size, sizeof *tensor->pieces);
    if (!tensor || !tensor->pieces) {
        free(tensor);
        return NULL;
    }
    snprintf(tensor->name, sizeof tensor->name, "%s", buffer->name);
    tensor->dtype = buffer->dtype;
    tensor->ndims = 1;
    tensor->shape[0] = buffer->count;
    tensor->place = PEAL_REPLICATED;
    tensor->npieces = domain->size;
    tensor->of_domain = true;
    tensor->domain = domain->slot;
    for (uint32_t m = 0; m < domain->size; m++) {
        tensor->pieces[m].worker = domain->workers[m];
        tensor->pieces[m].at = offset;
        tensor->pieces[m].bytes = buffer->count * peal_dtype_size(buffer->dtype);
    }
    return tensor;
}

static enum peal_status add_buffers(struct peal_host *host, struct peal_host_domain *domain,
                                    const struct peal_domain_spec *spec)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < spec->nbuffers; i++) {
        struct peal_host_named *named = &domain->buffers[i];
        struct peal_host_tensor *tensor = buffer_tensor(domain, &spec->buffers[i], offset);
        snprintf(named->name, sizeof named->name, "%s", spec->buffers[i].name);
        if (tensor)
            named->tensor.id = peal_handle_add(host, &host->tensors, tensor);
        if (!tensor || !named->tensor.id) {
            if (tensor)
                peal_host_tensor_destroy(host, tensor);
            return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a domain");
        }
        domain->nbuffers++;
        offset += peal_size_align(tensor->pieces[0].bytes, 64);
    }
    return PEAL_OK;
}

static void drop_buffers(struct peal_host *host, struct peal_host_domain *domain)
{
    for (size_t i = 0; i < domain->nbuffers; i++) {
        enum peal_status status;
        struct peal_host_tensor *tensor =
            peal_handle_find(host, &host->tensors, domain->buffers[i].tensor.id, "buffer", &status);
        if (!tensor)
            continue;
        peal_handle_drop(&host->tensors, domain->buffers[i].tensor.id);
        peal_host_tensor_destroy(host, tensor);
    }
    domain->nbuffers = 0;
}

/* Simulated: buffers are taken from the areas of tensors. */
static enum peal_status take_simulated(struct peal_host *host, struct peal_host_domain *domain)
{
    struct peal_host_shared_domain *shared = &host->shared->domains[domain->slot];
    for (uint32_t m = 0; m < domain->size; m++) {
        uint64_t at = peal_area_take(&host->areas[domain->workers[m]], shared->bytes);
        if (!at)
            return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a domain's buffers");
        shared->bases[domain->workers[m]] = (char *)(uintptr_t)at;
    }
    return PEAL_OK;
}

/* The members open the domain, which counts as a write of its buffers. */
static enum peal_status open_buffers(struct peal_host *host, struct peal_host_domain *domain)
{
    uint64_t id;
    if (host->simulated)
        return take_simulated(host, domain);
    enum peal_status status = peal_host_domain_ready(host, domain, PEAL_HOST_COMM);
    if (status != PEAL_OK)
        return status;
    for (size_t i = 0; i < domain->nbuffers; i++) {
        struct peal_host_tensor *tensor =
            peal_handle_find(host, &host->tensors, domain->buffers[i].tensor.id, "buffer", &status);
        if (!tensor)
            continue;
        for (uint32_t m = 0; m < domain->size; m++) {
            struct peal_host_piece *piece = &tensor->pieces[m];
            uint64_t position = host->positions[piece->worker * PEAL_HOST_QUEUES + PEAL_HOST_COMM];
            peal_order_touch(host, piece, 0, piece->bytes, true, PEAL_HOST_COMM, position);
        }
    }
    struct peal_host_internal task = {.kind = PEAL_HOST_OPEN_DOMAIN,
                                      .queue = PEAL_HOST_COMM,
                                      .slot = domain->slot,
                                      .workers = domain->workers,
                                      .members = domain->size};
    status = peal_host_submit_internal(host, &task, &id);
    if (status != PEAL_OK)
        return status;
    status = peal_host_wait_id(host, id);
    if (status != PEAL_OK) {
        peal_host_retire(host);
        peal_host_fail(host, status, "%s", peal_host_failure_text(host, id));
    }
    return status;
}

enum peal_status peal_host_domain_make(struct peal_host *host, const struct peal_domain_spec *spec,
                                       struct peal_host_domain **out)
{
    uint64_t total = 0;
    enum peal_status status = check_members(host, spec);
    if (status == PEAL_OK)
        status = check_buffers(host, spec, &total);
    if (status != PEAL_OK)
        return status;
    struct peal_host_domain *domain = calloc(1, sizeof *domain);
    uint32_t size = (uint32_t)spec->nworkers;
    if (domain) {
        domain->workers = calloc(size, sizeof *domain->workers);
        domain->buffers = calloc(spec->nbuffers + 1, sizeof *domain->buffers);
    }
    if (!domain || !domain->workers || !domain->buffers) {
        peal_host_domain_destroy(domain);
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a domain");
    }
    snprintf(domain->name, sizeof domain->name, "%s", spec->name ? spec->name : "domain");
    domain->size = size;
    memcpy(domain->workers, spec->workers, size * sizeof *domain->workers);
    status = take_slot(host, &domain->slot);
    if (status != PEAL_OK) {
        peal_host_domain_destroy(domain);
        return status;
    }
    struct peal_host_shared_domain *shared = &host->shared->domains[domain->slot];
    shared->serial = ++host->serials;
    shared->size = size;
    shared->bytes = total;
    if (host->away)
        peal_away_table(host, shared, sizeof *shared);
    status = add_buffers(host, domain, spec);
    if (status == PEAL_OK && total)
        status = open_buffers(host, domain);
    if (status == PEAL_OK) {
        *out = domain;
        return PEAL_OK;
    }
    drop_buffers(host, domain);
    peal_vec_push(&host->released, domain); /* what was opened is closed when the host is */
    return status;
}

/* The same from a specification that may be of older or newer headers. */
static enum peal_status make_known(struct peal_host *host, const struct peal_domain_spec *spec,
                                   struct peal_host_domain **out)
{
    void *made, *made_buffers = NULL;
    const struct peal_domain_spec *known =
        peal_growth_view(spec, 1, PEAL_DOMAIN_SPEC_FIRST_BYTES, sizeof *known, &made);
    if (!spec)
        return peal_host_fail(host, PEAL_INVALID, "no domain");
    if (!known)
        return peal_host_fail(host, PEAL_UNSUPPORTED, PEAL_HOST_TOO_NEW, "domain");
    struct peal_domain_spec own = *known;
    free(made);
    const struct peal_domain_buffer *given = own.buffers;
    own.buffers = peal_growth_view(given, own.nbuffers, PEAL_DOMAIN_BUFFER_FIRST_BYTES,
                                   sizeof *given, &made_buffers);
    if (given && !own.buffers)
        return peal_host_fail(host, PEAL_UNSUPPORTED, PEAL_HOST_TOO_NEW, "a buffer");
    enum peal_status status = peal_host_domain_make(host, &own, out);
    free(made_buffers);
    return status;
}

enum peal_status peal_domain_new(struct peal_host *host, const struct peal_domain_spec *spec,
                                 struct peal_domain *out)
{
    struct peal_host_domain *domain = NULL;
    enum peal_status status = peal_host_enter(host);
    if (status == PEAL_OK)
        status = make_known(host, spec, &domain);
    if (status != PEAL_OK)
        return status;
    out->id = peal_handle_add(host, &host->domains, domain);
    if (out->id)
        return PEAL_OK;
    drop_buffers(host, domain);
    peal_vec_push(&host->released, domain);
    return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a domain");
}

enum peal_status peal_host_domain_ready(struct peal_host *host, struct peal_host_domain *domain,
                                        uint32_t queue)
{
    struct peal_host_shared_domain *shared = &host->shared->domains[domain->slot];
    if (domain->used[queue] || host->simulated)
        return PEAL_OK;
    if (host->threads) {
        struct peal_comm **comms = calloc(domain->size, sizeof *comms);
        if (!comms)
            return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a domain");
        enum peal_status status = peal_comm_open_threads(domain->size, comms);
        if (status != PEAL_OK) {
            free(comms);
            return peal_host_fail(host, status, "the domain cannot be opened: %s",
                                  peal_comm_error(NULL));
        }
        if (host->shared->timeout_ms) {
            for (uint32_t m = 0; m < domain->size; m++)
                peal_comm_set_timeout(comms[m], host->shared->timeout_ms);
        }
        shared->comms[queue] = comms;
    }
    domain->used[queue] = true;
    return PEAL_OK;
}

/* ---- release ---- */

/* By member: how many tasks of its compute queue must be done until none uses the buffers. */
static void find_last_use(struct peal_host *host, const struct peal_host_domain *domain,
                          uint64_t *after)
{
    for (size_t i = 0; i < domain->nbuffers; i++) {
        enum peal_status status;
        const struct peal_host_tensor *tensor =
            peal_handle_find(host, &host->tensors, domain->buffers[i].tensor.id, "buffer", &status);
        if (!tensor)
            continue;
        for (uint32_t m = 0; m < domain->size; m++) {
            uint64_t last = tensor->pieces[m].last[PEAL_HOST_COMPUTE];
            if (last > after[m])
                after[m] = last;
        }
    }
}

static void give_simulated(struct peal_host *host, const struct peal_host_domain *domain)
{
    const struct peal_host_shared_domain *shared = &host->shared->domains[domain->slot];
    for (uint32_t m = 0; m < domain->size && shared->bytes; m++) {
        uint32_t worker = domain->workers[m];
        struct peal_host_pending_free gone = {
            worker,
            (uint64_t)(uintptr_t)shared->bases[worker],
            shared->bytes,
            {host->positions[worker * 2], host->positions[worker * 2 + 1]}};
        peal_vec_push(&host->frees, gone);
    }
}

enum peal_status peal_domain_release(struct peal_host *host, struct peal_domain handle)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    struct peal_host_domain *domain = peal_host_domain_find(host, handle, &status);
    if (!domain)
        return status;
    uint64_t after[PEAL_MOST_RANKS] = {0};
    find_last_use(host, domain, after);
    for (uint32_t q = 0; q < PEAL_HOST_QUEUES && status == PEAL_OK; q++) {
        struct peal_host_internal task = {.kind = PEAL_HOST_CLOSE_DOMAIN,
                                          .queue = q,
                                          .slot = domain->slot,
                                          .workers = domain->workers,
                                          .members = domain->size,
                                          .after = q == PEAL_HOST_COMM ? after : NULL};
        if (domain->used[q])
            status = peal_host_submit_internal(host, &task, &domain->close_task[q]);
    }
    if (host->simulated)
        give_simulated(host, domain);
    drop_buffers(host, domain);
    peal_handle_drop(&host->domains, handle.id);
    peal_vec_push(&host->released, domain);
    return status;
}

void peal_host_domain_collect(struct peal_host *host)
{
    size_t kept = 0;
    for (size_t i = 0; i < host->released.len; i++) {
        struct peal_host_domain *domain = host->released.at[i];
        struct peal_host_shared_domain *shared = &host->shared->domains[domain->slot];
        bool busy = false, opened = false;
        for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++) {
            busy |= domain->close_task[q] >= host->oldest;
            opened |= domain->used[q] && !domain->close_task[q];
        }
        if (busy || opened) {
            host->released.at[kept++] = domain;
            continue;
        }
        for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++) {
            free(shared->comms[q]);
            shared->comms[q] = NULL;
        }
        peal_vec_push(&host->free_slots, domain->slot);
        peal_host_domain_destroy(domain);
    }
    host->released.len = kept;
}

enum peal_status peal_domain_tensor(struct peal_host *host, struct peal_domain handle,
                                    const char *name, struct peal_tensor *out)
{
    enum peal_status status = peal_host_enter(host);
    if (status != PEAL_OK)
        return status;
    const struct peal_host_domain *domain = peal_host_domain_find(host, handle, &status);
    if (!domain)
        return status;
    for (size_t i = 0; i < domain->nbuffers; i++) {
        if (name && strcmp(domain->buffers[i].name, name) == 0) {
            *out = domain->buffers[i].tensor;
            return PEAL_OK;
        }
    }
    return peal_host_fail(host, PEAL_INVALID, "domain '%s' has no buffer '%s'", domain->name,
                          name ? name : "");
}
