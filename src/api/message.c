/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point messages and requests; the uneven all_to_all, which is one message to everyone. */
#include "api/comm.h"

#include <stdlib.h>
#include <string.h>

/* Tags of the library's own messages have this bit; users' do not. */
#define OWN_TAG UINT32_C(0x80000000)

static struct peal_request *new_request(struct peal_comm *comm, uint32_t letters)
{
    struct peal_request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->comm = comm;
    request->nletters = letters;
    request->letters = calloc(letters, sizeof *request->letters);
    if (!request->letters) {
        free(request);
        return NULL;
    }
    return request;
}

static void free_request(struct peal_request *request)
{
    free(request->letters);
    free(request);
}

/* ---- requests ---- */

/* What a letter's end means for its request. */
static enum peal_status judge(const struct peal_request *request, const struct peal_letter *letter)
{
    struct peal_comm *comm = request->comm;
    if (letter->status == PEAL_INVALID)
        return peal_comm_fail(comm, request->nletters > 1 ? PEAL_MISMATCH : PEAL_INVALID,
                              "rank %u sent %llu bytes, room is for %llu", letter->sender,
                              (unsigned long long)letter->length,
                              (unsigned long long)letter->bytes);
    if (letter->status == PEAL_OK && request->nletters > 1 && !letter->sends &&
        letter->length != letter->bytes)
        return peal_comm_fail(comm, PEAL_MISMATCH, "rank %u sent %llu bytes, %llu were expected",
                              letter->sender, (unsigned long long)letter->length,
                              (unsigned long long)letter->bytes);
    return peal_comm_end(comm, letter->status);
}

/* PEAL_PENDING, or how it ended. */
static enum peal_status look(struct peal_request *request)
{
    if (request->nletters == 0)
        return peal_comm_end(request->comm, request->call.status);
    enum peal_status status = PEAL_OK;
    for (uint32_t i = 0; i < request->nletters; i++) {
        if (request->letters[i].status == PEAL_PENDING)
            return PEAL_PENDING;
    }
    for (uint32_t i = 0; status == PEAL_OK && i < request->nletters; i++)
        status = judge(request, &request->letters[i]);
    return status;
}

enum peal_status peal_request_test(struct peal_request *request)
{
    if (!request)
        return PEAL_OK;
    struct peal_calls *engine = &request->comm->engine;
    enum peal_status status = look(request);
    if (status == PEAL_PENDING) {
        if (peal_team_failure(engine->team) != PEAL_OK) {
            enum peal_status pending = PEAL_PENDING;
            (void)peal_calls_wait(engine, &pending); /* fails everything under way */
        } else {
            peal_calls_progress(engine);
        }
        status = look(request);
    }
    if (status != PEAL_PENDING)
        free_request(request);
    return status;
}

static enum peal_status wait_all(struct peal_request *request)
{
    struct peal_calls *engine = &request->comm->engine;
    if (request->nletters == 0)
        (void)peal_calls_wait(engine, &request->call.status);
    for (uint32_t i = 0; i < request->nletters; i++)
        (void)peal_calls_wait(engine, &request->letters[i].status);
    return look(request);
}

/* The end of a wait: says what came, and the request is gone. */
static enum peal_status finish(struct peal_request *request, enum peal_status status, uint64_t *got,
                               uint32_t *sender)
{
    if (request->nletters == 1 && !request->letters[0].sends) {
        if (got)
            *got = request->letters[0].length;
        if (sender)
            *sender = request->letters[0].sender;
    }
    free_request(request);
    return status;
}

enum peal_status peal_request_wait_recv(struct peal_request *request, uint64_t *got,
                                        uint32_t *sender)
{
    return request ? finish(request, wait_all(request), got, sender) : PEAL_OK;
}

/* The first part of a request that has not ended, or NULL. */
static const enum peal_status *pending_part(const struct peal_request *request)
{
    if (request->nletters == 0)
        return request->call.status == PEAL_PENDING ? &request->call.status : NULL;
    for (uint32_t i = 0; i < request->nletters; i++) {
        if (request->letters[i].status == PEAL_PENDING)
            return &request->letters[i].status;
    }
    return NULL;
}

enum peal_status peal_request_wait_for(struct peal_request *request, uint64_t microseconds,
                                       uint64_t *got, uint32_t *sender)
{
    if (!request)
        return PEAL_OK;
    struct peal_calls *engine = &request->comm->engine;
    uint64_t until = peal_now_ns() + microseconds * 1000;
    for (const enum peal_status *part; (part = pending_part(request)) != NULL;) {
        if (peal_calls_wait_until(engine, part, &request->pause, until) == PEAL_PENDING)
            return PEAL_PENDING;
    }
    return finish(request, look(request), got, sender);
}

enum peal_status peal_request_wait(struct peal_request *request)
{
    return peal_request_wait_recv(request, NULL, NULL);
}

/* ---- messages ---- */

static enum peal_status post(struct peal_comm *comm, const struct peal_letter *letter,
                             struct peal_request **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    bool any = !letter->sends && letter->peer == PEAL_ANY_SOURCE;
    if (!any && letter->peer >= comm->team->size)
        return peal_comm_fail(comm, PEAL_INVALID, "rank %u of %u", letter->peer, comm->team->size);
    if (letter->tag & OWN_TAG)
        return peal_comm_fail(comm, PEAL_INVALID, "tag %u; the highest is %u", letter->tag,
                              ~OWN_TAG);
    if (!out || (letter->bytes > 0 && !letter->data))
        return peal_comm_fail(comm, PEAL_INVALID, "no buffer");
    struct peal_request *request = new_request(comm, 1);
    if (!request)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a request");
    request->letters[0] = *letter;
    peal_mail_post(&comm->engine.mail, &request->letters[0]);
    *out = request;
    return PEAL_OK;
}

enum peal_status peal_isend(struct peal_comm *comm, const void *data, uint64_t bytes, uint32_t to,
                            uint32_t tag, struct peal_request **out)
{
    struct peal_letter letter = {
        .sends = true, .peer = to, .tag = tag, .data = (char *)(uintptr_t)data, .bytes = bytes};
    return post(comm, &letter, out);
}

enum peal_status peal_irecv(struct peal_comm *comm, void *data, uint64_t bytes, uint32_t from,
                            uint32_t tag, struct peal_request **out)
{
    struct peal_letter letter = {.peer = from, .tag = tag, .data = data, .bytes = bytes};
    return post(comm, &letter, out);
}

enum peal_status peal_send(struct peal_comm *comm, const void *data, uint64_t bytes, uint32_t to,
                           uint32_t tag)
{
    struct peal_request *request;
    enum peal_status status = peal_isend(comm, data, bytes, to, tag, &request);
    return status == PEAL_OK ? peal_request_wait(request) : status;
}

enum peal_status peal_recv(struct peal_comm *comm, void *data, uint64_t bytes, uint32_t from,
                           uint32_t tag, uint64_t *got, uint32_t *sender)
{
    struct peal_request *request;
    enum peal_status status = peal_irecv(comm, data, bytes, from, tag, &request);
    return status == PEAL_OK ? peal_request_wait_recv(request, got, sender) : status;
}

/* ---- uneven all_to_all ---- */

static bool blocks_end(const struct peal_blocks *blocks, uint32_t size, uint64_t element,
                       uint64_t *out)
{
    uint64_t end = 0, offset = 0;
    for (uint32_t r = 0; r < size; r++) {
        uint64_t from = blocks->offsets ? blocks->offsets[r] : offset, last, bytes;
        if (!peal_size_add(from, blocks->counts[r], &last) ||
            !peal_size_mul(last, element, &bytes) || bytes > INT64_MAX / 4)
            return false;
        offset += blocks->counts[r];
        end = bytes > end ? bytes : end;
    }
    *out = end;
    return true;
}

static enum peal_status check_blocks(struct peal_comm *comm, const void *send,
                                     const struct peal_blocks *send_blocks, const void *recv,
                                     const struct peal_blocks *recv_blocks, enum peal_dtype dtype)
{
    uint32_t size = comm->team->size;
    uint64_t send_end, recv_end;
    if ((unsigned)dtype >= PEAL_DTYPE_COUNT)
        return peal_comm_fail(comm, PEAL_INVALID, "all_to_all_v: there is no data type %d",
                              (int)dtype);
    if (!send_blocks || !recv_blocks || !send_blocks->counts || !recv_blocks->counts)
        return peal_comm_fail(comm, PEAL_INVALID, "all_to_all_v: no counts");
    if (!blocks_end(send_blocks, size, peal_dtype_size(dtype), &send_end) ||
        !blocks_end(recv_blocks, size, peal_dtype_size(dtype), &recv_end))
        return peal_comm_fail(comm, PEAL_INVALID,
                              "all_to_all_v: the counts do not fit an address space");
    if ((send_end > 0 && !send) || (recv_end > 0 && !recv))
        return peal_comm_fail(comm, PEAL_INVALID, "all_to_all_v: no buffer");
    uintptr_t a = (uintptr_t)send, b = (uintptr_t)recv;
    if (send_end > 0 && recv_end > 0 && a < b + recv_end && b < a + send_end)
        return peal_comm_fail(comm, PEAL_INVALID, "all_to_all_v: input and output overlap");
    if (send_blocks->counts[comm->team->rank] != recv_blocks->counts[comm->team->rank])
        return peal_comm_fail(comm, PEAL_INVALID,
                              "all_to_all_v: the own block is sent with %llu elements, received "
                              "with %llu",
                              (unsigned long long)send_blocks->counts[comm->team->rank],
                              (unsigned long long)recv_blocks->counts[comm->team->rank]);
    return PEAL_OK;
}

enum peal_status peal_iall_to_all_v(struct peal_comm *comm, const void *send,
                                    const struct peal_blocks *send_blocks, void *recv,
                                    const struct peal_blocks *recv_blocks, enum peal_dtype dtype,
                                    struct peal_request **out)
{
    enum peal_status status = peal_comm_check(comm);
    if (status == PEAL_OK && !out)
        status = peal_comm_fail(comm, PEAL_INVALID, "no place for the request");
    if (status == PEAL_OK)
        status = check_blocks(comm, send, send_blocks, recv, recv_blocks, dtype);
    if (status != PEAL_OK)
        return status;
    uint32_t size = comm->team->size, rank = comm->team->rank;
    struct peal_request *request = new_request(comm, 2 * size);
    if (!request)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a request");
    struct peal_calls *engine = &comm->engine;
    uint64_t element = peal_dtype_size(dtype), send_at = 0, recv_at = 0;
    uint64_t seq = ++engine->seqs[1];
    peal_team_enter(comm->team, 1, seq, peal_call_what(PEAL_CALL_ALL_TO_ALL_V, dtype, 0, 0), 0);
    uint32_t tag = OWN_TAG | (uint32_t)(seq & 0xffffff) | (uint32_t)dtype << 24;
    for (uint32_t r = 0; r < size; r++) {
        uint64_t from = (send_blocks->offsets ? send_blocks->offsets[r] : send_at) * element;
        uint64_t to = (recv_blocks->offsets ? recv_blocks->offsets[r] : recv_at) * element;
        uint64_t give = send_blocks->counts[r] * element, take = recv_blocks->counts[r] * element;
        request->letters[r] = (struct peal_letter){.sends = true,
                                                   .peer = r,
                                                   .tag = tag,
                                                   .data = (char *)(uintptr_t)send + from,
                                                   .bytes = give};
        request->letters[size + r] =
            (struct peal_letter){.peer = r, .tag = tag, .data = (char *)recv + to, .bytes = take};
        send_at += send_blocks->counts[r];
        recv_at += recv_blocks->counts[r];
        if (r == rank && give > 0)
            memcpy((char *)recv + to, (const char *)send + from, give);
    }
    /* Receives first: what has already come need not be put aside. From the own rank on, so that
     * not everyone fills the same queue first. */
    for (uint32_t i = 1; i < size; i++)
        peal_mail_post(&engine->mail, &request->letters[size + (rank + i) % size]);
    for (uint32_t i = 1; i < size; i++)
        peal_mail_post(&engine->mail, &request->letters[(rank + i) % size]);
    request->letters[size + rank].sender = rank;
    request->letters[size + rank].length = request->letters[size + rank].bytes;
    peal_team_leave(comm->team);
    *out = request;
    return PEAL_OK;
}

enum peal_status peal_all_to_all_v(struct peal_comm *comm, const void *send,
                                   const struct peal_blocks *send_blocks, void *recv,
                                   const struct peal_blocks *recv_blocks, enum peal_dtype dtype)
{
    struct peal_request *request;
    enum peal_status status =
        peal_iall_to_all_v(comm, send, send_blocks, recv, recv_blocks, dtype, &request);
    return status == PEAL_OK ? peal_request_wait(request) : status;
}
